"""MachineLimits: the peak rates of a processor or a device, as the probes measured them, and JSON.

Rates are GB/s and GFLOP/s, which are bytes and operations per nanosecond.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

#: (bytes, GB/s) pairs, the smallest size first
Rates = tuple[tuple[int, float], ...]

#: other programs disturbed a probe that got less than this share of the processors
QUIET = 0.8

#: what the JSON form of MachineLimits calls itself
FORMAT = "opwise machine"


@dataclass(frozen=True)
class Peak:
    """Peak rate of multiplications and additions of one dtype."""

    dtype: str
    #: whether both are rounded as one, as in matrix products; loops of elementwise Applys and
    #: reductions round twice
    fused: bool
    #: GFLOP/s of one thread
    one: float
    #: GFLOP/s of all threads
    all: float


@dataclass(frozen=True)
class MachineLimits:
    """Peak rates of a processor, measured with opwise's own loops and threads; or of a device.

    For a device, ``one`` and ``all`` are copies within its memory, ``peaks`` are matrix products.
    """

    #: version of the probe that measured it
    probe: int
    #: model of the processor, or name of the device
    processor: str
    #: number of processors that the process may use, or of multiprocessors
    processors: int
    #: number of threads that opwise uses
    threads: int
    #: instruction set of the vectorised kernels
    vectors: str
    #: sizes of the data caches in bytes, the nearest first
    caches: tuple[int, ...]
    #: GB/s of z = x + y by one thread, read and written, by the bytes of all three arrays
    one: Rates
    #: the same by all threads
    all: Rates
    #: peak rates of arithmetic
    peaks: tuple[Peak, ...]
    #: nanoseconds of a step that does nothing; of a device, of a copy of one number
    step_ns: float
    #: share of the processors that the probe got while all threads computed, see QUIET
    quiet: float
    #: number of measurements of which these are the best figures
    times: int = 1

    def bandwidth(self, size: float, threads: int = 1) -> float:
        """Return the GB/s at which a number of threads moves ``size`` bytes.

        Interpolates between measured sizes (the logarithm of the rate by that of the size) and
        between one thread and all (linearly).
        """
        return self._shared(_interpolated(self.one, size), _interpolated(self.all, size), threads)

    def peak(self, dtype: str | None, fused: bool, threads: int = 1) -> float | None:
        """Return the GFLOP/s of a dtype by a number of threads; None if it was not measured."""
        for peak in self.peaks:
            if (peak.dtype, peak.fused) == (dtype, fused):
                return self._shared(peak.one, peak.all, threads)
        return None

    def best(self, other: MachineLimits) -> MachineLimits:
        """Return the better rates of two measurements of the same hardware."""

        def rates(one: Rates, other: Rates) -> Rates:
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
            times=self.times + other.times,
        )

    def _shared(self, one: float, all_: float, threads: int) -> float:
        if threads <= 1 or self.threads <= 1:
            return one
        # other programs may have been at work when all threads were measured
        return one + (max(one, all_) - one) * (min(threads, self.threads) - 1) / (self.threads - 1)

    def to_json(self) -> str:
        """Return the limits as JSON text; ``from_json`` gives equal ones."""
        return json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> MachineLimits:
        """Return the MachineLimits of a JSON text. Raises ValueError for any other text."""
        try:
            data = json.loads(text)
            data.setdefault("times", 1)  # earlier files do not count them
            if data.pop("format") != FORMAT or set(data) != {f.name for f in fields(cls)}:
                raise ValueError("it has other fields")
            return cls(
                probe=int(data["probe"]),
                processor=str(data["processor"]),
                processors=int(data["processors"]),
                threads=_thread_count(data["threads"]),
                vectors=str(data["vectors"]),
                caches=tuple(int(size) for size in data["caches"]),
                one=_rates(data["one"]),
                all=_rates(data["all"]),
                peaks=tuple(map(_peak, data["peaks"])),
                step_ns=_positive(data["step_ns"]),
                quiet=_positive(data["quiet"]),
                times=_thread_count(data["times"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a description of hardware limits: {error}") from None


def _thread_count(value: Any) -> int:
    number = int(value)
    if not 1 <= number <= 1_000_000:
        raise ValueError(f"{number} is not a number of threads (1 to 1,000,000)")
    return number


def _positive(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{number} is not a rate: rates are finite and above 0")
    return number


def _peak(data: dict[str, Any]) -> Peak:
    one, all_ = _positive(data["one"]), _positive(data["all"])
    return Peak(str(data["dtype"]), bool(data["fused"]), one, all_)


def _rates(pairs: Iterable[tuple[Any, Any]]) -> Rates:
    rates = tuple((int(size), _positive(rate)) for size, rate in pairs)
    sizes = [size for size, _ in rates]
    if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 1:
        raise ValueError("the sizes of rates must grow, from 1 byte")
    return rates


def _interpolated(rates: Rates, size: float) -> float:
    """Return the rate for a size, interpolated by logarithms; beyond the ends, the end's rate."""
    k = bisect_left(rates, size, key=lambda pair: pair[0])
    if k == 0:
        return rates[0][1]
    if k == len(rates):
        return rates[-1][1]
    (low, slow), (high, fast) = rates[k - 1], rates[k]
    part = math.log(size / low) / math.log(high / low)
    return float(slow ** (1 - part) * fast**part)
