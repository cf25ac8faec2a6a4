"""The subcommand ``baseline``: keeps the profiles of several runs, and compares later runs."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from opwise.command import baselines, diff, files, programs, sides, tables
from opwise.command.baselines import Baseline, Baselines
from opwise.command.programs import PythonProgram
from opwise.command.sides import Side
from opwise.hardware import control
from opwise.profiling import environments, gate, progress
from opwise.profiling.files import printable
from opwise.profiling.merge import merge
from opwise.profiling.profile import Profile
from opwise.profiling.reports.wording import counted

_FOLDER = click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), default=baselines.FOLDER,
    show_default=True, help="The folder of the baselines.",
)  # fmt: skip
_RUNS = click.option(
    "--runs", "times", type=click.IntRange(1, 999), default=sides.RUNS, show_default=True,
    help="Run the program this many times, after one warm-up run.",
)  # fmt: skip
_NAME = click.argument("name", metavar="NAME")


class _Named(click.Command):
    """A command ``[OPTIONS] NAME [OPTIONS] SCRIPT [ARGS]``; what follows SCRIPT belongs to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        before, left = self._options(ctx, args)
        if left and before[-1:] != ["--"]:
            behind, left[1:] = self._options(ctx, left[1:])
            if behind[-1:] == ["--"]:
                del behind[-1]
            args = [*before, *behind, "--", *left]
        return super().parse_args(ctx, args)

    def _options(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str]]:
        """Return (options, and -- if it is there, at the start of words; the other words)."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        parser = click.Command(None, params=[*options], add_help_option=False).make_parser(ctx)
        _, left, _ = parser.parse_args(list(args))
        return args[: len(args) - len(left)], left


@click.group(short_help="Keep the profiles of several runs, and compare later runs with them.")
def baseline() -> None:
    """Keep the profiles of several runs under a name, and compare later runs with them.

    A baseline holds for the machine that it was saved on. To compare two versions of a program on
    one machine, `opwise versus` is more exact, since its runs alternate.
    """


@baseline.command(cls=_Named, context_settings=programs.SETTINGS)
@_NAME
@_RUNS
@click.option(
    "--flags", default="", metavar="NAME=VALUE,...", help="Set flags, as OPWISE_FLAGS does."
)
@click.option("--replace", "is_replacing", is_flag=True, help="Replace a baseline of this name.")
@_FOLDER
@programs.program
def save(
    name: str, times: int, flags: str, is_replacing: bool, folder: Path, program: PythonProgram
) -> None:
    """Run SCRIPT with ARGS several times, and keep the profiles as the baseline NAME."""
    found = Baselines(folder)
    found.check_name(name)
    files.check_flags(flags)
    if found.has(name) and not is_replacing:
        raise click.ClickException(
            f"{printable(str(folder))} has a baseline {name}: give --replace to replace it, or "
            "another name"
        )
    with found.saving(name) as runs:
        if _run(Side(runs, program, flags, before_run=control.measure), times) < times:
            click.echo(f"interrupted: the baseline {name} was not saved", err=True)
            sys.exit(programs.INTERRUPTED)
        found.keep(Baseline(name, times, program, flags), runs)
    click.echo(f"saved the baseline {name}, {counted(times, 'run')}, in {printable(str(folder))}",
               err=True)  # fmt: skip
    click.echo(f"to compare with it: opwise baseline compare {name}", err=True)


@baseline.command("list")
@click.option("--form", type=click.Choice(["table", "json"]), default="table", show_default=True,
              help="table: for people; json: for programs.")  # fmt: skip
@_FOLDER
def list_(form: str, folder: Path) -> None:
    """Show the baselines: program, date, runs, time in Applys, machine."""
    rows = [_described(Baselines(folder), name) for name in Baselines(folder).names()]
    if form == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        click.echo(f"{printable(str(folder))} has no baseline", err=True)
        return
    table = tables.Table([
        tables.name("name"), tables.Column("runs", 3), tables.Column("Applys s", 2),
        tables.name("date", 1), tables.name("opwise", 4), tables.text("program"),
        tables.text("machine"),
    ])  # fmt: skip
    for row in rows:
        if row["error"]:
            table.add([row["name"], *[""] * 4, row["error"], ""], style="red")
            continue
        seconds, machine = f"{row['seconds_applys']:.6f}", baselines.words(row["machine"])
        table.add([row["name"], str(row["runs"]), seconds, row["date"], row["opwise"],
                   row["command"], machine])  # fmt: skip
    tables.show(table)


def _described(found: Baselines, name: str) -> dict[str, Any]:
    """Return what ``list`` shows of a baseline; with ``error`` if it is damaged."""
    try:
        one = found.get(name)
        profiles = found.profiles(one)
    except click.ClickException as error:
        return {"name": name, "error": error.message}
    return {
        "name": name, "error": "", "runs": one.runs, "date": one.date, "opwise": one.opwise,
        "command": one.command, "flags": one.flags, "machine": one.machine,
        "seconds_applys": sum(p.local_ns for p in profiles) * 1e-9 / one.runs,
    }  # fmt: skip


@baseline.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@_FOLDER
def remove(names: tuple[str, ...], folder: Path) -> None:
    """Delete baselines."""
    for name in names:
        Baselines(folder).remove(name)
        click.echo(f"removed the baseline {name}", err=True)


@baseline.command(cls=_Named, context_settings=programs.SETTINGS)
@_NAME
@_RUNS
@click.option(
    "--flags", metavar="NAME=VALUE,...", help="Set flags (default: those of the baseline)."
)
@click.option(
    "--any-machine", is_flag=True,
    help="Compare with a baseline of another machine too: times have no verdict, the number of "
    "runs, sizes and operations do.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path),
    help="Keep the profiles in this folder.",
)  # fmt: skip
@_FOLDER
@diff.options
@programs.optional_program
def compare(
    name: str,
    times: int,
    flags: str | None,
    any_machine: bool,
    output: Path | None,
    folder: Path,
    program: PythonProgram | None,
    **shown: Any,
) -> None:
    """Run SCRIPT with ARGS, and compare the profiles with the baseline NAME.

    Without SCRIPT the program of the baseline runs, with its arguments. Between the runs a fixed
    piece of work is timed, as it was when the baseline was saved: a difference counts only if it is
    larger than that of the hardware's speed. Times of another machine have no verdict. Versions and
    flags that differ are listed; the comparison includes their effect.
    """
    found = Baselines(folder)
    kept = found.get(name)
    before = found.profiles(kept)
    flags = kept.flags if flags is None else flags
    files.check_flags(flags)
    sides.check_runs(times, shown["limits"])
    another = _another_machine(kept)
    if another and gate.is_about_times(shown["limits"] or {}) and not any_machine:
        click.echo(
            f"Error: {another}, so limits of times cannot be judged. Save a baseline on this "
            "machine, use `opwise versus`, or give --any-machine to compare what does not depend "
            "on the machine",
            err=True,
        )
        sys.exit(diff.UNDECIDED)
    with ExitStack() as stack:
        runs = output or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        side = Side(runs, program or _program_of(kept), flags, before_run=control.measure)
        done = _run(side, times)
        sides.show_stderr("the program, on stderr", side.stderr)
        if done < times:
            click.echo(f"interrupted after {max(done, 0)} of {times} runs", err=True)
            shown["limits"] = None
        if done >= 1:
            click.echo(
                f"baseline {name}: {counted(kept.runs, 'run')} of {printable(kept.command)}, saved "
                f"on {kept.date}",
                err=True,
            )
            after = files.runs(side.folder)
            _say_versions(before, after)
            names = f"baseline {name}", str(output or "")
            diff.show(before, after, names=names, another_machine=another, **shown)
        if done < times:
            sys.exit(programs.INTERRUPTED)


def _run(side: Side, times: int) -> int:
    """Run a side several times, and once before as a warm-up; return how many runs ended."""
    with progress.shown("running", times + 1) as bar:
        for number in range(times + 1):
            try:
                side.run(number)
            except KeyboardInterrupt:
                side.path(number).unlink(missing_ok=True)
                return number - 1
            bar.advance()
    return times


def _program_of(kept: Baseline) -> PythonProgram:
    """Return the program of a baseline. Raises ClickException if its script is not here."""
    if not kept.program.is_module and not Path(kept.program.name).is_file():
        raise click.ClickException(
            f"the program of baseline {kept.name}, {printable(kept.program.name)}, is not here: "
            "run the command in the folder where it was saved, or name the program: opwise "
            f"baseline compare {kept.name} SCRIPT"
        )
    return kept.program


def _another_machine(kept: Baseline) -> str:
    """Return a clause that says so if a baseline is of another machine, else ""."""
    machine = baselines.here()
    if kept.machine == machine:
        return ""
    return printable(
        f"baseline {kept.name} was saved on another machine ({baselines.words(kept.machine)}; "
        f"this one: {baselines.words(machine)})"
    )


def _say_versions(before: list[Profile], after: list[Profile]) -> None:
    """Say on stderr if the versions of two sides differ."""
    differ = environments.differences([merge(before)], [merge(after)])
    changed = [what for what, *_ in differ if what in environments.VERSIONS]
    if changed:
        click.echo(
            f"other versions than those of the baseline ({', '.join(changed)}): the comparison "
            "includes their effect",
            err=True,
        )
