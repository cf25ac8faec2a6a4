"""Rows by a vector of indices on the simulated device: taken, set, added to."""

import numpy as np
import pytest

from opwise.gpu.kernels.kernel import error_position
from opwise.tensor import AdvancedIncSubtensor1, AdvancedSubtensor1, TensorType

pytestmark = pytest.mark.c

DTYPES = ("bool", "int8", "float16", "float32", "int64", "float64", "complex128")


def tensor(dtype, ndim):
    return TensorType(dtype, (False,) * ndim)()


def nodes():
    made = {}
    for dtype in DTYPES:
        made[f"take-{dtype}"] = AdvancedSubtensor1()(tensor(dtype, 2), tensor("int64", 1)).owner
    for index in ("int8", "uint32", "int32"):
        made[f"take by {index}"] = AdvancedSubtensor1()(
            tensor("float32", 2), tensor(index, 1)
        ).owner
    for ndim in (1, 3):
        made[f"take-{ndim}"] = AdvancedSubtensor1()(
            tensor("float32", ndim), tensor("int64", 1)
        ).owner
    for dtype in ("int8", "float16", "float32", "int64", "float64"):
        for ndim in (1, 2, 3):
            x, y, i = tensor(dtype, ndim), tensor(dtype, ndim), tensor("int64", 1)
            made[f"add-{dtype}-{ndim}"] = AdvancedIncSubtensor1()(x, y, i).owner
            made[f"set-{dtype}-{ndim}"] = AdvancedIncSubtensor1(False, True)(x, y, i).owner
    made["add a row"] = AdvancedIncSubtensor1()(
        tensor("float32", 2), tensor("float32", 1), tensor("int32", 1)
    ).owner
    made["add single to double"] = AdvancedIncSubtensor1()(
        tensor("float64", 2), tensor("float32", 2), tensor("int64", 1)
    ).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


@pytest.fixture(scope="module")
def atomic(simulate):
    chosen = {k: v for k, v in nodes().items() if k.startswith("add") and "16" not in k
              and "int8" not in k}  # fmt: skip
    return simulate(chosen, deterministic=False)


def numbers(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) > 0.5
    if dtype.startswith("int"):
        return random.integers(-9, 9, shape).astype(dtype)
    return random.normal(size=shape).astype(dtype)


def check(kernels, name, values, layout="", equal=True):
    expected = kernels.expected(name, values)
    for order in (0, 1):
        found, wrong = kernels.run(name, values, order)
        assert not wrong
        for f, e in zip(found, expected, strict=True):
            assert f.shape == e.shape
            if equal:
                np.testing.assert_array_equal(f, e, err_msg=f"{name} {layout}")
            else:
                np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-5, err_msg=f"{name} {layout}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_take(kernels, layouts, dtype):
    index = np.array([3, 0, -1, 4, 4, -5, 2])
    for columns in (1, 3, 16, 40):
        for layout, values in layouts([numbers(dtype, (5, columns)), index]):
            check(kernels, f"take-{dtype}", values, (columns, layout))
    check(kernels, f"take-{dtype}", [numbers(dtype, (5, 0)), index])
    check(kernels, f"take-{dtype}", [numbers(dtype, (5, 4)), index[:0]])


def test_take_of_other_dimensions_and_indices(kernels, layouts):
    for layout, values in layouts([numbers("float32", (6, 4, 5)), np.array([5, 1, -6])]):
        check(kernels, "take-3", values, layout)
    check(kernels, "take-1", [numbers("float32", (600,)), np.arange(599, -1, -2)])
    for dtype in ("int8", "uint32", "int32"):
        check(kernels, f"take by {dtype}", [numbers("float32", (9, 8)), np.array([8, 0, 3], dtype)])


def test_units_of_16_bytes(kernels):
    index = np.array([1, 0])
    assert kernels.plan("take-float32", [np.zeros((5, 8), "f"), index]) == ["take"]
    launches = [
        kernels.made["take-float32"].plan(*_layouts(x, index), _device()).launches[0].kernel
        for x in (np.zeros((5, 8), "f"), np.zeros((5, 9), "f"))
    ]
    assert "ow_u64x2 *z" in launches[0].text and "ow_u32 *z" in launches[1].text


def _layouts(x, index):
    from opwise.gpu.kernels.kernel import Layout

    made = np.empty((len(index), *x.shape[1:]), x.dtype)
    return [Layout.of(x)._replace(alignment=16), Layout.of(index)], [
        Layout.of(made)._replace(alignment=16)
    ]


def _device():
    from simulated import DEVICE

    return DEVICE


@pytest.mark.parametrize("how", ["add", "set"])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "float64"])
def test_put(kernels, layouts, dtype, how):
    random = np.random.default_rng(4)
    for rows, count, columns in [(7, 5, 6), (3, 40, 8), (1, 9, 1), (50, 1, 3)]:
        index = random.integers(-rows, rows, count)
        x, y = numbers(dtype, (rows, columns)), numbers(dtype, (count, columns), 1)
        if dtype == "float16":
            y = (y * 4).round() / 4  # numpy rounds each sum: let there be nothing to round
            x = (x * 4).round() / 4
        for layout, values in layouts([x, y, index]):
            check(kernels, f"{how}-{dtype}-2", values, (rows, count, layout))
        check(kernels, f"{how}-{dtype}-1", [x[:, 0].copy(), y[:, 0].copy(), index])
        wide = [np.repeat(v[:, None], 4, 1) for v in (x, y)]
        check(kernels, f"{how}-{dtype}-3", [*wide, index])


@pytest.mark.parametrize("how", ["add", "set"])
def test_many_indices(kernels, how):
    """More than a block sorts: runs are joined, once, twice, with a rest."""
    for count in (2048, 2049, 5000, 13_001):
        index = np.random.default_rng(count).integers(-37, 37, count)
        values = [numbers("float32", (37, 2)), numbers("float32", (count, 2), 1), index]
        check(kernels, f"{how}-float32-2", values, count)


def test_the_order_of_additions_is_that_of_the_indices(kernels):
    """The bits are those of numpy, where another order would give others."""
    count = 3000
    index = np.zeros(count, int)
    y = np.random.default_rng(1).normal(size=(count, 1), scale=1e3).astype("f")
    check(kernels, "add-float32-2", [np.zeros((2, 1), "f"), y, index])
    backward = np.zeros((2, 1), "f")
    np.add.at(backward, index, y[::-1])
    assert backward[0] != kernels.run("add-float32-2", [np.zeros((2, 1), "f"), y, index])[0][0][0]


def test_operands_that_are_narrower(kernels):
    index = np.array([2, 0, 2, -1], "int32")
    check(kernels, "add a row", [numbers("float32", (4, 8)), numbers("float32", (8,), 1), index])
    single = numbers("float32", (4, 8), 1)
    check(kernels, "add single to double", [numbers("float64", (4, 8)), single, index.astype(int)])
    check(kernels, "add-float32-2", [numbers("float32", (4, 8)), single[:1], np.array([1, 1, 0])])
    with pytest.raises(ValueError, match="not broadcastable"):
        kernels.run("add-float32-2", [numbers("float32", (4, 8)), single[:2], np.array([1, 1, 0])])


def test_no_indices(kernels):
    x = numbers("float32", (4, 3))
    check(kernels, "add-float32-2", [x, x[:0], np.zeros(0, int)])
    check(kernels, "add-float32-2", [x[:, :0], x[:2, :0], np.array([1, 2])])


def test_atomic_additions(atomic):
    index = np.random.default_rng(1).integers(-9, 9, 400)
    for dtype in ("float32", "int64", "float64"):
        values = [numbers(dtype, (9, 5)), numbers(dtype, (400, 5), 1), index]
        check(atomic, f"add-{dtype}-2", values, equal=dtype == "int64")
        assert atomic.plan(f"add-{dtype}-2", values) == ["add_rows_atomic"]


@pytest.mark.parametrize("name", ["take-float32", "add-float32-2", "set-float32-2"])
def test_indices_out_of_range(kernels, atomic, name):
    """The first of them is reported, and nothing is read or written out of bounds."""
    x, index = numbers("float32", (5, 8)), np.zeros(3000, int)
    index[[40, 700, 2900]] = 5, -6, 2**40
    y = numbers("float32", (3000, 8), 1)
    values = [x, index] if name.startswith("take") else [x, y, index]
    all_kernels = [kernels, atomic] if name.startswith("add") else [kernels]
    for each in all_kernels:
        for order in (0, 1):
            _, wrong = each.run(name, values, order)
            assert error_position(wrong) == 40
    error = kernels.made[name].wrong(40, values)
    assert type(error) is IndexError
    assert "index 5 is out of bounds for axis 0 with size 5" in str(error)
    with pytest.raises(IndexError):
        kernels.expected(name, values)
    nothing = [x[:0], *values[1:]]
    _, wrong = kernels.run(name, nothing)
    assert error_position(wrong) == 0
