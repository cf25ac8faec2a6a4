"""Loops against loops written in Python: sequences, states, taps, conditions, updates, shapes."""

import pickle

import numpy as np
import pytest

import opwise.tensor as T
from opwise import OrderedUpdates, function, shared
from opwise.graph.traversal import ops
from opwise.loops import Scan, foldl, foldr, map, reduce, scan, until
from opwise.printing import debugprint
from opwise.random import MRG_RandomStreams, RandomStreams

pytestmark = pytest.mark.null

V = np.array([0.5, -1.0, 2.0, 3.0])
M = np.arange(12.0).reshape(4, 3) / 5


def loops_in(f):
    return [node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]


# --- sequences ------------------------------------------------------------------------------------


def test_a_step_for_each_row(mode):
    m, v = T.dmatrix("m"), T.dvector("v")
    out, updates = scan(lambda row, e: row * e, sequences=[m, v])
    assert updates == {} and isinstance(updates, OrderedUpdates)
    np.testing.assert_array_equal(function([m, v], out, mode=mode)(M, V), M * V[:, None])


def test_the_shortest_sequence_ends_the_loop(mode):
    m, v = T.dmatrix("m"), T.dvector("v")
    out, _ = scan(lambda row, e: row * e, sequences=[m, v])
    f = function([m, v], out, mode=mode)
    np.testing.assert_array_equal(f(M, V[:2]), M[:2] * V[:2, None])


def test_rows_before_and_behind(mode):
    v = T.dvector("v")
    out, _ = scan(
        lambda before, now, behind: before + 10 * now + 100 * behind,
        sequences={"input": v, "taps": [-1, 0, 1]},
    )
    found = function([v], out, mode=mode)([1, 2, 3, 4])
    np.testing.assert_array_equal(found, [321, 432])


@pytest.mark.parametrize("taps", [[-2], [2], [-1, 2], [1, 0], 1])
def test_taps_count_from_the_first_row_that_has_all(taps):
    v = T.dvector("v")
    out, _ = scan(lambda *rows: sum(rows), sequences={"input": v, "taps": taps})
    taps = taps if isinstance(taps, list) else [taps]
    steps = range(-min(0, *taps), len(V) - max(0, *taps))
    expected = [sum(V[t + tap] for tap in taps) for t in steps]
    np.testing.assert_array_equal(function([v], out)(V), expected)


def test_sequences_read_backwards(mode):
    v = T.dvector("v")
    out, _ = scan(
        lambda e, sum_: e + 2 * sum_, v, T.constant(0.0, dtype="float64"), go_backwards=True
    )
    total, expected = 0.0, []
    for e in V[::-1]:
        total = e + 2 * total
        expected.append(total)
    np.testing.assert_allclose(function([v], out, mode=mode)(V), expected)


def test_names_of_variables_inside_say_where_they_come_from():
    v, h = T.dvector("v"), T.dscalar("h")
    seen = []

    def step(*args):
        seen.extend(args)
        return args[0] + args[2]

    scan(step, {"input": v, "taps": [0, -1]}, h)
    assert [var.name for var in seen] == ["v[t]", "v[t-1]", "h[t-1]"]


# --- states ---------------------------------------------------------------------------------------


def test_a_state(mode):
    m, h, w = T.dmatrix("m"), T.dvector("h"), T.dmatrix("w")
    out, _ = scan(lambda row, h, w: T.tanh(T.dot(h, w) + row), m, h, w)
    W = np.eye(3)[::-1] * 0.3
    state, expected = np.ones(3), []
    for row in M:
        state = np.tanh(state @ W + row)
        expected.append(state)
    np.testing.assert_allclose(function([m, h, w], out, mode=mode)(M, np.ones(3), W), expected)


def test_states_with_taps(mode):
    first = T.dvector("first")
    out, _ = scan(lambda a, b: a + b, outputs_info={"initial": first, "taps": [-2, -1]}, n_steps=6)
    f = function([first], out, mode=mode)
    np.testing.assert_array_equal(f([0, 1]), [1, 2, 3, 5, 8, 13])
    np.testing.assert_array_equal(f([0, 1, 7, 7]), [1, 2, 3, 5, 8, 13])  # only two are read


def test_several_outputs_some_of_which_no_step_reads(mode):
    v = T.dvector("v")
    start = T.constant(1.0, dtype="float64")
    (a, b, c), _ = scan(
        lambda e, p, q: [p * e, p - q, {"x": p}["x"] + q], v, [start, None, {"initial": start}]
    )
    p = q = 1.0
    rows = []
    for e in V:
        p, r, q = p * e, p - q, p + q
        rows.append((p, r, q))
    found = function([v], [a, b, c], mode=mode)(V)
    np.testing.assert_allclose(found, np.transpose(rows))


def test_an_initial_value_may_have_lengths_of_1_that_the_state_has_not(mode):
    m, start = T.dmatrix("m"), T.zeros((1, 3))
    assert start.broadcastable == (True, False)
    out, _ = scan(lambda row, h: T.unbroadcast(h + row, 0), m, start)
    assert out.broadcastable == (False, False, False)
    np.testing.assert_allclose(function([m], out, mode=mode)(M)[:, 0], np.cumsum(M, axis=0))


def test_a_state_that_is_a_constant_of_the_step():
    h = T.dvector("h")
    out, _ = scan(lambda h: h, outputs_info=h, n_steps=3)
    np.testing.assert_array_equal(function([h], out)(V), [V, V, V])


# --- the number of steps --------------------------------------------------------------------------


def test_the_number_of_steps_may_be_computed(mode):
    n, h = T.iscalar("n"), T.dscalar("h")
    out, _ = scan(lambda h: 2 * h, outputs_info=h, n_steps=n + 1)
    f = function([n, h], out, mode=mode)
    np.testing.assert_array_equal(f(2, 1.0), [2, 4, 8])
    np.testing.assert_array_equal(f(-1, 1.0), [])


def test_no_step(mode):
    m, h = T.dmatrix("m"), T.dvector("h")
    (a, b), _ = scan(lambda row, h: [h + row, T.outer(row, h)], m, [h, None])
    f = function([m, h], [a, b, a.shape, b.shape], mode=mode)
    a, b, a_shape, b_shape = f(M[:0], V[:3])
    assert a.shape == tuple(a_shape) == (0, 3) and b.shape == tuple(b_shape) == (0, 3, 3)


def test_one_step_needs_no_loop():
    h = T.dscalar("h")
    out, updates = scan(lambda h: 2 * h, outputs_info=h, n_steps=1)
    f = function([h], out)
    assert loops_in(f) == [] and updates == {}
    np.testing.assert_array_equal(f(3.0), [6.0])


def test_a_loop_ends_after_the_step_in_which_its_condition_holds(mode):
    h, limit = T.dscalar("h"), T.dscalar("limit")
    out, _ = scan(lambda h: (2 * h, until(2 * h > limit)), outputs_info=h, n_steps=1000)
    f = function([h, limit], [out, out.shape], mode=mode)
    np.testing.assert_array_equal(f(1.0, 40)[0], [2, 4, 8, 16, 32, 64])
    np.testing.assert_array_equal(f(1.0, 40)[1], [6])
    np.testing.assert_array_equal(f(1.0, 0)[0], [2])


def test_a_condition_without_outputs():
    total = shared(0.0)
    outputs, updates = scan(lambda: ({total: total + 1}, until(total + 1 >= 5)), n_steps=100)
    assert outputs is None
    function([], updates=updates)()
    assert total.get_value() == 5


# --- shared variables and random numbers ----------------------------------------------------------


def test_shared_variables_are_found_and_updated(mode):
    total, scale = shared(np.zeros(2), "total"), shared(3.0, "scale")
    out, updates = scan(lambda: ([total.sum()], [(total, total + scale)]), n_steps=3)
    assert list(updates) == [total]
    f = function([], out, updates=updates, mode=mode)
    np.testing.assert_array_equal(f(), [0, 6, 12])
    np.testing.assert_array_equal(total.get_value(), [9, 9])
    scale.set_value(0.0)
    np.testing.assert_array_equal(f(), [18, 18, 18])


@pytest.mark.parametrize("streams", [RandomStreams, MRG_RandomStreams])
def test_each_step_draws_other_numbers(streams, mode):
    stream = streams(234)
    out, updates = scan(lambda: stream.uniform((2,)), n_steps=3)
    f = function([], out, updates=updates, mode=mode)
    stream = streams(234)
    draw = function([], stream.uniform((2,)))
    for _ in range(2):
        np.testing.assert_array_equal(f(), [draw(), draw(), draw()])


def test_numbers_drawn_before_the_loop_are_the_same_in_each_step():
    stream = RandomStreams(7)
    x = T.dvector("x")
    drawn = stream.binomial(x.shape)
    out, updates = scan(lambda drawn: drawn, non_sequences=drawn, n_steps=2)
    f = function([x], [drawn, out], updates=updates)
    once, rows = f(np.ones(30))
    np.testing.assert_array_equal(rows, [once, once])


# --- loops in loops, and what surrounds them ------------------------------------------------------


def test_loops_in_loops(mode):
    m, w = T.dmatrix("m"), T.dscalar("w")

    def row(r, h):
        inner, _ = scan(lambda e, g: w * g + e, r, h)
        return inner[-1]

    out, _ = scan(row, m, T.constant(0.0, dtype="float64"))
    total, expected = 0.0, []
    for r in M:
        for e in r:
            total = 0.5 * total + e
        expected.append(total)
    np.testing.assert_allclose(function([m, w], out, mode=mode)(M, 0.5), expected)


def test_what_is_the_same_in_every_step_is_computed_once():
    v, w = T.dvector("v"), T.dmatrix("w")
    out, _ = scan(lambda e: T.exp(w).sum() * e, v)
    step = out.owner.op
    assert T.exp not in [node.op for node in ops(step.inputs, step.outputs)]
    W = np.ones((2, 2))
    np.testing.assert_allclose(function([v, w], out)(V, W), np.exp(W).sum() * V)


def test_non_sequences_that_no_step_reads_count_as_read():
    v, w = T.dvector("v"), T.dmatrix("w")
    out, _ = scan(lambda e, w: 2 * e, v, non_sequences=w)
    np.testing.assert_array_equal(function([v, w], out)(V, np.ones((2, 2))), 2 * V)


def test_equal_loops_run_once():
    v, h = T.dvector("v"), T.dscalar("h")
    a, _ = scan(lambda e, h: h * e, v, h)
    b, _ = scan(lambda e, h: h * e, v, h)
    c, _ = scan(lambda e, h: h + e, v, h)
    first, equal, other = (out.owner.inputs[0].owner.op for out in (a, b, c))
    assert first == equal and hash(first) == hash(equal)
    assert hash(first) != hash(other)  # dicts do not compare their steps
    assert hash(pickle.loads(pickle.dumps(first))) == hash(first)
    f = function([v, h], [a, b, c])
    (loop,) = loops_in(f)
    assert len(loop.layout.taps) == 2


def test_functions_with_loops_can_be_pickled():
    v = T.dvector("v")
    f = function([v], scan(lambda e, s: s + e, v, T.constant(0.0, dtype="float64"))[0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(V), np.cumsum(V))


def test_the_step_is_printed_below_the_graph():
    v = T.dvector("v")
    out, _ = scan(lambda e, s: s * e, v, T.constant(0.0, dtype="float64"), name="product")
    printed = debugprint(out, file="str")
    assert "for{cpu,product} [id B]" in printed
    assert "Inner graphs of the scan ops:" in printed
    assert "v[t]" in printed.partition("Inner graphs")[2]


def test_map_and_folds(mode):
    v, m = T.dvector("v"), T.dmatrix("m")
    start = T.constant(0.0, dtype="float64")
    outputs = [
        map(lambda row: row.sum(), m)[0],
        reduce(lambda e, total: total + e, v, start)[0],
        foldl(lambda e, total: e + 2 * total, v, start)[0],
        foldr(lambda e, total: e + 2 * total, v, start)[0],
        *reduce(lambda e, a, b: [a + e, b * e], v, [start, start + 1])[0],
    ]
    found = function([v, m], outputs, mode=mode)(V, M)
    left = right = 0.0
    for e in V:
        left = e + 2 * left
    for e in V[::-1]:
        right = e + 2 * right
    expected = [M.sum(axis=1), V.sum(), left, right, V.sum(), V.prod()]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted)


def test_return_list():
    v = T.dvector("v")
    assert isinstance(scan(lambda e: e, v)[0], T.TensorVariable)
    assert isinstance(scan(lambda e: [e], v)[0], T.TensorVariable)
    assert len(scan(lambda e: e, v, return_list=True)[0]) == 1
    assert len(scan(lambda e: (e, -e), v)[0]) == 2


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "bool", "complex64", "float16"])
def test_dtypes(dtype):
    v = T.TensorType(dtype, (False,))("v")
    out, _ = scan(lambda e, s: T.cast(s + e, dtype), v, T.zeros((), dtype))
    values = np.array([1, 0, 1, 1], dtype)
    found = function([v], out)(values)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.add.accumulate(values).astype(dtype))
