"""Compute the same things on several processors or vector widths, and compare the bits.

    python scripts/bits.py write FILE             computes, and writes results to FILE, as .npz
    python scripts/bits.py compare FILE FILE...   prints how the others differ from the first file

The programs use functions of arrays, sums, softmaxes, products, convolutions, pooling, random
numbers and sorting, each on compiled kernels and on the loops of the extension, on seeded data. A
difference is given in units in the last place (ulp) of the larger number.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import numpy as np

FUNCTIONS = (
    "abs_ ceil cos cosh erf exp exp2 expm1 floor log log10 log1p log2 round_half_to_even "
    "sigmoid sin sinh softplus sqr sqrt tan tanh"
).split()


def programs():
    """Yield (name, inputs, outputs, values)."""
    import opwise.tensor as T
    from opwise.compile.mrg_streams import MRG_RandomStreams
    from theano.tensor.nnet import conv2d
    from theano.tensor.signal.pool import pool_2d

    random = np.random.RandomState(7)
    for dtype in ("float32", "float64"):
        v, m = T.TensorType(dtype, (False,))("v"), T.TensorType(dtype, (False, False))("m")
        images = T.TensorType(dtype, (False,) * 4)("images")
        numbers = np.abs(random.randn(1003)).astype(dtype) + np.dtype(dtype).type(0.01)
        matrix = random.randn(67, 129).astype(dtype)
        for name in FUNCTIONS:
            yield f"{name} {dtype}", [v], getattr(T, name, None) or getattr(T.nnet, name), [numbers]
        yield f"a*b+c {dtype}", [v], lambda v: v * 1.1 + v[::-1], [numbers]
        yield f"sum {dtype}", [m], lambda m: [m.sum(), m.sum(axis=0), m.sum(axis=1)], [matrix]
        yield f"mean, variance {dtype}", [m], lambda m: [m.mean(0), m.var(1)], [matrix]
        yield f"softmax {dtype}", [m], T.nnet.softmax, [matrix]
        yield f"product {dtype}", [m], lambda m: T.dot(m, m.T), [matrix]
        yield f"argmax {dtype}", [m], lambda m: m.argmax(axis=1), [matrix]
        yield f"sort {dtype}", [m], lambda m: T.sort(m, axis=1), [matrix]
        yield f"cumsum {dtype}", [m], lambda m: T.cumsum(m, axis=0), [matrix]
        pictures = random.randn(3, 4, 18, 19).astype(dtype)
        filters = random.randn(5, 4, 3, 3).astype(dtype)
        for algorithm, kernels in (("3x3", filters), ("1x1", filters[:, :, :1, :1])):
            yield (
                f"convolution {algorithm} {dtype}", [images],
                lambda x, k=kernels: conv2d(x, k), [pictures],
            )  # fmt: skip
        yield (
            f"pooling {dtype}",
            [images],
            lambda x: pool_2d(x, (2, 2), ignore_border=True),
            [pictures],
        )
        draws = MRG_RandomStreams(seed=5)
        yield f"uniform {dtype}", [], lambda d=dtype, r=draws: r.uniform((999,), dtype=d), []
        yield f"normal {dtype}", [], lambda d=dtype, r=draws: r.normal((998,), dtype=d), []


def write(path: Path) -> None:
    import opwise
    from opwise.linkers import opwise_c

    found = {"about": np.array(f"{platform.machine()}, vectors: {opwise_c.VECTORS}")}
    for name, inputs, compute, values in programs():
        for mode in ("FAST_RUN", "FAST_COMPILE"):
            outputs = compute(*inputs)
            results = opwise.function(inputs, outputs, mode=mode)(*values)
            results = results if isinstance(results, list) else [results]
            for k, result in enumerate(results):
                found[f"{name}, {mode}, {k}"] = np.asarray(result)
    np.savez_compressed(path, **found)
    print(f"{path}: {len(found) - 1} results of {found['about']}")


def ulps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the distance of each pair in units in the last place of the larger; 0 if equal."""
    if a.dtype.kind != "f":
        return np.where(a == b, 0.0, np.inf)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        unit = np.spacing(np.maximum(np.abs(a), np.abs(b)))
        return np.where(same, 0, np.abs(wide_a - wide_b) / unit).astype(float)


def compare(first: Path, *others: Path) -> None:
    left = np.load(first)
    for path in others:
        right = np.load(path)
        print(f"{left['about']} against {right['about']}:")
        rows = []
        for name in left.files:
            if name == "about":
                continue
            if left[name].shape != right[name].shape or left[name].dtype != right[name].dtype:
                raise SystemExit(f"{name}: shapes or dtypes differ")
            distance = ulps(left[name], right[name])
            if distance.any():
                scale = np.abs(left[name].astype(float)).max()
                relative = np.abs(left[name].astype(float) - right[name]).max() / scale
                rows.append((relative, distance.max(), (distance > 0).mean(), name))
        count = len(left.files) - 1
        print(f"  {count - len(rows)} of {count} results have the same bits")
        for relative, most, share, name in sorted(rows, reverse=True):
            distance = f"{most:.0f} ulp ({relative:.1e} of the largest)"
            print(f"  {name}: {share:.1%} differ, by up to {distance}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args(argv)
    if args.action == "write":
        write(*args.files)
    else:
        compare(*args.files)


if __name__ == "__main__":
    sys.exit(main())
