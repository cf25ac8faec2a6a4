"""Helpers of ``theano.scan_module.scan_utils`` that need no loop."""

import numpy as np
import pytest

import theano
from theano import tensor as T
from theano.scan_module import scan_utils

pytestmark = pytest.mark.null


def test_safe_new_makes_a_variable_of_the_same_type():
    x = T.fmatrix("x")
    x.tag.test_value = np.ones((2, 2), "float32")
    new = scan_utils.safe_new(x, "_copy")
    assert new is not x and new.name == "x_copy" and new.type == x.type
    np.testing.assert_array_equal(new.tag.test_value, x.tag.test_value)
    assert new.tag.test_value is not x.tag.test_value
    other = scan_utils.safe_new(x, dtype="float64")
    assert other.type == T.dmatrix and other.tag.test_value.dtype == "float64"
    assert scan_utils.safe_new(T.dscalar()).name is None
    number = theano.scalar.float64("n")
    assert scan_utils.safe_new(number, "2").type == number.type
    assert scan_utils.safe_new(number, dtype="int8").type == theano.scalar.int8


def test_safe_new_copies_constants():
    c = T.constant(1.5, name="c")
    same, whole = scan_utils.safe_new(c, "_"), scan_utils.safe_new(c, dtype="int64")
    assert same is not c and same.name == "c" and same.data == 1.5
    assert whole.data == 1 and whole.type.dtype == "int64"


def test_expand_empty_adds_rows():
    x, n = T.dmatrix("x"), T.iscalar("n")
    f = theano.function([x, n], scan_utils.expand_empty(x, n), mode="FAST_COMPILE")
    longer = f(np.ones((2, 3)), 4)
    assert longer.shape == (6, 3)
    np.testing.assert_array_equal(longer[:2], np.ones((2, 3)))
    assert scan_utils.expand_empty(x, 0) is x


@pytest.mark.parametrize("x", [None, np.nan, np.inf, T.constant(-np.inf)])
def test_what_is_nan_inf_or_none(x):
    assert scan_utils.isNaN_or_Inf_or_None(x) is True


@pytest.mark.parametrize("x", [0, 1.5, T.constant(2), T.scalar(), T.constant([1.0, 2.0])])
def test_what_is_a_number(x):
    assert scan_utils.isNaN_or_Inf_or_None(x) is False


def test_find_up():
    x, y = T.vectors("x", "y")
    inner = T.exp(x)
    outer = inner + y
    assert scan_utils.find_up(outer.owner, inner.owner)
    assert scan_utils.find_up([outer], inner.owner)
    assert not scan_utils.find_up(inner.owner, outer.owner)


def test_what_a_step_returned_is_sorted():
    x, w = T.dscalar("x"), theano.shared(1.0)
    condition, outputs, updates = scan_utils.get_updates_and_outputs(
        (2 * x, {w: w + 1}, scan_utils.until(x > 0))
    )
    assert condition.type.ndim == 0 and len(outputs) == 1 and list(updates) == [w]
    assert scan_utils.get_updates_and_outputs([x, x])[0] is None
    with pytest.raises(ValueError, match="may only be made of"):
        scan_utils.get_updates_and_outputs(3)


def test_reconstruct_graph_copies_the_inputs_too():
    x, y = T.dvector("x"), T.dscalar()
    inputs, (out,) = scan_utils.reconstruct_graph([x, y], [x * y], "_copy")
    assert [v.name for v in inputs] == ["x_copy", None] and x not in inputs
    assert theano.function(inputs, out)([1, 2], 3).tolist() == [3, 6]


def test_hashes_of_nested_containers():
    one = scan_utils.hash_listsDictsTuples({"a": [1, (2, 3)]})
    assert one == scan_utils.hash_listsDictsTuples({"a": ([3, 2], 1)})
    assert one != scan_utils.hash_listsDictsTuples({"b": [1, (2, 3)]})
