"""Where results lie in memory, and operands that lie by columns, in steps or backward."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise.linkers.lowering import C_DTYPES
from opwise.tensor.convert import deep_copy_op
from opwise.tensor.random import mrg
from opwise.tensor.type import TensorType

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


@pytest.mark.parametrize("size", [0, 3, 20, 45])
@pytest.mark.parametrize("order", "CF")
def test_draws_leave_the_states_that_they_are_given(run_with, size, order):
    """New states are written beside the old ones, of streams without a number too."""
    state = var("int32", 2)
    draw = mrg.mrg_uniform(TensorType("float64", (False,)), False)
    run, _ = run_with([state], draw(state, (size,)), c=True)
    python, _ = run_with([state], draw(state, (size,)), c=False)
    given = np.asarray(1 + np.arange(120, dtype="int32").reshape(20, 6), order=order)
    before = given.copy()
    for result, right in zip(run(given), python(given), strict=True):
        np.testing.assert_array_equal(result, right)
    np.testing.assert_array_equal(given, before)
