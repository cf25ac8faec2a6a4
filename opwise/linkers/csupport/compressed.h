/* The vectors of a compressed matrix: its rows are those of a CSR matrix, the columns of a CSC one.
 *
 * The entries of row i are those from indptr[i] to indptr[i + 1]; each lies in the column that its
 * element of `indices` says. They may be in any order, and several may lie in one place. */
#ifndef OW_COMPRESSED_H
#define OW_COMPRESSED_H

#include "runtime.h"

typedef struct ow_compressed {
    int64_t rows, columns;
    const char *data; /* or NULL where only the places matter */
    const char *indices, *indptr;
    int64_t data_step, indices_step, indptr_step; /* bytes */
    int wide_indices, wide_indptr;                /* whether they are int64, not int32 */
} ow_compressed;

static inline int64_t ow_minor(const ow_compressed *x, int64_t p)
{
    const char *at = x->indices + p * x->indices_step;
    return x->wide_indices ? *(const int64_t *)at : *(const int32_t *)at;
}

static inline int64_t ow_start(const ow_compressed *x, int64_t i)
{
    const char *at = x->indptr + i * x->indptr_step;
    return x->wide_indptr ? *(const int64_t *)at : *(const int32_t *)at;
}

/* z += a x y, or a x' y; the elements of each row of y and z lie side by side, in n columns */
typedef struct ow_sparse_product {
    ow_compressed x;
    double a;
    int64_t n;
    const char *y;
    char *z;
    int64_t yr, zr; /* bytes from row to row */
} ow_sparse_product;

/* dot products of n elements; z has an element for each entry of x */
typedef struct ow_sparse_dots {
    ow_compressed x;
    int64_t n;
    const char *y, *w;
    char *z;
    int64_t yr, wr;
} ow_sparse_dots;

/* Rows `first` to `end` of x. */
typedef void (*ow_sparse_product_fn)(const ow_sparse_product *q, int64_t first, int64_t end);
typedef void (*ow_sparse_dots_fn)(const ow_sparse_dots *q, int64_t first, int64_t end);

#endif
