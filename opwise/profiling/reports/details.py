"""What follows the classic summaries: where calls, lines, scopes and memory had their part.

Each section is a list of lines, empty where there is nothing to tell.
"""

from __future__ import annotations

import os

from opwise.profiling import aggregate
from opwise.profiling.memory import readable
from opwise.profiling.reports import device, roofline
from opwise.profiling.tips import without_compiler

#: an Apply that takes less than so many readings of the clock is hardly measured
_READINGS = 10
#: an Op in Python below this share of the time is not explained
_WORTH = 0.001


def sections(profile, n):
    """Return the lines of all sections, with up to n rows each, an empty line before each."""
    found = (
        calls(profile), device.section(profile, n), spread(profile, n), lines(profile, n),
        scopes(profile, n), fused(profile, n), in_python(profile, n), peak(profile),
        limits(profile, n),
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
    machine = fn - host - asked - waited - timing
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
        row(max(0, machine), "machine: memory of results, order of Applys"),
        row(host, "Applys"),
    ]
    if any(a.device for a in profile.applys):
        found[-1] = row(host, "Applys of the host")
        found.append(row(asked, "asking the device for Applys"))
        found.append(row(waited, "waiting for the device"))
    if runs:
        each = timing / runs
        found.append(row(timing, f"timing them: {runs} times {each:.0f} ns, not in their times"))
    return [*found, *about_calls(profile)]


def about_calls(profile):
    """Yield what there is to say of first calls, of Applys that are too short, and of compiling."""
    called = [f for f in profile.functions if f.calls]
    first = sum(f.first_call_ns for f in called)
    later = sum(f.calls - f.first_calls for f in called)
    if first and later:
        mean = (sum(f.call_ns for f in called) - first) * 1e-3 / later
        yield f"  first calls: {first * 1e-9:.6f} s; later ones {mean:.3f} us on average"
    yield from _hardly_measured(profile)
    yield from compiling(profile)


def _hardly_measured(profile):
    short, slowest = 0, 0.0
    for f in profile.functions:
        runs = sum(a.count for a in f.applys)
        reading = f.timing_ns / runs if runs else 0
        slowest = max(slowest, reading)
        short += sum(a.count > 0 and a.total < _READINGS * reading * a.count for a in f.applys)
    if short:
        yield (
            f"  {short} Applys take less than {_READINGS} readings of the clock "
            f"({_READINGS * slowest:.0f} ns) a run: what is told of them is rough"
        )


def compiling(profile):
    """Return the lines about the phases of compiling."""
    made = [f.compile for f in profile.functions]
    if not made:
        return []

    def total(part):
        return sum(getattr(c, part) for c in made)

    cached = [c.cached for c in made if c.cached is not None]
    kernels = f"; kernels of {cached.count(True)} functions from the cache, " \
              f"of {cached.count(False)} compiled" if cached else ""  # fmt: skip
    return [
        "  compiling %d functions: %.3f s, of them rewrites %.3f, linking %.3f (C compiler %.3f, "
        "loading %.3f)%s"
        % (
            len(made), total("total"), total("optimizer"), total("linker"), total("compiler"),
            total("load"), kernels,
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
    several = [a for a in profile.applys if a.total and len(a.lines) and len(a.origins) > 1]
    several.sort(key=lambda a: -a.total)
    if not several:
        return []
    found = ["Fused: <seconds> <id> <Apply name>, then <line>: <its part>"]
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


def in_python(profile, n):
    """Return which Ops run in Python, and why."""
    local = profile.local_ns
    why = {}
    for a in profile.applys:
        if not a.c:
            why.setdefault(a.op_key, a.why)
    rows = [r for r in aggregate.by_op(profile) if r.key in why and r.ns > _WORTH * local]
    if not rows:
        return []
    rows.sort(key=lambda r: -r.ns)
    return [
        "In Python: <seconds> <share> <Op>: <why not in C>",
        *("  %10.6f  %5.1f%%  %s: %s" % (*_share(r.ns, local), short(r.label), why[r.key])
          for r in rows[:n]),
    ]  # fmt: skip


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
        "By line: <seconds> <share> <of which in gradients> <line>; an Apply's time is divided "
        "evenly among what it computes of the program",
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
    known = [f for f in profile.functions if f.memory and f.memory.at >= 0]
    if not known:
        return []
    function = max(known, key=lambda f: f.memory.peak)
    memory = function.memory
    apply = {a.position: a for a in function.applys}
    there = apply[memory.at]
    most = max(memory.timeline)
    found = [
        f"Memory at its peak: {readable(memory.peak)} while {function.name} ran "
        f"{short(there.text)} (id {there.position}{_line(there)})",
        "  with the scratch memory of Applys at most %s; live there: <bytes> <made by>"
        % readable(most),
    ]
    for live in memory.live[:_LIVE]:
        maker = apply.get(live.position)
        name = f"{short(maker.text)} (id {maker.position}{_line(maker)})" if maker else (
            "scratch of the Apply itself"
        )  # fmt: skip
        found.append("  %12d  %s" % (live.bytes, name))
    if len(memory.live) > _LIVE:
        rest = sum(live.bytes for live in memory.live[_LIVE:])
        found.append("  %12d  %d more" % (rest, len(memory.live) - _LIVE))
    return found


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


def short(name, most=120):
    """Return a name cut to what is read at a glance."""
    return name if len(name) <= most else f"{name[: most - 3]}..."
