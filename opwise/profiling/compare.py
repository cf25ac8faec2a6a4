"""The difference of two profiles: Applys matched by what they compute, never by identity.

First those that compute the same of the user's Applys; then what shares some of these: what one
side does in one Apply the other may do in several. What the user has changed computes other things,
but may still be the same line: such rows are marked as similar.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from opwise.profiling import aggregate
from opwise.profiling.aggregate import Row
from opwise.profiling.profile import ApplyProfile

#: how many Ops the label of a row names
_NAMED = 3


@dataclass(frozen=True)
class Difference:
    """One row of a comparison: what one side and the other spent on the same thing.

    mine, theirs: the sums of the two sides, None where that side has nothing. parts: the Applys of
    either side, where the row is about Applys. similar: matched by their lines alone.
    """

    key: object
    mine: Row | None
    theirs: Row | None
    parts: tuple[tuple[ApplyProfile, ...], tuple[ApplyProfile, ...]] = ((), ())
    similar: bool = False

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
    def relation(self):
        """'fused': several of self are one in other; 'split': one is several; 'regrouped': several
        are several others; 'similar': the same line, which computes something else; or ''."""
        mine, theirs = map(len, self.parts)
        if mine > 1 or theirs > 1:
            if not (mine and theirs):
                return ""
            return "fused" if theirs == 1 else "split" if mine == 1 else "regrouped"
        return "similar" if self.similar else ""

    @property
    def ratio(self):
        """How much longer other takes for one call than self; None where one side has none."""
        if self.mine and self.theirs and self.mine.each_ns and self.theirs.each_ns:
            return self.theirs.each_ns / self.mine.each_ns
        return None

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

    @property
    def lines(self):
        """The (file, line) pairs of the user's program, as of the first profile that has any."""
        return next((a.lines for side in self.parts for a in side if a.lines), ())


def match_key(apply):
    """Return what an Apply computes: the user's Applys that it came from, or else its own form.

    Equal for the same piece of a program under other linkers, devices and processes.
    """
    if apply.keys:
        return (apply.keys, apply.outputs)
    return ((), apply.op_key, apply.inputs, apply.outputs)


# --- Applys ---------------------------------------------------------------------------------------


def by_apply(mine, theirs):
    """Return a Difference for each Apply of either profile, or group of them that belong together.

    Each Apply is in one row, so the rows' differences add up to that of the profiles.
    """
    groups = _Groups((mine.applys, theirs.applys))
    groups.join_equal()
    groups.join_overlapping()
    groups.join_similar((mine.sources, theirs.sources))
    return groups.rows()


class _Groups:
    """Applys of two sides, joined step by step to the groups that a row each is about."""

    def __init__(self, sides):
        self.sides = sides
        self.keys = [_numbered(applys) for applys in sides]
        #: (side, index) -> the group, a list of such pairs; at first all are alone
        self.group = {
            (s, i): [(s, i)] for s, applys in enumerate(sides) for i in range(len(applys))
        }
        self.similar = set()

    def _join(self, one, other):
        first, second = self.group[one], self.group[other]
        if first is not second:
            if len(first) < len(second):
                first, second = second, first
            first += second
            for member in second:
                self.group[member] = first

    def _alone(self, side):
        """Return the indices of the Applys of a side that nothing has been found for."""
        return [i for i in range(len(self.sides[side])) if len(self.group[side, i]) == 1]

    def join_equal(self):
        """Join those of equal keys; of several equals the last with the last, and so on."""
        there = {key: i for i, key in enumerate(self.keys[1])}
        for i, key in enumerate(self.keys[0]):
            if key in there:
                self._join((0, i), (1, there[key]))

    def join_overlapping(self):
        """Join what is left with those of the other side that compute most of the same."""
        found = []
        for side in (0, 1):
            applys = self.sides[1 - side]
            owners = defaultdict(list)
            for j, apply in enumerate(applys):
                for key in set(apply.keys):
                    owners[key].append(j)
            for i in self._alone(side):
                shared = defaultdict(int)
                for key in set(self.sides[side][i].keys):
                    for j in owners[key]:
                        shared[j] += 1
                if shared:
                    best = max(shared, key=lambda j: (shared[j], -len(applys[j].keys), -j))
                    found.append(((side, i), (1 - side, best)))
        for one, other in found:
            self._join(one, other)

    def join_similar(self, sources):
        """Join in pairs those that are alone and come from the same line in the same form."""
        for form in (_form, _form_of_any_type):
            there = defaultdict(list)
            for j in reversed(self._alone(1)):
                there[form(self.sides[1][j], sources[1])].append(j)
            for i in self._alone(0):
                key = form(self.sides[0][i], sources[0])
                if key is not None and there[key]:
                    pair = (0, i), (1, there[key].pop())
                    self._join(*pair)
                    self.similar.update(pair)

    def rows(self):
        """Return the Differences, in the order of the first Apply of each."""
        found, seen = [], set()
        for member, group in self.group.items():
            if id(group) not in seen:
                seen.add(id(group))
                parts = tuple(
                    tuple(self.sides[side][i] for s, i in sorted(group) if s == side)
                    for side in (0, 1)
                )
                key = tuple(sorted({repr(self.keys[s][i]) for s, i in group}))
                rows = [_row(key, side) for side in parts]
                found.append(Difference(key, *rows, parts, member in self.similar))
        return found


def _numbered(applys):
    """Return (match key, position among equals) for each Apply.

    Equals are counted from the last: where a rewrite made several Applys for one of the user's, the
    last is the one that computes its value.
    """
    keys, seen = [], {}
    for apply in reversed(applys):
        key = match_key(apply)
        n = seen[key] = seen.get(key, -1) + 1
        keys.append((key, n))
    return keys[::-1]


def _row(key, applys):
    """Return the sum of some Applys, None if there are none."""
    if not applys:
        return None
    names = list(dict.fromkeys(apply.op for apply in applys))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    position = applys[0].position if len(applys) == 1 else -1
    row = Row(key, " + ".join(names[:_NAMED]) + more, position=position)
    for apply in applys:
        row.add(apply)
    return row


def _form(apply, sources):
    """Return what stays of an Apply where something before it is changed; None if not known."""
    form = _form_of_any_type(apply, sources)
    return form and (form, apply.outputs)


def _form_of_any_type(apply, sources):
    if not apply.lines:
        return None
    return tuple((o.op, o.scope, *_place(o.file, o.line, sources)) for o in apply.origins if o.file)


def _place(file, line, sources):
    """Return what a line is known by when others are written before it: its file and its text."""
    return os.path.basename(file), sources.get(f"{file}:{line}") or line


# --- sums -----------------------------------------------------------------------------------------


def _by_group(group, mine, theirs):
    sides = [{row.key: row for row in group(profile)} for profile in (mine, theirs)]
    for side in sides:
        for row in side.values():
            row.position = -1
    keys = [*sides[0], *(key for key in sides[1] if key not in sides[0])]
    return [Difference(key, sides[0].get(key), sides[1].get(key)) for key in keys]


def by_op(mine, theirs):
    """Return a Difference for each Op."""
    return _by_group(aggregate.by_op, mine, theirs)


def by_class(mine, theirs):
    """Return a Difference for each class of Op."""
    return _by_group(aggregate.by_class, mine, theirs)


def by_scope(mine, theirs):
    """Return a Difference for each scope."""
    return _by_group(aggregate.by_scope, mine, theirs)


def by_line(mine, theirs):
    """Return a Difference for each line of the user's program, known by its text and file."""
    return _by_group(_lines_by_text, mine, theirs)


def _lines_by_text(profile):
    """Return the rows of lines with keys that hold where lines are put before: equals by order."""
    rows, seen = aggregate.by_line(profile), {}
    for row in sorted((row for row in rows if row.key), key=lambda row: row.key):
        place = _place(*row.key, profile.sources)
        n = seen[place] = seen.get(place, -1) + 1
        row.key = (*place, n)
    return rows


#: the ways to compare, by name
WAYS: dict[str, Callable] = {
    "apply": by_apply, "op": by_op, "class": by_class, "line": by_line, "scope": by_scope,
}  # fmt: skip
