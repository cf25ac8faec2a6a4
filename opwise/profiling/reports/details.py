"""What follows the classic summaries: where calls, lines, scopes and memory had their part.

Each section is a list of lines, empty where there is nothing to tell.
"""

from __future__ import annotations

import os

from opwise.profiling import aggregate
from opwise.profiling.memory import readable
from opwise.profiling.reports import device, roofline
from opwise.profiling.tips import without_compiler

#: how the time of a fused Apply is divided
SPLIT = "a fused Apply's time is split among the source operations in it, by the rough cost of each"
#: what the row of first runs is called
ONCE = "first runs, beyond later ones (cold code and memory)"
#: the share of its time that a thread waits for a processor on a busy machine
_BUSY = 0.05
#: an Apply with so many runs and a mean so far above the median is noticed, if that is so much of
#: the time of all
_MANY, _FAR, _MUCH = 10, 1.5, 0.1
#: an Apply that takes less than so many readings of the clock is hardly measured
_READINGS = 10
#: an Op in Python below this share of the time is not explained
_WORTH = 0.001


def sections(profile, n):
    """Return the lines of all sections, with up to n rows each, an empty line before each."""
    found = (
        calls(profile), program(profile), device.section(profile, n), spread(profile, n),
        lines(profile, n), scopes(profile, n), fused(profile, n), in_python(profile, n),
        peak(profile), limits(profile, n),
    )  # fmt: skip
    return [line for section in found if section for line in ("", *section)]


# --- calls ----------------------------------------------------------------------------------------


def calls(profile):
    """Return where the time of calls went, the first calls, and compiling."""
    functions = profile.functions
    count = sum(f.calls for f in functions)
    if not count:
        return compiling(profile)
    total, fn = (sum(getattr(f, name) for f in functions) for name in ("call_ns", "fn_ns"))
    # a device works beside the host, whose time this is
    host = sum(a.total for a in profile.applys if not a.device)
    asked, waited = (sum(getattr(a, name) for a in profile.applys) for name in ("asked", "waited"))
    timing = sum(f.timing_ns for f in functions)
    once = sum(a.once for a in profile.applys if not a.device)
    overhead = fn - host - once - asked - waited - timing
    runs = sum(a.count for a in profile.applys)

    def row(ns, what):
        share = 100 * ns / total if total else 0.0
        return "  %10.6f  %5.1f%%  %10.3f  %s" % (ns * 1e-9, share, ns * 1e-3 / count, what)

    failed = sum(f.failed for f in functions)
    which = f"{count} calls ({failed} failed)" if failed else f"{count} calls"
    found = [
        f"Time of {which}: <seconds> <share> <microseconds a call>",
        row(total, "calls"),
        row(total - fn, "call path: arguments, results, updates"),
        row(max(0, overhead), "VM overhead: allocation and dispatch"),
        row(host, "Applys"),
    ]
    if any(a.device for a in profile.applys):
        found[-1] = row(host, "Applys of the host")
        found.append(row(asked, "launching kernels"))
        found.append(row(waited, "waiting for the device"))
    if once:
        found.append(row(once, ONCE))
    if runs:
        text = f"profiling overhead: {runs} x {timing / runs:.0f} ns (already subtracted)"
        found.append(row(timing, text))
    return [*found, *about_calls(profile)]


def about_calls(profile):
    """Yield what there is to say of first calls, of times that are unreliable, and of compiling."""
    called = [f for f in profile.functions if f.calls]
    first = sum(f.first_call_ns for f in called)
    later = sum(f.calls - f.first_calls for f in called)
    if first and later:
        mean = (sum(f.call_ns for f in called) - first) * 1e-3 / later
        yield f"  first calls: {first * 1e-9:.6f} s; later ones {mean:.3f} us on average"
    yield from _cold(profile)
    yield from _hardly_measured(profile)
    yield from busy(profile)
    yield from compiling(profile)


def _cold(profile):
    """Yield a line if Applys ran but once, so that first-call costs are in their times."""
    cold = sum(f.first_calls > 0 and 0 < f.calls <= f.first_calls for f in profile.functions)
    if cold:
        yield (
            f"  {counted(cold, 'function')} ran once per process: first-call costs (cold code and "
            "memory) are in the times"
        )


def busy(profile):
    """Yield a line for each sign that other programs, not this one, took the time."""
    times = waiting(profile.environment)
    if times is not None and times[0] >= _BUSY * sum(times):
        yield (
            f"  the machine was busy: the main thread waited {times[0]:.3f} s for a processor, and "
            f"ran for {times[1]:.3f} s; trust medians more than means"
        )
    spread_out = [a for a in profile.applys if a.count >= _MANY and a.total > _FAR * _typical(a)]
    excess = sum(a.total - _typical(a) for a in spread_out)
    if spread_out and excess > _MUCH * profile.local_ns:
        worst = max(spread_out, key=lambda a: a.total - _typical(a))
        mean, median = (ns * 1e-3 for ns in (worst.total / worst.count, worst.quantile(0.5)))
        yield (
            f"  {counted(len(spread_out), 'Apply')} with a mean far above the median (the most: id "
            f"{worst.position}, {mean:.3f} against {median:.3f} us): a few runs were very slow, or "
            "shapes differ"
        )


def _typical(apply):
    """Return the nanoseconds that an Apply would have taken if all runs had taken the median."""
    return apply.count * apply.quantile(0.5)


def waiting(environment):
    """Return (seconds that the main threads waited for a processor, that they ran); None: unknown.

    environment: that of a Profile; of merged ones the sums.
    """
    parts = environment.get("merged", [environment])
    known = [p for p in parts if "seconds_waiting" in p and "seconds_running" in p]
    if not known:
        return None
    return tuple(sum(p[name] for p in known) for name in ("seconds_waiting", "seconds_running"))


def program(profile):
    """Return where the time of the whole program went; [] where that was not recorded."""
    found = program_parts(profile)
    if not found:
        return []
    n, rows = found
    whole = rows[0][0]
    title = "Time of the program" if n == 1 else f"Time of {n} processes, added up"
    return [
        f"{title}: <seconds> <share>",
        *("  %10.3f  %5.1f%%  %s" % (s, 100 * s / whole if whole else 0.0, what)
          for s, what in rows if s >= 0),
    ]  # fmt: skip


def program_parts(profile):
    """Return (number of processes, pairs (seconds, what)) of the whole program; None if unknown.

    The first pair is about all of it, the last about what the others leave: below 0 where functions
    ran side by side.
    """
    environment = profile.environment
    parts = environment.get("merged", [environment])
    known = [p for p in parts if "seconds_of_process" in p]
    if not known or len(known) < len(parts):
        return None

    def total(name):
        return sum(p.get(name, 0.0) for p in known)

    whole, importing, gradients = map(
        total, ("seconds_of_process", "seconds_importing", "grad_seconds")
    )
    compiled = sum(f.compile.total for f in profile.functions)
    called = sum(f.call_ns for f in profile.functions) * 1e-9
    return len(known), [
        (whole, "whole program, from the start of the process"),
        (importing, "importing opwise"),
        (gradients, "building gradients"),
        (compiled, f"compiling {counted(len(profile.functions), 'function')}"),
        (called, "calls of functions"),
        (whole - importing - gradients - compiled - called, _REST),
    ]


_REST = "the rest: Python, other libraries, waiting"


def _hardly_measured(profile):
    short, slowest = 0, 0.0
    for f in profile.functions:
        runs = sum(a.count for a in f.applys)
        reading = f.timing_ns / runs if runs else 0
        slowest = max(slowest, reading)
        short += sum(a.count > 0 and a.total < _READINGS * reading * a.count for a in f.applys)
    if short:
        yield (
            f"  {counted(short, 'Apply')} {'runs' if short == 1 else 'run'} for less than "
            f"{_READINGS} clock readings ({_READINGS * slowest:.0f} ns): "
            f"{'its times are' if short == 1 else 'their times are'} unreliable"
        )


def compiling(profile):
    """Return the lines about the phases of compiling."""
    made = [f.compile for f in profile.functions]
    if not made:
        return []

    def total(part):
        return sum(getattr(c, part) for c in made)

    cached = [c.cached for c in made if c.cached is not None]
    kernels = ""
    if cached:
        kernels = (
            f"; kernels of {counted(cached.count(True), 'function')} from the cache, of "
            f"{cached.count(False)} compiled"
        )
    return [
        "  compiled %s in %.3f s: rewriting %.3f, linking %.3f (C compiler %.3f, loading %.3f)%s"
        % (
            counted(len(made), "function"), total("total"), total("optimizer"), total("linker"),
            total("compiler"), total("load"), kernels,
        ),
        *_without_compiler(profile),
    ]  # fmt: skip


def _without_compiler(profile):
    reason = without_compiler(profile)
    if reason:
        yield f"  {reason}: loops ran on built-in kernels, which are slower"


# --- Applys ---------------------------------------------------------------------------------------


def spread(profile, n):
    """Return how the times of single runs of an Apply differ, of those with most time."""
    applys = sorted((a for a in profile.applys if a.count > 1), key=lambda a: -a.total)
    if not applys:
        return []
    rows = [
        "  %10.3f %10.3f %10.3f %10.3f  %6d  %4d  %s"
        % (*(ns * 1e-3 for ns in (a.least, a.quantile(0.5), a.quantile(0.95), a.most)),
           a.count, a.position, short(a.text))
        for a in applys[:n]
    ]  # fmt: skip
    return ["Spread, microseconds: <least> <median> <95%> <most> <runs> <id> <Apply name>", *rows]


def fused(profile, n):
    """Return what Applys are made of that compute several of the user's, by line."""
    several = [a for a in profile.applys if a.total and a.lines and _is_fused(a)]
    several.sort(key=lambda a: -a.total)
    if not several:
        return []
    found = ["Fused: <seconds> <id> <Apply name>, then <line>: <its source operations>"]
    for a in several[:n]:
        found.append("  %10.6f  %4d  %s" % (a.total * 1e-9, a.position, short(a.text)))
        parts = {}
        for origin in a.origins:
            place = (origin.file, origin.line, origin.scope)
            parts.setdefault(place, {}).setdefault(origin.op)
        for (file, line, scope), ops in parts.items():
            where = f"{from_here(file)}:{line}" if file else "(unknown line)"
            scope = f" [{scope}]" if scope else ""
            found.append(f"                    {where}{scope}: {short(', '.join(ops))}")
    return found


def _is_fused(apply):
    """Return whether an Apply is one loop for several operations of the program."""
    is_loop = "Composite{" in apply.op or apply.op.startswith("MapReduce{")
    return is_loop and len({(o.op, o.file, o.line) for o in apply.origins}) > 1


def in_python(profile, n):
    """Return which Ops run in Python, and why."""
    local, rows = profile.local_ns, slow_in_python(profile)
    if not rows:
        return []
    return [
        "In Python: <seconds> <share> <Op>: <why not in C>",
        *("  %10.6f  %5.1f%%  %s: %s" % (*_share(r.ns, local), short(r.label), why)
          for r, why in rows[:n]),
    ]  # fmt: skip


def slow_in_python(profile):
    """Return pairs (row of ``aggregate.by_op``, why it runs in Python), the slowest first."""
    why = {}
    for a in profile.applys:
        if not a.c:
            why.setdefault(a.op_key, a.why)
    least = _WORTH * profile.local_ns
    rows = [r for r in aggregate.by_op(profile) if r.key in why and r.ns > least]
    return [(r, why[r.key]) for r in sorted(rows, key=lambda r: -r.ns)]


def limits(profile, n):
    """Return what Applys take beyond what the machine needs, where that has been measured."""
    measured = profile.machine is not None or profile.devices
    if not measured or not any(a.total for a in profile.applys):
        return []
    return roofline.section(profile, profile.machine, n)[:-1]


# --- the user's program ---------------------------------------------------------------------------


def lines(profile, n):
    """Return the time by the user's lines."""
    found = [r for r in aggregate.by_line(profile) if r.ns]
    if not any(r.key for r in found):
        return []

    def name(row):
        text = profile.sources.get(row.label, "")
        return f"{place(row)}  {text}" if text else place(row)

    return [
        f"By line: <seconds> <share> <of which in gradients> <line>; {SPLIT}",
        *_rows(found, profile, n, name),
    ]


def scopes(profile, n):
    """Return the time by the user's scopes; nothing where there are none."""
    found = [r for r in aggregate.by_scope(profile) if r.ns]
    if not any(r.key for r in found):
        return []
    title = "By scope: <seconds> <share> <of which in gradients> <scope>"
    return [title, *_rows(found, profile, n, lambda row: row.label)]


def _rows(found, profile, n, name):
    local = profile.local_ns
    found = sorted(found, key=lambda r: (-r.ns, r.label))
    rest = sum(r.ns for r in found[n:])
    return [
        *("  %10.6f  %5.1f%%  %5.1f%%  %s"
          % (*_share(r.ns, local), 100 * r.gradient / r.ns, name(r)) for r in found[:n]),
        *(["  ... (%d more: %.6f s)" % (len(found) - n, rest * 1e-9)] if len(found) > n else []),
    ]  # fmt: skip


def _share(ns, local):
    return ns * 1e-9, 100 * ns / local if local else 0.0


def from_here(file):
    """Return a path from the current folder where the file is below it, else as it is."""
    try:
        inside = os.path.relpath(file)
    except (OSError, ValueError):  # the folder is gone; another drive
        return file
    return file if inside.startswith(os.pardir) else inside


# --- memory ---------------------------------------------------------------------------------------

#: how many of what lives at the peak are shown
_LIVE = 8


def peak(profile):
    """Return the Apply at which most memory lived, of all functions, and what lived there."""
    found = at_peak(profile)
    if found is None:
        return []
    title, rows = found
    lines = [f"{title} <bytes> <made by>"]
    for size, apply, what in rows:
        lines.append("  %12d  %s" % (size, what if apply is None else _with_place(apply)))
    return lines


def at_peak(profile):
    """Return (a sentence about the most memory, what lived then); None if it was not measured.

    What lived are triples (bytes, the Apply that made them, None); or (bytes, None, a text).
    """
    known = [f for f in profile.functions if f.memory and f.memory.at >= 0]
    if not known:
        return None
    function = max(known, key=lambda f: f.memory.peak)
    memory = function.memory
    apply = {a.position: a for a in function.applys}
    title = (
        f"Memory at its peak: {readable(memory.peak)} while {function.name} ran "
        f"{_with_place(apply[memory.at])}; with the scratch memory of Applys at most "
        f"{readable(max(memory.timeline))}. Live there:"
    )
    rows = [
        (live.bytes, apply.get(live.position), "scratch of the Apply itself")
        for live in memory.live[:_LIVE]
    ]
    if rest := memory.live[_LIVE:]:
        rows.append((sum(live.bytes for live in rest), None, f"{len(rest)} more"))
    return title, rows


def _with_place(apply):
    """Return what is read of an Apply in a sentence: its name, id and line."""
    return f"{short(apply.text)} (id {apply.position}{_line(apply)})"


def _line(apply):
    return f", {short_line(apply)}" if apply.lines else ""


def short_line(apply):
    """Return ``file:line`` of an Apply, the path from here; "" where nobody knows."""
    return f"{from_here(apply.lines[0][0])}:{apply.lines[0][1]}" if apply.lines else ""


def place(row):
    """Return what a row of ``aggregate.by_line`` or ``by_scope`` is about, a path from here."""
    if isinstance(row.key, tuple):
        return f"{from_here(row.key[0])}:{row.key[1]}"
    return row.label


def counted(n, what):
    """Return a number with the word for what is counted."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def short(name, most=120):
    """Return a name cut to what is read at a glance."""
    return name if len(name) <= most else f"{name[: most - 3]}..."
