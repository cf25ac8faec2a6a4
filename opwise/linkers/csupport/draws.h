/* Draws from numpy's legacy generator, numpy.random.RandomState: the same numbers, many at once.
 * The results z are contiguous. A draw ends early when it is time to look for signals; its caller
 * puts the state back then. */
#ifndef OW_DRAWS_H
#define OW_DRAWS_H

#include <math.h>

#include "runtime.h"
#include "simd.h"
#include "threads.h"

/* What the numbers of a generator depend on: the normal numbers come in pairs, of which the second
 * waits for the next draw. */
typedef struct ow_generator {
    ow_twister *twister;
    int *has_gauss;
    double *gauss;
} ow_generator;

typedef struct ow_generator_state {
    ow_twister twister;
    int has_gauss;
    double gauss;
} ow_generator_state;

static void ow_generator_save(const ow_generator *g, ow_generator_state *to)
{
    to->twister = *g->twister;
    to->has_gauss = *g->has_gauss;
    to->gauss = *g->gauss;
}

static void ow_generator_restore(const ow_generator *g, const ow_generator_state *from)
{
    *g->twister = from->twister;
    *g->has_gauss = from->has_gauss;
    *g->gauss = from->gauss;
}

/* A number of an integer type, of float or of double. */
static inline double ow_parameter(const ow_slot *c) { return ow_real_at(c, c->data); }

/* Numbers that are drawn before the next look for signals. */
#define OW_DRAW_BLOCK 65536

static void ow_draw_uniform(const ow_generator *g, const ow_slot *z, double low, double range)
{
    const int64_t n = ow_size(z);
    for (int64_t at = 0; at < n && !ow_should_stop(); at += OW_DRAW_BLOCK) {
        const int64_t m = n - at < OW_DRAW_BLOCK ? n - at : OW_DRAW_BLOCK;
        if (z->itemsize == sizeof(float))
            ow_kernels->twister_floats(g->twister, (float *)z->data + at, m, low, range);
        else
            ow_kernels->twister_doubles(g->twister, (double *)z->data + at, m, low, range);
    }
}

/* --- normal numbers ------------------------------------------------------------------------------
 * numpy draws points of a square until one is within the unit circle, and turns it into two
 * numbers. */

typedef struct ow_normals {
    double *drawn; /* points, then standard normal numbers */
    const ow_slot *z;
    int64_t at, n, chunks; /* where in z they go, and how many */
    double loc, scale;
} ow_normals;

static void ow_normals_put(const ow_normals *j, const double *drawn, int64_t at, int64_t n)
{
    if (j->z->itemsize == sizeof(float))
        for (int64_t i = 0; i < n; i++)
            ((float *)j->z->data)[at + i] = (float)(j->loc + j->scale * drawn[i]);
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)j->z->data)[at + i] = j->loc + j->scale * drawn[i];
}

static void ow_normals_chunk(void *arg, int64_t k)
{
    const ow_normals *j = arg;
    int64_t end, first = ow_chunk_range(k, j->chunks, j->n, 2 * OW_POLAR_TRIES, &end);
    for (; first < end; first += 2 * OW_POLAR_TRIES) {
        const int64_t n = end - first < 2 * OW_POLAR_TRIES ? end - first : 2 * OW_POLAR_TRIES;
        ow_kernels->polar_normals(j->drawn + first, n / 2);
        ow_normals_put(j, j->drawn + first, j->at + first, n);
    }
}

/* Find `n` points. There are never more tries than points are missing, so none is drawn in vain. */
static void ow_polar_fill(const ow_generator *g, double *to, int64_t n)
{
    while (n) {
        const int64_t found = ow_kernels->polar_points(g->twister, to, n);
        to += 2 * found;
        n -= found;
    }
}

/* drawn: memory for OW_DRAW_BLOCK doubles, or for all of z and two more */
static void ow_draw_normal(const ow_generator *g, const ow_slot *z, double loc, double scale,
                           double *drawn)
{
    const int64_t n = ow_size(z);
    ow_normals j = {drawn, z, 0, 0, 1, loc, scale};
    if (n && *g->has_gauss) {
        ow_normals_put(&j, g->gauss, 0, 1);
        *g->has_gauss = 0;
        *g->gauss = 0;
        j.at = 1;
    }
    while (n - j.at > 1 && !ow_should_stop()) {
        j.n = (n - j.at < OW_DRAW_BLOCK ? n - j.at : OW_DRAW_BLOCK) / 2 * 2;
        ow_polar_fill(g, drawn, j.n / 2);
        j.chunks = ow_chunks(3.0 * (double)j.n);
        ow_parallel(ow_normals_chunk, &j, j.chunks);
        j.at += j.n;
    }
    if (n - j.at == 1) {
        ow_polar_fill(g, drawn, 1);
        ow_kernels->polar_normals(drawn, 1);
        ow_normals_put(&j, drawn, j.at, 1);
        *g->has_gauss = 1;
        *g->gauss = drawn[1];
    }
}

/* --- binomial numbers ----------------------------------------------------------------------------
 * By inversion, for few trials; see numpy's legacy_random_binomial_inversion. */

/* numpy takes another method where trials times probability, or 1 - probability, is above 30. */
#define OW_MOST_TRIALS 60

/* Doubles that are drawn ahead; never more than numbers are still to be made of one or more
 * each. */
typedef struct ow_ahead {
    ow_twister *twister;
    int64_t missing;
    int at, n;
    double u[OW_POLAR_TRIES];
} ow_ahead;

static inline double ow_next_uniform(ow_ahead *a)
{
    if (a->at == a->n) {
        const int64_t m = a->missing < 1 ? 1 : a->missing;
        a->n = m < OW_POLAR_TRIES ? (int)m : OW_POLAR_TRIES;
        ow_kernels->twister_doubles(a->twister, a->u, a->n, 0.0, 1.0);
        a->at = 0;
    }
    return a->u[a->at++];
}

typedef struct ow_trials {
    int64_t n, most;
    double of, p, q, none; /* of: the probability that was given; none: that no trial succeeds */
} ow_trials;

static inline void ow_set_trials(ow_trials *b, double p)
{
    b->of = p;
    b->p = p <= 0.5 ? p : 1.0 - p;
    b->q = 1.0 - b->p;
    b->none = exp((double)b->n * log(b->q));
    const double mean = (double)b->n * b->p, most = mean + 10.0 * sqrt(mean * b->q + 1);
    b->most = (double)b->n < most ? b->n : (int64_t)most;
}

static inline int64_t ow_successes(const ow_trials *b, ow_ahead *a)
{
    int64_t x = 0;
    double chance = b->none, u = ow_next_uniform(a);
    while (u > chance) {
        if (++x > b->most) {
            x = 0;
            chance = b->none;
            u = ow_next_uniform(a);
        } else {
            u -= chance;
            chance = ((double)(b->n - x + 1) * b->p * chance) / ((double)x * b->q);
        }
    }
    return b->of <= 0.5 ? x : b->n - x;
}

static inline double ow_probability(const ow_slot *p, const char *at)
{
    return p->itemsize == sizeof(float) ? *(const float *)at : *(const double *)at;
}

/* Whether all probabilities are between 0 and 1. */
static int ow_are_probabilities(const ow_slot *p)
{
    int64_t index[OW_MAXDIM] = {0};
    for (int64_t k = ow_size(p); k > 0; k--) {
        const char *at = p->data;
        for (int d = 0; d < p->ndim; d++)
            at += index[d] * p->strides[d];
        const double value = ow_probability(p, at);
        if (!(value >= 0.0 && value <= 1.0))
            return 0;
        for (int d = p->ndim - 1; d >= 0 && ++index[d] == p->shape[d]; d--)
            index[d] = 0;
    }
    return 1;
}

/* p: the probability of each element of z, to which it broadcasts; trials: at most
 * OW_MOST_TRIALS */
static void ow_draw_binomial(const ow_generator *g, const ow_slot *z, int64_t trials,
                             const ow_slot *p)
{
    const int64_t n = ow_size(z);
    int64_t index[OW_MAXDIM] = {0}, step[OW_MAXDIM] = {0};
    for (int d = 0; d < p->ndim; d++)
        step[z->ndim - p->ndim + d] = p->shape[d] == 1 ? 0 : p->strides[d];
    ow_ahead ahead;
    ahead.twister = g->twister;
    ahead.at = ahead.n = 0;
    ow_trials b;
    b.n = trials;
    b.of = -1;
    const char *at = p->data;
    for (int64_t k = 0; k < n; k++) {
        ahead.missing = n - k;
        const double value = ow_probability(p, at);
        if (value != b.of)
            ow_set_trials(&b, value);
        const int64_t drawn = ow_successes(&b, &ahead);
        ow_put_integer(z, z->data + k * z->itemsize, drawn);
        for (int d = z->ndim - 1; d >= 0; d--) {
            at += step[d];
            if (++index[d] < z->shape[d])
                break;
            at -= step[d] * z->shape[d];
            index[d] = 0;
        }
        if ((k & 0xFFFF) == 0xFFFF && ow_should_stop())
            return;
    }
}

#endif
