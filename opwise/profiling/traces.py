"""Traces: a profile as a file that other programs show as a time line or a flame graph.

The Trace Event Format is what Perfetto and chrome://tracing open; speedscope has its own.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from opwise.profiling import aggregate
from opwise.profiling.callpaths import label, path_of
from opwise.profiling.files import write_whole
from opwise.profiling.model import (
    ApplyProfile,
    ArrayProfile,
    CallFrame,
    CallProfile,
    FunctionProfile,
    OriginProfile,
    ProfileData,
    ProgramProfile,
)
from opwise.profiling.nesting import nested
from opwise.profiling.reports.wording import counted
from opwise.profiling.validation import check_counts
from opwise.version import __version__

#: how many lines of the user's program a slice names
_LINES = 4
_EXPORTER = f"opwise {__version__}"


#: categories of slices of lines: that wrote what ran, that ran themselves
_WRITTEN, _PROGRAM = "written by", "program"

#: an event of the Trace Event Format
Event = dict[str, Any]


def _write(data: dict[str, Any], path: str | Path) -> None:
    text = json.dumps(data, ensure_ascii=False)
    # readers of these formats refuse lone surrogates
    write_whole(path, text.encode("utf-8", "replace").decode("utf-8"))


def _moments(
    function: FunctionProfile, call: CallProfile
) -> Iterator[tuple[str, ApplyProfile, int]]:
    """Yield (O or C, Apply, nanoseconds) when an Apply of a kept call begins or ends.

    There is no time between them. A loop contains the Applys inside it, each once, with the time of
    all its steps, and ends with its overhead.
    """
    open_: list[ApplyProfile] = []
    now = call.start_ns
    for apply, depth in [*nested(function), (None, 0)]:
        while len(open_) > depth:
            ended = open_.pop()
            now += call.apply_ns[ended.position]
            yield "C", ended, now
        if apply is not None:
            open_.append(apply)
            yield "O", apply, now


# --- the Trace Event Format -----------------------------------------------------------------------


def export_chrome_trace(profile: ProfileData, path: str | Path, max_events: int = 50_000) -> None:
    """Write the kept calls of a profile in the Trace Event Format.

    A function is a thread; a kept call is a slice that contains its Applys without gaps, because
    the time between them is not recorded; the slice of a loop contains the Applys inside. A second
    thread shows, at the same times, the calls of the program that wrote the Applys. If the program
    was sampled, another thread shows what it called, at these times too.
    max_events: limit of the number of slices; the shortest Applys are left out first, then the
    shortest calls, and ``otherData`` has their number. Raises ValueError unless max_events is a
    whole number from 1, and OSError.
    """
    check_counts(max_events=max_events)
    process = _process(profile)
    slices = [
        each
        for thread, function in enumerate(profile.functions, 1)
        for each in (
            *_slices(profile, function, process, thread),
            *_stack_slices(profile, function, process, thread + len(profile.functions)),
        )
    ]
    slices += _program_slices(profile, process)
    begin = min((each["ts"] for each in slices), default=0)
    dropped = _shortest(slices, len(slices) - max_events)
    kept = [_timed(each, begin) for k, each in enumerate(slices) if k not in dropped]
    kinds = Counter(slices[k]["cat"] for k in dropped)
    about = {
        "exporter": _EXPORTER,
        "message": profile.message,
        "dropped Applys": kinds["C"] + kinds["Python"],
        "dropped calls": kinds["call"],
        "dropped lines": kinds[_WRITTEN] + kinds[_PROGRAM],
    }
    events = [*_names(profile, process), *kept]
    _write({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}, path)


def _process(profile: ProfileData) -> int:
    """Return the id of the process, of the first one in a merged profile; 0 if unknown."""
    environments = [profile.environment, *profile.environment.get("merged", ())]
    return next((int(e["process"]) for e in environments if "process" in e), 0)


def _names(profile: ProfileData, process: int) -> list[Event]:
    """Return the events that name the process and its threads."""
    title = f"opwise: {profile.message}" if profile.message else "opwise"
    rows: list[tuple[str, int, dict[str, Any]]] = [("process_name", 0, {"name": title})]
    for k, function in enumerate(profile.functions):
        threads = [function.name, *([f"written by: {function.name}"] if profile.frames else [])]
        for place, name in enumerate(threads):
            thread = k + 1 + place * len(profile.functions)
            rows.append(("thread_name", thread, {"name": name}))
            rows.append(("thread_sort_index", thread, {"sort_index": 2 * k + place + 1}))
    if profile.program is not None:
        thread = 2 * len(profile.functions) + 1
        rows.append(("thread_name", thread, {"name": "program, by samples"}))
        rows.append(("thread_sort_index", thread, {"sort_index": 0}))
    return [
        {"ph": "M", "name": name, "pid": process, "tid": thread, "ts": 0, "args": args}
        for name, thread, args in rows
    ]


def _slices(
    profile: ProfileData, function: FunctionProfile, process: int, thread: int
) -> Iterator[Event]:
    """Yield the slices of a function, a call before its Applys; times are nanoseconds."""
    about = [_about(profile, apply) for apply in function.applys]
    for call in function.detail:
        place = {"pid": process, "tid": thread}
        yield {
            "ph": "X", "name": f"call {call.number} of {function.name}", "cat": "call",
            "ts": call.start_ns, "dur": call.ns, **place,
            "args": {"call": call.number, "calls in all": function.calls},
        }  # fmt: skip
        starts: dict[int, int] = {}
        for kind, apply, at in _moments(function, call):
            k = apply.position
            if kind == "O":
                starts[k] = at
                continue
            yield {
                "ph": "X", "name": apply.op, "cat": "C" if apply.c else "Python",
                "ts": starts[k], "dur": at - starts[k], **place, "args": about[k],
            }  # fmt: skip


def _stack_slices(
    profile: ProfileData, function: FunctionProfile, process: int, thread: int
) -> Iterator[Event]:
    """Yield slices of the calls that wrote what ran; one slice for successive Applys below it."""
    frames = {
        apply.position: path_of(profile.frames, _main_origin(apply).frame).frames
        for apply in function.own_applys
        if apply.origins
    }

    def ended(frame: CallFrame, start: int, at: int) -> Event:
        source = profile.sources.get(f"{frame.file}:{frame.line}", "")
        return {
            "ph": "X", "name": _name(frame, profile), "cat": _WRITTEN, "ts": start,
            "dur": at - start, "pid": process, "tid": thread,
            "args": {"line": f"{frame.file}:{frame.line}: {source}"} if frame.file else {},
        }  # fmt: skip

    for call in function.detail:
        open_: list[tuple[CallFrame, int]] = []
        at = call.start_ns
        for kind, apply, at in _moments(function, call):
            if kind == "C" or apply.inside >= 0:
                continue
            path = frames.get(apply.position, ())
            same = sum(1 for _ in takewhile(bool, map(_is_frame, open_, path)))
            for frame, start in reversed(open_[same:]):
                yield ended(frame, start, at)
            open_[same:] = [(frame, at) for frame in path[same:]]
        for frame, start in reversed(open_):
            yield ended(frame, start, at)


def _program_slices(profile: ProfileData, process: int) -> Iterator[Event]:
    """Yield the slices of what the program called, by samples."""
    if profile.program is None:
        return
    thread = 2 * len(profile.functions) + 1
    for call in aggregate.time_line(profile):
        where = f"{call.frame.file}:{call.frame.line}" if call.frame.file else ""
        ns = call.rest + call.called
        args = {"line": f"{where}: {profile.sources.get(where, '')}"} if where else {}
        if call.called:
            args["in calls of functions"] = f"{100 * call.called / ns:.1f}%"
        start = profile.program.start_ns + call.start
        yield {
            "ph": "X", "name": _name(call.frame, profile), "cat": _PROGRAM, "ts": start, "dur": ns,
            "pid": process, "tid": thread, "args": args,
        }  # fmt: skip


def _is_frame(opened: tuple[CallFrame, int], frame: CallFrame) -> bool:
    return opened[0] == frame


def _main_origin(apply: ApplyProfile) -> OriginProfile:
    """Return the origin that takes most of the time of an Apply."""
    return max(aggregate.parts_of(apply), key=lambda part: part[1])[0]


def _about(profile: ProfileData, apply: ApplyProfile) -> dict[str, Any]:
    """Return the arguments of the slice of an Apply."""
    lines = [_line(profile, *place) for place in apply.lines]
    rest = len(lines) - _LINES
    return {
        "position": apply.position,
        "Apply": apply.text,
        "lines": [*lines[:_LINES], f"and {rest} more"] if rest > 0 else lines,
        "scopes": [scope for scope in dict.fromkeys(o.scope for o in apply.origins) if scope],
        "inputs": _arrays(apply.input_arrays),
        "outputs": _arrays(apply.output_arrays),
        **({"inside": apply.loop, "runs in all calls": apply.count} if apply.loop else {}),
        "flops": "not counted" if apply.flops is None else apply.flops,
        **({"algorithm": apply.algorithm_note} if apply.algorithm else {}),
        "runs in": "C" if apply.c else f"Python: {apply.why}" if apply.why else "Python",
    }


def _line(profile: ProfileData, file: str, line: int) -> str:
    place = f"{file}:{line}"
    source = profile.sources.get(place)
    return f"{place}: {source}" if source else place


def _arrays(arrays: tuple[ArrayProfile | None, ...]) -> list[str]:
    return [
        f"{a.dtype} ({', '.join(map(str, a.shape))})" if a is not None else "no array"
        for a in arrays
    ]


def _shortest(slices: list[Event], n: int) -> set[int]:
    """Return the indices of the n shortest slices: Applys before calls, the later first."""
    order = ((_is_call(each), each["dur"], -k) for k, each in enumerate(slices))
    return {-k for *_, k in heapq.nsmallest(max(0, n), order)}


def _is_call(each: Event) -> bool:
    return bool(each["cat"] == "call")


def _timed(each: Event, begin: int) -> Event:
    """Return a slice with times in microseconds from the earliest start."""
    return {**each, "ts": (each["ts"] - begin) / 1e3, "dur": each["dur"] / 1e3}


# --- speedscope -----------------------------------------------------------------------------------


def export_speedscope(profile: ProfileData, path: str | Path, by: str = "call") -> None:
    """Write a profile in speedscope's format, with two views of each function.

    One view has the time of all calls by stacks: with ``by='call'`` the names of the scope, the
    calls of the program that wrote what ran, and the Op; with ``by='scope'`` the names of the
    scope, the user's line and the Op; with ``by='line'`` the line, ``grad`` for a gradient, and
    the Op.
    ``aggregate.parts_of`` divides the time of an Apply. The other view has the kept calls, without
    gaps. If the program was sampled, one more view has its time by lines; its last frame is
    ``functions`` for calls of functions. Raises ValueError for another ``by``, and OSError.
    """
    if by not in _STACKS:
        raise ValueError(f"by is {by!r}; it must be one of {', '.join(map(repr, _STACKS))}")
    frames = _Frames(profile)
    views: list[dict[str, Any]] = []
    largest = (-1, 0)
    for function in profile.functions:
        largest = max(largest, (function.thunk_ns, -len(views)))
        views.append(_sums(function, frames, _STACKS[by]))
        if function.detail:
            views.append(_calls(function, frames))
    if profile.program is not None:
        views.append(_samples(profile.program, frames))
    _write(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": _EXPORTER,
            "name": profile.message or "opwise",
            "activeProfileIndex": -largest[1],
            "shared": {"frames": frames.rows},
            "profiles": views,
        },
        path,
    )


class _Frames:
    """The frames of a file, each once."""

    def __init__(self, profile: ProfileData) -> None:
        self.profile = profile
        self.calls_of = aggregate.calls_of(profile)
        self.rows: list[dict[str, Any]] = []
        self._indices: dict[tuple[str, str, int], int] = {}

    def index(self, name: str, file: str = "", line: int = 0) -> int:
        """Return the index of a frame."""
        key = name, file, line
        if key not in self._indices:
            self._indices[key] = len(self.rows)
            self.rows.append({"name": name, **({"file": file, "line": line} if file else {})})
        return self._indices[key]

    def of_calls(self, origin: OriginProfile) -> tuple[int, ...]:
        """Return the frames of the calls that wrote it; that of its line if they are not known."""
        found = self.calls_of(origin).frames
        return tuple(map(self.of_call, found)) or self.of_line(origin)

    def of_call(self, frame: CallFrame) -> int:
        """Return the frame of a function of the program, of a line outside functions, a library."""
        return self.index(_name(frame, self.profile), frame.file, frame.line)

    def of_scope(self, origin: OriginProfile) -> tuple[int, ...]:
        """Return the frames of the names of a scope."""
        return tuple(self.index(part) for part in origin.scope.split("/") if part)

    def of_gradient(self, origin: OriginProfile) -> tuple[int, ...]:
        """Return the frame ``grad`` for an Apply of a gradient, no frame for others."""
        return (self.index("grad"),) if origin.gradient_of else ()

    def of_line(self, origin: OriginProfile) -> tuple[int, ...]:
        """Return the frame of the user's line, whose name is its text."""
        place = aggregate.line_of(origin)
        if place is None:
            return (self.index("(unknown line)"),)
        where = f"{place[0]}:{place[1]}"
        return (self.index(self.profile.sources.get(where) or where, *place),)


def _name(frame: CallFrame, profile: ProfileData) -> str:
    """Return the name of a function, the text of a line outside functions, or a library's name."""
    if frame.function and frame.function != "<module>":
        return frame.function
    return profile.sources.get(f"{frame.file}:{frame.line}") or label(frame)


#: from an origin to the frames above its Op
_Stack = Callable[[_Frames, OriginProfile], tuple[int, ...]]

_STACKS: dict[str, _Stack] = {
    "call": lambda frames, origin: (
        *frames.of_scope(origin),
        *frames.of_calls(origin),
        *frames.of_gradient(origin),
    ),
    "scope": lambda frames, origin: (*frames.of_scope(origin), *frames.of_line(origin)),
    "line": lambda frames, origin: (*frames.of_line(origin), *frames.of_gradient(origin)),
}


def _sums(function: FunctionProfile, frames: _Frames, stack: _Stack) -> dict[str, Any]:
    """Return the times of all calls as weighted stacks."""
    weights: dict[tuple[int, ...], float] = {}
    for apply in function.applys:
        for origin, part in aggregate.parts_of(apply):
            loops = [frames.index(op) for op in apply.loop.split(" > ") if op]
            key = (*stack(frames, origin), *loops, frames.index(apply.op))
            weights[key] = weights.get(key, 0) + apply.total * part
    rows = sorted(weights.items())  # puts stacks with equal beginnings side by side
    return {
        "type": "sampled",
        "name": f"{function.name}: all {counted(function.calls, 'call')}",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": math.fsum(weights.values()),
        "samples": [list(key) for key, _ in rows],
        "weights": [weight for _, weight in rows],
    }


def _samples(program: ProgramProfile, frames: _Frames) -> dict[str, Any]:
    """Return the time of the program as weighted stacks."""
    rows: list[tuple[list[int], int]] = []
    for key, rest, called in program.stacks:
        stack = [frames.of_call(f) for f in aggregate.sampled_path(frames.profile, key)]
        rows += [(stack, rest), ([*stack, frames.index("functions")], called)]
    rows = sorted(row for row in rows if row[1])
    return {
        "type": "sampled",
        "name": "program, by samples",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(ns for _, ns in rows),
        "samples": [stack for stack, _ in rows],
        "weights": [ns for _, ns in rows],
    }


def _calls(function: FunctionProfile, frames: _Frames) -> dict[str, Any]:
    """Return the kept calls as events that open and close frames."""
    events: list[Event] = []
    before = 0  # nanoseconds of the calls before

    def mark(kind: str, frame: int, at: int) -> None:
        events.append({"type": kind, "frame": frame, "at": at})

    for call in function.detail:
        outer = frames.index(f"call {call.number} of {function.name}")
        mark("O", outer, before)
        for kind, apply, at in _moments(function, call):
            mark(kind, frames.index(apply.op), before + at - call.start_ns)
        before += call.ns
        mark("C", outer, before)
    return {
        "type": "evented",
        "name": f"{function.name}: {counted(len(function.detail), 'call')}, without gaps",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": before,
        "events": events,
    }
