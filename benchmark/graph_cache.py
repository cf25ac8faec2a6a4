"""What compiling a function takes if the cache has its optimized graph, and if it is rewritten.

    python -m benchmark.graph_cache [--quick] [--json FILE]

"Compile" is ``function()``, "load" is ``pickle.loads`` of a compiled function. Each figure comes
from a fresh process that has imported opwise; compiled kernels are in the cache. The two ways take
turns, and medians are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.call_cost import child, machine
from benchmark.compile_time import dot_blocks

#: the two ways, and the flag that chooses each
WAYS = {"cached": "cache_graphs=True", "rewritten": "cache_graphs=False"}
WHAT = ("compile", "load")


def regression() -> dict[str, Any]:
    """A step of logistic regression of 10 features."""
    import opwise
    import opwise.tensor as T

    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = opwise.shared(np.zeros(10), name="w"), opwise.shared(0.0, name="b")
    p = 1 / (1 + T.exp(-T.dot(x, w) - b))
    cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean() + 0.01 * (w**2).sum()
    gw, gb = T.grad(cost, [w, b])
    updates = [(w, w - 0.1 * gw), (b, b - 0.1 * gb)]
    return {"inputs": [x, y], "outputs": [p > 0.5, cost], "updates": updates}


def recurrent() -> dict[str, Any]:
    """A step of a recurrent network, with the gradient through a loop."""
    import opwise
    import opwise.tensor as T
    from opwise.loops import scan

    random = np.random.default_rng(0)
    xs, w = T.dmatrix("xs"), opwise.shared(random.normal(size=(16, 16)), name="w")
    h, _ = scan(lambda x, h: T.tanh(x + T.dot(h, w)), xs, T.zeros(16))
    cost = (h[-1] ** 2).sum()
    updates = [(w, w - 0.1 * T.grad(cost, w))]
    return {"inputs": [xs], "outputs": cost, "updates": updates}


def blocks() -> dict[str, Any]:
    """100 layers tanh(dot(h, W) + b) with their updates."""
    return dot_blocks(100)[0]


PROGRAMS: dict[str, Callable[[], dict[str, Any]]] = {
    "regression": regression, "recurrent": recurrent, "blocks": blocks,
}  # fmt: skip


def write(name: str, path: str) -> int:
    """Write the pickle of a program, and its kernels and graph into the cache; return its bytes."""
    import opwise

    text = pickle.dumps(opwise.function(**PROGRAMS[name]()), pickle.HIGHEST_PROTOCOL)
    Path(path).write_bytes(text)
    return len(text)


def compile_once(name: str) -> dict[str, Any]:
    """Seconds that ``function`` takes for a program, and whether the graph was in the cache."""
    import opwise

    arguments = PROGRAMS[name]()
    start = time.perf_counter()
    f = opwise.function(**arguments)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "cached": f.compile_report.graph_cached}


def load(path: str) -> dict[str, Any]:
    """Seconds that loading a pickle takes, and whether the graph was in the cache."""
    import opwise  # noqa: F401  # imports do not count

    text = Path(path).read_bytes()
    start = time.perf_counter()
    f = pickle.loads(text)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "cached": f.compile_report.graph_cached}


def measure(name: str, repeats: int) -> dict[str, Any]:
    """The samples of a program, by what was done and by way."""
    module = "benchmark.graph_cache"
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "f.pkl")
        flags = [os.environ.get("OPWISE_FLAGS"), f"base_compiledir={folder}"]
        chosen = {way: ",".join(filter(None, [*flags, flag])) for way, flag in WAYS.items()}
        size = child("write", name, path, module=module, OPWISE_FLAGS=chosen["cached"])
        samples: dict[str, dict[str, list[float]]] = {
            what: {way: [] for way in WAYS} for what in WHAT
        }
        for _ in range(repeats):
            for way in WAYS:
                for what, call in (("compile", ("compile_once", name)), ("load", ("load", path))):
                    one = child(*call, module=module, OPWISE_FLAGS=chosen[way])
                    if one["cached"] != (way == "cached"):
                        raise RuntimeError(f"{name}: the graph was not {way}")
                    samples[what][way].append(one["seconds"])
    return {"program": name, "bytes": size, "samples": samples}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.graph_cache", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="one sample, to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    args = parser.parse_args(argv)

    about = machine()
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    columns = [(what, way) for what in WHAT for way in WAYS]
    print(f"\n{'ms':12}", *(f"{what + ', ' + way:>19}" for what, way in columns))
    rows = []
    for name in args.only:
        row = measure(name, 1 if args.quick else 9)
        medians = [statistics.median(row["samples"][what][way]) * 1e3 for what, way in columns]
        print(f"{name:12}", *(f"{median:19.1f}" for median in medians))
        rows.append(row)
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
