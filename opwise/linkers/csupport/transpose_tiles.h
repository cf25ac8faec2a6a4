/* Transposes tiles of elements of OW_BITS bits, in squares of vectors of OW_VECTOR bytes. */
#include "vectors.h"

#define OW_LINE ((int)(64 / sizeof(OW_T)))

/* Ask for the columns that come OW_ASKED after those of a block. */
OW_WITHIN void OW_N(ow_transpose_ask)(const ow_tile *t, int64_t k)
{
    for (int64_t m = k + OW_ASKED; m < k + OW_ASKED + OW_LINE; m++) {
        const int here = m < t->columns;
        if (!here && !t->next)
            return;
        const char *from =
            here ? t->from + m * t->from_step : t->next + (m - t->columns) * t->from_step;
        for (int64_t at = 0; at < t->rows * (int64_t)sizeof(OW_T); at += 64)
            __builtin_prefetch(from + at);
    }
}

OW_WITHIN void OW_N(ow_transpose_square)(const ow_tile *t, int64_t row, int64_t column)
{
    const char *from = t->from + column * t->from_step + row * (int64_t)sizeof(OW_T);
    char *to = t->to + row * t->to_step + column * (int64_t)sizeof(OW_T);
    OW_N(ow_vec) v[OW_LANES];
    for (int m = 0; m < OW_LANES; m++)
        v[m] = *(const OW_N(ow_vec) *)(from + m * t->from_step);
    OW_N(ow_transpose)(v);
    for (int m = 0; m < OW_LANES; m++)
        *(OW_N(ow_vec) *)(to + m * t->to_step) = v[m];
}

/* Blocks of whole cache lines on both sides, so that each is there until all of it is done. */
static void OW_N(ow_transpose_tile)(const ow_tile *given)
{
    const ow_tile copy = *given, *const t = &copy; /* which no store can change */
    const int64_t rows = t->rows, columns = t->columns;
    if (rows < OW_LANES || columns < OW_LANES) {
        for (int64_t k = 0; k < columns; k++)
            for (int64_t r = 0; r < rows; r++)
                ((OW_T *)(t->to + r * t->to_step))[k] =
                    ((const OW_T *)(t->from + k * t->from_step))[r];
        return;
    }
    for (int64_t k = 0; k < columns; k += OW_LINE) {
        OW_N(ow_transpose_ask)(t, k);
        for (int64_t r = 0; r < rows; r += OW_LINE)
            for (int64_t column = k; column < columns && column < k + OW_LINE; column += OW_LANES)
                for (int64_t row = r; row < rows && row < r + OW_LINE; row += OW_LANES)
                    /* the last squares of a side overlap those before them */
                    OW_N(ow_transpose_square)(t, row + OW_LANES <= rows ? row : rows - OW_LANES,
                                              column + OW_LANES <= columns ? column
                                                                           : columns - OW_LANES);
    }
}

#undef OW_LINE
