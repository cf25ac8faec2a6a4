"""Builds compiled VMs: of a whole program, and of one step for the plain VM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.linkers import lowering, opwise_c
from opwise.linkers.errors import note_step
from opwise.linkers.kernels import Loop
from opwise.linkers.lowering import AnyStep, CStep, DrawStep, LoopStep, ObjectStep, RunnerStep
from opwise.linkers.program import Program, Step, handed_over
from opwise.linkers.stepparams import pack
from opwise.linkers.storage import Storage
from opwise.linkers.userops.python import python_code
from opwise.linkers.vm import ChoiceThunk, CThunk, ObjectThunk, PerformThunk, Thunk
from opwise.tensor.random import generator
from opwise.tensor.random.raw_random import RandomFunction
from opwise.tensor.random.state import copied

#: called as (step, exception, input values) when an Apply fails; raises
OnError = Callable[[int, BaseException, Sequence[Any]], None]


@dataclass(frozen=True)
class Bound:
    """What runs a step in the compiled VM."""

    #: the kind of a step in C and its parameters; None: ``perform`` runs
    kind: str | None = None
    params: bytes = b""
    #: the loop that it calls
    loop: Loop | None = None
    #: called as (Apply, inputs, storages of outputs); or an ObjectCode, or a Runner
    perform: Any = None


def compiled_vm(
    program: Program,
    storages: Sequence[Storage],
    steps: Sequence[AnyStep | None],
    on_error: OnError,
    allow_gc: bool,
) -> opwise_c.VM:
    """Return the compiled VM of a program. steps: the CStep of each step; None runs ``perform``."""
    bound = [
        _chooser(program, k) if step.node.op.branches else _bound(step.node, c)
        for k, (step, c) in enumerate(zip(program.steps, steps, strict=True))
    ]
    layouts = [lowering.slot_layout(var) for var in program.variables]
    vm = opwise_c.VM(program, layouts, bound, storages, on_error, allow_gc)
    opwise_c.run_in_strips(vm, program.stretches)
    return vm


def _chooser(program: Program, k: int) -> Bound:
    """Return what chooses between the branches of a step."""
    step = program.steps[k]
    first, second = step.node.op.branches
    views = step.node.op.view_map
    shown = [any(i in inputs for inputs in views.values()) for i in range(len(step.inputs))]
    taken = handed_over(program, k)
    return Bound(perform=opwise_c.Chooser(list(first), list(second), shown, taken))


def _bound(node: Apply, c: AnyStep | None) -> Bound:
    """Return what runs an Apply. c: its step in C, or None."""
    if isinstance(c, DrawStep) or (c is None and _draws(node.op)):
        return Bound(perform=_draw(node, c))
    if c is None:
        return Bound(perform=python_code(node))
    if isinstance(c, ObjectStep):
        return Bound(perform=c.code.bind())
    if isinstance(c, RunnerStep):
        return Bound(perform=c.make())
    if isinstance(c, LoopStep):
        return Bound(perform=opwise_c.Loop(c.vm, c.layout, python_code(node), note_step, c.small))
    assert isinstance(c, CStep), "made by _chooser"
    return Bound(c.kind, pack(c), c.loop)


def _draws(op: Op) -> bool:
    """Return whether an Op draws from one of numpy's generators."""
    return type(op) is RandomFunction or isinstance(op, generator.GeneratorDraw)


def _draw(node: Apply, c: DrawStep | None) -> opwise_c.Draw | opwise_c.GeneratorDraw:
    """Return what runs a draw from one of numpy's generators; c: None if Python draws."""
    op = node.op
    alone = len(node.inputs[0]._clients) == 1
    method = c.method if c is not None else None
    if isinstance(op, generator.GeneratorDraw):
        return opwise_c.GeneratorDraw(
            method, op.numbers, generator.copied, op.inplace, alone, op.sized
        )
    in_place = RandomFunction(op.fn, op.outtype, inplace=True, ndim_added=op.ndim_added)
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
    if c_step is None or isinstance(c_step, LoopStep | DrawStep | RunnerStep):
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
    alone = Program(
        fgraph=program.fgraph,
        variables=tuple(program.variables[s] for s in slots),
        steps=(Step(step.node, inputs, outputs, ()),),
        inputs=tuple(dict.fromkeys(inputs)),
        outputs=outputs,
        constants={},
        parents=tuple(at.get(program.parents[s], -1) for s in slots),
        commit=1,
        destroyed=(),
        ends=outputs,
    )
    return compiled_vm(alone, [storages[s] for s in slots], [c_step], _raise, True)


def _raise(step: int, exception: BaseException, values: Sequence[Any]) -> None:
    raise exception
