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

#define ow_tanh_f32(x) tanhf(x)

struct __align__(16) ow_f32x4 { float at[4]; };

OW_INLINE void ow_49508d749aa364d0_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 + x1);
    const float t1 = ow_tanh_f32(t0);
    *z0 = t1;
}

OW_INLINE void ow_1f73ee4dd2d8e1eb_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 * x1);
    *z0 = t0;
}

#define ow_exp_f32(x) expf(x)

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

struct __align__(16) ow_f16x8 { ow_f16 at[8]; };

OW_INLINE void ow_1c2b000662a72655_one(float x0, float *z0)
{
    const float t0 = ow_exp_f32(x0);
    *z0 = t0;
}

OW_INLINE void ow_b7150f73e8e1172f_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 + x1);
    *z0 = t0;
}

extern "C" __global__ void __launch_bounds__(256) ow_rows_a5c480a671ea68aa(
    const float *a0, const float *a1, float *z0, ow_i32 n, ow_u32 n1, ow_u32 n1_times,
    ow_u32 n1_shift, ow_i32 s0_0, ow_i32 s1_0, ow_i32 s2_0)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        const ow_f32x4 v0 = *(const ow_f32x4 *)(a0 + j0 * s0_0 + j1 * 4);
        const ow_f32x4 v1 = *(const ow_f32x4 *)(a1 + j0 * s1_0 + j1 * 4);
        ow_f32x4 w2;
        OW_UNROLL
        for (int k = 0; k < 4; k++) {
            float r0;
            ow_49508d749aa364d0_one(v0.at[k], v1.at[k], &r0);
            w2.at[k] = r0;
        }
        *(ow_f32x4 *)(z0 + j0 * s2_0 + j1 * 4) = w2;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_flat_5ae889e3b3cbbf70(
    const float *a0, const float *a1, float *z0, ow_i32 n)
{
    const ow_i32 threads = (ow_i32)gridDim.x * 256;
    const ow_i32 first = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x;
    const ow_i32 end = n - 3, step = threads * 4;
    ow_i32 j = first * 4;
    for (; j + 1 * step < end; j += 2 * step) {
        ow_f32x4 v0[2];
        ow_f32x4 v1[2];
        OW_UNROLL
        for (int u = 0; u < 2; u++) {
            const auto i = j + u * step;
            v0[u] = *(const ow_f32x4 *)(a0 + i);
            v1[u] = *(const ow_f32x4 *)(a1 + i);
        }
        OW_UNROLL
        for (int u = 0; u < 2; u++) {
            const auto i = j + u * step;
            ow_f32x4 w2;
            OW_UNROLL
            for (int k = 0; k < 4; k++) {
                float r0;
                ow_1f73ee4dd2d8e1eb_one(v0[u].at[k], v1[u].at[k], &r0);
                w2.at[k] = r0;
            }
            *(ow_f32x4 *)(z0 + i) = w2;
        }
    }
    for (; j < end; j += step) {
        const ow_f32x4 v0 = *(const ow_f32x4 *)(a0 + j);
        const ow_f32x4 v1 = *(const ow_f32x4 *)(a1 + j);
        ow_f32x4 w2;
        OW_UNROLL
        for (int k = 0; k < 4; k++) {
            float r0;
            ow_1f73ee4dd2d8e1eb_one(v0.at[k], v1.at[k], &r0);
            w2.at[k] = r0;
        }
        *(ow_f32x4 *)(z0 + j) = w2;
    }
    for (ow_i32 i = n - n % 4 + first; i < n; i += threads) {
        const float v0 = a0[i];
        const float v1 = a1[i];
        float r0;
        ow_1f73ee4dd2d8e1eb_one(v0, v1, &r0);
        z0[i] = r0;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_flat_0764b95be659d2eb(
    const ow_f16 *a0, ow_f16 *z0, ow_i32 n)
{
    const ow_i32 threads = (ow_i32)gridDim.x * 256;
    const ow_i32 first = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x;
    const ow_i32 end = n - 7, step = threads * 8;
    ow_i32 j = first * 8;
    for (; j + 1 * step < end; j += 2 * step) {
        ow_f16x8 v0[2];
        OW_UNROLL
        for (int u = 0; u < 2; u++) {
            const auto i = j + u * step;
            v0[u] = *(const ow_f16x8 *)(a0 + i);
        }
        OW_UNROLL
        for (int u = 0; u < 2; u++) {
            const auto i = j + u * step;
            ow_f16x8 w1;
            OW_UNROLL
            for (int k = 0; k < 8; k++) {
                float r0;
                ow_1c2b000662a72655_one(ow_from_f16(v0[u].at[k]), &r0);
                w1.at[k] = ow_to_f16(r0);
            }
            *(ow_f16x8 *)(z0 + i) = w1;
        }
    }
    for (; j < end; j += step) {
        const ow_f16x8 v0 = *(const ow_f16x8 *)(a0 + j);
        ow_f16x8 w1;
        OW_UNROLL
        for (int k = 0; k < 8; k++) {
            float r0;
            ow_1c2b000662a72655_one(ow_from_f16(v0.at[k]), &r0);
            w1.at[k] = ow_to_f16(r0);
        }
        *(ow_f16x8 *)(z0 + j) = w1;
    }
    for (ow_i32 i = n - n % 8 + first; i < n; i += threads) {
        const ow_f16 v0 = a0[i];
        float r0;
        ow_1c2b000662a72655_one(ow_from_f16(v0), &r0);
        z0[i] = ow_to_f16(r0);
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_strided_39a529211e97c8d0(
    const float *a0, const float *a1, float *z0, ow_i32 n, ow_u32 n1, ow_u32 n1_times,
    ow_u32 n1_shift, ow_u32 n2, ow_u32 n2_times, ow_u32 n2_shift, ow_i32 s0_0, ow_i32 s0_1,
    ow_i32 s0_2, ow_i32 s1_0, ow_i32 s1_1, ow_i32 s1_2, ow_i32 s2_0, ow_i32 s2_1,
    ow_i32 s2_2)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j_2 = ow_divide(i, n2_times, n2_shift);
        const ow_i32 j2 = i - j_2 * n2;
        const ow_i32 j0 = ow_divide(j_2, n1_times, n1_shift);
        const ow_i32 j1 = j_2 - j0 * n1;
        {
            const float v0 = a0[j0 * s0_0 + j1 * s0_1 + j2 * s0_2];
            const float v1 = a1[j0 * s1_0 + j1 * s1_1 + j2 * s1_2];
            float r0;
            ow_b7150f73e8e1172f_one(v0, v1, &r0);
            z0[j0 * s2_0 + j1 * s2_1 + j2 * s2_2] = r0;
        }
    }
}
