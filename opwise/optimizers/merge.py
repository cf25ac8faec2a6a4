"""Merging: of equal Applys on equal inputs, and of equal constants, one is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.errors import InconsistencyError
from opwise.graph.apply import Apply
from opwise.graph.features import Feature
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.provenance import union
from opwise.graph.variable import Constant
from opwise.optimizers.passes import Optimizer, PassRecord


class MergeFeature(Feature):
    """Remembers after which edit of its graph nothing was left to merge; MergeOptimizer adds it."""

    def __init__(self) -> None:
        self.edits: int | None = None

    def clone(self) -> MergeFeature:
        """Return a mark for a copy of the graph, which counts edits of its own."""
        return MergeFeature()


def _mark_of(fgraph: FunctionGraph) -> MergeFeature:
    mark = fgraph.find_feature(MergeFeature)
    if mark is None:
        mark = MergeFeature()
        fgraph.attach_feature(mark)
    return mark


class MergeOptimizer(Optimizer):
    """Merges in one pass from the inputs to the outputs; the first of equal Applys is kept.

    Applys are equal if their Ops are and they read the same variables; constants are equal if their
    signatures are, which include the dtype. The one that is kept inherits the origins, and a name
    if it has none.
    """

    name = "merge"

    def apply(self, fgraph: FunctionGraph) -> Any:
        mark = _mark_of(fgraph)
        if mark.edits == fgraph.edits:
            return PassRecord(counts={"merged": 0, "constants": 0, "failures": 0})
        constants, applys = _equal_things(fgraph)
        # in this order, an Apply that is kept gets its new readers before it loses others
        pairs = list(constants)
        for node, kept in applys:
            pairs.extend(zip(node.outputs, kept.outputs, strict=True))
        failures = 0
        if pairs:
            _inherit(applys)
            failures = _replace(fgraph, pairs)
        if not failures:
            mark.edits = fgraph.edits
        merged = len(constants) + len(applys)
        return PassRecord(
            counts={"merged": merged, "constants": len(constants), "failures": failures}
        )


def _equal_things(fgraph: FunctionGraph) -> tuple[list[tuple[Any, ...]], ...]:
    """Return two lists of pairs (to remove, equal one to keep): constants and Applys."""
    first_constant: dict[Any, Any] = {}
    first_op: dict[Any, Any] = {}
    op_of: dict[Any, Any] = {}
    first_apply: dict[Any, Any] = {}
    kept_for: dict[Any, Any] = {}
    constants, applys = [], []
    for node in fgraph.toposort():
        op = op_of.get(id(node.op))
        if op is None:
            # equal Ops share a number: comparing them for each Apply would take most of the time
            op = op_of[id(node.op)] = first_op.setdefault(node.op, len(first_op))
        key = [op]
        for var in node.inputs:
            if var in kept_for:
                var = kept_for[var]
            elif var.owner is None and isinstance(var, Constant):
                kept = first_constant.setdefault(var.cached_signature(), var)
                kept_for[var] = kept
                if kept is not var:
                    constants.append((var, kept))
                    var = kept
            key.append(var)
        kept = first_apply.setdefault(tuple(key), node)
        if kept is not node and _same_types(node, kept):
            applys.append((node, kept))
            kept_for.update(zip(node.outputs, kept.outputs, strict=True))
    for var in fgraph.outputs:
        if isinstance(var, Constant) and var not in kept_for:
            kept = kept_for[var] = first_constant.setdefault(var.cached_signature(), var)
            if kept is not var:
                constants.append((var, kept))
    return constants, applys


def _same_types(node: Apply, kept: Apply) -> bool:
    # some Ops take the type of their output when they are applied
    return all(
        a.type is b.type or a.type == b.type
        for a, b in zip(node.outputs, kept.outputs, strict=True)
    )


def _replace(fgraph: FunctionGraph, pairs: Sequence[Any]) -> int:
    """Replace all pairs, one by one if that breaks the graph; return how many failed."""
    for old, new in pairs:
        if new.name is None and old.name is not None:
            new.name = old.name
    try:
        fgraph.replace_all_validate(pairs, reason="MergeOptimizer")
        return 0
    except InconsistencyError:
        pass
    failures = 0
    for old, new in pairs:
        try:
            fgraph.replace_all_validate([(old, new)], reason="MergeOptimizer")
        except InconsistencyError:
            failures += 1
    return failures


def _inherit(applys: Sequence[tuple[Apply, ...]]) -> None:
    members: dict[Any, Any] = {}
    for node, kept in applys:
        members.setdefault(kept, [kept]).append(node)
    for kept, group in members.items():
        kept._origins = union(*(node.origins for node in group))
