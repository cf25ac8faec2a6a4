"""Cumulative sums, differences, repetition, counting, searching, and positions as indices.

Diagonals are in ``opwise.tensor.diagonal``, selection by value in ``opwise.tensor.selection``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from opwise.config import config
from opwise.errors import NotScalarConstantError
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first, shapes_of
from opwise.graph.variable import Constant, Var
from opwise.scalar import dtypes
from opwise.scalar.dtypes import DTypeLike
from opwise.tensor.advanced_subtensor import (
    advanced_inc_subtensor1,
    broadcast_length,
    user_zeros_like,
    zero_gradient,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.creation import alloc, arange, zeros
from opwise.tensor.diagonal import (  # noqa: F401  (names of theano.tensor.extra_ops)
    FillDiagonal,
    FillDiagonalOffset,
    fill_diagonal,
    fill_diagonal_,
    fill_diagonal_offset,
    fill_diagonal_offset_,
)
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise, zeros_like
from opwise.tensor.join import join
from opwise.tensor.knownvalues import get_scalar_constant_value, get_vector_length
from opwise.tensor.selection import compress  # noqa: F401  (a name of theano.tensor.extra_ops)
from opwise.tensor.shape import flatten, reshape, shape_i_op, squeeze
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

__all__ = [
    "DiffOp", "bartlett", "bincount", "cumprod", "cumsum", "fill_diagonal", "fill_diagonal_offset",
    "ravel_multi_index", "repeat", "roll", "squeeze", "tile", "unravel_index",
]  # fmt: skip


class CpuContiguous(TensorOp):
    """The input, copied only if its memory is not C contiguous."""

    __props__ = ()
    view_map = {0: [0]}
    flops, traffic = costs.no_flops, costs.view_or_copy

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.require(inputs[0], requirements="C")

    infer_shape = shapes_of(0)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return list(output_gradients)

    R_op = linear_in_first


cpu_contiguous = CpuContiguous()


# --- along an axis --------------------------------------------------------------------------------


def _product(lengths: Lengths) -> Tensor:
    one: Tensor = constant(np.int64(1))
    return reduce(elemwise("mul"), lengths, one)


def _reversed(x: Tensor, axis: int | None) -> Tensor:
    """Return ``x`` reversed along ``axis``; None is for vectors."""
    if axis is None:
        return getitem(x, slice(None, None, -1))
    return getitem(x, (slice(None),) * (axis % x.type.ndim) + (slice(None, None, -1),))


class CumOp(TensorOp):
    """Cumulative sums (mode 'add') or products ('mul') along an axis; None flattens first."""

    __props__ = ("axis", "mode")

    def __init__(self, axis: int | None = None, mode: str = "add") -> None:
        if mode not in ("add", "mul"):
            raise ValueError(f'CumOp: Unknown mode "{mode}"')
        self.axis = axis
        self.mode = mode

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if self.axis is None:
            return Apply(self, [x], [tensor_type(x.type.dtype, (False,)).make_variable()])
        if not -x.type.ndim <= self.axis < x.type.ndim:
            raise ValueError(f"axis(={self.axis}) out of bounds")
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        if self.axis is None:
            x = x.ravel()
        accumulate = (np.add if self.mode == "add" else np.multiply).accumulate
        dtype = None if x.dtype == bool else x.dtype
        result = accumulate(x, axis=self.axis or 0, dtype=dtype)
        output_storage[0][0] = result.astype(x.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        if self.axis is None and node.inputs[0].type.ndim != 1:
            return [(_product(shapes[0]),)]
        return shapes

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(x)]

        def summed_from_the_end(g: Tensor) -> Tensor:
            return _reversed(CumOp(self.axis, "add")(_reversed(g, self.axis)), self.axis)

        if self.mode == "add":
            gx = summed_from_the_end(gz)
        else:
            factors = flatten(x) if self.axis is None else x
            _, is_first_zero, divisor, without_it = self._around_the_first_zero(factors)
            by_first_zero = summed_from_the_end(without_it * gz)
            by_others = summed_from_the_end(outputs[0] * gz) / divisor
            gx = elemwise("switch")(is_first_zero, by_first_zero, by_others)
        if self.axis is None and x.type.ndim != 1:
            gx = reshape(gx, shape_of(x), ndim=x.type.ndim)
        return [gx]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        if eval_points[0] is None:
            return [None]
        if self.mode == "add":
            return [self(eval_points[0])]
        x, dx = (flatten(v) if self.axis is None else v for v in (inputs[0], eval_points[0]))
        zeros_so_far, is_first_zero, divisor, without_it = self._around_the_first_zero(x)
        added = CumOp(self.axis, "add")
        before = self(x) * added(dx / divisor)
        behind = without_it * added(elemwise("switch")(is_first_zero, dx, 0))
        return [elemwise("switch")(elemwise("eq")(zeros_so_far, 0), before, behind)]

    def _around_the_first_zero(self, factors: Tensor) -> tuple[Tensor, ...]:
        """Return the parts of which derivatives of cumulative products are made, exact with zeros.

        The derivative of a product before the first 0 by a factor is the product divided by it. All
        others are 0 and change with that first 0 alone, by the product of their other factors.
        Returns (how many factors are 0 up to here, which is the first 0, the factors with 1 for 0,
        the products without the first 0).
        """
        one = constant(np.array(1, factors.type.dtype))
        is_zero = elemwise("eq")(factors, 0)
        zeros_so_far = CumOp(self.axis, "add")(cast(is_zero, "int64"))
        is_first_zero = elemwise("and_")(is_zero, elemwise("eq")(zeros_so_far, 1))
        divisor = elemwise("switch")(is_zero, one, factors)
        without_it = self(elemwise("switch")(is_first_zero, one, factors))
        return zeros_so_far, is_first_zero, divisor, without_it

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.axis}, {self.mode}}}"


def cumsum(x: TensorLike, axis: int | None = None) -> Tensor:
    """Return the cumulative sums of ``x`` along ``axis``, with its shape; None flattens first.

    The dtype is that of x, even where sums overflow it: numpy's is wider for small integers, and
    sums of bool are whether any element so far is true. Raises ValueError if the axis is out of
    range.
    """
    return CumOp(axis, "add")(x)


def cumprod(x: TensorLike, axis: int | None = None) -> Tensor:
    """Return the cumulative products of ``x`` along ``axis``, with its shape; None flattens first.

    The dtype is that of x, even where products overflow it. Gradients are exact if factors are 0;
    second derivatives are not if several factors are 0. Raises ValueError if the axis is out of
    range.
    """
    return CumOp(axis, "mul")(x)


def CumsumOp(axis: int | None = None) -> CumOp:
    """Return the Op of cumulative sums, under its older name: see ``cumsum``."""
    return CumOp(axis, "add")


def CumprodOp(axis: int | None = None) -> CumOp:
    """Return the Op of cumulative products, under its older name: see ``cumprod``."""
    return CumOp(axis, "mul")


class DiffOp(TensorOp):
    """The nth differences of neighbours along an axis."""

    __props__ = ("n", "axis")

    def __init__(self, n: int = 1, axis: int = -1) -> None:
        if n < 0:
            raise ValueError(f"diff: order must be non-negative but got {n}")
        self.n = int(n)
        self.axis = int(axis)

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if not -x.type.ndim <= self.axis < x.type.ndim:
            raise ValueError(f"axis(={self.axis}) out of bounds")
        pattern = list(x.type.broadcastable)
        if self.n:
            pattern[self.axis] = False
        return Apply(self, [x], [tensor_type(x.type.dtype, tuple(pattern)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        result = np.diff(inputs[0], n=self.n, axis=self.axis)
        output_storage[0][0] = result if self.n else inputs[0].copy()

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        shape = list(shapes[0])
        shape[self.axis] = elemwise("maximum")(shape[self.axis] - self.n, 0)
        return [tuple(shape)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(x)]
        axis = self.axis % x.type.ndim
        if self.n and x.type.broadcastable[axis]:
            return [zeros_like(x)]  # one element has no differences
        for _ in range(self.n):
            ends = [1 if d == axis else shape_of(gz)[d] for d in range(gz.type.ndim)]
            end = zeros(ends, dtype=gz.type.dtype)
            gz = join(axis, end, gz) - join(axis, gz, end)
        if self.n:  # there may have been fewer elements than differences were asked for
            gz = getitem(gz, ((slice(None),) * axis) + (slice(None, shape_of(x)[axis]),))
        return [gz]

    R_op = linear_in_first


def diff(x: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
    """Return the nth differences of neighbours in ``x`` along ``axis``, of the dtype of x.

    The shape is that of x with n elements less along the axis, at least 0. Differences of bool are
    whether neighbours differ; those of unsigned integers wrap around. Raises ValueError if n is
    negative or the axis is out of range.
    """
    return DiffOp(n=n, axis=axis)(x)


def roll(x: TensorLike, shift: TensorLike, axis: int | None = None) -> Tensor:
    """Return ``x`` with its elements moved cyclically by ``shift`` along ``axis``.

    The shape and dtype are those of x. shift: an integer or a 0-d integer variable, which may be
    negative or exceed the length. axis: an int; None moves elements in the flattened array. Raises
    ValueError if the axis is out of range or x is 0-d, TypeError if the shift is not a 0-d integer.
    """
    x = as_tensor_variable(x)
    if axis is None:
        if x.type.ndim > 1:
            return reshape(roll(flatten(x), shift, 0), shape_of(x), ndim=x.type.ndim)
        axis = 0
    if not -x.type.ndim <= axis < x.type.ndim:
        raise ValueError(f"roll: axis {axis} is out of range for {x} of {x.type}")
    axis %= x.type.ndim
    # a shift is taken modulo the length
    cut = elemwise("neg")(elemwise("mod")(as_tensor_variable(shift), shape_of(x)[axis]))
    before = (slice(None),) * axis
    end = getitem(x, (*before, slice(cut, None)))
    start = getitem(x, (*before, slice(0, cut)))
    return join(axis, end, start)


# --- repetition -----------------------------------------------------------------------------------


class RepeatOp(TensorOp):
    """Repeats the elements along ``axis``; None flattens first.

    Inputs (x, repeats): repeats is an integer, or a vector with a number for each element.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int | None = None) -> None:
        self.axis = axis

    def make_node(self, x: TensorLike, repeats: TensorLike) -> Apply:
        x, repeats = as_tensor_variable(x), as_tensor_variable(repeats)
        if repeats.type.dtype not in dtypes.INTEGERS or repeats.type.dtype == "uint64":
            raise TypeError(f"repeats must be of an integer dtype below uint64, not {repeats.type}")
        if repeats.type.ndim > 1:
            raise ValueError("The dimension of repeats should not exceed 1.")
        pattern = [False]
        if self.axis is not None:
            pattern = list(x.type.broadcastable)
            pattern[self.axis] &= _is_once(repeats)
        return Apply(
            self, [x, repeats], [tensor_type(x.type.dtype, tuple(pattern)).make_variable()]
        )

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, repeats = inputs
        output_storage[0][0] = np.repeat(x, repeats, axis=self.axis)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        x_shape, repeats = shapes[0], cast(node.inputs[1], "int64")
        total: Tensor
        if self.axis is None:
            total = _product(x_shape)
        else:
            total = x_shape[self.axis]
        if repeats.type.ndim == 1 and not repeats.type.broadcastable[0]:
            total = repeats.sum()
        else:
            total = total * (repeats if repeats.type.ndim == 0 else getitem(repeats, 0))
        if self.axis is None:
            return [(total,)]
        shape = list(x_shape)
        shape[self.axis] = total
        return [tuple(shape)]

    connection_pattern = connects(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, repeats), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            return [zero_gradient(x), disconnected_type.make_variable()]
        # the positions of the elements, repeated as they were, tell where each gradient belongs
        axis = 0 if self.axis is None else self.axis % x.type.ndim
        rows = flatten(x) if self.axis is None else x
        order = list(range(rows.type.ndim))
        order[0], order[axis] = axis, 0
        rows = dimshuffle(rows, order)
        numbers = RepeatOp(axis=0)(arange(shape_of(rows)[0]), repeats)
        gx = advanced_inc_subtensor1(user_zeros_like(rows), dimshuffle(gz, order), numbers)
        gx = dimshuffle(gx, order)
        if self.axis is None:
            gx = reshape(gx, shape_of(x), ndim=x.type.ndim)
        return [gx, disconnected_type.make_variable()]

    R_op = linear_in_first


def _is_once(repeats: Tensor) -> bool:
    """Return whether a number of repetitions is known to be 1."""
    try:
        return bool(get_scalar_constant_value(repeats) == 1)
    except NotScalarConstantError:
        return False


def repeat(x: TensorLike, repeats: TensorLike, axis: int | None = None) -> Tensor:
    """Return ``x`` with each element along ``axis`` repeated, of its dtype; None flattens x first.

    repeats: an integer or 0-d variable, by which the length is multiplied, or a vector with a
    number for each element, whose sum is the new length; of any integer dtype but uint64.

    Raises TypeError for another dtype, ValueError if repeats has more than one dimension or the
    axis is out of range; at run time ValueError if a number is negative or there are too many or
    too few.
    """
    x, repeats = as_tensor_variable(x), as_tensor_variable(repeats)
    if repeats.type.ndim > 1:
        raise ValueError("The dimension of repeats should not exceed 1.")
    if axis is not None and not -x.type.ndim <= axis < x.type.ndim:
        raise ValueError(
            f"Axis should not exceed x.ndim-1. Axis {axis} is out of range for {x} of {x.type}"
        )
    if repeats.type.ndim == 1 and not repeats.type.broadcastable[0]:
        return RepeatOp(axis=axis)(x, repeats)
    if repeats.type.ndim == 1:
        repeats = getitem(repeats, 0)
    if axis is None:
        x, axis = flatten(x), 0
    axis %= x.type.ndim
    # a new axis after this one, filled by broadcasting, then merged with it
    lengths = [shape_of(x)[d] for d in range(x.type.ndim)]
    order: list[int | str] = list(range(x.type.ndim))
    order.insert(axis + 1, "x")
    stretched = alloc(dimshuffle(x, order), *lengths[: axis + 1], repeats, *lengths[axis + 1 :])
    lengths[axis] = lengths[axis] * repeats
    return reshape(stretched, lengths, ndim=x.type.ndim)


def tile(x: TensorLike, reps: Any, ndim: int | None = None) -> Tensor:
    """Return ``x`` repeated as a whole, ``reps`` times along each dimension, of its dtype.

    reps: an integer, a list of integers and 0-d variables, or a vector. The shapes of x and reps
    are padded on the left with 1 to the same number of dimensions; the lengths are their products.
    ndim: dimensions of the result, at least those of x and the length of reps; needed if that is
    not known.

    Raises ValueError for an ndim that is too small or missing and for reps that are not integers;
    at run time ValueError if one is negative, AssertionError if there are more than ndim.
    """
    x = as_tensor_variable(x)
    if ndim is not None and ndim < x.type.ndim:
        raise ValueError("ndim should be equal or larger than x.ndim")
    reps = _repetitions(reps, ndim)
    for r in reps:
        if as_tensor_variable(r).type.dtype not in dtypes.INTEGERS:
            raise ValueError("elements of reps must be scalars of integer dtype")
    total = max(len(reps), x.type.ndim, ndim or 0)
    if ndim is not None and len(reps) > ndim:
        raise ValueError("len(reps) should be equal or less than ndim")
    reps = [1] * (total - len(reps)) + reps
    x = dimshuffle(x, ["x"] * (total - x.type.ndim) + list(range(x.type.ndim)))
    lengths = [shape_of(x)[d] for d in range(total)]
    # repeats in front of all dimensions, then moves each repetition before its own dimension
    spread = alloc(x, *reps, *lengths)
    order = [d for k in range(total) for d in (k, total + k)]
    return reshape(
        dimshuffle(spread, order), [n * r for n, r in zip(lengths, reps, strict=True)], ndim=total
    )


def _repetitions(reps: TensorLike, ndim: int | None) -> list[Tensor | float]:
    """Return the argument ``reps`` of tile as a list of integers and integer scalars."""
    if isinstance(reps, list | tuple):
        if any(as_tensor_variable(r).type.ndim for r in reps):
            raise ValueError("elements of reps must be scalars of integer dtype")
        return list(reps)
    reps = as_tensor_variable(reps)
    if reps.type.ndim == 0:
        return [constant(reps.data) if isinstance(reps, Constant) else reps]
    if reps.type.ndim > 1:
        raise ValueError("the dimension of reps should not exceed 1")
    try:
        return [getitem(reps, k) for k in range(get_vector_length(reps))]
    except ValueError:
        if ndim is None:
            raise ValueError("if reps is tensor.vector, you should specify the ndim") from None
    if reps.type.dtype not in dtypes.INTEGERS:
        raise ValueError("elements of reps must be scalars of integer dtype")
    given = shape_of(reps)[0]
    given = Assert("reps has more elements than ndim")(given, elemwise("le")(given, ndim))
    # padded with 1 on the left if its length, which is known at run time, is below ndim
    once = constant(np.ones(ndim, reps.type.dtype))
    padded = set_subtensor(getitem(once, slice(ndim - given, None)), reps)
    return [getitem(padded, k) for k in range(ndim)]


# --- counting and searching -----------------------------------------------------------------------


def bincount(
    x: TensorLike,
    weights: TensorLike | None = None,
    minlength: Any = None,
    assert_nonneg: bool = False,
) -> Tensor:
    """Return how often each number from 0 on occurs in ``x``, a vector of integers.

    The result is a vector of length max(x) + 1 (0 for an empty x), or of ``minlength`` if that is
    more. Its dtype is that of weights, or of x: counts may overflow int8. weights: numbers to add
    for each element instead of 1. A negative number counts from the end; assert_nonneg: it is an
    error at run time.

    Raises TypeError if x is not a vector of integers; at run time ValueError if weights does not
    broadcast to x, IndexError if a negative number is out of range, AssertionError if
    assert_nonneg.
    """
    x = as_tensor_variable(x)
    if x.type.ndim != 1:
        raise TypeError("Inputs must be of dimension 1.")
    if x.type.dtype not in dtypes.INTEGERS:
        raise TypeError(f"index must be integers: {x} has dtype {x.type.dtype}")
    if assert_nonneg:
        nonnegative = elemwise("ge")(x, 0).all()
        x = as_tensor_variable(Assert("Input to bincount has negative values!")(x, nonnegative))
    # -1 for an empty vector: the result then has length 0
    length = join(0, constant(np.array([-1])), cast(x, "int64")).max() + 1
    if minlength is not None:
        length = elemwise("maximum")(length, minlength)
    if weights is None:
        counts: Tensor = advanced_inc_subtensor1(zeros([length], dtype=x.type.dtype), 1, x)
        return counts
    weights = as_tensor_variable(weights)
    return advanced_inc_subtensor1(zeros([length], dtype=weights.type.dtype), weights, x)


def to_one_hot(y: TensorLike, nb_class: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return the matrix of shape (len(y), nb_class) whose row i is 1 in column ``y[i]``, else 0.

    y: a vector of integers below ``nb_class``, an integer or a 0-d integer variable; a negative one
    counts from the end. dtype: (default: floatX). Raises TypeError for floats; at run time
    IndexError for a number out of range.
    """
    y = as_tensor_variable(y)
    n = shape_of(y)[0]
    rows = zeros((n, nb_class), dtype=dtype or config.floatX)
    return set_subtensor(getitem(rows, (arange(n), y)), 1)


class SearchsortedOp(TensorOp):
    """The positions at which elements of v can be inserted into a sorted vector x.

    Inputs (x, v) or (x, v, sorter); side: before ('left') or after ('right') equal elements.
    """

    __props__ = ("side",)

    def __init__(self, side: str = "left") -> None:
        if side not in ("left", "right"):
            raise ValueError(f"'{side}' is an invalid value for keyword 'side'")
        self.side = side

    def make_node(self, x: TensorLike, v: TensorLike, sorter: TensorLike | None = None) -> Apply:
        x, v = as_tensor_variable(x, ndim=1), as_tensor_variable(v)
        inputs = [x, v]
        if sorter is not None:
            sorter = as_tensor_variable(sorter, ndim=1)
            if sorter.type.dtype not in dtypes.INTEGERS:
                raise TypeError(f"sorter must be an integer vector, not {sorter.type}")
            # numpy takes no uint64
            inputs.append(cast(sorter, "int64") if sorter.type.dtype == "uint64" else sorter)
        return Apply(self, inputs, [tensor_type("int64", v.type.broadcastable).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, v, *sorter = inputs
        side: Any = self.side
        found = np.searchsorted(x, v, side, *sorter)
        output_storage[0][0] = np.asarray(found, dtype=np.int64)

    infer_shape = shapes_of(1)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True], [False]][: len(node.inputs)]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        x, v, *sorter = inputs
        return [zero_gradient(x), zero_gradient(v)] + [
            disconnected_type.make_variable() for _ in sorter
        ]


def searchsorted(
    x: TensorLike, v: TensorLike, side: str = "left", sorter: TensorLike | None = None
) -> Tensor:
    """Return the positions at which elements of ``v`` can be inserted into the sorted vector ``x``.

    The result is int64 and has the shape of v. side: before ('left') or after ('right') equal
    elements. sorter: an integer vector, the positions that sort x, if x is not sorted.

    Raises ValueError for another side and if x or sorter has more than one dimension, TypeError if
    sorter is not of integers; at run time ValueError if its length is not that of x or a position
    is out of range.
    """
    inputs = (x, v) if sorter is None else (x, v, sorter)
    return SearchsortedOp(side=side)(*inputs)


class Unique(Op):
    """The sorted distinct elements of x, and on demand their first positions, inverse and counts.

    axis: compare whole slices of x along this axis; None compares elements.
    """

    __props__ = ("return_index", "return_inverse", "return_counts", "axis")

    def __init__(
        self,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        axis: int | None = None,
    ) -> None:
        self.return_index = return_index
        self.return_inverse = return_inverse
        self.return_counts = return_counts
        self.axis = axis

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        pattern = [False]
        if self.axis is not None:
            if not -x.type.ndim <= self.axis < x.type.ndim:
                raise RuntimeError(
                    f"Unique axis {self.axis} is outside of input ndim = {x.type.ndim}"
                )
            pattern = list(x.type.broadcastable)
            pattern[self.axis] = False
        outs = [tensor_type(x.type.dtype, tuple(pattern)).make_variable()]
        wanted = (self.return_index, self.return_inverse, self.return_counts)
        outs += [tensor_type("int64", (False,)).make_variable() for _ in filter(None, wanted)]
        return Apply(self, [x], outs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        unique: Any = np.unique  # checkers of types know its flags only as constants
        found = unique(
            inputs[0],
            return_index=self.return_index,
            return_inverse=self.return_inverse,
            return_counts=self.return_counts,
            axis=self.axis,
        )
        if len(output_storage) == 1:
            output_storage[0][0] = found
            return
        output_storage[0][0] = found[0]
        for cell, positions in zip(output_storage[1:], found[1:], strict=True):
            # the shape of the inverse differs between versions of numpy
            cell[0] = positions.astype(np.int64).ravel()

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        (lengths,) = shapes
        # how many elements differ is known when they are compared
        found = [[shape_i_op(d)(out) for d in range(out.type.ndim)] for out in node.outputs]
        if self.axis is not None:
            axis = self.axis % len(lengths)
            found[0] = [*lengths[:axis], found[0][axis], *lengths[axis + 1 :]]
        if self.return_inverse:
            every = _product(lengths)
            found[1 + self.return_index] = [every if self.axis is None else lengths[self.axis]]
        return list(map(tuple, found))


# --- positions in flattened arrays ----------------------------------------------------------------


class UnravelIndex(Op):
    """Turns positions in a flattened array into indices along each of its ``ndim`` dimensions.

    Inputs (indices, dims), integers and the shape of the array; order: 'C' or 'F'.
    """

    __props__ = ("ndim", "order")

    def __init__(self, ndim: int, order: Any = "C") -> None:
        if order not in ("C", "F"):
            raise ValueError("order must be 'C' or 'F'")
        if not isinstance(ndim, int):
            raise ValueError("ndim must be an integer")
        self.ndim = ndim
        self.order = order

    def make_node(self, indices: TensorLike, dims: TensorLike) -> Apply:
        indices, dims = _integers(indices, dims)
        outs = [tensor_type("int64", indices.type.broadcastable)() for _ in range(self.ndim)]
        return Apply(self, [indices, dims], outs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        indices, dims = inputs
        found = np.unravel_index(indices, tuple(dims.tolist()), order=self.order)
        if len(found) != self.ndim:
            raise ValueError(
                f"reshape dims had length {len(found)} inconsistent with ndim = {self.ndim}"
            )
        for cell, positions in zip(output_storage, found, strict=True):
            cell[0] = np.array(positions, dtype=np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [shapes[0]] * self.ndim

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return [zero_gradient(x) for x in inputs]


class RavelMultiIndex(TensorOp):
    """Turns indices along each dimension of an array into positions in the flattened array.

    Inputs (indices of each dimension..., dims). mode: 'raise', 'wrap' or 'clip' indices that are
    out of range; order: 'C' or 'F'.
    """

    __props__ = ("mode", "order")

    def __init__(self, mode: Any = "raise", order: Any = "C") -> None:
        if mode not in ("raise", "wrap", "clip"):
            raise ValueError("mode must be one of 'raise', 'wrap', 'clip'")
        if order not in ("C", "F"):
            raise ValueError("order must be 'C' or 'F'")
        self.mode = mode
        self.order = order

    def make_node(self, *inputs: TensorLike) -> Apply:
        *multi_index, dims = _integers(*inputs)
        for i in multi_index[1:]:
            if i.type.ndim != multi_index[0].type.ndim:
                raise TypeError("all indices must have the same number of dimensions")
        pattern = tuple(
            all(column) for column in zip(*(i.type.broadcastable for i in multi_index), strict=True)
        )
        return Apply(self, [*multi_index, dims], [tensor_type("int64", pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        *multi_index, dims = inputs
        found = np.ravel_multi_index(
            tuple(multi_index), tuple(dims.tolist()), mode=self.mode, order=self.order
        )
        output_storage[0][0] = np.asarray(found, dtype=np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        # unlike operands of Elemwise, indices broadcast if a length is 1 only at run time
        return [tuple(map(broadcast_length, zip(*shapes[:-1], strict=True)))]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return [zero_gradient(x) for x in inputs]


def _integers(*inputs: TensorLike) -> list[Tensor]:
    """Return indices and a shape as integer variables; TypeError for others."""
    variables = [as_tensor_variable(x) for x in inputs]
    for v in variables[:-1]:
        if v.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"'{v.type.dtype}' object cannot be interpreted as an index")
    if variables[-1].type.ndim != 1 or variables[-1].type.dtype not in dtypes.INTEGERS:
        raise TypeError(f"dims must be a vector of integers, not {variables[-1].type}")
    return variables


def unravel_index(
    indices: TensorLike, dims: Any, order: str = "C", ndim: int | None = None
) -> tuple[Tensor, ...]:
    """Return positions in a flattened array of shape ``dims`` as indices, one for each dimension.

    The result is a tuple of int64 tensors with the shape of indices, an integer tensor. dims: an
    integer vector. order: 'C' or 'F'. ndim: the length of dims, needed if it is not known.

    Raises TypeError for floats, ValueError for another order or an unknown length of dims; at run
    time ValueError if a position is negative or out of range, or dims has another length than ndim.
    """
    if ndim is None:
        ndim = get_vector_length(dims)
    return tuple(UnravelIndex(ndim=ndim, order=order)(indices, dims, return_list=True))


def ravel_multi_index(
    multi_index: Sequence[TensorLike], dims: Any, mode: str = "raise", order: str = "C"
) -> Tensor:
    """Return indices along each dimension of an array as positions in the flattened array, int64.

    multi_index: a list or tuple of integer tensors with the same number of dimensions; the result
    has the shape to which they broadcast. dims: the shape of the array, an integer vector. mode:
    'raise' for indices out of range, 'wrap' or 'clip' them. order: 'C' or 'F'.

    Raises TypeError for floats and indices of different numbers of dimensions, ValueError for
    another mode or order; at run time ValueError if an index is out of range or shapes do not
    broadcast.
    """
    if not isinstance(multi_index, list | tuple):
        raise TypeError("multi_index must be a tuple or a list")
    return RavelMultiIndex(mode=mode, order=order)(*multi_index, dims)


class Bartlett(TensorOp):
    """The Bartlett window of M points."""

    __props__ = ()

    def make_node(self, M: TensorLike) -> Apply:
        M = as_tensor_variable(M)
        if M.type.ndim != 0:
            raise TypeError(f"{type(self).__name__} only works on scalar input")
        if M.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"{type(self).__name__} only works on integer input")
        return Apply(self, [M], [tensor_type("float64", (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.bartlett(int(inputs[0]))

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(elemwise("maximum")(cast(node.inputs[0], "int64"), 0),)]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return [zero_gradient(x) for x in inputs]


bartlett_ = Bartlett()


def bartlett(M: TensorLike) -> Tensor:
    """Return the Bartlett window of ``M`` points, a float64 vector; of length 0 if M is negative.

    M: an integer or a 0-d integer variable. Raises TypeError for anything else.
    """
    return bartlett_(M)
