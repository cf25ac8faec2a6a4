"""Order, lifetimes and the commit point of programs, on graphs made by hand."""

import pytest

from opwise import Apply, Constant, FunctionGraph, Op, generic
from opwise.graph.fgraph import Interface
from opwise.linkers.program import make_program

pytestmark = pytest.mark.null


class Toy(Op):
    """An Op that views or destroys the input it is told."""

    __props__ = ("name", "outs", "views", "destroys")

    def __init__(self, name, outs=1, views=None, destroys=None):
        self.name, self.outs, self.views, self.destroys = name, outs, views, destroys
        if views is not None:
            self.view_map = {0: [views]}
        if destroys is not None:
            self.destroy_map = {0: [destroys]}

    def make_node(self, *inputs):
        return Apply(self, inputs, [generic() for _ in range(self.outs)])

    def perform(self, node, inputs, output_storage):
        raise NotImplementedError

    def __str__(self):
        return self.name


f, g, h = Toy("f"), Toy("g"), Toy("h")
view = Toy("view", views=0)
destroy = Toy("destroy", destroys=0)


def program(inputs, outputs, mutable=()):
    interface = Interface(mutable=frozenset(mutable))
    fgraph = FunctionGraph(list(inputs), list(outputs), clone=False, interface=interface)
    return make_program(fgraph)


def letters(names):
    return [generic(name) for name in names]


def dying(made):
    """Return {name of the Op: variables that die after it}."""
    return {
        str(step.node.op): {made.variables[c] for c in step.dies} for step in made.steps
    }  # fmt: skip


def test_slots():
    x, y = letters("xy")
    a = f(x, y)
    b = g(a, a)
    made = program([x, y], [b, a])
    assert made.order == [a.owner, b.owner]
    assert made.inputs == (0, 1)
    assert [made.variables[c] for c in made.inputs] == [x, y]
    assert [made.variables[c] for c in made.outputs] == [b, a]
    first, second = made.steps
    assert first.inputs == made.inputs and second.inputs == (first.outputs[0],) * 2
    assert len(set(made.variables)) == len(made.variables)


def test_an_input_that_nothing_reads_has_a_slot():
    x, y = letters("xy")
    made = program([x, y], [f(x)])
    assert [made.variables[c] for c in made.inputs] == [x, y]


def test_values_die_after_their_last_use():
    (x,) = letters("x")
    a = f(x)
    b = g(a)
    c = h(b, a)
    made = program([x], [c])
    assert dying(made) == {"f": set(), "g": set(), "h": {a, b}}


def test_results_that_nobody_reads_die_at_once():
    (x,) = letters("x")
    two = Toy("two", outs=2)
    a, unused = two(x)
    made = program([x], [f(a)])
    assert dying(made) == {"two": {unused}, "f": {a}}


def test_inputs_outputs_and_constants_do_not_die():
    (x,) = letters("x")
    k = Constant(generic, 7)
    a = f(x, k)
    b = g(a, x, k)
    made = program([x], [a, b])
    assert dying(made) == {"f": set(), "g": set()}
    assert made.constants == {made.variables.index(k): 7}
    assert {made.variables[c] for c in made.ends} == {a, b}


def test_views_die_with_the_memory_they_show():
    (x,) = letters("x")
    a = f(x)
    v = view(a)
    w = Toy("view2", views=0)(v)
    b = g(w)
    c = h(a, b)
    made = program([x], [c])
    died = dying(made)
    assert died["h"] == {a, v, w, b}
    assert not died["g"], "a is read later, so nothing that shows its memory may go"


def test_memory_that_an_output_shows_ends_with_the_call():
    (x,) = letters("x")
    a = f(x)
    v = view(a)
    made = program([x], [v])
    assert dying(made) == {"f": set(), "view": set()}
    assert {made.variables[c] for c in made.ends} == {a, v}


def test_views_of_inputs_end_with_the_call():
    (x,) = letters("x")
    v = view(x)
    made = program([x], [g(v)])
    assert v not in dying(made)["g"]
    assert v in {made.variables[c] for c in made.ends}


def test_every_slot_goes_once():
    x, y = letters("xy")
    k = Constant(generic, 1)
    a = f(x, k)
    b = view(a)
    c = g(b, y)
    d = h(c, view(x))
    made = program([x, y], [d, b])
    gone = [c for step in made.steps for c in step.dies] + list(made.ends)
    expected = set(range(len(made.variables))) - {*made.inputs, *made.constants}
    assert sorted(gone) == sorted(expected)


def test_parents():
    (x,) = letters("x")
    a = f(x)
    v = view(a)
    d = destroy(v)
    made = program([x], [d])
    at = {var: i for i, var in enumerate(made.variables)}
    assert made.parents[at[x]] == made.parents[at[a]] == -1
    assert made.parents[at[v]] == at[a]
    assert made.parents[at[d]] == at[v]


def test_without_destroyers_there_is_nothing_to_commit():
    (x,) = letters("x")
    made = program([x], [g(f(x))])
    assert made.commit == len(made.steps) == 2 and made.destroyed == ()


def test_overwriting_an_intermediate_value_needs_no_commit():
    (x,) = letters("x")
    made = program([x], [destroy(f(x))])
    assert made.commit == len(made.steps) and made.destroyed == ()


def test_what_overwrites_inputs_comes_last():
    s, x = letters("sx")
    new = destroy(s)
    others = [f(x), g(x), h(x)]
    made = program([s, x], [new, *others], mutable=[s])
    assert [str(n.op) for n in made.order] == ["f", "g", "h", "destroy"]
    assert made.commit == 3
    assert made.destroyed == (made.inputs[0],)


def test_what_depends_on_an_overwritten_input_comes_after_it():
    s, x = letters("sx")
    new = destroy(s)
    after = f(new)
    early = g(x)
    made = program([s, x], [new, after, early], mutable=[s])
    assert [str(n.op) for n in made.order] == ["g", "destroy", "f"]
    assert made.commit == 1


def test_an_input_that_is_overwritten_through_a_view():
    s, x = letters("sx")
    part = view(s)
    new = destroy(part)
    made = program([s, x], [new, f(x)], mutable=[s])
    assert made.destroyed == (made.inputs[0],)
    assert made.order[made.commit] is new.owner
    assert part.owner in made.order[: made.commit]


def test_reads_of_the_old_value_stay_before():
    s, x = letters("sx")
    old = f(s)
    new = destroy(s, g(x))
    made = program([s, x], [old, new], mutable=[s])
    names = [str(n.op) for n in made.order]
    assert names.index("f") < names.index("destroy") and names[-1] == "destroy"


def test_several_overwritten_inputs():
    s, t, x = letters("stx")
    a, b = destroy(s), destroy(t, f(x))
    made = program([s, t, x], [a, b], mutable=[s, t])
    assert {made.variables[c] for c in made.destroyed} == {s, t}
    assert made.commit == 1 and str(made.order[0].op) == "f"


def test_a_schedule_decides_the_order():
    (x,) = letters("x")
    a, b = f(x), g(x)
    fgraph = FunctionGraph([x], [a, b], clone=False)
    assert make_program(fgraph, lambda fg: fg.toposort()[::-1]).order == [b.owner, a.owner]


def test_a_deep_graph():
    (x,) = letters("x")
    var = x
    for _ in range(20_000):
        var = f(var)
    made = program([x], [var])
    assert len(made.steps) == 20_000
    assert all(len(step.dies) == 1 for step in made.steps[1:])


def test_what_overwrites_the_memory_of_a_late_step_comes_after_it():
    """f reads both the overwritten input and a value that another Apply overwrites."""
    s, x = letters("sx")
    a = g(x)
    new = destroy(s)
    both = h(new, a)
    gone = Toy("destroy2", destroys=0)(a, f(x))
    made = program([s, x], [both, gone], mutable=[s])
    names = [str(n.op) for n in made.order]
    assert names.index("h") < names.index("destroy2")
    assert names.index("destroy") < names.index("h")
