/* Numbers of numpy's Mersenne twister (MT19937), many side by side: the same as numpy draws one by
 * one.
 * M. Matsumoto and T. Nishimura, Mersenne Twister: a 623-dimensionally equidistributed uniform
 * pseudo-random number generator, ACM Transactions on Modeling and Computer Simulation 8(1),
 * 1998. */
#define OW_TWISTED(high, low) ((((high) & 0x80000000U) | ((low) & 0x7fffffffU)) >> 1)
#define OW_TWIST(high, low) (OW_TWISTED(high, low) ^ ((0U - ((low) & 1U)) & 0x9908b0dfU))

/* The next 624 words. Each depends on one that is 227 or more words before it, or on old ones. */
static void ow_twister_next(uint32_t *key)
{
    for (int i = 0; i < OW_TWISTER_WORDS - 397; i++)
        key[i] = key[i + 397] ^ OW_TWIST(key[i], key[i + 1]);
    for (int i = OW_TWISTER_WORDS - 397; i < OW_TWISTER_WORDS - 1; i++)
        key[i] = key[i - (OW_TWISTER_WORDS - 397)] ^ OW_TWIST(key[i], key[i + 1]);
    key[OW_TWISTER_WORDS - 1] = key[396] ^ OW_TWIST(key[OW_TWISTER_WORDS - 1], key[0]);
}

OW_WITHIN uint32_t ow_tempered(uint32_t y)
{
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    return y ^ (y >> 18);
}

/* The double between 0 and 1 of two words: 27 bits of the first, 26 of the second. The sum is
 * exact. */
OW_WITHIN double ow_twister_double(uint32_t first, uint32_t second)
{
    return ((double)(int32_t)(ow_tempered(first) >> 5) * 67108864.0 +
            (double)(int32_t)(ow_tempered(second) >> 6)) *
           (1.0 / 9007199254740992.0);
}

#define OW_TWISTER(T, S)                                                                           \
    static void ow_twister_##S(ow_twister *t, T *restrict to, int64_t n, double low, double range) \
    {                                                                                              \
        while (n) {                                                                                \
            if (t->pos >= OW_TWISTER_WORDS) {                                                      \
                ow_twister_next(t->key);                                                           \
                t->pos = 0;                                                                        \
            }                                                                                      \
            const int64_t left = (OW_TWISTER_WORDS - t->pos) / 2;                                  \
            if (left == 0) { /* the second word is one of the next key */                          \
                const uint32_t first = t->key[OW_TWISTER_WORDS - 1];                               \
                ow_twister_next(t->key);                                                           \
                t->pos = 1;                                                                        \
                *to++ = (T)(low + range * ow_twister_double(first, t->key[0]));                    \
                n--;                                                                               \
                continue;                                                                          \
            }                                                                                      \
            const int64_t m = n < left ? n : left;                                                 \
            const uint32_t *restrict key = t->key + t->pos;                                        \
            for (int64_t i = 0; i < m; i++)                                                        \
                to[i] = (T)(low + range * ow_twister_double(key[2 * i], key[2 * i + 1]));          \
            t->pos += (int32_t)(2 * m);                                                            \
            to += m;                                                                               \
            n -= m;                                                                                \
        }                                                                                          \
    }
OW_TWISTER(float, f32)
OW_TWISTER(double, f64)
#undef OW_TWISTER
#undef OW_TWISTED
#undef OW_TWIST

/* Points between -1 and 1 from `tries` pairs of numbers; those within the unit circle are kept, as
 * (second, first), and their number is returned. */
static int64_t ow_polar_points(ow_twister *t, double *restrict to, int64_t tries)
{
    double u[2 * OW_POLAR_TRIES];
    int64_t found = 0;
    while (tries) {
        const int64_t m = tries < OW_POLAR_TRIES ? tries : OW_POLAR_TRIES;
        ow_twister_f64(t, u, 2 * m, -1.0, 2.0);
        for (int64_t i = 0; i < m; i++) {
            const double r2 = u[2 * i] * u[2 * i] + u[2 * i + 1] * u[2 * i + 1];
            to[2 * found] = u[2 * i + 1];
            to[2 * found + 1] = u[2 * i];
            found += (r2 < 1.0) & (r2 != 0.0);
        }
        tries -= m;
    }
    return found;
}

/* Turn n points into two normal numbers each. log is called by itself: numbers are numpy's, bit for
 * bit. */
static void ow_polar_normals(double *restrict z, int64_t n)
{
    double r2[OW_POLAR_TRIES], logs[OW_POLAR_TRIES];
    while (n) {
        const int64_t m = n < OW_POLAR_TRIES ? n : OW_POLAR_TRIES;
        for (int64_t i = 0; i < m; i++)
            r2[i] = z[2 * i + 1] * z[2 * i + 1] + z[2 * i] * z[2 * i];
        for (int64_t i = 0; i < m; i++)
            logs[i] = log(r2[i]);
        for (int64_t i = 0; i < m; i++) {
            const double f = sqrt(-2.0 * logs[i] / r2[i]);
            z[2 * i] *= f;
            z[2 * i + 1] *= f;
        }
        z += 2 * m;
        n -= m;
    }
}
