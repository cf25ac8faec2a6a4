"""Sizes, strides and offsets at the ends of what 64 bits hold: C against numpy.

Arrays are views that need little memory: broadcast ones of many elements, rows that lie far apart
in memory that is never touched, arrays without elements whose other lengths or strides are huge.
"""

import mmap

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import opwise.tensor as T
from opwise import function
from opwise.scalar import dtypes
from opwise.tensor import TensorType, blas
from opwise.testing import CONFIGURATIONS
from opwise.testing.configurations import mode_of

pytestmark = pytest.mark.c

LEAST, MOST = -(2**63), 2**63 - 1
#: whole numbers at which sums and products of int64 overflow, and small ones
EXTREMES = sorted(
    {0, LEAST, MOST}
    | {sign * n for n in (1, 2, 3, 5, 10) for sign in (1, -1)}
    | {sign * 2**power + more for power in (31, 32, 62, 63) for sign in (1, -1)
       for more in (-6, -1, 0, 1) if LEAST <= sign * 2**power + more <= MOST}
)  # fmt: skip
#: what a call raises where no array can be so large
TOO_LARGE = (MemoryError, ValueError)
MODES = ("FAST_RUN", "FAST_COMPILE", "no optimizer, py", "no optimizer, c|py", "FAST_RUN, py")


def compiled(inputs, outputs, way):
    return function(inputs, outputs, mode=mode_of(way))


def var(dtype, ndim):
    return TensorType(dtype, (False,) * ndim)()


def outcome(call, *args):
    """Return a list of results, or 'too large' where numpy's like has no memory for them."""
    try:
        result = call(*args)
    except TOO_LARGE:
        return "too large"
    return result if isinstance(result, list) else [result]


def same(found, wanted, case):
    if isinstance(wanted, str) or isinstance(found, str):
        assert isinstance(found, str) and found == wanted, (case, found, wanted)
        return
    for x, y in zip(found, wanted, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype, (case, x.shape, y.shape, x.dtype)
        if y.size < 10**6:
            np.testing.assert_array_equal(x, y, err_msg=str(case))


# --- ranges ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranges():
    """By way: functions of start, stop and step."""
    numbers = [T.lscalar() for _ in range(3)]
    x, r = T.dvector(), T.arange(*numbers)
    joined = T.concatenate([x, T.cast(r, "float64")])
    narrow = T.arange(*numbers, dtype="int8")
    return {
        way: (
            compiled(numbers, [r, r.shape[0], narrow, T.cast(r, "float64") * 2.0], way),
            compiled([*numbers, x], [joined, joined.shape], way),
        )
        for way in MODES
    }


def counted(start, stop, step):
    return max(0, -((start - stop) // step))


def check_range(ranges, start, stop, step):
    count = counted(start, stop, step)
    if 10**4 < count < 2**59:
        return  # there may be memory for it
    x = np.arange(3.0)
    for functions in ranges.values():
        for f, more in zip(functions, ([], [x]), strict=True):
            found = outcome(f, start, stop, step, *more)
            if count > 10**4:
                assert found == "too large", (start, stop, step)
                continue
            exact = list(range(start, stop, step))
            numbers = np.array(exact, "int64")
            if more:
                whole = np.concatenate([x, numbers.astype("float64")])
                wanted = [whole, np.array([3 + count])]
            else:
                wrapped = np.array([n % 256 for n in exact], "uint8").view("int8")
                wanted = [numbers, np.array(count), wrapped, numbers.astype("float64") * 2.0]
            same(found, wanted, (start, stop, step))


@pytest.mark.parametrize(
    "numbers",
    [(0, 10, 2**63 - 6), (0, 10, MOST), (10, 0, LEAST), (LEAST, MOST, 2**62), (MOST, LEAST, 1),
     (MOST, LEAST, -(2**62)), (LEAST, MOST, MOST), (-(2**62) - 1, 2**62, 2**62), (LEAST, MOST, 1),
     (0, 2**53 + 1, 2**52), (2**53, 2**53 + 6, 3), (250, 300, 7)],
)  # fmt: skip
def test_ranges(ranges, numbers):
    check_range(ranges, *numbers)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.tuples(*[st.sampled_from(EXTREMES)] * 3).filter(lambda n: n[2] != 0))
def test_random_ranges(ranges, numbers):
    check_range(ranges, *numbers)


@pytest.mark.parametrize("way", MODES)
def test_ranges_of_unsigned_numbers(way):
    a, b, c = (TensorType("uint64", ())() for _ in range(3))
    f = compiled([a, b, c], [T.arange(a, b, c), T.arange(a, b, c, dtype="int64")], way)
    start = 2**63 + 5
    given = [np.array(n, "uint64") for n in (start, start + 10, 4)]
    as_unsigned, as_signed = f(*given)
    assert as_unsigned.tolist() == [start, start + 4, start + 8] and as_unsigned.dtype == "uint64"
    assert as_signed.tolist() == [n - 2**64 for n in as_unsigned.tolist()]


# --- slices and indices ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slices():
    """By way: functions of an array and the parts of a slice, read and written."""
    x = T.dvector()
    numbers = [T.lscalar() for _ in range(3)]
    a, b, c = numbers
    parts = [
        slice(a, b, c),
        slice(a, b),
        slice(a, None, c),
        slice(None, b, c),
        slice(None, None, c),
    ]
    read = [x[p] for p in parts]
    outputs = [*read, *(r.shape[0] for r in read), *(x[p][::-1][1:] for p in parts)]
    outputs += [T.set_subtensor(x[p], -1.0) for p in parts]
    outputs += [
        T.inc_subtensor(x[a:b:c], 2.0),
        (x * 2)[a:b:c].sum(),
        T.alloc(np.float64(1.5), 9)[a:b:c],
    ]
    return {way: compiled([x, *numbers], outputs, way) for way in MODES}


def numpy_slices(x, start, stop, step):
    parts = [
        slice(start, stop, step), slice(start, stop), slice(start, None, step),
        slice(None, stop, step), slice(None, None, step),
    ]  # fmt: skip
    written = []
    for part in parts:
        copy = x.copy()
        copy[part] = -1.0
        written.append(copy)
    added = x.copy()
    added[parts[0]] += 2.0
    return [
        *(x[p] for p in parts), *(np.array(x[p].shape[0]) for p in parts),
        *(x[p][::-1][1:] for p in parts), *written, added, np.array((x * 2)[parts[0]].sum()),
        np.full(9, 1.5)[parts[0]],
    ]  # fmt: skip


def check_slice(slices, n, numbers):
    x = np.arange(1.0, n + 1)
    for way, f in slices.items():
        same(f(x, *numbers), numpy_slices(x, *numbers), (way, n, numbers))


@pytest.mark.parametrize(
    "numbers",
    [(MOST, LEAST, LEAST), (MOST, LEAST, -(2**63) + 1), (LEAST, MOST, MOST), (LEAST, MOST, 1),
     (LEAST, LEAST, 1), (0, LEAST, -1), (LEAST, None, -1), (0, LEAST, 1), (5, LEAST, -(2**62))],
)  # fmt: skip
def test_slices(slices, numbers):
    if None in numbers:
        numbers = (numbers[0], MOST, numbers[2])
    for n in (0, 1, 6):
        check_slice(slices, n, numbers)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([0, 1, 2, 7]),
    st.tuples(*[st.sampled_from(EXTREMES)] * 3).filter(lambda n: n[2] != 0),
)
def test_random_slices(slices, n, numbers):
    check_slice(slices, n, numbers)


@pytest.mark.parametrize("way", MODES)
@pytest.mark.parametrize(
    "part",
    [slice(LEAST, MOST, LEAST), slice(MOST, LEAST, LEAST), slice(2**70, None, -(2**70)),
     slice(-(2**70), 2**70), slice(None, None, MOST), slice(None, -(2**63), -1)],
)  # fmt: skip
def test_constant_slices(part, way):
    x, m = T.dvector(), T.dmatrix()
    f = compiled([x, m], [x[part], x[part].shape[0], m[:, part][part], x[part][::-1]], way)
    for n in (0, 1, 5):
        v, w = np.arange(float(n)), np.arange(n * n * 1.0).reshape(n, n)
        same(f(v, w), [v[part], np.array(v[part].shape[0]), w[:, part][part], v[part][::-1]], part)


@pytest.mark.parametrize("way", MODES)
def test_unsigned_indices(way):
    """A number from 2**63 on is no negative one, but in a vector of indices, as in numpy."""
    x, i = T.dvector(), TensorType("uint64", ())()
    v, large = np.arange(4.0), np.array(2**64 - 2, "uint64")
    two = T.stack([i, i])
    outputs = [x[two], T.inc_subtensor(x[two], 1.0), T.set_subtensor(x[two], -1.0)]
    added, put = v.copy(), v.copy()
    added[2] += 2
    put[2] = -1
    same(compiled([x, i], outputs, way)(v, large), [v[[2, 2]], added, put], way)
    for out in outputs:
        with pytest.raises(IndexError):
            compiled([x, i], out, way)(v, np.array(2**63, "uint64"))
    assert outcome(compiled([x, i], T.alloc(x[0], i), way), v, large) == "too large"


@pytest.mark.parametrize("way", MODES)
def test_indices_out_of_range(way):
    x, i = T.dmatrix(), T.lscalar()
    builds = [x[i], x[:, i], x[T.stack([i, i])], T.set_subtensor(x[i], 0), T.inc_subtensor(x[i], 1)]
    for out in builds:
        f = compiled([x, i], out, way)
        for index in (LEAST, LEAST + 1, -4, 3, MOST, 2**32, -(2**32)):
            with pytest.raises(IndexError):
                f(np.ones((3, 3)), index)


# --- lengths --------------------------------------------------------------------------------------

#: shapes whose number of elements, or of bytes, overflows
OVERFLOWING = [
    (2**32, 2**32), (2**62, 4), (2**31, 2**31, 2), (MOST, 1), (MOST, MOST), (2**61, 1),
    (3, 2**62), (2**40, 2**40), (2**60, 1),
]  # fmt: skip


@pytest.mark.parametrize("way", MODES)
def test_allocations(way):
    a, b, c = (T.lscalar() for _ in range(3))
    x = T.dscalar()
    two = compiled([x, a, b], T.alloc(x, a, b) + 1, way)
    three = compiled([x, a, b, c], T.alloc(x, a, b, c), way)
    for shape in OVERFLOWING:
        f = two if len(shape) == 2 else three
        assert outcome(f, 1.0, *shape) == "too large", shape
    for shape in ((-1, 3), (LEAST, 2), (3, LEAST), (-(2**32), -(2**32))):
        with pytest.raises(ValueError, match="egative"):
            two(1.0, *shape)
    # numpy refuses it as well: lengths of 0 do not count
    assert outcome(three, 1.0, 0, 2**40, 2**40) == "too large"
    assert three(1.0, 0, 2**30, 2**20).shape == (0, 2**30, 2**20)


@pytest.mark.parametrize("way", MODES)
def test_reshapes(way):
    x, s = T.dmatrix(), T.lvector()
    for ndim in (1, 2, 3):
        f = compiled([x, s], [T.reshape(x, s, ndim=ndim)], way)
        for n, m in ((2, 3), (0, 4), (1, 1)):
            value = np.arange(n * m * 1.0).reshape(n, m)
            for layout in (value, np.asfortranarray(value)):
                for shape in [
                    (2**32,) * ndim, (2**62, 4, 1)[:ndim], (0, 2**40, 2**40)[:ndim],
                    (2**40, 2**40, 0)[-ndim:], (-1, 2**63 - 1, 1)[:ndim], (MOST,) * ndim,
                    (-1, 3, 2)[:ndim], (2**61, -1, 0)[:ndim], (0, 2**30, 2**20)[:ndim],
                ]:  # fmt: skip
                    wanted = outcome(lambda v, s: [v.reshape(s)], layout, shape)
                    same(outcome(f, layout, np.array(shape)), wanted, (layout.shape, shape))


@pytest.mark.parametrize("way", MODES)
def test_more_than_an_array_can_have(way):
    """Sums of lengths overflow, and so do products of those of operands that broadcast."""
    x, y = TensorType("int8", (False,))(), TensorType("int8", (False,))()
    long = np.broadcast_to(np.int8(1), 2**62)
    assert outcome(compiled([x, y], T.concatenate([x, y]), way), long, long) == "too large"
    assert compiled([x, y], T.concatenate([x, y])[:2].shape[0], way)(long[:4], long[:3]) == 2
    column, row = T.TensorType("int8", (False, True))(), T.TensorType("int8", (True, False))()
    many = np.broadcast_to(np.int8(1), 2**40)
    for out in (column + row, (column + row).sum(), (column * row).max(axis=0)):
        assert outcome(compiled([column, row], out, way), many[:, None], many[None]) == "too large"
    i, m = T.lvector(), TensorType("int8", (False, False))()
    take = compiled([m, i], m[i], way)
    far = np.broadcast_to(np.int8(1), (3, 2**40))
    assert outcome(take, far, np.broadcast_to(np.int64(1), 2**40)) == "too large"


@pytest.mark.parametrize("way", MODES)
def test_lengths_of_other_operations(way):
    """Repetitions, tiles, matrices of a diagonal, parts."""
    x, n, k = T.dvector(), T.lscalar(), T.lscalar()
    v = np.arange(3.0)
    repeated = compiled([x, n], T.repeat(x, n), way)
    for many in (2**62, MOST, 2**61):
        assert outcome(repeated, v, many) == "too large", many
    tiled = compiled([x, n], T.tile(x, (n,)), way)
    for many in (2**62, MOST):
        assert outcome(tiled, v, many) == "too large", many
    diagonals = compiled([n, k], [T.eye(n, n, k), T.tri(n, n, k)], way)
    for diagonal in (LEAST, -(2**32), -1, 0, 2, 2**32, MOST):
        near = max(-9, min(9, diagonal))
        same(diagonals(4, diagonal), [np.eye(4, 4, near), np.tri(4, 4, near)], diagonal)
    assert outcome(diagonals, 2**32, 0) == "too large"
    parts = T.split(x, T.stack([n, k]), 2)
    split = compiled([x, n, k], list(parts), way)
    same(split(v, 1, 2), [v[:1], v[1:]], "split")
    for lengths in ((MOST, LEAST + 4), (2**62, -(2**62) + 3), (4, -1), (LEAST, LEAST)):
        assert outcome(split, v, *lengths) == "too large", lengths


# --- strides --------------------------------------------------------------------------------------


def far_apart(rows, columns, step, dtype="float64"):
    """Return a matrix whose rows lie ``step`` bytes apart in memory of which only they exist."""
    itemsize = np.dtype(dtype).itemsize
    size = (rows - 1) * step + columns * itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    try:
        memory = mmap.mmap(-1, size, flags=flags)
    except OSError:
        pytest.skip(f"this system gives no address space of {size} bytes")
    flat = np.frombuffer(memory, np.uint8)
    m = as_strided(flat[: columns * itemsize].view(dtype), (rows, columns), (step, itemsize))
    m[...] = np.arange(rows * columns).reshape(rows, columns) % 7 - 3
    return m


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("elements", [2**31 - 1, 2**31, 2**32 + 5, 2**33])
def test_rows_far_apart(elements, dtype):
    """More elements apart than BLAS can be told: for all products, as rows and as columns."""
    far = far_apart(5, 60, elements * np.dtype(dtype).itemsize, dtype)
    near = np.ascontiguousarray(far)
    other = (np.arange(60 * 40).reshape(60, 40) % 5 - 2).astype(dtype)
    wide = (np.arange(5 * 300).reshape(5, 300) % 5 - 2).astype(dtype)
    x, y, z, v = var(dtype, 2), var(dtype, 2), var(dtype, 2), var(dtype, 1)
    # direct products of BLAS: long enough for it, both sides, and transposed
    large = far_apart(40, 100, elements * np.dtype(dtype).itemsize, dtype)
    beside = (np.arange(100 * 50).reshape(100, 50) % 5 - 2).astype(dtype)
    for way in ("FAST_RUN", "FAST_COMPILE"):
        f = compiled([x, y], T.dot(x, y), way)
        np.testing.assert_array_equal(f(far, other), near @ other)
        np.testing.assert_array_equal(f(far.T, wide), near.T @ wide)
        np.testing.assert_array_equal(f(other.T, far.T), other.T @ near.T)
        np.testing.assert_array_equal(f(large, beside), np.ascontiguousarray(large) @ beside)
        np.testing.assert_array_equal(
            f(beside.T, large.T), beside.T @ np.ascontiguousarray(large).T
        )
        g = compiled([x, v], T.dot(x, v), way)
        np.testing.assert_array_equal(g(far, other[:, 0]), near @ other[:, 0])
        np.testing.assert_array_equal(g(large, large[3]), np.ascontiguousarray(large) @ large[3])
        column = large[:, 0]  # a vector whose elements lie as far apart
        np.testing.assert_array_equal(g(large.T, column), np.ascontiguousarray(large).T @ column)
        sums = compiled([x, y, z], [x + 1, x.sum(axis=0), x * z, T.dot(x, y) + 2 * z[:, :40]], way)
        wanted = [near + 1, near.sum(axis=0), near * near, near @ other + 2 * near[:, :40]]
        same(sums(far, other, far), wanted, way)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_into_rows_far_apart(dtype):
    """Gemm, Gemv and Ger that overwrite, or read, what lies far apart."""
    step = (2**32 + 1) * np.dtype(dtype).itemsize
    z, x, y, a = var(dtype, 2), var(dtype, 2), var(dtype, 2), T.TensorType(dtype, ())()
    far, left = far_apart(40, 60, step, dtype), np.ones((40, 50), dtype)
    right = (np.arange(3000).reshape(50, 60) % 5).astype(dtype)
    wanted = np.ascontiguousarray(far) * 2 + left @ right
    for op in (blas.gemm_no_inplace,):
        f = compiled([z, x, y, a], op(z, a, x, y, T.constant(np.array(2, dtype))), "FAST_COMPILE")
        np.testing.assert_array_equal(f(far, left, right, np.array(1, dtype)), wanted)
    v, w = var(dtype, 1), var(dtype, 1)
    one = T.constant(np.array(1, dtype))
    column = far[:, 0]
    gemv = compiled([v, x, w], blas.gemv_no_inplace(v, one, x, w, one), "FAST_COMPILE")
    matrix = np.ones((40, 200), dtype)
    np.testing.assert_array_equal(gemv(column, matrix, matrix[0]), column + 200)
    ger = compiled([z, v, w], blas.ger(z, one, v, w), "FAST_COMPILE")
    near = np.ascontiguousarray(far)
    np.testing.assert_array_equal(ger(far, column, right[1]), near + np.outer(column, right[1]))


@pytest.mark.slow
@pytest.mark.parametrize("ndim", [1, 2])
def test_products_of_more_than_blas_can_be_told(ndim):
    """A length above 2**31 - 1 is multiplied in pieces."""
    n = 2**31 + 9
    x, y = var("float32", ndim), var("float32", ndim)
    left, right = np.float32(0.5), np.float32(2.0**-10)
    shapes = ((n,), (n,)) if ndim == 1 else ((1, n), (n, 1))
    arrays = [np.broadcast_to(v, s) for v, s in zip((left, right), shapes, strict=True)]
    result = function([x, y], T.dot(x, y), mode="FAST_COMPILE")(*arrays)
    assert result.shape == (() if ndim == 1 else (1, 1))
    np.testing.assert_allclose(result, n * 2.0**-11, rtol=1e-4)


def strided(shape, strides, dtype):
    return as_strided(np.zeros(1, dtype), shape, strides, writeable=False)


@pytest.mark.parametrize("way", MODES)
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((0, 5), (8, 2**62)), ((1, 1), (2**62, LEAST)), ((0, 2**40), (LEAST, MOST - 7)),
     ((2**40, 0), (2**62, 2**62)), ((1, 0), (MOST - 7, 8)), ((0, 0), (LEAST, LEAST))],
)  # fmt: skip
def test_strides_that_lead_nowhere(shape, strides, way):
    """Those of a dimension of one element, or of an array without elements, may be anything."""
    x = T.dmatrix()
    outputs = [x + 1, x.T * 2, x.sum(axis=1) if shape[0] < 9 else x.sum(axis=0), x[::-1],
               x[:, ::-2], T.concatenate([x, x]), x.flatten(), x.copy(),
               T.set_subtensor(x[:], 3.0), T.dot(x, x.T) if shape[0] < 9 else x.shape]  # fmt: skip
    f = compiled([x], outputs, way)
    value = strided(shape, strides, "float64")
    clean = np.zeros(shape)
    wanted = compiled([x], outputs, "no optimizer, py")(clean)
    same(f(value), wanted, (shape, strides))


@pytest.mark.parametrize("way", MODES)
def test_broadcast_views(way):
    """Elements that all lie in one place, in every kind of step that can read them."""
    x, v = T.fmatrix(), T.fvector()
    value = np.broadcast_to(np.float32(1.5), (70, 90))
    numbers = np.broadcast_to(np.float32(0.5), 90)
    outputs = [T.dot(x, x.T), T.dot(x, v), x.sum(), x.sum(axis=0), x.max(axis=1), x.T + 1,
               T.argmax(x, axis=1), x * v, T.concatenate([x, x], axis=1), T.nnet.softmax(x),
               x[T.constant([3, 1, 60])], x.reshape((90, 70)),
               T.inc_subtensor(x[3:9], v)]  # fmt: skip
    f = compiled([x, v], outputs, way)
    reference = compiled([x, v], outputs, "no optimizer, py")
    dense = (np.ascontiguousarray(value), np.ascontiguousarray(numbers))
    for found, wanted in zip(f(value, numbers), reference(*dense), strict=True):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


# --- whole numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", CONFIGURATIONS)
@pytest.mark.parametrize("dtype", dtypes.SIGNED)
def test_the_least_integer(dtype, way):
    """abs, neg, //, % and ** of numbers whose results do not fit wrap, as in numpy."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x, y = var(dtype, 1), var(dtype, 1)
    pairs = [(a, b) for a in (least, least + 1, -1, 0, 1, most) for b in (least, -1, 1, 2, most)]
    first, second = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    powers = np.array([0, 1, 2, 3, 5] * 6, dtype)
    f = compiled([x, y], [abs(x), -x, x // y, x % y, T.sgn(x), x * y, x - y], way)
    g = compiled([x, y], [x**y, x**2, x**3, T.sqr(x)], way)
    with np.errstate(all="ignore"):
        wanted = [abs(first), -first, first // second, first % second, np.sign(first),
                  first * second, first - second]  # fmt: skip
        raised = [first**powers, first**2, first**3, np.square(first)]
    same(f(first, second), wanted, dtype)
    same(g(first, powers), [np.asarray(r, dtype) for r in raised], dtype)


@pytest.mark.parametrize("way", MODES)
def test_parts_of_arrays_without_elements(way):
    """An index into what has no elements leads nowhere, and its result is no view of anything."""
    x = var("float64", 3)
    y = T.sum(x * 2, axis=0)
    f = compiled([x], [x[3], x[3, 2:], y[-1], T.exp(y[2]), y[5:0:-1]], way)
    for shape in [(4, 6, 0), (4, 60, 0)]:
        empty = np.zeros(shape)
        for found, wanted in zip(
            f(empty),
            [empty[3], empty[3, 2:], empty[0, -1], empty[0, 2], empty[0, 5:0:-1]],
            strict=True,
        ):
            assert found.shape == wanted.shape
