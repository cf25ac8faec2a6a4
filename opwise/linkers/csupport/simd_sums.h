/* Reductions. */
#include "simd_part.h"

#include "reducers_body.h"

void OW_FILL(sums)(ow_simd *t)
{
    t->reducers = ow_reducer_rows;
    t->reducer_count = ow_reducer_rows_count;
}
