/* What CUDA kernels call: parts in the form of scalar/csupport/scalar.h, whose parts of the same
 * name these replace. The program that simulates a device in the tests defines what is under
 * __CUDACC__ in its own way.
 */

/*@ types */
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
/*@ end */

/*@ rare */
#define OW_RARE OW_INLINE
/*@ end */

/*@ half */
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
/*@ end */

/* The device's own functions, which are off by 1 ulp, or 2. */

/*@ exp f32 */
#define ow_exp_f32(x) expf(x)
/*@ end */
/*@ exp f64 */
#define ow_exp_f64(x) exp(x)
/*@ end */
/*@ expneg f32 */
#define ow_expneg_f32(x) expf(x)
/*@ end */
/*@ expneg f64 */
#define ow_expneg_f64(x) exp(x)
/*@ end */
/*@ log f32 */
#define ow_log_f32(x) logf(x)
/*@ end */
/*@ log f64 */
#define ow_log_f64(x) log(x)
/*@ end */
/*@ tanh f32 */
#define ow_tanh_f32(x) tanhf(x)
/*@ end */
/*@ tanh f64 */
#define ow_tanh_f64(x) tanh(x)
/*@ end */
/*@ pow f32 */
#define ow_pow_f32(x, y) powf(x, y)
/*@ end */
/*@ pow f64 */
#define ow_pow_f64(x, y) pow(x, y)
/*@ end */
/*@ erfinv f32 */
#define ow_erfinv_f32(x) erfinvf(x)
/*@ end */
/*@ erfinv f64 */
#define ow_erfinv_f64(x) erfinv(x)
/*@ end */
/*@ erf f32 */
#define ow_erf_f32(x) erff(x)
/*@ end */
/*@ erf f64 */
#define ow_erf_f64(x) erf(x)
/*@ end */
/*@ erfcinv f32 */
#define ow_erfcinv_f32(x) erfcinvf(x)
/*@ end */
/*@ erfcinv f64 */
#define ow_erfcinv_f64(x) erfcinv(x)
/*@ end */
/*@ i0 f32 */
#define ow_i0_f32(x) cyl_bessel_i0f(x)
/*@ end */
/*@ i0 f64 */
#define ow_i0_f64(x) cyl_bessel_i0(x)
/*@ end */
/*@ i1 f32 */
#define ow_i1_f32(x) cyl_bessel_i1f(x)
/*@ end */
/*@ i1 f64 */
#define ow_i1_f64(x) cyl_bessel_i1(x)
/*@ end */
/*@ j0 f32 */
#define ow_j0_f32(x) (float)j0((double)(x))
/*@ end */
/*@ j0 f64 */
#define ow_j0_f64(x) j0(x)
/*@ end */
/*@ j1 f32 */
#define ow_j1_f32(x) (float)j1((double)(x))
/*@ end */
/*@ j1 f64 */
#define ow_j1_f64(x) j1(x)
/*@ end */
/*@ gamma f32 */
#define ow_gamma_f32(x) (float)tgamma((double)(x))
/*@ end */
/*@ gamma f64 */
#define ow_gamma_f64(x) tgamma(x)
/*@ end */
/*@ gammaln f32 */
#define ow_gammaln_f32(x) lgammaf(x)
/*@ end */
/*@ gammaln f64 */
#define ow_gammaln_f64(x) lgamma(x)
/*@ end */

/*@ complain */
/* Keep in a word, 0 at first, the smallest position that something is wrong with: ~position, the
 * largest of which stays whatever the order is. */
OW_INLINE void ow_complain(ow_u32 *wrong, ow_u64 at)
{
    atomicMax(wrong, at < 0xfffffffeull ? ~(ow_u32)at : 1u);
}
/*@ end */

/*@ copy */
/* Copy bytes between arrays that do not overlap, in the widest words that both begin and end at:
 * those with number start, start + step, ... */
template <typename T>
OW_INLINE void ow_copy_words(const void *from, void *to, ow_i64 words, ow_i64 start, ow_i64 step)
{
    for (ow_i64 i = start; i < words; i += step)
        ((T *)to)[i] = ((const T *)from)[i];
}
struct __align__(16) ow_u32x4 {
    ow_u32 at[4];
};
OW_INLINE void ow_copy_bytes(const ow_u8 *from, ow_u8 *to, ow_i64 size, ow_i64 start, ow_i64 step)
{
    const ow_u64 ends = (ow_u64)from | (ow_u64)to | (ow_u64)size;
    if (ends % 16 == 0)
        ow_copy_words<ow_u32x4>(from, to, size / 16, start, step);
    else if (ends % 4 == 0)
        ow_copy_words<ow_u32>(from, to, size / 4, start, step);
    else
        ow_copy_words<ow_u8>(from, to, size, start, step);
}
/*@ end */

/*@ better */
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
/*@ end */
