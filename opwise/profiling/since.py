"""The part of a function's profile that came after an earlier profile of the same function."""

from __future__ import annotations

from dataclasses import replace

from opwise.profiling import histogram
from opwise.profiling.model import ApplyProfile, CompileProfile, FunctionProfile


def since(now: FunctionProfile, before: FunctionProfile) -> FunctionProfile:
    """Return the calls of a function that ``now`` has and ``before`` has not; nanoseconds.

    Both are snapshots of one Recorder. The least and the most time of a run come from the
    histograms, within 13 %. Arrays and memory are those of the last call.
    """
    first = not before.calls
    return replace(
        now,
        applys=tuple(_since(a, b) for a, b in zip(now.applys, before.applys, strict=True)),
        calls=now.calls - before.calls,
        failed=now.failed - before.failed,
        built_in_calls=now.built_in_calls - before.built_in_calls,
        call_ns=now.call_ns - before.call_ns,
        fn_ns=now.fn_ns - before.fn_ns,
        first_call_ns=now.first_call_ns if first else 0,
        first_calls=now.first_calls if first else 0,
        compile=CompileProfile(),
        timing_ns=max(0, now.timing_ns - before.timing_ns),
        detail=tuple(call for call in now.detail if call.number > before.calls),
    )


def _since(now: ApplyProfile, before: ApplyProfile) -> ApplyProfile:
    earlier = dict(before.histogram)
    runs = tuple((b, n - earlier.get(b, 0)) for b, n in now.histogram if n > earlier.get(b, 0))
    count = now.count - before.count
    # what is beyond later runs is estimated anew in each snapshot, so the sums may shrink
    total = max(0, now.total + now.once - before.total - before.once) if count else 0
    least, most = _ends(runs)
    return replace(
        now,
        count=count,
        total=total,
        once=0,
        inner=max(0, now.inner - before.inner),
        histogram=runs,
        least=min(max(least, now.least), now.most) if count else 0,
        most=min(most, now.most) if count else 0,
        asked=now.asked - before.asked,
        waited=now.waited - before.waited,
    )


def _ends(runs: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """Return bounds of the least and the most time of some runs, in nanoseconds."""
    if not runs:
        return 0, 0
    return histogram.bounds(runs[0][0])[0], histogram.bounds(runs[-1][0])[1] - 1
