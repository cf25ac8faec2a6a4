/* Memory for the times of steps, and what timing adds to them. */
#include "timing.h"

#include <stdlib.h>

int64_t ow_timer_ns = -1;

void ow_timing_free(ow_timing *t)
{
    if (t != NULL) {
        if (!t->borrowed)
            free(t->steps);
        free(t->histograms);
        free(t->rows);
        free(t);
    }
}

ow_timing *ow_timing_new(int64_t nsteps)
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

int ow_timing_move(ow_timing *t, ow_times *to)
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

void ow_timer_measure(void)
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
