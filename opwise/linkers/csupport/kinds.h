/* The kinds of C steps by name: one line each. */
#ifndef OW_KINDS_H
#define OW_KINDS_H

#include "blas.h"
#include "conv_epilogue.h"
#include "ctc.h"
#include "cumulate.h"
#include "diagonal.h"
#include "elemwise.h"
#include "index.h"
#include "lapack.h"
#include "neighbours.h"
#include "nnet.h"
#include "pick.h"
#include "pool.h"
#include "products.h"
#include "random.h"
#include "reduce.h"
#include "rowwise.h"
#include "selection.h"
#include "sort.h"
#include "sparse.h"
#include "spatial.h"
#include "view.h"

typedef struct ow_kind {
    const char *name;
    ow_fn prep, run;
    int flags;
    ow_fn undo;  /* of kinds that may write the new value of a state over the old one */
    ow_fn check; /* fails where `run` of a prepared step would, and writes nothing; or NULL */
    int reads;   /* prep and check read the values of the inputs from this one on; 0: of none */
} ow_kind;

static int ow_prep_nothing(ow_step *s)
{
    (void)s;
    return OW_OK;
}

static const ow_kind ow_kinds[] = {
    {"elemwise", ow_elemwise_prep, ow_elemwise_run, OW_STATIC | OW_TOTAL},
    {"dimshuffle", ow_dimshuffle_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"alias", ow_alias_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"rebroadcast", ow_rebroadcast_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"deepcopy", ow_deepcopy_prep, ow_deepcopy_run, OW_STATIC | OW_TOTAL},
    {"reshape", ow_reshape_prep, ow_reshape_run, OW_STATIC | OW_TOTAL, .reads = 1},
    {"shape_i", ow_shape_i_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"shape", ow_shape_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"make_vector", ow_make_vector_prep, ow_make_vector_run, OW_STATIC | OW_TOTAL},
    {"alloc", ow_alloc_prep, ow_alloc_run, 0},
    {"alloc_empty", ow_alloc_shape, ow_run_nothing, 0},
    {"subtensor", ow_prep_nothing, ow_subtensor_run, 0},
    {"reduce", ow_reduce_prep, ow_reduce_run, OW_STATIC | OW_TOTAL},
    {"rowwise", ow_rowwise_prep, ow_rowwise_run, OW_STATIC | OW_TOTAL},
    {"argmax", ow_argmax_prep, ow_argmax_run, OW_STATIC | OW_TOTAL},
    {"inc_subtensor", ow_inc_subtensor_prep, ow_inc_subtensor_run, OW_STATIC | OW_CHECKED,
     .check = ow_inc_subtensor_check, .reads = 2},
    {"take_parts", ow_take_parts_prep, ow_take_parts_run, OW_STATIC, .check = ow_take_parts_check,
     .reads = 1},
    {"inc_parts", ow_inc_parts_prep, ow_inc_parts_run, OW_STATIC | OW_CHECKED,
     .check = ow_inc_parts_check, .reads = 2},
    {"pick", ow_prep_nothing, ow_pick_run, 0},
    {"put_picked", ow_put_picked_prep, ow_put_picked_run, OW_STATIC | OW_CHECKED,
     .check = ow_put_picked_check, .reads = 2},
    {"join", ow_join_prep, ow_join_run, OW_STATIC | OW_TOTAL},
    {"split", ow_split_prep, ow_split_run, OW_TOTAL},
    {"repeat", ow_repeat_prep, ow_repeat_run, OW_TOTAL},
    {"cumulate", ow_cumulate_prep, ow_cumulate_run, OW_STATIC | OW_TOTAL},
    {"sort", ow_sort_prep, ow_sort_run, OW_STATIC | OW_TOTAL},
    {"select", ow_select_prep, ow_select_run, OW_TOTAL},
    {"nonzero", ow_nonzero_prep, ow_nonzero_run, OW_TOTAL},
    {"choose", ow_choose_prep, ow_choose_run, OW_STATIC},
    {"search", ow_search_prep, ow_search_run, OW_STATIC},
    {"fill_diagonal", ow_fill_diagonal_prep, ow_fill_diagonal_run, OW_STATIC},
    {"assert", ow_alias_prep, ow_assert_run, OW_STATIC},
    {"extract_diag", ow_extract_diag_prep, ow_extract_diag_run, OW_STATIC | OW_TOTAL},
    {"alloc_diag", ow_alloc_diag_prep, ow_alloc_diag_run, OW_STATIC | OW_TOTAL},
    {"first_along", ow_first_along_prep, ow_first_along_run, OW_STATIC | OW_TOTAL},
    {"diagonal_matrix", ow_diagonal_matrix_prep, ow_diagonal_matrix_run, 0},
    {"arange", ow_arange_prep, ow_arange_run, 0},
    {"dot", ow_dot_prep, ow_dot_run, OW_STATIC | OW_TOTAL},
    {"dot22", ow_dot22_prep, ow_dot22_run, OW_STATIC | OW_TOTAL},
    {"gemm", ow_gemm_prep, ow_gemm_run, OW_STATIC | OW_TOTAL},
    {"gemv", ow_gemv_prep, ow_gemv_run, OW_STATIC | OW_TOTAL},
    {"ger", ow_ger_prep, ow_ger_run, OW_STATIC | OW_TOTAL},
    {"batched_dot", ow_batched_dot_prep, ow_batched_dot_run, OW_STATIC | OW_TOTAL},
    {"any_dot", ow_any_dot_prep, ow_any_dot_run, OW_STATIC | OW_TOTAL},
    {"any_batched_dot", ow_any_batched_prep, ow_any_batched_run, OW_STATIC | OW_TOTAL},
    {"conv", ow_conv_prep, ow_conv_run, OW_STATIC},
    {"conv_kernels", ow_prep_nothing, ow_conv_kernels_run, 0},
    {"conv_images", ow_prep_nothing, ow_conv_images_run, 0},
    {"conv_groups", ow_conv_prep, ow_conv_groups_run, OW_STATIC},
    {"conv_groups_images", ow_prep_nothing, ow_conv_groups_images_run, 0},
    {"conv_unshared", ow_prep_nothing, ow_conv_unshared_run, 0},
    {"conv_unshared_kernels", ow_prep_nothing, ow_conv_unshared_kernels_run, 0},
    {"conv_unshared_images", ow_prep_nothing, ow_conv_unshared_images_run, 0},
    {"conv_then", ow_prep_nothing, ow_conv_then_run, 0},
    {"pool", ow_pool_prep, ow_pool_run, OW_STATIC | OW_TOTAL},
    {"pool_gradient", ow_pool_back_prep, ow_pool_back_run, OW_STATIC | OW_TOTAL},
    {"neibs", ow_prep_nothing, ow_neibs_run, 0},
    {"neibs_add", ow_prep_nothing, ow_neibs_add_run, 0},
    {"spatial_grid", ow_prep_nothing, ow_grid_run, 0},
    {"spatial_grid_gradient", ow_grid_gradient_prep, ow_grid_gradient_run, OW_STATIC | OW_TOTAL},
    {"spatial_sample", ow_sample_prep, ow_sample_run, OW_STATIC | OW_TOTAL},
    {"spatial_sample_gradient", ow_sample_back_prep, ow_sample_back_run, OW_STATIC | OW_TOTAL},
    {"cholesky", ow_cholesky_prep, ow_cholesky_run, OW_STATIC},
    {"solve", ow_solve_prep, ow_solve_run, OW_STATIC},
    {"inverse", ow_inverse_prep, ow_inverse_run, OW_STATIC},
    {"det", ow_det_prep, ow_det_run, OW_STATIC | OW_TOTAL},
    {"eigh", ow_eigh_prep, ow_eigh_run, OW_STATIC},
    {"svd", ow_svd_prep, ow_svd_run, OW_STATIC},
    {"qr", ow_qr_prep, ow_qr_run, OW_STATIC | OW_TOTAL},
    {"softmax", ow_softmax_prep, ow_softmax_run, OW_STATIC | OW_TOTAL},
    {"logsoftmax", ow_softmax_prep, ow_logsoftmax_run, OW_STATIC | OW_TOTAL},
    {"softmax_grad", ow_softmax_grad_prep, ow_softmax_grad_run, OW_STATIC | OW_TOTAL},
    {"xent", ow_xent_prep, ow_xent_run, OW_STATIC},
    {"xent_dx", ow_xent_dx_prep, ow_xent_dx_run, OW_STATIC},
    {"onehot", ow_onehot_prep, ow_onehot_run, OW_STATIC},
    {"onehot_grad", ow_onehot_grad_prep, ow_onehot_grad_run, OW_STATIC},
    {"mrg_uniform", ow_mrg_prep, ow_mrg_run, OW_STATIC | OW_TOTAL, ow_mrg_undo},
    {"mrg_uniform_sized", ow_mrg_sized_prep, ow_mrg_run, 0, ow_mrg_undo},
    {"multinomial", ow_multinomial_prep, ow_multinomial_run, OW_STATIC},
    {"choice", ow_choice_prep, ow_choice_run, 0},
    {"ctc", ow_ctc_prep, ow_ctc_run, OW_STATIC | OW_CHECKED},
    {"csr_product", ow_csr_product_prep, ow_csr_product_run, OW_STATIC},
    {"csc_product", ow_csc_product_prep, ow_csc_product_run, 0},
    {"usmm_csc", ow_usmm_prep, ow_usmm_run, OW_CHECKED},
    {"product_gradient", ow_product_gradient_prep, ow_product_gradient_run, OW_STATIC},
    {"sampling_dot", ow_sampling_dot_prep, ow_sampling_dot_run, OW_STATIC},
    {"times_matrix", ow_times_matrix_prep, ow_times_matrix_run, OW_STATIC},
    {"with_vector", ow_with_vector_prep, ow_with_vector_run, OW_STATIC},
    {"add_dense", ow_add_dense_prep, ow_add_dense_run, OW_STATIC | OW_CHECKED},
    {"data_gradient", ow_data_gradient_prep, ow_data_gradient_run, OW_STATIC},
    {NULL, NULL, NULL, 0},
};

static const ow_kind *ow_find_kind(const char *name)
{
    for (const ow_kind *k = ow_kinds; k->name; k++)
        if (!strcmp(k->name, name))
            return k;
    return NULL;
}

#endif
