"""Rules on IfElse: fewer choices, and outputs that are views.

No rule moves work of a branch to where every call computes it. So Applys with the same condition
are not merged, and what reads an IfElse is not moved into its branches.
"""

from __future__ import annotations

from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable
from opwise.optimizers.rule import check_destroyers, rule
from opwise.optimizers.rules.matching import number
from opwise.tensor.ifelse import IfElse

_BOTH = ("fast_run", "fast_compile")


@rule(IfElse, stage={"useless": _BOTH, "canonicalize": _BOTH, "specialize": ("fast_run",)})
def local_useless_ifelse(fgraph: FunctionGraph, node: Apply) -> dict[Any, Any] | None:
    """ifelse(c, x, y) -> x or y for a known condition; ifelse(c, x, x) -> x"""
    then, other = node.op.values(node.inputs)
    value = number(node.inputs[0])
    if value is not None:
        return dict(zip(node.outputs, then if value else other, strict=True))
    pairs = zip(node.outputs, then, other, strict=True)
    return {out: one for out, one, two in pairs if one is two and fgraph.clients(out)} or None


@rule(IfElse, stage="canonicalize")
def ifelse_remove_unused(fgraph: FunctionGraph, node: Apply) -> dict[Any, Any] | None:
    """ifelse(c, [x, y], [z, w])[0] -> ifelse(c, x, z)"""
    read = [k for k, out in enumerate(node.outputs) if fgraph.clients(out)]
    return _with_outputs(node, read) if 0 < len(read) < len(node.outputs) else None


@rule(IfElse, stage="canonicalize")
def cond_remove_identical(fgraph: FunctionGraph, node: Apply) -> dict[Any, Any] | None:
    """ifelse(c, [x, x], [y, y]) -> ifelse(c, x, y), twice"""
    first: dict[tuple[Variable, Variable], int] = {}
    pairs = list(zip(*node.op.values(node.inputs), strict=True))
    for k, pair in enumerate(pairs):
        first.setdefault(pair, k)
    kept = list(first.values())
    if len(kept) == len(pairs):
        return None
    found = _with_outputs(node, kept)
    return {out: found[node.outputs[first[pair]]]
            for out, pair in zip(node.outputs, pairs, strict=True)}  # fmt: skip


def _with_outputs(node: Apply, kept: list[int]) -> dict[Any, Any]:
    """Return {output: the output of an Apply that has these outputs only}."""
    then, other = node.op.values(node.inputs)
    op = IfElse(len(kept), node.op.as_view, node.op.gpu, node.op.name)
    made: Apply = op.make_node(node.inputs[0], *(then[k] for k in kept), *(other[k] for k in kept))
    return {node.outputs[k]: out for k, out in zip(kept, made.outputs, strict=True)}


@rule(IfElse, stage="canonicalize")
def cond_merge_ifs_true(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """ifelse(c, ifelse(c, x, y), z) -> ifelse(c, x, z)"""
    return _without_same_choice(node, 0)


@rule(IfElse, stage="canonicalize")
def cond_merge_ifs_false(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """ifelse(c, x, ifelse(c, y, z)) -> ifelse(c, x, z)"""
    return _without_same_choice(node, 1)


def _without_same_choice(node: Apply, branch: int) -> list[Variable] | None:
    """Return outputs for which the same condition is not tested again in a branch."""
    inputs = list(node.inputs)
    for i in node.op.branches[branch]:
        inner = inputs[i].owner
        if inner is not None and isinstance(inner.op, IfElse) and inner.inputs[0] is inputs[0]:
            inputs[i] = inner.inputs[inner.op.branches[branch][inputs[i].index]]
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return None
    made: Apply = node.op.make_node(*inputs)
    return made.outputs


@rule(IfElse, stage="cond_make_inplace", requirements=[check_destroyers])
def cond_make_inplace(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """ifelse -> an ifelse whose outputs are views of the first branch, if it is taken"""
    op = node.op
    if op.as_view:
        return None
    made: Apply = IfElse(op.n_outs, True, op.gpu, op.name).make_node(*node.inputs)
    return made.outputs
