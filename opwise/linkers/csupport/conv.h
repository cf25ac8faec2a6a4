/* Convolutions and their gradients.
 * Here are the steps of convolutions and of gradients by images, and the algorithm "scatter" of the
 * latter: products of kernels with blocks of the gradient by the result, which are added to the
 * image. The other algorithms are in conv_forward.h, gradients by kernels in conv_kernels.h. Images
 * have any strides. Two spatial axes are three of which the first has length 1. */
#ifndef OW_CONV_H
#define OW_CONV_H

#include "conv_measure.h"
#include "step_params.h"

/* Rows of a block of a gradient by images that are computed before they are added to the image. */
#define OW_CONV_ROWS 96

/* --- what the steps share --------------------------------------------------------------------- */

typedef struct ow_conv_job {
    const ow_conv *c;
    int64_t parts; /* of one group of one image, or of one group */
    int64_t part;  /* how many places or elements each has */
    int failed;
} ow_conv_job;

static char *ow_conv_memory(const ow_conv *c, ow_conv_job *job, ow_run **runs)
{
    const int64_t item = c->f64 ? 8 : 4, block = (OW_CONV_TERMS + OW_CONV_ROWS) * c->most * item;
    const int64_t most = c->most > OW_CONV_TERMS ? c->most : OW_CONV_TERMS;
    char *memory = ow_alloc(block + most * (int64_t)sizeof(ow_run));
    if (memory == NULL)
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    *runs = (ow_run *)(memory + block);
    return memory;
}

/* Share `units` of work. */
static int ow_conv_share(ow_step *s, ow_conv_job *job, ow_task fn, int64_t units)
{
    ow_parallel(fn, job, units);
    if (job->failed)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate blocks of a convolution");
    return OW_OK;
}

/* Some channels of one group of one image. */
static void ow_conv_by_images(void *arg, int64_t unit)
{
    ow_conv_job *job = arg;
    const ow_conv *c = job->c;
    const int64_t item = c->f64 ? 8 : 4, taps = c->elements / c->channels;
    const int64_t g = unit / job->parts % c->groups, b = unit / job->parts / c->groups;
    const int64_t channel = unit % job->parts * job->part;
    const int64_t some = c->channels - channel < job->part ? c->channels - channel : job->part;
    const int64_t first = channel * taps, end = first + some * taps;
    ow_run *runs;
    char *packed = ow_conv_memory(c, job, &runs);
    if (packed == NULL)
        return;
    char *z = packed + OW_CONV_TERMS * c->most * item;
    char *image = c->pixels + b * c->at[0] + g * c->channels * c->at[1];
    const char *kernel = c->kernels + g * c->outputs * c->elements * item;
    const char *result = c->results + (b * c->groups + g) * c->outputs * c->places * item;
    memset(image + channel * c->at[1], 0, (size_t)(some * c->at[1]));
    for (int64_t j = 0; j < c->places; j += c->most) {
        const int64_t n = c->places - j < c->most ? c->places - j : c->most;
        const int64_t nruns = ow_conv_runs(c, j, j + n, runs);
        for (int64_t o = 0; o < c->outputs; o += OW_CONV_TERMS) {
            const int64_t k = c->outputs - o < OW_CONV_TERMS ? c->outputs - o : OW_CONV_TERMS;
            ow_product q = {
                0, n, k,           1.0,       0.0, NULL,    result + (o * c->places + j) * item,
                z, 1, c->elements, c->places, 1,   c->most, NULL};
            ow_kernels->pack[c->f64](&q, packed);
            q.packed = packed;
            for (int64_t e = first; e < end; e += OW_CONV_ROWS) {
                q.m = end - e < OW_CONV_ROWS ? end - e : OW_CONV_ROWS;
                q.x = kernel + (o * c->elements + e) * item;
                ow_kernels->gemm[c->f64](&q, 0, q.m, 0, n);
                for (int64_t i = 0; i < q.m; i++) {
                    const ow_tap t = ow_conv_tap(c, e + i);
                    const char *row = z + i * c->most * item;
                    for (const ow_run *r = runs; r < runs + nruns; r++)
                        if (c->f64)
                            ow_conv_add_double(c, &t, r, image, (const double *)row + r->column);
                        else
                            ow_conv_add_float(c, &t, r, image, (const float *)row + r->column);
                }
            }
        }
    }
    for (int64_t i = channel; c->finish && i < channel + some; i++)
        c->finish(c->then, b, g * c->channels + i, 0, c->image[0] * c->image[1] * c->image[2],
                  image + i * c->at[1]);
    ow_free(packed);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* The lengths of an operand as if it had three spatial axes. */
static void ow_conv_lengths(const ow_slot *c, int64_t *lengths)
{
    lengths[0] = c->shape[0];
    lengths[1] = c->shape[1];
    lengths[2] = 1;
    for (int d = 2; d < c->ndim; d++)
        lengths[d + 5 - c->ndim] = c->shape[d];
}

/* Write `count` numbers as a tuple. */
static const char *ow_conv_tuple(const int64_t *numbers, int count, char *text, size_t size)
{
    size_t n = 0;
    for (int d = 0; d < count && n < size; d++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", d ? ", " : "(", (long long)numbers[d]);
    snprintf(text + (n < size ? n : size), n < size ? size - n : 0, ")");
    return text;
}

/* An operand's shape from its lengths. Kernels of their own for each place have `places` axes
 * before the channels. */
static const char *ow_conv_text(const int64_t *lengths, int axes, int places, char *text,
                                size_t size)
{
    int64_t shape[8];
    int n = 0;
    shape[n++] = lengths[0];
    for (int d = 8 - places; d < 8; d++)
        shape[n++] = lengths[d];
    shape[n++] = lengths[1];
    for (int d = 5 - axes; d < 5; d++)
        shape[n++] = lengths[d];
    return ow_conv_tuple(shape, n, text, size);
}

/* The border mode as Python writes it. */
static const char *ow_conv_border_text(const ow_conv_params *p, int axes, char *text, size_t size)
{
    const int64_t *pads = p->pads + 2 * (3 - axes);
    int none = 1;
    for (int d = 0; d < 2 * axes; d++)
        none &= pads[d] == 0;
    if (p->border != OW_BORDER_PADS || none) {
        snprintf(text, size, "'%s'",
                 p->border == OW_BORDER_FULL   ? "full"
                 : p->border == OW_BORDER_HALF ? "half"
                                               : "valid");
        return text;
    }
    size_t n = 0;
    for (int d = 0; d < axes && n < size; d++, pads += 2)
        if (pads[0] == pads[1])
            n += (size_t)snprintf(text + n, size - n, "%s%lld", d ? ", " : "(", (long long)pads[0]);
        else
            n += (size_t)snprintf(text + n, size - n, "%s(%lld, %lld)", d ? ", " : "(",
                                  (long long)pads[0], (long long)pads[1]);
    snprintf(text + (n < size ? n : size), n < size ? size - n : 0, ")");
    return text;
}

/* Describe the convolution of an image with kernels of these lengths; computes those of the
 * result. Kernels that have weights of their own for each place have three lengths more, of
 * these places. */
static int ow_conv_plan(ow_step *s, ow_conv *c, const int64_t *image, const int64_t *kernel,
                        int64_t *result)
{
    const ow_conv_params *p = s->params;
    const int64_t groups = p->groups;
    const int axes = (int)p->axes, places = p->unshared ? axes : 0;
    char of_image[140], of_kernel[200], other[200];
    ow_conv_text(image, axes, 0, of_image, sizeof(of_image));
    ow_conv_text(kernel, axes, places, of_kernel, sizeof(of_kernel));
    if (image[1] % groups || kernel[0] % groups)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "%lld channels and %lld filters cannot be divided into %lld groups",
                       (long long)image[1], (long long)kernel[0], (long long)groups);
    if (kernel[1] * groups != image[1]) {
        other[0] = 0;
        if (groups > 1)
            snprintf(other, sizeof(other), " in %lld groups", (long long)groups);
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "the image has %lld channels%s, so filters need %lld channels, but have %lld: "
            "the shape of the image is %s, that of the filters %s",
            (long long)image[1], other, (long long)(image[1] / groups), (long long)kernel[1],
            of_image, of_kernel);
    }
    int possible = 1;
    result[0] = image[0];
    result[1] = kernel[0];
    for (int d = 0; d < 3; d++) {
        const int64_t reach = (kernel[2 + d] - 1) * p->dilation[d] + 1;
        int64_t before = p->pads[2 * d], behind = p->pads[2 * d + 1];
        if (p->border == OW_BORDER_FULL)
            before = behind = reach - 1;
        else if (p->border == OW_BORDER_HALF)
            before = behind = reach / 2;
        const int64_t room = image[2 + d] + before + behind - reach, step = p->strides[d];
        c->stride[d] = step;
        c->dilation[d] = p->dilation[d];
        c->pad[d] = before;
        c->image[d] = image[2 + d];
        c->kernel[d] = kernel[2 + d];
        c->out[d] = result[2 + d] = (room < 0 ? -((step - 1 - room) / step) : room / step) + 1;
        possible &= result[2 + d] > 0 && kernel[2 + d] > 0;
    }
    if (!possible) {
        char border[200], steps[80], dilation[80];
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "impossible output shape %s: the image has shape %s, the filters %s; each length "
            "is (image + pads - ((filter - 1) * dilation + 1)) // subsample + 1, here with "
            "border_mode %s, subsample %s and dilation %s",
            ow_conv_text(result, axes, 0, other, sizeof(other)), of_image, of_kernel,
            ow_conv_border_text(p, axes, border, sizeof(border)),
            ow_conv_tuple(p->strides + 3 - axes, axes, steps, sizeof(steps)),
            ow_conv_tuple(p->dilation + 3 - axes, axes, dilation, sizeof(dilation)));
    }
    if (places && memcmp(kernel + 5, result + 2, 3 * sizeof(*kernel)) != 0)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "unshared filters have weights for %s places, but the result "
                       "has %s",
                       ow_conv_tuple(kernel + 8 - axes, axes, of_kernel, sizeof(of_kernel)),
                       ow_conv_tuple(result + 5 - axes, axes, other, sizeof(other)));
    c->batch = image[0];
    c->groups = groups;
    c->channels = image[1] / groups;
    c->outputs = kernel[0] / groups;
    c->elements = c->channels * c->kernel[0] * c->kernel[1] * c->kernel[2];
    c->places = c->out[0] * c->out[1] * c->out[2];
    ow_conv_finish_by(s, c, 0);
    c->of_channel = c->elements / (c->channels ? c->channels : 1);
    c->of_output = c->elements;
    c->flip = (int)p->flip;
    c->is_turned = 0;
    c->f64 = s->out[0]->itemsize == 8;
    c->wide = ow_kernels->wide[c->f64];
    c->most = ow_kernels->pack_columns[c->f64];
    return OW_OK;
}

/* A convolution whose gradient by the result is given: that must have its shape. */
static int ow_conv_plan_gradient(ow_step *s, ow_conv *c, const int64_t *image,
                                 const int64_t *kernel, const int64_t *given)
{
    int64_t result[5];
    char texts[4][200];
    const int axes = (int)OW_PARAMS(s, conv)->axes, rc = ow_conv_plan(s, c, image, kernel, result);
    const int places = OW_PARAMS(s, conv)->unshared ? axes : 0;
    if (rc)
        return rc;
    if (memcmp(result, given, sizeof(result)) != 0)
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "the gradient by the result has shape %s, but an image of shape %s and filters "
            "of shape %s give %s",
            ow_conv_text(given, axes, 0, texts[0], sizeof(texts[0])),
            ow_conv_text(image, axes, 0, texts[1], sizeof(texts[1])),
            ow_conv_text(kernel, axes, places, texts[2], sizeof(texts[2])),
            ow_conv_text(result, axes, 0, texts[3], sizeof(texts[3])));
    return OW_OK;
}

/* The lengths of kernels that have weights of their own for each place, followed by those of
 * places. */
static void ow_own_lengths(const ow_slot *kernel, int64_t *lengths)
{
    const int axes = (kernel->ndim - 2) / 2;
    lengths[0] = kernel->shape[0];
    lengths[1] = kernel->shape[1 + axes];
    lengths[2] = lengths[5] = 1;
    for (int d = 0; d < axes; d++) {
        lengths[5 - axes + d] = kernel->shape[2 + axes + d];
        lengths[8 - axes + d] = kernel->shape[1 + d];
    }
}

static void ow_conv_set_shape(ow_slot *z, const int64_t *lengths)
{
    z->shape[0] = lengths[0];
    z->shape[1] = lengths[1];
    for (int d = 2; d < z->ndim; d++)
        z->shape[d] = lengths[d + 5 - z->ndim];
}

/* Let the convolution read or write an image. */
static void ow_conv_show_image(ow_conv *c, const ow_slot *image)
{
    c->pixels = image->data;
    c->at[0] = image->strides[0];
    c->at[1] = image->strides[1];
    c->at[2] = 0;
    for (int d = 2; d < image->ndim; d++)
        c->at[d + 5 - image->ndim] = image->strides[d];
}

/* Find memory for the result and for copies of operands. */
static int ow_conv_ready(ow_step *s, const int64_t *lengths, const ow_slot *x, const ow_slot *y)
{
    ow_conv_set_shape(s->out[0], lengths);
    const int rc = ow_ensure(s, s->out[0]);
    const int64_t bytes = ow_conv_copy_bytes(x) + (y ? ow_conv_copy_bytes(y) : 0);
    if (!rc && bytes && ow_scratch(s, bytes) == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of the filters");
    return rc;
}

/* Into how many parts of a multiple of `step` items to cut each of `units` pieces of work. */
static void ow_conv_cut(ow_conv_job *job, int64_t units, int64_t items, int64_t step)
{
    const ow_conv *c = job->c;
    const double each = 2e-2 * (double)c->outputs * (double)c->elements * (c->f64 ? 2 : 1);
    const double ns = each * (double)c->places * (double)c->batch * (double)c->groups;
    const int64_t chunks = ow_chunks(ns), wanted = (chunks + units - 1) / units;
    int64_t part = (items + wanted - 1) / wanted;
    part = (part + step - 1) / step * step;
    job->part = part < 1 ? 1 : part;
    job->parts = (items + job->part - 1) / job->part;
}

/* in: image, kernels */
static int ow_conv_lengths_forward(ow_step *s, ow_conv *c, int64_t *result)
{
    int64_t image[5], kernel[5];
    ow_conv_lengths(s->in[0], image);
    ow_conv_lengths(s->in[1], kernel);
    return ow_conv_plan(s, c, image, kernel, result);
}

static int ow_conv_prep(ow_step *s)
{
    ow_conv c;
    int64_t result[5];
    const int rc = ow_conv_lengths_forward(s, &c, result);
    if (rc)
        return rc;
    ow_conv_set_shape(s->out[0], result);
    return ow_ensure(s, s->out[0]);
}

/* Note which algorithm a step has, and why. only: whether no other can compute it. */
static void ow_conv_note(ow_step *s, int chosen, int only)
{
    const int forced = (int)OW_PARAMS(s, conv)->algorithm;
    s->algorithm = ow_conv_names[chosen];
    s->why = chosen == forced ? "the flag conv.algo asks for it"
             : only           ? "no other algorithm can compute it"
             : forced != OW_CONV_MODEL
                 ? "the algorithm that the flag conv.algo asks for cannot compute it"
                 : "the model of costs prefers it";
}

/* Which algorithms can compute a convolution, or the gradient by the images of another; returns how
 * many. */
static int ow_conv_able(const ow_conv *c, const ow_conv *gradient, int allowed, int *able)
{
    int count = 0;
    for (int k = OW_CONV_IMAGES; k < OW_CONV_ALGORITHMS; k++)
        if (k == OW_CONV_SCATTER ? gradient != NULL : ow_conv_can(c, k) && ow_conv_may(allowed, k))
            able[count++] = k;
    return count;
}

/* The algorithm of a step that computes a convolution, or the gradient by the images of another.
 * The step notes it. */
static int ow_conv_algorithm(ow_step *s, const ow_conv *c, const ow_conv *gradient)
{
    const int forced = (int)OW_PARAMS(s, conv)->algorithm,
              allowed = (int)OW_PARAMS(s, conv)->allowed;
    const int chosen = ow_conv_choose(c, gradient, forced, allowed);
    int able[OW_CONV_ALGORITHMS];
    ow_conv_note(s, chosen, ow_conv_able(c, gradient, allowed, able) == 1);
    return chosen;
}

/* The algorithms to measure. */
static void ow_conv_candidates(const ow_step *s, ow_conv_trial *t, const ow_conv *c,
                               const ow_conv *gradient)
{
    double costs[OW_CONV_ALGORITHMS];
    t->count = ow_conv_able(c, gradient, (int)OW_PARAMS(s, conv)->allowed, t->able);
    for (int i = 0; i < t->count; i++)
        costs[i] = ow_conv_cost_of(c, gradient, t->able[i]);
    ow_measured_choose(t, costs);
}

/* An ow_conv_try_fn. */
static int ow_conv_try(ow_step *s, const ow_conv_trial *t, int algorithm)
{
    ow_conv c = *t->c;
    return ow_conv_compute(s, &c, algorithm, s->in[1]);
}

static int ow_conv_run(ow_step *s)
{
    ow_conv c;
    int64_t result[5];
    const int rc = ow_conv_lengths_forward(s, &c, result);
    if (rc || ow_size(s->out[0]) == 0)
        return rc;
    if (c.elements == 0) {
        memset(s->out[0]->data, 0, (size_t)(ow_size(s->out[0]) * s->out[0]->itemsize));
        return OW_OK;
    }
    ow_conv_show_image(&c, s->in[0]);
    c.results = s->out[0]->data;
    const int algorithm = ow_conv_algorithm(s, &c, NULL);
    if (OW_PARAMS(s, conv)->algorithm != OW_CONV_MEASURE)
        return ow_conv_compute(s, &c, algorithm, s->in[1]);
    ow_conv_trial t = {ow_conv_try, &c, NULL, 0};
    ow_conv_candidates(s, &t, &c, NULL);
    return ow_conv_run_fastest(s, &t, &c, algorithm);
}

/* in: kernels, gradient by the result, lengths of images along the spatial axes */
static int ow_conv_plan_images(ow_step *s, ow_conv *c, int64_t *image)
{
    int64_t kernel[8], given[5];
    const ow_slot *n = s->in[2];
    const int axes = (int)OW_PARAMS(s, conv)->axes;
    if (OW_PARAMS(s, conv)->unshared)
        ow_own_lengths(s->in[0], kernel);
    else
        ow_conv_lengths(s->in[0], kernel);
    ow_conv_lengths(s->in[1], given);
    if (n->shape[0] != axes)
        return OW_FAIL(s, OW_VALUE_ERROR, "shape has %lld entries, not %d", (long long)n->shape[0],
                       axes);
    image[0] = given[0];
    image[1] = kernel[1] * OW_PARAMS(s, conv)->groups;
    image[2] = 1;
    for (int d = 0; d < axes; d++)
        image[5 - axes + d] = *(const int64_t *)(n->data + d * n->strides[0]);
    return ow_conv_plan_gradient(s, c, image, kernel, given);
}

/* Whether the gradient by images of a convolution is a convolution of the gradient by its
 * result. */
static int ow_conv_is_turned(const ow_conv *c)
{
    return c->stride[0] == 1 && c->stride[1] == 1 && c->stride[2] == 1;
}

/* That convolution. */
static ow_conv ow_conv_turned(const ow_conv *c)
{
    ow_conv t = *c;
    const int64_t taps = c->elements / c->channels;
    t.channels = c->outputs;
    t.outputs = c->channels;
    t.elements = t.channels * taps;
    t.places = c->image[0] * c->image[1] * c->image[2];
    t.of_output = c->of_channel;
    t.of_channel = c->of_output;
    t.flip = !c->flip;
    t.is_turned = 1;
    for (int d = 0; d < 3; d++) {
        t.image[d] = c->out[d];
        t.out[d] = c->image[d];
        t.pad[d] = (c->kernel[d] - 1) * c->dilation[d] - c->pad[d];
    }
    return t;
}

/* Compute a gradient by images with an algorithm that is one of the convolution `turned`, if there
 * is one, or scatter. An ow_conv_try_fn. */
static int ow_conv_images_try(ow_step *s, const ow_conv_trial *t, int algorithm)
{
    ow_conv c = *t->c;
    ow_slot *z = s->out[0];
    if (algorithm != OW_CONV_SCATTER) {
        ow_conv turned = *t->turned;
        const int rc = ow_conv_compute(s, &turned, algorithm, s->in[0]);
        if (rc != OW_CONV_NOT_FINITE)
            return rc;
        s->algorithm = ow_conv_names[OW_CONV_SCATTER];
        s->why = "weights are not finite";
    }
    int64_t image[5];
    ow_conv_lengths(z, image);
    const int rc = ow_conv_ready(s, image, s->in[0], s->in[1]);
    if (rc)
        return rc;
    char *memory = s->scratch;
    c.kernels = ow_conv_side_by_side(s->in[0], &memory);
    c.results = ow_conv_side_by_side(s->in[1], &memory);
    ow_conv_show_image(&c, z);
    ow_conv_job job = {&c, 1, 1, 0};
    ow_conv_cut(&job, c.batch * c.groups, c.channels, 1);
    ow_conv_finish_by(s, &c, 1);
    return ow_conv_share(s, &job, ow_conv_by_images, c.batch * c.groups * job.parts);
}

static int ow_conv_images_run(ow_step *s)
{
    ow_conv c;
    int64_t image[5];
    ow_slot *z = s->out[0];
    int rc = ow_conv_plan_images(s, &c, image);
    if (rc)
        return rc;
    ow_conv_set_shape(z, image);
    rc = ow_ensure(s, z);
    if (rc || ow_size(z) == 0)
        return rc;
    if (c.outputs == 0) {
        memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
        return OW_OK;
    }
    if (!ow_conv_is_turned(&c)) {
        const ow_conv_trial only = {ow_conv_images_try, &c, NULL, 0};
        s->algorithm = ow_conv_names[OW_CONV_SCATTER];
        s->why = "no other algorithm can compute it";
        return ow_conv_images_try(s, &only, OW_CONV_SCATTER);
    }
    ow_conv turned = ow_conv_turned(&c);
    ow_conv_show_image(&turned, s->in[1]);
    turned.results = z->data;
    ow_conv_trial t = {ow_conv_images_try, &c, &turned, 0};
    const int algorithm = ow_conv_algorithm(s, &turned, &c);
    if (OW_PARAMS(s, conv)->algorithm != OW_CONV_MEASURE)
        return ow_conv_images_try(s, &t, algorithm);
    ow_conv_candidates(s, &t, &turned, &c);
    return ow_conv_run_fastest(s, &t, &turned, algorithm);
}

/* The name of the algorithm of a step with these parameters, for contiguous operands of these
 * lengths, or NULL where they do not belong together. */
static const char *ow_conv_algorithm_name(int by_images, const ow_conv_params *params,
                                          const int64_t *image, const int64_t *kernel, int f64)
{
    char error[OW_ERROR_SIZE];
    ow_slot z = {.itemsize = f64 ? 8 : 4}, *out = &z;
    ow_step s = {.params = params, .out = &out, .error = error};
    ow_conv c;
    int64_t result[5];
    if (ow_conv_plan(&s, &c, image, kernel, result) || c.elements == 0)
        return NULL;
    ow_conv of_images = by_images ? ow_conv_turned(&c) : c;
    of_images.at[4] = z.itemsize;
    for (int d = 2; d >= 0; d--)
        of_images.at[1 + d] = of_images.at[2 + d] * of_images.image[d];
    if (by_images && !ow_conv_is_turned(&c))
        return ow_conv_names[OW_CONV_SCATTER];
    return ow_conv_names[ow_conv_algorithm(&s, &of_images, by_images ? &c : NULL)];
}

#endif
