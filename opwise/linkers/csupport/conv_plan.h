/* What the kernels of convolutions get: lengths, distances and memory. */
#ifndef OW_CONV_PLAN_H
#define OW_CONV_PLAN_H

#include <stdint.h>

/* Write elementwise work on results that are complete: on those of an image's channel at places
 * `first` to `first + n`, which lie at `from`, the place of results or another. See
 * conv_epilogue.h. */
typedef struct ow_epilogue ow_epilogue;
typedef void (*ow_finish_fn)(const ow_epilogue *then, int64_t image, int64_t channel, int64_t first,
                             int64_t n, const char *from);

/* A convolution of one call. Two spatial axes are three of which the first has length 1. */
typedef struct ow_conv {
    int64_t batch, groups, channels, outputs; /* channels and outputs of one group */
    int64_t image[3], kernel[3], out[3], stride[3], dilation[3], pad[3];
    int64_t at[5];                 /* bytes between images, channels, and along axes */
    int64_t elements, places;      /* of a kernel with its channels; of one result */
    int64_t of_output, of_channel; /* elements from kernel to kernel */
    int64_t wide, most;            /* columns of a tile, and of a block */
    int flip, f64;
    int is_turned; /* computes the gradient by images of another convolution */
    char *pixels, *kernels, *results;
    ow_finish_fn finish; /* what units of work call when results are complete, or NULL */
    const ow_epilogue *then;
} ow_conv;

/* z = x y or z = z + x y. x: k terms for each of m rows, as `pack_rows` leaves them. Row p of y
 * begins at y + rows[p]; whole tiles of it can be read. Strides in elements. */
typedef struct ow_lifted {
    int64_t m, n, k;
    const char *x, *y;
    const int64_t *rows;
    char *z;
    int64_t zr;
    int add;   /* to what z holds */
    int whole; /* whether z has room for whole tiles */
} ow_lifted;
typedef void (*ow_lifted_fn)(const ow_lifted *q);

/* Write m rows of k terms in the order in which `lifted` reads them: tile by tile, term by term.
 * Term p of row r is x[r * xr + terms[p]]. */
typedef void (*ow_pack_rows_fn)(const char *x, int64_t m, int64_t k, int64_t xr,
                                const int64_t *terms, char *to);

/* Elements that lie side by side. */
typedef struct ow_conv_piece {
    int64_t at;     /* where the first one lies */
    int64_t column; /* where it goes */
    int64_t n;
} ow_conv_piece;

/* Write k rows, `step` elements apart: for each the pieces that lie from from[terms[p]] on. Vectors
 * are copied, so that more than a piece may be written, which the next one overwrites. */
typedef void (*ow_gather_fn)(const char *from, const ow_conv_piece *pieces, int64_t count,
                             const int64_t *terms, int64_t k, char *to, int64_t step);

/* Copy n elements, which lie s bytes apart. */
typedef void (*ow_spread_fn)(char *to, const char *from, int64_t s, int64_t n);

/* A convolution of float32 with 3 by 3 kernels by Winograd's algorithm, or its gradient by the
 * kernels: see winograd_tiles.h. */
typedef struct ow_winograd {
    const ow_conv *c;
    const ow_conv *top;        /* whose images are the gradient by the result, or NULL */
    int64_t down, across;      /* tiles of an image along its axes */
    int64_t tiles;             /* of all images; */
    int64_t most;              /* of one block */
    int64_t channels, outputs; /* of one group, rounded up to whole vectors and panels */
    int64_t point;             /* elements of the transformed kernels of one point */
    float *kernels;            /* transformed, of all groups */
    int *not_finite;           /* set if a result is not */
} ow_winograd;
/* Transform the kernels of channels `first` to `end` of one vector of outputs of a group. */
typedef void (*ow_winograd_kernels_fn)(const ow_winograd *w, int64_t group, int64_t vector,
                                       int64_t first, int64_t end);
/* Compute tiles `first` to `end` for panels `from` to `to` of a group's outputs. */
typedef void (*ow_winograd_fn)(const ow_winograd *w, int64_t group, int64_t first, int64_t end,
                               int64_t from, int64_t to, char *memory);

/* The gradient by some kernels of a group: what it is of `channels` channels and `outputs`
 * outputs. */
typedef struct ow_winograd_sums {
    const ow_winograd *w;
    int64_t group, channel, channels, output, outputs;
    int64_t wide, high; /* channels and outputs, rounded up to whole vectors */
    int64_t most;       /* tiles of a block */
    float *to;          /* gradients by all kernels */
} ow_winograd_sums;
/* Sum over tiles `first` to `end`. */
typedef void (*ow_winograd_sum_fn)(const ow_winograd_sums *q, int64_t first, int64_t end,
                                   char *memory);

/* A convolution of two axes with a kernel for each channel: see depthwise_tiles.h. */
typedef struct ow_depthwise {
    const ow_conv *c;
    const char *top; /* the gradient by the result, and bytes between its elements, for gradients */
    const int64_t *at;
    int64_t high, wide; /* of the copy of a plane with its pads */
} ow_depthwise;
/* Compute what belongs to channels `channel` to `channel + some`, at most as many as a vector has
 * elements, of images `first` to `end`. */
typedef void (*ow_depthwise_fn)(const ow_depthwise *q, int64_t channel, int64_t some, int64_t first,
                                int64_t end, char *memory);

/* Fourier transforms of tiles of `rows` by `columns` real numbers, both powers of 2: see
 * fft_tiles.h. */
typedef struct ow_fft {
    int64_t rows, columns;
    /* exp(-2 pi i j / n), re and im, for all j < n: n of half the rows, of the columns, of the
     * rows */
    const char *half_roots, *column_roots, *row_roots;
    /* where frequency k lies among those of half the rows, and of the columns */
    const int64_t *of_row, *of_column;
} ow_fft;

/* Elements between the rows of a plane of such a tile, beyond those of a row. */
#define OW_FFT_GAP 16
/* The least length of a tile, and the largest. */
#define OW_FFT_LEAST 32
#define OW_FFT_MOST 512

/* `work`: two planes of half the rows, for even and odd rows of the tile, and two that are
 * transposed. */
typedef void (*ow_fft_forward_fn)(const ow_fft *f, char *work, char *to, int64_t step);
typedef void (*ow_fft_back_fn)(const ow_fft *f, const char *from, int64_t step, char *work);

/* z[tile, output] = the sum over channels of x[tile, channel] w[output, channel], point by
 * point: for each vector of points the items of an operand follow each other, with their
 * channels inside. */
typedef struct ow_fft_product {
    int64_t tiles, channels, outputs;
    int64_t
        special; /* besides the first, the vector of which the first point is two real numbers */
    const char *x, *w;
    char *z;
    int64_t xs, ws, zs; /* bytes from one vector of points to the next */
} ow_fft_product;
/* At vectors `first` to `end`. */
typedef void (*ow_fft_products_fn)(const ow_fft_product *q, int64_t first, int64_t end);

#endif
