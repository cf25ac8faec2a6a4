"""Cholesky, QR and singular values: values against numpy, gradients and refusals."""

import numpy as np
import pytest

from opwise import linalg
from opwise.errors import MethodNotDefined
from opwise.gradient import grad
from opwise.linalg import cholesky, qr, svd
from opwise.tensor import sum as sum_
from opwise.tensor.elemwise import elemwise
from opwise.tensor.linalg import operands
from opwise.tensor.linalg.factor import LUFactor, PivotPermutation
from opwise.tensor.nlinalg import SVD, QRFull
from opwise.tensor.slinalg import Cholesky, CholeskyGrad
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

DEFINITE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
OBLONG = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])
LinAlgError = np.linalg.LinAlgError


def matrix(dtype="float64"):
    return tensor_type(dtype, (False, False))()


@pytest.fixture(params=[True, False], ids=["scipy", "no scipy"])
def _scipy(request, monkeypatch):
    monkeypatch.setattr("opwise.tensor.linalg.factor.has_scipy", lambda: request.param)


@pytest.mark.usefixtures("_scipy")
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_cholesky_reads_one_half(run, lower, dtype):
    x, value = matrix(dtype), DEFINITE.astype(dtype)
    if dtype == "complex128":
        value[0, 1], value[1, 0] = 1j, -1j
    half = np.tril(value) if lower else np.triu(value)
    expected = np.linalg.cholesky(value)
    found = run(Cholesky(lower)(x), {x: half})
    np.testing.assert_allclose(found, expected if lower else expected.conj().T, rtol=1e-6)


@pytest.mark.usefixtures("_scipy")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_factor_without_a_check_of_values(run, value):
    x, bad = matrix(), DEFINITE.copy()
    bad[-1, -1] = value
    found = run(Cholesky(on_error="nan", check_finite=False)(x), {x: bad})
    assert np.isnan(found).all()
    with pytest.raises(LinAlgError, match="not positive definite"):
        run(Cholesky(check_finite=False)(x), {x: bad})
    assert Cholesky(check_finite=False) != cholesky


@pytest.mark.usefixtures("_scipy")
def test_matrices_without_a_factor(run):
    x = matrix()
    with pytest.raises(LinAlgError, match="not positive definite"):
        run(cholesky(x), {x: INDEFINITE})
    assert np.isnan(run(Cholesky(on_error="nan")(x), {x: INDEFINITE})).all()
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            run(Cholesky(on_error="nan")(x), {x: np.full((2, 2), value)})
    with pytest.raises(ValueError, match=r"square matrix, .* has shape \(2, 3\)"):
        run(cholesky(x), {x: OBLONG})
    with pytest.raises(ValueError, match="on_error must be one of"):
        Cholesky(on_error="ignore")
    with pytest.raises(AssertionError, match="Cholesky takes a matrix"):
        cholesky(tensor_type("float64", (False,))())


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("on_error", ["raise", "nan"])
def test_cholesky_has_a_gradient(check_gradient, lower, on_error):
    check_gradient(Cholesky(lower, on_error), DEFINITE)


def test_the_gradient_of_a_failure_is_nan(run):
    x = matrix()
    found = run(grad(sum_(Cholesky(on_error="nan")(x)), x), {x: INDEFINITE})
    assert np.isnan(found).all()


@pytest.mark.parametrize("lower", [True, False])
def test_the_legacy_gradient_agrees(run, lower):
    x, g = matrix(), matrix()
    z = Cholesky(lower)(x)
    cost = sum_(elemwise("mul")(z, g))
    direction = np.arange(9.0).reshape(3, 3)
    direction = np.tril(direction) if lower else np.triu(direction)
    new, legacy = run([grad(cost, x), CholeskyGrad(lower)(x, z, g)], {x: DEFINITE, g: direction})
    np.testing.assert_allclose(legacy, new)
    with pytest.raises(AssertionError, match="lower/upper mismatch"):
        CholeskyGrad(not lower)(x, z, g)


@pytest.mark.parametrize("value", [DEFINITE, OBLONG, OBLONG.T])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(run, value, mode):
    x = matrix()
    q, r = run(list(qr(x, mode)), {x: value})
    assert q.shape[1] == r.shape[0] == (len(value) if mode == "complete" else min(value.shape))
    np.testing.assert_allclose(q @ r, value, atol=1e-12)
    np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-12)
    np.testing.assert_array_equal(r, np.triu(r))
    alone = run(qr(x, "r"), {x: value})
    np.testing.assert_allclose(abs(alone), abs(r[: len(alone)]))


def test_qr_as_lapack_gives_it(run):
    x = matrix()
    for found, expected in zip(
        run(list(qr(x, "raw")), {x: OBLONG}), np.linalg.qr(OBLONG, "raw"), strict=True
    ):
        np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match="Unrecognized mode 'economic'"):
        qr(x, "economic")


@pytest.mark.parametrize("value", [DEFINITE, OBLONG, OBLONG.T, np.zeros((0, 3))])
@pytest.mark.parametrize("full", [0, 1])
def test_singular_values(run, value, full):
    x = matrix()
    u, s, v = run(list(svd(x, full)), {x: value})
    k = len(s)
    assert (u.shape, v.shape) == tuple(m.shape for m in np.linalg.svd(value, bool(full))[::2])
    np.testing.assert_allclose((u[:, :k] * s) @ v[:k], value, atol=1e-12)
    np.testing.assert_allclose(run(svd(x, compute_uv=False), {x: value}), s)


def test_singular_values_have_no_gradient():
    x = matrix()
    with pytest.raises(MethodNotDefined):
        grad(sum_(svd(x)[1]), x)


def test_dtypes():
    for dtype, of_values in (
        ("int64", "float64"),
        ("float32", "float32"),
        ("complex64", "float32"),
    ):
        u, s, v = svd(matrix(dtype))
        assert s.type.dtype == of_values and u.type.dtype == v.type.dtype
    assert cholesky(matrix("int32")).type.dtype == "int32"  # as in Theano
    assert [v.type.dtype for v in qr(matrix("int8"))] == ["float64", "float64"]


def test_principal_components_in_two_ways(run):
    """The singular values of centred data, and the eigenvalues of its covariance."""
    data = np.random.RandomState(0).normal(size=(20, 3)) @ np.diag([3.0, 1.0, 0.2])
    x = matrix()
    centred = x - x.mean(axis=0)
    values, vectors = linalg.eigh(centred.T.dot(centred))
    _, s, v = svd(centred, full_matrices=False)
    values, vectors, s, v = run([values, vectors, s, v], {x: data})
    np.testing.assert_allclose(values[::-1], s**2)
    assert operands.rows_agree(v, vectors.T[::-1].copy())
    np.testing.assert_allclose(abs(v), abs(vectors.T[::-1]))


def test_comparisons_up_to_signs():
    q = np.linalg.qr(DEFINITE)[0]
    assert operands.columns_agree(q, q * [1, -1, 1]) and not operands.columns_agree(q, q * 2)
    assert not operands.columns_agree(q, q[:2]) and not operands.columns_agree(q, q * np.nan)
    assert operands.rows_agree(q, q * [[1], [-1], [1]])


def test_flops():
    assert cholesky.flops([(30, 30)], [(30, 30)]) == 9000
    assert linalg.solve.flops([(30, 30), (30,)], [(30,)]) == 18000 + 1800
    assert linalg.solve_lower_triangular.flops([(30, 30), (30, 2)], [(30, 2)]) == 1800
    assert linalg.inv.flops([(30, 30)], [(30, 30)]) == 54000
    assert linalg.det.flops([(30, 30)], [()]) == 18000
    reduced = QRFull("reduced")
    assert reduced.flops([(30, 30)], [(30, 30), (30, 30)]) == 2 * 36000
    assert SVD().flops([(10, 10)], [(10, 10), (10,), (10, 10)]) == 21000
    assert SVD(compute_uv=False).flops([(10, 10)], [(10,)]) == 2667


# --- LU -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lu_factors(run, dtype):
    x, p = matrix(dtype), tensor_type("int32", (False,))()
    for n in (0, 1, 5, 40):
        value = np.random.RandomState(n).normal(size=(n, n)).astype(dtype)
        factors, pivots = run(list(LUFactor()(x, return_list=True)), {x: value})
        order = run(PivotPermutation()(p), {p: pivots})
        assert factors.dtype == dtype and pivots.dtype == np.int32 and order.dtype == np.int64
        product = (np.tril(factors, -1) + np.eye(n)) @ np.triu(factors)
        np.testing.assert_allclose(product, value[order], rtol=1e-3, atol=1e-4)
        back = run(PivotPermutation(inverse=True)(p), {p: pivots})
        np.testing.assert_array_equal(back[order], np.arange(n))


def test_lu_factors_have_a_gradient(check_gradient):
    check_gradient(lambda x: LUFactor()(x)[0], DEFINITE[[2, 0, 1]])


def test_lu_factors_of_singular_matrices(run):
    x, value = matrix(), np.diag([1.0, 0, 3])
    assert np.isnan(run(LUFactor("nan")(x)[0], {x: value})).all()
    np.testing.assert_array_equal(run(LUFactor()(x)[0], {x: value}), value)


def test_lu_refuses():
    with pytest.raises(ValueError, match="on_error must be one of"):
        LUFactor("raise")
    with pytest.raises(TypeError, match="float32 or float64, not int64"):
        LUFactor()(matrix("int64"))
    with pytest.raises(TypeError, match="a vector of integers"):
        PivotPermutation()(matrix("int64"))


def test_pivots_out_of_range_and_matrices_that_are_not_square(run):
    x, pivots = matrix(), tensor_type("int32", (False,))()
    with pytest.raises(LinAlgError, match=r"square matrix, .* has shape \(2, 3\)"):
        run(LUFactor()(x)[0], {x: OBLONG})
    for bad in (3, -4):
        with pytest.raises(IndexError):
            run(PivotPermutation()(pivots), {pivots: np.array([1, bad, 2], np.int32)})
