"""The coordinator: a process for every contender of a workload, rounds in which they take turns."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.processes import ROOT, Failed, Process, added
from benchmark.suite import check
from benchmark.suite.contenders import CONTENDERS
from benchmark.suite.limits import Limits
from benchmark.suite.results import DECLINED, DETAILS, MISSING, WRONG, Line, Outcome
from benchmark.suite.workload import Workload

ROUND = 0.05
LOADING = 120


@dataclass(frozen=True)
class Settings:
    """timeout: seconds for one compilation, and for any other request to a worker.

    compile: the contenders whose compilation is measured.
    """

    rounds: int = 20
    timeout: float = 300
    compile: list[str] = field(default_factory=lambda: list(CONTENDERS))
    small: bool = False


def worker(contender: str, workload: str, cache: Path, settings: Settings) -> Process:
    """Return a new process of a contender; it keeps compiled code in the folder ``cache``."""
    chosen = CONTENDERS[contender]
    command = [sys.executable, "-m", "benchmark.suite.worker", chosen.worker, workload]
    flags = added(os.environ, chosen.environment(cache))
    flags.pop("PYTHONDONTWRITEBYTECODE", None)  # users' imports read bytecode
    return Process(command + ["--small"] * settings.small, flags, chosen.checkout or ROOT)


class Turn:
    """One contender in one workload, from its first process to its last sample.

    folder: for what the contender keeps. It may be that of an earlier workload if ``times_compile``
        is false: then compilation is not measured.
    """

    def __init__(self, name: str, workload: Workload, settings: Settings, folder: Path):
        self.outcome = Outcome(name)
        self.workload = workload
        self.settings = settings
        self.folder = folder / name
        self.times_compile = name in settings.compile
        self.process: Process | None = None
        self.seconds: dict[str, float] = {}

    def prepare(self, want: check.Results) -> None:
        """Compile, and compare with numpy; measure it with an empty and with a filled cache."""
        contender = CONTENDERS[self.outcome.contender]
        if missing := contender.missing():
            self.end(Failed(MISSING, f"not installed: {', '.join(missing)}"))
        elif reason := contender.declines(self.workload):
            self.end(Failed(DECLINED, reason))
        else:
            self.guarded(self.start, want)

    def guarded(self, action, *arguments) -> None:
        try:
            action(*arguments)
        except Failed as failure:
            self.end(failure)

    def start(self, want: check.Results) -> None:
        self.folder.mkdir(exist_ok=not self.times_compile)
        if self.times_compile:
            self.seconds["cold"] = sum(self.compiled().values())
            self.process.close()
        times = self.compiled()
        if self.times_compile:
            self.seconds["warm"] = sum(times.values())
            self.outcome.first = times["first"]
        self.compare(want)
        self.process.halt()

    def calibrate(self) -> None:
        self.process.go()
        self.outcome.calls = self.ask("calibrate", seconds=ROUND)
        self.process.halt()

    def compiled(self) -> dict[str, float]:
        """Seconds in a new process."""
        name = self.outcome.contender
        self.process = worker(name, self.workload.name, self.folder, self.settings)
        self.process.ask(LOADING, "load")
        return self.ask("compile")

    def compare(self, want: check.Results) -> None:
        path = self.folder / f"{self.workload.name}.npz"
        self.ask("check", path=str(path))
        wrong = check.difference(self.workload, check.Results.load(path), want)
        path.unlink()
        if wrong:
            raise Failed(WRONG, wrong)

    def ask(self, do: str, **arguments):
        return self.process.ask(self.settings.timeout, do, **arguments)

    def sample(self, keep: bool) -> None:
        self.process.go()
        seconds = self.ask("time", calls=self.outcome.calls)
        self.process.halt()
        if keep:
            self.outcome.samples.append(seconds)

    def end(self, failure: Failed | None = None) -> None:
        if failure:
            self.outcome.status = failure.status
            self.outcome.note = failure.note
            self.outcome.details = failure.details[-DETAILS:]
            self.outcome.samples.clear()
        if self.process:
            self.process.close()
            self.process = None

    def finish(self) -> Outcome:
        """Compilation is what came before the first result beyond a later call."""
        self.end()
        for kind, seconds in self.seconds.items():
            setattr(self.outcome, kind, max(0.0, seconds - (self.outcome.median or 0.0)))
        return self.outcome


def line_of(
    workload: Workload, contenders: list[str], settings: Settings, limits: Limits, kept: Path
) -> Line:
    """Measure one workload.

    kept: a folder for the caches of the contenders whose compilation is not measured.
    """
    if settings.small:
        workload = workload.reduced()
    want = check.expected(workload)
    least = workload.least(want.outputs)
    limit, bound = limits.seconds(least, workload.dtype)
    with tempfile.TemporaryDirectory(prefix="opwise-suite-", ignore_cleanup_errors=True) as folder:
        turns = [
            Turn(name, workload, settings, Path(folder) if name in settings.compile else kept)
            for name in contenders
        ]
        try:
            prepare(turns, want)
            for turn in running(turns):
                turn.guarded(turn.calibrate)
            for lap in range(settings.rounds + 1):
                for turn in running(turns):
                    turn.guarded(turn.sample, lap > 0)
        finally:
            outcomes = [turn.finish() for turn in turns]
    return Line(
        name=workload.name,
        what=workload.what,
        dtype=workload.dtype,
        sizes=workload.sizes,
        read=least.read,
        written=least.written,
        flops=least.flops,
        limit=limit,
        bound=bound,
        outcomes=outcomes,
    )


def prepare(turns: list[Turn], want: check.Results) -> None:
    """Prepare every contender; side by side those whose compilation is not measured."""

    def one(turn: Turn) -> None:
        turn.prepare(want)
        tell(turn.workload, turn.outcome)

    with ThreadPoolExecutor(os.cpu_count()) as beside:
        list(beside.map(one, [turn for turn in turns if not turn.times_compile]))
    for turn in turns:
        if turn.times_compile:
            one(turn)


def running(turns: list[Turn]) -> Iterator[Turn]:
    return (turn for turn in turns if turn.process)


def tell(workload: Workload, outcome: Outcome) -> None:
    """Progress, on the error output."""
    print(f"{workload.name}: {outcome.contender}: {outcome.note or 'ready'}", file=sys.stderr)
