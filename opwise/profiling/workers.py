"""What the workers of one run recorded: their profiles, their times, and whom they waited for.

Plain data, and the sums over it; ``opwise.distributed`` collects it, ``reports.workers`` prints it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opwise.profiling import streams
from opwise.profiling.merge import identity, merge
from opwise.profiling.methods import ProfileMethods
from opwise.profiling.model import ApplyProfile
from opwise.profiling.profile import Profile
from opwise.profiling.validation import check_counts


@dataclass(frozen=True)
class WorkerProfile:
    """What one worker process did; times are seconds of all its threads together."""

    #: the name in tables; no two workers of a run share one
    name: str
    #: what its functions recorded, as far as the worker reported it
    profile: Profile
    #: whether it was gone before the end of the run
    lost: bool = False
    #: how long it took part, times the number of its threads
    seconds: float = 0.0
    #: running tasks
    computing: float = 0.0
    #: without a task to run, while the input of its next task was on its way
    receiving: float = 0.0
    #: without a task to run, while another worker computed the input of its next task
    waiting: float = 0.0
    #: number of tasks that it finished, those that raised included
    tasks: int = 0

    @property
    def without_task(self) -> float:
        """The remaining seconds: no task was there, or the scheduler had not sent it yet."""
        return max(0.0, self.seconds - self.computing - self.receiving - self.waiting)

    @property
    def calls(self) -> int:
        """The number of calls of compiled functions, those that raised included."""
        return sum(f.calls for f in self.profile.functions)

    @property
    def in_calls(self) -> float:
        """The seconds in calls of compiled functions, a part of ``computing``."""
        return sum(f.call_ns for f in self.profile.functions) * 1e-9


@dataclass(frozen=True)
class Wait:
    """What a worker waited for another one, because that computed the input of its next task."""

    #: name of the worker that waited
    worker: str
    #: name of the worker that computed
    computing: str
    #: name of the tasks that had to wait
    task: str
    seconds: float
    #: number of tasks that had to wait
    times: int


@dataclass(frozen=True)
class Spread:
    """One Apply on all workers that ran it."""

    #: name of the function
    function: str
    #: the Apply, with the sums of all workers
    apply: ApplyProfile
    #: (name of the worker, mean nanoseconds of a run) pairs
    means: tuple[tuple[str, float], ...]

    @property
    def least(self) -> float:
        """The mean on the fastest worker, nanoseconds a run."""
        return min(ns for _, ns in self.means)

    @property
    def median(self) -> float:
        """The median of the workers' means, nanoseconds a run."""
        return statistics.median(ns for _, ns in self.means)

    @property
    def most(self) -> float:
        """The mean on the slowest worker, nanoseconds a run."""
        return max(ns for _, ns in self.means)

    @property
    def slowest(self) -> str:
        """The name of the slowest worker."""
        return max(self.means, key=lambda pair: pair[1])[0]

    @property
    def ratio(self) -> float | None:
        """The slowest worker's mean by the fastest one's; None if the latter is 0."""
        return self.most / self.least if self.least else None


@dataclass(frozen=True)
class WorkersProfile(ProfileMethods):
    """What all workers of a run recorded; ``profile()`` is their profiles merged into one."""

    workers: tuple[WorkerProfile, ...] = ()
    waits: tuple[Wait, ...] = ()

    def profile(self) -> Profile:
        """Return the profiles of all workers as one: functions that are the same become one."""
        return merge([w.profile for w in self.workers]) if self.workers else Profile()

    def spread(self) -> list[Spread]:
        """Return a row for each Apply that ran, those with the most time first.

        Applys of several workers are the same if they are at the same place of functions that have
        one name and compute the same.
        """
        means: dict[Any, list[tuple[str, float]]] = {}
        for worker in self.workers:
            for f in merge([worker.profile]).functions:
                for a in f.applys:
                    if a.count:
                        key = identity(f), a.position
                        means.setdefault(key, []).append((worker.name, a.total / a.count))
        rows = [
            Spread(f.name, a, tuple(means[identity(f), a.position]))
            for f in self.profile().functions
            for a in f.applys
            if a.count
        ]
        return sorted(rows, key=lambda row: -row.apply.total)

    def summary(self, file: Any = None, n: int = 20) -> None:
        """Print the workers' times, who waited for whom, and how much Applys differ between them.

        file: a writable text stream (default: stdout). n: how many rows of each table, at least 1.
        """
        from opwise.profiling.reports import workers as text

        check_counts(n=n)
        lines = "\n".join(text.sections(self, n)) + "\n"
        if file is None:
            streams.show(lines)
        else:
            streams.write(lines, file)

    def save(self, path: str | Path) -> None:
        """Write the merged profile to a file as JSON, which ``opwise report`` shows. OSError."""
        self.profile().save(path)

    def save_each(self, folder: str | Path) -> list[Path]:
        """Write the profile of each worker to a file of its own; return the paths. OSError.

        ``opwise report FOLDER`` merges them, ``opwise diff`` compares two. The folder is made if it
        is missing.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for worker in self.workers:
            safe = "".join(c if c.isalnum() else "-" for c in worker.name)
            paths.append(folder / f"{safe}.profile.json")
            worker.profile.save(paths[-1])
        return paths


def named_apart(names: Sequence[str]) -> list[str]:
    """Return names of which no two are equal: later ones get `` (2)``, `` (3)`` and so on."""
    met: dict[str, int] = {}
    found = []
    for name in names:
        met[name] = met.get(name, 0) + 1
        found.append(name if met[name] == 1 else f"{name} ({met[name]})")
    return found
