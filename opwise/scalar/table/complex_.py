"""Parts of complex numbers."""

from __future__ import annotations

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import Array, row


def _complex(x: Array, y: Array) -> Array:
    # not x + 1j * y, which is NaN where y is infinite
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, y, np.complex64))
    result.real, result.imag = x, y
    return result


def _from_polar(r: Array, theta: Array) -> Array:
    return _complex(r * np.cos(theta), r * np.sin(theta))


def _angle(x: Array) -> Array:
    # of complex64, numpy's angles depend on how the numbers lie in memory
    return np.angle(x.astype(np.complex128) if x.dtype.kind == "c" else x)


row(
    "real", "Real", 1, d.real_part, lambda x: np.array(np.real(x)), "{x}",
    lambda F, x, z, g: F.complex(g, 0) if x.dtype.startswith("complex") else g,
    compute=d.same, label="real", complex_c="{x}.r", exact=True, doc="Real part.",
)  # fmt: skip
row(
    "imag", "Imag", 1, d.real_part, lambda x: np.array(np.imag(x)), "0",
    lambda F, x, z, g: F.complex(0, g) if x.dtype.startswith("complex") else 0,
    compute=d.same, label="imag", complex_c="{x}.i", exact=True, doc="Imaginary part.",
)  # fmt: skip
row(
    "angle", "Angle", 1, d.always_float64, _angle, {}, None,
    compute=d.same, label="angle", kinds="c",
    complex_c="atan2((double){x}.i, (double){x}.r)", complex_libm=("atan2",), cost=8.0,
    doc="Angle of a complex number.",
)  # fmt: skip
row(
    "complex", "Complex", 2, d.no_complex(d.to_complex), _complex, "(({Z}){{{x}, {y}}})",
    lambda F, x, y, z, g: (F.real(g), F.imag(g)),
    compute=lambda x, y: d.promote(x, y), label="complex", kinds="f", makes_complex=True,
    doc="x + iy",
)  # fmt: skip
row(
    "complex_from_polar", "ComplexFromPolar", 2, d.no_complex(d.to_complex), _from_polar,
    {"f": "(({Z}){{{x} * ow_cos{f}({y}), {x} * ow_sin{f}({y})}})"},
    lambda F, x, y, z, g: (
        F.real(g) * F.cos(y) + F.imag(g) * F.sin(y),
        x * (F.imag(g) * F.cos(y) - F.real(g) * F.sin(y)),
    ),
    compute=lambda x, y: d.promote(x, y, "float32"), label="complex_from_polar", kinds="f",
    makes_complex=True, libm=("cos", "sin"), cost=6.0,
    domain=((0.0, 3.0), (-3.0, 3.0)),
    doc="Complex number by its magnitude and its angle (in radians).",
)  # fmt: skip
row(
    "conj", "Conj", 1, d.not_bool(d.same), np.conj, "{x}",
    lambda F, x, z, g: F.conj(g), label="conj", complex_c="ow_conj_{S}({x})", exact=True,
    doc="Complex conjugate.",
)  # fmt: skip
