"""Shapes: reading, changing and specifying them."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise.compile import Shape_i
from opwise.gradient import grad
from opwise.graph.null import is_disconnected
from opwise.scalar import get_scalar_type
from opwise.tensor import (
    Rebroadcast,
    Shape,
    SpecifyShape,
    addbroadcast,
    alloc,
    cast,
    constant,
    flatten,
    is_flat,
    join,
    patternbroadcast,
    reshape,
    shape,
    shape_padaxis,
    shape_padleft,
    shape_padright,
    specify_shape,
    squeeze,
    swapaxes,
    tensor_from_scalar,
    transpose,
    unbroadcast,
)
from opwise.tensor.shape import length, shape_i, shape_i_op
from opwise.tensor.type import tensor_type


def tensor(dtype, pattern, name):
    return tensor_type(dtype, pattern)(name)


s, v = tensor("float64", (), "s"), tensor("float64", (False,), "v")
x, row = tensor("float64", (False, False), "x"), tensor("float64", (True, False), "row")
t = tensor("float64", (False,) * 3, "t")
n, lv = tensor("int64", (), "n"), tensor("int64", (False,), "lv")
MATRIX = np.arange(6.0).reshape(2, 3)
CUBE = np.arange(24.0).reshape(2, 3, 4)


# ======================================================================================
# READING
# ======================================================================================


def test_the_shape_as_a_vector(run, dump):
    assert shape(x).type == tensor_type("int64", (False,))
    assert dump(shape([1, 2])) == "Shape(TensorConstant{[1 2]})"
    assert run(shape(t), {t: CUBE}).tolist() == [2, 3, 4]
    assert run(shape(s), {s: 1.0}).tolist() == []
    assert Shape() == shape


def test_one_length(run):
    assert str(Shape_i(1)) == "Shape_i{1}"
    assert Shape_i(1)(x).type == tensor_type("int64", ())
    assert run(shape_i_op(1)(x), {x: MATRIX}) == 3
    assert shape_i_op(1) is shape_i_op(1)
    with pytest.raises(TypeError, match="x has 2 dimensions"):
        Shape_i(2)(x)
    with pytest.raises(ValueError):
        Shape_i("a")


def test_a_length_that_a_graph_has_worked_out_already():
    class Feature:
        shape_of = {x: (n, n)}

    class Graph:
        shape_feature = Feature()

    assert shape_i(x, 1, Graph()) is n
    assert str(shape_i(v, 0, Graph()).owner.op) == "Subtensor{int64}"
    assert str(shape_i(x, 1).owner.op) == "Subtensor{int64}"


def test_shapes_are_not_connected_to_gradients(run):
    for op in (shape, Shape_i(0)):
        node = op(x).owner
        assert op.connection_pattern(node) == [[False]]
        assert is_disconnected(op.L_op(node.inputs, node.outputs, [lv])[0])
        assert op.R_op([x], [x]) == [None]
    gradient = grad((shape(v)[0] * v).sum(), v)
    assert run(gradient, {v: [1.0, 5.0]}).tolist() == [2, 2]


# ======================================================================================
# RESHAPE
# ======================================================================================


@pytest.mark.parametrize(
    "newshape, pattern",
    [
        ((2, 3), (False, False)),
        ((1, -1), (True, False)),
        ([1, 1, 6], (True, True, False)),
        ((n, 1), (False, True)),
        ((-1, 1, n), (False, True, False)),
        (constant([1, 6]), (True, False)),
        (np.array([6, 1]), (False, True)),
        ((cast(n, "int32"), 1), (False, True)),
        (shape(x), (False, False)),
        (shape(row), (True, False)),
        (join(0, shape(x), [1]), (False, False, True)),
        ((), ()),
    ],
)
def test_the_pattern_of_a_reshape(newshape, pattern):
    result = reshape(x, newshape)
    assert result.type == tensor_type("float64", pattern)
    assert str(result.owner.op) == f"Reshape{{{len(pattern)}}}"


@pytest.mark.parametrize(
    "newshape, ndim, result",
    [
        ((3, 2), None, (3, 2)),
        ((3, -1), None, (3, 2)),
        ((-1,), None, (6,)),
        ((n, 2), None, (3, 2)),
        ((n, -1), None, (3, 2)),
        ((-1, 1, n), None, (2, 1, 3)),
        (lv, 2, (6, 1)),
        (cast(lv, "int32"), 2, (6, 1)),
        (shape(x)[::-1], None, (3, 2)),
        ((shape(x)[0] * shape(x)[1], 1), None, (6, 1)),
        ((1, -1, 1), None, (1, 6, 1)),
    ],
)
def test_the_result_of_a_reshape(run, newshape, ndim, result):
    found = run(reshape(x, newshape, ndim=ndim), {x: MATRIX, n: 3, lv: [6, -1]})
    np.testing.assert_array_equal(found, MATRIX.reshape(result))


def test_a_reshape_to_no_dimension(run):
    assert run(reshape(x, ()), {x: [[5.0]]}) == 5


def test_reshape_of_nothing(run):
    assert run(reshape(x, (0, 7)), {x: np.zeros((0, 3))}).shape == (0, 7)
    assert run(reshape(x, (-1, 3)), {x: np.zeros((0, 3))}).shape == (0, 3)


def test_a_reshape_is_a_view_where_it_can_be():
    storage = [[None]]
    node = reshape(x, (3, 2)).owner
    node.op.perform(node, [MATRIX, np.array([3, 2])], storage)
    assert np.shares_memory(storage[0][0], MATRIX)
    assert node.op.view_map == {0: [0]}


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((6,), TypeError, "the new shape must be a vector"),
        ((n,), TypeError, "the new shape must be a vector"),
        ((lv,), ValueError, "cannot be automatically determined"),
        (((2.0, 3),), TypeError, "a shape is made of integers"),
        (((s, 3),), TypeError, "a shape is made of integers"),
        (((3,), 2), ValueError, r"Reshape\{2\} needs 2 lengths, got 1"),
    ],
)
def test_reshapes_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        reshape(x, *arguments)


@pytest.mark.parametrize(
    "wanted, text",
    [
        ([2, 2], r"cannot reshape array of size 6 into shape \(2,2\) .*\(2, 3\)"),
        ([4, -1], r"cannot reshape array of size 6 .*\(2, 3\)"),
        ([-1, -1], "can only specify one unknown dimension"),
        ([6], r"Reshape\{2\} needs 2 lengths, got 1"),
    ],
)
def test_reshapes_that_fail(run, wanted, text):
    with pytest.raises(ValueError, match=text):
        run(reshape(x, lv, ndim=2), {x: MATRIX, lv: wanted})


def test_the_shape_of_a_reshape_is_simple_where_it_can_be():
    def inferred(out):
        return out.owner.op.infer_shape(out.owner, [(a, b), (constant(2),)])[0]

    a, b = shape_i_op(0)(x), shape_i_op(1)(x)
    assert [m.data for m in inferred(reshape(x, (2, 3)))] == [2, 3]
    assert inferred(reshape(x, (a, b))) == (a, b)
    (flat,) = inferred(flatten(x))
    assert flat.owner.op == T.mul and flat.owner.inputs == [a, b]
    two, rest = inferred(reshape(x, (2, -1)))
    assert two.data == 2 and rest.owner.op == T.int_div


def test_gradients_of_reshapes(check_forward):
    check_forward(lambda w: reshape(w, (3, -1)), MATRIX)
    check_forward(flatten, CUBE)
    check_forward(lambda w: reshape(w, (3, 1)), MATRIX[:1], patterns=[(True, False)])


def test_flatten(run, dump):
    assert dump(flatten(x)) == "Reshape{1}(x, TensorConstant{(1,) of -1})"
    for ndim, expected in ((1, (24,)), (2, (2, 12)), (3, (2, 3, 4))):
        assert run(flatten(t, ndim), {t: CUBE}).shape == expected
        assert run(flatten(t, outdim=ndim), {t: CUBE}).shape == expected
    assert run(flatten(s), {s: 2.0}).tolist() == [2]
    assert flatten(s).type.broadcastable == (True,)
    assert flatten(row, 2).type.broadcastable == (True, False)
    assert flatten(shape_padright(row, 2), 2).type.broadcastable == (True, False)
    for ndim in (0, 4):
        with pytest.raises(
            ValueError, match=rf"t has 3 dimensions: flatten can leave 1 to 3, not {ndim}"
        ):
            flatten(t, ndim)
    with pytest.raises(ValueError, match="two names of one argument"):
        flatten(t, 2, 2)


def test_is_flat():
    assert is_flat(v) and is_flat(x, 2) and is_flat(x, outdim=2) and not is_flat(x)


# ======================================================================================
# DIMSHUFFLES
# ======================================================================================


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda: shape_padleft(x), "{x,0,1}"),
        (lambda: shape_padleft(x, 2), "{x,x,0,1}"),
        (lambda: shape_padright(x, 2), "{0,1,x,x}"),
        (lambda: shape_padaxis(x, 1), "{0,x,1}"),
        (lambda: shape_padaxis(x, -1), "{0,1,x}"),
        (lambda: shape_padaxis(x, -3), "{x,0,1}"),
        (lambda: transpose(x), "{1,0}"),
        (lambda: transpose(t), "{2,1,0}"),
        (lambda: transpose(t, (0, 2, 1)), "{0,2,1}"),
        (lambda: transpose(t, (0, -1, 1)), "{0,2,1}"),
        (lambda: transpose(v), "{0}"),
        (lambda: swapaxes(t, 0, -1), "{2,1,0}"),
        (lambda: squeeze(row), "{1}"),
        (lambda: squeeze(constant([[[1.0]]])), "{}"),
    ],
)
def test_orders_of_dimensions(build, text):
    assert str(build().owner.op) == f"InplaceDimShuffle{text}"


def test_a_transpose_is_named_after_its_input():
    assert transpose(x).name == "x.T"
    assert transpose(x, (1, 0)).name is None
    assert transpose(shape_padleft(x)).name is None


def test_dimensions_that_are_not_there():
    with pytest.raises(IndexError, match=r"axis 3 is out of bounds \[-3, 3\)"):
        shape_padaxis(x, 3)
    with pytest.raises(IndexError, match="axis 2 is out of range"):
        swapaxes(x, 0, 2)
    with pytest.raises(ValueError, match="may not appear twice"):
        transpose(x, (0, 0))


# ======================================================================================
# PROMISES
# ======================================================================================


@pytest.mark.parametrize(
    "build, text, pattern",
    [
        (lambda: addbroadcast(x, 0), "Rebroadcast{1}(x)", (True, False)),
        (lambda: addbroadcast(x, 0, 1), "Rebroadcast{1,1}(x)", (True, True)),
        (lambda: addbroadcast(x, -1), "Rebroadcast{?,1}(x)", (False, True)),
        (lambda: unbroadcast(row, 0), "Rebroadcast{0}(row)", (False, False)),
        (lambda: addbroadcast(row, 0), "row", (True, False)),
        (lambda: addbroadcast(x), "x", (False, False)),
        (lambda: addbroadcast(addbroadcast(x, 0), 1), "Rebroadcast{1,1}(x)", (True, True)),
        (lambda: unbroadcast(addbroadcast(x, 0), 0), "x", (False, False)),
        (lambda: patternbroadcast(x, (True, False)), "Rebroadcast{1}(x)", (True, False)),
        (lambda: patternbroadcast(row, (True, False)), "row", (True, False)),
        (lambda: Rebroadcast((0, True))(row), "Rebroadcast{1}(row)", (True, False)),
        (lambda: Rebroadcast((0, True), (1, False))(x), "Rebroadcast{1,0}(x)", (True, False)),
    ],
)
def test_rebroadcasting(dump, build, text, pattern):
    assert dump(build()) == text
    assert build().type.broadcastable == pattern


def test_a_promise_of_length_one_is_checked(run):
    assert run(addbroadcast(x, 0), {x: MATRIX[:1]}).shape == (1, 3)
    message = r"Dimension 0 in Rebroadcast's input was supposed to be 1 \(got 2 instead\)"
    with pytest.raises(ValueError, match=message):
        run(addbroadcast(x, 0), {x: MATRIX})


def test_rebroadcasts_that_are_refused():
    for build in (lambda: addbroadcast(x, 5), lambda: Rebroadcast((5, True))(x)):
        with pytest.raises(ValueError, match=r"x has 2 dimensions|more dimensions than x has, 2"):
            build()
    with pytest.raises(TypeError, match="a dimension and a bool, not 5"):
        Rebroadcast((0, 5))


def test_rebroadcasts_are_equal_by_what_they_change():
    assert Rebroadcast((1, True), (0, False)) == Rebroadcast((0, False), (1, True))
    assert hash(Rebroadcast((1, True))) == hash(Rebroadcast((1, True)))
    assert Rebroadcast((0, True)) != Rebroadcast((0, False))


def test_gradients_of_rebroadcasts(dump, check_forward):
    check_forward(lambda w: addbroadcast(w, 0) * 2, MATRIX[:1])
    check_forward(lambda w: unbroadcast(w, 0), MATRIX[:1], patterns=[(True, False)])
    node = addbroadcast(x, 1).owner
    assert dump(node.op.L_op([x], node.outputs, [node.outputs[0].type("g")])[0]) == (
        "Rebroadcast{?,0}(g)"
    )


def test_a_specified_shape(run, check_forward):
    specified = specify_shape(x, [2, n])
    assert specified.type == x.type
    assert run(specified, {x: MATRIX, n: 3}).shape == (2, 3)
    with pytest.raises(AssertionError, match="dimension 1 has length 3, not 4 as specified"):
        run(specified, {x: MATRIX, n: 4})
    with pytest.raises(AssertionError, match="as specified"):
        run(SpecifyShape()(x, lv), {x: MATRIX, lv: [2]})
    known = specify_shape(x, [2, 3]).owner
    assert [m.data for m in known.op.infer_shape(known, [(n, n), (n,)])[0]] == [2, 3]
    check_forward(lambda w: specify_shape(w, [2, 3]) * 3, MATRIX)


@pytest.mark.parametrize("promise", [n, [2.0, 3], [2, 3, 4], []])
def test_shapes_that_cannot_be_specified(promise):
    with pytest.raises(AssertionError):
        specify_shape(x, promise)


def test_lengths_as_int64():
    q = tensor_from_scalar(get_scalar_type("int32")("q"))
    assert length(4).data == 4
    assert length(constant(3)).type.dtype == "int64"
    assert length(n) is n
    assert str(length(q).owner.op) == "Elemwise{Cast{int64}}"
    assert alloc(0.0, q).owner.op.infer_shape(alloc(0.0, q).owner, [(), ()])[0][0].dtype == "int64"
