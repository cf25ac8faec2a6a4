/* Rows of a table that are copied, or added to, at given offsets. Each lies somewhere else in
 * memory, so the next ones are fetched meanwhile. */

#define OW_TABLE_LINE 64    /* bytes that are fetched at once */
#define OW_AHEAD_BYTES 4096 /* about how much is fetched ahead, */
#define OW_AHEAD_ROWS 16    /* of at most so many rows; */
#define OW_AHEAD_START 1024 /* only the beginning of each: the processor foresees the rest */

/* How many rows of `bytes` to fetch ahead. */
OW_WITHIN int64_t ow_rows_ahead(int64_t bytes)
{
    const int64_t rows = OW_AHEAD_BYTES / (bytes < OW_AHEAD_START ? bytes + 1 : OW_AHEAD_START);
    return rows < OW_AHEAD_ROWS ? rows : OW_AHEAD_ROWS;
}

/* Fetch row k of n, if there is one, to read it or to write it too. */
#define OW_FETCH_ROW(table, offset, k, n, bytes, writes)                                           \
    if ((k) < (n)) {                                                                               \
        const char *row_ = (table) + (offset)[k];                                                  \
        const int64_t much_ = (bytes) < OW_AHEAD_START ? (bytes) : OW_AHEAD_START;                 \
        for (int64_t b_ = 0; b_ < much_; b_ += OW_TABLE_LINE)                                      \
            __builtin_prefetch(row_ + b_, writes);                                                 \
        __builtin_prefetch(row_ + much_ - 1, writes);                                              \
    }

/* Copy `bytes` that do not overlap: most rows are too short for a call of memcpy to pay. */
OW_WITHIN void ow_copy_row(char *restrict to, const char *restrict from, int64_t bytes)
{
    int64_t b = 0;
    if (bytes > 2 * OW_AHEAD_START) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (; b + OW_VECTOR <= bytes; b += OW_VECTOR)
        __builtin_memcpy(to + b, from + b, OW_VECTOR);
    for (; b + 8 <= bytes; b += 8)
        __builtin_memcpy(to + b, from + b, 8);
    for (; b < bytes; b++)
        to[b] = from[b];
}

/* Rows of these few bytes: without a loop for each. */
#define OW_FEW_BYTES(BYTES)                                                                        \
    case BYTES:                                                                                    \
        for (int64_t k = 0; k < n; k++)                                                            \
            __builtin_memcpy(to + k * step, from + offset[k], BYTES);                              \
        return;

static void ow_take_rows(char *to, int64_t step, const char *from, const int64_t *offset, int64_t n,
                         int64_t bytes)
{
    const int64_t ahead = ow_rows_ahead(bytes);
    switch (bytes) {
        OW_FEW_BYTES(1)
        OW_FEW_BYTES(2)
        OW_FEW_BYTES(4)
        OW_FEW_BYTES(8)
        OW_FEW_BYTES(12)
        OW_FEW_BYTES(16)
        OW_FEW_BYTES(32)
    }
    for (int64_t k = 0; k < ahead; k++)
        OW_FETCH_ROW(from, offset, k, n, bytes, 0)
    for (int64_t k = 0; k < n; k++) {
        OW_FETCH_ROW(from, offset, k + ahead, n, bytes, 0)
        ow_copy_row(to + k * step, from + offset[k], bytes);
    }
}
#undef OW_FEW_BYTES

static void ow_set_rows(char *to, const int64_t *offset, const char *from, int64_t step, int64_t n,
                        int64_t bytes)
{
    const int64_t ahead = ow_rows_ahead(bytes);
    for (int64_t k = 0; k < n; k++) {
        OW_FETCH_ROW(to, offset, k + ahead, n, bytes, 1)
        ow_copy_row(to + offset[k], from + k * step, bytes);
    }
}

#define OW_ADD_ROWS(T, S)                                                                          \
    static void ow_add_rows_##S(char *to, const int64_t *offset, const char *from, int64_t step,   \
                                int64_t n, int64_t size)                                           \
    {                                                                                              \
        const int64_t bytes = size * (int64_t)sizeof(T), ahead = ow_rows_ahead(bytes);             \
        for (int64_t k = 0; k < n; k++) {                                                          \
            T *restrict z = (T *)(to + offset[k]);                                                 \
            const T *restrict y = (const T *)(from + k * step);                                    \
            OW_FETCH_ROW(to, offset, k + ahead, n, bytes, 1)                                       \
            for (int64_t i = 0; i < size; i++)                                                     \
                z[i] += y[i];                                                                      \
        }                                                                                          \
    }
OW_ADD_ROWS(float, f32)
OW_ADD_ROWS(double, f64)
#undef OW_ADD_ROWS
