"""The text of a profile against the machine's limit: what each Apply could gain, and why."""

from __future__ import annotations

from opwise.profiling import roofline

_HEADER = (
    "<gain> <apply time> <#call> <GB/s> <from> <GFLOP/s> <share of limit> <bound by> <id> "
    "<Apply name>"
)
_LEGEND = (
    "  <GB/s>: bytes that must be read and written, by the time; <from>: the nearest memory that",
    "  holds them; <share of limit>: the least time that this hardware needs, by the time taken;",
    "  <bound by>: what sets that limit; <gain>: the time beyond it",
)


def section(profile, machine, n=20, line_width=512):
    """Return the lines about what Applys take beyond what a machine needs for them.

    machine: a ``roofline.Machine``, or None. n: how many Applys are shown, those with most to gain
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


def machine_lines(machine):
    """Return the lines that tell what a machine can do at best."""
    _, memory = machine.one[-1]
    threads = machine.threads
    lines = [
        "  Machine: %s, %s, %s, vectors: %s"
        % (
            machine.processor,
            _counted(machine.processors, "processor"),
            _counted(threads, "thread"),
            machine.vectors,
        ),
        "  From main memory (RAM): %.1f GB/s%s" % (memory, _with_all(machine.all[-1][1], threads)),
    ]
    for level, size in enumerate(machine.caches, 1):
        fits = size // 2
        at_once = machine.bandwidth(fits, threads) if fits >= machine.all[0][0] else None
        lines.append(
            "  From the L%d cache, %dKB: %.1f GB/s%s"
            % (level, size >> 10, machine.bandwidth(fits), _with_all(at_once, threads))
        )
    for peak in machine.peaks:
        lines.append(
            "  Peak of %s, %s: %.1f GFLOP/s%s"
            % (
                peak.dtype,
                "products" if peak.fused else "loops",
                peak.one,
                _with_all(peak.all, threads),
            )
        )
    lines.append("  A step that does nothing: %.0f ns" % machine.step_ns)
    if machine.quiet < roofline.QUIET:
        lines.append(
            "  Other programs were at work when this was measured, which got %.0f%% of the "
            "processors: limits may be too low" % (100 * machine.quiet)
        )
    return lines


def device_lines(name, machine):
    """Return the lines that tell what a device can do at best."""
    return [
        "  Device %s: %s, %s"
        % (name, machine.processor, _counted(machine.processors, "multiprocessor")),
        "  Copies in its memory: %.1f GB/s" % machine.one[-1][1],
        *(
            "  Peak of %s, products: %.1f GFLOP/s" % (peak.dtype, peak.one)
            for peak in machine.peaks
        ),
        "  A copy of one number: %.0f ns" % machine.step_ns,
    ]


def _counted(count, what):
    return f"{count} {what}{'s' if count != 1 else ''}"


def _with_all(rate, threads):
    """Return what to add where all threads together were measured too."""
    return "" if rate is None or threads <= 1 else ", all threads %.1f" % rate


def _line(row):
    return " ".join(
        [
            _cell("%10.6fs", row.gain),
            "%10.6fs" % row.total,
            "%7d" % row.calls,
            _cell("%7.1f", row.bandwidth),
            "%6s" % (row.level or "-"),
            _cell("%8.1f", row.rate),
            _cell("%6.1f%%", None if row.share is None else 100 * row.share),
            "%10s" % (row.bound or "-"),
            "%4d" % row.position,
            "  " + row.text,
        ]
    )


def _cell(form, value):
    """Return a column, with a dash in the place of what is not known."""
    return form % value if value is not None else "-".rjust(len(form % 0.0))


def _sums(found, n):
    rest = found[n:]
    total, unknown = sum(r.total for r in found), [r for r in found if r.gain is None]
    gain = sum(r.gain for r in found if r.gain is not None)
    without = sum(r.total for r in unknown)
    return [
        "   ... (remaining %i Apply instances account for %.2f%%(%.2fs) of the runtime)"
        % (len(rest), _percent(sum(r.total for r in rest), total), sum(r.total for r in rest)),
        "  At the machine's limit %.3fs of %.3fs would be gained (%.1f%%)"
        % (gain, total, _percent(gain, total)),
        "  %i Apply instances have no exact count of bytes or operations: %.3fs (%.1f%%)"
        % (len(unknown), without, _percent(without, total)),
    ]


def _percent(part, whole):
    return 100 * part / whole if whole else 0.0
