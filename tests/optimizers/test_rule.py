"""Declaring rules, what they look at, and rules written as patterns."""

import gc
import pickle
import threading
import weakref

import pytest
from checking import check_rewrite

from opwise import Apply, FunctionGraph, Op, OpFromGraph
from opwise.graph.fgraph import Interface
from opwise.optimizers import rule as rules
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.pattern import OpRemove, OpSub, PatternSub
from opwise.optimizers.rule import LocalOptGroup, LocalOptimizer, RuleIndex, local_optimizer, rule
from opwise.scalar.op import OPS
from opwise.tensor import DimShuffle, Elemwise, constant
from opwise.tensor.elemwise import bare, elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

vector = tensor_type("float64", (False,))
add, exp, log, mul, neg, sub = map(elemwise, ["add", "exp", "log", "mul", "neg", "sub"])


class Identity(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].copy()


class Both(Op):
    """Two outputs of two inputs."""

    __props__ = ()

    def make_node(self, x, y):
        return Apply(self, [x, y], [x.type(), y.type()])


identity = Identity()


def rewritten(rewrite, inputs, *outputs):
    fgraph = FunctionGraph(list(inputs), list(outputs), interface=Interface())
    EquilibriumOptimizer([rewrite]).optimize(fgraph)
    fgraph.check_integrity()
    return fgraph


@pytest.fixture
def x():
    return vector("x")


@pytest.fixture
def y():
    return vector("y")


# --- what a rule looks at -------------------------------------------------------------------------


inplace_log = Elemwise(OPS["log"], {0: 0})


@pytest.mark.parametrize(
    ("tracked", "op", "looks"),
    [
        (log, log, True),
        (log, bare("log"), True),
        (log, inplace_log, False),
        (log, exp, False),
        (Elemwise, log, True),
        (Elemwise, identity, False),
        (Op, identity, True),
        (Identity, identity, True),
        (Identity(), identity, True),
        ("row:log", log, True),
        ("row:log", inplace_log, True),
        ("row:log", exp, False),
        ("row:log", identity, False),
        (OPS["log"], inplace_log, True),
        (OPS["log"], exp, False),
        (type(OPS["log"]), inplace_log, True),
        (type(OPS["log"]), exp, False),
        (DimShuffle, log, False),
    ],
)
def test_what_is_tracked(tracked, op, looks):
    made = rule(tracked)(lambda fgraph, node: None)
    assert bool(RuleIndex([made])[op].calls) == looks


def test_a_rule_that_tracks_nothing_in_particular_sees_all_ops():
    made = rule()(lambda fgraph, node: None)
    assert made.tracks() is None
    assert [r for r, _ in RuleIndex([made])[identity].calls] == [made]


def test_the_index_keeps_the_order_of_the_rules():
    first = rule(Elemwise)(lambda fgraph, node: None)
    second = rule("row:exp")(lambda fgraph, node: None)
    third = rule(exp)(lambda fgraph, node: None)
    index = RuleIndex([third, first, second])
    assert [r for r, _ in index[exp].calls] == [third, first, second]
    assert index[exp] is index[bare("exp")]


def test_the_index_forgets_when_there_are_very_many_ops(monkeypatch):
    monkeypatch.setattr(RuleIndex, "LIMIT", 3)
    index = RuleIndex([])
    for name in ("add", "exp", "log", "mul", "neg"):
        index[elemwise(name)]
    assert list(index) == [elemwise(name) for name in ("log", "mul", "neg")]


def test_the_index_keeps_no_op_for_its_id():
    index = RuleIndex([rule(Elemwise)(lambda fgraph, node: None)])
    first = elemwise("add")
    rules = index.of(first)
    for _ in range(3):
        again = pickle.loads(pickle.dumps(first))
        assert again is not first and index.of(again) is rules and len(index.by_id) == 2
        del again
        gc.collect()
        assert list(index.by_id) == [id(first)] and len(index) == 1


# --- forms of rules and of results ----------------------------------------------------------------


def test_the_index_keeps_no_op_with_a_graph_inside(x):
    """A compiled function, with the values of its shared variables, may hang on it."""
    index = RuleIndex([rule(OpFromGraph)(lambda fgraph, node: None)])
    first, second = (OpFromGraph([x], [x + 1]) for _ in range(2))
    assert index.of(first).calls and index.of(first) is index.of(first)
    assert index.of(second) is not index.of(first)
    seen = weakref.ref(first)
    del first
    gc.collect()
    assert seen() is None and len(index) == len(index.by_id) == 1


def test_a_rule_replaces_the_output(x):
    @rule("row:log")
    def log_of_exp(fgraph, node):
        """The logarithm of an exponential is its operand."""
        inner = node.inputs[0].owner
        return [inner.inputs[0]] if inner and inner.op == exp else None

    assert str(log_of_exp) == "log_of_exp"
    assert log_of_exp.__doc__.startswith("The logarithm")
    fgraph = rewritten(log_of_exp, [x], log(exp(neg(x))))
    assert [n.op for n in fgraph.toposort()] == [neg]


def test_a_legacy_rule_takes_the_apply_alone(x):
    @local_optimizer([Identity, log])
    def drop(node):
        if isinstance(node.op, Identity):
            return [node.inputs[0]]
        return False

    assert str(rewritten(drop, [x], log(identity(x)))) == "[Elemwise{log,no_inplace}(x)]"
    node = identity(x).owner
    assert drop.transform(node) == [x]
    assert drop.fn(node) == [x]
    assert drop.tracks() == (Identity, log)


def test_a_legacy_class_defines_transform_and_tracks(x):
    class Drop(LocalOptimizer):
        def tracks(self):
            return [identity]

        def transform(self, node):
            return node.inputs

    assert str(rewritten(Drop(), [x], log(identity(x)))) == "[Elemwise{log,no_inplace}(x)]"


def test_local_optimizer_refuses_what_is_no_op():
    with pytest.raises(ValueError, match="Use None instead of an empty list"):
        local_optimizer([])(lambda node: None)
    with pytest.raises(ValueError, match="Tracks are op classes or instances, not 3"):
        local_optimizer([3])


def test_inplace_rules_let_the_graph_check_destroyers(x):
    @local_optimizer([exp], inplace=True)
    def in_place(node):
        return [Elemwise(node.op.scalar_op, {0: 0})(*node.inputs)]

    fgraph = rewritten(in_place, [x], exp(neg(x)), exp(x))
    # the input is not to be overwritten, so the second replacement is declined
    assert fgraph.outputs[0].owner.op.destroy_map == {0: [0]}
    assert fgraph.outputs[1].owner.op == exp


def test_none_leaves_one_of_several_outputs(x, y):
    @rule(Both)
    def first_output(fgraph, node):
        return [node.inputs[0], None]

    a, b = Both()(x, y)
    fgraph = rewritten(first_output, [x, y], neg(a), neg(b))
    assert fgraph.outputs[0].owner.inputs[0] is fgraph.inputs[0]
    assert isinstance(fgraph.outputs[1].owner.inputs[0].owner.op, Both)


def test_a_dict_replaces_any_variables(x):
    @rule("row:add")
    def swap(fgraph, node):
        inner = node.inputs[0]
        return {inner: node.inputs[1]} if inner.owner and inner.owner.op == exp else None

    fgraph = rewritten(swap, [x], add(exp(x), neg(x)), log(exp(x)))
    swapped = fgraph.outputs[0].owner
    assert swapped.op == add and [v.owner.op for v in swapped.inputs] == [neg, neg]


@pytest.mark.parametrize("others_read_it", [True, False])
def test_remove_makes_a_replacement_depend_on_what_goes(x, others_read_it):
    @rule("row:neg")
    def drop(fgraph, node):
        inner = node.inputs[0].owner
        if not inner:
            return None
        return {node.outputs[0]: inner.inputs[0], "remove": [inner]}

    kept = exp(x)
    outputs = [neg(kept), kept] if others_read_it else [neg(kept)]
    fgraph = rewritten(drop, [x], *outputs)
    assert (fgraph.outputs[0] is fgraph.inputs[0]) == (not others_read_it)


def test_a_group_takes_the_first_rule_that_has_something(x):
    tried = []

    def named(name, *result):
        @rule("row:exp", name=name)
        def one(fgraph, node):
            tried.append(name)
            return [op(node.inputs[0]) for op in result]

        return one

    group = LocalOptGroup(named("a"), named("b", neg), named("c", log))
    assert str(group) == "a,b,c"
    assert group.tracks() == ["row:exp"] * 3
    assert rewritten(group, [x], exp(x)).outputs[0].owner.op == neg
    assert tried == ["a", "b"]


# --- stages ---------------------------------------------------------------------------------------


def test_a_rule_declares_its_stages(monkeypatch):
    monkeypatch.setattr(rules, "declarations", rules.Declarations())

    @rule(exp, stage=("canonicalize", "specialize"), tags=("fast_run", "mine"))
    def one(fgraph, node): ...

    @rule(exp, stage={"canonicalize": ("fast_compile",), "stabilize": ()}, name="second")
    def two(fgraph, node): ...

    @rule(exp)
    def three(fgraph, node): ...

    assert [(d.stage, d.name, d.what, d.tags) for d in rules.declarations.waiting] == [
        ("canonicalize", "one", one, ("fast_run", "mine")),
        ("specialize", "one", one, ("fast_run", "mine")),
        ("canonicalize", "second", two, ("fast_compile",)),
        ("stabilize", "second", two, ()),
    ]
    assert {d.module for d in rules.declarations.waiting} == {__name__}


def declaration(name):
    return rules.Declaration("canonicalize", name, None, (), {}, __name__)


def test_no_declaration_is_lost_while_the_pipeline_takes_them():
    declarations, joined = rules.Declarations(), []

    def declare_many():
        for k in range(500):
            declarations.add(declaration(str(k)))

    threads = [threading.Thread(target=declare_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    declarations.take(joined.append)
    for thread in threads:
        thread.join()
    assert len(joined) == 2000 and not declarations.waiting


def test_declarations_wait_for_a_pipeline_that_takes_them():
    declarations, joined = rules.Declarations(), []
    for name in "ba":
        declarations.add(declaration(name))
    with pytest.raises(ZeroDivisionError):
        declarations.take(lambda one: 1 / 0)
    declarations.take(joined.append)
    declarations.add(declaration("0"))
    assert [one.name for one in joined] == ["b", "a", "0"]


# --- patterns -------------------------------------------------------------------------------------


def test_op_sub_and_op_remove(x):
    fgraph = rewritten(OpSub(identity, neg), [x], log(identity(x)))
    assert [n.op for n in fgraph.toposort()] == [neg, log]
    fgraph = rewritten(OpRemove(identity), [x], log(identity(identity(x))))
    assert [n.op for n in fgraph.toposort()] == [log]


def test_op_remove_needs_as_many_inputs_as_outputs(x, y):
    with pytest.raises(ValueError, match="as many inputs as outputs"):
        OpRemove(add).transform(add(x, y).owner)


one = constant([1.0])


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        ((log, (exp, "a")), "a", lambda x, y: log(exp(x))),
        ((sub, "a", "a"), (mul, "a", 0.0), lambda x, y: sub(x, x)),
        ((add, (neg, "a"), "b"), (sub, "b", "a"), lambda x, y: add(y, neg(x))),
        ((add, 1, "a"), (add, "a", 1.0), lambda x, y: add(x, one)),
        ((mul, one, "a"), "a", lambda x, y: mul(x, one)),
        (
            {"pattern": (exp, "a"), "constraint": lambda var: var.name is None},
            (neg, (neg, (exp, "a"))),
            lambda x, y: exp(x),
        ),
    ],
)
def test_a_pattern_is_found_and_rebuilt(x, y, before, after, fits):
    out = fits(x, y)
    [new] = PatternSub(before, after).transform(out.owner)
    assert new is not out
    assert new.type == out.type


@pytest.mark.parametrize(
    ("before", "misses"),
    [
        ((log, (exp, "a")), lambda x, y: log(neg(x))),
        ((log, (exp, "a")), lambda x, y: log(x)),
        ((sub, "a", "a"), lambda x, y: sub(x, y)),
        ((sub, (neg, "a"), "b"), lambda x, y: sub(x, neg(y))),
        ((add, 1, "a"), lambda x, y: add(x, constant([2.0]))),
        ((add, 1, "a"), lambda x, y: add(x, y)),
        ({"pattern": (exp, "a"), "constraint": lambda var: False}, lambda x, y: exp(x)),
    ],
)
def test_a_pattern_that_is_not_there(x, y, before, misses):
    assert PatternSub(before, "a").transform(misses(x, y).owner) is None


def test_a_pattern_leaves_what_others_read_too(x):
    pattern = ((log, (exp, "a")), (neg, (neg, "a")))
    shared = exp(x)
    kept = rewritten(PatternSub(*pattern), [x], log(shared), neg(shared))
    assert kept.outputs[0].owner.op == log
    anyway = rewritten(PatternSub(*pattern, allow_multiple_clients=True), [x], log(shared), shared)
    assert anyway.outputs[0].owner.op == neg


def test_a_pattern_does_not_change_the_type(x):
    single = tensor_type("float32", (False,))("s")
    made = add(single, constant([0.0]))
    assert made.type != single.type
    assert PatternSub((add, "a", 0.0), "a").transform(made.owner) is None


def test_a_pattern_starts_with_an_op():
    with pytest.raises(TypeError, match="must start with a specific Op instance"):
        PatternSub("a", "b")
    with pytest.raises(TypeError, match="must start with a specific Op instance"):
        PatternSub((Identity, "a"), "a")


def test_patterns_keep_values(x):
    import numpy as np

    pattern = PatternSub((add, (neg, "a"), "b"), (sub, "b", "a"), name="add_neg")
    assert str(pattern) == "add_neg"
    y = vector("y")
    values = [np.arange(3.0), np.ones(3)]
    fgraph = check_rewrite(pattern, [x, y], [exp(add(neg(x), y))], values)
    assert [n.op for n in fgraph.toposort()] == [sub, exp]
