"""What profiling costs: each thunk, each call, and what is made of a profile of 10,000 Applys.

    python -m benchmark.profile_cost [--json FILE] [--quick] [--only thunks calls reports]

The same graph is compiled with and without profiling, and the functions take turns; a sample is the
difference within a turn. Times are those of the processor, which a busy machine spoils less.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmark.call_cost import Row, child, machine, print_table
from benchmark.suite.workload import Workload
from benchmark.suite.workloads import WORKLOADS

#: nanoseconds that profiling may add to a thunk, and the profile of memory to that
THUNK_BAR, MEMORY_BAR = 30, 100
#: seconds that a text of 10,000 Applys may take
TEXT_BAR = 1

#: what is compiled: without profiling, with it, and with the memory
PLAIN, PROFILED, MEMORY = "FAST_RUN", "PROFILE_MODE", "with profile_memory"


@dataclass(frozen=True)
class Effort:
    """How much is measured: Applys of chains, turns, seconds a turn; the profile, processes."""

    sizes: tuple[int, ...]
    rounds: int
    batch_seconds: float
    workload: str
    processes: int


FULL = Effort((100, 2_000), rounds=51, batch_seconds=0.02, workload="blocks-1000", processes=5)
QUICK = Effort((100,), rounds=5, batch_seconds=0.005, workload="blocks-100", processes=1)


# ---------------------------------------------------------------- thunks and calls


def thunk_rows(effort: Effort) -> Iterator[Row]:
    """Nanoseconds a thunk, of chains of tiny Applys that are not fused."""
    for size in effort.sizes:
        steps, modes = functions(size)
        taken = turns(steps, effort)
        each = {name: [ns / size for ns in samples] for name, samples in taken.items()}
        label = f"{size} Applys: "
        yield Row("thunks", f"{label}a thunk", "ns", each[PLAIN])
        (profile,) = modes[PROFILED].profile().functions
        told = [float(a.quantile(0.5)) for a in profile.applys]
        yield Row("thunks", f"{label}a thunk, says the profile", "ns", told)
        added = differences(each[PROFILED], each[PLAIN])
        yield Row("thunks", f"{label}profiling adds", "ns", added, THUNK_BAR)
        added = differences(each[MEMORY], each[PROFILED])
        yield Row("thunks", f"{label}profile_memory adds", "ns", added, MEMORY_BAR)


def call_rows(effort: Effort) -> Iterator[Row]:
    """Nanoseconds a call, of a function without Applys, and what the clock is taken to cost."""
    steps, _ = functions(0)
    taken = turns(steps, effort)
    yield Row("calls", "a call", "ns", taken[PLAIN])
    yield Row("calls", "profiling adds", "ns", differences(taken[PROFILED], taken[PLAIN]))
    clock = float(steps[PROFILED].fn.timing.timer_ns)
    yield Row("calls", "the clock, taken from each thunk", "ns", [clock])


def functions(size: int) -> tuple[dict[str, Callable], dict]:
    """A chain of so many Applys of two numbers, compiled in each way, and the modes of these."""
    import opwise
    import opwise.tensor as T
    from opwise.config import change_flags

    modes = {
        PLAIN: opwise.Mode("c|py", "fast_run"),
        PROFILED: opwise.ProfileMode("c|py", "fast_run"),
        MEMORY: opwise.ProfileMode("c|py", "fast_run"),
    }
    modes = {name: mode.excluding("fusion") for name, mode in modes.items()}
    steps = {}
    for name, mode in modes.items():
        x = y = T.dvector("x")
        for _ in range(size):
            y = T.tanh(y)
        outputs = [y] if size else []
        with change_flags({"ProfileMode.profile_memory": name == MEMORY}):
            f = opwise.function([x], outputs, mode=mode, on_unused_input="ignore")
        if len(f.linked.order) != size:
            raise ArithmeticError(f"{len(f.linked.order)} Applys were compiled, not {size}")
        steps[name] = f
    return steps, modes


def turns(steps: dict[str, Callable], effort: Effort) -> dict[str, list[float]]:
    """Nanoseconds a call of each function, turn by turn."""
    given = np.full(2, 0.5)
    steps = {name: partial(step, given) for name, step in steps.items()}
    calls = calls_for(steps[PLAIN], effort.batch_seconds)
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(effort.rounds):
        for name, step in steps.items():
            taken[name].append(seconds_of(step, calls) / calls * 1e9)
    return taken


def calls_for(step: Callable, seconds: float) -> int:
    """How many calls take about that long."""
    calls = 1
    while (took := seconds_of(step, calls)) < seconds / 4:
        calls *= 4
    return max(1, round(calls * seconds / took))


def seconds_of(step: Callable, calls: int = 1) -> float:
    """Seconds of the processor that so many calls take."""
    start = time.process_time()
    for _ in range(calls):
        step()
    return time.process_time() - start


def differences(more: list[float], less: list[float]) -> list[float]:
    return [a - b for a, b in zip(more, less, strict=True)]


# ---------------------------------------------------------------- what is made of a profile


def report_rows(effort: Effort) -> Iterator[Row]:
    """Seconds of all that is made of a profile, each in a fresh process."""
    taken: dict[str, list[float]] = {}
    for _ in range(effort.processes):
        for name, seconds in child("report_child", effort.workload, module=__spec__.name).items():
            taken.setdefault(name, []).append(seconds)
    for name, samples in taken.items():
        bar = TEXT_BAR if name.startswith("print_") else None
        yield Row("reports", f"{effort.workload}: {name}", "s", samples, bar)


def report_child(name: str) -> dict[str, float]:
    return report_seconds(WORKLOADS[name])


def report_seconds(workload: Workload) -> dict[str, float]:
    """Seconds of all that can be made of a profile of two calls of a workload, by name.

    The first summary comes first, since what it finds out about the graph is kept.
    """
    import opwise
    from benchmark.suite.contenders.symbolic import Opwise
    from opwise.profiling.merge import merge
    from opwise.profiling.profile import Profile
    from opwise.profiling.reports import profilemode

    mode = opwise.ProfileMode("c|py", "fast_run")
    contender = Opwise("opwise", lambda _: mode)
    contender.load(workload)
    step = contender.build()
    step(), step()
    taken: dict[str, float] = {}

    def timed(what, make):
        start = time.process_time()
        made = make()
        taken[what] = time.process_time() - start
        return made

    def printed():
        with contextlib.redirect_stdout(io.StringIO()):
            mode.print_summary()

    timed("print_summary, the first", printed)
    timed("print_summary, the second", printed)
    profile = timed("snapshot", mode.profile)
    text = timed("to_json", profile.to_json)
    timed("from_json", lambda: Profile.from_json(text))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        timed("save", lambda: profile.save(path))
        other = timed("load", lambda: Profile.load(path))
        if hasattr(profile, "report"):
            timed("report.html", lambda: profile.report(path.with_suffix(".html")))
    timed("merge of two", lambda: merge([profile, other]))
    timed("print_diff_summary of two", lambda: profilemode.difference(profile, other, 15, 20))
    return taken


# ---------------------------------------------------------------- the command

SECTIONS: dict[str, Callable[[Effort], Iterator[Row]]] = {
    "thunks": thunk_rows,
    "calls": call_rows,
    "reports": report_rows,
}
TITLES = {
    "thunks": "A thunk of a chain of tanh of two numbers, none of them fused",
    "calls": "A call of a function without Applys",
    "reports": "What is made of a profile",
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.profile_cost", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--quick", action="store_true", help="few repeats, to see that it works")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    args = parser.parse_args(argv)

    effort = QUICK if args.quick else FULL
    about = machine(("opwise", "numpy"))
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    rows = [row for section in args.only for row in SECTIONS[section](effort)]
    print_table(rows, TITLES)
    if args.json:
        result = {"machine": about, "effort": asdict(effort), "rows": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
