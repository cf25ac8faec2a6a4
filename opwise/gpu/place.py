"""Which Applys run on the device: a cut through the graph that as little data as possible crosses.

What an Apply costs on either side and what a value costs that crosses are weights of a network; its
least cut is the placement. The weights are rough, and such that an Apply between two that must run
on the host stays there, unless many, or a product, come along.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from opwise.gpu import calls
from opwise.gpu.makers import implementation
from opwise.gpu.transfer import gpu_from_host, host_from_gpu
from opwise.graph.variable import Constant
from opwise.optimizers.passes import Optimizer
from opwise.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.type import TensorType

_PRODUCTS = (Dot, Dot22, Dot22Scalar, Gemm, Gemv, Ger, BatchedDot)

#: what it costs that a value crosses: an array, a number for the device, a number for the host,
#: which waits for it; and what arguments and results cost, which cross once in any case
_ARRAY, _NUMBER, _WAIT, _BORDER = 1000, 20, 500, 10
#: what it costs to run an Apply where it could run on the other side: on the host, a product there,
#: one of numbers alone on the device
_HOST, _PRODUCT, _LAUNCH = 300, 100_000, 10
_NEVER = 1 << 28


@dataclass
class Placement:
    """Where the Applys of a graph run.

    ways: by Apply on the device, its Implementation or Call. why: by Apply on the host, why it has
    no implementation for the device; "" if it could run there. resident: inputs of the graph that
    lie on the device.
    """

    ways: dict = field(default_factory=dict)
    why: dict = field(default_factory=dict)
    resident: set = field(default_factory=set)

    def on_device(self, var):
        """Return whether a variable lies on the device."""
        if var.owner is None:
            return var in self.resident
        return var.owner in self.ways or var.owner.op is gpu_from_host

    def way(self, node):
        """Return how an Apply runs on the device, or None; also for those that came later."""
        if node not in self.ways and node.inputs and all(map(self.on_device, node.inputs)):
            if node.op is not host_from_gpu and not isinstance(node.op, calls.OF_LENGTHS):
                found = way_of(node)
                if not isinstance(found, str):
                    self.ways[node] = found
        return self.ways.get(node)


def way_of(node):
    """Return how an Apply can run on the device, an Implementation or a Call, or why it cannot."""
    found = calls.call_of(node)
    if not isinstance(found, str):
        return found
    return implementation(node)


class PlaceOnDevice(Optimizer):
    """Decides which Applys run on the device and puts transfers where data must cross.

    The graph keeps its Applys; ``fgraph.placement`` says where they run.
    """

    def apply(self, fgraph):
        order = fgraph.toposort()
        found = {node: way_of(node) for node in order}
        placement = Placement()
        network = _Network(fgraph, order, found)
        on_device = network.device_side()
        for k, node in enumerate(order):
            if node in on_device:
                placement.ways[node] = found[node]
            else:
                order[k] = _without_overwriting(fgraph, node)
                placement.why[order[k]] = found[node] if isinstance(found[node], str) else ""
        placement.resident = {var for var in fgraph.interface.persistent if var in on_device}
        fgraph.placement = placement
        _Transfers(fgraph, placement).insert(order)


def _without_overwriting(fgraph, node):
    """Return an Apply of the host, or what takes its place if it overwrites a number of the graph.

    A counter that is overwritten is no gain; but it would have to run behind all that can fail, and
    part what the device does.
    """
    op = node.op
    if not (isinstance(op, Elemwise) and op.inplace_pattern and all(map(_is_number, node.outputs))):
        return node
    if all(node.inputs[i].owner is not None for i in op.inplace_pattern.values()):
        return node
    new = Elemwise(op.scalar_op)(*node.inputs, return_list=True)
    new[0].owner._origins = node.origins
    for old, var in zip(node.outputs, new, strict=True):
        fgraph.replace(old, var, reason="place_on_device")
    return new[0].owner


class _Network:
    """The network of a graph: Applys and shared inputs are its points, costs its edges.

    The source is the device, the sink the host: who is on the source's side of the least cut runs
    on the device.
    """

    SOURCE, SINK = 0, 1

    def __init__(self, fgraph, order, found):
        self.found = found
        self.points = {}
        self.count = 2
        self.edges: list[tuple[int, int, int]] = []
        shared = [v for v in fgraph.inputs if v in fgraph.interface.persistent]
        for thing in (*order, *shared):
            self.points[thing] = self._point()
        for node in order:
            self._cost_of(node)
        for var in shared:
            if not can_lie_there(var):
                self._edge(self.points[var], self.SINK, _NEVER)
        updated = fgraph.interface.updates
        #: by output that is the new value of a shared input, the point of that
        self.kept = {
            k: self.points[fgraph.inputs[i]]
            for k, i in updated.items()
            if fgraph.inputs[i] in self.points
        }
        self.borrowed = fgraph.interface.borrowed
        for var in dict.fromkeys((*fgraph.inputs, *(v for node in order for v in node.outputs))):
            self._crossing(var)

    def _point(self):
        self.count += 1
        return self.count - 1

    def _edge(self, start, end, weight):
        self.edges.append((start, end, weight))

    def _cost_of(self, node):
        point, way = self.points[node], self.found[node]
        if isinstance(way, str):
            self._edge(point, self.SINK, _NEVER)
        elif all(_is_number(v) for v in (*node.inputs, *node.outputs)):
            self._edge(point, self.SINK, _LAUNCH)
        else:
            weight = _PRODUCT if isinstance(node.op, _PRODUCTS) else _HOST
            self._edge(self.SOURCE, point, weight)

    def _crossing(self, var):
        """Add what it costs that a variable is read on the side where it is not made."""
        if not isinstance(var.type, TensorType):
            made, readers = self._maker(var), [self._reader(*c) for c in var._clients]
            for reader in readers:  # it cannot cross
                if reader is not None and reader != made:
                    self._edge(made, reader, _NEVER)
                    self._edge(reader, made, _NEVER)
            return
        made = self._maker(var)
        readers = {self._reader(*client) for client in var._clients} - {None, made}
        if not readers:
            return
        border = var.owner is None and var not in self.points
        if _is_number(var):
            up, down = _NUMBER, _WAIT
        else:
            up = down = _ARRAY
        if border:
            up = min(up, _BORDER)
        if self.SINK in readers and all(
            client == "output" for client, _ in var._clients if self._reader(client, _) == self.SINK
        ):
            down = _BORDER
        if made != self.SINK:  # made on the device, read on the host
            crossed = self._point()
            self._edge(made, crossed, down)
            for reader in readers:
                self._edge(crossed, reader, _NEVER)
        if readers != {self.SINK}:  # the other way round
            crossed = self._point()
            self._edge(crossed, made, up)
            for reader in readers - {self.SINK}:
                self._edge(reader, crossed, _NEVER)

    def _maker(self, var):
        return self.points.get(var.owner if var.owner is not None else var, self.SINK)

    def _reader(self, client, i):
        """Return the point that reads a variable; None if it may lie anywhere."""
        if client == "output":
            if i in self.kept:
                return self.kept[i]
            return None if i in self.borrowed else self.SINK
        if isinstance(client.op, calls.OF_LENGTHS):
            return None
        way = self.found[client]
        if not isinstance(way, str) and i in way.host:
            return self.SINK
        return self.points[client]

    def device_side(self):
        """Return the Applys and inputs that run and lie on the device in the largest least cut."""
        from scipy.sparse import coo_array, csr_array  # only those who use a device wait for it
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        if not self.edges:
            return set(self.points)
        start, end, weight = map(np.array, zip(*self.edges, strict=True))
        shape = (self.count, self.count)
        capacity = csr_array(coo_array((weight, (start, end)), shape=shape))
        capacity.data = np.minimum(capacity.data, _NEVER).astype(np.int32)
        flow = maximum_flow(capacity, self.SOURCE, self.SINK).flow
        left = csr_array(capacity - flow)
        left.data[left.data < 0] = 0
        left.eliminate_zeros()
        # who still reaches the sink is on the host's side; edges are walked backwards
        reaching = breadth_first_order(csr_array(left.T), self.SINK, return_predecessors=False)
        host = set(map(int, reaching))
        return {thing for thing, point in self.points.items() if point not in host}


def can_lie_there(var):
    """Return whether values of a variable can lie on the device."""
    return isinstance(var.type, TensorType) and not var.type.dtype.startswith("complex")


def _is_number(var):
    return getattr(var.type, "ndim", 0) == 0


class _Transfers:
    """Puts transfers into a graph, one for each value and direction."""

    def __init__(self, fgraph, placement):
        self.fgraph, self.placement = fgraph, placement
        self.made = {}

    def insert(self, order):
        fgraph, placement = self.fgraph, self.placement
        for node in order:
            way = placement.ways.get(node)
            for i, var in enumerate(node.inputs):
                if isinstance(node.op, calls.OF_LENGTHS) or not isinstance(var.type, TensorType):
                    continue
                there = way is not None and i not in way.host
                self._move(node, i, var, there)
        kept = fgraph.interface.updates
        for k, var in enumerate(list(fgraph.outputs)):
            if k in kept:
                self._move("output", k, var, fgraph.inputs[kept[k]] in placement.resident)
            elif k not in fgraph.interface.borrowed:
                self._move("output", k, var, False)

    def _move(self, client, i, var, there):
        if isinstance(var, Constant) and (there or client == "output"):
            return  # the linker has a copy of constants on the device
        if isinstance(var.type, TensorType) and self.placement.on_device(var) != there:
            new = self.made.get((var, there))
            if new is None:
                new = self.made[var, there] = (gpu_from_host if there else host_from_gpu)(var)
                new.owner._origins = var.owner.origins if var.owner is not None else ()
            self.fgraph.change_input(client, i, new, reason="place_on_device")
