"""Plots: the largest Applys of a profile as bars, beside live memory; or a difference of two.

Uses matplotlib's Figure, never its global state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opwise.profiling import compare
from opwise.profiling.compare import Difference
from opwise.profiling.model import FunctionProfile, ProfileData
from opwise.profiling.reports.wording import counted
from opwise.profiling.validation import check_counts

#: a matplotlib Figure, and its Axes
Figure = Any
Axes = Any
#: name, nanoseconds, colour, text
Bar = tuple[str, float, str, str]

#: colours of bars: in C, in Python; slower, faster
_C, _PYTHON, _MORE, _LESS = "#3b75af", "#d98032", "#c44e52", "#55a868"
#: colour of texts, and of the bar of all that is not shown
_INK, _REST = "#333333", "#999999"
#: characters of a name
_NAME = 38
#: width of the texts beside the longest bars, as a share of the bars' width
_ROOM = 0.6
#: number of bars that a Figure has room for at least
_FEWEST = 4
#: height of a bar in inches
_BAR = 0.3
#: number of curves of memory at most
_CURVES = 5


def plot(profile: ProfileData, path: str | Path | None = None, n: int = 15) -> Figure:
    """Return a Figure of where the time of a profile went, and save it to a path if given.

    Shows the n largest Applys as bars and the others as one; beside them the live memory, Apply by
    Apply, of each function that has it recorded. Raises ValueError unless n is a whole number from
    1, and ImportError without matplotlib.
    """
    check_counts(n=n)
    remembered = [f for f in profile.functions if f.memory is not None and f.memory.timeline]
    bars = _largest(profile, n)
    ratios = (3, 2) if remembered else (1,)
    figure = _figure(len(bars), 12.5 if remembered else 8)
    ((times, *memory),) = figure.subplots(1, len(ratios), squeeze=False, width_ratios=ratios)
    _draw_applys(times, profile, bars)
    for ax in memory:
        _draw_memory(ax, remembered)
    return _saved(figure, path)


def plot_difference(
    mine: ProfileData, theirs: ProfileData, path: str | Path | None = None, n: int = 15
) -> Figure:
    """Return a Figure of the difference of two profiles, mine minus theirs; save it likewise.

    Shows the n largest differences of matched Applys as bars, to the right if mine takes longer.
    Raises as ``plot``.
    """
    check_counts(n=n)
    rows = sorted(compare.by_apply(mine, theirs), key=lambda r: -abs(r.ns))
    figure = _figure(min(n, len(rows)) + (len(rows) > n), 10)
    _draw_differences(figure.subplots(), mine, theirs, rows, n)
    return _saved(figure, path)


def _figure(bars: int, width: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed: pip install matplotlib"
        ) from error
    height = 1.6 + _BAR * max(bars, _FEWEST)
    return Figure(figsize=(width, height), layout="constrained")


def _saved(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


# --- the parts of a figure ------------------------------------------------------------------------


def _largest(profile: ProfileData, n: int) -> list[tuple[str, int, str]]:
    """Return (name, nanoseconds, colour) of the largest Applys, and of the rest together."""
    several = len(profile.functions) > 1
    rows = [
        (f"{f.name}: {a.position} {a.name}" if several else f"{a.position} {a.name}", a.total,
         _C if a.c else _PYTHON)
        for f in profile.functions for a in f.applys
    ]  # fmt: skip
    rows.sort(key=lambda row: -row[1])
    rest = rows[n:]
    if rest:
        rows[n:] = [(f"{len(rest)} more", sum(ns for _, ns, _ in rest), _REST)]
    return rows


def _draw_applys(ax: Axes, profile: ProfileData, bars: list[tuple[str, int, str]]) -> None:
    local = profile.local_ns
    _draw_bars(
        ax,
        [(name, ns, color, f"{_time(ns)}  {100 * ns / local if local else 0:.1f} %")
         for name, ns, color in bars],
    )  # fmt: skip
    calls = sum(f.calls for f in profile.functions)
    _title(ax, f"{_time(local)} in the Applys of {counted(calls, 'call')}")
    _legend(ax, [("C", _C), ("Python", _PYTHON)])


def _draw_differences(
    ax: Axes, mine: ProfileData, theirs: ProfileData, rows: list[Difference], n: int
) -> None:
    rest = rows[n:]
    bars: list[Bar] = [
        (f"{r.position} {r.label}", r.ns, _MORE if r.ns > 0 else _LESS, _change(r))
        for r in rows[:n]
    ]
    if rest:
        ns = sum(r.ns for r in rest)
        bars.append((f"{len(rest)} more", ns, _REST, _time(ns, "+")))
    _draw_bars(ax, bars)
    ax.axvline(0, color=_INK, linewidth=0.8)
    total = mine.local_ns - theirs.local_ns
    sides = f"self {_time(mine.local_ns)} - other {_time(theirs.local_ns)}"
    _title(ax, f"{sides} = {_time(total, '+')}   (x: other / self)")
    _legend(ax, [("self takes longer", _MORE), ("other takes longer", _LESS)])


def _change(row: Difference) -> str:
    if row.mine is None or row.theirs is None:
        return f"{_time(row.ns, '+')}  only in {row.only}"
    if not row.mine.ns:
        return _time(row.ns, "+")
    return f"{_time(row.ns, '+')}  x{row.theirs.ns / row.mine.ns:.3g}"


def _draw_bars(ax: Axes, bars: Sequence[Bar]) -> None:
    """Draw bars from the top, with the text of each at its end."""
    size, unit = _unit(max((abs(ns) for _, ns, _, _ in bars), default=0))
    values = [ns / size for _, ns, _, _ in bars]
    ax.barh(range(len(bars)), values, color=[color for _, _, color, _ in bars], height=0.75)
    ax.set_yticks(range(len(bars)), [_cut(name) for name, *_ in bars])
    least, most = min([0, *values]), max([0, *values])
    width = (most - least) or 1
    for k, (value, (*_, text)) in enumerate(zip(values, bars, strict=True)):
        right = value >= 0
        ax.text(value + (0.01 if right else -0.01) * width, k, text, color=_INK, fontsize=8,
                va="center", ha="left" if right else "right")  # fmt: skip
    room = _ROOM * width
    ax.set_xlim(least - room * (least < 0), most + room * (most > 0 or not least))
    ax.set_ylim(max(len(bars), _FEWEST) - 0.4, -0.6)
    ax.set_xlabel(unit)
    _plain(ax)
    _literal(ax.get_yticklabels())


def _draw_memory(ax: Axes, functions: list[FunctionProfile]) -> None:
    """Draw the live memory while each Apply runs, of the functions that need most."""
    curves = [(f.name, f.memory.timeline) for f in functions if f.memory is not None]
    curves = sorted(curves, key=lambda curve: -max(curve[1]))[:_CURVES]
    is_single = len(curves) == 1
    for name, timeline in curves:
        megabytes = [size / 1e6 for size in timeline]
        label = _cut(f"{name}: at most {max(megabytes):.3g} MB")
        ax.stairs(megabytes, fill=is_single, alpha=0.6 if is_single else 1, label=label, baseline=0)
    # room for the legend
    ax.set_ylim(0, (max(curves[0][1]) / 1e6 or 1) * (1.1 + 0.08 * len(curves)))
    ax.margins(x=0)
    ax.set_xlabel("Apply, by position")
    ax.set_ylabel("live memory, MB")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _title(ax, "memory in a call")
    _plain(ax)
    _literal(ax.legend(frameon=False, fontsize=8, loc="upper right").get_texts())


def _literal(texts: Iterable[Any]) -> None:
    """Show a $ in a name as a $, not as the start of a formula."""
    for text in texts:
        text.set_parse_math(False)


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8, colors=_INK)
    ax.xaxis.label.set_fontsize(8)
    ax.yaxis.label.set_fontsize(8)


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=9, loc="left", color=_INK)


def _legend(ax: Axes, entries: list[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    ax.legend(handles=[Patch(color=color, label=label) for label, color in entries],
              frameon=False, fontsize=8, loc="lower right")  # fmt: skip


# --- texts ----------------------------------------------------------------------------------------


def _cut(name: str) -> str:
    """Return a name, without its middle if it is long: both ends tell Ops apart."""
    name = name.encode("utf-8", "replace").decode("utf-8")
    if len(name) <= _NAME:
        return name
    tail = _NAME // 3
    return f"{name[: _NAME - tail - 1]}…{name[-tail:]}"


def _time(ns: float, sign: str = "-") -> str:
    """Return nanoseconds with three digits in the unit that fits; sign '+' shows a plus too."""
    size, unit = _unit(ns)
    return f"{ns / size:{sign}.3g} {unit}"


def _unit(ns: float) -> tuple[float, str]:
    """Return (nanoseconds in it, name) of the largest unit that is not too large."""
    units = (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")
    return next((unit for unit in units if abs(ns) >= unit[0]), units[-1])
