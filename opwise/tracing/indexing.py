"""Reading and writing parts of traced arrays, as numpy's indexing does."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.graph.variable import Constant
from opwise.scalar.op import OPS
from opwise.tensor.variable import Tensor
from opwise.tracing.trace import assume, demand, is_speculative, untraceable
from opwise.tracing.values import (
    HANDLERS,
    UNKNOWN,
    Dim,
    Length,
    Number,
    Order,
    Traced,
    View,
    array,
    as_traced,
    common_order,
    constant,
    hint_of,
    is_one,
    is_traced,
    leave_to_python,
    number_of,
    number_text,
    require_equal,
    same_dim,
    settled,
    shape_text,
)

# --- broadcasting ---------------------------------------------------------------------------------


def broadcast_dims(shapes: Sequence[Sequence[Dim]]) -> tuple[tuple[Dim, ...], list[list[Dim]]]:
    """Return (the shape to which arrays are broadcast, their own shapes).

    Lengths that are 1 in this call, and are repeated, are demanded to be 1: own shapes have the
    int 1 there. Raises ValueError for shapes that do not fit.
    """
    ndim = max(map(len, shapes), default=0)
    own = [list(shape) for shape in shapes]
    result: list[Dim] = []
    for axis in range(-ndim, 0):
        there = [
            k for k, shape in enumerate(own) if len(shape) >= -axis and not is_one(shape[axis])
        ]
        longer = [k for k in there if hint_of(own[k][axis]) != 1]
        if longer and len(longer) < len(there):
            for k in there:
                if k not in longer:
                    demand(f"{number_text(own[k][axis])} == 1")
                    own[k][axis] = 1
            there = longer
        dim: Dim = own[there[0]][axis] if there else 1
        for k in there[1:]:
            dim = require_equal(dim, own[k][axis], lambda: _mismatch(shapes))
        result.append(dim)
    return tuple(result), own


def _mismatch(shapes: Sequence[Sequence[Dim]]) -> ValueError:
    text = " ".join(map(shape_text, shapes))
    return ValueError(f"operands could not be broadcast together with shapes {text} ")


def with_ones(variable: Tensor, own: Sequence[Dim], ndim: int) -> Tensor:
    """Return a variable that broadcasts as its shape says, with axes before it up to a rank."""
    ones = [k for k, d in enumerate(own) if is_one(d) and not variable.type.broadcastable[k]]
    if ones:
        variable = T.addbroadcast(variable, *ones)
    missing = ndim - variable.type.ndim
    if missing > 0:
        variable = variable.dimshuffle(["x"] * missing + list(range(variable.type.ndim)))
    return variable


def broadcast(operands: Sequence[Traced]) -> tuple[list[Tensor], tuple[Dim, ...]]:
    """Return variables of arrays that an elementwise Op broadcasts, and the shape of its result."""
    dims, own = broadcast_dims([x.dims for x in operands])
    variables = [
        with_ones(x.variable, shape, len(dims)) for x, shape in zip(operands, own, strict=True)
    ]
    return variables, dims


def expanded(value: Traced, dims: Sequence[Dim], error: str) -> Tensor:
    """Return the variable of an array that is broadcast to a shape when it is written there.

    Lengths of 1 before those of the shape are dropped. Raises ValueError if it does not fit.
    """
    shape = list(value.dims)
    variable = value.variable
    extra = len(shape) - len(dims)
    if extra > 0:
        for k in range(extra):
            if not is_one(shape[k]):
                if hint_of(shape[k]) != 1:
                    raise ValueError(error)
                demand(f"{number_text(shape[k])} == 1")
                variable = T.addbroadcast(variable, k)
        variable = variable.dimshuffle(list(range(extra, len(shape))))
        shape = shape[extra:]
    for k in range(-len(shape), 0):
        if is_one(shape[k]):
            continue
        own, wanted = hint_of(shape[k]), hint_of(dims[k])
        if own == 1 and wanted != 1:
            demand(f"{number_text(shape[k])} == 1")
            shape[k] = 1
        else:
            require_equal(shape[k], dims[k], lambda: ValueError(error))
    return with_ones(variable, shape, len(shape))


# --- keys -----------------------------------------------------------------------------------------


class Index(View):
    """Basic indexing: ints and slices, one for each axis."""

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self._variables = tuple(
            slice(*(_part(p) for p in (item.start, item.stop, item.step)))
            if isinstance(item, slice)
            else _part(item)
            for item in key
        )

    def read(self, x: Tensor) -> Tensor:
        return x[self._variables]

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        return T.set_subtensor(self.read(x), value)


def _part(part: Any) -> Any:
    return part.variable if type(part) is Number else part


class Reorder(View):
    """Axes in another order, and new axes of length 1 ('x')."""

    def __init__(self, order: Sequence[Any], ndim: int) -> None:
        self.order = list(order)
        self._ndim = ndim

    def read(self, x: Tensor) -> Tensor:
        return x.dimshuffle(self.order)

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        back: list[Any] = ["x"] * self._ndim
        for k, axis in enumerate(self.order):
            if axis != "x":
                back[axis] = k
        new = [k for k, axis in enumerate(self.order) if axis == "x"]
        value = T.addbroadcast(value, *new) if new else value
        return value.dimshuffle(back)


def _items(key: Any) -> list[Any]:
    """Return the items of an index: ints, Numbers, slices, None, Ellipsis, Traced arrays."""
    items = []
    for item in key if isinstance(key, tuple) else (key,):
        if item is None or item is Ellipsis or isinstance(item, slice):
            items.append(item)
        elif isinstance(item, bool | np.bool):
            items.append(constant(np.asarray(item)))
        elif type(item) is Number:
            if item.kind == "b":
                items.append(as_traced(item))
                continue
            if item.kind != "i":
                raise IndexError(_INVALID)
            items.append(item)
        elif isinstance(item, int | np.integer):
            items.append(operator.index(item))
        elif type(item) is Traced:
            if item.dtype.kind not in "iub":
                raise IndexError(_ARRAYS)
            whole = item.dtype.kind in "iu" and item.ndim == 0
            items.append(number_of(item) if whole else item)
        elif isinstance(item, list | tuple | np.ndarray):
            if isinstance(item, list) and not item:
                made = constant(np.zeros(0, np.intp))
            else:
                made = as_traced(item)
            if made.dtype.kind not in "iub":
                raise IndexError(_ARRAYS)
            items.append(made)
        else:
            raise IndexError(_INVALID)
    return items


_INVALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)
_ARRAYS = "arrays used as indices must be of integer (or boolean) type"


def _is_mask(item: Any) -> bool:
    return type(item) is Traced and item.dtype.kind == "b"


def _taken(item: Any) -> int:
    """Return how many axes an item stands for."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if _is_mask(item) else 1


def normalized(x: Traced, key: Any) -> list[Any]:
    """Return the items of an index, without Ellipsis, as many as the array has axes and Nones."""
    items = _items(key)
    places = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    taken = sum(map(_taken, items))
    if taken > x.ndim:
        raise IndexError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed"
        )
    place = places[0] if places else len(items)
    items[place : place + 1] = [slice(None)] * (x.ndim - taken)
    return items


def _slice_of(item: slice, dim: Dim) -> tuple[slice, Any]:
    """Return a slice of ints and Numbers, and a function from the variable to its length."""
    start, stop, step = (
        None if part is None else number_of(part) for part in (item.start, item.stop, item.step)
    )
    if type(step) is Number and step.known:
        step = operator.index(step)
    if type(step) is not Number and step == 0:
        raise ValueError("slice step cannot be zero")
    return slice(start, stop, step), dim


def is_whole(item: Any) -> bool:
    """Return whether an item of an index takes a whole axis."""
    return isinstance(item, slice) and (
        item.start is None and item.stop is None
        and (item.step is None or (type(item.step) is int and item.step == 1))
    )  # fmt: skip


def _sliced_dim(item: slice, dim: Dim, index: int, owner: list[Tensor]) -> Dim:
    """Return the length of a slice of an axis; owner: holds the variable of the result later."""
    step = _step_of(item)
    if item.start is None and item.stop is None and step in (1, -1):
        return dim
    if type(item.start) is not Number and item.start in (None, 0) and step == 1:
        if item.stop is not None and same_dim(item.stop, dim):
            return dim
    parts = (item.start, item.stop, item.step)
    if not any(type(p) is Number for p in (*parts, dim)):
        return len(range(dim)[item])
    cut = _cut(item)
    if cut is not None:
        return settled(_shortened(dim, cut, index, owner))
    if type(dim) is Number and dim.origin is not None and dim.origin[0].by_steps:
        if type(item.start) is int and item.start < 0 and item.stop is None and step == 1:
            dim.origin[0].least = max(dim.origin[0].least, dim.origin[1] - item.start)
            return -item.start
    hints = [hint_of(p) for p in (dim, *parts)]
    known = UNKNOWN not in hints
    text = None
    if known:
        texts = [None if p is None else number_text(p) for p in parts]
        text = f"len(range({number_text(dim)})[{texts[0]}:{texts[1]}:{texts[2]}])"
    made = Number(
        "i",
        lambda: owner[0].shape[index],
        len(range(hints[0])[slice(*hints[1:])]) if known else UNKNOWN,
        text,
        known and all(n.of_lengths for n in (*parts, dim) if type(n) is Number),
    )
    return settled(made)


def _step_of(item: slice) -> int | None:
    """Return the step of a slice, or None if it is computed."""
    return None if type(item.step) is Number else item.step or 1


def _cut(item: slice) -> int | None:
    """Return how many elements a slice leaves out, from the first and the last on; or None."""
    start, stop = item.start, item.stop
    start, stop = 0 if start is None else start, 0 if stop is None else stop
    if type(start) is not int or type(stop) is not int or _step_of(item) != 1:
        return None
    if start < 0 or stop > 0 or (stop == 0 and item.stop is not None):
        return None
    return start - stop


def _shortened(dim: Number, cut: int, index: int, owner: list[Tensor]) -> Number:
    """Return the length of a part of an axis from which some elements are cut off."""
    if dim.origin is None:
        dim.origin = Length(dim.hint, dim.text), 0
    length, less = dim.origin
    less += cut
    hint, text = UNKNOWN, None
    if length.by_steps:
        length.least = max(length.least, less)
    elif dim.known:
        hint, text = max(length.hint - less, 0), f"max({length.text} - {less}, 0)"
    return Number(
        "i", lambda: owner[0].shape[index], hint, text, dim.known and dim.of_lengths, (length, less)
    )


def _is_single(item: slice) -> bool:
    """Return whether a slice is k : k + 1 for a number k that is computed."""
    ends = item.start, item.stop
    if any(type(end) is not Number for end in ends) or item.step not in (None, 1):
        return False
    start, node = item.start.variable, item.stop.variable.owner
    if node is None or not isinstance(node.op, T.Elemwise) or node.op.scalar_op != OPS["add"]:
        return False
    others = [x for x in node.inputs if x is not start]
    return len(node.inputs) == 2 and len(others) == 1 and T.extract_constant(others[0]) == 1


def _checked(index: Any, dim: Dim, axis: int) -> Any:
    """Return an int that indexes an axis. Raises IndexError if both are known."""
    number, length = hint_of(index), hint_of(dim)
    if UNKNOWN in (number, length) or is_speculative():
        return index
    if not -length <= number < length:
        raise IndexError(f"index {number} is out of bounds for axis {axis} with size {length}")
    return index


# --- reading --------------------------------------------------------------------------------------


def getitem(x: Traced, key: Any) -> Any:
    """Return ``x[key]``: a view, a copy or a scalar, as numpy does."""
    items = normalized(x, key)
    if any(type(item) is Traced for item in items):
        gathered, dims = _gathered(x, items)
        order: Order = len(dims) <= 1
        if all(type(item) is Traced for item in items):
            order = order or common_order(items, len(dims))
        return array(gathered, dims, False, order)
    viewed = _viewed(x, items)
    explicit = key is Ellipsis or (isinstance(key, tuple) and any(k is Ellipsis for k in key))
    if viewed.ndim == 0 and (x.scalar or not explicit):
        # numpy gives a scalar, which is a copy
        return array(viewed.variable, (), True)
    return viewed


def _viewed(x: Traced, items: list[Any]) -> Traced:
    """Return a view by ints, slices and Nones."""
    if None in [item if item is None else 0 for item in items]:
        order: list[Any] = []
        axis = 0
        dims: list[Dim] = []
        for item in items:
            if item is None:
                order.append("x")
                dims.append(1)
            else:
                order.append(axis)
                dims.append(x.dims[axis])
                axis += 1
        x = x.part(Reorder(order, x.ndim), tuple(dims), x.contiguous)
        items = [slice(None) if item is None else item for item in items]
    if all(isinstance(item, slice) and is_whole(item) for item in items):
        return x.part(Index(tuple(items)), x.dims, x.contiguous) if items else x
    result: list[Dim] = []
    key: list[Any] = []
    owner: list[Tensor] = []
    single: list[int] = []
    # in C's order are: ints, then one slice without steps, then whole axes
    contiguous = x.contiguous
    for axis, (item, dim) in enumerate(zip(items, x.dims, strict=True)):
        if isinstance(item, slice):
            item, dim = _slice_of(item, dim)
            unit = type(item.step) is not Number and item.step in (None, 1)
            if not is_whole(item) and (not unit or result):
                contiguous = False
            length = _sliced_dim(item, dim, len(result), owner)
            if hint_of(length) is UNKNOWN and _is_single(item):
                single.append(len(result))
                length = 1
            result.append(length)
        else:
            item = _checked(item, dim, axis)
            contiguous = not result and contiguous
        key.append(item)
    viewed = x.part(Index(tuple(key)), tuple(result), contiguous)
    variable = viewed.variable
    owner.append(variable)
    for k in single:  # it is empty beyond an end
        leave_to_python(T.neq(variable.shape[k], 1))
    if any(b and not is_one(d) for b, d in zip(variable.type.broadcastable, result, strict=True)):
        dims = [1 if b else d for b, d in zip(variable.type.broadcastable, result, strict=True)]
        viewed = x.part(Index(tuple(key)), tuple(dims), contiguous)
    if any(is_one(d) and not b for b, d in zip(variable.type.broadcastable, result, strict=True)):
        viewed = x.part(Narrow(tuple(key), tuple(map(is_one, result))), tuple(result), contiguous)
    return viewed


class Narrow(Index):
    """Basic indexing of which some resulting axes are known to have the length 1."""

    def __init__(self, key: tuple[Any, ...], ones: tuple[bool, ...]) -> None:
        super().__init__(key)
        self._ones = ones

    def read(self, x: Tensor) -> Tensor:
        part = x[self._variables]
        return T.addbroadcast(part, *[k for k, one in enumerate(self._ones) if one])

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        return T.set_subtensor(x[self._variables], value)


def _without_new_axes(x: Traced, items: list[Any]) -> tuple[Traced, list[Any]]:
    """Return the array with the new axes that an index has, and the index without them."""
    if all(item is not None for item in items):
        return x, items
    order: list[Any] = []
    dims: list[Dim] = []
    axis = 0
    for item in items:
        if item is None:
            order.append("x")
            dims.append(1)
            continue
        for _ in range(_taken(item)):
            order.append(axis)
            dims.append(x.dims[axis])
            axis += 1
    x = x.part(Reorder(order, x.ndim), tuple(dims))
    return x, [slice(None) if item is None else item for item in items]


def _nonzero_of(mask: Traced, x: Traced, axis: int) -> list[Traced]:
    """Return the arrays of ints that a mask stands for, whose length calls decide."""
    for k in range(mask.ndim):
        require_mask(mask, x, k, axis + k)
    count: list[Any] = []
    arrays = T.nonzero(_as_wide(mask, x, axis), return_matrix=False)
    length = Number("i", lambda: count[0].shape[0])
    count.append(arrays[0])
    return [array(a, (length,)) for a in arrays]


def _as_wide(mask: Traced, x: Traced, axis: int) -> Tensor:
    """Return a mask's variable, which fails in a call in which it has not the array's lengths."""
    variable = mask.variable
    for k in range(mask.ndim):
        a, b = mask.dims[k], x.dims[axis + k]
        if not same_dim(a, b) and UNKNOWN in (hint_of(a), hint_of(b)):
            shape = [x.variable.shape[axis + j] for j in range(mask.ndim)]
            return T.specify_shape(variable, T.stack(shape))
    return variable


def require_mask(mask: Traced, x: Traced, k: int, axis: int) -> None:
    """Raise IndexError if an axis of a mask has not the length of the array's axis."""
    a, b = mask.dims[k], x.dims[axis]
    if same_dim(a, b):
        return
    one, two = hint_of(a), hint_of(b)
    if UNKNOWN in (one, two):
        return
    if one != two:
        raise IndexError(
            f"boolean index did not match indexed array along axis {axis}; size of axis is {two} "
            f"but size of corresponding boolean axis is {one}"
        )
    text = f"{number_text(a)} == {number_text(b)}"
    if type(a) is Number or type(b) is Number:
        demand(text)
    else:
        assume(text)


def _advanced(x: Traced, items: list[Any]) -> tuple[Traced, list[Any], tuple[Dim, ...]]:
    """Return (the array with new axes, an index of slices and index arrays of one rank, the shape
    of the result)."""
    x, items = _without_new_axes(x, items)
    parts: list[Any] = []
    axis = 0
    for item in items:
        if _is_mask(item):
            if item.ndim == 0:
                raise untraceable(
                    "A single boolean as an index cannot be traced.", "Use numpy.where or an if."
                )
            parts += _nonzero_of(item, x, axis)
            axis += item.ndim
        else:
            if not isinstance(item, slice) and type(item) is not Traced:
                item = _checked(item, x.dims[axis], axis)
            parts.append(item)
            axis += 1
    arrays = {
        k: item if type(item) is Traced else as_traced(_int64(item))
        for k, item in enumerate(parts)
        if not isinstance(item, slice)
    }
    try:
        variables, common = broadcast(list(arrays.values()))
    except ValueError as error:
        shapes = " ".join(shape_text(a.dims) for a in arrays.values())
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes} "
        ) from error
    key: list[Any] = []
    dims: list[Dim] = []
    owner: list[Tensor] = []
    places = list(arrays)
    adjacent = places[-1] - places[0] == len(places) - 1
    if not adjacent:
        dims += common
    first = True
    given = iter(variables)
    for k, (item, dim) in enumerate(zip(parts, x.dims, strict=True)):
        if k in arrays:
            key.append(next(given))
            if adjacent and first:
                dims += common
                first = False
            continue
        item, dim = _slice_of(item, dim)
        dims.append(_sliced_dim(item, dim, len(dims), owner))
        key.append(
            slice(*(None if p is None else _part(p) for p in (item.start, item.stop, item.step)))
        )
    part = _read_part(x.variable, key)
    owner.append(part)
    return x, key, tuple(dims)


def _read_part(variable: Tensor, key: list[Any]) -> Tensor:
    if len(key) == 1:
        return variable[key[0]]
    # slices of parts are taken first: then only whole axes and arrays are left
    cut = [item if isinstance(item, slice) else slice(None) for item in key]
    if any(not is_whole(item) for item in cut):
        variable = variable[tuple(cut)]
    return variable[tuple(slice(None) if isinstance(i, slice) else i for i in key)]


def _int64(item: Any) -> Any:
    return item if type(item) is Number else np.asarray(item, np.int64)


def _gathered(x: Traced, items: list[Any]) -> tuple[Tensor, tuple[Dim, ...]]:
    """Return the variable of what index arrays and masks pick, and its shape."""
    x, key, dims = _advanced(x, items)
    part = _read_part(x.variable, key)
    return part, dims


# --- writing --------------------------------------------------------------------------------------


def cast_into(value: Traced, dtype: np.dtype[Any]) -> Tensor:
    """Return a value's variable as another dtype, as an assignment to an element converts it."""
    return converted(value.variable, dtype)


def converted(variable: Tensor, dtype: Any) -> Tensor:
    """Return a variable cast to a dtype by numpy's 'unsafe' rules."""
    name = np.dtype(dtype).name
    own = variable.type.dtype
    if own == name:
        return variable
    if own.startswith("complex") and not name.startswith("complex"):
        if name == "bool":
            return T.neq(variable, 0)
        variable = T.real(variable)
        if variable.type.dtype == name:
            return variable
    if name == "bool":
        return T.neq(variable, np.zeros((), own))
    if isinstance(variable, Constant):
        with np.errstate(all="ignore"):
            return T.constant(np.asarray(variable.data).astype(name))
    return T.cast(variable, name)


def written_value(value: Any, dtype: np.dtype[Any]) -> Traced:
    """Return a value that is put into an array of a dtype."""
    if not is_traced(value):
        if isinstance(value, int) and not isinstance(value, bool) and dtype.kind in "iu":
            np.asarray(value, dtype)  # OverflowError if it does not fit
        if type(value) is np.ndarray and value.dtype == dtype:
            return as_traced(value)
        made = np.asarray(value)
        if made.dtype == object or made.dtype.kind not in "biufc":
            made = np.asarray(value, dtype)
        return constant(made.astype(dtype) if made.dtype != dtype else made)
    traced = as_traced(value)
    if traced.dtype == dtype:
        return traced
    return array(converted(traced.variable, dtype), traced.dims)


def setitem(x: Traced, key: Any, value: Any) -> None:
    """Do ``x[key] = value``: the memory of the array, and of all its views, changes."""
    if x.scalar:
        raise TypeError(f"'numpy.{x.dtype.name}' object does not support item assignment")
    items = normalized(x, key)
    if type(value) is Traced and _is_own_part(x, items, value):
        return  # what Python does after x[key] += other, which has changed x already
    given = written_value(value, x.dtype)
    if not any(type(item) is Traced for item in items):
        part = _viewed(x, items)
        error = (
            f"could not broadcast input array from shape {shape_text(given.dims)} into shape "
            f"{shape_text(part.dims)}"
        )
        write_broadcast(part, given, error)
        return
    masks = [item for item in items if _is_mask(item)]
    if (
        len(masks) == 1
        and _is_mask(items[0])
        and given.ndim == 0
        and all(isinstance(item, slice) and is_whole(item) for item in items[1:])
    ):
        mask = masks[0]
        for k in range(mask.ndim):
            require_mask(mask, x, k, k)
        variable = mask.variable.dimshuffle(list(range(mask.ndim)) + ["x"] * (x.ndim - mask.ndim))
        wide = given.variable.dimshuffle(["x"] * x.ndim)
        x.write(_like(T.switch(variable, wide, x.variable), x))
        return
    inner, parts, dims = _advanced(x, items)
    error = (
        f"shape mismatch: value array of shape {shape_text(given.dims)} could not be broadcast to "
        f"indexing result of shape {shape_text(dims)}"
    )
    put = expanded(given, dims, error)
    _write_part(inner, parts, put, T.set_subtensor)


def _write_part(x: Traced, key: list[Any], value: Tensor, put: Any) -> None:
    """Put a value where an index of slices and arrays points."""
    cut = [item if isinstance(item, slice) else slice(None) for item in key]
    rest = [slice(None) if isinstance(i, slice) else i for i in key]
    if any(not is_whole(item) for item in cut) and len(key) > 1:
        whole = x.variable
        part = whole[tuple(cut)]
        changed = put(part[tuple(rest)], value)
        x.write(_like(T.set_subtensor(part, changed), x))
        return
    variable = x.variable
    part = variable[key[0]] if len(key) == 1 else variable[tuple(rest)]
    x.write(_like(put(part, value), x))


def _like(variable: Tensor, x: Traced) -> Tensor:
    """Return a variable with the broadcastable axes of an array."""
    pattern = x.variable.type.broadcastable
    if tuple(variable.type.broadcastable) == tuple(pattern):
        return variable
    return T.patternbroadcast(variable, pattern)


def write_broadcast(part: Traced, value: Traced, error: str) -> None:
    """Give all elements of an array or a view the elements of another, which is broadcast."""
    variable = expanded(value, part.dims, error)
    if not part.ndim:
        part.write(variable)
        return
    own = part.variable
    pattern = tuple(own.type.broadcastable)
    missing = part.ndim - variable.type.ndim
    full = missing == 0 and tuple(variable.type.broadcastable) == pattern
    if not full:
        # a view knows how to take a value of its own shape
        whole = T.alloc(variable, *[own.shape[k] for k in range(part.ndim)])
        variable = T.patternbroadcast(whole, pattern)
    elif own is variable:
        return
    part.write(variable)


def _is_own_part(x: Traced, items: list[Any], value: Traced) -> bool:
    """Return whether a value is the view of an array that an index gives."""
    if value.root is not x.root or any(type(item) is Traced for item in items):
        return False
    if all(isinstance(item, slice) and is_whole(item) for item in items):
        if value.is_same_view(x):
            return True
    before, path = x._path, value._path
    if len(path) <= len(before) or any(a is not b for a, b in zip(before, path, strict=False)):
        return False
    rest = path[len(before) :]
    if (
        len(rest) != 1
        or not isinstance(rest[0], Index)
        or None in [i if i is None else 0 for i in items]
    ):
        return False
    return all(_same_item(a, b) for a, b in zip(rest[0].key, items, strict=True))


def _same_item(a: Any, b: Any) -> bool:
    if isinstance(a, slice) and isinstance(b, slice):
        return all(_same_item(getattr(a, p), getattr(b, p)) for p in ("start", "stop", "step"))
    if type(a) is Number and type(b) is Number:
        return a is b or a._variable is b._variable
    return type(a) is type(b) and type(a) is not Number and bool(a == b)


def add_at(x: Traced, key: Any, value: Any, negate: bool = False) -> None:
    """Do ``np.add.at(x, key, value)``: elements that an index names twice are added to twice."""
    items = normalized(x, key)
    given = as_traced(value)
    weak = type(value) in (int, float, complex)
    made = np.result_type(x.dtype, value) if weak else given.dtype
    if not np.can_cast(made, x.dtype, "same_kind"):
        raise untraceable(
            f"numpy.add.at of {given.dtype} into an array of {x.dtype} rounds every sum.",
            f"Convert the values first: values.astype({x.dtype.name!r}).",
        )
    given = written_value(value, x.dtype)
    if negate:
        given = array(T.neg(given.variable), given.dims)
    if not any(type(item) is Traced for item in items):
        part = _viewed(x, items)
        error = f"could not broadcast {shape_text(given.dims)} into {shape_text(part.dims)}"
        variable = expanded(given, part.dims, error)
        part.write(_like(T.add(part.variable, variable), part))
        return
    inner, parts, dims = _advanced(x, items)
    error = (
        f"array is not broadcastable to correct shape: {shape_text(given.dims)} to "
        f"{shape_text(dims)}"
    )
    _write_part(inner, parts, expanded(given, dims, error), T.inc_subtensor)


HANDLERS.register(getitem=getitem, setitem=setitem)
