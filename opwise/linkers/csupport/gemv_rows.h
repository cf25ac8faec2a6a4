/* Products of a small matrix with a vector, for one type of elements: OW_T, of which OW_S is the
 * short name. Included once for each, after gemm_tiles.h, which defines vectors.
 */

#define OW_LANES ((int)(OW_VECTOR / sizeof(OW_T)))

/* acc[r] = sum over j of A[r, j] x[j] for `rows` rows whose elements lie side by side */
OW_WITHIN void OW_N(ow_dot_rows)(const int rows, int64_t k, const OW_T *A, int64_t ar, const OW_T *x,
                                 OW_T *acc)
{
    OW_N(ow_vec) c[4];
    int64_t j = 0;
    for (int r = 0; r < rows; r++)
        c[r] = (OW_N(ow_vec)){0};
    for (; j + OW_LANES <= k; j += OW_LANES) {
        OW_N(ow_vec) of = *(const OW_N(ow_vec) *)(x + j);
        for (int r = 0; r < rows; r++)
            c[r] += *(const OW_N(ow_vec) *)(A + r * ar + j) * of;
    }
    for (int r = 0; r < rows; r++) {
        OW_T sum = 0;
        for (int l = 0; l < OW_LANES; l++)
            sum += c[r][l];
        for (int64_t i = j; i < k; i++)
            sum += A[r * ar + i] * x[i];
        acc[r] = sum;
    }
}

/* acc[v] = sum over j of A[:, j] x[j] for `vectors` vectors of rows; columns lie side by side */
OW_WITHIN void OW_N(ow_add_columns)(const int vectors, int64_t k, const OW_T *A, int64_t ac,
                                    const OW_T *x, int64_t xs, OW_N(ow_vec) *acc)
{
    OW_N(ow_vec) c[4];
    for (int v = 0; v < vectors; v++)
        c[v] = (OW_N(ow_vec)){0};
    for (int64_t j = 0; j < k; j++) {
        const OW_T f = x[j * xs], *at = A + j * ac;
        for (int v = 0; v < vectors; v++)
            c[v] += f * *(const OW_N(ow_vec) *)(at + v * OW_LANES);
    }
    for (int v = 0; v < vectors; v++)
        acc[v] = c[v];
}

/* z = b z + a sums for `n` elements */
OW_WITHIN void OW_N(ow_put_sums)(int64_t n, const OW_T *sums, OW_T a, OW_T b, OW_T *z, int64_t zs)
{
    for (int64_t i = 0; i < n; i++)
        z[i * zs] = b == 0 ? a * sums[i] : b * z[i * zs] + a * sums[i];
}

static void OW_N(ow_small_gemv)(const ow_matvec *q)
{
    const OW_T *A = (const OW_T *)q->A, *x = (const OW_T *)q->x, a = (OW_T)q->a, b = (OW_T)q->b;
    OW_T *z = (OW_T *)q->z;
    const int64_t m = q->m, k = q->k, ar = q->ar, ac = q->ac, xs = q->xs, zs = q->zs;
    int64_t i = 0;
    if (ac == 1 && xs == 1) {
        OW_T sums[4];
        for (; i + 4 <= m; i += 4) {
            OW_N(ow_dot_rows)(4, k, A + i * ar, ar, x, sums);
            OW_N(ow_put_sums)(4, sums, a, b, z + i * zs, zs);
        }
        for (; i < m; i++) {
            OW_N(ow_dot_rows)(1, k, A + i * ar, ar, x, sums);
            OW_N(ow_put_sums)(1, sums, a, b, z + i * zs, zs);
        }
        return;
    }
    if (ar == 1) {
        OW_N(ow_vec) sums[4];
        for (; i + 4 * OW_LANES <= m; i += 4 * OW_LANES) {
            OW_N(ow_add_columns)(4, k, A + i, ac, x, xs, sums);
            OW_N(ow_put_sums)(4 * OW_LANES, (const OW_T *)sums, a, b, z + i * zs, zs);
        }
        for (; i + OW_LANES <= m; i += OW_LANES) {
            OW_N(ow_add_columns)(1, k, A + i, ac, x, xs, sums);
            OW_N(ow_put_sums)(OW_LANES, (const OW_T *)sums, a, b, z + i * zs, zs);
        }
    }
    for (; i < m; i++) {
        OW_T sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += A[i * ar + j * ac] * x[j * xs];
        OW_N(ow_put_sums)(1, &sum, a, b, z + i * zs, zs);
    }
}

#undef OW_LANES
