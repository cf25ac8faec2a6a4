"""The own products of matrices against those of numpy's BLAS, with one thread each.

python -m benchmark.products [--quick]
"""

from __future__ import annotations

import argparse
import sys
from statistics import geometric_mean
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

import opwise
import opwise.tensor as T
from benchmark.call_cost import machine
from opwise.config import change_flags

#: rows, columns and terms: squares, long and narrow ones, layers of networks, few rows or columns
SIZES = (
    (64, 64, 64), (128, 128, 128), (256, 256, 256), (400, 400, 400), (64, 64, 500), (500, 64, 64),
    (20, 500, 784), (784, 500, 20), (100, 1000, 100), (1000, 100, 100), (100, 100, 1000),
    (50, 5000, 50), (5000, 50, 50), (33, 77, 129), (27, 3000, 64), (128, 384, 1600),
    (64, 1536, 512), (1000, 1000, 1000), (500, 2, 1000), (2, 500, 1000), (500, 8, 1000),
    (3, 500, 1000), (10_000, 8, 8), (100_000, 3, 3), (3, 3, 10_000),
)  # fmt: skip
QUICK = ((3, 4, 5), (40, 30, 20))
#: which operands are transposed
LAYOUTS = {"x y": (False, False), "x' y": (True, False), "x y'": (False, True)}


def seconds(call, samples: int, calls: int) -> float:
    """Return the shortest time of a call among some samples of several calls."""
    best = float("inf")
    for _ in range(samples):
        start = perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (perf_counter() - start) / calls)
    return best


def compare(dtype: str, transposed: tuple[bool, bool], size, samples: int) -> tuple[float, float]:
    """Return the GFLOP/s of opwise and of numpy, measured in turn."""
    m, n, k = size
    shapes = (k, m) if transposed[0] else (m, k), (n, k) if transposed[1] else (k, n)
    random = np.random.default_rng(0)
    x, y = (random.random(shape).astype(dtype) for shape in shapes)
    left, right = x.T if transposed[0] else x, y.T if transposed[1] else y
    a, b = T.TensorType(dtype, (False,) * 2)(), T.TensorType(dtype, (False,) * 2)()
    f = opwise.function([a, b], T.dot(a.T if transposed[0] else a, b.T if transposed[1] else b))
    np.testing.assert_allclose(f(x, y), left @ right, rtol=1e-3 if dtype == "float32" else 1e-9)
    calls = max(1, 2_000_000 // (m * n * k))
    contenders = (lambda: f(x, y)), (lambda: left @ right)
    best = [float("inf")] * 2
    for _ in range(samples):
        for i, call in enumerate(contenders):
            best[i] = min(best[i], seconds(call, 3, calls))
    return 2 * m * n * k / best[0] / 1e9, 2 * m * n * k / best[1] / 1e9


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.products", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="few and small sizes")
    args = parser.parse_args(argv)
    for name, value in machine(("numpy",)).items():
        print(f"{name}: {value}")
    print("\nGFLOP/s of opwise, of numpy, and their ratio")
    for dtype in ("float32", "float64"):
        ratios = []
        for layout, transposed in LAYOUTS.items():
            for size in QUICK if args.quick else SIZES:
                with threadpool_limits(1), change_flags(threads=1):
                    ours, theirs = compare(dtype, transposed, size, 1 if args.quick else 20)
                ratios.append(ours / theirs)
                shown = " x ".join(map(str, size))
                print(f"{dtype}  {layout:5} {shown:18} {ours:7.1f} {theirs:7.1f} {ratios[-1]:6.2f}")
        print(f"{dtype}, geometric mean of the ratios: {geometric_mean(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
