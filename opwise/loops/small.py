"""Steps on numbers and small arrays as scalar programs, which one C function repeats.

Lengths are those of constants, of the present values of shared variables, and of vectors that the
step makes of numbers; ``Loop`` checks that they are the same in each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, cast

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.loops import memory
from opwise.loops.layout import Layout, Parts
from opwise.loops.lengths import Lengths, inner_step, lengths_of
from opwise.loops.op import Scan
from opwise.loops.program import (
    C_DTYPES,
    FEW_STEPS,
    MAX_ELEMENTS,
    MAX_NS,
    MAX_SYSTEM,
    MAX_TAP,
    VIEWS,
    Builder,
    Held,
    NotSmall,
    Slots,
    can_append,
    on_memory,
    on_registers,
    root_of,
)
from opwise.scalar.recurrence import (
    Carried,
    Closes,
    Opens,
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


def recurrence(node: Apply, step: FunctionGraph) -> Recurrence | None:
    """Return the step of a loop as a scalar program; None if it is none of few operations.

    step: the compiled graph.
    """
    layout: Layout = node.op.layout
    variables = (*step.inputs, *step.outputs)
    loops = any(isinstance(n.op, Scan) for n in step.apply_nodes)
    if (
        layout.objects
        or len(step.inputs) != len(node.op.inputs)
        or any(max(taps) > MAX_TAP for taps in layout.taps)
        or not (layout.taps or loops)
        or any(getattr(var.type, "dtype", None) not in C_DTYPES for var in variables)
        or not all(can_append(n.op) for n in step.apply_nodes)
    ):
        return None
    n_steps = node.inputs[0]
    few = isinstance(n_steps, Constant) and n_steps.data <= FEW_STEPS
    known = lengths_of(node, layout, step)
    for shapes in (known, *_in_memory(known)):
        if few and not (loops and any(-1 in shape for shape in shapes)):
            continue
        try:
            return _program(node, step, layout.step_inputs(shapes))
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


def _program(node: Apply, step: FunctionGraph, shapes: Parts[Any]) -> Recurrence:
    layout: Layout = node.op.layout
    flat = shapes.flat()
    if any(None in shape or size(shape) > MAX_ELEMENTS for shape in flat):
        raise NotSmall
    in_dtypes = [
        var.type.dtype
        for var, shape in zip(step.inputs, flat, strict=True)
        for _ in range(size(shape))
    ]
    constants = len(shapes.sequences) + len(layout.taps) + layout.results
    program = Builder(
        in_dtypes, sum(map(size, shapes.constants)), constants + len(shapes.constants)
    )
    operand_of = [
        *range(len(shapes.sequences)),
        *(len(shapes.sequences) + k for k, taps in enumerate(layout.taps) for _ in taps),
        *(constants + k for k in range(len(shapes.constants))),
    ]  # fmt: skip
    outside = dict(
        zip(
            layout.step_inputs(step.inputs).constants,
            layout.loop_inputs(node.inputs[1:]).constants,
            strict=True,
        )
    )
    sequences = dict(
        zip(
            layout.step_inputs(step.inputs).sequences,
            layout.loop_inputs(node.inputs[1:]).sequences,
            strict=True,
        )
    )
    inputs: list[Any] = []
    start = 0
    for var, shape, operand in zip(step.inputs, flat, operand_of, strict=True):
        if in_memory(shape):
            held = program.held(operand, var.type.dtype, len(shape))
            inputs.append(memory.as_range(program, held, outside.get(var)) or held)
            continue
        inputs.append(np.arange(start, start + size(shape)).reshape(shape))
        if memory.progression(sequences.get(var))[1] is not None:
            program.numbers_of_steps.add(start)
        start += size(shape)
    for k, taps in enumerate(shapes.states):
        if in_memory(taps[0]):
            if layout.taps[k] != (1,):
                raise NotSmall
            if layout.kept[k] == 1:
                program.writable.add(len(shapes.sequences) + k)
    outputs = layout.step_outputs(program.graph(step, inputs))
    new: list[tuple[int, ...]] = []
    rows: list[tuple[Any, Held]] = []
    settled: list[tuple[Any, Held]] = []
    for k, (taps, (value,)) in enumerate(zip(shapes.states, outputs.states, strict=True)):
        if in_memory(taps[0]):
            operand = len(shapes.sequences) + k
            dtype = step.outputs[k].type.dtype
            if layout.kept[k] == 1:
                settled.append((value, program.held(operand, dtype, len(taps[0]))))
            else:
                every = [program.length(operand, d) for d in range(len(taps[0]))]
                rows.append((value, program.row(operand, every, dtype)))
            new.append(())
        else:
            new.append(_flat(memory.in_registers(program, value, taps[0])))
    results: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    origins: list[tuple[tuple[int, int], ...]] = []
    first = len(shapes.sequences) + len(layout.taps)
    for k, (value, var) in enumerate(
        zip(outputs.results, layout.step_outputs(step.outputs).results, strict=True), first
    ):
        if isinstance(value, np.ndarray):
            results.append((value.shape, _flat(value)))
            origins.append(())
            continue
        every = memory.lengths(program, value)
        results.append(((-1,) * len(every), ()))
        origins.append(tuple(map(program.origin, every)))
        rows.append((value, program.row(k, every, var.type.dtype)))
    # rows first: what is written where it lies may be what they read
    for value, place in rows:
        memory.put(program, value, place)
    memory.settle(program, settled)
    if not all(isinstance(row, np.ndarray) for row in outputs.condition):
        raise NotSmall
    if program.leaves and settled:
        raise NotSmall  # the VM would do a step again of which a part is done

    found = Recurrence(
        in_dtypes=tuple(in_dtypes),
        instructions=tuple(program.instructions),
        sequences=tuple(shapes.sequences),
        states=tuple(taps[0] for taps in shapes.states),
        constants=tuple(shapes.constants),
        taps=layout.taps,
        new=tuple(new),
        results=tuple(results),
        origins=tuple(origins),
        limits=tuple(program.limits.items()),
        ends=int(outputs.condition[0]) if layout.until else None,
        leaves=tuple(program.leaves),
        turned=_turned(layout, layout.loop_inputs(node.inputs[1:])),
        ranges=_ranges(layout, layout.loop_inputs(node.inputs[1:])),
    )
    if MAX_NS < found.nanoseconds < inf:
        raise NotSmall
    return found


def _turned(layout: Layout, outside: Parts[Var]) -> frozenset[int]:
    """Return the operands whose last elements are those of another dimension of an array."""

    def is_turned(var: Var) -> bool:
        while var.owner is not None and isinstance(var.owner.op, VIEWS):
            if isinstance(var.owner.op, DimShuffle):
                order = [o for o in var.owner.op.new_order if isinstance(o, int)]
                return bool(order) and order[-1] != var.owner.inputs[0].type.ndim - 1
            var = var.owner.inputs[0]
        return False

    states = [first for (first,) in outside.states]
    every = [*outside.sequences, *states, *[None] * layout.results, *outside.constants]
    return frozenset(k for k, var in enumerate(every) if var is not None and is_turned(var))


def _ranges(layout: Layout, outside: Parts[Var]) -> tuple[tuple[int, int], ...]:
    """Return (sequence, step) of those that are ranges of int64."""
    steps = [
        (k, memory.progression(var)[1])
        for k, var in enumerate(outside.sequences)
        if var.type.dtype == "int64"
    ]
    return tuple((k, step) for k, step in steps if step is not None)


def _flat(slots: Slots) -> tuple[int, ...]:
    return tuple(map(int, slots.ravel()))


@on_registers(Elemwise)
def _elemwise(p: Builder, node: Apply, *values: Slots) -> list[Slots]:
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


@on_registers(DimShuffle, Rebroadcast)
def _moved(p: Builder, node: Apply, x: Slots) -> Slots:
    storage: list[Any] = [None]
    node.op.perform(node, [x], [storage])
    moved: Slots = storage[0]
    return moved


@on_registers(DeepCopyOp, ViewOp, ScalarFromTensor, TensorFromScalar)
def _same(p: Builder, node: Apply, x: Slots) -> Slots:
    return x


def _all_known(p: Builder, numbers: Sequence[Slots]) -> bool:
    return all(p.has_number(slot) for each in numbers for slot in each.ravel())


@on_registers(Subtensor, Reshape)
def _part(p: Builder, node: Apply, x: Slots, *numbers: Slots) -> Any:
    if isinstance(node.op, Subtensor) and not _all_known(p, numbers):
        return memory.part(p, node, memory.writable(p, x), *numbers)
    storage: list[Any] = [None]
    try:
        node.op.perform(node, [x, *map(p.number, numbers)], [storage])
    except (IndexError, ValueError):
        raise NotSmall from None
    part: Slots = storage[0]
    return part


@on_registers(IncSubtensor)
def _changed(p: Builder, node: Apply, x: Slots, y: Slots, *indices: Slots) -> Any:
    if not _all_known(p, indices):
        return memory.changed(p, node, x, y, *indices)
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


@on_registers(MakeVector)
def _vector(p: Builder, node: Apply, *values: Slots) -> Slots:
    return p.cast(np.array(values, np.int64), node.outputs[0].type.dtype)


@on_registers(Join)
def _join(p: Builder, node: Apply, axis: Slots, *values: Slots) -> Slots:
    dtype = node.outputs[0].type.dtype
    try:
        return np.concatenate([p.cast(x, dtype) for x in values], axis=int(p.number(axis)))
    except ValueError:
        raise NotSmall from None


@on_registers(Alloc)
def _alloc(p: Builder, node: Apply, value: Slots, *lengths: Slots) -> Any:
    if not all(map(p.has_number, lengths)):
        return memory.filled(p, node, value, *lengths)
    shape = [int(p.number(n)) for n in lengths]
    if int(np.prod(shape)) > MAX_ELEMENTS:
        return memory.filled(p, node, value, *lengths)
    try:
        return np.broadcast_to(value, shape).copy()
    except ValueError:
        raise NotSmall from None


@on_registers(AllocEmpty)
def _alloc_empty(p: Builder, node: Apply, *lengths: Slots) -> Any:
    dtype = node.outputs[0].type.dtype
    if all(map(p.has_number, lengths)):
        shape = [int(p.number(n)) for n in lengths]
        if int(np.prod(shape)) <= MAX_ELEMENTS:
            return p.constant(np.zeros(shape, dtype))
    return p.scratch(memory.counts(p, node.inputs, lengths), dtype)


@on_registers(Shape_i)
def _length(p: Builder, node: Apply, x: Slots) -> Slots:
    return p.constant(np.array(x.shape[node.op.i]))


@on_registers(Shape)
def _shape(p: Builder, node: Apply, x: Slots) -> Slots:
    return p.constant(np.array(x.shape, np.int64))


@on_registers(Dot, Dot22)
def _dot(p: Builder, node: Apply, x: Slots, y: Slots) -> Slots:
    dtype = node.outputs[0].type.dtype
    return p.product(p.cast(x, dtype), p.cast(y, dtype))


@on_registers(Dot22Scalar)
def _dot_scaled(p: Builder, node: Apply, x: Slots, y: Slots, a: Slots) -> Slots:
    return p.scaled(a, p.product(x, y))


@on_registers(Gemv)
def _gemv(
    p: Builder, node: Apply, y: Slots, alpha: Slots, a: Slots, x: Slots, beta: Slots
) -> Slots:
    return p.added(y, beta, p.scaled(alpha, p.product(a, x)))


@on_registers(Gemm)
def _gemm(p: Builder, node: Apply, z: Slots, a: Slots, x: Slots, y: Slots, b: Slots) -> Slots:
    return p.added(z, b, p.scaled(a, p.product(x, y)))


@on_registers(Ger)
def _ger(p: Builder, node: Apply, a: Slots, alpha: Slots, x: Slots, y: Slots) -> Slots:
    one = p.constant(np.ones((), node.outputs[0].type.dtype))
    outer = p.product(p.scaled(alpha, x)[:, None], y[None, :])
    return p.added(a, one, outer)


@on_registers(CAReduceDtype)
def _reduced(p: Builder, node: Apply, x: Slots) -> Slots:
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


@on_registers(MapReduce)
def _map_reduced(p: Builder, node: Apply, *values: Slots) -> Slots:
    mapped, every = node.op.parts(node)
    if len(every) > 1:
        raise NotSmall
    (found,) = p.run(every[0], p.run(mapped, list(values)))
    return np.asarray(found)


@on_memory(Rowwise)
@on_registers(Rowwise)
def _rowwise(p: Builder, node: Apply, *values: Any) -> list[Any]:
    slots = list(values)
    for args, applys in node.op.parts(node):
        given = [slots[a] for a in args]
        for apply in applys:
            given = p.run(apply, given)
        slots.append(given[0])
    return [slots[s] for s in node.op.outs]


@on_registers(Solve)
def _solve(p: Builder, node: Apply, a: Slots, b: Slots) -> Slots:
    if node.op.is_triangular or node.op.on_error == "nan":
        raise NotSmall  # a singular matrix is left to the VM
    dtype = node.outputs[0].type.dtype
    return p.solution(p.cast(a, dtype), p.cast(b, dtype))


@on_registers(MatrixInverse)
def _inverse(p: Builder, node: Apply, x: Slots) -> Slots:
    if x.shape[0] > MAX_SYSTEM:
        raise NotSmall
    return p.solution(x, p.constant(np.eye(len(x), dtype=node.outputs[0].type.dtype)))


# --- inner loops ----------------------------------------------------------------------------------


@on_registers(ARange)
def _arange(p: Builder, node: Apply, *numbers: Slots) -> Any:
    return memory.arange(p, node, *numbers)


@on_registers(IfElse)
def _choice(p: Builder, node: Apply, *values: Any) -> Any:
    raise AssertionError("branches are appended by Run")


@on_registers(Scan)
@on_memory(Scan)
def _inner_loop(p: Builder, node: Apply, n_steps: Slots, *given: Any) -> list[Any]:
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
        before = p.state()
        try:
            return _unrolled(p, layout, step, n, parts)
        except NotSmall:
            p.take_back(before)
    return _repeated(p, layout, step, node.inputs[0], n_steps, parts)


def _unrolled(
    p: Builder, layout: Layout, step: FunctionGraph, n: int, parts: Parts[Slots]
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


def _indexed(step: FunctionGraph) -> set[Var]:
    """Return the arrays of which a step reads or writes parts at computed places."""
    return {
        root_of(node.inputs[0])
        for node in step.apply_nodes
        if isinstance(node.op, Subtensor | IncSubtensor)
        and not all(isinstance(v, Constant) for v in node.inputs if not v.type.ndim)
    }


def _repeated(
    p: Builder, layout: Layout, step: FunctionGraph, count: Var, n_steps: Slots, parts: Parts[Any]
) -> list[Any]:
    """Append a loop that hands on the last rows of states, and numbers of all steps."""
    kept = layout.kept[len(layout.taps) :]
    olds = layout.step_inputs(step.inputs).states
    #: the states of which all rows are read after the loop
    whole = [k for k, before in enumerate(layout.rows_before) if layout.kept[k] != before]
    if any(layout.until or layout.kept[k] is not None or olds[k][0].type.ndim for k in whole):
        raise NotSmall
    if layout.results and (layout.until or any(k is not None for k in kept)):
        raise NotSmall  # how many rows there are is known after the loop
    n = memory.index_slot(p, n_steps, count.type.dtype)
    for rows in parts.sequences:
        p.check_equal(memory.lengths(p, rows)[0], n)
    carried: list[Any] = []
    indexed = _indexed(step)
    for (first,), taps, (old_var, *_) in zip(parts.states, layout.taps, olds, strict=True):
        if not isinstance(first, np.ndarray) or (taps == (1,) and old_var in indexed):
            if taps != (1,):
                raise NotSmall
            place = first
            if not isinstance(first, Held) or not first.is_whole or first.dims[:1] != (None,):
                place = memory.row(p, first, p.literal(0))
            place = memory.writable(p, place)
            if place.version != p.versions[place.operand]:
                raise NotSmall
            if len(place.dims) < len(memory.lengths(p, first)):
                place = replace(place, dims=(None, *place.dims))
            carried.append(replace(place, version=p.written(place.operand)))
        elif len(first) == max(taps):
            slots = [p.mark(Carried(), [s], p.dtype(s)) for s in _flat(first)]
            carried.append(np.array(slots, np.int64).reshape(first.shape))
        else:
            raise NotSmall
    made = layout.step_outputs(step.outputs).results
    if any(var.type.ndim for var in made):
        raise NotSmall
    collected = [p.scratch([n], var.type.dtype) for var in made]
    rows_of: dict[int, Held] = {}
    for k in whole:
        before = p.literal(layout.rows_before[k])
        first = memory.in_registers(p, parts.states[k][0], (layout.rows_before[k],))
        rows_of[k] = p.scratch([p.one("add", n, before)], olds[k][0].type.dtype)
        for j, slot in enumerate(_flat(first)):
            rows_of[k].at(p, 0, p.literal(j)).write(p, slot)
    known = int(p.number(n_steps)) if p.has_number(n) else None
    t = p.mark(Opens(known), [] if known is not None else [n], "int64")
    p.counters[t] = n
    zero = p.literal(0)
    old = [
        of.at(p, 0, zero) if isinstance(of, Held) else of[-tap]
        for of, taps in zip(carried, layout.taps, strict=True)
        for tap in taps
    ]
    rows = [memory.row(p, memory.in_steps(p, of), t) for of in parts.sequences]
    leaves = len(p.leaves)
    # each inner step finds other arrays as they were before the loop
    around, p.writable = p.writable, {of.operand for of in carried if isinstance(of, Held)}
    out = layout.step_outputs(p.graph(step, [*rows, *old, *parts.constants]))
    after: list[Slots] = []
    settled: list[tuple[Any, Held]] = []
    for of, (value,) in zip(carried, out.states, strict=True):
        if isinstance(of, Held):
            settled.append((value, of.at(p, 0, zero)))
        else:
            after += [*of[1:], memory.in_registers(p, value, of.shape[1:])]
    memory.settle(p, settled)
    for of, value in zip(collected, out.results, strict=True):
        of.at(p, 0, t).write(p, int(value))
    for k, of in rows_of.items():
        (value,) = out.states[k]
        place = p.one("add", t, p.literal(layout.rows_before[k]))
        of.at(p, 0, place).write(p, int(memory.in_registers(p, value, ())))
    if len(p.leaves) > leaves or not all(isinstance(c, np.ndarray) for c in out.condition):
        raise NotSmall
    flat = [s for of in carried if isinstance(of, np.ndarray) for s in _flat(of)]
    args = [*flat, *(s for value in after for s in _flat(value)), *map(int, out.condition)]
    p.mark(Closes(len(flat)), args, "int64")
    every = [*(rows_of.get(k, of) for k, of in enumerate(carried)), *collected]
    p.writable = around
    for of in (*rows_of.values(), *collected):
        p.written(of.operand)
    return [
        replace(of, version=p.versions[of.operand]) if isinstance(of, Held) else of for of in every
    ]
