"""Rules for softmax and cross entropy: one Op for both, its gradient, and logarithms.

Sigmoids and other elementwise functions are in ``stabilize``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import equal_computations
from opwise.graph.variable import Constant, Var
from opwise.optimizers.rule import Replacements, Rule, rule
from opwise.optimizers.rules.matching import (
    for_output,
    is_cast,
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
from opwise.optimizers.shapefeature import same_length, same_shape, tracked_shapes
from opwise.scalar import dtypes
from opwise.tensor.advanced_subtensor import AdvancedIncSubtensor, AdvancedSubtensor
from opwise.tensor.creation import Alloc, ARange, alloc
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.nnet.bnops import (
    AbstractBatchNormInference,
    AbstractBatchNormTrain,
    AbstractBatchNormTrainGrad,
)
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
from opwise.tensor.shape import Shape, Shape_i, patternbroadcast, shape_i
from opwise.tensor.subtensor import Subtensor
from opwise.tensor.type import TensorType
from opwise.tensor.variable import constant

#: the tags of rules that FAST_COMPILE applies as well
_QUICK = ("fast_run", "fast_compile_gpu")
_neg = elemwise("neg")


def _is(var: Var, *op_classes: type) -> bool:
    """Return whether an Op of one of these classes computes a variable."""
    return var.owner is not None and isinstance(var.owner.op, op_classes)


# --- the bias -------------------------------------------------------------------------------------


def _with_bias(x: Var) -> tuple[Var, ...] | None:
    """Return (matrix, vector) if ``x`` is a matrix plus a vector for each row, else None."""
    terms = operands(x, "add")
    if terms is None:
        return None
    rows = [t for t in terms if t.type.broadcastable == (True, False)]
    rest = [t for t in terms if t.type.broadcastable != (True, False)]
    if x.type.broadcastable[0] and len(rows) > 1:
        rest.append(rows.pop())  # the softmax of a sum of vectors: one of them is the matrix
    if not rows or not rest:
        return None
    total: Var = rest[0] if len(rest) == 1 else elemwise("add")(*rest)
    biases = [cast(shuffled(row, (1,)), x.type.dtype) for row in rows]
    bias = biases[0] if len(biases) == 1 else elemwise("add")(*biases)
    return (total, bias) if total.type == x.type else None


def _matrix_and_bias(fgraph: FunctionGraph, x: Var) -> tuple[Var, ...]:
    """Return (matrix, vector) whose sum is ``x``; the vector is 0 if x is no such sum."""
    return _with_bias(x) or (x, _no_bias(fgraph, x))


def _no_bias(fgraph: FunctionGraph, x: Var) -> Var:
    # made from the shape: x may have no row to take it from
    return alloc(constant(np.zeros((), x.type.dtype)), shape_i(x, 1, fgraph))


def _operands_of_softmax(fgraph: FunctionGraph, sm: Var) -> tuple[Var, ...] | None:
    """Return (matrix, bias) whose softmax is ``sm``, or None."""
    if _is(sm, Softmax):
        return _matrix_and_bias(fgraph, sm.owner.inputs[0])
    if _is(sm, SoftmaxWithBias):
        return tuple(sm.owner.inputs)
    if _is(sm, CrossentropySoftmaxArgmax1HotWithBias) and sm.index == 1:
        return tuple(sm.owner.inputs[:2])
    return None


@rule(Softmax, stage="specialize", tags=_QUICK)
def local_softmax_with_bias(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """softmax(x + b) is a SoftmaxWithBias, if only the softmax reads the sum."""
    (x,) = node.inputs
    parts = _with_bias(x) if is_private(x) else None
    return None if parts is None else for_output(node, softmax_with_bias(*parts))


# --- logarithms -----------------------------------------------------------------------------------


@rule("row:log", stage="specialize", tags=("fast_run", "fast_compile", "stabilize"))
def local_logsoftmax(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(softmax(x)) is a LogSoftmax, which is finite even where the softmax underflows to 0."""
    sm: Var = node.inputs[0]
    if _is(sm, Softmax):
        (x,) = sm.owner.inputs
    elif _is(sm, SoftmaxWithBias):
        x, bias = sm.owner.inputs
        x = elemwise("add")(x, shuffled(bias, ("x", 0)))
    else:
        return None
    # the softmax of one column warns, and its logarithm is 0
    return None if x.type.broadcastable[1] else for_output(node, logsoftmax_op(x))


@rule(SoftmaxGrad, stage="specialize", tags=("fast_run", "fast_compile", "stabilize"))
def local_logsoftmax_grad(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The gradient of log(softmax(x)) does not divide by the softmax, which may be 0."""
    dy, sm = node.inputs
    above, below = factors(dy, is_private)
    if not any(x is sm for x in below) or _picked_gradient(fgraph, dy, sm) is not None:
        return None
    (out,) = node.outputs
    g = product(above, without(below, sm))
    g = typed_like(number_like(out, 1) if g is None else g, out, [sm])
    if g is None:
        return None
    rows = sum_(g, axis=1, keepdims=True)
    return for_output(node, elemwise("sub")(g, elemwise("mul")(rows, sm)))


# --- one class for each row -----------------------------------------------------------------------


def _cross_entropy(
    node: Apply,
    parts: Sequence[Var],
    labels: Var,
    sm: Var,
    change: Callable[..., Any] | Elemwise = lambda nll: nll,
) -> dict[Any, Any] | list[Var] | None:
    """Return the replacements for an output that is a function of a cross entropy, or None.

    parts: (matrix, bias) of the softmax. sm: the softmax, which the same Op then computes, or None.
    change: function from the cross entropy to the replacement of the output.
    """
    nll, softmax, _ = crossentropy_softmax_argmax_1hot_with_bias(*parts, labels)
    new = change(nll)
    (out,) = node.outputs
    if new.type != out.type:
        return None
    if sm is None or softmax.type != sm.type or _depends(labels, sm):
        return [new]
    # in this order: the softmax may lose its last reader with the output
    return {sm: softmax, out: new}


def _depends(var: Var, other: Any) -> bool:
    """Return whether ``var`` is computed from ``other``."""
    seen, stack = set(), [var]
    while stack:
        x = stack.pop()
        if x is other:
            return True
        if x.owner is not None and x.owner not in seen:
            seen.add(x.owner)
            stack.extend(x.owner.inputs)
    return False


@rule(CrossentropyCategorical1Hot, stage=("stabilize", "specialize"), tags=_QUICK)
def crossentropy_to_crossentropy_with_softmax_with_bias(
    fgraph: FunctionGraph, node: Apply
) -> Replacements:
    """Fuses the cross entropy of a softmax with bias and the softmax."""
    sm: Var
    sm, labels = node.inputs
    if not _is(sm, SoftmaxWithBias):
        return None
    return _cross_entropy(node, sm.owner.inputs, labels, sm)


@rule(CrossentropyCategorical1Hot, stage="crossentropy_to_crossentropy_with_softmax", tags=())
def crossentropy_to_crossentropy_with_softmax(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Fuses the cross entropy of a softmax and the softmax."""
    sm, labels = node.inputs
    parts = _operands_of_softmax(fgraph, sm)
    if parts is None:
        return None
    return _cross_entropy(node, parts, labels, sm)


@rule(AdvancedSubtensor, "row:log", stage="specialize", tags=_QUICK)
def local_advanced_indexing_crossentropy_onehot(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(softmax(x))[arange(n), labels] is minus the cross entropy; so is the log of the part."""
    is_log = row_name(node) == "log"
    picked = node.inputs[0].owner if is_log else node
    if picked is None or type(picked.op) is not AdvancedSubtensor or len(picked.inputs) != 3:
        return None
    p: Var
    p, rows, labels = picked.inputs
    if not is_log and not _is(p, LogSoftmax):
        inside = operands(p, "log")
        if inside is None:
            return None
        (p,) = inside
    if _is(p, LogSoftmax):
        # its logarithm has no such form
        parts = None if is_log else _matrix_and_bias(fgraph, p.owner.inputs[0])
        sm = None
    else:
        parts, sm = _operands_of_softmax(fgraph, p), p
    if parts is None or not _is_one_of_each_row(fgraph, p, rows, labels):
        return None
    return _cross_entropy(node, parts, labels, sm, _neg)


def _is_one_of_each_row(fgraph: FunctionGraph, matrix: Var, rows: Var, labels: Var) -> bool:
    """Return whether ``matrix[rows, labels]`` is one element of each row: rows are 0, 1, 2, ..."""
    for index in (rows, labels):
        if not isinstance(index.type, TensorType) or index.type.ndim != 1:
            return False
        if index.type.dtype not in dtypes.INTEGERS:
            return False
    stop = _stop_of_arange(rows)
    return stop is not None and any(_is_length_of(fgraph, stop, x) for x in (labels, matrix))


def _stop_of_arange(x: Var) -> Var:
    """Return n if a vector is 0, 1, ..., n - 1, else None."""
    if isinstance(x, Constant):
        n = x.data.size
        return constant(np.int64(n)) if np.array_equal(x.data, np.arange(n)) else None
    if not _is(x, ARange):
        return None
    start, stop, step = x.owner.inputs
    return stop if number(start) == 0 and number(step) == 1 else None


def _is_length_of(fgraph: FunctionGraph, n: Any, x: Var) -> Any:
    """Return whether a number is known to be the number of rows of a variable."""
    while is_cast(n.owner):
        (n,) = n.owner.inputs
    if _is(n, Shape_i) and n.owner.op.i == 0:
        return _is_as_long(fgraph, n.owner.inputs[0], x)
    if _is(n, Subtensor) and _is(n.owner.inputs[0], Shape):
        shape, *index = n.owner.inputs
        (entry,) = n.owner.op.idx_list
        first = number(index[0]) if index else entry
        if not isinstance(entry, slice) and first == 0:
            return _is_as_long(fgraph, shape.owner.inputs[0], x)
    feature = tracked_shapes(fgraph)
    return feature is not None and same_length(n, feature.get_shape(x, 0))


def _is_as_long(fgraph: FunctionGraph, x: Var, y: Var) -> bool:
    """Return whether two variables are known to have equally many rows."""
    if _is(x, Alloc) and _is_length_of(fgraph, x.owner.inputs[1], y):
        return True
    return x is y or same_shape(fgraph, x, y, 0, 0)


# --- its gradient ---------------------------------------------------------------------------------


@rule(
    SoftmaxGrad,
    stage="specialize",
    tags=(*_QUICK, "local_crossentropy_to_crossentropy_with_softmax_grad"),
)
def local_softmax_grad_to_crossentropy_with_softmax_grad(
    fgraph: FunctionGraph, node: Apply
) -> Replacements:
    """The gradient of the cross entropy through the softmax is a difference, not a quotient."""
    g_coding: Var
    g_coding, coding = node.inputs
    if not _is(g_coding, CrossentropyCategorical1HotGrad):
        return None
    g, of, labels = g_coding.owner.inputs
    if of is not coding or not is_float(g, 0, 1):
        return None
    return for_output(node, crossentropy_softmax_1hot_with_bias_dx(g, coding, labels))


@rule(SoftmaxGrad, "row:add", "row:sub", stage="specialize", tags=_QUICK)
def local_advanced_indexing_crossentropy_onehot_grad(
    fgraph: FunctionGraph, node: Apply
) -> Replacements:
    """The gradient of log(softmax(x))[arange(n), labels] by x is a difference, not a quotient."""
    if row_name(node) is not None:
        found = _gradient_of_picked_logsoftmax(fgraph, node)
    else:
        dy, sm = node.inputs
        found = _picked_gradient(fgraph, dy, sm)
        found = None if found is None else (found[0], sm, found[1])
    if found is None:
        return None
    return for_output(node, crossentropy_softmax_1hot_with_bias_dx(*found))


def _picked_gradient(fgraph: FunctionGraph, dy: Var, sm: Var) -> tuple[Var, ...] | None:
    """Return (gradient by the cross entropy, labels) if ``dy`` is its gradient by ``sm``, or None.

    dy is zero except at [arange(n), labels]: there it is g / sm, divided before or after it was put
    into the zeros. The gradient by the cross entropy is -g.
    """
    above, below = factors(dy, is_private)
    changed = next((x for x in above if _is(x, AdvancedIncSubtensor)), None)
    if changed is None or len(changed.owner.inputs) != 4:
        return None
    zeros, g, rows, labels = changed.owner.inputs
    if number_within(zeros) != 0 or not _is_one_of_each_row(fgraph, sm, rows, labels):
        return None
    above = without(above, changed)
    above_g, below_g = factors(g, is_private)
    if any(x is sm for x in below):
        below = without(below, sm)
    else:
        picked = next((x for x in below_g if _picks(x, sm, rows, labels)), None)
        if picked is None:
            return None
        below_g = without(below_g, picked)
    columns = [[_of_rows(x) for x in side] for side in (above, below)]
    if any(x is None for side in columns for x in side):
        return None
    g = product(above_g + columns[0], below_g + columns[1])
    return _minus(g, sm), labels


def _minus(g: Var, sm: Var) -> Var:
    """Return -g (-1 for None) in the dtype of a softmax, as the gradient by a cross entropy."""
    if g is None:
        return constant(np.array(-1, sm.type.dtype))
    return _neg(cast(g, sm.type.dtype))


def _picks(x: Var, sm: Var, rows: Var, labels: Var) -> bool:
    """Return whether ``x`` is ``sm[rows, labels]``."""
    if x.owner is None or type(x.owner.op) is not AdvancedSubtensor:
        return False
    return len(x.owner.inputs) == 3 and all(
        a is b for a, b in zip(x.owner.inputs, (sm, rows, labels), strict=True)
    )


def _of_rows(x: Var) -> Var:
    """Return a factor of a matrix as a vector or number, if it is constant along each row."""
    if not x.type.broadcastable[1]:
        return None
    return shuffled(x, () if x.type.broadcastable[0] else (0,))


def _gradient_of_picked_logsoftmax(fgraph: FunctionGraph, node: Apply) -> Any:
    """Return (gradient by the cross entropy, softmax, labels) of g - sum(g) softmax, or None.

    g is zero except at [arange(n), labels].
    """
    (out,) = node.outputs
    if not is_float(out, 2):
        return None
    terms = signed_terms(out)
    g = next((x for sign, x in terms if sign > 0 and _is(x, AdvancedIncSubtensor)), None)
    if g is None or len(terms) != 2 or len(g.owner.inputs) != 4:
        return None
    zeros, y, rows, labels = g.owner.inputs
    rest = [term for term in terms if term[1] is not g]
    if len(rest) != 1:
        return None
    ((sign, change),) = rest
    above, below = factors(change)
    signs = [number(x) for x in above if number(x) is not None]
    others = [x for x in above if number(x) is None]
    if below or len(others) != 2 or sign * math.prod(signs) != -1 or number_within(zeros) != 0:
        return None
    for sums, sm in (others, others[::-1]):
        if _are_sums_of_rows(sums, g) and _is_softmax(sm) and sm.type == out.type:
            if _is_one_of_each_row(fgraph, sm, rows, labels):
                return _minus(y, sm), sm, labels
    return None


def _are_sums_of_rows(x: Var, g: Var) -> bool:
    if not _is(x, DimShuffle) or x.owner.op.new_order != (0, "x"):
        return False
    (sums,) = x.owner.inputs
    return _is(sums, Sum) and sums.owner.op.axis == (1,) and sums.owner.inputs[0] is g


def _is_softmax(x: Var) -> bool:
    return _is(x, Softmax, SoftmaxWithBias) or (
        _is(x, CrossentropySoftmaxArgmax1HotWithBias) and x.index == 1
    )


@rule(CrossentropySoftmax1HotWithBiasDx, stage=("canonicalize", "stabilize", "specialize"))
def local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc(
    fgraph: FunctionGraph, node: Apply
) -> Replacements:
    """Passes a gradient that is the same for all rows as one number."""
    dy: Var
    dy, sm, labels = node.inputs
    if _is(dy, Alloc):
        value = dy.owner.inputs[0]
    elif row_name(dy.owner) == "second":
        value = dy.owner.inputs[1]
    else:
        return None
    if value.type.ndim and not value.type.broadcastable[0]:
        return None
    # the Op requires that dy has one entry for each row, or a single one
    if not any(_is_as_long(fgraph, dy, x) for x in (labels, sm)):
        return None
    if not value.type.ndim:
        value = shuffled(value, ("x",))
    return for_output(node, crossentropy_softmax_1hot_with_bias_dx(value, sm, labels))


# --- the same softmax twice -----------------------------------------------------------------------


@rule(
    Softmax, SoftmaxWithBias, CrossentropySoftmaxArgmax1HotWithBias, stage="specialize", tags=_QUICK
)
def graph_merge_softmax_with_crossentropy_softmax(
    fgraph: FunctionGraph, node: Apply
) -> Replacements:
    """Replaces a softmax by the output of a cross entropy that computes it as well."""
    if isinstance(node.op, CrossentropySoftmaxArgmax1HotWithBias):
        together = [node]
    else:
        together = _readers(node.inputs[0], CrossentropySoftmaxArgmax1HotWithBias)
    for one in together:
        x, bias, labels = one.inputs
        for other in _readers(x, Softmax, SoftmaxWithBias):
            (sm,) = other.outputs
            if _has_bias(other, bias) and sm.type == one.outputs[1].type:
                if not _depends(labels, sm):
                    return {sm: one.outputs[1]}
    return None


def _readers(x: Var, *op_classes: type) -> list[Apply]:
    """Return the Applys of some Op classes that read a variable as their first input."""
    return [
        reader
        for reader, i in x._clients
        if reader != "output" and i == 0 and isinstance(reader.op, op_classes)
    ]


def _has_bias(node: Apply, bias: Var) -> Any:
    """Return whether a softmax adds a bias, which may be zero."""
    if isinstance(node.op, Softmax):
        return number_within(bias) == 0
    return equal_computations([node.inputs[1]], [bias])


# --- batch normalisation --------------------------------------------------------------------------


def _expands(op_class: type, name: str) -> Rule:
    """Declare the rule that replaces an Op of batch normalisation by an elementwise graph."""

    def expand(fgraph: FunctionGraph, node: Apply) -> Replacements:
        new = node.op.expanded(node.inputs)
        if any(a.type.dtype != b.type.dtype for a, b in zip(new, node.outputs, strict=True)):
            return None
        return [
            patternbroadcast(a, b.type.broadcastable)
            for a, b in zip(new, node.outputs, strict=True)
        ]

    expand.__name__ = name
    expand.__doc__ = f"Replaces {op_class.__name__} by elementwise operations and reductions."
    return rule(op_class, stage="canonicalize", tags=("fast_run", "fast_compile"))(expand)


local_abstract_batch_norm_train = _expands(
    AbstractBatchNormTrain, "local_abstract_batch_norm_train"
)
local_abstract_batch_norm_train_grad = _expands(
    AbstractBatchNormTrainGrad, "local_abstract_batch_norm_train_grad"
)
local_abstract_batch_norm_inference = _expands(
    AbstractBatchNormInference, "local_abstract_batch_norm_inference"
)
