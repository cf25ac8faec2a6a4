"""What fusion leaves apart, and why: the reasons that ``tuning`` shows to users."""

from __future__ import annotations

from typing import Any

from opwise.graph import traversal
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.optimizers.rules.fusion import (
    MAX_INSTRUCTIONS,
    AddMulFusion,
    FusionOptimizer,
    Group,
    joins,
    maps,
    reduces_in_c,
    why_alone,
)
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.reduce import CAReduce

#: the most characters of an Op's name
_MAX_NAME = 60


def explain_fusion(fgraph: FunctionGraph) -> list[tuple[Apply, Apply, str]]:
    """Fuse the elementwise Applys of a graph, and return why others were not fused.

    fgraph: the result of all rewrites before fusion; nothing overwrites memory yet.

    Returns (reader, Apply, reason) for each elementwise Apply that writes its result to memory for
    another one or for a reduction. In the reason, a sentence, ``it`` is the Apply that is read.
    """
    AddMulFusion().apply(fgraph)
    kept_apart = []

    def note(group: Group) -> None:
        for node in group.read():
            why = _why_apart(group, node)
            if why is not None:
                kept_apart.append((group.root, node, why))

    became = FusionOptimizer().fuse(fgraph, note)
    found = [(became.get(a, a), became.get(b, b), why) for a, b, why in kept_apart]
    for reader in fgraph.toposort():
        found += _unfused_operands(reader)
    return found


def named(op: Op) -> str:
    """Return a short name of an Op."""
    text = str(op.scalar_op if isinstance(op, Elemwise) else op)
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 3]}..."


def _unfused_operands(reader: Apply) -> list[tuple[Apply, Apply, str]]:
    """Return (reader, Apply, reason) for operands of an Apply that can be part of no loop."""
    read = {v.owner: None for v in reader.inputs if v.owner is not None}
    mapped = [node for node in read if isinstance(node.op, Elemwise)]
    if isinstance(reader.op, Elemwise) and not joins(reader) and len(reader.outputs) == 1:
        return [(reader, node, f"its reader {why_alone(reader)}") for node in mapped]
    if mapped and isinstance(reader.op, CAReduce) and not maps(reader):
        return [(reader, mapped[0], _why_not_mapped(reader, mapped[0]))]
    return []


def _why_apart(group: Group, node: Apply) -> str | None:
    """Return why a group does not contain an Apply that it reads; None if it is not elementwise."""
    if not isinstance(node.op, Elemwise):
        return None
    if node not in group.patterns:
        return f"it {why_alone(node) or 'must read memory before another Apply overwrites it'}"
    if not group.may_join(node):
        if node.outputs[0].type.broadcastable == group.root.outputs[0].type.broadcastable:
            return "only one of the two is needed if a condition takes the other branch"
        return "its result is broadcast: the loop would compute it again for each element"
    return _why_refused(group, node)


def _why_refused(group: Group, node: Apply) -> str:
    """Return what kept an Apply out of a group whose loop goes over the same elements."""
    kind, what = group.refused[node]
    if kind == "size":
        return f"a loop has at most {MAX_INSTRUCTIONS} operations"
    if kind == "operands":
        return f"the loop would have {what[0]} operands and results, and {what[1]} are the limit"
    if kind == "outside":
        return f"a loop that ends in a reduction stores nothing else, and {_reads(what)}"
    needed = {var.owner for var in traversal.ancestors(group.root.inputs)}
    direct = [client for client, _ in node.outputs[0]._clients if client != "output"]
    for client in (what, *direct):
        if client in needed and not group.may_join(client):
            return (
                f"{named(client.op)} must run between the two: it reads the first and computes an "
                "operand of the second"
            )
    return f"{named(what.op)} reads it too, and must run before this loop"


def _why_not_mapped(reduction: Apply, mapped: Apply) -> str:
    """Return why a reduction does not take in the elementwise Apply that it reads."""
    if len(mapped.outputs) > 1:
        return "it has other results, and a loop that ends in a reduction has only one"
    if not joins(mapped):
        return f"it {why_alone(mapped)}"
    if not reduces_in_c(reduction):
        return "the reduction has no loop for these dtypes"
    other = next(c for c, _ in mapped.outputs[0]._clients if c is not reduction)
    return f"{_reads(other)}, so it must be stored"


def _reads(client: Any) -> str:
    if client == "output":
        return "it is a result of the function"
    return f"{named(client.op)} reads it too"
