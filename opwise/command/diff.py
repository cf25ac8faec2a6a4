"""The subcommand ``diff``, and what it shares with ``versus``: how differences are shown."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opwise.command import files, tables
from opwise.command.groups import SHAPES
from opwise.profiling import compare, environments, jsonreports, markdown, noise
from opwise.profiling.files import printable
from opwise.profiling.html import page
from opwise.profiling.merge import merge
from opwise.profiling.reports import speedup, wording

if TYPE_CHECKING:
    from opwise.profiling.compare import Difference
    from opwise.profiling.noise import Repeated
    from opwise.profiling.profile import Profile

Command = TypeVar("Command", bound=Callable[..., Any])

#: the default of --floor, as a share of the time before
FLOOR = 0.01


def _finite(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    """Refuse infinity and NaN."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number")
    return value


def options(command: Command) -> Command:
    """Add the options to a command that choose what to show of a difference."""
    for option in reversed([
        click.option("--form", type=click.Choice(["table", "json", "markdown"]), default="table",
                     show_default=True, help="table: an overview; markdown: for a comment on a "
                     "pull request; json: all rows, for programs."),
        click.option("--by", type=click.Choice(list(compare.GROUPINGS)), default="apply",
                     show_default=True,
                     help="Group the rows. shapes: by Op and the shapes of its inputs."),
        click.option("-n", "--rows", type=click.IntRange(1), default=20, show_default=True,
                     help="Show at most this many rows."),
        click.option("--html", type=files.OUT, help="Also write an HTML page to FILE."),
        click.option("--fail-above", type=click.FloatRange(min=0, min_open=True), metavar="RATIO",
                     callback=_finite,
                     help="Exit with status 1 if a row, or the sum of all rows, takes more than "
                          "RATIO times as long as before, or if no row matches. A row within noise "
                          "does not count. With too few runs to estimate noise, a row counts if "
                          "every run of AFTER was slower than every run of BEFORE."),
        click.option("--floor", type=click.FloatRange(min=0), metavar="SECONDS", callback=_finite,
                     help="In --fail-above, ignore rows that differ by less than SECONDS (default: "
                          "1 % of the total time before)."),
    ]):  # fmt: skip
        command = option(command)
    return command


@click.command(short_help="Compare two profiles, Apply by Apply.")
@options
@click.argument("before", type=files.PROFILES)
@click.argument("after", type=files.PROFILES)
def diff(before: Path, after: Path, **shown: Any) -> None:
    """Compare the profiles BEFORE and AFTER.

    Each is a file, or a folder with a profile for each run. Applys are matched by what they compute
    in the program, whatever the optimizer, the linker or the device. If one Apply does the work of
    several, they are one row. A file gives the time of all calls, a folder the median time of a
    call. Ratios compare the time of one call, so the number of calls may differ.
    """
    if shown["html"]:
        files.check_output(shown["html"], before, after)
    names = str(before), str(after)
    show(files.runs(before), files.runs(after), names=names, **shown)


def show(
    mine: list[Profile],
    theirs: list[Profile],
    form: str,
    by: str,
    rows: int,
    html: Path | None,
    fail_above: float | None,
    floor: float | None,
    names: tuple[str, str] = ("", ""),
) -> None:
    """Print the difference between two lists of runs; exit with 1 if it exceeds ``fail_above``."""
    if html:
        files.written(html, lambda path: page.write_difference(mine, theirs, path, names))
    runs = noise.Runs(mine, theirs)
    total, *found = runs.rows(compare.GROUPINGS[by])
    is_comparable = any(map(jsonreports.matches, found))
    if not is_comparable:
        click.echo(_nothing(mine, theirs), err=True)
    found.sort(key=_weight, reverse=True)
    whole_ns = total.row.mine.ns if total.row.mine else 0
    floor_ns = whole_ns * FLOOR if floor is None else floor * 1e9
    failed = [] if fail_above is None else _too_slow([total, *found], fail_above, floor_ns)
    if form == "table":
        _print(runs, by, rows, total, found, mine, theirs)
        _across(mine, theirs, rows)
    else:
        data = jsonreports.difference(runs, by, total, found, fail_above, floor_ns, failed)
        text = json.dumps(data, indent=1) if form == "json" else markdown.difference(data, rows)
        click.echo(text.rstrip("\n"))
    labels = jsonreports.Names(runs, by)
    for repeated in failed:
        click.echo(printable(_blamed(repeated, labels)), err=True)
    if failed or (fail_above is not None and not is_comparable):
        sys.exit(1)


def _print(
    runs: noise.Runs,
    by: str,
    n: int,
    total: Repeated,
    found: list[Repeated],
    mine: list[Profile],
    theirs: list[Profile],
) -> None:
    """Print the table of a difference, with up to n rows, and explanations below it.

    mine, theirs: the profiles of both sides.
    """
    table = _table_of_runs if runs.several else _table
    shown = found[:n] if runs.several else [r for r in found[:n] if _is_visible(r)] or found[:n]
    rest = [r for r in found if not any(r is one for one in shown)]
    sources = {place: text for run in (*theirs, *mine) for place, text in run.sources.items()}
    made = table([total, *shown], by, rest, sources)
    tables.show(made)
    is_matching_shown = "matched" in made.titles(tables.width())
    for what, before, after in environments.differences(mine, theirs):
        tables.say(f"{what} before: {before or 'unknown'}, after: {after or 'unknown'}")
    for line in _explained(shown if is_matching_shown else [], runs.several, *runs.count):
        tables.say(line)
    if by == "shapes":
        tables.say(SHAPES)


def _is_visible(found: Repeated) -> bool:
    """Return whether a side of a row of single runs is shown as more than zero seconds."""
    return any(side.ns >= 500 for side in (found.row.mine, found.row.theirs) if side)


def _across(mine: list[Profile], theirs: list[Profile], n: int) -> None:
    """Print what moving between CPU and device gained, if the sides ran on different ones."""
    one, other = (runs[0] if len(runs) == 1 else merge(runs) for runs in (mine, theirs))
    lines = speedup.section(one, other, n)
    for line in ["", *lines] if lines else []:
        click.echo(printable(line))


def _nothing(mine: list[Profile], theirs: list[Profile]) -> str:
    """Return the reason why no row has two sides."""
    for name, runs in (("before", mine), ("after", theirs)):
        if not any(profile.applys for profile in runs):
            return f"Nothing matches: no Apply was recorded {name}."
    return "Nothing matches: the two programs have no Apply in common."


def _weight(found: Repeated) -> tuple[bool, float, float]:
    """Return the sort key, descending: rows beyond noise, then rows with large differences."""
    row = found.row
    real = found.verdict in ("slower", "faster")
    gap = abs(row.ns)
    several = max(len(found.mine), len(found.theirs)) > 1
    if several and found.change is not None and row.mine is not None:  # of medians, as is shown
        gap = abs(found.change) * row.mine.runs
    return real, gap, max(side.ns for side in (row.mine, row.theirs) if side)


_MEANINGS = {
    "fused": "several Applys before, one after",
    "split": "one Apply before, several after",
    "regrouped": "several Applys before, several others after",
    "similar": "the same line of the program, which now computes something else",
}


def _explained(found: list[Repeated], several: bool, n_mine: int, n_theirs: int) -> list[str]:
    """Return lines that explain the words in a table, and the statistics behind verdicts."""
    met = {r.row.relation for r in found}
    lines = [f"{name}: {meaning}" for name, meaning in _MEANINGS.items() if name in met]
    if not several:
        lines.append("One run each: too few runs to estimate noise. `opwise versus` makes several.")
    else:
        lines.append(
            f"{wording.counted(n_mine, 'run')} before, {n_theirs} after; times are medians over "
            "the runs, per call."
        )
        if min(n_mine, n_theirs) < noise.FEWEST:
            lines.append(f"Fewer than {noise.FEWEST} runs of a side: too few to estimate noise.")
        else:
            lines += _STATISTICS
    return lines


_STATISTICS = (
    "p: the probability that noise alone makes such a difference (Mann-Whitney test on the runs, "
    "corrected for the number of rows by Benjamini-Hochberg)",
    f"verdict: noise if p >= {noise.LEVEL}, empty if there are too few runs; interval: the ratios "
    "that the test does not reject",
)


def _columns(by: str, *numbers: tuple[str, int]) -> list[tables.Column]:
    """Return the columns of a table of differences. numbers: (title, rank) of its numbers."""
    return [
        *(tables.Column(title, rank) for title, rank in numbers),
        tables.name("matched", 3),
        *([tables.name("line")] if by == "apply" else []),
        tables.text(_HEADINGS.get(by, by)),
    ]


_HEADINGS = {"apply": "Apply", "op": "Op", "class": "class of Op"}


def _table(
    found: list[Repeated], by: str, rest: list[Repeated], sources: dict[str, str]
) -> tables.Table:
    """Return the table of differences of one run each.

    rest: the rows of which only the sum is shown. sources: {line: its text}.
    """
    table = tables.Table(
        _columns(by, ("before s", 1), ("after s", 1), ("difference s", 2), ("ratio", 0))
    )
    for r in found:
        mine, theirs = r.row.mine, r.row.theirs
        table.add(
            [
                f"{mine.ns * 1e-9:.6f}" if mine else "",
                f"{theirs.ns * 1e-9:.6f}" if theirs else "",
                f"{0.0 - r.row.ns * 1e-9:+.6f}",
                f"{r.row.ratio:.3f}" if r.row.ratio is not None else "",
                *_about(r.row, by, sources),
            ],
            style=_style(r.row.ratio),
        )
    if rest:
        sides = [[side for r in rest if (side := getattr(r.row, name))] for name in _SIDES]
        before, after = (sum(side.ns for side in those) * 1e-9 for those in sides)
        cells = f"{before:.6f}", f"{after:.6f}", f"{after - before:+.6f}", ""
        table.add([*cells, *_blank(by), wording.counted(len(rest), "more row")], style="dim")
    return table


_SIDES = ("mine", "theirs")


def _table_of_runs(
    found: list[Repeated], by: str, rest: list[Repeated], sources: dict[str, str]
) -> tables.Table:
    """Return the table of differences of several runs; the arguments are those of ``_table``."""
    columns = ("before µs", 2), ("after µs", 2), ("difference µs", 4), ("ratio", 0)
    table = tables.Table(_columns(by, *columns, ("interval", 3), ("verdict", 0), ("p", 5)))
    for r in found:
        known = r.ratio is not None
        table.add(
            [
                f"{r.before * 1e-3:.3f}" if r.before is not None else "",
                f"{r.after * 1e-3:.3f}" if r.after is not None else "",
                f"{r.change * 1e-3:+.3f}" if known and r.change is not None else "",
                f"{r.ratio:.3f}" if known else "",
                "%.3f-%.3f" % r.interval() if known and r.p is not None else "",
                r.verdict,
                f"{r.p:.1g}" if r.p is not None else "",
                *_about(r.row, by, sources),
            ],
            style=None if r.verdict == "noise" else _style(r.ratio),
        )
    if rest:
        before, after = (
            sum(ns for r in rest if (ns := getattr(r, name)) is not None) * 1e-3
            for name in ("before", "after")
        )
        cells = f"{before:.3f}", f"{after:.3f}", f"{after - before:+.3f}", *[""] * 4
        table.add([*cells, *_blank(by), wording.counted(len(rest), "more row")], style="dim")
    return table


def _about(row: Difference, by: str, sources: dict[str, str]) -> list[str]:
    """Return the cells that describe a row: how its sides match, its line, its label."""
    if by == "apply":
        where = next((wording.line_of(a) for side in row.parts for a in side if a.lines), "")
        return [_how(row), tables.place(where), row.label]
    if by == "line":
        labels = dict.fromkeys(side.label for side in (row.mine, row.theirs) if side)
        places = " | ".join(tables.place(wording.short_path(label)) for label in labels)
        return [_how(row), f"{places}  {sources.get(next(iter(labels)), '')}".rstrip()]
    return [_how(row), row.label]


def _blank(by: str) -> list[str]:
    """Return empty cells for how the sides of a row match, and for its line."""
    return [""] * (2 if by == "apply" else 1)


def _how(row: Difference) -> str:
    """Return how the sides of a row match."""
    only = {"self": "only before", "other": "only after", "": ""}[row.only]
    return row.relation or only


def _style(ratio: float | None) -> str | None:
    return None if ratio is None or 0.9 < ratio < 1.1 else "red" if ratio > 1 else "green"


def _too_slow(found: list[Repeated], limit: float, floor_ns: float) -> list[Repeated]:
    """Return the rows that are slower than allowed, by more than the floor, and beyond noise.

    If there are too few runs for a verdict: rows of which each run took longer than all before.
    """
    return [
        r
        for r in found
        if r.ratio is not None
        and r.ratio > limit
        and (r.verdict == "slower" or (not r.verdict and min(r.theirs) > max(r.mine)))
        and r.row.mine is not None
        and (r.change or 0.0) * r.row.mine.runs > floor_ns
    ]


def _blamed(repeated: Repeated, names: jsonreports.Names) -> str:
    """Return a sentence about a row that is too slow, with its function and line."""
    functions = ", ".join(names.functions(repeated))
    places = ", ".join(wording.short_place(place) for place in names.lines(repeated))
    where = "; ".join(
        part for part in (functions and f"function {functions}", places and f"line {places}")
        if part
    )  # fmt: skip
    label = f"{repeated.row.label} ({where})" if where else repeated.row.label
    return f"{repeated.ratio:.2f} times as long as before: {label}"
