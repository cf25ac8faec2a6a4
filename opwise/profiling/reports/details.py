"""The sections after Theano's summaries: calls, the program, lines, scopes, memory and limits.

Each section is a list of lines, empty if there is nothing to report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from opwise.profiling import aggregate, callpaths
from opwise.profiling.aggregate import SampledNode, SummaryRow
from opwise.profiling.memory import readable
from opwise.profiling.model import (
    LOOP,
    ApplyProfile,
    CallFrame,
    FunctionProfile,
    ProfileData,
)
from opwise.profiling.reports import device, roofline
from opwise.profiling.reports.theanotips import without_compiler
from opwise.profiling.reports.wording import (
    counted,
    fitted,
    name_and_place,
    percent,
    place_of,
    short,
    short_path,
    short_place,
)

#: how the time of a fused Apply is divided
SPLIT = "a fused Apply's time is split among the source operations in it, by the rough cost of each"
#: label of the time of first runs
ONCE = "extra time of first runs (cold code and memory)"
#: the hardware was busy if a thread waited for a processor for this share of its time
_BUSY = 0.05
#: an Apply has slow outliers if it has so many runs and a mean so far above the median ...
_MANY, _FAR = 10, 1.5
#: ... which are reported if they take this share of the time
_MUCH = 0.1
#: a row is marked if slow outliers add as much to its share of the time
_DISTORTED = 0.01
#: the times of an Apply that takes less than so many clock readings are unreliable
_READINGS = 10
#: calls below this share of the time are not shown
_WORTH_A_CALL = 0.01
#: Ops in Python below this share of the time are not explained
_WORTH = 0.001


def sections(profile: ProfileData, n: int, line_width: int = sys.maxsize) -> list[str]:
    """Return the lines of all sections, with up to n rows each, an empty line before each.

    line_width: where sentences are wrapped, and names cut.
    """
    without_names = calls(profile), program(profile)
    with_names = (
        sampled(profile, n), loops(profile, n), device.section(profile, n), spread(profile, n),
        lines(profile, n), call_tree(profile, n), scopes(profile, n), fused(profile, n),
        algorithms(profile, n), in_python(profile, n), peak(profile), limits(profile, n),
    )  # fmt: skip
    found = [fitted(section, line_width, cut_rows=False) for section in without_names]
    found += [fitted(section, line_width) for section in with_names]
    return [line for section in map(list, found) if section for line in ("", *section)]


# --- calls ----------------------------------------------------------------------------------------


def calls(profile: ProfileData) -> list[str]:
    """Return how the time of calls is divided, the first calls, and compiling."""
    count = sum(f.calls for f in profile.functions)
    if not count:
        return compiling(profile)
    parts = _parts_of_calls(profile)
    total = parts[0][0]
    failed = sum(f.failed for f in profile.functions)
    which = f"{counted(count, 'call')} ({failed} failed)" if failed else counted(count, "call")
    return [
        f"Time of {which}: <seconds> <share> <microseconds a call>",
        *("  %10.6f  %5.1f%%  %10.3f  %s"
          % (ns * 1e-9, percent(ns, total), ns * 1e-3 / count, what) for ns, what in parts),
        *about_calls(profile),
    ]  # fmt: skip


def _parts_of_calls(profile: ProfileData) -> list[tuple[float, str]]:
    """Return (nanoseconds, what) of all calls, then of their parts on the host."""
    functions, applys = profile.functions, profile.applys
    total, fn = sum(f.call_ns for f in functions), sum(f.fn_ns for f in functions)
    # a device works beside the host, whose time this is
    on_host = [a for a in applys if not a.device]
    host, once = sum(a.total for a in on_host), sum(a.once for a in on_host)
    asked, waited = sum(a.asked for a in applys), sum(a.waited for a in applys)
    timing, runs = sum(f.timing_ns for f in functions), sum(a.count for a in applys)
    found: list[tuple[float, str]] = [
        (total, "calls"),
        (total - fn, "call path: arguments, results, updates"),
        (
            max(0, fn - host - once - asked - waited - timing),
            "VM overhead: allocation and dispatch",
        ),
    ]
    if len(on_host) == len(applys):
        found.append((host, "Applys"))
    else:
        found.append((host, "Applys of the host"))
        found.append((asked, "launching kernels"))
        found.append((waited, "waiting for the device"))
    if once:
        found.append((once, ONCE))
    if runs:
        text = f"profiling overhead: {runs} x {timing / runs:.0f} ns (already subtracted)"
        found.append((timing, text))
    return found


def about_calls(profile: ProfileData) -> Iterator[str]:
    """Yield lines about first calls, unreliable times, other programs, and compiling."""
    called = [f for f in profile.functions if f.calls]
    first = sum(f.first_call_ns for f in called)
    later = sum(f.calls - f.first_calls for f in called)
    if first and later:
        mean = (sum(f.call_ns for f in called) - first) * 1e-3 / later
        yield f"  first calls: {first * 1e-9:.6f} s; later calls: {mean:.3f} µs on average"
    if built_in := sum(f.built_in_calls for f in called):
        total = sum(f.calls for f in called)
        yield (
            f"  {built_in} of {counted(total, 'call')} ran built-in loops, before compiled kernels "
            "were in use"
        )
    yield from _cold(profile)
    yield from _unreliable(profile)
    yield from busy(profile)
    yield from compiling(profile)


def _cold(profile: ProfileData) -> Iterator[str]:
    """Yield a line if Applys ran only once, so that first-call costs are in their times."""
    cold = sum(f.first_calls > 0 and 0 < f.calls <= f.first_calls for f in profile.functions)
    if cold:
        yield (
            f"  {counted(cold, 'function')} ran once per process: first-call costs (cold code and "
            "memory) are in the times"
        )


def busy(profile: ProfileData) -> Iterator[str]:
    """Yield a line for each sign that other programs, not this one, took the time."""
    times = waiting(profile.environment)
    if times is not None and times[0] >= _BUSY * sum(times):
        yield (
            f"  the hardware was busy: the main thread waited {times[0]:.3f} s for a processor and "
            f"ran for {times[1]:.3f} s; trust medians more than means"
        )
    outliers = [a for a in profile.applys if _is_far(a)]
    excess = sum(a.total - typical(a) for a in outliers)
    if outliers and excess > _MUCH * profile.local_ns:
        worst = max(outliers, key=lambda a: a.total - typical(a))
        mean, median = (ns * 1e-3 for ns in (worst.total / worst.count, worst.quantile(0.5)))
        yield (
            f"  {counted(len(outliers), 'Apply')} with a mean far above the median (largest: id "
            f"{worst.position}, {mean:.3f} against {median:.3f} µs): a few runs were very slow, or "
            "shapes differ"
        )


def has_median(apply: ApplyProfile) -> bool:
    """Return whether single runs of an Apply were timed, without those of Applys inside it."""
    return bool(apply.histogram) and not apply.inner


def typical(apply: ApplyProfile) -> float:
    """Return the nanoseconds that all runs would have taken if each had taken the median.

    The time of all runs if there is no median of them.
    """
    return apply.count * apply.quantile(0.5) if has_median(apply) else apply.total


def _is_far(apply: ApplyProfile) -> bool:
    """Return whether the mean of many runs is far above their median."""
    return apply.count >= _MANY and apply.total > _FAR * typical(apply)


#: what the mark of an Apply means for which ``has_slow_runs``
SLOW_RUNS = (
    "a few slow runs make much of this time (its mean is far above its median): --sort median "
    "puts rows in the order that they would have without such runs"
)


def has_slow_runs(apply: ApplyProfile, local_ns: int) -> bool:
    """Return whether a few slow runs distort an Apply's share of the time of all Applys."""
    return _is_far(apply) and apply.total - typical(apply) > _DISTORTED * local_ns


def waiting(environment: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return (seconds that main threads waited for a processor, seconds that they ran).

    environment: that of a profile; sums those of a merged one. None if unknown.
    """
    parts = environment.get("merged", [environment])
    known = [p for p in parts if "seconds_waiting" in p and "seconds_running" in p]
    if not known:
        return None
    return sum(p["seconds_waiting"] for p in known), sum(p["seconds_running"] for p in known)


def program(profile: ProfileData) -> list[str]:
    """Return how the time of the whole program is divided; [] if it was not recorded."""
    found = program_parts(profile)
    if not found:
        return []
    n, rows = found
    whole = rows[0][0]
    title = "Time of the program" if n == 1 else f"Time of {n} processes, added up"
    return [
        f"{title}: <seconds> <share>",
        *("  %10.3f  %5.1f%%  %s" % (s, percent(s, whole), what) for s, what in rows if s >= 0),
    ]


def sampled(profile: ProfileData, n: int) -> list[str]:
    """Return where the program was, as a tree of lines; [] if it was not sampled."""
    found = sampled_rows(profile)
    if not found:
        return []
    _, rows = found
    lines = [f"{sampled_title(profile)}: <seconds> <share> <of which in functions> <line>"]
    lines += ["  %10.3f  %5.1f%%  %6s  %s" % (*row[:2], row[2] or "-", row[3]) for row in rows[:n]]
    if len(rows) > n:
        lines.append(_more_lines(len(rows) - n))
    return lines


def sampled_title(profile: ProfileData) -> str:
    """Return what the tree of the program's lines is called."""
    period = profile.program.period_ns * 1e-6 if profile.program else 0
    return f"Where the program was, looked at every {period:g} ms"


def sampled_rows(
    profile: ProfileData,
) -> tuple[SampledNode, list[tuple[float, float, str, str]]] | None:
    """Return (tree, rows of its lines that took more than 1 %); None if it was not sampled.

    A row is (seconds, percent, percent of these in calls of functions or "", the line and its
    text, indented by its depth).
    """
    if profile.program is None:
        return None
    tree, rows = aggregate.sampled_tree(profile), []
    for depth, node in tree.walk():
        if node.frame is not None and node.ns > _WORTH_A_CALL * tree.ns:
            part = f"{percent(node.called, node.ns):.1f}%" if node.called else ""
            rows.append(
                (*_share(node.ns, tree.ns), part, _name_of_call(node.frame, depth, profile))
            )
    return tree, rows


def _more_lines(count: int) -> str:
    return f"  ... and {counted(count, 'more line')} of over {_WORTH_A_CALL:.0%}"


def _name_of_call(frame: CallFrame, depth: int, profile: ProfileData) -> str:
    """Return the name of a line in a tree of calls, with its text."""
    text = profile.sources.get(f"{frame.file}:{frame.line}", "")
    return "  " * depth + callpaths.label(frame) + (f"  {text}" if text else "")


def program_parts(profile: ProfileData) -> tuple[int, list[tuple[float, str]]] | None:
    """Return (number of processes, (seconds, what) pairs) of the whole program; None if unknown.

    The first pair is all of it, the last the remainder: below 0 if functions ran in parallel.
    Parts that would be shown as zero are left out.
    """
    parts = profile.environments
    known = [p for p in parts if "seconds_of_process" in p]
    if not known or len(known) < len(parts):
        return None

    def total(name: str) -> float:
        return float(sum(p.get(name, 0.0) for p in known))

    whole, importing, gradients = map(
        total, ("seconds_of_process", "seconds_importing", "grad_seconds")
    )
    compiled = sum(f.compile.total for f in profile.functions)
    called = sum(f.call_ns for f in profile.functions) * 1e-9
    rows = [
        (whole, "whole program, from the start of the process"),
        (importing, "importing opwise"),
        (gradients, "building gradients"),
        (compiled, f"compiling {counted(len(profile.functions), 'function')}"),
        (called, "calls of functions"),
        (whole - importing - gradients - compiled - called, _REST),
    ]
    return len(known), [row for row in rows if abs(row[0]) >= _SHOWN_SECONDS]


#: fewer seconds are shown as 0.000
_SHOWN_SECONDS = 0.0005
_REST = "the rest: Python, other libraries, waiting"


def _unreliable(profile: ProfileData) -> Iterator[str]:
    """Yield a line if Applys run for so short a time that timing them is unreliable."""
    count, slowest = 0, 0.0
    for f in profile.functions:
        runs = sum(a.count for a in f.applys)
        reading = f.timing_ns / runs if runs else 0
        slowest = max(slowest, reading)
        timed = [a for a in f.applys if a.count and not a.estimated]
        count += sum(a.total < _READINGS * reading * a.count for a in timed)
    if count:
        yield (
            f"  {counted(count, 'Apply')} {'runs' if count == 1 else 'run'} for less than "
            f"{_READINGS} clock readings ({_READINGS * slowest:.0f} ns): "
            f"{'its times are' if count == 1 else 'their times are'} unreliable"
        )


def compiling(profile: ProfileData) -> list[str]:
    """Return the lines about the phases of compiling."""
    made = [f.compile for f in profile.functions]
    if not made:
        return []

    def total(part: str) -> float:
        return float(sum(getattr(c, part) for c in made))

    graphs = [c.graph_cached for c in made].count(True)
    cached = [c.cached for c in made if c.cached is not None]
    kernels = f"; rewritten graphs cached for {counted(graphs, 'function')}" if graphs else ""
    if cached:
        hits, misses = cached.count(True), cached.count(False)
        of_hits = f"cached for {counted(hits, 'function')}"
        of_misses = f"compiled for {misses if hits else counted(misses, 'function')}"
        kernels += f"; kernels {', '.join([of_hits] * bool(hits) + [of_misses] * bool(misses))}"
    parts = [("C compiler", total("compiler")), ("loading", total("load"))]
    of_linking = ", ".join(f"{what} {s:.3f}" for what, s in parts if s >= _SHOWN_SECONDS)
    before = [("rewriting by the library", total("library")), ("translation", total("translation"))]
    of_front_end = "".join(f"{what} {s:.3f}, " for what, s in before if s)
    found = [
        "  compiled %s in %.3f s: %srewriting %.3f, linking %.3f%s%s"
        % (
            counted(len(made), "function"), total("total"), of_front_end, total("optimizer"),
            total("linker"), f" ({of_linking})" * bool(of_linking), kernels,
        )
    ]  # fmt: skip
    if reason := without_compiler(profile):
        found.append(f"  {reason}: loops ran on built-in kernels, which are slower")
    return found


# --- loops ----------------------------------------------------------------------------------------

_LOOPS = (
    "Loops: <seconds> <share of the loop> <runs> <microseconds a run> <id> <Apply name>; below "
    "each loop the Applys inside it, and its overhead"
)


#: what the time of an Apply is that was not timed, see ``ApplyProfile.estimated``
ESTIMATED = (
    "estimated: the loop ran as one C function; its time is split among the Applys of its step by "
    "their rough cost"
)


def loops(profile: ProfileData, n: int) -> list[str]:
    """Return the n loops that took longest, each with the n Applys inside that did."""
    found = [(f, a) for f in profile.functions for a in f.applys if a.whole and _has_inside(a)]
    found.sort(key=lambda pair: (-pair[1].whole, pair[1].position))
    if not found:
        return []
    rows = [row for function, loop in found[:n] for row in _loop(function, loop, n)]
    return [_LOOPS, *rows, *([f"  ... ({len(found) - n} more)"] if len(found) > n else [])]


def _has_inside(apply: ApplyProfile) -> bool:
    return apply.kind == LOOP or apply.inner > 0


def _loop(function: FunctionProfile, loop: ApplyProfile, n: int) -> Iterator[str]:
    """Yield the row of a loop, those of the n largest Applys inside it, and its overhead."""
    inside = [a for a in function.applys if a.inside == loop.position]
    inside.sort(key=lambda a: (-a.whole, a.position))
    yield _loop_row(loop, loop.whole, short(loop.title))
    for a in inside[:n]:
        yield _loop_row(a, a.whole, f"  {short(a.text)}", loop.whole)
    if rest := inside[n:]:
        ns = sum(a.whole for a in rest)
        yield _share_row(ns, loop.whole, f"  {counted(len(rest), 'more Apply')}")
    if loop.inner:
        steps = max(a.count for a in inside)
        each = loop.total * 1e-3 / max(1, steps)
        a_run = steps / max(1, loop.count)  # runs that failed do not count
        text = f"  overhead of the loop: {each:.3f} µs a step, {a_run:.5g} steps a run"
        if any(a.estimated for a in inside):
            text = f"  {a_run:.5g} steps a run; the times inside are {ESTIMATED}"
        yield _share_row(loop.total, loop.whole, text)
    elif loop.c:
        yield _share_row(loop.total, loop.whole, "  all in one C loop, without Applys inside")
    else:
        yield _share_row(loop.total, loop.whole, "  the Applys inside are not recorded")


def _loop_row(a: ApplyProfile, ns: int, name: str, whole: int | None = None) -> str:
    return "  %10.6f  %5.1f%%  %8d  %10.3f  %4d  %s" % (
        ns * 1e-9, percent(ns, whole or ns), a.count, ns * 1e-3 / max(1, a.count), a.position, name,
    )  # fmt: skip


def _share_row(ns: int, whole: int, text: str) -> str:
    return "  %10.6f  %5.1f%%  %8s  %10s  %4s  %s" % (
        ns * 1e-9, percent(ns, whole), "", "", "", text,
    )  # fmt: skip


# --- Applys ---------------------------------------------------------------------------------------


def spread(profile: ProfileData, n: int) -> list[str]:
    """Return how the times of single runs of an Apply differ, of the n Applys with most time."""
    timed = (a for a in profile.applys if a.count > 1 and a.histogram)
    applys = sorted(timed, key=lambda a: -a.total)
    if not applys:
        return []
    rows = [
        "  %10.3f %10.3f %10.3f %10.3f  %6d  %4d  %s"
        % (a.least * 1e-3, a.quantile(0.5) * 1e-3, a.quantile(0.95) * 1e-3, a.most * 1e-3,
           a.count, a.position, short(a.title))
        for a in applys[:n]
    ]  # fmt: skip
    return ["Spread, microseconds: <least> <median> <95%> <most> <runs> <id> <Apply name>", *rows]


def fused(profile: ProfileData, n: int) -> list[str]:
    """Return the source operations of the n largest fused Applys, by line."""
    several = [a for a in profile.applys if a.total and a.lines and _is_fused(a)]
    several.sort(key=lambda a: -a.total)
    if not several:
        return []
    found = ["Fused: <seconds> <id> <Apply name>, then <line>: <its source operations>"]
    for a in several[:n]:
        found.append("  %10.6f  %4d  %s" % (a.total * 1e-9, a.position, short(a.title)))
        parts: dict[tuple[str, int, str], dict[str, None]] = {}
        for origin in a.origins:
            place = (origin.file, origin.line, origin.scope)
            parts.setdefault(place, {}).setdefault(origin.op)
        for (file, line, scope), ops in parts.items():
            where = f"{short_path(file)}:{line}" if file else "(unknown line)"
            scope = f" [{scope}]" if scope else ""
            found.append(f"                    {where}{scope}: {short(', '.join(ops))}")
    return found


def _is_fused(apply: ApplyProfile) -> bool:
    """Return whether an Apply is one loop for several operations of the program."""
    return apply.is_fused and len({(o.op, o.file, o.line) for o in apply.origins}) > 1


def algorithms(profile: ProfileData, n: int) -> list[str]:
    """Return which of several algorithms Applys took, and why; [] if none has several."""
    chosen = [a for a in profile.applys if a.algorithm and a.count]
    if not chosen:
        return []
    return [
        "Algorithms: <seconds> <share> <GFLOP/s> <algorithm> <id> <Op>: <why this algorithm>",
        *(
            "  %10.6f  %5.1f%% %8s  %-8s %4d  %s: %s"
            % (*_share(a.total, profile.local_ns), _rate(a), a.algorithm, a.position,
               short(a.name), a.why_algorithm)
            for a in sorted(chosen, key=lambda a: (-a.total, a.position))[:n]
        ),
    ]  # fmt: skip


def _rate(apply: ApplyProfile) -> str:
    """Return GFLOP/s of an Apply, a dash if they are not known."""
    if apply.flops is None or not apply.total:
        return "-"
    return "%.1f" % (apply.flops * apply.count / apply.total)


def in_python(profile: ProfileData, n: int) -> list[str]:
    """Return which Ops run in Python, and why."""
    local, rows = profile.local_ns, slow_in_python(profile)
    if not rows:
        return []
    return [
        "In Python: <seconds> <share> <Op>: <why not in C>",
        *("  %10.6f  %5.1f%%  %s: %s" % (*_share(r.ns, local), short(r.label), why)
          for r, why in rows[:n]),
    ]  # fmt: skip


def slow_in_python(profile: ProfileData) -> list[tuple[SummaryRow, str]]:
    """Return (row of ``aggregate.by_op``, why it runs in Python) pairs, the slowest first."""
    why: dict[object, str] = {}
    for a in profile.applys:
        if not a.c:
            why.setdefault(a.op_key, a.why)
    least = _WORTH * profile.local_ns
    rows = [r for r in aggregate.by_op(profile) if r.key in why and r.ns > least]
    return [(r, why[r.key]) for r in sorted(rows, key=lambda r: -r.ns)]


def limits(profile: ProfileData, n: int) -> list[str]:
    """Return what Applys take beyond the limits of the hardware; [] if these are not measured."""
    measured = profile.machine is not None or profile.devices
    if not measured or not any(a.total for a in profile.applys):
        return []
    return roofline.section(profile, profile.machine, n)[:-1]


# --- the user's program ---------------------------------------------------------------------------


def lines(profile: ProfileData, n: int) -> list[str]:
    """Return the time by line of the program."""
    found = [r for r in aggregate.by_line(profile) if r.ns]
    if not any(r.key for r in found):
        return []

    def name(row: SummaryRow) -> str:
        text = profile.sources.get(row.label, "")
        return f"{place_of(row)}  {text}" if text else place_of(row)

    return [
        f"By line: <seconds> <share> <of which in gradients> <line>; {SPLIT}",
        *_rows(found, profile, n, name),
    ]


def call_tree(profile: ProfileData, n: int) -> list[str]:
    """Return the time by call, as a tree; [] if no line of the program called another one."""
    tree = aggregate.call_tree(profile)
    found = [(depth, node) for depth, node in tree.walk() if node.ns > _WORTH_A_CALL * tree.ns]
    if not any(depth for depth, _ in found):
        return []
    lines = ["By call: <seconds> <share> <of which in gradients> <line>, above those it called"]
    for depth, node in found[:n]:
        assert node.frame is not None
        name = _name_of_call(node.frame, depth, profile)
        lines.append(_row(node.ns, node.gradient, profile, name))
    if len(found) > n:
        lines.append(_more_lines(len(found) - n))
    return lines


def scopes(profile: ProfileData, n: int) -> list[str]:
    """Return the time by scope of the program; [] if it has none."""
    found = [r for r in aggregate.by_scope(profile) if r.ns or (r.key and r.calls)]
    if not any(r.key for r in found):
        return []
    title = "By scope: <seconds> <share> <of which in gradients> <scope>"
    if not all(r.ns for r in found):
        title += "; scopes without time were merged into matrix products"
    return [title, *_rows(found, profile, n, lambda row: row.label)]


def _rows(
    found: list[SummaryRow], profile: ProfileData, n: int, name: Callable[[SummaryRow], str]
) -> list[str]:
    found = sorted(found, key=lambda r: (-r.ns, r.label))
    rest = sum(r.ns for r in found[n:])
    return [
        *(_row(r.ns, r.gradient, profile, name(r)) for r in found[:n]),
        *(["  ... (%d more: %.6f s)" % (len(found) - n, rest * 1e-9)] if len(found) > n else []),
    ]  # fmt: skip


def _row(ns: float, gradient: float, profile: ProfileData, name: str) -> str:
    """Return a row. gradient: how much of the nanoseconds is of gradients."""
    part = f"{percent(gradient, ns):.1f}%" if gradient else "-"
    return "  %10.6f  %5.1f%%  %6s  %s" % (*_share(ns, profile.local_ns), part, name)


def _share(ns: float, local: float) -> tuple[float, float]:
    return ns * 1e-9, percent(ns, local)


# --- memory ---------------------------------------------------------------------------------------

#: how many pieces of memory at the peak are shown
_LIVE = 8


def peak(profile: ProfileData) -> list[str]:
    """Return the Apply at which most memory was live, of all functions, and what was live then."""
    found = at_peak(profile)
    if found is None:
        return []
    title, rows = found
    return [
        f"{title} <bytes> <made by>",
        *("  %12d  %s" % (size, what if apply is None else name_and_place(apply))
          for size, apply, what in rows),
    ]  # fmt: skip


def at_peak(
    profile: ProfileData,
) -> tuple[str, list[tuple[int, ApplyProfile | None, str]]] | None:
    """Return (a sentence about the peak of memory, what was live then); None if not measured.

    Each piece of memory is (bytes, the Apply that made it or None, a text for None).
    """
    known = [f for f in profile.functions if f.memory and f.memory.at >= 0]
    if not known:
        return None
    function = max(known, key=_peak_bytes)
    memory = function.memory
    assert memory is not None
    apply = {a.position: a for a in function.applys}
    most = readable(max(memory.timeline))
    is_more = most != readable(memory.peak)
    with_scratch = f"; including scratch memory, at most {most}" * is_more
    title = (
        f"Memory at its peak: {readable(memory.peak)} while {short_place(function.name)} ran "
        f"{name_and_place(apply[memory.at])}{with_scratch}. Live at that point:"
    )
    rows: list[tuple[int, ApplyProfile | None, str]] = [
        (live.bytes, apply.get(live.position), "scratch of the Apply itself")
        for live in memory.live[:_LIVE]
    ]
    if rest := memory.live[_LIVE:]:
        rows.append((sum(live.bytes for live in rest), None, f"{len(rest)} more"))
    return title, rows


def _peak_bytes(function: FunctionProfile) -> int:
    return function.memory.peak if function.memory else -1
