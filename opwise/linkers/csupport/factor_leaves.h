/* The last steps of factorizations that halve matrices again and again, for one type of elements:
 * OW_T, of which OW_S is the short name. Included once for each, after gemm_tiles.h, which defines
 * vectors. */

/* The first of the largest of n > 0 magnitudes; NaN is larger than none. */
OW_WITHIN int64_t OW_N(ow_pivot_row)(int64_t n, const OW_T *x)
{
    typedef OW_N(ow_mask_vec) bits;
    OW_N(ow_line_vec) most = {0};
    OW_T largest = x[0] < 0 ? -x[0] : x[0];
    int64_t i = 0;
    for (; i + OW_LANES <= n; i += OW_LANES) {
        const OW_N(ow_line_vec) v = *(const OW_N(ow_line_vec) *)(x + i);
        /* the bits of v or of -v, whichever is positive, and of the larger of it and what was
         * largest */
        const bits below = (bits)(v < 0), size = ((bits)v & ~below) | ((bits)-v & below);
        const bits more = (bits)((OW_N(ow_line_vec))size > most);
        most = (OW_N(ow_line_vec))((size & more) | ((bits)most & ~more));
    }
    for (int l = 0; l < OW_LANES; l++)
        largest = most[l] > largest ? most[l] : largest;
    for (; i < n; i++) {
        const OW_T v = x[i] < 0 ? -x[i] : x[i];
        largest = v > largest ? v : largest;
    }
    for (i = 0; i < n; i++)
        if (x[i] == largest || -x[i] == largest)
            return i;
    return 0;
}

/* LU of a few columns, `ld` elements apart, as LAPACK's getrf leaves it: pivots[j], counted from 1,
 * is the row that row j was exchanged with. Returns the first pivot that is 0, counted from 1, or
 * 0. */
static int OW_N(ow_lu_leaf)(int64_t m, int64_t n, void *matrix, int64_t ld, int *pivots)
{
    OW_T *const a = matrix;
    int first = 0;
    for (int64_t j = 0; j < n && j < m; j++) {
        OW_T *column = a + j * ld;
        const int64_t p = j + OW_N(ow_pivot_row)(m - j, column + j);
        pivots[j] = (int)p + 1;
        if (column[p] == 0) {
            first = first ? first : (int)j + 1;
            continue;
        }
        for (int64_t c = 0; c < n && p != j; c++) {
            const OW_T value = a[c * ld + j];
            a[c * ld + j] = a[c * ld + p];
            a[c * ld + p] = value;
        }
        const OW_T pivot = column[j], inverse = 1 / pivot;
        if (inverse - inverse == 0)
            for (int64_t i = j + 1; i < m; i++)
                column[i] *= inverse;
        else /* the inverse of a number that is nearly 0 is infinite */
            for (int64_t i = j + 1; i < m; i++)
                column[i] /= pivot;
        for (int64_t c = j + 1; c < n; c++) {
            OW_T *other = a + c * ld;
            const OW_T f = other[j];
            for (int64_t i = j + 1; i < m; i++)
                other[i] -= f * column[i];
        }
    }
    return first;
}

/* b = L^-1 b for a lower triangle of n <= OW_LEAF rows, element (r, p) of which is l[r * lr + p *
 * lc], and `many` vectors of n elements, ldb elements apart. `unit`: with ones on the diagonal.
 * Squares of vectors are turned, so that the elements of several vectors are side by side. */
static void OW_N(ow_lower_leaf)(int64_t n, int64_t many, const void *triangle, int64_t lr,
                                int64_t lc, int unit, void *vectors, int64_t ldb)
{
    enum { PIECES = OW_LEAF > OW_LANES ? OW_LEAF / OW_LANES : 1 };
    const OW_T *const l = triangle;
    OW_T below[OW_LEAF][OW_LEAF] = {{0}}, inverse[OW_LEAF];
    int64_t part[PIECES]; /* the elements of a vector that each piece has */
    for (int piece = 0; piece < PIECES; piece++) {
        const int64_t left = n - piece * OW_LANES;
        part[piece] = left < 0 ? 0 : left < OW_LANES ? left : OW_LANES;
    }
    for (int64_t p = 0; p < n; p++) {
        for (int64_t r = p + 1; r < n; r++)
            below[p][r] = l[r * lr + p * lc];
        inverse[p] = unit ? 1 : 1 / l[p * (lr + lc)];
    }
    for (int64_t i = 0; i < many; i += OW_LANES) {
        OW_T *const b = (OW_T *)vectors + i * ldb;
        const int some = many - i < OW_LANES ? (int)(many - i) : OW_LANES;
        OW_N(ow_vec) v[PIECES * OW_LANES];
        for (int piece = 0; piece < PIECES; piece++) {
            const int at = piece * OW_LANES;
            for (int c = 0; c < OW_LANES; c++)
                v[at + c] =
                    c < some ? OW_N(ow_get_part)(b + c * ldb + at, part[piece]) : (OW_N(ow_vec)){0};
            OW_N(ow_transpose)(v + at);
        }
        for (int p = 0; p < OW_LEAF; p++)
            if (p < n) {
                if (!unit)
                    v[p] *= inverse[p];
                for (int r = p + 1; r < OW_LEAF; r++)
                    v[r] -= below[p][r] * v[p];
            }
        for (int piece = 0; piece < PIECES; piece++) {
            const int at = piece * OW_LANES;
            OW_N(ow_transpose)(v + at);
            for (int c = 0; c < some; c++)
                OW_N(ow_put_part)(b + c * ldb + at, v[at + c], part[piece]);
        }
    }
}
