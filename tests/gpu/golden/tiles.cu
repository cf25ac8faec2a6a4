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

OW_INLINE void ow_1f73ee4dd2d8e1eb_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 * x1);
    *z0 = t0;
}

OW_INLINE void ow_d902268cef4f4229_one(ow_i8 x0, ow_i8 *z0)
{
    *z0 = x0;
}

OW_INLINE void ow_a6638c2135c8e787_one(ow_i8 x0, ow_i8 x1, ow_i8 x2, ow_i8 x3, ow_i8 x4, ow_i8 *z0)
{
    const ow_i8 t0 = ((ow_i8)((((x0 + x1) + x2) + x3) + x4));
    *z0 = t0;
}

extern "C" __global__ void __launch_bounds__(256) ow_tiled_17a180a492ff022c(
    const float *a0, const float *a1, float *z0, ow_i32 n, ow_u32 n1, ow_u32 n1_times,
    ow_u32 n1_shift, ow_i32 rows, ow_i32 columns, ow_i32 s0_0, ow_i32 s0_1, ow_i32 s1_0,
    ow_i32 s1_1, ow_i32 s2_0, ow_i32 s2_1, ow_i32 t0, ow_i32 t1)
{
    OW_SHARED;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (ow_i32 i = (ow_i32)blockIdx.x; i < n; i += (ow_i32)gridDim.x) {
        const ow_i32 j0 = ow_divide(i, n1_times, n1_shift);
        const ow_i32 j1 = i - j0 * n1;
        const ow_i32 row = j0 * 32, column = j1 * 32;
        const ow_i32 height = rows - row, width = columns - column;
        const ow_i32 o0 = row * s0_0 + column * s0_1;
        const ow_i32 o1 = row * s1_0 + column * s1_1;
        const ow_i32 o2 = row * s2_0 + column * s2_1;
        const ow_i32 p0 = t0 < 0 ? s0_1 : s0_0;
        const ow_i32 q0 = t0 < 0 ? s0_0 : s0_1;
        const ow_i32 p1 = t1 < 0 ? s1_1 : s1_0;
        const ow_i32 q1 = t1 < 0 ? s1_0 : s1_1;
        float v0[4];
        float v1[4];
        OW_UNROLL
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            const bool straight = x < width && r < height;
            const bool turned = x < height && r < width;
            v0[u] = 0;
            if (t0 < 0 ? straight : turned)
                v0[u] = a0[o0 + x * p0 + r * q0];
            v1[u] = 0;
            if (t1 < 0 ? straight : turned)
                v1[u] = a1[o1 + x * p1 + r * q1];
        }
        __syncthreads();
        OW_UNROLL
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            if (t0 >= 0)
                ((float *)(ow_shared + t0))[x * 33 + r] = v0[u];
            if (t1 >= 0)
                ((float *)(ow_shared + t1))[x * 33 + r] = v1[u];
        }
        __syncthreads();
        OW_UNROLL
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            if (x < width && r < height) {
                const float e0 =
                    t0 < 0 ? v0[u] : ((float *)(ow_shared + t0))[r * 33 + x];
                const float e1 =
                    t1 < 0 ? v1[u] : ((float *)(ow_shared + t1))[r * 33 + x];
                float r0;
                ow_1f73ee4dd2d8e1eb_one(e0, e1, &r0);
                z0[o2 + r * s2_0 + x * s2_1] = r0;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_tiled_5f23f273bae5137d(
    const ow_i8 *a0, ow_i8 *z0, ow_i32 n, ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift,
    ow_u32 n2, ow_u32 n2_times, ow_u32 n2_shift, ow_u32 n3, ow_u32 n3_times,
    ow_u32 n3_shift, ow_i32 rows, ow_i32 columns, ow_i32 s0_0, ow_i32 s0_1, ow_i32 s0_2,
    ow_i32 s0_3, ow_i32 s1_0, ow_i32 s1_1, ow_i32 s1_2, ow_i32 s1_3, ow_i32 t0)
{
    OW_SHARED;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (ow_i32 i = (ow_i32)blockIdx.x; i < n; i += (ow_i32)gridDim.x) {
        const ow_i32 j_3 = ow_divide(i, n3_times, n3_shift);
        const ow_i32 j3 = i - j_3 * n3;
        const ow_i32 j_2 = ow_divide(j_3, n2_times, n2_shift);
        const ow_i32 j2 = j_3 - j_2 * n2;
        const ow_i32 j0 = ow_divide(j_2, n1_times, n1_shift);
        const ow_i32 j1 = j_2 - j0 * n1;
        const ow_i32 row = j2 * 32, column = j3 * 32;
        const ow_i32 height = rows - row, width = columns - column;
        const ow_i32 o0 = j0 * s0_0 + j1 * s0_1 + row * s0_2 + column * s0_3;
        const ow_i32 o1 = j0 * s1_0 + j1 * s1_1 + row * s1_2 + column * s1_3;
        const ow_i32 p0 = t0 < 0 ? s0_3 : s0_2;
        const ow_i32 q0 = t0 < 0 ? s0_2 : s0_3;
        ow_i8 v0[4];
        OW_UNROLL
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            const bool straight = x < width && r < height;
            const bool turned = x < height && r < width;
            v0[u] = 0;
            if (t0 < 0 ? straight : turned)
                v0[u] = a0[o0 + x * p0 + r * q0];
        }
        __syncthreads();
        OW_UNROLL
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            if (t0 >= 0)
                ((ow_i8 *)(ow_shared + t0))[x * 33 + r] = v0[u];
        }
        __syncthreads();
        OW_UNROLL
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            if (x < width && r < height) {
                const ow_i8 e0 =
                    t0 < 0 ? v0[u] : ((ow_i8 *)(ow_shared + t0))[r * 33 + x];
                ow_i8 r0;
                ow_d902268cef4f4229_one(e0, &r0);
                z0[o1 + r * s1_2 + x * s1_3] = r0;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_tiled_5d43788eccb3da9a(
    const ow_i8 *a0, const ow_i8 *a1, const ow_i8 *a2, const ow_i8 *a3, const ow_i8 *a4,
    ow_i8 *z0, ow_i32 n, ow_u32 n1, ow_u32 n1_times, ow_u32 n1_shift, ow_u32 n2,
    ow_u32 n2_times, ow_u32 n2_shift, ow_i32 rows, ow_i32 columns, ow_i32 s0_0, ow_i32 s0_1,
    ow_i32 s0_2, ow_i32 s1_0, ow_i32 s1_1, ow_i32 s1_2, ow_i32 s2_0, ow_i32 s2_1,
    ow_i32 s2_2, ow_i32 s3_0, ow_i32 s3_1, ow_i32 s3_2, ow_i32 s4_0, ow_i32 s4_1,
    ow_i32 s4_2, ow_i32 s5_0, ow_i32 s5_1, ow_i32 s5_2, ow_i32 t0, ow_i32 t1, ow_i32 t2,
    ow_i32 t3, ow_i32 t4)
{
    OW_SHARED;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (ow_i32 i = (ow_i32)blockIdx.x; i < n; i += (ow_i32)gridDim.x) {
        const ow_i32 j_2 = ow_divide(i, n2_times, n2_shift);
        const ow_i32 j2 = i - j_2 * n2;
        const ow_i32 j0 = ow_divide(j_2, n1_times, n1_shift);
        const ow_i32 j1 = j_2 - j0 * n1;
        const ow_i32 row = j1 * 32, column = j2 * 32;
        const ow_i32 height = rows - row, width = columns - column;
        const ow_i32 o0 = j0 * s0_0 + row * s0_1 + column * s0_2;
        const ow_i32 o1 = j0 * s1_0 + row * s1_1 + column * s1_2;
        const ow_i32 o2 = j0 * s2_0 + row * s2_1 + column * s2_2;
        const ow_i32 o3 = j0 * s3_0 + row * s3_1 + column * s3_2;
        const ow_i32 o4 = j0 * s4_0 + row * s4_1 + column * s4_2;
        const ow_i32 o5 = j0 * s5_0 + row * s5_1 + column * s5_2;
        __syncthreads();
        _Pragma("unroll 1")
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            if (x < height && r < width) {
                if (t0 >= 0)
                    ((ow_i8 *)(ow_shared + t0))[x * 33 + r] = a0[o0 + x * s0_1 + r * s0_2];
                if (t1 >= 0)
                    ((ow_i8 *)(ow_shared + t1))[x * 33 + r] = a1[o1 + x * s1_1 + r * s1_2];
                if (t2 >= 0)
                    ((ow_i8 *)(ow_shared + t2))[x * 33 + r] = a2[o2 + x * s2_1 + r * s2_2];
                if (t3 >= 0)
                    ((ow_i8 *)(ow_shared + t3))[x * 33 + r] = a3[o3 + x * s3_1 + r * s3_2];
                if (t4 >= 0)
                    ((ow_i8 *)(ow_shared + t4))[x * 33 + r] = a4[o4 + x * s4_1 + r * s4_2];
            }
        }
        __syncthreads();
        _Pragma("unroll 1")
        for (int u = 0; u < 4; u++) {
            const int r = y + u * 8;
            if (x < width && r < height) {
                const ow_i8 e0 =
                    t0 < 0 ? a0[o0 + r * s0_1 + x * s0_2] : ((ow_i8 *)(ow_shared + t0))[r * 33 + x];
                const ow_i8 e1 =
                    t1 < 0 ? a1[o1 + r * s1_1 + x * s1_2] : ((ow_i8 *)(ow_shared + t1))[r * 33 + x];
                const ow_i8 e2 =
                    t2 < 0 ? a2[o2 + r * s2_1 + x * s2_2] : ((ow_i8 *)(ow_shared + t2))[r * 33 + x];
                const ow_i8 e3 =
                    t3 < 0 ? a3[o3 + r * s3_1 + x * s3_2] : ((ow_i8 *)(ow_shared + t3))[r * 33 + x];
                const ow_i8 e4 =
                    t4 < 0 ? a4[o4 + r * s4_1 + x * s4_2] : ((ow_i8 *)(ow_shared + t4))[r * 33 + x];
                ow_i8 r0;
                ow_a6638c2135c8e787_one(e0, e1, e2, e3, e4, &r0);
                z0[o5 + r * s5_1 + x * s5_2] = r0;
            }
        }
    }
}
