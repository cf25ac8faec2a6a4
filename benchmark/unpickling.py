"""What loading a pickled function takes, with the optimized graph in the pickle and without.

    python -m benchmark.unpickling [--quick] [--json FILE]

Each figure comes from a fresh process that has imported opwise; compiled kernels are in the cache.
The two ways take turns, and medians are printed. "Anew" is what loading takes if the flags, the
processor or the version differ: the graph as written is optimized again.
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
WAYS = {"kept": "reoptimize_unpickled_function=False", "anew": "reoptimize_unpickled_function=True"}


def regression() -> Any:
    """A step of logistic regression of 10 features."""
    import opwise
    import opwise.tensor as T

    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = opwise.shared(np.zeros(10), name="w"), opwise.shared(0.0, name="b")
    p = 1 / (1 + T.exp(-T.dot(x, w) - b))
    cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean() + 0.01 * (w**2).sum()
    gw, gb = T.grad(cost, [w, b])
    return opwise.function([x, y], [p > 0.5, cost], updates=[(w, w - 0.1 * gw), (b, b - 0.1 * gb)])


def recurrent() -> Any:
    """A step of a recurrent network, with the gradient through a loop."""
    import opwise
    import opwise.tensor as T
    from opwise.loops import scan

    random = np.random.default_rng(0)
    xs, w = T.dmatrix("xs"), opwise.shared(random.normal(size=(16, 16)), name="w")
    h, _ = scan(lambda x, h: T.tanh(x + T.dot(h, w)), xs, T.zeros(16))
    cost = (h[-1] ** 2).sum()
    return opwise.function([xs], cost, updates=[(w, w - 0.1 * T.grad(cost, w))])


def blocks() -> Any:
    """100 layers tanh(dot(h, W) + b) with their updates."""
    import opwise

    return opwise.function(**dot_blocks(100)[0])


PROGRAMS: dict[str, Callable[[], Any]] = {
    "regression": regression, "recurrent": recurrent, "blocks": blocks,
}  # fmt: skip


def write(name: str, path: str) -> int:
    """Write the pickle of a program; return its bytes."""
    text = pickle.dumps(PROGRAMS[name](), pickle.HIGHEST_PROTOCOL)
    Path(path).write_bytes(text)
    return len(text)


def load(path: str) -> dict[str, Any]:
    """Seconds that loading a pickle takes, and whether the rewrites ran."""
    import opwise  # noqa: F401  # imports do not count

    text = Path(path).read_bytes()
    start = time.perf_counter()
    f = pickle.loads(text)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "optimized": f.compile_report.rewrites.name != "from a pickle"}


def measure(name: str, repeats: int) -> dict[str, Any]:
    """The samples of a program, by way."""
    module = "benchmark.unpickling"
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "f.pkl")
        flags = [os.environ.get("OPWISE_FLAGS"), f"base_compiledir={folder}"]
        size = child("write", name, path, module=module, OPWISE_FLAGS=",".join(filter(None, flags)))
        samples: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(repeats):
            for way, flag in WAYS.items():
                chosen = ",".join(filter(None, [*flags, flag]))
                one = child("load", path, module=module, OPWISE_FLAGS=chosen)
                if one["optimized"] != (way == "anew"):
                    raise RuntimeError(f"{name}: the optimized graph was not used as it should be")
                samples[way].append(one["seconds"])
    return {"program": name, "bytes": size, "samples": samples}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.unpickling", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="one sample, to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    args = parser.parse_args(argv)

    about = machine()
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    print(f"\n{'program':12} {'bytes':>9} {'kept':>9} {'anew':>9}  ms")
    rows = []
    for name in args.only:
        row = measure(name, 1 if args.quick else 9)
        kept, anew = (statistics.median(row["samples"][way]) * 1e3 for way in WAYS)
        print(f"{name:12} {row['bytes']:9,} {kept:9.1f} {anew:9.1f}")
        rows.append(row)
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
