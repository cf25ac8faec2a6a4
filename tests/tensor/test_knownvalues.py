"""What is known of values before a function runs: numbers, lengths and entries of vectors."""

import numpy as np
import pytest

from opwise import get_scalar_constant_value
from opwise.compile import Shape_i, deep_copy_op, view_op
from opwise.errors import EmptyConstantError, NotScalarConstantError
from opwise.gradient import grad
from opwise.scalar import constant as scalar_constant
from opwise.scalar import get_scalar_type
from opwise.scalar.op import OPS as SCALAR_OPS
from opwise.tensor import (
    Subtensor,
    addbroadcast,
    alloc,
    cast,
    constant,
    extract_constant,
    fill,
    get_vector_length,
    join,
    knownvalues,
    scalar_from_tensor,
    shape,
    specify_shape,
    tensor_from_scalar,
    unbroadcast,
    zeros,
    zeros_like,
)
from opwise.tensor.assertion import assert_
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import FUNCTIONS
from opwise.tensor.join import MakeVector
from opwise.tensor.knownvalues import is_one, vector_entry
from opwise.tensor.shape import is_length
from opwise.tensor.subtensor import constant_index
from opwise.tensor.type import tensor_type


def tensor(dtype, pattern, name):
    return tensor_type(dtype, pattern)(name)


s, v = tensor("float64", (), "s"), tensor("float64", (False,), "v")
x, row = tensor("float64", (False, False), "x"), tensor("float64", (True, False), "row")
t = tensor("float64", (False,) * 3, "t")
n, lv = tensor("int64", (), "n"), tensor("int64", (False,), "lv")


# ======================================================================================
# NUMBERS
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


# ======================================================================================
# VECTORS
# ======================================================================================


@pytest.mark.parametrize(
    "vector, expected",
    [
        (shape(t), 3),
        (constant([1, 2, 3]), 3),
        ([n, 1], 2),
        (MakeVector("int64")(n, n), 2),
        (join(0, shape(x), shape(t)), 5),
        (join(0, shape(x), lv), None),
        (addbroadcast(v, 0), 1),
        (shape(t)[1:], 2),
        (shape(t)[:2], 2),
        (shape(t)[::-1], 3),
        (shape(t)[-2:], 2),
        (shape(t)[n:], None),
        (lv[1:3], None),
        (cast(shape(x), "int32"), 2),
        (shape(x) * 2, 2),
        (shape(x) * constant([2]), 2),
        (unbroadcast(constant([2]), 0), 1),
        (v, None),
    ],
)
def test_the_length_of_a_vector(vector, expected):
    if expected is None:
        with pytest.raises(ValueError, match="length not known"):
            get_vector_length(vector)
    else:
        assert get_vector_length(vector) == expected


def test_looking_for_a_length_does_not_grow_with_the_paths_to_it(monkeypatch):
    """A vector that is used twice is looked at once, through slices and elementwise Ops."""
    looked = []
    rule = knownvalues._vector_rules[Subtensor]
    counting = rule._replace(length=lambda *args: looked.append(1) or rule.length(*args))
    monkeypatch.setitem(knownvalues._vector_rules, Subtensor, counting)
    deep = v
    for _ in range(12):
        deep = deep[1:] + deep[:-1]
    looked.clear()
    assert knownvalues.known_length(deep) is None
    assert len(looked) <= 2 * 12


@pytest.mark.parametrize("thing", [x, 5, s])
def test_only_vectors_have_a_length(thing):
    with pytest.raises(TypeError, match="a vector is needed"):
        get_vector_length(thing)


@pytest.mark.parametrize(
    "vector, i, entry",
    [
        (constant([1, 2, 3]), -1, 3),
        (constant([1, 2, 3]), 3, None),
        (constant([1, 2, 3]), -4, None),
        (shape(row), 0, 1),
        (shape(row), 1, None),
        (shape(x), 7, None),
        (shape(constant([[1.0, 2.0]])), 1, 2),
        (shape(specify_shape(x, [4, n])), 0, 4),
        (shape(specify_shape(x, [4, n])), 1, n),
        (MakeVector("int64")(n, 5), 0, n),
        (MakeVector("int64")(n, 5), -1, 5),
        (join(0, [7], MakeVector("int64")(n, 5)), 2, 5),
        (join(0, lv, [1]), 0, None),
        (join(0, shape(x), shape(row)), 2, 1),
        (MakeVector("int64")(n, 5)[::-1], 0, 5),
        (MakeVector("int64")(n, 5, n)[1:], 0, 5),
        (MakeVector("int64")(n, 5)[:1], 1, None),
        (cast(constant([1, 2]), "int32"), 1, 2),
        (unbroadcast(constant([2]), 0), 0, 2),
        (lv, 0, None),
    ],
)
def test_an_entry_of_a_vector(vector, i, entry):
    assert vector_entry(vector, i) == entry


def test_an_entry_is_cast_as_the_vector_is():
    found = vector_entry(cast(MakeVector("int64")(n, 300), "int8"), 1)
    assert found == np.int8(44) and found.dtype == "int8"
    symbolic = vector_entry(cast(MakeVector("int64")(n, 300), "int8"), 0)
    assert symbolic.type.dtype == "int8" and symbolic.owner.inputs == [n]


def test_which_entries_are_one_and_which_are_lengths():
    assert is_one(1) and is_one(constant(1)) and is_one(Shape_i(0)(row))
    assert not (is_one(2) or is_one(n) or is_one(None) or is_one(Shape_i(0)(x)))
    assert is_length(0) and is_length(constant(3)) and is_length(Shape_i(0)(x))
    assert is_length(shape(x)[0] * shape(x)[1] + 2) and is_length(cast(shape(x)[0], "int32"))
    assert not (is_length(-1) or is_length(n) or is_length(shape(x)[0] - 1) or is_length(lv[0]))
