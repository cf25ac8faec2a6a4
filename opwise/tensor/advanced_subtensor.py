"""Indexing by arrays and masks, and changes of parts that are indexed so.

The functions that users call, and basic indexing, are in ``opwise.tensor.subtensor``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from opwise.config import config
from opwise.errors import ShapeError
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first, shapes_of
from opwise.graph.traversal import equal_computations
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.dtypes import DTypeLike
from opwise.scalar.types import Scalar
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise, zeros_like
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.slices import (
    MakeSlice,
    NoneConst,
    NoneTypeT,
    SliceConstant,
    SliceType,
    as_tensor,
    keeps_one,
    slice_length,
    slice_variable,
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
    "AdvancedIncSubtensor1", "AdvancedSubtensor", "AdvancedSubtensor1",
    "BaseAdvancedIncSubtensor", "BaseAdvancedSubtensor", "adv_index_broadcastable_pattern",
    "advanced_boolean_inc_subtensor", "advanced_boolean_set_subtensor",
    "advanced_boolean_subtensor", "advanced_inc_subtensor", "advanced_inc_subtensor1",
    "advanced_set_subtensor", "advanced_set_subtensor1", "advanced_subtensor",
    "advanced_subtensor1", "as_index_variable",
]  # fmt: skip

_NOT_INTEGER = "index must be integers or a boolean mask"


def user_zeros_like(x: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros of the shape of ``x``, which print as those that users write."""
    return elemwise("second")(x, constant(np.zeros((), dtype or x.type.dtype)))


def zero_gradient(x: Any) -> Tensor:
    """Return the gradient by a variable without influence: zeros, of floatX if it is discrete."""
    return user_zeros_like(x, config.floatX if x.type.dtype in dtypes.DISCRETE else None)


def sum_to(y: Any, gy: Any) -> Tensor:
    """Return the gradient ``gy`` summed over the dimensions along which ``y`` was broadcast."""
    surplus = gy.type.ndim - y.type.ndim
    axes = list(range(surplus)) + [
        d + surplus
        for d in range(y.type.ndim)
        if y.type.broadcastable[d] and not gy.type.broadcastable[d + surplus]
    ]
    if axes:
        gy = sum_(gy, axis=axes, keepdims=True)
    return dimshuffle(gy, range(surplus, gy.type.ndim))


def value_gradients(
    op: Any, x: Any, y: Any, gz: Any, picked: Callable[[Any], Any], cleared: Callable[[Any], Any]
) -> list[Any]:
    """Return the gradients by x and y of ``op``, which sets or increments a part of x by y.

    picked: function that returns that part of a variable. cleared: function that sets it to 0.
    """
    if op.inplace:
        raise NotImplementedError(f"{op} has no gradient: take it before rewriting in place")
    if x.type.dtype in dtypes.COMPLEX or y.type.dtype in dtypes.COMPLEX:
        raise NotImplementedError("No support for complex grad yet")
    if x.type.dtype in dtypes.DISCRETE:
        return [zero_gradient(x), zero_gradient(y)]
    gx = cleared(gz) if op.set_instead_of_inc else gz
    gy = zero_gradient(y) if y.type.dtype in dtypes.DISCRETE else sum_to(y, picked(gz))
    return [gx, gy]


def add_at(x: np.ndarray, index: Any, y: Any) -> None:
    """Add ``y`` to ``x[index]`` in place; an element that is indexed twice is incremented twice."""
    np.add.at(x, index, np.asarray(y).astype(x.dtype, copy=False))


class AdvancedSubtensor1(TensorOp):
    """Selects rows: ``x[ilist]`` for a vector of integers.

    sparse_grad: whether the gradient by x, a matrix, is a sparse matrix with these rows.
    """

    __props__ = ()

    def __init__(self, sparse_grad: bool = False) -> None:
        self.sparse_grad = sparse_grad

    def make_node(self, x: TensorLike, ilist: TensorLike) -> Apply:
        x, ilist = _check_rows(x, ilist)
        pattern = ilist.type.broadcastable + x.type.broadcastable[1:]
        return Apply(self, [x, ilist], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, i = inputs
        output_storage[0][0] = x[i] if i.dtype == np.uint64 else x.take(i, axis=0)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        x, i = shapes
        return [(i[0], *x[1:])]

    connection_pattern = connects(0)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, i), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            gx = zero_gradient(x)
        elif self.sparse_grad:
            gx = _sparse_rows(x, gz, i)
        else:
            gx = advanced_inc_subtensor1(user_zeros_like(x), gz, i)
        return [gx, disconnected_type.make_variable()]

    R_op = linear_in_first


def _sparse_rows(x: Tensor, rows: Tensor, ilist: Tensor) -> Var:
    """Return the sparse matrix of the shape of x with these rows."""
    if x.type.ndim != 2:
        raise TypeError(
            "AdvancedSubtensor1: you can't take the sparse grad from a tensor with ndim != 2. ndim "
            f"is {x.type.ndim}: take it without theano.sparse_grad"
        )
    # an upper layer, which most programs never load
    module = importlib.import_module("opwise.sparse.rows")
    return module.construct_sparse_from_list(x, rows, ilist)


def _check_rows(x: TensorLike, ilist: TensorLike) -> tuple[Tensor, ...]:
    x, ilist = as_tensor_variable(x), as_tensor_variable(ilist)
    if ilist.type.dtype not in dtypes.INTEGERS:
        raise TypeError(f"index must be integers: {ilist} has dtype {ilist.type.dtype}")
    if ilist.type.ndim != 1:
        raise TypeError(f"index must be vector: {ilist} has {ilist.type.ndim} dimensions")
    if x.type.ndim == 0:
        raise TypeError(f"cannot index into a scalar: {x}")
    return x, ilist


class _Changes(TensorOp):
    """Base of the Ops that set or increment a part of their first input."""

    def __init__(self, inplace: bool = False, set_instead_of_inc: bool = False) -> None:
        self.inplace = bool(inplace)
        self.set_instead_of_inc = bool(set_instead_of_inc)
        if self.inplace:
            self.destroy_map = {0: [0]}

    infer_shape = shapes_of(0)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True]] + [[False]] * (len(node.inputs) - 2)

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        x, y = eval_points[:2]
        if x is None and y is None:
            return [None]
        x = zeros_like(inputs[0]) if x is None else x
        y = zeros_like(inputs[1]) if y is None else y
        return [self(x, y, *inputs[2:])]

    def target(self, x: np.ndarray) -> np.ndarray:
        """Return the array to change: x itself if in place, else a copy."""
        return x if self.inplace else x.copy()


class AdvancedIncSubtensor1(_Changes):
    """Increments rows: adds y to ``x[ilist]``, each time that a row is indexed.

    inplace: overwrite x. set_instead_of_inc: set the rows; for a row that is indexed twice the last
    value counts.
    """

    __props__ = ("inplace", "set_instead_of_inc")

    def make_node(self, x: TensorLike, y: TensorLike, ilist: TensorLike) -> Apply:
        x, ilist = _check_rows(x, ilist)
        y = as_tensor_variable(y)
        if y.type.ndim > x.type.ndim:
            verb = "set" if self.set_instead_of_inc else "increment"
            raise TypeError(
                f"cannot {verb} x subtensor with ndim={x.type.ndim} by y with ndim={y.type.ndim}"
            )
        return Apply(self, [x, y, ilist], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, i = inputs
        out = self.target(x)
        if self.set_instead_of_inc:
            out[i] = y
        else:
            try:
                y = np.broadcast_to(y, i.shape + x.shape[1:])
            except ValueError:
                raise ValueError(
                    f"array is not broadcastable to correct shape: {y.shape} to "
                    f"{i.shape + x.shape[1:]}"
                ) from None
            add_at(out, i, y)
        output_storage[0][0] = out

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, y, i), (gz,) = inputs, output_gradients
        return [
            *value_gradients(
                self, x, y, gz,
                lambda g: advanced_subtensor1(g, i),
                lambda g: advanced_set_subtensor1(g, user_zeros_like(y), i),
            ),
            disconnected_type.make_variable(),
        ]  # fmt: skip

    def __str__(self) -> str:
        where = "inplace" if self.inplace else "no_inplace"
        return f"{type(self).__name__}{{{where},{'set' if self.set_instead_of_inc else 'inc'}}}"


# --- several indices at once --------------------------------------------------------------------


def as_index_variable(item: Any) -> Var:
    """Return an index (None, a slice, an integer, an array, a mask) as a variable.

    Arrays keep their shape and dtype. Raises TypeError unless it is of integers or bool.
    """
    if item is None:
        return NoneConst.clone()
    if isinstance(item, slice):
        return slice_variable(item)
    if isinstance(item, Variable):
        if isinstance(item.type, SliceType | NoneTypeT):
            return item
        if isinstance(item.type, Scalar):
            item = as_tensor(item)
    item = as_tensor_variable(item)
    if isinstance(item, Constant) and item.data.size == 0:  # numpy makes [] an array of float
        item = constant(item.data.astype(np.int64))
    if item.type.dtype not in dtypes.INTEGERS and item.type.dtype != "bool":
        raise TypeError(f"{_NOT_INTEGER}: {item} has dtype {item.type.dtype}")
    return item


def _is_array(item: Any) -> bool:
    return isinstance(item.type, TensorType)


def _is_mask(item: Any) -> bool:
    return _is_array(item) and item.type.dtype == "bool"


def parts_of(item: Any) -> slice | None:
    """Return the value of a slice variable as a slice, with variables for unknown parts.

    None if nothing is known of it.
    """
    if isinstance(item, SliceConstant):
        result: slice = item.data
        return result
    if item.owner is None or not isinstance(item.owner.op, MakeSlice):
        return None
    return slice(*(None if isinstance(p.type, NoneTypeT) else p for p in item.owner.inputs))


def adv_index_broadcastable_pattern(x: Any, items: Iterable[Any]) -> tuple[bool, ...]:
    """Return the broadcast pattern of ``x`` indexed by ``items`` (index variables).

    It is read off an array that numpy indexes: broadcastable dimensions have length 1, others 2.
    Raises TypeError for an item that is not an index; how many there are is not checked.
    """
    shape: list[int] = []
    index: list[Any] = []
    dim = 0
    for item in map(as_index_variable, items):
        if isinstance(item.type, NoneTypeT):
            index.append(None)
            continue
        if isinstance(item.type, SliceType):
            part = parts_of(item)
            one = x.type.broadcastable[dim] and part is not None and keeps_one(part)
            shape.append(1 if one else 2)
            index.append(slice(None))
        elif _is_mask(item):
            shape += [2] * item.type.ndim
            index += [np.zeros(2, int)] * item.type.ndim
            dim += item.type.ndim - 1
        else:
            shape.append(2)
            index.append(np.zeros([1 if b else 2 for b in item.type.broadcastable], int))
        dim += 1
    shape += [1 if b else 2 for b in x.type.broadcastable[dim:]]
    return tuple(n == 1 for n in np.broadcast_to(np.int8(0), shape)[tuple(index)].shape)


def broadcast_length(lengths: Sequence[Tensor]) -> Tensor:
    """Return the length to which dimensions of these lengths broadcast at run time."""
    result = lengths[0]
    for length in lengths[1:]:
        if not equal_computations([length], [result]):
            result = elemwise("switch")(elemwise("eq")(result, 1), length, result)
    return result


class BaseAdvancedSubtensor(TensorOp):
    """Selects elements by numpy's rules: ``x[items]`` with arrays, integers, slices and None."""

    __props__ = ()

    def make_node(self, x: TensorLike, *items: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        indices = [as_index_variable(i) for i in items]
        self.check(x, indices)
        pattern = adv_index_broadcastable_pattern(x, indices)
        return Apply(self, [x, *indices], [tensor_type(x.type.dtype, pattern).make_variable()])

    def check(self, x: Tensor, items: Sequence[Any]) -> None:
        """Raise IndexError if there are more indices than dimensions."""
        taken = sum(
            i.type.ndim if _is_mask(i) else 1 for i in items if not isinstance(i.type, NoneTypeT)
        )
        if taken > x.type.ndim:
            raise IndexError(f"too many indices for array: {taken} for {x} of {x.type}")

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, *items = inputs
        result = np.asarray(x[tuple(items)])
        # without an array, the result is a view
        output_storage[0][0] = result.copy() if np.may_share_memory(result, x) else result

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        x_shape, dims = shapes[0], 0
        result: list[Any] = []
        arrays: list[int] = []
        place = previous = None
        for i, item in enumerate(node.inputs[1:], 1):
            if isinstance(item.type, NoneTypeT):
                result.append(constant(np.int64(1)))
                continue
            if isinstance(item.type, SliceType):
                part = parts_of(item)
                if part is None:
                    raise ShapeError(f"the slice {item} is an input")
                result.append(slice_length(part, x_shape[dims]))
            elif _is_mask(item):
                raise ShapeError("the length depends on how many elements of a mask are true")
            else:
                arrays.append(i)
                # the dimensions of adjacent arrays take their place, those of others come first
                place = len(result) if previous in (None, i - 1) and place != 0 else 0
                previous = i
            dims += 1
        result += x_shape[dims:]
        ndim = max((node.inputs[i].type.ndim for i in arrays), default=0)
        common = [self._common(node, shapes, arrays, ndim - d) for d in range(ndim)]
        place = place or 0
        return [tuple(result[:place] + common + result[place:])]

    @staticmethod
    def _common(
        node: Apply, shapes: Sequence[Lengths], arrays: Sequence[int], from_right: int
    ) -> Tensor:
        """Return the length of a dimension, counted from the right, of the broadcast arrays."""
        lengths = [
            shapes[i][-from_right]
            for i in arrays
            if node.inputs[i].type.ndim >= from_right
            and not node.inputs[i].type.broadcastable[-from_right]
        ]
        return broadcast_length(lengths) if lengths else constant(np.int64(1))

    connection_pattern = connects(0)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, *items), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            gx = zero_gradient(x)
        else:
            gx = self.increment(user_zeros_like(x), gz, *items)
        return [gx] + [disconnected_type.make_variable() for _ in items]

    R_op = linear_in_first

    def increment(self, x: Tensor, y: Tensor, *items: Variable) -> Tensor:
        """Return x with y added to the elements that this Op selects."""
        raise NotImplementedError


class AdvancedSubtensor(BaseAdvancedSubtensor):
    """Selects elements by arrays of integers, mixed with integers, slices and None."""

    def check(self, x: Tensor, items: Sequence[Any]) -> None:
        if any(map(_is_mask, items)):
            raise TypeError(
                f"{type(self).__name__} does not support boolean masks for indexing. "
                "Use AdvancedBooleanSubtensor instead. "
            )
        super().check(x, items)

    def increment(self, x: Tensor, y: Tensor, *items: Variable) -> Tensor:
        return advanced_inc_subtensor(x, y, *items)


class AdvancedBooleanSubtensor(BaseAdvancedSubtensor):
    """Selects the elements where masks are true, mixed with other indices."""

    def increment(self, x: Tensor, y: Tensor, *items: Variable) -> Tensor:
        return advanced_boolean_inc_subtensor(x, y, *items)


class BaseAdvancedIncSubtensor(_Changes):
    """Increments the elements that arrays, masks, integers, slices and None select.

    inplace: overwrite x. set_instead_of_inc: set the elements; for an element that is indexed twice
    the last value counts.
    """

    __props__ = ("inplace", "set_instead_of_inc")
    #: the Op that selects the elements
    getter: BaseAdvancedSubtensor

    def make_node(self, x: TensorLike, y: TensorLike, *items: TensorLike) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        indices = [as_index_variable(i) for i in items]
        self.getter.check(x, indices)
        return Apply(self, [x, y, *indices], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, *items = inputs
        out = self.target(x)
        if self.set_instead_of_inc:
            out[tuple(items)] = y
        else:
            add_at(out, tuple(items), y)
        output_storage[0][0] = out

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, y, *items), (gz,) = inputs, output_gradients
        setter = type(self)(set_instead_of_inc=True)
        return [
            *value_gradients(
                self, x, y, gz,
                lambda g: self.getter(g, *items),
                lambda g: setter(g, user_zeros_like(y), *items),
            ),
            *(disconnected_type.make_variable() for _ in items),
        ]  # fmt: skip

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}{{inplace={self.inplace},  "
            f"set_instead_of_inc={self.set_instead_of_inc}}}"
        )


advanced_subtensor1 = AdvancedSubtensor1()
advanced_inc_subtensor1 = AdvancedIncSubtensor1()
advanced_set_subtensor1 = AdvancedIncSubtensor1(set_instead_of_inc=True)
advanced_subtensor = AdvancedSubtensor()
advanced_boolean_subtensor = AdvancedBooleanSubtensor()


class AdvancedIncSubtensor(BaseAdvancedIncSubtensor):
    """Increments elements selected by arrays of integers, mixed with integers, slices and None."""

    getter = advanced_subtensor


class AdvancedBooleanIncSubtensor(BaseAdvancedIncSubtensor):
    """Increments elements where masks are true, mixed with other indices."""

    getter = advanced_boolean_subtensor


advanced_inc_subtensor = AdvancedIncSubtensor()
advanced_set_subtensor = AdvancedIncSubtensor(set_instead_of_inc=True)
advanced_boolean_inc_subtensor = AdvancedBooleanIncSubtensor()
advanced_boolean_set_subtensor = AdvancedBooleanIncSubtensor(set_instead_of_inc=True)
