/* What the kernels of pooling get: where windows lie, and planes of arrays. */
#ifndef OW_POOL_PLAN_H
#define OW_POOL_PLAN_H

#include <stdint.h>

enum { OW_POOL_MAX, OW_POOL_SUM, OW_POOL_ALL, OW_POOL_INSIDE };

/* Windows over three axes: lengths of the image and of windows, steps, pads, windows along each. */
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

/* How many elements along an axis the average of window `i` is over. */
static inline int64_t ow_pool_length(const ow_pool *q, int d, int64_t i)
{
    int64_t first = i * q->s[d], end = first + q->w[d];
    const int64_t last = q->n[d] + (q->mode == OW_POOL_ALL ? 2 : 1) * q->p[d];
    if (q->mode == OW_POOL_INSIDE && first < q->p[d])
        first = q->p[d];
    return (end < last ? end : last) - first;
}

/* Elements that windows meet along the last axis, with pads. */
static inline int64_t ow_pool_met(const ow_pool *q) { return (q->out[2] - 1) * q->s[2] + q->w[2]; }

/* Elements from one row of `ow_pool_forward` to the next: windows of all rows are equally far
 * apart. */
static inline int64_t ow_pool_pitch(const ow_pool *q)
{
    return (ow_pool_met(q) + q->s[2] - 1) / q->s[2] * q->s[2];
}

/* Rows of results that are computed together, so that they stay in the first cache. */
#define OW_POOL_BLOCK 4096
static inline int64_t ow_pool_rows(const ow_pool *q)
{
    const int64_t rows = OW_POOL_BLOCK / ow_pool_pitch(q);
    return rows < 1 ? 1 : rows < q->out[1] ? rows : q->out[1];
}

/* Elements of a vector at most, by which buffers are longer than what they hold. */
#define OW_POOL_LANES 16
static inline int64_t ow_pool_room(const ow_pool *q)
{
    return ow_pool_rows(q) * ow_pool_pitch(q) + 2 * OW_POOL_LANES + q->out[2] + q->n[2];
}

/* Rows of results that a row of an image is in are kept, up to so many. */
#define OW_POOL_KEPT 16
typedef struct ow_pool_kept {
    int64_t met[2];       /* windows along the other axes that a row is in, at least: powers of 2 */
    int64_t rows, phases; /* how many are kept; windows along the last axis that an element is in */
    int64_t before, length; /* elements before the first one that a window meets; of each array */
} ow_pool_kept;

static inline ow_pool_kept ow_pool_keep(const ow_pool *q)
{
    ow_pool_kept k = {.phases = (q->w[2] + q->s[2] - 1) / q->s[2]};
    for (int d = 0; d < 2; d++)
        for (k.met[d] = 1; k.met[d] < OW_POOL_KEPT && k.met[d] * q->s[d] < q->w[d]; k.met[d] *= 2)
            ;
    k.rows = k.met[0] * k.met[1] < OW_POOL_KEPT ? k.met[0] * k.met[1] : OW_POOL_KEPT;
    k.before = k.phases * q->s[2];
    const int64_t met = q->out[2] * q->s[2], seen = q->n[2] + q->p[2];
    k.length = k.before + (met > seen ? met : seen) + 2 * OW_POOL_LANES;
    return k;
}

static inline int64_t ow_pool_back_room(const ow_pool *q)
{
    const ow_pool_kept k = ow_pool_keep(q);
    return 3 * k.rows * k.length + q->n[2] + 3 * q->out[2] + OW_POOL_LANES;
}

/* The result of one plane, at z. memory: ow_pool_room elements. */
typedef void (*ow_pool_forward_fn)(const ow_pool *q, const ow_plane *x, char *z, char *memory);
/* The gradient by one plane, at z, of gradients g by the result; maxima: the result, for
 * OW_POOL_MAX. memory: ow_pool_back_room elements. */
typedef void (*ow_pool_back_fn)(const ow_pool *q, const ow_plane *x, const ow_plane *maxima,
                                const ow_plane *g, char *z, char *memory);

/* Bytes of a line: an element of each of the planes that are pooled together. */
#define OW_POOL_LINE 64

/* Rows of an image from `first` to `end`, and the rows of results from `from` to `until` that they
 * meet: of these alone there are lines. */
typedef struct ow_pool_band {
    int64_t first, end, from, until;
} ow_pool_band;

/* As ow_pool_forward_fn for planes side by side, and ow_pool_back_fn for a band of them, see
 * pool_planes.h. memory: a line for each element of a row. Gradients g change. */
typedef void (*ow_pool_planes_fn)(const ow_pool *q, const char *x, char *z, char *memory);
typedef void (*ow_pool_back_planes_fn)(const ow_pool *q, const ow_pool_band *band, const char *x,
                                       const char *maxima, char *g, char *z);

#endif
