"""The CTC loss and its gradient, against a sum over all alignments, in numpy and in C."""

import itertools

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, ProfileMode, function, grad, verify_grad
from opwise.errors import NullTypeGradError
from opwise.tensor.nnet.ctc import ConnectionistTemporalClassification, ctc, ctc_available

pytestmark = pytest.mark.null

MODES = ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", ProfileMode(), Mode("py", "fast_run")]


def collapsed(path):
    """Return what a path of symbols stands for: without repeats, then without blanks."""
    return [k for k, _ in itertools.groupby(path) if k]


def cost_by_enumeration(x, labels, steps):
    """Return minus the logarithm of the sum of the probabilities of all paths to the labels."""
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    wanted = [k for k in labels if k >= 0]
    total = sum(
        np.prod([p[t, k] for t, k in enumerate(path)])
        for path in itertools.product(range(x.shape[1]), repeat=steps)
        if collapsed(path) == wanted
    )
    return -np.log(total)


#: (labels, steps): padded in the middle, repeated, none, exactly as many steps as are needed
LABELS = np.array([[1, 2, -1], [2, -1, 1], [1, 1, -1], [-1, -1, -1], [1, 2, 1]], np.int32)
STEPS = np.array([4, 3, 3, 2, 3], np.int32)


@pytest.fixture
def x():
    return np.random.RandomState(1).randn(4, 5, 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_costs_are_sums_over_all_alignments(x, mode, dtype):
    activations = T.tensor3(dtype=dtype)
    f = function([activations], ctc(activations, LABELS, STEPS), mode=mode)
    expected = [
        cost_by_enumeration(x[:, b], LABELS[b], STEPS[b]) for b in range(len(LABELS))
    ]  # fmt: skip
    found = f(x.astype(dtype))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_those_of_the_costs(x, mode):
    activations, weights = T.dtensor3(), T.dvector()
    costs = ctc(activations, LABELS, STEPS)
    f = function([activations, weights], grad(T.dot(costs, weights), activations), mode=mode)
    w = np.arange(1.0, 6.0)
    found = f(x, w)
    h = 1e-6
    for t, b, k in itertools.product(range(4), range(5), range(3)):
        up, down = x[:, b].copy(), x[:, b].copy()
        up[t, k] += h
        down[t, k] -= h
        slope = (cost_by_enumeration(up, LABELS[b], STEPS[b])
                 - cost_by_enumeration(down, LABELS[b], STEPS[b])) / (2 * h)  # fmt: skip
        assert found[t, b, k] == pytest.approx(w[b] * slope, abs=1e-7)
    assert not found[3, 1].any()  # beyond the end of the sequence


def test_the_gradient_passes_the_numeric_check(x):
    verify_grad(lambda a: ctc(a, LABELS, STEPS), [x], rng=np.random.RandomState(0))


def test_numbers_of_the_reference_implementation():
    """From the tutorial of warp-ctc, https://github.com/baidu-research/warp-ctc."""
    rows = [[[0] * 5, [1, 2, 3, 4, 5], [-5, -4, -3, -2, -1]],
            [[0] * 5, [6, 7, 8, 9, 10], [-10, -9, -8, -7, -6]],
            [[0] * 5, [11, 12, 13, 14, 15], [-15, -14, -13, -12, -11]]]  # fmt: skip
    labels = np.array([[1, -1], [3, 3], [2, 3]], np.int32)
    activations = T.ftensor3()
    costs = ctc(activations, labels, np.array([1, 3, 3], np.int32))
    f = function([activations], [costs, grad(T.sum(costs), activations)])
    found, slopes = f(np.array(rows, np.float32))
    np.testing.assert_allclose(found, [1.609437943, 7.355742931, 4.938849926], rtol=1e-6)
    np.testing.assert_allclose(slopes[0, 0], [0.2, -0.8, 0.2, 0.2, 0.2], rtol=1e-5)
    np.testing.assert_allclose(
        slopes[1, 1], [-0.9883437753, 0.03168492019, 0.08612854034, 0.2341216654, 0.636408627],
        rtol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_too_few_steps_cost_nothing(x, mode):
    activations, steps = T.dtensor3(), T.ivector()
    costs = ctc(activations, LABELS, steps)
    f = function([activations, steps], [costs, grad(T.sum(costs), activations)], mode=mode)
    found, slopes = f(x, np.array([1, 0, 2, 0, 2], np.int32))
    assert not found.any() and not slopes.any()


@pytest.mark.parametrize("mode", MODES)
def test_other_layouts_and_integers(x, mode):
    activations, labels, steps = T.dtensor3(), T.lmatrix(), T.vector(dtype="int16")
    f = function([activations, labels, steps], ctc(activations, labels, steps), mode=mode)
    expected = f(x, LABELS.astype(np.int64), STEPS.astype(np.int16))
    turned = np.asfortranarray(x)
    found = f(turned, np.asfortranarray(LABELS.astype(np.int64)), STEPS.astype(np.int16))
    np.testing.assert_allclose(found, expected)
    empty = f(x[:, :0], LABELS[:0].astype(np.int64), STEPS[:0].astype(np.int16))
    assert empty.shape == (0,)


@pytest.mark.c
def test_many_sequences_are_shared_among_threads():
    rng = np.random.RandomState(2)
    x, labels = rng.randn(30, 64, 20), rng.randint(1, 20, (64, 9))
    steps = rng.randint(20, 31, 64)
    activations = T.dtensor3()
    costs = ctc(activations, labels, steps)
    outputs = [costs, grad(T.sum(costs), activations)]
    in_c, in_python = (function([activations], outputs, mode=Mode(how, "fast_run"))(x)
                       for how in ("c|py", "py"))  # fmt: skip
    for one, other in zip(in_c, in_python, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


def test_it_runs_in_c_without_the_gradient_where_that_is_not_read():
    activations = T.ftensor3()
    f = function([activations], ctc(activations, LABELS, STEPS), mode="FAST_RUN")
    (node,) = f.maker.fgraph.toposort()
    assert not node.op.compute_grad and len(node.outputs) == 1
    assert all(f.linked.in_c)


def test_shapes_are_known(x):
    activations = T.dtensor3()
    costs, slopes = ConnectionistTemporalClassification().make_node(
        activations, LABELS, STEPS
    ).outputs  # fmt: skip
    f = function([activations], [costs.shape, slopes.shape], mode="FAST_RUN")
    assert [shape.tolist() for shape in f(x)] == [[5], [4, 5, 3]]


def test_there_is_no_second_derivative(x):
    activations = T.dtensor3()
    slope = grad(T.sum(ctc(activations, LABELS, STEPS)), activations)
    with pytest.raises(NullTypeGradError, match="second derivative"):
        grad(T.sum(slope), activations)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((T.ltensor3(), T.imatrix(), T.ivector()), TypeError),
        ((T.ftensor3(), T.fmatrix(), T.ivector()), TypeError),
        ((T.ftensor3(), T.imatrix(), T.fvector()), TypeError),
        ((T.fmatrix(), T.imatrix(), T.ivector()), ValueError),
        ((T.ftensor3(), T.ivector(), T.ivector()), ValueError),
        ((T.ftensor3(), T.imatrix(), T.imatrix()), ValueError),
    ],
)
def test_arguments_are_checked(arguments, error):
    with pytest.raises(error):
        ctc(*arguments)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda labels, steps: (labels[:3], steps), "of 5 sequences, labels of 3"),
        (lambda labels, steps: (labels, steps[:3]), "input_lengths of 3"),
        (lambda labels, steps: (np.maximum(labels, 0), steps), "must not be 0, the blank"),
        (lambda labels, steps: (np.where(labels < 0, labels, 3), steps), "must be less than 3"),
        (lambda labels, steps: (labels, steps + 3), "input_lengths must be 0 to 4"),
    ],
)
def test_values_are_checked(x, mode, change, said):
    activations, labels, steps = T.dtensor3(), T.imatrix(), T.ivector()
    f = function([activations, labels, steps], ctc(activations, labels, steps), mode=mode)
    with pytest.raises(ValueError, match=said):
        f(x, *(a.astype(np.int32) for a in change(LABELS, STEPS)))


def test_it_is_available():
    assert ctc_available()
