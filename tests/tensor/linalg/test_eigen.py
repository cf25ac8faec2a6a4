"""Eigenvalues, eigenvectors and the matrix exponential: values, gradients and refusals."""

import numpy as np
import pytest
import scipy.linalg

from opwise.gradient import grad
from opwise.linalg import eig, eigh, eigvalsh, expm
from opwise.tensor import (
    NoneConst,
)
from opwise.tensor import sum as sum_
from opwise.tensor.nlinalg import Eigh, EighGrad
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

SYMMETRIC = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
B = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 3.0]])
LinAlgError = np.linalg.LinAlgError


def matrix(dtype="float64"):
    return tensor_type(dtype, (False, False))()


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_eigh_reads_one_half(run, uplo, dtype):
    x = matrix(dtype)
    value = (SYMMETRIC * 4).astype(dtype)
    w, v = run(list(eigh(x, uplo)), {x: np.tril(value) if uplo == "L" else np.triu(value)})
    np.testing.assert_allclose(value @ v, v * w, atol=1e-4)
    assert w.dtype == v.dtype == (dtype if dtype != "int64" else "float64")


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("output", [0, 1])
def test_eigh_has_a_gradient(check_gradient, uplo, output):
    check_gradient(lambda x: eigh(x, uplo)[output], SYMMETRIC)


def test_both_outputs_together(check_gradient):
    check_gradient(lambda x: eigh(x)[1] * eigh(x)[0], SYMMETRIC)


def test_equal_eigenvalues_have_no_finite_gradient(run):
    x = matrix()
    found = run(grad(sum_(eigh(x)[1] ** 3), x), {x: np.eye(2)})
    assert not np.isfinite(found).all()


def test_a_white_sample(run):
    """Data with the covariance's inverse root have the identity as covariance."""
    data = np.random.RandomState(0).normal(size=(40, 3)) @ SYMMETRIC
    x = matrix()
    centred = x - x.mean(axis=0)
    w, v = eigh(centred.T.dot(centred) / x.shape[0])
    white = run(centred.dot(v) / w**0.5, {x: data})
    np.testing.assert_allclose(white.T @ white / 40, np.eye(3), atol=1e-12)


def test_eig(run):
    x, value = matrix(), np.array([[1.0, 2.0], [0.0, 3.0]])
    w, v = run(list(eig(x)), {x: value})
    np.testing.assert_allclose(value @ v, v * w)


@pytest.mark.parametrize("lower", [True, False])
def test_eigvalsh(run, lower):
    a, b = matrix(), matrix()
    found = run([eigvalsh(a, None, lower), eigvalsh(a, b, lower)], {a: SYMMETRIC, b: B})
    np.testing.assert_allclose(found[0], np.linalg.eigvalsh(SYMMETRIC))
    np.testing.assert_allclose(found[1], scipy.linalg.eigvalsh(SYMMETRIC, B))
    assert len(eigvalsh(a, NoneConst).owner.inputs) == 1


@pytest.mark.parametrize("lower", [True, False])
def test_eigvalsh_has_a_gradient(check_gradient, lower):
    check_gradient(lambda a, b: eigvalsh(a, b, lower), SYMMETRIC, B)
    check_gradient(lambda a: eigvalsh(a, None, lower), SYMMETRIC)


@pytest.mark.parametrize("value", [SYMMETRIC / 4, np.array([[0.0, 1.0], [0.0, 0.0]])])
def test_expm(run, check_gradient, value):
    """The second matrix has no basis of eigenvectors."""
    x = matrix()
    np.testing.assert_allclose(run(expm(x), {x: value}), scipy.linalg.expm(value))
    check_gradient(expm, value)


def test_refusals(run, monkeypatch):
    x, y = matrix(), matrix()
    with pytest.raises(LinAlgError, match="square"):
        run(list(eigh(x)), {x: np.ones((2, 3))})
    with pytest.raises(LinAlgError):
        run(eigvalsh(x, y), {x: SYMMETRIC, y: -B})
    with pytest.raises(ValueError, match="infs or NaNs"):
        run(eigvalsh(x, None), {x: np.full((2, 2), np.nan)})
    with pytest.raises(AssertionError, match="UPLO must be"):
        Eigh("lower")
    with pytest.raises(AssertionError, match="gw must be vectors"):
        EighGrad()(x, x, x, x, x)
    with pytest.raises(AssertionError, match="Expm takes a matrix"):
        expm(tensor_type("float64", (False,) * 3)())
    monkeypatch.setattr("opwise.tensor.linalg.operands.has_scipy", lambda: False)
    with pytest.raises(ImportError, match="scipy is not installed: this operation needs"):
        run(expm(x), {x: SYMMETRIC})
