/* Steps that select by value: positions of nonzero elements, choices, places in sorted vectors; and
 * diagonals that are set. */
#ifndef OW_SELECTION_H
#define OW_SELECTION_H

#include "index.h"
#include "step_params.h"

/* --- positions of elements that are not 0 ----------------------------------------------------- */

/* How many of n elements, `st` bytes apart, are not 0: in parts that narrow vectors hold. */
#define OW_NONZERO(x) ((x) != 0)
#define OW_NONZERO_F16(x) (((x) & 0x7fff) != 0)
#define OW_COUNTED(NAME, T, TEST)                                                                  \
    static int64_t ow_counted_##NAME(const char *x, int64_t st, int64_t n)                         \
    {                                                                                              \
        int64_t count = 0;                                                                         \
        for (int64_t first = 0; first < n; first += INT16_MAX) {                                   \
            const int some = (int)(n - first < INT16_MAX ? n - first : INT16_MAX);                 \
            int16_t part = 0;                                                                      \
            if (st == sizeof(T))                                                                   \
                for (int i = 0; i < some; i++)                                                     \
                    part = (int16_t)(part + TEST(((const T *)x)[first + i]));                      \
            else                                                                                   \
                for (int i = 0; i < some; i++)                                                     \
                    part = (int16_t)(part + TEST(*(const T *)(x + (first + i) * st)));             \
            count += part;                                                                         \
        }                                                                                          \
        return count;                                                                              \
    }                                                                                              \
    /* write their positions, counted from `from`, to `to`, which has room for n */                \
    static int64_t ow_found_##NAME(const char *x, int64_t st, int64_t n, int64_t from,             \
                                   int64_t *to)                                                    \
    {                                                                                              \
        int64_t count = 0;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            to[count] = from + i;                                                                  \
            count += TEST(*(const T *)(x + i * st));                                               \
        }                                                                                          \
        return count;                                                                              \
    }
OW_COUNTED(1, int8_t, OW_NONZERO)
OW_COUNTED(2, int16_t, OW_NONZERO)
OW_COUNTED(4, int32_t, OW_NONZERO)
OW_COUNTED(8, int64_t, OW_NONZERO)
OW_COUNTED(f32, float, OW_NONZERO)
OW_COUNTED(f64, double, OW_NONZERO)
OW_COUNTED(f16, ow_f16, OW_NONZERO_F16)
OW_COUNTED(c64, ow_c64, ow_true_c64)
OW_COUNTED(c128, ow_c128, ow_true_c128)

typedef int64_t (*ow_counted_fn)(const char *x, int64_t st, int64_t n);
typedef int64_t (*ow_found_fn)(const char *x, int64_t st, int64_t n, int64_t from, int64_t *to);

static ow_counted_fn ow_counted(const ow_slot *x)
{
    if (x->typenum == OW_FLOAT_TYPENUM || x->typenum == OW_DOUBLE_TYPENUM)
        return x->itemsize == 4 ? ow_counted_f32 : ow_counted_f64;
    if (x->typenum == OW_HALF_TYPENUM)
        return ow_counted_f16;
    if (x->typenum == OW_COMPLEX64_TYPENUM || x->typenum == OW_COMPLEX128_TYPENUM)
        return x->itemsize == 8 ? ow_counted_c64 : ow_counted_c128;
    return x->itemsize == 1   ? ow_counted_1
           : x->itemsize == 2 ? ow_counted_2
           : x->itemsize == 4 ? ow_counted_4
                              : ow_counted_8;
}

static ow_found_fn ow_found(const ow_slot *x)
{
    if (x->typenum == OW_FLOAT_TYPENUM || x->typenum == OW_DOUBLE_TYPENUM)
        return x->itemsize == 4 ? ow_found_f32 : ow_found_f64;
    if (x->typenum == OW_HALF_TYPENUM)
        return ow_found_f16;
    if (x->typenum == OW_COMPLEX64_TYPENUM || x->typenum == OW_COMPLEX128_TYPENUM)
        return x->itemsize == 8 ? ow_found_c64 : ow_found_c128;
    return x->itemsize == 1   ? ow_found_1
           : x->itemsize == 2 ? ow_found_2
           : x->itemsize == 4 ? ow_found_4
                              : ow_found_8;
}

/* Elements whose positions are found at once. */
#define OW_FOUND_BLOCK 512

/* The next row along the last dimension: advance the indices `at` of the others; p moves along. */
static const char *ow_next_row(const ow_slot *x, int64_t *at, const char *p)
{
    for (int d = x->ndim - 2; d >= 0; d--) {
        p += x->strides[d];
        if (++at[d] < x->shape[d])
            break;
        p -= x->strides[d] * x->shape[d];
        at[d] = 0;
    }
    return p;
}

/* in: x; out: int64, a row for each dimension, a column for each element that is not 0 */
static int ow_nonzero_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    ow_slot *z = s->out[0];
    const int64_t len = x->shape[x->ndim - 1], rows = len ? ow_size(x) / len : 0;
    const ow_counted_fn counted = ow_counted(x);
    int64_t at[OW_MAXDIM] = {0}, count = 0;
    const char *p = x->data;
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t row = 0; row < rows && !ow_stops(&left, (double)len); row++) {
        count += counted(p, x->strides[x->ndim - 1], len);
        p = ow_next_row(x, at, p);
    }
    z->shape[0] = x->ndim;
    z->shape[1] = count;
    return ow_ensure(s, z);
}

static int ow_nonzero_run(ow_step *s)
{
    const ow_slot *x = s->in[0], *z = s->out[0];
    const int last = x->ndim - 1;
    const int64_t len = x->shape[last], rows = len ? ow_size(x) / len : 0, st = x->strides[last];
    const int64_t count = z->shape[1];
    const ow_found_fn found = ow_found(x);
    int64_t at[OW_MAXDIM] = {0}, done = 0, *to = (int64_t *)z->data, block[OW_FOUND_BLOCK];
    const char *p = x->data;
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t first = 0; first < len; first += OW_FOUND_BLOCK) {
            const int64_t n = len - first < OW_FOUND_BLOCK ? len - first : OW_FOUND_BLOCK;
            if (ow_stops(&left, (double)n))
                return OW_OK;
            int64_t *these = to + last * count + done;
            const int direct = done + n <= count;
            const int64_t some = found(p + first * st, st, n, first, direct ? these : block);
            /* interrupted counting leaves too little room */
            if (some > count - done)
                return OW_OK;
            if (!direct)
                memcpy(these, block, sizeof(int64_t) * (size_t)some);
            for (int d = 0; d < last; d++)
                for (int64_t i = 0; i < some; i++)
                    to[d * count + done + i] = at[d];
            done += some;
        }
        p = ow_next_row(x, at, p);
    }
    return OW_OK;
}

/* --- choices ---------------------------------------------------------------------------------- */

/* The choice for a number: the number itself, clipped or wrapped; -1 if it is out of range. */
static inline int64_t ow_choice_of(int64_t i, int64_t n, int64_t mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == OW_OUTSIDE_RAISE)
        return -1;
    if (mode == OW_OUTSIDE_CLIP)
        return i < 0 ? 0 : n - 1;
    i %= n;
    return i < 0 ? i + n : i;
}

/* in: numbers, choices of the output's dtype; all broadcast */
static int ow_choose_prep(ow_step *s)
{
    ow_slot *z = s->out[0];
    for (int d = 0; d < z->ndim; d++)
        z->shape[d] = 1;
    for (int i = 0; i < s->nin; i++) {
        const ow_slot *x = s->in[i];
        for (int d = 0; d < x->ndim; d++) {
            int64_t *length = &z->shape[z->ndim - x->ndim + d];
            if (x->shape[d] != 1 && *length != 1 && x->shape[d] != *length)
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "shape mismatch: objects cannot be broadcast to a single shape: "
                               "lengths %lld and %lld along dimension %d",
                               (long long)*length, (long long)x->shape[d], z->ndim - x->ndim + d);
            *length = x->shape[d] == 1 ? *length : x->shape[d];
        }
    }
    return ow_ensure(s, z);
}

typedef struct ow_choosing {
    const ow_step *s;
    int64_t outside, mode;
} ow_choosing;

static void ow_choose_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    ow_choosing *c = (ow_choosing *)ctx;
    const int itemsize = c->s->out[0]->itemsize, count = c->s->nin - 1;
    ow_slot number = *c->s->in[0];
    number.data = p[1];
    for (int64_t i = 0; i < n; i++, number.data += st[1]) {
        const int64_t k = ow_choice_of(ow_int(&number), count, c->mode);
        if (k < 0) {
            c->outside = 1;
            return;
        }
        memcpy(p[0] + i * st[0], p[2 + k] + i * st[2 + k], (size_t)itemsize);
    }
}

static int ow_choose_run(ow_step *s)
{
    ow_slot padded[OW_MAXARG], *slots[OW_MAXARG];
    ow_choosing c = {s, 0, OW_PARAMS(s, choose)->outside};
    ow_walk w;
    slots[0] = s->out[0];
    for (int i = 0; i < s->nin; i++) {
        padded[i] = *s->in[i];
        slots[i + 1] = &padded[i];
        int rc = ow_broadcast(s, &padded[i], s->out[0]);
        if (rc)
            return rc;
    }
    const int64_t size = ow_walk_start(&w, s->out[0]->ndim, s->out[0]->shape, s->nin + 1, slots, 0);
    if (size)
        ow_walk_in_order(&w, ow_choose_loop, &c, size);
    return c.outside ? OW_FAIL(s, OW_VALUE_ERROR, "invalid entry in choice array") : OW_OK;
}

/* --- places in sorted vectors ----------------------------------------------------------------- */

/* Several numbers are sought in step, so that one waits for memory, or for a comparison, while
 * others go on: after each comparison the same number of places is left to all. NaN is larger than
 * all other numbers. */
#define OW_SOUGHT 16

#define OW_SEARCH(NAME, T, V, VALUE)                                                               \
    static inline int ow_less_##NAME(V a, V b) { return (a < b) | ((b != b) & (a == a)); }         \
    static void ow_search_##NAME(const ow_slot *x, char **p, const int64_t *st, int64_t count,     \
                                 int right)                                                        \
    {                                                                                              \
        const int64_t step = x->strides[0], length = x->shape[0];                                  \
        for (int64_t first = 0; first < count; first += OW_SOUGHT) {                               \
            const int some = count - first < OW_SOUGHT ? (int)(count - first) : OW_SOUGHT;         \
            V v[OW_SOUGHT];                                                                        \
            int64_t low[OW_SOUGHT] = {0};                                                          \
            for (int k = 0; k < OW_SOUGHT; k++)                                                    \
                v[k] = VALUE(*(const T *)(p[1] + (first + (k < some ? k : 0)) * st[1]));           \
            for (int64_t n = length; n > 0;) {                                                     \
                const int64_t half = (n + 1) / 2;                                                  \
                const char *middle = x->data + (half - 1) * step;                                  \
                V at[OW_SOUGHT];                                                                   \
                for (int k = 0; k < OW_SOUGHT; k++)                                                \
                    at[k] = VALUE(*(const T *)(middle + low[k] * step));                           \
                _Pragma("omp simd") for (int k = 0; k < OW_SOUGHT; k++)                            \
                {                                                                                  \
                    const int before = ow_less_##NAME(at[k], v[k]),                                \
                              later = ow_less_##NAME(v[k], at[k]);                                 \
                    low[k] += half & -(int64_t)(right ? !later : before);                          \
                }                                                                                  \
                n -= half;                                                                         \
            }                                                                                      \
            for (int k = 0; k < some; k++)                                                         \
                *(int64_t *)(p[0] + (first + k) * st[0]) = low[k];                                 \
        }                                                                                          \
    }
OW_SEARCH(b, uint8_t, uint8_t, )
OW_SEARCH(i8, int8_t, int8_t, )
OW_SEARCH(i16, int16_t, int16_t, )
OW_SEARCH(i32, int32_t, int32_t, )
OW_SEARCH(i64, int64_t, int64_t, )
OW_SEARCH(u16, uint16_t, uint16_t, )
OW_SEARCH(u32, uint32_t, uint32_t, )
OW_SEARCH(u64, uint64_t, uint64_t, )
OW_SEARCH(f32, float, float, )
OW_SEARCH(f64, double, double, )
OW_SEARCH(f16, ow_f16, float, ow_from_f16)

typedef void (*ow_search_fn)(const ow_slot *x, char **p, const int64_t *st, int64_t count,
                             int right);

static ow_search_fn ow_search_of(const ow_slot *x)
{
    const int is_unsigned = x->typenum % 2 == 0;
    if (x->typenum == OW_FLOAT_TYPENUM)
        return ow_search_f32;
    if (x->typenum == OW_DOUBLE_TYPENUM)
        return ow_search_f64;
    if (x->typenum == OW_HALF_TYPENUM)
        return ow_search_f16;
    switch (x->itemsize) {
    case 1:
        return is_unsigned ? ow_search_b : ow_search_i8;
    case 2:
        return is_unsigned ? ow_search_u16 : ow_search_i16;
    case 4:
        return is_unsigned ? ow_search_u32 : ow_search_i32;
    default:
        return is_unsigned ? ow_search_u64 : ow_search_i64;
    }
}

/* in: sorted vector, elements to insert, of one dtype */
static int ow_search_prep(ow_step *s)
{
    ow_set_shape(s->out[0], s->in[1]->ndim, s->in[1]->shape);
    return ow_ensure_like(s, s->out[0], s->in + 1, 1);
}

static void ow_search_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_step *s = ctx;
    ow_search_of(s->in[0])(s->in[0], p, st, n, (int)OW_PARAMS(s, search)->after);
}

static int ow_search_run(ow_step *s)
{
    ow_walk w;
    ow_slot *slots[2] = {s->out[0], s->in[1]};
    if (ow_walk_start(&w, s->out[0]->ndim, s->out[0]->shape, 2, slots, 0))
        ow_walk_share(&w, ow_search_loop, s, 30.0 * (double)ow_size(s->out[0]), 1 << 16);
    return OW_OK;
}

/* --- diagonals that are set ------------------------------------------------------------------- */

/* in: x, a number of its dtype, then, for a matrix, the offset of the diagonal, or nothing for 0 */
static int ow_fill_diagonal_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    for (int d = 1; d < x->ndim && x->ndim > 2; d++)
        if (x->shape[d] != x->shape[0])
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "All dimensions of input must be of equal length, got %lld and %lld",
                           (long long)x->shape[0], (long long)x->shape[d]);
    ow_set_shape(s->out[0], x->ndim, x->shape);
    return ow_ensure_like(s, s->out[0], s->in, 1);
}

static int ow_fill_diagonal_run(ow_step *s)
{
    ow_slot *z = s->out[0];
    const int64_t offset = s->nin > 2 ? ow_int(s->in[2]) : 0;
    int64_t first = 0, step = 0, length = INT64_MAX;
    ow_copy(z, s->in[0]);
    for (int d = 0; d < z->ndim; d++) {
        const int64_t skipped = s->nin < 3            ? 0
                                : d                   ? offset
                                : offset == INT64_MIN ? INT64_MAX
                                                      : -offset;
        const int64_t from = skipped < 0 ? 0 : skipped;
        if (from >= z->shape[d])
            return OW_OK;
        length = z->shape[d] - from < length ? z->shape[d] - from : length;
        first += from * z->strides[d];
        step += z->strides[d];
    }
    for (int64_t i = 0; i < length; i++)
        memcpy(z->data + first + i * step, s->in[1]->data, (size_t)z->itemsize);
    return OW_OK;
}

#endif
