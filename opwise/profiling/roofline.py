"""Roofline: recorded times of Applys against the least time that the hardware needs.

An Apply with an exact count of bytes and operations takes at least the time in which the hardware
moves the bytes, or does the operations, whichever is longer. The rest of its time can be gained.
Of loops with functions such as exp, the operations are those of a table of rough costs.
Rates are GB/s and GFLOP/s, which are bytes and operations per nanosecond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from opwise.profiling.machinelimits import MachineLimits
from opwise.profiling.model import ApplyProfile, ProfileData

#: nanoseconds of work from which threads share it; OW_WORTH in linkers/csupport/runtime.h
SHARED_FROM = 40_000
#: nanoseconds of work that a thread takes at least; OW_CHUNK_NS there
SHARE = 10_000

#: (nanoseconds that an Apply needs at least, what sets that limit)
Attainable = tuple[float, str]
#: from bytes touched, operations, their dtype, whether they are rounded as one, and nanoseconds of
#: functions
_Limit = Callable[[int, int, "str | None", bool, float], "Attainable | None"]


@dataclass(frozen=True)
class RooflineRow:
    """An Apply against the limit of the hardware.

    Bytes and operations are those of the last call, times are means. None stands for what is not
    known exactly.
    """

    #: name of the function
    function: str
    #: position of the Apply in it
    position: int
    #: the Apply with its operands
    text: str
    #: number of runs
    calls: int
    #: seconds of all runs
    total: float
    #: seconds of one run
    seconds: float
    #: GB/s, read and written; None without traffic
    bandwidth: float | None = None
    #: GFLOP/s; None without flops
    rate: float | None = None
    #: seconds of one run that the hardware needs; None without traffic or flops, as all below
    attainable: float | None = None
    #: ``attainable`` by ``seconds``: 1 if nothing is left to gain, above 1 if the probe measured
    #: lower rates than the Apply reached, or if its algorithm takes fewer operations than are
    #: counted, as Winograd's; 1 at most if VM overhead sets the limit
    share: float | None = None
    #: what sets the limit: 'memory', 'arithmetic' or 'overhead'
    bound: str | None = None
    #: seconds that all runs could take less
    gain: float | None = None
    #: whether the limit is rough: of functions, such as exp, by the table of their costs
    approximate: bool = False
    #: nearest memory that holds what it touches: 'L1', 'L2', ..., 'RAM' or 'device'; "" if unknown
    level: str = ""


def level(apply: ApplyProfile, machine: MachineLimits | None) -> str:
    """Return the nearest memory of the hardware that holds what an Apply touches; "" if unknown."""
    if apply.device:
        return "device"
    size = touched(apply)
    if size is None or machine is None:
        return ""
    return next((f"L{n}" for n, cache in enumerate(machine.caches, 1) if size <= cache), "RAM")


def rows(profile: ProfileData, machine: MachineLimits | None) -> list[RooflineRow]:
    """Return a row for each Apply that was called: those with most to gain first.

    Those of unknown gain come last, the longest first. machine: the limits of the host, or None;
    those of devices are in the profile.
    """
    # most Applys of a long program are like others
    limits: dict[str, _Limit] = {
        name: cache(partial(_limit, one))
        for name, one in [("", machine), *profile.devices]
        if one is not None
    }
    found = [
        _row(function.name, apply, limits.get(apply.device), level(apply, machine))
        for function in profile.functions
        for apply in function.applys
        if apply.count and apply.total
    ]
    return sorted(found, key=lambda r: (r.gain is None, -(r.gain or 0), -r.total, r.position))


def _row(function: str, apply: ApplyProfile, limit: _Limit | None, level: str) -> RooflineRow:
    """Return the row of an Apply that was called.

    limit: ``_limit`` of the hardware that it ran on; None if that was not measured.
    """
    ns = apply.total / apply.count
    traffic, flops = apply.traffic, apply.flops
    # the rate of transfers between host and device is not measured; nor is an estimated time
    unmeasured = apply.transfer or apply.estimated
    if apply.estimated:
        traffic = flops = None
    attained = None if limit is None or unmeasured else _attainable(apply, limit)
    known: dict[str, Any] = {}
    if attained is not None:
        best, bound = attained
        known = {
            "attainable": best * 1e-9,
            # a step that does nothing has no exact time: an Apply may take less
            "share": min(best / ns, 1.0) if bound == "overhead" or flops is None else best / ns,
            "bound": bound,
            "approximate": flops is None,
            "gain": max(0.0, apply.total - apply.count * best) * 1e-9,
        }
    return RooflineRow(
        function=function,
        position=apply.position,
        text=apply.title,
        calls=apply.count,
        total=apply.total * 1e-9,
        seconds=ns * 1e-9,
        bandwidth=None if traffic is None else traffic / ns,
        rate=None if flops is None else flops / ns,
        level=level,
        **known,
    )


def attainable(apply: ApplyProfile, machine: MachineLimits) -> Attainable | None:
    """Return (nanoseconds that the hardware needs to run an Apply once, what sets that limit).

    None if traffic or operations are unknown, or the dtype was not measured.
    """
    return _attainable(apply, partial(_limit, machine))


def _attainable(apply: ApplyProfile, limit: _Limit) -> Attainable | None:
    size = touched(apply)
    if size is None or (apply.flops is None and (apply.work is None or apply.device)):
        return None
    if apply.flops is None:
        return limit(size, 0, None, False, apply.work or 0.0)
    # loops round multiplications and additions apart (-ffp-contract=off), products round once; on
    # devices only products were measured, which they do fastest
    return limit(size, apply.flops, _dtype(apply), bool(apply.device) or apply.is_product, 0.0)


def _limit(
    machine: MachineLimits, size: int, flops: int, dtype: str | None, fused: bool, functions: float
) -> Attainable | None:
    """Return the limit for bytes that are touched and operations of a dtype.

    functions: nanoseconds that one thread needs for functions, such as exp.
    """
    if flops and machine.peak(dtype, fused) is None:
        return None

    def limits(threads: int) -> tuple[float, float]:
        """Return nanoseconds for the bytes and for the operations."""
        peak = machine.peak(dtype, fused, threads) if flops else None
        operations = flops / peak if peak else 0.0
        return size / machine.bandwidth(size, threads), operations + functions / threads

    alone = max(limits(1))
    threads = int(min(machine.threads, alone / SHARE)) if alone > SHARED_FROM else 1
    memory, work = limits(threads)
    most = max(memory, work)
    if machine.step_ns > most:
        bound = "overhead"
    else:
        bound = "memory" if memory >= work else "arithmetic"
    return most + machine.step_ns, bound


def touched(apply: ApplyProfile) -> int | None:
    """Return the bytes that an Apply touches, each once; None if its traffic is unknown.

    Memory that is overwritten is read and written, but passes through the caches once: lines are
    written back while others are loaded.
    """
    if apply.traffic is None:
        return None
    overwritten = sum(
        a.bytes
        for a, how in zip(apply.output_arrays, apply.shares, strict=True)
        if how == "i" and a is not None
    )
    return apply.traffic - overwritten


def _dtype(apply: ApplyProfile) -> str | None:
    """Return the dtype of an Apply's operations: of its result, or of the floats that it reads."""
    for arrays in (apply.output_arrays, apply.input_arrays):
        names = [a.dtype for a in arrays if a is not None]
        floats = [name for name in names if name.startswith("float")]
        if floats:
            return max(floats, key=lambda name: int(name.removeprefix("float")))
    return None
