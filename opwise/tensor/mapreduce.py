"""MapReduce: an elementwise operation and reductions of its results, in one loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayLayouts, ArrayShapes, Traffic
from opwise.graph.null import is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var
from opwise.tensor.creation import zeros_like
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.variable import TensorLike

if TYPE_CHECKING:
    from opwise.scalar.op import ScalarOp
    from opwise.tensor.variable import Tensor


class MapReduce(Op):
    """``reductions`` of what the elementwise ``scalar_op`` of the inputs gives.

    scalar_op: a ScalarOp. reductions: a CAReduce for each of its results, with the same operation
    along the same axes. Inputs broadcast as those of Elemwise. Fusion makes these if only the
    reductions read the elementwise results.
    """

    __props__ = ("scalar_op", "reductions")
    profile_kind = "fused"

    def __init__(self, scalar_op: ScalarOp, *reductions: Op) -> None:
        self.scalar_op = scalar_op
        self.reductions = reductions
        self._map = Elemwise(scalar_op)

    def make_node(self, *inputs: TensorLike) -> Apply:
        mapped, every = self._parts(inputs)
        outputs = [reduced.outputs[0].type.make_variable() for reduced in every]
        return Apply(self, mapped.inputs, outputs)

    def _parts(self, inputs: Sequence[TensorLike]) -> tuple[Apply, list[Apply]]:
        mapped = self._map.make_node(*inputs)
        pairs = zip(self.reductions, mapped.outputs, strict=True)
        return mapped, [reduction.make_node(out) for reduction, out in pairs]

    def parts(self, node: Apply) -> tuple[Apply, list[Apply]]:
        """Return the elementwise Apply and the reductions for new inputs of an Apply's types."""
        parts: tuple[Apply, list[Apply]] | None = getattr(node.tag, "parts", None)
        if parts is None or [v.type for v in parts[0].inputs] != [v.type for v in node.inputs]:
            parts = node.tag.parts = self._parts([v.type.make_variable() for v in node.inputs])
        return parts

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of floating-point operations; None if there is no exact count.

        inputs, outputs: their shapes.
        """
        mapped = np.broadcast_shapes(*inputs)
        counts = [self._map.flops(inputs, [mapped])]
        pairs = zip(self.reductions, outputs, strict=True)
        counts += [reduction.flops([mapped], [out]) for reduction, out in pairs]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes; None if it is not known."""
        return self._map.apply_work(inputs, [np.broadcast_shapes(*inputs)])

    def traffic(self, node: Apply, inputs: ArrayLayouts, outputs: ArrayLayouts) -> Traffic:
        """Return the bytes of the inputs that are read, and of the outputs."""
        return self._map.traffic(node, inputs, outputs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        mapped, every = self.parts(node)
        between = [[None] for _ in every]
        self._map.perform(mapped, inputs, between)
        for reduced, mapped_to, storage in zip(every, between, output_storage, strict=True):
            reduced.op.perform(reduced, mapped_to, [storage])

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        mapped, every = self.parts(node)
        between = self._map.infer_shape(mapped, shapes)
        return [
            reduced.op.infer_shape(reduced, [shape])[0]
            for reduced, shape in zip(every, between, strict=True)
        ]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        mapped, every = self._parts(inputs)
        through = [
            zeros_like(reduced.inputs[0])
            if is_disconnected(gradient)
            else reduced.op.L_op(reduced.inputs, reduced.outputs, [gradient])[0]
            for reduced, gradient in zip(every, output_gradients, strict=True)
        ]
        outs: Sequence[Var] = mapped.outputs
        return self._map.L_op(inputs, outs, through)

    def __str__(self) -> str:
        first = self.reductions[0]
        return f"MapReduce{{{first}, {self.scalar_op}}}"
