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
    with pytest.raises(TracingError, match="it calls normal of a Generator"):
        jit(f)(rng, np.ones(3))
    with pytest.raises(TracingError, match="multinomial cannot be traced"):
        jit(lambda rng, x: rng.multinomial(3, x))(rng, np.ones(3) / 3)
    with pytest.raises(TracingError, match="cannot be returned"):
        jit(lambda rng: rng)(rng)


def test_one_generator_twice():
    f = lambda a, b: a.normal(size=2) - b.normal(size=2)  # noqa: E731
    g, rng = jit(f), np.random.default_rng(3)
    same = np.random.default_rng(3)
    assert np.array_equal(g(rng, rng), f(same, same))
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    assert np.array_equal(g(one, two), [0, 0])


DRAWS = """
rng.choice(5)
rng.choice(x.shape[0], size=4)
rng.choice(x, size=(2, x.size))
rng.choice(x)
rng.choice([-1, 1], size=3)
rng.choice(x, 2, replace=False)
rng.choice(3, 5, p=[0.2, 0.3, 0.5])
rng.choice(m, 2)
rng.choice(m, 2, axis=1)
rng.permutation(x.shape[0])
rng.permutation(x)
rng.permutation(m)
rng.permuted(m, axis=1)
rng.shuffle(x)
rng.shuffle(m)
rng.multivariate_normal(np.zeros(2), np.eye(2), size=3)
rng.multivariate_normal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]])
rng.normal(x)
rng.normal(x, 2.0, size=(3, x.shape[0]))
rng.uniform(x, m)
rng.poisson(abs(x))
rng.integers(0, [1, 5, 9])
""".strip().splitlines()


@pytest.mark.parametrize("text", DRAWS)
def test_draws(text):
    f = eval(f"lambda rng, x, m: ({text}, rng.random(), x, m)", {"np": np})
    g, one, two = jit(f), np.random.default_rng(1), np.random.default_rng(1)
    for n in (4, 6):
        given = [(np.arange(n) / 2, np.arange(2.0 * n).reshape(2, n)) for _ in range(2)]
        expected, result = f(one, *given[0]), g(two, *given[1])
        for a, b in zip(expected, result, strict=True):
            assert type(a) is type(b) and np.array_equal(a, b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
    assert len(g.signatures) == 1


def seeded(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=2), rng.permutation(3)


def test_generators_of_the_function_itself():
    g = jit(seeded)
    for seed in (0, 7, 0):
        for a, b in zip(seeded(seed), g(seed), strict=True):
            assert np.array_equal(a, b)
    assert len(g.signatures) == 1
    fixed = jit(lambda x: x + seeded(3)[0])
    assert np.array_equal(fixed(np.ones(2)), 1 + seeded(3)[0])
    fresh = jit(lambda x: x + np.random.default_rng().random(2) - np.random.default_rng().random(2))
    assert len({tuple(fresh(np.zeros(2))) for _ in range(3)}) == 3


def test_loops_that_draw_are_written_out():
    def f(rng, n):
        total = np.zeros(3)
        for _ in range(n):
            total = total + rng.normal(size=3) * rng.random()
        return total

    expected = f(np.random.default_rng(2), 20)
    assert np.allclose(jit(f)(np.random.default_rng(2), 20), expected)


class Sampler:
    def __init__(self):
        self.rng = np.random.default_rng(4)

    def sample(self, n):
        return self.rng.normal(size=n)


def test_generators_of_objects():
    ours, theirs = Sampler(), Sampler()
    g = jit(Sampler.sample)
    for n in (3, 2, 3):
        assert np.array_equal(g(ours, n), theirs.sample(n))
    assert len(g.signatures) == 1
