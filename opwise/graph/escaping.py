"""Texts that a terminal can show: no name of a user moves its cursor or changes its state."""

from __future__ import annotations

import re
from functools import cache


def printable(text: str) -> str:
    """Return a text with control characters and the like escaped, as ``\\x1b``.

    So no name moves a terminal's cursor, changes its colours or turns the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines with what controls a terminal escaped, as ``printable`` does.

    Line feeds and tabs stay, and letters and spaces of any kind.
    """
    return _controls().sub(lambda found: _escaped(found[0]), text)


@cache
def _controls() -> re.Pattern[str]:
    """Return the pattern of control characters, and of marks that turn or hide text."""
    return re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def _escaped(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii")
