"""How loops run in the compiled VM: it repeats the program of the step itself."""

from __future__ import annotations

from typing import Any

from opwise.compile.executable import Function
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.linkers import opwise_c
from opwise.linkers.kernels import Kernels, Loop
from opwise.linkers.lowering import LoopStep, c_lowering
from opwise.loops import lengths, small
from opwise.loops.op import Scan
from opwise.scalar.recurrence import Recurrence


@c_lowering(Scan, limited=False, any_type=True)
def _scan(node: Apply, kernels: Kernels) -> LoopStep | None:
    step: Any = getattr(node.tag, "inside", None)
    vm = getattr(step, "fn", None)
    if not isinstance(vm, opwise_c.VM):
        return None
    node.tag.repeated = small = _small(node, step.linked.program.fgraph, kernels)
    if small is None and not kernels.demanded:
        _compile_steps(step)
    return LoopStep(vm, node.op.layout, small)


def _small(node: Apply, step: FunctionGraph, kernels: Kernels) -> tuple[Recurrence, Loop] | None:
    """Return the step as a scalar program and the loop that repeats it, where there is one."""
    given = kernels.generate and not lengths.profiled(node.op)
    repeated = small.recurrence(node, step) if given else None
    loop = kernels.recurrence(repeated) if repeated is not None else None
    return None if repeated is None or loop is None else (repeated, loop)


def _compile_steps(step: Any) -> None:
    """Compile what waits for its first run: the kernels of a step, and of loops in it."""
    step.fn.wait_for_kernels()  # calls of the loop do not call this VM
    for node in step.linked.program.fgraph.apply_nodes:
        if isinstance(node.op, Scan) and isinstance(getattr(node.tag, "inside", None), Function):
            repeated = node.tag.repeated
            if repeated is None:
                _compile_steps(node.tag.inside)
            elif repeated[1].on_demand is not None:
                repeated[1].on_demand.load()
