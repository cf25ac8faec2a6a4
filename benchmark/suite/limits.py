"""What this machine can do at best, measured: memory, matrix products, a call into C.

No implementation of a workload is faster than the slowest of the three. Arithmetic other than
matrix products is not counted, so that programs full of exponentials stay above their limit.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from functools import partial
from operator import neg
from pathlib import Path

import numpy as np

from benchmark.suite.timing import calls_for, seconds_of
from benchmark.suite.workload import Least

SOURCE = Path(__file__).with_name("limits.c")
COMPILE = ["-O3", "-march=native", "-pthread", "-shared", "-fPIC"]
READ, TRIAD, STREAMING_TRIAD = range(3)
FOOTPRINTS = [2**power for power in range(16, 30, 2)] + [2**29]
SIDE = 1500


@dataclass(frozen=True)
class Bandwidth:
    """Bytes a second over arrays of so many bytes in all: read; and read twice, written once."""

    footprint: int
    read: float
    triad: float
    streaming_triad: float


@dataclass(frozen=True)
class Limits:
    """``flops`` a second by dtype; ``call``, seconds of a call from a loop in Python into C."""

    call: float
    flops: dict[str, float]
    memory: list[Bandwidth] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def seconds(self, least: Least, dtype: str) -> tuple[float, str]:
        """The least time of a call, and what sets it: ``memory``, ``matrix`` or ``call``."""
        rate = self.flops.get({"complex64": "float32"}.get(dtype, dtype))
        bounds = {
            "call": self.call,
            "matrix": least.flops / rate if rate else 0.0,
            "memory": self.moving(least),
        }
        bound = max(bounds, key=bounds.get)
        return bounds[bound], bound

    def moving(self, least: Least) -> float:
        """Seconds to move the bytes: two read with each written as a triad does, the rest as a sum.

        Bandwidth is that of arrays as large as what is moved, since small ones stay in caches.
        """
        if not self.memory:
            return 0.0
        read, triad = self.at(least.read + least.written)
        alone = max(0, least.read - 2 * least.written)
        return alone / read + (least.read + least.written - alone) / triad

    def at(self, footprint: int) -> tuple[float, float]:
        """Bandwidths of a read and of the faster triad, between the footprints measured."""
        places = [math.log(row.footprint) for row in self.memory]
        reads = [row.read for row in self.memory]
        triads = [max(row.triad, row.streaming_triad) for row in self.memory]
        place = math.log(max(footprint, 1))
        return float(np.interp(place, places, reads)), float(np.interp(place, places, triads))


def better(first: Limits, second: Limits) -> Limits:
    """What was possible at one time or the other."""
    return Limits(
        min(first.call, second.call),
        {dtype: max(rate, second.flops[dtype]) for dtype, rate in first.flops.items()},
        [
            Bandwidth(a.footprint, *map(max, astuple(a)[1:], astuple(b)[1:]))
            for a, b in zip(first.memory, second.memory, strict=True)
        ],
        first.notes,
    )


def measure() -> Limits:
    """Half a minute; the best of many attempts, since a limit is what is possible."""
    memory, notes = memory_rates()
    return Limits(call_seconds(), {d: flops(d) for d in ("float32", "float64")}, memory, notes)


def call_seconds() -> float:
    """A call of a built-in function of one argument, timed as all contenders are."""
    step = partial(neg, 1.0)
    calls = calls_for(step, 0.01)
    return least_of(lambda: seconds_of(step, calls), 1) / calls


def least_of(sample: Callable[[], float], seconds: float) -> float:
    """The least of what is sampled for so long."""
    end = time.perf_counter() + seconds
    least = sample()
    while time.perf_counter() < end:
        least = min(least, sample())
    return least


def flops(dtype: str) -> float:
    """Flops a second in a product of square matrices by scipy's BLAS, which opwise calls too."""
    from scipy.linalg.blas import dgemm, sgemm

    rng = np.random.default_rng(0)
    a, b, c = (np.asfortranarray(rng.normal(size=(SIDE, SIDE)), dtype) for _ in range(3))
    gemm = partial({"float32": sgemm, "float64": dgemm}[dtype], 1.0, a, b, 0.0, c, overwrite_c=1)
    return 2 * SIDE**3 / least_of(lambda: seconds_of(gemm, 1), 3)


def memory_rates() -> tuple[list[Bandwidth], list[str]]:
    """A row for each footprint; none, and the reason, where C cannot be compiled."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        return [], ["memory was not measured: there is no C compiler"]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "limits.so"
        command = [compiler, *COMPILE, str(SOURCE), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return [], [f"memory was not measured: {done.stderr.strip().partition(chr(10))[0]}"]
        measured = ctypes.CDLL(str(library)).bandwidth
    measured.restype = ctypes.c_double
    measured.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int, ctypes.c_long]
    return [
        Bandwidth(
            footprint,
            *(best_rate(measured, kind, footprint) for kind in (READ, TRIAD, STREAMING_TRIAD)),
        )
        for footprint in FOOTPRINTS
    ], []


def best_rate(measured, kind: int, footprint: int) -> float:
    passes = max(2, 2**26 // footprint)
    return -least_of(lambda: -measured(kind, footprint, processors(), passes), 0.8)


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
