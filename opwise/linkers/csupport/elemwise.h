/* Elementwise steps, and the interpreter that runs a Composite chunk by chunk over built-in
 * loops. */
#ifndef OW_ELEMWISE_H
#define OW_ELEMWISE_H

#include "buffers.h"
#include "code.h"
#include "copy.h"
#include "step_params.h"

/* The shape of `nd` dimensions that all inputs have, but for those that `mask` says to
 * broadcast. */
static int ow_common_shape(ow_step *s, int nd, const int64_t *mask, int64_t *shape)
{
    for (int d = 0; d < nd; d++) {
        int first = -1;
        for (int i = 0; i < s->nin; i++) {
            int64_t len = s->in[i]->shape[d];
            if (mask[i] >> d & 1) {
                if (len != 1)
                    return OW_FAIL(s, OW_VALUE_ERROR,
                                   "Non-unit value on shape on a broadcastable dimension. "
                                   "(input[%d].shape[%d] = %lld)",
                                   i, d, (long long)len);
                continue;
            }
            if (first < 0) {
                first = i;
                shape[d] = len;
            } else if (len != shape[d])
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "Input dimension mis-match. (input[%d].shape[%d] = %lld, "
                               "input[%d].shape[%d] = %lld)",
                               first, d, (long long)shape[d], i, d, (long long)len);
        }
        if (first < 0)
            shape[d] = 1;
    }
    if (ow_bytes(nd, shape, 1) == INT64_MAX)
        return OW_FAIL(s, OW_MEMORY_ERROR, "an array of %d dimensions is too large", nd);
    return OW_OK;
}

static int ow_elemwise_prep(ow_step *s)
{
    const ow_elemwise_params *p = s->params;
    const int nd = (int)p->ndim;
    const int64_t *in_place = ow_elemwise_in_place(p);
    int64_t shape[OW_MAXDIM];
    int failed = ow_common_shape(s, nd, ow_elemwise_masks(p), shape);
    if (failed)
        return failed;
    for (int k = 0; k < s->nout; k++) {
        if (in_place[k] >= 0) {
            ow_alias(s->out[k], s->in[in_place[k]]);
            continue;
        }
        ow_set_shape(s->out[k], nd, shape);
        int rc = ow_ensure_like(s, s->out[k], s->in, s->nin);
        if (rc)
            return rc;
    }
    return OW_OK;
}

/* --- operands that are not contiguous ------------------------------------------------------------
 * Generated loops take contiguous operands only. Others are copied chunk by chunk, which costs less
 * than a loop without vector instructions, and halves what the compiler has to do. */

/* Rows of fewer elements are joined to long runs: a loop takes longer to start than to run on
 * them. */
#define OW_JOINED_LINE 128
/* Elements that are stored at once behind the last one of a row: the next row overwrites them. */
#define OW_SPARE 8

typedef struct ow_gathered {
    ow_loop loop;
    const void *ctx;
    ow_slot *const *slots;
    int nout, n;
    int64_t broadcast; /* the inputs that may be broadcast in `loop` */
    int accumulates;   /* whether the output is read too, and may be broadcast */
    int64_t chunk;     /* elements that are copied at once: see ow_chunk_of */
} ow_gathered;

typedef char ow_operand_copy[OW_CHUNK * 8 + OW_SPARE * 16];

/* Memory of this thread for a chunk of each operand. */
static inline ow_operand_copy *ow_operand_copies(void)
{
    return OW_THREAD_BUFFER(OW_BUFFER_OPERANDS, OW_BUFFER_REGISTERS, ow_operand_copy, OW_MAXARG);
}

/* The elements of a chunk: of 16 bytes half as many. */
static inline int64_t ow_chunk_of(ow_slot *const *slots, int n)
{
    for (int i = 0; i < n; i++)
        if (slots[i]->itemsize > 8)
            return OW_CHUNK / 2;
    return OW_CHUNK;
}

static inline int ow_direct(const ow_gathered *g, const int64_t *st, int i)
{
    return st[i] == g->slots[i]->itemsize ||
           (st[i] == 0 && (i < g->nout ? g->accumulates : g->broadcast >> (i - g->nout) & 1));
}

/* Whether the loop can run on all operands of a walk as they are. */
static inline int ow_all_direct(const ow_gathered *g, ow_walk *w)
{
    int64_t *inner = w->stride[w->ndim - 1];
    for (int i = 0; i < g->n; i++) {
        /* a single element is contiguous, whatever the strides say */
        const int stays =
            i < g->nout ? g->accumulates && !inner[i] : g->broadcast >> (i - g->nout) & 1;
        if (w->shape[w->ndim - 1] == 1 && !stays)
            inner[i] = g->slots[i]->itemsize;
        if (!ow_direct(g, inner, i))
            return 0;
    }
    return 1;
}

/* An ow_loop. */
static void ow_gather_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_gathered *g = ctx;
    ow_operand_copy *const operand = ow_operand_copies();
    for (int64_t start = 0; start < n; start += g->chunk) {
        int64_t m = n - start < g->chunk ? n - start : g->chunk;
        char *q[OW_MAXARG];
        int64_t qs[2 * OW_MAXARG + 2];
        qs[g->n] = 1; /* row */
        for (int i = 0; i < g->n; i++) {
            int size = g->slots[i]->itemsize;
            q[i] = p[i] + start * st[i];
            qs[i] = st[i];
            if (ow_direct(g, st, i))
                continue;
            char *copy[2] = {operand[i], q[i]};
            int64_t strides[2] = {size, st[i]};
            if (i >= g->nout || g->accumulates)
                ow_copy_run(copy, strides, m, size);
            q[i] = operand[i];
            qs[i] = size;
        }
        g->loop(g->ctx, q, qs, m);
        for (int i = 0; i < g->nout; i++)
            if (!ow_direct(g, st, i)) {
                char *copy[2] = {p[i] + start * st[i], operand[i]};
                int64_t strides[2] = {st[i], g->slots[i]->itemsize};
                ow_copy_run(copy, strides, m, g->slots[i]->itemsize);
            }
    }
}

/* How a walk gathers tiles, in some of whose operands rows are far apart: see ow_tile_loop. */
typedef enum ow_tile_kind {
    OW_TILE_DIRECT,  /* the loop takes it where it is */
    OW_TILE_COLUMNS, /* lies by columns */
    OW_TILE_LINES,   /* any other: copied row by row */
} ow_tile_kind;

typedef struct ow_tiled {
    const ow_gathered *g;
    int64_t len;          /* of a row, whose elements are steps of `st` apart */
    int64_t rows, across; /* of a tile */
    int joined;           /* whether a tile is one run of whole rows */
    int64_t st[OW_MAXARG];
    ow_tile_kind kind[OW_MAXARG];
} ow_tiled;

/* Bytes of a tile of one operand, and its most columns. */
#define OW_TILE_SIZE 16384
#define OW_TILE_ACROSS 64

/* Copy rows of operand `i` to its tile, whose rows are `pitch` bytes apart; `back`: the other
 * way. */
static void ow_tile_copy(const ow_tiled *t, int i, char *tile, int64_t pitch, char *at,
                         int64_t step, int64_t rows, int64_t columns, char *next, int back)
{
    const int size = t->g->slots[i]->itemsize;
    if (t->kind[i] == OW_TILE_LINES) {
        for (int64_t r = 0; r < rows; r++) {
            char *line[2] = {tile + r * pitch, at + r * step};
            int64_t st[2] = {size, t->st[i]};
            if (back)
                ow_copy_run((char *[]){line[1], line[0]}, (int64_t[]){st[1], st[0]}, columns, size);
            else
                ow_copy_run(line, st, columns, size);
        }
    } else if (back) {
        const ow_tile z = {columns, rows, tile, pitch, at, t->st[i], NULL};
        ow_copy_tile(&z, size, step, size);
    } else {
        const ow_tile z = {rows, columns, at, t->st[i], tile, pitch, next};
        ow_copy_tile(&z, size, size, step);
    }
}

/* An ow_loop over rows: operands that the loop cannot take as they are are copied to tiles. */
static void ow_tile_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_tiled *t = ctx;
    const ow_gathered *g = t->g;
    char *const tiles =
        OW_THREAD_BUFFER(OW_BUFFER_OPERANDS, OW_BUFFER_REGISTERS, char, OW_TILE_SIZE *OW_MAXARG);
    int64_t steps[2 * OW_MAXARG + 2], down[OW_MAXARG];
    steps[g->n] = 1; /* row */
    for (int i = 0; i < g->n; i++) {
        const int direct = t->kind[i] == OW_TILE_DIRECT, size = g->slots[i]->itemsize;
        steps[i] = direct ? t->st[i] : size;
        down[i] = direct ? st[i] : t->across * size;
    }
    for (int64_t row = 0; row < n; row += t->rows)
        for (int64_t column = 0; column < t->len; column += t->across) {
            const int64_t rows = n - row < t->rows ? n - row : t->rows;
            const int64_t columns = t->len - column < t->across ? t->len - column : t->across;
            const int more = column + columns < t->len;
            char *tile[OW_MAXARG], *q[OW_MAXARG];
            for (int i = 0; i < g->n; i++) {
                char *at = p[i] + row * st[i] + column * t->st[i];
                tile[i] = t->kind[i] == OW_TILE_DIRECT ? at : tiles + i * OW_TILE_SIZE;
                /* rows that are the same as those before are there already */
                if (tile[i] == at || i < g->nout || (t->joined && row && !st[i]))
                    continue;
                char *next = more             ? at + columns * t->st[i]
                             : row + rows < n ? p[i] + (row + rows) * st[i]
                                              : NULL;
                ow_tile_copy(t, i, tile[i], down[i], at, st[i], rows, columns, next, 0);
            }
            if (t->joined)
                g->loop(g->ctx, tile, steps, rows * columns);
            else
                for (int64_t r = 0; r < rows; r++) {
                    for (int i = 0; i < g->n; i++)
                        q[i] = tile[i] + r * down[i];
                    g->loop(g->ctx, q, steps, columns);
                }
            for (int i = 0; i < g->nout; i++)
                if (t->kind[i] != OW_TILE_DIRECT)
                    ow_tile_copy(t, i, tile[i], down[i], p[i] + row * st[i] + column * t->st[i],
                                 st[i], rows, columns, NULL, 1);
        }
}

/* Choose tiles for rows of `len` elements, which are steps of `st` apart, and as many as `rows`,
 * steps of `row` apart. */
static void ow_tile_choose(ow_tiled *t, int64_t len, const int64_t *st, int64_t rows,
                           const int64_t *row)
{
    int64_t largest = 1, smallest = 16;
    t->len = len;
    t->across = len < OW_TILE_ACROSS ? len : OW_TILE_ACROSS;
    t->joined = t->across == len && !t->g->accumulates;
    memcpy(t->st, st, sizeof(int64_t) * (size_t)t->g->n);
    for (int i = 0; i < t->g->n; i++) {
        const int64_t size = t->g->slots[i]->itemsize;
        const int direct = ow_direct(t->g, t->st, i);
        largest = size > largest ? size : largest;
        smallest = size < smallest ? size : smallest;
        t->kind[i] = direct && (!t->joined || row[i] == t->len * t->st[i]) ? OW_TILE_DIRECT
                     : !direct && row[i] && llabs(row[i]) < OW_NEAR        ? OW_TILE_COLUMNS
                                                                           : OW_TILE_LINES;
    }
    const int64_t lines = ow_tile_rows(smallest), most = OW_TILE_SIZE / largest;
    t->rows = most / t->across < lines ? most / t->across : most / t->across / lines * lines;
    if (!t->joined && rows <= most / lines) {
        /* few rows make one tile: their columns are read once */
        t->rows = rows;
        t->across = most / rows / lines * lines;
    }
}

/* --- short rows ----------------------------------------------------------------------------------
 * Rows of few elements are taken many at once, as one run. Operands whose rows follow each other
 * are read where they are; the rows of others are written behind each other first. */

typedef enum ow_row_kind {
    OW_ROW_JOINED,   /* follows the row before it, or is the same number in all rows */
    OW_ROW_NUMBER,   /* one number in each row */
    OW_ROW_RUN,      /* contiguous */
    OW_ROW_GATHERED, /* any other */
} ow_row_kind;

typedef struct ow_joined {
    const ow_gathered *g;
    int64_t len; /* of a row, whose dimensions are not in the walk */
    ow_row_kind kind[OW_MAXARG];
    int64_t st[OW_MAXARG];                    /* from element to element of a joined operand */
    int64_t place[OW_MAXARG][OW_JOINED_LINE]; /* of a gathered row's elements, in bytes */
    char *same[OW_MAXARG]; /* rows of an operand that has one row for all of the walk, or NULL */
} ow_joined;

#define OW_WRITE_ROWS(T, NAME)                                                                     \
    static void NAME(const ow_joined *j, int i, char *to, const char *from, int64_t step,          \
                     int64_t rows)                                                                 \
    {                                                                                              \
        const int64_t len = j->len, *place = j->place[i];                                          \
        const ow_row_kind kind = j->kind[i];                                                       \
        T *z = (T *)to;                                                                            \
        if (kind == OW_ROW_NUMBER && len <= OW_SPARE)                                              \
            for (int64_t row = 0; row < rows; row++, z += len, from += step) {                     \
                const T x = *(const T *)from;                                                      \
                for (int m = 0; m < OW_SPARE; m++)                                                 \
                    z[m] = x;                                                                      \
            }                                                                                      \
        else if (kind == OW_ROW_NUMBER)                                                            \
            for (int64_t row = 0; row < rows; row++, z += len, from += step) {                     \
                const T x = *(const T *)from;                                                      \
                for (int64_t k = 0; k < len; k += OW_SPARE)                                        \
                    for (int m = 0; m < OW_SPARE; m++)                                             \
                        z[k + m] = x;                                                              \
            }                                                                                      \
        else if (kind == OW_ROW_RUN)                                                               \
            for (int64_t row = 0; row < rows; row++, z += len, from += step)                       \
                for (int64_t k = 0; k < len; k++)                                                  \
                    z[k] = ((const T *)from)[k];                                                   \
        else                                                                                       \
            for (int64_t row = 0; row < rows; row++, z += len, from += step)                       \
                for (int64_t k = 0; k < len; k++)                                                  \
                    z[k] = *(const T *)(from + place[k]);                                          \
    }                                                                                              \
    static void NAME##_back(const ow_joined *j, int i, char *to, const char *from, int64_t step,   \
                            int64_t rows)                                                          \
    {                                                                                              \
        const int64_t len = j->len, *place = j->place[i];                                          \
        const T *x = (const T *)from;                                                              \
        for (int64_t row = 0; row < rows; row++, x += len, to += step)                             \
            for (int64_t k = 0; k < len; k++)                                                      \
                *(T *)(to + place[k]) = x[k];                                                      \
    }
OW_WRITE_ROWS(int8_t, ow_rows_1)
OW_WRITE_ROWS(int16_t, ow_rows_2)
OW_WRITE_ROWS(int32_t, ow_rows_4)
OW_WRITE_ROWS(int64_t, ow_rows_8)
typedef struct ow_item_16 {
    int64_t half[2];
} ow_item_16;
OW_WRITE_ROWS(ow_item_16, ow_rows_16)

/* Write `rows` rows of operand `i`, `step` bytes apart, behind each other; `back`: the other
 * way. */
static inline void ow_write_rows(const ow_joined *j, int i, char *to, const char *from,
                                 int64_t step, int64_t rows, int back)
{
    switch (j->g->slots[i]->itemsize) {
    case 1:
        (back ? ow_rows_1_back : ow_rows_1)(j, i, to, from, step, rows);
        break;
    case 2:
        (back ? ow_rows_2_back : ow_rows_2)(j, i, to, from, step, rows);
        break;
    case 4:
        (back ? ow_rows_4_back : ow_rows_4)(j, i, to, from, step, rows);
        break;
    case 8:
        (back ? ow_rows_8_back : ow_rows_8)(j, i, to, from, step, rows);
        break;
    default:
        (back ? ow_rows_16_back : ow_rows_16)(j, i, to, from, step, rows);
    }
}

/* An ow_loop over rows. */
static void ow_joined_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_joined *j = ctx;
    const ow_gathered *g = j->g;
    ow_operand_copy *const operand = ow_operand_copies();
    const int64_t most = g->chunk / j->len;
    int64_t steps[2 * OW_MAXARG + 2];
    char *q[OW_MAXARG];
    steps[g->n] = 1; /* row */
    for (int64_t row = 0; row < n; row += most) {
        const int64_t rows = n - row < most ? n - row : most;
        for (int i = 0; i < g->n; i++) {
            const int joined = j->kind[i] == OW_ROW_JOINED;
            char *at = p[i] + row * st[i];
            steps[i] = joined ? j->st[i] : g->slots[i]->itemsize;
            q[i] = joined ? at : j->same[i] ? j->same[i] : operand[i];
            /* rows that are the same as those before are there already */
            if (!joined && !j->same[i] && i >= g->nout && (st[i] || !row))
                ow_write_rows(j, i, q[i], at, st[i], rows, 0);
        }
        g->loop(g->ctx, q, steps, rows * j->len);
        for (int i = 0; i < g->nout; i++)
            if (j->kind[i] != OW_ROW_JOINED)
                ow_write_rows(j, i, p[i] + row * st[i], operand[i], st[i], rows, 1);
    }
}

/* How the rows of operand `i` lie, whose dimensions are those of the walk from `first` on. */
static void ow_join_operand(ow_joined *j, const ow_walk *w, int first, int i)
{
    const int64_t size = j->g->slots[i]->itemsize, before = w->stride[first - 1][i];
    int64_t inner = size, at[OW_MAXDIM] = {0}, place = 0;
    int same = 1, run = 1;
    for (int d = w->ndim - 1; d >= first; d--) {
        same &= w->stride[d][i] == 0;
        run &= w->stride[d][i] == inner;
        inner *= w->shape[d];
    }
    /* only an operand that may be broadcast in the loop can stay the same number from row to row */
    const int stays = same && before == 0 && ow_direct(j->g, w->stride[w->ndim - 1], i);
    j->st[i] = stays ? 0 : size;
    j->kind[i] = stays || (run && before == inner) ? OW_ROW_JOINED
                 : same                            ? OW_ROW_NUMBER
                 : run                             ? OW_ROW_RUN
                                                   : OW_ROW_GATHERED;
    if (j->kind[i] == OW_ROW_JOINED)
        return;
    for (int64_t k = 0; k < j->len; k++) {
        j->place[i][k] = place;
        for (int d = w->ndim - 1; d >= first; d--) {
            place += w->stride[d][i];
            if (++at[d] < w->shape[d])
                break;
            at[d] = 0;
            place -= w->stride[d][i] * w->shape[d];
        }
    }
}

/* Write the rows of operands that have one row for all of a walk over several; returns their
 * memory, which may be NULL: rows are then written where they are needed. */
static char *ow_same_rows(ow_joined *j, const ow_walk *w)
{
    const ow_gathered *g = j->g;
    const int64_t all = w->shape[w->ndim - 1], most = g->chunk / j->len,
                  room = 16 * (g->chunk + OW_SPARE);
    int which[OW_MAXARG], many = 0;
    memset(j->same, 0, sizeof(j->same));
    for (int i = g->nout; i < g->n && w->ndim > 1; i++) {
        int same = j->kind[i] != OW_ROW_JOINED;
        for (int d = 0; d < w->ndim; d++)
            same &= w->stride[d][i] == 0;
        if (same)
            which[many++] = i;
    }
    char *memory = many ? ow_alloc(many * room) : NULL;
    for (int k = 0; memory && k < many; k++) {
        j->same[which[k]] = memory + k * room;
        ow_write_rows(j, which[k], memory + k * room, w->p[which[k]], 0, all < most ? all : most,
                      0);
    }
    return memory;
}

/* Run a loop over short rows joined to long runs; returns 0 if the rows of a walk are not short. */
static int ow_walk_joined(ow_walk *w, const ow_gathered *g, double ns)
{
    int first = w->ndim - 1;
    int64_t len = w->shape[first];
    if (!first || len >= OW_JOINED_LINE)
        return 0;
    while (first > 1 && len * w->shape[first - 1] < OW_JOINED_LINE)
        len *= w->shape[--first];
    ow_joined j;
    j.g = g;
    j.len = len;
    for (int i = 0; i < g->n; i++)
        ow_join_operand(&j, w, first, i);
    w->ndim = first;
    char *memory = ow_same_rows(&j, w);
    ow_walk_share(w, ow_joined_loop, &j, ns, INT64_MAX / 2);
    ow_free(memory);
    return 1;
}

/* Run a loop over operands of which it cannot take some as they are; `across`: the dimension along
 * which one of them lies by columns, or -1. */
static void ow_walk_gather(ow_walk *w, const ow_gathered *g, int across, double ns)
{
    ow_tiled tiled = {.g = g};
    if (across < 0) {
        ow_walk_share(w, ow_gather_loop, g, ns, INT64_MAX / 2);
        return;
    }
    ow_walk_innermost(w, across);
    ow_walk_innermost(w, w->ndim - 2);
    w->ndim--;
    ow_tile_choose(&tiled, w->shape[w->ndim], w->stride[w->ndim], w->shape[w->ndim - 1],
                   w->stride[w->ndim - 1]);
    ow_walk_share(w, ow_tile_loop, &tiled, ns, INT64_MAX / 2);
}

/* The most common case, without a walk: every operand is one run of all elements, or one number
 * that is broadcast. Returns 0 if it is not that. */
static inline int ow_elemwise_flat(ow_step *s, int64_t broadcast)
{
    const ow_slot *z = s->out[0];
    const int64_t size = ow_size(z);
    char *p[OW_MAXARG];
    int64_t st[OW_MAXARG];
    if (OW_PARAMS(s, elemwise)->nanoseconds * (double)size > OW_WORTH)
        return 0;
    for (int i = 0; i < s->nout + s->nin; i++) {
        const ow_slot *c = i < s->nout ? s->out[i] : s->in[i - s->nout];
        const int moves = i < s->nout || !(broadcast >> (i - s->nout) & 1);
        p[i] = c->data;
        st[i] = moves ? c->itemsize : 0;
        if (moves ? !ow_is_c_contiguous(c) || ow_size(c) != size : ow_size(c) != 1)
            return 0;
    }
    if (size)
        s->loop(s->ctx, p, st, size);
    return 1;
}

static int ow_elemwise_run(ow_step *s)
{
    ow_walk w;
    ow_slot *slots[OW_MAXARG];
    const int64_t broadcast = OW_PARAMS(s, elemwise)->broadcast;
    if (broadcast >= 0 && ow_elemwise_flat(s, broadcast))
        return OW_OK;
    for (int k = 0; k < s->nout; k++)
        slots[k] = s->out[k];
    for (int i = 0; i < s->nin; i++)
        slots[s->nout + i] = s->in[i];
    ow_slot *shape = s->out[0];
    int64_t size = ow_walk_start(&w, shape->ndim, shape->shape, s->nout + s->nin, slots, 0);
    if (!size)
        return OW_OK;
    ow_gathered g = {s->loop, s->ctx, slots, s->nout, w.n, broadcast, 0, ow_chunk_of(slots, w.n)};
    double ns = OW_PARAMS(s, elemwise)->nanoseconds * (double)size;
    int across = -1;
    for (int i = s->nout; i < w.n && across < 0; i++)
        across = ow_walk_across(&w, i);
    if (across < 0 && ow_walk_joined(&w, &g, ns))
        return OW_OK;
    if (across < 0 && (broadcast < 0 || ow_all_direct(&g, &w)))
        ow_walk_share(&w, s->loop, s->ctx, ns, INT64_MAX / 2);
    else
        ow_walk_gather(&w, &g, across, ns);
    return OW_OK;
}

/* --- the interpreter -------------------------------------------------------------------------- */

typedef char ow_register[8 * OW_CHUNK];

/* The registers of the interpreter in this thread, a chunk each. */
static inline ow_register *ow_registers(void)
{
    return OW_THREAD_BUFFER(OW_BUFFER_REGISTERS, OW_BUFFER_RUN, ow_register, OW_MAXREG);
}

static inline void ow_gather(char *to, const char *from, int64_t stride, int itemsize, int64_t n)
{
    char *p[2] = {to, (char *)from};
    int64_t st[2] = {itemsize, stride};
    ow_copy_run(p, st, n, itemsize);
}

/* Compute m elements of each register, from number `start` of the operands on. */
static inline void ow_interpret_chunk(const ow_code *code, ow_register *registers, const void **reg,
                                      char **p, const int64_t *st, int64_t start, int64_t m)
{
    const int nout = code->nout;
    for (int i = 0; i < code->nin; i++) {
        const int64_t stride = st[nout + i];
        const int size = code->itemsize[i];
        const char *from = p[nout + i] + start * stride;
        if (stride == size)
            reg[i] = from;
        else if (stride != 0 || start == 0) {
            ow_gather(registers[i], from, stride, size, m);
            reg[i] = registers[i];
        }
    }
    for (int k = 0; k < code->ninstr; k++) {
        const ow_instr *in = code->instr + k;
        const void *args[4];
        for (int j = 0; j < in->nin; j++)
            args[j] = reg[in->in[j]];
        in->fn((void *)reg[in->out], args, m);
    }
}

/* Elements that generated loops fold into one number, before such numbers are joined pairwise: _RUN
 * of loops.py. */
#define OW_RUN 1024

/* Fold result k of a run of elements into its accumulator, in the order of generated loops. */
static void ow_interpret_run(const ow_code *code, ow_register *registers, const void **reg,
                             char **p, const int64_t *st, int64_t n, int k)
{
    char *const values = OW_THREAD_BUFFER(OW_BUFFER_RUN, OW_BUFFER_LEFT, char, 16 * OW_RUN);
    const ow_reducer *reducer = code->reducer, *join = code->join;
    const int result = code->results[k], size = code->itemsize[result];
    const int64_t one[4] = {0, reducer->accsize, 1, 0}, run[4] = {0, size, 1, 0};
    char total[16], part[64][16]; /* part[j]: of 2 ** j blocks */
    uint64_t blocks = 0;
    int j;
    for (int64_t from = 0; from < n; from += OW_RUN, blocks++) {
        const int64_t m = n - from < OW_RUN ? n - from : OW_RUN;
        for (int64_t start = 0; start < m; start += code->chunk) {
            const int64_t some = m - start < code->chunk ? m - start : code->chunk;
            ow_interpret_chunk(code, registers, reg, p, st, from + start, some);
            memcpy(values + start * size, reg[result], (size_t)(some * size));
        }
        memcpy(total, reducer->start, (size_t)reducer->accsize);
        code->run->loop(NULL, (char *[]){total, values}, run, m);
        for (j = 0; blocks >> j & 1; j++) {
            join->loop(NULL, (char *[]){part[j], total}, one, 1);
            memcpy(total, part[j], (size_t)reducer->accsize);
        }
        memcpy(part[j], total, (size_t)reducer->accsize);
    }
    for (j = 0; blocks >> j; j++)
        if (blocks >> j & 1)
            join->loop(NULL, (char *[]){p[k], part[j]}, one, 1);
}

/* An ow_loop: operands are the outputs, then the inputs. */
static void ow_interpret(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_code *code = ctx;
    const void *reg[OW_MAXREG];
    ow_register *const registers = ow_registers();
    for (int r = 0; r < code->nreg; r++)
        reg[r] = registers[r];
    if (code->reducer && st[0] == 0) {
        for (int k = 0; k < code->nout; k++)
            ow_interpret_run(code, registers, reg, p, st, n, k);
        return;
    }
    for (int64_t start = 0; start < n; start += code->chunk) {
        const int64_t m = n - start < code->chunk ? n - start : code->chunk;
        ow_interpret_chunk(code, registers, reg, p, st, start, m);
        for (int k = 0; k < code->nout; k++) {
            const int r = code->results[k], size = code->itemsize[r];
            char *q[2] = {p[k] + start * st[k], (char *)reg[r]};
            const int64_t steps[4] = {st[k], size, 1, 0};
            if (code->reducer)
                code->reducer->loop(NULL, q, steps, m);
            else
                ow_copy_run(q, (const int64_t *)steps, m, size);
        }
    }
}

#endif
