"""Print what log-densities and gradients of PyMC's models cost under several modes of PyTensor.

    python -m benchmark.pymc [--modes OPWISE,NUMBA] [--json FILE] [model ...]

For each model and mode two processes compile the function of its log-density and gradient: one with
empty caches ("cold"), then one with what the first left there ("warm"). The seconds are those of
the processor, with PyMC's and PyTensor's own work; calls are timed in the second process, the least
time. Modes take turns, so that a busy computer slows all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

DEFAULT = ("OPWISE", "NUMBA")


def measure(name: str, mode: str) -> dict[str, Any]:
    """Compile and call the function of one model in this process."""
    warnings.simplefilter("ignore")
    import pymc as pm

    import opwise.pytensor
    from benchmark.pymc.models import MODELS

    model = MODELS[name]()
    own, started = os.times(), time.perf_counter()
    compiled = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
    compiled.set_extra_values({})
    point = pm.blocking.DictToArrayBijection.map(model.initial_point()).data
    function = compiled._pytensor_function
    function.trust_input = True
    value = function(point)
    wall, now = time.perf_counter() - started, os.times()
    if mode == "OPWISE":
        opwise.pytensor.own_function(function).linked.wait_for_kernels()
    return {
        # of compilers too, which are other processes
        "compile": sum(now[:4]) - sum(own[:4]),
        "wall": wall,
        "call": seconds_of_a_call(function, point),
        "logp": float(value[0]),
    }


def seconds_of_a_call(function: Any, point: Any) -> float:
    """Return the least time of a call, of several turns."""
    best = float("inf")
    for _ in range(15):
        n = 1
        while True:
            start = time.perf_counter()
            for _ in range(n):
                function(point)
            taken = time.perf_counter() - start
            if taken > 0.005:
                break
            n *= 2
        best = min(best, taken / n)
    return best


def in_processes(name: str, mode: str) -> dict[str, Any]:
    """Return what ``measure`` gives in a process with empty caches, and in one after it."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as caches:
        env = {
            **os.environ,
            "PYTENSOR_FLAGS": f"base_compiledir={caches}/pytensor",
            "OPWISE_FLAGS": f"base_compiledir={caches}/opwise",
            "NUMBA_CACHE_DIR": f"{caches}/numba",
        }
        for when in ("cold", "warm"):
            done = subprocess.run(
                [sys.executable, "-m", "benchmark.pymc", "--one", name, mode],
                env=env, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                return {"error": done.stderr.strip().rpartition("\n")[2][:200]}
            found[when] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def text(found: dict[str, Any]) -> str:
    """Return the figures of a model under a mode: seconds cold and warm, microseconds a call."""
    if "error" in found:
        return "failed: " + found["error"]
    cold, warm = found["cold"], found["warm"]
    return f"{cold['compile']:9.2f} {warm['compile']:9.2f} {warm['call'] * 1e6:11.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modes", default=",".join(DEFAULT))
    parser.add_argument("--json", help="write the figures to a file")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "MODE"), help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    from benchmark.pymc.models import MODELS

    figures: dict[str, Any] = {}
    print(f"{'model':18} {'mode':10} {'cold, s':>9} {'warm, s':>9} {'a call, µs':>11}")
    for name in options.models or MODELS:
        for mode in options.modes.split(","):
            found = figures.setdefault(name, {})[mode] = in_processes(name, mode)
            print(f"{name:18} {mode:10} {text(found)}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
