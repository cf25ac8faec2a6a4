/* Steps that sort along an axis: elements, their positions, the k largest. */
#ifndef OW_SORT_H
#define OW_SORT_H

#include "index.h"
#include "simd.h"
#include "step_params.h"

/* The rows of arrays along an axis, numbered in C order of the other dimensions. */
static char *ow_along(const ow_slot *x, int axis, int64_t row)
{
    char *p = x->data;
    for (int d = x->ndim - 1; d >= 0; d--)
        if (d != axis && x->shape[d] != 1) {
            p += row % x->shape[d] * x->strides[d];
            row /= x->shape[d];
        }
    return p;
}

/* Nanoseconds for one element, each time the row is gone over. */
#define OW_SORT_NS 1.5
/* Threads share no more memory for rows than this, unless one row needs it. */
#define OW_SORT_MEMORY (64 << 20)

typedef struct ow_sort_share {
    ow_step *s;
    ow_sorting sorting;
    int axis;
    int64_t rows, chunks, room;
    char *scratch;
} ow_sort_share;

/* Find how rows are sorted, and memory for it: `more` bytes for each besides what a row needs. */
static int ow_sort_plan(ow_step *s, ow_sort_share *j, int64_t axis, int64_t positions, int64_t more)
{
    const ow_slot *x = s->in[0];
    j->s = s;
    j->axis = (int)axis;
    const int64_t n = x->shape[j->axis];
    j->sorting = (ow_sorting){.n = n,
                              .in = x->strides[j->axis],
                              .typenum = x->typenum,
                              .itemsize = x->itemsize,
                              .positions = positions};
    j->rows = n ? ow_size(x) / n : 0;
    if (n > UINT32_MAX)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "rows of %lld elements are too long to sort: the longest have 2**32 - 1",
                       (long long)n);
    j->room = ow_add_size(ow_sort_room(&j->sorting), more);
    const double passes = n <= OW_RANKED ? 4 : 12;
    j->chunks = ow_chunks(OW_SORT_NS * passes * (double)ow_size(x));
    j->chunks = j->chunks < j->rows ? j->chunks : j->rows;
    while (j->chunks > 1 && ow_mul_size(j->room, j->chunks) > OW_SORT_MEMORY)
        j->chunks /= 2;
    j->sorting.alone = j->chunks <= 1;
    if (!j->rows || (n <= OW_RANKED && !more))
        return OW_OK;
    j->scratch = ow_scratch(s, ow_mul_size(j->room, j->chunks));
    if (!j->scratch)
        return OW_FAIL(s, OW_MEMORY_ERROR,
                       "could not allocate memory to sort rows of %lld elements", (long long)n);
    return OW_OK;
}

static void ow_sort_begin(ow_sort_share *j, ow_task fn)
{
    if (j->chunks == 1)
        fn(j, 0);
    else if (j->rows)
        ow_parallel(fn, j, j->chunks);
}

/* in: x, axis (not read) */
static int ow_sort_prep(ow_step *s)
{
    const ow_sort_params *p = s->params;
    ow_sort_share j = {0};
    ow_set_shape(s->out[0], s->in[0]->ndim, s->in[0]->shape);
    int rc = ow_ensure_like(s, s->out[0], s->in, 1);
    return rc ? rc : ow_sort_plan(s, &j, p->axis, p->positions, 0);
}

static void ow_sort_chunk(void *arg, int64_t k)
{
    ow_sort_share *j = arg;
    const ow_slot *x = j->s->in[0], *z = j->s->out[0];
    int64_t end, first = ow_chunk_range(k, j->chunks, j->rows, 1, &end);
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t row = first; row < end; row++) {
        if (j->sorting.alone && ow_stops(&left, 12 * OW_SORT_NS * (double)j->sorting.n))
            return;
        ow_kernels->sort(&j->sorting, ow_along(x, j->axis, row), ow_along(z, j->axis, row),
                         j->scratch + k * j->room);
    }
}

static int ow_sort_run(ow_step *s)
{
    const ow_sort_params *p = s->params;
    ow_sort_share j = {0};
    ow_slot *z = s->out[0];
    int rc = ow_sort_plan(s, &j, p->axis, p->positions, 0);
    j.sorting.out = z->strides[j.axis];
    if (rc)
        return rc;
    if (z->shape[j.axis] != 1)
        ow_sort_begin(&j, ow_sort_chunk);
    else if (p->positions)
        memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
    else
        ow_copy(z, s->in[0]);
    return OW_OK;
}

/* in: x, k: how many of the largest, or, below 0, of the smallest. out: elements, positions, as far
 * as they are wanted. */
static int ow_select_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    const ow_select_params *p = s->params;
    const int axis = (int)p->axis;
    const int64_t k = ow_int(s->in[1]), n = x->shape[axis];
    ow_sort_share j = {0};
    if ((k == 0 && n > 0) || k < -n || k > n)
        return OW_FAIL(s, OW_VALUE_ERROR, "topk: kth cannot be %lld for a dimension of length %lld",
                       (long long)k, (long long)n);
    int rc = OW_OK;
    for (int i = 0; i < s->nout && !rc; i++) {
        ow_set_shape(s->out[i], x->ndim, x->shape);
        s->out[i]->shape[axis] = k < 0 ? -k : k;
        rc = ow_ensure(s, s->out[i]);
    }
    return rc ? rc : ow_sort_plan(s, &j, p->axis, 1, (k < 0 ? -k : k) * (int64_t)sizeof(int64_t));
}

static void ow_put_position(char *to, int itemsize, int64_t position)
{
    switch (itemsize) {
    case 1:
        *(int8_t *)to = (int8_t)position;
        break;
    case 2:
        *(int16_t *)to = (int16_t)position;
        break;
    case 4:
        *(int32_t *)to = (int32_t)position;
        break;
    default:
        *(int64_t *)to = position;
    }
}

static void ow_select_chunk(void *arg, int64_t c)
{
    ow_sort_share *j = arg;
    const ow_step *s = j->s;
    const ow_select_params *p = s->params;
    const ow_slot *x = s->in[0], *values = p->values ? s->out[0] : NULL;
    const ow_slot *positions = p->positions ? s->out[s->nout - 1] : NULL;
    const int64_t k = j->sorting.k;
    int64_t *where = (int64_t *)(j->scratch + c * j->room);
    int64_t end, first = ow_chunk_range(c, j->chunks, j->rows, 1, &end);
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t row = first; row < end; row++) {
        const char *from = ow_along(x, j->axis, row);
        if (j->sorting.alone && ow_stops(&left, 12 * OW_SORT_NS * (double)j->sorting.n))
            return;
        ow_kernels->select(&j->sorting, from, where, (char *)(where + k));
        if (values) {
            char *to = ow_along(values, j->axis, row);
            for (int64_t i = 0; i < k; i++)
                memcpy(to + i * values->strides[j->axis], from + where[i] * j->sorting.in,
                       (size_t)x->itemsize);
        }
        if (positions) {
            char *to = ow_along(positions, j->axis, row);
            for (int64_t i = 0; i < k; i++)
                ow_put_position(to + i * positions->strides[j->axis], positions->itemsize,
                                where[i]);
        }
    }
}

static int ow_select_run(ow_step *s)
{
    const ow_select_params *p = s->params;
    ow_sort_share j = {0};
    const int64_t k = ow_int(s->in[1]);
    int rc = ow_sort_plan(s, &j, p->axis, 1, (k < 0 ? -k : k) * (int64_t)sizeof(int64_t));
    j.sorting.k = k < 0 ? -k : k;
    j.sorting.flip = k > 0;
    j.sorting.sorted = (int)p->sorted;
    if (!rc)
        ow_sort_begin(&j, ow_select_chunk);
    return rc;
}

#endif
