"""Sorting, sorted order and the k largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects, shapes_of, zero_derivative
from opwise.graph.variable import Constant, Var
from opwise.scalar import dtypes
from opwise.tensor.advanced_subtensor import (
    advanced_inc_subtensor,
    advanced_subtensor,
    advanced_subtensor1,
    user_zeros_like,
    zero_gradient,
)
from opwise.tensor.creation import arange
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.shape import flatten
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = ["argsort", "argtopk", "sort", "topk", "topk_and_argtopk"]


class _Sorting(TensorOp):
    """Base of SortOp and ArgSortOp; inputs are the tensor and the axis, a 0-d tensor.

    The axis may be a float: its value must be an integer.
    """

    __props__ = ("kind", "order")

    def __init__(self, kind: str, order: Any = None) -> None:
        self.kind = kind
        self.order = order

    def make_node(self, x: TensorLike, axis: TensorLike = -1) -> Apply:
        x, axis = as_tensor_variable(x), as_tensor_variable(axis)
        if axis.type.ndim != 0 or axis.type.dtype in dtypes.COMPLEX:
            raise TypeError(f"The axis to sort along must be an integer scalar, not {axis}")
        out = tensor_type(self.out_dtype(x), x.type.broadcastable)
        return Apply(self, [x, axis], [out.make_variable()])

    def out_dtype(self, x: Tensor) -> str:
        """Return the dtype of the output for an input."""
        raise NotImplementedError

    infer_shape = shapes_of(0)
    connection_pattern = connects(0)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.kind}, {self.order}}}"


class SortOp(_Sorting):
    """Sorts along an axis. kind: quicksort, mergesort or heapsort. order: has no effect."""

    def out_dtype(self, x: Tensor) -> str:
        return x.type.dtype

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, axis = inputs
        kind: Any = self.kind
        output_storage[0][0] = np.sort(x, _whole(axis), kind=kind, order=self.order)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, axis), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(x), disconnected_type.make_variable()]
        return [_pick(gz, _ranks(self, x, axis), axis), disconnected_type.make_variable()]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        dx = eval_points[0]
        if dx is None:
            return [None]
        x, axis = inputs
        return [_pick(dx, ArgSortOp(self.kind, self.order)(x, axis), axis)]


class ArgSortOp(_Sorting):
    """The int64 positions, along an axis, of the elements in sorted order; it is stable."""

    def out_dtype(self, x: Tensor) -> str:
        return "int64"

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, axis = inputs
        # stable, whatever the kind: equal elements have the same order on every machine, as in C
        order = np.argsort(x, _whole(axis), kind="stable")
        output_storage[0][0] = np.asarray(order, dtype=np.int64)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [zero_gradient(inputs[0]), disconnected_type.make_variable()]

    R_op = zero_derivative


def _whole(axis: Any) -> int:
    """Return the value of an axis as an int; ValueError if it is no integer."""
    if axis != int(axis):
        raise ValueError(f"sort axis must be an integer or None, not {axis}")
    return int(axis)


def _ranks(op: SortOp, x: Tensor, axis: Tensor) -> Tensor:
    """Return the position of each element of x in sorted order."""
    argsort_ = ArgSortOp(op.kind, op.order)
    return ArgSortOp("quicksort")(argsort_(x, axis), axis)


def _pick(x: Tensor, positions: Tensor, axis: Tensor) -> Tensor:
    """Return the elements of ``x`` at ``positions`` along ``axis``; both have one shape."""
    ndim = x.type.ndim
    known = int(axis.data) % ndim if isinstance(axis, Constant) else None
    axis = cast(axis, "int64")
    if known is None:
        axis = elemwise("switch")(elemwise("lt")(axis, 0), axis + ndim, axis)
    index = []
    for d in range(ndim):
        if d == known:
            index.append(positions)
            continue
        along = dimshuffle(arange(shape_of(x)[d]), ["x"] * d + [0] + ["x"] * (ndim - 1 - d))
        if known is None:
            along = elemwise("switch")(elemwise("eq")(axis, d), positions, along)
        index.append(along)
    return advanced_subtensor1(x, index[0]) if ndim == 1 else advanced_subtensor(x, *index)


def _with_axis(a: TensorLike, axis: Any) -> tuple[Tensor, Any]:
    a = as_tensor_variable(a)
    return (flatten(a), 0) if axis is None else (a, axis)


def sort(a: TensorLike, axis: Any = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Return ``a`` sorted along ``axis`` (default: the last); None sorts the flattened array.

    The shape and dtype are those of a. axis: an integer or a 0-d variable. kind: 'quicksort',
    'mergesort' or 'heapsort', without an effect on the result. order: None. NaN is sorted to the
    end. Raises TypeError if the axis has dimensions; at run time ValueError if it is out of range
    or has a fraction.
    """
    a, axis = _with_axis(a, axis)
    return SortOp(kind, order)(a, axis)


def argsort(a: TensorLike, axis: Any = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Return the int64 positions of the elements of ``a`` in sorted order along ``axis``.

    The shape is that of a. axis: an integer or a 0-d variable (default: the last); None returns
    positions in the flattened array. Equal elements keep their order, whatever the kind; NaN comes
    last. Raises TypeError if the axis has dimensions; at run time ValueError if it is out of range
    or has a fraction.
    """
    a, axis = _with_axis(a, axis)
    return ArgSortOp(kind, order)(a, axis)


class TopKOp(Op):
    """The k largest elements along ``axis``, and their positions; the smallest if k is negative.

    sorted: whether they are in descending order (ascending for the smallest). idx_dtype: of the
    positions. return_values, return_indices: which of the two outputs there are.
    """

    __props__ = ("axis", "sorted", "return_values", "return_indices", "idx_dtype")

    def __init__(
        self,
        axis: int = -1,
        sorted: bool = True,
        idx_dtype: str = "int64",
        return_values: bool = True,
        return_indices: bool = True,
    ) -> None:
        if not (return_values or return_indices):
            raise ValueError("Neither return_values nor return_indices is True, this isn't allowed")
        if idx_dtype not in dtypes.INTEGERS:
            raise TypeError(f"idx_dtype must be an integer dtype, got {idx_dtype!r}")
        self.axis = int(axis)
        self.sorted = bool(sorted)
        self.return_values = bool(return_values)
        self.return_indices = bool(return_indices)
        self.idx_dtype = idx_dtype

    def make_node(self, x: TensorLike, kth: TensorLike) -> Apply:
        x, kth = as_tensor_variable(x), as_tensor_variable(kth)
        ndim = x.type.ndim
        if ndim == 0:
            raise ValueError("Cannot take the largest elements of a scalar")
        if not -ndim <= self.axis < ndim:
            raise IndexError(f'"axis" parameter out of range, expected integer within [{-ndim}, '
                             f"{ndim - 1}]")  # fmt: skip
        if kth.type.ndim != 0 or kth.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"kth must be an integer scalar, not {kth} of {kth.type}")
        pattern = tuple(b and d != self.axis % ndim for d, b in enumerate(x.type.broadcastable))
        outs = []
        if self.return_values:
            outs.append(tensor_type(x.type.dtype, pattern).make_variable())
        if self.return_indices:
            outs.append(tensor_type(self.idx_dtype, pattern).make_variable())
        return Apply(self, [x, kth], outs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, k = inputs[0], int(inputs[1])
        n = x.shape[self.axis]
        if (k == 0 and n > 0) or abs(k) > n:
            raise ValueError(f"topk: kth cannot be {k} for a dimension of length {n}")
        order = np.argsort(x, axis=self.axis, kind="stable")
        front = slice(0, -k) if k < 0 else slice(n - k, n)
        chosen = np.moveaxis(np.moveaxis(order, self.axis, -1)[..., front], -1, self.axis)
        if k > 0:
            chosen = np.flip(chosen, self.axis)
        if not self.sorted:
            chosen = np.sort(chosen, axis=self.axis)
        results = []
        if self.return_values:
            results.append(np.take_along_axis(x, chosen, self.axis))
        if self.return_indices:
            results.append(chosen.astype(self.idx_dtype))
        for cell, result in zip(output_storage, results, strict=True):
            cell[0] = result

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        shape = list(shapes[0])
        shape[self.axis] = cast(elemwise("abs_")(node.inputs[1]), "int64")
        return [tuple(shape)] * len(node.outputs)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        values = [True] if self.return_values else []
        return [values + [False] * self.return_indices, [False] * len(node.outputs)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        x, k = inputs
        if not self.return_values or x.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(x), disconnected_type.make_variable()]
        if self.return_indices:
            positions = outputs[1]
        else:
            positions = TopKOp(self.axis, self.sorted, "int64", return_values=False)(x, k)
        ndim = x.type.ndim
        index = [
            positions
            if d == self.axis % ndim
            else dimshuffle(arange(shape_of(x)[d]), ["x"] * d + [0] + ["x"] * (ndim - 1 - d))
            for d in range(ndim)
        ]
        gx = advanced_inc_subtensor(user_zeros_like(x), output_gradients[0], *index)
        return [gx, disconnected_type.make_variable()]


def topk(
    x: TensorLike,
    kth: TensorLike,
    axis: int | None = -1,
    sorted: bool = True,
    idx_dtype: str = "int64",
) -> Tensor:
    """Return the ``kth`` (a number k) largest elements of ``x``; the smallest if kth is negative.

    The result has the dtype of x and its shape, but abs(kth) elements along the axis. kth: an
    integer or a 0-d integer variable. axis: an int; None selects from the flattened array. sorted:
    largest first (the smallest first if kth is negative), otherwise in their order in x. NaN is the
    largest.

    Raises IndexError if the axis is out of range, TypeError if kth is not a 0-d integer or
    idx_dtype is not an integer dtype, ValueError if x is 0-d; at run time ValueError if kth is 0 or
    exceeds the length.
    """
    x, axis = _with_axis(x, axis)
    result: Tensor = TopKOp(axis, sorted, idx_dtype, return_indices=False)(x, kth)
    return result


def argtopk(
    x: TensorLike,
    kth: TensorLike,
    axis: int | None = -1,
    sorted: bool = True,
    idx_dtype: str = "int64",
) -> Tensor:
    """Return the positions of the ``kth`` largest elements, of ``idx_dtype``.

    Arguments, shape and errors are those of ``topk``. Raises TypeError if idx_dtype is not an
    integer dtype.
    """
    x, axis = _with_axis(x, axis)
    result: Tensor = TopKOp(axis, sorted, idx_dtype, return_values=False)(x, kth)
    return result


def topk_and_argtopk(
    x: TensorLike,
    kth: TensorLike,
    axis: int | None = -1,
    sorted: bool = True,
    idx_dtype: str = "int64",
) -> list[Tensor]:
    """Return the ``kth`` largest elements and their positions: a list of ``topk`` and ``argtopk``.

    Arguments, shapes, dtypes and errors are those of these. Raises TypeError if idx_dtype is not an
    integer dtype.
    """
    x, axis = _with_axis(x, axis)
    result: list[Tensor] = TopKOp(axis, sorted, idx_dtype)(x, kth)
    return result
