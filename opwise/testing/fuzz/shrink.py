"""Sources of choices that are recorded, and the search for the simplest choices that still fail."""

from __future__ import annotations

import random
from time import monotonic


class Recorded:
    """Choices below n from a list, and after its end from a random generator, or 0.

    choices: all that were made. Numbers too large for their n are taken modulo n.
    """

    def __init__(self, given=(), seed=None):
        self.given = list(given)
        self.choices = []
        self._random = random.Random(seed) if seed is not None else None

    def __call__(self, n):
        if n <= 1:
            return 0
        at = len(self.choices)
        if at < len(self.given):
            chosen = self.given[at] % n
        else:
            chosen = self._random.randrange(n) if self._random is not None else 0
        self.choices.append(chosen)
        return chosen


def shrunk(choices, fails, seconds=30.0):
    """Return the simplest list of choices found for which ``fails`` is true.

    fails: a function of a list, which returns the choices that were really used, or None where
    nothing failed. Simpler is shorter, then smaller. Parts are cut out, and choices made 0 or
    halved, until nothing helps any more or the time is over.
    """
    end = monotonic() + seconds
    best = list(choices)
    improved = True
    while improved:
        improved = False
        for new in _simpler(best):
            if monotonic() > end:
                return best
            used = fails(new)
            if used is not None and (len(used), used) < (len(best), best):
                best, improved = used, True
                break
    return best


def _simpler(choices):
    """Yield lists that are simpler: the largest steps first."""
    size = len(choices) // 2
    while size:
        for start in range(0, len(choices) - size + 1, max(1, size // 2)):
            yield choices[:start] + choices[start + size :]
        size //= 2
    for at, choice in enumerate(choices):
        if choice:
            yield [*choices[:at], 0, *choices[at + 1 :]]
    for at, choice in enumerate(choices):
        if choice > 1:
            yield [*choices[:at], choice // 2, *choices[at + 1 :]]
