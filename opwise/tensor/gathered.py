"""Gathered: a loop over elements that reads some of its operands by indices into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayLayouts, ArrayShapes, Traffic
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Variable
from opwise.tensor.advanced_subtensor import AdvancedSubtensor1

if TYPE_CHECKING:
    from opwise.tensor.elemwise import Elemwise
    from opwise.tensor.mapreduce import MapReduce

_GATHER = AdvancedSubtensor1()


class Taken(NamedTuple):
    """An operand of a loop that is ``table[index]``."""

    #: the position of the operand, where the loop has the vector ``table``
    operand: int
    #: the position of the index among the indices
    by: int


class Gathered(Op):
    """``loop``, an Elemwise or MapReduce over vectors, of which some operands are ``table[index]``.

    The inputs are those of the loop, with tables in the places of the operands that are taken, then
    the indices, vectors of integers. taken: which operands these are. Fusion makes this Op of
    AdvancedSubtensor1 and the loop that alone reads its result.
    """

    __props__ = ("loop", "taken")
    profile_kind = "fused"

    def __init__(self, loop: Elemwise | MapReduce, taken: Sequence[Taken]) -> None:
        self.loop = loop
        self.taken = tuple(taken)
        self.n_indices = 1 + max(one.by for one in self.taken)
        if loop.destroy_map:
            self.destroy_map = dict(loop.destroy_map)

    def make_node(self, *inputs: Variable) -> Apply:
        given = [v.type.make_variable() for v in inputs]
        outputs = [out.type.make_variable() for out in self.unfused(given)[-1].outputs]
        return Apply(self, list(inputs), outputs)

    def unfused(self, inputs: Sequence[Variable]) -> list[Apply]:
        """Return the Applys that select the operands, then the loop, on such inputs."""
        operands, indices = self.divided(inputs)
        gathers = [_GATHER.make_node(operands[k], indices[i]) for k, i in self.taken]
        for (k, _), gather in zip(self.taken, gathers, strict=True):
            operands[k] = gather.outputs[0]
        return [*gathers, self.loop.make_node(*operands)]

    def parts(self, node: Apply) -> list[Apply]:
        """Return what ``unfused`` does for new inputs of an Apply's types."""
        parts: list[Apply] | None = getattr(node.tag, "parts", None)
        # a copy of the Apply, which has its tag, may be of an Op that overwrites an operand
        if parts is None or parts[-1].op is not self.loop:
            parts = node.tag.parts = self.unfused([v.type.make_variable() for v in node.inputs])
        return parts

    def values(self, node: Apply, inputs: Values) -> list[Values]:
        """Return the inputs of each of the parts; raises IndexError as the gathers do."""
        operands, indices = self.divided(inputs)
        every: list[Values] = []
        for gather, (k, i) in zip(self.parts(node), self.taken, strict=False):
            every.append([operands[k], indices[i]])
            storage = [[None]]
            gather.op.perform(gather, every[-1], storage)
            operands[k] = storage[0][0]
        return [*every, operands]

    def divided(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return (operands of the loop, with tables, and indices) of the inputs."""
        n = len(inputs) - self.n_indices
        return list(inputs[:n]), list(inputs[n:])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        loop = self.parts(node)[-1]
        loop.op.perform(loop, self.values(node, inputs)[-1], output_storage)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        loop = self.parts(node)[-1]
        inferred: Sequence[Lengths] = loop.op.infer_shape(loop, self._of_operands(shapes))
        return inferred

    def _of_operands(self, each: Sequence[Any]) -> list[Any]:
        """Return what the operands of the loop have, of shapes or layouts of the inputs."""
        operands, indices = self.divided(each)
        for k, i in self.taken:
            operands[k] = indices[i]
        return operands

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of floating-point operations; None if there is no exact count.

        inputs, outputs: their shapes.
        """
        return self.loop.flops(self._of_operands(inputs), outputs)

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes; None if it is not known."""
        return self.loop.apply_work(self._of_operands(inputs), outputs)

    def traffic(self, node: Apply, inputs: ArrayLayouts, outputs: ArrayLayouts) -> Traffic:
        """Return the bytes of the inputs that are read, and of the outputs.

        Of a table at most as many elements are read as there are indices.
        """
        read = [layout.bytes for layout in inputs]
        for k, i in self.taken:
            n = len(inputs) - self.n_indices + i
            elements = read[n] // node.inputs[n].type.numpy_dtype.itemsize
            read[k] = min(read[k], elements * node.inputs[k].type.numpy_dtype.itemsize)
        return read, [layout.bytes for layout in outputs]

    def __str__(self) -> str:
        n = self.n_indices
        which = ", ".join(f"{k}[{i}]" if n > 1 else str(k) for k, i in self.taken)
        return f"Gathered{{{self.loop}, {which}}}"
