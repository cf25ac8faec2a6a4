"""Merge: profiles of several runs, processes or machines as one.

What is summed is what was counted; of what holds for one call only, the larger is kept. The order
in which profiles are merged makes no difference.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from functools import reduce

from opwise.profiling import histogram
from opwise.profiling.profile import CompileProfile, Profile, whole


def merge(profiles):
    """Return one Profile of several: functions that are the same become one, with the sums.

    The same are those that have one name and the same Applys in the same order. The environments
    are kept side by side under ``merged``.
    """
    profiles = list(profiles)
    if not profiles:
        return Profile()
    functions: dict = {}
    for profile in profiles:
        for function in profile.functions:
            functions.setdefault(_identity(function), []).append(function)
    environments = [e for p in profiles for e in p.environment.get("merged", [p.environment])]
    messages = {part for p in profiles for part in (p.message or "").split(" + ") if part}
    return Profile(
        functions=tuple(reduce(_functions, functions[key]) for key in sorted(functions)),
        message=" + ".join(sorted(messages)),
        environment={"merged": sorted(environments, key=_text)},
        machine=max((p.machine for p in profiles), key=lambda m: (m is not None, repr(m))),
        devices=_machines(pair for p in profiles for pair in p.devices),
        sources=dict(max(item) for item in _by_place(profiles).values()),
    )


def _machines(pairs):
    """Return the pairs (name, Machine), one for each name."""
    return tuple(dict(sorted(pairs, key=repr)).items())


def _by_place(profiles):
    """Return {place: the (place, text) pairs that profiles have for it}."""
    found: dict = {}
    for profile in profiles:
        for pair in profile.sources.items():
            found.setdefault(pair[0], set()).add(pair)
    return found


#: what an Apply has of all its calls
_SUMMED = frozenset(
    ("count", "total", "once", "least", "most", "histogram", "origins", "asked", "waited")
)


def _identity(function):
    """Return what equals for the same function: its name and what its Applys are."""
    return function.name, tuple(
        (a.op_key, a.text, a.keys, a.inputs, a.outputs, a.c, a.device) for a in function.applys
    )


def _functions(a, b):
    return replace(
        a,
        applys=tuple(map(_applys, a.applys, b.applys)),
        calls=a.calls + b.calls,
        call_ns=a.call_ns + b.call_ns,
        fn_ns=a.fn_ns + b.fn_ns,
        first_call_ns=a.first_call_ns + b.first_call_ns,
        first_calls=a.first_calls + b.first_calls,
        failed=a.failed + b.failed,
        timing_ns=a.timing_ns + b.timing_ns,
        detail=_calls(a.detail, b.detail),
        compile=_compilations(a.compile, b.compile),
        rewrites=max(a.rewrites, b.rewrites, key=_text),
        memory=max(a.memory, b.memory, key=lambda m: (m.peak, _text(asdict(m))) if m else (-1, "")),
    )


#: how many calls are kept of the first, and of the slowest
_KEPT = 4


def _calls(a, b):
    """Return the first and the slowest of the calls that two profiles keep."""
    calls = sorted({*a, *b}, key=lambda c: (c.number, c.start_ns, c.apply_ns))
    slowest = sorted(calls, key=lambda c: (-c.ns, c.number, c.start_ns, c.apply_ns))[:_KEPT]
    return tuple(c for k, c in enumerate(calls) if k < _KEPT or c in slowest)


def _applys(a, b):
    called = [one for one in (a, b) if one.count]
    larger = max(a, b, key=_of_one_call)
    return replace(
        larger,
        origins=max(a.origins, b.origins, key=repr),
        count=a.count + b.count,
        total=a.total + b.total,
        once=a.once + b.once,
        asked=a.asked + b.asked,
        waited=a.waited + b.waited,
        least=min((one.least for one in called), default=0),
        most=max(a.most, b.most),
        histogram=histogram.merged(a.histogram, b.histogram),
    )


def _of_one_call(apply):
    """Return what orders Applys by what is kept of one of them: the larger arrays first."""
    arrays = (*apply.input_arrays, *apply.output_arrays)
    kept = {f.name: getattr(apply, f.name) for f in fields(apply) if f.name not in _SUMMED}
    return sum(x.bytes for x in arrays if x is not None), repr(kept)


def _compilations(a, b):
    sums = {
        f.name: whole(getattr(a, f.name) + getattr(b, f.name))
        for f in fields(CompileProfile)
        if f.name not in ("cached", "slowest")
    }
    cached = None if a.cached is None and b.cached is None else False not in (a.cached, b.cached)
    slowest = sorted((*a.slowest, *b.slowest), key=lambda one: (-one[1], one[0]))[:5]
    return CompileProfile(**sums, cached=cached, slowest=tuple(slowest))


def _text(value):
    return json.dumps(value, sort_keys=True, default=list)
