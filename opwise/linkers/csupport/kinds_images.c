/* Kinds of steps over images: convolution, pooling, neighbourhoods, transformers. */
#include "kinds.h"

#include "conv_epilogue.h"
#include "neighbours.h"
#include "pool.h"
#include "spatial.h"

const ow_kind ow_kinds_of_images[] = {
    {"conv", sizeof(ow_conv_params), ow_conv_prep, ow_conv_run, OW_STATIC},
    {"conv_kernels", sizeof(ow_conv_params), ow_prep_nothing, ow_conv_kernels_run, 0},
    {"conv_images", sizeof(ow_conv_params), ow_prep_nothing, ow_conv_images_run, 0},
    {"conv_groups", sizeof(ow_conv_params), ow_conv_prep, ow_conv_groups_run, OW_STATIC},
    {"conv_groups_images", sizeof(ow_conv_params), ow_prep_nothing, ow_conv_groups_images_run, 0},
    {"conv_unshared", sizeof(ow_conv_params), ow_prep_nothing, ow_conv_unshared_run, 0},
    {"conv_unshared_kernels", sizeof(ow_conv_params), ow_prep_nothing, ow_conv_unshared_kernels_run,
     0},
    {"conv_unshared_images", sizeof(ow_conv_params), ow_prep_nothing, ow_conv_unshared_images_run,
     0},
    {"conv_then", sizeof(ow_conv_then_params), ow_prep_nothing, ow_conv_then_run, 0},
    {"pool", sizeof(ow_pool_params), ow_pool_prep, ow_pool_run, OW_STATIC | OW_TOTAL},
    {"pool_gradient", sizeof(ow_pool_params), ow_pool_back_prep, ow_pool_back_run,
     OW_STATIC | OW_TOTAL},
    {"neibs", sizeof(ow_border_params), ow_prep_nothing, ow_neibs_run, 0},
    {"neibs_add", sizeof(ow_border_params), ow_prep_nothing, ow_neibs_add_run, 0},
    {"spatial_grid", 0, ow_prep_nothing, ow_grid_run, 0},
    {"spatial_grid_gradient", 0, ow_grid_gradient_prep, ow_grid_gradient_run, OW_STATIC | OW_TOTAL},
    {"spatial_sample", sizeof(ow_border_params), ow_sample_prep, ow_sample_run,
     OW_STATIC | OW_TOTAL},
    {"spatial_sample_gradient", sizeof(ow_border_params), ow_sample_back_prep, ow_sample_back_run,
     OW_STATIC | OW_TOTAL},
    {NULL, 0, NULL, NULL, 0},
};

const char *ow_conv_algorithm_of(int kind, const void *params, const int64_t *image,
                                 const int64_t *kernel, int f64)
{
    if (kind == OW_BY_KERNELS)
        return ow_kernels_algorithm_name(params, image, kernel, f64);
    return ow_conv_algorithm_name(kind == OW_BY_IMAGES, params, image, kernel, f64);
}
