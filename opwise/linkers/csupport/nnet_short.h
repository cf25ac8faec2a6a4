/* Short rows of nnet.h for one type of elements: OW_T, of which OW_S is the short name.
 * A row of fewer elements than OW_ROW_LANES would be added up one by one, and its loops end before
 * they pay for being started. Such rows are turned, some at a time: element j of all of them lies
 * side by side, so that vectors hold as many rows. Each number is computed as in nnet_rows.h, and
 * sums are added up in the same order, so that a result does not depend on which rows are computed
 * together.
 * Functions compute as many rows from `first` on as fill vectors, and return the first one of the
 * rest. */

/* Rows that are turned together; a multiple of the lanes of every vector. */
#define OW_TURNED 32

typedef OW_T OW_N(ow_turned)[OW_ROW_LANES][OW_TURNED];

/* Copy `rows` rows of n elements: rs bytes from row to row, st from element to element. */
OW_WITHIN void OW_N(ow_turn)(const int rows, OW_T (*restrict to)[OW_TURNED], const char *x,
                             int64_t rs, int64_t st, int64_t n)
{
    if (st == sizeof(OW_T) && n >= OW_LANES)
        for (int r = 0; r < rows; r += OW_LANES)
            for (int64_t j = 0; j < n; j += OW_LANES) {
                OW_N(ow_vec) v[OW_LANES];
                j = j + OW_LANES > n ? n - OW_LANES : j; /* the last square begins earlier */
                for (int l = 0; l < OW_LANES; l++)
                    v[l] = *(const OW_N(ow_vec) *)(x + (r + l) * rs + j * st);
                OW_N(ow_transpose)(v);
                for (int l = 0; l < OW_LANES; l++)
                    *(OW_N(ow_vec) *)(to[j + l] + r) = v[l];
            }
    else if (rs == sizeof(OW_T))
        for (int64_t j = 0; j < n; j++)
            memcpy(to[j], x + j * st, sizeof(OW_T) * (size_t)rows);
    else
        for (int64_t j = 0; j < n; j++)
            for (int r = 0; r < rows; r++)
                to[j][r] = *(const OW_T *)(x + r * rs + j * st);
}

/* Write rows of n elements, which follow each other. */
OW_WITHIN void OW_N(ow_turn_back)(const int rows, OW_T (*restrict from)[OW_TURNED],
                                  OW_T *restrict z, int64_t n)
{
    if (n >= OW_LANES)
        for (int r = 0; r < rows; r += OW_LANES)
            for (int64_t j = 0; j < n; j += OW_LANES) {
                OW_N(ow_vec) v[OW_LANES];
                j = j + OW_LANES > n ? n - OW_LANES : j;
                for (int l = 0; l < OW_LANES; l++)
                    v[l] = *(const OW_N(ow_vec) *)(from[j + l] + r);
                OW_N(ow_transpose)(v);
                for (int l = 0; l < OW_LANES; l++)
                    *(OW_N(ow_vec) *)(z + (r + l) * n + j) = v[l];
            }
    else
        for (int64_t j = 0; j < n; j++)
            for (int r = 0; r < rows; r++)
                z[r * n + j] = from[j][r];
}

/* Rows of x from row i on, plus the bias b unless that is NULL. */
OW_WITHIN void OW_N(ow_turn_rows)(const int rows, OW_T (*restrict to)[OW_TURNED], const ow_slot *x,
                                  int64_t i, const ow_slot *b, int64_t n)
{
    OW_N(ow_turn)(rows, to, x->data + i * x->strides[0], x->strides[0], x->strides[1], n);
    for (int64_t j = 0; b != NULL && j < n; j++) {
        const OW_T bias = *(const OW_T *)(b->data + j * b->strides[0]);
        for (int r = 0; r < rows; r++)
            to[j][r] += bias;
    }
}

/* The largest element of each row that is a number. */
OW_WITHIN void OW_N(ow_turned_largest)(const int rows, OW_T (*restrict t)[OW_TURNED], int64_t n,
                                       OW_T *restrict most)
{
    for (int r = 0; r < rows; r++)
        most[r] = -(OW_T)INFINITY;
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++)
            most[r] = t[j][r] > most[r] ? t[j][r] : most[r];
}

/* Rows <- their softmax, whose maxima are `most`; total: the sum of exponentials of each. */
OW_WITHIN void OW_N(ow_turned_softmax)(const int rows, OW_T (*restrict t)[OW_TURNED], int64_t n,
                                       const OW_T *restrict most, OW_T *restrict total)
{
    OW_T inverse[OW_TURNED];
    for (int r = 0; r < rows; r++)
        total[r] = 0;
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++) {
            t[j][r] = OW_N(ow_expneg)(t[j][r] - most[r]);
            total[r] += t[j][r];
        }
    for (int r = 0; r < rows; r++)
        inverse[r] = 1 / total[r];
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++)
            t[j][r] *= inverse[r];
}

OW_WITHIN void OW_N(ow_some_softmax)(const int rows, ow_step *s, int64_t i)
{
    const int64_t n = s->out[0]->shape[1];
    OW_N(ow_turned) t;
    OW_T most[OW_TURNED], total[OW_TURNED];
    OW_N(ow_turn_rows)(rows, t, s->in[0], i, s->nin > 1 ? s->in[1] : NULL, n);
    OW_N(ow_turned_largest)(rows, t, n, most);
    OW_N(ow_turned_softmax)(rows, t, n, most, total);
    OW_N(ow_turn_back)(rows, t, (OW_T *)s->out[0]->data + i * n, n);
}

OW_WITHIN void OW_N(ow_some_logsoftmax)(const int rows, ow_step *s, int64_t i)
{
    const int64_t n = s->out[0]->shape[1];
    OW_N(ow_turned) t;
    OW_T most[OW_TURNED], total[OW_TURNED] = {0};
    OW_N(ow_turn_rows)(rows, t, s->in[0], i, NULL, n);
    OW_N(ow_turned_largest)(rows, t, n, most);
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++) {
            t[j][r] -= most[r];
            total[r] += OW_N(ow_expneg)(t[j][r]);
        }
    for (int r = 0; r < rows; r++)
        total[r] = OW_LOG(total[r]);
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++)
            t[j][r] -= total[r];
    OW_N(ow_turn_back)(rows, t, (OW_T *)s->out[0]->data + i * n, n);
}

OW_WITHIN void OW_N(ow_some_softmax_grad)(const int rows, ow_step *s, int64_t i)
{
    const ow_slot *dy = s->in[0];
    const int64_t n = s->out[0]->shape[1], down = dy->shape[0] == 1 ? 0 : dy->strides[0];
    OW_N(ow_turned) t, p;
    OW_T total[OW_TURNED] = {0};
    OW_N(ow_turn)(rows, t, dy->data + i * down, down, dy->shape[1] == 1 ? 0 : dy->strides[1], n);
    OW_N(ow_turn_rows)(rows, p, s->in[1], i, NULL, n);
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++) {
            t[j][r] *= p[j][r];
            total[r] += t[j][r];
        }
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++)
            t[j][r] -= total[r] * p[j][r];
    OW_N(ow_turn_back)(rows, t, (OW_T *)s->out[0]->data + i * n, n);
}

OW_WITHIN void OW_N(ow_some_xent)(const int rows, ow_step *s, int64_t i)
{
    const int64_t n = s->out[1]->shape[1];
    OW_N(ow_turned) t;
    OW_T most[OW_TURNED], total[OW_TURNED], at[OW_TURNED] = {0}, moved[OW_TURNED];
    OW_N(ow_turn_rows)(rows, t, s->in[0], i, s->in[1], n);
    OW_N(ow_turned_largest)(rows, t, n, most);
    for (int64_t j = n - 1; j >= 0; j--)
        for (int r = 0; r < rows; r++)
            at[r] = t[j][r] == most[r] ? (OW_T)j : at[r];
    for (int64_t j = 0; j < n; j++) /* numpy's position of a maximum that is nan */
        for (int r = 0; r < rows; r++)
            at[r] = t[j][r] == t[j][r] ? at[r] : 0;
    for (int r = 0; r < rows; r++)
        moved[r] = t[ow_label(s->in[2], i + r)][r] - most[r];
    OW_N(ow_turned_softmax)(rows, t, n, most, total);
    OW_N(ow_turn_back)(rows, t, (OW_T *)s->out[1]->data + i * n, n);
    for (int r = 0; r < rows; r++) {
        ow_put_int(s->out[2], i + r, (int64_t)at[r]);
        ((OW_T *)s->out[0]->data)[i + r] = OW_LOG(total[r]) - moved[r];
    }
}

#define OW_SHORT_ROWS(name)                                                                        \
    static int64_t OW_N(ow_short_##name)(ow_step * s, int64_t first, int64_t end, int64_t n)       \
    {                                                                                              \
        if (n >= OW_ROW_LANES)                                                                     \
            return first;                                                                          \
        for (; first + OW_TURNED <= end; first += OW_TURNED)                                       \
            OW_N(ow_some_##name)(OW_TURNED, s, first);                                             \
        for (; first + OW_LANES <= end; first += OW_LANES)                                         \
            OW_N(ow_some_##name)(OW_LANES, s, first);                                              \
        return first;                                                                              \
    }
OW_SHORT_ROWS(softmax)
OW_SHORT_ROWS(logsoftmax)
OW_SHORT_ROWS(softmax_grad)
OW_SHORT_ROWS(xent)

#undef OW_TURNED
#undef OW_SHORT_ROWS
