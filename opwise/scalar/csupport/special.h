/* Special functions that the C text of scalar operations calls: parts in the form of scalar.h, whose parts
 * they need. Nothing here branches, so that a compiler uses vector instructions. Coefficients are fits of
 * Chebyshev interpolation at 40 digits (chebyfit of mpmath), those of gamma the solution of linear equations.
 */
#ifndef OW_SPECIAL_H
#define OW_SPECIAL_H

/* --- gamma --------------------------------------------------------------------------------------- */

/*@ gamma f64 */
OW_INLINE double ow_gamma_f64(double x) { return tgamma(x); }
/*@ end */
/*@ gamma f32 : log2_wide exp2_wide */
/* C. Lanczos, "A precision approximation of the gamma function" (1964), with n = 6 and g = 5.5, exact
 * for 1, 2, ..., 6: for a = |x|, gamma(a) = (a + 5)**(a - 1/2) exp(-a - 5) p(a) / q(a) within 2**-31,
 * q(a) = a (a + 1) ... (a + 4). gamma(-a) = -pi / (a sin(pi a) gamma(a)). */
OW_INLINE float ow_gamma_f32(float x)
{
    union { double value; ow_u64 bits; } whole, s;
    const double value = x, a = __builtin_fabs(value), b = a > 60.0 ? 60.0 : a;
    const double huge = a > 1e15 ? 1e15 : a;
    whole.value = huge + 6755399441055744.0;
    const double t = huge - (whole.value - 6755399441055744.0), z = t * t;
    double p = 2.506628276926731, q, r = -0.007028303855203096;
    p = OW_FMA_f64(p, b, 62.87459249868307);
    p = OW_FMA_f64(p, b, 630.8434866218366);
    p = OW_FMA_f64(p, b, 3164.7420255106495);
    p = OW_FMA_f64(p, b, 7938.241198558533);
    p = OW_FMA_f64(p, b, 7964.685900610323);
    q = OW_FMA_f64(b + 10.0, b, 35.0);
    q = OW_FMA_f64(q, b, 50.0);
    q = OW_FMA_f64(q, b, 24.0) * b;
    r = OW_FMA_f64(r, z, 0.08205035020147247);
    r = OW_FMA_f64(r, z, -0.599252186531583);
    r = OW_FMA_f64(r, z, 2.550163317938427);
    r = OW_FMA_f64(r, z, -5.167712764593);
    r = OW_FMA_f64(r, z, 3.141592653536132);
    s.value = r * t; /* sin(pi a), but for its sign */
    s.bits ^= whole.bits << 63;
    const double c = b + 5.0;
    double w = OW_FMA_f64(b - 0.5, ow_log2_wide(c), -1.4426950408889634 * c);
    const double above = value < 0 ? -3.1415926535897931 * q : p;
    const double below = value < 0 ? a * s.value * p : q;
    w = value < 0 ? -w : w;
    double y = above / below * ow_exp2_wide(w);
    const double pole = value < 0 ? t : 1.0; /* -infinity too */
    y = pole == 0 ? __builtin_nan("") : y;
    y = value != value ? value : y;
    return (float)(value == 0 ? 1.0 / value : y);
}
/*@ end */

/* --- erfinv -------------------------------------------------------------------------------------- */

/*@ erfinv f64 : log */
/* With w = -log(1 - x * x), x p(w) and, from w = 5 on, x q(sqrt(w) - 4) are within 2**-21. A step of Halley's
 * method triples the digits. Beyond 0.5, 1 - |x| is exact, and erfc has the digits that erf has lost. */
OW_INLINE double ow_erfinv_f64(double x)
{
    const double a = __builtin_fabs(x), w = -ow_log_f64((1.0 - a) * (1.0 + a));
    const double s = __builtin_sqrt(w) - 4.0;
    double p = 2.2605977741170975e-08, q = 6.526656082358825e-07;
    p = OW_FMA_f64(p, w, -1.098948458299626e-07);
    p = OW_FMA_f64(p, w, -5.48766581695036e-06);
    p = OW_FMA_f64(p, w, 7.257810853178963e-05);
    p = OW_FMA_f64(p, w, -0.0001761591830400175);
    p = OW_FMA_f64(p, w, -0.0022867828511138845);
    p = OW_FMA_f64(p, w, 0.011525431199929647);
    p = OW_FMA_f64(p, w, 0.2320181828567194);
    p = OW_FMA_f64(p, w, 0.8862267858628946);
    q = OW_FMA_f64(q, s, -1.9547864021183893e-06);
    q = OW_FMA_f64(q, s, -7.246355472842494e-06);
    q = OW_FMA_f64(q, s, 3.666257906033019e-05);
    q = OW_FMA_f64(q, s, -4.785949500762328e-05);
    q = OW_FMA_f64(q, s, 2.764033774628311e-05);
    q = OW_FMA_f64(q, s, -9.030705049397661e-05);
    q = OW_FMA_f64(q, s, 0.0003403892405402774);
    q = OW_FMA_f64(q, s, -0.000886612052323502);
    q = OW_FMA_f64(q, s, 0.0012549324175945493);
    q = OW_FMA_f64(q, s, 1.0094962519169646);
    q = OW_FMA_f64(q, s, 3.839783999122235);
    double y = (w < 5.0 ? p : q) * a;
    const double low = erf(y) - a, high = (1.0 - a) - erfc(y);
    const double t = (a < 0.5 ? low : high) * 0.88622692545275801 * exp(y * y);
    y = y - t / (1.0 + t * y);
    y = a < 1.0 ? y : a == 1.0 ? __builtin_inf() : __builtin_nan("");
    return __builtin_copysign(y, x);
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

#endif
