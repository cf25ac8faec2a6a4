"""The subcommands that compare: two profiles, or two ways to run a program."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from opwise.command import files, programs, tables
from opwise.command.groups import SHAPES
from opwise.profiling import compare, environments, jsonreports, markdown, noise
from opwise.profiling.files import printable
from opwise.profiling.html import page
from opwise.profiling.merge import merge
from opwise.profiling.reports import speedup, wording

#: what is taken for noise unless told: a share of the first side's time
NOISE = 0.01


def _finite(context, parameter, value):
    """Refuse what no number can be compared with."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number that times can be compared with")
    return value


def _options(command):
    """Give a command the options about what is shown of a difference."""
    for option in reversed([
        click.option("--form", type=click.Choice(["table", "json", "markdown"]), default="table",
                     show_default=True, help="table: to read; markdown: for a comment of CI; "
                     "json: all rows, for programs."),
        click.option("--by", type=click.Choice(list(compare.GROUPINGS)), default="apply",
                     show_default=True, help="What the rows are."),
        click.option("-n", "--rows", type=click.IntRange(1), default=20, show_default=True),
        click.option("--html", type=files.OUT, help="Write a page to this file too."),
        click.option("--fail-above", type=click.FloatRange(min=0, min_open=True), metavar="RATIO",
                     callback=_finite,
                     help="Exit with 1 if a row, or all rows together, takes more than RATIO times "
                          "as long after, or if nothing matches. Noise does not fail: with too few "
                          "runs for a verdict, a row fails if every run after took longer than "
                          "every run before."),
        click.option("--floor", type=click.FloatRange(min=0), metavar="SECONDS", callback=_finite,
                     help="Rows that differ by less than SECONDS do not fail (default: 1 % of the "
                          "time before)."),
    ]):  # fmt: skip
        command = option(command)
    return command


@click.command(short_help="Compare two profiles, Apply by Apply.")
@_options
@click.argument("before", type=files.PROFILES)
@click.argument("after", type=files.PROFILES)
def diff(before, after, **options):
    """Compare the profiles in BEFORE and AFTER: files, or folders with a profile for each run.

    Applys are matched by what they compute in the user's program, whatever the optimizer, the
    linker or the device; what is one Apply here and several there is one row. Times are those of
    all calls, or with several runs the median of a call; a ratio is that of the time of one call,
    so profiles with more and with fewer calls can be compared.
    """
    if options["html"]:
        files.check_output(options["html"], before, after)
    names = str(before), str(after)
    show(files.runs(before), files.runs(after), names=names, **options)


def show(mine, theirs, form, by, rows, html, fail_above, floor, names=("", "")):
    """Print the difference of some runs to others; exit with 1 if it is more than allowed."""
    if html:
        files.written(html, lambda path: page.write_difference(mine, theirs, path, names))
    runs = noise.Runs(mine, theirs)
    total, *found = runs.rows(compare.GROUPINGS[by])
    is_comparable = any(map(jsonreports.matches, found))
    if not is_comparable:
        click.echo(_nothing(mine, theirs), err=True)
    found.sort(key=_weight, reverse=True)
    whole_ns = total.row.mine.ns if total.row.mine else 0
    floor_ns = whole_ns * NOISE if floor is None else floor * 1e9
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


def _print(runs, by, n, total, found, mine, theirs):
    """Print the table of a difference, with up to n rows, and what explains it.

    mine, theirs: the profiles of both sides.
    """
    table = _table_of_runs if runs.several else _table
    sources = {place: text for run in (*theirs, *mine) for place, text in run.sources.items()}
    tables.show(table([total, *found[:n]], by, found[n:], sources))
    for what, before, after in environments.differences(mine, theirs):
        tables.say(f"{what} before: {before or 'unknown'}, after: {after or 'unknown'}")
    for line in _explained(found[:n], runs.several, *runs.count):
        tables.say(line)
    if by == "shapes":
        tables.say(SHAPES)


def _across(mine, theirs, n):
    """Print what a move between CPU and device gained; nothing where both ran on the same."""
    one, other = (runs[0] if len(runs) == 1 else merge(runs) for runs in (mine, theirs))
    lines = speedup.section(one, other, n)
    for line in ["", *lines] if lines else []:
        click.echo(printable(line))


def _nothing(mine, theirs):
    """Return why no row has two sides."""
    for name, runs in (("before", mine), ("after", theirs)):
        if not any(profile.applys for profile in runs):
            return f"Nothing matches: no Apply was recorded {name}."
    return "Nothing matches: these are profiles of programs that share no Apply."


def _weight(found):
    """Return what orders rows: what is no noise first, then by the size of the difference."""
    row = found.row
    real = found.verdict in ("slower", "faster")
    gap = abs(found.after - found.before) * row.mine.runs if found.verdict else abs(row.ns)
    return real, gap, max(side.ns for side in (row.mine, row.theirs) if side)


_MEANINGS = {
    "fused": "several Applys before, one after",
    "split": "one Apply before, several after",
    "regrouped": "several Applys before, several others after",
    "similar": "the same line of the program, which computes something else",
}


def _explained(found, several, n_mine, n_theirs):
    """Return the lines that say what the words in a table mean, and what stands behind verdicts."""
    met = {r.row.relation for r in found}
    lines = [f"{name}: {meaning}" for name, meaning in _MEANINGS.items() if name in met]
    if not several:
        lines.append("One run each: too few runs to estimate noise. `opwise versus` makes several.")
    else:
        lines.append(f"{n_mine} runs before, {n_theirs} after; times are medians of a call.")
        if min(n_mine, n_theirs) < noise.FEWEST:
            lines.append(f"Fewer than {noise.FEWEST} runs of a side: too few to estimate noise.")
        else:
            lines += _STATISTICS
    return lines


_STATISTICS = (
    "p: how likely so large a difference is by chance (Mann-Whitney test on the runs, corrected "
    "for the number of rows by Benjamini-Hochberg)",
    f"verdict: noise if p >= {noise.LEVEL}; empty: too few runs to tell; interval: the ratios that "
    "the same test, at the same corrected level, does not rule out",
)


def _columns(by, *numbers):
    """Return the columns of a table of differences: those of numbers are given with their rank."""
    return [
        *(tables.Column(title, rank) for title, rank in numbers),
        tables.name("matched", 3),
        *([tables.name("line")] if by == "apply" else []),
        tables.text(_HEADINGS.get(by, by)),
    ]


_HEADINGS = {"apply": "Apply", "op": "Op", "class": "class of Op"}


def _table(found, by, rest, sources):
    """Return the table of differences of one run each; rest: the rows that are added up."""
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
        table.add([*cells, *_blank(by), f"{len(rest)} more rows"], style="dim")
    return table


_SIDES = ("mine", "theirs")


def _table_of_runs(found, by, rest, sources):
    """Return the table of differences of several runs; rest: the rows that are added up."""
    columns = ("before us", 2), ("after us", 2), ("difference us", 4), ("ratio", 0)
    table = tables.Table(_columns(by, *columns, ("interval", 3), ("verdict", 0), ("p", 5)))
    for r in found:
        known = r.ratio is not None
        table.add(
            [
                f"{r.before * 1e-3:.3f}" if r.before is not None else "",
                f"{r.after * 1e-3:.3f}" if r.after is not None else "",
                f"{(r.after - r.before) * 1e-3:+.3f}" if known else "",
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
        table.add([*cells, *_blank(by), f"{len(rest)} more rows"], style="dim")
    return table


def _about(row, by, sources):
    """Return the cells that say what a row is about. sources: the text of lines of the program."""
    if by == "apply":
        where = next((wording.line_of(a) for side in row.parts for a in side if a.lines), "")
        return [_how(row), tables.place(where), row.label]
    if by == "line":
        labels = dict.fromkeys(side.label for side in (row.mine, row.theirs) if side)
        places = " | ".join(tables.place(wording.short_path(label)) for label in labels)
        return [_how(row), f"{places}  {sources.get(next(iter(labels)), '')}".rstrip()]
    return [_how(row), row.label]


def _blank(by):
    """Return empty cells for how a row is matched, and for its line."""
    return [""] * (2 if by == "apply" else 1)


def _how(row):
    """Return how the sides of a row belong together."""
    only = {"self": "only before", "other": "only after", "": ""}[row.only]
    return row.relation or only


def _style(ratio):
    return None if ratio is None or 0.9 < ratio < 1.1 else "red" if ratio > 1 else "green"


def _too_slow(found, limit, floor_ns):
    """Return the rows that are slower than allowed, by more than the floor, and not by noise.

    Where there are too few runs for a verdict, those of which every run took longer than before.
    """
    return [
        r
        for r in found
        if r.ratio is not None
        and r.ratio > limit
        and (r.verdict == "slower" or (not r.verdict and min(r.theirs) > max(r.mine)))
        and (r.after - r.before) * r.row.mine.runs > floor_ns
    ]


def _blamed(repeated, names):
    """Return the line about a row that is too slow: what it is, in which function and line."""
    functions = ", ".join(names.functions(repeated))
    places = ", ".join(markdown.short_place(place) for place in names.lines(repeated))
    where = "; ".join(
        part for part in (functions and f"function {functions}", places and f"line {places}")
        if part
    )  # fmt: skip
    label = f"{repeated.row.label} ({where})" if where else repeated.row.label
    return f"{repeated.ratio:.2f} times as long as before: {label}"


# --- versus ---------------------------------------------------------------------------------------


@click.command(
    context_settings=programs.SETTINGS,
    short_help="Run a program in two ways, in turn, and compare.",
)
@click.option(
    "--base",
    metavar="REVISION",
    help="Before: the program as of this revision of its git repository.",
)
@click.option("--before", "other", type=programs.SCRIPT, help="Before: another program.")
@click.option(
    "--before-flags",
    metavar="NAME=VALUE,...",
    default="",
    help="Flags of the runs before, as in OPWISE_FLAGS.",
)
@click.option(
    "--after-flags",
    metavar="NAME=VALUE,...",
    default="",
    help="Flags of the runs after.",
)
@click.option(
    "--runs",
    "times",
    type=click.IntRange(1),
    default=7,
    show_default=True,
    help="How often each is run, after one run that does not count.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder to keep the profiles in.",
)
@_options
@programs.program
def versus(base, other, before_flags, after_flags, times, output, program, **options):
    """Run SCRIPT with its ARGS before and after a change, in turn, and say what differs.

    What is before is said by --base, --before or --before-flags. Runs alternate, so what else the
    machine does meets both sides; a test tells real differences from noise. What the program writes
    to stderr, as warnings, is shown once for each side. Ctrl-C ends the runs; what was measured up
    to then is shown.
    """
    if base and other:
        raise click.UsageError("--base and --before exclude each other")
    if not (base or other or before_flags or after_flags):
        raise click.UsageError("say what to compare with: --base, --before or --before-flags")
    files.check_flags(before_flags, option="--before-flags")
    files.check_flags(after_flags, option="--after-flags")
    with contextlib.ExitStack() as stack:
        folder = output or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        after = _Side(folder / "after", program, after_flags)
        if base:
            moved = stack.enter_context(_checkout(base, program.folder))
            before = _Side(folder / "before", program, before_flags, moved)
        elif other:
            earlier = replace(program, name=str(other), is_module=False)
            before = _Side(folder / "before", earlier, before_flags)
        else:
            before = _Side(folder / "before", program, before_flags)
        done = _alternate(before, after, times)
        for name, side in (("before", before), ("after", after)):
            _show_stderr(name, side.stderr)
        if done < times:
            click.echo(f"interrupted after {max(done, 0)} of {times} runs", err=True)
            options["fail_above"] = None
        if done >= 1:
            show(files.runs(before.folder), files.runs(after.folder), **options)
        if done < times:
            sys.exit(programs.INTERRUPTED)


def _alternate(before, after, times):
    """Run both sides in turn; return how often both were run to the end, -1 if not even once."""
    with tables.progress("running", 2 * (times + 1)) as advance:
        for number in range(times + 1):
            try:
                for side in (before, after):
                    side.run(number)
                    advance()
            except KeyboardInterrupt:
                for side in (before, after):  # what has no counterpart
                    side.path(number).unlink(missing_ok=True)
                return number - 1
    return times


#: how many lines that a program writes to stderr are shown
_STDERR = 40


def _show_stderr(name, lines):
    """Show what a side wrote to stderr: each line that differs once."""
    if lines:
        click.echo(f"{name}, on stderr:", err=True)
    for line in lines[:_STDERR]:
        click.echo(f"  {printable(line)}", err=True)
    if len(lines) > _STDERR:
        click.echo(f"  ({len(lines) - _STDERR} more lines)", err=True)


class _Side:
    """One way to run a program.

    folder: where the profile of each run goes. moved: (folder, folder): what lies in the first is
    taken from the other. stderr: the lines that its runs wrote there, each once.
    """

    def __init__(self, folder, program, flags, moved=None):
        self.folder = folder.absolute()
        self.flags = flags
        self.moved = moved
        script = None if program.is_module else self._place(Path(program.name).absolute())
        self.command = program.command(script)
        self._stderr: dict[str, None] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("[0-9][0-9][0-9].json"):  # of an earlier time
            old.unlink()
        others = files.members(self.folder)
        if others:
            raise click.BadParameter(
                f"{printable(str(others[0]))} is none of its files: name another folder",
                param_hint="--output",
            )

    @property
    def stderr(self):
        return list(self._stderr)

    def path(self, number):
        """Return the file for the profile of a run."""
        return self.folder / f"{number:03}.json"

    def _place(self, path):
        if self.moved and path.is_relative_to(self.moved[0]):
            return self.moved[1] / path.relative_to(self.moved[0])
        return path

    def run(self, number):
        """Run it once; run 0 fills the caches, and is not kept. Raises KeyboardInterrupt."""
        path = self.path(number)
        environment = files.profiled(path, flags=self.flags)
        if "PYTHONPATH" in environment:
            parts = environment["PYTHONPATH"].split(os.pathsep)
            environment["PYTHONPATH"] = os.pathsep.join(
                str(self._place(Path(part).absolute())) if part else part for part in parts
            )
        ended = programs.run(self.command, environment, cwd=self._place(Path.cwd()), capture=True)
        if ended.interrupted:
            raise KeyboardInterrupt
        if ended.returncode or not path.exists():
            said = ended.stderr.strip() or _why_not(ended)
            raise click.ClickException(f"{' '.join(self.command)} failed:\n{said}")
        for child in self.folder.glob(f"{number:03}.*.json"):  # of processes that it started
            child.unlink()
        self._stderr.update(dict.fromkeys(filter(str.strip, ended.stderr.splitlines())))
        if number == 0:
            path.unlink()


def _why_not(ended):
    if ended.signal_name:
        return f"it was ended by {ended.signal_name}"
    if ended.returncode:
        return f"its exit code is {ended.returncode}"
    return "it compiled no function, so there is no profile"


@contextlib.contextmanager
def _checkout(revision, folder):
    """Have a revision of a folder's repository in a folder of its own: (repository, folder)."""
    root = Path(_git(folder, "rev-parse", "--show-toplevel"))
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / root.name
        _git(root, "worktree", "add", "--detach", str(there), revision)
        try:
            yield root, there
        finally:
            _git(root, "worktree", "remove", "--force", str(there))


def _git(folder, *words):
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
    except FileNotFoundError:
        raise click.ClickException("--base needs git, which is not installed") from None
    if done.returncode:
        raise click.ClickException(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
