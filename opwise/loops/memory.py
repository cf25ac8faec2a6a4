"""Arrays of any length in the scalar program of a step: they stay in memory.

``Held`` is a view of an operand of the C function. Elements that a step reads and writes are
instructions; so nothing of an array is copied from step to step, however many loops are around the
step.

What one Apply writes, an Apply before it may not read afterwards. Each write makes a new version of
its operand, and what is a view of an earlier one is of no use from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.variable import Constant
from opwise.scalar.recurrence import Fails, Length, Read, Write
from opwise.tensor.convert import DeepCopyOp, ViewOp
from opwise.tensor.creation import ARange
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.shape import Rebroadcast, Shape, Shape_i
from opwise.tensor.subtensor import IncSubtensor, Subtensor

if TYPE_CHECKING:
    from opwise.loops.small import Program, Slots


class NotSmall(Exception):
    """A step is no program of few scalar operations."""


@dataclass(frozen=True)
class Held:
    """A view of an operand in memory."""

    operand: int
    dtype: str
    #: how often the operand had been written when this was a view of it
    version: int
    #: the slots of indices of the operand's dimensions; None for those of the view
    fixed: tuple[int | None, ...]
    #: the operand's dimension for each of the view's; None for one of length 1
    dims: tuple[int | None, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it has the elements of the operand, in their order."""
        return [d for d in self.dims if d is not None] == list(range(len(self.fixed)))

    def length(self, p: Program, d: int) -> int:
        """Append the length of a dimension; return its slot."""
        dim = self.dims[d]
        return p.literal(1) if dim is None else p.mark(Length(self.operand, dim), (), "int64")

    def at(self, p: Program, d: int, index: int) -> Held:
        """Return the part of a dimension at an index; p fails where it is out of bounds."""
        dim = self.dims[d]
        dims = self.dims[:d] + self.dims[d + 1 :]
        if dim is None:
            if not p.is_number(index, 0) and not p.is_number(index, -1):
                zero = p.literal(0)
                p.mark(Fails(), [p.one("neq", index, zero, dtype="bool")], "bool")
            return replace(self, dims=dims)
        fixed = (*self.fixed[:dim], index, *self.fixed[dim + 1 :])
        return replace(self, fixed=fixed, dims=dims)

    def element(self, p: Program) -> int:
        """Append the reading of the one element of a view; return its slot."""
        return p.mark(Read(self.operand), self._index(p), self.dtype)

    def write(self, p: Program, slot: int) -> None:
        """Append the writing of the one element of a view."""
        p.mark(Write(self.operand), [*self._index(p), slot], self.dtype)

    def _index(self, p: Program) -> list[int]:
        if p.versions[self.operand] != self.version:
            raise NotSmall  # the array that the step reads is no longer there
        index = [slot for slot in self.fixed if slot is not None]
        if len(index) < len(self.fixed):
            raise NotSmall
        return index


@dataclass(frozen=True)
class Range:
    """The numbers of a range."""

    start: int
    step: int
    count: int
    dtype: str

    @property
    def dims(self) -> tuple[None]:
        return (None,)

    def length(self, p: Program, d: int) -> int:
        return self.count

    def at(self, p: Program, d: int, index: int) -> Slots:
        """Return a number of the range; the index is one that it has."""
        times = p.one("mul", index, self.step, dtype="int64")
        slot = p.one("add", self.start, times, dtype="int64")
        return p.cast(np.array(slot, np.int64), self.dtype)


def index_slot(p: Program, value: Any, dtype: str) -> int:
    """Return the slot of an index as int64."""
    if not isinstance(value, np.ndarray) or value.ndim or not dtype.startswith(("int", "uint")):
        raise NotSmall
    return int(p.cast(value, "int64"))


# --- Applys ---------------------------------------------------------------------------------------

_Handler = Callable[..., Any]
_handlers: dict[type, _Handler] = {}


def handler(op: Any) -> _Handler | None:
    """Return what appends an Apply of an op to arrays in memory; None if nothing does."""
    return next((_handlers[c] for c in type(op).__mro__ if c in _handlers), None)


def _on(*op_classes: type) -> Callable[[_Handler], _Handler]:
    def register(function: _Handler) -> _Handler:
        for cls in op_classes:
            _handlers[cls] = function
        return function

    return register


@_on(DimShuffle)
def _moved(p: Program, node: Apply, x: Held) -> Held:
    if not isinstance(x, Held):
        raise NotSmall
    order = node.op.new_order
    fixed = list(x.fixed)
    for d, dim in enumerate(x.dims):
        if d not in order and dim is not None:
            fixed[dim] = p.literal(0)  # its type says that it has one element
    dims = tuple(x.dims[o] if isinstance(o, int) else None for o in order)
    return replace(x, fixed=tuple(fixed), dims=dims)


@_on(Rebroadcast, DeepCopyOp, ViewOp)
def _same(p: Program, node: Apply, x: Any) -> Any:
    return x


@_on(Subtensor)
def _part(p: Program, node: Apply, x: Any, *numbers: Slots) -> Any:
    found = _view(p, node.op, x, node.inputs[1:], numbers)
    if isinstance(found, Held) and not found.dims:
        return np.array(found.element(p), np.int64)
    return found


def _view(p: Program, op: Any, x: Any, variables: Sequence[Any], numbers: Sequence[Slots]) -> Any:
    """Return the part of an array that an index names."""
    given = iter(zip(variables, numbers, strict=True))
    d = 0
    for entry in op.idx_list:
        if isinstance(entry, slice):
            if (entry.start, entry.stop, entry.step) != (None, None, None):
                raise NotSmall
            d += 1
            continue
        var, value = next(given)
        index = index_slot(p, value, var.type.dtype)
        if isinstance(x, Range):
            if p.is_number(index, -1):
                index = p.one("sub", x.count, p.literal(1))
            elif not isinstance(var, Constant):
                raise NotSmall
            bad = p.one("ge", index, x.count, dtype="bool")
            p.mark(Fails(), [p.one("or_", bad, p.one("lt", index, p.literal(0), dtype="bool"),
                                   dtype="bool")], "bool")  # fmt: skip
        x = x.at(p, d, index)
    return x


@_on(IncSubtensor)
def _changed(p: Program, node: Apply, x: Held, y: Any, *numbers: Slots) -> Held:
    if not isinstance(x, Held) or not isinstance(y, np.ndarray) or y.ndim:
        raise NotSmall
    place = _view(p, node.op, x, node.inputs[2:], numbers)
    new = int(p.cast(y, x.dtype))
    if place.dims:
        raise NotSmall
    if not node.op.set_instead_of_inc:
        old = place.element(p)
        new = p.one("add", old, new, dtype=x.dtype)
    place.write(p, new)
    return replace(x, version=p.written(x.operand))


@_on(Shape_i)
def _length(p: Program, node: Apply, x: Any) -> Slots:
    return np.array(x.length(p, node.op.i), np.int64)


@_on(Shape)
def _shape(p: Program, node: Apply, x: Any) -> Slots:
    return np.array([x.length(p, d) for d in range(len(x.dims))], np.int64)


def arange(p: Program, node: Apply, *numbers: Slots) -> Range:
    """Append a range of integers."""
    assert isinstance(node.op, ARange)
    start, stop, step = (
        index_slot(p, value, var.type.dtype)
        for value, var in zip(numbers, node.inputs, strict=True)
    )
    zero = p.literal(0)
    if p.is_number(step, 1):
        count = p.one("sub", stop, start) if not p.is_number(start, 0) else stop
    else:
        if not p.has_number(step):
            p.mark(Fails(), [p.one("eq", step, zero, dtype="bool")], "bool")
        back = p.one("int_div", p.one("sub", start, stop), step, dtype="int64")
        count = p.one("sub", zero, back)
    return Range(start, step, p.one("maximum", count, zero), node.op.dtype)
