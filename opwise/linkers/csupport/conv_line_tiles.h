/* What convolutions compute over lines (conv_lines.h), for one type of elements, after
 * line_vectors.h.
 * Vectors run along the lines, so that an element of a kernel is a shift of the same line: nothing
 * is gathered, and no matrix of what the kernel meets is written. */

#if OW_VECTOR == 64
#define OW_DOT_ROWS 4
#define OW_DOT_COLUMNS 6
#define OW_SLIDE_MOST(rows) ((rows) <= 2 ? 8 : 6)
#else
#define OW_DOT_ROWS 3
#define OW_DOT_COLUMNS 4
#define OW_SLIDE_MOST(rows) ((rows) == 1 ? 8 : (rows) == 2 ? 4 : 3)
#endif

/* z[r, j] = sum over the terms of g[r] and of the line of column j; `rows` and `columns` are
 * constants where it is called. */
OW_WITHIN void OW_N(ow_dot_tile)(const int rows, const int columns, const ow_line_dots *q,
                                 const OW_T *g, const int64_t *offset, OW_T *z)
{
    enum { MOST = (OW_DOT_ROWS * OW_DOT_COLUMNS + 16) / 16 * 16 };
    OW_N(ow_line_vec) c[MOST];
    for (int i = 0; i < MOST; i++)
        c[i] = (OW_N(ow_line_vec)){0};
    for (int64_t b = 0; b < q->images; b++) {
        const OW_T *x = (const OW_T *)q->x + b * q->x_image, *y = g + b * q->g_image;
        for (int64_t p = 0; p < q->terms; p += OW_LANES) {
            OW_N(ow_line_vec) a[OW_DOT_ROWS];
            for (int r = 0; r < rows; r++)
                a[r] = *(const OW_N(ow_line_vec) *)(y + r * q->g_row + p);
            for (int j = 0; j < columns; j++) {
                const OW_N(ow_line_vec) f = *(const OW_N(ow_line_vec) *)(x + offset[j] + p);
                for (int r = 0; r < rows; r++)
                    c[r * columns + j] += a[r] * f;
            }
        }
    }
    OW_T sums[MOST];
#pragma GCC unroll 8
    for (int first = 0; first < rows * columns; first += OW_LANES) {
        OW_N(ow_line_vec) *v = c + first;
        OW_ADD_UP(16)
        OW_ADD_UP(8)
        OW_ADD_UP(4)
        OW_ADD_UP(2)
        memcpy(sums + first, v, sizeof(*v));
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < columns; j++)
            z[r * q->zr + j] =
                q->add ? z[r * q->zr + j] + sums[r * columns + j] : sums[r * columns + j];
}

#define OW_DOTS(R, J)                                                                              \
    case R * 8 + J:                                                                                \
        OW_N(ow_dot_tile)(R, J, q, g, q->offset + j, z + j);                                       \
        break;
#if OW_VECTOR == 64
#define OW_DOTS_ROWS(R)                                                                            \
    OW_DOTS(R, 1) OW_DOTS(R, 2) OW_DOTS(R, 3) OW_DOTS(R, 4) OW_DOTS(R, 5) OW_DOTS(R, 6)
#else
#define OW_DOTS_ROWS(R) OW_DOTS(R, 1) OW_DOTS(R, 2) OW_DOTS(R, 3) OW_DOTS(R, 4)
#endif

/* All rows and columns, in tiles of nearly the same size. */
static void OW_N(ow_conv_dots)(const ow_line_dots *q, int64_t rows, int64_t columns)
{
    const int64_t down = (rows + OW_DOT_ROWS - 1) / OW_DOT_ROWS;
    const int64_t along = (columns + OW_DOT_COLUMNS - 1) / OW_DOT_COLUMNS;
    for (int64_t outer = 0; outer < (q->by_columns ? along : down); outer++)
        for (int64_t inner = 0; inner < (q->by_columns ? down : along); inner++) {
            const int64_t r = q->by_columns ? inner : outer, c = q->by_columns ? outer : inner;
            const int64_t i = rows * r / down, j = columns * c / along;
            const int64_t high = rows * (r + 1) / down - i, wide = columns * (c + 1) / along - j;
            const OW_T *g = (const OW_T *)q->g + i * q->g_row;
            OW_T *z = (OW_T *)q->z + i * q->zr;
            switch (high * 8 + wide) {
                OW_DOTS_ROWS(1)
                OW_DOTS_ROWS(2)
                OW_DOTS_ROWS(3)
#if OW_DOT_ROWS > 3
                OW_DOTS_ROWS(4)
#endif
            }
        }
}

/* z[r] = sum over k of w[r, k] and of the line shifted by offset[k], for some vectors of the
 * line. */
OW_WITHIN void OW_N(ow_slide_tile)(const int rows, const int vectors, const ow_slide *q,
                                   const OW_T *x, const OW_T *w, OW_T *z)
{
    OW_N(ow_line_vec) c[4][8];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            c[r][v] = (OW_N(ow_line_vec)){0};
    for (int64_t k = 0; k < q->taps; k++) {
        const OW_T *at = x + q->offset[k];
        OW_N(ow_line_vec) a[8];
        for (int v = 0; v < vectors; v++)
            a[v] = *(const OW_N(ow_line_vec) *)(at + v * OW_LANES);
        for (int r = 0; r < rows; r++) {
            const OW_T f = w[r * q->wr + k];
            for (int v = 0; v < vectors; v++)
                c[r][v] += f * a[v];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            *(OW_N(ow_line_vec) *)(z + r * q->zr + v * OW_LANES) = c[r][v];
}

#define OW_SLIDES(R)                                                                               \
    case R:                                                                                        \
        for (; p + OW_SLIDE_MOST(R) * OW_LANES <= terms; p += OW_SLIDE_MOST(R) * OW_LANES)         \
            OW_N(ow_slide_tile)(R, OW_SLIDE_MOST(R), q, x + p, w, z + p);                          \
        for (; p + OW_SLIDE_MOST(R) / 2 * OW_LANES <= terms; p += OW_SLIDE_MOST(R) / 2 * OW_LANES) \
            OW_N(ow_slide_tile)(R, OW_SLIDE_MOST(R) / 2, q, x + p, w, z + p);                      \
        for (; p < terms; p += OW_LANES)                                                           \
            OW_N(ow_slide_tile)(R, 1, q, x + p, w, z + p);                                         \
        break;

/* All rows; `terms` is rounded up to whole vectors. */
static void OW_N(ow_conv_slide)(const ow_slide *q, int64_t rows, int64_t terms)
{
    const OW_T *x = (const OW_T *)q->x, *w = (const OW_T *)q->w;
    OW_T *z = (OW_T *)q->z;
    for (int64_t down = (rows + 3) / 4; down > 0; down--) {
        const int64_t high = (rows + down - 1) / down;
        int64_t p = 0;
        switch (high) {
            OW_SLIDES(1) OW_SLIDES(2) OW_SLIDES(3) OW_SLIDES(4)
        }
        rows -= high;
        w += high * q->wr;
        z += high * q->zr;
    }
}

#undef OW_DOT_ROWS
#undef OW_DOT_COLUMNS
#undef OW_SLIDE_MOST
#undef OW_DOTS
#undef OW_DOTS_ROWS
#undef OW_SLIDES
