"""What steps compute, computed for all steps at once: against loops, and what stays in them."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, get_default_mode, grad, shared
from opwise.config import change_flags
from opwise.gradient import jacobian
from opwise.loops import Scan, reduce, scan, until
from opwise.loops import map as map_rows
from opwise.tensor import AdvancedSubtensor1, Dot, Elemwise, Subtensor
from opwise.tensor.blas import BatchedDot, CGemv, CGer, Dot22, Gemm, Gemv, Ger

pytestmark = pytest.mark.null

#: without any rewrite
PLAIN = Mode("py", None)
RNG = np.random.RandomState(8)
X, W = T.dmatrix("x"), T.dmatrix("w")
B, INDICES, PAIRS = T.dtensor3("b"), T.lvector("indices"), T.lmatrix("pairs")
INPUTS = [X, W, B, INDICES, PAIRS]
VALUES = [
    RNG.randn(6, 4), RNG.randn(4, 4), RNG.randn(6, 3, 4), RNG.randint(0, 4, 6),
    RNG.randint(0, 4, (6, 2)),
]  # fmt: skip


def zeros(*shape):
    return T.zeros(shape, dtype="float64")


#: what multiplies matrices and vectors
PRODUCTS = {Dot, Dot22, Gemm, Gemv, CGemv, Ger, CGer, BatchedDot}


def steps_in(f):
    """Return the classes of the Ops that the steps of the loops of a function apply, by loop."""
    return [
        [type(inside.op) for inside in node.tag.inside.maker.fgraph.toposort()]
        for node in f.maker.fgraph.toposort()
        if isinstance(node.op, Scan)
    ]


def compiled(outputs, mode=None):
    return function(INPUTS, outputs, mode=mode, on_unused_input="ignore")


def check(outputs, mode=None):
    """Compare outputs, and their first and second derivatives, with those of plain loops."""
    cost = sum((out.astype("float64") ** 2).sum() for out in outputs)
    first = grad(cost, [X, W, B], disconnected_inputs="ignore")
    second = grad(sum(T.tanh(g).sum() for g in first), [X, W], disconnected_inputs="ignore")
    everything = [*outputs, *first, *second]
    expected = compiled(everything, PLAIN)(*VALUES)
    for a, b in zip(compiled(everything, mode)(*VALUES), expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


# --- loops whose steps are independent ------------------------------------------------------------

ROWS = {
    "elementwise": lambda: [X, lambda x: T.tanh(x) * W[0] + 1],
    "constant": lambda: [X, lambda x: T.ones((2,)) * 3],
    "the row itself": lambda: [X, lambda x: x],
    "vector by matrix": lambda: [X, lambda x: T.dot(x, W)],
    "matrix by vector": lambda: [X, lambda x: T.dot(W, x)],
    "vector by vector": lambda: [X, lambda x: T.dot(x, W[1])],
    "vector by itself": lambda: [X, lambda x: T.dot(x, x)],
    "matrix of a row by a matrix": lambda: [B, lambda b: T.dot(b, W)],
    "matrix of a row by a vector": lambda: [B, lambda b: T.dot(b, W[0])],
    "matrix by a matrix of a row": lambda: [B, lambda b: T.dot(W, b.T)],
    "vector by a matrix of a row": lambda: [B, lambda b: T.dot(W[0, 1:], b)],
    "matrix of a row by its transpose": lambda: [B, lambda b: T.dot(b, b.T)],
    "sum": lambda: [X, lambda x: (x**2).sum() * x],
    "deviation": lambda: [B, lambda b: b.std(axis=1)],
    "extrema": lambda: [B, lambda b: b.max(axis=0) + b.argmin(axis=0)],
    "softmax of a vector": lambda: [X, lambda x: T.nnet.softmax(x)[0]],
    "softmax of a matrix": lambda: [B, lambda b: T.nnet.softmax(b)],
    "reshape": lambda: [B, lambda b: b.reshape((2, 6)) * b.flatten()[0]],
    "shape": lambda: [B, lambda b: b.sum() / b.shape[0] + T.zeros_like(b).sum()],
    "parts": lambda: [B, lambda b: b[1:, ::-1] + b[0, 2]],
    "join": lambda: [B, lambda b: T.concatenate([b, b * 2, W], axis=0)],
    "stack": lambda: [X, lambda x: T.stack([x[0], x[1], x.sum()])],
    "set part": lambda: [X, lambda x: T.set_subtensor(x[1:], x[:3])],
    "increment part": lambda: [B, lambda b: T.inc_subtensor(b[0], 5.0)],
    "row of a constant": lambda: [INDICES, lambda i: W[i]],
    "part of a row of a constant": lambda: [INDICES, lambda i: W[i, 1:]],
    "rows of a constant": lambda: [PAIRS, lambda p: W[p]],
    "entry": lambda: [[X, INDICES], lambda x, i: x[i]],
    "several sequences": lambda: [[X, X[:4]], lambda x, y: x * y],
    "two taps": lambda: [{"input": X, "taps": [-1, 1]}, lambda a, b: T.dot(a, W) * b],
}


@pytest.mark.parametrize("name", ROWS)
def test_a_loop_of_independent_steps_becomes_batched_applys(name):
    sequences, step = ROWS[name]()
    out, _ = scan(step, sequences)
    assert steps_in(compiled(out)) == []
    check([out])


def test_modes(mode):
    out, _ = map_rows(lambda b: T.nnet.softmax(T.dot(b, W)).max(axis=1), B)
    check([out], mode)


def test_names_turn_the_rewrites_off():
    out, _ = map_rows(lambda x: T.dot(x, W), X)
    for name in ("scan", "scan_pushout", "scanOp_pushout_output", "scan_push_out_results"):
        assert len(steps_in(compiled(out, get_default_mode().excluding(name)))) == 1


def test_steps_that_would_store_more_stay_in_their_loop():
    grown, _ = map_rows(lambda e: (e * W).sum(), X[0])
    assert len(steps_in(compiled(grown))) == 1
    stored, _ = map_rows(lambda e: e * W, X[0])
    assert steps_in(compiled(stored)) == []
    check([grown, stored])


def test_a_number_of_steps_beyond_the_rows_is_still_an_error():
    n = T.lscalar()
    out, _ = scan(lambda x: x * 2, X, n_steps=n)
    f = function([X, n], out)
    np.testing.assert_array_equal(f(VALUES[0], 2), VALUES[0][:2] * 2)
    with pytest.raises(ValueError, match="has a row for 6 of them"):
        f(VALUES[0], 7)
    own, _ = scan(lambda x: x * 2, X, n_steps=X.shape[0])
    assert steps_in(function([X], own)) == []


def test_no_row():
    out, _ = map_rows(lambda x: T.nnet.softmax(T.dot(x, W))[0], X[:0])
    assert compiled(out)(*VALUES).shape == (0, 4)


def test_jacobians():
    found = jacobian(T.tanh(T.dot(X, W[0])), W)
    values = VALUES[0], VALUES[1]
    slope = 1 - np.tanh(values[0] @ values[1][0]) ** 2
    expected = np.zeros((6, 4, 4))
    expected[:, 0] = slope[:, None] * values[0]
    np.testing.assert_allclose(function([X, W], found)(*values), expected)


# --- before the loop ------------------------------------------------------------------------------


def test_products_of_sequences_leave_the_loop_with_what_is_added():
    out, _ = scan(lambda x, h: T.tanh(T.dot(x, W) + T.dot(h, W) + W[0]), X, zeros(4))
    (inside,) = steps_in(compiled(out))
    assert sum(op in PRODUCTS for op in inside) == 1
    (loop,) = [n for n in compiled(out).maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert loop.op.layout.sequences == 1
    check([out])


def test_terms_of_several_dtypes_stay_in_their_sum():
    half = shared(np.ones(4, "float32"))
    out, _ = scan(lambda x, h: T.tanh(T.dot(x, W) + T.dot(h, W) + half), X, zeros(4))
    check([out])


def test_lookups_go_along():
    out, _ = scan(lambda i, h: T.tanh(T.dot(W[i], W) + h), INDICES, zeros(4))
    (inside,) = steps_in(compiled(out))
    assert inside == [Elemwise]
    check([out])


def test_reductions_leave_the_loop():
    out, _ = scan(lambda x, h: h * 0.5 + x.sum(), X, zeros())
    assert steps_in(compiled(out)) == [[Elemwise]]
    check([out])


def test_elementwise_work_alone_stays():
    out, _ = scan(lambda x, h: T.tanh(x * W[0] + h), X, zeros(4))
    (loop,) = [n for n in compiled(out).maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert steps_in(compiled(out)) == [[Elemwise]]
    assert loop.op.layout.sequences == 1 and loop.inputs[1] is not None


def test_a_loop_with_a_condition_computes_no_row_ahead():
    out, _ = scan(
        lambda x, h: (T.tanh(T.dot(x, W) + h), until(h.sum() > 0.1)), X, zeros(4)
    )  # fmt: skip
    (inside,) = steps_in(compiled(out))
    assert any(op in PRODUCTS for op in inside)
    check([out])


# --- after the loop -------------------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [False, True])
def test_results_that_no_step_reads(backwards):
    (h, y), _ = scan(
        lambda x, h: [T.tanh(x + h * W[0]), T.nnet.softmax(T.dot(h, W))[0]], X, [zeros(4), None],
        go_backwards=backwards,
    )  # fmt: skip
    assert steps_in(compiled([h, y])) == [[Elemwise]]
    check([h, y])


def test_results_of_a_loop_with_a_condition():
    (h, y), _ = scan(
        lambda x, h: ([T.tanh(x + h), T.dot(h, W)], until(h.sum() > 0.1)), X, [zeros(4), None]
    )
    f = compiled([h, y])
    assert not any(op in PRODUCTS for op in steps_in(f)[0])
    check([h, y])


def test_results_by_several_taps():
    (h, y), _ = scan(
        lambda a, b, p, q: [T.tanh(T.dot(a, W) + p * q + b), T.dot(p, W) + T.dot(q, W)],
        {"input": X, "taps": [-1, 1]}, [{"initial": X[:3], "taps": [-3, -1]}, None],
    )  # fmt: skip
    assert steps_in(compiled([h, y])) == [[Elemwise]]
    check([h, y])


def recurrent(rows, first):
    return scan(lambda x, h: T.tanh(T.dot(x, W) + T.dot(h, W) + W[0]), rows, first)[0]


@pytest.mark.parametrize("mode_", ["FAST_RUN", "DEBUG_MODE"])
@pytest.mark.parametrize("rows", ["vectors", "matrices"])
def test_gradients_by_weights_are_one_product(rows, mode_):
    out = recurrent(X, zeros(4)) if rows == "vectors" else recurrent(B, zeros(3, 4))
    f = compiled(grad((out**2).sum(), W))
    backward = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)][1]
    assert len(backward.op.layout.taps) == 1  # the gradient by h; that by W is no state
    assert sum(op in PRODUCTS for op in steps_in(f)[1]) == 1
    check([out], mode_)


def test_gradients_by_tables_add_only_the_rows_that_were_looked_up():
    for indices, first in ((INDICES, zeros(4)), (PAIRS, zeros(2, 4))):
        out, _ = scan(lambda i, h: T.tanh(W[i] + h * 2), indices, first)
        f = compiled(grad((out**2).sum(), W))
        assert not any(issubclass(op, Subtensor | AdvancedSubtensor1) for op in steps_in(f)[1])
        check([out])


@pytest.mark.parametrize("steps", [2, 10])
def test_truncated_gradients(steps):
    out, _ = scan(
        lambda x, h: T.tanh(T.dot(x, W) + T.dot(h, W)), X, zeros(4), truncate_gradient=steps
    )
    check([out])


def test_nested_loops():
    def row(x, h):
        return scan(lambda e, g: T.tanh(g * T.cos(e) + T.dot(x, W)), x, h)[0][-1]

    out, _ = scan(row, X, zeros(4))
    check([out])


# --- what gradients read --------------------------------------------------------------------------


def test_gradients_repeat_no_product_of_the_forward_loop():
    def step(x, h, c):
        z = T.dot(x, W) + T.dot(h, W)
        gate = T.nnet.sigmoid(z[:2])
        c = gate * c + T.tanh(z[2:])
        return T.concatenate([c, gate]), c

    (h, _), _ = scan(step, X, [zeros(4), zeros(2)])
    f = compiled([h, grad((h**2).sum(), W)])
    forward, _ = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert forward.layout.results == 2  # the gate and tanh
    assert sum(op in PRODUCTS for op in steps_in(f)[1]) == 1  # for the state before
    assert Scan not in steps_in(f)[1]
    check([h])


def test_gradients_through_an_index_that_a_product_gives():
    def step(x, h):
        place = T.argmax(T.dot(x + h, W))
        return T.tanh(h * W[place] + x)

    out, _ = scan(step, X, zeros(4))
    check([out])


def test_loops_with_equal_states_collect_together():
    found = [
        scan(lambda x, h, f=f: [T.tanh(x + h), f(h)], X, [zeros(4), None])[0][1]
        for f in (T.exp, T.sin, T.exp)
    ]
    f = compiled(found, "FAST_COMPILE")
    (loop,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert loop.op.layout.results == 2
    check(found)


def test_random_numbers_are_drawn_once_for_a_loop_and_its_gradient():
    from opwise.random import RandomStreams

    stream, w = RandomStreams(3), shared(np.eye(4))
    (h, r), updates = scan(
        lambda x, h: (lambda r: [T.tanh(x + T.dot(h, w) * r), r])(stream.uniform((4,))),
        X, [zeros(4), None],
    )  # fmt: skip
    f = function([X], [h, r, grad(h.sum(), w)], updates=updates)
    first, again = f(VALUES[0]), f(VALUES[0])
    assert not np.array_equal(first[1], again[1])
    assert len(steps_in(f)) == 2


# --- sums -----------------------------------------------------------------------------------------

#: name: (what a step adds to the total h, its dtype, all of it by numpy)
SUMS = {
    "elementwise": (lambda e, h: h + T.tanh(e), "float64", lambda v: np.tanh(v).sum(0)),
    "the total last": (lambda e, h: T.sqr(e) + h, "float64", lambda v: (v**2).sum(0)),
    "several terms": (lambda e, h: e + (h + e * 2), "float64", lambda v: 3 * v.sum(0)),
    "reductions": (lambda e, h: h + e.sum(), "float64", lambda v: v.sum() + np.zeros(3)),
    "wider whole numbers": (
        lambda e, h: h + T.cast(e * 50, "int8"), "int64",
        lambda v: (v * 50).astype("int8").astype("int64").sum(0),
    ),
    "truth values": (lambda e, h: h + (e > 0), "int64", lambda v: (v > 0).sum(0)),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("linker", ["py", "c|py"])
def test_sums_of_which_the_last_is_read_leave_the_loop(name, linker):
    step, dtype, expected = SUMS[name]
    x = T.dmatrix("x")
    values = np.random.default_rng(3).uniform(-2, 2, (40, 3))
    total = reduce(step, x, T.zeros(3, dtype))[0]
    f = function([x], total, mode=Mode(linker, "fast_run"))
    np.testing.assert_allclose(f(values), expected(values), 1e-12)
    assert not any(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort())


def test_other_folds_stay_in_their_loop():
    x = T.dmatrix("x")
    values = np.random.default_rng(3).uniform(-2, 2, (9, 3))
    for step, all_rows in [
        (lambda e, h: 0.5 * h + e, False),
        (lambda e, h: h + e, True),
        (lambda e, h: h + T.tanh(h) * e, False),
    ]:
        rows, _ = scan(step, x, T.zeros(3))
        out = rows if all_rows else rows[-1]
        f, plain = (function([x], out, mode=Mode("py", o)) for o in ("fast_run", None))
        np.testing.assert_allclose(f(values), plain(values), 1e-12)
        assert any(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort())


def test_a_sum_beside_a_recurrence():
    """The sum leaves the loop, the other state stays."""
    x = T.dmatrix("x")
    values = np.random.default_rng(3).uniform(-2, 2, (9, 3))
    (sums, states), _ = scan(lambda e, s, h: [s + e, T.tanh(h + e)], x, [T.zeros(3)] * 2)
    f = function([x], [sums[-1], states[-1]], mode=Mode("py", "fast_run"))
    [loop] = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert len(loop.layout.taps) == 1
    state = np.zeros(3)
    for row in values:
        state = np.tanh(state + row)
    for found, expected in zip(f(values), [values.sum(0), state], strict=True):
        np.testing.assert_allclose(found, expected, 1e-12)


def test_a_state_that_stays_as_it_is_beside_a_sum():
    x = T.dmatrix("x")
    (same, sums), _ = scan(lambda e, s, t: [s, t + T.outer(e, e)], x, [x[0], T.zeros((3, 3))])
    with change_flags(on_opt_error="raise"):
        f = function([x], [same[-1], sums[-1]], mode=Mode("py", "fast_run"))
    assert not any(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort())
    values = np.arange(12.0).reshape(4, 3)
    for found, expected in zip(f(values), [values[0], values.T @ values], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_sum_of_values_of_a_state_keeps_no_rows():
    """Chains of samplers sum over many steps: no row of the state is stored for it."""
    (_, sums), _ = scan(
        lambda h, s: [T.tanh(2 * h), s + T.sqr(h)], outputs_info=[X[0], T.zeros(4)], n_steps=1000
    )
    f = function([X], sums[-1], mode=Mode("py", "fast_run"))
    [loop] = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert loop.layout.kept == (1, 1)


def test_sums_that_are_results_too_and_gradients_of_loops_with_a_condition():
    rows, _ = scan(lambda e, h: (h + e, until(h.sum() > 30)), X, zeros(4))
    values = np.arange(24.0).reshape(6, 4)
    for wanted in (grad(rows.sum(), X), grad(rows[-1].sum(), X)):
        f, plain = (function([X], wanted, mode=Mode("py", o)) for o in ("fast_run", None))
        np.testing.assert_array_equal(f(values), plain(values))
