"""Where results lie in memory, and operands that lie by columns, in steps or backward."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function, shared
from opwise.compile import deep_copy_op
from opwise.linkers.lowering import C_DTYPES
from opwise.sandbox.rng_mrg import mrg_uniform
from opwise.scalar import Composite
from opwise.scalar.op import OPS
from opwise.scalar.program import Instruction
from opwise.tensor import CAReduce, Elemwise, Sum, TensorType
from opwise.tensor.mapreduce import MapReduce

pytestmark = pytest.mark.null

#: lengths below, at and above those of tiles
SHAPES = [(7, 9), (8, 64), (30, 130), (1, 200), (200, 1), (0, 9)]


def var(dtype, ndim):
    return TensorType(dtype, (False,) * ndim)()


def numbers(dtype, shape):
    return np.random.RandomState(3).randint(0, 9, shape).astype(dtype)


@pytest.mark.parametrize(
    "build",
    [
        deep_copy_op,
        lambda x: T.set_subtensor(x[:1], x[1:2]),
        lambda x: T.set_subtensor(x[[0, 0]], x[1:3]),
        lambda x: T.concatenate([x, x], axis=1),
        lambda x: T.cumsum(x, axis=0),
        lambda x: x + x,
    ],
    ids=["copy", "set_subtensor", "set rows", "join", "cumsum", "elementwise"],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_results_keep_the_order_of_dimensions_in_memory(run_with, build, order):
    x = var("float64", 3)
    run, _ = run_with([x], [build(x)], c=True)
    value = numbers("float64", (4, 5, 6)).transpose(order)
    (result,) = run(value)
    strides = sorted(range(3), key=lambda d: -result.strides[d])
    assert strides == sorted(range(3), key=lambda d: -value.strides[d])
    assert result.flags.owndata
    python, _ = run_with([x], [build(x)], c=False)
    np.testing.assert_array_equal(result, python(value)[0])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", sorted({*C_DTYPES, "float16", "complex64", "complex128"}))
def test_copies_of_every_layout(run_with, layouts, dtype, shape):
    """Flattening copies whatever does not lie by rows."""
    x = var(dtype, 2)
    run, _ = run_with([x], [x.flatten(), x.T.flatten(), deep_copy_op(x)], c=True)
    value = numbers(dtype, shape)
    for names, (laid_out,) in layouts([value]):
        expected = laid_out.ravel(), laid_out.T.ravel(), laid_out
        for result, right in zip(run(laid_out), expected, strict=True):
            np.testing.assert_array_equal(result, right, err_msg=str(names))


@pytest.mark.parametrize("generate", [False, True], ids=["built-in", "generated"])
@pytest.mark.parametrize("shape", SHAPES)
def test_operands_of_two_layouts(run_with, layouts, shape, generate):
    x, y = var("float64", 2), var("float32", 2)
    run, _ = run_with([x, y], [x * y + x, T.maximum(x, y)], c=True, generate=generate)
    for names, (a, b) in layouts([numbers("float64", shape), numbers("float32", shape) + 0.5]):
        for result, right in zip(run(a, b), (a * b + a, np.maximum(a, b)), strict=True):
            np.testing.assert_array_equal(result, right, err_msg=str(names))


#: around the sides of squares and tiles, thin ones and long ones
TILES = [
    (8, 8),
    (15, 33),
    (17, 31),
    (64, 64),
    (300, 41),
    (41, 300),
    (9, 1000),
    (1000, 9),
    (270, 65),
]


@pytest.mark.parametrize("generate", [False, True], ids=["built-in", "generated"])
@pytest.mark.parametrize("shape", TILES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_operands_by_rows_and_by_columns(run_with, dtype, shape, generate):
    """Those that lie by columns are turned tile by tile; rows and columns are spread over tiles."""
    x, y, row, column = var(dtype, 2), var(dtype, 2), T.row(dtype=dtype), T.col(dtype=dtype)
    run, _ = run_with([x, y, row, column], [x + y * row - column, x.T.flatten()],
                      c=True, generate=generate)  # fmt: skip
    a, b = numbers(dtype, shape), numbers(dtype, shape[::-1]).T
    a[::2] += 1
    larger = np.zeros((shape[0] + 3, shape[1] + 5), dtype)
    larger[3:, 5:] = a
    along, down = numbers(dtype, (1, shape[1])), numbers(dtype, (shape[0], 1))
    for left in (a, np.asfortranarray(a), larger[3:, 5:], np.asfortranarray(larger)[3:, 5:]):
        for right in (b, b.copy(order="C"), np.asfortranarray(larger)[:-3, :-5]):
            total, flat = run(left, right, along, down)
            np.testing.assert_array_equal(total, left + right * along - down)
            np.testing.assert_array_equal(flat, left.T.ravel())


@pytest.mark.parametrize("shape", TILES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_by_rows_and_by_columns(dtype, shape):
    """Two results of one step that take the memory of arrays of two layouts."""
    start = numbers(dtype, shape)
    kept = [shared(np.asfortranarray(start), borrow=True), shared(start.copy(), borrow=True)]
    x = var(dtype, 2)
    f = function([x], updates=[(kept[0], kept[0] * 2 + x), (kept[1], kept[1] + x * 3)])
    step = numbers(dtype, shape) + 1
    f(step)
    f(np.asfortranarray(step))
    np.testing.assert_array_equal(kept[0].get_value(), (start * 2 + step) * 2 + step)
    np.testing.assert_array_equal(kept[1].get_value(), start + step * 6)


@pytest.mark.parametrize("shape", [(3, 1, 40), (1, 50, 30), (600, 7, 1)])
def test_sums_along_one_element(run_with, layouts, shape):
    """Accumulators of one element each are filled as they are used."""
    x = var("float32", 3)
    axis = shape.index(1)
    run, _ = run_with([x], [T.sum(x, axis=axis), T.sum(x, axis=axis, acc_dtype="float64"),
                            T.max(x, axis=axis)], c=True)  # fmt: skip
    for names, (value,) in layouts([numbers("float32", shape)]):
        for result in run(value):
            np.testing.assert_array_equal(result, value.sum(axis), err_msg=str(names))


#: the dimensions of the operands of a result of six; 1: broadcast
MIXES = [
    ["ab", "a1", "1b", "11"],
    ["ab", "a1", "a1", "1b", "1b", "a1", "ab"],
    ["a1", "1b", "a1"],
    ["abc", "1b1", "a11", "11c", "a1c", "ab1", "1bc"],
    ["abcd", "1b11", "1b11", "1b11", "11c1", "1bc1"],
]


def folded(dtypes, functions):
    """Return a Composite that adds and multiplies its operands in turn; the dtype of its result.

    functions: whether it has a second result, a function of a function of the first.
    """
    steps, dtype, last = [], dtypes[0], 0
    for k in range(1, len(dtypes)):
        op = OPS["add" if k % 2 else "mul"]
        (dtype,) = op.output_dtypes([dtype, dtypes[k]])
        steps.append(Instruction(op, (last, k), dtype))
        last = len(dtypes) + k - 1
    outs = [last]
    if functions:
        steps.append(Instruction(OPS["tanh"], (last,), dtype))
        steps.append(Instruction(OPS["exp"], (last + 1,), dtype))
        outs.append(last + 2)
    return Composite.from_program(list(dtypes), steps, outs)


@pytest.mark.parametrize("mode", ["built-in", "generated", "functions"])
@pytest.mark.parametrize("mix", MIXES, ids=" ".join)
@pytest.mark.parametrize(
    "lengths", [(5, 3, 2, 4), (70, 2, 3, 1), (3, 130, 7, 2), (2, 65, 140, 3), (1, 1, 9, 9)]
)
def test_any_mix_of_rows_columns_and_numbers(run_with, layouts, lengths, mix, mode):
    """Short rows are joined, and operands that are broadcast become blocks of copies."""
    dtypes = ("float32", "int8", "float64", "int32", "int16", "float32", "float64")[: len(mix)]
    shapes = [tuple(1 if c == "1" else lengths["abcd".index(c)] for c in axes) for axes in mix]
    operands = [
        TensorType(d, [c == "1" for c in axes])() for d, axes in zip(dtypes, mix, strict=True)
    ]
    outs = Elemwise(folded(dtypes, mode == "functions"))(*operands)
    outs = outs if isinstance(outs, list) else [outs]
    run, _ = run_with(operands, outs, c=True, generate=mode != "built-in")
    for names, arrays in layouts([numbers(d, s) for d, s in zip(dtypes, shapes, strict=True)]):
        expected = arrays[0]
        for k, array in enumerate(arrays[1:]):
            expected = expected * array if k % 2 else expected + array
        results = run(*arrays)
        np.testing.assert_array_equal(results[0], expected, err_msg=str(names))
        if mode == "functions":
            right = np.exp(np.tanh(expected))
            np.testing.assert_allclose(results[1], right, rtol=1e-6, err_msg=str(names))


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), (1, 2), None])
@pytest.mark.parametrize("row", ["add", "maximum"])
@pytest.mark.parametrize("lengths", [(5, 3, 2), (70, 3, 40), (3, 130, 65)])
def test_sums_of_any_mix_of_rows_columns_and_numbers(run_with, layouts, lengths, row, axis):
    mix = ["abc", "1b1", "a11", "11c", "a1c", "ab1"]
    shapes = [tuple(1 if c == "1" else lengths["abc".index(c)] for c in axes) for axes in mix]
    operands = [TensorType("float64", [c == "1" for c in axes])() for axes in mix]
    reduced = Sum(axis) if row == "add" else CAReduce(OPS["maximum"], axis)
    out = MapReduce(folded(["float64"] * len(mix), False), reduced)(*operands)
    run, _ = run_with(operands, [out], c=True, generate=True)
    for names, arrays in layouts([numbers("float64", shape) for shape in shapes]):
        expected = arrays[0]
        for k, array in enumerate(arrays[1:]):
            expected = expected * array if k % 2 else expected + array
        right = expected.sum(axis) if row == "add" else expected.max(axis)
        np.testing.assert_array_equal(run(*arrays)[0], right, err_msg=str(names))


@pytest.mark.parametrize("generate", [False, True], ids=["built-in", "generated"])
@pytest.mark.parametrize("axis", [0, 1, 2, 3, (0, 1), (2, 3), None])
@pytest.mark.parametrize("dtype", ["int16", "float64"])
def test_reductions_of_operands_that_break_rows(run_with, dtype, axis, generate):
    """Rows of three numbers, numbers in columns, and operands in another order of dimensions."""
    whole, other = numbers(dtype, (6, 5, 7, 3)), numbers(dtype, (3, 7, 5, 6)).T
    row, column = numbers(dtype, (1, 1, 1, 3)), numbers(dtype, (1, 1, 7, 1))
    both = numbers(dtype, (6, 1, 1, 3))
    for given in (
        [whole, row], [whole, row[..., ::-1]], [whole, row, column], [whole, other],
        [whole, both, column], [other, whole, row], [whole[::2], row, both[::2]], [other, row],
    ):  # fmt: skip
        inputs = [TensorType(dtype, [n == 1 for n in value.shape])() for value in given]
        total = sum(inputs[1:], inputs[0])
        run, _ = run_with(inputs, [T.max(total, axis=axis), T.sum(total, axis=axis)], c=True,
                          generate=generate)  # fmt: skip
        expected = sum(given[1:], given[0])
        largest, added = run(*given)
        np.testing.assert_array_equal(largest, expected.max(axis))
        np.testing.assert_array_equal(added, expected.sum(axis, dtype=added.dtype))


@pytest.mark.parametrize("generate", [False, True], ids=["built-in", "generated"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "float64", "complex64"])
def test_short_rows_of_several_operands(run_with, dtype, generate):
    """Rows from 2 to 32 elements, of which the longer ones are turned."""
    x, y = var(dtype, 2), var(dtype, 2)
    run, _ = run_with([x, y], [T.sum(x * y, axis=1), T.max(x + y, axis=1)], c=True,
                      generate=generate)  # fmt: skip
    for columns in (2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32):
        for rows in (1, 5, 64, 100, 700):
            a, b = numbers(dtype, (rows, columns)), numbers(dtype, (columns, rows)).T
            for left, right in ((a, b.copy()), (a, b), (a[:, ::-1], b[::-1])):
                added, largest = run(left, right)
                np.testing.assert_array_equal(added, (left * right).sum(1, dtype=added.dtype))
                np.testing.assert_array_equal(largest, (left + right).max(1))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, None])
@pytest.mark.parametrize("shape", [(50, 4, 9, 1), (1, 40, 1, 7), (6, 1, 5, 80), (1, 1, 1, 1)])
def test_positions_of_largest_elements(run_with, layouts, shape, axis):
    """Dimensions of length 1 are left out, and others joined."""
    x = var("float32", 4)
    run, _ = run_with([x], [T.argmax(x, axis=axis)], c=True)
    for names, (value,) in layouts([numbers("float32", shape)]):
        np.testing.assert_array_equal(run(value)[0], value.argmax(axis), err_msg=str(names))


@pytest.mark.parametrize("generate", [False, True], ids=["built-in", "generated"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("columns", [2, 3, 7, 31])
def test_reductions_of_few_columns(run_with, layouts, columns, dtype, generate):
    """Several rows of accumulators are filled at once; short rows are folded by few of them."""
    x, y = var(dtype, 2), var(dtype, 2)
    both = Composite.from_program(
        [dtype, dtype], [Instruction(OPS["maximum"], (0, 1), dtype)], [2, 0]
    )
    for axis in (0, 1):
        outs = [CAReduce(OPS["maximum"], axis)(x), Sum(axis)(x)]
        outs += MapReduce(both, Sum(axis), Sum(axis))(x, y, return_list=True)
        run, linked = run_with([x, y], outs, c=True, generate=generate)
        assert all(linked.in_c)
        for rows in (1, 63, 128, 129, 1000):
            shape = (rows, columns)
            for names, (a, b) in layouts([numbers(dtype, shape), numbers(dtype, shape)[::-1]]):
                largest = np.maximum(a, b)
                expected = a.max(axis), a.sum(axis), largest.sum(axis), a.sum(axis)
                for result, right in zip(run(a, b), expected, strict=True):
                    np.testing.assert_array_equal(result, right, err_msg=f"{rows} {names}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("generate", [False, True], ids=["built-in", "generated"])
def test_chains_of_maxima_and_minima_keep_nan(run_with, dtype, generate):
    x, y, z = (var(dtype, 1) for _ in range(3))
    steps = [Instruction(OPS["maximum"], (0, 1), dtype), Instruction(OPS["minimum"], (3, 2), dtype)]
    chain = Elemwise(Composite.from_program([dtype] * 3, steps, [3, 4]))(x, y, z)
    run, _ = run_with([x, y, z], chain, c=True, generate=generate)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], dtype)
    a, b, c = (grid.ravel() for grid in np.meshgrid(special, special, special))
    most, result = run(a, b, c)
    np.testing.assert_array_equal(most, np.maximum(a, b))
    np.testing.assert_array_equal(result, np.minimum(np.maximum(a, b), c))


@pytest.mark.parametrize("generate", [False, True], ids=["built-in", "generated"])
@pytest.mark.parametrize("shape", [(9, 30, 40, 3), (2, 2, 1, 5), (700, 1, 4, 2), (3, 7, 1, 200)])
def test_numbers_of_each_channel_of_parts_of_images(run_with, shape, generate):
    """Operands of one short row for all others, between rows that do not follow each other."""
    channel = TensorType("float32", (True, True, True, shape[3] == 1))
    images, mean, scale = var("uint8", 4), channel(), channel()
    run, _ = run_with([images, mean, scale], [(images - mean) * scale], c=True, generate=generate)
    whole, (m, s) = numbers("uint8", shape), (numbers("float32", (1, 1, 1, shape[3])) for _ in "ms")
    for part in (whole, whole[:, 1:-1, ::-1], whole[::2, :, 1:], whole.transpose(0, 2, 1, 3)):
        (result,) = run(part, m, s)
        np.testing.assert_array_equal(result, (part - m) * s)


@pytest.mark.parametrize("shape", [(40, 3), (40, 130), (9, 2, 5)])
def test_short_rows_of_a_result_that_is_no_run(run_with, shape):
    """An operand in steps whose memory becomes the result keeps its place."""
    column = (False,) + (True,) * (len(shape) - 1)
    x, y = var("float32", len(shape)), TensorType("float32", column)()
    out = Elemwise(OPS["add"], inplace_pattern={0: 0})(x, y)
    run, _ = run_with([x, y], [out], c=True, mutable=[x])
    whole = numbers("float32", (*shape[:-1], 2 * shape[-1]))
    row, before = numbers("float32", (shape[0],) + (1,) * (len(shape) - 1)) + 1, whole.copy()
    run(whole[..., ::2], row)
    np.testing.assert_array_equal(whole[..., ::2], before[..., ::2] + row)
    np.testing.assert_array_equal(whole[..., 1::2], before[..., 1::2])


@pytest.mark.parametrize("size", [0, 3, 20, 45])
@pytest.mark.parametrize("order", "CF")
def test_draws_leave_the_states_that_they_are_given(run_with, size, order):
    """New states are written beside the old ones, of streams without a number too."""
    state = var("int32", 2)
    draw = mrg_uniform(TensorType("float64", (False,)), False)
    run, _ = run_with([state], draw(state, (size,)), c=True)
    python, _ = run_with([state], draw(state, (size,)), c=False)
    given = np.asarray(1 + np.arange(120, dtype="int32").reshape(20, 6), order=order)
    before = given.copy()
    for result, right in zip(run(given), python(given), strict=True):
        np.testing.assert_array_equal(result, right)
    np.testing.assert_array_equal(given, before)
