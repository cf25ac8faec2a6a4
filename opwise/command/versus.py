"""The subcommand ``versus``: runs a program in two configurations, in turn, and compares them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from opwise.command import diff, files, programs
from opwise.command.programs import Ended, PythonProgram
from opwise.profiling import progress
from opwise.profiling.files import printable
from opwise.profiling.reports.wording import counted


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
    default=7,
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
    with contextlib.ExitStack() as stack:
        folder = output or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        after = _Side(folder / "after", program, after_flags)
        earlier, moved = program, None
        if base:
            moved = stack.enter_context(_checkout(base, program.folder))
        elif other:
            earlier = replace(program, name=str(other), is_module=False)
        before = _Side(folder / "before", earlier, before_flags, moved)
        done = _alternate(before, after, times)
        for name, side in (("before", before), ("after", after)):
            _show_stderr(name, side.stderr)
        if done < times:
            click.echo(f"interrupted after {max(done, 0)} of {times} runs", err=True)
            shown["fail_above"] = None
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


def _alternate(before: _Side, after: _Side, times: int) -> int:
    """Run both sides in turn; return how many runs of both ended, without the warm-up run.

    Return -1 if Ctrl-C ended the warm-up run.
    """
    with progress.shown("running", 2 * (times + 1)) as bar:
        for number in range(times + 1):
            try:
                for side in (before, after):
                    side.run(number)
                    bar.advance()
            except KeyboardInterrupt:
                for side in (before, after):  # one of them may have no counterpart
                    side.path(number).unlink(missing_ok=True)
                return number - 1
    return times


#: at most how many lines of a program's stderr are shown
_STDERR = 40


def _show_stderr(name: str, lines: list[str]) -> None:
    """Show the lines that a side wrote to stderr."""
    if lines:
        click.echo(f"{name}, on stderr:", err=True)
    for line in lines[:_STDERR]:
        click.echo(f"  {printable(line)}", err=True)
    if len(lines) > _STDERR:
        click.echo(f"  ({counted(len(lines) - _STDERR, 'more line')})", err=True)


class _Side:
    """One side of the comparison: a program, its flags, and the profiles of its runs."""

    def __init__(
        self,
        folder: Path,
        program: PythonProgram,
        flags: str,
        moved: tuple[Path, Path] | None = None,
    ) -> None:
        #: the folder of the profiles
        self.folder = folder.absolute()
        self.flags = flags
        #: (repository, checkout): files of the repository are taken from the checkout
        self.moved = moved
        script = None if program.is_module else self._place(Path(program.name).absolute())
        self.command = program.command(script)
        self._stderr: dict[str, None] = {}
        files.make_folder(self.folder)
        self._clear()

    def _clear(self) -> None:
        """Delete profiles of an earlier comparison; refuse a folder with other files."""
        for old in self.folder.glob("[0-9][0-9][0-9].json"):
            old.unlink()
        others = files.members(self.folder)
        if others:
            raise click.BadParameter(
                f"{printable(str(others[0]))} is not a profile of `opwise versus`: name another "
                "folder",
                param_hint="--output",
            )

    @property
    def stderr(self) -> list[str]:
        """The lines that the runs wrote to stderr, each once."""
        return list(self._stderr)

    def path(self, number: int) -> Path:
        """Return the file of the profile of a run."""
        return self.folder / f"{number:03}.json"

    def _place(self, path: Path) -> Path:
        """Return the path in the checkout for a path in the repository."""
        if self.moved and path.is_relative_to(self.moved[0]):
            return self.moved[1] / path.relative_to(self.moved[0])
        return path

    def run(self, number: int) -> None:
        """Run the program once. Run 0 warms up caches; its profile is deleted.

        Raises KeyboardInterrupt after Ctrl-C, and ClickException if the program fails.
        """
        path = self.path(number)
        cwd = self._place(Path.cwd())
        ended = programs.run(self.command, self._environment(path), cwd=cwd, capture=True)
        if ended.interrupted:
            raise KeyboardInterrupt
        stderr = self._in_repository(ended.stderr)
        if ended.returncode or not path.exists():
            command = self._in_repository(" ".join(self.command))
            raise click.ClickException(f"{command} failed:\n{stderr.strip() or _why_not(ended)}")
        for child in self.folder.glob(f"{number:03}.*.json"):  # of processes that it started
            child.unlink()
        self._stderr.update(dict.fromkeys(filter(str.strip, stderr.splitlines())))
        if number == 0:
            path.unlink()
        elif self.moved:
            self._rename_paths(path)

    def _environment(self, path: Path) -> dict[str, str]:
        environment = files.profiled(path, flags=self.flags)
        if "PYTHONPATH" in environment:
            parts = environment["PYTHONPATH"].split(os.pathsep)
            environment["PYTHONPATH"] = os.pathsep.join(
                str(self._place(Path(part).absolute())) if part else part for part in parts
            )
        return environment

    def _in_repository(self, text: str) -> str:
        """Return a text with paths in the repository instead of those in the checkout."""
        return text.replace(str(self.moved[1]), str(self.moved[0])) if self.moved else text

    def _rename_paths(self, path: Path) -> None:
        """Put paths in the repository into a profile: the checkout is temporary."""
        assert self.moved is not None
        repository, checkout = (json.dumps(str(folder))[1:-1] for folder in self.moved)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(checkout, repository), encoding="utf-8")


def _why_not(ended: Ended) -> str:
    """Return why a run without a message on stderr has no profile."""
    if ended.signal_name:
        return f"it was ended by {ended.signal_name}"
    if ended.returncode:
        return f"its exit status is {ended.returncode}"
    return "it compiled no function, so there is no profile"


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
