"""The algorithm that a convolution or its gradient chooses against the fastest one, on one thread.

python -m benchmark.convolutions [--quick] [--large]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from statistics import geometric_mean
from time import perf_counter

import numpy as np

import opwise
from benchmark.call_cost import machine
from opwise.config import change_flags
from opwise.gradient import grad
from opwise.linkers.convsteps import ALGORITHMS
from opwise.tensor.conv.functions import conv2d
from opwise.tensor.type import tensor_type

WHAT = ("forward", "by filters", "by images")
#: an algorithm that is so many times as slow as the fastest one is not measured again
FAR = 8


@dataclass(frozen=True)
class Layer:
    """Square images and filters; all but the batch and the channels has the same length twice."""

    batch: int
    channels: int
    filters: int
    side: int
    kernel: int
    stride: int = 1
    pad: int = 0
    dilation: int = 1
    groups: int = 1

    def __str__(self):
        more = [f"{self.batch} x {self.channels} -> {self.filters} of {self.side}, {self.kernel}"]
        for name in ("stride", "pad", "dilation", "groups"):
            if getattr(self, name) != (name != "pad"):
                more.append(f"{name} {getattr(self, name)}")
        return ", ".join(more)

    def shapes(self):
        """Of images, filters and results."""
        reach = (self.kernel - 1) * self.dilation + 1
        n = (self.side + 2 * self.pad - reach) // self.stride + 1
        return (
            (self.batch, self.channels, self.side, self.side),
            (self.filters, self.channels // self.groups, self.kernel, self.kernel),
            (self.batch, self.filters, n, n),
        )


LAYERS = (
    *(Layer(4, n, n, side, 3, pad=1) for n, side in ((16, 112), (64, 56), (128, 28), (512, 7))),
    Layer(64, 16, 16, 8, 3, pad=1), Layer(1, 512, 512, 7, 3, pad=1),
    Layer(2, 3, 64, 112, 3, pad=1), Layer(2, 64, 3, 112, 3, pad=1), Layer(4, 64, 128, 28, 3, 2, 1),
    Layer(4, 32, 32, 28, 3, 1, 2, 2), Layer(4, 64, 64, 28, 3, pad=1, groups=4),
    Layer(4, 256, 64, 28, 1), Layer(4, 64, 256, 14, 1), Layer(4, 512, 128, 7, 1),
    Layer(4, 64, 64, 56, 1, 2), Layer(8, 3, 32, 32, 5, pad=2), Layer(16, 16, 32, 14, 5, pad=2),
    Layer(16, 20, 50, 12, 5), Layer(2, 3, 64, 112, 7, 2, 3), Layer(1, 3, 64, 115, 11, 4),
    Layer(1, 64, 64, 28, 4, 4), Layer(1, 3, 3, 128, 31, pad=15),
)  # fmt: skip
#: large kernels, for which Fourier transforms may pay
LARGE = (
    Layer(1, 3, 64, 128, 31), Layer(1, 64, 64, 56, 15), Layer(8, 64, 64, 56, 15),
    Layer(1, 1, 1, 512, 65), Layer(1, 1, 1, 512, 15), Layer(1, 1, 1, 512, 7),
    Layer(8, 64, 64, 56, 5), Layer(8, 64, 64, 56, 7), Layer(4, 3, 32, 64, 9),
    Layer(1, 16, 16, 64, 11), Layer(2, 32, 64, 28, 7), Layer(8, 8, 8, 32, 5),
    Layer(1, 128, 128, 28, 9), Layer(16, 16, 32, 14, 5), Layer(16, 1, 20, 28, 5),
    Layer(4, 32, 32, 56, 15), Layer(4, 32, 32, 56, 9),
)  # fmt: skip
QUICK = (Layer(1, 3, 4, 6, 3, pad=1), Layer(2, 4, 6, 5, 1))


def seconds(call, samples: int) -> float:
    """Return the shortest time of a call."""
    best = float("inf")
    for _ in range(samples):
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best


def compiled(what: str, layer: Layer, dtype: str, algorithm: str):
    """Return a function of images, filters and the gradient by the result."""
    x, w, top = (tensor_type(dtype, (False,) * 4)() for _ in range(3))
    with change_flags({"conv.algo": algorithm}):
        y = conv2d(
            x, w, border_mode=(layer.pad,) * 2, subsample=(layer.stride,) * 2, filter_flip=False,
            filter_dilation=(layer.dilation,) * 2, num_groups=layer.groups,
        )  # fmt: skip
        if what != "forward":
            y = grad(None, w if what == "by filters" else x, known_grads={y: top})
        return opwise.function([x, w, top], y, on_unused_input="ignore")


def taken(f) -> str:
    """Return the name of the algorithm that the last call of a function took."""
    return next((name for name, _ in f.linked.vm.algorithms() if name), "of its own")


def compare(what: str, layer: Layer, dtype: str, samples: int) -> tuple[str, dict[str, float]]:
    """Return the algorithm that the model of costs chooses, and the seconds of each one."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(dtype) for shape in layer.shapes()]
    functions: dict[str, opwise.Function] = {}
    chosen = ""
    for algorithm in ALGORITHMS[:-1]:  # not the one that measures
        f = compiled(what, layer, dtype, algorithm)
        f(*arrays)
        if algorithm == "model":
            chosen = taken(f)
        functions.setdefault(taken(f), f)
    times = {name: seconds(lambda f=f: f(*arrays), 1) for name, f in functions.items()}
    # one call is enough of those that are far behind
    near = [name for name in functions if times[name] < FAR * min(times.values())]
    for _ in range(samples):
        for name in near:
            f = functions[name]
            times[name] = min(times[name], seconds(lambda f=f: f(*arrays), 3))
    return chosen, times


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.convolutions", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="few and small layers")
    parser.add_argument("--large", action="store_true", help="layers with large kernels")
    args = parser.parse_args(argv)
    layers = QUICK if args.quick else LARGE if args.large else LAYERS
    for name, value in machine(("numpy",)).items():
        print(f"{name}: {value}")
    print("\nTime of the chosen algorithm by that of the fastest one, and ms of each")
    for dtype in ("float32", "float64"):
        ratios = []
        for layer in layers:
            for what in WHAT:
                with change_flags(threads=1):
                    chosen, times = compare(what, layer, dtype, 1 if args.quick else 7)
                ratios.append(times[chosen] / min(times.values()))
                each = ", ".join(f"{name} {value * 1e3:.3f}" for name, value in times.items())
                print(f"{dtype}  {what:10}  {layer!s:44} {ratios[-1]:5.2f}  {chosen}: {each}")
        mean = geometric_mean(ratios)
        print(f"{dtype}, geometric mean: {mean:.2f}, the largest: {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
