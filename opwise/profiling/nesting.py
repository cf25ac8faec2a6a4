"""Nesting: the times of Applys that repeat other Applys, without the times of those.

Positions are those of a function's Applys followed by those inside its loops, so an Apply comes
before the Applys inside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from opwise.profiling.model import ApplyProfile, FunctionProfile


def own_times(
    times: Sequence[int], runs: Sequence[float], inside: Sequence[int], timer_ns: float
) -> list[int]:
    """Return the times without those of the Applys inside, by position.

    times: what each Apply took, with all inside it. runs: how often each ran. inside: the position
    of the Apply around each, or -1. timer_ns: what timing adds to a run, which the time of the
    Apply around it contains.
    """
    own = list(times)
    for k, around in enumerate(inside):
        if around >= 0:
            own[around] -= times[k] + round(runs[k] * timer_ns)
    return [max(0, ns) for ns in own]  # what timing adds is a mean


def inner_times(own: Sequence[int], inside: Sequence[int]) -> list[int]:
    """Return the times of all Applys inside each, by position. own: see ``own_times``."""
    inner = [0] * len(own)
    for k in range(len(own) - 1, -1, -1):
        if inside[k] >= 0:
            inner[inside[k]] += own[k] + inner[k]
    return inner


def split(around: int, times: list[int], inside: Sequence[int], weights: Sequence[float]) -> None:
    """Give the time of an Apply to those directly or indirectly inside it.

    around: its position. times: own times by position, which change. weights: what a run of the
    function spends in each Apply, relative to others.
    """
    within = {around}
    for k, outer in enumerate(inside):
        if outer in within:
            within.add(k)
    parts = sorted(within - {around})
    whole = math.fsum(weights[k] for k in parts)
    shared, given = times[around], 0
    for k in parts:
        part = int(shared * (weights[k] / whole if whole else 1 / len(parts)))
        times[k] += part
        given += part
    times[around] = shared - given


def nested(function: FunctionProfile) -> Iterator[tuple[ApplyProfile, int]]:
    """Yield (Apply, how many loops are around it), each loop before the Applys inside it."""
    inside: dict[int, list[ApplyProfile]] = {}
    for apply in function.applys:
        inside.setdefault(apply.inside, []).append(apply)
    stack = [(apply, 0) for apply in reversed(inside.get(-1, ()))]
    while stack:
        apply, depth = stack.pop()
        yield apply, depth
        stack += [(each, depth + 1) for each in reversed(inside.get(apply.position, ()))]
