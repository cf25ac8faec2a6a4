"""Diagonals: extracting them, matrices made of them, and setting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first, shapes_of
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.advanced_subtensor import user_zeros_like, zero_gradient
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.subtensor import getitem, set_subtensor
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    TensorOp,
    as_tensor_variable,
    constant,
)

__all__ = ["AllocDiag", "ExtractDiag", "diag", "diagonal", "fill_diagonal", "fill_diagonal_offset"]


class _OfTwoAxes(TensorOp):
    """Base of ExtractDiag and AllocDiag: the offset of the diagonal and its two axes."""

    def __init__(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> None:
        if axis1 < 0 or axis2 < 0:
            raise NotImplementedError(
                f"{type(self).__name__} does not support negative axes, got {axis1} and {axis2}"
            )
        if axis1 == axis2:
            raise ValueError(f"axis1 and axis2 cannot be the same: {axis1}")
        self.offset = int(offset)
        self.axis1 = int(axis1)
        self.axis2 = int(axis2)


class ExtractDiag(_OfTwoAxes):
    """The diagonals of x over two axes, along a last axis that takes their place, as in numpy.

    offset: positive above the main diagonal. view: whether the result shares the memory of x.
    """

    __props__ = ("offset", "axis1", "axis2", "view")

    def __init__(self, offset: int = 0, axis1: int = 0, axis2: int = 1, view: bool = False) -> None:
        super().__init__(offset, axis1, axis2)
        self.view = bool(view)
        if self.view:
            self.view_map = {0: [0]}

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if x.type.ndim < 2:
            raise ValueError(f"ExtractDiag needs an input with 2 or more dimensions, got {x.type}")
        if max(self.axis1, self.axis2) >= x.type.ndim:
            raise ValueError(f"{self} has no axes {self.axis1} and {self.axis2} in {x.type}")
        kept = [d for d in range(x.type.ndim) if d not in (self.axis1, self.axis2)]
        pattern = (*(x.type.broadcastable[d] for d in kept), False)
        return Apply(self, [x], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        diagonal_ = inputs[0].diagonal(self.offset, self.axis1, self.axis2)
        output_storage[0][0] = diagonal_ if self.view else diagonal_.copy()

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        (shape,) = shapes
        rows, columns = shape[self.axis1], shape[self.axis2]
        if self.offset > 0:
            columns = columns - self.offset
        elif self.offset < 0:
            rows = rows + self.offset
        shorter = elemwise("minimum")(rows, columns)
        if self.offset:
            shorter = elemwise("maximum")(shorter, 0)
        kept = [n for d, n in enumerate(shape) if d not in (self.axis1, self.axis2)]
        return [(*kept, shorter)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(x)]
        square = AllocDiag(self.offset, self.axis1, self.axis2)(gz)
        # the square of the gradient may be longer or shorter than x along either axis
        lengths = [
            elemwise("minimum")(shape_of(v)[axis], shape_of(w)[axis])
            for axis, v, w in ((self.axis1, x, square), (self.axis2, x, square))
        ]
        index = [slice(None)] * x.type.ndim
        index[self.axis1], index[self.axis2] = (slice(None, n) for n in lengths)
        part = getitem(user_zeros_like(x), tuple(index))
        return [set_subtensor(part, getitem(square, tuple(index)))]

    R_op = linear_in_first


class AllocDiag(_OfTwoAxes):
    """Zeros with x on the diagonals over two axes, which take the place of the last axis of x.

    offset: positive above the main diagonal. The two axes are of equal length.
    """

    __props__ = ("offset", "axis1", "axis2")

    def make_node(self, diag: TensorLike) -> Apply:
        diag = as_tensor_variable(diag)
        if diag.type.ndim < 1:
            raise ValueError(f"AllocDiag needs an input with 1 or more dimensions, got {diag.type}")
        pattern = self._with_axes(diag.type.broadcastable[:-1], False)
        return Apply(self, [diag], [tensor_type(diag.type.dtype, pattern).make_variable()])

    def _with_axes(self, others: Sequence[Any], entry: Any) -> tuple[Any, ...]:
        """Return ``others`` with ``entry`` inserted at both axes."""
        result = list(others)
        for axis in sorted((self.axis1, self.axis2)):
            result.insert(axis, entry)
        return tuple(result)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        n = x.shape[-1] + abs(self.offset)
        out = np.zeros(self._with_axes(x.shape[:-1], n), dtype=x.dtype)
        view = np.moveaxis(out, (self.axis1, self.axis2), (-2, -1))
        positions = np.arange(x.shape[-1])
        view[..., positions + max(0, -self.offset), positions + max(0, self.offset)] = x
        output_storage[0][0] = out

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        (shape,) = shapes
        n = shape[-1] + abs(self.offset) if self.offset else shape[-1]
        return [self._with_axes(shape[:-1], n)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(x)]
        return [diagonal(gz, self.offset, self.axis1, self.axis2)]

    R_op = linear_in_first


def diagonal(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the diagonals of ``a`` over two axes, ``offset`` above the main one.

    The result has the dtype of a and its other dimensions, then one along the diagonals: for axes
    of lengths n and m it is min(n, m - offset) long, for a negative offset min(n + offset, m), at
    least 0. offset, axis1, axis2: ints.

    Raises ValueError if a has fewer than two dimensions, an axis does not exist or both are the
    same, NotImplementedError if an axis is negative, TypeError for a variable.
    """
    return ExtractDiag(offset, axis1, axis2)(a)


def diag(v: TensorLike, k: int = 0) -> Tensor:
    """Return the matrix with vector ``v`` on its kth diagonal, or the kth diagonal of a matrix v.

    For a vector of length n the matrix has n + abs(k) rows and columns, with zeros elsewhere; for
    two or more dimensions the shape is that of ``diagonal(v, k)``. The dtype is that of v. k: an
    int, above the main diagonal if positive. Raises ValueError if v is 0-d, TypeError if k is a
    variable.
    """
    v = as_tensor_variable(v)
    if v.type.ndim == 1:
        return AllocDiag(k)(v)
    if v.type.ndim >= 2:
        return diagonal(v, offset=k)
    raise ValueError(f"diag takes an input with 1 or more dimensions, got {v.type}")


class FillDiagonal(TensorOp):
    """x with its main diagonal set to a scalar; inputs (x, val).

    A matrix that is taller than wide is filled on its first square only. An input of more than two
    dimensions must have all of one length.
    """

    __props__ = ()
    name = "FillDiagonal"

    def make_node(self, a: TensorLike, val: TensorLike) -> Apply:
        a, val = _diagonal_and_value(self.name, a, val)
        return Apply(self, [a, val], [a.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, val = inputs
        if a.ndim > 2 and len(set(a.shape)) > 1:
            raise ValueError(f"All dimensions of input must be of equal length, got {a.shape}")
        out = a.copy()
        positions = (np.arange(min(a.shape)),) * a.ndim
        out[positions] = val
        output_storage[0][0] = out

    infer_shape = shapes_of(0)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (a, val), (gz,) = inputs, output_gradients
        if a.type.dtype in dtypes.COMPLEX:
            raise NotImplementedError(f"{self.name} has no gradient for complex numbers")
        if a.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(a), zero_gradient(val)]
        if a.type.ndim > 2:
            raise NotImplementedError(f"{self.name} has a gradient for matrices only, got {a.type}")
        return [self(gz, constant(np.zeros((), val.type.dtype))), diagonal(gz).sum()]


class FillDiagonalOffset(TensorOp):
    """The matrix a with the diagonal ``offset`` above its main one set to a scalar.

    Inputs (a, val, offset); offset is an integer scalar.
    """

    __props__ = ()
    name = "FillDiagonalOffset"

    def make_node(self, a: TensorLike, val: TensorLike, offset: TensorLike) -> Apply:
        a, val = _diagonal_and_value(self.name, a, val)
        offset = as_tensor_variable(offset)
        if a.type.ndim != 2:
            raise TypeError(f"{self.name}: first parameter must have two dimensions, not {a.type}")
        if offset.type.ndim != 0:
            raise TypeError(f"{self.name}: third parameter must be a scalar, not {offset.type}")
        if offset.type.dtype not in dtypes.INTEGERS:
            raise TypeError(
                f"{self.name}: third parameter must be an integer. Use theano.tensor.cast to cast."
            )
        return Apply(self, [a, val, offset], [a.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, val, offset = inputs
        out = a.copy()
        out[positions_on(a.shape, int(offset))] = val
        output_storage[0][0] = out

    infer_shape = shapes_of(0)
    connection_pattern = connects(0, 1)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (a, val, offset), (gz,) = inputs, output_gradients
        if a.type.dtype in dtypes.COMPLEX:
            raise NotImplementedError(f"{self.name} has no gradient for complex numbers")
        if a.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(a), zero_gradient(val), disconnected_type.make_variable()]
        cleared = self(gz, constant(np.zeros((), val.type.dtype)), offset)
        # the elements that were overwritten have gradient 0
        return [cleared, (gz - cleared).sum(), disconnected_type.make_variable()]


def positions_on(shape: Sequence[int], offset: int) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = shape
    n = max(0, min(rows, rows + offset, columns, columns - offset))
    along = np.arange(n)
    return along + max(0, -offset), along + max(0, offset)


def _diagonal_and_value(name: str, a: TensorLike, val: TensorLike) -> tuple[Tensor, ...]:
    a, val = as_tensor_variable(a), as_tensor_variable(val)
    if a.type.ndim < 2:
        raise TypeError(f"{name}: first parameter must have at least two dimensions, not {a.type}")
    if val.type.ndim != 0:
        raise TypeError(f"{name}: second parameter must be a scalar, not {val.type}")
    if dtypes.upcast(a.type.dtype, val.type.dtype) != a.type.dtype:
        raise TypeError(
            f"{name}: type of second parameter must be the same as the first's: "
            f"{val.type.dtype} does not fit into {a.type.dtype}"
        )
    return a, cast(val, a.type.dtype)


fill_diagonal_ = FillDiagonal()
fill_diagonal_offset_ = FillDiagonalOffset()


def fill_diagonal(a: TensorLike, val: TensorLike) -> Tensor:
    """Return ``a`` with its main diagonal set to ``val``; the shape and dtype are those of a.

    a: two or more dimensions; of a matrix that is taller than wide, only the first square is
    changed. val: 0-d, of a dtype that a's can hold. Raises TypeError for other dimensions or a
    dtype that does not fit; at run time ValueError if a has more than two dimensions, not all of
    one length.
    """
    return fill_diagonal_(a, val)


def fill_diagonal_offset(a: TensorLike, val: TensorLike, offset: TensorLike) -> Tensor:
    """Return matrix ``a`` with a diagonal set to ``val``; the shape and dtype are those of a.

    offset: a 0-d integer, the diagonal above the main one (below if negative); beyond the matrix,
    nothing is set. val: 0-d, of a dtype that a's can hold. Raises TypeError if a is not a matrix,
    val or offset has dimensions, the dtype of val does not fit, or offset is not an integer.
    """
    return fill_diagonal_offset_(a, val, offset)
