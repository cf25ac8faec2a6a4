"""Loops whose indices grow evenly: no looks at indices, values handed on; the same results."""

import re

import numpy as np
import pytest

import opwise
from opwise.scalar.innerloops import Growth, Sum

pytestmark = pytest.mark.null


def grows(of, number, by=1):
    return Growth(Sum(of, number), Sum("", by))


def test_sums_keep_numbers_apart():
    x = Sum("x", 2)
    assert x.plus(Sum("", 3)) == Sum("x", 5)
    assert x.plus(x, -1) == Sum("", 0)
    assert Sum().plus(x, -1) == Sum("(0 - x)", -2)
    assert x.times(Sum("", 0)) == Sum() and x.times(Sum("", 1)) == x
    assert x.times(Sum("", -3)) == Sum("(x * -3LL)", -6)
    assert str(Sum("", -1)) == "(-1LL)" and str(x) == "(x + 2LL)"


def test_ways_from_one_index_to_another():
    assert grows("x", 0).steps_to(grows("x", 2)) == 2
    assert grows("x", 0, 2).steps_to(grows("x", 3, 2)) == 1.5
    assert grows("x", 0).steps_to(grows("y", 2)) is None
    assert grows("x", 0).steps_to(grows("x", 2, 2)) is None
    assert grows("x", 0, 0).steps_to(grows("x", 2, 0)) == float("inf")
    assert np.isnan(grows("x", 1, 0).steps_to(grows("x", 1, 0)))


@pytest.fixture
def texts(monkeypatch):
    """The C texts of the loops that are made."""
    from opwise.scalar.recurrence import Recurrence

    made, text = [], Recurrence.text

    def noted(self, name):
        found = text(self, name)
        made.append("".join(found or ()))
        return found

    monkeypatch.setattr(Recurrence, "text", noted)
    return made


def without_looks(text):
    """Return the texts of loops that stand twice: those without looks at indices."""
    found = re.findall(r"^( *)if \(.*__int128.*\n((?:.*\n)*?)\1} else {$", text, re.M)
    return [body[body.index("for (") :] for _, body in found]


def recurrent(x, a):
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + x[i]
    return y


def of_two_steps(x, a):
    y = x.copy()
    for i in range(2, len(x)):
        y[i] = a * y[i - 1] - y[i - 2] * 0.5
    return y


def spread(x, a):
    y = x.copy()
    for i in range(len(x) - 2):
        y[i + 1] += a * y[i]
        y[i + 2] += 0.25 * y[i]
        y[i] = 2 * y[i]
    return y


def backwards(x, a):
    y = x.copy()
    for i in range(len(x) - 1):
        j = len(x) - 2 - i
        y[j] = y[j] + a * y[j + 1]
    return y


def around(x, a):
    y = x.copy()
    for i in range(len(x)):
        y[i] = y[i] + a * y[i - 1]
    return y


def often_the_same(x, a):
    y = x.copy()
    for i in range(len(x)):
        y[3] = y[3] * a + x[i]
        y[i] = y[i] + y[3]
    return y


def in_branches(x, a):
    y = x.copy()
    for i in range(1, len(x)):
        if x[i] > 0:
            y[i - 1] = a
        y[i] = y[i - 1] + y[i]
    return y


def products(x, a):
    n = len(x)
    z = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for k in range(n):
                z[i, j] += x[k] * a * x[i] - x[j]
    return z


PROGRAMS = [
    recurrent, of_two_steps, spread, backwards, around, often_the_same, in_branches, products,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_python(program):
    compiled = opwise.jit(program)
    for n in (4, 5, 9, 33):
        x = np.random.default_rng(n).normal(size=n)
        np.testing.assert_array_equal(compiled(x, 0.75), program(x, 0.75))
        np.testing.assert_array_equal(compiled(x[::-1], 0.75), program(x[::-1], 0.75))


@pytest.mark.parametrize(
    ("program", "reads"),
    [(recurrent, 1), (of_two_steps, 0), (spread, 1), (backwards, 1), (products, 1)],
)
def test_what_a_step_wrote_is_not_read_from_memory(program, reads, texts):
    """reads: those from memory that stay in a step."""
    opwise.jit(program)(np.linspace(0, 1, 20), 0.5)
    loops = [loop for text in texts for loop in without_looks(text)]
    assert loops
    assert max(loop.count("= *(const double *)") for loop in loops) == reads
    assert not any("goto failed" in loop for loop in loops)


def test_an_index_out_of_range_is_an_error_of_that_step():
    def summed(x, n, at):
        y = np.zeros(9)
        for i in range(n):
            y[i + at] = x[i] + y[i]
        return y

    compiled = opwise.jit(summed)
    x = np.arange(20.0)
    np.testing.assert_array_equal(compiled(x, 5, 4), summed(x, 5, 4))
    np.testing.assert_array_equal(compiled(x, 5, -3), summed(x, 5, -3))
    np.testing.assert_array_equal(compiled(x, 0, 40), summed(x, 0, 40))
    for wrong in ((x, 9, 4), (x, 3, -20), (x, 21, 0), (x[:2], 5, 0)):
        with pytest.raises(IndexError):
            compiled(*wrong)
