"""Rules of linear algebra: the values that they keep, and the Ops that they leave."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.gradient import grad
from opwise.linalg import cholesky
from opwise.tensor import Dot, linalg
from opwise.tensor.blas import BatchedDot, Dot22, Gemm
from opwise.tensor.linalg import Hint, hints
from opwise.tensor.nlinalg import Det, MatrixInverse
from opwise.tensor.slinalg import Solve

pytestmark = pytest.mark.c

MODES = ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", "PROFILE_MODE"]
RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
DEFINITE = A @ A.T
B = RNG.normal(size=(4, 3))


def ops(f):
    return [node.op for node in f.maker.fgraph.toposort()]


@pytest.mark.parametrize("mode", MODES)
def test_values(mode):
    x, y, b = T.dmatrix("x"), T.dmatrix("y"), T.dmatrix("b")
    outputs = [
        T.dot(linalg.matrix_inverse(x), b),
        T.dot(b.T, linalg.matrix_inverse(x)),
        T.dot(linalg.matrix_inverse(x).T, b),
        linalg.solve(linalg.psd(x), b),
        linalg.solve(cholesky(x), b),
        linalg.solve(linalg.Cholesky(lower=False)(x), b),
        linalg.solve(cholesky(x).T, b),
        T.log(linalg.det(x)) + cholesky(x).sum(),
        T.log(linalg.det(cholesky(x))),
        linalg.trace(T.dot(x, y)),
        T.log(x**4), T.log(x**-2), T.log(T.sqr(x)),
    ]  # fmt: skip
    f = function([x, y, b], outputs, mode=mode)
    found = f(DEFINITE, A, B)
    inverse, factor = np.linalg.inv(DEFINITE), np.linalg.cholesky(DEFINITE)
    log_det = np.linalg.slogdet(DEFINITE)[1]
    expected = [
        inverse @ B, B.T @ inverse, inverse @ B, inverse @ B, np.linalg.solve(factor, B),
        np.linalg.solve(factor.T, B), np.linalg.solve(factor.T, B), log_det + factor.sum(),
        log_det / 2, np.trace(DEFINITE @ A), 4 * np.log(abs(DEFINITE)), -2 * np.log(abs(DEFINITE)),
        2 * np.log(abs(DEFINITE)),
    ]  # fmt: skip
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-8)


def test_an_inverse_that_is_read_twice_stays():
    x, b = T.dmatrix(), T.dmatrix()
    inverse = linalg.matrix_inverse(x)
    kept = ops(function([x, b], [T.dot(inverse, b), inverse.sum()]))
    assert MatrixInverse() in kept and not any(isinstance(op, Solve) for op in kept)
    gone = ops(function([x, b], T.dot(inverse, b)))
    assert MatrixInverse() not in gone


def test_nan_in_an_inverse_stays_nan():
    """The system that takes its place raises no error either."""
    x, b = T.dmatrix(), T.dmatrix()
    f = function([x, b], T.dot(linalg.matrix_inverse(x), b), mode="FAST_RUN")
    assert [type(op) for op in ops(f)] == [Solve]
    assert np.isnan(f(np.full((4, 4), np.nan), B)).any()
    for value, text in ((np.zeros((4, 4)), "Singular"), (np.ones((4, 3)), "square")):
        with pytest.raises(np.linalg.LinAlgError, match=text):
            f(value, B)


def test_log_determinants_do_not_overflow():
    x = T.dmatrix()
    large = 1e3 * np.eye(200)
    f = function([x], [T.log(linalg.det(x)), cholesky(x)], mode="FAST_RUN")
    np.testing.assert_allclose(f(large)[0], 200 * np.log(1e3))
    assert not any(isinstance(op, Det) for op in ops(f))
    f = function([x], T.log(linalg.det(cholesky(x))), mode="FAST_RUN")
    np.testing.assert_allclose(f(large), 100 * np.log(1e3))


def test_traces_of_oblong_products():
    x, y = T.dmatrix(), T.dmatrix()
    f = function([x, y], [T.diagonal(T.dot(x, y)), linalg.trace(T.dot(y, x))], mode="FAST_RUN")
    assert not any(isinstance(op, Dot | Dot22 | Gemm | BatchedDot) for op in ops(f))
    for left, right in ((A, B), (B.T, A), (B, B.T)):
        diagonal, trace = f(left, right) if left.shape[0] == right.shape[1] else (
            function([x, y], T.diagonal(T.dot(x, y)))(left, right), None
        )  # fmt: skip
        np.testing.assert_allclose(diagonal, np.diagonal(left @ right))
        if trace is not None:
            np.testing.assert_allclose(trace, np.trace(right @ left))


@pytest.mark.parametrize("mode", MODES)
def test_hints_do_not_change_values_or_gradients(mode):
    x = T.dmatrix()
    cost = (Hint(symmetric=True)(x) ** 2).sum()
    f = function([x], [cost, grad(cost, x)], mode=mode)
    np.testing.assert_allclose(f(A)[1], 2 * A)
    assert mode == "FAST_COMPILE" or not any(isinstance(op, Hint) for op in ops(f))


def test_what_hints_say():
    x = T.dmatrix()
    known = linalg.psd(x)
    assert linalg.is_psd(known) and linalg.is_symmetric(known) and not linalg.is_psd(x)
    assert hints(known) == {"psd": True, "symmetric": True} and hints(x) == {}
    assert linalg.is_hint_node(known.owner) and not linalg.is_hint_node((x + 1).owner)
    assert linalg.is_positive(x**2) and linalg.is_positive(x**4) and not linalg.is_positive(x**3)
    assert linalg.is_positive(Hint(positive=True)(x)) and not linalg.is_positive(x)
    f = function([x], linalg.psd(x).T + 1, mode="FAST_RUN")
    assert len(ops(f)) == 1  # the transpose is gone


@pytest.mark.parametrize("mode", MODES)
def test_bound_of_eigenvalues(mode):
    x = T.dmatrix()
    f = function([x], [linalg.spectral_radius_bound(x, k) for k in (1, 3, 5)], mode=mode)
    largest = np.linalg.eigvalsh(DEFINITE)[-1]
    found = f(DEFINITE)
    assert found[0] > found[1] > found[2] >= largest * (1 - 1e-12)
    np.testing.assert_allclose(found[2], largest, rtol=0.02)
    with pytest.raises(TypeError, match="requires a matrix argument"):
        linalg.spectral_radius_bound(T.dvector(), 2)
    with pytest.raises(TypeError, match="requires an integer exponent"):
        linalg.spectral_radius_bound(x, 2.0)
    with pytest.raises(ValueError, match="strictly positive exponent"):
        linalg.spectral_radius_bound(x, 0)
