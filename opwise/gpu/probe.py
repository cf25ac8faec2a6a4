"""Probe: measures once how fast a device copies and multiplies, and keeps what it found.

What it finds are ``MachineLimits``, of one thread: the host's, which asks. ``python -m
opwise.gpu.probe`` measures the device that the flags ask for, in a process that leaves nothing on
it.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import numpy as np

from opwise.errors import DeviceError
from opwise.gpu import device as devices
from opwise.hardware import cpu as host
from opwise.linkers import kernelcache
from opwise.profiling.machinelimits import MachineLimits, Peak

#: what has another version was measured in another way
VERSION = 1

#: bytes of both arrays of the largest copy, and which share of the free memory they may take
_MOST = 1 << 30
_SHARE = 4
#: bytes of both arrays of the smallest copy: a device asks for the next one while it copies this
_LEAST = 64 << 20
#: lengths of the square matrices that are multiplied, and nanoseconds after which none is longer
_LENGTHS = (1024, 2048, 4096, 8192)
_LONG = 20_000_000
_DTYPES = ("float32", "float64")
#: how often everything is measured, and how often it is asked for between two marks
_ROUNDS = 5
_REPEATS = 10


def limits(device, refresh=False, largest=None):
    """Return what a Device can do at best as MachineLimits, measured if nobody has done so before.

    refresh: measure again; of both times the best is kept. largest: bytes of the largest arrays,
    altogether (None: what leaves the caches). What was measured is kept in ``config.compiledir``,
    in a file named by the name of the device.
    """
    path = _path(device)
    before = _read(path, device.name)
    if before is not None and not refresh:
        return before
    found = measure(device, largest)
    if before is not None:
        found = found.best(before)
    host.write(path, found.to_json())
    _known.cache_clear()
    return found


def known(device):
    """Return what a Device can do at best if it has been measured, else None."""
    return _known(_path(device), device.name)


@functools.cache
def _known(path, name):
    return _read(path, name)


def measure(device, largest=None):
    """Return what a Device can do now, in some tenths of a second."""
    with device.active():
        free, _ = device.memory_info()
        most = min(_MOST, free // _SHARE) if largest is None else largest
        sizes = [size for size in (_LEAST, most) if size <= most]
        rates = tuple((size, _copied(device, size)) for size in dict.fromkeys(sizes))
        found = MachineLimits(
            probe=VERSION,
            processor=device.name,
            processors=device.facts.processors,
            threads=1,
            vectors="",
            caches=(),
            one=rates,
            all=rates,
            peaks=tuple(
                Peak(dtype, True, rate, rate)
                for dtype in _DTYPES
                for rate in [_multiplied(device, dtype, most)]
            ),
            step_ns=_step_ns(device),
            quiet=1.0,
        )
    device.free()
    return found


def _least(device, ask, repeats=_REPEATS):
    """Return the nanoseconds that the device takes for what ``ask`` asks of it, at the least.

    It is asked for several times between two marks: the device has the next before it is done.
    """
    ask()  # what is made at the first call, and at each other size, is made now
    times = []
    for _ in range(_ROUNDS):
        first = device.event()
        for _ in range(repeats):
            ask()
        last = device.event()
        device.synchronize()
        times.append(device.between(first, last) / repeats)
    return max(min(times), 1.0)


def _copied(device, size):
    """Return the GB/s, read and written, of copies in the memory of the device."""
    count = max(1, size // 8)
    return 8 * count / _least(device, _copy(device, count))


def _copy(device, count):
    """Return a function that copies an array of so many numbers in the memory of the device."""
    source, target = (device.zeros((count,), "float32") for _ in range(2))

    def copy():
        target[...] = source

    return copy


def _multiplied(device, dtype, most):
    """Return the GFLOP/s of products of square matrices, three of which fit in ``most`` bytes."""
    best = 0.0
    for k, n in enumerate(_LENGTHS):
        itemsize = 4 if dtype == "float32" else 8
        if k and 3 * itemsize * n * n > most:
            break
        x, y, out = (_numbers(device, n, dtype) for _ in range(3))
        ns = _least(device, functools.partial(device.blas.gemm, x, y, out), 2)
        best = max(best, 2 * n**3 / ns)
        if ns > _LONG:
            break
    return best


def _numbers(device, n, dtype):
    """Return a matrix of numbers that differ: of zeros, products take less power and less time."""
    some = np.random.RandomState(0).uniform(-1, 1, 1 << 16)
    return device.upload(np.resize(some, (n, n)).astype(dtype))


def _step_ns(device):
    """Return the nanoseconds between the marks around a copy of one number."""
    return _least(device, _copy(device, 1), 1)


# --- what was found before ------------------------------------------------------------------------


def _path(device):
    name = re.sub(r"\W+", "-", device.name).strip("-").lower()
    return Path(kernelcache.folder(), f"device-{name}.json")


def _read(path, name):
    """Return the MachineLimits in a file, None where there is none of this probe and device."""
    try:
        found = MachineLimits.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if (found.probe, found.processor) == (VERSION, name) else None


def main():
    """Measure the device that the flags ask for, unless that was done; say so, or why it cannot."""
    name = devices.asked_for()
    if name == "cpu":
        return
    try:
        device = devices.device(devices.index_of(name))
        if known(device) is None:
            print(f"measuring what {device.name} can do at best...", file=sys.stderr)
            limits(device)
    except DeviceError as error:
        print(f"what {name} can do at best is not known: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
