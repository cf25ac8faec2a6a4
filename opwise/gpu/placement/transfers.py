"""The Ops that copy arrays between host and device; ``PlaceOnDevice`` inserts them.

Their outputs have the types of their inputs: a type does not say where a value lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.errors import DeviceError
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.opmethods import linear_in_first, shapes_of
from opwise.graph.variable import Var
from opwise.tensor.variable import as_tensor_variable


class _Transfer(Op):
    """Base of the two: a copy of its input on the other side."""

    __props__ = ()
    flops, traffic = costs.no_flops, costs.each_once
    #: part of its key in profiles, so that it differs from the Apply whose value it copies
    moves = ""

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        raise DeviceError(f"{self} runs only under the linker cupy")

    infer_shape = shapes_of(0)
    R_op = linear_in_first


class GpuFromHost(_Transfer):
    """A copy in the memory of the device."""

    moves = ">device"

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [host_from_gpu(output_gradients[0])]


class HostFromGpu(_Transfer):
    """A copy in the memory of the host; it waits for the device's work before it."""

    moves = ">host"

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [gpu_from_host(output_gradients[0])]


gpu_from_host = GpuFromHost()
host_from_gpu = HostFromGpu()
