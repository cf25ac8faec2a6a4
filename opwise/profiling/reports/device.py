"""What a device did: its times beside the host's, transfers, and what did not run there."""

from __future__ import annotations

from opwise.profiling import devices
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
        "On the device: <seconds of the device> <of the host, asking> <of the host, waiting>",
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
    return [
        f"  Timed one by one. Without a profile {len(graphs)} of these Applys are CUDA graphs: {n} "
        f"{'launch' if n == 1 else 'launches'}."
    ]


def _sums(applys, transfers):
    those = [_times(a) for a in applys if a.transfer is transfers]
    return tuple(map(sum, zip(*those, strict=True))) or (0, 0, 0)


def _times(a):
    return a.total * 1e-9, a.asked * 1e-9, a.waited * 1e-9


def _rate(count, seconds):
    return f", {count / seconds * 1e-9:.1f} GB/s" if seconds and count else ""


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


def moved(mine, theirs):
    """Return the sentences on a move between host and device; none where both ran on the same.

    The second Profile is taken as it would be with as many calls as the first.
    """
    sides = devices.sides(mine, theirs)
    if sides is None:
        return []
    host, there = sides
    crossing = [a for a in there.applys if a.transfer]
    computing = [a for a in there.applys if a.device and not a.transfer]
    left = [a for a in there.applys if a.on_host and a.count]
    before, after = host.local_ns, there.local_ns
    words = "%.6f s on the host, %.6f s with the device: %s" % (
        before * 1e-9, after * 1e-9,
        f"{before / after:.2f} times as fast" if after else "nothing was measured there",
    )  # fmt: skip
    lines = [
        words,
        "  of these %.6f s in %d Applys on the device, %.6f s in %d transfers, %.6f s in %d Applys "
        "still on the host"
        % (
            sum(a.total for a in computing) * 1e-9, len(computing),
            sum(a.total for a in crossing) * 1e-9, len(crossing),
            sum(a.total for a in left) * 1e-9, len(left),
        ),
    ]  # fmt: skip
    reasons: dict[str, list] = {}
    for a in left:
        reasons.setdefault(a.on_host, []).append(a)
    for why, those in sorted(reasons.items(), key=lambda one: -sum(a.total for a in one[1])):
        ops = ", ".join(dict.fromkeys(_cut(a.op, 40) for a in those[:4]))
        lines.append(
            "  %.6f s of %d on the host (%s): %s"
            % (sum(a.total for a in those) * 1e-9, len(those), ops, why)
        )
    return lines


def _cut(text, most=100):
    return text if len(text) <= most else f"{text[: most - 3]}..."
