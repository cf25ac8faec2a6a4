"""Lowerings of softmax and cross entropy on the rows of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwise.gpu.kernels import rows
from opwise.gpu.kernels.kernel import Implementation, Launch, Layout, Plan
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.scalar import dtypes
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.rowsoftmax import (
    LogSoftmax,
    Softmax,
    SoftmaxGrad,
    SoftmaxWithBias,
    check_bias,
)


def _unsupported(node: Apply, labels: int | None = None) -> str | None:
    """Return the reason why there are no kernels for the dtypes of an Apply, or None.

    labels: position of the labels, whose dtype may be another.
    """
    dtype = node.outputs[0].type.dtype
    if dtype not in dtypes.FLOATS:
        return f"there are no kernels on rows for {dtype}"
    others = {v.type.dtype for i, v in enumerate(node.inputs) if i != labels}
    if others != {dtype}:
        return f"its inputs are of {', '.join(sorted(others))} and not all of {dtype}"
    return None


def _shape_of_first(inputs):
    return [inputs[0].shape]


@lowers_to_kernels(Softmax, SoftmaxWithBias)
def lower_softmax(node: Apply) -> Implementation | str:
    reason = _unsupported(node)
    if reason:
        return reason
    kernels = rows.softmax(node.outputs[0].type.dtype, len(node.inputs) == 2)

    def shapes(inputs):
        if len(inputs) == 2:
            check_bias(*inputs)
        return [inputs[0].shape]

    return Implementation(kernels.kernels, shapes, kernels.plan)


@lowers_to_kernels(LogSoftmax)
def lower_log_softmax(node: Apply) -> Implementation | str:
    reason = _unsupported(node)
    if reason:
        return reason
    kernels = rows.log_softmax(node.outputs[0].type.dtype)
    return Implementation(kernels.kernels, _shape_of_first, kernels.plan)


@lowers_to_kernels(SoftmaxGrad)
def lower_softmax_grad(node: Apply) -> Implementation | str:
    reason = _unsupported(node)
    if reason:
        return reason
    kernels = rows.softmax_grad(node.outputs[0].type.dtype)

    def shapes(inputs):
        dy, sm = inputs
        for d, (n, m) in enumerate(zip(dy.shape, sm.shape, strict=True)):
            if n not in (1, m):
                raise ValueError(f"dy has length {n} along dimension {d}, but sm has {m}")
        return [sm.shape]

    return Implementation(kernels.kernels, shapes, kernels.plan)


# --- labels ---------------------------------------------------------------------------------------


def _check_labels(labels: Layout, matrix: Layout, name: str) -> None:
    if labels.shape[0] != matrix.shape[0]:
        raise ValueError(
            f"{name} has {matrix.shape[0]} rows, but there are {labels.shape[0]} labels"
        )


def _bad_label(labels: int, matrix: int, name: str) -> Callable[[int, list[Any]], Exception]:
    """Return a function that makes the error for a label that names no column.

    labels, matrix: positions of these inputs; name: what errors call the matrix.
    """

    def wrong(position, inputs):
        return ValueError(
            f"y_i value out of bounds: label {position} is {inputs[labels][position]}, but {name} "
            f"has {inputs[matrix].shape[1]} columns, one for each class"
        )

    return wrong


@lowers_to_kernels(CrossentropySoftmaxArgmax1HotWithBias)
def lower_cross_entropy(node: Apply) -> Implementation | str:
    reason = _unsupported(node, labels=2)
    if reason:
        return reason
    kernels = rows.cross_entropy(node.outputs[0].type.dtype, node.inputs[2].type.dtype)

    def shapes(inputs):
        x, b, labels = inputs
        check_bias(x, b)
        _check_labels(labels, x, "x")
        return [labels.shape, x.shape, labels.shape]

    wrong = _bad_label(2, 0, "x")
    return Implementation(kernels.kernels, shapes, kernels.plan, wrong=wrong, error_inputs=(2,))


@lowers_to_kernels(CrossentropySoftmax1HotWithBiasDx)
def lower_cross_entropy_dx(node: Apply) -> Implementation | str:
    reason = _unsupported(node, labels=2)
    if reason:
        return reason
    kernels = rows.cross_entropy_dx(node.outputs[0].type.dtype, node.inputs[2].type.dtype)
    return _gradient_by_label(kernels, "sm")


@lowers_to_kernels(CrossentropyCategorical1HotGrad)
def lower_one_hot_grad(node: Apply) -> Implementation | str:
    reason = _unsupported(node, labels=2)
    if reason:
        return reason
    if node.inputs[0].type.ndim > 1:
        return "its gradient is no vector"
    kernels = rows.one_hot_grad(node.outputs[0].type.dtype, node.inputs[2].type.dtype)
    return _gradient_by_label(kernels, "coding_dist")


def _gradient_by_label(kernels: rows.RowKernels, name: str) -> Implementation:
    """Return the Implementation of (gradient of each row, matrix, labels) -> matrix.

    name: what errors call the matrix.
    """

    def shapes(inputs):
        g, matrix, labels = inputs
        _check_labels(labels, matrix, name)
        if g.size != 1 and g.shape != labels.shape:
            raise ValueError(
                f"{'dy' if name == 'sm' else 'g_y'} has {g.size} elements, but {name} has "
                f"{matrix.shape[0]} rows"
            )
        return [matrix.shape]

    def plan(inputs, outputs, limits):
        g, matrix, labels = inputs
        found = kernels.plan((matrix, g, labels), outputs, limits)
        return Plan(tuple(map(_first_inputs_swapped, found.launches)))

    wrong = _bad_label(2, 1, name)
    return Implementation(kernels.kernels, shapes, plan, wrong=wrong, error_inputs=(2,))


def _first_inputs_swapped(launch: Launch) -> Launch:
    """Return a launch with inputs 0 and 1 swapped: the kernels take the matrix first."""
    other = {0: 1, 1: 0, 2: 2}
    arrays = tuple(
        a._replace(position=other[a.position]) if a.kind == "in" else a for a in launch.arrays
    )
    return launch._replace(arrays=arrays)


@lowers_to_kernels(CrossentropyCategorical1Hot)
def lower_one_hot(node: Apply) -> Implementation | str:
    reason = _unsupported(node, labels=1)
    if reason:
        return reason
    kernel = rows.one_hot(node.outputs[0].type.dtype, node.inputs[1].type.dtype)

    def shapes(inputs):
        _check_labels(inputs[1], inputs[0], "coding_dist")
        return [inputs[1].shape]

    def plan(inputs, outputs, limits):
        return rows.one_hot_plan(kernel, inputs, limits)

    wrong = _bad_label(1, 0, "coding_dist")
    return Implementation((kernel,), shapes, plan, wrong=wrong, error_inputs=(1,))
