/* Steps that compute row by row along the last axis: elementwise work, reductions, and what depends
 * on them, while a row is in the cache. The loop is generated: see opwise/scalar/rowloops.py. */
#ifndef OW_ROWWISE_H
#define OW_ROWWISE_H

#include "elemwise.h"
#include "on_demand.h"
#include "step_params.h"
#include "view.h"

#define OW_ROWWISE_LINE 64
/* How many rows are turned at once, as in rowloops.py. */
#define OW_ROWWISE_ROWS 64
/* Rows of fewer elements are turned, and rows that lie side by side if they take at most so many
 * bytes. */
#define OW_ROWWISE_SHORT 32
/* Reducers that the loops of one program call, as in rowloops.py. */
#define OW_ROWWISE_REDUCERS 8
#define OW_ROWWISE_TURN_BYTES (1 << 21)

/* Copies m rows of n elements between an array, `row` bytes from row to row and `along` from
 * element to element, and a buffer with the same element of OW_ROWWISE_ROWS rows side by side.
 * There copies of the last row take the place of those that the array does not have. */
typedef void ow_rowwise_turn(void *to, const void *from, int64_t row, int64_t along, int64_t m,
                             int64_t n, int64_t size);

static void ow_rowwise_gather(void *to, const void *from, int64_t row, int64_t along, int64_t m,
                              int64_t n, int64_t size)
{
    const int64_t pitch = OW_ROWWISE_ROWS * size;
    if (along == size) {
        const ow_tile tile = {n, m, from, row, to, pitch, NULL};
        ow_copy_tile(&tile, size, size, size);
    }
    for (int64_t j = 0; j < n && (along != size || m < OW_ROWWISE_ROWS); j++) {
        char *const line = (char *)to + j * pitch;
        if (along != size)
            ow_copy_run((char *[]){line, (char *)from + j * along}, (int64_t[]){size, row}, m,
                        (int)size);
        ow_copy_run((char *[]){line + m * size, line + (m - 1) * size}, (int64_t[]){size, 0},
                    OW_ROWWISE_ROWS - m, (int)size);
    }
}

static void ow_rowwise_scatter(void *to, const void *from, int64_t row, int64_t along, int64_t m,
                               int64_t n, int64_t size)
{
    const int64_t pitch = OW_ROWWISE_ROWS * size;
    if (along == size) {
        const ow_tile tile = {m, n, from, pitch, to, row, NULL};
        ow_copy_tile(&tile, size, size, size);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        ow_copy_run((char *[]){(char *)to + j * along, (char *)from + j * pitch},
                    (int64_t[]){row, size}, m, (int)size);
}

/* What a generated loop gets besides its operands. */
typedef struct ow_rowwise_context {
    int64_t n;                         /* elements of a row */
    char *memory;                      /* of the buffers */
    const int64_t *along;              /* bytes from element to element of each operand's rows */
    ow_rowwise_turn *gather, *scatter; /* of an array to a buffer, and back */
    ow_loop reducers[OW_ROWWISE_REDUCERS]; /* reductions of elements that are in memory */
} ow_rowwise_context;

typedef struct ow_rowwise_job {
    const ow_walk *w; /* over rows */
    ow_loop loop;
    ow_rowwise_context context; /* with the memory of the buffers of all chunks */
    int64_t runs, rows, chunks, bytes;
    int along; /* whether each run of rows is shared out, and not the sequence of runs */
} ow_rowwise_job;

/* Whether the loop can read the rows of an operand where they lie. */
static inline int ow_rowwise_direct(const ow_slot *c)
{
    const int last = c->ndim - 1;
    return c->shape[last] == 1 || c->strides[last] == c->itemsize;
}

static double ow_rowwise_ns(const ow_step *s, const int64_t *shape)
{
    const ow_rowwise_params *p = s->params;
    double ns = p->nanoseconds;
    for (int d = 0; d < p->ndim; d++)
        ns *= (double)shape[d];
    return ns;
}

static int64_t ow_rowwise_chunks(const ow_step *s, const int64_t *shape)
{
    int64_t rows = 1;
    for (int d = 0; d < OW_PARAMS(s, rowwise)->ndim - 1; d++)
        rows *= shape[d];
    const int64_t chunks = ow_chunks(ow_rowwise_ns(s, shape));
    return chunks < rows ? chunks : rows ? rows : 1;
}

static int64_t ow_rowwise_turned_bytes(const ow_step *s, int64_t n)
{
    return ow_mul_size(OW_PARAMS(s, rowwise)->turned, ow_mul_size(n, OW_ROWWISE_ROWS));
}

static int64_t ow_rowwise_bytes(const ow_step *s, int64_t n, int turned)
{
    const ow_rowwise_params *p = s->params;
    if (turned)
        return ow_rowwise_turned_bytes(s, n);
    return ow_add_size(ow_mul_size(p->bytes, n), p->buffers * OW_ROWWISE_LINE);
}

/* Whether rows are better turned: short ones, and those of arrays by columns. */
static int ow_rowwise_should_turn(const ow_step *s, int64_t n)
{
    int across = 0;
    if (n < OW_ROWWISE_SHORT)
        return 1;
    for (int i = 0; i < s->nin; i++) {
        const ow_slot *c = s->in[i];
        for (int d = 0; d < c->ndim - 1 && !ow_rowwise_direct(c); d++)
            across |= c->shape[d] > 1 && c->strides[d] == c->itemsize;
    }
    return across && ow_rowwise_turned_bytes(s, n) <= OW_ROWWISE_TURN_BYTES;
}

/* The loop over turned rows for these operands; NULL if rows are not turned, or it cannot be
 * compiled. */
static ow_loop ow_rowwise_turned(const ow_step *s, int64_t n)
{
    return ow_rowwise_should_turn(s, n) ? ((const ow_on_demand *)s->ctx)->loop : NULL;
}

/* Turned loops work on OW_ROWWISE_ROWS rows at once, so that runs of fewer than these are
 * wasteful. */
#define OW_ROWWISE_RUN 16

/* Whether turned rows lie in many short runs: then inputs are copied, until the rows lie side by
 * side. */
static int ow_rowwise_is_broken(ow_step *s, const int64_t *shape)
{
    const int nd = (int)OW_PARAMS(s, rowwise)->ndim;
    ow_slot *slots[OW_MAXARG];
    ow_walk w;
    for (int k = 0; k < s->nout; k++)
        slots[k] = s->out[k];
    for (int i = 0; i < s->nin; i++)
        slots[s->nout + i] = s->in[i];
    return ow_walk_start(&w, nd - 1, shape, s->nout + s->nin, slots, 0) && w.ndim > 1 &&
           w.shape[w.ndim - 1] < OW_ROWWISE_RUN;
}

/* Let `c` be an input with all rows of `shape`, those along broadcast dimensions too. */
static void ow_rowwise_spread(ow_slot *c, const ow_slot *given, const int64_t *shape, int nd)
{
    *c = *given;
    for (int d = 0; d < nd - 1; d++)
        if (c->shape[d] != shape[d]) {
            c->shape[d] = shape[d];
            c->strides[d] = 0;
        }
}

static int ow_rowwise_prep(ow_step *s)
{
    const ow_rowwise_params *p = s->params;
    const int nd = (int)p->ndim;
    int64_t shape[OW_MAXDIM], bytes;
    int rc = ow_common_shape(s, nd, ow_rowwise_masks(p), shape);
    if (rc)
        return rc;
    const int64_t n = shape[nd - 1];
    if (n == 0 && p->needs >= 0)
        return OW_FAIL(s, OW_VALUE_ERROR, "Input of CAReduce{%.7s} has zero-size on axis %d",
                       ow_kernels->reducers[p->needs].name, nd - 1);
    if (ow_rowwise_should_turn(s, n))
        rc = ow_demand((ow_on_demand *)s->ctx);
    const int turned = ow_rowwise_turned(s, n) != NULL;
    for (int k = 0; k < s->nout && !rc; k++) {
        const int narrow = p->narrow >> k & 1;
        ow_set_shape(s->out[k], nd, shape);
        if (narrow)
            s->out[k]->shape[nd - 1] = 1;
        rc = turned && !narrow ? ow_ensure_like(s, s->out[k], s->in, s->nin)
                               : ow_ensure(s, s->out[k]);
    }
    bytes = ow_mul_size(ow_rowwise_bytes(s, n, turned), ow_rowwise_chunks(s, shape));
    for (int i = 0; i < s->nin && !turned; i++)
        if (!ow_rowwise_direct(s->in[i]))
            bytes = ow_add_size(bytes, ow_size(s->in[i]) * s->in[i]->itemsize + OW_ROWWISE_LINE);
    if (!rc && turned && ow_rowwise_is_broken(s, shape))
        for (int i = 0; i < s->nin; i++) {
            ow_slot all;
            ow_rowwise_spread(&all, s->in[i], shape, nd);
            bytes = ow_add_size(bytes, ow_size(&all) * all.itemsize + OW_ROWWISE_LINE);
        }
    if (!rc && bytes && !ow_scratch(s, bytes))
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", (long long)bytes);
    return rc;
}

static void ow_rowwise_chunk(void *arg, int64_t k)
{
    const ow_rowwise_job *j = arg;
    ow_rowwise_context context = j->context;
    context.memory += k * j->bytes;
    int64_t first = 0, end = j->runs, from = 0, to = j->rows;
    if (j->along)
        from = ow_chunk_range(k, j->chunks, j->rows, 1, &to);
    else
        first = ow_chunk_range(k, j->chunks, j->runs, 1, &end);
    if (first < end && from < to)
        ow_walk_part(j->w, j->loop, &context, first, end, from, to);
}

static int ow_rowwise_run(ow_step *s)
{
    const ow_rowwise_params *p = s->params;
    const int nd = (int)p->ndim;
    ow_slot copies[OW_MAXARG], *slots[OW_MAXARG];
    int64_t shape[OW_MAXDIM];
    ow_common_shape(s, nd, ow_rowwise_masks(p), shape);
    int64_t along[OW_MAXARG];
    ow_rowwise_job job = {.loop = s->loop, .chunks = ow_rowwise_chunks(s, shape)};
    const ow_loop turned = ow_rowwise_turned(s, shape[nd - 1]);
    if (turned)
        job.loop = turned;
    job.bytes = ow_rowwise_bytes(s, shape[nd - 1], turned != NULL);
    job.context = (ow_rowwise_context){shape[nd - 1],     s->scratch,         along,
                                       ow_rowwise_gather, ow_rowwise_scatter, {0}};
    for (int k = 0; k < p->reducers.count; k++)
        job.context.reducers[k] = (ow_loop)ow_kernels->reducers[ow_rowwise_reducers(p)[k]].loop;
    char *free_memory = s->scratch + job.bytes * job.chunks;
    for (int k = 0; k < s->nout; k++)
        slots[k] = s->out[k];
    const int broken = turned && ow_rowwise_is_broken(s, shape);
    for (int i = 0; i < s->nin; i++) {
        slots[s->nout + i] = s->in[i];
        if (turned ? !broken : ow_rowwise_direct(s->in[i]))
            continue;
        ow_slot all = *s->in[i], *copy = slots[s->nout + i] = &copies[i];
        if (broken)
            ow_rowwise_spread(&all, s->in[i], shape, nd);
        *copy = all;
        copy->data = (char *)(((uintptr_t)free_memory + OW_ROWWISE_LINE - 1) / OW_ROWWISE_LINE *
                              OW_ROWWISE_LINE);
        ow_c_strides(copy);
        free_memory = copy->data + ow_size(copy) * copy->itemsize;
        ow_copy(copy, &all);
    }
    for (int i = 0; i < s->nout + s->nin; i++)
        along[i] = slots[i]->strides[nd - 1];
    ow_walk w;
    if (!ow_walk_start(&w, nd - 1, shape, s->nout + s->nin, slots, 0))
        return OW_OK;
    job.w = &w;
    job.rows = w.shape[w.ndim - 1];
    job.runs = ow_walk_rows(&w);
    job.along = job.runs < job.chunks;
    ow_parallel(ow_rowwise_chunk, &job, job.chunks);
    return OW_OK;
}

#endif
