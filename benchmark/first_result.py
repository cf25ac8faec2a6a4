"""The time until a new process has its first result, in opwise and in its peers.

    python -m benchmark.first_result [--json FILE] [--runs N] [--only NAME ...]
    python -m benchmark.first_result --from-json FILE --pages PAGE ...

A run starts a Python that imports a library, defines the training step of README's example and
prints what its first call returns; its time ends when the line is there. Contenders run in turn.
Cold: the library's cache on disk is empty; warm: earlier runs have filled it. All print the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import opwise
from benchmark.call_cost import ROOT, machine
from benchmark.suite.__main__ import commit
from benchmark.suite.report import WRAPPED, tabulated

PACKAGES = ("opwise", "numpy", "scipy", "numba", "jax", "torch", "pytensor")
#: what every program begins with, behind the import of its library
DATA = """
rows = np.random.default_rng(0).normal(size=(500, 30))
targets = (rows[:, 0] > 0) * 1.0
"""
#: what a step returns, as every program prints it
SHOWN = 'print(f"{float(loss):.9f} {float(abs(w).sum()):.9f}", flush=True)'

#: programs by contender: the loss of the first step, and the weights after it
PROGRAMS = {
    "opwise": f"""
import numpy as np
import opwise
import opwise.tensor as T
{DATA}
x, y = T.dmatrix("x"), T.dvector("y")
w = opwise.shared(np.zeros(30), name="w")
cost = ((opwise.nn.sigmoid(x @ w) - y) ** 2).mean()
step = opwise.function([x, y], cost, updates=[(w, w - 0.1 * opwise.grad(cost, w))])
loss = step(rows, targets)
w = w.get_value()
{SHOWN}
""",
    "numpy": f"""
import numpy as np
{DATA}
def step(w, x, y):
    p = 1 / (1 + np.exp(-(x @ w)))
    miss = p - y
    return (miss**2).mean(), w - 0.1 * (x.T @ (2 * miss * p * (1 - p))) / len(x)

loss, w = step(np.zeros(30), rows, targets)
{SHOWN}
""",
    "numba": f"""
import numba
import numpy as np
{DATA}
@numba.njit(cache=True)
def step(w, x, y):
    p = 1 / (1 + np.exp(-(x @ w)))
    miss = p - y
    return (miss**2).mean(), w - 0.1 * (x.T @ (2 * miss * p * (1 - p))) / len(x)

loss, w = step(np.zeros(30), rows, targets)
{SHOWN}
""",
    "jax": f"""
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
{DATA}
def cost(w, x, y):
    return ((jax.nn.sigmoid(x @ w) - y) ** 2).mean()

@jax.jit
def step(w, x, y):
    loss, grad = jax.value_and_grad(cost)(w, x, y)
    return loss, w - 0.1 * grad

loss, w = step(jnp.zeros(30), rows, targets)
{SHOWN}
""",
    "torch": f"""
import numpy as np
import torch
{DATA}
x, y = torch.from_numpy(rows), torch.from_numpy(targets)
w = torch.zeros(30, dtype=torch.float64, requires_grad=True)
loss = ((torch.sigmoid(x @ w) - y) ** 2).mean()
loss.backward()
with torch.no_grad():
    w -= 0.1 * w.grad
loss, w = loss.detach(), w.detach()
{SHOWN}
""",
    "pytensor": f"""
import numpy as np
import pytensor
import pytensor.tensor as pt
{DATA}
x, y = pt.dmatrix("x"), pt.dvector("y")
w = pytensor.shared(np.zeros(30), name="w")
cost = ((pt.sigmoid(x @ w) - y) ** 2).mean()
step = pytensor.function([x, y], cost, updates=[(w, w - 0.1 * pytensor.grad(cost, w))])
loss = step(rows, targets)
w = w.get_value()
{SHOWN}
""",
}
#: environment variables that tell a library the folder of its cache on disk
CACHES = {
    "opwise": {"OPWISE_FLAGS": "base_compiledir={}"},
    "numba": {"NUMBA_CACHE_DIR": "{}"},
    "jax": {
        "JAX_COMPILATION_CACHE_DIR": "{}",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    },
    "pytensor": {"PYTENSOR_FLAGS": "base_compiledir={}"},
}
#: runs that fill a cache before a warm one counts: a process may end before its compiler does
FILLING = 2


def seconds_of(program: Path, **environment: str) -> tuple[float, str]:
    """Run a program; return the seconds until it has printed a line, and the line."""
    inherited = {name: value for name, value in os.environ.items() if name != "OPWISE_FLAGS"}
    inherited["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, program], env=inherited | environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
        process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{program} ended with {process.returncode}")
    return seconds, line.strip()


def measure(names: Iterable[str], runs: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each run, by contender and by the state of its cache."""
    names = list(names)
    samples: dict[str, dict[str, list[float]]] = {
        name: {cache: [] for cache in (("cold", "warm") if name in CACHES else ("none",))}
        for name in names
    }
    printed: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        programs, filled = {}, {}
        for name in names:
            programs[name] = Path(folder, f"first_{name}.py")
            programs[name].write_text(PROGRAMS[name], encoding="utf-8")
            filled[name] = Path(folder, name)
            for _ in range(FILLING):  # and the system's cache of files
                printed.add(seconds_of(programs[name], **environment(name, filled[name]))[1])
        for _ in range(runs):
            for name, found in samples.items():
                for cache in found:
                    with tempfile.TemporaryDirectory() as empty:
                        place = Path(empty) if cache == "cold" else filled[name]
                        seconds, line = seconds_of(programs[name], **environment(name, place))
                    found[cache].append(seconds)
                    printed.add(line)
    if len(printed) != 1:
        raise SystemExit(f"the results differ: {sorted(printed)}")
    return samples


def environment(name: str, folder: Path) -> dict[str, str]:
    """Return the variables that put the cache of a contender's library into a folder."""
    return {key: value.format(folder) for key, value in CACHES.get(name, {}).items()}


# ---------------------------------------------------------------- what pages say


def rows(run: dict[str, Any]) -> list[tuple[str, float | None, float]]:
    """Return (contender, median with an empty cache, with a full one or without a cache)."""
    found = []
    for name, samples in run["samples"].items():
        medians = {cache: statistics.median(values) for cache, values in samples.items()}
        warm = medians["none"] if "none" in medians else medians["warm"]
        found.append((name, medians.get("cold"), warm))
    return sorted(found, key=lambda row: row[2])


def table(run: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    head = [["library", "first result, cache filled", "cache empty"], ["---", "---:", "---:"]]
    body = [
        [name, f"{warm:.2f} s", "no cache" if cold is None else f"{cold:.2f} s"]
        for name, cold, warm in rows(run)
    ]
    return tabulated(head + body)


def sentence(run: dict[str, Any]) -> str:
    """Return what README says: opwise, and each peer."""
    found = {name: (cold, warm) for name, cold, warm in rows(run)}
    cold, warm = found.pop("opwise")
    names = {"numpy": "numpy", "numba": "Numba", "jax": "JAX", "torch": "PyTorch",
             "pytensor": "PyTensor"}  # fmt: skip
    peers = [
        f"{names[name]} {peer_warm:.2f} s" + (f" ({peer_cold:.2f} s)" if peer_cold else "")
        for name, (peer_cold, peer_warm) in found.items()
    ]
    about = run["machine"]
    return (
        f"A new process has its first result of the example above after {warm:.2f} s, the import "
        f"included ({cold:.2f} s with an empty cache); {', '.join(peers)}. Medians of "
        f"{runs_of(run)} runs on {about['date']}, on {about['cores']} cores of an "
        f"{about['processor']}."
    )


def runs_of(run: dict[str, Any]) -> int:
    """Return how often each contender ran."""
    return max(len(values) for each in run["samples"].values() for values in each.values())


def measured_on(run: dict[str, Any]) -> str:
    """Return the hardware, the date and the versions."""
    about = run["machine"]
    versions = ", ".join(f"{name} {about[name]}" for name in ("python", *PACKAGES) if name in about)
    return (
        f"Medians of {runs_of(run)} runs in turn on {about['date']}: {about['processor']} "
        f"({about['vectors']}), {about['cores']} cores. Versions: {versions}."
    )


PARTS = {"sentence": sentence, "table": table, "machine": measured_on}
MARKED = re.compile(r"^(<!-- first-result: (\w+) -->)$.*?^(<!-- /first-result -->)$", re.S | re.M)


def filled(text: str, run: dict[str, Any]) -> str:
    """Return a page with its parts made anew: ``<!-- first-result: PART -->`` begins one."""

    def part(match: re.Match[str]) -> str:
        made = PARTS[match[2]](run)
        made = made if made.startswith("|") else textwrap.fill(made, WRAPPED)
        return f"{match[1]}\n\n{made}\n\n{match[3]}"

    return MARKED.sub(part, text)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.first_result", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--runs", type=int, default=9, help="of each contender (default: 9)")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--from-json", type=Path, metavar="FILE", help="measure nothing")
    parser.add_argument("--pages", type=Path, nargs="+", default=[], help="make their parts anew")
    args = parser.parse_args(argv)
    if args.from_json:
        run = json.loads(args.from_json.read_text(encoding="utf-8"))
    else:
        missing = [name for name in args.only if importlib.util.find_spec(name) is None]
        if missing:
            print(f"not installed: {', '.join(missing)}")
        about = {**machine(PACKAGES), "opwise": f"{opwise.__version__}, commit {commit()}"}
        run = {"machine": about, "samples": measure(sorted(set(args.only) - {*missing}), args.runs)}
    print(measured_on(run), table(run), sep="\n\n")
    if args.json:
        args.json.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    for page in args.pages:
        page.write_text(filled(page.read_text(encoding="utf-8"), run), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
