"""Products of a matrix with a vector: every size around the widths of vectors, every layout."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import In, function

pytestmark = pytest.mark.c


def part(a):
    longer = np.zeros((a.shape[0], 2 * a.shape[1] + 1), a.dtype)
    longer[:, 1 : a.shape[1] + 1] = a
    return longer[:, 1 : a.shape[1] + 1]


LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: np.asfortranarray(a),
    "part of longer rows": part,
    "every second element": lambda a: np.repeat(np.repeat(a, 2, axis=0), 2, axis=1)[::2, ::2],
    "turned": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("step", [1, 3, -1])
def test_products_with_a_vector(dtype, layout, step):
    A, x, y = T.matrix(dtype=dtype), T.vector(dtype=dtype), T.vector(dtype=dtype)
    ins = [In(v, borrow=True) for v in (A, x, y)]
    f = function(ins, [T.dot(A, x), 2 * T.dot(A, x) - 3 * y])
    rng = np.random.RandomState(5)
    for m in (0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 67):
        for k in (0, 1, 2, 7, 8, 16, 19, 40, 61):
            a = LAYOUTS[layout](rng.uniform(-1, 1, (m, k)).astype(dtype))
            v = rng.uniform(-1, 1, (k * 3,)).astype(dtype)[:: abs(step)][:k][:: np.sign(step)]
            w = rng.uniform(-1, 1, (m * 3,)).astype(dtype)[:: abs(step)][:m][:: np.sign(step)]
            product, total = f(a, v, w)
            exact = a.astype("float64") @ v.astype("float64")
            tolerance = 40 * np.finfo(dtype).eps * max(1, k) ** 0.5
            np.testing.assert_allclose(product, exact, atol=tolerance)
            np.testing.assert_allclose(total, 2 * exact - 3 * w, atol=tolerance * 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_two_vectors(dtype, vectors):
    x, y, z = T.vector(dtype=dtype), T.vector(dtype=dtype), T.scalar(dtype=dtype)
    f = function([In(v, borrow=True) for v in (x, y, z)], [T.dot(x, y), z - 3 * T.dot(x, y)])
    rng = np.random.RandomState(5)
    for k in (*range(1, 300), 1000, 1023, 20_000, 20_001):
        # whole numbers: every order of additions is exact; nan beside them is not read
        a, b = (np.full(k + 2, np.nan, dtype) for _ in range(2))
        a[1:-1], b[1:-1] = rng.randint(-9, 9, (2, k))
        exact = a[1:-1].astype("int64") @ b[1:-1].astype("int64")
        assert f(a[1:-1], b[1:-1], dtype == "float32") == [exact, (dtype == "float32") - 3 * exact]


def test_equal_products_are_added_with_few_roundings(vectors):
    """Roundings of equal numbers do not cancel."""
    x, y = T.fvector(), T.fvector()
    f = function([In(x, borrow=True), In(y, borrow=True)], T.dot(x, y))
    rng = np.random.RandomState(5)
    for a, b in rng.uniform(-3, 3, (50, 2)).astype("float32"):
        exact = 9000 * float(a) * float(b)
        found = f(np.full(9000, a), np.full(9000, b))
        np.testing.assert_allclose(found, exact, rtol=1e-5)
