"""Activation functions and other expressions of neural networks.

Softmax is in ``rowsoftmax``, cross entropies in ``crossentropy``, sigmoids in ``sigm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.scalar.op import CLASSES, OPS
from opwise.tensor.blas import batched_dot
from opwise.tensor.creation import arange
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.extra_ops import Unique
from opwise.tensor.join import concatenate
from opwise.tensor.nnet import crossentropy, rowsoftmax
from opwise.tensor.nnet.crossentropy import *  # noqa: F403
from opwise.tensor.nnet.rowsoftmax import *  # noqa: F403
from opwise.tensor.nnet.rowsoftmax import softmax
from opwise.tensor.nnet.sigm import sigmoid, softplus
from opwise.tensor.products import dot, tensordot
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.shape import reshape
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    *crossentropy.__all__,
    *rowsoftmax.__all__,
    "Prepend_scalar_constant_to_each_row",
    "Prepend_scalar_to_each_row",
    "ScalarSoftsign",
    "confusion_matrix",
    "elu",
    "h_softmax",
    "prepend_0_to_each_row",
    "prepend_1_to_each_row",
    "prepend_scalar_to_each_row",
    "relu",
    "scalar_softsign",
    "selu",
    "sigmoid",
    "softplus",
    "softsign",
]


# --- activations ----------------------------------------------------------------------------------

ScalarSoftsign = CLASSES["ScalarSoftsign"]
scalar_softsign = OPS["scalar_softsign"]
softsign = elemwise("scalar_softsign")


def relu(x: TensorLike, alpha: TensorLike = 0) -> Tensor | float | np.ndarray:
    """Return x where it is positive and ``alpha`` times x elsewhere, elementwise.

    alpha: a number or a tensor that broadcasts against x; the result has the shape of both. Its
    dtype is the upcast of theirs as floats (integers of 8 and 16 bits count as float32, others as
    float64; a fraction counts as floatX), at least float32 (or floatX, if that is float16). The
    derivative at 0 is the mean of both slopes. For a number or an array, and alpha 0, the result is
    a number or an array. Raises TypeError for what is no tensor; ValueError at run time if the
    shapes do not broadcast.
    """
    is_zero = isinstance(alpha, int | float) and alpha == 0
    if is_zero and isinstance(x, np.ndarray | np.generic | int | float):
        number: Any = x
        if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biu":
            number = 1.0 * number
        rectified: float | np.ndarray = 0.5 * (number + abs(number))
        return rectified
    x = tensor = as_tensor_variable(x)
    discrete = x.type.dtype in dtypes.DISCRETE
    zero = x.type.numpy_dtype.type(0)
    if is_zero and discrete:  # x + abs(x) may overflow: 100 + 100 is -56 as int8
        return 1.0 * elemwise("maximum")(x, zero)
    if is_zero:
        return 0.5 * (tensor + elemwise("abs_")(x))
    alpha = as_tensor_variable(alpha)
    if alpha.type.dtype in dtypes.DISCRETE:  # so may 1 + alpha
        alpha = cast(alpha, (0.5 * alpha).type.dtype)
    rising: Tensor = 0.5 * (1 + alpha)
    if discrete:  # so may abs(x)
        wide = (rising * x).type.dtype
        size = cast(elemwise("maximum")(x, zero), wide) - cast(elemwise("minimum")(x, zero), wide)
    else:
        size = elemwise("abs_")(x)
    result: Tensor | float | np.ndarray = rising * tensor + 0.5 * (1 - alpha) * size
    return result


def elu(x: TensorLike, alpha: Any = 1) -> Tensor:
    """Return x where it is positive and ``alpha`` (exp(x) - 1) elsewhere, elementwise.

    alpha: a number or a tensor that broadcasts against x; the result has the shape of both. Its
    dtype is that of x (for integers, float32 of 8 and 16 bits, else float64), upcast with that of
    alpha, of which a fraction counts as floatX. Raises TypeError for what is no tensor; ValueError
    at run time if the shapes do not broadcast.
    """
    x = as_tensor_variable(x)
    below = x
    if x.type.dtype in dtypes.FLOATS:  # exp of large x would be inf, and the gradient inf times 0
        below = elemwise("minimum")(x, x.type.numpy_dtype.type(0))
    return elemwise("switch")(x > 0, x, alpha * elemwise("expm1")(below))


def selu(x: Any) -> Tensor:
    """Return the scaled elu whose outputs keep mean 0 and variance 1 (Klambauer et al., 2017).

    The result has the shape of x; its dtype is the upcast of floatX and that of ``elu(x)``. Raises
    TypeError for what is no tensor.
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


# --- rows with one more element -------------------------------------------------------------------


class Prepend_scalar_constant_to_each_row(TensorOp):
    """A matrix with a column of the number ``val`` before the others.

    For a matrix of shape (m, n), it has shape (m, n + 1), and its dtype. Raises TypeError for other
    numbers of dimensions.
    """

    __props__ = ("val",)

    def __init__(self, val: float = 0) -> None:
        self.val = float(val)

    def make_node(self, mat: TensorLike) -> Apply:
        mat = as_tensor_variable(mat)
        if mat.type.ndim != 2:
            raise TypeError(f"Expected a matrix as input. Got {mat.type}")
        out = tensor_type(mat.type.dtype, (mat.type.broadcastable[0], False))
        return Apply(self, [mat], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = _with_column(self.val, inputs[0])

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        ((rows, columns),) = shapes
        return [(rows, columns + 1)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [output_gradients[0][:, 1:]]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{Constant{{{self.val}}}}}"


class Prepend_scalar_to_each_row(TensorOp):
    """A matrix with a column of the scalar ``val`` before the others.

    For a matrix of shape (m, n), it has shape (m, n + 1), and its dtype. Raises TypeError for other
    numbers of dimensions.
    """

    __props__ = ()

    def make_node(self, val: TensorLike, mat: TensorLike) -> Apply:
        val, mat = as_tensor_variable(val), as_tensor_variable(mat)
        if val.type.ndim or mat.type.ndim != 2:
            raise TypeError(f"Expected a scalar and a matrix. Got {val.type} and {mat.type}")
        out = tensor_type(mat.type.dtype, (mat.type.broadcastable[0], False))
        return Apply(self, [val, mat], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = _with_column(*inputs)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        _, (rows, columns) = shapes
        return [(rows, columns + 1)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (g,) = output_gradients
        return [sum_(g[:, 0]), g[:, 1:]]


def _with_column(value: Any, matrix: np.ndarray) -> np.ndarray:
    out = np.empty((matrix.shape[0], matrix.shape[1] + 1), matrix.dtype)
    out[:, 0] = value
    out[:, 1:] = matrix
    return out


prepend_scalar_to_each_row = Prepend_scalar_to_each_row()
prepend_0_to_each_row = Prepend_scalar_constant_to_each_row(0.0)
prepend_1_to_each_row = Prepend_scalar_constant_to_each_row(1.0)


# --- outputs of a classifier ----------------------------------------------------------------------


def confusion_matrix(actual: TensorLike, pred: TensorLike) -> list[Tensor]:
    """Return how often each class was predicted as each other class, and the sorted classes.

    actual, pred: vectors of labels. The first result is a matrix of int64 of shape (classes,
    classes): rows are the actual classes, columns the predicted ones. The second is a vector of the
    upcast of their dtypes. Raises ValueError unless both are vectors; ValueError at run time if
    their lengths differ.
    """
    actual, pred = as_tensor_variable(actual), as_tensor_variable(pred)
    for labels, name in ((actual, "actual"), (pred, "pred")):
        if labels.type.ndim != 1:
            raise ValueError(f"{name} must be 1-d tensor variable. Got {labels.type}")
    order = Unique()(concatenate([actual, pred]))
    is_actual, is_pred = (
        cast(elemwise("eq")(dimshuffle(labels, (0, "x")), dimshuffle(order, ("x", 0))), "int64")
        for labels in (actual, pred)
    )
    return [dot(is_actual.T, is_pred), order]


def h_softmax(
    x: TensorLike,
    batch_size: Any,
    n_outputs: int,
    n_classes: int,
    n_outputs_per_class: int,
    W1: Any,
    b1: Any,
    W2: TensorLike,
    b2: TensorLike,
    target: TensorLike | None = None,
) -> Tensor:
    """Return the probabilities of a two-level softmax: over classes, then over outputs of a class.

    x: matrix (batch_size, features). W1, b1: (features, n_classes), (n_classes,). W2, b2:
    (n_classes, features, n_outputs_per_class), (n_classes, n_outputs_per_class). target: integers,
    one output for each row; the result then is the vector of their probabilities, of shape
    (batch_size,), and only one class per row is computed. Without it, the result has the shape
    (batch_size, n_outputs). Its dtype is the upcast of those of x and the parameters.

    Raises TypeError for a target that has no integers, ValueError for other numbers of dimensions
    and for x and parameters without floats; at run time ValueError for shapes that do not fit,
    IndexError for a target that is too large or not one for each row.
    """
    x = as_tensor_variable(x)
    class_probs = softmax(dot(x, W1) + b1)
    if target is None:
        activations = tensordot(x, W2, axes=((1,), (1,))) + b2
        flat = reshape(activations, (-1, n_outputs_per_class), ndim=2)
        shape = (batch_size, n_classes, n_outputs_per_class)
        output_probs = reshape(softmax(flat), shape, ndim=3)
        probs = dimshuffle(class_probs, (0, 1, "x")) * output_probs
        rows = reshape(probs, (batch_size, n_classes * n_outputs_per_class), ndim=2)
        return rows[:, :n_outputs]
    target = as_tensor_variable(target).flatten()
    target_class = target // n_outputs_per_class
    target_output = target % n_outputs_per_class
    W2, b2 = as_tensor_variable(W2), as_tensor_variable(b2)
    # for each row of x, the product with the matrix of its class
    activations = batched_dot(dimshuffle(x, (0, "x", 1)), W2[target_class])[:, 0, :]
    output_probs = softmax(activations + b2[target_class])
    rows = arange(batch_size)
    return class_probs[rows, target_class] * output_probs[rows, target_output]
