"""Quotients and remainders of int64 are exact, also where doubles do not hold the operands."""

import numpy as np
import pytest

import theano
import theano.tensor as T

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


@pytest.mark.c
@pytest.mark.parametrize("divisor", [3, -7, 2**53 + 1, -(2**63)])
def test_quotients_by_a_number(divisor):
    x = T.lvector("x")
    values = pairs()[0]
    found = theano.function([x], [x // np.int64(divisor), x % np.int64(divisor)])(values)
    np.testing.assert_array_equal(found[0], values // np.int64(divisor))
    np.testing.assert_array_equal(found[1], values % np.int64(divisor))
