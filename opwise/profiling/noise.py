"""Noise: whether a difference between repeated runs is real.

Each run is one observation of every row. Two sides differ if a rank test (Mann-Whitney, two-sided)
says so after correction for the number of rows (Benjamini and Hochberg). The sum of all is one row
and needs none.
"""

from __future__ import annotations

import math
import statistics
import warnings
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
    large a difference is without one, corrected; None where a side has too few runs or none.
    """

    row: Difference
    mine: tuple[float, ...]
    theirs: tuple[float, ...]
    p: float | None = None

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

    def interval(self, resamples=999):
        """Return (low, high): the ratio is between them in 95 % of resampled runs (bootstrap)."""
        import numpy as np
        from scipy import stats  # takes a second to import

        def ratio(a, b, axis):
            return np.median(b, axis=axis) / np.median(a, axis=axis)

        # a resample may have a median of 0
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = stats.bootstrap(
                (self.mine, self.theirs), ratio, n_resamples=resamples, vectorized=True,
                method="percentile", rng=np.random.default_rng(0),
            )  # fmt: skip
        return tuple(map(float, found.confidence_interval))


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
    p_of: dict = {}
    for family in (told, large):
        p_of.update(_corrected(family))
    return [replace(r, p=p_of.get(id(r))) for r in rows]


def _corrected(rows):
    """Return {id of a row: p} of rows that are judged together."""
    if not rows:
        return {}
    from scipy import stats  # takes a second to import

    found = [_p(stats, r) for r in rows]
    corrected = stats.false_discovery_control(found)
    return {
        id(r): float(p) if p < LEVEL or _least(r) * len(rows) < LEVEL else None
        for r, p in zip(rows, corrected, strict=True)
    }


def _p(stats, r):
    """Return the p-value of the rank test for one row; 1 if all observations are equal.

    There scipy divides by a variance of 0: NaN from 1.18 on, which the correction refuses.
    """
    if len({*r.mine, *r.theirs}) == 1:
        return 1.0
    return stats.mannwhitneyu(r.mine, r.theirs, method="auto").pvalue


def _least(r):
    """Return the smallest p that the test can give for so many runs."""
    return 2 / math.comb(len(r.mine) + len(r.theirs), len(r.mine))
