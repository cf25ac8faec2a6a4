"""Gradients and derivatives of functions of numpy, and their batching."""

import dataclasses

import numpy as np
import pytest

import opwise
from opwise.errors import GradNotDefined, TracingError

pytestmark = pytest.mark.null


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def numeric(function, x, epsilon=1e-6):
    """Return the derivatives of a function's results by the elements of an array."""
    rows = []
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += epsilon
        down[index] -= epsilon
        rows.append((np.asarray(function(up)) - np.asarray(function(down))) / (2 * epsilon))
    found = np.stack(rows, -1)
    return found.reshape(*found.shape[:-1], *x.shape)


def check_gradient(function, x):
    value, gradient = opwise.value_and_grad(function)(x.copy())
    np.testing.assert_allclose(value, function(x.copy()))
    np.testing.assert_allclose(gradient, numeric(function, x), rtol=1e-4, atol=1e-6)
    assert gradient.shape == x.shape and gradient.dtype == x.dtype


def in_place(x):
    y = x * 2
    y[1:] += x[:-1] ** 2
    y[y > 1] = 0.5
    y[0] = y[2] * y[3]
    np.add.at(y, [1, 1], x[:2])
    return (y * np.arange(len(y))).sum()


def loops(x):
    state, total = 1.0, 0.0
    for i in range(len(x)):
        if x[i] > 0:
            state = state * np.tanh(x[i])
        else:
            state = state + x[i] ** 2
        total += state
    return total


def recurrence(x):
    y = np.zeros(len(x) + 1)
    y[0] = 1
    for i in range(len(x)):
        y[i + 1] = y[i] * 0.5 + np.sin(x[i])
    return (y**2).sum()


def by_while(x):
    z, n = x[0], 0
    while n < 7:
        z = z * x[1] + x[2]
        n += 1
    return z


def algebra(x):
    m = x.reshape(2, -1)
    s = m @ m.T + np.eye(2) * 3
    return np.log(np.linalg.det(s)) + np.linalg.solve(s, m).sum()


def choices(x):
    return (
        np.where(x > 0, x**2, np.abs(x)).max() + np.sort(x)[1] + np.clip(x, -0.5, 0.5).sum()
        + np.cumsum(x)[2] + np.prod(x) + x.std() + np.linalg.norm(x) + np.einsum("i,i->", x, x)
    )  # fmt: skip


@pytest.mark.parametrize(
    "function", [in_place, loops, recurrence, by_while, algebra, choices], ids=lambda f: f.__name__
)
def test_gradients(function):
    check_gradient(function, normal(8))


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: np.ndarray


def test_gradients_of_trees():
    def loss(params, x, y):
        h = x
        for layer in params["layers"]:
            h = np.tanh(h @ layer.w + layer.b)
        return ((h - y) ** 2).mean() + params["decay"] * (params["layers"][0].w ** 2).sum()

    params = {
        "layers": [Layer(normal(3, 4), normal(4)), Layer(normal(4, 2), normal(2))], "decay": 0.1
    }  # fmt: skip
    x, y = normal(5, 3), normal(5, 2)
    value, gradient = opwise.value_and_grad(loss)(params, x, y)
    assert np.isclose(value, loss(params, x, y))
    assert type(gradient["layers"][0]) is Layer and type(gradient["decay"]) is float
    assert np.isclose(gradient["decay"], (params["layers"][0].w ** 2).sum())

    def of_w(w):
        return loss(
            {**params, "layers": [Layer(w, params["layers"][0].b), params["layers"][1]]}, x, y
        )

    np.testing.assert_allclose(
        gradient["layers"][0].w, numeric(of_w, params["layers"][0].w), rtol=1e-4
    )


def test_arguments_and_results():
    def f(x, y, n):
        return (x * y).sum() * n, y.sum()

    g = opwise.grad(f, argnums=(0, 1), has_aux=True)
    (by_x, by_y), aux = g(normal(3), normal(3, seed=1), 2)
    assert np.allclose(by_x, 2 * normal(3, seed=1)) and np.allclose(by_y, 2 * normal(3))
    assert np.isclose(aux, normal(3, seed=1).sum())
    assert np.allclose(opwise.grad(lambda x: x.sum())(np.ones(2, "float32")), 1)
    assert opwise.grad(lambda a: a**3)(2.0) == 12.0
    assert opwise.grad(opwise.grad(lambda a: a**3))(2.0) == 12.0
    assert np.allclose(opwise.grad(lambda x, c: (x * c).sum(), 1)(normal(3), normal(3)), normal(3))


def test_gradients_in_traced_functions():
    @opwise.jit
    def descend(x, target):
        gradient = opwise.grad(lambda v: ((v - target) ** 2).sum())
        for _ in range(20):
            x = x - 0.25 * gradient(x)
        return x

    np.testing.assert_allclose(descend(normal(3), normal(3, seed=1)), normal(3, seed=1), atol=1e-5)


def test_jacobian_and_hessian():
    def f(x):
        return np.stack([x[0] * x[1], np.sin(x).sum(), x[2] ** 3])

    x = normal(3)
    np.testing.assert_allclose(opwise.jacobian(f)(x), numeric(f, x), rtol=1e-5, atol=1e-8)
    m = normal(2, 3)
    g = lambda m: m @ m.T  # noqa: E731
    np.testing.assert_allclose(opwise.jacobian(g)(m), numeric(g, m), rtol=1e-5, atol=1e-8)
    h = lambda x: (x**3).sum() * x[2] + x[0] * x[1]  # noqa: E731
    np.testing.assert_allclose(
        opwise.hessian(h)(x), numeric(opwise.grad(h), x), rtol=1e-4, atol=1e-6
    )


def test_symbolic_variables_have_their_functions():
    import opwise.tensor as T

    x = T.dvector("x")
    assert opwise.grad((x**2).sum(), x).type == x.type
    assert opwise.jacobian(x**2, x).ndim == 2
    assert opwise.hessian((x**2).sum(), x).ndim == 2
    with pytest.raises(TypeError, match="argnums"):
        opwise.grad((x**2).sum(), x, argnums=0)


def test_directions_and_weights():
    f = lambda x, y: (np.sin(x) * y, x.sum())  # noqa: E731
    x, y, u, v = (normal(3, seed=k) for k in range(4))
    (value, total), (dot, dot_total) = opwise.jvp(f, (x, y), (u, v))
    np.testing.assert_allclose(value, np.sin(x) * y)
    np.testing.assert_allclose(dot, np.cos(x) * u * y + np.sin(x) * v)
    assert np.isclose(total, x.sum()) and np.isclose(dot_total, u.sum())
    value, pull = opwise.vjp(f, x, y)
    by_x, by_y = pull((u, 2.0))
    np.testing.assert_allclose(by_x, np.cos(x) * y * u + 2)
    np.testing.assert_allclose(by_y, np.sin(x) * u)


def test_batching():
    def f(x, y, c):
        return (x * y).sum() + c, np.outer(x, y), c

    x, y = normal(5, 3), normal(3, 5, seed=1)
    one, two, three = opwise.vmap(f, in_axes=(0, 1, None))(x, y, 2.0)
    assert np.allclose(one, (x * y.T).sum(1) + 2)
    assert np.allclose(two, x[:, :, None] * y.T[:, None]) and np.allclose(three, np.full(5, 2.0))
    g = opwise.vmap(opwise.grad(lambda v: (v**3).sum()))
    assert np.allclose(g(x), 3 * x**2)
    assert opwise.vmap(lambda v: v * 2, out_axes=1)(x).shape == (3, 5)
    assert opwise.vmap(lambda v: v.sum())(x[:1]).shape == (1,)
    with pytest.raises(ValueError, match="different numbers of rows"):
        opwise.vmap(lambda a, b: a + b)(x, y)
    with pytest.raises(ValueError, match="rows of a number"):
        opwise.vmap(lambda a: a)(2.0)


def test_what_has_no_gradient():
    with pytest.raises(TypeError, match="needs floats, not <traced array int64"):
        opwise.grad(lambda x: x.sum())(np.arange(3))
    with pytest.raises(TypeError, match="an array of 1 dimensions"):
        opwise.grad(lambda x: x * 2)(normal(3))
    with pytest.raises(TypeError, match="the function returned complex128"):
        opwise.grad(lambda x: (x * 1j).sum())(normal(3))
    with pytest.raises(GradNotDefined, match="rfft has no derivative"):
        opwise.grad(lambda x: np.fft.rfft(x).real.sum())(normal(4))

    def changes(x):
        x *= 2
        return x.sum()

    with pytest.raises(TracingError, match="changes an argument in place"):
        opwise.grad(changes)(normal(3))
    with pytest.raises(TypeError, match="expected a function"):
        opwise.vmap(3)


def cubes(x):
    if (x < 0).any():
        raise ValueError(f"{float(x.min())} is negative")
    assert x.sum() < 100
    return (x**3).sum()


def test_derivatives_and_batches_raise_the_errors_of_the_function():
    gradient, rows = opwise.grad(cubes), opwise.vmap(cubes)
    assert np.allclose(gradient(np.ones(2)), 3)
    assert np.allclose(rows(np.ones((3, 2))), 2)
    with pytest.raises(ValueError, match="is negative"):
        gradient(np.array([1.0, -2.0]))
    with pytest.raises(ValueError, match="is negative"):
        rows(np.array([[1.0, 1.0], [1.0, -2.0]]))
    with pytest.raises(AssertionError):
        gradient(np.full(2, 99.0))


def test_logaddexp_of_equal_numbers():
    x = np.array([0.0, 3.0, -2.0, np.inf])
    by_both = opwise.grad(lambda a, b: np.logaddexp(a, b).sum(), argnums=(0, 1))(x, x)
    assert np.array_equal(by_both, np.full((2, 4), 0.5))
    assert opwise.grad(lambda w: np.logaddexp(0, w @ np.ones(2)))(np.zeros(2)).tolist() == [0.5] * 2


#: of a vector x (8) and the matrices m (2, 4) and s (4, 4) of its elements
BY_NUMPY = """
np.linalg.slogdet(m @ m.T + np.eye(2))[1]
np.linalg.slogdet(np.stack([m @ m.T + np.eye(2), m @ m.T]))[1].sum()
(np.linalg.eigh(s)[0] * np.arange(4)).sum()
(np.linalg.eigh(s)[1] ** 2 * np.arange(4)).sum()
(np.linalg.eigh(s + x[:4], UPLO='U')[0] ** 3).sum()
np.linalg.eigvalsh(s)[0]
(np.linalg.svd(m, compute_uv=False) * np.arange(2)).sum()
np.linalg.norm(m, 2) + np.linalg.norm(m, 'nuc')
np.logaddexp.reduce(x)
np.logaddexp.reduce(m, axis=1).prod()
np.nanmax(x) * np.fmin.reduce(m, axis=0, keepdims=True).sum()
np.median(x) * np.median(m, axis=1).sum()
np.median(m, axis=(0, 1))
np.quantile(x, 0.3) + np.percentile(m, 60, axis=0).prod()
(np.bincount([0, 2, 2, 1, 0, 1, 1, 2], weights=x) ** 2).sum()
(np.bincount([0, 2, 2, 1, 0, 1, 1, 2], weights=x, minlength=len(m)) ** 2).sum()
np.cov(m).prod() + np.corrcoef(m)[0, 1]
(np.gradient(x) ** 2).sum() + np.trapezoid(x ** 2)
(np.lib.stride_tricks.sliding_window_view(x, 3).mean(-1) ** 2).sum()
""".strip().splitlines()


@pytest.mark.parametrize("text", BY_NUMPY)
def test_derivatives_of_what_numpy_computes(text):
    program = eval(f"lambda x, m, s: {text}", {"np": np})

    def function(x):
        return program(x, x.reshape(2, 4), np.outer(x[:4], x[4:]) + np.outer(x[4:], x[:4]))

    check_gradient(function, normal(8, seed=3))
