"""Validation: what must hold in a profile beyond its schema, and in counts that callers give."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from opwise.profiling.machinelimits import MachineLimits
from opwise.profiling.model import (
    ApplyProfile,
    ArrayProfile,
    FunctionProfile,
    ProfileData,
    ProgramProfile,
)

#: an upper bound on all times in seconds, so that their sums stay numbers; 30,000 years
_MOST_SECONDS = 1e12
#: an upper bound on the memory of a process
_MOST_BYTES = 1e18
#: an upper bound on passes of the optimizer that contain each other
_MOST_PASSES_DEEP = 50
_DTYPE = re.compile(r"bool|(u?int|float|complex)\d{1,3}")


def check_counts(**counts: Any) -> None:
    """Raise ValueError unless each argument is a whole number of at least 1."""
    for name, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError(f"{name} is {n!r}; it must be a whole number from 1")


def check(profile: ProfileData) -> None:
    """Raise ValueError if values of a profile contradict each other or cannot be measurements."""
    _check_environment(profile.environment)
    for f in profile.functions:
        if min(_counts(f)) < 0:
            raise ValueError(f"a count of {f.name[:40]!r} is below zero")
        if any(a.total and not a.count for a in f.applys):
            raise ValueError(f"an Apply of {f.name[:40]!r} has a time, but was never run")
        _check_compilation(f)
        _check_positions(f)
        if f.rewrites is not None:
            _check_rewrites(f.rewrites)
    if profile.program is not None:
        _check_program(profile.program)
    for limits in (profile.machine, *(limits for _, limits in profile.devices)):
        if limits is not None:
            MachineLimits.from_json(limits.to_json())


def _check_program(program: ProgramProfile) -> None:
    """Raise ValueError for samples that cannot be."""
    times = [program.period_ns, program.before_ns]
    times += (ns for _, *both in program.stacks for ns in both)
    times += (ns for _, *both in program.stretches for ns in both)
    if min(times) < 0:
        raise ValueError("a time of the program is below zero")
    if not all(0 <= place < len(program.stacks) for place, _, _ in program.stretches):
        raise ValueError("the time line of the program names a stack that is not there")


def _counts(f: FunctionProfile) -> list[float]:
    """Return all that is counted of a function. Raises ValueError for arrays that cannot be."""
    counts: list[float] = [f.calls, f.failed, f.calls - f.failed, f.call_ns, f.fn_ns, f.timing_ns]
    counts += (f.first_call_ns, f.first_calls, f.built_in_calls, f.calls - f.built_in_calls)
    for a in f.applys:
        counts += (a.count, a.total, a.least, a.most, a.flops or 0, a.traffic or 0, a.work or 0)
        counts += (a.asked, a.waited, a.once, a.inner, *(o.cost for o in a.origins))
        counts += (number for pair in a.histogram for number in pair)
        for array in (*a.input_arrays, *a.output_arrays):
            if array is not None:
                _check_array(array, f, a)
                counts += (array.bytes, *array.shape)
    counts += (ns for call in f.detail for ns in (call.number, *call.apply_ns))
    if f.memory:
        counts += (*f.memory.timeline, f.memory.peak, *(live.bytes for live in f.memory.live))
        for part in (f.memory.host, f.memory.device):
            counts += vars(part).values() if part else ()
    return counts


def _check_array(array: ArrayProfile, f: FunctionProfile, a: ApplyProfile) -> None:
    if not _DTYPE.fullmatch(array.dtype):
        raise ValueError(f"{array.dtype[:40]!r} is no dtype")
    if len(array.strides) != len(array.shape):
        raise ValueError(
            f"an array of Apply {a.position} of {f.name[:40]!r} has {len(array.shape)} dimensions "
            f"and {len(array.strides)} strides"
        )


def _check_environment(environment: dict[str, Any]) -> None:
    merged = environment.get("merged", [environment])
    for about in merged if isinstance(merged, list) else [None]:
        if not isinstance(about, dict) or any(isinstance(v, dict | list) for v in about.values()):
            raise ValueError("its environment is not that of processes")
        numbers = [name for name in about if name.startswith(("seconds_", "bytes_"))]
        for name in ("grad_seconds", "process", *numbers):
            value = about.get(name, 0)
            most = _MOST_BYTES if name.startswith("bytes_") else _MOST_SECONDS
            if not isinstance(value, int | float) or not abs(value) <= most:
                raise ValueError(f"{name} of its environment is not a possible number")


def _check_compilation(f: FunctionProfile) -> None:
    times = [v for v in vars(f.compile).values() if isinstance(v, float)]
    times += (seconds for _, seconds in f.compile.slowest)
    if not all(0 <= seconds <= _MOST_SECONDS for seconds in times):
        raise ValueError(f"a time of compiling {f.name[:40]!r} is below zero or far too long")


def _check_positions(f: FunctionProfile) -> None:
    """Raise ValueError if a part of a function refers to Applys that the function does not have."""
    n = len(f.applys)
    for k, a in enumerate(f.applys):
        if a.position != k:
            raise ValueError(f"Apply {k} of {f.name!r} has the position {a.position}")
        if not all(-1 <= position < k for position in a.reads):
            raise ValueError(f"Apply {k} of {f.name!r} reads the output of a later Apply")
        if not -1 <= a.inside < k:
            raise ValueError(f"Apply {k} of {f.name!r} is inside a later Apply")
        if len(a.output_arrays) != len(a.shares):
            raise ValueError(f"Apply {k} of {f.name!r} has {len(a.shares)} shares of memory")
    if any(len(call.apply_ns) != n for call in f.detail):
        raise ValueError(f"a call of {f.name!r} has times of other Applys")
    m = f.memory
    if m and not (
        len(m.timeline) == n and all(-1 <= k < n for k in (m.at, *(x.position for x in m.live)))
    ):
        raise ValueError(f"the memory of {f.name!r} is that of other Applys")


# --- records of the optimizer ---------------------------------------------------------------------

_PASS = {
    "name": str, "kind": str, "seconds": (int, float), "nodes_before": int, "nodes_after": int,
}  # fmt: skip
_INNER_PASS = {
    **_PASS, "validate": (int, float), "index": object, "failed": object, "counts": dict,
}  # fmt: skip
_RULE = {"name": str, "seconds": (int, float), "applied": int, "created": int}
#: what the counts of a pass must contain besides, by the count that says which kind of pass it is
_COUNTS = {"rounds": ("rounds", "most_nodes"), "merged": ("merged", "failures", "constants")}


def _check_rewrites(record: dict[str, Any]) -> None:
    """Raise ValueError unless a record of the optimizer has the fields of one."""
    _require(record, {**_PASS, "passes": list})
    passes, depth = record["passes"], 1
    while passes:
        if depth > _MOST_PASSES_DEEP:
            raise ValueError(f"passes of the optimizer are nested more than {depth - 1} deep")
        for one in passes:
            _require(one, {**_INNER_PASS, "rules": list, "passes": list})
            _check_pass_counts(one["counts"])
            for rule in one["rules"]:
                _require(rule, _RULE)
        passes, depth = [inner for one in passes for inner in one["passes"]], depth + 1


def _check_pass_counts(counts: dict[str, Any]) -> None:
    needed: Iterable[str] = next((names for key, names in _COUNTS.items() if key in counts), ())
    _require(counts, dict.fromkeys(needed, int))


def _require(value: Any, types: Mapping[str, Any]) -> None:
    if not isinstance(value, dict) or not all(
        name in value and isinstance(value[name], type_) for name, type_ in types.items()
    ):
        raise ValueError("a record of the optimizer is not valid")
