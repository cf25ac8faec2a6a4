"""Tensors made from shapes and numbers, and the numbers that variables are known to hold."""

import numpy as np
import pytest

from opwise.config import change_flags
from opwise.errors import EmptyConstantError, NotScalarConstantError
from opwise.gradient import grad
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.null import is_disconnected
from opwise.scalar.op import OPS as SCALAR_OPS
from opwise.scalar.types import constant as scalar_constant
from opwise.scalar.types import get_scalar_type
from opwise.tensor import operators  # noqa: F401  (the operators are attached)
from opwise.tensor.assertion import assert_
from opwise.tensor.convert import (
    deep_copy_op,
    scalar_from_tensor,
    tensor_from_scalar,
    view_op,
)
from opwise.tensor.creation import (
    Alloc,
    AllocEmpty,
    ARange,
    Eye,
    Tri,
    alloc,
    alloc_empty,
    arange,
    eye,
    fill,
    identity_like,
    mgrid,
    ogrid,
    ones,
    ones_like,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import FUNCTIONS, cast
from opwise.tensor.join import MakeVector, join
from opwise.tensor.knownvalues import extract_constant, get_scalar_constant_value
from opwise.tensor.shape import Shape_i, addbroadcast, shape, specify_shape
from opwise.tensor.subtensor import constant_index
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import constant


def tensor(dtype, pattern, name):
    return tensor_type(dtype, pattern)(name)


s, v = tensor("float64", (), "s"), tensor("float64", (False,), "v")
x, row = tensor("float64", (False, False), "x"), tensor("float64", (True, False), "row")
n, lv, i = tensor("int64", (), "n"), tensor("int64", (False,), "lv"), tensor("int32", (), "i")
MATRIX = np.arange(6.0).reshape(2, 3)


# ======================================================================================
# FILLED TENSORS
# ======================================================================================


@pytest.mark.parametrize(
    "build, text, pattern",
    [
        (lambda: zeros((2, 3)),
         "Alloc(TensorConstant{0.0}, TensorConstant{2}, TensorConstant{3})", (False, False)),
        (lambda: zeros(3), "Alloc(TensorConstant{0.0}, TensorConstant{3})", (False,)),
        (lambda: zeros(n), "Alloc(TensorConstant{0.0}, n)", (False,)),
        (lambda: zeros((n, 1)), "Alloc(TensorConstant{0.0}, n, TensorConstant{1})", (False, True)),
        (lambda: zeros(()), "Alloc(TensorConstant{0.0})", ()),
        (lambda: ones(shape(v), "int8"),
         "Alloc(TensorConstant{1}, Subtensor{int64}(Shape(v), Constant{0}))", (False,)),
        (lambda: alloc(s, 1, n), "Alloc(s, TensorConstant{1}, n)", (True, False)),
        (lambda: alloc(v, 1), "Alloc(v, TensorConstant{1})", (True,)),
        (lambda: alloc_empty("int8")(n, 1), "AllocEmpty{dtype='int8'}(n, TensorConstant{1})",
         (False, True)),
        (lambda: zeros_like(x),
         "Elemwise{second,no_inplace}(x, InplaceDimShuffle{x,x}(TensorConstant{0.0}))",
         (False, False)),
        (lambda: ones_like(row), "Elemwise{second,no_inplace}(row, "
         "InplaceDimShuffle{x,x}(TensorConstant{1.0}))", (True, False)),
        (lambda: zeros_like(s, opt=True), "TensorConstant{0.0}", ()),
        (lambda: zeros_like(s), "Elemwise{second,no_inplace}(s, TensorConstant{0.0})", ()),
    ],
)  # fmt: skip
def test_the_graph_of_a_filled_tensor(dump, build, text, pattern):
    assert dump(build()) == text
    assert build().type.broadcastable == pattern


@pytest.mark.parametrize("lengths", [[2, 3], (2, 3), np.array([2, 3]), constant([2, 3])])
def test_ways_to_say_a_shape(run, lengths):
    assert run(zeros(lengths)).shape == (2, 3)


def test_dtypes_of_filled_tensors(run):
    assert zeros(2).type.dtype == ones((1, 2)).type.dtype == "float64"
    assert zeros(2, dtype=np.float32).type.dtype == "float32"
    assert ones_like(x, "int32").type.dtype == "int32"
    assert zeros_like(tensor("bool", (False,), "b")).type.dtype == "bool"
    with change_flags(floatX="float32"):
        assert zeros(2).type.dtype == zeros(2, "floatX").type.dtype == "float32"
    assert run(ones(3, "int8")).tolist() == [1, 1, 1]


def test_values_of_filled_tensors(run):
    values = {v: [1.0, 2.0], n: 2, s: 7.0, x: MATRIX}
    assert run(alloc(v, 3, n), values).tolist() == [[1, 2]] * 3
    assert run(alloc(s, n), values).tolist() == [7, 7]
    assert run(alloc(v, 4), {v: [3.0]}).tolist() == [3] * 4
    assert run(alloc(s, 0, n), values).shape == (0, 2)
    assert run(fill(x, s), values).tolist() == [[7] * 3] * 2
    assert run(ones_like(x), values).tolist() == [[1] * 3] * 2
    assert run(zeros_like([1, 2])).tolist() == [0, 0]
    assert run(shape(alloc_empty("float32")(n, 3)), values).tolist() == [2, 3]


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((x, n), "x has 2 dimensions, more than the 1"),
        ((s, 2.0), "lengths must be integers; number 0"),
        ((s, 2, s), "lengths must be integers; number 1"),
        ((s, lv), "lengths are single numbers; number 0"),
    ],
)
def test_shapes_that_are_refused(arguments, text):
    with pytest.raises(TypeError, match=text):
        alloc(*arguments)
    with pytest.raises(ValueError, match="length not known"):
        zeros(lv)


def test_shapes_that_fail(run):
    with pytest.raises(ValueError, match="broadcast"):
        run(alloc(v, 2, 5), {v: [1.0, 2.0]})
    with pytest.raises(ValueError, match="negative dimensions"):
        run(alloc(0.0, n), {n: -2})
    with pytest.raises(ValueError, match="negative dimensions"):
        run(alloc_empty("float64")(n), {n: -2})


def test_gradients_of_filled_tensors(check_forward):
    check_forward(lambda w: alloc(w, 2, 3), np.array(2.0))
    check_forward(lambda w: alloc(w, 2, 3), np.array([1.0, 2.0, 4.0]))
    check_forward(lambda w: alloc(w, 4, 3), np.array([[1.0, 2.0, 4.0]]), patterns=[(True, False)])
    check_forward(lambda w: alloc(w, 2, 4), np.array([[1.0], [2.0]]), patterns=[(False, True)])
    check_forward(lambda w: alloc(w, 3, 1, 2), np.array([[1.0, 2.0]]), patterns=[(True, False)])


def test_the_gradient_by_an_integer_that_fills_is_zeros():
    node = alloc(i, 3).owner
    found = node.op.L_op(node.inputs, node.outputs, [v])
    assert found[0].type == tensor_type("float64", ()) and is_disconnected(found[1])


def test_what_is_handed_out_or_overwritten_is_not_folded_into_a_constant():
    class Overwriter(Alloc):
        inplace = False

    def folded(*clients):
        made = alloc(s, n)
        graph = FunctionGraph([s, n], [client(made) for client in clients])
        (node,) = (node for node in graph.apply_nodes if node.op == Alloc())
        return node.op.do_constant_folding(node)

    assert not Alloc().do_constant_folding(alloc(s, n).owner)
    assert folded(FUNCTIONS["exp"])
    assert not folded(lambda made: made)
    assert not folded(FUNCTIONS["exp"], lambda made: made)
    assert not folded(lambda made: Overwriter()(made, n))
    assert not AllocEmpty("int8").do_constant_folding(alloc_empty("int8")(2).owner)


def test_memory_that_holds_anything_is_not_compared():
    tag = alloc_empty("float64")(n).tag
    assert tag.values_eq_approx(1, 2)
    assert tag.nan_guard_mode_check is False
    assert alloc_empty("float64") is alloc_empty("float64") == AllocEmpty("float64")


# ======================================================================================
# SEQUENCES AND MATRICES
# ======================================================================================


@pytest.mark.parametrize(
    "arguments, dtype",
    [
        ((3,), "int64"), ((3.0,), "float32"), ((0, 1, 0.1), "float64"), ((n,), "int64"),
        ((i,), "int64"), ((s,), "float64"), ((cast(n, "int8"), cast(n, "int16")), "int64"),
        ((cast(n, "uint8"),), "int64"), ((cast(n, "float16"),), "float16"),
        ((cast(n, "uint8"), cast(n, "uint8"), cast(n, "uint8")), "uint64"),
        ((np.float32(3),), "float32"),
    ],
)  # fmt: skip
def test_dtypes_of_sequences(arguments, dtype):
    sequence = arange(*arguments)
    assert sequence.type == tensor_type(dtype, (False,))
    assert str(sequence.owner.op) == f"ARange{{dtype='{dtype}'}}"


def test_dtypes_of_sequences_that_are_given():
    assert arange(n, dtype="int32").type.dtype == "int32"
    assert arange(3, dtype="floatX").type.dtype == "float64"
    with change_flags(floatX="float32", cast_policy="numpy+floatX"):
        assert arange(0, 1, 0.1).type.dtype == "float32"
        assert arange(s).type.dtype == "float64"


@pytest.mark.parametrize(
    "arguments",
    [
        (5,), (1, 4), (0, 10, 3), (5, 0, -2), (3, 3), (5, 2), (0.0, 1.0, 0.25), (0, 1, 0.1),
        (-3, 8, 4), (10, -1, -3), (2.5,), (0, 0.75),
    ],
)  # fmt: skip
def test_values_of_sequences(run, arguments):
    np.testing.assert_array_equal(run(arange(*arguments)), np.arange(*arguments))
    variables = [
        tensor("int64" if isinstance(a, int) else "float64", (), str(k))
        for k, a in enumerate(arguments)
    ]
    values = dict(zip(variables, arguments, strict=True))
    np.testing.assert_array_equal(run(arange(*variables), values), np.arange(*arguments))


def test_the_length_of_a_sequence_is_simple_where_it_can_be(dump):
    def inferred(out):
        return dump(out.owner.op.infer_shape(out.owner, [(), (), ()])[0][0])

    assert inferred(arange(n)) == "Elemwise{maximum,no_inplace}(n, TensorConstant{0})"
    assert "Elemwise{sub,no_inplace}(n, i" not in inferred(arange(n))
    assert "Elemwise{int_div,no_inplace}" in inferred(arange(0, n, 2))
    assert "Elemwise{ceil,no_inplace}" in inferred(arange(s))


def test_sequences_that_are_refused(run):
    with pytest.raises(TypeError, match="its stop v has type"):
        arange(v)
    with pytest.raises(ZeroDivisionError, match=r"arange\(0, 5, 0\): its step is zero"):
        run(arange(0, 5, n), {n: 0})


def test_gradients_of_sequences(check_gradient, run):
    check_gradient(lambda a, d: arange(a, 2.0, d), 0.5, 0.7)
    start, step = (tensor("float64", (), name) for name in "ab")
    node = ARange("float64")(start, 5, step).owner
    assert node.op.connection_pattern(node) == [[True], [False], [True]]
    found = node.op.L_op(node.inputs, node.outputs, [v])
    assert run(found[2], {start: 1.0, step: 2.0, v: [1.0, 1.0]}) == 1
    whole = arange(n).owner
    found = whole.op.L_op(whole.inputs, whole.outputs, [v])
    assert [g.type.dtype for g in (found[0], found[2])] == ["float64"] * 2


@pytest.mark.parametrize("function, numpy", [(eye, np.eye), (tri, np.tri)])
def test_matrices_of_ones_and_zeros(run, function, numpy):
    for arguments in [(3,), (3, 4), (3, 4, 1), (2, 4, -1), (0,)]:
        np.testing.assert_array_equal(run(function(*arguments)), numpy(*arguments))
    assert run(function(n, n + 1, k=-1, dtype="int8"), {n: 2}).dtype == "int8"
    with pytest.raises(TypeError, match="needs integers"):
        function(s)
    with pytest.raises(ValueError, match="negative dimensions"):
        run(function(n), {n: -2})


def test_texts_of_matrices():
    assert str(Eye()) == "Eye{dtype='float64'}" == str(eye(n).owner.op)
    assert str(Tri("int8")) == "Tri{dtype='int8'}" == str(tri(n, dtype="int8").owner.op)
    assert Eye("int8") != Tri("int8") and Eye("int8") == Eye("int8")


def test_matrices_like_another(run):
    m = tensor("int32", (False, False), "m")
    data = np.arange(1, 7, dtype="int32").reshape(2, 3)
    np.testing.assert_array_equal(run(identity_like(m), {m: data}), np.eye(2, 3))
    assert identity_like(m).type.dtype == "int32"
    for k in (-1, 0, 1):
        np.testing.assert_array_equal(run(tril(m, k), {m: data}), np.tril(data, k))
        np.testing.assert_array_equal(run(triu(m, k), {m: data}), np.triu(data, k))
    assert tril(m).type.dtype == triu(m).type.dtype == "int32"
    with pytest.raises(TypeError, match="A matrix is needed"):
        identity_like(v)


@pytest.mark.parametrize("grid, numpy", [(mgrid, np.mgrid), (ogrid, np.ogrid)])
def test_coordinates_of_a_grid(run, grid, numpy):
    found = run(grid[0:2, 1:n, 5:0:-2], {n: 4})
    for coordinates, expected in zip(found, numpy[0:2, 1:4, 5:0:-2], strict=True):
        np.testing.assert_array_equal(coordinates, expected)
    assert run(grid[:3])[0].tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match="no complex steps"):
        grid[0:3:2j]


def test_gradients_of_parts_of_a_matrix(check_forward):
    check_forward(tril, MATRIX)
    check_forward(lambda w: triu(w, 1), MATRIX)


# ======================================================================================
# KNOWN NUMBERS
# ======================================================================================

F = FUNCTIONS
q = get_scalar_type("int64")("q")
THREE = constant(3)


@pytest.mark.parametrize(
    "var, value",
    [
        (THREE, np.int8(3)),
        (3, 3),
        (3.5, 3.5),
        (np.array([2]), 2),
        (constant([2.0, 2.0]), 2.0),
        (scalar_constant(3), np.int8(3)),
        (zeros((2, 3)), 0.0),
        (alloc(constant(4), n), 4),
        (fill(x, 3), 3),
        (zeros_like(x), 0.0),
        (cast(THREE, "float64"), np.float64(3)),
        (F["add"](THREE, 4), np.int8(7)),
        (F["mul"](THREE, constant(2.5)), np.float32(7.5)),
        (F["neg"](THREE), -3),
        (F["int_div"](constant(7), 2), 3),
        (F["true_div"](constant(7), 2), 3.5),
        (F["mod"](constant(7), 2), 1),
        (F["maximum"](constant(7), 2), 7),
        (F["eq"](constant(7), 2), np.False_),
        (F["switch"](constant(1), THREE, n), np.int64(3)),
        (F["switch"](constant(0), n, 4), np.int64(4)),
        (scalar_from_tensor(THREE), 3),
        (tensor_from_scalar(scalar_constant(3)), 3),
        (SCALAR_OPS["add"](scalar_constant(3), scalar_constant(4)), 7),
        (dimshuffle(THREE, ("x", "x")), 3),
        (F["add"](dimshuffle(THREE, ("x",)), 1), 4),
        (addbroadcast(constant(np.array([3])), 0), 3),
        (deep_copy_op(THREE), 3),
        (assert_(THREE, F["eq"](THREE, 3)), 3),
        (view_op(THREE), 3),
        (constant([1, 2, 3])[1], 2),
        (constant([1, 2, 3])[-1], 3),
        (constant([[1, 2, 3]])[0, 2], 3),
        (constant([[1, 1], [2, 2]])[1], 2),
        (constant([1, 2, 3])[THREE - 1], 3),
        (MakeVector("int64")(n, 5)[1], 5),
        (join(0, [1], MakeVector("int64")(n, 5))[0], 1),
        (join(0, MakeVector("int64")(n), [3])[1], 3),
        (shape(row)[0], 1),
        (Shape_i(0)(row), 1),
        (cast(shape(row), "float64")[0], np.float64(1)),
        (shape(constant([1, 2, 3]))[0], 3),
        (shape(specify_shape(x, [2, 3]))[1], 3),
    ],
)
def test_numbers_that_are_known(var, value):
    found = get_scalar_constant_value(var)
    assert isinstance(found, np.generic)
    assert found == value
    if isinstance(value, np.generic):
        assert found.dtype == value.dtype
    assert extract_constant(var) == value


@pytest.mark.parametrize(
    "var",
    [
        n,
        constant([2, 3]),
        np.array([5, 5]),
        "text",
        alloc(s, 2),
        F["exp"](constant(0.0)),
        F["switch"](n, 1, 2),
        F["switch"](constant(1), n, 2),
        F["add"](THREE, n),
        assert_(THREE, F["eq"](n, 3)),
        assert_(THREE, F["eq"](THREE, 4)),
        constant([1, 2, 3])[n],
        constant([1, 2, 3])[5],
        MakeVector("int64")(n, 5)[0],
        shape(x)[0],
        shape(x),
        x[0],
        Shape_i(1)(row),
        v.sum(),
        q,
    ],
)
def test_numbers_that_are_not_known(var):
    with pytest.raises(NotScalarConstantError):
        get_scalar_constant_value(var)


def test_a_constant_without_elements_has_no_number():
    for empty in (np.array([]), constant(np.zeros((2, 0)))):
        with pytest.raises(EmptyConstantError):
            get_scalar_constant_value(empty)


def test_how_far_to_look():
    total = F["add"](THREE, 4)
    for options in ({"only_process_constants": True}, {"elemwise": False}, {"max_recur": 0}):
        with pytest.raises(NotScalarConstantError):
            get_scalar_constant_value(total, **options)
    with pytest.raises(NotScalarConstantError):
        get_scalar_constant_value(dimshuffle(THREE, ("x",)), only_process_constants=True)
    assert get_scalar_constant_value(dimshuffle(THREE, ("x",)), elemwise=False) == 3


def test_a_deep_graph_is_no_limit():
    deep = THREE
    for _ in range(5000):
        deep = dimshuffle(dimshuffle(deep, ("x",)), ())
    assert get_scalar_constant_value(deep) == 3


def test_a_constant_is_searched_once():
    big = constant(np.ones(1000))
    assert get_scalar_constant_value(big) == 1
    big.data = None
    assert get_scalar_constant_value(big) == 1


def test_what_is_not_known_comes_back():
    assert extract_constant(n) is n
    assert extract_constant(scalar_from_tensor(n)) is n
    assert extract_constant(q).owner.inputs == [q]
    assert extract_constant(THREE + 1, only_process_constants=True).owner is not None


def test_indices_that_are_known():
    assert constant_index(x[1, ::-1].owner) == (1, slice(None, None, -1))
    assert constant_index(x[THREE - 1 :].owner) == (slice(2, None, None),)
    assert constant_index(x[n].owner) is None


def test_known_numbers_decide_gradients_of_nothing(run):
    # a fill whose value depends on x, in a shape that does too
    cost = (alloc(s, shape(v)[0]) * v).sum()
    found = run(grad(cost, [s, v]), {s: 3.0, v: [1.0, 2.0]})
    assert found[0] == 3 and found[1].tolist() == [3, 3]
