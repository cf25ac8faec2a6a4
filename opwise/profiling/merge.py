"""Merge: profiles of several runs, processes or computers as one.

Counts and times are summed; of what holds for one call only, the larger is kept. The order of the
profiles makes no difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar, cast

from opwise.profiling import histogram
from opwise.profiling.machinelimits import MachineLimits
from opwise.profiling.memory import MemoryProfile
from opwise.profiling.model import (
    ApplyProfile,
    CallProfile,
    CompileProfile,
    FunctionProfile,
    ProfileData,
    ProgramProfile,
    whole_ns,
)

P = TypeVar("P", bound=ProfileData)


def merge(several: Iterable[P]) -> P:
    """Return one profile of several: functions that are the same become one, with the sums.

    Functions are the same if they have one name and the same Applys in the same order. The
    environments are kept side by side under ``merged``. The class is that of the first profile;
    of no profiles it is ProfileData.
    """
    profiles = list(several)
    if not profiles:
        return cast(P, ProfileData())
    functions: dict[Identity, list[FunctionProfile]] = {}
    for profile in profiles:
        for function in profile.functions:
            functions.setdefault(identity(function), []).append(function)
    environments = [e for p in profiles for e in p.environments]
    messages = {part for p in profiles for part in (p.message or "").split(" + ") if part}
    return replace(
        profiles[0],
        functions=tuple(_functions(functions[key]) for key in sorted(functions)),
        message=" + ".join(sorted(messages)),
        environment={"merged": sorted(environments, key=_text)},
        machine=max((p.machine for p in profiles), key=lambda m: (m is not None, repr(m))),
        devices=_one_of_each(pair for p in profiles for pair in p.devices),
        sources=dict(max(item) for item in _by_place(profiles).values()),
        frames={key: frame for p in profiles for key, frame in p.frames.items()},
        program=_programs([p.program for p in profiles if p.program is not None]),
    )


def _programs(several: list[ProgramProfile]) -> ProgramProfile | None:
    """Return the sums of what was sampled; programs that ran apart have no common time line."""
    if len(several) < 2:
        return several[0] if several else None
    sums: dict[str, tuple[int, int]] = {}
    for program in several:
        for key, rest, called in program.stacks:
            before = sums.get(key, (0, 0))
            sums[key] = before[0] + rest, before[1] + called
    return ProgramProfile(
        period_ns=max(p.period_ns for p in several),
        start_ns=0,
        before_ns=sum(p.before_ns for p in several),
        stacks=tuple((key, *both) for key, both in sorted(sums.items())),
    )


#: equal for the same function: its name and what its Applys are
Identity = tuple[str, tuple[tuple[Any, ...], ...]]


def _one_of_each(
    pairs: Iterable[tuple[str, MachineLimits]],
) -> tuple[tuple[str, MachineLimits], ...]:
    """Return (name, limits) pairs of devices, one for each name."""
    return tuple(dict(sorted(pairs, key=repr)).items())


def _by_place(profiles: Sequence[ProfileData]) -> dict[str, set[tuple[str, str]]]:
    """Return {place: the (place, text) pairs that profiles have for it}."""
    found: dict[str, set[tuple[str, str]]] = {}
    for profile in profiles:
        for pair in profile.sources.items():
            found.setdefault(pair[0], set()).add(pair)
    return found


#: fields of an Apply that hold for all its calls
_SUMMED = frozenset(
    (
        "count",
        "total",
        "inner",
        "once",
        "least",
        "most",
        "histogram",
        "origins",
        "asked",
        "waited",
        "estimated",
    )
)


def identity(function: FunctionProfile) -> Identity:
    """Return a key that is equal for the same function: its name and what its Applys are."""
    return function.name, tuple(
        (a.op_key, a.text, a.keys, a.inputs, a.outputs, a.c, a.device, a.inside)
        for a in function.applys
    )


def _functions(same: list[FunctionProfile]) -> FunctionProfile:
    """Return one FunctionProfile of several of the same function."""
    if len(same) == 1:
        return same[0]
    first = same[0]

    sums: dict[str, Any] = {name: sum(getattr(f, name) for f in same) for name in _COUNTS}
    return replace(
        first,
        applys=tuple(map(_applys, zip(*(f.applys for f in same), strict=True))),
        **sums,
        detail=_calls({call for f in same for call in f.detail}),
        compile=_compilations([f.compile for f in same]),
        rewrites=max((f.rewrites for f in same), key=_text),
        memory=max((f.memory for f in same), key=_of_memory),
    )


#: fields of a function that are summed
_COUNTS = (
    "calls", "call_ns", "fn_ns", "first_call_ns", "first_calls", "failed", "timing_ns",
    "built_in_calls",
)  # fmt: skip


def _of_memory(memory: MemoryProfile | None) -> tuple[int, str]:
    return (memory.peak, _text(asdict(memory))) if memory else (-1, "")


#: how many of the first calls are kept, and how many of the slowest
_KEPT = 4


def _calls(several: Iterable[CallProfile]) -> tuple[CallProfile, ...]:
    """Return the first and the slowest of the calls that several profiles keep."""
    calls = sorted(several, key=lambda c: (c.number, c.start_ns, c.apply_ns))
    slowest = sorted(calls, key=lambda c: (-c.ns, c.number, c.start_ns, c.apply_ns))[:_KEPT]
    return tuple(c for k, c in enumerate(calls) if k < _KEPT or c in slowest)


def _applys(same: tuple[ApplyProfile, ...]) -> ApplyProfile:
    """Return one ApplyProfile of those that several profiles have of one Apply."""
    called = [a for a in same if a.count]
    sums: dict[str, Any] = {name: sum(getattr(a, name) for a in same) for name in _APPLY_SUMS}
    return replace(
        max(same, key=_of_one_call),
        origins=max((a.origins for a in same), key=repr),
        **sums,
        least=min((a.least for a in called), default=0),
        most=max(a.most for a in same),
        histogram=histogram.merged(*(a.histogram for a in same)),
        estimated=any(a.estimated for a in same),
    )


_APPLY_SUMS = ("count", "total", "inner", "once", "asked", "waited")
#: fields of an Apply that hold for its last call
_LAST = tuple(f.name for f in fields(ApplyProfile) if f.name not in _SUMMED)


def _of_one_call(apply: ApplyProfile) -> tuple[int, str]:
    """Return a key that is largest for the Apply whose last call is kept: of larger arrays."""
    arrays = (*apply.input_arrays, *apply.output_arrays)
    kept = {name: getattr(apply, name) for name in _LAST}
    return sum(x.bytes for x in arrays if x is not None), repr(kept)


#: the seconds of a CompileProfile, which are added up
_SECONDS = tuple(f.name for f in fields(CompileProfile) if f.type == "float")


def _compilations(same: list[CompileProfile]) -> CompileProfile:
    sums: dict[str, Any] = {
        name: whole_ns(math.fsum(getattr(c, name) for c in same)) for name in _SECONDS
    }
    slowest = sorted((one for c in same for one in c.slowest), key=lambda one: (-one[1], one[0]))
    return CompileProfile(
        **sums, cached=_all_known(c.cached for c in same),
        graph_cached=_all_known(c.graph_cached for c in same), slowest=tuple(slowest[:5]),
    )  # fmt: skip


def _all_known(values: Iterable[bool | None]) -> bool | None:
    """Return whether all of the known values are true; None if there are none."""
    known = [value for value in values if value is not None]
    return all(known) if known else None


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=list)
