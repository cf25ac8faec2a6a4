"""Which variables of a function its loops and branches read from outside, or hand on.

All others belong to one step or branch. Works on statements without break, continue and early
returns (``convert`` has made flags of them), from the last one to the first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Liveness:
    """Gives each ``for``, ``while`` and ``if`` two attributes.

    live: the names that are read after it. entry: those that its steps or branches may read before
    they assign them. ends: names that are read after the last statement.
    """

    def __init__(self, body: Sequence[ast.stmt], ends: Iterable[str]) -> None:
        #: what functions inside read, or share: they may be called at any time
        self._always = {name for each in body for name in _shared(each)}
        self._block(body, frozenset(ends))

    def _block(self, body: Sequence[ast.stmt], after: frozenset[str]) -> frozenset[str]:
        """Return the names that are read in statements, or after them, before they are assigned."""
        for statement in reversed(body):
            after = self._statement(statement, after)
        return after

    def _statement(self, node: ast.stmt, after: frozenset[str]) -> frozenset[str]:
        if isinstance(node, ast.If):
            node.live = after | self._always  # type: ignore[attr-defined]
            entry = self._block(node.body, after) | self._block(node.orelse, after)
            node.entry = entry  # type: ignore[attr-defined]
            return entry | _reads(node.test)
        if isinstance(node, ast.For | ast.While):
            after = self._block(node.orelse, after)
            node.live = after | self._always  # type: ignore[union-attr]
            return self._loop(node, after)
        if isinstance(node, ast.Assign):
            assigned = {name for target in node.targets for name in _assigned(target)}
            return (after - assigned) | _reads(node)
        after |= _reads(node)
        if not isinstance(node, _FUNCTIONS):
            for each in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                for name in ("body", "orelse", "finalbody"):
                    self._block(getattr(each, name, ()), after)
        return after

    def _loop(self, node: ast.For | ast.While, after: frozenset[str]) -> frozenset[str]:
        own = {getattr(node, "stop", None)} - {None}
        assigned: set[str] = set()
        if isinstance(node, ast.For):
            assigned = set(_assigned(node.target))
            read = _reads(node.target)
        else:
            read = _reads(node.test)
        start = after | read
        while True:
            again = start | (self._block(node.body, start | own) - assigned)
            if again == start:
                break
            start = again
        node.entry = start  # type: ignore[union-attr]
        return start | _reads(node.iter) if isinstance(node, ast.For) else start


def _assigned(target: ast.expr) -> Iterable[str]:
    """Return the names that a target gives values."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _assigned(each)


def _reads(node: ast.AST) -> frozenset[str]:
    """Return the names that are read in a statement or an expression, functions inside included."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
    return frozenset(found)


def _shared(statement: ast.stmt) -> Iterable[str]:
    """Return the names that functions inside a statement read or declare."""
    for each in ast.walk(statement):
        if isinstance(each, _FUNCTIONS):
            yield from _reads(each)
        if isinstance(each, ast.Nonlocal | ast.Global):
            yield from each.names
