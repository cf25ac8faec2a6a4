/* What a VM keeps of the times of its steps: of each the number of runs, their sum, least, most
 * and a histogram (opwise/profiling/histogram.py says of which buckets); and all times of the first
 * calls and of the slowest ones. */
#ifndef OW_TIMING_H
#define OW_TIMING_H

#include <string.h>

#include "clock.h"

enum { OW_BUCKETS = 320, OW_FIRST = 4, OW_SLOWEST = 4, OW_KEPT = OW_FIRST + OW_SLOWEST };

/* Another process may read these while they are written (Timing.keep_in). */
typedef struct {
    int64_t count, sum, least, most;
} ow_times;

typedef int64_t ow_histogram[OW_BUCKETS];

/* A call whose times are kept; number 0: none. Its times are in the row of this number. */
typedef struct {
    int64_t number, start, total;
} ow_call;

typedef struct {
    int64_t nsteps;
    ow_times *steps;
    /* whether that is memory of somebody else */
    int borrowed;
    ow_histogram *histograms;
    ow_call kept[OW_KEPT];
    /* nsteps times for each kept call; behind them those of the call under way, in which the steps
     * of a loop run several times */
    int64_t *rows;
    int64_t *now;
} ow_timing;

/* What timing adds to a step; part of what the clock shows of each, and taken from it; -1: not
 * measured yet. */
#pragma GCC visibility push(hidden)
extern int64_t ow_timer_ns;
#pragma GCC visibility pop

static inline int ow_bucket(int64_t ns)
{
    if (ns < 8)
        return (int)ns;
    const int power = 63 - __builtin_clzll((uint64_t)ns);
    const int bucket = 8 * (power - 2) + (int)(ns >> (power - 3) & 7);
    return bucket < OW_BUCKETS ? bucket : OW_BUCKETS - 1;
}

static inline void ow_note(ow_timing *t, int64_t k, int64_t ns)
{
    ow_times *step = t->steps + k;
    ns -= ow_timer_ns;
    if (ns < 0)
        ns = 0;
    if (step->count == 0 || ns < step->least)
        step->least = ns;
    if (ns > step->most)
        step->most = ns;
    step->count++;
    step->sum += ns;
    t->histograms[k][ow_bucket(ns)]++;
    t->now[k] += ns;
}

/* Forget the times of the call under way. */
static inline void ow_timing_begin(ow_timing *t)
{
    memset(t->now, 0, (size_t)t->nsteps * sizeof(int64_t));
}

/* Keep the call that has ended if it is one of the first, or slower than the slowest up to now.
 * Returns the row of its times, or -1. */
static inline int ow_keep(ow_timing *t, int64_t number, int64_t start, int64_t total)
{
    int at = (int)number - 1;
    if (number > OW_FIRST) {
        at = OW_FIRST;
        for (int i = OW_FIRST + 1; i < OW_KEPT; i++)
            if (t->kept[i].total < t->kept[at].total)
                at = i;
        if (t->kept[at].number != 0 && t->kept[at].total >= total)
            return -1;
    }
    t->kept[at].number = number;
    t->kept[at].start = start;
    t->kept[at].total = total;
    memcpy(t->rows + at * t->nsteps, t->now, (size_t)t->nsteps * sizeof(int64_t));
    return at;
}

static inline void ow_timing_forget(ow_timing *t)
{
    memset(t->steps, 0, (size_t)t->nsteps * sizeof(ow_times));
    memset(t->histograms, 0, (size_t)t->nsteps * sizeof(ow_histogram));
    memset(t->kept, 0, sizeof t->kept);
}

/* Room for the times of so many steps, or NULL. */
ow_timing *ow_timing_new(int64_t nsteps);
void ow_timing_free(ow_timing *t);
/* Keep the counters in other memory from now on: in that of the caller, or, for NULL, in memory of
 * its own again. Returns -1 without memory. */
int ow_timing_move(ow_timing *t, ow_times *to);
/* Measure what timing adds to a step: how much longer work takes with it than without, the least of
 * many. Two readings of the clock, one after the other, would show twice as much: a processor goes
 * on with other work while it reads. */
void ow_timer_measure(void);

#endif
