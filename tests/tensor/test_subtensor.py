"""Indexing: reading, setting and adding to parts, against numpy; texts, patterns and refusals."""

import pickle
import types

import numpy as np
import pytest

from opwise import sparse_grad
from opwise.config import config
from opwise.errors import ShapeError
from opwise.gradient import grad
from opwise.graph.null import is_disconnected
from opwise.scalar import get_scalar_type
from opwise.tensor import (
    AdvancedBooleanIncSubtensor,
    AdvancedBooleanSubtensor,
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedIndexingError,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    IncSubtensor,
    Subtensor,
    advanced_subtensor,
    as_index_variable,
    cast,
    constant,
    get_idx_list,
    inc_subtensor,
    make_constant,
    make_slice,
    set_subtensor,
    take,
)
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


VALUES = {
    "v": np.array([1.0, 2.0, 3.0, 4.0]),
    "x": np.arange(1.0, 10.0).reshape(3, 3) / 2,
    "t": np.arange(18.0).reshape(2, 3, 3),
    "r": np.array([[5.0, 6.0, 7.0]]),
    "n": np.array(2),
    "k8": np.array(1, "int8"),
    "u16": np.array(2, "uint16"),
    "u64": np.array(1, "uint64"),
    "i": np.array([2, 0, 0]),
    "i8": np.array([1, 0], "int8"),
    "one": np.array([-1]),
    "m": np.array([[0, 1], [2, 0]]),
    "mask": np.array([True, False, True]),
}


class Leaves:
    """A variable for each of the values, and the dict that a graph of them runs on."""

    def __init__(self):
        for name, value in VALUES.items():
            pattern = (name == "r", False) if name == "r" else (False,) * value.ndim
            setattr(self, name, tensor_type(value.dtype.name, pattern)(name))
        self.values = {getattr(self, name): value for name, value in VALUES.items()}


ARRAYS = types.SimpleNamespace(**{
    name: int(value) if value.ndim == 0 else value for name, value in VALUES.items()
})  # fmt: skip

#: label: the array that is indexed, and the index made of variables or of arrays
BASIC = {
    "v[0]": ("v", lambda s: 0),
    "v[-1]": ("v", lambda s: -1),
    "v[int8]": ("v", lambda s: np.int8(1)),
    "v[0-d array]": ("v", lambda s: np.array(3)),
    "v[n]": ("v", lambda s: s.n),
    "v[k8]": ("v", lambda s: s.k8),
    "v[u16]": ("v", lambda s: s.u16),
    "v[-n]": ("v", lambda s: -s.n),
    "v[:]": ("v", lambda s: slice(None)),
    "v[1:3]": ("v", lambda s: slice(1, 3)),
    "v[:-1]": ("v", lambda s: slice(None, -1)),
    "v[::-2]": ("v", lambda s: slice(None, None, -2)),
    "v[3:0:-2]": ("v", lambda s: slice(3, 0, -2)),
    "v[-100:100]": ("v", lambda s: slice(-100, 100)),
    "v[3:1]": ("v", lambda s: slice(3, 1)),
    "v[n:]": ("v", lambda s: slice(s.n, None)),
    "v[:k8]": ("v", lambda s: slice(None, s.k8)),
    "v[n::-k8]": ("v", lambda s: slice(s.n, None, -s.k8)),
    "v[...]": ("v", lambda s: Ellipsis),
    "v[None, :]": ("v", lambda s: (None, slice(None))),
    "v[1:, None]": ("v", lambda s: (slice(1, None), None)),
    "x[0]": ("x", lambda s: 0),
    "x[0, 1]": ("x", lambda s: (0, 1)),
    "x[:, 1]": ("x", lambda s: (slice(None), 1)),
    "x[n, 1:]": ("x", lambda s: (s.n, slice(1, None))),
    "x[1:, ::-1]": ("x", lambda s: (slice(1, None), slice(None, None, -1))),
    "x[..., 0]": ("x", lambda s: (Ellipsis, 0)),
    "x[()]": ("x", lambda s: ()),
    "x[[slice, 0]]": ("x", lambda s: (slice(None), 0)),
    "t[1, ..., 0]": ("t", lambda s: (1, Ellipsis, 0)),
    "t[1, ..., None]": ("t", lambda s: (1, Ellipsis, None)),
    "r[0]": ("r", lambda s: 0),
    "r[0:1]": ("r", lambda s: slice(0, 1)),
    "r[1:]": ("r", lambda s: slice(1, None)),
}
ADVANCED = {
    "v[i]": ("v", lambda s: s.i),
    "v[list]": ("v", lambda s: [0, 2, 2]),
    "v[i8]": ("v", lambda s: s.i8),
    "v[one]": ("v", lambda s: s.one),
    "v[array]": ("v", lambda s: np.array([3, -1])),
    "v[nothing]": ("v", lambda s: []),
    "v[m]": ("v", lambda s: s.m),
    "v[u64]": ("v", lambda s: s.u64),
    "x[i]": ("x", lambda s: s.i),
    "x[m]": ("x", lambda s: s.m),
    "x[i, :]": ("x", lambda s: (s.i, slice(None))),
    "x[:, i]": ("x", lambda s: (slice(None), s.i)),
    "x[..., m]": ("x", lambda s: (Ellipsis, s.m)),
    "t[:, m]": ("t", lambda s: (slice(None), s.m)),
    "x[i, i]": ("x", lambda s: (s.i, s.i)),
    "x[m, m]": ("x", lambda s: (s.m, s.m)),
    "x[i, one]": ("x", lambda s: (s.i, s.one)),
    "x[one, i]": ("x", lambda s: (s.one, s.i)),
    "x[i, list]": ("x", lambda s: (s.i, [0, 1, 2])),
    "x[0, i]": ("x", lambda s: (0, s.i)),
    "x[i, n]": ("x", lambda s: (s.i, s.n)),
    "x[i, 1:]": ("x", lambda s: (s.i, slice(1, None))),
    "x[::2, one]": ("x", lambda s: (slice(None, None, 2), s.one)),
    "x[None, i]": ("x", lambda s: (None, s.i)),
    "x[i, None]": ("x", lambda s: (s.i, None)),
    "t[i8, :, i8]": ("t", lambda s: (s.i8, slice(None), s.i8)),
    "t[i8, None, i8]": ("t", lambda s: (s.i8, None, s.i8)),
    "t[0, :, i]": ("t", lambda s: (0, slice(None), s.i)),
    "t[:, i, 0]": ("t", lambda s: (slice(None), s.i, 0)),
    "t[:, m, i8]": ("t", lambda s: (slice(None), s.m, s.i8)),
    "r[one, i]": ("r", lambda s: (s.one, s.i)),
    "r[0, i]": ("r", lambda s: (0, s.i)),
}
MASKS = {
    "x[mask]": ("x", lambda s: s.mask),
    "x[array of bools]": ("x", lambda s: VALUES["x"] > 2),
    "x[:, mask]": ("x", lambda s: (slice(None), s.mask)),
    "x[mask, 0]": ("x", lambda s: (s.mask, 0)),
    "t[0, mask]": ("t", lambda s: (0, s.mask)),
    "t[:, array of bools]": ("t", lambda s: (slice(None), VALUES["x"] > 2)),
}
EVERY = BASIC | ADVANCED | MASKS


def both(label):
    """Return the leaves, the variable and its index, the array and its index."""
    name, index = EVERY[label]
    leaves = Leaves()
    return leaves, getattr(leaves, name), index(leaves), getattr(ARRAYS, name), index(ARRAYS)


# ======================================================================================
# READING
# ======================================================================================


@pytest.mark.parametrize("label", EVERY)
def test_reading_is_numpys(run, label):
    leaves, x, index, array, known = both(label)
    part = x[index]
    found = run(part, leaves.values)
    np.testing.assert_array_equal(found, array[known])


def test_a_slice_with_variables_beside_an_array_has_a_known_length(run):
    x, i, n = tensor("float64", 2, "x"), tensor("int64", 1, "i"), tensor("int64", 0, "n")
    part = x[i, n:]
    values = {x: np.arange(12.0).reshape(3, 4), i: np.array([2, 0]), n: np.array(1)}
    np.testing.assert_array_equal(run(part, values, False), values[x][[2, 0], 1:])
    lengths = [[constant(np.int64(k)) for k in shape] for shape in ((3, 4), (2,))]
    (shape,) = part.owner.op.infer_shape(part.owner, [*map(tuple, lengths), ()])
    assert [int(k) for k in run(list(shape), {n: np.array(1)})] == [2, 3]


def test_a_single_element_is_a_view_too(run):
    x, value = tensor("float64", 1), np.array([1.0, 2.0])
    node = x[1].owner
    storage = [[None]]
    node.op.perform(node, [value, np.int64(1)], storage)
    assert storage[0][0].shape == ()
    assert np.shares_memory(storage[0][0], value)


@pytest.mark.parametrize(
    "index, text",
    [
        (0, "Subtensor{int64}(x, Constant{0})"),
        (-1, "Subtensor{int64}(x, Constant{-1})"),
        (slice(1, None), "Subtensor{int64::}(x, Constant{1})"),
        (slice(None, -1), "Subtensor{:int64:}(x, Constant{-1})"),
        (slice(None, None, 2), "Subtensor{::int64}(x, Constant{2})"),
        ((slice(None), 0), "Subtensor{::, int64}(x, Constant{0})"),
        ((Ellipsis, 0), "Subtensor{::, int64}(x, Constant{0})"),
        (Ellipsis, "Subtensor{::, ::}(x)"),
        ((), "Subtensor{}(x)"),
        ([0, 1], "AdvancedSubtensor1(x, TensorConstant{[0 1]})"),
        ([0], "AdvancedSubtensor1(x, TensorConstant{(1,) of 0})"),
        ((None, Ellipsis), "InplaceDimShuffle{x,0,1}(x)"),
        (
            (slice(None), [0, 1]),
            "InplaceDimShuffle{1,0}(AdvancedSubtensor1(InplaceDimShuffle{1,0}(x), "
            "TensorConstant{[0 1]}))",
        ),
        (
            ([0, 1], [1, 0]),
            "AdvancedSubtensor(x, TensorConstant{[0 1]}, TensorConstant{[1 0]})",
        ),
        (
            ([0, 1], slice(1, None)),
            "AdvancedSubtensor(x, TensorConstant{[0 1]}, Constant{slice(1, None, None)})",
        ),
        (np.array([True, False]), "AdvancedBooleanSubtensor(x, TensorConstant{[ True False]})"),
    ],
)  # fmt: skip
def test_graphs_of_indexing(dump, index, text):
    assert dump(tensor("float64", 2, "x")[index]) == text


def test_scalar_variables_are_indices_of_their_dtype(dump):
    x, n, k8 = tensor("float64", 1, "x"), tensor("int64", 0, "n"), tensor("int8", 0, "k8")
    q = get_scalar_type("int64")("q")
    assert dump(x[n]) == "Subtensor{int64}(x, ScalarFromTensor(n))"
    assert dump(x[k8:n:2]) == (
        "Subtensor{int8:int64:int64}(x, ScalarFromTensor(k8), ScalarFromTensor(n), Constant{2})"
    )
    assert dump(x[q]) == "Subtensor{int64}(x, q)"
    assert dump(x[constant(1)]) == "Subtensor{int8}(x, ScalarFromTensor(TensorConstant{1}))"
    assert dump(x[[n, 0]]) == (
        "AdvancedSubtensor1(x, MakeVector{dtype='int64'}(n, Elemwise{Cast{int64}}"
        "(TensorConstant{0})))"
    )


@pytest.mark.parametrize(
    "index, pattern",
    [
        (slice(0, 1), (True, False)), (slice(None, 1), (True, False)),
        (slice(None, None, -1), (True, False)), (slice(1, None), (False, False)),
        (slice(-1, None), (False, False)), (0, (False,)), ((slice(None), 0), (True,)),
        ([0, 0], (False, False)), ([0], (True, False)), ((slice(None), [1]), (True, True)),
        (([0, 0], slice(0, 1)), (False, False)), ((None, [0, 0]), (True, False, False)),
        ((0, [0, 1]), (False,)), (np.array([True]), (False, False)),
        ((slice(None), [0], [0]), None),
    ],
)  # fmt: skip
def test_patterns_of_a_row_indexed(index, pattern):
    row = tensor_type("float64", (True, False))("r")
    if pattern is None:
        with pytest.raises(IndexError, match="too many indices"):
            row[index]
    else:
        assert row[index].type.broadcastable == pattern


@pytest.mark.parametrize(
    "index, error, text",
    [
        ((0, 0, 0), IndexError, "too many indices for array"),
        (([0], [0], [0]), IndexError, "too many indices for array"),
        (np.ones((1, 1, 1), bool), IndexError, "too many indices for array"),
        ((Ellipsis, Ellipsis), IndexError, "single Ellipsis"),
        (1.0, TypeError, "index must be integers or a boolean mask"),
        (slice(1.5, None), TypeError, "index must be integers"),
        (slice(None, [1]), TypeError, "index must be integers"),
        ("a", TypeError, "index must be integers or a boolean mask"),
        (True, TypeError, r"Python bools.*use theano\.tensor\.neq\(v, w\) instead"),
        (False, TypeError, r"Python bools.*use theano\.tensor\.eq\(v, w\) instead"),
        ([True, False], TypeError, "does not support Python bools"),
        ([1.5], TypeError, "index must be integers or a boolean mask"),
        (tensor("float64", 0), TypeError, "Expected an integer"),
        (tensor("float64", 1), TypeError, "index must be integers or a boolean mask"),
        (slice(tensor("float64", 0), None), TypeError, "Expected an integer"),
        (slice(tensor("int64", 1), None), TypeError, "Expected an integer"),
        ({}, TypeError, "Cannot convert"),
    ],
)  # fmt: skip
def test_indices_that_are_refused(index, error, text):
    with pytest.raises(error, match=text):
        tensor("float64", 2, "x")[index]


@pytest.mark.parametrize("index", [None, (None, 1), (1, None), (None, None, slice(1, None))])
def test_dimensions_behind_the_last_index_are_kept(run, index):
    x = tensor("float64", 3, "x")
    value = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(x[index], {x: value}), value[index])


def test_a_variable_takes_no_assignment():
    x = tensor("float64", 1)
    with pytest.raises(TypeError, match="does not support item assignment"):
        x[0] = 1


@pytest.mark.parametrize(
    "index, values, text",
    [
        (lambda s: 4, {}, "index 4 is out of bounds for axis 0 with size 4"),
        (lambda s: s.n, {"n": -5}, "index -5 is out of bounds for axis 0 with size 4"),
        (lambda s: s.i, {"i": [0, 7, 1]}, "index 7 is out of bounds for axis 0 with size 4"),
        (lambda s: s.mask, {}, "boolean index did not match"),
    ],
)
def test_out_of_range_is_an_index_error(run, index, values, text):
    leaves = Leaves()
    changed = {getattr(leaves, name): np.array(value) for name, value in values.items()}
    with pytest.raises(IndexError, match=text):
        run(leaves.v[index(leaves)], leaves.values | changed)


def test_a_step_of_zero_is_refused_when_running(run):
    leaves = Leaves()
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        run(leaves.v[:: leaves.n], leaves.values | {leaves.n: np.array(0)}, False)


# ======================================================================================
# CHANGING
# ======================================================================================

_NEW_AXES = ("v[None, :]", "v[1:, None]", "t[1, ..., None]")
CHANGED = [label for label in EVERY if label not in _NEW_AXES]


def expected_change(array, known, y, setting):
    array = array.copy()
    if setting:
        array[known] = y
    else:
        np.add.at(array, known, y)
    return array


@pytest.mark.parametrize("setting", [True, False], ids=["set", "inc"])
@pytest.mark.parametrize("label", CHANGED)
def test_changing_by_a_number_is_numpys(run, label, setting):
    leaves, x, index, array, known = both(label)
    whole = (set_subtensor if setting else inc_subtensor)(x[index], 10.0)
    found = run(whole, leaves.values)
    changed_axis = label in ("x[:, i]", "x[..., m]", "t[:, m]")
    expected = expected_change(array, known, 10.0, setting)
    assert whole.type == x.type or changed_axis
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("setting", [True, False], ids=["set", "inc"])
@pytest.mark.parametrize("label", CHANGED)
def test_changing_by_a_part_is_numpys(run, label, setting):
    leaves, x, index, array, known = both(label)
    y = np.arange(1.0, 1 + array[known].size).reshape(array[known].shape)
    part = x[index]
    value = tensor_type("float64", part.type.broadcastable)("y")
    whole = (set_subtensor if setting else inc_subtensor)(part, value)
    found = run(whole, leaves.values | {value: y})
    np.testing.assert_array_equal(found, expected_change(array, known, y, setting))


@pytest.mark.parametrize(
    "change, values, expected",
    [
        (inc_subtensor, 1.0, [2, 0, 1]),
        (inc_subtensor, [1.0, 2.0, 3.0], [3, 0, 3]),
        (set_subtensor, [1.0, 2.0, 3.0], [2, 0, 3]),
    ],
)
def test_repeated_indices_accumulate_and_the_last_is_set(run, change, values, expected):
    v, i = tensor("float64", 1, "v"), tensor("int64", 1, "i")
    whole = change(v[i], np.array(values))
    found = run(whole, {v: np.zeros(3), i: np.array([0, 0, 2])})
    np.testing.assert_array_equal(found, expected)


def test_repeated_pairs_of_indices_accumulate(run):
    x, i = tensor("float64", 2, "x"), tensor("int64", 1, "i")
    whole = inc_subtensor(x[i, i], 1.0)
    found = run(whole, {x: np.zeros((2, 2)), i: np.array([0, 0])})
    np.testing.assert_array_equal(found, [[2, 0], [0, 0]])


@pytest.mark.parametrize("index", [slice(0, 3), np.array([0, 1, 2]), np.array([True] * 3)])
@pytest.mark.parametrize("change", [inc_subtensor, set_subtensor])
def test_values_take_the_dtype_of_the_array(run, change, index):
    v, y = tensor("int32", 1, "v"), tensor("float64", 1, "y")
    found = run(change(v[index], y), {v: np.array([1, 2, 3], "int32"), y: np.array([1.5, -1.5, 7])})
    assert found.dtype == np.int32
    assert found.tolist() == ([2, 1, 10] if change is inc_subtensor else [1, -1, 7])


def test_a_row_is_added_to_every_row(run):
    x, i, y = tensor("float64", 2, "x"), tensor("int64", 1, "i"), tensor("float64", 1, "y")
    found = run(
        inc_subtensor(x[i], y),
        {x: np.zeros((2, 3)), i: np.array([0, 1, 0]), y: np.arange(3.0)},
    )
    np.testing.assert_array_equal(found, [[0, 2, 4], [0, 1, 2]])


def test_columns_come_back_in_place(dump):
    x, i, y = tensor("float64", 2, "x"), tensor("int64", 1, "i"), tensor("float64", 1, "y")
    assert dump(set_subtensor(x[:, i], y)) == (
        "InplaceDimShuffle{1,0}(AdvancedIncSubtensor1{no_inplace,set}("
        "InplaceDimShuffle{1,0}(x), InplaceDimShuffle{0,x}(y), i))"
    )


def test_a_part_of_a_broadcastable_dimension_stays_of_length_one(run):
    row, x = tensor_type("float64", (True, False))("r"), tensor("float64", 2, "x")
    whole = set_subtensor(row[0:1], x)
    assert str(whole.owner.inputs[1]) == "Rebroadcast{1}.0"
    with pytest.raises(ValueError, match="supposed to be 1"):
        run(whole, {row: np.zeros((1, 3)), x: np.ones((2, 3))})


@pytest.mark.parametrize(
    "op, text",
    [
        (lambda x, i: set_subtensor(x[0], 1.0), "IncSubtensor{Set;int64}"),
        (lambda x, i: inc_subtensor(x[1:], 1.0), "IncSubtensor{Inc;int64::}"),
        (lambda x, i: inc_subtensor(x[0], 1.0, inplace=True), "IncSubtensor{InplaceInc;int64}"),
        (lambda x, i: set_subtensor(x[:, 1:], 1.0), "IncSubtensor{Set;::, int64::}"),
        (lambda x, i: inc_subtensor(x[i], 1.0), "AdvancedIncSubtensor1{no_inplace,inc}"),
        (lambda x, i: set_subtensor(x[i], 1.0, inplace=True), "AdvancedIncSubtensor1{inplace,set}"),
        (
            lambda x, i: inc_subtensor(x[i, i], 1.0),
            "AdvancedIncSubtensor{inplace=False,  set_instead_of_inc=False}",
        ),
        (
            lambda x, i: set_subtensor(x[elemwise("gt")(x, 0)], 1.0),
            "AdvancedBooleanIncSubtensor{inplace=False,  set_instead_of_inc=True}",
        ),
    ],
)
def test_texts_of_changes(op, text):
    assert str(op(tensor("float64", 2, "x"), tensor("int64", 1, "i")).owner.op) == text


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda x, y: set_subtensor(x, y), "x must be the result of a subtensor operation"),
        (lambda x, y: set_subtensor(x + 1, y), "x must be the result of a subtensor operation"),
        (lambda x, y: set_subtensor(x.T, y), "x must be the result of a subtensor operation"),
        (lambda x, y: set_subtensor(x[0], y), "a 1-dimensional subtensor with a 2-dimensional"),
        (lambda x, y: set_subtensor(x[0][None, :], y), "adds or drops dimensions"),
        (lambda x, y: set_subtensor(5, y), "a 0-dimensional subtensor with a 2-dimensional"),
    ],
)
def test_what_is_no_part_cannot_be_changed(change, text):
    with pytest.raises(TypeError, match=text):
        change(tensor("float64", 2, "x"), tensor("float64", 2, "y"))


@pytest.mark.parametrize("change", [inc_subtensor, set_subtensor])
@pytest.mark.parametrize("index", [slice(0, 3), np.array([0, 1, 2])])
def test_values_of_a_wrong_length_are_refused_when_running(run, change, index):
    v, y = tensor("float64", 1, "v"), tensor("float64", 1, "y")
    with pytest.raises(ValueError, match="broadcast"):
        run(change(v[index], y), {v: np.zeros(4), y: np.ones(2)})


INPLACE = [
    lambda x, y: inc_subtensor(x[1:], y[1:], inplace=True),
    lambda x, y: set_subtensor(x[1:], y[1:], inplace=True),
    lambda x, y: inc_subtensor(x[np.array([0, 2])], y[:2], inplace=True),
    lambda x, y: set_subtensor(x[np.array([0, 2])], y[:2], inplace=True),
    lambda x, y: inc_subtensor(x[np.array([0, 2]), np.array([0, 1])], y[0, :2], inplace=True),
    lambda x, y: inc_subtensor(x[np.array([True, False, True])], y[:2], inplace=True),
]


@pytest.mark.parametrize("build", INPLACE)
def test_in_place_overwrites_the_array_and_gives_it_back(run, build):
    x, y = tensor("float64", 2, "x"), tensor("float64", 2, "y")
    node = build(x, y).owner
    assert node.op.destroy_map == {0: [0]}
    kept = type(node.op)(
        *([node.op.idx_list] if isinstance(node.op, IncSubtensor) else []),
        set_instead_of_inc=node.op.set_instead_of_inc,
    )
    assert kept.destroy_map == {} and kept != node.op
    target, values = np.zeros((3, 3)), np.arange(9.0).reshape(3, 3)
    operands = run(list(node.inputs[1:]), {y: values}, False)
    storage, plain = [[None]], [[None]]
    kept.perform(node, [target, *operands], plain)
    assert not target.any() and not np.shares_memory(plain[0][0], target)
    node.op.perform(node, [target, *operands], storage)
    assert storage[0][0] is target
    np.testing.assert_array_equal(target, plain[0][0])


def test_an_overlapping_value_is_read_before_it_is_overwritten():
    x = tensor("float64", 1, "x")
    whole = inc_subtensor(x[1:], x[:-1], inplace=True, tolerate_inplace_aliasing=True)
    assert whole.owner.op.destroyhandler_tolerate_aliased == [[0, 1]]
    assert whole.owner.op == inc_subtensor(x[1:], x[:-1], inplace=True).owner.op
    target, storage = np.arange(1.0, 6.0), [[None]]
    whole.owner.op.perform(whole.owner, [target, target[:-1], np.int64(1)], storage)
    assert target.tolist() == [1, 3, 5, 7, 9]


# ======================================================================================
# TAKE
# ======================================================================================


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["i", "m", "n", "k8"])
def test_take_is_numpys(run, name, axis):
    leaves = Leaves()
    found = run(take(leaves.x, getattr(leaves, name), axis), leaves.values)
    np.testing.assert_array_equal(found, np.take(VALUES["x"], VALUES[name], axis))


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_take_out_of_range(run, mode, axis):
    x, far = tensor("float64", 2, "x"), [[9, -1], [1, -13]]
    found = run(take(x, far, axis, mode), {x: VALUES["x"]})
    np.testing.assert_array_equal(found, np.take(VALUES["x"], far, axis, mode=mode))


def test_take_refuses_floats_and_axes_that_are_not_there():
    x = tensor("float64", 2, "x")
    with pytest.raises(TypeError, match="index must be integers"):
        take(x, tensor("float64", 1))
    with pytest.raises(ValueError, match="axis 2 is out of range"):
        take(x, [0], axis=2)
    with pytest.raises(ValueError, match="'raise', 'wrap' or 'clip', not 'clamp'"):
        take(x, [0], axis=1, mode="clamp")


def test_sparse_grad_marks_rows_only(run):
    x, i = tensor("float64", 2, "x"), tensor("int64", 1, "i")
    marked = sparse_grad(x[i])
    assert marked.owner.op.sparse_grad and marked.owner.op == AdvancedSubtensor1()
    with pytest.raises(TypeError, match="only implemented for AdvancedSubtensor1"):
        sparse_grad(x[0])


# ======================================================================================
# GRADIENTS
# ======================================================================================


@pytest.mark.parametrize("label", EVERY)
def test_gradient_of_reading(check_forward, label):
    _, x, _, array, known = both(label)
    check_forward(lambda p: p[known] ** 2, array, patterns=[x.type.broadcastable])


_SET_ONCE = {
    "v[array]": np.array([3, 0]),
    "x[m]": np.array([[0, 1]]),
    "x[:, i]": (slice(None), np.array([2, 0])),
    "x[i, i]": (np.array([2, 0]), np.array([2, 1])),
    "x[i, 1:]": (np.array([2, 0]), slice(1, None)),
}


@pytest.mark.parametrize("change", [inc_subtensor, set_subtensor])
@pytest.mark.parametrize(
    "label",
    ["v[0]", "v[::-2]", "x[:, 1]", "x[n, 1:]", "r[0]", "v[array]", "x[m]", "x[:, i]", "x[i, i]",
     "x[i, 1:]", "x[mask]"],
)  # fmt: skip
def test_gradient_of_changing(check_forward, change, label):
    _, x, _, array, known = both(label)
    # what is set twice has the gradient of every value, as it always had: set all once
    known = _SET_ONCE.get(label, known) if change is set_subtensor else known
    y = np.ones(array[known].shape)
    check_forward(
        lambda p, q: change(p[known], q) ** 2,
        array,
        y,
        patterns=[x.type.broadcastable, (False,) * y.ndim],
    )


@pytest.mark.parametrize("change", [inc_subtensor, set_subtensor])
@pytest.mark.parametrize("index", [slice(0, 2), np.array([0, 1]), (np.array([0, 1]), slice(1, 3))])
def test_gradient_by_a_value_that_broadcasts(check_gradient, change, index):
    check_gradient(lambda p, q: change(p[index], q) ** 2, np.arange(9.0).reshape(3, 3), 2.0)
    check_gradient(
        lambda p, q: change(p[index], q) ** 2,
        np.arange(9.0).reshape(3, 3),
        np.ones((1, 2 if isinstance(index, tuple) else 3)),
        patterns=[(False, False), (True, False)],
    )


def test_gradients_print_as_they_did(dump):
    x, i = tensor("float64", 2, "x"), tensor("int64", 1, "i")
    zeros = "Elemwise{second,no_inplace}(x, InplaceDimShuffle{x,x}(TensorConstant{0.0}))"
    (by_x, by_index) = x[0].owner.op.L_op(x[0].owner.inputs, [x[0]], [tensor("float64", 1, "g")])
    assert dump(by_x) == f"IncSubtensor{{Inc;int64}}({zeros}, g, Constant{{0}})"
    assert is_disconnected(by_index)
    rows = x[i]
    by_x, by_index = rows.owner.op.L_op([x, i], [rows], [tensor("float64", 2, "g")])
    assert dump(by_x) == f"AdvancedIncSubtensor1{{no_inplace,inc}}({zeros}, g, i)"
    assert is_disconnected(by_index)


def test_gradient_adds_up_what_is_read_twice(run):
    v = tensor("float64", 1, "v")
    found = run(grad(v[np.array([0, 0, 1])].sum(), v), {v: np.ones(3)})
    np.testing.assert_array_equal(found, [2, 1, 0])


@pytest.mark.parametrize("index", [0, np.array([1, 0]), (np.array([1]), np.array([1]))])
def test_gradient_by_integers_is_zero(run, index):
    x = tensor("int64", 2, "x")
    cost = cast(x[index], config.floatX).sum()
    found = run(grad(cost, x), {x: np.ones((2, 2), "int64")})
    np.testing.assert_array_equal(found, np.zeros((2, 2)))
    assert found.dtype == config.floatX


def test_in_place_has_no_gradient():
    v = tensor("float64", 1, "v")
    with pytest.raises(NotImplementedError, match="has no gradient"):
        grad(inc_subtensor(v[1:], 1.0, inplace=True).sum(), v)


# ======================================================================================
# THE OPS THEMSELVES
# ======================================================================================


def test_idx_lists_are_types():
    int64 = get_scalar_type("int64")
    op = Subtensor([tensor("int64", 0), slice(None, tensor("int8", 0))])
    assert op.idx_list == (int64, slice(None, get_scalar_type("int8"), None))
    assert op == Subtensor([int64, slice(None, get_scalar_type("int8"))])
    assert hash(op) == hash(Subtensor(op.idx_list))
    assert op != Subtensor([int64]) and op != IncSubtensor(op.idx_list)
    with pytest.raises(TypeError, match="holds scalar types"):
        Subtensor([0])
    with pytest.raises(AdvancedIndexingError):
        Subtensor([tensor("int64", 1)])
    with pytest.raises(TypeError, match="Expected an integer"):
        Subtensor([tensor("float64", 0)])


@pytest.mark.parametrize("index", [0, slice(1, None), [0], ([0], slice(1, None))])
def test_parts_and_changes_survive_pickling(run, index):
    x = tensor("float64", 2, "x")
    part = x[index]
    for var in (part, set_subtensor(part, 1.0)):
        again, source = pickle.loads(pickle.dumps((var, x)))
        assert again.owner.op == var.owner.op and hash(again.owner.op) == hash(var.owner.op)
        np.testing.assert_array_equal(run(again, {source: VALUES["x"]}), run(var, {x: VALUES["x"]}))


def test_inputs_must_match_the_idx_list():
    x = tensor("float64", 1, "x")
    op = Subtensor([get_scalar_type("int64")])
    with pytest.raises(TypeError, match="Wrong type for Subtensor template"):
        op(x, tensor("int8", 0))
    with pytest.raises(TypeError, match="Wrong type for Subtensor template"):
        op(x)
    with pytest.raises(IndexError, match="too many indices"):
        op(tensor("float64", 0), 0)
    with pytest.raises(ValueError, match="0-dimensional subtensor with a 1-dimensional"):
        IncSubtensor(op.idx_list)(x, x, 0)


def test_index_lists_of_applys():
    x, n = tensor("float64", 2, "x"), tensor("int64", 0, "n")
    node = x[n:, 1].owner
    part, one = get_idx_list(node.inputs, node.op.idx_list)
    assert part.start is node.inputs[1] and part.stop is None and one is node.inputs[2]
    assert get_idx_list(node.inputs, node.op.idx_list, get_count=True)[1] == 2
    found = Subtensor.collapse((part, one), lambda entry: entry is not None)
    assert found == [part.start, one]
    made = make_constant((1, slice(None, 2), n))
    assert str(made[0]) == "Constant{1}" and str(made[1].stop) == "Constant{2}" and made[2] is n


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda x, f: AdvancedSubtensor1()(x, f), "index must be integers"),
        (lambda x, f: AdvancedSubtensor1()(x, [[0]]), "index must be vector"),
        (lambda x, f: AdvancedSubtensor1()(constant(1.0), [0]), "cannot index into a scalar"),
        (
            lambda x, f: AdvancedIncSubtensor1()(f, x, [0]),
            "cannot increment x subtensor with ndim=1 by y with ndim=2",
        ),
        (lambda x, f: AdvancedSubtensor()(x, np.array([True])), "does not support boolean masks"),
        (
            lambda x, f: AdvancedIncSubtensor()(x, f, np.array([True])),
            "does not support boolean masks",
        ),
    ],
)
def test_ops_check_their_inputs(build, text):
    with pytest.raises(TypeError, match=text):
        build(tensor("float64", 2, "x"), tensor("float64", 1, "f"))


def test_lengths_that_only_running_tells():
    x, mask, part = tensor("float64", 1, "x"), tensor("bool", 1), make_slice(tensor("int64", 0))
    with pytest.raises(ShapeError, match="mask"):
        node = x[mask].owner
        node.op.infer_shape(node, [(constant(3),), (constant(3),)])
    given = part.type.make_variable()
    node = advanced_subtensor(x, given).owner
    with pytest.raises(ShapeError, match="is an input"):
        node.op.infer_shape(node, [(constant(3),), ()])


def test_ops_of_one_kind_are_equal():
    kinds = (AdvancedSubtensor, AdvancedBooleanSubtensor, AdvancedSubtensor1)
    for kind in kinds:
        assert kind() == kind() and hash(kind()) == hash(kind())
    assert AdvancedSubtensor() != AdvancedBooleanSubtensor()
    for kind in (AdvancedIncSubtensor, AdvancedBooleanIncSubtensor, AdvancedIncSubtensor1):
        assert kind() == kind() != kind(set_instead_of_inc=True)
    assert as_index_variable([]).type.dtype == "int64"
