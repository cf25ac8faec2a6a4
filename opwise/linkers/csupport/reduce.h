/* Reductions along any axes of what a loop computes from its operands, and argmax. */
#ifndef OW_REDUCE_H
#define OW_REDUCE_H

#include "elemwise.h"
#include "scalar.h"
#include "step_params.h"
#include "complexes.h" /* after scalar.h */

/* How many accumulators side by side are kept in the second cache while many rows go into them. */
#define OW_ROW_BLOCK 8192
/* Rows shorter than this are not worth a loop: the longest reduced dimension goes inside
 * instead. */
#define OW_SHORT_ROW 32
/* At most so many accumulators of an element are kept in several rows. */
#define OW_MOST_WIDE 4

/* Into how many parts a dimension is cut at most that several threads reduce, each with `n_out`
 * accumulators. It does not depend on how many threads there are, and so neither do the rounding
 * errors. */
static inline int64_t ow_most_parts(int64_t n_out)
{
    return n_out <= OW_SHORT_ROW ? 64 : n_out <= 2 * OW_ROW_BLOCK ? 8 : 1;
}

static void ow_fill(char *p, int64_t n, const void *value, int size)
{
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t i = 0; i < n && !ow_stops(&left, OW_BLOCK);) {
        const int64_t m = n - i < OW_BLOCK ? n - i : OW_BLOCK, st[2] = {size, 0};
        char *q[2] = {p + i * size, (char *)value};
        i += ow_copy_run(q, st, m, size);
    }
}

/* Copy n accumulators to results, which may be narrower. */
#define OW_NARROW_LOOP(T, EXPRESSION)                                                              \
    for (int64_t i = 0; i < n && !ow_stops(&left, OW_BLOCK);) {                                    \
        const int64_t end = n - i < OW_BLOCK ? n : i + OW_BLOCK;                                   \
        for (; i < end; i++)                                                                       \
            ((T *)to)[i] = (EXPRESSION);                                                           \
    }

static void ow_narrow(ow_slot *z, const char *from, int size)
{
    const int64_t n = ow_size(z);
    char *to = z->data;
    double left = OW_LONGEST_CHUNK_NS;
    if (z->itemsize == size)
        memcpy(to, from, (size_t)(n * size));
    else if (z->typenum == OW_COMPLEX64_TYPENUM) {
        OW_NARROW_LOOP(ow_c64, ow_c64_of_c128(((const ow_c128 *)from)[i]))
    } else if (z->typenum == OW_FLOAT_TYPENUM) {
        OW_NARROW_LOOP(float, (float)((const double *)from)[i])
    } else if (size == sizeof(double)) {
        OW_NARROW_LOOP(ow_f16, ow_to_f16(ow_round_f64_to_f16(((const double *)from)[i])))
    } else {
        OW_NARROW_LOOP(ow_f16, ow_to_f16(ow_round_f16(((const float *)from)[i])))
    }
}

/* Each output has accumulators of its own, which one loop over the operands fills. Without a loop,
 * that of the reducer is used. */
static int ow_reduce_prep(ow_step *s)
{
    const ow_reduce_params *p = s->params;
    const ow_reducer *r = &ow_kernels->reducers[p->reducer];
    ow_slot *z = s->out[0];
    int64_t shape[OW_MAXDIM];
    int nd = (int)p->ndim, k = 0;
    int rc = ow_common_shape(s, nd, ow_reduce_masks(p), shape);
    if (rc)
        return rc;
    for (int d = 0; d < nd; d++) {
        if (!(p->axes >> d & 1))
            z->shape[k++] = shape[d];
        else if (shape[d] == 0 && r->needs_elements && !p->empty)
            return OW_FAIL(s, OW_VALUE_ERROR, "Input of CAReduce{%.7s} has zero-size on axis %d",
                           r->name, d);
    }
    for (int o = 1; o < s->nout; o++)
        ow_set_shape(s->out[o], z->ndim, z->shape);
    for (int o = 0; o < s->nout && !rc; o++)
        rc = ow_ensure(s, s->out[o]);
    double size = 1;
    for (int d = 0; d < nd; d++)
        size *= (double)shape[d];
    int64_t sets = p->apart;
    if (p->nanoseconds * size > OW_WORTH)
        sets += ow_most_parts(ow_size(z));
    if (!rc && sets && !ow_scratch(s, ow_mul_size(sets * s->nout * r->accsize, ow_size(z))))
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate accumulators");
    return rc;
}

/* A loop of a reduction whose accumulators each take one element: only then are they filled, while
 * they are in the first cache. */
typedef struct ow_fresh {
    ow_loop loop;
    const void *ctx;
    const ow_reducer *reducer;
    int n_acc;
} ow_fresh;

static void ow_fresh_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_fresh *f = ctx;
    for (int k = 0; k < f->n_acc; k++) {
        char *start[2] = {p[k], (char *)f->reducer->start};
        const int64_t steps[2] = {st[k], 0};
        ow_copy_run(start, steps, n, f->reducer->accsize);
    }
    f->loop(f->ctx, p, st, n);
}

/* Accumulators side by side that are few: so many rows of them as make one of OW_WIDE are filled at
 * once, and joined in the end. Rows of operands follow each other, or are the same number. */
#define OW_WIDE 128

typedef struct ow_wide {
    ow_loop loop;
    const void *ctx;
    const ow_reducer *reducer, *join;
    int n_acc, n;
    int64_t len, st[OW_MAXARG]; /* of a row */
} ow_wide;

/* An ow_loop over rows. */
static void ow_wide_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_wide *w = ctx;
    const int64_t many = OW_WIDE / w->len, size = w->reducer->accsize, rows = n / many;
    char wide[OW_MOST_WIDE][OW_WIDE * 16] __attribute__((aligned(64)));
    int64_t steps[2 * OW_MAXARG + 2];
    char *q[OW_MAXARG];
    for (int a = 0; a < w->n_acc; a++)
        ow_fill(wide[a], many * w->len, w->reducer->start, (int)size);
    memcpy(steps, w->st, sizeof(int64_t) * (size_t)w->n);
    for (int64_t done = 0, first = 0; done < n; first = done) {
        /* all whole ones, which a loop without a context takes in one call, and then the rest */
        const int64_t taken = first / many == rows ? 0 : w->ctx ? 1 : rows;
        const int64_t len = taken ? many * w->len : (n - first) * w->len;
        steps[w->n] = taken ? taken : 1;
        for (int i = 0; i < w->n; i++) {
            q[i] = i < w->n_acc ? wide[i] : p[i] + first * st[i];
            steps[w->n + i] = i ? many * st[i] : steps[w->n];
        }
        w->loop(w->ctx, q, steps, len);
        done = taken ? first + taken * many : n;
    }
    for (int a = 0; a < w->n_acc; a++)
        for (int64_t row = 0; row < (n < many ? n : many); row++) {
            const int64_t together[4] = {size, size, 1, 0};
            char *both[2] = {p[a], wide[a] + row * w->len * size};
            w->join->loop(NULL, both, together, w->len);
        }
}

/* Take the last dimension, along which accumulators lie side by side, out of a walk whose next one
 * is reduced; returns 0 where ow_wide_loop cannot. */
static int ow_walk_wide(ow_walk *w, ow_wide *wide, const ow_gathered *g)
{
    const int last = w->ndim - 1;
    const int64_t *inner = w->stride[last], *rows = w->stride[last - 1], len = w->shape[last];
    if (wide->n_acc > OW_MOST_WIDE || rows[0] || inner[0] != wide->reducer->accsize ||
        w->shape[last - 1] < 2 * (OW_WIDE / len))
        return 0;
    for (int i = wide->n_acc; i < w->n; i++)
        if (!ow_direct(g, inner, i) || rows[i] != len * inner[i])
            return 0;
    wide->n = w->n;
    wide->len = len;
    memcpy(wide->st, inner, sizeof(int64_t) * (size_t)w->n);
    w->ndim = last;
    return 1;
}

/* Short rows that are reduced are turned: an ow_loop over several rows of accumulators, for each of
 * which the operands lie by columns. */
static void ow_turned_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    const ow_gathered *g = ctx;
    ow_tiled tiled = {.g = g};
    int64_t down[OW_MAXARG] = {0};
    memcpy(down + 1, st + g->n + 1, sizeof(int64_t) * (size_t)(g->n - 1));
    ow_tile_choose(&tiled, n, st, st[g->n], down);
    ow_tile_loop(&tiled, p, down, st[g->n]);
}
/* So many accumulators at once. */
#define OW_TURNED 4096

/* Whether the last dimension but one of a walk is reduced, and long enough for squares of
 * vectors. */
static int ow_walk_turns(const ow_walk *w, const ow_gathered *g)
{
    int64_t least = 0;
    for (int i = g->nout; i < g->n; i++) {
        const int64_t lanes = ow_tile_lanes(g->slots[i]->itemsize);
        least = lanes > least ? lanes : least;
    }
    return w->stride[w->ndim - 2][0] == 0 && w->shape[w->ndim - 2] >= least;
}

typedef struct ow_reduction {
    const ow_walk *w;
    ow_loop loop;
    const void *ctx;
    int cut;      /* the dimension that is shared out */
    int64_t step; /* in units of so many elements */
    int64_t chunks, block;
    int64_t round, rounds; /* chunks that would take too long are done in so many parts */
    char *parts;           /* accumulators for each chunk, or NULL: chunks have different ones */
    int64_t part_bytes;
    int n_acc; /* accumulators of an element: the first operands of the walk */
} ow_reduction;

static void ow_walk_copy(ow_walk *to, const ow_walk *from)
{
    to->ndim = from->ndim;
    to->n = from->n;
    memcpy(to->shape, from->shape, sizeof(int64_t) * (size_t)from->ndim);
    memcpy(to->p, from->p, sizeof(char *) * (size_t)from->n);
    for (int d = 0; d < from->ndim; d++)
        memcpy(to->stride[d], from->stride[d], sizeof(int64_t) * (size_t)from->n);
}

/* Leave a reduced dimension around a row of accumulators to the loop, which can take several rows
 * at once; `all`: it can, otherwise it takes one. */
static void ow_walk_take_rows(ow_walk *w, int all)
{
    int last = w->ndim - 1, n = w->n;
    int64_t *inner = w->stride[last];
    inner[n] = 1;
    for (int i = 1; i < n; i++)
        inner[n + i] = 0;
    if (!all || last == 0 || inner[0] == 0 || w->stride[last - 1][0] != 0)
        return;
    inner[n] = w->shape[last - 1];
    for (int i = 1; i < n; i++)
        inner[n + i] = w->stride[last - 1][i];
    w->shape[last - 1] = w->shape[last];
    memcpy(w->stride[last - 1], inner, sizeof(int64_t) * (size_t)(2 * n));
    w->ndim--;
}

static void ow_reduce_chunk(void *arg, int64_t k)
{
    const ow_reduction *j = arg;
    ow_walk w;
    ow_walk_copy(&w, j->w);
    int64_t end, first = ow_chunk_range(k, j->chunks, w.shape[j->cut], j->step, &end);
    const int64_t from_first = ow_chunk_range(j->round, j->rounds, end - first, j->step, &end);
    end += first;
    first += from_first;
    if (first >= end)
        return;
    w.shape[j->cut] = end - first;
    for (int i = 0; i < w.n; i++)
        w.p[i] += first * w.stride[j->cut][i];
    for (int a = 0; j->parts && a < j->n_acc; a++)
        w.p[a] = j->parts + k * j->part_bytes + (w.p[a] - j->w->p[0]);
    ow_walk_take_rows(&w, j->ctx == NULL || j->loop == ow_turned_loop);
    int64_t rows = ow_walk_rows(&w), len = w.shape[w.ndim - 1];
    for (int64_t from = 0; from < len; from += j->block)
        ow_walk_part(&w, j->loop, j->ctx, 0, rows, from,
                     len - from < j->block ? len : from + j->block);
}

/* The dimension to share out: one of the result around the innermost, so that threads have
 * accumulators of their own; else, in parts, the outermost of those that are reduced and long
 * enough, or the longest; else the last. */
static int ow_reduce_cut(const ow_walk *w, int64_t parts)
{
    int last = w->ndim - 1, longest = last;
    for (int d = 0; d < last; d++)
        if (w->stride[d][0] && w->shape[d] >= 16)
            return d;
    for (int d = 0; d <= last && parts > 1; d++) {
        if (w->stride[d][0])
            continue;
        if (w->shape[d] >= 2 * parts)
            return d;
        if (w->stride[longest][0] || w->shape[d] > w->shape[longest])
            longest = d;
    }
    return longest;
}

/* Whether a reduction of plain elements can read them where they lie, in small steps, which
 * processors foresee; the accumulators, of `size` bytes, are one place or lie side by side. */
static int ow_reads_apart(const ow_walk *w, int64_t size)
{
    const int64_t *inner = w->stride[w->ndim - 1];
    return (inner[0] == 0 || inner[0] == size) && inner[1] >= -OW_NEAR && inner[1] <= OW_NEAR;
}

/* The dimension that goes inside instead of the last one, which is short: one along which elements
 * are near, and accumulators of `size` bytes one place or side by side; else the longest that is
 * reduced. */
static int ow_reduce_inside(const ow_walk *w, int64_t size)
{
    const int last = w->ndim - 1, near = ow_walk_near(w, OW_SHORT_ROW);
    int inside = last;
    if (near != last && (!w->stride[near][0] || w->stride[near][0] == size))
        return near;
    for (int d = last - 1; d >= 0; d--)
        if (!w->stride[d][0] && w->shape[d] > w->shape[inside])
            inside = d;
    return inside;
}

/* --- operands that break rows --------------------------------------------------------------------
 * The last dimensions of a reduction are one long run for accumulators and for most operands. One
 * operand for which they are not, since it is broadcast along some of them or lies in another
 * order, would leave runs of a few elements to all: it is copied as the run needs it. */

/* With fewer elements, and for copies of more bytes, it does not pay. */
#define OW_STRAIGHT_SIZE 512
#define OW_STRAIGHT_BYTES (32 << 20)

typedef struct ow_last_dims {
    int first, last; /* dimensions, of which the last is not of length 1 */
    int64_t size;
} ow_last_dims;

static inline int64_t ow_step_along(const ow_slot *c, int d)
{
    return c->shape[d] == 1 ? 0 : c->strides[d];
}

/* The last dimensions of which all, or none, are reduced. */
static ow_last_dims ow_reduce_last(const ow_step *s, const int64_t *shape, int nd)
{
    const int64_t axes = OW_PARAMS(s, reduce)->axes;
    ow_last_dims run = {nd, -1, 1};
    for (int d = nd - 1; d >= 0 && run.size < OW_CHUNK; d--) {
        if (shape[d] == 1)
            continue;
        if (run.last < 0)
            run.last = d;
        else if ((axes >> d & 1) != (axes >> run.last & 1))
            break;
        run.first = d;
        run.size *= shape[d];
    }
    return run;
}

/* 0: an operand is one number along a run; 1: it lies in one piece; -1: neither. */
static int ow_lies_along(const ow_last_dims *run, const ow_slot *c, const int64_t *shape)
{
    int varies = 0, piece = 1;
    int64_t step = c->itemsize;
    for (int d = run->last; d >= run->first; d--) {
        if (shape[d] == 1)
            continue;
        varies |= ow_step_along(c, d) != 0;
        piece &= ow_step_along(c, d) == step;
        step *= shape[d];
    }
    return varies ? piece ? 1 : -1 : 0;
}

/* Let a slot have the whole of a run, and of other dimensions those along which `c` is not one
 * number. */
static void ow_straight_shape(ow_slot *to, const ow_last_dims *run, const ow_slot *c,
                              const int64_t *shape)
{
    *to = *c;
    for (int d = 0; d < c->ndim; d++)
        to->shape[d] = ow_step_along(c, d) || (d >= run->first && d <= run->last) ? shape[d] : 1;
    ow_c_strides(to);
}

/* Replace the operands that break the runs of a reduction by copies, which are kept in `copies`;
 * returns their memory, NULL without any. */
static char *ow_straighten(const ow_step *s, const int64_t *shape, int nd, ow_slot **inputs,
                           ow_slot *copies)
{
    const ow_last_dims run = ow_reduce_last(s, shape, nd);
    int64_t bytes = 0, pieces = 0, all = 1;
    int broken = 0, far = 0;
    for (int d = 0; d < nd; d++)
        all *= shape[d];
    if (run.last < 0 || all < OW_STRAIGHT_SIZE)
        return NULL;
    for (int i = 0; i < s->nin; i++) {
        const int lies = ow_lies_along(&run, inputs[i], shape);
        if (lies < 0) {
            ow_straight_shape(&copies[i], &run, inputs[i], shape);
            bytes = ow_add_size(bytes, ow_mul_size(ow_size(&copies[i]), copies[i].itemsize));
            bytes = ow_add_size(bytes, 64);
            broken += ow_size(inputs[i]) == all;
            far |= llabs(ow_step_along(inputs[i], run.last)) > OW_NEAR;
        } else
            pieces += lies && ow_size(inputs[i]) == all;
    }
    /* most operands must be as they should; of long rows only those far apart are worth a copy */
    if (!bytes || bytes > OW_STRAIGHT_BYTES || pieces < 1 || broken > pieces ||
        !(far || (shape[run.last] < OW_SHORT_ROW && run.size > shape[run.last])))
        return NULL;
    char *memory = ow_alloc(bytes), *free_memory = memory;
    for (int i = 0; memory && i < s->nin; i++)
        if (ow_lies_along(&run, inputs[i], shape) < 0) {
            copies[i].data = free_memory;
            free_memory += ow_round_up(ow_size(&copies[i]) * copies[i].itemsize, 64);
            ow_copy(&copies[i], inputs[i]);
            inputs[i] = &copies[i];
        }
    return memory;
}

/* --- operands that are turned --------------------------------------------------------------------
 * Where the last dimension is short, as in distances of points and their gradients, a loop along it
 * takes longer to start than to run. It goes along a longer dimension if each operand lies in one
 * piece there, is one number, or is used again for other elements of the result: then it is copied
 * so that it lies in one piece. */

/* Rows of more elements are long enough as they are; where the loop would reduce the longer
 * dimension, so are half as long ones. */
#define OW_ACROSS_ROW 256
/* How often an operand is used at least that is copied. */
#define OW_ACROSS_USES 8
/* Bytes of elements of an operand along which the loop goes at once: they stay in a core's second
 * cache. */
#define OW_ACROSS_BYTES (256 << 10)

typedef struct ow_across {
    int along;     /* the dimension */
    int64_t block; /* so many elements at once */
    char *memory;  /* of the copies */
} ow_across;

/* Whether the loop can go along dimension `d`, after copies of operands; `*bytes`: of these. */
static int ow_lies_across(const ow_step *s, const int64_t *shape, int nd, ow_slot **inputs, int d,
                          int64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < s->nin; i++) {
        const ow_slot *c = inputs[i];
        const int64_t step = ow_step_along(c, d);
        if (step == 0 || step == c->itemsize)
            continue;
        int again = 0;
        int64_t size = c->itemsize;
        for (int e = 0; e < nd; e++) {
            again |= shape[e] >= OW_ACROSS_USES && !ow_step_along(c, e);
            size = ow_mul_size(size, ow_step_along(c, e) ? shape[e] : 1);
        }
        if (!again)
            return 0;
        *bytes = ow_add_size(*bytes, ow_round_up(size, 64));
    }
    return *bytes && *bytes <= OW_STRAIGHT_BYTES;
}

/* Copy an operand, without the dimensions along which it is one number, so that elements along
 * dimension `d` are side by side. */
static void ow_turn_operand(ow_slot *to, ow_slot *from, const int64_t *shape, int nd, int d,
                            char *memory)
{
    int64_t stride = from->itemsize * shape[d];
    *to = *from;
    to->data = memory;
    for (int e = nd - 1; e >= 0; e--) {
        to->shape[e] = ow_step_along(from, e) ? shape[e] : 1;
        to->strides[e] = e == d ? from->itemsize : stride;
        stride *= e == d ? 1 : to->shape[e];
    }
    ow_copy(to, from);
}

/* Replace operands by copies, kept in `copies`, so that the loop can go along the longest dimension
 * for which that pays; returns 0 where there is none. */
static int ow_turn_operands(const ow_step *s, const int64_t *shape, int nd, ow_slot **inputs,
                            ow_slot *copies, ow_across *found)
{
    const int64_t axes = OW_PARAMS(s, reduce)->axes;
    int row = nd - 1, along = -1, starts_often;
    int64_t bytes = 0, more, widest = 1;
    while (row >= 0 && shape[row] == 1)
        row--;
    if (row < 0 || shape[row] > OW_ACROSS_ROW)
        return 0;
    starts_often = axes >> row & 1 || shape[row] < 2 * OW_SHORT_ROW;
    for (int i = 0; i < s->nin; i++)
        starts_often |= !ow_step_along(inputs[i], row);
    for (int d = 0; d < row && starts_often; d++)
        if (shape[d] >= 2 * OW_SHORT_ROW && shape[row] <= OW_ACROSS_ROW >> (axes >> d & 1) &&
            (axes >> row & 1 || shape[d] > shape[row]) &&
            (along < 0 || shape[d] > shape[along] || (shape[d] == shape[along] && axes >> d & 1)) &&
            ow_lies_across(s, shape, nd, inputs, d, &more)) {
            along = d;
            bytes = more;
        }
    if (along < 0 || !(found->memory = ow_alloc(bytes)))
        return 0;
    char *free_memory = found->memory;
    for (int i = 0; i < s->nin; i++) {
        const int64_t step = ow_step_along(inputs[i], along);
        widest = inputs[i]->itemsize > widest ? inputs[i]->itemsize : widest;
        if (step == 0 || step == inputs[i]->itemsize)
            continue;
        ow_turn_operand(&copies[i], inputs[i], shape, nd, along, free_memory);
        free_memory += ow_round_up(ow_size(&copies[i]) * copies[i].itemsize, 64);
        inputs[i] = &copies[i];
    }
    const int64_t many = OW_ACROSS_BYTES / (shape[row] * widest) / OW_SHORT_ROW * OW_SHORT_ROW;
    found->along = along;
    found->block = many > 2 * OW_SHORT_ROW ? many : 2 * OW_SHORT_ROW;
    return 1;
}

/* Put the dimension of a walk last along which the operands behind `n_acc` accumulators move as
 * along dimension `d` of `slots`; in front of it one that is reduced, if it is not. */
static void ow_walk_along(ow_walk *w, ow_slot *const *slots, int n_acc, int d)
{
    for (int e = w->ndim - 1; e >= 0; e--) {
        int same = 1;
        for (int i = n_acc; i < w->n; i++)
            same &= w->stride[e][i] == ow_step_along(slots[i], d);
        if (same) {
            ow_walk_innermost(w, e);
            break;
        }
    }
    const int last = w->ndim - 1;
    if (last < 2 || !w->stride[last][0] || !w->stride[last - 1][0])
        return;
    for (int e = last - 2; e >= 0; e--)
        if (!w->stride[e][0]) {
            ow_walk_innermost(w, e);
            ow_walk_innermost(w, last - 1);
            return;
        }
}

/* --- accumulators that are turned ----------------------------------------------------------------
 * Where the last dimension, which is short, is reduced, and the one of the result beside it is
 * short too, accumulators of a longer dimension lie side by side while the loop runs: they are long
 * rows then. */

/* With fewer elements the copy of the accumulators does not pay. */
#define OW_TURN_SIZE 2048

/* The longest dimension of the result along which elements are near, if it is long, and no row is
 * now; else -1. size: of an accumulator. */
static int ow_reduce_long(const ow_walk *w, int n_acc, int64_t elements, int64_t size)
{
    int longest = -1;
    if (w->stride[w->ndim - 1][0] || elements < OW_TURN_SIZE ||
        ow_reduce_inside(w, size) != w->ndim - 1)
        return -1;
    for (int d = 0; d < w->ndim - 1; d++) {
        int near = w->stride[d][0] && w->shape[d] >= OW_SHORT_ROW;
        for (int i = n_acc; i < w->n; i++)
            near &= llabs(w->stride[d][i]) <= OW_NEAR;
        if (near && (longest < 0 || w->shape[d] > w->shape[longest]))
            longest = d;
    }
    return longest;
}

/* Let accumulators along dimension `d` lie side by side, in new memory; returns it, NULL without
 * any. `from` and `to`: those of the first output there, and where they belong. */
static char *ow_turn_accumulators(ow_walk *w, int d, int n_acc, int64_t plane, int size,
                                  ow_slot *from, ow_slot *to)
{
    char *memory = ow_alloc(n_acc * plane);
    if (!memory)
        return NULL;
    *to = (ow_slot){.data = w->p[0], .itemsize = size};
    int64_t steps[OW_MAXDIM], step = size * w->shape[d];
    for (int e = w->ndim - 1; e >= 0; e--) {
        steps[e] = !w->stride[e][0] ? 0 : e == d ? size : step;
        step *= steps[e] && e != d ? w->shape[e] : 1;
    }
    for (int e = 0; e < w->ndim; e++)
        if (steps[e]) {
            to->shape[to->ndim] = w->shape[e];
            to->strides[to->ndim++] = w->stride[e][0];
        }
    *from = *to;
    from->data = memory;
    for (int e = 0, k = 0; e < w->ndim; e++)
        if (steps[e])
            from->strides[k++] = steps[e];
    for (int a = 0; a < n_acc; a++) {
        w->p[a] = memory + a * plane;
        for (int e = 0; e < w->ndim; e++)
            w->stride[e][a] = steps[e];
    }
    return memory;
}

static int ow_reduce_run(ow_step *s)
{
    const ow_reduce_params *p = s->params;
    const ow_reducer *r = &ow_kernels->reducers[p->reducer],
                     *join = &ow_kernels->reducers[p->joiner];
    ow_slot *z = s->out[0];
    const int n_acc = s->nout, nd = (int)p->ndim;
    const int64_t n_out = ow_size(z), plane = n_out * r->accsize, bytes = n_acc * plane;
    char *scratch = s->scratch, *acc = z->data;
    if (p->apart) {
        acc = scratch;
        scratch += bytes;
    }
    /* the accumulators of each output as an array of the operands' shape, broadcast along reduced
     * axes */
    ow_slot a = *z, accs[OW_MAXARG], *slots[OW_MAXARG];
    int64_t shape[OW_MAXDIM], stride = r->accsize;
    ow_common_shape(s, nd, ow_reduce_masks(p), shape);
    a.data = acc;
    a.itemsize = r->accsize;
    a.ndim = nd;
    for (int d = nd - 1; d >= 0; d--) {
        int reduced = p->axes >> d & 1;
        a.shape[d] = shape[d];
        a.strides[d] = reduced ? 0 : stride;
        stride *= reduced ? 1 : shape[d];
    }
    for (int k = 0; k < n_acc; k++) {
        accs[k] = a;
        accs[k].data += k * plane;
        slots[k] = &accs[k];
    }
    for (int i = 0; i < s->nin; i++)
        slots[n_acc + i] = s->in[i];
    char *turned = NULL;
    ow_slot from, to;
    ow_across across = {-1, 0, NULL};
    if (s->nin > 1 && !ow_turn_operands(s, shape, nd, slots + n_acc, accs + n_acc, &across))
        across.memory = ow_straighten(s, shape, nd, slots + n_acc, accs + n_acc);
    ow_walk w;
    const int64_t size = ow_walk_start(&w, nd, shape, n_acc + s->nin, slots, n_acc);
    const int each = size == n_out;
    if (!each || size == 0)
        ow_fill(acc, n_acc * n_out, r->start, r->accsize);
    if (size == 0)
        goto narrow;
    ow_loop loop = s->loop ? s->loop : (ow_loop)r->loop;
    const void *ctx = s->ctx;
    if (across.along >= 0)
        ow_walk_along(&w, slots, n_acc, across.along);
    const int last = w.ndim - 1;
    int64_t block = INT64_MAX / 2;
    ow_gathered g = {loop, ctx, slots, n_acc, w.n, p->broadcast, 1, ow_chunk_of(slots, w.n)};
    ow_wide wide = {loop, ctx, r, join, n_acc, 0, 0, {0}};
    const int is_short = last && w.shape[last] < OW_SHORT_ROW;
    const int apart = across.along >= 0 && w.stride[last][0] && w.stride[last][0] != r->accsize;
    const int turned_dim = each       ? -1
                           : apart    ? last
                           : is_short ? ow_reduce_long(&w, n_acc, size, r->accsize)
                                      : -1;
    if (turned_dim >= 0 &&
        (turned = ow_turn_accumulators(&w, turned_dim, n_acc, plane, r->accsize, &from, &to))) {
        acc = turned;
        ow_fill(acc, n_acc * n_out, r->start, r->accsize);
    }
    if (is_short && !each && ow_walk_wide(&w, &wide, &g)) {
        loop = ow_wide_loop;
        ctx = &wide;
    } else if (is_short) {
        const int inside = ow_reduce_inside(&w, r->accsize);
        if (inside != last) {
            ow_walk_innermost(&w, inside);
            block = OW_CHUNK;
        }
    } else if (across.along >= 0)
        block = across.block;
    else if (w.stride[last][0] && last)
        block = OW_ROW_BLOCK;
    if (loop != ow_wide_loop && !ow_all_direct(&g, &w) &&
        (s->loop || !ow_reads_apart(&w, r->accsize))) {
        /* a dimension that was moved inside stands before one that is reduced */
        const int turns = is_short && block == OW_CHUNK && !each && ow_walk_turns(&w, &g);
        loop = turns ? ow_turned_loop : ow_gather_loop;
        ctx = &g;
        block = turns ? OW_TURNED : block < OW_CHUNK ? block : OW_CHUNK;
    }
    const ow_fresh fresh = {loop, ctx, r, n_acc};
    if (each) {
        loop = ow_fresh_loop;
        ctx = &fresh;
        block = block < OW_CHUNK ? block : OW_CHUNK;
    }
    const double ns = p->nanoseconds * (double)size;
    ow_reduction job = {&w, loop, ctx, 0, 1, 1, block, 0, 1, NULL, bytes, n_acc};
    const int64_t parts = ow_most_parts(n_out);
    job.cut = ow_reduce_cut(&w, parts);
    job.step = job.cut == w.ndim - 1 ? OW_CHUNK : 1;
    if (w.stride[job.cut][0])
        job.chunks = ow_chunks(ns);
    else if (parts > 1 && ns > OW_WORTH) {
        job.chunks = ns / OW_CHUNK_NS < (double)parts ? (int64_t)(ns / OW_CHUNK_NS) : parts;
        job.parts = scratch;
        ow_fill(scratch, job.chunks * n_acc * n_out, r->start, r->accsize);
    }
    if (ns > OW_LONGEST_CHUNK_NS * (double)job.chunks)
        job.rounds = (int64_t)(ns / OW_LONGEST_CHUNK_NS / (double)job.chunks) + 1;
    for (; job.round < job.rounds; job.round++)
        ow_parallel(ow_reduce_chunk, &job, job.chunks);
    if (job.parts) {
        /* two steps that differ from 0 even for one number: every part has its place beside it */
        const int64_t st[4] = {r->accsize, r->accsize, 1, 0};
        for (int64_t k = 0; k < job.chunks; k++) {
            char *both[2] = {acc, job.parts + k * bytes};
            join->loop(NULL, both, st, n_acc * n_out);
        }
    }
    for (int k = 0; turned && k < n_acc; k++, from.data += plane, to.data += plane)
        ow_copy(&to, &from);
narrow:
    ow_free(turned);
    ow_free(across.memory);
    for (int k = 0; k < n_acc && p->apart; k++)
        ow_narrow(s->out[k], (char *)s->scratch + k * plane, r->accsize);
    return OW_OK;
}

static int ow_first_along_prep(ow_step *s)
{
    ow_slot *z = s->out[0];
    for (int d = 0; d < z->ndim; d++)
        z->shape[d] = OW_PARAMS(s, first_along)->axes >> d & 1 ? 1 : s->in[0]->shape[d];
    return ow_ensure(s, z);
}

static int ow_first_along_run(ow_step *s)
{
    ow_slot *z = s->out[0], first = *s->in[0];
    if (!ow_size(&first)) {
        memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
        return OW_OK;
    }
    memcpy(first.shape, z->shape, sizeof first.shape);
    ow_copy(z, &first);
    return OW_OK;
}

/* --- the position of the largest element ------------------------------------------------------ */

/* Whether an element takes the place of the largest one before it: NaN is larger than any. */
#define OW_LARGER(x, before) ((before) == (before) && ((x) > (before) || (x) != (x)))

#define OW_ARGMAX(S, T, V, VALUE)                                                                  \
    static void ow_argmax_##S(const char *p, int64_t st, int64_t n, int64_t from, void *best,      \
                              int64_t *where)                                                      \
    {                                                                                              \
        V b = *(V *)best;                                                                          \
        int64_t at = *where;                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            V x = VALUE(*(const T *)(p + i * st));                                                 \
            if (at < 0 || OW_LARGER(x, b)) {                                                       \
                b = x;                                                                             \
                at = from + i;                                                                     \
            }                                                                                      \
        }                                                                                          \
        *(V *)best = b;                                                                            \
        *where = at;                                                                               \
    }
OW_ARGMAX(b, uint8_t, uint8_t, )
OW_ARGMAX(i8, int8_t, int8_t, )
OW_ARGMAX(i16, int16_t, int16_t, )
OW_ARGMAX(i32, int32_t, int32_t, )
OW_ARGMAX(i64, int64_t, int64_t, )
OW_ARGMAX(u8, uint8_t, uint8_t, )
OW_ARGMAX(u16, uint16_t, uint16_t, )
OW_ARGMAX(u32, uint32_t, uint32_t, )
OW_ARGMAX(u64, uint64_t, uint64_t, )
OW_ARGMAX(f32, float, float, )
OW_ARGMAX(f64, double, double, )
/* the largest elements of float16 are held as float */
OW_ARGMAX(f16, ow_f16, float, ow_from_f16)

typedef struct ow_argmaxer {
    const char *name;
    void (*fn)(const char *, int64_t, int64_t, int64_t, void *, int64_t *);
    /* the same of values: those of float16 are float */
    void (*fn_of_values)(const char *, int64_t, int64_t, int64_t, void *, int64_t *);
} ow_argmaxer;

#define OW_ARGMAXER(S) {#S, ow_argmax_##S, ow_argmax_##S}

static const ow_argmaxer ow_argmaxers[] = {
    OW_ARGMAXER(b),   OW_ARGMAXER(i8),  OW_ARGMAXER(i16), OW_ARGMAXER(i32),
    OW_ARGMAXER(i64), OW_ARGMAXER(u8),  OW_ARGMAXER(u16), OW_ARGMAXER(u32),
    OW_ARGMAXER(u64), OW_ARGMAXER(f32), OW_ARGMAXER(f64), {"f16", ow_argmax_f16, ow_argmax_f32},
};
static const int ow_argmaxer_count = sizeof(ow_argmaxers) / sizeof(ow_argmaxers[0]);

/* About how long an element takes, one after the other, from wherever it lies. */
#define OW_ARGMAX_NS 3.0

static int ow_argmax_prep(ow_step *s)
{
    ow_slot *x = s->in[0];
    const int64_t axes = OW_PARAMS(s, argmax)->axes;
    for (int o = 0; o < s->nout; o++) {
        ow_slot *z = s->out[o];
        int k = 0;
        for (int d = 0; d < x->ndim; d++) {
            if (!(axes >> d & 1))
                z->shape[k++] = x->shape[d];
            else if (x->shape[d] == 0)
                return OW_FAIL(s, OW_VALUE_ERROR,
                               "attempt to get argmax of an empty sequence (axis %d)", d);
        }
        int rc = ow_ensure(s, z);
        if (rc)
            return rc;
    }
    return OW_OK;
}

/* As the function of an argmaxer, several elements at once where they lie side by side. */
static void ow_argmax_run_of(const ow_step *s, const char *p, int64_t st, int64_t n, int64_t from,
                             void *best, int64_t *where)
{
    if (st == s->in[0]->itemsize && n >= OW_SHORT_ROW)
        ow_kernels->argmax[OW_PARAMS(s, argmax)->row](p, n, from, best, where);
    else
        ow_argmaxers[OW_PARAMS(s, argmax)->row].fn(p, st, n, from, best, where);
}

/* Store a largest element, which is held as float for float16. */
static void ow_argmax_store(const ow_slot *z, int64_t i, const void *best)
{
    if (z->typenum == OW_HALF_TYPENUM)
        ((ow_f16 *)z->data)[i] = ow_to_f16(*(const float *)best);
    else
        memcpy(z->data + i * z->itemsize, best, (size_t)z->itemsize);
}

/* Visit the reduced dimensions of one result in order; returns how many elements were seen. */
static int64_t ow_argmax_one(ow_step *s, const char *p, int d, int64_t from, void *best,
                             int64_t *where, double *left)
{
    ow_slot *x = s->in[0];
    while (d < x->ndim && !(OW_PARAMS(s, argmax)->axes >> d & 1))
        d++;
    if (d == x->ndim) {
        ow_argmax_run_of(s, p, 0, 1, from, best, where);
        return 1;
    }
    int deeper = 0;
    for (int e = d + 1; e < x->ndim; e++)
        deeper |= OW_PARAMS(s, argmax)->axes >> e & 1;
    const int64_t n = x->shape[d];
    if (!deeper) {
        for (int64_t i = 0; i < n; i += OW_BLOCK) {
            const int64_t length = n - i < OW_BLOCK ? n - i : OW_BLOCK;
            if (ow_stops(left, OW_ARGMAX_NS * (double)length))
                break;
            ow_argmax_run_of(s, p + i * x->strides[d], x->strides[d], length, from + i, best,
                             where);
        }
        return n;
    }
    int64_t seen = 0;
    for (int64_t i = 0; i < n; i++)
        seen += ow_argmax_one(s, p + i * x->strides[d], d + 1, from + seen, best, where, left);
    return seen;
}

/* Places of several short rows that are compared as one row. */
#define OW_ARGMAX_PLACES 64

/* How many rows of `along`, which follow each other along `reduced`, are compared as one; 0: they
 * are long enough, few, or do not lie so. */
static int64_t ow_argmax_folded(const ow_slot *x, int along, int reduced)
{
    const int64_t length = x->shape[along];
    if (length >= OW_SHORT_ROW || x->strides[along] != x->itemsize ||
        x->strides[reduced] != length * x->itemsize)
        return 0;
    const int64_t folded = OW_ARGMAX_PLACES / length;
    return x->shape[reduced] >= 16 * folded ? folded : 0;
}

/* The last dimension that is not reduced, if results along it are better chosen side by side, all
 * with one element of the only reduced dimension, which is `*reduced`; or -1. */
static int ow_argmax_across(const ow_step *s, int *reduced)
{
    const ow_slot *x = s->in[0];
    int along = -1;
    *reduced = -1;
    for (int d = 0; d < x->ndim; d++)
        if (!(OW_PARAMS(s, argmax)->axes >> d & 1))
            along = d;
        else if (*reduced < 0)
            *reduced = d;
        else
            return -1;
    if (along < 0 || *reduced < 0)
        return -1;
    if (ow_argmax_folded(x, along, *reduced))
        return along;
    if (x->shape[along] < OW_SHORT_ROW)
        return -1;
    const int apart = llabs(x->strides[*reduced]) > llabs(x->strides[along]);
    return apart || x->shape[*reduced] < OW_SHORT_ROW ? along : -1;
}

/* Results are shared out: of those that are chosen side by side, some that lie along one
 * dimension. */
typedef struct ow_argmax_job {
    ow_step *s;
    int along, reduced;
    int64_t units, chunks, each; /* units of `each` results */
    int64_t folded;              /* rows that are compared as one, or 0 */
} ow_argmax_job;

/* Bytes of elements that are copied to lie side by side. */
#define OW_ARGMAX_COPY 32768

/* Results `first` to `end` along dimension `along` that begin at `p`, of which the first is number
 * `i`. */
static void ow_argmax_side_by_side(const ow_argmax_job *j, const char *p, int64_t i, int64_t first,
                                   int64_t end, double *left)
{
    const ow_step *s = j->s;
    const ow_slot *x = s->in[0], *largest = s->nout == 2 ? s->out[0] : NULL;
    const int64_t rows = x->shape[j->reduced], st = x->strides[j->reduced];
    int64_t *where = (int64_t *)s->out[s->nout - 1]->data + i;
    char best[OW_ARGMAX_ROW * 8] __attribute__((aligned(64)));
    char copy[OW_ARGMAX_COPY] __attribute__((aligned(64)));
    const int64_t item = x->itemsize, between = x->strides[j->along];
    const int size = x->typenum == OW_HALF_TYPENUM ? 4 : (int)item;
    const int64_t most = between == item ? OW_ARGMAX_ROW : OW_ARGMAX_ROW / 4;
    for (int64_t n; first < end; first += n) {
        n = end - first < most ? end - first : most;
        const int64_t at_once = between == item ? 1024 : OW_ARGMAX_COPY / (n * item);
        for (int64_t k = 0; k < rows; k += at_once) {
            const int64_t some = rows - k < at_once ? rows - k : at_once;
            const char *from = p + first * between + k * st;
            int64_t step = st;
            if (ow_stops(left, (double)(n * some)))
                return;
            if (between != item) {
                const int64_t steps[2] = {item, between};
                for (int64_t row = 0; row < some; row++) {
                    char *both[2] = {copy + row * n * item, (char *)from + row * st};
                    ow_copy_run(both, steps, n, (int)item);
                }
                from = copy;
                step = n * item;
            }
            ow_kernels->argmax_rows[OW_PARAMS(s, argmax)->row](from, step, n, some, k, best,
                                                               where + first);
        }
        for (int64_t k = 0; k < n && largest; k++)
            ow_argmax_store(largest, i + first + k, best + k * size);
    }
}

/* Results along a short dimension, of which the first is number `i`: those of several rows in one
 * first, then the best of its places, in the order of their positions. */
static void ow_argmax_of_folded(const ow_argmax_job *j, const char *p, int64_t i, double *left)
{
    const ow_step *s = j->s;
    const ow_slot *x = s->in[0], *largest = s->nout == 2 ? s->out[0] : NULL;
    const ow_argmaxer *a = &ow_argmaxers[OW_PARAMS(s, argmax)->row];
    const int64_t length = x->shape[j->along], st = x->strides[j->reduced],
                  rows = x->shape[j->reduced];
    const int64_t n = j->folded * length, whole = rows / j->folded, rest = rows % j->folded;
    const int size = x->typenum == OW_HALF_TYPENUM ? 4 : (int)x->itemsize;
    char most[OW_ARGMAX_PLACES * 8] __attribute__((aligned(64)));
    int64_t where[OW_ARGMAX_PLACES];
    for (int64_t k = 0; k < whole; k += 1024) {
        const int64_t some = whole - k < 1024 ? whole - k : 1024;
        if (ow_stops(left, (double)(n * some)))
            return;
        ow_kernels->argmax_rows[OW_PARAMS(s, argmax)->row](p + k * j->folded * st, j->folded * st,
                                                           n, some, k, most, where);
    }
    for (int64_t place = 0; place < n; place++)
        where[place] = where[place] * j->folded + place / length;
    for (int64_t c = 0; c < length; c++) {
        double best = 0;
        int64_t at = -1;
        for (int64_t k = 0, seen = -1; k < j->folded; k++) {
            int64_t next = -1;
            for (int64_t place = c; place < n; place += length)
                if (where[place] > seen && (next < 0 || where[place] < where[next]))
                    next = place;
            seen = where[next];
            a->fn_of_values(most + next * size, 0, 1, seen, &best, &at);
        }
        if (rest)
            a->fn(p + (rows - rest) * st + c * x->itemsize, st, rest, rows - rest, &best, &at);
        ((int64_t *)s->out[s->nout - 1]->data)[i + c] = at;
        if (largest)
            ow_argmax_store(largest, i + c, &best);
    }
}

static void ow_argmax_chunk(void *arg, int64_t c)
{
    const ow_argmax_job *j = arg;
    ow_step *s = j->s;
    const ow_slot *x = s->in[0];
    int64_t end, first = ow_chunk_range(c, j->chunks, j->units, 1, &end);
    double left = OW_LONGEST_CHUNK_NS;
    const int64_t length = j->along < 0 ? 1 : x->shape[j->along],
                  across = (length + j->each - 1) / j->each;
    for (int64_t unit = first; unit < end && !ow_stops(&left, OW_ARGMAX_NS); unit++) {
        const int64_t from = j->along < 0 ? 0 : unit % across * j->each;
        int64_t rest = unit / across, i = j->along < 0 ? unit : rest * length;
        const char *p = x->data;
        for (int d = x->ndim - 1; d >= 0; d--)
            if (!(OW_PARAMS(s, argmax)->axes >> d & 1) && d != j->along) {
                p += rest % x->shape[d] * x->strides[d];
                rest /= x->shape[d];
            }
        if (j->along >= 0) {
            const int64_t until = length - from < j->each ? length : from + j->each;
            if (j->folded)
                ow_argmax_of_folded(j, p, i, &left);
            else
                ow_argmax_side_by_side(j, p, i, from, until, &left);
            continue;
        }
        double best[2] = {0};
        int64_t where = -1;
        ow_argmax_one(s, p, 0, 0, best, &where, &left);
        ((int64_t *)s->out[s->nout - 1]->data)[i] = where;
        if (s->nout == 2)
            ow_argmax_store(s->out[0], i, best);
    }
}

/* The parts of one result, of elements that lie side by side. */
#define OW_ARGMAX_PARTS 32
typedef struct ow_argmax_parts {
    ow_step *s;
    int64_t n;
    double best[OW_ARGMAX_PARTS];
    int64_t where[OW_ARGMAX_PARTS];
} ow_argmax_parts;

static void ow_argmax_part(void *arg, int64_t k)
{
    ow_argmax_parts *j = arg;
    int64_t end, first = ow_chunk_range(k, OW_ARGMAX_PARTS, j->n, 1024, &end);
    const ow_slot *x = j->s->in[0];
    j->where[k] = -1;
    if (first < end)
        ow_kernels->argmax[OW_PARAMS(j->s, argmax)->row](x->data + first * x->itemsize, end - first,
                                                         first, &j->best[k], &j->where[k]);
}

static void ow_argmax_of_all(ow_step *s)
{
    const ow_argmaxer *a = &ow_argmaxers[OW_PARAMS(s, argmax)->row];
    ow_argmax_parts j = {.s = s, .n = ow_size(s->in[0])};
    double best = 0;
    int64_t where = -1;
    ow_parallel(ow_argmax_part, &j, OW_ARGMAX_PARTS);
    for (int k = 0; k < OW_ARGMAX_PARTS; k++)
        if (j.where[k] >= 0) {
            const int64_t before = where;
            int64_t at = before;
            a->fn_of_values((const char *)&j.best[k], 0, 1, j.where[k], &best, &at);
            where = at;
        }
    *(int64_t *)s->out[s->nout - 1]->data = where;
    if (s->nout == 2)
        ow_argmax_store(s->out[0], 0, &best);
}

/* Let `to` be `x` without dimensions of length 1, and with neighbours of which all or none are
 * reduced joined where they lie in even steps; returns the mask of its reduced dimensions. */
static int64_t ow_argmax_join(ow_slot *to, const ow_slot *x, int64_t axes)
{
    int64_t joined = 0;
    *to = *x;
    to->ndim = 0;
    for (int d = 0; d < x->ndim; d++) {
        const int last = to->ndim - 1, reduced = axes >> d & 1;
        if (x->shape[d] == 1)
            continue;
        if (last >= 0 && (joined >> last & 1) == reduced &&
            to->strides[last] == x->shape[d] * x->strides[d]) {
            to->shape[last] *= x->shape[d];
            to->strides[last] = x->strides[d];
            continue;
        }
        to->shape[to->ndim] = x->shape[d];
        to->strides[to->ndim] = x->strides[d];
        joined |= (int64_t)reduced << to->ndim++;
    }
    return joined;
}

static int ow_argmax_run(ow_step *given)
{
    ow_slot joined, *in[1] = {&joined};
    const ow_argmax_params *of = given->params;
    const ow_argmax_params params = {of->row, ow_argmax_join(&joined, given->in[0], of->axes)};
    ow_step step = *given, *s = &step;
    step.in = in;
    step.params = &params;
    const ow_slot *x = s->in[0];
    const int64_t n = ow_size(s->out[s->nout - 1]);
    const double ns = 0.3 * (double)ow_size(x);
    ow_argmax_job j = {.s = s, .units = n, .chunks = 1, .each = 1};
    if (!n)
        return OW_OK;
    if (n == 1 && ow_is_c_contiguous(x) && ns > OW_WORTH) {
        ow_argmax_of_all(s);
        return OW_OK;
    }
    j.along = ow_argmax_across(s, &j.reduced);
    if (j.along >= 0) {
        const int64_t length = x->shape[j.along];
        j.folded = ow_argmax_folded(x, j.along, j.reduced);
        j.each = OW_ARGMAX_ROW;
        j.units = n / length * ((length + j.each - 1) / j.each);
    }
    /* only the caller looks for signals inside a chunk: long ones are not shared */
    j.chunks = ns > OW_LONGEST_CHUNK_NS * (double)j.units ? 1 : ow_chunks(ns);
    j.chunks = j.chunks < j.units ? j.chunks : j.units;
    ow_parallel(ow_argmax_chunk, &j, j.chunks);
    return OW_OK;
}

#endif
