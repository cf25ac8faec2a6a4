/* Kernels that are compiled once for each width of vectors; which ones run is decided when the
 * library is loaded, by what the processor can do. */
#ifndef OW_SIMD_H
#define OW_SIMD_H

#include "compressed.h"
#include "conv_plan.h"
#include "pool_plan.h"
#include "runtime.h"
#include "simd_targets.h"

typedef struct ow_reducer {
    const char *name; /* operation_element_accumulator */
    int accsize;
    const void *start; /* what an accumulator begins with */
    /* operands: accumulators, elements. An accumulator of stride 0 takes a whole run. */
    void (*loop)(const void *ctx, char **p, const int64_t *stride, int64_t n);
    int needs_elements; /* 1 where an empty reduction has no value */
} ow_reducer;

/* One scalar operation on n contiguous elements. */
typedef void (*ow_chunk_fn)(void *out, const void *const *in, int64_t n);

/* `columns` runs of `rows` elements, `from_step` bytes apart, become `rows` runs of `columns`
 * elements. */
typedef struct ow_tile {
    int64_t rows, columns;
    const char *from;
    int64_t from_step;
    char *to;
    int64_t to_step;
    const char *next; /* what is transposed next, in the same steps; or NULL */
} ow_tile;

/* Bytes of a column in a tile, and so many columns ahead memory is asked for. */
#define OW_TILE_BYTES 256
#define OW_ASKED 8

typedef struct ow_loop_row {
    const char *name; /* <row>_<type> or cast_<from>_<to> */
    ow_chunk_fn fn;
} ow_loop_row;

/* Rows `first` to `end` of a step of nnet.h. */
typedef void (*ow_rows_fn)(ow_step *s, int64_t first, int64_t end);

/* z = b z + a x y for x of m rows and k columns, y of k rows and n columns; strides in elements.
 * The columns of z lie side by side. */
typedef struct ow_product {
    int64_t m, n, k;
    double a, b;
    const char *x, *y;
    char *z;
    int64_t xr, xc, yr, yc, zr;
    const char *packed; /* y as `pack` leaves it, or NULL */
    int64_t zc;         /* for few_dots alone: the columns of its z lie so far apart */
} ow_product;

/* Rows i0 to i1 and columns j0 to j1 of a product. */
typedef void (*ow_gemm_fn)(const ow_product *q, int64_t i0, int64_t i1, int64_t j0, int64_t j1);

/* Products of so many pairs of small matrices, of which q is the first; the next ones of z, x and y
 * lie so many elements further. */
#define OW_SMALL_PAGE 4096 /* multiplications in one */
#define OW_SMALL_TERMS 64  /* of a sum */
typedef void (*ow_small_pages_fn)(const ow_product *q, int64_t pages, int64_t z, int64_t x,
                                  int64_t y);

/* Copy all of y to `to`, which has room for k rows of `pack_columns` elements; n must not be
 * more. */
typedef void (*ow_pack_fn)(const ow_product *q, char *to);
/* The same for columns j0 to j1, j0 being a multiple of `wide`, without a limit to n. */
typedef void (*ow_pack_part_fn)(const ow_product *q, char *to, int64_t j0, int64_t j1);

/* z = b z + a A x for A of m rows and k columns; strides in elements. */
typedef struct ow_matvec {
    int64_t m, k;
    double a, b;
    const char *A, *x;
    char *z;
    int64_t ar, ac, xs, zs;
} ow_matvec;
typedef void (*ow_matvec_fn)(const ow_matvec *q);

/* Of factor_leaves.h: for matrices of so many columns, by columns. */
#define OW_LEAF 8
typedef int (*ow_lu_leaf_fn)(int64_t m, int64_t n, void *a, int64_t ld, int *pivots);
typedef void (*ow_lower_leaf_fn)(int64_t n, int64_t many, const void *l, int64_t lr, int64_t lc,
                                 int unit, void *b, int64_t ldb);

/* Advance the states of streams `first` to `end` as often as they come up among `total` numbers, of
 * which number k is from stream k % streams, and write these numbers. */
typedef struct ow_mrg_job {
    const ow_slot *before, *after; /* six int32 for each stream; in the same memory or another */
    int64_t streams, total;
    char *numbers; /* side by side */
} ow_mrg_job;
typedef void (*ow_mrg_fn)(const ow_mrg_job *j, int64_t first, int64_t end);

/* The state of a Mersenne twister as numpy has it: the words, and how many of them are used up. */
#define OW_TWISTER_WORDS 624
typedef struct ow_twister {
    uint32_t key[OW_TWISTER_WORDS];
    int32_t pos;
} ow_twister;
#define OW_POLAR_TRIES 256 /* pairs of numbers that are worked on together */
/* Draw n numbers u between 0 and 1, and write low + range u. */
typedef void (*ow_twister_float_fn)(ow_twister *t, float *to, int64_t n, double low, double range);
typedef void (*ow_twister_double_fn)(ow_twister *t, double *to, int64_t n, double low,
                                     double range);
/* Normal numbers by the polar method, in two parts: points from so many pairs of numbers, of which
 * those within the unit circle are kept and counted; then n points become 2 n numbers. */
typedef int64_t (*ow_polar_points_fn)(ow_twister *t, double *to, int64_t tries);
typedef void (*ow_polar_normals_fn)(double *z, int64_t n);

/* The first NaN or else the first of the largest of n elements, n > 0, that lie side by side;
 * the first of them is number `from`. *where < 0 before the first of several calls; *best: the
 * element. */
typedef void (*ow_argmax_fn)(const char *p, int64_t n, int64_t from, void *best, int64_t *where);
/* The same for n <= OW_ARGMAX_ROW results side by side, of elements in `rows` rows, `step` bytes
 * apart; the first row is number `from`, which is 0 in the first of several calls. */
#define OW_ARGMAX_ROW 512
typedef void (*ow_argmax_rows_fn)(const char *p, int64_t step, int64_t n, int64_t rows,
                                  int64_t from, void *best, int64_t *where);

/* z[r, j] = (z[r, j] +) the sum over terms of g[r] x[offset[j]]; strides and offsets in elements.
 * There are `terms` terms for each image, a multiple of the lanes of a vector. Tiles of one row
 * follow each other, or if `by_columns`, tiles of one column. */
typedef struct ow_line_dots {
    int64_t images, terms;
    const char *x, *g;
    const int64_t *offset;
    int64_t x_image, g_image, g_row;
    char *z;
    int64_t zr;
    int add, by_columns;
} ow_line_dots;
typedef void (*ow_line_dots_fn)(const ow_line_dots *q, int64_t rows, int64_t columns);

/* z[r, p] = the sum over taps k of w[r, k] x[offset[k] + p], for terms p, rounded up to whole
 * vectors. */
typedef struct ow_slide {
    int64_t taps;
    const char *x, *w;
    const int64_t *offset;
    int64_t wr;
    char *z;
    int64_t zr;
} ow_slide;
typedef void (*ow_slide_fn)(const ow_slide *q, int64_t rows, int64_t terms);

/* Rows of up to so many items are sorted by their ranks. */
#define OW_RANKED 32
/* Up to so many of the largest elements are selected without sorting the others. */
#define OW_SELECTED 64

/* How rows of n < 2**32 elements, `in` bytes apart, are sorted into rows with steps of `out`
 * bytes. */
typedef struct ow_sorting {
    int64_t n, in, out;
    int typenum, itemsize;
    int positions; /* whether the positions are wanted, as int64, and not the elements */
    int alone;     /* whether one thread does all the work, and looks for signals */
    int64_t k;     /* how many of the smallest are selected, or, where `flip`, of the largest */
    int flip;
    int sorted; /* whether the selected ones are in order, and not by position */
} ow_sorting;

/* numpy's functions that sort uint32 and uint64 in place; NULL if it has none. */
typedef int (*ow_sort_in_place_fn)(void *items, intptr_t n, void *array);
extern ow_sort_in_place_fn ow_sort_in_place[2];
/* The most items for which they are faster than to distribute items by their bytes. */
extern int64_t ow_sort_wide;

/* `room`: ow_sort_room bytes. */
typedef void (*ow_sort_fn)(const ow_sorting *j, const char *x, char *to, char *room);
typedef void (*ow_select_fn)(const ow_sorting *j, const char *x, int64_t *where, char *room);

static inline int64_t ow_sort_room(const ow_sorting *j)
{
    const int64_t item = (j->itemsize == 8 ? 8 : 4) * (j->positions ? 2 : 1);
    return ow_mul_size(j->n, 2 * item);
}

/* Copy n rows of `bytes` at these offsets of a table to places `step` apart. */
typedef void (*ow_take_rows_fn)(char *to, int64_t step, const char *from, const int64_t *offset,
                                int64_t n, int64_t bytes);
/* Set, or add to, n rows at these offsets of a table, one after the other, what lies `step` apart;
 * size: of a row, in bytes to set it, in elements to add to it. The table does not overlap the
 * rest. */
typedef void (*ow_put_rows_fn)(char *to, const int64_t *offset, const char *from, int64_t step,
                               int64_t n, int64_t size);

/* What probe_body.h computes. */
typedef int64_t (*ow_rate_fn)(double *values, int64_t n);

typedef struct ow_simd {
    const char *name;
    const ow_reducer *reducers;
    int reducer_count;
    const ow_loop_row *loops;
    int loop_count;
    /* for float and double */
    ow_rows_fn softmax[2], logsoftmax[2], softmax_grad[2], xent[2], xent_dx[2], onehot[2],
        onehot_grad[2];
    /* for float, double, int32 and int64 */
    ow_gemm_fn gemm[4];
    ow_pack_fn pack[4];
    ow_gemm_fn packed_gemm[4]; /* of at most product_rows rows */
    ow_pack_part_fn pack_part[4];
    ow_small_pages_fn small_pages[4];
    ow_matvec_fn gemv[2], column_gemv[2]; /* without threads; column_gemv: for long columns */
    ow_matvec_fn dot[2];                  /* for one row; what it reads is contiguous */
    /* for at most few_columns columns; rows of x and columns of y are contiguous */
    ow_gemm_fn few_dots[2];
    ow_lu_leaf_fn lu_leaf[2];
    ow_lower_leaf_fn lower_leaf[2];
    int products;     /* whether products are as fast as those of BLAS, whatever their sizes */
    int product_rows; /* a multiple of the rows of a tile */
    int wide[4];      /* columns of a tile of gemm */
    int few_columns[2];
    int pack_columns[4];
    ow_lifted_fn lifted[2];
    ow_pack_rows_fn pack_rows[2];
    ow_gather_fn gather[2];
    ow_spread_fn spread[2];
    ow_winograd_kernels_fn winograd_kernels;
    ow_winograd_fn winograd;
    ow_winograd_sum_fn winograd_sum;
    ow_pool_forward_fn pool[2];
    ow_pool_back_fn pool_back[2];
    ow_pool_planes_fn pool_planes[2];
    ow_pool_back_planes_fn pool_back_planes[2];
    ow_depthwise_fn depthwise[2], depthwise_images[2], depthwise_kernels[2];
    ow_fft_forward_fn fft_forward[2];
    ow_fft_back_fn fft_back[2];
    ow_fft_products_fn fft_products[2];
    ow_mrg_fn mrg[2]; /* for float and double */
    ow_twister_float_fn twister_floats;
    ow_twister_double_fn twister_doubles;
    ow_polar_points_fn polar_points;
    ow_polar_normals_fn polar_normals;
    /* in the order of ow_argmaxers in reduce.h */
    ow_argmax_fn argmax[12];
    ow_argmax_rows_fn argmax_rows[12];
    ow_sort_fn sort;
    ow_select_fn select;
    ow_sparse_product_fn sparse_product[2], sparse_scatter[2];
    ow_sparse_dots_fn sparse_dots[2];
    ow_line_dots_fn dots[2];
    ow_slide_fn slide[2];
    ow_take_rows_fn take_rows;
    ow_put_rows_fn set_rows, add_rows[2];
    void (*transpose[4])(const ow_tile *t); /* of elements of 1, 2, 4, 8 bytes */
    /* what the hardware is measured with */
    void (*probe_add)(double *z, const double *x, const double *y, int64_t n);
    ow_rate_fn probe_rate[2][2]; /* for float and double; rounded twice, rounded once */
} ow_simd;

extern const ow_simd *ow_kernels;
/* Use the kernels of this name, or the widest (NULL); returns 0 if the processor has not got
 * them. */
int ow_use_kernels(const char *name);
/* The name of the kernels that would use all that the processor has; the library may lack them. */
const char *ow_processor_vectors(void);

#endif
