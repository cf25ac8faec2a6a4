"""Measures once how fast the processor and its memory are, and keeps the result.

The measuring loops are in linkers/csupport/probe.c.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import platform
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from opwise.graph.fgraph import FunctionGraph
from opwise.linkers import base, kernelcache, opwise_c, resources
from opwise.profiling.machinelimits import MachineLimits, Peak
from opwise.tensor.convert import view_op
from opwise.tensor.type import tensor_type

#: version of the measurement: results of another version are measured again
VERSION = 1

#: bytes of arrays: the least, the least that all threads share, and the most; by which factor the
#: most exceeds the last cache, if its size is known
_LEAST = 16 << 10
_SHARED = 1 << 20
_MOST = 256 << 20
_BEYOND = 4

_DTYPES = ("float32", "float64")
#: how often each rate is measured
_ROUNDS = 3
#: steps of the function that does nothing
_STEPS = 64
_CACHES = "/sys/devices/system/cpu/cpu0/cache"


def limits(
    refresh: bool = False, duration: float = 1.0, largest: int | None = None
) -> MachineLimits:
    """Return the limits of this computer; measure them if that has not been done.

    refresh: measure again; the better figures of both times are kept. duration: about how many
    seconds measuring takes. largest: bytes of the largest arrays together (default: enough to
    exceed every cache). The result is kept in ``config.compiledir`` for this model of processor,
    this number of processors and of threads.
    """
    resources.obey_flags()
    path = Path(kernelcache.folder(), f"machine-{_key()}.json")
    before = _read(path)
    if before is not None and not refresh:
        return before
    found = measure(duration, largest)
    if before is not None:
        found = found.best(before)
    write(path, found.to_json())
    _known.cache_clear()
    return found


def known() -> MachineLimits | None:
    """Return the limits of this computer if they have been measured, else None."""
    resources.obey_flags()
    return _known(str(Path(kernelcache.folder(), f"machine-{_key()}.json")))


@functools.cache
def _known(path: str) -> MachineLimits | None:
    return _read(Path(path))


def measure(duration: float = 1.0, largest: int | None = None) -> MachineLimits:
    """Measure the limits of this computer, in about ``duration`` seconds."""
    resources.obey_flags()
    caches = _caches()
    if largest is None:
        largest = min(_MOST, _BEYOND * max(caches, default=_MOST))
    sizes = _powers_of_two(_LEAST, largest)
    shared = [size for size in sizes if size >= _SHARED] or sizes[-1:]
    rates, quiet = _rates(sizes, shared, duration)
    return MachineLimits(
        probe=VERSION,
        processor=processor(),
        processors=resources.available(),
        threads=opwise_c.threads(),
        vectors=opwise_c.VECTORS,
        caches=tuple(caches),
        one=tuple((size, rates["stream", size, False]) for size in sizes),
        all=tuple((size, rates["stream", size, True]) for size in shared),
        peaks=tuple(
            Peak(dtype, fused, rates[dtype, fused, False], rates[dtype, fused, True])
            for dtype in _DTYPES
            for fused in (False, True)
        ),
        step_ns=_step_ns(duration / 20),
        quiet=quiet,
    )


def _rates(
    sizes: list[int], shared: list[int], duration: float
) -> tuple[dict[tuple[str, int | bool, bool], float], float]:
    """Return a dict of rates, and the share of the processors that all threads got.

    The dict is {('stream', bytes, by all threads) or (dtype, fused, by all threads): rate}. Each
    rate is measured several times, with all others in between: another program that runs for a
    while must not spoil all measurements of one size.
    """
    memory = np.zeros(sizes[-1] + opwise_c.PROBE_SLACK, np.uint8)
    memory.fill(0)  # now its pages are there
    jobs: list[tuple[str, int | bool, bool]]
    jobs = [("stream", size, False) for size in sizes] + [("stream", size, True) for size in shared]
    jobs += itertools.product(_DTYPES, (False, True), (False, True))
    seconds = duration / _ROUNDS / len(jobs)
    rates = dict.fromkeys(jobs, 0.0)
    used = passed = 0.0
    for _ in range(_ROUNDS):
        for job in jobs:
            what, size_or_fused, together = job
            if what == "stream":
                rate = opwise_c.probe_stream(memory, size_or_fused, together, seconds)
            else:
                started = perf_counter(), process_time()
                rate = opwise_c.probe_rate(
                    what == "float64", bool(size_or_fused), together, seconds
                )
                if together:
                    passed += perf_counter() - started[0]
                    used += process_time() - started[1]
            rates[job] = max(rates[job], rate)
    return rates, min(1.0, used / passed / opwise_c.threads())


def _powers_of_two(least: int, most: int) -> list[int]:
    sizes = [least]
    while 2 * sizes[-1] <= most:
        sizes.append(2 * sizes[-1])
    return sizes


def _step_ns(seconds: float) -> float:
    """Return the nanoseconds that a profile shows for a step that does nothing: the best mean."""
    vector = tensor_type("float64", (False,))
    x = view = vector.make_variable()
    for _ in range(_STEPS):
        view = view_op(view)
    linked = base.OpWiseCLinker().accept(FunctionGraph([x], [view], clone=False)).link()
    run, (given,) = linked.vm, linked.inputs
    assert isinstance(run, opwise_c.VM)
    run.timing.start()
    best, spent = 0.0, 0.0
    while not best or spent < seconds * 1e9:
        run.timing.reset()
        for _ in range(10):
            given.data = np.zeros(1)
            run()
        counts, totals, *_ = zip(*run.timing.by_step(), strict=True)
        mean = sum(totals) / sum(counts)
        # calling it, and the clock, take longer than its steps
        spent += 3 * sum(totals) + run.timing.timer_ns * sum(counts)
        best = min(best or mean, mean)
    return max(best, 1.0)


# --- the processor --------------------------------------------------------------------------------


def processor() -> str:
    """Return the model of the processor, as the operating system names it."""
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                name, _, value = line.partition(":")
                if name.strip() in ("model name", "cpu model", "cpu") and value.strip():
                    return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _caches(folder: str = _CACHES) -> list[int]:
    """Return the bytes of the data caches, the nearest first; [] if the system does not say."""
    found = []
    for path in Path(folder).glob("index*"):
        try:
            if (path / "type").read_text().strip() != "Instruction":
                level = int((path / "level").read_text())
                found.append((level, _bytes((path / "size").read_text().strip())))
        except (OSError, ValueError):
            continue
    return [size for _, size in sorted(found)]


def _bytes(text: str) -> int:
    """Return the bytes of a size such as 48K; K, M and G are powers of 1024."""
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:])
    return int(text) if shift is None else int(text[:-1]) << shift


# --- earlier results ------------------------------------------------------------------------------


def _about() -> tuple[Any, ...]:
    return VERSION, processor(), resources.available(), opwise_c.threads(), opwise_c.VECTORS


def _key() -> str:
    return hashlib.sha256("\0".join(map(str, _about())).encode()).hexdigest()[:16]


def _read(path: Path) -> MachineLimits | None:
    """Return the limits in a file, None unless they are of this computer and this VERSION."""
    try:
        found = MachineLimits.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    about = (found.probe, found.processor, found.processors, found.threads, found.vectors)
    return found if about == _about() else None


def write(path: Path, text: str) -> None:
    """Replace a file as a whole; do nothing if the disk cannot be written to."""
    partial = None
    try:
        handle, partial = tempfile.mkstemp(suffix=".json", dir=path.parent)
        with open(handle, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(partial, path)
    except OSError:
        if partial is not None and os.path.exists(partial):
            os.unlink(partial)
