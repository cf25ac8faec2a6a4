/* Products of matrices of the dtypes that BLAS does not have, or whose parts it would copy:
 * integers, bool, float16 and complex numbers.
 * Integers wrap, so narrow ones are multiplied as int32 and cut off. float16 is multiplied as
 * float. */
#ifndef OW_PRODUCTS_H
#define OW_PRODUCTS_H

#include "blas.h"
#include "scalar.h"
#include "complexes.h" /* after scalar.h */

/* The types that the kernels of products have, as simd.h numbers them. */
enum { OW_GEMM_F32, OW_GEMM_F64, OW_GEMM_I32, OW_GEMM_I64 };

static int ow_gemm_type(const ow_slot *c)
{
    switch (c->typenum) {
    case OW_HALF_TYPENUM:
    case OW_FLOAT_TYPENUM:
    case OW_COMPLEX64_TYPENUM:
        return OW_GEMM_F32;
    case OW_DOUBLE_TYPENUM:
    case OW_COMPLEX128_TYPENUM:
        return OW_GEMM_F64;
    default:
        return c->itemsize == 8 ? OW_GEMM_I64 : OW_GEMM_I32;
    }
}

static int ow_is_complex(const ow_slot *c)
{
    return c->typenum == OW_COMPLEX64_TYPENUM || c->typenum == OW_COMPLEX128_TYPENUM;
}

/* Copy a matrix to one by rows of another type. */
#define OW_WIDEN(T, U, VALUE)                                                                      \
    for (int64_t i = 0; i < c->shape[0]; i++, to += c->shape[1] * (int64_t)sizeof(U)) {            \
        const char *row = c->data + i * c->strides[0];                                             \
        if (c->strides[1] == sizeof(T))                                                            \
            for (int64_t j = 0; j < c->shape[1]; j++)                                              \
                ((U *)to)[j] = (U)VALUE(((const T *)row)[j]);                                      \
        else                                                                                       \
            for (int64_t j = 0; j < c->shape[1]; j++)                                              \
                ((U *)to)[j] = (U)VALUE(*(const T *)(row + j * c->strides[1]));                    \
    }

static void ow_widen(char *to, const ow_slot *c)
{
    const int is_unsigned = c->typenum % 2 == 0;
    if (c->typenum == OW_HALF_TYPENUM) {
        OW_WIDEN(ow_f16, float, ow_from_f16)
    } else if (c->itemsize == 1 && is_unsigned) {
        OW_WIDEN(uint8_t, int32_t, )
    } else if (c->itemsize == 1) {
        OW_WIDEN(int8_t, int32_t, )
    } else if (is_unsigned) {
        OW_WIDEN(uint16_t, int32_t, )
    } else {
        OW_WIDEN(int16_t, int32_t, )
    }
}

#define OW_CUT(T, U, VALUE)                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                \
        ((T *)z->data)[i] = (T)VALUE(((const U *)from)[i]);

#define OW_HALF_OF(x) ow_to_f16(ow_round_f16(x))
#define OW_IS_TRUE(x) ((x) != 0)

/* Copy a product of another type to a matrix by rows. */
static void ow_cut(ow_slot *z, const char *from)
{
    const int64_t n = ow_size(z);
    if (z->typenum == OW_HALF_TYPENUM) {
        OW_CUT(ow_f16, float, OW_HALF_OF)
    } else if (z->typenum == 0) { /* bool */
        OW_CUT(uint8_t, int32_t, OW_IS_TRUE)
    } else if (z->itemsize == 1) {
        OW_CUT(int8_t, int32_t, )
    } else {
        OW_CUT(int16_t, int32_t, )
    }
}

/* --- complex numbers ----------------------------------------------------------------------------
 * The memory of a complex matrix by rows is that of a real one with twice as many columns. So
 * z = sum over p of re(x[:, p]) y[p] + im(x[:, p]) i y[p] is one real product: of x as it lies, and
 * of y with a row i y[p] after every row y[p]. Where x has fewer rows than y, those of its real
 * parts are put before those of its imaginary parts instead, and the two halves of their product
 * with y are added. */

/* Where the rows of a complex matrix go, so many in a chunk. */
typedef struct ow_complex_rows {
    const ow_slot *c;
    char *to;
    int64_t some;
} ow_complex_rows;

/* A task: `DO` for each row p of a matrix of n columns. */
#define OW_COMPLEX_TASK(NAME, DO)                                                                  \
    static void NAME(void *arg, int64_t chunk)                                                     \
    {                                                                                              \
        const ow_complex_rows *j = arg;                                                            \
        const int64_t m = j->c->shape[0], n = j->c->shape[1];                                      \
        for (int64_t p = chunk * j->some; p < m && p < (chunk + 1) * j->some; p++) {               \
            char *row = j->c->data + p * j->c->strides[0];                                         \
            if (j->c->typenum == OW_COMPLEX64_TYPENUM) {                                           \
                DO(ow_c64, float)                                                                  \
            } else {                                                                               \
                DO(ow_c128, double)                                                                \
            }                                                                                      \
        }                                                                                          \
    }

/* Each row, and after it the row times i. */
#define OW_TURN(C, R)                                                                              \
    C *y = (C *)j->to + 2 * p * n;                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                              \
        const C v = ((const C *)row)[i];                                                           \
        y[i] = v;                                                                                  \
        y[n + i] = (C){-v.i, v.r};                                                                 \
    }
OW_COMPLEX_TASK(ow_turn_chunk, OW_TURN)

/* Rows of real parts, then those of imaginary parts. */
#define OW_SPLIT(C, R)                                                                             \
    R *re = (R *)j->to + p * n, *im = re + m * n;                                                  \
    for (int64_t i = 0; i < n; i++) {                                                              \
        re[i] = ((const C *)row)[i].r;                                                             \
        im[i] = ((const C *)row)[i].i;                                                             \
    }
OW_COMPLEX_TASK(ow_split_chunk, OW_SPLIT)

/* What OW_SPLIT parted, after it was multiplied. */
#define OW_JOIN(C, R)                                                                              \
    const C *re = (const C *)j->to + p * n, *im = re + m * n;                                      \
    for (int64_t i = 0; i < n; i++)                                                                \
        ((C *)row)[i] = (C){re[i].r - im[i].i, re[i].i + im[i].r};
OW_COMPLEX_TASK(ow_join_chunk, OW_JOIN)

static void ow_each_complex_row(ow_task task, const ow_slot *c, char *to)
{
    const int64_t m = c->shape[0],
                  chunks =
                      ow_at_most(ow_chunks((double)(ow_size(c) * c->itemsize) * OW_BYTE_NS), m);
    ow_complex_rows j = {c, to, (m + chunks - 1) / chunks};
    ow_parallel(task, &j, chunks);
}

/* Whether a complex matrix is a real one of twice as many columns. */
static int ow_is_real_too(const ow_slot *c)
{
    return (c->shape[1] == 1 || c->strides[1] == c->itemsize) &&
           (c->shape[0] == 1 ||
            (c->strides[0] >= c->shape[1] * c->itemsize && c->strides[0] % (c->itemsize / 2) == 0));
}

/* Bytes of what ow_complex_product copies. */
static int64_t ow_complex_bytes(const ow_slot *z, const ow_slot *x, const ow_slot *y)
{
    const int64_t nx = ow_size(x), ny = ow_size(y);
    return z->itemsize * ((ow_is_real_too(x) ? 0 : nx) + (ow_is_real_too(y) ? 0 : ny) +
                          (x->shape[0] < y->shape[0] ? nx + 2 * ow_size(z) : 2 * ny));
}

/* z = x y of complex numbers; room: of so many bytes. */
static void ow_complex_product(ow_slot *z, ow_slot *x, ow_slot *y, char *room)
{
    const int type = ow_gemm_type(z), few = x->shape[0] < y->shape[0];
    const int64_t part = z->itemsize / 2;
    ow_slot by_rows[2] = {*x, *y};
    int64_t step[2]; /* from row to row, in real numbers */
    for (int i = 0; i < 2; i++) {
        ow_slot *c = &by_rows[i];
        if (!ow_is_real_too(c)) {
            ow_c_strides(c);
            c->data = room;
            ow_copy(c, i ? y : x);
            room += ow_size(c) * z->itemsize;
        }
        step[i] = c->shape[0] > 1 ? c->strides[0] / part : 2 * c->shape[1];
    }
    ow_product q = {.m = x->shape[0],
                    .n = 2 * y->shape[1],
                    .k = x->shape[1],
                    .a = 1,
                    .z = z->data,
                    .zr = 2 * y->shape[1],
                    .x = by_rows[0].data,
                    .xr = step[0],
                    .xc = 1,
                    .y = by_rows[1].data,
                    .yr = step[1],
                    .yc = 1};
    if (few) {
        ow_each_complex_row(ow_split_chunk, &by_rows[0], room);
        q.m *= 2;
        q.x = room;
        q.xr = q.k;
        q.z = room + ow_size(x) * z->itemsize;
    } else {
        ow_each_complex_row(ow_turn_chunk, &by_rows[1], room);
        q.k *= 2;
        q.y = room;
        q.yr = q.n;
    }
    if (ow_fits(q.m) && ow_fits(q.n) && ow_fits(q.k) && ow_fits(q.xr) && ow_fits(q.yr)) {
        /* by BLAS, or by own loops, where these are as fast */
        const ow_mat mz = {q.z, (int)q.m, (int)q.n, (int)q.zr, 1};
        const ow_mat mx = {(char *)q.x, (int)q.m, (int)q.k, (int)q.xr, 1};
        const ow_mat my = {(char *)q.y, (int)q.k, (int)q.n, (int)q.yr, 1};
        ow_gemm_mats(type, mz, mx, my, 1.0, 0.0);
    } else
        ow_own_product(type, &q);
    if (few)
        ow_each_complex_row(ow_join_chunk, z, (char *)q.z);
}

static ow_slot ow_transpose_of(const ow_slot *c)
{
    ow_slot t = *c;
    for (int d = 0; d < 2; d++) {
        t.shape[d] = c->shape[1 - d];
        t.strides[d] = c->strides[1 - d];
    }
    return t;
}

/* z = x y for matrices of any strides; z lies by rows. Returns 0 if there is no memory. */
static int ow_any_product(ow_slot *z, ow_slot *x, ow_slot *y)
{
    if (ow_is_complex(z) &&
        ((z->shape[0] == 1 && !ow_is_real_too(y)) || (z->shape[1] == 1 && !ow_is_real_too(x)))) {
        /* a vector lies as its transpose does, and the transpose of the matrix may need no copy */
        ow_slot tz = ow_transpose_of(z), tx = ow_transpose_of(y), ty = ow_transpose_of(x);
        ow_c_strides(&tz);
        if (ow_is_real_too(z->shape[0] == 1 ? &tx : &ty))
            return ow_any_product(&tz, &tx, &ty);
    }
    const int type = ow_gemm_type(z), size = type & 1 ? 8 : 4, is_complex = ow_is_complex(z);
    const int64_t nx = ow_size(x), ny = ow_size(y), nz = ow_size(z);
    const int narrow = z->itemsize < 4;
    if (nz == 0)
        return 1;
    if (x->shape[1] == 0) {
        memset(z->data, 0, (size_t)(nz * z->itemsize));
        return 1;
    }
    const int64_t bytes = is_complex ? ow_complex_bytes(z, x, y)
                          : narrow   ? (nx + ny + nz) * size
                                     : 0;
    char *room = bytes ? ow_alloc(bytes) : NULL;
    if (bytes && !room)
        return 0;
    if (is_complex)
        ow_complex_product(z, x, y, room);
    else {
        ow_product q = {.m = z->shape[0],
                        .n = z->shape[1],
                        .k = x->shape[1],
                        .a = 1,
                        .b = 0,
                        .x = x->data,
                        .y = y->data,
                        .z = z->data,
                        .xr = x->strides[0] / size,
                        .xc = x->strides[1] / size,
                        .yr = y->strides[0] / size,
                        .yc = y->strides[1] / size,
                        .zr = z->shape[1]};
        if (narrow) {
            ow_widen(room, x);
            ow_widen(room + nx * size, y);
            q.x = room;
            q.y = room + nx * size;
            q.z = room + (nx + ny) * size;
            q.xr = x->shape[1];
            q.yr = y->shape[1];
            q.xc = q.yc = 1;
        }
        if (q.n == 1 &&
            q.m > 1) { /* columns of a result fill vectors: of one column, its transpose is made */
            ow_product t = {.m = 1,
                            .n = q.m,
                            .k = q.k,
                            .a = 1,
                            .b = 0,
                            .x = q.y,
                            .y = q.x,
                            .z = q.z,
                            .xr = q.yc,
                            .xc = q.yr,
                            .yr = q.xc,
                            .yc = q.xr,
                            .zr = q.m};
            q = t;
        }
        ow_own_product(type, &q);
        if (narrow)
            ow_cut(z, q.z);
    }
    ow_free(room);
    return 1;
}

/* Where products are not own loops whatever their sizes, large ones of complex numbers call
 * BLAS. */
#define OW_COMPLEX_SMALL 2048
static int ow_any_needs(ow_step *s, int64_t m, int64_t n, int64_t k)
{
    const int64_t work = ow_mul_size(ow_mul_size(m, n), k);
    return ow_need_blas(s, ow_is_complex(s->out[0]) && !ow_kernels->products &&
                               work > OW_COMPLEX_SMALL);
}

/* in: x, y of one or two dimensions */
static int ow_any_dot_prep(ow_step *s)
{
    ow_slot x, y, z, *out = s->out[0];
    ow_dot_operands(s, &z, &x, &y);
    int rc = ow_product_shape(s, &x, &y), k = 0;
    if (rc)
        return rc;
    if (s->in[0]->ndim == 2)
        out->shape[k++] = x.shape[0];
    if (s->in[1]->ndim == 2)
        out->shape[k++] = y.shape[1];
    rc = ow_ensure(s, out);
    return rc ? rc : ow_any_needs(s, x.shape[0], y.shape[1], x.shape[1]);
}

static int ow_any_dot_run(ow_step *s)
{
    ow_slot x, y, z;
    ow_dot_operands(s, &z, &x, &y);
    ow_c_strides(&z);
    return ow_any_product(&z, &x, &y)
               ? OW_OK
               : OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of matrices");
}

/* in: x, y of three dimensions: z[i] = x[i] y[i] */
static int ow_any_batched_prep(ow_step *s)
{
    int rc = ow_batched_shape(s);
    rc = rc ? rc : ow_ensure(s, s->out[0]);
    return rc ? rc : ow_any_needs(s, s->in[0]->shape[1], s->in[1]->shape[2], s->in[0]->shape[2]);
}

typedef struct ow_any_pages {
    ow_step *s;
    int64_t some;
    int failed;
} ow_any_pages;

static void ow_any_pages_chunk(void *arg, int64_t c)
{
    ow_any_pages *j = arg;
    const int64_t pages = j->s->out[0]->shape[0];
    for (int64_t i = c * j->some; i < pages && i < (c + 1) * j->some; i++) {
        ow_slot x, y, z;
        ow_page(&x, j->s->in[0], i);
        ow_page(&y, j->s->in[1], i);
        ow_page(&z, j->s->out[0], i);
        ow_c_strides(&z);
        j->failed |= !ow_any_product(&z, &x, &y);
    }
}

static int ow_any_batched_run(ow_step *s)
{
    const ow_slot *x = s->in[0], *y = s->in[1];
    const int64_t pages = s->out[0]->shape[0];
    if (pages > 0 && !ow_is_complex(x) && x->itemsize >= 4 &&
        ow_small_pages(ow_gemm_type(x), s->out[0], x, y))
        return OW_OK;
    const double work = (double)x->shape[1] * (double)x->shape[2] * (double)y->shape[2];
    const int together = pages > 1 && work < OW_LARGE_PAGE;
    const int64_t chunks = together ? ow_chunks((double)pages * work / 10) : pages;
    ow_any_pages job = {s, chunks ? (pages + chunks - 1) / chunks : 1, 0};
    if (pages)
        (together ? ow_parallel : ow_in_order)(ow_any_pages_chunk, &job,
                                               (pages + job.some - 1) / job.some);
    return job.failed ? OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of matrices")
                      : OW_OK;
}

#endif
