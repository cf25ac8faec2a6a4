"""What setuptools' module ``pkg_resources`` gave programs: versions, and the files of packages.

setuptools 82 dropped it. ``library.pkg_resources`` is the module itself where it is installed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

#: how a part of a version compares: words such as "rc" come before the end of a version
_WORD, _END, _NUMBER = range(3)
#: words that come after the end of a version
_LATER = {"post", "r", "rev"}


class ResolutionError(Exception):
    """An error of a requirement."""


class DistributionNotFound(ResolutionError):
    """A required package is not installed."""


class VersionConflict(ResolutionError):
    """A required package is installed in another version."""


@dataclass(frozen=True)
class Distribution:
    """An installed package."""

    project_name: str
    version: str

    @property
    def key(self) -> str:
        return self.project_name.lower()

    @property
    def parsed_version(self) -> tuple[Any, ...]:
        return parse_version(self.version)


def parse_version(text: str) -> tuple[Any, ...]:
    """Return a version as a tuple that compares as versions do: "1.9" < "1.10rc1" < "1.10"."""
    public = text.lower().removeprefix("v").partition("+")[0]
    parts: list[tuple[int, int, str]] = []
    for part in [*re.findall(r"\d+|[a-z]+", public), ""]:
        if part.isdigit():
            parts.append((_NUMBER, int(part), ""))
            continue
        while parts and parts[-1] == (_NUMBER, 0, ""):  # 1.0 is 1, and 1.0rc1 is 1rc1
            parts.pop()
        kind = _NUMBER if part in _LATER else _WORD if part else _END
        parts.append((kind, -1 if part in ("dev", *_LATER) else 0, part))
    return tuple(parts)


def get_distribution(name: str) -> Distribution:
    """Return the installed package of a name or requirement, as in "numpy" and "numpy>=1.6".

    A module that belongs to no installed package, as ``theano`` here, counts by its
    ``__version__``.

    Raises DistributionNotFound if there is none, VersionConflict if it has another version.
    """
    match = re.match(r"\s*([\w.-]+)(?:\[.*?\])?(.*)", name)
    if match is None:
        raise ValueError(f"{name!r} is no requirement: write the name of a package")
    project, condition = match.groups()
    try:
        version = importlib.metadata.version(project)
    except importlib.metadata.PackageNotFoundError:
        try:
            version = str(importlib.import_module(project.lower()).__version__)
        except (ImportError, AttributeError):
            raise DistributionNotFound(f"the package {project!r} is not installed") from None
    found = Distribution(project, version)
    for sign, bound in re.findall(r"(==|!=|<=|>=|<|>)\s*([\w.]+)", condition):
        if not _fulfils(found.parsed_version, sign, parse_version(bound)):
            raise VersionConflict(f"{project} {version} is installed, not {project}{sign}{bound}")
    return found


def _fulfils(version: tuple[Any, ...], sign: str, bound: tuple[Any, ...]) -> bool:
    match sign:
        case "==":
            return version == bound
        case "!=":
            return version != bound
        case "<=":
            return version <= bound
        case ">=":
            return version >= bound
        case "<":
            return version < bound
    return version > bound


def require(*requirements: str) -> list[Distribution]:
    """Return the installed packages of requirements; raise as ``get_distribution`` does."""
    return [get_distribution(requirement) for requirement in requirements]


def iter_entry_points(group: str, name: str | None = None) -> Iterator[Any]:
    """Yield the entry points that installed packages declare in a group."""
    for entry in importlib.metadata.entry_points(group=group):
        if name is None or entry.name == name:
            yield entry


def declare_namespace(name: str) -> None:
    """Do nothing: Python has namespace packages of its own."""


# --- files of packages ----------------------------------------------------------------------------


def resource_filename(package: str, name: str) -> str:
    """Return the path of a file beside a module, or in a package, of a dotted name."""
    module = sys.modules.get(package) or importlib.import_module(package)
    return os.path.join(os.path.dirname(os.path.abspath(str(module.__file__))), *name.split("/"))


def resource_string(package: str, name: str) -> bytes:
    return Path(resource_filename(package, name)).read_bytes()


def resource_stream(package: str, name: str) -> IO[bytes]:
    return open(resource_filename(package, name), "rb")


def resource_exists(package: str, name: str) -> bool:
    return os.path.exists(resource_filename(package, name))


def resource_isdir(package: str, name: str) -> bool:
    return os.path.isdir(resource_filename(package, name))


def resource_listdir(package: str, name: str) -> list[str]:
    return os.listdir(resource_filename(package, name))
