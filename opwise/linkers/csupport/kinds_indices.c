/* Kinds of steps that take, put, join, sort and search elements. */
#include "kinds.h"

#include "cumulate.h"
#include "diagonal.h"
#include "index.h"
#include "pick.h"
#include "selection.h"
#include "sort.h"

const ow_kind ow_kinds_of_indices[] = {
    {"inc_subtensor", sizeof(ow_inc_subtensor_params), ow_inc_subtensor_prep, ow_inc_subtensor_run,
     OW_STATIC | OW_CHECKED, .check = ow_inc_subtensor_check, .reads = 2},
    {"take_parts", 0, ow_take_parts_prep, ow_take_parts_run, OW_STATIC,
     .check = ow_take_parts_check, .reads = 1},
    {"inc_parts", sizeof(ow_inc_parts_params), ow_inc_parts_prep, ow_inc_parts_run,
     OW_STATIC | OW_CHECKED, .check = ow_inc_parts_check, .reads = 2},
    {"pick", sizeof(ow_pick_params), ow_prep_nothing, ow_pick_run, 0},
    {"put_picked", sizeof(ow_put_picked_params), ow_put_picked_prep, ow_put_picked_run,
     OW_STATIC | OW_CHECKED, .check = ow_put_picked_check, .reads = 2},
    {"join", sizeof(ow_axis_params), ow_join_prep, ow_join_run, OW_STATIC | OW_TOTAL},
    {"split", sizeof(ow_axis_params), ow_split_prep, ow_split_run, OW_TOTAL},
    {"repeat", sizeof(ow_axis_params), ow_repeat_prep, ow_repeat_run, OW_TOTAL},
    {"cumulate", sizeof(ow_cumulate_params), ow_cumulate_prep, ow_cumulate_run,
     OW_STATIC | OW_TOTAL},
    {"sort", sizeof(ow_sort_params), ow_sort_prep, ow_sort_run, OW_STATIC | OW_TOTAL},
    {"select", sizeof(ow_select_params), ow_select_prep, ow_select_run, OW_TOTAL},
    {"nonzero", 0, ow_nonzero_prep, ow_nonzero_run, OW_TOTAL},
    {"choose", sizeof(ow_choose_params), ow_choose_prep, ow_choose_run, OW_STATIC},
    {"search", sizeof(ow_search_params), ow_search_prep, ow_search_run, OW_STATIC},
    {"fill_diagonal", 0, ow_fill_diagonal_prep, ow_fill_diagonal_run, OW_STATIC},
    {"assert", 0, ow_alias_prep, ow_assert_run, OW_STATIC},
    {"extract_diag", sizeof(ow_extract_diag_params), ow_extract_diag_prep, ow_extract_diag_run,
     OW_STATIC | OW_TOTAL},
    {"alloc_diag", sizeof(ow_alloc_diag_params), ow_alloc_diag_prep, ow_alloc_diag_run,
     OW_STATIC | OW_TOTAL},
    {"diagonal_matrix", sizeof(ow_diagonal_matrix_params), ow_diagonal_matrix_prep,
     ow_diagonal_matrix_run, 0},
    {"arange", 0, ow_arange_prep, ow_arange_run, 0},
    {NULL, 0, NULL, NULL, 0},
};

const char *ow_adder_name(int i) { return i < ow_adder_count ? ow_adders[i].name : NULL; }
