"""Cross entropies: Ops for one label per row, also fused with softmax, and functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayLayouts, ArrayShapes, Traffic
from opwise.graph.null import disconnected_type, is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects, shapes_of
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.creation import arange, zeros
from opwise.tensor.elemwise import elemwise, rough_work, zeros_like
from opwise.tensor.nnet.rowsoftmax import (
    as_column,
    below_zero,
    check_bias,
    is_float,
    softmax_grad,
    sum_of_points,
)
from opwise.tensor.nnet.sigm import softplus
from opwise.tensor.reduce import max_and_argmax
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.subtensor import inc_subtensor, set_subtensor
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "CrossentropyCategorical1Hot",
    "CrossentropyCategorical1HotGrad",
    "CrossentropySoftmax1HotWithBiasDx",
    "CrossentropySoftmaxArgmax1HotWithBias",
    "binary_crossentropy",
    "categorical_crossentropy",
    "crossentropy_categorical_1hot",
    "crossentropy_categorical_1hot_grad",
    "crossentropy_softmax_1hot",
    "crossentropy_softmax_1hot_with_bias",
    "crossentropy_softmax_1hot_with_bias_dx",
    "crossentropy_softmax_argmax_1hot_with_bias",
    "crossentropy_softmax_max_and_argmax_1hot",
    "crossentropy_softmax_max_and_argmax_1hot_with_bias",
    "sigmoid_binary_crossentropy",
]


# --- labels ---------------------------------------------------------------------------------------


def _is_labels(y: Tensor) -> bool:
    return y.type.dtype in dtypes.INTEGERS and y.type.ndim == 1


def _check_labels(labels: np.ndarray, rows: np.ndarray, name: str) -> None:
    """Raise ValueError unless there is one label for each row, and a column for each label."""
    n_rows, n_classes = rows.shape
    if labels.shape[0] != n_rows:
        raise ValueError(f"{name} has {n_rows} rows, but there are {labels.shape[0]} labels")
    wrong = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if wrong.size:
        raise ValueError(
            f"y_i value out of bounds: label {wrong[0]} is {labels[wrong[0]]}, but {name} has "
            f"{n_classes} columns, one for each class"
        )


def _picked(x: Tensor, labels: Tensor) -> Tensor:
    """Return the vector of the elements ``x[row, label of the row]``."""
    return x[arange(labels.shape[0]), labels]


# --- with a softmax -------------------------------------------------------------------------------


class CrossentropySoftmaxArgmax1HotWithBias(Op):
    """Computes softmax(x + b), its cross entropy with labels, and the predicted class.

    x: matrix of floats; b: vector, an element for each column; y_idx: vector of integers, a class
    for each row. Outputs: -log(softmax(x + b)[row, label]) for each row; the softmax; the column
    of each row's maximum, in the dtype of the labels.
    """

    __props__ = ()
    traffic = costs.each_once
    nin = nout = 3

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

    def make_node(self, x: TensorLike, b: TensorLike, y_idx: TensorLike) -> Apply:
        x, b, y_idx = map(as_tensor_variable, (x, b, y_idx))
        if not is_float(x, 2):
            raise ValueError(f"x must be 2-d tensor of floats. Got {x.type}")
        if b.type.ndim != 1 or b.type.dtype in dtypes.COMPLEX:
            raise ValueError(f"b must be 1-d tensor of floats. Got {b.type}")
        if not _is_labels(y_idx):
            raise ValueError(
                f"y_idx must be 1-d tensor of [u]ints. Got {y_idx.type}: labels are class "
                "indices, T.lvector or T.cast(y, 'int32')"
            )
        nll = tensor_type(x.type.dtype, y_idx.type.broadcastable).make_variable()
        return Apply(self, [x, b, y_idx], [nll, x.type.make_variable(), y_idx.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, b, labels = inputs
        check_bias(x, b)
        _check_labels(labels, x, "x")
        with np.errstate(all="ignore"):
            moved = below_zero(x + b.astype(np.result_type(x, b), copy=False))
            e = np.exp(moved)
            total = e.sum(axis=1)
            nll = np.log(total) - moved[np.arange(len(labels)), labels]
            sm = e / total[:, None]
        output_storage[0][0] = nll.astype(x.dtype, copy=False)
        output_storage[1][0] = sm.astype(x.dtype, copy=False)
        output_storage[2][0] = moved.argmax(axis=1).astype(labels.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        x, _, labels = shapes
        return [labels, x, labels]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True, True], [True, True, True], [False, False, False]]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, b, labels), (_, sm, _) = inputs, outputs
        g_nll, g_sm, _ = output_gradients
        parts = []
        if not is_disconnected(g_nll):
            parts.append(crossentropy_softmax_1hot_with_bias_dx(g_nll, sm, labels))
        if not is_disconnected(g_sm):
            parts.append(softmax_grad(g_sm, sm))
        if not parts:
            return [zeros_like(x), zeros_like(b), disconnected_type.make_variable()]
        dx = parts[0] + parts[1] if len(parts) == 2 else parts[0]
        return [dx, sum_(dx, axis=0), disconnected_type.make_variable()]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        x, _, labels = inputs
        point = sum_of_points(x, *eval_points[:2])
        if point is None:
            return [None, None, None]
        sm = self(*inputs)[1]
        return [sum_(point * sm, axis=1) - _picked(point, labels), softmax_grad(point, sm), None]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        of_elements = ("add", "gt", "sub", "exp", "add", "true_div")
        return rough_work(of_elements, inputs[0]) + rough_work(("log", "sub"), inputs[0][:1])


class CrossentropySoftmax1HotWithBiasDx(TensorOp):
    """The gradient by x of the cross entropy of softmax(x + b) with labels.

    dy: gradient by the cross entropy, a vector with an element for each row, or one for all rows (a
    scalar, or a vector of length 1); sm: the softmax; y_idx: the labels.
    """

    __props__ = ()
    traffic = costs.each_once
    nin, nout = 3, 1

    def make_node(self, dy: TensorLike, sm: TensorLike, y_idx: TensorLike) -> Apply:
        dy, sm, y_idx = map(as_tensor_variable, (dy, sm, y_idx))
        if not is_float(dy, 0, 1):
            raise ValueError(f"dy must be {{0,1}}-d tensor of floats. Got {dy.type}")
        if not is_float(sm, 2):
            raise ValueError(f"sm must be 2-d tensor of floats. Got {sm.type}")
        if not _is_labels(y_idx):
            raise ValueError(f"y_idx must be 1-d tensor of [u]ints. Got {y_idx.type}")
        return Apply(self, [dy, sm, y_idx], [sm.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        dy, sm, labels = inputs
        _check_labels(labels, sm, "sm")
        if dy.size != 1 and dy.shape != labels.shape:
            raise ValueError(f"dy has {dy.size} elements, but sm has {sm.shape[0]} rows")
        with np.errstate(all="ignore"):
            dx = (dy.reshape(-1, 1) * sm).astype(sm.dtype, copy=False)
            dx[np.arange(len(labels)), labels] -= dy
        output_storage[0][0] = dx

    infer_shape = shapes_of(1)
    connection_pattern = connects(0, 1)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (dy, sm, labels), (g,) = inputs, output_gradients
        one_less = inc_subtensor(_picked(sm, labels), -1)
        if dy.type.ndim == 0:
            by_dy, column = sum_(g * one_less), dy
        elif dy.type.broadcastable[0]:
            by_dy, column = sum_(g * one_less, keepdims=True)[0], as_column(dy)
        else:
            by_dy, column = sum_(g * one_less, axis=1), as_column(dy)
        return [by_dy, column * g, disconnected_type.make_variable()]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        return rough_work(("mul",), inputs[1]) + rough_work(("sub",), inputs[1][:1])


crossentropy_softmax_argmax_1hot_with_bias = CrossentropySoftmaxArgmax1HotWithBias()
crossentropy_softmax_1hot_with_bias_dx = CrossentropySoftmax1HotWithBiasDx()


def _no_bias(x: Tensor) -> Tensor:
    # not made of x's first row, which an empty batch lacks
    return zeros((x.shape[1],), x.type.dtype)


def crossentropy_softmax_1hot_with_bias(
    x: TensorLike, b: TensorLike, y_idx: TensorLike, **kwargs: Any
) -> list[Tensor]:
    """Return the cross entropy of softmax(x + b) with labels, a vector, and the softmax.

    x: a matrix of floats (rows, classes). b: a vector with an element for each class. y_idx: the
    label of each row, a vector of integers. The results have shapes (rows,) and (rows, classes),
    and the dtype of x. Raises ValueError for other numbers of dimensions or dtypes; ValueError at
    run time unless there is one label for each row, from 0 to classes - 1, and one element of b for
    each class.
    """
    result: list[Tensor] = crossentropy_softmax_argmax_1hot_with_bias(x, b, y_idx, **kwargs)[:2]
    return result


def crossentropy_softmax_1hot(x: TensorLike, y_idx: TensorLike, **kwargs: Any) -> list[Tensor]:
    """Return the cross entropy of softmax(x) with labels, a vector, and the softmax.

    x: a matrix of floats (rows, classes). y_idx: the label of each row, a vector of integers. The
    results have shapes (rows,) and (rows, classes), and the dtype of x. Raises ValueError for other
    numbers of dimensions or dtypes; ValueError at run time unless there is one label for each row,
    from 0 to classes - 1.
    """
    x = as_tensor_variable(x)
    return crossentropy_softmax_1hot_with_bias(x, _no_bias(x), y_idx, **kwargs)


def crossentropy_softmax_max_and_argmax_1hot_with_bias(
    x: TensorLike, b: TensorLike, y_idx: TensorLike, **kwargs: Any
) -> list[Tensor]:
    """Return cross entropy and softmax(x + b), and the maximum of each row and its column.

    x: a matrix of floats (rows, classes). b: a vector with an element for each class. y_idx: the
    label of each row, a vector of integers. The results have shapes (rows,), (rows, classes),
    (rows,) and (rows,), and the dtype of x, but for the columns, int64. The maximum is that of the
    softmax. Raises ValueError for other numbers of dimensions or dtypes; ValueError at run time
    unless there is one label for each row, from 0 to classes - 1, and one element of b for each
    class.
    """
    nll, sm = crossentropy_softmax_1hot_with_bias(x, b, y_idx, **kwargs)
    return [nll, sm, *max_and_argmax(sm, axis=-1)]


def crossentropy_softmax_max_and_argmax_1hot(
    x: TensorLike, y_idx: TensorLike, **kwargs: Any
) -> list[Tensor]:
    """Return cross entropy and softmax(x), and the maximum of each row and its column.

    x: a matrix of floats (rows, classes). y_idx: the label of each row, a vector of integers. The
    results have shapes (rows,), (rows, classes), (rows,) and (rows,), and the dtype of x, but for
    the columns, int64. The maximum is that of the softmax. Raises ValueError for other numbers of
    dimensions or dtypes; ValueError at run time unless there is one label for each row, from 0 to
    classes - 1.
    """
    x = as_tensor_variable(x)
    return crossentropy_softmax_max_and_argmax_1hot_with_bias(x, _no_bias(x), y_idx, **kwargs)


# --- of given probabilities -----------------------------------------------------------------------


class CrossentropyCategorical1Hot(TensorOp):
    """-log of the probability of each row's label, as a vector."""

    __props__ = ()

    def make_node(self, coding_dist: TensorLike, true_one_of_n: TensorLike) -> Apply:
        coding, labels = as_tensor_variable(coding_dist), as_tensor_variable(true_one_of_n)
        if coding.type.ndim != 2:
            raise TypeError("matrix required for argument: coding_dist")
        # narrower integers are refused, as in Theano
        if labels.type.ndim != 1 or labels.type.dtype not in ("int32", "int64"):
            raise TypeError(
                "integer vector required for argument: true_one_of_n"
                f"(got type: {labels.type} instead of: TensorType(int64, vector)); cast the labels"
            )
        out = tensor_type(coding.type.dtype, (False,)).make_variable()
        return Apply(self, [coding, labels], [out])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        coding, labels = inputs
        _check_labels(labels, coding, "coding_dist")
        with np.errstate(all="ignore"):
            result = -np.log(coding[np.arange(len(labels)), labels])
        output_storage[0][0] = result.astype(coding.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(shapes[0][0],)]

    connection_pattern = connects(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (coding, labels), (g,) = inputs, output_gradients
        return [
            crossentropy_categorical_1hot_grad(g, coding, labels),
            disconnected_type.make_variable(),
        ]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (coding, labels), point = inputs, eval_points[0]
        if point is None:
            return [None]
        return [-_picked(point, labels) / _picked(coding, labels)]

    def traffic(self, node: Apply, inputs: ArrayLayouts, outputs: ArrayLayouts) -> Traffic:
        """Return the bytes of the elements that are read, one of each row, and of the others."""
        _, labels = inputs
        return [outputs[0].bytes, labels.bytes], [outputs[0].bytes]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        return rough_work(("log", "neg"), outputs[0])


class CrossentropyCategorical1HotGrad(TensorOp):
    """The gradient of ``CrossentropyCategorical1Hot`` by the probabilities, from that by y."""

    __props__ = ()

    def make_node(
        self, g_y: TensorLike, coding_dist: TensorLike, true_one_of_n: TensorLike
    ) -> Apply:
        inputs = list(map(as_tensor_variable, (g_y, coding_dist, true_one_of_n)))
        return Apply(self, inputs, [inputs[1].type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        g_y, coding, labels = inputs
        _check_labels(labels, coding, "coding_dist")
        result = np.zeros_like(coding)
        at = np.arange(len(labels)), labels
        with np.errstate(all="ignore"):
            result[at] = -g_y / coding[at]
        output_storage[0][0] = result

    infer_shape = shapes_of(1)
    connection_pattern = connects(0, 1)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (g_y, coding, labels), (g,) = inputs, output_gradients
        slope = _picked(g, labels) / _picked(coding, labels)
        by_coding = set_subtensor(
            _picked(zeros_like(coding), labels), slope * g_y / _picked(coding, labels)
        )
        return [-slope, by_coding, disconnected_type.make_variable()]

    def traffic(self, node: Apply, inputs: ArrayLayouts, outputs: ArrayLayouts) -> Traffic:
        """Return the bytes of the elements that are read, one of each row, and of the others."""
        g_y, _, labels = inputs
        return [g_y.bytes, g_y.bytes, labels.bytes], [outputs[0].bytes]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        return rough_work(("neg", "true_div"), inputs[0])


crossentropy_categorical_1hot = CrossentropyCategorical1Hot()
crossentropy_categorical_1hot_grad = CrossentropyCategorical1HotGrad()


def categorical_crossentropy(coding_dist: TensorLike, true_dist: TensorLike) -> Tensor:
    """Return the cross entropy of distributions along the last dimension with the true ones.

    coding_dist: probabilities. true_dist: probabilities of the same shape, or, for a matrix, a
    vector of int32 or int64 with the class of each row. The result lacks the last dimension; its
    dtype is the upcast of both as floats, with classes that of coding_dist. Raises TypeError for
    other ranks and for classes of another dtype, ValueError for two numbers; ValueError at run time
    if the shapes differ, or for a class that coding_dist lacks.
    """
    coding_dist, true_dist = as_tensor_variable(coding_dist), as_tensor_variable(true_dist)
    if true_dist.type.ndim == coding_dist.type.ndim:
        products = true_dist * elemwise("log")(coding_dist)
        return -sum_(products, axis=coding_dist.type.ndim - 1)
    if true_dist.type.ndim == coding_dist.type.ndim - 1:
        return crossentropy_categorical_1hot(coding_dist, true_dist)
    raise TypeError(
        f"rank mismatch between coding and true distributions: {coding_dist.type} and "
        f"{true_dist.type}. Give labels, a vector of integers, or probabilities of the same rank."
    )


def binary_crossentropy(output: TensorLike, target: TensorLike) -> Tensor:
    """Return the cross entropy, elementwise, of probabilities ``output`` with ``target``.

    Both may have any shape and broadcast. The dtype is the upcast of theirs as floats, at least
    float32 (or floatX, if that is float16). Raises TypeError for what is no tensor; ValueError at
    run time if the shapes do not broadcast.
    """
    output, target = as_tensor_variable(output), as_tensor_variable(target)
    log = elemwise("log")
    result: Tensor = -(target * log(output) + (1.0 - target) * log(1.0 - output))
    return result


def sigmoid_binary_crossentropy(output: TensorLike, target: TensorLike) -> Tensor:
    """Return binary_crossentropy(sigmoid(output), target), accurate for large outputs.

    output: of any shape, before the sigmoid. Shape, dtype and errors are those of
    ``binary_crossentropy``. Raises TypeError for what is no tensor.
    """
    output, target = as_tensor_variable(output), as_tensor_variable(target)
    result: Tensor = target * softplus(-output) + (1.0 - target) * softplus(output)
    return result
