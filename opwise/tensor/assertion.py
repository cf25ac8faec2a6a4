"""Assert: a value that passes only if conditions hold when the function runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwise.errors import NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Op, Storage, Values
from opwise.graph.opmethods import connects, shapes_of
from opwise.graph.variable import Var, Variable
from opwise.tensor.knownvalues import get_scalar_constant_value, number_rule
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable

#: theano.tensor has none of these names; theano.tensor.opt has all
__all__: list[str] = []


class Assert(Op):
    """Its first input, unless one of the others, the conditions, is 0: then AssertionError.

    msg: the text of the error. A rewrite that drops the result drops the check too.
    """

    __props__: tuple[str, ...] = ("msg",)
    view_map = {0: [0]}

    def __init__(self, msg: str = "Theano Assert failed!") -> None:
        self.msg = msg

    def make_node(self, value: TensorLike, *conds: TensorLike) -> Apply:
        value = value if hasattr(value, "type") else as_tensor_variable(value)
        conditions = [as_tensor_variable(c) for c in conds]
        for c in conditions:
            if c.type.ndim != 0:
                raise TypeError(
                    f"A condition of Assert must be a scalar, not {c} of {c.type}: write T.all(...)"
                )
        return Apply(self, [value, *conditions], [value.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        value, *conds = inputs
        if not all(np.all(c) for c in conds):
            raise self.failure()
        output_storage[0][0] = value

    def failure(self) -> Exception:
        """Return the error for a condition that is 0."""
        return AssertionError(self.msg)

    infer_shape = shapes_of(0)
    connection_pattern = connects(0)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return list(output_gradients) + [disconnected_type.make_variable() for _ in inputs[1:]]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        return [eval_points[0]]


def _checked(node: Apply) -> Variable | None:
    """Return the value that an Assert lets pass if its conditions are known to hold."""
    value, *conditions = node.inputs
    try:
        held = all(get_scalar_constant_value(c, max_recur=3) for c in conditions)
    except NotScalarConstantError:
        return None
    return value if held else None


number_rule(Assert, _checked)
assert_ = Assert()
assert_op = assert_
