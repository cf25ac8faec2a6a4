"""What compiling takes for one Apply of the graph, stage by stage, as graphs grow.

    python -m benchmark.compile_time [--json FILE] [--quick] [--only FAMILY ...] [--sizes N ...]

Each figure comes from a fresh process that has compiled another function before, as imports do not
count; the median of repeats is printed. Cold: the cache is empty; warm: it has the kernels; graphs:
it has the optimized graph too, so that nothing is rewritten.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmark.call_cost import child, machine

SIZES = (100, 1_000, 10_000, 100_000)
QUICK_SIZES = (100, 1_000)
#: mode, and what is in the cache
WAYS = (
    ("FAST_RUN", "cold"), ("FAST_RUN", "warm"), ("FAST_RUN", "graphs"), ("FAST_COMPILE", "warm"),
)  # fmt: skip
#: stages of the pipeline that take less than this share of a compilation are not printed
SHARE = 0.03


# ---------------------------------------------------------------- the families

# What a family gives: the arguments of function(), and the seconds that grad took.
Graph = tuple[dict, float]


def elementwise_chain(n: int) -> Graph:
    """Elementwise operations on a vector, one after the other: they become few loops."""
    import opwise.tensor as T

    x = T.dvector("x")
    y = x
    steps = (T.tanh, lambda v: v * 1.5, T.sqrt, lambda v: v + 0.25, T.exp, lambda v: -v)
    for k in range(n):
        y = steps[k % len(steps)](y)
    return {"inputs": [x], "outputs": [y]}, 0.0


def recurrences(n: int) -> Graph:
    """h = tanh(h * w + x[t]) on vectors of 8, with the gradients by w and the first h."""
    import opwise
    import opwise.tensor as T

    xs, first = T.dmatrix("xs"), T.dvector("h")
    w = opwise.shared(np.full(8, 0.5), name="w")
    h = first
    for t in range(n):
        h = T.tanh(h * w + xs[t])
    cost = (h**2).sum()
    grads, seconds = timed_grad(cost, [w, first])
    return {"inputs": [xs, first], "outputs": [cost, *grads]}, seconds


def dot_blocks(n: int) -> Graph:
    """h = tanh(dot(h, W) + b), h 8 x 16, with an update of every W and b by its gradient."""
    import opwise
    import opwise.tensor as T

    rng = np.random.RandomState(1827)
    x = T.dmatrix("x")
    h, parameters = x, []
    for k in range(n):
        w = opwise.shared(rng.uniform(-0.3, 0.3, (16, 16)), name=f"W{k}")
        b = opwise.shared(np.zeros(16), name=f"b{k}")
        parameters += [w, b]
        h = T.tanh(T.dot(h, w) + b)
    cost = (h**2).sum()
    grads, seconds = timed_grad(cost, parameters)
    updates = [(p, p - 0.1 * g) for p, g in zip(parameters, grads, strict=True)]
    return {"inputs": [x], "outputs": cost, "updates": updates}, seconds


def wide(n: int) -> Graph:
    """Many outputs, each exp(x * k) + 1 of the same vector."""
    import opwise.tensor as T

    x = T.dvector("x")
    return {"inputs": [x], "outputs": [T.exp(x * float(k + 2)) + 1.0 for k in range(n)]}, 0.0


def timed_grad(cost, wrt):
    import opwise

    start = time.perf_counter()
    grads = opwise.grad(cost, wrt)
    return grads, time.perf_counter() - start


#: each family, and about how many Applys one unit of it has as written
FAMILIES: dict[str, tuple[Callable[[int], Graph], float]] = {
    "elementwise_chain": (elementwise_chain, 4 / 3),
    "recurrences": (recurrences, 11),
    "dot_blocks": (dot_blocks, 21),
    "wide": (wide, 5),
}


# ---------------------------------------------------------------- one compilation


def compile_child(family: str, applys: int, mode: str) -> dict:
    """Seconds of each stage of one compilation, and the numbers of Applys."""
    import opwise
    import opwise.tensor as T
    from opwise.graph.traversal import ops

    make, each = FAMILIES[family]
    x = T.dvector()
    opwise.function([x], T.erf(x) * 2.5, mode=mode)  # imports; a kernel that no family has
    gc.collect()
    start = time.perf_counter()
    arguments, grad = make(max(1, round(applys / each)))
    built = time.perf_counter()
    f = opwise.function(**arguments, mode=mode)
    total = time.perf_counter() - built
    report = f.compile_report
    stages = {"build": built - start - grad, "grad": grad, "function()": total}
    stages["construct"] = total - report.total
    for one in report.rewrites.passes:
        stages[f"rewrite: {one.name}"] = one.seconds
    compiler = report.kernels.compile_seconds if report.kernels is not None else 0.0
    stages["C compiler, some of it beside the rest"] = compiler
    stages["link"] = report.linker
    results = arguments["outputs"]
    results = [*(results if isinstance(results, list) else [results])]
    results += [new for _, new in arguments.get("updates", [])]
    written = len(ops([], results))  # an optimized graph of the cache does not tell
    return {"written": written, "run": report.applys, "compiler": compiler, "seconds": stages}


def measure(family: str, applys: int, mode: str, cache: str, repeats: int) -> dict:
    """The medians of ``compile_child`` in fresh processes."""
    found = []
    with tempfile.TemporaryDirectory() as kept:
        for k in range(repeats + (cache != "cold")):
            with tempfile.TemporaryDirectory() as fresh:
                flags = [
                    *filter(None, [os.environ.get("OPWISE_FLAGS")]),
                    f"base_compiledir={fresh if cache == 'cold' else kept}",
                    f"cache_graphs={cache == 'graphs'}",
                ]
                one = child(
                    "compile_child", family, applys, mode,
                    module="benchmark.compile_time", OPWISE_FLAGS=",".join(flags),
                )  # fmt: skip
            if cache == "cold" or k > 0:  # the first one fills the cache
                found.append(one)
    seconds = {
        stage: statistics.median(one["seconds"][stage] for one in found)
        for stage in found[0]["seconds"]
    }
    return {
        "family": family, "mode": mode, "cache": cache,
        "written": found[0]["written"], "run": found[0]["run"], "seconds": seconds,
        "samples": [one["seconds"] for one in found],
    }  # fmt: skip


# ---------------------------------------------------------------- the table


def print_row(row: dict) -> None:
    seconds, applys = row["seconds"], row["written"]
    per = {stage: value / applys * 1e6 for stage, value in seconds.items()}
    print(
        f"  {applys:8,} {row['run']:8,}  {per['build']:8.1f} {per['grad']:8.1f} "
        f"{per['function()']:8.1f}  {seconds['function()'] * 1e3:10.1f}"
    )


def print_stages(row: dict) -> None:
    """The parts of function() for the largest graph."""
    seconds, applys = row["seconds"], row["written"]
    parts = {s: v for s, v in seconds.items() if s not in ("build", "grad", "function()")}
    small = 0.0
    for stage, value in sorted(parts.items(), key=lambda item: -item[1]):
        if value < SHARE * seconds["function()"]:
            small += value
        else:
            print(f"      {value / applys * 1e6:8.1f}  {stage}")
    print(f"      {small / applys * 1e6:8.1f}  all others")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.compile_time", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--quick", action="store_true", help="small graphs, to see that it works")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="Applys as written")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args(argv)

    about = machine()
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    rows = []
    for family in args.only:
        for mode, cache in WAYS:
            print(f"\n{family}, {mode}, {cache} cache")
            print(f"  {'Applys':>8} {'run':>8}  {'build':>8} {'grad':>8} {'function':>8}  us each")
            for size in args.sizes or (QUICK_SIZES if args.quick else SIZES):
                row = measure(family, size, mode, cache, 1 if args.quick else args.repeats)
                print_row(row)
                rows.append(row)
            print_stages(row)
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
