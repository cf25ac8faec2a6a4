"""The tips that end Theano's profile: what might make the program faster, read off its profile.

``opwise.tuning`` measures its advice; these tips are guesses.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwise.profiling import aggregate
from opwise.profiling.model import ProfileData

#: there is no tip about less than this share of the time
_WORTH = 0.01


def tips(profile: ProfileData) -> list[str]:
    """Return tips, each a sentence or two, for the functions of a profile."""
    return [*_without_compiler(profile), *_narrower(profile), *_in_python(profile)]


def without_compiler(profile: ProfileData) -> str:
    """Return why functions of a profile ran without a C compiler; '' if they did not."""
    reasons = (e.get("no_compiler") for e in profile.environments)
    return next((str(reason) for reason in reasons if reason), "")


def _without_compiler(profile: ProfileData) -> Iterator[str]:
    reason = without_compiler(profile)
    if reason:
        yield (
            f"{reason}: elementwise loops ran on built-in kernels, which are slower. Install gcc "
            "or clang, or set the flag cxx to the path of a compiler"
        )


def _narrower(profile: ProfileData) -> Iterator[str]:
    wide = sum(
        a.total
        for a in profile.applys
        if any("float64" in text for text in (*a.inputs, *a.outputs))
    )
    if wide > _WORTH * profile.local_ns:
        yield "Try the Theano flag floatX=float32"


def _in_python(profile: ProfileData) -> Iterator[str]:
    local = profile.local_ns
    for row in sorted(aggregate.by_op(profile), key=lambda r: -r.ns):
        if row.c or row.ns <= _WORTH * local:
            continue
        why = next(a.why for a in profile.applys if a.op_key == row.key and not a.c)
        yield "%s runs in Python, %.1f%% of the time: %s" % (row.label, 100 * row.ns / local, why)
