"""Which of Theano's names opwise has: for ``opwise doctor`` and the page of names."""

from __future__ import annotations

import importlib
import types
from typing import NamedTuple

from opwise.errors import MissingFeatureError
from opwise.names import record
from opwise.names.front import LegacyModule
from opwise.names.placeholder import Placeholder, placeholder, reason, text


class Covered(NamedTuple):
    """How opwise has the names of a module."""

    module: str
    working: list[str]
    #: {what opwise lacks, in a word or two: the names that raise for that reason}
    raising: dict[str, list[str]]
    #: names of Theano that raise AttributeError; there should be none
    missing: list[str]

    def count(self) -> tuple[int, int, int]:
        """Return how many names work, raise when they are used, and are missing."""
        raising = sum(map(len, self.raising.values()))
        return len(self.working), raising, len(self.missing)


def covered(module: str, releases: str | None = None) -> Covered:
    """Return how opwise has the names that a module of Theano had.

    releases: digits of ``record.RELEASES`` (default: all of them).
    """
    found = Covered(module, [], {}, [])
    try:
        imported = importlib.import_module(module)
    except ImportError:  # it needs a package that is not there
        imported = None
    for name, recorded in record.names(module).items():
        if not recorded.is_in(releases):
            continue
        try:
            value = getattr(imported, name) if imported else placeholder(recorded)
        except MissingFeatureError:
            found.raising.setdefault(reason(recorded.home).what, []).append(name)
            continue
        except AttributeError:
            found.missing.append(name)
            continue
        if isinstance(value, Placeholder):
            found.raising.setdefault(reason(value.recorded.home).what, []).append(name)
        else:
            found.working.append(name)
    return found


def modules(releases: str | None = None) -> list[str]:
    """Return the modules of Theano that have names in one of some releases (default: all)."""
    return sorted(
        module for module in record.modules()
        if any(each.is_in(releases) for each in record.names(module).values())
    )  # fmt: skip


def lacking(dotted: str) -> str | None:
    """Return what to tell a program that uses a dotted name, None if opwise has it.

    Attributes of an object that is not a module or class count as there: only running the program
    would tell.
    """
    parts = dotted.split(".")
    value: object = importlib.import_module(parts[0])
    for k, part in enumerate(parts[1:], 2):
        name = ".".join(parts[:k])
        recorded = record.names(getattr(value, "__name__", "")).get(part)
        try:
            value = getattr(value, part)
        except ImportError:  # it is there, and needs another package
            return None
        except AttributeError as missing:
            if not isinstance(value, types.ModuleType):
                return f"opwise has no {name}." if isinstance(value, type) else None
            try:
                value = importlib.import_module(name)
            except ImportError:
                if isinstance(value, LegacyModule) and parts[0] != "opwise":
                    return str(missing)
                # a module may know where it is
                hint = str(missing).partition("'. ")[2]
                return f"opwise has no {name}.{hint and ' '}{hint}"
        if isinstance(value, Placeholder):
            return text(recorded or value.recorded)
    return None
