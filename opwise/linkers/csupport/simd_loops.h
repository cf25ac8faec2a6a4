/* Built-in loops of real numbers. */
#include "simd_part.h"

#include "scalar.h"
#include "special.h" /* after scalar.h */

#include "borrowed.h"
#include "loops_body.h"

void OW_FILL(loops)(ow_simd *t)
{
    t->loops = ow_real_loop_rows;
    t->loop_count = ow_real_loop_count;
}
