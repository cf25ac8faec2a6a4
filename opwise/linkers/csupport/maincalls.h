/* How long one thread has been in calls of functions: the sampler of a program tells this time apart
 * from that of its other lines. That thread writes it. */
#ifndef OW_MAINCALLS_H
#define OW_MAINCALLS_H

#include "clock.h"

#include <stdatomic.h>

static unsigned long ow_main_thread;  /* Python's number of it; 0: nobody asks */
static int64_t ow_main_total;         /* nanoseconds in calls that have ended */
static _Atomic int64_t ow_main_since; /* when the call under way began; 0: there is none */

/* Return the nanoseconds in all calls; asked by that thread. */
static int64_t ow_main_called(void)
{
    const int64_t since = atomic_load_explicit(&ow_main_since, memory_order_relaxed);
    return ow_main_total + (since ? ow_clock() - since : 0);
}

/* Return whether there is a call under way; asked by any thread. */
static int ow_main_is_called(void)
{
    return atomic_load_explicit(&ow_main_since, memory_order_relaxed) != 0;
}

static void ow_main_watch(unsigned long thread)
{
    if (ow_main_thread != thread) /* a forked process of which another thread is the main one */
        atomic_store_explicit(&ow_main_since, 0, memory_order_relaxed);
    ow_main_thread = thread;
}

/* Note that a call begins; returns whether its end is to be noted: not within another one. */
static inline int ow_main_enter(unsigned long thread, int64_t now)
{
    if (thread != ow_main_thread || atomic_load_explicit(&ow_main_since, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&ow_main_since, now, memory_order_relaxed);
    return 1;
}

static inline void ow_main_leave(int64_t now)
{
    ow_main_total += now - atomic_load_explicit(&ow_main_since, memory_order_relaxed);
    atomic_store_explicit(&ow_main_since, 0, memory_order_relaxed);
}

#endif
