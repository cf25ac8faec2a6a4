/* What simd.h promises, compiled for one kind of processor: OW_TABLE is the table of it. */
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "buffers.h"
#include "labels.h"
#include "simd.h"

#include "reducers_body.h"

#include "scalar.h"
#include "special.h" /* after scalar.h */

#include "loops_float_body.h"

#define OW_WITHIN static inline __attribute__((always_inline))
#define OW_GLUE_(name, s) name##_##s
#define OW_GLUE(name, s) OW_GLUE_(name, s)
#define OW_N(name) OW_GLUE(name, OW_S)


#if defined(__AVX512F__)
#define OW_VECTOR 64
#define OW_TILE_ROWS 12
#elif defined(__AVX2__)
#define OW_VECTOR 32
#define OW_TILE_ROWS 6
#else
#define OW_VECTOR 16
#define OW_TILE_ROWS 4
#endif

#define OW_INT_32 int32_t
#define OW_INT_64 int64_t
#define OW_T float
#define OW_S f32
#define OW_BITS 32
#define OW_LOG logf
#include "vectors.h"
#include "nnet_rows.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#undef OW_LOG

#define OW_T double
#define OW_S f64
#define OW_BITS 64
#define OW_LOG log
#include "vectors.h"
#include "nnet_rows.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#undef OW_LOG

#define OW_VALUE(x) (x)
#define OW_S b
#define OW_T uint8_t
#define OW_V uint8_t
#define OW_P int8_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S i8
#define OW_T int8_t
#define OW_V int8_t
#define OW_P int8_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S i16
#define OW_T int16_t
#define OW_V int16_t
#define OW_P int16_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S i32
#define OW_T int32_t
#define OW_V int32_t
#define OW_P int32_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S i64
#define OW_T int64_t
#define OW_V int64_t
#define OW_P int64_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S u8
#define OW_T uint8_t
#define OW_V uint8_t
#define OW_P int8_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S u16
#define OW_T uint16_t
#define OW_V uint16_t
#define OW_P int16_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S u32
#define OW_T uint32_t
#define OW_V uint32_t
#define OW_P int32_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S u64
#define OW_T uint64_t
#define OW_V uint64_t
#define OW_P int64_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S f32
#define OW_T float
#define OW_V float
#define OW_P int32_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#define OW_S f64
#define OW_T double
#define OW_V double
#define OW_P int64_t
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#undef OW_VALUE
#define OW_S f16
#define OW_T ow_f16
#define OW_V float
#define OW_P int32_t
#define OW_VALUE(x) ow_from_f16(x)
#include "argmax_rows.h"
#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
#undef OW_VALUE

#include "table_rows.h"

/* z = x + y, as elementwise steps do it; unrolled, so that it does not matter where the code lies */
static void ow_probe_add(double *restrict z, const double *restrict x, const double *restrict y,
                         int64_t n)
{
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++)
        z[i] = x[i] + y[i];
}

#define OW_T float
#define OW_S f32
#define OW_RATE ow_rate
#include "probe_body.h"
#undef OW_T
#undef OW_S
#define OW_T double
#define OW_S f64
#include "probe_body.h"
#undef OW_T
#undef OW_S
#undef OW_RATE

#include "mrg_rows.h"
#include "twister_rows.h"
#include "sort_rows.h"

#define OW_SUM_BLOCK 256 /* terms of a sum for which a panel of y stays in the first cache */
#define OW_PANELS 8      /* panels that are copied together, and stay in the second cache */
#define OW_PACK_ROWS (20 * OW_TILE_ROWS) /* rows of a large x that are copied together, for the second cache */
#define OW_X_ROWS 96     /* rows of x that are copied together, where they lie apart */
#define OW_READ_ONCE (1 << 22) /* bytes of a y of which no copy pays if it is read once */
#define OW_NEAR_ROWS 4096  /* bytes between its rows up to which that holds */
#define OW_FAR 2048      /* bytes between rows from which on they do */

/* a * b + c is rounded once here, as in every BLAS; products of sparse matrices do the same */
#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
#define OW_T float
#define OW_S f32
#define OW_BITS 32
#define OW_MASK int32_t
#define OW_RATE ow_fused_rate
#include "conv_line_tiles.h"
#include "gemm_tiles.h"
#include "conv_tiles.h"
#include "depthwise_tiles.h"
#include "fft_tiles.h"
#include "pool_rows.h"
#include "pool_planes.h" /* after pool_rows.h */
#include "gemv_rows.h"
#include "factor_leaves.h"
#include "sparse_rows.h"
#include "probe_body.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#undef OW_MASK
#define OW_T double
#define OW_S f64
#define OW_BITS 64
#define OW_MASK int64_t
#include "conv_line_tiles.h"
#include "gemm_tiles.h"
#include "conv_tiles.h"
#include "depthwise_tiles.h"
#include "fft_tiles.h"
#include "pool_rows.h"
#include "pool_planes.h" /* after pool_rows.h */
#include "gemv_rows.h"
#include "factor_leaves.h"
#include "sparse_rows.h"
#include "probe_body.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#undef OW_MASK
#undef OW_RATE
#include "winograd_tiles.h"
#define OW_T int32_t
#define OW_S i32
#define OW_BITS 32
#include "vectors.h"
#include "gemm_tiles.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#define OW_T int64_t
#define OW_S i64
#define OW_BITS 64
#include "vectors.h"
#include "gemm_tiles.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#ifndef __clang__
#pragma GCC pop_options
#endif

#pragma push_macro("OW_VECTOR")
#undef OW_VECTOR
#define OW_VECTOR 16
#define OW_INT_8 int8_t
#define OW_INT_16 int16_t
#define OW_T uint8_t
#define OW_S t8
#define OW_BITS 8
#include "transpose_tiles.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#define OW_T uint16_t
#define OW_S t16
#define OW_BITS 16
#include "transpose_tiles.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#ifdef __AVX2__
#undef OW_VECTOR
#define OW_VECTOR 32
#endif
#define OW_T uint32_t
#define OW_S t32
#define OW_BITS 32
#include "transpose_tiles.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#define OW_T uint64_t
#define OW_S t64
#define OW_BITS 64
#include "transpose_tiles.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#pragma pop_macro("OW_VECTOR")

#define OW_BOTH(name) {name##_f32, name##_f64}
#define OW_GEMMS(name) {name##_f32, name##_f64, name##_i32, name##_i64}
#define OW_EACH(name)                                                                              \
    {name##_b, name##_i8, name##_i16, name##_i32, name##_i64, name##_u8, name##_u16, name##_u32,   \
     name##_u64, name##_f32, name##_f64, name##_f16}

const ow_simd OW_TABLE = {
    OW_TABLE_NAME,           ow_reducer_rows,          ow_reducer_rows_count,
    ow_float_loop_rows,      ow_float_loop_count,
    OW_BOTH(ow_softmax),     OW_BOTH(ow_logsoftmax),   OW_BOTH(ow_softmax_grad),
    OW_BOTH(ow_xent),        OW_BOTH(ow_xent_dx),      OW_BOTH(ow_onehot),
    OW_BOTH(ow_onehot_grad), OW_GEMMS(ow_gemm),         OW_GEMMS(ow_pack_all),
    OW_GEMMS(ow_packed_gemm), OW_GEMMS(ow_pack_part),    OW_GEMMS(ow_small_pages), OW_BOTH(ow_small_gemv),
    OW_BOTH(ow_column_gemv), OW_BOTH(ow_dot), OW_BOTH(ow_few_dots), OW_BOTH(ow_lu_leaf), OW_BOTH(ow_lower_leaf),
    OW_VECTOR >= 32, OW_PACK_ROWS,
    {OW_VECTOR / 2, OW_VECTOR / 4, OW_VECTOR / 2, OW_VECTOR / 4},
    {OW_VECTOR / 8, OW_VECTOR / 16},
    {OW_PANELS * OW_VECTOR / 2, OW_PANELS * OW_VECTOR / 4, OW_PANELS * OW_VECTOR / 2,
     OW_PANELS * OW_VECTOR / 4},
    OW_BOTH(ow_lifted),      OW_BOTH(ow_pack_rows),    OW_BOTH(ow_gather),
    OW_BOTH(ow_spread),
    ow_winograd_kernels,     ow_winograd_block,        ow_winograd_sum,
    OW_BOTH(ow_pool_forward), OW_BOTH(ow_pool_back), OW_BOTH(ow_pool_planes), OW_BOTH(ow_pool_back_planes),
    OW_BOTH(ow_depthwise),   OW_BOTH(ow_depthwise_images), OW_BOTH(ow_depthwise_kernels),
    OW_BOTH(ow_fft_forward), OW_BOTH(ow_fft_back),    OW_BOTH(ow_fft_products),
    OW_BOTH(ow_mrg),
    ow_twister_f32,          ow_twister_f64,           ow_polar_points,
    ow_polar_normals,
    OW_EACH(ow_argmax_run),
    OW_EACH(ow_argmax_rows),
    ow_sort_row,
    ow_select_row,
    OW_BOTH(ow_sparse_product),
    OW_BOTH(ow_sparse_scatter),
    OW_BOTH(ow_sparse_dots),
    OW_BOTH(ow_conv_dots),
    OW_BOTH(ow_conv_slide),
    ow_take_rows,
    ow_set_rows,
    OW_BOTH(ow_add_rows),
    {ow_transpose_tile_t8, ow_transpose_tile_t16, ow_transpose_tile_t32, ow_transpose_tile_t64},
    ow_probe_add,
    {{ow_rate_f32, ow_fused_rate_f32}, {ow_rate_f64, ow_fused_rate_f64}},
};
