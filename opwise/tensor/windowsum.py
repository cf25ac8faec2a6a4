"""WindowSum: sums of neighbouring elements along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.opmethods import linear_in_first, shapes_of
from opwise.tensor.elemwise import rough_work
from opwise.tensor.variable import TensorLike, TensorOp, as_tensor_variable


class WindowSum(TensorOp):
    """Adds up, for each element, those from ``first`` to ``last`` places behind it along ``axis``.

    first, last: integers, with first <= last; negative ones mean places before it. Elements beyond
    the ends count as zeros. axis: 0 to ndim - 1. Rewrites make these of sums of slices of an array
    with zeros around it, as programs write local response normalisation.
    """

    __props__ = ("axis", "first", "last")
    traffic = costs.each_once

    def __init__(self, axis: int, first: int, last: int) -> None:
        self.axis, self.first, self.last = axis, first, last

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def along(self, axis: int) -> WindowSum:
        """Return the same sums along another axis."""
        return self if axis == self.axis else WindowSum(axis, self.first, self.last)

    def flops(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
        """Return the number of additions; those of zeros beyond the ends count too."""
        return (self.last - self.first) * int(np.prod(outputs[0], dtype=np.int64))

    def apply_work(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
        """Return roughly the nanoseconds that one thread computes."""
        return rough_work(["add"] * (self.last - self.first), outputs[0])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        (x,) = inputs
        out = np.zeros(x.shape, x.dtype)
        to, of = np.moveaxis(out, self.axis, 0), np.moveaxis(x, self.axis, 0)
        n = len(of)
        for shift in range(max(self.first, -n), min(self.last, n) + 1):
            to[max(-shift, 0) : n - max(shift, 0)] += of[max(shift, 0) : n - max(-shift, 0)]
        output_storage[0][0] = out

    infer_shape = shapes_of(0)

    def L_op(self, inputs: Any, outputs: Any, output_gradients: Any) -> Any:
        return [WindowSum(self.axis, -self.last, -self.first)(*output_gradients)]

    R_op = linear_in_first
