"""What a device did: its times beside the host's, transfers, and what did not run there."""

from __future__ import annotations

from opwise.profiling.memory import readable

#: nanoseconds that a device's clock can tell apart
RESOLUTION = 500


def section(profile, n):
    """Return the lines on devices, with up to n Applys; none where nothing ran on one."""
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
            % (*_times(a), name, _cut(a.text), _note(a))
        )  # fmt: skip
    return [*lines, *_on_host(profile, n)]


def _graphs(profile):
    """Return what happens to launches where nothing is profiled."""
    graphs = [(k, a.graph) for k, f in enumerate(profile.functions) for a in f.applys if a.graph]
    if not graphs:
        return []
    n = len(set(graphs))
    launches = "1 launch of a CUDA graph" if n == 1 else f"{n} launches of CUDA graphs"
    return [
        "  To be timed, Applys are launched one by one; without a profile "
        f"{len(graphs)} of them {'is' if len(graphs) == 1 else 'are'} {launches}"
    ]


def _sums(applys, transfers):
    those = [_times(a) for a in applys if a.transfer is transfers]
    return tuple(map(sum, zip(*those, strict=True))) or (0, 0, 0)


def _times(a):
    return a.total * 1e-9, a.asked * 1e-9, a.waited * 1e-9


def _rate(count, seconds):
    return f", {count / seconds * 1e-9:.3g} GB/s" if seconds and count else ""


def _note(a):
    if a.shares and set(a.shares) == {"v"}:
        return " (a view)"
    if a.total < RESOLUTION * a.count:
        return f" (shorter than the device's clock can tell, {RESOLUTION} ns)"
    if a.transfer and a.traffic:
        return f" ({_rate(a.traffic // 2 * a.count, a.total * 1e-9).lstrip(', ')})"
    return ""


def _on_host(profile, n):
    """Return what stayed on the host beside a device, and why."""
    rows = [a for a in profile.applys if a.on_host and a.count]
    rows.sort(key=lambda a: -a.total)
    if not rows:
        return []
    return [
        "  Still on the host: <seconds> <Apply>: <why>",
        *("  %10.6f  %s: %s" % (a.total * 1e-9, _cut(a.text), a.on_host) for a in rows[:n]),
    ]


def _cut(text, most=100):
    return text if len(text) <= most else f"{text[: most - 3]}..."
