/* Functions that the C text of scalar operations and of random streams calls, in plain C without
 * any header.
 *
 * opwise/scalar/csource.py cuts this file at its markers and hands out only what is asked for:
 * from "@ name", with or without short type names, up to "@ end". A part without types is what the
 * typed parts of that name share; names after a colon are other parts that it needs. The whole file
 * can also be included. Mathematical functions are declared by whoever includes it.
 *
 * Everything is free of branches where that lets a compiler use vector instructions. Signed
 * integers wrap: compile with -fwrapv.
 */
#ifndef OW_SCALAR_H
#define OW_SCALAR_H

/*@ types */
#ifndef OW_TYPES
#define OW_TYPES
typedef signed char ow_i8;
typedef short ow_i16;
typedef int ow_i32;
typedef unsigned char ow_u8;
typedef unsigned short ow_u16;
typedef unsigned int ow_u32;
#ifdef __INT64_TYPE__ /* that of int64_t, a long in some places: pointers to another are refused */
typedef __INT64_TYPE__ ow_i64;
typedef __UINT64_TYPE__ ow_u64;
#else
typedef long long ow_i64;
typedef unsigned long long ow_u64;
#endif
typedef unsigned char ow_b;
typedef unsigned short ow_f16; /* the bits of a float16: values of it are floats */
typedef struct ow_c64 {
    float r, i;
} ow_c64;
typedef struct ow_c128 {
    double r, i;
} ow_c128;
/* gcc does not vectorise loops with calls, and inlines long functions only if called once */
#ifndef OW_INLINE
#ifdef __GNUC__
#define OW_INLINE static inline __attribute__((always_inline, unused))
#else
#define OW_INLINE static inline
#endif
#endif
#endif
/*@ end */

/* Second names that the prototypes of a cut text give to functions; here they are the functions. */
#define ow_cos cos
#define ow_cosf cosf
#define ow_sin sin
#define ow_sinf sinf

/* --- floats as integers: the values are those of opwise/scalar/casting.py --------------------- */

/*@ of_float */
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
/*@ end */

/* --- float16 --------------------------------------------------------------------------------- */

/*@ half */
#ifndef OW_HALF
#define OW_HALF
/* The exponent of a float16 is smaller by 112 than that of a float; infinities and NaN have the
 * largest exponent of either. */
OW_INLINE float ow_from_f16(ow_f16 h)
{
    union {
        float value;
        ow_u32 bits;
    } x;
    const ow_u32 size = (ow_u32)(h & 0x7fff) << 13, sign = (ow_u32)(h & 0x8000) << 16;
    x.bits = size;
    x.value *= 5192296858534827628530496329220096.0f;
    x.bits |= size >= 0x0f800000u ? 0x7f800000u : 0;
    x.bits |= sign;
    return x.value;
}
/* The bits of a float16 whose value is x. */
OW_INLINE ow_f16 ow_to_f16(float x)
{
    union {
        float value;
        ow_u32 bits;
    } y;
    y.value = x;
    const ow_u32 size = y.bits & 0x7fffffffu, sign = y.bits >> 16 & 0x8000u;
    y.bits = size;
    y.value *= 1.925929944387236e-34f;
    const ow_u32 special = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (ow_f16)((size >= 0x7f800000u ? special : y.bits >> 13) | sign);
}
/* The nearest value of a float16, of two the even one: a number of the same exponent plus 13 leaves
 * 10 bits of a float, and 42 those of a double. */
#define OW_ROUND_TO_HALF(NAME, F, U, SIGN, EXPONENT, SHIFT)                                        \
    OW_INLINE float NAME(F x)                                                                      \
    {                                                                                              \
        union {                                                                                    \
            F value;                                                                               \
            U bits;                                                                                \
        } m, r;                                                                                    \
        m.value = x;                                                                               \
        const U sign = m.bits & (SIGN);                                                            \
        m.bits &= (EXPONENT);                                                                      \
        m.value = m.value < (F)6.103515625e-05 ? (F)6.103515625e-05 : m.value;                     \
        m.value = m.value > (F)65536.0 ? (F)65536.0 : m.value;                                     \
        m.value *= (F)(SHIFT);                                                                     \
        m.bits |= sign;                                                                            \
        r.value = (x + m.value) - m.value;                                                         \
        r.bits &= ~(U)(SIGN);                                                                      \
        r.value = r.value > (F)65504.0 ? (F)__builtin_inf() : r.value;                             \
        r.bits |= sign;                                                                            \
        return (float)r.value;                                                                     \
    }
OW_ROUND_TO_HALF(ow_round_f16, float, ow_u32, 0x80000000u, 0x7f800000u, 8192.0)
OW_ROUND_TO_HALF(ow_round_f64_to_f16, double, ow_u64, 0x8000000000000000ull, 0x7ff0000000000000ull,
                 4398046511104.0)
#endif
/*@ end */

/* --- floordiv: quotient rounded down; integers give 0 where the divisor is 0 ----------------- */

/*@ known */
/* Whether a divisor is a positive number that the compiler knows: it shifts, or multiplies by the
 * inverse, which is faster than divisions of floating-point numbers. */
#if defined(__GNUC__) && !defined(__CUDACC__)
#define OW_KNOWN(y) (__builtin_constant_p(y) && (y) > 0)
#define OW_LOW_ZEROS(y) __builtin_ctzll((ow_u64)(y))
#else
#define OW_KNOWN(y) 0
#define OW_LOW_ZEROS(y) 0
#endif
#define OW_IS_POWER(y) (((y) & ((y) - 1)) == 0)
#define OW_FLOORDIV_KNOWN(x, y)                                                                    \
    (OW_IS_POWER(y) ? (x) >> OW_LOW_ZEROS(y) : (x) / (y) - ((x) % (y) < 0))
#define OW_MOD_KNOWN(x, y)                                                                         \
    (OW_IS_POWER(y) ? (x) & ((y) - 1) : (x) % (y) + ((x) % (y) < 0 ? (y) : 0))
/*@ end */
/*@ floordiv : known */
/* Integers of up to 32 bits are divided as floating-point numbers, which have vector instructions
 * and hold these quotients without rounding to the wrong side. */
#define OW_FLOORDIV_NARROW(S, F)                                                                   \
    OW_INLINE ow_##S ow_floordiv_##S(ow_##S x, ow_##S y)                                           \
    {                                                                                              \
        if (OW_KNOWN(y))                                                                           \
            return (ow_##S)OW_FLOORDIV_KNOWN((ow_i32)x, (ow_i32)y);                                \
        ow_i32 d = y == 0 ? 1 : y;                                                                 \
        ow_i32 q = (ow_i32)((F)x / (F)d);                                                          \
        ow_i32 r = x - q * d;                                                                      \
        q -= (r != 0) & ((r ^ d) < 0);                                                             \
        return (ow_##S)(y == 0 ? 0 : q);                                                           \
    }
#define OW_FLOORDIV_UNSIGNED(S)                                                                    \
    OW_INLINE ow_##S ow_floordiv_##S(ow_##S x, ow_##S y) { return y == 0 ? 0 : x / y; }
/* floor(x / y) alone is 1 too large where the quotient was rounded up to a whole number; the sign
 * of the exact remainder tells. As in numpy, an infinite x has no quotient, and a finite x divided
 * by an infinity of the other sign gives -1. "v - v != 0" holds for infinities and NaN. */
#define OW_FLOORDIV_FLOAT(S, T, FLOOR, FMA)                                                        \
    OW_INLINE T ow_floordiv_##S(T x, T y)                                                          \
    {                                                                                              \
        T q = FLOOR(x / y);                                                                        \
        T r = FMA(-q, y, x);                                                                       \
        int opposite = ((x < 0) & (y > 0)) | ((x > 0) & (y < 0));                                  \
        q = ((r < 0) & (y > 0)) | ((r > 0) & (y < 0)) ? q - 1 : q;                                 \
        q = (y - y != 0) & opposite ? -1 : q;                                                      \
        return (x - x != 0) & (y != 0) ? x - x : q;                                                \
    }
/*@ end */
/*@ floordiv i8 */
OW_FLOORDIV_NARROW(i8, float)
/*@ end */
/*@ floordiv i16 */
OW_FLOORDIV_NARROW(i16, float)
/*@ end */
/*@ floordiv u8 */
OW_FLOORDIV_NARROW(u8, float)
/*@ end */
/*@ floordiv u16 */
OW_FLOORDIV_NARROW(u16, float)
/*@ end */
/*@ floordiv u32 */
OW_FLOORDIV_UNSIGNED(u32)
/*@ end */
/*@ floordiv u64 */
OW_FLOORDIV_UNSIGNED(u64)
/*@ end */
/*@ floordiv i32 */
OW_INLINE ow_i32 ow_floordiv_i32(ow_i32 x, ow_i32 y)
{
    if (OW_KNOWN(y))
        return OW_FLOORDIV_KNOWN(x, y);
    /* the one quotient that does not fit is the smallest number by -1; it wraps */
    ow_i32 d = (y == 0) | (y == -1) ? 1 : y, negative = (ow_i32)(0u - (ow_u32)x);
    ow_i32 q = (ow_i32)((double)x / (double)d);
    ow_i32 r = x - q * d;
    q -= (r != 0) & ((r ^ d) < 0);
    /* one selection after the other: of nested ones gcc makes branches, and no vector
     * instructions */
    q = y == -1 ? negative : q;
    return y == 0 ? 0 : q;
}
/*@ end */
/*@ quotient i64 : of_float */
/* x / d rounded down, d != 0, and the remainder, by divisions of doubles, which are vector
 * instructions. The first quotient is off by up to 2**12; the second one divides what is left, and
 * is off by one. The one quotient that does not fit wraps. */
OW_INLINE ow_i64 ow_quotient_i64(ow_i64 x, ow_i64 d, ow_i64 *rest)
{
    const double divisor = (double)d;
    ow_i64 q = ow_i64_of_f64((double)x / divisor), r = x - q * d;
    const ow_i64 more = ow_i64_of_f64((double)r / divisor);
    q += more;
    r -= more * d;
    const ow_i64 low = (r != 0) & ((r ^ d) < 0);
    q -= low;
    r += low ? d : 0;
    const ow_i64 high = d > 0 ? r >= d : r <= d;
    *rest = r - (high ? d : 0);
    return q + high;
}
/*@ end */
/*@ floordiv i64 : quotient */
OW_INLINE ow_i64 ow_floordiv_i64(ow_i64 x, ow_i64 y)
{
    if (OW_KNOWN(y))
        return OW_FLOORDIV_KNOWN(x, y);
    ow_i64 r, q = ow_quotient_i64(x, y == 0 ? 1 : y, &r);
    return y == 0 ? 0 : q;
}
/* One number at a time: a branch costs less than a division of many bits. */
OW_INLINE ow_i64 ow_floordiv_alone_i64(ow_i64 x, ow_i64 y)
{
    if (!OW_KNOWN(y) && (((ow_u64)x | (ow_u64)y) >> 32) == 0 && y != 0)
        return (ow_u32)x / (ow_u32)y;
    return ow_floordiv_i64(x, y);
}
/*@ end */
/*@ floordiv f64 */
OW_FLOORDIV_FLOAT(f64, double, floor, fma)
/*@ end */
/*@ floordiv f32 */
OW_FLOORDIV_FLOAT(f32, float, floorf, fmaf)
/*@ end */

/* --- mod: remainder with the sign of the divisor; integers give 0 where the divisor is 0 ----- */

/*@ rare */
/* A function of numbers of one type, of which gcc makes versions for vectors too. What is rare in
 * it may branch and call what has no such version. */
#ifndef OW_RARE
#define OW_RARE static __attribute__((simd("notinbranch"), noinline, const))
#endif
/*@ end */
/*@ mod : known */
#define OW_MOD_NARROW(S, F)                                                                        \
    OW_INLINE ow_##S ow_mod_##S(ow_##S x, ow_##S y)                                                \
    {                                                                                              \
        if (OW_KNOWN(y))                                                                           \
            return (ow_##S)OW_MOD_KNOWN((ow_i32)x, (ow_i32)y);                                     \
        ow_i32 d = (y == 0) ? 1 : y;                                                               \
        ow_i32 q = (ow_i32)((F)x / (F)d);                                                          \
        ow_i32 r = x - q * d;                                                                      \
        r += (r != 0) & ((r ^ d) < 0) ? d : 0;                                                     \
        return (ow_##S)r;                                                                          \
    }
#define OW_MOD_UNSIGNED(S)                                                                         \
    OW_INLINE ow_##S ow_mod_##S(ow_##S x, ow_##S y) { return y == 0 ? 0 : x % y; }
/* Up to LARGEST, the quotient n in whole numbers is exact or, where rounding made it a whole
 * number, 1 too far from 0; x - n y is exact in REST then, and gets its sign from y either way.
 * Beyond, fmod divides bit by bit, in a function of its own: a call of one that does this for a
 * whole vector leaves the loop around it vector instructions, and little happens in it while all
 * quotients are near. */
#define OW_MOD_FLOAT(S, T, WIDE, LARGEST, REST, FMOD, COPYSIGN, FABS)                              \
    OW_INLINE T ow_mod_signed_##S(T r, T y)                                                        \
    {                                                                                              \
        T moved = (r < 0) != (y < 0) ? r + y : r;                                                  \
        return r == 0 ? COPYSIGN((T)0, y) : moved;                                                 \
    }                                                                                              \
    OW_RARE T ow_mod_far_##S(T x, T y, T near, T n)                                                \
    {                                                                                              \
        const int is_near = FABS(n) < (T)(LARGEST);                                                \
        return __builtin_expect(is_near, 1) ? near : ow_mod_signed_##S(FMOD(x, y), y);             \
    }                                                                                              \
    OW_INLINE T ow_mod_##S(T x, T y)                                                               \
    {                                                                                              \
        const WIDE n = trunc((WIDE)x / (WIDE)y);                                                   \
        T r = (T)REST(-n, (WIDE)y, (WIDE)x);                                                       \
        r = n == 0 ? x : r; /* infinite y too */                                                   \
        return ow_mod_far_##S(x, y, ow_mod_signed_##S(r, y), (T)n);                                \
    }
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__CUDACC__)
#define OW_MOD_WIDE_f32 float
#define OW_MOD_REST_f32(n, y, x) fmaf(n, y, x)
#define OW_MOD_LARGEST_f32 8388608.0
#define OW_MOD_REST_f64(n, y, x) fma(n, y, x)
#define OW_MOD_LARGEST_f64 4503599627370496.0
#else /* a product and a sum are exact in double for float operands, and not for others */
#define OW_MOD_WIDE_f32 double
#define OW_MOD_REST_f32(n, y, x) ((n) * (y) + (x))
#define OW_MOD_LARGEST_f32 536870912.0
#define OW_MOD_REST_f64(n, y, x) (x)
#define OW_MOD_LARGEST_f64 1.0
#endif
/*@ end */
/*@ mod i8 */
OW_MOD_NARROW(i8, float)
/*@ end */
/*@ mod i16 */
OW_MOD_NARROW(i16, float)
/*@ end */
/*@ mod u8 */
OW_MOD_NARROW(u8, float)
/*@ end */
/*@ mod u16 */
OW_MOD_NARROW(u16, float)
/*@ end */
/*@ mod u32 */
OW_MOD_UNSIGNED(u32)
/*@ end */
/*@ mod u64 */
OW_MOD_UNSIGNED(u64)
/*@ end */
/*@ mod i32 */
OW_INLINE ow_i32 ow_mod_i32(ow_i32 x, ow_i32 y)
{
    if (OW_KNOWN(y))
        return OW_MOD_KNOWN(x, y);
    ow_i32 d = (y == 0) | (y == -1) ? 1 : y;
    ow_i32 q = (ow_i32)((double)x / (double)d);
    ow_i32 r = x - q * d;
    return r + ((r != 0) & ((r ^ d) < 0) ? d : 0);
}
/*@ end */
/*@ mod i64 : quotient */
OW_INLINE ow_i64 ow_mod_i64(ow_i64 x, ow_i64 y)
{
    if (OW_KNOWN(y))
        return OW_MOD_KNOWN(x, y);
    ow_i64 r;
    ow_quotient_i64(x, y == 0 ? 1 : y, &r);
    return r;
}
OW_INLINE ow_i64 ow_mod_alone_i64(ow_i64 x, ow_i64 y)
{
    if (!OW_KNOWN(y) && (((ow_u64)x | (ow_u64)y) >> 32) == 0 && y != 0)
        return x < y ? x : (ow_u32)x % (ow_u32)y;
    return ow_mod_i64(x, y);
}
/*@ end */
/*@ mod f64 : rare */
OW_MOD_FLOAT(f64, double, double, OW_MOD_LARGEST_f64, OW_MOD_REST_f64, fmod, copysign,
             __builtin_fabs)
/*@ end */
/*@ mod f32 : rare */
OW_MOD_FLOAT(f32, float, OW_MOD_WIDE_f32, OW_MOD_LARGEST_f32, OW_MOD_REST_f32, fmodf, copysignf,
             __builtin_fabsf)
/*@ end */

/* --- ipow: integer power, wrapping; a negative exponent gives 0 unless the base is 1 or -1 --- */

/*@ ipow */
/* W: an unsigned type of at least 32 bits, in which products wrap without being promoted. */
#define OW_IPOW(S, W)                                                                              \
    OW_INLINE ow_##S ow_ipow_##S(ow_##S x, ow_##S y)                                               \
    {                                                                                              \
        W result = 1, base = (W)x, n = (W)y;                                                       \
        if (y < 0)                                                                                 \
            return x == 1 ? 1 : x == (ow_##S) - 1 ? (y & 1 ? -1 : 1) : 0;                          \
        for (; n; n >>= 1) {                                                                       \
            result *= n & 1 ? base : 1;                                                            \
            base *= base;                                                                          \
        }                                                                                          \
        return (ow_##S)result;                                                                     \
    }
#define OW_UPOW(S, W)                                                                              \
    OW_INLINE ow_##S ow_ipow_##S(ow_##S x, ow_##S y)                                               \
    {                                                                                              \
        W result = 1, base = x, n = y;                                                             \
        for (; n; n >>= 1) {                                                                       \
            result *= n & 1 ? base : 1;                                                            \
            base *= base;                                                                          \
        }                                                                                          \
        return (ow_##S)result;                                                                     \
    }
/*@ end */
/*@ ipow i8 */
OW_IPOW(i8, ow_u32)
/*@ end */
/*@ ipow i16 */
OW_IPOW(i16, ow_u32)
/*@ end */
/*@ ipow i32 */
OW_IPOW(i32, ow_u32)
/*@ end */
/*@ ipow i64 */
OW_IPOW(i64, ow_u64)
/*@ end */
/*@ ipow u8 */
OW_UPOW(u8, ow_u32)
/*@ end */
/*@ ipow u16 */
OW_UPOW(u16, ow_u32)
/*@ end */
/*@ ipow u32 */
OW_UPOW(u32, ow_u32)
/*@ end */
/*@ ipow u64 */
OW_UPOW(u64, ow_u64)
/*@ end */

/* --- exp, log, tanh: within 3 ulp, in vector instructions without a call ---------------------- */
/* x = k log(2) + r; exp(r) = 1 + r + r**2 q(r) with a minimax polynomial q; adding 1.5 times a
 * power of 2 rounds to the whole number k and leaves it in the low bits. */

/*@ fma */
/* a * b + c: rounded once where that is one instruction, and twice elsewhere */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define OW_FMA_f64(a, b, c) __builtin_fma(a, b, c)
#define OW_FMA_f32(a, b, c) __builtin_fmaf(a, b, c)
#else
#define OW_FMA_f64(a, b, c) ((a) * (b) + (c))
#define OW_FMA_f32(a, b, c) ((a) * (b) + (c))
#endif
/*@ end */
/*@ head */
/* the first 26 of 53 digits: products of two heads are exact */
OW_INLINE double ow_head(double x)
{
    union {
        double value;
        ow_u64 bits;
    } h;
    h.value = x;
    h.bits &= 0xfffffffff8000000ull;
    return h.value;
}
/*@ end */
/*@ rest : head */
/* c - a * b, which is a number of few bits: exactly, but for products of the low halves of a and
 * b */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define ow_rest_f64(c, a, b) __builtin_fma(-(a), b, c)
#else
OW_INLINE double ow_rest_f64(double c, double a, double b)
{
    const double a_head = ow_head(a), b_head = ow_head(b), a_low = a - a_head, b_low = b - b_head;
    return ((c - a_head * b_head) - a_head * b_low - a_low * b_head) - a_low * b_low;
}
#endif
/*@ end */
/*@ beyond */
/* Whether a number is above a limit, and not NaN; both are bits without the sign. Integers are
 * compared, since on some processors a comparison of floats takes the place of a product. */
#define OW_BEYOND_f64(size, limit)                                                                 \
    ((ow_i64)((size) - ((limit) + 0x8000000000000001ull)) <                                        \
     (ow_i64)(0xfff0000000000000ull - (limit)))
#define OW_BEYOND_f32(size, limit)                                                                 \
    ((ow_i32)((size) - ((limit) + 0x80000001u)) < (ow_i32)(0xff800000u - (limit)))
/*@ end */
/*@ expr f64 : fma */
/* exp(x) = 2**k (1 + *r + *r**2 *q); returns a number whose low bits are k */
OW_INLINE ow_u64 ow_expr_f64(double x, double *r, double *q)
{
    union {
        double value;
        ow_u64 bits;
    } whole;
    whole.value = OW_FMA_f64(x, 1.4426950408889634, 6755399441055744.0);
    double k = whole.value - 6755399441055744.0, t, p;
    t = OW_FMA_f64(-k, 7.4406171100123967e-11, OW_FMA_f64(-k, 0.6931471804855391, x));
    p = 2.5100472505694996e-8;
    p = OW_FMA_f64(p, t, 2.7620201591031549e-7);
    p = OW_FMA_f64(p, t, 2.7557268276905696e-6);
    p = OW_FMA_f64(p, t, 2.4801521057868205e-5);
    p = OW_FMA_f64(p, t, 1.9841269863171556e-4);
    p = OW_FMA_f64(p, t, 1.3888888917367081e-3);
    p = OW_FMA_f64(p, t, 8.3333333333300382e-3);
    p = OW_FMA_f64(p, t, 4.1666666666623821e-2);
    p = OW_FMA_f64(p, t, 1.6666666666666667e-1);
    p = OW_FMA_f64(p, t, 5.0000000000000010e-1);
    *r = t;
    *q = p;
    return whole.bits;
}
/*@ end */
/*@ expr f32 : fma */
OW_INLINE ow_u32 ow_expr_f32(float x, float *r, float *q)
{
    union {
        float value;
        ow_u32 bits;
    } whole;
    whole.value = OW_FMA_f32(x, 1.44269504f, 12582912.0f);
    float k = whole.value - 12582912.0f, t, p;
    t = OW_FMA_f32(-k, -2.12194440e-4f, OW_FMA_f32(-k, 0.693359375f, x));
    p = 1.39269266e-3f;
    p = OW_FMA_f32(p, t, 8.36377387e-3f);
    p = OW_FMA_f32(p, t, 4.16665501e-2f);
    p = OW_FMA_f32(p, t, 1.66665734e-1f);
    p = OW_FMA_f32(p, t, 5.00000001e-1f);
    *r = t;
    *q = p;
    return whole.bits;
}
/*@ end */
/*@ exp f64 : expr beyond */
/* Beyond 746 the result is infinite or 0, as at 746. The scale is applied in two steps: 2**k alone
 * may be too large or too small for a double. */
OW_INLINE double ow_exp_f64(double x)
{
    union {
        double value;
        ow_u64 bits;
    } v, scale, back;
    double r, q;
    v.value = x;
    const ow_u64 sign = v.bits & 0x8000000000000000ull, size = v.bits ^ sign;
    v.bits = OW_BEYOND_f64(size, 0x4087500000000000ull) ? 0x4087500000000000ull | sign : v.bits;
    const ow_u64 bias = sign ? 1623ull : 423ull, k = ow_expr_f64(v.value, &r, &q);
    scale.bits = (k + bias) << 52; /* 2**(k + 600) or 2**(k - 600) */
    back.bits = (2046ull - bias) << 52;
    return (1.0 + OW_FMA_f64(r * r, q, r)) * scale.value * back.value;
}
/*@ end */
/*@ exp f32 : expr beyond */
OW_INLINE float ow_exp_f32(float x)
{
    union {
        float value;
        ow_u32 bits;
    } v, scale, back;
    float r, q;
    v.value = x;
    const ow_u32 sign = v.bits & 0x80000000u, size = v.bits ^ sign;
    v.bits = OW_BEYOND_f32(size, 0x42d10000u) ? 0x42d10000u | sign : v.bits;
    const ow_u32 bias = sign ? 191u : 63u, k = ow_expr_f32(v.value, &r, &q);
    scale.bits = (k + bias) << 23; /* 2**(k + 64) or 2**(k - 64) */
    back.bits = (254u - bias) << 23;
    return (1.0f + OW_FMA_f32(r * r, q, r)) * scale.value * back.value;
}
/*@ end */
/*@ expneg f64 : expr */
/* exp of a number that is not positive */
OW_INLINE double ow_expneg_f64(double x)
{
    union {
        double value;
        ow_u64 bits;
    } scale;
    double r, q;
    x = x < -746.0 ? -746.0 : x;
    scale.bits = (ow_expr_f64(x, &r, &q) + 1623ull) << 52;
    return (1.0 + OW_FMA_f64(r * r, q, r)) * scale.value * 2.409919865102884e-181;
}
/*@ end */
/*@ expneg f32 : expr */
OW_INLINE float ow_expneg_f32(float x)
{
    union {
        float value;
        ow_u32 bits;
    } scale;
    float r, q;
    x = x < -104.5f ? -104.5f : x;
    scale.bits = (ow_expr_f32(x, &r, &q) + 191u) << 23;
    return (1.0f + OW_FMA_f32(r * r, q, r)) * scale.value * 5.42101086e-20f;
}
/*@ end */
/*@ tanh f64 : expr */
/* t / (t + 2) with t = exp(2 |x|) - 1, which is exact to the last bits for small x too */
OW_INLINE double ow_tanh_f64(double x)
{
    union {
        double value;
        ow_u64 bits;
    } scale;
    double y = __builtin_fabs(x), r, q, t;
    y = y > 22.0 ? 44.0 : 2.0 * y;
    scale.bits = (ow_expr_f64(y, &r, &q) + 1023ull) << 52;
    t = OW_FMA_f64(scale.value, OW_FMA_f64(r * r, q, r), scale.value - 1.0);
    return __builtin_copysign(t / (t + 2.0), x);
}
/*@ end */
/*@ tanh f32 : expr */
OW_INLINE float ow_tanh_f32(float x)
{
    union {
        float value;
        ow_u32 bits;
    } scale;
    float y = __builtin_fabsf(x), r, q, t;
    y = y > 10.0f ? 20.0f : 2.0f * y;
    scale.bits = (ow_expr_f32(y, &r, &q) + 127u) << 23;
    t = OW_FMA_f32(scale.value, OW_FMA_f32(r * r, q, r), scale.value - 1.0f);
    return __builtin_copysignf(t / (t + 2.0f), x);
}
/*@ end */
/*@ logs f64 : fma */
/* p(z) with log(1 + f) = f - s (f - z p(z)), s = f / (2 + f), z = s * s, from sqrt(1/2) to
 * sqrt(2) */
OW_INLINE double ow_logs_f64(double z)
{
    double p = 1.4630465387106197e-1;
    p = OW_FMA_f64(p, z, 1.5330581831836344e-1);
    p = OW_FMA_f64(p, z, 1.8182923591463206e-1);
    p = OW_FMA_f64(p, z, 2.2222210659293473e-1);
    p = OW_FMA_f64(p, z, 2.8571428628903477e-1);
    p = OW_FMA_f64(p, z, 3.9999999999893016e-1);
    p = OW_FMA_f64(p, z, 6.6666666666666699e-1);
    return p;
}
/*@ end */
/*@ log f64 : fma logs */
/* x = 2**k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f - s (f - s**2 p(s**2))
 * with s = f / (2 + f) */
OW_INLINE double ow_log_f64(double x)
{
    union {
        double value;
        ow_u64 bits;
    } v, factor, m, e;
    v.value = x;
    const ow_u64 more = (ow_i64)v.bits < 0x0010000000000000ll ? 54ull : 0;
    factor.bits = (1023ull + more) << 52;
    m.value = x * factor.value;
    m.bits += 0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull;
    e.bits = (m.bits >> 52) + (0x4330000000000400ull - more);
    m.bits = (m.bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull;
    const double k = e.value - (4503599627370496.0 + 2047.0);
    double f = m.value - 1.0, s = f / (2.0 + f), z = s * s, p;
    p = OW_FMA_f64(-z, ow_logs_f64(z), f);
    p = OW_FMA_f64(s, p, -k * 1.9082149292705877e-10);
    double y = OW_FMA_f64(k, 0.6931471803691238, f - p);
    y = (ow_i64)v.bits < 0x7ff0000000000000ll ? y : x;
    y = (ow_i64)v.bits < 0 ? __builtin_nan("") : y;
    return v.bits << 1 == 0 ? -__builtin_inf() : y;
}
/*@ end */
/*@ log f32 : fma */
OW_INLINE float ow_log_f32(float x)
{
    union {
        float value;
        ow_u32 bits;
    } v, factor, m;
    v.value = x;
    const ow_u32 more = (ow_i32)v.bits < 0x00800000 ? 25u : 0;
    factor.bits = (127u + more) << 23;
    m.value = x * factor.value;
    m.bits += 0x3f800000u - 0x3f3504f3u;
    const float k = (float)((ow_i32)((m.bits >> 23) - more) - 127);
    m.bits = (m.bits & 0x007fffffu) + 0x3f3504f3u;
    float f = m.value - 1.0f, s = f / (2.0f + f), z = s * s, p;
    p = 2.33423100e-1f;
    p = OW_FMA_f32(p, z, 2.85503834e-1f);
    p = OW_FMA_f32(p, z, 4.00001257e-1f);
    p = OW_FMA_f32(p, z, 6.66666666e-1f);
    p = OW_FMA_f32(-z, p, f);
    p = OW_FMA_f32(s, p, -k * 9.05800061e-6f);
    float y = OW_FMA_f32(k, 0.693138123f, f - p);
    y = (ow_i32)v.bits < 0x7f800000 ? y : x;
    y = (ow_i32)v.bits < 0 ? __builtin_nanf("") : y;
    return v.bits << 1 == 0 ? -__builtin_inff() : y;
}
/*@ end */

/* --- sigmoid and softplus: libm's vector exp is off by 3 ulp, too much for them --------------- */

/*@ sigmoid f64 : expneg */
OW_INLINE double ow_sigmoid_f64(double x)
{
    double e = ow_expneg_f64(x > 0 ? -x : x);
    return (x < 0 ? e : 1.0) / (1.0 + e);
}
/*@ end */
/*@ sigmoid f32 : expneg */
OW_INLINE float ow_sigmoid_f32(float x)
{
    float e = ow_expneg_f32(x > 0 ? -x : x);
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}
/*@ end */

/* max(x, 0) + log1p(e) with e = exp(-|x|). For e > sqrt(2) - 1, |x| < 0.88, 1 + e = 2 (1 + f). With
 * s = f / (2 + f), log1p(f) = 2 atanh(s) = f - f**2 / 2 + s (f**2 / 2 + s**2 p(s**2)). */

/*@ softplus f64 : expneg fma */
OW_INLINE double ow_softplus_f64(double x)
{
    union {
        double value;
        ow_i64 bits;
    } v;
    v.value = x;
    double e = ow_expneg_f64(x > 0 ? -x : x);
    const int large = (v.bits & 0x7fffffffffffffffll) < 0x3fec34366179d426ll;
    double f = large ? 0.5 * (e - 1.0) : e;
    double high = large ? 0.6931471804855391 : 0.0;
    double low = large ? 7.4406171100123967e-11 : 0.0;
    double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f, p;
    p = 1.4617807153417325e-1;
    p = OW_FMA_f64(p, z, 1.5331611722055008e-1);
    p = OW_FMA_f64(p, z, 1.8182892432536871e-1);
    p = OW_FMA_f64(p, z, 2.2222211089379496e-1);
    p = OW_FMA_f64(p, z, 2.8571428626253838e-1);
    p = OW_FMA_f64(p, z, 3.9999999999898891e-1);
    p = OW_FMA_f64(p, z, 6.6666666666666698e-1);
    return (v.bits < 0 ? 0.0 : x) + (high - ((h - OW_FMA_f64(s, OW_FMA_f64(z, p, h), low)) - f));
}
/*@ end */
/*@ softplus f32 : expneg fma */
OW_INLINE float ow_softplus_f32(float x)
{
    union {
        float value;
        ow_i32 bits;
    } v;
    v.value = x;
    float e = ow_expneg_f32(x > 0 ? -x : x);
    const int large = (v.bits & 0x7fffffff) < 0x3f61a1b3;
    float f = large ? 0.5f * (e - 1.0f) : e;
    float high = large ? 0.693359375f : 0.0f;
    float low = large ? -2.12194440e-4f : 0.0f;
    float s = f / (2.0f + f), z = s * s, h = 0.5f * f * f, p;
    p = 2.33316145e-1f;
    p = OW_FMA_f32(p, z, 2.85507786e-1f);
    p = OW_FMA_f32(p, z, 4.00001222e-1f);
    p = OW_FMA_f32(p, z, 6.66666666e-1f);
    return (v.bits < 0 ? 0.0f : x) + (high - ((h - OW_FMA_f32(s, OW_FMA_f32(z, p, h), low)) - f));
}
/*@ end */

/* --- functions of floats that are computed in double, and rounded once ------------------------ */
/* Their coefficients are fits of Chebyshev interpolation at 40 digits (chebyfit of mpmath). */

/*@ frexp */
/* x = 2**k *m with *m between sqrt(1/2) and sqrt(2), for a positive, normal x; returns k */
OW_INLINE double ow_frexp(double x, double *m)
{
    union {
        double value;
        ow_u64 bits;
    } v, k;
    v.value = x;
    v.bits += 0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull;
    k.bits = (v.bits >> 52) | 0x4330000000000000ull;
    v.bits = (v.bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull;
    *m = v.value;
    return k.value - (4503599627370496.0 + 1023.0);
}
/*@ end */
/*@ log2_wide : fma frexp */
/* log2 of a positive, normal double, within 2**-37 of it: x = 2**k m, log2(m) = s p(s * s)
 * with s = (m - 1) / (m + 1) */
OW_INLINE double ow_log2_wide(double x)
{
    double m;
    const double k = ow_frexp(x, &m), s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 0.3407120415619086;
    p = OW_FMA_f64(p, z, 0.41167376623771057);
    p = OW_FMA_f64(p, z, 0.5770835660048659);
    p = OW_FMA_f64(p, z, 0.9617966734515485);
    p = OW_FMA_f64(p, z, 2.885390081789987);
    return OW_FMA_f64(p, s, k);
}
/*@ end */
/*@ exp2_wide : fma */
/* 2**x for |x| < 1000, within 2**-28 of it */
OW_INLINE double ow_exp2_wide(double x)
{
    union {
        double value;
        ow_u64 bits;
    } whole, scale;
    whole.value = x + 6755399441055744.0;
    const double r = x - (whole.value - 6755399441055744.0);
    double p = 0.0001545316294512069;
    p = OW_FMA_f64(p, r, 0.0013390863364671234);
    p = OW_FMA_f64(p, r, 0.009618082557277852);
    p = OW_FMA_f64(p, r, 0.05550357114219078);
    p = OW_FMA_f64(p, r, 0.24022650760568126);
    p = OW_FMA_f64(p, r, 0.6931471880262288);
    p = OW_FMA_f64(p, r, 1.0);
    scale.bits = (whole.bits + 1023ull) << 52;
    return p * scale.value;
}
/*@ end */

/* --- pow -------------------------------------------------------------------------------------- */

/*@ exp2r f64 : fma */
/* (2**r - 1) / r for |r| of up to 1/2 */
OW_INLINE double ow_exp2r_f64(double r)
{
    const double r2 = r * r;
    double p = 4.4549606019592226e-10, q = 7.072585956347123e-09;
    p = OW_FMA_f64(p, r2, 1.017806244582691e-07);
    q = OW_FMA_f64(q, r2, 1.32154425878863e-06);
    p = OW_FMA_f64(p, r2, 1.525273382983615e-05);
    q = OW_FMA_f64(q, r2, 0.0001540353044173611);
    p = OW_FMA_f64(p, r2, 0.0013333558146416936);
    q = OW_FMA_f64(q, r2, 0.009618129107606888);
    p = OW_FMA_f64(p, r2, 0.0555041086648216);
    q = OW_FMA_f64(q, r2, 0.24022650695910097);
    p = OW_FMA_f64(p, r2, 0.6931471805599453);
    return OW_FMA_f64(q, r, p);
}
/*@ end */
/*@ pow f64 : fma rest frexp exp2r */
/* 2**(y log2(|x|)) within 1.3 ulp: the logarithm has a low part. |x| = 2**k m with m between
 * sqrt(1/2) and sqrt(2); log2(m) = s (2 / log(2) + t (2 / (3 log(2)) + t p(t))) with s = (m - 1) /
 * (m + 1) and t = s * s. Zeros, infinities and NaN are put in the place of the logarithm. part is 0
 * for even y, and 1 for odd y. */
OW_INLINE double ow_pow_f64(double x, double y)
{
    union {
        double value;
        ow_u64 bits;
    } whole, scale, z, sign;
    const double a = __builtin_fabs(x);
    double m, k = ow_frexp(a < 2.2250738585072014e-308 ? a * 18014398509481984.0 : a, &m);
    k = a < 2.2250738585072014e-308 ? k - 54.0 : k;
    const double f = m - 1.0, d = m + 1.0, d_low = m - (d - 1.0), inverse = 1.0 / d;
    const double s = f * inverse, s_low = OW_FMA_f64(-s, d_low, ow_rest_f64(f, s, d)) * inverse;
    const double t = s * s, t_low = OW_FMA_f64(s + s, s_low, -ow_rest_f64(t, s, s)), t2 = t * t;
    double p = 0.1691278942313097, q = 0.16888546541382793;
    p = OW_FMA_f64(p, t2, 0.1923805595228538);
    q = OW_FMA_f64(q, t2, 0.22195278870475327);
    p = OW_FMA_f64(p, t2, 0.2623081914670325);
    q = OW_FMA_f64(q, t2, 0.3205988979671596);
    p = OW_FMA_f64(p, t2, 0.4121985831111439);
    q = OW_FMA_f64(q, t2, 0.5770780163555853);
    p = OW_FMA_f64(q, t, p * t2);
    const double v = p + 0.9617966939259756,
                 v_low = (p - (v - 0.9617966939259756)) + 5.0577616648125907e-17;
    const double w = OW_FMA_f64(t, v, 2.8853900817779268);
    double w_low =
        OW_FMA_f64(t_low, v, 4.0710547481862066e-17) - ow_rest_f64(w - 2.8853900817779268, t, v);
    w_low = OW_FMA_f64(t, v_low, w_low);
    double high = OW_FMA_f64(s, w, k);
    const double low = OW_FMA_f64(s, w_low, OW_FMA_f64(s_low, w, -ow_rest_f64(high - k, s, w)));
    high = a < __builtin_inf() ? high : a;
    high = a == 0 ? -__builtin_inf() : high;
    const double all = y * high;
    double b = all, b_low = OW_FMA_f64(y, low, -ow_rest_f64(all, y, high));
    b = b > 1100.0 ? 1100.0 : b;
    b = b < -1100.0 ? -1100.0 : b;
    b_low = b == all ? 0.6931471805599453 * b_low : 0.0;
    whole.value = b + 6755399441055744.0;
    const double r = b - (whole.value - 6755399441055744.0);
    p = ow_exp2r_f64(r);
    p = OW_FMA_f64(p, r, OW_FMA_f64(b_low, p * r, b_low));
    scale.bits = (whole.bits + (b < 0 ? 1623ull : 423ull)) << 52;
    z.value = (1.0 + p) * scale.value * (b < 0 ? 2.409919865102884e-181 : 4.149515568880993e+180);
    double size = __builtin_fabs(y);
    size = size > 9007199254740992.0 ? 9007199254740992.0 : size;
    const double half = OW_FMA_f64(0.5, size, 4503599627370496.0) - 4503599627370496.0;
    const double part = __builtin_fabs(OW_FMA_f64(-2.0, half, size));
    const int one = (y == 0) | (a == 1.0);
    z.value = one ? 1.0 : z.value;
    const int broken = (x < 0) & (a < __builtin_inf()) & (part != 0) & (part != 1.0);
    z.value = broken ? __builtin_nan("") : z.value;
    sign.value = x;
    z.bits |= part == 1.0 ? sign.bits & 0x8000000000000000ull : 0;
    return y == 2.0 ? x * x : z.value;
}
/*@ end */
/*@ pow f32 : log2_wide exp2_wide */
/* 2**(y log2(|x|)), then what C says of zeros, infinities, NaN and negative bases, one selection
 * after the other. part = |y - 2 round(y / 2)| is 0 for even y, and 1 for odd y. */
OW_INLINE float ow_pow_f32(float x, float y)
{
    union {
        float value;
        ow_u32 bits;
    } z, sign;
    float a = __builtin_fabsf(x), size = __builtin_fabsf(y);
    size = size > 16777216.0f ? 16777216.0f : size;
    const float whole = (0.5f * size + 8388608.0f) - 8388608.0f,
                part = __builtin_fabsf(size - 2.0f * whole);
    const float on_zero = y < 0 ? __builtin_inff() : 0.0f,
                on_infinity = y < 0 ? 0.0f : __builtin_inff();
    float v = y, broken = part == 0 ? 0.0f : x;
    broken = part == 1.0f ? 0.0f : broken;
    v = v > 3.40282347e+38f ? 3.40282347e+38f : v;
    v = v < -3.40282347e+38f ? -3.40282347e+38f : v;
    double w = v * ow_log2_wide(a);
    w = w < -200.0 ? -200.0 : w;
    w = w > 200.0 ? 200.0 : w;
    z.value = (float)ow_exp2_wide(w);
    z.value = broken < 0 ? __builtin_nanf("") : z.value;
    z.value = a == 0 ? on_zero : z.value;
    z.value = a == __builtin_inff() ? on_infinity : z.value;
    sign.value = x;
    z.bits |= part == 1.0f ? sign.bits & 0x80000000u : 0;
    z.value = x != x ? x : z.value;
    z.value = y != y ? y : z.value;
    z.value = y == 2.0f ? x * x : z.value;
    z.value = y == 0 ? 1.0f : z.value;
    return x == 1.0f ? 1.0f : z.value;
}
/*@ end */

/* --- ultra_fast_sigmoid: a rational curve, then a line, then a constant ---------------------- */

/*@ ultra_fast_sigmoid */
#define OW_ULTRA_FAST_SIGMOID(S, T)                                                                \
    OW_INLINE T ow_ultra_fast_sigmoid_##S(T x)                                                     \
    {                                                                                              \
        T half = (T)0.5 * x, size = half < 0 ? -half : half;                                       \
        T curve = (T)1.5 * size / (1 + size);                                                      \
        T line = (T)0.935409070603099 + (T)0.0458812946797165 * (size - (T)1.7);                   \
        curve = size < (T)1.7 ? curve : line;                                                      \
        curve = size >= 3 ? (T)0.99505475368673 : curve;                                           \
        return (T)0.5 * ((half < 0 ? -curve : curve) + 1);                                         \
    }
/*@ end */
/*@ ultra_fast_sigmoid f64 */
OW_ULTRA_FAST_SIGMOID(f64, double)
/*@ end */
/*@ ultra_fast_sigmoid f32 */
OW_ULTRA_FAST_SIGMOID(f32, float)
/*@ end */

/* --- a step of MRG31k3p: see opwise/tensor/random/mrg.py -------------------------------------- */

/*@ mrg */
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
/*@ end */

#endif
