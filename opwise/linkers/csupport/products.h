/* Products of matrices of the dtypes that BLAS does not have, or whose parts it would copy: integers,
 * bool, float16 and complex numbers.
 *
 * Integers wrap, so narrow ones are multiplied as int32 and cut off. float16 is multiplied as float. A
 * complex matrix becomes two real ones: four products of those are as much work as one of complex numbers.
 */
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

/* Copy the parts of a complex matrix to two real ones by rows, one after the other. */
#define OW_SPLIT(C, R)                                                                             \
    for (int64_t i = 0; i < c->shape[0]; i++) {                                                    \
        const char *row = c->data + i * c->strides[0];                                             \
        R *re = (R *)to + i * c->shape[1], *im = re + ow_size(c);                                  \
        if (c->strides[1] == sizeof(C))                                                            \
            for (int64_t j = 0; j < c->shape[1]; j++) {                                            \
                re[j] = ((const C *)row)[j].r;                                                     \
                im[j] = ((const C *)row)[j].i;                                                     \
            }                                                                                      \
        else                                                                                       \
            for (int64_t j = 0; j < c->shape[1]; j++) {                                            \
                re[j] = ((const C *)(row + j * c->strides[1]))->r;                                 \
                im[j] = ((const C *)(row + j * c->strides[1]))->i;                                 \
            }                                                                                      \
    }

/* What lies by columns is split so: `*by_rows` says how. */
static void ow_split(char *to, const ow_slot *given, int *by_rows)
{
    ow_slot turned = *given, *c = &turned;
    *by_rows = llabs(given->strides[1]) <= llabs(given->strides[0]);
    if (!*by_rows)
        for (int d = 0; d < 2; d++) {
            turned.shape[d] = given->shape[1 - d];
            turned.strides[d] = given->strides[1 - d];
        }
    if (c->typenum == OW_COMPLEX64_TYPENUM) {
        OW_SPLIT(ow_c64, float)
    } else {
        OW_SPLIT(ow_c128, double)
    }
}

/* z = x y of complex numbers; room: for the parts of all three. */
static void ow_complex_product(ow_slot *z, const ow_slot *x, const ow_slot *y, char *room)
{
    const int type = ow_gemm_type(z);
    const int64_t part = z->itemsize / 2, n = ow_size(z), nx = ow_size(x), ny = ow_size(y);
    char *xs = room + 2 * n * part, *ys = xs + 2 * nx * part;
    int x_by_rows, y_by_rows;
    ow_split(xs, x, &x_by_rows);
    ow_split(ys, y, &y_by_rows);
    ow_product q = {.m = z->shape[0], .n = z->shape[1], .k = x->shape[1], .zr = z->shape[1],
                    .xr = x_by_rows ? x->shape[1] : 1, .xc = x_by_rows ? 1 : x->shape[0],
                    .yr = y_by_rows ? y->shape[1] : 1, .yc = y_by_rows ? 1 : y->shape[0]};
    const int by_blas = ow_fits(q.m) && ow_fits(q.n) && ow_fits(q.k);
    for (int imaginary = 0; imaginary < 2; imaginary++)
        for (int second = 0; second < 2; second++) {
            q.z = room + imaginary * n * part;
            q.a = second && !imaginary ? -1 : 1;
            q.b = second;
            q.x = xs + second * nx * part;
            q.y = ys + (imaginary ^ second) * ny * part;
            if (by_blas) { /* or by own loops, where these are as fast */
                const ow_mat mz = {q.z, (int)q.m, (int)q.n, (int)q.n, 1};
                const ow_mat mx = {(char *)q.x, (int)q.m, (int)q.k, (int)(x_by_rows ? q.k : q.m), x_by_rows};
                const ow_mat my = {(char *)q.y, (int)q.k, (int)q.n, (int)(y_by_rows ? q.n : q.k), y_by_rows};
                ow_gemm_mats(type, mz, mx, my, q.a, q.b);
            } else
                ow_own_product(type, &q);
        }
    if (part == 4)
        for (int64_t i = 0; i < n; i++)
            ((ow_c64 *)z->data)[i] = (ow_c64){((float *)room)[i], ((float *)room)[n + i]};
    else
        for (int64_t i = 0; i < n; i++)
            ((ow_c128 *)z->data)[i] = (ow_c128){((double *)room)[i], ((double *)room)[n + i]};
}

/* z = x y for matrices of any strides; z lies by rows. Returns 0 if there is no memory. */
static int ow_any_product(ow_slot *z, ow_slot *x, ow_slot *y)
{
    const int type = ow_gemm_type(z), size = type & 1 ? 8 : 4, is_complex = ow_is_complex(z);
    const int64_t nx = ow_size(x), ny = ow_size(y), nz = ow_size(z);
    const int narrow = z->itemsize < 4;
    if (nz == 0)
        return 1;
    if (x->shape[1] == 0) {
        memset(z->data, 0, (size_t)(nz * z->itemsize));
        return 1;
    }
    const int64_t bytes = is_complex ? (nx + ny + nz) * z->itemsize : narrow ? (nx + ny + nz) * size : 0;
    char *room = bytes ? ow_alloc(bytes) : NULL;
    if (bytes && !room)
        return 0;
    if (is_complex)
        ow_complex_product(z, x, y, room);
    else {
        ow_product q = {.m = z->shape[0], .n = z->shape[1], .k = x->shape[1], .a = 1, .b = 0, .x = x->data,
                        .y = y->data, .z = z->data, .xr = x->strides[0] / size,
                        .xc = x->strides[1] / size, .yr = y->strides[0] / size,
                        .yc = y->strides[1] / size, .zr = z->shape[1]};
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
        if (q.n == 1 && q.m > 1) { /* columns of a result fill vectors: of one column, its transpose is made */
            ow_product t = {.m = 1, .n = q.m, .k = q.k, .a = 1, .b = 0, .x = q.y, .y = q.x, .z = q.z,
                            .xr = q.yc, .xc = q.yr, .yr = q.xc, .yc = q.xr, .zr = q.m};
            q = t;
        }
        ow_own_product(type, &q);
        if (narrow)
            ow_cut(z, q.z);
    }
    ow_free(room);
    return 1;
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
    return ow_ensure(s, out);
}

static int ow_any_dot_run(ow_step *s)
{
    ow_slot x, y, z;
    ow_dot_operands(s, &z, &x, &y);
    ow_c_strides(&z);
    return ow_any_product(&z, &x, &y) ? OW_OK
                                      : OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of matrices");
}

/* in: x, y of three dimensions: z[i] = x[i] y[i] */
static int ow_any_batched_prep(ow_step *s)
{
    int rc = ow_batched_shape(s);
    return rc ? rc : ow_ensure(s, s->out[0]);
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
    const double work = (double)x->shape[1] * (double)x->shape[2] * (double)y->shape[2];
    const int together = pages > 1 && work < OW_LARGE_PAGE;
    const int64_t chunks = together ? ow_chunks((double)pages * work / 10) : pages;
    ow_any_pages job = {s, chunks ? (pages + chunks - 1) / chunks : 1, 0};
    if (pages)
        (together ? ow_parallel : ow_in_order)(ow_any_pages_chunk, &job, (pages + job.some - 1) / job.some);
    return job.failed ? OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of matrices") : OW_OK;
}

#endif
