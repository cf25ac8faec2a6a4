"""Copies and pickles of graphs of any depth: what an Apply reads is done before the Apply.

``copy`` and ``pickle`` follow references; along a chain of thousands of Applys they would recurse
as deep. Here they meet each Apply when all that it reads was met already, and so go no deeper.
"""

from __future__ import annotations

import threading
from copy import deepcopy

#: of the Applys before one only each so many-th is written first: others come with the next of them
_STRIDE = 8
_pickling = threading.local()


def _in_turn(nodes, done) -> list:
    """Return Applys and those that they depend on, each behind those that it depends on itself.

    They depend on the Applys that make what they read, and on their origins. done: tells of an
    Apply whether it can be left out, and with it all that it depends on.
    """
    order: list = []
    seen: set = set()
    for node in nodes:
        if node in seen or done(node):
            continue
        seen.add(node)
        stack = [(node, iter(_needed(node)))]
        while stack:
            current, rest = stack[-1]
            for needed in rest:
                if needed not in seen and not done(needed):
                    seen.add(needed)
                    stack.append((needed, iter(_needed(needed))))
                    break
            else:
                stack.pop()
                order.append(current)
    return order


def _needed(node):
    needed = [var.owner for var in node.inputs if var.owner is not None]
    return needed + list(node._origins or ())


def copied(thing, node, memo):
    """Return what ``copy.deepcopy`` is to make of a Variable or Apply. node: the Apply, if any."""
    if node is not None and id(node) not in memo:
        for needed in _in_turn(_needed(node), lambda other: id(other) in memo):
            if id(needed) not in memo:
                _copy(needed, memo)
    return _copy(thing, memo)


def _copy(thing, memo):
    found = memo.get(id(thing))
    if found is None:
        found = memo[id(thing)] = object.__new__(type(thing))
        found.__dict__.update(deepcopy(thing.__getstate__(), memo))
    return found


def reduced(thing, node):
    """Return what ``__reduce_ex__`` is to give for a Variable or Apply that belongs to ``node``."""
    first = None if node in _covered() else _Before(node)
    return _bare, (type(thing), first), thing.__getstate__()


def _bare(cls, _before):
    """Return an object whose attributes come later; what it depends on was read before."""
    return object.__new__(cls)


def _covered():
    """The Applys whose turn comes in a pickle that is being written by this thread."""
    found = getattr(_pickling, "covered", None)
    if found is None:
        found = _pickling.covered = set()
    return found


class _Before:
    """What a node depends on, as the pickler writes it: a list, of which nobody reads anything."""

    def __init__(self, node):
        self.node = node

    def __reduce_ex__(self, protocol):
        return list, (), None, self._items()

    def _items(self):
        covered = _covered()
        mine = _in_turn(_needed(self.node), covered.__contains__)
        taken = {*mine, self.node}
        covered |= taken
        try:
            yield from mine[_STRIDE - 1 :: _STRIDE]
            yield Done(taken)  # not here: a pickler may ask for many before it writes the first
        except GeneratorExit:
            covered -= taken
            raise


class All:
    """Applys and what they depend on, as ``_Before``; written until a ``Done`` of it comes."""

    def __init__(self, nodes):
        self.taken = _in_turn(nodes, lambda node: False)

    def __reduce_ex__(self, protocol):
        _covered().update(self.taken)
        return list, (), None, iter(self.taken[_STRIDE - 1 :: _STRIDE])


class Done:
    """Written when all of some Applys were, and what was to be written with them."""

    def __init__(self, nodes):
        self.nodes = nodes

    def __reduce_ex__(self, protocol):
        _covered().difference_update(self.nodes)
        return int, ()
