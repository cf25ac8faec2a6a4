"""Loops that compute some of the outputs of another one, from some of its inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from opwise.graph.apply import Apply
from opwise.graph.traversal import clone_replace
from opwise.graph.variable import Var
from opwise.loops.derivatives import without_unused
from opwise.loops.layout import Parts


def with_outputs(
    node: Apply, chosen: Collection[int], replaced: Mapping[Var, Var] = MappingProxyType({})
) -> dict[int, Var]:
    """Return outputs of a loop, by number, as those of a loop that computes no others.

    chosen: their numbers; the steps of these outputs must need no other state or object. replaced:
    inputs of the step, and which other ones to read in their place.
    """
    op, layout = node.op, node.op.layout
    n_states, n_rows = len(layout.taps), len(layout.kept)
    states = [k for k in range(n_states) if k in chosen]
    results = [k for k in range(n_states, n_rows) if k in chosen]
    objects = [k for k in range(n_rows, len(node.outputs)) if k in chosen]

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
    if replaced:
        outputs = outputs.with_values(clone_replace(outputs.flat(), replaced))
    given = layout.loop_inputs(node.inputs[1:])
    inputs, given = without_unused(kept(op.step_inputs), kept(given), outputs)
    rows = enumerate([*states, *results])
    last = {i: layout.last[k] for i, k in rows if k in layout.last}
    new = op.variant(inputs, outputs, [layout.taps[k] for k in states], last)
    found = new.repeat(node.inputs[0], given).flat()
    return dict(zip([*states, *results, *objects], found, strict=True))
