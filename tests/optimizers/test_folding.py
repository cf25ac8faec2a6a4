"""Constant folding."""

import numpy as np
import pytest
from checking import evaluate

from opwise import Apply, Constant, FunctionGraph, Op, generic
from opwise.optimizers import folding
from opwise.optimizers.folding import constant_folding
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.scalar.op import OPS
from opwise.tensor import Elemwise, alloc, arange, cast, constant
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

add, exp, mul, neg = map(elemwise, ["add", "exp", "mul", "neg"])
vector = tensor_type("float64", (False,))


def folded(*outputs, inputs=()):
    fgraph = FunctionGraph(list(inputs), list(outputs))
    EquilibriumOptimizer([constant_folding]).optimize(fgraph)
    fgraph.check_integrity()
    return fgraph.outputs


@pytest.mark.parametrize(
    "make",
    [
        lambda: add(constant(2), constant(3)),
        lambda: add(constant(np.float32(2)), constant([1.5, 2.5])),
        lambda: dimshuffle(constant([1.0, 2.0]), ("x", 0)),
        lambda: dimshuffle(constant([[1.0, 2.0]]), (1, 0)),
        lambda: cast(constant([1, 2, 3]), "float32"),
        lambda: exp(neg(constant(np.zeros((1, 2))))),
    ],
)
def test_values_types_and_patterns_are_kept(make):
    out = make()
    [new] = folded(out)
    assert isinstance(new, Constant)
    assert new.type == out.type
    assert new.data.dtype == out.type.dtype
    [expected] = evaluate([out], {})
    np.testing.assert_array_equal(new.data, expected)


def test_only_what_depends_on_constants_alone_is_folded():
    x = vector("x")
    [out] = folded(mul(x, exp(constant([0.0]))), inputs=[x])
    assert out.owner.op == mul
    assert out.owner.inputs[0].name == "x" and out.owner.inputs[1].data == 1.0


def test_a_tower_is_folded_from_the_inputs_up():
    out = constant(np.ones(3))
    for _ in range(300):
        out = neg(out)
    fgraph = FunctionGraph([], [out])
    record = EquilibriumOptimizer([constant_folding]).optimize(fgraph)
    assert not fgraph.apply_nodes
    assert record.rules[0].name == "topo_constant_folding"
    assert record.rules[0].applied == 300


class OfMine(Op):
    """Two outputs; ``perform`` does what the test says."""

    def __init__(self, does, fold=True):
        self.does, self.fold = does, fold

    def make_node(self, x):
        return Apply(self, [x], [x.type(), x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0], output_storage[1][0] = self.does(*inputs)

    def do_constant_folding(self, node):
        return self.fold


def test_all_outputs_are_folded():
    a, b = folded(*OfMine(lambda x: (x + 1, x * 2))(constant([3.0])))
    assert (a.data, b.data) == (4.0, 6.0)


def raising(x):
    raise ValueError("not for this value")


@pytest.mark.parametrize(
    "op",
    [
        OfMine(lambda x: (x + 1, x), fold=False),
        OfMine(raising),
        OfMine(lambda x: (x + 1, None)),
        OfMine(lambda x: (x, x.astype("float32"))),
        OfMine(lambda x: (x, np.ones((2, 2)))),
    ],
)
def test_what_cannot_be_folded_stays(op, caplog):
    a, b = folded(*op(constant([3.0, 4.0])))
    assert a.owner.op is op and b.owner is a.owner
    assert caplog.records == []


def test_an_op_without_perform_stays():
    class Other(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type()])

    [out] = folded(Other()(constant([1.0])))
    assert isinstance(out.owner.op, Other)


def test_an_op_without_inputs_stays():
    class Source(Op):
        def make_node(self):
            return Apply(self, [], [vector()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = np.zeros(1)

    [out] = folded(Source()())
    assert out.owner is not None


def test_values_of_any_type():
    class Pair(Op):
        def make_node(self, x):
            return Apply(self, [x], [generic()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = (inputs[0].item(), "two")

    [out] = folded(Pair()(constant(1)))
    assert out.data == (1, "two")


def test_constants_are_not_overwritten():
    value = constant(np.zeros(3))
    [out] = folded(Elemwise(OPS["exp"], {0: 0})(value))
    assert out.data.sum() == 3 and value.data.sum() == 0


def test_params_are_handed_to_perform():
    class WithParams(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def get_params(self, node):
            return 5.0

        def perform(self, node, inputs, output_storage, params):
            output_storage[0][0] = inputs[0] * params

    [out] = folded(WithParams()(constant([2.0])))
    assert out.data == 10.0


def test_a_part_does_not_keep_the_whole_in_memory():
    [out] = folded(dimshuffle(constant(np.ones((3, 2))), (1, 0)))
    assert out.data.base is None


# --- large results --------------------------------------------------------------------------------


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(folding, "LARGEST", 1500)


def row_and_column(n):
    return add(constant(np.ones((1, n))), constant(np.ones((n, 1))))


@pytest.mark.parametrize(
    ("make", "small", "large"),
    [
        (lambda n: neg(alloc(constant(1.0), constant(n), constant(2))), 700, 800),
        (lambda n: arange(constant(0), constant(n), constant(1)), 1500, 1501),
        (lambda n: arange(constant(0), add(constant(n), constant(1)), constant(1)), 1000, 1500),
        (lambda n: row_and_column(n), 35, 510),
    ],
)
def test_much_is_not_made_of_little(small_limit, make, small, large):
    assert isinstance(folded(make(small))[0], Constant)
    [left] = folded(make(large))
    assert left.owner is not None


def test_huge_results_are_never_computed():
    # 8 terabytes: trying would fail or worse
    huge = constant(10**6)
    [out] = folded(neg(alloc(constant(1.0), huge, huge)))
    assert out.owner.inputs[0].owner.op == alloc


def test_what_is_large_already_may_be_folded(small_limit):
    [out] = folded(neg(constant(np.ones(4000))))
    assert isinstance(out, Constant)
