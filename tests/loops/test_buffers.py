"""``theano.sandbox.scan.scan``: loops whose states are in buffers that the caller gives."""

import numpy as np
import pytest

import theano
import theano.tensor as tt
from opwise.loops import Scan
from theano.sandbox.scan import scan

pytestmark = pytest.mark.null


def _scans(f):
    return [node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]


def test_a_buffer_of_one_row_gives_the_last_value():
    x = tt.vector("x")
    out, updates = scan(lambda a: a * 2, states=tt.unbroadcast(tt.shape_padleft(x), 0), n_steps=5)
    assert not updates
    np.testing.assert_array_equal(theano.function([x], out)([1.0, 3.0]), [[32.0, 96.0]])


def test_a_buffer_of_all_rows_begins_with_the_initial_value():
    x = tt.vector("x")
    buffer = tt.set_subtensor(tt.alloc(tt.constant(0.0), 6, x.shape[0])[0], x)
    out, _ = scan(lambda a: a + 1, states=buffer, n_steps=5)
    values = theano.function([x], out)([10.0])
    np.testing.assert_array_equal(values.ravel(), [10, 11, 12, 13, 14, 15])


@pytest.mark.parametrize("rows", range(1, 9))
@pytest.mark.parametrize("known", [True, False])
def test_a_buffer_gives_as_many_last_rows_as_it_has(rows, known):
    x, n = tt.vector("x"), tt.iscalar("n")
    buffer = tt.set_subtensor(tt.zeros((rows, x.shape[0]))[0], x)
    out, _ = scan(lambda a: 2 * a, states=buffer, n_steps=5 if known else n)
    f = theano.function([x, n], out, on_unused_input="ignore")
    whole = np.outer(2.0 ** np.arange(6), [1, 3])
    np.testing.assert_array_equal(f([1.0, 3.0], 5), whole[-rows:])


def test_one_step_gives_one_row():
    x = tt.vector("x")
    buffer = tt.set_subtensor(tt.zeros((2, x.shape[0]))[0], x)
    out, _ = scan(lambda a: 2 * a, states=buffer, n_steps=1)
    np.testing.assert_array_equal(theano.function([x], out)([1.0, 3.0]), [[2.0, 6.0]])


def test_a_buffer_of_a_row_for_each_step_has_no_initial_value():
    n, w = tt.iscalar("n"), theano.shared(3.0)
    out, _ = scan(
        lambda s, a, factor: a * factor + s,
        [tt.arange(n).astype("float64")],
        [tt.alloc(np.float64(1), n)],
        [w],
        n_steps=n,
    )
    f = theano.function([n], out)
    np.testing.assert_array_equal(f(4), [3, 10, 32, 99])
    np.testing.assert_array_equal(f(2), [3, 10])


def test_taps_results_and_their_last_rows():
    start = tt.vector("start")
    buffer = tt.set_subtensor(tt.zeros((7,))[:2], start)
    (rows, double, last), _ = scan(
        lambda a, b: [a + b, 2 * b, 3 * b],
        states=[{"membuf": buffer, "taps": [-2, -1]}, None, {"steps": 2}],
        n_steps=5,
    )
    whole, doubles, two = theano.function([start], [rows, double, last])([0.0, 1.0])
    np.testing.assert_array_equal(whole, [0, 1, 1, 2, 3, 5, 8])
    np.testing.assert_array_equal(doubles, [2, 2, 4, 6, 10])
    np.testing.assert_array_equal(two, [9, 15])


def test_outputs_without_states():
    x = tt.matrix("x")
    (rows, sums), updates = scan(lambda row: [row, row.sum()], sequences=[x], n_steps=2)
    got, added = theano.function([x], [rows, sums])(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(got, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(added, [1, 5])
    assert not updates


def test_a_condition_ends_the_loop():
    x = tt.vector("x")
    first = tt.unbroadcast(tt.shape_padleft(x), 0)
    count = tt.unbroadcast(tt.shape_padleft(tt.constant(0.0)), 0)
    (values, counted), _ = scan(
        lambda a, c: ([a * 2, c + 1], theano.scan_module.until(a.sum() > 20)),
        states=[first, count],
        n_steps=50,
    )
    got = theano.function([x], [values[0], counted[0]])([1.0, 2.0])
    np.testing.assert_array_equal(got[0], [16, 32])
    assert got[1] == 4


def test_shared_variables_are_updated():
    total = theano.shared(1.0)
    out, updates = scan(
        lambda a: ([a + total], {total: total * 2}), states=tt.zeros((4,)), n_steps=3
    )
    f = theano.function([], out, updates=updates)
    np.testing.assert_array_equal(f(), [0, 1, 3, 7])
    assert total.get_value() == 8


@pytest.mark.parametrize("rows", range(1, 5))
def test_gradients(rows):
    x = tt.vector("x")
    buffer = tt.set_subtensor(tt.zeros((rows, x.shape[0]))[0], x)
    out, _ = scan(lambda a: a**2, states=buffer, n_steps=3)
    g = theano.function([x], tt.grad(out.sum(), x))
    powers = 2.0 ** np.arange(4)[-rows:]
    wanted = [(powers * b ** (powers - 1)).sum() for b in (1.0, 1.5)]
    np.testing.assert_allclose(g([1.0, 1.5]), wanted)


def test_one_row_is_kept_if_the_buffer_has_one():
    x = tt.vector("x")
    out, _ = scan(lambda a: tt.tanh(a), states=tt.unbroadcast(tt.shape_padleft(x), 0), n_steps=50)
    (loop,) = _scans(theano.function([x], out[0]))
    assert loop.op.layout.kept == (1,)


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="needs n_steps"):
        scan(lambda a: a, states=tt.zeros((2,)))
    with pytest.raises(ValueError, match="no 'membuf'"):
        scan(lambda a: a, states={"taps": [-1]}, n_steps=3)
