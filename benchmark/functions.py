"""Nanoseconds an element and rounding errors of functions in opwise and its peers, on one thread.

    python -m benchmark.functions [--only NAME ...] [--json FILE] [--quick]

A figure is the time for each of 65,536 elements in the cache, less what a call of few takes; the
median of samples that the contenders take in turn. numpy's functions of floats are those of Intel's
SVML where the processor has AVX-512. ulp: the largest error of opwise in units of the last place,
against mpmath. Peers that are not installed, or lack a function, have no figure.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_ENABLE_X64": "1",
    "OMP_NUM_THREADS": "1",
}
PEERS = ("numpy", "jax", "torch", "sleef", "libmvec")
MANY, FEW = 1 << 16, 64


@dataclass(frozen=True)
class Case:
    """One function: its name in each library, and the interval of each operand."""

    name: str
    domains: tuple[tuple[float, float], ...]
    numpy: str = ""
    jax: str = ""
    torch: str = ""
    mpmath: str = ""
    dtypes: tuple[str, ...] = ("float32", "float64")


def _case(name: str, *domains: tuple[float, float], **names: Any) -> Case:
    """Return a case with the usual names: those of numpy, jax.numpy, torch and mpmath."""
    usual = {"numpy": f"numpy:{name}", "jax": f"jax.numpy:{name}", "torch": f"torch:{name}"}
    return Case(name, domains, **{**usual, "mpmath": name, **names})


def _special(name: str, *domains: tuple[float, float], **names: Any) -> Case:
    """Return a case whose function is in the modules ``special`` of the libraries."""
    usual = {"numpy": "scipy.special", "jax": "jax.scipy.special", "torch": "torch.special"}
    usual = {library: f"{module}:{name}" for library, module in usual.items()}
    return Case(name, domains, **{**usual, "mpmath": name, **names})


_WITH_INTEGERS = ("int32", "int64", "float32", "float64")
CASES = (
    _case("exp", (-20, 20)),
    _case("exp2", (-20, 20), mpmath=""),
    _case("expm1", (-5, 5)),
    _case("log", (0.01, 100)),
    _case("log2", (0.01, 100), mpmath=""),
    _case("log10", (0.01, 100)),
    _case("log1p", (-0.9, 10)),
    _case("sqrt", (0, 100)),
    _case("sin", (-10, 10)),
    _case("cos", (-10, 10)),
    _case("tan", (-1.5, 1.5)),
    _case("arcsin", (-1, 1), mpmath="asin"),
    _case("arccos", (-1, 1), mpmath="acos"),
    _case("arctan", (-10, 10), mpmath="atan"),
    _case("sinh", (-5, 5)),
    _case("cosh", (-5, 5)),
    _case("tanh", (-5, 5)),
    _case("arcsinh", (-10, 10), mpmath="asinh"),
    _case("arccosh", (1, 100), mpmath="acosh"),
    _case("arctanh", (-0.99, 0.99), mpmath="atanh"),
    _case("arctan2", (-3, 3), (-3, 3), mpmath="atan2"),
    _case("power", (0.01, 10), (-5, 5), torch="torch:pow"),
    _special("erf", (-3, 3)),
    _special("erfc", (-3, 5)),
    _special("erfinv", (-0.95, 0.95)),
    _special("erfcinv", (0.05, 1.95), jax="", torch="", mpmath=""),
    _special("gamma", (0.5, 10), torch=""),
    _special("gammaln", (0.5, 50), mpmath="loggamma"),
    _special("psi", (0.5, 50), jax="jax.scipy.special:digamma", mpmath="digamma"),
    _special("j0", (0, 20), jax="", torch="torch.special:bessel_j0", mpmath=""),
    _special("j1", (0, 20), jax="", torch="torch.special:bessel_j1", mpmath=""),
    _special("i0", (-3, 20), mpmath=""),
    _special("i1", (-3, 20), mpmath=""),
    _special("sigmoid", (-10, 10), numpy="scipy.special:expit", jax="jax.nn:sigmoid", mpmath=""),
    _special("softplus", (-10, 10), numpy="", jax="jax.nn:softplus",
             torch="torch.nn.functional:softplus", mpmath=""),
    _case("floor_divide", (-1000, 1000), (1, 50), mpmath="", dtypes=_WITH_INTEGERS),
    _case("remainder", (-1000, 1000), (1, 50), mpmath="", dtypes=_WITH_INTEGERS),
)  # fmt: skip


def _named(place: str) -> Callable[..., Any] | None:
    """Return the function at "module:name", None if there is none."""
    module, _, name = place.partition(":")
    if not name or importlib.util.find_spec(module.partition(".")[0]) is None:
        return None
    return getattr(importlib.import_module(module), name, None)


def _opwise(case: Case, arrays: list[Any]) -> Callable[[], Any]:
    import opwise
    import opwise.tensor as T

    symbols = [T.TensorType(array.dtype, (False,))() for array in arrays]
    apply = {
        "power": lambda x, y: x**y, "floor_divide": lambda x, y: x // y,
        "remainder": lambda x, y: x % y, "sigmoid": T.nnet.sigmoid, "softplus": T.nnet.softplus,
    }.get(case.name) or getattr(T, case.name)  # fmt: skip
    function = opwise.function(symbols, opwise.Out(apply(*symbols), borrow=True))
    function.trust_input = True
    return lambda: function(*arrays)


def _peer(library: str, case: Case, arrays: list[Any]) -> Callable[[], Any] | None:
    if library in ("sleef", "libmvec"):
        from benchmark import vector_libraries

        return vector_libraries.call(library, case.name, arrays)
    function = _named(getattr(case, library))
    if function is None:
        return None
    if library == "jax":
        import jax

        jitted = jax.jit(function)
        given = [jax.numpy.asarray(array) for array in arrays]
        return lambda: jitted(*given).block_until_ready()
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        tensors = [torch.from_numpy(array) for array in arrays]
        return lambda: function(*tensors)
    return lambda: function(*arrays)


def _arrays(case: Case, dtype: str, size: int) -> list[Any]:
    import numpy as np

    random = np.random.default_rng(0)
    return [random.uniform(*domain, size).astype(dtype) for domain in case.domains]


def measured(case: Case, dtype: str, samples: int) -> dict[str, float]:
    """Return {contender: nanoseconds an element}."""
    from benchmark.products import seconds

    sizes: dict[str, list[Callable[[], Any]]] = {}
    for size in (FEW, MANY):
        arrays = _arrays(case, dtype, size)
        calls = {library: _peer(library, case, arrays) for library in PEERS}
        for name, call in {"opwise": _opwise(case, arrays), **calls}.items():
            if call is not None:
                sizes.setdefault(name, []).append(call)
    times: dict[str, list[float]] = {name: [] for name in sizes}
    for _ in range(samples):
        for name, (few, many) in sizes.items():
            times[name].append(seconds(many, 3, 4) - seconds(few, 3, 20))
    return {name: statistics.median(found) * 1e9 / (MANY - FEW) for name, found in times.items()}


def error(case: Case, dtype: str, size: int) -> float | None:
    """Return the largest error in ulp, None without mpmath or for functions that it lacks."""
    import numpy as np

    if not case.mpmath or importlib.util.find_spec("mpmath") is None:
        return None
    import mpmath

    arrays = _arrays(case, dtype, size)
    results = _opwise(case, arrays)()
    exact = getattr(mpmath, case.mpmath)
    worst = 0.0
    with mpmath.workdps(40):
        for result, *args in zip(results, *arrays, strict=True):
            expected = exact(*(mpmath.mpf(float(arg)) for arg in args))
            ulp = float(np.spacing(np.abs(np.asarray(float(expected), dtype))))
            worst = max(worst, float(abs(mpmath.mpf(float(result)) - expected)) / ulp)
    return worst


def _line(row: dict[str, Any], columns: tuple[str, ...]) -> str:
    """Return the line of the table for a function and dtype; "-" where there is no figure."""
    figures = [*(row["ns"].get(name) for name in columns), row["ratio"], row["ulp"]]
    texts = ["-" if figure is None else f"{figure:.2f}" for figure in figures]
    widths = [9] * len(columns) + [9, 6]
    line = "".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
    return f"{row['function']:<14}{row['dtype']:<9}{line}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the functions")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--quick", action="store_true", help="few samples, to see that it works")
    args = parser.parse_args(argv)
    os.environ.update(ONE_THREAD)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    samples, points = (1, 20) if args.quick else (7, 2000)
    rows = []
    columns = ("opwise", *PEERS)
    print(f"{'function':<14}{'dtype':<9}{''.join(f'{name:>9}' for name in columns)}   / best   ulp")
    for case in CASES:
        if args.only and case.name not in args.only:
            continue
        for dtype in case.dtypes:
            times = measured(case, dtype, samples)
            worst = error(case, dtype, points) if dtype.startswith("float") else None
            best = min((t for name, t in times.items() if name != "opwise"), default=None)
            row = {"function": case.name, "dtype": dtype, "ns": times, "ulp": worst}
            rows.append({**row, "ratio": times["opwise"] / best if best else None})
            print(_line(rows[-1], columns), flush=True)
    if args.json:
        from benchmark.call_cost import machine

        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
