"""Outcomes from uniform numbers, against counting one at a time."""

import numpy as np
import pytest

from opwise.gradient import grad
from opwise.tensor.random.multinomial import (
    ChoiceFromUniform,
    MultinomialFromUniform,
    MultinomialWOReplacementFromUniform,
)
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

RNG = np.random.RandomState(4)
P = RNG.dirichlet([0.5, 1, 2, 3], 6)
U = RNG.rand(18)


def first_above(p, u):
    """Return the first outcome whose cumulated probability is above u, or None."""
    total = 0.0
    for k, x in enumerate(p):
        total += x
        if total > u:
            return k
    return None


def inputs(dtype="float64"):
    return tensor_type(dtype, (False, False))("p"), tensor_type(dtype, (False,))("u")


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("odtype", ["auto", "int64", "float32"])
def test_counts(run, scale, odtype):
    p, u = inputs()
    found = run([MultinomialFromUniform(odtype)(p, u, 3)], {p: P * scale, u: U})[0]
    expected = np.zeros(P.shape)
    for c in range(3):
        for row in range(6):
            outcome = first_above(P[row] * scale, U[c * 6 + row])
            if outcome is not None:
                expected[row, outcome] += 1
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == ("float64" if odtype == "auto" else odtype)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_choices(run, scale, replace):
    p, u = inputs()
    found = run([ChoiceFromUniform("auto", replace)(p, u, 3)], {p: P * scale, u: U})[0]
    assert found.dtype == "int64"
    for row in range(6):
        left = P[row] * scale
        for c in range(3):
            outcome = first_above(left, U[c * 6 + row])
            assert found[row, c] == (-1 if outcome is None else outcome)
            if outcome is not None and not replace:
                left = np.where(np.arange(4) == outcome, 0, left)
                left = left / left.sum()


def test_no_outcome_is_chosen_twice(run):
    p, u = inputs("float32")
    some = np.random.RandomState(5).dirichlet([1] * 9, 50).astype("float32")
    numbers = np.random.RandomState(6).rand(450).astype("float32") * np.float32(0.999)
    found = run([ChoiceFromUniform("int8")(p, u, 9)], {p: some, u: numbers})[0]
    np.testing.assert_array_equal(np.sort(found, 1), np.tile(np.arange(9), (50, 1)))


@pytest.mark.parametrize("op", [MultinomialFromUniform("auto"), ChoiceFromUniform("auto")])
def test_refused(run, op):
    p, u = inputs()
    with pytest.raises(NotImplementedError, match="pvals ndim should be 2"):
        op(u, u)
    with pytest.raises(NotImplementedError, match="unis ndim should be 1"):
        op(p, p)
    with pytest.raises(ValueError, match=r"unis.shape\[0\] != pvals.shape\[0\] \* n"):
        run([op(p, u, 2)], {p: P, u: U})
    if isinstance(op, ChoiceFromUniform):
        with pytest.raises(ValueError, match=r"n samples bigger than the size.*n is 5.*4 outcomes"):
            run([op(p, u, 5)], {p: P, u: RNG.rand(30)})


def test_gradients_are_zero(run):
    p, u = inputs()
    cost = MultinomialFromUniform("float64")(p, u, 3).sum()
    for found, like in zip(run(grad(cost, [p, u]), {p: P, u: U}), (P, U), strict=True):
        np.testing.assert_array_equal(found, np.zeros_like(like))


def test_texts_and_the_old_name():
    assert str(MultinomialFromUniform("auto")) == "MultinomialFromUniform{auto}"
    assert str(ChoiceFromUniform("int8")) == "ChoiceFromUniform{odtype='int8', replace=False}"
    with pytest.warns(DeprecationWarning, match="ChoiceFromUniform"):
        MultinomialWOReplacementFromUniform("auto")
