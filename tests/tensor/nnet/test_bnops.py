"""The Ops of batch normalisation: values, gradients and their gradients, expansion, refusals."""

import numpy as np
import pytest

from opwise import Mode, function
from opwise.tensor import TensorType
from opwise.tensor.nnet.bn import (
    AbstractBatchNormInference,
    AbstractBatchNormTrain,
    AbstractBatchNormTrainGrad,
    batch_normalization_test,
    batch_normalization_train,
)

RANDOM = np.random.default_rng(3)
LAYOUTS = [((0,), (4, 3)), ((0, 2, 3), (4, 3, 2, 5)), ((1,), (2, 3, 2)), ((0, 1), (3, 2, 1))]
OPS = (AbstractBatchNormTrain, AbstractBatchNormInference, AbstractBatchNormTrainGrad)


def values(axes, shape):
    """Return arrays: x, a gradient by it, scale, bias or mean, and a variance."""
    narrow = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return [
        *RANDOM.normal(size=(2, *shape)), RANDOM.uniform(0.5, 2, narrow),
        RANDOM.normal(size=narrow), RANDOM.uniform(0.5, 2, narrow),
    ]  # fmt: skip


def variables(ndim, n, dtype="float64"):
    return [TensorType(dtype, (False,) * ndim)() for _ in range(n)]


@pytest.mark.null
@pytest.mark.parametrize(("axes", "shape"), LAYOUTS)
def test_gradients(check_gradient, axes, shape):
    x, dy, scale, bias, variance = values(axes, shape)
    for k in range(3):
        check_gradient(lambda *v, k=k: AbstractBatchNormTrain(axes)(*v)[k], x, scale, bias)
        check_gradient(
            lambda *v, k=k: AbstractBatchNormTrainGrad(axes)(*v)[k], x, dy, scale, bias, variance
        )
    check_gradient(lambda *v: AbstractBatchNormInference(axes)(*v), x, scale, bias, bias, variance)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE"])
@pytest.mark.parametrize(("axes", "shape"), LAYOUTS)
def test_modes_agree_with_the_functions(axes, shape, mode):
    x, dy, scale, bias, variance = values(axes, shape)
    given = variables(len(shape), 5)
    a, b, c, d, e = given
    trained = AbstractBatchNormTrain(axes)(a, c, d, 1e-3, 0.2, d, e)
    tested = AbstractBatchNormInference(axes)(a, c, d, d, e, 1e-3)
    gradients = AbstractBatchNormTrainGrad(axes)(a, b, c, d, e)
    outputs = [*trained, tested, *gradients]
    exact = function(given, outputs, mode=Mode("py", None))(x, dy, scale, bias, variance)
    f = function(given, outputs, mode=mode)
    if mode != "DEBUG_MODE":
        assert not any(isinstance(n.op, OPS) for n in f.maker.fgraph.apply_nodes)
    for result, expected in zip(f(x, dy, scale, bias, variance), exact, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
    functions = [
        *batch_normalization_train(a, c, d, axes, 1e-3, 0.2, d, e),
        batch_normalization_test(a, c, d, d, e, axes, 1e-3),
    ]
    found = function(given, functions, on_unused_input="ignore")(x, dy, scale, bias, variance)
    for result, expected in zip(found, exact[:6], strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.null
def test_types():
    x, scale = variables(2, 2, "float32")
    (wide,) = variables(2, 1)
    outputs = AbstractBatchNormTrain()(x, scale, wide)
    assert [out.type.dtype for out in outputs] == ["float64"] * 3
    assert len(AbstractBatchNormTrain()(x, scale, scale, 1e-4, 0.1, scale, scale)) == 5
    assert AbstractBatchNormTrain((1, 0)) == AbstractBatchNormTrain([1, 0])


@pytest.mark.null
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x, v: AbstractBatchNormTrain(0), "axes must be a list or tuple of one axis"),
        (lambda x, v: AbstractBatchNormTrain(()), "axes must be a list or tuple of one axis"),
        (lambda x, v: AbstractBatchNormTrain()(x, v, v), "as many dimensions as the first one, 2"),
        (lambda x, v: AbstractBatchNormTrain((2,))(x, x, x), r"less than ndim \(<2\)"),
        (lambda x, v: AbstractBatchNormTrain()(x, x, x, running_mean=x), "must either both be"),
    ],
)
def test_refused(make, text):
    (x,), (v,) = variables(2, 1), variables(1, 1)
    with pytest.raises(ValueError, match=text):
        make(x, v)
