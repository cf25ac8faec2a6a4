"""Guards: when the Applys of a graph are needed, if some of its Ops choose between branches.

An Op with ``branches`` needs one of them in a call: its first input, the condition, says which. A
guard is a set of alternatives. An alternative is one branch of one choosing Apply; it holds if that
Apply is itself needed and takes the branch. An Apply is needed if one of the alternatives of its
guard holds. So a guard has at most two alternatives for each choosing Apply, however deep the
branches are nested, and mostly one in all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from opwise.graph.apply import Apply
from opwise.graph.variable import Variable

#: alternatives: 2 * number + 1 + branch, where the number is that of the choosing Apply
Guard: TypeAlias = frozenset[int]

#: the alternative that always holds
_CERTAIN = 0

#: how many choices around each other are followed to see whether a guard lies within another one
_DEPTH = 8
#: the most alternatives of guards for which that is done
_FEW = 16

#: the guard of an Apply that every call needs
ALWAYS: Guard = frozenset({_CERTAIN})


@dataclass(frozen=True)
class Guards:
    """When each Apply of a graph is needed."""

    #: the Applys that choose between branches, by number
    choosing: tuple[Apply, ...]
    of: Mapping[Apply, Guard]


def alternatives(number: int) -> tuple[int, int]:
    """Return those of a choosing Apply: the condition is true, and it is not."""
    return 2 * number + 1, 2 * number + 2


def alternative(number: int, branch: int) -> Guard:
    """Return the guard of a branch (0 if the condition is true, 1 if not) of a choosing Apply."""
    return frozenset({alternatives(number)[branch]})


def both(number: int) -> Guard:
    """Return the guard of both branches of a choosing Apply."""
    return frozenset(alternatives(number))


def numbers(guard: Iterable[int]) -> list[int]:
    """Return the numbers of the choosing Applys whose alternatives are in a guard, in order."""
    return sorted({one - 1 >> 1 for one in guard if one != _CERTAIN})


def union(guards: Iterable[Guard]) -> Guard:
    """Return when one of some guards holds."""
    several = set(guards)
    return several.pop() if len(several) == 1 else frozenset().union(*several)


def find_guards(
    order: Sequence[Apply],
    outputs: Iterable[Variable],
    early: Mapping[Apply, Collection[int]] = MappingProxyType({}),
) -> Guards:
    """Return the guards of the Applys between inputs and outputs.

    order: the Applys, each after those that it reads. early: {Apply: the numbers of choosing Applys
    whose decisions it cannot wait for}; it is needed whenever one of these is.
    """
    choosing = tuple(node for node in order if node.op.branches)
    number = {node: i for i, node in enumerate(choosing)}
    #: the guards of what reads each Apply
    reached = {var.owner: [ALWAYS] for var in outputs if var.owner is not None}
    found: dict[Apply, Guard] = {}
    known: dict[Guard, Guard] = {}
    for node in reversed(order):
        given = union(reached.pop(node, (ALWAYS,)))
        if given not in known:
            known[given] = simplified(given, found, choosing)
        guard = known[given]
        late = early.get(node, ())
        for _ in range(_DEPTH):
            unmet = [n for n in late if guard & both(n)] if len(late) <= _FEW else []
            if not unmet:
                break
            for n in unmet:
                guard = guard - both(n) | found[choosing[n]]
            guard = simplified(guard, found, choosing)
        if any(not guard.isdisjoint(alternatives(n)) for n in late):
            guard = ALWAYS
        found[node] = guard
        branch_of = {i: b for b, inputs in enumerate(node.op.branches) for i in inputs}
        for i, var in enumerate(node.inputs):
            if var.owner is not None:
                used = alternative(number[node], branch_of[i]) if i in branch_of else guard
                reached.setdefault(var.owner, []).append(used)
    return Guards(choosing, found)


def simplified(
    guard: Guard, found: Mapping[Apply, Guard], choosing: Sequence[Apply] | Mapping[int, Apply]
) -> Guard:
    """Return an equal guard without alternatives that others contain.

    If an Apply is needed whenever a choosing one is, the choice does not matter.
    """
    left, before = set(guard), set[int]()
    while left != before and _CERTAIN not in left:
        before = set(left)
        # with those that are added on the way: a choosing Apply is needed by later ones
        pending, last = numbers(left), -1
        while pending:
            number = heapq.heappop(pending)
            if number == last:
                continue
            last, chooser, each = number, found[choosing[number]], alternatives(number)
            if left.issuperset(each):
                left |= chooser
                for other in numbers(chooser):
                    if other > number:
                        heapq.heappush(pending, other)
            few = len(left) <= _FEW and len(chooser) <= _FEW
            if chooser <= left or (few and _is_within(chooser, left, number, found, choosing)):
                left.difference_update(each)
    if _CERTAIN in left:
        return ALWAYS
    return guard if left == guard else frozenset(left)


def _is_within(
    one: Guard,
    guard: set[int],
    number: int,
    found: Mapping[Apply, Guard],
    choosing: Sequence[Apply] | Mapping[int, Apply],
) -> bool:
    """Return whether a guard holds whenever another one does, also without a choosing Apply.

    number: of that Apply. An alternative is within those of its choosing Apply, and these may be
    within others.
    """
    without = alternatives(number)
    missing = {a for a in one if a not in guard or a in without}
    for _ in range(_DEPTH):
        if not missing or _CERTAIN in missing:
            break
        first = numbers(missing)[0]
        missing.difference_update(alternatives(first))
        missing.update(a for a in found[choosing[first]] if a not in guard or a in without)
    return not missing


def conditions_first(
    order: Sequence[Apply], guards: Guards, orderings: Mapping[Apply, Iterable[Apply]]
) -> list[Apply]:
    """Return an order in which conditions come before the Applys whose guards depend on them.

    orderings: further Applys that must come before an Apply. Otherwise the order changes little. It
    does not exist if each of two Applys is needed for the condition of the other, in different
    branches of a third choice; then one of them comes before its condition.
    """
    return _Arrangement(order, guards, orderings).arrange()


class _Arrangement:
    """Arranges Applys one by one: of those that can come next, the first in the former order."""

    def __init__(
        self, order: Sequence[Apply], guards: Guards, orderings: Mapping[Apply, Iterable[Apply]]
    ) -> None:
        self.order, self.guards = order, guards
        self.position = {node: k for k, node in enumerate(order)}
        #: the Applys that must still come before each Apply
        self.waits = {
            node: {var.owner for var in node.inputs if var.owner is not None}.union(
                orderings.get(node, ())
            )
            for node in order
        }
        self.readers: dict[Apply, list[Apply]] = {node: [] for node in order}
        for node, earlier in self.waits.items():
            for other in earlier:
                self.readers[other].append(node)
        #: the alternatives of decisions that can be made
        self.decided = set(ALWAYS)
        #: choosing Applys that wait for their condition, and that wait for another decision
        self.after_condition: dict[Apply, list[int]] = {}
        self.after_choice: dict[int, list[int]] = {}
        #: positions of the Applys that can come next
        self.free: list[int] = []
        #: Applys that wait for decisions only, and those by a decision that each waits for
        self.held: dict[Apply, None] = {}
        self.held_by: dict[int, list[Apply]] = {}
        self.done: set[Apply | None] = {None}

    def arrange(self) -> list[Apply]:
        arranged = []
        for number in range(len(self.guards.choosing)):
            self._decide(number)
        for node in self.order:
            if not self.waits[node]:
                self._ready(node)
        while self.free or self.held:
            node = self.order[heapq.heappop(self.free)] if self.free else self._least_early()
            arranged.append(node)
            self.done.add(node)
            for number in self.after_condition.pop(node, ()):
                self._decide(number)
            for reader in self.readers[node]:
                self.waits[reader].discard(node)
                if not self.waits[reader]:
                    self._ready(reader)
        return arranged

    def _unmet(self, node: Apply) -> Guard:
        """Return the alternatives of decisions that an Apply waits for."""
        return self.guards.of[node] - self.decided

    def _ready(self, node: Apply) -> None:
        """Let an Apply that waits for no other one come next, or wait for a decision."""
        unmet = self._unmet(node)
        if unmet:
            self.held[node] = None
            self.held_by.setdefault(numbers(unmet)[0], []).append(node)
        else:
            self.held.pop(node, None)
            heapq.heappush(self.free, self.position[node])

    def _decide(self, number: int) -> None:
        """Make a decision if its condition is known, and those that wait only for it."""
        pending = [number]
        while pending:
            number = pending.pop()
            node = self.guards.choosing[number]
            condition, unmet = node.inputs[0].owner, self._unmet(node)
            if condition is not None and condition not in self.done:
                self.after_condition.setdefault(condition, []).append(number)
            elif unmet:
                self.after_choice.setdefault(numbers(unmet)[0], []).append(number)
            else:
                self.decided.update(alternatives(number))
                pending += self.after_choice.pop(number, ())
                for waiting in self.held_by.pop(number, ()):
                    if waiting in self.held:
                        self._ready(waiting)

    def _least_early(self) -> Apply:
        """Take an Apply before a decision that waits for it, or for others that wait in a circle.

        It is in a circle that waits for nothing outside it; in the smallest one, if there are some.
        """
        held: list[Apply | int] = list(self.held)
        circles = (
            [one for one in circle if isinstance(one, Apply)]
            for circle in _closed_circles(held, self._awaited)
        )
        ready = [
            (len(circle), self.position[node], node)
            for circle in circles
            for node in circle
            if node in self.held
        ]
        _, _, node = min(ready, key=lambda each: each[:2])
        del self.held[node]
        return node

    def _awaited(self, one: Apply | int) -> Iterator[Apply | int]:
        """Yield what must come before an Apply, or before a decision: both, decisions by number."""
        if isinstance(one, Apply):
            yield from (other for other in self.waits[one] if other not in self.done)
            yield from numbers(self._unmet(one))
        else:
            node = self.guards.choosing[one]
            condition = node.inputs[0].owner
            if condition is not None and condition not in self.done:
                yield condition
            yield from numbers(self._unmet(node))


_V = TypeVar("_V")


def _closed_circles(
    starts: Iterable[_V], after: Callable[[_V], Iterable[_V]]
) -> Iterator[list[_V]]:
    """Yield the circles of a graph that no edge leaves; a vertex without edges is one, too.

    Takes linear time: the strongly connected components come from the ends of the graph to the
    starts (Tarjan, 1972).
    """
    number: dict[_V, int] = {}
    lowest: dict[_V, int] = {}
    opened: dict[_V, None] = {}
    leaving: set[_V] = set()
    for start in starts:
        if start in number:
            continue
        number[start] = lowest[start] = len(number)
        opened[start] = None
        path = [(start, iter(after(start)))]
        while path:
            one, rest = path[-1]
            following = next(rest, None)
            if following is not None:
                if following not in number:
                    number[following] = lowest[following] = len(number)
                    opened[following] = None
                    path.append((following, iter(after(following))))
                elif following in opened:
                    lowest[one] = min(lowest[one], number[following])
                else:
                    leaving.add(one)
                continue
            path.pop()
            if lowest[one] == number[one]:
                circle: list[_V] = []
                while not circle or circle[-1] != one:
                    circle.append(opened.popitem()[0])
                if leaving.isdisjoint(circle):
                    yield circle
                if path:
                    leaving.add(path[-1][0])
            else:
                before = path[-1][0]
                lowest[before] = min(lowest[before], lowest[one])


def decisions(order: Sequence[Apply], outputs: Iterable[Variable]) -> tuple[Guards, dict[int, int]]:
    """Return the guards for an order, and {number of a choosing Apply: position of its decision}.

    A decision at position k is made before step k runs. The condition is known there, and whether
    the choosing Apply is needed. An Apply that comes before a decision on which its guard depends
    is run whenever the choosing Apply is needed.
    """
    position = {node: k for k, node in enumerate(order)}
    outputs = list(outputs)
    early: dict[Apply, set[int]] = {}
    while True:
        guards = find_guards(order, outputs, early)
        made: dict[int, int] = {}
        for number in reversed(range(len(guards.choosing))):  # those that read it come first
            node = guards.choosing[number]
            condition = node.inputs[0].owner
            known = 0 if condition is None else position[condition] + 1
            made[number] = max([known, *(made[j] for j in numbers(guards.of[node]))])
        unmet = {
            node: {number for number in numbers(guards.of[node]) if made[number] > k}
            for k, node in enumerate(order)
        }
        if not any(unmet.values()):
            return guards, made
        for node, each in unmet.items():
            if each:
                early.setdefault(node, set()).update(each)
