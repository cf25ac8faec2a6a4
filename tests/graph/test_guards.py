"""When Applys are needed, and an order in which conditions come first, on graphs made by hand."""

import random
import sys

import pytest

from opwise import Apply, FunctionGraph, Op, generic
from opwise.graph import guards
from opwise.graph.guards import (
    ALWAYS,
    alternative,
    both,
    conditions_first,
    decisions,
    find_guards,
    simplified,
)

pytestmark = pytest.mark.null


class Work(Op):
    __props__ = ("name",)

    def __init__(self, name):
        self.name = name

    def make_node(self, *inputs):
        return Apply(self, inputs, [generic()])

    def __str__(self):
        return self.name


class Choose(Work):
    branches = ((1,), (2,))


work = Work("work")
choose = Choose("choose")


def letters(names):
    return [generic(name) for name in names]


def guards_of(inputs, outputs):
    """Return (order, guards) of a graph."""
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    order = fgraph.toposort()
    return order, find_guards(order, fgraph.outputs)


def test_a_graph_without_choices_is_always_needed():
    x, y = letters("xy")
    a = work(x)
    _, guards = guards_of([x, y], [work(a, y)])
    assert guards.choosing == () and set(guards.of.values()) == {ALWAYS}


def test_each_branch_has_its_alternative():
    c, x, y = letters("cxy")
    then, other = work(x), work(y)
    condition = work(c)
    _, guards = guards_of([c, x, y], [choose(condition, then, other)])
    assert guards.of[then.owner] == alternative(0, 0)
    assert guards.of[other.owner] == alternative(0, 1)
    assert guards.of[condition.owner] == ALWAYS


@pytest.mark.parametrize(
    "outputs",
    [
        lambda c, a, y: [choose(c, a, y), a],  # read outside
        lambda c, a, y: [choose(c, a, work(a))],  # read in both branches
        lambda c, a, y: [choose(work(a), a, y)],  # the condition reads it
        lambda c, a, y: [choose(c, choose(y, a, a), choose(y, work(a), a))],
    ],
)
def test_what_is_needed_in_any_case_has_no_guard(outputs):
    c, x, y = letters("cxy")
    a = work(x)
    _, guards = guards_of([c, x, y], outputs(c, a, y))
    assert guards.of[a.owner] == ALWAYS


def test_nested_choices():
    c, d, x, y = letters("cdxy")
    a = work(x)
    inner = choose(d, a, y)
    shared = work(y)
    outer = choose(c, inner, shared)
    _, guards = guards_of([c, d, x, y], [outer, choose(d, shared, x)])
    numbers = {node: i for i, node in enumerate(guards.choosing)}
    assert guards.of[a.owner] == alternative(numbers[inner.owner], 0)
    assert guards.of[inner.owner] == alternative(numbers[outer.owner], 0)
    # of either choice one branch
    assert len(guards.of[shared.owner]) == 2


def test_a_choice_does_not_matter_for_what_is_needed_whenever_it_is_made():
    c, d, x, y = letters("cdxy")
    a = work(x)
    inner = choose(d, a, y)
    outer = choose(c, work(inner, a), y)
    _, guards = guards_of([c, d, x, y], [outer])
    number = guards.choosing.index(outer.owner)
    assert guards.of[a.owner] == alternative(number, 0)


def test_a_choice_in_the_branch_of_another_does_not_matter_where_that_is_made():
    """``a`` is the condition of a choice in a branch of a choice, and is read in that branch."""
    b, c, x, y, z = letters("bcxyz")
    a = work(x)
    inner = choose(c, work(a), y)
    middle = choose(work(y), work(inner), y)
    outer = choose(b, work(middle, choose(a, y, z)), x)
    _, found = guards_of([b, c, x, y, z], [outer])
    number = found.choosing.index(outer.owner)
    assert found.of[a.owner] == alternative(number, 0)


def test_applys_that_cannot_wait_for_a_choice_need_what_they_read():
    c, d, x, y = letters("cdxy")
    a = work(x)
    b = work(a)
    inner = choose(d, b, y)
    outer = choose(c, inner, y)
    fgraph = FunctionGraph([c, d, x, y], [outer], clone=False)
    order = fgraph.toposort()
    number = {node: k for k, node in enumerate(n for n in order if n.op.branches)}
    found = find_guards(order, fgraph.outputs, {b.owner: [number[inner.owner]]})
    needed = alternative(number[outer.owner], 0)
    assert found.of[a.owner] == found.of[b.owner] == needed
    found = find_guards(order, fgraph.outputs, {b.owner: list(number.values())})
    assert found.of[a.owner] == found.of[b.owner] == ALWAYS


class Counting(dict):
    looked_up = 0

    def __getitem__(self, key):
        self.looked_up += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("n", [10, 1000])
def test_a_chain_of_choices_is_gone_through_once(n):
    """What a choice that is needed for both its branches adds is looked at on the way."""
    found = Counting()
    needed = both(0)
    for k in range(0, n, 2):
        found[k] = alternative(k + 1, 0) | alternative(k + 2, 1)
        found[k + 1] = alternative(k + 2, 0)
        needed |= alternative(k + 1, 1)
    found[n] = ALWAYS
    assert simplified(needed, found, range(n + 1)) == ALWAYS
    assert found.looked_up == n + 1


def test_guards_are_as_large_wherever_their_choices_are():
    """A guard takes memory and time for its own alternatives, not for all choices of the graph."""

    def memory(n):
        inputs = letters("cxy")
        y = inputs[2]
        for _ in range(n):
            y = choose(work(inputs[0]), work(y), work(work(y)))
        _, found = guards_of(inputs, [y])
        return sum(map(sys.getsizeof, found.of.values()))

    assert memory(1600) <= 4.1 * memory(400)


def arranged(inputs, outputs):
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    order = fgraph.toposort()
    guards = find_guards(order, fgraph.outputs)
    new = conditions_first(order, guards, {})
    assert set(new) == set(order)
    position = {node: k for k, node in enumerate(new)}
    for node in new:
        for var in node.inputs:
            assert var.owner is None or position[var.owner] < position[node]
    return new, guards, *decisions(new, fgraph.outputs)


def test_conditions_come_first():
    c, x, y = letters("cxy")
    a = work(x)
    condition = work(work(c))
    order, _, guards, made = arranged([c, x, y], [choose(condition, a, y)])
    assert order.index(condition.owner) < order.index(a.owner)
    assert made == {0: order.index(condition.owner) + 1}
    assert guards.of[a.owner] == alternative(0, 0)


def test_the_decision_of_an_inner_choice_waits_for_the_outer_one():
    c, d, x, y = letters("cdxy")
    inner = choose(d, work(x), y)  # its condition is known from the start
    condition = work(c)
    outer = choose(condition, inner, y)
    order, _, guards, made = arranged([c, d, x, y], [outer])
    known = order.index(condition.owner) + 1
    assert made == {guards.choosing.index(node): known for node in guards.choosing}


def test_a_decision_wakes_only_what_waits_for_it(monkeypatch):
    """Each choice waits for the value of the one before; their branches wait all the time."""
    genuine = guards._Arrangement._unmet
    looked_at = []

    def counted(self, node):
        looked_at.append(node)
        return genuine(self, node)

    monkeypatch.setattr(guards._Arrangement, "_unmet", counted)

    def count(n):
        x, start = letters("xy")
        y = start
        for _ in range(n):
            y = choose(work(y), work(x), work(y))
        order, found = guards_of([x, start], [y])
        looked_at.clear()
        conditions_first(order, found, {})
        return len(looked_at)

    assert count(80) <= 2.1 * count(40)


def test_a_circle_of_conditions_is_cut():
    """Each of two Applys is needed for the condition of the other, in different branches."""
    c, x, y = letters("cxy")
    one, two = Work("one")(x), Work("two")(y)
    outer = choose(c, choose(work(two), one, x), choose(work(one), two, y))
    _, before, after, _ = arranged([c, x, y], [outer])
    assert before.of[one.owner] != ALWAYS and before.of[two.owner] != ALWAYS
    eager = [var for var in (one, two) if after.of[var.owner] == ALWAYS]
    assert len(eager) == 1


def test_an_apply_for_a_condition_and_in_its_branch_runs_always():
    """Only if the inner choice takes it, it must run before the outer one is made."""
    c, x, y = letters("cxy")
    shared = work(x)
    outer = choose(work(choose(c, shared, y)), y, work(shared))
    _, before, after, _ = arranged([c, x, y], [outer])
    assert len(before.of[shared.owner]) == 2 and after.of[shared.owner] == ALWAYS


def test_a_circle_in_a_branch_is_cut_in_the_branch():
    """What runs before its decision is not needed where the whole branch is not."""
    b, c, x, y, z = letters("bcxyz")
    one, two = Work("one")(x), Work("two")(y)
    circle = choose(c, choose(work(two), one, x), choose(work(one), two, y))
    outer = choose(work(b), circle, z)
    _, _, after, _ = arranged([b, c, x, y, z], [outer])
    needed = alternative(after.choosing.index(outer.owner), 0)
    eager = [var for var in (one, two) if after.of[var.owner] == needed]
    assert len(eager) == 1


def choosers(found, guard):
    """Return the Applys on whose choices a guard depends. found: the Guards of the graph."""
    return [found.choosing[number] for number in guards.numbers(guard)]


def alternatives(found, node):
    """Return the guard of an Apply as a set, which does not depend on the order."""
    guard = found.of[node]
    return {
        (found.choosing[number], branch)
        for number in guards.numbers(guard)
        for branch in (0, 1)
        if alternative(number, branch) <= guard
    }


def in_circles(order, found):
    """Return the Applys that wait for their own results by conditions of their guards."""
    after = {node: set() for node in order}
    for node in order:
        waits = {var.owner for var in node.inputs} - {None}
        pending = choosers(found, found.of[node])
        while pending:
            chooser = pending.pop()
            waits.add(chooser.inputs[0].owner)
            pending += choosers(found, found.of[chooser])
        for other in waits - {None}:
            after[other].add(node)

    def reached(node):
        seen, pending = set(), [node]
        while pending:
            for other in after[pending.pop()] - seen:
                seen.add(other)
                pending.append(other)
        return seen

    return {node for node in order if node in reached(node)}


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    """Applys are forced to run only within circles of conditions."""
    rng = random.Random(seed)
    inputs = letters("abcd")
    found = list(inputs)
    for k in range(rng.choice([8, 15, 40])):
        if rng.random() < 0.35:
            found.append(choose(*rng.choices(found, k=3)))
        else:
            found.append(Work(f"work{k}")(*rng.choices(found[-8:], k=rng.choice([1, 2]))))
    outputs = [v for v in rng.sample(found[4:], 3) if v.owner is not None]
    order, before, after, made = arranged(inputs, outputs)
    forced = {n for n in order if alternatives(before, n) != alternatives(after, n)}
    circles = in_circles(order, before)
    assert forced <= circles and (forced or not circles)
    for k, node in enumerate(order):
        for chooser in choosers(after, after.of[node]):
            assert made[after.choosing.index(chooser)] <= k
