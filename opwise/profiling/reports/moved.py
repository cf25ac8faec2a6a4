"""The text of a program on the CPU and on a device: what each line, Op and Apply of it gained."""

from __future__ import annotations

from opwise.profiling import devices
from opwise.profiling.reports import details

_COLUMNS = "<CPU seconds> <GPU seconds> <transfer seconds> <seconds still on the CPU> <speed-up>"
#: what rows are about, by the name of the way to compare
_TITLES = {
    "line": "By line", "op": "By Op", "class": "By type of Op", "apply": "By Apply",
}  # fmt: skip
#: the ways to compare of which there is a table
WAYS = tuple(_TITLES)
_WHAT = {"apply": "line and Ops", "op": "Op", "class": "type"}
_GIVEN = "(arguments and shared variables)"
#: how many Ops are named that stay on the CPU for one reason
_OPS = 4


def section(mine, theirs, n):
    """Return the lines on a move between CPU and device, with up to n rows in each table.

    None, [], where both Profiles ran on the same. ``theirs`` is taken as it would be with as many
    calls as ``mine``.
    """
    told = sentences(mine, theirs)
    if not told:
        return []
    sources = {**theirs.sources, **mine.sources}
    lines = ["CPU and GPU", "-----------", *told]
    for by in WAYS:
        lines += ["", *_table(by, devices.rows(by, mine, theirs), n, sources)]
    return [
        *lines,
        "",
        "speed-up: CPU seconds by the sum of the three columns behind them; a transfer counts for "
        "what made the value that it moves",
    ]


def sentences(mine, theirs):
    """Return what a move between CPU and device gained altogether; [] where there was none."""
    found = devices.sides(mine, theirs)
    if found is None:
        return []
    cpu, there = found
    applys = [a for a in there.applys if a.count]
    before, after = cpu.local_ns, there.local_ns
    left = [a for a in applys if not a.device]
    parts = [
        ([a for a in applys if a.device and not a.transfer], "Apply", " on the GPU"),
        ([a for a in applys if a.transfer], "transfer", ""),
        (left, "Apply", " still on the CPU"),
    ]
    return [
        "%.6f s on the CPU, %.6f s with the GPU: %s"
        % (
            before * 1e-9, after * 1e-9,
            f"{before / after:.2f} times as fast" if after else "nothing was measured there",
        ),
        "  of these " + ", ".join(_told(those, what) + where for those, what, where in parts),
        *_reasons(left),
    ]  # fmt: skip


def _told(applys, what):
    """Return the seconds and the number of Applys."""
    seconds = sum(a.total for a in applys) * 1e-9
    return f"{seconds:.6f} s in {len(applys)} {what}{'' if len(applys) == 1 else 's'}"


def _reasons(left):
    """Return a line for each reason why Applys are left on the CPU, the longest first."""
    by_reason: dict[str, list] = {}
    for a in left:
        if a.on_host:
            by_reason.setdefault(a.on_host, []).append(a)
    lines = []
    for why, those in sorted(by_reason.items(), key=lambda one: -sum(a.total for a in one[1])):
        ops = list(dict.fromkeys(details.short(a.op, 40) for a in those))
        ops = ", ".join([*ops[:_OPS], *(["..."] if len(ops) > _OPS else [])])
        lines.append(f"  still on the CPU: {_told(those, 'Apply')} ({ops}): {why}")
    return lines


def _table(by, rows, n, sources):
    rows = [r for r in rows if r.cpu or r.moved]
    rows.sort(key=lambda r: (-max(r.cpu, r.moved), r.difference.position, r.label))
    why = ": <why still on the CPU>" if by == "apply" else ""
    rest = rows[n:]
    return [
        f"{_TITLES[by]}: {_COLUMNS} <{_WHAT.get(by, by)}>{why}",
        *(_line(r, _name(by, r, sources)) for r in rows[:n]),
        *(
            ["  ... (%d more: %.6f s on the CPU, %.6f s with the GPU)"
             % (len(rest), sum(r.cpu for r in rest) * 1e-9, sum(r.moved for r in rest) * 1e-9)]
            if rest else []
        ),
    ]  # fmt: skip


def _line(row, label):
    speedup = "%8.3gx" % row.speedup if row.speedup else "        -"
    seconds = (ns * 1e-9 for ns in (row.cpu, row.device, row.transfers, row.left))
    why = f": {'; '.join(row.why)}" if row.why else ""
    return "  %10.6f  %10.6f  %10.6f  %10.6f  %s  %s%s" % (*seconds, speedup, label, why)


def label(by, row):
    """Return what a row of ``devices.rows`` is about, without the line of an Apply."""
    if not row.about_given:
        return row.label
    if by == "apply":  # with what it moves
        return ", ".join(a.text for side in row.difference.parts for a in side if a.transfer)
    return _GIVEN if by == "line" else f"{row.label} {_GIVEN}"


def _name(by, row, sources):
    """Return the same with the line and its text."""
    found, name = row.difference, label(by, row)
    if by == "line":
        return f"{details.from_here(name)}  {sources.get(name, '')}".rstrip()
    if by != "apply":
        return name
    where = next((details.short_line(a) for side in found.parts for a in side if a.lines), "")
    return details.short(f"{where} {name}".strip())
