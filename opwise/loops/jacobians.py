"""``jacobian`` and ``hessian``: a loop over the elements of what is differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.gradient import format_as, grad
from opwise.graph.variable import Var, Variable
from opwise.loops.build import scan
from opwise.tensor import arange


def jacobian(
    expression: Var,
    wrt: Any,
    consider_constant: Sequence[Var] | None = None,
    disconnected_inputs: str = "raise",
) -> Any:
    """Return the derivatives of all elements of a vector by ``wrt``.

    expression: a vector, or a scalar, of which the gradient is returned. wrt: a variable, or a list
    or tuple of them; the result has the same form. For a vector of n elements and a variable of
    shape s it has the shape ``(n, *s)``. consider_constant, disconnected_inputs: as for ``grad``.

    Raises AssertionError for an expression of more dimensions.
    """
    _check(expression, "jacobian", "expression", _ndim(expression) < 2, "1 dimensional variable")
    if expression.ndim == 0:
        return grad(
            expression, wrt, consider_constant=consider_constant,
            disconnected_inputs=disconnected_inputs,
        )  # fmt: skip
    variables = list(wrt) if isinstance(wrt, list | tuple) else [wrt]
    rows = _by_element(expression, variables, consider_constant, disconnected_inputs)
    return format_as(isinstance(wrt, list), isinstance(wrt, tuple), rows)


def hessian(
    cost: Var,
    wrt: Any,
    consider_constant: Sequence[Var] | None = None,
    disconnected_inputs: str = "raise",
) -> Any:
    """Return the second derivatives of a scalar by the elements of ``wrt``.

    wrt: a vector, or a list or tuple of them; the result has the same form. By a vector of n
    elements it has the shape (n, n). consider_constant, disconnected_inputs: as for ``grad``.

    Raises AssertionError for a cost that is no scalar, and for wrt that are no vectors.
    """
    _check(cost, "hessian", "cost", _ndim(cost) == 0, "0 dimensional variable")
    variables = list(wrt) if isinstance(wrt, list | tuple) else [wrt]
    found = []
    for var in variables:
        _check(var, "hessian", "wrt", _ndim(var) == 1, "(list of) 1 dimensional variable")
        first = grad(
            cost, var, consider_constant=consider_constant, disconnected_inputs=disconnected_inputs
        )
        found += _by_element(first, [var], consider_constant, "ignore")
    return format_as(isinstance(wrt, list), isinstance(wrt, tuple), found)


def _by_element(
    vector: Var, wrt: list[Var], consider_constant: Any, disconnected_inputs: str
) -> list[Var]:
    """Return the gradients of the elements of a vector by each variable, in rows."""

    def row(i: Var, *_: Var) -> list[Var]:
        found: list[Var] = grad(
            vector[i], wrt, consider_constant=consider_constant,
            disconnected_inputs=disconnected_inputs,
        )  # fmt: skip
        return found

    rows, _ = scan(row, arange(vector.shape[0]), name="jacobian", return_list=True)
    return list(rows)


def _check(var: Any, function: str, argument: str, fits: bool, expected: str) -> None:
    if not isinstance(var, Variable) or not fits:
        raise AssertionError(
            f"tensor.{function} expects a {expected} as `{argument}`, not {var} of "
            f"{getattr(var, 'ndim', '?')} dimensions. Use flatten() to make it a vector."
        )


def _ndim(var: Any) -> float:
    return getattr(var, "ndim", float("nan")) if isinstance(var, Variable) else float("nan")
