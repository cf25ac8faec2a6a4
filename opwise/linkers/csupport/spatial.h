/* Spatial transformers: grids of points that matrices move, and images sampled at such points.
 * Inputs have any strides; results are in C order. Points are (x, y), from -1 to 1.
 */
#ifndef OW_SPATIAL_H
#define OW_SPATIAL_H

#include "runtime.h"

/* Points whose neighbours are found before all channels are sampled there. */
#define OW_SPATIAL_BLOCK 64
/* Where a neighbour beside the image lies; strides may be negative, and so may places in it. */
#define OW_BESIDE INT64_MIN
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
        return OW_FAIL(s, OW_VALUE_ERROR,
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
        return OW_FAIL(s, OW_VALUE_ERROR,
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
    int64_t points, chunks;
    int nearest;
} ow_sampling;

/* The neighbours of a coordinate of the grid along an axis of `n` elements; -1: beside the image. */
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
            const T below = (T)floor((double)at);                                                  \
            next.weight = at - below;                                                              \
            next.first = (int64_t)below;                                                           \
            next.second = next.first + 1 < n ? next.first + 1 : nearest ? n - 1 : -1;              \
        }                                                                                          \
        return next;                                                                               \
    }                                                                                              \
    /* the four neighbours of points, and where they lie in a channel */                           \
    typedef struct ow_corner_##T {                                                                 \
        int64_t at[4];                                                                             \
        ow_next_##T y, x;                                                                          \
    } ow_corner_##T;                                                                               \
    static ow_corner_##T ow_corner_of_##T(const ow_sampling *q, int64_t n, int64_t point,          \
                                          int64_t row_bytes, int64_t column_bytes)                 \
    {                                                                                              \
        const ow_slot *g = q->grid;                                                                \
        const char *p = g->data + n * g->strides[0] + point / g->shape[2] * g->strides[1] +        \
                        point % g->shape[2] * g->strides[2];                                       \
        ow_corner_##T c;                                                                           \
        c.x = ow_next_to_##T(*(const T *)p, q->image->shape[3], q->nearest);                       \
        c.y = ow_next_to_##T(*(const T *)(p + g->strides[3]), q->image->shape[2], q->nearest);     \
        for (int k = 0; k < 4; k++) {                                                              \
            const int64_t y = k < 2 ? c.y.first : c.y.second, x = k % 2 ? c.x.second : c.x.first;  \
            c.at[k] = y < 0 || x < 0 ? OW_BESIDE : y * row_bytes + x * column_bytes;                     \
        }                                                                                          \
        return c;                                                                                  \
    }                                                                                              \
    static void ow_sample_##T(const ow_sampling *q, int64_t n, int64_t first, int64_t end)         \
    {                                                                                              \
        const ow_slot *x = q->image;                                                               \
        ow_corner_##T corners[OW_SPATIAL_BLOCK];                                                   \
        for (int64_t i = 0; i < end - first; i++)                                                  \
            corners[i] = ow_corner_of_##T(q, n, first + i, x->strides[2], x->strides[3]);          \
        for (int64_t c = 0; c < x->shape[1]; c++) {                                                \
            const char *plane = x->data + n * x->strides[0] + c * x->strides[1];                   \
            T *z = (T *)q->z->data + (n * x->shape[1] + c) * q->points + first;                    \
            for (int64_t i = 0; i < end - first; i++) {                                            \
                const ow_corner_##T *k = &corners[i];                                              \
                T v[4];                                                                            \
                for (int j = 0; j < 4; j++)                                                        \
                    v[j] = k->at[j] == OW_BESIDE ? 0 : *(const T *)(plane + k->at[j]);                      \
                const T across = k->x.weight, down = k->y.weight;                                  \
                z[i] = (v[0] * (1 - across) + v[1] * across) * (1 - down) +                        \
                       (v[2] * (1 - across) + v[3] * across) * down;                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void ow_sample_back_##T(const ow_sampling *q, int64_t n, int64_t first, int64_t end)    \
    {                                                                                              \
        const ow_slot *x = q->image, *dy = q->dy;                                                  \
        const int64_t lengths[2] = {x->shape[2], x->shape[3]};                                     \
        T *dgrid = (T *)q->dgrid->data + (n * q->points + first) * 2;                              \
        for (int64_t i = 0; i < end - first; i++) {                                                \
            const ow_corner_##T k = ow_corner_of_##T(q, n, first + i, lengths[1], 1);              \
            const int64_t row = (first + i) / dy->shape[3], column = (first + i) % dy->shape[3];   \
            const T across = k.x.weight, down = k.y.weight;                                        \
            const T weights[4] = {(1 - down) * (1 - across), (1 - down) * across,                  \
                                  down * (1 - across), down * across};                             \
            T sums[4] = {0};                                                                       \
            for (int64_t c = 0; c < x->shape[1]; c++) {                                            \
                const T g = *(const T *)(dy->data + n * dy->strides[0] + c * dy->strides[1] +      \
                                         row * dy->strides[2] + column * dy->strides[3]);          \
                const char *plane = x->data + n * x->strides[0] + c * x->strides[1];               \
                T *to = (T *)q->z->data + (n * x->shape[1] + c) * lengths[0] * lengths[1];         \
                for (int j = 0; j < 4; j++)                                                        \
                    if (k.at[j] != OW_BESIDE) {                                                            \
                        const int64_t y = k.at[j] / lengths[1], z = k.at[j] % lengths[1];          \
                        sums[j] += g * *(const T *)(plane + y * x->strides[2] + z * x->strides[3]); \
                        to[k.at[j]] += g * weights[j];                                             \
                    }                                                                              \
            }                                                                                      \
            dgrid[2 * i] = ((sums[1] - sums[0]) * (1 - down) + (sums[3] - sums[2]) * down) *       \
                           k.x.change;                                                             \
            dgrid[2 * i + 1] = ((sums[2] - sums[0]) * (1 - across) +                               \
                                (sums[3] - sums[1]) * across) * k.y.change;                        \
        }                                                                                          \
    }
OW_SPATIAL(float)
OW_SPATIAL(double)

/* Check shapes: in: images, grid[, gradients by the samples] */
static int ow_sampling_check(ow_step *s, ow_sampling *q)
{
    const ow_slot *x = q->image = s->in[0], *g = q->grid = s->in[1];
    q->nearest = (int)s->ints[0];
    q->points = g->shape[1] * g->shape[2];
    if (g->shape[3] != 2)
        return OW_FAIL(s, OW_VALUE_ERROR,
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
    q->chunks = ow_chunks(each * (double)x->shape[0] * (double)q->points);
    return OW_OK;
}

static int ow_sample_prep(ow_step *s)
{
    ow_sampling q;
    const int rc = ow_sampling_check(s, &q);
    const int64_t shape[4] = {q.image->shape[0], q.image->shape[1], q.grid->shape[1], q.grid->shape[2]};
    ow_set_shape(s->out[0], 4, shape);
    return rc ? rc : ow_ensure(s, s->out[0]);
}

static void ow_sample_chunk(void *arg, int64_t chunk)
{
    const ow_sampling *q = arg;
    const int64_t blocks = (q->points + OW_SPATIAL_BLOCK - 1) / OW_SPATIAL_BLOCK;
    int64_t end, k = ow_chunk_range(chunk, q->chunks, q->image->shape[0] * blocks, 1, &end);
    for (; k < end; k++) {
        const int64_t first = k % blocks * OW_SPATIAL_BLOCK, left = q->points - first;
        const int64_t until = first + (left < OW_SPATIAL_BLOCK ? left : OW_SPATIAL_BLOCK);
        if (q->z->itemsize == 8)
            ow_sample_double(q, k / blocks, first, until);
        else
            ow_sample_float(q, k / blocks, first, until);
    }
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
    const int64_t shape[4] = {q.image->shape[0], q.image->shape[1], q.grid->shape[1], q.grid->shape[2]};
    for (int d = 0; d < 4; d++)
        if (s->in[2]->shape[d] != shape[d])
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "the gradient by the samples has shape (%lld, %lld, %lld, %lld), not (%lld, %lld, "
                           "%lld, %lld)",
                           (long long)s->in[2]->shape[0], (long long)s->in[2]->shape[1],
                           (long long)s->in[2]->shape[2], (long long)s->in[2]->shape[3],
                           (long long)shape[0], (long long)shape[1], (long long)shape[2],
                           (long long)shape[3]);
    ow_set_shape(s->out[0], 4, s->in[0]->shape);
    ow_set_shape(s->out[1], 4, s->in[1]->shape);
    rc = ow_ensure(s, s->out[0]);
    return rc ? rc : ow_ensure(s, s->out[1]);
}

static void ow_sample_back_chunk(void *arg, int64_t chunk)
{
    const ow_sampling *q = arg;
    int64_t end, n = ow_chunk_range(chunk, q->chunks, q->image->shape[0], 1, &end);
    const int64_t bytes = q->image->shape[1] * q->image->shape[2] * q->image->shape[3] * q->z->itemsize;
    for (; n < end; n++) {
        memset(q->z->data + n * bytes, 0, (size_t)bytes);
        if (q->z->itemsize == 8)
            ow_sample_back_double(q, n, 0, q->points);
        else
            ow_sample_back_float(q, n, 0, q->points);
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
