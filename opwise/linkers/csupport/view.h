/* Steps that only look at memory in another way, make memory, or copy it. */
#ifndef OW_VIEW_H
#define OW_VIEW_H

#include "copy.h"
#include "step_params.h"

static int ow_dimshuffle_prep(ow_step *s)
{
    ow_slot *x = s->in[0], *z = s->out[0];
    const int64_t *order = ow_dimshuffle_order(s->params);
    z->data = x->data;
    for (int d = 0; d < z->ndim; d++) {
        int64_t from = order[d];
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

static int ow_rebroadcast_prep(ow_step *s)
{
    const ow_rebroadcast_params *p = s->params;
    ow_slot *x = s->in[0];
    for (int k = 0; k < p->ones.count; k++) {
        const int64_t d = ow_rebroadcast_ones(p)[k];
        if (x->shape[d] != 1)
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "Dimension %d in Rebroadcast's input was supposed to be 1 (got %lld "
                           "instead)",
                           (int)d, (long long)x->shape[d]);
    }
    return ow_alias_prep(s);
}

/* in: x, the shape that it must have (a vector of int64); out: x */
static int ow_specify_shape_prep(ow_step *s)
{
    const ow_slot *x = s->in[0], *shape = s->in[1];
    int same = shape->shape[0] == x->ndim;
    for (int d = 0; d < x->ndim && same; d++) {
        ow_slot item = *shape;
        item.data = shape->data + d * shape->strides[0];
        if (x->shape[d] != ow_int(&item))
            return OW_FAIL(s, OW_ASSERTION_ERROR,
                           "dimension %d has length %lld, not %lld as specified", d,
                           (long long)x->shape[d], (long long)ow_int(&item));
    }
    if (!same)
        return OW_FAIL(s, OW_ASSERTION_ERROR, "there are %d dimensions, not %lld as specified",
                       x->ndim, (long long)shape->shape[0]);
    return ow_alias_prep(s);
}

static int ow_deepcopy_prep(ow_step *s)
{
    ow_set_shape(s->out[0], s->in[0]->ndim, s->in[0]->shape);
    return ow_ensure_like(s, s->out[0], s->in, 1);
}

static int ow_deepcopy_run(ow_step *s)
{
    ow_copy(s->out[0], s->in[0]);
    return OW_OK;
}

/* in: x, shape (a vector of int64). A view where x is contiguous, else a copy. */
static int ow_reshape_prep(ow_step *s)
{
    ow_slot *x = s->in[0], *shape = s->in[1], *z = s->out[0];
    int64_t size = ow_size(x), known = 1, wanted[OW_MAXDIM];
    int unknown = -1, bad = 0;
    if (shape->shape[0] != z->ndim)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "shape argument to Reshape.perform has incorrect length %lld, should be %d",
                       (long long)shape->shape[0], z->ndim);
    for (int d = 0; d < z->ndim; d++) {
        ow_slot item = *shape;
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
    bad |= ow_bytes(z->ndim, wanted, z->itemsize) == INT64_MAX;
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
    return ow_ensure(s, z);
}

static int ow_reshape_run(ow_step *s)
{
    ow_slot *x = s->in[0], *z = s->out[0], flat = *z;
    if (z->data == x->data)
        return OW_OK;
    ow_set_shape(&flat, x->ndim, x->shape);
    ow_c_strides(&flat);
    ow_copy(&flat, x);
    return OW_OK;
}

static int ow_shape_i_prep(ow_step *s)
{
    ow_slot *z = s->out[0];
    int rc = ow_ensure(s, z);
    if (!rc)
        *(int64_t *)z->data = s->in[0]->shape[OW_PARAMS(s, axis)->axis];
    return rc;
}

static int ow_shape_prep(ow_step *s)
{
    ow_slot *z = s->out[0];
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
    ow_slot *z = s->out[0];
    for (int i = 0; i < s->nin; i++)
        memcpy(z->data + i * z->itemsize, s->in[i]->data, (size_t)z->itemsize);
    return OW_OK;
}

/* in: [value,] lengths */
static int ow_alloc_shape(ow_step *s)
{
    ow_slot *z = s->out[0];
    const ow_alloc_params *p = s->params;
    for (int d = 0; d < z->ndim; d++) {
        int64_t len = ow_int(s->in[p->values + d]);
        if (len < 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "negative dimensions are not allowed (got %lld)",
                           (long long)len);
        if (p->ones >> d & 1 && len != 1)
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "Alloc: dimension %d is broadcastable but its length is %lld", d,
                           (long long)len);
        z->shape[d] = len;
    }
    return ow_ensure(s, z);
}

/* The value of an alloc with all dimensions of the output. */
static ow_slot ow_alloc_value(const ow_step *s)
{
    ow_slot value = *s->in[0];
    int ndim = s->out[0]->ndim, missing = ndim - value.ndim;
    for (int d = ndim - 1; d >= 0; d--) {
        value.shape[d] = d < missing ? 1 : s->in[0]->shape[d - missing];
        value.strides[d] = d < missing ? 0 : s->in[0]->strides[d - missing];
    }
    value.ndim = ndim;
    return value;
}

static int ow_alloc_prep(ow_step *s)
{
    int rc = ow_alloc_shape(s);
    if (rc)
        return rc;
    const ow_slot *z = s->out[0], value = ow_alloc_value(s);
    for (int d = z->ndim - 1; d >= 0; d--)
        if (value.shape[d] != 1 && value.shape[d] != z->shape[d])
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "Alloc: the value has length %lld along dimension %d, the output %lld",
                           (long long)value.shape[d], d, (long long)z->shape[d]);
    return OW_OK;
}

/* So many bytes of one number are written without a walk. */
#define OW_SMALL_FILL 16384

static int ow_alloc_run(ow_step *s)
{
    const ow_slot *z = s->out[0];
    ow_slot value = ow_alloc_value(s);
    const int64_t size = ow_size(z);
    if (size * z->itemsize > OW_SMALL_FILL || ow_size(&value) != 1)
        ow_copy(s->out[0], &value);
    else
        ow_copy_run((char *[]){z->data, value.data}, (int64_t[]){z->itemsize, 0}, size,
                    z->itemsize);
    return OW_OK;
}

/* --- basic indexing --------------------------------------------------------------------------- */

static inline int64_t ow_part_of_index(const ow_step *s, const ow_index_part *part, int base)
{
    return part->source >= 0 ? ow_int(s->in[base + part->source]) : part->number;
}

/* A bound of a slice, counted from the front and held between `low` and `high`; `absent`
 * without. */
static inline int64_t ow_bound(const ow_step *s, const ow_index_part *part, int base, int64_t len,
                               int64_t low, int64_t high, int64_t absent)
{
    if (part->source == OW_INDEX_SOURCE_NONE)
        return absent;
    int64_t at = ow_part_of_index(s, part, base);
    at += at < 0 ? len : 0;
    return at < low ? low : at > high ? high : at;
}

/* How many numbers there are from `start` on, in steps of `step`, before `stop`: up to 2**64 -
 * 1. */
static inline uint64_t ow_steps(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0 ? start >= stop : start <= stop)
        return 0;
    const uint64_t a = (uint64_t)start, b = (uint64_t)stop, by = (uint64_t)step;
    return step > 0 ? (b - a - 1) / by + 1 : (a - b - 1) / (0 - by) + 1;
}

/* Let `z` be the part of `x` that the index names. base: the first input that is an index. */
static int ow_subview(ow_step *s, ow_slot *z, const ow_slot *x, int base,
                      const ow_index_entry *entries, int64_t count)
{
    char *data = x->data;
    int out = 0, d = 0;
    for (; d < count; d++) {
        const ow_index_entry *e = &entries[d];
        const int64_t len = x->shape[d];
        if (!e->is_slice) {
            const int64_t start = ow_part_of_index(s, &e->start, base);
            int64_t i = start < 0 ? start + len : start;
            if (i < 0 || i >= len)
                return OW_FAIL(s, OW_INDEX_ERROR,
                               "index out of bounds: index %lld, axis %d with size %lld",
                               (long long)start, d, (long long)len);
            data = ow_at(data, i, x->strides[d]);
            continue;
        }
        const int64_t step =
            e->step.source == OW_INDEX_SOURCE_NONE ? 1 : ow_part_of_index(s, &e->step, base);
        if (step == 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "slice step cannot be zero");
        const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? len - 1 : len;
        const int64_t start = ow_bound(s, &e->start, base, len, low, high, step < 0 ? high : low);
        const int64_t stop = ow_bound(s, &e->stop, base, len, low, high, step < 0 ? low : high);
        const int64_t length = (int64_t)ow_steps(start, stop, step);
        if (length)
            data = ow_at(data, start, x->strides[d]);
        z->shape[out] = length;
        /* a step that is not taken may be too large for a stride */
        z->strides[out++] = length > 1 ? x->strides[d] * step : x->strides[d];
    }
    for (; d < x->ndim; d++) {
        z->shape[out] = x->shape[d];
        z->strides[out++] = x->strides[d];
    }
    z->ndim = out;
    /* without elements there is little memory, and no place in it to point to */
    z->data = ow_size(z) ? data : x->data;
    return OW_OK;
}

static int ow_subtensor_run(ow_step *s)
{
    const ow_subtensor_params *p = s->params;
    return ow_subview(s, s->out[0], s->in[0], 1, ow_subtensor_entries(p), p->entries.count);
}

#endif
