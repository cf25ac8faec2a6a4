"""The text of a program on the CPU and with a device: what each line, Op and Apply gained."""

from __future__ import annotations

from collections.abc import Sequence

from opwise.profiling import devices
from opwise.profiling.devices import DeviceDifference
from opwise.profiling.model import ApplyProfile, ProfileData
from opwise.profiling.reports.wording import counted, line_of, short, short_path

_COLUMNS = "<CPU seconds> <GPU seconds> <transfer seconds> <seconds still on the CPU> <speed-up>"
#: titles of the tables, by what their rows are about
_TITLES = {
    "line": "By line", "op": "By Op", "class": "By type of Op", "apply": "By Apply",
}  # fmt: skip
#: the names in ``devices.GROUPINGS`` of which there is a table
GROUPINGS = tuple(_TITLES)
_WHAT = {"apply": "line and Ops", "op": "Op", "class": "type"}
_GIVEN = "(arguments and shared variables)"
#: how many Ops are named that stay on the CPU for the same reason
_OPS = 4


def section(mine: ProfileData, theirs: ProfileData, n: int) -> list[str]:
    """Return the lines about a move between CPU and device, with up to n rows in each table.

    [] if both or none used a device. ``theirs`` is scaled to as many calls as ``mine``.
    """
    summary = sentences(mine, theirs)
    if not summary:
        return []
    sources = {**theirs.sources, **mine.sources}
    lines = ["CPU and GPU", "-----------", *summary]
    for by in GROUPINGS:
        lines += ["", *_table(by, devices.rows(by, mine, theirs), n, sources)]
    return [
        *lines,
        "",
        "speed-up: CPU seconds divided by the sum of the next three columns; a transfer counts for "
        "the Apply that computed the value",
    ]


def sentences(mine: ProfileData, theirs: ProfileData) -> list[str]:
    """Return what a move between CPU and device gained in total; [] if there was none."""
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
        "  of these " + ", ".join(_total(those, what) + where for those, what, where in parts),
        *_reasons(left),
    ]  # fmt: skip


def _total(applys: Sequence[ApplyProfile], what: str) -> str:
    """Return the seconds and the number of Applys."""
    return f"{sum(a.total for a in applys) * 1e-9:.6f} s in {counted(len(applys), what)}"


def _reasons(left: Sequence[ApplyProfile]) -> list[str]:
    """Return a line for each reason why Applys stay on the CPU, the longest time first."""
    by_reason: dict[str, list[ApplyProfile]] = {}
    for a in left:
        if a.on_host:
            by_reason.setdefault(a.on_host, []).append(a)
    lines = []
    for why, those in sorted(by_reason.items(), key=lambda one: -sum(a.total for a in one[1])):
        ops = list(dict.fromkeys(short(a.op, 40) for a in those))
        named = ", ".join([*ops[:_OPS], *(["..."] if len(ops) > _OPS else [])])
        lines.append(f"  still on the CPU: {_total(those, 'Apply')} ({named}): {why}")
    return lines


def _table(by: str, rows: Sequence[DeviceDifference], n: int, sources: dict[str, str]) -> list[str]:
    rows = [r for r in rows if r.cpu or r.with_device]
    rows.sort(key=lambda r: (-max(r.cpu, r.with_device), r.difference.position, r.label))
    why = ": <why still on the CPU>" if by == "apply" else ""
    lines = [
        f"{_TITLES[by]}: {_COLUMNS} <{_WHAT.get(by, by)}>{why}",
        *(_line(r, _name(by, r, sources)) for r in rows[:n]),
    ]
    if rest := rows[n:]:
        cpu, with_device = sum(r.cpu for r in rest), sum(r.with_device for r in rest)
        lines.append(
            "  ... (%d more: %.6f s on the CPU, %.6f s with the GPU)"
            % (len(rest), cpu * 1e-9, with_device * 1e-9)
        )
    return lines


def _line(row: DeviceDifference, label: str) -> str:
    speedup = "%8.3gx" % row.speedup if row.speedup else "        -"
    times = (row.cpu, row.device, row.transfers, row.left)
    seconds = "  ".join("%10.6f" % (ns * 1e-9) for ns in times)
    why = f": {'; '.join(row.why)}" if row.why else ""
    return f"  {seconds}  {speedup}  {label}{why}"


def label(by: str, row: DeviceDifference) -> str:
    """Return what a row of ``devices.rows`` is about, without the line of an Apply."""
    if not row.about_given:
        return row.label
    if by == "apply":  # the text of a transfer names the value
        return ", ".join(a.text for side in row.difference.parts for a in side if a.transfer)
    return _GIVEN if by == "line" else f"{row.label} {_GIVEN}"


def _name(by: str, row: DeviceDifference, sources: dict[str, str]) -> str:
    """Return ``label`` with the line and its text."""
    found, name = row.difference, label(by, row)
    if by == "line":
        return f"{short_path(name)}  {sources.get(name, '')}".rstrip()
    if by != "apply":
        return name
    where = next((line_of(a) for side in found.parts for a in side if a.lines), "")
    return short(f"{where} {name}".strip())
