"""What a call, a compilation, an import and a million calls cost on this machine.

    python -m benchmark.call_cost [--json FILE] [--quick] [--only step shared build import memory]

Every figure is the median of repeats in which the contenders take turns, so that a busy moment of
the machine falls on all of them. A library that is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmark.contenders import STEPS, Contender, problem, symbolic_graph

ROOT = Path(__file__).resolve().parent.parent

# Library, mode and the environment variable with the library's flags.
BUILDS = {
    "opwise FAST_RUN": ("theano", "FAST_RUN", "THEANO_FLAGS"),
    "opwise FAST_COMPILE": ("theano", "FAST_COMPILE", "THEANO_FLAGS"),
    "pytensor CVM": ("pytensor", "CVM", "PYTENSOR_FLAGS"),
    "pytensor NUMBA": ("pytensor", "NUMBA", "PYTENSOR_FLAGS"),
}
IMPORTS = ("numpy", "scipy.special", "opwise", "theano", "pytensor", "jax", "torch")
PACKAGES = ("opwise", "numpy", "scipy", "pytensor", "jax", "torch")
MEMORY = ("opwise FAST_RUN", "opwise PROFILE_MODE", "numpy by hand")


@dataclass(frozen=True)
class Effort:
    """How often each thing is repeated."""

    rounds: int
    batch_seconds: float
    processes: int
    million: int


FULL = Effort(rounds=31, batch_seconds=0.02, processes=7, million=1_000_000)
QUICK = Effort(rounds=5, batch_seconds=0.005, processes=2, million=20_000)


@dataclass(frozen=True)
class Row:
    """One line of the table: the samples, in the unit given, and the bar that their median is to
    stay below, if there is one."""

    section: str
    name: str
    unit: str
    samples: list[float]
    bar: float | None = None


class Missing(Exception):
    """A contender whose library is not installed."""


# ---------------------------------------------------------------- a step


def step_rows(effort: Effort) -> Iterator[Row]:
    """Microseconds of one training step, for every contender whose library is here."""
    steps = {}
    for name, factory in STEPS.items():
        try:
            steps[name] = checked_step(name, factory)
        except Missing as missing:
            yield Row("step", f"{name} ({missing})", "us", [])
    for name, seconds in in_turn(steps, effort).items():
        yield Row("step", name, "us", [value * 1e6 for value in seconds])


def in_turn(contenders: dict[str, Contender], effort: Effort) -> dict[str, list[float]]:
    """Seconds a call of contenders that take turns, by name."""
    counts = {name: calls_for(c, effort.batch_seconds) for name, c in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(effort.rounds):
        for name, contender in contenders.items():
            samples[name].append(seconds_per_call(contender, counts[name]))
    return samples


def checked_step(name: str, factory: Callable) -> Contender:
    """The contender, after it has descended the same costs as numpy; else an error."""
    try:
        step, x, y = factory(problem())
    except ModuleNotFoundError as error:
        raise Missing(f"no module {error.name}") from error
    expected, *given = STEPS["numpy by hand"](problem())
    for _ in range(10):
        got, want = float(step(x, y)[0]), float(expected(*given)[0])
        if not abs(got - want) <= 1e-9 * want:
            raise ArithmeticError(f"{name} has the cost {got!r} where numpy has {want!r}")
    return step, x, y


def calls_for(contender: Contender, seconds: float) -> int:
    """How many calls take about that long."""
    calls = 1
    while (took := seconds_per_call(contender, calls) * calls) < seconds / 4:
        calls *= 4
    return max(1, round(calls * seconds / took))


def seconds_per_call(contender: Contender, calls: int) -> float:
    step, x, y = contender
    start = time.perf_counter()
    for _ in range(calls):
        step(x, y)
    return (time.perf_counter() - start) / calls


# ---------------------------------------------------------------- shared variables


def shared_rows(effort: Effort) -> Iterator[Row]:
    """Nanoseconds of a call on 0-d arrays that reads and updates shared variables, or none."""
    import numpy as np

    import opwise
    import opwise.tensor as T

    x = T.dscalar("x")
    one, *ten = (opwise.shared(0.0, name=f"w{k}") for k in range(11))
    functions = {
        "no shared variable": opwise.function([x], x + 1),
        "reads one": opwise.function([x], x + one),
        "updates one": opwise.function([x], [], updates=[(one, one + x)]),
        "updates ten": opwise.function([x], [], updates=[(w, w + x) for w in ten]),
    }
    contenders = {
        name: (lambda a, _, f=f: f(a), np.array(1.0), None) for name, f in functions.items()
    }
    for name, seconds in in_turn(contenders, effort).items():
        yield Row("shared", name, "ns", [value * 1e9 for value in seconds])


# ---------------------------------------------------------------- function(), import, memory


def build_rows(effort: Effort) -> Iterator[Row]:
    """Milliseconds of function() in a fresh process, with an empty and with a filled cache."""
    builds = {}
    for name, build in BUILDS.items():
        if installed(build[0]):
            builds[name] = build
        else:
            yield Row("build", f"{name} (no module {build[0]})", "ms", [])
    phases = ("function()", "first call")
    samples: dict[tuple[str, str, str], list[float]] = {
        (name, cache, phase): []
        for name in builds
        for cache in ("cold cache", "warm cache")
        for phase in phases
    }
    for _ in range(effort.processes):
        for name, (library, mode, variable) in builds.items():
            with tempfile.TemporaryDirectory() as compiledir:
                given = os.environ.get(variable)
                flags = ",".join(filter(None, (given, f"base_compiledir={compiledir}")))
                for cache in ("cold cache", "warm cache"):
                    times = child("build_child", library, mode, **{variable: flags})
                    for phase, seconds in zip(phases, times, strict=True):
                        samples[name, cache, phase].append(seconds * 1e3)
    for (name, cache, phase), values in samples.items():
        yield Row("build", f"{name}, {cache}: {phase}", "ms", values)


def build_child(library: str, mode: str) -> list[float]:
    """Seconds of function() and of the first call; importing and the graph are done beforehand."""
    given = problem()
    graph = symbolic_graph(library, given)
    function = importlib.import_module(library).function
    start = time.perf_counter()
    step = function(**graph, mode=mode)
    built = time.perf_counter()
    step(given.x, given.y)
    return [built - start, time.perf_counter() - built]


def import_rows(effort: Effort) -> Iterator[Row]:
    """Milliseconds of an import in a fresh process whose byte code is already compiled."""
    names = []
    for name in IMPORTS:
        if installed(name):
            names.append(name)
        else:
            yield Row("import", f"import {name} (not installed)", "ms", [])
    samples: dict[str, list[float]] = {name: [] for name in names}
    for lap in range(effort.processes + 1):
        for name in names:
            code = (
                "import time; start = time.perf_counter(); "
                f"import {name}; print(time.perf_counter() - start)"
            )
            seconds = float(fresh_python(code))
            if lap > 0:  # the first lap may have written byte code
                samples[name].append(seconds * 1e3)
    for name, values in samples.items():
        yield Row("import", f"import {name}", "ms", values)


def memory_rows(effort: Effort) -> Iterator[Row]:
    """Resident memory before and after very many calls, in a fresh process."""
    for name in MEMORY:
        before, after, seconds = child("memory_child", name, effort.million)
        label = f"{name}, {effort.million:,} calls"
        yield Row("memory", f"{label}: resident before", "MiB", [before])
        yield Row("memory", f"{label}: resident after", "MiB", [after])
        yield Row("memory", f"{label}: time", "s", [seconds])


def memory_child(name: str, calls: int) -> list[float]:
    contender = checked_step(name, STEPS[name])
    seconds_per_call(contender, 2000)
    gc.collect()
    before = resident_mib()
    seconds = seconds_per_call(contender, calls) * calls
    gc.collect()
    return [before, resident_mib(), seconds]


def resident_mib() -> float:
    """Resident memory of this process; where there is no /proc, the most it ever had."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except FileNotFoundError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (2**20 if sys.platform == "darwin" else 2**10)
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# ---------------------------------------------------------------- processes


def child(function: str, *arguments, module: str = __spec__.name, **environment: str):
    """The numbers that a function of this module, or another, returns in a fresh process."""
    call = f"{function}(*{list(arguments)!r})"
    code = f"import json; from {module} import {function}; print(json.dumps({call}))"
    return json.loads(fresh_python(code, **environment).splitlines()[-1])


def fresh_python(code: str, **environment: str) -> str:
    """What a new Python prints that runs this code; its errors go to the terminal."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None


# ---------------------------------------------------------------- the table


def _system():
    """The kind of system: its kernel by two numbers, the processor's kind, the C library."""
    kernel = ".".join(platform.release().split(".")[:2])
    library = "".join(platform.libc_ver())
    return f"{platform.system()}-{kernel}-{platform.machine()}-with-{library}"


def machine(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """What has to be told with every figure."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "vectors": vectors(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "?"),
        "load": " ".join(f"{value:.1f}" for value in os.getloadavg()),
        "system": _system(),
        "compiler": compiler(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def processor() -> str:
    return cpuinfo("model name") or platform.processor() or platform.machine()


def vectors() -> str:
    """Return the widest vector instructions of the processor.

    Processors of one name may differ in them, and then so do all figures.
    """
    flags = cpuinfo("flags").split() or cpuinfo("Features").split()
    return next((flag for flag in ("avx512f", "avx2", "avx", "sve", "asimd") if flag in flags), "?")


def cpuinfo(field: str) -> str:
    """Return a field of the first processor in Linux's /proc/cpuinfo; '' where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return ""
    fields = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in fields if name.strip() == field), "")


def compiler() -> str:
    path = shutil.which("gcc") or shutil.which("cc")
    if path is None:
        return "none"
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return told.splitlines()[0]


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def print_table(rows: list[Row], titles: dict[str, str]) -> None:
    width = max(len(row.name) for row in rows)
    section = None
    for row in rows:
        if row.section != section:
            section = row.section
            print(f"\n{titles[section]}")
            print(f"  {'':{width}}  {'median':>10}  {'least':>10}  {'most':>10}  {'n':>3}")
        if not row.samples:
            print(f"  {row.name}")
            continue
        figures = (statistics.median(row.samples), min(row.samples), max(row.samples))
        bar = ""
        if row.bar is not None:
            bar = f"  {'below' if figures[0] < row.bar else 'NOT BELOW'} {row.bar:g}"
        print(
            f"  {row.name:{width}}",
            *(f"{figure:10.2f}" for figure in figures),
            f"{len(row.samples):3}  {row.unit}{bar}",
            sep="  ",
        )


SECTIONS: dict[str, Callable[[Effort], Iterator[Row]]] = {
    "step": step_rows,
    "shared": shared_rows,
    "build": build_rows,
    "import": import_rows,
    "memory": memory_rows,
}
TITLES = {
    "step": "One training step, 4 x 10: cost, two gradients, two updates",
    "shared": "One call on 0-d arrays, with shared variables",
    "build": "Compiling that step in a fresh process",
    "import": "Importing in a fresh process",
    "memory": "Very many steps in one process",
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.call_cost", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--quick", action="store_true", help="few repeats, to see that it works")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    args = parser.parse_args(argv)

    effort = QUICK if args.quick else FULL
    about = machine()
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    rows = [row for section in args.only for row in SECTIONS[section](effort)]
    print_table(rows, TITLES)
    if args.json:
        result = {"machine": about, "effort": asdict(effort), "rows": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
