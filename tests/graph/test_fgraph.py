"""FunctionGraph: clients and members, edits and how they are undone, features, origins, copies."""

import pickle
import random

import pytest

from opwise import Constant, FunctionGraph, Generic, generic
from opwise.errors import InconsistencyError, MissingInputError
from opwise.graph import traversal
from opwise.graph.features import (
    AlreadyThere,
    DestroyHandler,
    Feature,
    NodeFinder,
    NoOutputFromInplace,
    PreserveNames,
    defined,
)
from opwise.graph.fgraph import Interface

pytestmark = pytest.mark.null


@pytest.fixture
def graph(toy, leaves):
    """x, y, f(x), g(f, y), and the FunctionGraph [x, y] -> [g] that owns them."""
    x, y = leaves("xy")
    f = toy("f")(x)
    g = toy("g")(f, y)
    return x, y, f, g, FunctionGraph([x, y], [g], clone=False)


def text(fgraph):
    return str(fgraph)


# --- books ----------------------------------------------------------------------------------------


def test_clients_name_reader_and_position(graph, toy):
    x, y, f, g, fgraph = graph
    assert fgraph.clients(x) == [(f.owner, 0)]
    assert fgraph.clients(y) == [(g.owner, 1)]
    assert fgraph.clients(g) == [("output", 0)]
    assert fgraph.variables == {x, y, f, g}
    assert fgraph.apply_nodes == {f.owner, g.owner}
    fgraph.check_integrity()


def test_a_graph_is_copied_unless_clone_is_false(graph, toy, leaves):
    (x,) = leaves("x")
    out = toy("f")(x)
    fgraph = FunctionGraph([x], [out])
    assert fgraph.inputs[0] is not x and x.fgraph is None
    with pytest.raises(ValueError, match="already owned by another FunctionGraph"):
        FunctionGraph([graph[0]], [], clone=False)


@pytest.mark.parametrize(
    ("inputs", "outputs", "error", "message"),
    [
        ("xx", "g", ValueError, "listed twice: x"),
        ("fy", "g", ValueError, "is the output of a node"),
        ("x", "g", MissingInputError, "Input 1 of the graph .*used to compute g.f.0, y."),
        ("x", "y", MissingInputError, "Undeclared input: y"),
    ],
)
def test_inputs_are_checked(toy, leaves, inputs, outputs, error, message):
    x, y = leaves("xy")
    f = toy("f")(x)
    of = {"x": x, "y": y, "f": f, "g": toy("g")(f, y)}
    with pytest.raises(error, match=message) as caught:
        FunctionGraph([of[k] for k in inputs], [of[k] for k in outputs], clone=False)
    if error is MissingInputError:
        assert caught.value.variable is y


def test_an_output_may_be_added(graph, toy):
    _, _, f, _, fgraph = graph
    fgraph.add_output(toy("h")(f))
    assert text(fgraph) == "[g(*1 -> f(x), y), h(*1)]"
    fgraph.check_integrity()


def test_check_integrity_finds_wrong_clients_and_members(graph):
    x, _, f, _, fgraph = graph
    x._clients.clear()
    with pytest.raises(InconsistencyError, match="clients of x"):
        fgraph.check_integrity()
    fgraph.apply_nodes.discard(f.owner)
    with pytest.raises(InconsistencyError, match="it lacks"):
        fgraph.check_integrity()


def test_disown_releases_variables_and_applys(graph):
    x, y, f, g, fgraph = graph
    fgraph.disown()
    assert x.fgraph is f.fgraph is g.owner.fgraph is None
    FunctionGraph([x, y], [g], clone=False).check_integrity()


# --- edits ----------------------------------------------------------------------------------------


def test_replace_redirects_readers_and_removes_unused_applys(graph, toy):
    x, _, f, g, fgraph = graph
    h = toy("h")(x)
    fgraph.replace(f, h, reason="test")
    assert text(fgraph) == "[g(h(x), y)]"
    assert f.owner not in fgraph.apply_nodes and f.fgraph is None
    assert g.owner.inputs[0] is h
    fgraph.check_integrity()


def test_a_variable_may_be_replaced_by_a_function_of_itself(graph, toy):
    _, _, f, _, fgraph = graph
    fgraph.replace(f, toy("h")(f))
    assert text(fgraph) == "[g(h(f(x)), y)]"
    fgraph.check_integrity()


def test_an_output_is_replaced_too(graph):
    x, _, _, g, fgraph = graph
    fgraph.replace(g, x)
    assert fgraph.outputs == [x] and not fgraph.apply_nodes
    fgraph.check_integrity()


def test_an_unused_constant_leaves_the_graph(graph, toy):
    x, _, f, _, fgraph = graph
    three = Constant(generic, 3)
    h = toy("h")(x, three)
    fgraph.replace(f, h)
    assert three in fgraph.variables
    fgraph.replace(h, x)
    assert three not in fgraph.variables and three.fgraph is None
    fgraph.check_integrity()


class Special(Generic):
    """A type that is not generic."""


def test_a_replacement_must_have_the_type(graph):
    _, _, f, g, fgraph = graph
    other = Constant(Special(), 3)
    with pytest.raises(InconsistencyError, match="must be the same as the type of the original"):
        fgraph.replace(f, other, reason="test")
    with pytest.raises(TypeError, match="must be the same as the type of the original"):
        fgraph.change_input(g.owner, 0, other)
    fgraph.check_integrity()


def test_an_undeclared_leaf_is_refused_and_nothing_changes(graph, toy, leaves):
    _, _, f, _, fgraph = graph
    with pytest.raises(MissingInputError, match="not provided"):
        fgraph.replace(f, toy("h")(*leaves("z")))
    assert text(fgraph) == "[g(f(x), y)]"
    fgraph.check_integrity()


def test_an_import_that_fails_changes_nothing(graph, toy, leaves):
    """A constant of another graph is the last thing that is met."""
    x, _, f, _, fgraph = graph
    other = Constant(x.type, 1)
    owner = FunctionGraph([], [toy("k")(other)], clone=False)
    listener = Listener()
    fgraph.attach_feature(listener)
    first, alone = toy("h!", destroys=0)(x), Constant(x.type, 2)
    second = toy("i")(toy("j")(first, alone), other)
    with pytest.raises(ValueError, match="already owned by another FunctionGraph"):
        fgraph.replace(f, second)
    assert text(fgraph) == "[g(f(x), y)]" and not fgraph.has_destroyers
    assert listener.heard == ["+h! None", "+j None", "-j None", "-h! None"]
    assert first.fgraph is None and second.owner.fgraph is None and alone.fgraph is None
    fgraph.check_integrity()
    owner.disown()
    fgraph.replace(f, second)
    assert text(fgraph) == "[g(i(j(h!(x), Constant{2}), Constant{1}), y)]"
    fgraph.check_integrity()


def test_features_that_know_an_apply_hear_that_its_import_failed(graph, toy):
    class Raises(Feature):
        def on_import(self, fgraph, node, reason):
            raise ValueError("not here")

    x, _, f, _, fgraph = graph
    before, after = Listener(), NodeFinder()
    for feature in (before, Raises(), after):
        fgraph.attach_feature(feature)
    with pytest.raises(ValueError, match="not here"):
        fgraph.replace(f, toy("h")(x))
    assert before.heard == ["+h None", "-h None"]
    fgraph.check_integrity()


def test_a_graph_that_cannot_be_made_owns_nothing(toy, leaves):
    x, y = leaves("xy")
    out = toy("f")(x)
    with pytest.raises(MissingInputError):
        FunctionGraph([x], [out, toy("g")(out, y)], clone=False)
    FunctionGraph([x, y], [out, toy("g")(out, y)], clone=False).check_integrity()


class Refuse(Feature):
    """Refuses graphs with an Op of a certain name."""

    def __init__(self, name):
        self.name = name

    def validate(self, fgraph):
        if any(node.op.name == self.name for node in fgraph.apply_nodes):
            raise InconsistencyError(f"no {self.name}")


def test_an_invalid_replacement_is_undone(graph, toy):
    x, y, f, g, fgraph = graph
    fgraph.attach_feature(Refuse("bad"))
    with pytest.raises(InconsistencyError, match="no bad"):
        fgraph.replace_all_validate([(f, toy("good")(y)), (g, toy("bad")(g, x))])
    assert text(fgraph) == "[g(f(x), y)]"
    assert fgraph.consistent()
    fgraph.check_integrity()
    fgraph.replace_validate(f, toy("good")(y))
    assert text(fgraph) == "[g(good(y), y)]"


def test_a_cycle_shows_in_the_order_and_can_be_reverted(graph, toy):
    _, _, f, g, fgraph = graph
    mark = fgraph.checkpoint()
    fgraph.change_input(f.owner, 0, toy("h")(g))
    with pytest.raises(InconsistencyError, match="cycles"):
        fgraph.toposort()
    fgraph.revert(mark)
    assert text(fgraph) == "[g(f(x), y)]"
    fgraph.check_integrity()


def test_checkpoints_nest(graph, toy):
    x, y, f, _, fgraph = graph
    outer = fgraph.checkpoint()
    h = toy("h")(y)
    fgraph.replace(f, h)
    inner = fgraph.checkpoint()
    fgraph.replace(h, x)
    fgraph.release(inner)
    assert text(fgraph) == "[g(x, y)]"
    fgraph.revert(outer)
    assert text(fgraph) == "[g(f(x), y)]"
    fgraph.check_integrity()


def test_replace_all_validate_remove_raises_if_an_apply_stays(graph, toy):
    _, _, f, _, fgraph = graph
    with pytest.raises(InconsistencyError, match="was to be removed"):
        fgraph.replace_all_validate_remove([(f, toy("h")(f))], [f.owner])
    assert text(fgraph) == "[g(f(x), y)]"
    fgraph.replace_all_validate_remove([(f, toy("h")(f.owner.inputs[0]))], [f.owner])
    assert text(fgraph) == "[g(h(x), y)]"


def random_edit(rng, fgraph, toy):
    """Replace a random variable by another, or by the result of a new Apply."""
    variables = sorted(
        (v for v in fgraph.variables if v.owner is not None), key=lambda v: v.owner.op.name
    )
    old = rng.choice(variables)
    # variables that do not depend on the old one: a cycle cannot form
    safe = [v for v in variables if old not in traversal.ancestors([v])] + fgraph.inputs
    new = toy(f"n{rng.random()}")(*rng.choices(safe, k=2))
    fgraph.replace(old, rng.choice([new, rng.choice(safe)]))


@pytest.mark.parametrize("seed", range(8))
def test_random_edits_keep_the_graph_consistent_and_can_be_reverted(toy, seed):
    rng = random.Random(seed)
    pool = [generic(name) for name in "xyz"]
    inputs = list(pool)
    for i in range(20):
        pool += toy(f"f{i}", outs=rng.choice([1, 2]))(*rng.choices(pool, k=2), return_list=True)
    fgraph = FunctionGraph(inputs, pool[-3:], clone=False)
    before = text(fgraph)
    mark = fgraph.checkpoint()
    for _ in range(10):
        if not fgraph.apply_nodes:
            break
        random_edit(rng, fgraph, toy)
        fgraph.check_integrity()
        assert fgraph.toposort() == fgraph.toposort()
    assert text(fgraph) != before
    fgraph.revert(mark)
    fgraph.check_integrity()
    assert text(fgraph) == before


# --- origins --------------------------------------------------------------------------------------


def test_a_replacement_inherits_the_origins_of_what_it_replaces(graph, toy):
    x, _, f, g, fgraph = graph
    fused = toy("fused")(toy("part")(x))
    fgraph.replace(g, fused)
    assert set(fused.owner.origins) == {f.owner, g.owner}
    assert fused.owner.origins == fused.owner.inputs[0].owner.origins
    again = toy("again")(x)
    fgraph.replace(fused, again)
    assert set(again.owner.origins) == {f.owner, g.owner}


def test_each_replacement_inherits_from_those_whose_operands_it_reads(graph, toy):
    x, y, f, g, fgraph = graph
    part = toy("part")(x)
    whole = toy("whole")(part, y)
    fgraph.replace(g, whole)
    assert (part.owner.origins, whole.owner.origins) == ((f.owner,), (g.owner,))


def test_the_last_of_a_chain_inherits_what_joined_its_parts(toy, leaves):
    """Of products with one factor in common, each replacement does the one with its own factor."""
    common, *own = leaves("xabc")
    parts = [toy(f"p{k}")(common, each) for k, each in enumerate(own)]
    total = toy("sum")(*parts)
    fgraph = FunctionGraph([common, *own], [total], clone=False)
    chain = []
    for each in own:
        chain.append(toy("add")(*chain[-1:], common, each))
    fgraph.replace(total, chain[-1])
    expected = [{part.owner} for part in parts]
    expected[-1].add(total.owner)
    assert [set(each.owner.origins) for each in chain] == expected


def test_an_apply_that_stays_keeps_its_origin(graph, toy):
    x, _, f, g, fgraph = graph
    fgraph.replace(f, toy("h")(x))
    assert g.owner.origins == (g.owner,)


# --- features -------------------------------------------------------------------------------------


class Listener(Feature):
    """Records the calls of its methods."""

    def __init__(self):
        self.heard = []

    def on_attach(self, fgraph):
        if any(isinstance(f, Listener) for f in fgraph._features):
            raise AlreadyThere

    def on_detach(self, fgraph):
        self.heard.append("detach")

    def on_import(self, fgraph, node, reason):
        self.heard.append(f"+{node.op} {reason}")

    def on_prune(self, fgraph, node, reason):
        self.heard.append(f"-{node.op} {reason}")

    def on_change_input(self, fgraph, node, i, old, new, reason=None):
        self.heard.append(f"{node if node == 'output' else node.op}[{i}]: {old}->{new}")


def test_a_feature_is_called_for_every_change(graph, toy):
    x, _, f, g, fgraph = graph
    listener = Listener()
    fgraph.attach_feature(listener)
    fgraph.replace(f, toy("h")(x), reason="why")
    fgraph.replace(g, x)
    assert listener.heard == [
        "+h why", "g[0]: f.0->h.0", "-f why",
        "output[0]: g.0->x", "-g None", "-h None",
    ]  # fmt: skip
    fgraph.remove_feature(listener)
    fgraph.remove_feature(listener)
    assert listener.heard[-1] == "detach" and listener.heard.count("detach") == 1


def test_an_apply_may_get_another_op(graph, toy):
    """Its variables stay; features are called as if one Apply left and another came."""
    *_, f, g, fgraph = graph
    listener, finder = Listener(), NodeFinder()
    fgraph.attach_feature(listener)
    fgraph.attach_feature(finder)
    overwriting = toy("f!", destroys=0)
    old, edits = f.owner.op, fgraph.edits
    mark = fgraph.checkpoint()
    fgraph.change_op(f.owner, overwriting, reason="why")
    assert f.owner.op is overwriting and fgraph.outputs == [g]
    assert listener.heard == ["-f why", "+f! why"]
    assert finder.get_nodes(overwriting) == [f.owner] and not finder.get_nodes(old)
    assert fgraph.has_destroyers and fgraph.edits > edits
    assert overwriting in fgraph.ops().values()
    fgraph.check_integrity()
    fgraph.revert(mark)
    assert f.owner.op is old and not fgraph.has_destroyers
    assert list(fgraph.ops().values()) == [old, g.owner.op]
    fgraph.check_integrity()


def test_orders_are_cached_until_an_edit(graph, toy, monkeypatch):
    x, _, f, g, fgraph = graph
    genuine, calls = traversal.io_toposort, []

    def counted(*args):
        calls.append(args)
        return genuine(*args)

    monkeypatch.setattr(traversal, "io_toposort", counted)
    assert fgraph.toposort() == [f.owner, g.owner]
    fgraph.attach_feature(Listener())
    fgraph.change_input(g.owner, 1, x)  # no Apply computes either of them
    assert fgraph.toposort() == [f.owner, g.owner] and not calls, "known since the graph was made"
    fgraph.replace(f, toy("h")(x))
    assert [str(node.op) for node in fgraph.toposort()] == ["h", "g"]
    assert len(calls) == 2  # the new Applys, and all


def test_a_feature_may_raise_already_there(graph):
    *_, fgraph = graph
    first = Listener()
    fgraph.attach_feature(first)
    fgraph.attach_feature(Listener())
    assert [f for f in fgraph._features if isinstance(f, Listener)] == [first]
    fgraph.attach_feature(DestroyHandler())
    fgraph.attach_feature(DestroyHandler())
    assert sum(isinstance(f, DestroyHandler) for f in fgraph._features) == 1


def test_callbacks_by_name(graph):
    *_, fgraph = graph
    feature = Refuse("f")
    fgraph.attach_feature(feature)
    with pytest.raises(InconsistencyError):
        fgraph.execute_callbacks("validate")

    class Answers(Feature):
        def answer(self, fgraph, number):
            return number + 1

    answers = Answers()
    fgraph.attach_feature(answers)
    assert fgraph.collect_callbacks("answer", 1) == {answers: 2}


def test_a_feature_may_add_orderings(graph, toy):
    x, *_, fgraph = graph
    first, last = toy("first")(x), toy("last")(x)
    fgraph.add_output(first)
    fgraph.add_output(last)

    class Order(Feature):
        def orderings(self, fgraph):
            return {first.owner: [last.owner]}

    free = fgraph.toposort()
    fgraph.attach_feature(Order())
    order = fgraph.toposort()
    assert order.index(last.owner) < order.index(first.owner)
    assert set(order) == set(free)


def test_a_feature_may_call_the_methods_of_its_base_class(graph, toy):
    """They do nothing, and a graph does not call them for features that do not replace them."""

    class Careful(Feature):
        seen = 0

        def on_attach(self, fgraph):
            super().on_attach(fgraph)
            self.seen = len(fgraph.apply_nodes)

        def on_import(self, fgraph, node, reason):
            super().on_import(fgraph, node, reason)
            self.seen += 1

    x, _, f, _, fgraph = graph
    feature = Careful()
    fgraph.attach_feature(feature)
    fgraph.replace(f, toy("h")(x))
    assert feature.seen == 3 and not fgraph._callbacks["on_prune"] and not fgraph.orderings()
    assert [defined(feature, name) for name in ("on_prune", "orderings", "clone")] == [None] * 3
    feature.on_prune = lambda fgraph, node, reason: None
    assert defined(feature, "on_prune") is feature.on_prune
    fgraph.remove_feature(feature)
    assert not fgraph._callbacks["on_import"]


def test_a_graph_says_what_overwrites_a_variable(toy, leaves):
    (x,) = leaves("x")
    view = toy("v", views=0)(x)
    out = toy("f!", destroys=0)(view)
    fgraph = FunctionGraph([x], [out], clone=False)
    assert fgraph.destroyers(x) == fgraph.destroyers(view) == [out.owner]
    assert FunctionGraph([x], [toy("f")(x)]).destroyers(x) == []


def test_node_finder_follows_the_graph(graph, toy):
    x, _, f, _, fgraph = graph
    finder = NodeFinder()
    fgraph.attach_feature(finder)
    assert fgraph.get_nodes(toy("f")) == finder.get_nodes(toy("f")) == [f.owner]
    fgraph.attach_feature(NodeFinder())  # one is enough
    assert fgraph.get_nodes == finder.get_nodes
    copied = fgraph.clone()
    assert copied.get_nodes(toy("f")) == [n for n in copied.toposort() if n.op == toy("f")]
    h = toy("h")(x)
    fgraph.replace(f, h)
    assert finder.get_nodes(toy("f")) == []
    assert finder.get_nodes(toy("h")) == [h.owner]
    fgraph.remove_feature(finder)
    assert finder.get_nodes(toy("h")) == []


def test_preserve_names_names_replacements_without_a_name(graph, toy):
    x, _, f, g, fgraph = graph
    f.name, g.name = "eff", "gee"
    fgraph.attach_feature(PreserveNames())
    h = toy("h")(x)
    fgraph.replace(f, h)
    assert h.name == "eff"
    fgraph.replace(g, x)
    assert x.name == "x"


def test_preserve_names_leaves_leaves_unnamed(toy):
    x = generic()
    f = toy("f")(x)
    g = toy("g")(f)
    f.name = "eff"
    fgraph = FunctionGraph([x], [g], clone=False)
    fgraph.attach_feature(PreserveNames())
    fgraph.replace(f, x)
    assert g.owner.inputs == [x]
    assert x.name is None


def test_outputs_computed_in_place_may_be_refused(toy, leaves):
    x, y = leaves("xy")
    fgraph = FunctionGraph(
        [x, y], [toy("f")(x), toy("g")(y)], clone=False,
        interface=Interface(mutable=frozenset((x, y))),
    )  # fmt: skip
    fgraph.attach_feature(NoOutputFromInplace(1))
    fgraph.replace_validate(fgraph.outputs[0], toy("f", destroys=0)(x))
    with pytest.raises(InconsistencyError, match="output is made in place"):
        fgraph.replace_validate(fgraph.outputs[1], toy("v", views=0)(toy("g", destroys=0)(y)))
    assert not fgraph.outputs[1].owner.op.destroy_map


# --- copies ---------------------------------------------------------------------------------------


def test_a_clone_is_independent_and_has_the_features(graph, toy):
    x, _, f, g, fgraph = graph
    fgraph.interface = Interface(
        mutable=frozenset([x]), shared=frozenset([x]), persistent=frozenset([x]),
        borrowed=frozenset([0]), updates={0: 0},
    )  # fmt: skip
    fgraph.attach_feature(Refuse("bad"))
    new, equiv = fgraph.clone_get_equiv(check_integrity=True)
    assert text(new) == text(fgraph) and new.variables.isdisjoint(fgraph.variables)
    assert equiv[g] is new.outputs[0] and new.interface.mutable == {equiv[x]}
    assert new.interface.shared == new.interface.persistent == {equiv[x]}
    assert new.interface.borrowed == {0} and new.update_mapping == {0: 0}
    assert equiv[f.owner].origins == (f.owner,)
    with pytest.raises(InconsistencyError):
        new.replace_validate(equiv[f], toy("bad")(equiv[x]))
    fgraph.replace(f, x)
    assert text(new) == "[g(f(x), y)]"
    assert text(new.clone()) == "[g(f(x), y)]"


def test_a_graph_survives_pickling(graph):
    *_, fgraph = graph
    new = pickle.loads(pickle.dumps(fgraph))
    new.check_integrity()
    assert text(new) == text(fgraph)
    new.replace(new.outputs[0], new.inputs[0])
    new.check_integrity()


def test_the_order_does_not_depend_on_addresses(toy):
    def order():
        x = generic("x")
        layer = [x]
        for depth in range(4):
            layer = [toy(f"{depth}{i}")(*layer) for i in range(4)]
        return [node.op.name for node in FunctionGraph([x], layer, clone=False).toposort()]

    assert order() == order()
