"""How much longer calls take while other programs use every processor.

    python -m benchmark.busy [--quick] [--json FILE]

Each program is timed by turns on a quiet machine and beside one process per processor that never
waits. Two programs that share a processor get half of it each, so a call takes twice as long at best
if all its work needs every processor, and less if it leaves some idle.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

import opwise
import opwise.tensor as T
from benchmark.call_cost import machine
from opwise.linkers import resources

Call = Callable[[], object]


def logistic(rows: int = 400, columns: int = 784) -> Call:
    """A step of logistic regression, float64, as Theano's tutorial has it."""
    random = np.random.default_rng(0)
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = opwise.shared(random.normal(size=columns)), opwise.shared(0.0)
    p = 1 / (1 + T.exp(-T.dot(x, w) - b))
    cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean() + 0.01 * (w**2).sum()
    gw, gb = T.grad(cost, [w, b])
    f = opwise.function([x, y], [p, cost], updates=[(w, w - 0.1 * gw), (b, b - 0.1 * gb)])
    images, labels = random.normal(size=(rows, columns)), random.integers(0, 2, rows) * 1.0
    return lambda: f(images, labels)


def perceptron(*sizes: int, rows: int, momentum: bool = False) -> Call:
    """A step of a perceptron with hidden layers of these sizes, float32."""
    random = np.random.default_rng(0)
    x, y = T.fmatrix("x"), T.ivector("y")
    out, parameters = x, []
    for inside, outside in zip(sizes, sizes[1:], strict=False):
        w = opwise.shared((random.normal(size=(inside, outside)) / inside**0.5).astype("float32"))
        b = opwise.shared(np.zeros(outside, "float32"))
        parameters += [w, b]
        out = T.dot(out, w) + b
        out = T.nnet.softmax(out) if outside == sizes[-1] else T.tanh(out)
    cost = T.nnet.categorical_crossentropy(out, y).mean()
    updates = []
    for p, g in zip(parameters, T.grad(cost, parameters), strict=True):
        step = np.float32(-0.01) * g
        if momentum:
            speed = opwise.shared(p.get_value() * 0)
            step = np.float32(0.9) * speed + step
            updates.append((speed, step))
        updates.append((p, p + step))
    f = opwise.function([x, y], cost, updates=updates)
    images = random.normal(size=(rows, sizes[0])).astype("float32")
    labels = random.integers(0, sizes[-1], rows).astype("int32")
    return lambda: f(images, labels)


PROGRAMS: dict[str, Callable[[], Call]] = {
    "logistic 400 x 784": logistic,
    "MLP 784-20-10, 20 rows": lambda: perceptron(784, 20, 10, rows=20),
    "MLP 784-512-10, 128 rows": lambda: perceptron(784, 512, 10, rows=128),
    "momentum 256-512-256-10, 64 rows": lambda: perceptron(256, 512, 256, 10, rows=64, momentum=True),
}


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Let every processor be used by a process that never waits."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(resources.processors())
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def times(call: Call, seconds: float) -> list[float]:
    """Return the times of calls during so many seconds, three at least."""
    found: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(found) < 3:
        start = perf_counter()
        call()
        found.append(perf_counter() - start)
    return found


def measure(call: Call, seconds: float, rounds: int) -> tuple[float, float]:
    """Return the median time of a call, alone and among others."""
    call()
    alone: list[float] = []
    among: list[float] = []
    for _ in range(rounds):
        alone += times(call, seconds)
        with busy():
            among += times(call, seconds)
    return statistics.median(alone), statistics.median(among)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.busy", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="few calls")
    parser.add_argument("--json", metavar="FILE", help="write the seconds here, too")
    args = parser.parse_args(argv)
    about = machine(("numpy",))
    for name, value in about.items():
        print(f"{name}: {value}")
    print(f"\n{'ms a call, alone and among others':34} {'alone':>8} {'among':>8} {'ratio':>6}")
    found = {}
    for name, program in PROGRAMS.items():
        alone, among = measure(program(), *((0.05, 1) if args.quick else (1.0, 5)))
        found[name] = {"alone": alone, "among": among}
        print(f"{name:34} {alone * 1e3:8.3f} {among * 1e3:8.3f} {among / alone:6.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": about, "seconds": found}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
