"""The order of Applys that keeps the device's work together, for the longest capture regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush

from opwise.gpu.lowering import SHAPE_OPS, Call, Lowered
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph


class _Kind(IntEnum):
    """Of the Applys that can run next, one of the lowest kind goes first."""

    #: the host runs it
    HOST = 0
    #: a copy to the device
    UPLOAD = 1
    #: a view that depends on numbers of the host
    VIEW = 2
    #: the device runs it
    DEVICE = 3
    #: a copy to the host: the host waits for it
    DOWNLOAD = 4


def capture_order(fgraph: FunctionGraph, placement: Placement) -> list[Apply]:
    """Return the Applys of a graph in a valid order that keeps those of one kind together."""
    order = fgraph.toposort()
    position = {node: k for k, node in enumerate(order)}
    kinds = _kinds(order, placement)
    orderings = fgraph.orderings()
    before = {node: set(_before(node, orderings)) for node in order}
    after: dict[Apply, list[Apply]] = {node: [] for node in order}
    for node, earlier in before.items():
        for one in earlier:
            after[one].append(node)
    ready = [(kinds[node], position[node]) for node in order if not before[node]]
    heapify(ready)
    found = []
    while ready:
        node = order[heappop(ready)[1]]
        found.append(node)
        for later in after[node]:
            before[later].discard(node)
            if not before[later]:
                heappush(ready, (kinds[later], position[later]))
    return found


def _before(node: Apply, orderings: Mapping[Apply, Sequence[Apply]]) -> list[Apply]:
    """Return the Applys that must run before one."""
    owners = (var.owner for var in node.inputs)
    return [one for one in (*owners, *orderings.get(node, ())) if one is not None]


def _kinds(order: Sequence[Apply], placement: Placement) -> dict[Apply, _Kind]:
    kinds: dict[Apply, _Kind] = {}
    for node in order:
        lowered = placement.lowered_for(node)
        if isinstance(node.op, GpuFromHost):
            kinds[node] = _Kind.UPLOAD
        elif isinstance(node.op, HostFromGpu):
            kinds[node] = _Kind.DOWNLOAD
        elif lowered is None or isinstance(node.op, SHAPE_OPS):
            kinds[node] = _Kind.HOST
        elif _is_host_view(lowered) and not any(
            v.owner is not None and kinds.get(v.owner) is _Kind.DEVICE for v in node.inputs
        ):
            kinds[node] = _Kind.VIEW
        else:
            kinds[node] = _Kind.DEVICE
    return kinds


def _is_host_view(lowered: Lowered) -> bool:
    """Return whether an Apply is a view that depends on numbers of the host, such as a slice."""
    return isinstance(lowered, Call) and lowered.view and bool(lowered.host)


def is_result(node: Apply) -> bool:
    """Return whether an Apply only gives a result to the caller: it cannot fail, and no Apply
    waits for it."""
    (out,) = node.outputs[:1]
    return isinstance(node.op, HostFromGpu) and all(c == "output" for c, _ in out.clients)
