"""A loop of few steps over scalars, whose number is known, becomes its steps in a row.

They are then fused into one kernel, and what is the same in several of them is computed once. The
rewrite is tried after those that move work out of a loop: they leave less to repeat.
"""

from __future__ import annotations

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import clone_replace, io_toposort
from opwise.graph.variable import Constant, Var
from opwise.loops.layout import Parts
from opwise.loops.op import Scan
from opwise.optimizers.rule import rule
from opwise.tensor import patternbroadcast, stack
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.slices import known_int
from opwise.tensor.type import TensorType

#: the most Applys that a loop becomes. Calls are faster, with more of them too; but compilation is
#: slower from there on: ``benchmark/unrolling.py`` prints both
MOST_APPLYS = 16


@rule(Scan, stage="canonicalize", tags=("fast_run", "scan"))
def scanOp_unroll(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """loop of h = f(h), 3 steps -> f(f(f(h)))"""
    n = known_int(node.inputs[0])
    if n is None or not _pays(node.op, n) or not _has_rows(fgraph, node, n):
        return None
    return _unrolled(node, n)


def _pays(op: Scan, n: int) -> bool:
    """Return whether ``n`` steps take less time in a row, and add little time of compilation.

    Loops over arrays stay: their steps find the values of the step before in the cache, and all
    steps in one kernel were up to 3 times as slow. So does a loop that is compiled or profiled by
    itself.
    """
    if op.layout.until or op.mode is not None or op.profile or not 1 <= n <= MOST_APPLYS:
        return False
    order = io_toposort(op.inputs, op.outputs)
    if n * len(order) > MOST_APPLYS or not all(isinstance(i.op, Elemwise) for i in order):
        return False
    inside = [v for inner in order for v in (*inner.inputs, *inner.outputs)]
    return all(isinstance(v.type, TensorType) and v.type.ndim == 0
               for v in (*op.inputs, *op.outputs, *inside))  # fmt: skip


def _has_rows(fgraph: FunctionGraph, node: Apply, n: int) -> bool:
    """Return whether the sequences are known to have ``n`` rows, and states those before them."""
    layout = node.op.layout
    given = layout.loop_inputs(node.inputs[1:])
    feature = fgraph.shape_feature

    lengths = [(rows, n) for rows in given.sequences if not node.op.fits]
    lengths += [(first, k) for (first,), k in zip(given.states, layout.rows_before, strict=True)]
    return feature is not None and all(
        known_int(feature.shape_of[rows][0]) == count for rows, count in lengths
    )


def _unrolled(node: Apply, n: int) -> list[Var]:
    """Return the outputs of a loop over scalars, computed without it."""
    op, layout = node.op, node.op.layout
    step, given = op.step_inputs, layout.loop_inputs(node.inputs[1:])
    same = dict(zip(step.constants, given.constants, strict=True))
    read = [v for inner in io_toposort(op.inputs, op.outputs) for v in inner.inputs]
    # a graph owns the constants inside
    same.update((v, v.clone()) for v in dict.fromkeys([*read, *op.outputs])
                if isinstance(v, Constant))  # fmt: skip
    states = [
        [first[i] for i in range(before)]
        for (first,), before in zip(given.states, layout.rows_before, strict=True)
    ]
    results: list[list[Var]] = [[] for _ in range(layout.results)]
    for t in range(n):
        now = dict(same)
        for row, whole in zip(step.sequences, given.sequences, strict=True):
            now[row] = whole[t]
        for values, rows, taps in zip(step.states, states, layout.taps, strict=True):
            now.update((var, rows[-tap]) for var, tap in zip(values, taps, strict=True))
        computed: Parts[Var] = layout.step_outputs(clone_replace(op.outputs, now))
        for rows, (new,) in zip(states, computed.states, strict=True):
            rows.append(new)
        for rows, new in zip(results, computed.results, strict=True):
            rows.append(new)
    return [
        patternbroadcast(stack(rows[-(kept or 0) :]), out.type.broadcastable)
        for rows, kept, out in zip(states + results, layout.kept, node.outputs, strict=True)
    ]
