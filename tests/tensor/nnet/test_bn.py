"""Batch normalisation: values, statistics, layouts of parameters, gradients, refusals."""

import numpy as np
import pytest

from opwise import tensor as T
from opwise.config import change_flags
from opwise.tensor.nnet.bn import (
    BNComposite,
    batch_normalization,
    batch_normalization_test,
    batch_normalization_train,
)

pytestmark = pytest.mark.null

RANDOM = np.random.default_rng(11)


def normalised(x, gamma, beta, axes, epsilon):
    mean, var = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    invstd = 1 / np.sqrt(var + epsilon)
    return (x - mean) * invstd * gamma + beta, mean, var, invstd


@pytest.mark.parametrize("mode", ["low_mem", "high_mem"])
def test_given_statistics(run, check_gradient, mode):
    names = ("x", "gamma", "beta", "mean", "std")
    x, *params = variables = [T.dmatrix("x"), *map(T.dvector, names[1:])]
    arrays = [RANDOM.normal(size=(4, 3)), *RANDOM.uniform(0.5, 2, (4, 3))]
    out = batch_normalization(x, *params, mode=mode)
    expected = (arrays[0] - arrays[3]) / arrays[4] * arrays[1] + arrays[2]
    values = dict(zip(variables, arrays, strict=True))
    np.testing.assert_allclose(run(out, values), expected, rtol=1e-12)
    check_gradient(lambda *v: batch_normalization(*v, mode=mode), *arrays)


def test_low_mem_is_one_operation(dump):
    x, v = T.fmatrix("x"), T.fvector("v")
    out = batch_normalization(x, v, v, v, v)
    row = "InplaceDimShuffle{x,0}(v)"
    text = "Elemwise{Composite{((((i0 - i1) / i2) * i3) + i4)}}"
    assert dump(out) == f"{text}(x, {row}, {row}, {row}, {row})"
    assert out.type.dtype == "float32"
    assert batch_normalization(x, v, v, T.dvector(), v).type.dtype == "float64"


def test_low_mem_with_test_values():
    x, v = T.matrix("x"), T.vector("v")
    x.tag.test_value, v.tag.test_value = np.ones((2, 3)), np.full(3, 2.0)
    BNComposite.cache_clear()
    with change_flags(compute_test_value="raise"):
        out = batch_normalization(x, v, v, v, v)
    np.testing.assert_array_equal(out.tag.test_value, np.ones((2, 3)))


def test_mode_is_one_of_two():
    x, v = T.dmatrix(), T.dvector()
    with pytest.raises(ValueError, match='mode must be either "low_mem", "high_mem"'):
        batch_normalization(x, v, v, v, v, mode="fast")


LAYOUTS = [
    # inputs, axes, axes as numbers, parameters
    ((4, 3), "per-activation", (0,), (3,)),
    ((4, 3), "per-activation", (0,), (1, 3)),
    ((4, 3, 2, 5), "spatial", (0, 2, 3), (3,)),
    ((4, 3, 2, 5), "spatial", (0, 2, 3), (1, 3, 1, 1)),
    ((4, 3, 2, 5), "per-activation", (0,), (3, 2, 5)),
    ((4, 3, 2), (0, 1), (0, 1), (2,)),
    ((4, 3, 2), [1], (1,), (4, 2)),
]


def case(shape, params_shape):
    """Return (variables, arrays) of x, gamma, beta, a mean and a variance."""
    types = [T.TensorType("float64", (False,) * len(s)) for s in (shape, *[params_shape] * 4)]
    arrays = [RANDOM.normal(size=shape), *(RANDOM.uniform(0.5, 2, params_shape) for _ in "gbmv")]
    return [t() for t in types], arrays


def full(param, shape, axes):
    """Return a parameter with all dimensions."""
    return param if param.ndim == len(shape) else np.expand_dims(param, axes)


@pytest.mark.parametrize(("shape", "axes", "numbers", "params_shape"), LAYOUTS)
def test_train(run, shape, axes, numbers, params_shape):
    variables, arrays = case(shape, params_shape)
    x, gamma, beta, mean, var = variables
    outputs = batch_normalization_train(
        x, gamma, beta, axes, epsilon=1e-3, running_average_factor=0.25,
        running_mean=mean, running_var=var,
    )  # fmt: skip
    assert len(outputs) == 5
    results = run(list(outputs), dict(zip(variables, arrays, strict=True)))
    wide = [full(a, shape, numbers) for a in arrays[1:]]
    out, batch_mean, batch_var, invstd = normalised(arrays[0], *wide[:2], numbers, 1e-3)
    count = arrays[0].size / batch_mean.size
    expected = [
        out,
        batch_mean,
        invstd,
        0.75 * wide[2] + 0.25 * batch_mean,
        0.75 * wide[3] + 0.25 * batch_var * count / (count - 1),
    ]
    assert results[0].shape == shape
    for result, array in zip(results[1:], expected[1:], strict=True):
        assert result.shape == params_shape
        np.testing.assert_allclose(result, array.reshape(params_shape))
    np.testing.assert_allclose(results[0], out)


def test_train_without_running_averages():
    x, v = T.fmatrix(), T.fvector()
    outputs = batch_normalization_train(x, v, v)
    assert [o.type for o in outputs] == [T.fmatrix, T.fvector, T.fvector]
    row = T.TensorType("float32", (True, False))
    assert [o.type for o in batch_normalization_train(x, row(), row())] == [T.fmatrix, row, row]
    assert batch_normalization_train(x, T.dvector(), v)[0].type == T.dmatrix
    assert batch_normalization_train(T.imatrix(), T.dvector(), T.dvector())[0].type == T.dmatrix


@pytest.mark.parametrize(("shape", "axes", "numbers", "params_shape"), LAYOUTS)
def test_test(run, shape, axes, numbers, params_shape):
    variables, arrays = case(shape, params_shape)
    out = batch_normalization_test(*variables, axes, 1e-3)
    gamma, beta, mean, var = (full(a, shape, numbers) for a in arrays[1:])
    expected = (arrays[0] - mean) / np.sqrt(var + 1e-3) * gamma + beta
    result = run(out, dict(zip(variables, arrays, strict=True)))
    np.testing.assert_allclose(result, expected)
    assert batch_normalization_test(T.fmatrix(), *[T.fvector()] * 4).type == T.fmatrix


def test_gradients(check_gradient):
    x, gamma, beta = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=3), RANDOM.normal(size=3)
    check_gradient(lambda *v: batch_normalization_train(*v)[0], x, gamma, beta)
    mean, var = RANDOM.normal(size=3), RANDOM.uniform(0.5, 2, 3)
    check_gradient(batch_normalization_test, x, gamma, beta, mean, var)


def test_gradients_spatial(check_gradient):
    x = RANDOM.normal(size=(2, 2, 2, 1))
    check_gradient(
        lambda *v: batch_normalization_train(*v, axes="spatial")[0], x, np.ones(2), np.zeros(2)
    )


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"axes": "all"}, "invalid axes: all"),
        ({"axes": 0}, "invalid axes: 0"),
        ({"axes": ()}, "there should be at least one normalization axis"),
        ({"axes": (0, 7)}, r"axes should be less than ndim \(<2\)"),
        ({"axes": (-1,)}, r"axes should be less than ndim \(<2\)"),
        ({"axes": (0, 1)}, "gamma and beta dimensionality must match"),
        ({"epsilon": 1e-6}, "epsilon must be at least 1e-5, got 1e-06"),
        ({"running_mean": T.dvector()}, "must either both be given or both be None"),
        (
            {"running_mean": T.dmatrix(), "running_var": T.dvector()},
            "running_mean must be of the same dimensionality as gamma and beta; got 2 instead of 1",
        ),
    ],
)
def test_refused(kwargs, text):
    x, v = T.dmatrix(), T.dvector()
    with pytest.raises(ValueError, match=text):
        batch_normalization_train(x, v, v, **kwargs)


def test_refused_by_test():
    x, v = T.dmatrix(), T.dvector()
    with pytest.raises(ValueError, match="gamma and beta dimensionality"):
        batch_normalization_test(x, v, x, v, v)
    with pytest.raises(ValueError, match="var must be of the same dimensionality"):
        batch_normalization_test(x, v, v, v, x)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        batch_normalization_test(x, v, v, v, v, epsilon=0)
