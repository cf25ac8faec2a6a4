"""Special functions, from C's math library if it has them, otherwise from scipy.

C text calls scipy's functions by pointers (``borrowed``): no Python runs then. scipy is imported
when a function with one of them is linked, or when it first runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import Array, Gradient, row

_TWO_OVER_SQRT_PI = float(2 / np.sqrt(np.pi))
_HALF_SQRT_PI = float(np.sqrt(np.pi) / 2)
_SQRT_TWO_PI = float(np.sqrt(2 * np.pi))


# The dtypes are Theano's: only the functions that it refuses complex numbers to have this rule. Of
# the others several refuse them when they run.
_real = d.no_complex(d.to_float)


def _of_scipy(name: str) -> Callable[..., Any]:
    """Return a function of scipy that computes floats in double, as C does."""

    def computed(*operands: Array) -> Array:
        from scipy import special

        function, dtype = getattr(special, name), np.result_type(*operands)
        if dtype.kind != "f" or dtype == np.float64:
            return function(*operands)
        with np.errstate(over="ignore", under="ignore"):
            found = function(*operands, dtype=np.float64).astype(np.float32)
            return found.astype(dtype)

    return computed


def _chi2sf(x: Array, k: Array) -> Array:
    from scipy import special

    return special.chdtrc(k, x)


def _polygamma1(x: Array) -> Array:
    from scipy import special

    return special.polygamma(1, x)


def _lower_gamma(k: Array, x: Array) -> Array:
    from scipy import special

    return _of_gamma(special.gammainc, k, x)


def _upper_gamma(k: Array, x: Array) -> Array:
    from scipy import special

    return _of_gamma(special.gammaincc, k, x)


def _of_gamma(share: Callable[..., Any], k: Array, x: Array) -> Array:
    """Return a share of gamma(k), also where gamma(k) alone is too large for a float."""
    from scipy import special

    dtype = np.result_type(k, x, np.float16)
    part, whole = share(k, x, dtype="float64"), special.gamma(k, dtype="float64")
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        by_logarithms = np.exp(np.log(part) + special.gammaln(k, dtype="float64"))
        return np.where(np.isinf(whole), by_logarithms, part * whole).astype(dtype)


def _xlogx(x: Array) -> Array:
    return x * np.log(np.where(np.equal(x, 0), x.dtype.type(1), x))


def _xlogy0(x: Array, y: Array) -> Array:
    return x * np.log(np.where(np.equal(x, 0), x.dtype.type(1), y))


def _beta_density(F: Any, a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of betainc by x."""
    powers = (a - 1) * F.log(x) + (b - 1) * F.log1p(-x)
    return F.exp(powers + F.gammaln(a + b) - F.gammaln(a) - F.gammaln(b))


def _special(
    name: str,
    cls: str,
    nin: int,
    grad: Gradient | None,
    c: str | None = None,
    numpy: Callable[..., Any] | None = None,
    out: Callable[..., str] = d.to_float,
    kinds: str = "biuf",
    **more: Any,
) -> None:
    """A row whose scipy function and label have the row's name."""
    row(
        name, cls, nin, out, numpy or f"scipy.special:{name}", {"f": c} if c else {}, grad,
        label=name, cost=more.pop("cost", 30.0), kinds=kinds, **more,
    )  # fmt: skip


def _borrowed(name: str, cls: str, nin: int, grad: Gradient, cost: float, **more: Any) -> None:
    """A row that C computes by scipy's function of the row's name."""
    operands = ", ".join(f"{{{i}}}" for i in range(nin))
    _special(
        name, cls, nin, grad, f"({{T}})ow_scipy_{name}({operands}, 0)", numpy=_of_scipy(name),
        libm=(f"scipy_{name}",), cost=cost, **{"cuda": {}, **more},
    )  # fmt: skip


_special(
    "erf", "Erf", 1, lambda F, x, z, g: g * g.like(_TWO_OVER_SQRT_PI) * F.exp(-x * x),
    "ow_erf_{S}({x})", c_support=("erf",), cost=1.4, kinds="biufc", doc="Error function.",
)  # fmt: skip
_special(
    "erfc", "Erfc", 1, lambda F, x, z, g: -g * g.like(_TWO_OVER_SQRT_PI) * F.exp(-x * x),
    "erfc{f}({x})", libm=("erfc",), cost=3.0, out=_real, doc="1 - erf(x), accurate for large x.",
)  # fmt: skip
_borrowed(
    "erfcx", "Erfcx", 1,
    lambda F, x, z, g: g * (g.like(2) * x * z - g.like(_TWO_OVER_SQRT_PI)),
    cost=10.0, out=_real, cuda={"f": "erfcx{f}({x})"},
    doc="exp(x * x) * erfc(x), without overflow.",
)  # fmt: skip
_special(
    "erfinv", "Erfinv", 1, lambda F, x, z, g: g * g.like(_HALF_SQRT_PI) * F.exp(z * z),
    "ow_erfinv_{S}({x})", c_support=("erfinv",), cost=3.0, out=_real,
    domain=((-0.9, 0.9),), doc="Inverse of erf.",
)  # fmt: skip
_special(
    "erfcinv", "Erfcinv", 1, lambda F, x, z, g: -g * g.like(_HALF_SQRT_PI) * F.exp(z * z),
    "ow_erfcinv_{S}({x})", c_support=("erfcinv",), cost=4.0, out=_real,
    domain=((0.1, 1.9),), doc="Inverse of erfc.",
)  # fmt: skip
_special(
    "gamma", "Gamma", 1, lambda F, x, z, g: g * z * F.psi(x), "ow_gamma_{S}({x})",
    c_support=("gamma",), cost=4.0, kinds="biufc", domain=((0.5, 5.0),), doc="Gamma function.",
)  # fmt: skip
_special(
    "gammaln", "GammaLn", 1, lambda F, x, z, g: g * F.psi(x), "ow_gammaln_{S}({x})",
    c_support=("gammaln",), cost=4.0, domain=((0.5, 5.0),), doc="log(|gamma(x)|)",
)  # fmt: skip
_special(
    "psi", "Psi", 1, lambda F, x, z, g: g * F.tri_gamma(x), "ow_psi_{S}({x})",
    c_support=("psi",), cost=2.5, kinds="biufc", domain=((0.5, 5.0),),
    doc="Derivative of log(gamma(x)).",
)  # fmt: skip
_special(
    "tri_gamma", "TriGamma", 1, None, "ow_tri_gamma_{S}({x})", numpy=_polygamma1,
    c_support=("tri_gamma",), cost=2.0, domain=((0.5, 5.0),),
    doc="Second derivative of log(gamma(x)).",
)  # fmt: skip
_special(
    "zeta", "Zeta", 2, lambda F, s, q, z, g: (None, -g * s * F.zeta(s + 1, q)),
    "({T})ow_zeta({x}, {y})", c_support=("zeta",), libm=("pow",), cost=200.0, out=_real, cuda={},
    domain=((1.5, 6.0), (0.5, 5.0)),
    doc="Hurwitz's zeta function: the sum of (q + i)**-s for i = 0, 1, ...",
)  # fmt: skip
_special(
    "chi2sf", "Chi2SF", 2,
    lambda F, x, k, z, g: (
        -g * F.exp((0.5 * k - 1) * F.log(0.5 * x) - 0.5 * x - F.gammaln(0.5 * k)) * 0.5,
        None,
    ),
    "ow_scipy_chdtrc({y}, {x}, 0)", numpy=_chi2sf, libm=("scipy_chdtrc",), cost=100.0, cuda={},
    out=d.no_complex(d.always_float64), domain=((0.5, 5.0), (1.0, 4.0)),
    doc="Probability that a chi-squared variable of k degrees of freedom exceeds x.",
)  # fmt: skip
_borrowed(
    "gammainc", "GammaInc", 2,
    lambda F, k, x, z, g: (None, g * F.exp((k - 1) * F.log(x) - x - F.gammaln(k))),
    cost=100.0, domain=((0.5, 5.0), (0.5, 5.0)),
    doc="Lower incomplete gamma function of (k, x) over gamma(k).",
)  # fmt: skip
_borrowed(
    "gammaincc", "GammaIncC", 2,
    lambda F, k, x, z, g: (None, -g * F.exp((k - 1) * F.log(x) - x - F.gammaln(k))),
    cost=100.0, domain=((0.5, 5.0), (0.5, 5.0)),
    doc="Upper incomplete gamma function of (k, x) over gamma(k).",
)  # fmt: skip
_borrowed(
    "gammaincinv", "GammaIncInv", 2,
    lambda F, k, y, z, g: (None, g * F.exp(F.gammaln(k) + z - (k - 1) * F.log(z))),
    cost=400.0, out=_real, domain=((0.5, 5.0), (0.1, 0.9)),
    doc="Inverse of gammainc: x of which gammainc(k, x) = y.",
)  # fmt: skip
_borrowed(
    "gammainccinv", "GammaIncCInv", 2,
    lambda F, k, y, z, g: (None, -g * F.exp(F.gammaln(k) + z - (k - 1) * F.log(z))),
    cost=400.0, out=_real, domain=((0.5, 5.0), (0.1, 0.9)),
    doc="Inverse of gammaincc: x of which gammaincc(k, x) = y.",
)  # fmt: skip
_borrowed(
    "betainc", "BetaInc", 3,
    lambda F, a, b, x, z, g: (None, None, g * _beta_density(F, a, b, x)),
    cost=300.0, out=_real, domain=((0.5, 5.0), (0.5, 5.0), (0.1, 0.9)),
    doc="Incomplete beta function of (a, b, x) over beta(a, b).",
)  # fmt: skip
_borrowed(
    "betaincinv", "BetaIncInv", 3,
    lambda F, a, b, y, z, g: (None, None, g / _beta_density(F, a, b, z)),
    cost=1000.0, out=_real, domain=((0.5, 5.0), (0.5, 5.0), (0.1, 0.9)),
    doc="Inverse of betainc: x of which betainc(a, b, x) = y.",
)  # fmt: skip
_borrowed(
    "ndtri_exp", "NdtriExp", 1,
    lambda F, x, z, g: g * g.like(_SQRT_TWO_PI) * F.exp(0.5 * z * z + x),
    cost=100.0, out=_real, domain=((-5.0, -0.1),),
    doc="The quantile of the standard normal distribution of probability exp(x).",
)  # fmt: skip
_borrowed(
    "owens_t", "OwensT", 2,
    lambda F, h, a, z, g: (
        -g * F.exp(-0.5 * h * h) * F.erf(a * h * g.like(np.sqrt(0.5))) / g.like(2 * _SQRT_TWO_PI),
        g * F.exp(-0.5 * h * h * (1 + a * a)) / (g.like(2 * np.pi) * (1 + a * a)),
    ),
    cost=100.0, out=_real, doc="Owen's T function of (h, a).",
)  # fmt: skip
_borrowed(
    "hyp2f1", "Hyp2F1", 4,
    lambda F, a, b, c, x, z, g: (
        None, None, None, g * a * b / c * F.hyp2f1(a + 1, b + 1, c + 1, x),
    ),
    cost=300.0, out=_real, domain=((0.5, 3.0), (0.5, 3.0), (3.5, 5.0), (-0.9, 0.9)),
    doc="Gauss's hypergeometric function 2F1(a, b; c; x).",
)  # fmt: skip
_special(
    "gammal", "GammaL", 2, lambda F, k, x, z, g: (None, g * F.exp((k - 1) * F.log(x) - x)),
    numpy=_lower_gamma, domain=((0.5, 5.0), (0.5, 5.0)),
    doc="Lower incomplete gamma function of (k, x).",
)  # fmt: skip
_special(
    "gammau", "GammaU", 2, lambda F, k, x, z, g: (None, -g * F.exp((k - 1) * F.log(x) - x)),
    numpy=_upper_gamma, domain=((0.5, 5.0), (0.5, 5.0)),
    doc="Upper incomplete gamma function of (k, x).",
)  # fmt: skip
_special(
    "j0", "J0", 1, lambda F, x, z, g: -g * F.j1(x), "ow_j0_{S}({x})", c_support=("j0",),
    cost=3.0, doc="Bessel function of the first kind of order 0.",
)  # fmt: skip
_special(
    "j1", "J1", 1, lambda F, x, z, g: g * (F.j0(x) - F.jv(2, x)) * 0.5, "ow_j1_{S}({x})",
    c_support=("j1",), cost=3.0, doc="Bessel function of the first kind of order 1.",
)  # fmt: skip
_borrowed(
    "jv", "Jv", 2, lambda F, v, x, z, g: (None, g * (F.jv(v - 1, x) - F.jv(v + 1, x)) * 0.5),
    cost=300.0, domain=((0.5, 3.0), (0.5, 3.0)),
    doc="Bessel function of the first kind of order v.",
)  # fmt: skip
_special(
    "i0", "I0", 1, lambda F, x, z, g: g * F.i1(x),
    "ow_i0_{S}({x})", c_support=("i0",), cost=3.0,
    doc="Modified Bessel function of the first kind of order 0.",
)  # fmt: skip
_special(
    "i1", "I1", 1, lambda F, x, z, g: g * (F.i0(x) + F.iv(2, x)) * 0.5,
    "ow_i1_{S}({x})", c_support=("i1",), cost=3.0,
    doc="Modified Bessel function of the first kind of order 1.",
)  # fmt: skip
_borrowed(
    "iv", "Iv", 2, lambda F, v, x, z, g: (None, g * (F.iv(v - 1, x) + F.iv(v + 1, x)) * 0.5),
    cost=300.0, domain=((0.5, 3.0), (0.5, 3.0)),
    doc="Modified Bessel function of the first kind of order v.",
)  # fmt: skip
_borrowed(
    "ive", "Ive", 2,
    lambda F, v, x, z, g: (
        None, g * ((F.ive(v - 1, x) + F.ive(v + 1, x)) * 0.5 - F.sgn(x) * z),
    ),
    cost=300.0, out=_real, domain=((0.5, 3.0), (0.5, 3.0)), doc="exp(-|x|) * iv(v, x)",
)  # fmt: skip
_borrowed(
    "kve", "Kve", 2,
    lambda F, v, x, z, g: (None, g * (z - (F.kve(v - 1, x) + F.kve(v + 1, x)) * 0.5)),
    cost=300.0, out=_real, domain=((0.5, 3.0), (0.5, 3.0)),
    doc="exp(x) times the modified Bessel function of the second kind of order v.",
)  # fmt: skip
# The float version of log leaves no room for the rounding of a product: floats go through double.
row(
    "xlogx", "XlogX", 1, d.to_float, _xlogx,
    {"f": "({T})({x} * log((double)({x} == 0 ? 1 : {x})))"},
    lambda F, x, z, g: g * (1 + F.log(x)),
    label="scalar_xlogx", libm=("log",), cost=2.0, kinds="biuf", domain=((0.1, 3.0),),
    doc="x * log(x); 0 for 0.",
)  # fmt: skip
row(
    "xlogy0", "XlogY0", 2, d.to_float, _xlogy0,
    {"f": "({T})({x} * log((double)({x} == 0 ? 1 : {y})))"},
    lambda F, x, y, z, g: (g * F.log(y), g * x / y),
    label="scalar_xlogy0", libm=("log",), cost=2.0, kinds="biuf", domain=((-3.0, 3.0), (0.1, 3.0)),
    doc="x * log(y); 0 where x is 0.",
)  # fmt: skip
