/* The rows of nnet.h for one type of elements: OW_T, of which OW_S is the short name. Included once
 * for each; OW_N(name) is a function of that type.
 * A row is copied into the output first, so that all that follows runs over neighbours in the
 * cache, whatever the strides of the inputs are. */

/* to <- the row at `p`, plus the bias at `b` unless that is NULL */
OW_WITHIN void OW_N(ow_take_row)(OW_T *restrict to, const char *p, int64_t st, const char *b,
                                 int64_t bst, int64_t n)
{
    const int64_t size = sizeof(OW_T);
    if (b == NULL && st == size)
        memcpy(to, p, (size_t)(n * size));
    else if (b == NULL)
        for (int64_t j = 0; j < n; j++)
            to[j] = *(const OW_T *)(p + j * st);
    else if (st == size && bst == size)
        for (int64_t j = 0; j < n; j++)
            to[j] = ((const OW_T *)p)[j] + ((const OW_T *)b)[j];
    else
        for (int64_t j = 0; j < n; j++)
            to[j] = *(const OW_T *)(p + j * st) + *(const OW_T *)(b + j * bst);
}

/* Accumulators of a row: four of the widest vectors, so that additions do not wait for each
 * other. */
#define OW_ROW_LANES (256 / (int)sizeof(OW_T))

#include "nnet_short.h"

/* The largest element that is a number. A NaN beside it makes the sum of exponentials NaN. */
OW_WITHIN OW_T OW_N(ow_largest)(const OW_T *x, int64_t n)
{
    OW_T most = -(OW_T)INFINITY;
    int64_t j = 0;
    if (n >= OW_ROW_LANES) {
        OW_T m[OW_ROW_LANES];
        for (int k = 0; k < OW_ROW_LANES; k++)
            m[k] = most;
        for (; j + OW_ROW_LANES <= n; j += OW_ROW_LANES)
            for (int k = 0; k < OW_ROW_LANES; k++)
                m[k] = x[j + k] > m[k] ? x[j + k] : m[k];
        for (int w = OW_ROW_LANES / 2; w; w /= 2)
            for (int k = 0; k < w; k++)
                m[k] = m[k] > m[k + w] ? m[k] : m[k + w];
        most = m[0];
    }
    for (; j < n; j++)
        most = x[j] > most ? x[j] : most;
    return most;
}

OW_WITHIN OW_T OW_N(ow_total)(const OW_T *x, int64_t n)
{
    OW_T total = 0;
    int64_t j = 0;
    if (n >= OW_ROW_LANES) {
        OW_T s[OW_ROW_LANES] = {0};
        for (; j + OW_ROW_LANES <= n; j += OW_ROW_LANES)
            for (int k = 0; k < OW_ROW_LANES; k++)
                s[k] += x[j + k];
        for (int w = OW_ROW_LANES / 2; w; w /= 2)
            for (int k = 0; k < w; k++)
                s[k] += s[k + w];
        total = s[0];
    }
    for (; j < n; j++)
        total += x[j];
    return total;
}

/* row <- its softmax, `m` being its maximum; returns the sum of exponentials of the row less m */
OW_WITHIN OW_T OW_N(ow_softmax_row)(OW_T *row, OW_T m, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        row[j] = OW_N(ow_expneg)(row[j] - m);
    OW_T total = OW_N(ow_total)(row, n), inverse = 1 / total;
    for (int64_t j = 0; j < n; j++)
        row[j] *= inverse;
    return total;
}

static void OW_N(ow_softmax)(ow_step *s, int64_t first, int64_t end)
{
    ow_slot *x = s->in[0], *b = s->nin > 1 ? s->in[1] : NULL, *z = s->out[0];
    int64_t n = z->shape[1];
    first = OW_N(ow_short_softmax)(s, first, end, n);
    for (int64_t i = first; i < end; i++) {
        OW_T *row = (OW_T *)z->data + i * n;
        OW_N(ow_take_row)(row, x->data + i * x->strides[0], x->strides[1], b ? b->data : NULL,
                          b ? b->strides[0] : 0, n);
        OW_N(ow_softmax_row)(row, OW_N(ow_largest)(row, n), n);
    }
}

static void OW_N(ow_logsoftmax)(ow_step *s, int64_t first, int64_t end)
{
    ow_slot *x = s->in[0], *z = s->out[0];
    int64_t n = z->shape[1];
    OW_T e[OW_ROW_LANES];
    first = OW_N(ow_short_logsoftmax)(s, first, end, n);
    for (int64_t i = first; i < end; i++) {
        OW_T *row = (OW_T *)z->data + i * n, total = 0;
        OW_N(ow_take_row)(row, x->data + i * x->strides[0], x->strides[1], NULL, 0, n);
        OW_T m = OW_N(ow_largest)(row, n);
        for (int64_t from = 0; from < n; from += OW_ROW_LANES) {
            int64_t k = n - from < OW_ROW_LANES ? n - from : OW_ROW_LANES;
            for (int64_t j = 0; j < k; j++)
                e[j] = OW_N(ow_expneg)(row[from + j] -= m);
            total += OW_N(ow_total)(e, k);
        }
        total = OW_LOG(total);
        for (int64_t j = 0; j < n; j++)
            row[j] -= total;
    }
}

static void OW_N(ow_softmax_grad)(ow_step *s, int64_t first, int64_t end)
{
    ow_slot *dy = s->in[0], *sm = s->in[1], *z = s->out[0];
    int64_t n = z->shape[1], gst = dy->shape[1] == 1 ? 0 : dy->strides[1], st = sm->strides[1];
    first = OW_N(ow_short_softmax_grad)(s, first, end, n);
    for (int64_t i = first; i < end; i++) {
        OW_T *restrict row = (OW_T *)z->data + i * n;
        const char *p = sm->data + i * sm->strides[0];
        const char *g = dy->data + (dy->shape[0] == 1 ? 0 : i * dy->strides[0]);
        if (gst == sizeof(OW_T) && st == sizeof(OW_T))
            for (int64_t j = 0; j < n; j++)
                row[j] = ((const OW_T *)g)[j] * ((const OW_T *)p)[j];
        else
            for (int64_t j = 0; j < n; j++)
                row[j] = *(const OW_T *)(g + j * gst) * *(const OW_T *)(p + j * st);
        OW_T total = OW_N(ow_total)(row, n);
        if (st == sizeof(OW_T))
            for (int64_t j = 0; j < n; j++)
                row[j] -= total * ((const OW_T *)p)[j];
        else
            for (int64_t j = 0; j < n; j++)
                row[j] -= total * *(const OW_T *)(p + j * st);
    }
}

/* The position of the largest element `m`; as numpy has it, 0 where an element is NaN, since the
 * row less its maximum then is NaN from its first element on. */
static inline int64_t OW_N(ow_position)(const OW_T *x, OW_T m, int64_t n)
{
    int64_t at = 0;
    while (at < n && x[at] != m)
        at++;
    for (int64_t j = 0; j < n; j++)
        if (x[j] != x[j])
            return 0;
    return at < n ? at : 0;
}

static void OW_N(ow_xent)(ow_step *s, int64_t first, int64_t end)
{
    ow_slot *x = s->in[0], *b = s->in[1], *labels = s->in[2];
    ow_slot *nll = s->out[0], *sm = s->out[1], *best = s->out[2];
    int64_t n = sm->shape[1];
    first = OW_N(ow_short_xent)(s, first, end, n);
    for (int64_t i = first; i < end; i++) {
        OW_T *row = (OW_T *)sm->data + i * n;
        OW_N(ow_take_row)(row, x->data + i * x->strides[0], x->strides[1], b->data, b->strides[0],
                          n);
        OW_T m = OW_N(ow_largest)(row, n), moved = row[ow_label(labels, i)] - m;
        ow_put_int(best, i, OW_N(ow_position)(row, m, n));
        ((OW_T *)nll->data)[i] = OW_LOG(OW_N(ow_softmax_row)(row, m, n)) - moved;
    }
}

static void OW_N(ow_xent_dx)(ow_step *s, int64_t first, int64_t end)
{
    ow_slot *dy = s->in[0], *sm = s->in[1], *labels = s->in[2], *z = s->out[0];
    int64_t n = z->shape[1], st = sm->strides[1];
    int64_t step = ow_size(dy) == 1 ? 0 : dy->strides[0];
    for (int64_t i = first; i < end; i++) {
        OW_T *restrict row = (OW_T *)z->data + i * n;
        const OW_T g = *(const OW_T *)(dy->data + i * step);
        const char *p = sm->data + i * sm->strides[0];
        if (st == sizeof(OW_T))
            for (int64_t j = 0; j < n; j++)
                row[j] = g * ((const OW_T *)p)[j];
        else
            for (int64_t j = 0; j < n; j++)
                row[j] = g * *(const OW_T *)(p + j * st);
        row[ow_label(labels, i)] -= g;
    }
}

static void OW_N(ow_onehot)(ow_step *s, int64_t first, int64_t end)
{
    ow_slot *p = s->in[0], *labels = s->in[1], *z = s->out[0];
    for (int64_t i = first; i < end; i++) {
        const char *at = p->data + i * p->strides[0] + ow_label(labels, i) * p->strides[1];
        ((OW_T *)z->data)[i] = -OW_LOG(*(const OW_T *)at);
    }
}

static void OW_N(ow_onehot_grad)(ow_step *s, int64_t first, int64_t end)
{
    ow_slot *g = s->in[0], *p = s->in[1], *labels = s->in[2], *z = s->out[0];
    int64_t n = z->shape[1], step = ow_size(g) == 1 ? 0 : g->strides[0];
    memset(z->data + first * n * z->itemsize, 0, (size_t)((end - first) * n * z->itemsize));
    for (int64_t i = first; i < end; i++) {
        int64_t y = ow_label(labels, i);
        const char *at = p->data + i * p->strides[0] + y * p->strides[1];
        ((OW_T *)z->data)[i * n + y] = -*(const OW_T *)(g->data + i * step) / *(const OW_T *)at;
    }
}

#undef OW_ROW_LANES
