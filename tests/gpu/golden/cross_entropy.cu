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

/* Keep in a word, 0 at first, the smallest position that something is wrong with: ~position, the
 * largest of which stays whatever the order is. */
OW_INLINE void ow_complain(ow_u32 *wrong, ow_u64 at)
{
    atomicMax(wrong, at < 0xfffffffeull ? ~(ow_u32)at : 1u);
}

#define ow_expneg_f32(x) expf(x)

#define ow_log_f32(x) logf(x)

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

OW_INLINE void ow_across_0e28abd572bd2c16(float &a0)
{
    for (int w = (blockDim.x < 32 ? blockDim.x : 32) / 2; w; w /= 2) {
        const float b0 = __shfl_xor_sync(0xffffffffu, a0, w);
        a0 = (float)(a0 + b0);
    }
    if (blockDim.x <= 32)
        return;
    __shared__ float s0[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        s0[threadIdx.x / 32] = a0;
    }
    __syncthreads();
    a0 = s0[0];
    for (int i = 1; i < blockDim.x / 32; i++) {
        const float b0 = s0[i];
        a0 = (float)(a0 + b0);
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_xent_dbb86dc333436a27(
    const float *__restrict__ a0, const float *__restrict__ a1, const ow_i64 *labels,
    float *z0, float *z1, ow_i64 *z2, ow_u32 *wrong, ow_i32 rows, ow_i32 n, ow_i64 row0,
    ow_i64 step0, ow_i64 row1, ow_i64 step1, ow_i64 label_step)
{
    OW_SHARED;
    float *kept0 = (float *)ow_shared + threadIdx.y * n;
    for (ow_i32 first = blockIdx.x * blockDim.y; first < rows; first += gridDim.x * blockDim.y) {
        const ow_i64 at = first + (ow_i64)threadIdx.y;
        const ow_i32 m = at < rows ? n : 0;
        const float *x0 = a0 + at * row0;
        const float *x1 = a1 + at * row1;
        ow_i64 label = at < rows ? (ow_i64)labels[at * label_step] : 0;
        if (label < 0 || label >= n) {
            if (threadIdx.x == 0)
                ow_complain(wrong, at);
            label = -1;
        }
        float most = 0.0f, total = 0.0f, mine = __builtin_nanf("");
        ow_i64 best = -1;
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = threadIdx.x;
            for (; j + 3 * step < m; j += 4 * step) {
                float u0[4];
                float u1[4];
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    u0[u] = x0[i * step0];
                    u1[u] = x1[i * step1];
                }
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    const ow_i32 c = i;
                    float r0;
                    {
                        const float v0 = u0[u];
                        const float v1 = u1[u];
                        const float v = v0 + v1;
                        if (ow_better(v, (ow_i64)(c), most, best)) { most = v; best = (ow_i64)(c); }
                        if (c == label) mine = v;
                        r0 = v;
                    }
                    kept0[c] = r0;
                }
            }
            for (; j < m; j += step) {
                const float u0 = x0[j * step0];
                const float u1 = x1[j * step1];
                const ow_i32 c = j;
                float r0;
                {
                    const float v0 = u0;
                    const float v1 = u1;
                    const float v = v0 + v1;
                    if (ow_better(v, (ow_i64)(c), most, best)) { most = v; best = (ow_i64)(c); }
                    if (c == label) mine = v;
                    r0 = v;
                }
                kept0[c] = r0;
            }
        }
        ow_across_35aed554731233ad(most, best);
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = threadIdx.x;
            for (; j < m; j += step) {
                const ow_i32 c = j;
                const float l0 = kept0[c];
                float r0;
                {
                    const float e0 = l0;
                    const float e = ow_expneg_f32(e0 - most);
                    total += e;
                    r0 = e;
                }
                kept0[c] = r0;
            }
        }
        ow_across_0e28abd572bd2c16(total);
        const float inverse = 1 / total;
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = threadIdx.x;
            for (; j < m; j += step) {
                const ow_i32 c = j;
                const float l0 = kept0[c];
                float w;
                {
                    const float e0 = l0;
                    w = e0 * inverse;
                }
                z1[at * n + c] = w;
            }
        }
        if (label >= 0 && at < rows && threadIdx.x == label % blockDim.x)
            z0[at] = ow_log_f32(total) - (mine - most);
        if (threadIdx.x == 0 && at < rows)
            z2[at] = most == most && best >= 0 ? best : 0;
    }
}
