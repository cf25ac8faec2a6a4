"""How a data-parallel gradient step scales with worker processes.

    python -m benchmark.distributed [--quick] [--json FILE]

Trains a multinomial logistic regression on one and on two workers with one kernel thread each, and
checks that both give the same bits. Prints where the time of the workers goes, then measures the
parts of a step by themselves, and projects its time for more workers from them:

    step(W) = o + ceil(n / W) c + l(W) h

n: the number of chunks. c: the time of a chunk in the compiled function. o: the time of a step on
one worker whose chunks have a single row, which is that of the scheduler, the client, the messages
and the update. h: the time of a task whose input comes from another worker. l(W): how often a step
has to wait for one: once for the parameters, and once for each level of sums whose groups of 8 lie
on several workers; 0 for one worker. The projection assumes that each worker, the scheduler and the
client have a core of their own, and that no worker slows the memory of another down.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, wait

import opwise
import opwise.distributed as od
import opwise.tensor as T
from benchmark.call_cost import machine

FEATURES, CLASSES = 100, 10
PROJECTED = (1, 2, 4, 8, 16)


def model() -> tuple[od.DataParallel, Any]:
    """A step of the regression, and its parameters."""
    x, y = T.dmatrix("x"), T.lvector("y")
    w = opwise.shared(np.zeros((FEATURES, CLASSES)), name="w")
    cost = T.nnet.categorical_crossentropy(T.nnet.softmax(T.dot(x, w)), y).mean()
    step = od.DataParallel([x, y], cost, [w], lambda g: [(w, w - 0.5 * g[0])], mean=True)
    return step, w


@dask.delayed
def data(k: int, rows: int) -> list[np.ndarray]:
    """The arrays of a chunk, the same ones on every worker."""
    random = np.random.default_rng(k)
    x = random.normal(size=(rows, FEATURES))
    return [x, (x[:, :CLASSES] + random.normal(size=(rows, CLASSES))).argmax(1)]


def steps(client: Client, chunks: od.Chunks, count: int) -> tuple[list[float], bytes]:
    """Seconds of each of some steps after a first one, and the bits of the parameters."""
    step, w = model()
    step(chunks)
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        step(chunks)
        seconds.append(time.perf_counter() - start)
    return seconds, w.get_value().tobytes()


def parts_of_steps(client: Client, chunks: od.Chunks, count: int) -> dict[str, float]:
    """Seconds of a step on each worker by what it does, and of a chunk, from profiles."""
    step, _ = model()
    step.totals(chunks)
    with od.Profiler(client) as profiler:
        for _ in range(count):
            step.totals(chunks)
    found = profiler.result()
    workers = found.workers
    (function,) = found.profile().functions
    parts = {
        "in calls": sum(w.in_calls for w in workers),
        "other tasks": sum(w.computing - w.in_calls for w in workers),
        "receiving": sum(w.receiving for w in workers),
        "waiting": sum(w.waiting for w in workers),
        "without a task": sum(w.without_task for w in workers),
    }
    parts = {what: seconds / count / len(workers) for what, seconds in parts.items()}
    return {**parts, "chunk": function.call_ns * 1e-9 / function.calls}


def add_one(x: np.ndarray) -> np.ndarray:
    return x + 1


def of_a_hop(client: Client, count: int) -> float:
    """Seconds of a task whose input, as large as the gradient, comes from another worker."""
    workers = list(client.scheduler_info()["workers"])
    value = client.submit(np.zeros, (FEATURES, CLASSES), workers=[workers[0]], pure=False)
    value.result()
    start = time.perf_counter()
    for k in range(count):
        value = client.submit(add_one, value, workers=[workers[(k + 1) % 2]], pure=False)
    value.result()
    return (time.perf_counter() - start) / count


def measure(n: int, rows: int, count: int) -> dict[str, Any]:
    """The seconds of steps by number of workers, and of their parts."""
    found: dict[str, Any] = {"chunks": n, "rows": rows, "steps": {}, "parts": {}}
    bits = set()
    for workers in (1, 2):
        with od.cluster(workers) as cluster, Client(cluster) as client:
            chunks = od.load_chunks([data(k, rows) for k in range(n)])
            wait(chunks.futures)
            seconds, parameters = steps(client, chunks, count)
            found["steps"][workers] = seconds
            bits.add(parameters)
            found["parts"][workers] = parts_of_steps(client, chunks, max(3, count // 3))
            if workers == 1:
                found["c"] = found["parts"][1]["chunk"]
                small = od.load_chunks([data(k, 1) for k in range(n)])
                found["o"] = statistics.median(steps(client, small, count)[0])
            else:
                found["h"] = of_a_hop(client, 10 * count)
    if len(bits) > 1:
        raise RuntimeError("one and two workers gave different bits")
    return found


def exchanges(n: int, workers: int) -> int:
    """How often a step waits for data of another worker: l(W) above."""
    levels = math.ceil(math.log(n, 8)) if n > 1 else 0
    spread = sum(8**level > n / workers for level in range(1, levels + 1))
    return 1 + spread if workers > 1 else 0


def projected(found: dict[str, Any], workers: int) -> float:
    """Seconds of a step by the formula above."""
    n = found["chunks"]
    computing = math.ceil(n / workers) * found["c"]
    return float(found["o"] + computing + exchanges(n, workers) * found["h"])


def show(found: dict[str, Any]) -> None:
    n = found["chunks"]
    print(
        f"\n{n} chunks of {found['rows']:,} rows, {FEATURES} features, {CLASSES} classes, float64; "
        "one and two workers give the same bits"
    )
    names = [name for name in found["parts"][1] if name != "chunk"]
    print("\nms a step on each worker, with a profile:")
    print("workers", *(f"{name:>14}" for name in names))
    for workers, parts in found["parts"].items():
        print(f"{workers:7d}", *(f"{parts[name] * 1e3:14.1f}" for name in names))
    print(f"\nc {found['c'] * 1e3:8.3f} ms: a chunk in the compiled function")
    print(f"o {found['o'] * 1e3:8.3f} ms: a step with chunks of one row on one worker")
    print(f"h {found['h'] * 1e3:8.3f} ms: a task whose input comes from another worker")
    print("\nworkers  measured ms  projected ms  times as fast")
    first = statistics.median(found["steps"][1]), projected(found, 1)
    for workers in PROJECTED:
        seconds = found["steps"].get(workers)
        step = projected(found, workers)
        if seconds:
            median = statistics.median(seconds)
            measured, speed, kind = f"{median * 1e3:.1f}", first[0] / median, "measured"
        else:
            measured, speed, kind = "", first[1] / step, "projected"
        print(f"{workers:7d}  {measured:>11}  {step * 1e3:12.1f}  {speed:8.2f} {kind}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.distributed", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="small data, to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    args = parser.parse_args(argv)
    about = machine()
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    found = measure(4, 100, 3) if args.quick else measure(32, 40_000, 15)
    show(found)
    if args.json:
        args.json.write_text(json.dumps({"machine": about, **found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
