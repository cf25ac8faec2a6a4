"""Checks of rewrites by the values before and after.

DebugMode checks each replacement of a whole optimization, see ``history``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwise import Constant, FunctionGraph, Variable
from opwise.config import thread_flags
from opwise.errors import BadOptimization
from opwise.graph import provenance
from opwise.graph.traversal import io_toposort
from opwise.optimizers.folding import params
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.passes import Optimizer
from opwise.scalar import Composite
from opwise.tensor import CAReduce, Elemwise
from opwise.tensor.gathered import Gathered
from opwise.tensor.mapreduce import MapReduce


def evaluate(outputs: Sequence[Variable], values: Mapping[Variable, Any]) -> list[Any]:
    """Return the values of ``outputs``, computed by the ``perform`` methods, Apply by Apply.

    values: dict from the variables that the outputs depend on to arrays. Nothing is rewritten, and
    no value is overwritten.
    """
    known = dict(values)

    def value_of(var):
        return var.data if isinstance(var, Constant) and var not in known else known[var]

    for node in io_toposort(list(values), outputs):
        destroyed = {i for indices in node.op.destroy_map.values() for i in indices}
        inputs = [
            value_of(var).copy() if i in destroyed else value_of(var)
            for i, var in enumerate(node.inputs)
        ]
        storage = [[None] for _ in node.outputs]
        node.op.perform(node, inputs, storage, *params(node))
        for out, cell in zip(node.outputs, storage, strict=True):
            known.setdefault(out, cell[0])
    return [value_of(var) for var in outputs]


def operations(op: Any) -> list[type]:
    """Return the classes of the scalar operations of a loop over arrays, in order.

    Those of the reductions in a MapReduce come last. Other Ops have none.
    """
    if isinstance(op, Gathered):
        return operations(op.loop)
    if isinstance(op, MapReduce):
        reduced = [one for reduction in op.reductions for one in operations(reduction)]
        return operations(Elemwise(op.scalar_op)) + reduced
    if not isinstance(op, Elemwise | CAReduce):
        return []
    scalar_op = op.scalar_op
    steps = scalar_op.instructions if isinstance(scalar_op, Composite) else None
    return [type(scalar_op)] if steps is None else [type(step.op) for step in steps]


def check_rewrite(
    rewrite: Any, inputs: Sequence[Variable], outputs: Sequence[Variable], values: Sequence[Any]
) -> FunctionGraph:
    """Apply a rule or pass to a copy of a graph, compare the results, and return the copy.

    values: a list with an array for each input. Raises BadOptimization if an output has another
    type than before, or another value by ``values_eq_approx`` of its type. Exceptions of the
    rewrite are passed on.
    """
    expected = evaluate(outputs, dict(zip(inputs, values, strict=True)))
    fgraph = FunctionGraph(inputs, outputs)
    if not isinstance(rewrite, Optimizer):
        rewrite = EquilibriumOptimizer([rewrite])
    with provenance.rewriting(), thread_flags(on_opt_error="raise"):
        rewrite.optimize(fgraph)
    fgraph.check_integrity()
    found = evaluate(fgraph.outputs, dict(zip(fgraph.inputs, values, strict=True)))
    for before, after, old, new in zip(outputs, fgraph.outputs, expected, found, strict=True):
        if before.type != after.type:
            raise BadOptimization(f"{rewrite} changed the type {before.type} to {after.type}")
        if not after.type.is_valid_value(new):
            raise BadOptimization(f"{rewrite} made {new!r}, which is not a value of {after.type}")
        if not before.type.values_eq_approx(old, new):
            raise BadOptimization(
                f"{rewrite} changed the value of {before} from {old!r} to {new!r}; the graph is "
                f"now {fgraph}"
            )
    return fgraph
