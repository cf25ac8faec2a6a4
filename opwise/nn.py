"""Neural networks, under the names of today: activations, losses, convolutions, pooling.

Each is the function that Theano has in ``tensor.nnet``, ``tensor.signal.pool`` or ``tensor``.
``softmax`` and ``log_softmax`` are of each row of a matrix, or along an ``axis``. Images have the
axes (batch, channel, row, column), and convolutions flip their filters unless
``filter_flip=False`` is given.
"""

from __future__ import annotations

import sys as _sys

from opwise.tensor import elsewhere as _elsewhere
from opwise.tensor.conv.functions import (
    causal_conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    separable_conv2d,
    separable_conv3d,
)
from opwise.tensor.conv.neighbours import images2neibs, neibs2images
from opwise.tensor.conv.pool import pool_2d, pool_3d
from opwise.tensor.extra_ops import to_one_hot as one_hot
from opwise.tensor.functions import tanh  # type: ignore[attr-defined]  # a row of a table
from opwise.tensor.nnet.bn import batch_normalization_test, batch_normalization_train
from opwise.tensor.nnet.nnet import (
    binary_crossentropy,
    categorical_crossentropy,
    confusion_matrix,
    elu,
    h_softmax,
    relu,
    selu,
    sigmoid_binary_crossentropy,
    softmax,
    softsign,
)
from opwise.tensor.nnet.nnet import logsoftmax as log_softmax
from opwise.tensor.nnet.sigm import hard_sigmoid, sigmoid, softplus

__all__ = [
    "batch_normalization_test",
    "batch_normalization_train",
    "binary_crossentropy",
    "categorical_crossentropy",
    "causal_conv1d",
    "confusion_matrix",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "elu",
    "h_softmax",
    "hard_sigmoid",
    "images2neibs",
    "log_softmax",
    "neibs2images",
    "one_hot",
    "pool_2d",
    "pool_3d",
    "relu",
    "selu",
    "separable_conv2d",
    "separable_conv3d",
    "sigmoid",
    "sigmoid_binary_crossentropy",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
]


def __getattr__(name: str) -> object:
    """Raise AttributeError that says where a name is, or what to write."""
    raise _elsewhere.no_attribute(_sys.modules[__name__], name)
