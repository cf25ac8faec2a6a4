"""``Op.make_thunk``: a thunk of one Apply on storages that the caller gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable
from opwise.linkers import lowering
from opwise.linkers.compiled import single_step_vm
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import ObjectStep
from opwise.linkers.program import make_program
from opwise.linkers.storage import Storage
from opwise.linkers.userops.code import lower_c_code
from opwise.linkers.userops.python import perform_of, prepare
from opwise.linkers.vm import CThunk, ObjectThunk, PerformThunk, Thunk


class MappedThunk:
    """A thunk that also notes in ``compute_map`` that the outputs are computed."""

    lazy = False

    def __init__(self, thunk: Thunk, compute_map: Mapping[Variable, list[bool]] | None) -> None:
        self.thunk = thunk
        self.inputs, self.outputs = thunk.inputs, thunk.outputs
        self._computed = [compute_map[v] for v in thunk.node.outputs] if compute_map else []
        if hasattr(thunk, "cthunk"):
            self.cthunk = thunk.cthunk

    def __call__(self) -> None:
        self.thunk()
        for flag in self._computed:
            flag[0] = True


def make_thunk(
    node: Apply,
    storage_map: Mapping[Variable, Storage],
    compute_map: Mapping[Variable, list[bool]] | None,
    impl: str | None,
) -> MappedThunk:
    """Return a thunk of an Apply.

    impl: 'c', 'py', or None for C if there is C. Raises NotImplementedError if there is no C for
    'c'.
    """
    inputs = [storage_map[var] for var in node.inputs]
    outputs = [storage_map[var] for var in node.outputs]
    thunk: Thunk | None = None
    if impl != "py":
        prepare(node, storage_map, compute_map, "c")
        thunk = _c_thunk(node, inputs, outputs)
        if thunk is None and impl == "c":
            raise NotImplementedError(f"{node.op} cannot produce C code")
    if thunk is None:
        prepare(node, storage_map, compute_map, "py")
        thunk = PerformThunk(node, inputs, outputs, perform_of(node))
    return MappedThunk(thunk, compute_map)


def _c_thunk(node: Apply, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> Thunk | None:
    kernels = Kernels()
    if lowering.runs_c_code(node.op):
        step: Any = lower_c_code(node, kernels)
    else:
        step = lowering.c_step(node, kernels)
    kernels.finish()
    if step is None:
        return None
    if isinstance(step, ObjectStep):
        return ObjectThunk(node, inputs, outputs, step.code.bind())
    if step.loop is not None and not step.loop.address:
        return None
    clone = node.clone_with_new_inputs([var.clone() for var in node.inputs])
    program = make_program(FunctionGraph(clone.inputs, clone.outputs, clone=False))
    by_variable = dict(zip((*clone.inputs, *clone.outputs), (*inputs, *outputs), strict=True))
    storages = [by_variable[var] for var in program.variables]
    return CThunk(node, inputs, outputs, single_step_vm(program, 0, step, storages))
