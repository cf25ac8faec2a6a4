"""Steps on numbers and small arrays as scalar programs, which one C function repeats.

Lengths are those of constants, of the present values of shared variables, and of vectors that the
step makes of numbers; ``Loop`` checks that they are the same in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from typing import Any, cast

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.linkers.lowering import LOOP_DTYPES
from opwise.loops import memory
from opwise.loops.layout import Layout, Parts
from opwise.loops.memory import Each, Held, NotSmall
from opwise.loops.op import Scan
from opwise.modes.mode import get_mode
from opwise.scalar.composite import Composite, Instruction, Literal, append_inlined
from opwise.scalar.loops import slot_dtype
from opwise.scalar.op import OPS, Cast, ScalarOp, cast_op
from opwise.scalar.recurrence import (
    Branches,
    Carried,
    Chosen,
    Closes,
    Fails,
    Joins,
    Length,
    Opens,
    Otherwise,
    Recurrence,
    in_memory,
    size,
)
from opwise.tensor.blas import Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.convert import DeepCopyOp, ScalarFromTensor, TensorFromScalar, ViewOp
from opwise.tensor.creation import Alloc, AllocEmpty, ARange
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.ifelse import IfElse
from opwise.tensor.join import Join, MakeVector
from opwise.tensor.linalg.inverse import MatrixInverse
from opwise.tensor.linalg.systems import Solve
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import CAReduceDtype
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.shape import Rebroadcast, Reshape, Shape, Shape_i
from opwise.tensor.subtensor import IncSubtensor, Subtensor

#: the most elements of an array, and the most operations of a program: beyond them, the VM's
#: kernels are as fast, and C compilers are slow
MAX_ELEMENTS = 16
MAX_INSTRUCTIONS = 600
#: the most steps ago that a value may be from: they are all in variables
MAX_TAP = 8
#: loops of so many steps or fewer are not worth a compilation; inner ones are unrolled
FEW_STEPS = 16
#: the longest arrays that a step computes element by element, and those of functions such as exp:
#: beyond them, the VM's kernels are faster
SHORT, SHORT_OF_FUNCTIONS = 512, 64
#: how long a step may take, nanoseconds: signals are handled between steps
MAX_NS = 1e6
#: the largest systems of equations: with more, a choice of the pivot takes too many operations
MAX_SYSTEM = 3

#: dtypes of numbers that C computes with as they are
C_DTYPES = LOOP_DTYPES - {"float16"}

Lengths = tuple[int | None, ...]
#: the slots of the elements of an array
Slots = np.ndarray
#: an Apply of IfElse, and which of its branches; None where all is computed
_Branch = tuple[Apply, int] | None


def recurrence(node: Apply, step: FunctionGraph) -> Recurrence | None:
    """Return the step of a loop as a scalar program; None if it is none of few operations.

    step: the compiled graph.
    """
    layout: Layout = node.op.layout
    variables = (*step.inputs, *step.outputs)
    if (
        layout.objects
        or len(step.inputs) != len(node.op.inputs)
        or any(max(taps) > MAX_TAP for taps in layout.taps)
        or not layout.taps
        or any(getattr(var.type, "dtype", None) not in C_DTYPES for var in variables)
        or not all(_has_handler(n.op) for n in step.apply_nodes)
    ):
        return None
    n_steps = node.inputs[0]
    few = isinstance(n_steps, Constant) and n_steps.data <= FEW_STEPS
    known = _shapes(node, layout, step)
    for shapes in (known, *_in_memory(known)):
        loops = any(isinstance(n.op, Scan) for n in step.apply_nodes)
        if few and not (loops and any(-1 in shape for shape in shapes)):
            continue
        try:
            return _program(layout, step, layout.step_inputs(shapes))
        except NotSmall:
            continue
    return None


def _in_memory(known: list[Lengths]) -> list[list[Lengths]]:
    """Return ways to put arrays into memory: those of unknown lengths alone, and all."""
    every: list[Lengths] = [(-1,) * len(shape) for shape in known]
    long = [
        other if None in shape or size(cast("tuple[int, ...]", shape)) > MAX_ELEMENTS else shape
        for shape, other in zip(known, every, strict=True)
    ]
    return [long, every] if long != every else [every]


def _program(layout: Layout, step: FunctionGraph, shapes: Parts[Any]) -> Recurrence:
    flat = shapes.flat()
    if any(None in shape or size(shape) > MAX_ELEMENTS for shape in flat):
        raise NotSmall
    in_dtypes = [
        var.type.dtype
        for var, shape in zip(step.inputs, flat, strict=True)
        for _ in range(size(shape))
    ]
    program = Program(in_dtypes)
    operand_of = [
        *range(len(shapes.sequences)),
        *(len(shapes.sequences) + k for k, taps in enumerate(layout.taps) for _ in taps),
        *(len(shapes.sequences) + len(layout.taps) + layout.results + k
          for k in range(len(shapes.constants))),
    ]  # fmt: skip
    inputs: list[Any] = []
    start = 0
    for var, shape, operand in zip(step.inputs, flat, operand_of, strict=True):
        if in_memory(shape):
            inputs.append(program.held(operand, var.type.dtype, len(shape)))
            continue
        inputs.append(np.arange(start, start + size(shape)).reshape(shape))
        start += size(shape)
    for k, taps in enumerate(shapes.states):
        if in_memory(taps[0]):
            if layout.taps[k] != (1,) or layout.kept[k] != 1:
                raise NotSmall
            program.writable.add(len(shapes.sequences) + k)
    outputs = layout.step_outputs(program.graph(step, inputs))
    new: list[tuple[int, ...]] = []
    for k, (taps, (value,)) in enumerate(zip(shapes.states, outputs.states, strict=True)):
        if in_memory(taps[0]):
            operand = len(shapes.sequences) + k
            dtype = step.outputs[k].type.dtype
            program.settle(value, program.held(operand, dtype, len(taps[0])))
            new.append(())
        elif not isinstance(value, np.ndarray) or any(shape != value.shape for shape in taps):
            raise NotSmall
        else:
            new.append(_flat(value))
    if not all(isinstance(row, np.ndarray) for row in (*outputs.results, *outputs.condition)):
        raise NotSmall
    if program.leaves and program.writable:
        raise NotSmall  # the VM would do a step again of which a part is done

    def limited(operand: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            -1 - program.short[operand, d] if (operand, d) in program.short else n
            for d, n in enumerate(shape)
        )

    constants = len(shapes.sequences) + len(layout.taps) + layout.results
    found = Recurrence(
        in_dtypes=tuple(in_dtypes),
        instructions=tuple(program.instructions),
        sequences=tuple(limited(k, shape) for k, shape in enumerate(shapes.sequences)),
        states=tuple(
            limited(k, taps[0]) for k, taps in enumerate(shapes.states, len(shapes.sequences))
        ),
        constants=tuple(limited(k, shape) for k, shape in enumerate(shapes.constants, constants)),
        taps=layout.taps,
        new=tuple(new),
        results=tuple((row.shape, _flat(row)) for row in outputs.results),
        ends=int(outputs.condition[0]) if layout.until else None,
        leaves=tuple(program.leaves),
    )
    if MAX_NS < found.nanoseconds < inf:
        raise NotSmall
    return found


def profiled(op: Scan) -> bool:
    """Return whether a loop is profiled by itself: the times of its Applys are wanted."""
    return bool(op.profile) or (op.mode is not None and hasattr(get_mode(op.mode), "profile"))


def inner_step(node: Apply) -> FunctionGraph | None:
    """Return the compiled graph of the step of an inner loop; None if the VM has to run it."""
    linked = getattr(getattr(node.tag, "inside", None), "linked", None)
    return None if linked is None or profiled(node.op) else linked.program.fgraph


def _flat(slots: Slots) -> tuple[int, ...]:
    return tuple(map(int, slots.ravel()))


# --- lengths --------------------------------------------------------------------------------------

#: a dimension of a variable
_Dimension = tuple[Var, int]


def _shapes(node: Apply, layout: Layout, step: FunctionGraph) -> list[Lengths]:
    """Return the lengths of the inputs of a step, as far as they are known beforehand."""
    lengths = _Lengths()
    lengths.loop(node, step)
    pending = [var.owner for var in node.inputs[1:]]
    seen: set[Apply] = set()
    while pending:
        apply = pending.pop()
        if apply is not None and apply not in seen and isinstance(apply.op, _SAME_LENGTHS):
            seen.add(apply)
            lengths.spread(apply)
            pending += [var.owner for var in apply.inputs]
    for var in node.inputs[1:]:
        lengths.note(var)
    return [lengths.of(var) for var in step.inputs]


#: Ops whose outputs have lengths of their inputs, of those around a loop
_SAME_LENGTHS = (DimShuffle, Rebroadcast, DeepCopyOp, ViewOp, IncSubtensor, Elemwise, Alloc)


class _Lengths:
    """What is known of the lengths of variables: which are equal, and which are numbers."""

    def __init__(self) -> None:
        self._same: dict[_Dimension, _Dimension] = {}
        self._known: dict[_Dimension, int] = {}

    def _root(self, dimension: _Dimension) -> _Dimension:
        while dimension in self._same:
            dimension = self._same[dimension]
        return dimension

    def equal(self, *dimensions: _Dimension) -> None:
        """Note that dimensions have one length."""
        first, *others = map(self._root, dimensions)
        for other in others:
            if other != first:
                self._same[other] = first
                if other in self._known:
                    self._known.setdefault(first, self._known[other])

    def same(self, *variables: Var) -> None:
        """Note that variables have one shape."""
        for d in range(variables[0].type.ndim):
            self.equal(*((var, d) for var in variables))

    def know(self, dimension: _Dimension, length: int) -> None:
        self._known.setdefault(self._root(dimension), int(length))

    def of(self, var: Var) -> Lengths:
        """Return the lengths of a variable as far as they are known."""
        self.note(var)
        return tuple(self._known.get(self._root((var, d))) for d in range(var.type.ndim))

    def note(self, var: Var) -> None:
        """Note the lengths of a constant, of a shared variable, and those that a type has."""
        if isinstance(var, Constant):
            lengths: Sequence[int | None] = np.shape(var.data)
        elif hasattr(var, "get_value"):
            lengths = np.shape(var.get_value(borrow=True))
        else:
            lengths = [1 if one else None for one in getattr(var.type, "broadcastable", ())]
        for d, n in enumerate(lengths):
            if n is not None:
                self.know((var, d), n)

    def loop(self, node: Apply, step: FunctionGraph) -> None:
        """Note which lengths are equal in a loop and its step."""
        layout: Layout = node.op.layout
        outside, after = layout.loop_inputs(node.inputs[1:]), layout.loop_outputs(node.outputs)
        inside = layout.step_inputs(step.inputs)
        new = layout.step_outputs(step.outputs)
        rows = list(zip(inside.sequences, outside.sequences, strict=True))
        rows += zip(new.results, after.results, strict=True)
        for k, taps in enumerate(inside.states):
            (first,), (out,), (value,) = outside.states[k], after.states[k], new.states[k]
            rows += [(value, out), *((tap, first) for tap in taps)]
            self.same(taps[0], value)
        for row, of in rows:
            for d in range(row.type.ndim):
                self.equal((row, d), (of, d + 1))
        for var, of in zip(inside.constants, outside.constants, strict=True):
            self.same(var, of)
        for apply in step.apply_nodes:
            self.spread(apply)

    def spread(self, node: Apply) -> None:
        """Note which lengths are equal if an Apply raises no error."""
        op, inputs, out = node.op, node.inputs, node.outputs[0]
        for var in inputs:
            self.note(var)
        if isinstance(op, Elemwise):
            for d in range(out.type.ndim):
                moving = [(v, d) for v in inputs if not v.type.broadcastable[d]]
                self.equal(*((v, d) for v in node.outputs), *moving)
        elif isinstance(op, MakeVector):
            self.know((out, 0), len(inputs))
        elif isinstance(op, DimShuffle):
            for d, o in enumerate(op.new_order):
                if isinstance(o, int):
                    self.equal((out, d), (inputs[0], o))
        elif isinstance(op, Rebroadcast | DeepCopyOp | ViewOp | IncSubtensor):
            self.same(inputs[0], out)
        elif isinstance(op, Alloc):
            for d, n in enumerate(inputs[1:]):
                if isinstance(n, Constant):
                    self.know((out, d), n.data)
        elif isinstance(op, Gemv):
            y, _, a, x, _ = inputs
            self.same(y, out)
            self._product(a, x, out)
        elif isinstance(op, Gemm):
            z, _, x, y, _ = inputs
            self.same(z, out)
            self._product(x, y, out)
        elif isinstance(op, Dot | Dot22 | Dot22Scalar):
            self._product(inputs[0], inputs[1], out)
        elif isinstance(op, Ger):
            a, _, x, y = inputs
            self.same(a, out)
            self.equal((a, 0), (x, 0))
            self.equal((a, 1), (y, 0))
        elif isinstance(op, Scan):
            step = inner_step(node)
            if step is not None and len(step.inputs) == len(op.inputs) and not op.layout.objects:
                self.loop(node, step)
        elif isinstance(op, Solve | MatrixInverse):
            self.equal((inputs[0], 0), (inputs[0], 1), (inputs[-1], 0))
            self.same(inputs[-1], out)

    def _product(self, x: Var, y: Var, out: Var) -> None:
        if x.type.ndim and y.type.ndim:
            self.equal((x, x.type.ndim - 1), (y, 0))
            free = [(x, d) for d in range(x.type.ndim - 1)] + [
                (y, d) for d in range(1, y.type.ndim)
            ]
            for d, dimension in enumerate(free):
                self.equal((out, d), dimension)


# --- operations -----------------------------------------------------------------------------------


class Program:
    """A scalar program that grows by the operations of one Apply after the other."""

    def __init__(self, in_dtypes: Sequence[str]) -> None:
        self.in_dtypes = in_dtypes
        self.instructions: list[Instruction] = []
        #: the slots of conditions that leave a step to the VM
        self.leaves: list[int] = []
        #: the operands in memory -> how often they were written
        self.versions: dict[int, int] = {}
        #: those that may be written
        self.writable: set[int] = set()
        #: the operand that a loop writes, and the slots of its indices in the loop
        self.written_now: tuple[int, list[int | None]] | None = None
        #: the most elements that dimensions of operands may have: {(operand, dimension): how many}
        self.short: dict[tuple[int, int], int] = {}
        #: slots of lengths -> dimensions of operands that are as long at least
        self.bounds: dict[int, set[tuple[int, int]]] = {}
        self._lengths: dict[tuple[int, int], int] = {}
        self._affine: dict[tuple[int, int, int], int] = {}

    def held(self, operand: int, dtype: str, ndim: int) -> Held:
        """Return a view of all of an operand in memory."""
        version = self.versions.setdefault(operand, 0)
        return Held(operand, dtype, version, (None,) * ndim, tuple(range(ndim)), (None,) * ndim)

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
        key = start, index, step
        slot = self._affine.get(key)
        if slot is None:
            slot = index if self.is_number(step, 1) else self.one("mul", index, step, dtype="int64")
            if not self.is_number(start, 0):
                slot = self.one("add", start, slot, dtype="int64")
            self._affine[key] = slot
        return slot

    def branch(self, op: ScalarOp, args: Sequence[int]) -> None:
        """Append a mark of a branch: what one computes is not known outside."""
        self.mark(op, args, "bool")
        self._affine.clear()

    def fail_if(self, condition: int) -> None:
        """Let the step fail where a condition holds."""
        self.mark(Fails(), [condition], "bool")

    def check_equal(self, n: int, m: int) -> None:
        """Let the step fail where two lengths differ."""
        if n != m and not (self.has_number(n) and self.is_number(m, self._number(n))):
            self.fail_if(self.one("neq", n, m, dtype="bool"))

    @contextmanager
    def short_loop(self, count: int, *carried: int) -> Iterator[Any]:
        """Append a loop over a short dimension around what is appended inside.

        Yields the slot of the index; if values are carried on, (it, the slot of the value, a list
        that takes the slot of the new one).
        """
        new: list[int] = []
        slots = [self.mark(Carried(), [slot], self.dtype(slot)) for slot in carried]
        known = self._number(count) if self.has_number(count) else None
        begin = len(self.instructions)
        index = self.mark(Opens(known), [] if known is not None else [count], "int64")
        yield (index, slots[0], new) if carried else index
        self.mark(Closes(len(slots)), [*slots, *new], "int64")
        inside = self.instructions[begin:]
        costly = any(one.op.row is not None and one.op.row.libm for one in inside)
        most = SHORT_OF_FUNCTIONS if costly else SHORT
        dimensions = self.bounds_of(count)
        if (known is None and not dimensions) or (known is not None and known > most):
            raise NotSmall
        for dimension in dimensions:
            self.short[dimension] = min(most, self.short.get(dimension, most))

    def written(self, operand: int) -> int:
        """Note that an operand in memory was written; return its version."""
        if operand not in self.writable:
            raise NotSmall
        self.versions[operand] += 1
        return self.versions[operand]

    def settle(self, value: Any, place: Held) -> int:
        """Let an operand hold a value, which is there already if that can be; return its version.

        place: a view of all of the operand.
        """
        operand = place.operand
        version = self.versions[operand]
        if isinstance(value, Held) and value == replace(place, version=version):
            return version
        memory.fill(self, replace(place, version=version), value)
        return self.written(operand)

    def run(self, node: Apply, values: list[Any]) -> list[Any]:
        """Append the operations of an Apply; return its outputs: slots, or what is in memory."""
        if not all(isinstance(value, np.ndarray) for value in values):
            in_memory = memory.handler(node.op) or _structure(node.op)
            if in_memory is None:
                raise NotSmall
            found = in_memory(self, node, *values)
            return found if isinstance(found, list) else [found]
        if isinstance(node.op, ScalarOp):
            return self.elementwise(node.op, [v.type.dtype for v in node.outputs], values)
        handler = _handler(node.op)
        if handler is None:
            raise NotSmall
        found = handler(self, node, *values)
        return found if isinstance(found, list) else [found]

    def graph(self, graph: FunctionGraph, inputs: Sequence[Any]) -> list[Any]:
        """Append the operations of a graph; return its outputs: slots, or what is in memory."""
        return _Run(self, graph, inputs).outputs()

    def mark(self, op: ScalarOp, args: Sequence[int], dtype: str) -> int:
        """Append a part of an inner loop; return its slot."""
        return append_inlined(self.instructions, len(self.in_dtypes), op, args, dtype)[0]

    def emit(self, op: ScalarOp, args: Sequence[int], dtype: str) -> list[int]:
        """Append an operation on slots; return the slots of its outputs."""
        parts = op.instructions if isinstance(op, Composite) else [Instruction(op, (), dtype)]
        if len(self.instructions) + len(parts) > MAX_INSTRUCTIONS or any(
            part.op.row is None and not isinstance(part.op, Cast | Literal) for part in parts
        ):
            raise NotSmall
        return append_inlined(self.instructions, len(self.in_dtypes), op, args, dtype)

    def one(self, name: str, *args: Any, dtype: str | None = None) -> int:
        """Append the operation of a name; return the slot of its output."""
        slots = [int(a) for a in args]
        return self.emit(OPS[name], slots, dtype or self.dtype(slots[-1]))[0]

    def dtype(self, slot: int) -> str:
        return slot_dtype(slot, self.instructions, self.in_dtypes)

    def literal(self, n: int) -> int:
        """Append an integer; return its slot."""
        return int(self.constant(np.array(n, np.int64)))

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
_VIEWS = (DimShuffle, Rebroadcast, ViewOp, Subtensor)


def _overwritten(node: Apply) -> Sequence[Var]:
    """Return the inputs of an Apply that may be arrays in memory which it writes."""
    if isinstance(node.op, IncSubtensor):
        return node.inputs[:1]
    if isinstance(node.op, Scan):
        states = node.op.layout.loop_inputs(node.inputs[1:]).states
        return [first for (first,) in states]
    return ()


def _root(var: Var) -> Var:
    """Return the array that a variable is a part of."""
    while var.owner is not None and isinstance(var.owner.op, _VIEWS):
        var = var.owner.inputs[0]
    return var


class _Run:
    """Appends a graph to a program: what only a branch needs stands in the branch."""

    def __init__(self, p: Program, graph: FunctionGraph, inputs: Sequence[Any]) -> None:
        self.p, self.graph = p, graph
        self.values: dict[Var, Any] = {}
        self.give(graph.inputs, inputs)
        order = graph.toposort()
        #: by Apply, the branch (an Apply of IfElse, and 0 or 1) that alone needs it, or None
        self.home: dict[Apply, _Branch] = {}
        for node in reversed(order) if any(n.op.branches for n in order) else ():
            uses = [
                None if client == "output" else self._use(client, i)
                for out in node.outputs
                for client, i in graph.clients(out)
            ]
            self.home[node] = self._common(uses)
        self.nodes: dict[_Branch, list[Apply]] = {}
        for node in self._readers_first(order):
            self.nodes.setdefault(self.home.get(node), []).append(node)

    def _use(self, client: Apply, i: int) -> _Branch:
        if client.op.branches:
            for b, positions in enumerate(client.op.branches):
                if i in positions:
                    return client, b
        return self.home[client]

    def _around(self, branch: _Branch) -> list[_Branch]:
        """Return a branch and those around it, the innermost first; the last is None."""
        found = [branch]
        while branch is not None:
            branch = self.home[branch[0]]
            found.append(branch)
        return found

    def _common(self, uses: list[_Branch]) -> _Branch:
        first, *others = uses or [None]
        for branch in self._around(first):
            if all(branch in self._around(other) for other in others):
                return branch
        return None

    def _readers_first(self, order: list[Apply]) -> list[Apply]:
        """Return Applys in an order in which what reads an array comes before what writes it."""
        writers: dict[Var, list[Apply]] = {}
        for node in order:
            for var in _overwritten(node):
                writers.setdefault(_root(var), []).append(node)
        before: dict[Apply, set[Apply]] = {node: set() for node in order}
        for node in order:
            for var in node.inputs:
                if var.owner in before:
                    before[node].add(var.owner)
                for writer in writers.get(_root(var), ()) if var.type.ndim else ():
                    if writer is not node:
                        self._put_before(before, node, writer)
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
        return found if len(found) == len(order) else order  # two write what both read

    def _put_before(self, before: dict[Apply, set[Apply]], reader: Apply, writer: Apply) -> None:
        """Let an Apply come before another one, or what holds it in a branch."""
        common = self._common([self.home.get(reader), self.home.get(writer)])
        while self.home.get(reader) != common:
            reader = cast("tuple[Apply, int]", self.home[reader])[0]
        while self.home.get(writer) != common:
            writer = cast("tuple[Apply, int]", self.home[writer])[0]
        if reader is not writer:
            before[writer].add(reader)

    def outputs(self) -> list[Any]:
        self.block(None)
        return [self.value(var) for var in self.graph.outputs]

    def value(self, var: Var) -> Any:
        if var not in self.values and isinstance(var, Constant):
            self.values[var] = self.p.constant(np.asarray(var.data))
        return self.values[var]

    def block(self, branch: _Branch) -> None:
        """Append the Applys that a branch alone needs."""
        for node in self.nodes.get(branch, ()):
            if node.op.branches:
                found = self.choice(node)
            else:
                found = self.p.run(node, [self.value(var) for var in node.inputs])
            self.give(node.outputs, found)

    def give(self, variables: Sequence[Var], values: Sequence[Any]) -> None:
        """Note what stands for variables."""
        for var, value in zip(variables, values, strict=True):
            # what numpy takes from an array of slots is a number
            slots = np.asarray(value) if isinstance(value, np.integer) else value
            if not isinstance(slots, np.ndarray) and not slots.dims:
                slots = np.array(memory.element(self.p, slots, []), np.int64)
            self.values[var] = slots
            if isinstance(slots, np.ndarray) and slots.size > MAX_ELEMENTS:
                raise NotSmall

    def choice(self, node: Apply) -> list[Any]:
        """Append both branches of an IfElse; return what they give."""
        p = self.p
        condition = self.value(node.inputs[0])
        if not isinstance(node.op, IfElse) or not isinstance(condition, np.ndarray):
            raise NotSmall
        before, after, values = p.versions, [], []
        marks = (Branches(), Otherwise())
        for b, given in enumerate(node.op.values(node.inputs)):
            p.branch(marks[b], [] if b else [int(condition)])
            p.versions = dict(before)
            self.block((node, b))
            values.append([self.value(var) for var in given])
            after.append(p.versions)
        p.branch(Joins(), [])
        p.versions = {
            k: version if {version} == {of[k] for of in after} else max(of[k] for of in after) + 1
            for k, version in before.items()
        }
        return [self._chosen(x, y, after) for x, y in zip(*values, strict=True)]

    def _chosen(self, x: Any, y: Any, after: Sequence[dict[int, int]]) -> Any:
        """Return what stands for values of both branches. after: the versions at their ends."""
        p = self.p
        if isinstance(x, Held) and isinstance(y, Held):
            if [x.version, y.version] != [of[x.operand] for of in after]:
                raise NotSmall
            x, y = (replace(one, version=p.versions[x.operand]) for one in (x, y))
            return x if x == y else _refused()
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape == y.shape):
            raise NotSmall
        slots = [
            p.mark(Chosen(), [int(a), int(b)], p.dtype(a))
            for a, b in zip(*map(np.ravel, (x, y)), strict=True)
        ]
        return np.array(slots, np.int64).reshape(x.shape)


def _refused() -> Any:
    raise NotSmall


_Handler = Callable[..., Any]
_handlers: dict[type, _Handler] = {}


def _handler(op: Any) -> _Handler | None:
    return next((_handlers[c] for c in type(op).__mro__ if c in _handlers), None)


def _has_handler(op: Any) -> bool:
    """Return whether something appends Applys of an op."""
    return bool(isinstance(op, ScalarOp) or _handler(op) or memory.handler(op))


def _on(*op_classes: type) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        for cls in op_classes:
            _handlers[cls] = handler
        return handler

    return register


@_on(Elemwise)
def _elemwise(p: Program, node: Apply, *values: Slots) -> list[Slots]:
    for shape in zip(
        *(
            [None if one else n for n, one in zip(v.shape, var.type.broadcastable, strict=True)]
            for v, var in zip(values, node.inputs, strict=True)
        ),
        strict=True,
    ):
        if len({n for n in shape if n is not None}) > 1:
            raise NotSmall  # an error, which the VM raises
    dtypes = [out.type.dtype for out in node.outputs]
    return p.elementwise(node.op.scalar_op, dtypes, values)


@_on(DimShuffle, Rebroadcast)
def _moved(p: Program, node: Apply, x: Slots) -> Slots:
    storage: list[Any] = [None]
    node.op.perform(node, [x], [storage])
    moved: Slots = storage[0]
    return moved


@_on(DeepCopyOp, ViewOp, ScalarFromTensor, TensorFromScalar)
def _same(p: Program, node: Apply, x: Slots) -> Slots:
    return x


@_on(Subtensor, Reshape)
def _part(p: Program, node: Apply, x: Slots, *numbers: Slots) -> Slots:
    storage: list[Any] = [None]
    try:
        node.op.perform(node, [x, *map(p.number, numbers)], [storage])
    except (IndexError, ValueError):
        raise NotSmall from None
    part: Slots = storage[0]
    return part


@_on(IncSubtensor)
def _changed(p: Program, node: Apply, x: Slots, y: Slots, *indices: Slots) -> Slots:
    positions = np.arange(x.size).reshape(x.shape)
    places = _part(p, Subtensor(node.op.idx_list).make_node(node.inputs[0], *node.inputs[2:]),
                   positions, *indices)  # fmt: skip
    found = x.copy()
    dtype = node.outputs[0].type.dtype
    for place, slot in zip(places.ravel(), np.broadcast_to(y, places.shape).ravel(), strict=True):
        new = int(p.cast(np.array(slot), dtype))
        old = int(x.ravel()[place])
        found.reshape(-1)[place] = new if node.op.set_instead_of_inc else p.one("add", old, new)
    return found


@_on(MakeVector)
def _vector(p: Program, node: Apply, *values: Slots) -> Slots:
    return p.cast(np.array(values, np.int64), node.outputs[0].type.dtype)


@_on(Join)
def _join(p: Program, node: Apply, axis: Slots, *values: Slots) -> Slots:
    dtype = node.outputs[0].type.dtype
    try:
        return np.concatenate([p.cast(x, dtype) for x in values], axis=int(p.number(axis)))
    except ValueError:
        raise NotSmall from None


@_on(Alloc)
def _alloc(p: Program, node: Apply, value: Slots, *lengths: Slots) -> Slots:
    try:
        return np.broadcast_to(value, [int(p.number(n)) for n in lengths]).copy()
    except ValueError:
        raise NotSmall from None


@_on(AllocEmpty)
def _alloc_empty(p: Program, node: Apply, *lengths: Slots) -> Slots:
    shape = [int(p.number(n)) for n in lengths]
    if int(np.prod(shape)) > MAX_ELEMENTS:
        raise NotSmall
    return p.constant(np.zeros(shape, node.outputs[0].type.dtype))


@_on(Shape_i)
def _length(p: Program, node: Apply, x: Slots) -> Slots:
    return p.constant(np.array(x.shape[node.op.i]))


@_on(Shape)
def _shape(p: Program, node: Apply, x: Slots) -> Slots:
    return p.constant(np.array(x.shape, np.int64))


@_on(Dot, Dot22)
def _dot(p: Program, node: Apply, x: Slots, y: Slots) -> Slots:
    dtype = node.outputs[0].type.dtype
    return p.product(p.cast(x, dtype), p.cast(y, dtype))


@_on(Dot22Scalar)
def _dot_scaled(p: Program, node: Apply, x: Slots, y: Slots, a: Slots) -> Slots:
    return p.scaled(a, p.product(x, y))


@_on(Gemv)
def _gemv(
    p: Program, node: Apply, y: Slots, alpha: Slots, a: Slots, x: Slots, beta: Slots
) -> Slots:
    return p.added(y, beta, p.scaled(alpha, p.product(a, x)))


@_on(Gemm)
def _gemm(p: Program, node: Apply, z: Slots, a: Slots, x: Slots, y: Slots, b: Slots) -> Slots:
    return p.added(z, b, p.scaled(a, p.product(x, y)))


@_on(Ger)
def _ger(p: Program, node: Apply, a: Slots, alpha: Slots, x: Slots, y: Slots) -> Slots:
    one = p.constant(np.ones((), node.outputs[0].type.dtype))
    outer = p.product(p.scaled(alpha, x)[:, None], y[None, :])
    return p.added(a, one, outer)


@_on(CAReduceDtype)
def _reduced(p: Program, node: Apply, x: Slots) -> Slots:
    op, out = node.op, node.outputs[0]
    row = op.scalar_op.row
    if row is None or row.name not in ("add", "mul") or not x.size:
        raise NotSmall
    acc = str(op.acc_dtype or out.type.dtype)
    axes = tuple(range(x.ndim)) if op.axis is None else op.axis
    kept = [d for d in range(x.ndim) if d not in axes]
    lines = x.transpose([*kept, *axes]).reshape(*[x.shape[d] for d in kept], -1)
    found = np.empty(lines.shape[:-1], np.int64)
    for index in np.ndindex(*found.shape):
        found[index] = p.fold(row.name, list(p.cast(lines[index], acc)))
    return p.cast(found, out.type.dtype)


@_on(MapReduce)
def _map_reduced(p: Program, node: Apply, *values: Slots) -> Slots:
    mapped, every = node.op.parts(node)
    if len(every) > 1:
        raise NotSmall
    (between,) = p.run(mapped, list(values))
    return p.run(every[0], [between])[0]


@_on(Rowwise)
def _rowwise(p: Program, node: Apply, *values: Slots) -> list[Slots]:
    slots = list(values)
    for args, applys in node.op.parts(node):
        given = [slots[a] for a in args]
        for apply in applys:
            given = p.run(apply, given)
        slots.append(given[0])
    return [slots[s] for s in node.op.outs]


@_on(Solve)
def _solve(p: Program, node: Apply, a: Slots, b: Slots) -> Slots:
    if node.op.is_triangular or node.op.on_error == "nan":
        raise NotSmall  # a singular matrix is left to the VM
    dtype = node.outputs[0].type.dtype
    return p.solution(p.cast(a, dtype), p.cast(b, dtype))


@_on(MatrixInverse)
def _inverse(p: Program, node: Apply, x: Slots) -> Slots:
    if x.shape[0] > MAX_SYSTEM:
        raise NotSmall
    return p.solution(x, p.constant(np.eye(len(x), dtype=node.outputs[0].type.dtype)))


# --- inner loops ----------------------------------------------------------------------------------


#: what builds and changes whole values: it takes arrays in memory and in registers alike
_structures: dict[type, _Handler] = {}


def _structure(op: Any) -> _Handler | None:
    return _structures.get(type(op))


@_on(ARange)
def _arange(p: Program, node: Apply, *numbers: Slots) -> Any:
    return memory.arange(p, node, *numbers)


@_on(IfElse)
def _choice(p: Program, node: Apply, *values: Any) -> Any:
    raise AssertionError("branches are appended by _Run")


@_on(Scan)
def _inner_loop(p: Program, node: Apply, n_steps: Slots, *given: Any) -> list[Any]:
    layout: Layout = node.op.layout
    step, parts = inner_step(node), layout.loop_inputs(given)
    if step is None or layout.objects or len(step.inputs) != len(node.op.inputs):
        raise NotSmall
    held = any(not isinstance(value, np.ndarray) for value in given)
    if held or not p.has_number(n_steps):
        return _repeated(p, layout, step, node.inputs[0], n_steps, parts)
    n = int(p.number(n_steps))
    if (
        n < 1
        or any(len(rows) != n for rows in parts.sequences)
        or any(
            len(first) != before
            for (first,), before in zip(parts.states, layout.rows_before, strict=True)
        )
    ):
        raise NotSmall
    if n <= FEW_STEPS and not layout.until:
        before, leaves = len(p.instructions), len(p.leaves)
        try:
            return _unrolled(p, layout, step, n, parts)
        except NotSmall:
            del p.instructions[before:], p.leaves[leaves:]
    return _repeated(p, layout, step, node.inputs[0], n_steps, parts)


_structures[Scan] = _inner_loop


def _unrolled(
    p: Program, layout: Layout, step: FunctionGraph, n: int, parts: Parts[Slots]
) -> list[Slots]:
    """Append the steps of an inner loop one after the other."""
    rows = [list(first) for (first,) in parts.states]
    results: list[list[Slots]] = [[] for _ in range(layout.results)]
    for t in range(n):
        old = [of[-tap] for of, taps in zip(rows, layout.taps, strict=True) for tap in taps]
        sequences = [of[t] for of in parts.sequences]
        new = layout.step_outputs(p.graph(step, [*sequences, *old, *parts.constants]))
        for of, (value,) in zip(rows, new.states, strict=True):
            of.append(value)
        for of, value in zip(results, new.results, strict=True):
            of.append(value)
    found = []
    for of, kept in zip([*rows, *results], layout.kept, strict=True):
        if len({np.shape(value) for value in of}) > 1:
            raise NotSmall  # an error, which the VM raises
        found.append(np.array(of if kept is None else of[-kept:], np.int64))
    return found


def _repeated(
    p: Program, layout: Layout, step: FunctionGraph, count: Var, n_steps: Slots, parts: Parts[Any]
) -> list[Any]:
    """Append a loop that hands the last rows of states, and nothing else, to what follows."""
    if layout.results or list(layout.kept) != layout.rows_before:
        raise NotSmall
    n = memory.index_slot(p, n_steps, count.type.dtype)
    for rows in parts.sequences:
        if not isinstance(rows, Held | Each):
            raise NotSmall
        p.check_equal(rows.length(p, 0), n)
    carried: list[Any] = []
    for (first,), taps in zip(parts.states, layout.taps, strict=True):
        if isinstance(first, Held):
            if (
                taps != (1,) or not first.is_whole or first.dims[:1] != (None,)
                or first.version != p.versions[first.operand]
            ):  # fmt: skip
                raise NotSmall
            carried.append(replace(first, version=p.written(first.operand)))
        elif isinstance(first, np.ndarray) and len(first) == max(taps):
            slots = [p.mark(Carried(), [s], p.dtype(s)) for s in _flat(first)]
            carried.append(np.array(slots, np.int64).reshape(first.shape))
        else:
            raise NotSmall
    known = int(p.number(n_steps)) if p.has_number(n) else None
    t = p.mark(Opens(known), [] if known is not None else [n], "int64")
    zero = p.literal(0)
    old = [
        of.at(p, 0, zero) if isinstance(of, Held) else of[-tap]
        for of, taps in zip(carried, layout.taps, strict=True)
        for tap in taps
    ]
    rows = [memory.row(p, of, t) for of in parts.sequences]
    leaves = len(p.leaves)
    out = layout.step_outputs(p.graph(step, [*rows, *old, *parts.constants]))
    after: list[Slots] = []
    for of, (value,) in zip(carried, out.states, strict=True):
        if isinstance(of, Held):
            p.settle(value, of.at(p, 0, zero))
        elif not isinstance(value, np.ndarray) or of.shape[1:] != value.shape or not of.size:
            raise NotSmall
        else:
            after += [*of[1:], value]
    if len(p.leaves) > leaves or not all(isinstance(c, np.ndarray) for c in out.condition):
        raise NotSmall
    flat = [s for of in carried if isinstance(of, np.ndarray) for s in _flat(of)]
    args = [*flat, *(s for value in after for s in _flat(value)), *map(int, out.condition)]
    p.mark(Closes(len(flat)), args, "int64")
    return [
        replace(of, version=p.versions[of.operand]) if isinstance(of, Held) else of
        for of in carried
    ]
