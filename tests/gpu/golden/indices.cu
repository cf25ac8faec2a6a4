typedef signed char ow_i8;
typedef short ow_i16;
typedef int ow_i32;
typedef long long ow_i64;
typedef unsigned char ow_u8;
typedef unsigned short ow_u16;
typedef unsigned int ow_u32;
typedef unsigned long long ow_u64;
typedef unsigned char ow_b;
#define OW_CHECK_RANGE         /* a device would give the nearest integer, and 0 for NaN */
typedef unsigned short ow_f16; /* the bits of a half, which kernels hold as a float */
#define OW_INLINE static __device__ __forceinline__ __attribute__((unused))
#ifdef __CUDACC__
#define OW_SHARED extern __shared__ __align__(16) unsigned char ow_shared[]
#define OW_UNROLL _Pragma("unroll")
#define __builtin_nan(s) __longlong_as_double(0x7ff8000000000000ll)
#define __builtin_nanf(s) __int_as_float(0x7fc00000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_fabs fabs
#define __builtin_fabsf fabsf
#define __builtin_copysign copysign
#define __builtin_copysignf copysignf
#endif
/* i / n for i below 2**31, with two numbers that stand for n: see layouts.divisor */
OW_INLINE ow_u32 ow_divide(ow_u32 i, ow_u32 times, ow_u32 shift)
{
    return (__umulhi(i, times) + i) >> shift;
}

/* C leaves open what becomes of a number that does not fit. GCC for x86 uses an instruction that
 * gives the least integer, which is what is wanted, unless it knows the number already. Elsewhere
 * the number is compared with the limits; ABOVE: that it is above the lower limit of int32. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(OW_CHECK_RANGE)
#define OW_TRUNCATE(T, x, above_low, high, least)                                                  \
    (!__builtin_constant_p(x) || ((above_low) && (x) < (high)) ? (T)(x) : (least))
#else
#define OW_TRUNCATE(T, x, above_low, high, least) ((above_low) && (x) < (high) ? (T)(x) : (least))
#endif
#define OW_OF_FLOAT(S, F, ABOVE)                                                                   \
    OW_INLINE ow_i32 ow_i32_of_##S(F x)                                                            \
    {                                                                                              \
        return OW_TRUNCATE(ow_i32, x, ABOVE, (F)2147483648.0, -2147483647 - 1);                    \
    }                                                                                              \
    OW_INLINE ow_i64 ow_i64_of_##S(F x)                                                            \
    {                                                                                              \
        return OW_TRUNCATE(ow_i64, x, x >= (F) - 9223372036854775808.0, (F)9223372036854775808.0,  \
                           -9223372036854775807LL - 1);                                            \
    }                                                                                              \
    /* from 2**63 on, 2**63 is taken off and added again; a negative number keeps its low bits */  \
    OW_INLINE ow_u64 ow_u64_of_##S(F x)                                                            \
    {                                                                                              \
        const int large = x >= (F)9223372036854775808.0;                                           \
        const F rest = large ? x - (F)9223372036854775808.0 : x;                                   \
        return (ow_u64)ow_i64_of_##S(rest) ^ (large ? 9223372036854775808ULL : 0);                 \
    }
#ifndef OW_FLOATS
#define OW_FLOATS
OW_OF_FLOAT(f32, float, x >= -2147483648.0f)
OW_OF_FLOAT(f64, double, x > -2147483649.0)
#endif

struct __align__(16) ow_u64x2 { ow_u64 at[2]; };

/* Keep in a word, 0 at first, the smallest position that something is wrong with: ~position, the
 * largest of which stays whatever the order is. */
OW_INLINE void ow_complain(ow_u32 *wrong, ow_u64 at)
{
    atomicMax(wrong, at < 0xfffffffeull ? ~(ow_u32)at : 1u);
}

extern "C" __global__ void __launch_bounds__(256) ow_take_2ed80c13c9599b64(
    const ow_u64x2 *x, const ow_i32 *index, ow_u64x2 *z, ow_u32 *wrong, ow_i32 n,
    ow_i32 inner, ow_i64 length, ow_i64 index_step, ow_i64 row)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 k = (ow_u32)i / (ow_u32)inner;
        ow_i64 r = (ow_i64)index[k * index_step];
        r = r < 0 ? r + length : r;
        if (r < 0 || r >= length) {
            ow_complain(wrong, k);
            continue;
        }
        const ow_i32 j = i - k * inner;
        z[i] = x[r * row + j];
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_sort_rows_905e9b78870b0e39(
    const ow_i32 *index, ow_u64 *keys, ow_u32 *wrong, ow_i64 n, ow_i64 length,
    ow_i64 index_step, ow_i32 size_of_tile)
{
    __shared__ ow_u64 tile[2048];
    const ow_i64 from = (ow_i64)blockIdx.x * size_of_tile;
    for (ow_i32 i = threadIdx.x; i < size_of_tile; i += 256) {
        const ow_i64 k = from + i;
        tile[i] = 0xffffffffffffffffull;
        if (k < n) {
            ow_i64 r = (ow_i64)index[k * index_step];
            r = r < 0 ? r + length : r;
            if (r < 0 || r >= length) {
                ow_complain(wrong, k);
                r = 0xffffffffll;
            }
            tile[i] = (ow_u64)r << 32 | (ow_u64)k;
        }
    }
    for (ow_i32 size = 2; size <= size_of_tile; size *= 2)
        for (ow_i32 half = size / 2; half; half /= 2) {
            __syncthreads();
            for (ow_i32 i = threadIdx.x; i < size_of_tile / 2; i += 256) {
                const ow_i32 a = i / half * 2 * half + i % half, b = a + half;
                const ow_u64 x = tile[a], y = tile[b];
                if (x > y == ((a & size) == 0)) {
                    tile[a] = y;
                    tile[b] = x;
                }
            }
        }
    __syncthreads();
    for (ow_i32 i = threadIdx.x; i < size_of_tile && from + i < n; i += 256)
        keys[from + i] = tile[i];
}

extern "C" __global__ void __launch_bounds__(256) ow_add_rows_dec94c576e7d75ca(
    const ow_u64 *keys, const float *y, float *z, ow_i32 count, ow_i32 n, ow_i32 inner,
    ow_i64 row, ow_i64 y_row, ow_i32 s0, ow_i32 t0)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 p = (ow_u32)i / (ow_u32)inner;
        const ow_i32 j = i - p * inner;
        const ow_i64 r = keys[p] >> 32;
        if (r == 0xffffffffll)
            continue;
        const ow_i32 j0 = j;
        if (p > 0 && keys[p - 1] >> 32 == (ow_u64)r)
            continue;
        float sum = z[r * row + j0 * s0];
        ow_i32 q = p;
        for (; q + 7 < count && keys[q + 7] >> 32 == (ow_u64)r; q += 8) {
            float terms[8];
            OW_UNROLL
            for (int u = 0; u < 8; u++) {
                const ow_i64 k = (ow_u32)keys[q + u];
                terms[u] = y[k * y_row + j0 * t0];
            }
            OW_UNROLL
            for (int u = 0; u < 8; u++)
                sum = (float)(sum + terms[u]);
        }
        for (; q < count && keys[q] >> 32 == (ow_u64)r; q++) {
            const ow_i64 k = (ow_u32)keys[q];
            sum = (float)(sum + y[k * y_row + j0 * t0]);
        }
        z[r * row + j0 * s0] = sum;
    }
}
