"""Device times of functions under the linker cupy, beside peak rates and torch.

    python -m benchmark.gpu.device_times [--quick] [--json FILE]

Contenders of a workload take turns; a figure is the median of their turns, measured with events.
Each workload is compared with a reference: a copy of as many bytes, a product by cuBLAS alone, the
same function without a profile, or torch. If torch is installed with CUDA, it runs compiled, with
CUDA graphs. Without a device the program prints what is missing and exits with status 2.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import opwise
import opwise.tensor as T
from opwise.compile.mrg_streams import MRG_RandomStreams
from opwise.config import change_flags
from opwise.errors import DeviceError
from opwise.modes.mode import Mode
from opwise.modes.profilemode import ProfileMode
from opwise.version import __version__


@dataclass(frozen=True)
class Workload:
    """What is measured, and its reference: a copy, a product, a function of our own, or torch."""

    name: str
    #: the share of the reference's speed to be reached
    bar: float
    #: from a mode to a function without arguments, whose values stay on the device
    make: Callable
    #: from the module torch to such a function; None if torch has no equivalent
    torch: Callable | None
    #: the fewest bytes to be moved, if the reference is a copy, else 0
    bytes: int = 0
    #: (rows, inner, columns), if the reference is a product of cuBLAS
    product: tuple[int, int, int] | None = None
    #: dtype of the product
    dtype: str = "float32"
    #: whether the product uses TF32
    tf32: bool = False
    #: like ``make``, if the reference is a function of our own
    plain: Callable | None = None


def numbers(shape, dtype="float32"):
    """Return an array of random numbers: products of equal ones take less power, and less time."""
    some = np.random.RandomState(0).uniform(-1, 1, 1 << 20)
    return np.resize(some, shape).astype(dtype)


def elementwise(n):
    def make(mode):
        x, y = (opwise.shared(numbers(n)) for _ in range(2))
        out = opwise.Out(T.tanh(x * y + 1) * x, borrow=True)
        return opwise.function([], out, mode=mode)

    def torch_(torch):
        x, y = (torch.tensor(numbers(n), device="cuda") for _ in range(2))
        f = torch.compile(lambda x, y: torch.tanh(x * y + 1) * x, mode="reduce-overhead")
        return lambda: f(x, y)

    return Workload("tanh(x * y + 1) * x", 0.90, make, torch_, bytes=12 * n)


def transposed(n):
    """Add arrays that lie in memory in different orders: one goes through tiles."""

    def make(mode):
        x, y = (opwise.shared(numbers((n, n))) for _ in range(2))
        return opwise.function([], opwise.Out(x + y.T, borrow=True), mode=mode)

    def torch_(torch):
        x, y = (torch.tensor(numbers((n, n)), device="cuda") for _ in range(2))
        f = torch.compile(lambda x, y: x + y.T, mode="reduce-overhead")
        return lambda: f(x, y)

    return Workload("x + y.T", 0.80, make, torch_, bytes=12 * n * n)


def cumulated(n):
    """Cumulate a sum. It reads the array twice, the reference copies it once."""

    def make(mode):
        x = opwise.shared(numbers(n))
        return opwise.function([], opwise.Out(T.cumsum(x), borrow=True), mode=mode)

    def torch_(torch):
        x = torch.tensor(numbers(n), device="cuda")
        return lambda: torch.cumsum(x, 0)

    return Workload("cumulated sum", 0.60, make, torch_, bytes=8 * n)


def draws(n):
    """Draw uniform numbers, each stream one after the other: torch has a generator per number."""

    def make(mode):
        out = MRG_RandomStreams(1).uniform((n,), dtype="float32")
        return opwise.function([], opwise.Out(out, borrow=True), mode=mode)

    def torch_(torch):
        return lambda: torch.rand(n, device="cuda")

    return Workload("uniform numbers", 0.40, make, torch_, bytes=4 * n)


def reduction(n):
    def make(mode):
        x = opwise.shared(numbers(n))
        return opwise.function([], opwise.Out(T.sqr(x - 0.5).sum(), borrow=True), mode=mode)

    def torch_(torch):
        x = torch.tensor(numbers(n), device="cuda")
        f = torch.compile(lambda x: ((x - 0.5) ** 2).sum(), mode="reduce-overhead")
        return lambda: f(x)

    return Workload("sum((x - 0.5)**2)", 0.90, make, torch_, bytes=4 * n)


def softmax(n):
    def make(mode):
        x = opwise.shared(numbers((n, n)))
        return opwise.function([], opwise.Out(T.nnet.softmax(x), borrow=True), mode=mode)

    def torch_(torch):
        x = torch.tensor(numbers((n, n)), device="cuda")
        f = torch.compile(lambda x: torch.softmax(x, 1), mode="reduce-overhead")
        return lambda: f(x)

    return Workload("softmax", 0.85, make, torch_, bytes=8 * n * n)


def softmax_gradient(n):
    def make(mode):
        g, p = (opwise.shared(numbers((n, n))) for _ in range(2))
        out = T.nnet.softmax_grad(g, p)
        return opwise.function([], opwise.Out(out, borrow=True), mode=mode)

    def torch_(torch):
        g, p = (torch.tensor(numbers((n, n)), device="cuda") for _ in range(2))
        f = torch.compile(
            lambda g, p: (g - (g * p).sum(1, keepdim=True)) * p, mode="reduce-overhead"
        )
        return lambda: f(g, p)

    return Workload("gradient of softmax", 0.85, make, torch_, bytes=12 * n * n)


def layer_norm(n):
    def make(mode):
        x = opwise.shared(numbers((n, n)))
        centred = x - x.mean(axis=1, keepdims=True)
        out = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
        return opwise.function([], opwise.Out(out, borrow=True), mode=mode)

    def torch_(torch):
        x = torch.tensor(numbers((n, n)), device="cuda")
        f = torch.compile(lambda x: torch.layer_norm(x, (n,)), mode="reduce-overhead")
        return lambda: f(x)

    return Workload("normalized rows", 0.85, make, torch_, bytes=8 * n * n)


def product(n, dtype="float32", tf32=False):
    def make(mode):
        x, y = (opwise.shared(numbers((n, n), dtype)) for _ in range(2))
        f = opwise.function([], opwise.Out(T.dot(x, y), borrow=True), mode=mode)

        def call():
            with change_flags({"cuda.tf32": tf32}):
                return f()

        return call

    def torch_(torch):
        x, y = (torch.tensor(numbers((n, n), dtype), device="cuda") for _ in range(2))

        def call():
            torch.backends.cuda.matmul.allow_tf32 = tf32
            return x @ y

        return call

    name = f"product, {'TF32' if tf32 else dtype}"
    return Workload(name, 0.97, make, torch_, product=(n, n, n), dtype=dtype, tf32=tf32)


def profiled(n):
    """Profile ten kernels, against the same ten kernels without a profile."""

    def plain(mode):
        x = opwise.shared(numbers(n))
        parts = [T.tanh(x * k).max() for k in range(10)]  # sums would share a kernel
        outputs = [opwise.Out(part, borrow=True) for part in parts]
        return opwise.function([], outputs, mode=mode)

    def make(mode):
        return plain(ProfileMode("cupy", "fast_run"))

    return Workload("ten kernels, profiled", 0.95, make, None, plain=plain)


def perceptron(rows, width=512):
    """A training step of two layers, bound by its launches."""
    random = np.random.RandomState(0)
    data = random.rand(rows, width).astype("float32")
    shapes = ((width, width), (width, 10))
    starts = [random.rand(*shape).astype("float32") / width for shape in shapes]

    def make(mode):
        x = opwise.shared(data)
        weights = [opwise.shared(value.copy()) for value in starts]
        out = T.dot(T.tanh(T.dot(x, weights[0])), weights[1])
        cost = T.sqr(T.nnet.softmax(out) - 0.1).mean()
        rate = np.float32(0.01)
        updates = [(w, w - rate * g) for w, g in zip(weights, T.grad(cost, weights), strict=True)]
        return opwise.function([], opwise.Out(cost, borrow=True), updates=updates, mode=mode)

    def torch_(torch):
        x = torch.tensor(data, device="cuda")
        weights = [torch.tensor(v, device="cuda", requires_grad=True) for v in starts]
        optimizer = torch.optim.SGD(weights, lr=0.01)

        def step():
            out = torch.tanh(x @ weights[0]) @ weights[1]
            cost = ((torch.softmax(out, 1) - 0.1) ** 2).mean()
            cost.backward()
            optimizer.step()
            optimizer.zero_grad()
            return cost

        return torch.compile(step, mode="reduce-overhead")

    return Workload(f"training step, {rows} rows", 1.0, make, torch_)


def workloads(quick):
    """Return the Workloads; quick: small ones, only to see that all run."""
    n, side = (10_000, 64) if quick else (100_000_000, 8192)
    return [
        elementwise(n), transposed(side), reduction(n), cumulated(n), draws(n), softmax(side),
        softmax_gradient(side), layer_norm(side), product(side), product(side, tf32=True),
        product(side, "float16"), perceptron(20, 32 if quick else 512), profiled(n),
    ]  # fmt: skip


# --- measuring ------------------------------------------------------------------------------------


def seconds(device, call, calls):
    """Return the mean seconds of the device for a call, over some calls."""
    first = device.event()
    for _ in range(calls):
        call()
    second = device.event()
    device.synchronize()
    return device.between(first, second) * 1e-9 / calls


def measured(device, contenders, rounds, calls):
    """Return {name: median seconds} of contenders that take turns."""
    for call in contenders.values():
        for _ in range(3):  # compiled, and captured
            call()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            times[name].append(seconds(device, call, calls))
    return {name: statistics.median(found) for name, found in times.items()}


def contenders_of(workload, device, torch):
    """Return {name: call} of a workload: opwise, torch, and the reference."""
    mode = Mode("cupy", "fast_run")
    found = {"opwise": workload.make(mode)}
    if torch is not None and workload.torch is not None:
        found["torch"] = workload.torch(torch)
    if workload.bytes:
        source, target = (device.zeros(workload.bytes // 2, "uint8") for _ in range(2))
        found["copy"] = lambda: copy(source, target)
    elif workload.product:
        rows, inner, columns = workload.product
        shapes = (rows, inner), (inner, columns), (rows, columns)
        x, y, z = (device.upload(numbers(shape, workload.dtype)) for shape in shapes)
        found["cuBLAS"] = lambda: device.blas.gemm(x, y, z, tf32=workload.tf32)
    elif workload.plain is not None:
        found["plain"] = workload.plain(mode)
    return found


def copy(source, target):
    target[...] = source


def torch_with_cuda():
    """Return torch if it is installed and has a device, else None."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def row(workload, times):
    """Return the figures of a workload as plain data."""
    reference = next((times[name] for name in ("copy", "cuBLAS", "plain") if name in times), None)
    found = {"workload": workload.name, "seconds": times, "bar": workload.bar}
    if reference is not None:
        found["share"] = reference / times["opwise"]
    elif "torch" in times:
        found["share"] = times["torch"] / times["opwise"]
    if workload.bytes:
        found["GB/s"] = workload.bytes / times["opwise"] * 1e-9
    return found


def main(argv=None):
    """Print the table; return 0, or 2 if there is no device."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="run small workloads, only to see that all run"
    )
    parser.add_argument(
        "--json", type=Path, help="write the figures, with device and date, to FILE"
    )
    args = parser.parse_args(argv)
    try:
        device = importlib.import_module("opwise.gpu.runtime.device").device()
    except DeviceError as error:
        print(f"nothing was measured. {error}", file=sys.stderr)
        return 2
    torch = torch_with_cuda()
    print(
        f"{device.name}, opwise {__version__}" + ("" if torch else "; there is no torch with CUDA")
    )
    rows = []
    for workload in workloads(args.quick):
        calls, rounds = (2, 2) if args.quick else (20, 15)
        with device.active():
            times = measured(device, contenders_of(workload, device, torch), rounds, calls)
        rows.append(row(workload, times))
        shown = "  ".join(f"{name} {value * 1e6:.1f} us" for name, value in times.items())
        share = rows[-1].get("share")
        reached = f"  {share:.0%} of the reference (bar {workload.bar:.0%})" if share else ""
        print(f"{workload.name:28}{shown}{reached}")
    if args.json:
        about = {"device": device.name, "date": datetime.now(UTC).isoformat(timespec="seconds"),
                 "opwise": __version__, "numpy": np.__version__, "rows": rows}  # fmt: skip
        args.json.write_text(json.dumps(about, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
