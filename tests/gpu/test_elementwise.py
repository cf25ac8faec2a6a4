"""Elementwise kernels on the simulated device against ``perform``: layouts, sizes, broadcasting."""

import itertools

import numpy as np
import pytest

import opwise.tensor as T
from opwise.compile import deep_copy_op
from opwise.scalar import Composite
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import Instruction
from opwise.tensor import Elemwise, Join, Split, TensorType
from opwise.tensor.join import MakeVector

pytestmark = pytest.mark.c


def tensor(dtype, pattern):
    pattern = (False,) * pattern if isinstance(pattern, int) else pattern
    return TensorType(dtype, pattern)()


def several():
    """(x + y) * x and its sign, and x alone converted: three outputs of three dtypes."""
    steps = (
        Instruction(OPS["add"], (0, 1), "float32"),
        Instruction(OPS["mul"], (2, 0), "float32"),
        Instruction(OPS["lt"], (3, 1), "bool"),
        Instruction(cast_op("float64"), (0,), "float64"),
    )
    return Composite.from_program(("float32", "float32"), steps, (3, 4, 5))


def mixed():
    """An int8, a float64 and a bool: what is chosen where."""
    steps = (
        Instruction(OPS["mul"], (0, 1), "float64"),
        Instruction(OPS["switch"], (2, 3, 1), "float64"),
    )
    return Composite.from_program(("int8", "float64", "bool"), steps, (4,))


def many(count):
    steps = (Instruction(OPS["add"], tuple(range(count)), "float32"),)
    return Composite.from_program(("float32",) * count, steps, (count,))


PATTERNS = {
    "row": [(False, False), (True, False)],
    "column": [(False, True), (False, False)],
    "both": [(True, False), (False, True)],
    "number": [(False, False), (True, True)],
}


def nodes():
    made = {}
    for ndim in range(5):
        x, y = tensor("float32", ndim), tensor("float32", ndim)
        made[f"several-{ndim}"] = Elemwise(several())(x, y, return_list=True)[0].owner
    made["mixed"] = Elemwise(mixed())(
        tensor("int8", 2), tensor("float64", 2), tensor("bool", 2)
    ).owner
    made["many"] = Elemwise(many(30))(*(tensor("float32", 1) for _ in range(30))).owner
    for dtype in ("float16", "int8", "float64", "uint16"):
        made[f"add-{dtype}"] = (tensor(dtype, 2) + tensor(dtype, 2)).owner
    for name, patterns in PATTERNS.items():
        made[name] = Elemwise(several())(
            *(tensor("float32", p) for p in patterns), return_list=True
        )[0].owner
    made["outer"] = (
        tensor("float64", (False, True, False)) * tensor("float64", (True, False, True))
    ).owner
    made["second"] = T.second(tensor("float32", 2), tensor("float32", (True, True))).owner
    made["in place"] = Elemwise(OPS["sub"], {0: 1})(
        tensor("float32", 2), tensor("float32", 2)
    ).owner
    made["copy"] = deep_copy_op(tensor("int64", 3)).owner
    made["alloc"] = T.alloc(tensor("float32", 1), T.lscalar(), T.lscalar(), T.lscalar()).owner
    made["join"] = Join()(1, tensor("float32", 2), tensor("int8", 2), tensor("float32", 2)).owner
    made["split"] = Split(3)(tensor("float64", 2), 1, T.lvector(), return_list=True)[0].owner
    made["vector"] = MakeVector("float64")(*(T.dscalar() for _ in range(3))).owner
    made["inc"] = T.inc_subtensor(
        tensor("float32", 2)[1::2, T.lscalar() :], tensor("float32", 2)
    ).owner
    made["inc row"] = T.inc_subtensor(
        tensor("float32", 3)[T.lscalar()], tensor("float32", (True, False))
    ).owner
    made["set"] = T.set_subtensor(tensor("float64", 1)[::-1], tensor("float32", 1)).owner
    made["diagonal"] = T.diag(tensor("float32", 2), 1).owner
    made["square"] = T.diag(tensor("float32", 1), -2).owner
    for dtype in ("float16", "float32", "int8", "int64", "uint64", "float64"):
        made[f"arange-{dtype}"] = T.ARange(dtype)(T.dscalar(), T.dscalar(), T.dscalar()).owner
    for dtype in ("bool", "float16", "float32"):
        made[f"eye-{dtype}"] = T.eye(T.lscalar(), T.lscalar(), T.lscalar(), dtype).owner
        made[f"tri-{dtype}"] = T.tri(T.lscalar(), T.lscalar(), T.lscalar(), dtype).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


def numbers(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) > 0.5
    if dtype.startswith("float"):
        return np.asarray(random.uniform(-4, 4, shape), dtype)
    return random.integers(0, 9, shape).astype(dtype)


def check(kernels, name, values, layout="", orders=(0,)):
    expected = kernels.expected(name, values)
    for order in orders:
        found, wrong = kernels.run(name, values, order)
        assert not wrong
        for f, e in zip(found, expected, strict=True):
            assert f.shape == e.shape, (name, layout)
            np.testing.assert_array_equal(f, e, err_msg=f"{name} {layout}")


def operands(kernels, name, shape):
    found = []
    for k, var in enumerate(kernels.nodes[name].inputs):
        own = [1 if b else n for n, b in zip(shape, var.type.broadcastable, strict=True)]
        found.append(numbers(var.type.dtype, own, k))
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 255, 256, 1023, 1024, 2047, 2048, 2049, 30_001])
def test_lengths(kernels, n):
    for name in ("several-1", "many"):
        check(kernels, name, operands(kernels, name, (n,)), n, (0, 1))
    check(kernels, "add-float16", operands(kernels, "add-float16", (n, 3)), n)


@pytest.mark.parametrize("ndim", range(5))
def test_layouts(kernels, layouts, ndim):
    for shape in [(8, 6, 5, 4)[:ndim], (1, 7, 1, 3)[:ndim], (5, 0, 2, 2)[:ndim], (40, 64)[:ndim]]:
        if len(shape) != ndim:
            continue
        name = f"several-{ndim}"
        for layout, values in layouts(operands(kernels, name, shape)):
            check(kernels, name, values, (shape, layout))


@pytest.mark.parametrize("name", ["mixed", "add-float16", "add-int8", "add-float64", "add-uint16",
                                  "copy"])  # fmt: skip
def test_dtypes(kernels, layouts, name):
    ndim = kernels.nodes[name].outputs[0].type.ndim
    for shape in [(7, 5, 3)[:ndim], (33, 64, 2)[:ndim]]:
        for layout, values in layouts(operands(kernels, name, shape)):
            check(kernels, name, values, (shape, layout))


@pytest.mark.parametrize("name", [*PATTERNS, "second"])
def test_broadcasting(kernels, layouts, name):
    for shape in [(1, 1), (5, 8), (8, 5), (1, 64), (64, 1), (0, 4), (70, 640)]:
        for layout, values in layouts(operands(kernels, name, shape)):
            check(kernels, name, values, (shape, layout))


def test_broadcasting_of_dimensions_between_others(kernels):
    for shape in itertools.product((1, 2, 5), (1, 4), (1, 6, 8)):
        check(kernels, "outer", operands(kernels, "outer", shape), shape)


def test_vectors_are_used_where_they_can_be(kernels):
    assert kernels.plan("several-2", operands(kernels, "several-2", (6, 8))) == ["flat"]
    both = operands(kernels, "several-2", (6, 8))
    assert kernels.plan("several-2", [np.asfortranarray(x) for x in both]) == ["strided"]
    assert kernels.plan("row", operands(kernels, "row", (6, 8))) == ["rows"]
    assert kernels.plan("column", operands(kernels, "column", (6, 8))) == ["rows"]
    assert kernels.plan("row", operands(kernels, "row", (6, 7))) == ["strided"]
    assert kernels.plan("number", operands(kernels, "number", (6, 7))) == ["flat"]
    assert kernels.plan("several-0", operands(kernels, "several-0", ())) == ["flat"]
    assert kernels.plan("several-2", operands(kernels, "several-2", (0, 8))) == []


def test_in_place(kernels):
    """An output may be an input's memory."""
    x, y = operands(kernels, "in place", (37, 41))
    (expected,) = [x - y]
    made = kernels.made["in place"]
    from simulated import DEVICE

    from opwise.gpu.kernels.kernel import Layout

    for change in (np.array, np.asfortranarray):
        own = change(y)
        given = [Layout.of(x), Layout.of(own)]
        plan = made.plan(given, [Layout.of(own)], DEVICE)
        kernels.simulated.run(plan, [x, own], [own])
        np.testing.assert_array_equal(own, expected)


def test_alloc(kernels):
    for value, shape in [
        ((1,), (2, 3, 4)),
        ((4,), (2, 3, 4)),
        ((8,), (1, 1, 8)),
        ((3,), (0, 2, 3)),
    ]:
        values = [numbers("float32", value), *map(np.int64, shape)]
        check(kernels, "alloc", values, shape)
    with pytest.raises(ValueError, match="not broadcastable"):
        kernels.run("alloc", [numbers("float32", (3,)), *map(np.int64, (2, 2, 4))])


def test_join_and_split(kernels, layouts):
    parts = [numbers("float32", (5, 4)), numbers("int8", (5, 3), 1), numbers("float32", (5, 8), 2)]
    for layout, values in layouts(parts):
        check(kernels, "join", values, layout)
    with pytest.raises(ValueError, match="must match exactly"):
        kernels.run("join", [parts[0], parts[1], parts[2][:4]])
    for layout, (x,) in layouts([numbers("float64", (4, 9))]):
        check(kernels, "split", [x, np.array([2, 0, 7])], layout)
    with pytest.raises(ValueError, match="the parts have"):
        kernels.run("split", [numbers("float64", (4, 9)), np.array([2, 0, 6])])


def test_make_vector(kernels):
    check(kernels, "vector", [np.float64(x) for x in (1.5, -2.0, 3.25)])


def test_inc_subtensor(kernels, layouts):
    x, y = numbers("float32", (9, 8)), numbers("float32", (4, 6), 1)
    for layout, (a, b) in layouts([x, y]):
        check(kernels, "inc", [a, b, np.int64(2)], layout)
        check(kernels, "inc", [a, b, np.int64(-6)], layout)
    x, row = numbers("float32", (3, 4, 8)), numbers("float32", (1, 8))
    check(kernels, "inc row", [x, row, np.int64(-1)])
    check(kernels, "set", [numbers("float64", (9,)), numbers("float32", (9,), 1)])
    with pytest.raises(ValueError, match="not broadcastable"):
        kernels.run("inc", [x, y, np.int64(1)])
    with pytest.raises(IndexError):
        kernels.run("inc row", [np.zeros((3, 4, 8), "f"), np.zeros((1, 8), "f"), np.int64(3)])


def test_diagonals(kernels, layouts):
    for shape in [(4, 7), (7, 4), (1, 1), (5, 0), (1, 9)]:
        for layout, (x,) in layouts([numbers("float32", shape)]):
            check(kernels, "diagonal", [x], (shape, layout))
    for n in (0, 1, 6):
        check(kernels, "square", [numbers("float32", (n,))], n)


def test_ranges(kernels):
    for start, stop, step in [(0, 10, 1), (5, -5, -2), (2, 2, 1), (7, 3, 2), (0, 1000, 3)]:
        for dtype in ("float16", "float32", "int8", "int64", "uint64", "float64"):
            if (dtype == "uint64" and step < 0) or (dtype == "int8" and stop > 100):
                continue
            check(kernels, f"arange-{dtype}", [np.float64(v) for v in (start, stop, step)])
    for dtype in ("float32", "float64"):
        check(kernels, f"arange-{dtype}", [np.float64(v) for v in (0.1, 7.3, 0.37)])
    with pytest.raises(ZeroDivisionError):
        kernels.run("arange-int64", [np.float64(v) for v in (0, 1, 0)])


def test_matrices_with_a_diagonal(kernels):
    for dtype in ("bool", "float16", "float32"):
        for n, m, k in [(3, 5, 0), (5, 3, 1), (40, 40, -7), (0, 3, 0), (4, 4, 9)]:
            for name in ("eye", "tri"):
                check(kernels, f"{name}-{dtype}", list(map(np.int64, (n, m, k))), (n, m, k))


def test_shapes_that_differ_are_refused(kernels):
    with pytest.raises(ValueError, match="Dimension mismatch"):
        kernels.run("several-2", [np.zeros((2, 3), "f"), np.zeros((2, 4), "f")])
