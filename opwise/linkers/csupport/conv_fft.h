/* Convolutions by Fourier transforms, for large kernels.
 * Tiles of the image overlap by the reach of the kernel. Their spectra are multiplied with those of
 * the kernels, point by point, and summed over channels; the sums are transformed back (overlap-
 * save: T. Stockham, High-speed convolution and correlation, 1966). What wraps around a tile is
 * dropped.
 * Rounding is that of sums of magnitudes: an error is at most 1e-5 (float64: 1e-14) of the largest
 * result that the magnitudes of an image and of the kernels would give. */
#ifndef OW_CONV_FFT_H
#define OW_CONV_FFT_H

#include <math.h>

#include "conv_geometry.h"

/* Spectra of kernels and of tiles that are held at the same time. */
#define OW_FFT_KERNELS_BYTES (64 << 20)
#define OW_FFT_TILES_BYTES (16 << 20)
/* Kernels of fewer elements are left to other algorithms. */
#define OW_FFT_ELEMENTS 25
/* Vectors of points in a unit of products. */
#define OW_FFT_POINTS 8

typedef struct ow_fft_work {
    const ow_conv *c;
    ow_fft f;
    int64_t item;
    int64_t rows, columns;  /* of a tile that are results */
    int64_t down, across;   /* tiles of an image */
    int64_t vectors, bytes; /* of points of a spectrum; of such a vector */
    int64_t group;
    int64_t output, outputs; /* of the part that is computed */
    int64_t tile, tiles;     /* of those of all images */
    int by_kernels, flip;    /* see ow_conv_fft_kernels */
    char *kernels, *pixels, *sums, *work;
    int64_t work_bytes, slots;
    char busy[OW_CONV_SLOTS];
    int not_finite;
} ow_fft_work;

/* The reach of the kernel along an axis. */
static inline int64_t ow_fft_reach(const ow_conv *c, int axis)
{
    return (c->kernel[axis] - 1) * c->dilation[axis] + 1;
}

/* About how many cycles a convolution by tiles of these lengths takes: see ow_conv_cost. */
static double ow_fft_tiles_cost(const ow_conv *c, int64_t rows, int64_t columns)
{
    const double lanes = (double)c->wide / 2, points = (double)(rows * columns) / lanes;
    const int64_t down = rows - ow_fft_reach(c, 1) + 1, across = columns - ow_fft_reach(c, 2) + 1;
    const double tiles =
        (double)(c->batch * ((c->out[1] + down - 1) / down) * ((c->out[2] + across - 1) / across));
    const double channels = (double)c->channels, outputs = (double)c->outputs;
    const double passes = log2((double)(rows * columns)),
                 far = rows * columns * (c->f64 ? 8 : 4) > (1 << 16) ? 1.4 : 1;
    /* spectra of kernels are written once for few readers, far from each other */
    const double transforms =
        (tiles * (channels + outputs) + channels * outputs) * (8 + 2 * passes);
    return points * (far * (transforms + channels * outputs * 15) + tiles * channels * outputs * 5);
}

/* The lengths of tiles that cost least, and what they cost. */
static double ow_fft_cost(const ow_conv *c, int64_t *rows, int64_t *columns)
{
    double least = 0;
    *rows = *columns = 0;
    for (int64_t i = OW_FFT_LEAST; i <= OW_FFT_MOST; i *= 2)
        for (int64_t j = OW_FFT_LEAST; j <= OW_FFT_MOST; j *= 2) {
            if (i < ow_fft_reach(c, 1) || j < ow_fft_reach(c, 2))
                continue;
            const double cost = ow_fft_tiles_cost(c, i, j);
            if (*rows == 0 || cost < least) {
                least = cost;
                *rows = i;
                *columns = j;
            }
        }
    return least;
}

/* Whether a convolution of two axes can be computed so. */
static int ow_fft_can(const ow_conv *c)
{
    int64_t rows, columns;
    if (c->stride[1] != 1 || c->stride[2] != 1 || c->elements == 0)
        return 0;
    ow_fft_cost(c, &rows, &columns);
    return rows &&
           c->channels * rows * columns * (c->f64 ? 8 : 4) <= 4 * (int64_t)OW_FFT_KERNELS_BYTES;
}

static char *ow_fft_claim(ow_fft_work *k, int64_t *slot)
{
    for (;;)
        for (*slot = 0; *slot < k->slots; ++*slot)
            if (!__atomic_exchange_n(&k->busy[*slot], 1, __ATOMIC_ACQUIRE))
                return k->work + *slot * k->work_bytes;
}

static void ow_fft_release(ow_fft_work *k, int64_t slot)
{
    __atomic_store_n(&k->busy[slot], 0, __ATOMIC_RELEASE);
}

/* Bytes from one vector of points to the next, of `items` spectra: a spectrum's vectors would lie
 * in the same places of a cache if that were a power of 2. */
static inline int64_t ow_fft_step(const ow_fft_work *k, int64_t items)
{
    return (items * k->bytes / 64 | 1) * 64 + (k->bytes > 64 ? 0 : 64);
}

/* Where row y of a tile lies in the memory of a unit. */
static inline char *ow_fft_row(const ow_fft_work *k, char *work, int64_t y)
{
    const int64_t pitch = k->f.columns + OW_FFT_GAP;
    return work + (y % 2 * (k->f.rows / 2) + y / 2) * pitch * k->item;
}

/* The spectrum of the kernel of one output and channel: element k of it lies at -k, so that a
 * product of spectra is a correlation. */
static void ow_fft_kernel_unit(void *arg, int64_t unit)
{
    ow_fft_work *k = arg;
    const ow_conv *c = k->c;
    const int64_t item = k->item, o = k->output + unit / c->channels, i = unit % c->channels;
    const double scale = 2.0 / (double)(k->f.rows * k->f.columns);
    const char *from =
        c->kernels +
        (k->group * c->outputs * c->elements + o * c->of_output + i * c->of_channel) * item;
    int64_t slot;
    char *work = ow_fft_claim(k, &slot);
    memset(work, 0, (size_t)(k->f.rows * (k->f.columns + OW_FFT_GAP) * item));
    for (int64_t y = 0; y < c->kernel[1]; y++) {
        const int64_t down = (c->flip ? c->kernel[1] - 1 - y : y) * c->dilation[1];
        char *row = ow_fft_row(k, work, down ? k->f.rows - down : 0);
        for (int64_t x = 0; x < c->kernel[2]; x++, from += item) {
            const int64_t right = (c->flip ? c->kernel[2] - 1 - x : x) * c->dilation[2];
            const int64_t at = right ? k->f.columns - right : 0;
            if (c->f64)
                ((double *)row)[at] = *(const double *)from * scale;
            else
                ((float *)row)[at] = *(const float *)from * (float)scale;
        }
    }
    ow_kernels->fft_forward[c->f64](&k->f, work, k->kernels + unit * k->bytes,
                                    ow_fft_step(k, k->outputs * c->channels));
    ow_fft_release(k, slot);
}

/* The first row and column of a tile's results, and its image. */
static int64_t ow_fft_place(const ow_fft_work *k, int64_t tile, int64_t *row, int64_t *column)
{
    *column = tile % k->across * k->columns;
    *row = tile / k->across % k->down * k->rows;
    return tile / k->across / k->down;
}

/* The spectrum of one channel of a tile. */
static void ow_fft_pixels_unit(void *arg, int64_t unit)
{
    ow_fft_work *k = arg;
    const ow_conv *c = k->c;
    const int64_t item = k->item, i = unit % c->channels;
    int64_t slot, y0, x0;
    const int64_t b = ow_fft_place(k, k->tile + unit / c->channels, &y0, &x0);
    y0 -= c->pad[1];
    x0 -= c->pad[2];
    char *work = ow_fft_claim(k, &slot);
    const char *from = c->pixels + b * c->at[0] + (k->group * c->channels + i) * c->at[1];
    const int64_t right = c->image[2] - x0 < k->f.columns ? c->image[2] - x0 : k->f.columns;
    const int64_t left = x0 < 0 ? -x0 : 0, some = right > left ? right - left : 0;
    for (int64_t y = 0; y < k->f.rows; y++) {
        char *row = ow_fft_row(k, work, y);
        if (y0 + y < 0 || y0 + y >= c->image[1] || some == 0) {
            memset(row, 0, (size_t)(k->f.columns * item));
            continue;
        }
        memset(row, 0, (size_t)(left * item));
        ow_kernels->spread[c->f64](
            row + left * item, from + (y0 + y) * c->at[3] + (x0 + left) * c->at[4], c->at[4], some);
        memset(row + (left + some) * item, 0, (size_t)((k->f.columns - left - some) * item));
    }
    ow_kernels->fft_forward[c->f64](&k->f, work, k->pixels + unit * k->bytes,
                                    ow_fft_step(k, k->tiles * c->channels));
    ow_fft_release(k, slot);
}

static void ow_fft_products_unit(void *arg, int64_t unit)
{
    const ow_fft_work *k = arg;
    const int64_t first = unit * OW_FFT_POINTS, last = first + OW_FFT_POINTS;
    const int64_t of_row = k->f.rows * k->item / k->bytes; /* vectors of a row of points */
    const ow_fft_product q = {k->tiles,
                              k->c->channels,
                              k->outputs,
                              k->f.of_column[k->f.columns / 2] * of_row,
                              k->pixels,
                              k->kernels,
                              k->sums,
                              ow_fft_step(k, k->tiles * k->c->channels),
                              ow_fft_step(k, k->outputs * k->c->channels),
                              ow_fft_step(k, k->tiles * k->outputs)};
    ow_kernels->fft_products[k->c->f64](&q, first, last < k->vectors ? last : k->vectors);
}

/* The results of one output of a tile. */
static void ow_fft_results_unit(void *arg, int64_t unit)
{
    ow_fft_work *k = arg;
    const ow_conv *c = k->c;
    const int64_t item = k->item, o = k->output + unit % k->outputs;
    int64_t slot, y0, x0;
    const int64_t b = ow_fft_place(k, k->tile + unit / k->outputs, &y0, &x0);
    const int64_t rows = c->out[1] - y0 < k->rows ? c->out[1] - y0 : k->rows;
    const int64_t columns = c->out[2] - x0 < k->columns ? c->out[2] - x0 : k->columns;
    char *work = ow_fft_claim(k, &slot);
    ow_kernels->fft_back[c->f64](&k->f, k->sums + unit * k->bytes,
                                 ow_fft_step(k, k->tiles * k->outputs), work);
    const int64_t plane =
        k->by_kernels ? o * c->batch + b : (b * c->groups + k->group) * c->outputs + o;
    int finite = 1;
    for (int64_t y = 0; y < rows; y++) {
        const char *from = ow_fft_row(k, work, y);
        const int64_t row = k->flip ? c->out[1] - 1 - y0 - y : y0 + y,
                      column = k->flip ? c->out[2] - x0 - columns : x0;
        char *to = c->results + (plane * c->places + row * c->out[2] + column) * item;
        if (k->flip)
            for (int64_t x = 0; x < columns; x++)
                memcpy(to + (columns - 1 - x) * item, from + x * item, (size_t)item);
        else
            memcpy(to, from, (size_t)(columns * item));
        finite &= ow_all_finite(c->f64, to, columns);
    }
    if (!finite)
        __atomic_store_n(&k->not_finite, 1, __ATOMIC_RELAXED);
    ow_fft_release(k, slot);
}

/* Write the roots of a length. */
static char *ow_fft_roots(int64_t n, int f64, char *to)
{
    for (int64_t j = 0; j < n; j++) {
        const double angle = -2 * M_PI * (double)j / (double)n;
        for (int64_t i = 0; i < 2; i++)
            if (f64)
                ((double *)to)[2 * j + i] = i ? sin(angle) : cos(angle);
            else
                ((float *)to)[2 * j + i] = (float)(i ? sin(angle) : cos(angle));
    }
    return to + 2 * n * (f64 ? 8 : 4);
}

/* Write where the frequencies of a length lie: a pass makes four parts of every part, of the
 * frequencies q, q + 4, ... of it, and the last one two. */
static int64_t *ow_fft_order(int64_t n, int64_t *to)
{
    for (int64_t place = 0; place < n; place++) {
        int64_t frequency = 0, step = 1, rest = place;
        for (int64_t length = n; length > 1;) {
            const int64_t parts = length >= 4 ? 4 : 2;
            length /= parts;
            frequency += rest / length * step;
            rest %= length;
            step *= parts;
        }
        to[frequency] = place;
    }
    return to + n;
}

static int ow_fft_compute(ow_step *s, ow_fft_work *given, ow_conv *c, ow_slot *kernels_of,
                          int *not_finite)
{
    ow_fft_work k = *given;
    const int64_t item = k.item, threads = ow_threads(), channels = c->channels;
    ow_fft_cost(c, &k.f.rows, &k.f.columns);
    const int64_t half = k.f.rows / 2, columns = k.f.columns;
    k.rows = k.f.rows - ow_fft_reach(c, 1) + 1;
    k.columns = columns - ow_fft_reach(c, 2) + 1;
    k.down = (c->out[1] + k.rows - 1) / k.rows;
    k.across = (c->out[2] + k.columns - 1) / k.columns;
    k.bytes = c->wide * item; /* a vector of real and one of imaginary parts */
    k.vectors = half * columns * 2 / c->wide;
    const int64_t spectrum = k.vectors * k.bytes, all = c->batch * k.down * k.across;
    int64_t outputs = OW_FFT_KERNELS_BYTES / spectrum / channels, tiles;
    outputs = outputs < 1 ? 1 : outputs < c->outputs ? outputs : c->outputs;
    tiles = OW_FFT_TILES_BYTES / spectrum / (channels > outputs ? channels : outputs);
    tiles = tiles < 1 ? 1 : tiles < all ? tiles : all;
    k.slots = threads < OW_CONV_SLOTS ? threads : OW_CONV_SLOTS;
    k.work_bytes = 2 * (half * (columns + OW_FFT_GAP) + columns * (half + OW_FFT_GAP)) * item;
    const int64_t tables = (half + columns + k.f.rows) * 2 * item + (half + columns) * 8;
    const int64_t copies = ow_conv_copy_bytes(kernels_of);
    const int64_t of_kernels = k.vectors * ow_fft_step(&k, outputs * channels);
    const int64_t of_pixels = k.vectors * ow_fft_step(&k, tiles * channels);
    const int64_t spectra = of_kernels + of_pixels + k.vectors * ow_fft_step(&k, tiles * outputs);
    char *memory =
        ow_scratch(s, ow_add_size(spectra + k.slots * k.work_bytes + tables + 64, copies));
    if (memory == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate the spectra of a convolution");
    k.kernels = memory;
    k.pixels = k.kernels + of_kernels;
    k.sums = k.pixels + of_pixels;
    k.work = memory + spectra;
    char *table = k.work + k.slots * k.work_bytes;
    k.f.of_row = (int64_t *)table;
    k.f.of_column = ow_fft_order(half, (int64_t *)table);
    table = (char *)ow_fft_order(columns, (int64_t *)k.f.of_column);
    k.f.half_roots = table;
    k.f.column_roots = table = ow_fft_roots(half, c->f64, table);
    k.f.row_roots = table = ow_fft_roots(columns, c->f64, table);
    table = ow_fft_roots(k.f.rows, c->f64, table);
    char *copy = (char *)(((uintptr_t)table + 63) / 64 * 64);
    c->kernels = ow_conv_side_by_side(kernels_of, &copy);
    *not_finite = 0;
    if (c->is_turned && !ow_all_finite(c->f64, c->kernels, ow_size(kernels_of)))
        return OW_CONV_NOT_FINITE;
    for (k.group = 0; k.group < c->groups; k.group++)
        for (k.output = 0; k.output < c->outputs; k.output += outputs) {
            k.outputs = c->outputs - k.output < outputs ? c->outputs - k.output : outputs;
            ow_parallel(ow_fft_kernel_unit, &k, k.outputs * channels);
            for (k.tile = 0; k.tile < all; k.tile += tiles) {
                k.tiles = all - k.tile < tiles ? all - k.tile : tiles;
                ow_parallel(ow_fft_pixels_unit, &k, k.tiles * channels);
                ow_parallel(ow_fft_products_unit, &k,
                            (k.vectors + OW_FFT_POINTS - 1) / OW_FFT_POINTS);
                ow_parallel(ow_fft_results_unit, &k, k.tiles * k.outputs);
            }
        }
    *not_finite = k.not_finite;
    return OW_OK;
}

/* Compute a convolution. Returns OW_OK, or an error; `not_finite`: whether some results are not. */
static int ow_conv_fft(ow_step *s, ow_conv *c, ow_slot *kernels_of, int *not_finite)
{
    ow_fft_work k = {.c = c, .item = c->f64 ? 8 : 4};
    return ow_fft_compute(s, &k, c, kernels_of, not_finite);
}

/* The convolution that the gradient by the kernels of another one, without groups, is: the gradient
 * by the result is its kernels, channels are its images and images its channels. */
static ow_conv ow_fft_by_kernels(const ow_conv *c)
{
    ow_conv t = *c;
    t.batch = c->channels;
    t.channels = c->batch;
    for (int d = 0; d < 3; d++) {
        t.kernel[d] = c->out[d];
        t.out[d] = c->kernel[d];
        t.stride[d] = c->dilation[d];
        t.dilation[d] = c->stride[d];
    }
    t.at[0] = c->at[1];
    t.at[1] = c->at[0];
    t.elements = c->batch * c->places;
    t.places = c->elements / c->channels;
    t.of_output = c->places;
    t.of_channel = c->outputs * c->places;
    t.flip = t.is_turned = 0;
    t.finish = NULL;
    return t;
}

/* Compute the gradient by the kernels of a convolution to c->kernels. top: the gradient by the
 * result. */
static int ow_conv_fft_kernels(ow_step *s, const ow_conv *c, ow_slot *top, int *not_finite)
{
    ow_conv t = ow_fft_by_kernels(c);
    ow_fft_work k = {.c = &t, .item = c->f64 ? 8 : 4, .by_kernels = 1, .flip = c->flip};
    t.results = c->kernels;
    return ow_fft_compute(s, &k, &t, top, not_finite);
}

#endif
