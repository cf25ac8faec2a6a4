"""Measuring two functions in turn, round by round, and saying whether one is faster or it is noise.

Nothing here knows what the functions are. A timer ``(candidate, calls) -> seconds`` does the
calling, so that tests can give times of their own.
"""

from __future__ import annotations

import statistics
import warnings
from dataclasses import dataclass

#: seconds that the calls of one round take, at least
ROUND = 4e-3
#: rounds of each side: at least this many, for fewer prove nothing, and at most
FEWEST, MOST = 5, 40
#: calls of one round, at most
CALLS = 20_000
#: how likely pure noise may look like a gain, at most
ALPHA = 0.005
#: the least ratio of two medians that is worth a tip
WORTH = 1.05
#: what is so much slower in the first few rounds needs no further ones
HOPELESS, FEW = 2.0, 3


@dataclass(frozen=True)
class Comparison:
    """Seconds of one call in each round, of the original and of a variant."""

    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self):
        """How many times faster the variant is, by the medians."""
        return statistics.median(self.before) / statistics.median(self.after)

    @property
    def p(self):
        """How likely it is that noise alone makes the variant look so much faster.

        The one-sided Mann-Whitney test: ranks, not seconds, so that a few late rounds do not count.
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
    def enough(self):
        """Whether there are rounds enough to tell a gain from noise."""
        return len(self.before) >= FEWEST

    @property
    def verdict(self):
        """'faster', 'slower', 'no faster', 'within noise', or why a gain does not count."""
        p = self.p
        if ALPHA < p < 1 - ALPHA:
            return "within noise"
        if p >= 1 - ALPHA:
            return "slower" if self.ratio < 1 / WORTH else "no faster"
        return "faster" if self.ratio >= WORTH else f"gains less than {WORTH - 1:.0%}"


def prepare():
    """Import what a Comparison needs: that takes a second, which belongs to no budget."""
    import scipy.stats  # noqa: F401


def calls_for(seconds):
    """Return how many calls of ``seconds`` make a round."""
    return max(1, min(CALLS, int(ROUND / max(seconds, 1e-9))))


def compare(original, variant, seconds, call, timer):
    """Time both in turn, A-B-A-B, for about ``seconds``, and return the Comparison.

    call: what one call of the original takes, in seconds. timer: (candidate, calls) -> seconds that
    so many calls took. At least ``FEWEST`` rounds are made, unless the variant is far too slow.
    """
    calls = calls_for(call)
    if calls > 1:
        first = _single_calls(original, variant, timer)
        if first is not None:
            return first
    before, after, spent = [], [], 0.0
    while len(before) < MOST and (len(before) < FEWEST or spent < seconds):
        a, b = timer(original, calls), timer(variant, calls)
        spent += a + b
        before.append(a / calls)
        after.append(b / calls)
        if len(before) == FEW and min(after) > HOPELESS * max(before):
            break
    return Comparison(tuple(before), tuple(after))


def _single_calls(original, variant, timer):
    """Return a Comparison of a few single calls if they show that the variant is far too slow for a
    round of it, which might take minutes; else None."""
    pairs = []
    while len(pairs) < FEW:
        pairs.append((timer(original, 1), timer(variant, 1)))
        if pairs[-1][1] <= 10 * HOPELESS * pairs[-1][0]:
            return None
    return Comparison(*zip(*pairs, strict=True))
