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

struct __align__(16) ow_f32x4 { float at[4]; };

struct __align__(16) ow_f64x2 { double at[2]; };

extern "C" __global__ void __launch_bounds__(256) ow_product_ea89f65b4e1e80f7(
    const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ z,
    ow_i32 m_all, ow_i32 n_all, ow_i32 r_all, ow_u32 n_1, ow_u32 n_1_times,
    ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times, ow_u32 n_2_shift, ow_u32 r_1,
    ow_u32 r_1_times, ow_u32 r_1_shift, ow_u32 r_2, ow_u32 r_2_times, ow_u32 r_2_shift,
    ow_i32 a_group, ow_i32 a_m, ow_i32 a_r0, ow_i32 a_r1, ow_i32 a_r2, ow_i32 x_group,
    ow_i32 x_r, ow_i32 x_n, ow_i32 length1, ow_i32 step1, ow_i32 by_n1, ow_i32 by_r1,
    ow_i32 start1, ow_i32 length2, ow_i32 step2, ow_i32 by_n2, ow_i32 by_r2, ow_i32 start2,
    ow_i32 z_group, ow_i32 z_m, ow_i32 z_n0, ow_i32 z_n1, ow_i32 z_n2, ow_i32 a_n1,
    ow_i32 a_n2, ow_i32 a_x1, ow_i32 a_x2, ow_i32 results)
{
    const ow_i32 all = (ow_i32)gridDim.x * blockDim.y;
    for (ow_i32 first = (ow_i32)blockIdx.x * blockDim.y; first < results; first += all) {
        const ow_i32 at = first + threadIdx.y;
        ow_i32 to = 0;
        float sum = 0;
        if (at < results) {
            const ow_i32 row = (ow_u32)at / n_all, place = at - row * n_all;
            const ow_i32 group = (ow_u32)row / m_all, m = row - group * m_all;
            const ow_i32 p_2 = ow_divide(place, n_2_times, n_2_shift);
            const ow_i32 p2 = place - p_2 * n_2;
            const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
            const ow_i32 p1 = p_2 - p0 * n_1;
            const ow_i32 a_from = group * a_group + m * a_m + p1 * a_n1 + p2 * a_n2;
            const ow_i32 x_from = group * x_group + p0 * x_n;
            to = group * z_group + m * z_m + p0 * z_n0 + p1 * z_n1 + p2 * z_n2;
            for (ow_i32 r = threadIdx.x; r < r_all; r += blockDim.x) {
                const ow_i32 q_2 = ow_divide(r, r_2_times, r_2_shift);
                const ow_i32 q2 = r - q_2 * r_2;
                const ow_i32 q0 = ow_divide(q_2, r_1_times, r_1_shift);
                const ow_i32 q1 = q_2 - q0 * r_1;
                const ow_i32 e1 = p1 * by_n1 + q1 * by_r1 + start1;
                const ow_i32 e2 = p2 * by_n2 + q2 * by_r2 + start2;
                if ((ow_u32)e1 < (ow_u32)length1 && (ow_u32)e2 < (ow_u32)length2)
                    sum = fmaf(a[a_from + q0 * a_r0 + q1 * a_r1 + q2 * a_r2 + e1 * a_x1 + e2 * a_x2],
                        x[x_from + q0 * x_r + e1 * step1 + e2 * step2], sum);
            }
        }
        ow_across_0e28abd572bd2c16(sum);
        if (threadIdx.x == 0 && at < results)
            z[to] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) ow_product_64x64_f8e7adab631c43a2(
    const float *__restrict__ a, const float *__restrict__ x, void *__restrict__ z,
    ow_i32 m_all, ow_i32 n_all, ow_i32 r_all, ow_u32 n_1, ow_u32 n_1_times,
    ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times, ow_u32 n_2_shift, ow_u32 r_1,
    ow_u32 r_1_times, ow_u32 r_1_shift, ow_u32 r_2, ow_u32 r_2_times, ow_u32 r_2_shift,
    ow_i32 a_group, ow_i32 a_m, ow_i32 a_r0, ow_i32 a_r1, ow_i32 a_r2, ow_i32 x_group,
    ow_i32 x_r, ow_i32 x_n, ow_i32 length1, ow_i32 step1, ow_i32 by_n1, ow_i32 by_r1,
    ow_i32 start1, ow_i32 length2, ow_i32 step2, ow_i32 by_n2, ow_i32 by_r2, ow_i32 start2,
    ow_i32 z_group, ow_i32 z_m, ow_i32 z_n0, ow_i32 z_n1, ow_i32 z_n2, ow_i32 groups,
    ow_i32 m_tiles, ow_i32 n_tiles, ow_i32 tasks, ow_i32 segments, ow_i32 span,
    ow_i32 z_segment)
{
    __align__(16) __shared__ float a_tile[2][16][68];
    __align__(16) __shared__ float x_tile[2][16][68];
    __shared__ ow_i32 of_m[2][64], of_n[4][64];
    __shared__ ow_i32 of_r[2][16][4];
    const int thread = threadIdx.x;
    const int a_row = thread % 16, a_column = thread / 16;
    const int x_row = thread / 64;
    const int x_column = thread % 64;
    const int m_own = thread / 16 * 4;
    const int n_own = thread % 16 * 4;
    for (ow_i32 task = blockIdx.x; task < tasks; task += gridDim.x) {
        const ow_i32 tile = (ow_u32)task / m_tiles, m = (task - tile * m_tiles) * 64;
        const ow_i32 part = (ow_u32)tile / n_tiles, n = (tile - part * n_tiles) * 64;
        const ow_i32 segment = (ow_u32)part / groups, group = part - segment * groups;
        const ow_i32 from = segment * span;
        const ow_i32 to = r_all - from < span ? r_all : from + span;
        float a_next[4], x_next[4], sum[4][4];
        for (int i = thread; i < 64; i += 256) {
            const ow_i32 at = m + i < m_all ? m + i : m_all - 1;
            of_m[0][i] = group * a_group + at * a_m;
            of_m[1][i] = segment * z_segment + group * z_group + at * z_m;
        }
        for (int i = thread; i < 64; i += 256) {
            const ow_i32 at = n + i < n_all ? n + i : n_all - 1;
            const ow_i32 p_2 = ow_divide(at, n_2_times, n_2_shift);
            const ow_i32 p2 = at - p_2 * n_2;
            const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
            const ow_i32 p1 = p_2 - p0 * n_1;
            of_n[0][i] = group * x_group + p0 * x_n;
            of_n[1][i] = p1 * by_n1 + start1;
            of_n[2][i] = p2 * by_n2 + start2;
            of_n[3][i] = p0 * z_n0 + p1 * z_n1 + p2 * z_n2;
        }
        OW_UNROLL
        for (int i = 0; i < 16; i++) {
            sum[i / 4][i % 4] = 0;
        }
        const auto index = [&](ow_i32 r, int b) {
            if (thread < 16) {
                const ow_i32 at = r + thread;
                const ow_i32 q_2 = ow_divide(at, r_2_times, r_2_shift);
                const ow_i32 q2 = at - q_2 * r_2;
                const ow_i32 q0 = ow_divide(q_2, r_1_times, r_1_shift);
                const ow_i32 q1 = q_2 - q0 * r_1;
                of_r[b][thread][0] = q0 * a_r0 + q1 * a_r1 + q2 * a_r2;
                of_r[b][thread][1] = q0 * x_r;
                of_r[b][thread][2] = q1 * by_r1;
                of_r[b][thread][3] = q2 * by_r2;
            }
        };
        const auto load = [&](ow_i32 r, int b) {
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                const ow_i32 place = of_m[0][a_column + i * 16] + of_r[b][a_row][0];
                a_next[i] = r + a_row < to ? a[place] : 0;
            }
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                const ow_i32 *at = of_r[b][x_row + i * 4];
                const int column = x_column;
                const ow_i32 e1 = of_n[1][column] + at[2];
                const ow_i32 e2 = of_n[2][column] + at[3];
                const bool inside = r + x_row + i * 4 < to
                    && (ow_u32)e1 < (ow_u32)length1
                    && (ow_u32)e2 < (ow_u32)length2;
                const ow_i32 place = of_n[0][column] + at[1] + e1 * step1 + e2 * step2;
                x_next[i] = inside ? x[place] : 0;
            }
        };
        const auto keep = [&](int b) {
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                a_tile[b][a_row][a_column + i * 16] = a_next[i];
            }
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                x_tile[b][x_row + i * 4][x_column] = x_next[i];
            }
        };
        index(from, 0);
        __syncthreads();
        load(from, 0);
        keep(0);
        index(from + 16, 1);
        __syncthreads();
        int now = 0;
        for (ow_i32 r = from; r < to; r += 16, now ^= 1) {
            const bool more = r + 16 < to;
            if (more)
                load(r + 16, now ^ 1);
            OW_UNROLL
            for (int k = 0; k < 16; k++) {
                ow_f32x4 a_own[1];
                OW_UNROLL
                for (int c = 0; c < 1; c++)
                    a_own[c] = *(const ow_f32x4 *)&a_tile[now][k][c * 64 + m_own];
                ow_f32x4 x_own[1];
                OW_UNROLL
                for (int c = 0; c < 1; c++)
                    x_own[c] = *(const ow_f32x4 *)&x_tile[now][k][c * 64 + n_own];
                OW_UNROLL
                for (int i = 0; i < 4; i++) {
                    OW_UNROLL
                    for (int j = 0; j < 4; j++)
                        sum[i][j] = fmaf(a_own[i / 4].at[i % 4], x_own[j / 4].at[j % 4], sum[i][j]);
                }
            }
            if (more) {
                keep(now ^ 1);
                index(r + 32, now);
            }
            __syncthreads();
        }
        OW_UNROLL
        for (int j = 0; j < 4; j++) {
            const int n_at = j / 4 * 64 + n_own + j % 4;
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                const int m_at = i / 4 * 64 + m_own + i % 4;
                const ow_i32 place = of_m[1][m_at] + of_n[3][n_at];
                if (n + n_at < n_all && m + m_at < m_all && segments == 1)
                    ((float *)z)[place] = sum[i][j];
                else if (n + n_at < n_all && m + m_at < m_all)
                    ((float *)z)[place] = sum[i][j];
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(64, 8) ow_product_32x32_ccf5beca8181bf80(
    const double *__restrict__ a, const double *__restrict__ x, void *__restrict__ z,
    ow_i32 m_all, ow_i32 n_all, ow_i32 r_all, ow_u32 n_1, ow_u32 n_1_times,
    ow_u32 n_1_shift, ow_u32 n_2, ow_u32 n_2_times, ow_u32 n_2_shift, ow_u32 r_1,
    ow_u32 r_1_times, ow_u32 r_1_shift, ow_u32 r_2, ow_u32 r_2_times, ow_u32 r_2_shift,
    ow_i32 a_group, ow_i32 a_m, ow_i32 a_r0, ow_i32 a_r1, ow_i32 a_r2, ow_i32 x_group,
    ow_i32 x_r, ow_i32 x_n, ow_i32 length1, ow_i32 step1, ow_i32 by_n1, ow_i32 by_r1,
    ow_i32 start1, ow_i32 length2, ow_i32 step2, ow_i32 by_n2, ow_i32 by_r2, ow_i32 start2,
    ow_i32 z_group, ow_i32 z_m, ow_i32 z_n0, ow_i32 z_n1, ow_i32 z_n2, ow_i32 groups,
    ow_i32 m_tiles, ow_i32 n_tiles, ow_i32 tasks, ow_i32 segments, ow_i32 span,
    ow_i32 z_segment)
{
    __align__(16) __shared__ double a_tile[2][8][34];
    __align__(16) __shared__ double x_tile[2][8][34];
    __shared__ ow_i32 of_m[2][32], of_n[4][32];
    __shared__ ow_i32 of_r[2][8][4];
    const int thread = threadIdx.x;
    const int a_row = thread % 8, a_column = thread / 8;
    const int x_row = thread % 8;
    const int x_column = thread / 8;
    const int m_own = thread / 8 * 2;
    const int n_own = thread % 8 * 2;
    for (ow_i32 task = blockIdx.x; task < tasks; task += gridDim.x) {
        const ow_i32 tile = (ow_u32)task / m_tiles, m = (task - tile * m_tiles) * 32;
        const ow_i32 part = (ow_u32)tile / n_tiles, n = (tile - part * n_tiles) * 32;
        const ow_i32 segment = (ow_u32)part / groups, group = part - segment * groups;
        const ow_i32 from = segment * span;
        const ow_i32 to = r_all - from < span ? r_all : from + span;
        double a_next[4], x_next[4], sum[4][4];
        for (int i = thread; i < 32; i += 64) {
            const ow_i32 at = m + i < m_all ? m + i : m_all - 1;
            of_m[0][i] = group * a_group + at * a_m;
            of_m[1][i] = segment * z_segment + group * z_group + at * z_m;
        }
        for (int i = thread; i < 32; i += 64) {
            const ow_i32 at = n + i < n_all ? n + i : n_all - 1;
            const ow_i32 p_2 = ow_divide(at, n_2_times, n_2_shift);
            const ow_i32 p2 = at - p_2 * n_2;
            const ow_i32 p0 = ow_divide(p_2, n_1_times, n_1_shift);
            const ow_i32 p1 = p_2 - p0 * n_1;
            of_n[0][i] = group * x_group + p0 * x_n;
            of_n[1][i] = p1 * by_n1 + start1;
            of_n[2][i] = p2 * by_n2 + start2;
            of_n[3][i] = p0 * z_n0 + p1 * z_n1 + p2 * z_n2;
        }
        OW_UNROLL
        for (int i = 0; i < 16; i++) {
            sum[i / 4][i % 4] = 0;
        }
        const auto index = [&](ow_i32 r, int b) {
            if (thread < 8) {
                const ow_i32 at = r + thread;
                const ow_i32 q_2 = ow_divide(at, r_2_times, r_2_shift);
                const ow_i32 q2 = at - q_2 * r_2;
                const ow_i32 q0 = ow_divide(q_2, r_1_times, r_1_shift);
                const ow_i32 q1 = q_2 - q0 * r_1;
                of_r[b][thread][0] = q0 * a_r0 + q1 * a_r1 + q2 * a_r2;
                of_r[b][thread][1] = q0 * x_r;
                of_r[b][thread][2] = q1 * by_r1;
                of_r[b][thread][3] = q2 * by_r2;
            }
        };
        const auto load = [&](ow_i32 r, int b) {
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                const ow_i32 place = of_m[0][a_column + i * 8] + of_r[b][a_row][0];
                a_next[i] = r + a_row < to ? a[place] : 0;
            }
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                const ow_i32 *at = of_r[b][x_row];
                const int column = x_column + i * 8;
                const ow_i32 e1 = of_n[1][column] + at[2];
                const ow_i32 e2 = of_n[2][column] + at[3];
                const bool inside = r + x_row < to
                    && (ow_u32)e1 < (ow_u32)length1
                    && (ow_u32)e2 < (ow_u32)length2;
                const ow_i32 place = of_n[0][column] + at[1] + e1 * step1 + e2 * step2;
                x_next[i] = inside ? x[place] : 0;
            }
        };
        const auto keep = [&](int b) {
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                a_tile[b][a_row][a_column + i * 8] = a_next[i];
            }
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                x_tile[b][x_row][x_column + i * 8] = x_next[i];
            }
        };
        index(from, 0);
        __syncthreads();
        load(from, 0);
        keep(0);
        index(from + 8, 1);
        __syncthreads();
        int now = 0;
        for (ow_i32 r = from; r < to; r += 8, now ^= 1) {
            const bool more = r + 8 < to;
            if (more)
                load(r + 8, now ^ 1);
            OW_UNROLL
            for (int k = 0; k < 8; k++) {
                ow_f64x2 a_own[2];
                OW_UNROLL
                for (int c = 0; c < 2; c++)
                    a_own[c] = *(const ow_f64x2 *)&a_tile[now][k][c * 16 + m_own];
                ow_f64x2 x_own[2];
                OW_UNROLL
                for (int c = 0; c < 2; c++)
                    x_own[c] = *(const ow_f64x2 *)&x_tile[now][k][c * 16 + n_own];
                OW_UNROLL
                for (int i = 0; i < 4; i++) {
                    OW_UNROLL
                    for (int j = 0; j < 4; j++)
                        sum[i][j] = fma(a_own[i / 2].at[i % 2], x_own[j / 2].at[j % 2], sum[i][j]);
                }
            }
            if (more) {
                keep(now ^ 1);
                index(r + 16, now);
            }
            __syncthreads();
        }
        OW_UNROLL
        for (int j = 0; j < 4; j++) {
            const int n_at = j / 2 * 16 + n_own + j % 2;
            OW_UNROLL
            for (int i = 0; i < 4; i++) {
                const int m_at = i / 2 * 16 + m_own + i % 2;
                const ow_i32 place = of_m[1][m_at] + of_n[3][n_at];
                if (n + n_at < n_all && m + m_at < m_all && segments == 1)
                    ((double *)z)[place] = sum[i][j];
                else if (n + n_at < n_all && m + m_at < m_all)
                    ((double *)z)[place] = sum[i][j];
            }
        }
        __syncthreads();
    }
}
