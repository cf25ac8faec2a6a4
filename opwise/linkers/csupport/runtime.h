/* Arrays, steps, memory and errors of the VM. No Python here: this is what kernels see.
 * A slot holds one value of a program: where its elements lie, and who keeps that memory alive. A
 * step is one Apply: `prep` checks shapes, sets the outputs' and finds memory for them; `run`
 * computes. A step whose flags have OW_STATIC prepares from shapes alone, one with OW_TOTAL cannot
 * fail once it is prepared, one with OW_CHECKED only before it has written anything: the VM needs
 * to know to update shared values all or not at all. `check` fails where `run` would, and writes
 * nothing.
 * The bytes of every array fit into an int64, those of one without elements as if lengths of 0 were
 * 1: numpy checks it for what it gives, and steps check the shapes that they make. */
#ifndef OW_RUNTIME_H
#define OW_RUNTIME_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "threads.h"

#define OW_MAXDIM 8
#define OW_MAXARG 40

typedef struct ow_slot {
    char *data;
    int64_t shape[OW_MAXDIM];
    int64_t strides[OW_MAXDIM];
    int32_t ndim;
    int32_t itemsize;
    int32_t typenum; /* numpy's type number, or -1 for a value that is any Python object */
    int32_t scalar;  /* 1 for a number (Scalar type), which Python sees as a numpy scalar */
    char *buf;       /* memory that this slot owns, from ow_alloc, or NULL */
    int64_t cap;     /* its size in bytes */
    void *owner;     /* the Python object that keeps `data` alive, or NULL */
} ow_slot;

enum {
    OW_OK = 0,
    OW_VALUE_ERROR,
    OW_INDEX_ERROR,
    OW_TYPE_ERROR,
    OW_MEMORY_ERROR,
    OW_ZERO_DIVISION,
    OW_LINALG_ERROR,
    OW_ASSERTION_ERROR, /* the Op makes it if it has a method failure */
    OW_PYTHON_ERROR,    /* an exception that Python code raised and the VM keeps */
};

/* numpy's type numbers of these */
enum {
    OW_FLOAT_TYPENUM = 11,
    OW_DOUBLE_TYPENUM = 12,
    OW_COMPLEX64_TYPENUM = 14,
    OW_COMPLEX128_TYPENUM = 15,
    OW_HALF_TYPENUM = 23,
};

enum { OW_STATIC = 1, OW_TOTAL = 2, OW_CHECKED = 4 };

typedef struct ow_step ow_step;
struct ow_epilogue;
typedef int (*ow_fn)(ow_step *);
typedef void (*ow_loop)(const void *ctx, char **p, const int64_t *stride, int64_t n);

struct ow_step {
    ow_fn prep;
    ow_fn run;
    ow_slot **in;
    ow_slot **out;
    int32_t nin, nout;
    const void *params; /* the struct of its kind: see stepparams.py */
    ow_loop loop;       /* kernel of an elementwise step */
    const void *ctx;    /* what the kernel needs besides its operands */
    char *error;        /* OW_ERROR_SIZE bytes of the VM */
    char *scratch;      /* memory for the step's own use, kept between calls */
    int64_t scratch_cap;
    int32_t raises;   /* whether the loop may set a Python exception */
    int32_t advances; /* whether the step may write the new value of a state over the old one */
    int32_t advanced; /* whether it has done so in this call, and can put the old one back */
    ow_fn undo;       /* puts it back */
    ow_fn check;      /* called before steps overwrite inputs; NULL: `run` checks for itself */
    int32_t checked;  /* whether `check` has succeeded in this call */
    /* what follows the results of a convolution (conv_epilogue.h): NULL if nothing does, and
     * whether the last run has called it */
    void (*finish)(const struct ow_epilogue *, int64_t, int64_t, int64_t, int64_t, const char *);
    const struct ow_epilogue *then;
    int32_t finishes;
    const char *algorithm; /* which one the last run took, and why; NULL where there is one only */
    const char *why;
};

#define OW_ERROR_SIZE 400
#define OW_FAIL(s, code, ...) (snprintf((s)->error, OW_ERROR_SIZE, __VA_ARGS__), (code))

/* --- memory ------------------------------------------------------------------------------- */

/* a * b and a + b for sizes, or INT64_MAX where that is less: more than any allocation gives */
static inline int64_t ow_mul_size(int64_t a, int64_t b)
{
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

static inline int64_t ow_add_size(int64_t a, int64_t b)
{
    int64_t result;
    return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

/* The bytes that an array of a shape takes, a length of 0 counted as 1; INT64_MAX for too many. */
static inline int64_t ow_bytes(int ndim, const int64_t *shape, int64_t itemsize)
{
    int64_t bytes = itemsize;
    for (int d = 0; d < ndim; d++)
        bytes = ow_mul_size(bytes, shape[d] ? shape[d] : 1);
    return bytes;
}

/* p + i * stride; strides of an array without elements may be anything, and lead nowhere. */
static inline char *ow_at(const char *p, int64_t i, int64_t stride)
{
    return (char *)((uintptr_t)p + (uintptr_t)i * (uintptr_t)stride);
}

static inline int64_t ow_at_most(int64_t n, int64_t most) { return n < most ? n : most; }

static inline int64_t ow_size(const ow_slot *c)
{
    int64_t n = 1;
    for (int d = 0; d < c->ndim; d++)
        n *= c->shape[d];
    return n;
}

static inline int ow_is_c_contiguous(const ow_slot *c)
{
    int64_t expected = c->itemsize;
    for (int d = c->ndim - 1; d >= 0; d--) {
        if (c->shape[d] != 1 && c->strides[d] != expected)
            return 0;
        expected *= c->shape[d];
    }
    return 1;
}

static inline int ow_is_fortran(const ow_slot *c)
{
    int64_t expected = c->itemsize;
    for (int d = 0; d < c->ndim; d++) {
        if (c->shape[d] != 1 && c->strides[d] != expected)
            return 0;
        expected *= c->shape[d];
    }
    return 1;
}

static inline void ow_fortran_strides(ow_slot *c)
{
    int64_t stride = c->itemsize;
    for (int d = 0; d < c->ndim; d++) {
        c->strides[d] = stride;
        stride *= c->shape[d] ? c->shape[d] : 1;
    }
}

/* Whether the elements fill one block of memory, in any order of the dimensions. */
static inline int ow_is_dense(const ow_slot *c)
{
    int64_t size = c->itemsize, end = c->itemsize;
    for (int d = 0; d < c->ndim; d++) {
        if (c->shape[d] > 1 && c->strides[d] <= 0)
            return 0;
        end += (c->shape[d] - 1) * c->strides[d];
        size *= c->shape[d];
    }
    return size == 0 || size == end;
}

static inline void ow_c_strides(ow_slot *c)
{
    int64_t stride = c->itemsize;
    for (int d = c->ndim - 1; d >= 0; d--) {
        c->strides[d] = stride;
        stride *= c->shape[d] ? c->shape[d] : 1;
    }
}

/* Let the elements of `c` fill one block, with its dimensions in the order in which those of `like`
 * lie in memory. */
static inline void ow_dense_strides(ow_slot *c, const ow_slot *like)
{
    int order[OW_MAXDIM];
    for (int d = 0; d < c->ndim; d++) {
        int e = d;
        for (; e > 0 && llabs(like->strides[order[e - 1]]) < llabs(like->strides[d]); e--)
            order[e] = order[e - 1];
        order[e] = d;
    }
    int64_t stride = c->itemsize;
    for (int k = c->ndim - 1; k >= 0; k--) {
        c->strides[order[k]] = stride;
        stride *= c->shape[order[k]] ? c->shape[order[k]] : 1;
    }
}

/* Make `c` a contiguous array of its current shape in memory of its own. */
static inline int ow_ensure(ow_step *s, ow_slot *c)
{
    int64_t bytes = ow_bytes(c->ndim, c->shape, c->itemsize);
    if (bytes == INT64_MAX)
        return OW_FAIL(s, OW_MEMORY_ERROR, "an array of %d dimensions is too large", c->ndim);
    if (ow_size(c) == 0)
        bytes = c->itemsize; /* whatever the other lengths are */
    ow_c_strides(c);
    if (c->buf == NULL || c->cap < bytes) {
        ow_free(c->buf);
        c->buf = ow_alloc(bytes);
        c->cap = c->buf ? ow_capacity(c->buf) : 0;
        if (c->buf == NULL)
            return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", (long long)bytes);
    }
    ow_fit(c->buf, bytes);
    c->data = c->buf;
    return OW_OK;
}

/* Whether dimension `a` lies inside of dimension `b` in the memory of arrays of one rank: all that
 * have steps along both say so. Where they disagree it does not: C order is that of most arrays. */
static inline int ow_lies_inside(ow_slot *const *slots, int n, int a, int b)
{
    int inside = 0;
    for (int i = 0; i < n; i++) {
        const ow_slot *c = slots[i];
        const int64_t x = llabs(c->strides[a]), y = llabs(c->strides[b]);
        if (c->shape[a] == 1 || c->shape[b] == 1 || x == y || !x || !y)
            continue;
        if (x > y)
            return 0;
        inside = 1;
    }
    return inside;
}

/* As ow_ensure, with the dimensions in the order in which those of `slots`, arrays of the rank of
 * `c`, lie in memory (numpy's order "K"): elements that are read one after the other are written
 * so. */
static inline int ow_ensure_like(ow_step *s, ow_slot *c, ow_slot *const *slots, int n)
{
    int order[OW_MAXDIM], moved = 0, rc = ow_ensure(s, c);
    for (int d = 0; d < c->ndim; d++) {
        int e = d;
        for (; e > 0 && ow_lies_inside(slots, n, order[e - 1], d); e--)
            order[e] = order[e - 1];
        order[e] = d;
        moved |= e != d;
    }
    int64_t stride = c->itemsize;
    for (int k = c->ndim - 1; moved && k >= 0; k--) {
        c->strides[order[k]] = stride;
        stride *= c->shape[order[k]] ? c->shape[order[k]] : 1;
    }
    return rc;
}

static inline char *ow_scratch(ow_step *s, int64_t bytes)
{
    if (s->scratch == NULL || s->scratch_cap < bytes) {
        ow_free(s->scratch);
        s->scratch = ow_alloc(bytes);
        s->scratch_cap = s->scratch ? bytes : 0;
    }
    if (s->scratch)
        ow_fit(s->scratch, bytes);
    return s->scratch;
}

static inline void ow_set_shape(ow_slot *c, int ndim, const int64_t *shape)
{
    c->ndim = ndim;
    for (int d = 0; d < ndim; d++)
        c->shape[d] = shape[d];
}

/* Whether a step touches enough memory to let other Python threads run meanwhile. */
static inline int ow_is_long(const ow_step *s)
{
    const int64_t enough = 64 << 10;
    for (int k = 0; k < s->nout; k++)
        if (ow_size(s->out[k]) * s->out[k]->itemsize > enough)
            return 1;
    for (int i = 0; i < s->nin; i++)
        if (ow_size(s->in[i]) * s->in[i]->itemsize > enough)
            return 1;
    return 0;
}

/* Let `view` show the memory, shape and strides of `of`. */
static inline void ow_alias(ow_slot *view, const ow_slot *of)
{
    view->data = of->data;
    view->ndim = of->ndim;
    for (int d = 0; d < of->ndim; d++) {
        view->shape[d] = of->shape[d];
        view->strides[d] = of->strides[d];
    }
}

/* An index stored as a number of any integer type; numpy's unsigned ones have even numbers. What is
 * larger than any length is INT64_MAX, which no length is either. */
static inline int64_t ow_int(const ow_slot *c)
{
    int is_unsigned = c->typenum % 2 == 0;
    switch (c->itemsize) {
    case 1:
        return is_unsigned ? *(uint8_t *)c->data : *(int8_t *)c->data;
    case 2:
        return is_unsigned ? *(uint16_t *)c->data : *(int16_t *)c->data;
    case 4:
        return is_unsigned ? (int64_t)*(uint32_t *)c->data : (int64_t)*(int32_t *)c->data;
    default:
        if (is_unsigned && *(uint64_t *)c->data > INT64_MAX)
            return INT64_MAX;
        return *(int64_t *)c->data;
    }
}

/* A number of an integer type, of float or of double, that lies at `at` and is of the type of a
 * slot. */
static inline double ow_real_at(const ow_slot *c, const char *at)
{
    if (c->typenum == OW_DOUBLE_TYPENUM)
        return *(const double *)at;
    if (c->typenum == OW_FLOAT_TYPENUM)
        return *(const float *)at;
    ow_slot item = *c;
    item.data = (char *)at;
    return (double)ow_int(&item);
}

/* Write an integer there. */
static inline void ow_put_integer(const ow_slot *c, char *at, int64_t value)
{
    if (c->typenum == OW_DOUBLE_TYPENUM)
        *(double *)at = (double)value;
    else if (c->typenum == OW_FLOAT_TYPENUM)
        *(float *)at = (float)value;
    else if (c->itemsize == 8)
        *(int64_t *)at = value;
    else if (c->itemsize == 4)
        *(int32_t *)at = (int32_t)value;
    else if (c->itemsize == 2)
        *(int16_t *)at = (int16_t)value;
    else
        *(int8_t *)at = (int8_t)value;
}

/* A set of alternatives: bits, from the first word that is not 0 to the last one. */
typedef struct ow_guard {
    const uint64_t *words;
    int32_t start, count;
} ow_guard;

/* A decision between the branches of a step: see opwise/linkers/program.py. */
typedef struct ow_choice {
    int32_t at;            /* the step before which it is made */
    int32_t condition;     /* a slot */
    int32_t first, second; /* the bits of its alternatives */
    ow_guard guard;
} ow_choice;

/* Whether a number is not 0; NaN is not. The numbers of numpy's floating-point types begin at 11,
 * and that of float16 is 23. */
static inline int ow_is_true(const ow_slot *c)
{
    switch (c->typenum) {
    case 11:
        return *(float *)c->data != 0;
    case 12:
        return *(double *)c->data != 0;
    case 14:
        return ((float *)c->data)[0] != 0 || ((float *)c->data)[1] != 0;
    case 15:
        return ((double *)c->data)[0] != 0 || ((double *)c->data)[1] != 0;
    case 23:
        return (*(uint16_t *)c->data & 0x7FFF) != 0;
    default:
        for (int i = 0; i < c->itemsize; i++)
            if (c->data[i])
                return 1;
        return 0;
    }
}

/* --- walking over several arrays of one shape ------------------------------------------------- */

typedef struct ow_walk {
    int ndim, n; /* dimensions after collapsing; number of operands */
    int64_t shape[OW_MAXDIM];
    /* bytes, by dimension, then operand; what comes after is for loops over several rows */
    int64_t stride[OW_MAXDIM][2 * OW_MAXARG + 2];
    char *p[OW_MAXARG];
} ow_walk;

/* Whether a walk should take dimension `a` inside of dimension `b`: of the operands from `lead` on,
 * and then the others, the first that moves along both by different steps decides. */
static inline int ow_walk_inside(const int64_t *a, const int64_t *b, int n, int lead)
{
    for (int k = 0; k < n; k++) {
        int i = k + lead < n ? k + lead : k + lead - n;
        int64_t x = llabs(a[i]), y = llabs(b[i]);
        if (x != y && x && y)
            return x < y;
    }
    return 0;
}

/* Drop dimensions of length 1, put those with the smallest steps last, and join those that every
 * operand steps through evenly. Returns the number of elements; without any there is no walk. */
static inline int64_t ow_walk_start(ow_walk *w, int ndim, const int64_t *shape, int n,
                                    ow_slot *const *slots, int lead)
{
    int64_t size = 1;
    int k = 0;
    for (int d = 0; d < ndim; d++)
        size *= shape[d];
    if (size == 0)
        return 0;
    w->n = n;
    for (int i = 0; i < n; i++)
        w->p[i] = slots[i]->data;
    for (int d = 0; d < ndim; d++) {
        int64_t len = shape[d];
        if (len == 1)
            continue;
        int64_t *st = w->stride[k];
        for (int i = 0; i < n; i++)
            st[i] = slots[i]->shape[d] == 1 ? 0 : slots[i]->strides[d];
        w->shape[k++] = len;
    }
    for (int d = 1; d < k; d++)
        for (int e = d; e > 0 && ow_walk_inside(w->stride[e - 1], w->stride[e], n, lead); e--) {
            int64_t len = w->shape[e], steps;
            w->shape[e] = w->shape[e - 1];
            w->shape[e - 1] = len;
            for (int i = 0; i < n; i++) {
                steps = w->stride[e][i];
                w->stride[e][i] = w->stride[e - 1][i];
                w->stride[e - 1][i] = steps;
            }
        }
    int last = 0;
    for (int d = 1; d < k; d++) {
        int joined = 1;
        for (int i = 0; i < n; i++)
            joined &= w->stride[last][i] == w->stride[d][i] * w->shape[d];
        if (joined)
            w->shape[last] *= w->shape[d];
        else
            w->shape[++last] = w->shape[d];
        if (joined || last != d)
            memcpy(w->stride[last], w->stride[d], sizeof(int64_t) * (size_t)n);
    }
    if (k == 0) {
        w->shape[0] = 1;
        for (int i = 0; i < n; i++)
            w->stride[0][i] = 0;
    }
    w->ndim = last + 1;
    return size;
}

/* Bytes between elements that processors foresee: up to that they are near. */
#define OW_NEAR 64

/* The longest dimension of `least` elements or more along which those of all operands are near;
 * without one, the last dimension. */
static inline int ow_walk_near(const ow_walk *w, int64_t least)
{
    int found = w->ndim - 1;
    for (int d = w->ndim - 2; d >= 0; d--) {
        int near = w->shape[d] >= least && w->shape[d] > w->shape[found];
        for (int i = 0; i < w->n; i++)
            near &= llabs(w->stride[d][i]) <= OW_NEAR;
        found = near ? d : found;
    }
    return found;
}

/* Put dimension `d` of a walk last. */
static inline void ow_walk_innermost(ow_walk *w, int d)
{
    int64_t len = w->shape[d], stride[OW_MAXARG];
    size_t size = sizeof(int64_t) * (size_t)w->n;
    memcpy(stride, w->stride[d], size);
    for (; d < w->ndim - 1; d++) {
        w->shape[d] = w->shape[d + 1];
        memcpy(w->stride[d], w->stride[d + 1], size);
    }
    w->shape[d] = len;
    memcpy(w->stride[d], stride, size);
}

/* The number of runs along the last dimension. */
static inline int64_t ow_walk_rows(const ow_walk *w)
{
    int64_t rows = 1;
    for (int d = 0; d < w->ndim - 1; d++)
        rows *= w->shape[d];
    return rows;
}

/* Call `loop` on elements `from` to `to` of runs `first` to `end` along the last dimension. */
static inline void ow_walk_part(const ow_walk *w, ow_loop loop, const void *ctx, int64_t first,
                                int64_t end, int64_t from, int64_t to)
{
    int last = w->ndim - 1;
    const int64_t *inner = w->stride[last];
    int64_t at[OW_MAXDIM] = {0}, index = first;
    char *p[OW_MAXARG], *q[OW_MAXARG];
    for (int i = 0; i < w->n; i++)
        p[i] = w->p[i] + from * inner[i];
    for (int d = last - 1; d >= 0 && index; d--) {
        at[d] = index % w->shape[d];
        index /= w->shape[d];
        for (int i = 0; i < w->n; i++)
            p[i] += at[d] * w->stride[d][i];
    }
    /* Where a run begins is a product: pointers that are moved on from run to run would be read as
     * soon as they are written, in other parts, and each run would wait for the end of the one
     * before. */
    const int64_t *step = w->stride[last ? last - 1 : 0];
    for (int64_t row = first;;) {
        const int64_t more = last ? w->shape[last - 1] - at[last - 1] : 1;
        const int64_t runs = more < end - row ? more : end - row;
        for (int64_t r = 0; r < runs; r++) {
            for (int i = 0; i < w->n; i++)
                q[i] = p[i] + r * step[i];
            loop(ctx, q, inner, to - from);
        }
        row += runs;
        if (row >= end)
            return;
        for (int i = 0; i < w->n; i++)
            p[i] -= at[last - 1] * step[i];
        at[last - 1] = 0;
        for (int d = last - 2;; d--) {
            const int64_t *st = w->stride[d];
            if (++at[d] < w->shape[d]) {
                for (int i = 0; i < w->n; i++)
                    p[i] += st[i];
                break;
            }
            at[d] = 0;
            for (int i = 0; i < w->n; i++)
                p[i] -= st[i] * (w->shape[d] - 1);
        }
    }
}

/* Call `loop` on every run along the last dimension. */
static inline void ow_walk_run(const ow_walk *w, ow_loop loop, const void *ctx)
{
    if (w->ndim == 1) {
        char *p[OW_MAXARG];
        memcpy(p, w->p, sizeof(char *) * (size_t)w->n);
        loop(ctx, p, w->stride[0], w->shape[0]);
    } else
        ow_walk_part(w, loop, ctx, 0, ow_walk_rows(w), 0, w->shape[w->ndim - 1]);
}

/* --- sharing the work ---------------------------------------------------------------------------
 * A job is worth several threads from OW_WORTH nanoseconds of work on: waking a thread that sleeps
 * takes some ten microseconds. Chunks are a few times as many as threads, so that one that is held
 * up leaves its share to others. */

#define OW_WORTH 40000
#define OW_CHUNK_NS 10000
#define OW_CHUNKS_PER_THREAD 8
/* No chunk takes longer than some milliseconds: signals are looked for between chunks. */
#define OW_LONGEST_CHUNK_NS 5e6

/* The next multiple of `step`. */
static inline int64_t ow_round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* Into how many chunks to cut work of `ns` nanoseconds; 1: do not share it. */
static inline int64_t ow_chunks(double ns)
{
    double n = ns / OW_LONGEST_CHUNK_NS;
    int threads = ow_threads();
    if (threads > 1 && ns > OW_WORTH) {
        double even = ns / OW_CHUNK_NS, most = (double)threads * OW_CHUNKS_PER_THREAD;
        even = even < most ? even : most;
        n = even > n ? even : n;
    }
    return n < 1 ? 1 : n < 1e6 ? (int64_t)n : 1000000;
}

/* Simple loops over more elements than this, of about a nanosecond each, are cut into blocks. */
#define OW_BLOCK (1 << 20)

/* Whether a loop should end, which has done `ns` nanoseconds of work since it was asked last; it
 * looks for signals whenever `*left`, OW_LONGEST_CHUNK_NS at first, is used up. */
static inline int ow_stops(double *left, double ns)
{
    if ((*left -= ns) > 0)
        return 0;
    if (ow_should_stop())
        return 1;
    *left = OW_LONGEST_CHUNK_NS;
    return 0;
}

/* The range of chunk `k` of `n` over `total` items: from the return value to `*end`, in steps of
 * `step` items. */
static inline int64_t ow_chunk_range(int64_t k, int64_t n, int64_t total, int64_t step,
                                     int64_t *end)
{
    const int64_t units = total / step + (total % step != 0), each = units / n, rest = units % n;
    const int64_t first = each * k + rest * k / n, last = each * (k + 1) + rest * (k + 1) / n;
    *end = last * step < total ? last * step : total;
    return first * step < total ? first * step : total;
}

typedef struct ow_shared_walk {
    const ow_walk *w;
    ow_loop loop;
    const void *ctx;
    int64_t rows, len, chunks;
    int64_t block; /* at most how many elements of a run at once: all rows, then the next block */
    int along;     /* whether runs are shared out in parts, and not the sequence of runs */
} ow_shared_walk;

static void ow_walk_chunk(void *arg, int64_t k)
{
    const ow_shared_walk *j = arg;
    int64_t first = 0, end = j->rows, from = 0, to = j->len;
    if (j->along)
        from = ow_chunk_range(k, j->chunks, j->len, 64, &to);
    else
        first = ow_chunk_range(k, j->chunks, j->rows, 1, &end);
    if (first >= end)
        return;
    for (; from < to; from += j->block) {
        int64_t until = to - from < j->block ? to : from + j->block;
        ow_walk_part(j->w, j->loop, j->ctx, first, end, from, until);
    }
}

/* As ow_walk_run, by several threads where `ns` nanoseconds of work make it worth that, and in
 * blocks of so many elements of each run. */
static inline void ow_walk_share(const ow_walk *w, ow_loop loop, const void *ctx, double ns,
                                 int64_t block)
{
    int64_t chunks = ow_chunks(ns), rows = ow_walk_rows(w), len = w->shape[w->ndim - 1];
    if (chunks <= 1 && len <= block) {
        ow_walk_run(w, loop, ctx);
        return;
    }
    ow_shared_walk job = {w, loop, ctx, rows, len, chunks, block, rows < chunks};
    ow_parallel(ow_walk_chunk, &job, chunks);
}

/* About how long a copy of one element takes where each lies in a cache line of its own. */
#define OW_COPY_NS 5.0

/* As ow_walk_run, by this thread alone, which looks for signals where there is much to copy. */
static inline void ow_walk_in_order(const ow_walk *w, ow_loop loop, const void *ctx, int64_t size)
{
    const double chunks = OW_COPY_NS / OW_LONGEST_CHUNK_NS * (double)size;
    if (chunks <= 1) {
        ow_walk_run(w, loop, ctx);
        return;
    }
    const int64_t n = (int64_t)chunks + 1, rows = ow_walk_rows(w), len = w->shape[w->ndim - 1];
    ow_shared_walk job = {w, loop, ctx, rows, len, n, INT64_MAX / 2, rows < n};
    ow_in_order(ow_walk_chunk, &job, n);
}

/* Bytes between elements up to which processors foresee the next cache line soon enough: measured
 * on a matrix of every other row and column, whose sums take 20% longer with 16. */
#define OW_FORESEEN 8

/* ow_copy_run for elements of type T. Elements that lie far apart are asked for 64 steps early. */
#define OW_COPY_RUN(NAME, T)                                                                       \
    static inline void NAME(char *to, const char *from, const int64_t *st, int64_t n)              \
    {                                                                                              \
        const int64_t out = st[0], in = st[1];                                                     \
        if (out == (int64_t)sizeof(T) && in == -(int64_t)sizeof(T))                                \
            for (int64_t i = 0; i < n; i++)                                                        \
                ((T *)to)[i] = ((const T *)from)[-i];                                              \
        else if (out == (int64_t)sizeof(T) && in == 0 && n > 0)                                    \
            for (int64_t i = 0, value = *(const T *)from; i < n; i++)                              \
                ((T *)to)[i] = (T)value;                                                           \
        else if (out == (int64_t)sizeof(T) && in == 2 * (int64_t)sizeof(T))                        \
            for (int64_t i = 0; i < n; i++)                                                        \
                ((T *)to)[i] = ((const T *)from)[2 * i];                                           \
        else if (in >= -OW_FORESEEN && in <= OW_FORESEEN)                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                *(T *)(to + i * out) = *(const T *)(from + i * in);                                \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                __builtin_prefetch(ow_at(from + i * in, 64, in));                                  \
                *(T *)(to + i * out) = *(const T *)(from + i * in);                                \
            }                                                                                      \
    }
OW_COPY_RUN(ow_copy_run_8, int64_t)
OW_COPY_RUN(ow_copy_run_4, int32_t)
OW_COPY_RUN(ow_copy_run_2, int16_t)
OW_COPY_RUN(ow_copy_run_1, int8_t)

static inline int64_t ow_copy_run(char **p, const int64_t *st, int64_t n, int itemsize)
{
    char *to = p[0];
    const char *from = p[1];
    if (st[0] == itemsize && st[1] == itemsize)
        memcpy(to, from, (size_t)(n * itemsize));
    else
        switch (itemsize) {
        case 8:
            ow_copy_run_8(to, from, st, n);
            break;
        case 4:
            ow_copy_run_4(to, from, st, n);
            break;
        case 2:
            ow_copy_run_2(to, from, st, n);
            break;
        case 1:
            ow_copy_run_1(to, from, st, n);
            break;
        case 16:
            for (int64_t i = 0; i < n; i++)
                memcpy(to + i * st[0], from + i * st[1], 16);
            break;
        default:
            for (int64_t i = 0; i < n; i++)
                memcpy(to + i * st[0], from + i * st[1], (size_t)itemsize);
        }
    return n;
}

static int ow_run_nothing(ow_step *s)
{
    (void)s;
    return OW_OK;
}

#endif
