"""Selecting by value or number: values against numpy, gradients and refusals."""

import numpy as np
import pytest

from opwise.config import config
from opwise.gradient import grad
from opwise.tensor import (
    Choose,
    cast,
    choose,
    flatnonzero,
    inverse_permutation,
    nonzero,
    nonzero_values,
    permute_row_elements,
)
from opwise.tensor.extra_ops import compress
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

VECTOR = np.array([0.0, 1.0, -2.0, 0.0])
MATRIX = np.array([[3.0, 0.0, 2.0], [0.0, -1.0, 4.0]])


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


@pytest.mark.parametrize("array", [VECTOR, MATRIX, MATRIX > 1, np.zeros((0, 3))])
def test_nonzero(run, array):
    x = tensor(array.dtype.name, array.ndim)
    places = nonzero(x)
    assert isinstance(places, tuple) and len(places) == array.ndim
    for ours, theirs in zip(run(list(places), {x: array}), array.nonzero(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    found, flat, values = run(
        [nonzero(x, return_matrix=True), flatnonzero(x), nonzero_values(x)], {x: array}
    )
    np.testing.assert_array_equal(found, array.nonzero())
    np.testing.assert_array_equal(flat, np.flatnonzero(array))
    np.testing.assert_array_equal(values, array[array.nonzero()])


def test_nonzero_of_a_scalar_is_refused_and_has_no_slope(run):
    for function in (nonzero, flatnonzero):
        with pytest.raises(ValueError, match="only supports non-scalar arrays"):
            function(tensor("float64", 0))
    x = tensor("float64", 1)
    found = run(grad(cast(flatnonzero(x), "float64").sum(), x), {x: VECTOR})
    np.testing.assert_array_equal(found, np.zeros(4))


def test_gradient_of_nonzero_values(check_gradient):
    kept = (MATRIX != 0).astype("float64")
    check_gradient(lambda p: nonzero_values(p * kept) ** 2, MATRIX)


@pytest.mark.parametrize("axis, condition", [(None, [0, 1, 1, 0, 1]), (0, [0, 1]), (1, [1, 0, 1])])
def test_compress(run, axis, condition):
    x, c = tensor("float64", 2), tensor("int64", 1)
    values = {x: MATRIX, c: np.array(condition)}
    expected = np.compress(values[c], MATRIX, axis)
    np.testing.assert_array_equal(run(compress(c, x, axis), values), expected)
    np.testing.assert_array_equal(run(compress(condition, x, axis), values), expected)


# ======================================================================================
# CHOOSE
# ======================================================================================


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_choose_from_a_tensor(run, check_gradient, mode):
    a, x = tensor("int64", 1), tensor("float64", 2)
    numbers = np.array([1, 0, 1]) if mode == "raise" else np.array([3, -2, 1])
    out = choose(a, x, mode=mode)
    assert str(out.owner.op) == f"Choose{{mode='{mode}'}}"
    expected = np.choose(numbers, MATRIX, mode=mode)
    np.testing.assert_array_equal(run(out, {a: numbers, x: MATRIX}), expected)
    check_gradient(lambda p: choose(numbers, p, mode=mode) ** 2, MATRIX)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_choose_from_a_list(run, check_gradient, mode):
    a, v, w = tensor("int64", 2), tensor("float64", 1), tensor("float64", 0)
    numbers = np.array([[1, 0, 1], [0, 0, 1]]) + (0 if mode == "raise" else 2)
    choices = np.array([1.0, 2.0, 3.0]), np.array(9.0)
    values = {a: numbers, v: choices[0], w: choices[1]}
    expected = np.choose(numbers, choices, mode=mode)
    np.testing.assert_array_equal(run(choose(a, [v, w], mode=mode), values), expected)
    check_gradient(lambda p, q: choose(numbers, [p, q], mode=mode) ** 2, *choices)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("listed", [False, True])
def test_choose_by_numbers_of_uint64(run, mode, listed):
    a, x = tensor("uint64", 1), tensor("float64", 2)
    numbers = np.array([1, 0, 1] if mode == "raise" else [2**64 - 1, 3, 1], "uint64")
    out = choose(a, [x[0], x[1]] if listed else x, mode=mode)
    picked = {"raise": [1, 0, 1], "wrap": [1, 1, 1], "clip": [1, 1, 1]}[mode]
    expected = MATRIX[:2][picked, np.arange(3)]
    np.testing.assert_array_equal(run(out, {a: numbers, x: MATRIX[:2, :3]}), expected)
    if mode == "raise":
        with pytest.raises(ValueError, match="invalid entry in choice array"):
            run(out, {a: np.array([0, 2**64 - 1, 0], "uint64"), x: MATRIX[:2, :3]})


def test_choose_broadcasts_choices_from_a_tensor(run, check_gradient):
    numbers, choices = np.array([[1, 0], [0, 0]]), np.array([5.0, 7.0])
    a, x = tensor("int64", 2), tensor("float64", 1)
    found = run(choose(a, x), {a: numbers, x: choices})
    np.testing.assert_array_equal(found, choices[numbers])
    check_gradient(lambda p: choose(numbers, p) ** 2, choices)
    found = run(choose(a * 0, [x]), {a: numbers, x: choices})
    np.testing.assert_array_equal(found, [[5.0, 7.0]] * 2)


def test_choose_of_integers_has_no_slope(run):
    a, x = tensor("int64", 1), tensor("int8", 2)
    out = choose(a, x)
    assert out.type.dtype == "int8"
    found = run(
        grad(cast(out, config.floatX).sum(), x),
        {a: np.array([0, 1]), x: np.ones((2, 2), "int8")},
    )
    np.testing.assert_array_equal(found, np.zeros((2, 2)))


@pytest.mark.parametrize(
    "build, error",
    [
        (lambda: choose(tensor("float64", 1), tensor("float64", 2)), TypeError),
        (lambda: choose([0], [[1]], mode="foo"), ValueError),
        (lambda: choose([0], [[1]], out=tensor("int64", 1)), ValueError),
        (lambda: choose([0], ()), ValueError),
    ],
)
def test_refusals_of_choose(build, error):
    with pytest.raises(error):
        build()


def test_numbers_out_of_range_are_refused(run):
    a, x = tensor("int64", 1), tensor("float64", 2)
    assert Choose("raise") == Choose("raise") != Choose("clip")
    with pytest.raises(ValueError, match="invalid entry in choice array"):
        run(choose(a, x), {a: np.array([2, 0, 0]), x: MATRIX})


# ======================================================================================
# PERMUTATIONS
# ======================================================================================

ORDER = np.array([2, 0, 1])
ORDERS = np.array([[2, 0, 1], [0, 2, 1]])


@pytest.mark.parametrize("x", [MATRIX, MATRIX[0]])
@pytest.mark.parametrize("y", [ORDER, ORDERS])
def test_permute_row_elements(run, check_gradient, x, y):
    a, b = tensor("float64", x.ndim), tensor("int64", y.ndim)
    shape = np.broadcast_shapes(x.shape, y.shape)
    rows, orders = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
    found = run(permute_row_elements(a, b), {a: x, b: y})
    np.testing.assert_array_equal(found, np.take_along_axis(rows, orders, -1))
    back = run(permute_row_elements(permute_row_elements(a, b), b, inverse=1), {a: x, b: y})
    np.testing.assert_array_equal(back, rows)
    for inverse in (0, 1):
        check_gradient(lambda p, k=inverse: permute_row_elements(p, y, k) ** 2, x)


def test_inverse_permutation(run):
    for value in (ORDER, ORDERS):
        p = tensor("int32", value.ndim)
        found = run(inverse_permutation(p), {p: value.astype("int32")})
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, np.argsort(value, -1))


def test_refusals_of_permutations(run):
    x, y = tensor("float64", 2), tensor("int64", 2)
    with pytest.raises(TypeError, match="permutation must be of integers"):
        permute_row_elements(x, x)
    with pytest.raises(TypeError, match="inverse must be an integer scalar"):
        permute_row_elements(x, y, 0.5)
    with pytest.raises(ValueError, match="Dimension mismatch"):
        run(permute_row_elements(x, y), {x: MATRIX, y: ORDERS[:1]})
