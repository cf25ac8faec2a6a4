"""Cumulated sums and products on the simulated device against ``perform``."""

import itertools

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode
from opwise.gpu.kernels import layouts as layouts_of
from opwise.gpu.kernels import scan
from opwise.gpu.kernels.kernel import DeviceLimits, Layout
from opwise.gpu.lowering import lower
from opwise.gpu.placement.placement import Placement
from opwise.scalar import dtypes
from opwise.tensor import TensorType
from opwise.tensor.extra_ops import CumOp, cumprod, cumsum

pytestmark = pytest.mark.c

#: all that have kernels
DTYPES = tuple(d for d in dtypes.ALL if not d.startswith("complex"))


def tensor(dtype, ndim):
    return TensorType(dtype, (False,) * ndim)()


def nodes():
    made = {}
    for dtype, mode in itertools.product(DTYPES, ("add", "mul")):
        made[f"{mode}-{dtype}"] = CumOp(None, mode)(tensor(dtype, 2)).owner
        made[f"{mode}-{dtype}-0"] = CumOp(0, mode)(tensor(dtype, 2)).owner
        made[f"{mode}-{dtype}-1"] = CumOp(1, mode)(tensor(dtype, 2)).owner
    for ndim in (0, 1, 3, 4):
        made[f"ndim-{ndim}"] = CumOp(None, "add")(tensor("int64", ndim)).owner
        for axis in range(ndim):
            made[f"ndim-{ndim}-{axis}"] = CumOp(axis - ndim, "add")(tensor("int64", ndim)).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


def numbers(dtype, shape, mode="add"):
    """Return numbers whose sums, or products, are exact whatever the order."""
    random = np.random.default_rng(int(np.prod(shape)))
    if dtype == "bool":
        return random.random(shape) > (0.9 if mode == "add" else 0.1)
    if not dtype.startswith("float"):
        return random.integers(0 if dtype.startswith("u") else -9, 9, shape).astype(dtype)
    if mode == "mul":
        return np.asarray(random.choice([-1, 1, 1, -1, 0.5, 2], shape, p=[0.245] * 4 + [0.01] * 2),
                          dtype)  # fmt: skip
    return np.asarray(random.integers(-1, 2, shape), dtype)


def check(kernels, name, values, layout="", orders=(0,)):
    expected = kernels.expected(name, values)
    for order in orders:
        found, wrong = kernels.run(name, values, order)
        assert not wrong
        for f, e in zip(found, expected, strict=True):
            assert f.shape == e.shape, (name, layout)
            np.testing.assert_array_equal(f, e, err_msg=f"{name} {layout}")
    return kernels.plan(name, values)


@pytest.mark.parametrize("mode", ["add", "mul"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(kernels, layouts, dtype, mode):
    for shape in [(5, 7), (70, 40), (3, 300)]:
        for layout, (x,) in layouts([numbers(dtype, shape, mode)]):
            for axis in ("", "-0", "-1"):
                check(kernels, f"{mode}-{dtype}{axis}", [x], (shape, layout))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 64, 255, 256, 257, 2047, 2048, 2049, 8192, 8193,
                               30_001])  # fmt: skip
def test_lengths(kernels, n):
    """Rows and columns of one segment and of several."""
    check(kernels, "ndim-1-0", [numbers("int64", (n,))], n, (0, 1))
    for dtype in ("float16", "int64"):
        used = check(kernels, f"add-{dtype}-1", [numbers(dtype, (3, n))], n)
        few = ["scan_rows"] if n <= 8192 else ["scan_row_totals", "scan_rows", "scan_rows"]
        assert used == (few if n else [])
        if n < 9000:
            used = check(kernels, f"add-{dtype}-0", [numbers(dtype, (n, 9))], n, (0, 1))
            few = ["scan_columns"] if n <= 64 else [
                "scan_column_totals", "scan_rows", "scan_columns"
            ]  # fmt: skip
            assert used == (few if n else [])


@pytest.mark.parametrize("ndim", [3, 4])
def test_axes(kernels, layouts, ndim):
    for shape in [(3, 5, 4, 9), (70, 2, 9, 3), (1, 6, 1, 40), (2, 0, 3, 4), (4, 130, 3, 2)]:
        for layout, (x,) in layouts([numbers("int64", shape[:ndim])]):
            check(kernels, f"ndim-{ndim}", [x], (shape, layout))
            for axis in range(ndim):
                check(kernels, f"ndim-{ndim}-{axis}", [x], (shape, axis, layout))


def test_a_number(kernels):
    check(kernels, "ndim-0", [np.int64(7)])


def test_lines_that_are_read_backward_are_not_copied(kernels):
    """The gradient of a cumulated sum is one from the end."""
    x = numbers("int64", (6, 50))
    for view, axis in [(x[:, ::-1], 1), (x[::-1], 0), (x.T[::-1], 0), (x[:, ::2], 1)]:
        assert check(kernels, f"add-int64-{axis}", [view])[-1].startswith("scan")
        assert len(kernels.plan(f"add-int64-{axis}", [view])) == 1


def test_lines_that_lie_across_are_copied(kernels):
    """By tiles: threads beside each other would read elements that are far apart."""
    x = numbers("int64", (40, 50, 60))
    for axis in ("", "-0", "-1"):
        used = check(kernels, f"add-int64{axis}", [x[0].T], axis)
        assert used[0] == "tiled" and used[-1].startswith("scan_")
        used = check(kernels, f"ndim-3{axis}", [x.T], axis)
        assert used[0] == "tiled" and used[-1].startswith("scan_")
    assert check(kernels, "ndim-1-0", [x[0, ::11, 0]]) == ["scan_rows"]


def test_roundings(kernels):
    """Close to sums in double; float16 is rounded once, not at every step."""
    random = np.random.default_rng(3)
    for dtype, limit in [("float16", 1e-3), ("float32", 1e-5), ("float64", 1e-13)]:
        for shape, axis in [((2, 9000), 1), ((600, 10), 0), ((40, 50), 1)]:
            x = random.random(shape).astype(dtype)
            (found,), _ = kernels.run(f"add-{dtype}-{axis}", [x])
            exact = np.cumsum(x.astype("float64"), axis)
            np.testing.assert_allclose(found.astype("float64"), exact, rtol=limit)


def test_bits_are_the_same_on_all_devices(kernels):
    """Neither the order of threads nor the number of processors is seen in a result."""
    x = np.random.default_rng(0).normal(size=(2, 20_000)).astype("f")
    for name, values in [("add-float32-1", [x]), ("add-float32-0", [x.T[:9000].repeat(5, 1)])]:
        (first,), _ = kernels.run(name, values)
        for order, processors in [(1, 4), (0, 1), (0, 132)]:
            (again,), _ = kernels.run(name, values, order, device=DeviceLimits(processors))
            np.testing.assert_array_equal(first.view("i4"), again.view("i4"))


def test_signs_of_zeros_and_what_is_no_number(kernels):
    zeros = np.full((2, 40), -0.0, "f")
    for axis in (0, 1):
        (found,), _ = kernels.run(f"add-float32-{axis}", [zeros])
        assert np.signbit(found).all()
    x = np.ones((2, 9000), "f")
    x[0, 5000], x[1, 100] = np.nan, np.inf
    (found,), _ = kernels.run("add-float32-1", [x])
    assert np.isfinite(found[0, :5000]).all() and np.isnan(found[0, 5000:]).all()
    assert np.isfinite(found[1, :100]).all() and np.isinf(found[1, 100:]).all()


def test_indices_of_64_bits(simulate, monkeypatch):
    names = ["add-float16-0", "add-float16-1", "mul-int8", "ndim-3-1"]
    kernels = simulate({name: nodes()[name] for name in names}, wide=True)
    monkeypatch.setattr(layouts_of, "LIMIT_32", 0)
    for name in names:
        x = kernels.nodes[name].inputs[0].type
        for shape in [(3, 9000, 2)[: x.ndim], (90, 12, 9)[: x.ndim]]:
            check(kernels, name, [numbers(x.dtype, shape)], shape)


def test_huge_arrays():
    for ndim, axis, shape in [(1, 0, (2**32,)), (2, 0, (2**20, 2**12)), (2, 1, (2**12, 2**20)),
                              (2, 1, (2**31, 2))]:  # fmt: skip
        made = lower(CumOp(axis, "add")(tensor("int8", ndim)).owner)
        layout = Layout.contiguous(shape, 1)
        plan = made.plan([layout], [layout], DeviceLimits())
        assert all(kernel.wide for kernel in (plan.launches[0].kernel, plan.launches[-1].kernel))
        assert sum(plan.scratch) < 2**22 and all(0 < one.grid < 2**31 for one in plan.launches)


def test_segments_cover_lines():
    for count, length, inner in itertools.product((1, 3, 1000, 10**6), (1, 100, 10**4, 10**7),
                                                  (1, 64)):  # fmt: skip
        lines = scan.Lines.contiguous(count, length, inner)
        segments, span = scan._cut(lines)
        assert (segments - 1) * span < length <= segments * span


def test_functions(cupy):
    x = T.fmatrix("x")
    outs = [cumsum(x, 1), cumprod(x.T, 0), cumsum(x), T.grad((cumsum(x, 0) ** 2).sum(), x)]
    value = np.random.default_rng(2).normal(size=(30, 20)).astype("f")
    there = opwise.function([x], outs, mode=Mode("cupy", "fast_run"))
    assert all(
        type(way).__name__ == "Implementation"
        for node, way in there.maker.fgraph.find_feature(Placement).lowered.items()
        if isinstance(node.op, CumOp)
    )
    here = opwise.function([x], outs, mode=Mode("py", None))
    for found, expected in zip(there(value), here(value), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
