"""The difference of two profiles: Applys matched by what they compute, never by identity."""

from __future__ import annotations

from dataclasses import dataclass

from opwise.profiling import aggregate
from opwise.profiling.aggregate import Row


@dataclass(frozen=True)
class Difference:
    """One row of a comparison: what one side and the other spent on the same thing.

    mine, theirs: the sums of the two sides, None where that side has nothing.
    """

    key: object
    mine: Row | None
    theirs: Row | None

    @property
    def ns(self):
        """Self minus other, nanoseconds."""
        return (self.mine.ns if self.mine else 0) - (self.theirs.ns if self.theirs else 0)

    @property
    def only(self):
        """'self' or 'other' where only that side has it, else ''."""
        if self.mine and self.theirs:
            return ""
        return "self" if self.mine else "other"

    @property
    def position(self):
        """The position of the Apply in the first profile that has it, -1 for several."""
        return (self.mine or self.theirs).position

    @property
    def label(self):
        """The Op; both, where the two sides use another one for the same thing."""
        if self.mine and self.theirs and self.mine.label != self.theirs.label:
            return f"{self.mine.label} | {self.theirs.label}"
        return (self.mine or self.theirs).label


def match_key(apply):
    """Return what an Apply computes: the user's Applys that it came from, or else its own form.

    Equal for the same piece of a program under other linkers, devices and processes.
    """
    if apply.keys:
        return (apply.keys, apply.outputs)
    return ((), apply.op_key, apply.inputs, apply.outputs)


def _matched(mine, theirs):
    """Return a Difference for each key of either dict, those of the first in front."""
    keys = [*mine, *(key for key in theirs if key not in mine)]
    return [Difference(key, mine.get(key), theirs.get(key)) for key in keys]


def _numbered(profile):
    """Return {(match key, position among equals): Row} with a row for each Apply, in order.

    Equals are counted from the last: where a rewrite made several Applys for one of the user's, the
    last is the one that computes its value.
    """
    rows, seen = {}, {}
    for apply in reversed(profile.applys):
        key = match_key(apply)
        n = seen[key] = seen.get(key, -1) + 1
        row = rows[(key, n)] = Row(key, apply.op, position=apply.position)
        row.add(apply)
    return dict(reversed(rows.items()))


def by_apply(mine, theirs):
    """Return a Difference for each Apply of either profile, matched where both have it."""
    return _matched(_numbered(mine), _numbered(theirs))


def _by_group(group, mine, theirs):
    sides = [{row.key: row for row in group(profile)} for profile in (mine, theirs)]
    for side in sides:
        for row in side.values():
            row.position = -1
    return _matched(*sides)


def by_op(mine, theirs):
    """Return a Difference for each Op."""
    return _by_group(aggregate.by_op, mine, theirs)


def by_class(mine, theirs):
    """Return a Difference for each class of Op."""
    return _by_group(aggregate.by_class, mine, theirs)
