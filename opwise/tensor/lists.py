"""Lists as values in graphs: their type, variables, and operations that work as those of Python.

The names are those of ``theano.typed_list``; ``theano.tensor`` does not have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.type import Type
from opwise.graph.variable import Constant, Var, Variable
from opwise.tensor.slices import SliceConstant, SliceType, slicetype
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable, constant

__all__ = [
    "Append", "Count", "Extend", "GetItem", "Index", "Insert", "Length", "MakeList", "Remove",
    "Reverse", "TypedListConstant", "TypedListType", "TypedListVariable", "append", "count",
    "extend", "getitem", "index_", "insert", "length", "make_list", "remove", "reverse",
]  # fmt: skip


class _typed_list_py_operators:
    """The methods of list variables, named as those of lists."""

    type: TypedListType

    @property
    def ttype(self) -> Type:
        """The type of the elements."""
        return self.type.ttype

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.type.ttype.dtype

    @property
    def ndim(self) -> int:
        """One more than the number of dimensions of the elements."""
        return self.type.ttype.ndim + 1

    def __getitem__(self, index: Any) -> Any:
        return getitem(self, index)

    def __len__(self) -> Tensor:
        """Return the length as a variable; ``len()`` raises TypeError, which wants a number."""
        own: Any = self
        return length(own)

    def append(self, toAppend: Any) -> Any:
        """Return the list with an element at its end."""
        return append(self, toAppend)

    def extend(self, toAppend: Any) -> Any:
        """Return the list with the elements of another one at its end."""
        return extend(self, toAppend)

    def insert(self, index: Any, toInsert: Any) -> Any:
        """Return the list with an element before that at ``index``."""
        return insert(self, index, toInsert)

    def remove(self, toRemove: Any) -> Any:
        """Return the list without the first element that equals ``toRemove``."""
        return remove(self, toRemove)

    def reverse(self) -> Any:
        """Return the list in reverse order."""
        return reverse(self)

    def count(self, elem: Any) -> Tensor:
        """Return how many elements equal ``elem``."""
        own: Any = self
        return count(own, elem)

    # a variable has an attribute ``index``
    def ind(self, elem: Any) -> Tensor:
        """Return the position of the first element that equals ``elem``."""
        own: Any = self
        return index_(own, elem)


class TypedListVariable(_typed_list_py_operators, Variable):
    """A symbolic list."""

    type: TypedListType

    def __bool__(self) -> bool:
        return True  # its length is not known: ``__len__`` must not be asked


class TypedListConstant(_typed_list_py_operators, Constant):
    """A constant list."""

    type: TypedListType

    def __bool__(self) -> bool:
        return True

    def signature(self) -> Any:
        return self.type, id(self.data)  # a list has no hash


class TypedListType(Type):
    """The type of lists whose elements all have the type ``ttype``.

    depth: 1 for lists of such lists, and so on. Raises ValueError for a negative depth, TypeError
    if ttype is no Type.
    """

    Variable = TypedListVariable
    Constant = TypedListConstant
    ttype: Type

    def __init__(self, ttype: Type, depth: int = 0) -> None:
        if depth < 0:
            raise ValueError(f"Please specify a depth superior or equal to 0, not {depth}")
        if not isinstance(ttype, Type):
            raise TypeError(f"Expected a Theano Type, not {ttype!r}: write T.dvector, for example")
        self.ttype = ttype if depth == 0 else TypedListType(ttype, depth - 1)

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``data`` as a list whose elements have the type; TypeError if they cannot.

        strict: ``data`` must be a list with such elements already.
        """
        if strict:
            if not isinstance(data, list):
                raise TypeError(f"Expected a python list, not {type(data)}")
            for element in data:
                self.ttype.filter(element, strict=True)
            return data
        return [self.ttype.filter(element, allow_downcast=allow_downcast) for element in data]

    def get_depth(self) -> int:
        """Return how many lists the elements are nested in: 0 for a list of tensors."""
        return self.ttype.get_depth() + 1 if isinstance(self.ttype, TypedListType) else 0

    # compares by the type of the elements, which is not known to the class
    def values_eq(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        """Return whether two lists are equally long and their elements are equal."""
        return len(a) == len(b) and all(map(self.ttype.values_eq, a, b))

    def values_eq_approx(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        """Return whether two lists are equally long and their elements are equal up to rounding."""
        return len(a) == len(b) and all(map(self.ttype.values_eq_approx, a, b))

    def may_share_memory(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        """Return whether two lists, or a list and an element, may share memory."""
        if a is b:
            return a is not None
        ones, others = (x if isinstance(x, list) else [x] for x in (a, b))
        return any(self.ttype.may_share_memory(x, y) for x in ones for y in others)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.ttype == other.ttype

    def __hash__(self) -> int:
        return hash((type(self), self.ttype))

    def __str__(self) -> str:
        return f"TypedList <{self.ttype}>"


# --- reading --------------------------------------------------------------------------------------


def _check_list(x: Any, what: str = "x") -> None:
    if not isinstance(getattr(x, "type", None), TypedListType):
        raise AssertionError(f"{what} must be a list variable, not {x!r}")


def _check_element(x: Any, elem: Any) -> None:
    _check_list(x)
    if getattr(elem, "type", None) != x.type.ttype:
        raise AssertionError(
            f"elements of {x} have {x.type.ttype}, but {elem!r} has {getattr(elem, 'type', None)}"
        )


def _position(index: Any) -> Variable:
    """Return an index as a 0-d int64 tensor; AssertionError if it is no such variable."""
    if not isinstance(index, Variable):
        return constant(np.int64(index))
    is_integer = isinstance(index.type, TensorType) and index.type.dtype == "int64"
    if not is_integer or index.type.ndim:
        raise AssertionError(f"an index must be a scalar of int64; {index} has {index.type}")
    return index


class GetItem(Op):
    """An element of a list, or a list of those that a slice selects."""

    view_map = {0: [0]}
    __props__ = ()

    def make_node(self, x: Var, index: TensorLike) -> Apply:
        _check_list(x)
        if isinstance(index, slice):
            index = SliceConstant(slicetype, index)
        if isinstance(index, Variable) and isinstance(index.type, SliceType):
            return Apply(self, [x, index], [x.type.make_variable()])
        if isinstance(index, Variable) and getattr(index.type, "ndim", None) != 0:
            raise TypeError(f"Expected scalar or slice as index, not {index} of {index.type}")
        return Apply(self, [x, _position(index)], [x.type.ttype.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, index = inputs
        output_storage[0][0] = x[index if isinstance(index, slice) else int(index)]


class _Comparison(TensorOp):
    """Base of Ops that compare the elements with a value; the result is a scalar of floatX."""

    __props__ = ()

    def make_node(self, x: Var, elem: TensorLike) -> Apply:
        _check_element(x, elem)
        return Apply(self, [x, elem], [tensor_type(config.floatX, ()).make_variable()])


class Index(_Comparison):
    """The position of the first element that equals another value."""

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, elem = inputs
        position = _find(_type_of(node).ttype, x, elem)
        output_storage[0][0] = np.asarray(position, node.outputs[0].type.dtype)


def _type_of(node: Apply) -> TypedListType:
    """Return the type of the list that an Op reads."""
    type_ = node.inputs[0].type
    assert isinstance(type_, TypedListType)
    return type_


def _find(ttype: Type, x: Sequence[Any], elem: Any) -> int:
    """Return the position of an element; ValueError if the list does not have it."""
    for position, each in enumerate(x):
        if ttype.values_eq(each, elem):
            return position
    raise ValueError(f"the list of {len(x)} elements does not have {elem!r}")


class Count(_Comparison):
    """The number of elements that equal another value."""

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, elem = inputs
        ttype = _type_of(node).ttype
        equal = sum(bool(ttype.values_eq(each, elem)) for each in x)
        output_storage[0][0] = np.asarray(equal, node.outputs[0].type.dtype)


class Length(TensorOp):
    """The number of elements, as a scalar of int64."""

    __props__ = ()

    def make_node(self, x: Variable) -> Apply:
        _check_list(x)
        return Apply(self, [x], [tensor_type("int64", ()).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.asarray(len(inputs[0]), np.int64)


class MakeList(Op):
    """A list of variables of one type."""

    __props__ = ()

    def make_node(self, a: TensorLike) -> Apply:
        if not isinstance(a, list | tuple):
            raise AssertionError(f"make_list takes a list or tuple of variables, not {a!r}")
        elements = [each if isinstance(each, Variable) else as_tensor_variable(each) for each in a]
        if not elements:
            raise IndexError("an empty list has no type: give make_list at least one element")
        ttype = elements[0].type
        if any(each.type != ttype for each in elements):
            raise TypeError(
                "MakeList need all input variable to be of the same type, not of "
                f"{', '.join(str(each.type) for each in elements)}"
            )
        return Apply(self, elements, [TypedListType(ttype).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = [deepcopy(value) for value in inputs]


# --- changing -------------------------------------------------------------------------------------


class _Changes(Op):
    """Base of Ops that return a changed list, which shares the elements of the first input.

    inplace: change the list itself. New elements are copied, so that they belong to one list.
    """

    __props__ = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [0]}
        else:
            self.view_map = {0: [0]}

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, *arguments = inputs
        result = x if self.inplace else list(x)
        self.change(node, result, *arguments)
        output_storage[0][0] = result

    def change(
        self,
        node: Apply,
        result: list[Any],
        *arguments: Any,
    ) -> None:
        """Change the list ``result``."""
        raise NotImplementedError(f"{type(self).__name__} defines no change")

    def __str__(self) -> str:
        return type(self).__name__


class Append(_Changes):
    """A list with an element at its end."""

    def make_node(self, x: Var, toAppend: Variable) -> Apply:
        _check_element(x, toAppend)
        return Apply(self, [x, toAppend], [x.type.make_variable()])

    def change(
        self,
        node: Apply,
        result: list[Any],
        element: Any,
    ) -> None:
        result.append(deepcopy(element))


class Extend(_Changes):
    """A list with the elements of another one at its end."""

    def make_node(self, x: Var, toAppend: Variable) -> Apply:
        _check_list(x)
        if getattr(toAppend, "type", None) != x.type:
            raise AssertionError(f"{x} of {x.type} cannot be extended by {toAppend!r}")
        return Apply(self, [x, toAppend], [x.type.make_variable()])

    def change(
        self,
        node: Apply,
        result: list[Any],
        elements: list[Any],
    ) -> None:
        result.extend([deepcopy(each) for each in elements])


class Insert(_Changes):
    """A list with an element before that at an index."""

    def make_node(self, x: Var, index: TensorLike, toInsert: TensorLike) -> Apply:
        _check_element(x, toInsert)
        return Apply(self, [x, _position(index), toInsert], [x.type.make_variable()])

    def change(
        self,
        node: Apply,
        result: list[Any],
        index: np.ndarray,
        element: Any,
    ) -> None:
        result.insert(int(index), deepcopy(element))


class Remove(_Changes):
    """A list without the first element that equals another value; ValueError without any."""

    def make_node(self, x: Var, toRemove: TensorLike) -> Apply:
        _check_element(x, toRemove)
        return Apply(self, [x, toRemove], [x.type.make_variable()])

    def change(
        self,
        node: Apply,
        result: list[Any],
        element: Any,
    ) -> None:
        del result[_find(_type_of(node).ttype, result, element)]


class Reverse(_Changes):
    """A list in reverse order."""

    def make_node(self, x: Variable) -> Apply:
        _check_list(x)
        return Apply(self, [x], [x.type.make_variable()])

    def change(self, node: Apply, result: list[Any]) -> None:
        result.reverse()


getitem, index_, count, length, make_list = GetItem(), Index(), Count(), Length(), MakeList()
append, extend, insert, remove, reverse = Append(), Extend(), Insert(), Remove(), Reverse()
