"""Timing two functions in turn, round by round, and testing whether one is really faster.

Nothing here knows what the functions are: a timer ``(candidate, calls) -> seconds`` calls them, so
that tests can make up times.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: seconds that the calls of one round take, at least
ROUND = 4e-3
#: the least number of rounds (fewer prove nothing), and the largest
FEWEST, MOST = 5, 40
#: calls of one round, at most
CALLS = 20_000
#: a gain is significant if its p is smaller
ALPHA = 0.005
#: the least ratio of two medians that is worth a tip
WORTH = 1.05
#: a variant that is this many times slower in this many first rounds is not measured further
HOPELESS, FEW = 2.0, 3

#: (candidate, calls) -> the seconds that so many calls took
Timer = Callable[[Any, int], float]


@dataclass(frozen=True)
class Comparison:
    """Seconds of one call in each round, of the original and of a variant."""

    #: of the original
    before: tuple[float, ...]
    #: of the variant
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times faster the variant is, by the medians."""
        return statistics.median(self.before) / statistics.median(self.after)

    @property
    def p(self) -> float:
        """The probability that noise alone makes the variant look so much faster.

        By the one-sided Mann-Whitney test, which uses ranks: a few slow rounds change little.
        """
        if not self.enough:
            return 1.0
        if len(set(self.before + self.after)) == 1:
            return 0.5
        from scipy import stats

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of equal times
            return float(stats.mannwhitneyu(self.before, self.after, alternative="greater").pvalue)

    @property
    def enough(self) -> bool:
        """Whether there are enough rounds to tell a gain from noise."""
        return len(self.before) >= FEWEST

    @property
    def verdict(self) -> str:
        """'faster', 'slower', 'no faster', 'not significant', or that the gain is too small."""
        p = self.p
        if ALPHA < p < 1 - ALPHA:
            return "not significant"
        if p >= 1 - ALPHA:
            return "slower" if self.ratio < 1 / WORTH else "no faster"
        return "faster" if self.ratio >= WORTH else f"gains less than {WORTH - 1:.0%}"


def prepare() -> None:
    """Import what a Comparison needs: that takes a second, which no budget should pay for."""
    import scipy.stats  # noqa: F401


def calls_for(seconds: float) -> int:
    """Return how many calls of so many seconds make a round."""
    return max(1, min(CALLS, int(ROUND / max(seconds, 1e-9))))


def compare(original: Any, variant: Any, seconds: float, call: float, timer: Timer) -> Comparison:
    """Time both in turn, A-B-A-B, for about ``seconds``, and return the Comparison.

    Makes at least ``FEWEST`` rounds, unless the variant is far too slow. call: seconds of one call
    of the original.
    """
    calls = calls_for(call)
    if calls > 1:
        first = _single_calls(original, variant, timer)
        if first is not None:
            return first
    before: list[float] = []
    after: list[float] = []
    spent = 0.0
    while len(before) < MOST and (len(before) < FEWEST or spent < seconds):
        a, b = timer(original, calls), timer(variant, calls)
        spent += a + b
        before.append(a / calls)
        after.append(b / calls)
        if len(before) == FEW and min(after) > HOPELESS * max(before):
            break
    return Comparison(tuple(before), tuple(after))


def _single_calls(original: Any, variant: Any, timer: Timer) -> Comparison | None:
    """Return a Comparison of a few single calls if the variant is far too slow for a round.

    A round might then take minutes. Return None otherwise.
    """
    pairs: list[tuple[float, float]] = []
    while len(pairs) < FEW:
        pairs.append((timer(original, 1), timer(variant, 1)))
        if pairs[-1][1] <= 10 * HOPELESS * pairs[-1][0]:
            return None
    return Comparison(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))
