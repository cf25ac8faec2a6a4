"""What two threads gain over one: calls of a function, of it and its copy, and of a PerThread.

    python -m benchmark.threads [--seconds N] [--json FILE]

"Work" is how many calls end in the time that one thread needs for one call: 1 where threads wait
for each other, 2 where both run all the time on two processors. Kernels have one thread each, so
that a call leaves the other processor alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.call_cost import machine

#: elements of the argument: kernels of microseconds, and of a millisecond
SIZES = (20_000, 1_000_000)


def calls_of(works: list[Callable[[], Any]], seconds: float) -> float:
    """Return how many calls a second functions in threads of their own make, all together."""
    start, counts = threading.Barrier(len(works) + 1), [0] * len(works)
    done = threading.Event()

    def run(k: int) -> None:
        works[k]()
        start.wait()
        while not done.is_set():
            works[k]()
            counts[k] += 1

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(works))]
    for thread in threads:
        thread.start()
    start.wait()
    started = time.perf_counter()
    time.sleep(seconds)
    done.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def measure(size: int, seconds: float, repeats: int = 5) -> dict[str, Any]:
    """Return the work of two threads for an argument of ``size`` numbers, by what they call."""
    import opwise
    import opwise.tensor as T

    x, w = T.dvector("x"), opwise.shared(np.ones(()), name="w")
    f = opwise.function([x], T.tanh(T.exp(x) * w).sum())
    g, each = f.copy(), opwise.PerThread(f)
    value = np.linspace(0, 1, size)
    ways: dict[str, list[Callable[[], Any]]] = {
        "one function": [lambda: f(value)] * 2,
        "f and f.copy()": [lambda: f(value), lambda: g(value)],
        "PerThread(f)": [lambda: each(value)] * 2,
    }
    work: dict[str, list[float]] = {name: [] for name in ways}
    alone = []
    for _ in range(repeats):
        alone.append(calls_of([lambda: f(value)], seconds))
        for name, works in ways.items():
            work[name].append(calls_of(works, seconds) / alone[-1])
    return {
        "size": size, "call": 1 / statistics.median(alone),
        "work": {name: statistics.median(found) for name, found in work.items()},
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.threads", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--seconds", type=float, default=0.5, metavar="N",
                        help="seconds of each measurement (default: 0.5)")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args(argv)

    import opwise

    about = machine()
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    rows = []
    with opwise.change_flags(threads=1):
        for size in SIZES:
            rows.append(measure(size, args.seconds))
    names = list(rows[0]["work"])
    print(f"\n{'numbers':>10} {'a call, us':>11}", *(f"{name:>15}" for name in names))
    for row in rows:
        shown = (f"{row['work'][name]:15.2f}" for name in names)
        print(f"{row['size']:10} {row['call'] * 1e6:11.1f}", *shown)
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
