"""Inverses, determinants, least squares and systems of tensors: values, gradients and refusals."""

import numpy as np
import pytest

from opwise.gradient import Rop, grad
from opwise.linalg import det, pinv, solve, tensorinv, tensorsolve
from opwise.tensor.linalg.inverse import SLogDet
from opwise.tensor.nlinalg import lstsq, matrix_inverse
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

REGULAR = np.array([[2.0, 1.0, 0.0], [0.5, 3.0, -1.0], [1.0, 0.0, 4.0]])
OBLONG = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])
LinAlgError = np.linalg.LinAlgError


def tensor(dtype, ndim):
    return tensor_type(dtype, (False,) * ndim)()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_inverse_and_determinant(run, dtype):
    x, value = tensor(dtype, 2), REGULAR.astype(dtype)
    inverse, determinant = run([matrix_inverse(x), det(x)], {x: value})
    np.testing.assert_allclose(inverse @ value, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(determinant, np.linalg.det(value), rtol=1e-6)


def test_inverse_and_determinant_have_gradients(check_gradient, check_forward):
    check_forward(matrix_inverse, REGULAR)
    check_gradient(det, REGULAR)


@pytest.mark.parametrize("value", [REGULAR, OBLONG, OBLONG.T, np.ones((2, 2))])
def test_pseudo_inverse(run, value):
    x = tensor("float64", 2)
    np.testing.assert_allclose(run(pinv(x), {x: value}), np.linalg.pinv(value), atol=1e-12)


@pytest.mark.parametrize("value", [REGULAR, OBLONG, OBLONG.T])
def test_pseudo_inverse_has_a_gradient(check_gradient, value):
    check_gradient(pinv, value)


def test_the_pseudo_inverse_of_a_row_is_a_column(run):
    x = tensor_type("float64", (True, False))()
    assert pinv(x).type.broadcastable == (False, True)
    np.testing.assert_allclose(run(pinv(x), {x: OBLONG[:1]}), np.linalg.pinv(OBLONG[:1]))


def test_integers_stay_integers(run):
    """Theano keeps the dtype, and so cuts off fractions."""
    x = tensor("int64", 2)
    found = run([matrix_inverse(x), det(x), pinv(x)], {x: np.array([[2, 0], [0, 1]])})
    assert [v.dtype.name for v in found] == ["int64"] * 3
    np.testing.assert_array_equal(found[0], [[0, 0], [0, 1]])


def test_singular_and_oblong_matrices_are_refused(run):
    x = tensor("float64", 2)
    with pytest.raises(LinAlgError, match="Singular matrix"):
        run(matrix_inverse(x), {x: np.ones((2, 2))})
    for op in (matrix_inverse, det):
        with pytest.raises(LinAlgError, match="square"):
            run(op(x), {x: OBLONG})
    assert run(det(x), {x: np.ones((2, 2))}) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sign_and_logarithm_of_the_determinant(run, check_gradient, dtype):
    x = tensor(dtype, 2)
    sign, size = SLogDet()(x, return_list=True)
    for value in (REGULAR, -REGULAR, REGULAR[::-1], np.zeros((2, 2)), np.zeros((0, 0))):
        found = run([sign, size], {x: value.astype(dtype)})
        np.testing.assert_allclose(found, np.linalg.slogdet(value), rtol=1e-5)
        assert all(one.dtype == dtype for one in found)
    check_gradient(lambda x: SLogDet()(x)[1], REGULAR)
    with pytest.raises(np.linalg.LinAlgError):
        run(sign, {x: np.ones((2, 3), dtype)})
    with pytest.raises(TypeError, match="float32 or float64, not int64"):
        SLogDet()(tensor("int64", 2))


@pytest.mark.parametrize("op", [matrix_inverse, det, pinv])
@pytest.mark.parametrize("ndim", [0, 1, 3])
def test_other_dimensions_are_refused(op, ndim):
    with pytest.raises(AssertionError, match=r"takes a matrix, got .* apply it to each of them"):
        op(tensor("float64", ndim))


def test_tensorinv(run):
    value = np.random.RandomState(1).normal(size=(4, 6, 8, 3))
    x = tensor("float64", 4)
    np.testing.assert_allclose(run(tensorinv(x), {x: value}), np.linalg.tensorinv(value))
    value = value.reshape(24, 8, 3)
    x = tensor("float64", 3)
    np.testing.assert_allclose(run(tensorinv(x, 1), {x: value}), np.linalg.tensorinv(value, 1))
    with pytest.raises(LinAlgError):
        run(tensorinv(x, 2), {x: value})


def test_tensorsolve(run):
    values = [np.random.RandomState(2).normal(size=shape) for shape in ((6, 4, 2, 3, 4), (6, 4))]
    a, b = tensor("float64", 5), tensor("float64", 2)
    found = run(tensorsolve(a, b), {a: values[0], b: values[1]})
    np.testing.assert_allclose(found, np.linalg.tensorsolve(*values))
    turned = np.moveaxis(values[0], 0, -1)
    found = run(tensorsolve(a, b, axes=(4,)), {a: np.moveaxis(turned, -1, 0), b: values[1]})
    assert found.shape == np.linalg.tensorsolve(values[0], values[1], (4,)).shape
    with pytest.raises(TypeError, match="all dimensions of b"):
        tensorsolve(b, a)


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_least_squares(run, shape):
    rng = np.random.RandomState(3)
    values = rng.normal(size=(3, 2)), rng.normal(size=shape)
    x, y = tensor("float64", 2), tensor("float64", len(shape))
    found = run(list(lstsq()(x, y, 1e-9)), dict(zip([x, y], values, strict=True)))
    for got, expected in zip(found, np.linalg.lstsq(*values, 1e-9), strict=True):
        np.testing.assert_allclose(got, expected)
    assert found[2].dtype == "int64"


@pytest.mark.parametrize("vector", [0, 2])
def test_wrong_dimensions_of_least_squares_are_reported_as_it_runs(run, vector):
    values = [np.eye(2), np.ones((2, 1)), np.array(1e-9)]
    values[vector] = np.ones(2)
    given = {tensor("float64", value.ndim): value for value in values}
    with pytest.raises(np.linalg.LinAlgError):
        run(list(lstsq()(*given)), given)


def test_a_filter_of_kalman_is_one_of_inverses(run):
    """The gain with an inverse, with systems of equations and in numpy."""
    rng = np.random.RandomState(4)
    p, h, r = (tensor("float64", 2) for _ in range(3))
    values = rng.normal(size=(4, 4)), rng.normal(size=(2, 4)), np.eye(2)
    values = values[0] @ values[0].T, *values[1:]
    s = h.dot(p).dot(h.T) + r
    gains = [p.dot(h.T).dot(matrix_inverse(s)), solve(s.T, h.dot(p.T)).T]
    found = run(gains, dict(zip([p, h, r], values, strict=True)))
    P, H, R = values
    for gain in found:
        np.testing.assert_allclose(gain, P @ H.T @ np.linalg.inv(H @ P @ H.T + R))


def test_directions_that_are_not_given():
    x, y = tensor("float64", 2), tensor("float64", 2)
    assert matrix_inverse.R_op([x], [None]) == [None]
    assert Rop(matrix_inverse(x), x, y).type == x.type
    assert grad(det(x), x).type == x.type
