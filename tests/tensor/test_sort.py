"""Sorting and the largest elements: values against numpy, gradients, texts and refusals."""

import numpy as np
import pytest

from opwise.config import config
from opwise.gradient import grad
from opwise.tensor import (
    argsort,
    argtopk,
    cast,
    sort,
    topk,
    topk_and_argtopk,
)
from opwise.tensor.sort import ArgSortOp, SortOp, TopKOp
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

VECTOR = np.array([3.0, 1.0, 2.5, -1.0])
MATRIX = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])
CUBE = (np.arange(12.0) * 5 % 13).reshape(2, 3, 2)
ARRAYS = [VECTOR, MATRIX, CUBE]


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("kind", ["quicksort", "mergesort", "heapsort"])
def test_sort_and_argsort(run, array, axis, kind):
    x = tensor("float64", array.ndim)
    found, order = run([sort(x, axis, kind), argsort(x, axis, kind)], {x: array})
    np.testing.assert_array_equal(found, np.sort(array, axis, kind))
    np.testing.assert_array_equal(order, np.argsort(array, axis, kind))
    assert order.dtype == np.int64


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda x: x[::-1]])
@pytest.mark.parametrize("shape", [(5, 1, 3), (1, 4, 2), (3, 2, 1), (0, 1, 2)])
def test_rows_of_one_element_are_copied(run, shape, layout):
    x = tensor("float64", 3)
    value = layout(np.random.default_rng(3).normal(size=shape))
    axis = shape.index(1)
    found, order = run([sort(x, axis), argsort(x, axis)], {x: value})
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(order, np.zeros(shape, "int64"))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "complex64"])
def test_sort_keeps_the_dtype(run, dtype):
    x = tensor(dtype, 1)
    value = np.array([1, 0, 1]).astype(dtype)
    found = run(sort(x), {x: value})
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.sort(value))


def test_sort_along_a_variable_axis(run):
    x, axis = tensor("float64", 2), tensor("int64", 0)
    for k in (0, 1, -1):
        found = run(sort(x, axis), {x: MATRIX, axis: np.array(k)})
        np.testing.assert_array_equal(found, np.sort(MATRIX, k))


def test_equal_elements_keep_their_order_and_nan_comes_last(run):
    x = tensor("float64", 1)
    found = run(argsort(x, kind="mergesort"), {x: np.array([1.0, np.nan, 0.0, 1.0, 0.0])})
    np.testing.assert_array_equal(found, [2, 4, 0, 3, 1])


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("axis", [0, -1])
def test_gradient_of_sort(check_forward, array, axis):
    check_forward(lambda p: sort(p, axis), array)


def test_gradient_of_sort_flattened_or_along_a_variable_axis(check_gradient, run):
    check_gradient(lambda p: sort(p, None), MATRIX)
    x, axis, w = tensor("float64", 2), tensor("int64", 0), np.arange(6.0).reshape(2, 3)
    slope = grad((sort(x, axis) * w).sum(), x)
    for k in (0, 1, -1):
        found = run(slope, {x: MATRIX, axis: np.array(k)})
        expected = np.empty_like(w)
        np.put_along_axis(expected, np.argsort(MATRIX, k), w, k)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", [sort, argsort])
def test_gradient_by_integers_is_zero(run, function):
    x = tensor("int64", 1)
    found = run(grad(cast(function(x), config.floatX).sum(), x), {x: np.array([2, 1])})
    np.testing.assert_array_equal(found, [0, 0])


def test_texts_and_refusals():
    x = tensor("float64", 2)
    assert str(sort(x).owner.op) == "SortOp{quicksort, None}"
    assert str(argsort(x, kind="heapsort").owner.op) == "ArgSortOp{heapsort, None}"
    assert SortOp("quicksort") == SortOp("quicksort", None) != SortOp("heapsort")
    assert SortOp("quicksort") != ArgSortOp("quicksort")
    with pytest.raises(TypeError, match="axis to sort along must be an integer scalar"):
        sort(x, [1])


def test_an_axis_may_be_a_float_that_is_whole(run):
    x, axis = tensor("float64", 2), tensor("float64", 0)
    values = {x: np.array([[3.0, 1.0], [2.0, 4.0]]), axis: 0.0}
    both = [sort(x, axis), argsort(x, axis), grad((sort(x, axis) * [[1, 2], [3, 4]]).sum(), x)]
    assert [v.tolist() for v in run(both, values)] == [
        [[2, 1], [3, 4]], [[1, 0], [0, 1]], [[3, 2], [1, 4]]
    ]  # fmt: skip
    with pytest.raises(ValueError, match="sort axis must be an integer"):
        run(sort(x, 0.5), values)


# ======================================================================================
# THE LARGEST ELEMENTS
# ======================================================================================


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("k", [1, 2, -1, -2])
def test_topk(run, array, axis, k):
    x = tensor("float64", array.ndim)
    values, positions = run([topk(x, k, axis), argtopk(x, k, axis)], {x: array})
    flat = array.ravel() if axis is None else array
    along = 0 if axis is None else axis
    ordered = np.sort(flat, along) if k < 0 else -np.sort(-flat, along)
    np.testing.assert_array_equal(values, np.take(ordered, range(abs(k)), along))
    np.testing.assert_array_equal(np.take_along_axis(flat, positions, along), values)


def test_topk_unsorted_keeps_the_order_of_the_input(run):
    x, k = tensor("float64", 1), tensor("int64", 0)
    outputs = topk_and_argtopk(x, k, sorted=False, idx_dtype="int32")
    values, positions = run(outputs, {x: VECTOR, k: np.array(3)})
    np.testing.assert_array_equal(values, [3.0, 1.0, 2.5])
    np.testing.assert_array_equal(positions, [0, 1, 2])
    assert positions.dtype == np.int32


@pytest.mark.parametrize("build", [topk, lambda x, k, axis: topk_and_argtopk(x, k, axis)[0]])
@pytest.mark.parametrize("k", [2, -1])
def test_gradient_of_topk(check_gradient, build, k):
    check_gradient(lambda p: build(p, k, 0) ** 2, CUBE)
    check_gradient(lambda p: build(p, k, -1) ** 2, MATRIX)


@pytest.mark.parametrize(
    "build, error",
    [
        (lambda x: topk(x, 1.5), TypeError),
        (lambda x: topk(x, [1]), TypeError),
        (lambda x: topk(x, 1, axis=2), IndexError),
        (lambda x: topk(x[0, 0], 1), ValueError),
        (lambda x: topk(x, 1, idx_dtype="float32"), TypeError),
        (lambda x: TopKOp(return_values=False, return_indices=False), ValueError),
    ],
)
def test_refusals_of_topk(build, error):
    with pytest.raises(error):
        build(tensor("float64", 2))


@pytest.mark.parametrize("k", [0, 5, -5])
def test_numbers_of_elements_that_there_are_not(run, k):
    x = tensor("float64", 1)
    with pytest.raises(ValueError, match=f"kth cannot be {k} for a dimension of length 4"):
        run(topk(x, k), {x: VECTOR})
