/* Reductions along any axes.
 *
 * A reducer is two loops for one operation, element type and accumulator type: `run` reduces along a
 * run of elements to one accumulator, `rows` adds a run of elements to as many accumulators. Which of
 * the two is used depends on whether the innermost dimension is reduced.
 */
#ifndef OW_REDUCE_H
#define OW_REDUCE_H

#include "runtime.h"

typedef struct ow_reducer {
    const char *name; /* operation_element_accumulator */
    int accsize;
    void (*start)(void *acc, int64_t n);
    void (*run)(void *acc, const char *p, int64_t stride, int64_t n);
    void (*rows)(void *acc, int64_t accstride, const char *p, int64_t stride, int64_t n);
    int needs_elements; /* 1 where an empty reduction has no value */
} ow_reducer;

#define OW_PAIRWISE 1024

/* Sums in blocks: eight accumulators in a block, blocks added pairwise, so that rounding errors
 * grow with the logarithm of the length and the loop can use vector instructions. */
#define OW_SUM(NAME, T, A)                                                                         \
    static A ow_block_##NAME(const char *p, int64_t st, int64_t n)                                 \
    {                                                                                              \
        A s[8] = {0};                                                                              \
        int64_t i = 0;                                                                             \
        if (st == sizeof(T)) {                                                                     \
            const T *x = (const T *)p;                                                             \
            for (; i + 8 <= n; i += 8)                                                             \
                for (int k = 0; k < 8; k++)                                                        \
                    s[k] += (A)x[i + k];                                                           \
        } else                                                                                     \
            for (; i + 8 <= n; i += 8)                                                             \
                for (int k = 0; k < 8; k++)                                                        \
                    s[k] += (A) * (const T *)(p + (i + k) * st);                                   \
        A total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));               \
        for (; i < n; i++)                                                                         \
            total += (A) * (const T *)(p + i * st);                                                \
        return total;                                                                              \
    }                                                                                              \
    static A ow_pairs_##NAME(const char *p, int64_t st, int64_t n)                                 \
    {                                                                                              \
        if (n <= OW_PAIRWISE)                                                                      \
            return ow_block_##NAME(p, st, n);                                                      \
        int64_t half = n / 2 / OW_PAIRWISE * OW_PAIRWISE;                                          \
        if (half == 0)                                                                             \
            half = OW_PAIRWISE;                                                                    \
        return ow_pairs_##NAME(p, st, half) + ow_pairs_##NAME(p + half * st, st, n - half);        \
    }                                                                                              \
    static void ow_run_##NAME(void *acc, const char *p, int64_t st, int64_t n)                     \
    {                                                                                              \
        *(A *)acc += ow_pairs_##NAME(p, st, n);                                                    \
    }                                                                                              \
    OW_ROWS(NAME, T, A, a[j] += (A)x)                                                              \
    OW_START(NAME, A, 0)

#define OW_START(NAME, A, VALUE)                                                                   \
    static void ow_start_##NAME(void *acc, int64_t n)                                              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((A *)acc)[i] = VALUE;                                                                 \
    }

/* STATEMENT takes element x into accumulator a[j] */
#define OW_ROWS(NAME, T, A, STATEMENT)                                                             \
    static void ow_rows_##NAME(void *acc, int64_t accstride, const char *p, int64_t st, int64_t n) \
    {                                                                                              \
        if (accstride == 1 && st == sizeof(T)) {                                                   \
            A *restrict a = acc;                                                                   \
            const T *q = (const T *)p;                                                             \
            for (int64_t j = 0; j < n; j++) {                                                      \
                T x = q[j];                                                                        \
                STATEMENT;                                                                         \
            }                                                                                      \
        } else                                                                                     \
            for (int64_t i = 0; i < n; i++) {                                                      \
                A *a = (A *)acc + i * accstride;                                                   \
                T x = *(const T *)(p + i * st);                                                    \
                const int j = 0;                                                                   \
                STATEMENT;                                                                         \
            }                                                                                      \
    }

#define OW_FOLD(NAME, T, A, VALUE, STATEMENT)                                                      \
    static void ow_run_##NAME(void *acc, const char *p, int64_t st, int64_t n)                     \
    {                                                                                              \
        A a[1] = {*(A *)acc};                                                                      \
        const int j = 0;                                                                           \
        if (st == sizeof(T))                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T x = ((const T *)p)[i];                                                           \
                STATEMENT;                                                                         \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T x = *(const T *)(p + i * st);                                                    \
                STATEMENT;                                                                         \
            }                                                                                      \
        *(A *)acc = a[0];                                                                          \
    }                                                                                              \
    OW_ROWS(NAME, T, A, STATEMENT)                                                                 \
    OW_START(NAME, A, VALUE)

#define OW_FLOAT_EXTREMA(S, T)                                                                     \
    OW_FOLD(maximum_##S##_##S, T, T, -(T)INFINITY, a[j] = (x > a[j] || x != x) ? x : a[j])         \
    OW_FOLD(minimum_##S##_##S, T, T, (T)INFINITY, a[j] = (x < a[j] || x != x) ? x : a[j])

#define OW_INT_EXTREMA(S, T, LOW, HIGH)                                                            \
    OW_FOLD(maximum_##S##_##S, T, T, LOW, a[j] = x > a[j] ? x : a[j])                              \
    OW_FOLD(minimum_##S##_##S, T, T, HIGH, a[j] = x < a[j] ? x : a[j])

OW_SUM(add_f32_f64, float, double)
OW_SUM(add_f64_f64, double, double)
OW_SUM(add_f32_f32, float, float)
OW_FOLD(mul_f32_f64, float, double, 1, a[j] *= x)
OW_FOLD(mul_f64_f64, double, double, 1, a[j] *= x)
OW_FOLD(mul_f32_f32, float, float, 1, a[j] *= x)
OW_FLOAT_EXTREMA(f32, float)
OW_FLOAT_EXTREMA(f64, double)

#define OW_INT_SUMS(S, T, AS, A)                                                                   \
    OW_FOLD(add_##S##_##AS, T, A, 0, a[j] += x)                                                    \
    OW_FOLD(mul_##S##_##AS, T, A, 1, a[j] *= x)
OW_INT_SUMS(b, uint8_t, i64, int64_t)
OW_INT_SUMS(i8, int8_t, i64, int64_t)
OW_INT_SUMS(i16, int16_t, i64, int64_t)
OW_INT_SUMS(i32, int32_t, i64, int64_t)
OW_INT_SUMS(i64, int64_t, i64, int64_t)
OW_INT_SUMS(u8, uint8_t, u64, uint64_t)
OW_INT_SUMS(u16, uint16_t, u64, uint64_t)
OW_INT_SUMS(u32, uint32_t, u64, uint64_t)
OW_INT_SUMS(u64, uint64_t, u64, uint64_t)
OW_INT_EXTREMA(b, uint8_t, 0, 1)
OW_INT_EXTREMA(i8, int8_t, INT8_MIN, INT8_MAX)
OW_INT_EXTREMA(i16, int16_t, INT16_MIN, INT16_MAX)
OW_INT_EXTREMA(i32, int32_t, INT32_MIN, INT32_MAX)
OW_INT_EXTREMA(i64, int64_t, INT64_MIN, INT64_MAX)
OW_INT_EXTREMA(u8, uint8_t, 0, UINT8_MAX)
OW_INT_EXTREMA(u16, uint16_t, 0, UINT16_MAX)
OW_INT_EXTREMA(u32, uint32_t, 0, UINT32_MAX)
OW_INT_EXTREMA(u64, uint64_t, 0, UINT64_MAX)
OW_FOLD(or__b_b, uint8_t, uint8_t, 0, a[j] |= x)
OW_FOLD(and__b_b, uint8_t, uint8_t, 1, a[j] &= x)

#define OW_REDUCER(NAME, A, NEEDS)                                                                 \
    {#NAME, sizeof(A), ow_start_##NAME, ow_run_##NAME, ow_rows_##NAME, NEEDS}
#define OW_EXTREMA_ROWS(S, T)                                                                      \
    OW_REDUCER(maximum_##S##_##S, T, 1), OW_REDUCER(minimum_##S##_##S, T, 1)
#define OW_SUM_ROWS(S, AS, A) OW_REDUCER(add_##S##_##AS, A, 0), OW_REDUCER(mul_##S##_##AS, A, 0)

static const ow_reducer ow_reducers[] = {
    OW_SUM_ROWS(f32, f64, double),
    OW_SUM_ROWS(f64, f64, double),
    OW_SUM_ROWS(f32, f32, float),
    OW_SUM_ROWS(b, i64, int64_t),
    OW_SUM_ROWS(i8, i64, int64_t),
    OW_SUM_ROWS(i16, i64, int64_t),
    OW_SUM_ROWS(i32, i64, int64_t),
    OW_SUM_ROWS(i64, i64, int64_t),
    OW_SUM_ROWS(u8, u64, uint64_t),
    OW_SUM_ROWS(u16, u64, uint64_t),
    OW_SUM_ROWS(u32, u64, uint64_t),
    OW_SUM_ROWS(u64, u64, uint64_t),
    OW_EXTREMA_ROWS(f32, float),
    OW_EXTREMA_ROWS(f64, double),
    OW_EXTREMA_ROWS(b, uint8_t),
    OW_EXTREMA_ROWS(i8, int8_t),
    OW_EXTREMA_ROWS(i16, int16_t),
    OW_EXTREMA_ROWS(i32, int32_t),
    OW_EXTREMA_ROWS(i64, int64_t),
    OW_EXTREMA_ROWS(u8, uint8_t),
    OW_EXTREMA_ROWS(u16, uint16_t),
    OW_EXTREMA_ROWS(u32, uint32_t),
    OW_EXTREMA_ROWS(u64, uint64_t),
    OW_REDUCER(or__b_b, uint8_t, 0),
    OW_REDUCER(and__b_b, uint8_t, 0),
};
static const int ow_reducer_count = sizeof(ow_reducers) / sizeof(ow_reducers[0]);

/* ints: index in ow_reducers, mask of the reduced dimensions, 1 if the result must be narrowed from
 * double to float. */
static int ow_reduce_prep(ow_step *s)
{
    const ow_reducer *r = &ow_reducers[s->ints[0]];
    ow_cell *x = s->in[0], *z = s->out[0];
    int k = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (!(s->ints[1] >> d & 1))
            z->shape[k++] = x->shape[d];
        else if (x->shape[d] == 0 && r->needs_elements)
            return OW_FAIL(s, OW_VALUE_ERROR, "Input of CAReduce{%.7s} has zero-size on axis %d",
                           r->name, d);
    }
    int rc = ow_ensure(s, z);
    if (!rc && s->ints[2] && !ow_scratch(s, ow_size(z) * r->accsize + OW_ALIGN))
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate accumulators");
    return rc;
}

static int ow_reduce_run(ow_step *s)
{
    const ow_reducer *r = &ow_reducers[s->ints[0]];
    ow_cell *x = s->in[0], *z = s->out[0];
    int64_t n_out = ow_size(z);
    char *acc = s->ints[2] ? s->scratch : z->data;
    r->start(acc, n_out);
    if (ow_size(x)) {
        /* the accumulators as an array of the input's shape that stands still along reduced axes */
        ow_cell a = *x;
        int64_t stride = r->accsize;
        a.data = acc;
        for (int d = x->ndim - 1; d >= 0; d--) {
            int reduced = s->ints[1] >> d & 1;
            a.strides[d] = reduced ? 0 : stride;
            stride *= reduced ? 1 : x->shape[d];
        }
        ow_walk w;
        ow_cell *cells[2] = {x, &a};
        ow_walk_start(&w, x->ndim, x->shape, 2, cells);
        int last = w.ndim - 1;
        int64_t at[OW_MAXDIM] = {0}, len = w.shape[last];
        int64_t st = w.stride[last][0], ast = w.stride[last][1];
        char *p = w.p[0], *q = w.p[1];
        for (;;) {
            if (ast == 0)
                r->run(q, p, st, len);
            else
                r->rows(q, ast / r->accsize, p, st, len);
            int d = last - 1;
            for (; d >= 0; d--) {
                if (++at[d] < w.shape[d]) {
                    p += w.stride[d][0];
                    q += w.stride[d][1];
                    break;
                }
                at[d] = 0;
                p -= w.stride[d][0] * (w.shape[d] - 1);
                q -= w.stride[d][1] * (w.shape[d] - 1);
            }
            if (d < 0)
                break;
        }
    }
    if (s->ints[2])
        for (int64_t i = 0; i < n_out; i++)
            ((float *)z->data)[i] = (float)((double *)acc)[i];
    return OW_OK;
}

/* --- the position of the largest element ------------------------------------------------------ */

#define OW_ARGMAX(S, T)                                                                            \
    static void ow_argmax_##S(const char *p, int64_t st, int64_t n, int64_t from, void *best,      \
                              int64_t *where)                                                      \
    {                                                                                              \
        T b = *(T *)best;                                                                          \
        int64_t at = *where;                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = *(const T *)(p + i * st);                                                        \
            if (at < 0 || (b == b && (x > b || x != x))) {                                         \
                b = x;                                                                             \
                at = from + i;                                                                     \
            }                                                                                      \
        }                                                                                          \
        *(T *)best = b;                                                                            \
        *where = at;                                                                               \
    }
OW_ARGMAX(b, uint8_t)
OW_ARGMAX(i8, int8_t)
OW_ARGMAX(i16, int16_t)
OW_ARGMAX(i32, int32_t)
OW_ARGMAX(i64, int64_t)
OW_ARGMAX(u8, uint8_t)
OW_ARGMAX(u16, uint16_t)
OW_ARGMAX(u32, uint32_t)
OW_ARGMAX(u64, uint64_t)
OW_ARGMAX(f32, float)
OW_ARGMAX(f64, double)

typedef struct ow_argmaxer {
    const char *name;
    void (*fn)(const char *, int64_t, int64_t, int64_t, void *, int64_t *);
} ow_argmaxer;

static const ow_argmaxer ow_argmaxers[] = {
    {"b", ow_argmax_b},     {"i8", ow_argmax_i8},   {"i16", ow_argmax_i16}, {"i32", ow_argmax_i32},
    {"i64", ow_argmax_i64}, {"u8", ow_argmax_u8},   {"u16", ow_argmax_u16}, {"u32", ow_argmax_u32},
    {"u64", ow_argmax_u64}, {"f32", ow_argmax_f32}, {"f64", ow_argmax_f64},
};
static const int ow_argmaxer_count = sizeof(ow_argmaxers) / sizeof(ow_argmaxers[0]);

/* ints: index in ow_argmaxers, mask of the reduced dimensions. Outputs: [maximum,] position */
static int ow_argmax_prep(ow_step *s)
{
    ow_cell *x = s->in[0];
    for (int o = 0; o < s->nout; o++) {
        ow_cell *z = s->out[o];
        int k = 0;
        for (int d = 0; d < x->ndim; d++) {
            if (!(s->ints[1] >> d & 1))
                z->shape[k++] = x->shape[d];
            else if (x->shape[d] == 0)
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "attempt to get argmax of an empty sequence (axis %d)", d);
        }
        int rc = ow_ensure(s, z);
        if (rc)
            return rc;
    }
    return OW_OK;
}

/* Visit the reduced dimensions of one result in order; returns how many elements were seen. */
static int64_t ow_argmax_one(ow_step *s, const char *p, int d, int64_t from, void *best,
                             int64_t *where)
{
    ow_cell *x = s->in[0];
    while (d < x->ndim && !(s->ints[1] >> d & 1))
        d++;
    if (d == x->ndim) {
        ow_argmaxers[s->ints[0]].fn(p, 0, 1, from, best, where);
        return 1;
    }
    int deeper = 0;
    for (int e = d + 1; e < x->ndim; e++)
        deeper |= s->ints[1] >> e & 1;
    if (!deeper) {
        ow_argmaxers[s->ints[0]].fn(p, x->strides[d], x->shape[d], from, best, where);
        return x->shape[d];
    }
    int64_t seen = 0;
    for (int64_t i = 0; i < x->shape[d]; i++)
        seen += ow_argmax_one(s, p + i * x->strides[d], d + 1, from + seen, best, where);
    return seen;
}

static int ow_argmax_run(ow_step *s)
{
    ow_cell *x = s->in[0], *position = s->out[s->nout - 1];
    int64_t n = ow_size(position), at[OW_MAXDIM] = {0};
    const char *p = x->data;
    for (int64_t i = 0; i < n; i++) {
        char best[8] = {0};
        int64_t where = -1;
        ow_argmax_one(s, p, 0, 0, best, &where);
        ((int64_t *)position->data)[i] = where;
        if (s->nout == 2)
            memcpy(s->out[0]->data + i * x->itemsize, best, (size_t)x->itemsize);
        for (int d = x->ndim - 1; d >= 0; d--) {
            if (s->ints[1] >> d & 1)
                continue;
            if (++at[d] < x->shape[d]) {
                p += x->strides[d];
                break;
            }
            at[d] = 0;
            p -= x->strides[d] * (x->shape[d] - 1);
        }
    }
    return OW_OK;
}

#endif
