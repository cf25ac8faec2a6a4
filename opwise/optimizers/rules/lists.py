"""Operations on lists that change the list itself."""

from __future__ import annotations

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable
from opwise.optimizers.rule import check_destroyers, rule
from opwise.tensor.lists import Append, Extend, Insert, Remove, Reverse


@rule(
    Append, Extend, Insert, Remove, Reverse,
    stage="typed_list_inplace_opt", requirements=[check_destroyers],
)  # fmt: skip
def typed_list_inplace_opt(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """append(l, x) -> append in place, where nothing else reads the list afterwards."""
    if node.op.inplace:
        return None
    changed: Apply = type(node.op)(inplace=True).make_node(*node.inputs)
    return changed.outputs
