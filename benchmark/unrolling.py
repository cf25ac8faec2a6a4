"""Print what it gains to unroll short loops: times of compilation and of calls, both ways.

    python benchmark/unrolling.py [steps ...]

The limit of the rewrite ``scanOp_unroll`` (``MOST_APPLYS`` in ``opwise/loops/rules/unrolling.py``)
comes from these figures.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

import opwise.tensor as T
from opwise import Mode, function
from opwise.config import change_flags
from opwise.loops import scan
from opwise.loops.rules import unrolling

#: name: (the next value of h, the shape of h)
STEPS = {
    "scalar, 2 Applys": (lambda h: T.tanh(h) + 0.1, ()),
    "scalar, 8 Applys": (lambda h: T.tanh(h * 0.5 + T.sin(h)) * T.exp(-h * h), ()),
    "100, 2 Applys": (lambda h: T.tanh(h) + 0.1, (100,)),
    "100, 8 Applys": (lambda h: T.tanh(h * 0.5 + T.sin(h)) * T.exp(-h * h), (100,)),
    "100,000, 2 Applys": (lambda h: 0.5 * h + 1, (100_000,)),
}
MODES = {"loop": Mode().excluding("scanOp_unroll"), "unrolled": Mode()}


def graphs(step, shape, n):
    """Yield (what is computed, inputs, outputs): the last value, all values, a gradient."""
    h = T.TensorType("float64", (False,) * len(shape))("h")
    rows, _ = scan(step, outputs_info=h, n_steps=n)
    yield "last", [h], rows[-1]
    yield "all", [h], rows
    yield "gradient", [h], T.grad(rows[-1].sum(), h)


def seconds_of_a_call(f, value):
    """Return the least time of a call, of several turns."""
    best = float("inf")
    for _ in range(7):
        n = 1
        while True:
            start = perf_counter()
            for _ in range(n):
                f(value)
            taken = perf_counter() - start
            if taken > 0.005:
                break
            n *= 2
        best = min(best, taken / n)
    return best


def main(numbers):
    """Print a line for each step, number of steps and graph."""
    unrolling.MOST_APPLYS = sys.maxsize
    with change_flags(cache_graphs=False):  # rewriting is timed, and its limit is another
        measure(numbers)


def measure(numbers):
    """Print the lines of ``main``."""
    for name, (step, shape) in STEPS.items():
        value = np.random.default_rng(0).uniform(0.1, 0.9, shape)
        for n in numbers:
            for what, inputs, output in graphs(step, shape, n):
                found = []
                for mode in MODES.values():
                    function(inputs, output, mode=mode)  # the kernels are in the cache then
                    compiled = []
                    for _ in range(3):
                        start = perf_counter()
                        f = function(inputs, output, mode=mode)
                        compiled.append(perf_counter() - start)
                    found.append((min(compiled), seconds_of_a_call(f, value)))
                (c0, t0), (c1, t1) = found
                print(
                    f"{name:18} {n:3} steps, {what:8}: compiled in {1e3 * c0:5.0f} ms as a loop, "
                    f"{1e3 * c1:5.0f} unrolled; a call {1e6 * t0:8.2f} us, {1e6 * t1:8.2f}: "
                    f"{t0 / t1:5.2f} times as fast",
                    flush=True,
                )


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or [2, 4, 8])
