"""Trigonometric and hyperbolic functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import Gradient, row

_DEGREE = float(np.pi / 180)


def _of_complex(c_name: str) -> dict[str, Any]:
    """Return the fields of the function of complex numbers of the C library."""
    return {"complex_c": f"OW_CLIBM_{{S}}(c{c_name}{{f}}, {{x}})", "complex_support": ("clibm",),
            "complex_libm": (f"c{c_name}",)}  # fmt: skip


def _function(
    name: str,
    cls: str,
    c_name: str,
    grad: Gradient,
    cost: float = 3.0,
    domain: tuple[float, ...] = (-1.5, 1.5),
    doc: str = "",
) -> None:
    row(
        name, cls, 1, d.to_float_same, getattr(np, name), {"f": f"{c_name}{{f}}({{x}})"}, grad,
        label=name, libm=(c_name,), cost=cost, domain=(domain,), doc=doc, **_of_complex(c_name),
    )  # fmt: skip


_INSIDE = (-0.9, 0.9)
_function("sin", "Sin", "sin", lambda F, x, z, g: g * F.cos(x), doc="Sine.")
_function("cos", "Cos", "cos", lambda F, x, z, g: -g * F.sin(x), doc="Cosine.")
_function("tan", "Tan", "tan", lambda F, x, z, g: g / F.sqr(F.cos(x)), 5.0, (-1, 1), "Tangent.")
_function(
    "arcsin", "ArcSin", "asin", lambda F, x, z, g: g / F.sqrt(1 - F.sqr(x)), 4.0, _INSIDE,
    "Inverse sine.",
)  # fmt: skip
_function(
    "arccos", "ArcCos", "acos", lambda F, x, z, g: -g / F.sqrt(1 - F.sqr(x)), 4.0, _INSIDE,
    "Inverse cosine.",
)  # fmt: skip
_function(
    "arctan", "ArcTan", "atan", lambda F, x, z, g: g / (1 + F.sqr(x)), 4.0, doc="Inverse tangent."
)
_function("sinh", "Sinh", "sinh", lambda F, x, z, g: g * F.cosh(x), 4.0, doc="Hyperbolic sine.")
_function("cosh", "Cosh", "cosh", lambda F, x, z, g: g * F.sinh(x), 4.0, doc="Hyperbolic cosine.")
row(
    "tanh", "Tanh", 1, d.to_float_same, np.tanh, {"f": "ow_tanh_{S}({x})"},
    lambda F, x, z, g: g * (1 - F.sqr(z)),
    label="tanh", c_support=("tanh",), **_of_complex("tanh"), cost=1.8,
    domain=((-1.5, 1.5),), doc="Hyperbolic tangent.",
)  # fmt: skip
_function(
    "arcsinh", "ArcSinh", "asinh", lambda F, x, z, g: g / F.sqrt(F.sqr(x) + 1), 5.0,
    doc="Inverse hyperbolic sine.",
)  # fmt: skip
_function(
    "arccosh", "ArcCosh", "acosh", lambda F, x, z, g: g / F.sqrt(F.sqr(x) - 1), 5.0, (1.1, 3.0),
    "Inverse hyperbolic cosine.",
)  # fmt: skip
_function(
    "arctanh", "ArcTanh", "atanh", lambda F, x, z, g: g / (1 - F.sqr(x)), 5.0, _INSIDE,
    "Inverse hyperbolic tangent.",
)  # fmt: skip
row(
    "arctan2", "ArcTan2", 2, d.to_float, np.arctan2, {"f": "atan2{f}({x}, {y})"},
    lambda F, x, y, z, g: (
        g * y / (F.sqr(y) + F.sqr(x)),
        -g * x / (F.sqr(y) + F.sqr(x)),
    ),
    label="arctan2", libm=("atan2",), cost=8.0, kinds="biuf", domain=((0.5, 3.0), (0.5, 3.0)),
    doc="Angle of the point (y, x).",
)  # fmt: skip
row(
    "deg2rad", "Deg2Rad", 1, d.to_float_same, np.deg2rad,
    {"f": "{x} * ({T})0.017453292519943295"}, lambda F, x, z, g: g * g.like(_DEGREE),
    label="deg2rad", flops=1, kinds="biuf", doc="Degrees as radians.",
)  # fmt: skip
row(
    "rad2deg", "Rad2Deg", 1, d.to_float_same, np.rad2deg,
    {"f": "{x} * ({T})57.29577951308232"}, lambda F, x, z, g: g * g.like(1 / _DEGREE),
    label="rad2deg", flops=1, kinds="biuf", doc="Radians as degrees.",
)  # fmt: skip
