"""The difference of two profiles: Applys matched by what they compute, never by identity.

Functions are paired first, then in each pair the Applys that compute the same of the user's; then
those that share some of it: what one side does in one Apply the other may do in several. What the
user has changed computes other things, but may still be the same line: such rows are marked as
similar.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from opwise.profiling import aggregate
from opwise.profiling.aggregate import Row
from opwise.profiling.profile import ApplyProfile

#: how many Ops the label of a row names
_NAMED = 3


@dataclass(frozen=True)
class Difference:
    """One row of a comparison: what one side and the other spent on the same thing.

    mine, theirs: the sums of the two sides, None where that side has nothing. even: theirs, for as
    many calls of each function as mine had. parts: the Applys of either side, where the row is
    about Applys. similar: matched by their lines alone.
    """

    key: object
    mine: Row | None
    theirs: Row | None
    even: Row | None = None
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
        """How much longer other takes for the calls of self; None where one side has none."""
        if self.mine and self.even and self.mine.ns and self.even.ns:
            return self.even.ns / self.mine.ns
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


# --- functions ------------------------------------------------------------------------------------


#: of the functions that compute some one thing of the user's, how many are looked at as partners
#: of another: the nearest. So pairing takes time in proportion to the number of functions.
_PARTNERS = 16


def paired(mine, theirs):
    """Return {number of a function of theirs: number of the one of mine that it belongs to}.

    Those of one name that compute the same come first, then those of one name that compute some of
    the same, then those that compute most of the same, then those of one name.
    """
    keys = [[frozenset(key for a in f.applys for key in a.keys) for f in s] for s in (mine, theirs)]
    pairs = _paired_equals(mine, theirs, keys)
    taken = set(pairs.values())
    left = [i for i in range(len(mine)) if i not in taken]
    owners, names = defaultdict(list), defaultdict(list)
    for j, f in enumerate(theirs):
        if j not in pairs:
            names[f.name].append(j)
            for key in keys[1][j]:
                owners[key].append(j)
    found = []
    for i in left:
        common = dict.fromkeys(_nearest(names[mine[i].name], i), 0)
        for key in keys[0][i]:
            for j in _nearest(owners.get(key, ()), i):
                common[j] = common.get(j, 0) + 1
        for j in common:
            # counted anew: of a key with many owners only some were looked at
            both = len(keys[0][i] & keys[1][j]) if common[j] else 0
            either = len(keys[0][i]) + len(keys[1][j]) - both
            named = mine[i].name == theirs[j].name
            found.append((not (named and both), -both / max(either, 1), abs(i - j), i, j))
    for *_, i, j in sorted(found):
        if j not in pairs and i not in taken:
            pairs[j] = i
            taken.add(i)
    # what is left of a name, of which there may be more than were looked at
    for i in left:
        if i not in taken:
            rest = names[mine[i].name]
            while rest and rest[-1] in pairs:
                rest.pop()
            if rest:
                pairs[rest.pop()] = i
    return pairs


def _paired_equals(mine, theirs, keys):
    """Return the pairs of functions of one name that compute the same, in their order."""
    left = defaultdict(list)
    for j in reversed(range(len(theirs))):
        if keys[1][j]:
            left[theirs[j].name, keys[1][j]].append(j)
    pairs = {}
    for i, f in enumerate(mine):
        equals = left.get((f.name, keys[0][i]))
        if equals:
            pairs[equals.pop()] = i
    return pairs


def _nearest(numbers, i):
    """Return those of some sorted numbers that are nearest to i, up to ``_PARTNERS``."""
    if len(numbers) <= _PARTNERS:
        return numbers
    start = bisect_left(numbers, i) - _PARTNERS // 2
    start = max(0, min(start, len(numbers) - _PARTNERS))
    return numbers[start : start + _PARTNERS]


def like(profile, other):
    """Return a profile as it would be with as many calls of each function as another has."""
    pairs = paired(other.functions, profile.functions)
    return replace(
        profile,
        functions=tuple(
            _called(f, other.functions[pairs[j]].calls) if j in pairs else f
            for j, f in enumerate(profile.functions)
        ),
    )


def _called(function, calls):
    if not function.calls or not calls or function.calls == calls:
        return function
    part = calls / function.calls
    applys = tuple(
        replace(
            a,
            **{
                name: round(getattr(a, name) * part)
                for name in ("total", "count", "asked", "waited")
            },
        )
        for a in function.applys
    )
    failed = round(function.failed * part)
    return replace(function, applys=applys, calls=calls, failed=failed)


# --- Applys ---------------------------------------------------------------------------------------


def by_apply(mine, theirs):
    """Return a Difference for each Apply of either profile, or group of them that belong together.

    Each Apply is in one row, so the rows' differences add up to that of the profiles.
    """
    groups = _Groups((mine, theirs))
    groups.join_equal()
    groups.join_overlapping()
    groups.join_similar()
    return groups.rows(like(theirs, mine).applys)


class _Groups:
    """Applys of two sides, joined step by step to the groups that a row each is about."""

    def __init__(self, profiles):
        self.sides = sides = [p.applys for p in profiles]
        self.places = _places(*profiles)
        pairs = paired(*(p.functions for p in profiles))
        #: by side and Apply, the function that it is in; those of a pair have one number
        self.function = [
            [number for number, f in enumerate(profiles[0].functions) for _ in f.applys],
            [pairs.get(j, -1 - j) for j, f in enumerate(profiles[1].functions) for _ in f.applys],
        ]
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
        """Join those of equal keys, first those of one Op; of several the last with the last.

        Where a rewrite made several Applys for one of the user's, the last is the one that computes
        its value.
        """
        for form in (lambda a: (match_key(a), a.op_key), match_key):
            there = defaultdict(list)
            for j in self._alone(1):
                there[self.function[1][j], form(self.sides[1][j])].append(j)
            for i in reversed(self._alone(0)):
                equals = there.get((self.function[0][i], form(self.sides[0][i])))
                if equals:
                    self._join((0, i), (1, equals.pop()))

    def join_overlapping(self):
        """Join what is left with those of the other side that compute most of the same."""
        found = []
        for side in (0, 1):
            applys, functions = self.sides[1 - side], self.function[1 - side]
            alone = set(self._alone(1 - side))
            owners = defaultdict(list)
            for j, apply in enumerate(applys):
                for key in set(apply.keys):
                    owners[functions[j], key].append(j)
            for i in self._alone(side):
                shared = defaultdict(int)
                for key in set(self.sides[side][i].keys):
                    for j in owners.get((self.function[side][i], key), ()):
                        shared[j] += 1
                if shared:
                    best = max(
                        shared, key=lambda j: (shared[j], j in alone, -len(applys[j].keys), -j)
                    )
                    found.append(((side, i), (1 - side, best)))
        for one, other in found:
            self._join(one, other)

    def join_similar(self):
        """Join in pairs those that are alone and come from the same line in the same form."""
        places = self.places
        for form in (_form, _form_of_any_type):
            there = defaultdict(list)
            for j in reversed(self._alone(1)):
                there[self.function[1][j], form(self.sides[1][j], places[1])].append(j)
            for i in self._alone(0):
                key = form(self.sides[0][i], places[0])
                equals = there.get((self.function[0][i], key))
                if key is not None and equals:
                    pair = (0, i), (1, equals.pop())
                    self._join(*pair)
                    self.similar.update(pair)

    def rows(self, even):
        """Return the Differences, in the order of the first Apply of each.

        even: the Applys of the other side as for the calls of this one.
        """
        keys = [self._keys(side) for side in (0, 1)]
        found, seen = [], set()
        for member, group in self.group.items():
            if id(group) not in seen:
                seen.add(id(group))
                parts = tuple(
                    tuple(self.sides[side][i] for s, i in sorted(group) if s == side)
                    for side in (0, 1)
                )
                key = tuple(sorted({keys[s][i] for s, i in group}))
                theirs = [even[i] for s, i in sorted(group) if s]
                rows = [_row(key, side) for side in (*parts, theirs)]
                found.append(Difference(key, *rows, parts, member in self.similar))
        return found

    def _keys(self, side):
        """Return a text for each Apply of a side: what it computes, its place among equals."""
        keys, seen = [], {}
        for apply in reversed(self.sides[side]):
            key = match_key(apply)
            n = seen[key] = seen.get(key, -1) + 1
            keys.append(repr((key, n)))
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


def _form(apply, place):
    """Return what stays of an Apply where something before it is changed; None if not known."""
    form = _form_of_any_type(apply, place)
    return form and (form, apply.outputs)


def _form_of_any_type(apply, place):
    if not apply.lines:
        return None
    return tuple((o.op, o.scope, *place(o.file, o.line)) for o in apply.origins if o.file)


def _places(mine, theirs):
    """Return for each of two profiles what a line is known by when others are written before it.

    A function of its file and number: the name of the file and the text of the line. Two programs
    that are compared may be two files: then these count as one.
    """
    ours, others = map(_files, (mine, theirs))
    script, other = map(_script, (mine, theirs))
    apart = script in ours - others and other in others - ours
    return _place(mine.sources, {}), _place(theirs.sources, {other: script} if apart else {})


def _place(sources, renamed):
    def place(file, line):
        name = os.path.basename(file)
        return renamed.get(name, name), sources.get(f"{file}:{line}") or line

    return place


def _files(profile):
    """Return the names of the files whose lines a profile has."""
    return {os.path.basename(o.file) for a in profile.applys for o in a.origins if o.file}


def _script(profile):
    """Return the name of the file that was run, '' where several were."""
    files = {str(e.get("program", "")).split(" ")[0] for e in profile.environments}
    return os.path.basename(files.pop()) if len(files) == 1 else ""


# --- sums -----------------------------------------------------------------------------------------


def _by_group(group, mine, theirs):
    profiles = (mine, theirs, like(theirs, mine))
    sides = [{row.key: row for row in group(profile)} for profile in profiles]
    for side in sides:
        for row in side.values():
            row.position = -1
    keys = [*sides[0], *(key for key in sides[1] if key not in sides[0])]
    return [Difference(key, *(side.get(key) for side in sides)) for key in keys]


def total(mine, theirs):
    """Return the Difference of all Applys together."""
    (row,) = _by_group(_all, mine, theirs)
    return row


def _all(profile):
    row = Row("all", "all Applys")
    for apply in profile.applys:
        row.add(apply)
    return [row]


def by_op(mine, theirs):
    """Return a Difference for each Op."""
    return _by_group(aggregate.by_op, mine, theirs)


def by_class(mine, theirs):
    """Return a Difference for each class of Op."""
    return _by_group(aggregate.by_class, mine, theirs)


def by_shapes(mine, theirs):
    """Return a Difference for each Op with inputs of some shapes, as of the last calls."""
    return _by_group(aggregate.by_shapes, mine, theirs)


def by_scope(mine, theirs):
    """Return a Difference for each scope."""
    return _by_group(aggregate.by_scope, mine, theirs)


def by_line(mine, theirs):
    """Return a Difference for each line of the user's program, known by its text and file."""
    here, there = _places(mine, theirs)
    return _by_group(lambda p: _lines_by_text(p, here if p is mine else there), mine, theirs)


def _lines_by_text(profile, place_of):
    """Return the rows of lines with keys that hold where lines are put before: equals by order."""
    rows, seen = aggregate.by_line(profile), {}
    for row in sorted((row for row in rows if row.key is not None), key=lambda row: row.key):
        place = place_of(*row.key)
        n = seen[place] = seen.get(place, -1) + 1
        row.key = (*place, n)
    return rows


#: the ways to compare, by name
WAYS: dict[str, Callable] = {
    "apply": by_apply, "op": by_op, "class": by_class, "line": by_line, "scope": by_scope,
    "shapes": by_shapes,
}  # fmt: skip
