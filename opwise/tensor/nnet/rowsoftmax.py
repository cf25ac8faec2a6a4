"""The softmax of the rows of a matrix, also with a bias or as logarithm, and its gradient."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise, rough_work
from opwise.tensor.reduce import max as max_
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "LogSoftmax",
    "Softmax",
    "SoftmaxGrad",
    "SoftmaxWithBias",
    "logsoftmax",
    "logsoftmax_op",
    "softmax",
    "softmax_grad",
    "softmax_graph",
    "softmax_op",
    "softmax_with_bias",
]


# --- arguments ------------------------------------------------------------------------------------


def is_float(x: Variable, *ndims: int) -> bool:
    """Return whether a tensor is of floats and has one of these numbers of dimensions."""
    return x.type.dtype in dtypes.FLOATS and x.type.ndim in ndims


def _as_rows(x: TensorLike) -> Tensor:
    """Return ``x`` as a matrix; a vector becomes a single row. Raises ValueError for others."""
    x = as_tensor_variable(x)
    if not is_float(x, 1, 2):
        do = "give the axis of the distributions, as in softmax(x, axis=-1)"
        if x.type.dtype not in dtypes.FLOATS:
            do = "cast it to floatX"
        raise ValueError(f"x must be 1-d or 2-d tensor of floats. Got {x.type}: {do}")
    if x.type.broadcastable[-1]:
        warnings.warn(
            f"the softmax of {x} runs over a dimension of length 1, so it is 1 everywhere",
            stacklevel=5,
        )
    return dimshuffle(x, ("x", 0)) if x.type.ndim == 1 else x


def as_column(x: Tensor) -> Tensor:
    """Return a vector as a matrix of one column."""
    return dimshuffle(x, (0, "x"))


def check_bias(x: np.ndarray, b: np.ndarray) -> None:
    """Raise ValueError unless a bias has an element for each column: it does not broadcast."""
    if b.shape[0] != x.shape[1]:
        raise ValueError(f"b has {b.shape[0]} elements, but x has {x.shape[1]} columns: {x.shape}")


# --- arrays ---------------------------------------------------------------------------------------


def below_zero(x: np.ndarray) -> np.ndarray:
    """Return ``x`` minus the maximum of each row, at least in float32: exp cannot overflow."""
    if x.dtype == np.float16:
        x = x.astype(np.float32)
    result: np.ndarray = x - x.max(axis=1, keepdims=True, initial=-np.inf)
    return result


def softmax_of_rows(x: np.ndarray) -> np.ndarray:
    """Return the softmax of each row; float32 for float16."""
    e = np.exp(below_zero(x))
    result: np.ndarray = e / e.sum(axis=1, keepdims=True)
    return result


#: the rows of the table that take as long as one element of a softmax: its maximum, exp, and a sum
_OF_SOFTMAX = ("maximum", "sub", "exp", "add", "true_div")


# --- operations -----------------------------------------------------------------------------------


class _OfRows(TensorOp):
    """Base of functions of each row of a matrix of floats; a vector is one row."""

    __props__ = ()
    traffic = costs.each_once
    nin = nout = 1

    def make_node(self, x: TensorLike) -> Apply:
        x = _as_rows(x)
        return Apply(self, [x], [x.type.make_variable()])

    infer_shape = shapes_of(0)


class Softmax(_OfRows):
    """exp(x) divided by its sum over each row."""

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        with np.errstate(all="ignore"):
            output_storage[0][0] = softmax_of_rows(x).astype(x.dtype, copy=False)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [softmax_grad(output_gradients[0], outputs[0])]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        # the Jacobian of a row is symmetric
        if eval_points[0] is None:
            return [None]
        return [softmax_grad(eval_points[0], self(inputs[0]))]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        return rough_work(_OF_SOFTMAX, inputs[0])


class SoftmaxWithBias(TensorOp):
    """The softmax of each row of x + b: x a matrix of floats, b a vector of floats.

    The result has the shape and dtype of x. Raises ValueError for other numbers of dimensions and
    dtypes; ValueError at run time unless b has an element for each column.
    """

    __props__ = ()
    traffic = costs.each_once
    nin, nout = 2, 1

    def make_node(self, x: TensorLike, b: TensorLike) -> Apply:
        x, b = as_tensor_variable(x), as_tensor_variable(b)
        if not is_float(x, 2):
            raise ValueError(f"x must be 2-d tensor of floats. Got {x.type}")
        if not is_float(b, 1):
            raise ValueError(f"b must be 1-d tensor of floats. Got {b.type}")
        return Apply(self, [x, b], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, b = inputs
        check_bias(x, b)
        with np.errstate(all="ignore"):
            output_storage[0][0] = softmax_of_rows(x + b).astype(x.dtype, copy=False)

    infer_shape = shapes_of(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        dx = softmax_grad(output_gradients[0], outputs[0])
        return [dx, sum_(dx, axis=0)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        point = sum_of_points(inputs[0], *eval_points)
        return [None if point is None else softmax_grad(point, self(*inputs))]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        return rough_work(("add", *_OF_SOFTMAX), inputs[0])


def sum_of_points(x: Tensor, of_x: Tensor | None, of_b: Tensor | None) -> Tensor | None:
    """Return the direction of x + b as a matrix, from those of x and b; None without any."""
    if of_b is None:
        return of_x
    of_b = elemwise("second")(x, dimshuffle(of_b, ("x", 0)))
    return of_b if of_x is None else elemwise("add")(of_x, of_b)


class SoftmaxGrad(TensorOp):
    """The gradient by x of a softmax with output ``sm``, from the gradient ``dy`` by sm."""

    __props__ = ()
    traffic = costs.each_once
    nin, nout = 2, 1

    def make_node(self, dy: TensorLike, sm: TensorLike) -> Apply:
        dy, sm = as_tensor_variable(dy), as_tensor_variable(sm)
        for x, name in ((dy, "dy"), (sm, "sm")):
            if not is_float(x, 1, 2):
                raise ValueError(f"{name} must be 1-d or 2-d tensor of floats. Got {x.type}")
        dy, sm = (dimshuffle(x, ("x", 0)) if x.type.ndim == 1 else x for x in (dy, sm))
        return Apply(self, [dy, sm], [sm.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        dy, sm = inputs
        with np.errstate(all="ignore"):
            weighted = dy * sm
            dx = weighted - weighted.sum(axis=1, keepdims=True) * sm
        output_storage[0][0] = dx.astype(sm.dtype, copy=False)

    infer_shape = shapes_of(1)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (dy, sm), (g,) = inputs, output_gradients
        centred = g - as_column(sum_(g * sm, axis=1))
        return [centred * sm, centred * dy - g * as_column(sum_(dy * sm, axis=1))]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (dy, sm), (of_dy, of_sm) = inputs, eval_points
        parts = []
        if of_dy is not None:
            parts.append(self(of_dy, sm))
        if of_sm is not None:
            moved = as_column(sum_(dy * of_sm, axis=1)) * sm
            parts.append((dy - as_column(sum_(dy * sm, axis=1))) * of_sm - moved)
        return [parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else None]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        return rough_work(("mul", "add", "mul", "sub"), inputs[1])


class LogSoftmax(_OfRows):
    """The logarithm of the softmax of each row, without the underflow of log(softmax(x))."""

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        with np.errstate(all="ignore"):
            moved = below_zero(x)
            result = moved - np.log(np.exp(moved).sum(axis=1, keepdims=True))
        output_storage[0][0] = result.astype(x.dtype, copy=False)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (g,) = inputs, output_gradients
        return [g - sum_(g, axis=1, keepdims=True) * softmax_op(x)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (x,), (point,) = inputs, eval_points
        if point is None:
            return [None]
        return [point - sum_(point * softmax_op(x), axis=1, keepdims=True)]

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes."""
        of_rows = rough_work(("log",), inputs[0][:1])
        return rough_work(("maximum", "sub", "exp", "add", "sub"), inputs[0]) + of_rows


softmax_op = Softmax()
softmax_with_bias = SoftmaxWithBias()
softmax_grad = SoftmaxGrad()
logsoftmax_op = LogSoftmax()


def softmax(c: TensorLike, axis: int | None = None) -> Tensor:
    """Return the softmax of each row of a matrix of floats; a vector is a matrix of one row.

    axis: the axis along which the results add up to 1, of a tensor of any rank. The result has the
    shape and dtype of ``c``. Raises ValueError for an axis that c has not, and without an axis for
    another dtype or number of dimensions; warns if rows are known to have length 1.
    """
    if axis is None:
        return softmax_op(c)
    e = elemwise("exp")(_below_largest(c, axis))
    return e / sum_(e, axis=axis, keepdims=True)


def logsoftmax(c: TensorLike, axis: int | None = None) -> Tensor:
    """Return the logarithm of the softmax of each row; a vector is a matrix of one row.

    axis: that along which the exponentials of the results add up to 1, of a tensor of any rank. The
    result has the shape and dtype of ``c``, which has floats. Raises ValueError for an axis that c
    has not, and without an axis for another dtype or number of dimensions; warns if rows are known
    to have length 1.
    """
    if axis is None:
        return logsoftmax_op(c)
    x = _below_largest(c, axis)
    return x - elemwise("log")(sum_(elemwise("exp")(x), axis=axis, keepdims=True))


def _below_largest(c: TensorLike, axis: int) -> Tensor:
    """Return c less the largest along an axis, of which exp is at most 1."""
    x = as_tensor_variable(c)
    return x - max_(x, axis=axis, keepdims=True)


def softmax_graph(c: Any) -> Tensor:
    """Return the softmax over the last dimension as an expression, which may overflow.

    c: a tensor of any shape but (); the result has its shape and dtype (for integers, float32 of 8
    and 16 bits, else float64). Rewrites replace it by ``Softmax`` for matrices. Raises ValueError
    for a number.
    """
    e = elemwise("exp")(c)
    return e / sum_(e, axis=-1, keepdims=True)
