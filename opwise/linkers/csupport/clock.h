/* Nanoseconds for the times of steps. Where the system itself takes its time from the processor's
 * counter, that counter is read directly: less than half the cost of a call, and the same time. */
#ifndef OW_CLOCK_H
#define OW_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Note the two clocks; called once, early. */
void ow_clock_begin(void);
/* Measure the counter against the system's clock, if the system trusts it too. */
void ow_clock_calibrate(void);

static inline int64_t ow_system_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#if defined(__x86_64__)
#include <x86intrin.h>

#pragma GCC visibility push(hidden)
extern double ow_ns_per_tick; /* 0 until the counter may be used */
extern uint64_t ow_first_tick;
#pragma GCC visibility pop

static inline int64_t ow_clock(void)
{
    if (ow_ns_per_tick != 0)
        return (int64_t)((double)(__rdtsc() - ow_first_tick) * ow_ns_per_tick);
    return ow_system_clock();
}
#else
static inline int64_t ow_clock(void) { return ow_system_clock(); }
#endif

#endif
