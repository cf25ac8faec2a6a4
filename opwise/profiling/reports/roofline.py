"""The text of a profile against the limits of the hardware: what each Apply could gain, and why."""

from __future__ import annotations

from collections.abc import Iterator

from opwise.profiling import machinelimits, roofline
from opwise.profiling.machinelimits import MachineLimits
from opwise.profiling.memory import readable
from opwise.profiling.model import ProfileData
from opwise.profiling.reports.wording import counted, percent
from opwise.profiling.roofline import RooflineRow

_HEADER = (
    "<gain> <apply time> <#call> <GB/s> <from> <GFLOP/s> <share of limit> <bound by> <id> "
    "<Apply name>"
)
_LEGEND = (
    "  <GB/s>: bytes that must be read and written, divided by the time; <from>: the nearest",
    "  memory that holds them; <share of limit>: the least time that this hardware needs, divided",
    "  by the time taken; <bound by>: what sets that limit; <gain>: the time beyond it",
)


def section(
    profile: ProfileData, machine: MachineLimits | None, n: int = 20, line_width: int = 512
) -> list[str]:
    """Return the lines about what Applys take beyond the least time that the hardware needs.

    machine: the limits of the host, or None. n: how many Applys are shown, those with most to gain
    first. line_width: where names are cut.
    """
    found = roofline.rows(profile, machine)
    return [
        "Limits",
        "------",
        *(machine_lines(machine) if machine is not None else []),
        *(line for name, one in profile.devices for line in device_lines(name, one)),
        "",
        *_LEGEND,
        _HEADER,
        *(_line(row)[:line_width] for row in found[:n]),
        *_sums(found, n),
        "",
    ]


def machine_lines(machine: MachineLimits) -> list[str]:
    """Return the lines about the peak rates of a processor."""
    processors, threads = counted(machine.processors, "processor"), machine.threads
    lines = [
        "  Hardware: %s, %s, %s, vectors: %s"
        % (machine.processor, processors, counted(threads, "thread"), machine.vectors),
        *_bandwidths(machine),
    ]
    for peak in machine.peaks:
        what = "products" if peak.fused else "loops"
        lines.append(
            "  Peak of %s, %s: %.1f GFLOP/s%s"
            % (peak.dtype, what, peak.one, _with_all(peak.all, threads))
        )
    lines.append("  Overhead of one Apply (an empty step): %.0f ns" % machine.step_ns)
    if machine.quiet < machinelimits.QUIET:
        lines.append(
            "  Other programs ran during the measurement, so it got only %.0f%% of the processors: "
            "limits may be too low" % (100 * machine.quiet)
        )
    return lines


def _bandwidths(machine: MachineLimits) -> Iterator[str]:
    """Yield a line for main memory, then for each cache, the nearest first."""
    threads = machine.threads
    together = _with_all(machine.all[-1][1], threads)
    yield "  From main memory (RAM): %.1f GB/s%s" % (machine.one[-1][1], together)
    for level, size in enumerate(machine.caches, 1):
        fits = size // 2
        at_once = machine.bandwidth(fits, threads) if fits >= machine.all[0][0] else None
        yield (
            "  From the L%d cache, %s: %.1f GB/s%s"
            % (level, readable(size), machine.bandwidth(fits), _with_all(at_once, threads))
        )


def device_lines(name: str, machine: MachineLimits) -> list[str]:
    """Return the lines about the peak rates of a device."""
    return [
        "  Device %s: %s, %s"
        % (name, machine.processor, counted(machine.processors, "multiprocessor")),
        "  Memory bandwidth (copy on the device): %.1f GB/s" % machine.one[-1][1],
        *(
            "  Peak of %s, products: %.1f GFLOP/s" % (peak.dtype, peak.one)
            for peak in machine.peaks
        ),
        "  Overhead of one kernel (a copy of one element): %.0f ns" % machine.step_ns,
    ]


def _with_all(rate: float | None, threads: int) -> str:
    """Return the suffix with the rate of all threads together, "" if there is only one."""
    return "" if rate is None or threads <= 1 else ", all threads %.1f" % rate


def _line(row: RooflineRow) -> str:
    return " ".join(
        [
            _cell("%10.6fs", row.gain),
            "%10.6fs" % row.total,
            "%7d" % row.calls,
            _cell("%7.1f", row.bandwidth),
            "%6s" % (row.level or "-"),
            _cell("%8.1f", row.rate),
            _cell(
                "%6.1f%%" if not row.approximate else "~%5.1f%%",
                None if row.share is None else 100 * row.share,
            ),
            "%10s" % (row.bound or "-"),
            "%4d" % row.position,
            "  " + row.text,
        ]
    )


def _cell(form: str, value: float | None) -> str:
    """Return a column, a dash for None."""
    return form % value if value is not None else "-".rjust(len(form % 0.0))


def _sums(found: list[RooflineRow], n: int) -> list[str]:
    rest = found[n:]
    total, unknown = sum(r.total for r in found), [r for r in found if r.gain is None]
    gain = sum(r.gain for r in found if r.gain is not None)
    without = sum(r.total for r in unknown)
    lines = [
        "   ... (remaining %i Apply instances account for %.2f%%(%.2fs) of the runtime)"
        % (len(rest), percent(sum(r.total for r in rest), total), sum(r.total for r in rest)),
    ]
    if gain:
        lines.append(
            "  At the limit of the hardware, %s of %s would be saved (%.1f%%)"
            % (_short(gain), _short(total), percent(gain, total))
        )
    if unknown:
        have = "has" if len(unknown) == 1 else "have"
        lines.append(
            "  %s %s no count of bytes or operations: %s (%.1f%%)"
            % (counted(len(unknown), "Apply"), have, _short(without), percent(without, total))
        )
    if any(r.approximate for r in found):
        lines.append("  ~: by rough costs of functions such as exp")
    return lines


def _short(seconds: float) -> str:
    """Return a time with a unit in which it is not zero."""
    if seconds >= 0.01:
        return f"{seconds:.3f}s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 0.001 else f"{seconds * 1e6:.3g} µs"
