/* Steps on the rows of matrices: softmax, and the cross entropy of a class for each row. */
#ifndef OW_NNET_H
#define OW_NNET_H

#include "labels.h"
#include "simd.h"

/* --- labels ----------------------------------------------------------------------------------- */

/* Fails unless every label names one of the columns of the matrix, which is called `name`. */
static int ow_check_labels(ow_step *s, const ow_slot *labels, const ow_slot *matrix,
                           const char *name)
{
    int64_t n = matrix->shape[1];
    for (int64_t i = 0; i < matrix->shape[0]; i++) {
        int64_t y = ow_label(labels, i);
        if (y < 0 || y >= n)
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "y_i value out of bounds: label %lld is %lld, but %s has %lld columns, "
                           "one for each class",
                           (long long)i, (long long)y, name, (long long)n);
    }
    return OW_OK;
}

static int ow_check_rows(ow_step *s, const ow_slot *labels, const ow_slot *matrix, const char *name)
{
    if (labels->shape[0] != matrix->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "%s has %lld rows, but there are %lld labels", name,
                       (long long)matrix->shape[0], (long long)labels->shape[0]);
    return OW_OK;
}

/* Fails unless `g` has an element for each row of a matrix, or one for all. */
static int ow_check_gradient(ow_step *s, const ow_slot *g, const ow_slot *matrix, const char *name,
                             const char *of)
{
    if (ow_size(g) != 1 && g->shape[0] != matrix->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "%s has %lld elements, but %s has %lld rows", name,
                       (long long)ow_size(g), of, (long long)matrix->shape[0]);
    return OW_OK;
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct ow_rows_job {
    ow_rows_fn fn;
    ow_step *s;
    int64_t rows, chunks;
} ow_rows_job;

static void ow_rows_chunk(void *arg, int64_t k)
{
    const ow_rows_job *j = arg;
    int64_t end, first = ow_chunk_range(k, j->chunks, j->rows, 1, &end);
    if (first < end)
        j->fn(j->s, first, end);
}

/* Call a function on all rows of `like`, in chunks; `ns`: about what an element of f64 takes. */
static int ow_share_rows(ow_step *s, const ow_rows_fn fn[2], const ow_slot *like, double ns)
{
    int is_f32 = s->out[0]->itemsize == sizeof(float);
    double work = (double)ow_size(like) * (is_f32 ? ns / 2 : ns);
    ow_rows_job job = {fn[!is_f32], s, like->shape[0], ow_chunks(work)};
    ow_parallel(ow_rows_chunk, &job, job.chunks);
    return OW_OK;
}

static int ow_softmax_run(ow_step *s)
{
    return ow_share_rows(s, ow_kernels->softmax, s->out[0], 1.6);
}

static int ow_logsoftmax_run(ow_step *s)
{
    return ow_share_rows(s, ow_kernels->logsoftmax, s->out[0], 1.6);
}

static int ow_softmax_grad_run(ow_step *s)
{
    return ow_share_rows(s, ow_kernels->softmax_grad, s->out[0], 0.5);
}

static int ow_xent_run(ow_step *s)
{
    int rc = ow_check_labels(s, s->in[2], s->in[0], "x");
    return rc ? rc : ow_share_rows(s, ow_kernels->xent, s->out[1], 2);
}

static int ow_xent_dx_run(ow_step *s)
{
    int rc = ow_check_labels(s, s->in[2], s->in[1], "sm");
    return rc ? rc : ow_share_rows(s, ow_kernels->xent_dx, s->out[0], 0.3);
}

static int ow_onehot_run(ow_step *s)
{
    int rc = ow_check_labels(s, s->in[1], s->in[0], "coding_dist");
    return rc ? rc : ow_share_rows(s, ow_kernels->onehot, s->out[0], 10);
}

static int ow_onehot_grad_run(ow_step *s)
{
    int rc = ow_check_labels(s, s->in[2], s->in[1], "coding_dist");
    return rc ? rc : ow_share_rows(s, ow_kernels->onehot_grad, s->out[0], 0.3);
}

/* --- shapes ----------------------------------------------------------------------------------- */

static int ow_prep_like(ow_step *s, int output, const ow_slot *model)
{
    ow_set_shape(s->out[output], model->ndim, model->shape);
    return ow_ensure(s, s->out[output]);
}

static int ow_check_bias(ow_step *s)
{
    ow_slot *x = s->in[0], *b = s->in[1];
    if (b->shape[0] != x->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "b has %lld elements, but x has %lld columns: (%lld, %lld)",
                       (long long)b->shape[0], (long long)x->shape[1], (long long)x->shape[0],
                       (long long)x->shape[1]);
    return OW_OK;
}

/* in: x[, b] */
static int ow_softmax_prep(ow_step *s)
{
    int rc = s->nin > 1 ? ow_check_bias(s) : OW_OK;
    return rc ? rc : ow_prep_like(s, 0, s->in[0]);
}

/* in: dy, sm. dy broadcasts. */
static int ow_softmax_grad_prep(ow_step *s)
{
    ow_slot *dy = s->in[0], *sm = s->in[1];
    for (int d = 0; d < 2; d++)
        if (dy->shape[d] != 1 && dy->shape[d] != sm->shape[d])
            return OW_FAIL(s, OW_VALUE_ERROR,
                           "dy has length %lld along dimension %d, but sm has %lld",
                           (long long)dy->shape[d], d, (long long)sm->shape[d]);
    return ow_prep_like(s, 0, sm);
}

/* in: x, b, labels; out: cross entropy, softmax, position of the maximum */
static int ow_xent_prep(ow_step *s)
{
    ow_slot *x = s->in[0], *labels = s->in[2];
    int rc = ow_check_bias(s);
    rc = rc ? rc : ow_check_rows(s, labels, x, "x");
    rc = rc ? rc : ow_prep_like(s, 0, labels);
    rc = rc ? rc : ow_prep_like(s, 1, x);
    return rc ? rc : ow_prep_like(s, 2, labels);
}

/* in: dy, sm, labels */
static int ow_xent_dx_prep(ow_step *s)
{
    int rc = ow_check_rows(s, s->in[2], s->in[1], "sm");
    rc = rc ? rc : ow_check_gradient(s, s->in[0], s->in[1], "dy", "sm");
    return rc ? rc : ow_prep_like(s, 0, s->in[1]);
}

/* in: probabilities, labels */
static int ow_onehot_prep(ow_step *s)
{
    int rc = ow_check_rows(s, s->in[1], s->in[0], "coding_dist");
    return rc ? rc : ow_prep_like(s, 0, s->in[1]);
}

/* in: gradient by the cross entropy, probabilities, labels */
static int ow_onehot_grad_prep(ow_step *s)
{
    int rc = ow_check_rows(s, s->in[2], s->in[1], "coding_dist");
    rc = rc ? rc : ow_check_gradient(s, s->in[0], s->in[1], "g_y", "coding_dist");
    return rc ? rc : ow_prep_like(s, 0, s->in[1]);
}

#endif
