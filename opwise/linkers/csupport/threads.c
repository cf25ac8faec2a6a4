#define _GNU_SOURCE
#include "threads.h"

#include "../../graph/onethread.h"
#include "buffers.h"

#include <stdatomic.h>
#include <time.h>

#define OW_MAX_THREADS 256
/* How often an idle thread looks for work before it sleeps: some tens of microseconds, enough for
 * the next step of a function, and too little to be in the way of others. */
#define OW_SPINS 1500
/* How often the caller looks whether the others are done before it offers them its processor. */
#define OW_CALLER_SPINS 20000
/* Nanoseconds from one look for signals to the next. */
#define OW_LOOK_NS 50000000
/* A job that loses more nanoseconds than this to waiting makes the team rest for a few times as
 * long, and for twice as many times where it loses again soon after its rest, up to so many times
 * and so long: what is lost to programs that stay is a few percent of the time, and what was short
 * costs little. */
#define OW_LOST_NS 1000000
#define OW_FIRST_REST 2
#define OW_REST_FACTOR 20
#define OW_SOON_NS 100000000
#define OW_LONGEST_REST_NS 2000000000

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
    _Atomic int wanted; /* threads that should run, the caller included */
    _Atomic int64_t rests_until;
    int factor; /* how many times as long as what was lost the last rest was */
    _Atomic int sleeping;
    int running; /* threads that were started and not joined */
    pthread_t threads[OW_MAX_THREADS];
    char *buffers[OW_MAX_THREADS]; /* of a thread that was started */
    long ids[OW_MAX_THREADS];      /* the kernel's; of use for a thread that has ended */
    pthread_mutex_t busy, sleep;
    pthread_cond_t wake;
} team = {.wanted = 1,
          .busy = PTHREAD_MUTEX_INITIALIZER,
          .sleep = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER};

/* --- the team --------------------------------------------------------------------------------- */

/* Do one chunk of the present job; returns 0 if there is none left. */
static int do_chunk(void)
{
    int64_t n = atomic_load_explicit(&team.left, memory_order_acquire);
    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(&team.left, &n, n - 1, memory_order_acquire,
                                                  memory_order_acquire)) {
            team.fn(team.arg, n - 1);
            atomic_fetch_sub_explicit(&team.undone, 1, memory_order_release);
            return 1;
        }
    return 0;
}

static void *member(void *index)
{
    int self = (int)(intptr_t)index;
    if (!ow_take_buffers(team.buffers[self - 1])) {
        ow_free_buffers(team.buffers[self - 1]);
        return NULL; /* the others do its share */
    }
    team.ids[self - 1] = ow_thread_id();
    for (;;) {
        for (int i = 0; i < OW_SPINS && atomic_load_explicit(&team.left, memory_order_relaxed) <= 0;
             i++)
            OW_PAUSE();
        if (atomic_load_explicit(&team.left, memory_order_relaxed) > 0 &&
            self < atomic_load_explicit(&team.wanted, memory_order_relaxed)) {
            while (do_chunk())
                ;
            continue;
        }
        pthread_mutex_lock(&team.sleep);
        atomic_fetch_add(&team.sleeping, 1);
        while (atomic_load(&team.left) <= 0 && self < atomic_load(&team.wanted))
            pthread_cond_wait(&team.wake, &team.sleep);
        atomic_fetch_sub(&team.sleeping, 1);
        pthread_mutex_unlock(&team.sleep);
        if (self >= atomic_load(&team.wanted))
            return NULL;
    }
}

/* Let at most `n` threads run, the caller included, and wait until the others have ended; with
 * `busy` held. */
static void dismiss(int n)
{
    pthread_mutex_lock(&team.sleep);
    atomic_store(&team.wanted, n);
    pthread_cond_broadcast(&team.wake);
    pthread_mutex_unlock(&team.sleep);
    while (team.running + 1 > n && team.running > 0)
        pthread_join(team.threads[--team.running], NULL);
}

/* A process that is forked should have one thread: a child gets only that one, and Python warns of
 * others. Where the team is at work for another thread, it is left alone. */
static int dismissed;

static void before_fork(void)
{
    dismissed = !pthread_mutex_trylock(&team.busy);
    if (!dismissed)
        return;
    int wanted = team.wanted, running = team.running;
    dismiss(1);
    atomic_store(&team.wanted, wanted);
    for (int k = 0; k < running; k++)
        ow_wait_until_gone(team.ids[k]);
}

static void after_fork(void)
{
    if (dismissed)
        pthread_mutex_unlock(&team.busy);
}

/* Locks of a child may be in any state. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&team.busy, NULL);
    pthread_mutex_init(&team.sleep, NULL);
    pthread_cond_init(&team.wake, NULL);
    team.running = 0;
    team.sleeping = 0;
    team.left = team.undone = 0;
}

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Start the threads that are missing; with `busy` held. */
static void gather(void)
{
    while (team.running + 1 < team.wanted) {
        void *index = (void *)(intptr_t)(team.running + 1);
        char *buffers = team.buffers[team.running] = ow_new_buffers();
        if (buffers == NULL)
            break; /* fewer threads are slower, and right */
        if (ow_start_thread(&team.threads[team.running], member, index)) {
            ow_free_buffers(buffers);
            break;
        }
        team.running++;
    }
}

/* --- looking for signals ---------------------------------------------------------------------- */

static _Thread_local struct {
    ow_look look;
    int64_t last;
    int stopped;
} watch;

static int64_t now_ns(void)
{
    struct timespec t;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t exact_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void ow_watch_begin(ow_look look)
{
    watch.look = look;
    watch.stopped = 0;
    watch.last = look ? now_ns() : 0;
}

int ow_watch_end(void)
{
    int stopped = watch.stopped;
    watch.look = NULL;
    watch.stopped = 0;
    return stopped;
}

static int time_to_look(void)
{
    return watch.look && !watch.stopped && now_ns() - watch.last > OW_LOOK_NS;
}

int ow_should_stop(void)
{
    if (time_to_look()) {
        watch.stopped = watch.look();
        watch.last = now_ns();
    }
    return watch.stopped;
}

/* --- jobs ------------------------------------------------------------------------------------- */

void ow_in_order(ow_task fn, void *arg, int64_t n)
{
    for (int64_t i = 0; i < n && !ow_should_stop(); i++)
        fn(arg, i);
}

/* Let the team rest if a job took longer than the caller alone would have needed: other programs
 * use the processors, and one of the team lost its own with a chunk half done. `own`: chunks of the
 * caller, which took `own_ns`; it then waited for the others' for `waited_ns`. */
static void rest_after_loss(int64_t chunks, int64_t own, double own_ns, double waited_ns)
{
    const double lost = own ? own_ns + waited_ns - own_ns / (double)own * (double)chunks : 0;
    if (lost > OW_LOST_NS) {
        const int64_t now = now_ns();
        const int soon = now < atomic_load(&team.rests_until) + OW_SOON_NS;
        const int twice = 2 * team.factor < OW_REST_FACTOR ? 2 * team.factor : OW_REST_FACTOR;
        team.factor = soon ? twice : OW_FIRST_REST;
        const double rest = lost * team.factor;
        const int64_t ns = rest < OW_LONGEST_REST_NS ? (int64_t)rest : OW_LONGEST_REST_NS;
        atomic_store(&team.rests_until, now + ns);
    }
}

static int rests(void)
{
    const int64_t until = atomic_load_explicit(&team.rests_until, memory_order_relaxed);
    return until && now_ns() < until;
}

/* Let the team do chunks 0 to n - 1, with `busy` held. Returns how many are left when it is time to
 * look for signals. */
static int64_t do_together(int64_t n)
{
    int64_t rest = 0, own = 0, spins = 0;
    const int64_t start = exact_ns();
    atomic_store(&team.undone, n);
    atomic_store(&team.left, n);
    if (atomic_load(&team.sleeping)) {
        pthread_mutex_lock(&team.sleep);
        pthread_cond_broadcast(&team.wake);
        pthread_mutex_unlock(&team.sleep);
    }
    while (do_chunk()) {
        own++;
        if (time_to_look()) {
            rest = atomic_exchange(&team.left, 0);
            atomic_fetch_sub(&team.undone, rest);
            break;
        }
    }
    const int64_t finished = exact_ns();
    for (; atomic_load_explicit(&team.undone, memory_order_acquire) > 0; spins++)
        if (spins < OW_CALLER_SPINS)
            OW_PAUSE();
        else
            sched_yield(); /* the one who has the last chunk may wait for this processor */
    if (spins > OW_CALLER_SPINS)
        rest_after_loss(n - rest, own, (double)(finished - start), (double)(exact_ns() - finished));
    return rest;
}

void ow_parallel(ow_task fn, void *arg, int64_t n)
{
    while (n > 1 && team.wanted > 1 && !rests() && !ow_should_stop() &&
           !pthread_mutex_trylock(&team.busy)) {
        if (team.running + 1 < team.wanted)
            gather();
        team.fn = fn;
        team.arg = arg;
        n = do_together(n);
        pthread_mutex_unlock(&team.busy);
    }
    ow_in_order(fn, arg, n);
}

int ow_threads(void) { return team.wanted; }

void ow_set_threads(int n)
{
    n = n < 1 ? 1 : n > OW_MAX_THREADS ? OW_MAX_THREADS : n;
    pthread_mutex_lock(&team.busy);
    dismiss(n);
    pthread_mutex_unlock(&team.busy);
}
