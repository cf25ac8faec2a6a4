"""Quotients of int64 and remainders are numpy's to the bit, also of numbers far apart in size."""

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.loops import Scan

CORNERS = [0, 1, -1, 2, -2, 3, -7, 2**31, 2**52, 2**53 + 1, -(2**53) - 1, 2**62 + 1, -(2**62)]
CORNERS += [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 10**18]


def pairs():
    """Corners by corners, and numbers of all sizes close to multiples of the divisors."""
    x, y = (a.ravel() for a in np.meshgrid(np.array(CORNERS), np.array(CORNERS)))
    rng = np.random.default_rng(1)
    most = 2**63 - 1
    divisors = rng.integers(-most, most, 20_000) >> rng.integers(0, 63, 20_000)
    others = rng.integers(-most, most, 20_000) >> rng.integers(0, 63, 20_000)
    with np.errstate(over="ignore"):
        near = divisors * rng.integers(-5000, 5000, 20_000) + rng.integers(-2, 3, 20_000)
    return np.concatenate([x, others, near]), np.concatenate([y, divisors, divisors])


@pytest.mark.c
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("op, of_numpy", [(T.int_div, np.floor_divide), (T.mod, np.remainder)])
def test_quotients_and_remainders_are_those_of_numpy(op, of_numpy, mode):
    x, y = T.lvectors("x", "y")
    values = pairs()
    with np.errstate(divide="ignore", over="ignore"):
        expected = of_numpy(*values)
    found = theano.function([x, y], op(x, y), mode=mode)(*values)
    np.testing.assert_array_equal(found, expected)


#: those that the C compiler knows, positive ones of them, and powers of two
DIVISORS = [1, 2, 3, 10, 64, 100, 127, -1, -7, -8, 2**15, 2**31 - 1, 2**40, 2**53 + 1, -(2**63)]


@pytest.mark.c
@pytest.mark.parametrize("divisor", [3, -7, 2**53 + 1, -(2**63)])
def test_quotients_by_a_number(divisor):
    x = T.lvector("x")
    values = pairs()[0]
    found = theano.function([x], [x // np.int64(divisor), x % np.int64(divisor)])(values)
    np.testing.assert_array_equal(found[0], values // np.int64(divisor))
    np.testing.assert_array_equal(found[1], values % np.int64(divisor))


@pytest.mark.c
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint64"])
def test_quotients_of_one_number_at_a_time(dtype):
    """A loop over numbers knows its divisors, and branches where that is faster than a division."""
    x, y = T.vector("x", dtype), T.vector("y", dtype)
    values = [np.concatenate([v[:400], v[-600:]]).astype(dtype) for v in pairs()]
    limits = np.iinfo(dtype)
    divisors = [np.array(d, dtype) for d in DIVISORS if limits.min <= d <= limits.max]

    def results(x, y, quotient, remainder):
        return [op(x, d) for d in (y, *divisors) for op in (quotient, remainder)]

    rows, _ = theano.scan(
        lambda x, y, s: [s + 1, *results(x, y, T.int_div, T.mod)],
        sequences=[x, y], outputs_info=[T.constant(np.int64(0)), *[None] * 2 * (len(divisors) + 1)],
    )  # fmt: skip
    f = theano.function([x, y], rows)
    (loop,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert loop.tag.repeated is not None
    _, *found = f(*values)
    with np.errstate(divide="ignore", over="ignore"):
        expected = results(*values, np.floor_divide, np.remainder)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def float_pairs(dtype):
    """Numbers of all sizes with numbers of all sizes, multiples and special values."""
    limits, rng, n = np.finfo(dtype), np.random.default_rng(2), 20_000
    logs = np.log2(float(limits.smallest_subnormal)), np.log2(float(limits.max))
    sizes = [np.exp2(rng.uniform(*logs, n)) * rng.choice([-1, 1], n) for _ in range(2)]
    whole = rng.integers(-(2**24), 2**24, n), rng.integers(1, 50, n)
    special = [0, -0.0, 1, -1, 3.5, np.inf, -np.inf, np.nan, limits.max, -limits.max]
    special += [limits.tiny, limits.smallest_subnormal]
    corners = (a.ravel() for a in np.meshgrid(special, special))
    return tuple(
        np.concatenate(parts).astype(dtype) for parts in zip(sizes, whole, corners, strict=True)
    )


@pytest.mark.c
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats(dtype, mode):
    x, y = T.vector("x", dtype), T.vector("y", dtype)
    values = float_pairs(dtype)
    with np.errstate(all="ignore"):
        expected = np.remainder(*values)
    found = theano.function([x, y], x % y, mode=mode)(*values)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
