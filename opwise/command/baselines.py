"""Baselines on disk: the profiles of several runs of a program, under a name.

A baseline is a folder with a file that describes it and the folder ``runs`` with the profiles.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from opwise.command import files
from opwise.command.programs import PythonProgram
from opwise.errors import ProfileFormatError
from opwise.hardware import cpu
from opwise.linkers import resources
from opwise.profiling.files import printable, read_limited, write_whole
from opwise.profiling.profile import Profile
from opwise.version import __version__

#: where baselines lie, in the working directory
FOLDER = Path(".opwise") / "baselines"

_FORMAT, _VERSION = "opwise baseline", 1
#: the file that describes a baseline, and the folder of its profiles
_ABOUT, _RUNS = "baseline.json", "runs"
#: a file name on every system; a leading dot is for baselines that are being saved
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def here() -> dict[str, Any]:
    """Return what is known of this machine as far as times depend on it."""
    return {
        "processor": cpu.processor(),
        "processors": resources.available(),
        "architecture": platform.machine(),
        "system": platform.system(),
    }


def words(machine: dict[str, Any]) -> str:
    """Return what ``here`` returned on a machine in words."""
    return "{processor}, processors: {processors}, {architecture}, {system}".format(**machine)


@dataclass(frozen=True)
class Baseline:
    """What is known of a baseline without its profiles."""

    name: str
    #: the number of its runs
    runs: int
    program: PythonProgram
    flags: str = ""
    #: when its last run ended, ISO 8601
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    opwise: str = __version__
    machine: dict[str, Any] = field(default_factory=here)

    @property
    def command(self) -> str:
        """The program with its arguments, as they were given."""
        start = ("-m",) if self.program.is_module else ()
        return " ".join((*start, self.program.name, *self.program.args))

    def to_json(self) -> str:
        """Return the text of the file that describes it."""
        about = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        return json.dumps(about, indent=1)

    @classmethod
    def from_json(cls, text: str, name: str) -> Baseline:
        """Return the Baseline of a text. Raises ValueError."""
        about = json.loads(text)
        if not isinstance(about, dict) or about.pop("format", None) != _FORMAT:
            raise ValueError("it does not describe a baseline")
        if (version := about.pop("version", None)) != _VERSION:
            raise ValueError(f"its format has version {version!r}; this is version {_VERSION}")
        try:
            program = about.pop("program")
            program["args"] = tuple(program["args"])
            found = cls(**{**about, "name": name}, program=PythonProgram(**program))
            words(found.machine)
            texts = found.flags, found.date, found.opwise, found.program.name, *found.program.args
            valid = all(isinstance(text, str) for text in texts)
            valid = valid and isinstance(found.runs, int) and 0 < found.runs < 1000
        except (TypeError, KeyError, AttributeError):
            valid = False
        if not valid:
            raise ValueError("fields of it are missing or of another type")
        return found


class Baselines:
    """The baselines in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_name(self, name: str) -> None:
        """Raise BadParameter for a name that no baseline can have."""
        if not _NAME.fullmatch(name):
            raise click.BadParameter(
                f"{printable(name)!r} cannot name a baseline: use up to 100 letters of English, "
                "digits, '.', '_' and '-', and begin with a letter or a digit",
                param_hint="NAME",
            )

    def names(self) -> list[str]:
        """Return the names of the baselines, sorted."""
        if not self.folder.is_dir():
            return []
        return sorted(p.name for p in self.folder.iterdir() if p.is_dir() and self._is_name(p))

    def _is_name(self, path: Path) -> bool:
        return _NAME.fullmatch(path.name) is not None

    def has(self, name: str) -> bool:
        """Return whether there is a baseline of a name, damaged or not."""
        return (self.folder / name).is_dir()

    def get(self, name: str) -> Baseline:
        """Return the baseline of a name. Raises ClickException if it is missing or damaged."""
        self.check_name(name)
        if not self.has(name):
            there = ", ".join(self.names())
            known = f"its baselines: {there}" if there else "it has no baseline"
            raise click.ClickException(
                f"{printable(str(self.folder))} has no baseline {name}; {known}. To save it: "
                f"opwise baseline save {name} SCRIPT"
            )
        path = self.folder / name / _ABOUT
        try:
            return Baseline.from_json(read_limited(path, 1 << 20).decode("utf-8"), name)
        except (OSError, ValueError) as error:
            raise self._damaged(name, path, error) from None

    def profiles(self, found: Baseline) -> list[Profile]:
        """Return the profiles of a baseline. Raises ClickException if one is not valid."""
        profiles = []
        for number in range(1, found.runs + 1):
            path = self.folder / found.name / _RUNS / f"{number:03}.json"
            try:
                profiles.append(Profile.load(path))
            except (ProfileFormatError, OSError) as error:
                raise self._damaged(found.name, path, error) from None
        return profiles

    def _damaged(self, name: str, path: Path, error: Exception) -> click.ClickException:
        reason = str(error.strerror if isinstance(error, OSError) else error).rstrip(".")
        if not reason.startswith(str(path)):
            reason = f"{path}: {reason}"
        return click.ClickException(
            f"baseline {name} is damaged: {printable(reason)}. Save it again with opwise baseline "
            f"save --replace {name}, or delete it with opwise baseline remove {name}"
        )

    @contextmanager
    def saving(self, name: str) -> Iterator[Path]:
        """Yield a folder for the profiles of a new baseline, which disappears after an error."""
        files.make_folder(self.folder)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".saving-") as folder:
            yield Path(folder) / name / _RUNS

    def keep(self, found: Baseline, runs: Path) -> None:
        """Make a baseline of profiles in a folder of ``saving``; it replaces one of its name."""
        made, kept = runs.parent, self.folder / found.name
        write_whole(made / _ABOUT, found.to_json())
        if kept.exists():
            kept.rename(made.parent / "replaced")
        made.rename(kept)

    def remove(self, name: str) -> None:
        """Delete a baseline, damaged or not. Raises ClickException if there is none."""
        self.check_name(name)
        if not self.has(name):
            self.get(name)
        shutil.rmtree(self.folder / name)
