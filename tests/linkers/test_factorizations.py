"""Factorizations of matrices of all sizes and layouts, by the kernels for each kind of vectors."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function
from opwise.linalg import cholesky, det, solve
from opwise.linkers import opwise_c, resources
from opwise.tensor.nlinalg import matrix_inverse
from opwise.tensor.slinalg import Cholesky

pytestmark = pytest.mark.c

#: around those of leaves and of what a product shares out
SIZES = [*range(1, 20), 24, 31, 33, 64, 95, 97, 130, 200, 301]
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "apart": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
}


@pytest.fixture(autouse=True)
def _threads_of_the_flags():
    yield
    resources.obey_flags()


def compiled(inputs, output):
    f = function(inputs, output, mode=Mode("c|py", "fast_run"))
    assert all(f.linked.in_c)
    return f


def drawn(dtype, *shape):
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


def close(found, exact, scale):
    """Compare where rounding errors grow with ``scale``, a condition number."""
    size = np.abs(exact).max(initial=0)
    bound = 30 * np.finfo(found.dtype).eps * scale * size
    assert found.shape == exact.shape
    assert np.abs(found - exact).max(initial=0) <= bound


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_inverses_and_determinants(vectors, dtype, layout):
    a, b, v = T.matrix(dtype=dtype), T.matrix(dtype=dtype), T.vector(dtype=dtype)
    several, one = compiled([a, b], solve(a, b)), compiled([a, v], solve(a, v))
    inverse, determinant = compiled([a], matrix_inverse(a)), compiled([a], det(a))
    for n in SIZES:
        x = LAYOUTS[layout](drawn(dtype, n, n))
        wide = x.astype("float64")
        scale = n * np.linalg.cond(wide)
        right = drawn(dtype, n, 5)
        close(several(x, right), np.linalg.solve(wide, right.astype("float64")), scale)
        close(one(x, right[:, 0]), np.linalg.solve(wide, right[:, 0].astype("float64")), scale)
        close(inverse(x), np.linalg.inv(wide), scale)
        if n <= 33:
            close(determinant(x), np.asarray(np.linalg.det(wide)), scale)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky(vectors, dtype, lower, layout):
    x = T.matrix(dtype=dtype)
    f = compiled([x], Cholesky(lower)(x))
    for n in SIZES:
        root = drawn(dtype, n, n)
        value = LAYOUTS[layout](root @ root.T + n * np.eye(n, dtype=dtype))
        exact = np.linalg.cholesky(value.astype("float64"))
        half = np.tril(value) if lower else np.triu(value)
        close(f(value), exact if lower else exact.T, n)
        close(f(LAYOUTS[layout](half)), exact if lower else exact.T, n)


@pytest.mark.parametrize("n", [2, 8, 9, 40, 97])
def test_rows_are_exchanged_where_pivots_are_small(vectors, n):
    a, v = T.dmatrix(), T.dvector()
    f = compiled([a, v], solve(a, v))
    right = drawn("float64", n)
    shifted = np.roll(np.eye(n), 1, axis=0)  # every pivot is elsewhere
    np.testing.assert_array_equal(f(shifted, right), np.roll(right, -1))
    usual = drawn("float64", n, n)
    tiny, exact = usual.copy(), np.linalg.solve(usual, 1e-3 * right)
    tiny[:, 0] *= 1e-310  # the inverses of such numbers are infinite
    exact[0] *= 1e308
    found = f(tiny, 1e-3 * right)
    found[0] /= 100
    np.testing.assert_allclose(found, exact, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 8, 9, 40, 97])
def test_matrices_without_a_factorization(vectors, n):
    a, v = T.dmatrix(), T.dvector()
    system, inverse = compiled([a, v], solve(a, v)), compiled([a], matrix_inverse(a))
    factor, determinant = compiled([a], cholesky(a)), compiled([a], det(a))
    for column in {0, n // 2, n - 1}:
        x = drawn("float64", n, n)
        x[:, column] = 0
        assert determinant(x) == 0
        for f, values in ((system, [x, x[0]]), (inverse, [x])):
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                f(*values)
        definite = x @ x.T + n * np.eye(n)
        definite[column, column] = -1
        with pytest.raises(np.linalg.LinAlgError, match=f"{column + 1}-th leading minor"):
            factor(definite)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_number_of_threads_gives_the_same_bits(dtype):
    a, v = T.matrix(dtype=dtype), T.vector(dtype=dtype)
    f = compiled([a, v], solve(a, v))
    g = compiled([a], cholesky(T.dot(a, a.T) + 300 * T.eye(300, dtype=dtype)))
    x = drawn(dtype, 300, 300)
    results = []
    for threads in (1, 2, 5):
        opwise_c.set_threads(threads)
        results.append((f(x, x[0]), g(x)))
    for system, factor in results[1:]:
        np.testing.assert_array_equal(system, results[0][0])
        np.testing.assert_array_equal(factor, results[0][1])
