"""Exponentials, logarithms, roots, sigmoid and softplus."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import Array, Gradient, row


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(np.less(x, 0), e, x.dtype.type(1)) / (1 + e)


def _softplus(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x)))


def _ultra_fast(x: Array) -> Array:
    half = 0.5 * x
    size = np.abs(half)
    line = 0.935409070603099 + 0.0458812946797165 * (size - 1.7)
    curve = np.where(
        size < 1.7, 1.5 * size / (1 + size), np.where(size >= 3, 0.99505475368673, line)
    )
    return (0.5 * (np.copysign(curve, half) + 1)).astype(x.dtype)


def _of_complex(function: str, factor: float | None = None) -> dict[str, Any]:
    """Return the fields of a function of the C library of complex numbers, times a number."""
    text = f"OW_CLIBM_{{S}}({function}{{f}}, {{x}})"
    support = ("clibm",) if factor is None else ("clibm", "cscale")
    if factor is not None:
        text = f"ow_scale_{{S}}(({factor!r}{{f}}), {text})"
    return {"complex_c": text, "complex_support": support, "complex_libm": (function,)}


def _own_complex(name: str, support: str, *libm: str) -> dict[str, Any]:
    return {"complex_c": f"ow_{name}_{{S}}({{x}})", "complex_support": (support,),
            "complex_libm": libm}  # fmt: skip


_PARTS = ("sin", "cos", "exp", "expm1", "log", "hypot", "atan2")
#: the fields of complex operands
_COMPLEX = {
    "exp": _own_complex("cexp", "cexp", "sin", "cos"),
    "exp2": {},
    "expm1": _own_complex("cexpm1", "cexpm1", *_PARTS),
    "log": _of_complex("clog"),
    "log2": _of_complex("clog", float(np.log2(np.e))),
    "log10": _of_complex("clog", float(np.log10(np.e))),
    "log1p": _own_complex("clog1p", "cexpm1", *_PARTS),
    "sqrt": _of_complex("csqrt"),
}


def _function(
    name: str,
    cls: str,
    grad: Gradient,
    cost: float,
    domain: tuple[float, ...] = (-3.0, 3.0),
    doc: str = "",
    own: bool = False,
    **more: Any,
) -> None:
    """A row whose numpy function, C function and label share the row's name.

    own: the C function is one of csupport/scalar.h, not one of the mathematics library.
    """
    c, where = (f"ow_{name}_{{S}}({{x}})", "c_support") if own else (f"{name}{{f}}({{x}})", "libm")
    more |= _COMPLEX[name]
    row(
        name, cls, 1, d.to_float_same, getattr(np, name), {"f": c}, grad, label=name, cost=cost,
        domain=(domain,), doc=doc, **{where: (name,)}, **more,
    )  # fmt: skip


_POSITIVE = (0.1, 3.0)
_function("exp", "Exp", lambda F, x, z, g: g * z, 1.2, doc="e to the power x.", own=True)
_function(
    "exp2", "Exp2", lambda F, x, z, g: g * z * g.like(np.log(2)), 1.5, doc="2 to the power x."
)
_function(
    "expm1", "Expm1", lambda F, x, z, g: g * F.exp(x), 3.0, doc="exp(x) - 1, exact for small x."
)
_function("log", "Log", lambda F, x, z, g: g / x, 1.8, _POSITIVE, "Natural logarithm.", own=True)
_function(
    "log2", "Log2", lambda F, x, z, g: g / (x * g.like(np.log(2))), 1.8, _POSITIVE,
    "Logarithm to base 2.",
)  # fmt: skip
_function(
    "log10", "Log10", lambda F, x, z, g: g / (x * g.like(np.log(10))), 1.8, _POSITIVE,
    "Logarithm to base 10.",
)  # fmt: skip
_function(
    "log1p", "Log1p", lambda F, x, z, g: g / (1 + x), 2.5, (-0.9, 3.0),
    "log(1 + x), exact for small x.",
)  # fmt: skip
_function("sqrt", "Sqrt", lambda F, x, z, g: (g * 0.5) / z, 1.0, _POSITIVE, "Square root.", flops=1)
row(
    "scalar_sigmoid", "ScalarSigmoid", 1, d.to_float_same, _sigmoid, {"f": "ow_sigmoid_{S}({x})"},
    lambda F, x, z, g: g * z * (1.0 - z),
    label="scalar_sigmoid", c_support=("sigmoid",), cost=2.0,
    tensor_name="sigmoid", kinds="biuf",
    doc="1 / (1 + exp(-x)), accurate in both tails.",
)  # fmt: skip
row(
    "scalar_softplus", "ScalarSoftplus", 1, d.to_float_same, _softplus,
    {"f": "ow_softplus_{S}({x})"},
    lambda F, x, z, g: g * F.scalar_sigmoid(x),
    label="scalar_softplus", c_support=("softplus",), cost=4.0,
    tensor_name="softplus", kinds="biuf",
    doc="log(1 + exp(x)), accurate in both tails.",
)  # fmt: skip
row(
    "ultra_fast_scalar_sigmoid", "UltraFastScalarSigmoid", 1, d.to_float_same, _ultra_fast,
    {"f": "ow_ultra_fast_sigmoid_{S}({x})"},
    lambda F, x, z, g: g * z * (1.0 - z),
    label="ultra_fast_scalar_sigmoid", c_support=("ultra_fast_sigmoid",),
    tensor_name="ultra_fast_sigmoid", kinds="biuf",
    doc="Rational approximation of the sigmoid, off by up to 0.1.",
)  # fmt: skip
row(
    "scalar_softsign", "ScalarSoftsign", 1, d.to_float_same, lambda x: x / (1 + np.abs(x)),
    {"f": "{x} / (1 + fabs{f}({x}))"},
    lambda F, x, z, g: g / F.sqr(1 + F.abs_(x)),
    label="scalar_softsign", libm=("fabs",), cost=1.0, tensor_name="softsign", kinds="biuf",
    doc="x / (1 + |x|), between -1 and 1.",
)  # fmt: skip
