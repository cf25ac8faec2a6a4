"""Symbolic shapes."""

import copy
import pickle

import numpy as np
import pytest
from checking import evaluate

from opwise import Apply, Constant, FunctionGraph, Op, generic
from opwise.compile import Shape_i
from opwise.config import change_flags
from opwise.errors import ShapeError
from opwise.optimizers.shapefeature import ShapeFeature, ShapeOptimizer, same_shape
from opwise.tensor import alloc, constant
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise
from opwise.tensor.shape import shape_i
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

add, exp, mul, neg = map(elemwise, ["add", "exp", "mul", "neg"])
vector = tensor_type("float64", (False,))
matrix = tensor_type("float64", (False, False))
row = tensor_type("float64", (True, False))
integer = tensor_type("int64", ())


class Silent(Op):
    """An Op that says nothing of the shape of its output, which is that of its input."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].copy()


class Said(Silent):
    """An Op whose ``infer_shape`` does what the test says."""

    __props__ = ("says",)

    def __init__(self, says):
        self.says = says

    def infer_shape(self, node, shapes):
        return self.says(node, shapes)


silent = Silent()


def tracked(inputs, *outputs):
    fgraph = FunctionGraph(list(inputs), list(outputs), clone=False)
    ShapeOptimizer()(fgraph)
    return fgraph, fgraph.shape_feature


def is_shape_i(length, var, i):
    return length.owner.op == Shape_i(i) and length.owner.inputs[0] is var


@pytest.fixture
def x():
    return matrix("x")


# --- what a shape is ------------------------------------------------------------------------------


def test_lengths_of_inputs_are_shape_i(x):
    _, feature = tracked([x], exp(x))
    first, second = feature.shape_of[x]
    assert is_shape_i(first, x, 0) and is_shape_i(second, x, 1)
    assert first.type == integer
    assert feature.shape_of[x] is feature.shape_of[x]


def test_broadcastable_dimensions_are_one():
    r = row("r")
    _, feature = tracked([r], exp(r))
    for var in feature.fgraph.variables:
        one, other = feature.shape_of[var]
        assert isinstance(one, Constant) and one.data == 1 and one.data.dtype == np.int64
        assert is_shape_i(other, r, 1)


def test_shapes_of_constants_are_constants(x):
    c = constant(np.zeros((2, 3)))
    _, feature = tracked([x], add(x, c))
    assert [n.data.item() for n in feature.shape_of[c]] == [2, 3]


def test_ops_say_the_shapes_of_their_outputs(x):
    n = integer("n")
    out = dimshuffle(exp(x), (1, "x", 0))
    filled = alloc(constant(1.0), n, constant(3))
    fgraph, feature = tracked([x, n], out, filled)
    a, b, c = feature.shape_of[out]
    assert is_shape_i(a, x, 1) and b.data == 1 and is_shape_i(c, x, 0)
    assert feature.shape_of[filled][0] is fgraph.inputs[1]
    assert feature.get_shape(filled, 1).data == 3


def test_an_op_that_says_nothing_gives_shape_i_of_its_output(x):
    quiet = silent(x)
    _, feature = tracked([x], exp(quiet))
    assert is_shape_i(feature.shape_of[exp_of(feature)][0], quiet, 0)


def exp_of(feature):
    return next(n.outputs[0] for n in feature.fgraph.toposort() if n.op == exp)


def test_values_of_other_types_have_no_shape():
    g = generic()
    _, feature = tracked([g], g)
    assert feature.shape_of[g] is None
    assert not feature.same_shape(g, g)


def test_shape_of_is_a_mapping_over_the_graph(x):
    fgraph, feature = tracked([x], exp(x))
    shapes = feature.shape_of
    assert set(shapes) == fgraph.variables and len(shapes) == 2
    assert x in shapes and matrix() not in shapes
    assert shapes.get(x) is feature.shape_tuple(x)


def test_shape_i_asks_the_feature(x):
    fgraph, _ = tracked([x], exp(x))
    assert is_shape_i(shape_i(fgraph.outputs[0], 1, fgraph), x, 1)


def test_deep_graphs_need_no_recursion():
    x = vector("x")
    out = x
    for _ in range(20_000):
        out = neg(out)
    _, feature = tracked([x], out)
    assert is_shape_i(feature.shape_of[out][0], x, 0)


def test_nothing_is_worked_out_before_it_is_asked_for(x):
    asked = []

    def says(node, shapes):
        asked.append(node)
        return shapes

    out = exp(Said(says)(x))
    _, feature = tracked([x], out)
    assert asked == []
    feature.shape_of[out]
    feature.shape_of[out]
    assert len(asked) == 1


def test_all_kinds_of_lengths_become_int64(x):
    n = tensor_type("int32", ())("n")

    def says(node, shapes):
        return [(n, 5)]

    out = Said(says)(x)
    _, feature = tracked([x, n], out, n)
    first, second = feature.shape_of[out]
    assert first.type == integer and second.type == integer
    assert evaluate([first, second], {n: np.int32(7)}) == [7, 5]


def test_the_values_of_shapes(x):
    y = matrix("y")
    out = add(exp(x), dimshuffle(y, (1, 0)))
    _, feature = tracked([x, y], out)
    values = {x: np.zeros((2, 3)), y: np.zeros((3, 2))}
    assert evaluate(feature.shape_of[out], values) == [2, 3]


# --- infer_shape that fails -----------------------------------------------------------------------


def fails(node, shapes):
    raise ZeroDivisionError("a mistake")


@pytest.mark.parametrize(
    ("says", "text"),
    [
        (fails, "ZeroDivisionError: a mistake"),
        (lambda node, shapes: [], "returned 0 shapes for 1 outputs"),
        (lambda node, shapes: [(1,)], "returned 1 lengths for an output of 2 dimensions"),
        (lambda node, shapes: [(1.5, 2)], "returned 1.5 as a length"),
        (lambda node, shapes: [(node.inputs[0], 2)], "returned x as a length"),
        (lambda node, shapes: [("a", 2)], "ValueError"),
    ],
)
def test_failing_is_reported_as_on_shape_error_says(x, caplog, says, text):
    out = Said(says)(x)
    _, feature = tracked([x], out)
    assert is_shape_i(feature.shape_of[out][1], out, 1)
    assert "The infer_shape of Said" in caplog.text and text in caplog.text
    assert "test_shapefeature.py, line" in caplog.text
    _, feature = tracked([x2 := matrix("x")], out2 := Said(says)(x2))
    with change_flags(on_shape_error="raise"), pytest.raises(Exception) as info:
        feature.shape_of[out2]
    assert "The infer_shape of Said" in info.value.__notes__[0]


@pytest.mark.parametrize("error", [ShapeError, NotImplementedError])
def test_an_op_may_say_that_it_cannot_say(x, caplog, error):
    def says(node, shapes):
        raise error("depends on values")

    out = Said(says)(x)
    _, feature = tracked([x], out)
    assert is_shape_i(feature.shape_of[out][0], out, 0)
    assert caplog.records == []


def test_some_outputs_may_be_left_unsaid(x):
    out = Said(lambda node, shapes: [None])(x)
    _, feature = tracked([x], out)
    assert is_shape_i(feature.shape_of[out][0], out, 0)


# --- replacements ---------------------------------------------------------------------------------


def test_an_op_that_says_nothing_inherits_from_what_it_replaced(x):
    fgraph, feature = tracked([x], neg(exp(x)))
    old = fgraph.outputs[0].owner.inputs[0]
    new = silent(x)
    fgraph.replace(old, new, reason="test")
    assert is_shape_i(feature.shape_of[new][0], x, 0)
    assert is_shape_i(feature.shape_of[fgraph.outputs[0]][0], x, 0)


def test_shapes_that_rest_on_what_has_gone_are_worked_out_anew(x):
    quiet = silent(x)
    fgraph, feature = tracked([x], neg(exp(quiet)))
    out = fgraph.outputs[0]
    assert is_shape_i(feature.shape_of[out][0], quiet, 0)
    fgraph.replace(quiet, mul(x, x), reason="test")
    assert quiet.fgraph is None
    assert is_shape_i(feature.shape_of[out][0], x, 0)


def test_a_shape_that_was_a_variable_of_the_graph_does_not_bring_it_back(x):
    n, m = integer("n"), integer("m")
    length = add(n, m)
    out = exp(alloc(constant(1.0), length))
    fgraph, feature = tracked([n, m], out)
    assert feature.shape_of[out] == (length,)
    other = add(m, n)
    fgraph.replace(length, other, reason="test")
    assert feature.shape_of[out] == (other,)
    fgraph.add_output(feature.shape_of[out][0])
    assert length.owner not in fgraph.apply_nodes


def read_in_graph(fgraph, length):
    """Put a length into the graph and return the Applys that this adds."""
    before = set(fgraph.apply_nodes)
    fgraph.add_output(length)
    return set(fgraph.apply_nodes) - before


def test_lengths_follow_what_has_replaced_those_that_they_are_computed_from():
    n = integer("n")
    outs = [out := alloc(constant(0.0), n)]
    for _ in range(4):
        outs.append(out := Said(lambda node, shapes: [(mul(shapes[0][0], constant(3)),)])(out))
    fgraph, feature = tracked([n], *outs)
    feature.shape_of[outs[-1]]  # all are inferred, from one another
    for level, out in enumerate(fgraph.outputs[1:5], 1):
        (length,) = feature.shape_of[out]
        assert len(read_in_graph(fgraph, length)) == 1
        fgraph.replace(length, add(length.owner.inputs[0], n), reason="test")
        (current,) = feature.shape_of[out]
        assert current is fgraph.outputs[-1] and current.owner.op == add
        assert evaluate([current], {n: 5}) == [5 + 5 * level]
        assert feature.same_shape(out, out)


def test_lengths_follow_replacements_of_replacements_and_their_undoing():
    n, m = integer("n"), integer("m")
    length = add(n, m)
    filled = alloc(constant(1.0), length)
    twice = Said(lambda node, shapes: [(mul(shapes[0][0], constant(2)),)])(filled)
    fgraph, feature = tracked([n, m], filled, twice)
    feature.shape_of[twice]
    first, second = add(m, n), add(m, n, constant(0))
    fgraph.replace(length, first, reason="test")
    assert feature.shape_of[twice][0].owner.inputs[0] is first
    mark = fgraph.checkpoint()
    fgraph.replace(first, second, reason="test")
    assert feature.shape_of[filled] == (second,)
    assert feature.shape_of[twice][0].owner.inputs[0] is second
    fgraph.revert(mark)
    assert feature.shape_of[filled] == (first,)
    assert feature.shape_of[twice][0].owner.inputs[0] is first
    assert length.owner not in fgraph.apply_nodes


def test_what_comes_back_is_known_again(x):
    quiet = silent(x)
    fgraph, feature = tracked([x], neg(quiet))
    out = fgraph.outputs[0]
    feature.shape_of[out]
    mark = fgraph.checkpoint()
    fgraph.replace(quiet, mul(x, x), reason="test")
    assert is_shape_i(feature.shape_of[out][0], x, 0)
    fgraph.revert(mark)
    fgraph.check_integrity()
    assert feature.shape_of[quiet][0].owner.inputs[0].fgraph is fgraph
    assert feature.shape_of[out][0].owner.inputs[0].fgraph is fgraph


def test_variables_that_are_not_in_the_graph_yet_have_shapes(x):
    _, feature = tracked([x], exp(x))
    new = neg(silent(mul(x, x)))
    first, _ = feature.shape_of[new]
    assert is_shape_i(first, new.owner.inputs[0], 0)
    assert is_shape_i(feature.shape_of[dimshuffle(x, (1, 0))][0], x, 1)


# --- equality -------------------------------------------------------------------------------------


def test_same_shape(x):
    y, v = matrix("y"), vector("v")
    fgraph, feature = tracked([x, y, v], exp(x), add(x, y), dimshuffle(x, (1, 0)), neg(v))
    e, total, turned, w = fgraph.outputs
    assert feature.same_shape(x, e) and feature.same_shape(e, total)
    assert not feature.same_shape(x, y)
    assert not feature.same_shape(x, turned) and not feature.same_shape(x, w)
    assert feature.same_shape(x, turned, 0, 1) and not feature.same_shape(x, turned, 0, 0)
    assert feature.same_shape(w, v)
    assert same_shape(fgraph, x, e) and same_shape(fgraph, x, turned, dim_x=1, dim_y=0)


def test_lengths_are_equal_by_value_and_by_computation():
    n = integer("n")
    three, four = constant(np.int64(3)), constant(4)
    outs = [alloc(constant(0.0), k) for k in (three, constant(3), four, add(n, n), add(n, n), n)]
    fgraph, _ = tracked([n], *outs)
    a, b, c, d, e, f = fgraph.outputs
    assert same_shape(fgraph, a, b) and not same_shape(fgraph, a, c)
    assert same_shape(fgraph, d, e) and not same_shape(fgraph, d, f)
    assert not same_shape(fgraph, a, f)


def test_same_shape_without_tracking(x):
    assert same_shape(FunctionGraph([x], [exp(x)]), x, x) is False


# --- life of the feature --------------------------------------------------------------------------


def test_one_feature_a_graph(x):
    fgraph, feature = tracked([x], exp(x))
    fgraph.attach_feature(ShapeFeature())
    assert fgraph.shape_feature is feature
    fgraph.remove_feature(feature)
    assert fgraph.shape_feature is None


@pytest.mark.parametrize("copied", [FunctionGraph.clone, copy.deepcopy])
def test_a_copy_of_the_graph_has_a_feature_of_its_own(x, copied):
    fgraph, feature = tracked([x], exp(x))
    feature.shape_of[fgraph.outputs[0]]
    other = copied(fgraph)
    assert other.shape_feature is not feature
    assert is_shape_i(other.shape_feature.shape_of[other.outputs[0]][0], other.inputs[0], 0)


def test_a_graph_that_tracks_shapes_can_be_pickled(x):
    fgraph, feature = tracked([x], exp(x))
    feature.shape_of[fgraph.outputs[0]]
    other = pickle.loads(pickle.dumps(fgraph))
    assert is_shape_i(other.shape_feature.shape_of[other.outputs[0]][1], other.inputs[0], 1)


def test_forget_drops_what_was_worked_out(x):
    fgraph, feature = tracked([x], exp(x))
    before = feature.shape_of[fgraph.outputs[0]]
    feature.forget()
    after = feature.shape_of[fgraph.outputs[0]]
    assert before is not after and is_shape_i(after[0], x, 0)
