/* Convolutions whose kernels have weights of their own for each place, and their gradients.
 * At each place there is a product of the place's weights with what the images have there, in which
 * the images are columns or terms; so weights, which take most of the memory, are read once for
 * many images. Kernels have shape (outputs, *lengths of the result, channels of a group,
 * *lengths). */
#ifndef OW_CONV_UNSHARED_H
#define OW_CONV_UNSHARED_H

#include "conv_groups.h"

typedef struct ow_own_job {
    const ow_conv *c;
    int64_t batch, channels;        /* of a unit of work */
    int64_t batches, parts, ranges; /* how many of images, of channels, and of places there are */
    int failed;
} ow_own_job;

static char *ow_own_memory(ow_own_job *j, int64_t bytes)
{
    char *memory = ow_alloc(bytes);
    if (memory == NULL)
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
    return memory;
}

static void ow_conv_place(const ow_conv *c, int64_t place, int64_t *at)
{
    at[2] = place % c->out[2] * c->stride[2];
    at[1] = place / c->out[2] % c->out[1] * c->stride[1];
    at[0] = place / c->out[2] / c->out[1] * c->stride[0];
}

/* Where an element of a kernel lies in the image, seen from a place, in bytes; INT64_MIN if beside
 * it. */
static inline int64_t ow_own_met(const ow_conv *c, const ow_tap *t, const int64_t *at)
{
    int64_t bytes = 0;
    for (int d = 0; d < 3; d++) {
        const int64_t x = at[d] + t->offset[d];
        if (x < 0 || x >= c->image[d])
            return INT64_MIN;
        bytes += x * c->at[2 + d];
    }
    return bytes + t->channel * c->at[1];
}

#define OW_OWN(T)                                                                                  \
    /* Write the panels of what elements meet in `images` images at a place: each is a term \
     * of the sums and images are columns, or if `across`, the opposite. */      \
    static void ow_own_gather_##T(const ow_conv *c, const ow_tap *taps, int64_t n,                 \
                                  const int64_t *at, const char *image, int64_t images,            \
                                  int across, T *to)                                               \
    {                                                                                              \
        const int64_t w = c->wide, columns = across ? n : images, terms = across ? images : n;     \
        if (columns % w) /* the last panel is read as a whole */                                   \
            memset(to + columns / w * w * terms, 0, sizeof(T) * (size_t)(w * terms));              \
        for (int64_t e = 0; e < n; e++) {                                                          \
            const int64_t met = ow_own_met(c, &taps[e], at);                                       \
            for (int64_t b = 0; b < images; b++) {                                                 \
                const int64_t column = across ? e : b, term = across ? b : e;                      \
                to[column / w * w * terms + term * w + column % w] =                               \
                    met == INT64_MIN ? 0 : *(const T *)(image + b * c->at[0] + met);               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Add rows of a product, one for each image, to what elements meet at a place. */             \
    static void ow_own_scatter_##T(const ow_conv *c, const ow_tap *taps, int64_t n,                \
                                   const int64_t *at, char *image, int64_t images, const T *from,  \
                                   int64_t row)                                                    \
    {                                                                                              \
        for (int64_t e = 0; e < n; e++) {                                                          \
            const int64_t met = ow_own_met(c, &taps[e], at);                                       \
            for (int64_t b = 0; b < images && met != INT64_MIN; b++)                               \
                *(T *)(image + b * c->at[0] + met) += from[b * row + e];                           \
        }                                                                                          \
    }
OW_OWN(float)
OW_OWN(double)

static void ow_own_gather(const ow_conv *c, const ow_tap *taps, int64_t n, const int64_t *at,
                          const char *image, int64_t images, int across, char *to)
{
    if (c->f64)
        ow_own_gather_double(c, taps, n, at, image, images, across, (double *)to);
    else
        ow_own_gather_float(c, taps, n, at, image, images, across, (float *)to);
}

/* Results at some places of one group. */
static void ow_own_forward(void *arg, int64_t unit)
{
    ow_own_job *j = arg;
    const ow_conv *c = j->c;
    const int64_t item = c->f64 ? 8 : 4, g = unit / j->ranges, images = c->most;
    const int64_t block = OW_CONV_TERMS * images * item, rows = c->outputs * images * item;
    int64_t end, place = ow_chunk_range(unit % j->ranges, j->ranges, c->places, 1, &end);
    const int64_t begin = place;
    char *packed = ow_own_memory(j, block + rows + OW_CONV_TERMS * (int64_t)sizeof(ow_tap));
    if (packed == NULL)
        return;
    char *z = packed + block;
    ow_tap *taps = (ow_tap *)(z + rows);
    for (; place < end; place++) {
        int64_t at[3];
        ow_conv_place(c, place, at);
        const char *kernel = c->kernels + (g * c->outputs * c->places + place) * c->elements * item;
        for (int64_t b = 0; b < c->batch; b += images) {
            const int64_t n = ow_at_most(images, c->batch - b);
            const char *image = c->pixels + b * c->at[0] + g * c->channels * c->at[1];
            for (int64_t e = 0; e < c->elements; e += OW_CONV_TERMS) {
                const int64_t k = ow_at_most(OW_CONV_TERMS, c->elements - e);
                for (int64_t i = 0; i < k; i++)
                    taps[i] = ow_conv_tap(c, e + i);
                ow_own_gather(c, taps, k, at, image, n, 0, packed);
                const ow_product q = {c->outputs,
                                      n,
                                      k,
                                      1.0,
                                      e ? 1.0 : 0.0,
                                      kernel + e * item,
                                      NULL,
                                      z,
                                      c->places * c->elements,
                                      1,
                                      0,
                                      0,
                                      images,
                                      packed};
                ow_kernels->gemm[c->f64](&q, 0, q.m, 0, n);
            }
            char *to = c->results + ((b * c->groups + g) * c->outputs * c->places + place) * item;
            for (int64_t o = 0; o < c->outputs; o++)
                for (int64_t i = 0; i < n; i++)
                    memcpy(to + (i * c->groups * c->outputs + o) * c->places * item,
                           z + (o * images + i) * item, (size_t)item);
        }
    }
    for (int64_t b = 0; c->finish && b < c->batch; b++)
        for (int64_t o = 0; o < c->outputs; o++)
            c->finish(c->then, b, g * c->outputs + o, begin, end - begin,
                      c->results +
                          (((b * c->groups + g) * c->outputs + o) * c->places + begin) * item);
    ow_free(packed);
}

/* The gradient by the weights of some places of one group. */
static void ow_own_by_kernels(void *arg, int64_t unit)
{
    ow_own_job *j = arg;
    const ow_conv *c = j->c;
    const int64_t item = c->f64 ? 8 : 4, g = unit / j->ranges,
                  block = OW_CONV_TERMS * c->most * item;
    int64_t end, place = ow_chunk_range(unit % j->ranges, j->ranges, c->places, 1, &end);
    char *packed = ow_own_memory(j, block + c->most * (int64_t)sizeof(ow_tap));
    if (packed == NULL)
        return;
    ow_tap *taps = (ow_tap *)(packed + block);
    for (; place < end; place++) {
        int64_t at[3];
        ow_conv_place(c, place, at);
        char *kernel = c->kernels + (g * c->outputs * c->places + place) * c->elements * item;
        for (int64_t e = 0; e < c->elements; e += c->most) {
            const int64_t n = ow_at_most(c->most, c->elements - e);
            for (int64_t i = 0; i < n; i++)
                taps[i] = ow_conv_tap(c, e + i);
            for (int64_t b = 0; b < c->batch; b += OW_CONV_TERMS) {
                const int64_t k = ow_at_most(OW_CONV_TERMS, c->batch - b);
                const char *image = c->pixels + b * c->at[0] + g * c->channels * c->at[1];
                const char *top =
                    c->results + ((b * c->groups + g) * c->outputs * c->places + place) * item;
                ow_own_gather(c, taps, n, at, image, k, 1, packed);
                const ow_product q = {c->outputs,
                                      n,
                                      k,
                                      1.0,
                                      b ? 1.0 : 0.0,
                                      top,
                                      NULL,
                                      kernel + e * item,
                                      c->places,
                                      c->groups * c->outputs * c->places,
                                      0,
                                      0,
                                      c->places * c->elements,
                                      packed};
                ow_kernels->gemm[c->f64](&q, 0, q.m, 0, n);
            }
        }
    }
    ow_free(packed);
}

/* Some channels of some images of one group. */
static void ow_own_by_images(void *arg, int64_t unit)
{
    ow_own_job *j = arg;
    const ow_conv *c = j->c;
    const int64_t item = c->f64 ? 8 : 4, of_channel = c->elements / c->channels;
    const int64_t part = unit % j->parts, b = unit / j->parts % j->batches * j->batch;
    const int64_t g = unit / j->parts / j->batches, channel = part * j->channels;
    const int64_t images = ow_at_most(j->batch, c->batch - b);
    const int64_t n = ow_at_most(j->channels, c->channels - channel) * of_channel;
    const int64_t rows = ow_round_up(images * n * item, 64);
    char *z = ow_own_memory(j, rows + n * (int64_t)sizeof(ow_tap));
    if (z == NULL)
        return;
    ow_tap *taps = (ow_tap *)(z + rows);
    for (int64_t i = 0; i < n; i++)
        taps[i] = ow_conv_tap(c, channel * of_channel + i);
    char *image = c->pixels + b * c->at[0] + g * c->channels * c->at[1];
    for (int64_t i = 0; i < images; i++)
        memset(image + i * c->at[0] + channel * c->at[1], 0, (size_t)(n / of_channel * c->at[1]));
    for (int64_t place = 0; place < c->places; place++) {
        int64_t at[3];
        ow_conv_place(c, place, at);
        const int64_t first = g * c->outputs * c->places + place, next = c->groups * c->outputs;
        const ow_product q = {images,
                              n,
                              c->outputs,
                              1.0,
                              0.0,
                              c->results + (b * next * c->places + first) * item,
                              c->kernels + (first * c->elements + channel * of_channel) * item,
                              z,
                              next * c->places,
                              c->places,
                              c->places * c->elements,
                              1,
                              n,
                              NULL};
        ow_kernels->gemm[c->f64](&q, 0, images, 0, n);
        if (c->f64)
            ow_own_scatter_double(c, taps, n, at, image, images, (const double *)z, n);
        else
            ow_own_scatter_float(c, taps, n, at, image, images, (const float *)z, n);
    }
    ow_free(z);
}

/* --- steps --------------------------------------------------------------------------------------
 * The lengths of kernels (ow_conv_plan) are followed by those of the places that they
 * have weights for. */

static void ow_own_set_shape(ow_slot *kernel, const int64_t *lengths)
{
    const int axes = (kernel->ndim - 2) / 2;
    kernel->shape[0] = lengths[0];
    kernel->shape[1 + axes] = lengths[1];
    for (int d = 0; d < axes; d++) {
        kernel->shape[2 + axes + d] = lengths[5 - axes + d];
        kernel->shape[1 + d] = lengths[8 - axes + d];
    }
}

static int ow_own_share(ow_step *s, ow_own_job *j, ow_task fn, int64_t units)
{
    ow_parallel(fn, j, units);
    if (j->failed)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate blocks of a convolution");
    return OW_OK;
}

/* The nanoseconds of all products: weights are read, what images have is gathered. */
static double ow_own_ns(const ow_conv *c)
{
    const double each = (double)c->places * (double)c->elements * (double)c->groups;
    return each * ((double)c->outputs * (0.5 + 0.05 * (double)c->batch) + (double)c->batch);
}

static void ow_own_cut_places(ow_own_job *j)
{
    const ow_conv *c = j->c;
    const int64_t chunks = ow_chunks(ow_own_ns(c));
    j->ranges = ow_at_most((chunks + c->groups - 1) / c->groups, c->places);
}

/* in: image, kernels */
static int ow_conv_unshared_run(ow_step *s)
{
    ow_conv c;
    int64_t image[5], kernel[8], result[5];
    ow_conv_lengths(s->in[0], image);
    ow_own_lengths(s->in[1], kernel);
    int rc = ow_conv_plan(s, &c, image, kernel, result);
    rc = rc ? rc : ow_conv_ready(s, result, s->in[1], NULL);
    if (rc || ow_size(s->out[0]) == 0)
        return rc;
    if (c.elements == 0) {
        memset(s->out[0]->data, 0, (size_t)(ow_size(s->out[0]) * s->out[0]->itemsize));
        return OW_OK;
    }
    char *memory = s->scratch;
    ow_conv_show_image(&c, s->in[0]);
    c.kernels = ow_conv_side_by_side(s->in[1], &memory);
    c.results = s->out[0]->data;
    ow_own_job j = {.c = &c};
    ow_own_cut_places(&j);
    ow_conv_finish_by(s, &c, 1);
    return ow_own_share(s, &j, ow_own_forward, c.groups * j.ranges);
}

/* in: image, gradient by the result, lengths of kernels along the spatial axes */
static int ow_conv_unshared_kernels_run(ow_step *s)
{
    ow_conv c;
    int64_t kernel[8];
    ow_slot *z = s->out[0];
    int rc = ow_conv_plan_kernels(s, &c, kernel);
    if (rc)
        return rc;
    ow_own_set_shape(z, kernel);
    rc = ow_ensure(s, z);
    const int64_t bytes = ow_conv_copy_bytes(s->in[1]);
    if (!rc && bytes && ow_scratch(s, bytes) == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate a copy of the gradient");
    if (rc || ow_size(z) == 0)
        return rc;
    if (c.batch == 0) {
        memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
        return OW_OK;
    }
    char *memory = s->scratch;
    ow_conv_show_image(&c, s->in[0]);
    c.kernels = z->data;
    c.results = ow_conv_side_by_side(s->in[1], &memory);
    ow_own_job j = {.c = &c};
    ow_own_cut_places(&j);
    return ow_own_share(s, &j, ow_own_by_kernels, c.groups * j.ranges);
}

/* in: kernels, gradient by the result, lengths of images along the spatial axes */
static int ow_conv_unshared_images_run(ow_step *s)
{
    ow_conv c;
    int64_t image[5];
    ow_slot *z = s->out[0];
    int rc = ow_conv_plan_images(s, &c, image);
    rc = rc ? rc : ow_conv_ready(s, image, s->in[0], s->in[1]);
    if (rc || ow_size(z) == 0)
        return rc;
    if (c.outputs == 0) {
        memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
        return OW_OK;
    }
    char *memory = s->scratch;
    c.kernels = ow_conv_side_by_side(s->in[0], &memory);
    c.results = ow_conv_side_by_side(s->in[1], &memory);
    ow_conv_show_image(&c, z);
    ow_own_job j = {.c = &c};
    /* all images read the same weights: channels are shared out first */
    const int64_t wanted = (ow_chunks(ow_own_ns(&c)) + c.groups - 1) / c.groups;
    j.channels = (c.channels + ow_at_most(wanted, c.channels) - 1) / ow_at_most(wanted, c.channels);
    j.parts = (c.channels + j.channels - 1) / j.channels;
    const int64_t batches = ow_at_most((wanted + j.parts - 1) / j.parts, c.batch);
    j.batch = ow_at_most((c.batch + batches - 1) / batches, 256);
    j.batches = (c.batch + j.batch - 1) / j.batch;
    return ow_own_share(s, &j, ow_own_by_images, c.groups * j.batches * j.parts);
}

#endif
