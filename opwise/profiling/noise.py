"""Noise: whether a difference between repeated runs is real.

Each run is one observation of every row. Two sides differ if a rank test (Mann-Whitney, two-sided)
says so after correction for the number of rows (Benjamini and Hochberg). The sum of all is one row
and needs none.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace

from opwise.profiling import compare
from opwise.profiling.compare import Difference
from opwise.profiling.merge import merge

#: how often a difference that is none may be taken for one
LEVEL = 0.05
#: a row with at least this share of the time is judged among its like, not among all small ones
WORTH = 0.01
#: runs of either side below which the test cannot tell anything
FEWEST = 4


@dataclass(frozen=True)
class Repeated:
    """A row of a comparison of several runs with several others.

    row: the sums of all runs. mine, theirs: by run, the nanoseconds of one call. p: how likely so
    large a difference is without one, corrected; None where a side has too few runs or none. level:
    what p would be compared with, were it not corrected.
    """

    row: Difference
    mine: tuple[float, ...]
    theirs: tuple[float, ...]
    p: float | None = None
    level: float = LEVEL

    @property
    def before(self):
        """The median of the first side, nanoseconds a call; None without any."""
        return statistics.median(self.mine) if self.mine else None

    @property
    def after(self):
        """The median of the other side, nanoseconds a call; None without any."""
        return statistics.median(self.theirs) if self.theirs else None

    @property
    def ratio(self):
        """The second median by the first; None where there is none."""
        return self.after / self.before if self.before and self.after else None

    @property
    def verdict(self):
        """'slower', 'faster', 'noise'; '' where nothing can be said."""
        if self.p is None or self.ratio is None:
            return ""
        if self.p >= LEVEL:
            return "noise"
        return "slower" if self.ratio > 1 else "faster"

    def interval(self):
        """Return (low, high): the ratios that the test does not rule out, at the row's level.

        They are those r for which ``mine`` times r and ``theirs`` do not differ. So 1 is among them
        exactly where the verdict is not 'slower' or 'faster'. Raises ValueError without both sides.
        """
        ratios = sorted(b / a for a in self.mine for b in self.theirs if a)
        if not ratios:
            raise ValueError("a row that one side lacks has no ratio")

        def is_out(k):
            """Return whether what lies between two of the ratios, k - 1 and k, is ruled out."""
            between = math.sqrt(ratios[k - 1] * ratios[k])
            return _p([a * between for a in self.mine], self.theirs) < self.level

        last = len(ratios) - 1
        if not last:
            return ratios[0], ratios[0]
        middle = (last + 1) // 2  # between the middle ratios nothing is ruled out
        below = range(1, middle + 1)
        above = range(middle, last + 1)
        low = bisect_left(below, True, key=lambda k: not is_out(k))
        high = middle + bisect_left(above, True, key=is_out) - 1
        return ratios[low], ratios[high]


def repeated(way, mine, theirs):
    """Return a Repeated for each row of a comparison, and one for all Applys together, in front.

    way: a function of two Profiles, as in ``compare.WAYS``. mine, theirs: the Profiles of the runs.
    """
    return Runs(mine, theirs).rows(way)


class Runs:
    """The runs of two sides, merged once for all ways to compare them.

    before, after: the Profile of all runs of a side. count: how many runs each side has.
    """

    def __init__(self, mine, theirs):
        self.count = len(mine), len(theirs)
        # as merged, so that equal Applys are counted in the same order; with as many calls as the
        # first
        first = merge(mine[:1])
        scaled = [[compare.like(merge([run]), first) for run in runs] for runs in (mine, theirs)]
        self._mine, self._theirs = scaled
        self.before, self.after = map(merge, scaled)

    @property
    def several(self):
        """Whether a side has more than one run."""
        return max(self.count) > 1

    def rows(self, way):
        """Return what ``repeated`` does."""
        total = self._observed(lambda *sides: [compare.total(*sides)])
        rows = self._observed(way)
        return [*_judged(total), *_judged(rows, WORTH * self.before.local_ns)]

    def _observed(self, way):
        """Return a Repeated for each row, without verdict."""
        rows = way(self.before, self.after)
        seen: tuple = defaultdict(list), defaultdict(list)
        for run in self._mine:
            for row in way(run, self.after):
                if row.mine and row.mine.calls:
                    seen[0][row.key].append(row.mine.ns / row.mine.runs)
        for run in self._theirs:
            for row in way(self.before, run):
                if row.theirs and row.theirs.calls:
                    seen[1][row.key].append(row.theirs.ns / row.theirs.runs)
        return [Repeated(row, tuple(seen[0][row.key]), tuple(seen[1][row.key])) for row in rows]


def _judged(rows, worth=0.0):
    """Return the rows with p where it can be told.

    p is corrected among the rows of which a side has at least ``worth`` nanoseconds; that of the
    others among all. Where even the clearest difference could not reach the level in so few runs,
    nothing is told.
    """
    told = [r for r in rows if min(len(r.mine), len(r.theirs)) >= FEWEST and r.ratio is not None]
    large = [r for r in told if max(r.row.mine.ns, r.row.theirs.ns) >= worth]
    found: dict = {}
    for family in (told, large):
        found.update(_corrected(family))
    return [replace(r, **found.get(id(r), {})) for r in rows]


def _corrected(rows):
    """Return {id of a row: its p and level} of rows that are judged together."""
    if not rows:
        return {}
    from scipy import stats  # takes a second to import

    corrected = stats.false_discovery_control([_p(r.mine, r.theirs) for r in rows])
    # the largest p, before the correction, at which a row counts as different
    level = LEVEL * max(1, sum(p < LEVEL for p in corrected)) / len(rows)
    return {
        id(r): {
            "p": float(p) if p < LEVEL or _least(r) * len(rows) < LEVEL else None,
            "level": level,
        }
        for r, p in zip(rows, corrected, strict=True)
    }


def _p(mine, theirs):
    """Return how likely so large a difference of two samples is without one; 1.0 for equal ones."""
    from scipy import stats

    p = float(stats.mannwhitneyu(mine, theirs, method="auto").pvalue)
    return 1.0 if math.isnan(p) else p  # all values are one and the same


def _least(r):
    """Return the smallest p that the test can give for so many runs."""
    return 2 / math.comb(len(r.mine) + len(r.theirs), len(r.mine))
