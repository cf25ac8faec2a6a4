/* Nanoseconds for the times of steps. Where the system itself takes its time from the processor's
 * counter, that counter is read directly: less than half the cost of a call, and the same time. */
#ifndef OW_CLOCK_H
#define OW_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static inline int64_t ow_system_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#if defined(__x86_64__)
#include <x86intrin.h>

static double ow_ns_per_tick; /* 0 until the counter may be used */
static uint64_t ow_first_tick;
static int64_t ow_first_ns;

/* Note the two clocks; called once, early. */
static void ow_clock_begin(void)
{
    ow_first_ns = ow_system_clock();
    ow_first_tick = __rdtsc();
}

/* Measure the counter against the system's clock, if the system trusts it too. */
static void ow_clock_calibrate(void)
{
    char source[32] = "";
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (f != NULL) {
        if (fgets(source, sizeof source, f) == NULL)
            source[0] = 0;
        fclose(f);
    }
    if (strcmp(source, "tsc\n") || ow_ns_per_tick != 0)
        return;
    while (ow_system_clock() - ow_first_ns < 5000000)
        ;
    ow_ns_per_tick =
        (double)(ow_system_clock() - ow_first_ns) / (double)(__rdtsc() - ow_first_tick);
}

static inline int64_t ow_clock(void)
{
    if (ow_ns_per_tick != 0)
        return (int64_t)((double)(__rdtsc() - ow_first_tick) * ow_ns_per_tick);
    return ow_system_clock();
}
#else
static void ow_clock_begin(void) {}
static void ow_clock_calibrate(void) {}
static inline int64_t ow_clock(void) { return ow_system_clock(); }
#endif

#endif
