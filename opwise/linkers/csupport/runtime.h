/* Arrays, steps, memory and errors of the virtual machine. No Python here: this is what kernels see.
 *
 * A cell holds one value of a program: where its elements lie, and who keeps that memory alive.
 * A step is one Apply: `prep` checks shapes, sets the outputs' and finds memory for them; `run`
 * computes. A step whose flags have OW_STATIC prepares from shapes alone, one with OW_TOTAL cannot
 * fail once it is prepared, one with OW_CHECKED only before it has written anything: the machine
 * needs to know to update shared values all or not at all.
 */
#ifndef OW_RUNTIME_H
#define OW_RUNTIME_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OW_MAXDIM 8
#define OW_MAXARG 40
#define OW_ALIGN 64

typedef struct ow_cell {
    char *data;
    int64_t shape[OW_MAXDIM];
    int64_t strides[OW_MAXDIM];
    int32_t ndim;
    int32_t itemsize;
    int32_t typenum;  /* numpy's type number, or -1 for a value that is any Python object */
    int32_t scalar;   /* 1 for a number (Scalar type), which Python sees as a numpy scalar */
    char *buf;        /* memory that this cell owns, or NULL */
    int64_t cap;      /* its size in bytes */
    void *owner;      /* the Python object that keeps `data` alive, or NULL */
} ow_cell;

enum {
    OW_OK = 0,
    OW_VALUE_ERROR,
    OW_INDEX_ERROR,
    OW_TYPE_ERROR,
    OW_MEMORY_ERROR,
    OW_ZERO_DIVISION,
    OW_PYTHON_ERROR, /* the exception is set already */
};

enum { OW_STATIC = 1, OW_TOTAL = 2, OW_CHECKED = 4 };

typedef struct ow_step ow_step;
typedef int (*ow_fn)(ow_step *);
typedef void (*ow_loop)(const void *ctx, char **p, const int64_t *stride, int64_t n);

struct ow_step {
    ow_fn prep;
    ow_fn run;
    ow_cell **in;
    ow_cell **out;
    int32_t nin, nout;
    const int64_t *ints;   /* parameters, by kind */
    const double *reals;
    ow_loop loop;          /* kernel of an elementwise step */
    const void *ctx;       /* what the kernel needs besides its operands */
    char *error;           /* OW_ERROR_SIZE bytes of the machine */
    char *scratch;         /* memory for the step's own use, kept between calls */
    int64_t scratch_cap;
};

#define OW_ERROR_SIZE 400
#define OW_FAIL(s, code, ...) (snprintf((s)->error, OW_ERROR_SIZE, __VA_ARGS__), (code))

/* --- memory ------------------------------------------------------------------------------- */

static inline char *ow_alloc(int64_t bytes)
{
    void *p = NULL;
    if (bytes < OW_ALIGN)
        bytes = OW_ALIGN;
    return posix_memalign(&p, OW_ALIGN, (size_t)bytes) ? NULL : (char *)p;
}

static inline int64_t ow_size(const ow_cell *c)
{
    int64_t n = 1;
    for (int d = 0; d < c->ndim; d++)
        n *= c->shape[d];
    return n;
}

static inline int ow_is_c_contiguous(const ow_cell *c)
{
    int64_t expected = c->itemsize;
    for (int d = c->ndim - 1; d >= 0; d--) {
        if (c->shape[d] != 1 && c->strides[d] != expected)
            return 0;
        expected *= c->shape[d];
    }
    return 1;
}

static inline void ow_c_strides(ow_cell *c)
{
    int64_t stride = c->itemsize;
    for (int d = c->ndim - 1; d >= 0; d--) {
        c->strides[d] = stride;
        stride *= c->shape[d] ? c->shape[d] : 1;
    }
}

/* Make `c` a contiguous array of its current shape in memory of its own. */
static inline int ow_ensure(ow_step *s, ow_cell *c)
{
    int64_t bytes = c->itemsize;
    for (int d = 0; d < c->ndim; d++)
        if (__builtin_mul_overflow(bytes, c->shape[d] ? c->shape[d] : 1, &bytes))
            return OW_FAIL(s, OW_MEMORY_ERROR, "an array of %d dimensions is too large", c->ndim);
    ow_c_strides(c);
    if (c->buf == NULL || c->cap < bytes) {
        char *fresh = ow_alloc(bytes);
        if (fresh == NULL)
            return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", (long long)bytes);
        free(c->buf);
        c->buf = fresh;
        c->cap = bytes < OW_ALIGN ? OW_ALIGN : bytes;
    }
    c->data = c->buf;
    return OW_OK;
}

static inline char *ow_scratch(ow_step *s, int64_t bytes)
{
    if (s->scratch_cap < bytes) {
        free(s->scratch);
        s->scratch = ow_alloc(bytes);
        s->scratch_cap = s->scratch ? bytes : 0;
    }
    return s->scratch;
}

static inline void ow_set_shape(ow_cell *c, int ndim, const int64_t *shape)
{
    c->ndim = ndim;
    for (int d = 0; d < ndim; d++)
        c->shape[d] = shape[d];
}

/* Let `view` show the memory, shape and strides of `of`. */
static inline void ow_alias(ow_cell *view, const ow_cell *of)
{
    view->data = of->data;
    view->ndim = of->ndim;
    for (int d = 0; d < of->ndim; d++) {
        view->shape[d] = of->shape[d];
        view->strides[d] = of->strides[d];
    }
}

/* An index stored as a number of any integer type; numpy's unsigned ones have even numbers. */
static inline int64_t ow_int(const ow_cell *c)
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
        return *(int64_t *)c->data;
    }
}

/* --- walking over several arrays of one shape ------------------------------------------------- */

typedef struct ow_walk {
    int ndim, n;                           /* dimensions after collapsing; number of operands */
    int64_t shape[OW_MAXDIM];
    int64_t stride[OW_MAXDIM][OW_MAXARG];  /* bytes, by dimension, then operand */
    char *p[OW_MAXARG];
} ow_walk;

/* Drop dimensions of length 1 and join those that every operand steps through evenly.
 * Returns the number of elements. `last` holds the dimension with the smallest steps. */
static inline int64_t ow_walk_start(ow_walk *w, int ndim, const int64_t *shape, int n,
                                    ow_cell *const *cells)
{
    int64_t size = 1;
    int k = 0;
    w->n = n;
    for (int i = 0; i < n; i++)
        w->p[i] = cells[i]->data;
    for (int d = 0; d < ndim; d++) {
        int64_t len = shape[d];
        size *= len;
        if (len == 1)
            continue;
        int64_t *st = w->stride[k];
        for (int i = 0; i < n; i++)
            st[i] = cells[i]->shape[d] == 1 ? 0 : cells[i]->strides[d];
        if (k > 0) {
            const int64_t *above = w->stride[k - 1];
            int joined = 1;
            for (int i = 0; i < n; i++)
                joined &= above[i] == st[i] * len;
            if (joined) {
                for (int i = 0; i < n; i++)
                    w->stride[k - 1][i] = st[i];
                w->shape[k - 1] *= len;
                continue;
            }
        }
        w->shape[k++] = len;
    }
    if (k == 0) {
        w->shape[0] = 1;
        for (int i = 0; i < n; i++)
            w->stride[0][i] = 0;
        k = 1;
    }
    w->ndim = k;
    return size;
}

/* Call `loop` on every run along the last dimension. */
static inline void ow_walk_run(ow_walk *w, ow_loop loop, const void *ctx)
{
    int last = w->ndim - 1;
    const int64_t *inner = w->stride[last];
    int64_t len = w->shape[last];
    if (last == 0) {
        loop(ctx, w->p, inner, len);
        return;
    }
    int64_t at[OW_MAXDIM] = {0};
    char *p[OW_MAXARG], *q[OW_MAXARG];
    memcpy(p, w->p, sizeof(char *) * w->n);
    for (;;) {
        memcpy(q, p, sizeof(char *) * w->n);
        loop(ctx, q, inner, len);
        int d = last - 1;
        for (; d >= 0; d--) {
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
        if (d < 0)
            return;
    }
}

static inline int64_t ow_copy_run(char **p, const int64_t *st, int64_t n, int itemsize)
{
    char *to = p[0];
    const char *from = p[1];
    if (st[0] == itemsize && st[1] == itemsize)
        memcpy(to, from, (size_t)(n * itemsize));
    else
        switch (itemsize) {
        case 8:
            for (int64_t i = 0; i < n; i++)
                *(int64_t *)(to + i * st[0]) = *(const int64_t *)(from + i * st[1]);
            break;
        case 4:
            for (int64_t i = 0; i < n; i++)
                *(int32_t *)(to + i * st[0]) = *(const int32_t *)(from + i * st[1]);
            break;
        default:
            for (int64_t i = 0; i < n; i++)
                memcpy(to + i * st[0], from + i * st[1], (size_t)itemsize);
        }
    return n;
}

static void ow_copy_loop(const void *ctx, char **p, const int64_t *st, int64_t n)
{
    ow_copy_run(p, st, n, (int)*(const int64_t *)ctx);
}

/* Copy the elements of `from` into `to`; lengths 1 of `from` broadcast. */
static inline void ow_copy(ow_cell *to, ow_cell *from)
{
    ow_walk w;
    ow_cell *cells[2] = {to, from};
    int64_t itemsize = to->itemsize;
    if (ow_walk_start(&w, to->ndim, to->shape, 2, cells))
        ow_walk_run(&w, ow_copy_loop, &itemsize);
}

static int ow_run_nothing(ow_step *s)
{
    (void)s;
    return OW_OK;
}

#endif
