"""Slices as values in graphs, and the canonical form of slices.

Indexing itself is in ``opwise.tensor.subtensor``.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Op, Storage, Values
from opwise.graph.type import SingletonType, Type
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.types import Scalar
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.variable import Tensor, as_tensor_variable, constant

__all__ = [
    "MakeSlice", "NoneConst", "NoneTypeT", "SliceConstant", "SliceType", "as_int_none_variable",
    "get_canonical_form_slice", "make_slice", "none_type_t", "slicetype",
]  # fmt: skip


class SliceConstant(Constant):
    """A constant slice of integers and None."""

    def __init__(self, type: Type, data: slice, name: str | None = None) -> None:
        for part in (data.start, data.stop, data.step):
            if part is not None and not isinstance(part, numbers.Integral):
                raise TypeError(f"A slice is made of integers and None, not {data!r}")
        super().__init__(type, data, name)

    def signature(self) -> tuple[Any, ...]:
        # slices have no hash before Python 3.12
        return SliceConstant, self.data.start, self.data.stop, self.data.step


class SliceType(SingletonType):
    """The type of Python slices."""

    Constant = SliceConstant

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> slice:
        """Return ``data`` if it is a slice; TypeError otherwise."""
        if isinstance(data, slice):
            return data
        raise TypeError(f"Expected a slice! Got {data!r}")

    def __str__(self) -> str:
        return "slice"


class NoneTypeT(SingletonType):
    """The type whose only value is None."""

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return None if ``data`` is None; TypeError otherwise."""
        if data is None:
            return None
        raise TypeError(f"Expected None! Got {data!r}")

    @staticmethod
    def may_share_memory(a: Any, b: Any) -> bool:
        return False


slicetype = SliceType()
none_type_t = NoneTypeT()
#: the constant None; clone it for each graph
NoneConst = Constant(none_type_t, None, name="NoneConst")


class MakeSlice(Op):
    """Makes a slice of three integers, each of which may be None."""

    __props__ = ()

    def make_node(self, start: Any, stop: Any = None, step: Any = None) -> Apply:
        if isinstance(start, slice):
            start, stop, step = start.start, start.stop, start.step
        parts = [as_int_none_variable(p) for p in (start, stop, step)]
        return Apply(self, parts, [slicetype.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = slice(*(None if p is None else int(p) for p in inputs))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]] * 3

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return [disconnected_type.make_variable() for _ in inputs]


make_slice = MakeSlice()


def as_int_none_variable(x: Any) -> Var:
    """Return a part of a slice as a variable: None, or an integer as a 0-d tensor of its dtype.

    Raises TypeError for a number that is not an integer, ValueError for a variable with dimensions.
    """
    if x is None:
        return NoneConst.clone()
    if isinstance(x, Variable) and isinstance(x.type, NoneTypeT):
        return x
    x = as_tensor_variable(x, ndim=0)
    if x.type.dtype not in dtypes.INTEGERS:
        raise TypeError(f"index must be integers: a slice has the part {x} of dtype {x.type.dtype}")
    return x


def slice_variable(item: slice) -> Variable:
    """Return a slice of integers, variables and None as a variable."""
    parts = [None if p is None else known_int(p) for p in _parts(item)]
    if all(p is not None or q is None for p, q in zip(parts, _parts(item), strict=True)):
        return SliceConstant(slicetype, slice(*parts))
    result: Variable = make_slice(*(None if p is None else as_tensor(p) for p in _parts(item)))
    return result


def _parts(item: Any) -> tuple[Variable | int | None, ...]:
    return item.start, item.stop, item.step


#: a whole number: an int if it is known, otherwise a 0-d tensor
Whole: TypeAlias = "Tensor | int"

# --- whole numbers of which some are known -----------------------------------------------------


def known_int(x: Any) -> int | None:
    """Return the value of an integer or a variable as an int; None if it is not known."""
    if isinstance(x, numbers.Integral):
        return int(x)
    if not isinstance(x, Variable):
        raise TypeError(f"index must be integers, not {x!r}")
    if isinstance(x, Constant) and np.ndim(x.data) == 0 and x.data is not None:
        return int(x.data)
    if x.owner is not None and isinstance(x.owner.op, ScalarFromTensor | TensorFromScalar):
        return known_int(x.owner.inputs[0])
    return None


def as_tensor(x: Any) -> Tensor:
    """Return an integer, a scalar variable or a 0-d tensor as a 0-d tensor."""
    if isinstance(x, numbers.Integral):
        return constant(np.int64(x))
    if isinstance(x.type, Scalar):
        if isinstance(x, Constant):
            return constant(x.data)
        if x.owner is not None and isinstance(x.owner.op, ScalarFromTensor):
            result: Tensor = x.owner.inputs[0]
            return result
    return as_tensor_variable(x)


def _folding(fold: Callable[[int, int], int], name: str) -> Callable[..., Tensor | int]:
    op = elemwise(name)

    def apply(x: Whole, y: Whole) -> Tensor | int:
        if isinstance(x, int) and isinstance(y, int):
            return fold(x, y)
        return op(as_tensor(x), as_tensor(y))

    return apply


_maximum = _folding(max, "maximum")
_minimum = _folding(min, "minimum")
_plain_add = _folding(lambda x, y: x + y, "add")
_plain_sub = _folding(lambda x, y: x - y, "sub")
_floor_div = _folding(lambda x, y: x // y, "int_div")
_mul = _folding(lambda x, y: x * y, "mul")


def _add(x: Whole, y: int) -> Tensor | int:
    return x if _is(y, 0) else y if _is(x, 0) else _plain_add(x, y)


def _sub(x: Whole, y: Whole) -> Tensor | int:
    return x if _is(y, 0) else _plain_add(x, -y) if isinstance(y, int) else _plain_sub(x, y)


def _is(x: Whole, value: Any) -> bool:
    return isinstance(x, int) and x == value


#: the largest length; larger bounds and steps select the same elements
_MOST = 2**63 - 1


def _simple(x: Any) -> Tensor | int:
    """Return a known number as an int, any other as a 0-d tensor.

    Numbers beyond all lengths are clipped so that they and their negatives fit into int64.
    """
    known = known_int(x)
    if known is not None:
        return max(-_MOST, min(known, _MOST))
    x = as_tensor(x)
    if x.type.dtype == "uint64":
        return cast(elemwise("minimum")(x, constant(np.uint64(_MOST))), "int64")
    number: Tensor = x
    return number


def _bound(x: Any, length: Whole, low: int, high: Whole) -> Tensor | int:
    """Return the bound ``x`` of a slice, counted from the front and clipped to [low, high]."""
    if isinstance(x, int):
        if x >= 0:
            return 0 if x == 0 and low == 0 else _minimum(x, high)
        return _maximum(_add(length, x), low)
    if x.type.dtype not in dtypes.UNSIGNED:
        x = elemwise("switch")(elemwise("lt")(x, 0), _plain_add(x, length), x)
    return _minimum(_maximum(x, low), high)


def get_canonical_form_slice(theslice: Any, length: Any) -> tuple[Any, Any]:
    """Return (canonical, direction) with ``x[theslice]`` equal to ``x[canonical][::direction]``.

    theslice: an integer or a slice, of Python integers, 0-d integer variables and None. length:
    that of the dimension, an integer or a variable.

    The canonical form counts from the front: an index is not negative; the bounds of a slice are 0
    to ``length`` (the start may exceed the stop of an empty slice), and its step is positive. Known
    numbers are ints. ``direction`` is 1 or -1, or a variable if the sign of the step is not known.
    An index that is out of range stays out of range.

    Raises ValueError if the step is known to be 0, TypeError for a part that is neither an integer
    nor a variable; the dtypes of variables are not checked.
    """
    length = _simple(length)
    if not isinstance(theslice, slice):
        index = _simple(theslice)
        if isinstance(index, int):
            return (index if index >= 0 else _add(length, index)), 1
        shifted = _plain_add(index, length)
        return elemwise("switch")(elemwise("lt")(index, 0), shifted, index), 1
    start, stop, step = (None if p is None else _simple(p) for p in _parts(theslice))
    step = 1 if step is None else step
    if isinstance(step, int):
        if step == 0:
            raise ValueError("slice step cannot be zero")
        forms = _forward if step > 0 else _backward
        return slice(*forms(start, stop, step, length)), 1 if step > 0 else -1
    up = _forward(start, stop, step, length)
    down = _backward(start, stop, step, length)
    negative = elemwise("lt")(step, 0)
    chosen = [
        elemwise("switch")(negative, as_tensor(d), as_tensor(u))
        for d, u in zip(down, up, strict=True)
    ]
    return slice(*chosen), elemwise("switch")(negative, -1, 1)


def _forward(
    start: Whole | None, stop: Whole | None, step: Whole, length: Whole
) -> tuple[Tensor | int, ...]:
    first = 0 if start is None else _bound(start, length, 0, length)
    end = length if stop is None else _bound(stop, length, 0, length)
    return first, end, step


def _backward(
    start: Whole | None, stop: Whole | None, step: Whole, length: Whole
) -> tuple[Tensor | int, ...]:
    last = _sub(length, 1)
    first = last if start is None else _bound(start, length, -1, last)
    end = -1 if stop is None else _bound(stop, length, -1, last)
    if _is(step, -1):
        return _add(end, 1), _add(first, 1), 1
    size = _size(step, length)
    count = _steps(_sub(first, end), size)
    lowest = _sub(first, _mul(_sub(count, 1), size))
    return lowest, _add(first, 1), size


def _size(step: Whole, length: Whole) -> Tensor | int:
    """Return the size of a negative step, at most ``length`` + 1.

    A longer step selects the same single element, but could overflow the sums below.
    """
    if isinstance(step, int) and -step < 2**31:
        return -step
    size = -step if isinstance(step, int) else elemwise("neg")(_maximum(step, -_MOST))
    return _minimum(size, _add(length, 1))


def _steps(distance: Whole, size: Tensor | int) -> Tensor | int:
    """Return ceil(distance / size), 0 for a negative distance."""
    if _is(size, 1):
        return _maximum(distance, 0)
    # distance + size could overflow int64
    return _maximum(_add(_floor_div(_sub(distance, 1), size), 1), 0)


def slice_length(theslice: slice, length: Any) -> Tensor:
    """Return how many elements of a dimension a slice selects, as an int64 tensor."""
    length = _simple(length)
    bounds: list[Any] = [None if p is None else _simple(p) for p in _parts(theslice)]
    start, stop, step = bounds
    if start is None and stop is None and step in (None, 1, -1):
        count = length
    elif step in (None, 1) and stop is None and isinstance(start, int):
        count = _maximum(_sub(length, start), 0) if start >= 0 else _minimum(-start, length)
    elif step in (None, 1) and _is_natural(start or 0) and _is_natural(stop):
        rest = _maximum(_sub(length, start or 0), 0) if start else length
        count = _minimum(rest, max(stop - (start or 0), 0))
    else:
        (canonical, _) = get_canonical_form_slice(slice(start, stop, step), length)
        count = _sub(canonical.stop, canonical.start)
        if not (_is(canonical.start, 0) and _is(canonical.step, 1)):
            count = _steps(count, canonical.step)
    return cast(as_tensor(count), "int64")


def _is_natural(x: Whole) -> bool:
    return isinstance(x, int) and x >= 0


def keeps_one(theslice: slice) -> bool:
    """Return whether a slice is known to select the element of a dimension of length 1.

    Only slices that start at 0 or None are looked at.
    """
    parts = [None if p is None else known_int(p) for p in _parts(theslice)]
    if any(k is None and p is not None for k, p in zip(parts, _parts(theslice), strict=True)):
        return False
    start, stop, step = parts
    if step == 0 or start not in (None, 0):
        return False
    return len(range(*slice(start, stop, step).indices(1))) == 1
