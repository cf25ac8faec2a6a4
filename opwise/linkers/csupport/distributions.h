/* Draws from numpy.random.Generator: one number after the other, by the functions that numpy itself
 * calls, which are looked up in the library of numpy.random._generator when they are needed. */
#ifndef OW_DISTRIBUTIONS_H
#define OW_DISTRIBUTIONS_H

#include <math.h>
#include <string.h>

#include "runtime.h"

/* numpy's bitgen_t (numpy/random/bitgen.h) */
typedef struct ow_bits {
    void *state;
    uint64_t (*next_uint64)(void *);
    uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    uint64_t (*next_raw)(void *);
} ow_bits;

/* numpy.random.PCG64, whose numbers have 128 bits, the lower 64 first */
typedef struct ow_pcg64_state {
    uint64_t state[2], increment[2];
} ow_pcg64_state;
typedef struct ow_pcg64 {
    ow_pcg64_state *numbers;
    int has_uint32;
    uint32_t uinteger;
} ow_pcg64;

#define OW_MOST_PARAMETERS 3

typedef struct ow_distribution {
    const char *name;
    const char *function; /* of numpy */
    int parameters;
    int is_integer;
    /* whether C draws with these parameters; numpy refuses others, or computes with NaN */
    int (*allows)(const double *p);
    double (*real)(ow_bits *b, void *function, const double *p);
    int64_t (*integer)(ow_bits *b, void *function, const double *p);
} ow_distribution;

typedef double (*ow_real_0)(ow_bits *);
typedef double (*ow_real_1)(ow_bits *, double);
typedef double (*ow_real_2)(ow_bits *, double, double);
typedef double (*ow_real_3)(ow_bits *, double, double, double);
typedef int64_t (*ow_integer_1)(ow_bits *, double);
typedef int64_t (*ow_integer_2)(ow_bits *, double, double);
typedef int64_t (*ow_of_balls)(ow_bits *, int64_t, int64_t, int64_t);
typedef int64_t (*ow_of_trials)(ow_bits *, double, int64_t, void *);

static inline int ow_not_negative(double p) { return p >= 0 && !signbit(p); }
static inline int ow_is_count(double p) { return p >= 0 && p <= 1e9 && p == floor(p); }

static int64_t ow_numpys_binomial(ow_bits *b, void *function, double n, double p)
{
    char kept[512] = {0}; /* numpy's binomial_t, which is known to be empty */
    return ((ow_of_trials)function)(b, p, (int64_t)n, kept);
}

#define OW_CALL_0 ((ow_real_0)f)(b)
#define OW_CALL_1(x) ((ow_real_1)f)(b, x)
#define OW_CALL_2(x, y) ((ow_real_2)f)(b, x, y)
#define OW_HALF_PI 1.57079632679489661923

/* X(name, function, parameters, which parameters are allowed, number)
 * The last ones are distributions of scipy, as far as a function of numpy's numbers gives them. */
#define OW_REAL_DISTRIBUTIONS(X)                                                                   \
    X(uniform, uniform, 2, isfinite(p[1] - p[0]) && ow_not_negative(p[1] - p[0]),                  \
      OW_CALL_2(p[0], p[1] - p[0]))                                                                \
    X(triangular, triangular, 3, p[0] <= p[1] && p[1] <= p[2] && p[0] < p[2],                      \
      ((ow_real_3)f)(b, p[0], p[1], p[2]))                                                         \
    X(beta, beta, 2, p[0] > 0 && p[1] > 0, OW_CALL_2(p[0], p[1]))                                  \
    X(normal, normal, 2, ow_not_negative(p[1]), OW_CALL_2(p[0], p[1]))                             \
    X(lognormal, lognormal, 2, ow_not_negative(p[1]), OW_CALL_2(p[0], p[1]))                       \
    X(gamma, gamma, 2, ow_not_negative(p[0]) && ow_not_negative(p[1]), OW_CALL_2(p[0], p[1]))      \
    X(exponential, exponential, 1, ow_not_negative(p[0]), OW_CALL_1(p[0]))                         \
    X(weibull, weibull, 1, ow_not_negative(p[0]), OW_CALL_1(p[0]))                                 \
    X(logistic, logistic, 2, ow_not_negative(p[1]), OW_CALL_2(p[0], p[1]))                         \
    X(laplace, laplace, 2, ow_not_negative(p[1]), OW_CALL_2(p[0], p[1]))                           \
    X(vonmises, vonmises, 2, ow_not_negative(p[1]), OW_CALL_2(p[0], p[1]))                         \
    X(wald, wald, 2, p[0] > 0 && p[1] > 0, OW_CALL_2(p[0], p[1]))                                  \
    X(halfnormal, standard_normal, 2, p[1] > 0, fabs(OW_CALL_0) * p[1] + p[0])                     \
    X(t, standard_t, 3, p[0] > 0 && p[2] > 0, OW_CALL_1(p[0]) * p[2] + p[1])                       \
    X(invgamma, gamma, 2, p[0] > 0 && p[1] > 0, 1 / OW_CALL_2(p[0], 1 / p[1]))                     \
    X(gengamma, standard_gamma, 3, p[0] > 0 && p[1] > 0 && p[2] > 0,                               \
      pow(OW_CALL_1(p[0] / p[1]), 1 / p[1]) * p[2])                                                \
    X(pareto, standard_uniform, 2, p[0] > 0 && p[1] > 0, pow(1 - OW_CALL_0, -1 / p[0]) * p[1])     \
    X(gumbel, standard_uniform, 2, p[1] > 0, -log(-log(OW_CALL_0)) * p[1] + p[0])                  \
    X(cauchy, standard_uniform, 2, p[1] > 0,                                                       \
      tan(2 * OW_HALF_PI * (OW_CALL_0 - 0.5)) * p[1] + p[0])                                       \
    X(halfcauchy, standard_uniform, 2, p[1] > 0, tan(OW_HALF_PI * OW_CALL_0) * p[1] + p[0])        \
    X(truncexpon, standard_uniform, 3, p[0] > 0 && p[2] > 0,                                       \
      -log1p(OW_CALL_0 * expm1(-p[0])) * p[2] + p[1])

#define OW_INTEGER_DISTRIBUTIONS(X)                                                                \
    X(poisson, poisson, 1, ow_not_negative(p[0]) && p[0] < 1e18, ((ow_integer_1)f)(b, p[0]))       \
    X(geometric, geometric, 1, p[0] > 0 && p[0] <= 1, ((ow_integer_1)f)(b, p[0]))                  \
    X(binomial, binomial, 2, ow_is_count(p[0]) && ow_not_negative(p[1]) && p[1] <= 1,              \
      ow_numpys_binomial(b, f, p[0], p[1]))                                                        \
    X(bernoulli, binomial, 1, ow_not_negative(p[0]) && p[0] <= 1,                                  \
      ow_numpys_binomial(b, f, 1, p[0]))                                                           \
    X(negative_binomial, negative_binomial, 2,                                                     \
      p[0] > 0 && p[1] > 0 && p[1] <= 1 && p[0] / p[1] < 1e15, ((ow_integer_2)f)(b, p[0], p[1]))   \
    X(hypergeometric, hypergeometric, 3,                                                           \
      ow_is_count(p[0]) && ow_is_count(p[1]) && ow_is_count(p[2]) && p[0] + p[1] < 1e9 &&          \
          p[2] <= p[0] + p[1],                                                                     \
      ((ow_of_balls)f)(b, (int64_t)p[0], (int64_t)p[1], (int64_t)p[2]))

#define OW_ALLOWS(name, function, parameters, allowed, number)                                     \
    static int ow_allows_##name(const double *p)                                                   \
    {                                                                                              \
        (void)p;                                                                                   \
        return allowed;                                                                            \
    }
#define OW_REAL(name, function, parameters, allowed, number)                                       \
    OW_ALLOWS(name, function, parameters, allowed, number)                                         \
    static double ow_number_##name(ow_bits *b, void *f, const double *p) { return number; }
#define OW_INTEGER(name, function, parameters, allowed, number)                                    \
    OW_ALLOWS(name, function, parameters, allowed, number)                                         \
    static int64_t ow_number_##name(ow_bits *b, void *f, const double *p) { return number; }
OW_REAL_DISTRIBUTIONS(OW_REAL)
OW_INTEGER_DISTRIBUTIONS(OW_INTEGER)

#define OW_REAL_ROW(name, function, parameters, allowed, number)                                   \
    {#name, "random_" #function, parameters, 0, ow_allows_##name, ow_number_##name, 0},
#define OW_INTEGER_ROW(name, function, parameters, allowed, number)                                \
    {#name, "random_" #function, parameters, 1, ow_allows_##name, 0, ow_number_##name},

static const ow_distribution ow_distributions[] = {OW_REAL_DISTRIBUTIONS(OW_REAL_ROW)
                                                       OW_INTEGER_DISTRIBUTIONS(OW_INTEGER_ROW)};
enum { OW_DISTRIBUTIONS = sizeof(ow_distributions) / sizeof(ow_distributions[0]) };

/* --- arrays of numbers ------------------------------------------------------------------------ */

/* The parameters of one number after the other: they broadcast to the shape of the numbers. */
typedef struct ow_given {
    const ow_slot *z;
    ow_slot **of;
    int n, varies;
    const char *at[OW_MOST_PARAMETERS];
    int64_t step[OW_MOST_PARAMETERS][OW_MAXDIM], index[OW_MAXDIM];
    double p[OW_MOST_PARAMETERS];
} ow_given;

static void ow_given_read(ow_given *w)
{
    for (int k = 0; k < w->n; k++)
        w->p[k] = ow_real_at(w->of[k], w->at[k]);
}

static void ow_given_begin(ow_given *w, const ow_slot *z, ow_slot **of, int n)
{
    memset(w, 0, sizeof(*w));
    w->z = z, w->of = of, w->n = n;
    for (int k = 0; k < n; k++) {
        const ow_slot *c = of[k];
        w->at[k] = c->data;
        for (int d = 0; d < c->ndim; d++) {
            const int64_t step = c->shape[d] == 1 ? 0 : c->strides[d];
            w->step[k][z->ndim - c->ndim + d] = step;
            w->varies |= step != 0;
        }
    }
    if (ow_size(z))
        ow_given_read(w);
}

static void ow_given_next(ow_given *w)
{
    if (!w->varies)
        return;
    for (int d = w->z->ndim - 1; d >= 0; d--) {
        const int is_end = ++w->index[d] == w->z->shape[d];
        for (int k = 0; k < w->n; k++)
            w->at[k] += w->step[k][d] * (is_end ? 1 - w->z->shape[d] : 1);
        if (!is_end) {
            ow_given_read(w);
            return;
        }
        w->index[d] = 0;
    }
}

/* Whether C draws with all these parameters. */
static int ow_allowed(const ow_distribution *of, const ow_slot *z, ow_slot **given)
{
    ow_given w;
    ow_given_begin(&w, z, given, of->parameters);
    for (int64_t n = w.varies ? ow_size(z) : ow_at_most(ow_size(z), 1); n > 0; n--) {
        if (!of->allows(w.p))
            return 0;
        ow_given_next(&w);
    }
    return 1;
}

/* Draw the numbers of z, which is contiguous. */
static void ow_draw_numbers(const ow_distribution *of, ow_bits *bits, void *function,
                            const ow_slot *z, ow_slot **given)
{
    ow_given w;
    ow_given_begin(&w, z, given, of->parameters);
    const int64_t n = ow_size(z);
    char *to = z->data;
    for (int64_t k = 0; k < n; k++, to += z->itemsize) {
        if (of->is_integer)
            ow_put_integer(z, to, of->integer(bits, function, w.p));
        else if (z->itemsize == sizeof(float))
            *(float *)to = (float)of->real(bits, function, w.p);
        else
            *(double *)to = of->real(bits, function, w.p);
        ow_given_next(&w);
        if ((k & 0xFFFF) == 0xFFFF && ow_should_stop())
            return;
    }
}

#endif
