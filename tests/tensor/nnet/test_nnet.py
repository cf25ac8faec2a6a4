"""Activations, prepended columns, confusion matrix and the softmax in two levels."""

import numpy as np
import pytest

from opwise import Variable
from opwise import tensor as T
from opwise.gradient import grad
from opwise.scalar import dtypes
from opwise.tensor import elsewhere, nnet

pytestmark = pytest.mark.null

POINTS = np.array([-30.0, -5.0, -1.0, -0.25, 0.0, 0.25, 1.0, 5.0, 30.0])


def leaky(alpha):
    return np.where(POINTS > 0, POINTS, alpha * POINTS)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: nnet.relu(x), np.maximum(POINTS, 0)),
        (lambda x: nnet.relu(x, 0.1), leaky(0.1)),
        (lambda x: nnet.relu(x, alpha=-1), np.abs(POINTS)),
        (lambda x: nnet.relu(x, np.array(0.25)), leaky(0.25)),
        (lambda x: nnet.elu(x), np.where(POINTS > 0, POINTS, np.expm1(POINTS))),
        (lambda x: nnet.elu(x, 2.0), np.where(POINTS > 0, POINTS, 2 * np.expm1(POINTS))),
        (
            lambda x: nnet.selu(x),
            1.0507009873554805 * np.where(
                POINTS > 0, POINTS, 1.6732632423543772 * np.expm1(POINTS)
            ),
        ),
        (lambda x: nnet.softsign(x), POINTS / (1 + np.abs(POINTS))),
    ],
)  # fmt: skip
def test_activations(run, build, expected):
    x = T.dvector("x")
    np.testing.assert_allclose(run(build(x), {x: POINTS}), expected, rtol=1e-13)


def test_relu_prints_as_ever(dump):
    x = T.dmatrix("x")
    assert dump(nnet.relu(x)) == (
        "Elemwise{mul,no_inplace}(InplaceDimShuffle{x,x}(TensorConstant{0.5}), "
        "Elemwise{add,no_inplace}(x, Elemwise{abs_,no_inplace}(x)))"
    )
    assert dump(nnet.softsign(x)) == "softsign(x)"
    assert nnet.relu(T.fmatrix()).type.dtype == "float32"
    assert nnet.relu(T.bmatrix()).type.dtype == "float32"
    assert nnet.elu(T.fmatrix(), 2.0).type.dtype == "float32"


def test_the_slope_of_relu_at_0_is_the_mean(run):
    x = T.dvector("x")
    at = {x: np.array([-1.0, 0.0, 1.0])}
    assert run(grad(nnet.relu(x).sum(), x), at).tolist() == [0.0, 0.5, 1.0]
    assert run(grad(nnet.relu(x, 0.5).sum(), x), at).tolist() == [0.5, 0.75, 1.0]


@pytest.mark.parametrize("dtype", sorted(dtypes.DISCRETE))
def test_relu_of_integers_does_not_overflow(run, dtype):
    """x + abs(x) is -56 for 100 of int8, and True for True."""
    x, slope = T.TensorType(dtype, (False,))("x"), T.bscalar("slope")
    ends = [0, 1] if dtype == "bool" else [np.iinfo(dtype).min, 0, 1, 100, np.iinfo(dtype).max]
    values = np.array(ends, dtype)
    exact = values.astype("float64")
    positive = np.maximum(exact, 0)
    for out, expected in (
        (nnet.relu(x), positive),
        (nnet.relu(x, 0.5), np.where(exact > 0, exact, 0.5 * exact)),
        (nnet.relu(x, slope), np.where(exact > 0, exact, 127 * exact)),
    ):
        assert out.type.dtype in ("float32", "float64")
        found = run(out, {x: values, slope: np.int8(127)})
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(nnet.relu(values), positive)


def test_gradients(check_gradient):
    points = np.array([-2.0, -0.5, 0.25, 3.0])
    for function in (nnet.relu, nnet.elu, nnet.selu, nnet.softsign):
        check_gradient(function, points)
    check_gradient(nnet.relu, points, np.array(0.3))


def test_prepended_columns(run, check_gradient):
    x, s, f = T.dmatrix("x"), T.dscalar("s"), T.fmatrix("f")
    rows = np.arange(6.0).reshape(2, 3)
    for out, column in ((nnet.prepend_0_to_each_row(x), 0), (nnet.prepend_1_to_each_row(x), 1)):
        np.testing.assert_array_equal(run(out, {x: rows}), np.insert(rows, 0, column, axis=1))
    out = nnet.prepend_scalar_to_each_row(s, x)
    np.testing.assert_array_equal(run(out, {x: rows, s: 2.5}), np.insert(rows, 0, 2.5, axis=1))
    assert run(nnet.prepend_1_to_each_row(f), {f: rows}).dtype == "float32"
    check_gradient(nnet.prepend_0_to_each_row, rows)
    check_gradient(nnet.prepend_scalar_to_each_row, np.array(1.5), rows)
    assert str(nnet.prepend_0_to_each_row) == "Prepend_scalar_constant_to_each_row{Constant{0.0}}"
    with pytest.raises(TypeError, match="Expected a scalar and a matrix"):
        nnet.prepend_scalar_to_each_row(x, x)
    with pytest.raises(TypeError, match="Expected a matrix"):
        nnet.prepend_0_to_each_row(s)


def test_confusion_matrix(run):
    a, p = T.ivector("a"), T.lvector("p")
    counts, order = nnet.confusion_matrix(a, p)
    assert counts.type.dtype == "int64"
    values = {a: np.array([2, 0, 2, 2, 0, 1], "int32"), p: np.array([0, 0, 2, 2, 0, 2])}
    counts, order = run([counts, order], values)
    assert counts.tolist() == [[2, 0, 0], [0, 0, 1], [1, 0, 2]]
    assert order.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="actual must be 1-d tensor variable"):
        nnet.confusion_matrix(T.imatrix(), p)
    with pytest.raises(ValueError, match="pred must be 1-d tensor variable"):
        nnet.confusion_matrix(a, T.imatrix())


def softmax_of(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_h_softmax(run):
    """Ten outputs in four classes of three; the two last places stay empty."""
    random = np.random.default_rng(2)
    arrays = [random.normal(size=s) for s in ((5, 6), (6, 4), (4,), (4, 6, 3), (4, 3))]
    types = (T.dmatrix, T.dmatrix, T.dvector, T.dtensor3, T.dmatrix)
    x, W1, b1, W2, b2 = variables = [t() for t in types]
    values = dict(zip(variables, arrays, strict=True))
    whole = run(nnet.h_softmax(x, 5, 10, 4, 3, W1, b1, W2, b2), values)
    inner = softmax_of(np.tensordot(arrays[0], arrays[3], axes=((1,), (1,))) + arrays[4])
    expected = (softmax_of(arrays[0] @ arrays[1] + arrays[2])[:, :, None] * inner).reshape(5, 12)
    np.testing.assert_allclose(whole, expected[:, :10])
    target = T.ivector("target")
    wanted = np.array([0, 9, 4, 7, 3], "int32")
    out = nnet.h_softmax(x, 5, 10, 4, 3, W1, b1, W2, b2, target)
    np.testing.assert_allclose(run(out, values | {target: wanted}), expected[range(5), wanted])


def test_gradient_of_h_softmax(check_gradient):
    random = np.random.default_rng(3)
    points = [random.normal(size=s) for s in ((2, 3), (3, 2), (2,), (2, 3, 2), (2, 2))]
    wanted = T.TensorConstant(T.ivector, np.array([3, 0], "int32"))
    check_gradient(lambda x, W1, b1, W2, b2: nnet.h_softmax(
        x, 2, 4, 2, 2, W1, b1, W2, b2, wanted), *points)  # fmt: skip


def test_public_names():
    """The names of theano.tensor.nnet, without those of convolutions and of rewriting."""
    names = """
        CrossentropyCategorical1Hot CrossentropyCategorical1HotGrad
        CrossentropySoftmax1HotWithBiasDx CrossentropySoftmaxArgmax1HotWithBias LogSoftmax
        Prepend_scalar_constant_to_each_row Prepend_scalar_to_each_row Softmax SoftmaxGrad
        SoftmaxWithBias batch_normalization binary_crossentropy bn categorical_crossentropy
        confusion_matrix crossentropy_categorical_1hot crossentropy_categorical_1hot_grad
        crossentropy_softmax_1hot crossentropy_softmax_1hot_with_bias
        crossentropy_softmax_1hot_with_bias_dx crossentropy_softmax_argmax_1hot_with_bias
        crossentropy_softmax_max_and_argmax_1hot crossentropy_softmax_max_and_argmax_1hot_with_bias
        elu h_softmax hard_sigmoid logsoftmax logsoftmax_op nnet prepend_0_to_each_row
        prepend_1_to_each_row prepend_scalar_to_each_row relu scalar_sigmoid selu sigm sigmoid
        sigmoid_binary_crossentropy sigmoid_inplace softmax softmax_grad softmax_graph softmax_op
        softmax_with_bias softplus softsign ultra_fast_sigmoid
    """.split()
    assert [name for name in names if not hasattr(nnet, name)] == []
    modules = {"bn", "nnet", "sigm"}
    assert set(names) - modules == set(elsewhere.public(nnet))
    for name in elsewhere.public(nnet.nnet):
        assert hasattr(nnet.nnet, name)


def test_relu_of_arrays_and_numbers_computes_at_once():
    result = nnet.relu(np.array([-1.0, 2.0]))
    assert type(result) is np.ndarray and result.tolist() == [0.0, 2.0]
    assert nnet.relu(np.array([-1, 2])).dtype == "float64"
    assert nnet.relu(-2.0) == 0.0
    assert isinstance(nnet.relu(np.array([-1.0]), 0.1), Variable)
