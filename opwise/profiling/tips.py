"""Tips: what might make a profiled program faster, read off its profile."""

from __future__ import annotations

from opwise.profiling import aggregate

#: what takes less than this share of the time is not worth a tip
_WORTH = 0.01


def tips(profile):
    """Return tips, each a sentence or two, for the functions of a profile."""
    return [*_without_compiler(profile), *_narrower(profile), *_in_python(profile)]


def without_compiler(profile):
    """Return why functions of a profile ran without a C compiler; '' if they did not."""
    environments = profile.environments
    return next((e["no_compiler"] for e in environments if e.get("no_compiler")), "")


def _without_compiler(profile):
    reason = without_compiler(profile)
    if reason:
        yield (
            f"{reason}: elementwise loops ran on built-in kernels, which are slower. Install gcc "
            "or clang, or set the flag cxx to the path of a compiler"
        )


def _narrower(profile):
    wide = sum(
        a.total
        for a in profile.applys
        if any("float64" in text for text in (*a.inputs, *a.outputs))
    )
    if wide > _WORTH * profile.local_ns:
        yield "Try the Theano flag floatX=float32"


def _in_python(profile):
    local = profile.local_ns
    for row in sorted(aggregate.by_op(profile), key=lambda r: -r.ns):
        if row.c or row.ns <= _WORTH * local:
            continue
        why = next(a.why for a in profile.applys if a.op_key == row.key and not a.c)
        yield "%s runs in Python, %.1f%% of the time: %s" % (row.label, 100 * row.ns / local, why)
