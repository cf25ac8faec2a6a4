"""PdbBreakpoint: stops a running function in Python's debugger if a condition holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable

#: theano.tensor does not have it; theano.tests.breakpoint does
__all__: list[str] = []


class PdbBreakpoint(Op):
    """Returns all inputs but the first unchanged; opens the debugger if the first one is true.

    ``a, b = PdbBreakpoint("large")(T.gt(a.max(), 10), a, b)``: the condition is a scalar. In the
    debugger, the list ``monitored`` holds the values as arrays, in order; the function goes on with
    the values that are in it then. name: printed when the function stops. The function must
    compute with an output, otherwise the breakpoint is not part of its graph.
    """

    __props__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def make_node(self, condition: TensorLike, *variables: TensorLike) -> Apply:
        condition = as_tensor_variable(condition)
        if condition.type.ndim != 0:
            raise AssertionError(
                f"The condition of the breakpoint {self.name!r} must be a scalar, but {condition} "
                f"is of {condition.type}: write T.any(...) or T.all(...)."
            )
        if not variables:
            raise ValueError(
                f"The breakpoint {self.name!r} monitors nothing: give it variables after the "
                "condition, and compute with the variables that it returns."
            )
        monitored = [v if hasattr(v, "type") else as_tensor_variable(v) for v in variables]
        # one instance may be applied to any number of variables, and each Apply has its own views
        op = type(self)(self.name)
        op.view_map = {i: [i + 1] for i in range(len(monitored))}
        return Apply(op, [condition, *monitored], [v.type.make_variable() for v in monitored])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        condition, *values = inputs
        if condition:
            monitored = [np.array(value) for value in values]
            self._announce(node)
            import pdb  # slow to import

            pdb.set_trace()
            values = [
                out.type.filter(value) for out, value in zip(node.outputs, monitored, strict=True)
            ]
        for storage, value in zip(output_storage, values, strict=True):
            storage[0] = value

    def _announce(self, node: Apply) -> None:
        print(
            f"\n{'-' * 49}\nConditional breakpoint '{self.name}' activated\n\n"
            "The monitored variables are stored, in order,\n"
            "in the list variable 'monitored' as NumPy arrays:\n"
            + "".join(f"  monitored[{i}]: {var}\n" for i, var in enumerate(node.inputs[1:]))
            + "\nTheir contents can be altered and, when execution\n"
            f"resumes, the updated values will be used.\n{'-' * 49}"
        )

    def do_constant_folding(self, node: Apply) -> bool:
        return False  # it is to stop in every call

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return shapes[1:]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        outputs = range(len(node.inputs) - 1)
        return [[i == out + 1 for out in outputs] for i in range(len(node.inputs))]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return [disconnected_type.make_variable(), *output_gradients]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        return eval_points[1:]
