/* Depthwise convolutions and their gradients, for one type of elements: OW_T, of which OW_S is the
 * short name: a kernel for each channel, which meets that channel only.
 * Vectors hold channels: planes are transposed when they are read and when they are written, so
 * that small planes fill vectors too, and no sum goes across a vector. Of each plane there is a
 * copy with its pads. */

#define OW_AT_ONCE 8 /* sums that stay in registers */

/* Pixels of one plane among those of the copies: row, column. */
typedef struct OW_N(ow_dw_frame) {
    OW_N(ow_vec) *to;
    int64_t high, wide;  /* of the copy */
    int64_t down, right; /* where pixel (0, 0) lies in it */
} OW_N(ow_dw_frame);

OW_WITHIN void OW_N(ow_dw_put)(const OW_N(ow_dw_frame) *f, int64_t y, int64_t x, OW_N(ow_vec) v)
{
    y += f->down;
    x += f->right;
    if (y >= 0 && y < f->high && x >= 0 && x < f->wide)
        f->to[y * f->wide + x] = v;
}

/* Copy the planes of `some` channels, `apart` bytes from each other. at: bytes between rows and
 * pixels. */
static void OW_N(ow_dw_read)(const char *from, int64_t apart, int64_t some, const int64_t *lengths,
                             const int64_t *at, const OW_N(ow_dw_frame) *f)
{
    const int64_t item = sizeof(OW_T), rows = lengths[0], columns = lengths[1];
    const int flat = at[1] == item && at[0] == columns * item;
    const int64_t run = flat ? rows * columns : columns;
    for (int64_t first = 0; first < rows * columns; first += run) {
        const char *line = from + first / columns * at[0];
        int64_t y = first / columns, x = 0, i = 0;
        for (; at[1] == item && run >= OW_LANES && i < run; i += OW_LANES) {
            if (i + OW_LANES > run) { /* the last vector begins earlier */
                i = run - OW_LANES;
                y = (first + i) / columns;
                x = (first + i) % columns;
            }
            OW_N(ow_vec) v[OW_LANES];
            for (int l = 0; l < OW_LANES; l++) /* lanes without a channel are not used */
                v[l] = *(const OW_N(ow_vec) *)(line + (l < some ? l : 0) * apart + i * item);
            OW_N(ow_transpose)(v);
            for (int l = 0; l < OW_LANES; l++) {
                OW_N(ow_dw_put)(f, y, x, v[l]);
                if (++x == columns) {
                    x = 0;
                    y++;
                }
            }
        }
        for (; i < run; i++) {
            OW_N(ow_vec) v = {0};
            for (int l = 0; l < some; l++)
                v[l] = *(const OW_T *)(line + l * apart + i * at[1]);
            OW_N(ow_dw_put)(f, y, x, v);
            if (++x == columns) {
                x = 0;
                y++;
            }
        }
    }
}

/* Write n numbers of each of `some` channels, `apart` elements from each other. */
static void OW_N(ow_dw_write)(const OW_N(ow_vec) *from, int64_t n, int64_t some, OW_T *to,
                              int64_t apart)
{
    int64_t i = 0;
    for (; n >= OW_LANES && i < n; i += OW_LANES) {
        i = i + OW_LANES > n ? n - OW_LANES : i;
        OW_N(ow_vec) v[OW_LANES];
        for (int l = 0; l < OW_LANES; l++)
            v[l] = from[i + l];
        OW_N(ow_transpose)(v);
        for (int l = 0; l < some; l++)
            *(OW_N(ow_vec) *)(to + l * apart + i) = v[l];
    }
    for (; i < n; i++)
        for (int l = 0; l < some; l++)
            to[l * apart + i] = from[i][l];
}

/* The kernels of some channels: tap by tap, as their offsets grow. */
static void OW_N(ow_dw_kernels)(const ow_conv *c, int64_t channel, int64_t some, OW_N(ow_vec) *to)
{
    const OW_T *from = (const OW_T *)c->kernels + channel * c->elements;
    for (int64_t k = 0; k < c->elements; k++) {
        OW_N(ow_vec) v = {0};
        for (int l = 0; l < some; l++)
            v[l] = from[l * c->elements + (c->flip ? c->elements - 1 - k : k)];
        to[k] = v;
    }
}

/* sums[j] = the sum over a grid of y by x of a[y, x] b[y, x, j], where a lies `down` and b `rows`
 * vectors from row to row, b `columns` from column to column, and `next` from j to the next of
 * `count`, a constant where it is called. */
OW_WITHIN void OW_N(ow_dw_sums)(const int count, int64_t high, int64_t wide, const OW_N(ow_vec) *a,
                                int64_t down, const OW_N(ow_vec) *b, int64_t rows, int64_t columns,
                                int64_t next, OW_N(ow_vec) *sums)
{
    OW_N(ow_vec) s[OW_AT_ONCE];
    for (int j = 0; j < count; j++)
        s[j] = (OW_N(ow_vec)){0};
    for (int64_t y = 0; y < high; y++, a += down, b += rows)
        for (int64_t x = 0; x < wide; x++) {
            const OW_N(ow_vec) w = a[x], *from = b + x * columns;
            for (int j = 0; j < count; j++)
                s[j] += w * from[j * next];
        }
    for (int j = 0; j < count; j++)
        sums[j] = s[j];
}

#define OW_DW_CASE(N)                                                                              \
    case N:                                                                                        \
        OW_N(ow_dw_sums)(N, high, wide, a, down, b, rows, columns, next, sums);                    \
        break;
static void OW_N(ow_dw_some)(int64_t count, int64_t high, int64_t wide, const OW_N(ow_vec) *a,
                             int64_t down, const OW_N(ow_vec) *b, int64_t rows, int64_t columns,
                             int64_t next, OW_N(ow_vec) *sums)
{
    switch (count) {
        OW_DW_CASE(1)
        OW_DW_CASE(2)
        OW_DW_CASE(3)
        OW_DW_CASE(4)
        OW_DW_CASE(5)
        OW_DW_CASE(6)
        OW_DW_CASE(7)
        OW_DW_CASE(8)
    }
}
#undef OW_DW_CASE

/* Channels `channel` to `channel + some` of images `first` to `end`. */
static void OW_N(ow_depthwise)(const ow_depthwise *q, int64_t channel, int64_t some, int64_t first,
                               int64_t end, char *memory)
{
    const ow_conv *c = q->c;
    const int64_t high = c->kernel[1], wide = c->kernel[2];
    const OW_N(ow_dw_frame) f = {(OW_N(ow_vec) *)memory, q->high, q->wide, c->pad[1], c->pad[2]};
    OW_N(ow_vec) *kernels = f.to + q->high * q->wide, *z = kernels + c->elements;
    memset(memory, 0, (size_t)(q->high * q->wide * OW_VECTOR));
    OW_N(ow_dw_kernels)(c, channel, some, kernels);
    for (int64_t b = first; b < end; b++) {
        OW_N(ow_dw_read)(c->pixels + b * c->at[0] + channel * c->at[1], c->at[1], some,
                         c->image + 1, c->at + 3, &f);
        const int64_t parts = (c->out[2] + OW_AT_ONCE - 1) / OW_AT_ONCE;
        for (int64_t y = 0; y < c->out[1]; y++)
            for (int64_t part = 0, x = 0; part < parts; part++) {
                const int64_t until = c->out[2] * (part + 1) / parts;
                OW_N(ow_dw_some)(until - x, high, wide, kernels, wide,
                                 f.to + y * c->stride[1] * q->wide + x * c->stride[2],
                                 c->dilation[1] * q->wide, c->dilation[2], c->stride[2],
                                 z + y * c->out[2] + x);
                x = until;
            }
        OW_N(ow_dw_write)(z, c->places, some,
                          (OW_T *)c->results + (b * c->groups + channel) * c->places, c->places);
    }
}

/* The gradient by images, to which each place of a result adds. */
static void OW_N(ow_depthwise_images)(const ow_depthwise *q, int64_t channel, int64_t some,
                                      int64_t first, int64_t end, char *memory)
{
    const ow_conv *c = q->c;
    const int64_t pixels = c->image[1] * c->image[2];
    OW_N(ow_vec) *sums = (OW_N(ow_vec) *)memory, *kernels = sums + q->high * q->wide,
                 *g = kernels + c->elements;
    OW_N(ow_vec) *z = g + c->places;
    const OW_N(ow_dw_frame) f = {g, c->out[1], c->out[2], 0, 0};
    OW_N(ow_dw_kernels)(c, channel, some, kernels);
    for (int64_t b = first; b < end; b++) {
        memset(sums, 0, (size_t)(q->high * q->wide * OW_VECTOR));
        OW_N(ow_dw_read)(q->top + b * q->at[0] + channel * q->at[1], q->at[1], some, c->out + 1,
                         q->at + 3, &f);
        for (int64_t y = 0; y < c->out[1]; y++)
            for (int64_t x = 0; x < c->out[2]; x++) {
                const OW_N(ow_vec) v = g[y * c->out[2] + x], *w = kernels;
                OW_N(ow_vec) *to = sums + y * c->stride[1] * q->wide + x * c->stride[2];
                for (int64_t i = 0; i < c->kernel[1]; i++, to += c->dilation[1] * q->wide)
                    for (int64_t j = 0; j < c->kernel[2]; j++)
                        to[j * c->dilation[2]] += v * *w++;
            }
        for (int64_t y = 0; y < c->image[1]; y++)
            memcpy(z + y * c->image[2], sums + (y + c->pad[1]) * q->wide + c->pad[2],
                   (size_t)(c->image[2] * OW_VECTOR));
        OW_N(ow_dw_write)(z, pixels, some, (OW_T *)c->pixels + (b * c->groups + channel) * pixels,
                          pixels);
    }
}

/* The gradient by kernels. Sums over some rows are added up at a time. */
static void OW_N(ow_depthwise_kernels)(const ow_depthwise *q, int64_t channel, int64_t some,
                                       int64_t first, int64_t end, char *memory)
{
    const ow_conv *c = q->c;
    const OW_N(ow_dw_frame) f = {(OW_N(ow_vec) *)memory, q->high, q->wide, c->pad[1], c->pad[2]};
    OW_N(ow_vec) *total = f.to + q->high * q->wide, *g = total + c->elements;
    const OW_N(ow_dw_frame) of_top = {g, c->out[1], c->out[2], 0, 0};
    const int64_t most = 256 / c->out[2] < 1 ? 1 : 256 / c->out[2];
    const int64_t parts = (c->kernel[2] + OW_AT_ONCE - 1) / OW_AT_ONCE;
    memset(memory, 0, (size_t)((q->high * q->wide + c->elements) * OW_VECTOR));
    for (int64_t b = first; b < end; b++) {
        OW_N(ow_dw_read)(c->pixels + b * c->at[0] + channel * c->at[1], c->at[1], some,
                         c->image + 1, c->at + 3, &f);
        OW_N(ow_dw_read)(q->top + b * q->at[0] + channel * q->at[1], q->at[1], some, c->out + 1,
                         q->at + 3, &of_top);
        for (int64_t y = 0; y < c->out[1]; y += most)
            for (int64_t i = 0; i < c->kernel[1]; i++)
                for (int64_t part = 0, j = 0; part < parts; part++) {
                    const int64_t until = c->kernel[2] * (part + 1) / parts;
                    OW_N(ow_vec) sums[OW_AT_ONCE];
                    OW_N(ow_dw_some)(until - j, c->out[1] - y < most ? c->out[1] - y : most,
                                     c->out[2], g + y * c->out[2], c->out[2],
                                     f.to + (y * c->stride[1] + i * c->dilation[1]) * q->wide +
                                         j * c->dilation[2],
                                     c->stride[1] * q->wide, c->stride[2], c->dilation[2], sums);
                    for (int64_t k = 0; k < until - j; k++)
                        total[i * c->kernel[2] + j + k] += sums[k];
                    j = until;
                }
    }
    OW_T *to = (OW_T *)c->kernels + channel * c->elements;
    for (int64_t k = 0; k < c->elements; k++)
        for (int l = 0; l < some; l++)
            to[l * c->elements + (c->flip ? c->elements - 1 - k : k)] = total[k][l];
}

#undef OW_AT_ONCE
