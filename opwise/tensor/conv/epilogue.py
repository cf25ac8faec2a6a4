"""ConvElemwise: a convolution and the elementwise work on its result, in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type, is_disconnected
from opwise.graph.op import Op
from opwise.graph.variable import Var
from opwise.tensor.conv.ops import AbstractConv_gradInputs, BaseAbstractConv
from opwise.tensor.creation import zeros_like
from opwise.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from opwise.tensor.variable import Tensor


class ConvElemwise(Op):
    """The elementwise ``scalar_op`` of a convolution's result and other arrays.

    conv: the Op of the convolution, or of its gradient by images. scalar_op: a ScalarOp. index:
    which of its inputs is the result of ``conv``. The inputs are those of ``conv``, then the other
    inputs of ``scalar_op``, which broadcast as those of Elemwise. Fusion makes these if only the
    elementwise work reads the result.
    """

    check_broadcast = False
    __props__ = ("conv", "scalar_op", "index")
    profile_kind = "product"

    def __init__(self, conv: BaseAbstractConv, scalar_op: Any, index: int) -> None:
        self.conv: Any = conv
        self.scalar_op, self.index = scalar_op, index
        self._map = Elemwise(scalar_op)
        #: how many inputs belong to the convolution
        self.n_operands = 3 if isinstance(conv, AbstractConv_gradInputs) else 2

    def make_node(self, *inputs: Any) -> Apply:
        conv, mapped = self._parts(*self._divided(inputs))
        outputs = [out.type.make_variable() for out in mapped.outputs]
        return Apply(self, [*conv.inputs, *self.others(mapped.inputs)], outputs)

    def _parts(self, operands: Sequence[Any], others: Sequence[Any]) -> tuple[Apply, Apply]:
        conv = self.conv.make_node(*operands)
        return conv, self._map.make_node(*self.mapped_inputs(conv.outputs[0], others))

    def mapped_inputs(self, result: Any, others: Sequence[Any]) -> list[Any]:
        """Return the inputs of ``scalar_op`` for a result of the convolution."""
        return [*others[: self.index], result, *others[self.index :]]

    def others(self, mapped: Sequence[Any]) -> list[Any]:
        """Return the inputs of ``scalar_op`` but for the result of the convolution."""
        return [*mapped[: self.index], *mapped[self.index + 1 :]]

    def parts(self, node: Apply) -> tuple[Apply, Apply]:
        """Return the convolution and the elementwise Apply for new inputs of an Apply's types."""
        parts = getattr(node.tag, "parts", None)
        types = [var.type for var in node.inputs]
        if parts is None or parts[0] != types:
            inputs = [type_.make_variable() for type_ in types]
            n = self.n_operands
            conv = self.conv.make_node(*inputs[:n])
            # without checks of shapes that make_node may put around operands
            conv = Apply(self.conv, inputs[:n], [out.type.make_variable() for out in conv.outputs])
            mapped = self._map.make_node(*self.mapped_inputs(conv.outputs[0], inputs[n:]))
            parts = node.tag.parts = types, (conv, mapped)
        return parts[1]

    def _divided(self, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return what belongs to the inputs of the convolution, and to the others."""
        return values[: self.n_operands], values[self.n_operands :]

    def flops(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
        """Return the number of floating-point operations.

        inputs, outputs: their shapes. Elementwise work without an exact count, a small part of all,
        is left out.
        """
        operands, others = self._divided(inputs)
        mapped = self._map.flops(self.mapped_inputs(outputs[0], others), outputs)
        result: int = self.conv.flops(operands, outputs[:1]) + (mapped or 0)
        return result

    def traffic(
        self, node: Apply, inputs: costs.ArrayLayouts, outputs: costs.ArrayLayouts
    ) -> costs.Traffic:
        """Return the bytes of all operands and results, each once."""
        conv, _ = self.parts(node)
        operands, _ = self._divided(inputs)
        counts = costs.each_once(self, node, inputs, outputs)
        of_conv = self.conv.traffic(conv, operands, outputs[:1])
        if counts is None or of_conv is None:
            return None
        read, written = counts
        return [*of_conv[0], *read[len(operands) :]], written

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        conv, mapped = self.parts(node)
        operands, others = self._divided(inputs)
        between: list[Any] = [None]
        self.conv.perform(conv, operands, [between])
        self._map.perform(mapped, self.mapped_inputs(between[0], others), output_storage)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        operands, others = self._divided(shapes)
        conv, mapped = self.parts(node)
        at, _ = self._divided(node.inputs)
        given = Apply(self.conv, list(at), [out.type.make_variable() for out in conv.outputs])
        (result,) = self.conv.infer_shape(given, list(operands))
        return self._map.infer_shape(mapped, self.mapped_inputs(tuple(result), others))

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        operands, others = self._divided(inputs)
        conv, mapped = self._parts(operands, others)
        given = [
            zeros_like(out) if is_disconnected(g) else g
            for out, g in zip(outputs, output_gradients, strict=True)
        ]
        given_to: Sequence[Var] = mapped.inputs
        made: Sequence[Var] = mapped.outputs
        through = self._map.L_op(given_to, made, given)
        by_result = through[self.index]
        if is_disconnected(by_result):
            of_conv = [disconnected_type.make_variable() for _ in operands]
        else:
            of_conv = self.conv.L_op(list(operands), conv.outputs, [by_result])
        return [*of_conv, *self.others(through)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        n = len(node.outputs)
        operands, others = self._divided(node.inputs)
        connected = [[True] * n for _ in (*operands, *others)]
        for i in range(2, len(operands)):  # the lengths of images
            connected[i] = [False] * n
        return connected

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.conv}, {self.scalar_op}}}"
