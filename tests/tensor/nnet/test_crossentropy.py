"""Cross entropies: values, labels that do not fit, gradients, names."""

import numpy as np
import pytest

from opwise import tensor as T
from opwise.errors import DisconnectedInputError
from opwise.gradient import grad
from opwise.tensor import nnet
from opwise.tensor.nnet import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    binary_crossentropy,
    categorical_crossentropy,
    crossentropy_categorical_1hot,
    crossentropy_categorical_1hot_grad,
    crossentropy_softmax_1hot,
    crossentropy_softmax_1hot_with_bias,
    crossentropy_softmax_1hot_with_bias_dx,
    crossentropy_softmax_argmax_1hot_with_bias,
    sigmoid_binary_crossentropy,
)

pytestmark = pytest.mark.null

ROWS = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 0.5, 0.25], [1000.0, 0.0, -1000.0]])
BIAS = np.array([0.5, -1.0, 2.0])
LABELS = np.array([0, 2, 1, 1], "int32")


def probabilities(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def log_probabilities(x):
    moved = x - x.max(axis=1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("label_dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_argmax_1hot(run, dtype, label_dtype):
    x, b, y = T.matrix("x", dtype), T.dvector("b"), T.vector("y", label_dtype)
    outputs = crossentropy_softmax_argmax_1hot_with_bias(x, b, y)
    assert [v.type.dtype for v in outputs] == [dtype, dtype, label_dtype]
    nll, sm, argmax = run(outputs, {x: ROWS, b: BIAS, y: LABELS})
    rows = ROWS + BIAS
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(nll, -log_probabilities(rows)[range(4), LABELS], rtol=tolerance)
    np.testing.assert_allclose(sm, probabilities(rows), rtol=tolerance, atol=tolerance)
    assert argmax.tolist() == rows.argmax(axis=1).tolist()


def test_the_cross_entropy_of_a_hopeless_row_is_finite(run):
    x, y = T.dmatrix("x"), T.ivector("y")
    nll, _ = crossentropy_softmax_1hot(x, y)
    assert run(nll, {x: [[1000.0, 0.0]], y: np.array([1], "int32")}).tolist() == [1000.0]


def test_no_rows(run):
    x, y = T.dmatrix("x"), T.ivector("y")
    nll, sm = crossentropy_softmax_1hot(x, y)
    values = {x: np.zeros((0, 3)), y: np.zeros(0, "int32")}
    assert [v.shape for v in run([nll, sm], values)] == [(0,), (0, 3)]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([0, 5], "y_i value out of bounds: label 1 is 5, but x has 3 columns"),
        ([-1, 0], "y_i value out of bounds: label 0 is -1"),
        ([0], "x has 2 rows, but there are 1 labels"),
        ([0, 1, 2], "x has 2 rows, but there are 3 labels"),
    ],
)
def test_labels_that_do_not_fit(run, labels, text):
    x, y = T.dmatrix("x"), T.ivector("y")
    nll, _ = crossentropy_softmax_1hot(x, y)
    values = {x: ROWS[:2], y: np.array(labels, "int32")}
    with pytest.raises(ValueError, match=text):
        run(nll, values)
    p, g = T.dmatrix("p"), T.dvector("g")
    values = {p: probabilities(ROWS[:2]), y: np.array(labels, "int32"), g: np.ones(2)}
    for out in (
        crossentropy_categorical_1hot(p, y),
        crossentropy_categorical_1hot_grad(g, p, y),
        crossentropy_softmax_1hot_with_bias_dx(g, p, y),
    ):
        with pytest.raises(ValueError, match=text.split(":")[0].removeprefix("x ")):
            run(out, values)


def test_a_bias_that_does_not_fit(run):
    x, b, y = T.dmatrix("x"), T.dvector("b"), T.ivector("y")
    nll, _ = crossentropy_softmax_1hot_with_bias(x, b, y)
    with pytest.raises(ValueError, match="b has 2 elements, but x has 3 columns"):
        run(nll, {x: ROWS, b: BIAS[:2], y: LABELS})


def test_what_is_refused():
    x, b, y = T.dmatrix(), T.dvector(), T.ivector()
    op = crossentropy_softmax_argmax_1hot_with_bias
    for wrong, text in (
        ((T.imatrix(), b, y), "x must be 2-d tensor of floats"),
        ((T.dvector(), b, y), "x must be 2-d tensor of floats"),
        ((x, x, y), "b must be 1-d tensor of floats"),
        ((x, b, b), r"y_idx must be 1-d tensor of \[u\]ints"),
        ((x, b, T.imatrix()), r"y_idx must be 1-d tensor of \[u\]ints"),
    ):
        with pytest.raises(ValueError, match=text):
            op(*wrong)
    for wrong, text in (
        ((x, x, y), r"dy must be \{0,1\}-d tensor of floats"),
        ((y, x, y), r"dy must be \{0,1\}-d tensor of floats"),
        ((b, b, y), "sm must be 2-d tensor of floats"),
        ((b, x, x), "y_idx must be 1-d tensor"),
    ):
        with pytest.raises(ValueError, match=text):
            crossentropy_softmax_1hot_with_bias_dx(*wrong)


@pytest.mark.parametrize("dy", [np.arange(1.0, 5.0), np.array([2.0]), np.array(3.0)])
def test_dx(run, dy):
    d, sm, y = T.TensorType("float64", (False,) * dy.ndim)("d"), T.dmatrix("sm"), T.lvector("y")
    out = crossentropy_softmax_1hot_with_bias_dx(d, sm, y)
    p = probabilities(ROWS)
    expected = dy.reshape(-1, 1) * (p - np.eye(3)[LABELS])
    np.testing.assert_allclose(run(out, {d: dy, sm: p, y: LABELS}), expected)


def test_dx_needs_a_gradient_for_each_row(run):
    d, sm, y = T.dvector("d"), T.dmatrix("sm"), T.ivector("y")
    out = crossentropy_softmax_1hot_with_bias_dx(d, sm, y)
    with pytest.raises(ValueError, match="dy has 2 elements, but sm has 4 rows"):
        run(out, {d: [1.0, 2.0], sm: ROWS, y: LABELS})


Y = T.TensorConstant(T.ivector, LABELS[:3])


@pytest.mark.parametrize("outputs", [(0,), (1,), (0, 1)])
def test_gradients_with_a_softmax(check_forward, outputs):
    def build(x, b):
        found = crossentropy_softmax_argmax_1hot_with_bias(x, b, Y)
        parts = [found[0].dimshuffle(0, "x") if k == 0 else found[1] for k in outputs]
        return parts[0] + parts[1] * parts[1] if len(parts) == 2 else parts[0]

    def build_added(x, b):
        found = crossentropy_softmax_argmax_1hot_with_bias(x, b, Y)
        return found[0] + found[1].sum(axis=1) * found[1][:, 0]

    check_forward(build_added if len(outputs) == 2 else build, ROWS[:3], BIAS)


@pytest.mark.parametrize(
    ("dy", "pattern"),
    [
        (np.arange(1.0, 4.0), (False,)),
        (np.array([2.0]), (True,)),
        (np.array(2.0), ()),
    ],
)
def test_gradient_of_dx(check_gradient, dy, pattern):
    check_gradient(
        lambda dy, sm: crossentropy_softmax_1hot_with_bias_dx(dy, sm, Y),
        dy,
        probabilities(ROWS[:3]),
        patterns=[pattern, (False, False)],
    )


def test_gradients_of_given_probabilities(check_forward, check_gradient):
    p = probabilities(ROWS[:3])
    check_forward(lambda c: crossentropy_categorical_1hot(c, Y), p)
    check_gradient(lambda g, c: crossentropy_categorical_1hot_grad(g, c, Y), np.arange(1.0, 4.0), p)


def test_names_of_gradients(dump):
    x, b, y = T.dmatrix("x"), T.dvector("b"), T.ivector("y")
    nll, sm = crossentropy_softmax_1hot_with_bias(x, b, y)
    gradient = grad(nll.sum(), x)
    assert isinstance(gradient.owner.op, CrossentropySoftmax1HotWithBiasDx)
    assert gradient.owner.inputs[1:] == [sm, y]
    assert dump(grad(nll.sum(), b)).startswith(
        "Sum{axis=[0], acc_dtype=float64}(CrossentropySoftmax1HotWithBiasDx("
    )
    by_p = grad(crossentropy_categorical_1hot(x, y).sum(), x)
    assert isinstance(by_p.owner.op, CrossentropyCategorical1HotGrad)


def test_labels_have_no_gradient():
    x, y = T.dmatrix("x"), T.ivector("y")
    for cost in (crossentropy_softmax_1hot(x, y)[0], crossentropy_categorical_1hot(x, y)):
        with pytest.raises(DisconnectedInputError):
            grad(cost.sum(), y)


@pytest.mark.parametrize("label_type", [T.ivector, T.lvector])
def test_categorical_of_labels(run, label_type):
    p, y = T.dmatrix("p"), label_type("y")
    out = categorical_crossentropy(p, y)
    assert isinstance(out.owner.op, CrossentropyCategorical1Hot)
    assert out.type == T.dvector
    result = run(out, {p: [[0.25, 0.75], [0.0, 1.0]], y: np.array([0, 0], y.dtype)})
    assert result.tolist() == [-np.log(0.25), np.inf]


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_categorical_of_distributions(run, ndim):
    shape = (2, 4, 3)[3 - ndim :]
    type_ = T.TensorType("float64", (False,) * ndim)
    p, t = type_("p"), type_("t")
    random = np.random.default_rng(0)
    values = random.uniform(0.1, 1, shape), random.uniform(0, 1, shape)
    result = run(categorical_crossentropy(p, t), {p: values[0], t: values[1]})
    np.testing.assert_allclose(result, -(values[1] * np.log(values[0])).sum(axis=-1))


def test_categorical_refused():
    x = T.dmatrix()
    for other in (T.dtensor3(), T.iscalar()):
        with pytest.raises(TypeError, match="rank mismatch between coding and true distributions"):
            categorical_crossentropy(x, other)
    for labels in (T.dvector(), T.bvector()):
        with pytest.raises(TypeError, match="integer vector required for argument: true_one_of_n"):
            categorical_crossentropy(x, labels)
    with pytest.raises(TypeError, match="matrix required for argument: coding_dist"):
        crossentropy_categorical_1hot(T.dvector(), T.ivector())


def test_max_and_argmax(run):
    x, y = T.dmatrix("x"), T.ivector("y")
    outputs = nnet.crossentropy_softmax_max_and_argmax_1hot(x, y)
    nll, sm, highest, argmax = run(outputs, {x: ROWS, y: LABELS})
    p = probabilities(ROWS)
    np.testing.assert_allclose(nll, -log_probabilities(ROWS)[range(4), LABELS])
    np.testing.assert_allclose(sm, p)
    np.testing.assert_allclose(highest, p.max(axis=1))
    assert argmax.tolist() == p.argmax(axis=1).tolist()


FAR = np.array([-1000.0, 1000.0, -2.0, 0.0, 3.0])
TARGETS = np.array([1.0, 0.0, 0.25, 1.0, 1.0])


def test_binary(run):
    p, t, i = T.dvector("p"), T.dvector("t"), T.ivector("i")
    values = np.array([0.1, 0.5, 0.9]), np.array([0.0, 0.25, 1.0])
    expected = -(values[1] * np.log(values[0]) + (1 - values[1]) * np.log(1 - values[0]))
    np.testing.assert_allclose(
        run(binary_crossentropy(p, t), {p: values[0], t: values[1]}), expected
    )
    assert binary_crossentropy(T.fvector(), T.bvector()).type.dtype == "float32"
    assert binary_crossentropy(p, i).type == T.dvector


def test_sigmoid_binary(run, check_gradient):
    x, t = T.dvector("x"), T.dvector("t")
    result = run(sigmoid_binary_crossentropy(x, t), {x: FAR, t: TARGETS})
    expected = [1000.0, 1000.0, 0.6269280110429725, 0.6931471805599453, 0.04858735157374206]
    np.testing.assert_allclose(result, expected, rtol=1e-15)
    check_gradient(sigmoid_binary_crossentropy, FAR[2:], TARGETS[2:])


def test_names():
    for name in (
        "CrossentropyCategorical1Hot", "CrossentropyCategorical1HotGrad",
        "CrossentropySoftmax1HotWithBiasDx", "CrossentropySoftmaxArgmax1HotWithBias",
    ):  # fmt: skip
        op = getattr(nnet, name)()
        assert str(op) == name
        assert op == getattr(nnet, name)()
