"""Loops over single elements of arrays, compiled, beside Python."""

import warnings

import numpy as np
import pytest

import opwise
from tests.tracing import loop_programs


def copied(values):
    return [np.copy(v) if isinstance(v, np.ndarray) else v for v in values]


def kind(value):
    """Return what a result is: a loop may make a numpy scalar of a Python number."""
    return type(value) if isinstance(value, np.ndarray) else np.asarray(value).dtype


def same(expected, result):
    if isinstance(expected, tuple):
        assert len(expected) == len(result)
        for one, two in zip(expected, result, strict=True):
            same(one, two)
    elif expected is None:
        assert result is None
    else:
        assert kind(result) == kind(expected)
        assert np.asarray(result).dtype == np.asarray(expected).dtype
        assert np.shape(result) == np.shape(expected)
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.null
@pytest.mark.parametrize("name", loop_programs.PROGRAMS)
def test_program(name):
    """The result and what becomes of the arguments are those of Python."""
    function, cases = loop_programs.PROGRAMS[name]
    compiled = opwise.jit(function)
    for case in cases:
        given, expected = copied(case), copied(case)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = function(*expected)
        except (IndexError, ValueError, ZeroDivisionError) as error:
            with pytest.raises(type(error)):
                compiled(*given)
            continue
        same(result, compiled(*given))
        for one, two in zip(expected, given, strict=True):
            same(one, two)


@pytest.mark.parametrize(
    "name", ["sieve", "binary_search", "quick_sort", "heap_sort", "union_find"]
)
def test_program_without_rewrites(name):
    """A ``while`` keeps one value of each of its variables, whatever rewrites do."""
    function, cases = loop_programs.PROGRAMS[name]
    compiled = opwise.jit(function, mode="FAST_COMPILE")
    for case in cases:
        given, expected = copied(case), copied(case)
        same(function(*expected), compiled(*given))
        for one, two in zip(expected, given, strict=True):
            same(one, two)
