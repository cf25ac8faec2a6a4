/* Products of matrices and vectors through BLAS, whose functions the machine gets from scipy.
 *
 * Everything here is row-major: X Y = Z becomes Y' X' = Z' in BLAS's column-major words. An operand
 * whose rows or columns are contiguous is passed as it is; any other is copied first.
 */
#ifndef OW_BLAS_H
#define OW_BLAS_H

#include "simd.h"

typedef void (*ow_dgemm_t)(char *, char *, int *, int *, int *, double *, double *, int *, double *,
                           int *, double *, double *, int *);
typedef void (*ow_sgemm_t)(char *, char *, int *, int *, int *, float *, float *, int *, float *,
                           int *, float *, float *, int *);
typedef void (*ow_dgemv_t)(char *, int *, int *, double *, double *, int *, double *, int *,
                           double *, double *, int *);
typedef void (*ow_sgemv_t)(char *, int *, int *, float *, float *, int *, float *, int *, float *,
                           float *, int *);
typedef void (*ow_dger_t)(int *, int *, double *, double *, int *, double *, int *, double *, int *);
typedef void (*ow_sger_t)(int *, int *, float *, float *, int *, float *, int *, float *, int *);

static struct {
    ow_dgemm_t dgemm;
    ow_sgemm_t sgemm;
    ow_dgemv_t dgemv;
    ow_sgemv_t sgemv;
    ow_dger_t dger;
    ow_sger_t sger;
} ow_blas;

/* A matrix as BLAS sees it. */
typedef struct ow_mat {
    char *data;
    int rows, cols;
    int ld;    /* elements between rows (if by_rows) or columns */
    int by_rows;
} ow_mat;

#define OW_SMALL_VECTOR 4096 /* the same, for products with a vector */
#define OW_SMALL 32768 /* multiplications below which own loops beat the call of BLAS */
#define OW_NARROW 24   /* and so they do where one of the three lengths is at most so many */

/* Fills ow_blas when the first product is large enough to need it; writes why it could not. */
static int (*ow_load_blas)(char *error);

static inline int ow_need_blas(ow_step *s, int needed)
{
    if (!needed || ow_blas.dgemm != NULL)
        return OW_OK;
    return ow_load_blas(s->error) ? OW_VALUE_ERROR : OW_OK;
}

/* Whether BLAS, whose integers have 32 bits, can be told a length. */
static inline int ow_fits(int64_t n) { return n >= 0 && n <= INT32_MAX; }

/* Describe `c` without copying; returns 0 if neither rows nor columns are contiguous, or those that
 * are lie too far apart for BLAS. */
static inline int ow_as_mat(const ow_cell *c, ow_mat *m)
{
    int64_t item = c->itemsize, r = c->shape[0], k = c->shape[1];
    int64_t sr = c->strides[0], sc = c->strides[1];
    if (!ow_fits(r) || !ow_fits(k))
        return 0;
    m->data = c->data;
    m->rows = (int)r;
    m->cols = (int)k;
    if ((sc == item || k <= 1) &&
        (r <= 1 || (sr >= k * item && sr % item == 0 && ow_fits(sr / item)))) {
        m->by_rows = 1;
        m->ld = r > 1 ? (int)(sr / item) : (int)(k > 0 ? k : 1);
        return 1;
    }
    if ((sr == item || r <= 1) &&
        (k <= 1 || (sc >= r * item && sc % item == 0 && ow_fits(sc / item)))) {
        m->by_rows = 0;
        m->ld = k > 1 ? (int)(sc / item) : (int)(r > 0 ? r : 1);
        return 1;
    }
    return 0;
}

/* Bytes of scratch memory that `ow_get_mat` will take for `c`. */
static inline int64_t ow_mat_bytes(const ow_cell *c)
{
    ow_mat m;
    return ow_as_mat(c, &m) ? 0 : ow_add_size(ow_size(c) * c->itemsize / OW_ALIGN * OW_ALIGN, OW_ALIGN);
}

/* Describe `c`, copying it to *memory, which moves on, where BLAS cannot read it as it is. */
static inline char *ow_get_mat(ow_cell *c, ow_mat *m, char **memory)
{
    if (ow_as_mat(c, m))
        return NULL;
    ow_cell copy = *c;
    ow_c_strides(&copy);
    copy.data = *memory;
    *memory += ow_mat_bytes(c);
    ow_copy(&copy, c);
    ow_as_mat(&copy, m);
    return copy.data;
}

/* --- own products -------------------------------------------------------------------------------
 * BLAS copies both operands before it multiplies, which small and narrow matrices do not pay back,
 * and starts all its threads or one. */

/* Whether the tiles of simd.h are the better way to a product of these sizes. */
static inline int ow_is_small(int64_t m, int64_t n, int64_t k)
{
    const int64_t narrow = m < n ? m : n, work = ow_mul_size(ow_mul_size(m, n), k + 1);
    if (narrow <= 1)
        return work <= OW_SMALL_VECTOR;
    return work <= OW_SMALL || narrow <= OW_NARROW || k <= OW_NARROW;
}

typedef struct ow_gemm_job {
    ow_gemm_fn fn;
    const ow_product *q;
    int64_t chunks, step;
    int by_rows;
} ow_gemm_job;

static void ow_gemm_chunk(void *arg, int64_t c)
{
    const ow_gemm_job *j = arg;
    int64_t end, first = ow_chunk_range(c, j->chunks, j->by_rows ? j->q->m : j->q->n, j->step, &end);
    if (first >= end)
        return;
    if (j->by_rows)
        j->fn(j->q, first, end, 0, j->q->n);
    else
        j->fn(j->q, 0, j->q->m, first, end);
}

/* z = b z + a x y, where columns of z lie side by side. */
static void ow_own_gemm(int f64, const ow_mat *z, const ow_mat *x, const ow_mat *y, double a, double b)
{
    ow_product q = {z->rows, z->cols, x->cols, a, b, x->data, y->data, z->data,
                    x->by_rows ? x->ld : 1, x->by_rows ? 1 : x->ld,
                    y->by_rows ? y->ld : 1, y->by_rows ? 1 : y->ld, z->ld, NULL};
    double ns = (double)q.m * (double)q.n * (double)q.k / (f64 ? 12 : 24);
    ow_gemm_job job = {ow_kernels->gemm[f64], &q, ow_chunks(ns), 1, q.m >= q.n};
    if (job.chunks <= 1) {
        job.fn(&q, 0, q.m, 0, q.n);
        return;
    }
    job.step = job.by_rows ? 12 : ow_kernels->wide[f64];
    char *copy = NULL;
    if (job.by_rows && q.n <= ow_kernels->pack_columns[f64]) {
        /* once for all chunks; without memory each does it for itself */
        copy = ow_alloc(q.k * ow_kernels->pack_columns[f64] * (f64 ? 8 : 4));
        if (copy)
            ow_kernels->pack[f64](&q, copy);
        q.packed = copy;
    }
    ow_parallel(ow_gemm_chunk, &job, job.chunks);
    ow_free(copy);
}

/* z = b z + a M v for one row or column z, where M is a matrix as BLAS sees it (column-major) */
static void ow_gemv_call(int f64, char t, int rows, int cols, double a, char *m, int ld, char *v,
                         int incv, double b, char *z, int incz)
{
    if (f64)
        ow_blas.dgemv(&t, &rows, &cols, &a, (double *)m, &ld, (double *)v, &incv, &b, (double *)z,
                      &incz);
    else {
        float fa = (float)a, fb = (float)b;
        ow_blas.sgemv(&t, &rows, &cols, &fa, (float *)m, &ld, (float *)v, &incv, &fb, (float *)z,
                      &incz);
    }
}

/* z = b z + a x y; z has contiguous rows or columns. */
static void ow_gemm_mats(int f64, ow_mat z, ow_mat x, ow_mat y, double a, double b)
{
    if (z.rows == 0 || z.cols == 0)
        return;
    if (!z.by_rows) { /* z' = y' x' has contiguous rows */
        ow_mat xt = {y.data, y.cols, y.rows, y.ld, !y.by_rows};
        ow_mat yt = {x.data, x.cols, x.rows, x.ld, !x.by_rows};
        int rows = z.rows;
        z.rows = z.cols;
        z.cols = rows;
        z.by_rows = 1;
        x = xt;
        y = yt;
    }
    if (ow_is_small(z.rows, z.cols, x.cols)) {
        ow_own_gemm(f64, &z, &x, &y, a, b);
        return;
    }
    /* BLAS is slow at a product of matrices of which one is a vector; empty sums it leaves alone */
    if (z.cols == 1 && x.cols > 0) {
        ow_gemv_call(f64, x.by_rows ? 'T' : 'N', x.by_rows ? x.cols : x.rows,
                     x.by_rows ? x.rows : x.cols, a, x.data, x.ld, y.data, y.by_rows ? y.ld : 1, b,
                     z.data, z.by_rows ? z.ld : 1);
        return;
    }
    if (z.rows == 1 && x.cols > 0) {
        ow_gemv_call(f64, y.by_rows ? 'N' : 'T', y.by_rows ? y.cols : y.rows,
                     y.by_rows ? y.rows : y.cols, a, y.data, y.ld, x.data, x.by_rows ? 1 : x.ld, b,
                     z.data, z.by_rows ? 1 : z.ld);
        return;
    }
    char ty = y.by_rows ? 'N' : 'T', tx = x.by_rows ? 'N' : 'T';
    int m = z.cols, n = z.rows, k = x.cols;
    if (f64)
        ow_blas.dgemm(&ty, &tx, &m, &n, &k, &a, (double *)y.data, &y.ld, (double *)x.data, &x.ld,
                      &b, (double *)z.data, &z.ld);
    else {
        float fa = (float)a, fb = (float)b;
        ow_blas.sgemm(&ty, &tx, &m, &n, &k, &fa, (float *)y.data, &y.ld, (float *)x.data, &x.ld,
                      &fb, (float *)z.data, &z.ld);
    }
}

/* Dimensions that are too long for BLAS are multiplied in pieces of so many. */
#define OW_PIECE (1 << 20)

/* How long a piece of a dimension is at most: all of it, where BLAS can be told that length. */
static inline int64_t ow_piece(int64_t n) { return ow_fits(n) ? n : OW_PIECE; }

/* Let `part` be the part of a matrix from (i, j) on, with at most so many rows and columns. */
static void ow_part(ow_cell *part, const ow_cell *c, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
    *part = *c;
    part->data = ow_at(ow_at(c->data, i, c->strides[0]), j, c->strides[1]);
    part->shape[0] = c->shape[0] - i < rows ? c->shape[0] - i : rows;
    part->shape[1] = c->shape[1] - j < cols ? c->shape[1] - j : cols;
}

/* Keep scratch memory for the copies that `ow_gemm` makes of these operands. */
static int ow_gemm_reserve(ow_step *s, const ow_cell *z, const ow_cell *x, const ow_cell *y)
{
    const int64_t m = ow_piece(z->shape[0]), n = ow_piece(z->shape[1]), k = ow_piece(x->shape[1]);
    ow_cell pz, px, py;
    ow_part(&pz, z, 0, 0, m, n);
    ow_part(&px, x, 0, 0, m, k);
    ow_part(&py, y, 0, 0, k, n);
    const int64_t bytes = ow_add_size(ow_add_size(ow_mat_bytes(&pz), ow_mat_bytes(&px)), ow_mat_bytes(&py));
    if (bytes && ow_scratch(s, bytes) == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of matrices");
    return ow_need_blas(s, !ow_is_small(z->shape[0], z->shape[1], x->shape[1]));
}

static void ow_gemm_piece(ow_step *s, ow_cell *z, ow_cell *x, ow_cell *y, double a, double b)
{
    ow_mat mz, mx, my;
    char *memory = s->scratch;
    ow_get_mat(x, &mx, &memory);
    ow_get_mat(y, &my, &memory);
    char *copied = ow_get_mat(z, &mz, &memory);
    ow_gemm_mats(z->itemsize == 8, mz, mx, my, a, b);
    if (copied) {
        ow_cell result = *z;
        ow_c_strides(&result);
        result.data = copied;
        ow_copy(z, &result);
    }
}

/* z = b z + a x y, after ow_gemm_reserve. */
static void ow_gemm(ow_step *s, ow_cell *z, ow_cell *x, ow_cell *y, double a, double b)
{
    const int64_t m = ow_piece(z->shape[0]), n = ow_piece(z->shape[1]), k = ow_piece(x->shape[1]);
    for (int64_t i = 0; i < z->shape[0]; i += m)
        for (int64_t j = 0; j < z->shape[1]; j += n)
            for (int64_t p = 0; p < x->shape[1] || p == 0; p += k ? k : 1) {
                ow_cell pz, px, py;
                ow_part(&pz, z, i, j, m, n);
                ow_part(&px, x, i, p, m, k);
                ow_part(&py, y, p, j, k, n);
                ow_gemm_piece(s, &pz, &px, &py, a, p ? 1.0 : b);
            }
}

static int ow_product_shape(ow_step *s, const ow_cell *x, const ow_cell *y)
{
    if (x->shape[1] != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: x has %lld cols (and %lld rows) but y has %lld rows (and "
                       "%lld cols)",
                       (long long)x->shape[1], (long long)x->shape[0], (long long)y->shape[0],
                       (long long)y->shape[1]);
    return OW_OK;
}

static inline double ow_real(const ow_cell *c)
{
    return c->itemsize == 8 ? *(double *)c->data : *(float *)c->data;
}

/* in: x, y[, scalar] */
static int ow_dot22_prep(ow_step *s)
{
    ow_cell *x = s->in[0], *y = s->in[1], *z = s->out[0];
    int rc = ow_product_shape(s, x, y);
    if (rc)
        return rc;
    z->shape[0] = x->shape[0];
    z->shape[1] = y->shape[1];
    rc = ow_ensure(s, z);
    return rc ? rc : ow_gemm_reserve(s, z, x, y);
}

static int ow_dot22_run(ow_step *s)
{
    double a = s->nin > 2 ? ow_real(s->in[2]) : 1.0;
    ow_gemm(s, s->out[0], s->in[0], s->in[1], a, 0.0);
    return OW_OK;
}

/* Let the output be input 0, overwritten (ints[0] true) or copied. */
static int ow_accumulator(ow_step *s)
{
    ow_cell *from = s->in[0], *z = s->out[0];
    if (s->ints[0]) {
        ow_alias(z, from);
        return OW_OK;
    }
    ow_set_shape(z, from->ndim, from->shape);
    return ow_ensure(s, z);
}

static void ow_accumulator_copy(ow_step *s)
{
    if (!s->ints[0])
        ow_copy(s->out[0], s->in[0]);
}

/* in: z, a, x, y, b: z <- b z + a x y. ints: overwrite */
static int ow_gemm_prep(ow_step *s)
{
    ow_cell *z = s->in[0], *x = s->in[2], *y = s->in[3];
    int rc = ow_product_shape(s, x, y);
    if (rc)
        return rc;
    if (z->shape[0] != x->shape[0] || z->shape[1] != y->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: z has shape (%lld, %lld) but the product has (%lld, %lld)",
                       (long long)z->shape[0], (long long)z->shape[1], (long long)x->shape[0],
                       (long long)y->shape[1]);
    rc = ow_accumulator(s);
    return rc ? rc : ow_gemm_reserve(s, s->out[0], x, y);
}

static int ow_gemm_run(ow_step *s)
{
    ow_accumulator_copy(s);
    ow_gemm(s, s->out[0], s->in[2], s->in[3], ow_real(s->in[1]), ow_real(s->in[4]));
    return OW_OK;
}

/* in: y, alpha, A, x, beta: y <- beta y + alpha A x. ints: overwrite */
static int ow_gemv_prep(ow_step *s)
{
    ow_cell *y = s->in[0], *A = s->in[2], *x = s->in[3];
    if (A->shape[1] != x->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: A.shape[1] != x.shape[0] (%lld != %lld)",
                       (long long)A->shape[1], (long long)x->shape[0]);
    if (A->shape[0] != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: A.shape[0] != y.shape[0] (%lld != %lld)",
                       (long long)A->shape[0], (long long)y->shape[0]);
    int rc = ow_accumulator(s);
    return rc ? rc : ow_need_blas(s, A->shape[0] * A->shape[1] > OW_SMALL_VECTOR);
}

#define OW_SMALL_GEMV(T)                                                                           \
    static void ow_small_gemv_##T(ow_cell *y, const ow_cell *A, const ow_cell *x, T a, T b)        \
    {                                                                                              \
        for (int64_t i = 0; i < A->shape[0]; i++) {                                                \
            T sum = 0, *to = (T *)(y->data + i * y->strides[0]);                                   \
            const char *row = A->data + i * A->strides[0];                                         \
            for (int64_t j = 0; j < A->shape[1]; j++)                                              \
                sum += *(T *)(row + j * A->strides[1]) * *(T *)(x->data + j * x->strides[0]);      \
            *to = b == 0 ? a * sum : b * *to + a * sum;                                            \
        }                                                                                          \
    }
OW_SMALL_GEMV(double)
OW_SMALL_GEMV(float)

static int ow_gemv_run(ow_step *s)
{
    ow_accumulator_copy(s);
    ow_cell *y = s->out[0], *A = s->in[2], *x = s->in[3];
    double a = ow_real(s->in[1]), b = ow_real(s->in[4]);
    int64_t item = A->itemsize;
    ow_mat m;
    int direct = y->strides[0] > 0 && x->strides[0] > 0 && y->strides[0] % item == 0 &&
                 x->strides[0] % item == 0 && ow_fits(y->strides[0] / item) &&
                 ow_fits(x->strides[0] / item);
    if (!direct || A->shape[0] * A->shape[1] <= OW_SMALL_VECTOR || !ow_as_mat(A, &m)) {
        if (item == 8)
            ow_small_gemv_double(y, A, x, a, b);
        else
            ow_small_gemv_float(y, A, x, (float)a, (float)b);
        return OW_OK;
    }
    /* a matrix stored by rows is, to BLAS, its transpose */
    ow_gemv_call(item == 8, m.by_rows ? 'T' : 'N', m.by_rows ? m.cols : m.rows,
                 m.by_rows ? m.rows : m.cols, a, m.data, m.ld, x->data,
                 (int)(x->strides[0] / item), b, y->data, (int)(y->strides[0] / item));
    return OW_OK;
}

/* in: A, alpha, x, y: A <- A + alpha x y'. ints: overwrite */
static int ow_ger_prep(ow_step *s)
{
    ow_cell *A = s->in[0], *x = s->in[2], *y = s->in[3];
    if (A->shape[0] != x->shape[0] || A->shape[1] != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: A is (%lld, %lld) but the outer product is (%lld, %lld)",
                       (long long)A->shape[0], (long long)A->shape[1], (long long)x->shape[0],
                       (long long)y->shape[0]);
    return ow_accumulator(s);
}

#define OW_GER(T)                                                                                  \
    static void ow_ger_##T(ow_cell *A, T a, const ow_cell *x, const ow_cell *y)                    \
    {                                                                                              \
        for (int64_t i = 0; i < A->shape[0]; i++) {                                                \
            T f = a * *(T *)(x->data + i * x->strides[0]);                                         \
            char *row = A->data + i * A->strides[0];                                               \
            if (A->strides[1] == sizeof(T) && y->strides[0] == sizeof(T))                          \
                for (int64_t j = 0; j < A->shape[1]; j++)                                          \
                    ((T *)row)[j] += f * ((T *)y->data)[j];                                        \
            else                                                                                   \
                for (int64_t j = 0; j < A->shape[1]; j++)                                          \
                    *(T *)(row + j * A->strides[1]) += f * *(T *)(y->data + j * y->strides[0]);    \
        }                                                                                          \
    }
OW_GER(double)
OW_GER(float)

static int ow_ger_run(ow_step *s)
{
    ow_accumulator_copy(s);
    /* bound by memory: the loops do as well as BLAS */
    if (s->out[0]->itemsize == 8)
        ow_ger_double(s->out[0], ow_real(s->in[1]), s->in[2], s->in[3]);
    else
        ow_ger_float(s->out[0], (float)ow_real(s->in[1]), s->in[2], s->in[3]);
    return OW_OK;
}

/* in: x, y of one or two dimensions. Vectors take part as matrices of one row or column. */
static void ow_dot_operands(const ow_step *s, ow_cell *z, ow_cell *x, ow_cell *y)
{
    *x = *s->in[0];
    *y = *s->in[1];
    *z = *s->out[0];
    if (x->ndim == 1) {
        x->shape[1] = x->shape[0];
        x->strides[1] = x->strides[0];
        x->shape[0] = 1;
    }
    if (y->ndim == 1) {
        y->shape[1] = 1;
        y->strides[1] = y->itemsize;
    }
    x->ndim = y->ndim = z->ndim = 2;
    z->shape[0] = x->shape[0];
    z->shape[1] = y->shape[1];
}

static int ow_dot_prep(ow_step *s)
{
    ow_cell x, y, z, *out = s->out[0];
    ow_dot_operands(s, &z, &x, &y);
    int rc = ow_product_shape(s, &x, &y);
    if (rc)
        return rc;
    int k = 0;
    if (s->in[0]->ndim == 2)
        out->shape[k++] = x.shape[0];
    if (s->in[1]->ndim == 2)
        out->shape[k++] = y.shape[1];
    rc = ow_ensure(s, out);
    ow_c_strides(&z);
    return rc ? rc : ow_gemm_reserve(s, &z, &x, &y);
}

static int ow_dot_run(ow_step *s)
{
    ow_cell x, y, z;
    ow_dot_operands(s, &z, &x, &y);
    ow_c_strides(&z);
    ow_gemm(s, &z, &x, &y, 1.0, 0.0);
    return OW_OK;
}

static void ow_page(ow_cell *page, const ow_cell *c, int64_t i)
{
    *page = *c;
    page->ndim = 2;
    page->data = c->data + i * c->strides[0];
    for (int d = 0; d < 2; d++) {
        page->shape[d] = c->shape[d + 1];
        page->strides[d] = c->strides[d + 1];
    }
}

/* in: x, y of three dimensions: z[i] = x[i] y[i] */
static int ow_batched_dot_prep(ow_step *s)
{
    ow_cell *x = s->in[0], *y = s->in[1], *z = s->out[0];
    if (x->shape[0] != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: batch sizes unequal. x.shape[0] is %lld, y.shape[0] is %lld",
                       (long long)x->shape[0], (long long)y->shape[0]);
    if (x->shape[2] != y->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: x has %lld cols (and %lld rows) but y has %lld rows (and "
                       "%lld cols)",
                       (long long)x->shape[2], (long long)x->shape[1], (long long)y->shape[1],
                       (long long)y->shape[2]);
    z->shape[0] = x->shape[0];
    z->shape[1] = x->shape[1];
    z->shape[2] = y->shape[2];
    int rc = ow_ensure(s, z);
    if (rc || z->shape[0] == 0)
        return rc;
    ow_cell px, py, pz;
    ow_page(&px, x, 0);
    ow_page(&py, y, 0);
    ow_page(&pz, z, 0);
    return ow_gemm_reserve(s, &pz, &px, &py);
}

static int ow_batched_dot_run(ow_step *s)
{
    for (int64_t i = 0; i < s->out[0]->shape[0]; i++) {
        ow_cell x, y, z;
        ow_page(&x, s->in[0], i);
        ow_page(&y, s->in[1], i);
        ow_page(&z, s->out[0], i);
        ow_gemm(s, &z, &x, &y, 1.0, 0.0);
    }
    return OW_OK;
}

#endif
