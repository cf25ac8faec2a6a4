/* A thread that does one thing for as long as the process lives: starting it, and making sure that
 * it has ended before a fork. */
#ifndef OW_ONETHREAD_H
#define OW_ONETHREAD_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Start a thread that receives no signals: programs decide which of theirs does. Not 0: failed. */
static inline int ow_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t most, before;
    sigfillset(&most);
    /* where these are blocked, the fault of a thread ends the process without a word of
     * faulthandler */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        sigdelset(&most, faults[k]);
    /* the thread has this mask from its first moment */
    pthread_sigmask(SIG_BLOCK, &most, &before);
    int failed = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* The kernel's number of this thread; 0 where it has none that is of use. */
static inline long ow_thread_id(void)
{
#ifdef __linux__
    return syscall(SYS_gettid);
#else
    return 0;
#endif
}

/* Wait until the kernel no longer counts a thread that was joined. */
static inline void ow_wait_until_gone(long id)
{
#ifdef __linux__
    for (int k = 0; k < 10000 && syscall(SYS_tgkill, getpid(), id, 0) == 0; k++)
        sched_yield();
#else
    (void)id;
#endif
}

#endif
