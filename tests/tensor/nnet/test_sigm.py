"""Sigmoids and softplus as elementwise functions. Their accuracy is tested with the scalar rows."""

import numpy as np
import pytest

from opwise import tensor as T
from opwise.gradient import grad
from opwise.scalar import ScalarSigmoid, scalar_sigmoid, scalar_softplus
from opwise.tensor import nnet
from opwise.tensor.nnet import sigmoid_inplace

pytestmark = pytest.mark.null

POINTS = np.array([-30.0, -5.0, -1.0, -0.25, 0.0, 0.25, 1.0, 5.0, 30.0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (nnet.sigmoid, 1 / (1 + np.exp(-POINTS))),
        (nnet.softplus, np.log1p(np.exp(POINTS))),
        (nnet.hard_sigmoid, [0.0, 0.0, 0.3, 0.45, 0.5, 0.55, 0.7, 1.0, 1.0]),
        (
            nnet.ultra_fast_sigmoid,
            [0.00247262315663499, 0.01394294682656394, 0.25, 0.4166666666666667, 0.5,
             0.5833333333333334, 0.75, 0.9860570531734361, 0.997527376843365],
        ),
    ],
)  # fmt: skip
def test_values(run, function, expected):
    x, f = T.dvector("x"), T.fvector("f")
    np.testing.assert_allclose(run(function(x), {x: POINTS}), expected, rtol=1e-15)
    single = run(function(f), {f: POINTS})
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, expected, rtol=2e-5)


def test_tails_are_exact(run):
    """No cut at 19 and 16, nor at -709."""
    x = T.dvector("x")
    far = np.array([-745.0, -720.0, 20.0, 30.0, 1e300])
    np.testing.assert_allclose(
        run(nnet.sigmoid(x), {x: far}),
        [5e-324, np.exp(-720.0), 0.9999999979388463, 0.9999999999999065, 1.0],
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        run(nnet.softplus(x), {x: far}),
        [5e-324, np.exp(-720.0), 20.000000002061153, 30.000000000000092, 1e300],
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    "function", [nnet.sigmoid, nnet.softplus, nnet.hard_sigmoid, nnet.ultra_fast_sigmoid]
)
def test_dtypes(function):
    for dtype, out in (("int8", "float32"), ("bool", "float32"), ("int64", "float64"),
                       ("float16", "float16"), ("float32", "float32")):  # fmt: skip
        assert function(T.vector(dtype=dtype)).type.dtype == out


def test_gradients(check_forward):
    points = np.array([-3.0, -1.0, 0.3, 2.0])
    for function in (nnet.sigmoid, nnet.softplus, nnet.hard_sigmoid):
        check_forward(function, points)


def test_names(dump):
    x = T.dvector("x")
    assert dump(nnet.sigmoid(x)) == "sigmoid(x)"
    assert dump(nnet.softplus(x)) == "softplus(x)"
    assert dump(nnet.ultra_fast_sigmoid(x)) == "ultra_fast_sigmoid(x)"
    assert dump(nnet.hard_sigmoid(x)).startswith(
        "Elemwise{clip,no_inplace}(Elemwise{add,no_inplace}(Elemwise{mul,no_inplace}(x, "
    )
    assert dump(grad(nnet.softplus(x).sum(), x)).endswith("Elemwise{scalar_sigmoid}(x))")
    assert isinstance(scalar_sigmoid, ScalarSigmoid)
    assert str(scalar_softplus) == "scalar_softplus"


def test_inplace():
    x = T.dvector("x")
    assert sigmoid_inplace.destroy_map == {0: [0]}
    node = sigmoid_inplace(x).owner
    value, cell = np.zeros(2), [None]
    node.op.perform(node, [value], [cell])
    assert cell[0] is value and value.tolist() == [0.5, 0.5]


def test_text_is_refused():
    with pytest.raises(TypeError):
        nnet.sigmoid("a")
