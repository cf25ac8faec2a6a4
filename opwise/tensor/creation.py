"""Tensors made from shapes and numbers. Diagonals are in ``opwise.tensor.diagonal``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first, zero_derivative
from opwise.graph.variable import Client, Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.dtypes import DTypeLike
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.knownvalues import equals_input, extract_constant, get_vector_length, is_one
from opwise.tensor.shape import is_length, length
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.type import dtype_name, tensor_type, values_eq_approx_always_true
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    TensorOp,
    as_tensor_variable,
    constant,
)

__all__ = [
    "ARange",
    "Alloc",
    "AllocEmpty",
    "Eye",
    "Tri",
    "alloc",
    "alloc_validate_shape",
    "arange",
    "eye",
    "fill",
    "identity_like",
    "mgrid",
    "ogrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

#: (model, value) -> a tensor of the shape of the model, filled with the value
fill = elemwise("second")


def _dtype_name(dtype: DTypeLike | None) -> str:
    """Return a dtype's name: floatX for None and 'floatX', that of a variable given for it."""
    if isinstance(dtype, Variable):
        return dtype.type.dtype
    return config.floatX if dtype is None or dtype == "floatX" else dtype_name(dtype)


# --- memory -------------------------------------------------------------------------------------


def alloc_validate_shape(shape: Iterable[TensorLike]) -> tuple[list[Any], list[bool]]:
    """Return (the lengths of ``shape`` as 0-d integer tensors, whether each is known to be 1).

    shape: an iterable of integers and 0-d variables. Raises TypeError if an element has dimensions
    or is not of an integer dtype.
    """
    entries = [as_tensor_variable(n) for n in shape]
    for i, entry in enumerate(entries):
        if entry.type.dtype not in dtypes.INTEGERS:
            raise TypeError(
                f"lengths must be integers; element {i} of the shape, {entry}, has {entry.type}"
            )
        if entry.type.ndim:
            raise TypeError(
                f"lengths must be scalars; element {i} of the shape, {entry}, has "
                f"{entry.type.ndim} dimensions"
            )
    return entries, [is_one(entry) for entry in entries]


class Alloc(TensorOp):
    """A tensor filled with the first input, which broadcasts; the others are the lengths.

    Unlike in Elemwise, a length of the first input that is 1 only at run time broadcasts as well.
    """

    __props__ = ()
    flops, traffic = costs.no_flops, costs.each_once

    def make_node(self, value: TensorLike, *shape: TensorLike) -> Apply:
        value = as_tensor_variable(value)
        entries, ones_ = alloc_validate_shape(shape)
        if value.type.ndim > len(entries):
            raise TypeError(
                f"{value} has {value.type.ndim} dimensions, more than the {len(entries)} of the "
                "shape that it should fill"
            )
        output = tensor_type(value.type.dtype, tuple(ones_)).make_variable()
        return Apply(self, [value, *entries], [output])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        value, *lengths = inputs
        result = np.empty(tuple(map(int, lengths)), dtype=value.dtype)
        result[...] = value
        output_storage[0][0] = result

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [tuple(map(length, node.inputs[1:]))]

    connection_pattern = connects(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        value, (gz,) = inputs[0], output_gradients
        by_lengths = [disconnected_type.make_variable() for _ in inputs[1:]]
        if value.type.dtype in dtypes.DISCRETE:
            return [zeros_like(value, config.floatX), *by_lengths]
        added = gz.type.ndim - value.type.ndim
        repeated = [
            i
            for i in range(gz.type.ndim)
            if i < added or (value.type.broadcastable[i - added] and not gz.type.broadcastable[i])
        ]
        if repeated:
            gz = gz.sum(axis=repeated)
        # dimensions of the value along which it was repeated have length 1 again
        order, kept = [], 0
        for i in range(added, added + value.type.ndim):
            order.append("x" if i in repeated else kept)
            kept += i not in repeated
        return [dimshuffle(gz, order), *by_lengths]

    R_op = linear_in_first

    def do_constant_folding(self, node: Apply) -> bool:
        """Return False if the result is an output or may be overwritten: it would be copied."""
        clients = node.outputs[0].clients
        return bool(clients) and not any(map(_may_overwrite, clients))


def _may_overwrite(client: Client) -> bool:
    """Return whether a reader of a variable is the caller, or an Op with an in-place variant."""
    node, i = client
    if node == "output":
        return True
    op = node.op
    return i == 0 and (getattr(op, "inplace", None) is False or hasattr(op, "destructive"))


equals_input(Alloc)
alloc = Alloc()


class AllocEmpty(TensorOp):
    """A tensor of ``dtype`` whose lengths are the inputs; its elements are not initialized."""

    __props__ = ("dtype",)
    flops, traffic = costs.no_flops, costs.nothing

    def __init__(self, dtype: str) -> None:
        self.dtype = _dtype_name(dtype)

    def make_node(self, *shape: TensorLike) -> Apply:
        entries, ones_ = alloc_validate_shape(shape)
        output = tensor_type(self.dtype, tuple(ones_)).make_variable()
        # its elements are arbitrary: they must not be compared, nor searched for NaN
        output.tag.values_eq_approx = values_eq_approx_always_true
        output.tag.nan_guard_mode_check = False
        return Apply(self, entries, [output])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.empty(tuple(map(int, inputs)), dtype=self.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [tuple(map(length, node.inputs))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]] * len(node.inputs)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [disconnected_type.make_variable() for _ in inputs]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        return [zeros(inputs, self.dtype)]

    def do_constant_folding(self, node: Apply) -> bool:
        return False


@cache
def alloc_empty(dtype: str) -> AllocEmpty:
    """Return the AllocEmpty of a dtype; the same object each time."""
    return AllocEmpty(dtype)


def _shape_entries(shape: Any) -> list[Tensor | int]:
    """Return a shape as a list of lengths: a length, a sequence of them, or a vector."""
    if isinstance(shape, Variable):
        shape = as_tensor_variable(shape)
        if shape.type.ndim == 0:
            return [shape]
        n = get_vector_length(shape)
        if isinstance(shape, Constant):
            return list(shape.data)
        return [shape[i] for i in range(n)]
    if isinstance(shape, np.ndarray):
        return list(shape.reshape(-1))
    return list(shape) if isinstance(shape, list | tuple) else [shape]


def _full(shape: TensorLike, value: Any, dtype: DTypeLike | None) -> Tensor:
    return alloc(constant(np.array(value, _dtype_name(dtype))), *_shape_entries(shape))


def zeros(shape: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of zeros with a shape and a dtype (default: floatX).

    shape: a length, a sequence of lengths, or a vector of known length; lengths are integers or 0-d
    integer variables. A dimension broadcasts if its length is known to be 1. Raises TypeError for a
    length that is not an integer and an unknown dtype, ValueError for a vector of unknown length;
    at run time ValueError if a length is negative.
    """
    return _full(shape, 0, dtype)


def ones(shape: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of ones with a shape and a dtype (default: floatX).

    shape: a length, a sequence of lengths, or a vector of known length; lengths are integers or 0-d
    integer variables. A dimension broadcasts if its length is known to be 1. Raises TypeError for a
    length that is not an integer and an unknown dtype, ValueError for a vector of unknown length;
    at run time ValueError if a length is negative.
    """
    return _full(shape, 1, dtype)


def _full_like(model: TensorLike, value: Any, dtype: DTypeLike | None, opt: bool) -> Tensor:
    model = as_tensor_variable(model)
    dtype = model.type.dtype if dtype is None else _dtype_name(dtype)
    value = constant(np.array(value, dtype))
    # a rewrite would remove the fill of a single number anyway
    return value if opt and value.type == model.type else fill(model, value)


def zeros_like(model: TensorLike, dtype: DTypeLike | None = None, opt: bool = False) -> Tensor:
    """Return zeros with the shape and broadcast pattern of ``model``.

    dtype: (default: that of model). opt: return a constant if it has the type of the model, that is
    for a 0-d model. Raises TypeError if the model cannot become a tensor or the dtype is unknown.
    """
    return _full_like(model, 0, dtype, opt)


def ones_like(model: TensorLike, dtype: DTypeLike | None = None, opt: bool = False) -> Tensor:
    """Return ones with the shape and broadcast pattern of ``model``.

    dtype: (default: that of model). opt: return a constant if it has the type of the model, that is
    for a 0-d model. Raises TypeError if the model cannot become a tensor or the dtype is unknown.
    """
    return _full_like(model, 1, dtype, opt)


# --- sequences and matrices ---------------------------------------------------------------------


class ARange(TensorOp):
    """The numbers from ``start`` up to but not including ``stop``, by ``step``: a vector."""

    __props__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = _dtype_name(dtype)

    def make_node(self, start: TensorLike, stop: TensorLike, step: TensorLike) -> Apply:
        inputs = [as_tensor_variable(x) for x in (start, stop, step)]
        for name, x in zip(("start", "stop", "step"), inputs, strict=True):
            if x.type.ndim:
                raise TypeError(
                    f"arange needs numbers: its {name} {x} has type {x.type}. Give a scalar."
                )
        return Apply(self, inputs, [tensor_type(self.dtype, (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        start, stop, step = (x.item() for x in inputs)
        if step == 0:
            raise ZeroDivisionError(f"arange({start}, {stop}, {step}): its step is zero")
        if any(isinstance(x, float | complex) for x in (start, stop, step)):
            output_storage[0][0] = np.arange(start, stop, step, dtype=self.dtype)
        else:
            output_storage[0][0] = whole_numbers(start, stop, step, self.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        start, stop, step = node.inputs
        if all(x.type.dtype in dtypes.INTEGERS for x in node.inputs):
            start, stop, step = map(length, node.inputs)
            first = extract_constant(start)
            from_zero = isinstance(first, np.generic) and first == 0
            if is_one(step):
                if from_zero:
                    return [(stop if is_length(stop) else elemwise("maximum")(stop, length(0)),)]
                # the difference overflows only for a range that is too long for any array
                return [(elemwise("sub")(elemwise("maximum")(stop, start), start),)]
            return [(_number_of_steps(start, stop, step),)]
        else:
            distance = elemwise("sub")(cast(stop, "float64"), cast(start, "float64"))
            count = cast(elemwise("ceil")(elemwise("true_div")(distance, step)), "int64")
        return [(count if is_length(count) else elemwise("maximum")(count, length(0)),)]

    connection_pattern = connects(0, 2)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        start, _, step = inputs
        (out,), (gz,) = outputs, output_gradients
        by_start, by_step = zeros_like(start, config.floatX), zeros_like(step, config.floatX)
        if out.type.dtype in dtypes.CONTINUOUS:
            if start.type.dtype in dtypes.CONTINUOUS:
                by_start = gz.sum()
            if step.type.dtype in dtypes.CONTINUOUS:
                positions = arange(shape_of(out)[0], dtype=out.type.dtype)
                by_step = elemwise("mul")(gz, positions).sum()
        return [by_start, disconnected_type.make_variable(), by_step]

    R_op = zero_derivative


def whole_numbers(start: int, stop: int, step: int, dtype: DTypeLike) -> np.ndarray:
    """Return the array of ``range(start, stop, step)``; numbers beyond ``dtype`` wrap around.

    numpy's arange computes the length in floats, which may be wrong from 2**53 on. Raises
    MemoryError if there are more numbers than an array can hold.
    """
    is_whole = np.dtype(dtype).kind in "iu"
    narrow = is_whole and np.dtype(dtype).itemsize < 8
    if max(abs(start), abs(stop), abs(step)) < 2**31 and not narrow:
        return np.arange(start, stop, step, dtype=dtype)
    count = how_many(start, stop, step)
    if count > np.iinfo(np.int64).max // 8:
        raise MemoryError(
            f"arange({start}, {stop}, {step}) has {count} numbers, more than an array can hold"
        )
    if not is_whole:
        return np.array([start + step * i for i in range(count)], dtype)
    found = np.arange(count, dtype=np.uint64)
    found *= np.uint64(step % 2**64)
    found += np.uint64(start % 2**64)
    return found.astype(dtype)


def how_many(start: int, stop: int, step: int) -> int:
    """Return the length of ``range(start, stop, step)``, which may be too large for ``len``."""
    return max(0, -((start - stop) // step))


def _number_of_steps(start: TensorLike, stop: TensorLike, step: TensorLike) -> Tensor:
    """Return the length of ``range(start, stop, step)`` as an int64 variable.

    It is computed from the quotients and remainders of both ends by the step, since the distance
    ``stop - start`` may overflow.
    """
    sub, maximum, minimum = map(elemwise, ("sub", "maximum", "minimum"))
    sign: Any = extract_constant(step)
    is_known = isinstance(sign, np.generic)
    if not is_known:
        up = elemwise("gt")(step, length(0))
        end = elemwise("switch")(up, maximum(stop, start), minimum(stop, start))
    else:
        end = (maximum if sign > 0 else minimum)(stop, start)
    quotient, remainder = elemwise("int_div"), elemwise("mod")
    whole = sub(quotient(end, step), quotient(start, step))
    rest = sub(remainder(end, step), remainder(start, step))
    if is_known:
        more = elemwise("gt" if sign > 0 else "lt")(rest, length(0))
    else:
        more = elemwise("gt")(elemwise("mul")(rest, elemwise("sgn")(step)), length(0))
    return elemwise("add")(whole, cast(more, "int64"))


@cache
def _arange_op(dtype: str) -> ARange:
    return ARange(dtype)


def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the numbers from ``start`` up to but not including ``stop``, by ``step``, as a vector.

    Arguments are numbers or 0-d variables; a single one is the stop, and the start then is 0. The
    length is ceil((stop - start) / step), at least 0. dtype: (default: int64 or uint64 if numpy's
    promotion of the arguments' dtypes is bool or an integer, else that promotion).

    Raises TypeError if an argument has dimensions; at run time ZeroDivisionError if the step is 0,
    MemoryError if the vector does not fit.
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = (as_tensor_variable(x) for x in (start, stop, step))
    if dtype is None:
        dtype = _arange_dtype([x.type.dtype for x in (start, stop, step)])
    return _arange_op(_dtype_name(dtype))(start, stop, step)


def _arange_dtype(of_arguments: Any) -> str:
    dtype = dtypes.promote(*of_arguments)
    if dtype in dtypes.UNSIGNED:
        return "uint64"
    if dtype in dtypes.DISCRETE:
        return "int64"
    numpy_rule = config.cast_policy in ("numpy", "numpy+floatX")
    if numpy_rule and config.floatX == "float32" and "float64" not in of_arguments:
        return "float32" if dtype == "float64" else dtype
    return dtype


class _DiagonalMatrix(TensorOp):
    """Base of Eye and Tri: a matrix of n rows and m columns whose elements depend on k."""

    __props__ = ("dtype",)
    #: numpy's function of n, m, k and dtype
    _numpy: Callable[..., np.ndarray]

    def __init__(self, dtype: str | None = None) -> None:
        self.dtype = _dtype_name(dtype)

    def make_node(self, n: TensorLike, m: TensorLike, k: int) -> Apply:
        inputs = [as_tensor_variable(x) for x in (n, m, k)]
        for x in inputs:
            if x.type.ndim or x.type.dtype not in dtypes.INTEGERS:
                raise TypeError(f"{self} needs integers; {x} has type {x.type}")
        return Apply(self, inputs, [tensor_type(self.dtype, (False, False)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        n, m, k = map(int, inputs)
        if n < 0 or m < 0:
            raise ValueError(f"negative dimensions are not allowed: {self} of {n} by {m}")
        k = max(-n, min(k, m))  # there are no others; numpy's sums might overflow
        output_storage[0][0] = self._numpy(n, m, k, dtype=self.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [tuple(map(length, node.inputs[:2]))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]] * 3

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [disconnected_type.make_variable() for _ in inputs]

    R_op = zero_derivative


class Eye(_DiagonalMatrix):
    """The matrix of n rows and m columns with ones on diagonal k and zeros elsewhere."""

    _numpy = staticmethod(np.eye)


class Tri(_DiagonalMatrix):
    """The matrix of n rows and m columns with ones on and below diagonal k and zeros elsewhere."""

    _numpy = staticmethod(np.tri)


@cache
def _diagonal_op(cls: type[_DiagonalMatrix], dtype: str) -> _DiagonalMatrix:
    return cls(dtype)


def eye(
    n: TensorLike, m: TensorLike | None = None, k: TensorLike = 0, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the matrix of shape (n, m) with ones on diagonal k and zeros elsewhere.

    n, m (default: n), k: integers or 0-d integer variables; k > 0 is above the main diagonal, k < 0
    below. dtype: (default: floatX). Raises TypeError for an argument that is not a 0-d integer; at
    run time ValueError if n or m is negative.
    """
    return _diagonal_op(Eye, _dtype_name(dtype))(n, n if m is None else m, k)


def identity_like(x: TensorLike) -> Tensor:
    """Return the matrix of the shape and dtype of matrix ``x`` with ones on its main diagonal.

    Its other elements are 0. Raises TypeError if x does not have two dimensions.
    """
    x = as_tensor_variable(x)
    n, m = _lengths_of_matrix(x)
    return eye(n, m, dtype=x.type.dtype)


def tri(
    N: TensorLike, M: TensorLike | None = None, k: TensorLike = 0, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the matrix of shape (N, M) with ones on and below diagonal k and zeros above.

    N, M (default: N), k: integers or 0-d integer variables; k > 0 is above the main diagonal, k < 0
    below. dtype: (default: floatX). Raises TypeError for an argument that is not a 0-d integer; at
    run time ValueError if N or M is negative.
    """
    return _diagonal_op(Tri, _dtype_name(dtype))(N, N if M is None else M, k)


def _lengths_of_matrix(x: Tensor) -> tuple[Tensor, ...]:
    if x.type.ndim != 2:
        raise TypeError(f"A matrix is needed; {x} has {x.type.ndim} dimensions")
    return shape_of(x)[0], shape_of(x)[1]


def tril(m: TensorLike, k: Any = 0) -> Tensor:
    """Return matrix ``m`` with zeros above diagonal k; it has the shape and dtype of m.

    It is a product of m and zeros: an infinity or NaN there becomes NaN, not 0. k: an integer or a
    0-d integer variable; k > 0 is above the main diagonal. Raises TypeError if m does not have two
    dimensions or k is not such an integer.
    """
    m = as_tensor_variable(m)
    rows, columns = _lengths_of_matrix(m)
    return elemwise("mul")(m, tri(rows, columns, k, m.type.dtype))


def triu(m: TensorLike, k: Any = 0) -> Tensor:
    """Return matrix ``m`` with zeros below diagonal k; it has the shape and dtype of m.

    It is a product of m and zeros: an infinity or NaN there becomes NaN, not 0. k: an integer or a
    0-d integer variable; k > 0 is above the main diagonal. Raises TypeError if m does not have two
    dimensions or k is not such an integer. A matrix of bool gives int8.
    """
    m = as_tensor_variable(m)
    rows, columns = _lengths_of_matrix(m)
    below = tri(rows, columns, k - 1, m.type.dtype)
    return elemwise("mul")(m, elemwise("sub")(1, below))


class _Grid:
    """Coordinates of the points of a grid: ``mgrid[0:n, 1:3]``, a tensor for each dimension.

    Indexed by slices of integers, numbers and 0-d variables; the default step is 1. sparse: each
    tensor has length 1 along all dimensions but its own.
    """

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, slices: Any) -> list[Any]:
        if isinstance(slices, slice):
            slices = (slices,)
        ranges = [self._range(part) for part in slices]
        ndim = len(ranges)
        orders = [["x"] * i + [0] + ["x"] * (ndim - i - 1) for i in range(ndim)]
        grids = [dimshuffle(r, order) for r, order in zip(ranges, orders, strict=True)]
        if self.sparse:
            return grids
        lengths = [shape_of(r)[0] for r in ranges]
        return [alloc(grid, *lengths) for grid in grids]

    @staticmethod
    def _range(part: Any) -> Tensor:
        if isinstance(part.step, complex):
            raise NotImplementedError(f"a grid has no complex steps: {part}")
        start = 0 if part.start is None else part.start
        return arange(start, part.stop, 1 if part.step is None else part.step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)
