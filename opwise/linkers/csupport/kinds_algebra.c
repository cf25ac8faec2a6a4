/* Kinds of steps of products, factorizations and sparse matrices. */
#define _GNU_SOURCE /* dladdr */
#include "kinds.h"

#include "blas.h"
#include "lapack.h"
#include "products.h"
#include "sparse.h"

const ow_kind ow_kinds_of_algebra[] = {
    {"dot", 0, ow_dot_prep, ow_dot_run, OW_STATIC | OW_TOTAL},
    {"dot22", 0, ow_dot22_prep, ow_dot22_run, OW_STATIC | OW_TOTAL},
    {"gemm", sizeof(ow_update_params), ow_gemm_prep, ow_gemm_run, OW_STATIC | OW_TOTAL},
    {"gemv", sizeof(ow_update_params), ow_gemv_prep, ow_gemv_run, OW_STATIC | OW_TOTAL},
    {"ger", sizeof(ow_update_params), ow_ger_prep, ow_ger_run, OW_STATIC | OW_TOTAL},
    {"batched_dot", 0, ow_batched_dot_prep, ow_batched_dot_run, OW_STATIC | OW_TOTAL},
    {"any_dot", 0, ow_any_dot_prep, ow_any_dot_run, OW_STATIC | OW_TOTAL},
    {"any_batched_dot", 0, ow_any_batched_prep, ow_any_batched_run, OW_STATIC | OW_TOTAL},
    {"cholesky", sizeof(ow_cholesky_params), ow_cholesky_prep, ow_cholesky_run, OW_STATIC},
    {"solve", sizeof(ow_solve_params), ow_solve_prep, ow_solve_run, OW_STATIC},
    {"inverse", 0, ow_inverse_prep, ow_inverse_run, OW_STATIC},
    {"det", 0, ow_det_prep, ow_det_run, OW_STATIC | OW_TOTAL},
    {"slogdet", 0, ow_slogdet_prep, ow_slogdet_run, OW_STATIC | OW_TOTAL},
    {"lu", sizeof(ow_lu_params), ow_lu_prep, ow_lu_run, OW_STATIC | OW_TOTAL},
    {"permutation", sizeof(ow_permutation_params), ow_permutation_prep, ow_permutation_run,
     OW_STATIC},
    {"eigh", sizeof(ow_eigh_params), ow_eigh_prep, ow_eigh_run, OW_STATIC},
    {"svd", sizeof(ow_factors_params), ow_svd_prep, ow_svd_run, OW_STATIC},
    {"qr", sizeof(ow_factors_params), ow_qr_prep, ow_qr_run, OW_STATIC | OW_TOTAL},
    {"csr_product", 0, ow_csr_product_prep, ow_csr_product_run, OW_STATIC},
    {"csc_product", 0, ow_csc_product_prep, ow_csc_product_run, 0},
    {"usmm_csc", sizeof(ow_update_params), ow_usmm_prep, ow_usmm_run, OW_CHECKED},
    {"product_gradient", sizeof(ow_format_params), ow_product_gradient_prep,
     ow_product_gradient_run, OW_STATIC},
    {"sampling_dot", 0, ow_sampling_dot_prep, ow_sampling_dot_run, OW_STATIC},
    {"times_matrix", sizeof(ow_format_params), ow_times_matrix_prep, ow_times_matrix_run,
     OW_STATIC},
    {"with_vector", sizeof(ow_with_vector_params), ow_with_vector_prep, ow_with_vector_run,
     OW_STATIC},
    {"add_dense", sizeof(ow_add_dense_params), ow_add_dense_prep, ow_add_dense_run,
     OW_STATIC | OW_CHECKED},
    {"data_gradient", 0, ow_data_gradient_prep, ow_data_gradient_run, OW_STATIC},
    {NULL, 0, NULL, NULL, 0},
};

struct ow_blas ow_blas;
struct ow_lapack ow_lapack;
int (*ow_load_blas)(char *error);
int (*ow_load_lapack)(char *error);

int ow_set_blas(const char *name, void *fn)
{
#define OW_BLAS_ROW(f)                                                                             \
    if (!strcmp(name, #f)) {                                                                       \
        *(void **)&ow_blas.f = fn;                                                                 \
        return 1;                                                                                  \
    }
#define OW_LAPACK_ROW(f)                                                                           \
    if (!strcmp(name, "d" #f)) {                                                                   \
        *(void **)&ow_lapack.d.f = fn;                                                             \
        return 1;                                                                                  \
    }                                                                                              \
    if (!strcmp(name, "s" #f)) {                                                                   \
        *(void **)&ow_lapack.s.f = fn;                                                             \
        return 1;                                                                                  \
    }
    OW_BLAS_ROW(dgemm)
    OW_BLAS_ROW(sgemm)
    OW_BLAS_ROW(dgemv)
    OW_BLAS_ROW(sgemv)
    OW_BLAS_ROW(dger)
    OW_BLAS_ROW(sger)
    OW_LAPACK_ROW(trsv)
    OW_LAPACK_ROW(trsm)
    OW_LAPACK_ROW(potrf)
    OW_LAPACK_ROW(getrf)
    OW_LAPACK_ROW(getri)
    OW_LAPACK_ROW(syevd)
    OW_LAPACK_ROW(gesdd)
    OW_LAPACK_ROW(geqrf)
    OW_LAPACK_ROW(orgqr)
    return 0;
}

int ow_has_blas(void) { return ow_blas.sger != NULL; }

int ow_has_lapack(void) { return ow_lapack.s.orgqr != NULL; }

void ow_cuts(int64_t m, int64_t n, int64_t k, int type, int64_t *down, int64_t *across)
{
    const ow_product q = {.m = m, .n = n, .k = k};
    ow_cut_product(&q, type, down, across);
}
