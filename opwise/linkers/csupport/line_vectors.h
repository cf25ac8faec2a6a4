/* Vectors along lines of elements that need not be aligned, for one type of elements: OW_T, of
 * which OW_S is the short name. Included once for each; OW_N(name) is a function of that type. */

typedef OW_T OW_N(ow_line_vec) __attribute__((vector_size(OW_VECTOR), aligned(sizeof(OW_T))));
typedef OW_MASK OW_N(ow_mask_vec) __attribute__((vector_size(OW_VECTOR)));

/* The sums of neighbouring elements of a, then those of b. */
OW_WITHIN OW_N(ow_line_vec) OW_N(ow_add_pairs)(OW_N(ow_line_vec) a, OW_N(ow_line_vec) b)
{
#ifdef __clang__
    OW_N(ow_line_vec) z;
    for (int i = 0; i < OW_LANES; i++)
        z[i] = i < OW_LANES / 2 ? a[2 * i] + a[2 * i + 1]
                                : b[2 * i - OW_LANES] + b[2 * i - OW_LANES + 1];
    return z;
#else
    OW_N(ow_mask_vec) even, odd;
    for (int i = 0; i < OW_LANES; i++) {
        even[i] = 2 * i;
        odd[i] = 2 * i + 1;
    }
    return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
#endif
}
