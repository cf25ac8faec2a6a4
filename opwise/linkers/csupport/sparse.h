/* Steps on the vectors of compressed matrices (compressed.h). Each checks the indices before it
 * follows one: reading them once costs little beside what is done with the entries. */
#ifndef OW_SPARSE_H
#define OW_SPARSE_H

#include "blas.h"
#include "compressed.h"
#include "labels.h"
#include "simd.h"
#include "step_params.h"

/* --- vectors ---------------------------------------------------------------------------------- */

/* Let `x` show the vectors of a step's inputs: `indices` and the one after it, and `data` or -1. */
static void ow_show_compressed(ow_step *s, ow_compressed *x, int data, int indices, int64_t rows,
                               int64_t columns)
{
    const ow_slot *minor = s->in[indices], *starts = s->in[indices + 1];
    x->rows = rows;
    x->columns = columns;
    x->data = data < 0 ? NULL : s->in[data]->data;
    x->data_step = data < 0 ? 0 : s->in[data]->strides[0];
    x->indices = minor->data;
    x->indptr = starts->data;
    x->indices_step = minor->strides[0];
    x->indptr_step = starts->strides[0];
    x->wide_indices = minor->itemsize == 8;
    x->wide_indptr = starts->itemsize == 8;
}

static int64_t ow_entries(const ow_compressed *x) { return ow_start(x, x->rows); }

/* Fails unless `indptr` has an element for each row and one more, and each entry its data. */
static int ow_check_lengths(ow_step *s, int data, int indices, int64_t rows)
{
    if (data >= 0 && s->in[data]->shape[0] != s->in[indices]->shape[0])
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "data has %lld elements, but indices has %lld: each entry of a sparse matrix "
            "has one of each",
            (long long)s->in[data]->shape[0], (long long)s->in[indices]->shape[0]);
    if (s->in[indices + 1]->shape[0] != rows + 1)
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "dimension mismatch: indptr has %lld elements, but the shapes of the other "
                       "operands need %lld",
                       (long long)s->in[indices + 1]->shape[0], (long long)(rows + 1));
    return OW_OK;
}

/* Whether an index of the entries `from` to `to` lies outside of 0 to columns - 1. */
#define OW_OUTSIDE(T, MOST)                                                                        \
    static int ow_outside_##T(const char *p, int64_t step, int64_t n, uint64_t columns)            \
    {                                                                                              \
        int bad = 0;                                                                               \
        if (step == sizeof(T) && columns > 0) {                                                    \
            /* an index that is negative, or larger than the last, sets the sign */                \
            const u##T last = columns - 1 < MOST ? (u##T)(columns - 1) : MOST;                     \
            u##T signs = 0;                                                                        \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const u##T at = ((const u##T *)p)[i];                                              \
                signs |= at | (last - at);                                                         \
            }                                                                                      \
            return (T)signs < 0;                                                                   \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            bad |= (uint64_t)(int64_t)*(const T *)(p + i * step) >= columns;                       \
        return bad;                                                                                \
    }
OW_OUTSIDE(int32_t, INT32_MAX)
OW_OUTSIDE(int64_t, INT64_MAX)

/* Fails unless the entries of each row follow those of the row before, and all lie in the
 * matrix. */
static int ow_check_compressed(ow_step *s, const ow_compressed *x, int indices)
{
    const int64_t stored = s->in[indices]->shape[0];
    int64_t last = 0;
    for (int64_t i = 0; i <= x->rows; i++) {
        const int64_t start = ow_start(x, i);
        if (start < last || start > stored)
            return OW_FAIL(
                s, OW_VALUE_ERROR,
                "malformed sparse matrix: indptr[%lld] is %lld; it must be at least %lld, "
                "the one before, and at most %lld, the number of stored entries",
                (long long)i, (long long)start, (long long)last, (long long)stored);
        last = start;
    }
    const uint64_t columns = (uint64_t)x->columns;
    int64_t p = ow_start(x, 0);
    const char *first = x->indices + p * x->indices_step;
    if (!(x->wide_indices ? ow_outside_int64_t : ow_outside_int32_t)(first, x->indices_step,
                                                                     last - p, columns))
        return OW_OK;
    while ((uint64_t)ow_minor(x, p) < columns)
        p++;
    return OW_FAIL(
        s, OW_VALUE_ERROR,
        "malformed sparse matrix, or dimension mismatch: indices[%lld] is %lld; it must be "
        "from 0 to %lld",
        (long long)p, (long long)ow_minor(x, p), (long long)x->columns - 1);
}

typedef struct ow_shared_product {
    ow_sparse_product q;
    ow_sparse_product_fn fn;
} ow_shared_product;

typedef struct ow_shared_dots {
    ow_sparse_dots q;
    ow_sparse_dots_fn fn;
} ow_shared_dots;

/* --- sharing the rows ------------------------------------------------------------------------- */

typedef struct ow_sparse_job {
    const ow_compressed *x;
    void (*fn)(const void *arg, int64_t first, int64_t end);
    const void *arg;
    int64_t chunks;
} ow_sparse_job;

/* The first row before which at least `weight` lies: each row weighs its entries and one. */
static int64_t ow_row_at(const ow_compressed *x, int64_t weight)
{
    int64_t low = 0, high = x->rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ow_start(x, middle) - ow_start(x, 0) + middle < weight)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void ow_sparse_chunk(void *arg, int64_t k)
{
    const ow_sparse_job *j = arg;
    const int64_t total = ow_entries(j->x) - ow_start(j->x, 0) + j->x->rows;
    int64_t to, from = ow_chunk_range(k, j->chunks, total, 1, &to);
    from = ow_row_at(j->x, from);
    to = k == j->chunks - 1 ? j->x->rows : ow_row_at(j->x, to);
    if (from < to)
        j->fn(j->arg, from, to);
}

/* Call `fn` on all rows, in chunks of about as many entries; `ns`: about what an entry takes.
 * alone: this thread calls it for all of them. */
static void ow_share_entries(const ow_compressed *x,
                             void (*fn)(const void *arg, int64_t first, int64_t end),
                             const void *arg, double ns, int alone)
{
    ow_sparse_job job = {x, fn, arg, ow_chunks(ns * (double)(ow_entries(x) + x->rows))};
    (alone ? ow_in_order : ow_parallel)(ow_sparse_chunk, &job, job.chunks);
}

/* About how long it takes to find the row of an entry, and to do one step for an element of it. */
#define OW_ENTRY_NS 2.0
#define OW_ENTRY_ELEMENT_NS 0.08

static double ow_entry_ns(int64_t n, int32_t itemsize)
{
    return OW_ENTRY_NS + OW_ENTRY_ELEMENT_NS * (double)n * itemsize / 4;
}

/* --- products --------------------------------------------------------------------------------- */

/* Scratch memory is taken from the front of a step's; `size` bytes of it begin at a line. */
#define OW_LINES(bytes) (((bytes) + 63) / 64 * 64)

static int ow_rows_are_contiguous(const ow_slot *y)
{
    return y->shape[1] <= 1 || y->strides[1] == y->itemsize;
}

static int64_t ow_rows_bytes(const ow_slot *y)
{
    return ow_rows_are_contiguous(y) ? 0 : OW_LINES(ow_size(y) * y->itemsize);
}

/* Let *rows and *step say where the rows of `y` lie, each in one piece; copies them to `at` if
 * not. */
static char *ow_take_rows_at(const ow_slot *y, char *at, const char **rows, int64_t *step)
{
    if (ow_rows_are_contiguous(y)) {
        *rows = y->data;
        *step = y->strides[0];
        return at;
    }
    ow_slot copy = *y, from = *y;
    copy.data = at;
    ow_c_strides(&copy);
    ow_copy(&copy, &from);
    *rows = at;
    *step = copy.strides[0];
    return at + OW_LINES(ow_size(y) * y->itemsize);
}

/* From how many columns on threads share the product of a transposed matrix, whose entries are
 * sorted by rows first: with fewer columns sorting takes longer than the product. */
#define OW_SORT_FROM 48

/* An entry of a sorted matrix: one line of the cache is written for each. */
typedef struct ow_entry_float {
    float value;
    int32_t column;
} ow_entry_float;

typedef struct ow_entry_double {
    double value;
    int64_t column;
} ow_entry_double;

static int64_t ow_entry_bytes(int64_t itemsize)
{
    return itemsize == 8 ? sizeof(ow_entry_double) : sizeof(ow_entry_float);
}

static int64_t ow_sorted_bytes(const ow_compressed *x, int64_t itemsize)
{
    return OW_LINES((x->columns + 2) * 8) + OW_LINES(ow_entries(x) * ow_entry_bytes(itemsize));
}

#define OW_SORT(T)                                                                                 \
    static inline __attribute__((always_inline)) void ow_sort_##T(                                 \
        const ow_compressed *x, const int wide, int64_t *restrict starts,                          \
        ow_entry_##T *restrict to)                                                                 \
    {                                                                                              \
        const char *indices = x->indices, *data = x->data;                                         \
        const int64_t indices_step = x->indices_step, data_step = x->data_step, rows = x->rows;    \
        for (int64_t i = 0; i < rows; i++) {                                                       \
            const int64_t end = ow_start(x, i + 1);                                                \
            for (int64_t p = ow_start(x, i); p < end; p++) {                                       \
                const char *at = indices + p * indices_step;                                       \
                const int64_t row = wide ? *(const int64_t *)at : *(const int32_t *)at;            \
                ow_entry_##T *entry = to + starts[row]++;                                          \
                entry->value = *(const T *)(data + p * data_step);                                 \
                entry->column = i;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
OW_SORT(float)
OW_SORT(double)

/* Let `to` be the transpose of `x`, at `at`; entries in one row keep their order. */
static void ow_transpose(const ow_compressed *x, ow_compressed *to, int64_t itemsize, char *at)
{
    const int64_t begin = ow_start(x, 0), end = ow_entries(x), step = ow_entry_bytes(itemsize);
    /* starts[i + 1] becomes where row i ends, and so where row i + 1 begins */
    int64_t *restrict starts = (int64_t *)at;
    char *entries = at + OW_LINES((x->columns + 2) * 8);
    memset(starts, 0, (size_t)(x->columns + 2) * 8);
    for (int64_t p = begin; p < end; p++)
        starts[ow_minor(x, p) + 2]++;
    for (int64_t i = 2; i < x->columns + 1; i++)
        starts[i] += starts[i - 1];
    if (itemsize == 8 && x->wide_indices)
        ow_sort_double(x, 1, starts + 1, (ow_entry_double *)entries);
    else if (itemsize == 8)
        ow_sort_double(x, 0, starts + 1, (ow_entry_double *)entries);
    else if (x->wide_indices)
        ow_sort_float(x, 1, starts + 1, (ow_entry_float *)entries);
    else
        ow_sort_float(x, 0, starts + 1, (ow_entry_float *)entries);
    *to = (ow_compressed){x->columns, x->rows, entries, entries + itemsize, at,
                          step,       step,    8,       itemsize == 8,      1};
}

static void ow_product_rows(const void *arg, int64_t first, int64_t end)
{
    const ow_shared_product *j = arg;
    j->fn(&j->q, first, end);
}

/* z += a x y, or a x' y where `transposed`. */
static int ow_add_product(ow_step *s, const ow_compressed *x, int transposed, double a, ow_slot *y,
                          ow_slot *z)
{
    const int is_f64 = z->itemsize == 8;
    const int64_t n = z->shape[1];
    /* columns of a float's entry are 32 bits wide */
    const int sorts = transposed && n >= OW_SORT_FROM && ow_threads() > 1 && x->rows <= INT32_MAX;
    const int64_t bytes =
        ow_rows_bytes(y) + ow_rows_bytes(z) + (sorts ? ow_sorted_bytes(x, z->itemsize) : 0);
    char *at = bytes ? ow_scratch(s, bytes) : NULL;
    if (bytes && at == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", (long long)bytes);
    ow_shared_product job = {{*x, a, n, NULL, NULL, 0, 0}, ow_kernels->sparse_product[is_f64]};
    ow_slot sums = *z;
    at = ow_take_rows_at(y, at, &job.q.y, &job.q.yr);
    at = ow_take_rows_at(z, at, (const char **)&sums.data, &sums.strides[0]);
    sums.strides[1] = z->itemsize;
    job.q.z = sums.data;
    job.q.zr = sums.strides[0];
    if (sorts)
        ow_transpose(x, &job.q.x, z->itemsize, at);
    else if (transposed)
        job.fn = ow_kernels->sparse_scatter[is_f64];
    ow_share_entries(&job.q.x, ow_product_rows, &job, ow_entry_ns(n, z->itemsize),
                     transposed && !sorts);
    if (sums.data != z->data)
        ow_copy(z, &sums);
    return OW_OK;
}

static int ow_sparse_product_prep(ow_step *s, int64_t rows, const ow_slot *y)
{
    ow_slot *z = s->out[0];
    if (rows < 0)
        return OW_FAIL(s, OW_VALUE_ERROR, "a sparse matrix cannot have %lld rows", (long long)rows);
    z->shape[0] = rows;
    z->shape[1] = y->shape[1];
    return ow_ensure(s, z);
}

static void ow_clear(ow_slot *z) { memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize)); }

/* in: data, indices, indptr of a CSR matrix, y[, number of its columns] */
static int ow_csr_product_prep(ow_step *s)
{
    return ow_sparse_product_prep(s, s->in[2]->shape[0] - 1, s->in[3]);
}

static int ow_csr_product_run(ow_step *s)
{
    ow_slot *y = s->in[3], *z = s->out[0];
    ow_compressed x;
    const int64_t columns = s->nin > 4 ? ow_int(s->in[4]) : y->shape[0];
    if (columns != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "shape mismatch: the sparse matrix has shape (%lld, %lld), the dense one "
                       "(%lld, %lld)",
                       (long long)z->shape[0], (long long)columns, (long long)y->shape[0],
                       (long long)y->shape[1]);
    int rc = ow_check_lengths(s, 0, 1, z->shape[0]);
    ow_show_compressed(s, &x, 0, 1, z->shape[0], columns);
    rc = rc ? rc : ow_check_compressed(s, &x, 1);
    if (rc)
        return rc;
    ow_clear(z);
    return ow_add_product(s, &x, 0, 1, y, z);
}

/* in: data, indices, indptr of a CSC matrix, number of its rows, y */
static int ow_csc_product_prep(ow_step *s)
{
    return ow_sparse_product_prep(s, ow_int(s->in[3]), s->in[4]);
}

static int ow_csc_product_run(ow_step *s)
{
    ow_slot *y = s->in[4], *z = s->out[0];
    ow_compressed x;
    int rc = ow_check_lengths(s, 0, 1, y->shape[0]);
    ow_show_compressed(s, &x, 0, 1, y->shape[0], z->shape[0]);
    rc = rc ? rc : ow_check_compressed(s, &x, 1);
    if (rc)
        return rc;
    ow_clear(z);
    return ow_add_product(s, &x, 1, 1, y, z);
}

/* in: a, data, indices, indptr of a CSC matrix x, number of its rows, y, z: z <- z + a x y */
enum {
    OW_USMM_A,
    OW_USMM_DATA,
    OW_USMM_INDICES,
    OW_USMM_INDPTR,
    OW_USMM_ROWS,
    OW_USMM_Y,
    OW_USMM_Z
};

static int ow_usmm_prep(ow_step *s)
{
    ow_slot *from = s->in[OW_USMM_Z], *y = s->in[OW_USMM_Y], *z = s->out[0];
    const int64_t rows = ow_int(s->in[OW_USMM_ROWS]);
    if (from->shape[0] != rows || from->shape[1] != y->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "shape mismatch: z has shape (%lld, %lld) but the product has (%lld, %lld)",
                       (long long)from->shape[0], (long long)from->shape[1], (long long)rows,
                       (long long)y->shape[1]);
    if (OW_PARAMS(s, update)->overwrite) {
        ow_alias(z, from);
        return OW_OK;
    }
    ow_set_shape(z, 2, from->shape);
    return ow_ensure(s, z);
}

static int ow_usmm_run(ow_step *s)
{
    ow_slot *y = s->in[OW_USMM_Y], *z = s->out[0];
    ow_compressed x;
    int rc = ow_check_lengths(s, OW_USMM_DATA, OW_USMM_INDICES, y->shape[0]);
    ow_show_compressed(s, &x, OW_USMM_DATA, OW_USMM_INDICES, y->shape[0], z->shape[0]);
    rc = rc ? rc : ow_check_compressed(s, &x, OW_USMM_INDICES);
    if (rc)
        return rc;
    if (!OW_PARAMS(s, update)->overwrite)
        ow_copy(z, s->in[OW_USMM_Z]);
    return ow_add_product(s, &x, 1, ow_real(s->in[OW_USMM_A]), y, z);
}

/* --- dot products of the entries of a pattern ------------------------------------------------- */

static void ow_dots_rows(const void *arg, int64_t first, int64_t end)
{
    const ow_shared_dots *j = arg;
    j->fn(&j->q, first, end);
}

/* Set the first output to the dot product, for each entry of `x`, of a row of y and a row of w. */
static int ow_dots(ow_step *s, const ow_compressed *x, const ow_slot *y, const ow_slot *w)
{
    ow_slot *z = s->out[0];
    const int64_t bytes = ow_rows_bytes(y) + ow_rows_bytes(w), n = y->shape[1];
    char *at = bytes ? ow_scratch(s, bytes) : NULL;
    if (bytes && at == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", (long long)bytes);
    ow_shared_dots job = {{*x, n, NULL, NULL, z->data, 0, 0},
                          ow_kernels->sparse_dots[z->itemsize == 8]};
    at = ow_take_rows_at(y, at, &job.q.y, &job.q.yr);
    ow_take_rows_at(w, at, &job.q.w, &job.q.wr);
    /* elements that no row has, where indptr ends before indices do */
    memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
    ow_share_entries(x, ow_dots_rows, &job, ow_entry_ns(n, z->itemsize), 0);
    return OW_OK;
}

static int ow_like_entries(ow_step *s, int indices)
{
    s->out[0]->shape[0] = s->in[indices]->shape[0];
    return ow_ensure(s, s->out[0]);
}

static int ow_check_columns(ow_step *s, const ow_slot *y, const ow_slot *w)
{
    if (y->shape[1] != w->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "shape mismatch: the dense operands have %lld and %lld columns",
                       (long long)y->shape[1], (long long)w->shape[1]);
    return OW_OK;
}

/* in: indices, indptr of a matrix x, y, the gradient by x y; out: the gradient by the data of x */
static int ow_product_gradient_prep(ow_step *s) { return ow_like_entries(s, 0); }

static int ow_product_gradient_run(ow_step *s)
{
    const ow_slot *y = s->in[2], *g = s->in[3];
    const int csc = (int)OW_PARAMS(s, format)->csc;
    const ow_slot *by_row = csc ? y : g, *by_entry = csc ? g : y;
    ow_compressed x;
    int rc = ow_check_columns(s, y, g);
    rc = rc ? rc : ow_check_lengths(s, -1, 0, by_row->shape[0]);
    ow_show_compressed(s, &x, -1, 0, by_row->shape[0], by_entry->shape[0]);
    rc = rc ? rc : ow_check_compressed(s, &x, 0);
    return rc ? rc : ow_dots(s, &x, by_row, by_entry);
}

/* in: x, y, data, indices, indptr of a CSR matrix p, number of its columns; out: the data, indices
 * and indptr of p times the product of x with y transposed */
static int ow_sampling_dot_prep(ow_step *s)
{
    for (int k = 1; k < 3; k++) {
        ow_set_shape(s->out[k], 1, s->in[k + 2]->shape);
        const int rc = ow_ensure(s, s->out[k]);
        if (rc)
            return rc;
    }
    return ow_like_entries(s, 3);
}

static int ow_sampling_dot_run(ow_step *s)
{
    const ow_slot *x = s->in[0], *y = s->in[1];
    ow_compressed p;
    int rc = ow_check_columns(s, x, y);
    if (!rc && ow_int(s->in[5]) != y->shape[0])
        rc = OW_FAIL(s, OW_VALUE_ERROR, "shape mismatch: y has %lld rows, but p has %lld columns",
                     (long long)y->shape[0], (long long)ow_int(s->in[5]));
    rc = rc ? rc : ow_check_lengths(s, 2, 3, x->shape[0]);
    ow_show_compressed(s, &p, 2, 3, x->shape[0], y->shape[0]);
    rc = rc ? rc : ow_check_compressed(s, &p, 3);
    if (rc)
        return rc;
    ow_copy(s->out[1], s->in[3]);
    ow_copy(s->out[2], s->in[4]);
    return ow_dots(s, &p, x, y);
}

/* --- elementwise work on the entries ---------------------------------------------------------- */

/* The operand of an entry: the element (row, column) of a matrix with these steps, in bytes. */
typedef struct ow_elements {
    const char *data;
    int64_t by_row, by_column;
} ow_elements;

#define OW_ENTRYWISE(T)                                                                            \
    static void ow_entrywise_##T(const ow_compressed *x, const ow_elements *y, int adds, T *z)     \
    {                                                                                              \
        double left = OW_LONGEST_CHUNK_NS;                                                         \
        for (int64_t i = 0; i < x->rows; i++) {                                                    \
            const char *row = y->data + i * y->by_row;                                             \
            const int64_t from = ow_start(x, i), to = ow_start(x, i + 1);                          \
            if (ow_stops(&left, OW_COPY_NS * (double)(to - from + 1)))                             \
                return;                                                                            \
            for (int64_t p = from; p < to; p++) {                                                  \
                const T a = *(const T *)(x->data + p * x->data_step);                              \
                const T b = *(const T *)(row + ow_minor(x, p) * y->by_column);                     \
                z[p] = adds ? a + b : a * b;                                                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void ow_add_entries_##T(const ow_compressed *x, const ow_elements *z)                   \
    {                                                                                              \
        for (int64_t i = 0; i < x->rows; i++) {                                                    \
            const char *row = z->data + i * z->by_row;                                             \
            for (int64_t p = ow_start(x, i); p < ow_start(x, i + 1); p++)                          \
                *(T *)(row + ow_minor(x, p) * z->by_column) +=                                     \
                    *(const T *)(x->data + p * x->data_step);                                      \
        }                                                                                          \
    }
OW_ENTRYWISE(float)
OW_ENTRYWISE(double)

static void ow_entrywise(ow_step *s, const ow_compressed *x, const ow_elements *y, int adds)
{
    ow_slot *z = s->out[0];
    memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
    if (z->itemsize == 8)
        ow_entrywise_double(x, y, adds, (double *)z->data);
    else
        ow_entrywise_float(x, y, adds, (float *)z->data);
}

/* in: data, indices, indptr, dense matrix; out: the data of their product */
static int ow_times_matrix_prep(ow_step *s) { return ow_like_entries(s, 1); }

static int ow_times_matrix_run(ow_step *s)
{
    const ow_slot *y = s->in[3];
    const int csc = (int)OW_PARAMS(s, format)->csc;
    ow_compressed x;
    int rc = ow_check_lengths(s, 0, 1, y->shape[csc]);
    ow_show_compressed(s, &x, 0, 1, y->shape[csc], y->shape[!csc]);
    rc = rc ? rc : ow_check_compressed(s, &x, 1);
    if (rc)
        return rc;
    const ow_elements operand = {y->data, y->strides[csc], y->strides[!csc]};
    ow_entrywise(s, &x, &operand, 0);
    return OW_OK;
}

/* in: data, indices, indptr, vector; out: data plus or times its elements */
static int ow_with_vector_prep(ow_step *s) { return ow_like_entries(s, 1); }

static int ow_with_vector_run(ow_step *s)
{
    const ow_slot *y = s->in[3];
    const int by_row = (int)OW_PARAMS(s, with_vector)->by_row;
    const int64_t rows = by_row ? y->shape[0] : s->in[2]->shape[0] - 1;
    ow_compressed x;
    int rc = ow_check_lengths(s, 0, 1, rows);
    /* columns are of no account where rows have the elements */
    ow_show_compressed(s, &x, 0, 1, rows, by_row ? INT64_MAX : y->shape[0]);
    rc = rc ? rc : ow_check_compressed(s, &x, 1);
    if (rc)
        return rc;
    const ow_elements operand = {y->data, by_row ? y->strides[0] : 0, by_row ? 0 : y->strides[0]};
    ow_entrywise(s, &x, &operand, (int)OW_PARAMS(s, with_vector)->add);
    return OW_OK;
}

/* in: data, indices, indptr, dense matrix y; out: their sum */
static int ow_add_dense_prep(ow_step *s)
{
    ow_slot *y = s->in[3], *z = s->out[0];
    if (OW_PARAMS(s, add_dense)->overwrite) {
        ow_alias(z, y);
        return OW_OK;
    }
    ow_set_shape(z, 2, y->shape);
    return ow_ensure(s, z);
}

static int ow_add_dense_run(ow_step *s)
{
    ow_slot *z = s->out[0];
    const int csc = (int)OW_PARAMS(s, add_dense)->csc;
    ow_compressed x;
    int rc = ow_check_lengths(s, 0, 1, z->shape[csc]);
    ow_show_compressed(s, &x, 0, 1, z->shape[csc], z->shape[!csc]);
    rc = rc ? rc : ow_check_compressed(s, &x, 1);
    if (rc)
        return rc;
    if (!OW_PARAMS(s, add_dense)->overwrite)
        ow_copy(z, s->in[3]);
    const ow_elements operand = {z->data, z->strides[csc], z->strides[!csc]};
    if (z->itemsize == 8)
        ow_add_entries_double(&x, &operand);
    else
        ow_add_entries_float(&x, &operand);
    return OW_OK;
}

/* --- the gradient by data --------------------------------------------------------------------- */

#define OW_DATA_GRADIENT(T)                                                                        \
    static void ow_data_gradient_##T(const ow_compressed *x, const ow_compressed *g, T *sums,      \
                                     T *z)                                                         \
    {                                                                                              \
        for (int64_t i = 0; i < x->rows; i++) {                                                    \
            const int64_t from = ow_start(g, i), to = ow_start(g, i + 1);                          \
            for (int64_t p = from; p < to; p++)                                                    \
                sums[ow_minor(g, p)] += *(const T *)(g->data + p * g->data_step);                  \
            for (int64_t p = ow_start(x, i); p < ow_start(x, i + 1); p++)                          \
                z[p] = sums[ow_minor(x, p)];                                                       \
            for (int64_t p = from; p < to; p++)                                                    \
                sums[ow_minor(g, p)] = 0;                                                          \
        }                                                                                          \
    }
OW_DATA_GRADIENT(float)
OW_DATA_GRADIENT(double)

/* in: data, indices, indptr, shape of a matrix, and the same four of the gradient by it; out: the
 * gradient by the data */
static int ow_data_gradient_prep(ow_step *s) { return ow_like_entries(s, 1); }

static int ow_data_gradient_run(ow_step *s)
{
    ow_slot *z = s->out[0];
    const int64_t rows = s->in[2]->shape[0] - 1;
    if (s->in[3]->shape[0] != 2)
        return OW_FAIL(s, OW_VALUE_ERROR, "the shape of a sparse matrix has 2 elements, not %lld",
                       (long long)s->in[3]->shape[0]);
    /* the matrix may be CSR or CSC; square ones need no telling */
    const int64_t lengths[2] = {ow_label(s->in[3], 0), ow_label(s->in[3], 1)};
    const int64_t columns = lengths[0] == rows ? lengths[1] : lengths[0];
    ow_compressed x, g;
    if (rows < 0 || columns < 0)
        return OW_FAIL(s, OW_VALUE_ERROR, "malformed sparse matrix: indptr is empty");
    int rc = ow_check_lengths(s, 0, 1, rows);
    rc = rc ? rc : ow_check_lengths(s, 4, 5, rows);
    ow_show_compressed(s, &x, 0, 1, rows, columns);
    ow_show_compressed(s, &g, 4, 5, rows, columns);
    rc = rc ? rc : ow_check_compressed(s, &x, 1);
    rc = rc ? rc : ow_check_compressed(s, &g, 5);
    if (rc)
        return rc;
    const int64_t bytes = (columns ? columns : 1) * z->itemsize;
    char *sums = ow_scratch(s, bytes);
    if (sums == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", (long long)bytes);
    memset(sums, 0, (size_t)bytes);
    memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
    if (z->itemsize == 8)
        ow_data_gradient_double(&x, &g, (double *)sums, (double *)z->data);
    else
        ow_data_gradient_float(&x, &g, (float *)sums, (float *)z->data);
    return OW_OK;
}

#endif
