"""What ``opwise run --live``, and its samples of the program, cost: calls per second of a small
function with the table, without it, and without samples.

    python -m benchmark.live_cost [--rounds N] [--calls N]

Each figure comes from a program of its own in a terminal of its own, and is the best of twelve
parts of its calls. The three ways take turns; medians and extremes are printed.
"""

from __future__ import annotations

import argparse
import os
import pty
import statistics
import sys
import tempfile
from pathlib import Path

from benchmark.call_cost import machine

PROGRAM = """
import sys, time
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], T.exp(x).sum(), name="f")
v = np.ones(10)
n, best = int(sys.argv[1]), 0.0
for _ in range(12):
    start = time.perf_counter()
    for _ in range(n):
        f(v)
    best = max(best, n / (time.perf_counter() - start))
open("rate", "w").write(str(best))
"""
#: the options of opwise run, by way
WAYS: dict[str, list[str]] = {
    "without": [],
    "--live": ["--live"],
    "--no-sampling": ["--no-sampling"],
}


def rate(way: str, calls: int) -> float:
    """Return the calls per second of a program that runs in one of ``WAYS``."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(PROGRAM)
        words = [sys.executable, "-m", "opwise", "run", "--no-limits", *WAYS[way]]
        child, terminal = pty.fork()
        if not child:
            os.chdir(folder)
            os.environ.update(TERM="xterm", PYTHONPATH=str(Path(__file__).resolve().parents[1]))
            os.execv(sys.executable, [*words, script.name, str(calls)])
        _read_all(terminal)
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit(f"the program failed with status {status}")
        return float(Path(folder, "rate").read_text())


def _read_all(terminal: int) -> None:
    """Read what is written to a terminal until nobody has it any more."""
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:  # Linux says so at the end
        pass
    os.close(terminal)


def measure(rounds: int, calls: int) -> dict[str, list[float]]:
    """Return the calls per second of each way, by round."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in list(WAYS) if number % 2 else reversed(WAYS):
            found[way].append(rate(way, calls))
    return found


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure what opwise run --live and samples cost.")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calls", type=int, default=200_000, help="in each of the twelve parts")
    args = parser.parse_args(argv)
    print("; ".join(f"{name} {value}" for name, value in machine(()).items()))
    for way, rates in measure(args.rounds, args.calls).items():
        print(
            f"{way:13} {statistics.median(rates):12,.0f} calls per second, "
            f"from {min(rates):,.0f} to {max(rates):,.0f}"
        )


if __name__ == "__main__":
    main()
