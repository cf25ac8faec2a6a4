/* Signals that end the process, after a function has been called.
 * Python handles a signal in its main thread, and not while that waits in C: for a semaphore of
 * multiprocessing perhaps for ever. So a thread of its own waits for such signals here. What the
 * parent of the process sees is the signal. */
#ifndef OW_ENDING_H
#define OW_ENDING_H

/* Call `call` when SIGTERM, SIGHUP or SIGINT comes, then end by that signal; only for signals that
 * would end the process, not for those that the program handles or ignores. A process that is at it
 * for long, as where the main thread never releases what `call` waits for, ends without it. */
void ow_ending_watch(void (*call)(void));
/* End the thread before a fork, so that a process of one thread forks as one; start it again. */
void ow_ending_before_fork(void);
void ow_ending_after_fork(void);
/* Watch in a forked child what its parent watched. */
void ow_ending_after_fork_in_child(void);
/* Let signals end the process as ever, and end it if one has come. */
void ow_ending_leave(void);

#endif
