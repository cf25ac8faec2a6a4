"""Which kernels an Apply is expected to launch, so that they are compiled with the function."""

from __future__ import annotations

from opwise.gpu.kernels.kernel import DeviceLimits, Implementation, Kernel, Layout
from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.tensor.dimshuffle import DimShuffle


def expected_kernels(node: Apply, found: Implementation) -> tuple[Kernel, ...]:
    """Return the kernels that are launched for inputs of the usual layouts, small and large.

    One of the lengths is no multiple of a vector. An implementation that reads inputs on the host
    is expected to launch any of its kernels, except those for huge arrays.
    """
    if found.host:
        return tuple(k for k in found.kernels if not k.wide)
    launched: dict[Kernel, None] = {}
    for length in (10, 16, 2 ** (24 // max(1, *(v.type.ndim for v in node.inputs)))):
        inputs, outputs = (
            [_usual_layout(v, length) for v in variables]
            for variables in (node.inputs, node.outputs)
        )
        plan = found.plan(inputs, outputs, DeviceLimits())
        launched |= dict.fromkeys(launch.kernel for launch in plan.launches)
    return tuple(k for k in launched if not k.wide)


def _usual_layout(var: Variable, length: int) -> Layout:
    """Return the layout of a variable whose dimensions all have ``length`` elements.

    It is contiguous, or that of a DimShuffle of a contiguous array.
    """
    if var.owner is None or not isinstance(var.owner.op, DimShuffle):
        shape = [1 if b else length for b in var.type.broadcastable]
        return Layout.contiguous(shape, var.type.numpy_dtype.itemsize)
    whole, order = _usual_layout(var.owner.inputs[0], length), var.owner.op.new_order
    return whole._replace(
        shape=tuple(whole.shape[d] if isinstance(d, int) else 1 for d in order),
        strides=tuple(whole.strides[d] if isinstance(d, int) else 0 for d in order),
    )
