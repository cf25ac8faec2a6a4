"""Short loops over scalars become their steps in a row."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Constant, Mode, function, grad, shared
from opwise.compile import DebugMode
from opwise.graph.traversal import ancestors
from opwise.loops import Scan, reduce, scan, until
from opwise.loops.rules import unrolling

pytestmark = pytest.mark.null

FAST = Mode("py", "fast_run")
PLAIN = Mode("py", None)
X, C = T.dscalar("x"), T.dscalar("c")


def loops(f):
    """Return how many loops a function runs."""
    return sum(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort())


def fibonacci(first, n):
    rows = list(first)
    for _ in range(n):
        rows.append(0.5 * rows[-1] + rows[-2])
    return rows[len(first) :]


def logistic(x, n):
    rows = [x]
    for _ in range(n):
        rows.append(3.5 * rows[-1] * (1 - rows[-1]))
    return rows[1:]


def growth(h):
    return 3.5 * h * (1 - h)


#: name: (what is computed of X and C, the same by Python)
CASES = {
    "last": (scan(growth, outputs_info=X, n_steps=4)[0][-1], lambda x, c: logistic(x, 4)[-1]),
    "all": (scan(growth, outputs_info=X, n_steps=4)[0], lambda x, c: logistic(x, 4)),
    "some": (scan(growth, outputs_info=X, n_steps=4)[0][1:3], lambda x, c: logistic(x, 4)[1:3]),
    "two steps before": (
        scan(lambda a, b: 0.5 * b + a, n_steps=3,
             outputs_info={"initial": T.stack([X, C]), "taps": [-2, -1]})[0],
        lambda x, c: fibonacci([x, c], 3),
    ),
    "a sequence": (
        scan(lambda i, h: h * C + i, T.arange(3, dtype="float64"), X)[0],
        lambda x, c: [x * c, x * c * c + 1, (x * c * c + 1) * c + 2],
    ),
    "several outputs": (
        sum(scan(lambda h, q: [h * q, h + q, h - C], outputs_info=[X, C, None], n_steps=2)[0]),
        lambda x, c: [x * c + x + c + x - c, x * c * (x + c) + x * c + x + c + x * c - c],
    ),
    "a number of each step": (
        scan(lambda h: [h, T.constant(np.float64(2))], outputs_info=[X, None], n_steps=2)[0][1],
        lambda x, c: [2.0, 2.0],
    ),
    "a sum": (
        reduce(lambda a, b: a * C + b, T.stack([X, C, X]), T.constant(np.float64(0)))[0],
        lambda x, c: x * c + c * c + x * c,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_steps_are_the_same(name, mode):
    out, expected = CASES[name]
    f = function([X, C], out, mode=mode, on_unused_input="ignore")
    np.testing.assert_allclose(f(0.3, 1.5), expected(0.3, 1.5), 1e-12)
    if mode != "DEBUG_MODE":  # it keeps the loop, unless other rewrites take all out of it
        assert loops(f) == (mode == "FAST_COMPILE")
    assert loops(function([X, C], out, mode=PLAIN, on_unused_input="ignore")) == 1


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    out = CASES[name][0]
    options = {"disconnected_inputs": "ignore"}
    for wanted in (grad(out.sum(), X, **options), grad(out.sum(), C, **options)):
        f, plain = (function([X, C], wanted, mode=m, on_unused_input="ignore")
                    for m in (FAST, PLAIN))  # fmt: skip
        np.testing.assert_allclose(f(0.3, 1.5), plain(0.3, 1.5), 1e-12)


def test_gradients_are_unrolled_too():
    out, _ = scan(lambda h: T.tanh(h) + C, outputs_info=X, n_steps=3)
    f = function([X, C], grad(out[-1], X), mode=FAST)
    assert loops(f) == 0
    h1 = np.tanh(0.3) + 1.5
    slope = np.prod([1 - np.tanh(h) ** 2 for h in (0.3, h1, np.tanh(h1) + 1.5)])
    np.testing.assert_allclose(f(0.3, 1.5), slope, 1e-9)


def test_a_graph_grows_by_few_applys():
    """The gradient of 16 Applys is computed by a loop, or by few Applys."""
    for n in (2, 4, 8, 16):
        out, _ = scan(lambda h: T.tanh(h), outputs_info=X, n_steps=n)
        f = function([X], grad(out[-1], X), mode=Mode("py", "fast_run").excluding("fusion"))
        assert len(f.maker.fgraph.apply_nodes) <= 5 * unrolling.MOST_APPLYS


@pytest.mark.parametrize(
    "make",
    [
        lambda: scan(growth, outputs_info=X, n_steps=40)[0],
        lambda: scan(growth, outputs_info=X, n_steps=T.iscalar("n"))[0],
        lambda: scan(lambda h: (growth(h), until(h > 1)), outputs_info=X, n_steps=3)[0],
        lambda: scan(growth, outputs_info=X * T.ones(3), n_steps=3)[0],
        lambda: scan(growth, outputs_info=X, n_steps=3, profile=True)[0],
        lambda: scan(growth, outputs_info=X, n_steps=3, mode=PLAIN)[0],
        lambda: scan(lambda e, h: e * h, T.dvector("v"), X, n_steps=3)[0],
    ],
    ids=["long", "any number", "until", "arrays", "profiled", "with a mode", "unknown rows"],
)
def test_other_loops_stay(make):
    out = make()
    inputs = [v for v in ancestors([out]) if v.owner is None and not isinstance(v, Constant)]
    assert loops(function(inputs, out, mode=FAST)) == 1


def test_debug_mode_and_excluding_keep_the_loop():
    out, _ = CASES["last"]
    for mode in (DebugMode(), FAST.excluding("scanOp_unroll"), FAST.excluding("scan")):
        f = function([X], out, mode=mode)
        assert f(0.3) == pytest.approx(logistic(0.3, 4)[-1])
        assert loops(f) == 1


def test_updates_of_shared_variables(mode):
    s = shared(np.float64(1))
    _, updates = scan(lambda: {s: s * 2}, n_steps=3)
    f = function([], updates=updates, mode=mode)
    f()
    f()
    assert s.get_value() == 64
    assert loops(f) == (mode in ("FAST_COMPILE", "DEBUG_MODE"))
