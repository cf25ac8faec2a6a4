"""Shapes: reading, changing and promising them, and what is known of a shape vector beforehand.

Joining and splitting is in ``opwise.tensor.join``, squeezing of one axis and the like in
``opwise.tensor.extra_ops``.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from opwise.errors import NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Op
from opwise.graph.variable import Constant
from opwise.profiling import traffic
from opwise.scalar import dtypes
from opwise.scalar.op import Cast
from opwise.scalar.row import ROWS
from opwise.tensor.elemwise import Elemwise, cast, dimshuffle_op, elemwise
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable, constant

__all__ = [
    "Rebroadcast",
    "Reshape",
    "Shape",
    "SpecifyShape",
    "addbroadcast",
    "flatten",
    "get_vector_length",
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


class Shape(Op):
    """The shape of a tensor, as an int64 vector."""

    __props__ = ()
    flops, traffic = traffic.no_flops, traffic.written

    def make_node(self, x):
        # other types than TensorType have shapes too: leave variables as they are
        if not hasattr(x, "type"):
            x = as_tensor_variable(x)
        return Apply(self, [x], [tensor_type("int64", (False,)).make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.asarray(np.shape(inputs[0]), dtype=np.int64)

    def infer_shape(self, node, shapes):
        return [(length(node.inputs[0].type.ndim),)]

    def connection_pattern(self, node):
        return [[False]]

    def L_op(self, inputs, outputs, output_gradients):
        return [disconnected_type.make_variable()]

    def R_op(self, inputs, eval_points):
        return [None]


shape = Shape()
_shape = shape


class Shape_i(Op):
    """The length of dimension ``i`` of a tensor, as an int64 scalar."""

    __props__ = ("i",)
    flops, traffic = traffic.no_flops, traffic.written

    def __init__(self, i):
        self.i = int(i)

    def make_node(self, x):
        if not hasattr(x, "type"):
            x = as_tensor_variable(x)
        if self.i >= x.type.ndim:
            raise TypeError(
                f"{x} has {x.type.ndim} dimensions: it has none with the number {self.i}"
            )
        return Apply(self, [x], [tensor_type("int64", ()).make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.asarray(inputs[0].shape[self.i], dtype=np.int64)

    def infer_shape(self, node, shapes):
        return [()]

    def connection_pattern(self, node):
        return [[False]]

    def L_op(self, inputs, outputs, output_gradients):
        return [disconnected_type.make_variable()]

    def R_op(self, inputs, eval_points):
        return [None]

    def __str__(self):
        return f"Shape_i{{{self.i}}}"


@cache
def shape_i_op(i):
    """Return the Op that gives the length of dimension ``i``; the same object each time."""
    return Shape_i(i)


def shape_i(var, i, fgraph=None):
    """Return the length of dimension ``i`` of ``var``.

    fgraph: where it tracks shapes, what it knows of this one is returned.
    """
    feature = getattr(fgraph, "shape_feature", None)
    if feature is not None:
        known = feature.shape_of.get(var)
        if known is not None:
            return known[i]
    return _shape(var)[i]


def length(n):
    """Return a length as an int64 scalar: an int as a constant, an integer variable cast."""
    if isinstance(n, Constant):
        return n if n.type.dtype == "int64" else constant(np.int64(n.data))
    if hasattr(n, "type"):
        return n if n.type.dtype == "int64" else cast(n, "int64")
    return constant(np.int64(n))


# --- what is known of a vector before it is computed --------------------------------------------

_DEEPEST = 30


def get_vector_length(v):
    """Return the length of a symbolic vector, as an int.

    Raises TypeError unless v is a vector, ValueError if its length is not known beforehand.
    """
    v = as_tensor_variable(v)
    if v.type.ndim != 1:
        raise TypeError(f"a vector is needed, got '{v}' of {v.type}")
    known = known_length(v)
    if known is None:
        raise ValueError(
            f"length not known: {v}. Only variables of known length, such as x.shape, can be "
            "looped over or unpacked. Compute with the whole variable (T.sum instead of sum, T.max "
            "instead of max), or take items by an index."
        )
    return known


def known_length(v, deepest=_DEEPEST):
    """Return the length of a vector if it is known beforehand, else None."""
    if isinstance(v, Constant):
        return len(v.data)
    if v.type.broadcastable[0]:
        return 1
    if v.owner is None or deepest == 0:
        return None
    if isinstance(v.owner.op, Elemwise):
        operands = [x for x in v.owner.inputs if not x.type.broadcastable[0]]
        lengths = (known_length(x, deepest - 1) for x in operands)
        return next((n for n in lengths if n is not None), None)
    rules = _vector_rules().get(type(v.owner.op))
    return None if rules is None else rules[0](v.owner, deepest - 1)


def vector_entry(v, i):
    """Return entry ``i`` of an integer vector as far as it is known beforehand.

    A numpy integer, a 0-d variable that is computed without the vector, or None. i may be negative.
    """
    casts = []
    while True:
        if i < 0:
            n = known_length(v)
            if n is None or i + n < 0:
                return None
            i += n
        if isinstance(v, Constant):
            found = v.data[i] if i < len(v.data) else None
            break
        if v.owner is None:
            return None
        op = v.owner.op
        if isinstance(op, Elemwise) and isinstance(op.scalar_op, Cast):
            casts.append(v.type.dtype)
            v = v.owner.inputs[0]
            continue
        rules = _vector_rules().get(type(op))
        found = None if rules is None else rules[1](v.owner, i)
        if not isinstance(found, tuple):
            break
        v, i = found
    return None if found is None else _as_dtypes(_number_of(found), reversed(casts))


def _number_of(entry):
    """Return the number that an entry is if it is a constant, perhaps cast; else the entry."""
    if isinstance(entry, Constant):
        return entry.data[()]
    owner = getattr(entry, "owner", None)
    if owner is not None and isinstance(owner.op, Elemwise):
        (x, *_) = owner.inputs
        if isinstance(owner.op.scalar_op, Cast) and isinstance(x, Constant):
            return x.data.astype(entry.type.dtype)[()]
    return entry


def _as_dtypes(entry, casts):
    for dtype in casts:
        entry = cast(entry, dtype) if hasattr(entry, "type") else np.dtype(dtype).type(entry)
    return entry


def vector_entries(v, n):
    """Return the ``n`` entries of an integer vector, as numpy integers or 0-d variables."""
    entries = (vector_entry(v, i) for i in range(n))
    return [v[i] if entry is None else entry for i, entry in enumerate(entries)]


def is_one(entry):
    """Return whether an entry, as ``vector_entry`` gives it, is known to be 1."""
    if not hasattr(entry, "type"):
        return entry is not None and bool(entry == 1)
    if entry.owner is None and not isinstance(entry, Constant):
        return False
    from opwise.tensor.creation import get_scalar_constant_value

    try:
        return bool(get_scalar_constant_value(entry) == 1)
    except NotScalarConstantError:
        return False


def is_length(entry, deepest=_DEEPEST):
    """Return whether an entry is known not to be negative: a length, or made of lengths."""
    if not hasattr(entry, "type"):
        return bool(entry >= 0)
    if isinstance(entry, Constant):
        return bool(np.all(entry.data >= 0))
    if entry.owner is None or deepest == 0:
        return False
    op, operands = entry.owner.op, entry.owner.inputs
    if isinstance(op, Elemwise):
        if not (isinstance(op.scalar_op, Cast) or op.scalar_op.row in _KEEP_SIGN):
            return False
        return all(is_length(x, deepest - 1) for x in operands)
    if isinstance(op, Shape_i):
        return True
    # an entry of a shape: what makes a scalar from a Shape is a Subtensor
    shape_owner = operands[0].owner if operands else None
    return shape_owner is not None and isinstance(shape_owner.op, Shape)


_KEEP_SIGN = tuple(ROWS[name] for name in ("add", "mul", "int_div", "maximum", "minimum"))


@cache
def _vector_rules():
    """Return {class of an Op: (rule for the length, rule for an entry) of the vector it makes}.

    The first gives an int or None; the second, for a position that is not negative, a number, a 0-d
    variable, a pair of a vector and a position in it, or None. Read late: most of these modules
    need this one.
    """
    from opwise.tensor.join import Join, MakeVector
    from opwise.tensor.subtensor import Subtensor

    return {
        Shape: (lambda node, _: node.inputs[0].type.ndim, _entry_of_shape),
        MakeVector: (lambda node, _: len(node.inputs), _entry_of_list),
        Join: (_length_of_join, _entry_of_join),
        Subtensor: (_length_of_slice, _entry_of_slice),
        Rebroadcast: (_length_of_input, lambda node, i: (node.inputs[0], i)),
    }


def _entry_of_shape(node, i):
    """The length of a dimension that the type, a constant or a promise tells."""
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


def _entry_of_list(node, i):
    return node.inputs[i] if i < len(node.inputs) else None


def _length_of_input(node, deepest):
    return known_length(node.inputs[0], deepest)


def _length_of_join(node, deepest):
    lengths = [known_length(part, deepest) for part in node.inputs[1:]]
    return None if None in lengths else sum(lengths)


def _entry_of_join(node, i):
    for part in node.inputs[1:]:
        n = known_length(part)
        if n is None:
            return None
        if i < n:
            return part, i
        i -= n
    return None


def _slice_positions(node):
    """Return the positions that a Subtensor takes from a vector, or None if they are unknown."""
    from opwise.tensor.creation import constant_index

    index = constant_index(node)
    n = known_length(node.inputs[0]) if node.inputs[0].type.ndim == 1 else None
    if index is None or n is None or len(index) != 1 or not isinstance(index[0], slice):
        return None
    return range(*index[0].indices(n))


def _length_of_slice(node, _):
    positions = _slice_positions(node)
    return None if positions is None else len(positions)


def _entry_of_slice(node, i):
    positions = _slice_positions(node)
    if positions is None or i >= len(positions):
        return None
    return node.inputs[0], positions[i]


# --- changing -----------------------------------------------------------------------------------


class Reshape(Op):
    """A tensor's elements, in C order, in another shape of ``ndim`` dimensions; a view if possible.

    The second input is the new shape, an integer vector; one entry may be -1. Dimensions whose
    entry is known to be 1 are broadcastable.
    """

    view_map = {0: [0]}
    __props__ = ("ndim",)
    flops, traffic = traffic.no_flops, traffic.view_or_copy

    def __init__(self, ndim, name=None):
        if name is not None:
            raise TypeError("Reshape takes no name: name the variable that it makes")
        self.ndim = int(ndim)
        if self.ndim < 0:
            raise ValueError(f"The number of dimensions of a reshape is {ndim}; it must be >= 0")

    def make_node(self, x, shp):
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

    def perform(self, node, inputs, output_storage):
        x, shp = inputs
        if len(shp) != self.ndim:
            raise ValueError(f"{self} needs {self.ndim} lengths, got {len(shp)}: {shp}")
        try:
            output_storage[0][0] = x.reshape(tuple(shp.tolist()))
        except ValueError as e:
            raise ValueError(f"{e} (the input has shape {x.shape})") from None

    def infer_shape(self, node, shapes):
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
        # an entry may turn out to be -1, which then is the sign of the product of all
        negative = elemwise("neg")(_product(entries))
        rest = elemwise("int_div")(size, elemwise("maximum")(negative, length(1)))
        return [tuple(length(e) if is_length(e) else _length_unless(e, rest) for e in entries)]

    def connection_pattern(self, node):
        return [[True], [False]]

    def L_op(self, inputs, outputs, output_gradients):
        x, _ = inputs
        (gz,) = output_gradients
        return [reshape(gz, _shape(x), ndim=x.type.ndim), disconnected_type.make_variable()]

    def R_op(self, inputs, eval_points):
        if eval_points[0] is None:
            return [None]
        return [self(eval_points[0], *inputs[1:])]

    def __str__(self):
        return f"Reshape{{{self.ndim}}}"


def _product(lengths):
    """Return the product of lengths, an int64 scalar variable."""
    lengths = list(map(length, lengths))
    if all(isinstance(n, Constant) for n in lengths):
        return length(prod(int(n.data) for n in lengths))
    return lengths[0] if len(lengths) == 1 else elemwise("mul")(*lengths)


def _length_unless(entry, rest):
    """Return an entry of a new shape as a length: ``rest`` if it is -1."""
    entry = length(entry)
    return elemwise("switch")(elemwise("eq")(entry, length(-1)), rest, entry)


@cache
def _reshape_op(ndim):
    return Reshape(ndim)


def reshape(x, newshape, ndim=None):
    """Return ``x`` with another shape; a view of x where that is possible.

    newshape: integers and 0-d variables, or a vector; one entry may be -1, which stands for what
    the others leave. ndim: the number of entries, needed if newshape is a vector of unknown length.
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
                "determined, so the number of dimensions of the result is unknown: give it by the "
                "argument 'ndim' of 'reshape'"
            )
    return _reshape_op(int(ndim))(x, newshape)


def flatten(x, ndim=None, outdim=None):
    """Return ``x`` with all dimensions from ``ndim - 1`` on merged into one; a view if possible.

    ndim: how many dimensions remain, 1 unless told. outdim: the same, under an older name. Raises
    ValueError unless 1 <= ndim <= x.ndim.
    """
    if ndim is not None and outdim is not None:
        raise ValueError("ndim and outdim are two names for one argument: give one of them")
    x = as_tensor_variable(x)
    n = ndim if ndim is not None else outdim if outdim is not None else 1
    if n < 1 or n > max(x.type.ndim, 1):
        raise ValueError(
            f"{n} dimensions cannot remain of {x}, which has {x.type.ndim}: 1 or more can"
        )
    kept = [_shape(x)[i] for i in range(n - 1)]
    # beside a length of 0, -1 could stand for any length
    last = _product([_shape(x)[i] for i in range(n - 1, x.type.ndim)]) if kept else -1
    result = reshape(x, [*kept, last])
    pattern = x.type.broadcastable
    merged = (*pattern[: n - 1], all(pattern[n - 1 :]))
    return addbroadcast(result, *(i for i, b in enumerate(merged) if b))


def is_flat(var, ndim=None, outdim=None):
    """Return whether ``var`` has ``ndim`` dimensions, 1 unless told (outdim: its old name)."""
    return var.ndim == (ndim if ndim is not None else outdim if outdim is not None else 1)


def shape_padleft(t, n_ones=1):
    """Return ``t`` with ``n_ones`` broadcastable dimensions added on the left."""
    t = as_tensor_variable(t)
    return _reordered(t, ["x"] * n_ones + list(range(t.type.ndim)))


def shape_padright(t, n_ones=1):
    """Return ``t`` with ``n_ones`` broadcastable dimensions added on the right."""
    t = as_tensor_variable(t)
    return _reordered(t, list(range(t.type.ndim)) + ["x"] * n_ones)


def shape_padaxis(t, axis):
    """Return ``t`` with a broadcastable dimension added at ``axis``, which may be negative."""
    t = as_tensor_variable(t)
    ndim = t.type.ndim + 1
    if not -ndim <= axis < ndim:
        raise IndexError(f"axis {axis} is out of bounds [-{ndim}, {ndim})")
    order = list(range(t.type.ndim))
    order.insert(axis % ndim, "x")
    return _reordered(t, order)


def _reordered(x, order):
    return dimshuffle_op(x.type.broadcastable, tuple(order))(x)


def transpose(x, axes=None):
    """Return ``x`` with its dimensions in the order ``axes``, reversed unless told; a view."""
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


def swapaxes(y, axis1, axis2):
    """Return ``y`` with two dimensions exchanged; they may be negative."""
    y = as_tensor_variable(y)
    order = list(range(y.type.ndim))
    for axis in (axis1, axis2):
        if not -len(order) <= axis < len(order):
            raise IndexError(f"axis {axis} is out of range for {y}, which has {len(order)}")
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _reordered(y, order)


def squeeze(x):
    """Return ``x`` without its broadcastable dimensions."""
    x = as_tensor_variable(x)
    return _reordered(x, [i for i, b in enumerate(x.type.broadcastable) if not b])


# --- promising ----------------------------------------------------------------------------------


class Rebroadcast(Op):
    """The input, with dimensions declared broadcastable (checked when it runs) or not so.

    Takes pairs (dimension, whether it is broadcastable); other dimensions stay as they are.
    """

    view_map = {0: [0]}
    __props__ = ("axis",)
    flops, traffic = traffic.no_flops, traffic.nothing

    def __init__(self, *axis):
        pairs = sorted((int(i), flag) for i, flag in axis)
        for _, flag in pairs:
            if not isinstance(flag, bool | np.bool_):
                raise TypeError(f"Rebroadcast takes pairs of a dimension and a bool, not {flag}")
        self.axis = {i: bool(flag) for i, flag in pairs}

    def make_node(self, x):
        x = as_tensor_variable(x)
        if self.axis and x.type.ndim <= max(self.axis):
            raise ValueError(f"{self} needs more dimensions than {x} has, {x.type.ndim}")
        pattern = tuple(self.axis.get(i, b) for i, b in enumerate(x.type.broadcastable))
        return Apply(self, [x], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        for i, flag in self.axis.items():
            if flag and x.shape[i] != 1:
                raise ValueError(
                    f"Dimension {i} in Rebroadcast's input was supposed to be 1 (got {x.shape[i]} "
                    "instead)"
                )
        output_storage[0][0] = x

    def infer_shape(self, node, shapes):
        (lengths,) = shapes
        return [tuple(length(1) if self.axis.get(i) else n for i, n in enumerate(lengths))]

    def L_op(self, inputs, outputs, output_gradients):
        (x,), (gz,) = inputs, output_gradients
        return [rebroadcast_op(tuple((i, x.type.broadcastable[i]) for i in self.axis))(gz)]

    def R_op(self, inputs, eval_points):
        return [None if eval_points[0] is None else self(eval_points[0])]

    def __eq__(self, other):
        return type(self) is type(other) and self.axis == other.axis

    def __hash__(self):
        return hash((Rebroadcast, tuple(self.axis.items())))

    def __str__(self):
        flags = {None: "?", True: "1", False: "0"}
        count = max(self.axis) + 1 if self.axis else 0
        return f"Rebroadcast{{{','.join(flags[self.axis.get(i)] for i in range(count))}}}"


@cache
def rebroadcast_op(pairs):
    """Return the Rebroadcast of a tuple of pairs; the same object for equal ones."""
    return Rebroadcast(*pairs)


def _rebroadcast(x, wanted):
    """Return ``x`` with the flags of the dict ``wanted``, through one Rebroadcast at most."""
    x = as_tensor_variable(x)
    ndim = x.type.ndim
    for i in wanted:
        if not -ndim <= i < ndim:
            raise ValueError(f"{x} has {ndim} dimensions: there is no dimension {i} to rebroadcast")
    wanted = {i % ndim: flag for i, flag in wanted.items()}
    if all(x.type.broadcastable[i] == flag for i, flag in wanted.items()):
        return x
    while x.owner is not None and type(x.owner.op) is Rebroadcast:
        wanted = x.owner.op.axis | wanted
        x = x.owner.inputs[0]
    pairs = tuple((i, f) for i, f in sorted(wanted.items()) if x.type.broadcastable[i] != f)
    return rebroadcast_op(pairs)(x) if pairs else x


def addbroadcast(x, *axes):
    """Return ``x`` with ``axes`` declared broadcastable; that they are 1 is checked at run time."""
    return _rebroadcast(x, dict.fromkeys(axes, True))


def unbroadcast(x, *axes):
    """Return ``x`` with ``axes`` declared not broadcastable."""
    return _rebroadcast(x, dict.fromkeys(axes, False))


def patternbroadcast(x, broadcastable):
    """Return ``x`` with the broadcast pattern ``broadcastable``, a sequence of booleans."""
    return _rebroadcast(x, {i: bool(b) for i, b in enumerate(broadcastable)})


class SpecifyShape(Op):
    """The first input, whose shape is promised to be the second, an integer vector.

    The promise is checked when it runs: AssertionError if it does not hold.
    """

    view_map = {0: [0]}
    __props__ = ()
    flops, traffic = traffic.no_flops, traffic.nothing

    def make_node(self, x, shape):
        if not hasattr(x, "type"):
            x = as_tensor_variable(x)
        shape = as_tensor_variable(shape)
        if shape.type.ndim != 1 or shape.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"The shape must be a vector of integers; {shape} has {shape.type}")
        n = known_length(shape)
        if n is not None and n != x.type.ndim:
            raise ValueError(f"{x} has {x.type.ndim} dimensions; the shape given for it has {n}")
        return Apply(self, [x, shape], [x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        x, shape = inputs
        if x.ndim != len(shape) or x.shape != tuple(shape.tolist()):
            raise AssertionError(f"the shape is {x.shape}, where {tuple(shape)} was promised")
        output_storage[0][0] = x

    def infer_shape(self, node, shapes):
        lengths, _ = shapes
        entries = [vector_entry(node.inputs[1], i) for i in range(len(lengths))]
        return [tuple(n if e is None else length(e) for n, e in zip(lengths, entries, strict=True))]

    def connection_pattern(self, node):
        return [[True], [False]]

    def L_op(self, inputs, outputs, output_gradients):
        return [output_gradients[0], disconnected_type.make_variable()]

    def R_op(self, inputs, eval_points):
        if eval_points[0] is None:
            return [None]
        return [self(eval_points[0], *inputs[1:])]


specify_shape = SpecifyShape()
