/* The loss of connectionist temporal classification, by dynamic programming over log-
 * probabilities. */
#ifndef OW_CTC_H
#define OW_CTC_H

#include "labels.h"
#include "simd.h"

/* in: activations (steps, batch, symbols), labels (batch, label), steps of each sequence;
 * out: costs (batch)[, gradients like the activations] */

typedef struct ow_ctc_job {
    ow_step *s;
    int64_t chunks, bytes; /* chunks of sequences; scratch memory of each */
} ow_ctc_job;

static inline ow_slot ow_ctc_row(const ow_slot *labels, int64_t b)
{
    ow_slot row = *labels;
    row.data = labels->data + b * labels->strides[0];
    row.strides[0] = labels->strides[1];
    return row;
}

static inline double ow_ctc_get(const ow_slot *x, int64_t t, int64_t b, int64_t k)
{
    const char *p = x->data + t * x->strides[0] + b * x->strides[1] + k * x->strides[2];
    return x->itemsize == sizeof(float) ? (double)*(const float *)p : *(const double *)p;
}

static inline void ow_ctc_put(ow_slot *out, int64_t i, double value)
{
    if (out->itemsize == sizeof(float))
        ((float *)out->data)[i] = (float)value;
    else
        ((double *)out->data)[i] = value;
}

/* log(exp(a) + exp(b)) */
static inline double ow_ctc_add(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

/* Fails unless the inputs fit together. */
static int ow_ctc_check(ow_step *s)
{
    const ow_slot *x = s->in[0], *labels = s->in[1], *lengths = s->in[2];
    for (int64_t b = 0; b < x->shape[1]; b++) {
        ow_slot row = ow_ctc_row(labels, b);
        int64_t n = ow_label(lengths, b);
        if (n < 0 || n > x->shape[0])
            return OW_FAIL(s, OW_VALUE_ERROR, "input_lengths must be 0 to %lld, got %lld",
                           (long long)x->shape[0], (long long)n);
        for (int64_t i = 0; i < labels->shape[1]; i++) {
            int64_t k = ow_label(&row, i);
            if (k == 0)
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "labels must not be 0, the blank; negative numbers are padding");
            if (k >= x->shape[2])
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "labels must be less than %lld, the symbols; got %lld",
                               (long long)x->shape[2], (long long)k);
        }
    }
    return OW_OK;
}

/* Set the cost and the gradient of sequence `b`. */
static void ow_ctc_sequence(ow_step *s, int64_t b, char *memory)
{
    const ow_slot *x = s->in[0], *labels = s->in[1];
    ow_slot *gradient = s->nout > 1 ? s->out[1] : NULL;
    const int64_t all = x->shape[0], batch = x->shape[1], symbols = x->shape[2];
    const int64_t steps = ow_label(s->in[2], b), most = 2 * labels->shape[1] + 1;
    double *forward = (double *)memory;  /* log-probability of each state, by step */
    double *norm = forward + all * most; /* log of the sum of exponentials, by step */
    double *backward = norm + all;       /* of the step, and of the one after it */
    double *row = backward + 2 * most;   /* the gradient of a step */
    int64_t *state =
        (int64_t *)(row + symbols); /* the symbol of each state: blanks between labels */

    ow_slot given = ow_ctc_row(labels, b);
    int64_t n = 0, needed = 0;
    state[n++] = 0;
    for (int64_t i = 0; i < labels->shape[1]; i++) {
        int64_t k = ow_label(&given, i);
        if (k < 0)
            continue;
        needed += 1 + (n > 1 && state[n - 2] == k);
        state[n++] = k;
        state[n++] = 0;
    }
    int possible = steps > 0 && needed <= steps;
    ow_ctc_put(s->out[0], b, 0);
    for (int64_t t = 0; gradient && t < all; t++)
        if (!possible || t >= steps)
            for (int64_t k = 0; k < symbols; k++)
                ow_ctc_put(gradient, (t * batch + b) * symbols + k, 0);
    if (!possible)
        return;

    for (int64_t t = 0; t < steps; t++) {
        double high = -INFINITY, sum = 0, *now = forward + t * most, *before = now - most;
        for (int64_t k = 0; k < symbols; k++) { /* gcc 12 fails at a loop of fmax on ARM */
            double value = ow_ctc_get(x, t, b, k);
            high = value > high ? value : high;
        }
        for (int64_t k = 0; k < symbols; k++)
            sum += exp(ow_ctc_get(x, t, b, k) - high);
        norm[t] = high + log(sum);
        for (int64_t i = 0; i < n; i++) {
            double p = i < 2 && t == 0 ? 0 : -INFINITY;
            if (t > 0) {
                p = before[i];
                if (i > 0)
                    p = ow_ctc_add(p, before[i - 1]);
                if (i > 1 && state[i] && state[i] != state[i - 2])
                    p = ow_ctc_add(p, before[i - 2]);
            }
            now[i] = p + ow_ctc_get(x, t, b, state[i]) - norm[t];
        }
    }
    const double *last = forward + (steps - 1) * most;
    double total = n > 1 ? ow_ctc_add(last[n - 1], last[n - 2]) : last[0];
    ow_ctc_put(s->out[0], b, -total);

    for (int64_t t = steps - 1; gradient && t >= 0; t--) {
        double *now = backward + (t & 1) * most, *after = backward + (~t & 1) * most;
        for (int64_t i = n - 1; i >= 0; i--) {
            double p = i >= n - 2 && t == steps - 1 ? 0 : -INFINITY;
            if (t < steps - 1) {
                p = after[i];
                if (i + 1 < n)
                    p = ow_ctc_add(p, after[i + 1]);
                if (i + 2 < n && state[i + 2] && state[i + 2] != state[i])
                    p = ow_ctc_add(p, after[i + 2]);
            }
            now[i] = p;
        }
        for (int64_t k = 0; k < symbols; k++)
            row[k] = exp(ow_ctc_get(x, t, b, k) - norm[t]);
        for (int64_t i = 0; i < n; i++) {
            row[state[i]] -= exp(forward[t * most + i] + now[i] - total);
            now[i] += ow_ctc_get(x, t, b, state[i]) - norm[t]; /* as the step before reads it */
        }
        for (int64_t k = 0; k < symbols; k++)
            ow_ctc_put(gradient, (t * batch + b) * symbols + k, row[k]);
    }
}

static void ow_ctc_chunk(void *arg, int64_t chunk)
{
    const ow_ctc_job *j = arg;
    int64_t end, b = ow_chunk_range(chunk, j->chunks, j->s->in[0]->shape[1], 1, &end);
    for (; b < end; b++)
        ow_ctc_sequence(j->s, b, j->s->scratch + chunk * j->bytes);
}

static int ow_ctc_prep(ow_step *s)
{
    const ow_slot *x = s->in[0], *labels = s->in[1], *lengths = s->in[2];
    if (labels->shape[0] != x->shape[1] || lengths->shape[0] != x->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "activations are of %lld sequences, labels of %lld, input_lengths of %lld",
                       (long long)x->shape[1], (long long)labels->shape[0],
                       (long long)lengths->shape[0]);
    ow_set_shape(s->out[0], 1, x->shape + 1);
    int rc = ow_ensure(s, s->out[0]);
    if (rc || s->nout == 1)
        return rc;
    ow_set_shape(s->out[1], 3, x->shape);
    return ow_ensure(s, s->out[1]);
}

static int ow_ctc_run(ow_step *s)
{
    int rc = ow_ctc_check(s);
    if (rc)
        return rc;
    const ow_slot *x = s->in[0];
    const int64_t steps = x->shape[0], symbols = x->shape[2];
    const int64_t most = 2 * s->in[1]->shape[1] + 1;
    double work = (double)x->shape[1] * (double)steps * (60.0 * most + 20.0 * symbols);
    ow_ctc_job job = {s, ow_chunks(work), 8 * (steps * most + steps + 3 * most + symbols)};
    if (!ow_scratch(s, ow_mul_size(job.chunks, job.bytes)))
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes",
                       (long long)ow_mul_size(job.chunks, job.bytes));
    ow_parallel(ow_ctc_chunk, &job, job.chunks);
    return OW_OK;
}

#endif
