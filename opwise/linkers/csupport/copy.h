/* Copies of arrays in any layout. */
#ifndef OW_COPY_H
#define OW_COPY_H

#include "simd.h"

/* How a walk copies: for each of its elements a run of `len`, in steps of `st`. */
typedef struct ow_copy_unit {
    int itemsize;
    int64_t len, st[2];
} ow_copy_unit;

static void ow_copy_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    ow_copy_run(p, st, n, ((const ow_copy_unit *)ctx)->itemsize);
}

/* Runs of fewer elements are copied across, many runs at once. */
#define OW_SHORT_RUN 8
/* So many runs at once: their cache lines are still there when the next element of each is
 * copied. */
#define OW_RUNS_ACROSS 128

static void ow_copy_across(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_copy_unit *c = ctx;
    for (int64_t first = 0; first < n; first += OW_RUNS_ACROSS) {
        const int64_t runs = n - first < OW_RUNS_ACROSS ? n - first : OW_RUNS_ACROSS;
        for (int64_t i = 0; i < c->len; i++) {
            char *q[2] = {p[0] + first * st[0] + i * c->st[0], p[1] + first * st[1] + i * c->st[1]};
            ow_copy_run(q, st, runs, c->itemsize);
        }
    }
}

/* --- tiles ---------------------------------------------------------------------------------------
 * A matrix that lies by rows in one array and by columns in another is copied tile by tile:
 * elements that share a cache line are copied while it is there. */

/* Rows of a tile: as many as bring whole cache lines of a column. */
static inline int64_t ow_tile_rows(int64_t itemsize)
{
    return itemsize < OW_TILE_BYTES ? OW_TILE_BYTES / itemsize : 1;
}

/* The sides of squares that are transposed at once: see simd_rows.h. */
static inline int64_t ow_tile_lanes(int64_t itemsize)
{
    return itemsize == 1 ? 16 : itemsize == 8 ? 4 : 8;
}

#define OW_LOG2(size) ((size) == 1 ? 0 : (size) == 2 ? 1 : (size) == 4 ? 2 : 3)

/* Copy a tile as ow_tile says; `to_near`, `from_near`: the bytes between neighbours in a row of
 * `to`, in a column of `from`. */
static inline void ow_copy_tile(const ow_tile *t, int64_t itemsize, int64_t to_near,
                                int64_t from_near)
{
    if (itemsize <= 8 && to_near == itemsize && from_near == itemsize) {
        ow_kernels->transpose[OW_LOG2(itemsize)](t);
        return;
    }
    for (int64_t k = 0; k < t->columns; k++) {
        char *p[2] = {t->to + k * to_near, (char *)t->from + k * t->from_step};
        ow_copy_run(p, (int64_t[]){t->to_step, from_near}, t->rows, (int)itemsize);
    }
}

/* An ow_loop over rows. */
static void ow_copy_tiles(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_copy_unit *c = ctx;
    const int64_t most = ow_tile_rows(c->itemsize);
    ow_tile t = {.columns = c->len, .to_step = st[0], .from_step = c->st[1]};
    for (int64_t i = 0; i < n; i += most) {
        t.rows = n - i < most ? n - i : most;
        t.to = p[0] + i * st[0];
        t.from = p[1] + i * st[1];
        t.next = i + most < n ? t.from + most * st[1] : NULL;
        ow_copy_tile(&t, c->itemsize, c->st[0], st[1]);
    }
}

/* Dimensions of fewer elements are not worth tiles. */
#define OW_TILE 8

/* The dimension along which operand `i` of a walk has its near elements, if those along the last
 * one are far apart and both dimensions are long enough for tiles; or -1. */
static inline int ow_walk_across(const ow_walk *w, int i)
{
    const int last = w->ndim - 1;
    if (llabs(w->stride[last][i]) <= OW_NEAR || w->shape[last] < OW_TILE)
        return -1;
    for (int d = last - 1; d >= 0; d--)
        if (w->stride[d][i] && llabs(w->stride[d][i]) < OW_NEAR && w->shape[d] >= OW_TILE)
            return d;
    return -1;
}

/* Copy the elements of `from` into `to`; lengths 1 of `from` broadcast. */
static inline void ow_copy(ow_slot *to, ow_slot *from)
{
    ow_walk w;
    ow_slot *slots[2] = {to, from};
    ow_copy_unit c = {.itemsize = (int)to->itemsize};
    const int64_t size = ow_walk_start(&w, to->ndim, to->shape, 2, slots, 0);
    if (size == 0)
        return;
    const int last = w.ndim - 1, across = ow_walk_across(&w, 1);
    ow_loop loop = ow_copy_loop;
    if (across >= 0) {
        ow_walk_innermost(&w, across);
        ow_walk_innermost(&w, last - 1);
        loop = ow_copy_tiles;
    } else if (last > 0 && w.shape[last] < OW_SHORT_RUN && w.shape[last] < w.shape[last - 1])
        loop = ow_copy_across;
    if (loop != ow_copy_loop) {
        c.len = w.shape[last];
        memcpy(c.st, w.stride[last], sizeof(c.st));
        w.ndim = last;
    }
    ow_walk_in_order(&w, loop, &c, size);
}

#endif
