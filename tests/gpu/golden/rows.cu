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

OW_INLINE void ow_9afc275d8d8859ae_one(float x0, float *z0)
{
    *z0 = x0;
}

OW_INLINE void ow_across_d7eb88df87be91d6(float &a0)
{
    for (int w = (blockDim.x < 32 ? blockDim.x : 32) / 2; w; w /= 2) {
        const float b0 = __shfl_xor_sync(0xffffffffu, a0, w);
        a0 = ((b0 > a0) | (b0 != b0) ? b0 : a0);
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
        a0 = ((b0 > a0) | (b0 != b0) ? b0 : a0);
    }
}

#define ow_exp_f32(x) expf(x)

OW_INLINE void ow_f8f40f49ddd52409_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 - x1);
    const float t1 = ow_exp_f32(t0);
    *z0 = t1;
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

OW_INLINE void ow_f4e7120ffe940c5a_one(float x0, float *z0)
{
    const float t0 = (1 / x0);
    *z0 = t0;
}

OW_INLINE void ow_bd129ec8a392b082_one(float x0, float x1, float x2, float *z0)
{
    const float t0 = (x0 - x1);
    const float t1 = ow_exp_f32(t0);
    const float t2 = (t1 * x2);
    *z0 = t2;
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

OW_INLINE void ow_f944e3b73cc6cb6b_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 / x1);
    *z0 = t0;
}

OW_INLINE void ow_6b016848a505f627_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 - x1);
    const float t1 = (t0 * t0);
    *z0 = t1;
}

OW_INLINE void ow_327dbad01f434706_one(double x0, float x1, double *z0)
{
    const double t0 = (x0 + ((double)x1));
    *z0 = t0;
}

OW_INLINE void ow_f448e9922f8bbb0e_one(double x0, double *z0)
{
    const double t0 = sqrt(x0);
    *z0 = t0;
}

OW_INLINE void ow_c147afb6a610dcac_one(float x0, float x1, double x2, float x3, float x4, double *z0)
{
    const float t0 = (x0 - x1);
    const double t1 = (((double)t0) / x2);
    const double t2 = (t1 * ((double)x3));
    const double t3 = (t2 + ((double)x4));
    *z0 = t3;
}

extern "C" __global__ void __launch_bounds__(256) ow_softmax_vectors_f19db33be03e4ca3(
    const float *__restrict__ a0, float *z0, ow_i32 rows, ow_i32 n, ow_i64 s0_0,
    ow_i64 step0)
{
    OW_SHARED;
    float *h0 = (float *)(ow_shared + (ow_i64)blockDim.y * n * 0) + threadIdx.y * n;
    for (ow_i32 first = blockIdx.x * blockDim.y; first < rows; first += gridDim.x * blockDim.y) {
        const ow_i32 row = first + (ow_i32)threadIdx.y;
        const ow_i32 k0 = row;
        const float *x0 = a0 + k0 * s0_0;
        const ow_i32 from = 0;
        const ow_i32 m = row < rows ? n : 0;
        float t1 = (-__builtin_inff());
        {
            const ow_i32 step = blockDim.x * 4;
            ow_i32 j = from + (ow_i32)threadIdx.x * 4;
            for (; j + 1 * step < m; j += 2 * step) {
                ow_f32x4 u0[2];
                OW_UNROLL
                for (int u = 0; u < 2; u++) {
                    const auto i = j + u * step;
                    u0[u] = *(const ow_f32x4 *)(x0 + i);
                }
                OW_UNROLL
                for (int u = 0; u < 2; u++) {
                    const auto i = j + u * step;
                    const ow_i32 c = i;
                    ow_f32x4 r0;
                    OW_UNROLL
                    for (int k = 0; k < 4; k++) {
                        const float v0 = u0[u].at[k];
                        float e0;
                        ow_9afc275d8d8859ae_one(v0, &e0);
                        r0.at[k] = v0;
                        const float i0 = e0;
                        t1 = ((i0 > t1) | (i0 != i0) ? i0 : t1);
                    }
                    *(ow_f32x4 *)(h0 + c) = r0;
                }
            }
            for (; j < m; j += step) {
                const ow_f32x4 u0 = *(const ow_f32x4 *)(x0 + j);
                const ow_i32 c = j;
                ow_f32x4 r0;
                OW_UNROLL
                for (int k = 0; k < 4; k++) {
                    const float v0 = u0.at[k];
                    float e0;
                    ow_9afc275d8d8859ae_one(v0, &e0);
                    r0.at[k] = v0;
                    const float i0 = e0;
                    t1 = ((i0 > t1) | (i0 != i0) ? i0 : t1);
                }
                *(ow_f32x4 *)(h0 + c) = r0;
            }
        }
        ow_across_d7eb88df87be91d6(t1);
        const float n1 = t1;
        float t4 = 0.0f;
        {
            const ow_i32 step = blockDim.x * 4;
            ow_i32 j = from + (ow_i32)threadIdx.x * 4;
            for (; j < m; j += step) {
                const ow_i32 c = j;
                const ow_f32x4 u0 = *(const ow_f32x4 *)(h0 + c);
                OW_UNROLL
                for (int k = 0; k < 4; k++) {
                    const float v0 = u0.at[k];
                    float e0;
                    ow_f8f40f49ddd52409_one(v0, n1, &e0);
                    const float i0 = e0;
                    t4 = (float)(t4 + i0);
                }
            }
        }
        ow_across_0e28abd572bd2c16(t4);
        const float n4 = t4;
        float n5;
        ow_f4e7120ffe940c5a_one(n4, &n5);
        {
            const ow_i32 step = blockDim.x * 4;
            ow_i32 j = from + (ow_i32)threadIdx.x * 4;
            for (; j < m; j += step) {
                const ow_i32 c = j;
                const ow_f32x4 u0 = *(const ow_f32x4 *)(h0 + c);
                ow_f32x4 w0;
                OW_UNROLL
                for (int k = 0; k < 4; k++) {
                    const float v0 = u0.at[k];
                    float e0;
                    ow_bd129ec8a392b082_one(v0, n1, n5, &e0);
                    w0.at[k] = e0;
                }
                *(ow_f32x4 *)(z0 + (ow_i64)row * n + c) = w0;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_softmax_1_2766e60085f1157e(
    const float *__restrict__ a0, float *z0, float *f1, float *f4, ow_i32 rows, ow_i32 n,
    ow_i32 segments, ow_i32 parts, ow_i32 span, ow_i64 s0_0, ow_i64 step0)
{
    for (ow_i32 first = blockIdx.x * blockDim.y; first < rows * segments; first += gridDim.x * blockDim.y) {
        const ow_i32 group = first + (ow_i32)threadIdx.y;
        const ow_i32 row = (ow_u32)group / segments;
        const ow_i32 segment = group - row * segments;
        const ow_i32 k0 = row;
        const float *x0 = a0 + k0 * s0_0;
        const ow_i32 from = segment * span;
        const ow_i32 m = row >= rows ? 0 : n - from < span ? n : from + span;
        float t1 = (-__builtin_inff());
        for (ow_i32 k = threadIdx.x; row < rows && k < parts; k += blockDim.x) {
            const float part = f1[(ow_i64)row * parts + k];
            t1 = ((part > t1) | (part != part) ? part : t1);
        }
        ow_across_d7eb88df87be91d6(t1);
        const float n1 = t1;
        float t4 = 0.0f;
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j + 3 * step < m; j += 4 * step) {
                float u0[4];
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    u0[u] = x0[i * step0];
                }
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    {
                        const float v0 = u0[u];
                        float e0;
                        ow_f8f40f49ddd52409_one(v0, n1, &e0);
                        const float i0 = e0;
                        t4 = (float)(t4 + i0);
                    }
                }
            }
            for (; j < m; j += step) {
                const float u0 = x0[j * step0];
                {
                    const float v0 = u0;
                    float e0;
                    ow_f8f40f49ddd52409_one(v0, n1, &e0);
                    const float i0 = e0;
                    t4 = (float)(t4 + i0);
                }
            }
        }
        ow_across_0e28abd572bd2c16(t4);
        if (threadIdx.x == 0 && row < rows) {
            f4[(ow_i64)row * parts + segment] = t4;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_fused_156016094be2e162(
    const float *__restrict__ a0, const float *__restrict__ a1,
    const double *__restrict__ a2, const float *__restrict__ a3,
    const float *__restrict__ a4, double *z0, ow_i32 rows, ow_i32 n, ow_i64 s0_0,
    ow_i64 s1_0, ow_i64 s2_0, ow_i64 s3_0, ow_i64 s4_0, ow_i64 step0, ow_i64 step3,
    ow_i64 step4)
{
    OW_SHARED;
    float *h0 = (float *)(ow_shared + (ow_i64)blockDim.y * n * 0) + threadIdx.y * n;
    for (ow_i32 first = blockIdx.x * blockDim.y; first < rows; first += gridDim.x * blockDim.y) {
        const ow_i32 row = first + (ow_i32)threadIdx.y;
        const ow_i32 k0 = row;
        const float *x0 = a0 + k0 * s0_0;
        const float *x1 = a1 + k0 * s1_0;
        const double *x2 = a2 + k0 * s2_0;
        const float *x3 = a3 + k0 * s3_0;
        const float *x4 = a4 + k0 * s4_0;
        const ow_i32 from = 0;
        const ow_i32 m = row < rows ? n : 0;
        const float n1 = row < rows ? *x1 : 0;
        const double n2 = row < rows ? *x2 : 0;
        double t5 = 0.0;
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j + 3 * step < m; j += 4 * step) {
                float u0[4];
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    u0[u] = x0[i * step0];
                }
                OW_UNROLL
                for (int u = 0; u < 4; u++) {
                    const auto i = j + u * step;
                    const ow_i32 c = i;
                    float r0;
                    {
                        const float v0 = u0[u];
                        float e0;
                        ow_9afc275d8d8859ae_one(v0, &e0);
                        r0 = v0;
                        const double i0 = ((double)e0);
                        t5 = (double)(t5 + i0);
                    }
                    h0[c] = r0;
                }
            }
            for (; j < m; j += step) {
                const float u0 = x0[j * step0];
                const ow_i32 c = j;
                float r0;
                {
                    const float v0 = u0;
                    float e0;
                    ow_9afc275d8d8859ae_one(v0, &e0);
                    r0 = v0;
                    const double i0 = ((double)e0);
                    t5 = (double)(t5 + i0);
                }
                h0[c] = r0;
            }
        }
        ow_across_89b0c9c68f6ba228(t5);
        const float n5 = ((float)t5);
        float n6;
        ow_f944e3b73cc6cb6b_one(n5, n1, &n6);
        double t9 = 0.0;
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j < m; j += step) {
                const ow_i32 c = j;
                const float u0 = h0[c];
                {
                    const float v0 = u0;
                    float e0;
                    ow_6b016848a505f627_one(v0, n6, &e0);
                    const double i0 = ((double)e0);
                    t9 = (double)(t9 + i0);
                }
            }
        }
        ow_across_89b0c9c68f6ba228(t9);
        const float n9 = ((float)t9);
        float n10;
        ow_f944e3b73cc6cb6b_one(n9, n1, &n10);
        double n11;
        ow_327dbad01f434706_one(n2, n10, &n11);
        double n12;
        ow_f448e9922f8bbb0e_one(n11, &n12);
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j + 1 * step < m; j += 2 * step) {
                float u3[2];
                float u4[2];
                OW_UNROLL
                for (int u = 0; u < 2; u++) {
                    const auto i = j + u * step;
                    u3[u] = x3[i * step3];
                    u4[u] = x4[i * step4];
                }
                OW_UNROLL
                for (int u = 0; u < 2; u++) {
                    const auto i = j + u * step;
                    const ow_i32 c = i;
                    const float u0 = h0[c];
                    double w0;
                    {
                        const float v3 = u3[u];
                        const float v4 = u4[u];
                        const float v0 = u0;
                        double e0;
                        ow_c147afb6a610dcac_one(v0, n6, n12, v3, v4, &e0);
                        w0 = e0;
                    }
                    z0[(ow_i64)row * n + c] = w0;
                }
            }
            for (; j < m; j += step) {
                const float u3 = x3[j * step3];
                const float u4 = x4[j * step4];
                const ow_i32 c = j;
                const float u0 = h0[c];
                double w0;
                {
                    const float v3 = u3;
                    const float v4 = u4;
                    const float v0 = u0;
                    double e0;
                    ow_c147afb6a610dcac_one(v0, n6, n12, v3, v4, &e0);
                    w0 = e0;
                }
                z0[(ow_i64)row * n + c] = w0;
            }
        }
    }
}
