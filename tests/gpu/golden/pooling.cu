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

extern "C" __global__ void __launch_bounds__(256) ow_max_69d32368b0b5e74b(
    const float *__restrict__ a0, float *__restrict__ z, ow_i32 n, ow_u32 n_1,
    ow_u32 n_1_times, ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times, ow_u32 n_2_shift,
    ow_u32 n_3, ow_u32 n_3_times, ow_u32 n_3_shift, ow_i32 s0_0, ow_i32 s0_1, ow_i32 s0_2,
    ow_i32 s0_3, ow_i32 length2, ow_i32 window2, ow_i32 pad2, ow_i32 count2,
    ow_u32 stride2_1, ow_u32 stride2_1_times, ow_u32 stride2_1_shift, ow_i32 length3,
    ow_i32 window3, ow_i32 pad3, ow_i32 count3, ow_u32 stride3_1, ow_u32 stride3_1_times,
    ow_u32 stride3_1_shift)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 p_3 = ow_divide(i, n_3_times, n_3_shift);
        const ow_i32 p3 = i - p_3 * n_3;
        const ow_i32 p_2 = ow_divide(p_3, n_2_times, n_2_shift);
        const ow_i32 p2 = p_3 - p_2 * n_2;
        const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
        const ow_i32 p1 = p_2 - p0 * n_1;
        const ow_i32 b2 = p2 * stride2_1 - pad2;
        const ow_i32 to2 = b2 + window2 < length2 ? b2 + window2 : length2;
        const ow_i32 b3 = p3 * stride3_1 - pad3;
        const ow_i32 to3 = b3 + window3 < length3 ? b3 + window3 : length3;
        float total = (-__builtin_inff());
        for (ow_i32 e2 = b2 > 0 ? b2 : 0; e2 < to2; e2++) {
            for (ow_i32 e3 = b3 > 0 ? b3 : 0; e3 < to3; e3++) {
                const float v = a0[p0 * s0_0 + p1 * s0_1 + e2 * s0_2 + e3 * s0_3];
                if (v > total || v != v)
                    total = v;
            }
        }
        z[i] = total;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_max_grad_0dda6266f7918f1d(
    const float *__restrict__ a0, const float *__restrict__ a1,
    const float *__restrict__ a2, float *__restrict__ z, ow_i32 n, ow_u32 n_1,
    ow_u32 n_1_times, ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times, ow_u32 n_2_shift,
    ow_u32 n_3, ow_u32 n_3_times, ow_u32 n_3_shift, ow_i32 s0_0, ow_i32 s0_1, ow_i32 s0_2,
    ow_i32 s0_3, ow_i32 s1_0, ow_i32 s1_1, ow_i32 s1_2, ow_i32 s1_3, ow_i32 s2_0,
    ow_i32 s2_1, ow_i32 s2_2, ow_i32 s2_3, ow_i32 length2, ow_i32 window2, ow_i32 pad2,
    ow_i32 count2, ow_u32 stride2_1, ow_u32 stride2_1_times, ow_u32 stride2_1_shift,
    ow_i32 length3, ow_i32 window3, ow_i32 pad3, ow_i32 count3, ow_u32 stride3_1,
    ow_u32 stride3_1_times, ow_u32 stride3_1_shift)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 p_3 = ow_divide(i, n_3_times, n_3_shift);
        const ow_i32 p3 = i - p_3 * n_3;
        const ow_i32 p_2 = ow_divide(p_3, n_2_times, n_2_shift);
        const ow_i32 p2 = p_3 - p_2 * n_2;
        const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
        const ow_i32 p1 = p_2 - p0 * n_1;
        const ow_i32 at2 = p2 + pad2;
        const ow_i32 end2 = ow_divide(at2, stride2_1_times, stride2_1_shift);
        const ow_i32 last2 = end2 < count2 ? end2 : count2 - 1;
        const ow_i32 past2 = at2 - window2;
        const ow_i32 first2 = past2 < 0 ? 0 : ow_divide(past2, stride2_1_times, stride2_1_shift) + 1;
        const ow_i32 at3 = p3 + pad3;
        const ow_i32 end3 = ow_divide(at3, stride3_1_times, stride3_1_shift);
        const ow_i32 last3 = end3 < count3 ? end3 : count3 - 1;
        const ow_i32 past3 = at3 - window3;
        const ow_i32 first3 = past3 < 0 ? 0 : ow_divide(past3, stride3_1_times, stride3_1_shift) + 1;
        const float own = a0[p0 * s0_0 + p1 * s0_1 + p2 * s0_2 + p3 * s0_3];
        float total = 0;
        for (ow_i32 w2 = last2; w2 >= first2; w2--) {
            for (ow_i32 w3 = last3; w3 >= first3; w3--) {
                if (a1[p0 * s1_0 + p1 * s1_1 + w2 * s1_2 + w3 * s1_3] == own)
                    total = (float)(total + a2[p0 * s2_0 + p1 * s2_1 + w2 * s2_2 + w3 * s2_3]);
            }
        }
        z[i] = total;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_average_inc_pad_grad_b6e5720a6d197d03(
    const float *__restrict__ a1, float *__restrict__ z, ow_i32 n, ow_u32 n_1,
    ow_u32 n_1_times, ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times, ow_u32 n_2_shift,
    ow_u32 n_3, ow_u32 n_3_times, ow_u32 n_3_shift, ow_i32 s1_0, ow_i32 s1_1, ow_i32 s1_2,
    ow_i32 s1_3, ow_i32 length2, ow_i32 window2, ow_i32 pad2, ow_i32 count2,
    ow_u32 stride2_1, ow_u32 stride2_1_times, ow_u32 stride2_1_shift, ow_i32 length3,
    ow_i32 window3, ow_i32 pad3, ow_i32 count3, ow_u32 stride3_1, ow_u32 stride3_1_times,
    ow_u32 stride3_1_shift)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 p_3 = ow_divide(i, n_3_times, n_3_shift);
        const ow_i32 p3 = i - p_3 * n_3;
        const ow_i32 p_2 = ow_divide(p_3, n_2_times, n_2_shift);
        const ow_i32 p2 = p_3 - p_2 * n_2;
        const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
        const ow_i32 p1 = p_2 - p0 * n_1;
        const ow_i32 at2 = p2 + pad2;
        const ow_i32 end2 = ow_divide(at2, stride2_1_times, stride2_1_shift);
        const ow_i32 last2 = end2 < count2 ? end2 : count2 - 1;
        const ow_i32 past2 = at2 - window2;
        const ow_i32 first2 = past2 < 0 ? 0 : ow_divide(past2, stride2_1_times, stride2_1_shift) + 1;
        const ow_i32 at3 = p3 + pad3;
        const ow_i32 end3 = ow_divide(at3, stride3_1_times, stride3_1_shift);
        const ow_i32 last3 = end3 < count3 ? end3 : count3 - 1;
        const ow_i32 past3 = at3 - window3;
        const ow_i32 first3 = past3 < 0 ? 0 : ow_divide(past3, stride3_1_times, stride3_1_shift) + 1;
        float total = 0;
        for (ow_i32 w2 = last2; w2 >= first2; w2--) {
            for (ow_i32 w3 = last3; w3 >= first3; w3--) {
                const ow_i32 b2 = w2 * stride2_1 - pad2;
                const ow_i32 b3 = w3 * stride3_1 - pad3;
                const ow_i32 size2 = (b2 + window2 < length2 + pad2 ? b2 + window2 : length2 + pad2) - b2;
                const ow_i32 size3 = (b3 + window3 < length3 + pad3 ? b3 + window3 : length3 + pad3) - b3;
                const float given = a1[p0 * s1_0 + p1 * s1_1 + w2 * s1_2 + w3 * s1_3];
                total = (float)(total + (given / (float)(size2 * size3)));
            }
        }
        z[i] = total;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_average_inc_pad_2df734e3f4cc287f(
    const ow_i8 *__restrict__ a0, ow_i8 *__restrict__ z, ow_i32 n, ow_u32 n_1,
    ow_u32 n_1_times, ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times, ow_u32 n_2_shift,
    ow_u32 n_3, ow_u32 n_3_times, ow_u32 n_3_shift, ow_i32 s0_0, ow_i32 s0_1, ow_i32 s0_2,
    ow_i32 s0_3, ow_i32 length2, ow_i32 window2, ow_i32 pad2, ow_i32 count2,
    ow_u32 stride2_1, ow_u32 stride2_1_times, ow_u32 stride2_1_shift, ow_i32 length3,
    ow_i32 window3, ow_i32 pad3, ow_i32 count3, ow_u32 stride3_1, ow_u32 stride3_1_times,
    ow_u32 stride3_1_shift)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 p_3 = ow_divide(i, n_3_times, n_3_shift);
        const ow_i32 p3 = i - p_3 * n_3;
        const ow_i32 p_2 = ow_divide(p_3, n_2_times, n_2_shift);
        const ow_i32 p2 = p_3 - p_2 * n_2;
        const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
        const ow_i32 p1 = p_2 - p0 * n_1;
        const ow_i32 b2 = p2 * stride2_1 - pad2;
        const ow_i32 to2 = b2 + window2 < length2 ? b2 + window2 : length2;
        const ow_i32 b3 = p3 * stride3_1 - pad3;
        const ow_i32 to3 = b3 + window3 < length3 ? b3 + window3 : length3;
        ow_i8 total = 0;
        const ow_i32 size2 = (b2 + window2 < length2 + pad2 ? b2 + window2 : length2 + pad2) - b2;
        const ow_i32 size3 = (b3 + window3 < length3 + pad3 ? b3 + window3 : length3 + pad3) - b3;
        for (ow_i32 e2 = b2 > 0 ? b2 : 0; e2 < to2; e2++) {
            for (ow_i32 e3 = b3 > 0 ? b3 : 0; e3 < to3; e3++) {
                total = (ow_i8)(total + a0[p0 * s0_0 + p1 * s0_1 + e2 * s0_2 + e3 * s0_3]);
            }
        }
        z[i] = ((ow_i8)ow_i32_of_f64(((double)total / (double)(size2 * size3))));
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_first_of_max_d5d56fbf961d2986(
    const float *__restrict__ a0, const float *__restrict__ a1, float *__restrict__ z,
    ow_i32 n, ow_u32 n_1, ow_u32 n_1_times, ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times,
    ow_u32 n_2_shift, ow_u32 n_3, ow_u32 n_3_times, ow_u32 n_3_shift, ow_i32 s0_0,
    ow_i32 s0_1, ow_i32 s0_2, ow_i32 s0_3, ow_i32 s1_0, ow_i32 s1_1, ow_i32 s1_2,
    ow_i32 s1_3, ow_i32 length2, ow_i32 window2, ow_i32 pad2, ow_i32 count2,
    ow_u32 stride2_1, ow_u32 stride2_1_times, ow_u32 stride2_1_shift, ow_i32 length3,
    ow_i32 window3, ow_i32 pad3, ow_i32 count3, ow_u32 stride3_1, ow_u32 stride3_1_times,
    ow_u32 stride3_1_shift)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 p_3 = ow_divide(i, n_3_times, n_3_shift);
        const ow_i32 p3 = i - p_3 * n_3;
        const ow_i32 p_2 = ow_divide(p_3, n_2_times, n_2_shift);
        const ow_i32 p2 = p_3 - p_2 * n_2;
        const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
        const ow_i32 p1 = p_2 - p0 * n_1;
        const ow_i32 b2 = p2 * stride2_1 - pad2;
        const ow_i32 to2 = b2 + window2 < length2 ? b2 + window2 : length2;
        const ow_i32 b3 = p3 * stride3_1 - pad3;
        const ow_i32 to3 = b3 + window3 < length3 ? b3 + window3 : length3;
        float total = (-__builtin_inff());
        float found = 0;
        bool first = b2 >= 0 && b3 >= 0;
        for (ow_i32 e2 = b2 > 0 ? b2 : 0; e2 < to2; e2++) {
            for (ow_i32 e3 = b3 > 0 ? b3 : 0; e3 < to3; e3++) {
                const float v = a0[p0 * s0_0 + p1 * s0_1 + e2 * s0_2 + e3 * s0_3];
                if (first || v > total) {
                    total = v;
                    found = a1[p0 * s1_0 + p1 * s1_1 + e2 * s1_2 + e3 * s1_3];
                    first = false;
                }
            }
        }
        z[i] = found;
    }
}
