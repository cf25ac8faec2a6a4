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

OW_INLINE void ow_4e494e2d407a7a3b_one(float *z0)
{
    const float t0 = 0.0f;
    *z0 = t0;
}

OW_INLINE void ow_c3e1b01d7a9ae847_one(ow_i64 *z0)
{
    const ow_i64 t0 = 4611686018427387904LL;
    *z0 = t0;
}

OW_INLINE void ow_7974264542439057_one(ow_i64 *z0)
{
    const ow_i64 t0 = 0LL;
    *z0 = t0;
}

OW_INLINE void ow_1d5b6e3c70ae1499_one(float x0, float x1, ow_i64 x2, ow_i64 x3, float x4, float *z0, float
    *z1, float *z2)
{
    const float t0 = (x0 + x1);
    const ow_b t1 = (x2 == x3);
    const float t2 = (t1 ? t0 : x4);
    *z0 = t0;
    *z1 = t2;
    *z2 = t0;
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

OW_INLINE void ow_9cb3168814aa20be_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 - x1);
    *z0 = t0;
}

#define ow_exp_f32(x) expf(x)

OW_INLINE void ow_e193d3194baf311f_one(float x0, float x1, ow_i64 x2, ow_i64 x3, float *z0, ow_i64 *z1,
    float *z2)
{
    const float t0 = (x0 - x1);
    const float t1 = ow_exp_f32(t0);
    const ow_b t2 = (x0 == x1);
    const ow_i64 t3 = ((ow_i64)(((ow_i64)t2) ? x2 : x3));
    *z0 = t1;
    *z1 = t3;
    *z2 = t1;
}

OW_INLINE void ow_across_f3e1bc2666f11d18(ow_i64 &a0)
{
    for (int w = (blockDim.x < 32 ? blockDim.x : 32) / 2; w; w /= 2) {
        const ow_i64 b0 = __shfl_xor_sync(0xffffffffu, a0, w);
        a0 = (ow_i64)((b0 < a0 ? b0 : a0));
    }
    if (blockDim.x <= 32)
        return;
    __shared__ ow_i64 s0[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        s0[threadIdx.x / 32] = a0;
    }
    __syncthreads();
    a0 = s0[0];
    for (int i = 1; i < blockDim.x / 32; i++) {
        const ow_i64 b0 = s0[i];
        a0 = (ow_i64)((b0 < a0 ? b0 : a0));
    }
}

#define ow_log_f32(x) logf(x)

OW_INLINE void ow_ac59e5d66a8ad16c_one(float x0, float *z0)
{
    const float t0 = ow_log_f32(x0);
    *z0 = t0;
}

OW_INLINE void ow_f4e7120ffe940c5a_one(float x0, float *z0)
{
    const float t0 = (1 / x0);
    *z0 = t0;
}

OW_INLINE void ow_58a34fbc898b4ba8_one(ow_i64 x0, ow_i64 x1, ow_b *z0)
{
    const ow_b t0 = (x0 < x1);
    *z0 = t0;
}

OW_INLINE void ow_ff465eadd620cff4_one(ow_b x0, ow_i64 x1, ow_i64 x2, ow_i64 *z0)
{
    const ow_i64 t0 = ((ow_i64)(((ow_i64)x0) ? x1 : x2));
    *z0 = t0;
}

OW_INLINE void ow_1f73ee4dd2d8e1eb_one(float x0, float x1, float *z0)
{
    const float t0 = (x0 * x1);
    *z0 = t0;
}

extern "C" __global__ void __launch_bounds__(256) ow_xent_746063dceb196fc7(
    const float *__restrict__ a0, const float *__restrict__ a1,
    const ow_i64 *__restrict__ a2, float *z0, float *z1, ow_i64 *z2, ow_u32 *wrong,
    ow_i32 rows, ow_i32 n, ow_i64 s0_0, ow_i64 s1_0, ow_i64 s2_0, ow_i64 step0,
    ow_i64 step1)
{
    OW_SHARED;
    float *h3 = (float *)(ow_shared + (ow_i64)blockDim.y * n * 0) + threadIdx.y * n;
    float *h6 = (float *)(ow_shared + (ow_i64)blockDim.y * n * 0) + threadIdx.y * n;
    for (ow_i32 first = blockIdx.x * blockDim.y; first < rows; first += gridDim.x * blockDim.y) {
        const ow_i32 row = first + (ow_i32)threadIdx.y;
        const ow_i32 k0 = row;
        const float *x0 = a0 + k0 * s0_0;
        const float *x1 = a1 + k0 * s1_0;
        const ow_i64 *x2 = a2 + k0 * s2_0;
        const ow_i32 from = 0;
        const ow_i32 m = row < rows ? n : 0;
        const ow_i64 n2 = row < rows ? *x2 : 0;
        ow_i64 n8 = row < rows ? (ow_i64)n2 : 0;
        if (n8 < 0 || n8 >= n) {
            if (threadIdx.x == 0)
                ow_complain(wrong, row);
            n8 = -1;
        }
        float n11;
        ow_4e494e2d407a7a3b_one(&n11);
        ow_i64 n19;
        ow_c3e1b01d7a9ae847_one(&n19);
        ow_i64 n25;
        ow_7974264542439057_one(&n25);
        float t4 = (-__builtin_inff());
        float t13 = 0.0f;
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j + 1 * step < m; j += 2 * step) {
                float u0[2];
                float u1[2];
                OW_UNROLL
                for (int u = 0; u < 2; u++) {
                    const auto i = j + u * step;
                    u0[u] = x0[i * step0];
                    u1[u] = x1[i * step1];
                }
                OW_UNROLL
                for (int u = 0; u < 2; u++) {
                    const auto i = j + u * step;
                    const ow_i32 c = i;
                    float w2;
                    {
                        const ow_i64 v9 = c;
                        const float v0 = u0[u];
                        const float v1 = u1[u];
                        float e0;
                        float e1;
                        float e2;
                        ow_1d5b6e3c70ae1499_one(v0, v1, v9, n8, n11, &e0, &e1, &e2);
                        const float i0 = e0;
                        t4 = ((i0 > t4) | (i0 != i0) ? i0 : t4);
                        const float i1 = e1;
                        t13 = (float)(t13 + i1);
                        w2 = e2;
                    }
                    h3[c] = w2;
                }
            }
            for (; j < m; j += step) {
                const float u0 = x0[j * step0];
                const float u1 = x1[j * step1];
                const ow_i32 c = j;
                float w2;
                {
                    const ow_i64 v9 = c;
                    const float v0 = u0;
                    const float v1 = u1;
                    float e0;
                    float e1;
                    float e2;
                    ow_1d5b6e3c70ae1499_one(v0, v1, v9, n8, n11, &e0, &e1, &e2);
                    const float i0 = e0;
                    t4 = ((i0 > t4) | (i0 != i0) ? i0 : t4);
                    const float i1 = e1;
                    t13 = (float)(t13 + i1);
                    w2 = e2;
                }
                h3[c] = w2;
            }
        }
        ow_across_d7eb88df87be91d6(t4);
        ow_across_0e28abd572bd2c16(t13);
        const float n4 = t4;
        const float n13 = t13;
        float n15;
        ow_9cb3168814aa20be_one(n13, n4, &n15);
        float t7 = 0.0f;
        ow_i64 t23 = 9223372036854775807LL;
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j < m; j += step) {
                const ow_i32 c = j;
                const float u3 = h3[c];
                float w2;
                {
                    const ow_i64 v20 = c;
                    const float v3 = u3;
                    float e0;
                    ow_i64 e1;
                    float e2;
                    ow_e193d3194baf311f_one(v3, n4, v20, n19, &e0, &e1, &e2);
                    const float i0 = e0;
                    t7 = (float)(t7 + i0);
                    const ow_i64 i1 = e1;
                    t23 = (ow_i64)((i1 < t23 ? i1 : t23));
                    w2 = e2;
                }
                h6[c] = w2;
            }
        }
        ow_across_0e28abd572bd2c16(t7);
        ow_across_f3e1bc2666f11d18(t23);
        const float n7 = t7;
        const ow_i64 n23 = t23;
        float n14;
        ow_ac59e5d66a8ad16c_one(n7, &n14);
        float n16;
        ow_9cb3168814aa20be_one(n14, n15, &n16);
        float n17;
        ow_f4e7120ffe940c5a_one(n7, &n17);
        ow_b n24;
        ow_58a34fbc898b4ba8_one(n23, n19, &n24);
        ow_i64 n26;
        ow_ff465eadd620cff4_one(n24, n23, n25, &n26);
        {
            const ow_i32 step = blockDim.x;
            ow_i32 j = from + (ow_i32)threadIdx.x;
            for (; j < m; j += step) {
                const ow_i32 c = j;
                const float u6 = h6[c];
                float w0;
                {
                    const float v6 = u6;
                    float e0;
                    ow_1f73ee4dd2d8e1eb_one(v6, n17, &e0);
                    w0 = e0;
                }
                z1[(ow_i64)row * n + c] = w0;
            }
        }
        if (threadIdx.x == 0 && row < rows) {
            z0[row] = n16;
            z2[row] = n26;
        }
    }
}
