/* Neighbourhoods of images as rows of a matrix, and the sum of such rows into images.
 * Images and matrices have any strides.
 */
#ifndef OW_NEIGHBOURS_H
#define OW_NEIGHBOURS_H

#include "runtime.h"
#include "step_params.h"

enum { OW_NEIBS_VALID, OW_NEIBS_IGNORE, OW_NEIBS_WRAP, OW_NEIBS_HALF, OW_NEIBS_FULL };

/* ns of work for an element, and for a row of a neighbourhood */
#define OW_NEIBS_ELEMENT_NS 0.6
#define OW_NEIBS_ROW_NS 3.0

typedef struct ow_neibs {
    int64_t planes, channels;
    int64_t n[2], size[2], step[2], pad[2], grid[2];
    int wrap;
    const ow_slot *matrix;
    ow_slot *image;
    int64_t chunks;
} ow_neibs;

static int64_t ow_neibs_entry(const ow_slot *v, int64_t i)
{
    ow_slot one = *v;
    one.data += i * v->strides[0];
    return ow_int(&one);
}

/* Set the numbers of neighbourhoods from lengths of images, and from neib_shape and neib_step. */
static int ow_neibs_plan(ow_step *s, ow_neibs *q, const int64_t *shape, const ow_slot *sizes,
                         const ow_slot *steps)
{
    const int mode = (int)OW_PARAMS(s, border)->mode;
    q->channels = shape[1];
    q->planes = shape[0] * shape[1];
    q->wrap = mode == OW_NEIBS_WRAP;
    if (sizes->shape[0] != 2 || steps->shape[0] != 2)
        return OW_FAIL(s, OW_TYPE_ERROR, "%s must be two integers, not %lld",
                       sizes->shape[0] != 2 ? "neib_shape" : "neib_step",
                       (long long)(sizes->shape[0] != 2 ? sizes : steps)->shape[0]);
    for (int a = 0; a < 2; a++) {
        q->size[a] = ow_neibs_entry(sizes, a);
        q->step[a] = ow_neibs_entry(steps, a);
    }
    for (int a = 0; a < 2; a++)
        if (q->size[a] < 1 || q->step[a] < 1) {
            const int of_sizes = q->size[0] < 1 || q->size[1] < 1;
            const int64_t *pair = of_sizes ? q->size : q->step;
            return OW_FAIL(
                s, OW_VALUE_ERROR, "%s must be two integers of 1 or more, not [%lld, %lld]",
                of_sizes ? "neib_shape" : "neib_step", (long long)pair[0], (long long)pair[1]);
        }
    for (int a = 0; a < 2; a++) {
        const int64_t n = q->n[a] = shape[2 + a], size = q->size[a], step = q->step[a];
        char what[160];
        snprintf(
            what, sizeof what,
            "neib_shape[%d]=%lld and neib_step[%d]=%lld do not fit an image of length %lld along "
            "axis %d",
            a, (long long)size, a, (long long)step, (long long)n, a + 2);
        if (q->wrap && size % 2 == 0)
            return OW_FAIL(s, OW_TYPE_ERROR,
                           "%s: mode 'wrap_centered' needs odd lengths of neib_shape", what);
        if (mode != OW_NEIBS_IGNORE && n < size)
            return OW_FAIL(s, OW_TYPE_ERROR, "%s: the neighbourhood is larger than the image",
                           what);
        q->pad[a] = mode == OW_NEIBS_FULL              ? size - 1
                    : mode == OW_NEIBS_HALF || q->wrap ? size / 2
                                                       : 0;
        const int64_t rest = n + 2 * q->pad[a] - size;
        if (mode != OW_NEIBS_IGNORE && !q->wrap && rest % step)
            return OW_FAIL(
                s, OW_TYPE_ERROR,
                "%s: in mode '%s', %lld (the image with its zeros, less neib_shape) must be a "
                "multiple of neib_step; 'ignore_borders' leaves out the rest",
                what,
                mode == OW_NEIBS_VALID  ? "valid"
                : mode == OW_NEIBS_HALF ? "half"
                                        : "full",
                (long long)rest);
        q->grid[a] = q->wrap ? n / step + (n % step != 0) : rest < 0 ? 0 : rest / step + 1;
    }
    return OW_OK;
}

/* The place in the image of element `j` of neighbourhood `i` along an axis; -1: beside it */
static inline int64_t ow_neibs_place(const ow_neibs *q, int a, int64_t i, int64_t j)
{
    int64_t at = i * q->step[a] + j - q->pad[a];
    if (q->wrap)
        at = at < 0 ? at + q->n[a] : at >= q->n[a] ? at - q->n[a] : at;
    return at < 0 || at >= q->n[a] ? -1 : at;
}

/* A row of a neighbourhood whose elements lie side by side. Most rows are short: loops of a length
 * that the compiler knows have no overhead. */
#define OW_NEIBS_LOOP(T, p, m, n, MET)                                                             \
    for (int64_t j = 0; j < (n); j++) {                                                            \
        MET(T, (T *)(p) + j, (T *)(m) + j);                                                        \
    }
#define OW_NEIBS_ROW(T, p, m, n, MET)                                                              \
    do {                                                                                           \
        char *from_ = (p), *to_ = (m);                                                             \
        switch (n) {                                                                               \
        case 2:                                                                                    \
            OW_NEIBS_LOOP(T, from_, to_, 2, MET) break;                                            \
        case 3:                                                                                    \
            OW_NEIBS_LOOP(T, from_, to_, 3, MET) break;                                            \
        case 4:                                                                                    \
            OW_NEIBS_LOOP(T, from_, to_, 4, MET) break;                                            \
        case 5:                                                                                    \
            OW_NEIBS_LOOP(T, from_, to_, 5, MET) break;                                            \
        case 6:                                                                                    \
            OW_NEIBS_LOOP(T, from_, to_, 6, MET) break;                                            \
        case 7:                                                                                    \
            OW_NEIBS_LOOP(T, from_, to_, 7, MET) break;                                            \
        case 8:                                                                                    \
            OW_NEIBS_LOOP(T, from_, to_, 8, MET) break;                                            \
        default:                                                                                   \
            OW_NEIBS_LOOP(T, from_, to_, n, MET)                                                   \
        }                                                                                          \
    } while (0)

/* Do MET(T, pixel, element), or BESIDE(T, element) beside the image, for all elements of the
 * neighbourhoods of rows `first` to `end` of the grids of all planes. Elements of a neighbourhood's
 * row in the middle of an image need no checks. */
#define OW_NEIBS_EACH(T, MET, BESIDE)                                                              \
    const int64_t px = q->image->strides[3], mx = q->matrix->strides[1];                           \
    const int near = px == sizeof(T) && mx == sizeof(T);                                           \
    for (int64_t r = first; r < end; r++) {                                                        \
        const int64_t k = r / q->grid[0], a = r % q->grid[0];                                      \
        char *plane = q->image->data + k / q->channels * q->image->strides[0] +                    \
                      k % q->channels * q->image->strides[1];                                      \
        for (int64_t b = 0; b < q->grid[1]; b++) {                                                 \
            char *m = q->matrix->data + (r * q->grid[1] + b) * q->matrix->strides[0];              \
            const int64_t from = b * q->step[1] - q->pad[1];                                       \
            const int within = from >= 0 && from + q->size[1] <= q->n[1];                          \
            for (int64_t i = 0; i < q->size[0]; i++) {                                             \
                const int64_t y = ow_neibs_place(q, 0, a, i);                                      \
                char *row = plane + (y < 0 ? 0 : y) * q->image->strides[2];                        \
                if (y >= 0 && within && near) {                                                    \
                    OW_NEIBS_ROW(T, row + from * px, m, q->size[1], MET);                          \
                    m += q->size[1] * mx;                                                          \
                    continue;                                                                      \
                }                                                                                  \
                if (y >= 0 && within) {                                                            \
                    char *p = row + from * px;                                                     \
                    for (int64_t j = 0; j < q->size[1]; j++, m += mx, p += px) {                   \
                        MET(T, p, m);                                                              \
                    }                                                                              \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t j = 0; j < q->size[1]; j++, m += mx) {                                \
                    const int64_t x = y < 0 ? -1 : ow_neibs_place(q, 1, b, j);                     \
                    if (x < 0) {                                                                   \
                        BESIDE(T, m);                                                              \
                    } else {                                                                       \
                        MET(T, row + x * px, m);                                                   \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#define OW_NEIBS_TAKE(T, p, m) *(T *)(m) = *(const T *)(p)
#define OW_NEIBS_ZERO(T, m) *(T *)(m) = (T){0}
#define OW_NEIBS_ADD(T, p, m) *(T *)(p) += *(const T *)(m)
#define OW_NEIBS_SKIP(T, m) (void)(m)

typedef struct ow_16_bytes {
    uint64_t half[2];
} ow_16_bytes;

#define OW_NEIBS_TAKES(T)                                                                          \
    static void ow_neibs_take_##T(const ow_neibs *q, int64_t first, int64_t end)                   \
    {                                                                                              \
        OW_NEIBS_EACH(T, OW_NEIBS_TAKE, OW_NEIBS_ZERO)                                             \
    }
#define OW_NEIBS_ADDS(T)                                                                           \
    static void ow_neibs_add_##T(const ow_neibs *q, int64_t first, int64_t end)                    \
    {                                                                                              \
        OW_NEIBS_EACH(T, OW_NEIBS_ADD, OW_NEIBS_SKIP)                                              \
    }
OW_NEIBS_TAKES(uint8_t)
OW_NEIBS_TAKES(uint16_t)
OW_NEIBS_TAKES(uint32_t)
OW_NEIBS_TAKES(uint64_t)
OW_NEIBS_TAKES(ow_16_bytes)
OW_NEIBS_ADDS(float)
OW_NEIBS_ADDS(double)

static int64_t ow_neibs_chunks(const ow_neibs *q, int64_t units)
{
    const double rows =
        (double)q->planes * (double)q->grid[0] * (double)q->grid[1] * (double)q->size[0];
    const int64_t chunks =
        ow_chunks(rows * (OW_NEIBS_ROW_NS + OW_NEIBS_ELEMENT_NS * (double)q->size[1]));
    return chunks < units ? chunks : units;
}

static void ow_neibs_take_chunk(void *arg, int64_t chunk)
{
    const ow_neibs *q = arg;
    int64_t end, first = ow_chunk_range(chunk, q->chunks, q->planes * q->grid[0], 1, &end);
    switch (q->matrix->itemsize) {
    case 1:
        ow_neibs_take_uint8_t(q, first, end);
        break;
    case 2:
        ow_neibs_take_uint16_t(q, first, end);
        break;
    case 4:
        ow_neibs_take_uint32_t(q, first, end);
        break;
    case 8:
        ow_neibs_take_uint64_t(q, first, end);
        break;
    default:
        ow_neibs_take_ow_16_bytes(q, first, end);
    }
}

/* in: images, neib_shape, neib_step */
static int ow_neibs_run(ow_step *s)
{
    ow_slot *z = s->out[0];
    ow_neibs q;
    int rc = ow_neibs_plan(s, &q, s->in[0]->shape, s->in[1], s->in[2]);
    if (rc)
        return rc;
    z->shape[0] = ow_mul_size(ow_mul_size(q.planes, q.grid[0]), q.grid[1]);
    z->shape[1] = ow_mul_size(q.size[0], q.size[1]);
    if ((rc = ow_ensure(s, z)))
        return rc;
    q.image = s->in[0];
    q.matrix = z;
    q.chunks = ow_neibs_chunks(&q, q.planes * q.grid[0]);
    if (ow_size(z))
        ow_parallel(ow_neibs_take_chunk, &q, q.chunks);
    return OW_OK;
}

static void ow_neibs_add_chunk(void *arg, int64_t chunk)
{
    const ow_neibs *q = arg;
    int64_t end, k = ow_chunk_range(chunk, q->chunks, q->planes, 1, &end);
    const int64_t bytes = q->n[0] * q->n[1] * q->image->itemsize;
    memset(q->image->data + k * bytes, 0, (size_t)((end - k) * bytes));
    if (q->image->itemsize == 8)
        ow_neibs_add_double(q, k * q->grid[0], end * q->grid[0]);
    else
        ow_neibs_add_float(q, k * q->grid[0], end * q->grid[0]);
}

/* in: a matrix of neighbourhoods, the shape of the images, neib_shape, neib_step */
static int ow_neibs_add_run(ow_step *s)
{
    const ow_slot *m = s->in[0];
    ow_slot *z = s->out[0];
    ow_neibs q;
    if (s->in[1]->shape[0] != 4)
        return OW_FAIL(s, OW_VALUE_ERROR, "the shape of images must be four lengths, not %lld",
                       (long long)s->in[1]->shape[0]);
    for (int d = 0; d < 4; d++)
        if ((z->shape[d] = ow_neibs_entry(s->in[1], d)) < 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "the shape of images has the length %lld",
                           (long long)z->shape[d]);
    int rc = ow_ensure(s, z);
    if (rc || (rc = ow_neibs_plan(s, &q, z->shape, s->in[2], s->in[3])))
        return rc;
    const int64_t rows = q.planes * q.grid[0] * q.grid[1],
                  length = ow_mul_size(q.size[0], q.size[1]);
    if (m->shape[0] != rows || m->shape[1] != length)
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "gradients by the neighbourhoods have shape (%lld, %lld), but images of shape (%lld, "
            "%lld, %lld, %lld) have neighbourhoods of shape (%lld, %lld)",
            (long long)m->shape[0], (long long)m->shape[1], (long long)z->shape[0],
            (long long)z->shape[1], (long long)z->shape[2], (long long)z->shape[3], (long long)rows,
            (long long)length);
    q.image = z;
    q.matrix = m;
    q.chunks = ow_neibs_chunks(&q, q.planes);
    if (ow_size(z))
        ow_parallel(ow_neibs_add_chunk, &q, q.chunks < 1 ? (q.chunks = 1) : q.chunks);
    return OW_OK;
}

#endif
