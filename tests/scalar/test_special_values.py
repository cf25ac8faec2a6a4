"""Every row of one and two operands on NaN, infinities, both zeros, subnormal and extreme numbers.

The references are numpy and scipy in more precision; where these fail, what holds is written here.
"""

import warnings

import numpy as np
import pytest
from scipy import special as scipy_special

import opwise.tensor as T
from opwise import Mode, function
from opwise.scalar import dtypes
from opwise.scalar.borrowed import BORROWED
from opwise.scalar.op import OPS, numpy_callable
from opwise.scalar.spec import ROWS
from opwise.tensor import Elemwise
from opwise.testing.configurations import mode_of

pytestmark = [
    pytest.mark.c,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero):RuntimeWarning"),
]

FLOATS = ("float16", "float32", "float64")
WIDER = {"float16": "float64", "float32": "float64", "float64": "longdouble"}
#: relative errors; the functions are accurate to a few ulp, which other tests check
TOLERANCE = {
    "float16": 2e-3, "float32": 4e-6, "float64": 1e-12, "complex64": 1e-4, "complex128": 1e-11,
}  # fmt: skip


def special_values(dtype):
    """Return NaN, infinities, zeros and numbers of all sizes, each with both signs."""
    if dtype in dtypes.COMPLEX:
        parts = special_values(dtypes.real_part(dtype))
        parts = parts[np.abs(parts) < np.sqrt(np.finfo(parts.dtype).max) / 2]
        some = np.random.default_rng(2)
        parts = np.concatenate([parts, np.array([np.nan, np.inf, -np.inf], parts.dtype)])
        return (some.choice(parts, 1500) + 1j * some.choice(parts, 1500)).astype(dtype)
    info = np.finfo(dtype)
    tiny, most = info.tiny, info.max
    root = np.sqrt(most)
    edges = [0, info.smallest_subnormal, tiny / 2, tiny, 1 / root / 4, 1 / root, info.eps]
    large = [1 / info.eps, 2 / info.eps + 3, root, root * 4, most]
    usual = [1e-5, 1e-3, 0.1, 0.25, 0.5, 0.999, 1, 1.001, 1.5, 2, 2.5, 3, 4, 7, 20, 89, 100, 170.6]
    usual += [720, 1000]
    found = np.unique(np.array([*edges, *usual, *large, np.inf], dtype))
    found = np.concatenate([found, np.array([np.nan], dtype)])
    return np.concatenate([found, -found])


def operands(dtype, count):
    values = special_values(dtype)
    if count == 1:
        return [values]
    if dtype in dtypes.COMPLEX:
        return [values, np.random.default_rng(3).permutation(values)]
    return [each.ravel() for each in np.meshgrid(values, values)]


def rows(dtype):
    """Return (name, count of operands, dtype of the result) of the rows that numpy computes."""
    found = []
    for name, op in OPS.items():
        count = 2 if op.row.nin < 0 else op.row.nin
        if count > 2:
            continue
        try:
            (out,) = op.output_dtypes([dtype] * count)
            numpy_callable(op.row)(*[np.ones(1, dtype)] * count)
        except TypeError:
            continue
        found.append((name, count, out))
    return found


def computed(dtype, mode):
    """Return {name: results} of all rows, from one function."""
    inputs = {n: [T.TensorType(dtype, (False,))() for _ in range(n)] for n in (1, 2)}
    names = rows(dtype)
    outputs = [Elemwise(OPS[name])(*inputs[count]) for name, count, _ in names]
    f = function([*inputs[1], *inputs[2]], outputs, mode=mode, on_unused_input="ignore")
    results = f(*operands(dtype, 1), *operands(dtype, 2))
    return {name: result for (name, _, _), result in zip(names, results, strict=True)}


# --- what is expected -----------------------------------------------------------------------------


def expected(name, count, out, dtype):
    """Return what numpy or scipy give in more precision, and the limits where they give none."""
    row, arrays = OPS[name].row, operands(dtype, count)
    if dtype in FLOATS:
        of_scipy = isinstance(row.numpy, str) or row.numpy.__module__.endswith("special")
        wide = "float64" if of_scipy else WIDER[dtype]
        arrays = [a.astype(wide) for a in arrays]
    with np.errstate(all="ignore"):
        found = np.asarray(numpy_callable(row)(*arrays))
        if name in LIMITS and dtype in FLOATS:
            infinite = np.isinf(arrays[0])
            found = np.where(infinite, LIMITS[name](arrays[0]), found)
        if name == "zeta":  # scipy gives NaN where all terms are 0
            vanish = (arrays[0] > 1e15) & (arrays[1] > 1) & ~np.isnan(arrays[1])
            found = np.where(np.isnan(found) & vanish, 0.0, found)
        return found


#: at infinities, where scipy gives NaN
LIMITS = {
    "j0": np.zeros_like, "j1": np.zeros_like, "i0": np.abs, "i1": lambda x: x,
}  # fmt: skip
#: rows whose zeros have no sign, or another than in scipy
UNSIGNED = frozenset(("maximum", "minimum", "erfinv", "erfcinv", "i1", "j0", "j1"))
#: absolute errors: a curve made of lines; waves of large numbers, which keep their height only
ABSOLUTE = {"ultra_fast_scalar_sigmoid": lambda x: 1e-7}


def _height(x):
    """Return twice the largest Bessel function at large numbers, 0 at others."""
    with np.errstate(all="ignore"):
        size = np.abs(x.astype("longdouble"))
        return np.where(size > 1e6, np.sqrt(4 / size), 0)


ABSOLUTE.update(j0=_height, j1=_height)


def agree(got, wanted, dtype, absolute=0.0, signed=True):
    """Return where results agree, in NaN and infinities and mostly in the sign of 0."""
    with np.errstate(all="ignore"):
        if got.dtype == bool:
            return got == wanted.astype(bool)
        rounded = wanted.astype(got.dtype)
        distance = np.abs(got.astype(wanted.dtype) - wanted)
        if got.dtype.kind == "c":  # the product of infinite numbers depends on fused operations
            close = distance <= TOLERANCE[dtype] * np.abs(wanted)
            close |= np.abs(distance) <= 4 * np.finfo(got.dtype).tiny
            return np.where(np.isfinite(rounded), close, ~np.isfinite(got))
        least = np.finfo(got.dtype).smallest_subnormal.astype("longdouble")
        close = distance <= TOLERANCE[dtype] * np.abs(wanted) + 4 * least + absolute
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded)) | (close & np.isfinite(got))
        zeros = (got == 0) & (rounded == 0) & signed
        return same & ~(zeros & (np.signbit(got) != np.signbit(rounded)))


def check(results, dtype):
    wrong = {}
    for name, count, out in rows(dtype):
        arrays = operands(dtype, count)
        wanted = expected(name, count, out, dtype)
        absolute = ABSOLUTE[name](arrays[0]) if name in ABSOLUTE else 0.0
        right = agree(results[name], wanted, dtype, absolute, name not in UNSIGNED)
        if not right.all():
            at = np.flatnonzero(~right)
            wrong[name] = [(*(a[i] for a in arrays), results[name][i], wanted[i]) for i in at[:5]]
    assert not wrong


DTYPES = (*FLOATS, *dtypes.COMPLEX)


@pytest.mark.parametrize("dtype", DTYPES)
def test_built_in_loops(vectors, dtype):
    check(computed(dtype, mode_of("no optimizer, c|py")), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_kernels(dtype):
    check(computed(dtype, Mode("c|py", None)), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_of_a_gamma_that_overflows(dtype):
    """x**k exp(-x) (1 / k + x / (k (k + 1)) + ...), and the rest of it."""
    k, x = T.TensorType(dtype, (False,))("k"), T.TensorType(dtype, (False,))("x")
    f = function([k, x], [Elemwise(OPS["gammal"])(k, x), Elemwise(OPS["gammau"])(k, x)])
    powers, limits = [174.0, 40.0, 2.0, 180.0, 40.0], [60.0, 0.5, 1.0, 0.0, 3.0]
    lower, upper = f(np.array(powers, dtype), np.array(limits, dtype))
    wanted = []
    for n, limit in zip(powers, limits, strict=True):
        terms = np.cumprod(limit / np.arange(n + 1, n + 200)) / n
        wanted.append(np.longdouble(limit) ** n * np.exp(-limit) * (1 / n + terms.sum()))
    assert lower.dtype == upper.dtype == dtype
    with np.errstate(over="ignore"):
        wanted = np.array(wanted).astype(dtype)
    np.testing.assert_allclose(lower, wanted, rtol=2e-6 if dtype == "float32" else 1e-11)
    assert np.isinf(upper[[0, 3]]).all()
    np.testing.assert_allclose(upper[2], 2 * np.exp(-1.0), rtol=1e-6)


# --- powers by a number, which become products ----------------------------------------------------

EXPONENTS = (-9, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 11)
FRACTIONS = (-7.25, -3.5, -2.75, -2.5, -1.5, -1.25, -0.75, -0.5, -0.25,
             0.25, 0.5, 0.75, 1.25, 1.5, 2.5, 2.75, 3.5, 7.25)  # fmt: skip


@pytest.mark.parametrize("name", ["FAST_RUN", "FAST_RUN, built-in kernels", "FAST_COMPILE"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_at_the_ends_of_a_dtype(dtype, name):
    """No intermediate result overflows or vanishes where the power itself does not."""
    x = T.TensorType(dtype, (False,))("x")
    exponents = [y for y in (*EXPONENTS, *FRACTIONS) if y]
    f = function([x], [x ** np.asarray(y, dtype) for y in exponents], mode=mode_of(name))
    info = np.finfo(dtype)
    ends = np.log2(np.array([info.smallest_subnormal, info.tiny, info.max], "longdouble"))
    for k, y in enumerate(exponents):
        near = [end / y + off for end in ends for off in (-0.6, -0.1, 0.1, 0.6)]
        between = np.linspace(min(near), max(near), 40)
        values = np.exp2(np.concatenate([near, between])).astype(dtype)
        values = np.concatenate([values, special_values(dtype)])
        with np.errstate(all="ignore"):
            result, wanted = f(values)[k], values.astype("longdouble") ** np.longdouble(y)
            rounded = wanted.astype(dtype)
        size = np.maximum(np.abs(wanted), info.tiny)
        close = np.abs(result - wanted) <= max(4, 2 * abs(y)) * info.eps * size
        right = close | (result == rounded) | (np.isnan(result) & np.isnan(rounded))
        if abs(y) == 0.5:  # the root of -inf is NaN, as in Theano
            right |= values == -np.inf
        wrong = np.flatnonzero(~right)[:5]
        assert wrong.size == 0, [(values[i], y, result[i], wanted[i]) for i in wrong]


@pytest.mark.parametrize("name", ["FAST_RUN", "FAST_RUN, built-in kernels", "FAST_COMPILE"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_by_a_number(dtype, name):
    x = T.TensorType(dtype, (False,))("x")
    values = special_values(dtype)
    if dtype in dtypes.COMPLEX:  # numpy's own powers of infinite and tiny numbers are no guide
        size = np.abs(values)
        values = values[(size > 1e-3) & (size < 1e3)]
    f = function([x], [x**y for y in EXPONENTS], mode=mode_of(name))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for y, result in zip(EXPONENTS, f(values), strict=True):
            assert result.dtype == dtype
            wide = values if dtype in dtypes.COMPLEX else values.astype("longdouble")
            wanted = wide ** (y if dtype in dtypes.COMPLEX else np.longdouble(y))
            tolerance = 0.02 * np.abs(wanted) if dtype == "float16" else 0.0
            right = agree(result, wanted, dtype, tolerance, signed=False)
            wrong = np.flatnonzero(~right)[:5]
            assert wrong.size == 0, [(values[i], y, result[i], wanted[i]) for i in wrong]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_scipy_have_its_bits_everywhere(dtype):
    """In kernels, built-in loops and ``perform``; for float32 they are rounded once."""
    random = np.random.RandomState(0)
    names = [name for name, row in ROWS.items() if BORROWED.keys() & row.libm and name != "chi2sf"]
    operands = [T.TensorType(dtype, (False,))() for _ in range(4)]
    special = [0, -0.0, 1, -1, 0.5, 3, np.inf, -np.inf, np.nan, 1e-30, 1e30]
    given = [
        np.concatenate([random.normal(0, 3, 300), random.uniform(0, 1, 300),
                        random.choice(special, 300)]).astype(dtype)
        for _ in operands
    ]  # fmt: skip
    outputs = [Elemwise(OPS[name])(*operands[: ROWS[name].nin]) for name in names]
    modes = [Mode("c|py", None), Mode("c|py", "fast_compile"), Mode("py", None)]
    with np.errstate(all="ignore"):
        for mode in modes:
            found = function(operands, outputs, mode=mode)(*given)
            for name, values in zip(names, found, strict=True):
                wide = [x.astype("float64") for x in given[: ROWS[name].nin]]
                expected = getattr(scipy_special, name)(*wide).astype(dtype)
                np.testing.assert_array_equal(values, expected, err_msg=name)


def test_zeta_far_below_zero():
    """Its terms are counted, not gone through one by one."""
    s, q = T.dvectors("s", "q")
    f = function([s, q], Elemwise(OPS["zeta"])(s, q))
    given = np.array([2.0, 3.0, 4.0, 3.0]), np.array([-1000.7, -33.25, -40.3, -3.25])
    steps = np.arange(2_000_000)
    expected = [np.sum((b + steps) ** -a) for a, b in zip(*given, strict=True)]
    np.testing.assert_allclose(f(*given), expected, rtol=1e-6)
    far = f(np.array([2.0, 5.0]), np.array([-1e9 + 0.5, -1e12 + 0.5]))
    np.testing.assert_allclose(far, [np.pi**2, 0.0], rtol=1e-8, atol=1e-8)
