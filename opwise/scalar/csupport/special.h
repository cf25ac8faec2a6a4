/* Special functions that the C text of scalar operations calls: parts in the form of scalar.h,
 * whose parts they need. Nothing here branches, so that a compiler uses vector instructions.
 * Coefficients are minimax fits of Remez's algorithm, those of the gamma family and of erfinv f32
 * fits of Chebyshev interpolation at 40 digits (chebyfit of mpmath). Quotients p / q in the gamma
 * family are equal to their functions at Chebyshev points of 1 / (y + s), s between 0 and 2:
 * solutions of linear equations. */
#ifndef OW_SPECIAL_H
#define OW_SPECIAL_H

/* --- what the functions of the gamma family share --------------------------------------------- */

/*@ offset */
/* a - n for a >= 0 and the nearest whole number n, whose last bit is that of *whole */
OW_INLINE double ow_offset(double a, ow_u64 *whole)
{
    union {
        double value;
        ow_u64 bits;
    } n;
    const double b = a < 4503599627370496.0 ? a : 4503599627370496.0;
    n.value = b + 4503599627370496.0;
    *whole = n.bits;
    return b - (n.value - 4503599627370496.0);
}
/*@ end */
/*@ sinpi f64 : fma offset */
/* sin(pi a) / pi for a >= 0 within 2**-52 of it, but for its sign: it is negative where *whole is
 * odd */
OW_INLINE double ow_sinpi_f64(double a, ow_u64 *whole)
{
    const double t = ow_offset(a, whole), z = t * t;
    double s = 2.459180384815939e-07;
    s = OW_FMA_f64(s, z, -6.972960555564221e-06);
    s = OW_FMA_f64(s, z, 0.00014842817816693618);
    s = OW_FMA_f64(s, z, -0.0023460809634923995);
    s = OW_FMA_f64(s, z, 0.026147847813078808);
    s = OW_FMA_f64(s, z, -0.19075182412194128);
    s = OW_FMA_f64(s, z, 0.8117424252833519);
    s = OW_FMA_f64(s, z, -1.6449340668482264);
    return OW_FMA_f64(z * s, t, t);
}
/*@ end */
/*@ sinpi_wide : fma offset */
/* the same within 2**-36 */
OW_INLINE double ow_sinpi_wide(double a, ow_u64 *whole)
{
    const double t = ow_offset(a, whole), z = t * t;
    double p = -0.002237178600214795;
    p = OW_FMA_f64(p, z, 0.02611743763397087);
    p = OW_FMA_f64(p, z, -0.19074789529025588);
    p = OW_FMA_f64(p, z, 0.8117421954830587);
    p = OW_FMA_f64(p, z, -1.64493406192812);
    p = OW_FMA_f64(p, z, 0.9999999999829191);
    return p * t;
}
/*@ end */
/*@ logr f64 : fma logs */
/* log(1 + u) + shift for a finite u above -1, as ow_log_f64 computes log, with the digits that 1 +
 * u loses */
OW_INLINE double ow_logr_f64(double u, double shift)
{
    union {
        double value;
        ow_u64 bits;
    } m, e, scale;
    const double x = 1.0 + u, lost = 0.5 * (u - (x - 1.0));
    m.value = x;
    m.bits += 0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull;
    e.bits = (m.bits >> 52) | 0x4330000000000000ull;
    scale.bits = 0x7ff0000000000000ull - (m.bits & 0xfff0000000000000ull); /* 2**(1 - k) */
    m.bits = (m.bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull;
    const double k = e.value - (4503599627370496.0 + 1023.0);
    const double f = OW_FMA_f64(lost, scale.value, m.value - 1.0);
    const double s = f / (2.0 + f), z = s * s;
    const double less =
        OW_FMA_f64(s, OW_FMA_f64(-z, ow_logs_f64(z), f), -k * 1.9082149292705877e-10);
    return OW_FMA_f64(k, 0.6931471803691238, shift) + (f - less);
}
/*@ end */

/* --- gamma ------------------------------------------------------------------------------------ */

/*@ gamma f64 : sinpi head frexp exp2r */
/* Stirling's formula: gamma(y) = (c + p(y) / q(y)) (y / e)**(y - 1/2), c = sqrt(2 pi / e), within
 * 2**-57 for all y >= 1. The power is 2**(e1 + e2), the exponent (y - 1/2) (log2(y) - log2(e)).
 * Both factors of it have two parts, the first one a head, as in pow of FreeBSD's msun (Sun
 * Microsystems, 1993). gamma(x) = gamma(x + 1) / x for 0 < x < 1, gamma(-a) = -pi / (a sin(pi a)
 * gamma(a)). Exact for 1, 2, ..., 18; within 3 ulp, 4 for x < 0. */
OW_INLINE double ow_gamma_f64(double x)
{
    union {
        double value;
        ow_u64 bits;
    } whole, half, first, second, below;
    const double a = __builtin_fabs(x), one = a < 1.0 ? a + 1.0 : a, b = one > 200.0 ? 200.0 : one;
    ow_u64 odd;
    const double sine = ow_sinpi_f64(a, &odd);
    /* log2(b) = k + log2(m), log2(m) = 2 / log(2) (s + ...) with s = (m - 1) / (m + 1) */
    double m;
    const double k = ow_frexp(b, &m) - 1.4426950408887933;
    const double f = m - 1.0, v = 1.0 / (m + 1.0), s = f * v, z = s * s;
    const double s1 = ow_head(s), m1 = ow_head(m + 1.0),
                 s2 = v * ((f - s1 * m1) - s1 * (m - (m1 - 1.0)));
    double l = 0.18880010645456755;
    l = OW_FMA_f64(l, z, 0.19142793205820974);
    l = OW_FMA_f64(l, z, 0.22197651717179587);
    l = OW_FMA_f64(l, z, 0.2623078640447632);
    l = OW_FMA_f64(l, z, 0.3205989004205735);
    l = OW_FMA_f64(l, z, 0.41219858310211616);
    l = OW_FMA_f64(l, z, 0.577078016355598);
    l = OW_FMA_f64(l, z, 0.9617966939259756);
    l = s * z * l + (2.8853900817779268 * s2 + 3.851925982253235e-08 * s1) - 1.701065226463149e-13;
    const double exact = 2.885390043258667 * s1;
    const double t1 = ow_head((k + exact) + l), t2 = ((k - t1) + exact) + l;
    const double c = b - 0.5, c1 = ow_head(c);
    double e1 = c1 * t1, e2 = (c - c1) * t1 + c * t2;
    e1 = x < 0 ? -e1 : e1;
    e2 = x < 0 ? -e2 : e2;
    whole.value = e1 + 6755399441055744.0;
    const double r = (e1 - (whole.value - 6755399441055744.0)) + e2;
    half.value = 0.5 * (whole.value - 6755399441055744.0) + 6755399441055744.0;
    first.bits = (whole.bits - half.bits + 1023ull) << 52;
    second.bits = (half.bits + 1023ull) << 52;
    double p = 0.12669557508885676, q;
    p = OW_FMA_f64(p, b, 0.6862138067529329);
    p = OW_FMA_f64(p, b, 2.025909006235714);
    p = OW_FMA_f64(p, b, 3.4225919768257835);
    p = OW_FMA_f64(p, b, 3.547336097963309);
    p = OW_FMA_f64(p, b, 2.081939543669192);
    p = OW_FMA_f64(p, b, 0.5948200776924563);
    p = OW_FMA_f64(p, b, 0.03685127969875105);
    q = b + 5.3745746367229135;
    q = OW_FMA_f64(q, b, 15.79860439415389);
    q = OW_FMA_f64(q, b, 26.531708052541028);
    q = OW_FMA_f64(q, b, 27.40713310115114);
    q = OW_FMA_f64(q, b, 16.136434612909927);
    q = OW_FMA_f64(q, b, 4.831390828063251);
    q = OW_FMA_f64(q, b, 0.46030835505848106);
    q = OW_FMA_f64(q, b, 0.005465130469472133);
    const double g = 1.520346901066281 + (p / q + -9.239528122039697e-17);
    const double power =
        OW_FMA_f64(ow_exp2r_f64(r), r, 1.0) * first.value; /* 2**e is this by second */
    const double divisor = a < 1.0 ? x : 1.0, factor = a < 1.0 ? 1.0 : a;
    below.value = x < 0 ? sine * factor * g : divisor;
    below.bits ^= x < 0 ? ~odd << 63 : 0;
    double y = (x < 0 ? power : power * g) / below.value * second.value;
    const double whole_y = (y + 6755399441055744.0) - 6755399441055744.0;
    const double factorial = x > 18.0 ? 1.0 : sine; /* 17! is the last one below 2**51 */
    y = factorial == 0 ? whole_y : y;
    const double pole = x < 0 ? sine : 1.0; /* -infinity too */
    y = pole == 0 ? __builtin_nan("") : y;
    return x != x ? x : y;
}
/*@ end */
/*@ gamma f32 : sinpi_wide log2_wide exp2_wide */
/* C. Lanczos, "A precision approximation of the gamma function" (1964), with n = 6 and g = 5.5,
 * exact for 1, 2, ..., 6: for a = |x|, gamma(a) = (a + 5)**(a - 1/2) exp(-a - 5) p(a) / q(a) within
 * 2**-31, q(a) = a (a + 1) ... (a + 4). gamma(-a) = -pi / (a sin(pi a) gamma(a)). */
OW_INLINE float ow_gamma_f32(float x)
{
    union {
        double value;
        ow_u64 bits;
    } s;
    const double value = x, a = __builtin_fabs(value), b = a > 60.0 ? 60.0 : a;
    ow_u64 odd;
    s.value = ow_sinpi_wide(a, &odd);
    s.bits ^= odd << 63;
    double p = 2.506628276926731, q;
    p = OW_FMA_f64(p, b, 62.87459249868307);
    p = OW_FMA_f64(p, b, 630.8434866218366);
    p = OW_FMA_f64(p, b, 3164.7420255106495);
    p = OW_FMA_f64(p, b, 7938.241198558533);
    p = OW_FMA_f64(p, b, 7964.685900610323);
    q = OW_FMA_f64(b + 10.0, b, 35.0);
    q = OW_FMA_f64(q, b, 50.0);
    q = OW_FMA_f64(q, b, 24.0) * b;
    const double c = b + 5.0;
    double w = OW_FMA_f64(b - 0.5, ow_log2_wide(c), -1.4426950408889634 * c);
    const double above = value < 0 ? -q : p;
    const double below = value < 0 ? a * s.value * p : q;
    w = value < 0 ? -w : w;
    double y = above / below * ow_exp2_wide(w);
    const double pole = value < 0 ? s.value : 1.0; /* -infinity too */
    y = pole == 0 ? __builtin_nan("") : y;
    y = value != value ? value : y;
    return (float)(value == 0 ? 1.0 / value : y);
}
/*@ end */

/* --- gammaln ---------------------------------------------------------------------------------- */

/*@ gammaln f64 : sinpi logr log */
/* From 3/4 to 5.5, log(gamma(y)) = (y - 1) log(1 + (y - 2) (c + p(y) / q(y))), c = 0.40625, keeps
 * all digits near the zeros 1 and 2; beyond, Stirling's series. log(gamma(x)) = log(gamma(x + 1)) -
 * log(x) for x < 3/4, log|gamma(-a)| = -log(a |sin(pi a)| / pi) - log(gamma(a)). Within 4 ulp, 2
 * from 1 on; for x < 0 within 2 ulp of the larger logarithm. */
OW_INLINE double ow_gammaln_f64(double x)
{
    const double a = __builtin_fabs(x), b = a < 0.75 ? a + 1.0 : a;
    const double less1 = a < 0.75 ? a : a - 1.0, less2 = a < 0.75 ? a - 1.0 : a - 2.0;
    ow_u64 odd;
    const double sine = __builtin_fabs(ow_sinpi_f64(a, &odd));
    double p = -7.427061399539665e-06, q, s = 0.004018639124927124;
    p = OW_FMA_f64(p, b, -0.036556609113597746);
    p = OW_FMA_f64(p, b, -1.3712710289529044);
    p = OW_FMA_f64(p, b, -10.514247234772222);
    p = OW_FMA_f64(p, b, 5.604278404043899);
    p = OW_FMA_f64(p, b, 205.86891323110865);
    p = OW_FMA_f64(p, b, 484.4026004100045);
    p = OW_FMA_f64(p, b, 384.6247339587617);
    p = OW_FMA_f64(p, b, 104.58905135145065);
    p = OW_FMA_f64(p, b, 7.387087791637546);
    q = b + 51.46276493634147;
    q = OW_FMA_f64(q, b, 754.2717958179417);
    q = OW_FMA_f64(q, b, 4333.8208546348815);
    q = OW_FMA_f64(q, b, 10963.723973657958);
    q = OW_FMA_f64(q, b, 12630.283705767537);
    q = OW_FMA_f64(q, b, 6434.930013181624);
    q = OW_FMA_f64(q, b, 1311.9216079698074);
    q = OW_FMA_f64(q, b, 78.99723323441795);
    const double v = 1.0 / (b < 5.5 ? q : b), z = v * v;
    s = OW_FMA_f64(s, z, -0.001821556267238126);
    s = OW_FMA_f64(s, z, 0.0008397118359033304);
    s = OW_FMA_f64(s, z, -0.0005952152496621262);
    s = OW_FMA_f64(s, z, 0.0007936506700327804);
    s = OW_FMA_f64(s, z, -0.0027777777775246644);
    s = OW_FMA_f64(s, z, 0.08333333333333325);
    const double u = less2 * OW_FMA_f64(p, v, 0.40625);
    const double l = ow_logr_f64(b < 5.5 ? u : b - 1.0, b < 5.5 ? 0.0 : -1.0);
    const double tail = OW_FMA_f64(s, v, 0.4189385332046727);
    double y = OW_FMA_f64(b < 5.5 ? less1 : b - 0.5, l, b < 5.5 ? 0.0 : tail);
    double other = a < 0.75 ? a : 1.0;
    other = x < 0 ? sine * (a < 0.75 ? 1.0 : a) : other;
    y = (x < 0 ? -y : y) - ow_log_f64(other);
    y = other <= 5.562684646268003e-309 ? __builtin_inf() : y; /* as in scipy: 1 / x overflows */
    return x - x != 0 ? x : y;
}
/*@ end */
/*@ gammaln f32 : sinpi_wide log2_wide */
/* The same with fewer terms, within 0.6 ulp; for x < 0 within 2**-30 of the larger logarithm. */
OW_INLINE float ow_gammaln_f32(float x)
{
    const double value = x, a = __builtin_fabs(value), b = a < 0.75 ? a + 1.0 : a;
    const double less1 = a < 0.75 ? a : a - 1.0, less2 = a < 0.75 ? a - 1.0 : a - 2.0;
    ow_u64 odd;
    const double sine = __builtin_fabs(ow_sinpi_wide(a, &odd));
    double p = -0.03556638977323858, q, s = 0.0007655793456017071;
    p = OW_FMA_f64(p, b, -0.30650490617478393);
    p = OW_FMA_f64(p, b, 1.193836774138547);
    p = OW_FMA_f64(p, b, 3.8663009561982156);
    p = OW_FMA_f64(p, b, 1.411986654744221);
    q = b + 20.4521056563301;
    q = OW_FMA_f64(q, b, 79.07882366294633);
    q = OW_FMA_f64(q, b, 73.92186510626095);
    q = OW_FMA_f64(q, b, 15.387873087170824);
    const double v = 1.0 / (b < 5.5 ? q : b), z = v * v;
    s = OW_FMA_f64(s, z, -0.0027774347213127375);
    s = OW_FMA_f64(s, z, 0.08333333270486333);
    const double w = OW_FMA_f64(less2, OW_FMA_f64(p, v, 0.40625), 1.0);
    const double bits = ow_log2_wide(b < 5.5 ? w : b);
    const double l = OW_FMA_f64(bits, 0.69314718055994531, b < 5.5 ? 0.0 : -1.0);
    const double tail = OW_FMA_f64(s, v, 0.4189385332046727);
    double y = OW_FMA_f64(b < 5.5 ? less1 : b - 0.5, l, b < 5.5 ? 0.0 : tail);
    double other = a < 0.75 ? a : 1.0;
    other = value < 0 ? sine * (a < 0.75 ? 1.0 : a) : other;
    y = (value < 0 ? -y : y) - 0.69314718055994531 * ow_log2_wide(other);
    y = other == 0 ? __builtin_inf() : y;
    return value - value != 0 ? x : (float)y;
}
/*@ end */

/* --- psi, tri_gamma --------------------------------------------------------------------------- */

/*@ psi f64 : logr offset */
/* psi(y) = log(1 + (y - y0) (1 + p(y) / q(y))), psi(y0) = 0, for all y >= 1: exp(psi(y)) is almost
 * y - 1/2, and all digits are kept near y0. psi(x) = psi(x + 1) - 1 / x for 0 < x < 1, psi(-a) =
 * psi(a + 1) + pi cot(pi a). Within 3 ulp; for x < 0, of the larger term. */
OW_INLINE double ow_psi_f64(double x)
{
    const double a = __builtin_fabs(x), one = x < 1.0 ? a + 1.0 : a, b = one > 1e17 ? 1e17 : one;
    ow_u64 whole;
    const double t = ow_offset(a, &whole), z = t * t;
    const double high = x < 1.0 ? 0.46163214496836236 : 1.4616321449683622;
    const double low = x < 1.0 ? 1.5522348162858677e-17 : -9.549995429965697e-17;
    const double less = (a - high) + low;
    double p = -0.03836785503163781, q, c = -2.1028835962061844e-06;
    p = OW_FMA_f64(p, b, -0.16415342947638933);
    p = OW_FMA_f64(p, b, -0.45811449267643023);
    p = OW_FMA_f64(p, b, -0.7172324605299404);
    p = OW_FMA_f64(p, b, -0.7615785109720811);
    p = OW_FMA_f64(p, b, -0.48316325956850353);
    p = OW_FMA_f64(p, b, -0.18152664965770915);
    p = OW_FMA_f64(p, b, -0.02328416414027211);
    q = b + 3.9027567679237367;
    q = OW_FMA_f64(q, b, 10.467897195831164);
    q = OW_FMA_f64(q, b, 14.832741201625907);
    q = OW_FMA_f64(q, b, 14.609036199583151);
    q = OW_FMA_f64(q, b, 8.047978484622533);
    q = OW_FMA_f64(q, b, 3.035453745320413);
    q = OW_FMA_f64(q, b, 0.5424307604033267);
    q = OW_FMA_f64(q, b, 0.08558124836124924);
    const double u = OW_FMA_f64(less, p / q, less);
    c = OW_FMA_f64(c, z, -5.789811674224615e-06);
    c = OW_FMA_f64(c, z, -2.4609706222558445e-05);
    c = OW_FMA_f64(c, z, -9.852933432259084e-05);
    c = OW_FMA_f64(c, z, -0.0003988830317772067);
    c = OW_FMA_f64(c, z, -0.0016411106665433198);
    c = OW_FMA_f64(c, z, -0.007043130598305193);
    c = OW_FMA_f64(c, z, -0.03425086851153425);
    c = OW_FMA_f64(c, z, -0.28986813369645364);
    c = OW_FMA_f64(c, z, 1.0);
    double above = x < 1.0 ? -1.0 : 0.0;
    above = x < 0 ? c * ((1.0 - 2.0 * t) * (1.0 + 2.0 * t)) : above;
    const double below = x < 0 ? t * (1.0 - z) : x;
    double y = ow_logr_f64(u, 0.0) + above / below;
    const double pole = x < 0 ? t : 1.0; /* -infinity too */
    y = pole == 0 ? __builtin_nan("") : y;
    y = x == __builtin_inf() ? x : y;
    return x != x ? x : y;
}
/*@ end */
/*@ psi f32 : log2_wide offset */
/* The same with fewer terms, within 0.6 ulp; for x < 0 within 2**-30 of the larger term. */
OW_INLINE float ow_psi_f32(float x)
{
    const double value = x, a = __builtin_fabs(value), one = value < 1.0 ? a + 1.0 : a;
    const double b = one > 1e17 ? 1e17 : one;
    ow_u64 whole;
    const double t = ow_offset(a, &whole), z = t * t;
    const double less = one - 1.4616321449683622;
    double p = -0.03836785255278086, q, c = -0.0004822941199641301;
    p = OW_FMA_f64(p, b, -0.047914535809990014);
    p = OW_FMA_f64(p, b, -0.04661583712239947);
    p = OW_FMA_f64(p, b, -0.01545727747334031);
    q = b + 0.8731569780950785;
    q = OW_FMA_f64(q, b, 0.8811098468432297);
    q = OW_FMA_f64(q, b, 0.1596396216439686);
    q = OW_FMA_f64(q, b, 0.05191595731378492);
    c = OW_FMA_f64(c, z, -0.0016167456730355513);
    c = OW_FMA_f64(c, z, -0.007046345427504141);
    c = OW_FMA_f64(c, z, -0.03425067838858945);
    c = OW_FMA_f64(c, z, -0.28986813778880216);
    c = OW_FMA_f64(c, z, 1.0000000000142217);
    const double w = OW_FMA_f64(less, p / q, less) + 1.0;
    double above = value < 1.0 ? -1.0 : 0.0;
    above = value < 0 ? c * (1.0 - 4.0 * z) : above;
    const double below = value < 0 ? t * (1.0 - z) : value;
    double y = OW_FMA_f64(ow_log2_wide(w), 0.69314718055994531, above / below);
    const double pole = value < 0 ? t : 1.0; /* -infinity too */
    y = pole == 0 ? __builtin_nan("") : y;
    y = value == __builtin_inf() ? value : y;
    return value != value ? x : (float)y;
}
/*@ end */
/*@ tri_gamma f64 : sinpi */
/* psi'(y) = (1 + p(y) / (y q(y))) / y for all y >= 1. psi'(x) = psi'(x + 1) + 1 / x**2 for 0 < x <
 * 1, psi'(-a) = (pi / sin(pi a))**2 - psi'(a + 1). Within 4 ulp. */
OW_INLINE double ow_tri_gamma_f64(double x)
{
    const double a = __builtin_fabs(x), one = x < 1.0 ? a + 1.0 : a, b = one > 1e17 ? 1e17 : one;
    ow_u64 odd;
    const double sine = ow_sinpi_f64(a, &odd);
    double p = 0.5, q;
    p = OW_FMA_f64(p, b, 5.788142964435138);
    p = OW_FMA_f64(p, b, 31.99721408547049);
    p = OW_FMA_f64(p, b, 106.82777617914327);
    p = OW_FMA_f64(p, b, 232.20173128398596);
    p = OW_FMA_f64(p, b, 334.1665787164604);
    p = OW_FMA_f64(p, b, 311.1103916878388);
    p = OW_FMA_f64(p, b, 173.19717130285548);
    p = OW_FMA_f64(p, b, 45.43377014766575);
    q = b + 11.242952595537057;
    q = OW_FMA_f64(q, b, 60.24677730574003);
    q = OW_FMA_f64(q, b, 193.63995992469256);
    q = OW_FMA_f64(q, b, 400.6063393664341);
    q = OW_FMA_f64(q, b, 538.7665454008169);
    q = OW_FMA_f64(q, b, 455.00585895955015);
    q = OW_FMA_f64(q, b, 218.63092595903018);
    q = OW_FMA_f64(q, b, 45.43377155828492);
    const double most = (1.0 + p / (q * b)) / one, v = 1.0 / (x < 0 ? sine : x);
    const double other = x < 1.0 ? v * v : 0.0;
    return other + (x < 0 ? -most : most);
}
/*@ end */
/*@ tri_gamma f32 : sinpi_wide */
/* the same with fewer terms, within 0.6 ulp */
OW_INLINE float ow_tri_gamma_f32(float x)
{
    const double value = x, a = __builtin_fabs(value), one = value < 1.0 ? a + 1.0 : a;
    const double b = one > 1e17 ? 1e17 : one;
    ow_u64 odd;
    const double sine = ow_sinpi_wide(a, &odd);
    double p = 0.5000000024117077, q;
    p = OW_FMA_f64(p, b, 1.6545415466464521);
    p = OW_FMA_f64(p, b, 2.5970962934745745);
    p = OW_FMA_f64(p, b, 2.0745103759897194);
    p = OW_FMA_f64(p, b, 0.743877899683791);
    q = b + 2.975750708486805;
    q = OW_FMA_f64(q, b, 4.202243376569162);
    q = OW_FMA_f64(q, b, 2.8153900750233976);
    q = OW_FMA_f64(q, b, 0.7442902902065345);
    const double most = OW_FMA_f64(q, b, p) / (q * b * one), v = 1.0 / (value < 0 ? sine : value);
    const double other = value < 1.0 ? v * v : 0.0;
    return (float)(other + (value < 0 ? -most : most));
}
/*@ end */

/* --- erf -------------------------------------------------------------------------------------- */

/* x + x p(x * x) for small |x|. Beyond, erfc(|x|) = q(|x|)**8, as in M. Abramowitz and I. Stegun,
 * "Handbook of Mathematical Functions" (1964), 7.1.28: a smooth function is fitted, without exp and
 * without a division. */

/*@ zeta */
/* The sum of (q + i)**-s for i = 0, 1, ..., by the Euler-Maclaurin formula from q + i > 10 + s on,
 * whose terms have the Bernoulli numbers of even order k over k!. */
static double ow_zeta(double s, double q)
{
    static const double terms[] = {1.0 / 12,
                                   -1.0 / 720,
                                   1.0 / 30240,
                                   -1.0 / 1209600,
                                   1.0 / 47900160,
                                   -691.0 / 1307674368000.0,
                                   1.0 / 74724249600.0,
                                   -3617.0 / 10670622842880000.0};
    if (s <= 1.0)
        return s == 1.0 ? __builtin_inf() : __builtin_nan("");
    if (q <= 0 && (q == __builtin_floor(q) || s != __builtin_floor(s)))
        return q == __builtin_floor(q) ? __builtin_inf() : __builtin_nan("");
    if (q < -32.0) { /* the terms below 0 are those of two numbers above it */
        const double n = __builtin_floor(-q), f = q + n;
        const double below = ow_zeta(s, 1.0 - f) - ow_zeta(s, 1.0 - q);
        return ow_zeta(s, f) + (s == 2.0 * __builtin_floor(0.5 * s) ? below : -below);
    }
    double sum = 0.0, last = pow(q, -s);
    for (; q <= 10.0 + s; q += 1.0, last = pow(q, -s)) {
        sum += last;
        if (q > 1.0 && last <= 1e-17 * sum)
            return sum;
    }
    double term = s * last / q, rest = 0.0;
    for (int k = 0; last > 0 && k < 8; k++) {
        rest += term * terms[k];
        term *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
    }
    return sum + pow(q, 1.0 - s) / (s - 1.0) + 0.5 * last + rest;
}
/*@ end */
/*@ erf f64 : fma */
/* within 1.5 ulp */
OW_INLINE double ow_erf_f64(double x)
{
    const double z = OW_FMA_f64(x, x, -1.0), a = __builtin_fabs(x), b = a > 5.95 ? 5.95 : a,
                 c = b - 2.0;
    double p, q;
    p = 1.5926014652321706e-13;
    p = OW_FMA_f64(p, z, -2.6862261160219324e-12);
    p = OW_FMA_f64(p, z, 3.748556776037918e-11);
    p = OW_FMA_f64(p, z, -4.911495111291396e-10);
    p = OW_FMA_f64(p, z, 5.961749577434792e-09);
    p = OW_FMA_f64(p, z, -6.648222847842851e-08);
    p = OW_FMA_f64(p, z, 6.760003344418424e-07);
    p = OW_FMA_f64(p, z, -6.2119068560250214e-06);
    p = OW_FMA_f64(p, z, 5.1038837430532154e-05);
    p = OW_FMA_f64(p, z, -0.0003701541086051629);
    p = OW_FMA_f64(p, z, 0.0023330763124384864);
    p = OW_FMA_f64(p, z, -0.012549884771843278);
    p = OW_FMA_f64(p, z, 0.05657061146827107);
    p = OW_FMA_f64(p, z, -0.2137966477645601);
    p = OW_FMA_f64(p, z, -0.15729920705028513);
    q = -2.704287923096816e-12;
    q = OW_FMA_f64(q, c, -2.0735251316842857e-12);
    q = OW_FMA_f64(q, c, 5.304354477607589e-10);
    q = OW_FMA_f64(q, c, -4.087456914200904e-09);
    q = OW_FMA_f64(q, c, -1.3908333343897522e-09);
    q = OW_FMA_f64(q, c, 1.1372366278524615e-07);
    q = OW_FMA_f64(q, c, 1.757293947819091e-07);
    q = OW_FMA_f64(q, c, -5.973409280945095e-06);
    q = OW_FMA_f64(q, c, 7.132859580867274e-06);
    q = OW_FMA_f64(q, c, 0.0001864297868453607);
    q = OW_FMA_f64(q, c, -0.000655840422079464);
    q = OW_FMA_f64(q, c, -0.002804226548762848);
    q = OW_FMA_f64(q, c, 0.017202182838039457);
    q = OW_FMA_f64(q, c, 0.018938032883535395);
    q = OW_FMA_f64(q, c, -0.2824268506987113);
    q = OW_FMA_f64(q, c, 0.5113926144390635);
    p = OW_FMA_f64(p, x, x);
    q = q * q;
    q = q * q;
    q = __builtin_copysign(1.0 - q * q, x);
    return a < 1.5 ? p : q;
}
/*@ end */
/*@ erf f32 : fma */
/* within 1.7 ulp */
OW_INLINE float ow_erf_f32(float x)
{
    const float z = OW_FMA_f32(x, x, -0.5f), a = __builtin_fabsf(x), b = a > 3.95f ? 3.95f : a,
                c = b - 1.15f;
    float p, q;
    p = 6.90789311e-05f;
    p = OW_FMA_f32(p, z, -0.000563710928f);
    p = OW_FMA_f32(p, z, 0.00348425424f);
    p = OW_FMA_f32(p, z, -0.0182838347f);
    p = OW_FMA_f32(p, z, 0.0794095472f);
    p = OW_FMA_f32(p, z, -0.28107217f);
    p = OW_FMA_f32(p, z, -0.0345312543f);
    q = 0.000164793484f;
    q = OW_FMA_f32(q, c, -0.00149493373f);
    q = OW_FMA_f32(q, c, 0.00177961774f);
    q = OW_FMA_f32(q, c, 0.0199330039f);
    q = OW_FMA_f32(q, c, -0.0317172594f);
    q = OW_FMA_f32(q, c, -0.272621512f);
    q = OW_FMA_f32(q, c, 0.753467441f);
    p = OW_FMA_f32(p, x, x);
    q = q * q;
    q = q * q;
    q = __builtin_copysignf(1.0f - q * q, x);
    return a < 1.15f ? p : q;
}
/*@ end */

/* --- erfinv ----------------------------------------------------------------------------------- */

/*@ inverse f64 : log */
/* The inverse of erf at a, and of erfc at c = 1 - a, for 0 <= a <= 1: 7/8 a + a p(r) / q(r) with r
 * = 3/4 - a * a up to 0.86, and s + u(s) / v(s) with s = sqrt(-log(c)) beyond, with other
 * polynomials from 6.05 on if tiny c are possible: the ranges of M. J. Wichura, "Algorithm AS 241"
 * (1988). The quotients are small corrections. The square of high is exact; s less high goes into
 * the quotient. Within 1.7 ulp; erfcinv loses another bit where 1 - x is rounded. */
OW_INLINE double ow_inverse_f64(double a, double c, int tiny)
{
    const double w = -ow_log_f64(c), s = __builtin_sqrt(w), r = 0.75 - a * a;
    const double high = (s + 3221225472.0) - 3221225472.0, rest = w - high * high, sum = s + high;
    double p, q, u, v, y;
    p = -0.0049899559599682185;
    p = OW_FMA_f64(p, r, -1.201621471343871);
    p = OW_FMA_f64(p, r, -9.818831108472956);
    p = OW_FMA_f64(p, r, -20.749497832690214);
    p = OW_FMA_f64(p, r, -10.290706074964055);
    p = OW_FMA_f64(p, r, 8.697777891678037);
    p = OW_FMA_f64(p, r, 10.027159975587097);
    p = OW_FMA_f64(p, r, 3.259047404447278);
    p = OW_FMA_f64(p, r, 0.34861069840761294);
    q = 1.8934808220446429;
    q = OW_FMA_f64(q, r, 24.800257799047497);
    q = OW_FMA_f64(q, r, 97.15346836836272);
    q = OW_FMA_f64(q, r, 163.34665207514539);
    q = OW_FMA_f64(q, r, 135.58680802962337);
    q = OW_FMA_f64(q, r, 58.00983631072299);
    q = OW_FMA_f64(q, r, 12.218122430115441);
    q = OW_FMA_f64(q, r, 1.0);
    u = -5.915308187366724e-07;
    u = OW_FMA_f64(u, s, -0.000614884953749448);
    u = OW_FMA_f64(u, s, -0.029022362215105287);
    u = OW_FMA_f64(u, s, -0.35612467333402675);
    u = OW_FMA_f64(u, s, -1.5180353070647294);
    u = OW_FMA_f64(u, s, -2.208043812071082);
    u = OW_FMA_f64(u, s, -1.4352480146891498);
    u = OW_FMA_f64(u, s, -0.9925676415503623);
    u = OW_FMA_f64(u, s, -0.0005821731378885282);
    v = 0.0002126709732877541;
    v = OW_FMA_f64(v, s, 0.01450662779269539);
    v = OW_FMA_f64(v, s, 0.24752174552119574);
    v = OW_FMA_f64(v, s, 1.5429789819961799);
    v = OW_FMA_f64(v, s, 3.919791235862701);
    v = OW_FMA_f64(v, s, 4.6257552513495375);
    v = OW_FMA_f64(v, s, 4.373600970357843);
    v = OW_FMA_f64(v, s, 2.278742843258316);
    v = OW_FMA_f64(v, s, 1.0);
    if (tiny) { /* a constant */
        double far, below;
        far = 2.4856791440247367e-12;
        far = OW_FMA_f64(far, s, -2.352082048636653e-09);
        far = OW_FMA_f64(far, s, -5.6335288727710186e-06);
        far = OW_FMA_f64(far, s, -0.0007419439119703979);
        far = OW_FMA_f64(far, s, -0.026266475009930318);
        far = OW_FMA_f64(far, s, -0.3083757468096785);
        far = OW_FMA_f64(far, s, -1.1566809502834192);
        far = OW_FMA_f64(far, s, -0.947558445205715);
        far = OW_FMA_f64(far, s, 0.01678636896238174);
        below = 1.6925285917716203e-06;
        below = OW_FMA_f64(below, s, 0.00029737766992242107);
        below = OW_FMA_f64(below, s, 0.013650479994518273);
        below = OW_FMA_f64(below, s, 0.21697596049472417);
        below = OW_FMA_f64(below, s, 1.2599977573653676);
        below = OW_FMA_f64(below, s, 2.503086408599606);
        below = OW_FMA_f64(below, s, 1.6794804053751708);
        below = OW_FMA_f64(below, s, 1.0);
        u = s > 6.05 ? far : u;
        v = s > 6.05 ? below : v;
    }
    u = OW_FMA_f64(u, sum, rest * v);
    v = v * sum;
    p = a < 0.86 ? a * p : u;
    q = a < 0.86 ? q : v;
    y = a < 0.86 ? 0.875 * a : high;
    return y + p / q;
}
/*@ end */
/*@ erfinv f64 : inverse */
OW_INLINE double ow_erfinv_f64(double x)
{
    const double a = __builtin_fabs(x);
    double y = ow_inverse_f64(a, 1.0 - a, 0);
    y = a == 1.0 ? __builtin_inf() : y;
    y = a > 1.0 ? __builtin_nan("") : y;
    return __builtin_copysign(y, x);
}
/*@ end */
/*@ erfcinv f64 : inverse */
OW_INLINE double ow_erfcinv_f64(double x)
{
    const double c = x < 1.0 ? x : 2.0 - x, a = 1.0 - x;
    double y = ow_inverse_f64(__builtin_fabs(a), c, 1);
    y = c == 0 ? __builtin_inf() : y;
    y = c < 0 ? __builtin_nan("") : y;
    return __builtin_copysign(y, a);
}
/*@ end */
/*@ erfcinv f32 : log2_wide */
/* the same within 2**-30, and with one quotient beyond 0.86 */
OW_INLINE float ow_erfcinv_f32(float x)
{
    const double wide = x, c = wide < 1.0 ? wide : 2.0 - wide, a = __builtin_fabs(1.0 - wide);
    const double s = __builtin_sqrt(-0.6931471805599453 * ow_log2_wide(c)), r = 0.75 - a * a;
    double p, q, u, v, y;
    p = -0.6398049913515469;
    p = OW_FMA_f64(p, r, -2.0830560946184695);
    p = OW_FMA_f64(p, r, -0.05164047872038055);
    p = OW_FMA_f64(p, r, 1.2647540532989772);
    p = OW_FMA_f64(p, r, 0.34861069265439415);
    q = 1.0383507390752187;
    q = OW_FMA_f64(q, r, 7.849581192818727);
    q = OW_FMA_f64(q, r, 12.683377335266682);
    q = OW_FMA_f64(q, r, 6.497431199221123);
    q = OW_FMA_f64(q, r, 1.0);
    u = 6.196981531245848e-06;
    u = OW_FMA_f64(u, s, -0.00076585259576837);
    u = OW_FMA_f64(u, s, -0.1272539847613757);
    u = OW_FMA_f64(u, s, -0.98032606592833);
    u = OW_FMA_f64(u, s, -0.8038754886094479);
    u = OW_FMA_f64(u, s, -0.030543838118515302);
    v = 0.05913306882641092;
    v = OW_FMA_f64(v, s, 0.8477761209639706);
    v = OW_FMA_f64(v, s, 2.124834126033805);
    v = OW_FMA_f64(v, s, 1.3160214314071723);
    v = OW_FMA_f64(v, s, 1.0);
    p = a < 0.86 ? a * p : u;
    q = a < 0.86 ? q : v;
    y = (a < 0.86 ? 0.875 * a : s) + p / q;
    y = c == 0 ? __builtin_inf() : y;
    y = c >= 0 ? y : __builtin_nan(""); /* of NaN too: exponents know none */
    return (float)__builtin_copysign(y, 1.0 - wide);
}
/*@ end */
/*@ erfinv f32 : log */
/* x p(w) with w = -log(1 - x * x), and x q(sqrt(w) - 3) from w = 5 on */
OW_INLINE float ow_erfinv_f32(float x)
{
    const float a = __builtin_fabsf(x), w = -ow_log_f32((1.0f - a) * (1.0f + a));
    const float s = __builtin_sqrtf(w) - 3.0f;
    float p = -8.93192597e-9f, q = 1.07486614e-4f;
    p = OW_FMA_f32(p, w, 2.24304302e-7f);
    p = OW_FMA_f32(p, w, -2.00827134e-6f);
    p = OW_FMA_f32(p, w, 4.15066324e-6f);
    p = OW_FMA_f32(p, w, 4.40488043e-5f);
    p = OW_FMA_f32(p, w, -1.26539474e-4f);
    p = OW_FMA_f32(p, w, -2.33527059e-3f);
    p = OW_FMA_f32(p, w, 1.15491651e-2f);
    p = OW_FMA_f32(p, w, 2.32013713e-1f);
    p = OW_FMA_f32(p, w, 8.86226924e-1f);
    q = OW_FMA_f32(q, s, -3.01109982e-4f);
    q = OW_FMA_f32(q, s, -4.50347701e-5f);
    q = OW_FMA_f32(q, s, 1.47413078e-3f);
    q = OW_FMA_f32(q, s, -3.60351697e-3f);
    q = OW_FMA_f32(q, s, 5.69140795e-3f);
    q = OW_FMA_f32(q, s, -7.63596258e-3f);
    q = OW_FMA_f32(q, s, 9.44472151e-3f);
    q = OW_FMA_f32(q, s, 1.00167488f);
    q = OW_FMA_f32(q, s, 2.83297681f);
    float y = (w < 5.0f ? p : q) * x;
    y = a == 1.0f ? __builtin_copysignf(__builtin_inff(), x) : y;
    return a > 1.0f ? __builtin_nanf("") : y;
}
/*@ end */

/* --- Bessel functions ------------------------------------------------------------------------- */

/*@ turns : fma */
/* For 0 <= x < 2**50 and c a multiple of 1/4, *d becomes x + c pi + *d less a multiple k pi, where
 * k is in the low bits of the result: (k - c) pi is subtracted in parts of 30 bits of pi, whose
 * products are exact, as in W. J. Cody and W. Waite, "Software Manual for the Elementary Functions"
 * (1980). Without fma, they are exact up to 6e6. */
OW_INLINE ow_u64 ow_turns(double x, double c, double *d)
{
    union {
        double value;
        ow_u64 bits;
    } whole;
    whole.value = OW_FMA_f64(x, 0.3183098861837907, c) + 6755399441055744.0;
    const double k = (whole.value - 6755399441055744.0) - c;
    const double t = OW_FMA_f64(-k, 1.9841871583270443e-09, OW_FMA_f64(-k, 3.141592651605606, x));
    *d = t + OW_FMA_f64(-k, 1.034036596358821e-18, *d);
    return whole.bits;
}
/*@ end */
/*@ wave f64 : turns */
/* sin(x + c pi + d) for small d, within 2**-52 */
OW_INLINE double ow_wave_f64(double x, double c, double d)
{
    union {
        double value;
        ow_u64 bits;
    } s;
    const ow_u64 k = ow_turns(x, c, &d);
    const double z = d * d;
    double p;
    p = 2.715461632916654e-15;
    p = OW_FMA_f64(p, z, -7.64244340962774e-13);
    p = OW_FMA_f64(p, z, 1.6058918457215233e-10);
    p = OW_FMA_f64(p, z, -2.5052106446883984e-08);
    p = OW_FMA_f64(p, z, 2.755731920645767e-06);
    p = OW_FMA_f64(p, z, -0.00019841269841181799);
    p = OW_FMA_f64(p, z, 0.008333333333333118);
    p = OW_FMA_f64(p, z, -0.16666666666666666);
    s.value = OW_FMA_f64(p * z, d, d);
    s.bits ^= k << 63;
    return s.value;
}
/*@ end */
/*@ wave f32 : turns */
/* the same within 2**-34 of it */
OW_INLINE double ow_wave_f32(double x, double c, double d)
{
    union {
        double value;
        ow_u64 bits;
    } s;
    const ow_u64 k = ow_turns(x, c, &d);
    const double z = d * d;
    double p;
    p = -2.381532998902519e-08;
    p = OW_FMA_f64(p, z, 2.7521175935684405e-06);
    p = OW_FMA_f64(p, z, -0.00019840785748493129);
    p = OW_FMA_f64(p, z, 0.008333330476186685);
    p = OW_FMA_f64(p, z, -0.16666666611173506);
    s.value = OW_FMA_f64(p * z, d, d);
    s.bits ^= k << 63;
    return s.value;
}
/*@ end */

/* From 8 on, sqrt(2 / (pi x)) m(64 / x**2) sin(x + pi/4 + p(64 / x**2) / x), with the modulus and
 * phase of Abramowitz and Stegun, 9.2.17; j1 has x - pi/4 there. Below, the first two zeros are
 * factors, so that results near them have all digits. From 1e15 on, the phase is that of 8: results
 * have the right size only. */

/*@ j0 f64 : wave */
/* The absolute error is within 3e-16. */
OW_INLINE double ow_j0_f64(double x)
{
    const double a = __builtin_fabs(x), z = x * x, u = z - 60.0;
    const double i = 1.0 / a, w = 64.0 * i * i;
    double small, near, m, p;
    small = -2.7563067582204456e-17;
    small = OW_FMA_f64(small, z, 9.374200340742998e-15);
    small = OW_FMA_f64(small, z, -2.402752925779126e-12);
    small = OW_FMA_f64(small, z, 4.709501266931133e-10);
    small = OW_FMA_f64(small, z, -6.781684001355057e-08);
    small = OW_FMA_f64(small, z, 6.781684027502125e-06);
    small = OW_FMA_f64(small, z, -0.00043402777777761507);
    small = OW_FMA_f64(small, z, 0.015624999999999953);
    small = OW_FMA_f64(small, z, -0.25);
    small = OW_FMA_f64(small, z, 1.0);
    near = -3.191894679545895e-34;
    near = OW_FMA_f64(near, u, 1.7862452237397805e-31);
    near = OW_FMA_f64(near, u, -1.4320523555135341e-28);
    near = OW_FMA_f64(near, u, 8.921016753472502e-26);
    near = OW_FMA_f64(near, u, -4.727795062193481e-23);
    near = OW_FMA_f64(near, u, 2.0727735402128177e-20);
    near = OW_FMA_f64(near, u, -7.368101561493433e-18);
    near = OW_FMA_f64(near, u, 2.0679398475961742e-15);
    near = OW_FMA_f64(near, u, -4.426758592290321e-13);
    near = OW_FMA_f64(near, u, 6.894849647800882e-11);
    near = OW_FMA_f64(near, u, -7.296945640661412e-09);
    near = OW_FMA_f64(near, u, 4.705086284187205e-07);
    near = OW_FMA_f64(near, u, -1.5077173312441287e-05);
    near = OW_FMA_f64(near, u, 0.00014116908855857065);
    near *= ((a - 2.404825557695773) + 1.176691651530859e-16) * (a + 2.404825557695773);
    near *= ((a - 5.520078110286311) - 8.088597146146457e-17) * (a + 5.520078110286311);
    m = 3.559119847351585e-10;
    m = OW_FMA_f64(m, w, -2.4309070071391987e-09);
    m = OW_FMA_f64(m, w, 8.099554443248415e-09);
    m = OW_FMA_f64(m, w, -1.8932870893437498e-08);
    m = OW_FMA_f64(m, w, 4.0065411012293516e-08);
    m = OW_FMA_f64(m, w, -9.86434288898329e-08);
    m = OW_FMA_f64(m, w, 3.484393514387676e-07);
    m = OW_FMA_f64(m, w, -2.0707764761566278e-06);
    m = OW_FMA_f64(m, w, 2.5272368248669386e-05);
    m = OW_FMA_f64(m, w, -0.0009765624999736487);
    m = OW_FMA_f64(m, w, 0.9999999999999999);
    p = -2.171259754974832e-09;
    p = OW_FMA_f64(p, w, 1.5143406784438876e-08);
    p = OW_FMA_f64(p, w, -5.089184796339535e-08);
    p = OW_FMA_f64(p, w, 1.1663859183457913e-07);
    p = OW_FMA_f64(p, w, -2.2956426292768645e-07);
    p = OW_FMA_f64(p, w, 4.894355761488655e-07);
    p = OW_FMA_f64(p, w, -1.397220268958177e-06);
    p = OW_FMA_f64(p, w, 6.248455758620769e-06);
    p = OW_FMA_f64(p, w, -5.116460654697453e-05);
    p = OW_FMA_f64(p, w, 0.001017252603437633);
    p = OW_FMA_f64(p, w, -0.12499999999999231);
    m *= __builtin_sqrt(0.6366197723675814 * i) * ow_wave_f64(a > 1e15 ? 8.0 : a, 0.25, p * i);
    double y = a < 8.0 ? near : m;
    return a < 2.0 ? small : y;
}
/*@ end */
/*@ j0 f32 : wave */
OW_INLINE float ow_j0_f32(float x)
{
    const double a = __builtin_fabsf(x), z = a * a, u = z - 32.0;
    const double i = 1.0 / a, w = 64.0 * i * i;
    double near, m, p;
    near = 1.3850395679858979e-25;
    near = OW_FMA_f64(near, u, -7.996670316585819e-23);
    near = OW_FMA_f64(near, u, 3.6385219293407807e-20);
    near = OW_FMA_f64(near, u, -1.3611808416546477e-17);
    near = OW_FMA_f64(near, u, 4.067008856142049e-15);
    near = OW_FMA_f64(near, u, -9.409615280487225e-13);
    near = OW_FMA_f64(near, u, 1.619072075407557e-10);
    near = OW_FMA_f64(near, u, -1.95782185173214e-08);
    near = OW_FMA_f64(near, u, 1.5269952773915855e-06);
    near = OW_FMA_f64(near, u, -6.624357154570692e-05);
    near = OW_FMA_f64(near, u, 0.0011434937743850927);
    near *= (z - 5.783185962946784) * (z - 30.471262343662087);
    m = -3.91396845030398e-08;
    m = OW_FMA_f64(m, w, 2.97885316105248e-07);
    m = OW_FMA_f64(m, w, -2.0481122399953395e-06);
    m = OW_FMA_f64(m, w, 2.5267524548268564e-05);
    m = OW_FMA_f64(m, w, -0.0009765621131152558);
    m = OW_FMA_f64(m, w, 0.9999999999949727);
    p = -7.597512712944425e-09;
    p = OW_FMA_f64(p, w, 4.9361340231864036e-08);
    p = OW_FMA_f64(p, w, -1.667577323166428e-07);
    p = OW_FMA_f64(p, w, 4.529522384082211e-07);
    p = OW_FMA_f64(p, w, -1.384080214188189e-06);
    p = OW_FMA_f64(p, w, 6.245634006299983e-06);
    p = OW_FMA_f64(p, w, -5.116427556186842e-05);
    p = OW_FMA_f64(p, w, 0.0010172525857287179);
    p = OW_FMA_f64(p, w, -0.1249999999997146);
    m *= __builtin_sqrt(0.6366197723675814 * i) * ow_wave_f32(a > 1e15 ? 8.0 : a, 0.25, p * i);
    return (float)(a < 8.0 ? near : m);
}
/*@ end */
/*@ j1 f64 : wave */
/* The absolute error is within 3e-16. */
OW_INLINE double ow_j1_f64(double x)
{
    const double a = __builtin_fabs(x), z = x * x, u = z - 60.0;
    const double i = 1.0 / a, w = 64.0 * i * i;
    double small, near, m, p;
    small = 4.951227250707575e-16;
    small = OW_FMA_f64(small, z, -1.499718180125564e-13);
    small = OW_FMA_f64(small, z, 3.363844667457318e-11);
    small = OW_FMA_f64(small, z, -5.651401223470411e-09);
    small = OW_FMA_f64(small, z, 6.781683996316814e-07);
    small = OW_FMA_f64(small, z, -5.4253472219583434e-05);
    small = OW_FMA_f64(small, z, 0.002604166666665549);
    small = OW_FMA_f64(small, z, -0.062499999999999827);
    small = x * OW_FMA_f64(small, z, 0.5);
    near = -1.0201116161243066e-35;
    near = OW_FMA_f64(near, u, 6.150458192580765e-33);
    near = OW_FMA_f64(near, u, -5.29187350624368e-30);
    near = OW_FMA_f64(near, u, 3.56974933073047e-27);
    near = OW_FMA_f64(near, u, -2.062565279792037e-24);
    near = OW_FMA_f64(near, u, 9.94542690401926e-22);
    near = OW_FMA_f64(near, u, -3.930174096594849e-19);
    near = OW_FMA_f64(near, u, 1.2430486750655285e-16);
    near = OW_FMA_f64(near, u, -3.052667691714406e-14);
    near = OW_FMA_f64(near, u, 5.589873605114308e-12);
    near = OW_FMA_f64(near, u, -7.209187097235668e-10);
    near = OW_FMA_f64(near, u, 6.002722386493189e-08);
    near = OW_FMA_f64(near, u, -2.77370409756383e-06);
    near = OW_FMA_f64(near, u, 5.041187647911762e-05);
    near *= ((a - 3.8317059702075125) + 1.5269184090087894e-16) * (a + 3.8317059702075125);
    near *= ((a - 7.015586669815619) + 9.414165653410025e-17) * (a + 7.015586669815619);
    m = -4.098081370925931e-10;
    m = OW_FMA_f64(m, w, 2.8080448851295074e-09);
    m = OW_FMA_f64(m, w, -9.409609415180782e-09);
    m = OW_FMA_f64(m, w, 2.2232534092732964e-08);
    m = OW_FMA_f64(m, w, -4.801709535075232e-08);
    m = OW_FMA_f64(m, w, 1.2261889320468308e-07);
    m = OW_FMA_f64(m, w, -4.611435331790662e-07);
    m = OW_FMA_f64(m, w, 3.071945579117e-06);
    m = OW_FMA_f64(m, w, -4.720687736788465e-05);
    m = OW_FMA_f64(m, w, 0.0029296874999699602);
    m = OW_FMA_f64(m, w, 1.0000000000000002);
    p = 2.5010860744369854e-09;
    p = OW_FMA_f64(p, w, -1.749495535336711e-08);
    p = OW_FMA_f64(p, w, 5.909233293675622e-08);
    p = OW_FMA_f64(p, w, -1.3670223308404504e-07);
    p = OW_FMA_f64(p, w, 2.7386640304990965e-07);
    p = OW_FMA_f64(p, w, -6.032188706996422e-07);
    p = OW_FMA_f64(p, w, 1.8230517405020201e-06);
    p = OW_FMA_f64(p, w, -9.038228472210347e-06);
    p = OW_FMA_f64(p, w, 9.055135295429117e-05);
    p = OW_FMA_f64(p, w, -0.0025634765616688055);
    p = OW_FMA_f64(p, w, 0.37499999999999123);
    m *= __builtin_sqrt(0.6366197723675814 * i) * ow_wave_f64(a > 1e15 ? 8.0 : a, -0.25, p * i);
    double y = a < 8.0 ? a * near : m;
    y = x < 0 ? -y : y;
    return a < 2.0 ? small : y;
}
/*@ end */
/*@ j1 f32 : wave */
OW_INLINE float ow_j1_f32(float x)
{
    const double a = __builtin_fabsf(x), z = a * a, u = z - 32.0;
    const double i = 1.0 / a, w = 64.0 * i * i;
    double near, m, p;
    near = -3.224738357706429e-24;
    near = OW_FMA_f64(near, u, 1.6746105389221868e-21);
    near = OW_FMA_f64(near, u, -6.848289394355946e-19);
    near = OW_FMA_f64(near, u, 2.2746725778490183e-16);
    near = OW_FMA_f64(near, u, -5.927941394136169e-14);
    near = OW_FMA_f64(near, u, 1.1675049721483114e-11);
    near = OW_FMA_f64(near, u, -1.650391666178268e-09);
    near = OW_FMA_f64(near, u, 1.5488297626751586e-07);
    near = OW_FMA_f64(near, u, -8.42975857974132e-06);
    near = OW_FMA_f64(near, u, 0.00019498936986173882);
    near *= a * (z - 14.681970642123893) * (z - 49.2184563216946);
    m = 5.029993476267867e-08;
    m = OW_FMA_f64(m, w, -3.992543973991278e-07);
    m = OW_FMA_f64(m, w, 3.0440883013019647e-06);
    m = OW_FMA_f64(m, w, -4.720090854201388e-05);
    m = OW_FMA_f64(m, w, 0.0029296870223060947);
    m = OW_FMA_f64(m, w, 1.0000000000062195);
    p = 8.978118071073579e-09;
    p = OW_FMA_f64(p, w, -5.871845719290179e-08);
    p = OW_FMA_f64(p, w, 2.009864964956097e-07);
    p = OW_FMA_f64(p, w, -5.608469942035021e-07);
    p = OW_FMA_f64(p, w, 1.8077794037093137e-06);
    p = OW_FMA_f64(p, w, -9.0349466216232e-06);
    p = OW_FMA_f64(p, w, 9.055096775838387e-05);
    p = OW_FMA_f64(p, w, -0.002563476541046843);
    p = OW_FMA_f64(p, w, 0.37499999999966765);
    m *= __builtin_sqrt(0.6366197723675814 * i) * ow_wave_f32(a > 1e15 ? 8.0 : a, -0.25, p * i);
    const float y = (float)(a < 8.0 ? near : m);
    return __builtin_signbit(x) ? -y : y;
}
/*@ end */

/* Below 10, a polynomial of x * x, whose terms are positive, corrected for what x * x has lost by
 * its rounding. Beyond, exp(a) / sqrt(a) p(1 / a) with a = |x|: exp(a - 8) and exp(8) p do not
 * overflow before the result does. Within 3.5 ulp. */
/*@ i0 f64 : exp */
OW_INLINE double ow_i0_f64(double x)
{
    double a = __builtin_fabs(x), near, far;
    a = a > 720.0 ? 720.0 : a;
    const double z = a * a, i = 1.0 / (a < 1.0 ? 1.0 : a), u = i - 0.0625;
    const double high = (a + 12884901888.0) - 12884901888.0;
    const double rest = (high * high - z) + (a - high) * (a + high);
    near = 1.0198696420697797e-36;
    near = OW_FMA_f64(near, z, 3.5994772131503735e-34);
    near = OW_FMA_f64(near, z, 5.298604653269316e-31);
    near = OW_FMA_f64(near, z, 3.7871943133442144e-28);
    near = OW_FMA_f64(near, z, 2.603243241392704e-25);
    near = OW_FMA_f64(near, z, 1.4959525848775328e-22);
    near = OW_FMA_f64(near, z, 7.242453959757136e-20);
    near = OW_FMA_f64(near, z, 2.896896065685177e-17);
    near = OW_FMA_f64(near, z, 9.385968988382739e-15);
    near = OW_FMA_f64(near, z, 2.4028075104713893e-12);
    near = OW_FMA_f64(near, z, 4.709502802400206e-10);
    near = OW_FMA_f64(near, z, 6.781684027288656e-08);
    near = OW_FMA_f64(near, z, 6.781684027806201e-06);
    near = OW_FMA_f64(near, z, 0.00043402777777768224);
    near = OW_FMA_f64(near, z, 0.01562500000000016);
    near = OW_FMA_f64(near, z, 0.2499999999999999);
    near = OW_FMA_f64(near, z, 1.0);
    near = OW_FMA_f64(near * rest, 0.46 * i, near);
    far = 5.807461117960646e+16;
    far = OW_FMA_f64(far, u, 8092769083506451.0);
    far = OW_FMA_f64(far, u, -836356692764487.1);
    far = OW_FMA_f64(far, u, -191641836286912.62);
    far = OW_FMA_f64(far, u, -2494059611635.0347);
    far = OW_FMA_f64(far, u, 1407330428905.757);
    far = OW_FMA_f64(far, u, 80380059472.29929);
    far = OW_FMA_f64(far, u, -4465465462.591882);
    far = OW_FMA_f64(far, u, -677072128.2110974);
    far = OW_FMA_f64(far, u, -22003896.45695863);
    far = OW_FMA_f64(far, u, 1528489.2265448796);
    far = OW_FMA_f64(far, u, 275738.69293240283);
    far = OW_FMA_f64(far, u, 31476.438666864142);
    far = OW_FMA_f64(far, u, 4437.260143542944);
    far = OW_FMA_f64(far, u, 929.4739876910772);
    far = OW_FMA_f64(far, u, 289.8845391106158);
    far = OW_FMA_f64(far, u, 136.05648640763573);
    far = OW_FMA_f64(far, u, 103.9499251010897);
    far = OW_FMA_f64(far, u, 160.28262842533204);
    far = OW_FMA_f64(far, u, 1198.8712780306598);
    far *= __builtin_sqrt(i) * ow_exp_f64(a - 8.0);
    return a < 10.0 ? near : far;
}
/*@ end */
/*@ i0 f32 : exp2_wide */
OW_INLINE float ow_i0_f32(float x)
{
    double a = __builtin_fabsf(x), near, far;
    a = a > 96.0 ? 96.0 : a;
    const double z = a * a, i = 1.0 / a;
    near = 3.582230365935021e-22;
    near = OW_FMA_f64(near, z, 2.0574881067225962e-20);
    near = OW_FMA_f64(near, z, 3.573940382668111e-17);
    near = OW_FMA_f64(near, z, 8.85393851286356e-15);
    near = OW_FMA_f64(near, z, 2.429218977201972e-12);
    near = OW_FMA_f64(near, z, 4.701144941526559e-10);
    near = OW_FMA_f64(near, z, 6.783338843329047e-08);
    near = OW_FMA_f64(near, z, 6.78148832970028e-06);
    near = OW_FMA_f64(near, z, 0.0004340290486396216);
    near = OW_FMA_f64(near, z, 0.015624996096652624);
    near = OW_FMA_f64(near, z, 0.2500000042087474);
    near = OW_FMA_f64(near, z, 0.9999999993479017);
    far = 0.28633730122901696;
    far = OW_FMA_f64(far, i, 0.011500030453337095);
    far = OW_FMA_f64(far, i, 0.031657026690421045);
    far = OW_FMA_f64(far, i, 0.02796463134516024);
    far = OW_FMA_f64(far, i, 0.049869166627162495);
    far = OW_FMA_f64(far, i, 0.3989422726259416);
    far *= __builtin_sqrt(i) * ow_exp2_wide(1.4426950408889634 * a);
    return (float)(a < 10.0 ? near : far);
}
/*@ end */

/*@ i1 f64 : exp */
OW_INLINE double ow_i1_f64(double x)
{
    double a = __builtin_fabs(x), near, far;
    a = a > 720.0 ? 720.0 : a;
    const double z = a * a, i = 1.0 / (a < 1.0 ? 1.0 : a), u = i - 0.0625;
    const double high = (a + 12884901888.0) - 12884901888.0;
    const double rest = (high * high - z) + (a - high) * (a + high);
    near = 2.9342156216299076e-38;
    near = OW_FMA_f64(near, z, 1.172507869916087e-35);
    near = OW_FMA_f64(near, z, 1.7505599356657863e-32);
    near = OW_FMA_f64(near, z, 1.3556229192697315e-29);
    near = OW_FMA_f64(near, z, 1.0008524222194334e-26);
    near = OW_FMA_f64(near, z, 6.233492627206546e-24);
    near = OW_FMA_f64(near, z, 3.2920013942990573e-21);
    near = OW_FMA_f64(near, z, 1.4484491211699748e-18);
    near = OW_FMA_f64(near, z, 5.214426844039829e-16);
    near = OW_FMA_f64(near, z, 1.5017547031764187e-13);
    near = OW_FMA_f64(near, z, 3.36393057156059e-11);
    near = OW_FMA_f64(near, z, 5.651403356261302e-09);
    near = OW_FMA_f64(near, z, 6.781684027791745e-07);
    near = OW_FMA_f64(near, z, 5.4253472222217015e-05);
    near = OW_FMA_f64(near, z, 0.0026041666666666765);
    near = OW_FMA_f64(near, z, 0.06249999999999999);
    near = OW_FMA_f64(near, z, 0.5);
    near = OW_FMA_f64(near * rest, 0.42 * i, near);
    far = -5.87100832260345e+16;
    far = OW_FMA_f64(far, u, -7886085206607223.0);
    far = OW_FMA_f64(far, u, 915812729634710.1);
    far = OW_FMA_f64(far, u, 197033430467822.25);
    far = OW_FMA_f64(far, u, 2002772263091.5237);
    far = OW_FMA_f64(far, u, -1482230827912.0847);
    far = OW_FMA_f64(far, u, -80876798104.89088);
    far = OW_FMA_f64(far, u, 4913614669.040215);
    far = OW_FMA_f64(far, u, 708764405.2973619);
    far = OW_FMA_f64(far, u, 21983243.09656135);
    far = OW_FMA_f64(far, u, -1706389.366826879);
    far = OW_FMA_f64(far, u, -299121.63654777134);
    far = OW_FMA_f64(far, u, -34520.309290075194);
    far = OW_FMA_f64(far, u, -5001.929222274688);
    far = OW_FMA_f64(far, u, -1088.9680648903163);
    far = OW_FMA_f64(far, u, -358.4681445389007);
    far = OW_FMA_f64(far, u, -183.62072040391166);
    far = OW_FMA_f64(far, u, -167.30434591994265);
    far = OW_FMA_f64(far, u, -465.00928007128846);
    far = OW_FMA_f64(far, u, 1160.7804465749152);
    far *= __builtin_sqrt(i) * ow_exp_f64(a - 8.0);
    far = x < 0 ? -far : far;
    return a < 10.0 ? x * near : far;
}
/*@ end */
/*@ i1 f32 : exp2_wide */
OW_INLINE float ow_i1_f32(float x)
{
    double a = __builtin_fabsf(x), near, far;
    a = a > 96.0 ? 96.0 : a;
    const double z = a * a, i = 1.0 / a;
    near = 1.435321639067278e-23;
    near = OW_FMA_f64(near, z, 1.2077219929132113e-21);
    near = OW_FMA_f64(near, z, 1.731857603232366e-18);
    near = OW_FMA_f64(near, z, 4.980723755643183e-16);
    near = OW_FMA_f64(near, z, 1.5140362582773212e-13);
    near = OW_FMA_f64(near, z, 3.3597726511939985e-11);
    near = OW_FMA_f64(near, z, 5.652295747741609e-09);
    near = OW_FMA_f64(near, z, 6.781567705414301e-07);
    near = OW_FMA_f64(near, z, 5.425355730403998e-05);
    near = OW_FMA_f64(near, z, 0.0026041663637812774);
    near = OW_FMA_f64(near, z, 0.06250000039294572);
    near = OW_FMA_f64(near, z, 0.4999999999237952);
    far = -0.33642608463951923;
    far = OW_FMA_f64(far, i, -0.01934404745052117);
    far = OW_FMA_f64(far, i, -0.04370436256623899);
    far = OW_FMA_f64(far, i, -0.046652334263101995);
    far = OW_FMA_f64(far, i, -0.14960494253218343);
    far = OW_FMA_f64(far, i, 0.3989422893450354);
    far *= __builtin_sqrt(i) * ow_exp2_wide(1.4426950408889634 * a);
    far = x < 0 ? -far : far;
    return (float)(a < 10.0 ? x * near : far);
}
/*@ end */

#endif
