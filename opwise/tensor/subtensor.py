"""Indexing: integers and slices, and the functions behind ``x[...]``, take, set and increment.

Arrays and masks as indices are in ``opwise.tensor.advanced_subtensor``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.errors import NotScalarConstantError
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.hashing import HashedOnce
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first
from opwise.graph.type import Type
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.types import Scalar, get_scalar_type
from opwise.scalar.variable import ScalarConstant
from opwise.tensor.advanced_subtensor import (
    AdvancedBooleanIncSubtensor,
    AdvancedBooleanSubtensor,
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    BaseAdvancedIncSubtensor,
    BaseAdvancedSubtensor,
    _Changes,
    adv_index_broadcastable_pattern,
    advanced_boolean_inc_subtensor,
    advanced_boolean_set_subtensor,
    advanced_boolean_subtensor,
    advanced_inc_subtensor,
    advanced_inc_subtensor1,
    advanced_set_subtensor,
    advanced_set_subtensor1,
    advanced_subtensor,
    advanced_subtensor1,
    as_index_variable,
    parts_of,
    user_zeros_like,
    value_gradients,
    zero_gradient,
)
from opwise.tensor.convert import scalar_from_tensor
from opwise.tensor.creation import alloc
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.elemwise import elemwise
from opwise.tensor.join import join
from opwise.tensor.knownvalues import (
    get_scalar_constant_value,
    known_length,
    number_rule,
    vector_entry,
    vector_rule,
)
from opwise.tensor.shape import Reshape, addbroadcast, flatten, reshape
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.slices import (
    NoneTypeT,
    SliceType,
    get_canonical_form_slice,
    keeps_one,
    slice_length,
)
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    TensorOp,
    as_tensor_variable,
    constant,
)

__all__ = [
    "AdvancedBooleanIncSubtensor", "AdvancedBooleanSubtensor", "AdvancedIncSubtensor",
    "AdvancedIncSubtensor1", "AdvancedIndexingError", "AdvancedSubtensor", "AdvancedSubtensor1",
    "BaseAdvancedIncSubtensor", "BaseAdvancedSubtensor", "IncSubtensor", "Subtensor",
    "adv_index_broadcastable_pattern", "advanced_boolean_inc_subtensor",
    "advanced_boolean_set_subtensor", "advanced_boolean_subtensor", "advanced_inc_subtensor",
    "advanced_inc_subtensor1", "advanced_set_subtensor", "advanced_set_subtensor1",
    "advanced_subtensor", "advanced_subtensor1", "as_index_variable", "get_canonical_form_slice",
    "get_idx_list", "inc_subtensor", "make_constant", "set_subtensor", "take",
]  # fmt: skip

_NOT_INTEGER = "index must be integers or a boolean mask"
#: dtypes of an index; int64 and uint64 together would be computed in float64
_INDEX_DTYPES = tuple(d for d in dtypes.INTEGERS if d != "uint64")


class AdvancedIndexingError(TypeError):
    """An index is an array or a mask, which ``Subtensor`` does not take."""


class AdvancedBooleanIndexingError(TypeError):
    """An index is a mask, which ``Subtensor`` does not take."""


# --- index lists ----------------------------------------------------------------------------------


def _parts(item: Any) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step


def _map_slice(function: Callable[..., Any], item: Any) -> slice:
    return slice(*(None if p is None else function(p) for p in _parts(item)))


def _fill(idx_list: Any, values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
    """Return (``idx_list`` with successive ``values`` in place of its types, how many)."""
    taken = iter(values)
    count = 0

    def convert(entry: Any) -> Any:
        nonlocal count
        if isinstance(entry, slice):
            return _map_slice(convert, entry)
        count += 1
        return next(taken)

    return tuple(map(convert, idx_list)), count


def get_idx_list(inputs: Sequence[Any], idx_list: Iterable[Any], get_count: bool = False) -> Any:
    """Return the index of an Apply: ``idx_list`` with ``inputs[1:]`` in place of its types.

    get_count: return a pair with the number of inputs that were used.
    """
    filled, count = _fill(idx_list, inputs[1:])
    return (filled, count) if get_count else filled


def make_constant(items: Iterable[Any]) -> tuple[Any, ...]:
    """Return indices with integers, also those in slices, as int64 scalar constants.

    Anything else stays as it is; integers beyond int64 become its ends, which are out of every
    range.
    """

    def convert(item: Any) -> Any:
        if isinstance(item, slice):
            return _map_slice(convert, item)
        if isinstance(item, int | np.integer):
            return _index_constant(item)
        return item

    return tuple(map(convert, items))


def _index_constant(value: Any) -> Variable:
    # numbers beyond int64 are out of every range, as the ends of int64 are
    ends = np.iinfo(np.int64)
    return ScalarConstant(get_scalar_type("int64"), np.int64(max(ends.min, min(value, ends.max))))


class _Indexed:
    """Base of Subtensor and IncSubtensor: the list of indices."""

    @staticmethod
    def collapse(idxs: Sequence[Any], cond: Callable[[Any], bool]) -> list[Any]:
        """Return the entries of ``idxs``, and parts of its slices, for which ``cond`` is true."""
        found = []
        for entry in idxs:
            parts = _parts(entry) if isinstance(entry, slice) else (entry,)
            found += [p for p in parts if cond(p)]
        return found

    @staticmethod
    def convert(entry: Any, slice_ok: bool = True) -> Any:
        """Return an index (a variable, a type or a slice of these) as an entry of an idx_list.

        Raises AdvancedIndexingError for arrays, TypeError for anything else but integers.
        """
        if isinstance(entry, slice):
            if not slice_ok:
                raise AdvancedIndexingError(f"a slice within a slice: {entry}")
            return _map_slice(lambda p: _Indexed.convert(p, slice_ok=False), entry)
        type_ = entry.type if isinstance(entry, Variable) else entry
        if isinstance(type_, Scalar | TensorType):
            if type_.ndim:
                raise AdvancedIndexingError(f"{entry} is an array of {type_}")
            if type_.dtype in _INDEX_DTYPES:
                return get_scalar_type(type_.dtype)
            if type_.dtype == "bool":
                raise AdvancedBooleanIndexingError(f"{entry} is a mask")
            if type_.dtype == "uint64":
                raise AdvancedIndexingError("Subtensor does not support uint64 indices")
            raise TypeError(f"Expected an integer, got {entry} of {type_}")
        if isinstance(entry, int | np.integer):
            raise TypeError(
                f"An idx_list holds scalar types; the integer {entry} must be given as an input"
            )
        raise AdvancedIndexingError(f"Invalid index type or slice for Subtensor: {entry!r}")

    def _set_indices(self, idx_list: Any) -> None:
        self.idx_list = tuple(map(self.convert, idx_list))
        self._types = self.collapse(self.idx_list, lambda entry: isinstance(entry, Type))
        # slices have no hash before Python 3.12
        self._key = tuple(_parts(e) if isinstance(e, slice) else e for e in self.idx_list)

    def _index_inputs(self, x: Tensor, given: Sequence[Any]) -> list[Variable]:
        if len(self.idx_list) > x.type.ndim:
            raise IndexError(
                f"too many indices for array: {len(self.idx_list)} for {x} of {x.type}"
            )
        indices = [scalar_index(i) for i in given]
        types = [i.type for i in indices]
        if types != self._types:
            raise TypeError(
                f"Wrong type for Subtensor template. Expected {self._types}, got {types}."
            )
        return indices

    def _index_text(self) -> str:
        def text(entry: Any) -> str:
            if isinstance(entry, slice):
                return ":".join("" if p is None else p.dtype for p in _parts(entry))
            result: str = entry.dtype
            return result

        return ", ".join(map(text, self.idx_list))


def scalar_index(x: Any) -> Variable:
    """Return an index as a scalar variable."""
    if isinstance(x, Variable):
        return x if isinstance(x.type, Scalar) else scalar_from_tensor(x)
    return _index_constant(x)


class Subtensor(_Indexed, HashedOnce, TensorOp):
    """Basic indexing by integers and slices: ``x[idx_list]``, a view of x.

    idx_list: for each of the leading dimensions the scalar type of an integer, or a slice of such
    types and None. The integers themselves are inputs, in this order after x.
    """

    __props__ = ("idx_list",)
    view_map = {0: [0]}
    flops, traffic = costs.no_flops, costs.nothing

    def __init__(self, idx_list: Any) -> None:
        self._set_indices(idx_list)
        self._keep_hash()

    def _hashed(self) -> Any:
        return type(self), self._key

    def make_node(self, x: TensorLike, *indices: Any) -> Apply:
        x = as_tensor_variable(x)
        inputs = self._index_inputs(x, indices)
        filled, _ = _fill(self.idx_list, inputs)
        sliced = [
            one and keeps_one(item)
            for item, one in zip(filled, x.type.broadcastable, strict=False)
            if isinstance(item, slice)
        ]
        pattern = (*sliced, *x.type.broadcastable[len(filled) :])
        return Apply(self, [x, *inputs], [tensor_type(x.type.dtype, pattern).make_variable()])

    def get_constant_idx(
        self,
        inputs: Sequence[Variable],
        allow_partial: bool = False,
        only_process_constants: bool = False,
        elemwise: bool = True,
    ) -> list[Any]:
        """Return the index of an Apply as a list, with numbers in place of what is known.

        inputs: those of the Apply. allow_partial: leave variables that are not known; otherwise
        raise NotScalarConstantError. Others: as for ``get_scalar_constant_value``.
        """

        def known(entry: Any) -> Any:
            if isinstance(entry, slice):
                return _map_slice(known, entry)
            try:
                return int(
                    get_scalar_constant_value(
                        entry, elemwise=elemwise, only_process_constants=only_process_constants
                    )
                )
            except NotScalarConstantError:
                if allow_partial:
                    return entry
                raise

        return [known(entry) for entry in get_idx_list(inputs, self.idx_list)]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        index, _ = _fill(self.idx_list, inputs[1:])
        # with the ellipsis, a single element is a 0-d view
        output_storage[0][0] = inputs[0][(*index, ...)]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        filled = get_idx_list(node.inputs, self.idx_list)
        shape = shapes[0]
        result = [
            slice_length(item, shape[dim])
            for dim, item in enumerate(filled)
            if isinstance(item, slice)
        ]
        return [(*result, *shape[len(filled) :])]

    connection_pattern = connects(0)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, *indices), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            gx = zero_gradient(x)
        else:
            gx = IncSubtensor(self.idx_list)(user_zeros_like(x), gz, *indices)
        return [gx] + [disconnected_type.make_variable() for _ in indices]

    R_op = linear_in_first

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._key == other._key)

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self._index_text()}}}"


class IncSubtensor(_Indexed, HashedOnce, _Changes):
    """Adds y to the part of x that integers and slices select; y broadcasts to that part.

    idx_list: as in Subtensor; the integers are inputs after x and y. inplace: overwrite x.
    set_instead_of_inc: set the part to y. destroyhandler_tolerate_aliased: pairs of inputs that may
    share memory although one is overwritten.
    """

    __props__ = ("idx_list", "inplace", "set_instead_of_inc")

    def __init__(
        self, idx_list: Any, inplace: bool=False, set_instead_of_inc: bool=False,
        destroyhandler_tolerate_aliased: Sequence[Any] | None=None,
    ) -> None:  # fmt: skip
        super().__init__(inplace, set_instead_of_inc)
        self._set_indices(idx_list)
        self.destroyhandler_tolerate_aliased = list(destroyhandler_tolerate_aliased or ())
        self._keep_hash()

    def _hashed(self) -> Any:
        return type(self), self._key, self.inplace, self.set_instead_of_inc

    def make_node(self, x: TensorLike, y: TensorLike, *indices: Any) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        ndim = x.type.ndim - sum(not isinstance(e, slice) for e in self.idx_list)
        if y.type.ndim > ndim:
            raise ValueError(
                f"Trying to increment a {ndim}-dimensional subtensor with a "
                f"{y.type.ndim}-dimensional value."
            )
        inputs = self._index_inputs(x, indices)
        return Apply(self, [x, y, *inputs], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, *values = inputs
        index, _ = _fill(self.idx_list, values)
        out = self.target(x)
        part = out[(*index, ...)]
        if self.set_instead_of_inc:
            part[...] = y
        else:
            np.add(part, np.asarray(y).astype(out.dtype, copy=False), out=part)
        output_storage[0][0] = out

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, y, *indices), (gz,) = inputs, output_gradients
        setter = IncSubtensor(self.idx_list, set_instead_of_inc=True)
        return [
            *value_gradients(
                self, x, y, gz,
                lambda g: Subtensor(self.idx_list)(g, *indices),
                lambda g: setter(g, user_zeros_like(y), *indices),
            ),
            *(disconnected_type.make_variable() for _ in indices),
        ]  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self._key == other._key
            and self.inplace == other.inplace
            and self.set_instead_of_inc == other.set_instead_of_inc
        )

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        verb = "Set" if self.set_instead_of_inc else "Inc"
        return f"{type(self).__name__}{{{'Inplace' * self.inplace}{verb};{self._index_text()}}}"


# --- known elements -------------------------------------------------------------------------------


def constant_index(node: Apply) -> tuple[Any, ...] | None:
    """Return the index of a Subtensor as a tuple of ints and slices; None if it is not known."""

    def number(part: Any) -> int | None:
        if part is None or isinstance(part, int):
            return part
        return int(get_scalar_constant_value(part, max_recur=3))

    index: list[Any] = []
    try:
        for item in get_idx_list(node.inputs, node.op.idx_list):
            if isinstance(item, slice):
                index.append(slice(number(item.start), number(item.stop), number(item.step)))
            else:
                index.append(number(item))
    except NotScalarConstantError:
        return None
    return tuple(index)


def _picked(node: Apply) -> Any:
    """Return the element that a Subtensor selects, of a constant or a vector; None if unknown."""
    x = node.inputs[0]
    index = constant_index(node)
    if index is None:
        return None
    if isinstance(x, Constant):
        try:
            picked = x.data[index]
        except IndexError:
            return None
        return constant(picked)
    if x.type.ndim == 1 and node.outputs[0].type.ndim == 0:
        return vector_entry(x, index[0])
    return None


def _slice_positions(
    node: Apply, known: Callable[[Variable], int | None] = known_length
) -> range | None:
    """Return the positions that a Subtensor selects of a vector; None if they are not known."""
    index = constant_index(node) if node.inputs[0].type.ndim == 1 else None
    if index is None or len(index) != 1 or not isinstance(index[0], slice):
        return None
    n = known(node.inputs[0])
    return None if n is None else range(*index[0].indices(n))


def _length_of_slice(node: Apply, known: Callable[[Variable], int | None]) -> int | None:
    positions = _slice_positions(node, known)
    return None if positions is None else len(positions)


def _entry_of_slice(node: Apply, i: int) -> tuple[Variable, int] | None:
    positions = _slice_positions(node)
    if positions is None or i >= len(positions):
        return None
    return node.inputs[0], positions[i]


number_rule(Subtensor, _picked)
vector_rule(Subtensor, _length_of_slice, _entry_of_slice)


# --- x[...] ---------------------------------------------------------------------------------------

_subtensor = cache(lambda key: Subtensor(slice(*e) if isinstance(e, tuple) else e for e in key))


def getitem(x: Any, args: Any) -> Tensor:
    """Return ``x[args]``: what ``x[...]`` means for a tensor variable.

    args: integers, integer scalars, slices of these, None, Ellipsis, arrays or lists of integers,
    boolean arrays, or a tuple of these. Raises TypeError for anything else, IndexError for more
    indices than dimensions.
    """
    if isinstance(args, list) and any(isinstance(a, slice) or a is Ellipsis for a in args):
        args = tuple(args)
    if not isinstance(args, tuple):
        args = (args,)
    items = [_item(a) for a in args]
    items = _without_ellipsis(x, items)
    if any(item is None for item in items):
        items += [slice(None)] * (x.type.ndim - sum(map(_dims_taken, items)))
    if any(_is_mask(i) for i in items):
        return advanced_boolean_subtensor(x, *items)
    arrays = [d for d, i in enumerate(items) if _is_array(i)]
    if any(isinstance(i, Variable) and isinstance(i.type, SliceType) for i in items):
        return advanced_subtensor(x, *items)
    if not arrays:
        return _view(x, items)
    if len(arrays) == 1 and all(_is_whole(i) for i in items if not _is_array(i)):
        return take(x, items[arrays[0]], arrays[0])
    return advanced_subtensor(x, *items)


def _item(arg: Any) -> Any:
    """Return an index as None, Ellipsis, a scalar variable, a tensor, or a slice of scalars."""
    if arg is None or arg is Ellipsis:
        return arg
    if isinstance(arg, slice):
        return _map_slice(_slice_part, arg)
    if isinstance(arg, Variable):
        if isinstance(arg.type, Scalar | TensorType) and arg.type.ndim == 0:
            return _scalar_item(arg)
        if isinstance(arg.type, NoneTypeT):
            return None
        if isinstance(arg.type, SliceType):
            parts = parts_of(arg)
            return arg if parts is None else _item(parts)
        return as_index_variable(arg)
    if isinstance(arg, np.ndarray) and arg.ndim == 0 and arg.dtype != bool:
        arg = arg[()]
    if isinstance(arg, int | np.integer) and not isinstance(arg, bool):
        return _index_constant(arg)
    if _holds_bool(arg):
        text = (
            "TensorType does not support Python bools for indexing, such as tensor[[True, False]]. "
            "To use a boolean mask, convert the mask to a NumPy array first, e.g., "
            "tensor[numpy.array([True, False])]."
        )
        if isinstance(arg, bool):
            text += (
                f" If the {arg} comes from == or !=, which compare variables as objects, use "
                f"theano.tensor.{'neq' if arg else 'eq'}(v, w) instead."
            )
        raise TypeError(text)
    if isinstance(arg, float | complex | np.inexact | str | bytes):
        raise TypeError(f"{_NOT_INTEGER}: {arg!r}. Write an int, a slice, or an array of ints.")
    return as_index_variable(arg)


def _scalar_item(var: Var) -> Var:
    if var.type.dtype in ("bool", "uint64"):
        return as_index_variable(var)
    if var.type.dtype not in dtypes.INTEGERS:
        raise TypeError(
            f"Expected an integer, got the index {var} of {var.type}: T.cast({var}, 'int64') cuts "
            "off its fraction"
        )
    return scalar_index(var)


def _slice_part(part: Any) -> Variable | None:
    if isinstance(part, Variable):
        if isinstance(part.type, NoneTypeT):
            return None
        if getattr(part.type, "ndim", None) == 0 and part.type.dtype in _INDEX_DTYPES:
            return scalar_index(part)
        raise TypeError(
            f"Expected an integer, got {part} of {part.type} in a slice: slice bounds must be "
            "integer scalars, or left out"
        )
    if isinstance(part, np.ndarray) and part.ndim == 0:
        part = part[()]
    if not isinstance(part, int | np.integer):
        raise TypeError(f"index must be integers: a slice has the part {part!r}")
    return _index_constant(part)


def _holds_bool(arg: Sequence[int] | int | np.ndarray) -> bool:
    if isinstance(arg, list | tuple):
        return any(map(_holds_bool, arg))
    return isinstance(arg, bool)


def _is_mask(item: Any) -> bool:
    return _is_array(item) and item.type.dtype == "bool"


def _is_array(item: Any) -> bool:
    return isinstance(item, Variable) and isinstance(item.type, TensorType)


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)


def _dims_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.type.ndim if _is_mask(item) else 1


def _without_ellipsis(x: Tensor, items: list[Any]) -> list[Any]:
    """Return the indices with full slices for the Ellipsis; IndexError if there are too many."""
    taken = sum(map(_dims_taken, items))
    if taken > x.type.ndim:
        raise IndexError(
            f"too many indices for array: {taken} for {x} of {x.type}, which has {x.type.ndim} "
            "dimensions"
        )
    places = [d for d, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single Ellipsis (`...`)")
    if places:
        (place,) = places
        items[place : place + 1] = [slice(None)] * (x.type.ndim - taken)
    return items


def _view(x: Tensor, items: Sequence[Any]) -> Tensor:
    if any(i is None for i in items):
        order, items = _with_new_dimensions(items)
        x = x.dimshuffle(order)
        if all(map(_is_whole, items)):
            return x
    key, inputs = [], []
    for item in items:
        if isinstance(item, slice):
            key.append(tuple(None if p is None else p.type for p in _parts(item)))
            inputs += [p for p in _parts(item) if p is not None]
        else:
            key.append(item.type)
            inputs.append(item)
    return _subtensor(tuple(key))(x, *inputs)


def _with_new_dimensions(items: Sequence[Any]) -> tuple[list[int | str], list[Any]]:
    """Return (the order for a DimShuffle that inserts the Nones, the indices without them)."""
    order: list[int | str] = []
    rest, dim = [], 0
    for item in items:
        if item is None:
            order.append("x")
            rest.append(slice(None))
        else:
            order.append(dim)
            rest.append(item)
            dim += 1
    return order, rest


def take(
    a: TensorLike, indices: TensorLike, axis: int | None = None, mode: str = "raise"
) -> Tensor:
    """Return the elements of ``a`` at ``indices`` along ``axis``, or of the flattened array.

    The dtype is that of a. indices: integers; their dimensions take the place of the axis, so that
    the shape is ``a.shape[:axis] + indices.shape + a.shape[axis + 1:]``. mode: 'raise' an error for
    an index that is out of range, 'clip' or 'wrap' it; 'clip' makes a negative one 0.

    Raises TypeError if indices is not of integers, ValueError if the axis is out of range or for
    another mode; at run time IndexError if an index is out of range.
    """
    a = as_tensor_variable(a)
    indices = as_tensor_variable(as_index_variable(indices))
    if axis is None:
        a, axis = flatten(a), 0
    if not -a.type.ndim <= axis < a.type.ndim:
        raise ValueError(f"take: axis {axis} is out of range for {a} of {a.type}")
    axis %= a.type.ndim
    if mode == "clip":
        indices = elemwise("clip")(indices, 0, shape_of(a)[axis] - 1)
    elif mode == "wrap":
        indices = indices % shape_of(a)[axis]
    elif mode != "raise":
        raise ValueError(f"take: the mode must be 'raise', 'wrap' or 'clip', not {mode!r}")
    if indices.type.ndim == 1:
        return _take_vector(a, indices, axis)
    taken = _take_vector(a, flatten(indices), axis)
    lengths = [shape_of(indices)]
    if axis:
        lengths.insert(0, shape_of(a)[:axis])
    if indices.type.ndim == 0 and a.type.ndim == 1:
        return reshape(taken, lengths[0], ndim=0)
    lengths.append(shape_of(a)[axis + 1 :])
    return reshape(taken, join(0, *lengths), ndim=a.type.ndim - 1 + indices.type.ndim)


def _take_vector(a: Tensor, indices: Tensor, axis: int) -> Tensor:
    if axis == 0:
        return advanced_subtensor1(a, indices)
    order = list(range(a.type.ndim))
    order[0], order[axis] = axis, 0
    return dimshuffle(advanced_subtensor1(dimshuffle(a, order), indices), order)


def sparse_grad(var: Variable) -> Tensor:
    """Return the variable ``x[i]``, of a matrix x, with a gradient by x that is sparse."""
    if var.owner is None or not isinstance(var.owner.op, AdvancedSubtensor1):
        raise TypeError(f"Sparse gradient is only implemented for AdvancedSubtensor1, not {var}")
    return AdvancedSubtensor1(sparse_grad=True)(*var.owner.inputs)


# --- changing a part ------------------------------------------------------------------------------


def set_subtensor(
    x: TensorLike, y: TensorLike, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> Tensor:
    """Return the whole array of which ``x`` is a part, with that part set to ``y``.

    The shape and dtype are those of the whole array, to which y is cast, even if it loses
    precision. x: the result of indexing, for example ``v[2:4]``. y: a tensor that broadcasts to it.
    Others: as for ``inc_subtensor``.

    Raises TypeError if x is not such a part or y has more dimensions; at run time ValueError if y
    does not broadcast, IndexError if an index is out of range.
    """
    return inc_subtensor(
        x, y, inplace, set_instead_of_inc=True, tolerate_inplace_aliasing=tolerate_inplace_aliasing
    )


def inc_subtensor(
    x: TensorLike,
    y: TensorLike,
    inplace: bool = False,
    set_instead_of_inc: bool = False,
    tolerate_inplace_aliasing: bool = False,
) -> Tensor:
    """Return the whole array of which ``x`` is a part, with ``y`` added to that part.

    The shape and dtype are those of the whole array, to which y is cast, even if it loses
    precision. x: the result of indexing. y: a tensor that broadcasts to it; an element that is
    indexed several times is incremented each time. inplace: overwrite the array, for rewrites.
    set_instead_of_inc: set the part. tolerate_inplace_aliasing: y may share memory with x although
    x is overwritten.

    Raises TypeError if x is not such a part or y has more dimensions; at run time ValueError if y
    does not broadcast, IndexError if an index is out of range.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if y.type.ndim > x.type.ndim:
        raise TypeError(
            f"Trying to increment a {x.type.ndim}-dimensional subtensor with a "
            f"{y.type.ndim}-dimensional value. Give a value with the shape of that part, or a "
            "scalar."
        )
    surplus = x.type.ndim - y.type.ndim
    for dim in range(y.type.ndim):
        if x.type.broadcastable[dim + surplus] and not y.type.broadcastable[dim]:
            y = addbroadcast(y, dim)  # otherwise y could change the shape of x
    if x.owner is None:
        raise TypeError(
            f"x must be the result of a subtensor operation: {x} is an input. Index the part to "
            f"change: {x}[...]."
        )
    return _changed(x, y, inplace, set_instead_of_inc, tolerate_inplace_aliasing)


def _changed(
    x: Var, y: Tensor, inplace: bool, set_instead_of_inc: bool, tolerate_inplace_aliasing: bool
) -> Tensor:
    op, inputs = x.owner.op, x.owner.inputs
    how = {"inplace": inplace, "set_instead_of_inc": set_instead_of_inc}
    if isinstance(op, Subtensor):
        aliased = [[0, 1]] if tolerate_inplace_aliasing else []
        change = IncSubtensor(op.idx_list, **how, destroyhandler_tolerate_aliased=aliased)
        return change(inputs[0], y, *inputs[1:])
    for getter, changer in _CHANGERS.items():
        if isinstance(op, getter):
            return changer(**how)(inputs[0], y, *inputs[1:])
    if isinstance(op, DimShuffle):
        return _changed_shuffled(x, y, tolerate_inplace_aliasing, **how)
    if isinstance(op, Reshape):
        return _changed_reshaped(x, y, tolerate_inplace_aliasing, **how)
    raise TypeError(
        f"x must be the result of a subtensor operation, not of {op}: give a part, x[...], of it"
    )


_CHANGERS: dict[type[Op], Callable[..., TensorOp]] = {
    AdvancedSubtensor1: AdvancedIncSubtensor1,
    AdvancedSubtensor: AdvancedIncSubtensor,
    AdvancedBooleanSubtensor: AdvancedBooleanIncSubtensor,
}


def _changed_shuffled(x: Var, y: Tensor, tolerate_inplace_aliasing: bool, **how: Any) -> Tensor:
    """Change a part whose dimensions were reordered, as ``x[:, i]`` does to index axis 1.

    The array was reordered as well before it was indexed; the result has its original order.
    """
    op, inner = x.owner.op, x.owner.inputs[0]
    if sorted(map(str, op.new_order)) != sorted(map(str, range(inner.type.ndim))):
        raise TypeError(
            f"Trying to increment a {inner.type.ndim}-dimensional subtensor with a "
            f"{x.type.ndim}-dimensional value: {op} adds or drops dimensions of the part. Change "
            "the part before that."
        )
    y_order: list[int | str] = ["x"] * inner.type.ndim
    surplus = x.type.ndim - y.type.ndim
    for place, dim in enumerate(op.new_order):
        if place >= surplus:
            y_order[dim] = place - surplus
    changed = inc_subtensor(
        inner, y.dimshuffle(y_order), **how, tolerate_inplace_aliasing=tolerate_inplace_aliasing
    )
    if changed.type.ndim != inner.type.ndim:
        return changed  # a part of fewer dimensions was reordered, the array itself was not
    return changed.dimshuffle(op.new_order)


def _changed_reshaped(x: Var, y: Tensor, tolerate_inplace_aliasing: bool, **how: Any) -> Tensor:
    """Change a part that was reshaped, as ``x[i]`` does for a matrix i: reshape y instead."""
    inner = x.owner.inputs[0]
    if y.type.ndim:
        whole = alloc(y, *(shape_of(x)[d] for d in range(x.type.ndim)))
        y = reshape(whole, shape_of(inner), ndim=inner.type.ndim)
    return inc_subtensor(inner, y, **how, tolerate_inplace_aliasing=tolerate_inplace_aliasing)
