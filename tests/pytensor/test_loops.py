"""Loops, branches and graphs in Ops under opwise against PyTensor's perform."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.scan import until  # noqa: E402

import opwise.pytensor  # noqa: E402

pytestmark = pytest.mark.c

try:
    from pytensor.conditional.op import ifelse
except ImportError:
    from pytensor.ifelse import ifelse


def scan(*args, **kwargs):
    return pytensor.scan(*args, return_updates=False, **kwargs)


def test_states_sequences_and_results(same):
    x, a = pt.matrix("x"), pt.vector("a")
    rows, squares = scan(
        lambda row, last, a: [last * 0.5 + row * a, row.sum() ** 2],
        sequences=x, outputs_info=[pt.zeros(3), None], non_sequences=a,
    )  # fmt: skip
    given = [np.random.default_rng(0).normal(size=(6, 3)), np.arange(3.0)]
    outputs = [rows, squares, rows[-1], rows[2:4].sum(), squares.sum()]
    same([x, a], outputs, given)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_numbers_of_steps(same, steps):
    n, x = pt.lscalar("n"), pt.scalar("x")
    powers = scan(lambda last, x: last * x, outputs_info=pt.ones(()), non_sequences=x, n_steps=n)
    same([n, x], [powers, powers.sum()], [np.array(steps), np.array(1.5)])


def test_several_taps(same):
    first, x = pt.vector("first"), pt.vector("x")
    fibonacci = scan(
        lambda now, later, b, a: now * later + a + 0.5 * b,
        sequences={"input": x, "taps": [0, 1]}, outputs_info={"initial": first, "taps": [-3, -1]},
    )  # fmt: skip
    same([first, x], [fibonacci, fibonacci[-1]], [np.array([1.0, 2, 3]), np.linspace(0, 1, 9)])


def test_backwards_and_early_ends(same):
    x = pt.vector("x")
    back = scan(lambda v, s: s + v, sequences=x, outputs_info=pt.zeros(()), go_backwards=True)
    ended, kept = scan(
        lambda v, s: ([s + v, v * 2], until(s + v > 3)),
        sequences=x,
        outputs_info=[pt.zeros(()), None],
    )
    same([x], [back, ended, kept, ended[-1]], [np.arange(6.0)])


@pytest.mark.parametrize("taps", [[-1], [-2, -1], [-3, -1]])
def test_gradients(same, taps):
    x, a, first = pt.matrix("x"), pt.vector("a"), pt.matrix("first")
    rows = scan(
        lambda row, *rest: pt.tanh(sum(rest[:-1]) * rest[-1] + row),
        sequences=x, outputs_info={"initial": first if taps != [-1] else first[0], "taps": taps},
        non_sequences=a,
    )  # fmt: skip
    cost = (rows**2).sum() + rows[-1].sum()
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=(-min(taps), 3))]
    same([x, a, first], [cost, *pt.grad(cost, [x, a, first])], given)


def test_second_derivatives(same):
    x = pt.vector("x")
    rows = scan(lambda v, s: pt.tanh(s * v + v), sequences=x, outputs_info=pt.ones(()))
    cost = (rows**2).sum()
    gradient = pt.grad(cost, x)
    same([x], [gradient, pt.grad(gradient.sum(), x)], [np.linspace(0.1, 1, 5)])


def test_loops_in_loops(same):
    x = pt.matrix("x")

    def outer(row, total):
        return total + scan(lambda v, s: s * 0.9 + v, sequences=row, outputs_info=pt.zeros(()))[-1]

    totals = scan(outer, sequences=x, outputs_info=pt.zeros(()))
    same([x], [totals, pt.grad(totals[-1], x)], [np.random.default_rng(0).normal(size=(3, 4))])


def test_truncated_gradients(same):
    x = pt.vector("x")
    rows = scan(
        lambda v, s: pt.tanh(s + v), sequences=x, outputs_info=pt.ones(()), truncate_gradient=2
    )
    same([x], [pt.grad(rows.sum(), x)], [np.linspace(0.1, 1, 5)])


def test_branches(same):
    c, x, y = pt.bscalar("c"), pt.vector("x"), pt.vector("y")
    outputs = [ifelse(c, x, y), *ifelse(c, [x + 1, y * 2], [x * 3, y])]
    for value in (0, 1):
        same([c, x, y], outputs, [np.array(value, "int8"), np.arange(3.0), np.ones(2)])


def test_graphs_in_ops(same):
    x, y = pt.vector("x"), pt.scalar("y")
    op = OpFromGraph([x, y], [pt.exp(x) * y, x.sum() + y])
    a, b = pt.vector("a"), pt.scalar("b")
    first, second = op(a, b)
    outputs = [first, second, *pt.grad(first.sum() * second, [a, b])]
    same([a, b], outputs, [np.linspace(0, 1, 4), np.array(2.0)])


def test_softmax_and_the_like(same):
    x, y = pt.matrix("x"), pt.matrix("y")
    outputs = [pt.special.softmax(x, axis=1), pt.special.log_softmax(x, axis=0), pt.logsumexp(x),
               pt.special.xlogy(x, y), pt.logaddexp(x, y)]  # fmt: skip
    given = np.random.default_rng(0).uniform(0.1, 2, size=(2, 3, 4))
    same([x, y], [*outputs, pt.grad(outputs[0][:, 0].sum(), x)], list(given))


def test_loops_have_no_performed_steps():
    x = pt.vector("x")
    rows = scan(lambda v, s: pt.tanh(s + v), sequences=x, outputs_info=pt.ones(()))
    f = pytensor.function([x], [rows, pt.grad(rows.sum(), x)], mode="OPWISE")
    assert opwise.pytensor.performed(f) == ()
    assert all(opwise.pytensor.own_function(f).linked.in_c)
