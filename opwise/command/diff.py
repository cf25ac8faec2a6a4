"""The subcommand ``diff``, and what others share with it: how differences are shown and judged."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opwise.command import files, tables
from opwise.command.groups import SHAPES
from opwise.profiling import compare, costs, environments, gate, jsonreports, markdown, noise
from opwise.profiling.files import printable
from opwise.profiling.html import page
from opwise.profiling.memory import readable
from opwise.profiling.merge import merge
from opwise.profiling.reports import speedup, wording

if TYPE_CHECKING:
    from opwise.profiling.compare import Difference
    from opwise.profiling.costs import CostRow
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


class _Limits(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # before click 8.4
    """The type of --fail-above: RATIO, or NAME=RATIO,... with names of ``gate.NAMES``."""

    name = "limits"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        if isinstance(value, dict):
            return value
        found: dict[str, float] = {}
        for part in value.split(","):
            name, is_named, text = part.rpartition("=")
            name = name.strip() if is_named else gate.APPLYS
            if name not in gate.NAMES:
                self.fail(f"no limit is named {name!r}; the names: {', '.join(gate.NAMES)}",
                          param, ctx)  # fmt: skip
            try:
                ratio = float(text)
            except ValueError:
                self.fail(f"{text!r} is not a number", param, ctx)
            if not (math.isfinite(ratio) and ratio > 0):
                self.fail(f"{text} is not a finite number above 0", param, ctx)
            if name in found:
                self.fail(f"{name} has two limits", param, ctx)
            found[name] = ratio
        return found


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
        click.option("--fail-above", "limits", type=_Limits(), metavar="LIMITS",
                     help="Exit with status 1 if a time of Applys is more than RATIO times that "
                          "before (LIMITS: a RATIO), or something else is (LIMITS: NAME=RATIO,... "
                          f"with the names {', '.join(gate.NAMES)}). Differences within noise do "
                          "not count; where noise is unknown, only what is exact does, such as "
                          "the number of runs and the size of results. Exit with status 3 if a "
                          "limit cannot be judged at all."),
        click.option("--floor", type=click.FloatRange(min=0), metavar="SECONDS", callback=_finite,
                     help="In --fail-above, ignore rows that differ by less than SECONDS in a run "
                          "(default: 1 % of the time of all Applys before)."),
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

    Times of single runs have no verdict, because the spread between processes is unknown.
    """
    if shown["html"]:
        files.check_output(shown["html"], before, after)
    names = str(before), str(after)
    show(files.runs(before), files.runs(after), names=names, **shown)


#: why times of single runs have no verdict
ONE_RUN = "one run each: the spread between processes is unknown"
#: the exit status if a limit cannot be judged
UNDECIDED = 3


def show(
    mine: list[Profile],
    theirs: list[Profile],
    form: str,
    by: str,
    rows: int,
    html: Path | None,
    limits: Mapping[str, float] | None,
    floor: float | None,
    names: tuple[str, str] = ("", ""),
    another_machine: str = "",
) -> None:
    """Print the difference between two lists of runs, and exit as ``limits`` says.

    With 1 if something exceeds its limit, with UNDECIDED if a limit cannot be judged.
    another_machine: a clause that says so if the sides ran on two, whose times have no verdict.
    """
    if html:
        files.written(html, lambda path: page.write_difference(mine, theirs, path, names))
    runs = noise.Runs(mine, theirs, is_one_machine=not another_machine)
    total, *found = runs.rows(compare.GROUPINGS[by])
    of_run = costs.rows(mine, theirs, is_one_machine=not another_machine)
    is_comparable = any(map(jsonreports.matches, found))
    if not is_comparable:
        click.echo(_nothing(mine, theirs), err=True)
    found.sort(key=_weight, reverse=True)
    whole_ns = total.row.mine.ns / len(mine) if total.row.mine else 0.0
    floor_ns = whole_ns * FLOOR if floor is None else floor * 1e9
    limits = limits or {}
    why_unknown = another_machine or ("" if runs.several else ONE_RUN)
    outcome = gate.judge([total, *found], of_run, limits, floor_ns, why_unknown)
    if form == "table":
        _print(runs, by, rows, total, found, mine, theirs, of_run, why_unknown)
        _across(mine, theirs, rows)
    else:
        data = jsonreports.difference(
            runs, by, total, found, limits.get(gate.APPLYS), floor_ns, outcome.rows, of_run,
            limits, outcome.costs, outcome.not_judged,
        )  # fmt: skip
        text = json.dumps(data, indent=1) if form == "json" else markdown.difference(data, rows)
        click.echo(text.rstrip("\n"))
    for line in _blamed(outcome, jsonreports.Names(runs, by)):
        click.echo(printable(line), err=True)
    if outcome.has_failed or (gate.APPLYS in limits and not is_comparable):
        sys.exit(1)
    if outcome.is_undecided:
        sys.exit(UNDECIDED)


def _print(
    runs: noise.Runs,
    by: str,
    n: int,
    total: Repeated,
    found: list[Repeated],
    mine: list[Profile],
    theirs: list[Profile],
    of_run: list[CostRow],
    why_unknown: str,
) -> None:
    """Print the tables of a difference, with up to n rows, and explanations below them.

    mine, theirs: the profiles of both sides. of_run: the costs of whole runs.
    why_unknown: why no time has a verdict; "" if times may have one.
    """
    table = _table_of_runs if runs.several else _table
    shown = found[:n] if runs.several else [r for r in found[:n] if _is_visible(r)] or found[:n]
    rest = [r for r in found if not any(r is one for one in shown)]
    sources = {place: text for run in (*theirs, *mine) for place, text in run.sources.items()}
    made = table([total, *shown], by, rest, sources)
    tables.show(made)
    is_matching_shown = "matched" in made.titles(tables.width())
    for line in _known(shown):
        tables.say(line)
    if of_run:
        click.echo()
        tables.show(_table_of_costs(of_run, bool(why_unknown)))
    for what, before, after in environments.differences(mine, theirs):
        tables.say(f"{what} before: {before or 'unknown'}, after: {after or 'unknown'}")
    if runs.drift != noise.STEADY:
        tables.say(_drifted(runs.drift))
    for line in _explained(shown if is_matching_shown else [], runs.several, *runs.count,
                           why_unknown):  # fmt: skip
        tables.say(line)
    if any(r.is_typical for r in (total, *shown)):
        tables.say("(median): by the median call of each run; the means are noise")
    if by == "shapes":
        tables.say(SHAPES)


def _known(found: list[Repeated]) -> list[str]:
    """Return lines about what Applys do otherwise than before, whatever they take."""
    return [
        f"{r.row.label}: {'; '.join(map(str, known))}"
        for r in found
        if (known := costs.changes(r.row))
    ]


def _drifted(drift: noise.Drift) -> str:
    """Return a line about the speed of the hardware, which was not the same for both sides."""
    least, most = drift
    return (
        f"the hardware took {least:.3f} to {most:.3f} times as long for the same work (control) "
        "after as before; verdicts and intervals allow for that"
    )


_FORMS: dict[str, Callable[[float], str]] = {
    costs.SECONDS: lambda x: f"{x:.4f} s",
    costs.BYTES: readable,
    costs.NUMBER: lambda x: f"{x:,.0f}",
}


def _table_of_costs(found: list[CostRow], is_unknown: bool) -> tables.Table:
    """Return the table of what whole runs cost."""
    table = tables.Table([
        tables.Column("before"), tables.Column("after"), tables.Column("ratio"),
        tables.Column("interval", 3), tables.Column("verdict"), tables.Column("p", 5),
        tables.name("name", 4), tables.text("cost of a run"),
    ])  # fmt: skip
    for r in found:
        known = r.ratio is not None
        form = _FORMS[r.cost.unit]
        verdict = r.verdict or ("unknown" if known and is_unknown else "")
        table.add(
            [
                form(r.before) if r.before is not None else "",
                form(r.after) if r.after is not None else "",
                f"{r.ratio:.3f}" if known else "",
                "%.3f-%.3f" % r.interval() if known and r.p is not None else "",
                verdict,
                f"{r.p:.1g}" if r.p is not None else "",
                r.cost.name,
                r.cost.label,
            ],
            style=_style(r.ratio) if r.verdict in ("slower", "faster", "more", "less") else None,
        )
    return table


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


def _explained(
    found: list[Repeated], several: bool, n_mine: int, n_theirs: int, why_unknown: str
) -> list[str]:
    """Return lines that explain the words in a table, and the statistics behind verdicts."""
    met = {r.row.relation for r in found}
    lines = [f"{name}: {meaning}" for name, meaning in _MEANINGS.items() if name in met]
    if not several:
        lines.append(
            f"{why_unknown[:1].upper()}{why_unknown[1:]}, so times have no verdict (noise: calls "
            "of one run alone vary as much). `opwise versus` makes several runs."
        )
    else:
        lines.append(
            f"{wording.counted(n_mine, 'run')} before, {n_theirs} after; times are medians over "
            "the runs, per call."
        )
        if why_unknown:
            lines.append(f"{why_unknown[:1].upper()}{why_unknown[1:]}: times have no verdict.")
        elif min(n_mine, n_theirs) < noise.FEWEST:
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
        _columns(
            by, ("before s", 1), ("after s", 1), ("difference s", 2), ("ratio", 0), ("verdict", 1)
        )
    )
    for r in found:
        mine, theirs = r.row.mine, r.row.theirs
        table.add(
            [
                f"{mine.ns * 1e-9:.6f}" if mine else "",
                f"{theirs.ns * 1e-9:.6f}" if theirs else "",
                f"{0.0 - r.row.ns * 1e-9:+.6f}",
                f"{r.row.ratio:.3f}" if r.row.ratio is not None else "",
                r.verdict or ("unknown" if r.row.ratio is not None else ""),
                *_about(r.row, by, sources),
            ]
        )
    if rest:
        sides = [[side for r in rest if (side := getattr(r.row, name))] for name in _SIDES]
        before, after = (sum(side.ns for side in those) * 1e-9 for those in sides)
        cells = f"{before:.6f}", f"{after:.6f}", f"{after - before:+.6f}", "", ""
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
                f"{r.verdict} (median)" if r.is_typical else r.verdict,
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


def _blamed(outcome: gate.Outcome, names: jsonreports.Names) -> list[str]:
    """Return a sentence about each row that exceeds its limit, and about what is not judged."""
    found = [
        f"{r.ratio:.2f} times as long as before: {_placed(r, names)}" for r in outcome.slow
    ]  # fmt: skip
    found += [
        f"{change.ratio:.2f} times as much as before: {change}: {_placed(r, names)}"
        for r, change in outcome.work
    ]
    found += [
        f"{_times(r)} as before: {r.cost.label} ({r.cost.name})" for r in outcome.costs
    ]  # fmt: skip
    return [*found, *outcome.not_judged]


def _times(r: CostRow) -> str:
    """Return how large a cost is now, as the start of ``... as before``."""
    if r.ratio is None:
        return "more, and not zero"
    return f"{r.ratio:.2f} times as {'long' if r.cost.unit == costs.SECONDS else 'much'}"


def _placed(repeated: Repeated, names: jsonreports.Names) -> str:
    """Return the label of a row with its function and line."""
    functions = ", ".join(names.functions(repeated))
    places = ", ".join(wording.short_place(place) for place in names.lines(repeated))
    where = "; ".join(
        part for part in (functions and f"function {functions}", places and f"line {places}")
        if part
    )  # fmt: skip
    return f"{repeated.row.label} ({where})" if where else repeated.row.label
