/* Convolutions of float32 with 3 by 3 kernels by Winograd's algorithm F(4x4, 3x3), and their
 * gradients by the kernels by F(3x3, 4x4).
 * A tile of 4 by 4 places of a result depends on 6 by 6 pixels. Transformed pixels and kernels are
 * multiplied point by point, 36 multiplications instead of 144, and summed over channels, which
 * makes 36 products of matrices; the sums are transformed back (S. Winograd, Arithmetic Complexity
 * of Computations, 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks,
 * 2016).
 * The transforms evaluate polynomials at 0, +-a, +-b and infinity. With a = sqrt(1/2) and b =
 * sqrt(2) they round about as much as plain sums do; with the usual 1 and 2, six times as much.
 * For a gradient by kernels, a tile of the gradient by the result takes the place of the kernel: 16
 * multiplications for each of 9 sums become 36 for all of them. Products are summed over tiles, and
 * only what they come to is transformed back.
 * Vectors hold channels: images of any width fill them. Pixels are transposed when they are read,
 * and results when they are written. */

#define OW_WIDE (2 * OW_LANES)
#define OW_POINTS 36
#define OW_ROOT2 1.41421356237309505f
#define OW_ROOT_HALF 0.70710678118654752f

typedef ow_vec_f32 ow_wv;

OW_WITHIN ow_wv ow_wv_at(const float *p) { return *(const ow_wv *)p; }
OW_WITHIN void ow_wv_put(float *p, ow_wv v) { *(ow_wv *)p = v; }

/* Pixels d0 to d5 along one axis to points. */
OW_WITHIN void ow_winograd_in(ow_wv *t, ow_wv d0, ow_wv d1, ow_wv d2, ow_wv d3, ow_wv d4, ow_wv d5)
{
    const ow_wv ea = d4 - 2.0f * d2, oa = d3 - 2.0f * d1;
    const ow_wv eb = d4 - 0.5f * d2, ob = d3 - 0.5f * d1;
    t[0] = (d0 + d4) - 2.5f * d2;
    t[1] = ea + OW_ROOT_HALF * oa;
    t[2] = ea - OW_ROOT_HALF * oa;
    t[3] = eb + OW_ROOT2 * ob;
    t[4] = eb - OW_ROOT2 * ob;
    t[5] = (d1 + d5) - 2.5f * d3;
}

/* Points along one axis to 4 places. */
OW_WITHIN void ow_winograd_out(ow_wv *y, ow_wv m0, ow_wv m1, ow_wv m2, ow_wv m3, ow_wv m4, ow_wv m5)
{
    const ow_wv sa = m1 + m2, da = OW_ROOT_HALF * (m1 - m2), sb = m3 + m4,
                db = OW_ROOT2 * (m3 - m4);
    y[0] = m0 + sa + sb;
    y[1] = da + db;
    y[2] = 0.5f * sa + 2.0f * sb;
    y[3] = 0.5f * da + 2.0f * db + m5;
}

/* Elements of a kernel along one axis to points. */
OW_WITHIN void ow_winograd_kernel(ow_wv *t, ow_wv g0, ow_wv g1, ow_wv g2)
{
    const ow_wv ea = -2.0f / 3 * (g0 + 0.5f * g2), oa = (-2.0f / 3 * OW_ROOT_HALF) * g1;
    const ow_wv eb = 1.0f / 6 * g0 + 1.0f / 3 * g2, ob = (OW_ROOT2 / 6) * g1;
    t[0] = g0;
    t[1] = ea + oa;
    t[2] = ea - oa;
    t[3] = eb + ob;
    t[4] = eb - ob;
    t[5] = g2;
}

/* Four places of a gradient by a result along one axis to points. */
OW_WITHIN void ow_winograd_top(ow_wv *t, ow_wv g0, ow_wv g1, ow_wv g2, ow_wv g3)
{
    const ow_wv ea = -2.0f / 3 * g0 - 1.0f / 3 * g2;
    const ow_wv oa = (-2.0f / 3 * OW_ROOT_HALF) * g1 - (1.0f / 3 * OW_ROOT_HALF) * g3;
    const ow_wv eb = 1.0f / 6 * g0 + 1.0f / 3 * g2, ob = (OW_ROOT2 / 6) * g1 + (OW_ROOT2 / 3) * g3;
    t[0] = g0;
    t[1] = ea + oa;
    t[2] = ea - oa;
    t[3] = eb + ob;
    t[4] = eb - ob;
    t[5] = g3;
}

/* Points along one axis to 3 elements of a kernel. */
OW_WITHIN void ow_winograd_taps(ow_wv *y, ow_wv m0, ow_wv m1, ow_wv m2, ow_wv m3, ow_wv m4,
                                ow_wv m5)
{
    const ow_wv sa = m1 + m2, sb = m3 + m4;
    y[0] = m0 + sa + sb;
    y[1] = OW_ROOT_HALF * (m1 - m2) + OW_ROOT2 * (m3 - m4);
    y[2] = 0.5f * sa + 2.0f * sb + m5;
}

static void ow_winograd_kernels(const ow_winograd *w, int64_t group, int64_t vector, int64_t first,
                                int64_t end)
{
    const ow_conv *c = w->c;
    const int64_t o = vector * OW_LANES,
                  some = c->outputs - o < OW_LANES ? c->outputs - o : OW_LANES;
    const int64_t point = w->point;
    const float *from =
        (const float *)c->kernels + group * c->outputs * c->elements + o * c->of_output;
    float *to = w->kernels + group * OW_POINTS * point + vector / 2 * c->channels * OW_WIDE +
                vector % 2 * OW_LANES;
    for (int64_t i = first; i < end; i++) {
        float taps[9][OW_LANES] __attribute__((aligned(64)));
        ow_wv half[3][6], t[6];
        for (int k = 0; k < 9; k++) {
            const float *g = from + i * c->of_channel + (c->flip ? 8 - k : k);
            for (int64_t l = 0; l < OW_LANES; l++)
                taps[k][l] = l < some ? g[l * c->of_output] : 0;
        }
        for (int x = 0; x < 3; x++)
            ow_winograd_kernel(half[x], ow_wv_at(taps[x]), ow_wv_at(taps[3 + x]),
                               ow_wv_at(taps[6 + x]));
        for (int y = 0; y < 6; y++) {
            ow_winograd_kernel(t, half[0][y], half[1][y], half[2][y]);
            for (int x = 0; x < 6; x++)
                ow_wv_put(to + (6 * y + x) * point + i * OW_WIDE, t[x]);
        }
    }
}

/* Write pixels `x` to `x + n` of row `y`, those beside the image as 0, for some channels from
 * `from` on: a vector of channels for each pixel. `limit`: the end of all images in memory. */
OW_WITHIN void ow_winograd_read(const ow_conv *c, const char *from, int64_t some, int64_t y,
                                int64_t x, int64_t n, const char *limit, float *to)
{
    int64_t first = x < 0 ? -x : 0, end = c->image[2] - x < n ? c->image[2] - x : n;
    if (y < 0 || y >= c->image[1] || end < first)
        first = end = n;
    for (int64_t i = 0; i < first; i++)
        ow_wv_put(to + i * OW_LANES, (ow_wv){0});
    for (int64_t i = end; i < n; i++)
        ow_wv_put(to + i * OW_LANES, (ow_wv){0});
    const char *row = from + y * c->at[3] + x * c->at[4];
    for (int64_t i = first; i < end; i += OW_LANES) {
        ow_wv v[OW_LANES];
        /* the last vector of a row begins earlier, or ends behind it */
        const int64_t left = end - i,
                      back = left < OW_LANES && end - first >= OW_LANES ? OW_LANES - left : 0;
        const int64_t valid = left + back < OW_LANES ? left : OW_LANES;
        const char *p = row + (i - back) * c->at[4];
        float *into = to + (i - back) * OW_LANES;
        if (some == OW_LANES && limit && p + (OW_LANES - 1) * c->at[1] + OW_VECTOR <= limit)
            for (int l = 0; l < OW_LANES; l++)
                v[l] = ow_wv_at((const float *)(p + l * c->at[1]));
        else
            for (int l = 0; l < OW_LANES; l++) {
                float one[OW_LANES] __attribute__((aligned(64))) = {0};
                for (int64_t k = 0; k < valid && l < some; k++)
                    one[k] = *(const float *)(p + l * c->at[1] + k * c->at[4]);
                v[l] = ow_wv_at(one);
            }
        ow_transpose_f32(v);
        if (valid == OW_LANES)
            for (int l = 0; l < OW_LANES; l++)
                ow_wv_put(into + l * OW_LANES, v[l]);
        else
            for (int64_t l = 0; l < valid; l++)
                ow_wv_put(into + l * OW_LANES, v[l]);
    }
}

/* Write places 0 to n of row of results from vectors of outputs, of which there are `some`. */
OW_WITHIN void ow_winograd_write(const float *from, int64_t n, int64_t some, float *to,
                                 int64_t apart)
{
    for (int64_t i = 0; i < n; i += OW_LANES) {
        ow_wv v[OW_LANES];
        const int64_t left = n - i, back = left < OW_LANES && n >= OW_LANES ? OW_LANES - left : 0;
        const int64_t valid = left + back < OW_LANES ? left : OW_LANES;
        for (int l = 0; l < OW_LANES; l++)
            v[l] = ow_wv_at(from + (i - back + l) * OW_LANES);
        ow_transpose_f32(v);
        if (some == OW_LANES && valid == OW_LANES)
            for (int l = 0; l < OW_LANES; l++)
                ow_wv_put(to + l * apart + i - back, v[l]);
        else
            for (int64_t l = 0; l < some; l++)
                for (int64_t k = 0; k < valid; k++)
                    to[l * apart + i - back + k] = ((const float *)&v[l])[k];
    }
}

/* Of tiles from `t` on, those in one row of tiles of one image and before `end`. */
typedef struct ow_tile_run {
    int64_t image, y, x, n;
} ow_tile_run;

OW_WITHIN ow_tile_run ow_winograd_run(const ow_winograd *w, int64_t t, int64_t end)
{
    const int64_t x = t % w->across, in_row = w->across - x;
    return (ow_tile_run){t / w->across / w->down, t / w->across % w->down, x,
                         end - t < in_row ? end - t : in_row};
}

/* Floats from one point to the next: not a multiple of a page. */
OW_WITHIN int64_t ow_winograd_point(int64_t tiles, int64_t length) { return tiles * length + 16; }

/* Transform tiles of `size` by `size` pixels, 4 apart, of channels `from` to `until` of a group:
 * to[point][tile][channel], where a tile has `length` channels. `size` is a constant where it is
 * called: 6 for images, 4 for gradients by a result, which are the images of c. */
OW_WITHIN void ow_winograd_read_tiles(const int size, const ow_winograd *w, const ow_conv *c,
                                      int64_t group, int64_t from, int64_t until, int64_t first,
                                      int64_t end, float *to, int64_t length, float *memory)
{
    const int64_t point = ow_winograd_point(end - first, length),
                  most = (4 * w->across + 2) * OW_LANES;
    const int plain = c->at[4] == 4 && c->at[3] >= 0 && c->at[1] >= 0 && c->at[0] >= 0;
    const char *limit = plain ? c->pixels + (c->batch - 1) * c->at[0] +
                                    (c->groups * c->channels - 1) * c->at[1] +
                                    (c->image[1] - 1) * c->at[3] + c->image[2] * 4
                              : NULL;
    float *rows = memory, *half = memory + 6 * most;
    for (int64_t i = from; i < until; i += OW_LANES) {
        const int64_t some = until - i < OW_LANES ? until - i : OW_LANES;
        for (int64_t t = first; t < end;) {
            const ow_tile_run r = ow_winograd_run(w, t, end);
            const int64_t n = 4 * r.n + size - 4, x0 = 4 * r.x - c->pad[2],
                          y0 = 4 * r.y - c->pad[1];
            const char *image =
                c->pixels + r.image * c->at[0] + (group * c->channels + i) * c->at[1];
            for (int y = 0; y < size; y++)
                ow_winograd_read(c, image, some, y0 + y, x0, n, limit, rows + y * most);
            for (int64_t x = 0; x < n; x++) {
                const float *p = rows + x * OW_LANES;
                ow_wv v[6], d[6];
                for (int y = 0; y < size; y++)
                    d[y] = ow_wv_at(p + y * most);
                if (size == 6)
                    ow_winograd_in(v, d[0], d[1], d[2], d[3], d[4], d[5]);
                else
                    ow_winograd_top(v, d[0], d[1], d[2], d[3]);
                for (int y = 0; y < 6; y++)
                    ow_wv_put(half + y * most + x * OW_LANES, v[y]);
            }
            for (int64_t k = 0; k < r.n; k++)
                for (int y = 0; y < 6; y++) {
                    const float *p = half + y * most + 4 * k * OW_LANES;
                    float *place = to + 6 * y * point + (t - first + k) * length + i - from;
                    ow_wv v[6], d[6];
                    for (int x = 0; x < size; x++)
                        d[x] = ow_wv_at(p + x * OW_LANES);
                    if (size == 6)
                        ow_winograd_in(v, d[0], d[1], d[2], d[3], d[4], d[5]);
                    else
                        ow_winograd_top(v, d[0], d[1], d[2], d[3]);
                    for (int x = 0; x < 6; x++)
                        ow_wv_put(place + x * point, v[x]);
                }
            t += r.n;
        }
    }
}

/* Transform sums[point][tile][output] of outputs `from` to `to` back, and write them to the
 * results. */
static void ow_winograd_results(const ow_winograd *w, int64_t group, int64_t first, int64_t end,
                                int64_t from, int64_t to, const float *sums, float *memory)
{
    const ow_conv *c = w->c;
    const int64_t length = (to - from + OW_WIDE - 1) / OW_WIDE * OW_WIDE;
    const int64_t point = ow_winograd_point(end - first, length);
    const int64_t most = (4 * w->across + OW_LANES) * OW_LANES;
    ow_wv zeros = {0}; /* the results times 0: one that is not finite leaves nan */
    for (int64_t o = from; o < to; o += OW_LANES) {
        const int64_t some = to - o < OW_LANES ? to - o : OW_LANES;
        for (int64_t t = first; t < end;) {
            const ow_tile_run r = ow_winograd_run(w, t, end);
            for (int64_t k = 0; k < r.n; k++) {
                const float *p = sums + (t - first + k) * length + o - from;
                ow_wv half[6][4], y[4];
                for (int x = 0; x < 6; x++)
                    ow_winograd_out(half[x], ow_wv_at(p + x * point), ow_wv_at(p + (6 + x) * point),
                                    ow_wv_at(p + (12 + x) * point), ow_wv_at(p + (18 + x) * point),
                                    ow_wv_at(p + (24 + x) * point), ow_wv_at(p + (30 + x) * point));
                for (int row = 0; row < 4; row++) {
                    ow_winograd_out(y, half[0][row], half[1][row], half[2][row], half[3][row],
                                    half[4][row], half[5][row]);
                    for (int x = 0; x < 4; x++) {
                        zeros += y[x] * 0.0f;
                        ow_wv_put(memory + row * most + (4 * k + x) * OW_LANES, y[x]);
                    }
                }
            }
            /* here the results of `some` outputs at the places of r are complete */
            const int64_t x = 4 * r.x, n = c->out[2] - x < 4 * r.n ? c->out[2] - x : 4 * r.n;
            for (int64_t y = 4 * r.y; y < 4 * r.y + 4 && y < c->out[1]; y++)
                ow_winograd_write(memory + (y - 4 * r.y) * most, n, some,
                                  (float *)c->results +
                                      ((r.image * c->groups + group) * c->outputs + o) * c->places +
                                      y * c->out[2] + x,
                                  c->places);
            t += r.n;
        }
    }
    for (int lane = 0; lane < OW_LANES; lane++)
        if (zeros[lane] != 0)
            __atomic_store_n(w->not_finite, 1, __ATOMIC_RELAXED);
}

/* Panels of outputs that are computed together: their sums stay in the second cache. */
#define OW_WINOGRAD_PANELS 4

static void ow_winograd_block(const ow_winograd *w, int64_t group, int64_t first, int64_t end,
                              int64_t from, int64_t to, char *memory)
{
    const ow_conv *c = w->c;
    const int64_t tiles = end - first, channels = c->channels,
                  in = ow_winograd_point(tiles, w->channels);
    float *pixels = (float *)memory, *sums = pixels + OW_POINTS * in;
    float *rest = sums + OW_POINTS * ow_winograd_point(tiles, OW_WINOGRAD_PANELS * OW_WIDE);
    ow_winograd_read_tiles(6, w, c, group, 0, channels, first, end, pixels, w->channels, rest);
    for (int64_t panel = from; panel < to; panel += OW_WINOGRAD_PANELS) {
        const int64_t until = panel + OW_WINOGRAD_PANELS < to ? panel + OW_WINOGRAD_PANELS : to;
        const int64_t length = (until - panel) * OW_WIDE, out = ow_winograd_point(tiles, length);
        for (int k = 0; k < OW_POINTS; k++)
            for (int64_t i = 0; i < channels; i += OW_SUM_BLOCK) {
                const int64_t some = channels - i < OW_SUM_BLOCK ? channels - i : OW_SUM_BLOCK;
                for (int64_t j = panel; j < until; j++) {
                    const float *y = w->kernels + (group * OW_POINTS + k) * w->point +
                                     (j * channels + i) * OW_WIDE;
                    ow_panel_f32(2, tiles, OW_WIDE, some, 1, pixels + k * in + i, w->channels, 1, y,
                                 OW_WIDE, i ? 1 : 0, sums + k * out + (j - panel) * OW_WIDE,
                                 length);
                }
            }
        const int64_t last = until * OW_WIDE < c->outputs ? until * OW_WIDE : c->outputs;
        ow_winograd_results(w, group, first, end, panel * OW_WIDE, last, sums, rest);
    }
}

/* --- gradients by kernels --------------------------------------------------------------------- */

/* Add sums over tiles `first` to `end` to sums[point][output][channel]. */
static void ow_winograd_add_tiles(const ow_winograd_sums *q, int64_t first, int64_t end, int add,
                                  float *sums, float *memory)
{
    const ow_winograd *w = q->w;
    const int64_t tiles = end - first, wide = q->wide, high = q->high;
    const int64_t in = ow_winograd_point(tiles, wide), of_top = ow_winograd_point(tiles, high);
    const int64_t point = ow_winograd_point(q->outputs, wide);
    float *pixels = memory, *top = pixels + OW_POINTS * in, *rest = top + OW_POINTS * of_top;
    ow_winograd_read_tiles(6, w, w->c, q->group, q->channel, q->channel + q->channels, first, end,
                           pixels, wide, rest);
    ow_winograd_read_tiles(4, w, w->top, q->group, q->output, q->output + q->outputs, first, end,
                           top, high, rest);
    for (int k = 0; k < OW_POINTS; k++)
        for (int64_t t = 0; t < tiles; t += OW_SUM_BLOCK) {
            const int64_t some = tiles - t < OW_SUM_BLOCK ? tiles - t : OW_SUM_BLOCK;
            for (int64_t j = 0; j < wide; j += OW_WIDE) {
                const int vectors = wide - j > OW_LANES ? 2 : 1;
                ow_panel_f32(vectors, q->outputs, vectors * OW_LANES, some, 1,
                             top + k * of_top + t * high, 1, high, pixels + k * in + t * wide + j,
                             wide, add || t ? 1 : 0, sums + k * point + j, wide);
            }
        }
}

/* Transform the sums back, and write them to the gradients. */
static void ow_winograd_put_kernels(const ow_winograd_sums *q, const float *sums)
{
    const ow_conv *c = q->w->c;
    const int64_t wide = q->wide, point = ow_winograd_point(q->outputs, wide);
    for (int64_t o = 0; o < q->outputs; o++) {
        float *to =
            q->to + ((q->group * c->outputs + q->output + o) * c->channels + q->channel) * 9;
        for (int64_t i = 0; i < q->channels; i += OW_LANES) {
            const int64_t some = q->channels - i < OW_LANES ? q->channels - i : OW_LANES;
            const float *p = sums + o * wide + i;
            ow_wv half[6][3], y[3];
            float taps[9][OW_LANES] __attribute__((aligned(64)));
            for (int x = 0; x < 6; x++)
                ow_winograd_taps(half[x], ow_wv_at(p + x * point), ow_wv_at(p + (6 + x) * point),
                                 ow_wv_at(p + (12 + x) * point), ow_wv_at(p + (18 + x) * point),
                                 ow_wv_at(p + (24 + x) * point), ow_wv_at(p + (30 + x) * point));
            for (int row = 0; row < 3; row++) {
                ow_winograd_taps(y, half[0][row], half[1][row], half[2][row], half[3][row],
                                 half[4][row], half[5][row]);
                for (int x = 0; x < 3; x++)
                    ow_wv_put(taps[c->flip ? 8 - 3 * row - x : 3 * row + x], y[x]);
            }
            for (int64_t l = 0; l < some; l++)
                for (int k = 0; k < 9; k++)
                    to[(i + l) * 9 + k] = taps[k][l];
        }
    }
}

static void ow_winograd_sum(const ow_winograd_sums *q, int64_t first, int64_t end, char *memory)
{
    float *sums = (float *)memory,
          *rest = sums + OW_POINTS * ow_winograd_point(q->outputs, q->wide);
    for (int64_t t = first; t < end; t += q->most)
        ow_winograd_add_tiles(q, t, end - t < q->most ? end : t + q->most, t > first, sums, rest);
    ow_winograd_put_kernels(q, sums);
}

#undef OW_WIDE
