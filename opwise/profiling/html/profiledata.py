"""The data of the page of a profile, in compact form: columns of numbers, every text once.

The script ``assets/model.js`` of the page reads it. Times are whole nanoseconds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import Any

from opwise.graph.costs import is_contiguous
from opwise.profiling import aggregate, histogram, roofline
from opwise.profiling.aggregate import SummaryRow
from opwise.profiling.callpaths import label
from opwise.profiling.html.layout import layered
from opwise.profiling.html.programdata import of_program
from opwise.profiling.machinelimits import MachineLimits
from opwise.profiling.memory import readable
from opwise.profiling.model import (
    ApplyProfile,
    ArrayProfile,
    CallFrame,
    CallProfile,
    FunctionProfile,
    OriginProfile,
    ProfileData,
)
from opwise.profiling.reports import details
from opwise.profiling.reports.theanotips import tips
from opwise.profiling.reports.wording import short_place

#: an object of JSON
Data = dict[str, Any]

#: most characters of a text; fewer if all texts together have more than TEXTS
TEXT = 4000
TEXTS = 1_800_000
#: number of Applys whose histogram is in the page: the slowest
HISTOGRAMS = 300
#: share of a call from which an Apply is drawn on its own
SEGMENT = 1 / 500
#: share of all time below which parts of the flame view are summed up
FLAME = 1 / 1000
#: most names that a scope is split into
DEPTH = 12
#: most functions that the title names
NAMED = 3
#: most pieces of memory that are listed of the peak
LIVE = 100


def of_profile(
    profile: ProfileData, limits: Sequence[Data] | None = None, machine: Data | None = None
) -> Data:
    """Return the data of the page of a profile, as plain data for JSON.

    limits: None, or dicts with the keys function (its number, or its name), position, intensity
    (flop/byte), gflops, gbs, share (of the peak), bound, gain_s, level. machine: None, or a dict
    with bandwidth: (bytes, GB/s) pairs, peaks: {name: GFLOP/s}, and devices: {name: GB/s}.
    """
    texts = Texts()
    lines = _Lines(texts, profile.sources)
    origins = _Origins(texts, lines, profile)
    ops = _Ops(texts)
    starts = _starts(profile.functions)
    data = {
        "kind": "profile",
        "title": texts(name(profile)),
        "name": texts(program(profile)),
        "environment": environment(profile, texts),
        "functions": [_function(f, texts) for f in profile.functions],
        "applys": _applys(profile, texts, origins, ops),
        "histograms": _histograms(profile.applys),
        "tables": [_sums(part, texts, lines, ops) for part in selections(profile)],
        "flames": [
            _flame(part, max(k - 1, 0), texts, lines, ops)
            for k, part in enumerate(selections(profile))
        ],
        "tips": [texts(tip) for tip in tips(profile)],
        "notes": [texts(line.strip()) for line in details.busy(profile)],
        "whole": _whole(profile, texts),
        "program": of_program(profile, texts, lines),
        "roofline": _roofline(profile, starts, texts, limits, machine),
        "devices": _devices(profile, texts),
    }  # fmt: skip
    data.update(ops=ops.columns, origins=origins.columns, lines=lines.columns)
    data["buckets"] = [histogram.bounds(b)[0] for b in range(histogram.BUCKETS)]
    data["texts"] = texts.cut()
    return data


def name(profile: ProfileData) -> str:
    """Return the name of a profile: its message, or the names of its functions."""
    if profile.message:
        return profile.message
    names = list(dict.fromkeys(short_place(f.name) for f in profile.functions))
    return ", ".join(names) if len(names) <= NAMED else f"{len(profile.functions)} functions"


def program(profile: ProfileData) -> str:
    """Return the name of the program that was profiled, "" if unknown."""
    parts = profile.environments
    words = {str(part.get("program", "")).split(" ")[0] for part in parts}
    return ", ".join(sorted({PurePath(word).name for word in words if word}))


def _whole(profile: ProfileData, texts: Texts) -> list[list[int]]:
    """Return [what, nanoseconds] of the whole program and its parts, [] if unknown."""
    _, rows = details.program_parts(profile) or (0, [])
    return [[texts(what), round(seconds * 1e9)] for seconds, what in rows]


def limits(profile: ProfileData) -> tuple[list[Data] | None, Data | None]:
    """Return (limits, machine) of a profile, as ``of_profile`` takes them.

    (None, None) if the limits of the hardware were not measured.
    """
    if profile.machine is None and not profile.devices:
        return None, None
    return _limits_of_applys(profile), _limits_of_hardware(profile)


def _limits_of_applys(profile: ProfileData) -> list[Data]:
    found: list[Data] = []
    for number, function in enumerate(profile.functions):
        for row in roofline.rows(replace(profile, functions=(function,)), profile.machine):
            apply = function.applys[row.position]
            if row.share is not None:
                found.append({
                    "function": number, "position": apply.position, "bound": row.bound,
                    "intensity": _intensity(apply),
                    "gflops": row.rate, "gbs": row.bandwidth, "share": row.share,
                    "gain_s": row.gain, "level": row.level, "rough": row.approximate,
                })  # fmt: skip
    return found


def _intensity(apply: ApplyProfile) -> float | None:
    """Return the operations for each byte; None without an exact count of both."""
    return apply.flops / apply.traffic if apply.flops and apply.traffic else None


def _limits_of_hardware(profile: ProfileData) -> Data:
    used = {a.dtype for apply in profile.applys for a in apply.output_arrays if a is not None}
    found: Data = {"bandwidth": [], "peaks": {}}
    if profile.machine is not None:
        rates = dict(profile.machine.one)
        for size, rate in profile.machine.all:
            rates[size] = max(rate, rates.get(size, 0.0))
        found = {"bandwidth": sorted(rates.items()), "peaks": _peaks(profile.machine, used, "")}
    for name, machine in profile.devices:
        found["peaks"].update(_peaks(machine, used, f"{name}, "))
        found.setdefault("devices", {})[name] = machine.one[-1][1]
    return found


def _peaks(machine: MachineLimits, used: set[str], name: str) -> dict[str, float]:
    """Return {text: GFLOP/s} of the dtypes that are used."""
    found: dict[str, float] = {}
    for peak in machine.peaks:
        if peak.dtype in used:
            text = f"{name}{peak.dtype}"
            found[text] = max(peak.one, peak.all, found.get(text, 0.0))
    return found


def selections(profile: ProfileData) -> list[ProfileData]:
    """Return the profiles that the page can show: of all functions, then of each if several."""
    if len(profile.functions) == 1:
        return [profile]
    alone = ProfileData(sources=profile.sources, frames=profile.frames)
    return [profile, *(replace(alone, functions=(f,)) for f in profile.functions)]


def environment(profile: ProfileData, texts: Texts) -> list[list[int]]:
    """Return (name, value) pairs of texts about where a profile was made."""
    return [
        [texts(str(name)), texts(str(value))]
        for name, value in profile.environment.items()
        if not isinstance(value, float | dict | list) and value != ""
    ]


class Texts:
    """A table of texts: called with a text, it returns its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def cut(self) -> list[str]:
        """Return the texts, each cut so that all together have at most TEXTS characters."""
        most = TEXT
        while most > 64 and sum(min(len(text), most) for text in self._numbers) > TEXTS:
            most //= 2
        return [t if len(t) <= most else t[: most - 1] + "…" for t in self._numbers]


class _Numbered:
    """Rows kept as columns, each once."""

    #: names of the columns
    names: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.columns: dict[str, list[int]] = {name: [] for name in self.names}
        self._numbers: dict[tuple[int, ...], int] = {}

    def number(self, *row: int) -> int:
        """Return the number of a row, which is added if it is new."""
        found = self._numbers.get(row)
        if found is None:
            found = self._numbers[row] = len(self._numbers)
            for name, value in zip(self.names, row, strict=True):
                self.columns[name].append(value)
        return found


class _Lines(_Numbered):
    names = ("file", "line", "source")

    def __init__(self, texts: Texts, sources: dict[str, str]) -> None:
        super().__init__()
        self._texts, self._sources = texts, sources

    def __call__(self, place: tuple[str, int] | None) -> int:
        """Return the number of a (file, line), -1 for None and for no file."""
        if not place or not place[0]:
            return -1
        file, line = place
        source = self._sources.get(f"{file}:{line}", "")
        return self.number(self._texts(file), line, self._texts(source))


class _Origins(_Numbered):
    names: tuple[str, ...] = ("op", "line", "scope", "of")

    def __init__(self, texts: Texts, lines: _Lines, profile: ProfileData) -> None:
        if profile.frames:
            self.names = (*self.names, "call")
        super().__init__()
        self._texts, self._lines = texts, lines
        self._calls_of = aggregate.calls_of(profile)

    def __call__(self, origin: OriginProfile) -> int:
        return self.number(
            self._texts(origin.op),
            self._lines((origin.file, origin.line)),
            self._texts(origin.scope),
            self._lines(origin.gradient_of),
            *([self._texts(str(self._calls_of(origin)))] if "call" in self.names else []),
        )


class _Ops(_Numbered):
    names = ("key", "text", "class")

    def __init__(self, texts: Texts) -> None:
        super().__init__()
        self._texts = texts
        self._of_key: dict[Hashable, int] = {}

    def __call__(self, apply: ApplyProfile) -> int:
        found = self._of_key[apply.op_key] = self.number(
            self._texts(apply.op_key), self._texts(apply.op), self._texts(apply.op_class)
        )
        return found

    def of_key(self, key: Hashable) -> int:
        """Return the number of an Op that was numbered before, by its key."""
        return self._of_key[key]


def _starts(functions: Iterable[FunctionProfile]) -> list[int]:
    """Return the number of the first Apply of each function among all Applys."""
    starts, start = [], 0
    for function in functions:
        starts.append(start)
        start += len(function.applys)
    return starts


# --- functions ------------------------------------------------------------------------------------


def _function(f: FunctionProfile, texts: Texts) -> Data:
    columns, rows = layered([_reads(a) for a in f.applys])
    compile_ = asdict(f.compile)
    compile_["slowest"] = [[texts(text), seconds] for text, seconds in f.compile.slowest]
    return {
        "name": texts(short_place(f.name)),
        "applys": len(f.applys),
        "calls": f.calls,
        "failed": f.failed,
        "built_in_calls": f.built_in_calls,
        "call_ns": f.call_ns,
        "fn_ns": f.fn_ns,
        "thunk_ns": f.thunk_ns,
        "timing_ns": f.timing_ns,
        "once_ns": sum(a.once for a in f.applys if not a.device),
        "first_call_ns": f.first_call_ns,
        "first_calls": f.first_calls,
        "compile": compile_,
        "detail": [_call(call) for call in f.detail],
        "memory": _memory(f),
        "columns": columns,
        "rows": rows,
    }


def _call(call: CallProfile) -> Data:
    """Return one call: its larger Applys one by one, the small ones between them as position -1."""
    least = call.ns * SEGMENT
    segments: list[list[int]] = []
    for position, ns in enumerate(call.apply_ns):
        if ns >= least:
            segments.append([position, ns])
        elif segments and segments[-1][0] == -1:
            segments[-1][1] += ns
        else:
            segments.append([-1, ns])
    return {"number": call.number, "ns": call.ns, "segments": segments}


def _memory(f: FunctionProfile) -> Data | None:
    if f.memory is None:
        return None
    live = f.memory.live
    plain = asdict(replace(f.memory, live=()))
    plain["live"] = [[one.position, one.bytes] for one in live[:LIVE]]
    plain["live_rest"] = [len(live[LIVE:]), sum(one.bytes for one in live[LIVE:])]
    return plain


# --- Applys ---------------------------------------------------------------------------------------


def _applys(profile: ProfileData, texts: Texts, origins: _Origins, ops: _Ops) -> Data:
    columns: Data = {}
    for number, function in enumerate(profile.functions):
        for a in function.applys:
            row = {"function": number, **_apply(a, texts, origins, ops)}
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
    return columns


def _apply(a: ApplyProfile, texts: Texts, origins: _Origins, ops: _Ops) -> Data:
    return {
        "position": a.position,
        "op": ops(a),
        "operands": texts(a.text.removeprefix(a.op)),
        "ns": a.total,
        "loop": texts(a.loop),
        "inner": a.inner,
        "estimated": int(a.estimated),
        "count": a.count,
        "least": a.least,
        "median": round(a.quantile(0.5)),
        "p95": round(a.quantile(0.95)),
        "most": a.most,
        "c": int(a.c),
        "why": texts(a.why),
        "algorithm": texts(a.algorithm),
        "why_algorithm": texts(a.why_algorithm),
        "inputs": _arrays(a.inputs, a.input_arrays, texts),
        "outputs": _arrays(a.outputs, a.output_arrays, texts),
        "shapes": texts(_shapes(a)),
        "shares": texts("".join(a.shares)),
        "reads": list(_reads(a)),
        "origins": [origins(o) for o in a.origins],
        "flops": a.flops,
        "bytes": _traffic(a),
    }


def _reads(a: ApplyProfile) -> tuple[int, ...]:
    """Return the Applys before an Apply in the graph; before the first ones of a step, its loop."""
    is_first = a.inside >= 0 and all(position < 0 for position in a.reads)
    return (*a.reads, a.inside) if is_first else a.reads


def _devices(profile: ProfileData, texts: Texts) -> Data | None:
    """Return columns about devices for each Apply; None if nothing ran on one.

    ``moved`` has the bytes that a transfer moves in a call.
    """
    applys = profile.applys
    if not any(a.device for a in applys):
        return None
    return {
        "name": [texts(a.device) for a in applys],
        "transfer": [int(a.transfer) for a in applys],
        "moved": [(a.traffic or 0) // 2 if a.transfer else None for a in applys],
        "asked": [a.asked for a in applys],
        "waited": [a.waited for a in applys],
        "on_host": [texts(a.on_host) for a in applys],
    }


def _arrays(types: Sequence[str], arrays: Sequence[ArrayProfile | None], texts: Texts) -> list[int]:
    known = arrays if len(types) == len(arrays) else [None] * len(types)
    pairs = zip(types, known, strict=True)
    return [texts(type_ if array is None else _array(array)) for type_, array in pairs]


def _array(array: ArrayProfile) -> str:
    shape = _shape(array.shape)
    text = f"{array.dtype} {shape}, {readable(array.bytes)}"
    return text if is_contiguous(array) else f"{text}, strides {_shape(array.strides)}"


def _shape(numbers: Iterable[int]) -> str:
    return "×".join(map(str, numbers)) or "scalar"


def _shapes(a: ApplyProfile) -> str:
    return ", ".join(_shape(array.shape) for array in a.output_arrays if array is not None)


def _traffic(a: ApplyProfile) -> int | None:
    """Return the bytes that an Apply reads and writes in a call, None if it only makes views."""
    arrays = (*a.input_arrays, *a.output_arrays)
    known = [array.bytes for array in arrays if array is not None]
    if not arrays or len(known) < len(arrays) or set(a.shares) <= {"v"}:
        return None
    return sum(known)


def _histograms(applys: Sequence[ApplyProfile]) -> dict[int, list[int]]:
    """Return {number of the Apply: [bucket, calls, bucket, calls, ...]} of the slowest."""
    slowest = heapq.nlargest(HISTOGRAMS, range(len(applys)), key=lambda k: applys[k].total)
    return {
        k: [n for pair in applys[k].histogram for n in pair]
        for k in sorted(slowest)
        if applys[k].count > 1
    }


# --- sums -----------------------------------------------------------------------------------------


def _sums(profile: ProfileData, texts: Texts, lines: _Lines, ops: _Ops) -> Data:
    """Return the tables beside that of Applys, by name."""
    keys: dict[str, Callable[[Any], int]] = {
        "op": ops.of_key, "class": texts, "line": lines, "scope": texts,
    }  # fmt: skip
    if profile.frames:  # else the calls that are known are the lines
        keys["call"] = lambda path: texts(str(path))
    found: Data = {}
    for name, key in keys.items():
        rows, places = _grouped(name, profile)
        found[name] = _rows(rows, places, texts, key)
    return found


def _grouped(name: str, profile: ProfileData) -> tuple[list[SummaryRow], dict[str, list[float]]]:
    """Return the rows of a table, and {"device", "transfers" and "host": nanoseconds by row}.

    The second is {} if nothing ran on a device.
    """
    sums = aggregate.GROUPINGS[name]
    if not any(a.device for a in profile.applys):
        return sums(profile), {}
    parts: dict[str, Callable[[ApplyProfile], object]] = {
        "device": lambda a: a.device and not a.transfer,
        "transfers": lambda a: a.transfer,
        "host": lambda a: not a.device,
    }
    return sums(profile), {
        part: [row.ns for row in sums(_only(profile, is_of))] for part, is_of in parts.items()
    }


def _only(profile: ProfileData, is_of: Callable[[ApplyProfile], object]) -> ProfileData:
    """Return a profile in which only some Applys took time."""
    functions = tuple(
        replace(f, applys=tuple(a if is_of(a) else replace(a, total=0) for a in f.applys))
        for f in profile.functions
    )
    return replace(profile, functions=functions)


def _rows(
    rows: list[SummaryRow],
    places: dict[str, list[float]],
    texts: Texts,
    key: Callable[[Any], int],
) -> Data:
    return {
        **{part: [round(ns) for ns in times] for part, times in places.items()},
        "key": [key(r.key) for r in rows],
        "label": [texts(r.label) for r in rows],
        "ns": [round(r.ns) for r in rows],
        "gradient": [round(r.gradient) for r in rows],
        "calls": [r.calls for r in rows],
        "applys": [r.applys for r in rows],
        "c": [1 if r.c else 0 if r.python else 2 for r in rows],
    }


class _Part:
    """A part of the flame view: what it is, its time, and its parts by name."""

    def __init__(self, kind: str, name: int, key: int = -1) -> None:
        self.kind, self.name, self.key = kind, name, key
        self.ns = self.gradient = 0.0
        self.parts: dict[tuple[str, int, int], _Part] = {}

    def part(self, kind: str, name: int, key: int = -1) -> _Part:
        """Return a part of this part, which is made if it is new."""
        found = self.parts.get((kind, name, key))
        if found is None:
            found = self.parts[kind, name, key] = _Part(kind, name, key)
        return found

    def plain(self, least: float) -> list[Any]:
        """Return [kind, name, key, ns, gradient ns, parts], the largest part first.

        Parts of less than ``least`` nanoseconds are summed up.
        """
        parts = sorted(self.parts.values(), key=lambda p: (-p.ns, p.kind, p.name))
        shown = [p.plain(least) for p in parts if p.ns >= least]
        rest = [p for p in parts if p.ns < least]
        if sum(p.ns for p in rest) >= least:
            shown.append(["rest", len(rest), -1, round(sum(p.ns for p in rest)),
                          round(sum(p.gradient for p in rest)), []])  # fmt: skip
        return [self.kind, self.name, self.key, round(self.ns), round(self.gradient), shown]


def _flame(profile: ProfileData, first: int, texts: Texts, lines: _Lines, ops: _Ops) -> list[Any]:
    """Return the tree of function, scopes, calls and Op, with times divided as in ``by_line``.

    first: the number of the first function among all functions.
    """
    root = _Part("all", texts(""))
    calls_of = aggregate.calls_of(profile)
    for number, function in enumerate(profile.functions, first):
        for apply in function.applys:
            for origin, of_apply in aggregate.parts_of(apply):
                share = apply.total * of_apply
                is_gradient = origin.gradient_of is not None
                frames = calls_of(origin).frames[-DEPTH:]
                for part in _path(root, number, function, apply, origin, frames, texts, lines, ops):
                    part.ns += share
                    part.gradient += share * is_gradient
    return root.plain(max(root.ns * FLAME, 1))


def _path(
    root: _Part,
    number: int,
    function: FunctionProfile,
    apply: ApplyProfile,
    origin: OriginProfile,
    calls: Sequence[CallFrame],
    texts: Texts,
    lines: _Lines,
    ops: _Ops,
) -> Iterator[_Part]:
    """Yield the parts of the flame view that the time of an origin counts for.

    calls: those that wrote it.
    """
    yield root
    part = root.part("function", texts(short_place(function.name)), number)
    yield part
    for name in filter(None, origin.scope.split("/", DEPTH)):
        part = part.part("scope", texts(name))
        yield part
    for frame in calls:
        if frame.file:
            name = "" if frame.function == "<module>" else frame.function
            part = part.part("line", texts(name), lines((frame.file, frame.line)))
        else:
            part = part.part("library", texts(label(frame)))
        yield part
    if not calls:
        part = part.part("line", texts("(unknown line)"))
        yield part
    yield part.part("op", texts(apply.op), ops(apply))


# --- the limits of the hardware -------------------------------------------------------------------


def _roofline(
    profile: ProfileData,
    starts: list[int],
    texts: Texts,
    limits: Sequence[Data] | None,
    machine: Data | None,
) -> Data | None:
    if not limits:
        return None
    numbers = {f.name: k for k, f in reversed(list(enumerate(profile.functions)))}
    columns = ("apply", *_LIMITS, "bound", "level", "rough")
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for limit in limits:
        function = limit["function"]
        function = numbers.get(function, -1) if isinstance(function, str) else function
        if not 0 <= function < len(starts):
            raise ValueError(f"limits name a function that is not in the profile: {limit!r}")
        if not 0 <= limit["position"] < len(profile.functions[function].applys):
            raise ValueError(f"limits name an Apply that is not in {function!r}: {limit!r}")
        rows["apply"].append(starts[function] + limit["position"])
        rows["bound"].append(texts(limit.get("bound") or ""))
        rows["level"].append(texts(limit.get("level") or ""))
        rows["rough"].append(int(limit.get("rough", False)))
        for name in _LIMITS:
            rows[name].append(finite(limit.get(name)))
    machine = machine or {}
    return {
        **rows,
        "bandwidth": [[int(size), finite(gbs)] for size, gbs in machine.get("bandwidth", ())],
        "peaks": [[texts(str(name)), finite(v)] for name, v in machine.get("peaks", {}).items()],
        "devices": [[texts(name), finite(v)] for name, v in machine.get("devices", {}).items()],
    }


_LIMITS = ("intensity", "gflops", "gbs", "share", "gain_s")


def finite(value: float | None) -> float | None:
    """Return a number to four digits; None for infinity and NaN, which JSON does not have."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.4g}")
