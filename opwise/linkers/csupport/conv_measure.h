/* The flag conv.algo=measure: the algorithm of a convolution or gradient that was the fastest when
 * a call of the process first met its shape.
 * That call computes its result with each algorithm, on its own data, and last with the fastest
 * one; later calls look it up. Entries are never removed, so that reading them needs no lock. */
#ifndef OW_CONV_MEASURE_H
#define OW_CONV_MEASURE_H

#include "clock.h"
#include "conv_forward.h"
#include "step_params.h"

/* For further shapes the model of costs chooses. */
#define OW_MEASURED_MOST 4096
#define OW_MEASURED_PLACES (2 * OW_MEASURED_MOST)
#define OW_MEASURED_KEY 44

/* What can compute a convolution or a gradient. */
typedef struct ow_conv_trial ow_conv_trial;
typedef int (*ow_conv_try_fn)(ow_step *s, const ow_conv_trial *t, int algorithm);
struct ow_conv_trial {
    ow_conv_try_fn run;
    const ow_conv *c, *turned; /* the convolution; that which its gradient by images is, or NULL */
    int count;
    int able[OW_CONV_ALGORITHMS]; /* the algorithms */
    const int64_t *top_at; /* bytes between elements of the gradient by the result, or NULL */
    const struct ow_kernel_sums *by_kernels; /* or NULL */
};

typedef struct ow_measured {
    int64_t key[OW_MEASURED_KEY];
    int algorithm;
    char why[120];
} ow_measured;

static ow_measured *ow_measured_entries[OW_MEASURED_PLACES];
static int64_t ow_measured_count;

/* Numbers that tell apart what may take different times. */
static void ow_measured_key(const ow_step *s, const ow_conv_trial *t, const ow_conv *c,
                            int64_t *key)
{
    const int64_t single[] = {
        (int64_t)(intptr_t)t->run,
        c->f64,
        c->flip,
        c->batch,
        c->groups,
        c->channels,
        c->outputs,
        c->of_output,
        c->of_channel,
        ow_threads(),
        s->finish != NULL,
        OW_PARAMS(s, conv)->allowed,
    };
    const int64_t *const triples[] = {c->image, c->kernel, c->out, c->stride, c->dilation, c->pad};
    int64_t n = 0;
    memset(key, 0, OW_MEASURED_KEY * sizeof(*key));
    for (size_t i = 0; i < sizeof(single) / sizeof(*single); i++)
        key[n++] = single[i];
    for (size_t i = 0; i < sizeof(triples) / sizeof(*triples); i++)
        for (int d = 0; d < 3; d++)
            key[n++] = triples[i][d];
    for (int i = 0; i < 5; i++)
        key[n++] = c->at[i];
    for (int i = 0; t->top_at && i < 5; i++)
        key[n++] = t->top_at[i];
}

/* The place of a key, which may be free. */
static int64_t ow_measured_place(const int64_t *key)
{
    uint64_t hash = 0;
    for (int i = 0; i < OW_MEASURED_KEY; i++)
        hash = (hash ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    int64_t place = (int64_t)(hash % OW_MEASURED_PLACES);
    for (;; place = (place + 1) % OW_MEASURED_PLACES) {
        const ow_measured *entry = __atomic_load_n(&ow_measured_entries[place], __ATOMIC_ACQUIRE);
        if (entry == NULL || memcmp(entry->key, key, sizeof(entry->key)) == 0)
            return place;
    }
}

/* Keep what was measured, unless another thread has just done so; returns what is kept. */
static const ow_measured *ow_measured_keep(const ow_measured *new)
{
    ow_measured *entry = malloc(sizeof(*entry));
    if (entry == NULL)
        return NULL;
    *entry = *new;
    for (;;) {
        ow_measured *expected = NULL;
        const int64_t place = ow_measured_place(new->key);
        if (__atomic_compare_exchange_n(&ow_measured_entries[place], &expected, entry, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_fetch_add(&ow_measured_count, 1, __ATOMIC_RELAXED);
            return entry;
        }
        if (memcmp(expected->key, new->key, sizeof(new->key)) == 0) {
            free(entry);
            return expected;
        }
    }
}

/* An algorithm is not tried if the model of costs finds it so many times as slow as the fastest. */
#define OW_MEASURED_SLOW 8

/* Leave out what is certainly slow. costs: what the model finds for each algorithm. */
static void ow_measured_choose(ow_conv_trial *t, const double *costs)
{
    int count = 0;
    double least = costs[0];
    for (int i = 1; i < t->count; i++)
        least = costs[i] < least ? costs[i] : least;
    for (int i = 0; i < t->count; i++)
        if (costs[i] <= OW_MEASURED_SLOW * least)
            t->able[count++] = t->able[i];
    t->count = count;
}

/* Each algorithm runs twice, and those that are nearly the fastest so often if that takes little
 * time. */
#define OW_MEASURED_ROUNDS 6
#define OW_MEASURED_NS 50000000

/* The time of this thread, if it works alone: that others take the processor does not count. */
static int64_t ow_measured_clock(void)
{
    struct timespec now;
    if (ow_threads() > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now))
        return ow_system_clock();
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Compute with each algorithm. */
static int ow_measured_try(ow_step *s, const ow_conv_trial *t, int model, ow_measured *new)
{
    int64_t ns[OW_CONV_ALGORITHMS], least = INT64_MAX;
    int best = model, second = model;
    /* the first run would pay for fresh memory */
    int rc = t->run(s, t, model);
    const int64_t began = ow_system_clock();
    for (int round = 0; round < OW_MEASURED_ROUNDS; round++)
        for (int i = 0; i < t->count && !rc; i++) {
            const int k = t->able[i];
            /* other programs may have taken the processor from one of the first two runs */
            if (round > 1 && (ns[k] > least * 2 || ow_system_clock() - began > OW_MEASURED_NS))
                continue;
            s->algorithm = ow_conv_names[k];
            const int64_t start = ow_measured_clock();
            rc = t->run(s, t, k);
            const int64_t took = ow_measured_clock() - start;
            /* one that had to leave the result to another is no candidate */
            const int64_t found = s->algorithm == ow_conv_names[k] ? took : INT64_MAX;
            ns[k] = round && ns[k] < found ? ns[k] : found;
            if (ns[k] < least) {
                least = ns[k];
                best = k;
            }
        }
    for (int i = 0; i < t->count && !rc; i++)
        if (t->able[i] != best && (second == best || ns[t->able[i]] < ns[second]))
            second = t->able[i];
    new->algorithm = best;
    const int other = best == model ? second : model;
    char times[40] = "";
    if (!rc && ns[other] != INT64_MAX && least > 0)
        snprintf(times, sizeof(times), "%.2f times as fast as ", (double)ns[other] / (double)least);
    if (!*times)
        snprintf(new->why, sizeof(new->why), "measured to be the fastest");
    else
        snprintf(new->why, sizeof(new->why), "measured: %s%s%s", times, ow_conv_names[other],
                 best == model ? "; the model of costs prefers it too"
                               : ", which the model of costs prefers");
    return rc;
}

/* Compute with the fastest algorithm of several. model: the one that the model of costs prefers;
 * the step has noted it. c: whose shape is looked up. */
static int ow_conv_run_fastest(ow_step *s, const ow_conv_trial *t, const ow_conv *c, int model)
{
    ow_measured new;
    if (t->count == 1)
        return t->run(s, t, model);
    ow_measured_key(s, t, c, new.key);
    const ow_measured *found =
        __atomic_load_n(&ow_measured_entries[ow_measured_place(new.key)], __ATOMIC_ACQUIRE);
    if (found == NULL && __atomic_load_n(&ow_measured_count, __ATOMIC_RELAXED) < OW_MEASURED_MOST) {
        const int rc = ow_measured_try(s, t, model, &new);
        if (rc)
            return rc;
        /* later calls need the memory of one algorithm only */
        ow_free(s->scratch);
        s->scratch = NULL;
        s->scratch_cap = 0;
        found = ow_measured_keep(&new);
    }
    s->algorithm = ow_conv_names[found ? found->algorithm : model];
    s->why = found ? found->why : "the model of costs prefers it: too many shapes were measured";
    return t->run(s, t, found ? found->algorithm : model);
}

#endif
