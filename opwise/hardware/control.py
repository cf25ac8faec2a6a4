"""The control: a fixed piece of work, which tells how fast the hardware is at the moment.

Runs of a program at different times are compared with the times of the control beside them. Each
part asks for something else of the hardware: the interpreter, arithmetic on one processor and on
all, memory. It uses numpy alone, so it is the same under every version of opwise.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from opwise.profiling.noise import CONTROL, TYPICAL_CONTROL

#: how often each part runs in a measurement; each takes about a millisecond
_TIMES = 24


def measure() -> dict[str, float]:
    """Run the control, and return {name: seconds} for the environment of a profile.

    Of each part the mean and the median, as what it is compared with.
    """
    found = {}
    for name, work in _parts().items():
        work()  # warm-up
        times = []
        for _ in range(_TIMES):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        found[f"{CONTROL}{name}"] = statistics.fmean(times)
        found[f"{TYPICAL_CONTROL}{name}"] = statistics.median(times)
    return found


def _parts() -> dict[str, Callable[[], object]]:
    small, large = np.linspace(0.0, 1.0, 4096), np.zeros(1_000_000)
    result, copied = np.empty_like(small), np.empty_like(large)
    square = np.linspace(0.0, 1.0, 300 * 300).reshape(300, 300)

    def arithmetic() -> None:
        for _ in range(40):
            np.exp(small, out=result)

    return {
        "python": lambda: sum(k * k for k in range(20_000)),
        "arithmetic": arithmetic,
        "memory": lambda: np.copyto(copied, large),
        "products": lambda: square @ square,
    }
