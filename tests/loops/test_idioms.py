"""Loops as programs of 2012 to 2017 wrote them, against loops in Python, in every mode."""

import functools

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, OpFromGraph, OrderedUpdates, as_op, function, grad, shared, verify_grad
from opwise.gradient import disconnected_grad, grad_clip, hessian, jacobian, zero_grad
from opwise.linalg import cholesky, solve
from opwise.loops import scan, until
from opwise.tensor.nlinalg import matrix_inverse

pytestmark = pytest.mark.null

RNG = np.random.RandomState(7)
X = RNG.uniform(0.2, 1.0, (6, 2))
W = RNG.uniform(-1.0, 1.0, (2, 2))


@pytest.fixture(params=["py", "c|py"])
def linker(request, flags):
    """A mode for each VM, without a compiler."""
    flags(cxx="")
    return Mode(request.param, "fast_run")


# --- every option against a loop in Python --------------------------------------------------------


def by_hand(values, first, taps, rows, n, backwards, limit):
    """Return what ``h = tanh(sum of 0.5 h[t + tap]) + sum of e[t + row]`` gives."""
    start, end = -min(0, *rows), len(values) - max(0, *rows)
    steps = list(range(start, end))[:: -1 if backwards else 1][:n]
    states = list(first[: -min(taps)])
    for t in steps:
        total = sum(values[t + r] for r in rows)
        states.append(np.tanh(0.5 * sum(states[len(states) + tap] for tap in taps)) + total)
        if limit is not None and states[-1].sum() > limit:
            break
    return np.array(states[-min(taps) :])


@pytest.mark.parametrize("limit", [None, 4.5])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("n", [None, 2, 3])
@pytest.mark.parametrize("taps", [(-1,), (-2, -1), (-3,)])
@pytest.mark.parametrize("rows", [(0,), (-1, 1), (2,)])
def test_options(rows, taps, n, backwards, limit, linker):
    x, first = T.dmatrix(), T.dmatrix()

    def step(*args):
        row, values = args[: len(rows)], args[len(rows) :]
        new = T.tanh(0.5 * sum(values)) + sum(row)
        return new if limit is None else (new, until(new.sum() > limit))

    initial = {"initial": first, "taps": list(taps)} if taps != (-1,) else first[0]
    out, updates = scan(
        step, {"input": x, "taps": list(rows)}, initial, n_steps=n, go_backwards=backwards
    )
    assert updates == {}
    start = RNG.uniform(0, 1, (3, 2))
    found, last, length = function([x, first], [out, out[-1], out.shape[0]], mode=linker)(X, start)
    expected = by_hand(X, start, taps, rows, n, backwards, limit)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(last, expected[-1], rtol=1e-12)
    assert length == len(expected)


# --- forms of steps -------------------------------------------------------------------------------


class Recurrent:
    """A layer whose step is a method."""

    def __init__(self, kept=0.5):
        self.kept = kept
        self.w = shared(W, "w")
        self.params = [self.w]

    def step(self, row, h):
        return self.kept * h + T.tanh(T.dot(row, self.w))

    def __call__(self, row, h):
        return self.step(row, h)

    @staticmethod
    def scaled(row, h, w, kept=0.5):
        return kept * h + T.tanh(T.dot(row, w))


def forms():
    layer = Recurrent()
    x = T.dmatrix("x")
    zeros = T.zeros((2,))
    yield x, scan(layer.step, x, zeros)
    yield x, scan(layer, x, zeros)
    yield x, scan(Recurrent.scaled, x, zeros, layer.w)
    yield x, scan(functools.partial(Recurrent.scaled, kept=0.5), [x], [zeros], layer.params)
    yield x, scan(lambda e, h, w=layer.w: 0.5 * h + T.tanh(T.dot(e, w)), x, zeros)
    yield x, scan(lambda *args: Recurrent.scaled(*args), [x], [{"initial": zeros}], [layer.w])
    yield x, scan(layer.step, x, T.alloc(np.float64(0), 2))
    yield x, scan(layer.step, x, T.unbroadcast(T.alloc(np.float64(0), 1, 2), 0)[0])
    yield x, scan(layer.step, x, shared(np.zeros(2)))
    yield x, scan(layer.step, x, np.zeros(2), strict=False, n_steps=x.shape[0])
    yield x, scan(lambda e, h: ([layer.step(e, h)], {}), x, zeros)
    yield x, scan(lambda e, h: (layer.step(e, h), []), x, zeros)
    yield x, scan(lambda e, h: ([layer.step(e, h)], OrderedUpdates()), x, zeros)
    yield x, scan(layer.step, [{"input": x, "taps": 0}], [{"initial": zeros, "taps": [-1]}])


def test_forms_of_steps(linker):
    h, expected = np.zeros(2), []
    for row in X:
        h = 0.5 * h + np.tanh(row @ W)
        expected.append(h)
    for x, (out, updates) in forms():
        assert not updates
        np.testing.assert_allclose(function([x], out, mode=linker)(X), expected)


def test_masks(linker):
    """Steps that keep the value of sequences that have ended."""
    x, m = T.dtensor3("x"), T.dmatrix("m")
    switch, _ = scan(
        lambda e, k, h: T.switch(k.dimshuffle(0, "x"), T.tanh(h + e), h), [x, m],
        T.zeros_like(x[0]),
    )  # fmt: skip
    weigh, _ = scan(
        lambda e, k, h: k[:, None] * T.tanh(h + e) + (1 - k)[:, None] * h, [x, m],
        T.zeros_like(x[0]),
    )  # fmt: skip
    values = RNG.randn(4, 3, 2)
    mask = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, 0.0]])
    h, expected = np.zeros((3, 2)), []
    for e, k in zip(values, mask, strict=True):
        h = np.where(k[:, None] > 0, np.tanh(h + e), h)
        expected.append(h)
    for out in (switch, weigh):
        found = function([x, m], out, mode=linker)(values, mask)
        np.testing.assert_allclose(found, expected)


def test_updates_of_several_loops_are_joined(linker):
    a, b = shared(0.0, "a"), shared(1.0, "b")
    _, first = scan(lambda: {a: a + b}, n_steps=3)
    _, second = scan(lambda: ([], [(b, 2 * b)]), n_steps=4)
    updates = first + second
    assert isinstance(updates, OrderedUpdates)
    f = function([], [], updates=updates, mode=linker)
    f()
    assert (a.get_value(), b.get_value()) == (3, 16)
    f()
    assert (a.get_value(), b.get_value()) == (51, 256)


# --- other parts of the language inside, with gradients -------------------------------------------


def solved(x, w):
    return scan(lambda e, h, w: solve(w + 3 * T.eye(2), h + e), x, T.zeros((2,)), w)[0]


def inverted(x, w):
    step = lambda e, p, w: matrix_inverse(p + T.outer(e, e) + T.dot(w, w.T))  # noqa: E731
    return scan(step, x, T.eye(2), w)[0]


def factored(x, w):
    step = lambda e, w: cholesky(T.dot(w, w.T) + T.outer(e, e) + T.eye(2))  # noqa: E731
    return scan(step, x, non_sequences=w)[0]


def graph_in_a_loop(x, w):
    e, h, u = T.dvector(), T.dvector(), T.dmatrix()
    op = OpFromGraph([e, h, u], [T.tanh(T.dot(h, u) + e)])
    return scan(lambda e, h, w: op(e, h, w), x, T.zeros((2,)), w)[0]


def loop_in_a_graph(x, w):
    m, u = T.dmatrix(), T.dmatrix()
    out, _ = scan(lambda e, h, u: T.tanh(T.dot(h, u) + e), m, T.zeros((2,)), u)
    return OpFromGraph([m, u], [out])(x, w) * 2


def gradient_in_a_loop(x, w):
    def step(e, h, w):
        energy = T.sum(T.tanh(T.dot(w, h)) * e) + T.sum(h**4)
        return h - 0.1 * grad(energy, h)

    return scan(step, x, T.ones((2,)) / 2, w)[0]


def jacobian_in_a_loop(x, w):
    def step(e, h, w):
        new = T.tanh(T.dot(w, h) + e)
        return T.dot(jacobian(new, h), h) + e

    return scan(step, x, T.ones((2,)) / 2, w)[0]


def jacobian_of_a_loop(x, w):
    return jacobian(graph_free(x, w)[-1], w)


def graph_free(x, w):
    return scan(lambda e, h, w: T.tanh(T.dot(h, w) + e), x, T.zeros((2,)), w)[0]


@pytest.mark.parametrize(
    "loop",
    [solved, inverted, factored, graph_in_a_loop, loop_in_a_graph, gradient_in_a_loop,
     jacobian_in_a_loop, jacobian_of_a_loop],
)  # fmt: skip
def test_gradients(loop):
    verify_grad(loop, [X[:3], W], rng=RNG)


def test_second_derivatives_at_a_minimum_are_products_of_jacobians():
    """Genuine Theano 1.0.5 gives others: it adds some terms of an Euler step twice."""
    rates, start = T.dvector(), T.dvector()

    def euler(z, rates):
        a, b, c, d = (rates[k] for k in range(4))
        moved = T.stack([a * z[0] - b * z[0] * z[1], c * z[0] * z[1] - d * z[1]])
        return z + 0.02 * moved

    path, _ = scan(euler, outputs_info=start, non_sequences=rates, n_steps=5)
    at = np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0])
    wanted, by_rates = function([rates, start], [path, jacobian(path.flatten(), rates)])(*at)
    found = function([rates, start], hessian(T.sum((path - wanted) ** 2), rates))(*at)
    np.testing.assert_allclose(found, 2 * by_rates.T @ by_rates, rtol=1e-9)


def test_what_stops_gradients_inside():
    x = T.dvector()
    one = T.constant(np.float64(1))
    values = np.array([2.0, 3.0])
    cases = [
        (lambda e, h: zero_grad(h) * e, [0, 2]),
        (lambda e, h: disconnected_grad(h) * e, [0, 2]),
        (lambda e, h: h + grad_clip(5 * e, -1, 2), [5, 5]),
        (lambda e, h: grad_clip(h, -0.5, 0.5) * e, [0.5, 2]),
    ]
    for step, expected in cases:
        out, _ = scan(step, x, one)
        np.testing.assert_allclose(function([x], grad(out[-1], x))(values), expected)


def test_a_step_with_an_op_in_python(linker):
    @as_op([T.dvector], [T.dvector])
    def turned(v):
        return np.ascontiguousarray(v[::-1])

    x = T.dmatrix()
    out, _ = scan(lambda e, h: turned(h) + e, x, T.zeros((2,)))
    h, expected = np.zeros(2), []
    for row in X:
        h = h[::-1] + row
        expected.append(h)
    np.testing.assert_allclose(function([x], out, mode=linker)(X), expected)
