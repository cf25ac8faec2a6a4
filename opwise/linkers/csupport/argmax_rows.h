/* The position of the largest of elements, for elements OW_T with values OW_V, of which OW_S is the short
 * name; positions OW_P have as many bits as values.
 *
 * Of elements that lie side by side, block by block: where a block has a larger one, or NaN, it is read
 * again. Of rows of elements, for each place along them: positions count from the first of few rows, so
 * that vectors hold as many of them as values. */
#define OW_ARGMAX_BLOCK 1024

static void OW_N(ow_argmax_run)(const char *p, int64_t n, int64_t from, void *best, int64_t *where)
{
    const OW_T *x = (const OW_T *)p;
    OW_V b = *(OW_V *)best;
    if (*where < 0) {
        b = OW_VALUE(x[0]);
        *where = from;
    }
    for (int64_t first = 0; first < n && b == b; first += OW_ARGMAX_BLOCK) {
        const int64_t end = n - first < OW_ARGMAX_BLOCK ? n : first + OW_ARGMAX_BLOCK;
        OW_V most = b;
        int nans = 0;
#pragma omp simd reduction(max : most) reduction(| : nans)
        for (int64_t i = first; i < end; i++) {
            const OW_V v = OW_VALUE(x[i]);
            most = v > most ? v : most;
            nans |= v != v;
        }
        if (!nans && !(most > b))
            continue;
        int64_t i = first;
        while (nans ? OW_VALUE(x[i]) == OW_VALUE(x[i]) : OW_VALUE(x[i]) != most)
            i++;
        b = OW_VALUE(x[i]);
        *where = from + i;
    }
    *(OW_V *)best = b;
}

static void OW_N(ow_argmax_rows)(const char *p, int64_t step, int64_t n, int64_t rows, int64_t from,
                                 void *best, int64_t *where)
{
    enum { MOST = sizeof(OW_V) == 1 ? 127 : 8191 };
    OW_V *b = best, part[OW_ARGMAX_ROW];
    OW_P at[OW_ARGMAX_ROW];
    for (int64_t first = 0; first < rows; first += MOST) {
        const int some = (int)(rows - first < MOST ? rows - first : MOST);
        const OW_T *x = (const OW_T *)(p + first * step);
        for (int64_t i = 0; i < n; i++) {
            part[i] = OW_VALUE(x[i]);
            at[i] = 0;
        }
        for (int r = 1; r < some; r++) {
            x = (const OW_T *)(p + (first + r) * step);
            for (int64_t i = 0; i < n; i++) {
                const OW_V v = OW_VALUE(x[i]), before = part[i];
                const int taken = (before == before) & ((v > before) | (v != v));
                part[i] = taken ? v : before;
                at[i] = taken ? (OW_P)r : at[i];
            }
        }
        for (int64_t i = 0; i < n; i++) {
            const OW_V v = part[i], before = b[i];
            const int taken = from + first == 0 || ((before == before) & ((v > before) | (v != v)));
            b[i] = taken ? v : before;
            where[i] = taken ? from + first + at[i] : where[i];
        }
    }
}
#undef OW_ARGMAX_BLOCK
