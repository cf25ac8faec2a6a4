/* Products of matrices and vectors through BLAS, whose functions the VM gets from scipy.
 *
 * Everything here is row-major: X Y = Z becomes Y' X' = Z' in BLAS's column-major words. An operand
 * whose rows or columns are contiguous is passed as it is; any other is copied first.
 */
#ifndef OW_BLAS_H
#define OW_BLAS_H

#include "copy.h"
#include "step_params.h"

typedef void (*ow_dgemm_t)(char *, char *, int *, int *, int *, double *, double *, int *, double *,
                           int *, double *, double *, int *);
typedef void (*ow_sgemm_t)(char *, char *, int *, int *, int *, float *, float *, int *, float *,
                           int *, float *, float *, int *);
typedef void (*ow_dgemv_t)(char *, int *, int *, double *, double *, int *, double *, int *,
                           double *, double *, int *);
typedef void (*ow_sgemv_t)(char *, int *, int *, float *, float *, int *, float *, int *, float *,
                           float *, int *);
typedef void (*ow_dger_t)(int *, int *, double *, double *, int *, double *, int *, double *,
                          int *);
typedef void (*ow_sger_t)(int *, int *, float *, float *, int *, float *, int *, float *, int *);

extern struct ow_blas {
    ow_dgemm_t dgemm;
    ow_sgemm_t sgemm;
    ow_dgemv_t dgemv;
    ow_sgemv_t sgemv;
    ow_dger_t dger;
    ow_sger_t sger;
} ow_blas;

/* A matrix as BLAS sees it. */
typedef struct ow_mat {
    char *data;
    int rows, cols;
    int ld; /* elements between rows (if by_rows) or columns */
    int by_rows;
} ow_mat;

#define OW_SMALL (1 << 26)  /* multiplications up to which own loops are as fast as BLAS */
#define OW_PACKED (1 << 20) /* multiplications that pay for a copy of rows of x */
#define OW_LARGE_PAGE                                                                              \
    (1 << 23) /* multiplications in a page of a batched product that the team shares */
#define OW_COLUMN_PART                                                                             \
    4096 /* bytes of a column that one thread reads at once, of a product with a vector */
#define OW_BYTE_NS                                                                                 \
    0.1 /* how long it takes to read a byte of a matrix, for a product with a vector */
#define OW_COPY_COST 16            /* multiplications that take as long as the copy of an element */
#define OW_PACKED_BYTES (16 << 20) /* the most memory for the copy of y */
#define OW_PACK_TOGETHER (1 << 17) /* bytes of it that the team shares */
#define OW_SMALL_VECTOR (1 << 14)  /* the same, for products with a vector; these take one thread */
#define OW_NARROW 24 /* and so they are where one of the three lengths is at most so many */

/* Fills ow_blas when the first product is large enough to need it; returns OW_OK, or an error that
 * it has written or, for OW_PYTHON_ERROR, kept. */
extern int (*ow_load_blas)(char *error);

static inline int ow_need_blas(ow_step *s, int needed)
{
    if (!needed || ow_blas.sger != NULL) /* the last one that is filled in */
        return OW_OK;
    return ow_load_blas(s->error);
}

/* Whether a length fits the integers of BLAS, which have 32 bits. */
static inline int ow_fits(int64_t n) { return n >= 0 && n <= INT32_MAX; }

/* Describe `c` without copying; returns 0 if neither rows nor columns are contiguous, or those that
 * are lie too far apart for BLAS. */
static inline int ow_as_mat(const ow_slot *c, ow_mat *m)
{
    int64_t item = c->itemsize, r = c->shape[0], k = c->shape[1];
    int64_t sr = c->strides[0], sc = c->strides[1];
    if (!ow_fits(r) || !ow_fits(k))
        return 0;
    m->data = c->data;
    m->rows = (int)r;
    m->cols = (int)k;
    if ((sc == item || k <= 1) &&
        (r <= 1 || (sr >= k * item && sr % item == 0 && ow_fits(sr / item)))) {
        m->by_rows = 1;
        m->ld = r > 1 ? (int)(sr / item) : (int)(k > 0 ? k : 1);
        return 1;
    }
    if ((sr == item || r <= 1) &&
        (k <= 1 || (sc >= r * item && sc % item == 0 && ow_fits(sc / item)))) {
        m->by_rows = 0;
        m->ld = k > 1 ? (int)(sc / item) : (int)(r > 0 ? r : 1);
        return 1;
    }
    return 0;
}

/* Bytes of scratch memory that `ow_get_mat` will take for `c`. */
static inline int64_t ow_mat_bytes(const ow_slot *c)
{
    ow_mat m;
    return ow_as_mat(c, &m) ? 0
                            : ow_add_size(ow_size(c) * c->itemsize / OW_ALIGN * OW_ALIGN, OW_ALIGN);
}

/* Describe `c`, copying it to *memory, which moves on, where BLAS cannot read it as it is. */
static inline char *ow_get_mat(ow_slot *c, ow_mat *m, char **memory)
{
    if (ow_as_mat(c, m))
        return NULL;
    ow_slot copy = *c;
    ow_c_strides(&copy);
    copy.data = *memory;
    *memory += ow_mat_bytes(c);
    ow_copy(&copy, c);
    const int rows = (int)c->shape[0], cols = (int)c->shape[1];
    *m = (ow_mat){copy.data, rows, cols, cols > 0 ? cols : 1, 1};
    return copy.data;
}

/* --- own products -------------------------------------------------------------------------------
 * BLAS copies both operands before it multiplies, which small and narrow matrices do not pay back.
 * It starts all its threads or one. Where other programs use the processors, they wait for each
 * other much longer than the product takes; the team of threads.h rests instead. */

/* Whether the kernels of simd.h are the better way to a product of these sizes. */
static inline int ow_is_own(int64_t m, int64_t n, int64_t k)
{
    const int64_t narrow = m < n ? m : n, work = ow_mul_size(ow_mul_size(m, n), k + 1);
    if (ow_kernels->products)
        return 1;
    if (narrow <= 1)
        return work <= OW_SMALL_VECTOR;
    return work <= OW_SMALL || narrow <= OW_NARROW || k <= OW_NARROW;
}

typedef struct ow_gemm_job {
    ow_gemm_fn fn;
    const ow_product *q;
    int64_t chunks, step;
    int by_rows;
} ow_gemm_job;

static void ow_gemm_chunk(void *arg, int64_t c)
{
    const ow_gemm_job *j = arg;
    int64_t end,
        first = ow_chunk_range(c, j->chunks, j->by_rows ? j->q->m : j->q->n, j->step, &end);
    if (first >= end)
        return;
    if (j->by_rows)
        j->fn(j->q, first, end, 0, j->q->n);
    else
        j->fn(j->q, 0, j->q->m, first, end);
}

/* Bytes of an element of a type of gemm kernels. */
static inline int64_t ow_item(int type) { return type & 1 ? 8 : 4; }

typedef struct ow_packed_job {
    int type;
    const ow_product *q;
    char *memory;
    int64_t high, wide, across; /* rows and columns of a chunk; chunks side by side */
} ow_packed_job;

static void ow_pack_chunk(void *arg, int64_t c)
{
    const ow_packed_job *j = arg;
    const int64_t first = c * j->wide, end = first + j->wide;
    ow_kernels->pack_part[j->type](j->q, j->memory, first, end < j->q->n ? end : j->q->n);
}

static void ow_packed_chunk(void *arg, int64_t c)
{
    const ow_packed_job *j = arg;
    const int64_t i = c / j->across * j->high, k = c % j->across * j->wide, low = i + j->high,
                  right = k + j->wide;
    ow_kernels->packed_gemm[j->type](j->q, i, low < j->q->m ? low : j->q->m, k,
                                     right < j->q->n ? right : j->q->n);
}

/* About how long a product takes the team, in multiplications, whose rows are cut into `down` and
 * columns into `across` parts. `shared`: y is copied already. */
static inline double ow_cut_time(const ow_product *q, int shared, int64_t down, int64_t across)
{
    const int64_t threads = ow_threads(), rounds = (down * across + threads - 1) / threads;
    const double rows = (double)q->m / (double)down, columns = (double)q->n / (double)across;
    return (double)rounds * (rows * columns + OW_COPY_COST * (rows + (shared ? 0 : columns)));
}

/* Cut the rows of a packed product into *down and the columns into *across parts, so that all
 * threads have some and end together; returns whether the team copies y first. */
static int ow_cut_product(const ow_product *q, int type, int64_t *down, int64_t *across)
{
    const int64_t tile = ow_kernels->wide[type], most = ow_kernels->product_rows,
                  threads = ow_threads();
    const int64_t chunks =
        ow_chunks((double)q->m * (double)q->n * (double)q->k / (160.0 / ow_item(type)));
    const int64_t least = (q->m + most - 1) / most;
    const int shared =
        least > 2; /* few chunks of rows read columns again faster than they read a copy of all */
    /* chunks beside each other copy the same rows, which few columns would not pay for */
    *down = least;
    *across = (chunks + least - 1) / least;
    if (*across > q->n / (8 * tile))
        *across = q->n / (8 * tile) > 1 ? q->n / (8 * tile) : 1;
    if (threads == 1 || least * *across >= threads * OW_CHUNKS_PER_THREAD)
        return shared;
    double best = 0.95 * ow_cut_time(q, shared, *down, *across);
    for (int64_t d = least; d <= least + threads && d * 4 <= q->m; d++)
        for (int64_t rounds = 1; rounds <= OW_CHUNKS_PER_THREAD; rounds++) {
            const int64_t a = rounds * threads / d;
            const double time = a && a * tile <= q->n ? ow_cut_time(q, shared, d, a) : INFINITY;
            if (time < best) {
                best = time;
                *down = d;
                *across = a;
            }
        }
    return shared;
}

/* A product whose operands are copied: y once for the team, or by each chunk as it comes to it, and
 * rows of x by each chunk. Returns 0 if there is no memory. */
static int ow_packed_gemm(int type, ow_product *q)
{
    const int64_t tile = ow_kernels->wide[type];
    int64_t down, across;
    ow_packed_job job = {type, q, NULL, 0, ow_kernels->pack_columns[type], 1};
    if (ow_cut_product(q, type, &down, &across)) {
        const int64_t bytes = q->k * ow_round_up(q->n, tile) * ow_item(type);
        const int64_t parts = (q->n + job.wide - 1) / job.wide;
        job.memory = ow_alloc(bytes);
        if (job.memory == NULL)
            return 0;
        if (bytes > OW_PACK_TOGETHER)
            ow_parallel(ow_pack_chunk, &job, parts);
        else
            ow_in_order(ow_pack_chunk, &job, parts);
    }
    job.high = ow_round_up((q->m + down - 1) / down, 4);
    job.wide = ow_round_up((q->n + across - 1) / across, tile);
    job.across = (q->n + job.wide - 1) / job.wide;
    q->packed = job.memory;
    ow_parallel(ow_packed_chunk, &job, (q->m + job.high - 1) / job.high * job.across);
    ow_free(job.memory);
    return 1;
}

/* The same in parts, so that the copy of y takes little memory. Sums are cut where kernels cut
 * them. */
static void ow_large_gemm(int type, const ow_product *q)
{
    const int64_t item = ow_item(type), least = 4 * ow_kernels->pack_columns[type];
    int64_t n = q->n, k = q->k;
    while (n * k > OW_PACKED_BYTES / item)
        if (n > least)
            n = ow_round_up(n / 2, least / 4);
        else
            k = ow_round_up(k / 2, 256);
    for (int64_t j = 0; j < q->n; j += n)
        for (int64_t p = 0; p < q->k && !ow_should_stop(); p += k) {
            ow_product part = *q;
            part.n = q->n - j < n ? q->n - j : n;
            part.k = q->k - p < k ? q->k - p : k;
            part.b = p ? 1 : q->b;
            part.x += p * q->xc * item;
            part.y += (p * q->yr + j * q->yc) * item;
            part.z += j * item;
            if (!ow_packed_gemm(type, &part))
                ow_kernels->gemm[type](&part, 0, part.m, 0, part.n);
        }
}

/* The same product with its rows and columns exchanged. */
static ow_product ow_turned(const ow_product *q)
{
    return (ow_product){.m = q->n,
                        .n = q->m,
                        .k = q->k,
                        .a = q->a,
                        .b = q->b,
                        .x = q->y,
                        .y = q->x,
                        .z = q->z,
                        .xr = q->yc,
                        .xc = q->yr,
                        .yr = q->xc,
                        .yc = q->xr,
                        .zr = 1,
                        .zc = q->zr};
}

static void ow_own_product(int type, const ow_product *given);

/* z = b z + turned, of n rows of m elements */
#define OW_ADD_TURNED(T)                                                                           \
    for (int64_t i = 0; i < q->m; i++)                                                             \
        for (int64_t j = 0; j < q->n; j++) {                                                       \
            T *z = (T *)q->z + i * q->zr + j, value = ((const T *)turned)[j * q->m + i];           \
            *z = q->b == 0 ? value : (T)q->b * *z + value;                                         \
        }

/* Products of few columns, whose vectors would be mostly empty, or of few rows, which are the few
 * columns of the transposed product. Returns 0 if another way is better. */
static int ow_few_product(int type, const ow_product *q)
{
    const int64_t item = ow_item(type), few = ow_kernels->few_columns[type];
    char *copy = NULL;
    /* rows of the transposed matrices are longer, or need no copies */
    if (q->n <= few && q->xr == 1 && (q->m >= 4 * few || q->yr == 1) && q->k >= 2 * q->n + 4) {
        char *turned = ow_alloc(q->m * q->n * item);
        if (turned == NULL)
            return 0;
        ow_product t = ow_turned(q);
        t.z = turned;
        t.zr = q->m;
        t.b = t.zc = 0;
        ow_own_product(type, &t);
        if (item == 8) {
            OW_ADD_TURNED(double)
        } else {
            OW_ADD_TURNED(float)
        }
        ow_free(turned);
        return 1;
    }
    ow_product dots = *q;
    dots.zc = 1;
    if (q->m <= few && q->n > q->m && q->yr == 1)
        dots = ow_turned(q);
    if (dots.n > few || dots.xc != 1 || dots.k < 8 * few || (dots.yr != 1 && dots.m < 2 * few))
        return 0;
    if (dots.yr != 1) {
        if ((copy = ow_alloc(dots.k * dots.n * item)) == NULL)
            return 0;
        ow_slot from = {.data = (char *)dots.y,
                        .itemsize = item,
                        .ndim = 2,
                        .shape = {dots.n, dots.k},
                        .strides = {dots.yc * item, dots.yr * item}};
        ow_slot to = from;
        to.data = copy;
        ow_c_strides(&to);
        ow_copy(&to, &from);
        dots.y = copy;
        dots.yr = 1;
        dots.yc = dots.k;
    }
    const double work = (double)dots.m * (double)dots.n * (double)dots.k;
    ow_gemm_job job = {ow_kernels->few_dots[type], &dots,
                       ow_chunks(work * (double)item * (1 / 160.0)), 1, 16};
    ow_parallel(ow_gemm_chunk, &job, job.chunks);
    ow_free(copy);
    return 1;
}

/* By the kernels of a type. */
static void ow_own_product(int type, const ow_product *given)
{
    if (type < 2 && ow_few_product(type, given)) /* of floats */
        return;
    const double work = (double)given->m * (double)given->n * (double)given->k;
    const double ns = work * (double)ow_item(type) * (1 / 160.0);
    if (work < OW_PACKED && ns <= OW_WORTH) {
        if (!ow_should_stop())
            ow_kernels->gemm[type](given, 0, given->m, 0, given->n);
        return;
    }
    ow_product q = *given;
    if (work >= OW_PACKED && q.m > OW_NARROW && q.n >= 2 * ow_kernels->wide[type] &&
        q.k > OW_NARROW) {
        ow_large_gemm(type, &q);
        return;
    }
    ow_gemm_job job = {ow_kernels->gemm[type], &q, ow_chunks(ns), 1, 0};
    /* chunks of columns copy each its own part of y, those of rows all of y */
    job.by_rows = q.m >= 4 * q.n || (q.m >= q.n && q.n < job.chunks * ow_kernels->wide[type]);
    if (job.chunks <= 1) {
        if (!ow_should_stop())
            job.fn(&q, 0, q.m, 0, q.n);
        return;
    }
    job.step = job.by_rows ? 12 : ow_kernels->wide[type];
    char *copy = NULL;
    if (job.by_rows && q.n <= ow_kernels->pack_columns[type]) {
        /* once for all chunks; without memory each does it for itself */
        copy = ow_alloc(q.k * ow_kernels->pack_columns[type] * ow_item(type));
        if (copy)
            ow_kernels->pack[type](&q, copy);
        q.packed = copy;
    }
    ow_parallel(ow_gemm_chunk, &job, job.chunks);
    ow_free(copy);
}

/* z = b z + a x y, where columns of z lie side by side. */
static void ow_own_gemm(int f64, const ow_mat *z, const ow_mat *x, const ow_mat *y, double a,
                        double b)
{
    const ow_product q = {z->rows,
                          z->cols,
                          x->cols,
                          a,
                          b,
                          x->data,
                          y->data,
                          z->data,
                          x->by_rows ? x->ld : 1,
                          x->by_rows ? 1 : x->ld,
                          y->by_rows ? y->ld : 1,
                          y->by_rows ? 1 : y->ld,
                          z->ld,
                          NULL};
    ow_own_product(f64, &q);
}

/* --- calls of BLAS -------------------------------------------------------------------------------
 * A call cannot be left, so products of which one would take long are computed in blocks, and
 * signals looked for between them. */

/* The most multiplications of one call: on one core some 30 ms with a vector, which wait for
 * memory, and some 80 with a matrix. Not more with more threads: results do not depend on their
 * number. */
#define OW_GEMV_CALL (1 << 25)
#define OW_GEMM_CALL (1LL << 31)
/* Blocks of a result are not cut below so many rows or columns, but the sums are. */
#define OW_SHORTEST_BLOCK 512

/* Lengths of blocks of a product of m by n sums of k terms, with at most so many multiplications.
 * Sums are cut first: BLAS itself adds up terms in blocks, and every block of a result is read in
 * anew. */
static void ow_blocks(int64_t *m, int64_t *n, int64_t *k, int64_t most)
{
    while (ow_mul_size(ow_mul_size(*m, *n), *k) > most) {
        int64_t *longest = *m > *n ? m : n;
        if (*k >= 2 * OW_SHORTEST_BLOCK || *longest < 2 * OW_SHORTEST_BLOCK)
            longest = k;
        if (*longest < 2)
            return;
        /* tiles of BLAS end where blocks do */
        *longest =
            *longest > OW_SHORTEST_BLOCK ? (*longest / 2 + 63) / 64 * 64 : (*longest + 1) / 2;
    }
}

/* The part of a matrix from (i, j) on, with so many rows and columns. */
static ow_mat ow_mat_part(const ow_mat *m, int64_t item, int64_t i, int64_t j, int64_t rows,
                          int64_t cols)
{
    ow_mat part = *m;
    part.data += item * (m->by_rows ? i * m->ld + j : j * m->ld + i);
    part.rows = (int)(m->rows - i < rows ? m->rows - i : rows);
    part.cols = (int)(m->cols - j < cols ? m->cols - j : cols);
    return part;
}

/* A product with a vector, in chunks of so many rows. */
typedef struct ow_matvec_job {
    const ow_matvec *q;
    ow_matvec_fn fn;
    int64_t item, rows;
} ow_matvec_job;

static void ow_matvec_chunk(void *arg, int64_t c)
{
    const ow_matvec_job *j = arg;
    ow_matvec part = *j->q;
    const int64_t i = c * j->rows;
    part.m = part.m - i < j->rows ? part.m - i : j->rows;
    part.A += i * part.ar * j->item;
    part.z += i * part.zs * j->item;
    j->fn(&part);
}

/* The kernel for a product with a vector whose columns are not both contiguous and long. */
static ow_matvec_fn ow_gemv_kernel(int f64, const ow_matvec *q)
{
    return q->m == 1 && q->ac == 1 && q->xs == 1 ? ow_kernels->dot[f64] : ow_kernels->gemv[f64];
}

/* By the team. Sums do not depend on how rows are shared. */
static void ow_own_gemv(int f64, const ow_matvec *q)
{
    const int64_t item = f64 ? 8 : 4;
    const int by_rows = q->ac == 1;
    ow_matvec copied = *q;
    char *x = NULL;
    if (by_rows && q->xs != 1 && (x = ow_alloc(q->k * item)) != NULL) {
        ow_slot from = {.data = (char *)q->x,
                        .itemsize = item,
                        .ndim = 1,
                        .shape = {q->k},
                        .strides = {q->xs * item}};
        ow_slot to = {.data = x, .itemsize = item, .ndim = 1, .shape = {q->k}, .strides = {item}};
        ow_copy(&to, &from);
        copied.x = x;
        copied.xs = 1;
    }
    const double bytes = (double)q->m * (double)q->k * (double)item;
    const int64_t chunks = ow_chunks(bytes * OW_BYTE_NS);
    int64_t rows = (q->m + chunks - 1) / chunks;
    if (!by_rows) { /* parts of columns lie apart, so that each should be long */
        const int64_t share = (q->m + ow_threads() - 1) / ow_threads(),
                      most = OW_COLUMN_PART / item;
        const int64_t least = share < most ? share : most;
        rows = rows < least && chunks > 1 ? least : rows;
    }
    ow_matvec_job job = {&copied,
                         by_rows ? ow_gemv_kernel(f64, &copied) : ow_kernels->column_gemv[f64],
                         item, ow_round_up(rows, 64)};
    ow_parallel(ow_matvec_chunk, &job, (q->m + job.rows - 1) / job.rows);
    ow_free(x);
}

/* z = b z + a m v, where elements of v and z lie so many elements apart; m has elements */
static void ow_gemv(int f64, double a, const ow_mat *m, char *v, int incv, double b, char *z,
                    int incz)
{
    const int64_t item = f64 ? 8 : 4;
    int64_t rows = m->rows, cols = m->cols, one = 1;
    if (ow_is_own(rows, 1, cols)) {
        const ow_matvec q = {
            rows, cols, a, b, m->data, v, z, m->by_rows ? m->ld : 1, m->by_rows ? 1 : m->ld,
            incv, incz};
        if (rows * cols <= OW_SMALL_VECTOR)
            ow_gemv_kernel(f64, &q)(&q);
        else
            ow_own_gemv(f64, &q);
        return;
    }
    ow_blocks(&rows, &one, &cols, OW_GEMV_CALL);
    for (int64_t i = 0; i < m->rows; i += rows)
        for (int64_t j = 0; j < m->cols; j += cols) {
            ow_mat part = ow_mat_part(m, item, i, j, rows, cols);
            char *from = v + j * incv * item, *to = z + i * incz * item;
            double db = j ? 1.0 : b;
            float fa = (float)a, fb = (float)db;
            /* a matrix stored by rows is, to BLAS, its transpose */
            char t = part.by_rows ? 'T' : 'N';
            int m1 = part.by_rows ? part.cols : part.rows,
                m2 = part.by_rows ? part.rows : part.cols;
            if (ow_should_stop())
                return;
            if (f64)
                ow_blas.dgemv(&t, &m1, &m2, &a, (double *)part.data, &part.ld, (double *)from,
                              &incv, &db, (double *)to, &incz);
            else
                ow_blas.sgemv(&t, &m1, &m2, &fa, (float *)part.data, &part.ld, (float *)from, &incv,
                              &fb, (float *)to, &incz);
        }
}

static ow_mat ow_transposed(const ow_mat *m)
{
    return (ow_mat){m->data, m->cols, m->rows, m->ld, !m->by_rows};
}

/* z = b z + a x y, where rows of z are contiguous */
static void ow_gemm_call(int f64, const ow_mat *z, const ow_mat *x, const ow_mat *y, double a,
                         double b)
{
    char ty = y->by_rows ? 'N' : 'T', tx = x->by_rows ? 'N' : 'T';
    int m = z->cols, n = z->rows, k = x->cols, ldx = x->ld, ldy = y->ld, ldz = z->ld;
    if (f64)
        ow_blas.dgemm(&ty, &tx, &m, &n, &k, &a, (double *)y->data, &ldy, (double *)x->data, &ldx,
                      &b, (double *)z->data, &ldz);
    else {
        float fa = (float)a, fb = (float)b;
        ow_blas.sgemm(&ty, &tx, &m, &n, &k, &fa, (float *)y->data, &ldy, (float *)x->data, &ldx,
                      &fb, (float *)z->data, &ldz);
    }
}

/* z = b z + a x y; z has contiguous rows or columns. */
static void ow_gemm_mats(int f64, ow_mat z, ow_mat x, ow_mat y, double a, double b)
{
    if (z.rows == 0 || z.cols == 0)
        return;
    if (!z.by_rows) { /* z' = y' x' has contiguous rows */
        ow_mat xt = ow_transposed(&y);
        y = ow_transposed(&x);
        x = xt;
        z = ow_transposed(&z);
    }
    /* products of matrices are slow if one is a vector; BLAS leaves empty sums alone */
    const int own = ow_is_own(z.rows, z.cols, x.cols);
    if (z.cols == 1 && x.cols > 0) {
        ow_gemv(f64, a, &x, y.data, y.by_rows ? y.ld : 1, b, z.data, z.by_rows ? z.ld : 1);
        return;
    }
    if (z.rows == 1 && x.cols > 0) {
        ow_mat yt = ow_transposed(&y);
        ow_gemv(f64, a, &yt, x.data, x.by_rows ? 1 : x.ld, b, z.data, z.by_rows ? 1 : z.ld);
        return;
    }
    const int64_t item = f64 ? 8 : 4;
    int64_t m = z.rows, n = z.cols, k = x.cols;
    if (!own) /* own kernels look for signals themselves */
        ow_blocks(&m, &n, &k, OW_GEMM_CALL);
    for (int64_t i = 0; i < z.rows; i += m)
        for (int64_t j = 0; j < z.cols; j += n)
            for (int64_t p = 0; p < x.cols || p == 0; p += k ? k : 1) {
                ow_mat pz = ow_mat_part(&z, item, i, j, m, n),
                       px = ow_mat_part(&x, item, i, p, m, k),
                       py = ow_mat_part(&y, item, p, j, k, n);
                if (own)
                    ow_own_gemm(f64, &pz, &px, &py, a, p ? 1.0 : b);
                else if (!ow_should_stop())
                    ow_gemm_call(f64, &pz, &px, &py, a, p ? 1.0 : b);
            }
}

/* Dimensions that are too long for BLAS are multiplied in pieces of so many. */
#define OW_PIECE (1 << 20)

/* How long a block of a dimension is at most: all of it, if BLAS can take that length. */
static inline int64_t ow_piece(int64_t n) { return ow_fits(n) ? n : OW_PIECE; }

/* Let `part` be the part of a matrix from (i, j) on, with at most so many rows and columns. */
static void ow_part(ow_slot *part, const ow_slot *c, int64_t i, int64_t j, int64_t rows,
                    int64_t cols)
{
    *part = *c;
    part->data = ow_at(ow_at(c->data, i, c->strides[0]), j, c->strides[1]);
    part->shape[0] = c->shape[0] - i < rows ? c->shape[0] - i : rows;
    part->shape[1] = c->shape[1] - j < cols ? c->shape[1] - j : cols;
}

/* Whether a product is one piece. */
static inline int ow_is_piece(const ow_slot *z, const ow_slot *x)
{
    return ow_fits(z->shape[0]) && ow_fits(z->shape[1]) && ow_fits(x->shape[1]);
}

/* Keep scratch memory for the copies that `ow_gemm` makes of these operands. */
static int ow_gemm_reserve(ow_step *s, const ow_slot *z, const ow_slot *x, const ow_slot *y)
{
    const int64_t m = ow_piece(z->shape[0]), n = ow_piece(z->shape[1]), k = ow_piece(x->shape[1]);
    const int own = ow_is_own(z->shape[0], z->shape[1], x->shape[1]);
    ow_slot pz, px, py;
    if (!ow_is_piece(z, x)) {
        ow_part(&pz, z, 0, 0, m, n);
        ow_part(&px, x, 0, 0, m, k);
        ow_part(&py, y, 0, 0, k, n);
        z = &pz, x = &px, y = &py;
    }
    const int64_t bytes =
        ow_add_size(ow_add_size(ow_mat_bytes(z), ow_mat_bytes(x)), ow_mat_bytes(y));
    if (bytes && ow_scratch(s, bytes) == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of matrices");
    return ow_need_blas(s, !own);
}

static void ow_gemm_piece(ow_step *s, ow_slot *z, ow_slot *x, ow_slot *y, double a, double b)
{
    ow_mat mz, mx, my;
    char *memory = s->scratch;
    ow_get_mat(x, &mx, &memory);
    ow_get_mat(y, &my, &memory);
    char *copied = ow_get_mat(z, &mz, &memory);
    ow_gemm_mats(z->itemsize == 8, mz, mx, my, a, b);
    if (copied) {
        ow_slot result = *z;
        ow_c_strides(&result);
        result.data = copied;
        ow_copy(z, &result);
    }
}

/* z = b z + a x y, after ow_gemm_reserve. */
static void ow_gemm(ow_step *s, ow_slot *z, ow_slot *x, ow_slot *y, double a, double b)
{
    if (ow_is_piece(z, x)) {
        ow_gemm_piece(s, z, x, y, a, b);
        return;
    }
    const int64_t m = ow_piece(z->shape[0]), n = ow_piece(z->shape[1]), k = ow_piece(x->shape[1]);
    for (int64_t i = 0; i < z->shape[0]; i += m)
        for (int64_t j = 0; j < z->shape[1]; j += n)
            for (int64_t p = 0; p < x->shape[1] || p == 0; p += k ? k : 1) {
                ow_slot pz, px, py;
                ow_part(&pz, z, i, j, m, n);
                ow_part(&px, x, i, p, m, k);
                ow_part(&py, y, p, j, k, n);
                ow_gemm_piece(s, &pz, &px, &py, a, p ? 1.0 : b);
            }
}

static int ow_product_shape(ow_step *s, const ow_slot *x, const ow_slot *y)
{
    if (x->shape[1] != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: x has %lld cols (and %lld rows) but y has %lld rows (and "
                       "%lld cols)",
                       (long long)x->shape[1], (long long)x->shape[0], (long long)y->shape[0],
                       (long long)y->shape[1]);
    return OW_OK;
}

static inline double ow_real(const ow_slot *c)
{
    return c->itemsize == 8 ? *(double *)c->data : *(float *)c->data;
}

/* in: x, y[, scalar] */
static int ow_dot22_prep(ow_step *s)
{
    ow_slot *x = s->in[0], *y = s->in[1], *z = s->out[0];
    int rc = ow_product_shape(s, x, y);
    if (rc)
        return rc;
    z->shape[0] = x->shape[0];
    z->shape[1] = y->shape[1];
    rc = ow_ensure(s, z);
    return rc ? rc : ow_gemm_reserve(s, z, x, y);
}

static int ow_dot22_run(ow_step *s)
{
    double a = s->nin > 2 ? ow_real(s->in[2]) : 1.0;
    ow_gemm(s, s->out[0], s->in[0], s->in[1], a, 0.0);
    return OW_OK;
}

/* Let the output be input 0, overwritten or copied. */
static int ow_accumulator(ow_step *s, int64_t overwrite)
{
    ow_slot *from = s->in[0], *z = s->out[0];
    if (overwrite) {
        ow_alias(z, from);
        return OW_OK;
    }
    ow_set_shape(z, from->ndim, from->shape);
    return ow_ensure_like(s, z, s->in, 1);
}

static void ow_accumulator_copy(ow_step *s, int64_t overwrite)
{
    if (!overwrite)
        ow_copy(s->out[0], s->in[0]);
}

/* in: z, a, x, y, b: z <- b z + a x y */
static int ow_gemm_prep(ow_step *s)
{
    ow_slot *z = s->in[0], *x = s->in[2], *y = s->in[3];
    int rc = ow_product_shape(s, x, y);
    if (rc)
        return rc;
    if (z->shape[0] != x->shape[0] || z->shape[1] != y->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: z has shape (%lld, %lld) but the product has (%lld, %lld)",
                       (long long)z->shape[0], (long long)z->shape[1], (long long)x->shape[0],
                       (long long)y->shape[1]);
    rc = ow_accumulator(s, OW_PARAMS(s, update)->overwrite);
    return rc ? rc : ow_gemm_reserve(s, s->out[0], x, y);
}

static int ow_gemm_run(ow_step *s)
{
    ow_accumulator_copy(s, OW_PARAMS(s, update)->overwrite);
    ow_gemm(s, s->out[0], s->in[2], s->in[3], ow_real(s->in[1]), ow_real(s->in[4]));
    return OW_OK;
}

/* Of products of so many multiplications or more, a vector whose elements are not side by side is
 * copied, and a matrix of which neither rows nor columns are, if it takes no more bytes. */
#define OW_COPIED_VECTOR 64
#define OW_COPIED_BYTES (64 << 20)

/* Bytes of the copies of A and x. */
static int64_t ow_gemv_bytes(const ow_slot *A, const ow_slot *x, int64_t *of_A)
{
    const int64_t rows = A->shape[0], terms = A->shape[1];
    *of_A = 0;
    if (ow_mul_size(rows, terms) < OW_COPIED_VECTOR || !ow_fits(rows) || !ow_fits(terms))
        return 0;
    *of_A = ow_mat_bytes(A);
    if (*of_A > OW_COPIED_BYTES)
        *of_A = 0;
    return ow_add_size(*of_A, x->strides[0] != x->itemsize ? terms * x->itemsize : 0);
}

/* in: y, alpha, A, x, beta: y <- beta y + alpha A x */
static int ow_gemv_prep(ow_step *s)
{
    ow_slot *y = s->in[0], *A = s->in[2], *x = s->in[3];
    if (A->shape[1] != x->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "Shape mismatch: A.shape[1] != x.shape[0] (%lld != %lld)",
                       (long long)A->shape[1], (long long)x->shape[0]);
    if (A->shape[0] != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR, "Shape mismatch: A.shape[0] != y.shape[0] (%lld != %lld)",
                       (long long)A->shape[0], (long long)y->shape[0]);
    int64_t of_A;
    const int64_t bytes = ow_gemv_bytes(A, x, &of_A);
    if (bytes && ow_scratch(s, bytes) == NULL)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate copies of a matrix and a vector");
    int rc = ow_accumulator(s, OW_PARAMS(s, update)->overwrite);
    return rc ? rc : ow_need_blas(s, !ow_is_own(A->shape[0], 1, A->shape[1]));
}

#define OW_STRIDED_GEMV(T)                                                                         \
    static void ow_strided_gemv_##T(ow_slot *y, const ow_slot *A, const ow_slot *x, T a, T b)      \
    {                                                                                              \
        const int64_t n = A->shape[1], sa = A->strides[1], sx = x->strides[0];                     \
        double left = OW_LONGEST_CHUNK_NS;                                                         \
        for (int64_t i = 0; i < A->shape[0]; i++) {                                                \
            T sum = 0, *to = (T *)(y->data + i * y->strides[0]);                                   \
            const char *row = A->data + i * A->strides[0];                                         \
            for (int64_t j = 0; j < n;) {                                                          \
                const int64_t end = n - j < OW_BLOCK ? n : j + OW_BLOCK;                           \
                if (ow_stops(&left, OW_COPY_NS * (double)(end - j)))                               \
                    return;                                                                        \
                for (; j < end; j++)                                                               \
                    sum += *(T *)(row + j * sa) * *(T *)(x->data + j * sx);                        \
            }                                                                                      \
            *to = b == 0 ? a * sum : b * *to + a * sum;                                            \
        }                                                                                          \
    }
OW_STRIDED_GEMV(double)
OW_STRIDED_GEMV(float)

static int ow_gemv_run(ow_step *s)
{
    ow_accumulator_copy(s, OW_PARAMS(s, update)->overwrite);
    ow_slot *y = s->out[0], *A = s->in[2], *x = s->in[3];
    double a = ow_real(s->in[1]), b = ow_real(s->in[4]);
    int64_t item = A->itemsize, of_A;
    ow_mat m;
    ow_slot straight_A, straight_x;
    if (ow_gemv_bytes(A, x, &of_A) > of_A) {
        straight_x = *x;
        straight_x.data = s->scratch + of_A;
        straight_x.strides[0] = item;
        ow_copy(&straight_x, x);
        x = &straight_x;
    }
    if (of_A) {
        straight_A = *A;
        straight_A.data = s->scratch;
        ow_c_strides(&straight_A);
        ow_copy(&straight_A, A);
        A = &straight_A;
    }
    if (A->shape[0] * A->shape[1] <= OW_SMALL_VECTOR) {
        const ow_matvec q = {A->shape[0],
                             A->shape[1],
                             a,
                             b,
                             A->data,
                             x->data,
                             y->data,
                             A->strides[0] / item,
                             A->strides[1] / item,
                             x->strides[0] / item,
                             y->strides[0] / item};
        ow_kernels->gemv[item == 8](&q);
        return OW_OK;
    }
    int direct = y->strides[0] > 0 && x->strides[0] > 0 && y->strides[0] % item == 0 &&
                 x->strides[0] % item == 0 && ow_fits(y->strides[0] / item) &&
                 ow_fits(x->strides[0] / item);
    if (!direct || !ow_as_mat(A, &m)) {
        if (item == 8)
            ow_strided_gemv_double(y, A, x, a, b);
        else
            ow_strided_gemv_float(y, A, x, (float)a, (float)b);
        return OW_OK;
    }
    ow_gemv(item == 8, a, &m, x->data, (int)(x->strides[0] / item), b, y->data,
            (int)(y->strides[0] / item));
    return OW_OK;
}

/* in: A, alpha, x, y: A <- A + alpha x y' */
static int ow_ger_prep(ow_step *s)
{
    ow_slot *A = s->in[0], *x = s->in[2], *y = s->in[3];
    if (A->shape[0] != x->shape[0] || A->shape[1] != y->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: A is (%lld, %lld) but the outer product is (%lld, %lld)",
                       (long long)A->shape[0], (long long)A->shape[1], (long long)x->shape[0],
                       (long long)y->shape[0]);
    return ow_accumulator(s, OW_PARAMS(s, update)->overwrite);
}

#define OW_GER(T)                                                                                  \
    static void ow_ger_##T(ow_slot *A, T a, const ow_slot *x, const ow_slot *y)                    \
    {                                                                                              \
        const int64_t n = A->shape[1], sa = A->strides[1], sy = y->strides[0];                     \
        double left = OW_LONGEST_CHUNK_NS;                                                         \
        for (int64_t i = 0; i < A->shape[0]; i++) {                                                \
            T f = a * *(T *)(x->data + i * x->strides[0]);                                         \
            char *row = A->data + i * A->strides[0];                                               \
            for (int64_t j = 0; j < n;) {                                                          \
                const int64_t end = n - j < OW_BLOCK ? n : j + OW_BLOCK;                           \
                if (ow_stops(&left, OW_COPY_NS * (double)(end - j)))                               \
                    return;                                                                        \
                if (sa == sizeof(T) && sy == sizeof(T))                                            \
                    for (; j < end; j++)                                                           \
                        ((T *)row)[j] += f * ((T *)y->data)[j];                                    \
                else                                                                               \
                    for (; j < end; j++)                                                           \
                        *(T *)(row + j * sa) += f * *(T *)(y->data + j * sy);                      \
            }                                                                                      \
        }                                                                                          \
    }
OW_GER(double)
OW_GER(float)

static int ow_ger_run(ow_step *s)
{
    ow_accumulator_copy(s, OW_PARAMS(s, update)->overwrite);
    /* bound by memory: the loops do as well as BLAS */
    if (s->out[0]->itemsize == 8)
        ow_ger_double(s->out[0], ow_real(s->in[1]), s->in[2], s->in[3]);
    else
        ow_ger_float(s->out[0], (float)ow_real(s->in[1]), s->in[2], s->in[3]);
    return OW_OK;
}

/* in: x, y of one or two dimensions. Vectors take part as matrices of one row or column. */
static void ow_dot_operands(const ow_step *s, ow_slot *z, ow_slot *x, ow_slot *y)
{
    *x = *s->in[0];
    *y = *s->in[1];
    *z = *s->out[0];
    if (x->ndim == 1) {
        x->shape[1] = x->shape[0];
        x->strides[1] = x->strides[0];
        x->shape[0] = 1;
    }
    if (y->ndim == 1) {
        y->shape[1] = 1;
        y->strides[1] = y->itemsize;
    }
    x->ndim = y->ndim = z->ndim = 2;
    z->shape[0] = x->shape[0];
    z->shape[1] = y->shape[1];
}

static int ow_dot_prep(ow_step *s)
{
    ow_slot x, y, z, *out = s->out[0];
    ow_dot_operands(s, &z, &x, &y);
    int rc = ow_product_shape(s, &x, &y);
    if (rc)
        return rc;
    int k = 0;
    if (s->in[0]->ndim == 2)
        out->shape[k++] = x.shape[0];
    if (s->in[1]->ndim == 2)
        out->shape[k++] = y.shape[1];
    rc = ow_ensure(s, out);
    ow_c_strides(&z);
    return rc ? rc : ow_gemm_reserve(s, &z, &x, &y);
}

static int ow_dot_run(ow_step *s)
{
    ow_slot x, y, z;
    ow_dot_operands(s, &z, &x, &y);
    ow_c_strides(&z);
    ow_gemm(s, &z, &x, &y, 1.0, 0.0);
    return OW_OK;
}

static void ow_page(ow_slot *page, const ow_slot *c, int64_t i)
{
    *page = *c;
    page->ndim = 2;
    page->data = c->data + i * c->strides[0];
    for (int d = 0; d < 2; d++) {
        page->shape[d] = c->shape[d + 1];
        page->strides[d] = c->strides[d + 1];
    }
}

/* in: x, y of three dimensions: z[i] = x[i] y[i] */
static int ow_batched_shape(ow_step *s)
{
    ow_slot *x = s->in[0], *y = s->in[1], *z = s->out[0];
    if (x->shape[0] != y->shape[0])
        return OW_FAIL(
            s, OW_VALUE_ERROR,
            "Shape mismatch: batch sizes unequal. x.shape[0] is %lld, y.shape[0] is %lld",
            (long long)x->shape[0], (long long)y->shape[0]);
    if (x->shape[2] != y->shape[1])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "Shape mismatch: x has %lld cols (and %lld rows) but y has %lld rows (and "
                       "%lld cols)",
                       (long long)x->shape[2], (long long)x->shape[1], (long long)y->shape[1],
                       (long long)y->shape[2]);
    z->shape[0] = x->shape[0];
    z->shape[1] = x->shape[1];
    z->shape[2] = y->shape[2];
    return OW_OK;
}

static int ow_batched_dot_prep(ow_step *s)
{
    ow_slot *x = s->in[0], *y = s->in[1], *z = s->out[0];
    int rc = ow_batched_shape(s);
    rc = rc ? rc : ow_ensure(s, z);
    if (rc || z->shape[0] == 0)
        return rc;
    ow_slot px, py, pz;
    ow_page(&px, x, 0);
    ow_page(&py, y, 0);
    ow_page(&pz, z, 0);
    return ow_gemm_reserve(s, &pz, &px, &py);
}

static void ow_page_product(ow_step *s, int64_t i)
{
    ow_slot x, y, z;
    ow_page(&x, s->in[0], i);
    ow_page(&y, s->in[1], i);
    ow_page(&z, s->out[0], i);
    ow_gemm(s, &z, &x, &y, 1.0, 0.0);
}

/* The pages of a batched product, of which a chunk has so many: z, x and y of the first. */
typedef struct ow_pages_job {
    ow_step *s;
    int64_t some;
    ow_mat first[3];
} ow_pages_job;

static void ow_pages_chunk(void *arg, int64_t c)
{
    const ow_pages_job *j = arg;
    const ow_slot *z = j->s->out[0], *x = j->s->in[0], *y = j->s->in[1];
    for (int64_t i = c * j->some; i < z->shape[0] && i < (c + 1) * j->some; i++) {
        ow_mat page[3];
        memcpy(page, j->first, sizeof(page));
        page[0].data += i * z->strides[0];
        page[1].data += i * x->strides[0];
        page[2].data += i * y->strides[0];
        ow_gemm_mats(z->itemsize == 8, page[0], page[1], page[2], 1.0, 0.0);
    }
}

/* Small pages, of which a chunk has so many; the rows of z are contiguous. */
typedef struct ow_small_job {
    int type;
    int64_t pages, some, zp, xp, yp;
    ow_product q;
} ow_small_job;

static void ow_small_chunk(void *arg, int64_t c)
{
    const ow_small_job *j = arg;
    const int64_t item = ow_item(j->type), first = c * j->some, end = first + j->some;
    ow_product q = j->q;
    q.z += first * j->zp * item;
    q.x += first * j->xp * item;
    q.y += first * j->yp * item;
    if (first < j->pages)
        ow_kernels->small_pages[j->type](&q, (end < j->pages ? end : j->pages) - first, j->zp,
                                         j->xp, j->yp);
}

/* Products of pages of a type of gemm kernels; returns 0 if they are not small. */
static int ow_small_pages(int type, const ow_slot *z, const ow_slot *x, const ow_slot *y)
{
    const int64_t item = ow_item(type), m = z->shape[1], n = z->shape[2], k = x->shape[2];
    const double work = (double)m * (double)n * (double)k;
    /* long sums of floats over rows and columns are sums of vectors */
    int by_dots = 0;
    if (type < 2) {
        const int64_t few = ow_kernels->few_columns[type];
        const int by_columns = y->strides[1] == item;
        by_dots = k > 8 && (n == 1 || (by_columns && (m == 1 || (n <= few && k >= 8 * few))));
    }
    if (work > OW_SMALL_PAGE || k > OW_SMALL_TERMS || by_dots || (n > 1 && z->strides[2] != item))
        return 0;
    for (int d = 0; d < 3; d++)
        if (z->strides[d] % item || x->strides[d] % item || y->strides[d] % item)
            return 0;
    ow_small_job job = {type,
                        z->shape[0],
                        1,
                        z->strides[0] / item,
                        x->strides[0] / item,
                        y->strides[0] / item,
                        {.m = m,
                         .n = n,
                         .k = k,
                         .a = 1,
                         .x = x->data,
                         .y = y->data,
                         .z = z->data,
                         .xr = x->strides[1] / item,
                         .xc = x->strides[2] / item,
                         .yr = y->strides[1] / item,
                         .yc = y->strides[2] / item,
                         .zr = z->strides[1] / item}};
    const int64_t chunks = ow_chunks((double)job.pages * (5 + work / 8));
    job.some = (job.pages + chunks - 1) / chunks;
    ow_parallel(ow_small_chunk, &job, chunks);
    return 1;
}

/* Describe the first pages; returns 0 if they are not matrices for BLAS. */
static int ow_first_pages(ow_step *s, ow_mat *first)
{
    ow_slot *const slots[3] = {s->out[0], s->in[0], s->in[1]};
    for (int k = 0; k < 3; k++) {
        ow_slot page;
        ow_page(&page, slots[k], 0);
        if (!ow_as_mat(&page, &first[k]))
            return 0;
    }
    return 1;
}

static int ow_batched_dot_run(ow_step *s)
{
    const ow_slot *first = s->in[0], *second = s->in[1];
    const int64_t pages = s->out[0]->shape[0];
    const double work =
        (double)first->shape[1] * (double)first->shape[2] * (double)second->shape[2];
    /* the team shares small pages, and the work on each large one; scratch memory is one page's */
    ow_pages_job job = {.s = s};
    if (pages > 0 && ow_small_pages(first->itemsize == 8, s->out[0], first, second))
        return OW_OK;
    if (pages > 1 && work < OW_LARGE_PAGE && ow_first_pages(s, job.first)) {
        const int64_t chunks = ow_chunks((double)pages * work / (first->itemsize == 8 ? 10 : 20));
        job.some = (pages + chunks - 1) / chunks;
        ow_parallel(ow_pages_chunk, &job, (pages + job.some - 1) / job.some);
        return OW_OK;
    }
    double left = OW_LONGEST_CHUNK_NS;
    for (int64_t i = 0; i < pages && !ow_stops(&left, work); i++)
        ow_page_product(s, i);
    return OW_OK;
}

#endif
