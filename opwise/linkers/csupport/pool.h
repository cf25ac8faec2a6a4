/* Pooling and its gradients, row by row of the result: each element of a window goes over a row of it.
 * Arrays have any strides; windows slide over the last axes, one to three, others are planes.
 */
#ifndef OW_POOL_H
#define OW_POOL_H

#include "runtime.h"

enum { OW_POOL_MAX, OW_POOL_SUM, OW_POOL_ALL, OW_POOL_INSIDE };

/* ints: axes, mode, whether windows that reach beyond the image are left out, and for three axes
 * lengths, steps and zeros before and behind */
enum { OW_POOL_AXES, OW_POOL_MODE, OW_POOL_WITHIN, OW_POOL_LENGTHS, OW_POOL_STEPS = 6, OW_POOL_PADS = 9 };

typedef struct ow_pool {
    int mode, axes;
    int64_t n[3], w[3], s[3], p[3], out[3];
    int64_t planes;
} ow_pool;

/* One plane of an array: where it begins, and the bytes along three axes. */
typedef struct ow_plane {
    char *data;
    int64_t at[3];
} ow_plane;

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
    }
}

/* Of the windows along an axis, those whose element `j` lies in the image: from *from to *to. */
static inline void ow_pool_met(const ow_pool *q, int d, int64_t j, int64_t *from, int64_t *to)
{
    const int64_t at = j - q->p[d], s = q->s[d], behind = q->n[d] - at;
    *from = at < 0 ? (-at + s - 1) / s : 0;
    *to = behind <= 0 ? 0 : (behind + s - 1) / s;
    *to = *to < q->out[d] ? *to : q->out[d];
}

/* How many elements along an axis the average of window `i` is over. */
static inline int64_t ow_pool_length(const ow_pool *q, int d, int64_t i)
{
    int64_t first = i * q->s[d], end = first + q->w[d];
    const int64_t last = q->n[d] + (q->mode == OW_POOL_ALL ? 2 : 1) * q->p[d];
    if (q->mode == OW_POOL_INSIDE && first < q->p[d])
        first = q->p[d];
    return (end < last ? end : last) - first;
}

/* Where row (i, j) of the windows' element (a, b) lies in a plane of the image; NULL: beside it */
static inline char *ow_pool_row(const ow_pool *q, const ow_plane *x, int64_t i, int64_t j, int64_t a,
                                int64_t b)
{
    const int64_t d = i * q->s[0] + a - q->p[0], h = j * q->s[1] + b - q->p[1];
    if (d < 0 || d >= q->n[0] || h < 0 || h >= q->n[1])
        return NULL;
    return x->data + d * x->at[0] + h * x->at[1];
}

#define OW_POOL_ROWS                                                                               \
    for (int64_t i = 0; i < q->out[0]; i++)                                                        \
        for (int64_t j = 0; j < q->out[1]; j++)

/* `row`, of element c of a window, meets windows `from` to `to` of a row of the result. */
#define OW_POOL_ELEMENTS(BODY)                                                                     \
    for (int64_t a = 0; a < q->w[0]; a++)                                                          \
        for (int64_t b = 0; b < q->w[1]; b++) {                                                    \
            char *row = ow_pool_row(q, &image, i, j, a, b);                                        \
            for (int64_t c = 0; row != NULL && c < q->w[2]; c++) {                                 \
                int64_t from, to;                                                                  \
                ow_pool_met(q, 2, c, &from, &to);                                                  \
                char *p = row + (from * q->s[2] + c - q->p[2]) * image.at[2];                      \
                const int64_t step = q->s[2] * image.at[2];                                        \
                BODY                                                                               \
            }                                                                                      \
        }

/* The longest rows of an image along which maxima and gradients are spread. */
#define OW_POOL_SPREAD 1024

/* Add gradients `g` of a row of the result to the elements of the image that are its maxima `m`. Both
 * are spread to all elements of the image, once for each element of a window that no two windows
 * share, so that rows of the image are compared and added without gaps. */
#define OW_POOL_SPREAD_ROWS(T)                                                                     \
    static void ow_pool_spread_##T(const ow_pool *q, const ow_plane *x, const char *m,             \
                                   int64_t m_step, const char *g, int64_t g_step,                  \
                                   const ow_plane *image, int64_t i, int64_t j, T *restrict memory) \
    {                                                                                              \
        T *restrict most = memory, *restrict to_add = memory + OW_POOL_SPREAD;                     \
        const int64_t n = q->n[2], s = q->s[2];                                                    \
        for (int64_t first = 0; first < q->w[2]; first += s) {                                     \
            const int64_t end = first + s < q->w[2] ? first + s : q->w[2];                         \
            memset(most, 0, sizeof(T) * (size_t)n);                                                \
            memset(to_add, 0, sizeof(T) * (size_t)n);                                              \
            for (int64_t c = first; c < end; c++) {                                                \
                int64_t from, to;                                                                  \
                ow_pool_met(q, 2, c, &from, &to);                                                  \
                const int64_t at = c - q->p[2];                                                    \
                for (int64_t k = from; k < to; k++) {                                              \
                    most[k * s + at] = *(const T *)(m + k * m_step);                               \
                    to_add[k * s + at] = *(const T *)(g + k * g_step);                             \
                }                                                                                  \
            }                                                                                      \
            for (int64_t a = 0; a < q->w[0]; a++)                                                  \
                for (int64_t b = 0; b < q->w[1]; b++) {                                            \
                    const T *restrict v = (const T *)ow_pool_row(q, x, i, j, a, b);                \
                    T *restrict z = (T *)ow_pool_row(q, image, i, j, a, b);                        \
                    if (v == NULL)                                                                 \
                        continue;                                                                  \
                    for (int64_t k = 0; k < n; k++) {                                              \
                        const T more = to_add[k];                                                  \
                        z[k] += v[k] == most[k] ? more : 0;                                        \
                    }                                                                              \
                }                                                                                  \
        }                                                                                          \
    }
OW_POOL_SPREAD_ROWS(float)
OW_POOL_SPREAD_ROWS(double)

#define OW_POOL(T, LEAST)                                                                          \
    static void ow_pool_plane_##T(const ow_pool *q, ow_plane image, T *z)                          \
    {                                                                                              \
        T rows_max[OW_POOL_SPREAD]; /* of the rows that a row of windows meets */                  \
        const int by_rows = q->n[2] <= OW_POOL_SPREAD && image.at[2] == sizeof(T);                 \
        OW_POOL_ROWS {                                                                             \
            T *sums = z + (i * q->out[1] + j) * q->out[2];                                         \
            for (int64_t k = 0; k < q->out[2]; k++)                                                \
                sums[k] = q->mode == OW_POOL_MAX ? (T)LEAST : 0;                                   \
            if (q->mode == OW_POOL_MAX && by_rows) {                                               \
                for (int64_t k = 0; k < q->n[2]; k++)                                              \
                    rows_max[k] = (T)LEAST;                                                        \
                for (int64_t a = 0; a < q->w[0]; a++)                                              \
                    for (int64_t b = 0; b < q->w[1]; b++) {                                        \
                        const T *v = (const T *)ow_pool_row(q, &image, i, j, a, b);                \
                        if (v == NULL)                                                             \
                            continue;                                                              \
                        for (int64_t k = 0; k < q->n[2]; k++)                                      \
                            rows_max[k] = v[k] > rows_max[k] || v[k] != v[k] ? v[k] : rows_max[k]; \
                    }                                                                              \
                for (int64_t c = 0; c < q->w[2]; c++) {                                            \
                    int64_t from, to;                                                              \
                    ow_pool_met(q, 2, c, &from, &to);                                              \
                    for (int64_t k = from; k < to; k++) {                                          \
                        const T value = rows_max[k * q->s[2] + c - q->p[2]];                       \
                        sums[k] = value > sums[k] || value != value ? value : sums[k];             \
                    }                                                                              \
                }                                                                                  \
            } else if (q->mode == OW_POOL_MAX)                                                     \
                OW_POOL_ELEMENTS(for (int64_t k = from; k < to; k++, p += step) {                  \
                    const T value = *(const T *)p;                                                 \
                    sums[k] = value > sums[k] || value != value ? value : sums[k];                 \
                })                                                                                 \
            else                                                                                   \
                OW_POOL_ELEMENTS(for (int64_t k = from; k < to; k++, p += step)                    \
                                     sums[k] += *(const T *)p;)                                    \
            if (q->mode < OW_POOL_ALL)                                                             \
                continue;                                                                          \
            const int64_t rows = ow_pool_length(q, 0, i) * ow_pool_length(q, 1, j);                \
            for (int64_t k = 0; k < q->out[2]; k++)                                                \
                sums[k] /= (T)(rows * ow_pool_length(q, 2, k));                                    \
        }                                                                                          \
    }                                                                                              \
    /* gradients `gz`, and maxima if there are some */                                             \
    static void ow_pool_back_##T(const ow_pool *q, ow_plane x, ow_plane maxima, ow_plane gz,       \
                                 ow_plane image)                                                   \
    {                                                                                              \
        T memory[2 * OW_POOL_SPREAD];                                                              \
        const int fits = q->n[2] <= OW_POOL_SPREAD && x.at[2] == sizeof(T);                        \
        T *spread = fits && image.at[2] == sizeof(T) ? memory : NULL;                              \
        OW_POOL_ROWS {                                                                             \
            const char *g = gz.data + i * gz.at[0] + j * gz.at[1];                                 \
            const int64_t rows = q->mode < OW_POOL_ALL                                             \
                                     ? 1 : ow_pool_length(q, 0, i) * ow_pool_length(q, 1, j);      \
            if (q->mode == OW_POOL_MAX) {                                                          \
                const char *m = maxima.data + i * maxima.at[0] + j * maxima.at[1];                 \
                const int64_t apart = q->s[2] * x.at[2];                                           \
                if (spread) {                                                                      \
                    ow_pool_spread_##T(q, &x, m, maxima.at[2], g, gz.at[2], &image, i, j, spread); \
                    continue;                                                                      \
                }                                                                                  \
                OW_POOL_ELEMENTS(                                                                  \
                    const char *v = ow_pool_row(q, &x, i, j, a, b);                                \
                    v += (from * q->s[2] + c - q->p[2]) * x.at[2];                                 \
                    for (int64_t k = from; k < to; k++, p += step, v += apart)                     \
                        if (*(const T *)v == *(const T *)(m + k * maxima.at[2]))                   \
                            *(T *)p += *(const T *)(g + k * gz.at[2]);)                            \
            } else if (q->mode == OW_POOL_SUM)                                                     \
                OW_POOL_ELEMENTS(for (int64_t k = from; k < to; k++, p += step)                    \
                                     *(T *)p += *(const T *)(g + k * gz.at[2]);)                   \
            else                                                                                   \
                OW_POOL_ELEMENTS(for (int64_t k = from; k < to; k++, p += step)                    \
                                     *(T *)p += *(const T *)(g + k * gz.at[2]) /                   \
                                                (T)(rows * ow_pool_length(q, 2, k));)              \
        }                                                                                          \
    }
OW_POOL(float, -INFINITY)
OW_POOL(double, -INFINITY)

typedef struct ow_pool_job {
    const ow_pool *q;
    ow_step *s;
    int64_t chunks;
} ow_pool_job;

static int64_t ow_pool_chunks(const ow_pool *q)
{
    double ns = (double)q->planes;
    for (int d = 0; d < 3; d++)
        ns *= (double)q->out[d] * (double)q->w[d];
    return ow_chunks(ns);
}

static void ow_pool_chunk(void *arg, int64_t chunk)
{
    const ow_pool_job *job = arg;
    const ow_pool *q = job->q;
    ow_slot *z = job->s->out[0];
    const int64_t size = q->out[0] * q->out[1] * q->out[2];
    int64_t end, k = ow_chunk_range(chunk, job->chunks, q->planes, 1, &end);
    for (; k < end; k++) {
        const ow_plane image = ow_pool_plane(job->s->in[0], q->axes, k);
        if (z->itemsize == 8)
            ow_pool_plane_double(q, image, (double *)z->data + k * size);
        else
            ow_pool_plane_float(q, image, (float *)z->data + k * size);
    }
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
    ow_pool_job job = {&q, s, ow_pool_chunks(&q)};
    if (ow_size(s->out[0]))
        ow_parallel(ow_pool_chunk, &job, job.chunks);
    return OW_OK;
}

static void ow_pool_back_chunk(void *arg, int64_t chunk)
{
    const ow_pool_job *job = arg;
    const ow_pool *q = job->q;
    const ow_step *s = job->s;
    const ow_slot *gz = s->in[q->mode == OW_POOL_MAX ? 2 : 1];
    int64_t end, k = ow_chunk_range(chunk, job->chunks, q->planes, 1, &end);
    for (; k < end; k++) {
        const ow_plane image = ow_pool_plane(s->out[0], q->axes, k), x = ow_pool_plane(s->in[0], q->axes, k);
        const ow_plane maxima = ow_pool_plane(s->in[1], q->axes, k), g = ow_pool_plane(gz, q->axes, k);
        const size_t bytes = (size_t)(q->n[0] * q->n[1] * q->n[2] * s->out[0]->itemsize);
        memset(image.data, 0, bytes);
        if (s->out[0]->itemsize == 8)
            ow_pool_back_double(q, x, maxima, g, image);
        else
            ow_pool_back_float(q, x, maxima, g, image);
    }
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
    ow_pool_job job = {&q, s, ow_pool_chunks(&q)};
    if (ow_size(s->out[0]))
        ow_parallel(ow_pool_back_chunk, &job, job.chunks);
    return OW_OK;
}

#endif
