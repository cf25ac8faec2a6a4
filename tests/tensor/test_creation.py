"""Tensors made from shapes and numbers."""

import pickle

import numpy as np
import pytest

import opwise.tensor as T
from opwise import FunctionGraph
from opwise.config import change_flags
from opwise.graph.null import is_disconnected
from opwise.tensor import (
    Alloc,
    AllocEmpty,
    ARange,
    Eye,
    Tri,
    alloc,
    arange,
    cast,
    constant,
    eye,
    fill,
    identity_like,
    mgrid,
    ogrid,
    ones,
    ones_like,
    shape,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)
from opwise.tensor.creation import alloc_empty
from opwise.tensor.elemwise import FUNCTIONS
from opwise.tensor.type import tensor_type


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
        ((s, 2.0), "lengths must be integers; element 0"),
        ((s, 2, s), "lengths must be integers; element 1"),
        ((s, lv), "lengths must be scalars; element 0"),
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


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_constant_is_pickled_without_what_was_computed_from_it(protocol):
    two = constant(2.0)
    two.cached_signature()
    again = pickle.loads(pickle.dumps(two, protocol))
    assert again.equals(two)


@pytest.mark.parametrize("like", [T.zeros_like, T.ones_like])
def test_a_variable_given_as_dtype_stands_for_its_own(like):
    v, i = T.dvector(), T.ivector()
    assert like(v, v).type == v.type
    assert like(v, i).dtype == getattr(v, like.__name__)(i).dtype == "int32"
