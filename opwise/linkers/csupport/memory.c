#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(address, size) ((void)0)
#define __asan_unpoison_memory_region(address, size) ((void)0)
#endif

/* Blocks below OW_LARGE come from malloc and go back to it. Others are of sizes in steps of an
 * eighth of a power of two, so that a freed one fits many requests; a list for each size. */
#define OW_LARGE (32 << 10)
#define OW_ALIGNED 1024
#define OW_HUGE (4 << 20)
#define OW_HUGE_PAGE (2 << 20)
#define OW_SIZES (8 * 48)

/* What stands just before a block. */
typedef struct ow_head {
    char *base; /* what malloc gave */
    int64_t capacity;
} ow_head;

/* A freed block holds its successor in its list. */
typedef struct ow_freed {
    struct ow_freed *next;
} ow_freed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ow_freed *lists[OW_SIZES];
static int64_t kept, most = 256 << 20;

static ow_head *head_of(const char *block) { return (ow_head *)block - 1; }

/* Round `*bytes` up to a size that has a list; returns the list's number. */
static int size_class(int64_t *bytes)
{
    int power = 63 - __builtin_clzll((uint64_t)*bytes);
    int64_t step = (int64_t)1 << (power - 3);
    int64_t up = (*bytes + step - 1) / step * step;
    *bytes = up;
    power = 63 - __builtin_clzll((uint64_t)up);
    return (power - 15) * 8 + (int)((up >> (power - 3)) & 7);
}

static char *fresh(int64_t bytes, int64_t alignment)
{
    /* the head takes one unit of alignment */
    int64_t before = alignment > (int64_t)sizeof(ow_head) ? OW_ALIGN : (int64_t)sizeof(ow_head);
    void *base = NULL;
    if (alignment <= 16)
        base = malloc((size_t)(bytes + before));
    else if (posix_memalign(&base, (size_t)alignment, (size_t)(bytes + before)))
        base = NULL;
    if (base == NULL)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == OW_HUGE_PAGE)
        madvise(base, (size_t)(bytes + before), MADV_HUGEPAGE);
#endif
    char *block = (char *)base + before;
    *head_of(block) = (ow_head){base, bytes};
    return block;
}

/* Take the first block off a list that has one; with the lock held. */
static char *take(int k)
{
    char *block = (char *)lists[k];
    __asan_unpoison_memory_region(block, (size_t)head_of(block)->capacity);
    lists[k] = lists[k]->next;
    kept -= head_of(block)->capacity;
    return block;
}

/* Put a block onto a list; with the lock held. The address sanitizer reports who still uses it. */
static void keep(int k, char *block)
{
    int64_t bytes = head_of(block)->capacity;
    __asan_unpoison_memory_region(block, sizeof(ow_freed));
    ((ow_freed *)block)->next = lists[k];
    lists[k] = (ow_freed *)block;
    kept += bytes;
    __asan_poison_memory_region(block, (size_t)bytes);
}

#if defined(__SANITIZE_ADDRESS__)
void ow_fit(char *block, int64_t bytes)
{
    int64_t capacity = head_of(block)->capacity;
    __asan_unpoison_memory_region(block, (size_t)bytes);
    __asan_poison_memory_region(block + bytes, (size_t)(capacity - bytes));
}
#endif

/* With the lock held: free kept blocks, the largest first, until at most `bytes` are kept. */
static void shrink(int64_t bytes)
{
    for (int k = OW_SIZES - 1; k >= 0 && kept > bytes; k--)
        while (lists[k] && kept > bytes)
            free(head_of(take(k))->base);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static int filling;

void ow_fill_new(int yes) { filling = yes; }

static char *unfilled(int64_t bytes)
{
    if (bytes < 0 || bytes > INT64_MAX / 4)
        return NULL;
    if (bytes < OW_ALIGN)
        bytes = OW_ALIGN;
    if (bytes < OW_LARGE)
        return fresh(bytes, bytes < OW_ALIGNED ? 16 : OW_ALIGN);
    int k = size_class(&bytes);
    pthread_mutex_lock(&lock);
    char *block = lists[k] ? take(k) : NULL;
    pthread_mutex_unlock(&lock);
    if (block)
        return block;
    block = fresh(bytes, bytes >= OW_HUGE ? OW_HUGE_PAGE : OW_ALIGN);
    if (block)
        return block;
    ow_keep_at_most(-1); /* kept blocks of other sizes may be what is missing */
    return fresh(bytes, OW_ALIGN);
}

char *ow_alloc(int64_t bytes)
{
    char *block = unfilled(bytes);
    if (block)
        ow_fit(block, bytes);
    if (filling && block)
        memset(block, 0xff, (size_t)bytes);
    return block;
}

void ow_free(char *block)
{
    if (block == NULL)
        return;
    int64_t bytes = head_of(block)->capacity;
    if (bytes < OW_LARGE || bytes > most) {
        free(head_of(block)->base);
        return;
    }
    int64_t same = bytes;
    int k = size_class(&same);
    pthread_mutex_lock(&lock);
    if (kept + bytes > most)
        shrink(most - bytes);
    keep(k, block);
    pthread_mutex_unlock(&lock);
}

char *ow_resize(char *block, int64_t bytes)
{
    if (block == NULL)
        return ow_alloc(bytes);
    int64_t had = head_of(block)->capacity;
    if (bytes <= had) {
        ow_fit(block, bytes);
        return block;
    }
    char *larger = ow_alloc(bytes);
    if (larger == NULL)
        return NULL;
    ow_fit(block, had);
    memcpy(larger, block, (size_t)had);
    ow_free(block);
    return larger;
}

int64_t ow_capacity(const char *block) { return head_of(block)->capacity; }

void ow_keep_at_most(int64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (bytes >= 0)
        most = bytes;
    shrink(bytes < 0 ? 0 : bytes);
    pthread_mutex_unlock(&lock);
}

int64_t ow_kept(void) { return kept; }
