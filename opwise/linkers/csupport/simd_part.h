/* What the kernels of every part need: simd_<part>.h is compiled for one kind of processor,
 * OW_TARGET, and fills in its part of the table of that. */
#ifndef OW_SIMD_PART_H
#define OW_SIMD_PART_H

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <string.h>

#include "buffers.h"
#include "labels.h"
#include "simd.h"

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

/* rows of a large left operand that are copied together, for the second cache */
#define OW_PACK_ROWS (20 * OW_TILE_ROWS)
/* rows of a tile of a product, at most; OW_PACK_ROWS is a multiple */
#define OW_HEIGHT OW_TILE_ROWS

#define OW_INT_32 int32_t
#define OW_INT_64 int64_t

/* Elements of a vector of OW_T, whatever that is where this is read. */
#define OW_LANES ((int)(OW_VECTOR / sizeof(OW_T)))

/* Halve the number of vectors; each of what is left has the sums of two. */
#define OW_ADD_UP(n)                                                                               \
    _Pragma("GCC unroll 8") for (int i = 0; i < n / 2 && n <= OW_LANES; i++) v[i] =                \
        OW_N(ow_add_pairs)(v[2 * i], v[2 * i + 1]);

/* The function that fills in a part of a table, and a field of it. */
#define OW_FILL(part) OW_GLUE(ow_fill_##part, OW_TARGET)
#define OW_SET(field, ...) memcpy(t->field, (__typeof__(t->field))__VA_ARGS__, sizeof(t->field))
#define OW_BOTH(name) {name##_f32, name##_f64}
#define OW_GEMMS(name) {name##_f32, name##_f64, name##_i32, name##_i64}
#define OW_EACH(name)                                                                              \
    {name##_b,   name##_i8,  name##_i16, name##_i32, name##_i64, name##_u8,                        \
     name##_u16, name##_u32, name##_u64, name##_f32, name##_f64, name##_f16}

#endif
