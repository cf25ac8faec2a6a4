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

extern "C" __global__ void __launch_bounds__(256) ow_scan_rows_32547abd8e283955(
    const float *__restrict__ a0, float *__restrict__ z, const float *__restrict__ a1,
    ow_i32 lines, ow_i32 length, ow_i32 inner, ow_i32 outside, ow_i32 along, ow_i32 beside,
    ow_i32 segments, ow_i32 span)
{
    const ow_i32 parts = lines * segments;
    OW_SHARED;
    float *const kept = (float *)ow_shared;
    float *const totals = kept + 2112;
    const int me = threadIdx.y * blockDim.x + threadIdx.x;
    const int base = threadIdx.y * blockDim.x * 8, mine = me * 8;
    for (ow_i32 one = (ow_i32)blockIdx.x * blockDim.y; one < parts; one += (ow_i32)gridDim.x * blockDim.y) {
        const ow_i32 group = one + threadIdx.y;
        const ow_i32 line = (ow_u32)group / segments;
        const ow_i32 segment = group - line * segments;
        const ow_i32 place = (ow_u32)line / inner, at = line - place * inner;
        const ow_i32 start = place * outside + at * beside, from = segment * span;
        const ow_i32 end = from + span;
        const ow_i32 to = group < parts ? (end < length ? end : length) : from;
        const ow_i32 result = place * length * inner + at;
        float before = segment > 0 && group < parts ? a1[group - 1] : (float)-0.0;
        for (ow_i32 j = from; j < end; j += blockDim.x * 8) {
            OW_UNROLL
            for (int v = 0; v < 8; v++) {
                const int e = threadIdx.x + v * blockDim.x;
                const ow_i32 k = j + e;
                kept[base + e + (base + e) / 32] = k < to ? a0[start + k * along] : (float)-0.0;
            }
            __syncthreads();
            float total = (float)-0.0;
            OW_UNROLL
            for (int v = 0; v < 8; v++) {
                float &own = kept[mine + v + (mine + v) / 32];
                total = (float)(total + own);
                own = total;
            }
            totals[me] = total;
            __syncthreads();
            for (int w = 1; w < blockDim.x; w *= 2) {
                float other = (float)-0.0;
                if (threadIdx.x >= w)
                    other = totals[me - w];
                other = (float)(other + totals[me]);
                __syncthreads();
                totals[me] = other;
                __syncthreads();
            }
            float first = before;
            if (threadIdx.x)
                first = (float)(first + totals[me - 1]);
            OW_UNROLL
            for (int v = 0; v < 8; v++) {
                float &own = kept[mine + v + (mine + v) / 32];
                float sum = first;
                sum = (float)(sum + own);
                own = sum;
            }
            before = (float)(before + totals[me - threadIdx.x + blockDim.x - 1]);
            __syncthreads();
            OW_UNROLL
            for (int v = 0; v < 8; v++) {
                const int e = threadIdx.x + v * blockDim.x;
                const ow_i32 k = j + e;
                if (k < to)
                    z[result + k * inner] = kept[base + e + (base + e) / 32];
            }
            __syncthreads();
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_scan_column_totals_01e70e27ad98c3a2(
    const ow_f16 *__restrict__ a0, float *__restrict__ z, ow_i32 lines, ow_i32 length,
    ow_i32 inner, ow_i32 outside, ow_i32 along, ow_i32 beside, ow_i32 segments, ow_i32 span)
{
    const ow_i32 parts = lines * segments;
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < parts; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 segment = (ow_u32)i / lines;
        const ow_i32 line = i - segment * lines;
        const ow_i32 place = (ow_u32)line / inner, at = line - place * inner;
        const ow_i32 start = place * outside + at * beside, from = segment * span;
        const ow_i32 to = length - from < span ? length : from + span;
        float total = 1.0f;
        _Pragma("unroll 4")
        for (ow_i32 k = from; k < to; k++) {
            total = (float)(total * ow_from_f16(a0[start + k * along]));
        }
        z[i] = total;
    }
}
