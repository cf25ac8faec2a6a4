"""The process in which one contender runs one workload, driven by lines of JSON.

    python -m benchmark.suite.worker CONTENDER WORKLOAD [--small]

answers every request with a line: ``{"value": ...}``, or ``{"error": ..., "details": ...}``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback

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


def error_of(error: BaseException) -> dict[str, str]:
    first = str(error).strip().partition("\n")[0]
    return {
        "error": f"{type(error).__name__}: {first}" if first else type(error).__name__,
        "details": "".join(traceback.format_exception(error)),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()

    # What libraries print must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(args.contender, args.workload, args.small)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"value": getattr(worker, request.pop("do"))(**request)}
        except Exception as error:
            answer = error_of(error)
        print(json.dumps(answer), file=answers)
    os._exit(0)  # nobody waits for what libraries do at exit


if __name__ == "__main__":
    main()
