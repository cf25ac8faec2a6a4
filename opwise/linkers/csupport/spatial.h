/* Spatial transformers: grids of points that matrices move, and images sampled at such points.
 * Inputs have any strides; results are in C order. Points are (x, y), from -1 to 1.
 */
#ifndef OW_SPATIAL_H
#define OW_SPATIAL_H

#include "runtime.h"
#include "step_params.h"

/* Points whose neighbours are found before all channels are sampled there. */
#define OW_SPATIAL_BLOCK 64
/* ns of work for a point, and for each channel of it */
#define OW_SPATIAL_POINT_NS 8.0
#define OW_SPATIAL_VALUE_NS 2.0

/* Element `i` of `n` numbers from -1 to 1; the only one is -1. */
static inline double ow_spatial_at(int64_t i, int64_t n)
{
    return n < 2 ? -1 : i == n - 1 ? 1 : -1 + (double)i * (2 / (double)(n - 1));
}

/* in: theta (batch, 2, 3), the shape of the result */
static int ow_grid_run(ow_step *s)
{
    const ow_slot *theta = s->in[0], *dims = s->in[1];
    ow_slot *z = s->out[0];
    int64_t shape[4] = {0};
    if (dims->shape[0] != 4)
        return OW_FAIL(s, OW_VALUE_ERROR, "out_dims must be four lengths, not %lld",
                       (long long)dims->shape[0]);
    for (int d = 0; d < 4; d++) {
        shape[d] = *(int64_t *)(dims->data + d * dims->strides[0]);
        if (shape[d] < 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "out_dims has the length %lld", (long long)shape[d]);
    }
    if (theta->shape[0] != shape[0] || theta->shape[1] != 2 || theta->shape[2] != 3)
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "theta must have shape (%lld, 2, 3), a matrix for each image, not (%lld, %lld, %lld)",
            (long long)shape[0], (long long)theta->shape[0], (long long)theta->shape[1],
            (long long)theta->shape[2]);
    const int64_t lengths[4] = {shape[0], shape[2], shape[3], 2};
    ow_set_shape(z, 4, lengths);
    const int rc = ow_ensure(s, z);
    if (rc || ow_size(z) == 0)
        return rc;
    const int f64 = z->itemsize == 8;
    char *to = z->data;
    for (int64_t n = 0; n < shape[0]; n++) {
        double m[2][3];
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 3; k++) {
                const char *p = theta->data + n * theta->strides[0] + j * theta->strides[1] +
                                k * theta->strides[2];
                m[j][k] = f64 ? *(const double *)p : *(const float *)p;
            }
        for (int64_t h = 0; h < shape[2]; h++) {
            const double y = ow_spatial_at(h, shape[2]);
            for (int64_t w = 0; w < shape[3]; w++) {
                const double x = ow_spatial_at(w, shape[3]);
                for (int j = 0; j < 2; j++, to += z->itemsize) {
                    const double value = m[j][0] * x + m[j][1] * y + m[j][2];
                    if (f64)
                        *(double *)to = value;
                    else
                        *(float *)to = (float)value;
                }
            }
        }
    }
    return OW_OK;
}

/* in: gradients by a grid (batch, rows, columns, 2) */
static int ow_grid_gradient_prep(ow_step *s)
{
    const ow_slot *g = s->in[0];
    if (g->shape[3] != 2)
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "dgrid must have the shape (batch, rows, columns, 2), not (%lld, %lld, %lld, %lld)",
            (long long)g->shape[0], (long long)g->shape[1], (long long)g->shape[2],
            (long long)g->shape[3]);
    const int64_t lengths[3] = {g->shape[0], 2, 3};
    ow_set_shape(s->out[0], 3, lengths);
    return ow_ensure(s, s->out[0]);
}

static int ow_grid_gradient_run(ow_step *s)
{
    const ow_slot *g = s->in[0];
    ow_slot *z = s->out[0];
    const int f64 = z->itemsize == 8;
    for (int64_t n = 0; n < g->shape[0]; n++) {
        double m[2][3] = {{0}};
        for (int64_t h = 0; h < g->shape[1]; h++) {
            const double y = ow_spatial_at(h, g->shape[1]);
            const char *row = g->data + n * g->strides[0] + h * g->strides[1];
            for (int64_t w = 0; w < g->shape[2]; w++, row += g->strides[2]) {
                const double x = ow_spatial_at(w, g->shape[2]);
                for (int j = 0; j < 2; j++) {
                    const char *p = row + j * g->strides[3];
                    const double value = f64 ? *(const double *)p : *(const float *)p;
                    m[j][0] += value * x;
                    m[j][1] += value * y;
                    m[j][2] += value;
                }
            }
        }
        for (int k = 0; k < 6; k++)
            if (f64)
                ((double *)z->data)[n * 6 + k] = m[k / 3][k % 3];
            else
                ((float *)z->data)[n * 6 + k] = (float)m[k / 3][k % 3];
    }
    return OW_OK;
}

typedef struct ow_sampling {
    const ow_slot *image, *grid, *dy;
    ow_slot *z, *dgrid;
    int64_t chunks;
    int nearest;
} ow_sampling;

/* Part of a row of points. */
typedef struct ow_points {
    int64_t n, row, first, count;
} ow_points;

/* OW_SPATIAL(T) samples such parts. A point has two neighbours along each axis; those beside the
 * image are -1. `corners` are the places of the four, in bytes of a channel of the image or, for
 * gradients, in elements of a channel in C order. Without neighbours beside the image no place is
 * looked at. */
#define OW_SPATIAL(T)                                                                              \
    typedef struct ow_next_##T {                                                                   \
        int64_t first, second;                                                                     \
        T weight, change;                                                                          \
    } ow_next_##T;                                                                                 \
    static inline ow_next_##T ow_next_to_##T(T coordinate, int64_t n, int nearest)                 \
    {                                                                                              \
        const T scale = (T)((double)(n - 1) / 2), last = (T)(n - 1);                               \
        T at = (coordinate + 1) * scale;                                                           \
        ow_next_##T next = {-1, -1, 0, scale};                                                     \
        if (nearest) {                                                                             \
            next.change = at >= 0 && at <= last ? scale : 0;                                       \
            at = at > 0 ? at : 0;                                                                  \
            at = at < last ? at : last;                                                            \
        }                                                                                          \
        if (at > -1 && at < (T)n) {                                                                \
            next.first = at < 0 ? -1 : (int64_t)at;                                                \
            next.weight = at - (T)next.first;                                                      \
            next.second = next.first + 1 < n ? next.first + 1 : nearest ? n - 1 : -1;              \
        }                                                                                          \
        return next;                                                                               \
    }                                                                                              \
    typedef struct ow_corners_##T {                                                                \
        int64_t at[OW_SPATIAL_BLOCK][4], to[OW_SPATIAL_BLOCK][4];                                  \
        T across[OW_SPATIAL_BLOCK], down[OW_SPATIAL_BLOCK];                                        \
        T by_x[OW_SPATIAL_BLOCK], by_y[OW_SPATIAL_BLOCK];                                          \
        int all_inside;                                                                            \
    } ow_corners_##T;                                                                              \
    static void ow_find_corners_##T(const ow_sampling *q, const ow_points *p, ow_corners_##T *c)   \
    {                                                                                              \
        const ow_slot *g = q->grid, *x = q->image;                                                 \
        const char *at =                                                                           \
            g->data + p->n * g->strides[0] + p->row * g->strides[1] + p->first * g->strides[2];    \
        int64_t least = 0;                                                                         \
        for (int64_t i = 0; i < p->count; i++, at += g->strides[2]) {                              \
            const ow_next_##T h = ow_next_to_##T(*(const T *)at, x->shape[3], q->nearest);         \
            const ow_next_##T v =                                                                  \
                ow_next_to_##T(*(const T *)(at + g->strides[3]), x->shape[2], q->nearest);         \
            const int64_t ys[2] = {v.first, v.second}, xs[2] = {h.first, h.second};                \
            for (int k = 0; k < 4; k++) {                                                          \
                const int64_t a = ys[k / 2], b = xs[k % 2], beside = a < 0 || b < 0;               \
                c->at[i][k] = a * x->strides[2] + b * x->strides[3];                               \
                c->to[i][k] = beside ? -1 : a * x->shape[3] + b;                                   \
                least = c->to[i][k] < least ? c->to[i][k] : least;                                 \
            }                                                                                      \
            c->across[i] = h.weight;                                                               \
            c->down[i] = v.weight;                                                                 \
            c->by_x[i] = h.change;                                                                 \
            c->by_y[i] = v.change;                                                                 \
        }                                                                                          \
        c->all_inside = least == 0;                                                                \
    }                                                                                              \
    static void ow_sample_##T(const ow_sampling *q, const ow_points *p)                            \
    {                                                                                              \
        const ow_slot *x = q->image;                                                               \
        const int64_t width = q->grid->shape[2];                                                   \
        ow_corners_##T c;                                                                          \
        ow_find_corners_##T(q, p, &c);                                                             \
        for (int64_t k = 0; k < x->shape[1]; k++) {                                                \
            const char *plane = x->data + p->n * x->strides[0] + k * x->strides[1];                \
            T *z = (T *)q->z->data +                                                               \
                   ((p->n * x->shape[1] + k) * q->grid->shape[1] + p->row) * width + p->first;     \
            for (int64_t i = 0; i < p->count; i++) {                                               \
                T v[4];                                                                            \
                for (int j = 0; j < 4; j++)                                                        \
                    v[j] = c.all_inside || c.to[i][j] >= 0 ? *(const T *)(plane + c.at[i][j]) : 0; \
                const T across = c.across[i], down = c.down[i];                                    \
                z[i] = (v[0] * (1 - across) + v[1] * across) * (1 - down) +                        \
                       (v[2] * (1 - across) + v[3] * across) * down;                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void ow_sample_back_##T(const ow_sampling *q, const ow_points *p)                       \
    {                                                                                              \
        const ow_slot *x = q->image, *dy = q->dy;                                                  \
        const int64_t size = x->shape[2] * x->shape[3];                                            \
        T sums[OW_SPATIAL_BLOCK][4] = {{0}};                                                       \
        ow_corners_##T c;                                                                          \
        ow_find_corners_##T(q, p, &c);                                                             \
        for (int64_t k = 0; k < x->shape[1]; k++) {                                                \
            const char *plane = x->data + p->n * x->strides[0] + k * x->strides[1];                \
            const char *from = dy->data + p->n * dy->strides[0] + k * dy->strides[1] +             \
                               p->row * dy->strides[2] + p->first * dy->strides[3];                \
            T *to = (T *)q->z->data + (p->n * x->shape[1] + k) * size;                             \
            for (int64_t i = 0; i < p->count; i++, from += dy->strides[3]) {                       \
                const T g = *(const T *)from, across = c.across[i], down = c.down[i];              \
                const T upper = g * (1 - down), lower = g * down;                                  \
                const T parts[4] = {upper * (1 - across), upper * across, lower * (1 - across),    \
                                    lower * across};                                               \
                for (int j = 0; j < 4; j++)                                                        \
                    if (c.all_inside || c.to[i][j] >= 0) {                                         \
                        sums[i][j] += g * *(const T *)(plane + c.at[i][j]);                        \
                        to[c.to[i][j]] += parts[j];                                                \
                    }                                                                              \
            }                                                                                      \
        }                                                                                          \
        T *dgrid = (T *)q->dgrid->data +                                                           \
                   ((p->n * q->grid->shape[1] + p->row) * q->grid->shape[2] + p->first) * 2;       \
        for (int64_t i = 0; i < p->count; i++) {                                                   \
            const T *v = sums[i], across = c.across[i], down = c.down[i];                          \
            dgrid[2 * i] = ((v[1] - v[0]) * (1 - down) + (v[3] - v[2]) * down) * c.by_x[i];        \
            dgrid[2 * i + 1] =                                                                     \
                ((v[2] - v[0]) * (1 - across) + (v[3] - v[1]) * across) * c.by_y[i];               \
        }                                                                                          \
    }
OW_SPATIAL(float)
OW_SPATIAL(double)

/* Call a function on the parts of row `row` of the points of image `n`. */
static inline void ow_each_part(const ow_sampling *q, int64_t n, int64_t row,
                                void (*each)(const ow_sampling *, const ow_points *))
{
    const int64_t width = q->grid->shape[2];
    for (int64_t first = 0; first < width; first += OW_SPATIAL_BLOCK) {
        const int64_t left = width - first;
        const ow_points p = {n, row, first, left < OW_SPATIAL_BLOCK ? left : OW_SPATIAL_BLOCK};
        each(q, &p);
    }
}

/* Check shapes: in: images, grid[, gradients by the samples] */
static int ow_sampling_check(ow_step *s, ow_sampling *q)
{
    const ow_slot *x = q->image = s->in[0], *g = q->grid = s->in[1];
    q->nearest = (int)OW_PARAMS(s, border)->mode;
    if (g->shape[3] != 2)
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "grid must have the shape (batch, rows, columns, 2), not (%lld, %lld, %lld, %lld)",
            (long long)g->shape[0], (long long)g->shape[1], (long long)g->shape[2],
            (long long)g->shape[3]);
    if (g->shape[0] != x->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "the grid is of %lld images, but there are %lld",
                       (long long)g->shape[0], (long long)x->shape[0]);
    if ((x->shape[2] < 1 || x->shape[3] < 1) && ow_size(g))
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "images of shape (%lld, %lld, %lld, %lld) have no elements to sample",
                       (long long)x->shape[0], (long long)x->shape[1], (long long)x->shape[2],
                       (long long)x->shape[3]);
    const double each = OW_SPATIAL_POINT_NS + OW_SPATIAL_VALUE_NS * (double)x->shape[1];
    q->chunks = ow_chunks(each * (double)x->shape[0] * (double)g->shape[1] * (double)g->shape[2]);
    return OW_OK;
}

static int ow_sample_prep(ow_step *s)
{
    ow_sampling q;
    const int rc = ow_sampling_check(s, &q);
    const int64_t shape[4] = {q.image->shape[0], q.image->shape[1], q.grid->shape[1],
                              q.grid->shape[2]};
    ow_set_shape(s->out[0], 4, shape);
    return rc ? rc : ow_ensure(s, s->out[0]);
}

static void ow_sample_chunk(void *arg, int64_t chunk)
{
    const ow_sampling *q = arg;
    const int64_t rows = q->grid->shape[1];
    int64_t end, k = ow_chunk_range(chunk, q->chunks, q->image->shape[0] * rows, 1, &end);
    for (; k < end; k++)
        ow_each_part(q, k / rows, k % rows,
                     q->z->itemsize == 8 ? ow_sample_double : ow_sample_float);
}

static int ow_sample_run(ow_step *s)
{
    ow_sampling q;
    const int rc = ow_sampling_check(s, &q);
    q.z = s->out[0];
    if (!rc && ow_size(q.z))
        ow_parallel(ow_sample_chunk, &q, q.chunks);
    return rc;
}

static int ow_sample_back_prep(ow_step *s)
{
    ow_sampling q;
    int rc = ow_sampling_check(s, &q);
    if (rc)
        return rc;
    const int64_t shape[4] = {q.image->shape[0], q.image->shape[1], q.grid->shape[1],
                              q.grid->shape[2]};
    for (int d = 0; d < 4; d++)
        if (s->in[2]->shape[d] != shape[d])
            return OW_FAIL(
                s, OW_VALUE_ERROR,
                "the gradient by the samples has shape (%lld, %lld, %lld, %lld), not (%lld, %lld, "
                "%lld, %lld)",
                (long long)s->in[2]->shape[0], (long long)s->in[2]->shape[1],
                (long long)s->in[2]->shape[2], (long long)s->in[2]->shape[3], (long long)shape[0],
                (long long)shape[1], (long long)shape[2], (long long)shape[3]);
    ow_set_shape(s->out[0], 4, s->in[0]->shape);
    ow_set_shape(s->out[1], 4, s->in[1]->shape);
    rc = ow_ensure(s, s->out[0]);
    return rc ? rc : ow_ensure(s, s->out[1]);
}

static void ow_sample_back_chunk(void *arg, int64_t chunk)
{
    const ow_sampling *q = arg;
    int64_t end, n = ow_chunk_range(chunk, q->chunks, q->image->shape[0], 1, &end);
    const int64_t bytes =
        q->image->shape[1] * q->image->shape[2] * q->image->shape[3] * q->z->itemsize;
    for (; n < end; n++) {
        memset(q->z->data + n * bytes, 0, (size_t)bytes);
        for (int64_t row = 0; row < q->grid->shape[1]; row++)
            ow_each_part(q, n, row,
                         q->z->itemsize == 8 ? ow_sample_back_double : ow_sample_back_float);
    }
}

static int ow_sample_back_run(ow_step *s)
{
    ow_sampling q;
    const int rc = ow_sampling_check(s, &q);
    q.dy = s->in[2];
    q.z = s->out[0];
    q.dgrid = s->out[1];
    if (!rc && (ow_size(q.z) || ow_size(q.dgrid)))
        ow_parallel(ow_sample_back_chunk, &q, q.chunks);
    return rc;
}

#endif
