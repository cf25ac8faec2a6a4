"""Steps in a form that a device can run: without functions inside, and numbers on the host."""

from __future__ import annotations

import importlib
from typing import Any

from opwise.compile.fromgraph import OpFromGraph, inline_ofg_on_device
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import ancestors, clone_replace, io_toposort
from opwise.graph.variable import Var
from opwise.loops.op import Scan
from opwise.optimizers.rule import rule
from opwise.tensor.advanced_subtensor import AdvancedIncSubtensor, AdvancedSubtensor
from opwise.tensor.convert import ScalarFromTensor, tensor_from_scalar
from opwise.tensor.subtensor import IncSubtensor, Subtensor, get_idx_list


@rule(Scan, stage="loop_steps_on_device")
def scan_step_on_device(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """loop over x[i] -> loop over x[i] by a kernel that reads i, if a device can run it then

    What is in an OpFromGraph becomes part of the step as well.
    """
    op = node.op
    if not _stays_on_host(node):
        return None
    step = FunctionGraph(op.inputs, _inlined(op.inputs, op.outputs))
    constants = op.layout.step_inputs(step.inputs).constants
    varying = set(step.inputs).difference(constants)
    for inner in step.toposort():
        found = _by_kernel(inner, varying)
        if found is not None and found.type == inner.outputs[0].type:
            step.replace(inner.outputs[0], found)
    new = op.variant(
        op.layout.step_inputs(step.inputs), op.layout.step_outputs(step.outputs),
        op.layout.taps, op.layout.last,
    )  # fmt: skip
    given = op.layout.loop_inputs(node.inputs[1:])
    outputs = new.repeat(node.inputs[0], given).flat()
    return None if _stays_on_host(outputs[0].owner) else outputs


def _stays_on_host(node: Apply) -> bool:
    lowered = importlib.import_module("opwise.gpu.lowering").lower(node)
    return isinstance(lowered, str)


def _inlined(inputs: list[Var], outputs: list[Var]) -> list[Var]:
    """Return outputs of a graph with the graph of each OpFromGraph in its place."""
    for node in io_toposort(inputs, outputs):
        graph: Any = None
        if isinstance(node.op, OpFromGraph):
            graph = inline_ofg_on_device(None, node)
        if graph is not None:
            pairs = dict(zip(node.outputs, graph, strict=True))
            return _inlined(inputs, clone_replace(outputs, pairs))
    return outputs


def _by_kernel(node: Apply, varying: set[Var]) -> Var | None:
    """Return what an Apply computes, without an index on the host; None if it has none to spare."""
    op: Any = node.op
    picks: Any
    if isinstance(op, Subtensor):
        count, picks = 1, AdvancedSubtensor()
    elif isinstance(op, IncSubtensor) and not op.inplace:
        count, picks = 2, AdvancedIncSubtensor(set_instead_of_inc=op.set_instead_of_inc)
    else:
        return None
    operands, indices = node.inputs[:count], node.inputs[count:]
    items = get_idx_list([None, *indices], op.idx_list)
    numbers = [_as_tensor(item) for item in items if not isinstance(item, slice)]
    if varying.isdisjoint(ancestors(numbers)):
        return None
    found: Var = picks(
        *operands, *(item if isinstance(item, slice) else _as_tensor(item) for item in items)
    )
    return found


def _as_tensor(number: Any) -> Var:
    """Return an index as a tensor: where it comes from, if it was one."""
    if number.owner is not None and isinstance(number.owner.op, ScalarFromTensor):
        return number.owner.inputs[0]
    return tensor_from_scalar(number)
