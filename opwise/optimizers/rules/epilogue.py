"""Fusion of convolutions with the elementwise work on their results."""

from __future__ import annotations

from typing import Any

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rules.fusion import MAX_OPERANDS, runs_in_loops
from opwise.tensor.conv.epilogue import ConvElemwise
from opwise.tensor.conv.ops import AbstractConv, AbstractConv_gradInputs
from opwise.tensor.elemwise import Elemwise


class ConvElemwiseFusion(Optimizer):
    """Fuses each convolution with the elementwise Apply that alone reads its result.

    The elementwise work is then done on parts of the result that are still in the caches.
    """

    name = "conv_elemwise_fusion"

    def apply(self, fgraph: FunctionGraph) -> None:
        if not config.tensor.local_elemwise_fusion:
            return
        order = fgraph.toposort()
        if not any(_is_convolution(node) for node in order):
            return
        bound = {node for earlier in fgraph.orderings().values() for node in earlier}
        # the last convolution first: what it reads may be a result of another one
        position = {node: k for k, node in enumerate(order)}
        for node in order:
            if node in bound or not _may_follow(node):
                continue
            found = [
                x.owner for x in dict.fromkeys(node.inputs)
                if x.owner is not None and x.owner not in bound and _leads_to(x.owner, node)
            ]  # fmt: skip
            if found:
                conv = max(found, key=position.__getitem__)
                fgraph.replace_all(
                    list(zip(node.outputs, _fused(conv, node), strict=True)), reason=self.name
                )


def _is_convolution(node: Apply) -> bool:
    return isinstance(node.op, AbstractConv | AbstractConv_gradInputs)


def _may_follow(node: Apply) -> bool:
    """Return whether an Apply is elementwise work that C can do on parts of its operands."""
    return (
        isinstance(node.op, Elemwise)
        and not node.op.inplace_pattern
        and len(node.inputs) + len(node.outputs) <= MAX_OPERANDS
        and runs_in_loops(node)
    )


def _leads_to(conv: Apply, node: Apply) -> bool:
    """Return whether only ``node`` reads the result of a convolution, and gives as much."""
    if not _is_convolution(conv):
        return False
    (result,) = conv.outputs
    return (
        result.type.dtype in ("float32", "float64")
        and len(result._clients) == 1
        and any(out.type == result.type for out in node.outputs)
    )


def _fused(conv: Apply, node: Apply) -> list[Any]:
    op = ConvElemwise(conv.op, node.op.scalar_op, node.inputs.index(conv.outputs[0]))
    outputs = [out.type.make_variable() for out in node.outputs]
    return Apply(op, [*conv.inputs, *op.others(node.inputs)], outputs).outputs
