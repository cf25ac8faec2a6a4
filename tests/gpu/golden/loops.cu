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

/* Copy bytes between arrays that do not overlap, in the widest words that both begin and end at:
 * those with number start, start + step, ... */
template <typename T>
OW_INLINE void ow_copy_words(const void *from, void *to, ow_i64 words, ow_i64 start, ow_i64 step)
{
    for (ow_i64 i = start; i < words; i += step)
        ((T *)to)[i] = ((const T *)from)[i];
}
struct __align__(16) ow_u32x4 {
    ow_u32 at[4];
};
OW_INLINE void ow_copy_bytes(const ow_u8 *from, ow_u8 *to, ow_i64 size, ow_i64 start, ow_i64 step)
{
    const ow_u64 ends = (ow_u64)from | (ow_u64)to | (ow_u64)size;
    if (ends % 16 == 0)
        ow_copy_words<ow_u32x4>(from, to, size / 16, start, step);
    else if (ends % 4 == 0)
        ow_copy_words<ow_u32>(from, to, size / 4, start, step);
    else
        ow_copy_words<ow_u8>(from, to, size, start, step);
}

extern "C" __global__ void __launch_bounds__(256) ow_copy_rows_fd28537cb26d74bc(
    const ow_i64 *__restrict__ table, ow_i32 entries, ow_i64 t)
{
    const ow_i64 start = (ow_i64)blockIdx.x * 256 + threadIdx.x;
    const ow_i64 step = (ow_i64)gridDim.x * 256;
    for (ow_i32 k = 0; k < entries; k++) {
        const ow_i64 *const entry = table + 9 * k;
        const ow_u8 *const from = (const ow_u8 *)entry[0] + (t + entry[3]) % entry[2] * entry[1];
        ow_u8 *const to = (ow_u8 *)entry[4] + (t + entry[7]) % entry[6] * entry[5];
        ow_copy_bytes(from, to, entry[8], start, step);
    }
}
