"""How loops run in the compiled VM: it repeats the program of the step itself."""

from __future__ import annotations

from typing import Any

from opwise.graph.apply import Apply
from opwise.linkers import opwise_c
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import LoopStep, c_lowering
from opwise.loops import small
from opwise.loops.op import Scan


@c_lowering(Scan, limited=False)
def _scan(node: Apply, kernels: Kernels) -> LoopStep | None:
    step: Any = getattr(node.tag, "inside", None)
    vm = getattr(step, "fn", None)
    if not isinstance(vm, opwise_c.VM) or not all(step.linked.in_c):
        return None
    repeated = small.recurrence(node, step.linked.program.fgraph) if kernels.generate else None
    loop = kernels.recurrence(repeated) if repeated is not None else None
    return LoopStep(vm, node.op.layout, (repeated, loop) if loop is not None else None)
