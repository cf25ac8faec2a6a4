"""Generator arguments: numpy's bits, and its order."""

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError

pytestmark = pytest.mark.null


def jit(function):
    return opwise.jit(function, mode="FAST_COMPILE")


def test_draws_have_the_bits_of_numpy():
    def f(rng, n, scale, x):
        a = rng.normal(size=n)
        rng.random((2, 3))  # is not used, and advances the generator
        b = rng.integers(0, 10, size=x.shape, dtype="int8")
        c = rng.uniform(-scale, scale, (n, 2))
        return a + rng.standard_normal(n, dtype=np.float32), b, c, rng.poisson(3.0, 4), rng.random()

    g = jit(f)
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    for n in (3, 5, 3):
        expected, result = f(one, n, 0.5, np.ones((2, n))), g(two, n, 0.5, np.ones((2, n)))
        for a, b in zip(expected, result, strict=True):
            assert np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
            assert type(a) is type(b)
        assert one.bit_generator.state == two.bit_generator.state
    assert len(g.signatures) == 1


def test_draws_in_loops_that_are_written_out():
    def f(rng, x):
        total = 0.0
        for _ in range(4):
            total += (rng.normal(size=3) * x).sum()
        return total, rng.integers(5)

    expected = f(np.random.default_rng(2), np.ones(3))
    assert np.allclose(jit(f)(np.random.default_rng(2), np.ones(3)), expected)


def test_a_call_is_not_tried_twice():
    f = lambda rng, x, y: rng.normal(size=3) + x[1:] + y  # noqa: E731
    g = opwise.jit(f)
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    for n in (4, 2, 4):
        x, y = np.ones(n), np.ones(3)
        assert np.allclose(f(one, x, y), g(two, x, y))


def test_what_cannot_be_drawn():
    def f(rng, x):
        if x.sum() > 0:
            x = x + rng.normal(size=3)
        return x

    rng = np.random.default_rng(0)
    with pytest.raises(TracingError, match="in a branch or a loop"):
        jit(f)(rng, np.ones(3))
    with pytest.raises(TracingError, match="shuffle cannot be traced"):
        jit(lambda rng, x: rng.shuffle(x))(rng, np.ones(3))
    with pytest.raises(TracingError, match="arrays of parameters"):
        jit(lambda rng, x: rng.normal(x))(rng, np.ones(3))
    with pytest.raises(TracingError, match="cannot be returned"):
        jit(lambda rng: rng)(rng)


def test_one_generator_twice():
    f = lambda a, b: a.normal(size=2) - b.normal(size=2)  # noqa: E731
    g, rng = jit(f), np.random.default_rng(3)
    same = np.random.default_rng(3)
    assert np.array_equal(g(rng, rng), f(same, same))
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    assert np.array_equal(g(one, two), [0, 0])
