"""What DEBUG_MODE costs beside FAST_RUN: compiling the regression benchmark, and an update.

    python -m benchmark.debug_cost [--json FILE] [--quick]

Both modes take turns, so that a busy moment of the machine falls on both; figures are medians. The
bars: at most 100 times the compilation, at most 200 times the update.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from benchmark.call_cost import machine
from benchmark.regression.cases import CASES, Case
from benchmark.regression.regression import RegressionLayer

MODES = ("FAST_RUN", "DEBUG_MODE")
BARS = {"compile": 100, "update": 200}


def compiled(case: Case, mode: str):
    """The model of a case under a mode, and the seconds that its compilation took."""
    start = time.perf_counter()
    model = RegressionLayer().make(
        input_size=case.train_x.shape[1], target_size=1, stepsize=case.stepsize, mode=mode
    )
    return model, time.perf_counter() - start


def seconds_per_update(model, case: Case, calls: int) -> float:
    inputs, targets = next(case.batches())
    start = time.perf_counter()
    for _ in range(calls):
        model.update(inputs, targets)
    return (time.perf_counter() - start) / calls


def measure(case: Case, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds by what was done and mode, one for each round."""
    samples: dict[str, dict[str, list[float]]] = {what: {m: [] for m in MODES} for what in BARS}
    models = {mode: compiled(case, mode)[0] for mode in MODES}  # the cache is filled here
    for _ in range(rounds):
        for mode in MODES:
            samples["compile"][mode].append(compiled(case, mode)[1])
        for mode, calls in zip(MODES, (5000, 50), strict=True):
            samples["update"][mode].append(seconds_per_update(models[mode], case, calls))
    return samples


def report(name: str, samples: dict[str, dict[str, list[float]]]) -> bool:
    """Print the figures of a case; whether they stay below the bars."""
    below = True
    for what, by_mode in samples.items():
        fast, debug = (statistics.median(by_mode[mode]) * 1e6 for mode in MODES)
        ratio = statistics.median(
            d / f for f, d in zip(by_mode["FAST_RUN"], by_mode["DEBUG_MODE"], strict=True)
        )
        below &= ratio <= BARS[what]
        verdict = "below" if ratio <= BARS[what] else "NOT BELOW"
        print(
            f"{name:6} {what:8} FAST_RUN {fast:11.1f} us   DEBUG_MODE {debug:11.1f} us   "
            f"{ratio:6.1f} times, {verdict} {BARS[what]}"
        )
    return below


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.debug_cost", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--quick", action="store_true", help="few repeats, to see that it works")
    args = parser.parse_args(argv)
    about = machine()
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n", end="\n\n")
    cases = {name: measure(make(), 3 if args.quick else 21) for name, make in CASES.items()}
    below = [report(name, samples) for name, samples in cases.items()]
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "cases": cases}, indent=1) + "\n")
    return 0 if all(below) else 1


if __name__ == "__main__":
    sys.exit(main())
