/* Steps that read diagonals, and make matrices that depend on them. */
#ifndef OW_DIAGONAL_H
#define OW_DIAGONAL_H

#include "copy.h"
#include "step_params.h"

/* Let `z` be the diagonals of `x` over two axes, along a last dimension that takes their place. */
static void ow_show_diagonals(ow_slot *z, const ow_slot *x, const ow_diagonals *which)
{
    const int64_t offset = which->offset, a = which->first_axis, b = which->second_axis;
    const int64_t row = offset < 0 ? -offset : 0, column = offset > 0 ? offset : 0;
    const int64_t rows = x->shape[a] - row, columns = x->shape[b] - column;
    const int64_t shorter = rows < columns ? rows : columns;
    int out = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != a && d != b) {
            z->shape[out] = x->shape[d];
            z->strides[out++] = x->strides[d];
        }
    z->shape[out] = shorter > 0 ? shorter : 0;
    /* strides of an array without elements may be anything */
    z->strides[out] = (int64_t)((uint64_t)x->strides[a] + (uint64_t)x->strides[b]);
    z->ndim = out + 1;
    /* without elements there is little memory, and no place in it to point to */
    z->data =
        ow_size(z) ? ow_at(ow_at(x->data, row, x->strides[a]), column, x->strides[b]) : x->data;
}

static int ow_extract_diag_prep(ow_step *s)
{
    ow_show_diagonals(s->out[0], s->in[0], &OW_PARAMS(s, extract_diag)->diagonals);
    return OW_PARAMS(s, extract_diag)->view ? OW_OK : ow_ensure(s, s->out[0]);
}

static int ow_extract_diag_run(ow_step *s)
{
    if (OW_PARAMS(s, extract_diag)->view)
        return OW_OK;
    ow_slot found = *s->in[0];
    ow_show_diagonals(&found, s->in[0], &OW_PARAMS(s, extract_diag)->diagonals);
    ow_copy(s->out[0], &found);
    return OW_OK;
}

/* in: what is on the diagonals */
static int ow_alloc_diag_prep(ow_step *s)
{
    const ow_slot *x = s->in[0];
    ow_slot *z = s->out[0];
    const ow_diagonals *which = &OW_PARAMS(s, alloc_diag)->diagonals;
    const int64_t offset = which->offset, length = x->shape[x->ndim - 1];
    for (int d = 0, from = 0; d < z->ndim; d++)
        z->shape[d] = d == which->first_axis || d == which->second_axis
                          ? length + (offset < 0 ? -offset : offset)
                          : x->shape[from++];
    return ow_ensure(s, z);
}

static int ow_alloc_diag_run(ow_step *s)
{
    ow_slot *z = s->out[0], diagonals = *z;
    memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
    ow_show_diagonals(&diagonals, z, &OW_PARAMS(s, alloc_diag)->diagonals);
    ow_copy(&diagonals, s->in[0]);
    return OW_OK;
}

/* in: numbers of rows and columns, diagonal. ints: whether there are ones below the diagonal too,
 * the bits of a one */
static int ow_diagonal_matrix_prep(ow_step *s)
{
    ow_slot *z = s->out[0];
    for (int d = 0; d < 2; d++) {
        z->shape[d] = ow_int(s->in[d]);
        if (z->shape[d] < 0)
            return OW_FAIL(s, OW_VALUE_ERROR, "negative dimensions are not allowed (got %lld)",
                           (long long)z->shape[d]);
    }
    return ow_ensure(s, z);
}

/* Let columns `from` to `to` of a row be ones. */
static void ow_put_ones(char *row, int64_t from, int64_t to, int itemsize, int64_t one)
{
    for (int64_t i = from; i < to; i++)
        switch (itemsize) {
        case 1:
            ((int8_t *)row)[i] = (int8_t)one;
            break;
        case 2:
            ((int16_t *)row)[i] = (int16_t)one;
            break;
        case 4:
            ((int32_t *)row)[i] = (int32_t)one;
            break;
        default:
            ((int64_t *)row)[i] = one;
        }
}

static int ow_diagonal_matrix_run(ow_step *s)
{
    ow_slot *z = s->out[0];
    const int64_t rows = z->shape[0], columns = z->shape[1], width = columns * z->itemsize;
    /* a diagonal outside of the matrix is the nearest one outside: no sum overflows */
    const int64_t given = ow_int(s->in[2]);
    const int64_t k = given < -rows ? -rows : given > columns ? columns : given;
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t i = 0; i < rows && !ow_stops(&left, 1 + (double)columns); i++) {
        char *row = z->data + i * width;
        const int64_t end = i + k + 1 < columns ? i + k + 1 : columns;
        const int64_t first = OW_PARAMS(s, diagonal_matrix)->below || i + k < 0 ? 0 : i + k;
        memset(row, 0, (size_t)width);
        ow_put_ones(row, first, end, z->itemsize, OW_PARAMS(s, diagonal_matrix)->one);
    }
    return OW_OK;
}

#endif
