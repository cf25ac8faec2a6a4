"""Advice on one function as plain data: tips, what was tried in vain, findings; and its text."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tip:
    """Something that was tried on a function.

    title: what; do: the flag or line to write. before, after: seconds of a call, medians of so many
    rounds. p: how likely noise alone looks like such a gain. ulp, relative: the largest difference
    of the results (see ``difference.Difference``). verdict: 'faster' for a tip, otherwise why it is
    none.
    """

    title: str
    do: str
    before: float
    after: float
    rounds: int
    p: float
    ulp: float
    relative: float
    verdict: str

    @property
    def ratio(self):
        """How many times faster."""
        return self.before / self.after


@dataclass(frozen=True)
class Finding:
    """Something that was seen in a function, or not tried. subject: 'Python', 'fusion', 'call',
    'compiler', 'shapes' or 'not tried'."""

    subject: str
    text: str


@dataclass(frozen=True)
class Advice:
    """What was found out about one function.

    name: of the function; seconds: of one call as it is. tips: what made it faster, the best first;
    rejected: what was tried and did not, or changed the results; findings: what was not tried, and
    what was seen.
    """

    name: str
    seconds: float
    tips: tuple[Tip, ...] = ()
    rejected: tuple[Tip, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __str__(self):
        return "\n".join(_lines(self))

    __repr__ = __str__


_SUBJECTS = {
    "Python": "Runs in Python",
    "fusion": "Not fused",
    "compiler": "Compiler",
    "shapes": "Checks of shapes",
    "call": "Seen",
    "not tried": "Not tried",
}
_LEGEND = (
    "  gain: time before by time after; p: how likely noise alone looks like it (Mann-Whitney "
    "test)",
    "  ulp, relative: the largest difference of the results, in units in the last place of the "
    "narrower dtype, and by the largest magnitude among them",
)
_HEAD = ("gain", "before", "after", "p", "ulp", "relative", "")


def _lines(advice):
    tried = len(advice.tips) + len(advice.rejected)
    yield f"{advice.name}: {duration(advice.seconds)} a call; {_count(tried)} tried"
    rows = [_row(tip, f"{tip.title}: {tip.do}") for tip in advice.tips]
    rows += [_row(tip, f"{tip.title}: {tip.verdict}") for tip in advice.rejected]
    widths = [max(map(len, column)) for column in list(zip(_HEAD, *rows, strict=True))[:-1]]
    if advice.tips:
        yield from _table("Tips", rows[: len(advice.tips)], widths)
    else:
        yield "  No tip: nothing that was tried made it faster."
    if advice.rejected:
        yield from _table("Tried in vain", rows[len(advice.tips) :], widths)
    if rows:
        yield from _LEGEND
    for subject, title in _SUBJECTS.items():
        found = [finding.text for finding in advice.findings if finding.subject == subject]
        if found:
            yield f"  {title}"
            yield from (f"    {text}" for text in found)


def _table(title, rows, widths):
    yield f"  {title}"
    for row in [_HEAD, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"    {'  '.join([*cells, row[-1]])}".rstrip()


def _row(tip, what):
    return (
        f"{tip.ratio:.2f}x", duration(tip.before), duration(tip.after), f"{tip.p:.1g}",
        "-" if math.isinf(tip.ulp) else f"{tip.ulp:.3g}" if tip.ulp >= 1e6 else str(tip.ulp),
        "-" if math.isinf(tip.relative) else f"{tip.relative:.1e}" if tip.relative else "0", what,
    )  # fmt: skip


def _count(n):
    return "1 change" if n == 1 else f"{n} changes"


def duration(seconds):
    """Return a time as text with its unit, of three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{_three(seconds / size)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def _three(number):
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}"
