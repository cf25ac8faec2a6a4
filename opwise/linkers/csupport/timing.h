/* What a VM keeps of the times of its steps: of each the number of runs, their sum, least, most
 * and a histogram (opwise/profiling/histogram.py says of which buckets); and all times of the first
 * calls and of the slowest ones. */
#ifndef OW_TIMING_H
#define OW_TIMING_H

#include <stdlib.h>
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
static int64_t ow_timer_ns = -1;

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

static inline void ow_timing_free(ow_timing *t)
{
    if (t != NULL) {
        if (!t->borrowed)
            free(t->steps);
        free(t->histograms);
        free(t->rows);
        free(t);
    }
}

/* Room for the times of so many steps, or NULL. */
static inline ow_timing *ow_timing_new(int64_t nsteps)
{
    const size_t n = nsteps > 0 ? (size_t)nsteps : 1;
    ow_timing *t = (ow_timing *)calloc(1, sizeof(ow_timing));
    if (t == NULL)
        return NULL;
    t->nsteps = (int64_t)n;
    t->steps = (ow_times *)calloc(n, sizeof(ow_times));
    t->histograms = (ow_histogram *)calloc(n, sizeof(ow_histogram));
    t->rows = (int64_t *)calloc(n * (OW_KEPT + 1), sizeof(int64_t));
    t->now = t->rows + n * OW_KEPT;
    if (t->steps == NULL || t->histograms == NULL || t->rows == NULL) {
        ow_timing_free(t);
        return NULL;
    }
    return t;
}

/* Keep the counters in other memory from now on: in that of the caller, or, for NULL, in memory of
 * its own again. Returns -1 without memory. */
static inline int ow_timing_move(ow_timing *t, ow_times *to)
{
    const size_t size = (size_t)t->nsteps * sizeof(ow_times);
    ow_times *from = t->steps;
    const int was_borrowed = t->borrowed;
    if (to == NULL && was_borrowed == 0)
        return 0;
    t->borrowed = to != NULL;
    if (to == NULL)
        to = (ow_times *)malloc(size);
    if (to == NULL) {
        t->borrowed = was_borrowed;
        return -1;
    }
    memcpy(to, from, size);
    t->steps = to;
    if (!was_borrowed)
        free(from);
    return 0;
}

/* Some fifty nanoseconds of work of which much goes on at once, as in most steps. */
static __attribute__((noinline)) void ow_some_work(uint64_t *m)
{
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 16; i++)
            m[i] = m[i] * 3 + m[(i + 5) & 15];
}

/* Measure what timing adds to a step: how much longer work takes with it than without, the least of
 * many. Two readings of the clock, one after the other, would show twice as much: a processor goes
 * on with other work while it reads. */
static inline void ow_timer_measure(void)
{
    enum { RUNS = 200, ROUNDS = 20 };
    void (*volatile work)(uint64_t *) = ow_some_work;
    uint64_t memory[16] = {1};
    int64_t with = INT64_MAX, without = INT64_MAX;
    ow_timing *t = ow_timer_ns >= 0 ? NULL : ow_timing_new(1);
    if (t == NULL)
        return;
    ow_timer_ns = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t first = ow_clock();
        for (int i = 0; i < RUNS; i++)
            work(memory);
        const int64_t second = ow_clock();
        int64_t before = second;
        for (int i = 0; i < RUNS; i++) {
            work(memory);
            const int64_t now = ow_clock();
            ow_note(t, 0, now - before);
            before = now;
        }
        if (second - first < without)
            without = second - first;
        if (before - second < with)
            with = before - second;
    }
    ow_timing_free(t);
    if (with > without)
        ow_timer_ns = (with - without) / RUNS;
}

#endif
