"""Loops that keep only the rows that are read: their results, how many they keep, bytes."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, grad, shared
from opwise.compile import DeepCopyOp, optdb
from opwise.config import change_flags
from opwise.gradient import hessian
from opwise.loops import Scan, foldl, scan, until
from opwise.loops import op as scan_op
from opwise.random import MRG_RandomStreams

pytestmark = pytest.mark.null

PLAIN = Mode("py", None)
V = np.array([0.5, -1.0, 2.0])
W = np.array([1.5, 0.25, -0.5])


def kept(f):
    """Return what each loop of a function keeps of its outputs."""
    return [n.op.layout.kept for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]


def is_rewritten(mode):
    """Return whether a mode runs the rewrites of FAST_RUN."""
    return mode != "FAST_COMPILE"


def value_or_error(f, *given):
    try:
        return f(*given)
    except IndexError:
        return None


# --- which rows -----------------------------------------------------------------------------------


def sums(first, n):
    """Return the outputs of the loop below, computed by numpy."""
    rows = list(first)
    for _ in range(n):
        rows.append(rows[-2] + 2 * rows[-1])
    return np.array(rows[2:])


#: how an output is read, and the rows kept of a loop of taps -2 and -1: (any number of steps, 10)
READ = {
    "last": (lambda out: out[-1], 2, 2),
    "two from the end": (lambda out: out[-2], 2, 2),
    "several": (lambda out: out[-1] + out[-3], 3, 3),
    "first of reversed": (lambda out: out[::-1][0], 2, 2),
    "some of reversed": (lambda out: out[::-1][:3], 3, 3),
    "last ones": (lambda out: out[-3:], 3, 3),
    "last ones but one": (lambda out: out[-4:-1], 4, 4),
    "every other one from the end": (lambda out: out[:-7:-2], 6, 6),
    "all but one, last": (lambda out: out[:-1][-1], 2, 2),
    "a number from the beginning": (lambda out: out[8], None, 2),
    "a range": (lambda out: out[5:8], None, 5),
    "an early number": (lambda out: out[2], None, None),
    "the first": (lambda out: out[0], None, None),
    "all": (lambda out: out, None, None),
    "last, and the shape": (lambda out: out[-1] + out.shape[0], 2, 2),
    "after elementwise work": (lambda out: (out * 2)[-1], 2, 2),
}


@pytest.mark.parametrize("how", READ)
def test_what_is_read_is_the_same(how, mode):
    read, any_number, ten = READ[how]
    first, n = T.dvector(), T.lscalar()

    def compiled(steps):
        out, _ = scan(
            lambda a, b: a + 2 * b, outputs_info={"initial": first, "taps": [-2, -1]}, n_steps=steps
        )
        return function([first, n], read(out), mode=mode, on_unused_input="ignore")

    f = compiled(n)
    if is_rewritten(mode):
        assert kept(f) == [(any_number,)] and kept(compiled(10)) == [(ten,)]
    np.testing.assert_array_equal(compiled(10)([1, 2], 0), read(sums([1.0, 2.0], 10)))
    for steps in (0, 1, 2, 3, 4, 11):
        found = value_or_error(f, [1, 2], steps)
        expected = value_or_error(read, sums([1.0, 2.0], steps))
        assert (found is None) == (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("taps", [[-1], [-2, -1], [-3, -1]])
@pytest.mark.parametrize("read", [READ[k][0] for k in ("last", "two from the end", "last ones")])
def test_loops_that_a_condition_ends(taps, read):
    first, n, limit = T.dvector(), T.lscalar(), T.dscalar()

    def step(*values):
        total = sum(values) + 1
        return [total, values[0] * 2], until(total > limit)

    initial = first[0] if taps == [-1] else {"initial": first, "taps": taps}
    outputs, _ = scan(step, outputs_info=[initial, None], n_steps=n)
    for out in outputs:
        f = function([first, n, limit], read(out), mode="FAST_RUN")
        everything = function([first, n, limit], out, mode=PLAIN)
        for steps in (0, 1, 2, 9):
            for at in (0.0, 4.0, 1e9):
                given = np.arange(1.0, 1 - min(taps)), steps, at
                found, expected = value_or_error(f, *given), value_or_error(
                    lambda *given, all_=everything: read(all_(*given)), *given
                )  # fmt: skip
                assert (found is None) == (expected is None)
                if expected is not None:
                    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("bound", [-(2**63), 1 - 2**63, -(2**62), 2**63 - 1])
@pytest.mark.parametrize("part", [lambda b: slice(b, None), lambda b: slice(None, b)])
@pytest.mark.parametrize("read", [lambda r, s: r[s], lambda r, s: r[1:][s], lambda r, s: r[s][-1:]])
def test_bounds_as_large_as_integers_are(bound, part, read, mode):
    x = T.dvector()
    n = T.minimum(x.shape[0], 2)
    out, _ = scan(lambda e, h: 0.5 * h + e, x, T.zeros(()), n_steps=n)
    with change_flags(on_opt_error="raise"):
        f = function([x], read(out, part(bound)), mode=mode)
    np.testing.assert_array_equal(f(V), read(np.array([0.5, -0.75]), part(bound)))


def test_several_outputs_keep_what_each_needs():
    m, h = T.dmatrix(), T.dvector()
    (a, b, c, d), _ = scan(
        lambda row, a, b: [a + row, b * a, a - b, row * 2], m, [h, h, None, None], return_list=True
    )
    f = function([m, h], [a[-1], b, c[-2:], d[-1].sum()])
    assert kept(f) == [(1, None, 2, 1)]
    everything = function([m, h], [a, b, c, d], mode=PLAIN)
    rows = np.arange(15.0).reshape(5, 3)
    expected = everything(rows, V)
    for x, y in zip(
        f(rows, V), [expected[0][-1], expected[1], expected[2][-2:], expected[3][-1].sum()],
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(x, y)


def test_states_that_nobody_reads_keep_what_steps_read():
    h = T.dvector()
    (a, b), _ = scan(
        lambda a, b, c: [a + b, c + a], outputs_info=[{"initial": h[:2], "taps": [-2, -1]}, h[2]],
        n_steps=6,
    )  # fmt: skip
    f = function([h], b)
    assert kept(f) == [(2, None)]
    np.testing.assert_array_equal(f(V), function([h], [a, b], mode=PLAIN)(V)[1])


def test_gradients_keep_the_rows_that_they_read():
    m, w = T.dmatrix(), T.dmatrix()
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w) + row), m, T.zeros((3,)))
    f = function([m, w], [out[-1], grad(out[-1].sum(), w)])
    # the gradient by w is a product of the rows of the loop and those of its gradient
    assert sorted(kept(f), key=str) == [(1, None), (None,)]


# --- in place -------------------------------------------------------------------------------------

#: steps whose new values a kernel may put over old ones, of the same state or of another one
STEPS = {
    "reversed": lambda a: [(a * 2)[::-1]],
    "rolled": lambda a: [T.roll(T.tanh(a), 1)],
    "swapped": lambda a, b: [b, a],
    "crossed": lambda a, b: [b * 2, a * 3],
    "crossed, late": lambda a, b: [T.cumsum(b), T.tanh(a)],
    "shifted": lambda a, b: [T.set_subtensor(b[1:], a[:-1]), T.set_subtensor(a[1:], b[:-1])],
    "views": lambda a, b: [T.set_subtensor(a[1:], b[:-1])[::-1], T.tanh(b)[::-1]],
    "both": lambda a, b: [a + b, a - b],
    "equal": lambda a, b: [a + b, a + b],
}


@pytest.mark.parametrize("how", STEPS)
def test_values_written_over_old_ones(how, mode):
    step = STEPS[how]
    states = [T.dvector() for _ in range(step.__code__.co_argcount)]
    values = [V, W][: len(states)]
    outputs, _ = scan(step, outputs_info=states, n_steps=5, return_list=True)
    f = function(states, [out[-1] for out in outputs], mode=mode)
    expected = function(states, outputs, mode=PLAIN)(*values)
    if is_rewritten(mode):
        assert kept(f) == [(1,) * len(states)]
    for found, rows in zip(f(*values), expected, strict=True):
        np.testing.assert_allclose(found, rows[-1], rtol=1e-14)
    variables = [shared(value) for value in values]
    outputs, _ = scan(step, outputs_info=variables, n_steps=5, return_list=True)
    function(
        [], [], updates=[(v, o[-1]) for v, o in zip(variables, outputs, strict=True)], mode=mode
    )()
    for var, rows in zip(variables, expected, strict=True):
        np.testing.assert_allclose(var.get_value(), rows[-1], rtol=1e-14)


def test_the_new_value_stays_where_the_step_wrote_it():
    h = T.dvector()
    out, _ = scan(lambda a: T.tanh(a) * 2, outputs_info=h, n_steps=7)
    f = function([h], out[-1])
    (loop,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    ops = [n.op for n in loop.tag.inside.maker.fgraph.toposort()]
    assert not any(isinstance(op, DeepCopyOp) for op in ops)
    assert any(op.destroy_map for op in ops)


@pytest.mark.parametrize("taps", [(1, 1, 1, 2), (1, 2, 2, 1), (2, 1, 2, 2), (2, 2, 1, 1)])
@pytest.mark.parametrize("same", [(0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 0, 1), (1, 0, 1, 0)])
def test_states_with_the_same_new_value_each_have_a_row(taps, same):
    x = T.dmatrix()

    def step(e, a, b, c, d):
        new = [T.tanh(a + b + e), T.tanh(c - d + e)]
        return [new[k] for k in same]

    starts = [{"initial": T.zeros((t, 3)) if t > 1 else T.zeros(3), "taps": [-t]} for t in taps]
    rows, _ = scan(step, x, starts)
    values = np.random.default_rng(0).normal(size=(5, 3))
    expected = function([x], rows, mode=PLAIN)(values)
    for linker in ("py", "c|py"):
        f = function([x], [out[-1] for out in rows], mode=Mode(linker, "fast_run"))
        for found, row in zip(f(values), expected, strict=True):
            np.testing.assert_allclose(found, row[-1], rtol=1e-14)


@pytest.mark.parametrize("name", ["inplace", "scanOp_make_inplace", "scan_make_inplace", "scan"])
def test_nothing_is_overwritten_where_that_is_excluded(name):
    h = T.dvector()
    out, _ = scan(lambda a, b: [T.tanh(a) * b, a + b], outputs_info=[h, h * 2], n_steps=7)
    f = function([h], [out[0][-1], out[1][-1]], mode=Mode("c|py", "fast_run").excluding(name))
    (loop,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert not loop.op.in_place
    expected = function([h], out, mode=PLAIN)(V)
    for found, rows in zip(f(V), expected, strict=True):
        np.testing.assert_allclose(found, rows[-1], rtol=1e-14)


# --- programs -------------------------------------------------------------------------------------


def rk4(y, dt):
    """One step of Runge and Kutta for a pendulum."""

    def slope(y):
        return T.stack([y[1], -T.sin(y[0])])

    k1 = slope(y)
    k2 = slope(y + dt / 2 * k1)
    k3 = slope(y + dt / 2 * k2)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + dt * k3))


@pytest.mark.parametrize("steps", [10_000, None])
def test_an_integration_keeps_one_row(steps, flags):
    flags(profile_memory=True)
    y, n = T.dvector(), T.lscalar()
    out, _ = scan(lambda y: rk4(y, 1e-3), outputs_info=y, n_steps=steps or n)
    f = function([y, n], out[-1], profile=True, on_unused_input="ignore")
    assert kept(f) == [(1,)]
    found = f([1.0, 0.0], 10_000)
    energy = found[1] ** 2 / 2 - np.cos(found[0])
    assert abs(energy + np.cos(1.0)) < 1e-12
    (profile,) = f.profile.profile().functions
    assert profile.memory.peak <= 200


@pytest.mark.parametrize("read, wanted", [
    (lambda out, w: (out[-1] ** 2).sum(), 0.01),
    (lambda out, w: out, 1),
    # all states, and the gradients by the sums of all steps, which one product reads
    (lambda out, w: grad((out[-1] ** 2).sum(), w), 2),
    (lambda out, w: grad((out**2).sum(), w), 3),
])  # fmt: skip
def test_bytes_are_those_of_the_rows_that_are_read(read, wanted, flags):
    flags(profile_memory=True)
    steps, size = 400, 20
    w, x = shared(0.5 * np.eye(size)), T.dmatrix()
    out, _ = scan(lambda x, h: T.tanh(x + T.dot(h, w)), x, np.zeros(size))
    f = function([x], read(out, w), profile=True)
    f(np.ones((steps, size)))
    (profile,) = f.profile.profile().functions
    rows = steps * size * 8
    assert (wanted - 0.1) * rows < profile.memory.peak < (wanted + 0.1) * rows


def test_updated_shared_variables_keep_one_row(mode):
    state = shared(V)
    out, _ = scan(lambda s: T.tanh(s) * 1.5, outputs_info=state, n_steps=20)
    f = function([], (out[-1] ** 2).sum(), updates=[(state, out[-1])], mode=mode)
    if is_rewritten(mode):
        assert kept(f) == [(1,)]
    expected = V
    for _ in range(2):
        for _ in range(20):
            expected = np.tanh(expected) * 1.5
        np.testing.assert_allclose(f(), (expected**2).sum())
        np.testing.assert_allclose(state.get_value(), expected)


def test_shared_variables_that_a_step_updates_keep_one_row():
    count, x = shared(0), T.dvector()
    out, updates = scan(lambda e: (e + count, {count: count + 1}), x)
    f = function([x], out[-1], updates=updates)
    assert kept(f) == [(1, 1)]
    assert f([5.0, 7.0]) == 8.0 and count.get_value() == 2


def test_chains_of_a_sampler():
    w = np.random.RandomState(1).randn(6, 4)
    x = T.dmatrix()

    def gibbs(v, streams):
        h = streams.binomial((5, 4), p=T.nnet.sigmoid(T.dot(v, w)), dtype="float64")
        return streams.binomial((5, 6), p=T.nnet.sigmoid(T.dot(h, w.T)), dtype="float64")

    def compiled(mode, read):
        streams = MRG_RandomStreams(3)
        chain, updates = scan(lambda v: gibbs(v, streams), outputs_info=x, n_steps=15)
        return function([x], read(chain), updates=updates, mode=mode)

    f = compiled("FAST_RUN", lambda chain: chain[-1])
    assert all(rows == 1 for rows in kept(f)[0])
    g = compiled(PLAIN, lambda chain: chain)
    for _ in range(2):
        np.testing.assert_array_equal(f(np.ones((5, 6))), g(np.ones((5, 6)))[-1])


def test_nested_loops():
    m = T.dmatrix()

    def total(row):
        return foldl(lambda e, s: s * 0.5 + e, row, T.constant(0.0, dtype="float64"))[0]

    f = function([m], scan(lambda row, best: T.maximum(best, total(row)), m, m[0, 0])[0][-1])
    assert kept(f) == [(1,)]
    (outer,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert kept(outer.tag.inside) == [(1,)]
    rows = np.arange(12.0).reshape(3, 4)
    totals = [sum(e * 0.5 ** (3 - k) for k, e in enumerate(row)) for row in rows]
    assert f(rows) == max(rows[0, 0], *totals)


def test_copies_and_pickles():
    h = T.dvector()
    f = function([h], scan(lambda a: a * 2, outputs_info=h, n_steps=3)[0][-1])
    for g in (f.copy(), pickle.loads(pickle.dumps(f))):
        assert kept(g) == [(1,)]
        for _ in range(2):
            np.testing.assert_array_equal(np.ravel(g([1.0, 2.0])), [8, 16])
            np.testing.assert_array_equal(f([2.0, 2.0]), [16, 16])


@pytest.mark.parametrize("rows", [1, 2, 3, 9])
def test_derivatives_of_loops_that_keep_some_rows(rows):
    m = T.dmatrix()
    out, _ = scan(lambda row, a, b: a * b + row, m, {"initial": m[:2], "taps": [-2, -1]})
    whole = out.owner.inputs[0]
    op, inputs = whole.owner.op, whole.owner.inputs
    count = max(2, rows)
    short = op.variant(op.step_inputs, op.step_outputs, op.layout.taps, {0: count})(*inputs)
    values = np.random.RandomState(rows).randn(5, 3)
    for part, all_rows in ((short, whole[-count:]), (short[-1], whole[-1])):
        compare = [
            function([m], v, mode=mode)(values)
            for v in (
                part, all_rows, grad((part**2).sum(), m), grad((all_rows**2).sum(), m),
            )
            for mode in ("FAST_RUN", PLAIN)
        ]  # fmt: skip
        for k in range(0, len(compare), 4):
            for one in compare[k + 1 : k + 4]:
                np.testing.assert_allclose(one, compare[k], rtol=1e-12)
    direction = np.ones((5, 3))
    found = [function([m], T.Rop(v, m, direction))(values) for v in (short, whole[-count:])]
    np.testing.assert_allclose(*found, rtol=1e-12)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scanOp_save_mem", "scan"])
def test_the_rewrite_has_its_legacy_name(name):
    h = T.dvector()
    out = scan(lambda a: a * 2, outputs_info=h, n_steps=3)[0][-1]
    f = function([h], out, mode=Mode("c|py", "fast_run").excluding(name))
    assert kept(f) == [(None,)] and f([1.0]).tolist() == [8]
    assert "scanOp_save_mem" in optdb["specialize"]


def test_the_flag_excludes_rewrites_of_loops():
    program = """
import opwise.tensor as T
from opwise import function
from opwise.loops import Scan, scan
h = T.dvector()
f = function([h], scan(lambda a: a * 2, outputs_info=h, n_steps=3)[0][-1])
loops = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
print([op.layout.kept for op in loops], f([1.0]))
"""
    for flags, expected in (("", "[(1,)] [8.]"), ("optimizer_excluding=scan", "[(None,)] [8.]")):
        env = {**os.environ, "OPWISE_FLAGS": flags}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert (done.stdout.strip(), done.stderr) == (expected, "")


# --- memory of intermediate values ----------------------------------------------------------------


@pytest.mark.parametrize("linker", ["py", "c|py"])
@pytest.mark.parametrize(("argument", "flag", "released"), [
    (True, False, True), (False, True, False), (None, True, True), (None, False, False),
])  # fmt: skip
def test_intermediate_values_are_released_in_each_step_or_at_the_end(
    argument, flag, released, linker
):
    x = T.dmatrix("x")
    w = np.full((200, 200), 1e-3)

    def step(h):
        return T.dot(T.dot(h, w), w)

    with change_flags(**{"scan.allow_gc": flag}):
        rows, _ = scan(step, None, x, n_steps=5, allow_gc=argument)
        f = function([x], rows[-1], mode=Mode(linker, "fast_run"))
    expected = np.ones((200, 200))
    for _ in range(5):
        expected = expected @ w @ w
    [loop] = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    inside = loop.tag.inside
    inside(*(np.ones((200, 200)) for _ in loop.op.inputs))
    assert (inside.fn.kept_bytes() >= 8 * 200 * 200) == (not released)
    np.testing.assert_allclose(f(np.ones((200, 200))), expected)
    assert inside.fn.kept_bytes() == 0  # the loop is over


@pytest.mark.parametrize("linker", ["py", "c|py"])
def test_loops_inside_keep_no_memory_either(linker):
    x = T.dmatrix("x")
    w = np.full((200, 200), 1e-3)

    def inner(h):
        return scan(lambda a: T.dot(T.dot(a, w), w), None, h, n_steps=2)[0][-1]

    f = function([x], scan(inner, None, x, n_steps=3)[0][-1], mode=Mode(linker, "fast_run"))
    f(np.ones((200, 200)))
    [outer] = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    nodes = outer.tag.inside.maker.fgraph.toposort()
    [inside] = [n.tag.inside for n in nodes if isinstance(n.op, Scan)]
    assert outer.tag.inside.fn.kept_bytes() == inside.fn.kept_bytes() == 0


def test_the_step_of_each_loop_is_compiled_once(monkeypatch):
    """Also if a new value is not left where an old one was; loops in steps would double it."""
    genuine = scan_op.function
    compiled = []

    def counted(*args, **kwargs):
        compiled.append(kwargs["name"])
        return genuine(*args, **kwargs)

    monkeypatch.setattr(scan_op, "function", counted)
    x = T.dvector("x")

    out = hessian(hessian(T.tanh(x).sum() ** 3, x).sum(), x)
    f = function([x], out, mode="FAST_RUN")
    graphs, n_loops = [f.maker.fgraph], 0
    for graph in graphs:
        for node in graph.apply_nodes:
            if isinstance(node.op, Scan):
                n_loops += 1
                graphs.append(node.tag.inside.maker.fgraph)
    assert 0 < len(compiled) == n_loops
