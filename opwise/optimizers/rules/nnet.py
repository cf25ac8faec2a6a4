"""Rules for softmax and the cross entropy of classes: one Op for both, its gradient, logarithms.

Sigmoids and other elementwise functions are in ``stabilize``.
"""

from __future__ import annotations

import numpy as np

from opwise.graph.traversal import equal_computations
from opwise.optimizers.rule import rule
from opwise.optimizers.rules.matching import (
    for_output,
    is_private,
    number,
    number_like,
    number_within,
    operands,
    row_name,
    shuffled,
    typed_like,
)
from opwise.optimizers.rules.terms import factors, product, signed_terms, without
from opwise.optimizers.shapefeature import same_length, same_shape
from opwise.scalar import dtypes
from opwise.scalar.op import Cast
from opwise.tensor.advanced_subtensor import AdvancedIncSubtensor, AdvancedSubtensor
from opwise.tensor.creation import Alloc, ARange, alloc
from opwise.tensor.elemwise import DimShuffle, Elemwise, cast, elemwise
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
    crossentropy_softmax_1hot_with_bias_dx,
    crossentropy_softmax_argmax_1hot_with_bias,
)
from opwise.tensor.nnet.rowsoftmax import (
    LogSoftmax,
    Softmax,
    SoftmaxGrad,
    SoftmaxWithBias,
    is_float,
    logsoftmax_op,
    softmax_with_bias,
)
from opwise.tensor.reduce import Sum
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.shape import Shape, Shape_i, shape_i, vector_entry
from opwise.tensor.subtensor import Subtensor
from opwise.tensor.variable import constant

#: FAST_COMPILE applies these too
_QUICK = ("fast_run", "fast_compile_gpu")
_neg = elemwise("neg")


def _is(var, *op_classes):
    """Return whether one of these classes of Ops computes a variable."""
    return var.owner is not None and isinstance(var.owner.op, op_classes)


# --- the bias -------------------------------------------------------------------------------------


def _with_bias(x):
    """Return (matrix, vector) where ``x`` is a matrix plus a vector along its rows, else None."""
    terms = operands(x, "add")
    if terms is None or x.type.broadcastable[0]:
        return None
    rows = [t for t in terms if t.type.broadcastable == (True, False)]
    rest = [t for t in terms if t.type.broadcastable != (True, False)]
    if not rows or not rest:
        return None
    rest = rest[0] if len(rest) == 1 else elemwise("add")(*rest)
    biases = [cast(shuffled(row, (1,)), x.type.dtype) for row in rows]
    bias = biases[0] if len(biases) == 1 else elemwise("add")(*biases)
    return (rest, bias) if rest.type == x.type else None


def _matrix_and_bias(fgraph, x):
    """Return (matrix, vector) that add up to ``x``; the vector is 0 where x is no such sum."""
    return _with_bias(x) or (x, alloc(number_like_scalar(x), shape_i(x, 1, fgraph)))


def number_like_scalar(x):
    return constant(np.zeros((), x.type.dtype))


def _operands_of_softmax(fgraph, sm):
    """Return (matrix, bias) of which ``sm`` is the softmax, or None."""
    if _is(sm, Softmax):
        return _matrix_and_bias(fgraph, sm.owner.inputs[0])
    if _is(sm, SoftmaxWithBias):
        return tuple(sm.owner.inputs)
    if _is(sm, CrossentropySoftmaxArgmax1HotWithBias) and sm.index == 1:
        return tuple(sm.owner.inputs[:2])
    return None


@rule(Softmax, stage="specialize", tags=_QUICK)
def local_softmax_with_bias(fgraph, node):
    """The softmax of a matrix plus a vector adds the vector itself, where nobody else reads the sum."""
    (x,) = node.inputs
    parts = _with_bias(x) if is_private(x) else None
    return None if parts is None else for_output(node, softmax_with_bias(*parts))
