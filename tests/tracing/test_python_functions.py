"""Functions of Python and scipy on traced values, errors that are caught, and iterators."""

import functools
import itertools
import math

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError
from tests.tracing.test_lists import alike, check

pytestmark = pytest.mark.null


def normal(n, seed=0):
    return np.random.default_rng(seed).normal(size=n)


# --- functions ------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 0.3, 7.0, -7.0, np.inf, -np.inf, np.nan, 1e30,
           -1e30, 1e-30, 123456.789]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "ufunc", [np.floor_divide, np.hypot, np.copysign, np.fmod, np.heaviside, np.cbrt]
)
def test_functions_of_floats(ufunc, dtype):
    x, y = (each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL))
    rng = np.random.default_rng(0)
    spread = [rng.normal(size=500) * 10 ** rng.uniform(-5, 5, 500) for _ in range(2)]
    given = [np.concatenate(each).astype(dtype) for each in zip((x, y), spread, strict=True)]
    given = given[: ufunc.nin]
    with np.errstate(all="ignore"):
        expected = ufunc(*given)
    result = opwise.jit(lambda *args: ufunc(*args))(*given)
    assert result.dtype == expected.dtype
    exact = ufunc not in (np.hypot, np.cbrt)
    np.testing.assert_allclose(
        result, expected, rtol=0 if exact else 4 * np.finfo(dtype).eps, atol=0
    )
    finite = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[finite]), np.signbit(expected[finite]))


def compensated(x):
    total = rest = 0.0
    for v in x:
        term = v - rest
        after = total + term
        rest = (after - total) - term
        total = after
    return total, (x[1] + 1e-9) - x[1]


@pytest.mark.parametrize("mode", [None, "FAST_RUN", "FAST_COMPILE", "DEBUG_MODE"])
def test_sums_of_floats_are_computed_as_they_are_written(mode):
    x = np.concatenate([[1e16], np.ones(200)])
    result = opwise.jit(compensated, mode=mode)(x)
    assert result == compensated(x) == (1e16 + 200, 1.000000082740371e-09)


def test_a_vectorized_function_that_counts():
    count = 0

    def counted(v):
        nonlocal count
        count += 1
        return v + count

    with pytest.raises(TracingError, match="assigns variables of another one"):
        opwise.jit(lambda x: np.vectorize(counted)(x))(normal(3))


def test_they_are_in_loops_of_c():
    def f(x):
        total = 0.0
        for v in x:
            total += v // 0.3 + np.hypot(v, 1.0) + math.fmod(v, 0.7) + np.copysign(2.0, v)
            total += divmod(v, 0.4)[1] + np.cbrt(v)
        return total

    compiled = check(f, [normal(30)], [normal(20, 1)])
    (signature,) = compiled.signatures
    assert not any(
        str(n.op).startswith("numpy.") for n in signature.compiled.maker.fgraph.apply_nodes
    )


def functions_of_math(x, n):
    total = 0.0
    for i in range(1, n):
        total += math.gcd(i, 36) + math.isqrt(i * 7) + math.comb(9, i % 9)
        total += x[i] ** (i % 12) / math.factorial(i % 12)
        total += math.erf(x[i]) + math.erfc(x[i]) + math.lgamma(x[i] + 9) + math.gamma(x[i] + 9)
    return total


def test_functions_of_math():
    check(functions_of_math, [normal(40), 40], [normal(30, 1), 25])
    with pytest.raises(ValueError, match="not defined for negative values"):
        opwise.jit(lambda x: math.factorial(int(x[0])))(-np.ones(2))
    assert opwise.jit(lambda x: math.factorial(int(x[0])))(np.array([25])) == math.factorial(25)


def test_functions_of_scipy():
    special = pytest.importorskip("scipy.special")

    def f(x):
        return (
            special.erf(x) + special.gammaln(x + 2) + special.expit(x) + special.ndtr(x)
            + special.xlogy(x, x) + special.j0(x) + special.digamma(x + 2) + special.entr(x)
            + special.betaln(x + 1, x + 2) + special.logit(x / 2) + special.log_ndtr(x)
            + special.struve(0, x) + special.logsumexp(x) + special.softmax(x)
        )  # fmt: skip

    check(f, [np.abs(normal(20)) / 3 + 0.1], [np.abs(normal(9, 1)) / 3 + 0.1])
    matrix = normal(12).reshape(3, 4)
    check(lambda x: special.logsumexp(x, axis=1), [matrix])
    with pytest.raises(TracingError, match="factorial cannot be traced: it is no ufunc") as caught:
        opwise.jit(lambda x: special.factorial(x))(normal(3))
    assert "special.factorial(x)" in str(caught.value)


def test_ufuncs_of_others():
    doubled = np.frompyfunc(lambda v: v * 2, 1, 1)
    with pytest.raises(TracingError, match=r"neither numpy nor scipy\.special has"):
        opwise.jit(lambda x: doubled(x))(normal(3))


# --- what is sorted, mapped, and remembered ------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sorted(range(len(x)), key=lambda i: x[i]),
        lambda x: sorted(range(len(x)), key=lambda i: round(x[i]), reverse=True),
        lambda x: min(range(len(x)), key=lambda i: x[i] ** 2),
        lambda x: max(x, key=lambda v: abs(v - 0.3)),
        lambda x: list(map(float, x)),
        lambda x: np.array(list(map(int, x * 5))),
        lambda x: sum(map(lambda a, b: a * b, x, x[::-1])),
        lambda x: x[range(len(x) - 1)],
        lambda x: list(map(np.sum, (x, x[1:]))),
    ],
)
def test_functions_of_python(function):
    check(function, [normal(20)], [normal(12, 1)])


def test_a_function_with_lru_cache():
    @functools.cache
    def paths(n):
        return 1 if n < 2 else sum(paths(i) * paths(n - 1 - i) for i in range(n))

    compiled = opwise.jit(lambda n, x: paths(n) * x)
    for n in (5, 8, 5):
        assert compiled(n, 2.0) == paths(n) * 2.0


def test_a_dict_outside_keeps_keys_of_python():
    cache = {}

    @opwise.jit
    def squares(n, x):
        if n not in cache:
            cache[n] = np.arange(n) ** 2
        return cache[n] * x

    np.testing.assert_array_equal(squares(4, 2), np.arange(4) ** 2 * 2)
    assert [type(key) for key in cache] == [int]


def test_grids_are_arrays_of_the_function():
    def f(c):
        y, x = np.ogrid[-1:1:5j, -1:1:5j]
        z = x + 1j * y
        z[0] = c
        y[0] = 7
        r = np.r_[0:5]
        r[0] = 3
        return z, y, r

    check(f, [1.0], [2.5])


# --- variables ------------------------------------------------------------------------------------


def binary_search(a, p):
    low, high = 0, len(a)
    while True:
        if low == high:
            return -1
        middle = (low + high) // 2
        if a[middle] < p:
            low = middle + 1
        elif a[middle] > p:
            high = middle
        else:
            return middle


def inside(x, y, polygon):
    n = len(polygon)
    found = False
    x1, y1 = polygon[0]
    for i in range(n + 1):
        x2, y2 = polygon[i % n]
        if min(y1, y2) < y <= max(y1, y2) and x <= max(x1, x2):
            if y1 != y2:
                crossing = (y - y1) * (x2 - x1) / (y2 - y1) + x1
            if x1 == x2 or x <= crossing:
                found = not found
        x1, y1 = x2, y2
    return found


def test_a_loop_that_only_returns_end():
    check(binary_search, [np.arange(20.0), 3.0], [np.arange(9.0), 3.5])


def test_a_variable_that_has_a_value_where_it_is_read():
    square = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    check(inside, [0.1, 0.2, square], [0.9, 0.7, square], [-2.0, 0.0, square])

    def last(x):
        for i in range(len(x)):
            if x[i] > 0:
                found = i
        return found

    with pytest.raises(TracingError, match="found has a value in one branch of an if only"):
        opwise.jit(last)(normal(9))


def test_long_sums_of_numbers():
    def f(values):
        total = 0.0
        for v in values:
            total += v
        return total + sum(values)

    check(f, [[0.5] * 700])


# --- errors that are caught -----------------------------------------------------------------------


def reciprocal(n):
    try:
        return 10 // n
    except ZeroDivisionError:
        return -1


def added(x, y):
    try:
        v = x + y
    except ValueError:
        v = x
    return v


def sixth(x):
    try:
        v = x[5]
    except IndexError as error:
        v = -float(len(str(error)) > 0)
    return v


def folded(x):
    for _ in range(9):
        try:
            x = x.reshape(2, -1)[0]
        except ValueError:
            break
    return x


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        (reciprocal, [[0], [3], [0], [5]]),
        (added, [[np.ones(4), np.ones(3)], [np.ones(4), np.ones(4)], [np.ones(2), np.ones(3)]]),
        (sixth, [[np.arange(2.0)], [np.arange(7.0)], [np.arange(3.0)]]),
        (folded, [[np.arange(12.0)], [np.arange(8.0)], [np.arange(7.0)]]),
    ],
)
def test_what_a_try_catches_is_a_condition(function, cases):
    compiled = opwise.jit(function)
    for case in cases:
        alike(function(*case), compiled(*case))


def test_lengths_that_do_not_fit():
    @opwise.jit
    def f(x, y):
        return (x * 2 + y)[0]

    assert f(np.ones(3), np.ones(3)) == 3
    with pytest.raises(ValueError, match="could not be broadcast together"):
        f(np.ones(3), np.ones(4))


# --- iterators ------------------------------------------------------------------------------------


def counted(n):
    numbers, out = itertools.count(), np.zeros(n)
    for i in range(n):
        out[i] = next(numbers)
    return out


def in_turns(x):
    signs, total = itertools.cycle([1, -1]), 0.0
    for v in x:
        total += v * next(signs)
    return total


def in_a_comprehension(x):
    numbers = iter(range(100))
    return np.array([v * next(numbers) for v in x])


def from_a_variable(x):
    pairs, total = iter([1.0, 2.0, 3.0]), 0.0
    for v in x:
        for w in pairs:
            total += v * w
    return total


def calls_that_count(x):
    count = 0

    def step(v):
        nonlocal count
        count += 1
        return v + count

    made = np.array([step(v) for v in x])
    return made, sum(step(v) for v in x), count


@pytest.mark.parametrize(
    ("function", "case"),
    [
        (counted, 12), (in_turns, normal(12)), (in_a_comprehension, normal(12)),
        (from_a_variable, normal(12)), (calls_that_count, normal(12)),
    ],
)  # fmt: skip
def test_iterators_and_counters(function, case):
    check(function, [case])


def test_results_that_are_iterators():
    def numbers(x):
        yield x[0]
        yield x[1]

    with pytest.raises(TracingError, match="The function returns an iterator"):
        opwise.jit(numbers)(normal(2))


# --- wrong arguments ------------------------------------------------------------------------------


def test_errors_name_what_is_wrong():
    @opwise.jit
    def f(x, y):
        return x * 2 + y

    for args, error in (
        ((normal(3),), r"f\(\) cannot be called so: missing a required argument: 'y'"),
        ((normal(3), 1, 2), r"f\(\) cannot be called so: too many positional arguments"),
        ((normal(3), None), r"not with None \(a NoneType\)"),
        (
            (np.array(["a"]), 1.0),
            r"The argument x: .* not with dtype <U1",
        ),
    ):
        with pytest.raises(TypeError, match=error):
            f(*args)
