/* Vectors of one type of elements, and squares of them: OW_T, of which OW_S is the short name. */

typedef OW_T OW_N(ow_vec) __attribute__((vector_size(OW_VECTOR), aligned(sizeof(OW_T))));
typedef OW_GLUE(OW_INT, OW_BITS) OW_N(ow_mask) __attribute__((vector_size(OW_VECTOR)));

/* Transpose as many vectors as each has elements: rows i and i + half are merged over and over, as
 * in perfect shuffles. */
OW_WITHIN void OW_N(ow_transpose)(OW_N(ow_vec) *v)
{
    OW_N(ow_vec) t[OW_LANES];
#ifdef __clang__
    for (int i = 0; i < OW_LANES; i++)
        for (int l = 0; l < OW_LANES; l++)
            t[i][l] = v[l][i];
    for (int i = 0; i < OW_LANES; i++)
        v[i] = t[i];
#else
    OW_N(ow_mask) low, high;
    for (int i = 0; i < OW_LANES; i++) {
        low[i] = i % 2 * OW_LANES + i / 2;
        high[i] = low[i] + OW_LANES / 2;
    }
    for (int step = 1; step < OW_LANES; step *= 2) {
        for (int i = 0; i < OW_LANES / 2; i++) {
            t[2 * i] = __builtin_shuffle(v[i], v[i + OW_LANES / 2], low);
            t[2 * i + 1] = __builtin_shuffle(v[i], v[i + OW_LANES / 2], high);
        }
        for (int i = 0; i < OW_LANES; i++)
            v[i] = t[i];
    }
#endif
}
