/* Products of convolutions, for one type of elements: OW_T, of which OW_S is the short name.
 *
 * As those of gemm_tiles.h, but rows of y lie anywhere: the same pixels are read for each element of a
 * kernel from another place, and need no copy for each.
 */

#define OW_LANES ((int)(OW_VECTOR / sizeof(OW_T)))
#define OW_WIDE (2 * OW_LANES)

OW_WITHIN void OW_N(ow_lifted_tile)(const int rows, const int vectors, int64_t k, const OW_T *x,
                                    const OW_T *y, const int64_t *at, int add, int64_t cols, OW_T *z,
                                    int64_t zr)
{
    OW_N(ow_vec) c[OW_TILE_ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            c[r][v] = (OW_N(ow_vec)){0};
    for (int64_t p = 0; p < k; p++, x += rows) {
        const OW_T *from = y + at[p];
        OW_N(ow_vec) a = *(const OW_N(ow_vec) *)from;
        OW_N(ow_vec) b = vectors > 1 ? *(const OW_N(ow_vec) *)(from + OW_LANES) : a;
        for (int r = 0; r < rows; r++) {
            OW_T f = x[r];
            c[r][0] += f * a;
            if (vectors > 1)
                c[r][1] += f * b;
        }
    }
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
        for (int64_t tiles = (m + OW_TILE_ROWS - 1) / OW_TILE_ROWS; tiles > 0; tiles--) {
            const int64_t rows = (m + tiles - 1) / tiles;
            switch (rows) {
                OW_ONE_TILE(1) OW_ONE_TILE(2) OW_ONE_TILE(3) OW_ONE_TILE(4)
#if OW_TILE_ROWS > 4
                OW_ONE_TILE(5) OW_ONE_TILE(6)
#endif
#if OW_TILE_ROWS > 6
                OW_ONE_TILE(7) OW_ONE_TILE(8) OW_ONE_TILE(9) OW_ONE_TILE(10) OW_ONE_TILE(11)
                OW_ONE_TILE(12)
#endif
            }
            m -= rows;
            x += rows * q->k;
            z += rows * q->zr;
        }
    }
}

static void OW_N(ow_pack_rows)(const char *from, int64_t m, int64_t k, int64_t xr,
                               const int64_t *terms, char *into)
{
    const OW_T *x = (const OW_T *)from;
    OW_T *to = (OW_T *)into;
    for (int64_t tiles = (m + OW_TILE_ROWS - 1) / OW_TILE_ROWS; tiles > 0; tiles--) {
        const int64_t rows = (m + tiles - 1) / tiles;
        for (int64_t p = 0; p < k; p++) {
            const OW_T *at = x + terms[p];
            for (int64_t r = 0; r < rows; r++)
                *to++ = at[r * xr];
        }
        m -= rows;
        x += rows * xr;
    }
}

#undef OW_LANES
#undef OW_WIDE
#undef OW_ONE_TILE
