"""Measure programs of numpy in numpy, opwise.jit, numba.njit and jax.jit.

Each program and contender runs in a process of its own. The first call and later ones are measured
apart, and results are compared with numpy's. A contender that refuses a program, or gives another
result, is shown as such.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmark.numpy_programs.programs import PROGRAMS, Program

CONTENDERS = ("numpy", "opwise", "numba", "jax")


def decorated(contender: str, function: Any) -> Any:
    """Return a function as a contender runs it."""
    if contender == "opwise":
        import opwise

        return opwise.jit(function)
    if contender == "numba":
        import numba

        return numba.njit(function)
    if contender == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax.jit(function)
    return function


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments)


def waited(result: Any) -> Any:
    """Return a result that is computed."""
    for each in result if isinstance(result, tuple) else (result,):
        if hasattr(each, "block_until_ready"):
            each.block_until_ready()
    return result


def same(expected: Any, result: Any) -> bool:
    """Return whether results are equal but for rounding."""
    if isinstance(expected, tuple):
        return len(expected) == len(result) and all(map(same, expected, result))
    return np.shape(expected) == np.shape(result) and bool(
        np.allclose(np.asarray(result, np.asarray(expected).dtype), expected, rtol=1e-6, atol=1e-8)
    )


def measure(program: Program, contender: str, size: int, seconds: float) -> dict[str, Any]:
    """Return {'first', 'call': seconds} of a contender, or {'error': text}."""
    arguments = program.arguments(np.random.default_rng(0), size)
    with np.errstate(all="ignore"):
        expected_arguments = copied(arguments)
        expected = program.function(*expected_arguments)
    given = copied(arguments)
    start = time.perf_counter()
    try:
        function = decorated(contender, program.function)
        result = waited(function(*given))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}"}
    first = time.perf_counter() - start
    if not same(expected, result):
        return {"error": "another result than numpy"}
    if not all(
        np.allclose(a, b) for a, b in zip(expected_arguments, given, strict=True)
        if isinstance(a, np.ndarray)
    ):  # fmt: skip
        return {"error": "other changes in place than numpy"}
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 1000):
        given = copied(arguments)
        start = time.perf_counter()
        waited(function(*given))
        times.append(time.perf_counter() - start)
    return {"first": first, "call": statistics.median(times)}


def apart(program: Program, contender: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure in a new process."""
    command = [
        sys.executable, "-m", "benchmark.numpy_programs", "--one", contender, "--only",
        program.name, "--seconds", str(arguments.seconds),
        *(["--small"] if arguments.small else []),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=arguments.timeout, env=os.environ
        )
    except subprocess.TimeoutExpired:
        return {"error": f"takes more than {arguments.timeout:g} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["it ended"])[-1][:120]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def shown(result: dict[str, Any]) -> str:
    if "error" in result:
        return result["error"].split(":")[0][:22]
    return f"{result['call'] * 1e6:9.0f} ({result['first'] * 1e3:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmark.numpy_programs", description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of programs")
    parser.add_argument("--contenders", nargs="*", default=CONTENDERS, choices=CONTENDERS)
    parser.add_argument("--small", action="store_true", help="the sizes of tests")
    parser.add_argument("--seconds", type=float, default=0.5, help="for the calls of each")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each process")
    parser.add_argument("--json", help="a file for all results")
    parser.add_argument("--one", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    chosen = [p for p in PROGRAMS if not arguments.only or p.name in arguments.only]
    if arguments.one:
        (program,) = chosen
        size = program.small if arguments.small else program.large
        print(json.dumps(measure(program, arguments.one, size, arguments.seconds)))
        return
    print("microseconds a call (milliseconds of the first call)\n")
    print(f"{'program':28}" + "".join(f"{c:>24}" for c in arguments.contenders))
    results: dict[str, dict[str, Any]] = {}
    for program in chosen:
        results[program.name] = {c: apart(program, c, arguments) for c in arguments.contenders}
        row = "".join(f"{shown(results[program.name][c]):>24}" for c in arguments.contenders)
        print(f"{program.name:28}{row}", flush=True)
    if "opwise" in arguments.contenders:
        print("\n" + summary(results))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


def summary(results: dict[str, dict[str, Any]]) -> str:
    """Return how many programs are right, and faster than which contenders."""
    right = [r for r in results.values() if "error" not in r["opwise"]]
    lines = [f"opwise: right on {len(right)} of {len(results)}"]
    for other in ("numpy", "numba", "jax"):
        both = [r for r in right if other in r and "error" not in r[other]]
        faster = sum(r["opwise"]["call"] < r[other]["call"] for r in both)
        first = sum(r["opwise"]["first"] < r[other]["first"] for r in both)
        lines.append(f"  faster than {other} in {faster} of {len(both)}, first call in {first}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
