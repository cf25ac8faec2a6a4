#define _GNU_SOURCE
#include "ending.h"

#include "../../graph/onethread.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Seconds after a signal in which a process may still write what it wants to leave. */
#define OW_LAST_SECONDS 20

static const int numbers[] = {SIGTERM, SIGHUP, SIGINT};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static struct {
    void (*call)(void);
    pid_t owner; /* the process that has the thread */
    int running; /* whether the thread was started and not joined */
    pthread_t thread;
    long id;
    sem_t *bell;          /* rung by a signal, and to end the thread */
    _Atomic int came;     /* the number of the signal that came */
    _Atomic int survived; /* whether one came that did not end the process */
} ending;

/* Return a semaphore: ringing one is allowed in a handler, and no file that a program could close.
 * NULL where there can be none. */
static sem_t *new_bell(void)
{
#ifdef __APPLE__ /* which has only semaphores with a name */
    char name[32];
    snprintf(name, sizeof name, "/opwise-%ld", (long)getpid());
    sem_unlink(name);
    sem_t *bell = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    sem_unlink(name);
    return bell == SEM_FAILED ? NULL : bell;
#else
    static sem_t bell;
    return sem_init(&bell, 0, 0) ? NULL : &bell;
#endif
}

/* --- signals ---------------------------------------------------------------------------------- */

/* End this process by a signal, unless it is one that no signal ends (process 1 of a container). */
static void end_by(int number)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    kill(getpid(), number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

static void receive(int number)
{
    int before = errno;
    if (getpid() != ending.owner) { /* between fork and exec the memory may be that of the parent */
        signal(number, SIG_DFL);
        kill(getpid(), number);
    } else {
        atomic_store(&ending.came, number);
        sem_post(ending.bell);
    }
    errno = before;
}

static int is_ours(int number)
{
    struct sigaction now;
    return !sigaction(number, NULL, &now) && !(now.sa_flags & SA_SIGINFO) &&
           now.sa_handler == receive;
}

/* Have our handler receive a signal that nobody handles. */
static void receive_unhandled(int number)
{
    struct sigaction now, ours = {.sa_handler = receive, .sa_flags = SA_RESTART};
    if (sigaction(number, NULL, &now) || now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL)
        return;
    sigfillset(&ours.sa_mask);
    sigaction(number, &ours, NULL);
}

static int any_is_ours(void)
{
    for (int k = 0; k < NUMBERS; k++)
        if (is_ours(numbers[k]))
            return 1;
    return 0;
}

static void receive_none(void)
{
    for (int k = 0; k < NUMBERS; k++)
        if (is_ours(numbers[k]))
            signal(numbers[k], SIG_DFL);
}

static void *limit(void *unused)
{
    struct timespec left = {.tv_sec = OW_LAST_SECONDS};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
    end_by(atomic_load(&ending.came));
    return unused;
}

static void *wait_for_signal(void *unused)
{
    ending.id = ow_thread_id();
    while (sem_wait(ending.bell) && errno == EINTR)
        ;
    if (!atomic_load(&ending.came)) /* the thread is to end */
        return unused;
    pthread_t timer;
    if (!ow_start_thread(&timer, limit, NULL))
        pthread_detach(timer);
    ending.call();
    receive_none();
    end_by(atomic_load(&ending.came));
    atomic_store(&ending.came, 0);
    atomic_store(&ending.survived, 1);
    return unused;
}

/* --- the process ------------------------------------------------------------------------------ */

/* Start the thread; without it signals end the process as ever. */
static void start(void)
{
    ending.owner = getpid();
    ending.running = ending.bell && !ow_start_thread(&ending.thread, wait_for_signal, NULL);
    if (!ending.running)
        receive_none();
}

void ow_ending_watch(void (*call)(void))
{
    ending.call = call;
    if (atomic_load(&ending.survived))
        return;
    if (!ending.running) {
        ending.bell = new_bell();
        start();
    }
    if (ending.running)
        for (int k = 0; k < NUMBERS; k++)
            receive_unhandled(numbers[k]);
}

void ow_ending_before_fork(void)
{
    if (!ending.running)
        return;
    sem_post(ending.bell);
    pthread_join(ending.thread, NULL);
    ow_wait_until_gone(ending.id);
}

void ow_ending_after_fork(void)
{
    if (ending.running)
        start();
}

void ow_ending_after_fork_in_child(void)
{
    atomic_store(&ending.came, 0);
    atomic_store(&ending.survived, 0);
    if (ending.running) {
        ending.running = 0;
        ending.bell = new_bell();
        if (any_is_ours())
            start();
    }
}

void ow_ending_leave(void)
{
    receive_none();
    if (atomic_load(&ending.came))
        end_by(atomic_load(&ending.came));
}
