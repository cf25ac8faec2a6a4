"""Loops over the same steps become one, and what is equal in a loop is there once."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, as_op, function, grad, shared
from opwise.loops import Scan, scan, until
from opwise.loops.rules import merging
from opwise.random import MRG_RandomStreams
from opwise.tensor import Dot
from opwise.tensor.blas import Dot22, Gemv

pytestmark = pytest.mark.null

PLAIN = Mode("py", None)
V = np.array([0.5, -1.0, 2.0, 1.5])
M = np.random.RandomState(0).randn(5, 3)
SQUARE = np.random.RandomState(1).randn(3, 3) / 2


def loops(f):
    return [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]


def is_rewritten(mode):
    return mode != "FAST_COMPILE"


def check(inputs, outputs, values, mode="FAST_RUN"):
    """Compile outputs under a mode, compare with the graph as written, and return the loops."""
    f = function(inputs, outputs, mode=mode)
    expected = function(inputs, outputs, mode=PLAIN)(*values)
    for _ in range(2):
        for a, b in zip(f(*values), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    return loops(f)


# --- two loops ------------------------------------------------------------------------------------


def test_light_loops_over_the_same_steps_are_one(mode):
    v, h = T.dvectors("vh")
    a, _ = scan(lambda e, s: T.tanh(e + s), v, h[0], name="first")
    (b, c), _ = scan(lambda e, x, y: [x * e, x + y, y - e][:2], v, [h[1], h[2]], name="second")
    found = check([v, h], [a, b, c], [V, V], mode)
    if is_rewritten(mode):
        (loop,) = found
        assert loop.name in ("first&second", "second&first")
        assert (loop.layout.sequences, len(loop.layout.taps)) == (1, 3)


def test_loops_with_a_fixed_number_of_steps():
    h = T.dvector()
    a, _ = scan(lambda s: s * 0.5, outputs_info=h[0], n_steps=40)
    (b, c), _ = scan(lambda s, t: [s + t, s], outputs_info=[h[1], h[2]], n_steps=40)
    (loop,) = check([h], [a, b[-1], c], [V])
    assert sorted(loop.layout.kept, key=str) == [1, None, None]


def test_loops_that_one_condition_ends():
    v, h = T.dvectors("vh")
    ends = until(h[0] > 1e9)
    outputs = [
        scan(step, v, h[1])[0]
        for step in (
            lambda e, s: (e + s, until(e > 1.75)),
            lambda e, s: (e * s, until(e > 1.75)),
            lambda e, s: (e - s, until(s > 1.75)),
            lambda e, s: (e - 2 * s, ends),
        )
    ]
    assert len(check([v, h], outputs[:2], [V, V])) == 1
    assert len(check([v, h], outputs, [V, V])) == 3


def test_three_loops_are_one():
    v, h = T.dvectors("vh")
    outputs = [scan(lambda e, s, k=k: e * s + k, v, h[k])[0] for k in range(3)]
    assert len(check([v, h], outputs, [V, V])) == 1


def test_a_loop_that_needs_another_one_follows_it():
    v, h = T.dvectors("vh")
    a, _ = scan(lambda e, s: T.tanh(e + s), v, h[0])
    b, _ = scan(lambda e, s: e * s, v, a[-1])
    c, _ = scan(lambda e, s: e - s, a, h[1])
    found = check([v, h], [b, c], [V, V])
    assert len(found) == 2


def test_pairs_that_would_need_each_other_are_not_both_joined():
    """a and b have 40 steps, c and d 50; d needs a, and b needs c."""
    h = T.dvector()
    a = scan(lambda s: T.tanh(s), outputs_info=h[0], n_steps=40)[0][-1]
    c = scan(lambda s: T.sin(s), outputs_info=h[1], n_steps=50)[0][-1]
    d = scan(lambda s: s * 0.5, outputs_info=a, n_steps=50)[0][-1]
    b = scan(lambda s: s * 0.25, outputs_info=c, n_steps=40)[0][-1]
    assert len(check([h], [d, b], [V])) == 3


def test_loops_in_a_row_beside_others_are_joined_in_pairs():
    h = T.dvector()
    ends = []
    for k in range(2):
        s = h[k]
        for _ in range(4):
            s = scan(lambda s, k=k: T.tanh(s * (k + 2)), outputs_info=s, n_steps=40)[0][-1]
        ends.append(s)
    found = check([h], ends, [V])
    assert [len(loop.layout.taps) for loop in found] == [2, 2, 2, 2]


@pytest.mark.parametrize("n", [3, 6])
def test_all_loops_are_joined_at_once(n, monkeypatch):
    """The number of comparisons does not grow with that of the loops."""
    compared = []
    known = merging._known
    monkeypatch.setattr(merging, "_known", lambda *args: compared.append(args) or known(*args))
    h = T.dvector()
    outputs = [
        scan(lambda s, k=k: T.tanh(s * (k + 2)), outputs_info=h[0], n_steps=40)[0] for k in range(n)
    ]
    assert len(check([h], outputs, [V])) == 1
    assert [len(nodes) for nodes, _ in compared] == [n]


def test_gradients_of_loops():
    v, h = T.dvectors("vh")
    a, _ = scan(lambda e, s: T.tanh(e + s), v, h[0])
    b, _ = scan(lambda e, s: T.sin(e) * s, v, h[1])
    assert len(check([v, h], grad(a.sum() * b[-1], [v, h]), [V, V])) == 2


def heavy(rows, matrix, first):
    return scan(lambda row, s: T.tanh(T.dot(s, matrix) + row), rows, first)[0]


def test_products_with_different_matrices_stay_apart():
    m, a, b = T.dmatrices("mab")
    outputs = [heavy(m, w, T.zeros((3,))) for w in (a, b)]
    assert len(check([m, a, b], outputs, [M, SQUARE, SQUARE.T])) == 2
    light, _ = scan(lambda row, s: row + s, m, T.zeros((3,)))
    assert len(check([m, a], [outputs[0], light], [M, SQUARE])) == 2


def test_work_on_arrays_stays_apart_unless_it_is_shared():
    m, h = T.dmatrix(), T.dvector()
    a, _ = scan(lambda row, s: row + s, m, h)
    b, _ = scan(lambda row, s: row * s, m, h)
    (c, d), _ = scan(lambda row, s: [row + s, (row + s).sum()], m, [h, None])
    assert len(check([m, h], [a, b], [M, V[:3]])) == 2
    assert len(check([m, h], [a, c, d], [M, V[:3]])) == 1


def test_products_that_loops_share_are_computed_once():
    m, w = T.dmatrices("mw")
    first = heavy(m, w, T.zeros((3,)))

    def step(row, s):
        new = T.tanh(T.dot(s, w) + row)
        return [new, (new**2).sum()]

    (second, norms), _ = scan(step, m, [T.zeros((3,)), None])
    (loop,) = check([m, w], [first, second, norms], [M, SQUARE])
    assert (len(loop.layout.taps), loop.layout.results) == (1, 1)
    step = function(loop.inputs, loop.outputs)
    products = [n for n in step.maker.fgraph.toposort() if isinstance(n.op, Dot | Gemv | Dot22)]
    assert len(products) == 1


def test_loops_that_differ_in_number_or_settings_stay_apart():
    v, w, h = T.dvectors("vwh")
    a, _ = scan(lambda e, s: e * s, v, h[0])
    others = {
        "number": scan(lambda e, s: e + s, w, h[0])[0],
        "mode": scan(lambda e, s: e + s, v, h[0], mode="FAST_COMPILE")[0],
        "until": scan(lambda e, s: (e + s, until(s > 1e9)), v, h[0])[0],
    }
    for b in others.values():
        given = ([v, h], [V, V]) if b is not others["number"] else ([v, w, h], [V, V[:2], V])
        assert len(check(given[0], [a, b], given[1])) == 2


def test_a_step_in_python_keeps_no_other_one_from_running_in_c():
    @as_op([T.dscalar], [T.dscalar])
    def doubled(e):
        return np.asarray(2 * e)

    v, h = T.dvectors("vh")
    a, _ = scan(lambda e, s: doubled(s) + e, v, h[0])
    b, _ = scan(lambda e, s: e * s, v, h[0])
    assert len(check([v, h], [a, b], [V, V])) == 2


def test_random_states_and_updates():
    v = T.dvector()

    def compiled(mode):
        streams = MRG_RandomStreams(5)
        count = shared(0)
        a, updates = scan(lambda e, s: e * s + streams.uniform((), dtype="float64"), v, v[0])
        b, more = scan(lambda e, s: (e + s + count, {count: count + 1}), v, v[1])
        f = function([v], [a, b], updates=updates + more, mode=mode)
        return f, count

    f, count = compiled("FAST_RUN")
    g, other = compiled(PLAIN)
    for _ in range(2):
        for x, y in zip(f(V), g(V), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-14)
    assert count.get_value() == other.get_value() == 8


def test_loops_that_differ_only_in_variables_are_one_apply():
    v = T.dvector()
    a, b = (scan(lambda e, s: T.tanh(e + s), v, v[0])[0] for _ in range(2))
    assert len(check([v], [a, b], [V])) == 1


# --- in one loop ----------------------------------------------------------------------------------


def test_equal_inputs_states_and_results_are_there_once(mode):
    v, w, c = T.dvectors("vwc")

    def step(x, y, z, a, b, d, p, q):
        return [a * x + p.sum(), b * y + q.sum(), d * z + p.sum(), x + a, y + b, z + d]

    outputs, _ = scan(step, [v, v, w], [v[0], v[0], v[0], None, None, None], [c, c])
    found = check([v, w, c], outputs, [V, V[::-1].copy(), V], mode)
    if is_rewritten(mode):
        (loop,) = found
        layout = loop.layout
        assert (layout.sequences, len(layout.taps), layout.results) == (2, 2, 2)
        assert len(loop.step_inputs.constants) == 1


@pytest.mark.parametrize(
    ("step", "states"),
    [
        (lambda a, b: [a * 2, b * 2], 1),
        (lambda a, b: [a * b, b * a], 1),
        (lambda a, b: [a + b, a - b], 2),
        (lambda a, b: [b, b + 1], 2),
        (lambda a, b: [T.exp(-a), T.exp(-b)], 1),
        (lambda a, b: [b * 1.5, a * 1.5], 1),
    ],
)
def test_states_that_begin_alike(step, states):
    h = T.dvector()
    outputs, _ = scan(step, outputs_info=[h, h], n_steps=6)
    (loop,) = check([h], outputs, [V])
    assert len(loop.layout.taps) == states


def test_states_with_other_taps_stay_apart():
    h = T.dvector()
    outputs, _ = scan(
        lambda a, b, c, d: [a + b, c + d],
        outputs_info=[{"initial": h, "taps": [-2, -1]}, {"initial": h, "taps": [-1, -2]}],
        n_steps=5,
    )
    (loop,) = check([h], outputs, [V[:2]])
    assert len(loop.layout.taps) == 2


def test_a_constant_is_part_of_the_step():
    v = T.dvector()
    factor = T.constant(2.0) * 3
    out, _ = scan(lambda e, s, c: (s + e) * c / 6, v, v[0], factor)
    (loop,) = check([v], [out], [V])
    assert loop.step_inputs.constants == []


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count"),
    [("scan", 2), ("scanOp_merge", 2), ("scan_merge_inouts", 1), ("scanOp_save_mem", 1)],
)
def test_the_rewrites_have_their_legacy_names(name, count):
    v, h = T.dvectors("vh")
    a, _ = scan(lambda e, s: T.tanh(e + s), v, h[0])
    b, _ = scan(lambda e, s: e * s, v, h[0])
    found = check([v, h], [a, b], [V, V], Mode("c|py", "fast_run").excluding(name))
    assert len(found) == count
    sequences = [loop.layout.sequences for loop in found]
    assert sequences == ([1, 1] if count == 2 else [1 + (name == "scan_merge_inouts")])
