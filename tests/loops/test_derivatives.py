"""Gradients, second derivatives and R-operators of loops, against finite differences."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Rop, change_flags, function, grad, scan_checkpoints, shared, verify_grad
from opwise.gradient import (
    DisconnectedInputError,
    disconnected_grad,
    grad_clip,
    hessian,
    jacobian,
    zero_grad,
)
from opwise.graph.traversal import ancestors
from opwise.loops import Scan, map, scan, until
from opwise.random import MRG_RandomStreams, RandomStreams

pytestmark = pytest.mark.null

RNG = np.random.RandomState(3)


def one():
    return T.constant(1.0, dtype="float64")


def recurrent(x, h, w, u):
    return scan(lambda row, h, w, u: T.tanh(T.dot(row, w) + T.dot(h, u)), x, h, [w, u])[0]


def with_taps(s, first, a):
    return scan(
        lambda before, behind, p, q: T.tanh(before * p + behind * q * a),
        {"input": s, "taps": [-1, 1]}, {"initial": first, "taps": [-3, -1]},
    )[0]  # fmt: skip


def several(s, p, q):
    (a, b, c), _ = scan(lambda e, p, q: [p * T.sin(q), q + e * p, p * q], s, [p, q, None])
    return a.sum() + 2 * b.sum() + (c**2).sum()


def nested(m, h):
    def row(r, h):
        return scan(lambda e, g: g * T.cos(e) + e, r, h)[0][-1]

    return scan(row, m, h)[0]


def with_condition(h):
    step = lambda h: (h * 1.7, until((h * 1.7).sum() > 10))  # noqa: E731
    return scan(step, outputs_info=h, n_steps=20)[0]


def condition_and_sequence(s):
    step = lambda e, h: (h + e * e, until(h > 3))  # noqa: E731
    return scan(step, s, one())[0]


def backwards(s):
    return scan(lambda e, h: h * T.cos(e) + e, s, one(), go_backwards=True)[0]


def same_output_twice(s):
    (a, b), _ = scan(lambda e, h: [h * e] * 2, s, [one(), None])
    return a.sum() + (b**2).sum()


def output_that_others_are_computed_from(s):
    def step(e, h):
        new = h * e
        return [new, T.exp(new)]

    (a, b), _ = scan(step, s, [one(), None])
    return a.sum() * b.sum()


def input_as_output(s):
    (a, b), _ = scan(lambda e, h: [e, h * e + h], s, [one(), None])
    return a.sum() * b.sum()


def only_a_constant(s, w):
    return s * scan(lambda e, w: w * 2, s, non_sequences=w)[0]


def with_integers(s):
    (i, a), _ = scan(lambda e, i, h: [i + 1, h * e * i], s, [T.constant(1, dtype="int64"), one()])
    return a * i


def rows(m):
    return map(lambda row: (row**2).sum() * row, m)[0]


def by_jacobian(v):
    return jacobian(T.tanh(v * v.sum()), v)


def by_hessian(v):
    return hessian((v**3).sum() * v.sum(), v)


LOOPS = {
    recurrent: ((4, 3), (2,), (3, 2), (2, 2)),
    with_taps: ((6,), (3,), ()),
    several: ((5,), (), ()),
    nested: ((3, 4), ()),
    with_condition: ((2,),),
    condition_and_sequence: ((9,),),
    backwards: ((5,),),
    same_output_twice: ((5,),),
    output_that_others_are_computed_from: ((5,),),
    input_as_output: ((5,),),
    only_a_constant: ((5,), ()),
    with_integers: ((4,),),
    rows: ((4, 3),),
    by_jacobian: ((4,),),
    by_hessian: ((4,),),
}


@pytest.fixture(params=LOOPS, ids=lambda loop: loop.__name__)
def loop(request):
    return request.param


def points(loop):
    return [RNG.uniform(0.3, 1.0, shape) for shape in LOOPS[loop]]


def test_gradients(loop):
    verify_grad(loop, points(loop), rng=RNG)


def test_second_derivatives(loop):
    def of_gradients(*xs):
        found = grad((loop(*xs) ** 2).sum(), list(xs), disconnected_inputs="ignore")
        return sum(T.tanh(g).sum() for g in found)

    verify_grad(of_gradients, points(loop), rng=RNG)


def test_derivatives_in_a_direction(loop):
    at = points(loop)
    along = [RNG.randn(*p.shape) for p in at]
    xs = [T.TensorType("float64", (False,) * p.ndim)() for p in at]
    y = loop(*xs)
    value = function(xs, y)
    step = 1e-6
    up, down = ([p + k * step * d for p, d in zip(at, along, strict=True)] for k in (1, -1))
    expected = (value(*up) - value(*down)) / (2 * step)
    found = function(xs, Rop(y, xs, [T.as_tensor_variable(d) for d in along]))(*at)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_gradients_in_every_mode(mode):
    x, h, w, u = T.dmatrix(), T.dvector(), T.dmatrix(), T.dmatrix()
    found = grad(recurrent(x, h, w, u).sum(), [x, h, w, u])
    at = points(recurrent)
    expected = function([x, h, w, u], found, mode="FAST_COMPILE")(*at)
    for a, b in zip(function([x, h, w, u], found, mode=mode)(*at), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(-1, (81, [27, 9, 3, 1], 224)), (2, (0, [0, 0, 3, 1], 116)), (10, (81, [27, 9, 3, 1], 224))],
)
def test_truncated_gradients(steps, expected):
    """Those of genuine Theano 1.0.5."""
    s, h, a = T.dvector(), T.dscalar(), T.dscalar()
    out, _ = scan(lambda e, h, a: h * a + e, s, h, a, truncate_gradient=steps)
    found = function([s, h, a], grad(out[-1], [h, s, a]))(np.arange(4.0), 2.0, 3.0)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_gradients_by_shared_variables(mode):
    w, x = shared(np.array(3.0)), T.dvector()
    out, _ = scan(lambda e: e * w, x)
    assert function([x], grad(out.sum(), w), mode=mode)([2, 3]) == 5


@pytest.mark.parametrize("streams", [RandomStreams, MRG_RandomStreams])
def test_gradients_see_the_numbers_that_the_steps_drew(streams):
    x = T.dvector("x")
    stream = streams(11)
    (out, drawn), updates = scan(
        lambda e, h: (lambda r: [h * r + e * r**2, r])(stream.uniform((), low=0.5)),
        x, [one(), None],
    )  # fmt: skip
    f = function([x], [drawn, grad(out[-1], x)], updates=updates)
    for _ in range(2):
        r, found = f(np.ones(4))
        later = np.append(np.cumprod(r[::-1])[::-1][1:], 1.0)
        np.testing.assert_allclose(found, r**2 * later)


@pytest.mark.parametrize("streams", [RandomStreams, MRG_RandomStreams])
def test_gradients_of_a_loop_that_draws_in_every_step_of_another(streams, mode):
    """The inner loop's results have no place in the outer loop's, and cannot be drawn again."""
    x, stream = T.dvector("x"), streams(3)

    def outer(s):
        noisy, _ = scan(lambda e, h: 0.5 * h + T.tanh(e * stream.normal(())), x, x[0])
        product, _ = scan(lambda e, h: h * T.cos(e), noisy, one())
        return s * product[-1]

    rows, _ = scan(outer, T.arange(3.0) + 1)
    cost = (rows**2).sum()
    (by,) = grad(cost, [x])
    f = function([x], [cost, by, grad((by**2).sum(), x)], mode=mode, no_default_updates=True)
    at, h = np.array([0.3, -0.4, 0.8]), 1e-6
    _, first, second = f(at)
    for k, step in enumerate(h * np.eye(3)):
        (above, g_above, _), (below, g_below, _) = f(at + step), f(at - step)
        np.testing.assert_allclose(first[k], (above - below) / (2 * h), rtol=1e-5)
        slope = ((g_above**2).sum() - (g_below**2).sum()) / (2 * h)
        np.testing.assert_allclose(second[k], slope, rtol=1e-5)


def test_where_gradients_stop():
    x = T.dvector("x")
    for stop in (zero_grad, disconnected_grad):
        out, _ = scan(lambda e, h, stop=stop: stop(h * e) + e, x, one())
        np.testing.assert_array_equal(function([x], grad(out[-1], x))([2, 3]), [0, 1])
    out, _ = scan(lambda e, h: h + grad_clip(e, -1, 1) * 5, x, one())
    np.testing.assert_array_equal(function([x], grad(out[-1], x))([2, 3]), [1, 1])


def test_what_no_gradient_reaches():
    v, h = T.dvector("v"), T.dscalar("h")
    out, _ = scan(lambda e, h: h + 1, v, h)
    with pytest.raises(DisconnectedInputError):
        grad(out[-1], v)
    assert function([v, h], grad(out[-1], h))([1, 2], 3.0) == 1
    (a, _), _ = scan(lambda e, h: [e, 2 * h], v, [None, h])
    with pytest.raises(DisconnectedInputError):
        grad(a.sum(), h)
    np.testing.assert_array_equal(function([v, h], grad(a.sum(), v))([5, 6], 1.0), [1, 1])


def test_gradients_of_no_step():
    s, h = T.dvector(), T.dscalar()
    out, _ = scan(lambda e, h: h * e, s, h)
    f = function([s, h], grad(out.sum(), [s, h]))
    by_s, by_h = f([], 2.0)
    assert by_s.shape == (0,) and by_h == 0


def test_float32_gradients_of_float64_sums():
    x, w = T.dmatrix(), shared(np.eye(2, dtype="float32"))
    out, _ = scan(lambda row: T.nnet.softmax(T.dot(row, w)), x)
    g = grad((out**2).sum(), w)
    assert g.type.dtype == "float32"
    assert function([x], g)(np.ones((3, 2))).shape == (2, 2)


def test_test_values_flow_through_steps_and_gradients():
    with change_flags(compute_test_value="raise"):
        x, w = T.dmatrix(), shared(np.eye(3))
        x.tag.test_value = np.ones((4, 3))
        out, _ = scan(lambda row, h: T.tanh(T.dot(row, w) + h), x, T.zeros((3,)))
        assert out.tag.test_value.shape == (4, 3)
        assert grad(out.sum(), w).tag.test_value.shape == (3, 3)
        with pytest.raises(ValueError, match=r"shapes|aligned|dimension|size"):
            scan(lambda row: T.dot(row, T.ones((5, 5))), x)


def test_the_backward_loop_reads_what_the_forward_loop_has_computed():
    h = T.dvector()
    out, _ = scan(lambda h: T.exp(h) * 2, outputs_info=h, n_steps=3)
    found = ancestors(grad(out[-1].sum(), h))
    steps = {v.owner.op for v in found if v.owner is not None and isinstance(v.owner.op, Scan)}
    assert len(steps) == 2, "no third loop computes the states again"


# --- jacobian and hessian -------------------------------------------------------------------------


def test_jacobian(mode):
    v, m = T.dvector(), T.dmatrix()
    by_v, by_m = jacobian(T.dot(m, v) ** 2, [v, m])
    a, b = RNG.randn(3), RNG.randn(2, 3)
    got_v, got_m = function([v, m], [by_v, by_m], mode=mode)(a, b)
    np.testing.assert_allclose(got_v, 2 * (b @ a)[:, None] * b)
    expected = np.zeros((2, 2, 3))
    for i in range(2):
        expected[i, i] = 2 * (b @ a)[i] * a
    np.testing.assert_allclose(got_m, expected)


def test_forms_of_jacobians():
    v = T.dvector()
    assert isinstance(jacobian(v**2, [v]), list) and isinstance(jacobian(v**2, (v,)), tuple)
    np.testing.assert_array_equal(function([v], jacobian((v**2).sum(), v))([1, 2]), [2, 4])
    np.testing.assert_array_equal(
        function([v], hessian((v**3).sum(), v))([1, 2]), [[6, 0], [0, 12]]
    )
    assert isinstance(hessian((v**3).sum(), (v,)), tuple)
    w = T.dvector()
    with pytest.raises(DisconnectedInputError):
        jacobian(v**2, w)
    zeros = jacobian(v**2, w, disconnected_inputs="ignore")
    np.testing.assert_array_equal(function([v, w], zeros)([1, 2], [3]), [[0], [0]])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda v: jacobian(T.outer(v, v), v), "tensor.jacobian expects a 1 dimensional variable"),
        (lambda v: jacobian(3.0, v), "`expression`, not 3.0"),
        (lambda v: hessian(v, v), "tensor.hessian expects a 0 dimensional variable as `cost`"),
        (lambda v: hessian(v.sum(), T.dmatrix()), "1 dimensional variable as `wrt`"),
    ],
)
def test_jacobians_of_what_has_none(make, text):
    with pytest.raises(AssertionError) as raised:
        make(T.dvector("v"))
    assert text in str(raised.value)


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 12, 3])
def test_checkpoints(n, mode):
    s, w = T.dvector(), T.dscalar()
    step = lambda e, h, w: T.tanh(w * h + e)  # noqa: E731
    every, _ = scan(step, s, one(), w)
    kept, _ = scan_checkpoints(step, s, one(), w, save_every_N=5)
    values = RNG.randn(n), 0.7
    all_rows, some = function([s, w], [every, kept], mode=mode)(*values)
    np.testing.assert_allclose(some, all_rows[[min(k + 4, n - 1) for k in range(0, n, 5)]])
    expected = function([s, w], grad(every[-1], [s, w]))(*values)
    found = function([s, w], grad(kept[-1], [s, w]), mode=mode)(*values)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b)


def test_checkpoints_without_padding_and_with_taps():
    s = T.dvector()
    kept, _ = scan_checkpoints(lambda e, h: e + h, s, one(), save_every_N=2, padding=False)
    f = function([s], kept)
    np.testing.assert_array_equal(f([1, 2, 3, 4]), [4, 11])
    with pytest.raises(ValueError):
        f([1, 2, 3])
    with pytest.raises(RuntimeError, match="doesn't work with taps"):
        scan_checkpoints(lambda e, h: e, s, {"initial": s, "taps": [-2]})


@pytest.mark.parametrize("truncate", [-1, 3])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_gradients_by_the_last_row_alone(steps, truncate, mode):
    m, h, w = T.dmatrix(), T.dvector(), T.dmatrix()
    out, _ = scan(lambda x, h: T.tanh(x + T.dot(h, w)), m, h, truncate_gradient=truncate)
    rng = np.random.RandomState(steps)
    given = rng.randn(steps, 3), rng.randn(3), rng.randn(3, 3)
    # the same gradient, given to all rows
    weights = T.set_subtensor(T.zeros_like(out)[-1], [1.0, -2.0, 0.5])
    last = function([m, h, w], grad((out[-1] * [1.0, -2.0, 0.5]).sum(), [m, h, w]), mode=mode)
    every = function([m, h, w], grad((out * weights).sum(), [m, h, w]), mode=mode)
    if not steps:
        for f in (last, every):
            with pytest.raises(IndexError):
                f(*given)
        return
    for a, b in zip(last(*given), every(*given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_no_zeros_are_added_in_each_step_for_a_gradient_by_the_last_row():
    m, h = T.dmatrix(), T.dvector()
    out, _ = scan(lambda x, h: T.tanh(x * h), m, h)
    f = function([m, h], grad(out[-1].sum(), h))
    _, backward = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert len(backward.layout.taps) == 1 and backward.layout.sequences == 2  # rows of m, of out
