/* Working memory of kernels, for each thread: made when a kernel first asks for it, and freed when the
 * thread ends.
 *
 * As thread-local arrays it would be cleared as a whole, some 5 MB, the first time that a thread runs any
 * kernel. */
#ifndef OW_BUFFERS_H
#define OW_BUFFERS_H

#include <stddef.h>

/* A kernel may ask for one buffer while it uses another, but uses each for one thing at a time. */
enum {
    OW_BUFFER_OPERANDS,  /* of elementwise loops whose operands are not contiguous */
    OW_BUFFER_REGISTERS, /* of the interpreter */
    OW_BUFFER_LEFT,      /* rows of the left operand of a product, */
    OW_BUFFER_RIGHT,     /* and panels of the right one */
    OW_BUFFERS
};

typedef struct ow_buffer {
    char *memory;  /* aligned to 64 bytes */
    size_t bytes;
    void *block;   /* what to free */
} ow_buffer;

extern _Thread_local ow_buffer ow_buffers[OW_BUFFERS];

/* Make a buffer larger; what it contained is lost. */
char *ow_new_buffer(int which, size_t bytes);

/* Return a buffer of this thread of at least `bytes` bytes. Ends the process if there is no memory, as the
 * system does for thread-local arrays. */
static inline char *ow_thread_buffer(int which, size_t bytes)
{
    ow_buffer *b = &ow_buffers[which];
    return b->bytes >= bytes ? b->memory : ow_new_buffer(which, bytes);
}

#endif
