/* Steps that only look at memory in another way, make memory, or copy it. */
#ifndef OW_VIEW_H
#define OW_VIEW_H

#include "runtime.h"

/* ints: for each dimension of the output the input's dimension, or -1 for a new one */
static int ow_dimshuffle_prep(ow_step *s)
{
    ow_cell *x = s->in[0], *z = s->out[0];
    z->data = x->data;
    for (int d = 0; d < z->ndim; d++) {
        int64_t from = s->ints[d];
        z->shape[d] = from < 0 ? 1 : x->shape[from];
        z->strides[d] = from < 0 ? 0 : x->strides[from];
    }
    return OW_OK;
}

static int ow_alias_prep(ow_step *s)
{
    ow_alias(s->out[0], s->in[0]);
    return OW_OK;
}

/* ints: for each dimension that must be 1, its index */
static int ow_rebroadcast_prep(ow_step *s)
{
    ow_cell *x = s->in[0];
    for (int k = 1; k <= s->ints[0]; k++)
        if (x->shape[s->ints[k]] != 1)
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "Dimension %d in Rebroadcast's input was supposed to be 1 (got %lld "
                           "instead)",
                           (int)s->ints[k], (long long)x->shape[s->ints[k]]);
    return ow_alias_prep(s);
}

static int ow_deepcopy_prep(ow_step *s)
{
    ow_set_shape(s->out[0], s->in[0]->ndim, s->in[0]->shape);
    return ow_ensure(s, s->out[0]);
}

static int ow_deepcopy_run(ow_step *s)
{
    ow_copy(s->out[0], s->in[0]);
    return OW_OK;
}

/* in: x, shape (a vector of int64). A view where x is contiguous, else a copy. */
static int ow_reshape_run(ow_step *s)
{
    ow_cell *x = s->in[0], *shape = s->in[1], *z = s->out[0];
    int64_t size = ow_size(x), known = 1, wanted[OW_MAXDIM];
    int unknown = -1, bad = 0;
    if (shape->shape[0] != z->ndim)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "shape argument to Reshape.perform has incorrect length %lld, should be %d",
                       (long long)shape->shape[0], z->ndim);
    for (int d = 0; d < z->ndim; d++) {
        ow_cell item = *shape;
        item.data = shape->data + d * shape->strides[0];
        wanted[d] = ow_int(&item);
        if (wanted[d] < 0 && unknown < 0)
            unknown = d;
        else
            bad |= wanted[d] < 0 || __builtin_mul_overflow(known, wanted[d], &known);
    }
    if (unknown >= 0)
        bad |= known == 0 || size % known, wanted[unknown] = known ? size / known : 0;
    else
        bad |= known != size;
    if (bad) {
        int at = snprintf(s->error, OW_ERROR_SIZE, "cannot reshape array of size %lld into shape (",
                          (long long)size);
        for (int d = 0; d < z->ndim && at < OW_ERROR_SIZE - 30; d++)
            at += snprintf(s->error + at, OW_ERROR_SIZE - at, d ? ",%lld" : "%lld",
                           (long long)(d == unknown ? -1 : wanted[d]));
        snprintf(s->error + at, OW_ERROR_SIZE - at, ")");
        return OW_VALUE_ERROR;
    }
    ow_set_shape(z, z->ndim, wanted);
    if (ow_is_c_contiguous(x)) {
        ow_c_strides(z);
        z->data = x->data;
        return OW_OK;
    }
    int rc = ow_ensure(s, z);
    if (rc)
        return rc;
    ow_cell flat = *z;
    ow_set_shape(&flat, x->ndim, x->shape);
    ow_c_strides(&flat);
    ow_copy(&flat, x);
    return OW_OK;
}

/* ints: the dimension */
static int ow_shape_i_prep(ow_step *s)
{
    ow_cell *z = s->out[0];
    int rc = ow_ensure(s, z);
    if (!rc)
        *(int64_t *)z->data = s->in[0]->shape[s->ints[0]];
    return rc;
}

static int ow_shape_prep(ow_step *s)
{
    ow_cell *z = s->out[0];
    z->shape[0] = s->in[0]->ndim;
    int rc = ow_ensure(s, z);
    if (!rc)
        for (int d = 0; d < s->in[0]->ndim; d++)
            ((int64_t *)z->data)[d] = s->in[0]->shape[d];
    return rc;
}

/* in: numbers of the output's dtype */
static int ow_make_vector_prep(ow_step *s)
{
    s->out[0]->shape[0] = s->nin;
    return ow_ensure(s, s->out[0]);
}

static int ow_make_vector_run(ow_step *s)
{
    ow_cell *z = s->out[0];
    for (int i = 0; i < s->nin; i++)
        memcpy(z->data + i * z->itemsize, s->in[i]->data, (size_t)z->itemsize);
    return OW_OK;
}

/* in: [value,] lengths. ints: number of leading inputs that are no lengths, mask of dimensions
 * that are broadcastable in the output. */
static int ow_alloc_shape(ow_step *s)
{
    ow_cell *z = s->out[0];
    int skip = (int)s->ints[0];
    for (int d = 0; d < z->ndim; d++) {
        int64_t len = ow_int(s->in[skip + d]);
        if (len < 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "negative dimensions are not allowed (got %lld)",
                           (long long)len);
        if (s->ints[1] >> d & 1 && len != 1)
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "Alloc: dimension %d is broadcastable but its length is %lld", d,
                           (long long)len);
        z->shape[d] = len;
    }
    return ow_ensure(s, z);
}

static int ow_alloc_run(ow_step *s)
{
    ow_cell *z = s->out[0];
    int rc = ow_alloc_shape(s);
    if (rc)
        return rc;
    ow_cell value = *s->in[0];
    int missing = z->ndim - value.ndim;
    for (int d = z->ndim - 1; d >= 0; d--) {
        value.shape[d] = d < missing ? 1 : s->in[0]->shape[d - missing];
        value.strides[d] = d < missing ? 0 : s->in[0]->strides[d - missing];
        if (value.shape[d] != 1 && value.shape[d] != z->shape[d])
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "Alloc: the value has length %lld along dimension %d, the output %lld",
                           (long long)value.shape[d], d, (long long)z->shape[d]);
    }
    value.ndim = z->ndim;
    ow_copy(z, &value);
    return OW_OK;
}

static int ow_alloc_empty_run(ow_step *s) { return ow_alloc_shape(s); }

/* --- basic indexing -----------------------------------------------------------------------------
 * ints: for each entry (kind, a, b, c): kind 0 is an index, 1 a slice; a, b, c say where start, stop
 * and step come from: an input (>= 0), the constant ints[-value - 2] for values < -1, or nothing (-1).
 */
#define OW_ABSENT INT64_MIN

static inline int64_t ow_bound(ow_step *s, int64_t where, int base)
{
    if (where == -1)
        return OW_ABSENT;
    if (where >= 0)
        return ow_int(s->in[base + where]);
    return s->ints[-where - 2];
}

/* Let `z` be the part of `x` that the index names. base: the first input that is an index;
 * entries: how many entries, from ints[at] on. */
static int ow_subview(ow_step *s, ow_cell *z, const ow_cell *x, int base, int at, int entries)
{
    char *data = x->data;
    int out = 0, d = 0;
    for (; d < entries; d++) {
        const int64_t *e = s->ints + at + 4 * d;
        int64_t len = x->shape[d], start = ow_bound(s, e[1], base);
        if (e[0] == 0) {
            int64_t i = start < 0 ? start + len : start;
            if (i < 0 || i >= len)
                return OW_FAIL(s, OW_INDEX_ERROR,
                               "index out of bounds: index %lld, axis %d with size %lld",
                               (long long)start, d, (long long)len);
            data += i * x->strides[d];
            continue;
        }
        int64_t stop = ow_bound(s, e[2], base), step = ow_bound(s, e[3], base);
        if (step == OW_ABSENT)
            step = 1;
        if (step == 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "slice step cannot be zero");
        int64_t low = step < 0 ? -1 : 0, high = step < 0 ? len - 1 : len;
        if (start == OW_ABSENT)
            start = step < 0 ? high : low;
        else {
            start += start < 0 ? len : 0;
            start = start < low ? low : start > high ? high : start;
        }
        if (stop == OW_ABSENT)
            stop = step < 0 ? low : high;
        else {
            stop += stop < 0 ? len : 0;
            stop = stop < low ? low : stop > high ? high : stop;
        }
        int64_t count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
        if (count < 0 || (step > 0 ? stop <= start : stop >= start))
            count = 0;
        if (count)
            data += start * x->strides[d];
        z->shape[out] = count;
        z->strides[out++] = x->strides[d] * step;
    }
    for (; d < x->ndim; d++) {
        z->shape[out] = x->shape[d];
        z->strides[out++] = x->strides[d];
    }
    z->data = data;
    z->ndim = out;
    return OW_OK;
}

/* ints: number of entries, then the entries */
static int ow_subtensor_run(ow_step *s)
{
    return ow_subview(s, s->out[0], s->in[0], 1, 1, (int)s->ints[0]);
}

#endif
