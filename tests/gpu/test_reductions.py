"""Reductions on the simulated device: axes, layouts, dtypes; the same bits in any order."""

import itertools

import numpy as np
import pytest

from opwise.scalar import Composite
from opwise.scalar.op import OPS
from opwise.scalar.program import Instruction
from opwise.tensor import Argmax, CAReduce, MaxAndArgmax, Prod, Sum, TensorType
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import All, Any

pytestmark = pytest.mark.c

FLOATS = ("float16", "float32", "float64")
FOLDS = {
    "sum": Sum,
    "max": lambda axis: CAReduce(OPS["maximum"], axis),
    "min": lambda axis: CAReduce(OPS["minimum"], axis),
    "where": lambda axis: MaxAndArgmax(axis),
}
DTYPES = ["bool", "int8", "uint64", *FLOATS]


def tensor(dtype, pattern):
    pattern = (False,) * pattern if isinstance(pattern, int) else pattern
    return TensorType(dtype, pattern)()


def every_axis(ndim):
    return [axes for k in range(1, ndim + 1) for axes in itertools.combinations(range(ndim), k)]


def numbers(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) > 0.5
    if dtype in FLOATS:
        return np.asarray(random.uniform(-1, 1, shape), dtype)
    return random.integers(0, 9, shape).astype(dtype)


def scaled(*outs):
    """x * y - x, of which y may be broadcast; slot 2 is the product"""
    steps = (Instruction(OPS["mul"], (0, 1), "float32"), Instruction(OPS["sub"], (2, 0), "float32"))
    return Composite.from_program(("float32", "float32"), steps, outs)


SHAPES = {
    2: [(1, 1), (7, 13), (513, 3), (3, 1031), (64, 128), (300, 40), (2, 20_000), (20_000, 2)],
    3: [(2, 3, 5), (5, 33, 31), (3, 1, 600), (2, 520, 3), (16, 8, 32)],
}
PATTERNS = {
    "plain": (False, False), "row": (True, False), "column": (False, True), "number": (True, True),
}  # fmt: skip


def nodes():
    made = {}
    for dtype in DTYPES:
        for name, op in FOLDS.items():
            made[f"{name}-{dtype}"] = op((0,))(tensor(dtype, 1), return_list=True)[0].owner
    for ndim in SHAPES:
        for axes in every_axis(ndim):
            for name, op in FOLDS.items():
                x = tensor("float32", ndim)
                made[f"{name}-{axes}-{ndim}"] = op(axes)(x, return_list=True)[0].owner
    for kind, pattern in PATTERNS.items():
        for axes in every_axis(2):
            single, double = (Sum(axes, dtype, "float64") for dtype in ("float32", "float64"))
            operands = tensor("float32", 2), tensor("float32", pattern)
            made[f"map-{kind}-{axes}"] = MapReduce(scaled(3), single)(*operands).owner
            both = MapReduce(scaled(3, 2), single, double)(*operands)
            made[f"map both-{kind}-{axes}"] = both[0].owner
    made["all"] = All((1,))(tensor("bool", 2)).owner
    made["any"] = Any((0,))(tensor("bool", 2)).owner
    made["product"] = Prod((0,))(tensor("int32", 2)).owner
    made["argmax"] = Argmax((1,))(tensor("float64", 2)).owner
    made["4"] = Sum((0, 2, 3))(tensor("float32", 4)).owner
    made["in single"] = Sum((1,), "float32", "float32")(tensor("float32", 2)).owner
    made["no axis"] = CAReduce(OPS["maximum"], ())(tensor("float32", 2)).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


def check(kernels, name, values, layout="", orders=(0, 1)):
    """Compare with numpy: exactly, but for sums of floats; for a MapReduce with its parts."""
    expected = kernels.expected(name, values)
    found = [kernels.run(name, values, order)[0] for order in orders]
    for one, other in zip(*found, strict=True) if len(found) == 2 else ():
        np.testing.assert_array_equal(one, other, err_msg=f"{name} {layout}")
    for f, e in zip(found[0], expected, strict=True):
        assert (f.shape, f.dtype) == (e.shape, e.dtype), (name, layout)
        if e.dtype.kind == "f" and name.startswith(("sum", "map", "4", "in")):
            size = max(1, max(v.size for v in values))
            wide = "float16" if e.dtype == np.float16 else "float32" if "in single" in name else ""
            eps = float(np.finfo(e.dtype).eps)
            tolerance = eps * abs(e.astype(float)) + size * np.finfo(wide or "f8").eps * 8
            with np.errstate(invalid="ignore"):
                close = abs(f.astype(float) - e.astype(float)) <= tolerance
            assert np.all(close | (np.isnan(f) & np.isnan(e)) | (f == e)), (name, layout, f, e)
        else:
            np.testing.assert_array_equal(f, e, err_msg=f"{name} {layout}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fold", FOLDS)
def test_lengths(kernels, fold, dtype):
    for n in [0, 1, 2, 3, 7, 31, 33, 127, 1031, 5000, 40_007]:
        if n or fold == "sum":
            check(kernels, f"{fold}-{dtype}", [numbers(dtype, (n,))], n)


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("ndim", SHAPES)
def test_axes_and_layouts(kernels, layouts, ndim, fold):
    for shape, axes in itertools.product(SHAPES[ndim], every_axis(ndim)):
        for layout, values in layouts([numbers("float32", shape)]):
            big = values[0].size > 5000 and layout not in ("contiguous", "by_columns")
            if not big:
                check(kernels, f"{fold}-{axes}-{ndim}", values, (shape, layout), (0,))


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize("reduced", ["map", "map both"])
def test_of_elementwise_work(kernels, layouts, reduced, kind):
    """One sum, and two that share the loop."""
    for axes, shape in itertools.product(every_axis(2), [(1, 1), (9, 8), (33, 70), (5, 2000)]):
        own = [1 if b else n for n, b in zip(shape, PATTERNS[kind], strict=True)]
        for layout, values in layouts([numbers("float32", shape), numbers("float32", own, 1)]):
            check(kernels, f"{reduced}-{kind}-{axes}", values, (shape, layout), (0,))


def test_others(kernels, layouts):
    for shape in [(5, 7), (40, 300), (0, 3), (3, 0)]:
        truths = np.random.default_rng(1).random(shape) > 0.1
        check(kernels, "all", [truths], shape)
        check(kernels, "any", [~truths & (np.arange(shape[1]) % 3 > 0)], shape)
    check(kernels, "product", [numbers("int32", (40, 5)) % 3 - 1])
    for layout, values in layouts([numbers("float32", (3, 5, 6, 7))]):
        check(kernels, "4", values, layout)
    check(kernels, "in single", [numbers("float32", (3, 9000))])
    check(kernels, "no axis", [numbers("float32", (3, 5))])


def test_not_a_number_stays(kernels):
    """In extrema, wherever it is; its position is that of the first."""
    for n, places in itertools.product([3, 100, 9000], [(0,), (2,), (-1,), (1, -1)]):
        x = numbers("float32", (n,))
        x[list(places)] = np.nan
        for name in ("max", "min", "where", "sum"):
            check(kernels, f"{name}-float32", [x], (n, places))
    x = numbers("float64", (40, 300))
    x[3, 7] = x[3, 200] = x[39, 299] = np.nan
    check(kernels, "argmax", [x])


def test_the_first_of_equals_is_found(kernels):
    for shape in [(9000,), (70,)]:
        x = np.zeros(shape, "float32")
        x[[5, 6, -1]] = 3
        check(kernels, "where-float32", [x])
    x = np.full((33, 1000), -np.inf)
    check(kernels, "argmax", [x])


def test_infinities(kernels):
    x = numbers("float32", (5000,))
    x[77] = np.inf
    for name in ("max", "min", "where", "sum"):
        check(kernels, f"{name}-float32", [x])
    x[78] = -np.inf
    for name in ("max", "min", "where", "sum"):
        check(kernels, f"{name}-float32", [x])


def test_nothing_to_reduce(kernels):
    check(kernels, "sum-(0,)-2", [np.zeros((0, 3), "f")])
    check(kernels, "sum-(1,)-2", [np.zeros((0, 3), "f")])
    check(kernels, "max-(1,)-2", [np.zeros((0, 3), "f")])
    with pytest.raises(ValueError, match="zero-size on axis 0"):
        kernels.run("max-(0,)-2", [np.zeros((0, 3), "f")])
    with pytest.raises(ValueError, match="zero-size"):
        kernels.run("where-(0,)-2", [np.zeros((0, 3), "f")])


def test_which_kernels_are_launched(kernels):
    def plan(name, shape, order="C"):
        return kernels.plan(name, [np.zeros(shape, "f", order)])

    assert plan("sum-(1,)-2", (4096, 128)) == ["rows_vectors"]
    assert plan("sum-(1,)-2", (4096, 128), "F") == ["columns"]
    assert plan("sum-(0,)-2", (64, 4096)) == ["columns"]
    assert plan("sum-(0,)-2", (9000, 40)) == ["columns", "columns"]
    assert plan("sum-(0, 1)-2", (900, 400)) == ["rows_vectors", "rows_strided"]
    assert plan("sum-(0, 1)-2", (900, 400), "F") == ["rows_vectors", "rows_strided"]
    assert plan("sum-(1,)-2", (2, 90_000)) == ["rows_vectors", "rows_strided"]
    assert plan("sum-(0, 2)-3", (8, 8, 8)) == ["rows_strided"]
    # positions count in the order of the axes, whatever lies where
    assert plan("where-(0, 1)-2", (30, 20), "F") == ["rows_strided"]
    assert plan("where-(0, 1)-2", (90, 40), "F") == ["rows_strided", "rows_strided"]


def test_the_cut_does_not_depend_on_the_device(kernels):
    """So neither do sums, to the last bit."""
    from opwise.gpu.kernels.kernel import DeviceLimits

    x = numbers("float32", (300_001,))
    for name, values in (("sum-float32", [x]), ("sum-(0,)-2", [x[:300_000].reshape(3000, 100)])):
        found = [
            kernels.run(name, values, device=DeviceLimits(processors=n))[0][0] for n in (1, 4, 132)
        ]
        assert len({f.tobytes() for f in found}) == 1
