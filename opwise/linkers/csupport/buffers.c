#include "buffers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define ALIGNED_TO 64

_Thread_local char *ow_buffers;

/* Its value in a thread is the memory that its destructor frees. */
static pthread_key_t key;
static int has_key;

static void free_block(void *block)
{
    free(block);
    ow_buffers = NULL;
}

__attribute__((constructor)) static void make_key(void)
{
    has_key = !pthread_key_create(&key, free_block);
}

/* The block from calloc stands just before the buffers. */
char *ow_new_buffers(void)
{
    /* a large block is pages that are cleared when they are first touched */
    char *block = calloc(1, OW_BUFFERS_END + sizeof(void *) + ALIGNED_TO);
    if (block == NULL)
        return NULL;
    const uintptr_t after = (uintptr_t)block + sizeof(void *) + ALIGNED_TO - 1;
    char *memory = (char *)(after & ~(uintptr_t)(ALIGNED_TO - 1));
    ((void **)memory)[-1] = block;
    return memory;
}

void ow_free_buffers(char *memory) { free(((void **)memory)[-1]); }

int ow_take_buffers(char *memory)
{
    if (!has_key || pthread_setspecific(key, ((void **)memory)[-1]))
        return 0;
    ow_buffers = memory;
    return 1;
}

int ow_make_buffers(void)
{
    char *memory = ow_new_buffers();
    if (memory == NULL)
        return 0;
    if (ow_take_buffers(memory))
        return 1;
    ow_free_buffers(memory);
    return 0;
}
