/* Steps that go along an axis: cumulative sums and products, parts, repetitions. */
#ifndef OW_CUMULATE_H
#define OW_CUMULATE_H

#include "index.h"
#include "step_params.h"

/* --- cumulative sums and products ------------------------------------------------------------- */

/* How the elements of a run are cumulated: each with the `len` - 1 behind it along the axis. */
typedef struct ow_cumulation {
    int64_t len, st[2];
} ow_cumulation;

/* About how long it takes to cumulate an element. */
#define OW_CUMULATE_NS 0.7
/* Runs of a result whose rows stay in the first cache while the next row is added to them. */
#define OW_CUMULATED 512

#define OW_TIMES(a, b) ((a) * (b))
#define OW_TIMES_F16(a, b) ow_to_f16(ow_round_f16(ow_from_f16(a) * ow_from_f16(b)))
#define OW_CUMULATE(NAME, T, OP)                                                                   \
    static void ow_##NAME(const void *ctx, char **p, const int64_t *st, int64_t n)                 \
    {                                                                                              \
        const ow_cumulation *c = ctx;                                                              \
        /* copies: elements of int64 might be the lengths that `c` and `st` point to */            \
        const int64_t len = c->len, out = c->st[0], in = c->st[1], to_run = st[0],                 \
                      from_run = st[1];                                                            \
        int64_t i = 0;                                                                             \
        const int runs = n == 1 || llabs(in) < llabs(from_run);                                    \
        /* additions of several runs do not wait for each other */                                 \
        for (; runs && i + 4 <= n; i += 4) {                                                       \
            const char *from = p[1] + i * from_run;                                                \
            char *to = p[0] + i * to_run;                                                          \
            T so_far[4];                                                                           \
            for (int m = 0; m < 4; m++)                                                            \
                *(T *)(to + m * to_run) = so_far[m] = *(const T *)(from + m * from_run);           \
            for (int64_t k = 1; k < len; k++)                                                      \
                for (int m = 0; m < 4; m++) {                                                      \
                    so_far[m] = OP(so_far[m], *(const T *)(from + m * from_run + k * in));         \
                    *(T *)(to + m * to_run + k * out) = so_far[m];                                 \
                }                                                                                  \
        }                                                                                          \
        for (; runs && i < n; i++) {                                                               \
            const char *from = p[1] + i * from_run;                                                \
            char *to = p[0] + i * to_run;                                                          \
            T so_far = *(const T *)from;                                                           \
            *(T *)to = so_far;                                                                     \
            for (int64_t k = 1; k < len; k++) {                                                    \
                so_far = OP(so_far, *(const T *)(from + k * in));                                  \
                *(T *)(to + k * out) = so_far;                                                     \
            }                                                                                      \
        }                                                                                          \
        if (runs)                                                                                  \
            return;                                                                                \
        for (int64_t first = 0; first < n; first += OW_CUMULATED) {                                \
            const int64_t end = n - first < OW_CUMULATED ? n : first + OW_CUMULATED;               \
            for (i = first; i < end; i++)                                                          \
                *(T *)(p[0] + i * to_run) = *(const T *)(p[1] + i * from_run);                     \
            for (int64_t k = 1; k < len; k++) {                                                    \
                char *to = p[0] + k * out;                                                         \
                const char *from = p[1] + k * in;                                                  \
                if (to_run == sizeof(T) && from_run == sizeof(T))                                  \
                    for (i = first; i < end; i++)                                                  \
                        ((T *)to)[i] = OP(((T *)(to - out))[i], ((const T *)from)[i]);             \
                else                                                                               \
                    for (i = first; i < end; i++)                                                  \
                        *(T *)(to + i * to_run) =                                                  \
                            OP(*(T *)(to - out + i * to_run), *(const T *)(from + i * from_run));  \
            }                                                                                      \
        }                                                                                          \
    }
#define OW_CUMULATES(S, T) OW_CUMULATE(cumsum_##S, T, OW_PLUS) OW_CUMULATE(cumprod_##S, T, OW_TIMES)
OW_CUMULATES(i8, int8_t)
OW_CUMULATES(i16, int16_t)
OW_CUMULATES(i32, int32_t)
OW_CUMULATES(i64, int64_t)
OW_CUMULATES(f32, float)
OW_CUMULATES(f64, double)
OW_CUMULATE(cumsum_f16, ow_f16, OW_PLUS_F16)
OW_CUMULATE(cumprod_f16, ow_f16, OW_TIMES_F16)
OW_CUMULATE(cumsum_c64, ow_c64, ow_add_c64)
OW_CUMULATE(cumprod_c64, ow_c64, ow_mul_c64)
OW_CUMULATE(cumsum_c128, ow_c128, ow_add_c128)
OW_CUMULATE(cumprod_c128, ow_c128, ow_mul_c128)

/* in the order of ow_adders; integers wrap, so those with and without a sign have the same bits */
#define OW_CUMULATORS(S) {ow_cumsum_##S, ow_cumprod_##S}
static const ow_loop ow_cumulators[][2] = {
    OW_CUMULATORS(i8),   OW_CUMULATORS(i16), OW_CUMULATORS(i32), OW_CUMULATORS(i64),
    OW_CUMULATORS(i8),   OW_CUMULATORS(i16), OW_CUMULATORS(i32), OW_CUMULATORS(i64),
    OW_CUMULATORS(f32),  OW_CUMULATORS(f64), OW_CUMULATORS(f16), OW_CUMULATORS(c64),
    OW_CUMULATORS(c128),
};

static int ow_cumulate_prep(ow_step *s)
{
    ow_set_shape(s->out[0], s->in[0]->ndim, s->in[0]->shape);
    return ow_ensure_like(s, s->out[0], s->in, 1);
}

static int ow_cumulate_run(ow_step *s)
{
    const ow_cumulate_params *p = s->params;
    ow_slot *z = s->out[0], heads[2] = {*z, *s->in[0]}, *slots[2] = {&heads[0], &heads[1]};
    const int axis = (int)p->axis;
    const ow_cumulation c = {z->shape[axis], {z->strides[axis], s->in[0]->strides[axis]}};
    ow_walk w;
    if (c.len == 0)
        return OW_OK;
    heads[0].shape[axis] = heads[1].shape[axis] = 1;
    const int64_t runs = ow_walk_start(&w, z->ndim, heads[0].shape, 2, slots, 0);
    if (runs)
        ow_walk_share(&w, ow_cumulators[p->adder][p->factors], &c,
                      OW_CUMULATE_NS * (double)runs * (double)c.len, INT64_MAX / 2);
    return OW_OK;
}

/* --- parts along an axis ---------------------------------------------------------------------- */

/* in: x, axis (not read), lengths of the parts; out: copies of the parts. */
static int ow_split_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    const int axis = (int)OW_PARAMS(s, axis)->axis;
    int64_t total = 0;
    if (s->in[2]->shape[0] != s->nout)
        return OW_FAIL(s, OW_VALUE_ERROR, "Split{%d} needs %d lengths, got %lld", s->nout, s->nout,
                       (long long)s->in[2]->shape[0]);
    for (int k = 0; k < s->nout; k++) {
        ow_slot item = *s->in[2], *part = s->out[k];
        item.data += k * item.strides[0];
        const int64_t length = ow_int(&item);
        if (length < 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "a part cannot have a negative length: %lld",
                           (long long)length);
        total = ow_add_size(total, length);
        ow_set_shape(part, x->ndim, x->shape);
        part->shape[axis] = length;
    }
    if (total != x->shape[axis])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "the parts have %lld elements along axis %d, the whole %lld",
                       (long long)total, axis, (long long)x->shape[axis]);
    int rc = OW_OK;
    for (int k = 0; k < s->nout && !rc; k++)
        rc = ow_ensure_like(s, s->out[k], s->in, 1);
    return rc;
}

static int ow_split_run(ow_step *s)
{
    const int axis = (int)OW_PARAMS(s, axis)->axis;
    ow_slot from = *s->in[0];
    for (int k = 0; k < s->nout; k++) {
        from.shape[axis] = s->out[k]->shape[axis];
        ow_copy(s->out[k], &from);
        from.data = ow_at(from.data, from.shape[axis], from.strides[axis]);
    }
    return OW_OK;
}

/* --- repetitions ------------------------------------------------------------------------------ */

/* How often element `k` is repeated. */
static inline int64_t ow_repeats(const ow_slot *repeats, int64_t k)
{
    const int64_t step = repeats->ndim && repeats->shape[0] > 1 ? repeats->strides[0] : 0;
    if (repeats->itemsize == sizeof(int64_t))
        return *(const int64_t *)(repeats->data + k * step);
    ow_slot item = *repeats;
    item.data += k * step;
    return ow_int(&item);
}

/* in: x, how often its elements along an axis are repeated: a number, or a vector with one for each
 * of them or one for all. */
static int ow_repeat_prep(ow_step *s)
{
    const ow_slot *x = s->in[0], *repeats = s->in[1];
    const int axis = (int)OW_PARAMS(s, axis)->axis;
    const int64_t n = x->shape[axis], given = repeats->ndim ? repeats->shape[0] : 1;
    int64_t total = 0;
    if (given != 1 && given != n)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "operands could not be broadcast together with shape (%lld,) (%lld,)",
                       (long long)n, (long long)given);
    for (int64_t k = 0; k < given; k++) {
        const int64_t times = ow_repeats(repeats, k);
        if (times < 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "repeats may not contain negative values.");
        total = ow_add_size(total, times);
    }
    ow_set_shape(s->out[0], x->ndim, x->shape);
    s->out[0]->shape[axis] = given == 1 ? ow_mul_size(total, n) : total;
    return ow_ensure(s, s->out[0]);
}

/* Every element the same number of times: as a dimension of its own, along which x is broadcast. */
static void ow_repeat_evenly(ow_slot *z, ow_slot *x, int axis, int64_t times)
{
    ow_slot to = *z, from = *x;
    to.shape[axis] = x->shape[axis];
    to.strides[axis] = times * z->strides[axis];
    for (int64_t k = 0; k < times; k++) {
        ow_copy(&to, &from);
        to.data += z->strides[axis];
    }
}

static int ow_repeat_run(ow_step *s)
{
    ow_slot *x = s->in[0], *z = s->out[0], to = *z, from = *x;
    const int axis = (int)OW_PARAMS(s, axis)->axis;
    const int64_t n = x->shape[axis];
    if (ow_size(z) == 0)
        return OW_OK;
    if (s->in[1]->ndim == 0 || s->in[1]->shape[0] == 1) {
        ow_repeat_evenly(z, x, axis, ow_repeats(s->in[1], 0));
        return OW_OK;
    }
    from.shape[axis] = 1;
    const double ns = OW_ROW_NS + OW_COPY_NS * (double)ow_size(&from);
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t k = 0; k < n; k++) {
        const int64_t times = ow_repeats(s->in[1], k);
        to.shape[axis] = times;
        if (ow_stops(&left, ns * (double)(times + 1)))
            return OW_OK;
        if (x->ndim == 1) {
            char *p[2] = {to.data, from.data};
            const int64_t st[2] = {z->itemsize, 0};
            ow_copy_run(p, st, times, z->itemsize);
        } else
            ow_copy(&to, &from);
        to.data += times * z->strides[axis];
        from.data = ow_at(from.data, 1, x->strides[axis]);
    }
    return OW_OK;
}

/* --- conditions ------------------------------------------------------------------------------- */

/* in: a value, conditions: numbers of any type; out: the value, if no condition is 0 */
static int ow_assert_run(ow_step *s)
{
    for (int i = 1; i < s->nin; i++) {
        const ow_slot *c = s->in[i];
        int holds = 0;
        if (c->typenum == OW_FLOAT_TYPENUM)
            holds = *(const float *)c->data != 0;
        else if (c->typenum == OW_DOUBLE_TYPENUM)
            holds = *(const double *)c->data != 0;
        else
            for (int b = 0; b < c->itemsize; b++)
                holds |= c->data[b];
        if (!holds)
            return OW_ASSERTION_ERROR;
    }
    return OW_OK;
}

#endif
