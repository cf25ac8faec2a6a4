"""Shapes: reading, changing and specifying them.

What is known of a shape before a program runs is in ``opwise.tensor.knownvalues``, joining and
splitting in ``opwise.tensor.join``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first, scalar_shape, zero_derivative
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.op import Cast
from opwise.scalar.spec import ROWS
from opwise.tensor.dimshuffle import dimshuffle_op
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.knownvalues import (
    equals_input,
    is_one,
    known_length,
    number_rule,
    vector_entries,
    vector_entry,
    vector_rule,
)
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    TensorOp,
    as_tensor_variable,
    constant,
)

__all__ = [
    "Rebroadcast",
    "Reshape",
    "Shape",
    "SpecifyShape",
    "addbroadcast",
    "flatten",
    "is_flat",
    "patternbroadcast",
    "reshape",
    "shape",
    "shape_padaxis",
    "shape_padleft",
    "shape_padright",
    "specify_shape",
    "squeeze",
    "swapaxes",
    "transpose",
    "unbroadcast",
]


# --- reading ------------------------------------------------------------------------------------


class Shape(TensorOp):
    """The shape of a tensor, as an int64 vector."""

    __props__ = ()
    flops, traffic = costs.no_flops, costs.written

    def make_node(self, x: TensorLike) -> Apply:
        # types other than TensorType have shapes as well: leave variables as they are
        if not hasattr(x, "type"):
            x = as_tensor_variable(x)
        return Apply(self, [x], [tensor_type("int64", (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.asarray(np.shape(inputs[0]), dtype=np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(length(node.inputs[0].type.ndim),)]

    connection_pattern = connects()

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [disconnected_type.make_variable()]

    R_op = zero_derivative


shape = Shape()
_shape = shape


class Shape_i(TensorOp):
    """The length of dimension ``i`` of a tensor, as an int64 scalar."""

    __props__ = ("i",)
    flops, traffic = costs.no_flops, costs.written

    def __init__(self, i: int) -> None:
        self.i = int(i)

    def make_node(self, x: TensorLike) -> Apply:
        if not hasattr(x, "type"):
            x = as_tensor_variable(x)
        if self.i >= x.type.ndim:
            raise TypeError(f"{x} has {x.type.ndim} dimensions: it has no dimension {self.i}")
        return Apply(self, [x], [tensor_type("int64", ()).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.asarray(inputs[0].shape[self.i], dtype=np.int64)

    infer_shape = scalar_shape
    connection_pattern = connects()

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [disconnected_type.make_variable()]

    R_op = zero_derivative

    def __str__(self) -> str:
        return f"Shape_i{{{self.i}}}"


@cache
def shape_i_op(i: int) -> Shape_i:
    """Return the Op that gives the length of dimension ``i``; the same object each time."""
    return Shape_i(i)


def shape_i(var: Variable, i: int, fgraph: Any = None) -> Tensor:
    """Return the length of dimension ``i`` of ``var``, as a 0-d int64 tensor.

    fgraph: a graph; if it tracks shapes, the length that it knows is returned. At run time
    IndexError if there is no such dimension.
    """
    feature = getattr(fgraph, "shape_feature", None)
    if feature is not None:
        known = feature.shape_of.get(var)
        if known is not None:
            result: Tensor = known[i]
            return result
    return _shape(var)[i]


def length(n: Any) -> Tensor:
    """Return a length, an int or an integer variable, as an int64 variable."""
    if not hasattr(n, "type"):
        return constant(np.int64(n))
    if n.type.dtype != "int64":
        return constant(np.int64(n.data)) if isinstance(n, Constant) else cast(n, "int64")
    known: Tensor = n
    return known


# --- what is known of lengths ----------------------------------------------------------------

_MAX_DEPTH = 30


def is_length(entry: Any, depth: int = _MAX_DEPTH) -> bool:
    """Return whether an entry of a shape is known to be 0 or more.

    depth: how many Applys may be looked through.
    """
    if not hasattr(entry, "type"):
        return bool(entry >= 0)
    if isinstance(entry, Constant):
        return bool(np.all(entry.data >= 0))
    if entry.owner is None or depth == 0:
        return False
    op, operands = entry.owner.op, entry.owner.inputs
    if isinstance(op, Elemwise):
        if not (isinstance(op.scalar_op, Cast) or op.scalar_op.row in _KEEP_SIGN):
            return False
        return all(is_length(x, depth - 1) for x in operands)
    if isinstance(op, Shape_i):
        return True
    # an entry of a shape: only a Subtensor makes a scalar of a Shape
    shape_owner = operands[0].owner if operands else None
    return shape_owner is not None and isinstance(shape_owner.op, Shape)


_KEEP_SIGN = tuple(ROWS[name] for name in ("add", "mul", "int_div", "maximum", "minimum"))


def _entry_of_shape(node: Apply, i: int) -> Any:
    """Return the length of a dimension that is known from a type, constant or SpecifyShape."""
    (x,) = node.inputs
    pattern = getattr(x.type, "broadcastable", ())
    if i >= len(pattern):
        return None
    if pattern[i]:
        return np.int64(1)
    if isinstance(x, Constant):
        return np.int64(x.data.shape[i])
    if x.owner is not None and type(x.owner.op) is SpecifyShape:
        return x.owner.inputs[1], i
    return None


vector_rule(Shape, lambda node, _: node.inputs[0].type.ndim, _entry_of_shape)


def _entry_of_shape_i(node: Apply) -> Any:
    """Return the length of a dimension that is known beforehand, else None."""
    return vector_entry(shape(node.inputs[0]), node.op.i)


number_rule(Shape_i, _entry_of_shape_i)


# --- changing -----------------------------------------------------------------------------------


class Reshape(TensorOp):
    """The elements of a tensor, in C order, in another shape; a view if possible.

    ndim: of the result. The second input is the new shape, an integer vector; one entry may be -1.
    Dimensions whose entry is known to be 1 are broadcastable.
    """

    view_map = {0: [0]}
    __props__ = ("ndim",)
    flops, traffic = costs.no_flops, costs.view_or_copy

    def __init__(self, ndim: int, name: str | None = None) -> None:
        if name is not None:
            raise TypeError("Reshape takes no name: name the variable that it makes")
        self.ndim = int(ndim)
        if self.ndim < 0:
            raise ValueError(f"The number of dimensions of a reshape is {ndim}; it must be >= 0")

    def make_node(self, x: TensorLike, shp: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        shp = as_tensor_variable(shp, ndim=1)
        if shp.type.dtype not in dtypes.INTEGERS:
            if not (isinstance(shp, Constant) and shp.data.size == 0):
                raise TypeError(f"a shape is made of integers; {shp} has dtype {shp.type.dtype}")
            shp = constant(np.zeros(0, np.int64))
        n = known_length(shp)
        if n is not None and n != self.ndim:
            raise ValueError(f"{self} needs {self.ndim} lengths, got {n}: {shp}")
        if isinstance(shp, Constant):
            pattern = tuple((shp.data == 1).tolist())
        else:
            pattern = tuple(is_one(vector_entry(shp, i)) for i in range(self.ndim))
        return Apply(self, [x, shp], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, shp = inputs
        if len(shp) != self.ndim:
            raise ValueError(f"{self} needs {self.ndim} lengths, got {len(shp)}: {shp}")
        try:
            output_storage[0][0] = x.reshape(tuple(shp.tolist()))
        except ValueError as e:
            raise ValueError(f"{e} (the input has shape {x.shape})") from None

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        entries = vector_entries(node.inputs[1], self.ndim)
        for i, one in enumerate(node.outputs[0].type.broadcastable):
            if one:
                entries[i] = 1
        if all(map(is_length, entries)):
            return [tuple(map(length, entries))]
        size = _product(shapes[0])
        others = [e for e in entries if hasattr(e, "type") or e >= 0]
        if len(others) < len(entries):
            rest = elemwise("int_div")(size, _product(others)) if others else size
            return [tuple(length(e) if hasattr(e, "type") or e >= 0 else rest for e in entries)]
        # an entry may be -1 at run time; the product of all entries then is negative
        negative = elemwise("neg")(_product(entries))
        rest = elemwise("int_div")(size, elemwise("maximum")(negative, length(1)))
        return [tuple(length(e) if is_length(e) else _length_unless(e, rest) for e in entries)]

    connection_pattern = connects(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        x, _ = inputs
        (gz,) = output_gradients
        return [reshape(gz, _shape(x), ndim=x.type.ndim), disconnected_type.make_variable()]

    R_op = linear_in_first

    def __str__(self) -> str:
        return f"Reshape{{{self.ndim}}}"


def _product(lengths: Sequence[Any]) -> Tensor:
    """Return the product of lengths, an int64 scalar variable."""
    lengths = list(map(length, lengths))
    if all(isinstance(n, Constant) for n in lengths):
        return length(prod(int(n.data) for n in lengths))
    return lengths[0] if len(lengths) == 1 else elemwise("mul")(*lengths)


def _length_unless(entry: Any, rest: Tensor) -> Tensor:
    """Return an entry of a new shape as a length; ``rest`` if it is -1."""
    entry = length(entry)
    return elemwise("switch")(elemwise("eq")(entry, length(-1)), rest, entry)


@cache
def _reshape_op(ndim: int) -> Reshape:
    return Reshape(ndim)


def reshape(x: TensorLike, newshape: TensorLike, ndim: int | None = None) -> Tensor:
    """Return ``x`` with another shape, of its dtype; a view of x if possible.

    newshape: integers and 0-d variables, or a vector; one entry may be -1, which is computed from
    the others. ndim: the number of entries; needed if newshape is a vector whose length is not
    known beforehand.

    Raises TypeError if an entry is not an integer or newshape is not a vector (without ndim),
    ValueError if ndim is needed or is not the known number of entries; at run time ValueError if
    newshape has other than ndim entries or another number of elements than x.
    """
    newshape = as_tensor_variable(newshape)
    if ndim is None:
        if newshape.type.ndim != 1:
            raise TypeError(
                "the new shape must be a vector, or a list or tuple of numbers and 0-d variables; "
                f"{newshape} has {newshape.type.ndim} dimensions"
            )
        ndim = known_length(newshape)
        if ndim is None:
            raise ValueError(
                f"The length of the provided shape ({newshape}) cannot be automatically "
                "determined, so the number of dimensions of the result is unknown: give it as the "
                "argument 'ndim' of 'reshape'"
            )
    return _reshape_op(int(ndim))(x, newshape)


def flatten(x: TensorLike, ndim: int | None = None, outdim: int | None = None) -> Tensor:
    """Return ``x`` with all dimensions from ``ndim - 1`` on merged into one; a view if possible.

    The dtype is that of x. ndim: of the result (default: 1). outdim: the same, under an older name.
    Raises ValueError unless 1 <= ndim <= x.ndim (ndim may be 1 for a 0-d x), and for both names.
    """
    if ndim is not None and outdim is not None:
        raise ValueError("ndim and outdim are two names of one argument: give one of them")
    x = as_tensor_variable(x)
    n = ndim if ndim is not None else outdim if outdim is not None else 1
    if n < 1 or n > max(x.type.ndim, 1):
        raise ValueError(
            f"{x} has {x.type.ndim} dimensions: flatten can leave 1 to {max(x.type.ndim, 1)}, "
            f"not {n}"
        )
    kept = [_shape(x)[i] for i in range(n - 1)]
    # if another length is 0, -1 would be ambiguous
    last = _product([_shape(x)[i] for i in range(n - 1, x.type.ndim)]) if kept else -1
    result = reshape(x, [*kept, last])
    pattern = x.type.broadcastable
    merged = (*pattern[: n - 1], all(pattern[n - 1 :]))
    return addbroadcast(result, *(i for i, b in enumerate(merged) if b))


def is_flat(var: Any, ndim: int | None = None, outdim: int | None = None) -> bool:
    """Return whether ``var`` has ``ndim`` dimensions (default: 1; outdim: a legacy name)."""
    return bool(var.ndim == (ndim if ndim is not None else outdim if outdim is not None else 1))


def shape_padleft(t: TensorLike, n_ones: int = 1) -> Tensor:
    """Return ``t`` with ``n_ones`` broadcastable dimensions added on the left, of its dtype.

    n_ones: an int (default: 1). Raises TypeError if n_ones is a variable.
    """
    t = as_tensor_variable(t)
    return _reordered(t, ["x"] * n_ones + list(range(t.type.ndim)))


def shape_padright(t: TensorLike, n_ones: int = 1) -> Tensor:
    """Return ``t`` with ``n_ones`` broadcastable dimensions added on the right, of its dtype.

    n_ones: an int (default: 1). Raises TypeError if n_ones is a variable.
    """
    t = as_tensor_variable(t)
    return _reordered(t, list(range(t.type.ndim)) + ["x"] * n_ones)


def shape_padaxis(t: TensorLike, axis: int) -> Tensor:
    """Return ``t`` with a broadcastable dimension added at ``axis``, of its dtype.

    axis: an int, the dimension of the result; it may be negative. Raises IndexError if it is out of
    range.
    """
    t = as_tensor_variable(t)
    ndim = t.type.ndim + 1
    if not -ndim <= axis < ndim:
        raise IndexError(f"axis {axis} is out of bounds [-{ndim}, {ndim})")
    order: list[int | str] = list(range(t.type.ndim))
    order.insert(axis % ndim, "x")
    return _reordered(t, order)


def _reordered(x: Tensor, order: Any) -> Tensor:
    return dimshuffle_op(x.type.broadcastable, tuple(order))(x)


def transpose(x: TensorLike, axes: Iterable[int] | None = None) -> Tensor:
    """Return ``x`` with its dimensions in the order ``axes`` (default: reversed); a view.

    The dtype is that of x; dimension i of the result is dimension ``axes[i]`` of x. axes: ints,
    which may be negative. Raises ValueError unless each dimension is named once, TypeError if axes
    is a variable.
    """
    x = as_tensor_variable(x)
    if axes is None:
        result = _reordered(x, range(x.type.ndim - 1, -1, -1))
        if x.name:
            result.name = f"{x.name}.T"
        return result
    order = [a + x.type.ndim if a < 0 else a for a in map(int, axes)]
    if len(order) < x.type.ndim:
        raise ValueError(
            f"transpose needs each axis of {x} once, that is {x.type.ndim} axes, not "
            f"{tuple(axes)}. You cannot drop a non-broadcastable dimension."
        )
    return _reordered(x, order)


def swapaxes(y: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Return ``y`` with two dimensions exchanged, of its dtype; a view.

    axis1, axis2: ints, which may be negative. Raises IndexError if one is out of range.
    """
    y = as_tensor_variable(y)
    order = list(range(y.type.ndim))
    for axis in (axis1, axis2):
        if not -len(order) <= axis < len(order):
            raise IndexError(f"axis {axis} is out of range for {y}, which has {len(order)}")
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _reordered(y, order)


def squeeze(x: TensorLike) -> Tensor:
    """Return ``x`` without its broadcastable dimensions, of its dtype; a view.

    Dimensions that are 1 only at run time stay. Raises TypeError for what cannot become a tensor.
    """
    x = as_tensor_variable(x)
    return _reordered(x, [i for i, b in enumerate(x.type.broadcastable) if not b])


# --- specifying ---------------------------------------------------------------------------------


class Rebroadcast(TensorOp):
    """The input with other broadcastable dimensions; that their length is 1 is checked at run time.

    axis: pairs (dimension, whether it is broadcastable); all other dimensions stay as they are.
    """

    view_map = {0: [0]}
    __props__ = ("axis",)
    flops, traffic = costs.no_flops, costs.nothing

    def __init__(self, *axis: tuple[int, ...]) -> None:
        pairs = sorted((int(i), flag) for i, flag in axis)
        for _, flag in pairs:
            if not isinstance(flag, bool | np.bool_):
                raise TypeError(f"Rebroadcast takes pairs of a dimension and a bool, not {flag}")
        self.axis = {i: bool(flag) for i, flag in pairs}

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if self.axis and x.type.ndim <= max(self.axis):
            raise ValueError(f"{self} needs more dimensions than {x} has, {x.type.ndim}")
        pattern = tuple(self.axis.get(i, b) for i, b in enumerate(x.type.broadcastable))
        return Apply(self, [x], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        for i, flag in self.axis.items():
            if flag and x.shape[i] != 1:
                raise ValueError(
                    f"Dimension {i} in Rebroadcast's input was supposed to be 1 (got {x.shape[i]} "
                    "instead)"
                )
        output_storage[0][0] = x

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        (lengths,) = shapes
        return [tuple(length(1) if self.axis.get(i) else n for i, n in enumerate(lengths))]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        return [rebroadcast_op(tuple((i, x.type.broadcastable[i]) for i in self.axis))(gz)]

    R_op = linear_in_first

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.axis == other.axis

    def __hash__(self) -> int:
        return hash((Rebroadcast, tuple(self.axis.items())))

    def __str__(self) -> str:
        flags = {None: "?", True: "1", False: "0"}
        count = max(self.axis) + 1 if self.axis else 0
        return f"Rebroadcast{{{','.join(flags[self.axis.get(i)] for i in range(count))}}}"


equals_input(Rebroadcast)
vector_rule(
    Rebroadcast,
    lambda node, known: known(node.inputs[0]),
    lambda node, i: (node.inputs[0], i),
)


@cache
def rebroadcast_op(pairs: tuple[tuple[int, bool], ...]) -> Rebroadcast:
    """Return the Rebroadcast of a tuple of pairs; the same object for equal ones."""
    return Rebroadcast(*pairs)


def _rebroadcast(x: TensorLike, wanted: dict[Any, Any]) -> Tensor:
    """Return ``x`` with broadcastable dimensions as in a dict, by one Rebroadcast at most."""
    x = tensor = as_tensor_variable(x)
    ndim = x.type.ndim
    for i in wanted:
        if not -ndim <= i < ndim:
            raise ValueError(f"{x} has {ndim} dimensions: there is no dimension {i} to rebroadcast")
    wanted = {i % ndim: flag for i, flag in wanted.items()}
    if all(x.type.broadcastable[i] == flag for i, flag in wanted.items()):
        return tensor
    while x.owner is not None and type(x.owner.op) is Rebroadcast:
        wanted = x.owner.op.axis | wanted
        x = tensor = as_tensor_variable(x.owner.inputs[0])
    pairs = tuple((i, f) for i, f in sorted(wanted.items()) if x.type.broadcastable[i] != f)
    return rebroadcast_op(pairs)(x) if pairs else tensor


def addbroadcast(x: TensorLike, *axes: int) -> Tensor:
    """Return ``x`` with ``axes`` declared broadcastable; shape and dtype stay. A view.

    axes: ints, which may be negative. Raises ValueError if there is no such dimension; at run time
    ValueError if its length is not 1.
    """
    return _rebroadcast(x, dict.fromkeys(axes, True))


def unbroadcast(x: TensorLike, *axes: int) -> Tensor:
    """Return ``x`` with ``axes`` declared not broadcastable; shape and dtype stay. A view.

    axes: ints, which may be negative. Raises ValueError if there is no such dimension.
    """
    return _rebroadcast(x, dict.fromkeys(axes, False))


def patternbroadcast(x: TensorLike, broadcastable: Iterable[bool]) -> Tensor:
    """Return ``x`` with the broadcast pattern ``broadcastable``; shape and dtype stay. A view.

    broadcastable: a bool for each dimension; further dimensions of x stay as they are. Raises
    ValueError if there are more than dimensions; at run time ValueError if the length of a
    dimension that is to broadcast is not 1.
    """
    return _rebroadcast(x, {i: bool(b) for i, b in enumerate(broadcastable)})


class SpecifyShape(TensorOp):
    """The first input, whose shape must be the second, an integer vector.

    Raises AssertionError if it is not: at once where the number of dimensions differs, else at run
    time.
    """

    view_map = {0: [0]}
    __props__ = ()
    flops, traffic = costs.no_flops, costs.nothing

    def make_node(self, x: TensorLike, shape: TensorLike) -> Apply:
        if not hasattr(x, "type"):
            x = as_tensor_variable(x)
        shape = as_tensor_variable(shape)
        if shape.type.ndim != 1 or shape.type.dtype not in dtypes.INTEGERS:
            raise AssertionError(
                f"The shape must be a vector of integers; {shape} has {shape.type}"
            )
        n = known_length(shape)
        if n is not None and n != x.type.ndim:
            raise AssertionError(
                f"{x} has {x.type.ndim} dimensions; the shape given for it has {n}"
            )
        return Apply(self, [x, shape], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, shape = inputs
        if x.ndim != len(shape):
            raise AssertionError(f"there are {x.ndim} dimensions, not {len(shape)} as specified")
        for d, (length, wanted) in enumerate(zip(x.shape, shape.tolist(), strict=True)):
            if length != wanted:
                raise AssertionError(
                    f"dimension {d} has length {length}, not {wanted} as specified"
                )
        output_storage[0][0] = x

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        lengths, _ = shapes
        entries = [vector_entry(node.inputs[1], i) for i in range(len(lengths))]
        return [tuple(n if e is None else length(e) for n, e in zip(lengths, entries, strict=True))]

    connection_pattern = connects(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [output_gradients[0], disconnected_type.make_variable()]

    R_op = linear_in_first


specify_shape = SpecifyShape()
