/* Memory of values: blocks that know their size, and large ones that are used again.
 *
 * What a call lets go, an intermediate value or a result that the caller drops, serves the next
 * request of about its size: fresh pages from the system cost more than most kernels do.
 */
#ifndef OW_MEMORY_H
#define OW_MEMORY_H

#include <stdint.h>

#define OW_ALIGN 64

/* A block of at least `bytes` bytes, aligned to OW_ALIGN where it is large enough to matter; NULL
 * if there is none. Free it with ow_free. */
char *ow_alloc(int64_t bytes);
void ow_free(char *block);
/* Whether every new block is filled with ones, which are NaN where they are read as numbers: what a
 * step leaves unwritten then shows. */
void ow_fill_new(int yes);
/* As realloc. */
char *ow_resize(char *block, int64_t bytes);
int64_t ow_capacity(const char *block);
/* Only the first `bytes` of a block are in use: the address sanitizer, where there is one, reports
 * whoever touches the rest. */
#if defined(__SANITIZE_ADDRESS__)
void ow_fit(char *block, int64_t bytes);
#else
#define ow_fit(block, bytes) ((void)0)
#endif
/* Keep at most `bytes` of freed blocks for later use; give back what is more than that. */
void ow_keep_at_most(int64_t bytes);
/* Bytes of freed blocks that are kept. */
int64_t ow_kept(void);

#endif
