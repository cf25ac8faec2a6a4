"""Comparisons and tests, which give bool and have no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import row

_NO_GRADIENT: dict[int, Callable[..., Any]] = {
    1: lambda F, x, z, g: 0,
    2: lambda F, x, y, z, g: (0, 0),
}


def _compare(
    name: str,
    cls: str,
    numpy: Callable[..., Any],
    operator: str,
    complex_c: str,
    commutative: bool = False,
) -> None:
    row(
        name, cls, 2, d.always_bool, numpy, f"{{x}} {operator} {{y}}", _NO_GRADIENT[2],
        compute=d.promote, complex_c=complex_c, commutative=commutative, doc=f"x {operator} y",
    )  # fmt: skip


_compare("lt", "LT", np.less, "<", "ow_lt_{S}({x}, {y})")
_compare("gt", "GT", np.greater, ">", "ow_lt_{S}({y}, {x})")
_compare("le", "LE", np.less_equal, "<=", "ow_le_{S}({x}, {y})")
_compare("ge", "GE", np.greater_equal, ">=", "ow_le_{S}({y}, {x})")
_compare("eq", "EQ", np.equal, "==", "ow_eq_{S}({x}, {y})", commutative=True)
_compare("neq", "NEQ", np.not_equal, "!=", "!ow_eq_{S}({x}, {y})", commutative=True)
row(
    "isnan", "IsNan", 1, d.always_bool, np.isnan,
    {"f": "{x} != {x}", "i": "0", "u": "0", "b": "0"}, _NO_GRADIENT[1],
    compute=d.same, complex_c="ow_isnan_{S}({x})", doc="Whether x is not a number.",
)  # fmt: skip
row(
    "isinf", "IsInf", 1, d.always_bool, np.isinf,
    {"f": "({x} == {x} && {x} - {x} != 0)", "i": "0", "u": "0", "b": "0"}, _NO_GRADIENT[1],
    compute=d.same, complex_c="ow_isinf_{S}({x})", doc="Whether x is infinite.",
)  # fmt: skip
