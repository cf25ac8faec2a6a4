"""Scalar variables and constants, with their operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar.op import OPS, cast, mod_check
from opwise.scalar.types import Scalar, constant

_Method: TypeAlias = Callable[..., Var]


def _operator(name: str) -> _Method:
    op = mod_check if name == "mod" else OPS[name]
    return lambda self, *others: op(self, *others)


def _operators(name: str) -> tuple[_Method, _Method]:
    """Return the method of an operator, and that with the variable as right operand."""
    op = mod_check if name == "mod" else OPS[name]
    return _operator(name), lambda self, other: op(other, self)


def _filled(value: int) -> _Method:
    def method(self: ScalarVariable, dtype: str | None = None) -> Var:
        number = constant(value, dtype or self.type.dtype)
        return OPS["second"](self, number)

    return method


class ScalarVariable(Variable):
    """A variable of Scalar type."""

    @property
    def dtype(self) -> str:
        return self.type.dtype

    ndim = 0

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("true_div")
    __floordiv__, __rfloordiv__ = _operators("int_div")
    __mod__, __rmod__ = _operators("mod")
    __pow__, __rpow__ = _operators("pow")
    __and__, __rand__ = _operators("and_")
    __or__, __ror__ = _operators("or_")
    __xor__, __rxor__ = _operators("xor")
    __neg__, __abs__, __invert__ = map(_operator, ("neg", "abs_", "invert"))
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("lt", "le", "gt", "ge"))

    zeros_like, ones_like = _filled(0), _filled(1)

    def astype(self, dtype: str) -> Var:
        """Return the number as ``dtype``."""
        return cast(self, dtype)


class ScalarConstant(Constant, ScalarVariable):
    """A constant number."""

    def __init__(self, type: Scalar, data: Any, name: str | None = None) -> None:
        Constant.__init__(self, type, data, name)

    def signature(self) -> Any:
        # by bits: -0.0 differs from 0.0
        return self.type, np.asarray(self.data).tobytes()

    def __str__(self) -> str:
        return self.name or f"Constant{{{self.data}}}"


# a type is older than the class of its variables, whose methods make Ops, which know the type
Scalar.Variable = ScalarVariable
Scalar.Constant = ScalarConstant
