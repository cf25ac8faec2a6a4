/* Steps that draw random numbers. */
#ifndef OW_RANDOM_H
#define OW_RANDOM_H

#include "blas.h"
#include "simd.h"
#include "step_params.h"

/* --- uniform numbers of MRG31k3p -----------------------------------------------------------------
 * in: states, size; out: states after the draw, numbers. */

/* The largest number of numbers, as in Theano. */
#define OW_MRG_MOST 2147483647
/* The bytes of a state. */
#define OW_MRG_BYTES (6 * (int64_t)sizeof(int32_t))
/* Chunks begin with streams whose numbers begin a cache line. */
#define OW_MRG_UNIT 64

static int ow_mrg_prep_with(ow_step *s, const int64_t *shape)
{
    const ow_slot *state = s->in[0];
    ow_slot *z = s->out[1];
    if (state->shape[1] != 6)
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "rstate must be a matrix of int32 with 6 columns, one state in each row, not "
            "an array of dtype int32 and shape (%lld, %lld)",
            (long long)state->shape[0], (long long)state->shape[1]);
    ow_set_shape(z, z->ndim, shape);
    if (ow_size(z) && !state->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "rstate has no rows: there is no stream to draw from");
    int rc = ow_ensure(s, z);
    if (rc)
        return rc;
    if (!s->advances || ow_size(z) >= state->shape[0])
        return ow_accumulator(s, OW_PARAMS(s, mrg_uniform)->overwrite);
    /* few numbers: only the states that draw them change, and are kept to be put back */
    if (!ow_scratch(s, ow_mul_size(ow_size(z), OW_MRG_BYTES) + 1))
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate a copy of the states");
    ow_alias(s->out[0], state);
    return OW_OK;
}

static int ow_mrg_prep(ow_step *s) { return ow_mrg_prep_with(s, ow_mrg_uniform_shape(s->params)); }

static int ow_mrg_sized_prep(ow_step *s)
{
    const ow_slot *size = s->in[1];
    const int ndim = s->out[1]->ndim;
    int64_t shape[OW_MAXDIM], total = 1;
    if (size->shape[0] != ndim)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "size must have length %d (not %lld), one entry for each dimension", ndim,
                       (long long)size->shape[0]);
    for (int d = 0; d < ndim; d++) {
        ow_slot item = *size;
        item.data = size->data + d * size->strides[0];
        shape[d] = ow_int(&item);
        if (shape[d] < 0)
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "negative dimensions are not allowed in a size: entry %d is %lld", d,
                           (long long)shape[d]);
        total = ow_mul_size(total, shape[d]);
    }
    if (total > OW_MRG_MOST)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "rng_mrg does not support more then (2**31 -1) samples: size has %lld",
                       (long long)total);
    return ow_mrg_prep_with(s, shape);
}

typedef struct ow_mrg_share {
    ow_mrg_job job;
    ow_mrg_fn fn;
    int64_t chunks;
} ow_mrg_share;

static void ow_mrg_chunk(void *arg, int64_t k)
{
    const ow_mrg_share *j = arg;
    const int64_t drawing = j->job.streams < j->job.total ? j->job.streams : j->job.total;
    int64_t end, first = ow_chunk_range(k, j->chunks, drawing, OW_MRG_UNIT, &end);
    if (first < end)
        j->fn(&j->job, first, end);
}

/* Copy the first `n` states of an array to `kept`, or back from there. */
static void ow_mrg_keep(const ow_slot *states, char *kept, int64_t n, int back)
{
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < 6; c++, kept += sizeof(int32_t)) {
            char *at = states->data + k * states->strides[0] + c * states->strides[1];
            memcpy(back ? at : kept, back ? kept : at, sizeof(int32_t));
        }
}

static int ow_mrg_undo(ow_step *s)
{
    ow_mrg_keep(s->out[0], s->scratch, ow_size(s->out[1]), 1);
    return OW_OK;
}

static int ow_mrg_run(ow_step *s)
{
    const ow_slot *state = s->out[0], *z = s->out[1];
    const int64_t total = ow_size(z);
    const double ns = (double)total * (z->itemsize == sizeof(float) ? 0.6 : 1.0);
    if (!total) {
        if (state->data != s->in[0]->data)
            ow_copy(s->out[0], s->in[0]);
        return OW_OK;
    }
    const ow_slot *before = s->in[0];
    if (total < state->shape[0] && before->data != state->data) {
        ow_copy(s->out[0], s->in[0]);
        before = state;
    } else if (total < state->shape[0] && s->advances) {
        ow_mrg_keep(state, s->scratch, total, 0);
        s->advanced = 1;
    }
    ow_mrg_share share = {
        {before, state, state->shape[0], total, z->data},
        ow_kernels->mrg[z->itemsize != sizeof(float)],
        ow_chunks(ns),
    };
    ow_parallel(ow_mrg_chunk, &share, share.chunks);
    return OW_OK;
}

/* --- outcomes from uniform numbers ---------------------------------------------------------------
 * in: probabilities, uniform numbers, how many draws n there are from each row of probabilities. */

/* Add `more` to a number of an integer type, of float or of double. */
static inline void ow_add_to(char *p, const ow_slot *of, int64_t more)
{
    if (of->typenum == OW_DOUBLE_TYPENUM)
        *(double *)p += (double)more;
    else if (of->typenum == OW_FLOAT_TYPENUM)
        *(float *)p += (float)more;
    else if (of->itemsize == 1)
        *(int8_t *)p += (int8_t)more;
    else if (of->itemsize == 2)
        *(int16_t *)p += (int16_t)more;
    else if (of->itemsize == 4)
        *(int32_t *)p += (int32_t)more;
    else
        *(int64_t *)p += more;
}

typedef struct ow_outcomes {
    ow_step *s;
    int64_t rows, columns, n, chunks;
    int replace;
} ow_outcomes;

/* The uniform number of draw `c` from a row. */
static double ow_uniform_of(const ow_outcomes *j, int64_t row, int64_t c)
{
    const ow_slot *unis = j->s->in[1];
    const char *p = unis->data + (c * j->rows + row) * unis->strides[0];
    return unis->itemsize == sizeof(float) ? *(const float *)p : *(const double *)p;
}

#define OW_OUTCOMES(T, S)                                                                          \
    /* The first outcome with a cumulated probability above u, or n; *before: that of the \
     * others */        \
    static int64_t ow_outcome_##S(const char *p, int64_t st, int64_t n, double u, double *before)  \
    {                                                                                              \
        double total = *before = 0;                                                                \
        for (int64_t m = 0; m < n; m++) {                                                          \
            total += *(const T *)(p + m * st);                                                     \
            if (total > u) {                                                                       \
                *before = total - *(const T *)(p + m * st);                                        \
                return m;                                                                          \
            }                                                                                      \
        }                                                                                          \
        return n;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static void ow_multinomial_##S(void *arg, int64_t k)                                           \
    {                                                                                              \
        const ow_outcomes *j = arg;                                                                \
        const ow_slot *x = j->s->in[0], *z = j->s->out[0];                                         \
        const int64_t wide = j->columns * z->itemsize;                                             \
        int64_t end, row = ow_chunk_range(k, j->chunks, j->rows, 1, &end);                         \
        double before;                                                                             \
        for (; row < end; row++) {                                                                 \
            const char *p = x->data + row * x->strides[0];                                         \
            char *to = z->data + row * wide;                                                       \
            memset(to, 0, (size_t)wide);                                                           \
            for (int64_t c = 0; c < j->n; c++) {                                                   \
                int64_t m = ow_outcome_##S(p, x->strides[1], j->columns, ow_uniform_of(j, row, c), \
                                           &before);                                               \
                if (m < j->columns)                                                                \
                    ow_add_to(to + m * z->itemsize, z, 1);                                         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void ow_choice_##S(void *arg, int64_t k)                                                \
    {                                                                                              \
        const ow_outcomes *j = arg;                                                                \
        const ow_slot *x = j->s->in[0], *z = j->s->out[0];                                         \
        int64_t end, row = ow_chunk_range(k, j->chunks, j->rows, 1, &end);                         \
        double before;                                                                             \
        for (; row < end; row++) {                                                                 \
            T *left = (T *)j->s->scratch + row * j->columns;                                       \
            char *to = z->data + row * j->n * z->itemsize;                                         \
            memset(to, 0, (size_t)(j->n * z->itemsize));                                           \
            for (int64_t m = 0; m < j->columns; m++)                                               \
                left[m] = *(T *)(x->data + row * x->strides[0] + m * x->strides[1]);               \
            for (int64_t c = 0; c < j->n; c++, to += z->itemsize) {                                \
                int64_t m = ow_outcome_##S((char *)left, sizeof(T), j->columns,                    \
                                           ow_uniform_of(j, row, c), &before);                     \
                ow_add_to(to, z, m < j->columns ? m : -1);                                         \
                if (m == j->columns || j->replace)                                                 \
                    continue;                                                                      \
                T total = (T)before;                                                               \
                left[m] = 0;                                                                       \
                for (int64_t i = m; i < j->columns; i++)                                           \
                    total += left[i];                                                              \
                for (int64_t i = 0; i < j->columns; i++)                                           \
                    left[i] /= total;                                                              \
            }                                                                                      \
        }                                                                                          \
    }
OW_OUTCOMES(float, f32)
OW_OUTCOMES(double, f64)

static int ow_outcomes_run(ow_step *s, ow_task f32, ow_task f64, int replace)
{
    const ow_slot *x = s->in[0];
    ow_outcomes job = {s, x->shape[0], x->shape[1], ow_int(s->in[2]), 1, replace};
    if (s->in[1]->shape[0] != ow_mul_size(job.rows, job.n))
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "unis.shape[0] != pvals.shape[0] * n: there are %lld numbers for %lld draws "
                       "from each of %lld distributions",
                       (long long)s->in[1]->shape[0], (long long)job.n, (long long)job.rows);
    job.chunks = ow_chunks((double)s->in[1]->shape[0] * (double)job.columns);
    ow_parallel(x->itemsize == sizeof(float) ? f32 : f64, &job, job.chunks);
    return OW_OK;
}

static int ow_multinomial_prep(ow_step *s)
{
    ow_set_shape(s->out[0], 2, s->in[0]->shape);
    return ow_ensure(s, s->out[0]);
}

static int ow_multinomial_run(ow_step *s)
{
    return ow_outcomes_run(s, ow_multinomial_f32, ow_multinomial_f64, 0);
}

static int ow_choice_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    ow_slot *z = s->out[0];
    const int64_t n = ow_int(s->in[2]);
    if (n > x->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Cannot sample without replacement n samples bigger than the size of the "
                       "distribution: n is %lld, but there are %lld outcomes",
                       (long long)n, (long long)x->shape[1]);
    if (n < 0)
        return OW_FAIL(s, OW_VALUE_ERROR, "n is negative: %lld", (long long)n);
    z->shape[0] = x->shape[0];
    z->shape[1] = n;
    if (!ow_scratch(s, ow_bytes(2, x->shape, x->itemsize)))
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate a copy of the probabilities");
    return ow_ensure(s, z);
}

static int ow_choice_run(ow_step *s)
{
    return ow_outcomes_run(s, ow_choice_f32, ow_choice_f64, (int)OW_PARAMS(s, outcome)->replace);
}

#endif
