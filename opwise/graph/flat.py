"""Copies and pickles of graphs of any depth, without deep recursion.

``copy`` and ``pickle`` follow references, so they would recurse along a chain of thousands of
Applys. This module has them visit each Apply after all Applys that it depends on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    from opwise.graph.apply import Apply
    from opwise.graph.variable import Variable

#: a pickle lists every 8th Apply; those between come with it, as its dependencies
_STRIDE = 8
_pickling = threading.local()


def _in_turn(
    nodes: Iterable[Apply], done: Callable[[Apply], bool], origins: bool = True
) -> list[Apply]:
    """Return ``nodes`` and the Applys that they depend on, each after its own dependencies.

    An Apply depends on the Applys that compute its inputs, on those of the graph that its Op holds,
    and on its origins. done: returns whether to leave out an Apply and its dependencies. origins:
    whether to follow them.
    """
    order: list[Apply] = []
    seen: set[Apply] = set()
    # ids of tuples of origins that were gone through: many Applys may have one
    passed: set[int] | None = set() if origins else None
    for node in nodes:
        if node in seen or done(node):
            continue
        seen.add(node)
        stack = [(node, _needed(node, passed))]
        while stack:
            current, rest = stack[-1]
            for needed in rest:
                if needed not in seen and not done(needed):
                    seen.add(needed)
                    stack.append((needed, _needed(needed, passed)))
                    break
            else:
                stack.pop()
                order.append(current)
    return order


def _needed(node: Apply, passed: set[int] | None) -> Iterator[Apply]:
    """Yield the Applys that an Apply depends on, its origins last.

    passed: ids of tuples of origins that are left out, to which its own is added when all of it was
    taken; None: leave out all.
    """
    for var in (*node.inputs, *getattr(node.op, "_inner_outputs", ())):
        if var.owner is not None:
            yield var.owner
    if passed is not None and node._origins and id(node._origins) not in passed:
        yield from node._origins
        passed.add(id(node._origins))


def inner(node: Apply, done: Callable[[Apply], bool]) -> list[Apply]:
    """Return the Applys of the graph that an Op holds, at all levels, each after what it needs.

    done: returns whether to leave out an Apply and its dependencies.
    """
    first = [var.owner for var in getattr(node.op, "_inner_outputs", ()) if var.owner is not None]
    return _in_turn(first, done, origins=False) if first else []


def copied(thing: Any, node: Apply | None, memo: dict[int, Any]) -> Any:
    """Return the deep copy of a Variable or Apply, for its ``__deepcopy__``.

    node: the Apply itself or that of the variable; None for a variable without an owner.
    """
    if node is not None and id(node) not in memo:
        for needed in _in_turn(_needed(node, set()), lambda other: id(other) in memo):
            if id(needed) not in memo:
                _copy(needed, memo)
    return _copy(thing, memo)


def _copy(thing: Any, memo: dict[int, Any]) -> Any:
    found = memo.get(id(thing))
    if found is None:
        found = memo[id(thing)] = object.__new__(type(thing))
        found.__dict__.update(deepcopy(thing.__getstate__(), memo))
    return found


def reduced(thing: Variable | Apply, node: Apply) -> tuple[Any, ...]:
    """Return the reduction of a Variable or Apply that belongs to ``node``, for ``pickle``."""
    first = None if node in _covered() else _Dependencies(node)
    return _bare, (type(thing), first), thing.__getstate__()


def _bare(cls: type[Any], _before: object) -> Any:
    """Return an object without attributes: the unpickler sets them, after its dependencies."""
    return object.__new__(cls)


def _covered() -> set[Apply]:
    """Return the Applys that need no ``_Dependencies`` in the pickle that this thread writes.

    Their dependencies are written already, or will be in order.
    """
    found: set[Apply] | None = getattr(_pickling, "covered", None)
    if found is None:
        found = _pickling.covered = set()
    return found


class _Dependencies:
    """The Applys that ``node`` depends on, pickled as a list that no reader uses."""

    def __init__(self, node: Apply):
        self.node = node

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return list, (), None, self._items()

    def _items(self) -> Iterator[Any]:
        covered = _covered()
        mine = _in_turn(_needed(self.node, set()), covered.__contains__)
        taken = {*mine, self.node}
        covered |= taken
        try:
            yield from mine[_STRIDE - 1 :: _STRIDE]
            # as an item: a pickler may take many items before it writes the first
            yield AllWritten(taken)
        except GeneratorExit:
            covered -= taken
            raise


class WriteInOrder:
    """Applys and their dependencies, pickled as ``_Dependencies`` are.

    They count as covered until the pickler reaches an ``AllWritten`` of ``taken``.
    """

    def __init__(self, nodes: Iterable[Apply]):
        self.taken = _in_turn(nodes, lambda node: False)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        _covered().update(self.taken)
        return list, (), None, iter(self.taken[_STRIDE - 1 :: _STRIDE])


class AllWritten:
    """Pickled after some Applys: from here on they do not count as covered."""

    def __init__(self, nodes: Iterable[Apply]):
        self.nodes = nodes

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        _covered().difference_update(self.nodes)
        return int, ()
