/* Elementwise work on what a convolution gives, or its gradient by images.
 * A step of this kind runs a step of a convolution that writes to one of its outputs. As soon as
 * some results of a channel are complete, while they are in the first caches, the loop of the
 * elementwise work runs on them: from the memory of a block of sums, so that nothing waits for what
 * was written, or in place. Convolutions that do not call it (ow_conv_finish_by) are followed by a
 * pass over all results. */
#ifndef OW_CONV_EPILOGUE_H
#define OW_CONV_EPILOGUE_H

#include "conv_unshared.h"
#include "elemwise.h"
#include "step_params.h"

/* in the order of _FOLLOWED in convsteps.py */
enum {
    OW_THEN_CONV,
    OW_THEN_IMAGES,
    OW_THEN_GROUPS,
    OW_THEN_GROUPS_IMAGES,
    OW_THEN_UNSHARED,
    OW_THEN_UNSHARED_IMAGES
};

static const ow_fn ow_then_runs[] = {ow_conv_run,          ow_conv_images_run,
                                     ow_conv_groups_run,   ow_conv_groups_images_run,
                                     ow_conv_unshared_run, ow_conv_unshared_images_run};

/* The operands of the loop: its outputs, then its inputs. */
struct ow_epilogue {
    ow_loop loop;
    const void *ctx;
    int nout, n, input; /* which input the result is */
    int gathers;        /* whether elements of some inputs do not lie side by side */
    int64_t channels, places, out[3];
    char *data[OW_MAXARG];
    int64_t at[OW_MAXARG][5];  /* bytes between images, channels, and along axes */
    int64_t st[OW_MAXARG + 1]; /* between the elements of one channel, for the loop */
    int size[OW_MAXARG], gathered[OW_MAXARG];
};

/* Copy the elements of an operand at places `first` to `first + n` of a channel that begins at
 * `from`. */
static void ow_then_gather(const ow_epilogue *t, int i, const char *from, int64_t first, int64_t n,
                           char *to)
{
    const int64_t *at = t->at[i] + 2;
    for (int64_t place = first; place < first + n;) {
        const int64_t x = place % t->out[2], row = place / t->out[2], left = t->out[2] - x;
        const int64_t some = first + n - place < left ? first + n - place : left;
        char *copy[2] = {to, (char *)from + row / t->out[1] * at[0] + row % t->out[1] * at[1] +
                                 x * at[2]};
        const int64_t st[2] = {t->size[i], at[2]};
        ow_copy_run(copy, st, some, t->size[i]);
        to += some * t->size[i];
        place += some;
    }
}

/* An ow_finish_fn. */
static void ow_then_finish(const ow_epilogue *t, int64_t image, int64_t channel, int64_t first,
                           int64_t n, const char *from)
{
    char *p[OW_MAXARG], *q[OW_MAXARG];
    for (int i = 0; i < t->n; i++)
        p[i] = t->data[i] + image * t->at[i][0] + channel * t->at[i][1] +
               (t->gathered[i] ? 0 : first * t->st[i]);
    p[t->nout + t->input] = (char *)from;
    /* what the next channel reads, since that begins elsewhere in memory */
    for (int i = t->nout; i < t->n; i++)
        if (i != t->nout + t->input && t->st[i] && !t->gathered[i])
            for (int64_t at = 0; at < n * t->st[i]; at += 64)
                __builtin_prefetch(p[i] + t->at[i][1] + at);
    if (!t->gathers) {
        t->loop(t->ctx, p, t->st, n);
        return;
    }
    ow_operand_copy *const operand = ow_operand_copies();
    for (int64_t done = 0; done < n; done += OW_CHUNK) {
        const int64_t m = n - done < OW_CHUNK ? n - done : OW_CHUNK;
        for (int i = 0; i < t->n; i++) {
            q[i] = t->gathered[i] ? operand[i] : p[i] + done * t->st[i];
            if (t->gathered[i])
                ow_then_gather(t, i, p[i], first + done, m, q[i]);
        }
        t->loop(t->ctx, q, t->st, m);
    }
}

/* Describe an operand; the loop gets `still` ones as one number for each channel. */
static void ow_then_operand(ow_epilogue *t, int i, const ow_slot *x, int64_t mask)
{
    const int axes = x->ndim - 2, still = mask >> 2 == (1 << axes) - 1;
    int64_t expected = x->itemsize;
    t->data[i] = x->data;
    t->size[i] = x->itemsize;
    t->st[i] = still ? 0 : x->itemsize;
    t->at[i][2] = t->at[i][3] = 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        const int64_t stride = mask >> d & 1 ? 0 : x->strides[d];
        t->at[i][d < 2 ? d : d + 3 - axes] = stride;
        if (d < 2 || still)
            continue;
        const int64_t length = t->out[d + 1 - axes]; /* 1 along an axis that is missing */
        if (length != 1 && stride != expected)
            t->gathered[i] = t->gathers = 1;
        expected *= length;
    }
}

typedef struct ow_then_job {
    const ow_epilogue *t;
    const char *result;
    int64_t rows, chunks, item;
} ow_then_job;

static void ow_then_unit(void *arg, int64_t chunk)
{
    const ow_then_job *j = arg;
    int64_t end, row = ow_chunk_range(chunk, j->chunks, j->rows, 1, &end);
    for (; row < end; row++)
        ow_then_finish(j->t, row / j->t->channels, row % j->t->channels, 0, j->t->places,
                       j->result + row * j->t->places * j->item);
}

/* The lengths of what the step of a convolution gives. */
static int ow_then_lengths(ow_step *s, int64_t kind, int64_t *result)
{
    ow_conv c;
    int64_t image[5], kernel[8];
    switch (kind) {
    case OW_THEN_CONV:
    case OW_THEN_GROUPS:
        return ow_conv_lengths_forward(s, &c, result);
    case OW_THEN_UNSHARED:
        ow_conv_lengths(s->in[0], image);
        ow_own_lengths(s->in[1], kernel);
        return ow_conv_plan(s, &c, image, kernel, result);
    default:
        return ow_conv_plan_images(s, &c, result);
    }
}

/* in: those of the convolution, and the other inputs of the loop */
static int ow_conv_then_run(ow_step *s)
{
    const ow_conv_then_params *p = s->params;
    const int64_t *masks = ow_conv_then_masks(p);
    const int first = (int)p->output, count = (int)p->masks.count, others = (int)p->others;
    ow_epilogue t = {.loop = s->loop,
                     .ctx = s->ctx,
                     .nout = s->nout,
                     .n = s->nout + count,
                     .input = (int)p->input};
    ow_step conv = *s, checked = *s;
    int64_t result[5], shape[OW_MAXDIM];
    ow_slot *in[OW_MAXARG];
    conv.params = &p->convolution;
    conv.out = s->out + first;
    conv.nin = others;
    conv.nout = 1;
    conv.finish = ow_then_finish;
    conv.then = &t;
    int rc = ow_then_lengths(&conv, p->of, result);
    for (int k = 0; k < s->nout && !rc; k++) {
        ow_conv_set_shape(s->out[k], result);
        rc = ow_ensure(s, s->out[k]);
    }
    for (int i = 0, other = others; i < count; i++)
        in[i] = i == p->input ? s->out[first] : s->in[other++];
    checked.in = in;
    checked.nin = count;
    rc = rc ? rc : ow_common_shape(&checked, s->out[first]->ndim, masks, shape);
    if (rc)
        return rc;
    t.channels = result[1];
    t.places = result[2] * result[3] * result[4];
    memcpy(t.out, result + 2, sizeof(t.out));
    for (int k = 0; k < s->nout; k++)
        ow_then_operand(&t, k, s->out[k], 0);
    for (int i = 0; i < count; i++)
        ow_then_operand(&t, s->nout + i, in[i], masks[i]);
    rc = ow_then_runs[p->of](&conv);
    s->scratch = conv.scratch;
    s->scratch_cap = conv.scratch_cap;
    s->algorithm = conv.algorithm;
    s->why = conv.why;
    if (rc || conv.finishes || t.places == 0)
        return rc;
    ow_then_job job = {&t, s->out[first]->data, result[0] * result[1], 1, s->out[first]->itemsize};
    job.chunks = ow_at_most(ow_chunks(p->nanoseconds * (double)ow_size(s->out[first])), job.rows);
    ow_parallel(ow_then_unit, &job, job.rows ? job.chunks : 0);
    return OW_OK;
}

#endif
