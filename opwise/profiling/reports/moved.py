"""The text of a program on the CPU and on a device: what each line, Op and Apply of it gained."""

from __future__ import annotations

from opwise.profiling import devices
from opwise.profiling.reports import details, device

_COLUMNS = "<CPU seconds> <GPU seconds> <transfer seconds> <seconds still on the CPU> <speed-up>"
#: what rows are about, by the name of the way to compare
_TITLES = {
    "line": "By line", "op": "By Op", "class": "By type of Op", "apply": "By Apply",
}  # fmt: skip
#: the ways to compare of which there is a table
WAYS = tuple(_TITLES)
_WHAT = {"apply": "line and Ops", "op": "Op", "class": "type"}
_GIVEN = "(arguments and shared variables)"


def section(mine, theirs, n):
    """Return the lines on a move between CPU and device, with up to n rows in each table.

    None where both profiles ran on the same. The second Profile is taken as it would be with as
    many calls as the first.
    """
    sentences = device.moved(mine, theirs)
    if not sentences:
        return []
    sources = {**theirs.sources, **mine.sources}
    lines = ["CPU and GPU", "-----------", *sentences]
    for by in WAYS:
        lines += ["", *_table(by, devices.rows(by, mine, theirs), n, sources)]
    return [
        *lines,
        "",
        "speed-up: CPU seconds by those of GPU, transfers and still on the CPU together; "
        "a transfer counts for what made the value that it moves",
    ]


def _table(by, rows, n, sources):
    rows = [r for r in rows if r.cpu or r.moved]
    rows.sort(key=lambda r: (-max(r.cpu, r.moved), r.difference.position, r.difference.label))
    why = ": <why still on the CPU>" if by == "apply" else ""
    rest = rows[n:]
    return [
        f"{_TITLES[by]}: {_COLUMNS} <{_WHAT.get(by, by)}>{why}",
        *(_line(r, _name(by, r, sources)) for r in rows[:n]),
        *(
            ["  ... (%d more: %.6f s on the CPU, %.6f s with the device)"
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
        return row.difference.label
    return _GIVEN if by == "line" else f"{row.difference.label} {_GIVEN}"


def _name(by, row, sources):
    """Return the same with the line and its text."""
    found, name = row.difference, label(by, row)
    if by == "line":
        return f"{details.from_here(name)}  {sources.get(name, '')}".rstrip()
    if by != "apply":
        return name
    where = next((details.short_line(a) for side in found.parts for a in side if a.lines), "")
    return details.short(f"{where} {name}".strip())
