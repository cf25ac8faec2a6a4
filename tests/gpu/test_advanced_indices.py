"""Elements by several arrays of integers on the simulated device: picked, set, added to."""

import numpy as np
import pytest
from simulated import DEVICE, known

from opwise.gpu.kernels.kernel import Layout, error_position
from opwise.gpu.lowering import lower
from opwise.tensor import (
    AdvancedBooleanIncSubtensor,
    AdvancedBooleanSubtensor,
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    TensorType,
)

pytestmark = pytest.mark.c

DTYPES = ("bool", "int8", "float16", "float32", "int64", "float64", "complex128")
INDICES = ("int8", "uint8", "int32", "uint64")
#: what stands between the brackets: a number for an array of so many dimensions of integers, None,
#: or a slice; and how many dimensions x has
ITEMS = {
    "two vectors": ((1, 1), 2),
    "vector and number": ((1, 0), 2),
    "numbers": ((0, 0), 3),
    "vectors and number": ((1, 1, 0), 3),
    "matrix": ((2,), 3),
    "matrix and vector": ((2, 1), 3),
    "column and row": ((2, 2), 2),
    "behind a slice": ((slice(None), 1, 1), 4),
    "between slices": ((slice(1, None), 1, 1, slice(None, None, -2)), 4),
    "apart": ((1, slice(None), 1), 3),
    "apart, by a number": ((0, slice(2), 1), 4),
    "new axes": ((None, 1, 1, None), 3),
    "apart by a new axis": ((slice(None, None, -1), 1, None, 2), 3),
    "cube": ((3, 1, 1), 3),
    "slices alone": ((slice(1, 3), None, slice(None, None, -1)), 2),
}


def tensor(dtype, ndim):
    return TensorType(dtype, (False,) * ndim)()


def variables(items, dtype="int64"):
    return [tensor(dtype, item) if type(item) is int else item for item in items]


def picked(dtype, name, index="int64"):
    items, ndim = ITEMS[name]
    return AdvancedSubtensor()(tensor(dtype, ndim), *variables(items, index)).owner


def changed(dtype, name, adds, y=None, index="int64"):
    items, ndim = ITEMS[name]
    y = tensor(dtype, picked(dtype, name).outputs[0].type.ndim) if y is None else y
    op = AdvancedIncSubtensor(set_instead_of_inc=not adds)
    return op(tensor(dtype, ndim), y, *variables(items, index)).owner


def nodes():
    made = {}
    for name in ITEMS:
        made[f"pick {name}"] = picked("float32", name)
        made[f"add {name}"] = changed("float32", name, True)
        made[f"set {name}"] = changed("float32", name, False)
    for dtype in DTYPES:
        made[f"pick-{dtype}"] = picked(dtype, "two vectors")
        if dtype != "complex128":
            made[f"add-{dtype}"] = changed(dtype, "two vectors", True)
            made[f"set-{dtype}"] = changed(dtype, "two vectors", False)
    for dtype in INDICES:
        made[f"pick by {dtype}"] = picked("float32", "matrix and vector", dtype)
        made[f"add by {dtype}"] = changed("float32", "matrix and vector", True, None, dtype)
    made["add a number"] = changed("float64", "apart", True, tensor("float32", 0))
    made["set a row"] = changed("float64", "apart", False, tensor("int8", 1))
    made["set what is larger"] = changed("float32", "two vectors", False, tensor("float32", 3))
    made["add what is larger"] = changed("float32", "two vectors", True, tensor("float32", 3))
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes(), wide=True)


LENGTHS = (3, 4, 5, 8)
PLACES = (4, 2, 6)


def numbers(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) > 0.5
    if dtype.startswith("int"):
        return random.integers(-9, 9, shape).astype(dtype)
    # sums of halves must be exact: numpy rounds each
    return (random.normal(size=shape) * 4).round().astype(dtype) / 4


def indices(items, lengths, dtype="int64", places=PLACES, seed=2, column=False):
    """Return the arrays among items for an array of these lengths, and the items with them."""
    random, given, whole, axis = np.random.default_rng(seed), [], [], 0
    for item in items:
        if type(item) is int:
            n = lengths[axis]
            shape = places[len(places) - item :]
            if column and item == 2:
                shape = (shape[0], 1) if not given else (1, shape[1])
            low = 0 if dtype.startswith("u") else -n
            given.append(random.integers(low, n, shape).astype(dtype))
            whole.append(given[-1])
        else:
            whole.append(item)
        axis += item is not None
    return given, tuple(whole)


def case(name, dtype="float32", index="int64", lengths=LENGTHS, **options):
    """Return (x, arrays of integers, x[items])."""
    items, ndim = ITEMS[name]
    x = numbers(dtype, lengths[:ndim])
    options.setdefault("column", name == "column and row")
    given, whole = indices(items, x.shape, index, **options)
    return x, given, x[whole]


def unfit(kernels, error, name, values):
    """Shapes are refused with the error and the text of ``perform``."""
    with pytest.raises(error) as expected:
        kernels.expected(name, values)
    with pytest.raises(error) as found:
        kernels.run(name, values)
    assert str(found.value) == str(expected.value)


def check(kernels, name, values, layout=""):
    # the order of indices is that of C, in whatever order numpy looks at them
    expected = kernels.expected(name, [np.array(v, order="C") for v in values])
    for order in (0, 1):
        found, wrong = kernels.run(name, values, order)
        assert not wrong
        assert found[0].shape == expected[0].shape
        np.testing.assert_array_equal(found[0], expected[0], err_msg=f"{name} {layout}")
        if found[0].dtype == bool:
            assert found[0].view(np.uint8).max(initial=0) <= 1


@pytest.mark.parametrize("name", ITEMS)
def test_pick(kernels, layouts, name):
    for lengths in (LENGTHS, (7, 6, 5, 1), (2, 3, 16, 16)):
        x, given, _ = case(name, lengths=lengths)
        for layout, values in layouts([x, *given]):
            check(kernels, f"pick {name}", values, layout)


@pytest.mark.parametrize("how", ["add", "set"])
@pytest.mark.parametrize("name", ITEMS)
def test_put(kernels, layouts, name, how):
    for places in (PLACES, (3, 1, 40)):
        x, given, part = case(name, places=places)
        y = numbers("float32", part.shape, 1)
        for layout, values in layouts([x, y, *given]):
            check(kernels, f"{how} {name}", values, layout)
        for d in range(y.ndim):  # of length 1, and repeated
            check(kernels, f"{how} {name}", [x, y[(slice(None),) * d + (slice(1),)], *given], d)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(kernels, layouts, dtype):
    x, given, part = case("two vectors", dtype, places=(50,))
    y = numbers(dtype, part.shape, 1)
    for layout, values in layouts([x, y, *given]):
        check(kernels, f"pick-{dtype}", [values[0], *values[2:]], layout)
        if dtype != "complex128":
            check(kernels, f"add-{dtype}", values, layout)
            check(kernels, f"set-{dtype}", values, layout)


@pytest.mark.parametrize("dtype", INDICES)
def test_dtypes_of_indices(kernels, dtype):
    x, given, part = case("matrix and vector", index=dtype)
    check(kernels, f"pick by {dtype}", [x, *given])
    check(kernels, f"add by {dtype}", [x, numbers("float32", part.shape, 1), *given])


def test_units_of_16_bytes(kernels):
    """Rows of 16 bytes are moved in such; others by their elements."""
    for lengths, unit in [((3, 4, 8), "ow_u64x2 *z"), ((3, 4, 7), "ow_u32 *z")]:
        x, given, _ = case("matrix and vector", lengths=lengths)
        check(kernels, "pick matrix and vector", [x, *given])
        made, z = kernels.made["pick matrix and vector"], np.empty((2, 6, lengths[2]), "f")
        layouts = [_aligned(v) for v in (x, *given)]
        (launch,) = made.plan(layouts, [_aligned(z)], DEVICE).launches
        assert unit in launch.kernel.text


def _aligned(x):
    return Layout.of(x)._replace(alignment=16)


def test_operands_that_are_narrower(kernels):
    x, given, part = case("apart", "float64")
    check(kernels, "add a number", [x, np.float32(0.5), *given])
    check(kernels, "set a row", [x, np.arange(part.shape[-1], dtype="int8"), *given])
    # numpy sets from what has more dimensions, if they are 1 long, and does not add it
    x, given, part = case("two vectors")
    check(kernels, "set what is larger", [x, part[None, None] * 2, *given])
    with pytest.raises(ValueError, match="not broadcastable"):
        kernels.run("add what is larger", [x, part[None, None], *given])


def test_many_indices(kernels):
    """More than a block sorts."""
    for count in (2048, 2049, 13_001):
        x, given, part = case("two vectors", places=(count,))
        y = numbers("float32", part.shape, 1)
        for how in ("add", "set"):
            check(kernels, f"{how} two vectors", [x, y, *given], count)


def test_the_order_of_additions_is_that_of_the_indices(kernels):
    x, y = np.zeros((2, 3), "f"), np.random.default_rng(1).normal(size=3000, scale=1e3).astype("f")
    at = [np.zeros(3000, int), np.full(3000, -1)]
    check(kernels, "add two vectors", [x, y, *at])
    backward = np.zeros((2, 3), "f")
    np.add.at(backward, tuple(at), y[::-1])
    assert backward[0, 2] != kernels.run("add two vectors", [x, y, *at])[0][0][0, 2]


def test_what_is_overwritten_may_have_any_strides(kernels):
    """An update in place goes on in the memory of its input."""
    x, given, part = case("between slices")
    y = numbers("float32", part.shape, 1)
    for name in ("add", "set"):
        made = kernels.made[f"{name} between slices"]
        (expected,) = kernels.expected(f"{name} between slices", [x, y, *given])
        for strided in (np.asfortranarray(x), x[::-1, :, ::-1].copy()[::-1, :, ::-1],
                        np.repeat(x, 2, axis=1)[:, ::2].copy("K")):  # fmt: skip
            inputs = kernels.given(f"{name} between slices", [strided, y, *given])
            given_as = known(made, inputs)
            plan = made.plan(given_as, [Layout.of(strided)], DEVICE)
            assert not kernels.simulated.run(plan, inputs, [strided])
            np.testing.assert_array_equal(strided, expected)


def test_rows_of_large_arrays_are_numbered_in_32_bits(kernels):
    """In steps that all rows have in common, a key is made of the number of a row."""
    made = kernels.made["add matrix and vector"]
    lengths, places = (2**20, 2**10, 64), ((4, 6), (6,))
    x, y = (Layout.contiguous(shape, 4) for shape in (lengths, (4, 6, 64)))
    index = [Layout.contiguous(shape, 8) for shape in places]
    plan = made.plan([x, y, *index], [x], DEVICE)
    assert plan.launches[0].numbers[:3] == (24, 0, 2**30)
    wide = Layout.contiguous((2**20, 2**12, 1), 4)
    with pytest.raises(ValueError, match="24 indices of 4294967296 rows are too many"):
        made.plan([wide, y._replace(shape=(4, 6, 1)), *index], [wide], DEVICE)


def test_empty_results(kernels):
    x, given, _ = case("two vectors", places=(0,))
    check(kernels, "pick two vectors", [x, *given])
    check(kernels, "add two vectors", [x, np.zeros(0, "f"), *given])
    x, given, part = case("behind a slice", lengths=(0, 4, 5, 8))
    check(kernels, "pick behind a slice", [x, *given])
    check(kernels, "set behind a slice", [x, part, *given])
    # numpy does not look at indices that no place is for
    x, _, part = case("vectors and number", places=(0,))
    check(kernels, "pick vectors and number", [x, np.zeros(0, int), [9], 1])
    check(kernels, "add vectors and number", [x, part, np.zeros(0, int), [9], 1])
    # indices of an axis without elements, where no place is
    x, given, _ = case("two vectors", places=(0,), lengths=(3, 4))
    check(kernels, "pick two vectors", [x[:0], *given])


def failing(kernels, name, values):
    """Return the error of ``perform``, which that of the device must be equal to."""
    with pytest.raises(IndexError) as expected:
        kernels.expected(name, values)
    for order in (0, 1):
        _, wrong = kernels.run(name, values, order)
        assert wrong
    found = kernels.made[name].wrong(error_position(wrong), kernels.given(name, values))
    assert (type(found), str(found)) == (type(expected.value), str(expected.value))
    return str(found)


@pytest.mark.parametrize("how", ["pick", "add", "set"])
def test_indices_out_of_range(kernels, how):
    """The first array with such an index is reported, as by numpy; integers come before arrays."""
    x, given, part = case("matrix and vector")
    y = [] if how == "pick" else [part * 2]

    def error(*arrays, x=x, name="matrix and vector", y=y):
        return failing(kernels, f"{how} {name}", [x, *y, *arrays])

    first, second = given[0].copy(), given[1].copy()
    second[[3, 4]] = 4, -9
    assert error(first, second) == "index 4 is out of bounds for axis 1 with size 4"
    first[1, [2, 5]] = -4, 2**40
    assert error(first, second) == "index -4 is out of bounds for axis 0 with size 3"
    first[1, 2] = 0
    second[:] = 0
    assert error(first, second) == "index 1099511627776 is out of bounds for axis 0 with size 3"

    x, given, part = case("vector and number")
    y = y and [part]
    options = {"name": "vector and number", "x": x, "y": y}
    assert "index 9 is out of bounds for axis 1 with size 4" in error([0] * 6, 9, **options)
    assert "index 9 is out of bounds for axis 1" in error([7] * 6, 9, **options)
    assert "index 7 is out of bounds for axis 0" in error([0, 7] * 3, 2, **options)
    if y:
        options["y"] = [part[:0]]
    assert "index -5 is out of bounds for axis 1" in error(np.zeros(0, int), -5, **options)
    assert "index 0 is out of bounds for axis 0 with size 0" in error(
        [0] * 6, 1, name="vector and number", x=x[:0], y=y
    )


@pytest.mark.parametrize("how", ["pick", "add", "set"])
def test_indices_out_of_range_where_nothing_is_picked(kernels, how):
    x, given, part = case("behind a slice", lengths=(0, 4, 5, 8))
    y = [] if how == "pick" else [part]
    given[1][3] = 5
    error = failing(kernels, f"{how} behind a slice", [x, *y, *given])
    assert error == "index 5 is out of bounds for axis 2 with size 5"


def test_indices_that_lead_into_what_comes_before(kernels):
    """A row that is too far, by one index, may be another's by the next: both are looked at."""
    x = np.arange(12, dtype="f").reshape(3, 4)
    for i, j in [([0], [4]), ([1], [-5]), ([3], [-4]), ([-4], [3])]:
        failing(kernels, "pick two vectors", [x, i, j])
        failing(kernels, "add two vectors", [x, [1], i, j])
        failing(kernels, "set two vectors", [x, [1], i, j])


@pytest.mark.parametrize("name", ["pick", "add", "set"])
def test_shapes_that_do_not_fit(kernels, name):
    x, given, part = case("two vectors")
    y = [] if name == "pick" else [part]
    unfit(kernels, IndexError, f"{name} two vectors", [x, *y, given[0], given[1][:5]])
    if y:
        unfit(kernels, ValueError, f"{name} two vectors", [x, part[:4], *given])


def test_huge_arrays_have_indices_of_64_bits(kernels):
    """The same results come of them."""
    x, given, part = case("between slices")
    y = numbers("float32", part.shape, 1)
    for name, values in [("pick", [x, *given]), ("add", [x, y, *given]), ("set", [x, y, *given])]:
        made = kernels.made[f"{name} between slices"]
        (expected,) = kernels.expected(f"{name} between slices", values)
        inputs = kernels.given(f"{name} between slices", values)
        out = np.empty(part.shape, "f") if name == "pick" else x.copy()
        given_as = known(made, inputs)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("opwise.gpu.kernels.layouts.LIMIT_32", 2)
            plan = made.plan(given_as, [Layout.of(out)], DEVICE)
        assert any(launch.kernel.wide for launch in plan.launches)
        assert not kernels.simulated.run(plan, inputs, [out])
        np.testing.assert_array_equal(out, expected)


# --- masks ----------------------------------------------------------------------------------------

#: dtypes and shapes of x and y, and dimensions of the mask
MASKED = {
    "number": ("float32", (3, 4), "float32", (), 2),
    "row": ("float32", (3, 4, 8), "float32", (4, 8), 1),
    "narrower": ("float64", (5, 3), "int8", (), 1),
    "half": ("float16", (7, 4), "float16", (4,), 1),
    "bool": ("bool", (9,), "bool", (), 1),
    "whole": ("int64", (3, 4), "int64", (), 0),
    "single": ("float32", (3, 8), "float32", (1, 8), 1),
    "nothing": ("float32", (0, 8), "float32", (8,), 1),
}


@pytest.fixture(scope="module")
def masked(simulate):
    made = {}
    for name, (x, shape, y, y_shape, ndim) in MASKED.items():
        for how in ("add", "set"):
            op = AdvancedBooleanIncSubtensor(set_instead_of_inc=how == "set")
            y_var = TensorType(y, tuple(n == 1 for n in y_shape))()
            node = op(tensor(x, len(shape)), y_var, tensor("bool", ndim)).owner
            made[f"{how} {name}"] = node
    return simulate(made)


@pytest.mark.parametrize("how", ["add", "set"])
@pytest.mark.parametrize("name", MASKED)
def test_where_a_mask_is_true(masked, layouts, name, how):
    x, shape, y, y_shape, ndim = MASKED[name]
    mask = np.ones(()) > 0 if ndim == 0 else numbers("bool", shape[:ndim], 2)
    for layout, values in layouts([numbers(x, shape), numbers(y, y_shape, 1), mask]):
        check(masked, f"{how} {name}", values, layout)
    check(masked, f"{how} {name}", [numbers(x, shape), numbers(y, y_shape, 1), ~mask])


@pytest.mark.parametrize("how", ["add", "set"])
def test_masks_that_do_not_fit(masked, how):
    x, mask = np.zeros((3, 4), "f"), np.ones((3, 3), bool)
    for bad in (mask, mask[:2, :1]):
        unfit(masked, IndexError, f"{how} number", [x, np.float32(1), bad])
    with pytest.raises(ValueError, match="broadcast"):
        masked.run(f"{how} row", [np.zeros((2, 3, 4), "f"), np.zeros((3, 3), "f"), mask[0, :2]])


# --- reasons --------------------------------------------------------------------------------------


def test_masks_that_need_a_synchronisation():
    x, mask = tensor("float32", 2), tensor("bool", 1)
    op = AdvancedBooleanIncSubtensor()
    for node, why in [
        (op(x, tensor("float32", 2), mask).owner, "it must count the masked elements"),
        (op(x, tensor("float32", 0), mask, tensor("int64", 1)).owner, "the number of masked"),
        (op(x, tensor("float32", 0), slice(1), mask).owner, "the number of masked"),
        (AdvancedBooleanSubtensor()(x, mask).owner, "output size depends"),
    ]:
        assert lower(node).startswith(why)
        assert lower(node).endswith("would need a synchronisation")


def test_what_has_no_kernel_says_why():
    node = AdvancedIncSubtensor()(
        tensor("complex64", 2), tensor("complex64", 1), tensor("int64", 1), tensor("int64", 1)
    ).owner
    assert lower(node) == "there are no kernels for complex64"
