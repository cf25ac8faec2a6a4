/* Pooling of planes side by side and its gradient, for one type of elements: OW_T, of which OW_S is
 * the short name.
 * Elements of windows lie apart or in short rows, which vectors do not take well. So an element of
 * each of some planes is a line of OW_POOL_LINE bytes, and lines are in the order of the elements
 * of a plane. The order of additions is that of pool_rows.h. */

#define OW_TOGETHER ((int)(OW_POOL_LINE / sizeof(OW_T)))

OW_WITHIN void OW_N(ow_pool_lines)(const int most, const ow_pool *q, const OW_T *x, OW_T *z,
                                   OW_T *row)
{
    const int64_t n = q->n[2] * OW_TOGETHER;
    const OW_N(ow_vec) least = (OW_N(ow_vec)){0} - (most ? (OW_T)INFINITY : 0);
    for (int64_t i = 0; i < q->out[0]; i++)
        for (int64_t j = 0; j < q->out[1]; j++) {
            int begun = 0;
            for (int64_t a = 0; a < q->w[0]; a++)
                for (int64_t b = 0; b < q->w[1]; b++) {
                    const int64_t d = i * q->s[0] + a - q->p[0], h = j * q->s[1] + b - q->p[1];
                    if (d < 0 || d >= q->n[0] || h < 0 || h >= q->n[1])
                        continue;
                    const OW_T *from = x + (d * q->n[1] + h) * n;
                    for (int64_t k = 0; k < n; k += OW_LANES) {
                        const OW_N(ow_vec) v = OW_N(ow_pool_at)(from + k);
                        *(OW_N(ow_vec) *)(row + k) =
                            begun ? OW_N(ow_pool_two)(most, OW_N(ow_pool_at)(row + k), v) : v;
                    }
                    begun = 1;
                }
            const OW_T rows = (OW_T)(ow_pool_length(q, 0, i) * ow_pool_length(q, 1, j));
            for (int64_t k = 0; k < q->out[2]; k++, z += OW_TOGETHER) {
                const int64_t at = k * q->s[2] - q->p[2], last = at + q->w[2];
                const int64_t end = !begun           ? 0
                                    : last < q->n[2] ? last
                                                     : q->n[2],
                              first = at < 0 ? 0 : at;
                const OW_T length =
                    q->mode < OW_POOL_ALL ? 1 : rows * (OW_T)ow_pool_length(q, 2, k);
                for (int l = 0; l < OW_TOGETHER; l += OW_LANES) {
                    OW_N(ow_vec) v =
                        first < end ? OW_N(ow_pool_at)(row + first * OW_TOGETHER + l) : least;
                    for (int64_t c = first + 1; c < end; c++)
                        v = OW_N(ow_pool_two)(most, v, OW_N(ow_pool_at)(row + c * OW_TOGETHER + l));
                    *(OW_N(ow_vec) *)(z + l) = q->mode < OW_POOL_ALL ? v : v / length;
                }
            }
        }
}

static void OW_N(ow_pool_planes)(const ow_pool *q, const char *x, char *z, char *memory)
{
    if (q->mode == OW_POOL_MAX)
        OW_N(ow_pool_lines)(1, q, (const OW_T *)x, (OW_T *)z, (OW_T *)memory);
    else
        OW_N(ow_pool_lines)(0, q, (const OW_T *)x, (OW_T *)z, (OW_T *)memory);
}

/* Divide gradients by how many elements their averages are over. */
OW_WITHIN void OW_N(ow_pool_divide)(const ow_pool *q, const ow_pool_band *band, OW_T *g)
{
    for (int64_t i = 0; i < q->out[0]; i++)
        for (int64_t j = band->from; j < band->until; j++) {
            const OW_T rows = (OW_T)(ow_pool_length(q, 0, i) * ow_pool_length(q, 1, j));
            for (int64_t k = 0; k < q->out[2]; k++)
                for (int l = 0; l < OW_TOGETHER; l++)
                    *g++ /= rows * (OW_T)ow_pool_length(q, 2, k);
        }
}

OW_WITHIN void OW_N(ow_pool_back_lines)(const int most, const ow_pool *q, const ow_pool_band *band,
                                        const OW_T *x, const OW_T *maxima, const OW_T *g, OW_T *z)
{
    int64_t i0 = 0, i1 = 0;
    for (int64_t d = 0; d < q->n[0]; d++) {
        int64_t j0 = 0, j1 = 0;
        OW_N(ow_pool_windows)(q, 0, d, &i0, &i1);
        for (int64_t h = band->first; h < band->end; h++) {
            int64_t k0 = 0, k1 = 0;
            OW_N(ow_pool_windows)(q, 1, h, &j0, &j1);
            for (int64_t k = 0; k < q->n[2]; k++, x += OW_TOGETHER, z += OW_TOGETHER) {
                OW_N(ow_pool_windows)(q, 2, k, &k0, &k1);
                for (int l = 0; l < OW_TOGETHER; l += OW_LANES) {
                    OW_N(ow_vec) sum = {0};
                    for (int64_t i = i0; i < i1; i++)
                        for (int64_t j = j0; j < j1; j++)
                            for (int64_t m = k1 - 1; m >= k0; m--) {
                                const int64_t row = i * (band->until - band->from) + j - band->from;
                                const int64_t at = (row * q->out[2] + m) * OW_TOGETHER + l;
                                OW_N(ow_vec) more = OW_N(ow_pool_at)(g + at);
                                if (most) {
                                    const OW_N(ow_vec) v = OW_N(ow_pool_at)(x + l);
                                    const OW_N(ow_mask) same =
                                        (OW_N(ow_mask))(v == OW_N(ow_pool_at)(maxima + at));
                                    more = (OW_N(ow_vec))((OW_N(ow_mask))more & same);
                                }
                                sum += more;
                            }
                    *(OW_N(ow_vec) *)(z + l) = sum;
                }
            }
        }
    }
}

static void OW_N(ow_pool_back_planes)(const ow_pool *q, const ow_pool_band *band, const char *x,
                                      const char *maxima, char *g, char *z)
{
    if (q->mode >= OW_POOL_ALL)
        OW_N(ow_pool_divide)(q, band, (OW_T *)g);
    if (q->mode == OW_POOL_MAX)
        OW_N(ow_pool_back_lines)(1, q, band, (const OW_T *)x, (const OW_T *)maxima, (const OW_T *)g,
                                 (OW_T *)z);
    else
        OW_N(ow_pool_back_lines)(0, q, band, (const OW_T *)z, NULL, (const OW_T *)g, (OW_T *)z);
}

#undef OW_TOGETHER
