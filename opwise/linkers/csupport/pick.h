/* Steps that take or change what several indices select together: arrays of integers of any rank,
 * masks, slices and new dimensions.
 * Arrays and masks select parts of x, one for each element of the shape to which they broadcast. A
 * part has the other dimensions: those `before` the arrays, and those `after` them. Arrays that are
 * not beside each other count as first. */
#ifndef OW_PICK_H
#define OW_PICK_H

#include "elemwise.h"
#include "selection.h"
#include "step_params.h"

/* No start, stop or step of a slice. */
#define OW_PICK_NONE INT64_MIN

/* An array of indices of one axis, or of offsets in bytes, which `length` < 0 says. */
typedef struct ow_picker {
    const char *data;
    int itemsize, is_unsigned, axis;
    int64_t length, stride;  /* of the axis */
    int64_t step[OW_MAXDIM]; /* along the dimensions of the parts */
} ow_picker;

typedef struct ow_dims {
    int n;
    int64_t shape[OW_MAXDIM], stride[OW_MAXDIM];
} ow_dims;

typedef struct ow_pick {
    const ow_slot *x;
    int pickers;
    ow_picker picker[OW_MAXDIM];
    ow_dims before, after; /* of a part of x */
    int ncommon;           /* the dimensions of the parts, and these joined as far as they can be */
    int64_t common[OW_MAXDIM];
    int nwalk;
    int64_t walk[OW_MAXDIM];
    int64_t n, start; /* the number of parts; where slices begin, in bytes */
} ow_pick;

static void ow_dims_add(ow_dims *d, int64_t length, int64_t stride)
{
    d->shape[d->n] = length;
    d->stride[d->n++] = stride;
}

static int64_t ow_dims_size(const ow_dims *d)
{
    int64_t size = 1;
    for (int i = 0; i < d->n; i++)
        size *= d->shape[i];
    return size;
}

/* A bound of a slice of an axis. */
static int64_t ow_pick_bound(int64_t at, int64_t length, int64_t low, int64_t high, int64_t none)
{
    if (at == OW_PICK_NONE)
        return none;
    at += at < 0 ? length : 0;
    return at < low ? low : at > high ? high : at;
}

static void ow_pick_slice(ow_pick *p, ow_dims *to, const ow_pick_entry *e, int64_t length,
                          int64_t stride)
{
    const int64_t step = e->step == OW_PICK_NONE ? 1 : e->step;
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
    const int64_t first = ow_pick_bound(e->start, length, low, high, step < 0 ? high : low);
    const int64_t stop = ow_pick_bound(e->stop, length, low, high, step < 0 ? low : high);
    const int64_t count = (int64_t)ow_steps(first, stop, step);
    p->start += count ? first * stride : 0;
    ow_dims_add(to, count, count > 1 ? stride * step : stride);
}

/* Write the offsets in x of the elements of the dimensions of a mask from `axis` on that are
 * true. */
static void ow_mask_offsets(const ow_slot *mask, const ow_slot *x, int axis, int64_t *to)
{
    const int last = mask->ndim - 1;
    const int64_t len = mask->shape[last], rows = len ? ow_size(mask) / len : 0;
    int64_t at[OW_MAXDIM] = {0}, done = 0, block[OW_FOUND_BLOCK];
    const char *p = mask->data;
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t row = 0; row < rows && !ow_stops(&left, (double)len); row++) {
        int64_t offset = 0;
        for (int d = 0; d < last; d++)
            offset += at[d] * x->strides[axis + d];
        for (int64_t first = 0; first < len; first += OW_FOUND_BLOCK) {
            const int64_t n = len - first < OW_FOUND_BLOCK ? len - first : OW_FOUND_BLOCK;
            const int64_t some =
                ow_found_1(p + first * mask->strides[last], mask->strides[last], n, first, block);
            for (int64_t i = 0; i < some; i++)
                to[done + i] = offset + block[i] * x->strides[axis + last];
            done += some;
        }
        p = ow_next_row(mask, at, p);
    }
}

static int64_t ow_mask_count(const ow_slot *mask)
{
    const int last = mask->ndim - 1;
    const int64_t len = mask->shape[last], rows = len ? ow_size(mask) / len : 0;
    int64_t at[OW_MAXDIM] = {0}, count = 0;
    const char *p = mask->data;
    if (ow_is_c_contiguous(mask))
        return ow_counted_1(p, 1, ow_size(mask));
    for (int64_t row = 0; row < rows; row++) {
        count += ow_counted_1(p, mask->strides[last], len);
        p = ow_next_row(mask, at, p);
    }
    return count;
}

/* Let the arrays have the same dimensions, and join those along which all of them step evenly. */
static int ow_pick_broadcast(ow_step *s, ow_pick *p, const ow_slot *arrays)
{
    p->ncommon = 0;
    for (int k = 0; k < p->pickers; k++)
        p->ncommon = arrays[k].ndim > p->ncommon ? arrays[k].ndim : p->ncommon;
    for (int d = 0; d < p->ncommon; d++)
        p->common[d] = 1;
    for (int k = 0; k < p->pickers; k++)
        for (int d = 0; d < arrays[k].ndim; d++) {
            int64_t *common = &p->common[p->ncommon - arrays[k].ndim + d],
                    length = arrays[k].shape[d];
            if (length != 1 && *common != 1 && length != *common)
                return OW_FAIL(
                    s, OW_INDEX_ERROR,
                    "shape mismatch: indexing arrays could not be broadcast together: lengths "
                    "%lld and %lld",
                    (long long)*common, (long long)length);
            *common = length == 1 ? *common : length;
        }
    p->n = 1;
    p->nwalk = 0;
    for (int d = 0; d < p->ncommon; d++) {
        int joined = p->nwalk > 0;
        p->n *= p->common[d];
        for (int k = 0; k < p->pickers; k++) {
            const int own = d - p->ncommon + arrays[k].ndim;
            const int64_t step = own < 0 || arrays[k].shape[own] == 1 ? 0 : arrays[k].strides[own];
            p->picker[k].step[p->nwalk] = step;
            joined &= p->nwalk > 0 && p->picker[k].step[p->nwalk - 1] == step * p->common[d];
        }
        if (!joined) {
            p->walk[p->nwalk++] = p->common[d];
            continue;
        }
        p->walk[p->nwalk - 1] *= p->common[d];
        for (int k = 0; k < p->pickers; k++)
            p->picker[k].step[p->nwalk - 1] = p->picker[k].step[p->nwalk];
    }
    if (p->nwalk == 0) {
        p->walk[p->nwalk++] = 1;
        for (int k = 0; k < p->pickers; k++)
            p->picker[k].step[0] = 0;
    }
    return OW_OK;
}

/* Find what indices select of `x`. first: the first input that is an index. */
static int ow_pick_plan(ow_step *s, ow_pick *p, const ow_slot *x, const ow_pick_entry *entries,
                        int64_t count, int first)
{
    ow_slot arrays[OW_MAXDIM];
    const ow_slot *masks[OW_MAXDIM];
    int64_t counts[OW_MAXDIM], positions = 0;
    int axis = 0, n_masks = 0, last = -2, apart = 0;
    memset(p, 0, sizeof(*p));
    p->x = x;
    for (int64_t i = 0; i < count; i++) {
        const ow_pick_entry *e = &entries[i];
        if (e->kind == OW_PICK_NEW)
            ow_dims_add(p->pickers ? &p->after : &p->before, 1, 0);
        else if (e->kind == OW_PICK_SLICE) {
            ow_pick_slice(p, p->pickers ? &p->after : &p->before, e, x->shape[axis],
                          x->strides[axis]);
            axis++;
        } else {
            const ow_slot *index = s->in[first + e->input];
            ow_picker *k = &p->picker[p->pickers];
            ow_slot *array = &arrays[p->pickers++];
            *array = *index;
            apart |= last != -2 && last != i - 1;
            last = (int)i;
            *k = (ow_picker){.itemsize = index->itemsize,
                             .is_unsigned = index->typenum % 2 == 0,
                             .axis = axis,
                             .length = x->shape[axis],
                             .stride = x->strides[axis]};
            if (e->kind == OW_PICK_ARRAY) {
                axis++;
                continue;
            }
            for (int d = 0; d < index->ndim; d++)
                if (index->shape[d] != x->shape[axis + d])
                    return OW_FAIL(
                        s, OW_INDEX_ERROR,
                        "boolean index did not match indexed array along axis %d; size of axis "
                        "is %lld but size of corresponding boolean axis is %lld",
                        axis + d, (long long)x->shape[axis + d], (long long)index->shape[d]);
            *k = (ow_picker){.itemsize = 8, .axis = axis, .length = -1};
            axis += index->ndim;
            masks[n_masks] = index;
            counts[n_masks] = ow_mask_count(index);
            array->ndim = 1;
            array->shape[0] = counts[n_masks];
            array->strides[0] = 8;
            positions += counts[n_masks++];
        }
    }
    for (; axis < x->ndim; axis++)
        ow_dims_add(p->pickers ? &p->after : &p->before, x->shape[axis], x->strides[axis]);
    if (apart) {
        for (int d = 0; d < p->after.n; d++)
            ow_dims_add(&p->before, p->after.shape[d], p->after.stride[d]);
        p->after = p->before;
        p->before.n = 0;
    }
    int64_t *room = NULL;
    if (positions && !(room = (int64_t *)ow_scratch(s, ow_mul_size(positions, 8))))
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate the positions of a mask");
    for (int k = 0, m = 0; k < p->pickers; k++) {
        if (p->picker[k].length < 0 && arrays[k].itemsize == 1 && m < n_masks) {
            if (counts[m])
                ow_mask_offsets(masks[m], x, p->picker[k].axis, room);
            arrays[k].data = (char *)room;
            room += counts[m++];
        }
        p->picker[k].data = arrays[k].data;
    }
    return ow_pick_broadcast(s, p, arrays);
}

/* Let offset[i] be where part first + i of n begins in x; returns whether an index is out of
 * range. */
static int ow_pick_offsets(const ow_pick *p, int64_t first, int64_t n, int64_t *offset)
{
    const int last = p->nwalk - 1;
    int64_t at[OW_MAXDIM], rest = first;
    int outside = 0;
    for (int d = last; d >= 0; d--) {
        at[d] = rest % p->walk[d];
        rest /= p->walk[d];
    }
    for (int64_t done = 0; done < n;) {
        const int64_t more = p->walk[last] - at[last], some = more < n - done ? more : n - done;
        for (int64_t i = 0; i < some; i++)
            offset[done + i] = p->start;
        for (int k = 0; k < p->pickers; k++) {
            const ow_picker *q = &p->picker[k];
            const char *data = q->data;
            for (int d = 0; d <= last; d++)
                data += at[d] * q->step[d];
            if (q->step[last] == 0 && some > 1) { /* the same for all */
                int64_t one = 0;
                if (q->length < 0)
                    one = *(const int64_t *)data;
                else
                    outside |= ow_add_offsets(&one, data, 0, q->itemsize, q->is_unsigned, 1,
                                              q->length, q->stride);
                for (int64_t i = 0; i < some; i++)
                    offset[done + i] += one;
            } else if (q->length < 0)
                for (int64_t i = 0; i < some; i++)
                    offset[done + i] += *(const int64_t *)(data + i * q->step[last]);
            else
                outside |= ow_add_offsets(offset + done, data, q->step[last], q->itemsize,
                                          q->is_unsigned, some, q->length, q->stride);
        }
        done += some;
        at[last] = 0;
        for (int d = last - 1; d >= 0 && done < n; d--) {
            if (++at[d] < p->walk[d])
                break;
            at[d] = 0;
        }
    }
    return outside;
}

/* Report the first index that is out of range. */
static int ow_pick_error(ow_step *s, const ow_pick *p)
{
    for (int k = 0; k < p->pickers; k++) {
        const ow_picker *q = &p->picker[k];
        for (int64_t i = 0; i < p->n && q->length >= 0; i++) {
            int64_t rest = i;
            const char *data = q->data;
            for (int d = p->nwalk - 1; d >= 0; d--) {
                data += rest % p->walk[d] * q->step[d];
                rest /= p->walk[d];
            }
            ow_slot item = {.data = (char *)data,
                            .itemsize = q->itemsize,
                            .ndim = 1,
                            .shape = {1},
                            .typenum = q->is_unsigned ? 2 : 1};
            int64_t row;
            int rc = ow_row_index(s, &item, 0, q->axis, q->length, &row);
            if (rc)
                return rc;
        }
    }
    return OW_OK;
}

/* Let `z` have the shape of what is selected. */
static void ow_pick_shape(const ow_pick *p, ow_slot *z)
{
    int k = 0;
    for (int d = 0; d < p->before.n; d++)
        z->shape[k++] = p->before.shape[d];
    for (int d = 0; d < p->ncommon; d++)
        z->shape[k++] = p->common[d];
    for (int d = 0; d < p->after.n; d++)
        z->shape[k++] = p->after.shape[d];
    z->ndim = k;
}

/* Parts are worked on by blocks, which the team shares. */
typedef struct ow_pick_job {
    const ow_pick *p;
    ow_slot *z;
    int64_t chunks;
    int64_t step; /* bytes from part to part of z */
    int outside;
} ow_pick_job;

/* A slot with the last dimensions of a part. */
static void ow_pick_part(ow_slot *part, const ow_slot *x, const ow_dims *dims)
{
    *part = *x;
    part->ndim = dims->n;
    memcpy(part->shape, dims->shape, sizeof(dims->shape));
    memcpy(part->strides, dims->stride, sizeof(dims->stride));
}

static void ow_pick_chunk(void *arg, int64_t c)
{
    ow_pick_job *j = arg;
    const ow_pick *p = j->p;
    int64_t end, offset[OW_PARTS], first = ow_chunk_range(c, j->chunks, p->n, OW_PARTS, &end),
                                   parts;
    const int64_t outer = ow_dims_size(&p->before);
    ow_slot from, to;
    ow_pick_part(&from, p->x, &p->after);
    ow_pick_part(&to, j->z, &p->after);
    ow_c_strides(&to);
    const int64_t bytes = ow_size(&from) * from.itemsize;
    const int whole = ow_is_c_contiguous(&from);
    for (; first < end; first += parts) {
        parts = end - first < OW_PARTS ? end - first : OW_PARTS;
        if (ow_pick_offsets(p, first, parts, offset)) {
            j->outside = 1;
            return;
        }
        int64_t at[OW_MAXDIM] = {0};
        const char *x = p->x->data;
        if (whole && p->before.n == 1 && p->n <= OW_FEW && parts == p->n && j->step == bytes &&
            ow_take_few(j->z->data, parts * bytes, x, p->before.stride[0], outer, offset,
                        (int)parts, bytes))
            continue;
        for (int64_t b = 0; b < outer && bytes; b++) {
            char *z = j->z->data + (b * p->n + first) * j->step;
            if (whole)
                ow_kernels->take_rows(z, j->step, x, offset, parts, bytes);
            else
                for (int64_t k = 0; k < parts; k++) {
                    from.data = (char *)x + offset[k];
                    to.data = z + k * j->step;
                    ow_copy(&to, &from);
                }
            for (int d = p->before.n - 1; d >= 0; d--) {
                x += p->before.stride[d];
                if (++at[d] < p->before.shape[d])
                    break;
                x -= p->before.stride[d] * p->before.shape[d];
                at[d] = 0;
            }
        }
    }
}

/* --- rows and columns ----------------------------------------------------------------------------
 * Where each array steps along one of two dimensions only, the offsets of all rows and of all
 * columns are found once. */

typedef struct ow_cross_job {
    const ow_pick *p;
    ow_slot *z;
    const int64_t *rows, *columns;
    int64_t chunks, bytes;
} ow_cross_job;

static int ow_is_cross(const ow_pick *p, const ow_slot *part)
{
    int is =
        p->nwalk == 2 && p->before.n == 0 && ow_is_c_contiguous(part) && p->walk[1] >= OW_SHORT_RUN;
    for (int k = 0; k < p->pickers; k++)
        is &= p->picker[k].step[0] == 0 || p->picker[k].step[1] == 0;
    return is;
}

/* The offsets along dimension `d`; returns whether an index is out of range. */
static int ow_cross_offsets(const ow_pick *p, int d, int64_t *offset)
{
    int outside = 0;
    for (int64_t i = 0; i < p->walk[d]; i++)
        offset[i] = d ? 0 : p->start;
    for (int k = 0; k < p->pickers; k++) {
        const ow_picker *q = &p->picker[k];
        if (q->step[d] == 0 && (d || q->step[1]))
            continue; /* what steps along neither dimension counts as a row */
        if (q->length < 0)
            for (int64_t i = 0; i < p->walk[d]; i++)
                offset[i] += *(const int64_t *)(q->data + i * q->step[d]);
        else
            outside |= ow_add_offsets(offset, q->data, q->step[d], q->itemsize, q->is_unsigned,
                                      p->walk[d], q->length, q->stride);
    }
    return outside;
}

static void ow_cross_chunk(void *arg, int64_t c)
{
    const ow_cross_job *j = arg;
    int64_t end, row = ow_chunk_range(c, j->chunks, j->p->walk[0], 1, &end);
    for (; row < end; row++)
        ow_kernels->take_rows(j->z->data + row * j->p->walk[1] * j->bytes, j->bytes,
                              j->p->x->data + j->rows[row], j->columns, j->p->walk[1], j->bytes);
}

/* Returns whether an index is out of range. */
static int ow_pick_cross(const ow_pick *p, ow_slot *z, int64_t bytes, int64_t *room)
{
    ow_cross_job j = {p, z, room, room + p->walk[0], 1, bytes};
    if (ow_cross_offsets(p, 0, room) | ow_cross_offsets(p, 1, room + p->walk[0]))
        return 1;
    j.chunks = ow_chunks((double)ow_size(z) * (0.5 + z->itemsize / 16.0));
    if (bytes)
        ow_parallel(ow_cross_chunk, &j, j.chunks);
    return 0;
}

/* --- elements by a mask of the same shape ----------------------------------------------------- */

#define OW_COMPRESS_BLOCK 8192

typedef struct ow_compress_job {
    const ow_slot *x, *mask;
    ow_slot *z;
    int64_t *from; /* the place in z of each block */
    int64_t n;
} ow_compress_job;

static void ow_compress_count(void *arg, int64_t b)
{
    const ow_compress_job *j = arg;
    const int64_t first = b * OW_COMPRESS_BLOCK, n = j->n - first;
    j->from[b] =
        ow_counted_1(j->mask->data + first, 1, n < OW_COMPRESS_BLOCK ? n : OW_COMPRESS_BLOCK);
}

/* Without branches: each element is written, and the next one over it unless it is selected. */
#define OW_COMPRESS(T)                                                                             \
    {                                                                                              \
        const T *x = (const T *)j->x->data + first;                                                \
        T *z = (T *)j->z->data + j->from[b];                                                       \
        int64_t k = 0, i = 0;                                                                      \
        for (; i < n && k < count; i++) {                                                          \
            z[k] = x[i];                                                                           \
            k += mask[i] != 0;                                                                     \
        }                                                                                          \
    }

static void ow_compress_block(void *arg, int64_t b)
{
    const ow_compress_job *j = arg;
    const int64_t first = b * OW_COMPRESS_BLOCK, rest = j->n - first;
    const int64_t n = rest < OW_COMPRESS_BLOCK ? rest : OW_COMPRESS_BLOCK,
                  count = j->from[b + 1] - j->from[b];
    const char *mask = j->mask->data + first;
    switch (j->x->itemsize) {
    case 1:
        OW_COMPRESS(int8_t)
        break;
    case 2:
        OW_COMPRESS(int16_t)
        break;
    case 4:
        OW_COMPRESS(int32_t)
        break;
    case 8:
        OW_COMPRESS(int64_t)
        break;
    default:
        OW_COMPRESS(ow_item_16)
    }
}

static int ow_compress(ow_step *s, ow_slot *x, ow_slot *mask, ow_slot *z)
{
    const int64_t n = ow_size(x), blocks = (n + OW_COMPRESS_BLOCK - 1) / OW_COMPRESS_BLOCK;
    ow_compress_job j = {x, mask, z, (int64_t *)ow_scratch(s, (blocks + 1) * 8), n};
    if (!j.from)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate the positions of a mask");
    const int shared = (double)n > OW_WORTH;
    (shared ? ow_parallel : ow_in_order)(ow_compress_count, &j, blocks);
    int64_t total = 0;
    for (int64_t b = 0; b <= blocks; b++) {
        const int64_t these = b < blocks ? j.from[b] : 0;
        j.from[b] = total;
        total += these;
    }
    z->ndim = 1;
    z->shape[0] = total;
    int rc = ow_ensure(s, z);
    if (!rc && total)
        (shared ? ow_parallel : ow_in_order)(ow_compress_block, &j, blocks);
    return rc;
}

static int ow_pick_run(ow_step *s)
{
    const int64_t count = OW_PARAMS(s, pick)->entries.count;
    const ow_pick_entry *entries = ow_pick_entries(s->params);
    ow_slot *x = s->in[0], *z = s->out[0];
    ow_pick p;
    if (count == 1 && entries->kind == OW_PICK_MASK) {
        ow_slot *mask = s->in[1 + entries->input];
        int same = mask->ndim == x->ndim && ow_is_c_contiguous(mask) && ow_is_c_contiguous(x);
        for (int d = 0; d < x->ndim && same; d++)
            same = mask->shape[d] == x->shape[d];
        if (same)
            return ow_compress(s, x, mask, z);
    }
    int rc = ow_pick_plan(s, &p, x, entries, count, 1);
    if (rc)
        return rc;
    ow_pick_shape(&p, z);
    rc = ow_ensure(s, z);
    if (rc)
        return rc;
    ow_slot part;
    ow_pick_part(&part, x, &p.after);
    if (ow_is_cross(&p, &part)) {
        int64_t *room = (int64_t *)ow_alloc((p.walk[0] + p.walk[1]) * 8);
        if (room) {
            const int outside = ow_pick_cross(&p, z, ow_size(&part) * z->itemsize, room);
            ow_free((char *)room);
            return outside ? ow_pick_error(s, &p) : OW_OK;
        }
    }
    ow_pick_job j = {&p, z, 1, ow_dims_size(&p.after) * z->itemsize, 0};
    const double each =
        (OW_INDEX_NS * p.pickers + 1) / (double)(p.before.n ? ow_dims_size(&p.before) + 1 : 1);
    const double ns = (double)p.n * each + (double)ow_size(z) * (0.3 + z->itemsize / 16.0);
    j.chunks = ow_chunks(ns);
    ow_parallel(ow_pick_chunk, &j, j.chunks);
    return j.outside ? ow_pick_error(s, &p) : OW_OK;
}

/* --- changes ---------------------------------------------------------------------------------- */

static int ow_put_picked_prep(ow_step *s)
{
    return ow_accumulator(s, OW_PARAMS(s, put_picked)->overwrite);
}

/* Find what is changed, and let `y` have its shape. */
static int ow_changed_picked(ow_step *s, ow_pick *p, ow_slot *y)
{
    const ow_put_picked_params *given = s->params;
    ow_slot wanted = *s->out[0];
    int rc = ow_pick_plan(s, p, s->out[0], ow_put_picked_entries(given), given->entries.count, 2);
    if (rc)
        return rc;
    ow_pick_shape(p, &wanted);
    *y = *s->in[1];
    return ow_broadcast(s, y, &wanted);
}

static int ow_put_picked_check(ow_step *s)
{
    ow_pick p;
    ow_slot y;
    int rc = ow_changed_picked(s, &p, &y);
    int64_t offset[OW_PARTS], parts;
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t first = 0; first < p.n && !rc; first += parts) {
        parts = p.n - first < OW_PARTS ? p.n - first : OW_PARTS;
        if (ow_stops(&left, OW_INDEX_NS * (double)parts))
            return OW_OK;
        if (ow_pick_offsets(&p, first, parts, offset))
            rc = ow_pick_error(s, &p);
    }
    return rc;
}

/* Where part `k` of y begins along the dimensions of the parts, in bytes. */
static int64_t ow_put_from(const ow_pick *p, const ow_slot *y, int64_t k)
{
    int64_t at = 0;
    for (int d = p->ncommon - 1; d >= 0; d--) {
        const int dim = p->before.n + d;
        at += y->shape[dim] == 1 ? 0 : k % p->common[d] * y->strides[dim];
        k /= p->common[d];
    }
    return at;
}

static int ow_put_picked_run(ow_step *s)
{
    ow_slot *z = s->out[0], to, from, y, shifted = *z;
    ow_pick p;
    const int checked = s->checked;
    s->checked = 0;
    int rc = checked ? OW_OK : ow_put_picked_check(s);
    rc = rc ? rc : ow_changed_picked(s, &p, &y);
    if (rc || ow_should_stop())
        return rc;
    const ow_put_picked_params *given = s->params;
    ow_accumulator_copy(s, given->overwrite);
    ow_pick_part(&to, z, &p.after);
    /* along the dimensions of the parts y steps evenly, or its parts are found one by one */
    int64_t even = 0, expected = 0, step = 0;
    for (int d = p.ncommon - 1; d >= 0; d--) {
        const int dim = p.before.n + d;
        const int64_t stride = y.shape[dim] == 1 ? 0 : y.strides[dim];
        if (p.common[d] == 1)
            continue;
        if (!even)
            step = stride;
        else if (stride != expected)
            even = -1;
        if (even < 0)
            break;
        even = 1;
        expected = stride * p.common[d];
    }
    ow_dims of_y = {0}, outer = {0};
    for (int d = 0; d < p.after.n; d++) {
        const int dim = p.before.n + p.ncommon + d;
        ow_dims_add(&of_y, y.shape[dim], y.strides[dim]);
    }
    for (int d = 0; d < p.before.n; d++)
        ow_dims_add(&outer, p.before.shape[d], y.shape[d] == 1 ? 0 : y.strides[d]);
    ow_pick_part(&from, &y, &of_y);
    const int64_t rounds = ow_dims_size(&p.before);
    const double ns = OW_ROW_NS * p.pickers + OW_COPY_NS * (double)(ow_size(&to) * rounds);
    const int64_t most = even < 0 ? 1 : ow_parts_at_once(ns);
    int64_t offset[OW_PARTS], parts = 0;
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t first = 0; first < p.n && !ow_stops(&left, ns * (double)parts); first += parts) {
        parts = p.n - first < most ? p.n - first : most;
        ow_pick_offsets(&p, first, parts, offset);
        int64_t at[OW_MAXDIM] = {0};
        const char *start = y.data + (even < 0 ? ow_put_from(&p, &y, first) : first * step);
        shifted.data = z->data;
        for (int64_t b = 0; b < rounds; b++) {
            from.data = (char *)start;
            ow_put_parts(&to, &shifted, offset, &from, step, parts, given->adder);
            for (int d = p.before.n - 1; d >= 0; d--) {
                shifted.data += p.before.stride[d];
                start += outer.stride[d];
                if (++at[d] < p.before.shape[d])
                    break;
                shifted.data -= p.before.stride[d] * p.before.shape[d];
                start -= outer.stride[d] * p.before.shape[d];
                at[d] = 0;
            }
        }
    }
    return OW_OK;
}

#endif
