/* Fourier transforms of tiles of real numbers, for one type of elements: OW_T, of which OW_S is the
 * short name. conv_fft.h convolves with them.
 * A tile has two lengths that are powers of 2. Vectors hold columns, so that a transform along
 * columns needs no shuffles; between the transforms along the two axes the tile is transposed. Two
 * rows of real numbers are one of complex numbers (re: even rows, im: odd ones): a transform of
 * half the length, of which the spectrum of real columns is computed. Frequencies stay in the order
 * in which they come out, `of_row` and `of_column` of ow_fft, since products of spectra need no
 * other.
 * A spectrum has rows / 2 * columns points. The first and the last frequency of a real column are
 * real, and share a column of points; so are those of that column: two points hold two real numbers
 * each. */

#if defined(__AVX512F__)
#define OW_FFT_OUTPUTS 4 /* and two tiles: sums that stay in registers */
#else
#define OW_FFT_OUTPUTS 2
#endif

OW_WITHIN OW_N(ow_vec) OW_N(ow_fft_at)(const OW_T *p) { return *(const OW_N(ow_vec) *)p; }
OW_WITHIN void OW_N(ow_fft_put)(OW_T *p, OW_N(ow_vec) v) { *(OW_N(ow_vec) *)p = v; }

/* Four rows, `apart` elements from each other, become four of which row q has the frequencies q, q
 * + 4, ... w: the root of row 1. turn: whether it is not 1; back: the opposite. Both are constants
 * where it is called. */
OW_WITHIN void OW_N(ow_fft_quarter)(const int turn, const int back, OW_T *re, OW_T *im,
                                    int64_t apart, int64_t wide, const OW_T *w, int64_t step)
{
    const OW_T c1 = w[0], s1 = back ? -w[1] : w[1], c2 = w[2 * step],
               s2 = back ? -w[2 * step + 1] : w[2 * step + 1];
    const OW_T c3 = w[4 * step], s3 = back ? -w[4 * step + 1] : w[4 * step + 1];
    for (int64_t x = 0; x < wide; x += OW_LANES) {
        OW_T *r = re + x, *i = im + x;
        OW_N(ow_vec) ar = OW_N(ow_fft_at)(r), ai = OW_N(ow_fft_at)(i);
        OW_N(ow_vec) br = OW_N(ow_fft_at)(r + apart), bi = OW_N(ow_fft_at)(i + apart);
        OW_N(ow_vec) cr = OW_N(ow_fft_at)(r + 2 * apart), ci = OW_N(ow_fft_at)(i + 2 * apart);
        OW_N(ow_vec) dr = OW_N(ow_fft_at)(r + 3 * apart), di = OW_N(ow_fft_at)(i + 3 * apart), t;
        if (back && turn) {
            t = br * c1 - bi * s1, bi = br * s1 + bi * c1, br = t;
            t = cr * c2 - ci * s2, ci = cr * s2 + ci * c2, cr = t;
            t = dr * c3 - di * s3, di = dr * s3 + di * c3, dr = t;
        }
        const OW_N(ow_vec) er = ar + cr, ei = ai + ci, fr = ar - cr, fi = ai - ci;
        const OW_N(ow_vec) gr = br + dr, gi = bi + di, hr = br - dr, hi = bi - di;
        /* f -+ i h */
        OW_N(ow_vec) pr = back ? fr - hi : fr + hi, pi = back ? fi + hr : fi - hr;
        OW_N(ow_vec) qr = er - gr, qi = ei - gi;
        OW_N(ow_vec) sr = back ? fr + hi : fr - hi, si = back ? fi - hr : fi + hr;
        if (!back && turn) {
            t = pr * c1 - pi * s1, pi = pr * s1 + pi * c1, pr = t;
            t = qr * c2 - qi * s2, qi = qr * s2 + qi * c2, qr = t;
            t = sr * c3 - si * s3, si = sr * s3 + si * c3, sr = t;
        }
        OW_N(ow_fft_put)(r, er + gr);
        OW_N(ow_fft_put)(i, ei + gi);
        OW_N(ow_fft_put)(r + apart, pr);
        OW_N(ow_fft_put)(i + apart, pi);
        OW_N(ow_fft_put)(r + 2 * apart, qr);
        OW_N(ow_fft_put)(i + 2 * apart, qi);
        OW_N(ow_fft_put)(r + 3 * apart, sr);
        OW_N(ow_fft_put)(i + 3 * apart, si);
    }
}

/* All butterflies of `n` rows. */
OW_WITHIN void OW_N(ow_fft_pass)(const int back, OW_T *re, OW_T *im, int64_t length, int64_t n,
                                 int64_t wide, int64_t pitch, const OW_T *roots)
{
    const int64_t quarter = n / 4, step = length / n;
    for (int64_t first = 0; first < length; first += n) {
        OW_T *r = re + first * pitch, *i = im + first * pitch;
        OW_N(ow_fft_quarter)(0, back, r, i, quarter * pitch, wide, roots, 0);
        for (int64_t j = 1; j < quarter; j++)
            OW_N(ow_fft_quarter)(1, back, r + j * pitch, i + j * pitch, quarter * pitch, wide,
                                 roots + 2 * j * step, j * step);
    }
}

/* Pairs of rows that follow each other. */
static void OW_N(ow_fft_pairs)(OW_T *plane, int64_t length, int64_t wide, int64_t pitch)
{
    for (int64_t y = 0; y < length; y += 2)
        for (int64_t x = 0; x < wide; x += OW_LANES) {
            OW_T *p = plane + y * pitch + x;
            const OW_N(ow_vec) a = OW_N(ow_fft_at)(p), b = OW_N(ow_fft_at)(p + pitch);
            OW_N(ow_fft_put)(p, a + b);
            OW_N(ow_fft_put)(p + pitch, a - b);
        }
}

/* Transform columns. roots: exp(-2 pi i j / length) for all j. */
static void OW_N(ow_fft_columns)(OW_T *re, OW_T *im, int64_t length, int64_t wide, int64_t pitch,
                                 const OW_T *roots)
{
    int64_t n = length;
    for (; n >= 4; n /= 4)
        OW_N(ow_fft_pass)(0, re, im, length, n, wide, pitch, roots);
    if (n == 2) {
        OW_N(ow_fft_pairs)(re, length, wide, pitch);
        OW_N(ow_fft_pairs)(im, length, wide, pitch);
    }
}

/* The opposite, times `length`. */
static void OW_N(ow_fft_columns_back)(OW_T *re, OW_T *im, int64_t length, int64_t wide,
                                      int64_t pitch, const OW_T *roots)
{
    int64_t n = length;
    while (n >= 4)
        n /= 4;
    if (n == 2) {
        OW_N(ow_fft_pairs)(re, length, wide, pitch);
        OW_N(ow_fft_pairs)(im, length, wide, pitch);
    }
    for (n *= 4; n <= length; n *= 4)
        OW_N(ow_fft_pass)(1, re, im, length, n, wide, pitch, roots);
}

/* Transpose `high` rows of `wide` elements. */
static void OW_N(ow_fft_turn)(const OW_T *from, int64_t high, int64_t wide, int64_t pitch, OW_T *to,
                              int64_t to_pitch)
{
    for (int64_t y = 0; y < high; y += OW_LANES)
        for (int64_t x = 0; x < wide; x += OW_LANES) {
            OW_N(ow_vec) v[OW_LANES];
            for (int l = 0; l < OW_LANES; l++)
                v[l] = OW_N(ow_fft_at)(from + (y + l) * pitch + x);
            OW_N(ow_transpose)(v);
            for (int l = 0; l < OW_LANES; l++)
                OW_N(ow_fft_put)(to + (x + l) * to_pitch + y, v[l]);
        }
}

/* The planes of a tile, by rows and transposed. */
#define OW_FFT_PLANES(f, work)                                                                     \
    const int64_t half = (f)->rows / 2, wide = (f)->columns;                                       \
    const int64_t pitch = wide + OW_FFT_GAP, turned = half + OW_FFT_GAP;                           \
    OW_T *re = (OW_T *)(work), *im = re + half * pitch, *tr = im + half * pitch,                   \
         *ti = tr + wide * turned

/* The spectrum of the tile in `work`: re and im of a vector of points each, `step` bytes apart. */
static void OW_N(ow_fft_forward)(const ow_fft *f, char *work, char *to, int64_t step)
{
    OW_FFT_PLANES(f, work);
    const OW_T *of_rows = (const OW_T *)f->row_roots, h = (OW_T)0.5;
    OW_N(ow_fft_columns)(re, im, half, wide, pitch, (const OW_T *)f->half_roots);
    for (int64_t x = 0; x < wide; x += OW_LANES) {
        const OW_N(ow_vec) a = OW_N(ow_fft_at)(re + x), b = OW_N(ow_fft_at)(im + x);
        OW_N(ow_fft_put)(re + x, a + b);
        OW_N(ow_fft_put)(im + x, a - b);
    }
    for (int64_t k = 1; k <= half / 2; k++) {
        const int64_t one = f->of_row[k] * pitch, other = f->of_row[half - k] * pitch;
        const OW_T c = of_rows[2 * k], s = of_rows[2 * k + 1];
        for (int64_t x = 0; x < wide; x += OW_LANES) {
            const OW_N(ow_vec) ar = OW_N(ow_fft_at)(re + one + x),
                               ai = OW_N(ow_fft_at)(im + one + x);
            const OW_N(ow_vec) br = OW_N(ow_fft_at)(re + other + x),
                               bi = OW_N(ow_fft_at)(im + other + x);
            const OW_N(ow_vec) er = h * (ar + br), ei = h * (ai - bi), odd_r = h * (ai + bi),
                               odd_i = h * (br - ar);
            const OW_N(ow_vec) wr = odd_r * c - odd_i * s, wi = odd_r * s + odd_i * c;
            OW_N(ow_fft_put)(re + one + x, er + wr);
            OW_N(ow_fft_put)(im + one + x, ei + wi);
            OW_N(ow_fft_put)(re + other + x, er - wr);
            OW_N(ow_fft_put)(im + other + x, wi - ei);
        }
    }
    OW_N(ow_fft_turn)(re, half, wide, pitch, tr, turned);
    OW_N(ow_fft_turn)(im, half, wide, pitch, ti, turned);
    OW_N(ow_fft_columns)(tr, ti, wide, half, turned, (const OW_T *)f->column_roots);
    for (int64_t k = 1; k < wide / 2; k++) {
        const int64_t one = f->of_column[k] * turned, other = f->of_column[wide - k] * turned;
        const OW_T ar = tr[one], ai = ti[one], br = tr[other], bi = ti[other];
        tr[one] = h * (ar + br);
        ti[one] = h * (ai - bi);
        tr[other] = h * (ai + bi);
        ti[other] = h * (br - ar);
    }
    for (int64_t y = 0; y < wide; y++)
        for (int64_t x = 0; x < half; x += OW_LANES, to += step) {
            OW_N(ow_fft_put)((OW_T *)to, OW_N(ow_fft_at)(tr + y * turned + x));
            OW_N(ow_fft_put)((OW_T *)to + OW_LANES, OW_N(ow_fft_at)(ti + y * turned + x));
        }
}

/* The opposite, times rows / 2 * columns. */
static void OW_N(ow_fft_back)(const ow_fft *f, const char *from, int64_t step, char *work)
{
    OW_FFT_PLANES(f, work);
    const OW_T *of_rows = (const OW_T *)f->row_roots, h = (OW_T)0.5;
    for (int64_t y = 0; y < wide; y++)
        for (int64_t x = 0; x < half; x += OW_LANES, from += step) {
            OW_N(ow_fft_put)(tr + y * turned + x, OW_N(ow_fft_at)((const OW_T *)from));
            OW_N(ow_fft_put)(ti + y * turned + x, OW_N(ow_fft_at)((const OW_T *)from + OW_LANES));
        }
    for (int64_t k = 1; k < wide / 2; k++) {
        const int64_t one = f->of_column[k] * turned, other = f->of_column[wide - k] * turned;
        const OW_T ar = tr[one], ai = ti[one], br = tr[other], bi = ti[other];
        tr[one] = ar - bi;
        ti[one] = ai + br;
        tr[other] = ar + bi;
        ti[other] = br - ai;
    }
    OW_N(ow_fft_columns_back)(tr, ti, wide, half, turned, (const OW_T *)f->column_roots);
    OW_N(ow_fft_turn)(tr, wide, half, turned, re, pitch);
    OW_N(ow_fft_turn)(ti, wide, half, turned, im, pitch);
    for (int64_t x = 0; x < wide; x += OW_LANES) {
        const OW_N(ow_vec) a = OW_N(ow_fft_at)(re + x), b = OW_N(ow_fft_at)(im + x);
        OW_N(ow_fft_put)(re + x, h * (a + b));
        OW_N(ow_fft_put)(im + x, h * (a - b));
    }
    for (int64_t k = 1; k <= half / 2; k++) {
        const int64_t one = f->of_row[k] * pitch, other = f->of_row[half - k] * pitch;
        const OW_T c = of_rows[2 * k], s = -of_rows[2 * k + 1];
        for (int64_t x = 0; x < wide; x += OW_LANES) {
            const OW_N(ow_vec) ar = OW_N(ow_fft_at)(re + one + x),
                               ai = OW_N(ow_fft_at)(im + one + x);
            const OW_N(ow_vec) br = OW_N(ow_fft_at)(re + other + x),
                               bi = OW_N(ow_fft_at)(im + other + x);
            const OW_N(ow_vec) er = h * (ar + br), ei = h * (ai - bi), dr = h * (ar - br),
                               di = h * (ai + bi);
            const OW_N(ow_vec) odd_r = dr * c - di * s, odd_i = dr * s + di * c;
            OW_N(ow_fft_put)(re + one + x, er - odd_i);
            OW_N(ow_fft_put)(im + one + x, ei + odd_r);
            OW_N(ow_fft_put)(re + other + x, er + odd_i);
            OW_N(ow_fft_put)(im + other + x, odd_r - ei);
        }
    }
    OW_N(ow_fft_columns_back)(re, im, half, wide, pitch, (const OW_T *)f->half_roots);
}

/* Sums over channels of products for some outputs and tiles at one vector of points. special:
 * whether its first point is two real numbers. */
OW_WITHIN void OW_N(ow_fft_sums)(const int outputs, const int tiles, const int special,
                                 const ow_fft_product *q, const OW_T *x, const OW_T *w, OW_T *z)
{
    OW_N(ow_vec) zr[OW_FFT_OUTPUTS * 2], zi[OW_FFT_OUTPUTS * 2], all, first = {0};
    first[0] = 1;
    all = (OW_T)1 - first;
    const int64_t row = q->channels * 2 * OW_LANES;
    for (int i = 0; i < outputs * tiles; i++)
        zr[i] = zi[i] = (OW_N(ow_vec)){0};
    for (int64_t e = 0; e < row; e += 2 * OW_LANES) {
        OW_N(ow_vec) ar[2], ai[2];
        for (int t = 0; t < tiles; t++) {
            ar[t] = OW_N(ow_fft_at)(x + t * row + e);
            ai[t] = OW_N(ow_fft_at)(x + t * row + e + OW_LANES);
        }
        for (int o = 0; o < outputs; o++) {
            const OW_N(ow_vec) br = OW_N(ow_fft_at)(w + o * row + e),
                               bi = OW_N(ow_fft_at)(w + o * row + e + OW_LANES);
            for (int t = 0; t < tiles; t++) {
                OW_N(ow_vec) *r = &zr[o * tiles + t], *i = &zi[o * tiles + t];
                *r += ar[t] * br;
                *r -= (special ? ai[t] * all : ai[t]) * bi;
                *i += (special ? ar[t] * all : ar[t]) * bi;
                *i += ai[t] * (special ? br * all + bi * first : br);
            }
        }
    }
    for (int t = 0; t < tiles; t++)
        for (int o = 0; o < outputs; o++) {
            OW_T *to = z + (t * q->outputs + o) * 2 * OW_LANES;
            OW_N(ow_fft_put)(to, zr[o * tiles + t]);
            OW_N(ow_fft_put)(to + OW_LANES, zi[o * tiles + t]);
        }
}

OW_WITHIN void OW_N(ow_fft_point)(const int special, const ow_fft_product *q, const OW_T *x,
                                  const OW_T *w, OW_T *z)
{
    const int64_t row = q->channels * 2 * OW_LANES;
    int64_t o = 0;
    for (; o + OW_FFT_OUTPUTS <= q->outputs; o += OW_FFT_OUTPUTS) {
        int64_t t = 0;
        for (; t + 2 <= q->tiles; t += 2)
            OW_N(ow_fft_sums)(OW_FFT_OUTPUTS, 2, special, q, x + t * row, w + o * row,
                              z + (t * q->outputs + o) * 2 * OW_LANES);
        if (t < q->tiles)
            OW_N(ow_fft_sums)(OW_FFT_OUTPUTS, 1, special, q, x + t * row, w + o * row,
                              z + (t * q->outputs + o) * 2 * OW_LANES);
    }
    for (; o < q->outputs; o++) {
        int64_t t = 0;
        for (; t + 2 <= q->tiles; t += 2)
            OW_N(ow_fft_sums)(1, 2, special, q, x + t * row, w + o * row,
                              z + (t * q->outputs + o) * 2 * OW_LANES);
        if (t < q->tiles)
            OW_N(ow_fft_sums)(1, 1, special, q, x + t * row, w + o * row,
                              z + (t * q->outputs + o) * 2 * OW_LANES);
    }
}

static void OW_N(ow_fft_products)(const ow_fft_product *q, int64_t first, int64_t end)
{
    for (int64_t p = first; p < end; p++) {
        const OW_T *x = (const OW_T *)(q->x + p * q->xs);
        const OW_T *w = (const OW_T *)(q->w + p * q->ws);
        OW_T *z = (OW_T *)(q->z + p * q->zs);
        if (p == 0 || p == q->special)
            OW_N(ow_fft_point)(1, q, x, w, z);
        else
            OW_N(ow_fft_point)(0, q, x, w, z);
    }
}

#undef OW_FFT_PLANES
#undef OW_FFT_OUTPUTS
