/* Algorithms of a convolution, which is also the gradient by images of one of stride 1.
 * image: the pixels of a channel are the rows of a product as they are: 1 by 1 kernels. direct: an
 * image with its pads is copied so that each element of a kernel meets, for all places,
 * pixels that lie side by side; rows of the result have gaps, which are left out in the end.
 * patches: what each element of a kernel meets at each place is copied, for places of all images;
 * for
 * two axes, from such a copy of the image. winograd: see winograd_tiles.h. fft: see conv_fft.h. */
#ifndef OW_CONV_FORWARD_H
#define OW_CONV_FORWARD_H

#include "conv_fft.h"

/* Scatter is for gradients by images only: ow_conv_by_images. What follows OW_CONV_ALGORITHMS is no
 * algorithm: to measure which one is the fastest (conv_measure.h). */
enum {
    OW_CONV_MODEL,
    OW_CONV_IMAGES,
    OW_CONV_DIRECT,
    OW_CONV_PATCHES,
    OW_CONV_WINOGRAD,
    OW_CONV_FFT,
    OW_CONV_SCATTER,
    OW_CONV_ALGORITHMS,
    OW_CONV_MEASURE = OW_CONV_ALGORITHMS
};
static const char *const ow_conv_names[OW_CONV_ALGORITHMS] = {
    "model", "image", "direct", "patches", "winograd", "fft", "scatter"};

/* Algorithms that round otherwise than sums do, which may be forbidden: bits of a parameter of
 * steps. */
enum { OW_CONV_MAY_WINOGRAD = 1, OW_CONV_MAY_FFT = 2 };
static inline int ow_conv_may(int allowed, int algorithm)
{
    return algorithm == OW_CONV_WINOGRAD ? allowed & OW_CONV_MAY_WINOGRAD
           : algorithm == OW_CONV_FFT    ? allowed & OW_CONV_MAY_FFT
                                         : 1;
}

/* Whether the units of an algorithm call what follows a convolution. Those of Winograd's write
 * results in small pieces: to call it for these took as long as a pass over all results later. */
static const char ow_conv_units_finish[OW_CONV_ALGORITHMS] = {
    [OW_CONV_IMAGES] = 1, [OW_CONV_DIRECT] = 1, [OW_CONV_PATCHES] = 1};

/* How a convolution is cut into units of work, which share nothing that they write. A unit computes
 * some outputs of a group at some places. */
typedef struct ow_conv_work {
    const ow_conv *c;
    int64_t item;
    int64_t terms;       /* of sums that are added up at once */
    int64_t some, parts; /* outputs of a unit; units of one group at the same places */
    int64_t length,
        blocks;           /* places of a unit, or rows of results; units of one image, or of all */
    int64_t pitch;        /* places from one row of a result to the next */
    int64_t plane, phase; /* elements of a copied channel, and of what one phase of strides meets */
    int64_t columns;      /* of a block of sums */
    int64_t image_planes; /* elements of the copied channels of one image */
    int64_t *met;         /* where the pixels of a block of terms lie in copied channels */
    int64_t y_bytes, sums_bytes;
    int64_t *rows;     /* where the rows of a product lie that a block of terms reads */
    int64_t *of_terms; /* where the terms of a kernel lie */
    char *kernels;     /* packed */
    ow_winograd w;
    int not_finite; /* Winograd's algorithm has found a result that is not */
    char *slots;    /* memory of units that run at the same time */
    int64_t slot_bytes, nslots;
    char busy[OW_CONV_SLOTS];
} ow_conv_work;

static char *ow_conv_claim(ow_conv_work *k, int64_t *slot)
{
    for (;;)
        for (*slot = 0; *slot < k->nslots; ++*slot)
            if (!__atomic_exchange_n(&k->busy[*slot], 1, __ATOMIC_ACQUIRE))
                return k->slots + *slot * k->slot_bytes;
}

static void ow_conv_release(ow_conv_work *k, int64_t slot)
{
    __atomic_store_n(&k->busy[slot], 0, __ATOMIC_RELEASE);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static int64_t ow_conv_blocks_of_terms(const ow_conv_work *k)
{
    return (k->c->elements + k->terms - 1) / k->terms;
}

/* Where the kernels of a part of a group begin, packed. */
static char *ow_conv_packed(const ow_conv_work *k, int64_t group, int64_t part)
{
    const ow_conv *c = k->c;
    return k->kernels + (group * c->outputs + part * k->some) * c->elements * k->item;
}

static int64_t ow_conv_outputs(const ow_conv_work *k, int64_t part)
{
    const int64_t left = k->c->outputs - part * k->some;
    return left < k->some ? left : k->some;
}

/* One block of terms of one part of a group. */
static void ow_conv_pack_kernels(void *arg, int64_t unit)
{
    const ow_conv_work *k = arg;
    const ow_conv *c = k->c;
    const int64_t blocks = ow_conv_blocks_of_terms(k), e = unit % blocks * k->terms;
    const int64_t part = unit / blocks % k->parts, group = unit / blocks / k->parts;
    const int64_t m = ow_conv_outputs(k, part),
                  n = c->elements - e < k->terms ? c->elements - e : k->terms;
    const char *from =
        c->kernels + (group * c->outputs * c->elements + part * k->some * c->of_output) * k->item;
    ow_kernels->pack_rows[c->f64](from, m, n, c->of_output, k->of_terms + e,
                                  ow_conv_packed(k, group, part) + e * m * k->item);
}

/* --- rows of products ------------------------------------------------------------------------- */

/* Whether an element of a kernel of two axes meets pixels of a phase of the strides along an
 * axis. */
static inline int ow_conv_meets(const ow_conv *c, int axis, int64_t phase)
{
    for (int64_t k = 0; k < c->kernel[axis] && k < c->stride[axis]; k++)
        if (k * c->dilation[axis] % c->stride[axis] == phase)
            return 1;
    return 0;
}

/* Copy what `rows` rows of results from row `row` on meet of some channels: by channel, phase of
 * the strides, row and column. */
static void ow_conv_planes(const ow_conv_work *k, const char *image, int64_t channels, int64_t row,
                           int64_t rows, char *to)
{
    const ow_conv *c = k->c;
    const int64_t sy = c->stride[1], sx = c->stride[2];
    const int64_t down = (rows - 1) * sy + (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t y0 = row * sy - c->pad[1];
    for (int64_t px = 0; px < sx; px++) {
        /* columns of this phase that are pixels */
        const int64_t x0 = px - c->pad[2];
        int64_t first = x0 < 0 ? (-x0 + sx - 1) / sx : 0;
        int64_t end = c->image[2] > x0 ? (c->image[2] - x0 + sx - 1) / sx : 0;
        end = end < k->pitch ? end : k->pitch;
        first = first < end ? first : end;
        if (!ow_conv_meets(c, 2, px))
            continue;
        for (int64_t i = 0; i < channels; i++) {
            const char *from = image + i * c->at[1] + x0 * c->at[4];
            for (int64_t y = 0; y < down; y++) {
                char *into =
                    to +
                    (i * k->plane + (y % sy * sx + px) * k->phase + y / sy * k->pitch) * k->item;
                const int inside = y0 + y >= 0 && y0 + y < c->image[1];
                const int64_t start = inside ? first : 0, stop = inside ? end : 0;
                memset(into, 0, (size_t)(start * k->item));
                if (start < stop)
                    ow_kernels->spread[c->f64](into + start * k->item,
                                               from + (y0 + y) * c->at[3] + start * sx * c->at[4],
                                               sx * c->at[4], stop - start);
                memset(into + stop * k->item, 0, (size_t)((k->pitch - stop) * k->item));
            }
        }
    }
}

/* Places of a result that lie side by side in one row of it, and in a block. */
typedef struct ow_conv_span {
    ow_run run;
    char *image;
    int64_t batch, place;
} ow_conv_span;

/* Cut places `first` to `end` of all images into spans; returns how many there are. */
static int64_t ow_conv_spans(const ow_conv *c, int64_t first, int64_t end, int64_t group,
                             ow_conv_span *spans)
{
    int64_t count = 0;
    for (int64_t j = first; j < end;) {
        ow_conv_span *s = &spans[count++];
        const int64_t place = j % c->places, x = place % c->out[2], n = c->out[2] - x;
        s->batch = j / c->places;
        s->place = place;
        s->image = c->pixels + s->batch * c->at[0] + group * c->channels * c->at[1];
        s->run.at[0] = place / (c->out[2] * c->out[1]);
        s->run.at[1] = place / c->out[2] % c->out[1];
        s->run.at[2] = x;
        s->run.column = j - first;
        s->run.n = end - j < n ? end - j : n;
        j += s->run.n;
    }
    return count;
}

/* Copy what elements e to e + n of a kernel meet at some places. */
static void ow_conv_patches(const ow_conv_work *k, const ow_conv_span *spans, int64_t count,
                            int64_t e, int64_t n, char *to)
{
    const ow_conv *c = k->c;
    for (int64_t i = 0; i < n; i++) {
        const ow_tap t = ow_conv_tap(c, e + i);
        char *row = to + i * k->columns * k->item;
        for (const ow_conv_span *s = spans; s < spans + count; s++)
            if (c->f64)
                ow_conv_fill_double(c, &t, &s->run, s->image, (double *)row + s->run.column, 1);
            else
                ow_conv_fill_float(c, &t, &s->run, s->image, (float *)row + s->run.column, 1);
    }
}

/* Where the places of spans lie in copied channels of their images. */
static void ow_conv_pieces(const ow_conv_work *k, const ow_conv_span *spans, int64_t count,
                           ow_conv_piece *pieces)
{
    int64_t image = -1, first = 0;
    for (int64_t i = 0; i < count; i++) {
        const ow_conv_span *s = &spans[i];
        if (i == 0 || s->batch != s[-1].batch) {
            image++;
            first = s->run.at[1];
        }
        pieces[i] = (ow_conv_piece){image * k->image_planes + (s->run.at[1] - first) * k->pitch +
                                        s->run.at[2],
                                    s->run.column, s->run.n};
    }
}

/* As ow_conv_patches, from copies of the channels of these elements. */
static void ow_conv_patches_of_planes(const ow_conv_work *k, const ow_conv_span *spans,
                                      int64_t count, const ow_conv_piece *pieces, int64_t e,
                                      int64_t n, char *planes, char *to)
{
    const ow_conv *c = k->c;
    const int64_t taps = c->elements / c->channels;
    int64_t image = 0;
    for (int64_t i = 0; i < count;) {
        const ow_conv_span *first = &spans[i];
        for (; i < count && spans[i].batch == first->batch; i++)
            ;
        ow_conv_planes(k, first->image + e / taps * c->at[1], n / taps, first->run.at[1],
                       spans[i - 1].run.at[1] - first->run.at[1] + 1,
                       planes + image++ * k->image_planes * k->item);
    }
    ow_kernels->gather[c->f64](planes, pieces, count, k->met, n, to, k->columns);
}

/* --- units ------------------------------------------------------------------------------------ */

static inline int64_t ow_conv_end(int64_t first, int64_t length, int64_t all)
{
    return first + length < all ? first + length : all;
}

/* Some outputs at some places of an image whose pixels are read where they are. */
static void ow_conv_image_unit(void *arg, int64_t unit)
{
    ow_conv_work *k = arg;
    const ow_conv *c = k->c;
    const int64_t part = unit % k->parts, m = ow_conv_outputs(k, part),
                  first = unit / k->parts % k->blocks * k->length;
    const int64_t group = unit / k->parts / k->blocks % c->groups,
                  b = unit / k->parts / k->blocks / c->groups;
    const int64_t n = ow_conv_end(first, k->length, c->places) - first, whole = n - n % c->wide;
    int64_t slot;
    char *memory = ow_conv_claim(k, &slot);
    const char *image = c->pixels + b * c->at[0] + group * c->channels * c->at[1] + first * k->item;
    const char *kernels = ow_conv_packed(k, group, part);
    char *result =
        c->results +
        (((b * c->groups + group) * c->outputs + part * k->some) * c->places + first) * k->item;
    const int64_t *beside = k->rows + k->terms;
    for (int64_t e = 0; e < c->elements; e += k->terms) {
        const int64_t some = ow_conv_end(e, k->terms, c->elements) - e;
        const char *y = image + e * c->at[1];
        ow_lifted q = {m,         whole, some, kernels + e * m * k->item, y, k->rows, result,
                       c->places, e > 0, 1};
        ow_kernels->lifted[c->f64](&q);
        if (whole == n)
            continue;
        /* the last tile may not be read as a whole */
        for (int64_t i = 0; i < some; i++)
            memcpy(memory + beside[i] * k->item, y + i * c->at[1] + whole * k->item,
                   (size_t)((n - whole) * k->item));
        q.n = n - whole;
        q.y = memory;
        q.rows = beside;
        q.z = result + whole * k->item;
        q.whole = 0;
        ow_kernels->lifted[c->f64](&q);
    }
    for (int64_t o = 0; c->finish && o < m; o++)
        c->finish(c->then, b, group * c->outputs + part * k->some + o, first, n,
                  result + o * c->places * k->item);
    ow_conv_release(k, slot);
}

/* Some outputs at some rows of one result, from an image that is copied once. */
static void ow_conv_direct_unit(void *arg, int64_t unit)
{
    ow_conv_work *k = arg;
    const ow_conv *c = k->c;
    const int64_t part = unit % k->parts, m = ow_conv_outputs(k, part),
                  row = unit / k->parts % k->blocks * k->length;
    const int64_t group = unit / k->parts / k->blocks % c->groups,
                  b = unit / k->parts / k->blocks / c->groups;
    const int64_t rows = ow_conv_end(row, k->length, c->out[1]) - row,
                  taps = c->kernel[1] * c->kernel[2];
    int64_t slot;
    char *planes = ow_conv_claim(k, &slot), *sums = planes + k->y_bytes;
    const char *image = c->pixels + b * c->at[0] + group * c->channels * c->at[1];
    const char *kernels = ow_conv_packed(k, group, part);
    for (int64_t e = 0; e < c->elements; e += k->terms) {
        const int64_t some = ow_conv_end(e, k->terms, c->elements) - e;
        ow_conv_planes(k, image + e / taps * c->at[1], some / taps, row, rows, planes);
        const ow_lifted q = {m,      (rows - 1) * k->pitch + c->out[2],
                             some,   kernels + e * m * k->item,
                             planes, k->rows,
                             sums,   k->columns,
                             e > 0,  1};
        ow_kernels->lifted[c->f64](&q);
    }
    /* the results of m outputs are complete: in each, `rows` rows with gaps between them */
    char *result =
        c->results +
        (((b * c->groups + group) * c->outputs + part * k->some) * c->places + row * c->out[2]) *
            k->item;
    const size_t bytes = (size_t)(c->out[2] * k->item);
    for (int64_t o = 0; o < m; o++) {
        char *from = sums + o * k->columns * k->item,
             *to = c->finish ? from : result + o * c->places * k->item;
        for (int64_t y = 0; y < rows; y++)
            memmove(to + y * c->out[2] * k->item, from + y * k->pitch * k->item, bytes);
        if (c->finish)
            c->finish(c->then, b, group * c->outputs + part * k->some + o, row * c->out[2],
                      rows * c->out[2], from);
    }
    ow_conv_release(k, slot);
}

/* Some outputs at some places of all results of a group. */
static void ow_conv_patches_unit(void *arg, int64_t unit)
{
    ow_conv_work *k = arg;
    const ow_conv *c = k->c;
    const int64_t part = unit % k->parts, m = ow_conv_outputs(k, part),
                  first = unit / k->parts % k->blocks * k->length;
    const int64_t group = unit / k->parts / k->blocks,
                  end = ow_conv_end(first, k->length, c->batch * c->places);
    int64_t slot;
    char *patches = ow_conv_claim(k, &slot), *sums = patches + k->y_bytes;
    ow_conv_span *spans = (ow_conv_span *)(sums + k->sums_bytes);
    ow_conv_piece *pieces = (ow_conv_piece *)(spans + k->length);
    char *planes = (char *)(pieces + k->length);
    const char *kernels = ow_conv_packed(k, group, part);
    const int64_t count = ow_conv_spans(c, first, end, group, spans);
    if (k->image_planes)
        ow_conv_pieces(k, spans, count, pieces);
    for (int64_t e = 0; e < c->elements; e += k->terms) {
        const int64_t some = ow_conv_end(e, k->terms, c->elements) - e;
        if (k->image_planes)
            ow_conv_patches_of_planes(k, spans, count, pieces, e, some, planes, patches);
        else
            ow_conv_patches(k, spans, count, e, some, patches);
        const ow_lifted q = {
            m,          end - first, some, kernels + e * m * k->item, patches, k->rows, sums,
            k->columns, e > 0,       1};
        ow_kernels->lifted[c->f64](&q);
    }
    /* the results of m outputs at all places from `first` to `end` are complete */
    for (int64_t j = first; j < end;) {
        const int64_t b = j / c->places, place = j % c->places, left = c->places - place;
        const int64_t n = end - j < left ? end - j : left;
        char *result =
            c->results +
            (((b * c->groups + group) * c->outputs + part * k->some) * c->places + place) * k->item;
        for (int64_t o = 0; o < m; o++) {
            const char *from = sums + (o * k->columns + j - first) * k->item;
            if (c->finish)
                c->finish(c->then, b, group * c->outputs + part * k->some + o, place, n, from);
            else
                memcpy(result + o * c->places * k->item, from, (size_t)(n * k->item));
        }
        j += n;
    }
    ow_conv_release(k, slot);
}

static void ow_conv_winograd_kernels(void *arg, int64_t unit)
{
    const ow_conv_work *k = arg;
    const int64_t vectors = k->w.outputs / (k->c->wide / 2), vector = unit % vectors;
    const int64_t block = unit / vectors % k->blocks, group = unit / vectors / k->blocks;
    ow_kernels->winograd_kernels(&k->w, group, vector, block * k->length,
                                 ow_conv_end(block * k->length, k->length, k->c->channels));
}

/* Some panels of outputs at some tiles of all images. */
static void ow_conv_winograd_unit(void *arg, int64_t unit)
{
    ow_conv_work *k = arg;
    const int64_t part = unit % k->parts, first = unit / k->parts % k->blocks * k->w.most;
    const int64_t panels = k->w.outputs / k->c->wide;
    int64_t slot;
    char *memory = ow_conv_claim(k, &slot);
    ow_kernels->winograd(&k->w, unit / k->parts / k->blocks, first,
                         ow_conv_end(first, k->w.most, k->w.tiles), part * k->some,
                         ow_conv_end(part * k->some, k->some, panels), memory);
    ow_conv_release(k, slot);
}

/* --- the choice ------------------------------------------------------------------------------- */

static inline int64_t ow_conv_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

static int64_t ow_conv_pitch(const ow_conv *c)
{
    return c->out[2] + (c->kernel[2] - 1) * c->dilation[2] / c->stride[2];
}

/* Whether a convolution has two axes only. */
static int ow_conv_is_flat(const ow_conv *c)
{
    return c->kernel[0] == 1 && c->image[0] == 1 && c->out[0] == 1 && c->pad[0] == 0;
}

/* Whether an algorithm can compute a convolution. */
static int ow_conv_can(const ow_conv *c, int algorithm)
{
    const int64_t item = c->f64 ? 8 : 4;
    const int flat = ow_conv_is_flat(c);
    int plain = c->elements == c->channels;
    switch (algorithm) {
    case OW_CONV_IMAGES:
        for (int d = 0; d < 3; d++)
            plain &= c->stride[d] == 1 && c->out[d] == c->image[d] && c->pad[d] == 0;
        return plain && c->at[4] == item && (c->image[1] == 1 || c->at[3] == c->image[2] * item) &&
               (c->image[0] == 1 || c->at[2] == c->image[1] * c->image[2] * item) &&
               c->at[1] % item == 0;
    case OW_CONV_DIRECT:
        return flat;
    case OW_CONV_PATCHES:
        return 1;
    case OW_CONV_WINOGRAD:
        return flat && !c->f64 && c->kernel[1] == 3 && c->kernel[2] == 3 && c->stride[1] == 1 &&
               c->stride[2] == 1 && c->dilation[1] == 1 && c->dilation[2] == 1;
    case OW_CONV_FFT:
        return flat && ow_fft_can(c);
    default:
        return 0;
    }
}

/* Kernels of more bytes do not stay in the second cache. */
#define OW_CONV_FAR_BYTES (2 << 20)

/* About how many cycles of a processor that multiplies a vector in each an algorithm takes. The
 * numbers were fitted to measurements of some fifty shapes. */
static double ow_conv_cost(const ow_conv *c, int algorithm)
{
    const double lanes = (double)c->wide / 2, batch = (double)c->batch, places = (double)c->places;
    const double outputs = (double)c->outputs, channels = (double)c->channels,
                 terms = (double)c->elements;
    /* pixels that are read for few outputs take longer to read than to multiply */
    const double sums = batch * places * (outputs + 0.5) * terms / lanes;
    /* to gather large kernels of the convolution that a gradient by images is reads memory line by
     * line */
    const double item = c->f64 ? 8 : 4,
                 gathering = outputs * terms * item > OW_CONV_FAR_BYTES ? 1.5 * item : 1.5;
    const double packing = outputs * terms * (c->of_output == c->elements ? 0.5 : gathering);
    /* for each place, to copy what a channel has there */
    const double pixels =
        (c->stride[2] == 1 ? 4 / lanes : 1) * (double)(c->stride[1] * c->stride[2]) +
        30 / (double)c->out[2];
    switch (algorithm) {
    case OW_CONV_IMAGES:
        return packing + sums * (double)ow_conv_up(c->places, (int64_t)lanes) / places +
               batch * places * outputs / lanes;
    case OW_CONV_DIRECT: {
        /* gaps between rows, and the rest of the last vector of a block of rows */
        const int64_t rows = c->out[1] < 8 ? c->out[1] : 8, pitch = ow_conv_pitch(c);
        const double wide = (double)ow_conv_up((rows - 1) * pitch + c->out[2], (int64_t)lanes) /
                            (double)(rows * c->out[2]);
        const double copies = (double)((c->outputs + 127) / 128);
        return packing + sums * wide +
               batch * places * wide * (outputs * 4 / lanes + channels * copies * pixels);
    }
    case OW_CONV_PATCHES: {
        const double copies = (double)((c->outputs + 511) / 512),
                     vectors = (double)ow_conv_up(c->out[2], (int64_t)lanes) / lanes;
        const double patch =
            ow_conv_is_flat(c) ? (2 + 2 * vectors) / (double)c->out[2] : 2 + 20 / (double)c->out[2];
        return packing + 1.03 * sums +
               batch * places *
                   (copies * (terms * patch + channels * pixels) + outputs * 4 / lanes);
    }
    case OW_CONV_FFT: {
        int64_t rows, columns;
        const double cost = ow_fft_cost(c, &rows, &columns);
        /* rounding is that of larger sums: what is gained must be worth it, which with few elements
         * it is not */
        return (c->elements < OW_FFT_ELEMENTS * c->channels ? 100 : 1.5) * cost;
    }
    default: {
        const double down = (double)((c->out[1] + 3) / 4), across = (double)((c->out[2] + 3) / 4);
        const double tiles = batch * down * across, points = 36;
        const double in = (double)ow_conv_up(c->channels, (int64_t)lanes) / lanes;
        const double out = (double)ow_conv_up(c->outputs, (int64_t)(2 * lanes)) / lanes;
        /* kernels are transformed, and then read anew for each block of tiles */
        const double kernels = out * channels * (600 + (tiles / 48 + 1) * 2 * points);
        return 1.15 * tiles * points * channels * out + tiles * (in * 350 + out * 300) + kernels;
    }
    }
}

/* What ow_conv_by_images takes for the gradient by images of a convolution. */
static double ow_conv_scatter_cost(const ow_conv *c)
{
    const double results = (double)c->batch * (double)c->places, terms = (double)c->elements;
    const double sums = results * terms * (double)c->outputs / ((double)c->wide / 2);
    const double columns = (double)ow_conv_up(c->places, c->wide / 2) / (double)c->places;
    return 1.1 * sums * columns + results * terms * (0.6 + 40 / (double)c->out[2]);
}

/* What an algorithm takes for a convolution, or for the gradient by the images of another. */
static double ow_conv_cost_of(const ow_conv *c, const ow_conv *gradient, int algorithm)
{
    return algorithm == OW_CONV_SCATTER ? ow_conv_scatter_cost(gradient)
                                        : ow_conv_cost(c, algorithm);
}

/* The algorithm that a convolution takes: `forced`, if it can, otherwise the one that costs least.
 * gradient: the convolution of which this one computes the gradient by images, or NULL. */
static int ow_conv_choose(const ow_conv *c, const ow_conv *gradient, int forced, int allowed)
{
    int best = OW_CONV_MODEL;
    double least = 0;
    for (int k = OW_CONV_IMAGES; k < OW_CONV_ALGORITHMS; k++) {
        const int scatter = k == OW_CONV_SCATTER;
        if (!(scatter ? gradient != NULL : ow_conv_can(c, k)) || !ow_conv_may(allowed, k))
            continue;
        if (k == forced)
            return k;
        const double cost = ow_conv_cost_of(c, gradient, k);
        if (best == OW_CONV_MODEL || cost < least) {
            best = k;
            least = cost;
        }
    }
    return best;
}

/* --- how work is cut -------------------------------------------------------------------------- */

/* Bytes of a block of sums, and of the pixels that it is computed from: both stay in the second
 * cache. */
#define OW_CONV_SUMS_BYTES (256 << 10)
#define OW_CONV_PIXELS_BYTES (160 << 10)
/* Bytes of the columns of a tile for all terms of a block: they stay in the first cache. */
#define OW_CONV_TILE_BYTES (24 << 10)
#define OW_CONV_WINOGRAD_BYTES (640 << 10)

/* Cut `all` into equal parts of about `length` at most, which are multiples of `step`. */
static int64_t ow_conv_even(int64_t all, int64_t length, int64_t step)
{
    const int64_t parts = length < 1 ? all : (all + length - 1) / length;
    return ow_conv_up((all + parts - 1) / parts, step);
}

/* Elements of a row, so that successive rows do not meet in the same places of a cache. */
static int64_t ow_conv_apart(int64_t n, int64_t item)
{
    return ((n * item + 63) / 64 | 1) * 64 / item;
}

/* Halve the places of a unit, or then its outputs, until each thread has several units. */
static void ow_conv_share_out(ow_conv_work *k, int64_t all, int64_t times, int64_t least,
                              int64_t step)
{
    const ow_conv *c = k->c;
    const double ns = 0.04 * (double)c->batch * (double)c->groups * (double)c->places *
                      (double)c->outputs * (double)c->elements;
    const int64_t wanted = ow_chunks(ns * (c->f64 ? 2 : 1)) / 2;
    for (;;) {
        k->blocks = (all + k->length - 1) / k->length;
        k->parts = (c->outputs + k->some - 1) / k->some;
        if (times * k->blocks * k->parts >= wanted)
            return;
        if (k->length > least && k->length > step)
            k->length = ow_conv_even(all, k->length / 2, step);
        else if (k->some > 24)
            k->some = ow_conv_even(c->outputs, k->some / 2, 1);
        else
            return;
    }
}

/* How the channels are copied that `rows` rows of results meet. */
static void ow_conv_lay_out(ow_conv_work *k, int64_t rows)
{
    const ow_conv *c = k->c;
    k->pitch = ow_conv_pitch(c);
    k->phase = (rows + (c->kernel[1] - 1) * c->dilation[1] / c->stride[1]) * k->pitch;
    k->plane = ow_conv_apart(k->phase * c->stride[1] * c->stride[2], k->item);
}

/* Terms of a block: whole channels, in blocks of about the same length. Each block but the first
 * one reads and writes all sums once more. */
static int64_t ow_conv_terms(const ow_conv *c)
{
    const int64_t taps = c->elements / c->channels,
                  fit = OW_CONV_TILE_BYTES / (c->wide * (c->f64 ? 8 : 4));
    const int64_t channels = (fit > OW_CONV_TERMS ? fit : OW_CONV_TERMS) / taps;
    return ow_conv_even(c->channels, channels < 1 ? 1 : channels, 1) * taps;
}

/* Where the rows of a block of terms lie. */
static void ow_conv_rows(ow_conv_work *k, int algorithm)
{
    const ow_conv *c = k->c;
    const int64_t taps = c->elements / c->channels,
                  n = k->terms < c->elements ? k->terms : c->elements;
    for (int64_t e = 0; e < c->elements; e++)
        k->of_terms[e] = e / taps * c->of_channel + e % taps;
    for (int64_t i = 0; i < n; i++)
        if (algorithm == OW_CONV_IMAGES) {
            k->rows[i] = i * (c->at[1] / k->item);
            k->rows[k->terms + i] = i * c->wide;
        } else if (algorithm == OW_CONV_PATCHES && !k->image_planes)
            k->rows[i] = i * k->columns;
        else {
            const ow_tap t = ow_conv_tap(c, i);
            const int64_t y = t.offset[1] + c->pad[1], x = t.offset[2] + c->pad[2],
                          sy = c->stride[1], sx = c->stride[2];
            k->met[i] = t.channel * k->plane + (y % sy * sx + x % sx) * k->phase +
                        y / sy * k->pitch + x / sx;
            k->rows[i] = algorithm == OW_CONV_DIRECT ? k->met[i] : i * k->columns;
        }
}

static int ow_conv_compute_finite(ow_step *s, ow_conv *c, ow_slot *kernels_of);

/* Compute a convolution with an algorithm; its kernels are those of an operand. All operands have
 * elements. */
static int ow_conv_compute(ow_step *s, ow_conv *c, int algorithm, ow_slot *kernels_of)
{
    ow_conv_work k = {.c = c, .item = c->f64 ? 8 : 4, .terms = OW_CONV_TERMS, .some = c->outputs};
    const int64_t taps = c->elements / c->channels, item = k.item, threads = ow_threads();
    ow_conv_finish_by(s, c, ow_conv_units_finish[algorithm]);
    if (algorithm == OW_CONV_FFT) {
        const int rc = ow_conv_fft(s, c, kernels_of, &k.not_finite);
        return rc || !k.not_finite ? rc : ow_conv_compute_finite(s, c, kernels_of);
    }
    int64_t units = c->groups, kernels = c->groups * c->outputs * c->elements * item, slot = 0;
    ow_task unit = ow_conv_image_unit;
    k.some = ow_conv_even(c->outputs, 256, 1);
    switch (algorithm) {
    case OW_CONV_IMAGES:
        k.length = ow_conv_even(c->places, 16 * c->wide, c->wide);
        ow_conv_share_out(&k, c->places, c->batch * c->groups, 2 * c->wide, c->wide);
        k.y_bytes = k.terms * c->wide * item;
        units *= c->batch;
        break;
    case OW_CONV_DIRECT:
        k.pitch = ow_conv_pitch(c);
        k.terms = ow_conv_terms(c);
        k.some = ow_conv_even(c->outputs, 128, 1);
        {
            const int64_t channels = k.terms / taps < c->channels ? k.terms / taps : c->channels;
            const int64_t by_sums = OW_CONV_SUMS_BYTES / (k.some * k.pitch * item);
            const int64_t by_pixels =
                OW_CONV_PIXELS_BYTES / (channels * c->image[2] * c->stride[1] * item);
            const int64_t rows = by_sums < by_pixels ? by_sums : by_pixels;
            k.length = ow_conv_even(c->out[1], rows < 1 ? 1 : rows, 1);
            ow_conv_share_out(&k, c->out[1], c->batch * c->groups, 4 * c->wide / k.pitch + 1, 1);
            ow_conv_lay_out(&k, k.length);
            k.columns = ow_conv_apart(ow_conv_up(k.length * k.pitch, c->wide), item);
            k.y_bytes = ow_conv_up((channels * k.plane + 2 * c->wide) * item, 64);
            k.sums_bytes = k.some * k.columns * item;
        }
        units *= c->batch;
        unit = ow_conv_direct_unit;
        break;
    case OW_CONV_PATCHES:
        k.some = ow_conv_even(c->outputs, 512, 1);
        k.length = OW_CONV_SUMS_BYTES / (k.some * item);
        k.length = k.length < 4 * c->wide   ? 4 * c->wide
                   : k.length > 8 * c->wide ? 8 * c->wide
                                            : k.length;
        k.length = ow_conv_even(c->batch * c->places, k.length, c->wide);
        ow_conv_share_out(&k, c->batch * c->places, c->groups, 2 * c->wide, c->wide);
        k.columns = ow_conv_apart(ow_conv_up(k.length, c->wide) + c->wide, item);
        slot = k.length * (int64_t)(sizeof(ow_conv_span) + sizeof(ow_conv_piece));
        if (ow_conv_is_flat(c)) {
            const int64_t images = (k.length + c->places - 2) / c->places + 1,
                          rows = (k.length - 2) / c->out[2] + 2;
            k.terms = ow_conv_terms(c);
            ow_conv_lay_out(&k, rows < c->out[1] ? rows : c->out[1]);
            k.image_planes = k.terms / taps * k.plane;
            slot += (images * k.image_planes + 2 * c->wide) * item;
        }
        k.y_bytes = k.terms * k.columns * item;
        k.sums_bytes = k.some * k.columns * item;
        unit = ow_conv_patches_unit;
        break;
    default: {
        const int64_t lanes = c->wide / 2, panels = (c->outputs + c->wide - 1) / c->wide;
        ow_winograd *w = &k.w;
        w->c = c;
        w->not_finite = &k.not_finite;
        w->down = (c->out[1] + 3) / 4;
        w->across = (c->out[2] + 3) / 4;
        w->tiles = c->batch * w->down * w->across;
        w->channels = ow_conv_up(c->channels, lanes);
        if (w->channels % 256 == 0)
            w->channels += lanes;
        w->outputs = panels * c->wide;
        const int64_t of_tile = 36 * item * (w->channels + (panels < 4 ? panels : 4) * c->wide);
        int64_t most = OW_CONV_WINOGRAD_BYTES / of_tile;
        most = most < 36 ? 36 : most;
        k.length = ow_conv_even(w->tiles, most, 1);
        k.some = panels;
        k.parts = 1;
        /* share it out */
        const int64_t wanted = 4 * threads;
        for (;;) {
            k.blocks = (w->tiles + k.length - 1) / k.length;
            k.parts = (panels + k.some - 1) / k.some;
            if (threads == 1 || k.blocks * k.parts * c->groups >= wanted)
                break;
            if (k.length > 24)
                k.length = ow_conv_even(w->tiles, k.length / 2, 1);
            else if (k.some > 1)
                k.some = ow_conv_even(panels, k.some / 2, 1);
            else
                break;
        }
        w->most = k.length;
        w->point = ow_conv_apart(w->outputs * c->channels, item);
        kernels = c->groups * 36 * w->point * item;
        const int64_t reading = 12 * (4 * w->across + 2) * lanes,
                      writing = 4 * (4 * w->across + lanes) * lanes;
        slot = 36 * (w->most * (w->channels + 4 * c->wide) + 32) * item +
               (reading > writing ? reading : writing) * item;
        unit = ow_conv_winograd_unit;
    }
    }
    units *= k.blocks * k.parts;
    k.slot_bytes = ow_conv_up(k.y_bytes + k.sums_bytes + slot, 64);
    k.nslots = threads < units ? threads : units;
    k.nslots = k.nslots < OW_CONV_SLOTS ? k.nslots : OW_CONV_SLOTS;
    kernels = ow_conv_up(kernels, 64);
    const int64_t tables = ow_conv_up((c->elements + 3 * k.terms) * 8, 64);
    const int64_t copies = ow_conv_copy_bytes(kernels_of), blocks_bytes = k.nslots * k.slot_bytes;
    char *memory =
        ow_scratch(s, ow_add_size(ow_add_size(kernels, tables), ow_add_size(copies, blocks_bytes)));
    if (memory == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate blocks of a convolution");
    k.kernels = memory;
    k.of_terms = (int64_t *)(memory + kernels);
    k.rows = k.of_terms + c->elements;
    k.met = k.rows + 2 * k.terms;
    k.slots = memory + kernels + tables;
    char *copy = k.slots + blocks_bytes;
    c->kernels = ow_conv_side_by_side(kernels_of, &copy);
    if (c->is_turned && !ow_all_finite(c->f64, c->kernels, ow_size(kernels_of)))
        return OW_CONV_NOT_FINITE;
    if (algorithm == OW_CONV_WINOGRAD) {
        const int64_t vectors = k.w.outputs / (c->wide / 2), blocks = k.blocks, length = k.length;
        k.w.kernels = (float *)memory;
        k.length = c->channels < 64 ? c->channels : 64;
        k.blocks = (c->channels + k.length - 1) / k.length;
        ow_parallel(ow_conv_winograd_kernels, &k, c->groups * vectors * k.blocks);
        k.blocks = blocks;
        k.length = length;
    } else {
        ow_conv_rows(&k, algorithm);
        ow_parallel(ow_conv_pack_kernels, &k, c->groups * k.parts * ow_conv_blocks_of_terms(&k));
    }
    ow_parallel(unit, &k, units);
    return k.not_finite ? ow_conv_compute_finite(s, c, kernels_of) : OW_OK;
}

/* Compute a convolution anew that has results which are not finite: an infinite number of a tile
 * makes others of it nan that are not. */
static int ow_conv_compute_finite(ow_step *s, ow_conv *c, ow_slot *kernels_of)
{
    const int plain = ow_conv_choose(c, NULL, OW_CONV_MODEL, 0);
    s->why = s->algorithm == ow_conv_names[OW_CONV_FFT]
                 ? "results are not finite, which a Fourier transform would spread"
                 : "results are not finite, which Winograd's algorithm would spread";
    s->algorithm = ow_conv_names[plain];
    return ow_conv_compute(s, c, plain, kernels_of);
}

#endif
