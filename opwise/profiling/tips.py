"""Tips: what might make a profiled program faster, read off its profile."""

from __future__ import annotations

from opwise.profiling import aggregate

#: what runs in Python below this share of the time is not worth a tip
_WORTH = 0.01


def tips(profile):
    """Return tips, each a sentence or two, for the functions of a profile."""
    return [*_narrower(profile), *_in_python(profile)]


def _narrower(profile):
    if any("float64" in text for a in profile.applys for text in (*a.inputs, *a.outputs)):
        yield "Try the Theano flag floatX=float32"


def _in_python(profile):
    local = profile.local_ns
    for row in sorted(aggregate.by_op(profile), key=lambda r: -r.ns):
        if row.c or row.ns <= _WORTH * local:
            continue
        why = next(a.why for a in profile.applys if a.op_key == row.key and not a.c)
        yield "%s runs in Python, %.1f%% of the time: %s" % (row.label, 100 * row.ns / local, why)
