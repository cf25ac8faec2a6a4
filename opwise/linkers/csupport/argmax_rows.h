/* The position of the largest of elements, for elements OW_T with values OW_V, of which OW_S is the
 * short name; positions OW_P have as many bits as values.
 * Of elements that lie side by side, block by block: the first block with the largest one is read
 * again for its place. Of rows of elements, for each place along them: positions count from the
 * first of few rows, so that vectors hold as many of them as values. */

/* The first place among n elements, one of which is a value; or one of which is NaN, if the value
 * is. */
static inline
    __attribute__((always_inline)) int OW_N(ow_argmax_find)(const OW_T *x, int n, OW_V value)
{
    OW_P at = (OW_P)(n - 1);
    if (value == value)
#pragma omp simd reduction(min : at)
        for (int i = 0; i < n; i++) {
            const OW_P here = OW_VALUE(x[i]) == value ? (OW_P)i : (OW_P)(n - 1);
            at = here < at ? here : at;
        }
    else
#pragma omp simd reduction(min : at)
        for (int i = 0; i < n; i++) {
            const OW_P here = OW_VALUE(x[i]) != OW_VALUE(x[i]) ? (OW_P)i : (OW_P)(n - 1);
            at = here < at ? here : at;
        }
    return at;
}

/* Of n elements in blocks of some: n is not less, and the last block ends where they do. Returns
 * the place of what is larger than best, or NaN; -1: nothing is. */
static inline
    __attribute__((always_inline)) int64_t OW_N(ow_argmax_blocks)(const OW_T *x, int64_t n,
                                                                  int some, OW_V *best)
{
    OW_V b = *best;
    int64_t block = -1;
    for (int64_t next = 0; next < n; next += some) {
        const int64_t first = n - next < some ? n - some : next;
        OW_V most = b;
        OW_P nans = 0;
#pragma omp simd reduction(max : most) reduction(| : nans)
        for (int i = 0; i < some; i++) {
            const OW_V v = OW_VALUE(x[first + i]);
            most = v > most ? v : most;
            nans |= v != v;
        }
        if (nans) {
            *best = (OW_V)(0.0 / 0.0);
            return first + OW_N(ow_argmax_find)(x + first, some, *best);
        }
        const int taken = most > b;
        b = taken ? most : b;
        block = taken ? first : block;
    }
    *best = b;
    return block < 0 ? -1 : block + OW_N(ow_argmax_find)(x + block, some, b);
}

static void OW_N(ow_argmax_run)(const char *p, int64_t n, int64_t from, void *best, int64_t *where)
{
    const OW_T *x = (const OW_T *)p;
    OW_V b = *(OW_V *)best;
    if (*where < 0) {
        b = OW_VALUE(x[0]);
        *where = from;
    }
    if (b != b)
        n = 0;
    int64_t at = -1;
    if (n >= 128)
        at = OW_N(ow_argmax_blocks)(x, n, 128, &b);
    else if (n >= 64)
        at = OW_N(ow_argmax_blocks)(x, n, 64, &b);
    else if (n >= 32)
        at = OW_N(ow_argmax_blocks)(x, n, 32, &b);
    else
        for (int64_t i = 0; i < n && b == b; i++) {
            const OW_V v = OW_VALUE(x[i]);
            if (v > b || v != v) {
                b = v;
                at = i;
            }
        }
    if (at >= 0)
        *where = from + at;
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

#undef OW_S
#undef OW_T
#undef OW_V
#undef OW_P
