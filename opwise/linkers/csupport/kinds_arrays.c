/* Kinds of steps over whole arrays: elementwise loops, reductions, rows, views. */
#include "kinds.h"

#include "elemwise.h"
#include "reduce.h"
#include "rowwise.h"
#include "view.h"

const ow_kind ow_kinds_of_arrays[] = {
    {"elemwise", ow_elemwise_prep, ow_elemwise_run, OW_STATIC | OW_TOTAL},
    {"dimshuffle", ow_dimshuffle_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"alias", ow_alias_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"rebroadcast", ow_rebroadcast_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"deepcopy", ow_deepcopy_prep, ow_deepcopy_run, OW_STATIC | OW_TOTAL},
    {"reshape", ow_reshape_prep, ow_reshape_run, OW_STATIC | OW_TOTAL, .reads = 1},
    {"shape_i", ow_shape_i_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"shape", ow_shape_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"make_vector", ow_make_vector_prep, ow_make_vector_run, OW_STATIC | OW_TOTAL},
    {"alloc", ow_alloc_prep, ow_alloc_run, 0},
    {"alloc_empty", ow_alloc_shape, ow_run_nothing, 0},
    {"subtensor", ow_prep_nothing, ow_subtensor_run, 0},
    {"reduce", ow_reduce_prep, ow_reduce_run, OW_STATIC | OW_TOTAL},
    {"rowwise", ow_rowwise_prep, ow_rowwise_run, OW_STATIC | OW_TOTAL},
    {"argmax", ow_argmax_prep, ow_argmax_run, OW_STATIC | OW_TOTAL},
    {"first_along", ow_first_along_prep, ow_first_along_run, OW_STATIC | OW_TOTAL},
    {NULL, NULL, NULL, 0},
};

ow_loop const ow_interpreter = ow_interpret;

int (*ow_compile_on_demand)(ow_on_demand *);

const char *ow_argmaxer_name(int i)
{
    return i < ow_argmaxer_count ? ow_argmaxers[i].name : NULL;
}
