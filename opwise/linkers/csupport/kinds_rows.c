/* Kinds of steps over rows: softmaxes, random numbers, the loss of classification in time. */
#include "kinds.h"

#include "ctc.h"
#include "nnet.h"
#include "random.h"

const ow_kind ow_kinds_of_rows[] = {
    {"softmax", 0, ow_softmax_prep, ow_softmax_run, OW_STATIC | OW_TOTAL},
    {"logsoftmax", 0, ow_softmax_prep, ow_logsoftmax_run, OW_STATIC | OW_TOTAL},
    {"softmax_grad", 0, ow_softmax_grad_prep, ow_softmax_grad_run, OW_STATIC | OW_TOTAL},
    {"xent", 0, ow_xent_prep, ow_xent_run, OW_STATIC},
    {"xent_dx", 0, ow_xent_dx_prep, ow_xent_dx_run, OW_STATIC},
    {"onehot", 0, ow_onehot_prep, ow_onehot_run, OW_STATIC},
    {"onehot_grad", 0, ow_onehot_grad_prep, ow_onehot_grad_run, OW_STATIC},
    {"mrg_uniform", sizeof(ow_mrg_uniform_params), ow_mrg_prep, ow_mrg_run, OW_STATIC | OW_TOTAL,
     ow_mrg_undo},
    {"mrg_uniform_sized", sizeof(ow_mrg_uniform_params), ow_mrg_sized_prep, ow_mrg_run, 0,
     ow_mrg_undo},
    {"multinomial", 0, ow_multinomial_prep, ow_multinomial_run, OW_STATIC},
    {"choice", sizeof(ow_outcome_params), ow_choice_prep, ow_choice_run, 0},
    {"ctc", 0, ow_ctc_prep, ow_ctc_run, OW_STATIC | OW_CHECKED},
    {NULL, 0, NULL, NULL, 0},
};
