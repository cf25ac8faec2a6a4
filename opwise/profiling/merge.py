"""Merge: profiles of several runs, processes or machines as one.

What is summed is what was counted; of what holds for one call only, the larger is kept. The order
in which profiles are merged makes no difference.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields, replace

from opwise.profiling import histogram
from opwise.profiling.profile import ApplyProfile, CompileProfile, Profile, whole


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
    environments = [e for p in profiles for e in p.environments]
    messages = {part for p in profiles for part in (p.message or "").split(" + ") if part}
    return Profile(
        functions=tuple(_functions(functions[key]) for key in sorted(functions)),
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


def _functions(same):
    """Return one FunctionProfile of several of the same function."""
    if len(same) == 1:
        return same[0]
    first = same[0]

    def total(name):
        return sum(getattr(f, name) for f in same)

    return replace(
        first,
        applys=tuple(map(_applys, zip(*(f.applys for f in same), strict=True))),
        **{name: total(name) for name in _COUNTS},
        detail=_calls({call for f in same for call in f.detail}),
        compile=_compilations([f.compile for f in same]),
        rewrites=max((f.rewrites for f in same), key=_text),
        memory=max((f.memory for f in same), key=_of_memory),
    )


#: what a function has of all its calls
_COUNTS = (
    "calls", "call_ns", "fn_ns", "first_call_ns", "first_calls", "failed", "timing_ns",
)  # fmt: skip


def _of_memory(memory):
    return (memory.peak, _text(asdict(memory))) if memory else (-1, "")


#: how many calls are kept of the first, and of the slowest
_KEPT = 4


def _calls(calls):
    """Return the first and the slowest of the calls that several profiles keep."""
    calls = sorted(calls, key=lambda c: (c.number, c.start_ns, c.apply_ns))
    slowest = sorted(calls, key=lambda c: (-c.ns, c.number, c.start_ns, c.apply_ns))[:_KEPT]
    return tuple(c for k, c in enumerate(calls) if k < _KEPT or c in slowest)


def _applys(same):
    """Return one ApplyProfile of those that several profiles have of one Apply."""
    called = [a for a in same if a.count]
    return replace(
        max(same, key=_of_one_call),
        origins=max((a.origins for a in same), key=repr),
        **{name: sum(getattr(a, name) for a in same) for name in _APPLY_SUMS},
        least=min((a.least for a in called), default=0),
        most=max(a.most for a in same),
        histogram=histogram.merged(*(a.histogram for a in same)),
    )


_APPLY_SUMS = ("count", "total", "once", "asked", "waited")
#: what an Apply has of its last call
_LAST = tuple(f.name for f in fields(ApplyProfile) if f.name not in _SUMMED)


def _of_one_call(apply):
    """Return what orders Applys by what is kept of one of them: the larger arrays first."""
    arrays = (*apply.input_arrays, *apply.output_arrays)
    kept = {name: getattr(apply, name) for name in _LAST}
    return sum(x.bytes for x in arrays if x is not None), repr(kept)


#: the seconds of a CompileProfile, which are added up
_SECONDS = tuple(f.name for f in fields(CompileProfile) if f.name not in ("cached", "slowest"))


def _compilations(same):
    sums = {name: whole(math.fsum(getattr(c, name) for c in same)) for name in _SECONDS}
    known = [c.cached for c in same if c.cached is not None]
    slowest = sorted((one for c in same for one in c.slowest), key=lambda one: (-one[1], one[0]))
    return CompileProfile(**sums, cached=all(known) if known else None, slowest=tuple(slowest[:5]))


def _text(value):
    return json.dumps(value, sort_keys=True, default=list)
