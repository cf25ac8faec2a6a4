/* Factorizations, systems of equations, eigenvalues and singular values through LAPACK.
 * LAPACK's matrices are stored by columns. One stored by rows is, to LAPACK, its transpose: steps
 * that can work with the transpose do, the others copy. lapack_body.h has them for double and
 * float. */
#ifndef OW_LAPACK_H
#define OW_LAPACK_H

#include <dlfcn.h>

#include "blas.h"

#define OW_LAPACK_FUNCTIONS(T)                                                                     \
    struct {                                                                                       \
        void (*trsv)(char *, char *, char *, int *, T *, int *, T *, int *);                       \
        void (*trsm)(char *, char *, char *, char *, int *, int *, T *, T *, int *, T *, int *);   \
        void (*potrf)(char *, int *, T *, int *, int *);                                           \
        void (*getrf)(int *, int *, T *, int *, int *, int *);                                     \
        void (*getri)(int *, T *, int *, int *, T *, int *, int *);                                \
        void (*syevd)(char *, char *, int *, T *, int *, T *, T *, int *, int *, int *, int *);    \
        void (*gesdd)(char *, int *, int *, T *, int *, T *, T *, int *, T *, int *, T *, int *,   \
                      int *, int *);                                                               \
        void (*geqrf)(int *, int *, T *, int *, T *, T *, int *, int *);                           \
        void (*orgqr)(int *, int *, int *, T *, int *, T *, T *, int *, int *);                    \
    }

extern struct ow_lapack {
    OW_LAPACK_FUNCTIONS(double) d;
    OW_LAPACK_FUNCTIONS(float) s;
} ow_lapack;

/* Fills ow_lapack when the first step needs it; as ow_load_blas. */
extern int (*ow_load_lapack)(char *error);

static void ow_find_blas_threads(void *function);

static inline int ow_need_lapack(ow_step *s)
{
    if (ow_lapack.s.orgqr != NULL) /* the last one filled in */
        return OW_OK;
    const int rc = ow_load_lapack(s->error);
    if (!rc)
        ow_find_blas_threads(*(void **)&ow_lapack.d.gesdd);
    return rc;
}

/* --- threads of LAPACK ---------------------------------------------------------------------------
 * Factorizations that call many small products take longer with OpenBLAS's threads than with one,
 * and much longer where other programs use the processors. */

static struct {
    int (*number)(void);
    void (*use)(int);
} ow_blas_threads;

/* Find what changes the number of threads of the library that has this function, if it is an
 * OpenBLAS. */
static void ow_find_blas_threads(void *function)
{
    static const char *const names[][2] = {
        {"scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"},
        {"openblas_get_num_threads", "openblas_set_num_threads"},
    };
    Dl_info about;
    void *library =
        dladdr(function, &about) ? dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    for (int i = 0; library && i < 2 && !ow_blas_threads.use; i++) {
        *(void **)&ow_blas_threads.number = dlsym(library, names[i][0]);
        *(void **)&ow_blas_threads.use =
            ow_blas_threads.number ? dlsym(library, names[i][1]) : NULL;
    }
}

/* Let LAPACK use one thread, if `alone`; returns how many to give back to ow_blas_together, or
 * 0. */
static inline int ow_blas_alone(int alone)
{
    const int before = alone && ow_blas_threads.use ? ow_blas_threads.number() : 0;
    if (before <= 1)
        return 0;
    ow_blas_threads.use(1);
    return before;
}

static inline void ow_blas_together(int before)
{
    if (before)
        ow_blas_threads.use(before);
}

/* The shorter dimension of matrices below which one thread is faster. */
#define OW_SVD_ALONE 250
#define OW_QR_ALONE 650
#define OW_EIGH_ALONE 150

/* --- operands --------------------------------------------------------------------------------- */

static int ow_square(ow_step *s, const ow_slot *x)
{
    if (x->shape[0] != x->shape[1])
        return OW_FAIL(s, OW_LINALG_ERROR,
                       "expected a square matrix, but the matrix has shape (%lld, %lld)",
                       (long long)x->shape[0], (long long)x->shape[1]);
    return OW_OK;
}

static int ow_lapack_fits(ow_step *s, const ow_slot *x)
{
    for (int d = 0; d < x->ndim; d++)
        if (!ow_fits(x->shape[d]))
            return OW_FAIL(s, OW_VALUE_ERROR, "LAPACK takes no dimension of length %lld",
                           (long long)x->shape[d]);
    return OW_OK;
}

/* How many sums the check for finite numbers forms at a time: one alone waits for each addition. */
#define OW_SUMS 16

/* ctx: a number to which 0 times each element is added: NaN if one of them is infinite or NaN */
#define OW_FINITE(type)                                                                            \
    static void ow_finite_##type(const void *ctx, char **p, const int64_t *st, int64_t n)          \
    {                                                                                              \
        type sums[OW_SUMS] = {0};                                                                  \
        int64_t i = 0;                                                                             \
        if (st[0] == (int64_t)sizeof(type))                                                        \
            for (const type *x = (const type *)p[0]; i + OW_SUMS <= n; i += OW_SUMS)               \
                for (int k = 0; k < OW_SUMS; k++)                                                  \
                    sums[k] += x[i + k] * 0;                                                       \
        for (; i < n; i++)                                                                         \
            sums[0] += *(const type *)(p[0] + i * st[0]) * 0;                                      \
        for (int k = 0; k < OW_SUMS; k++)                                                          \
            *(double *)ctx += (double)sums[k];                                                     \
    }
OW_FINITE(double)
OW_FINITE(float)

static int ow_check_finite(ow_step *s, ow_slot *x)
{
    ow_walk w;
    double sum = 0;
    int64_t size = ow_walk_start(&w, x->ndim, x->shape, 1, &x, 0);
    if (size)
        ow_walk_in_order(&w, x->itemsize == 8 ? ow_finite_double : ow_finite_float, &sum, size);
    return sum != 0 ? OW_FAIL(s, OW_VALUE_ERROR, "array must not contain infs or NaNs") : OW_OK;
}

/* A vector as a matrix of one column. */
static ow_slot ow_as_column(const ow_slot *x)
{
    ow_slot column = *x;
    column.ndim = 2;
    if (x->ndim == 1) {
        column.shape[1] = 1;
        column.strides[1] = x->itemsize;
    }
    return column;
}

/* Make `z` a new matrix of the shape of `x`, stored by columns if x is. */
static int ow_ensure_stored_like(ow_step *s, ow_slot *z, const ow_slot *x)
{
    ow_set_shape(z, x->ndim, x->shape);
    int rc = ow_ensure(s, z);
    if (!rc && ow_is_fortran(x) && !ow_is_c_contiguous(x))
        ow_fortran_strides(z);
    return rc;
}

/* Make `z` a new matrix of this shape, stored by columns. */
static int ow_ensure_columns(ow_step *s, ow_slot *z, int64_t rows, int64_t cols)
{
    z->shape[0] = rows;
    z->shape[1] = cols;
    int rc = ow_ensure(s, z);
    ow_fortran_strides(z);
    return rc;
}

/* Copy matrix `x` to `memory` without gaps, stored as x is if that is by rows or columns; describe
 * it. */
static ow_mat ow_copied(ow_slot *x, char *memory, int by_columns)
{
    ow_slot copy = *x;
    ow_mat m;
    copy.data = memory;
    if (by_columns || (ow_is_fortran(x) && !ow_is_c_contiguous(x)))
        ow_fortran_strides(&copy);
    else
        ow_c_strides(&copy);
    ow_copy(&copy, x);
    m.data = memory;
    m.rows = (int)x->shape[0];
    m.cols = (int)x->shape[1];
    m.by_rows = copy.strides[1] == x->itemsize && copy.strides[0] != x->itemsize;
    m.ld = m.by_rows ? m.cols : m.rows;
    m.ld = m.ld > 0 ? m.ld : 1;
    return m;
}

/* Whole cache lines for `n` numbers of so many bytes. */
static inline int64_t ow_lines(int64_t n, int64_t itemsize)
{
    return ow_add_size(ow_mul_size(n, itemsize), OW_ALIGN - 1) / OW_ALIGN * OW_ALIGN;
}

static int ow_reserve(ow_step *s, int64_t bytes)
{
    if (bytes && ow_scratch(s, bytes) == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes for LAPACK",
                       (long long)bytes);
    return OW_OK;
}

/* Take `bytes` of scratch memory, which `*memory` then follows. */
static inline void *ow_take(char **memory, int64_t bytes)
{
    char *taken = *memory;
    *memory += bytes;
    return taken;
}

/* Columns of a matrix that are brought up to date at once. */
#define OW_UPDATED 64

#define OW_T double
#define OW_FN(name) ow_d_##name
#define OW_LAPACK ow_lapack.d
#define OW_IS_DOUBLE 1
#include "lapack_body.h"
#undef OW_T
#undef OW_FN
#undef OW_LAPACK
#undef OW_IS_DOUBLE
#define OW_T float
#define OW_FN(name) ow_s_##name
#define OW_LAPACK ow_lapack.s
#define OW_IS_DOUBLE 0
#include "lapack_body.h"
#undef OW_T
#undef OW_FN
#undef OW_LAPACK
#undef OW_IS_DOUBLE

/* A step of both dtypes: `prep` after LAPACK was loaded. */
#define OW_LAPACK_STEP(name)                                                                       \
    static int ow_##name##_prep(ow_step *s)                                                        \
    {                                                                                              \
        int rc = ow_need_lapack(s);                                                                \
        for (int i = 0; i < s->nin && !rc; i++)                                                    \
            rc = ow_lapack_fits(s, s->in[i]);                                                      \
        if (rc)                                                                                    \
            return rc;                                                                             \
        return s->in[0]->itemsize == 8 ? ow_d_##name##_prep(s) : ow_s_##name##_prep(s);            \
    }                                                                                              \
    static int ow_##name##_run(ow_step *s)                                                         \
    {                                                                                              \
        return s->in[0]->itemsize == 8 ? ow_d_##name##_run(s) : ow_s_##name##_run(s);              \
    }

OW_LAPACK_STEP(cholesky)
OW_LAPACK_STEP(solve)
OW_LAPACK_STEP(inverse)
OW_LAPACK_STEP(det)
OW_LAPACK_STEP(slogdet)
OW_LAPACK_STEP(lu)
OW_LAPACK_STEP(eigh)
OW_LAPACK_STEP(svd)
OW_LAPACK_STEP(qr)

/* --- the permutation that pivots make ------------------------------------------------------------
 * in: pivots counted from 0; out: int64 */

static int ow_permutation_prep(ow_step *s)
{
    const int64_t n = s->in[0]->shape[0];
    int rc = ow_ensure(s, (ow_set_shape(s->out[0], 1, &n), s->out[0]));
    return rc || !OW_PARAMS(s, permutation)->inverse ? rc : ow_reserve(s, ow_lines(n, 8));
}

static int ow_permutation_run(ow_step *s)
{
    ow_slot pivot = *s->in[0];
    const int64_t n = pivot.shape[0];
    const int inverse = OW_PARAMS(s, permutation)->inverse != 0;
    int64_t *z = (int64_t *)s->out[0]->data, *order = inverse ? (int64_t *)s->scratch : z;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = 0; i < n; i++, pivot.data += pivot.strides[0]) {
        const int64_t at = ow_int(&pivot), j = at < 0 ? at + n : at, value = order[i];
        if (j < 0 || j >= n)
            return OW_FAIL(s, OW_INDEX_ERROR, "pivot %lld is %lld, but there are %lld rows",
                           (long long)i, (long long)at, (long long)n);
        order[i] = order[j];
        order[j] = value;
    }
    for (int64_t i = 0; inverse && i < n; i++)
        z[order[i]] = i;
    return OW_OK;
}

#endif
