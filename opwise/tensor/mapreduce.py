"""MapReduce: an elementwise operation and a reduction of its result, in one loop."""

from __future__ import annotations

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.tensor.elemwise import Elemwise


class MapReduce(Op):
    """``reduction`` of the elementwise ``scalar_op`` of the inputs.

    scalar_op: a ScalarOp with one output. reduction: the CAReduce of its result. Inputs broadcast
    as those of Elemwise. Fusion makes these if only the reduction reads the elementwise result.
    """

    __props__ = ("scalar_op", "reduction")
    profile_kind = "fused"

    def __init__(self, scalar_op, reduction):
        self.scalar_op = scalar_op
        self.reduction = reduction
        self._map = Elemwise(scalar_op)

    def make_node(self, *inputs):
        mapped, reduced = self._parts(inputs)
        return Apply(self, mapped.inputs, [reduced.outputs[0].type.make_variable()])

    def _parts(self, inputs):
        mapped = self._map.make_node(*inputs)
        return mapped, self.reduction.make_node(*mapped.outputs)

    def parts(self, node: Apply) -> tuple[Apply, Apply]:
        """Return the elementwise Apply and the reduction for new inputs of an Apply's types."""
        parts = getattr(node.tag, "parts", None)
        if parts is None or [v.type for v in parts[0].inputs] != [v.type for v in node.inputs]:
            parts = node.tag.parts = self._parts([v.type.make_variable() for v in node.inputs])
        return parts

    def flops(self, inputs, outputs):
        """Return the number of floating-point operations; None if there is no exact count.

        inputs, outputs: their shapes.
        """
        mapped = np.broadcast_shapes(*inputs)
        both = self._map.flops(inputs, [mapped]), self.reduction.flops([mapped], outputs)
        return None if None in both else sum(both)

    def traffic(self, node, inputs, outputs):
        """Return the bytes of the inputs that are read, and of the output."""
        return self._map.traffic(node, inputs, outputs)

    def perform(self, node, inputs, output_storage):
        mapped, reduced = self.parts(node)
        between = [None]
        self._map.perform(mapped, inputs, [between])
        reduced.op.perform(reduced, between, output_storage)

    def infer_shape(self, node, shapes):
        mapped, reduced = self.parts(node)
        return reduced.op.infer_shape(reduced, self._map.infer_shape(mapped, shapes))

    def L_op(self, inputs, outputs, output_gradients):
        mapped, reduced = self._parts(inputs)
        through = reduced.op.L_op(mapped.outputs, reduced.outputs, output_gradients)
        return self._map.L_op(inputs, mapped.outputs, through)

    def __str__(self):
        return f"MapReduce{{{self.reduction}, {self.scalar_op}}}"
