"""The minimum cut: which Applys run on the device, so that transfers and host work cost least.

The costs are rough. They keep an Apply between two Applys of the host on the host, unless there are
many such Applys, or one of them is a matrix product. A loop costs what the Applys of its step cost,
for each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from opwise.gpu.lowering import SHAPE_OPS, Call, Lowered
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable
from opwise.profiling.model import PRODUCT
from opwise.tensor.type import TensorType

# Costs of transfers, in no unit:
#: of an array, either way
_ARRAY = 1000
#: of a number to the device
_NUMBER = 20
#: of a number to the host, which waits for it
_WAIT = 500
#: of an argument or a result: it is transferred once in any case
_BOUNDARY = 10

# Costs of running an Apply on the wrong side:
#: on the host although the device could
_HOST = 300
#: likewise, if it is a matrix product
_PRODUCT = 100_000
#: on the device although it computes numbers only
_LAUNCH = 10

#: of what must not be cut
_NEVER = 1 << 28
#: the most that an Apply costs
_MOST = 1 << 24


def is_number(var: Variable) -> bool:
    """Return whether a variable has no dimensions."""
    return getattr(var.type, "ndim", 0) == 0


def can_be_resident(var: Variable) -> bool:
    """Return whether values of a variable can lie on the device."""
    return isinstance(var.type, TensorType) and not str(var.type.dtype).startswith("complex")


def costs_of(node: Apply, lowered: Lowered) -> tuple[int, int]:
    """Return what it costs to run an Apply on the host although the device could, and what on the
    device although it computes numbers only."""
    if isinstance(lowered, Call) and lowered.inside:
        pairs = [costs_of(*inner) for inner in lowered.inside]
        on_host, on_device = map(sum, zip(*pairs, strict=True))
        return lowered.times * on_host, lowered.times * on_device
    if all(map(is_number, (*node.inputs, *node.outputs))):
        return 0, _LAUNCH
    return (_PRODUCT if node.op.profile_kind == PRODUCT else _HOST), 0


def device_side(
    fgraph: FunctionGraph, order: Sequence[Apply], found: Mapping[Apply, Lowered | str]
) -> set[Apply | Variable]:
    """Return the Applys that run on the device and the shared inputs that lie there.

    found: what each Apply is lowered to, or why only the host can run it.
    """
    return _Network(fgraph, order, found).device_side()


class _Network:
    """A flow network whose nodes are Applys and shared inputs, and whose capacities are costs.

    The source is the device, the sink is the host. What lies on the source's side of the minimum
    cut runs on the device.
    """

    SOURCE, SINK = 0, 1

    def __init__(
        self, fgraph: FunctionGraph, order: Sequence[Apply], found: Mapping[Apply, Lowered | str]
    ) -> None:
        self.found = found
        self.count = 2
        #: (start, end, capacity)
        self.edges: list[tuple[int, int, int]] = []
        resident = fgraph.interface.resident
        shared = [v for v in fgraph.inputs if v in fgraph.interface.persistent | resident]
        #: number of each node of the network
        self.numbers: dict[Apply | Variable, int] = {}
        for node in order:
            self.numbers[node] = self._new_node()
        for var in shared:
            self.numbers[var] = self._new_node()
        for node in order:
            self._add_apply(node)
        for var in shared:
            if var in resident:
                self._add_edge(self.SOURCE, self.numbers[var], _NEVER)
            elif not can_be_resident(var):
                self._add_edge(self.numbers[var], self.SINK, _NEVER)
        #: by output that is the new value of a shared input, the number of that input
        self.updated = {
            k: self.numbers[fgraph.inputs[i]]
            for k, i in fgraph.interface.updates.items()
            if fgraph.inputs[i] in self.numbers
        }
        self.borrowed = fgraph.interface.borrowed
        for var in dict.fromkeys((*fgraph.inputs, *(v for node in order for v in node.outputs))):
            self._add_variable(var)

    def _new_node(self) -> int:
        self.count += 1
        return self.count - 1

    def _add_edge(self, start: int, end: int, capacity: int) -> None:
        self.edges.append((start, end, capacity))

    def _add_apply(self, node: Apply) -> None:
        """Add what it costs to run an Apply on the wrong side."""
        number, lowered = self.numbers[node], self.found[node]
        if isinstance(lowered, str):
            self._add_edge(number, self.SINK, _NEVER)
            return
        on_host, on_device = costs_of(node, lowered)
        if on_host > on_device:
            self._add_edge(self.SOURCE, number, min(on_host - on_device, _MOST))
        else:
            self._add_edge(number, self.SINK, min(on_device - on_host, _MOST))

    def _add_variable(self, var: Variable) -> None:
        """Add what it costs to read a variable on the side where it is not computed."""
        computed = self._computed_at(var)
        found = {self._read_at(*client) for client in var.clients}
        readers = {reader for reader in found if reader is not None and reader != computed}
        if not readers:
            return
        if not isinstance(var.type, TensorType):
            self._keep_together(computed, readers)
            return
        to_device, to_host = self._transfer_costs(var)
        if computed != self.SINK:
            self._add_transfer(computed, readers, to_host)
        if readers != {self.SINK}:
            self._add_transfer(computed, readers - {self.SINK}, to_device, reverse=True)

    def _keep_together(self, computed: int, readers: Iterable[int]) -> None:
        """Forbid a cut between a variable that cannot be transferred and those that read it."""
        for reader in readers:
            self._add_edge(computed, reader, _NEVER)
            self._add_edge(reader, computed, _NEVER)

    def _transfer_costs(self, var: Variable) -> tuple[int, int]:
        """Return the costs of a transfer to the device and to the host."""
        to_device, to_host = (_NUMBER, _WAIT) if is_number(var) else (_ARRAY, _ARRAY)
        if var.owner is None and var not in self.numbers:
            to_device = min(to_device, _BOUNDARY)
        on_host = [client for client, i in var.clients if self._read_at(client, i) == self.SINK]
        if on_host and all(client == "output" for client in on_host):
            to_host = _BOUNDARY
        return to_device, to_host

    def _add_transfer(
        self, computed: int, readers: Iterable[int], cost: int, reverse: bool = False
    ) -> None:
        """Add the cost of one transfer from where a variable is computed to all of its readers.

        reverse: of the transfer to the device; otherwise of that to the host.
        """
        transfer = self._new_node()
        pairs = [(computed, transfer, cost), *((transfer, reader, _NEVER) for reader in readers)]
        for start, end, capacity in pairs:
            self._add_edge(*((end, start) if reverse else (start, end)), capacity)

    def _computed_at(self, var: Variable) -> int:
        return self.numbers.get(var.owner if var.owner is not None else var, self.SINK)

    def _read_at(self, client: Apply | str, i: int) -> int | None:
        """Return the number of what reads a variable, or None if it reads it on either side."""
        if isinstance(client, str):  # an output of the graph
            if i in self.updated:
                return self.updated[i]
            return None if i in self.borrowed else self.SINK
        if isinstance(client.op, SHAPE_OPS):
            return None
        lowered = self.found[client]
        if not isinstance(lowered, str) and i in lowered.host:
            return self.SINK
        return self.numbers[client]

    def device_side(self) -> set[Apply | Variable]:
        """Return what lies on the device's side of the minimum cut, of several the largest."""
        from scipy.sparse import coo_array, csr_array  # loaded only if a device is used
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        if not self.edges:
            return set(self.numbers)
        start, end, capacity = map(np.array, zip(*self.edges, strict=True))
        shape = (self.count, self.count)
        capacities = csr_array(coo_array((capacity, (start, end)), shape=shape))
        capacities.data = np.minimum(capacities.data, _NEVER).astype(np.int32)
        flow = maximum_flow(capacities, self.SOURCE, self.SINK).flow
        residual = csr_array(capacities - flow)
        residual.data[residual.data < 0] = 0
        residual.eliminate_zeros()
        # the host's side is what still reaches the sink: walk backwards from there
        reaching = breadth_first_order(csr_array(residual.T), self.SINK, return_predecessors=False)
        host = set(map(int, reaching))
        return {thing for thing, number in self.numbers.items() if number not in host}
