/* The steps of pooling and of its gradients; how a plane is computed is in pool_rows.h, and how
 * small planes are, in pool_planes.h. Arrays have any strides; windows slide over the last axes,
 * one to three, others are planes. */
#ifndef OW_POOL_H
#define OW_POOL_H

#include "copy.h"
#include "simd.h"
#include "step_params.h"

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
    const ow_pool_params *p = s->params;
    const ow_slot *x = s->in[0];
    q->axes = (int)p->axes;
    q->mode = (int)p->mode;
    q->planes = 1;
    for (int d = 0; d < x->ndim - q->axes; d++)
        q->planes *= x->shape[d];
    for (int d = 0; d < 3; d++) {
        const int own = d - (3 - q->axes);
        const int64_t w = q->w[d] = p->lengths[d];
        const int64_t step = q->s[d] = p->steps[d];
        q->p[d] = p->pads[d];
        q->n[d] = own < 0 ? 1 : x->shape[x->ndim - q->axes + own];
        const int64_t n = q->n[d] + 2 * q->p[d];
        if (p->within)
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

/* Elements of a band of an image: lines of so many stay in the second cache. */
#define OW_POOL_BAND 4096

typedef struct ow_pool_job {
    const ow_pool *q;
    ow_step *s;
    int64_t together, units,
        chunks; /* planes side by side; units of work, and into how many chunks they go */
    int failed;
} ow_pool_job;

static inline int64_t ow_pool_elements(const int64_t *n) { return n[0] * n[1] * n[2]; }

/* How many planes are computed side by side. 1: the kernels of single planes are faster, which is
 * so in long rows, except for what meets many windows. */
static inline int64_t ow_pool_together(const ow_pool *q, int64_t itemsize, int back)
{
    const int64_t line = OW_POOL_LINE / itemsize;
    if (2 * q->planes < line)
        return 1;
    if (q->n[2] >= 2 * line && q->p[2] == 0 && q->s[2] == 2 &&
        (q->w[2] == 2 || (q->w[2] == 3 && !back)))
        return 1;
    if (ow_pool_elements(q->n) <= OW_POOL_BAND)
        return line;
    /* planes of three axes are not cut into bands */
    const int is_cut = back && q->n[0] == 1 && q->w[1] * q->n[2] <= 4 * OW_POOL_BAND;
    return is_cut && q->w[2] > 1 && q->s[2] == 1 ? line : 1;
}

/* Rows of the image in a band of a gradient: all of them in small planes. */
static inline int64_t ow_pool_band_rows(const ow_pool *q)
{
    if (q->n[0] > 1 || ow_pool_elements(q->n) <= OW_POOL_BAND) /* which may be 0 */
        return q->n[1];
    const int64_t rows = OW_POOL_BAND / q->n[2];
    return rows > q->w[1] ? rows : q->w[1];
}

/* Band number k of so many rows, and the rows of results that it meets. */
static ow_pool_band ow_pool_find_band(const ow_pool *q, int64_t k, int64_t rows)
{
    const int64_t s = q->s[1], n = q->n[1], out = q->out[1];
    ow_pool_band b = {k * rows, (k + 1) * rows < n ? (k + 1) * rows : n, 0, out};
    if (rows >= n)
        return b;
    const int64_t low = b.first + q->p[1], high = b.end - 1 + q->p[1];
    const int64_t from = low < q->w[1] ? 0 : (low - q->w[1] + s) / s, until = high / s + 1;
    b.from = from < out ? from : out;
    b.until = until < b.from ? b.from : until < out ? until : out;
    return b;
}

/* ns: nanoseconds for each element of an image and for each one that a window meets, as measured */
static int64_t ow_pool_chunks(const ow_pool *q, int64_t together, double ns, double ns_met)
{
    const double met = (double)ow_pool_elements(q->out) * (double)ow_pool_elements(q->w);
    const double elements = (double)ow_pool_elements(q->n), planes = (double)q->planes;
    return ow_chunks(planes * (together > 1 ? ns * elements + ns_met * met : 0.25 * met));
}

/* Put rows `first` to `end` of so many planes from number k on side by side. n: the lengths of a
 * plane. */
static void ow_pool_turn(const ow_slot *c, int axes, int64_t k, int64_t planes, const int64_t *n,
                         int64_t first, int64_t end, char *to)
{
    const int64_t size = c->itemsize, bytes = ow_pool_elements(n) * size, rows = end - first;
    const int64_t elements = n[0] * rows * n[2]; /* of three axes, all rows */
    if (planes * size < OW_POOL_LINE)
        memset(to, 0, (size_t)(elements * OW_POOL_LINE));
    if (ow_is_c_contiguous(c)) {
        const char *from = c->data + k * bytes + first * n[2] * size;
        const ow_tile tile = {elements, planes, from, bytes, to, OW_POOL_LINE, NULL};
        ow_copy_tile(&tile, size, size, size);
        return;
    }
    for (int64_t m = 0; m < planes; m++, to += size) {
        const ow_plane plane = ow_pool_plane(c, axes, k + m);
        for (int64_t i = 0; i < n[0] * rows; i++) {
            char *row = plane.data + i / rows * plane.at[0] + (first + i % rows) * plane.at[1];
            char *p[2] = {to + i * n[2] * OW_POOL_LINE, row};
            ow_copy_run(p, (int64_t[]){OW_POOL_LINE, plane.at[2]}, n[2], (int)size);
        }
    }
}

/* The other way, to an array whose elements lie side by side. */
static void ow_pool_turn_back(const char *from, int64_t k, int64_t planes, const int64_t *n,
                              int64_t first, int64_t end, ow_slot *z)
{
    const int64_t size = z->itemsize, bytes = ow_pool_elements(n) * size;
    char *to = z->data + k * bytes + first * n[2] * size;
    const ow_tile tile = {planes, n[0] * (end - first) * n[2], from, OW_POOL_LINE, to, bytes, NULL};
    ow_copy_tile(&tile, size, size, size);
}

/* Memory of one chunk, or NULL. */
static char *ow_pool_memory(ow_pool_job *job, int64_t bytes)
{
    char *memory = ow_alloc(bytes);
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

static void ow_pool_chunk_together(ow_pool_job *job, int64_t unit, int64_t end)
{
    const ow_pool *q = job->q;
    ow_slot *z = job->s->out[0];
    const int64_t n = ow_pool_elements(q->n), out = ow_pool_elements(q->out);
    char *x = ow_pool_memory(job, (n + out + q->n[2]) * OW_POOL_LINE);
    char *result = x + n * OW_POOL_LINE, *row = result + out * OW_POOL_LINE;
    for (; x != NULL && unit < end; unit++) {
        const int64_t k = unit * job->together, left = q->planes - k;
        const int64_t planes = left < job->together ? left : job->together;
        ow_pool_turn(job->s->in[0], q->axes, k, planes, q->n, 0, q->n[1], x);
        ow_kernels->pool_planes[z->itemsize == 8](q, x, result, row);
        ow_pool_turn_back(result, k, planes, q->out, 0, q->out[1], z);
    }
    ow_free(x);
}

static void ow_pool_chunk(void *arg, int64_t chunk)
{
    ow_pool_job *job = arg;
    const ow_pool *q = job->q;
    ow_slot *z = job->s->out[0];
    const int64_t bytes = ow_pool_elements(q->out) * z->itemsize;
    int64_t end, k = ow_chunk_range(chunk, job->chunks, job->units, 1, &end);
    if (job->together > 1) {
        ow_pool_chunk_together(job, k, end);
        return;
    }
    char *memory = ow_pool_memory(job, ow_pool_room(q) * z->itemsize);
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
    const int64_t together = ow_pool_together(&q, s->out[0]->itemsize, 0);
    const int64_t units = (q.planes + together - 1) / together;
    ow_pool_job job = {&q, s, together, units, ow_pool_chunks(&q, together, 0.2, 0.03), 0};
    return ow_pool_share(&job, ow_pool_chunk);
}

static void ow_pool_back_bands(ow_pool_job *job, const ow_slot *gz, int64_t unit, int64_t end)
{
    const ow_pool *q = job->q;
    const ow_step *s = job->s;
    ow_slot *z = s->out[0];
    const int64_t rows = ow_pool_band_rows(q), bands = (q->n[1] + rows - 1) / rows;
    const int64_t met = bands > 1 ? (rows + q->w[1]) / q->s[1] + 1 : q->out[1];
    const int64_t n = q->n[0] * rows * q->n[2],
                  out = q->out[0] * (met < q->out[1] ? met : q->out[1]) * q->out[2];
    char *x = ow_pool_memory(job, 2 * (n + out) * OW_POOL_LINE);
    char *image = x + n * OW_POOL_LINE, *g = image + n * OW_POOL_LINE,
         *maxima = g + out * OW_POOL_LINE;
    for (; x != NULL && unit < end; unit++) {
        const int64_t k = unit / bands * job->together, left = q->planes - k;
        const int64_t planes = left < job->together ? left : job->together;
        const ow_pool_band band = ow_pool_find_band(q, unit % bands, rows);
        ow_pool_turn(gz, q->axes, k, planes, q->out, band.from, band.until, g);
        if (q->mode == OW_POOL_MAX) {
            ow_pool_turn(s->in[0], q->axes, k, planes, q->n, band.first, band.end, x);
            ow_pool_turn(s->in[1], q->axes, k, planes, q->out, band.from, band.until, maxima);
        }
        ow_kernels->pool_back_planes[z->itemsize == 8](q, &band, x, maxima, g, image);
        ow_pool_turn_back(image, k, planes, q->n, band.first, band.end, z);
    }
    ow_free(x);
}

static void ow_pool_back_chunk(void *arg, int64_t chunk)
{
    ow_pool_job *job = arg;
    const ow_pool *q = job->q;
    const ow_step *s = job->s;
    ow_slot *z = s->out[0];
    const ow_slot *gz = s->in[q->mode == OW_POOL_MAX ? 2 : 1];
    const int64_t bytes = ow_pool_elements(q->n) * z->itemsize;
    int64_t end, k = ow_chunk_range(chunk, job->chunks, job->units, 1, &end);
    if (job->together > 1) {
        ow_pool_back_bands(job, gz, k, end);
        return;
    }
    char *memory = ow_pool_memory(job, ow_pool_back_room(q) * z->itemsize);
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
                return OW_FAIL(
                    s, OW_VALUE_ERROR,
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
    const int64_t together = ow_pool_together(&q, s->out[0]->itemsize, 1);
    const int64_t rows = ow_pool_band_rows(&q),
                  bands = together > 1 && rows ? (q.n[1] + rows - 1) / rows : 1;
    const int64_t units = (q.planes + together - 1) / together * bands;
    ow_pool_job job = {&q, s, together, units, ow_pool_chunks(&q, together, 0.5, 0.06), 0};
    return ow_pool_share(&job, ow_pool_back_chunk);
}

#endif
