"""Merging of equal Applys and constants."""

import numpy as np
import pytest

from opwise import Apply, FunctionGraph, Op
from opwise.graph.features import DestroyHandler
from opwise.optimizers import merge
from opwise.optimizers.merge import MergeOptimizer
from opwise.scalar.op import OPS
from opwise.tensor import Elemwise, constant
from opwise.tensor.elemwise import bare, elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

vector = tensor_type("float64", (False,))
add, exp, mul, neg = map(elemwise, ["add", "exp", "mul", "neg"])


@pytest.fixture
def x():
    return vector("x")


def merged(inputs, *outputs, features=()):
    fgraph = FunctionGraph(list(inputs), list(outputs), features=features)
    record = MergeOptimizer().optimize(fgraph)
    fgraph.check_integrity()
    return fgraph, record.counts


def test_equal_applys_become_one(x):
    fgraph, counts = merged([x], add(exp(neg(x)), exp(neg(x))))
    assert [node.op for node in fgraph.toposort()] == [neg, exp, add]
    assert fgraph.outputs[0].owner.inputs[0] is fgraph.outputs[0].owner.inputs[1]
    assert counts == {"merged": 2, "constants": 0, "failures": 0}


def test_a_chain_of_equal_applys_is_merged_in_one_walk(x):
    a, b = x, x
    for _ in range(200):
        a, b = exp(a), exp(b)
    fgraph, counts = merged([x], add(a, b))
    assert len(fgraph.apply_nodes) == 201
    assert counts["merged"] == 200


def test_the_order_of_operands_counts(x):
    y = vector("y")
    fgraph, _ = merged([x, y], mul(add(x, y), add(y, x)))
    assert len(fgraph.apply_nodes) == 3


def test_ops_are_compared_not_names(x):
    fgraph, _ = merged([x], mul(exp(x), bare("exp")(x)))
    assert len(fgraph.apply_nodes) == 2


def test_constants_merge_by_type_and_bits(x):
    parts = [
        constant([1.0]),
        constant([1.0]),
        constant(np.array([1.0], "float32")),
        constant(np.array([1], "int64")),
        constant([0.0]),
        constant([-0.0]),
        constant([np.nan]),
        constant([np.nan]),
        constant(1.0, dtype="float64"),
    ]
    fgraph, counts = merged([x], *(add(x, part) for part in parts))
    assert counts["constants"] == 2
    operands = [out.owner.inputs[1] for out in fgraph.outputs]
    assert operands[0] is operands[1] and operands[6] is operands[7]
    assert len(set(operands)) == 6 + (operands[8].owner is not None)


def test_a_graph_that_was_merged_is_looked_at_again_only_when_it_changed(x, monkeypatch):
    looks = []
    genuine = merge._equal_things
    monkeypatch.setattr(merge, "_equal_things", lambda g: looks.append(g) or genuine(g))
    fgraph = FunctionGraph([x], [add(exp(x), exp(x)), neg(x)])
    for _ in range(3):
        MergeOptimizer().optimize(fgraph)
    assert len(looks) == 1 and len(fgraph.apply_nodes) == 3
    fgraph.replace(fgraph.outputs[1], exp(fgraph.inputs[0]))
    MergeOptimizer().optimize(fgraph)
    assert len(looks) == 2 and len(fgraph.apply_nodes) == 2


def test_outputs_may_become_the_same_variable(x):
    fgraph, _ = merged([x], exp(x), exp(x), constant([1.0]), constant([1.0]))
    assert fgraph.outputs[0] is fgraph.outputs[1]
    assert fgraph.outputs[2] is fgraph.outputs[3]


def test_a_name_is_handed_on(x):
    first, second = exp(x), exp(x)
    second.name = "result"
    fgraph, _ = merged([x], first, second)
    assert fgraph.outputs[0].name == "result"


def test_origins_are_united(x):
    fgraph = FunctionGraph([x], [exp(x), exp(x), neg(x)])
    nodes = [out.owner for out in fgraph.outputs]
    MergeOptimizer().optimize(fgraph)
    assert set(fgraph.outputs[0].owner.origins) == set(nodes[:2])
    assert fgraph.outputs[2].owner.origins == (nodes[2],)


def test_what_is_kept_never_leaves_the_graph_in_between(x):
    """Applys that are merged have operands that are merged, in an unhelpful order."""
    pruned = []

    class Log:
        def on_prune(self, fgraph, node, reason):
            pruned.append(node)

    def tower():
        return exp(add(neg(x), neg(x)))

    fgraph = FunctionGraph([x], [mul(tower(), tower()), tower()], features=[Log()])
    MergeOptimizer().optimize(fgraph)
    fgraph.check_integrity()
    assert len(fgraph.apply_nodes) == 4
    assert not fgraph.apply_nodes & set(pruned)


class Typed(Op):
    """An Op whose output type is not a function of its inputs."""

    __props__ = ()

    def make_node(self, x, pattern):
        return Apply(self, [x], [tensor_type("float64", pattern).make_variable()])


def test_applys_of_different_types_stay_apart(x):
    fgraph, counts = merged([x], Typed()(x, (True,)), Typed()(x, (False,)))
    assert counts["merged"] == 0 and len(fgraph.apply_nodes) == 2


def test_a_merge_that_would_read_a_destroyed_value_is_left(x):
    # neg overwrites the first exp, and its reader needs the value of the second
    overwrite = Elemwise(OPS["neg"], {0: 0})
    shared = add(x, x)
    fgraph, counts = merged(
        [x],
        mul(overwrite(exp(shared)), exp(shared)),
        mul(shared, shared),
        mul(shared, shared),
        features=[DestroyHandler()],
    )
    assert counts["failures"] == 1
    assert fgraph.outputs[1] is fgraph.outputs[2]
    assert fgraph.consistent()


def test_nothing_to_merge(x):
    fgraph, counts = merged([x], exp(x))
    assert counts == {"merged": 0, "constants": 0, "failures": 0}
    assert len(fgraph.apply_nodes) == 1
