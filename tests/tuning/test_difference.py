"""Distances between results: units in the last place and relative, of all kinds of values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwise.tuning.difference import ResultDifference, largest, of

pytestmark = pytest.mark.null


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_neighbours_are_one_apart(dtype):
    a = np.array([1.0, -3.0, 0.0, 1000.0], dtype)
    assert of(a, np.nextafter(a, np.array(np.inf, dtype))).ulp == 1
    assert of(a, np.nextafter(a, np.array(-np.inf, dtype))).ulp == 1
    assert of(a, a.copy()) == (0, 0.0)


def test_a_known_pair():
    a = np.array([1.0, 2.0, 4.0])
    b = a + np.array([0.0, 3 * 2.0**-51, 2.0**-50])
    assert of(a, b) == (3, pytest.approx(3 * 2.0**-51 / 4.0))


def test_both_zeros_are_equal_and_signs_are_crossed():
    tiny = np.float32(1e-45)  # the smallest number
    assert of(np.array([0.0]), np.array([-0.0])).ulp == 0
    assert of(np.array([tiny]), np.array([-tiny])).ulp == 2
    everything = of(np.array([-np.inf]), np.array([np.inf]))
    assert everything.ulp == 2 * 0x7FF0000000000000


def test_the_narrower_dtype_decides():
    exact = np.array([1.0, 1 / 3])
    rounded = of(exact, exact.astype("float32"))
    assert rounded.ulp == 0 and 0 < rounded.relative < 2.0**-24
    off = np.nextafter(exact.astype("float32"), np.float32(2))
    assert of(exact, off).ulp == of(off, exact).ulp == 1


def test_overflow_in_the_narrower_dtype():
    for lost in (np.array([1e300]), np.array([1e-300])):
        with np.errstate(over="ignore", under="ignore"):
            assert of(lost, lost.astype("float32")).relative >= 1


def test_nan_and_infinity():
    nan, inf = np.array([np.nan, 1.0]), np.array([np.inf, 1.0])
    assert of(nan, nan.copy()) == of(inf, inf.copy()) == (0, 0.0)
    assert of(nan, np.array([1.0, 1.0])) == (math.inf, math.inf)
    assert of(inf, np.array([1.0, 1.0])).relative == math.inf
    with_both = np.array([np.inf, 2.0]), np.array([np.inf, 2.5])
    assert of(*with_both).relative == 0.5 / 2.5


def test_whole_numbers_complex_and_others():
    assert of(np.array([10, 20]), np.array([10, 22])) == (2, 2 / 22)
    huge = np.array([2**64 - 1], "uint64")
    assert of(huge, np.array([0], "uint64")) == (2**64 - 1, 1.0)
    assert of(np.array([True]), np.array([False])) == (1, 1.0)
    assert of(np.array([1 + 1j]), np.array([1 + 1.5j])).relative == 0.5 / 1.5
    assert of(None, None) == of("a", "a") == (0, 0.0)
    assert of("a", "b").ulp == math.inf


def test_shapes_and_counts_must_agree():
    assert of(np.ones(2), np.ones(3)).ulp == math.inf
    assert largest([np.ones(2)], []).ulp == math.inf
    assert largest([], []) == ResultDifference(0, 0.0)
    assert largest([np.ones(2), np.array(4)], [np.ones(2), np.array(5)]) == (1, 0.2)
    assert of(np.ones(0), np.ones(0)) == (0, 0.0)


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_the_distance_is_symmetric_and_no_shorter_than_a_step(x, y):
    a, b = np.array([x], "float32"), np.array([y], "float32")
    assert of(a, b).ulp == of(b, a).ulp
    assert (of(a, b).ulp == 0) == (x == y)
