"""The Applys that move data between host and device; a rewrite puts them where they must be.

Their variables have the types of the graph: where a value lies is no matter of its type.
"""

from __future__ import annotations

from opwise.errors import DeviceError
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.tensor.variable import as_tensor_variable


class _Transfer(Op):
    """Base of the two: the value itself, elsewhere."""

    __props__ = ()
    flops, traffic = costs.no_flops, costs.each_once
    #: what tells it in profiles from the Apply that made what it moves, and whose line it has
    moves = ""

    def make_node(self, x):
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        raise DeviceError(f"{self} runs under the linker cupy alone")

    def infer_shape(self, node, shapes):
        return shapes

    def R_op(self, inputs, eval_points):
        return [None if eval_points[0] is None else self(eval_points[0])]

    def __str__(self):
        return type(self).__name__


class GpuFromHost(_Transfer):
    """A copy of an array in the memory of the device."""

    moves = ">device"

    def grad(self, inputs, output_gradients):
        return [host_from_gpu(output_gradients[0])]


class HostFromGpu(_Transfer):
    """A copy in the host's memory; it waits for what the device has to do before it."""

    moves = ">host"

    def grad(self, inputs, output_gradients):
        return [gpu_from_host(output_gradients[0])]


gpu_from_host = GpuFromHost()
host_from_gpu = HostFromGpu()
