"""The subcommand ``versus``: runs a program in two configurations, in turn, and compares them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from opwise.command import diff, files, programs, sides
from opwise.command.programs import PythonProgram
from opwise.command.sides import Side
from opwise.profiling import progress


@click.command(
    context_settings=programs.SETTINGS,
    short_help="Run a program before and after a change, and compare.",
)
@click.option(
    "--base",
    metavar="REVISION",
    help="Compare with the program at this revision of its git repository.",
)
@click.option(
    "--before",
    "other",
    type=programs.SCRIPT,
    metavar="SCRIPT",
    help="Compare with another program.",
)
@click.option(
    "--before-flags",
    metavar="NAME=VALUE,...",
    default="",
    help="Set flags of the runs before, as OPWISE_FLAGS does.",
)
@click.option(
    "--after-flags",
    metavar="NAME=VALUE,...",
    default="",
    help="Set flags of the runs after.",
)
@click.option(
    "--runs",
    "times",
    type=click.IntRange(1),
    default=sides.RUNS,
    show_default=True,
    help="Run each side this many times, after one warm-up run.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the profiles in this folder.",
)
@diff.options
@programs.program
def versus(
    base: str | None,
    other: Path | None,
    before_flags: str,
    after_flags: str,
    times: int,
    output: Path | None,
    program: PythonProgram,
    **shown: Any,
) -> None:
    """Run SCRIPT with ARGS before and after a change, and compare the profiles.

    Choose what to compare with by --base, --before, --before-flags or --after-flags. Runs before
    and after alternate, so that other load on the computer affects both; a statistical test
    separates differences from noise. Each line that the program writes to stderr is shown once for
    each side. Ctrl-C ends the runs and shows the results up to then.
    """
    _check(base, other, before_flags, after_flags)
    sides.check_runs(times, shown["limits"])
    with contextlib.ExitStack() as stack:
        folder = output or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        after = Side(folder / "after", program, after_flags)
        earlier, moved = program, None
        if base:
            moved = stack.enter_context(_checkout(base, program.folder))
        elif other:
            earlier = replace(program, name=str(other), is_module=False)
        before = Side(folder / "before", earlier, before_flags, moved)
        done = _alternate(before, after, times)
        for name, side in (("before", before), ("after", after)):
            sides.show_stderr(name, side.stderr)
        if done < times:
            click.echo(f"interrupted after {max(done, 0)} of {times} runs", err=True)
            shown["limits"] = None
        if done >= 1:
            diff.show(files.runs(before.folder), files.runs(after.folder), **shown)
        if done < times:
            sys.exit(programs.INTERRUPTED)


def _check(base: str | None, other: Path | None, before_flags: str, after_flags: str) -> None:
    """Refuse options that exclude each other, and flags that are not valid."""
    if base and other:
        raise click.UsageError("give --base or --before, not both")
    if not (base or other or before_flags or after_flags):
        raise click.UsageError(
            "nothing to compare with: give --base, --before, --before-flags or --after-flags"
        )
    files.check_flags(before_flags, option="--before-flags")
    files.check_flags(after_flags, option="--after-flags")


def _alternate(before: Side, after: Side, times: int) -> int:
    """Run both sides in turn; return how many runs of both ended, without the warm-up run.

    Return -1 if Ctrl-C ended the warm-up run.
    """
    with progress.shown("running", 2 * (times + 1)) as bar:
        for number in range(times + 1):
            try:
                # each goes first as often as second, so that load that grows affects both
                for side in (before, after) if number % 2 else (after, before):
                    side.run(number)
                    bar.advance()
            except KeyboardInterrupt:
                for side in (before, after):  # one of them may have no counterpart
                    side.path(number).unlink(missing_ok=True)
                return number - 1
    return times


@contextlib.contextmanager
def _checkout(revision: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Check a revision of a folder's repository out, and yield (repository, checkout)."""
    root = Path(_git(folder, "rev-parse", "--show-toplevel"))
    with tempfile.TemporaryDirectory() as temporary:
        there = Path(temporary).resolve() / root.name
        _git(root, "worktree", "add", "--detach", str(there), revision)
        try:
            yield root, there
        finally:
            _git(root, "worktree", "remove", "--force", str(there))


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
    except FileNotFoundError:
        raise click.ClickException("--base needs git, which is not installed") from None
    if done.returncode:
        raise click.ClickException(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
