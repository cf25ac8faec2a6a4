#include "buffers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGNED_TO 64

_Thread_local ow_buffer ow_buffers[OW_BUFFERS];

/* Its value in a thread is that thread's array of buffers, which its destructor frees. */
static pthread_key_t key;
static int has_key;

static void free_buffers(void *of_thread)
{
    ow_buffer *buffers = of_thread;
    for (int i = 0; i < OW_BUFFERS; i++) {
        free(buffers[i].block);
        buffers[i] = (ow_buffer){0};
    }
}

__attribute__((constructor)) static void make_key(void)
{
    has_key = !pthread_key_create(&key, free_buffers);
}

char *ow_new_buffer(int which, size_t bytes)
{
    ow_buffer *b = &ow_buffers[which];
    free(b->block);
    /* large blocks are pages that are cleared when they are first touched */
    b->block = calloc(1, bytes + ALIGNED_TO);
    if (b->block == NULL) {
        fputs("opwise: out of memory for the buffers of a thread\n", stderr);
        abort();
    }
    b->memory = (char *)(((uintptr_t)b->block + ALIGNED_TO - 1) & ~(uintptr_t)(ALIGNED_TO - 1));
    b->bytes = bytes;
    if (has_key)
        pthread_setspecific(key, ow_buffers);
    return b->memory;
}
