/* Steps on the rows of matrices: softmax, and the cross entropy of a class for each row. */
#ifndef OW_NNET_H
#define OW_NNET_H

#include "runtime.h"
#include "scalar.h"

/* --- labels ------------------------------------------------------------------------------------- */

/* Set `y` to the label of row `i`; fails unless it names one of `n` columns of the matrix `name`. */
static int ow_label(ow_step *s, const ow_cell *labels, int64_t i, int64_t n, const char *name,
                    int64_t *y)
{
    ow_cell item = *labels;
    item.data = labels->data + i * labels->strides[0];
    *y = ow_int(&item);
    if (*y < 0 || *y >= n)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "y_i value out of bounds: label %lld is %lld, but %s has %lld columns, one "
                       "for each class",
                       (long long)i, (long long)*y, name, (long long)n);
    return OW_OK;
}

static int ow_check_rows(ow_step *s, const ow_cell *labels, const ow_cell *matrix, const char *name)
{
    if (labels->shape[0] != matrix->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "%s has %lld rows, but there are %lld labels", name,
                       (long long)matrix->shape[0], (long long)labels->shape[0]);
    return OW_OK;
}

/* Fails unless `g` has an element for each row of a matrix, or one for all. */
static int ow_check_gradient(ow_step *s, const ow_cell *g, const ow_cell *matrix, const char *name,
                             const char *of)
{
    if (ow_size(g) != 1 && g->shape[0] != matrix->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "%s has %lld elements, but %s has %lld rows", name,
                       (long long)ow_size(g), of, (long long)matrix->shape[0]);
    return OW_OK;
}

static inline void ow_put_int(ow_cell *c, int64_t i, int64_t value)
{
    switch (c->itemsize) {
    case 1:
        ((int8_t *)c->data)[i] = (int8_t)value;
        break;
    case 2:
        ((int16_t *)c->data)[i] = (int16_t)value;
        break;
    case 4:
        ((int32_t *)c->data)[i] = (int32_t)value;
        break;
    default:
        ((int64_t *)c->data)[i] = value;
    }
}

/* --- rows ----------------------------------------------------------------------------------------- */

#define OW_GLUE_(name, s) name##_##s
#define OW_GLUE(name, s) OW_GLUE_(name, s)
#define OW_N(name) OW_GLUE(name, OW_S)

#define OW_T float
#define OW_S f32
#define OW_LOG logf
#include "nnet_rows.h"
#undef OW_T
#undef OW_S
#undef OW_LOG

#define OW_T double
#define OW_S f64
#define OW_LOG log
#include "nnet_rows.h"
#undef OW_T
#undef OW_S
#undef OW_LOG

#define OW_OF_BOTH(NAME)                                                                           \
    static int NAME##_run(ow_step *s)                                                              \
    {                                                                                              \
        return s->out[0]->itemsize == sizeof(float) ? NAME##_f32(s) : NAME##_f64(s);               \
    }
OW_OF_BOTH(ow_softmax)
OW_OF_BOTH(ow_logsoftmax)
OW_OF_BOTH(ow_softmax_grad)
OW_OF_BOTH(ow_xent)
OW_OF_BOTH(ow_xent_dx)
OW_OF_BOTH(ow_onehot)
OW_OF_BOTH(ow_onehot_grad)

/* --- shapes --------------------------------------------------------------------------------------- */

static int ow_prep_like(ow_step *s, int output, const ow_cell *model)
{
    ow_set_shape(s->out[output], model->ndim, model->shape);
    return ow_ensure(s, s->out[output]);
}

static int ow_check_bias(ow_step *s)
{
    ow_cell *x = s->in[0], *b = s->in[1];
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
    ow_cell *dy = s->in[0], *sm = s->in[1];
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
    ow_cell *x = s->in[0], *labels = s->in[2];
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
