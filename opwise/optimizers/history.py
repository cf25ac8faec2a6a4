"""The history of one optimization, from which DebugMode checks each replacement on values.

Nothing is copied or printed while rewrites run: the history keeps the Op and the inputs that an
Apply had when it was imported, and a pair of variables for a replacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.features import Feature
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable


@dataclass(frozen=True)
class Replacement:
    """A rule, ``reason``, let an Apply read ``new`` instead of ``old`` in ``stage``."""

    old: Variable
    new: Variable
    reason: str
    stage: str


@dataclass(frozen=True)
class NewOp:
    """A rewrite, ``reason``, gave an Apply another Op that computes the same in ``stage``."""

    node: Apply
    reason: str
    stage: str


class Event:
    """One change of a graph: an 'import' or 'prune' of an Apply, or a 'change' of an input."""

    __slots__ = ("idx", "kind", "node", "op", "reason")

    def __init__(self, kind: Any, node: Any, idx: int | None, reason: Any) -> None:
        self.kind = kind
        self.node = node
        self.op = node if node == "output" else node.op
        self.idx = idx
        self.reason = str(reason)

    def same(self, other: Any) -> bool:
        """Return whether an event of another graph is the same change, of an equal Op."""
        return (
            self.kind == other.kind
            and self.idx == other.idx
            and self.reason == other.reason
            and (self.op is other.op or self.op == other.op)
        )

    def __str__(self) -> str:
        if self.kind == "change":
            inputs = 1 if self.node == "output" else len(self.node.inputs)
            return f"change {self.reason} {self.op} {self.idx} {inputs}"
        return str({name: getattr(self, name) for name in ("kind", "node", "op", "idx", "reason")})


class Trace(Feature):
    """Records the events of a graph."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.events.append(Event("import", node, None, reason))

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.events.append(Event("prune", node, None, reason))

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Any,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        self.events.append(Event("change", node, i, reason))

    def clone(self) -> Trace:
        """Return a feature for a copy of the graph, which has a history of its own."""
        return type(self)()

    def differences(self, other: Trace, number: int = 0, other_number: int = 1) -> Any:
        """Return a text on where two traces differ; '' if they are equal."""
        lines = [
            f"non-equal optimization events {other_number} : {k}\n    {a}\n    {b}"
            for k, (a, b) in enumerate(zip(self.events, other.events, strict=False))
            if not a.same(b)
        ]
        common = min(len(self.events), len(other.events))
        for which, trace in ((number, self), (other_number, other)):
            lines += [
                f"trailing event in optimization {which} : {k}\n    {event}"
                for k, event in enumerate(trace.events[common:], common)
            ]
        if not lines:
            return ""
        return (
            "WARNING: Optimization process is unstable...\n"
            "  (HINT: Ops that the nodes point to must compare equal)\n"
            "(event index)  (one event trace)  (other event trace)\n"
            "-----------------------------------------------------\n" + "\n".join(lines) + "\n"
        )


class RewriteHistory(Trace):
    """A trace that also keeps Applys as they were imported, and all replacements.

    As long as all replacements were right, no Apply changes its value. So the first replacement
    whose two values differ, both computed from Applys as they were imported, is wrong.
    """

    def __init__(self) -> None:
        super().__init__()
        #: every Apply that was ever in the graph -> (Op, inputs) when it was imported; each comes
        #: after the Applys that it reads
        self.applys: dict[Apply, tuple[Any, ...]] = {}
        #: in order of time, without those that were undone
        self.replacements: list[Replacement] = []
        #: Apply made by a rewrite -> the number of replacements before it was imported
        self._before: dict[Apply, int] = {}
        #: in order of time
        self.new_ops: list[NewOp] = []
        #: the outputs of the graph before all rewrites
        self.written: list[Variable] = []

    def on_attach(self, fgraph: FunctionGraph) -> None:
        self.written = list(fgraph.outputs)
        for node in fgraph.toposort():
            self.applys[node] = node.op, tuple(node.inputs)

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        super().on_import(fgraph, node, reason)
        known = self.applys.get(node)
        if known is not None and known[0] is not node.op:
            self.new_ops.append(NewOp(node, str(reason), _stage(fgraph)))
            return
        if known is None:
            self.applys[node] = node.op, tuple(node.inputs)
        if known is None or node in self._before:
            self._before[node] = len(self.replacements)

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Any,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        super().on_change_input(fgraph, node, i, old, new, reason)
        if reason == "undo":  # edits are undone in reverse order
            self.replacements.pop()
        else:
            self.replacements.append(Replacement(old, new, str(reason), _stage(fgraph)))

    def reason_of(self, node: Apply) -> Any:
        """Return the last NewOp of an Apply, or None."""
        found = next((one for one in reversed(self.new_ops) if one.node is node), None)
        return found if found is not None and found.reason != "undo" else None

    def made_by(self, node: Apply) -> Any:
        """Return the replacement that brought an Apply in, or None if the user wrote it."""
        at = self._before.get(node, len(self.replacements))
        return self.replacements[at] if at < len(self.replacements) else None


def _stage(fgraph: FunctionGraph) -> str:
    return "/".join(fgraph.passes)
