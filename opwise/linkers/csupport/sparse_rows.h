/* The inner loops of sparse.h for one type of elements: OW_T, of which OW_S is the short name.
 * Included once for each; OW_N(name) is a function of that type. Indices were checked before. */

/* Accumulators of a product: a few of the widest vectors, which stay in registers. */
#define OW_SPAN (4 * OW_VECTOR / (int)sizeof(OW_T))
/* How many entries ahead the row of an entry is fetched into the cache. */
#define OW_AHEAD 4

/* Add to `width` elements of the row at `z` the entries `from` to `to`, times their rows of y. */
OW_WITHIN void OW_N(ow_sparse_span)(const ow_sparse_product *q, const int width, OW_T *restrict z,
                                    int64_t column, int64_t from, int64_t to)
{
    OW_T sum[OW_SPAN];
    const OW_T a = (OW_T)q->a;
    const char *y = q->y + column * (int64_t)sizeof(OW_T);
    for (int c = 0; c < width; c++)
        sum[c] = z[c];
    for (int64_t p = from; p < to; p++) {
        const OW_T x = a * *(const OW_T *)(q->x.data + p * q->x.data_step);
        const OW_T *restrict row = (const OW_T *)(y + ow_minor(&q->x, p) * q->yr);
        if (p + OW_AHEAD < to) {
            const char *next = y + ow_minor(&q->x, p + OW_AHEAD) * q->yr;
            for (int c = 0; c < width * (int)sizeof(OW_T); c += 64)
                __builtin_prefetch(next + c);
        }
        for (int c = 0; c < width; c++)
            sum[c] += x * row[c];
    }
    for (int c = 0; c < width; c++)
        z[c] = sum[c];
}

/* As above, for any number of columns. */
OW_WITHIN void OW_N(ow_sparse_rest)(const ow_sparse_product *q, int64_t width, OW_T *restrict z,
                                    int64_t column, int64_t from, int64_t to)
{
    const OW_T a = (OW_T)q->a;
    const char *y = q->y + column * (int64_t)sizeof(OW_T);
    if (width == 1) {
        OW_T sum = *z;
        for (int64_t p = from; p < to; p++)
            sum += a * *(const OW_T *)(q->x.data + p * q->x.data_step) *
                   *(const OW_T *)(y + ow_minor(&q->x, p) * q->yr);
        *z = sum;
        return;
    }
    for (int64_t p = from; p < to; p++) {
        const OW_T x = a * *(const OW_T *)(q->x.data + p * q->x.data_step);
        const OW_T *restrict row = (const OW_T *)(y + ow_minor(&q->x, p) * q->yr);
        for (int64_t c = 0; c < width; c++)
            z[c] += x * row[c];
    }
}

/* Whether the indices are 32 bits wide, and all vectors contiguous, y and z too. */
static int OW_N(ow_is_plain_column)(const ow_sparse_product *q)
{
    const int64_t size = sizeof(OW_T);
    return !q->x.wide_indices && q->x.indices_step == 4 && q->x.data_step == size &&
           q->yr == size && q->zr == size;
}

/* z += a x y, or a x' y where `scatters`, for one column. `plain` is a constant: whether
 * ow_is_plain_column, which spares the loops most of the arithmetic of addresses. */
OW_WITHIN void OW_N(ow_sparse_column)(ow_sparse_product q, const int plain, const int scatters,
                                      int64_t first, int64_t end)
{
    const OW_T a = (OW_T)q.a;
    if (plain) {
        q.x.wide_indices = 0;
        q.x.indices_step = 4;
        q.x.data_step = q.yr = q.zr = sizeof(OW_T);
    }
    for (int64_t i = first; i < end; i++) {
        const int64_t to = ow_start(&q.x, i + 1);
        const OW_T y = scatters ? a * *(const OW_T *)(q.y + i * q.yr) : 0;
        OW_T sum = scatters ? 0 : *(OW_T *)(q.z + i * q.zr);
        for (int64_t p = ow_start(&q.x, i); p < to; p++) {
            const OW_T x = *(const OW_T *)(q.x.data + p * q.x.data_step);
            const int64_t column = ow_minor(&q.x, p);
            if (scatters)
                *(OW_T *)(q.z + column * q.zr) += y * x;
            else
                sum += a * x * *(const OW_T *)(q.y + column * q.yr);
        }
        if (!scatters)
            *(OW_T *)(q.z + i * q.zr) = sum;
    }
}

/* z += a x y, for rows `first` to `end` of x */
static void OW_N(ow_sparse_product)(const ow_sparse_product *q, int64_t first, int64_t end)
{
    if (q->n == 1) {
        if (OW_N(ow_is_plain_column)(q))
            OW_N(ow_sparse_column)(*q, 1, 0, first, end);
        else
            OW_N(ow_sparse_column)(*q, 0, 0, first, end);
        return;
    }
    for (int64_t i = first; i < end; i++) {
        const int64_t from = ow_start(&q->x, i), to = ow_start(&q->x, i + 1);
        OW_T *z = (OW_T *)(q->z + i * q->zr);
        int64_t c = 0;
        for (; c + OW_SPAN <= q->n; c += OW_SPAN)
            OW_N(ow_sparse_span)(q, OW_SPAN, z + c, c, from, to);
        if (c + OW_SPAN / 2 <= q->n) {
            OW_N(ow_sparse_span)(q, OW_SPAN / 2, z + c, c, from, to);
            c += OW_SPAN / 2;
        }
        if (c + OW_SPAN / 4 <= q->n) {
            OW_N(ow_sparse_span)(q, OW_SPAN / 4, z + c, c, from, to);
            c += OW_SPAN / 4;
        }
        if (c < q->n)
            OW_N(ow_sparse_rest)(q, q->n - c, z + c, c, from, to);
    }
}

/* z += a x' y, where the rows of x are the columns of the matrix: each entry adds a row of y */
static void OW_N(ow_sparse_scatter)(const ow_sparse_product *q, int64_t first, int64_t end)
{
    const OW_T a = (OW_T)q->a;
    if (q->n == 1) {
        if (OW_N(ow_is_plain_column)(q))
            OW_N(ow_sparse_column)(*q, 1, 1, first, end);
        else
            OW_N(ow_sparse_column)(*q, 0, 1, first, end);
        return;
    }
    for (int64_t i = first; i < end; i++) {
        const OW_T *restrict row = (const OW_T *)(q->y + i * q->yr);
        const int64_t to = ow_start(&q->x, i + 1);
        for (int64_t p = ow_start(&q->x, i); p < to; p++) {
            const OW_T x = a * *(const OW_T *)(q->x.data + p * q->x.data_step);
            OW_T *restrict z = (OW_T *)(q->z + ow_minor(&q->x, p) * q->zr);
            for (int64_t c = 0; c < q->n; c++)
                z[c] += x * row[c];
        }
    }
}

OW_WITHIN OW_T OW_N(ow_sparse_dot)(const OW_T *restrict x, const OW_T *restrict y, int64_t n)
{
    OW_T total = 0;
    int64_t c = 0;
    if (n >= OW_SPAN) {
        OW_T sum[OW_SPAN] = {0};
        for (; c + OW_SPAN <= n; c += OW_SPAN)
            for (int k = 0; k < OW_SPAN; k++)
                sum[k] += x[c + k] * y[c + k];
        for (int w = OW_SPAN / 2; w; w /= 2)
            for (int k = 0; k < w; k++)
                sum[k] += sum[k + w];
        total = sum[0];
    }
    for (; c < n; c++)
        total += x[c] * y[c];
    return total;
}

/* of each entry in rows `first` to `end` of x: the dot product of its row of y with its row of w,
 * times the entry where x has data */
static void OW_N(ow_sparse_dots)(const ow_sparse_dots *q, int64_t first, int64_t end)
{
    OW_T *z = (OW_T *)q->z;
    for (int64_t i = first; i < end; i++) {
        const OW_T *row = (const OW_T *)(q->y + i * q->yr);
        const int64_t to = ow_start(&q->x, i + 1);
        for (int64_t p = ow_start(&q->x, i); p < to; p++) {
            if (p + OW_AHEAD < to)
                __builtin_prefetch(q->w + ow_minor(&q->x, p + OW_AHEAD) * q->wr);
            const OW_T *other = (const OW_T *)(q->w + ow_minor(&q->x, p) * q->wr);
            const OW_T dot = OW_N(ow_sparse_dot)(row, other, q->n);
            z[p] = q->x.data ? *(const OW_T *)(q->x.data + p * q->x.data_step) * dot : dot;
        }
    }
}

#undef OW_SPAN
#undef OW_AHEAD
