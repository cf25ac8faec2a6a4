"""The process in which one contender runs one program.

python -m benchmark.numpy_programs.worker MODULE CONTENDER PROGRAM [--small]
"""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any

import numpy as np

from benchmark.numpy_programs.contenders import (
    CONTENDERS,
    copied,
    difference,
    given,
    load,
    memory,
    prepared,
    waited,
)
from benchmark.numpy_programs.program import Program
from benchmark.processes import serve

#: of one request for samples
MOST_CALLS = 1000


class Worker:
    """One contender and one program. Its methods are the requests that it answers."""

    def __init__(self, program: Program, contender: str, small: bool) -> None:
        self._program, self._contender = program, contender
        self._arguments = program.arguments(
            np.random.default_rng(0), program.small if small else program.large
        )
        with np.errstate(all="ignore"):
            self._expected_arguments = copied(self._arguments)
            self._expected = program.function(*self._expected_arguments)

    def first(self) -> float:
        """Return the seconds until the first result, the library's import not counted."""
        load(self._contender)
        args = given(self._contender, self._arguments)
        start = time.perf_counter()
        self._function = prepared(self._program, self._contender, self._arguments)
        self._result = waited(self._function(*args))
        seconds = time.perf_counter() - start
        self._given = args
        return seconds

    def check(self) -> str:
        """Return how the first result, or what it changed, differs from numpy's."""
        found = difference(self._expected, self._result)
        if found:
            return found
        changed = difference(self._expected_arguments, self._given)
        del self._given, self._result
        if changed and not self._contender.startswith("jax"):
            return "other changes in place than numpy: " + changed.replace("result", "argument")
        return ""

    def time(self, seconds: float) -> list[float]:
        """Return the seconds of calls that take about so long together, and of one at least."""
        times: list[float] = []
        function, clock = self._function, time.perf_counter
        waited(function(*given(self._contender, self._arguments)))  # the caches
        end = clock() + seconds
        while not times or (clock() < end and len(times) < MOST_CALLS):
            args = given(self._contender, self._arguments)
            start = clock()
            waited(function(*args))
            times.append(clock() - start)
        return times

    def memory(self) -> int | None:
        """Return the most bytes of a call, arguments and results not counted."""
        return memory(self._program, self._contender, self._function, self._arguments)


def programs_of(module: str) -> list[Program]:
    """Return the programs of a module."""
    found: Any = importlib.import_module(module)
    return list(found.PROGRAMS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("program")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    np.seterr(all="ignore")
    (program,) = [p for p in programs_of(arguments.module) if p.name == arguments.program]
    serve(Worker(program, arguments.contender, arguments.small))


if __name__ == "__main__":
    main()
