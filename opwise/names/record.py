"""The names that Theano's releases had: ``recorded.json.gz``, read when a program asks for a name
that opwise lacks. ``tests/legacy/record_names.py`` writes it and describes its form.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

#: the releases, oldest first, by the digit that stands for each in the record
RELEASES = {"6": "0.6.0", "7": "0.7.0", "8": "0.8.2", "9": "0.9.0", "1": "1.0.5"}
NEWEST = "1"


class Recorded(NamedTuple):
    """A name of a module of Theano."""

    #: the module and the name
    dotted: str
    #: module, function, class, exception, Op, object or constant
    kind: str
    #: digits of RELEASES
    releases: str
    #: the dotted name under which it is defined: another one if the module only imports it
    home: str

    def is_in(self, releases: str | None) -> bool:
        """Return whether one of some releases has the name (default: all)."""
        return releases is None or not set(releases).isdisjoint(self.releases)

    def span(self) -> str:
        """Return the releases that have the name, as text."""
        known = [release for digit, release in RELEASES.items() if digit in self.releases]
        return known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"


@cache
def modules() -> dict[str, dict[str, str]]:
    """Return {dotted name of a module: {group: its names}}, as the record has them."""
    import gzip  # few programs ask for a name that opwise lacks
    import json

    with gzip.open(os.path.join(os.path.dirname(__file__), "recorded.json.gz")) as file:
        return json.load(file)


@cache
def names(module: str) -> dict[str, Recorded]:
    """Return the names of a module; none if Theano has no such module."""
    found = {}
    for group, words in modules().get(module, {}).items():
        kind, releases, *home = group.split(" ")
        for word in words.split(" "):
            name, _, own = word.partition("=")
            parent = home[0] if home else module
            target = own or name
            found[name] = Recorded(
                f"{module}.{name}", kind, releases,
                target if parent == "." else f"{parent}.{target}",
            )  # fmt: skip
    return found


#: parts of the names of modules whose names programs do not use where there are others
_UNUSUAL = ("sandbox", "misc", "tests")


@cache
def _usual() -> dict[str, Recorded]:
    """Return {home: the shortest of the names that stand for the same}."""

    def rank(each: Recorded) -> tuple[bool, int, int]:
        parts = each.dotted.split(".")
        return not set(parts).isdisjoint(_UNUSUAL), len(parts), len(each.dotted)

    found: dict[str, Recorded] = {}
    for module in modules():
        for each in names(module).values():
            if each.home not in found or rank(each) < rank(found[each.home]):
                found[each.home] = each
    return found


def usual(recorded: Recorded) -> Recorded:
    """Return the name that programs use for a thing: the shortest of its names."""
    return _usual()[recorded.home]
