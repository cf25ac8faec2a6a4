/* Products of convolutions, for one type of elements: OW_T, of which OW_S is the short name.
 * As those of gemm_tiles.h, but rows of y lie anywhere: the same pixels are read for each element
 * of a kernel from another place, and need no copy for each. */

#define OW_WIDE (2 * OW_LANES)

OW_WITHIN void OW_N(ow_lifted_term)(const int rows, const int vectors, const OW_T *x, const OW_T *y,
                                    const OW_T *beside, OW_N(ow_vec) (*c)[2])
{
    const OW_N(ow_vec) a = *(const OW_N(ow_vec) *)y, b = *(const OW_N(ow_vec) *)beside;
#if OW_VECTOR == 64
    /* rows of y lie too far apart for the processor to foresee the next columns */
    __builtin_prefetch(y + OW_WIDE);
    if (vectors > 1)
        __builtin_prefetch(y + OW_WIDE + OW_LANES);
#endif
    for (int r = 0; r < rows; r++) {
        const OW_T f = x[r];
        c[r][0] += f * a;
        if (vectors > 1)
            c[r][1] += f * b;
    }
}

OW_WITHIN void OW_N(ow_lifted_tile)(const int rows, const int vectors, int64_t k, const OW_T *x,
                                    const OW_T *y, const int64_t *at, int add, int64_t cols,
                                    OW_T *z, int64_t zr)
{
    OW_N(ow_vec) c[OW_TILE_ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            c[r][v] = (OW_N(ow_vec)){0};
    int64_t p = 0;
#if OW_VECTOR < 64
    /* Fewer instructions beside those that add and multiply make up to a fifth of the time where
     * another thread of the same core runs: four terms a turn, and two addresses that the compiler
     * takes for unrelated, as it would compute one from the other each time. With the widest
     * vectors either costs more than it gains. */
    const OW_T *beside = vectors > 1 ? y + OW_LANES : y;
    __asm__("" : "+r"(beside));
    for (; p + 4 <= k; p += 4, x += 4 * rows)
#pragma GCC unroll 4
        for (int u = 0; u < 4; u++)
            OW_N(ow_lifted_term)(rows, vectors, x + u * rows, y + at[p + u], beside + at[p + u], c);
#endif
    for (; p < k; p++, x += rows)
        OW_N(ow_lifted_term)(rows, vectors, x, y + at[p], y + at[p] + (vectors > 1 ? OW_LANES : 0),
                             c);
    for (int r = 0; r < rows; r++, z += zr)
        if (cols >= vectors * OW_LANES)
            for (int v = 0; v < vectors; v++) {
                OW_N(ow_vec) *place = (OW_N(ow_vec) *)(z + v * OW_LANES);
                *place = add ? *place + c[r][v] : c[r][v];
            }
        else
            for (int64_t j = 0; j < cols; j++) {
                const OW_T value = ((const OW_T *)c[r])[j];
                z[j] = add ? z[j] + value : value;
            }
}

#define OW_ONE_TILE(R)                                                                             \
    case R:                                                                                        \
        if (vectors > 1)                                                                           \
            OW_N(ow_lifted_tile)(R, 2, q->k, x, y, q->rows, q->add, cols, z, q->zr);               \
        else                                                                                       \
            OW_N(ow_lifted_tile)(R, 1, q->k, x, y, q->rows, q->add, cols, z, q->zr);               \
        break;

static void OW_N(ow_lifted)(const ow_lifted *q)
{
    for (int64_t j = 0; j < q->n; j += OW_WIDE) {
        const OW_T *x = (const OW_T *)q->x, *y = (const OW_T *)q->y + j;
        OW_T *z = (OW_T *)q->z + j;
        const int vectors = q->n - j > OW_LANES ? 2 : 1;
        const int64_t cols = q->whole || q->n - j > OW_WIDE ? OW_WIDE : q->n - j;
        int64_t m = q->m;
#if OW_VECTOR < 64
        int64_t ahead = 0;
#endif
        const int64_t all = (m + OW_TILE_ROWS - 1) / OW_TILE_ROWS;
        for (int64_t tiles = all; tiles > 0; tiles--) {
            const int64_t rows = (m + tiles - 1) / tiles;
#if OW_VECTOR < 64
            /* rows of y lie too far apart for the processor to foresee the next columns: with each
             * tile a part of them is fetched, because to fetch all with every tile delayed its own
             * loads */
            for (const int64_t until = q->k * (all - tiles + 1) / all; ahead < until; ahead++) {
                __builtin_prefetch(y + q->rows[ahead] + OW_WIDE);
                __builtin_prefetch(y + q->rows[ahead] + OW_WIDE + OW_LANES);
            }
#endif
            switch (rows) {
                OW_ONE_TILE(1)
                OW_ONE_TILE(2)
                OW_ONE_TILE(3)
                OW_ONE_TILE(4)
#if OW_TILE_ROWS > 4
                OW_ONE_TILE(5)
                OW_ONE_TILE(6)
#endif
#if OW_TILE_ROWS > 6
                OW_ONE_TILE(7)
                OW_ONE_TILE(8)
                OW_ONE_TILE(9)
                OW_ONE_TILE(10)
                OW_ONE_TILE(11)
                OW_ONE_TILE(12)
#endif
            }
            m -= rows;
            x += rows * q->k;
            z += rows * q->zr;
        }
    }
}

/* One tile of ow_pack_rows. Where terms lie side by side all but the last of them are transposed:
 * whole vectors are written, and the next ones overwrite what is too much. */
static void OW_N(ow_pack_tile)(const OW_T *x, int64_t rows, int64_t k, int64_t xr,
                               const int64_t *terms, OW_T *to)
{
    enum { GROUPS = (OW_TILE_ROWS + OW_LANES - 1) / OW_LANES };
    int64_t p = 0;
    for (; terms[k - 1] - terms[0] == k - 1 && p + 2 * OW_LANES <= k; p += OW_LANES) {
        OW_N(ow_vec) v[GROUPS][OW_LANES];
        for (int g = 0; g < GROUPS && g * OW_LANES < rows; g++) {
            for (int l = 0; l < OW_LANES; l++)
                v[g][l] = g * OW_LANES + l < rows
                              ? *(const OW_N(ow_vec) *)(x + (g * OW_LANES + l) * xr + terms[p])
                              : (OW_N(ow_vec)){0};
            OW_N(ow_transpose)(v[g]);
        }
        for (int l = 0; l < OW_LANES; l++, to += rows)
            for (int g = 0; g < GROUPS && g * OW_LANES < rows; g++)
                *(OW_N(ow_vec) *)(to + g * OW_LANES) = v[g][l];
    }
    for (; p < k; p++)
        for (int64_t r = 0; r < rows; r++)
            *to++ = x[r * xr + terms[p]];
}

static void OW_N(ow_pack_rows)(const char *from, int64_t m, int64_t k, int64_t xr,
                               const int64_t *terms, char *into)
{
    const OW_T *x = (const OW_T *)from;
    OW_T *to = (OW_T *)into;
    for (int64_t tiles = (m + OW_TILE_ROWS - 1) / OW_TILE_ROWS; tiles > 0; tiles--) {
        const int64_t rows = (m + tiles - 1) / tiles;
        OW_N(ow_pack_tile)(x, rows, k, xr, terms, to);
        m -= rows;
        x += rows * xr;
        to += rows * k;
    }
}

/* Copy n elements, `s` bytes apart; the compiler knows how to do it for the distances named
 * here. */
static void OW_N(ow_spread)(char *into, const char *from, int64_t s, int64_t n)
{
    OW_T *to = (OW_T *)into;
    const OW_T *p = (const OW_T *)from;
    if (s == sizeof(OW_T)) {
        int64_t i = 0;
        for (; i + OW_LANES <= n; i += OW_LANES)
            *(OW_N(ow_vec) *)(to + i) = *(const OW_N(ow_vec) *)(p + i);
        for (; i < n; i++)
            to[i] = p[i];
    } else if (s == 2 * sizeof(OW_T))
        for (int64_t i = 0; i < n; i++)
            to[i] = p[2 * i];
    else if (s == 4 * sizeof(OW_T))
        for (int64_t i = 0; i < n; i++)
            to[i] = p[4 * i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = *(const OW_T *)(from + i * s);
}

static void OW_N(ow_gather)(const char *from, const ow_conv_piece *pieces, int64_t count,
                            const int64_t *terms, int64_t k, char *into, int64_t step)
{
    OW_T *to = (OW_T *)into;
    for (int64_t p = 0; p < k; p++, to += step) {
        const OW_T *y = (const OW_T *)from + terms[p];
        for (const ow_conv_piece *s = pieces; s < pieces + count; s++)
            for (int64_t i = 0; i < s->n; i += OW_LANES)
                *(OW_N(ow_vec) *)(to + s->column + i) = *(const OW_N(ow_vec) *)(y + s->at + i);
    }
}

#undef OW_WIDE
#undef OW_ONE_TILE
