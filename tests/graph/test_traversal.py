"""Walks over a graph: orders, copies, equality, and graphs of any depth."""

import pytest

from opwise import Constant, Generic, generic
from opwise.graph import traversal

pytestmark = pytest.mark.null

DEEP = 20_000


@pytest.fixture
def diamond(toy, leaves):
    """x, y, f(x, y), g(f), h(f), k(g, h): a value that is used twice."""
    x, y = leaves("xy")
    f = toy("f")(x, y)
    g, h = toy("g")(f), toy("h")(f)
    return x, y, f, g, h, toy("k")(g, h)


def names(variables):
    return [v.name or v.owner.op.name for v in variables]


def test_inputs_are_the_leaves_in_order(diamond):
    x, y, f, *_, k = diamond
    assert traversal.inputs([k]) == [x, y]
    assert traversal.inputs(k) == [x, y]
    assert traversal.inputs([k], blockers=[f]) == []
    assert traversal.inputs([f, y], blockers=[f]) == [y]
    # the last of several comes first, as in Theano
    assert traversal.inputs([x, y]) == [y, x]
    assert traversal.inputs(reversed([x, k, y])) == [x, y]


def test_ancestors_come_depth_first_and_stop_at_blockers(diamond):
    *_, f, _, _, k = diamond
    assert names(traversal.ancestors([k])) == ["k", "g", "f", "x", "y", "h"]
    assert names(traversal.ancestors([k], blockers=[f])) == ["k", "g", "f", "h"]


def test_orphans_are_leaves_other_than_the_inputs(diamond):
    x, y, *_, k = diamond
    assert traversal.orphans([x], [k]) == [y]
    found, missing = traversal.variables_and_orphans([x], [k])
    assert missing == [y] and x in found and k in found


def test_io_toposort_puts_every_apply_after_what_it_reads(diamond):
    x, y, f, g, h, k = diamond
    order = traversal.io_toposort([x, y], [k])
    assert order == [f.owner, h.owner, g.owner, k.owner]
    assert order == traversal.io_toposort([x, y], [k])
    assert traversal.list_of_nodes([f], [k]) == [h.owner, g.owner, k.owner]


def test_io_toposort_heeds_orderings(diamond):
    x, y, _, g, h, k = diamond
    order = traversal.io_toposort([x, y], [k], {h.owner: [g.owner]})
    assert order.index(g.owner) < order.index(h.owner)


def test_a_cycle_is_refused(diamond):
    x, y, f, g, _, k = diamond
    with pytest.raises(ValueError, match="contains cycles"):
        traversal.io_toposort([x, y], [k], {f.owner: [g.owner]})
    with pytest.raises(ValueError, match="contains cycles"):
        traversal.general_toposort([1], {1: [2], 2: [1]}.get)
    with pytest.raises(TypeError, match="deps returned a set for 1, whose order may change"):
        traversal.general_toposort([1], {1: {2}, 2: ()}.get)


def test_general_toposort_and_stack_search():
    deps = {"a": ["b", "c"], "b": ["d"], "c": ["d"]}.get
    order = traversal.general_toposort(["a"], deps)
    assert sorted(order) == list("abcd")
    assert order[0] == "d" and order[-1] == "a"
    assert traversal.stack_search(["a"], deps) == list("abcd")
    assert traversal.stack_search(["a"], deps, mode="dfs") == list("acdb")
    _, inverse = traversal.stack_search(["a"], deps, build_inv=True)
    assert inverse["d"] == ["b", "c"]
    with pytest.raises(ValueError, match="bfs or dfs"):
        traversal.stack_search(["a"], deps, mode="sideways")


def test_is_in_ancestors(diamond):
    _, _, f, g, h, k = diamond
    assert traversal.is_in_ancestors(k.owner, f.owner)
    assert traversal.is_in_ancestors(k.owner, k.owner)
    assert not traversal.is_in_ancestors(g.owner, h.owner)


# --- copies ---------------------------------------------------------------------------------------


def test_clone_copies_all_and_keeps_the_shape(diamond):
    x, y, f, *_, k = diamond
    inputs, (twin,) = traversal.clone([x, y], [k])
    assert all(new is not old for new, old in zip(inputs, [x, y], strict=True))
    assert traversal.equal_computations([k], [twin], [x, y], inputs)
    left, right = (v.owner.inputs[0] for v in twin.owner.inputs)
    assert left is right and left is not f


def test_clone_may_share_the_leaves(diamond):
    x, y, *_, k = diamond
    (new_x,), (twin,) = traversal.clone([x], [k], copy_inputs=True, copy_orphans=False)
    assert new_x is not x
    assert y in traversal.inputs([twin])
    inputs, _ = traversal.clone([x, y], [k], copy_inputs=False)
    assert inputs == [x, y]


def test_clone_replace_copies_only_what_depends_on_the_replaced(toy, leaves):
    x, y, z = leaves("xyz")
    f = toy("f")
    kept, changed = f(x), f(y)
    out = toy("k")(kept, changed)
    (twin,) = traversal.clone_replace([out], {y: z})
    assert twin.owner.inputs[0] is kept
    assert twin.owner.inputs[1].owner.inputs == [z]
    assert twin.owner.origins == (out.owner,)
    assert traversal.clone_replace([kept], {y: z}) == [kept]
    assert traversal.clone_replace([y], {y: z}) == [z]


def test_clone_replace_may_give_new_leaves(diamond):
    x, y, *_, k = diamond
    (twin,) = traversal.clone_replace([k], {}, share_inputs=False)
    assert not set(traversal.inputs([twin])) & {x, y}
    assert names(traversal.inputs([twin])) == ["x", "y"]


# --- equality -------------------------------------------------------------------------------------


class Other(Generic):
    """A type that differs from generic."""


def _pairs(toy):
    x, y = generic("x"), generic("y")
    f, g, two = toy("f"), toy("g"), toy("t", outs=2)
    three, four = Constant(generic, 3), Constant(generic, 4)
    left, right = two(x)
    return {
        "itself": (x, x, True),
        "another leaf": (x, y, False),
        "same Op on same input": (f(x), f(x), True),
        "same Op on other inputs": (f(x), f(y), False),
        "other Op": (f(x), g(x), False),
        "equal Op, another object": (f(x), toy("f")(x), True),
        "equal constants": (f(three), f(Constant(generic, 3)), True),
        "other constants": (f(three), f(four), False),
        "a constant and a leaf": (f(three), f(x), False),
        "another output": (left, right, False),
        "more inputs": (f(x), f(x, x), False),
        "deep difference": (g(f(g(x))), g(f(g(y))), False),
        "other type": (x, Other()(), False),
        "shared or computed twice": (g(f(x), f(x)), (lambda v: g(v, v))(f(x)), True),
        "a leaf and a result": (x, f(x), False),
    }


@pytest.mark.parametrize("case", list(_pairs(lambda name, outs=1: lambda *a: (name, outs))))
def test_equal_computations(toy, case):
    a, b, expected = _pairs(toy)[case]
    assert traversal.equal_computations([a], [b]) is expected
    assert traversal.equal_computations([b], [a]) is expected


def test_equal_computations_up_to_given_inputs(toy, leaves):
    x, y, z = leaves("xyz")
    f = toy("f")
    assert traversal.equal_computations([f(x, y)], [f(z, y)], [x], [z])
    assert not traversal.equal_computations([f(x, y)], [f(z, z)], [x], [z])
    assert not traversal.equal_computations([x], [x, y])
    # x counts as z, and so not as x
    assert not traversal.equal_computations([f(x)], [f(x)], [x], [z])


@pytest.mark.parametrize("case", list(_pairs(lambda name, outs=1: lambda *a: (name, outs))))
def test_hashes_of_equal_computations_are_equal(toy, case):
    a, b, expected = _pairs(toy)[case]
    first, second = (traversal.hash_of_computations([var], []) for var in (a, b))
    assert (first == second) is expected


def test_hashes_up_to_given_inputs(toy, leaves):
    x, y, z = leaves("xyz")
    f = toy("f")

    def hash_of(out, *inputs):
        return traversal.hash_of_computations([out], inputs)

    assert hash_of(f(x, y), x) == hash_of(f(z, y), z)
    assert hash_of(f(x, y), x, y) == hash_of(f(y, x), y, x) != hash_of(f(y, x), x, y)
    assert hash_of(f(x), x) != hash_of(f(x))


def test_constants_that_have_no_hash_have_one_of_their_type(toy):
    f = toy("f")
    first, second = (f(Constant(generic, [3])) for _ in range(2))
    hashes = {traversal.hash_of_computations([var], []) for var in (first, second)}
    assert len(hashes) == 1


def test_is_same_graph_after_givens(toy, leaves):
    x, y = leaves("xy")
    f = toy("f")
    assert not traversal.is_same_graph(f(x), f(y))
    assert traversal.is_same_graph(f(x), f(y), givens={y: x})


# --- text and depth -------------------------------------------------------------------------------


def test_as_string_marks_what_is_used_twice(diamond, toy):
    x, y, f, *_, k = diamond
    assert traversal.as_string([x, y], [k]) == ["k(g(*1 -> f(x, y)), h(*1))"]
    assert traversal.as_string([f], [k], leaf_formatter=lambda v: "leaf") == ["k(g(leaf), h(leaf))"]
    assert traversal.as_string([x, y], [f, f]) == ["*1 -> f(x, y)", "*1"]
    a, b = toy("two", outs=2)(x)
    assert traversal.as_string([x], [toy("f")(a, b)]) == ["f(*1 -> two(x), *1::1)"]
    own = traversal.as_string([x, y], [f], node_formatter=lambda node, args: f"<{args}>")
    assert own == ["<['x', 'y']>"]


@pytest.fixture
def tower(toy):
    x = generic("x")
    op = toy("f")
    top = x
    for _ in range(DEEP):
        top = op(top)
    return x, top


def test_depth_is_no_limit(tower):
    x, top = tower
    assert len(traversal.io_toposort([x], [top])) == DEEP
    assert len(traversal.ancestors([top])) == DEEP + 1
    assert traversal.inputs([top]) == [x]
    (new_x,), (twin,) = traversal.clone([x], [top])
    assert traversal.equal_computations([top], [twin], [x], [new_x])


def test_depth_is_no_limit_for_text(tower):
    x, top = tower
    assert len(traversal.io_toposort([x], [top])) == DEEP
    below = traversal.ancestors([top])[DEEP - 3000]
    (text,) = traversal.as_string([x], [below])
    assert text.count("f(") == 3000


# --- connections ----------------------------------------------------------------------------------


def test_connections_follow_the_ops(toy, leaves):
    x, y, z = leaves("xyz")
    cut = toy("cut")
    cut.connection_pattern = lambda node: [[False] for _ in node.inputs]
    both = toy("both")(x, y)
    outputs = [both, cut(z), toy("mixed")(cut(x), z), y]
    assert traversal.io_connection_pattern([x, y, z], outputs) == [
        [True, False, False, False],
        [True, False, False, True],
        [False, False, True, False],
    ]
