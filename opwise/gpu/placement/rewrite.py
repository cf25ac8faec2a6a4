"""The rewrite that decides which Applys run on the device, and inserts the transfers."""

from __future__ import annotations

from typing import Any, Literal

from opwise.gpu.lowering import SHAPE_OPS, lower
from opwise.gpu.placement.mincut import device_side, is_number
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.transfers import gpu_from_host, host_from_gpu
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Variable
from opwise.optimizers.passes import Optimizer
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.type import TensorType


class PlaceOnDevice(Optimizer):
    """Decides which Applys run on the device and inserts transfers where data must move.

    Applys stay as they are. The graph's Placement says where they run.
    """

    def apply(self, fgraph: FunctionGraph) -> None:
        order = fgraph.toposort()
        found = {node: lower(node) for node in order}
        placement = Placement()
        on_device = device_side(fgraph, order, found)
        for k, node in enumerate(order):
            lowered = found[node]
            if node in on_device and not isinstance(lowered, str):
                placement.lowered[node] = lowered
            else:
                order[k] = _without_overwriting(fgraph, node)
                placement.why[order[k]] = lowered if isinstance(lowered, str) else ""
        can_lie_there = fgraph.interface.persistent | fgraph.interface.resident
        placement.resident = {var for var in can_lie_there if var in on_device}
        before = fgraph.find_feature(Placement)
        if before is not None:
            fgraph.remove_feature(before)
        fgraph.attach_feature(placement)
        _Transfers(fgraph, placement).insert(order)


def _without_overwriting(fgraph: FunctionGraph, node: Apply) -> Apply:
    """Replace an Apply that overwrites a number of the graph's inputs; return what runs instead.

    To overwrite a number gains nothing. But such an Apply must run after all that can fail, and so
    it would split the device's work.
    """
    op = node.op
    if not (isinstance(op, Elemwise) and op.inplace_pattern and all(map(is_number, node.outputs))):
        return node
    if all(node.inputs[i].owner is not None for i in op.inplace_pattern.values()):
        return node
    new: Any = Elemwise(op.scalar_op)(*node.inputs, return_list=True)
    new[0].owner._origins = node.origins
    for old, var in zip(node.outputs, new, strict=True):
        fgraph.replace(old, var, reason="place_on_device")
    replacing: Apply = new[0].owner
    return replacing


class _Transfers:
    """Inserts transfers into a graph, one for each value and direction."""

    def __init__(self, fgraph: FunctionGraph, placement: Placement) -> None:
        self.fgraph, self.placement = fgraph, placement
        #: by (variable, whether to the device)
        self.transferred: dict[tuple[Variable, bool], Variable] = {}

    def insert(self, order: list[Apply]) -> None:
        """Let each Apply in ``order``, and each output, read its variables where it needs them."""
        for node in order:
            if not isinstance(node.op, SHAPE_OPS):
                self._insert_before(node)
        self._insert_before_outputs()

    def _insert_before(self, node: Apply) -> None:
        lowered = self.placement.lowered.get(node)
        for i, var in enumerate(node.inputs):
            if isinstance(var.type, TensorType):
                self._read(node, i, var, lowered is not None and i not in lowered.host)

    def _insert_before_outputs(self) -> None:
        fgraph = self.fgraph
        updates = fgraph.interface.updates
        for k, var in enumerate(list(fgraph.outputs)):
            if k in updates:
                on_device = fgraph.inputs[updates[k]] in self.placement.resident
                self._read("output", k, var, on_device)
            elif fgraph.interface.resident:  # the caller's values lie on the device
                self._read("output", k, var, True)
            elif k not in fgraph.interface.borrowed:
                self._read("output", k, var, False)

    def _read(
        self, client: Apply | Literal["output"], i: int, var: Variable, on_device: bool
    ) -> None:
        """Let input ``i`` of a client be a variable on the device, or on the host."""
        if isinstance(var, Constant) and (on_device or client == "output"):
            return  # the linker copies constants to the device
        if not isinstance(var.type, TensorType) or self.placement.on_device(var) == on_device:
            return
        new = self.transferred.get((var, on_device))
        if new is None:
            new = (gpu_from_host if on_device else host_from_gpu)(var)
            new.owner._origins = var.owner.origins if var.owner is not None else ()
            self.transferred[var, on_device] = new
        self.fgraph.change_input(client, i, new, reason="place_on_device")
