"""The difference of two profiles: Applys matched by what they compute, never by identity.

Functions are paired first. In each pair, Applys are joined that compute the same of the user's
program; then those that share some of it, since one side may do in one Apply what the other does in
several. A line that the user has changed computes something else: such rows are marked as similar.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from opwise.profiling import aggregate
from opwise.profiling.aggregate import SummaryRow
from opwise.profiling.callpaths import CallPath
from opwise.profiling.model import ApplyProfile, FunctionProfile, ProfileData

P = TypeVar("P", bound=ProfileData)
#: the Applys of a row on either side
Parts = tuple[tuple[ApplyProfile, ...], tuple[ApplyProfile, ...]]
#: from the file and number of a line to what identifies it when lines are inserted before it
Place = Callable[[str, int], tuple[str, "str | int"]]
#: an Apply of one of two sides: (side, index)
Member = tuple[int, int]

#: how many Ops the label of a row names
_NAMED = 3


@dataclass(frozen=True)
class Difference:
    """One row of a comparison: what self and other spent on the same thing."""

    key: Hashable
    #: the sum of self; None if it has nothing to do with the row
    mine: SummaryRow | None
    #: the sum of other, likewise
    theirs: SummaryRow | None
    #: theirs, scaled to as many calls of each function as self had
    scaled: SummaryRow | None = None
    #: the Applys of either side, in rows about Applys
    parts: Parts = ((), ())
    #: whether the sides are matched by their lines alone
    similar: bool = False

    @property
    def ns(self) -> float:
        """Self minus other, nanoseconds."""
        return (self.mine.ns if self.mine else 0) - (self.theirs.ns if self.theirs else 0)

    @property
    def only(self) -> str:
        """'self' or 'other' if only that side has the row, else ''."""
        if self.mine and self.theirs:
            return ""
        return "self" if self.mine else "other"

    @property
    def relation(self) -> str:
        """How the Applys of both sides belong together.

        'fused': several of self are one of other; 'split': one is several; 'regrouped': several are
        several others; 'similar': the same line, which computes something else; '' otherwise.
        """
        mine, theirs = map(len, self.parts)
        if mine > 1 or theirs > 1:
            if not (mine and theirs):
                return ""
            return "fused" if theirs == 1 else "split" if mine == 1 else "regrouped"
        return "similar" if self.similar else ""

    @property
    def ratio(self) -> float | None:
        """Time of other by time of self, for as many calls; None if a side has no time."""
        if self.mine and self.scaled and self.mine.ns and self.scaled.ns:
            return self.scaled.ns / self.mine.ns
        return None

    @property
    def position(self) -> int:
        """The position of the Apply in the first profile that has it, -1 for several."""
        return self._first.position

    @property
    def _first(self) -> SummaryRow:
        row = self.mine or self.theirs
        assert row is not None, "a row is about something of a side"
        return row

    @property
    def label(self) -> str:
        """The Op; both if the two sides use different ones; its algorithms if these changed."""
        if self.mine and self.theirs and self.mine.label != self.theirs.label:
            label = f"{self.mine.label} | {self.theirs.label}"
        else:
            label = self._first.label
        changed = self.algorithms
        return f"{label} [{' | '.join(changed)}]" if changed else label

    @property
    def algorithms(self) -> tuple[str, str] | None:
        """The algorithms of self and of other if they differ and both are known, else None."""
        mine, theirs = (
            " + ".join(dict.fromkeys(a.algorithm for a in side if a.algorithm))
            for side in self.parts
        )
        return (mine, theirs) if mine and theirs and mine != theirs else None

    @property
    def lines(self) -> tuple[tuple[str, int], ...]:
        """The (file, line) pairs of the user's program, as of the first profile that has any."""
        return next((a.lines for side in self.parts for a in side if a.lines), ())


def match_key(apply: ApplyProfile) -> Hashable:
    """Return a key of what an Apply computes: its origins in the program, else its own form.

    Equal for the same piece of a program under other linkers, devices and processes.
    """
    if apply.keys:
        return (apply.keys, apply.outputs)
    return ((), apply.op_key, apply.inputs, apply.outputs)


# --- functions ------------------------------------------------------------------------------------


#: how many functions that share an operation are considered as partners of another: the nearest
#: ones, so that pairing takes time in proportion to the number of functions
_PARTNERS = 16

#: for each side and function, the keys of what it computes
_Keys = list[list[frozenset[str]]]


def paired(mine: Sequence[FunctionProfile], theirs: Sequence[FunctionProfile]) -> dict[int, int]:
    """Return {number of a function of theirs: number of the function of mine that it belongs to}.

    In this order of preference: those of one name that compute the same; those of one name that
    compute some of the same; those that compute most of the same; those of one name.
    """
    sides = mine, theirs
    keys: _Keys = [[frozenset(key for a in f.applys for key in a.keys) for f in s] for s in sides]
    pairs = _paired_equals(mine, theirs, keys)
    taken = set(pairs.values())
    left = [i for i in range(len(mine)) if i not in taken]
    names = defaultdict(list)
    for j, f in enumerate(theirs):
        if j not in pairs:
            names[f.name].append(j)
    for *_, i, j in sorted(_candidates(mine, theirs, keys, left, names)):
        if j not in pairs and i not in taken:
            pairs[j] = i
            taken.add(i)
    # what is left of a name, which may have more functions than were considered
    for i in left:
        if i not in taken:
            rest = names[mine[i].name]
            while rest and rest[-1] in pairs:
                rest.pop()
            if rest:
                pairs[rest.pop()] = i
    return pairs


def _candidates(
    mine: Sequence[FunctionProfile],
    theirs: Sequence[FunctionProfile],
    keys: _Keys,
    left: list[int],
    names: dict[str, list[int]],
) -> Iterable[tuple[bool, float, int, int, int]]:
    """Yield tuples that sort by preference and end with the numbers of two functions.

    left: numbers of functions of mine without a partner. names: those of theirs, by name.
    """
    owners = defaultdict(list)
    for numbers in names.values():
        for j in numbers:
            for key in keys[1][j]:
                owners[key].append(j)
    for several in owners.values():
        several.sort()
    for i in left:
        common = dict.fromkeys(_nearest(names.get(mine[i].name, ()), i), 0)
        for key in keys[0][i]:
            for j in _nearest(owners.get(key, ()), i):
                common[j] = common.get(j, 0) + 1
        for j in common:
            # counted anew: only some owners of a frequent key were considered
            both = len(keys[0][i] & keys[1][j]) if common[j] else 0
            either = len(keys[0][i]) + len(keys[1][j]) - both
            named = mine[i].name == theirs[j].name
            yield not (named and both), -both / max(either, 1), abs(i - j), i, j


def _paired_equals(
    mine: Sequence[FunctionProfile], theirs: Sequence[FunctionProfile], keys: _Keys
) -> dict[int, int]:
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


def _nearest(numbers: Sequence[int], i: int) -> Sequence[int]:
    """Return those of some sorted numbers that are nearest to i, up to ``_PARTNERS``."""
    if len(numbers) <= _PARTNERS:
        return numbers
    start = bisect_left(numbers, i) - _PARTNERS // 2
    start = max(0, min(start, len(numbers) - _PARTNERS))
    return numbers[start : start + _PARTNERS]


def scaled_to(profile: P, other: ProfileData) -> P:
    """Return a profile scaled to as many calls of each function as another profile has."""
    pairs = paired(other.functions, profile.functions)
    return replace(
        profile,
        functions=tuple(
            _scaled(f, other.functions[pairs[j]].calls) if j in pairs else f
            for j, f in enumerate(profile.functions)
        ),
    )


_SCALED = ("total", "count", "asked", "waited")


def _scaled(function: FunctionProfile, calls: int) -> FunctionProfile:
    if not function.calls or not calls or function.calls == calls:
        return function
    part = calls / function.calls
    applys = tuple(
        replace(a, **{name: round(getattr(a, name) * part) for name in _SCALED})
        for a in function.applys
    )
    counts = {name: round(getattr(function, name) * part) for name in ("failed", "built_in_calls")}
    return replace(function, applys=applys, calls=calls, **counts)


# --- Applys ---------------------------------------------------------------------------------------


def by_apply(mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    """Return a Difference for each Apply of either profile, or group of Applys that match.

    Each Apply is in one row, so the rows' differences add up to that of the profiles.
    """
    groups = _Groups((mine, theirs))
    groups.join_equal()
    groups.join_overlapping()
    groups.join_similar()
    return groups.rows(scaled_to(theirs, mine).applys)


class _Groups:
    """Applys of two sides, joined step by step to groups; each group becomes a row."""

    def __init__(self, profiles: tuple[ProfileData, ProfileData]) -> None:
        self.sides = sides = [p.applys for p in profiles]
        self.places = _places(*profiles)
        pairs = paired(*(p.functions for p in profiles))
        #: by side and index, the number of the function of an Apply; a pair shares one number
        self.function = [
            [number for number, f in enumerate(profiles[0].functions) for _ in f.applys],
            [pairs.get(j, -1 - j) for j, f in enumerate(profiles[1].functions) for _ in f.applys],
        ]
        #: the group of each Apply; at first all are alone
        self.group: dict[Member, list[Member]] = {
            (s, i): [(s, i)] for s, applys in enumerate(sides) for i in range(len(applys))
        }
        self.similar: set[Member] = set()

    def _join(self, one: Member, other: Member) -> None:
        first, second = self.group[one], self.group[other]
        if first is not second:
            if len(first) < len(second):
                first, second = second, first
            first += second
            for member in second:
                self.group[member] = first

    def _alone(self, side: int) -> list[int]:
        """Return the indices of the Applys of a side that are not joined yet."""
        return [i for i in range(len(self.sides[side])) if len(self.group[side, i]) == 1]

    def join_equal(self) -> None:
        """Join Applys of equal keys, first those of one Op; of several the last with the last.

        If a rewrite made several Applys of one of the user's, the last one computes its value.
        """
        forms: tuple[Callable[[ApplyProfile], Hashable], ...] = (
            lambda a: (match_key(a), a.op_key),
            match_key,
        )
        for form in forms:
            there = defaultdict(list)
            for j in self._alone(1):
                there[self.function[1][j], form(self.sides[1][j])].append(j)
            for i in reversed(self._alone(0)):
                equals = there.get((self.function[0][i], form(self.sides[0][i])))
                if equals:
                    self._join((0, i), (1, equals.pop()))

    def join_overlapping(self) -> None:
        """Join each Apply left with the one of the other side that computes most of the same."""
        for one, other in [*self._overlapping(0), *self._overlapping(1)]:
            self._join(one, other)

    def _overlapping(self, side: int) -> list[tuple[Member, Member]]:
        """Return for each Apply of a side that is alone the best match of the other side."""
        applys, functions = self.sides[1 - side], self.function[1 - side]
        alone = set(self._alone(1 - side))
        owners = defaultdict(list)
        for j, apply in enumerate(applys):
            for key in set(apply.keys):
                owners[functions[j], key].append(j)

        def worth(j: int) -> tuple[int, bool, int, int]:
            return shared[j], j in alone, -len(applys[j].keys), -j

        found = []
        for i in self._alone(side):
            shared: dict[int, int] = defaultdict(int)
            for key in set(self.sides[side][i].keys):
                for j in owners.get((self.function[side][i], key), ()):
                    shared[j] += 1
            if shared:
                found.append(((side, i), (1 - side, max(shared, key=worth))))
        return found

    def join_similar(self) -> None:
        """Join pairs of Applys that are alone and come from the same line in the same form."""
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

    def rows(self, scaled: Sequence[ApplyProfile]) -> list[Difference]:
        """Return the Differences, in the order of the first Apply of each.

        scaled: the Applys of the other side, scaled to the calls of this one.
        """
        keys = [self._keys(side) for side in (0, 1)]
        found, seen = [], set()
        for member, group in self.group.items():
            if id(group) not in seen:
                seen.add(id(group))
                key = tuple(sorted({keys[s][i] for s, i in group}))
                mine = tuple(self.sides[0][i] for s, i in sorted(group) if not s)
                theirs = tuple(self.sides[1][i] for s, i in sorted(group) if s)
                same = [scaled[i] for s, i in sorted(group) if s]
                found.append(
                    Difference(
                        key, _row(key, mine), _row(key, theirs), _row(key, same), (mine, theirs),
                        member in self.similar,
                    )
                )  # fmt: skip
        return found

    def _keys(self, side: int) -> list[str]:
        """Return a text for each Apply of a side: what it computes, its place among equals."""
        keys: list[str] = []
        seen: dict[Hashable, int] = {}
        for apply in reversed(self.sides[side]):
            key = match_key(apply)
            n = seen[key] = seen.get(key, -1) + 1
            keys.append(repr((key, n)))
        return keys[::-1]


def _row(key: Hashable, applys: Sequence[ApplyProfile]) -> SummaryRow | None:
    """Return the sum of some Applys, None if there are none."""
    if not applys:
        return None
    loops = {apply.loop for apply in applys}
    loop = f"{loops.pop()} > " if len(loops) == 1 and applys[0].loop else ""
    names = list(dict.fromkeys(apply.op if loop else apply.name for apply in applys))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    label = loop + " + ".join(names[:_NAMED]) + more
    position = applys[0].position if len(applys) == 1 else -1
    row = SummaryRow(key, label, position=position)
    for apply in applys:
        row.add(apply)
    return row


def _form(apply: ApplyProfile, place: Place) -> Hashable:
    """Return what stays of an Apply if something before it is changed; None if unknown."""
    form = _form_of_any_type(apply, place)
    return form and (form, apply.outputs)


def _form_of_any_type(apply: ApplyProfile, place: Place) -> Hashable:
    if not apply.lines:
        return None
    return tuple((o.op, o.scope, *place(o.file, o.line)) for o in apply.origins if o.file)


def _places(mine: ProfileData, theirs: ProfileData) -> tuple[Place, Place]:
    """Return for each of two profiles the function that identifies a line.

    By the name of its file and its text, so that lines may be inserted before it. If the two
    programs are two files, these count as one.
    """
    ours, others = map(_files, (mine, theirs))
    script, other = map(_script, (mine, theirs))
    apart = script in ours - others and other in others - ours
    return _place(mine.sources, {}), _place(theirs.sources, {other: script} if apart else {})


def _place(sources: dict[str, str], renamed: dict[str, str]) -> Place:
    def place(file: str, line: int) -> tuple[str, str | int]:
        name = os.path.basename(file)
        return renamed.get(name, name), sources.get(f"{file}:{line}") or line

    return place


def _files(profile: ProfileData) -> set[str]:
    """Return the names of the files whose lines a profile has."""
    return {os.path.basename(o.file) for a in profile.applys for o in a.origins if o.file}


def _script(profile: ProfileData) -> str:
    """Return the name of the file that was run, '' if several were."""
    files = {str(e.get("program", "")).split(" ")[0] for e in profile.environments}
    return os.path.basename(files.pop()) if len(files) == 1 else ""


# --- sums -----------------------------------------------------------------------------------------


#: from a profile to its rows
_Group = Callable[[ProfileData], list[SummaryRow]]


def _by_group(group: _Group, mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    profiles = (mine, theirs, scaled_to(theirs, mine))
    sides = [{row.key: row for row in group(profile)} for profile in profiles]
    for side in sides:
        for row in side.values():
            row.position = -1
    here, there, same = sides
    keys = [*here, *(key for key in there if key not in here)]
    return [Difference(key, here.get(key), there.get(key), same.get(key)) for key in keys]


def total(mine: ProfileData, theirs: ProfileData) -> Difference:
    """Return the Difference of all Applys together."""
    (row,) = _by_group(_all, mine, theirs)
    return row


def _all(profile: ProfileData) -> list[SummaryRow]:
    row = SummaryRow("all", "all Applys")
    for apply in profile.applys:
        row.add(apply)
    return [row]


def by_op(mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    """Return a Difference for each Op."""
    return _by_group(aggregate.by_op, mine, theirs)


def by_class(mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    """Return a Difference for each class of Op."""
    return _by_group(aggregate.by_class, mine, theirs)


def by_shapes(mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    """Return a Difference for each Op with inputs of some shapes, as of the last calls."""
    return _by_group(aggregate.by_shapes, mine, theirs)


def by_scope(mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    """Return a Difference for each scope."""
    return _by_group(aggregate.by_scope, mine, theirs)


def by_line(mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    """Return a Difference for each line of the user's program, known by its text and file."""
    here, there = _places(mine, theirs)
    return _by_group(lambda p: _lines_by_text(p, here if p is mine else there), mine, theirs)


def _lines_by_text(profile: ProfileData, place_of: Place) -> list[SummaryRow]:
    """Return the rows of lines with keys that stay when lines are inserted before them.

    Lines of equal text are numbered in their order.
    """
    rows = aggregate.by_line(profile)
    seen: dict[tuple[str, str | int], int] = {}
    known = [(row.key, row) for row in rows if isinstance(row.key, tuple)]
    for (file, line), row in sorted(known, key=lambda pair: pair[0]):
        place = place_of(file, line)
        n = seen[place] = seen.get(place, -1) + 1
        row.key = (*place, n)
    return rows


def by_call(mine: ProfileData, theirs: ProfileData) -> list[Difference]:
    """Return a Difference for each path of calls, whose lines are known by their texts and files.

    Paths that differ only in lines of equal texts are one.
    """
    here, there = _places(mine, theirs)
    return _by_group(lambda p: _calls_by_text(p, here if p is mine else there), mine, theirs)


def _calls_by_text(profile: ProfileData, place_of: Place) -> list[SummaryRow]:
    """Return the rows of paths of calls with keys that stay when lines are inserted."""
    rows: dict[Hashable, SummaryRow] = {}
    for row in aggregate.by_call(profile):
        assert isinstance(row.key, CallPath)
        key = tuple(
            (frame.function, *place_of(frame.file, frame.line)) if frame.file else frame.library
            for frame in row.key.frames
        )
        row.key = key
        if key in rows:
            rows[key].join(row)
        else:
            rows[key] = row
    return list(rows.values())


#: from two profiles to the rows of their difference
Comparison = Callable[[ProfileData, ProfileData], list[Difference]]

#: the comparisons, by what their rows are about
GROUPINGS: dict[str, Comparison] = {
    "apply": by_apply, "op": by_op, "class": by_class, "line": by_line, "call": by_call,
    "scope": by_scope, "shapes": by_shapes,
}  # fmt: skip
