"""Products of all sizes and layouts, by the built-in kernels for each kind of vectors."""

import ctypes
import itertools
import mmap

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function
from opwise.config import change_flags
from opwise.linkers import opwise_c

pytestmark = pytest.mark.c

#: rows, columns and terms: small and narrow ones; few and many rows, which share a copy of the
#: columns; sums of several blocks; a copy that takes too much memory for one part
SIZES = [
    (3, 4, 5), (25, 64, 25), (30, 200, 300), (64, 512, 256), (121, 130, 257), (130, 65, 513),
    (241, 67, 300), (400, 1030, 40), (500, 33, 260), (26, 300, 17_000), (26, 70_000, 70),
    (70, 1, 300), (1, 70, 300), (40, 30, 0), (0, 30, 40),
]  # fmt: skip


def compiled(inputs, output):
    f = function(inputs, output, mode=Mode("c|py", "fast_run"))
    assert all(f.linked.in_c)
    return f


def stored(array, layout):
    """Return an equal array whose rows, columns or neither lie side by side."""
    if layout == "columns":
        return np.asfortranarray(array)
    if layout == "apart":
        wide = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
        wide[tuple(slice(1, None, 2) for _ in array.shape)] = array
        return wide[tuple(slice(1, None, 2) for _ in array.shape)]
    return array


def close(result, x, y, start=0.0):
    exact = start + x.astype("float64") @ y.astype("float64")
    size = np.abs(x).astype("float64") @ np.abs(y).astype("float64") + np.abs(start)
    eps = np.finfo(result.dtype).eps
    assert result.shape == exact.shape
    assert np.all(np.abs(result - exact) <= 8 * eps * np.sqrt(x.shape[-1] + 1) * (size + 1e-30))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_matrices(vectors, dtype, size):
    m, n, k = size
    random = np.random.default_rng(1)
    x, y, z = (random.normal(size=s).astype(dtype) for s in ((m, k), (k, n), (m, n)))
    a, b, c = (T.matrix(dtype=dtype) for _ in range(3))
    dot, add = compiled([a, b], T.dot(a, b)), compiled([a, b, c], c - T.dot(a, b))
    close(dot(x, y), x, y)
    close(add(x, y, z), -x, y, z)
    for first in ("rows", "columns", "apart") if x.size * y.size < 1e8 else ("columns",):
        close(dot(stored(x, first), stored(y, "columns")), x, y)
        close(dot(stored(x, first), stored(y, "apart")), x, y)


#: few rows, columns or both, with short and long sums
FEW = [
    (m, n, k)
    for m, n, k in itertools.product(
        (2, 3, 5, 8, 9, 40), (2, 3, 4, 7, 8, 17), (1, 6, 40, 65, 300, 1100)
    )
    if min(m, n) < 10
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("first", ["rows", "columns", "apart"])
@pytest.mark.parametrize("second", ["rows", "columns", "apart"])
def test_few_rows_or_columns(vectors, first, second, dtype):
    random = np.random.default_rng(3)
    a, b, c = (T.matrix(dtype=dtype) for _ in range(3))
    dot, add = compiled([a, b], T.dot(a, b)), compiled([a, b, c], c - T.dot(a, b))
    for m, n, k in FEW:
        x, y, z = (random.normal(size=s).astype(dtype) for s in ((m, k), (k, n), (m, n)))
        close(dot(stored(x, first), stored(y, second)), x, y)
        close(add(stored(x, first), stored(y, second), z), -x, y, z)


@pytest.mark.parametrize(
    "size", [(500, 450, 400), (1, 9000, 1), (9000, 1, 2), (3, 700, 40), (40, 1, 900)]
)
def test_complex_matrices(vectors, size):
    m, n, k = size
    random = np.random.default_rng(6)
    a, b = T.zmatrix(), T.zmatrix()
    dot = compiled([a, b], T.dot(a, b))
    x, y = (random.normal(size=(*s, 2)).view(complex)[..., 0] for s in ((m, k), (k, n)))
    for first, second in itertools.product(("rows", "columns", "apart"), repeat=2):
        np.testing.assert_allclose(dot(stored(x, first), stored(y, second)), x @ y, atol=1e-10)


@pytest.fixture
def at_the_end():
    """Return copies of arrays whose last element is the last one of the memory that may be read."""
    mprotect, ends = ctypes.CDLL(None).mprotect, []

    def placed(array):
        length = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = mmap.mmap(-1, length + mmap.PAGESIZE)
        start = np.frombuffer(memory, "uint8").ctypes.data
        assert mprotect(ctypes.c_void_p(start + length), mmap.PAGESIZE, 0) == 0
        ends.append(start + length)
        flat = np.frombuffer(memory, array.dtype, array.size, length - array.nbytes)
        copy = flat.reshape(array.shape if array.flags.c_contiguous else array.shape[::-1])
        copy = copy if array.flags.c_contiguous else copy.T
        copy[...] = array
        return copy

    yield placed
    for end in ends:  # all of it is used again by others
        mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_nothing_is_read_after_the_operands(vectors, at_the_end, dtype):
    random = np.random.default_rng(4)
    a, b = (T.matrix(dtype=dtype) for _ in range(2))
    dot = compiled([a, b], T.dot(a, b))
    for (m, n, k), first, second in itertools.product(
        FEW[::5], ("rows", "columns"), ("rows", "columns")
    ):
        x, y = ((4 * random.normal(size=s)).astype(dtype) for s in ((m, k), (k, n)))
        result = dot(at_the_end(stored(x, first)), at_the_end(stored(y, second)))
        np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(1000, 301), (4100, 9), (9, 4100), (33, 70), (20_001, 6), (7, 40_001)]
)
def test_a_matrix_and_a_vector(vectors, dtype, shape):
    random = np.random.default_rng(2)
    x, v, z = (random.normal(size=s).astype(dtype) for s in (shape, shape[1], shape[0]))
    a, b, c = T.matrix(dtype=dtype), T.vector(dtype=dtype), T.vector(dtype=dtype)
    dot, add = compiled([a, b], T.dot(a, b)), compiled([a, b, c], c + T.dot(a, b))
    for layout in ("rows", "columns", "apart"):
        close(dot(stored(x, layout), v), x, v)
        close(dot(stored(x, layout), stored(v, "apart")), x, v)
        close(add(stored(x, layout), v, stored(z, "apart")), x, v, z)
    turned = compiled([a, b], T.dot(b, a))
    close(turned(x.T, v), x, v)


@pytest.mark.parametrize("shape", [(1, 20, 30), (70, 20, 30), (5, 300, 200), (0, 3, 4), (6, 0, 4)])
def test_pages(vectors, shape):
    random = np.random.default_rng(3)
    pages, _, k = shape
    x, y = random.normal(size=shape), random.normal(size=(pages, k, 25))
    a, b = T.tensor3(dtype="float64"), T.tensor3(dtype="float64")
    f = compiled([a, b], T.batched_dot(a, b))
    np.testing.assert_allclose(f(x, y), x @ y, atol=1e-10)
    turned = x.transpose(0, 2, 1).copy().transpose(0, 2, 1)
    np.testing.assert_allclose(f(turned, y), x @ y, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_small_pages(vectors, dtype):
    random = np.random.default_rng(5)
    a, b = T.tensor3(dtype=dtype), T.tensor3(dtype=dtype)
    f = compiled([a, b], T.batched_dot(a, b))
    sizes = itertools.product((1, 3, 13), (1, 2, 9, 40), (1, 2, 7, 17, 35))
    for (m, k, n), pages in itertools.product(sizes, (1, 3, 500)):
        x, y = ((4 * random.normal(size=s)).astype(dtype) for s in ((pages, m, k), (pages, k, n)))
        turned = [np.ascontiguousarray(v.transpose(0, 2, 1)).transpose(0, 2, 1) for v in (x, y)]
        for left, right in itertools.product((x, turned[0], x[::-1, :, ::-1]), (y, turned[1])):
            np.testing.assert_allclose(f(left, right), left @ right, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("size", [(300, 500, 700), (70, 900, 600), (3000, 1000, 1)])
def test_results_do_not_depend_on_the_number_of_threads(size):
    m, n, k = size
    random = np.random.default_rng(4)
    a, b = T.matrix(dtype="float32"), T.matrix(dtype="float32")
    x, y = (random.normal(size=s).astype("float32") for s in ((m, k), (k, n)))
    v = random.normal(size=(n, 1)).astype("float32")
    f = function([a, b], T.dot(a, b))
    g = function([a, b], T.dot(a, b)[:, 0])
    seen = set()
    for threads in (1, 2, 3):
        with change_flags(threads=threads):
            seen.add((f(x, y).tobytes(), g(np.ones((m, n), "float32"), v).tobytes()))
    assert len(seen) == 1


@pytest.mark.parametrize("threads", [2, 3, 8, 16])
@pytest.mark.parametrize("f64", [False, True])
def test_all_threads_have_parts_and_end_together(threads, f64, vectors):
    before = opwise_c.threads()
    try:
        opwise_c.set_threads(threads)
        sizes = (64, 100, 128, 200, 500, 1000, 5000)
        for rows, columns in itertools.product((26, *sizes), sizes):
            terms = 2_000_000 // rows
            down, across = opwise_c.product_parts(rows, columns, terms, f64)
            # fewer parts only where they would be smaller than a tile
            assert down * across >= 0.75 * min(threads, rows // 4 * (columns // 64))
            rounds = -(-down * across // threads)
            assert rounds * threads <= 1.35 * down * across or down * across < threads
    finally:
        opwise_c.set_threads(before)
