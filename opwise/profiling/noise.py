"""Noise: whether a difference between repeated runs is real.

Each run is one observation of every row. Two sides differ if a two-sided rank test (Mann and
Whitney) says so after correction for the number of rows (Benjamini and Hochberg). The sum of all
Applys is a single row and needs no correction.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opwise.profiling import compare
from opwise.profiling.compare import Comparison, Difference
from opwise.profiling.merge import merge
from opwise.profiling.model import ProfileData

#: probability of taking noise for a difference, at most
LEVEL = 0.05
#: rows with at least this share of the time are corrected among themselves, without the small ones
WORTH = 0.01
#: runs that either side needs: with fewer the test cannot reach the level
FEWEST = 4


@dataclass(frozen=True)
class Repeated:
    """A row of a comparison of several runs with several others."""

    #: the sums of all runs
    row: Difference
    #: nanoseconds of one call, for each run of the first side
    mine: tuple[float, ...]
    #: the same for each run of the other side
    theirs: tuple[float, ...]
    #: probability of so large a difference by noise alone, corrected; None with too few runs
    p: float | None = None
    #: level that an uncorrected p would be compared with
    level: float = LEVEL

    @property
    def before(self) -> float | None:
        """The median of the first side, nanoseconds a call; None without runs."""
        return statistics.median(self.mine) if self.mine else None

    @property
    def after(self) -> float | None:
        """The median of the other side, nanoseconds a call; None without runs."""
        return statistics.median(self.theirs) if self.theirs else None

    @property
    def ratio(self) -> float | None:
        """The second median by the first; None if a side has none."""
        return self.after / self.before if self.before and self.after else None

    @property
    def change(self) -> float | None:
        """The second median minus the first, nanoseconds a call; None if a side has none."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def verdict(self) -> str:
        """'slower', 'faster', 'noise'; '' with too few runs."""
        if self.p is None or self.ratio is None:
            return ""
        if self.p >= LEVEL:
            return "noise"
        return "slower" if self.ratio > 1 else "faster"

    def interval(self) -> tuple[float, float]:
        """Return (low, high): the confidence interval of the ratio, at the row's level.

        It holds each r for which ``mine`` times r does not differ from ``theirs``; so it contains 1
        unless the verdict is 'slower' or 'faster'. Raises ValueError if a side has no runs.
        """
        ratios = sorted(b / a for a in self.mine for b in self.theirs if a)
        if not ratios:
            raise ValueError("a row that only one side has has no ratio")

        def is_out(k: int) -> bool:
            """Return whether the test rules out ratios between numbers k - 1 and k."""
            between = math.sqrt(ratios[k - 1] * ratios[k])
            return _p([a * between for a in self.mine], self.theirs) < self.level

        last = len(ratios) - 1
        if not last:
            return ratios[0], ratios[0]
        middle = (last + 1) // 2  # the test never rules out what lies between the middle ratios
        below = range(1, middle + 1)
        above = range(middle, last + 1)
        low = bisect_left(below, True, key=lambda k: not is_out(k))
        high = middle + bisect_left(above, True, key=is_out) - 1
        return ratios[low], ratios[high]


def repeated(
    comparison: Comparison, mine: Sequence[ProfileData], theirs: Sequence[ProfileData]
) -> list[Repeated]:
    """Return a Repeated for all Applys together, then one for each row of a comparison.

    comparison: a function of two profiles, as in ``compare.GROUPINGS``. mine, theirs: the profiles
    of the runs.
    """
    return Runs(mine, theirs).rows(comparison)


class Runs:
    """The runs of two sides, merged once for all comparisons."""

    def __init__(self, mine: Sequence[ProfileData], theirs: Sequence[ProfileData]) -> None:
        #: number of runs of each side
        self.count = len(mine), len(theirs)
        # merging orders equal Applys; scaling gives all runs as many calls as the first
        first = merge(mine[:1])
        self._mine = [compare.scaled_to(merge([run]), first) for run in mine]
        self._theirs = [compare.scaled_to(merge([run]), first) for run in theirs]
        #: the profile of all runs of the first side
        self.before = merge(self._mine)
        #: the profile of all runs of the other side
        self.after = merge(self._theirs)

    @property
    def several(self) -> bool:
        """Whether a side has more than one run."""
        return max(self.count) > 1

    def rows(self, comparison: Comparison) -> list[Repeated]:
        """Return what ``repeated`` does."""
        total = self._observed(lambda mine, theirs: [compare.total(mine, theirs)])
        rows = self._observed(comparison)
        return [*_judged(total), *_judged(rows, WORTH * self.before.local_ns)]

    def _observed(self, comparison: Comparison) -> list[Repeated]:
        """Return a Repeated for each row, without verdict."""
        mine: dict[Hashable, list[float]] = defaultdict(list)
        theirs: dict[Hashable, list[float]] = defaultdict(list)
        for run in self._mine:
            for row in comparison(run, self.after):
                if row.mine and row.mine.calls:
                    mine[row.key].append(row.mine.ns / row.mine.runs)
        for run in self._theirs:
            for row in comparison(self.before, run):
                if row.theirs and row.theirs.calls:
                    theirs[row.key].append(row.theirs.ns / row.theirs.runs)
        rows = comparison(self.before, self.after)
        return [Repeated(row, tuple(mine[row.key]), tuple(theirs[row.key])) for row in rows]


def _judged(rows: list[Repeated], worth: float = 0.0) -> list[Repeated]:
    """Return the rows with p, as far as there are enough runs.

    Rows of which a side has at least ``worth`` nanoseconds are corrected among themselves, others
    among all. p stays None if even the clearest difference could not reach the level.
    """
    tested = [r for r in rows if min(len(r.mine), len(r.theirs)) >= FEWEST and r.ratio is not None]
    large = [r for r in tested if _most_ns(r.row) >= worth]
    found: dict[int, dict[str, Any]] = {}
    for family in (tested, large):
        found.update(_corrected(family))
    return [replace(r, **found.get(id(r), {})) for r in rows]


def _most_ns(row: Difference) -> float:
    return max(side.ns for side in (row.mine, row.theirs) if side)


def _corrected(rows: list[Repeated]) -> dict[int, dict[str, Any]]:
    """Return {id of a row: its p and level} of rows that are corrected together."""
    if not rows:
        return {}
    from scipy import stats  # takes a second to import

    corrected = stats.false_discovery_control([_p(r.mine, r.theirs) for r in rows])
    # the largest uncorrected p at which a row counts as different
    level = LEVEL * max(1, sum(p < LEVEL for p in corrected)) / len(rows)
    return {
        id(r): {
            "p": float(p) if p < LEVEL or _least(r) * len(rows) < LEVEL else None,
            "level": level,
        }
        for r, p in zip(rows, corrected, strict=True)
    }


def _p(mine: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the p of the rank test of two samples; 1.0 if all values are equal."""
    from scipy import stats

    p = float(stats.mannwhitneyu(mine, theirs, method="auto").pvalue)
    return 1.0 if math.isnan(p) else p  # NaN: all values are equal


def _least(r: Repeated) -> float:
    """Return the smallest p that the test can give for so many runs."""
    return 2 / math.comb(len(r.mine) + len(r.theirs), len(r.mine))
