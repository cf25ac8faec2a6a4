/* Functions that the C text of operations on complex numbers calls: parts in the form of scalar.h.
 * Formulas and comparisons are those of numpy: numbers are ordered by their real parts, and by
 * their imaginary parts where these are equal. Formulas without branches become vector
 * instructions.
 * The file can be included after scalar.h; with the functions if OW_COMPLEX_FUNCTIONS is
 * defined. */
#ifndef OW_COMPLEXES_H
#define OW_COMPLEXES_H

/*@ complex */
#define OW_COMPLEX(S, R, I, FABS)                                                                  \
    OW_INLINE ow_##S ow_add_##S(ow_##S x, ow_##S y) { return (ow_##S){x.r + y.r, x.i + y.i}; }     \
    OW_INLINE ow_##S ow_sub_##S(ow_##S x, ow_##S y) { return (ow_##S){x.r - y.r, x.i - y.i}; }     \
    OW_INLINE ow_##S ow_neg_##S(ow_##S x) { return (ow_##S){-x.r, -x.i}; }                         \
    OW_INLINE ow_##S ow_conj_##S(ow_##S x) { return (ow_##S){x.r, -x.i}; }                         \
    OW_INLINE ow_##S ow_mul_##S(ow_##S x, ow_##S y)                                                \
    {                                                                                              \
        return (ow_##S){x.r * y.r - x.i * y.i, x.r * y.i + x.i * y.r};                             \
    }                                                                                              \
    /* Smith's algorithm: by the part of y that is larger */                                       \
    OW_INLINE ow_##S ow_div_##S(ow_##S x, ow_##S y)                                                \
    {                                                                                              \
        const int real = FABS(y.r) >= FABS(y.i), zero = (y.r == 0) & (y.i == 0);                   \
        const R large = real ? y.r : y.i, small = real ? y.i : y.r;                                \
        const R ratio = small / large, scale = 1 / (large + small * ratio);                        \
        const R r = real ? x.r + x.i * ratio : x.r * ratio + x.i;                                  \
        const R i = real ? x.i - x.r * ratio : x.i * ratio - x.r;                                  \
        return (ow_##S){zero ? x.r / FABS(y.r) : r * scale, zero ? x.i / FABS(y.r) : i * scale};   \
    }                                                                                              \
    OW_INLINE ow_##S ow_inv_##S(ow_##S x)                                                          \
    {                                                                                              \
        const int real = FABS(x.i) <= FABS(x.r);                                                   \
        const R large = real ? x.r : x.i, small = real ? x.i : x.r;                                \
        const R ratio = small / large, scale = large + small * ratio;                              \
        return (ow_##S){(real ? 1 : ratio) / scale, (real ? -ratio : -1) / scale};                 \
    }                                                                                              \
    OW_INLINE int ow_true_##S(ow_##S x) { return (x.r != 0) | (x.i != 0); }                        \
    OW_INLINE int ow_isnan_##S(ow_##S x) { return (x.r != x.r) | (x.i != x.i); }                   \
    OW_INLINE int ow_isinf_##S(ow_##S x)                                                           \
    {                                                                                              \
        return (FABS(x.r) == __builtin_inf()) | (FABS(x.i) == __builtin_inf());                    \
    }                                                                                              \
    OW_INLINE int ow_eq_##S(ow_##S x, ow_##S y) { return (x.r == y.r) & (x.i == y.i); }            \
    OW_INLINE int ow_lt_##S(ow_##S x, ow_##S y)                                                    \
    {                                                                                              \
        return ((x.r < y.r) & (x.i == x.i) & (y.i == y.i)) | ((x.r == y.r) & (x.i < y.i));         \
    }                                                                                              \
    OW_INLINE int ow_le_##S(ow_##S x, ow_##S y)                                                    \
    {                                                                                              \
        return ((x.r < y.r) & (x.i == x.i) & (y.i == y.i)) | ((x.r == y.r) & (x.i <= y.i));        \
    }                                                                                              \
    /* by bits: gcc makes a branch of two selections by one condition after another */             \
    OW_INLINE R ow_either_##S(I first, R x, R y)                                                   \
    {                                                                                              \
        union {                                                                                    \
            R value;                                                                               \
            I bits;                                                                                \
        } a = {x}, b = {y};                                                                        \
        a.bits = (a.bits & -first) | (b.bits & ~-first);                                           \
        return a.value;                                                                            \
    }                                                                                              \
    OW_INLINE ow_##S ow_pick_##S(int first, ow_##S x, ow_##S y)                                    \
    {                                                                                              \
        return (ow_##S){ow_either_##S(first, x.r, y.r), ow_either_##S(first, x.i, y.i)};           \
    }                                                                                              \
    /* the first of two, unless the second is larger (smaller) and the first is not NaN */         \
    OW_INLINE ow_##S ow_maximum_##S(ow_##S x, ow_##S y)                                            \
    {                                                                                              \
        return ow_pick_##S(ow_isnan_##S(x) | ow_le_##S(y, x), x, y);                               \
    }                                                                                              \
    OW_INLINE ow_##S ow_minimum_##S(ow_##S x, ow_##S y)                                            \
    {                                                                                              \
        return ow_pick_##S(ow_isnan_##S(x) | ow_le_##S(x, y), x, y);                               \
    }
#ifndef OW_COMPLEX_CASTS
#define OW_COMPLEX_CASTS
OW_INLINE ow_c128 ow_c128_of_c64(ow_c64 x) { return (ow_c128){x.r, x.i}; }
OW_INLINE ow_c64 ow_c64_of_c128(ow_c128 x) { return (ow_c64){(float)x.r, (float)x.i}; }
OW_INLINE ow_c64 ow_c64_of_c64(ow_c64 x) { return x; }
OW_INLINE ow_c128 ow_c128_of_c128(ow_c128 x) { return x; }
#endif
/*@ end */
/*@ complex c64 */
#ifndef OW_COMPLEX_c64
#define OW_COMPLEX_c64
OW_COMPLEX(c64, float, int, __builtin_fabsf)
#endif
/*@ end */
/*@ complex c128 */
#ifndef OW_COMPLEX_c128
#define OW_COMPLEX_c128
OW_COMPLEX(c128, double, long long, __builtin_fabs)
#endif
/*@ end */

/* --- functions ------------------------------------------------------------------------------- */

#ifdef OW_COMPLEX_FUNCTIONS

/*@ cexp */
/* exp(r) cos(i), exp(r) sin(i): in two factors where exp(r) alone is too large. The result of
 * infinities and of NaN is that of the C library. What is special is in the arguments: a selection
 * after the calls would be a branch around them. */
#define OW_CEXP(S, R, MOST, EXP_MOST, EXP, F)                                                      \
    OW_INLINE ow_##S ow_cexp_##S(ow_##S x)                                                         \
    {                                                                                              \
        const int large = x.r > (R)(MOST), infinite = (x.r - x.r != 0) & (x.r == x.r);             \
        const R angle = infinite & (x.i - x.i != 0) ? 0 : x.i;                                     \
        const R e = EXP(large ? x.r - (R)(MOST) : x.r), rest = large ? (R)(EXP_MOST) : 1;          \
        const R e_i = x.i == 0 ? 1 : e;                                                            \
        return (ow_##S){(e * ow_cos##F(angle)) * rest,                                             \
                        (e_i * ow_sin##F(angle)) * (x.i == 0 ? 1 : rest)};                         \
    }
/*@ end */
/*@ cexp c64 : exp */
OW_CEXP(c64, float, 80, 5.54062238439351e34, ow_exp_f32, f)
/*@ end */
/*@ cexp c128 : exp */
OW_CEXP(c128, double, 700, 1.0142320547350045e304, ow_exp_f64, )
/*@ end */

/*@ clibm */
/* x by a function of the C library. */
#define OW_CLIBM_c64(FN, x)                                                                        \
    ({                                                                                             \
        const float _Complex ow_z = FN(__builtin_complex((x).r, (x).i));                           \
        (ow_c64){__real__ ow_z, __imag__ ow_z};                                                    \
    })
#define OW_CLIBM_c128(FN, x)                                                                       \
    ({                                                                                             \
        const double _Complex ow_z = FN(__builtin_complex((x).r, (x).i));                          \
        (ow_c128){__real__ ow_z, __imag__ ow_z};                                                   \
    })
/*@ end */

/*@ cscale */
#define OW_CSCALE(S, R)                                                                            \
    OW_INLINE ow_##S ow_scale_##S(R a, ow_##S x) { return (ow_##S){a * x.r, a * x.i}; }
/*@ end */
/*@ cscale c64 */
OW_CSCALE(c64, float)
/*@ end */
/*@ cscale c128 */
OW_CSCALE(c128, double)
/*@ end */

/*@ cexpm1 */
#define OW_CEXPM1(S, R, F)                                                                         \
    OW_INLINE ow_##S ow_cexpm1_##S(ow_##S x)                                                       \
    {                                                                                              \
        const R half = sin##F(x.i / 2);                                                            \
        return (ow_##S){expm1##F(x.r) * cos##F(x.i) - 2 * half * half, exp##F(x.r) * sin##F(x.i)}; \
    }                                                                                              \
    OW_INLINE ow_##S ow_clog1p_##S(ow_##S x)                                                       \
    {                                                                                              \
        return (ow_##S){log##F(hypot##F(x.r + 1, x.i)), atan2##F(x.i, x.r + 1)};                   \
    }
/*@ end */
/*@ cexpm1 c64 */
OW_CEXPM1(c64, float, f)
/*@ end */
/*@ cexpm1 c128 */
OW_CEXPM1(c128, double, )
/*@ end */

/*@ cpow : clibm */
/* Whole exponents of up to 100 are products, as in numpy. */
#define OW_CPOW(S, R, FN)                                                                          \
    static ow_##S ow_cpow_##S(ow_##S x, ow_##S y)                                                  \
    {                                                                                              \
        const R nan = (R)__builtin_nan("");                                                        \
        if (y.r == 0 && y.i == 0)                                                                  \
            return (ow_##S){1, 0};                                                                 \
        if (x.r == 0 && x.i == 0)                                                                  \
            return y.r > 0 ? (ow_##S){0, 0} : (ow_##S){nan, nan};                                  \
        if (y.i == 0 && y.r > -100 && y.r < 100 && y.r == (R)(int)y.r) {                           \
            int n = (int)y.r;                                                                      \
            if (n == 1)                                                                            \
                return x;                                                                          \
            if (n == 2)                                                                            \
                return ow_mul_##S(x, x);                                                           \
            if (n == 3)                                                                            \
                return ow_mul_##S(x, ow_mul_##S(x, x));                                            \
            ow_##S power = {1, 0}, p = x;                                                          \
            for (n = n < 0 ? -n : n; n; n >>= 1) {                                                 \
                power = n & 1 ? ow_mul_##S(power, p) : power;                                      \
                p = n > 1 ? ow_mul_##S(p, p) : p;                                                  \
            }                                                                                      \
            return y.r < 0 ? ow_div_##S((ow_##S){1, 0}, power) : power;                            \
        }                                                                                          \
        const R _Complex z = FN(__builtin_complex(x.r, x.i), __builtin_complex(y.r, y.i));         \
        return (ow_##S){__real__ z, __imag__ z};                                                   \
    }
/*@ end */
/*@ cpow c64 */
OW_CPOW(c64, float, cpowf)
/*@ end */
/*@ cpow c128 */
OW_CPOW(c128, double, cpow)
/*@ end */
#endif
#endif
