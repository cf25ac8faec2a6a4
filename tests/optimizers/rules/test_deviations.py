"""Sums that share a loop, and variances from the pass that computes the mean: values and passes."""

import itertools
import warnings

import numpy as np
import pytest

from opwise import Mode, function
from opwise import tensor as T
from opwise.gradient import grad
from opwise.tensor import Elemwise, Sum, TensorType
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet.bn import batch_normalization_train
from opwise.tensor.rowwise import Rowwise

RANDOM = np.random.default_rng(5)
LAYOUTS = ["C", "F", "every other", "reversed"]


def laid_out(array, layout):
    """Return an array with the same elements in another layout."""
    if layout == "C":
        return array
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "reversed":
        return array[..., ::-1].copy()[..., ::-1]
    wide = np.zeros([2 * n for n in array.shape], array.dtype)
    part = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    part[...] = array
    return part


def every_axis(ndim):
    return [None, *(a for k in range(1, ndim + 1) for a in itertools.combinations(range(ndim), k))]


def full_size(f, ndim):
    """Return the Applys of a function that read an array of all dimensions, its loops."""
    return [
        n for n in f.linked.order
        if isinstance(n.op, Elemwise | MapReduce | Sum)
        and any(v.type.ndim == ndim and not any(v.type.broadcastable) for v in n.inputs)
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(1,), (1031,), (7, 13), (3, 1, 65), (5, 3, 4, 7), (2, 0, 3)])
def test_moments_along_every_axis(shape, dtype, layout):
    array = laid_out(RANDOM.normal(3, 2, shape).astype(dtype), layout)
    x = TensorType(dtype, (False,) * len(shape))("x")
    axes = every_axis(len(shape))[:-1]  # all are None
    f = function([x], [m for a in axes for m in (T.mean(x, a), T.var(x, a))], mode="FAST_RUN")
    # x along other axes is read by other loops; sums of all x come from one of these
    reads = [n for n in f.linked.order if isinstance(n.op, MapReduce | Rowwise)]
    assert len(reads) == len(axes) - (len(shape) > 1) and all(f.linked.in_c)
    wide = array.astype("float64")
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        expected = [m(axis=a) for a in axes for m in (wide.mean, wide.var)]
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    for result, exact in zip(f(array), expected, strict=True):
        np.testing.assert_allclose(result, exact, rtol=tolerance, atol=tolerance * 1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0, 1e3, 1e6])
@pytest.mark.parametrize("first", [None, 1e4, -1e8])
def test_variances_do_not_cancel(dtype, offset, first):
    array = (RANDOM.normal(size=(64, 50)) + offset).astype(dtype)
    if first is not None:
        array[0] = first
    x = TensorType(dtype, (False, False))("x")
    f = function([x], T.var(x, axis=0), mode="FAST_RUN")
    wide = array.astype(np.longdouble)
    rounded = wide.mean(axis=0).astype(dtype)  # the mean that a program subtracts
    exact = ((wide - rounded) ** 2).mean(axis=0)
    tolerance = {"float32": 2e-6, "float64": 1e-11}[dtype]
    if dtype == "float32" and offset > 1e3 and first is None:
        tolerance = 2e-2  # the sum is rounded before it is divided
    np.testing.assert_allclose(f(array), exact, rtol=tolerance)


def test_values_that_are_not_finite():
    x = T.matrix("x", dtype="float64")
    f = function([x], [T.mean(x, 0), T.var(x, 0)], mode="FAST_RUN")
    array = RANDOM.normal(size=(5, 4))
    array[2, 0], array[0, 1], array[4, 2] = np.nan, np.inf, -np.inf
    mean, variance = f(array)
    np.testing.assert_array_equal(np.isnan(variance), [True, True, True, False])
    np.testing.assert_array_equal(mean[1:3], [np.inf, -np.inf])


def test_no_element():
    x = T.matrix("x", dtype="float64")
    squares = T.sum(T.sqr(x - T.sum(x, 0, keepdims=True)), 0)
    f = function([x], squares, mode="FAST_RUN")
    np.testing.assert_array_equal(f(np.zeros((0, 3))), np.zeros(3))
    assert f(np.zeros((4, 0))).shape == (0,)


def test_deviations_from_other_numbers():
    """What is subtracted need not be the mean."""
    x, v = T.matrix("x", dtype="float64"), T.vector("v", dtype="float64")
    c = T.sum(x, 0) * v
    sums = [T.sum(T.sqr(x - c), 0), T.sum(T.sqr(c - x), 0), T.sum(x - c, 0)]
    f = function([x, v], [c, *sums], mode="FAST_RUN")
    assert len(full_size(f, 2)) == 1
    array, factors = RANDOM.normal(size=(9, 4)), RANDOM.normal(size=4)
    d = array - array.sum(0) * factors
    expected = [array.sum(0) * factors, (d * d).sum(0), (d * d).sum(0), d.sum(0)]
    for result, exact in zip(f(array, factors), expected, strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-12)


def normalised(x, gamma, beta, how):
    def wide(v):
        return v.dimshuffle("x", 0, "x", "x")

    if how == "function":
        return batch_normalization_train(x, gamma, beta, "spatial")[0]
    mean, variance = T.mean(x, (0, 2, 3)), T.var(x, (0, 2, 3))
    if how == "by hand":
        mean = x.mean((0, 2, 3))
        variance = T.mean((x - wide(mean)) ** 2, (0, 2, 3))
    eps = np.asarray(1e-4, x.dtype)
    return (x - wide(mean)) / T.sqrt(wide(variance) + eps) * wide(gamma) + wide(beta)


@pytest.mark.parametrize("how", ["function", "written", "by hand"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batch_normalisation_reads_its_images_as_seldom_as_it_can(how, dtype):
    x = T.tensor4("x", dtype=dtype)
    gamma, beta = T.vector("gamma", dtype=dtype), T.vector("beta", dtype=dtype)
    dy = T.tensor4("dy", dtype=dtype)
    y = T.nnet.relu(normalised(x, gamma, beta, how))
    arrays = [RANDOM.normal(2, 3, (6, 5, 7, 3)), *RANDOM.uniform(0.5, 1, (2, 5))]
    arrays = [a.astype(dtype) for a in (*arrays, RANDOM.normal(size=(6, 5, 7, 3)))]

    forward = function([x, gamma, beta], y, mode="FAST_RUN")
    assert len(full_size(forward, 4)) == 2  # the statistics; the result
    cost = T.sum(y * dy)
    gradients = [cost, *grad(cost, [x, gamma, beta])]
    backward = function([x, gamma, beta, dy], gradients, mode="FAST_RUN")
    loops = full_size(backward, 4)
    assert len(loops) == 3  # the statistics; the cost and both sums; the gradient by x
    assert sum(n.outputs[0].type.ndim == 4 for n in loops) == 1

    plain = Mode("py", None)
    for f, outputs, given in ((forward, [y], 3), (backward, gradients, 4)):
        exact = function([x, gamma, beta, dy][:given], outputs, mode=plain)(*arrays[:given])
        found = f(*arrays[:given])
        found = found if isinstance(found, list) else [found]
        for a, b in zip(found, exact, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4 if dtype == "float32" else 1e-10, atol=1e-5)


def test_layer_normalisation_reads_each_row_as_seldom_as_it_can():
    x, y = T.matrix("x", dtype="float32"), T.matrix("y", dtype="float32")
    z = x + y
    out = (z - z.mean(1, keepdims=True)) / T.sqrt(z.var(1, keepdims=True) + np.float32(1e-5))
    f = function([x, y], out, mode="FAST_RUN")
    a, b = RANDOM.normal(size=(2, 9, 33)).astype("float32")
    c = (a + b).astype("float64")
    exact = (c - c.mean(1, keepdims=True)) / np.sqrt(c.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(f(a, b), exact, rtol=1e-4, atol=1e-5)


def test_debug_mode_compares_shared_loops():
    x, y = T.matrix("x", dtype="float64"), T.matrix("y", dtype="float64")
    outputs = [T.sum(x, 0), T.sum(x * y, 0), T.var(x, 0), T.sum(T.exp(x), 1)]
    f = function([x, y], outputs, mode="DEBUG_MODE")
    a, b = RANDOM.normal(size=(2, 7, 5))
    for result, exact in zip(
        f(a, b), [a.sum(0), (a * b).sum(0), a.var(0), np.exp(a).sum(1)], strict=True
    ):
        np.testing.assert_allclose(result, exact)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axes", [(0,), (0, 1), (0, 2)])
@pytest.mark.parametrize("shape", [(7, 5, 9), (0, 5, 9), (7, 0, 9), (1, 1, 1)])
def test_sums_of_whole_arrays_share_the_loop_of_sums_along_some_axes(dtype, axes, shape):
    x, y = T.tensor3("x", dtype=dtype), T.tensor3("y", dtype=dtype)
    squares = T.sum(T.sqr(x), keepdims=True)
    outputs = [T.sum(x * y), T.sum(T.exp(x), axes), T.mean(x), squares]
    f = function([x, y], outputs, mode="FAST_RUN")
    assert len(full_size(f, 3)) == 1
    a, b = RANDOM.normal(size=(2, *shape)).astype(dtype)
    c, d = a.astype("float64"), b.astype("float64")
    mean = c.mean() if c.size else np.nan
    exact = [(c * d).sum(), np.exp(c).sum(axes), mean, (c * c).sum(keepdims=True)]
    for result, value in zip(f(a, b), exact, strict=True):
        assert result.dtype == dtype
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-5)


def test_sums_of_whole_arrays_do_not_wait_for_sums_of_rows():
    """There may be as many of these as there are elements."""
    x = T.matrix("x", dtype="float64")
    f = function([x], [T.sum(x), T.sum(T.sqr(x), 1)], mode="FAST_RUN")
    assert len(full_size(f, 2)) == 2
    a = RANDOM.normal(size=(6, 4))
    for result, exact in zip(f(a), [a.sum(), (a * a).sum(1)], strict=True):
        np.testing.assert_allclose(result, exact)


def test_sums_of_whole_arrays_that_need_the_others_stay_whole():
    x = T.matrix("x", dtype="float64")
    first = T.sum(x, 0)
    f = function([x], [first, T.sum(T.exp(x * first))], mode="FAST_RUN")
    a = RANDOM.normal(size=(6, 4))
    s = a.sum(0)
    for result, exact in zip(f(a), [s, np.exp(a * s).sum()], strict=True):
        np.testing.assert_allclose(result, exact)


def test_sums_that_depend_on_each_other_stay_apart():
    x = T.matrix("x", dtype="float64")
    first = T.sum(x, 0)
    second = T.sum(x * first, 0)
    third = T.sum(x * second, 0)
    f = function([x], [first, second, third], mode="FAST_RUN")
    a = RANDOM.normal(size=(4, 3))
    s = a.sum(0)
    for result, exact in zip(f(a), [s, s * s, s**3], strict=True):
        np.testing.assert_allclose(result, exact)
