"""Softmax of rows: values, dtypes, shapes, gradients, printed names and refusals."""

import numpy as np
import pytest

from opwise import tensor as T
from opwise.gradient import grad
from opwise.nn import softmax
from opwise.tensor import nnet
from opwise.tensor.nnet import (
    LogSoftmax,
    Softmax,
    SoftmaxGrad,
    SoftmaxWithBias,
    logsoftmax,
    softmax_grad,
    softmax_graph,
    softmax_op,
    softmax_with_bias,
)

pytestmark = pytest.mark.null

ROWS = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 0.5, 0.25], [1000.0, 0.0, -1000.0]])
BIAS = np.array([0.5, -1.0, 2.0])


def expected_softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_softmax(run, dtype):
    x = T.matrix("x", dtype)
    out = softmax(x)
    assert out.type == x.type
    rows = ROWS.astype(dtype)
    result = run(out, {x: rows})
    tolerance = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-15}[dtype]
    np.testing.assert_allclose(
        result, expected_softmax(rows.astype("float64")), rtol=tolerance, atol=tolerance
    )


def test_softmax_of_a_vector_is_a_matrix(run, dump):
    v = T.dvector("v")
    out = softmax(v)
    assert out.type.broadcastable == (True, False)
    assert dump(out) == "Softmax(InplaceDimShuffle{x,0}(v))"
    np.testing.assert_allclose(
        run(out, {v: [0.0, 1.0]}), [[0.26894142136999516, 0.7310585786300049]]
    )


def test_softmax_edges(run):
    x = T.dmatrix("x")
    assert run(softmax(x), {x: np.zeros((0, 3))}).shape == (0, 3)
    assert run(softmax(x), {x: np.zeros((2, 0))}).shape == (2, 0)
    np.testing.assert_array_equal(run(softmax(x), {x: np.zeros((2, 1))}), [[1.0], [1.0]])
    result = run(softmax(x), {x: [[1.0, np.nan], [1.0, np.inf], [-np.inf, 0.0]]})
    assert np.isnan(result[:2]).all() and result[2].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (T.dtensor3, "TensorType(float64, 3D)"),
        (T.imatrix, "TensorType(int32, matrix)"),
        (T.dscalar, "TensorType(float64, scalar)"),
        (T.zmatrix, "TensorType(complex128, matrix)"),
    ],
)
@pytest.mark.parametrize("function", [softmax, logsoftmax])
def test_what_is_refused(function, make, text):
    with pytest.raises(ValueError, match="x must be 1-d or 2-d tensor of floats") as error:
        function(make())
    assert text in str(error.value)


def test_a_softmax_over_one_element_warns():
    with pytest.warns(UserWarning, match="over a dimension of length 1"):
        softmax(T.dcol())


def test_with_bias(run, dump):
    x, b = T.dmatrix("x"), T.dvector("b")
    out = softmax_with_bias(x, b)
    assert dump(out) == "SoftmaxWithBias(x, b)"
    np.testing.assert_allclose(run(out, {x: ROWS, b: BIAS}), expected_softmax(ROWS + BIAS))
    f = T.fmatrix("f")
    assert run(softmax_with_bias(f, b), {f: ROWS, b: BIAS}).dtype == "float32"
    with pytest.raises(ValueError, match="b has 1 elements, but x has 3 columns"):
        run(out, {x: ROWS, b: [1.0]})
    for wrong in ((T.dvector(), b), (T.imatrix(), b)):
        with pytest.raises(ValueError, match="x must be 2-d tensor of floats"):
            softmax_with_bias(*wrong)
    for wrong in ((x, T.ivector()), (x, x)):
        with pytest.raises(ValueError, match="b must be 1-d tensor of floats"):
            softmax_with_bias(*wrong)


def test_logsoftmax(run):
    x = T.dmatrix("x")
    result = run(logsoftmax(x), {x: ROWS})
    np.testing.assert_allclose(result[:3], np.log(expected_softmax(ROWS[:3])), rtol=1e-14)
    np.testing.assert_array_equal(result[3], [0.0, -1000.0, -2000.0])
    assert logsoftmax(T.fvector()).type.dtype == "float32"
    assert run(logsoftmax(x), {x: np.zeros((0, 2))}).shape == (0, 2)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("ndim", [1, 3])
def test_softmax_along_an_axis(run, axis, ndim):
    x = T.TensorType("float64", (False,) * ndim)("x")
    axis = axis if ndim > 1 else 0
    value = 100 * np.random.RandomState(0).normal(size=(4, 3, 5)[:ndim])
    e = np.exp(value - value.max(axis, keepdims=True))
    expected = e / e.sum(axis, keepdims=True)
    found, logs = run([softmax(x, axis=axis), logsoftmax(x, axis)], {x: value})
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-10)
    with pytest.raises(ValueError, match="Not enough dimensions on x"):
        softmax(x, axis=3)


def test_softmax_graph(run, dump):
    x = T.dmatrix("x")
    out = softmax_graph(x)
    np.testing.assert_allclose(run(out, {x: ROWS[:3]}), expected_softmax(ROWS[:3]))
    assert dump(out) == (
        "Elemwise{true_div,no_inplace}(Elemwise{exp,no_inplace}(x), "
        "InplaceDimShuffle{0,x}(Sum{axis=[1], acc_dtype=float64}(Elemwise{exp,no_inplace}(x))))"
    )


def test_softmax_grad(run):
    dy, sm = T.dmatrix("dy"), T.dmatrix("sm")
    out = softmax_grad(dy, sm)
    assert out.type == sm.type
    p = expected_softmax(ROWS[:3])
    g = np.arange(9.0).reshape(3, 3)
    expected = [(np.diag(row) - np.outer(row, row)) @ up for row, up in zip(p, g, strict=True)]
    np.testing.assert_allclose(run(out, {dy: g, sm: p}), expected, atol=1e-15)
    assert softmax_grad(T.dvector(), sm).type == sm.type
    with pytest.raises(ValueError, match="dy must be 1-d or 2-d tensor of floats"):
        softmax_grad(T.imatrix(), sm)


@pytest.mark.parametrize(
    ("build", "points"),
    [
        (softmax, (ROWS[:3],)),
        (softmax, (ROWS[0],)),
        (softmax_with_bias, (ROWS[:3], BIAS)),
        (logsoftmax, (ROWS[:3],)),
        (logsoftmax, (ROWS[2],)),
        (softmax_grad, (ROWS[:3], expected_softmax(ROWS[:3]))),
        (softmax_graph, (ROWS[:3],)),
    ],
)
def test_gradients(check_forward, build, points):
    check_forward(build, *points)


def test_the_gradient_is_softmax_grad_of_the_output(dump):
    x, b = T.dmatrix("x"), T.dvector("b")
    for out, wrt in ((softmax(x), x), (softmax_with_bias(x, b), x)):
        gradient = grad(out.sum(), wrt)
        assert isinstance(gradient.owner.op, SoftmaxGrad)
        assert gradient.owner.inputs[1] is out
    by_bias = grad(softmax_with_bias(x, b).sum(), b)
    assert dump(by_bias).startswith("Sum{axis=[0], acc_dtype=float64}(SoftmaxGrad(")


def test_identity_and_names():
    for op, text in (
        (Softmax(), "Softmax"),
        (SoftmaxWithBias(), "SoftmaxWithBias"),
        (SoftmaxGrad(), "SoftmaxGrad"),
        (LogSoftmax(), "LogSoftmax"),
    ):
        assert str(op) == text
        assert op == type(op)() and hash(op) == hash(type(op)())
    assert nnet.softmax_op is softmax_op and isinstance(nnet.logsoftmax_op, LogSoftmax)
