"""Peak bandwidth and FLOP/s of a device: measured once, and kept in a file.

``python -m opwise.gpu.runtime.device_peaks NAME...`` measures devices in a process of its own,
whose memory on them is freed when it ends.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from opwise.errors import DeviceError
from opwise.gpu.runtime import device as devices
from opwise.gpu.runtime.device import Device, DeviceArray
from opwise.hardware import cpu as host
from opwise.linkers import kernelcache
from opwise.profiling.machinelimits import MachineLimits, Peak

#: results of another version were measured in another way
VERSION = 1

#: bytes of both arrays of the largest copy
_MOST = 1 << 30
#: they take at most one part in so many of the free memory
_SHARE = 4
#: bytes of both arrays of the smallest copy: the next copy is enqueued before this one is done
_LEAST = 64 << 20
#: lengths of the square matrices to be multiplied
_LENGTHS = (1024, 2048, 4096, 8192)
#: a product that takes so many nanoseconds is the last
_LONG = 20_000_000
_DTYPES = ("float32", "float64")
#: measurements of each quantity
_ROUNDS = 5
#: repetitions of the work in a measurement
_REPEATS = 10


def limits(device: Device, refresh: bool = False, largest: int | None = None) -> MachineLimits:
    """Return the peak rates of a device; measure them unless that was done before.

    refresh: measure again; the better of both results is kept. largest: bytes of the largest
    arrays, altogether (default: what leaves the caches). Results are kept in a file in
    ``config.compiledir``, named by the device.
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


def known(device: Device) -> MachineLimits | None:
    """Return the peak rates of a device if they have been measured, else None."""
    return _known(_path(device), device.name)


@functools.cache
def _known(path: Path, name: str) -> MachineLimits | None:
    return _read(path, name)


def measure(device: Device, largest: int | None = None) -> MachineLimits:
    """Measure the peak rates of a device in some tenths of a second."""
    with device.active():
        free, _ = device.memory_info()
        most = min(_MOST, free // _SHARE) if largest is None else largest
        sizes = [size for size in (_LEAST, most) if size <= most]
        rates = tuple((size, _copy_rate(device, size)) for size in dict.fromkeys(sizes))
        found = MachineLimits(
            probe=VERSION,
            processor=device.name,
            processors=device.limits.processors,
            threads=1,
            vectors="",
            caches=(),
            one=rates,
            all=rates,
            peaks=tuple(
                Peak(dtype, True, rate, rate)
                for dtype in _DTYPES
                for rate in [_product_rate(device, dtype, most)]
            ),
            step_ns=_step_ns(device),
            quiet=1.0,
        )
    device.free()
    return found


def _least_ns(device: Device, enqueue: Callable[[], object], repeats: int = _REPEATS) -> float:
    """Return the least nanoseconds of the device for the work that ``enqueue`` enqueues.

    It is enqueued several times between two events: the device has the next before it is done.
    """
    enqueue()  # allocates and compiles what only the first call does
    times = []
    for _ in range(_ROUNDS):
        first = device.event()
        for _ in range(repeats):
            enqueue()
        last = device.event()
        device.synchronize()
        times.append(device.between(first, last) / repeats)
    return max(min(times), 1.0)


def _copy_rate(device: Device, size: int) -> float:
    """Return GB/s, read and written, of copies in the memory of the device."""
    count = max(1, size // 8)
    return 8 * count / _least_ns(device, _copy(device, count))


def _copy(device: Device, count: int) -> Callable[[], None]:
    """Return a function that copies an array of ``count`` numbers in the memory of the device."""
    source, target = (device.zeros((count,), "float32") for _ in range(2))

    def copy() -> None:
        target[...] = source

    return copy


def _product_rate(device: Device, dtype: str, most: int) -> float:
    """Return GFLOP/s of products of square matrices, three of which fit in ``most`` bytes."""
    best = 0.0
    for k, n in enumerate(_LENGTHS):
        itemsize = 4 if dtype == "float32" else 8
        if k and 3 * itemsize * n * n > most:
            break
        x, y, out = (_random_matrix(device, n, dtype) for _ in range(3))
        ns = _least_ns(device, functools.partial(device.blas.gemm, x, y, out), 2)
        best = max(best, 2 * n**3 / ns)
        if ns > _LONG:
            break
    return best


def _random_matrix(device: Device, n: int, dtype: str) -> DeviceArray:
    """Return a matrix of random numbers: products of zeros take less power, and so less time."""
    some = np.random.RandomState(0).uniform(-1, 1, 1 << 16)
    return device.upload(np.resize(some, (n, n)).astype(dtype))


def _step_ns(device: Device) -> float:
    """Return the nanoseconds between events around a copy of one number."""
    return _least_ns(device, _copy(device, 1), 1)


# --- the file -------------------------------------------------------------------------------------


def _path(device: Device) -> Path:
    name = re.sub(r"\W+", "-", device.name).strip("-").lower()
    return Path(kernelcache.folder(), f"device-{name}.json")


def _read(path: Path, name: str) -> MachineLimits | None:
    """Return the results in a file; None unless they are of this version and device."""
    try:
        found = MachineLimits.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if (found.probe, found.processor) == (VERSION, name) else None


def main(names: Sequence[str]) -> None:
    """Print {name: limits} of devices as JSON; measure those that were not measured before.

    Reports on stderr which are measured, and which cannot be used: those are left out.
    """
    found = {}
    for name in names:
        try:
            device = devices.device(devices.index_of(name))
            if known(device) is None:
                print(f"measuring peak bandwidth and FLOP/s of {device.name}...", file=sys.stderr)
            found[name] = limits(device).to_json()
        except DeviceError as error:
            print(f"cannot measure {name}: {error}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
