/* Kinds of steps over images: convolution, pooling, neighbourhoods, transformers. */
#include "kinds.h"

#include "conv_epilogue.h"
#include "neighbours.h"
#include "pool.h"
#include "spatial.h"

const ow_kind ow_kinds_of_images[] = {
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
    {NULL, NULL, NULL, 0},
};

const char *ow_conv_algorithm_of(int kind, const int64_t *ints, const int64_t *image, const int64_t *kernel, int f64)
{
    if (kind == OW_BY_KERNELS)
        return ow_kernels_algorithm_name(ints, image, kernel, f64);
    return ow_conv_algorithm_name(kind == OW_BY_IMAGES, ints, image, kernel, f64);
}
