"""Cumulative sums, repetition, counting, searching and positions: values, refusals, gradients."""

import numpy as np
import pytest

from opwise.config import config
from opwise.gradient import grad
from opwise.tensor import (
    cast,
)
from opwise.tensor.extra_ops import (
    CumOp,
    CumprodOp,
    CumsumOp,
    DiffOp,
    RepeatOp,
    SearchsortedOp,
    Unique,
    bartlett,
    bincount,
    cpu_contiguous,
    cumprod,
    cumsum,
    diff,
    ravel_multi_index,
    repeat,
    roll,
    searchsorted,
    squeeze,
    tile,
    to_one_hot,
    unravel_index,
)
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

VECTOR = np.array([3.0, 1.0, 2.5, 1.0])
MATRIX = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])
CUBE = np.arange(12.0).reshape(2, 3, 2) / 4 + 1


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


def of(array, name=None):
    array = np.asarray(array)
    return tensor(array.dtype.name, array.ndim, name)


def test_cpu_contiguous_copies_only_what_is_strided(check_forward):
    node = cpu_contiguous(tensor("float64", 2)).owner
    storage = [[None]]
    node.op.perform(node, [MATRIX], storage)
    assert storage[0][0] is MATRIX
    node.op.perform(node, [MATRIX.T], storage)
    assert storage[0][0].flags.c_contiguous
    np.testing.assert_array_equal(storage[0][0], MATRIX.T)
    check_forward(cpu_contiguous, MATRIX)


# ======================================================================================
# ALONG AN AXIS
# ======================================================================================


@pytest.mark.parametrize("array", [VECTOR, MATRIX, CUBE], ids=["vector", "matrix", "cube"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("ours, theirs", [(cumsum, np.cumsum), (cumprod, np.cumprod)])
def test_cumulative(run, check_forward, ours, theirs, axis, array):
    x = of(array)
    np.testing.assert_allclose(run(ours(x, axis), {x: array}), theirs(array, axis))
    if axis is None and array.ndim > 1:
        return  # the vector's gradient, reshaped: reshape has tests of its own
    check_forward(lambda p: ours(p, axis), array)


def test_gradient_of_flattened_cumulative(check_gradient):
    check_gradient(cumsum, MATRIX)
    check_gradient(cumprod, MATRIX)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32"])
def test_cumulative_keeps_the_dtype(run, dtype):
    x = tensor(dtype, 1)
    value = np.array([1, 0, 1]).astype(dtype)
    for op in (cumsum, cumprod):
        assert op(x).type.dtype == dtype
        assert run(op(x), {x: value}).dtype == dtype


def test_texts_and_refusals_of_cumulative():
    assert str(CumOp()) == "CumOp{None, add}"
    assert str(CumprodOp(axis=1)) == "CumOp{1, mul}"
    assert CumsumOp(0) == CumOp(0, "add") != CumOp(0, "mul")
    with pytest.raises(ValueError, match='Unknown mode "foo"'):
        CumOp(mode="foo")
    with pytest.raises(ValueError, match=r"axis\(=2\) out of bounds"):
        cumsum(tensor("float64", 2), axis=2)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_diff(run, check_forward, axis, n):
    array = np.array([[1.0, 4.0, 9.0, 2.0], [0.5, 2.0, 2.0, -1.0], [7.0, 1.0, 0.0, 3.0]])
    x = of(array)
    found = run(diff(x, n, axis), {x: array})
    np.testing.assert_allclose(found, np.diff(array, n, axis))
    if found.size:
        check_forward(lambda p: diff(p, n, axis), array)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("pattern", [(False, False), (False, True)])
def test_gradients_of_more_differences_than_there_are(run, n, length, pattern):
    """They have the shape of the input, and are made of zeros where nothing is left."""
    if pattern[1] and length != 1:
        return
    x = tensor_type("float64", pattern)("x")
    array = np.arange(3.0 * length).reshape(3, length) ** 2
    found = run(grad(diff(x, n, 1).sum(), x), {x: array})
    signs = np.zeros(length)
    for k in range(length):
        step = np.eye(length)[k]
        signs[k] = np.diff(step, n).sum()
    np.testing.assert_array_equal(found, np.broadcast_to(signs, (3, length)))


def test_texts_and_refusals_of_diff():
    assert str(DiffOp(n=2)) == "DiffOp{n=2, axis=-1}"
    with pytest.raises(ValueError, match="non-negative"):
        DiffOp(n=-1)
    with pytest.raises(ValueError, match="out of bounds"):
        diff(tensor("float64", 1), axis=1)


@pytest.mark.parametrize("array", [VECTOR, MATRIX, CUBE], ids=["vector", "matrix", "cube"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shift", [0, 1, -1, 7])
def test_roll(run, array, axis, shift):
    x, n = of(array), tensor("int64", 0)
    expected = np.roll(array, shift, axis)
    np.testing.assert_array_equal(run(roll(x, shift, axis), {x: array}), expected)
    found = run(roll(x, n, axis), {x: array, n: np.array(shift)})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("axis", [2, -3])
def test_roll_refuses_an_axis_that_is_not_there(axis):
    with pytest.raises(ValueError, match=f"axis {axis} is out of range"):
        roll(tensor("float64", 2), 1, axis)


def test_gradient_of_roll(check_gradient):
    check_gradient(lambda p: roll(p, 1, 1) * p, MATRIX)


# ======================================================================================
# REPETITION
# ======================================================================================


@pytest.mark.parametrize("array", [np.array(5.0), VECTOR, MATRIX, CUBE])
@pytest.mark.parametrize("repeats", [0, 1, 3, [2]])
def test_repeat_all_alike(run, array, repeats):
    x, n = of(array), tensor("int64", 0)
    axes = [None, *range(-array.ndim, array.ndim)]
    for axis in axes:
        expected = np.repeat(array, repeats, axis)
        np.testing.assert_array_equal(run(repeat(x, repeats, axis), {x: array}), expected)
        if isinstance(repeats, int):
            found = run(repeat(x, n, axis), {x: array, n: np.array(repeats)})
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("array, axis", [(VECTOR, None), (MATRIX, 1), (CUBE, 1), (CUBE, -2)])
def test_repeat_each_by_its_own_number(run, check_forward, array, axis):
    numbers = np.array([2, 0, 1, 3])[: array.size if axis is None else array.shape[axis]]
    x, n = of(array), tensor("int32", 1)
    out = repeat(x, n, axis)
    assert str(out.owner.op) == f"RepeatOp{{axis={axis}}}"
    found = run(out, {x: array, n: numbers.astype("int32")})
    np.testing.assert_array_equal(found, np.repeat(array, numbers, axis))
    check_forward(lambda p: repeat(p, numbers, axis), array)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_gradient_of_repeat_alike(check_gradient, axis):
    check_gradient(lambda p: repeat(p, 2, axis) ** 2, MATRIX)


def test_gradient_of_repeat_of_a_flattened_matrix(check_gradient):
    check_gradient(lambda p: RepeatOp()(p, np.array([2, 0, 1, 3, 1, 0])), MATRIX)


@pytest.mark.parametrize(
    "build, error, text",
    [
        (lambda x: repeat(x, [[1]]), ValueError, "dimension of repeats should not exceed 1"),
        (lambda x: repeat(x, 2, axis=5), ValueError, "Axis should not exceed x.ndim-1"),
        (lambda x: repeat(x, 2, axis=-3), ValueError, "Axis -3 is out of range"),
        (lambda x: repeat(x, tensor("int64", 1), axis=2), ValueError, "Axis 2 is out of range"),
        (lambda x: repeat(x, 2.5), TypeError, "integer"),
        (lambda x: repeat(x, np.array([1.5, 2])), TypeError, "repeats must be of an integer dtype"),
        (lambda x: RepeatOp()(x, [[1]]), ValueError, "dimension of repeats should not exceed 1"),
    ],
)
def test_refusals_of_repeat(build, error, text):
    with pytest.raises(error, match=text):
        build(tensor("float64", 2))


@pytest.mark.parametrize("array", [np.array(5.0), VECTOR, MATRIX])
@pytest.mark.parametrize("reps", [2, 0, (2,), (2, 3), (1, 1, 2), np.array([2, 1])])
def test_tile_is_numpys(run, array, reps):
    x = of(array)
    np.testing.assert_array_equal(run(tile(x, reps), {x: array}), np.tile(array, reps))


def test_tile_by_variables(run):
    x, n, reps = of(MATRIX), tensor("int64", 0), tensor("int64", 1)
    values = {x: MATRIX, n: np.array(2), reps: np.array([2, 3])}
    np.testing.assert_array_equal(run(tile(x, n), values), np.tile(MATRIX, 2))
    np.testing.assert_array_equal(run(tile(x, (n, 1)), values), np.tile(MATRIX, (2, 1)))
    np.testing.assert_array_equal(run(tile(x, reps, ndim=2), values), np.tile(MATRIX, (2, 3)))
    found = run(tile(x, (2, 1), ndim=3), values)
    np.testing.assert_array_equal(found, np.tile(MATRIX, (1, 2, 1)))


def test_tile_by_a_vector_of_another_length(run):
    x, reps = tensor("float64", 2), tensor("int64", 1)
    repeated = tile(x, reps, ndim=3)
    for given in ([], [3], [2, 3], [4, 2, 3]):
        found = run(repeated, {x: MATRIX, reps: np.array(given, "int64")})
        np.testing.assert_array_equal(found, np.tile(MATRIX, [1] * (3 - len(given)) + given))
    with pytest.raises(AssertionError, match="reps has more elements than ndim"):
        run(repeated, {x: MATRIX, reps: np.ones(4, "int64")})


def test_repeating_once_keeps_a_length_of_one():
    x, n = tensor_type("float64", (False, True))(), tensor("int64", 0)
    for repeats, axis, kept in [(1, 1, True), (2, 1, False), (2, 0, True), (n, 1, False)]:
        assert RepeatOp(axis)(x, repeats).type.broadcastable == (False, kept)


def test_gradient_of_tile(check_gradient):
    check_gradient(lambda p: tile(p, (2, 3)) ** 2, MATRIX)


@pytest.mark.parametrize(
    "reps, ndim, text",
    [
        ((2, 2), 1, "ndim should be equal or larger than x.ndim"),
        ((2, 2, 2), 2, r"len\(reps\) should be equal or less than ndim"),
        ((2, 1.5), None, "integer dtype"),
        (2.5, None, "integer dtype"),
        (tensor("float64", 1), 2, "integer dtype"),
        (([1], 2), None, "must be scalars"),
        ([[1, 2]], None, "must be scalars"),
        (np.ones((1, 1), int), None, "dimension of reps should not exceed 1"),
        (tensor("int64", 1), None, "you should specify the ndim"),
    ],
)
def test_refusals_of_tile(reps, ndim, text):
    with pytest.raises(ValueError, match=text):
        tile(tensor("float64", 2), reps, ndim)


# ======================================================================================
# COUNTING AND SEARCHING
# ======================================================================================


def test_bincount(run):
    x, w = tensor("int32", 1), tensor("float64", 1)
    values = {x: np.array([0, 2, 2, 5], "int32"), w: np.array([0.5, 1.0, 2.0, 3.0])}
    for options in ({}, {"minlength": 3}, {"minlength": 8}, {"assert_nonneg": True}):
        numpy_options = {k: v for k, v in options.items() if k != "assert_nonneg"}
        found = run(bincount(x, **options), values)
        np.testing.assert_array_equal(found, np.bincount(values[x], **numpy_options))
        assert found.dtype == np.int32
    found = run(bincount(x, weights=w), values)
    np.testing.assert_array_equal(found, np.bincount(values[x], values[w]))


def test_refusals_of_bincount(run):
    x = tensor("int64", 1)
    with pytest.raises(AssertionError, match="negative values"):
        run(bincount(x, assert_nonneg=True), {x: np.array([1, -1])})
    with pytest.raises(TypeError, match="index must be integers"):
        bincount(tensor("float64", 1))
    with pytest.raises(TypeError, match="must be of dimension 1"):
        bincount(tensor("int64", 2))


def test_to_one_hot(run):
    y, n = tensor("int32", 1), tensor("int64", 0)
    values = {y: np.array([2, 0, 1], "int32"), n: np.array(4)}
    found = run(to_one_hot(y, n), values)
    np.testing.assert_array_equal(found, np.eye(4)[values[y]])
    assert found.dtype == config.floatX
    assert run(to_one_hot(y, 3, dtype="int8"), values).dtype == np.int8


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("sought", [np.array(1.0), VECTOR, MATRIX])
def test_searchsorted(run, side, sought):
    x, v = tensor("float64", 1), of(sought)
    values = {x: np.sort(VECTOR), v: sought}
    found = run(searchsorted(x, v, side), values)
    np.testing.assert_array_equal(found, np.searchsorted(values[x], sought, side))
    assert found.dtype == np.int64
    order = np.argsort(VECTOR)
    for given in (order, order.astype("uint64")):
        found = run(searchsorted(x, v, side, given), {x: VECTOR, v: sought})
        np.testing.assert_array_equal(found, np.searchsorted(VECTOR, sought, side, order))


def test_refusals_and_gradient_of_searchsorted(run):
    x, v = tensor("float64", 1), tensor("float64", 1)
    assert str(SearchsortedOp()) == "SearchsortedOp{side='left'}"
    with pytest.raises(ValueError, match="'foo' is an invalid value for keyword 'side'"):
        searchsorted(x, v, "foo")
    with pytest.raises(TypeError, match="sorter must be an integer vector"):
        searchsorted(x, v, sorter=v)
    found = run(grad(cast(searchsorted(x, v), "float64").sum(), v), {x: VECTOR, v: VECTOR})
    np.testing.assert_array_equal(found, np.zeros(4))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("wanted", [(), ("return_index",), ("return_inverse", "return_counts")])
def test_unique(run, wanted, axis):
    array = np.array([[3.0, 1.0, 3.0], [3.0, 1.0, 3.0], [2.0, 1.0, 2.0]])
    x = of(array)
    options = dict.fromkeys(wanted, True)
    outputs = Unique(**options, axis=axis)(x, return_list=True)
    expected = np.unique(array, **options, axis=axis)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = run(outputs, {x: array})
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs.ravel() if ours.ndim == 1 else theirs)


def test_unique_refuses_an_axis_that_is_not_there():
    with pytest.raises(RuntimeError, match="Unique axis 1 is outside of input ndim = 1"):
        Unique(axis=1)(tensor("float64", 1))


# ======================================================================================
# POSITIONS
# ======================================================================================


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("positions", [np.array(4), np.array([[0, 5], [3, 1]])])
def test_positions_there_and_back(run, positions, order):
    i, dims = of(positions), (2, 3)
    rows, columns = unravel_index(i, dims, order=order)
    expected = np.unravel_index(positions, dims, order=order)
    for ours, theirs in zip(run([rows, columns], {i: positions}), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    back = ravel_multi_index((rows, columns), dims, order=order)
    np.testing.assert_array_equal(run(back, {i: positions}), positions)


def test_positions_in_an_array_of_variable_shape(run):
    x, i, dims = tensor("float64", 2), tensor("int64", 1), tensor("int64", 1)
    values = {x: MATRIX, i: np.array([0, 4]), dims: np.array([2, 3])}
    expected = np.unravel_index(values[i], (2, 3))
    np.testing.assert_array_equal(run(list(unravel_index(i, x.shape)), values), expected)
    np.testing.assert_array_equal(run(list(unravel_index(i, dims, ndim=2)), values), expected)
    for mode in ("wrap", "clip"):
        found = run(ravel_multi_index((i, i), dims, mode=mode), values)
        expected = np.ravel_multi_index((values[i], values[i]), (2, 3), mode=mode)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="length 2 inconsistent with ndim = 3"):
        run(list(unravel_index(i, dims, ndim=3)), values, False)
    with pytest.raises(ValueError, match="out of bounds"):
        run(list(unravel_index(i, (2, 2))), values)


@pytest.mark.parametrize("lengths", [(1, 3), (3, 1), (1, 1), (1, 0)])
def test_indices_that_broadcast_when_running(run, lengths):
    i, j = tensor("int64", 1), tensor("int64", 1)
    values = {i: np.arange(lengths[0]), j: np.arange(lengths[1])}
    found = run(ravel_multi_index((i, j), (4, 5)), values)
    np.testing.assert_array_equal(found, 5 * values[i] + values[j])


@pytest.mark.parametrize(
    "build, error",
    [
        (lambda: unravel_index([1.5], (2, 2)), TypeError),
        (lambda: unravel_index([1], (2, 2), order="A"), ValueError),
        (lambda: unravel_index([1], tensor("int64", 1)), ValueError),
        (lambda: unravel_index([1], [2.0, 2.0]), TypeError),
        (lambda: ravel_multi_index(1, (2, 2)), TypeError),
        (lambda: ravel_multi_index(([1], [[1]]), (2, 2)), TypeError),
        (lambda: ravel_multi_index(([1], [1]), (2, 2), mode="foo"), ValueError),
    ],
)
def test_refusals_of_positions(build, error):
    with pytest.raises(error):
        build()


def test_bartlett(run):
    n = tensor("int64", 0)
    for points in (0, 1, 5):
        np.testing.assert_allclose(run(bartlett(n), {n: np.array(points)}), np.bartlett(points))
    with pytest.raises(TypeError, match="only works on integer input"):
        bartlett(1.5)
    with pytest.raises(TypeError, match="only works on scalar input"):
        bartlett([1])


def test_squeeze_is_the_one_of_shapes(run):
    row = tensor_type("float64", (True, False))()
    np.testing.assert_array_equal(run(squeeze(row), {row: MATRIX[:1]}), MATRIX[0])
