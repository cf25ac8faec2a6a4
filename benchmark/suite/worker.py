"""The process in which one contender runs one workload, driven by lines of JSON.

    python -m benchmark.suite.worker CONTENDER WORKLOAD [--small]

answers every request with a line: ``{"value": ...}``, or ``{"error": ..., "details": ...}``.
"""

from __future__ import annotations

import argparse
import time

from benchmark.processes import serve
from benchmark.suite import check
from benchmark.suite.contenders import CONTENDERS
from benchmark.suite.timing import calls_for, seconds_of
from benchmark.suite.workloads import WORKLOADS


class Worker:
    """What can be asked of it: the methods without an underscore."""

    def __init__(self, contender: str, workload: str, small: bool):
        self._contender = CONTENDERS[contender]
        self._workload = WORKLOADS[workload].reduced() if small else WORKLOADS[workload]

    def load(self) -> None:
        self._contender.load(self._workload)

    def compile(self) -> dict[str, float]:
        """Seconds until there is something to call, and seconds of the first call."""
        start = time.perf_counter()
        self._step = self._contender.build()
        built = time.perf_counter()
        self._first = self._step()
        return {"build": built - start, "first": time.perf_counter() - built}

    def check(self, path: str) -> None:
        """Leave the first results in a file."""
        check.of_contender(self._contender, self._step, self.__dict__.pop("_first")).save(path)

    def calibrate(self, seconds: float) -> int:
        """How many calls take so long; the most of three answers, in case the machine was busy."""
        self._contender.settle(self._step)
        return max(calls_for(self._step, seconds, self._workload.holds) for _ in range(3))

    def time(self, calls: int) -> float:
        """Seconds a call. One call goes before, to get the caches back from other processes."""
        self._step()
        return seconds_of(self._step, calls, self._workload.holds) / calls


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()

    serve(Worker(args.contender, args.workload, args.small))


if __name__ == "__main__":
    main()
