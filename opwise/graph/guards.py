"""Guards: when the Applys of a graph are needed, if some of its Ops choose between branches.

An Op with ``branches`` needs one of them in a call: its first input, the condition, says which. A
guard is a set of alternatives, the bits of an int. An alternative is one branch of one choosing
Apply; it holds if that Apply is itself needed and takes the branch. An Apply is needed if one of
the alternatives of its guard holds. So a guard has at most two bits for each choosing Apply,
however deep the branches are nested.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opwise.graph.apply import Apply
from opwise.graph.variable import Variable

#: the guard of an Apply that every call needs
ALWAYS = 1


@dataclass(frozen=True)
class Guards:
    """When each Apply of a graph is needed."""

    #: the Applys that choose between branches, by number
    choosing: tuple[Apply, ...]
    of: Mapping[Apply, int]

    def choosers(self, guard: int) -> Iterator[Apply]:
        """Return the Applys on whose choices a guard depends."""
        return (self.choosing[i] for i in _numbers(guard))


def alternative(number: int, branch: int) -> int:
    """Return the bit of a branch (0 if the condition is true, 1 if not) of a choosing Apply."""
    return 2 << (2 * number + branch)


def both(number: int) -> int:
    """Return the bits of both branches of a choosing Apply."""
    return 6 << (2 * number)


def _numbers(guard: int) -> Iterator[int]:
    """Return the numbers of the choosing Applys whose alternatives are in a guard."""
    rest = guard >> 1
    while rest:
        number = ((rest & -rest).bit_length() - 1) // 2
        yield number
        rest &= ~(3 << (2 * number))


def find_guards(
    order: Sequence[Apply], outputs: Iterable[Variable], always: Collection[Apply] = ()
) -> Guards:
    """Return the guards of the Applys between inputs and outputs.

    order: the Applys, each after those that it reads. always: Applys that every call is to run.
    """
    choosing = tuple(node for node in order if node.op.branches)
    number = {node: i for i, node in enumerate(choosing)}
    reached = dict.fromkeys(always, ALWAYS)
    reached.update({var.owner: ALWAYS for var in outputs if var.owner is not None})
    found: dict[Apply, int] = {}
    for node in reversed(order):
        guard = found[node] = _simplified(reached.get(node, ALWAYS), found, choosing)
        branch_of = {i: b for b, inputs in enumerate(node.op.branches) for i in inputs}
        for i, var in enumerate(node.inputs):
            if var.owner is not None:
                used = alternative(number[node], branch_of[i]) if i in branch_of else guard
                reached[var.owner] = reached.get(var.owner, 0) | used
    return Guards(choosing, found)


def _simplified(guard: int, found: Mapping[Apply, int], choosing: Sequence[Apply]) -> int:
    """Return an equal guard without alternatives that others contain.

    If an Apply is needed whenever a choosing one is, the choice does not matter.
    """
    if guard & ALWAYS:
        return ALWAYS
    for number in _numbers(guard):
        chooser = found[choosing[number]]
        if guard & both(number) == both(number):
            guard |= chooser
        if chooser & ~guard == 0:
            guard &= ~both(number)
    return ALWAYS if guard & ALWAYS else guard


def conditions_first(
    order: Sequence[Apply], guards: Guards, orderings: Mapping[Apply, Iterable[Apply]]
) -> list[Apply]:
    """Return an order in which conditions come before the Applys whose guards depend on them.

    orderings: further Applys that must come before an Apply. Otherwise the order changes little. It
    does not exist if each of two Applys is needed for the condition of the other, in different
    branches of a third choice; then one of them comes before its condition.
    """
    position = {node: k for k, node in enumerate(order)}
    waits = {
        node: {
            *(var.owner for var in node.inputs if var.owner is not None),
            *orderings.get(node, ()),
        }
        for node in order
    }
    readers: dict[Apply, list[Apply]] = {node: [] for node in order}
    for node, earlier in waits.items():
        for other in earlier:
            readers[other].append(node)
    arranged: list[Apply] = []
    done: set[Apply | None] = {None}
    undecided = dict(enumerate(guards.choosing))
    decided = ALWAYS
    free: list[int] = []
    held: list[Apply] = []

    def place(node: Apply) -> None:
        if guards.of[node] & ~decided:
            held.append(node)
        else:
            heapq.heappush(free, position[node])

    def decide() -> None:
        nonlocal decided, held
        before = None
        while before != decided:
            before = decided
            for number, node in list(undecided.items()):
                if node.inputs[0].owner in done and not guards.of[node] & ~decided:
                    decided |= both(number)
                    del undecided[number]
        waiting, held = held, []
        for node in waiting:
            place(node)

    conditions = {node.inputs[0].owner for node in guards.choosing}
    decide()
    for node in order:
        if not waits[node]:
            place(node)
    while free or held:
        if free:
            node = order[heapq.heappop(free)]
        else:
            node = min(held, key=lambda n: ((guards.of[n] & ~decided).bit_count(), position[n]))
            held.remove(node)
        arranged.append(node)
        done.add(node)
        if node in conditions:
            decide()
        for reader in readers[node]:
            waits[reader].discard(node)
            if not waits[reader]:
                place(reader)
    return arranged


def decisions(order: Sequence[Apply], outputs: Iterable[Variable]) -> tuple[Guards, dict[int, int]]:
    """Return the guards for an order, and {number of a choosing Apply: position of its decision}.

    A decision at position k is made before step k runs. The condition is known there, and whether
    the choosing Apply is needed. An Apply that comes before a decision on which its guard depends
    is run in every call.
    """
    position = {node: k for k, node in enumerate(order)}
    outputs = list(outputs)
    always: set[Apply] = set()
    while True:
        guards = find_guards(order, outputs, always)
        made: dict[int, int] = {}
        for number in reversed(range(len(guards.choosing))):  # those that read it come first
            node = guards.choosing[number]
            condition = node.inputs[0].owner
            known = 0 if condition is None else position[condition] + 1
            made[number] = max([known, *(made[j] for j in _numbers(guards.of[node]))])
        early = [
            node
            for k, node in enumerate(order)
            if any(made[number] > k for number in _numbers(guards.of[node]))
        ]
        if not early:
            return guards, made
        always.update(early)
