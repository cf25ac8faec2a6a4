"""What rules share: reading numbers and readers, and making what takes a place."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import FunctionGraph
from opwise.optimizers.rules.matching import (
    combined,
    filled,
    for_output,
    is_private,
    number,
    number_filled,
    number_like,
    number_within,
    operands,
    row_name,
    shuffled,
    typed_like,
)
from opwise.tensor import DimShuffle, Elemwise, constant
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

matrix = tensor_type("float64", (False, False))
row, col = tensor_type("float64", (True, False)), tensor_type("float64", (False, True))


@pytest.mark.parametrize(
    "value, expected",
    [(2, 2), (np.full((2, 3), 1.5), 1.5), ([1, 2], None), (np.zeros(0), None), (np.nan, None)],
)
def test_number_is_what_all_elements_of_a_constant_are(value, expected):
    found = number(constant(value))
    if np.size(value) == 1:
        np.testing.assert_equal(found, value)
    else:
        assert found == expected


def test_number_looks_at_constants_alone_and_number_within_through_fills():
    x, s = T.dmatrix("x"), T.dscalar("s")
    for filling in (T.zeros_like(x), T.zeros((3, 4)), T.fill(x, T.fill(x, 0))):
        assert number(filling) is None
        assert number_filled(filling) == (None if filling.owner.op == T.alloc else 0)
        assert number_within(filling) == 0
    assert number_within(T.fill(x, s)) is None
    assert number_within(x) is None
    assert number_within(T.fill(x, np.arange(3.0))) is None


def test_row_and_operands_of_elementwise_applys():
    x, y = T.dmatrices("x", "y")
    total = x + y
    assert row_name(total.owner) == "add"
    assert operands(total, "add") == [x, y]
    assert operands(total, "sub") is None
    assert operands(x, "add") is None
    assert row_name(T.dot(x, y).owner) is None
    assert row_name(Elemwise(elemwise("add").scalar_op, {0: 0})(x, y).owner) is None


def test_private_is_what_one_reader_reads_once():
    x = T.dmatrix("x")
    once, twice = T.exp(x), T.log(x)
    fgraph = FunctionGraph([x], [once + 1, twice * twice], clone=False)
    assert is_private(once)
    assert not is_private(twice)
    assert not is_private(x)
    assert len(fgraph.outputs) == 2


@pytest.mark.parametrize(
    "dtype, value, expected", [("uint8", -1, 255), ("float32", 0.5, 0.5), ("bool", 1, True)]
)
def test_number_like_has_the_dtype_and_dimensions_of_its_model(dtype, value, expected):
    made = number_like(tensor_type(dtype, (False, True))("x"), value)
    assert made.type == tensor_type(dtype, (True, True))
    assert made.data == expected


def test_typed_like_casts_and_fills_with_the_cheapest_models():
    r, c, x = row("r"), col("c"), matrix("x")
    out = r * c
    assert typed_like(x, out, ()) is x
    assert operands(typed_like(c, out, [T.exp(x), r]), "second") == [r, c]
    # one model that has all the dimensions is better than two
    assert operands(typed_like(number_like(out, 1), out, [r, x]), "second")[0] is x
    both = typed_like(number_like(out, 1), out, [r, c])
    assert both.type == out.type
    assert typed_like(r, out, [r]) is None
    single = typed_like(T.fmatrix(), out, ())
    assert single.type == out.type


def test_filled_is_a_number_in_the_shape_of_its_models():
    x = T.imatrix("x")
    assert filled(x, 3, [x]).type == x.type
    assert number_within(filled(x, 3, [x])) == 3
    assert filled(x, 3, ()) is None


def test_combined_keeps_to_the_dtype_of_the_result():
    add = elemwise("add")
    x, i, j = T.dmatrix("x"), T.imatrix("i"), T.imatrix("j")
    assert combined(add, [x], x, ()) is x
    assert combined(add, [x, i], x, ()).type == x.type
    # added in int32, where it could wrap around
    assert combined(add, [i, j], x, ()) is None


def test_for_output_refuses_other_types():
    x = T.dmatrix("x")
    node = T.exp(x).owner
    assert for_output(node, x) == [x]
    assert for_output(node, None) is None
    assert for_output(node, T.fmatrix()) is None


@pytest.mark.parametrize(
    "first, second, expected",
    [
        ((1, 0), (1, 0), None),
        (("x", 0, 1), (0, 2, 1), ("x", 1, 0)),
        (("x", 0, 1), (1, 2), None),
        ((1, 0), ("x", 0, 1), ("x", 1, 0)),
    ],
)
def test_shuffled_takes_one_dimshuffle_at_most(first, second, expected):
    x = matrix("x")
    result = shuffled(x.dimshuffle(*first), second)
    if expected is None:
        assert result is x
    else:
        assert (result.owner.inputs, result.owner.op.new_order) == ([x], expected)


def test_a_dropped_dimension_that_comes_back_was_kept():
    r = row("r")
    assert shuffled(r.dimshuffle(1), ("x", 0)) is r
    moved = shuffled(r.dimshuffle(1), (0, "x"))
    assert isinstance(moved.owner.op, DimShuffle)


def test_shuffled_constants_are_constants():
    x = tensor_type("float64", (False, False)).make_constant(np.arange(3.0).reshape(1, 3))
    result = shuffled(x, (1, "x", 0))
    np.testing.assert_array_equal(result.data, np.arange(3.0).reshape(3, 1, 1))
    # the pattern is that of the type, not what the data would allow
    assert result.type.broadcastable == (False, True, False)
