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

#ifdef __CUDACC__
OW_INLINE float ow_from_f16(ow_f16 h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}
OW_INLINE ow_f16 ow_to_f16(float x)
{
    ow_f16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
/* a double is rounded once, not to a float first */
OW_INLINE float ow_round_f16(double x)
{
    ow_f16 h;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h) : "d"(x));
    return ow_from_f16(h);
}
#endif

/* Keep in a word, 0 at first, the smallest position that something is wrong with: ~position, the
 * largest of which stays whatever the order is. */
OW_INLINE void ow_complain(ow_u32 *wrong, ow_u64 at)
{
    atomicMax(wrong, at < 0xfffffffeull ? ~(ow_u32)at : 1u);
}

extern "C" __global__ void __launch_bounds__(256) ow_search_right_bea811f45dad8857(
    const ow_f16 *x, const double *v, ow_i64 *z, ow_i64 length, ow_i64 step, ow_i32 n,
    ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift, ow_i32 s0_0, ow_i32 s0_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        const double own = v[j0 * s0_0 + j1 * s0_1];
        ow_i64 low = 0, high = length;
        while (low < high) {
            const ow_i64 middle = low + (high - low) / 2;
            const ow_i64 at = middle;
            const double other = ((double)ow_from_f16(x[at * step]));
            if (!(own < other || (other != other && own == own)))
                low = middle + 1;
            else
                high = middle;
        }
        z[i] = low;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_search_left_dcbd18ba26b04210(
    const float *x, const float *v, const ow_i32 *sorter, ow_u32 *wrong, ow_i64 *z,
    ow_i64 length, ow_i64 step, ow_i64 sorter_step, ow_i32 n, ow_u32 n1, ow_u32 n1_times,
    ow_u32 n1_shift, ow_i32 s0_0, ow_i32 s0_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        const float own = v[j0 * s0_0 + j1 * s0_1];
        ow_i64 low = 0, high = length;
        while (low < high) {
            const ow_i64 middle = low + (high - low) / 2;
            const ow_i64 at = (ow_i64)sorter[middle * sorter_step];
            if (at < 0 || at >= length) {
                ow_complain(wrong, i);
                break;
            }
            const float other = x[at * step];
            if (other < own || (own != own && other == other))
                low = middle + 1;
            else
                high = middle;
        }
        z[i] = low;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_choose_9440bde3c7f54ad6(
    const ow_i32 *number, const float *c0, const ow_f16 *c1, const float *c2, float *z,
    ow_u32 *wrong, ow_i32 n, ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift, ow_i32 s0_0,
    ow_i32 s0_1, ow_i32 s1_0, ow_i32 s1_1, ow_i32 s2_0, ow_i32 s2_1, ow_i32 s3_0,
    ow_i32 s3_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        ow_i64 chosen = (ow_i64)number[j0 * s0_0 + j1 * s0_1];
        if (chosen < 0 || chosen >= 3) {
            ow_complain(wrong, i);
            continue;
        }
        float value;
        switch (chosen) {
        case 0:
            value = c0[j0 * s1_0 + j1 * s1_1];
            break;
        case 1:
            value = ow_from_f16(c1[j0 * s2_0 + j1 * s2_1]);
            break;
        default:
            value = c2[j0 * s3_0 + j1 * s3_1];
            break;
        }
        z[i] = value;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_choose_f08f3656b4799a9e(
    const ow_i32 *number, const float *c0, float *z, ow_i64 length, ow_i64 row, ow_i32 n,
    ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift, ow_i32 s0_0, ow_i32 s0_1, ow_i32 s1_0,
    ow_i32 s1_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        ow_i64 chosen = (ow_i64)number[j0 * s0_0 + j1 * s0_1];
        if (chosen < 0 || chosen >= length) {
            chosen %= length;
            chosen += chosen < 0 ? length : 0;
        }
        const float value = c0[chosen * row + j0 * s1_0 + j1 * s1_1];
        z[i] = value;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_ravel_2476ebb858689784(
    const ow_i32 *index0, const ow_i64 *index1, ow_i64 *z, ow_u32 *wrong, ow_i64 length0,
    ow_i64 length1, ow_i64 row0, ow_i64 row1, ow_i32 n, ow_u32 n1, ow_u32 n1_times,
    ow_u32 n1_shift, ow_i32 s0_0, ow_i32 s0_1, ow_i32 s1_0, ow_i32 s1_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        ow_i64 r0 = (ow_i64)index0[j0 * s0_0 + j1 * s0_1];
        if (r0 < 0 || r0 >= length0) {
            ow_complain(wrong, i);
            continue;
        }
        ow_i64 r1 = (ow_i64)index1[j0 * s1_0 + j1 * s1_1];
        if (r1 < 0 || r1 >= length1) {
            ow_complain(wrong, i);
            continue;
        }
        z[i] = r0 * row0 + r1 * row1;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_ravel_373ca938e4b5513a(
    const ow_i64 *index0, const ow_i64 *index1, ow_i64 *z, ow_i64 length0, ow_i64 length1,
    ow_i64 row0, ow_i64 row1, ow_i32 n, ow_i32 s0_0, ow_i32 s1_0)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = i;
        ow_i64 r0 = (ow_i64)index0[j0 * s0_0];
        if (r0 < 0 || r0 >= length0) {
            r0 = r0 < 0 ? 0 : length0 - 1;
        }
        ow_i64 r1 = (ow_i64)index1[j0 * s1_0];
        if (r1 < 0 || r1 >= length1) {
            r1 = r1 < 0 ? 0 : length1 - 1;
        }
        z[i] = r0 * row0 + r1 * row1;
    }
}
