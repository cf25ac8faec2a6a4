"""A loop computes only what is read."""

from __future__ import annotations

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import ancestors
from opwise.loops.derivatives import without_unused
from opwise.loops.layout import Parts, Var
from opwise.loops.op import Scan
from opwise.optimizers.rule import rule


@rule(
    Scan,
    stage="canonicalize",
    tags=("fast_run", "scan", "remove_constants_and_unused_inputs_scan"),
)
def scan_remove_unused(fgraph: FunctionGraph, node: Apply) -> list[Var | None] | None:
    """loop -> a loop without the outputs that nothing reads, and without what only they need"""
    op, layout = node.op, node.op.layout
    read = {k for k, out in enumerate(node.outputs) if fgraph.clients(out)}
    needed = _needed(op, read)
    if not read or len(needed) == len(node.outputs):
        return None
    n_states, n_rows = len(layout.taps), len(layout.taps) + layout.results
    states = [k for k in range(n_states) if k in needed]
    results = [k for k in range(n_states, n_rows) if k in needed]
    objects = [k for k in range(n_rows, len(node.outputs)) if k in needed]

    def kept(parts: Parts[Var]) -> Parts[Var]:
        return Parts(
            sequences=parts.sequences,
            states=[parts.states[k] for k in states],
            results=[parts.results[k - n_states] for k in results] if parts.results else [],
            objects=[parts.objects[k - n_rows] for k in objects],
            constants=parts.constants,
            condition=parts.condition,
        )

    outputs = kept(op.step_outputs)
    given = layout.loop_inputs(node.inputs[1:])
    inputs, given = without_unused(kept(op.step_inputs), kept(given), outputs)
    rows = enumerate([*states, *results])
    last = {i: layout.last[k] for i, k in rows if k in layout.last}
    new = op.variant(inputs, outputs, [layout.taps[k] for k in states], last)
    found = dict(zip([*states, *results, *objects], new.repeat(node.inputs[0], given).flat(),
                     strict=True))  # fmt: skip
    return [found.get(k) for k in range(len(node.outputs))]


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
