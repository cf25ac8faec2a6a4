"""Loops over the same steps are one loop."""

from __future__ import annotations

from dataclasses import replace

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import clone_replace, equal_computations
from opwise.graph.variable import Var
from opwise.loops.op import Scan
from opwise.optimizers.rule import rule


@rule(Scan, stage="useless", tags=("fast_run", "fast_compile"))
def scan_collect_together(fgraph: FunctionGraph, node: Apply) -> dict[Var, Var] | None:
    """two loops with equal states that collect different results -> one that collects all

    The second one is mostly a loop that also collects what gradients read.
    """
    for reader, _ in fgraph.clients(_rarest(fgraph, node)):
        if isinstance(reader, Apply) and reader is not node and _has_same_states(node, reader):
            first, second = sorted((node, reader), key=lambda loop: -loop.op.layout.results)
            return _together(first, second)
    return None


def _together(node: Apply, other: Apply) -> dict[Var, Var]:
    """Return what replaces the outputs of two loops, by the step of the first one."""
    op = node.op
    computed = op.step_outputs
    own_inputs = dict(zip(other.op.inputs, op.inputs, strict=True))
    others = clone_replace(other.op.step_outputs.results, own_inputs)
    places = [_place(computed.results, result) for result in others]
    new = op.variant(op.step_inputs, computed, op.layout.taps, op.layout.last)
    done = new.repeat(node.inputs[0], op.layout.loop_inputs(node.inputs[1:]))
    found: dict[Var, Var] = {}
    for loop, mine in ((node, range(op.layout.results)), (other, places)):
        outputs = replace(done, results=[done.results[k] for k in mine]).flat()
        found.update(zip(loop.outputs, outputs, strict=True))
    return found


def _place(results: list[Var], result: Var) -> int:
    """Return where a list has a result, which is added unless it is there."""
    for k, own in enumerate(results):
        if equal_computations([own], [result]):
            return k
    results.append(result)
    return len(results) - 1


def _rarest(fgraph: FunctionGraph, node: Apply) -> Var:
    """Return the input of an Apply that the fewest others read."""
    return min(node.inputs, key=lambda var: len(fgraph.clients(var)))


def _has_same_states(node: Apply, other: Apply) -> bool:
    """Return whether two loops differ in their results alone."""
    if not isinstance(other.op, Scan) or len(other.inputs) != len(node.inputs):
        return False
    if any(a is not b for a, b in zip(node.inputs, other.inputs, strict=True)):
        return False
    a, b = node.op, other.op
    n_states = len(a.layout.taps)
    return bool(
        a.layout.keeps_results
        and b.layout.keeps_results
        and all(
            getattr(a.layout, name) == getattr(b.layout, name)
            for name in ("sequences", "taps", "objects", "until")
        )
        and a.layout.kept[:n_states] == b.layout.kept[:n_states]
        and (a.mode, a.truncate_gradient) == (b.mode, b.truncate_gradient)
        and equal_computations(
            replace(a.step_outputs, results=[]).flat(),
            replace(b.step_outputs, results=[]).flat(),
            a.inputs,
            b.inputs,
        )
    )
