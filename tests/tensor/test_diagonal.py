"""Diagonals taken out, put in and set: values against numpy, gradients and refusals."""

import numpy as np
import pytest

from opwise.config import config
from opwise.gradient import grad
from opwise.tensor import (
    AllocDiag,
    ExtractDiag,
    cast,
    diag,
    diagonal,
    fill_diagonal,
    fill_diagonal_offset,
)
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

OFFSETS = [0, 1, -1, 3, -4]


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


def counted(*shape):
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 4


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (0, 3)])
def test_diagonal_of_matrices(run, check_forward, shape, offset):
    x, array = tensor("float64", 2), counted(*shape)
    np.testing.assert_array_equal(run(diagonal(x, offset), {x: array}), np.diagonal(array, offset))
    if array.diagonal(offset).size:
        check_forward(lambda p: diagonal(p, offset), array)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2, 0), (0, 2)])
def test_diagonal_over_any_two_axes(run, check_forward, axes):
    x, array = tensor("float64", 3), counted(2, 3, 4)
    for offset in (0, 1, -1):
        found = run(diagonal(x, offset, *axes), {x: array})
        np.testing.assert_array_equal(found, np.diagonal(array, offset, *axes))
    check_forward(lambda p: diagonal(p, 1, *axes), array)


def test_views_share_the_memory():
    node = ExtractDiag(view=True)(tensor("float64", 2)).owner
    storage, array = [[None]], counted(3, 3)
    node.op.perform(node, [array], storage)
    assert node.op.view_map == {0: [0]} and np.shares_memory(storage[0][0], array)
    assert ExtractDiag().view_map == {} and ExtractDiag() != node.op


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("length", [0, 1, 3])
def test_diag_of_a_vector(run, check_forward, length, offset):
    v, array = tensor("float64", 1), counted(length)
    np.testing.assert_array_equal(run(diag(v, offset), {v: array}), np.diag(array, offset))
    if length:
        check_forward(lambda p: diag(p, offset), array)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2, 0), (0, 2)])
def test_diagonals_put_in_come_out_again(run, check_forward, axes):
    x, array = tensor("float64", 2), counted(2, 3)
    for offset in (0, 2, -1):
        square = AllocDiag(offset, *axes)(x)
        whole, back = run([square, diagonal(square, offset, *axes)], {x: array})
        np.testing.assert_array_equal(back, array)
        assert whole.sum() == array.sum()
    check_forward(AllocDiag(1, *axes), array)


def test_texts_and_equality():
    assert str(AllocDiag()) == "AllocDiag{offset=0, axis1=0, axis2=1}"
    assert str(ExtractDiag(1)) == "ExtractDiag{offset=1, axis1=0, axis2=1, view=False}"
    assert ExtractDiag(1, 0, 2) == ExtractDiag(1, 0, 2) != ExtractDiag(1, 2, 0)
    assert str(diag(tensor("float64", 2), 1).owner.op) == str(ExtractDiag(1))


@pytest.mark.parametrize(
    "build, error",
    [
        (lambda: diagonal(tensor("float64", 1)), ValueError),
        (lambda: diagonal(tensor("float64", 2), 0, 0, 2), ValueError),
        (lambda: diagonal(tensor("float64", 2), 0, 1, 1), ValueError),
        (lambda: diagonal(tensor("float64", 2), 0, -1, 0), NotImplementedError),
        (lambda: diag(tensor("float64", 0)), ValueError),
        (lambda: AllocDiag()(tensor("float64", 0)), ValueError),
    ],
)
def test_refusals(build, error):
    with pytest.raises(error):
        build()


# ======================================================================================
# SETTING
# ======================================================================================


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_fill_diagonal(run, check_gradient, shape):
    x, y, array = tensor("float64", 2), tensor("float64", 0), counted(*shape)
    expected = array.copy()
    np.fill_diagonal(expected, 9.0)
    found = run(fill_diagonal(x, y), {x: array, y: np.array(9.0)})
    np.testing.assert_array_equal(found, expected)
    check_gradient(lambda p, q: fill_diagonal(p, q) ** 2, array, 2.0)


def test_fill_diagonal_of_a_cube(run):
    x, array = tensor("float64", 3), counted(2, 2, 2)
    expected = array.copy()
    np.fill_diagonal(expected, 1)
    np.testing.assert_array_equal(run(fill_diagonal(x, 1), {x: array}), expected)
    with pytest.raises(ValueError, match="must be of equal length"):
        run(fill_diagonal(x, 1), {x: counted(2, 2, 3)})
    with pytest.raises(NotImplementedError, match="matrices only"):
        grad(fill_diagonal(x, 1).sum(), x)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_fill_diagonal_offset(run, check_gradient, shape, offset):
    x, k, array = tensor("float64", 2), tensor("int64", 0), counted(*shape)
    expected = np.where(np.eye(*shape, offset, dtype=bool), 9.0, array)
    found = run(fill_diagonal_offset(x, 9.0, k), {x: array, k: np.array(offset)})
    np.testing.assert_array_equal(found, expected)
    check_gradient(lambda p, q: fill_diagonal_offset(p, q, offset) ** 2, array, 2.0)


@pytest.mark.parametrize("build", [fill_diagonal, lambda x, y: fill_diagonal_offset(x, y, 0)])
def test_gradient_by_integers_is_zero(run, build):
    x, y = tensor("int64", 2), tensor("int8", 0)
    slopes = grad(cast(build(x, y), config.floatX).sum(), [x, y])
    by_x, by_y = run(slopes, {x: np.ones((2, 2), "int64"), y: np.int8(2)})
    np.testing.assert_array_equal(by_x, np.zeros((2, 2)))
    assert by_y == 0


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda x, v: fill_diagonal(v, 0), "first parameter must have at least two dimensions"),
        (lambda x, v: fill_diagonal(x, v), "second parameter must be a scalar"),
        (lambda x, v: fill_diagonal(tensor("int64", 2), 1.5), "type of second parameter"),
        (lambda x, v: fill_diagonal_offset(x, 0, v), "third parameter must be a scalar"),
        (lambda x, v: fill_diagonal_offset(x, 0, 1.5), "third parameter must be an integer"),
        (lambda x, v: fill_diagonal_offset(tensor("float64", 3), 0, 0), "have two dimensions"),
    ],
)
def test_refusals_of_fill(build, text):
    with pytest.raises(TypeError, match=text):
        build(tensor("float64", 2), tensor("float64", 1))
