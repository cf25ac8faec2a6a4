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

struct __align__(16) ow_f32x4 { float at[4]; };

OW_INLINE void ow_6b016848a505f627_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 - x1);
    const float t1 = (t0 * t0);
    *z0 = t1;
}

OW_INLINE void ow_across_89b0c9c68f6ba228(double &a0)
{
    for (int w = (blockDim.x < 32 ? blockDim.x : 32) / 2; w; w /= 2) {
        const double b0 = __shfl_xor_sync(0xffffffffu, a0, w);
        a0 = (double)(a0 + b0);
    }
    if (blockDim.x <= 32)
        return;
    __shared__ double s0[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        s0[threadIdx.x / 32] = a0;
    }
    __syncthreads();
    a0 = s0[0];
    for (int i = 1; i < blockDim.x / 32; i++) {
        const double b0 = s0[i];
        a0 = (double)(a0 + b0);
    }
}

OW_INLINE void ow_9afc275d8d8859ae_one(float x0, float *z0)
{
    *z0 = x0;
}

extern "C" __global__ void __launch_bounds__(256) ow_rows_vectors_701aa2d2df04e4f0(
    const float *__restrict__ a0, const float *__restrict__ a1, void *z0, ow_i32 kept,
    ow_i32 length, ow_i32 segments, ow_i32 span, ow_i32 s0_0, ow_i32 s1_0)
{
    const ow_i32 groups = kept * segments;
    const ow_i32 all = (ow_i32)gridDim.x * blockDim.y;
    for (ow_i32 first = (ow_i32)blockIdx.x * blockDim.y; first < groups; first += all) {
        const ow_i32 group = first + threadIdx.y;
        const ow_i32 at = (ow_u32)group / segments;
        double s0[4] = {0.0, 0.0, 0.0, 0.0};
        if (group < groups) {
            const ow_i32 segment = group - at * segments;
            const ow_i32 from = segment * span;
            const ow_i32 to = length - from < span ? length : from + span;
            const ow_i32 k0 = at;
            const ow_i32 o0 = k0 * s0_0;
            const ow_i32 o1 = k0 * s1_0;
            const float x1 = a1[o1];
            const ow_i32 end = to - 3, step = blockDim.x * 4;
            ow_i32 j = from + (ow_i32)threadIdx.x * 4;
            for (; j + 3 * step < end; j += 4 * step) {
                ow_f32x4 v0[4];
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    v0[u] = *(const ow_f32x4 *)(a0 + o0 + i);
                }
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    OW_UNROLL
                    for (int k = 0; k < 4; k++) {
                        float w0;
                        ow_6b016848a505f627_one(v0[u].at[k], x1, &w0);
                        const double e0 = ((double)w0);
                        s0[k] = (double)(s0[k] + e0);
                    }
                }
            }
            for (; j < end; j += step) {
                const ow_f32x4 v0 = *(const ow_f32x4 *)(a0 + o0 + j);
                OW_UNROLL
                for (int k = 0; k < 4; k++) {
                    float w0;
                    ow_6b016848a505f627_one(v0.at[k], x1, &w0);
                    const double e0 = ((double)w0);
                    s0[k] = (double)(s0[k] + e0);
                }
            }
            for (j = to - (to - from) % 4 + (ow_i32)threadIdx.x; j < to; j += blockDim.x) {
                float w0;
                ow_6b016848a505f627_one(a0[o0 + j], x1, &w0);
                const double e0 = ((double)w0);
                s0[0] = (double)(s0[0] + e0);
            }
        }
        double t0 = s0[0];
        OW_UNROLL
        for (int k = 1; k < 4; k++)
            t0 = (double)(t0 + s0[k]);
        ow_across_89b0c9c68f6ba228(t0);
        if (threadIdx.x == 0 && group < groups) {
            if (segments == 1) { ((float *)z0)[at] = ((float)t0); }
            else { ((double *)z0)[group] = t0; }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_columns_59b824f38a44c5ab(
    const float *__restrict__ a0, void *z0, ow_i32 kept, ow_i32 length, ow_i32 segments,
    ow_i32 span, ow_u32 m1, ow_u32 m1_times, ow_u32 m1_shift, ow_u32 m2, ow_u32 m2_times,
    ow_u32 m2_shift, ow_i32 s0_0, ow_i32 r0_0, ow_i32 r0_1, ow_i32 r0_2)
{
    __shared__ double s0[256];
    const ow_u32 here = threadIdx.y * blockDim.x + threadIdx.x;
    const ow_i32 tiles = (kept + blockDim.x - 1) / blockDim.x;
    for (ow_i32 task = blockIdx.x; task < tiles * segments; task += gridDim.x) {
        const ow_i32 segment = (ow_u32)task / tiles;
        const ow_i32 at = (task - segment * tiles) * blockDim.x + threadIdx.x;
        double t0 = 0.0;
        if (at < kept) {
            const ow_i32 from = segment * span;
            const ow_i32 to = length - from < span ? length : from + span;
            const ow_i32 k0 = at;
            const ow_i32 o0 = k0 * s0_0;
            const ow_i32 step = blockDim.y;
            ow_i32 j = from + (ow_i32)threadIdx.y;
            for (; j + 7 * step < to; j += 8 * step) {
                float v0[8];
                OW_UNROLL
                for (int u = 0; u < 8; u++) {
                    const auto i = j + u * step;
                    const ow_i32 j_2 = ow_divide(i, m2_times, m2_shift);
                    const ow_i32 j2 = i - j_2 * m2;
                    const ow_i32 j0 = ow_divide(j_2, m1_times, m1_shift);
                    const ow_i32 j1 = j_2 - j0 * m1;
                    v0[u] = a0[o0 + j0 * r0_0 + j1 * r0_1 + j2 * r0_2];
                }
                OW_UNROLL
                for (int u = 0; u < 8; u++) {
                    float w0;
                    ow_9afc275d8d8859ae_one(v0[u], &w0);
                    const double e0 = ((double)w0);
                    t0 = (double)(t0 + e0);
                }
            }
            for (; j < to; j += step) {
                const ow_i32 j_2 = ow_divide(j, m2_times, m2_shift);
                const ow_i32 j2 = j - j_2 * m2;
                const ow_i32 j0 = ow_divide(j_2, m1_times, m1_shift);
                const ow_i32 j1 = j_2 - j0 * m1;
                const float v0 = a0[o0 + j0 * r0_0 + j1 * r0_1 + j2 * r0_2];
                float w0;
                ow_9afc275d8d8859ae_one(v0, &w0);
                const double e0 = ((double)w0);
                t0 = (double)(t0 + e0);
            }
        }
        s0[here] = t0;
        for (ow_u32 half = blockDim.y / 2; half; half /= 2) {
            __syncthreads();
            if (threadIdx.y < half) {
                t0 = (double)(t0 + s0[here + half * blockDim.x]);
                s0[here] = t0;
            }
        }
        if (threadIdx.y == 0 && at < kept) {
            if (segments == 1) { ((float *)z0)[at] = ((float)t0); }
            else { ((double *)z0)[segment * kept + at] = t0; }
        }
        __syncthreads();
    }
}
