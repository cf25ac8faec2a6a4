"""Operands whose dimensions lie in another order: what tiles compute, and what they touch."""

import itertools

import numpy as np
import pytest
from kernel_cases import sum_of
from simulated import DEVICE, Fenced, Simulated, watched

import opwise
import opwise.tensor as T
from opwise import Mode
from opwise.compile import deep_copy_op
from opwise.gpu.kernels import layouts, tiles
from opwise.gpu.kernels.kernel import DeviceLimits, Layout
from opwise.gpu.lowering import lower
from opwise.scalar import Composite
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import Instruction
from opwise.tensor import Elemwise, TensorType
from opwise.tensor.extra_ops import cpu_contiguous

pytestmark = pytest.mark.c

LENGTHS = (0, 1, 31, 32, 33, 65)
DTYPES = ("float16", "int8", "float32", "float64", "bool")


def tensor(dtype, pattern):
    pattern = (False,) * pattern if isinstance(pattern, int) else pattern
    return TensorType(dtype, pattern)()


def several():
    """(x - y) * w in double, whether x is less, and w as an int8: three outputs."""
    steps = (
        Instruction(OPS["sub"], (0, 1), "float32"),
        Instruction(OPS["mul"], (3, 2), "float64"),
        Instruction(OPS["lt"], (0, 1), "bool"),
        Instruction(cast_op("int8"), (2,), "int8"),
    )
    return Composite.from_program(("float32", "float32", "float64"), steps, (4, 5, 6))


def nodes():
    made = {}
    for dtype in DTYPES:
        made[f"copy-{dtype}"] = deep_copy_op(tensor(dtype, 2)).owner
    for dtype in ("float16", "int8", "float64"):
        made[f"add-{dtype}"] = (tensor(dtype, 2) + tensor(dtype, 2)).owner
    for ndim in (1, 2, 3, 4):
        made[f"sub-{ndim}"] = (tensor("float32", ndim) - tensor("float32", ndim)).owner
    for ndim in (2, 3):
        made[f"several-{ndim}"] = Elemwise(several())(
            tensor("float32", ndim), tensor("float32", ndim), tensor("float64", ndim),
            return_list=True,
        )[0].owner  # fmt: skip
    made["broadcast"] = Elemwise(sum_of(5))(
        tensor("float32", 3), tensor("float32", (False, True, False)),
        tensor("float32", (True, False, True)), tensor("float32", (True,) * 3),
        tensor("float32", (True, False, False)),
    ).owner  # fmt: skip
    made["contiguous"] = cpu_contiguous(tensor("float64", 3)).owner
    made["many"] = Elemwise(sum_of(12))(*(tensor("float32", 2) for _ in range(12))).owner
    for ndim in (2, 3):
        made[f"in place-{ndim}"] = Elemwise(OPS["sub"], {0: 0})(
            tensor("float32", ndim), tensor("float32", ndim)
        ).owner
    made["many in place"] = Elemwise(sum_of(12), {0: 3})(
        *(tensor("float32", 2) for _ in range(12))
    ).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


def numbers(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) > 0.5
    if dtype.startswith("float"):
        return np.asarray(random.integers(-40, 40, shape), dtype)
    return random.integers(-9, 9, shape).astype(dtype)


def ordered(x, order):
    """Return an array of the same elements whose dimensions lie in memory in this order."""
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def check(kernels, name, values, layout="", orders=(0,)):
    expected = kernels.expected(name, values)
    for order in orders:
        found, wrong = kernels.run(name, values, order)
        assert not wrong
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_array_equal(f, e, err_msg=f"{name} {layout}")
    return kernels.plan(name, values)


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_transposed_copies(kernels, dtype):
    for shape in itertools.product(LENGTHS, LENGTHS):
        used = check(kernels, f"copy-{dtype}", [numbers(dtype, shape).T], shape)
        assert (used == ["tiled"]) == (min(shape) >= 31), shape


@pytest.mark.parametrize("dtype", ["float16", "int8", "float64"])
def test_a_matrix_and_a_transposed_one(kernels, dtype):
    for shape in [(31, 33), (65, 32), (8, 200), (200, 8)]:
        x, y = numbers(dtype, shape), numbers(dtype, shape[::-1], 1).T
        for order in (0, 1):
            assert check(kernels, f"add-{dtype}", [x, y], shape, (order,)) == ["tiled"]
        check(kernels, f"add-{dtype}", [y, x], shape)


@pytest.mark.parametrize("ndim", [3, 4])
def test_every_order_of_dimensions(kernels, ndim):
    shape = {3: (33, 9, 40), 4: (34, 3, 9, 33)}[ndim]
    x, y = numbers("float32", shape), numbers("float32", shape, 1)
    used = []
    for order in itertools.permutations(range(ndim)):
        used += check(kernels, f"sub-{ndim}", [x, ordered(y, order)], order)
        used += check(kernels, f"sub-{ndim}", [ordered(x, order), y], order)
        if ndim == 3:
            check(kernels, f"sub-{ndim}", [ordered(x, order), ordered(y, order[::-1])], order)
    assert used.count("tiled") > len(used) // 2


def test_arrays_that_are_made_contiguous(kernels):
    x = numbers("float64", (3, 33, 40))
    assert check(kernels, "contiguous", [x]) == ["flat"]
    assert check(kernels, "contiguous", [x.transpose(0, 2, 1)]) == ["tiled"]
    assert check(kernels, "contiguous", [x.T]) == ["tiled"]


def test_edges_of_batches(kernels):
    for shape in [(1, 40, 33), (3, 32, 32), (2, 65, 31), (2, 0, 33), (33, 2, 65)]:
        x, y = numbers("float32", shape), numbers("float32", shape, 1)
        check(kernels, "sub-3", [x, ordered(y, (0, 2, 1))], shape, (0, 1))
        check(kernels, "sub-3", [ordered(x, (1, 2, 0)), ordered(y, (2, 0, 1))], shape)


def test_strides_of_every_kind(kernels):
    """Backward, and with gaps, and elements that lie far apart."""
    x, y = numbers("float32", (70, 66)), numbers("float32", (66, 70), 1)
    for change in (
        lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
        lambda a: np.repeat(a, 2, 1)[:, ::2],
        lambda a: np.repeat(a[::-1], 3, 0)[::-3],
        lambda a: np.concatenate([a, a], 1)[:, : a.shape[1]],
    ):
        for a, b in [(x, change(y).T), (change(x), y.T), (change(x), change(y).T)]:
            assert check(kernels, "sub-2", [a, b]) == ["tiled"]
    whole = np.empty((40, 200_000), "f")
    whole[:, ::5000] = numbers("float32", (40, 40), 2)
    check(kernels, "sub-2", [numbers("float32", (40, 40)), whole[:, ::5000].T])


def test_several_operands_and_outputs(kernels):
    for shape in [(40, 33), (33, 40), (65, 9)]:
        values = [numbers(d, shape, k) for k, d in enumerate(("float32", "float32", "float64"))]
        for turned in itertools.product((False, True), repeat=3):
            given = [np.asfortranarray(v) if t else v for v, t in zip(values, turned, strict=True)]
            used = check(kernels, "several-2", given, (shape, turned))
            assert any(turned) == ("tiled" in used)
    shape = (3, 40, 34)
    values = [numbers(d, shape, k) for k, d in enumerate(("float32", "float32", "float64"))]
    orders = [(0, 2, 1), (2, 1, 0), (1, 2, 0)]
    given = [ordered(v, o) for v, o in zip(values, orders, strict=True)]
    assert check(kernels, "several-3", given, orders=(0, 1)) == ["tiled"]


def test_operands_that_are_repeated(kernels):
    for shape in [(3, 40, 33), (40, 3, 33), (40, 33, 2), (33, 1, 40)]:
        values = []
        for k, v in enumerate(kernels.nodes["broadcast"].inputs):
            own = [1 if b else n for n, b in zip(shape, v.type.broadcastable, strict=True)]
            values.append(numbers("float32", own, k))
        for order in itertools.permutations(range(3)):
            check(kernels, "broadcast", [ordered(values[0], order), *values[1:]], (shape, order))
            given = [values[0], *(ordered(v, order) for v in values[1:])]
            check(kernels, "broadcast", given, (shape, order))


def test_more_operands_than_tiles(kernels):
    """Those for which there is no shared memory are loaded as they lie."""
    values = [numbers("float32", (40, 50), k) for k in range(12)]
    (expected,) = kernels.expected("many", values)
    # with 11 of them turned, and little room, it is better to turn the twelfth, and the result
    for count, room, tiled in [(11, 49152, 11), (6, 13 * 1024, 3), (11, 13 * 1024, 1)]:
        given = [np.asfortranarray(v) if k < count else v for k, v in enumerate(values)]
        device = DeviceLimits(4, room)
        (found,), _ = kernels.run("many", given, device=device)
        np.testing.assert_array_equal(found, expected)
        (launch,) = kernels.made["many"].plan(
            list(map(Layout.of, given)), [Layout.contiguous((40, 50), 4)], device
        ).launches  # fmt: skip
        assert launch.shared == tiled * 32 * 33 * 4 <= room
        assert launch.numbers[-12:].count(-1) == 12 - tiled


def in_memory(x, order):
    """Return (an array of these elements in this order, what checks the bytes around it)."""
    fenced = Fenced(tuple(x.shape[d] for d in order), x.dtype)
    fenced.array[...] = x.transpose(order)
    return fenced.array.transpose(np.argsort(order)), fenced


@pytest.mark.parametrize("order", [0, 1])
def test_in_place(kernels, order):
    """An output is an operand's memory, turned or not: each element is read before it is lost."""
    for ndim, shape in [(2, (70, 65)), (2, (33, 129)), (3, (3, 40, 50)), (3, (40, 3, 50))]:
        x, y = numbers("float32", shape), numbers("float32", shape, 1)
        for of_x, of_y in itertools.product(itertools.permutations(range(ndim)), repeat=2):
            own, fenced = in_memory(x, of_x)
            other = ordered(y, of_y)
            made = kernels.made[f"in place-{ndim}"]
            given = [Layout.of(own), Layout.of(other)]
            plan = made.plan(given, given[:1], DEVICE)
            assert all(launch.shared for launch in plan.launches if "tiled" in launch.kernel.name)
            kernels.simulated.run(plan, [own, other], [own], order)
            np.testing.assert_array_equal(own, x - y, err_msg=f"{of_x} {of_y}")
            fenced.check()


def test_many_in_place(kernels):
    """Operands that are loaded late are loaded by who overwrites them."""
    values = [numbers("float32", (40, 50), k) for k in range(12)]
    for turned in (range(3), range(4), range(4, 12), range(12)):
        given = [np.asfortranarray(v) if k in turned else v for k, v in enumerate(values)]
        own, fenced = in_memory(values[3], (1, 0) if 3 in turned else (0, 1))
        given[3] = own
        found = list(map(Layout.of, given))
        plan = kernels.made["many in place"].plan(found, found[3:4], DEVICE)
        kernels.simulated.run(plan, given, [own])
        np.testing.assert_array_equal(own, sum(values))
        fenced.check()


def test_indices_of_64_bits(simulate, monkeypatch):
    names = ["sub-2", "sub-3", "several-3", "copy-int8", "many"]
    kernels = simulate({name: nodes()[name] for name in names}, wide=True)
    monkeypatch.setattr(layouts, "LIMIT_32", 0)
    for name in names:
        node = kernels.nodes[name]
        shape = (3, 40, 65)[-node.inputs[0].type.ndim :]
        values = [numbers(v.type.dtype, shape, k) for k, v in enumerate(node.inputs)]
        order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        values[0] = ordered(values[0], order)
        assert check(kernels, name, values) == ["tiled"]
        (launch,) = kernels.made[name].plan(
            list(map(Layout.of, values)),
            [Layout.contiguous(shape, v.type.numpy_dtype.itemsize) for v in node.outputs], DEVICE,
        ).launches  # fmt: skip
        assert launch.kernel.wide and ("ow_i64", "n") in launch.kernel.parameters


def test_functions(cupy):
    """A DimShuffle costs nothing, and what reads it goes by tiles."""
    x, c = T.fmatrix("x"), T.ftensor3("c")
    outs = [x + x.T, cpu_contiguous(x.T), T.exp(c.dimshuffle(2, 0, 1)) * 2]
    values = numbers("float32", (40, 40)), numbers("float32", (3, 35, 34), 1) / 8
    there = opwise.function([x, c], outs, mode=Mode("cupy", "fast_run"))
    here = opwise.function([x, c], outs, mode=Mode("py", None))
    for _ in range(2):
        for found, expected in zip(there(*values), here(*values), strict=True):
            assert found.flags.c_contiguous
            np.testing.assert_allclose(found, expected, rtol=1e-6)


# --- plans --------------------------------------------------------------------------------------


def chosen(shape, orders, itemsize=4):
    """Return the Tiling of arrays of one shape; orders: of the dimensions of each in memory."""
    steps = [
        [s // itemsize for s in ordered(np.empty(shape, f"V{itemsize}"), o).strides] for o in orders
    ]
    walk = layouts.walk(shape, steps)
    return tiles.tiling(walk, [itemsize] * len(orders), len(orders) - 1, 49152)


def test_when_tiles_are_used():
    assert chosen((64, 64), [(1, 0), (0, 1)]).turned == (True,)
    assert chosen((64, 64), [(0, 1), (1, 0), (0, 1)]).turned == (False, True)
    assert chosen((64, 64), [(0, 1), (0, 1)]) is None
    # some lengths are so short that neighbours share sectors anyway, or threads have nothing to do
    assert chosen((4, 5000), [(1, 0), (0, 1)]) is None
    assert chosen((5000, 3), [(1, 0), (0, 1)]) is None
    assert chosen((5000, 7), [(1, 0), (0, 1)]) is None
    assert chosen((8, 5000), [(1, 0), (0, 1)]) is not None
    assert chosen((1, 5000), [(1, 0), (0, 1)]) is None
    assert chosen((0, 50), [(1, 0), (0, 1)]) is None


def test_dimensions_that_are_neighbours_in_both_make_one():
    """Channels that are put last: pixels are one dimension, wherever it lies."""
    tiling = chosen((8, 14, 14, 64), [(0, 3, 1, 2), (0, 1, 2, 3)])
    assert tiling.walk.shape == (8, 196, 64) and tiling.counts == (8, 7, 2)
    tiling = chosen((8, 64, 14, 14), [(0, 2, 3, 1), (0, 1, 2, 3)])
    assert tiling.walk.shape == (8, 64, 196) and tiling.counts == (8, 2, 7)


def test_the_dimension_with_most_to_gain():
    """Two operands want one dimension, and one another."""
    orders = [(0, 2, 1), (2, 1, 0), (2, 1, 0), (0, 1, 2)]
    tiling = chosen((40, 50, 60), orders)
    assert tiling.walk.shape == (50, 40, 60) and tiling.turned == (False, True, True)


def test_huge_arrays_get_wide_kernels():
    node = (tensor("float32", 2) - tensor("float32", 2)).owner
    made = lower(node)
    for shape, wide in [((2**14, 2**15), False), ((2**16, 2**16), True), ((2**29, 9), True)]:
        plain = Layout.contiguous(shape, 4)
        turned = Layout(shape, (4, 4 * shape[0]), 4)
        (launch,) = made.plan([plain, turned], [plain], DeviceLimits()).launches
        assert "tiled" in launch.kernel.name and launch.kernel.wide == wide
        assert launch.grid == 132 * 32


# --- what is touched ----------------------------------------------------------------------------


def touched(node, values, kernel):
    """Return (sectors, accesses) of the launch for these values, as warps touch them."""
    made = lower(node)
    given = list(map(Layout.of, values))
    (shape,) = made.shapes(given)
    out = aligned(np.empty(shape, node.outputs[0].type.numpy_dtype))
    monitored = DEVICE._replace(processors=4096)  # a block for each tile
    if kernel == "strided":
        monitored = monitored._replace(shared=0)
    (launch,) = made.plan(given, [Layout.of(out)], monitored).launches
    assert f"ow_{kernel}_" in launch.kernel.name
    seen = launch._replace(kernel=watched(launch.kernel))
    simulated = Simulated([seen.kernel])
    simulated.touched()
    plan = made.plan(given, [Layout.of(out)], monitored)._replace(launches=(seen,))
    simulated.run(plan, values, [out])
    return simulated.touched(), out


def aligned(x):
    """Return the array at an address where a sector begins, in the same order."""
    room = np.empty(x.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = np.ndarray(x.shape, x.dtype, room, start, x.strides)
    copy[...] = x
    return copy


@pytest.mark.parametrize(("dtype", "plainly"), [
    ("int8", 4), ("float16", 5), ("float32", 3), ("float64", 2),
])  # fmt: skip
def test_sectors(dtype, plainly):
    """A tile touches each sector once; otherwise warps touch ``plainly`` times as many."""
    x, y = numbers(dtype, (128, 192)), aligned(numbers(dtype, (192, 128), 1)).T
    x, node = aligned(x), (tensor(dtype, 2) + tensor(dtype, 2)).owner
    least = 3 * x.nbytes // 32
    (sectors, accesses), out = touched(node, [x, y], "tiled")
    np.testing.assert_array_equal(out, x + y)
    assert sectors == least and accesses == 3 * x.size // 32
    (sectors, accesses), out = touched(node, [x, y], "strided")
    np.testing.assert_array_equal(out, x + y)
    assert sectors >= plainly * least and accesses == 3 * x.size // 32


def test_sectors_of_batches_and_odd_lengths():
    """Where lines do not begin with a sector a warp touches one more of each."""
    x = aligned(numbers("float32", (12, 90, 77)))
    node = deep_copy_op(tensor("float32", 3)).owner
    least = 2 * x.nbytes // 32
    for order in [(0, 2, 1), (2, 1, 0), (1, 2, 0)]:
        turned = x.transpose(order)
        (sectors, _), out = touched(node, [turned], "tiled")
        np.testing.assert_array_equal(out, turned)
        plain, _ = touched(node, [turned], "strided")
        assert sectors < 1.6 * least and plain[0] > 3.5 * least


def test_what_is_counted_is_what_is_touched():
    """The plan's arithmetic agrees with the emulated device where lines begin with a sector."""
    node = (tensor("float32", 2) - tensor("float32", 2)).owner
    x, y = aligned(numbers("float32", (64, 96))), aligned(numbers("float32", (96, 64))).T
    out = np.empty((64, 96), "f")
    steps = [[s // 4 for s in a.strides] for a in (x, y, out)]
    walk = layouts.walk((64, 96), steps)
    counts = tiles._Counts(walk, [4] * 3)
    (plain, _), _ = touched(node, [x, y], "strided")
    assert counts.plain() == plain
    rows, columns = (next(d for d in (0, 1) if walk.shape[d] == n) for n in (64, 96))
    (tiled, _), _ = touched(node, [x, y], "tiled")
    assert counts.along(columns, 0) + counts.along(rows, 1) + counts.along(columns, 2) == tiled
