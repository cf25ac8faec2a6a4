/* A team of threads that shares the work of one kernel.
 *
 * Chunks of a job are taken one by one, so a thread that starts late or is held up costs nothing:
 * the others do its share. The caller works too, and waits only for chunks that have been begun.
 * Where other programs use the processors, that wait may be longer than all of the work; the caller
 * then works alone for a while.
 */
#ifndef OW_THREADS_H
#define OW_THREADS_H

#include <pthread.h>
#include <stdint.h>

typedef void (*ow_task)(void *arg, int64_t chunk);

/* Call fn(arg, chunk) for every chunk from 0 to n - 1, in no particular order, and return when all
 * are done. Where the team is at work for another thread, the caller does everything itself. */
void ow_parallel(ow_task fn, void *arg, int64_t n);
/* Look for signals while kernels run in this thread: some 50 ms after the last time, when no chunk
 * is being worked on, ow_parallel calls `look`; where that returns other than 0, it leaves out what
 * is still to do, and so does every later job until ow_watch_end, which returns whether that
 * happened. What the kernel has computed is then incomplete. */
typedef int (*ow_look)(void);
void ow_watch_begin(ow_look look);
int ow_watch_end(void);
/* The same for loops that do not use ow_parallel, to be asked every some milliseconds of work. */
int ow_should_stop(void);
/* As ow_parallel, by the caller alone and in order. */
void ow_in_order(ow_task fn, void *arg, int64_t n);
/* How many threads a job may have, the caller included. */
int ow_threads(void);
/* Set that number; 1 means no team at all. Threads that are too many end. */
void ow_set_threads(int n);

#endif
