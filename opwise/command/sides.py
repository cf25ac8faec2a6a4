"""Sides of a comparison: a program, its flags, and the profiles of its runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from opwise.command import files, programs
from opwise.command.programs import Ended, PythonProgram
from opwise.profiling import gate
from opwise.profiling.files import printable
from opwise.profiling.profile import Profile
from opwise.profiling.reports.wording import counted

#: how often either side runs by default
RUNS = 7


def check_runs(times: int, limits: gate.Limits | None) -> None:
    """Refuse so few runs that what has a limit could not be judged."""
    if times < (fewest := gate.fewest_runs(limits or {})):
        raise click.UsageError(
            f"these limits of --fail-above need at least --runs {fewest}: fewer runs cannot tell "
            "a difference from noise"
        )


#: at most how many lines of a program's stderr are shown
_STDERR = 40


def show_stderr(name: str, lines: list[str]) -> None:
    """Show the lines that a side wrote to stderr."""
    if lines:
        click.echo(f"{name}, on stderr:", err=True)
    for line in lines[:_STDERR]:
        click.echo(f"  {printable(line)}", err=True)
    if len(lines) > _STDERR:
        click.echo(f"  ({counted(len(lines) - _STDERR, 'more line')})", err=True)


class Side:
    """One side of the comparison: a program, its flags, and the profiles of its runs."""

    def __init__(
        self,
        folder: Path,
        program: PythonProgram,
        flags: str,
        moved: tuple[Path, Path] | None = None,
        before_run: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        #: the folder of the profiles
        self.folder = folder.absolute()
        self.flags = flags
        #: (repository, checkout): files of the repository are taken from the checkout
        self.moved = moved
        #: what is measured before each run and kept in its profile: seconds by name
        self.before_run = before_run
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
        measured = self.before_run() if self.before_run and number else {}
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
        if measured:
            profile = Profile.load(path)
            replace(profile, environment={**profile.environment, **measured}).save(path)

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
