"""View and destroy maps: which variables share memory, orderings, and what is forbidden."""

import pytest

from opwise import Constant, FunctionGraph
from opwise.errors import InconsistencyError
from opwise.graph import aliasing
from opwise.graph.features import DestroyHandler
from opwise.graph.fgraph import Interface

pytestmark = pytest.mark.null


@pytest.fixture
def build(leaves):
    """A function from a graph builder to (variables by name, FunctionGraph with mutable inputs)."""

    def make(builder):
        x, y = leaves("xy")
        found = {"x": x, "y": y}
        outputs = builder(x, y, found)
        interface = Interface(mutable=frozenset((x, y)))
        fgraph = FunctionGraph([x, y], outputs, clone=False, interface=interface)
        return found, fgraph

    return make


@pytest.fixture
def chain(toy, build):
    """view = v(x), changed = d(view) in place, read = r(x), plus an independent f(y)."""

    def builder(x, y, found):
        view = found["view"] = toy("v", views=0)(x)
        found["changed"] = toy("d", destroys=0)(view)
        found["read"] = toy("r")(x)
        found["other"] = toy("f")(y)
        return [found["changed"], found["read"], found["other"]]

    return build(builder)


def test_root_follows_views_and_destroyed_inputs(chain):
    of, fgraph = chain
    assert aliasing.parent(of["view"]) is of["x"]
    assert aliasing.parent(of["x"]) is aliasing.parent(of["read"]) is None
    assert aliasing.root(of["changed"]) is of["x"]
    assert aliasing.root(of["other"]) is of["other"]
    groups = aliasing.groups(fgraph)
    assert {name: groups[of[name]] is of["x"] for name in of} == {
        "x": True, "y": False, "view": True, "changed": True, "read": False, "other": False,
    }  # fmt: skip


def test_members_are_the_same_from_every_member(chain):
    of, fgraph = chain
    expected = {of["x"], of["view"], of["changed"]}
    for name in ("x", "view", "changed"):
        assert set(aliasing.members(fgraph, of[name])) == expected
    assert aliasing.members(fgraph, of["read"]) == [of["read"]]


def test_readers_run_before_the_memory_is_overwritten(chain):
    of, fgraph = chain
    assert aliasing.destroyed_inputs(of["changed"].owner) == [0]
    before = aliasing.orderings(fgraph)
    assert list(before) == [of["changed"].owner]
    assert set(before[of["changed"].owner]) == {of["view"].owner, of["read"].owner}
    order = fgraph.toposort()
    assert order.index(of["read"].owner) < order.index(of["changed"].owner)
    aliasing.check(fgraph)


def test_readers_of_the_result_need_not_run_before(toy, build):
    def builder(x, y, found):
        found["changed"] = toy("d", destroys=0)(x)
        found["view"] = toy("v", views=0)(found["changed"])
        return [toy("r")(found["view"])]

    _, fgraph = build(builder)
    assert aliasing.orderings(fgraph) == {}
    aliasing.check(fgraph)


def test_orderings_name_only_readers_of_the_same_version(toy, build):
    """Readers of earlier versions come first because of the Applys between: lists stay short."""
    n = 3000

    def builder(x, y, found):
        reads = []
        for k in range(n):
            found[f"x{k}"] = x
            view = toy("v", views=0)(x)
            reads.append(toy("r")(view))
            x = found[f"d{k}"] = toy("d", destroys=0)(x)
        return [x, *reads]

    of, fgraph = build(builder)
    before = aliasing.orderings(fgraph)
    assert sum(map(len, before.values())) == 2 * n
    order = {node: i for i, node in enumerate(fgraph.toposort())}
    for destroyer, readers in before.items():
        assert {str(node.op) for node in readers} == {"v", "r"}
        assert all(order[reader] < order[destroyer] for reader in readers)
    assert order[of["d0"].owner] < order[of[f"d{n - 1}"].owner]


def test_a_constant_and_a_protected_input_must_not_be_destroyed(toy, build):
    _, fgraph = build(lambda x, y, found: [toy("d", destroys=0)(toy("v", views=0)(x))])
    aliasing.check(fgraph)
    fgraph.interface = Interface()
    with pytest.raises(InconsistencyError, match=r"destroy a protected Variable: v.0 by d"):
        aliasing.check(fgraph)
    three = Constant(fgraph.inputs[0].type, 3)
    _, fgraph = build(lambda x, y, found: [toy("d", destroys=0)(three)])
    with pytest.raises(InconsistencyError, match="protected Variable: Constant"):
        aliasing.check(fgraph)


def test_two_applys_must_not_destroy_the_same_variable(toy, build):
    def twice(x, y, found):
        return [toy("a", destroys=0)(x), toy("b", destroys=0)(x)]

    with pytest.raises(InconsistencyError, match="destroyed by two Applys"):
        aliasing.check(build(twice)[1])

    def through_a_view(x, y, found):
        return [toy("a", destroys=0)(x), toy("b", destroys=0)(toy("v", views=0)(x))]

    with pytest.raises(InconsistencyError, match="cycles"):
        aliasing.check(build(through_a_view)[1])

    def one_after_the_other(x, y, found):
        return [toy("b", destroys=0)(toy("a", destroys=0)(x))]

    aliasing.check(build(one_after_the_other)[1])


def test_a_value_that_is_needed_later_must_not_be_destroyed(toy, build):
    def builder(x, y, found):
        changed = toy("d", destroys=0)(x)
        return [toy("g")(changed, x)]

    with pytest.raises(InconsistencyError, match="cycles"):
        aliasing.check(build(builder)[1])


@pytest.mark.parametrize("through_a_view", [False, True])
def test_an_apply_must_not_read_what_it_destroys(toy, build, through_a_view):
    def builder(x, y, found):
        other = toy("v", views=0)(x) if through_a_view else x
        return [toy("d", destroys=0)(x, other)]

    with pytest.raises(InconsistencyError, match=r"destroys its input 0 .* its input 1"):
        aliasing.check(build(builder)[1])


def test_an_op_may_tolerate_overlapping_inputs(toy, build):
    def same(x, y, found):
        op = toy("d", destroys=0)
        op.destroyhandler_tolerate_same = [(0, 1)]
        return [op(x, x)]

    aliasing.check(build(same)[1])

    def view(x, y, found, **tolerated):
        op = toy("d", destroys=0)
        vars(op).update(tolerated)
        return [op(x, toy("v", views=0)(x))]

    with pytest.raises(InconsistencyError, match="Input aliasing"):
        aliasing.check(build(lambda *a: view(*a, destroyhandler_tolerate_same=[(0, 1)]))[1])
    aliasing.check(build(lambda *a: view(*a, destroyhandler_tolerate_aliased=[(0, 1)]))[1])


def test_the_handler_checks_every_edit(toy, build):
    def builder(x, y, found):
        found["f"] = toy("f")(x)
        return [found["f"], toy("r")(x)]

    of, fgraph = build(builder)
    fgraph.attach_feature(DestroyHandler())
    assert not fgraph.has_destroyers
    fgraph.replace_validate(of["f"], toy("f", destroys=0)(of["x"]))
    assert fgraph.has_destroyers
    with pytest.raises(InconsistencyError, match="two Applys"):
        fgraph.replace_validate(fgraph.outputs[1], toy("r", destroys=0)(of["x"]))
    fgraph.check_integrity()
    assert fgraph.consistent()
    # without its destroyer the graph has no orderings
    fgraph.replace_validate(fgraph.outputs[0], of["f"])
    assert not fgraph.has_destroyers and fgraph.orderings() == {}


def test_an_output_made_in_place_is_noticed_behind_views(toy, build):
    def builder(x, y, found):
        return [toy("v", views=0)(toy("d", destroys=0)(x)), toy("f")(y)]

    _, fgraph = build(builder)
    with pytest.raises(InconsistencyError, match=r"made in place: v\.0"):
        aliasing.check_outputs_not_destroying(fgraph, fgraph.outputs)
    aliasing.check_outputs_not_destroying(fgraph, fgraph.outputs[1:])


def test_inputs_of_a_graph_without_a_function_may_be_overwritten_unless_indestructible(toy, leaves):
    x, y = leaves("xy")
    y.tag.indestructible = True
    overwrite = toy("d", destroys=0)
    for clone in (False, True):
        fgraph = FunctionGraph([x], [overwrite(x)], features=[DestroyHandler()], clone=clone)
        assert fgraph.consistent() and fgraph.interface.mutable == set(fgraph.inputs)
        fgraph.disown()
        kept = FunctionGraph([y], [overwrite(y)], features=[DestroyHandler()], clone=clone)
        assert not kept.consistent()
        kept.disown()
