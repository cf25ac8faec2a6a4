"""The subcommands: their arguments, what they print, their exit codes."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from opwise.command import doctor as examine
from opwise.command.export import export
from opwise.config import config
from opwise.errors import ProfileFormatError
from opwise.profiling import compare, records
from opwise.profiling.merge import merge
from opwise.profiling.profile import Profile
from opwise.profiling.reports import profilestats
from opwise.version import __version__

#: what ``diff`` takes for noise unless told: a share of the first profile's time
NOISE = 0.01

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="opwise")
def main():
    """Compile and profile array programs written in Theano's language."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that cannot be encoded is escaped
            stream.reconfigure(errors="backslashreplace")


main.add_command(export)


def _loaded(paths):
    """Return the Profile of one file, or several merged into one."""
    try:
        profiles = [Profile.load(path) for path in paths]
    except ProfileFormatError as error:
        raise click.ClickException(str(error)) from None
    return profiles[0] if len(profiles) == 1 else merge(profiles)


# --- run ------------------------------------------------------------------------------------------


@main.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a program and keep the profile of it.",
)
@click.option("--mode", help="The mode of functions that name none, as FAST_RUN.")
@click.option("--flags", default="", metavar="NAME=VALUE,...", help="Flags, as in OPWISE_FLAGS.")
@click.option("--memory/--no-memory", default=True, help="Whether to measure memory too.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The file for the profile; otherwise the script's name and .profile.json.",
)  # fmt: skip
@click.argument("script", type=_FILE)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(mode, flags, memory, output, script, args):
    """Run SCRIPT with its ARGS as Python would, and keep the profile of all its functions.

    Programs that import theano run as they are. The exit code is that of the program. Processes
    that it starts write a file each, with their number in the name.
    """
    output = (output or Path(f"{script.stem}.profile.json")).absolute()
    if output.suffix != ".json":
        raise click.BadParameter(f"{output} does not end in .json", param_hint="--output")
    if "," in str(output):
        raise click.BadParameter(f"{output} has a comma, which ends a flag", param_hint="--output")
    own = ["profile=True", f"profile_memory={memory}", f"profiling.destination={output}"]
    if mode:
        own.append(f"mode={mode}")
    given = [part for part in (os.environ.get("OPWISE_FLAGS"), flags) if part]
    environment = {**os.environ, "OPWISE_FLAGS": ",".join([*given, *own])}
    environment.pop("OPWISE_PROFILE_OWNER", None)
    output.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, str(script), *args], env=environment)
    if output.exists():
        _tell_about(output)
    else:
        click.echo("no profile was kept: the program compiled no function, or was killed", err=True)
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _tell_about(output):
    profile = Profile.load(output)
    calls = sum(f.calls for f in profile.functions)
    click.echo(
        f"{len(profile.functions)} functions, {calls} calls, {profile.local_ns * 1e-9:.3f} s in "
        f"their Applys: {output}\nlook at it: opwise report {output}",
        err=True,
    )


# --- report ---------------------------------------------------------------------------------------


@main.command(short_help="Show a profile, or several as one.")
@click.option("--form", type=click.Choice(["text", "csv"]), default="text", show_default=True)
@click.option("-n", "--rows", type=click.IntRange(1), default=20, show_default=True)
@click.argument("files", nargs=-1, required=True, type=_FILE)
def report(form, rows, files):
    """Show the profile in FILES; several are merged."""
    profile = _loaded(files)
    if form == "csv":
        records.write_csv(profile, sys.stdout)
        return
    width = shutil.get_terminal_size().columns if _is_terminal() else 512
    click.echo(profilestats.summary(profile, rows, rows, width), nl=False)


# --- diff -----------------------------------------------------------------------------------------

_WAYS = {"apply": compare.by_apply, "op": compare.by_op, "class": compare.by_class}


@main.command(short_help="Compare two profiles, Apply by Apply.")
@click.option("--by", type=click.Choice(list(_WAYS)), default="apply", show_default=True)
@click.option("-n", "--rows", type=click.IntRange(1), default=20, show_default=True)
@click.option(
    "--fail-above", type=click.FloatRange(min=0, min_open=True), metavar="RATIO",
    help="Exit with 1 if a row takes more than RATIO times as long in AFTER.",
)  # fmt: skip
@click.option(
    "--floor", type=click.FloatRange(min=0), metavar="SECONDS",
    help="Rows that differ by less are noise; otherwise one percent of the time of BEFORE.",
)  # fmt: skip
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
def diff(by, rows, fail_above, floor, before, after):
    """Compare the profiles in BEFORE and AFTER.

    Applys are matched by what they compute in the user's program, whatever the optimizer, the
    linker or the device. Times are those of all calls; a ratio is that of the time of one run, so
    profiles with more and with fewer calls can be compared.
    """
    mine, theirs = _loaded([before]), _loaded([after])
    found = sorted(_WAYS[by](mine, theirs), key=_weight, reverse=True)
    if not any(r.mine and r.theirs for r in found):
        click.echo("Nothing matches: these are profiles of programs that share no Apply.", err=True)
    floor_ns = mine.local_ns * NOISE if floor is None else floor * 1e9
    _console().print(_difference_table(found[:rows], by))
    rest = sum(-r.ns for r in found[rows:]) * 1e-9
    click.echo(
        f"all: {mine.local_ns * 1e-9:.6f} s before, {theirs.local_ns * 1e-9:.6f} s after; "
        f"{max(0, len(found) - rows)} rows not shown differ by {rest:+.6f} s"
    )
    if fail_above is not None:
        _fail(found, fail_above, floor_ns)


def _weight(row):
    return abs(row.ns), max(side.ns for side in (row.mine, row.theirs) if side)


def _console():
    """Return a console as wide as the terminal; as wide as need be where there is none."""
    return Console() if _is_terminal() else Console(width=200)


def _is_terminal():
    return sys.stdout is not None and sys.stdout.isatty()


def _difference_table(rows, by):
    table = Table(box=None, pad_edge=False)
    for name in ("before s", "after s", "difference s", "ratio"):
        table.add_column(name, justify="right")
    table.add_column(by, overflow="fold")
    for r in rows:
        only = {"self": "only before", "other": "only after", "": ""}[r.only]
        ratio = _ratio(r)
        style = None if ratio is None or 0.9 < ratio < 1.1 else "red" if ratio > 1 else "green"
        table.add_row(
            f"{r.mine.ns * 1e-9:.6f}" if r.mine else "",
            f"{r.theirs.ns * 1e-9:.6f}" if r.theirs else "",
            f"{-r.ns * 1e-9:+.6f}",
            f"{ratio:.3f}" if ratio is not None else only,
            r.label,
            style=style,
        )
    return table


def _ratio(row):
    """Return how much longer one run takes after than before; None where one side has none."""
    mine, theirs = row.mine, row.theirs
    if not (mine and theirs and mine.ns and mine.calls and theirs.calls):
        return None
    return (theirs.ns / theirs.calls) / (mine.ns / mine.calls)


def _fail(rows, limit, floor_ns):
    """Exit with 1 if a row is slower than allowed and above the noise."""
    slower = [r for r in rows if (_ratio(r) or 0) > limit and _per_run_gap(r) > floor_ns]
    for r in slower:
        click.echo(f"slower by {_ratio(r):.2f}: {r.label}", err=True)
    if slower:
        sys.exit(1)


def _per_run_gap(row):
    """Return by how many nanoseconds the runs before would have taken longer."""
    return (row.theirs.ns / row.theirs.calls - row.mine.ns / row.mine.calls) * row.mine.calls


# --- doctor and cache -----------------------------------------------------------------------------


@main.command(short_help="Say what opwise has here, and what a program lacks.")
@click.argument("script", required=False, type=_FILE)
def doctor(script):
    """Say which compiler, BLAS, processors, cache and GPU opwise finds.

    With SCRIPT also which of the names of theano that it uses are missing; then the exit code is 1.
    """
    for name, value in examine.machine().items():
        click.echo(f"{name:12}{value}")
    if script is None:
        return
    try:
        used, missing = examine.names(script)
    except SyntaxError as error:
        raise click.ClickException(f"{script} is no Python that runs here: {error}") from None
    click.echo(f"{script}: {len(used)} names of theano, {len(missing)} missing")
    for name, line in missing:
        click.echo(f"  {script}:{line}: {name}")
    if missing:
        sys.exit(1)


@main.group(invoke_without_command=True, short_help="Show or clear the cache of kernels.")
@click.pass_context
def cache(context):
    """Show where compiled kernels are kept, how many, and how large."""
    if context.invoked_subcommand is None:
        files = examine.cached_files()
        size = sum(file.stat().st_size for file in files)
        click.echo(f"{config.compiledir}: {len(files)} kernels, {size / 1e6:.1f} MB")


@cache.command()
def clear():
    """Delete the compiled kernels; they are made again when they are needed."""
    files = examine.cached_files()
    for file in files:
        file.unlink(missing_ok=True)
    click.echo(f"{len(files)} kernels deleted")
