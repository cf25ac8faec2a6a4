"""Roofline: what was recorded of Applys against what the machine can do at best.

An Apply whose bytes and operations are known exactly cannot take less than the time in which the
machine moves the bytes, or does the operations, whichever is longer. What it takes beyond that can
be gained. Rates are GB/s and GFLOP/s, which are bytes and operations in a nanosecond.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial

#: below this share of the processors the probe was disturbed
QUIET = 0.8

#: what the JSON form of a Machine calls itself
FORMAT = "opwise machine"

#: nanoseconds of work from which on it is shared among threads, and which one of them takes at
#: least; as OW_WORTH and OW_CHUNK_NS in linkers/csupport/runtime.h
SHARED_FROM = 40_000
SHARE = 10_000

#: where the Ops are whose multiplications and additions are rounded together; the other loops round
#: twice (-ffp-contract=off), so that the same expression gives the same bits everywhere
_FUSED = ("opwise.tensor.dot.", "opwise.tensor.blas.")


@dataclass(frozen=True)
class Peak:
    """GFLOP/s of multiplications and additions of ``dtype``, by one thread and by all.

    fused: both rounded as one, as products of matrices do it; otherwise rounded twice, as the loops
    of elementwise Applys and reductions do it.
    """

    dtype: str
    fused: bool
    one: float
    all: float


@dataclass(frozen=True)
class Machine:
    """What a machine can do at best, measured with opwise's own loops and threads.

    probe: version of what measured it. processor: its model; processors: how many this process may
    run on; threads: how many opwise uses; vectors: its kernels' vectors. caches: bytes of the data
    caches, the nearest first. one, all: GB/s of z = x + y, read and written, for bytes of all three
    arrays, by one thread and by all: pairs (bytes, GB/s), the smallest first. peaks: of arithmetic.
    step_ns: nanoseconds of a step that does nothing, without the reading of the clock. quiet: which
    share of the processors the probe got when all threads computed; where other programs had much
    of them, rates are lower than the machine's.

    Of a device: processor: its name; processors: how many it has; one and all: of copies in its
    memory; peaks: of products; step_ns: of a copy of one number.
    """

    probe: int
    processor: str
    processors: int
    threads: int
    vectors: str
    caches: tuple[int, ...]
    one: tuple[tuple[int, float], ...]
    all: tuple[tuple[int, float], ...]
    peaks: tuple[Peak, ...]
    step_ns: float
    quiet: float

    def bandwidth(self, size, threads=1):
        """Return the GB/s at which ``size`` bytes are moved by a number of threads.

        Between the sizes that were measured, and beyond one and before all threads, it is
        interpolated: the logarithm of the rate by that of the size, the rate by the threads.
        """
        return self._shared(_interpolated(self.one, size), _interpolated(self.all, size), threads)

    def peak(self, dtype, fused, threads=1):
        """Return the GFLOP/s of a dtype by a number of threads, None if that was not measured."""
        for peak in self.peaks:
            if (peak.dtype, peak.fused) == (dtype, fused):
                return self._shared(peak.one, peak.all, threads)
        return None

    def best(self, other):
        """Return what two measurements of one machine show that it can do."""

        def rates(one, other):
            found = dict(one)
            for size, rate in other:
                found[size] = max(rate, found.get(size, 0.0))
            return tuple(sorted(found.items()))

        peaks = {(p.dtype, p.fused): p for p in other.peaks}
        return replace(
            self,
            one=rates(self.one, other.one),
            all=rates(self.all, other.all),
            peaks=tuple(
                replace(p, one=max(p.one, q.one), all=max(p.all, q.all))
                for p in self.peaks
                for q in [peaks.get((p.dtype, p.fused), p)]
            ),
            step_ns=min(self.step_ns, other.step_ns),
            quiet=max(self.quiet, other.quiet),
        )

    def _shared(self, one, all_, threads):
        if threads <= 1 or self.threads <= 1:
            return one
        # other programs may have been at work when all threads were measured
        return one + (max(one, all_) - one) * (min(threads, self.threads) - 1) / (self.threads - 1)

    def to_json(self):
        """Return the machine as JSON text; ``from_json`` gives an equal Machine."""
        return json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text):
        """Return the Machine of a JSON text. Raises ValueError for what is none."""
        try:
            data = json.loads(text)
            if data.pop("format") != FORMAT or set(data) != {f.name for f in fields(cls)}:
                raise ValueError("it has other fields")
            return cls(
                probe=int(data["probe"]),
                processor=str(data["processor"]),
                processors=int(data["processors"]),
                threads=_some(data["threads"]),
                vectors=str(data["vectors"]),
                caches=tuple(int(size) for size in data["caches"]),
                one=_rates(data["one"]),
                all=_rates(data["all"]),
                peaks=tuple(map(_peak, data["peaks"])),
                step_ns=_positive(data["step_ns"]),
                quiet=_positive(data["quiet"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"this is no description of a machine: {error}") from None


def _some(number):
    number = int(number)
    if not 1 <= number <= 1_000_000:
        raise ValueError(f"{number} is no number of threads")
    return number


def _positive(number):
    number = float(number)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{number} is no rate")
    return number


def _peak(data):
    one, all_ = _positive(data["one"]), _positive(data["all"])
    return Peak(str(data["dtype"]), bool(data["fused"]), one, all_)


def _rates(pairs):
    rates = tuple((int(size), _positive(rate)) for size, rate in pairs)
    sizes = [size for size, _ in rates]
    if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 1:
        raise ValueError("rates are told for growing sizes")
    return rates


def _interpolated(rates, size):
    """Return the rate for a size among pairs (size, rate), by logarithms; at the ends, theirs."""
    k = bisect_left(rates, size, key=lambda pair: pair[0])
    if k == 0:
        return rates[0][1]
    if k == len(rates):
        return rates[-1][1]
    (low, slow), (high, fast) = rates[k - 1], rates[k]
    part = math.log(size / low) / math.log(high / low)
    return slow ** (1 - part) * fast**part


@dataclass(frozen=True)
class Row:
    """An Apply against the machine's limit.

    function, position, text: which one it is. calls; total: seconds in all of them; seconds: in
    one. bandwidth: GB/s, read and written; rate: GFLOP/s. attainable: seconds a call in which the
    machine could do it; share: of that in the seconds it took, 1 where nothing is left to gain,
    above 1 where the machine was faster than the probe saw it. bound: what the limit is, 'memory',
    'arithmetic' or 'overhead'. gain: seconds that all calls could take less. level: the nearest
    memory that holds what it touches: 'L1', 'L2', ..., 'RAM' or 'device'; "" where that is unknown.

    What is not known exactly is None: bandwidth without traffic, rate without flops, and the last
    four without either. Bytes and operations are those of the last call, times the mean.
    """

    function: str
    position: int
    text: str
    calls: int
    total: float
    seconds: float
    bandwidth: float | None = None
    rate: float | None = None
    attainable: float | None = None
    share: float | None = None
    bound: str | None = None
    gain: float | None = None
    level: str = ""


def level(apply, machine):
    """Return the nearest memory of a Machine that holds what an Apply touches, "" if unknown."""
    if apply.device:
        return "device"
    if apply.traffic is None or machine is None:
        return ""
    size = touched(apply)
    return next((f"L{n}" for n, cache in enumerate(machine.caches, 1) if size <= cache), "RAM")


def rows(profile, machine):
    """Return a Row for each Apply that was called: those with most to gain first.

    Those of which the gain is not known come last, the longest first. machine: that of Applys on
    the host, or None; those of devices are in the Profile.
    """
    # most Applys of a long program are like others
    limits = {
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


def _row(function, apply, limit, level):
    """Return the Row of an ApplyProfile that was called.

    limit: ``_limit`` of what it ran on; None where that was not measured.
    """
    ns = apply.total / apply.count
    traffic, flops = apply.traffic, apply.flops
    # how fast data go between host and device has not been measured
    attained = None if limit is None or apply.transfer else _attainable(apply, limit)
    known = {}
    if attained is not None:
        best, bound = attained
        known = {
            "attainable": best * 1e-9,
            "share": best / ns,
            "bound": bound,
            "gain": max(0.0, apply.total - apply.count * best) * 1e-9,
        }
    return Row(
        function=function,
        position=apply.position,
        text=apply.text,
        calls=apply.count,
        total=apply.total * 1e-9,
        seconds=ns * 1e-9,
        bandwidth=None if traffic is None else traffic / ns,
        rate=None if flops is None else flops / ns,
        level=level,
        **known,
    )


def attainable(apply, machine):
    """Return (nanoseconds in which a machine could run an Apply once, what sets that limit).

    None where traffic or flops are not known, or the machine was not measured for the dtype.
    """
    return _attainable(apply, partial(_limit, machine))


def _attainable(apply, limit):
    if apply.traffic is None or apply.flops is None:
        return None
    # of a device products alone are measured, which it does fastest
    fused = bool(apply.device) or apply.op_key.startswith(_FUSED)
    return limit(touched(apply), apply.flops, _dtype(apply), fused)


def _limit(machine, size, flops, dtype, fused):
    """Return the same for bytes that are touched and operations of a dtype."""
    if flops and machine.peak(dtype, fused) is None:
        return None

    def limits(threads):
        """Return nanoseconds for the bytes and for the operations."""
        memory = size / machine.bandwidth(size, threads)
        work = flops / machine.peak(dtype, fused, threads) if flops else 0.0
        return memory, work

    alone = max(limits(1))
    threads = int(min(machine.threads, alone / SHARE)) if alone > SHARED_FROM else 1
    memory, work = limits(threads)
    most = max(memory, work)
    if machine.step_ns > most:
        bound = "overhead"
    else:
        bound = "memory" if memory >= work else "arithmetic"
    return most + machine.step_ns, bound


def touched(apply):
    """Return the bytes that an Apply with known traffic touches, each once.

    Memory that is overwritten is read and written, but it passes through the caches once: lines go
    back while others come.
    """
    overwritten = sum(
        a.bytes
        for a, how in zip(apply.output_arrays, apply.shares, strict=True)
        if how == "i" and a is not None
    )
    return apply.traffic - overwritten


def _dtype(apply):
    """Return the dtype of an Apply's operations: of its result, or of the floats that it reads."""
    for arrays in (apply.output_arrays, apply.input_arrays):
        names = [a.dtype for a in arrays if a is not None]
        floats = [name for name in names if name.startswith("float")]
        if floats:
            return max(floats, key=lambda name: int(name.removeprefix("float")))
    return None
