/* Kinds of steps over whole arrays: elementwise loops, reductions, rows, views. */
#include "kinds.h"

#include "elemwise.h"
#include "reduce.h"
#include "rowwise.h"
#include "taken.h"
#include "view.h"

const ow_kind ow_kinds_of_arrays[] = {
    {"elemwise", sizeof(ow_elemwise_params), ow_elemwise_prep, ow_elemwise_run,
     OW_STATIC | OW_TOTAL},
    {"dimshuffle", sizeof(ow_dimshuffle_params), ow_dimshuffle_prep, ow_run_nothing,
     OW_STATIC | OW_TOTAL},
    {"alias", 0, ow_alias_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"rebroadcast", sizeof(ow_rebroadcast_params), ow_rebroadcast_prep, ow_run_nothing,
     OW_STATIC | OW_TOTAL},
    {"specify_shape", 0, ow_specify_shape_prep, ow_run_nothing, OW_STATIC | OW_TOTAL, .reads = 1},
    {"deepcopy", 0, ow_deepcopy_prep, ow_deepcopy_run, OW_STATIC | OW_TOTAL},
    {"reshape", 0, ow_reshape_prep, ow_reshape_run, OW_STATIC | OW_TOTAL, .reads = 1},
    {"shape_i", sizeof(ow_axis_params), ow_shape_i_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"shape", 0, ow_shape_prep, ow_run_nothing, OW_STATIC | OW_TOTAL},
    {"make_vector", 0, ow_make_vector_prep, ow_make_vector_run, OW_STATIC | OW_TOTAL},
    {"alloc", sizeof(ow_alloc_params), ow_alloc_prep, ow_alloc_run, 0},
    {"alloc_empty", sizeof(ow_alloc_params), ow_alloc_shape, ow_run_nothing, 0},
    {"subtensor", sizeof(ow_subtensor_params), ow_prep_nothing, ow_subtensor_run, 0},
    {"reduce", sizeof(ow_reduce_params), ow_reduce_prep, ow_reduce_run, OW_STATIC | OW_TOTAL},
    {"elemwise_taken", sizeof(ow_elemwise_params), ow_elemwise_taken_prep, ow_elemwise_taken_run,
     OW_STATIC | OW_CHECKED, .check = ow_elemwise_taken_check, .reads = 1},
    {"reduce_taken", sizeof(ow_reduce_params), ow_reduce_taken_prep, ow_reduce_taken_run,
     OW_STATIC | OW_CHECKED, .check = ow_reduce_taken_check, .reads = 1},
    {"rowwise", sizeof(ow_rowwise_params), ow_rowwise_prep, ow_rowwise_run, OW_STATIC | OW_TOTAL},
    {"argmax", sizeof(ow_argmax_params), ow_argmax_prep, ow_argmax_run, OW_STATIC | OW_TOTAL},
    {"first_along", sizeof(ow_first_along_params), ow_first_along_prep, ow_first_along_run,
     OW_STATIC | OW_TOTAL},
    {NULL, 0, NULL, NULL, 0},
};

ow_loop const ow_interpreter = ow_interpret;

int (*ow_compile_on_demand)(ow_on_demand *);

const char *ow_argmaxer_name(int i) { return i < ow_argmaxer_count ? ow_argmaxers[i].name : NULL; }
