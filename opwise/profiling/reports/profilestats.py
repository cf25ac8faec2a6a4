"""The text of ProfileStats: what Theano 0.6 to 1.0 print of a function, section by section.

Programs parse this form: all its format strings are here. The sections that opwise adds follow the
tips.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence

from opwise.graph.costs import is_contiguous
from opwise.profiling import aggregate
from opwise.profiling.aggregate import SummaryRow
from opwise.profiling.memory import MemoryProfile, Peaks
from opwise.profiling.model import LOOP, ApplyProfile, ArrayProfile, FunctionProfile, ProfileData
from opwise.profiling.reports import details, rewrites, theanotips
from opwise.profiling.reports.wording import percent

_CLASS_HEADER = "<% time> <sum %> <apply time> <time per call> <type> <#call> <#apply> <Class name>"
_OP_HEADER = "<% time> <sum %> <apply time> <time per call> <type> <#call> <#apply> <Op name>"
_APPLY_HEADER = "<% time> <sum %> <apply time> <time per call> <#call> <id> <Apply name>"
_SCAN_HEADER = (
    "<Scan op time(s)> <sub scan fct time(s)> <sub scan op time(s)> <sub scan fct time(% scan op "
    "time)> <sub scan op time(% scan op time)> <node>"
)
_TIPS_HEADER = [
    "Here are tips to potentially make your code run faster",
    "                 (if you think of new ones, suggest them on the mailing list).",
    "                 Test them first, as they are not guaranteed to always provide a speedup.",
]
#: limit of the rows of the sections that opwise adds
_DETAILS = 10
_NO_TIMES = "  No execution time accumulated (hint: try config profiling.time_thunks=1)"


def summary(
    profile: ProfileData,
    n_ops: int = 20,
    n_apply: int = 20,
    line_width: int = 512,
    min_memory_size: int = 1024,
    marks_cuts: bool = False,
) -> str:
    """Return the text of a profile, which ends with a newline: Theano's form, then our sections.

    n_ops, n_apply: how many rows are shown of Ops and of Applys. line_width: where names are cut.
    min_memory_size: the section about memory shows Applys with outputs of at least so many bytes.
    marks_cuts: True to end rows that are cut in an ellipsis, which those of Theano do not have.
    """
    if marks_cuts:
        lines = classic(profile, n_ops, n_apply, sys.maxsize, min_memory_size)
        lines = [_marked(line, line_width) for line in lines]
    else:
        lines = classic(profile, n_ops, n_apply, line_width, min_memory_size)
    lines += details.sections(profile, min(n_apply, _DETAILS), line_width)
    return "\n".join(lines) + "\n"


#: a row of the tables of classes, Ops and Applys
_NAMED = re.compile(r" +[\d.]+% +[\d.]+% ")


def _marked(line: str, width: int) -> str:
    """Return a line; a row with a name that is longer than ``width`` ends in an ellipsis."""
    return f"{line[: width - 1]}…" if len(line) > width and _NAMED.match(line) else line


def classic(
    profile: ProfileData,
    n_ops: int = 20,
    n_apply: int = 20,
    line_width: int = 512,
    min_memory_size: int = 1024,
) -> list[str]:
    """Return the lines of Theano's form; the arguments are those of ``summary``."""
    lines = [*function_section(profile), *globals_section(profile)]
    if profile.local_ns > 0:
        lines += _applys(profile, n_ops, n_apply, line_width)
    elif any(f.calls for f in profile.functions):
        lines.append(_NO_TIMES)
    lines += memory_section(profile, n_apply, min_memory_size)
    lines += rewrites.section(profile)
    lines += scan_section(profile)
    return [*lines, *tips_section(profile)]


def _applys(profile: ProfileData, n_ops: int, n_apply: int, line_width: int) -> list[str]:
    return [
        *class_section(profile, n_ops, line_width),
        *op_section(profile, n_ops, line_width),
        *apply_section(profile, n_apply, line_width),
    ]


def scan_summary(
    profile: ProfileData,
    header: list[str],
    n_ops: int = 20,
    n_apply: int = 20,
    line_width: int = 512,
    min_memory_size: int = 1024,
) -> str:
    """Return the text of the profile of a loop's step; arguments are those of ``summary``.

    header: see ``scan_header``.
    """
    lines = header
    if profile.local_ns > 0:
        lines += _applys(profile, n_ops, n_apply, line_width)
    lines += memory_section(profile, n_apply, min_memory_size)
    lines += scan_section(profile)
    return "\n".join([*lines, *tips_section(profile)]) + "\n"


def scan_header(
    name: str | None, message: str | None, runs: int, steps: int, seconds: float, inside: float
) -> list[str]:
    """Return the lines about the runs of a loop; [] without any.

    seconds: time of all runs. inside: of that in the Applys of the step.
    """
    if not runs:
        return []
    share = percent(inside, seconds)
    return [
        "",
        f"Scan Op profiling ( {name} )" if name is not None else "Scan Op profiling",
        "==================",
        "  Message: %s" % (message or None),
        "  Time in %i calls of the op (for a total of %i steps) %es" % (runs, steps, seconds),
        "",
        "  Total time spent in calling the VM %es (%.3f%%)" % (inside, share),
        "  Total overhead (computing slices..) %es (%.3f%%)" % (seconds - inside, 100 - share),
        "",
    ]


_CALLS = ("calls", "failed", "call_ns")


def function_section(profile: ProfileData) -> list[str]:
    """Return the lines about calls and compilation."""
    functions = profile.functions
    calls, failed, call_ns = (sum(getattr(f, n) for f in functions) for n in _CALLS)
    fn_ns, thunk_ns = sum(f.fn_ns for f in functions), profile.local_ns
    lines = [
        "Function profiling",
        "==================",
        "  Message: %s" % (profile.message or None),
        "  Time in %i calls to Function.__call__: %es%s"
        % (calls, call_ns * 1e-9, f", {failed} of them failed" if failed else ""),
    ]
    if call_ns > 0:
        lines.append(
            "  Time in Function.fn.__call__: %es (%.3f%%)" % (fn_ns * 1e-9, 100 * fn_ns / call_ns)
        )
        if thunk_ns > 0:
            share = 100 * thunk_ns / call_ns
            lines.append("  Time in thunks: %es (%.3f%%)" % (thunk_ns * 1e-9, share))
    lines += _compile_lines(functions)
    return [*lines, ""]


def _compile_lines(functions: Sequence[FunctionProfile]) -> list[str]:
    def total(part: str) -> float:
        return float(sum(getattr(f.compile, part) for f in functions))

    slowest = sorted((s for f in functions for s in f.compile.slowest), key=lambda s: -s[1])[:5]
    return [
        "  Total compile time: %es" % total("total"),
        "    Number of Apply nodes: %d" % sum(len(f.own_applys) for f in functions),
        *(
            f"    {what} time: %es" % total(part)
            for what, part in (("Library rewriting", "library"), ("Translation", "translation"))
            if total(part)
        ),
        "    Theano Optimizer time: %es" % total("optimizer"),
        "       Theano validate time: %es" % total("validate"),
        "    Theano Linker time (includes C, CUDA code generation/compiling): %es"
        % total("linker"),
        "       Import time %es" % total("load"),
        "       Node make_thunk time %es" % total("thunks"),
        *("           Node %s time %es" % row for row in slowest),
    ]


def globals_section(profile: ProfileData) -> list[str]:
    """Return the lines about the process."""
    about = profile.environment
    return [
        "Time in all call to theano.grad() %es" % about.get("grad_seconds", 0.0),
        "Time since theano import %.3fs" % about.get("seconds_since_import", 0.0),
    ]


def class_section(profile: ProfileData, n: int, line_width: int = 512) -> list[str]:
    """Return the lines about classes of Ops."""
    rows = aggregate.by_class(profile)
    for row in rows:
        row.label = row.label.removeprefix("<class '").removesuffix("'>")
    return ["Class", "---", *_summed(rows, n, _CLASS_HEADER, " %4d  ", "Classes", line_width)]


def op_section(profile: ProfileData, n: int, line_width: int = 512) -> list[str]:
    """Return the lines about Ops."""
    rows = aggregate.by_op(profile)
    return ["Ops", "---", *_summed(rows, n, _OP_HEADER, "  %4d  ", "Ops", line_width)]


def _summed(
    rows: Iterable[SummaryRow], n: int, header: str, count_format: str, what: str, line_width: int
) -> list[str]:
    """Return the lines of Ops or classes, the largest first, and the sum of those not shown."""
    rows = list(rows)
    local = sum(r.ns for r in rows)
    rows = sorted(rows, key=lambda r: (r.ns, r.calls, r.applys), reverse=True)
    lines, cumulative = [header], 0.0
    for r in rows[:n]:
        cumulative += r.ns
        head = " ".join(
            [
                *_times(r.ns, r.calls, cumulative, local),
                "   %2s " % ("C " if r.c else "Py" if r.python else "C Py"),
                "%6d  " % r.calls,
                count_format % r.applys,
            ]
        )
        lines.append(f"{head} {_cut(r.label, header, line_width)}")
    rest = sum(r.ns for r in rows[n:])
    lines.append(
        "   ... (remaining %i %s account for %6.2f%%(%.2fs) of the runtime)"
        % (max(0, len(rows) - n), what, percent(rest, local), rest * 1e-9)
    )
    return [*lines, ""]


def apply_section(profile: ProfileData, n: int, line_width: int = 512) -> list[str]:
    """Return the lines about Applys; the number before a name is the position in its function."""
    local = profile.local_ns
    with_memory = any(f.memory for f in profile.functions)
    header = _APPLY_HEADER
    if with_memory:
        header = header.replace("<Apply name>", "<Mflops> <Gflops/s> <Apply name>")
    applys = sorted(profile.applys, key=lambda a: (a.total, a.position), reverse=True)
    lines, cumulative = [], 0
    for a in applys[:n]:
        cumulative += a.total
        head = " ".join(
            [
                *_times(a.total, a.count, cumulative, local),
                " %4d  " % a.count,
                "%3d" % a.position,
                *(_flops(a) if with_memory else ("", "")),
            ]
        )
        lines.append(f"{head} {_cut(a.title, header, line_width)}")
        if with_memory:
            lines += _arrays("input", a.input_arrays) + _arrays("output", a.output_arrays)
    rest = sum(a.total for a in applys[n:])
    return [
        "Apply",
        "------",
        header,
        *lines,
        "   ... (remaining %i Apply instances account for %.2f%%(%.2fs) of the runtime)"
        % (max(0, len(applys) - n), percent(rest, local), rest * 1e-9),
        "",
    ]


def scan_section(profile: ProfileData) -> list[str]:
    """Return the lines about the overhead of loops; [] without loops that ran."""
    loops = [a for a in profile.applys if a.kind == LOOP and a.whole]
    if not loops:
        return []
    lines = ["", "Scan overhead:", _SCAN_HEADER]
    in_c = {id(f.applys[a.inside]) for f in profile.functions for a in f.applys if a.estimated}
    recorded = [a for a in loops if a.inner and id(a) not in in_c]
    lines += [f"      {_overhead(a.whole, a.inner)} {a.title}" for a in recorded]
    lines += [
        f"  One scan runs as one C function; times of Applys inside are estimates: {a.title}"
        if id(a) in in_c
        else f"  The Applys inside one scan are not recorded: {a.title}"
        for a in loops
        if not a.inner or id(a) in in_c
    ]
    if recorded:
        outermost = [a for a in recorded if a.inside < 0]
        whole, inner = sum(a.whole for a in outermost), sum(a.inner for a in outermost)
        lines.append(f"total {_overhead(whole, inner)}")
    return [*lines, ""]


def _overhead(whole: float, inner: float) -> str:
    """Return the columns of a loop: its time, then that of its step and of the Applys in it.

    Our loops call no function between steps, so both of the latter are the same.
    """
    share = percent(inner, whole)
    return "%5.1fs  %5.1fs  %5.1fs  %5.1f%%  %5.1f%%" % (
        whole * 1e-9, inner * 1e-9, inner * 1e-9, share, share,
    )  # fmt: skip


def _flops(apply: ApplyProfile) -> tuple[str, str]:
    """Return the columns of millions of operations, and of billions a second."""
    if not apply.flops or not apply.total:
        return " " * 8, " " * 10
    seconds = apply.total * 1e-9 / apply.count
    return "%8.1f" % (apply.flops / 1e6), "%10.1f" % (apply.flops / seconds / 1e9)


def _arrays(what: str, arrays: Sequence[ArrayProfile | None]) -> list[str]:
    return [
        "    %s %d: dtype=%s, shape=%s, strides=%s"
        % (
            (what, i, "no dtype", "no shape", "no strides")
            if a is None
            else (what, i, a.dtype, a.shape, "c" if is_contiguous(a) else a.strides)
        )
        for i, a in enumerate(arrays)
    ]


# --- memory ---------------------------------------------------------------------------------------


_NO_MEMORY = Peaks(0, 0, 0, 0, 0)


def memory_section(profile: ProfileData, n: int = 20, min_memory_size: int = 1024) -> list[str]:
    """Return the lines about memory; [] if it was not measured."""
    memories = [f.memory for f in profile.functions if f.memory]
    if not memories:
        return []
    several = len(profile.functions) > 1
    return [
        "Memory Profile (the max between all functions in that profile)"
        if several
        else "Memory Profile",
        "(Sparse variables are ignored)",
        "(For values in brackets, it's for linker = c|py",
        "---",
        *_peaks(memories),
        "---",
        *_least_peak(memories),
        *_classic_memory(memories),
        *(["    This list is based on all functions in the profile"] if several else []),
        "",
        "    <Sum apply outputs (bytes)> <Apply outputs shape> <created/inplace/view> <Apply node>",
        "",
        *_memory_rows(profile, n, min_memory_size),
        "    <created/inplace/view> is taken from the Op's declaration.",
        "    Apply nodes marked 'inplace' or 'view' may actually allocate memory, this is not "
        "reported here. If you use DebugMode, warnings will be emitted in those cases.",
        "",
    ]


#: the figures of all memory, or of one of host and device
_Figures = MemoryProfile | Peaks
_Figure = Callable[[_Figures], int]


def _peaks(memories: Sequence[MemoryProfile]) -> list[str]:
    """Return the lines about the largest peaks of all functions."""
    setting = "Max peak memory with current setting"
    return [
        *_peak(memories, setting, lambda m: m.peak, lambda m: m.peak_toposort),
        *_peak(
            memories, f"{setting} and Theano flag optimizer_excluding=inplace",
            lambda m: m.copying, lambda m: m.copying_toposort,
        ),
        *_peak(
            memories, "Max peak memory if allow_gc=False (linker don't make a difference)",
            lambda m: m.total,
        ),
    ]  # fmt: skip


def _peak(
    memories: Sequence[MemoryProfile], title: str, value: _Figure, bracket: _Figure | None = None
) -> list[str]:
    """Return the lines about one figure, for the host, the device, and both together.

    bracket: the figure in brackets, if there is one.
    """

    def kilobytes(parts: Sequence[_Figures]) -> str:
        text = "%dKB" % _kb(max(map(value, parts)))
        return text if bracket is None else text + " (%dKB)" % _kb(max(map(bracket, parts)))

    return [
        f"    {title}",
        f"        CPU: {kilobytes([m.host or m for m in memories])}",
        f"        GPU: {kilobytes([m.device or _NO_MEMORY for m in memories])}",
        f"        CPU + GPU: {kilobytes(memories)}",
    ]


def _least_peak(memories: Sequence[MemoryProfile]) -> list[str]:
    """Return the lines about the lowest peak of any order; [] unless it was asked for."""
    known = [m for m in memories if m.least is not None]
    if not known:
        return []
    sure = "" if all(m.least_is_sure for m in known) else "at most "
    least = max(m.least or 0 for m in known)
    return [
        "    Minimum peak from all valid apply node order is %s%dKB(took %.3fs to compute)"
        % (sure, _kb(least), sum(m.least_seconds for m in known)),
        "---",
    ]


def _classic_memory(memories: Sequence[MemoryProfile]) -> list[str]:
    """Return the lines of older Theano releases: what sharing and freeing memory save.

    These are maxima over all functions; the memory saved is the difference of two of them.
    """
    apart, copying, total, vm, c_py = (
        max(getattr(m, name) for m in memories)
        for name in ("total_apart", "total_copying", "total", "peak", "peak_toposort")
    )
    return [
        "    %s: %dKB" % (title, _kb(size))
        for title, size in (
            ("Max if no gc, inplace and view", apart),
            ("Max if linker=cvm (default)", vm),
            ("Max if no gc (allow_gc=False)", total),
            ("Max if linker=c|py", c_py),
            ("Memory saved if views are used", apart - copying),
            ("Memory saved if inplace ops are used", copying - total),
            ("Memory saved if gc is enabled (linker=c|py)", total - c_py),
        )
    ]


def _memory_rows(profile: ProfileData, n: int, min_memory_size: int) -> list[str]:
    sized = [(sum(a.bytes for a in x.output_arrays if a), x) for x in profile.applys]
    sized.sort(key=lambda pair: -pair[0])
    shown = [pair for pair in sized[:n] if pair[0] >= min_memory_size]
    lines = [
        "     %9dB  %s %s %s"
        % (
            size,
            [a.shape if a else "No shape" for a in apply.output_arrays],
            " ".join(apply.shares),
            apply.title,
        )
        for size, apply in shown
    ]
    rest, total = sum(size for size, _ in sized[len(shown) :]), sum(size for size, _ in sized)
    share = "(%.2f%%)" % percent(rest, total) if total else "0%"
    lines.append(
        "   ... (remaining %i Apply account for %4dB/%dB (%s) of the Apply with dense outputs "
        "sizes)" % (len(sized) - len(shown), rest, total, share)
    )
    lines.append("")
    if not shown:
        lines.append(
            f"    All Apply nodes have output sizes that take less than {min_memory_size}B."
        )
    return lines


def _kb(count: float) -> int:
    return round(count / 1024)


# --- columns --------------------------------------------------------------------------------------


def _times(ns: float, calls: int, cumulative: float, local: float) -> list[str]:
    return [
        "  %4.1f%% " % percent(ns, local),
        " %5.1f%% " % percent(cumulative, local),
        "   %7.3fs " % (ns * 1e-9),
        "     %8.2es " % (ns * 1e-9 / calls if calls else 0.0),
    ]


def _cut(name: str, header: str, line_width: int) -> str:
    """Return a name cut at the width of a line; it starts at the last column of the header."""
    return name[: max(line_width - header.rindex("<"), 0)]


def tips_section(profile: ProfileData) -> list[str]:
    """Return the lines with tips."""
    found = [f"  - {tip}" for tip in theanotips.tips(profile)]
    return [*_TIPS_HEADER, *(found or ["  Sorry, no tip for today."])]
