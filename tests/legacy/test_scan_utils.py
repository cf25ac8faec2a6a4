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


def test_variables_are_replaced_by_a_function():
    def replacer(var):
        return getattr(var.tag, "replacement", var)

    a, b, c, n = T.dscalars("a", "b", "c", "n")
    x = T.dvector("x")
    b.tag.replacement = c
    (v,) = scan_utils.map_variables(replacer, [a + b])
    assert v.owner.inputs == [a, c]
    (same,) = scan_utils.map_variables(replacer, [a * 2])
    assert same.eval({a: 3}) == 6
    product = a * n
    product.tag.replacement = a + b  # what it needs is replaced too
    (v,) = scan_utils.map_variables(replacer, [T.exp(product)])
    assert v.eval({a: 1, c: -1}) == 1
    # inside a loop, and an OpFromGraph
    s, _ = theano.scan(lambda row: row * b, sequences=x)
    (new,) = scan_utils.map_variables(replacer, [s])
    old, other = theano.function([x, b, c], [s, new])([1, 2, 3], 1, 2)
    assert old.tolist() == [1, 2, 3] and other.tolist() == [2, 4, 6]
    p, q = T.dscalars("p", "q")
    total = p + q
    shared = theano.shared(10.0)
    total.tag.replacement = shared * n * (p - q)
    (new,) = scan_utils.map_variables(replacer, [theano.OpFromGraph([p, q], [total])(a, c)])
    assert new.eval({a: 5, c: 3, n: 0.5}) == 10
    shared.update = shared + 1
    with pytest.raises(NotImplementedError, match="has an update"):
        scan_utils.map_variables(replacer, [theano.OpFromGraph([p, q], [total])(a, c)])


def test_equal_parts_of_a_graph_are_replaced():
    x, y = T.dvectors("x", "y")
    out = T.exp(x) * (1 - T.exp(x))
    new = scan_utils.forced_replace(out, T.exp(x), y)
    assert new.eval({y: [2.0, 3.0]}).tolist() == [-2, -6]
    assert scan_utils.forced_replace(out, T.log(x), y) is out
    assert scan_utils.forced_replace(None, x, y) is None
    found = scan_utils.traverse(out, x, y, {})
    assert found == {x: y}


def test_shapes_of_outputs():
    m, n = T.dmatrices("m", "n")
    two, three, five = (T.constant(k) for k in (2, 3, 5))
    shapes = scan_utils.infer_shape([T.dot(m, n), m.T], [m, n], [(two, three), (three, five)])
    assert [[int(length.eval()) for length in shape] for shape in shapes] == [[2, 5], [3, 2]]
    with pytest.raises(AssertionError, match="has 2 dimensions"):
        scan_utils.infer_shape([m], [m], [(two,)])
