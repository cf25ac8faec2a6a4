"""The order of a function's Applys that leaves a device the longest stretches to itself."""

from __future__ import annotations

from heapq import heappop, heappush

from opwise.gpu.calls import OF_LENGTHS, Call
from opwise.gpu.transfer import GpuFromHost, HostFromGpu

# what goes first, of what can go: the host's part, what the device needs of it, views that depend
# on numbers of the host, the device's work, and results, which somebody waits for
_HOST, _UP, _VIEW, _WORK, _DOWN = range(5)


def stretched(fgraph, placement):
    """Return the Applys of a graph in an order that it allows, those of a kind together."""
    order = fgraph.toposort()
    position = {node: k for k, node in enumerate(order)}
    kinds = _kinds(order, placement)
    orderings = fgraph.orderings()
    before = {node: set(_before(node, orderings)) for node in order}
    after: dict = {node: [] for node in order}
    for node, earlier in before.items():
        for one in earlier:
            after[one].append(node)
    ready: list = []
    for node in order:
        if not before[node]:
            heappush(ready, (kinds[node], position[node]))
    found = []
    while ready:
        node = order[heappop(ready)[1]]
        found.append(node)
        for later in after[node]:
            before[later].discard(node)
            if not before[later]:
                heappush(ready, (kinds[later], position[later]))
    return found


def _before(node, orderings):
    owners = (var.owner for var in node.inputs)
    return [one for one in (*owners, *orderings.get(node, ())) if one is not None]


def _kinds(order, placement):
    kinds, worked = {}, set()
    for node in order:
        way = placement.way(node)
        if isinstance(node.op, GpuFromHost):
            kinds[node] = _UP
        elif isinstance(node.op, HostFromGpu):
            kinds[node] = _DOWN
        elif way is None or isinstance(node.op, OF_LENGTHS):
            kinds[node] = _HOST
        elif is_told_view(way) and not any(v.owner in worked for v in node.inputs):
            kinds[node] = _VIEW
        else:
            kinds[node] = _WORK
            worked.add(node)
    return kinds


def is_told_view(way):
    """Return whether an Apply is a view that depends on numbers of the host, as a slice."""
    return isinstance(way, Call) and way.view and bool(way.host)


def is_last(node):
    """Return whether an Apply cannot fail and nobody waits for it but the caller: a result."""
    (out,) = node.outputs[:1]
    return isinstance(node.op, HostFromGpu) and all(c == "output" for c, _ in out._clients)
