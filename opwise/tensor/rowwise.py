"""Rowwise: elementwise work, reductions and sums of neighbours along the last axis, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.null import is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var
from opwise.scalar.composite import text_of
from opwise.scalar.program import Instruction
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.reduce import CAReduce
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable
from opwise.tensor.windowsum import WindowSum


class Rowwise(Op):
    """Computes ``steps`` from arrays of one rank, row by row along the last axis.

    Slots below ``nin`` are the inputs, and step k computes slot ``nin + k``: an Instruction applies
    a scalar op elementwise, whose operands broadcast as those of Elemwise; one with a CAReduce
    reduces the last axis, which keeps the length 1; one with a WindowSum adds up along it. outs:
    the slots of the outputs. Fusion makes these where an array would be read again after a
    reduction of its rows.
    """

    __props__ = ("nin", "steps", "outs")
    profile_kind = "fused"
    traffic = costs.each_once

    def __init__(self, nin: int, steps: Sequence[Instruction], outs: Sequence[int]) -> None:
        self.nin, self.steps, self.outs = nin, tuple(steps), tuple(outs)

    def make_node(self, *inputs: TensorLike) -> Apply:
        operands = [as_tensor_variable(x) for x in inputs]
        slots = self.slots(operands)
        return Apply(self, operands, [slots[s].type.make_variable() for s in self.outs])

    def slots(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the tensor variable of each slot."""
        slots = list(inputs)
        for one in self.steps:
            args = [slots[a] for a in one.args]
            if isinstance(one.op, CAReduce):
                kept = range(args[0].type.ndim - 1)
                slots.append(dimshuffle(one.op(*args), (*kept, "x")))
            elif isinstance(one.op, WindowSum):
                slots.append(one.op.along(args[0].type.ndim - 1)(*args))
            else:
                slots.append(Elemwise(one.op)(*args))
        return slots

    def parts(self, node: Apply) -> list[tuple[tuple[int, ...], list[Apply]]]:
        """Return (slots read, Applys one after the other) of each step, for an Apply's types."""
        parts = getattr(node.tag, "parts", None)
        types = [v.type for v in node.inputs]
        if parts is None or parts[0] != types:
            slots = self.slots([type_.make_variable() for type_ in types])
            made = [
                (one.args, _applys(var))
                for one, var in zip(self.steps, slots[self.nin :], strict=True)
            ]
            parts = node.tag.parts = types, made
        return parts[1]

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of floating-point operations; None if there is no exact count.

        inputs, outputs: their shapes.
        """
        counts = [op.flops(args, [out]) for op, args, out in self._shaped(inputs)]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes; None if it is not known."""
        work = [op.apply_work(args, [out]) for op, args, out in self._shaped(inputs)]
        known = [time for time in work if time is not None]
        return sum(known) if len(known) == len(work) else None

    def _shaped(
        self, inputs: ArrayShapes
    ) -> Iterator[tuple[Op, list[tuple[int, ...]], tuple[int, ...]]]:
        """Yield (the tensor Op, shapes of its operands, shape of its result) of each step."""
        shapes = [tuple(shape) for shape in inputs]
        for one in self.steps:
            args = [shapes[a] for a in one.args]
            if isinstance(one.op, CAReduce):
                shapes.append((*args[0][:-1], 1))
                yield one.op, args, shapes[-1]
            elif isinstance(one.op, WindowSum):
                shapes.append(args[0])
                yield one.op, args, shapes[-1]
            else:
                shapes.append(np.broadcast_shapes(*args))
                yield Elemwise(one.op), args, shapes[-1]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        values = list(inputs)
        for args, applys in self.parts(node):
            given = [values[a] for a in args]
            for apply in applys:
                storage = [[None]]
                apply.op.perform(apply, given, storage)
                given = storage[0]
            values.append(given[0])
        for storage, slot in zip(output_storage, self.outs, strict=True):
            storage[0] = values[slot]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        known = list(shapes)
        for args, applys in self.parts(node):
            given = [known[a] for a in args]
            for apply in applys:
                given = apply.op.infer_shape(apply, given)
            known.append(given[0])
        return [known[s] for s in self.outs]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        slots = self.slots(inputs)
        gradients: list[Var] = [None] * len(slots)

        def add(slot: int, gradient: Var) -> None:
            if not is_disconnected(gradient):
                before = gradients[slot]
                gradients[slot] = gradient if before is None else before + gradient

        for slot, gradient in zip(self.outs, output_gradients, strict=True):
            add(slot, gradient)
        for slot in reversed(range(self.nin, len(slots))):
            through = [gradients[slot]]
            if through[0] is None:
                continue
            for apply in reversed(_applys(slots[slot])):
                through = apply.op.L_op(apply.inputs, apply.outputs, through)
            for a, part in zip(self.steps[slot - self.nin].args, through, strict=True):
                add(a, part)
        return [
            x.zeros_like() if gradient is None else gradient
            for x, gradient in zip(inputs, gradients, strict=False)
        ]

    def __str__(self) -> str:
        texts = [f"i{i}" for i in range(self.nin)]
        read = [a for one in self.steps for a in one.args] + list(self.outs)
        named: list[str] = []
        for slot, one in enumerate(self.steps, self.nin):
            args = [texts[a] for a in one.args]
            reduces = isinstance(one.op, CAReduce | WindowSum)
            text = f"{one.op}({args[0]})" if reduces else text_of(one.op, args)
            if read.count(slot) > 1:
                named.append(f"t{len(named)} = {text}; ")
                text = f"t{len(named) - 1}"
            texts.append(text)
        return f"Rowwise{{{''.join(named)}{', '.join(texts[s] for s in self.outs)}}}"


def _applys(var: Var) -> list[Apply]:
    """Return the Applys that compute a slot from others: one, or a reduction and its DimShuffle."""
    apply = var.owner
    return [apply.inputs[0].owner, apply] if isinstance(apply.op, DimShuffle) else [apply]
