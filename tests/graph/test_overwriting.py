"""Incremental checks of what Applys overwrite agree with checks of the whole graph."""

import random

import pytest

from opwise import FunctionGraph
from opwise.errors import InconsistencyError
from opwise.graph import aliasing, overwriting
from opwise.graph.features import DestroyHandler
from opwise.graph.fgraph import Interface

pytestmark = pytest.mark.null


def random_graph(rng, toy, leaves):
    """Return a random graph without destroyers, whose Applys read any variables before them."""
    inputs = leaves("xyz")
    found = list(inputs)
    for k in range(rng.randrange(4, 14)):
        op = toy(f"f{k}", views=rng.choice([None, None, 0]), outs=rng.choice([1, 1, 2]))
        made = op(*rng.choices(found, k=rng.choice([1, 1, 2])))
        found += made if isinstance(made, list) else [made]
    outputs = [found[-1], *rng.sample(found[3:], k=2)]
    mutable = frozenset(rng.sample(inputs, k=2))
    return FunctionGraph(inputs, outputs, clone=False, interface=Interface(mutable=mutable))


def random_edit(rng, fgraph, toy):
    """Return (a variable, a random replacement), which may be invalid or make a cycle."""
    order = fgraph.read_order()
    node = rng.choice(order)
    out = rng.choice(node.outputs)
    others = [*fgraph.inputs, *(v for n in order for v in n.outputs)]
    if rng.random() < 0.25:
        return out, rng.choice(others)
    inputs = list(node.inputs)
    if rng.random() < 0.4:
        inputs[rng.randrange(len(inputs))] = rng.choice(others)
    kind = rng.choice(["plain", "views", "destroys", "destroys"])
    known = {} if kind == "plain" else {kind: rng.randrange(len(inputs))}
    made = toy(f"g{rng.randrange(1000)}", outs=len(node.outputs), **known).make_node(*inputs)
    return out, made.outputs[out.index]


def verdict(check, *arguments):
    try:
        check(*arguments)
    except InconsistencyError:
        return False
    return True


@pytest.mark.parametrize("seed", range(150))
def test_each_edit_is_judged_as_by_a_check_of_the_whole_graph(toy, leaves, seed):
    rng = random.Random(seed)
    fgraph = random_graph(rng, toy, leaves)
    handler = DestroyHandler()
    fgraph.attach_feature(handler)
    for _ in range(40):
        if not fgraph.apply_nodes:
            break
        old, new = random_edit(rng, fgraph, toy)
        mark = fgraph.checkpoint()
        fgraph.replace_all([(old, new)])
        allowed = verdict(aliasing.check, fgraph)
        checked = fgraph.has_destroyers
        fgraph.revert(mark)
        if not checked and not allowed:
            continue  # a cycle that has nothing to do with memory
        assert verdict(fgraph.replace_validate, old, new) == allowed, (old, new)
        aliasing.check(fgraph)
        fgraph.check_integrity()
        if rng.random() < 0.2 and fgraph.apply_nodes:
            change_an_op(rng, fgraph, toy)


def change_an_op(rng, fgraph, toy):
    """Let an Apply overwrite or view an input, or no longer; leave it if that is invalid."""
    node = rng.choice(fgraph.read_order())
    former = node.op
    known = rng.choice([{}, {"views": 0}, {"destroys": 0}])
    fgraph.change_op(node, toy("c", outs=len(node.outputs), **known))
    allowed = verdict(aliasing.check, fgraph)
    assert verdict(fgraph.validate) == allowed
    if not allowed:
        fgraph.change_op(node, former)


def test_ranks_without_a_float_between_them_are_made_again(toy, leaves, monkeypatch):
    (x,) = leaves("x")
    fgraph = FunctionGraph([x], [toy("d", destroys=0)(toy("f")(x))], [DestroyHandler()], False)
    fgraph.validate()
    wholes = []
    whole = aliasing.check
    monkeypatch.setattr(aliasing, "check", lambda graph: wholes.append(1) or whole(graph))
    for k in range(150):  # always between the last one and the end
        before = fgraph.outputs[0].owner.inputs[0]
        fgraph.replace_validate(before, toy(f"f{k}")(toy("g")(x) if k == 0 else before))
    assert len(fgraph.apply_nodes) > 2
    assert len(wholes) <= 5


@pytest.mark.parametrize("where", ["front", "back"])
@pytest.mark.parametrize("kind", ["chain", "one memory", "fan"])
def test_an_edit_is_checked_around_it_only(toy, leaves, monkeypatch, kind, where):
    """The Applys that are looked at do not grow with the graph."""
    looked_at = []
    for name in ("_later", "_earlier", "_destroyers_after"):
        genuine = getattr(overwriting.OverwriteChecker, name)

        def counted(self, node, genuine=genuine):
            looked_at.append(node)
            return genuine(self, node)

        monkeypatch.setattr(overwriting.OverwriteChecker, name, counted)

    def count(n):
        x, y = leaves("xy")
        var, made = x, []
        for _ in range(n):
            if kind == "fan":
                made.append(toy("f")(x))
            else:
                var = toy("d", destroys=0)(toy("f")(var) if kind == "chain" else var)
                made.append(var)
        outputs = [toy("d", destroys=0)(x), *made] if kind == "fan" else [var]
        fgraph = FunctionGraph([x, y], outputs, [DestroyHandler()], False)
        fgraph.validate()
        looked_at.clear()
        for out in made if where == "front" else reversed(made):
            fgraph.replace_validate(out, out.owner.op(*out.owner.inputs[:-1], out.owner.inputs[-1]))
        return len(looked_at)

    assert count(200) <= 2.1 * count(100)
