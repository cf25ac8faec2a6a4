/* Products of a matrix with a vector, for one type of elements: OW_T, of which OW_S is the
 * short name. Included once for each, after gemm_tiles.h, which defines vectors.
 */

/* c[r] = sums over j of A[r, j] x[j] for groups of j; A has at least OW_LANES columns, or as many
 * elements before. The rows after `last` are that one again. */
OW_WITHIN void OW_N(ow_row_products)(const int rows, int64_t last, int64_t k, const OW_T *A,
                                     int64_t ar, const OW_T *x, OW_N(ow_line_vec) *c)
{
    OW_N(ow_line_vec) sum[8];
    const OW_T *row[8];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        sum[r] = (OW_N(ow_line_vec)){0};
        row[r] = A + (r < last ? r : last) * ar;
    }
    int64_t j = 0;
    for (; j + OW_LANES <= k; j += OW_LANES) {
        const OW_N(ow_line_vec) of = *(const OW_N(ow_line_vec) *)(x + j);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r] += *(const OW_N(ow_line_vec) *)(row[r] + j) * of;
    }
    if (j < k) { /* the last vector, without the elements that have been added */
        const int64_t first = k - OW_LANES;
        OW_N(ow_mask_vec) isnew;
        for (int l = 0; l < OW_LANES; l++)
            isnew[l] = first + l < j ? 0 : -1;
        const OW_N(ow_mask_vec) of =
            (OW_N(ow_mask_vec))*(const OW_N(ow_line_vec) *)(x + first) & isnew;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r] += (OW_N(ow_line_vec))((OW_N(ow_mask_vec))*(const OW_N(ow_line_vec) *)(row[r] +
                                                                                          first) &
                                          isnew) *
                      (OW_N(ow_line_vec))of;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        c[r] = sum[r];
}

/* Half of n vectors from c on are left, with sums of neighbours, if there are so many of `all`. */
#define OW_HALVE(c, n, all)                                                                        \
    _Pragma("GCC unroll 8") for (int r = 0; r < n / 2 && n <= all; r++) c[r] =                     \
        OW_N(ow_add_pairs)(c[2 * r], c[2 * r + 1]);

/* acc[r] = sum over j of A[r, j] x[j] for rows whose elements lie side by side. `rows` is a
 * power of two of at most OW_LANES; rows after `last` are not read, and their sums are those of
 * that one. */
OW_WITHIN void OW_N(ow_dot_rows)(const int rows, int64_t last, int64_t k, const OW_T *A, int64_t ar,
                                 const OW_T *x, OW_T *acc)
{
    const int block = rows < 8 ? rows : 8;
    OW_N(ow_line_vec) c[OW_LANES];
    if (k < OW_LANES) {
        for (int r = 0; r < rows; r++) {
            acc[r] = 0;
            for (int64_t j = 0; j < k; j++)
                acc[r] += A[(r < last ? r : last) * ar + j] * x[j];
        }
        return;
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r += block)
        OW_N(ow_row_products)(block, last - r, k, A + r * ar, ar, x, c + r);
    OW_HALVE(c, 16, rows)
    OW_HALVE(c, 8, rows)
    OW_HALVE(c, 4, rows)
    OW_HALVE(c, 2, rows)
    for (int r = rows; r < OW_LANES; r *= 2)
        c[0] = OW_N(ow_add_pairs)(c[0], c[0]);
    for (int r = 0; r < rows; r++)
        acc[r] = c[0][r];
}

/* acc[v] = sum over j of A[:, j] x[j] for `vectors` vectors of rows; columns lie side by side. Two
 * sums each, of every other column, since an addition waits for that before it. */
OW_WITHIN void OW_N(ow_add_columns)(const int vectors, int64_t k, const OW_T *A, int64_t ac,
                                    const OW_T *x, int64_t xs, OW_N(ow_vec) *acc)
{
    OW_N(ow_vec) c[4], d[4];
    int64_t j = 0;
    for (int v = 0; v < vectors; v++)
        c[v] = d[v] = (OW_N(ow_vec)){0};
    for (; j + 2 <= k; j += 2) {
        const OW_T f = x[j * xs], g = x[(j + 1) * xs], *at = A + j * ac;
        for (int v = 0; v < vectors; v++) {
            c[v] += f * *(const OW_N(ow_vec) *)(at + v * OW_LANES);
            d[v] += g * *(const OW_N(ow_vec) *)(at + ac + v * OW_LANES);
        }
    }
    for (int v = 0; v < vectors; v++) {
        if (j < k)
            c[v] += x[j * xs] * *(const OW_N(ow_vec) *)(A + j * ac + v * OW_LANES);
        acc[v] = c[v] + d[v];
    }
}

/* z = b z + a sums for `n` elements */
OW_WITHIN void OW_N(ow_put_sums)(int64_t n, const OW_T *sums, OW_T a, OW_T b, OW_T *z, int64_t zs)
{
    if (b == 0)
        for (int64_t i = 0; i < n; i++)
            z[i * zs] = a * sums[i];
    else if (zs == 1)
        for (int64_t i = 0; i < n; i++)
            z[i] = b * z[i] + a * sums[i];
    else
        for (int64_t i = 0; i < n; i++)
            z[i * zs] = b * z[i * zs] + a * sums[i];
}

static void OW_N(ow_small_gemv)(const ow_matvec *q)
{
    const OW_T *A = (const OW_T *)q->A, *x = (const OW_T *)q->x, a = (OW_T)q->a, b = (OW_T)q->b;
    OW_T *z = (OW_T *)q->z;
    const int64_t m = q->m, k = q->k, ar = q->ar, ac = q->ac, xs = q->xs, zs = q->zs;
    int64_t i = 0;
    if (ac == 1 && xs == 1) {
        enum { SOME = OW_LANES < 4 ? OW_LANES : 4 };
        OW_T sums[OW_LANES];
        for (; i + OW_LANES <= m; i += OW_LANES) {
            OW_N(ow_dot_rows)(OW_LANES, OW_LANES, k, A + i * ar, ar, x, sums);
            OW_N(ow_put_sums)(OW_LANES, sums, a, b, z + i * zs, zs);
        }
        for (; i < m; i += SOME) {
            OW_N(ow_dot_rows)(SOME, m - i - 1, k, A + i * ar, ar, x, sums);
            OW_N(ow_put_sums)(m - i < SOME ? m - i : SOME, sums, a, b, z + i * zs, zs);
        }
        return;
    }
    if (ar == 1) {
        OW_N(ow_vec) sums[4];
        for (; i + 4 * OW_LANES <= m; i += 4 * OW_LANES) {
            OW_N(ow_add_columns)(4, k, A + i, ac, x, xs, sums);
            OW_N(ow_put_sums)(4 * OW_LANES, (const OW_T *)sums, a, b, z + i * zs, zs);
        }
        for (; i < m && m >= OW_LANES; i += OW_LANES) {
            /* the last vector of rows begins with some that are done */
            const int64_t first = i + OW_LANES <= m ? i : m - OW_LANES, done = i - first;
            OW_N(ow_add_columns)(1, k, A + first, ac, x, xs, sums);
            OW_N(ow_put_sums)(OW_LANES - done, (const OW_T *)sums + done, a, b, z + i * zs, zs);
        }
    }
    for (; i < m; i++) {
        OW_T sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += A[i * ar + j * ac] * x[j * xs];
        OW_N(ow_put_sums)(1, &sum, a, b, z + i * zs, zs);
    }
}

/* As ow_small_gemv for one row, whose elements lie side by side, as those of x do. Additions to
 * eight sums do not wait for each other, and each sum has few roundings. */
static void OW_N(ow_dot)(const ow_matvec *q)
{
    enum { SUMS = 8 };
    const OW_T *A = (const OW_T *)q->A, *x = (const OW_T *)q->x;
    const int64_t k = q->k;
    if (k < SUMS * OW_LANES) {
        OW_N(ow_small_gemv)(q);
        return;
    }
    OW_N(ow_line_vec) sum[SUMS], rest;
    int64_t j = 0;
    for (int i = 0; i < SUMS; i++)
        sum[i] = (OW_N(ow_line_vec)){0};
    for (; j + SUMS * OW_LANES <= k; j += SUMS * OW_LANES) {
#pragma GCC unroll 8
        for (int i = 0; i < SUMS; i++)
            sum[i] += *(const OW_N(ow_line_vec) *)(A + j + i * OW_LANES) *
                      *(const OW_N(ow_line_vec) *)(x + j + i * OW_LANES);
    }
    /* its last vector begins before j where fewer elements are left */
    OW_N(ow_row_products)(1, 1, k - j, A + j, 0, x + j, &rest);
    for (int n = SUMS / 2; n; n /= 2)
        for (int i = 0; i < n; i++)
            sum[i] += sum[i + n];
    sum[0] += rest;
    OW_T of[OW_LANES];
    memcpy(of, sum, sizeof(of));
    for (int n = OW_LANES / 2; n; n /= 2)
        for (int l = 0; l < n; l++)
            of[l] += of[l + n];
    OW_N(ow_put_sums)(1, of, (OW_T)q->a, (OW_T)q->b, (OW_T *)q->z, q->zs);
}

/* sums[v] += the products of vector v of `some` columns; after them come `part` elements more. */
OW_WITHIN void OW_N(ow_some_columns)(const int some, int64_t vectors, int64_t part,
                                     const OW_T *const *at, const OW_T *f, OW_N(ow_vec) *sums)
{
    for (int64_t v = 0; v < vectors; v++) {
        OW_N(ow_vec) sum = sums[v];
#pragma GCC unroll 4
        for (int c = 0; c < some; c++)
            sum += f[c] * *(const OW_N(ow_vec) *)(at[c] + v * OW_LANES);
        sums[v] = sum;
    }
    if (part)
        for (int c = 0; c < some; c++)
            sums[vectors] += f[c] * OW_N(ow_get_part)(at[c] + vectors * OW_LANES, part);
}

/* As ow_small_gemv where columns of A are contiguous and long: sums of a block of rows stay in the
 * first cache while the parts of columns beside it are read from end to end, four at once. */
static void OW_N(ow_column_gemv)(const ow_matvec *q)
{
    enum { ROWS = 16384 / sizeof(OW_T) };
    OW_N(ow_vec) sums[ROWS / OW_LANES];
    const int64_t k = q->k, ac = q->ac, xs = q->xs;
    const OW_T *x = (const OW_T *)q->x;
    for (int64_t i = 0; i < q->m; i += ROWS) {
        const int64_t rows = q->m - i < ROWS ? q->m - i : ROWS, vectors = rows / OW_LANES,
                      part = rows % OW_LANES;
        memset(sums, 0, sizeof(sums));
        for (int64_t j = 0; j < k; j += 4) {
            const OW_T *at[4];
            OW_T f[4];
            for (int c = 0; c < 4; c++) {
                f[c] = j + c < k ? x[(j + c) * xs] : 0;
                at[c] = (const OW_T *)q->A + i + (j + c < k ? j + c : j) * ac;
            }
            if (j + 4 <= k)
                OW_N(ow_some_columns)(4, vectors, part, at, f, sums);
            else
                for (int64_t c = 0; c < k - j; c++)
                    OW_N(ow_some_columns)(1, vectors, part, at + c, f + c, sums);
        }
        OW_N(ow_put_sums)(rows, (const OW_T *)sums, (OW_T)q->a, (OW_T)q->b,
                          (OW_T *)q->z + i * q->zs, q->zs);
    }
}

/* --- few columns ---------------------------------------------------------------------------------
 * A vector of a row of the result would be mostly empty. So each element is a sum of products of
 * vectors, and as many of them as there are registers for are added up together. */

#define OW_FEW (OW_LANES / 2)                  /* columns */
#define OW_FEW_SUMS (OW_VECTOR == 64 ? 16 : 8) /* that are added up together */
#define OW_FEW_BLOCK 1024 /* terms for which the columns stay in the first cache */

#define OW_FEW_PART(of) OW_N(ow_get_part)(of, k - p)
/* The products of a vector of each row with one of each column. */
#define OW_FEW_STEP(LOAD)                                                                          \
    {                                                                                              \
        OW_N(ow_line_vec) of[OW_FEW_SUMS];                                                         \
        _Pragma("GCC unroll 16") for (int j = 0; j < cols; j++) of[j] = LOAD(y + j * yc + p);      \
        _Pragma("GCC unroll 16") for (int r = 0; r < rows; r++)                                    \
        {                                                                                          \
            const OW_N(ow_line_vec) a = LOAD(row[r] + p);                                          \
            _Pragma("GCC unroll 16") for (int j = 0; j < cols; j++) c[r * cols + j] += a * of[j];  \
        }                                                                                          \
    }

/* sums[r * cols + j] = sum over p of x[r, p] y[p, j]. The rows after `last` are that one again. */
OW_WITHIN void OW_N(ow_few_sums)(const int rows, const int cols, int64_t last, int64_t k,
                                 const OW_T *x, int64_t xr, const OW_T *y, int64_t yc, OW_T *sums)
{
    enum { SUMS = OW_FEW_SUMS > OW_LANES ? OW_FEW_SUMS : OW_LANES };
    OW_N(ow_line_vec) c[SUMS];
    const OW_T *row[OW_FEW_SUMS];
#pragma GCC unroll 16
    for (int i = 0; i < SUMS; i++)
        c[i] = (OW_N(ow_line_vec)){0};
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        row[r] = x + (r < last ? r : last) * xr;
    int64_t p = 0;
    for (; p + OW_LANES <= k; p += OW_LANES)
        OW_FEW_STEP(*(const OW_N(ow_line_vec) *))
    if (p < k)
        OW_FEW_STEP(OW_FEW_PART)
    for (int i = 0; i < rows * cols; i += OW_LANES) {
        OW_N(ow_line_vec) *at = c + i;
        OW_HALVE(at, 16, OW_LANES)
        OW_HALVE(at, 8, OW_LANES)
        OW_HALVE(at, 4, OW_LANES)
        OW_HALVE(at, 2, OW_LANES)
        *(OW_N(ow_line_vec) *)(sums + i) = at[0];
    }
}

/* Rows i0 to i1 of a product of few columns. */
OW_WITHIN void OW_N(ow_few_rows)(const int cols, const ow_product *q, int64_t i0, int64_t i1)
{
    enum { SUMS = OW_FEW_SUMS > OW_LANES ? OW_FEW_SUMS : OW_LANES };
    const int rows = OW_FEW_SUMS / cols;
    OW_T sums[SUMS];
    for (int64_t p = 0; p < q->k; p += OW_FEW_BLOCK) {
        const int64_t k = q->k - p < OW_FEW_BLOCK ? q->k - p : OW_FEW_BLOCK;
        const OW_T a = (OW_T)q->a, b = p ? 1 : (OW_T)q->b;
        for (int64_t i = i0; i < i1; i += rows) {
            const int64_t some = i1 - i < rows ? i1 - i : rows;
            OW_N(ow_few_sums)(rows, cols, some - 1, k, (const OW_T *)q->x + i * q->xr + p, q->xr,
                              (const OW_T *)q->y + p, q->yc, sums);
            for (int64_t r = 0; r < some; r++)
                for (int j = 0; j < cols; j++) {
                    OW_T *z = (OW_T *)q->z + (i + r) * q->zr + j * q->zc,
                         value = a * sums[r * cols + j];
                    *z = b == 0 ? value : b * *z + value;
                }
        }
    }
}

#define OW_FEW_CASE(N)                                                                             \
    case N:                                                                                        \
        if (N <= OW_FEW)                                                                           \
            OW_N(ow_few_rows)(N, q, i0, i1);                                                       \
        return;

/* As gemm where rows of x and columns of y are contiguous; all columns, of which there are few. */
static void OW_N(ow_few_dots)(const ow_product *q, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    (void)j0, (void)j1;
    switch (q->n) {
        OW_FEW_CASE(1)
        OW_FEW_CASE(2)
        OW_FEW_CASE(3)
        OW_FEW_CASE(4)
        OW_FEW_CASE(5)
        OW_FEW_CASE(6)
        OW_FEW_CASE(7)
        OW_FEW_CASE(8)
    }
}

#undef OW_FEW
#undef OW_FEW_SUMS
#undef OW_FEW_BLOCK
#undef OW_FEW_CASE
#undef OW_FEW_STEP
#undef OW_FEW_PART
#undef OW_HALVE
