/* Sorting one row of numbers by keys: unsigned integers in the order of the numbers, NaN last.
 * Positions are sorted with their keys, as one integer with the key in the upper half, so equal
 * keys keep their order. Rows of up to OW_RANKED items are sorted by counting for each how many
 * come before it, without branches; longer ones by numpy's vector instructions or merged from such
 * blocks, or, from RADIX items on, distributed by one byte of the keys after another. Up to
 * ow_sort_wide items numpy's instructions are faster, too. */

typedef unsigned __int128 ow_u128;

/* Let keys[i] be the key of element i of n, in steps of `st`; for -1 of `flip`, of the opposite
 * order. */
#define OW_KEYS_OF(NAME, K, T, KEY)                                                                \
    static void NAME(const char *x, int64_t st, int64_t n, K flip, K *keys)                        \
    {                                                                                              \
        if (st == sizeof(T))                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T v = ((const T *)x)[i];                                                     \
                keys[i] = (K)(KEY) ^ flip;                                                         \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T v = *(const T *)(x + i * st);                                              \
                keys[i] = (K)(KEY) ^ flip;                                                         \
            }                                                                                      \
    }

static inline uint32_t ow_key_of_f32(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return v != v ? UINT32_MAX : bits ^ ((uint32_t)((int32_t)bits >> 31) | (uint32_t)1 << 31);
}

static inline uint64_t ow_key_of_f64(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return v != v ? UINT64_MAX : bits ^ ((uint64_t)((int64_t)bits >> 63) | (uint64_t)1 << 63);
}

#define OW_SIGN32 ((uint32_t)1 << 31)
#define OW_SIGN64 ((uint64_t)1 << 63)
OW_KEYS_OF(ow_keys_u8, uint32_t, uint8_t, v)
OW_KEYS_OF(ow_keys_u16, uint32_t, uint16_t, v)
OW_KEYS_OF(ow_keys_u32, uint32_t, uint32_t, v)
OW_KEYS_OF(ow_keys_i8, uint32_t, int8_t, (uint32_t)v ^ OW_SIGN32)
OW_KEYS_OF(ow_keys_i16, uint32_t, int16_t, (uint32_t)v ^ OW_SIGN32)
OW_KEYS_OF(ow_keys_i32, uint32_t, int32_t, (uint32_t)v ^ OW_SIGN32)
OW_KEYS_OF(ow_keys_u64, uint64_t, uint64_t, v)
OW_KEYS_OF(ow_keys_i64, uint64_t, int64_t, (uint64_t)v ^ OW_SIGN64)
OW_KEYS_OF(ow_keys_f32, uint32_t, float, ow_key_of_f32(v))
OW_KEYS_OF(ow_keys_f64, uint64_t, double, ow_key_of_f64(v))
static inline uint32_t ow_key_of_f16(uint16_t bits)
{
    const uint32_t key = (uint32_t)bits ^ (bits & 0x8000 ? 0xffffu : 0x8000u);
    return (bits & 0x7fff) > 0x7c00 ? UINT32_MAX : key;
}
OW_KEYS_OF(ow_keys_f16, uint32_t, uint16_t, ow_key_of_f16(v))
/* -0.0 is equal to 0.0 */
OW_KEYS_OF(ow_keys_f16_equal, uint32_t, uint16_t, ow_key_of_f16(v == 0x8000 ? 0 : v))
OW_KEYS_OF(ow_keys_f32_equal, uint32_t, float, ow_key_of_f32(v + 0.0f))
OW_KEYS_OF(ow_keys_f64_equal, uint64_t, double, ow_key_of_f64(v + 0.0))

static void ow_keys_32(const ow_sorting *j, const char *x, int64_t st, uint32_t flip,
                       uint32_t *keys)
{
    if (j->typenum == OW_FLOAT_TYPENUM)
        (j->positions ? ow_keys_f32_equal : ow_keys_f32)(x, st, j->n, flip, keys);
    else if (j->typenum == OW_HALF_TYPENUM)
        (j->positions ? ow_keys_f16_equal : ow_keys_f16)(x, st, j->n, flip, keys);
    else if (j->typenum % 2)
        (j->itemsize == 1   ? ow_keys_i8
         : j->itemsize == 2 ? ow_keys_i16
                            : ow_keys_i32)(x, st, j->n, flip, keys);
    else
        (j->itemsize == 1   ? ow_keys_u8
         : j->itemsize == 2 ? ow_keys_u16
                            : ow_keys_u32)(x, st, j->n, flip, keys);
}

static void ow_keys_64(const ow_sorting *j, const char *x, int64_t st, uint64_t flip,
                       uint64_t *keys)
{
    if (j->typenum == OW_DOUBLE_TYPENUM)
        (j->positions ? ow_keys_f64_equal : ow_keys_f64)(x, st, j->n, flip, keys);
    else
        (j->typenum % 2 ? ow_keys_i64 : ow_keys_u64)(x, st, j->n, flip, keys);
}

/* Write a number whose key this is. */
static inline void ow_put_key_32(const ow_sorting *j, char *to, uint32_t key)
{
    if (j->typenum == OW_FLOAT_TYPENUM)
        key ^= (uint32_t)~((int32_t)key >> 31) | OW_SIGN32;
    else if (j->typenum == OW_HALF_TYPENUM)
        key ^= key & 0x8000 ? 0x8000u : 0xffffu;
    else if (j->typenum % 2)
        key ^= OW_SIGN32;
    if (j->itemsize == 4)
        memcpy(to, &key, 4);
    else if (j->itemsize == 2)
        *(uint16_t *)to = (uint16_t)key;
    else
        *(uint8_t *)to = (uint8_t)key;
}

static inline void ow_put_key_64(const ow_sorting *j, char *to, uint64_t key)
{
    if (j->typenum == OW_DOUBLE_TYPENUM)
        key ^= (uint64_t)~((int64_t)key >> 63) | OW_SIGN64;
    else if (j->typenum % 2)
        key ^= OW_SIGN64;
    memcpy(to, &key, 8);
}

/* Let rank[i] be how many of n <= OW_RANKED keys come before key i; `keys` has room for
 * OW_RANKED. */
#define OW_RANK_LANES 16
#define OW_RANK(NAME, K)                                                                           \
    typedef K NAME##_lanes __attribute__((vector_size(OW_VECTOR)));                                \
    static void NAME(const K *keys, int n, K *rank)                                                \
    {                                                                                              \
        enum { LANES = OW_VECTOR / sizeof(K) };                                                    \
        NAME##_lanes lane;                                                                         \
        for (int i = 0; i < LANES; i++)                                                            \
            lane[i] = (K)i;                                                                        \
        for (int first = 0; first < n; first += LANES) {                                           \
            NAME##_lanes here, count = {0};                                                        \
            memcpy(&here, keys + first, sizeof(here));                                             \
            for (int k = 0; k < n; k++) {                                                          \
                const NAME##_lanes key = keys[k] - (NAME##_lanes){0};                              \
                const NAME##_lanes before =                                                        \
                    (NAME##_lanes)(key < here) |                                                   \
                    ((NAME##_lanes)(key == here) & (NAME##_lanes)(lane + (K)first > (K)k));        \
                count -= before;                                                                   \
            }                                                                                      \
            memcpy(rank + first, &count, sizeof(count));                                           \
        }                                                                                          \
    }
OW_RANK(ow_rank_32, uint32_t)
OW_RANK(ow_rank_64, uint64_t)

/* Sort n items T by K, their upper bits; `low` is the lowest byte of a key in an item. Returns
 * where the sorted items are: in `items` or in `spare`, which has the same room. */
#define OW_SORT_ITEMS(S, T, K, RANK, KEY, SMALL, RADIX)                                            \
    static inline void ow_merge_##S(const T *a, int64_t m, const T *b, int64_t l, T *out)          \
    {                                                                                              \
        const T *p = a, *q = b, *aend = a + m, *bend = b + l;                                      \
        if (m == l) {                                                                              \
            const T *pe = aend - 1, *qe = bend - 1;                                                \
            T *oe = out + 2 * m - 1;                                                               \
            for (int64_t i = 0; i < m; i++) {                                                      \
                const int t = *q < *p, u = *qe < *pe;                                              \
                *out++ = *(t ? q : p);                                                             \
                q += t;                                                                            \
                p += 1 - t;                                                                        \
                *oe-- = *(u ? pe : qe);                                                            \
                pe -= u;                                                                           \
                qe -= 1 - u;                                                                       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        while (p < aend && q < bend) {                                                             \
            const int t = *q < *p;                                                                 \
            *out++ = *(t ? q : p);                                                                 \
            q += t;                                                                                \
            p += 1 - t;                                                                            \
        }                                                                                          \
        memcpy(out, p, (size_t)((char *)aend - (char *)p));                                        \
        memcpy(out + (aend - p), q, (size_t)((char *)bend - (char *)q));                           \
    }                                                                                              \
    static T *ow_distribute_##S(T *items, T *spare, int64_t n, int low, int alone)                 \
    {                                                                                              \
        uint32_t count[sizeof(K)][256];                                                            \
        const int bytes = (int)sizeof(T) - low;                                                    \
        memset(count, 0, sizeof(count[0]) * (size_t)bytes);                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const K key = (K)(items[i] >> 8 * low);                                                \
            for (int b = 0; b < bytes; b++)                                                        \
                count[b][key >> 8 * b & 255]++;                                                    \
        }                                                                                          \
        for (int b = 0; b < bytes; b++) {                                                          \
            const int shift = 8 * (b + low);                                                       \
            uint32_t at = 0;                                                                       \
            if (count[b][(int)(items[0] >> shift & 255)] == (uint32_t)n)                           \
                continue; /* all have this byte */                                                 \
            if (alone && ow_should_stop())                                                         \
                return items;                                                                      \
            for (int v = 0; v < 256; v++) {                                                        \
                const uint32_t these = count[b][v];                                                \
                count[b][v] = at;                                                                  \
                at += these;                                                                       \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                spare[count[b][(int)(items[i] >> shift & 255)]++] = items[i];                      \
            T *sorted = spare;                                                                     \
            spare = items;                                                                         \
            items = sorted;                                                                        \
        }                                                                                          \
        return items;                                                                              \
    }                                                                                              \
    static T *ow_sort_items_##S(T *items, T *spare, int64_t n, int low, int alone)                 \
    {                                                                                              \
        K keys[OW_RANKED] = {0}, rank[OW_RANKED];                                                  \
        const int64_t block = n <= OW_RANKED ? OW_RANKED : OW_RANK_LANES;                          \
        if (n > RADIX && !(SMALL && n <= ow_sort_wide))                                            \
            return ow_distribute_##S(items, spare, n, low, alone);                                 \
        if (n > OW_RANKED && SMALL) {                                                              \
            ((ow_sort_in_place_fn)SMALL)(items, n, NULL);                                          \
            return items;                                                                          \
        }                                                                                          \
        for (int64_t first = 0; first < n; first += block) {                                       \
            const int some = (int)(n - first < block ? n - first : block);                         \
            for (int i = 0; i < some; i++)                                                         \
                keys[i] = (K)KEY(items[first + i]);                                                \
            RANK(keys, some, rank);                                                                \
            for (int i = 0; i < some; i++)                                                         \
                spare[first + (int64_t)rank[i]] = items[first + i];                                \
        }                                                                                          \
        T *from = spare, *to = items;                                                              \
        for (int64_t run = block; run < n; run *= 2) {                                             \
            for (int64_t first = 0; first < n; first += 2 * run) {                                 \
                const int64_t rest = n - first, m = rest < run ? rest : run;                       \
                const int64_t l = rest - m < run ? rest - m : run;                                 \
                ow_merge_##S(from + first, m, from + first + m, l, to + first);                    \
            }                                                                                      \
            T *sorted = to;                                                                        \
            to = from;                                                                             \
            from = sorted;                                                                         \
        }                                                                                          \
        return from;                                                                               \
    }
#define OW_WHOLE(item) (item)
#define OW_UPPER(item) ((item) >> 64)
OW_SORT_ITEMS(u32, uint32_t, uint32_t, ow_rank_32, OW_WHOLE, ow_sort_in_place[0], 512)
OW_SORT_ITEMS(u64, uint64_t, uint64_t, ow_rank_64, OW_WHOLE, ow_sort_in_place[1], 512)
OW_SORT_ITEMS(u128, ow_u128, uint64_t, ow_rank_64, OW_UPPER, NULL, 128)

/* A row of up to OW_RANKED elements: each goes where its rank says. */
#define OW_SORT_SHORT(NAME, K, KEYS, RANK, PUT)                                                    \
    static void NAME(const ow_sorting *j, const char *x, char *to)                                 \
    {                                                                                              \
        K keys[OW_RANKED] = {0}, rank[OW_RANKED];                                                  \
        KEYS(j, x, j->in, 0, keys);                                                                \
        RANK(keys, (int)j->n, rank);                                                               \
        for (int i = 0; i < (int)j->n; i++)                                                        \
            if (!j->positions)                                                                     \
                PUT(j, to + (int64_t)rank[i] * j->out, keys[i]);                                   \
            else                                                                                   \
                *(int64_t *)(to + (int64_t)rank[i] * j->out) = i;                                  \
    }
OW_SORT_SHORT(ow_sort_short_32, uint32_t, ow_keys_32, ow_rank_32, ow_put_key_32)
OW_SORT_SHORT(ow_sort_short_64, uint64_t, ow_keys_64, ow_rank_64, ow_put_key_64)

/* Let items have the keys above and the positions below; `room` is behind the items. */
static void ow_items_64(const ow_sorting *j, const char *x, int64_t st, uint32_t flip,
                        uint64_t *items, void *room)
{
    uint32_t *keys = room;
    ow_keys_32(j, x, st, flip, keys);
    for (int64_t i = 0; i < j->n; i++)
        items[i] = (uint64_t)keys[i] << 32 | (uint64_t)i;
}

static void ow_items_128(const ow_sorting *j, const char *x, int64_t st, uint64_t flip,
                         ow_u128 *items, void *room)
{
    uint64_t *keys = room;
    ow_keys_64(j, x, st, flip, keys);
    for (int64_t i = 0; i < j->n; i++)
        items[i] = (ow_u128)keys[i] << 64 | (uint64_t)i;
}

/* Sort a row, or write the positions of its elements in sorted order. */
static void ow_sort_row(const ow_sorting *j, const char *x, char *to, char *room)
{
    const int64_t n = j->n;
    if (n <= OW_RANKED) {
        (j->itemsize == 8 ? ow_sort_short_64 : ow_sort_short_32)(j, x, to);
        return;
    }
    if (j->positions && j->itemsize == 8) {
        ow_u128 *items = (ow_u128 *)room;
        ow_items_128(j, x, j->in, 0, items, items + n);
        items = ow_sort_items_u128(items, items + n, n, 8, j->alone);
        for (int64_t i = 0; i < n; i++)
            *(int64_t *)(to + i * j->out) = (int64_t)items[i];
    } else if (j->positions) {
        uint64_t *items = (uint64_t *)room;
        ow_items_64(j, x, j->in, 0, items, items + n);
        items = ow_sort_items_u64(items, items + n, n, 4, j->alone);
        for (int64_t i = 0; i < n; i++)
            *(int64_t *)(to + i * j->out) = (int64_t)(uint32_t)items[i];
    } else if (j->itemsize == 8) {
        uint64_t *items = (uint64_t *)room;
        ow_keys_64(j, x, j->in, 0, items);
        items = ow_sort_items_u64(items, items + n, n, 0, j->alone);
        for (int64_t i = 0; i < n; i++)
            ow_put_key_64(j, to + i * j->out, items[i]);
    } else {
        uint32_t *items = (uint32_t *)room;
        ow_keys_32(j, x, j->in, 0, items);
        items = ow_sort_items_u32(items, items + n, n, 0, j->alone);
        for (int64_t i = 0; i < n; i++)
            ow_put_key_32(j, to + i * j->out, items[i]);
    }
}

/* The positions of the k smallest of n keys in their order, equal ones by position: those found so
 * far are kept sorted, and most keys are compared only with the last of them. */
#define OW_SELECT_BLOCK 32
#define OW_SELECT(NAME, K)                                                                         \
    static void NAME(const K *keys, int64_t n, int64_t k, K *best, int64_t *where)                 \
    {                                                                                              \
        int64_t found = 0;                                                                         \
        for (int64_t first = 0; first < n; first += OW_SELECT_BLOCK) {                             \
            const int64_t end = n - first < OW_SELECT_BLOCK ? n : first + OW_SELECT_BLOCK;         \
            if (found == k && end - first == OW_SELECT_BLOCK) {                                    \
                const K last = best[k - 1];                                                        \
                K any = 0;                                                                         \
                for (int i = 0; i < OW_SELECT_BLOCK; i++)                                          \
                    any |= (K)(keys[first + i] < last);                                            \
                if (!any)                                                                          \
                    continue;                                                                      \
            }                                                                                      \
            for (int64_t i = first; i < end; i++) {                                                \
                if (found == k && keys[i] >= best[k - 1])                                          \
                    continue;                                                                      \
                int64_t at = found < k ? found++ : k - 1;                                          \
                for (; at > 0 && best[at - 1] > keys[i]; at--) {                                   \
                    best[at] = best[at - 1];                                                       \
                    where[at] = where[at - 1];                                                     \
                }                                                                                  \
                best[at] = keys[i];                                                                \
                where[at] = i;                                                                     \
            }                                                                                      \
        }                                                                                          \
    }
OW_SELECT(ow_select_32, uint32_t)
OW_SELECT(ow_select_64, uint64_t)

/* Write the positions of the k smallest elements of a row, or, where `flip`, of the largest, from
 * the last to the first of equal ones. `where` has room for k positions. */
static void ow_select_row(const ow_sorting *j, const char *x, int64_t *where, char *room)
{
    const int64_t n = j->n, k = j->k;
    /* the largest are the smallest of the flipped keys, counted from the end */
    const int64_t st = j->flip ? -j->in : j->in;
    const char *first = j->flip ? x + (n - 1) * j->in : x;
    if (k <= OW_SELECTED && j->itemsize == 8) {
        uint64_t best[OW_SELECTED], *keys = (uint64_t *)room;
        ow_keys_64(j, first, st, j->flip ? UINT64_MAX : 0, keys);
        ow_select_64(keys, n, k, best, where);
    } else if (k <= OW_SELECTED) {
        uint32_t best[OW_SELECTED], *keys = (uint32_t *)room;
        ow_keys_32(j, first, st, j->flip ? UINT32_MAX : 0, keys);
        ow_select_32(keys, n, k, best, where);
    } else if (j->itemsize == 8) {
        ow_u128 *items = (ow_u128 *)room;
        ow_items_128(j, first, st, j->flip ? UINT64_MAX : 0, items, items + n);
        items = ow_sort_items_u128(items, items + n, n, 8, j->alone);
        for (int64_t i = 0; i < k; i++)
            where[i] = (int64_t)items[i];
    } else {
        uint64_t *items = (uint64_t *)room;
        ow_items_64(j, first, st, j->flip ? UINT32_MAX : 0, items, items + n);
        items = ow_sort_items_u64(items, items + n, n, 4, j->alone);
        for (int64_t i = 0; i < k; i++)
            where[i] = (int64_t)(uint32_t)items[i];
    }
    for (int64_t i = 0; i < k && j->flip; i++)
        where[i] = n - 1 - where[i];
    if (!j->sorted) {
        const uint64_t *by_position =
            ow_sort_items_u64((uint64_t *)where, (uint64_t *)room, k, 0, 0);
        if (by_position != (uint64_t *)where)
            memcpy(where, by_position, sizeof(int64_t) * (size_t)k);
    }
}
