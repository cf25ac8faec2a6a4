"""Positions in sorted vectors and in flattened arrays, and choices by number, simulated."""

import numpy as np
import pytest
from simulated import DEVICE, known

import opwise.tensor as T
from opwise.gpu.kernels.kernel import Layout, error_position
from opwise.gpu.lowering import lower
from opwise.tensor import Choose, TensorType
from opwise.tensor.extra_ops import RavelMultiIndex, SearchsortedOp

pytestmark = pytest.mark.c

SEARCHED = [("float32", "float32"), ("float64", "float64"), ("float16", "float16"),
            ("int8", "int8"), ("bool", "bool"), ("uint64", "int64"), ("int64", "float32"),
            ("float16", "float64")]  # fmt: skip
CHOSEN = [("bool", "bool"), ("int8", "float32"), ("float16", "float16"), ("float64", "int64"),
          ("uint8", "int8")]  # fmt: skip
MODES = ("raise", "wrap", "clip")
SIDES = ("left", "right")


def tensor(dtype, pattern):
    return TensorType(dtype, (False,) * pattern if isinstance(pattern, int) else pattern)()


def nodes():
    made = {}
    for side in SIDES:
        op = SearchsortedOp(side)
        for x, v in SEARCHED:
            made[f"{side}-{x}-{v}"] = op(tensor(x, 1), tensor(v, 2)).owner
        made[f"{side} of a number"] = op(tensor("float32", 1), tensor("float32", 0)).owner
        made[f"{side} with a sorter"] = op(
            tensor("float64", 1), tensor("float64", 1), tensor("int32", 1)
        ).owner
    for mode in MODES:
        op, a = Choose(mode), tensor("int64", 2)
        made[f"{mode} two"] = op(a, tensor("float32", 2), tensor("float32", 2)).owner
        made[f"{mode} three"] = op(a, *(tensor("float64", n) for n in (1, 0, 3))).owner
        made[f"{mode} stacked"] = op(a, tensor("float32", 3)).owner
        made[f"{mode} stacked numbers"] = op(a, tensor("float32", 1)).owner
        made[f"{mode} of one number"] = op(tensor("int8", 0), tensor("int64", 2)).owner
        for order in "CF":
            ravel = RavelMultiIndex(mode, order)
            made[f"{mode} {order}"] = ravel(
                tensor("int64", 2), tensor("int32", 2), tensor("uint8", (True, False)), T.lvector()
            ).owner
        made[f"{mode} of numbers"] = RavelMultiIndex(mode)(T.lscalar(), T.lvector()).owner
    for x, y in CHOSEN:
        made[f"{x} or {y}"] = Choose("wrap")(tensor("uint32", 1), tensor(x, 1), tensor(y, 1)).owner
    made["many"] = Choose("clip")(T.lvector(), *(T.fvector() for _ in range(31))).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes(), wide=True)


def check(kernels, name, values, told=""):
    (expected,) = kernels.expected(name, values)
    for order in (0, 1):
        (found,), wrong = kernels.run(name, values, order)
        assert not wrong and found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected, err_msg=f"{name} {told}")


def failing(kernels, name, values, position):
    """The kernel reports the first element in C order, with the text of ``perform``."""
    with pytest.raises(ValueError) as expected:
        kernels.expected(name, values)
    for order in (0, 1):
        _, wrong = kernels.run(name, values, order)
        assert error_position(wrong) == position
    error = kernels.made[name].wrong(position, values)
    assert (type(error), str(error)) == (ValueError, str(expected.value))


def unfit(kernels, name, values):
    """Shapes are refused with the text of ``perform``."""
    with pytest.raises(ValueError) as expected:
        kernels.expected(name, values)
    with pytest.raises(ValueError) as found:
        kernels.run(name, values)
    assert str(found.value) == str(expected.value)


# --- sorted vectors -------------------------------------------------------------------------------


def sought(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    if dtype in ("bool", "int8", "int64", "uint64"):
        low = -3 if dtype.startswith("int") else 0
        return random.integers(low, 2 if dtype == "bool" else 9, shape).astype(dtype)
    found = (random.normal(size=shape) * 4).round().astype(dtype) / 2
    special = found.reshape(-1)[::3]
    special[...] = np.resize([np.nan, np.inf, -np.inf, -0.0], special.shape)
    return found


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("x", "v"), SEARCHED)
def test_search(kernels, layouts, x, v, side):
    for length in (1, 2, 7, 64, 100):
        for told, values in layouts([np.sort(sought(x, length)), sought(v, (5, 6), 1)]):
            check(kernels, f"{side}-{x}-{v}", values, (length, told))
    check(kernels, f"{side}-{x}-{v}", [sought(x, 0), sought(v, (2, 3))])
    check(kernels, f"{side}-{x}-{v}", [np.sort(sought(x, 4)), sought(v, (0, 3))])


@pytest.mark.parametrize("side", SIDES)
def test_search_of_numbers_and_nan(kernels, side):
    nan, inf = np.nan, np.inf
    x = np.array([-inf, -1, -0.0, 0, 1, 1, inf, nan, nan], "f")
    for v in (nan, inf, -inf, 0, -0.0, 1, 0.5):
        check(kernels, f"{side} of a number", [x, np.float32(v)])
        check(kernels, f"{side} of a number", [x[:-2], np.float32(v)])


@pytest.mark.parametrize("side", SIDES)
def test_search_with_a_sorter(kernels, layouts, side):
    x, v = np.random.default_rng(3).integers(0, 9, (2, 40)) / 2
    x[5] = v[7] = np.nan
    sorter = np.argsort(x, kind="stable").astype("int32")
    for told, values in layouts([x, v, sorter]):
        check(kernels, f"{side} with a sorter", values, told)
    for at, bad in [(20, 40), (20, -1)]:
        wrong = sorter.copy()
        wrong[at] = bad  # the first that a search comes to
        failing(kernels, f"{side} with a sorter", [x, v, wrong], 0)
    check(kernels, f"{side} with a sorter", [x, v[:0], sorter - 9])
    unfit(kernels, f"{side} with a sorter", [x, v, sorter[1:]])


# --- choices --------------------------------------------------------------------------------------


def shares(mode, count, shape, seed=0):
    """Return numbers of choices, which are in range where they must be."""
    low, high = (0, count) if mode == "raise" else (-3 * count, 3 * count)
    return np.random.default_rng(seed).integers(low, high, shape)


@pytest.mark.parametrize("mode", MODES)
def test_choose(kernels, layouts, mode):
    random = np.random.default_rng(1)
    c, d = random.normal(size=(2, 4, 6)).astype("f")
    for told, values in layouts([shares(mode, 2, (4, 6)), c, d]):
        check(kernels, f"{mode} two", values, told)
    check(kernels, f"{mode} two", [shares(mode, 2, (1, 6)), c, d[:, :1]])
    check(kernels, f"{mode} two", [shares(mode, 2, (4, 0)), c[:, :0], d[:, :1]])
    three = [random.normal(size=shape) for shape in ((6,), (), (3, 4, 1))]
    for told, values in layouts([shares(mode, 3, (4, 6)), *three]):
        check(kernels, f"{mode} three", values, told)
    stacked = random.normal(size=(5, 4, 6)).astype("f")
    for told, values in layouts([shares(mode, 5, (4, 6)), stacked]):
        check(kernels, f"{mode} stacked", values, told)
    check(kernels, f"{mode} stacked", [shares(mode, 1, (4, 6)), stacked[:1]])
    check(kernels, f"{mode} stacked", [shares(mode, 5, (1, 6)), stacked[:, :, :1]])
    check(kernels, f"{mode} stacked numbers", [shares(mode, 5, (2, 3)), stacked[:, 0, 0]])
    for number in range(3):
        check(kernels, f"{mode} of one number", [np.int8(number), np.arange(6).reshape(3, 2)])


@pytest.mark.parametrize(("x", "y"), CHOSEN)
def test_dtypes_of_choices(kernels, x, y):
    number = np.array([0, 1, 2, 2**32 - 1, 7], "uint32")
    c, d = np.array([0, 1, 2, 3, 100]).astype(x), np.array([7, 0, 9, 1, 2]).astype(y)
    check(kernels, f"{x} or {y}", [number, c, d])


def test_many_choices(kernels):
    choices = np.random.default_rng(2).normal(size=(31, 50)).astype("f")
    check(kernels, "many", [np.arange(-5, 45), *choices])


@pytest.mark.parametrize("bad", [-1, 5, 2**40])
def test_choices_that_are_not_there(kernels, bad):
    number, stacked = np.ones((4, 6), int), np.zeros((5, 4, 6), "f")
    number[[2, 3], [1, 0]] = bad
    failing(kernels, "raise stacked", [number, stacked], 13)
    failing(kernels, "raise two", [number, stacked[0], stacked[1]], 13)


def test_choices_that_do_not_fit(kernels):
    number, c = np.zeros((4, 6), int), np.zeros((4, 6), "f")
    for mode in MODES:
        unfit(kernels, f"{mode} two", [number, c, c[:3]])
        unfit(kernels, f"{mode} two", [number[:3], c, c])
        unfit(kernels, f"{mode} stacked", [number, np.zeros((0, 4, 6), "f")])
        unfit(kernels, f"{mode} stacked", [number, np.zeros((2, 4, 5), "f")])


# --- flattened arrays -----------------------------------------------------------------------------

LENGTHS = np.array([5, 7, 3])


def places(mode, shape=(4, 6), seed=0):
    random = np.random.default_rng(seed)
    low = 0 if mode == "raise" else -20
    high = 3 if mode == "raise" else 25
    first, second = random.integers(low, high, (2, *shape))
    return [first, second.astype("int32"), random.integers(0, high, (1, shape[1])).astype("uint8")]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", MODES)
def test_ravel(kernels, layouts, mode, order):
    for told, values in layouts(places(mode)):
        check(kernels, f"{mode} {order}", [*values, LENGTHS], told)
    first, second, third = places(mode)
    check(kernels, f"{mode} {order}", [first[:1], second, third[:, :1], LENGTHS])
    check(kernels, f"{mode} {order}", [first[:0], second[:0], third, LENGTHS * 0])
    check(kernels, f"{mode} of numbers", [2, LENGTHS[:1]])
    huge = np.array([2**20, 2**21, 2**22 - 1])
    check(kernels, f"{mode} {order}", [*places(mode), huge])


def test_positions_that_are_not_there(kernels):
    for order in "CF":
        for k, bad in [(0, 5), (1, -1), (0, -(2**40)), (2, 3)]:
            values = places("raise")
            values[k][..., 4] = bad
            if k < 2:
                values[k][:3] = 0
            failing(kernels, f"raise {order}", [*values, LENGTHS], 4 if k == 2 else 22)


@pytest.mark.parametrize("mode", MODES)
def test_lengths_and_positions_that_do_not_fit(kernels, mode):
    first, second, third = places(mode)
    name = f"{mode} C"
    unfit(kernels, name, [first, second[:3], third, LENGTHS])
    unfit(kernels, name, [first, second, third, LENGTHS[:2]])
    unfit(kernels, name, [first, second, third, [4, 0, 9]])
    unfit(kernels, name, [first, second, third, [2**30] * 3])


# --- all ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["left-float32-float32", "wrap three", "clip stacked", "wrap F"])
def test_huge_arrays_have_indices_of_64_bits(kernels, monkeypatch, name):
    random = np.random.default_rng(5)
    values = {
        "left-float32-float32": [np.sort(sought("float32", 9)), sought("float32", (5, 6))],
        "wrap three": [shares("wrap", 3, (4, 6)), *map(random.random, ((6,), (), (3, 4, 1)))],
        "clip stacked": [shares("clip", 5, (4, 6)), random.random((5, 4, 6)).astype("f")],
        "wrap F": [*places("wrap"), LENGTHS],
    }[name]
    (expected,) = kernels.expected(name, values)
    made, values = kernels.made[name], kernels.given(name, values)
    out = np.empty_like(expected)
    monkeypatch.setattr("opwise.gpu.kernels.layouts.LIMIT_32", 2)
    plan = made.plan(known(made, values), [Layout.of(out)], DEVICE)
    assert all(launch.kernel.wide for launch in plan.launches)
    assert not kernels.simulated.run(plan, values, [out])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("make", "reason"), [
    (lambda: SearchsortedOp()(tensor("complex64", 1), tensor("complex64", 1)),
     "there are no kernels for complex64"),
    (lambda: Choose("raise")(tensor("int8", 1), tensor("complex64", 1), tensor("int8", 1)),
     "there are no kernels for complex64"),
    (lambda: Choose("raise")(tensor("uint64", 1), tensor("int8", 1), tensor("int8", 1)),
     "numpy does not accept uint64 indices in choose"),
    (lambda: Choose("raise")(tensor("int8", 1), tensor("int8", 0)),
     "choices must be an array, not a scalar"),
    (lambda: Choose("wrap")(tensor("int8", 1), *(tensor("int8", 1) for _ in range(32))),
     "it has more than 31 choices"),
])  # fmt: skip
def test_what_has_no_kernel_says_why(make, reason):
    assert lower(make().owner) == reason
