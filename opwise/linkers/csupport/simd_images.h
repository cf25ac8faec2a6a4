/* Convolutions, their transforms, and pooling. */
#include "simd_part.h"

/* a * b + c is rounded once here, as in every BLAS; products of sparse matrices do the same */
#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
#define OW_T float
#define OW_S f32
#define OW_BITS 32
#define OW_MASK int32_t
#include "line_vectors.h"
#include "vectors.h"
#include "conv_line_tiles.h"
#include "gemm_tiles.h"
#include "conv_tiles.h"
#include "depthwise_tiles.h"
#include "fft_tiles.h"
#include "pool_rows.h"
#include "pool_planes.h" /* after pool_rows.h */
#undef OW_T
#undef OW_S
#undef OW_BITS
#undef OW_MASK
#define OW_T double
#define OW_S f64
#define OW_BITS 64
#define OW_MASK int64_t
#include "line_vectors.h"
#include "vectors.h"
#include "conv_line_tiles.h"
#include "conv_tiles.h"
#include "depthwise_tiles.h"
#include "fft_tiles.h"
#include "pool_rows.h"
#include "pool_planes.h" /* after pool_rows.h */
#undef OW_T
#undef OW_S
#undef OW_BITS
#undef OW_MASK
#define OW_T float
#include "winograd_tiles.h"
#undef OW_T
#ifndef __clang__
#pragma GCC pop_options
#endif

void OW_FILL(images)(ow_simd *t)
{
    OW_SET(lifted, OW_BOTH(ow_lifted));
    OW_SET(pack_rows, OW_BOTH(ow_pack_rows));
    OW_SET(gather, OW_BOTH(ow_gather));
    OW_SET(spread, OW_BOTH(ow_spread));
    t->winograd_kernels = ow_winograd_kernels;
    t->winograd = ow_winograd_block;
    t->winograd_sum = ow_winograd_sum;
    OW_SET(pool, OW_BOTH(ow_pool_forward));
    OW_SET(pool_back, OW_BOTH(ow_pool_back));
    OW_SET(pool_planes, OW_BOTH(ow_pool_planes));
    OW_SET(pool_back_planes, OW_BOTH(ow_pool_back_planes));
    OW_SET(depthwise, OW_BOTH(ow_depthwise));
    OW_SET(depthwise_images, OW_BOTH(ow_depthwise_images));
    OW_SET(depthwise_kernels, OW_BOTH(ow_depthwise_kernels));
    OW_SET(fft_forward, OW_BOTH(ow_fft_forward));
    OW_SET(fft_back, OW_BOTH(ow_fft_back));
    OW_SET(fft_products, OW_BOTH(ow_fft_products));
    OW_SET(dots, OW_BOTH(ow_conv_dots));
    OW_SET(slide, OW_BOTH(ow_conv_slide));
}
