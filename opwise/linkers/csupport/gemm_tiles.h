/* Products of matrices, for one type of elements: OW_T, of which OW_S is the short name. Included
 * once for each; OW_N(name) is a function of that type.
 * A tile of the result, a few rows by two vectors, stays in registers while it runs along the sum.
 * Operands have any strides; panels of y, as wide as a tile, are copied first. For large products
 * rows of x are, too. Sums are cut into blocks of OW_SUM_BLOCK terms, wherever operands are
 * read. */

#define OW_SUM_BLOCK 256       /* terms of a sum for which a panel of y stays in the first cache */
#define OW_PANELS 8            /* panels that are copied together, and stay in the second cache */
#define OW_X_ROWS 96           /* rows of x that are copied together, where they lie apart */
#define OW_READ_ONCE (1 << 22) /* bytes of a y of which no copy pays if it is read once */
#define OW_NEAR_ROWS 4096      /* bytes between its rows up to which that holds */
#define OW_FAR 2048            /* bytes between rows from which on they do */
#define OW_WIDE (2 * OW_LANES)
#define OW_SOME_PANELS 4
#define OW_AHEAD 4 /* rows that are fetched before they are copied */

/* All bits of the first n elements. */
OW_WITHIN OW_N(ow_mask) OW_N(ow_first)(int64_t n)
{
    OW_N(ow_mask) is_first;
    for (int l = 0; l < OW_LANES; l++)
        is_first[l] = l < n ? -1 : 0;
    return is_first;
}

/* The first n elements at `from`, 0 <= n <= OW_LANES, and zeros; nothing else is read. */
OW_WITHIN OW_N(ow_vec) OW_N(ow_get_part)(const OW_T *from, int64_t n)
{
#if defined(__AVX512F__) && OW_BITS == 32
    return (OW_N(ow_vec))_mm512_maskz_loadu_epi32((__mmask16)((1U << n) - 1), from);
#elif defined(__AVX512F__)
    return (OW_N(ow_vec))_mm512_maskz_loadu_epi64((__mmask8)((1U << n) - 1), from);
#elif defined(__AVX2__) && OW_BITS == 32
    return (OW_N(ow_vec))_mm256_maskload_epi32((const int *)from, (__m256i)OW_N(ow_first)(n));
#elif defined(__AVX2__)
    return (OW_N(ow_vec))_mm256_maskload_epi64((const long long *)from, (__m256i)OW_N(ow_first)(n));
#else
    OW_N(ow_vec) v = {0};
    for (int l = 0; l < n; l++)
        v[l] = from[l];
    return v;
#endif
}

/* Write the first n elements of v, 0 <= n <= OW_LANES, and nothing else. */
OW_WITHIN void OW_N(ow_put_part)(OW_T *to, OW_N(ow_vec) v, int64_t n)
{
#if defined(__AVX512F__) && OW_BITS == 32
    _mm512_mask_storeu_epi32(to, (__mmask16)((1U << n) - 1), (__m512i)v);
#elif defined(__AVX512F__)
    _mm512_mask_storeu_epi64(to, (__mmask8)((1U << n) - 1), (__m512i)v);
#elif defined(__AVX2__) && OW_BITS == 32
    _mm256_maskstore_epi32((int *)to, (__m256i)OW_N(ow_first)(n), (__m256i)v);
#elif defined(__AVX2__)
    _mm256_maskstore_epi64((long long *)to, (__m256i)OW_N(ow_first)(n), (__m256i)v);
#else
    for (int l = 0; l < n; l++)
        to[l] = v[l];
#endif
}

/* acc[r][j] = sum over p of x[r, p] y[p, j]; `rows` and `vectors` are constants where it is called,
 * and so is `part`, if it is 0. Else there are only so many columns of one vector. */
OW_WITHIN void OW_N(ow_tile)(const int rows, const int vectors, int64_t part, int64_t k,
                             const OW_T *x, int64_t xr, int64_t xc, const OW_T *y, int64_t yr,
                             OW_N(ow_vec) *restrict acc)
{
    OW_N(ow_vec) c[OW_HEIGHT][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            c[r][v] = (OW_N(ow_vec)){0};
    for (int64_t p = 0; p < k; p++) {
        const OW_T *at = y + p * yr, *of = x + p * xc;
        OW_N(ow_vec) a = part ? OW_N(ow_get_part)(at, part) : *(const OW_N(ow_vec) *)at;
        OW_N(ow_vec) b = vectors > 1 ? *(const OW_N(ow_vec) *)(at + OW_LANES) : a;
        for (int r = 0; r < rows; r++) {
            OW_T f = of[r * xr];
            c[r][0] += f * a;
            if (vectors > 1)
                c[r][1] += f * b;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            acc[r * vectors + v] = c[r][v];
}

/* z = b z + a acc for a tile of `rows` by `cols` */
OW_WITHIN void OW_N(ow_put_tile)(const int rows, const int vectors, int64_t cols, OW_T a, OW_T b,
                                 const OW_N(ow_vec) *acc, OW_T *z, int64_t zr)
{
    const int last = vectors - 1;
    const int64_t part = cols - last * OW_LANES;
    for (int r = 0; r < rows; r++, z += zr)
        for (int v = 0; v < vectors; v++) {
            OW_T *to = z + v * OW_LANES;
            const OW_N(ow_vec) value = a * acc[r * vectors + v];
            if (v < last || part == OW_LANES)
                *(OW_N(ow_vec) *)to = b == 0 ? value : b * *(OW_N(ow_vec) *)to + value;
            else
                OW_N(ow_put_part)(to, b == 0 ? value : b * OW_N(ow_get_part)(to, part) + value,
                                  part);
        }
}

#define OW_ONE_TILE(R)                                                                             \
    case R: {                                                                                      \
        OW_N(ow_vec) acc[R * 2];                                                                   \
        if (is_part) {                                                                             \
            OW_N(ow_tile)(R, 1, cols, k, x, xr, xc, y, yr, acc);                                   \
            OW_N(ow_put_tile)(R, 1, cols, a, b, acc, z, zr);                                       \
        } else if (vectors > 1) {                                                                  \
            OW_N(ow_tile)(R, 2, 0, k, x, xr, xc, y, yr, acc);                                      \
            OW_N(ow_put_tile)(R, 2, cols, a, b, acc, z, zr);                                       \
        } else {                                                                                   \
            OW_N(ow_tile)(R, 1, 0, k, x, xr, xc, y, yr, acc);                                      \
            OW_N(ow_put_tile)(R, 1, cols, a, b, acc, z, zr);                                       \
        }                                                                                          \
        break;                                                                                     \
    }

/* All rows of a panel of at most OW_WIDE columns, in tiles of nearly the same height: a tile of few
 * rows waits for its own additions. `xt`: elements from the first row of a tile to that of the
 * next, if all tiles had OW_HEIGHT rows and x is packed; 0: x lies as xr and xc say. `is_part`:
 * nothing may be read after the columns of y, which fill no vector. */
OW_WITHIN void OW_N(ow_tiles)(int vectors, const int is_part, int64_t m, int64_t cols, int64_t k,
                              OW_T a, const OW_T *x, const int64_t xr, const int64_t xc,
                              const int64_t xt, const OW_T *y, int64_t yr, OW_T b, OW_T *z,
                              int64_t zr)
{
    for (int64_t tiles = (m + OW_HEIGHT - 1) / OW_HEIGHT; tiles > 0; tiles--) {
        const int64_t rows = (m + tiles - 1) / tiles;
        if (xt) /* large results are not in the first cache */
            for (int64_t r = 0; r < rows; r++) {
                __builtin_prefetch(z + r * zr, 1);
                __builtin_prefetch(z + r * zr + cols - 1, 1);
            }
        switch (rows) {
            OW_ONE_TILE(1)
            OW_ONE_TILE(2)
            OW_ONE_TILE(3)
            OW_ONE_TILE(4)
#if OW_HEIGHT > 4
            OW_ONE_TILE(5)
            OW_ONE_TILE(6)
#endif
#if OW_HEIGHT > 6
            OW_ONE_TILE(7)
            OW_ONE_TILE(8)
            OW_ONE_TILE(9)
            OW_ONE_TILE(10)
            OW_ONE_TILE(11)
            OW_ONE_TILE(12)
#endif
        }
        m -= rows;
        x += xt ? xt : rows * xr;
        z += rows * zr;
    }
}

static void OW_N(ow_panel)(int vectors, int64_t m, int64_t cols, int64_t k, OW_T a, const OW_T *x,
                           int64_t xr, int64_t xc, const OW_T *y, int64_t yr, OW_T b, OW_T *z,
                           int64_t zr)
{
    OW_N(ow_tiles)(vectors, 0, m, cols, k, a, x, xr, xc, 0, y, yr, b, z, zr);
}

/* The same for fewer columns than fill a vector, of a y after which nothing may be read. */
static void OW_N(ow_part_panel)(int64_t m, int64_t cols, int64_t k, OW_T a, const OW_T *x,
                                int64_t xr, int64_t xc, const OW_T *y, int64_t yr, OW_T b, OW_T *z,
                                int64_t zr)
{
    OW_N(ow_tiles)(1, 1, m, cols, k, a, x, xr, xc, 0, y, yr, b, z, zr);
}

/* As ow_pack where columns are contiguous: squares of as many rows and columns as a vector has
 * elements are transposed. */
OW_WITHIN void OW_N(ow_pack_columns)(OW_T *to, const OW_T *y, int64_t yc, int64_t k, int64_t cols)
{
    const int64_t whole = k - k % OW_LANES;
    for (int64_t j = 0; j < cols; j += OW_LANES) {
        const int64_t of = cols - j < OW_LANES ? cols - j : OW_LANES;
        OW_T *panel = to + j / OW_WIDE * OW_WIDE * k + j % OW_WIDE;
        const OW_T *from = y + j * yc;
        for (int64_t p = 0; p < whole; p += OW_LANES) {
            OW_N(ow_vec) v[OW_LANES];
            for (int c = 0; c < OW_LANES; c++)
                v[c] = c < of ? *(const OW_N(ow_vec) *)(from + c * yc + p) : (OW_N(ow_vec)){0};
            OW_N(ow_transpose)(v);
            for (int i = 0; i < OW_LANES; i++)
                *(OW_N(ow_vec) *)(panel + (p + i) * OW_WIDE) = v[i];
        }
        for (int64_t p = whole; p < k; p++)
            for (int c = 0; c < OW_LANES; c++)
                panel[p * OW_WIDE + c] = c < of ? from[c * yc + p] : 0;
    }
    if (cols % OW_WIDE > 0 && cols % OW_WIDE <= OW_LANES)
        for (int64_t p = 0; p < k; p++)
            memset(to + cols / OW_WIDE * OW_WIDE * k + p * OW_WIDE + OW_LANES, 0,
                   sizeof(OW_T) * OW_LANES);
}

/* Copy `k` rows and `cols` columns of y into panels of OW_WIDE columns, one after the other; what
 * is missing of the last panel is 0. Rows are read in one go: they may be far apart. */
OW_WITHIN void OW_N(ow_pack)(OW_T *to, const OW_T *y, int64_t yr, int64_t yc, int64_t k,
                             int64_t cols)
{
    if (yr == 1 && yc != 1) {
        OW_N(ow_pack_columns)(to, y, yc, k, cols);
        return;
    }
    /* a few panels at once: a row of all of them would be written to as many lines of the cache */
    for (int64_t j0 = 0; j0 < cols; j0 += OW_SOME_PANELS * OW_WIDE) {
        const int64_t j1 =
            cols - j0 < OW_SOME_PANELS * OW_WIDE ? cols : j0 + OW_SOME_PANELS * OW_WIDE;
        const int whole = yc == 1 && j1 - j0 == OW_SOME_PANELS * OW_WIDE;
        for (int64_t p = 0; p < k; p++) {
            OW_T *panel = to + j0 * k + p * OW_WIDE;
            const OW_T *from = y + p * yr + j0 * yc;
            if (whole) {
                if (p + OW_AHEAD < k)
                    for (int v = 0; v < OW_SOME_PANELS; v++)
                        __builtin_prefetch(from + OW_AHEAD * yr + v * OW_WIDE);
                for (int v = 0; v < OW_SOME_PANELS; v++)
                    memcpy(panel + v * OW_WIDE * k, from + v * OW_WIDE, sizeof(OW_T) * OW_WIDE);
                continue;
            }
            for (int64_t j = j0; j < j1; j += OW_WIDE, panel += OW_WIDE * k, from += OW_WIDE * yc)
                if (yc == 1 && j1 - j >= OW_WIDE)
                    memcpy(panel, from, sizeof(OW_T) * OW_WIDE);
                else if (yc == 1) {
                    const int64_t some = j1 - j < OW_LANES ? j1 - j : OW_LANES;
                    *(OW_N(ow_vec) *)panel = OW_N(ow_get_part)(from, some);
                    *(OW_N(ow_vec) *)(panel + OW_LANES) =
                        OW_N(ow_get_part)(from + some, j1 - j - some);
                } else
                    for (int c = 0; c < OW_WIDE; c++)
                        panel[c] = c < j1 - j ? from[c * yc] : 0;
        }
    }
}

/* All of y: a block of OW_SUM_BLOCK rows after the other, each as ow_pack leaves it. */
static void OW_N(ow_pack_all)(const ow_product *q, char *to)
{
    const int64_t width = (q->n + OW_WIDE - 1) / OW_WIDE * OW_WIDE;
    for (int64_t p = 0; p < q->k; p += OW_SUM_BLOCK)
        OW_N(ow_pack)((OW_T *)to + p * width, (const OW_T *)q->y + p * q->yr, q->yr, q->yc,
                      q->k - p < OW_SUM_BLOCK ? q->k - p : OW_SUM_BLOCK, q->n);
}

/* Copy `rows` rows of `k` elements, which lie far apart, to rows `OW_X_STEP` elements apart. */
#define OW_X_STEP (OW_SUM_BLOCK + 16)
OW_WITHIN void OW_N(ow_gather_rows)(OW_T *to, const OW_T *x, int64_t xr, int64_t xc, int64_t rows,
                                    int64_t k)
{
    if (xc == 1)
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * OW_X_STEP, x + r * xr, sizeof(OW_T) * (size_t)k);
    else
        for (int64_t p = 0; p < k; p++)
            for (int64_t r = 0; r < rows; r++)
                to[r * OW_X_STEP + p] = x[r * xr + p * xc];
}

/* Rows i0 to i1 and columns j0 to j1 of a product. */
static void OW_N(ow_gemm)(const ow_product *q, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    enum { BLOCK = OW_PANELS * OW_WIDE };
    OW_T *const packed =
        OW_THREAD_BUFFER(OW_BUFFER_RIGHT, OW_BUFFERS_END, OW_T, OW_SUM_BLOCK * BLOCK);
    OW_T *const gathered =
        OW_THREAD_BUFFER(OW_BUFFER_LEFT, OW_BUFFER_RIGHT, OW_T, OW_X_ROWS * OW_X_STEP);
    const OW_T a = (OW_T)q->a;
    /* panels of a y that is small are as good where they are, and so are those that are read once,
     * if rows are near and all of it stays in the caches */
    const int is_read_once = i1 - i0 <= OW_HEIGHT && q->yr * (int64_t)sizeof(OW_T) <= OW_NEAR_ROWS;
    const int in_place = q->yc == 1 && q->k * q->yr * (int64_t)sizeof(OW_T) <=
                                           (is_read_once ? OW_READ_ONCE : 1 << 14);
    /* rows of x that are far apart share few lines of the first cache: a tile that is used again
     * and again is copied */
    const int64_t apart = (q->xr > q->xc ? q->xr : q->xc) * (int64_t)sizeof(OW_T);
    const int gather = apart >= OW_FAR && j1 - j0 >= 4 * OW_WIDE;
    const int64_t height = gather ? OW_X_ROWS : i1 - i0;
    for (int64_t p0 = 0; p0 < q->k || p0 == 0; p0 += OW_SUM_BLOCK) {
        const int64_t k = q->k - p0 < OW_SUM_BLOCK ? q->k - p0 : OW_SUM_BLOCK;
        const OW_T b = p0 ? 1 : (OW_T)q->b;
        const OW_T *x = (const OW_T *)q->x + i0 * q->xr + p0 * q->xc;
        for (int64_t from = j0; from < j1; from += BLOCK) {
            const int64_t until = j1 - from < BLOCK ? j1 : from + BLOCK;
            const OW_T *y = (const OW_T *)q->y + p0 * q->yr + from * q->yc;
            /* how many columns stay in place: of the last panel only one vector, or a part of
             * one */
            const int64_t all = until - from, wide = all / OW_WIDE * OW_WIDE;
            const int64_t whole = !in_place || q->packed ? 0 : all - wide <= OW_LANES ? all : wide;
            const OW_T *copy = packed;
            if (q->packed)
                copy = (const OW_T *)q->packed + p0 * ((q->n + OW_WIDE - 1) / OW_WIDE * OW_WIDE);
            else if (from + whole < until)
                OW_N(ow_pack)(packed, y + whole * q->yc, q->yr, q->yc, k, until - from - whole);
            for (int64_t i = i0; i < i1; i += height) {
                const int64_t rows = i1 - i < height ? i1 - i : height;
                const OW_T *of = x + (i - i0) * q->xr;
                if (gather)
                    OW_N(ow_gather_rows)(gathered, of, q->xr, q->xc, rows, k);
                for (int64_t j = from; j < until; j += OW_WIDE) {
                    const int64_t cols = until - j < OW_WIDE ? until - j : OW_WIDE;
                    const int copied = j - from >= whole;
                    const OW_T *panel = copied ? copy + (j - from - whole) * k : y + (j - from);
                    const int64_t step = copied ? OW_WIDE : q->yr;
                    OW_T *z = (OW_T *)q->z + i * q->zr + j;
                    const OW_T *rows_of = gather ? gathered : of;
                    const int64_t xr = gather ? OW_X_STEP : q->xr, xc = gather ? 1 : q->xc;
                    if (!copied && cols < OW_LANES)
                        OW_N(ow_part_panel)(rows, cols, k, a, rows_of, xr, xc, panel, step, b, z,
                                            q->zr);
                    else
                        OW_N(ow_panel)(cols > OW_LANES ? 2 : 1, rows, cols, k, a, rows_of, xr, xc,
                                       panel, step, b, z, q->zr);
                }
            }
        }
    }
}

/* --- large products --------------------------------------------------------------------------- */

/* Copy `rows` rows of `k` elements to tiles of at most OW_HEIGHT rows, as high as those of
 * ow_tiles: element p of row r of tile t goes to (t k + p) OW_HEIGHT + r. */
OW_WITHIN void OW_N(ow_pack_rows_of)(OW_T *to, const OW_T *x, const int64_t xr, const int64_t xc,
                                     int64_t rows, int64_t k)
{
    for (int64_t tiles = (rows + OW_HEIGHT - 1) / OW_HEIGHT; tiles > 0; tiles--) {
        const int64_t high = (rows + tiles - 1) / tiles;
        if (high == OW_HEIGHT)
            for (int64_t p = 0; p < k; p++)
                for (int r = 0; r < OW_HEIGHT; r++)
                    to[p * OW_HEIGHT + r] = x[r * xr + p * xc];
        else
            for (int64_t p = 0; p < k; p++)
                for (int64_t r = 0; r < high; r++)
                    to[p * OW_HEIGHT + r] = x[r * xr + p * xc];
        rows -= high;
        x += high * xr;
        to += OW_HEIGHT * k;
    }
}

static void OW_N(ow_pack_x)(OW_T *to, const OW_T *x, int64_t xr, int64_t xc, int64_t rows,
                            int64_t k)
{
    if (xc == 1)
        OW_N(ow_pack_rows_of)(to, x, xr, 1, rows, k);
    else if (xr == 1)
        OW_N(ow_pack_rows_of)(to, x, 1, xc, rows, k);
    else
        OW_N(ow_pack_rows_of)(to, x, xr, xc, rows, k);
}

/* Columns j0 to j1 of y, of which j0 is the first one of a panel, to where ow_pack_all leaves
 * them. */
static void OW_N(ow_pack_part)(const ow_product *q, char *to, int64_t j0, int64_t j1)
{
    const int64_t width = (q->n + OW_WIDE - 1) / OW_WIDE * OW_WIDE;
    for (int64_t p = 0; p < q->k; p += OW_SUM_BLOCK) {
        const int64_t k = q->k - p < OW_SUM_BLOCK ? q->k - p : OW_SUM_BLOCK;
        OW_N(ow_pack)((OW_T *)to + p * width + j0 * k, (const OW_T *)q->y + p * q->yr + j0 * q->yc,
                      q->yr, q->yc, k, j1 - j0);
    }
}

/* Rows i0 to i1, at most OW_PACK_ROWS, and columns j0 to j1 of a product; j0 is the first column of
 * a panel. If y is not packed, a few panels at a time are. */
static void OW_N(ow_packed_gemm)(const ow_product *q, int64_t i0, int64_t i1, int64_t j0,
                                 int64_t j1)
{
    enum { BLOCK = OW_PANELS * OW_WIDE };
    OW_T *const rows =
        OW_THREAD_BUFFER(OW_BUFFER_LEFT, OW_BUFFER_RIGHT, OW_T, OW_SUM_BLOCK * OW_PACK_ROWS);
    OW_T *const columns =
        OW_THREAD_BUFFER(OW_BUFFER_RIGHT, OW_BUFFERS_END, OW_T, OW_SUM_BLOCK * BLOCK);
    const int64_t width = (q->n + OW_WIDE - 1) / OW_WIDE * OW_WIDE;
    for (int64_t p = 0; p < q->k || p == 0; p += OW_SUM_BLOCK) {
        const int64_t k = q->k - p < OW_SUM_BLOCK ? q->k - p : OW_SUM_BLOCK;
        const OW_T *y = (const OW_T *)q->y + p * q->yr;
        OW_N(ow_pack_x)(rows, (const OW_T *)q->x + i0 * q->xr + p * q->xc, q->xr, q->xc, i1 - i0,
                        k);
        for (int64_t j = j0; j < j1; j += OW_WIDE) {
            const int64_t cols = j1 - j < OW_WIDE ? j1 - j : OW_WIDE, of = (j - j0) % BLOCK;
            const OW_T *panel = columns + of * k;
            if (q->packed)
                panel = (const OW_T *)q->packed + p * width + j * k;
            else if (of == 0)
                OW_N(ow_pack)(columns, y + j * q->yc, q->yr, q->yc, k,
                              j1 - j < BLOCK ? j1 - j : BLOCK);
            OW_N(ow_tiles)(cols > OW_LANES ? 2 : 1, 0, i1 - i0, cols, k, (OW_T)q->a, rows, 1,
                           OW_HEIGHT, OW_HEIGHT * k, panel, OW_WIDE, p ? 1 : (OW_T)q->b,
                           (OW_T *)q->z + i0 * q->zr + j, q->zr);
        }
    }
}

/* --- small products --------------------------------------------------------------------------- */

/* Products of `pages` pairs of matrices, of which q is the first and the others lie zp, xp and yp
 * elements further each; there are at most OW_SMALL_TERMS terms in a sum. */
static void OW_N(ow_small_pages)(const ow_product *q, int64_t pages, int64_t zp, int64_t xp,
                                 int64_t yp)
{
    OW_T copy[OW_SMALL_TERMS *
              OW_LANES]; /* of as many columns of y as fill a vector, where they lie apart */
    const OW_T *x = (const OW_T *)q->x, *y = (const OW_T *)q->y, a = (OW_T)q->a, b = (OW_T)q->b;
    OW_T *z = (OW_T *)q->z;
    const int64_t k = q->k;
    for (; pages > 0; pages--, x += xp, y += yp, z += zp)
        for (int64_t j = 0; j < q->n; j += OW_LANES) {
            const int64_t cols = q->n - j < OW_LANES ? q->n - j : OW_LANES;
            const OW_T *panel = y + j * q->yc;
            int64_t step = q->yr;
            if (q->yc != 1) {
                for (int64_t c = 0; c < cols; c++)
                    for (int64_t p = 0; p < k; p++)
                        copy[p * cols + c] = panel[p * q->yr + c * q->yc];
                panel = copy;
                step = cols;
            }
            if (cols < OW_LANES)
                OW_N(ow_part_panel)(q->m, cols, k, a, x, q->xr, q->xc, panel, step, b, z + j,
                                    q->zr);
            else
                OW_N(ow_panel)(1, q->m, cols, k, a, x, q->xr, q->xc, panel, step, b, z + j, q->zr);
        }
}

#undef OW_X_STEP
#undef OW_WIDE
#undef OW_SOME_PANELS
#undef OW_AHEAD
#undef OW_ONE_TILE
