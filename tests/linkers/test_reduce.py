"""Reductions, of arrays and of elementwise work, against numpy in higher precision.

Built-in loops, the interpreter and generated C; every axis, layout and dtype; lengths at which
loops work in blocks and threads share them; the same bits for any number of threads.
"""

import itertools
import os

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.linkers import opwise_c, resources
from opwise.scalar import Composite
from opwise.scalar.op import OPS
from opwise.scalar.program import Instruction
from opwise.tensor import CAReduce, Elemwise, Prod, Sum, TensorType
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import All, Any

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: below, at and above the lengths of blocks; primes
LENGTHS = [0, 1, 2, 3, 31, 127, 511, 512, 513, 1021, 1023, 1024, 1025, 1031, 2048, 3079, 4097]
SHAPES = [(1, 1), (7, 13), (513, 3), (3, 1031), (31, 33), (33, 31), (2, 3, 5), (5, 33, 31),
          (3, 1, 600), (2, 520, 3)]  # fmt: skip
#: past the size from which threads share the work
LARGE = [(300_007,), (3, 200_001), (200_001, 3), (700, 701), (11, 90, 307)]

#: name -> (the Op for some axes, numpy's function)
FOLDS = {
    "sum": (Sum, np.sum),
    "max": (lambda axis: CAReduce(OPS["maximum"], axis), np.max),
    "min": (lambda axis: CAReduce(OPS["minimum"], axis), np.min),
}
#: how to get there: (name of the elementwise operation, whether kernels may be compiled)
WAYS = {"plain": (None, False), "interpreter": ("mul", False), "generated": ("mul", True)}


@pytest.fixture(autouse=True)
def _threads_and_memory_of_the_flags():
    yield
    resources.obey_flags()


def tensor(dtype, pattern):
    return TensorType(dtype, (False,) * pattern if isinstance(pattern, int) else pattern)()


def numbers(dtype, shape, seed):
    random = np.random.RandomState(seed)
    if dtype == "bool":
        return random.rand(*shape) > 0.5
    if dtype in FLOATS:
        return np.asarray(random.uniform(-1, 1, shape), dtype)
    return random.randint(0 if dtype[0] == "u" else -9, 10, shape).astype(dtype)


def every_axis(ndim):
    return [axes for k in range(1, ndim + 1) for axes in itertools.combinations(range(ndim), k)]


def made(run_with, way, operands, folds=FOLDS):
    """Return a function from values to results, and (fold, axis) of each result."""
    operation, generate = WAYS[way]
    cases = [(fold, axis) for fold in folds for axis in every_axis(operands[0].type.ndim)]
    outputs = []
    for fold, axis in cases:
        op = FOLDS[fold][0](axis)
        outputs.append(
            op(operands[0]) if way == "plain" else MapReduce(OPS[operation], op)(*operands)
        )
    run, linked = run_with(operands, outputs, c=True, generate=generate)
    assert all(linked.in_c)
    return run, cases


def elements(way, values):
    """Return what is reduced, as the loops compute it: in the dtype of the operands."""
    return values[0] if way == "plain" else np.multiply.reduce(values, dtype=values[0].dtype)


def check(results, cases, values, told):
    """Compare with numpy: exactly, but for sums of floats."""
    wide = values.astype(np.longdouble) if values.dtype.kind == "f" else None
    for found, (fold, axis) in zip(results, cases, strict=True):
        assert type(found) is np.ndarray
        if fold != "sum" or wide is None:
            expected = np.asarray(FOLDS[fold][1](values, axis=axis))
            assert found.dtype == expected.dtype, (told, fold, axis)
            np.testing.assert_array_equal(found, expected, err_msg=str((told, fold, axis)))
            continue
        expected, size = wide.sum(axis), abs(wide).sum(axis)
        # single precision is added up in double; the roundings there grow with the logarithm
        tolerance = np.finfo(values.dtype).eps * abs(expected) + 64 * np.finfo("f8").eps * size
        assert found.dtype == values.dtype and found.shape == expected.shape, (told, axis)
        assert np.all(abs(found - expected) <= tolerance), (told, axis)


# --- lengths, axes, layouts, dtypes -------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("way", WAYS)
def test_lengths(run_with, way, dtype):
    operands = [tensor(dtype, 1) for _ in range(1 if way == "plain" else 2)]
    sums, of_sums = made(run_with, way, operands, ["sum"])
    run, cases = made(run_with, way, operands)
    for n in LENGTHS:
        values = [numbers(dtype, (n,), seed) for seed, _ in enumerate(operands)]
        results = run(*values) if n else sums(*values)
        check(results, cases if n else of_sums, elements(way, values), n)


@pytest.mark.parametrize("dtype", ["int16", *FLOATS])
@pytest.mark.parametrize("way", WAYS)
def test_axes_and_layouts(run_with, layouts, way, dtype):
    for ndim, shapes in itertools.groupby(SHAPES, len):
        operands = [tensor(dtype, ndim) for _ in range(1 if way == "plain" else 3)]
        run, cases = made(run_with, way, operands)
        for shape in shapes:
            arrays = [numbers(dtype, shape, seed) for seed, _ in enumerate(operands)]
            for choice, values in layouts(arrays):
                check(run(*values), cases, elements(way, values), (shape, choice))


@pytest.mark.parametrize(("way", "dtype"), [("interpreter", "int16"), ("interpreter", "float32"),
                                            ("generated", "float64")])  # fmt: skip
def test_operands_that_broadcast(run_with, way, dtype):
    patterns = [(False, False), (True, False), (False, True), (True, True)]
    for chosen in [(0, 1), (1, 2), (3, 0, 2), (1, 2, 1, 2, 1)]:
        operands = [tensor(dtype, patterns[k]) for k in chosen]
        run, cases = made(run_with, way, operands, ["sum", "max"])
        for shape in [(5, 7), (700, 3), (3, 700), (400, 701)]:
            values = []
            for seed, var in enumerate(operands):
                pattern = var.type.broadcastable
                own = [1 if one else n for n, one in zip(shape, pattern, strict=True)]
                values.append(numbers(dtype, own, seed))
            reduced = elements(way, np.broadcast_arrays(*values))
            check(run(*values), cases, reduced, (chosen, shape))


@pytest.mark.parametrize(("way", "dtype"), [("interpreter", "int16"), ("interpreter", "float32"),
                                            ("generated", "float64")])  # fmt: skip
@pytest.mark.parametrize("shape", [(700, 6, 8), (6, 700, 5), (5, 9, 700), (3000, 2, 1), (9, 2, 3)])
def test_short_rows_beside_short_dimensions_of_the_result(run_with, way, dtype, shape):
    """Accumulators of a long dimension lie side by side, wherever their results belong."""
    for patterns in (
        [(0, 1, 0), (1, 0, 0)],
        [(0, 0, 0), (1, 0, 0), (0, 1, 1)],
        [(0, 0, 1), (1, 1, 0)],
    ):
        operands = [tensor(dtype, tuple(map(bool, pattern))) for pattern in patterns]
        run, cases = made(run_with, way, operands)
        values = [
            numbers(dtype, [1 if one else n for n, one in zip(shape, pattern, strict=True)], seed)
            for seed, pattern in enumerate(patterns)
        ]
        alone = with_threads(run, 1, values)
        check(alone, cases, elements(way, np.broadcast_arrays(*values)), (patterns, shape))
        for one, other in zip(alone, with_threads(run, 4, values), strict=True):
            assert one.tobytes() == other.tobytes(), (patterns, shape)


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
def test_truths(run_with, generate):
    x, y = tensor("int8", 2), tensor("int8", 2)
    ops = [op(axis) for op in (Any, All, Sum) for axis in every_axis(2)]
    outputs = [MapReduce(OPS["lt"], op)(x, y) for op in ops]
    run, linked = run_with([x, y], outputs, c=True, generate=generate)
    assert all(linked.in_c)
    for shape, low in itertools.product([(3, 5), (2, 1031), (1031, 2), (0, 3)], [-9, 9]):
        a, b = numbers("int8", shape, 1), np.full(shape, low, "int8")
        b[:1, :1] = 0
        expected = [f(a < b, axis) for f in (np.any, np.all, np.sum) for axis in every_axis(2)]
        for found, wanted in zip(run(a, b), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["int32", "uint8", *FLOATS])
@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
def test_products(run_with, generate, dtype):
    """Powers of two: floats do not round, in whatever order; integers wrap."""
    x, y = tensor(dtype, 2), tensor(dtype, 2)
    ops = [Prod(axis) for axis in every_axis(2)]
    outputs = [*(MapReduce(OPS["mul"], op)(x, y) for op in ops), *(op(x) for op in ops)]
    run, _ = run_with([x, y], outputs, c=True, generate=generate)
    for shape in [(3, 0), (5, 7), (3, 1031), (1031, 3), (3, 100_003)]:
        random = np.random.RandomState(3)
        a, b = (random.choice([1, -1] if dtype in FLOATS else [1, 3, 5], shape) for _ in "ab")
        if dtype in FLOATS:
            a = a * 2.0 ** (np.indices(shape).sum(0) % 2 * 2 - 1)  # 2 and 1/2 in turn
        a, b = a.astype(dtype), b.astype(dtype)
        expected = [np.prod(values, axis) for values in (a * b, a) for axis in every_axis(2)]
        for found, wanted in zip(run(a, b), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


# --- threads ------------------------------------------------------------------------------------


def with_threads(run, n, values):
    opwise_c.set_threads(n)
    assert opwise_c.threads() == n
    return [np.array(result) for result in run(*values)]


@pytest.mark.parametrize(
    ("way", "dtype"),
    [("plain", "float64"), ("interpreter", "float32"), ("generated", "float64"),
     ("generated", "int16")],
)  # fmt: skip
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_any_number_of_threads_gives_the_same_bits(run_with, way, dtype, shape):
    operands = [tensor(dtype, len(shape)) for _ in range(1 if way == "plain" else 2)]
    run, cases = made(run_with, way, operands, ["sum", "max"])
    for laid_out in (np.asarray, np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::-2]):
        values = [laid_out(numbers(dtype, shape, seed)) for seed, _ in enumerate(operands)]
        alone = with_threads(run, 1, values)
        check(alone, cases, elements(way, values), shape)
        for n in (4, 9):
            shared = with_threads(run, n, values)
            for one, other, case in zip(alone, shared, cases, strict=True):
                assert one.tobytes() == other.tobytes(), (n, case)


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
def test_elementwise_results_are_the_same_bits_too(run_with, generate):
    """Functions are computed by vector instructions, and what is left of a run by others."""
    x = tensor("float32", 2)
    names = ["exp", "sin", "tanh", "log1p"]
    run, _ = run_with([x], [Elemwise(OPS[name])(x) for name in names], c=True, generate=generate)
    for shape in [(1, 100_003), (3, 50_021), (50_021, 3), (301, 303)]:
        value = abs(numbers("float32", shape, 1))
        for laid_out in (value, np.asfortranarray(value), np.repeat(value, 2, 1)[:, ::2]):
            alone, shared = (with_threads(run, n, [laid_out]) for n in (1, 4))
            for name, one, other in zip(names, alone, shared, strict=True):
                assert one.tobytes() == other.tobytes(), (shape, name)


def test_the_team_grows_and_shrinks(run_with):
    x = tensor("float64", 1)
    run, _ = run_with([x], [Sum()(x)], c=True)
    value = np.arange(300_007.0)
    for n in (4, 1, 2, 7, 3, 1):
        assert with_threads(run, n, [value])[0] == value.sum()
    opwise_c.set_threads(0)
    assert opwise_c.threads() == 1


def test_the_flag_says_how_many(flags, run_with, monkeypatch):
    x = tensor("float64", 1)
    flags(threads=3)
    run_with([x], [x + x], c=True)
    assert opwise_c.threads() == 3
    flags(threads=0)
    for told, n in (("2,1", 2), ("5", 5), ("0", None), ("many", None), ("", None)):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        resources.processors.cache_clear()
        resources.obey_flags()
        assert opwise_c.threads() == (n or resources.processors())
        assert 1 <= resources.processors() <= (n or os.cpu_count())
    resources.processors.cache_clear()


# --- numbers that are hard ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("way", WAYS)
def test_extremes_of_infinities_and_of_what_is_not_a_number(run_with, way, dtype):
    x, y = tensor(dtype, 2), tensor(dtype, 2)
    operands = [x] if way == "plain" else [x, y]
    run, cases = made(run_with, way, operands, ["max", "min"])
    rows = [numbers(dtype, (3000,), 5)]
    for place in (0, 511, 512, 1023, 1024, 2999):
        for special in (np.nan, np.inf, -np.inf):
            rows.append(rows[0].copy())
            rows[-1][place] = special
    rows += [np.full(3000, special, dtype) for special in (np.inf, -np.inf, np.nan)]
    value = np.array(rows)
    for shown in (value, value[:, ::-1], np.asfortranarray(value), value[::19]):
        values = [shown, np.ones_like(shown)][: len(operands)]
        check(run(*values), cases, shown, shown.shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [2, 7, 8, 9, 17, 31, 33, 63, 65, 100, 131])
def test_extremes_of_short_rows_with_what_is_not_a_number(run_with, way, length, dtype):
    x, y = tensor(dtype, 2), tensor(dtype, 2)
    operands = [x] if way == "plain" else [x, y]
    run, cases = made(run_with, way, operands, ["max", "min"])
    value = numbers(dtype, (3 * length, length), 5)
    value[range(length), range(length)] = np.nan  # at every place, then beside infinities
    value[length] = -np.inf
    value[length + 1, ::2], value[length + 1, length // 2] = np.inf, np.nan
    value[length + 2, : length // 2], value[length + 3, length // 2 :] = np.nan, np.nan
    for shown in (value, value[:, ::-1], np.asfortranarray(value), value.repeat(2, 1)[:, ::2]):
        values = [shown, np.ones_like(shown)][: len(operands)]
        check(run(*values), cases, shown, shown.shape)


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
def test_long_sums_are_as_accurate_as_those_of_numpy(run_with, generate):
    x = tensor("float32", 1)
    ops = [Sum(), Sum(acc_dtype="float32")]
    outputs = [*(op(x) for op in ops), *(MapReduce(OPS["neg"], op)(x) for op in ops)]
    run, _ = run_with([x], outputs, c=True, generate=generate)
    value = np.random.RandomState(2).rand(10_000_000).astype("float32")
    exact = value.sum(dtype=np.longdouble)
    errors = [abs(abs(total) - exact) for total in run(value)]
    assert max(errors[0], errors[2]) <= abs(value.sum() - exact)
    assert max(errors[0], errors[2]) <= np.spacing(np.float32(exact)) / 2
    # eight additions in a row, and as many levels as there are doublings, round at most
    assert max(errors[1], errors[3]) <= 16 * np.spacing(np.float32(exact))


@pytest.mark.parametrize("generate", [True, False])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (700, 701), (200_001, 3), (3, 200_001)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_large_sums_in_one_loop(run_with, shape, axis, generate):
    op = Composite.from_program(
        ["float32", "float32"], [Instruction(OPS["mul"], (0, 1), "float32")], [0, 2, 1]
    )
    sums = [Sum(axis), Sum(axis, dtype="float64"), Sum(axis)]
    x, y = (TensorType("float32", (False, False))(n) for n in "xy")
    outputs = MapReduce(op, *sums)(x, y, return_list=True)
    run, linked = run_with([x, y], outputs, c=True, generate=generate)
    assert all(linked.in_c)
    a, b = (numbers("float32", shape, seed) for seed in (1, 2))
    for layout in ("C", "F", "every other"):
        values = np.asfortranarray(a) if layout == "F" else np.repeat(a, 2, axis=1)[:, ::2]
        found = run(a if layout == "C" else values, b)
        wide = [a.astype("float64"), (a * b).astype("float64"), b.astype("float64")]
        for result, terms in zip(found, wide, strict=True):
            np.testing.assert_allclose(result, terms.sum(axis), rtol=1e-5, atol=1e-4)


#: how many points on both sides, and their lengths
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize(
    "shape", [(9, 70, 1), (9, 70, 3), (40, 200, 16), (12, 100, 256), (8, 64, 5)]
)
def test_sums_over_short_rows_of_pairs(shape, dtype):
    n, m, d = shape
    rng = np.random.default_rng(d)
    x, y = (np.round(rng.normal(size=(k, d)) * 4).astype(dtype) for k in (n, m))
    a, b = T.matrix(dtype=dtype), T.matrix(dtype=dtype)
    pairs = T.sqr(a[:, None, :] - b[None, :, :])
    f = theano.function([a, b], [pairs.sum(2), pairs.max(2), pairs.sum(2).T])
    whole = (x[:, None] - y[None]) ** 2
    for found, expected in zip(f(x, y), (whole.sum(2), whole.max(2), whole.sum(2).T), strict=True):
        np.testing.assert_array_equal(found, expected)
    # the same rows, alone and by columns
    np.testing.assert_array_equal(f(x[:8], np.asfortranarray(y))[0], whole[:8].sum(2))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("shape", [(70, 90, 3), (90, 70, 16), (8, 200, 33), (300, 7, 2)])
@pytest.mark.parametrize("threads", [1, 2])
def test_pairs_along_every_axis(shape, dtype, threads):
    """Loops go along the longest dimension, whichever are reduced."""
    resources.use_threads(threads)
    n, m, d = shape
    rng = np.random.default_rng(d)
    x, y, w = (np.round(rng.normal(size=s) * 3).astype(dtype) for s in ((n, d), (m, d), (n, m)))
    a, b, c = (T.matrix(dtype=dtype) for _ in range(3))
    pairs = c[:, :, None] * (a[:, None, :] - b[None, :, :])
    axes = every_axis(3)
    # the reductions of one loop, and such as have one each
    f = theano.function(
        [a, b, c],
        [pairs.sum(axis) for axis in axes] + [(pairs * 2).max(axis) for axis in axes]
        + [T.sqr(pairs).sum(axis) for axis in axes],
    )  # fmt: skip
    for layout in (np.ascontiguousarray, np.asfortranarray, lambda v: v[::-1, ::-1]):
        x, y, w = map(layout, (x, y, w))
        whole = w[:, :, None] * (x[:, None] - y[None])
        expected = [np.sum(whole, axis) for axis in axes]
        expected += [np.max(whole * 2, axis) for axis in axes]
        expected += [np.sum(whole**2, axis) for axis in axes]
        for found, known in zip(f(x, y, w), expected, strict=True):
            np.testing.assert_array_equal(found, known)
