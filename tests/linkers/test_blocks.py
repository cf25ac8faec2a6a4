"""Long kernels run in blocks, between which signals are looked for: their results are numpy's."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.linkers import opwise_c

pytestmark = pytest.mark.c
THREADS = (1, 2, 7)


def by_threads(f, *args):
    """Return the result of a call, which must not depend on the number of threads."""
    used, results = opwise_c.threads(), []
    try:
        for n in THREADS:
            opwise_c.set_threads(n)
            results.append(np.asarray(f(*args)))
    finally:
        opwise_c.set_threads(used)
    for other in results[1:]:
        assert other.tobytes() == results[0].tobytes()
    return results[0]


def compiled(inputs, output):
    return function(inputs, output, mode=Mode("c|py", "fast_run"))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, k, n", [
    (300, 30_000, 300),  # the sums are cut
    (1_100, 2_000, 1_100),
    (2_100, 1_100, 2_100),  # and rows too
    (70, 500_000, 70),
    (6_000, 6_000, 1), (1, 6_000, 6_000), (9, 4_000_000, 1),
])  # fmt: skip
def test_products(m, k, n, dtype):
    rng = np.random.RandomState(0)
    x, y = rng.uniform(-1, 1, (m, k)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype)
    a, b = T.TensorType(dtype, (False, False))("a"), T.TensorType(dtype, (False, False))("b")
    expected = x.astype("float64") @ y
    # far below what a block that is left out or added twice would change
    tolerance = {"rtol": 0, "atol": np.finfo(dtype).eps * k}
    found = by_threads(compiled([a, b], T.dot(a, b)), x, y)
    np.testing.assert_allclose(found, expected, **tolerance)
    turned = compiled([a, b], T.dot(a, b))(x, np.asfortranarray(y))
    np.testing.assert_allclose(turned, expected, **tolerance)
    scaled = compiled([a, b], 0.5 - 2 * T.dot(a, b))
    np.testing.assert_allclose(scaled(x, y), 0.5 - 2 * expected, rtol=0, atol=3 * tolerance["atol"])


def test_matrices_and_vectors_in_strides():
    rng = np.random.RandomState(0)
    x, v = rng.rand(3_000, 2_000)[:, ::2], rng.rand(1_000)
    a, b = T.dmatrix("a"), T.dvector("b")
    np.testing.assert_allclose(compiled([a, b], T.dot(a, b))(x, v), x @ v, rtol=1e-12)
    outer = compiled([a, b], a + 2 * T.outer(b[:3], b))
    wide = np.broadcast_to(np.arange(3.0)[:, None], (3, 1_500_000))
    long = rng.rand(1_500_000)
    np.testing.assert_allclose(outer(wide, long), wide + 2 * np.outer(long[:3], long), rtol=1e-12)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions(axis):
    """Of huge arrays in little memory: every row, or every column, is the same."""
    row = np.arange(1_000.0)
    x = T.dmatrix("x")
    for wide in (np.broadcast_to(row, (120_000, 1_000)), np.broadcast_to(row, (120_000, 1_000)).T):
        found = by_threads(compiled([x], T.sum(x, axis=axis)), wide)
        repeated = {None: 120_000 * row.sum(), 0: 120_000 * row, 1: np.full(120_000, row.sum())}
        if wide.shape[0] == 1_000:
            repeated = {None: repeated[None], 0: repeated[1], 1: repeated[0]}
        np.testing.assert_allclose(found, repeated[axis], rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("order", ["C", "F", "every second"])
def test_elementwise_work_on_short_rows(columns, order):
    rng = np.random.RandomState(0)
    x = rng.rand(70, 90, 2 * columns)
    x = x[..., ::2] if order == "every second" else np.array(x[..., :columns], order=order)
    v, w = rng.rand(90, 1), rng.rand(columns)
    a, b, c = T.dtensor3("a"), T.TensorType("float64", (False, True))("b"), T.dvector("c")
    f = compiled([a, b, c], [a * b, T.exp(a + c) * b, T.lt(a, b)])
    for place, expected in enumerate([x * v, np.exp(x + w) * v, x < v]):
        found = by_threads(lambda place=place: f(x, v, w)[place])
        np.testing.assert_allclose(found, expected)
    s = shared(x)
    function([b], [], updates=[(s, s * b)], mode=Mode("c|py", "fast_run"))(v)
    np.testing.assert_allclose(s.get_value(), x * v)


def test_positions():
    x = np.zeros((3, 2_500_000))
    for row, k in enumerate((2_400_000, 7, 1_048_576)):
        x[row, k] = 1
    a = T.dmatrix("a")
    f = compiled([a], [T.argmax(a, axis=1), T.argmax(a.T, axis=0), T.argmax(a)])
    by_row, by_column, of_all = f(x)
    assert by_row.tolist() == by_column.tolist() == [2_400_000, 7, 1_048_576]
    assert of_all == 2_400_000
    x[2, 2_499_999] = np.nan
    assert f(x)[0].tolist() == [2_400_000, 7, 2_499_999]


def test_copies():
    x = np.random.RandomState(0).rand(1_300, 1_700)
    rows = np.arange(1_300)[::-1].copy()
    a, i, n = T.dmatrix("a"), T.lvector("i"), T.lscalar("n")
    f = compiled([a, i, n], [
        a.T.flatten(), T.concatenate([a.T, a[:, ::-1].T], axis=1), a[i], T.inc_subtensor(a[i], a),
        T.inc_subtensor(a[1:], a[:-1]), T.set_subtensor((a * 1)[:, 1:], (a * 1)[:, :-1]),
        T.arange(3, n, 2), T.alloc(a[0], n // 1_000, 1_700),
    ])  # fmt: skip
    found = f(x, rows, 2_500_000)
    shifted, moved = x.copy(), x.copy()
    shifted[1:] += x[:-1]
    moved[:, 1:] = x[:, :-1]
    expected = [
        x.T.ravel(), np.concatenate([x.T, x[:, ::-1].T], axis=1), x[::-1], x + x[::-1], shifted,
        moved, np.arange(3, 2_500_000, 2), np.broadcast_to(x[0], (2_500, 1_700)),
    ]  # fmt: skip
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)
