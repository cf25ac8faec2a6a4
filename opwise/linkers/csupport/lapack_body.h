/* Steps through LAPACK for the numbers of type OW_T; included by lapack.h for each of them. */

/* --- own factorizations --------------------------------------------------------------------------
 * Halves of the columns are factorized one after the other, and the second half is brought up to
 * date by a product between them: nearly all work is in products, which the team shares. */

/* A part of a matrix for ow_gemm_mats. */
static inline ow_mat OW_FN(part)(OW_T *at, int64_t rows, int64_t cols, int64_t ld, int by_rows)
{
    return (ow_mat){(char *)at, (int)rows, (int)cols, (int)ld, by_rows};
}

/* Columns b = L^-1 b for the lower triangle with ones on the diagonal in the n columns of l; all by
 * columns. */
static void OW_FN(lower_columns)(int64_t n, int64_t many, const OW_T *l, int64_t ld, OW_T *b,
                                 int64_t ldb)
{
    if (n <= OW_LEAF) {
        ow_kernels->lower_leaf[OW_IS_DOUBLE](n, many, l, 1, ld, 1, b, ldb);
        return;
    }
    const int64_t half = ow_round_up(n / 2, OW_LEAF), rest = n - half;
    OW_FN(lower_columns)(half, many, l, ld, b, ldb);
    ow_gemm_mats(OW_IS_DOUBLE, OW_FN(part)(b + half, rest, many, ldb, 0),
                 OW_FN(part)((OW_T *)l + half, rest, half, ld, 0),
                 OW_FN(part)(b, half, many, ldb, 0), -1, 1);
    OW_FN(lower_columns)(rest, many, l + half * (ld + 1), ld, b + half, ldb);
}

/* Exchange rows of n columns as pivots say, which count from 1. */
static void OW_FN(exchange)(int64_t count, const int *pivots, int64_t n, OW_T *a, int64_t ld)
{
    for (; n > 0; n--, a += ld)
        for (int64_t i = 0; i < count; i++) {
            const OW_T value = a[i];
            a[i] = a[pivots[i] - 1];
            a[pivots[i] - 1] = value;
        }
}

/* What one half of the columns does to parts of the other; parts are as wide whatever the team. */
typedef struct OW_FN(update) {
    int64_t half, many, ld, count;
    const OW_T *left; /* triangle, or NULL */
    OW_T *at;
    const int *pivots;
} OW_FN(update);

static void OW_FN(update_chunk)(void *arg, int64_t c)
{
    const OW_FN(update) *j = arg;
    const int64_t first = c * OW_UPDATED,
                  some = j->many - first < OW_UPDATED ? j->many - first : OW_UPDATED;
    OW_T *at = j->at + first * j->ld;
    OW_FN(exchange)(j->count, j->pivots, some, at, j->ld);
    if (j->left)
        OW_FN(lower_columns)(j->half, some, j->left, j->ld, at, j->ld);
}

static void OW_FN(update_all)(const OW_FN(update) * j)
{
    const int64_t chunks = (j->many + OW_UPDATED - 1) / OW_UPDATED;
    const int pays =
        (double)j->many * (double)j->count * (j->left ? 1 + (double)j->half / 16 : 1) > OW_WORTH;
    (pays ? ow_parallel : ow_in_order)(OW_FN(update_chunk), (void *)j, chunks);
}

/* As getrf for m >= n; returns info. */
static int OW_FN(lu_columns)(int64_t m, int64_t n, OW_T *a, int64_t ld, int *pivots)
{
    if (n <= OW_LEAF)
        return ow_kernels->lu_leaf[OW_IS_DOUBLE](m, n, a, ld, pivots);
    const int64_t half = ow_round_up(n / 2, OW_LEAF), rest = n - half;
    OW_T *right = a + half * ld;
    int first = OW_FN(lu_columns)(m, half, a, ld, pivots), second;
    OW_FN(update_all)(&(OW_FN(update)){half, rest, ld, half, a, right, pivots});
    ow_gemm_mats(OW_IS_DOUBLE, OW_FN(part)(right + half, m - half, rest, ld, 0),
                 OW_FN(part)(a + half, m - half, half, ld, 0),
                 OW_FN(part)(right, half, rest, ld, 0), -1, 1);
    second = OW_FN(lu_columns)(m - half, rest, right + half, ld, pivots + half);
    OW_FN(update_all)(&(OW_FN(update)){half, half, ld, rest, NULL, a + half, pivots + half});
    for (int64_t i = half; i < n; i++)
        pivots[i] += (int)half;
    return first ? first : second ? second + (int)half : 0;
}

/* LU of a square matrix by columns, as LAPACK leaves it; returns info. */
static int OW_FN(lu)(int n, OW_T *a, int ld, int *pivots)
{
    int info = 0;
    if (ow_kernels->products)
        return OW_FN(lu_columns)(n, n, a, ld, pivots);
    OW_LAPACK.getrf(&n, &n, a, &ld, pivots, &info);
    return info;
}

/* Rows b = b L^-T for the lower triangle of l; all by rows. */
static void OW_FN(lower_rows)(int64_t n, int64_t many, const OW_T *l, int64_t ld, OW_T *b,
                              int64_t ldb)
{
    if (n <= OW_LEAF) {
        ow_kernels->lower_leaf[OW_IS_DOUBLE](n, many, l, ld, 1, 0, b, ldb);
        return;
    }
    const int64_t half = ow_round_up(n / 2, OW_LEAF), rest = n - half;
    OW_FN(lower_rows)(half, many, l, ld, b, ldb);
    ow_gemm_mats(OW_IS_DOUBLE, OW_FN(part)(b + half, many, rest, ldb, 1),
                 OW_FN(part)(b, many, half, ldb, 1),
                 OW_FN(part)((OW_T *)l + half * ld, half, rest, ld, 0), -1, 1);
    OW_FN(lower_rows)(rest, many, l + half * (ld + 1), ld, b + half, ldb);
}

/* The lower triangle of c -= x x' for x of k columns; all by rows. What is above it in small blocks
 * changes. */
static void OW_FN(minus_square)(int64_t n, int64_t k, OW_T *c, const OW_T *x, int64_t ld)
{
    enum { BLOCK = 96 };
    const int64_t half = n <= BLOCK ? n : ow_round_up(n / 2, OW_LEAF), rest = n - half;
    OW_T *from = (OW_T *)x;
    if (!rest) {
        ow_gemm_mats(OW_IS_DOUBLE, OW_FN(part)(c, n, n, ld, 1), OW_FN(part)(from, n, k, ld, 1),
                     OW_FN(part)(from, k, n, ld, 0), -1, 1);
        return;
    }
    OW_FN(minus_square)(half, k, c, x, ld);
    ow_gemm_mats(OW_IS_DOUBLE, OW_FN(part)(c + half * ld, rest, half, ld, 1),
                 OW_FN(part)(from + half * ld, rest, k, ld, 1), OW_FN(part)(from, k, half, ld, 0),
                 -1, 1);
    OW_FN(minus_square)(rest, k, c + half * (ld + 1), x + half * ld, ld);
}

/* The lower triangle, by rows, whose square is that of a; returns the first leading minor that is
 * not positive, counted from 1, or 0. What is above the diagonal changes. */
static int OW_FN(cholesky_rows)(int64_t n, OW_T *a, int64_t ld)
{
    if (n <= OW_LEAF) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                OW_T sum = a[i * ld + j];
                for (int64_t p = 0; p < j; p++)
                    sum -= a[i * ld + p] * a[j * ld + p];
                if (i == j && !(sum > 0))
                    return (int)i + 1;
                a[i * ld + j] = i == j ? (OW_T)sqrt(sum) : sum / a[j * ld + j];
            }
        return 0;
    }
    const int64_t half = ow_round_up(n / 2, OW_LEAF), rest = n - half;
    OW_T *below = a + half * ld, *other = below + half;
    int info = OW_FN(cholesky_rows)(half, a, ld);
    if (info)
        return info;
    OW_FN(lower_rows)(half, rest, a, ld, below, ld);
    OW_FN(minus_square)(rest, half, other, below, ld);
    info = OW_FN(cholesky_rows)(rest, other, ld);
    return info ? info + (int)half : 0;
}

/* --- Cholesky --------------------------------------------------------------------------------- */

static int OW_FN(cholesky_prep)(ow_step *s)
{
    ow_slot *x = s->in[0], *z = s->out[0];
    ow_mat m;
    int rc = ow_square(s, x);
    if (rc)
        return rc;
    if (OW_PARAMS(s, cholesky)->overwrite && ow_as_mat(x, &m)) {
        ow_alias(z, x);
        return OW_OK;
    }
    return ow_ensure_stored_like(s, z, x);
}

static int OW_FN(cholesky_run)(ow_step *s)
{
    ow_slot *x = s->in[0], *z = s->out[0];
    ow_mat from, to;
    int rc = OW_PARAMS(s, cholesky)->check_finite ? ow_check_finite(s, x) : OW_OK;
    if (rc || !ow_as_mat(z, &to) || to.rows == 0)
        return rc;
    const int64_t n = to.rows;
    /* lines are rows, or columns; a half is the first part of each line, up to the diagonal, or the
     * rest */
    const int first = !OW_PARAMS(s, cholesky)->lower == !to.by_rows;
    const int by_lines = ow_as_mat(x, &from) && from.by_rows == to.by_rows;
    if (!by_lines)
        ow_copy(z, x);
    for (int64_t i = 0; i < n; i++) {
        OW_T *line = (OW_T *)to.data + i * to.ld;
        const int64_t begin = first ? 0 : i, end = first ? i + 1 : n;
        if (by_lines && from.data != to.data)
            memcpy(line + begin, (OW_T *)from.data + i * from.ld + begin,
                   sizeof(OW_T) * (size_t)(end - begin));
        memset(line, 0, sizeof(OW_T) * (size_t)begin);
        memset(line + end, 0, sizeof(OW_T) * (size_t)(n - end));
    }
    int info = 0;
    char uplo = first ? 'U' : 'L';
    if (first && ow_kernels->products) { /* lines are the rows of a lower triangle */
        info = OW_FN(cholesky_rows)(n, (OW_T *)to.data, to.ld);
        for (int64_t i = 0; i < n && !info; i++)
            memset((OW_T *)to.data + i * to.ld + i + 1, 0, sizeof(OW_T) * (size_t)(n - i - 1));
    } else
        OW_LAPACK.potrf(&uplo, &to.rows, (OW_T *)to.data, &to.ld, &info);
    /* an infinity may pass as a pivot: then what follows is NaN */
    for (int64_t i = 0; i < n && !info && !OW_PARAMS(s, cholesky)->check_finite; i++)
        if (!isfinite(((OW_T *)to.data)[i * (to.ld + 1)]))
            info = (int)i + 1;
    if (info == 0)
        return OW_OK;
    if (!OW_PARAMS(s, cholesky)->nan)
        return OW_FAIL(s, OW_LINALG_ERROR,
                       "%d-th leading minor of the array is not positive definite", info);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            ((OW_T *)to.data)[i * to.ld + j] = (OW_T)NAN;
    return OW_OK;
}

/* --- systems of equations --------------------------------------------------------------------- */

/* b = op(a)^-1 b for a triangle: the half `uplo`, as LAPACK sees a, with ones on the diagonal if
 * `diag` is 'U'; op transposes if `trans` is 'T' */
static void OW_FN(substitute)(const ow_mat *a, char uplo, char trans, char diag, const ow_mat *b)
{
    int n = b->rows, k = b->cols, ld = a->ld, ldb = b->ld, one = 1;
    OW_T *values = (OW_T *)a->data, *into = (OW_T *)b->data, unit = 1;
    if (n == 0 || k == 0)
        return;
    if (k == 1)
        OW_LAPACK.trsv(&uplo, &trans, &diag, &n, values, &ld, into, b->by_rows ? &ldb : &one);
    else if (b->by_rows) { /* b' = b' op(a)'^-1 */
        char side = 'R', other = trans == 'T' ? 'N' : 'T';
        OW_LAPACK.trsm(&side, &uplo, &other, &diag, &k, &n, &unit, values, &ld, into, &ldb);
    } else {
        char side = 'L';
        OW_LAPACK.trsm(&side, &uplo, &trans, &diag, &n, &k, &unit, values, &ld, into, &ldb);
    }
}

/* Swap row i of b with row pivots[i] - 1, for every i in ascending or descending order. */
static void OW_FN(swap_rows)(const ow_mat *b, const int *pivots, int descending)
{
    const int64_t n = b->rows, k = b->cols;
    const int64_t row = b->by_rows ? b->ld : 1, col = b->by_rows ? 1 : b->ld;
    /* a row that is contiguous at once, otherwise column by column */
    const int64_t outer = b->by_rows ? 1 : k, inner = b->by_rows ? k : 1;
    for (int64_t c = 0; c < outer; c++)
        for (int64_t step = 0; step < n; step++) {
            const int64_t i = descending ? n - 1 - step : step;
            OW_T *p = (OW_T *)b->data + i * row + c * col,
                 *q = (OW_T *)b->data + (pivots[i] - 1) * row + c * col;
            if (p == q)
                continue;
            for (int64_t j = 0; j < inner; j++) {
                const OW_T value = p[j];
                p[j] = q[j];
                q[j] = value;
            }
        }
}

/* in: A, b */
static int OW_FN(solve_prep)(ow_step *s)
{
    ow_slot *A = s->in[0], *b = s->in[1], *x = s->out[0], column = ow_as_column(b);
    ow_mat m;
    int rc = ow_square(s, A);
    if (rc)
        return rc;
    if (A->shape[0] != b->shape[0])
        return OW_FAIL(s, OW_VALUE_ERROR,
                       "incompatible dimensions: the matrix has shape (%lld, %lld), the right-hand "
                       "side %lld rows",
                       (long long)A->shape[0], (long long)A->shape[1], (long long)b->shape[0]);
    if (OW_PARAMS(s, solve)->overwrite && ow_as_mat(&column, &m))
        ow_alias(x, b);
    else
        rc = ow_ensure_stored_like(s, x, b);
    if (rc)
        return rc;
    const int64_t n = A->shape[0], matrix = ow_lines(ow_mul_size(n, n), sizeof(OW_T));
    if (OW_PARAMS(s, solve)->structure != OW_STRUCTURE_GENERAL)
        return ow_as_mat(A, &m) ? OW_OK : ow_reserve(s, matrix);
    return ow_reserve(s, ow_add_size(matrix, ow_lines(n, sizeof(int))));
}

/* A singular matrix, for a triangular one the place of the zero: an error, or NaN everywhere in x */
static int OW_FN(singular)(ow_step *s, const ow_mat *x, int64_t place)
{
    if (!OW_PARAMS(s, solve)->nan)
        return place < 0 ? OW_FAIL(s, OW_LINALG_ERROR, "Singular matrix")
                         : OW_FAIL(s, OW_LINALG_ERROR,
                                   "singular matrix: resolution failed at diagonal %lld",
                                   (long long)place);
    const int64_t lines = x->by_rows ? x->rows : x->cols, length = x->by_rows ? x->cols : x->rows;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; j < length; j++)
            ((OW_T *)x->data)[i * x->ld + j] = (OW_T)NAN;
    return OW_OK;
}

static int OW_FN(solve_run)(ow_step *s)
{
    ow_slot *A = s->in[0], *b = s->in[1], *x = s->out[0], column = ow_as_column(x);
    const ow_solve_params *p = s->params;
    char *memory = s->scratch;
    ow_mat a, z;
    int rc = p->check_finite ? ow_check_finite(s, A) : OW_OK;
    rc = !rc && p->check_finite ? ow_check_finite(s, b) : rc;
    if (rc)
        return rc;
    if (x->data != b->data)
        ow_copy(x, b);
    if (A->shape[0] == 0 || !ow_as_mat(&column, &z))
        return OW_OK;
    if (p->structure != OW_STRUCTURE_GENERAL) {
        if (!ow_as_mat(A, &a))
            a = ow_copied(A, memory, 0);
        for (int64_t i = 0; i < a.rows && z.cols && !p->unit_diagonal; i++)
            if (((OW_T *)a.data)[i * (a.ld + 1)] == 0)
                return OW_FN(singular)(s, &z, i);
        const int lower = p->structure == OW_STRUCTURE_LOWER_TRIANGULAR;
        const char diag = p->unit_diagonal ? 'U' : 'N';
        OW_FN(substitute)(&a, lower == a.by_rows ? 'U' : 'L', a.by_rows ? 'T' : 'N', diag, &z);
        return OW_OK;
    }
    const int64_t n = A->shape[0];
    int info = 0, *pivots = ow_take(&memory, ow_lines(n, sizeof(int)));
    a = ow_copied(A, memory, 0);
    info = OW_FN(lu)(a.rows, (OW_T *)a.data, a.ld, pivots);
    if (info > 0)
        return OW_FN(singular)(s, &z, -1);
    if (a.by_rows) { /* A' = P L U: A is U' L' P' */
        OW_FN(substitute)(&a, 'U', 'T', 'N', &z);
        OW_FN(substitute)(&a, 'L', 'T', 'U', &z);
        OW_FN(swap_rows)(&z, pivots, 1);
    } else {
        OW_FN(swap_rows)(&z, pivots, 0);
        OW_FN(substitute)(&a, 'L', 'N', 'U', &z);
        OW_FN(substitute)(&a, 'U', 'N', 'N', &z);
    }
    return OW_OK;
}

/* --- inverse and determinant ------------------------------------------------------------------ */

static int OW_FN(inverse_work)(int n)
{
    OW_T size = 0, value = 0;
    int any = -1, info = 0, ld = n > 0 ? n : 1, pivot = 1;
    OW_LAPACK.getri(&n, &value, &ld, &pivot, &size, &any, &info);
    return size > ld ? (int)size : ld;
}

static int OW_FN(inverse_prep)(ow_step *s)
{
    ow_slot *x = s->in[0];
    int rc = ow_square(s, x);
    rc = rc ? rc : ow_ensure_stored_like(s, s->out[0], x);
    if (rc)
        return rc;
    const int n = (int)x->shape[0];
    return ow_reserve(s, ow_lines(n, sizeof(int)) + ow_lines(OW_FN(inverse_work)(n), sizeof(OW_T)));
}

/* The inverse of the transpose is the transpose of the inverse: matrices by rows and columns
 * alike. */
static int OW_FN(inverse_run)(ow_step *s)
{
    ow_slot *z = s->out[0];
    int n = (int)z->shape[0], lwork = OW_FN(inverse_work)(n), info = 0;
    char *memory = s->scratch;
    if (n == 0)
        return OW_OK;
    int *pivots = ow_take(&memory, ow_lines(n, sizeof(int)));
    ow_copy(z, s->in[0]);
    info = OW_FN(lu)(n, (OW_T *)z->data, n, pivots);
    if (info == 0)
        OW_LAPACK.getri(&n, (OW_T *)z->data, &n, pivots, (OW_T *)memory, &lwork, &info);
    return info > 0 ? OW_FAIL(s, OW_LINALG_ERROR, "Singular matrix") : OW_OK;
}

static int OW_FN(det_prep)(ow_step *s)
{
    const int64_t n = s->in[0]->shape[0];
    int rc = ow_square(s, s->in[0]);
    for (int i = 0; i < s->nout && !rc; i++)
        rc = ow_ensure(s, s->out[i]);
    return rc ? rc
              : ow_reserve(s, ow_add_size(ow_lines(ow_mul_size(n, n), sizeof(OW_T)),
                                          ow_lines(n, sizeof(int))));
}

static int OW_FN(det_run)(ow_step *s)
{
    const int64_t n = s->in[0]->shape[0];
    char *memory = s->scratch;
    int exponent = 0, more, *pivots = NULL;
    double product = 1;
    if (n) {
        pivots = ow_take(&memory, ow_lines(n, sizeof(int)));
        ow_mat a = ow_copied(s->in[0], memory, 0);
        OW_FN(lu)(a.rows, (OW_T *)a.data, a.ld, pivots);
    }
    /* the exponent apart: a product of part of the factors may overflow */
    for (int64_t i = 0; i < n; i++) {
        product = frexp(product * (double)((OW_T *)memory)[i * (n + 1)], &more);
        exponent += isfinite(product) ? more : 0;
        product = pivots[i] == i + 1 ? product : -product;
    }
    *(OW_T *)s->out[0]->data = (OW_T)ldexp(product, exponent);
    return OW_OK;
}

/* out: the sign of the determinant, and the logarithm of its size */
static int OW_FN(slogdet_prep)(ow_step *s) { return OW_FN(det_prep)(s); }

static int OW_FN(slogdet_run)(ow_step *s)
{
    const int64_t n = s->in[0]->shape[0];
    char *memory = s->scratch;
    int *pivots = NULL, singular = 0;
    double sign = 1, sum = 0;
    if (n) {
        pivots = ow_take(&memory, ow_lines(n, sizeof(int)));
        ow_mat a = ow_copied(s->in[0], memory, 0);
        OW_FN(lu)(a.rows, (OW_T *)a.data, a.ld, pivots);
    }
    for (int64_t i = 0; i < n; i++) {
        const double factor = (double)((OW_T *)memory)[i * (n + 1)];
        sum += log(fabs(factor));
        sign = (factor < 0) == (pivots[i] == i + 1) ? -sign : sign;
        singular |= factor == 0;
    }
    *(OW_T *)s->out[0]->data = singular ? (OW_T)0 : (OW_T)sign;
    *(OW_T *)s->out[1]->data = singular ? (OW_T)-INFINITY : (OW_T)sum;
    return OW_OK;
}

/* --- LU ------------------------------------------------------------------------------------------
 * out: both triangles in one matrix, pivots counted from 0 */

static int OW_FN(lu_prep)(ow_step *s)
{
    ow_slot *pivots = s->out[1];
    const int64_t n = s->in[0]->shape[0];
    int rc = ow_square(s, s->in[0]);
    rc = rc ? rc : ow_ensure_columns(s, s->out[0], n, n);
    ow_set_shape(pivots, 1, &n);
    return rc ? rc : ow_ensure(s, pivots);
}

static int OW_FN(lu_run)(ow_step *s)
{
    ow_slot *z = s->out[0];
    const int64_t n = z->shape[0];
    int *pivots = (int *)s->out[1]->data;
    if (n == 0)
        return OW_OK;
    ow_copy(z, s->in[0]);
    const int info = OW_FN(lu)((int)n, (OW_T *)z->data, (int)n, pivots);
    for (int64_t i = 0; i < n; i++)
        pivots[i]--;
    if (info && OW_PARAMS(s, lu)->nan)
        for (int64_t i = 0; i < n * n; i++)
            ((OW_T *)z->data)[i] = (OW_T)NAN;
    return OW_OK;
}

/* --- eigenvalues of symmetric matrices -----------------------------------------------------------
 * out: eigenvalues[, eigenvectors] */

static void OW_FN(eigh_work)(const ow_step *s, int n, int *lwork, int *liwork)
{
    OW_T size = 0, value = 0;
    int any = -1, info = 0, ld = n > 0 ? n : 1, isize = 0;
    char jobz = s->nout == 2 ? 'V' : 'N', uplo = 'L';
    OW_LAPACK.syevd(&jobz, &uplo, &n, &value, &ld, &value, &size, &any, &isize, &any, &info);
    /* a float may hold the size rounded down */
    *lwork = (int)(size * (OW_T)1.0001) + 1;
    *liwork = isize > 0 ? isize : 1;
}

static int OW_FN(eigh_prep)(ow_step *s)
{
    ow_slot *x = s->in[0], *w = s->out[0];
    int lwork, liwork, rc = ow_square(s, x);
    if (rc)
        return rc;
    const int64_t n = x->shape[0];
    int64_t bytes = 0;
    w->shape[0] = n;
    rc = ow_ensure(s, w);
    if (s->nout == 2)
        rc = rc ? rc : ow_ensure_columns(s, s->out[1], n, n);
    else
        bytes = ow_lines(ow_mul_size(n, n), sizeof(OW_T));
    OW_FN(eigh_work)(s, (int)n, &lwork, &liwork);
    bytes = ow_add_size(bytes, ow_lines(lwork, sizeof(OW_T)) + ow_lines(liwork, sizeof(int)));
    return rc ? rc : ow_reserve(s, bytes);
}

static int OW_FN(eigh_run)(ow_step *s)
{
    ow_slot *x = s->in[0];
    int n = (int)x->shape[0], lwork, liwork, info = 0,
        rc = OW_PARAMS(s, eigh)->check_finite ? ow_check_finite(s, x) : OW_OK;
    if (rc || n == 0)
        return rc;
    OW_FN(eigh_work)(s, n, &lwork, &liwork);
    char jobz = s->nout == 2 ? 'V' : 'N', uplo = OW_PARAMS(s, eigh)->lower ? 'L' : 'U',
         *memory = s->scratch;
    OW_T *work = ow_take(&memory, ow_lines(lwork, sizeof(OW_T)));
    int *iwork = ow_take(&memory, ow_lines(liwork, sizeof(int)));
    OW_T *v = (OW_T *)ow_copied(x, s->nout == 2 ? s->out[1]->data : memory, 1).data;
    const int team = ow_blas_alone(n < OW_EIGH_ALONE);
    OW_LAPACK.syevd(&jobz, &uplo, &n, v, &n, (OW_T *)s->out[0]->data, work, &lwork, iwork, &liwork,
                    &info);
    ow_blas_together(team);
    return info ? OW_FAIL(s, OW_LINALG_ERROR, "Eigenvalues did not converge") : OW_OK;
}

/* --- singular values and QR ------------------------------------------------------------------- */

static void OW_FN(identity)(ow_slot *z)
{
    const int64_t rows = z->shape[0], size = ow_size(z);
    for (int64_t i = 0; i < size; i++)
        ((OW_T *)z->data)[i] = i % (rows + 1) == 0;
}

static int OW_FN(svd_work)(char jobz, int m, int n)
{
    OW_T size = 0, value = 0;
    int any = -1, info = 0, ld = m > 0 ? m : 1, ldv = n > 0 ? n : 1, integer = 0;
    OW_LAPACK.gesdd(&jobz, &m, &n, &value, &ld, &value, &value, &ld, &value, &ldv, &size, &any,
                    &integer, &info);
    return (int)(size * (OW_T)1.0001) + 1;
}

/* out: u, s, v; or s */
static inline char OW_FN(svd_job)(const ow_step *s)
{
    return s->nout == 1 ? 'N' : OW_PARAMS(s, factors)->full ? 'A' : 'S';
}

static int OW_FN(svd_prep)(ow_step *s)
{
    ow_slot *x = s->in[0], *values = s->out[s->nout / 2];
    const int full = (int)OW_PARAMS(s, factors)->full;
    const int64_t m = x->shape[0], n = x->shape[1], k = m < n ? m : n;
    values->shape[0] = k;
    int rc = ow_ensure(s, values);
    if (s->nout == 3) {
        rc = rc ? rc : ow_ensure_columns(s, s->out[0], m, full ? m : k);
        rc = rc ? rc : ow_ensure_columns(s, s->out[2], full ? n : k, n);
    }
    const int64_t work = k ? OW_FN(svd_work)(OW_FN(svd_job)(s), (int)m, (int)n) : 0;
    int64_t bytes =
        ow_add_size(ow_lines(ow_mul_size(m, n), sizeof(OW_T)), ow_lines(work, sizeof(OW_T)));
    return rc ? rc : ow_reserve(s, ow_add_size(bytes, ow_lines(8 * k, sizeof(int))));
}

static int OW_FN(svd_run)(ow_step *s)
{
    ow_slot *x = s->in[0], *values = s->out[s->nout / 2];
    int m = (int)x->shape[0], n = (int)x->shape[1], k = m < n ? m : n, info = 0, one = 1;
    if (k == 0) {
        for (int i = 0; i < s->nout; i += 2)
            if (s->nout == 3)
                OW_FN(identity)(s->out[i]);
        return OW_OK;
    }
    char job = OW_FN(svd_job)(s), *memory = s->scratch;
    int lwork = OW_FN(svd_work)(job, m, n), ldv = s->nout == 3 ? (int)s->out[2]->shape[0] : 1;
    OW_T *work = ow_take(&memory, ow_lines(lwork, sizeof(OW_T)));
    int *iwork = ow_take(&memory, ow_lines(8 * (int64_t)k, sizeof(int)));
    OW_T *a = (OW_T *)ow_copied(x, memory, 1).data, unused;
    OW_T *u = s->nout == 3 ? (OW_T *)s->out[0]->data : &unused,
         *v = s->nout == 3 ? (OW_T *)s->out[2]->data : &unused;
    const int team = ow_blas_alone(k < OW_SVD_ALONE);
    OW_LAPACK.gesdd(&job, &m, &n, a, &m, (OW_T *)values->data, u, s->nout == 3 ? &m : &one, v, &ldv,
                    work, &lwork, iwork, &info);
    ow_blas_together(team);
    return info ? OW_FAIL(s, OW_LINALG_ERROR, "SVD did not converge") : OW_OK;
}

/* out: q, r; or r */
static int OW_FN(qr_work)(int m, int n, int cols, int k)
{
    OW_T size = 0, other = 0, value = 0;
    int any = -1, info = 0, ld = m > 0 ? m : 1;
    OW_LAPACK.geqrf(&m, &n, &value, &ld, &value, &size, &any, &info);
    OW_LAPACK.orgqr(&m, &cols, &k, &value, &ld, &value, &other, &any, &info);
    return (int)((size > other ? size : other) * (OW_T)1.0001) + 1;
}

static int OW_FN(qr_prep)(ow_step *s)
{
    ow_slot *x = s->in[0], *r = s->out[s->nout - 1];
    const int64_t m = x->shape[0], n = x->shape[1], k = m < n ? m : n,
                  rows = OW_PARAMS(s, factors)->full ? m : k;
    int rc = ow_ensure_columns(s, r, rows, n);
    if (s->nout == 2)
        rc = rc ? rc : ow_ensure_columns(s, s->out[0], m, rows);
    const int64_t work = k ? OW_FN(qr_work)((int)m, (int)n, (int)rows, (int)k) : 0;
    int64_t bytes =
        ow_add_size(ow_lines(ow_mul_size(m, n), sizeof(OW_T)), ow_lines(work, sizeof(OW_T)));
    return rc ? rc : ow_reserve(s, ow_add_size(bytes, ow_lines(k, sizeof(OW_T))));
}

static int OW_FN(qr_run)(ow_step *s)
{
    ow_slot *x = s->in[0], *r = s->out[s->nout - 1];
    int m = (int)x->shape[0], n = (int)x->shape[1], k = m < n ? m : n, rows = (int)r->shape[0],
        info = 0;
    if (k == 0) {
        if (s->nout == 2)
            OW_FN(identity)(s->out[0]);
        return OW_OK;
    }
    int lwork = OW_FN(qr_work)(m, n, rows, k);
    char *memory = s->scratch;
    OW_T *work = ow_take(&memory, ow_lines(lwork, sizeof(OW_T)));
    OW_T *tau = ow_take(&memory, ow_lines(k, sizeof(OW_T)));
    OW_T *a = (OW_T *)ow_copied(x, memory, 1).data;
    const int team = ow_blas_alone(k < OW_QR_ALONE);
    OW_LAPACK.geqrf(&m, &n, a, &m, tau, work, &lwork, &info);
    for (int64_t j = 0; j < n; j++) {
        const int64_t filled = j + 1 < k ? j + 1 : k;
        OW_T *column = (OW_T *)r->data + j * rows;
        memcpy(column, a + j * m, sizeof(OW_T) * (size_t)filled);
        memset(column + filled, 0, sizeof(OW_T) * (size_t)(rows - filled));
    }
    if (s->nout == 2) {
        OW_T *q = (OW_T *)s->out[0]->data;
        memcpy(q, a, sizeof(OW_T) * (size_t)m * (size_t)k);
        OW_LAPACK.orgqr(&m, &rows, &k, q, &m, tau, work, &lwork, &info);
    }
    ow_blas_together(team);
    return OW_OK;
}
