"""Methods that many Ops have in common, as values of class attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from opwise.graph.apply import Apply
    from opwise.graph.op import Lengths
    from opwise.graph.variable import Var

_Shapes: TypeAlias = "Sequence[Lengths]"


def shapes_of(*indices: int) -> Callable[[Any, Apply, _Shapes], _Shapes]:
    """Return an ``infer_shape``: each output has the shape of the input with that index."""

    def infer_shape(self: Any, node: Apply, shapes: _Shapes) -> _Shapes:
        return [shapes[i] for i in indices]

    return infer_shape


def scalar_shape(self: Any, node: Apply, shapes: _Shapes) -> _Shapes:
    """An ``infer_shape``: the output is a scalar."""
    return [()]


def product_shape(self: Any, node: Apply, shapes: _Shapes) -> _Shapes:
    """An ``infer_shape``: the output is the product of the first two inputs, matrices."""
    return [(shapes[0][0], shapes[1][1])]


def connects(*indices: int) -> Callable[[Any, Apply], list[list[bool]]]:
    """Return a ``connection_pattern``: gradients reach the inputs with these indices alone."""

    def connection_pattern(self: Any, node: Apply) -> list[list[bool]]:
        return [[i in indices] * len(node.outputs) for i in range(len(node.inputs))]

    return connection_pattern


def linear_in_first(self: Any, inputs: Sequence[Var], eval_points: Sequence[Var]) -> Sequence[Var]:
    """An ``R_op``: the output is linear in the first input, and constant in the others."""
    return [None if eval_points[0] is None else self(eval_points[0], *inputs[1:])]


def zero_derivative(self: Any, inputs: Sequence[Var], eval_points: Sequence[Var]) -> Sequence[Var]:
    """An ``R_op``: the output does not change with the inputs."""
    return [None]
