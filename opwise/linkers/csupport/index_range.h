/* Which rows vectors of indices lead to, and errors about those that lead to none. */
#ifndef OW_INDEX_RANGE_H
#define OW_INDEX_RANGE_H

#include "runtime.h"
#include "simd_targets.h"
#include "step_params.h"

/* Compiled for wider vectors, too: which function runs is decided when the library is loaded. */
#ifdef OW_X86_VECTORS
#define OW_CLONED __attribute__((noinline, target_clones("avx2", "default")))
#else
#define OW_CLONED
#endif

/* About how long it takes to find a part by an index, and to look whether there is one. */
#define OW_INDEX_NS 2.0
#define OW_INSIDE_NS 0.2

/* The row of `rows` that index k leads to. */
static inline int ow_row_index(ow_step *s, const ow_slot *index, int64_t k, int axis, int64_t rows,
                               int64_t *row)
{
    char *data = index->data + k * index->strides[0];
    int64_t i;
    if (index->itemsize == 8)
        i = *(int64_t *)data; /* numpy takes the bits of a uint64 for those of a signed number */
    else {
        ow_slot item = *index;
        item.data = data;
        i = ow_int(&item);
    }
    const int64_t at = i < 0 ? i + rows : i;
    if (at < 0 || at >= rows)
        return OW_FAIL(
            s, OW_INDEX_ERROR,
            "index out of bounds: index %lld is out of bounds for axis %d with size %lld",
            (long long)i, axis, (long long)rows);
    *row = at;
    return OW_OK;
}

/* Whether some indices lead to no row, and whether some count from the end. */
typedef struct ow_fit {
    char outside, negative;
} ow_fit;

/* Of n indices for `rows` rows. If i + rows or rows - 1 - i is negative, i is outside: the signs of
 * all are joined, which takes no comparison for each. */
#define OW_INSIDE(T)                                                                               \
    {                                                                                              \
        int64_t outside = 0, negative = 0;                                                         \
        if (step == sizeof(T))                                                                     \
            for (int64_t k = 0; k < n; k++) {                                                      \
                const int64_t i = (int64_t)((const T *)index)[k];                                  \
                outside |= (i + rows) | (rows - 1 - i);                                            \
                negative |= i;                                                                     \
            }                                                                                      \
        else                                                                                       \
            for (int64_t k = 0; k < n; k++) {                                                      \
                const int64_t i = (int64_t)*(const T *)(index + k * step);                         \
                outside |= (i + rows) | (rows - 1 - i);                                            \
                negative |= i;                                                                     \
            }                                                                                      \
        return (ow_fit){outside < 0, negative < 0};                                                \
    }

static inline OW_CLONED ow_fit ow_inside(const char *index, int64_t step, int itemsize,
                                         int is_unsigned, int64_t n, int64_t rows)
{
    if (itemsize == 8) /* numpy takes the bits of a uint64 for those of a signed number */
        OW_INSIDE(int64_t)
    if (itemsize == 4 && is_unsigned)
        OW_INSIDE(uint32_t)
    if (itemsize == 4)
        OW_INSIDE(int32_t)
    if (itemsize == 2 && is_unsigned)
        OW_INSIDE(uint16_t)
    if (itemsize == 2)
        OW_INSIDE(int16_t)
    if (is_unsigned)
        OW_INSIDE(uint8_t)
    OW_INSIDE(int8_t)
}
#undef OW_INSIDE

/* In so many parts at most is a vector of indices looked through. */
#define OW_INDEX_PARTS 64

typedef struct ow_inside_job {
    const ow_slot *index;
    int64_t rows, parts;
    ow_fit found[OW_INDEX_PARTS];
} ow_inside_job;

static inline void ow_inside_part(void *arg, int64_t k)
{
    ow_inside_job *j = arg;
    const ow_slot *c = j->index;
    int64_t end, first = ow_chunk_range(k, j->parts, c->shape[0], 1, &end);
    j->found[k] = ow_inside(ow_at(c->data, first, c->strides[0]), c->strides[0], c->itemsize,
                            c->typenum % 2 == 0, end - first, j->rows);
}

/* How a vector of indices for `rows` rows fits; `bounds`: what is known of it, or NULL. */
static inline ow_fit ow_index_fit(const ow_slot *index, const ow_index_bounds *bounds, int64_t rows)
{
    if (bounds && bounds->known)
        return (ow_fit){bounds->least <= bounds->most &&
                            (bounds->least < -rows || bounds->most >= rows),
                        bounds->least < 0};
    const int64_t parts = ow_chunks(OW_INSIDE_NS * (double)index->shape[0]);
    ow_inside_job j = {index, rows, parts < OW_INDEX_PARTS ? parts : OW_INDEX_PARTS, {{0, 0}}};
    ow_fit all = {0, 0};
    ow_parallel(ow_inside_part, &j, j.parts);
    for (int64_t k = 0; k < j.parts; k++) {
        all.outside |= j.found[k].outside;
        all.negative |= j.found[k].negative;
    }
    return all;
}

/* Fail with the first index of a vector, for axis `axis`, that leads to none of `rows` rows. */
static inline int ow_index_outside(ow_step *s, const ow_slot *index, int axis, int64_t rows)
{
    int64_t row;
    for (int64_t k = 0; k < index->shape[0]; k++) {
        const int rc = ow_row_index(s, index, k, axis, rows, &row);
        if (rc)
            return rc;
    }
    return OW_OK;
}

#endif
