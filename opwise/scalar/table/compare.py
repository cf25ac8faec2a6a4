"""Comparisons and tests, which give bool and have no gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import row

_NO_GRADIENT: dict[int, Callable[..., Any]] = {
    1: lambda F, x, z, g: 0,
    2: lambda F, x, y, z, g: (0, 0),
}


def _compare(name, cls, numpy, operator, commutative=False):
    row(
        name, cls, 2, d.always_bool, numpy, f"{{x}} {operator} {{y}}", _NO_GRADIENT[2],
        compute=d.upcast, commutative=commutative, doc=f"x {operator} y",
    )  # fmt: skip


_compare("lt", "LT", np.less, "<")
_compare("gt", "GT", np.greater, ">")
_compare("le", "LE", np.less_equal, "<=")
_compare("ge", "GE", np.greater_equal, ">=")
_compare("eq", "EQ", np.equal, "==", commutative=True)
_compare("neq", "NEQ", np.not_equal, "!=", commutative=True)
row(
    "isnan", "IsNan", 1, d.always_bool, np.isnan,
    {"f": "{x} != {x}", "i": "0", "u": "0", "b": "0"}, _NO_GRADIENT[1],
    compute=d.same, doc="Whether x is not a number.",
)  # fmt: skip
row(
    "isinf", "IsInf", 1, d.always_bool, np.isinf,
    {"f": "({x} == {x} && {x} - {x} != 0)", "i": "0", "u": "0", "b": "0"}, _NO_GRADIENT[1],
    compute=d.same, doc="Whether x is infinite.",
)  # fmt: skip
