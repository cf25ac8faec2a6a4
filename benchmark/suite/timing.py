"""How calls are timed, for contenders and for the call into C that bounds them all."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import repeat


def seconds_of(step: Callable[[], object], calls: int, holds: bool = False) -> float:
    """Seconds that so many calls take; their results are let go at once, or one call later."""
    clock = time.perf_counter
    if holds:
        held = None
        start = clock()
        for _ in repeat(None, calls):
            held = step()
        end = clock()
        del held
    else:
        start = clock()
        for _ in repeat(None, calls):
            step()
        end = clock()
    return end - start


def calls_for(step: Callable[[], object], seconds: float, holds: bool = False) -> int:
    """How many calls take about that long."""
    calls = 1
    while (took := seconds_of(step, calls, holds)) < seconds / 4:
        calls *= 4
    return max(1, round(calls * seconds / took))
