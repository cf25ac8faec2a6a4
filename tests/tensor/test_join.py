"""Tensors joined and split, vectors made of numbers."""

import numpy as np
import pytest

from opwise.errors import AsTensorError
from opwise.gradient import disconnected_type
from opwise.graph.null import is_null
from opwise.scalar import get_scalar_type
from opwise.tensor import (
    Join,
    Split,
    as_tensor_variable,
    cast,
    concatenate,
    constant,
    horizontal_stack,
    join,
    join_,
    shape,
    split,
    stack,
    stacklists,
    vertical_stack,
)
from opwise.tensor.join import MakeVector, make_vector
from opwise.tensor.type import tensor_type


def tensor(dtype, pattern, name):
    return tensor_type(dtype, pattern)(name)


s, v = tensor("float64", (), "s"), tensor("float64", (False,), "v")
x, y, z = (tensor("float64", (False, False), name) for name in "xyz")
row, col = tensor("float64", (True, False), "row"), tensor("float64", (False, True), "col")
i, n = tensor("int32", (False, False), "i"), tensor("int64", (), "n")
lv = tensor("int64", (False,), "lv")
MATRIX = np.arange(6.0).reshape(2, 3)


# ======================================================================================
# VECTORS OF NUMBERS
# ======================================================================================


def test_a_vector_of_numbers(run, dump):
    vector = make_vector(n, 5)
    assert vector.type == tensor_type("int64", (False,))
    assert dump(vector) == (
        "MakeVector{dtype='int64'}(n, Elemwise{Cast{int64}}(TensorConstant{5}))"
    )
    assert run(vector, {n: 4}).tolist() == [4, 5]
    assert run(MakeVector("int64")(constant(1), cast(n, "int32")), {n: 4}).tolist() == [1, 4]
    assert run(MakeVector("float64")(n, s), {n: 4, s: 0.5}).tolist() == [4, 0.5]
    assert run(MakeVector("int8")()).shape == (0,)
    assert MakeVector() == make_vector != MakeVector("int32")


def test_numbers_that_make_no_vector():
    with pytest.raises(TypeError, match="its input 0, v, has"):
        MakeVector("float64")(v)
    for dtype, numbers in (("int8", (n,)), ("int64", (s,)), ("float32", (n, 1))):
        with pytest.raises(AssertionError, match="cannot hold the inputs"):
            MakeVector(dtype)(*numbers)


def test_gradients_of_vectors_of_numbers(run, check_forward):
    check_forward(lambda a, b: MakeVector("float64")(a, b, a), 1.0, 2.0)
    node = make_vector(n, n).owner
    found = node.op.L_op(node.inputs, node.outputs, [v])
    assert [run(g, {n: 1}).dtype.name for g in found] == ["float64"] * 2
    assert make_vector.R_op([n, n], [None, None]) == [None]
    assert run(make_vector.R_op([n, n], [n, None])[0], {n: 7}).tolist() == [7, 0]


@pytest.mark.parametrize(
    "items, text",
    [
        ([n, 1], "MakeVector{dtype='int64'}(n, Elemwise{Cast{int64}}(TensorConstant{1}))"),
        ((n, n), "MakeVector{dtype='int64'}(n, n)"),
        ([s, n], "MakeVector{dtype='float64'}(s, Elemwise{Cast{float64}}(n))"),
        ([get_scalar_type("int64")("q"), n],
         "MakeVector{dtype='int64'}(TensorFromScalar(q), n)"),
        ([v, v], "Join(TensorConstant{0}, InplaceDimShuffle{x,0}(v), InplaceDimShuffle{x,0}(v))"),
        ([[s, s], [s, s]],
         "Join(TensorConstant{0}, InplaceDimShuffle{x,0}(MakeVector{dtype='float64'}(s, s)), "
         "InplaceDimShuffle{x,0}(MakeVector{dtype='float64'}(s, s)))"),
    ],
)  # fmt: skip
def test_lists_that_hold_variables_become_tensors(dump, items, text):
    assert dump(as_tensor_variable(items)) == text


def test_lists_of_a_number_of_dimensions():
    assert as_tensor_variable([n, 1], ndim=2).type.broadcastable == (True, False)
    with pytest.raises(ValueError, match="has 2 dimensions, not 1"):
        as_tensor_variable([v, v], ndim=1)
    with pytest.raises(AsTensorError, match="its items have 0, 1 dimensions"):
        as_tensor_variable([n, v])


# ======================================================================================
# JOINING
# ======================================================================================


@pytest.mark.parametrize(
    "axis, tensors, pattern",
    [
        (0, (x, x), (False, False)),
        (0, (x, row), (False, False)),
        (1, (x, row), (True, False)),
        (0, (row, row), (False, False)),
        (1, (row, row), (True, False)),
        (0, (col, col), (False, True)),
        (-1, (row, row), (True, False)),
        (n, (row, row), (False, False)),
        (constant(1), (row, row), (True, False)),
        (np.array(1), (row, row), (True, False)),
    ],
)
def test_the_pattern_of_joined_tensors(axis, tensors, pattern):
    assert join(axis, *tensors).type.broadcastable == pattern


def test_a_single_tensor_is_not_joined():
    assert join(0, row) is row and concatenate([v]) is v
    assert join_(0, row).type.broadcastable == (True, False)


def test_dtypes_of_joined_tensors(run):
    assert join(0, x, i).type.dtype == "float64"
    assert join(0, i, cast(i, "int8")).type.dtype == "int32"
    joined = join(0, i, cast(i, "int8"))
    assert run(joined, {i: [[1, 2]]}).tolist() == [[1, 2], [1, 2]]


def test_the_axis_of_a_join_counts_from_the_front(dump):
    assert dump(join(-1, x, y)) == "Join(TensorConstant{1}, x, y)"
    assert dump(join(n, x, y)) == "Join(n, x, y)"
    assert (str(Join()), str(Join(view=0))) == ("Join", "Join{view=0}")


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_values_of_joined_tensors(run, axis):
    values = {x: MATRIX, y: MATRIX + 10, n: axis}
    expected = np.concatenate([MATRIX, MATRIX + 10], axis)
    for how in (axis, n):
        np.testing.assert_array_equal(run(join(how, x, y), values), expected)
    np.testing.assert_array_equal(run(concatenate([x, y], axis=axis), values), expected)


def test_a_join_that_is_a_view():
    op = Join(view=1)
    assert op.view_map == {0: [2]}
    node = op(0, v, v, v).owner
    storage = [[None]]
    full, empty = np.ones(3), np.ones(0)
    op.perform(node, [np.array(0), empty, full, empty], storage)
    assert storage[0][0] is full
    op.perform(node, [np.array(0), full, full, empty], storage)
    assert storage[0][0].shape == (6,) and not np.shares_memory(storage[0][0], full)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((2, x, x), ValueError, "there is no axis 2"),
        ((-3, x, x), IndexError, "there is no axis -3"),
        ((s, x, x), TypeError, "an axis is an integer"),
        ((0.5, x, x), TypeError, "an axis is an integer"),
        ((0, x, v), TypeError, "tensors to join must have the same number of dimensions"),
        ((0, s, s), TypeError, "use T.stack"),
        ((0,), ValueError, "there is no tensor to join"),
    ],
)
def test_joins_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        join(*arguments)


def test_joins_that_fail(run):
    with pytest.raises(ValueError, match="must match exactly"):
        run(join(0, x, y), {x: MATRIX, y: MATRIX.T})
    for axis, error in ((5, ValueError), (-5, IndexError)):
        with pytest.raises(error, match="there is no axis"):
            run(join(n, x, y), {x: MATRIX, y: MATRIX, n: axis})
    with pytest.raises(TypeError, match="one list or tuple"):
        concatenate(x)
    with pytest.raises(ValueError, match="no tensor to join"):
        concatenate([])


def test_gradients_of_joined_tensors(check_forward, run):
    check_forward(lambda a, b: join(0, a, b), MATRIX, MATRIX[:1])
    check_forward(lambda a, b: join(1, a, b, a), MATRIX, MATRIX[:, :2])
    check_forward(
        lambda a, b: join(0, a, b), MATRIX, MATRIX[:1], patterns=[(False, False), (True, False)]
    )
    check_forward(lambda a: join_(0, a), MATRIX)
    node = join(0, x, i).owner
    by_axis, by_x, by_i = node.op.L_op(node.inputs, node.outputs, [y])
    values = {x: MATRIX, i: [[1, 2, 3]], y: np.ones((3, 3))}
    assert is_null(by_axis)
    assert run(by_x, values).tolist() == [[1] * 3] * 2
    assert run(by_i, values).tolist() == [[0.0] * 3]
    node = join(n, x, y).owner
    _, by_x, by_y = node.op.L_op(node.inputs, node.outputs, [z])
    values = {x: MATRIX, y: MATRIX[:, :1], n: 1, z: np.arange(8.0).reshape(2, 4)}
    assert run(by_x, values).tolist() == [[0, 1, 2], [4, 5, 6]]
    assert run(by_y, values).tolist() == [[3], [7]]


# ======================================================================================
# STACKING
# ======================================================================================


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_values_of_stacked_tensors(run, axis):
    found = run(stack([x, y], axis=axis), {x: MATRIX, y: -MATRIX})
    np.testing.assert_array_equal(found, np.stack([MATRIX, -MATRIX], axis))


def test_ways_to_stack(dump, run):
    text = dump(stack([v, v]))
    with pytest.warns(DeprecationWarning, match="the form of old programs"):
        old = stack(v, v)
    assert dump(old) == dump(stack((v, v), 0)) == dump(stack(tensors=[v, v])) == text
    assert text == ("Join(TensorConstant{0}, InplaceDimShuffle{x,0}(v), InplaceDimShuffle{x,0}(v))")
    assert dump(stack((v, v), -1)) == dump(stack(axis=1, tensors=[v, v]))
    assert dump(stack([s, 2])) == (
        "MakeVector{dtype='float64'}(s, Elemwise{Cast{float64}}(TensorConstant{2}))"
    )
    assert dump(stack([1, 2])) == "MakeVector{dtype='int8'}(TensorConstant{1}, TensorConstant{2})"
    assert dump(stack([s, 2], axis=1)) == dump(stack([s, 2], axis=-2)) == dump(stack([s, 2]))
    assert run(stack([v, [3.0, 4.0]]), {v: [1.0, 2.0]}).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "arguments, options, error, text",
    [
        (([x, x],), {"axis": 3}, IndexError, r"axis 3 is out of bounds \[-3, 3\)"),
        (([x, x],), {"axis": -4}, IndexError, "axis -4 is out of bounds"),
        (([],), {}, Exception, "the list is empty"),
        ((), {}, Exception, "needs tensors"),
        (([s, v],), {}, TypeError, "tensors to stack must have the same number of dimensions"),
        (([v, v], 0, 1), {}, TypeError, "takes two arguments"),
        (([v, v],), {"dim": 1}, TypeError, "not dim"),
    ],
)
def test_stacks_that_are_refused(arguments, options, error, text):
    with pytest.raises(error, match=text):
        stack(*arguments, **options)


def test_matrices_side_by_side_and_on_top_of_each_other(run):
    values = {x: MATRIX, y: MATRIX + 1}
    expected = np.hstack([MATRIX, MATRIX + 1])
    np.testing.assert_array_equal(run(horizontal_stack(x, y), values), expected)
    expected = np.vstack([MATRIX, MATRIX + 1])
    np.testing.assert_array_equal(run(vertical_stack(x, y), values), expected)
    with pytest.raises(ValueError, match="takes matrices; v has 1"):
        vertical_stack(v, v)
    with pytest.raises(ValueError, match="takes two matrices or more, got 1"):
        horizontal_stack(x)


def test_nested_lists(run):
    assert run(stacklists([[s, 2.0], [3.0, s]]), {s: 1.0}).tolist() == [[1, 2], [3, 1]]
    assert stacklists(x) is x
    assert stacklists([[v, v]]).type.ndim == 3


# ======================================================================================
# SPLITTING
# ======================================================================================


@pytest.mark.parametrize("sizes", [[1, 2], [0, 3], [3, 0]])
@pytest.mark.parametrize("axis", [1, -1])
def test_values_of_parts(run, sizes, axis):
    values = {x: MATRIX, lv: sizes, n: axis}
    expected = np.split(MATRIX, sizes[:1], axis=1)
    for parts in (split(x, sizes, 2, axis), split(x, lv, 2, axis=n), split(x, lv, 2, axis)):
        for found, part in zip(run(parts, values), expected, strict=True):
            np.testing.assert_array_equal(found, part)


def test_parts_with_lengths_that_are_variables(run):
    a, b = split(x, [n, shape(x)[1] - n], 2, axis=1)
    found = run([a, b], {x: MATRIX, n: 2})
    assert [part.shape for part in found] == [(2, 2), (2, 1)]


def test_the_text_and_pattern_of_parts(dump):
    first, second = split(x, [1, 2], 2)
    assert dump(second) == "Split{2}.1(x, TensorConstant{0}, TensorConstant{[1 2]})"
    assert split(row, [1, 2], 2, axis=1)[0].type.broadcastable == (True, False)
    # a part of a dimension of length 1 may be empty
    assert split(row, [0, 1], 2, axis=0)[0].type.broadcastable == (False, False)
    assert split(row, [0, 1], 2, axis=n)[0].type.broadcastable == (False, False)
    assert split(row, [1], 1, axis=0).type == row.type
    assert Split(2) == first.owner.op != Split(3)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((x, [1.0, 2.0], 2), TypeError, "lengths of parts are a vector of integers"),
        ((x, n, 2), TypeError, "lengths of parts are a vector of integers"),
        ((x, [1, 2], 2, s), TypeError, "an axis is an integer"),
        ((x, [], 0), ValueError, "one part or more"),
    ],
)
def test_splits_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        split(*arguments)


@pytest.mark.parametrize(
    "sizes, axis, text",
    [
        ([1, 1], 1, "the parts have 2 elements along axis 1, the whole 3"),
        ([1, 1, 1], 1, r"Split\{2\} needs 2 lengths, got 3"),
        ([-1, 4], 1, "negative length"),
        ([1, 1], 2, r"there is no axis 2 .* \(2, 3\)"),
    ],
)
def test_splits_that_fail(run, sizes, axis, text):
    with pytest.raises(ValueError, match=text):
        run(split(x, lv, 2, n), {x: MATRIX, lv: sizes, n: axis})


def test_gradients_of_parts(check_forward, run):
    check_forward(lambda a: split(a, [1, 2], 2, axis=1)[1], MATRIX)
    check_forward(lambda a: join(1, *split(a, [2, 1], 2, axis=1)[::-1]), MATRIX)
    check_forward(lambda a: split(a, [0, 1], 2, axis=0)[1], MATRIX[:1], patterns=[(True, False)])
    first = split(x, [1, 2], 2, axis=1)[0]
    nothing = disconnected_type.make_variable()
    node = first.owner
    by_x, *others = node.op.L_op(node.inputs, node.outputs, [nothing, y])
    assert run(by_x, {x: MATRIX, y: np.ones((2, 2))}).tolist() == [[0, 1, 1]] * 2
    assert all(map(is_null, others))
    node = split(i, [1, 2], 2, axis=1)[0].owner
    found = node.op.L_op(node.inputs, node.outputs, [x, y])[0]
    assert run(found, {i: [[1, 2, 3]]}).tolist() == [[0.0, 0.0, 0.0]]
