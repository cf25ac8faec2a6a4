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

/* y, or y - m if y as an unsigned number is not less than m: exact for the wrapped sums below */
OW_INLINE ow_u32 ow_mrg_reduced(ow_u32 y, ow_u32 m)
{
    const ow_u32 less = y - m;
    return y < less ? y : less;
}
/* The next integer of a state, between 1 and 2**31 - 1. What x[n] and y[n] depend on is x2 =
 * x[n-2], x3 = x[n-3], y1 = y[n-1] and y3 = y[n-3]; x[n] and y[n] take the place of *x3 and *y3. */
OW_INLINE ow_i32 ow_mrg_step(ow_i32 x2, ow_i32 *x3, ow_i32 y1, ow_i32 *y3)
{
    const ow_u32 m1 = 2147483647U, m2 = 2147462579U;
    const ow_u32 second = (ow_u32)((x2 & 511) << 22) + (ow_u32)(x2 >> 9);
    const ow_u32 from_x = second + (ow_u32)((*x3 & 16777215) << 7) + (ow_u32)(*x3 >> 24);
    const ow_u32 x = ow_mrg_reduced(ow_mrg_reduced(from_x, m1) + (ow_u32)*x3, m1);
    const ow_u32 from_y1 = (ow_u32)((y1 & 65535) << 15) + (ow_u32)(21069 * (y1 >> 16));
    const ow_u32 from_y3 = (ow_u32)((*y3 & 65535) << 15) + (ow_u32)(21069 * (*y3 >> 16));
    const ow_u32 third = ow_mrg_reduced(ow_mrg_reduced(from_y3, m2) + (ow_u32)*y3, m2);
    const ow_u32 y = ow_mrg_reduced(third + ow_mrg_reduced(from_y1, m2), m2);
    *x3 = (ow_i32)x;
    *y3 = (ow_i32)y;
    return (ow_i32)(x - y + ((ow_i32)x <= (ow_i32)y ? m1 : 0U));
}

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

extern "C" __global__ void __launch_bounds__(64) ow_uniform_8a77a91ed19be435(
    ow_i32 *__restrict__ states, float *__restrict__ z, ow_i32 n, ow_i32 row, ow_i32 column,
    ow_u32 streams, ow_u32 total)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 64 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 64) {
        const ow_i32 at = i * row;
        ow_i32 x1 = states[at];
        ow_i32 x2 = states[at + 1 * column];
        ow_i32 x3 = states[at + 2 * column];
        ow_i32 y1 = states[at + 3 * column];
        ow_i32 y2 = states[at + 4 * column];
        ow_i32 y3 = states[at + 5 * column];
        for (ow_u32 j = (ow_u32)i; j < total; j += streams) {
            const ow_i32 number = ow_mrg_step(x2, &x3, y1, &y3);
            const ow_i32 x = x3, y = y3;
            x3 = x2, x2 = x1, x1 = x;
            y3 = y2, y2 = y1, y1 = y;
            z[j] = (float)number * (4.6566125955216364e-10f);
        }
        states[at] = x1;
        states[at + 1 * column] = x2;
        states[at + 2 * column] = x3;
        states[at + 3 * column] = y1;
        states[at + 4 * column] = y2;
        states[at + 5 * column] = y3;
    }
}

extern "C" __global__ void __launch_bounds__(64) ow_uniform_4d5a785165da29b1(
    ow_i32 *__restrict__ states, ow_f16 *__restrict__ z, ow_i32 n, ow_i32 row,
    ow_i32 column, ow_u32 streams, ow_u32 total)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 64 + (ow_i32)threadIdx.x; i < n; i += (ow_i32)gridDim.x * 64) {
        const ow_i32 at = i * row;
        ow_i32 x1 = states[at];
        ow_i32 x2 = states[at + 1 * column];
        ow_i32 x3 = states[at + 2 * column];
        ow_i32 y1 = states[at + 3 * column];
        ow_i32 y2 = states[at + 4 * column];
        ow_i32 y3 = states[at + 5 * column];
        for (ow_u32 j = (ow_u32)i; j < total; j += streams) {
            const ow_i32 number = ow_mrg_step(x2, &x3, y1, &y3);
            const ow_i32 x = x3, y = y3;
            x3 = x2, x2 = x1, x1 = x;
            y3 = y2, y2 = y1, y1 = y;
            z[j] = ow_to_f16(ow_round_f16(((number & 32767) + 1) * (3.045797348022461e-05)));
        }
        states[at] = x1;
        states[at + 1 * column] = x2;
        states[at + 2 * column] = x3;
        states[at + 3 * column] = y1;
        states[at + 4 * column] = y2;
        states[at + 5 * column] = y3;
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_count_5531e5b5f118ed3a(
    const ow_i32 *__restrict__ drawn, float *__restrict__ z, ow_i32 rows, ow_i32 columns,
    ow_i32 n)
{
    const ow_i32 size = rows * columns;
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < size; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 row = (ow_u32)i / columns;
        const ow_i32 m = i - row * columns;
        ow_i32 count = 0;
        for (ow_i32 c = row * n; c < (row + 1) * n; c++) {
            count += drawn[c] == m;
        }
        z[i] = ((float)count);
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_draw_d1c510c694f588e3(
    const double *__restrict__ pvals, const float *__restrict__ unis,
    ow_i64 *__restrict__ z, ow_i32 columns, ow_i32 rows, ow_i32 n, ow_i32 row_step,
    ow_i32 column_step, ow_i32 unis_step)
{
    const ow_i32 draws = rows * n;
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < draws; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 c = (ow_u32)i / rows;
        const ow_i32 row = i - c * rows;
        const double u = unis[i * unis_step];
        double sum = 0;
        ow_i32 at = -1;
        for (ow_i32 m = 0; m < columns && at < 0; m++) {
            const double p = pvals[row * row_step + m * column_step];
            sum += p;
            if (sum > u) {
                at = m;
            }
        }
        z[row * n + c] = ((ow_i64)at);
    }
}

extern "C" __global__ void __launch_bounds__(256) ow_draw_without_replacement_87095a9c7b7b37b0(
    const float *__restrict__ pvals, const float *__restrict__ unis,
    float *__restrict__ left, ow_i8 *__restrict__ z, ow_i32 columns, ow_i32 rows, ow_i32 n,
    ow_i32 row_step, ow_i32 column_step, ow_i32 unis_step)
{
    for (ow_i32 i = (ow_i32)blockIdx.x * 256 + (ow_i32)threadIdx.x; i < rows; i += (ow_i32)gridDim.x * 256) {
        const ow_i32 row = i;
        for (ow_i32 m = 0; m < columns; m++)
            left[m * rows + row] = pvals[row * row_step + m * column_step];
        for (ow_i32 c = 0; c < n; c++) {
            const double u = unis[(c * rows + row) * unis_step];
            double before = 0;
            double sum = 0;
            ow_i32 at = -1;
            for (ow_i32 m = 0; m < columns && at < 0; m++) {
                const double p = left[m * rows + row];
                sum += p;
                if (sum > u) {
                    at = m;
                    before = sum - p;
                }
            }
            z[row * n + c] = ((ow_i8)at);
            if (at < 0)
                continue;
            float total = (float)before;
            left[at * rows + row] = 0;
            for (ow_i32 m = at; m < columns; m++)
                total += left[m * rows + row];
            for (ow_i32 m = 0; m < columns; m++)
                left[m * rows + row] /= total;
        }
    }
}
