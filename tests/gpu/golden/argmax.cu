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

/* Whether b, found at bt, goes before a, found at at, as the largest: -1 is nowhere. Of equals the
 * first goes before others, and so does the first NaN before all numbers. */
template <typename T> OW_INLINE bool ow_better(T b, ow_i64 bt, T a, ow_i64 at)
{
    if (bt < 0 || at < 0)
        return at < bt;
    if (b != b)
        return a == a || bt < at;
    return a == a && (b > a || (b == a && bt < at));
}

OW_INLINE void ow_9afc275d8d8859ae_one(float x0, float *z0)
{
    *z0 = x0;
}

OW_INLINE void ow_across_35aed554731233ad(float &a0, ow_i64 &a1)
{
    for (int w = (blockDim.x < 32 ? blockDim.x : 32) / 2; w; w /= 2) {
        const float b0 = __shfl_xor_sync(0xffffffffu, a0, w);
        const ow_i64 b1 = __shfl_xor_sync(0xffffffffu, a1, w);
        if (ow_better(b0, b1, a0, a1)) { a0 = b0; a1 = b1; }
    }
    if (blockDim.x <= 32)
        return;
    __shared__ float s0[32];
    __shared__ ow_i64 s1[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        s0[threadIdx.x / 32] = a0;
        s1[threadIdx.x / 32] = a1;
    }
    __syncthreads();
    a0 = s0[0];
    a1 = s1[0];
    for (int i = 1; i < blockDim.x / 32; i++) {
        const float b0 = s0[i];
        const ow_i64 b1 = s1[i];
        if (ow_better(b0, b1, a0, a1)) { a0 = b0; a1 = b1; }
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_rows_strided_cf828b646bacf15a(
    const float *__restrict__ a0, void *z0, void *z1, ow_i32 kept, ow_i32 length,
    ow_i32 segments, ow_i32 span, ow_i32 s0_0, ow_i32 r0_0)
{
    const ow_i32 groups = kept * segments;
    const ow_i32 all = (ow_i32)gridDim.x * blockDim.y;
    for (ow_i32 first = (ow_i32)blockIdx.x * blockDim.y; first < groups; first += all) {
        const ow_i32 group = first + threadIdx.y;
        const ow_i32 at = (ow_u32)group / segments;
        float s0[1] = {0};
        ow_i64 s1[1] = {-1};
        if (group < groups) {
            const ow_i32 segment = group - at * segments;
            const ow_i32 from = segment * span;
            const ow_i32 to = length - from < span ? length : from + span;
            const ow_i32 k0 = at;
            const ow_i32 o0 = k0 * s0_0;
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j + 3 * step < to; j += 4 * step) {
                float v0[4];
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    const ow_i32 j0 = i;
                    v0[u] = a0[o0 + j0 * r0_0];
                }
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    float w0;
                    ow_9afc275d8d8859ae_one(v0[u], &w0);
                    const float e0 = w0;
                    const ow_i64 e1 = (ow_i64)i;
                    if (ow_better(e0, e1, s0[0], s1[0])) { s0[0] = e0; s1[0] = e1; }
                }
            }
            for (; j < to; j += step) {
                const ow_i32 j0 = j;
                const float v0 = a0[o0 + j0 * r0_0];
                float w0;
                ow_9afc275d8d8859ae_one(v0, &w0);
                const float e0 = w0;
                const ow_i64 e1 = (ow_i64)j;
                if (ow_better(e0, e1, s0[0], s1[0])) { s0[0] = e0; s1[0] = e1; }
            }
        }
        float t0 = s0[0];
        ow_i64 t1 = s1[0];
        ow_across_35aed554731233ad(t0, t1);
        if (threadIdx.x == 0 && group < groups) {
            if (segments == 1) { ((ow_i64 *)z1)[at] = t1; }
            else { ((float *)z0)[group] = t0; ((ow_i64 *)z1)[group] = t1; }
        }
    }
}
