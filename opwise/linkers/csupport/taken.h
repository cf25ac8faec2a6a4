/* Loops that take elements from vectors themselves. Such an operand is a table: the loop gets the
 * address of its elements, as if they were a number that is broadcast, and vectors of indices, which
 * are operands like any other and come last. The operand is then element index[k] of the table. */
#ifndef OW_TAKEN_H
#define OW_TAKEN_H

#include "index_range.h"
#include "reduce.h"

/* The operands of a step as its loop sees them: slots of tables, and of indices that are replaced.
 * memory: of what is replaced, for each index, or NULL. */
typedef struct ow_taken {
    ow_slot *in[OW_MAXARG], slots[OW_MAXARG];
    char *memory[OW_MAXARG];
    int64_t copies;
} ow_taken;

static void ow_taken_operands(const ow_step *s, const ow_taken_operand *takes, int64_t count,
                              ow_taken *t)
{
    t->copies = 0;
    memcpy(t->in, s->in, sizeof(ow_slot *) * (size_t)s->nin);
    for (int64_t k = 0; k < count; k++) {
        const ow_slot *x = s->in[takes[k].table];
        ow_slot *c = &t->slots[takes[k].table];
        c->data = x->data;
        c->shape[0] = 1;
        c->strides[0] = 0;
        c->ndim = 1;
        c->itemsize = x->itemsize;
        c->typenum = x->typenum;
        t->in[takes[k].table] = c;
    }
}

/* Fail if lengths differ, of operands that are taken those of their indices. masks: as the loop
 * sees the operands. */
static int ow_taken_lengths(ow_step *s, const ow_taken_operand *takes, int64_t count,
                            const int64_t *masks)
{
    ow_slot **const in = s->in, *own[OW_MAXARG];
    int64_t own_masks[OW_MAXARG], shape[1];
    const int32_t nin = s->nin;
    s->nin = (int32_t)takes[0].at; /* indices are no operands of the user's */
    memcpy(own, in, sizeof(ow_slot *) * (size_t)s->nin);
    memcpy(own_masks, masks, sizeof(int64_t) * (size_t)s->nin);
    for (int64_t k = 0; k < count; k++) {
        own_masks[takes[k].table] = 0;
        own[takes[k].table] = in[takes[k].at];
    }
    s->in = own;
    const int rc = ow_common_shape(s, 1, own_masks, shape);
    s->in = in;
    s->nin = nin;
    return rc;
}

static int ow_taken_prep(ow_step *s, const ow_taken_operand *takes, int64_t count,
                         const int64_t *masks, ow_fn prep)
{
    ow_taken t;
    ow_slot **const in = s->in;
    int rc = ow_taken_lengths(s, takes, count, masks);
    if (rc)
        return rc;
    ow_taken_operands(s, takes, count, &t);
    s->in = t.in;
    rc = prep(s);
    s->in = in;
    return rc;
}

/* The number of the first operand behind `k` that another index takes. */
static int64_t ow_taken_next(const ow_taken_operand *takes, int64_t count, int64_t k)
{
    const int64_t at = takes[k].at;
    while (k < count && takes[k].at == at)
        k++;
    return k;
}

/* Fail if an index is out of range; `negative`, if it is not NULL: what of each index is. */
static int ow_taken_check(ow_step *s, const ow_taken_operand *takes, int64_t count, char *negative)
{
    for (int64_t k = 0, next; k < count; k = next) {
        const ow_slot *index = s->in[takes[k].at];
        int64_t rows = INT64_MAX / 2; /* of the shortest table of this index */
        next = ow_taken_next(takes, count, k);
        for (int64_t j = k; j < next; j++)
            rows = ow_at_most(rows, s->in[takes[j].table]->shape[0]);
        const ow_fit fit = ow_index_fit(index, &takes[k].bounds, rows);
        if (negative)
            negative[k] = fit.negative;
        if (fit.outside) {
            const int rc = ow_index_outside(s, index, 0, rows);
            if (rc)
                return rc;
        }
    }
    return OW_OK;
}

#define OW_ELEMENTS(I, T)                                                                          \
    for (int64_t k = 0; k < n; k++) {                                                              \
        const int64_t i = (int64_t)*(const I *)(index->data + k * index->strides[0]);              \
        ((T *)to)[k] = *(const T *)(x->data + (i < 0 ? i + x->shape[0] : i) * x->strides[0]);      \
    }
#define OW_ELEMENTS_OF(T)                                                                          \
    if (index->itemsize == 8)                                                                      \
        OW_ELEMENTS(int64_t, T)                                                                    \
    else if (index->typenum % 2)                                                                   \
        OW_ELEMENTS(int32_t, T)                                                                    \
    else                                                                                           \
        OW_ELEMENTS(uint32_t, T)                                                                   \
    break;

/* Write the elements of a vector at some indices, which are in range, one after the other. */
static void ow_write_elements(char *to, const ow_slot *x, const ow_slot *index)
{
    const int64_t n = index->shape[0];
    switch (x->itemsize) {
    case 1:
        OW_ELEMENTS_OF(int8_t)
    case 2:
        OW_ELEMENTS_OF(int16_t)
    case 4:
        OW_ELEMENTS_OF(int32_t)
    default:
        OW_ELEMENTS_OF(int64_t)
    }
}
#undef OW_ELEMENTS
#undef OW_ELEMENTS_OF

/* Let the loop read a copy of a table, with another one before it: indices that count from the end
 * lead there. */
static int ow_taken_twice(ow_step *s, int64_t table, ow_taken *t)
{
    ow_slot *const x = s->in[table], flat = *x;
    const int64_t bytes = x->shape[0] * x->itemsize;
    char *memory = ow_alloc(2 * bytes);
    if (!memory)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", 2 * (long long)bytes);
    t->memory[t->copies++] = flat.data = memory;
    flat.strides[0] = x->itemsize;
    ow_copy(&flat, x);
    memcpy(memory + bytes, memory, (size_t)bytes);
    t->slots[table].data = memory + bytes;
    return OW_OK;
}

/* Let the loop take elements from copies of them, one after the other, where tables are too long to
 * copy. k to next: the operands of one index. */
static int ow_taken_apart(ow_step *s, const ow_taken_operand *takes, int64_t k, int64_t next,
                          ow_taken *t)
{
    ow_slot *const given = s->in[takes[k].at], *index = &t->slots[takes[k].at];
    const int64_t n = given->shape[0];
    int64_t bytes = n * given->itemsize + 64;
    for (int64_t j = k; j < next; j++)
        bytes = ow_add_size(bytes, ow_mul_size(n, s->in[takes[j].table]->itemsize) + 64);
    char *memory = ow_alloc(bytes);
    if (!memory)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate %lld bytes", (long long)bytes);
    t->memory[t->copies++] = memory;
    *index = *given;
    index->data = memory;
    index->strides[0] = index->itemsize;
    for (int64_t i = 0; i < n; i++)
        if (index->itemsize == 8)
            ((int64_t *)memory)[i] = i;
        else
            ((int32_t *)memory)[i] = (int32_t)i;
    t->in[takes[k].at] = index;
    memory += ow_round_up(n * given->itemsize, 64);
    for (int64_t j = k; j < next; j++) {
        const ow_slot *x = s->in[takes[j].table];
        t->slots[takes[j].table].data = memory;
        ow_write_elements(memory, x, given);
        memory += ow_round_up(n * x->itemsize, 64);
    }
    return OW_OK;
}

static int ow_taken_run(ow_step *s, const ow_taken_operand *takes, int64_t count, ow_fn run)
{
    ow_taken t;
    ow_slot **const in = s->in;
    char negative[OW_MAXARG];
    int rc = ow_taken_check(s, takes, count, negative);
    s->checked = 0;
    if (rc || ow_should_stop())
        return rc;
    ow_taken_operands(s, takes, count, &t);
    for (int64_t k = 0, next; k < count && !rc; k = next) {
        const int64_t n = in[takes[k].at]->shape[0];
        int apart = 0, copied[OW_MAXARG];
        next = ow_taken_next(takes, count, k);
        for (int64_t j = k; j < next; j++) {
            const ow_slot *x = in[takes[j].table];
            copied[j] = negative[k] || (x->strides[0] != x->itemsize && x->shape[0] > 1);
            apart |= copied[j] && x->shape[0] > n;
        }
        if (!n)
            continue;
        if (apart)
            rc = ow_taken_apart(s, takes, k, next, &t);
        for (int64_t j = k; j < next && !apart && !rc; j++)
            if (copied[j])
                rc = ow_taken_twice(s, takes[j].table, &t);
    }
    s->in = t.in;
    rc = rc ? rc : run(s);
    s->in = in;
    for (int64_t k = 0; k < t.copies; k++)
        ow_free(t.memory[k]);
    return rc;
}

#define OW_TAKEN_KIND(KIND)                                                                        \
    static int ow_##KIND##_taken_prep(ow_step *s)                                                  \
    {                                                                                              \
        const ow_##KIND##_params *p = s->params;                                                   \
        return ow_taken_prep(s, ow_##KIND##_takes(p), p->takes.count, ow_##KIND##_masks(p),        \
                             ow_##KIND##_prep);                                                    \
    }                                                                                              \
    static int ow_##KIND##_taken_check(ow_step *s)                                                 \
    {                                                                                              \
        const ow_##KIND##_params *p = s->params;                                                   \
        return ow_taken_check(s, ow_##KIND##_takes(p), p->takes.count, NULL);                      \
    }                                                                                              \
    static int ow_##KIND##_taken_run(ow_step *s)                                                   \
    {                                                                                              \
        const ow_##KIND##_params *p = s->params;                                                   \
        return ow_taken_run(s, ow_##KIND##_takes(p), p->takes.count, ow_##KIND##_run);             \
    }
OW_TAKEN_KIND(elemwise)
OW_TAKEN_KIND(reduce)
#undef OW_TAKEN_KIND

#endif
