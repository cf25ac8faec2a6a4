"""The scalar program of a step: what Applys are appended to.

Numbers and small arrays are in registers: an array of ``Slots``, one for each element. ``Held`` is
a view of an operand of the C function that stays in memory, ``Each`` an array whose elements are
computed where they are read (see ``memory``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from math import prod
from typing import Any, cast

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.linkers.lowering import LOOP_DTYPES
from opwise.loops.op import Scan
from opwise.scalar.composite import Composite, append_inlined
from opwise.scalar.dtypes import INTEGERS
from opwise.scalar.op import OPS, Cast, ScalarOp, cast_op
from opwise.scalar.program import Instruction, Literal, Mark, Program
from opwise.scalar.recurrence import (
    SUM,
    Branches,
    Carried,
    Chosen,
    Closes,
    Fails,
    Joins,
    Length,
    Opens,
    Otherwise,
    Read,
    ReadUnless,
    Row,
    Scratch,
    Short,
    Write,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar, ViewOp
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.ifelse import IfElse
from opwise.tensor.shape import Rebroadcast, Shape_i
from opwise.tensor.subtensor import IncSubtensor, Subtensor

#: the most elements of an array, and the most operations of a program: beyond them, the VM's
#: kernels are as fast, and C compilers are slow
MAX_ELEMENTS = 16
MAX_INSTRUCTIONS = 3000
#: the most steps ago that a value may be from: they are all in variables
MAX_TAP = 8
#: loops of so many steps or fewer are not worth a compilation; inner ones are unrolled
FEW_STEPS = 16
#: how many steps loops over arrays may have in all, those that add, those that carry another value
#: on, and those that call functions of the math library, which do not hold several steps in a
#: vector: beyond them, the VM's kernels are faster
SHORT, SHORT_SUM, SHORT_FOLD, SHORT_OF_FUNCTIONS = 4096, 512, 256, 64
#: how long a step may take, nanoseconds: signals are handled between steps
MAX_NS = 1e6
#: loops over a dimension of so many elements or fewer are written one after the other
MAX_UNROLLED = 4
#: the largest systems of equations: with more, a choice of the pivot takes too many operations
MAX_SYSTEM = 3

#: dtypes of numbers that C computes with as they are
C_DTYPES = LOOP_DTYPES - {"float16"}

#: the slots of the elements of an array
Slots = np.ndarray
#: an Apply of IfElse, and which of its branches; None where all is computed
_Branch = tuple[Apply, int] | None


class NotSmall(Exception):
    """A step is no program of few scalar operations."""


class Overlaps(NotSmall):
    """A loop would read elements that it writes, in other steps."""


# --- values in memory ---------------------------------------------------------------------------


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
    #: by dimension of the operand, the slots (start, step, length) of what the view has of it
    parts: tuple[tuple[int, int, int] | None, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it has the elements of the operand, in their order."""
        dims = [d for d in self.dims if d is not None]
        return dims == list(range(len(self.fixed))) and not any(self.parts)

    def length(self, p: Builder, d: int) -> int:
        """Append the length of a dimension; return its slot."""
        dim = self.dims[d]
        if dim is None:
            return p.literal(1)
        part = self.parts[dim]
        return p.length(self.operand, dim) if part is None else part[2]

    def at(self, p: Builder, d: int, index: int) -> Held:
        """Return the part of a dimension at an index; p fails where it is out of bounds."""
        dim = self.dims[d]
        dims = self.dims[:d] + self.dims[d + 1 :]
        if dim is None:
            of_one = index in p.counters and p.is_number(p.counters[index], 1)
            if not of_one and not any(p.is_number(index, i) for i in (0, -1)):
                raise NotSmall
            return replace(self, dims=dims)
        part = self.parts[dim]
        if part is not None:
            index = p.affine(part[0], index, part[1])
        fixed = (*self.fixed[:dim], index, *self.fixed[dim + 1 :])
        return replace(self, fixed=fixed, dims=dims)

    def part(self, p: Builder, d: int, start: int, step: int, length: int) -> Held:
        """Return the view of a part of a dimension, which the operand has."""
        dim = self.dims[d]
        if dim is None:
            raise NotSmall
        outer = self.parts[dim]
        if outer is not None:
            start = p.affine(outer[0], start, outer[1])
            step = p.affine(p.literal(0), step, outer[1])
        parts = (*self.parts[:dim], (start, step, length), *self.parts[dim + 1 :])
        if p.has_number(step) and not p.is_of_data(length) and self.operand < p.n_operands:
            p.bounds.setdefault(length, {(self.operand, dim)})
        return replace(self, parts=parts)

    def element(self, p: Builder) -> int:
        """Append the reading of the one element of a view; return its slot."""
        index = self._index(p)
        looked = self._looked(p, index)
        if p.guards is None or not any(looked):
            return p.mark(Read(self.operand, *looked), index, self.dtype)
        zero = p.literal(0)
        for d, i in enumerate(index):
            n = p.length(self.operand, d)
            back = p.one("lt", i, zero, dtype="bool")
            j = index[d] = p.one("switch", back, p.one("add", i, n), i, dtype="int64")
            low, high = p.one("lt", j, zero, dtype="bool"), p.one("ge", j, n, dtype="bool")
            p.guards.append(p.one("or_", low, high, dtype="bool"))
        outside = p.fold("or_", p.guards)
        return p.mark(ReadUnless(self.operand), [outside, *index], self.dtype)

    def write(self, p: Builder, slot: int) -> None:
        """Append the writing of the one element of a view."""
        index = self._index(p)
        p.mark(Write(self.operand, *self._looked(p, index)), [*index, slot], self.dtype)

    def _looked(self, p: Builder, index: Sequence[int]) -> list[bool]:
        """Return by dimension whether an index may be one that the operand does not have."""
        return [p.counters.get(i) != p.length(self.operand, d) for d, i in enumerate(index)]

    def _index(self, p: Builder) -> list[int]:
        if p.versions[self.operand] != self.version:
            raise NotSmall  # the array that the step reads is no longer there
        index = [slot for slot in self.fixed if slot is not None]
        if len(index) < len(self.fixed):
            raise NotSmall
        if p.written_now is not None and p.written_now[0] == self.operand:
            # of what a loop writes, a step may read what it writes itself, or nothing
            if any(
                own not in (None, slot) for slot, own in zip(index, p.written_now[1], strict=True)
            ):
                raise Overlaps
        return index


@dataclass(frozen=True)
class Each:
    """An array whose elements are computed where they are read."""

    dtype: str
    #: the slots of its lengths
    lengths: tuple[int, ...]
    #: appends an element, from the slots of its indices; returns its slot
    computed: Callable[[Sequence[int]], int]
    #: about how many nanoseconds an element takes, without those of what it is computed from
    cost: float = 0.0

    @property
    def dims(self) -> tuple[int, ...]:
        return self.lengths

    def length(self, p: Builder, d: int) -> int:
        return self.lengths[d]


def element(p: Builder, x: Any, index: Sequence[int]) -> int:
    """Append an element of an array; return its slot. index: slots of indices that it has."""
    if isinstance(x, Each):
        return x.computed(index)
    if isinstance(x, np.ndarray):
        known = [
            0 if n == 1 else int(p.number(np.array(i))) for n, i in zip(x.shape, index, strict=True)
        ]
        return int(x[tuple(known)])
    for one in index:
        x = x.at(p, 0, one)
    found: int = x.element(p)
    return found


def whole_range(p: Builder, start: int, step: int, count: int, dtype: str) -> Each:
    """Return the numbers of a range."""
    return Each(dtype, (count,), lambda index: converted(p, p.affine(start, index[0], step), dtype))


def converted(p: Builder, slot: int, dtype: str) -> int:
    """Append a conversion where one is needed; return its slot."""
    return int(p.cast(np.array(slot, np.int64), dtype))


# --- who appends what ----------------------------------------------------------------------------

Handler = Callable[..., Any]
_for_registers: dict[type, Handler] = {}
_for_memory: dict[type, Handler] = {}


def on_registers(*op_classes: type) -> Callable[[Handler], Handler]:
    """Register what appends Applys of some Ops to values in registers.

    It is called with (program, Apply, slots of each input), and returns those of each output.
    """
    return partial(_registered, _for_registers, op_classes)


def on_memory(*op_classes: type) -> Callable[[Handler], Handler]:
    """Register what appends Applys of some Ops of which an input is ``Held`` or ``Each``."""
    return partial(_registered, _for_memory, op_classes)


def _registered(
    table: dict[type, Handler], op_classes: Sequence[type], handler: Handler
) -> Handler:
    table.update(dict.fromkeys(op_classes, handler))
    return handler


def _find(table: dict[type, Handler], op: Any) -> Handler | None:
    return next((table[c] for c in type(op).__mro__ if c in table), None)


def can_append(op: Any) -> bool:
    """Return whether something appends Applys of an op."""
    return isinstance(op, ScalarOp) or bool(_find(_for_registers, op) or _find(_for_memory, op))


# --- the program ---------------------------------------------------------------------------------


class Builder:
    """A scalar program that grows by the operations of one Apply after the other."""

    def __init__(self, in_dtypes: Sequence[str], n_constants: int, n_operands: int) -> None:
        self.in_dtypes = in_dtypes
        #: how many input slots, the last ones, have the same value in all steps
        self._n_constants = n_constants
        #: how many arrays may be in memory: operands, and behind them those of a step
        self._n_arrays = self.n_operands = n_operands
        self.instructions: list[Instruction] = []
        #: the slots of conditions that leave a step to the VM
        self.leaves: list[int] = []
        #: the operands in memory -> how often they were written
        self.versions: dict[int, int] = {}
        #: those that may be written
        self.writable: set[int] = set()
        #: where what is computed may not be needed: the conditions on which it fails
        self.guards: list[int] | None = None
        #: whether another Apply will read what the present one overwrites
        self.keeps = False
        #: the operand that a loop writes, and the slots of its indices in the loop
        self.written_now: tuple[int, list[int | None]] | None = None
        #: dimensions (operand, number) -> how many elements they may have in all
        self.limits: dict[tuple[tuple[int, int], ...], int] = {}
        #: slots of lengths -> dimensions of operands that are as long at least
        self.bounds: dict[int, set[tuple[int, int]]] = {}
        #: the slots of indices of loops over dimensions -> those of the numbers of steps
        self.counters: dict[int, int] = {}
        #: the input slots of numbers that grow evenly from step to step
        self.numbers_of_steps: set[int] = set()
        #: the numbers of steps of the loops around this place
        self._counts: list[int] = []
        self._lengths: dict[tuple[int, int], int] = {}
        #: the slots of operations that stand in this block or around it
        self._found: dict[Any, int] = {}

    def held(self, operand: int, dtype: str, ndim: int) -> Held:
        """Return a view of all of an operand in memory."""
        version = self.versions.setdefault(operand, 0)
        return Held(operand, dtype, version, (None,) * ndim, tuple(range(ndim)), (None,) * ndim)

    def scratch(self, lengths: Sequence[int], dtype: str) -> Held:
        """Append an array of the step; return a view of all of it."""
        operand = self._n_arrays
        self._n_arrays += 1
        self.mark(Scratch(operand), lengths, dtype)
        self._lengths.update({(operand, d): slot for d, slot in enumerate(lengths)})
        self.writable.add(operand)
        return self.held(operand, dtype, len(lengths))

    def row(self, of: int, lengths: Sequence[int], dtype: str) -> Held:
        """Append the row that a step writes of an operand that keeps several; return it.

        lengths: slots of lengths that are those of its rows.
        """
        operand = self._n_arrays
        self._n_arrays += 1
        self.mark(Row(operand, of), (), dtype)
        self._lengths.update({(operand, d): slot for d, slot in enumerate(lengths)})
        self.writable.add(operand)
        return self.held(operand, dtype, len(lengths))

    def origin(self, slot: int) -> tuple[int, int]:
        """Return (operand, dimension) of the length that a slot holds; raises NotSmall for others.

        It is (-1, n) if the length is known.
        """
        if self.has_number(slot):
            return -1, self._number(slot)
        k = slot - len(self.in_dtypes)
        op = self.instructions[k].op if k >= 0 else None
        if not isinstance(op, Length) or op.of[0] >= self.n_operands:
            raise NotSmall
        operand, d = cast("tuple[int, int]", op.of)
        return operand, d

    def length(self, operand: int, d: int) -> int:
        """Append the length of an operand; return its slot."""
        slot = self._lengths.get((operand, d))
        if slot is None:
            slot = self._lengths[operand, d] = self.mark(Length(operand, d), (), "int64")
            self.bounds[slot] = {(operand, d)}
        return slot

    def bounds_of(self, slot: int) -> set[tuple[int, int]]:
        """Return dimensions that are as long as a slot says, or longer."""
        return self.bounds.get(slot, set())

    def affine(self, start: int, index: int, step: int) -> int:
        """Append ``start + index * step``; return its slot."""
        slot = index if self.is_number(step, 1) else self.one("mul", index, step, dtype="int64")
        return slot if self.is_number(start, 0) else self.one("add", start, slot, dtype="int64")

    def branch(self, op: ScalarOp, args: Sequence[int]) -> None:
        """Append a mark of a branch: what one computes is not known outside."""
        self.mark(op, args, "bool")
        self._found.clear()

    def fail_if(self, condition: int) -> None:
        """Let the step fail where a condition holds."""
        if self.guards is None:
            self.mark(Fails(), [condition], "bool")
        else:
            self.guards.append(condition)

    def check_equal(self, n: int, m: int) -> None:
        """Let the step fail where two lengths differ."""
        if n != m and not (self.has_number(n) and self.is_number(m, self._number(n))):
            self.fail_if(self.one("neq", n, m, dtype="bool"))

    @contextmanager
    def short_loop(self, count: int, *carried: int, is_sum: bool = False) -> Iterator[Any]:
        """Append a loop over a short dimension around what is appended inside.

        Yields the slot of the index; if values are carried on, (it, the slot of the value, a list
        that takes the slot of the new one). It is limited how many steps loops in each other have.
        is_sum: what is carried on is a sum, in any order.
        """
        new: list[int] = []
        mark = Carried(SUM) if is_sum else Carried()
        slots = [self.mark(mark, [slot], self.dtype(slot)) for slot in carried]
        known = self._number(count) if self.has_number(count) else None
        begin = len(self.instructions)
        index = self.mark(Opens(known), [] if known is not None else [count], "int64")
        self.counters[index] = count
        self._counts.append(count)
        yield (index, slots[0], new) if carried else index
        self.mark(Closes(len(slots)), [*slots, *new], "int64")
        most = SHORT_SUM if is_sum else SHORT_FOLD if carried else SHORT
        if self._calls_functions(begin):
            most = SHORT_OF_FUNCTIONS
        # the length of what differs from step to step is not known, and mostly small
        counts = [n for n in self._counts if self.bounds_of(n) or not self._differs(n)]
        self._counts.pop()
        unknown = [n for n in counts if not self.has_number(n)]
        number = prod(self._number(n) for n in counts if n not in unknown)
        if number > most:
            raise NotSmall
        if all(map(self.bounds_of, unknown)):
            dimensions = tuple(sorted(min(self.bounds_of(n)) for n in unknown))
            most //= max(number, 1)
            if dimensions:
                self.limits[dimensions] = min(most, self.limits.get(dimensions, most))
            return
        every = self.literal(number)
        for n in unknown:
            every = self.one("mul", every, n, dtype="int64")
        self.mark(Short(most), [every], "bool")

    def _calls_functions(self, begin: int) -> bool:
        """Return whether the block that begins at an instruction calls functions of a library.

        Those in blocks inside of it do not count.
        """
        depth = 0
        for one in self.instructions[begin:]:
            depth += isinstance(one.op, Opens) - isinstance(one.op, Closes)
            if depth == 1 and one.op.row is not None and one.op.row.libm:
                return True
        return False

    def _differs(self, slot: int) -> bool:
        """Return whether a value may differ between steps."""
        first = len(self.in_dtypes) - self._n_constants
        return any(
            one < first if op is None else not isinstance(op, Length)
            for one, op in self._computed_of(slot)
        )

    def is_of_data(self, slot: int) -> bool:
        """Return whether a value is computed of what arrays have for each step.

        Lengths of such parts are mostly short, however long the arrays are: rows of sparse
        matrices, neighbours.
        """
        first = len(self.in_dtypes) - self._n_constants
        return any(
            (one < first and one not in self.numbers_of_steps)
            if op is None
            else isinstance(op, Read | ReadUnless)
            for one, op in self._computed_of(slot)
        )

    def _computed_of(self, slot: int) -> Iterator[tuple[int, Mark | None]]:
        """Yield (slot, mark) of what a value is computed of: inputs, which have none, and marks."""
        n = len(self.in_dtypes)
        seen, pending = {slot}, [slot]
        while pending:
            slot = pending.pop()
            one = self.instructions[slot - n] if slot >= n else None
            if one is None:
                yield slot, None
            elif isinstance(one.op, Mark):
                yield slot, one.op
            else:
                pending += [arg for arg in one.args if arg not in seen]
                seen.update(one.args)

    def written(self, operand: int) -> int:
        """Note that an operand in memory was written; return its version."""
        if operand not in self.writable:
            raise NotSmall
        self.versions[operand] += 1
        return self.versions[operand]

    def run(self, node: Apply, values: list[Any]) -> list[Any]:
        """Append the operations of an Apply; return its outputs: slots, or what is in memory."""
        if not all(isinstance(value, np.ndarray) for value in values):
            in_memory = _find(_for_memory, node.op)
            if in_memory is None:
                raise NotSmall
            found = in_memory(self, node, *values)
            return found if isinstance(found, list) else [found]
        if isinstance(node.op, ScalarOp):
            return self.elementwise(node.op, [v.type.dtype for v in node.outputs], values)
        handler = _find(_for_registers, node.op)
        if handler is None:
            raise NotSmall
        found = handler(self, node, *values)
        return found if isinstance(found, list) else [found]

    def graph(self, graph: FunctionGraph, inputs: Sequence[Any]) -> list[Any]:
        """Append the operations of a graph; return its outputs: slots, or what is in memory."""
        return Run(self, graph, inputs).outputs()

    def mark(self, op: ScalarOp, args: Sequence[int], dtype: str) -> int:
        """Append a part of an inner loop; return its slot."""
        if isinstance(op, Closes):
            self._found.clear()  # what it carries has changed
        return append_inlined(self.instructions, len(self.in_dtypes), op, args, dtype)[0]

    def state(self) -> dict[str, Any]:
        """Return what ``take_back`` needs to remove all that is appended from here on."""
        return {name: copy(value) for name, value in vars(self).items()}

    def take_back(self, state: dict[str, Any]) -> None:
        """Become what the program was."""
        vars(self).update(state)

    def emit(self, op: ScalarOp, args: Sequence[int], dtype: str) -> list[int]:
        """Append an operation on slots; return the slots of its outputs."""
        parts = Program.of(op, (), [dtype]).instructions
        if len(self.instructions) + len(parts) > MAX_INSTRUCTIONS or any(
            part.op.row is None and not isinstance(part.op, Cast | Literal) for part in parts
        ):
            raise NotSmall
        if isinstance(op, Composite):
            return append_inlined(self.instructions, len(self.in_dtypes), op, args, dtype)
        key = op, tuple(args), dtype
        if key not in self._found:
            self._found[key] = self.mark(op, args, dtype)
        return [self._found[key]]

    def one(self, name: str, *args: Any, dtype: str | None = None) -> int:
        """Append the operation of a name; return the slot of its output."""
        slots = [int(a) for a in args]
        return self.emit(OPS[name], slots, dtype or self.dtype(slots[-1]))[0]

    def dtype(self, slot: int) -> str:
        n = len(self.in_dtypes)
        return self.in_dtypes[slot] if slot < n else self.instructions[slot - n].dtype

    def literal(self, n: int) -> int:
        """Append an integer; return its slot."""
        return int(self.constant(np.array(n, np.int64)))

    def constant_of(self, data: np.ndarray) -> Any:
        """Append a constant: numbers in registers, or a range."""
        found = self.range_of(data) if data.size > MAX_ELEMENTS else None
        return self.constant(data) if found is None else found

    def range_of(self, data: np.ndarray) -> Each | None:
        """Append a vector of integers that is a range; None for others."""
        steps = np.diff(data) if data.ndim == 1 else np.zeros(0)
        if not steps.size or data.dtype.name not in INTEGERS or (steps != steps[0]).any():
            return None
        first, step, count = map(self.literal, (data[0], steps[0], len(data)))
        return whole_range(self, first, step, count, data.dtype.name)

    def constant(self, data: np.ndarray) -> Slots:
        if data.size > MAX_ELEMENTS or data.dtype.name not in C_DTYPES:
            raise NotSmall
        slots = [self.emit(Literal(x), (), data.dtype.name)[0] for x in data.ravel()]
        return np.array(slots, np.int64).reshape(data.shape)

    def number(self, slots: Slots) -> np.ndarray:
        """Return the value of an array of constants; raises NotSmall for others."""
        found = []
        for slot in slots.ravel():
            k = int(slot) - len(self.in_dtypes)
            op = self.instructions[k].op if k >= 0 else None
            if not isinstance(op, Literal):
                raise NotSmall
            found.append(op.value)
        return np.array(found, np.int64).reshape(slots.shape)

    def _number(self, slot: int) -> int:
        op = self.instructions[slot - len(self.in_dtypes)].op
        assert isinstance(op, Literal)
        return int(op.value)

    def number_of(self, value: int, dtype: str) -> int:
        """Append a number of a dtype; return its slot."""
        return int(self.constant(np.array(value, dtype)))

    def zero(self, dtype: str) -> int:
        return self.number_of(0, dtype)

    def is_less(self, slot: int, than: int) -> bool:
        """Return whether a slot holds a constant that is less."""
        return self.has_number(slot) and self._number(slot) < than

    def has_number(self, slot: Any) -> bool:
        """Return whether a slot holds a constant."""
        k = int(slot) - len(self.in_dtypes)
        return k >= 0 and isinstance(self.instructions[k].op, Literal)

    def is_number(self, slot: Any, value: float) -> bool:
        k = int(slot) - len(self.in_dtypes)
        op = self.instructions[k].op if k >= 0 else None
        return isinstance(op, Literal) and op.value == value

    def cast(self, slots: Slots, dtype: str) -> Slots:
        def converted(slot: int) -> int:
            if self.dtype(slot) == dtype:
                return slot
            if self.has_number(slot) and dtype in INTEGERS and self.dtype(slot) in INTEGERS:
                return self.number_of(self._number(slot), dtype)
            return self.emit(cast_op(dtype), [slot], dtype)[0]

        return np.array([converted(int(s)) for s in slots.ravel()], np.int64).reshape(slots.shape)

    def elementwise(
        self, op: ScalarOp, dtypes: Sequence[str], values: Sequence[Slots]
    ) -> list[Slots]:
        """Append an operation for each element of arrays that broadcast."""
        operands = np.broadcast_arrays(*values)
        results = [np.empty(operands[0].shape, np.int64) for _ in dtypes]
        for index in np.ndindex(*operands[0].shape):
            slots = self.emit(op, [int(x[index]) for x in operands], dtypes[0])
            for result, slot in zip(results, slots, strict=True):
                result[index] = slot
        return results

    def fold(self, name: str, slots: Sequence[int]) -> int:
        """Append what joins elements one after the other."""
        total = int(slots[0])
        for slot in slots[1:]:
            total = self.one(name, total, slot)
        return total

    def product(self, x: Slots, y: Slots) -> Slots:
        """Append the product of vectors or matrices."""
        if x.ndim > 2 or y.ndim > 2 or x.ndim == 0 or y.ndim == 0 or x.shape[-1] != y.shape[0]:
            raise NotSmall
        rows, columns = np.atleast_2d(x), y.reshape(len(y), -1)
        if not x.shape[-1]:
            raise NotSmall
        found = [
            self.fold("add", [self.one("mul", a, b) for a, b in zip(row, column, strict=True)])
            for row in rows
            for column in columns.T
        ]
        return np.array(found, np.int64).reshape((*x.shape[:-1], *y.shape[1:]))

    def scaled(self, factor: Any, slots: Slots) -> Slots:
        """Append the product of an array and a number."""
        if self.is_number(factor, 1):
            return slots
        times = np.vectorize(lambda s: self.one("mul", factor, s), otypes=[np.int64])
        found: Slots = times(slots)
        return found

    def added(self, z: Slots, beta: Any, product: Slots) -> Slots:
        """Append ``beta * z + product``."""
        if z.shape != product.shape:
            raise NotSmall
        if self.is_number(beta, 0):
            return product
        plus = np.vectorize(lambda a, b: self.one("add", a, b), otypes=[np.int64])
        found: Slots = plus(self.scaled(beta, z), product)
        return found

    def solution(self, a: Slots, b: Slots) -> Slots:
        """Append an elimination with partial pivoting; the VM solves what is singular or NaN."""
        n = len(a)
        if a.shape != (n, n) or n > MAX_SYSTEM or len(b) != n or not n:
            raise NotSmall
        rows = [
            [*map(int, row), *map(int, np.atleast_1d(rest))] for row, rest in zip(a, b, strict=True)
        ]
        if n == 2:
            return self._solution_of_two(rows).reshape(b.shape)
        dtype = self.dtype(rows[0][0])
        zero, most = (int(self.constant(np.array(x, dtype))) for x in (0, np.inf))
        size = self.fold("add", [self.one("abs_", x) for row in rows for x in row])
        self.leaves.append(self.one("invert", self.one("lt", size, most, dtype="bool")))
        for k in range(n):
            for other in range(k + 1, n):
                larger = self.one(
                    "gt",
                    self.one("abs_", rows[other][k]),
                    self.one("abs_", rows[k][k]),
                    dtype="bool",
                )
                first, second = rows[k], rows[other]
                rows[k] = [
                    self.one("switch", larger, y, x) for x, y in zip(first, second, strict=True)
                ]
                rows[other] = [
                    self.one("switch", larger, x, y) for x, y in zip(first, second, strict=True)
                ]
            self.leaves.append(
                self.one("invert", self.one("gt", self.one("abs_", rows[k][k]), zero, dtype="bool"))
            )
            for other in range(k + 1, n):
                factor = self.one("true_div", rows[other][k], rows[k][k])
                rows[other] = [
                    self.one("sub", x, self.one("mul", factor, y)) if j > k else x
                    for j, (x, y) in enumerate(zip(rows[other], rows[k], strict=True))
                ]
        for k in reversed(range(n)):
            for j in range(n, len(rows[k])):
                total = rows[k][j]
                for other in range(k + 1, n):
                    total = self.one("sub", total, self.one("mul", rows[k][other], rows[other][j]))
                rows[k][j] = self.one("true_div", total, rows[k][k])
        return np.array([row[n:] for row in rows], np.int64).reshape(b.shape)

    def _solution_of_two(self, rows: list[list[int]]) -> Slots:
        """Append Cramer's rule; the VM solves systems whose determinant loses digits."""
        (a, b, *first), (c, d, *second) = rows
        dtype = self.dtype(a)
        part = int(self.constant(np.array(1 / 64, dtype)))
        most = int(self.constant(np.array(np.inf, dtype)))
        ad, bc = self.one("mul", a, d), self.one("mul", b, c)
        det = self.one("sub", ad, bc)
        size = self.one("add", self.one("abs_", ad), self.one("abs_", bc))
        least = self.one("mul", part, size)
        # what is infinite or NaN makes one of them so
        every = self.fold("add", [self.one("abs_", x) for x in (size, *first, *second)])
        precise = self.one("gt", self.one("abs_", det), least, dtype="bool")
        finite = self.one("lt", every, most, dtype="bool")
        self.leaves.append(self.one("invert", self.one("and_", precise, finite, dtype="bool")))
        found = []
        for row, (p, q) in (((d, b), (0, 1)), ((a, c), (1, 0))):
            given = first, second
            found.append(
                [
                    self.one(
                        "true_div",
                        self.one("sub", self.one("mul", row[0], x), self.one("mul", row[1], y)),
                        det,
                    )
                    for x, y in zip(given[p], given[q], strict=True)
                ]
            )
        return np.array(found, np.int64)


#: Ops whose output is a part of their first input
VIEWS = (Assert, DimShuffle, Rebroadcast, ViewOp, Subtensor)


def _overwritten(node: Apply) -> Sequence[Var]:
    """Return the inputs of an Apply that may be arrays in memory which it writes."""
    if isinstance(node.op, IncSubtensor):
        return node.inputs[:1]
    if isinstance(node.op, Scan):
        states = node.op.layout.loop_inputs(node.inputs[1:]).states
        return [first for (first,) in states]
    return ()


def root_of(var: Var) -> Var:
    """Return the array that a variable is a part of; an element is a number of its own."""
    while var.owner is not None and isinstance(var.owner.op, VIEWS):
        if isinstance(var.owner.op, Subtensor) and not var.type.ndim:
            break
        var = var.owner.inputs[0]
    return var


#: Ops that cannot fail, so that it is no harm to compute them where only some branches need them
_SAFE = (ScalarOp, Elemwise, DimShuffle, Rebroadcast, ScalarFromTensor, TensorFromScalar, Shape_i)


class Run:
    """Appends a graph to a program: what only a branch needs stands in the branch."""

    def __init__(self, p: Builder, graph: FunctionGraph, inputs: Sequence[Any]) -> None:
        self.p, self.graph = p, graph
        self.values: dict[Var, Any] = {}
        self.give(graph.inputs, inputs)
        order = graph.toposort()
        #: by Apply, the branch (an Apply of IfElse, and 0 or 1) that alone needs it, or None
        self.home: dict[Apply, _Branch] = {}
        #: by Apply, the branches in which its outputs are read
        self.uses: dict[Apply, list[_Branch]] = {}
        #: Applys that some branches need, but not all that is around them
        self.partly = partly = set[Apply]()
        self.number = {node: k for k, node in enumerate(order)}
        #: a number for each branch, and for each (condition, branch, number of what is around)
        self._kinds: dict[Any, int] = {}
        #: Applys in a branch that later branches of the same condition read too
        self.kept: dict[_Branch, list[Apply]] = {}
        #: by Apply of IfElse, others of the same condition that must come before it
        self.leaders: dict[Apply, set[Apply]] = {}
        for node in reversed(order) if any(n.op.branches for n in order) else ():
            uses: list[tuple[_Branch, bool]] = [
                (None, True) if client == "output" else (self._use(client, i), client not in partly)
                for out in node.outputs
                for client, i in graph.clients(out)
            ]
            certain = self._certain({branch for branch, always in uses if always}, partly)
            self.uses[node] = [branch for branch, _ in uses]
            self.home[node] = common = self._first_common(node, [branch for branch, _ in uses])
            if all(self._kind(branch) != self._kind(common) for branch in certain):
                partly.add(node)
        #: those among them that may fail where none of these branches is taken: they are appended
        #: in each branch that reads them
        self.repeated: set[Apply] = set()
        #: their outputs that are known in the present branch
        self.repeats: list[Var] = []
        #: the conditions on which what partly needed Applys gave is of no use
        self.invalid: dict[Var, list[int]] = {}
        #: the Applys that write an array
        self.writers: dict[Var, list[Apply]] = {}
        for node in order:
            for var in _overwritten(node):
                self.writers.setdefault(root_of(var), []).append(node)
        for node in order:
            if node in partly and not (
                self._can_be_early(node)
                and self.repeated.isdisjoint([var.owner for var in node.inputs])
            ):
                self.repeated.add(node)
        found = self._readers_first(order)
        if not found or any(reader in self.repeated for reader, _ in self._conflicts(order)):
            self._lift(order)
            found = self._readers_first(order)
        order = found or order
        #: those that would overwrite what an Apply behind them reads
        self.keepers = self._keepers(order)
        self.nodes: dict[_Branch, list[Apply]] = {}
        for node in order:
            if node not in self.repeated:
                self.nodes.setdefault(self.home.get(node), []).append(node)

    def _can_be_early(self, node: Apply) -> bool:
        """Return whether an Apply may be appended where it is not known to be needed.

        An element is read before something overwrites it, and is looked at where it is needed.
        """
        return isinstance(node.op, _SAFE) or (
            isinstance(node.op, Subtensor)
            and not node.outputs[0].type.ndim
            and root_of(node.inputs[0]) in self.writers
        )

    def _lift(self, order: list[Apply]) -> None:
        """Let branches read elements before them that Applys around them overwrite."""
        for node in order:
            if isinstance(node.op, Subtensor) and self._can_be_early(node):
                writers = self.writers[root_of(node.inputs[0])]
                target = self._common([self.home.get(one) for one in (node, *writers)])
                needed, every = [node], set[Apply]()
                while needed:
                    one = needed.pop()
                    if one in self.home and target in self._around(self.home[one])[1:]:
                        every.add(one)
                        needed += [var.owner for var in one.inputs if var.owner is not None]
                if self.repeated.isdisjoint(every) and all(map(self._can_be_early, every)):
                    self.home.update(dict.fromkeys(every, target))
                    self.partly |= every

    def _use(self, client: Apply, i: int) -> _Branch:
        if client.op.branches:
            for b, positions in enumerate(client.op.branches):
                if i in positions:
                    return client, b
        return self.home[client]

    def _certain(self, branches: set[_Branch], partly: set[Apply]) -> set[_Branch]:
        """Return branches, and those in which one of two branches that are given is run."""
        found, new = set(branches), list(branches)
        while new:
            branch = new.pop()
            if branch is None:
                continue
            choice, b = branch
            around = self.home[choice]
            if (choice, 1 - b) in found and choice not in partly and around not in found:
                found.add(around)
                new.append(around)
        return found

    def _around(self, branch: _Branch) -> list[_Branch]:
        """Return a branch and those around it, the innermost first; the last is None."""
        found = [branch]
        while branch is not None:
            branch = self.home[branch[0]]
            found.append(branch)
        return found

    def _kind(self, branch: _Branch) -> Any:
        """Return what is equal for branches that are run in the same steps."""
        if branch is None:
            return None
        if branch not in self._kinds:
            choice, b = branch
            key = choice.inputs[0], b, self._kind(self.home[choice])
            self._kinds[branch] = self._kinds.setdefault(key, len(self._kinds))
        return self._kinds[branch]

    def _first_common(self, node: Apply, uses: list[_Branch]) -> _Branch:
        """Return the branch for an Apply that some branches need.

        Of several branches of the same condition it is the first; the others find its outputs.
        """
        first, *others = (self._around(use) for use in uses or [None])
        every: set[_Branch] = set()
        for branch in first:
            kind = self._kind(branch)
            same = [[x for x in other if self._kind(x) == kind][:1] for other in others]
            if all(same):
                every = {branch, *(x for found in same for x in found)}
                break
        if len(every) == 1:
            return branch
        leader, *behind = sorted(filter(None, every), key=lambda each: self.number[each[0]])
        common = self._common([leader, *behind])
        for branch in self._around(leader):  # it leaves one after the other
            if branch == common:
                break
            self.kept.setdefault(branch, []).append(node)
        for choice, _ in behind:
            earlier, later = self._beside(leader[0], choice)
            self.leaders.setdefault(later, set()).add(earlier)
        return leader

    def _common(self, uses: list[_Branch]) -> _Branch:
        first, *others = uses or [None]
        for branch in self._around(first):
            if all(branch in self._around(other) for other in others):
                return branch
        return None

    def _readers_first(self, order: list[Apply]) -> list[Apply]:
        """Return Applys in an order in which what reads an array comes before what writes it.

        It is empty if two write what both read.
        """
        before: dict[Apply, set[Apply]] = {
            node: {var.owner for var in node.inputs if var.owner is not None} for node in order
        }
        for reader, writer in self._conflicts(order):
            before[writer].add(reader)
        for node, leaders in self.leaders.items():
            before[node] |= leaders
        after: dict[Apply, list[Apply]] = {}
        for node, others in before.items():
            for other in others:
                after.setdefault(other, []).append(node)
        number = {node: k for k, node in enumerate(order)}
        ready = [k for k, node in enumerate(order) if not before[node]]
        found: list[Apply] = []
        while ready:
            found.append(node := order[heappop(ready)])
            for other in after.get(node, ()):
                before[other].discard(node)
                if not before[other]:
                    heappush(ready, number[other])
        return found if len(found) == len(order) else []

    def _conflicts(self, order: list[Apply]) -> Iterator[tuple[Apply, Apply]]:
        """Yield (what reads an array, what writes it), or what holds them in a branch."""
        for node in order:
            for i, var in enumerate(node.inputs):
                for writer in self.writers.get(root_of(var), ()) if var.type.ndim else ():
                    if writer is node:
                        continue
                    if writer in self.repeated and all(
                        self._excludes(branch, self._use(node, i)) for branch in self.uses[writer]
                    ):
                        continue
                    reader, around = self._beside(node, writer)
                    if reader is not around:
                        yield reader, around

    def _excludes(self, branch: _Branch, other: _Branch) -> bool:
        """Return whether no step runs both of two branches."""
        around = {*self._around(branch)} - {None}
        return any((each[0], 1 - each[1]) in around for each in self._around(other) if each)

    def _keepers(self, order: list[Apply]) -> set[Apply]:
        number = {node: k for k, node in enumerate(order)}
        return {
            writer for reader, writer in self._conflicts(order) if number[reader] > number[writer]
        }

    def _beside(self, node: Apply, other: Apply) -> tuple[Apply, Apply]:
        """Return two Applys of the same branch: these, or what holds them in a branch."""
        common = self._common([self.home.get(node), self.home.get(other)])
        while self.home.get(node) != common:
            node = cast("tuple[Apply, int]", self.home[node])[0]
        while self.home.get(other) != common:
            other = cast("tuple[Apply, int]", self.home[other])[0]
        return node, other

    def outputs(self) -> list[Any]:
        self.block(None)
        return [self.value(var) for var in self.graph.outputs]

    def value(self, var: Var) -> Any:
        """Return what stands for a variable, which is needed here."""
        found = self._found(var)
        for condition in self.invalid.get(var, ()):
            self.p.fail_if(condition)
        return found

    def _found(self, var: Var) -> Any:
        if var not in self.values and isinstance(var, Constant):
            self.values[var] = self.p.constant_of(np.asarray(var.data))
        if var not in self.values and var.owner in self.repeated:
            self.append(var.owner)
            self.repeats += var.owner.outputs
        if var not in self.values:
            raise NotSmall  # what a branch has made is gone
        return self.values[var]

    def append(self, node: Apply) -> None:
        if node in self.partly and node not in self.repeated:
            self._append_early(node)
        elif node.op.branches:
            self.give(node.outputs, self.choice(node))
        else:
            values = [self.value(var) for var in node.inputs]
            self.p.keeps = node in self.keepers
            self.give(node.outputs, self.p.run(node, values))

    def _append_early(self, node: Apply) -> None:
        """Append an Apply that fails where its outputs are needed, rather than here."""
        p, outer = self.p, self.p.guards
        values = [self._found(var) for var in node.inputs]
        if isinstance(node.op, Subtensor) and not isinstance(values[0], Held):
            raise NotSmall
        p.guards = [c for var in node.inputs for c in self.invalid.get(var, ())]
        self.give(node.outputs, p.run(node, values))
        if p.guards:
            self.invalid.update(dict.fromkeys(node.outputs, p.guards))
        p.guards = outer

    def block(self, branch: _Branch) -> None:
        """Append the Applys that a branch alone needs."""
        for node in self.nodes.get(branch, ()):
            self.append(node)

    def give(self, variables: Sequence[Var], values: Sequence[Any]) -> None:
        """Note what stands for variables."""
        for var, value in zip(variables, values, strict=True):
            # what numpy takes from an array of slots is a number
            slots = np.asarray(value) if isinstance(value, np.integer) else value
            if not isinstance(slots, np.ndarray) and not slots.dims:
                slots = np.array(element(self.p, slots, []), np.int64)
            self.values[var] = slots
            if isinstance(slots, np.ndarray) and slots.size > MAX_ELEMENTS:
                raise NotSmall

    def choice(self, node: Apply) -> list[Any]:
        """Append both branches of an IfElse; return what they give."""
        p = self.p
        condition = self.value(node.inputs[0])
        if not isinstance(node.op, IfElse) or not isinstance(condition, np.ndarray):
            raise NotSmall
        before, after, values, kept = p.versions, [], [], []
        marks = (Branches(), Otherwise())
        for b, given in enumerate(node.op.values(node.inputs)):
            p.branch(marks[b], [] if b else [int(condition)])
            p.versions = dict(before)
            known = len(self.repeats)
            self.block((node, b))
            values.append([self.value(var) for var in given])
            kept.append(self._kept_of((node, b)))
            after.append(p.versions)
            for var in self.repeats[known:]:
                del self.values[var]
            del self.repeats[known:]
        p.branch(Joins(), [])
        p.versions = {
            k: version if {version} == {of[k] for of in after} else max(of[k] for of in after) + 1
            for k, version in before.items()
        }
        for b, variables in enumerate(kept):
            for var, zeros in variables.items():
                value = self._outside(self.values.pop(var), zeros, b, after[b])
                if value is not None:
                    self.values[var] = value
        return [self._chosen(x, y, after) for x, y in zip(*values, strict=True)]

    def _kept_of(self, branch: _Branch) -> dict[Var, Any]:
        """Return {what later branches of the same condition read: what it is in other steps}."""
        found: dict[Var, Any] = {}
        for node in self.kept.get(branch, ()):
            gone = node in self.repeated or branch not in self._around(self.home[node])
            for var in () if gone else node.outputs:
                value = self.values.get(var)
                if isinstance(value, np.ndarray):
                    zeros = [self.p.zero(self.p.dtype(slot)) for slot in map(int, value.ravel())]
                    found[var] = np.array(zeros, np.int64).reshape(value.shape)
                elif value is not None:
                    found[var] = None
        return found

    def _outside(self, value: Any, zeros: Any, branch: int, versions: dict[int, int]) -> Any:
        """Return what stands for a value of a branch in later ones of the same condition.

        None if it is not known there.
        """
        p = self.p
        if isinstance(value, Held) and value.is_whole:
            known = p.versions.get(value.operand)
            if known is None or value.version != versions[value.operand]:
                return None
            return replace(value, version=known)
        if not isinstance(value, np.ndarray):
            return None
        pairs = zip(value.ravel(), zeros.ravel(), strict=True)
        slots = [
            p.mark(Chosen(), [int(x), int(z)] if branch == 0 else [int(z), int(x)], p.dtype(int(x)))
            for x, z in pairs
        ]
        return np.array(slots, np.int64).reshape(value.shape)

    def _chosen(self, x: Any, y: Any, after: Sequence[dict[int, int]]) -> Any:
        """Return what stands for values of both branches. after: the versions at their ends."""
        p = self.p
        if isinstance(x, Held) and isinstance(y, Held):
            if x.operand != y.operand:
                raise NotSmall
            if [x.version, y.version] != [of[x.operand] for of in after]:
                raise NotSmall
            x, y = (replace(one, version=p.versions[x.operand]) for one in (x, y))
            if x != y:
                raise NotSmall
            return x
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape == y.shape):
            raise NotSmall
        slots = [
            p.mark(Chosen(), [int(a), int(b)], p.dtype(a))
            for a, b in zip(*map(np.ravel, (x, y)), strict=True)
        ]
        return np.array(slots, np.int64).reshape(x.shape)
