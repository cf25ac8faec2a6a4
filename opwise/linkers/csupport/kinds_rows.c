/* Kinds of steps over rows: softmaxes, random numbers, the loss of classification in time. */
#include "kinds.h"

#include "ctc.h"
#include "nnet.h"
#include "random.h"

const ow_kind ow_kinds_of_rows[] = {
    {"softmax", ow_softmax_prep, ow_softmax_run, OW_STATIC | OW_TOTAL},
    {"logsoftmax", ow_softmax_prep, ow_logsoftmax_run, OW_STATIC | OW_TOTAL},
    {"softmax_grad", ow_softmax_grad_prep, ow_softmax_grad_run, OW_STATIC | OW_TOTAL},
    {"xent", ow_xent_prep, ow_xent_run, OW_STATIC},
    {"xent_dx", ow_xent_dx_prep, ow_xent_dx_run, OW_STATIC},
    {"onehot", ow_onehot_prep, ow_onehot_run, OW_STATIC},
    {"onehot_grad", ow_onehot_grad_prep, ow_onehot_grad_run, OW_STATIC},
    {"mrg_uniform", ow_mrg_prep, ow_mrg_run, OW_STATIC | OW_TOTAL, ow_mrg_undo},
    {"mrg_uniform_sized", ow_mrg_sized_prep, ow_mrg_run, 0, ow_mrg_undo},
    {"multinomial", ow_multinomial_prep, ow_multinomial_run, OW_STATIC},
    {"choice", ow_choice_prep, ow_choice_run, 0},
    {"ctc", ow_ctc_prep, ow_ctc_run, OW_STATIC | OW_CHECKED},
    {NULL, NULL, NULL, 0},
};
