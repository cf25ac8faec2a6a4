/* Multiplications and additions in registers, for one type of elements: OW_T, of which OW_S is
 * the short name; OW_RATE names the function. Whether the two round together is up to who
 * includes it. */

/* More chains than the processor needs to wait for none, and few enough for its registers. */
#define OW_CHAINS 12

typedef OW_T OW_N(OW_GLUE(OW_RATE, vec)) __attribute__((vector_size(OW_VECTOR)));

/* Do `n` rounds of a multiplication and an addition in every lane of every chain; returns how many
 * operations a round has. `values`: a factor and a term; what came out is added to the second. */
static int64_t OW_N(OW_RATE)(double *values, int64_t n)
{
    typedef OW_N(OW_GLUE(OW_RATE, vec)) vec;
    const int lanes = (int)(OW_VECTOR / sizeof(OW_T));
    const vec factor = (vec){0} + (OW_T)values[0], term = (vec){0} + (OW_T)values[1];
    vec chain[OW_CHAINS];
    for (int i = 0; i < OW_CHAINS; i++)
        chain[i] = term + (OW_T)i;
    for (int64_t k = 0; k < n; k++)
#pragma GCC unroll 12
        for (int i = 0; i < OW_CHAINS; i++)
            chain[i] = chain[i] * factor + term;
    for (int i = 1; i < OW_CHAINS; i++)
        chain[0] += chain[i];
    values[1] += (double)chain[0][0];
    return 2 * lanes * OW_CHAINS;
}

#undef OW_CHAINS
