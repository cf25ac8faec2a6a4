/* Pooling of one plane and its gradient, for one type of elements: OW_T, of which OW_S is the short
 * name.
 * Forward, the rows that a row of windows meets are combined into one, element by element, and then
 * the elements of each window in it. Backward, a row of gradients is spread to the elements of the
 * image, so that a row of the image is the sum of some spread rows: each element is written
 * once. */

OW_WITHIN OW_N(ow_vec) OW_N(ow_pool_at)(const OW_T *p) { return *(const OW_N(ow_vec) *)p; }

/* The larger one, or nan if one is nan; or the sum. `most` is a constant where it is called. */
OW_WITHIN OW_N(ow_vec) OW_N(ow_pool_two)(const int most, OW_N(ow_vec) a, OW_N(ow_vec) b)
{
    if (!most)
        return a + b;
    const OW_N(ow_mask) second = (OW_N(ow_mask))((b > a) | (b != b));
    return (OW_N(ow_vec))(((OW_N(ow_mask))b & second) | ((OW_N(ow_mask))a & ~second));
}

OW_WITHIN OW_T OW_N(ow_pool_one)(const int most, OW_T a, OW_T b)
{
    return !most ? a + b : b > a || b != b ? b : a;
}

/* Combine `count` rows of n elements, and what `to` holds unless they are the first. */
OW_WITHIN void OW_N(ow_pool_down)(const int most, const OW_T *const *rows, int64_t count, int first,
                                  int64_t n, OW_T *to)
{
    int64_t k = 0;
    for (; k + OW_LANES <= n; k += OW_LANES) {
        OW_N(ow_vec) v = first ? OW_N(ow_pool_at)(rows[0] + k) : OW_N(ow_pool_at)(to + k);
        for (int64_t r = first; r < count; r++)
            v = OW_N(ow_pool_two)(most, v, OW_N(ow_pool_at)(rows[r] + k));
        *(OW_N(ow_vec) *)(to + k) = v;
    }
    if (k < n && n >= OW_LANES && first) { /* the last vector begins earlier */
        k = n - OW_LANES;
        OW_N(ow_vec) v = OW_N(ow_pool_at)(rows[0] + k);
        for (int64_t r = 1; r < count; r++)
            v = OW_N(ow_pool_two)(most, v, OW_N(ow_pool_at)(rows[r] + k));
        *(OW_N(ow_vec) *)(to + k) = v;
        k = n;
    }
    for (; k < n; k++) {
        OW_T v = first ? rows[0][k] : to[k];
        for (int64_t r = first; r < count; r++)
            v = OW_N(ow_pool_one)(most, v, rows[r][k]);
        to[k] = v;
    }
}

/* Every second element of two vectors, from the first or second on. */
OW_WITHIN OW_N(ow_vec) OW_N(ow_pool_half)(OW_N(ow_vec) a, OW_N(ow_vec) b, const int odd)
{
#ifdef __clang__
    OW_N(ow_vec) z;
    for (int i = 0; i < OW_LANES; i++)
        z[i] = 2 * i < OW_LANES ? a[2 * i + odd] : b[2 * i + odd - OW_LANES];
    return z;
#else
    OW_N(ow_mask) which;
    for (int i = 0; i < OW_LANES; i++)
        which[i] = 2 * i + odd;
    return __builtin_shuffle(a, b, which);
#endif
}

/* Combine w elements of each of n windows, s elements apart; the compiler knows how for an s named
 * here. */
OW_WITHIN void OW_N(ow_pool_apart)(const int most, int64_t w, const int64_t s, const OW_T *row,
                                   int64_t n, OW_T *restrict z)
{
    for (int64_t k = 0; k < n; k++) {
        OW_T v = row[k * s];
        for (int64_t c = 1; c < w; c++)
            v = OW_N(ow_pool_one)(most, v, row[k * s + c]);
        z[k] = v;
    }
}

/* Combine the elements of n windows that follow each other in a row; vectors beyond it may be
 * read. */
OW_WITHIN void OW_N(ow_pool_along)(const int most, int64_t w, int64_t s, const OW_T *row, int64_t n,
                                   OW_T *z)
{
    if (s > 2) {
        if (s == 3 && w == 3)
            OW_N(ow_pool_apart)(most, 3, 3, row, n, z);
        else if (s == 4 && w == 4)
            OW_N(ow_pool_apart)(most, 4, 4, row, n, z);
        else
            OW_N(ow_pool_apart)(most, w, s, row, n, z);
        return;
    }
    for (int64_t k = 0; k < n; k += OW_LANES) {
        if (k + OW_LANES > n && n >= OW_LANES)
            k = n - OW_LANES;
        OW_N(ow_vec) v;
        if (s == 1) {
            v = OW_N(ow_pool_at)(row + k);
            for (int64_t c = 1; c < w; c++)
                v = OW_N(ow_pool_two)(most, v, OW_N(ow_pool_at)(row + k + c));
        } else {
            OW_N(ow_vec) a = OW_N(ow_pool_at)(row + 2 * k),
                         b = OW_N(ow_pool_at)(row + 2 * k + OW_LANES);
            v = OW_N(ow_pool_half)(a, b, 0);
            for (int64_t c = 1; c < w; c++) {
                if (c % 2 == 0) {
                    a = OW_N(ow_pool_at)(row + 2 * k + c);
                    b = OW_N(ow_pool_at)(row + 2 * k + c + OW_LANES);
                }
                v = OW_N(ow_pool_two)(
                    most, v, c % 2 ? OW_N(ow_pool_half)(a, b, 1) : OW_N(ow_pool_half)(a, b, 0));
            }
        }
        if (k + OW_LANES <= n)
            *(OW_N(ow_vec) *)(z + k) = v;
        else
            memcpy(z + k, &v, sizeof(OW_T) * (size_t)(n - k));
    }
}

/* Combine the elements of n windows that follow each other, of two or three elements every
 * second one, in the rows that they meet; n is a vector at least, and nothing beyond the windows
 * is read. */
OW_WITHIN void OW_N(ow_pool_every_second)(const int most, const int three, const OW_T *const *rows,
                                          int64_t count, int64_t n, OW_T *z)
{
    for (int64_t k = 0; k < n; k += OW_LANES) {
        if (k + OW_LANES > n)
            k = n - OW_LANES; /* the last vector begins earlier */
        const OW_T *row = rows[0] + 2 * k;
        OW_N(ow_vec) a = OW_N(ow_pool_at)(row), b = OW_N(ow_pool_at)(row + OW_LANES);
        OW_N(ow_vec) c = OW_N(ow_pool_at)(row + three),
                     d = OW_N(ow_pool_at)(row + three + OW_LANES);
        for (int64_t r = 1; r < count; r++) {
            row = rows[r] + 2 * k;
            a = OW_N(ow_pool_two)(most, a, OW_N(ow_pool_at)(row));
            b = OW_N(ow_pool_two)(most, b, OW_N(ow_pool_at)(row + OW_LANES));
            if (three) {
                c = OW_N(ow_pool_two)(most, c, OW_N(ow_pool_at)(row + 1));
                d = OW_N(ow_pool_two)(most, d, OW_N(ow_pool_at)(row + 1 + OW_LANES));
            }
        }
        OW_N(ow_vec) v =
            OW_N(ow_pool_two)(most, OW_N(ow_pool_half)(a, b, 0), OW_N(ow_pool_half)(a, b, 1));
        if (three)
            v = OW_N(ow_pool_two)(most, v, OW_N(ow_pool_half)(c, d, 1));
        *(OW_N(ow_vec) *)(z + k) = v;
    }
}

/* A row of windows for which ow_pool_is_direct, from the rows that they meet. */
OW_WITHIN void OW_N(ow_pool_direct)(const int most, const ow_pool *q, const OW_T *const *rows,
                                    int64_t count, OW_T *z)
{
    if (count == 0)
        for (int64_t k = 0; k < q->out[2]; k++)
            z[k] = most ? -(OW_T)INFINITY : 0;
    else if (q->w[2] == 2)
        OW_N(ow_pool_every_second)(most, 0, rows, count, q->out[2], z);
    else
        OW_N(ow_pool_every_second)(most, 1, rows, count, q->out[2], z);
}

/* Whether windows are what ow_pool_every_second combines: in rows without pads, not too many. */
OW_WITHIN int OW_N(ow_pool_is_direct)(const ow_pool *q, const ow_plane *x, int64_t rows)
{
    return (q->w[2] == 2 || q->w[2] == 3) && q->s[2] == 2 && q->p[2] == 0 &&
           q->out[2] >= OW_LANES && ow_pool_met(q) <= q->n[2] && q->w[0] * q->w[1] < rows &&
           x->at[2] == sizeof(OW_T);
}

/* A row of a plane with elements side by side: as it is, or copied. */
OW_WITHIN const OW_T *OW_N(ow_pool_side_by_side)(const char *row, int64_t step, int64_t n,
                                                 OW_T *copy)
{
    if (step == sizeof(OW_T) || n == 1)
        return (const OW_T *)row;
    for (int64_t k = 0; k < n; k++)
        copy[k] = *(const OW_T *)(row + k * step);
    return copy;
}

OW_WITHIN void OW_N(ow_pool_plane)(const int most, const ow_pool *q, const ow_plane *x, OW_T *z,
                                   OW_T *memory)
{
    enum { ROWS = 16 };
    const int64_t pitch = ow_pool_pitch(q), block = ow_pool_rows(q), p = q->p[2];
    const int64_t n = q->n[2] < ow_pool_met(q) - p ? q->n[2] : ow_pool_met(q) - p;
    const int64_t dense = q->out[2] * q->s[2] == pitch;
    const int direct = OW_N(ow_pool_is_direct)(q, x, ROWS);
    const OW_T least = most ? -(OW_T)INFINITY : 0;
    OW_T *lengths = memory + block * pitch + 2 * OW_POOL_LANES, *copy = lengths + q->out[2];
    for (int64_t k = 0; q->mode >= OW_POOL_ALL && k < q->out[2]; k++)
        lengths[k] = (OW_T)ow_pool_length(q, 2, k);
    for (int64_t i = 0; i < q->out[0]; i++)
        for (int64_t first = 0; first < q->out[1]; first += block) {
            const int64_t end = first + block < q->out[1] ? first + block : q->out[1];
            OW_T *to = memory, *result = z + (i * q->out[1] + first) * q->out[2];
            for (int64_t j = first; j < end; j++, to += pitch) {
                const OW_T *rows[ROWS];
                int64_t count = 0;
                int begun = 0;
                for (int64_t a = 0; a < q->w[0]; a++)
                    for (int64_t b = 0; b < q->w[1]; b++) {
                        const int64_t d = i * q->s[0] + a - q->p[0], h = j * q->s[1] + b - q->p[1];
                        if (d < 0 || d >= q->n[0] || h < 0 || h >= q->n[1])
                            continue;
                        const char *row = x->data + d * x->at[0] + h * x->at[1];
                        rows[count++] = OW_N(ow_pool_side_by_side)(row, x->at[2], n, copy);
                        if (count < ROWS && rows[count - 1] != copy)
                            continue;
                        OW_N(ow_pool_down)(most, rows, count, !begun, n, to + p);
                        begun = 1;
                        count = 0;
                    }
                if (direct) {
                    OW_N(ow_pool_direct)(most, q, rows, count, result + (j - first) * q->out[2]);
                    continue;
                }
                if (count)
                    OW_N(ow_pool_down)(most, rows, count, !begun, n, to + p);
                begun |= count > 0;
                for (int64_t k = 0; k < (begun ? p : pitch); k++)
                    to[k] = least;
                for (int64_t k = p + n; begun && k < pitch; k++)
                    to[k] = least;
            }
            for (int64_t k = 0; !direct && k < 2 * OW_POOL_LANES; k++)
                to[k] = 0;
            if (dense && !direct)
                OW_N(ow_pool_along)(most, q->w[2], q->s[2], memory, (end - first) * q->out[2],
                                    result);
            for (int64_t j = 0; !dense && !direct && j < end - first; j++)
                OW_N(ow_pool_along)(most, q->w[2], q->s[2], memory + j * pitch, q->out[2],
                                    result + j * q->out[2]);
            for (int64_t j = first; q->mode >= OW_POOL_ALL && j < end; j++, result += q->out[2]) {
                const OW_T rows = (OW_T)(ow_pool_length(q, 0, i) * ow_pool_length(q, 1, j));
                for (int64_t k = 0; k < q->out[2]; k++)
                    result[k] /= rows * lengths[k];
            }
        }
}

static void OW_N(ow_pool_forward)(const ow_pool *q, const ow_plane *x, char *z, char *memory)
{
    if (q->mode == OW_POOL_MAX)
        OW_N(ow_pool_plane)(1, q, x, (OW_T *)z, (OW_T *)memory);
    else
        OW_N(ow_pool_plane)(0, q, x, (OW_T *)z, (OW_T *)memory);
}

/* Write n elements s times each, of which the last ones from `w` on are 0. */
OW_WITHIN void OW_N(ow_pool_repeat)(const OW_T *from, int64_t n, const int64_t s, const int64_t w,
                                    OW_T *restrict to)
{
#pragma GCC ivdep
    for (int64_t k = 0; k < n; k++)
        for (int64_t c = 0; c < s; c++)
            to[k * s + c] = c < w ? from[k] : 0;
}

OW_WITHIN void OW_N(ow_pool_spread)(const OW_T *from, int64_t n, int64_t s, int64_t w, OW_T *to)
{
    if (s == 1 && w == 1)
        memcpy(to, from, sizeof(OW_T) * (size_t)n);
    else if (s == 2 && w >= 2)
        OW_N(ow_pool_repeat)(from, n, 2, 2, to);
    else if (s == 2)
        OW_N(ow_pool_repeat)(from, n, 2, 1, to);
    else if (s == 3 && w >= 3)
        OW_N(ow_pool_repeat)(from, n, 3, 3, to);
    else if (s == 4 && w >= 4)
        OW_N(ow_pool_repeat)(from, n, 4, 4, to);
    else
        OW_N(ow_pool_repeat)(from, n, s, w, to);
}

/* What one window's element adds to a row of the image. */
typedef struct OW_N(ow_pool_term) {
    const OW_T *most, *more; /* the maximum, or NULL, and the gradient of each element's window */
} OW_N(ow_pool_term);

OW_WITHIN OW_N(ow_vec) OW_N(ow_pool_sum)(const int most, const OW_N(ow_pool_term) *terms,
                                         int64_t count, OW_N(ow_vec) x, int64_t k)
{
    OW_N(ow_vec) sum = {0};
    for (int64_t t = 0; t < count; t++) {
        OW_N(ow_vec) more = OW_N(ow_pool_at)(terms[t].more + k);
        if (most) {
            const OW_N(ow_mask) same = (OW_N(ow_mask))(x == OW_N(ow_pool_at)(terms[t].most + k));
            more = (OW_N(ow_vec))((OW_N(ow_mask))more & same);
        }
        sum += more;
    }
    return sum;
}

/* z = the sum of some terms, added to what z holds unless they are the first. */
OW_WITHIN void OW_N(ow_pool_add)(const int most, const OW_N(ow_pool_term) *terms, int64_t count,
                                 int first, const OW_T *x, int64_t n, OW_T *z)
{
    for (int64_t k = 0; k < n; k += OW_LANES) {
        if (k + OW_LANES > n && n >= OW_LANES && first)
            k = n - OW_LANES; /* the last vector begins earlier */
        OW_N(ow_vec) v = {0}, to = {0};
        const size_t bytes = sizeof(OW_T) * (size_t)(n - k);
        if (k + OW_LANES <= n) {
            if (most)
                v = OW_N(ow_pool_at)(x + k);
            to = OW_N(ow_pool_sum)(most, terms, count, v, k);
            *(OW_N(ow_vec) *)(z + k) = first ? to : to + OW_N(ow_pool_at)(z + k);
        } else {
            if (most)
                memcpy(&v, x + k, bytes);
            if (!first)
                memcpy(&to, z + k, bytes);
            to += OW_N(ow_pool_sum)(most, terms, count, v, k);
            memcpy(z + k, &to, bytes);
        }
    }
}

/* As ow_pool_add, for any number of them. */
static __attribute__((noinline)) void OW_N(ow_pool_more)(int most, const OW_N(ow_pool_term) *terms,
                                                         int64_t count, int first, const OW_T *x,
                                                         int64_t n, OW_T *z)
{
    if (most)
        OW_N(ow_pool_add)(1, terms, count, first, x, n, z);
    else
        OW_N(ow_pool_add)(0, terms, count, first, x, n, z);
}

/* Move on to the windows from *first to *end that meet element `at` of an axis of the image. */
OW_WITHIN void OW_N(ow_pool_windows)(const ow_pool *q, int d, int64_t at, int64_t *first,
                                     int64_t *end)
{
    at += q->p[d];
    while (*end < q->out[d] && *end * q->s[d] <= at)
        ++*end;
    while (*first < *end && *first * q->s[d] + q->w[d] <= at)
        ++*first;
}

OW_WITHIN void OW_N(ow_pool_back_plane)(const int most, const ow_pool *q, const ow_plane *x,
                                        const ow_plane *maxima, const ow_plane *g, OW_T *z,
                                        OW_T *memory)
{
    enum { TERMS = 16 };
    const ow_pool_kept kept = ow_pool_keep(q);
    const int64_t n = q->n[2], out = q->out[2], s = q->s[2], w = q->w[2], rest = w % s;
    const int apart =
        kept.rows < OW_POOL_KEPT; /* whether all rows that meet one of the image are kept */
    OW_T *copy = memory + 3 * kept.rows * kept.length, *lengths = copy + n, *of_g = lengths + out,
         *of_most = of_g + out;
    int64_t rows[OW_POOL_KEPT];
    memset(memory, 0, sizeof(OW_T) * (size_t)(3 * kept.rows * kept.length));
    for (int r = 0; r < OW_POOL_KEPT; r++)
        rows[r] = -1;
    for (int64_t k = 0; q->mode >= OW_POOL_ALL && k < out; k++)
        lengths[k] = (OW_T)ow_pool_length(q, 2, k);
    int64_t i0 = 0, i1 = 0;
    for (int64_t d = 0; d < q->n[0]; d++) {
        int64_t j0 = 0, j1 = 0;
        OW_N(ow_pool_windows)(q, 0, d, &i0, &i1);
        for (int64_t h = 0; h < q->n[1]; h++, z += n) {
            OW_N(ow_pool_windows)(q, 1, h, &j0, &j1);
            const OW_T *row = NULL;
            if (most)
                row = OW_N(ow_pool_side_by_side)(x->data + d * x->at[0] + h * x->at[1], x->at[2], n,
                                                 copy);
            OW_N(ow_pool_term) terms[TERMS];
            int64_t count = 0;
            int begun = 0;
            for (int64_t i = i0; i < i1; i++)
                for (int64_t j = j0; j < j1; j++) {
                    const int64_t slot =
                        apart ? (i & (kept.met[0] - 1)) * kept.met[1] + (j & (kept.met[1] - 1))
                              : (i * q->out[1] + j) & (OW_POOL_KEPT - 1);
                    OW_T *more = memory + 3 * slot * kept.length + kept.before,
                         *part = more + kept.length;
                    OW_T *maximum = part + kept.length;
                    if (rows[slot] != i * q->out[1] + j) {
                        if (count && !apart) { /* a term may be what is kept there */
                            OW_N(ow_pool_more)(most, terms, count, !begun, row, n, z);
                            begun = 1;
                            count = 0;
                        }
                        rows[slot] = i * q->out[1] + j;
                        const OW_T *from = OW_N(ow_pool_side_by_side)(
                            g->data + i * g->at[0] + j * g->at[1], g->at[2], out, of_g);
                        if (q->mode >= OW_POOL_ALL) {
                            const OW_T each =
                                (OW_T)(ow_pool_length(q, 0, i) * ow_pool_length(q, 1, j));
                            for (int64_t k = 0; k < out; k++)
                                of_g[k] = from[k] / (each * lengths[k]);
                            from = of_g;
                        }
                        if (w >= s)
                            OW_N(ow_pool_spread)(from, out, s, s, more);
                        if (rest)
                            OW_N(ow_pool_spread)(from, out, s, rest, part);
                        if (most) {
                            from = OW_N(ow_pool_side_by_side)(maxima->data + i * maxima->at[0] +
                                                                  j * maxima->at[1],
                                                              maxima->at[2], out, of_most);
                            OW_N(ow_pool_spread)(from, out, s, s, maximum);
                        }
                    }
                    for (int64_t phase = 0; phase < kept.phases; phase++) {
                        const int64_t at = q->p[2] - phase * s;
                        terms[count++] = (OW_N(ow_pool_term)){
                            maximum + at, (w - phase * s < s ? part : more) + at};
                        if (count < TERMS)
                            continue;
                        OW_N(ow_pool_more)(most, terms, count, !begun, row, n, z);
                        begun = 1;
                        count = 0;
                    }
                }
            if (!begun && count == 1)
                OW_N(ow_pool_add)(most, terms, 1, 1, row, n, z);
            else if (!begun && count == 2)
                OW_N(ow_pool_add)(most, terms, 2, 1, row, n, z);
            else if (!begun && count == 4)
                OW_N(ow_pool_add)(most, terms, 4, 1, row, n, z);
            else if (count || !begun)
                OW_N(ow_pool_more)(most, terms, count, !begun, row, n, z);
        }
    }
}

/* Whether windows of maxima are pairs of pixels that follow each other, of any number of rows,
 * without zeros around them, and all rows have their elements side by side. */
OW_WITHIN int OW_N(ow_pool_are_pairs)(const ow_pool *q, const ow_plane *x, const ow_plane *maxima,
                                      const ow_plane *g)
{
    const int64_t step = sizeof(OW_T);
    return q->mode == OW_POOL_MAX && q->n[0] == 1 && q->out[0] == 1 && q->p[0] == 0 &&
           q->p[1] == 0 && q->p[2] == 0 && q->w[2] == 2 && q->s[2] == 2 && q->w[1] == q->s[1] &&
           q->out[2] >= OW_LANES && q->out[1] * q->w[1] <= q->n[1] && q->out[2] * 2 <= q->n[2] &&
           x->at[2] == step && maxima->at[2] == step && g->at[2] == step;
}

/* Each element of half a vector twice. */
OW_WITHIN OW_N(ow_vec) OW_N(ow_pool_twice)(OW_N(ow_vec) a, const int second)
{
#ifdef __clang__
    OW_N(ow_vec) z;
    for (int i = 0; i < OW_LANES; i++)
        z[i] = a[(i + second * OW_LANES) / 2];
    return z;
#else
    OW_N(ow_mask) which;
    for (int i = 0; i < OW_LANES; i++)
        which[i] = (i + second * OW_LANES) / 2;
    return __builtin_shuffle(a, which);
#endif
}

/* The gradient for windows that are pairs: each of its elements belongs to one window at most. */
OW_WITHIN void OW_N(ow_pool_back_pairs)(const ow_pool *q, const ow_plane *x, const ow_plane *maxima,
                                        const ow_plane *g, OW_T *z)
{
    const int64_t n = q->n[2], out = q->out[2], w = q->w[1];
    for (int64_t j = 0; j < q->out[1]; j++, z += w * n) {
        const OW_T *most = (const OW_T *)(maxima->data + j * maxima->at[1]);
        const OW_T *more = (const OW_T *)(g->data + j * g->at[1]);
        for (int64_t k = 0; k < out; k += OW_LANES) {
            if (k + OW_LANES > out)
                k = out - OW_LANES; /* the last vector begins earlier */
            const OW_N(ow_vec) m = OW_N(ow_pool_at)(most + k), v = OW_N(ow_pool_at)(more + k);
            const OW_N(ow_vec) m0 = OW_N(ow_pool_twice)(m, 0), m1 = OW_N(ow_pool_twice)(m, 1);
            const OW_N(ow_mask) v0 = (OW_N(ow_mask))OW_N(ow_pool_twice)(v, 0);
            const OW_N(ow_mask) v1 = (OW_N(ow_mask))OW_N(ow_pool_twice)(v, 1);
            for (int64_t r = 0; r < w; r++) {
                const OW_T *from = (const OW_T *)(x->data + (j * w + r) * x->at[1]) + 2 * k;
                OW_T *to = z + r * n + 2 * k;
                const OW_N(ow_mask) first = (OW_N(ow_mask))(OW_N(ow_pool_at)(from) == m0);
                const OW_N(ow_mask) second =
                    (OW_N(ow_mask))(OW_N(ow_pool_at)(from + OW_LANES) == m1);
                *(OW_N(ow_vec) *)to = (OW_N(ow_vec))(first & v0);
                *(OW_N(ow_vec) *)(to + OW_LANES) = (OW_N(ow_vec))(second & v1);
            }
        }
        for (int64_t r = 0; r < w; r++)
            for (int64_t k = 2 * out; k < n; k++)
                z[r * n + k] = 0;
    }
    memset(z, 0, sizeof(OW_T) * (size_t)((q->n[1] - q->out[1] * w) * n));
}

static void OW_N(ow_pool_back)(const ow_pool *q, const ow_plane *x, const ow_plane *maxima,
                               const ow_plane *g, char *z, char *memory)
{
    if (OW_N(ow_pool_are_pairs)(q, x, maxima, g))
        OW_N(ow_pool_back_pairs)(q, x, maxima, g, (OW_T *)z);
    else if (q->mode == OW_POOL_MAX)
        OW_N(ow_pool_back_plane)(1, q, x, maxima, g, (OW_T *)z, (OW_T *)memory);
    else
        OW_N(ow_pool_back_plane)(0, q, x, maxima, g, (OW_T *)z, (OW_T *)memory);
}
