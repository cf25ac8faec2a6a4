"""The plain data of an advice: tips, changes that did not help, findings; and its text."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from opwise.tuning.measure import ALPHA


@dataclass(frozen=True)
class Tip:
    """A change that was tried on a function, and what was measured."""

    #: the change, in a few words
    title: str
    #: the flag or line to write
    do: str
    #: seconds of a call without the change, the median over the rounds
    before: float
    #: seconds of a call with the change, the median over the rounds
    after: float
    #: how many times both were measured
    rounds: int
    #: the probability that noise alone makes such a gain
    p: float
    #: the largest difference of the results, see ``difference.ResultDifference``
    ulp: float
    #: the largest difference of the results, see ``difference.ResultDifference``
    relative: float
    #: "faster", or the reason why the change is not a tip
    verdict: str

    @property
    def ratio(self) -> float:
        """How many times faster the function is with the change."""
        return self.before / self.after


@dataclass(frozen=True)
class Finding:
    """An observation about a function, or a change that could not be tried."""

    #: "Python", "fusion", "call", "compiler", "shapes" or "not tried"
    subject: str
    #: a sentence
    text: str


@dataclass(frozen=True)
class Advice:
    """The advice on one function."""

    #: the name of the function
    name: str
    #: seconds of one call without any change
    seconds: float
    #: changes that made it faster, the best first
    tips: tuple[Tip, ...] = ()
    #: changes that did not make it faster, or that changed the results
    rejected: tuple[Tip, ...] = ()
    #: observations, and changes that could not be tried
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def text(self, width: int | None = None) -> str:
        """Return the advice as text, its lines wrapped to ``width`` characters if that is given."""
        return "\n".join(line for whole in _lines(self) for line in _wrapped(*whole, width))


_SUBJECTS = {
    "Python": "Runs in Python",
    "fusion": "Not fused",
    "compiler": "Compiler",
    "shapes": "Dropped shape checks",
    "call": "Notes",
    "not tried": "Not tried",
}
_LEGEND = (
    "gain: time before divided by time after; p: the probability that noise alone makes such a "
    f"gain (Mann-Whitney test), significant if p < {ALPHA}",
    "ulp: the largest difference of the results, in units in the last place of the narrower "
    "dtype; relative: the same, divided by the largest magnitude in the array",
)
_HEAD = ("gain", "before", "after", "p", "ulp", "relative", "")

#: a line of text, and the indent of its continuation
_Line = tuple[str, int]
#: the least width of wrapped text
_NARROWEST = 30


def _lines(advice: Advice) -> Iterator[_Line]:
    tried = len(advice.tips) + len(advice.rejected)
    yield f"{advice.name}: {duration(advice.seconds)} a call; tried {_changes(tried)}", 2
    rows = [_row(tip, f"{tip.title}: {tip.do}") for tip in advice.tips]
    rows += [_row(tip, f"{tip.title}: {tip.verdict}") for tip in advice.rejected]
    widths = [max(map(len, column)) for column in list(zip(_HEAD, *rows, strict=True))[:-1]]
    if advice.tips:
        yield from _table("Tips", rows[: len(advice.tips)], widths)
    else:
        yield "  No tip: no change that was tried makes it faster.", 4
    if advice.rejected:
        yield from _table("Did not help", rows[len(advice.tips) :], widths)
    if rows:
        yield from ((f"  {line}", 4) for line in _LEGEND)
    for subject, title in _SUBJECTS.items():
        found = [finding.text for finding in advice.findings if finding.subject == subject]
        if found:
            yield f"  {title}", 4
            yield from ((f"    {text}", 6) for text in found)


def _table(title: str, rows: list[tuple[str, ...]], widths: list[int]) -> Iterator[_Line]:
    yield f"  {title}", 4
    indent = 4 + sum(widths) + 2 * len(widths)
    for row in [_HEAD, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"    {'  '.join([*cells, row[-1]])}".rstrip(), indent


def _wrapped(line: str, indent: int, width: int | None) -> list[str]:
    """Return a line wrapped to a width, with a hanging indent."""
    if width is None or len(line) <= width:
        return [line]
    return textwrap.wrap(
        line, max(width, indent + _NARROWEST), subsequent_indent=" " * indent,
        break_on_hyphens=False, break_long_words=False, replace_whitespace=False,
    )  # fmt: skip


def _row(tip: Tip, what: str) -> tuple[str, ...]:
    return (
        f"{tip.ratio:.2f}x", duration(tip.before), duration(tip.after), f"{tip.p:.1g}",
        "-" if math.isinf(tip.ulp) else f"{tip.ulp:.3g}" if tip.ulp >= 1e6 else str(tip.ulp),
        "-" if math.isinf(tip.relative) else f"{tip.relative:.1e}" if tip.relative else "0", what,
    )  # fmt: skip


def _changes(n: int) -> str:
    return "1 change" if n == 1 else f"{n} changes"


def duration(seconds: float) -> str:
    """Return a time as text with its unit, to three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def _three_digits(number: float) -> str:
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}"


def line_width() -> int | None:
    """Return the width of a line on stdout: COLUMNS, the terminal's width, or None for no limit."""
    if sys.stdout is not None and sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else None
