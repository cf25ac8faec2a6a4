"""Noise: whether a difference between repeated runs is real.

Each run is one observation of every row. Two sides differ if a two-sided rank test (Mann and
Whitney) says so after correction for the number of rows (Benjamini and Hochberg). The sum of all
Applys is a single row and needs no correction.

Other programs make a few calls very slow, and the mean of a run with them. So the median call of
each run is tested as well, by a stricter level (``Repeated.is_typical``), after the mean.

Sides that did not run in turn may have met the hardware at different speeds. Then each run has the
times of a fixed piece of work, the control; a time differs only if it changed by more than the
control did (``drift``).
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opwise.profiling import compare, histogram
from opwise.profiling.compare import Comparison, Difference
from opwise.profiling.merge import merge
from opwise.profiling.model import ApplyProfile, ProfileData

#: probability of taking noise for a difference, at most
LEVEL = 0.05
#: rows with at least this share of the time are corrected among themselves, without the small ones
WORTH = 0.01
#: runs that either side needs: with fewer the test cannot reach the level
FEWEST = 4


#: factor on the p of medians: both tests together take noise for a difference hardly more often
_STRICTER = 5
#: starts of the names, in the environment of a run, of the seconds of parts of the control: of the
#: mean and of the median repetition
CONTROL, TYPICAL_CONTROL = "seconds_control_", "seconds_typical_control_"
#: (least, most) factor by which the hardware may have taken longer for the second side
Drift = tuple[float, float]
#: of sides that ran in turn
STEADY: Drift = (1.0, 1.0)


class Observed:
    """What was observed of one quantity in the runs of two sides; the base of rows."""

    #: a value for each run of the first side
    mine: tuple[float, ...]
    #: the same for each run of the other side
    theirs: tuple[float, ...]
    #: probability of so large a difference by noise alone, corrected; None with too few runs
    p: float | None
    #: level that an uncorrected p would be compared with
    level: float
    #: factor by which the hardware alone may have changed the values
    drift: Drift

    @property
    def before(self) -> float | None:
        """The median of the first side; None without runs."""
        return statistics.median(self.mine) if self.mine else None

    @property
    def after(self) -> float | None:
        """The median of the other side; None without runs."""
        return statistics.median(self.theirs) if self.theirs else None

    @property
    def ratio(self) -> float | None:
        """The second median by the first; None if a side has none."""
        return self.after / self.before if self.before and self.after else None

    @property
    def change(self) -> float | None:
        """The second median minus the first; None if a side has none."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def sure_ratio(self) -> float | None:
        """The ratio without what the hardware may have added to it; None if a side has none."""
        return None if self.ratio is None else self.ratio / self.drift[1]

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

        It holds each r for which ``mine`` times r does not differ from ``theirs``, widened by the
        drift of the hardware; so it contains 1 unless the verdict is 'slower' or 'faster'. Raises
        ValueError if a side has no runs.
        """
        ratios = sorted(b / a for a in self.mine for b in self.theirs if a)
        if not ratios:
            raise ValueError("a row that only one side has has no ratio")

        def is_out(k: int) -> bool:
            """Return whether the test rules out ratios between numbers k - 1 and k."""
            between = math.sqrt(ratios[k - 1] * ratios[k])
            return _p([a * between for a in self.mine], self.theirs) < self.level

        least, most = self.drift
        last = len(ratios) - 1
        if not last:
            return ratios[0] / most, ratios[0] / least
        middle = (last + 1) // 2  # the test never rules out what lies between the middle ratios
        below = range(1, middle + 1)
        above = range(middle, last + 1)
        low = bisect_left(below, True, key=lambda k: not is_out(k))
        high = middle + bisect_left(above, True, key=is_out) - 1
        return ratios[low] / most, ratios[high] / least


@dataclass(frozen=True)
class Repeated(Observed):
    """A row of a comparison of several runs with several others."""

    #: the sums of all runs
    row: Difference
    #: nanoseconds of one call, for each run of the first side
    mine: tuple[float, ...]
    #: the same for each run of the other side
    theirs: tuple[float, ...]
    p: float | None = None
    level: float = LEVEL
    drift: Drift = STEADY
    #: whether one run each, and calls of one run alone vary enough to explain the difference
    is_within_one_run: bool = False
    #: whether the values are those of the median call, not of the mean
    is_typical: bool = False

    @property
    def verdict(self) -> str:
        """'slower', 'faster', 'noise'; '' if it is not known."""
        return "noise" if self.is_within_one_run else super().verdict


def is_within_one_run(row: Difference) -> bool:
    """Return whether calls of one run alone vary enough to explain a difference of two runs.

    False if not, and if the times of single calls are unknown. The spread between processes, which
    is unknown, comes on top of that.
    """
    means, error = [], 0.0
    for side in row.parts:
        if len(side) != 1 or side[0].estimated or side[0].inner:
            return False
        count = sum(n for _, n in side[0].histogram)
        if not count or not side[0].count:
            return False
        means.append(side[0].total / side[0].count)
        error += _variance(side[0]) / count
    return len(means) == 2 and abs(means[1] - means[0]) <= _ERRORS * math.sqrt(error)


#: how many standard errors two means may differ by chance, at the level of 0.05
_ERRORS = 1.96


def _variance(apply: ApplyProfile) -> float:
    """Return the variance of the times of single runs, square nanoseconds, by the histogram."""
    middles = [(sum(histogram.bounds(bucket)) / 2, n) for bucket, n in apply.histogram]
    count = sum(n for _, n in middles)
    mean = sum(ns * n for ns, n in middles) / count
    return sum(n * (ns - mean) ** 2 for ns, n in middles) / count


def drift(
    mine: Sequence[ProfileData], theirs: Sequence[ProfileData], control: str = CONTROL
) -> Drift:
    """Return how the hardware's speed may have changed from some runs to others, by the control.

    Each part of the control asks for something else of the hardware; the extremes count. control:
    CONTROL for means, TYPICAL_CONTROL for medians.
    """
    least, most = STEADY
    controls = _controls(theirs, control)
    for name, before in _controls(mine, control).items():
        after = controls.get(name)
        if after:
            ratio = statistics.median(after) / statistics.median(before)
            least, most = min(least, ratio), max(most, ratio)
    return least, most


def _controls(runs: Sequence[ProfileData], control: str) -> dict[str, list[float]]:
    """Return {part of the control: its seconds in each run}, as far as all runs have it."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for name, seconds in run.environment.items():
            if name.startswith(control) and seconds > 0:
                found[name].append(seconds)
    return {name: values for name, values in found.items() if len(values) == len(runs)}


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

    def __init__(
        self,
        mine: Sequence[ProfileData],
        theirs: Sequence[ProfileData],
        is_one_machine: bool = True,
    ) -> None:
        #: whether the times of both sides can be compared
        self.is_one_machine = is_one_machine
        #: number of runs of each side
        self.count = len(mine), len(theirs)
        #: how the hardware's speed may have changed between the sides
        self.drift = drift(mine, theirs) if is_one_machine else STEADY
        self._typical_drift = drift(mine, theirs, TYPICAL_CONTROL)
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
        means = self._judged(comparison, self._mine, self._theirs, self.drift)
        if min(self.count) < FEWEST or not self.is_one_machine:
            return means
        mine, theirs = (list(map(_of_median_calls, side)) for side in (self._mine, self._theirs))
        medians = self._judged(comparison, mine, theirs, self._typical_drift)
        return list(map(_decided, means, medians))

    def _judged(
        self,
        comparison: Comparison,
        mine: Sequence[ProfileData],
        theirs: Sequence[ProfileData],
        drift: Drift,
    ) -> list[Repeated]:
        """Return a Repeated for all Applys together, then for each row, by these profiles."""
        total = self._observed(lambda one, other: [compare.total(one, other)], mine, theirs, drift)
        rows = self._observed(comparison, mine, theirs, drift)
        if not self.is_one_machine:
            return [*total, *rows]
        return [*_judged(total), *_judged(rows, WORTH * self.before.local_ns)]

    def _observed(
        self,
        comparison: Comparison,
        runs_before: Sequence[ProfileData],
        runs_after: Sequence[ProfileData],
        drift: Drift,
    ) -> list[Repeated]:
        """Return a Repeated for each row, without verdict."""
        mine: dict[Hashable, list[float]] = defaultdict(list)
        theirs: dict[Hashable, list[float]] = defaultdict(list)
        for run in runs_before:
            for row in comparison(run, self.after):
                if row.mine and row.mine.calls:
                    mine[row.key].append(row.mine.ns / row.mine.runs)
        for run in runs_after:
            for row in comparison(self.before, run):
                if row.theirs and row.theirs.calls:
                    theirs[row.key].append(row.theirs.ns / row.theirs.runs)
        rows = comparison(self.before, self.after)
        return [
            Repeated(
                row, tuple(mine[row.key]), tuple(theirs[row.key]), drift=drift,
                is_within_one_run=not self.several and is_within_one_run(row),
            )
            for row in rows
        ]  # fmt: skip


def _of_median_calls(profile: ProfileData) -> ProfileData:
    """Return a profile in which each run of an Apply took the median, where that is known."""

    def typical(a: ApplyProfile) -> ApplyProfile:
        if not a.histogram or a.inner or a.estimated:
            return a
        return replace(a, total=round(a.count * a.quantile(0.5)))

    return replace(
        profile,
        functions=tuple(
            replace(f, applys=tuple(map(typical, f.applys))) for f in profile.functions
        ),
    )


def _decided(mean: Repeated, median: Repeated) -> Repeated:
    """Return the row of medians if only these differ, else that of means."""
    if median.p is None or mean.verdict in ("slower", "faster"):
        return mean
    stricter = replace(
        median, p=min(1.0, _STRICTER * median.p), level=median.level / _STRICTER, is_typical=True
    )
    return stricter if stricter.verdict in ("slower", "faster") else mean


def _judged(rows: list[Repeated], worth: float = 0.0) -> list[Repeated]:
    """Return the rows with p, as far as there are enough runs.

    Rows of which a side has at least ``worth`` nanoseconds are corrected among themselves, others
    among all. p stays None if even the clearest difference could not reach the level.
    """
    tested = [r for r in rows if is_testable(r)]
    large = [r for r in tested if _most_ns(r.row) >= worth]
    found: dict[int, dict[str, Any]] = {}
    for family in (tested, large):
        found.update(corrected(family))
    return [replace(r, **found.get(id(r), {})) for r in rows]


def is_testable(r: Observed) -> bool:
    """Return whether both sides have enough runs for a test."""
    return min(len(r.mine), len(r.theirs)) >= FEWEST and r.ratio is not None


def needed_runs(rows: int) -> int:
    """Return how many runs a side needs for verdicts on so many rows."""
    n = FEWEST
    while 2 / math.comb(2 * n, n) * rows >= LEVEL:
        n += 1
    return n


def _most_ns(row: Difference) -> float:
    return max(side.ns for side in (row.mine, row.theirs) if side)


def corrected(rows: Sequence[Observed]) -> dict[int, dict[str, Any]]:
    """Return {id of a row: its p and level} of rows that are corrected together."""
    if not rows:
        return {}
    from scipy import stats  # takes a second to import

    found = stats.false_discovery_control([_p_beyond_drift(r) for r in rows])
    # the largest uncorrected p at which a row counts as different
    level = LEVEL * max(1, sum(p < LEVEL for p in found)) / len(rows)
    return {
        id(r): {
            "p": float(p) if p < LEVEL or _least(r) * len(rows) < LEVEL else None,
            "level": level,
        }
        for r, p in zip(rows, found, strict=True)
    }


def _p_beyond_drift(r: Observed) -> float:
    """Return the p of a row; 1.0 if the hardware alone may have made the difference."""
    least, most = r.drift
    ratio = r.ratio or 1.0
    if (least, most) != STEADY and least <= ratio <= most:
        return 1.0
    factor = most if ratio > 1 else least
    return _p(r.mine, r.theirs if factor == 1 else [x / factor for x in r.theirs])


def _p(mine: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the p of the rank test of two samples; 1.0 if all values are equal."""
    from scipy import stats

    p = float(stats.mannwhitneyu(mine, theirs, method="auto").pvalue)
    return 1.0 if math.isnan(p) else p  # NaN: all values are equal


def _least(r: Observed) -> float:
    """Return the smallest p that the test can give for so many runs."""
    return 2 / math.comb(len(r.mine) + len(r.theirs), len(r.mine))
