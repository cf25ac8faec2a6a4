"""Functions of built-in loops and of generated C against long double: at most 4 units in the last
place, and what special values give."""

import math

import numpy as np
import pytest
from scipy import special as scipy_special

import opwise.tensor as T
from opwise import Mode, function
from opwise.scalar.op import OPS
from opwise.tensor import Elemwise

LONG = np.longdouble
MAX_ULP = 4

pytestmark = pytest.mark.skipif(
    np.finfo(LONG).eps > 2e-19, reason="long double is no wider than double here"
)


def _erf(x):
    """The series of which no term is negative."""
    x = np.clip(x, -7, 7)
    term = total = x
    for n in range(1, 200):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return total * 2 / np.sqrt(4 * np.arctan(LONG(1))) * np.exp(-x * x)


#: rows by name, and how long double computes them
FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "erf": _erf,
    "scalar_sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "scalar_softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))),
}
#: modes that have loops compiled, and that make do with those that opwise is built with
MODES = {"generated": Mode("c|py", None), "built-in": Mode("c|py", "fast_compile")}


def special(dtype):
    f = np.finfo(dtype)
    numbers = [
        0.0,
        np.inf,
        np.nan,
        f.max,
        f.tiny,
        f.smallest_subnormal,
        1.0,
        0.5,
        2.0,
        1 - f.epsneg,
    ]
    return np.array([sign * x for x in numbers for sign in (1, -1)], dtype)


def points(dtype, n=3000):
    """Return numbers of all magnitudes, more of them where functions bend, overflow or vanish."""
    random, f = np.random.RandomState(1), np.finfo(dtype)
    end = float(np.log(LONG(f.max)))
    sign = random.choice([-1, 1], n)
    parts = [
        random.uniform(-1, 1, n), random.uniform(-20, 20, n), random.uniform(0.5, 2, n),
        random.uniform(-1.06 * end, 1.01 * end, n),  # exp is denormal, or 0, and all but infinite
        sign * 10 ** random.uniform(np.log10(float(f.tiny)), np.log10(float(f.max)) - 0.01, n),
        random.uniform(-1, 1, n) * float(f.tiny), 1 + sign * 10 ** random.uniform(-16, -1, n),
    ]  # fmt: skip
    return np.concatenate([np.concatenate(parts).astype(dtype), special(dtype)])


def worst(found, exact, inputs):
    """Return the largest error in units in the last place, and where it is.

    Infinities, NaN and the signs of zeros must be those of the exact result.
    """
    rounded = exact.astype(found.dtype)
    finite = np.isfinite(rounded) & np.isfinite(found)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    zeros = (rounded == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(rounded[zeros]))
    unit = np.spacing(abs(rounded)).astype(LONG)
    error = np.where(finite, abs(found.astype(LONG) - exact) / unit, 0)
    at = int(np.argmax(error))
    return float(error[at]), [float(x[at]) for x in inputs]


def compiled(mode, dtype, names, count):
    inputs = [T.TensorType(dtype, (False,))() for _ in range(count)]
    f = function(inputs, [Elemwise(OPS[name])(*inputs) for name in names], mode=MODES[mode])
    assert all(f.linked.in_c)
    return f


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_functions(mode, dtype):
    x = points(dtype)
    results = compiled(mode, dtype, FUNCTIONS, 1)(x)
    for (name, exact), found in zip(FUNCTIONS.items(), results, strict=True):
        with np.errstate(all="ignore"):
            error, where = worst(found, exact(x.astype(LONG)), [x])
        assert error <= MAX_ULP, (name, where)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_powers(mode, dtype):
    random = np.random.RandomState(2)
    end = float(np.log(LONG(np.finfo(dtype).max)))
    base = np.exp(random.uniform(-5, 5, 9000))
    power = random.uniform(-1.1 * end, 1.1 * end, base.size) / np.log(base)
    pairs = [(base, power), (base, random.uniform(-3, 3, base.size)),
             (-np.round(base), random.randint(-9, 10, base.size)),
             np.meshgrid(special(dtype), special(dtype))]  # fmt: skip
    x, y = (np.concatenate([np.ravel(p[k]) for p in pairs]).astype(dtype) for k in (0, 1))
    (found,) = compiled(mode, dtype, ["pow"], 2)(x, y)
    with np.errstate(all="ignore"):
        error, where = worst(found, x.astype(LONG) ** y.astype(LONG), [x, y])
    assert error <= MAX_ULP, where


def _gamma(x):
    if np.isnan(x) or x == -np.inf or (x < 0 and x == np.floor(x)):
        return np.nan
    if x == 0:
        return np.copysign(np.inf, x)
    try:
        return math.gamma(x)
    except OverflowError:
        return np.inf


def check_own_functions_of_floats(mode):
    """Functions that are computed in double (pow, gamma) or float (erfinv) and have no libm."""
    x = points("float32")
    inside = 1 - 10 ** np.random.RandomState(4).uniform(-7.5, 0, 3000)
    near = np.concatenate([np.random.RandomState(5).uniform(-45, 38, 3000), np.arange(-45.0, 38)])
    gamma_x = np.concatenate([x, near.astype("float32")])
    erfinv_x = np.concatenate([x, inside.astype("float32"), -inside.astype("float32")])
    base = abs(x[np.isfinite(x) & (x != 0) & (abs(x) != 1)])
    y = np.random.RandomState(6).uniform(-105, 90, base.size) / np.log(base.astype("float64"))
    cases = [
        ("gamma", [gamma_x], np.array([_gamma(float(v)) for v in gamma_x]), 0.6),
        ("erfinv", [erfinv_x], scipy_special.erfinv(erfinv_x.astype("float64")), 3.0),
    ]
    pairs = [(base, y.astype("float32")), np.meshgrid(special("float32"), special("float32"))]
    for pair in pairs:
        a, b = map(np.ravel, pair)
        cases.append(("pow", [a, b], a.astype(LONG) ** b.astype(LONG), 0.6))
    for name, inputs, exact, limit in cases:
        (found,) = compiled(mode, "float32", [name], len(inputs))(*inputs)
        if name == "erfinv":  # scipy's erfinv(-0.0) is 0.0
            exact = np.copysign(exact, inputs[0])
        error, where = worst(found, exact.astype(LONG), inputs)
        assert error <= limit, (name, error, where)


def test_own_functions_of_floats():
    with np.errstate(all="ignore"):
        check_own_functions_of_floats("generated")


def test_own_functions_of_floats_for_every_processor(vectors):
    with np.errstate(all="ignore"):
        check_own_functions_of_floats("built-in")


# ======================================================================================
# GAMMA, ITS LOGARITHM AND THE DERIVATIVES OF THAT
# ======================================================================================

GAMMAS = {
    "gamma": scipy_special.gamma,
    "gammaln": scipy_special.gammaln,
    "psi": scipy_special.psi,
    "tri_gamma": lambda x: scipy_special.polygamma(1, x).astype(x.dtype),
}
#: largest errors in ulp of float32 and float64
GAMMA_LIMITS = {"gamma": (0.6, 3), "gammaln": (0.6, 4), "psi": (0.6, 4), "tri_gamma": (0.6, 4)}
#: for x < 0, where terms cancel, an ulp is that of the larger term; of this if that is less, and
#: the dtype is float32
SMALL = 2.0**-6
ROOT_OF_PSI = 1.4616321449683623


def gamma_points(dtype):
    """Return numbers between and near the poles and zeros of these functions, and of all sizes."""
    random = np.random.RandomState(7)
    near = random.choice([-1, 1], 60) * 10 ** random.uniform(-16, -1, 60)
    ends = [(0, 1), (0.5, 3), (1, 6), (5, 171.6), (-8, 0), (-171, -8)]
    parts = [random.uniform(low, high, 60) for low, high in ends]
    parts += [root + near for root in (1, 2, ROOT_OF_PSI, -1, -2, -40)]
    parts += [10 ** random.uniform(-300, 300, 60), -(10 ** random.uniform(-300, 0, 60))]
    parts += [np.arange(1, 31)]
    with np.errstate(over="ignore", under="ignore"):
        x = np.concatenate(parts).astype(dtype)
    return x[np.isfinite(x) & (x != 0) & ((x > 0) | (x != np.floor(x)))]


def gamma_exact(name, x):
    """Return what mpmath gives for x, and the size of the terms that cancel in it for x < 0."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        v = mpmath.mpf(float(x))
        if name in ("gamma", "tri_gamma"):
            y = mpmath.gamma(v) if name == "gamma" else mpmath.psi(1, v)
            size = mpmath.mpf(0)
        elif name == "gammaln":
            y = mpmath.log(abs(mpmath.gamma(v)))
            size = max(1, abs(mpmath.loggamma(-v))) if v < 0 else mpmath.mpf(0)
        else:
            y = mpmath.psi(0, v)
            size = max(1, abs(mpmath.psi(0, 1 - v))) if v < 0 else mpmath.mpf(0)
        high = float(y)
        low = float(y - high) if math.isfinite(high) else 0.0
        return LONG(high) + LONG(low), float(size)


def check_gammas(mode, dtype):
    x = gamma_points(dtype)
    results = compiled(mode, dtype, GAMMAS, 1)(x)
    for name, found in zip(GAMMAS, results, strict=True):
        limit = GAMMA_LIMITS[name][dtype == "float64"]
        pairs = [gamma_exact(name, v) for v in x]
        exact = np.array([y for y, _ in pairs])
        with np.errstate(over="ignore", under="ignore"):
            rounded = exact.astype(dtype)
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(found[~finite], rounded[~finite])
        sizes = np.array([size for _, size in pairs])
        sizes = sizes if dtype == "float64" else np.minimum(sizes, SMALL)
        unit = np.spacing(np.maximum(abs(rounded), sizes.astype(dtype)))
        error = abs(found[finite] - exact[finite]) / unit[finite]
        assert error.max() <= limit, (name, float(x[finite][error.argmax()]), error.max())


def check_special_gammas(mode, dtype):
    """Poles, zeros of either sign, NaN, infinities and overflows as scipy has them."""
    x = [math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, -2.0, -30.0, 1.0, 2.0, 171.62437, 172.0]
    x += [1e-300, -1e-300, 1e-310, -1e-310, 5e-324, 1e-155, -1e-155, 1e300, 2.5e305, 2.6e305]
    x += [1.7e308, -1e17, -1e300, -1.7e308, -190.5, -191.5, 1e-40, 1e38, -1e38]
    with np.errstate(all="ignore"):
        given = np.array(x).astype(dtype)
        results = compiled(mode, dtype, GAMMAS, 1)(given)
        for (name, of_scipy), found in zip(GAMMAS.items(), results, strict=True):
            expected = of_scipy(given)
            np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps, err_msg=name)
            sure = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found[sure]), np.signbit(expected[sure]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gammas(dtype):
    check_gammas("generated", dtype)
    check_special_gammas("generated", dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gammas_for_every_processor(dtype, vectors):
    check_gammas("built-in", dtype)
    check_special_gammas("built-in", dtype)


def test_factorials_are_exact():
    n = np.arange(1.0, 19.0)
    (found,) = compiled("generated", "float64", ["gamma"], 1)(n)
    np.testing.assert_array_equal(found, [math.factorial(int(k) - 1) for k in n])


def test_trigamma_of_large_negative_numbers():
    """scipy counts up to them."""
    x = np.array([-1e9 - 0.5, -(2.0**51) - 0.5, -(2.0**52) + 0.5])
    (found,) = compiled("generated", "float64", ["tri_gamma"], 1)(x)
    np.testing.assert_allclose(found, np.pi**2, rtol=1e-8)


def _bessel(x):
    """Return j0 and j1 of positive numbers: by downward recurrence (Miller), or Hankel's series."""
    near = np.clip(x, 1e-3, 30)
    later, now, total = np.zeros_like(x), np.full_like(x, LONG("1e-900")), np.zeros_like(x)
    for n in range(120, 0, -1):
        total += now * (2 if n % 2 == 0 else 0)
        later, now = now, 2 * n / near * now - later
    near = now / (total + now), later / (total + now)
    z = x * x / 4
    tiny = 1 - z + z * z / 4, x / 2 * (1 - z / 2 + z * z / 12)
    results = []
    for order in (0, 1):
        wide = np.maximum(x, 30)
        term, sums = np.ones_like(x), [np.ones_like(x), np.zeros_like(x)]
        for k in range(1, 40):
            term = term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * wide)
            sums[k % 2] += term * (-1) ** (k // 2)
        quarter = np.arctan(LONG(1))
        # the cosine of x - pi/4, or of x - 3 pi/4, from the sine and the cosine of x
        sine, cosine = np.sin(wide), np.cos(wide)
        a, b = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
        far = (sums[0] * a - sums[1] * b) / np.sqrt(4 * quarter * wide)
        results.append(np.where(x < 1e-3, tiny[order], np.where(x < 30, near[order], far)))
    return results


def check_error_and_bessel_functions(mode, dtype):
    random, f = np.random.RandomState(8), np.finfo(dtype)
    edges = [edge * (1 + k * f.eps) for edge in (0.86, 1.15, 1.5, 2, 3.95, 5.95, 8)
             for k in range(-20, 21)]  # fmt: skip
    # erf, erfinv
    x = np.concatenate([points(dtype), np.array(edges, dtype)])
    x = np.concatenate([x, -x])
    inside = 1 - 10 ** random.uniform(np.log10(f.epsneg), 0, 3000)
    inside = np.concatenate([x, inside, -inside]).astype(dtype)
    narrow = dtype == "float32"
    inverse = scipy_special.erfinv(inside.astype("float64"))
    inverse = np.copysign(inverse, inside)  # scipy's erfinv(-0.0) is 0.0
    for name, given, exact, limit in [
        ("erf", x, _erf(x.astype(LONG)), 1.7 if narrow else 1.5),
        ("erfinv", inside, inverse.astype(LONG), 3.0),
    ]:
        (found,) = compiled(mode, dtype, [name], 1)(given)
        error, where = worst(found, exact, [given])
        assert error <= limit, (name, error, where)
    # j0, j1: the absolute error, which a float adds the rounding to
    zeros = [float(z) for n in (0, 1) for z in scipy_special.jn_zeros(n, 40)]
    x = np.concatenate([random.uniform(0, 12, 4000), random.uniform(0, 60, 4000), edges,
                        10 ** random.uniform(-38, 5.9, 4000), zeros])  # fmt: skip
    x = x.astype(dtype)
    for name, exact in zip(("j0", "j1"), _bessel(x.astype(LONG)), strict=True):
        sign = 1 if name == "j0" else -1
        f = compiled(mode, dtype, [name], 1)
        (found,) = f(x)
        error = abs(found - exact)
        allowed = 0.6 * np.spacing(abs(found)) + 2e-15 if narrow else 3.5e-16
        at = int(np.argmax(error - allowed))
        assert (error <= allowed).all(), (name, float(x[at]), float(error[at]))
        np.testing.assert_array_equal(f(-x)[0], sign * found)
        if name == "j1" and not narrow:  # also relatively to small results
            assert (error <= 2 * np.spacing(abs(found)))[x < 2].all()
        numbers = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
        (found,) = f(numbers)
        expected = getattr(scipy_special, name)(numbers)
        expected[2:4] = [0.0, sign * 0.0]  # scipy's are NaN
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[:4]), np.signbit(expected[:4]))
        huge = np.array([1e7, 1e12, 1e15, 1e18, 1e30, np.finfo(dtype).max], dtype)
        bound = np.sqrt(0.63662 / huge.astype("float64"))
        assert (abs(f(huge)[0]) <= bound).all()


def _modified_bessel(order, x):
    """The series of which no term is negative, for |x| up to 60."""
    term = total = (x / 2) ** order
    for k in range(1, 150):
        term = term * (x / 2) ** 2 / (k * (k + order))
        total = total + term
    return total


def check_inverse_erfc_and_modified_bessel_functions(mode, dtype):
    random, f = np.random.RandomState(9), np.finfo(dtype)
    narrow = dtype == "float32"
    tiny = 10 ** random.uniform(np.log10(f.tiny) + 1, 0, 3000)
    near = np.array([edge + k * f.eps / 4 for edge in (0.14, 0.5) for k in range(-20, 21)])
    x = np.concatenate([random.uniform(0, 2, 3000), tiny, 2 - tiny, near, 2 - near, [0, 2, -1, 3],
                        [1, np.nan, np.inf, -np.inf]]).astype(dtype)  # fmt: skip
    (found,) = compiled(mode, dtype, ["erfcinv"], 1)(x)
    exact = abs(scipy_special.erfcinv(x.astype("float64"))) * np.where(x > 1, LONG(-1), LONG(1))
    error, where = worst(found, exact, [x])  # scipy's own are 5 ulp
    assert error <= (0.6 if narrow else 7), (error, where)
    end = 87 if narrow else 708
    x = np.concatenate([random.uniform(-20, 20, 4000), random.uniform(-60, 60, 2000),
                        np.linspace(9.99, 10.01, 50), tiny, -tiny, [0.0, -0.0]])  # fmt: skip
    x = x.astype(dtype)
    large = random.uniform(60, end, 2000).astype(dtype)
    for order, name in enumerate(("i0", "i1")):
        f = compiled(mode, dtype, [name], 1)
        error, where = worst(f(x)[0], _modified_bessel(order, x.astype(LONG)), [x])
        assert error <= (0.6 if narrow else 3.5), (name, error, where)
        exact = getattr(scipy_special, name)(large.astype("float64")).astype(LONG)
        error, where = worst(f(large)[0], exact, [large])
        assert error <= (0.6 if narrow else 8), (name, error, where)
        inf, sign = np.inf, (-1) ** order
        numbers = np.array([inf, -inf, 1e4, -1e4, np.nan], dtype)
        np.testing.assert_array_equal(f(numbers)[0], [inf, sign * inf, inf, sign * inf, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_and_bessel_functions(dtype):
    with np.errstate(all="ignore"):
        check_error_and_bessel_functions("generated", dtype)
        check_inverse_erfc_and_modified_bessel_functions("generated", dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_and_bessel_functions_for_every_processor(vectors, dtype):
    with np.errstate(all="ignore"):
        check_error_and_bessel_functions("built-in", dtype)
        check_inverse_erfc_and_modified_bessel_functions("built-in", dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_of_any_length_give_the_same(dtype):
    """What is left of a run beside whole vectors is computed as accurately."""
    f = compiled("generated", dtype, FUNCTIONS, 1)
    x = points(dtype, 20)
    for n in range(1, 40):
        for name, found in zip(FUNCTIONS, f(x[:n]), strict=True):
            with np.errstate(all="ignore"):
                error, where = worst(found, FUNCTIONS[name](x[:n].astype(LONG)), [x[:n]])
            assert error <= MAX_ULP, (name, n, where)
