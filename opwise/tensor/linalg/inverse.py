"""Inverses and determinants, also of tensors as matrices of several axes; least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import scalar_shape, shapes_of
from opwise.graph.variable import Var
from opwise.tensor.creation import identity_like
from opwise.tensor.linalg.operands import as_matrix, float_dtype, vector_of
from opwise.tensor.linalg.products import matrix_dot
from opwise.tensor.products import dot
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "Det",
    "MatrixInverse",
    "MatrixPinv",
    "SLogDet",
    "TensorInv",
    "TensorSolve",
    "det",
    "lstsq",
    "matrix_inverse",
    "pinv",
    "tensorinv",
    "tensorsolve",
]


class MatrixPinv(TensorOp):
    """The pseudo-inverse of a matrix of any shape, of its dtype; that of (m, n) has shape (n, m).

    Its product with a vector b is the least-squares solution of ``dot(x, z) = b`` (Moore-Penrose).
    That of integers is rounded towards 0. Raises AssertionError unless x is a matrix; at run time
    LinAlgError for NaN, TypeError for float16.
    """

    __props__ = ()

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        out = tensor_type(x.type.dtype, x.type.broadcastable[::-1])
        return Apply(self, [x], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        output_storage[0][0] = np.linalg.pinv(x).astype(x.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [shapes[0][::-1]]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        # Golub and Pereyra, The differentiation of pseudo-inverses (1973), theorem 4.3
        (x,), (z,), (gz,) = inputs, outputs, output_gradients
        onto_rows, onto_columns = dot(x, z), dot(z, x)
        return [
            -matrix_dot(z.T, gz, z.T)
            + matrix_dot(identity_like(onto_rows) - onto_rows.T, gz.T, z, z.T)
            + matrix_dot(z.T, z, gz.T, identity_like(onto_columns) - onto_columns.T)
        ]


pinv = MatrixPinv()


class MatrixInverse(TensorOp):
    """The inverse of a square matrix, of its shape and dtype.

    That of integers is rounded towards 0. Raises AssertionError unless x is a matrix; at run time
    LinAlgError if it is not square or has no inverse, TypeError for float16.
    """

    __props__ = ()
    traffic = costs.each_once

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        return Apply(self, [x], [x.type.make_variable()])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the floating-point operations of a factorization and an inverse of both parts."""
        n = inputs[0][0]
        result: int = 2 * n**3
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        output_storage[0][0] = np.linalg.inv(x).astype(x.dtype, copy=False)

    infer_shape = shapes_of(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (z,), (gz,) = outputs, output_gradients
        return [-matrix_dot(z.T, gz, z.T)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (dx,) = eval_points
        if dx is None:
            return [None]
        z = self(*inputs)
        return [-matrix_dot(z, dx, z)]


matrix_inverse = MatrixInverse()


class Det(TensorOp):
    """The determinant of a square matrix, of shape () and its dtype.

    Raises AssertionError unless x is a matrix; at run time LinAlgError if it is not square,
    TypeError for float16.
    """

    __props__ = ()

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        return Apply(self, [x], [tensor_type(x.type.dtype, ()).make_variable()])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the floating-point operations of a factorization, of the highest order."""
        n = inputs[0][0]
        result: int = 2 * n**3 // 3
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        output_storage[0][0] = np.asarray(np.linalg.det(x), dtype=x.dtype)

    infer_shape = scalar_shape

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (z,), (gz,) = inputs, outputs, output_gradients
        return [gz * z * matrix_inverse(x).T]

    def __str__(self) -> str:
        return "Det"


det = Det()


class SLogDet(Op):
    """The sign of the determinant of a square matrix, and the logarithm of its size.

    Both have shape () and the dtype of the matrix, float32 or float64; those of a singular matrix
    are 0 and -inf. Raises AssertionError unless x is a matrix, TypeError for other dtypes; at run
    time LinAlgError if it is not square.
    """

    __props__ = ()

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        if x.type.dtype not in ("float32", "float64"):
            raise TypeError(f"SLogDet takes float32 or float64, not {x.type.dtype}")
        outs = [tensor_type(x.type.dtype, ()).make_variable() for _ in range(2)]
        return Apply(self, [x], outs)

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the floating-point operations of a factorization, of the highest order."""
        return det.flops(inputs, outputs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        for storage, value in zip(output_storage, np.linalg.slogdet(inputs[0]), strict=True):
            storage[0] = np.asarray(value, dtype=inputs[0].dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(), ()]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        # the sign is constant but where the determinant is 0
        return [output_gradients[1] * matrix_inverse(inputs[0]).T]


class TensorInv(TensorOp):
    """The inverse of a tensor as a matrix whose rows are its first ``ind`` axes, as in numpy."""

    __props__ = ("ind",)

    def __init__(self, ind: int = 2) -> None:
        self.ind = ind

    def _turned(self, axes: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(axes[self.ind :]) + tuple(axes[: self.ind])

    def make_node(self, a: TensorLike) -> Apply:
        a = as_tensor_variable(a)
        out = tensor_type(float_dtype(a), self._turned(a.type.broadcastable))
        return Apply(self, [a], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.linalg.tensorinv(inputs[0], self.ind)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [self._turned(shapes[0])]


def tensorinv(a: TensorLike, ind: int = 2) -> Tensor:
    """Return the inverse of ``a`` for ``tensordot(a, b, ind)``.

    ind: the number of first axes of a that are its rows, at least 1; the others are its columns.
    The shape of the result is that of a with the columns first; its dtype is that of a (float64 for
    integers). Raises LinAlgError, when it runs, if the product of the lengths of rows differs from
    that of columns, or if there is no inverse; ValueError for an ind below 1, TypeError for
    float16.
    """
    return TensorInv(ind)(a)


class TensorSolve(TensorOp):
    """The solution x of ``tensordot(a, x, x.ndim) = b``, as in numpy."""

    __props__ = ("axes",)

    def __init__(self, axes: Sequence[int] | None = None) -> None:
        self.axes = axes if axes is None else tuple(axes)

    def make_node(self, a: TensorLike, b: TensorLike) -> Apply:
        a, b = as_tensor_variable(a), as_tensor_variable(b)
        ndim = a.type.ndim - b.type.ndim
        if ndim < 0:
            raise TypeError(f"TensorSolve needs an a with all dimensions of b: {a.type}, {b.type}")
        out = tensor_type(float_dtype(a, b), (False,) * ndim)
        return Apply(self, [a, b], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, b = inputs
        output_storage[0][0] = np.asarray(np.linalg.tensorsolve(a, b, self.axes))


def tensorsolve(a: TensorLike, b: TensorLike, axes: Any = None) -> Tensor:
    """Return the solution x of ``tensordot(a, x, x.ndim) = b``.

    a has the dimensions of b first, then those of x, which together are as long. axes: axes of a
    that are moved to its end first. x has the shape of the remaining dimensions of a, and the
    upcast of the dtypes (float64 for integers). Raises TypeError if a has fewer dimensions than b;
    when it runs, LinAlgError if there is no solution, ValueError if b has another number of
    elements or if an axis does not exist, TypeError for float16.
    """
    return TensorSolve(axes)(a, b)


class lstsq(Op):
    """The least-squares solution of ``dot(x, z) = y``; inputs (x, y, rcond), as in numpy.

    y is a vector or a matrix. Singular values below rcond times the largest one count as 0. The
    outputs are z, the sums of squared residuals, the rank of x, and its singular values. Raises
    LinAlgError, when it runs, for operands of other numbers of dimensions.
    """

    __props__ = ()

    def make_node(self, x: TensorLike, y: TensorLike, rcond: TensorLike) -> Apply:
        x, y, rcond = map(as_tensor_variable, (x, y, rcond))
        solution = tensor_type(float_dtype(x, y), (False,) * y.type.ndim)
        rank = tensor_type("int64", ())
        outs = [solution.make_variable(), vector_of("float64"), rank.make_variable()]
        return Apply(self, [x, y, rcond], [*outs, vector_of("float64")])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, rcond = inputs
        if rcond.ndim:
            raise np.linalg.LinAlgError(f"rcond must be a number; it has shape {rcond.shape}")
        results = np.linalg.lstsq(x, y, float(rcond))
        for out, result, storage in zip(node.outputs, results, output_storage, strict=True):
            storage[0] = np.asarray(result, dtype=out.type.dtype)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * 4, [True, True, False, False], [False] * 4]
