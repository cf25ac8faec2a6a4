"""The text about a device: its times beside the host's, transfers, and what did not run there."""

from __future__ import annotations

from collections.abc import Iterable

from opwise.profiling.devices import why_transferred
from opwise.profiling.memory import readable
from opwise.profiling.model import ApplyProfile, FunctionProfile, ProfileData
from opwise.profiling.reports.wording import short

#: resolution of a device's clock in nanoseconds
RESOLUTION = 500


def section(profile: ProfileData, n: int) -> list[str]:
    """Return the lines about devices, with up to n Applys; [] if nothing ran on one."""
    applys = [a for a in profile.applys if a.device]
    if not applys:
        return []
    device, transfers = _sums(applys, False), _sums(applys, True)
    moved = sum((a.traffic or 0) // 2 * a.count for a in applys if a.transfer)
    lines = [
        "On the device: <seconds of the device> <of the host, launching> <of the host, waiting>",
        "  %10.6f  %10.6f  %10.6f  Applys" % device,
        "  %10.6f  %10.6f  %10.6f  transfers: %s%s"
        % (*transfers, readable(moved), _rate(moved, transfers[0])),
        *_graphs(profile),
    ]
    several = len(profile.functions) > 1
    rows = sorted(
        ((f, a) for f in profile.functions for a in f.applys if a.device and a.count),
        key=lambda row: (-row[1].total, row[1].position),
    )
    for f, a in rows[:n]:
        name = f"{f.name}: " if several else ""
        lines.append(
            "  %10.6f  %10.6f  %10.6f    %s%s%s"
            % (*_times(a), name, short(a.text, 100), _note(f, a))
        )  # fmt: skip
    return [*lines, *_on_host(profile, n)]


def _graphs(profile: ProfileData) -> list[str]:
    """Return a line about CUDA graphs, which launch Applys together in calls without a profile."""
    graphs = [(k, a.graph) for k, f in enumerate(profile.functions) for a in f.applys if a.graph]
    if not graphs:
        return []
    n = len(set(graphs))
    launches = "1 launch of a CUDA graph" if n == 1 else f"{n} launches of CUDA graphs"
    return [
        "  profiling launches Applys one by one; without profiling, "
        f"{len(graphs)} of them {'takes' if len(graphs) == 1 else 'take'} {launches}"
    ]


#: seconds of the device, of the host launching, of the host waiting
_Times = tuple[float, float, float]


def _sums(applys: Iterable[ApplyProfile], transfers: bool) -> _Times:
    those = [_times(a) for a in applys if a.transfer is transfers]
    device, launching, waiting = map(sum, zip(*those, strict=True)) if those else (0, 0, 0)
    return device, launching, waiting


def _times(a: ApplyProfile) -> _Times:
    return a.total * 1e-9, a.asked * 1e-9, a.waited * 1e-9


def _rate(count: int, seconds: float) -> str:
    return f", {count / seconds * 1e-9:.3g} GB/s" if seconds and count else ""


def _note(f: FunctionProfile, a: ApplyProfile) -> str:
    if a.shares and set(a.shares) == {"v"}:
        return " (a view)"
    why = why_transferred(f, a) if a.transfer else ""
    notes = [f"for {short(why, 200)}"] if why else []
    if a.total < RESOLUTION * a.count:
        notes[:0] = [f"below the resolution of the device's clock, {RESOLUTION} ns"]
    elif a.transfer and a.traffic:
        notes[:0] = [_rate(a.traffic // 2 * a.count, a.total * 1e-9).lstrip(", ")]
    return f" ({'; '.join(filter(None, notes))})" if any(notes) else ""


def _on_host(profile: ProfileData, n: int) -> list[str]:
    """Return which Applys ran on the host while others ran on a device, and why."""
    rows = [a for a in profile.applys if a.on_host and a.count]
    rows.sort(key=lambda a: -a.total)
    if not rows:
        return []
    return [
        "  Still on the host: <seconds> <Apply>: <why>",
        *("  %10.6f  %s: %s" % (a.total * 1e-9, short(a.text, 100), a.on_host) for a in rows[:n]),
    ]
