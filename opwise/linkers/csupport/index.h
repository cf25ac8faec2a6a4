/* Steps that read or write parts of arrays, join arrays, and count. */
#ifndef OW_INDEX_H
#define OW_INDEX_H

#include "blas.h"
#include "index_range.h"
#include "scalar.h"
#include "complexes.h" /* after scalar.h */
#include "view.h"

/* --- adding one array into another ----------------------------------------------------------- */

/* The sum of two elements: numbers of float16 are added as float. */
#define OW_PLUS(a, b) ((a) + (b)) /* narrow ones wrap */
#define OW_PLUS_F16(a, b) ow_to_f16(ow_round_f16(ow_from_f16(a) + ow_from_f16(b)))
#define OW_ADDTO(S, T, PLUS)                                                                       \
    static void ow_addto_##S(const void *ctx, char **p, const int64_t *st, int64_t n)              \
    {                                                                                              \
        (void)ctx;                                                                                 \
        if (st[0] == sizeof(T) && st[1] == sizeof(T))                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                ((T *)p[0])[i] = PLUS(((T *)p[0])[i], ((T *)p[1])[i]);                             \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T *to = (T *)(p[0] + i * st[0]);                                                   \
                *to = PLUS(*to, *(T *)(p[1] + i * st[1]));                                         \
            }                                                                                      \
    }                                                                                              \
    static void ow_addat_##S(char *to, const int64_t *offset, const char *from, int64_t step,      \
                             int64_t n)                                                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T *at = (T *)(to + offset[i]);                                                         \
            *at = PLUS(*at, *(const T *)(from + i * step));                                        \
        }                                                                                          \
    }
OW_ADDTO(i8, int8_t, OW_PLUS)
OW_ADDTO(i16, int16_t, OW_PLUS)
OW_ADDTO(i32, int32_t, OW_PLUS)
OW_ADDTO(i64, int64_t, OW_PLUS)
OW_ADDTO(u8, uint8_t, OW_PLUS)
OW_ADDTO(u16, uint16_t, OW_PLUS)
OW_ADDTO(u32, uint32_t, OW_PLUS)
OW_ADDTO(u64, uint64_t, OW_PLUS)
OW_ADDTO(f32, float, OW_PLUS)
OW_ADDTO(f64, double, OW_PLUS)
OW_ADDTO(f16, ow_f16, OW_PLUS_F16)
OW_ADDTO(c64, ow_c64, ow_add_c64)
OW_ADDTO(c128, ow_c128, ow_add_c128)

typedef struct ow_adder {
    const char *name;
    ow_loop fn;
    /* adds n elements, in steps of `step`, to those at these offsets, one after the other */
    void (*at)(char *to, const int64_t *offset, const char *from, int64_t step, int64_t n);
} ow_adder;

#define OW_ADDER(S) {#S, ow_addto_##S, ow_addat_##S}

static const ow_adder ow_adders[] = {
    OW_ADDER(i8),  OW_ADDER(i16), OW_ADDER(i32),  OW_ADDER(i64), OW_ADDER(u8),
    OW_ADDER(u16), OW_ADDER(u32), OW_ADDER(u64),  OW_ADDER(f32), OW_ADDER(f64),
    OW_ADDER(f16), OW_ADDER(c64), OW_ADDER(c128),
};
static const int ow_adder_count = sizeof(ow_adders) / sizeof(ow_adders[0]);

/* Let `y` have the dimensions of `to`, with length 1 where it broadcasts; fails if it cannot. */
static int ow_broadcast(ow_step *s, ow_slot *y, const ow_slot *to)
{
    int missing = to->ndim - y->ndim;
    for (int d = to->ndim - 1; d >= 0; d--) {
        y->shape[d] = d < missing ? 1 : y->shape[d - missing];
        y->strides[d] = d < missing ? 0 : y->strides[d - missing];
        if (y->shape[d] != 1 && y->shape[d] != to->shape[d])
            return OW_FAIL(
                s, OW_VALUE_ERROR,
                "array is not broadcastable to correct shape: length %lld along dimension "
                "%d, where %lld is set",
                (long long)y->shape[d], d, (long long)to->shape[d]);
    }
    y->ndim = to->ndim;
    return OW_OK;
}

/* to <- y, or to += y with the adder of this index */
static void ow_put(ow_slot *to, ow_slot *y, int64_t adder)
{
    if (adder < 0) {
        ow_copy(to, y);
        return;
    }
    ow_walk w;
    ow_slot *slots[2] = {to, y};
    int64_t size = ow_walk_start(&w, to->ndim, to->shape, 2, slots, 0);
    if (size)
        ow_walk_in_order(&w, ow_adders[adder].fn, NULL, size);
}

static int ow_inc_subtensor_prep(ow_step *s)
{
    return ow_accumulator(s, OW_PARAMS(s, inc_subtensor)->overwrite);
}

/* Let `part` be what is changed of the output, and `y` what it is set to or incremented by. */
static int ow_changed_part(ow_step *s, ow_slot *part, ow_slot *y)
{
    const ow_inc_subtensor_params *p = s->params;
    *part = *s->out[0];
    *y = *s->in[1];
    int rc = ow_subview(s, part, s->out[0], 2, ow_inc_subtensor_entries(p), p->entries.count);
    return rc ? rc : ow_broadcast(s, y, part);
}

static int ow_inc_subtensor_check(ow_step *s)
{
    ow_slot part, y;
    return ow_changed_part(s, &part, &y);
}

static int ow_inc_subtensor_run(ow_step *s)
{
    ow_slot part, y;
    int rc = ow_changed_part(s, &part, &y);
    if (rc)
        return rc;
    /* where the result is a copy, it is made only now, when nothing can fail any more */
    ow_accumulator_copy(s, OW_PARAMS(s, inc_subtensor)->overwrite);
    ow_put(&part, &y, OW_PARAMS(s, inc_subtensor)->adder);
    return OW_OK;
}

/* --- parts by vectors of indices -----------------------------------------------------------------
 * The inputs from `first` on are vectors or numbers of one length, or of length 1: an index for
 * each of the first dimensions of x. */

/* About how long it takes to find a row, somewhere in memory. */
#define OW_ROW_NS 20.0

/* Let `row` be one of the sub-arrays of `x` along its first dimension. */
static void ow_row(ow_slot *row, const ow_slot *x, int64_t i)
{
    *row = *x;
    row->ndim = x->ndim - 1;
    row->data = x->data + i * x->strides[0];
    for (int d = 0; d < row->ndim; d++) {
        row->shape[d] = x->shape[d + 1];
        row->strides[d] = x->strides[d + 1];
    }
}

/* Let `parts` have the shape of the parts of `x`, one after the other. */
static int ow_parts_shape(ow_step *s, ow_slot *parts, const ow_slot *x, int first)
{
    const int used = s->nin - first;
    int64_t n = 1;
    for (int i = first; i < s->nin; i++) {
        const int64_t length = s->in[i]->ndim ? s->in[i]->shape[0] : 1;
        if (length != 1 && n != 1 && length != n)
            return OW_FAIL(s, OW_INDEX_ERROR,
                           "shape mismatch: indexing arrays could not be broadcast together with "
                           "shapes (%lld,) (%lld,)",
                           (long long)n, (long long)length);
        n = length == 1 ? n : length;
    }
    parts->ndim = x->ndim - used + 1;
    parts->shape[0] = n;
    for (int d = used; d < x->ndim; d++)
        parts->shape[d - used + 1] = x->shape[d];
    return OW_OK;
}

/* Let `part` have the shape and the strides of a part of `x`. */
static void ow_part_layout(const ow_step *s, ow_slot *part, const ow_slot *x, int first)
{
    const int used = s->nin - first;
    *part = *x;
    part->ndim = x->ndim - used;
    for (int d = 0; d < part->ndim; d++) {
        part->shape[d] = x->shape[d + used];
        part->strides[d] = x->strides[d + used];
    }
}

/* As many parts are found at once, so that loops over them are short. */
#define OW_PARTS 256

/* How many parts, which take `ns` each, are worked on before signals are looked for. */
static int64_t ow_parts_at_once(double ns)
{
    return ns * OW_PARTS < OW_LONGEST_CHUNK_NS ? OW_PARTS : 1;
}

/* Add to offset[k] where index k leads, in bytes; returns whether one of n indices is out of
 * range. */
#define OW_OFFSETS_BY(T, STRIDE)                                                                   \
    for (int64_t k = 0; k < n; k++) {                                                              \
        const int64_t i = (int64_t)*(const T *)(index + k * step), at = i < 0 ? i + length : i;    \
        outside |= (uint64_t)at >= (uint64_t)length;                                               \
        offset[k] += at * (STRIDE);                                                                \
    }
/* Vectors have no products of 8 bytes: elements of some sizes are found by shifts. */
#define OW_OFFSETS(T)                                                                              \
    {                                                                                              \
        if (stride == 8 && step == sizeof(T)) {                                                    \
            const int64_t step = sizeof(T);                                                        \
            OW_OFFSETS_BY(T, 8)                                                                    \
        } else if (stride == 4 && step == sizeof(T)) {                                             \
            const int64_t step = sizeof(T);                                                        \
            OW_OFFSETS_BY(T, 4)                                                                    \
        } else                                                                                     \
            OW_OFFSETS_BY(T, stride)                                                               \
    }

static OW_CLONED int ow_add_offsets(int64_t *offset, const char *index, int64_t step, int itemsize,
                                    int is_unsigned, int64_t n, int64_t length, int64_t stride)
{
    int outside = 0;
    if (itemsize == 8)
        OW_OFFSETS(int64_t) /* numpy takes the bits of a uint64 for those of a signed number */
    else if (itemsize == 4 && is_unsigned)
        OW_OFFSETS(uint32_t)
    else if (itemsize == 4)
        OW_OFFSETS(int32_t)
    else if (itemsize == 2 && is_unsigned)
        OW_OFFSETS(uint16_t)
    else if (itemsize == 2)
        OW_OFFSETS(int16_t)
    else if (is_unsigned)
        OW_OFFSETS(uint8_t)
    else
        OW_OFFSETS(int8_t)
    return outside;
}

/* As ow_find_parts, but returns only whether an index is out of range. */
static int ow_offsets_of_parts(const ow_step *s, const ow_slot *x, int first, int64_t first_part,
                               int64_t n, int64_t *offset)
{
    int outside = 0;
    memset(offset, 0, sizeof(int64_t) * (size_t)n);
    for (int d = 0; d < s->nin - first; d++) {
        const ow_slot *index = s->in[first + d];
        const int64_t step = index->ndim && index->shape[0] > 1 ? index->strides[0] : 0;
        outside |=
            ow_add_offsets(offset, ow_at(index->data, first_part, step), step, index->itemsize,
                           index->typenum % 2 == 0, n, x->shape[d], x->strides[d]);
    }
    return outside;
}

/* Let offset[k] be where part first_part + k of `x` begins, in bytes from its data, for n parts. */
static int ow_find_parts(ow_step *s, const ow_slot *x, int first, int64_t first_part, int64_t n,
                         int64_t *offset)
{
    memset(offset, 0, sizeof(int64_t) * (size_t)n);
    for (int d = 0; d < s->nin - first; d++) {
        ow_slot index = *s->in[first + d];
        const int64_t step = index.ndim && index.shape[0] > 1 ? index.strides[0] : 0;
        const int64_t length = x->shape[d];
        index.strides[0] = step;
        index.data = ow_at(index.data, first_part, step);
        if (!ow_add_offsets(offset, index.data, step, index.itemsize, index.typenum % 2 == 0, n,
                            length, x->strides[d]))
            continue;
        for (int64_t k = 0, at; k < n; k++) {
            int rc = ow_row_index(s, &index, k, d, length, &at);
            if (rc)
                return rc;
        }
    }
    return OW_OK;
}

/* Fail if one of the indices of n parts of `x` is out of range. bounds: of the only index, or
 * NULL. */
static int ow_check_parts(ow_step *s, const ow_slot *x, int first, int64_t n,
                          const ow_index_bounds *bounds)
{
    for (int d = 0; n && d < s->nin - first; d++) {
        ow_slot index = *s->in[first + d];
        if (!index.ndim) {
            index.shape[0] = 1;
            index.strides[0] = 0;
        }
        if (ow_index_fit(&index, bounds, x->shape[d]).outside) {
            int rc = ow_index_outside(s, &index, d, x->shape[d]);
            if (rc)
                return rc;
        }
    }
    return OW_OK;
}

/* in: x, indices */
static int ow_take_parts_prep(ow_step *s)
{
    ow_slot like = *s->in[0], *of = &like;
    int rc = ow_parts_shape(s, s->out[0], s->in[0], 1);
    if (rc || s->nin > 2)
        return rc ? rc : ow_ensure(s, s->out[0]);
    like.shape[0] = s->out[0]->shape[0]; /* with the steps of x */
    return ow_ensure_like(s, s->out[0], &of, 1);
}

static int ow_take_parts_check(ow_step *s)
{
    return ow_check_parts(s, s->in[0], 1, s->out[0]->shape[0], NULL);
}

/* Parts are shared out; they may lie across the memory of x, and the result then does, too: its
 * elements for one place in the parts are side by side, and are read from one row. */
typedef struct ow_take_job {
    ow_step *s;
    ow_slot from; /* the layout of a part */
    int64_t chunks, bytes;
    int whole, across, rc;
} ow_take_job;

/* So few elements of a row that a call for each row would take longer than they do. */
#define OW_FEW 32

/* Let element k of row i of `to` be that `offset[k]` bytes from the start of row i of `from`. */
#define OW_TAKE_FEW(T)                                                                             \
    static inline __attribute__((always_inline)) void ow_take_some_##T(                            \
        char *to, int64_t step, const char *from, int64_t st, int64_t rows, const int64_t *offset, \
        const int few)                                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < rows; i++, to += step, from += st)                                 \
            for (int k = 0; k < few; k++)                                                          \
                ((T *)to)[k] = *(const T *)(from + offset[k]);                                     \
    }                                                                                              \
    static void ow_take_few_##T(char *to, int64_t step, const char *from, int64_t st,              \
                                int64_t rows, const int64_t *offset, int few)                      \
    {                                                                                              \
        switch (few) { /* a loop of known length needs no counting */                              \
        case 1:                                                                                    \
            ow_take_some_##T(to, step, from, st, rows, offset, 1);                                 \
            break;                                                                                 \
        case 2:                                                                                    \
            ow_take_some_##T(to, step, from, st, rows, offset, 2);                                 \
            break;                                                                                 \
        case 3:                                                                                    \
            ow_take_some_##T(to, step, from, st, rows, offset, 3);                                 \
            break;                                                                                 \
        case 4:                                                                                    \
            ow_take_some_##T(to, step, from, st, rows, offset, 4);                                 \
            break;                                                                                 \
        default:                                                                                   \
            ow_take_some_##T(to, step, from, st, rows, offset, few);                               \
        }                                                                                          \
    }
OW_TAKE_FEW(uint8_t)
OW_TAKE_FEW(uint16_t)
OW_TAKE_FEW(uint32_t)
OW_TAKE_FEW(uint64_t)
OW_TAKE_FEW(ow_c128)

/* The same for elements of so many bytes; returns 0 if there is no loop for them. step, st: from
 * row to row. */
static int ow_take_few(char *to, int64_t step, const char *from, int64_t st, int64_t rows,
                       const int64_t *offset, int few, int64_t itemsize)
{
    switch (itemsize) {
    case 1:
        ow_take_few_uint8_t(to, step, from, st, rows, offset, few);
        return 1;
    case 2:
        ow_take_few_uint16_t(to, step, from, st, rows, offset, few);
        return 1;
    case 4:
        ow_take_few_uint32_t(to, step, from, st, rows, offset, few);
        return 1;
    case 8:
        ow_take_few_uint64_t(to, step, from, st, rows, offset, few);
        return 1;
    case 16:
        ow_take_few_ow_c128(to, step, from, st, rows, offset, few);
        return 1;
    default:
        return 0;
    }
}

static void ow_take_across(const ow_take_job *j, const int64_t *offset, int64_t first,
                           int64_t parts)
{
    const ow_slot *x = j->s->in[0], *z = j->s->out[0];
    const int64_t places = ow_size(&j->from);
    int64_t at[OW_MAXDIM] = {0};
    const char *from = x->data;
    char *to = z->data + first * z->strides[0];
    if (j->from.ndim == 1 && parts <= OW_FEW &&
        ow_take_few(to, z->strides[1], from, j->from.strides[0], places, offset, (int)parts,
                    x->itemsize))
        return;
    for (int64_t k = 0; k < places; k++) {
        ow_kernels->take_rows(to, z->strides[0], from, offset, parts, x->itemsize);
        for (int d = j->from.ndim - 1; d >= 0; d--) {
            from += j->from.strides[d];
            to += z->strides[d + 1];
            if (++at[d] < j->from.shape[d])
                break;
            from -= j->from.strides[d] * j->from.shape[d];
            to -= z->strides[d + 1] * j->from.shape[d];
            at[d] = 0;
        }
    }
}

static void ow_take_chunk(void *arg, int64_t c)
{
    ow_take_job *j = arg;
    ow_step *s = j->s;
    ow_slot *x = s->in[0], *z = s->out[0], from = j->from, to;
    int64_t offset[OW_PARTS], parts, end;
    int64_t first = ow_chunk_range(c, j->chunks, z->shape[0], OW_PARTS, &end);
    double left = OW_LONGEST_CHUNK_NS;
    const double ns = OW_ROW_NS * (s->nin - 1) + OW_COPY_NS * (double)ow_size(&from);
    const int64_t most = j->across ? OW_PARTS : ow_parts_at_once(ns);
    ow_row(&to, z, 0);
    for (; first < end && !j->rc; first += parts) {
        parts = end - first < most ? end - first : most;
        if (ow_offsets_of_parts(s, x, 1, first, parts, offset)) {
            j->rc = 1;
            return;
        }
        to.data = z->data + first * z->strides[0];
        if (j->across)
            ow_take_across(j, offset, first, parts);
        else if (j->whole && j->bytes)
            ow_kernels->take_rows(to.data, z->strides[0], x->data, offset, parts, j->bytes);
        else
            for (int64_t k = 0; k < parts; k++, to.data += z->strides[0]) {
                from.data = x->data + offset[k];
                if (ow_stops(&left, ns))
                    return;
                ow_copy(&to, &from);
            }
        if (ow_stops(&left, ns * (double)parts))
            return;
    }
}

static int ow_take_parts_run(ow_step *s)
{
    ow_slot *x = s->in[0], *z = s->out[0];
    ow_take_job j = {.s = s, .chunks = 1};
    ow_slot to;
    ow_part_layout(s, &j.from, x, 1);
    ow_row(&to, z, 0);
    /* steps of x may be those of an axis of length 1, which say nothing about the parts of z */
    j.whole = ow_is_c_contiguous(&j.from) && ow_is_c_contiguous(&to);
    j.bytes = ow_size(&j.from) * x->itemsize;
    j.across = !j.whole && z->shape[0] > 1 && z->strides[0] == z->itemsize && j.bytes;
    const double size = (double)ow_size(z), n = (double)z->shape[0];
    j.chunks = ow_chunks(OW_INDEX_NS * n +
                         size * (j.whole || j.across ? 0.5 : OW_COPY_NS) * x->itemsize / 8);
    ow_parallel(ow_take_chunk, &j, j.chunks);
    return j.rc ? ow_check_parts(s, x, 1, z->shape[0], NULL) : OW_OK;
}

/* Set or add to parts of `z` at n offsets what `y` has for each, in steps of `step`. */
static void ow_put_parts(ow_slot *to, const ow_slot *z, const int64_t *offset, ow_slot *from,
                         int64_t step, int64_t n, int64_t adder)
{
    const char *y = from->data;
    const int64_t size = ow_size(to), st[2] = {z->itemsize, z->itemsize};
    const int whole = ow_is_c_contiguous(to) && ow_is_c_contiguous(from) && ow_size(from) == size;
    const int is_double = z->typenum == OW_DOUBLE_TYPENUM;
    if (whole && size && to->ndim && adder >= 0 && (is_double || z->typenum == OW_FLOAT_TYPENUM))
        ow_kernels->add_rows[is_double](z->data, offset, y, step, n, size);
    else if (to->ndim == 0 && adder >= 0)
        ow_adders[adder].at(z->data, offset, y, step, n);
    else if (to->ndim == 0 && z->itemsize == 8)
        for (int64_t k = 0; k < n; k++)
            *(int64_t *)(z->data + offset[k]) = *(const int64_t *)(y + k * step);
    else if (to->ndim == 0 && z->itemsize == 4)
        for (int64_t k = 0; k < n; k++)
            *(int32_t *)(z->data + offset[k]) = *(const int32_t *)(y + k * step);
    else if (whole && adder < 0)
        ow_kernels->set_rows(z->data, offset, y, step, n, size * z->itemsize);
    else
        for (int64_t k = 0; k < n; k++) {
            char *p[2] = {z->data + offset[k], (char *)y + k * step};
            to->data = p[0];
            from->data = p[1];
            if (!whole)
                ow_put(to, from, adder);
            else
                ow_adders[adder].fn(NULL, p, st, size);
        }
}

/* Add n numbers, or one over and over, to elements of `z` at indices that are in range and not
 * negative. */
#define OW_ADD_AT(T, I)                                                                            \
    {                                                                                              \
        T *z = (T *)to->data;                                                                      \
        const I *at = (const I *)index->data;                                                      \
        const T *from = (const T *)y->data;                                                        \
        _Pragma("GCC unroll 4") for (int64_t k = 0; k < n; k++) z[at[k]] += from[k * step];        \
    }

static void ow_add_to_vector(ow_slot *to, const ow_slot *index, const ow_slot *y, int64_t n)
{
    const int64_t step = y->shape[0] == 1 ? 0 : 1;
    if (to->typenum == OW_DOUBLE_TYPENUM && index->itemsize == 8)
        OW_ADD_AT(double, int64_t)
    else if (to->typenum == OW_DOUBLE_TYPENUM)
        OW_ADD_AT(double, int32_t)
    else if (index->itemsize == 8)
        OW_ADD_AT(float, int64_t)
    else
        OW_ADD_AT(float, int32_t)
}
#undef OW_ADD_AT

/* Whether that is all that a step has to do: no offsets are then computed. n: how many numbers,
 * with `y` as ow_changed_parts gives it. */
static int ow_adds_to_vector(const ow_step *s, const ow_slot *y, int64_t n)
{
    const ow_inc_parts_params *p = s->params;
    const ow_slot *z = s->out[0], *index = s->in[2];
    if (p->adder < 0 || s->nin != 3 || z->ndim != 1 || index->ndim != 1 || index->shape[0] != n)
        return 0;
    if ((z->typenum != OW_DOUBLE_TYPENUM && z->typenum != OW_FLOAT_TYPENUM) ||
        y->typenum != z->typenum || index->itemsize < 4 ||
        (index->itemsize == 4 && index->typenum % 2 == 0))
        return 0;
    if (!ow_is_c_contiguous(index) || !ow_is_c_contiguous(z) || !ow_is_c_contiguous(y) ||
        OW_COPY_NS * (double)n > OW_LONGEST_CHUNK_NS)
        return 0;
    const ow_fit fit = ow_index_fit(index, &p->bounds, z->shape[0]);
    return !fit.outside && !fit.negative;
}

static int ow_inc_parts_prep(ow_step *s)
{
    return ow_accumulator(s, OW_PARAMS(s, inc_parts)->overwrite);
}

/* Let `y` have the shape of the parts that are changed. */
static int ow_changed_parts(ow_step *s, ow_slot *y)
{
    ow_slot *z = s->out[0], wanted = *z;
    *y = *s->in[1];
    int rc = ow_parts_shape(s, &wanted, z, 2);
    return rc ? rc : ow_broadcast(s, y, &wanted);
}

/* The number of parts, which all indices together select. */
static int64_t ow_count_parts(const ow_step *s, int first)
{
    int64_t n = 1;
    for (int i = first; i < s->nin; i++)
        if (s->in[i]->ndim && s->in[i]->shape[0] != 1)
            n = s->in[i]->shape[0];
    return n;
}

static int ow_inc_parts_check(ow_step *s)
{
    ow_slot y;
    int rc = ow_changed_parts(s, &y);
    if (rc)
        return rc;
    return ow_check_parts(s, s->out[0], 2, ow_count_parts(s, 2), &OW_PARAMS(s, inc_parts)->bounds);
}

static int ow_inc_parts_run(ow_step *s)
{
    ow_slot *z = s->out[0], to, from, y;
    const int checked = s->checked;
    s->checked = 0;
    int rc = ow_changed_parts(s, &y);
    if (rc)
        return rc;
    const int64_t n = ow_count_parts(s, 2), step = y.shape[0] == 1 ? 0 : y.strides[0];
    const int simple = ow_adds_to_vector(s, &y, n);
    if (!simple && !checked)
        rc = ow_inc_parts_check(s);
    if (rc || ow_should_stop())
        return rc;
    int64_t offset[OW_PARTS], parts = 0;
    double left = OW_LONGEST_CHUNK_NS;
    const ow_inc_parts_params *p = s->params;
    ow_accumulator_copy(s, p->overwrite);
    if (simple) {
        ow_add_to_vector(z, s->in[2], &y, n);
        return OW_OK;
    }
    ow_part_layout(s, &to, z, 2);
    ow_row(&from, &y, 0);
    const double ns = OW_ROW_NS * (s->nin - 2) + OW_COPY_NS * (double)ow_size(&to);
    const int64_t most = ow_parts_at_once(ns);
    for (int64_t first = 0; first < n && !ow_stops(&left, ns * (double)parts); first += parts) {
        parts = n - first < most ? n - first : most;
        ow_find_parts(s, z, 2, first, parts, offset);
        from.data = y.data + first * step;
        ow_put_parts(&to, z, offset, &from, step, parts, p->adder);
    }
    return OW_OK;
}

/* --- joining and counting --------------------------------------------------------------------- */

/* in: axis (not read), arrays of the output's dtype */
static int ow_join_prep(ow_step *s)
{
    ow_slot *z = s->out[0], *first = s->in[1];
    int axis = (int)OW_PARAMS(s, axis)->axis;
    ow_set_shape(z, first->ndim, first->shape);
    z->shape[axis] = 0;
    for (int i = 1; i < s->nin; i++) {
        ow_slot *x = s->in[i];
        for (int d = 0; d < z->ndim; d++)
            if (d != axis && x->shape[d] != z->shape[d])
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "all the input array dimensions except for the concatenation axis "
                               "must match exactly, but along dimension %d, the array at index 0 "
                               "has size %lld and the array at index %d has size %lld",
                               d, (long long)z->shape[d], i - 1, (long long)x->shape[d]);
        z->shape[axis] = ow_add_size(z->shape[axis], x->shape[axis]);
    }
    return ow_ensure_like(s, z, s->in + 1, s->nin - 1);
}

static int ow_join_run(ow_step *s)
{
    int axis = (int)OW_PARAMS(s, axis)->axis;
    ow_slot part = *s->out[0];
    for (int i = 1; i < s->nin; i++) {
        part.shape[axis] = s->in[i]->shape[axis];
        ow_copy(&part, s->in[i]);
        part.data += part.shape[axis] * part.strides[axis];
    }
    return OW_OK;
}

/* in: start, stop, step; out: int64 */
static int ow_arange_prep(ow_step *s)
{
    int64_t start = ow_int(s->in[0]), stop = ow_int(s->in[1]), step = ow_int(s->in[2]);
    if (step == 0)
        return OW_FAIL(s, OW_ZERO_DIVISION, "arange: the step is zero");
    const uint64_t n = ow_steps(start, stop, step);
    ow_slot *z = s->out[0];
    z->shape[0] = n > INT64_MAX ? INT64_MAX : (int64_t)n;
    return ow_ensure(s, z);
}

static int ow_arange_run(ow_step *s)
{
    const int64_t start = ow_int(s->in[0]), step = ow_int(s->in[2]), n = s->out[0]->shape[0];
    int64_t *to = (int64_t *)s->out[0]->data;
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t i = 0; i < n && !ow_stops(&left, OW_BLOCK);) {
        const int64_t end = n - i < OW_BLOCK ? n : i + OW_BLOCK;
        for (; i < end; i++)
            to[i] = start + i * step;
    }
    return OW_OK;
}

#endif
