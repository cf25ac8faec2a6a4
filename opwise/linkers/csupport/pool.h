/* The steps of pooling and of its gradients; how a plane is computed is in pool_rows.h. Arrays have any
 * strides; windows slide over the last axes, one to three, others are planes.
 */
#ifndef OW_POOL_H
#define OW_POOL_H

#include "simd.h"

/* ints: axes, mode, whether windows that reach beyond the image are left out, and for three axes
 * lengths, steps and zeros before and behind */
enum { OW_POOL_AXES, OW_POOL_MODE, OW_POOL_WITHIN, OW_POOL_LENGTHS, OW_POOL_STEPS = 6, OW_POOL_PADS = 9 };

static ow_plane ow_pool_plane(const ow_slot *c, int axes, int64_t k)
{
    ow_plane plane = {c->data, {0, 0, 0}};
    for (int d = 0; d < axes; d++)
        plane.at[3 - axes + d] = c->strides[c->ndim - axes + d];
    for (int d = c->ndim - axes - 1; d >= 0; d--) {
        plane.data += k % c->shape[d] * c->strides[d];
        k /= c->shape[d];
    }
    return plane;
}

static void ow_pool_plan(const ow_step *s, ow_pool *q)
{
    const ow_slot *x = s->in[0];
    q->axes = (int)s->ints[OW_POOL_AXES];
    q->mode = (int)s->ints[OW_POOL_MODE];
    q->planes = 1;
    for (int d = 0; d < x->ndim - q->axes; d++)
        q->planes *= x->shape[d];
    for (int d = 0; d < 3; d++) {
        const int own = d - (3 - q->axes);
        const int64_t w = q->w[d] = s->ints[OW_POOL_LENGTHS + d];
        const int64_t step = q->s[d] = s->ints[OW_POOL_STEPS + d];
        q->p[d] = s->ints[OW_POOL_PADS + d];
        q->n[d] = own < 0 ? 1 : x->shape[x->ndim - q->axes + own];
        const int64_t n = q->n[d] + 2 * q->p[d];
        if (s->ints[OW_POOL_WITHIN])
            q->out[d] = n < w ? 0 : (n - w) / step + 1;
        else {
            const int64_t to_end = n < w ? 1 : (n - w + step - 1) / step + 1;
            const int64_t begun = n < 1 ? 0 : (n - 1) / step + 1;
            q->out[d] = to_end < begun ? to_end : begun;
        }
        /* a window is no longer than the image, and a step from a single one leads nowhere */
        q->w[d] = w < n ? w : n > 1 ? n : 1;
        if (q->out[d] <= 1)
            q->s[d] = q->w[d];
    }
}

typedef struct ow_pool_job {
    const ow_pool *q;
    ow_step *s;
    int64_t chunks;
    int failed;
} ow_pool_job;

static int64_t ow_pool_chunks(const ow_pool *q)
{
    double ns = 0.25 * (double)q->planes;
    for (int d = 0; d < 3; d++)
        ns *= (double)q->out[d] * (double)q->w[d];
    return ow_chunks(ns);
}

/* Memory of one chunk, or NULL. */
static char *ow_pool_memory(ow_pool_job *job, int64_t elements)
{
    char *memory = ow_alloc(elements * job->s->out[0]->itemsize);
    if (memory == NULL)
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    return memory;
}

static int ow_pool_share(ow_pool_job *job, ow_task fn)
{
    ow_step *s = job->s;
    if (ow_size(s->out[0]))
        ow_parallel(fn, job, job->chunks);
    if (job->failed)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate rows of a pooling");
    return OW_OK;
}

static void ow_pool_chunk(void *arg, int64_t chunk)
{
    ow_pool_job *job = arg;
    const ow_pool *q = job->q;
    ow_slot *z = job->s->out[0];
    const int64_t bytes = q->out[0] * q->out[1] * q->out[2] * z->itemsize;
    char *memory = ow_pool_memory(job, ow_pool_room(q));
    int64_t end, k = ow_chunk_range(chunk, job->chunks, q->planes, 1, &end);
    for (; memory != NULL && k < end; k++) {
        const ow_plane image = ow_pool_plane(job->s->in[0], q->axes, k);
        ow_kernels->pool[z->itemsize == 8](q, &image, z->data + k * bytes, memory);
    }
    ow_free(memory);
}

/* in: an array */
static int ow_pool_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    ow_slot *z = s->out[0];
    ow_pool q;
    ow_pool_plan(s, &q);
    for (int d = 0; d < x->ndim; d++) {
        const int own = d - (x->ndim - q.axes);
        z->shape[d] = own < 0 ? x->shape[d] : q.out[3 - q.axes + own];
    }
    return ow_ensure(s, z);
}

static int ow_pool_run(ow_step *s)
{
    ow_pool q;
    ow_pool_plan(s, &q);
    ow_pool_job job = {&q, s, ow_pool_chunks(&q), 0};
    return ow_pool_share(&job, ow_pool_chunk);
}

static void ow_pool_back_chunk(void *arg, int64_t chunk)
{
    ow_pool_job *job = arg;
    const ow_pool *q = job->q;
    const ow_step *s = job->s;
    ow_slot *z = s->out[0];
    const ow_slot *gz = s->in[q->mode == OW_POOL_MAX ? 2 : 1];
    const int64_t bytes = q->n[0] * q->n[1] * q->n[2] * z->itemsize;
    char *memory = ow_pool_memory(job, ow_pool_back_room(q));
    int64_t end, k = ow_chunk_range(chunk, job->chunks, q->planes, 1, &end);
    for (; memory != NULL && k < end; k++) {
        const ow_plane x = ow_pool_plane(s->in[0], q->axes, k), g = ow_pool_plane(gz, q->axes, k);
        const ow_plane maxima = ow_pool_plane(s->in[1], q->axes, k);
        ow_kernels->pool_back[z->itemsize == 8](q, &x, &maxima, &g, z->data + k * bytes, memory);
    }
    ow_free(memory);
}

/* in: the array that was pooled, its maxima if these were computed, gradients by the result */
static int ow_pool_back_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    ow_pool q;
    ow_pool_plan(s, &q);
    for (int i = 1; i < (q.mode == OW_POOL_MAX ? 3 : 2); i++)
        for (int d = 0; d < x->ndim; d++) {
            const int own = d - (x->ndim - q.axes);
            const int64_t length = own < 0 ? x->shape[d] : q.out[3 - q.axes + own];
            if (s->in[i]->shape[d] != length)
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "an array by the windows has length %lld along axis %d, but the pooling "
                               "gives %lld",
                               (long long)s->in[i]->shape[d], d, (long long)length);
        }
    ow_set_shape(s->out[0], x->ndim, x->shape);
    return ow_ensure(s, s->out[0]);
}

static int ow_pool_back_run(ow_step *s)
{
    ow_pool q;
    ow_pool_plan(s, &q);
    ow_pool_job job = {&q, s, ow_pool_chunks(&q), 0};
    return ow_pool_share(&job, ow_pool_back_chunk);
}

#endif
