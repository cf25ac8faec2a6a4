"""Checks after every edit that no Apply overwrites memory that it must not.

``aliasing.check`` looks at a whole graph. If each replacement of a pass were checked so, the passes
that work in place would take quadratic time. OverwriteChecker knows that the graph was right
before, and looks only at what an edit can have made wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from opwise.errors import InconsistencyError
from opwise.graph import aliasing
from opwise.graph.apply import Apply
from opwise.graph.variable import Variable

if TYPE_CHECKING:
    from opwise.graph.fgraph import FunctionGraph


class _NoRankBetween(Exception):
    """Raised if there is no float between two ranks: all Applys get new ones then."""


class OverwriteChecker:
    """Checks a FunctionGraph again and again, each time only what has changed since.

    What an Apply overwrites concerns one version of memory: the variable that allocated it or that
    the last overwriting Apply gave, and its views (``aliasing.orderings``). So an edit can only
    break rules of the versions that the changed Applys read, view or overwrite.

    That an order exists is proved by a rank for each Apply, which is above those of all Applys that
    must come before. A new Apply gets one between those around it. Where a new constraint
    contradicts the ranks, only Applys between the two are moved; if they cannot be, there is a
    cycle.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        #: what has changed since the graph was right: Applys, and new outputs of the graph
        self.touched: dict[Apply, None] = {}
        self.new_outputs: dict[Variable, None] = {}
        #: empty until the whole graph was checked
        self._rank: dict[Apply, float] = {}
        #: the Apply that overwrites a version, and the versions that an Apply overwrites
        self._destroyer: dict[Variable, Apply] = {}
        self._destroyed: dict[Apply, list[Variable]] = {}
        #: ranks before the running check, which come back if it fails
        self._former: dict[Apply, float] = {}
        self._assumed: tuple[object, int] | None = None

    def touch(self, node: Apply) -> None:
        """Note that an Apply is new or reads another variable."""
        self.touched[node] = None

    def forget(self, node: Apply) -> None:
        """Note that an Apply has left the graph or gets another Op."""
        self.touched.pop(node, None)
        self._rank.pop(node, None)
        self._unregister(node)
        if node.op.view_map:
            # with another Op, its outputs may no longer be views
            for var in aliasing.views(node.outputs):
                self.touched.update((n, None) for n, _ in var._clients if n != "output")

    def check(self) -> None:
        """Raise InconsistencyError if an Apply destroys memory that it must not."""
        assumed = (self.fgraph.interface, len(self.fgraph.outputs))
        if self._rank and self._assumed == assumed:
            try:
                self._check_changes()
            except _NoRankBetween:
                self._check_all()
        else:
            self._check_all()
            self._assumed = assumed
        self.touched.clear()
        self.new_outputs.clear()

    def start_from_here(self) -> None:
        """Check the graph as it is after an edit was undone, so that the next check is cheap."""
        with suppress(InconsistencyError):
            self.check()

    def _check_all(self) -> None:
        self._rank.clear()
        aliasing.check(self.fgraph)
        self._destroyer.clear()
        self._destroyed.clear()
        order = self.fgraph.toposort()
        for node in order:
            if node.op.destroy_map:
                for i in aliasing.destroyed_inputs(node):
                    self._register(node, aliasing.versions(node.inputs[i]))
        self._rank.update((node, float(k)) for k, node in enumerate(order))

    def _register(self, node: Apply, versions: Iterable[Variable]) -> None:
        for version in versions:
            self._destroyer[version] = node
            self._destroyed.setdefault(node, []).append(version)

    def _unregister(self, node: Apply) -> None:
        for version in self._destroyed.pop(node, ()):
            if self._destroyer.get(version) is node:
                del self._destroyer[version]

    # --- what an edit may have made wrong ---------------------------------------------------------

    def _check_changes(self) -> None:
        self._former.clear()
        try:
            nodes, outputs = self._affected()
            self._check_memory(nodes, outputs)
            for node in nodes:
                self._give_rank(node)
            for node in nodes:
                for earlier in self._earlier(node):
                    self._put_in_order(earlier, node)
                for later in self._destroyers_after(node):
                    self._put_in_order(node, later)
        except Exception:
            self._rank.update(self._former)
            raise

    def _affected(self) -> tuple[list[Apply], list[Variable]]:
        """Return the Applys and the outputs that read memory which they did not read before."""
        fgraph = self.fgraph
        nodes = {node: None for node in self.touched if node.fgraph is fgraph}
        outputs = {var: None for var in self.new_outputs if var.fgraph is fgraph}
        views = aliasing.views(
            out for node in nodes for out in node.outputs if aliasing.is_view(out)
        )
        for var in views:
            for client, _ in var._clients:
                if client == "output":
                    outputs[var] = None
                else:
                    nodes[client] = None
        return list(nodes), [
            var for var in outputs if any(client == "output" for client, _ in var._clients)
        ]

    def _check_memory(self, nodes: list[Apply], outputs: list[Variable]) -> None:
        destroying = [node for node in nodes if node.op.destroy_map]
        for node in destroying:
            self._unregister(node)
        for node in destroying:
            for i in aliasing.destroyed_inputs(node):
                aliasing.check_not_protected(self.fgraph, node, i)
                versions = aliasing.versions(node.inputs[i])
                for version in versions:
                    other = self._destroyer.get(version, node)
                    if other is not node:
                        raise aliasing.destroyed_twice(node.inputs[i], other, node)
                aliasing.check_other_inputs(node, i, versions)
                aliasing.check_not_outputs(node, versions)
                self._register(node, versions)
        for var in outputs:
            for version in aliasing.versions(var):
                if version in self._destroyer:
                    aliasing.check_not_outputs(self._destroyer[version], [version])

    # --- order ------------------------------------------------------------------------------------

    def _earlier(self, node: Apply) -> Iterator[Apply]:
        """Yield the Applys that must come before one."""
        for var in node.inputs:
            if var.owner is not None:
                yield var.owner
        for var in aliasing.views(self._destroyed.get(node, ())):
            for client, _ in var._clients:
                if client != "output" and client is not node:
                    yield client

    def _destroyers_after(self, node: Apply) -> Iterator[Apply]:
        """Yield the Applys that overwrite what an Apply reads."""
        if self._destroyer:
            for var in node.inputs:
                for version in aliasing.versions(var):
                    destroyer = self._destroyer.get(version, node)
                    if destroyer is not node:
                        yield destroyer

    def _later(self, node: Apply) -> Iterator[Apply]:
        """Yield the Applys that must come after one."""
        for out in node.outputs:
            for client, _ in out._clients:
                if client != "output":
                    yield client
        yield from self._destroyers_after(node)

    def _give_rank(self, node: Apply) -> None:
        """Give a new Apply a rank, after those that it reads, which may be new themselves."""
        rank, waiting, opened = self._rank, [node], set()
        while waiting:
            node = waiting[-1]
            if node in rank:
                waiting.pop()
                continue
            owners = [var.owner for var in node.inputs if var.owner is not None]
            new = [owner for owner in owners if owner not in rank]
            if new and node not in opened:
                opened.add(node)
                waiting.extend(new)
                continue
            low = max((rank[n] for n in owners if n in rank), default=None)
            high = min((rank[n] for n in self._later(node) if n in rank), default=None)
            if low is None:
                rank[node] = 0.0 if high is None else high - 1.0
            elif high is None or high <= low:
                rank[node] = low + 1.0
            else:
                rank[node] = _between(low, high, 1)[0]

    def _put_in_order(self, earlier: Apply, later: Apply) -> None:
        """Let the rank of ``later`` be above that of ``earlier``.

        Raises InconsistencyError if ``later`` must also come before it.
        """
        rank = self._rank
        low = rank[earlier]
        if low < rank[later]:
            return
        moved = [later]
        found = {later}
        high = None
        for node in moved:
            for following in self._later(node):
                if following is earlier:
                    raise InconsistencyError(f"graph contains cycles: {later} depends on itself")
                its = rank[following]
                if its > low:
                    high = its if high is None else min(high, its)
                elif following not in found:
                    found.add(following)
                    moved.append(following)
        moved.sort(key=rank.__getitem__)
        if high is None:
            new = [low + k + 1.0 for k in range(len(moved))]
        else:
            new = _between(low, high, len(moved))
        for node, its in zip(moved, new, strict=True):
            self._former.setdefault(node, rank[node])
            rank[node] = its


def _between(low: float, high: float, n: int) -> list[float]:
    """Return ``n`` increasing ranks between two."""
    step = (high - low) / (n + 1)
    found = [low + step * (k + 1) for k in range(n)]
    ends = [low, *found, high]
    if any(a >= b for a, b in pairwise(ends)):
        raise _NoRankBetween
    return found
