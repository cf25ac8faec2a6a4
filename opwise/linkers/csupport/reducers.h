/* Reductions of plain elements, one for each operation, element type and accumulator type. */
#ifndef OW_REDUCERS_H
#define OW_REDUCERS_H

#include <stdint.h>

typedef struct ow_reducer {
    const char *name;    /* operation_element_accumulator */
    int accsize;
    const void *start;   /* what an accumulator begins with */
    /* operands: accumulators, elements. Accumulators that stand still take a whole run. */
    void (*loop)(const void *ctx, char **p, const long long *stride, long long n);
    int needs_elements;  /* 1 where an empty reduction has no value */
} ow_reducer;

extern const ow_reducer ow_reducers[];
extern const int ow_reducer_count;

#endif
