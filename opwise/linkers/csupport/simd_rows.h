/* Rows: softmaxes, positions of maxima, tables, sorting, random numbers, transposed tiles. */
#include "simd_part.h"

#include "scalar.h"
#include "special.h" /* after scalar.h */

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
#define OW_S i8
#define OW_T int8_t
#define OW_V int8_t
#define OW_P int8_t
#include "argmax_rows.h"
#define OW_S i16
#define OW_T int16_t
#define OW_V int16_t
#define OW_P int16_t
#include "argmax_rows.h"
#define OW_S i32
#define OW_T int32_t
#define OW_V int32_t
#define OW_P int32_t
#include "argmax_rows.h"
#define OW_S i64
#define OW_T int64_t
#define OW_V int64_t
#define OW_P int64_t
#include "argmax_rows.h"
#define OW_S u8
#define OW_T uint8_t
#define OW_V uint8_t
#define OW_P int8_t
#include "argmax_rows.h"
#define OW_S u16
#define OW_T uint16_t
#define OW_V uint16_t
#define OW_P int16_t
#include "argmax_rows.h"
#define OW_S u32
#define OW_T uint32_t
#define OW_V uint32_t
#define OW_P int32_t
#include "argmax_rows.h"
#define OW_S u64
#define OW_T uint64_t
#define OW_V uint64_t
#define OW_P int64_t
#include "argmax_rows.h"
#define OW_S f32
#define OW_T float
#define OW_V float
#define OW_P int32_t
#include "argmax_rows.h"
#define OW_S f64
#define OW_T double
#define OW_V double
#define OW_P int64_t
#include "argmax_rows.h"
#undef OW_VALUE
#define OW_S f16
#define OW_T ow_f16
#define OW_V float
#define OW_P int32_t
#define OW_VALUE(x) ow_from_f16(x)
#include "argmax_rows.h"
#undef OW_VALUE

#include "table_rows.h"

/* z = x + y, as elementwise steps do it; unrolled, so that it does not matter where the code
 * lies */
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

void OW_FILL(rows)(ow_simd *t)
{
    OW_SET(softmax, OW_BOTH(ow_softmax));
    OW_SET(logsoftmax, OW_BOTH(ow_logsoftmax));
    OW_SET(softmax_grad, OW_BOTH(ow_softmax_grad));
    OW_SET(xent, OW_BOTH(ow_xent));
    OW_SET(xent_dx, OW_BOTH(ow_xent_dx));
    OW_SET(onehot, OW_BOTH(ow_onehot));
    OW_SET(onehot_grad, OW_BOTH(ow_onehot_grad));
    OW_SET(mrg, OW_BOTH(ow_mrg));
    t->twister_floats = ow_twister_f32;
    t->twister_doubles = ow_twister_f64;
    t->polar_points = ow_polar_points;
    t->polar_normals = ow_polar_normals;
    OW_SET(argmax, OW_EACH(ow_argmax_run));
    OW_SET(argmax_rows, OW_EACH(ow_argmax_rows));
    t->sort = ow_sort_row;
    t->select = ow_select_row;
    t->take_rows = ow_take_rows;
    t->set_rows = ow_set_rows;
    OW_SET(add_rows, OW_BOTH(ow_add_rows));
    OW_SET(transpose, {ow_transpose_tile_t8, ow_transpose_tile_t16, ow_transpose_tile_t32,
                       ow_transpose_tile_t64});
    t->probe_add = ow_probe_add;
    t->probe_rate[0][0] = ow_rate_f32;
    t->probe_rate[1][0] = ow_rate_f64;
}
