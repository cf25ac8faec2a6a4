"""Functions of neural networks: softmax and cross entropies, activations, batch normalisation."""

from __future__ import annotations

import sys as _sys

from opwise.tensor import elsewhere
from opwise.tensor.nnet import bn, nnet, sigm  # noqa: F401  (legacy names of modules)
from opwise.tensor.nnet.bn import batch_normalization
from opwise.tensor.nnet.nnet import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
    LogSoftmax,
    Prepend_scalar_constant_to_each_row,
    Prepend_scalar_to_each_row,
    Softmax,
    SoftmaxGrad,
    SoftmaxWithBias,
    binary_crossentropy,
    categorical_crossentropy,
    confusion_matrix,
    crossentropy_categorical_1hot,
    crossentropy_categorical_1hot_grad,
    crossentropy_softmax_1hot,
    crossentropy_softmax_1hot_with_bias,
    crossentropy_softmax_1hot_with_bias_dx,
    crossentropy_softmax_argmax_1hot_with_bias,
    crossentropy_softmax_max_and_argmax_1hot,
    crossentropy_softmax_max_and_argmax_1hot_with_bias,
    elu,
    h_softmax,
    logsoftmax,
    logsoftmax_op,
    prepend_0_to_each_row,
    prepend_1_to_each_row,
    prepend_scalar_to_each_row,
    relu,
    selu,
    sigmoid_binary_crossentropy,
    softmax,
    softmax_grad,
    softmax_graph,
    softmax_op,
    softmax_with_bias,
    softsign,
)
from opwise.tensor.nnet.sigm import (
    hard_sigmoid,
    scalar_sigmoid,
    sigmoid,
    sigmoid_inplace,
    softplus,
    ultra_fast_sigmoid,
)

__all__ = [
    "CrossentropyCategorical1Hot",
    "CrossentropyCategorical1HotGrad",
    "CrossentropySoftmax1HotWithBiasDx",
    "CrossentropySoftmaxArgmax1HotWithBias",
    "LogSoftmax",
    "Prepend_scalar_constant_to_each_row",
    "Prepend_scalar_to_each_row",
    "Softmax",
    "SoftmaxGrad",
    "SoftmaxWithBias",
    "batch_normalization",
    "binary_crossentropy",
    "categorical_crossentropy",
    "confusion_matrix",
    "crossentropy_categorical_1hot",
    "crossentropy_categorical_1hot_grad",
    "crossentropy_softmax_1hot",
    "crossentropy_softmax_1hot_with_bias",
    "crossentropy_softmax_1hot_with_bias_dx",
    "crossentropy_softmax_argmax_1hot_with_bias",
    "crossentropy_softmax_max_and_argmax_1hot",
    "crossentropy_softmax_max_and_argmax_1hot_with_bias",
    "elu",
    "h_softmax",
    "hard_sigmoid",
    "logsoftmax",
    "logsoftmax_op",
    "prepend_0_to_each_row",
    "prepend_1_to_each_row",
    "prepend_scalar_to_each_row",
    "relu",
    "scalar_sigmoid",
    "selu",
    "sigmoid",
    "sigmoid_binary_crossentropy",
    "sigmoid_inplace",
    "softmax",
    "softmax_grad",
    "softmax_graph",
    "softmax_op",
    "softmax_with_bias",
    "softplus",
    "softsign",
    "ultra_fast_sigmoid",
]


def __getattr__(name: str) -> object:
    """Raise AttributeError that says where a name is, if it is elsewhere."""
    raise elsewhere.no_attribute(_sys.modules[__name__], name)
