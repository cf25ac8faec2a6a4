/* Reductions, and built-in loops of floats. */
#include "simd_part.h"

#include "reducers_body.h"

#include "scalar.h"
#include "special.h" /* after scalar.h */

#include "borrowed.h"
#include "loops_float_body.h"

void OW_FILL(sums)(ow_simd *t)
{
    t->reducers = ow_reducer_rows;
    t->reducer_count = ow_reducer_rows_count;
    t->float_loops = ow_float_loop_rows;
    t->float_loop_count = ow_float_loop_count;
}
