"""Conditions in steps of loops, and loops in branches."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, Mode, Op, function, shared
from opwise.gradient import grad
from opwise.ifelse import ifelse
from opwise.loops import scan, until

pytestmark = pytest.mark.null

VALUES = np.array([1.0, -1.0, 0.5, -0.5, 2.0])


class Counted(Op):
    """Computes ``2 * x``, and counts its runs."""

    def __init__(self):
        self.runs = 0

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        self.runs += 1
        output_storage[0][0] = np.asarray(inputs[0] * 2)

    def infer_shape(self, node, shapes):
        return shapes


def start():
    return T.constant(np.float64(1))


def is_lazy(mode):
    return mode != "DEBUG_MODE"  # which computes and compares both branches


def test_a_step_computes_the_branch_that_is_taken(mode):
    xs = T.dvector("xs")
    a, b = Counted(), Counted()
    out, _ = scan(lambda x, s: ifelse(x > 0, a(s * x), b(s) + 1), xs, start())
    f = function([xs], out, mode=mode)
    expected, state = [], 1.0
    for x in VALUES:
        state = 2 * state * x if x > 0 else 2 * state + 1
        expected.append(state)
    np.testing.assert_allclose(f(VALUES), expected)
    if is_lazy(mode):
        assert (a.runs, b.runs) == (3, 2)


def test_work_that_is_the_same_in_every_step_is_done_once(mode):
    """It is done before the loop, even if no step takes the branch."""
    xs, w = T.dvector("xs"), T.dvector("w")
    work = Counted()
    out, _ = scan(lambda x: ifelse(x > 5, work(w).sum(), x), xs)
    f = function([xs, w], out, mode=mode)
    np.testing.assert_allclose(f(VALUES, VALUES), VALUES)
    assert work.runs == 1 or not is_lazy(mode)


def test_a_step_runs_in_c_and_has_a_gradient(mode):
    xs = T.dvector("xs")
    out, _ = scan(lambda x, s: ifelse(x > 0, T.exp(s * x), T.sin(s) + x), xs, start())
    f = function([xs], [out.sum(), grad(out.sum(), xs)], mode=mode)
    _, slopes = f(VALUES)
    for k in range(len(VALUES)):
        step = np.eye(len(VALUES))[k] * 1e-6
        slope = (f(VALUES + step)[0] - f(VALUES - step)[0]) / 2e-6
        assert np.isclose(slopes[k], slope, rtol=1e-4, atol=1e-5)
    if mode == "FAST_RUN":
        assert all(f.linked.in_c)


def test_arrays_of_a_step(mode):
    """Values are handed over and copied between the steps of a loop."""
    xs, w = T.dvector("xs"), T.dmatrix("w")
    out, _ = scan(
        lambda x, s: ifelse(x > 0, T.dot(w, s) * x, ifelse(x < -0.7, s, s[::-1])), xs, T.ones((2,))
    )
    f = function([xs, w], [out, grad(out.sum(), w)], mode=mode)
    given = np.array([[0.5, 0.25], [1.0, -0.5]])
    expected, state = [], np.ones(2)
    for x in VALUES:
        state = given @ state * x if x > 0 else state if x < -0.7 else state[::-1]
        expected.append(state)
    for _ in range(2):
        np.testing.assert_allclose(f(VALUES, given)[0], expected)


def test_a_loop_in_a_branch(mode):
    c, xs = T.iscalar("c"), T.dvector("xs")
    work = Counted()
    out, _ = scan(lambda x, s: work(x) + s, xs, T.constant(np.float64(0)))
    f = function([c, xs], ifelse(c, out[-1], xs.prod()), mode=mode)
    assert np.isclose(f(0, VALUES), VALUES.prod())
    assert work.runs == 0 or not is_lazy(mode)
    assert np.isclose(f(1, VALUES), 2 * VALUES.sum())


def test_an_update_of_a_step_that_is_taken_sometimes(mode):
    xs = T.dvector("xs")
    total = shared(0.0)
    _, updates = scan(lambda x: {total: ifelse(x > 0, total + x, total)}, xs)
    f = function([xs], [], updates=updates, mode=mode)
    f(VALUES)
    f(VALUES)
    assert np.isclose(total.get_value(), 2 * 3.5)


def test_a_counter_keeps_no_rows():
    """The number of steps is not taken from rows that are kept for all steps it may take."""
    n = T.lscalar()

    def step(count, value):
        value = T.switch(T.eq(value % 2, 0), value // 2, 3 * value + 1)
        return [count + 1, value], until(T.eq(value, 1))

    (counts, _), _ = scan(
        step, outputs_info=[T.constant(np.int64(0)), n], n_steps=T.constant(np.int64(2**62))
    )
    assert function([n], counts[-1])(27) == 111


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", Mode("py", "fast_run")])
def test_an_index_that_a_branch_guards_is_not_read_before_the_loop(mode):
    x, k, h = T.dvector("x"), T.lscalar("k"), T.dscalar("h")

    def step(i, total):
        return ifelse(T.lt(k, x.shape[0]), total + x[k], total + 1.0)

    out, _ = scan(step, T.arange(20), h)
    f = function([x, k, h], out[-1], mode=mode)
    assert f(np.arange(3.0), 2, 0.0) == 40
    assert f(np.arange(3.0), 7, 0.0) == 20
