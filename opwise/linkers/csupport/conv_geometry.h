/* What kernels of convolutions meet: places of results in runs, elements of kernels, pixels. */
#ifndef OW_CONV_GEOMETRY_H
#define OW_CONV_GEOMETRY_H

#include "blas.h"
#include "conv_plan.h"

/* Let the units of work of a convolution finish their results, or leave that to the step. */
static inline void ow_conv_finish_by(ow_step *s, ow_conv *c, int units)
{
    c->finish = units ? s->finish : NULL;
    c->then = s->then;
    s->finishes = c->finish != NULL;
}

/* Units of work that run at the same time, at most. */
#define OW_CONV_SLOTS 256

/* A gradient by images is not computed as a convolution: weights that are not finite would meet
 * zeros of pads, which are not there. */
#define OW_CONV_NOT_FINITE (-1)

/* Terms of a sum in one block: as many as the tiles take at once. */
#define OW_CONV_TERMS 256

/* The places of a result that lie side by side in one row of it and in one panel of a block. */
typedef struct ow_run {
    int64_t at[3]; /* the first one, along each axis */
    int64_t n;
    int64_t column; /* of the block */
} ow_run;

/* Cut places `first` to `end` into runs; returns how many there are, at most end - first. */
static int64_t ow_conv_runs(const ow_conv *c, int64_t first, int64_t end, ow_run *runs)
{
    int64_t count = 0;
    for (int64_t j = first; j < end;) {
        ow_run *r = &runs[count++];
        const int64_t x = j % c->out[2], in_row = c->out[2] - x, column = j - first;
        const int64_t in_panel = c->wide - column % c->wide;
        r->at[0] = j / (c->out[2] * c->out[1]);
        r->at[1] = j / c->out[2] % c->out[1];
        r->at[2] = x;
        r->column = column;
        r->n = in_row < in_panel ? in_row : in_panel;
        r->n = end - j < r->n ? end - j : r->n;
        j += r->n;
    }
    return count;
}

/* An element of a kernel: its channel, and how far it lies from the first along each axis. */
typedef struct ow_tap {
    int64_t channel, offset[3];
} ow_tap;

static ow_tap ow_conv_tap(const ow_conv *c, int64_t element)
{
    ow_tap t;
    for (int d = 2; d >= 0; d--) {
        const int64_t k = element % c->kernel[d];
        element /= c->kernel[d];
        t.offset[d] = (c->flip ? c->kernel[d] - 1 - k : k) * c->dilation[d] - c->pad[d];
    }
    t.channel = element;
    return t;
}

/* Of the places of a run, those that meet the image: from *from to *to; returns where the element
 * of the first of these lies, or NULL if there is none. */
static inline char *ow_conv_met(const ow_conv *c, const ow_tap *t, const ow_run *r, char *image,
                                int64_t *from, int64_t *to)
{
    char *p = image + t->channel * c->at[1];
    for (int d = 0; d < 2; d++) {
        const int64_t at = r->at[d] * c->stride[d] + t->offset[d];
        if (at < 0 || at >= c->image[d])
            return NULL;
        p += at * c->at[2 + d];
    }
    const int64_t s = c->stride[2], at = r->at[2] * s + t->offset[2], behind = c->image[2] - at;
    *from = at < 0 ? (-at + s - 1) / s : 0;
    *to = behind <= 0 ? 0 : (behind + s - 1) / s;
    *to = *to < r->n ? *to : r->n;
    return *from < *to ? p + (at + *from * s) * c->at[4] : NULL;
}

#define OW_CONV_FILL(T)                                                                            \
    /* Write what tap `t` meets at the places of a run, `step` elements apart; 0 beside the \
     * image. */      \
    static inline void ow_conv_fill_##T(const ow_conv *c, const ow_tap *t, const ow_run *r,        \
                                        char *image, T *to, int64_t step)                          \
    {                                                                                              \
        int64_t first = r->n, end = r->n;                                                          \
        const char *p = ow_conv_met(c, t, r, image, &first, &end);                                 \
        const int64_t s = c->stride[2] * c->at[4];                                                 \
        if (p == NULL)                                                                             \
            first = end = r->n;                                                                    \
        for (int64_t i = 0; i < first; i++)                                                        \
            to[i * step] = 0;                                                                      \
        if (step == 1 && s == sizeof(T))                                                           \
            for (int64_t i = first; i < end; i++)                                                  \
                to[i] = ((const T *)p)[i - first];                                                 \
        else                                                                                       \
            for (int64_t i = first; i < end; i++)                                                  \
                to[i * step] = *(const T *)(p + (i - first) * s);                                  \
        for (int64_t i = end; i < r->n; i++)                                                       \
            to[i * step] = 0;                                                                      \
    }                                                                                              \
    /* Add numbers to what tap `t` meets at the places of a run. */                                \
    static inline void ow_conv_add_##T(const ow_conv *c, const ow_tap *t, const ow_run *r,         \
                                       char *image, const T *from)                                 \
    {                                                                                              \
        int64_t first = 0, end = 0;                                                                \
        char *p = ow_conv_met(c, t, r, image, &first, &end);                                       \
        const int64_t s = c->stride[2] * c->at[4];                                                 \
        if (p == NULL)                                                                             \
            return;                                                                                \
        if (s == sizeof(T))                                                                        \
            for (int64_t i = first; i < end; i++)                                                  \
                ((T *)p)[i - first] += from[i];                                                    \
        else                                                                                       \
            for (int64_t i = first; i < end; i++)                                                  \
                *(T *)(p + (i - first) * s) += from[i];                                            \
    }
OW_CONV_FILL(float)
OW_CONV_FILL(double)

static int64_t ow_conv_copy_bytes(const ow_slot *x)
{
    return ow_is_c_contiguous(x) ? 0 : (ow_size(x) * x->itemsize / OW_ALIGN + 1) * OW_ALIGN;
}

/* The elements of an operand side by side: itself, or a copy in scratch memory. */
static char *ow_conv_side_by_side(ow_slot *x, char **memory)
{
    if (ow_is_c_contiguous(x))
        return x->data;
    ow_slot copy = *x;
    ow_c_strides(&copy);
    copy.data = *memory;
    *memory += ow_conv_copy_bytes(x);
    ow_copy(&copy, x);
    return copy.data;
}

/* Whether all of n numbers that lie side by side are finite. */
static int ow_all_finite(int f64, const char *p, int64_t n)
{
    uint32_t bad = 0;
    if (f64)
        for (int64_t i = 0; i < n; i++)
            bad |= (((const uint64_t *)p)[i] >> 52 & 0x7ff) == 0x7ff;
    else
        for (int64_t i = 0; i < n; i++)
            bad |= (((const uint32_t *)p)[i] >> 23 & 0xff) == 0xff;
    return !bad;
}

#endif
