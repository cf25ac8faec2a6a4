"""Recorded sources of choices, and the search for the simplest choices that still fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from time import monotonic


class Recorded:
    """A source of choices: from a list, and after its end random, or 0 without a seed."""

    def __init__(self, given: Iterable[int] = (), seed: int | None = None) -> None:
        self.given = list(given)
        #: all choices that were made
        self.choices: list[int] = []
        self._random = random.Random(seed) if seed is not None else None

    def __call__(self, n: int) -> int:
        """Return a choice in 0 to n-1; numbers in the list are taken modulo n."""
        if n <= 1:
            return 0
        at = len(self.choices)
        if at < len(self.given):
            chosen = self.given[at] % n
        else:
            chosen = self._random.randrange(n) if self._random is not None else 0
        self.choices.append(chosen)
        return chosen


def shrunk(
    choices: list[int], fails: Callable[[list[int]], list[int] | None], seconds: float = 30.0
) -> list[int]:
    """Return the simplest list of choices found that still fails.

    fails: returns the choices that were really used, or None if nothing failed. Simpler means
    shorter, then smaller: parts are cut out, and choices set to 0 or halved, until nothing helps
    or the time is over.
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


def _simpler(choices: list[int]) -> Iterator[list[int]]:
    """Yield simpler lists, the largest steps first."""
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
