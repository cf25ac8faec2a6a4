"""Joining tensors and splitting them; vectors made of single numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.config import config
from opwise.errors import AsTensorError, NotScalarConstantError
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayLayouts, Traffic
from opwise.graph.null import NullType, is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.tensor.creation import zeros_like
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.knownvalues import (
    get_scalar_constant_value,
    known_length,
    vector_entries,
    vector_rule,
)
from opwise.tensor.shape import (
    length,
    patternbroadcast,
    shape,
    shape_padaxis,
    shape_padleft,
)
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    TensorOp,
    as_tensor_variable,
    constant,
    conversions,
)

if TYPE_CHECKING:
    from opwise.tensor.reduce import Axis


__all__ = [
    "Join",
    "Split",
    "concatenate",
    "horizontal_stack",
    "join",
    "join_",
    "split",
    "stack",
    "stacklists",
    "vertical_stack",
]


# --- vectors of single numbers ------------------------------------------------------------------


class MakeVector(TensorOp):
    """A vector of ``dtype`` whose elements are the inputs, 0-d tensors.

    dtype: one to which those of the inputs can be upcast. AssertionError for another.
    """

    __props__ = ("dtype",)
    flops, traffic = costs.no_flops, costs.each_once

    def __init__(self, dtype: str = "int64") -> None:
        self.dtype = np.dtype(dtype).name

    def make_node(self, *inputs: TensorLike) -> Apply:
        entries = [as_tensor_variable(x) for x in inputs]
        for i, x in enumerate(entries):
            if x.type.ndim:
                raise TypeError(f"MakeVector takes numbers; its input {i}, {x}, has {x.type}")
        upcast = dtypes.upcast(self.dtype, *(x.type.dtype for x in entries))
        if upcast != self.dtype:
            raise AssertionError(
                f"The upcast of the inputs to MakeVector should match its dtype: {self} cannot "
                f"hold the inputs, which are of {upcast} together"
            )
        entries = [x if x.type.dtype == upcast else cast(x, upcast) for x in entries]
        return Apply(self, entries, [tensor_type(self.dtype, (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        result = np.empty(len(inputs), dtype=self.dtype)
        for i, x in enumerate(inputs):
            result[i] = x
        output_storage[0][0] = result

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(length(len(node.inputs)),)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (gz,) = output_gradients
        if self.dtype in dtypes.DISCRETE:
            return [zeros_like(x, config.floatX) for x in inputs]
        return [gz[i] for i in range(len(inputs))]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        if all(point is None for point in eval_points):
            return [None]
        return self.make_node(*_with_zeros(inputs, eval_points)).outputs


def _with_zeros(inputs: Sequence[Tensor], eval_points: Sequence[Tensor | None]) -> list[Tensor]:
    """Return the directions of inputs, zeros for those without one."""
    return [
        zeros_like(x) if point is None else point
        for x, point in zip(inputs, eval_points, strict=True)
    ]


def _entry_of_list(node: Apply, i: int) -> Variable | None:
    return node.inputs[i] if i < len(node.inputs) else None


vector_rule(MakeVector, lambda node, _: len(node.inputs), _entry_of_list)


@cache
def _make_vector_op(dtype: str) -> MakeVector:
    return MakeVector(dtype)


make_vector = _make_vector_op("int64")


def vector_of(numbers: Sequence[Any]) -> Tensor:
    """Return the vector of a list of 0-d tensors, of the upcast of their dtypes."""
    return _make_vector_op(dtypes.upcast(*(x.type.dtype for x in numbers)))(*numbers)


# --- joining ------------------------------------------------------------------------------------


def _known_axis(axis: Any) -> int | None:
    """Return an axis as an int if its value is known, else None; TypeError for a fraction."""
    try:
        value = get_scalar_constant_value(axis)
    except NotScalarConstantError:
        return None
    if value != int(value):
        raise TypeError(f"an axis is an integer, not {value}")
    return int(value)


class Join(TensorOp):
    """Joins tensors with the same number of dimensions along an axis, the first input.

    Along all other axes their lengths are equal. view: the position of a tensor of which the result
    is a view if all others are empty; -1 for none.
    """

    __props__ = ("view",)
    flops = costs.no_flops

    def __init__(self, view: int = -1) -> None:
        self.view = view
        if view != -1:
            self.view_map = {0: [1 + view]}

    def make_node(self, axis: TensorLike, *tensors: TensorLike) -> Apply:
        if not tensors:
            raise ValueError("there is no tensor to join: the list is empty. Give at least one.")
        parts = [as_tensor_variable(x) for x in tensors]
        ndim = parts[0].type.ndim
        if any(x.type.ndim != ndim for x in parts):
            raise TypeError(
                "tensors to join must have the same number of dimensions; these have "
                f"{', '.join(str(x.type.ndim) for x in parts)}. x[None, :] or x.dimshuffle('x', "
                "0) adds a dimension to a vector."
            )
        if ndim == 0:
            raise TypeError("scalars have no axis to join along: use T.stack")
        known = _known_axis(axis)
        if known is not None:
            given, known = known, _normalized_axis(known, ndim)
            if known != given or not isinstance(axis, Variable):
                axis = constant(known)
        axis = as_tensor_variable(axis)
        if axis.type.ndim or axis.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"an axis is an integer; {axis} has {axis.type}")
        dtype = dtypes.upcast(*(x.type.dtype for x in parts))
        output = tensor_type(dtype, _joined_pattern(known, parts)).make_variable()
        return Apply(self, [axis, *parts], [output])

    def traffic(self, node: Apply, inputs: ArrayLayouts, outputs: ArrayLayouts) -> Traffic:
        """Return the bytes of the tensors and of the result; none if the result is a view."""
        if self.view != -1 and outputs[0].bytes == inputs[1 + self.view].bytes:
            return costs.nothing(self, node, inputs, outputs)
        return [0, *(a.bytes for a in inputs[1:])], [outputs[0].bytes]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        axis, *tensors = inputs
        if self.view != -1 and all(
            x.shape[int(axis)] == 0 for i, x in enumerate(tensors) if i != self.view
        ):
            output_storage[0][0] = tensors[self.view]
            return
        ndim = tensors[0].ndim
        output_storage[0][0] = np.concatenate(
            tensors,
            axis=_normalized_axis(int(axis), ndim),
            dtype=node.outputs[0].type.dtype,
            casting="unsafe",
        )

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        axis, ndim = node.inputs[0], node.outputs[0].type.ndim
        shapes = shapes[1:]
        known = _known_axis(axis)
        joined = []
        for i in range(ndim):
            if known is not None and i == known % ndim:
                joined.append(_added([s[i] for s in shapes]))
            elif known is not None:
                joined.append(shapes[0][i])
            else:
                total = _added([s[i] for s in shapes])
                joined.append(elemwise("switch")(_is_dimension(axis, i, ndim), total, shapes[0][i]))
        return [tuple(joined)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        axis, *tensors = inputs
        (gz,) = output_gradients
        by_axis = NullType(f"{self} has no gradient by its axis, a whole number").make_variable()
        zeros = [zeros_like(x, config.floatX) for x in tensors if x.type.dtype in dtypes.DISCRETE]
        if len(zeros) == len(tensors):
            return [by_axis, *zeros]
        known = _known_axis(axis)
        where = axis if known is None else known
        sizes = vector_of([shape(x)[where] for x in tensors])
        parts = _split_op(len(tensors))(gz, axis, sizes, return_list=True)
        return [
            by_axis,
            *(
                zeros_like(x, config.floatX)
                if x.type.dtype in dtypes.DISCRETE
                else patternbroadcast(part, x.type.broadcastable)
                for x, part in zip(tensors, parts, strict=True)
            ),
        ]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        if all(point is None for point in eval_points[1:]):
            return [None]
        return self.make_node(inputs[0], *_with_zeros(inputs[1:], eval_points[1:])).outputs

    def __str__(self) -> str:
        return "Join" if self.view == -1 else f"Join{{view={self.view}}}"


def _no_axis(axis: int, ndim: int) -> str:
    return (
        f"there is no axis {axis} to join tensors of {ndim} dimensions along: axes go from {-ndim} "
        f"to {ndim - 1}"
    )


def _normalized_axis(axis: int, ndim: int) -> int:
    if axis < -ndim:
        raise IndexError(_no_axis(axis, ndim))
    if axis >= ndim:
        raise ValueError(_no_axis(axis, ndim))
    return axis % ndim


def _is_dimension(axis: Variable, i: int, ndim: int) -> Tensor:
    """Return a variable: whether a symbolic axis, which may be negative, is dimension ``i``."""
    return elemwise("eq")(elemwise("mod")(length(axis), length(ndim)), length(i))


def _joined_pattern(axis: int | None, tensors: Sequence[Tensor]) -> tuple[bool, ...]:
    """Return the broadcast pattern of tensors joined along ``axis``; None if it is not known."""
    patterns = [x.type.broadcastable for x in tensors]
    if len(patterns) == 1:
        return patterns[0]
    if axis is None:
        return (False,) * len(patterns[0])
    return tuple(i != axis and any(flags) for i, flags in enumerate(zip(*patterns, strict=True)))


def _added(lengths: Sequence[Tensor]) -> Tensor:
    """Return the sum of int64 scalar variables."""
    if all(isinstance(n, Constant) for n in lengths):
        return length(sum(int(n.data) for n in lengths))
    return lengths[0] if len(lengths) == 1 else elemwise("add")(*lengths)


def _length_of_join(node: Apply, known: Callable[[Variable], int | None]) -> int | None:
    total = 0
    for part in node.inputs[1:]:
        n = known(part)
        if n is None:
            return None
        total += n
    return total


def _entry_of_join(node: Apply, i: int) -> tuple[Variable, int] | None:
    for part in node.inputs[1:]:
        n = known_length(part)
        if n is None:
            return None
        if i < n:
            return part, i
        i -= n
    return None


vector_rule(Join, _length_of_join, _entry_of_join)
join_ = Join()


def join(axis: TensorLike, *tensors_list: TensorLike) -> Tensor:
    """Return tensors joined along ``axis``, an integer or a 0-d integer variable.

    They have the same number of dimensions, and equal lengths along all but the axis, whose length
    is the sum of theirs. The dtype is the upcast of theirs. A single tensor is returned as it is.

    Raises TypeError for 0-d tensors, different numbers of dimensions or an axis that is no integer,
    ValueError without a tensor or if the axis is too large, IndexError if it is too far below 0; at
    run time the last two if it is a variable, ValueError if other lengths differ.
    """
    if len(tensors_list) == 1:
        return as_tensor_variable(tensors_list[0])
    return join_(axis, *tensors_list)


def concatenate(tensor_list: Sequence[TensorLike], axis: TensorLike = 0) -> Tensor:
    """Return the tensors of a list or tuple joined along ``axis``, an integer or a 0-d variable.

    The shape, dtype and errors are those of ``join``. Raises TypeError if the tensors are not in a
    list or tuple.
    """
    if not isinstance(tensor_list, list | tuple):
        raise TypeError(
            "concatenate takes the tensors as one list or tuple, its argument 'tensor_list', not "
            f"{tensor_list}"
        )
    return join(axis, *tensor_list)


def stack(*tensors: TensorLike, **kwargs: Any) -> Tensor:
    """Return tensors of equal shape joined along a new axis: ``stack(tensors, axis=0)``.

    The result has one dimension more, as long as the list; its dtype is the upcast of theirs. axis:
    an int, which may be negative; scalars are joined into a vector, whatever axis is. ``stack(x, y,
    ...)``, the form of old programs, joins along axis 0 and gives a DeprecationWarning.

    Raises TypeError if the numbers of dimensions differ, IndexError if the axis is out of range,
    Exception without tensors; at run time ValueError if lengths differ.
    """
    axis = kwargs.pop("axis", 0)
    if "tensors" in kwargs:
        tensors = (kwargs.pop("tensors"), *tensors)
    if kwargs:
        raise TypeError(f"stack takes tensors and axis, not {', '.join(kwargs)}")
    if not tensors:
        raise Exception("stack(tensors, axis) needs tensors")
    if isinstance(tensors[0], list | tuple):
        if len(tensors) > 2:
            raise TypeError(f"stack(tensors, axis) takes two arguments, not {len(tensors)}")
        axis = tensors[1] if len(tensors) == 2 else axis
        tensors = tuple(tensors[0])
    else:
        warnings.warn(
            "stack(x, y, ...) is the form of old programs; write stack([x, y, ...])",
            DeprecationWarning,
            stacklevel=2,
        )
    if len(tensors) == 0:
        raise Exception("there is no tensor to stack: the list is empty")
    return _stacked([as_tensor_variable(x) for x in tensors], axis)


def _stacked(tensors: Sequence[Tensor], axis: int) -> Tensor:
    if all(x.type.ndim == 0 for x in tensors):
        return vector_of(tensors)  # along any axis: old programs stack along axis 1
    ndim = tensors[0].type.ndim + 1
    if not -ndim <= axis < ndim:
        raise IndexError(f"axis {axis} is out of bounds [-{ndim}, {ndim})")
    if any(x.type.ndim != ndim - 1 for x in tensors):
        raise TypeError(
            "tensors to stack must have the same number of dimensions; these have "
            f"{', '.join(str(x.type.ndim) for x in tensors)}. x[None, :] or x.dimshuffle('x', 0) "
            "adds a dimension to a vector."
        )
    return join(axis % ndim, *(shape_padaxis(x, axis) for x in tensors))


def horizontal_stack(*args: TensorLike) -> Tensor:
    """Return two or more matrices side by side, as a matrix with all of their columns.

    The dtype is the upcast of theirs. Raises ValueError for fewer than two and for tensors that are
    not matrices; at run time ValueError if the numbers of rows differ.
    """
    return join(1, *_matrices(args, "horizontal_stack"))


def vertical_stack(*args: TensorLike) -> Tensor:
    """Return two or more matrices on top of each other, as a matrix with all of their rows.

    The dtype is the upcast of theirs. Raises ValueError for fewer than two and for tensors that are
    not matrices; at run time ValueError if the numbers of columns differ.
    """
    return join(0, *_matrices(args, "vertical_stack"))


def _matrices(args: Sequence[TensorLike], name: str) -> Sequence[Tensor]:
    if len(args) < 2:
        raise ValueError(f"{name} takes two matrices or more, got {len(args)}")
    matrices = [as_tensor_variable(x) for x in args]
    for x in matrices:
        if x.type.ndim != 2:
            raise ValueError(f"{name} takes matrices; {x} has {x.type.ndim} dimensions")
    return matrices


def stacklists(arg: TensorLike) -> Tensor:
    """Return nested lists of tensors as one tensor: each level of lists becomes a dimension.

    These come first, then the dimensions of the tensors, which have one shape. The dtype is the
    upcast of theirs; a tensor that is in no list is returned as it is. Raises TypeError if tensors
    of different numbers of dimensions are in one list, Exception for an empty list; at run time
    ValueError if lengths differ.
    """
    if isinstance(arg, list | tuple):
        return stack([stacklists(item) for item in arg])
    return as_tensor_variable(arg)


def _stack_sequence(sequence: Sequence[TensorLike], ndim: int | None = None) -> Tensor:
    """Return a list that holds variables as one variable, for ``as_tensor_variable``."""
    tensors = [as_tensor_variable(x) for x in sequence]
    if any(x.type.ndim != tensors[0].type.ndim for x in tensors):
        raise AsTensorError(
            f"Cannot convert {sequence} to TensorType: its items have "
            f"{', '.join(str(x.type.ndim) for x in tensors)} dimensions"
        )
    stacked = _stacked(tensors, 0)
    if ndim is None or stacked.type.ndim == ndim:
        return stacked
    if stacked.type.ndim > ndim:
        raise ValueError(f"{sequence} has {stacked.type.ndim} dimensions, not {ndim}")
    return shape_padleft(stacked, ndim - stacked.type.ndim)


conversions.from_sequence = _stack_sequence


# --- splitting ----------------------------------------------------------------------------------


class Split(Op):
    """A tensor cut into ``len_splits`` parts along an axis.

    Inputs: the tensor, the axis, and the integer vector of the parts' lengths, which add up to the
    tensor's.
    """

    __props__ = ("len_splits",)

    def __init__(self, len_splits: int) -> None:
        self.len_splits = int(len_splits)
        if self.len_splits < 1:
            raise ValueError(f"A tensor is split into one part or more, not {len_splits}")

    def make_node(self, x: TensorLike, axis: TensorLike, splits: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        axis = as_tensor_variable(axis)
        splits = as_tensor_variable(splits)
        if splits.type.ndim != 1 or splits.type.dtype not in dtypes.INTEGERS:
            raise TypeError(
                f"the lengths of parts are a vector of integers; {splits} has {splits.type}"
            )
        if axis.type.ndim or axis.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"an axis is an integer; {axis} has {axis.type}")
        pattern = self._pattern(x, axis)
        outputs = [
            tensor_type(x.type.dtype, pattern).make_variable() for _ in range(self.len_splits)
        ]
        return Apply(self, [x, axis, splits], outputs)

    def _pattern(self, x: Tensor, axis: Axis) -> tuple[bool, ...]:
        """Return the broadcast pattern of the parts, which may be empty."""
        pattern = x.type.broadcastable
        if self.len_splits == 1 or not any(pattern):
            return pattern
        known = _known_axis(axis)
        if known is None:
            return (False,) * len(pattern)
        cut = known % len(pattern)
        return tuple(flag and i != cut for i, flag in enumerate(pattern))

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, axis, splits = inputs
        axis = int(axis)
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"there is no axis {axis} to split an array of shape {x.shape} along")
        if len(splits) != self.len_splits:
            raise ValueError(f"{self} needs {self.len_splits} lengths, got {len(splits)}: {splits}")
        total, whole = splits.sum(), x.shape[axis]
        if total != whole:
            raise ValueError(
                f"the parts have {total} elements along axis {axis}, the whole {whole}: {splits}"
            )
        if (splits < 0).any():
            raise ValueError(f"a part cannot have a negative length: {splits}")
        parts = np.split(x, np.cumsum(splits)[:-1], axis=axis)
        for cell, part in zip(output_storage, parts, strict=True):
            cell[0] = part.copy()

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        x, axis, splits = node.inputs
        known = _known_axis(axis)
        ndim = x.type.ndim
        result = []
        for part in map(length, vector_entries(splits, self.len_splits)):
            if known is not None:
                lengths = list(shapes[0])
                lengths[known] = part
            else:
                lengths = [
                    elemwise("switch")(_is_dimension(axis, i, ndim), part, n)
                    for i, n in enumerate(shapes[0])
                ]
            result.append(tuple(lengths))
        return result

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        x, axis, _ = inputs
        why = f"{self} has no gradient by whole numbers"
        others = [NullType(why).make_variable() for _ in inputs[1:]]
        if x.type.dtype in dtypes.DISCRETE:
            return [zeros_like(x, config.floatX), *others]
        parts = [
            zeros_like(out) if is_disconnected(g) else g
            for out, g in zip(outputs, output_gradients, strict=True)
        ]
        return [patternbroadcast(join(axis, *parts), x.type.broadcastable), *others]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        if eval_points[0] is None:
            return [None] * self.len_splits
        return self.make_node(eval_points[0], *inputs[1:]).outputs

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.len_splits}}}"


@cache
def _split_op(len_splits: int) -> Split:
    return Split(len_splits)


def split(
    x: TensorLike, splits_size: TensorLike, n_splits: int, axis: TensorLike = 0
) -> Tensor | list[Tensor]:
    """Return ``x`` cut into ``n_splits`` parts along ``axis``: a list, or the part if it is one.

    The parts have the dtype of x, and its shape but for their lengths. splits_size: these lengths,
    an integer vector or a list of integers and 0-d variables. axis: an integer or a 0-d variable.

    Raises TypeError if the lengths or the axis are not integers, ValueError for n_splits below 1;
    at run time ValueError if the lengths do not add up to that of x, one is negative, there are not
    n_splits of them, or there is no such axis.
    """
    parts: Tensor | list[Tensor] = _split_op(int(n_splits))(x, axis, splits_size)
    return parts
