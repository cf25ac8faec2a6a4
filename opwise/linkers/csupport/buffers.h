/* Working memory of kernels, for each thread: made when the thread is about to run its first
 * kernel, and freed when it ends.
 * As thread-local arrays it would be cleared as a whole, some 2 MB, the first time that a thread
 * runs any kernel. Kernels cannot report a failed allocation, so all of it is allocated before they
 * run; pages take memory only when they are used. */
#ifndef OW_BUFFERS_H
#define OW_BUFFERS_H

/* A kernel may use several buffers, but uses each for one thing at a time. Their places in the
 * memory, which are multiples of 64 bytes; each ends where the next one begins. */
enum {
    OW_BUFFER_OPERANDS = 0, /* of elementwise loops whose operands are not contiguous */
    OW_BUFFER_REGISTERS = OW_BUFFER_OPERANDS + 40 * 16384, /* of the interpreter */
    OW_BUFFER_RUN = OW_BUFFER_REGISTERS + 128 * 8 * 512,   /* elements that it is about to fold */
    OW_BUFFER_LEFT = OW_BUFFER_RUN + 16 * 1024,       /* rows of the left operand of a product, */
    OW_BUFFER_RIGHT = OW_BUFFER_LEFT + 8 * 256 * 240, /* and panels of the right one */
    OW_BUFFERS_END = OW_BUFFER_RIGHT + 256 * 8 * 128,
};

/* That of this thread; NULL before ow_have_buffers. */
extern _Thread_local char *ow_buffers;

/* The buffer NAME of this thread, of TYPE [count]. */
#define OW_THREAD_BUFFER(NAME, END, TYPE, count)                                                   \
    ({                                                                                             \
        _Static_assert(sizeof(TYPE) * (count) <= (END) - (NAME), "a buffer is too small");         \
        (TYPE *)(ow_buffers + (NAME));                                                             \
    })

/* Make the buffers of this thread if it has none; returns 0 if there is no memory. Who calls
 * kernels calls this first. */
int ow_make_buffers(void);
static inline int ow_have_buffers(void) { return ow_buffers || ow_make_buffers(); }

/* The same in two steps: memory for the buffers of another thread, or NULL; and what that thread
 * does with it, which returns 0 if that fails. */
char *ow_new_buffers(void);
int ow_take_buffers(char *memory);
void ow_free_buffers(char *memory);

#endif
