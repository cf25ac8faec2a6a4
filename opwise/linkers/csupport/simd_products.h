/* Products of dense and sparse matrices, leaves of factorizations. */
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
#define OW_RATE ow_fused_rate
#include "line_vectors.h"
#include "vectors.h"
#include "gemm_tiles.h"
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
#include "line_vectors.h"
#include "vectors.h"
#include "gemm_tiles.h"
#include "gemv_rows.h"
#include "factor_leaves.h"
#include "sparse_rows.h"
#include "probe_body.h"
#undef OW_T
#undef OW_S
#undef OW_BITS
#undef OW_MASK
#undef OW_RATE
/* a tile of each height takes a compiler as long as one of floats, and is used seldom */
#undef OW_HEIGHT
#define OW_HEIGHT 4
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

void OW_FILL(products)(ow_simd *t)
{
    OW_SET(gemm, OW_GEMMS(ow_gemm));
    OW_SET(pack, OW_GEMMS(ow_pack_all));
    OW_SET(packed_gemm, OW_GEMMS(ow_packed_gemm));
    OW_SET(pack_part, OW_GEMMS(ow_pack_part));
    OW_SET(small_pages, OW_GEMMS(ow_small_pages));
    OW_SET(gemv, OW_BOTH(ow_small_gemv));
    OW_SET(column_gemv, OW_BOTH(ow_column_gemv));
    OW_SET(dot, OW_BOTH(ow_dot));
    OW_SET(few_dots, OW_BOTH(ow_few_dots));
    OW_SET(lu_leaf, OW_BOTH(ow_lu_leaf));
    OW_SET(lower_leaf, OW_BOTH(ow_lower_leaf));
    t->products = OW_VECTOR >= 32;
    t->product_rows = OW_PACK_ROWS;
    OW_SET(wide, {OW_VECTOR / 2, OW_VECTOR / 4, OW_VECTOR / 2, OW_VECTOR / 4});
    OW_SET(few_columns, {OW_VECTOR / 8, OW_VECTOR / 16});
    OW_SET(pack_columns, {OW_PANELS * OW_VECTOR / 2, OW_PANELS * OW_VECTOR / 4,
                          OW_PANELS * OW_VECTOR / 2, OW_PANELS * OW_VECTOR / 4});
    OW_SET(sparse_product, OW_BOTH(ow_sparse_product));
    OW_SET(sparse_scatter, OW_BOTH(ow_sparse_scatter));
    OW_SET(sparse_dots, OW_BOTH(ow_sparse_dots));
    t->probe_rate[0][1] = ow_fused_rate_f32;
    t->probe_rate[1][1] = ow_fused_rate_f64;
}
