"""Builds compiled VMs: of a whole program, and of one step for the plain VM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.linkers import lowering, opwise_c, strips
from opwise.linkers.errors import note_step
from opwise.linkers.lowering import AnyStep, ChoiceStep, CStep, DrawStep, LoopStep, ObjectStep
from opwise.linkers.program import Program, Stretch, handed_over
from opwise.linkers.stepparams import pack
from opwise.linkers.storage import Storage
from opwise.linkers.userops.python import python_code
from opwise.linkers.vm import ChoiceThunk, CThunk, ObjectThunk, PerformThunk, Thunk
from opwise.scalar import csource
from opwise.tensor.random.raw_random import RandomFunction
from opwise.tensor.random.state import copied

#: called as (step, exception, input values) when an Apply fails; raises
OnError = Callable[[int, BaseException, Sequence[Any]], None]


def compiled_vm(
    program: Program,
    storages: Sequence[Storage],
    steps: Sequence[AnyStep | None],
    on_error: OnError,
    allow_gc: bool,
) -> opwise_c.VM:
    """Return the compiled VM of a program. steps: the CStep of each step; None runs ``perform``."""
    return opwise_c.VM(
        [lowering.slot_layout(var) for var in program.variables],
        [
            _choice(program, k)
            if step.node.op.branches
            else _row(step.node, step.inputs, step.outputs, c)
            for k, (step, c) in enumerate(zip(program.steps, steps, strict=True))
        ],
        [(slot, storages[slot]) for slot in program.inputs],
        [(slot, storages[slot]) for slot in program.outputs],
        program.constants,
        list(program.parents),
        [step.dies for step in program.steps],
        list(program.ends),
        program.commit,
        list(program.destroyed),
        on_error,
        allow_gc,
        tuple((c.at, c.condition, c.guard, *c.branches) for c in program.choices),
        program.guards,
        program.advancing,
        tuple((stretch, _totals(stretch)) for stretch in program.stretches),
    )


def _totals(stretch: Stretch) -> list[tuple[int, ...]]:
    """Return (slot, bytes of an element, addresses of the loop that joins and of those to the wider
    dtype in which it joins, and back, or 0) of the totals of a stretch."""
    totals = []
    for slot, dtype, row in stretch.totals:
        wide = strips.joined_in(dtype)
        short, shorter = csource.short(wide), csource.short(dtype)
        casts = [f"cast_{shorter}_{short}", f"cast_{short}_{shorter}"] if wide != dtype else []
        loops = [opwise_c.LOOPS[name] for name in (strips.join_loop(row, dtype), *casts)]
        totals.append((slot, np.dtype(wide).itemsize, *loops, *[0] * (3 - len(loops))))
    return totals


def _choice(program: Program, k: int) -> tuple[Any, ...]:
    """Return a step that chooses between branches, as ``opwise_c.VM`` takes it."""
    step = program.steps[k]
    first, second = step.node.op.branches
    views = step.node.op.view_map
    shown = [any(i in inputs for inputs in views.values()) for i in range(len(step.inputs))]
    runner = opwise_c.Chooser(list(first), list(second), shown, handed_over(program, k))
    return None, step.inputs, step.outputs, b"", 0, 0, None, runner, step.node


def _row(
    node: Apply, inputs: tuple[int, ...], outputs: tuple[int, ...], c: AnyStep | None
) -> tuple[Any, ...]:
    """Return a step as ``opwise_c.VM`` takes it. inputs, outputs: slots."""
    if isinstance(c, DrawStep) or (c is None and type(node.op) is RandomFunction):
        return None, inputs, outputs, b"", 0, 0, None, _draw(node, c), node
    if c is None:
        return None, inputs, outputs, b"", 0, 0, None, python_code(node), node
    if isinstance(c, ObjectStep):
        return None, inputs, outputs, b"", 0, 0, None, c.code.bind(), node
    assert not isinstance(c, ChoiceStep), "made by _choice"
    if isinstance(c, LoopStep):
        repeated = opwise_c.Loop(c.vm, c.layout, python_code(node), note_step, c.small)
        return None, inputs, outputs, b"", 0, 0, None, repeated, node
    loop = c.loop
    address, context = (loop.address, loop.context) if loop is not None else (0, 0)
    return c.kind, inputs, outputs, pack(c), address, context, loop, None, node


def _draw(node: Apply, c: DrawStep | None) -> opwise_c.Draw:
    """Return what runs a draw from one of numpy's generators; c: None if numpy draws."""
    op = node.op
    in_place = RandomFunction(op.fn, op.outtype, inplace=True, ndim_added=op.ndim_added)
    alone = len(node.inputs[0]._clients) == 1
    method = c.method if c is not None else None
    return opwise_c.Draw(method, in_place.perform, copied, bool(op.inplace), alone)


def make_thunk(
    program: Program, k: int, c_step: AnyStep | None, storages: Sequence[Storage]
) -> Thunk:
    """Return the thunk of step ``k`` for the plain VM."""
    step = program.steps[k]
    ins = [storages[s] for s in step.inputs]
    outs = [storages[s] for s in step.outputs]
    if step.node.op.branches:
        return ChoiceThunk(step.node, ins, outs, handed_over(program, k))
    if c_step is None or isinstance(c_step, LoopStep | DrawStep):
        return PerformThunk(step.node, ins, outs)
    if isinstance(c_step, ObjectStep):
        return ObjectThunk(step.node, ins, outs, c_step.code.bind())
    assert isinstance(c_step, CStep)
    return CThunk(step.node, ins, outs, single_step_vm(program, k, c_step, storages))


def single_step_vm(
    program: Program, k: int, c_step: CStep, storages: Sequence[Storage]
) -> opwise_c.VM:
    """Return a compiled VM that runs only step ``k``, between Python storages."""
    step = program.steps[k]
    slots = list(dict.fromkeys((*step.inputs, *step.outputs)))
    at = {slot: i for i, slot in enumerate(slots)}
    inputs, outputs = tuple(at[s] for s in step.inputs), tuple(at[s] for s in step.outputs)
    return opwise_c.VM(
        [lowering.slot_layout(program.variables[s]) for s in slots],
        [_row(step.node, inputs, outputs, c_step)],
        [(at[s], storages[s]) for s in dict.fromkeys(step.inputs)],
        [(at[s], storages[s]) for s in step.outputs],
        {},
        [at.get(program.parents[s], -1) for s in slots],
        [()],
        list(outputs),
        1,
        [],
        _raise,
    )


def _raise(step: int, exception: BaseException, values: Sequence[Any]) -> None:
    raise exception
