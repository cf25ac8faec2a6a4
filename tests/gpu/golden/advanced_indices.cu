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

/* Keep in a word, 0 at first, the smallest position that something is wrong with: ~position, the
 * largest of which stays whatever the order is. */
OW_INLINE void ow_complain(ow_u32 *wrong, ow_u64 at)
{
    atomicMax(wrong, at < 0xfffffffeull ? ~(ow_u32)at : 1u);
}

struct __align__(16) ow_u64x2 { ow_u64 at[2]; };

extern "C" __global__ void __launch_bounds__(256) ow_pick_3e79bb64e060bd79(
    const ow_u32 *x, const ow_i32 *index0, const ow_i64 *index1, ow_u32 *z, ow_u32 *wrong,
    ow_i32 n, ow_i64 length0, ow_i64 length1, ow_i64 row0, ow_i64 row1, ow_i32 i0_0,
    ow_i32 i1_0)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = i;
        ow_i64 r0 = (ow_i64)index0[j0 * i0_0];
        r0 = r0 < 0 ? r0 + length0 : r0;
        ow_i64 r1 = (ow_i64)index1[j0 * i1_0];
        r1 = r1 < 0 ? r1 + length1 : r1;
        if (r0 < 0 || r0 >= length0 || r1 < 0 || r1 >= length1) {
            ow_complain(wrong, i);
            continue;
        }
        z[i] = x[r0 * row0 + r1 * row1];
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_pick_8debe95b84793af3(
    const ow_u64x2 *x, const ow_i64 *index0, const ow_i32 *index1, ow_u64x2 *z,
    ow_u32 *wrong, ow_i32 n, ow_i64 length0, ow_i64 length1, ow_i64 row0, ow_i64 row1,
    ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift, ow_u32 n2, ow_u32 n2_times,
    ow_u32 n2_shift, ow_i32 i0_0, ow_i32 i0_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j_2 = ow_divide(i, n2_times, n2_shift);
        const ow_i32 j2 = i - j_2 * n2;
        const ow_i32 j0 = ow_divide(j_2, n1_times, n1_shift);
        const ow_i32 j1 = j_2 - j0 * n1;
        ow_i64 r0 = (ow_i64)index0[j0 * i0_0 + j1 * i0_1];
        r0 = r0 < 0 ? r0 + length0 : r0;
        ow_i64 r1 = (ow_i64)index1[0];
        r1 = r1 < 0 ? r1 + length1 : r1;
        if (r0 < 0 || r0 >= length0 || r1 < 0 || r1 >= length1) {
            ow_complain(wrong, i);
            continue;
        }
        z[i] = x[r0 * row0 + r1 * row1 + j2];
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_check_dfa0b61a9ad39636(
    const ow_i64 *index0, const ow_i32 *index1, ow_u32 *wrong, ow_i32 n, ow_i32 places,
    ow_i64 length0, ow_i64 length1, ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift,
    ow_i32 i0_0, ow_i32 i0_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        ow_i64 r1 = (ow_i64)index1[0];
        r1 = r1 < 0 ? r1 + length1 : r1;
        if (r1 < 0 || r1 >= length1)
            ow_complain(wrong, i);
        if (i >= places)
            continue;
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        ow_i64 r0 = (ow_i64)index0[j0 * i0_0 + j1 * i0_1];
        r0 = r0 < 0 ? r0 + length0 : r0;
        if (r0 < 0 || r0 >= length0)
            ow_complain(wrong, i);
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_rows_6d663d309ceb7a41(
    const ow_i64 *index0, const ow_i64 *index1, ow_i64 *rows, ow_i32 n, ow_i64 lowest,
    ow_i64 end, ow_i64 length0, ow_i64 length1, ow_i64 row0, ow_i64 row1, ow_u32 n1,
    ow_u32 n1_times, ow_u32 n1_shift, ow_i32 i0_0, ow_i32 i0_1, ow_i32 i1_0, ow_i32 i1_1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        ow_i64 r0 = (ow_i64)index0[j0 * i0_0 + j1 * i0_1];
        r0 = r0 < 0 ? r0 + length0 : r0;
        ow_i64 r1 = (ow_i64)index1[j0 * i1_0 + j1 * i1_1];
        r1 = r1 < 0 ? r1 + length1 : r1;
        if (r0 < 0 || r0 >= length0 || r1 < 0 || r1 >= length1)
            rows[i] = end;
        else
            rows[i] = lowest + r0 * row0 + r1 * row1;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_add_rows_d0717c6a80211ea0(
    const ow_u64 *keys, const float *y, float *z, ow_i32 count, ow_i32 n, ow_i32 inner,
    ow_i64 row, ow_u32 m1, ow_u32 m1_times, ow_u32 m1_shift, ow_i32 y0, ow_i32 y1,
    ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift, ow_i32 s0, ow_i32 s1, ow_i32 t0, ow_i32 t1)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 p = (ow_u32)i / (ow_u32)inner;
        const ow_i32 j = i - p * inner;
        const ow_i64 r = keys[p] >> 32;
        if (r == 0xffffffffll)
            continue;
        const ow_i32 j0 = ow_divide(j, n1_times, n1_shift);
        const ow_i32 j1 = j - j0 * n1;
        if (p > 0 && keys[p - 1] >> 32 == (ow_u64)r)
            continue;
        float sum = z[r * row + j0 * s0 + j1 * s1];
        ow_i32 q = p;
        for (; q + 7 < count && keys[q + 7] >> 32 == (ow_u64)r; q += 8) {
            float terms[8];
            OW_UNROLL
            for (int u = 0; u < 8; u++) {
                const ow_i64 k = (ow_u32)keys[q + u];
                const ow_i32 k0 = ow_divide(k, m1_times, m1_shift);
                const ow_i32 k1 = k - k0 * m1;
                terms[u] = y[k0 * y0 + k1 * y1 + j0 * t0 + j1 * t1];
            }
            OW_UNROLL
            for (int u = 0; u < 8; u++)
                sum = (float)(sum + terms[u]);
        }
        for (; q < count && keys[q] >> 32 == (ow_u64)r; q++) {
            const ow_i64 k = (ow_u32)keys[q];
            const ow_i32 k0 = ow_divide(k, m1_times, m1_shift);
            const ow_i32 k1 = k - k0 * m1;
            sum = (float)(sum + y[k0 * y0 + k1 * y1 + j0 * t0 + j1 * t1]);
        }
        z[r * row + j0 * s0 + j1 * s1] = sum;
    }
}
