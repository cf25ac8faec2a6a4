"""A loop computes only what is read, from what is not known before."""

from __future__ import annotations

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import ancestors
from opwise.graph.variable import Constant, Var
from opwise.loops.op import Scan
from opwise.loops.rules.selection import with_outputs
from opwise.optimizers.rule import rule

#: with the names that Theano has for its one rewrite where it runs again
_TAGS = (
    "fast_run", "scan", "remove_constants_and_unused_inputs_scan",
    "scanOp_remove_constants_and_unused_inputs0", "scanOp_remove_constants_and_unused_inputs1",
    "scanop_remove_constants_and_unused_inputs2", "scanOp_remove_constants_and_unused_inputs3",
)  # fmt: skip


@rule(Scan, stage="canonicalize", tags=_TAGS)
def scan_remove_unused(fgraph: FunctionGraph, node: Apply) -> list[Var | None] | None:
    """loop -> a loop without the outputs that nothing reads, and without what only they need"""
    read = {k for k, out in enumerate(node.outputs) if fgraph.clients(out)}
    needed = _needed(node.op, read)
    if not read or len(needed) == len(node.outputs):
        return None
    found = with_outputs(node, needed)
    return [found.get(k) for k in range(len(node.outputs))]


@rule(Scan, stage="canonicalize", tags=_TAGS)
def scan_constants_inside(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """loop(constant) -> a loop whose step has the constant itself, and is simplified with it"""
    layout = node.op.layout
    own = node.op.step_inputs.constants
    given = layout.loop_inputs(node.inputs[1:]).constants
    known = {
        var: value
        for var, value in zip(own, given, strict=True)
        if isinstance(value, Constant) and value.type == var.type
    }
    if not known:
        return None
    return list(with_outputs(node, range(len(node.outputs)), known).values())


def _needed(op: Scan, read: set[int]) -> set[int]:
    """Return the outputs of a loop that some of them, or its condition, are computed from."""
    step, layout = op.step_inputs, op.layout
    n_rows = len(layout.taps) + layout.results
    #: input of the step -> the output of the step before that it is
    later = {var: k for k, values in enumerate(step.states) for var in values}
    later |= {var: n_rows + k for k, var in enumerate(step.objects)}
    needed = set(read)
    pending = [*(op.outputs[k] for k in read), *op.step_outputs.condition]
    while pending:
        reached = {later[var] for var in ancestors(pending) if var in later} - needed
        needed |= reached
        pending = [op.outputs[k] for k in reached]
    return needed
