"""Placement: where the Applys of a graph run, and why; a feature of the graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from opwise.gpu.lowering import Lowered, lower
from opwise.gpu.placement.transfers import gpu_from_host
from opwise.graph.apply import Apply
from opwise.graph.features import DevicePlacement, Feature
from opwise.graph.variable import Variable


@dataclass(eq=False)
class Placement(DevicePlacement):
    """Where the Applys of a graph run.

    ``fgraph.find_feature(Placement)`` returns it once PlaceOnDevice has placed the graph.
    """

    #: how the device runs each Apply that it runs
    lowered: dict[Apply, Lowered] = field(default_factory=dict)
    #: why the host runs each other Apply; "" if the device could, but transfers would cost more
    why: dict[Apply, str] = field(default_factory=dict)
    #: inputs of the graph that lie on the device
    resident: set[Variable] = field(default_factory=set)

    def clone(self) -> Feature:
        """Return a feature that does nothing: a copy of the graph is placed anew."""
        return Feature()

    def on_device(self, var: Variable) -> bool:
        """Return whether a variable lies on the device."""
        if var.owner is None:
            return var in self.resident
        return var.owner in self.lowered or var.owner.op is gpu_from_host

    def read_on_host(self, node: Apply) -> tuple[int, ...] | None:
        lowered = self.lowered.get(node)
        return None if lowered is None else lowered.host

    def lowered_for(self, node: Apply) -> Lowered | None:
        """Return how the device runs an Apply, or None if the host runs it.

        The device also runs an Apply that came into the graph after the placement, if all of its
        inputs lie there and it can be lowered.
        """
        if node not in self.lowered and node.inputs and all(map(self.on_device, node.inputs)):
            found = lower(node)
            if not isinstance(found, str):
                self.lowered[node] = found
        return self.lowered.get(node)
