"""Sums over a profile: by Apply, Op (and shapes), class of Op; by line, calls and scope."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile

from opwise.profiling.callpaths import CallPath, path_of
from opwise.profiling.model import ApplyProfile, CallFrame, OriginProfile, ProfileData


@dataclass
class SummaryRow:
    """The sum of some Applys, or of parts of them."""

    key: Hashable
    label: str
    #: nanoseconds
    ns: float = 0
    #: runs of all Applys
    calls: int = 0
    #: number of Applys
    applys: int = 0
    #: whether all run in C
    c: bool = True
    #: whether all run in Python
    python: bool = True
    #: position of the first Apply; -1 in rows that are not about positions
    position: int = -1
    #: nanoseconds in gradients
    gradient: float = 0
    #: runs of the Apply with most runs
    runs: int = 0

    def add(
        self, apply: ApplyProfile, part: float = 1, is_gradient: bool = False, is_new: bool = True
    ) -> None:
        """Add an Apply, or a part of its time. is_new: it has not been added before."""
        self.ns += apply.total * part
        self.gradient += apply.total * part * is_gradient
        self.runs = max(self.runs, apply.count)
        self.calls += apply.count * is_new
        self.applys += is_new
        self.c = self.c and apply.c
        self.python = self.python and not apply.c

    def join(self, other: SummaryRow) -> None:
        """Add another row about other Applys, or other parts of them."""
        self.ns += other.ns
        self.gradient += other.gradient
        self.runs = max(self.runs, other.runs)
        self.calls += other.calls
        self.applys += other.applys
        self.c = self.c and other.c
        self.python = self.python and other.python


def _group(
    applys: Iterable[ApplyProfile],
    key: Callable[[ApplyProfile], Hashable],
    label: Callable[[ApplyProfile], str],
) -> list[SummaryRow]:
    rows: dict[Hashable, SummaryRow] = {}
    for apply in applys:
        k = key(apply)
        row = rows.get(k)
        if row is None:
            row = rows[k] = SummaryRow(k, label(apply), position=apply.position)
        row.add(apply)
    return list(rows.values())


def by_apply(profile: ProfileData) -> list[SummaryRow]:
    """Return a row for each (position, Op); Applys of several functions may share one."""
    return _group(profile.applys, lambda a: (a.position, a.op_key), lambda a: a.name)


def by_op(profile: ProfileData) -> list[SummaryRow]:
    """Return a row for each Op."""
    return _group(profile.applys, lambda a: a.op_key, lambda a: a.op)


def by_class(profile: ProfileData) -> list[SummaryRow]:
    """Return a row for each class of Op."""
    return _group(profile.applys, lambda a: a.op_class, lambda a: a.op_class)


def by_shapes(profile: ProfileData) -> list[SummaryRow]:
    """Return a row for each Op with inputs of the same dtypes and shapes in the last call.

    A profile does not record whether an Apply had inputs of other shapes before.
    """
    return _group(profile.applys, shapes_key, lambda a: f"{a.op} {shapes_text(a)}")


def shapes_key(apply: ApplyProfile) -> Hashable:
    """Return the key of the row of ``by_shapes`` that an Apply is in."""
    arrays = tuple(a and (a.dtype, a.shape) for a in apply.input_arrays)
    return apply.op_key, arrays, bool(apply.input_arrays)


def shapes_text(apply: ApplyProfile) -> str:
    """Return the dtypes and shapes that the inputs of an Apply had in its last call, as text."""
    if not apply.input_arrays:
        return "(shapes not known)" if apply.inputs else "(no inputs)"
    return " ".join(
        f"{a.dtype}({', '.join(map(str, a.shape))})" if a is not None else "(no array)"
        for a in apply.input_arrays
    )


def by_line(profile: ProfileData) -> list[SummaryRow]:
    """Return a row for each line of the program; ``parts_of`` divides the time of an Apply.

    A gradient counts for the line of what it is the gradient of, and in ``gradient``.
    """

    def label(key: Hashable) -> str:
        return "%s:%d" % key if isinstance(key, tuple) else "(unknown line)"

    return _shared(profile.applys, line_of, label)


def by_call(profile: ProfileData) -> list[SummaryRow]:
    """Return a row for each path of calls that wrote Applys; its key is a CallPath.

    ``parts_of`` divides the time of an Apply. A gradient counts for the calls that wrote what it is
    the gradient of, and in ``gradient``.
    """
    return _shared(profile.applys, calls_of(profile), str)


def calls_of(profile: ProfileData) -> Callable[[OriginProfile], CallPath]:
    """Return the function from an origin to the calls that it counts for: its line at least."""

    @cache
    def path(key: str, line: tuple[str, int] | None) -> CallPath:
        known = path_of(profile.frames, key)
        if known.frames or line is None:
            return known
        return CallPath((CallFrame(*line, ""),))

    return lambda origin: path(origin.frame, line_of(origin))


@dataclass
class CallNode:
    """A line of the program, with the time of all that was written below it."""

    #: None for the root
    frame: CallFrame | None = None
    #: nanoseconds of all that was written in it, and in what it called
    ns: float = 0
    #: of these, what the line itself wrote
    own_ns: float = 0
    #: of these, in gradients
    gradient: float = 0
    #: the lines that it called
    calls: dict[CallFrame, CallNode] = field(default_factory=dict)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, CallNode]]:
        """Yield (depth, line) of all below it: the slowest first, each before what it called."""
        for child in sorted(self.calls.values(), key=lambda child: -child.ns):
            yield depth, child
            yield from child.walk(depth + 1)


def call_tree(profile: ProfileData) -> CallNode:
    """Return the tree of the calls that wrote the Applys; its root has all of their time."""
    root = CallNode()
    for row in by_call(profile):
        assert isinstance(row.key, CallPath)
        node = root
        root.ns += row.ns
        root.gradient += row.gradient
        for frame in row.key.frames:
            node = node.calls.setdefault(frame, CallNode(frame))
            node.ns += row.ns
            node.gradient += row.gradient
        node.own_ns += row.ns
    return root


@dataclass
class SampledNode:
    """A line of the program, with the time that the program was there; nanoseconds."""

    #: None for the root
    frame: CallFrame | None = None
    #: outside calls of functions that were profiled, here and in what it called
    rest: int = 0
    #: in these calls
    called: int = 0
    #: the lines that it called
    calls: dict[CallFrame, SampledNode] = field(default_factory=dict)

    @property
    def ns(self) -> int:
        """All of its time."""
        return self.rest + self.called

    def add(self, rest: int, called: int) -> None:
        """Add time."""
        self.rest += rest
        self.called += called

    def walk(self, depth: int = 0) -> Iterator[tuple[int, SampledNode]]:
        """Yield (depth, line) of all below it: the slowest first, each before what it called."""
        for child in sorted(self.calls.values(), key=lambda child: -child.ns):
            yield depth, child
            yield from child.walk(depth + 1)


def sampled_tree(profile: ProfileData) -> SampledNode:
    """Return the tree of the lines where the program was; empty if it was not sampled."""
    root = SampledNode()
    for key, rest, called in profile.program.stacks if profile.program else ():
        node = root
        node.add(rest, called)
        for frame in sampled_path(profile, key):
            node = node.calls.setdefault(frame, SampledNode(frame))
            node.add(rest, called)
    return root


def sampled_path(profile: ProfileData, key: str) -> tuple[CallFrame, ...]:
    """Return the calls that lead to a line where the program was.

    Each library is one frame, and so is a line that called itself again and again.
    """
    found: list[CallFrame] = []
    for frame in path_of(profile.frames, key).frames:
        folded = CallFrame("", 0, "", library=frame.library) if frame.library else frame
        last = found[-1] if found else None
        if folded != last and not (folded.library and last and last.library):
            found.append(folded)
    return tuple(found)


@dataclass
class SampledCall:
    """A line of the program without a break, and what it called; nanoseconds."""

    frame: CallFrame
    #: how many lines called it, one another
    depth: int
    #: from the start of sampling
    start: int
    #: time outside calls of functions that were profiled
    rest: int = 0
    #: time in these calls
    called: int = 0


def time_line(profile: ProfileData, least: int = 0) -> Iterator[SampledCall]:
    """Yield what the program called in the order of time, the inner calls before the outer ones.

    Calls of one line below the same calls are one, if samples saw nothing in between. least: the
    shortest time of those that are yielded.
    """
    if profile.program is None:
        return
    path = cache(lambda key: sampled_path(profile, key))
    running: list[SampledCall] = []
    now = 0
    for place, rest, called in profile.program.stretches:
        frames = path(profile.program.stacks[place][0])
        both = zip(running, frames, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0].frame == pair[1], both))
        yield from (call for call in reversed(running[same:]) if call.rest + call.called >= least)
        running[same:] = [
            SampledCall(frame, depth, now) for depth, frame in enumerate(frames[same:], same)
        ]
        for call in running:
            call.rest += rest
            call.called += called
        now += rest + called
    yield from (call for call in reversed(running) if call.rest + call.called >= least)


#: the label of what is in no scope
NO_SCOPE = "(no scope)"


def by_scope(profile: ProfileData) -> list[SummaryRow]:
    """Return a row for each scope; ``parts_of`` divides the time of an Apply.

    A scope whose operations are all computed within matrix products has a row with time 0.
    """
    return _shared(
        profile.applys, lambda o: o.scope, lambda key: str(key) or NO_SCOPE, all_parts_of
    )


#: the sums, by what their rows are about
GROUPINGS: dict[str, Callable[[ProfileData], list[SummaryRow]]] = {
    "op": by_op, "class": by_class, "line": by_line, "call": by_call, "scope": by_scope,
    "shapes": by_shapes,
}  # fmt: skip


def line_of(origin: OriginProfile) -> tuple[str, int] | None:
    """Return the (file, line) that an origin counts for; None if unknown."""
    return origin.gradient_of or ((origin.file, origin.line) if origin.file else None)


def parts_of(apply: ApplyProfile) -> list[tuple[OriginProfile, float]]:
    """Return (origin, its share of the time of the Apply) pairs, at least one.

    Shares are proportional to the cost per element. In a matrix product, scaling and adding cost
    next to nothing: the products alone get its time.
    """
    products = tuple(o for o in apply.origins if o.is_product) if apply.is_product else ()
    origins = products or apply.origins or (_UNKNOWN,)
    # views cost nothing: an Apply of views alone is split evenly
    whole = math.fsum(origin.cost for origin in origins)
    return [(o, o.cost / whole if whole else 1 / len(origins)) for o in origins]


_UNKNOWN = OriginProfile(key="", op="")


def all_parts_of(apply: ApplyProfile) -> list[tuple[OriginProfile, float]]:
    """Return the pairs of ``parts_of``, then the other origins with a share of 0."""
    parts = parts_of(apply)
    counted = {origin for origin, _ in parts}
    return parts + [(origin, 0.0) for origin in apply.origins if origin not in counted]


def _shared(
    applys: Iterable[ApplyProfile],
    key: Callable[[OriginProfile], Hashable],
    label: Callable[[Hashable], str],
    parts: Callable[[ApplyProfile], list[tuple[OriginProfile, float]]] = parts_of,
) -> list[SummaryRow]:
    """Return a row for each key of the origins of Applys, with their parts of the time."""
    rows: dict[Hashable, SummaryRow] = {}
    for apply in applys:
        met = set()
        for origin, part in parts(apply):
            k = key(origin)
            row = rows.get(k)
            if row is None:
                row = rows[k] = SummaryRow(k, label(k))
            row.add(apply, part, bool(origin.gradient_of), k not in met)
            met.add(k)
    return list(rows.values())
