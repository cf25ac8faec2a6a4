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
    rng = np.random.default_rng(0)
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


def several(rng, n):
    total = np.zeros(3)
    for _ in range(n):
        total = total + rng.normal(size=3) * rng.random()
    return total


def alike(rng, n):
    inside = 0
    for _ in range(n):
        x, y = rng.random(), rng.random()
        inside += x * x + y * y < 1
    return inside


def of_each_kind(rng, n):
    out = np.zeros((n, 9))
    for k in range(n):
        out[k, 0] = rng.normal(0.5, 2)
        out[k, 1] = rng.uniform(-1, 1)
        out[k, 2] = rng.exponential(3)
        out[k, 3] = rng.integers(10)
        out[k, 4] = rng.integers(0, 2**40)
        out[k, 5] = rng.standard_normal()
        out[k, 6] = rng.standard_exponential()
        out[k, 7] = rng.random()
    return out


def by_each_step(rng, n):
    x = np.arange(n)
    for k in range(n - 1, 0, -1):
        j = rng.integers(0, k + 1)
        x[k], x[j] = x[j], x[k]
    return x


def in_branches(rng, n):
    x, kept = 0.0, 0
    for _ in range(n):
        step = x + rng.uniform(-1, 1)
        if step * step < x * x or rng.random() < np.exp(x * x - step * step):
            x, kept = step, kept + 1
        elif rng.integers(2) == 0:
            x = x + rng.standard_normal(2).sum()
    return x, kept


def until_it_ends(rng, n):
    time, count = 0.0, 0
    while time < n:
        time += rng.exponential(1 / (1 + count % 3))
        if rng.random() < 0.01:
            break
        count += 1
    return time, count


def within_loops(rng, n):
    out = np.zeros((n, 12))
    for i in range(n):
        scale = rng.random()
        for j in range(12):
            if rng.random() < scale:
                out[i, j] = rng.normal(0, scale)
    return out


def by_python(rng, n):
    out = []
    for _ in range(n):
        order = rng.permutation(4)
        rng.shuffle(order)
        out.append(order[0] + rng.poisson(2.0) + rng.choice(3, p=[0.2, 0.3, 0.5]))
    return np.array(out)


def unused(rng, n):
    for _ in range(n):
        if rng.random() < 0.5:
            rng.normal(size=2)


LOOPS = [
    several, alike, of_each_kind, by_each_step, in_branches, until_it_ends, within_loops,
    by_python, unused,
]  # fmt: skip


@pytest.mark.parametrize("f", LOOPS)
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_loops_that_draw(f, mode):
    g = opwise.jit(f, mode=mode)
    one, two = np.random.default_rng(2), np.random.default_rng(2)
    for n in (20, 45, 20):
        expected, result = f(one, n), g(two, n)
        assert type(result) is type(expected)
        if expected is not None:
            assert np.allclose(*(np.hstack(np.atleast_1d(r)) for r in (result, expected)))
        assert one.bit_generator.state == two.bit_generator.state
        assert rest_of(one) == rest_of(two)
    assert len(g.signatures) == 1


def rest_of(rng):
    return rng.random(), rng.integers(100)


def test_a_draw_that_fails_in_a_loop():
    def f(rng, n, scale):
        total = 0.0
        for _ in range(n):
            total += rng.normal(0, scale) + rng.random()
        return total

    g = jit(f)
    assert np.isclose(g(np.random.default_rng(1), 10, 2.0), f(np.random.default_rng(1), 10, 2.0))
    with pytest.raises(ValueError, match="scale < 0"):
        g(np.random.default_rng(1), 10, -2.0)


def test_a_branch_that_draws():
    def f(rng, x):
        x = x + rng.normal(size=3) if x.sum() > 0 else x - rng.random()
        y = rng.random() if x[0] > 0.5 else 0.0
        return x, y, rng.integers(100)

    g, one, two = jit(f), np.random.default_rng(2), np.random.default_rng(2)
    for x in (np.ones(3), -np.ones(3), np.ones(3)):
        for a, b in zip(f(one, x), g(two, x), strict=True):
            assert np.array_equal(a, b)
        assert one.bit_generator.state == two.bit_generator.state
    assert len(g.signatures) == 1


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
