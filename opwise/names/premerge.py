"""Rewrites of graphs that belong to no FunctionGraph yet: those that a rewrite has just built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Constant, Variable
from opwise.optimizers.rule import is_empty


def pre_constant_merge(vars: Variable | Sequence[Variable]) -> list[Variable]:
    """Let equal constants in the graphs of ``vars`` be one; return ``vars``, as a list.

    Edits the Applys, except those that belong to a FunctionGraph.
    """
    outputs = [vars] if isinstance(vars, Variable) else list(vars)
    kept: dict[Any, Variable] = {}
    for node in _free(outputs):
        node.inputs = [_first_equal(var, kept) for var in node.inputs]
    return [_first_equal(var, kept) for var in outputs]


def _first_equal(var: Variable, kept: dict[Any, Variable]) -> Variable:
    """Return the first constant that equals ``var``; a variable that is none is returned itself."""
    return kept.setdefault(var.merge_signature(), var) if isinstance(var, Constant) else var


def pre_greedy_local_optimizer(rules: Iterable[Any], out: Variable) -> Variable:
    """Try rules once on each Apply that ``out`` needs, inputs first; return what replaces ``out``.

    Edits the Applys, except those that belong to a FunctionGraph.
    """
    rules = list(rules)
    replaced: dict[Variable, Variable] = {}
    for node in _free([out]):
        node.inputs = [replaced.get(var, var) for var in node.inputs]
        for rule in rules:
            result = rule.transform(node)
            if is_empty(result):
                continue
            replaced.update(zip(node.outputs, result, strict=True))
            if result[0].owner is None:
                break
    return replaced.get(out, out)


def _free(outputs: Sequence[Variable]) -> list[Apply]:
    """Return the Applys that outputs need and no FunctionGraph owns, each after those it reads."""
    return [node for node in io_toposort([], outputs) if node.fgraph is None]
