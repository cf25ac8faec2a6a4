"""The difference of two profiles: Applys matched by what they compute, never by identity."""

from __future__ import annotations

from dataclasses import dataclass

from opwise.profiling import aggregate


@dataclass(frozen=True)
class Difference:
    """One row of a comparison: what one side and the other spent on the same thing.

    mine, theirs: nanoseconds, 0 where that side has nothing. only: 'self' or 'other' where one side
    has nothing, else ''. c_mine, c_theirs: whether it ran in C.
    """

    key: object
    label: str
    position: int
    mine: int
    theirs: int
    only: str
    c_mine: bool
    c_theirs: bool
    calls_mine: int
    calls_theirs: int

    @property
    def ns(self):
        """Self minus other, nanoseconds."""
        return self.mine - self.theirs


def match_key(apply):
    """Return what an Apply computes: the user's Applys that it came from, or else its own form.

    Equal for the same piece of a program under other linkers, devices and processes.
    """
    if apply.keys:
        return (apply.keys, apply.outputs)
    return ((), apply.op_key, apply.inputs, apply.outputs)


def _numbered(profile):
    """Return {(match key, position among equals): Apply} in order."""
    found, seen = {}, {}
    for apply in profile.applys:
        key = match_key(apply)
        n = seen.get(key, 0)
        seen[key] = n + 1
        found[(key, n)] = apply
    return found


def by_apply(mine, theirs):
    """Return a Difference for each Apply of either profile, matched where both have it."""
    a, b = _numbered(mine), _numbered(theirs)
    rows = []
    for key in (*a, *(k for k in b if k not in a)):
        x, y = a.get(key), b.get(key)
        shown = x or y
        rows.append(
            Difference(
                key,
                _label(x, y),
                shown.position,
                x.total if x else 0,
                y.total if y else 0,
                "" if x and y else ("self" if x else "other"),
                bool(x and x.c),
                bool(y and y.c),
                x.count if x else 0,
                y.count if y else 0,
            )
        )
    return rows


def _label(x, y):
    """The Op of a row; both, where the two sides use another one for the same thing."""
    if x and y and x.op != y.op:
        return f"{x.op} | {y.op}"
    return (x or y).op


def _by_group(group, mine, theirs):
    a = {row.key: row for row in group(mine)}
    b = {row.key: row for row in group(theirs)}
    rows = []
    for key in (*a, *(k for k in b if k not in a)):
        x, y = a.get(key), b.get(key)
        shown = x or y
        rows.append(
            Difference(
                key,
                shown.label,
                -1,
                x.ns if x else 0,
                y.ns if y else 0,
                "" if x and y else ("self" if x else "other"),
                bool(x and x.c),
                bool(y and y.c),
                x.calls if x else 0,
                y.calls if y else 0,
            )
        )
    return rows


def by_op(mine, theirs):
    """Return a Difference for each Op."""
    return _by_group(aggregate.by_op, mine, theirs)


def by_class(mine, theirs):
    """Return a Difference for each class of Op."""
    return _by_group(aggregate.by_class, mine, theirs)
