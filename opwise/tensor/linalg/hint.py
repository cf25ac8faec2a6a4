"""Hints: what a program knows about a matrix and a graph does not show; an eigenvalue bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.errors import NotScalarConstantError
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var, Variable
from opwise.tensor.elemwise import elemwise
from opwise.tensor.knownvalues import get_scalar_constant_value
from opwise.tensor.linalg.products import trace
from opwise.tensor.products import dot
from opwise.tensor.variable import Tensor

__all__ = [
    "Hint",
    "hints",
    "is_hint_node",
    "is_positive",
    "is_psd",
    "is_symmetric",
    "psd",
    "spectral_radius_bound",
]


class Hint(Op):
    """Its input, about which the hints are true; a rule removes it and keeps the hints."""

    __props__ = ("hints",)
    view_map = {0: [0]}
    traffic = costs.nothing
    flops = costs.no_flops

    def __init__(self, **kwargs: Any) -> None:
        self.hints = tuple(kwargs.items())

    def make_node(self, x: Var) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0]

    infer_shape = shapes_of(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return output_gradients

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        return eval_points


def is_hint_node(node: Apply | None) -> bool:
    """Return whether an Apply gives hints about its input."""
    return node is not None and isinstance(node.op, Hint)


def hints(variable: Variable) -> dict[str, Any]:
    """Return the hints about a variable, {name: value}, of its graph and of its Apply."""
    feature = variable.fgraph and variable.fgraph.hints_feature
    found = dict(feature.hints.get(variable, {})) if feature else {}
    if variable.owner is not None and is_hint_node(variable.owner):
        found.update(variable.owner.op.hints)
    return found


def psd(v: Tensor) -> Tensor:
    """Return the matrix ``v`` with the hint that it is symmetric and positive semidefinite.

    v: a variable; the result has its shape and dtype. The hint is not checked. Raises
    AttributeError for what is no variable.
    """
    result: Tensor = Hint(psd=True, symmetric=True)(v)
    return result


def is_psd(v: Variable) -> bool:
    """Return whether a hint says that ``v`` is positive semidefinite."""
    return bool(hints(v).get("psd", False))


def is_symmetric(v: Variable) -> bool:
    """Return whether a hint says that ``v`` is symmetric."""
    return bool(hints(v).get("symmetric", False))


def is_positive(v: Variable) -> bool:
    """Return whether no element of ``v`` is negative, by a hint or as an even power."""
    if hints(v).get("positive", False):
        return True
    if v.owner is None:
        return False
    if v.owner.op == elemwise("sqr"):
        return True
    if v.owner.op != elemwise("pow"):
        return False
    try:
        return bool(get_scalar_constant_value(v.owner.inputs[1]) % 2 == 0)
    except NotScalarConstantError:
        return False


def spectral_radius_bound(X: Tensor, log2_exponent: int) -> Tensor:
    """Return an upper bound of the largest eigenvalue of a symmetric matrix ``X``.

    It is the trace of the power 2 ** log2_exponent of X, to the inverse power; a larger exponent
    gives a tighter bound. It has shape () and the dtype of X, at least float32 (float64 for
    integers). Raises TypeError unless X is a matrix and the exponent an integer, and ValueError
    unless the exponent is positive; ValueError at run time if X is not square. Pan, Estimating the
    extremal eigenvalues of a symmetric matrix, Computers Math. Applic. 20 (1990).
    """
    if X.type.ndim != 2:
        raise TypeError(f"spectral_radius_bound requires a matrix argument, got {X.type}", X)
    if not isinstance(log2_exponent, int):
        raise TypeError("spectral_radius_bound requires an integer exponent", log2_exponent)
    if log2_exponent <= 0:
        raise ValueError(
            "spectral_radius_bound requires a strictly positive exponent", log2_exponent
        )
    power = X
    for _ in range(log2_exponent):
        power = dot(power, power)
    return elemwise("pow")(trace(power), 2.0**-log2_exponent)
