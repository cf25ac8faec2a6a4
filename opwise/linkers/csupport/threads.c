#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#define OW_MAX_THREADS 256
/* How often an idle thread looks for work before it sleeps: some tens of microseconds, enough for
 * the next step of a function, and too little to be in the way of others. */
#define OW_SPINS 1500

#if defined(__x86_64__) || defined(__i386__)
#define OW_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define OW_PAUSE() __asm__ volatile("yield")
#else
#define OW_PAUSE() ((void)0)
#endif

/* One job at a time, under `busy`. `left` counts the chunks that nobody has taken yet; it is set
 * last, after what the job is, so whoever takes a chunk sees the job that it belongs to. */
static struct {
    ow_task fn;
    void *arg;
    _Atomic int64_t left, undone;
    _Atomic int wanted;    /* threads that should run, the caller included */
    _Atomic int sleeping;
    int running;           /* threads that were started and have not ended */
    pthread_mutex_t busy, sleep;
    pthread_cond_t wake;
} team = {.wanted = 1, .busy = PTHREAD_MUTEX_INITIALIZER, .sleep = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER};

/* Do chunks of the present job until none is left. */
static void work(void)
{
    int64_t n = atomic_load_explicit(&team.left, memory_order_acquire);
    while (n > 0) {
        if (!atomic_compare_exchange_weak_explicit(&team.left, &n, n - 1, memory_order_acquire,
                                                   memory_order_acquire))
            continue;
        team.fn(team.arg, n - 1);
        atomic_fetch_sub_explicit(&team.undone, 1, memory_order_release);
        n = atomic_load_explicit(&team.left, memory_order_acquire);
    }
}

static void *member(void *index)
{
    int self = (int)(intptr_t)index;
    for (;;) {
        for (int i = 0; i < OW_SPINS && atomic_load_explicit(&team.left, memory_order_relaxed) <= 0; i++)
            OW_PAUSE();
        if (atomic_load_explicit(&team.left, memory_order_relaxed) > 0 &&
            self < atomic_load_explicit(&team.wanted, memory_order_relaxed)) {
            work();
            continue;
        }
        pthread_mutex_lock(&team.sleep);
        atomic_fetch_add(&team.sleeping, 1);
        while (atomic_load(&team.left) <= 0 && self < atomic_load(&team.wanted))
            pthread_cond_wait(&team.wake, &team.sleep);
        atomic_fetch_sub(&team.sleeping, 1);
        if (self >= atomic_load(&team.wanted)) {
            team.running--;
            pthread_mutex_unlock(&team.sleep);
            return NULL;
        }
        pthread_mutex_unlock(&team.sleep);
    }
}

/* A forked child has none of the threads, and locks in any state. */
static void after_fork(void)
{
    pthread_mutex_init(&team.busy, NULL);
    pthread_mutex_init(&team.sleep, NULL);
    pthread_cond_init(&team.wake, NULL);
    team.running = 0;
    team.sleeping = 0;
    team.left = team.undone = 0;
}

/* Start the threads that are missing; with `busy` held. */
static void gather(void)
{
    static int told = 0;
    if (!told)
        told = !pthread_atfork(NULL, NULL, after_fork);
    pthread_mutex_lock(&team.sleep);
    while (team.running + 1 < team.wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, member, (void *)(intptr_t)(team.running + 1)))
            break;  /* fewer threads are slower, and right */
        pthread_detach(thread);
        team.running++;
    }
    pthread_mutex_unlock(&team.sleep);
}

void ow_parallel(ow_task fn, void *arg, int64_t n)
{
    if (n <= 1 || team.wanted <= 1 || pthread_mutex_trylock(&team.busy)) {
        for (int64_t i = 0; i < n; i++)
            fn(arg, i);
        return;
    }
    if (team.running + 1 < team.wanted)
        gather();
    team.fn = fn;
    team.arg = arg;
    atomic_store(&team.undone, n);
    atomic_store(&team.left, n);
    if (atomic_load(&team.sleeping)) {
        pthread_mutex_lock(&team.sleep);
        pthread_cond_broadcast(&team.wake);
        pthread_mutex_unlock(&team.sleep);
    }
    work();
    for (int spins = 0; atomic_load_explicit(&team.undone, memory_order_acquire) > 0; spins++)
        if (spins < 20000)
            OW_PAUSE();
        else
            sched_yield();  /* the one who has the last chunk may wait for this processor */
    pthread_mutex_unlock(&team.busy);
}

int ow_threads(void)
{
    return team.wanted;
}

void ow_set_threads(int n)
{
    n = n < 1 ? 1 : n > OW_MAX_THREADS ? OW_MAX_THREADS : n;
    pthread_mutex_lock(&team.busy);
    pthread_mutex_lock(&team.sleep);
    atomic_store(&team.wanted, n);
    pthread_cond_broadcast(&team.wake);
    pthread_mutex_unlock(&team.sleep);
    pthread_mutex_unlock(&team.busy);
}
