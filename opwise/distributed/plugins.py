"""Dask's plugins that collect profiles: one on each worker, one on the scheduler.

Each report of a worker is everything that a function has recorded so far, with a running number:
a later one replaces an earlier one, so nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from dask.utils import key_split
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin
from distributed.metrics import time

from opwise.distributed import remote


class ReportProfiles(WorkerPlugin):
    """Records the functions of a worker, and sends what they record to the scheduler.

    name: of the Profiler. interval: see ``remote.Reports``.
    """

    def __init__(self, name: str, interval: float) -> None:
        self.name = name
        self.interval = interval

    def setup(self, worker: Any) -> None:
        reports = remote.Reports(worker, self.name, self.interval)
        remote.functions_of(worker).add(self.name, reports)

    def teardown(self, worker: Any) -> None:
        remote.functions_of(worker).remove(self.name)


class _Worker:
    """What the scheduler knows of one worker process."""

    def __init__(self, name: str, threads: int, joined: float) -> None:
        self.name = name
        self.threads = threads
        self.joined = joined
        self.left: float | None = None
        self.computing = self.receiving = self.waiting = 0.0
        self.tasks = 0
        #: when each thread was done with its last task
        self.free: dict[Any, float] = {}
        #: {number of a compiled function: (number of its calls, profile as JSON)}
        self.reports: dict[str, tuple[int, str]] = {}


class CollectProfiles(SchedulerPlugin):
    """Keeps the reports of all workers, of lost ones too, and the times of their tasks."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: by address and, of several processes at one address, in the order in which they joined
        self._workers: dict[str, list[_Worker]] = {}
        #: {key of a task: (address of the worker that ran it, when it was done)}
        self._done: dict[Any, tuple[str, float]] = {}
        #: {(waiting worker, computing worker, name of the tasks): [seconds, times]}
        self._waits: dict[tuple[str, str, str], list[float]] = {}

    async def start(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        # it stays for good: a message may come in after the Profiler has stopped
        scheduler.stream_handlers[remote.OPERATION] = partial(_receive, scheduler)
        now = time()
        for address in scheduler.workers:
            self._add(address, now)

    def add_worker(self, scheduler: Any, worker: str) -> None:
        self._add(worker, time())

    def _add(self, address: str, joined: float) -> None:
        state = self.scheduler.workers[address]
        found = _Worker(str(state.name), state.nthreads, joined)
        self._workers.setdefault(address, []).append(found)

    def remove_worker(self, scheduler: Any, worker: str, **about: Any) -> None:
        for found in self._workers.get(worker, [])[-1:]:
            found.left = time()

    def receive(self, worker: str, number: str, calls: int, text: str) -> None:
        """Keep a report of a worker, unless a later one is there."""
        for found in self._workers.get(worker, [])[-1:]:
            if found.reports.get(number, (0, ""))[0] < calls:
                found.reports[number] = calls, text

    # --- times ------------------------------------------------------------------------------------

    def transition(self, key: Any, start: str, finish: str, *args: Any, **about: Any) -> None:
        if start == "processing" and finish in ("memory", "erred") and about.get("startstops"):
            self._add_task(key, about)
        elif finish == "forgotten":
            self._done.pop(key, None)

    def _add_task(self, key: Any, about: dict[str, Any]) -> None:
        address = about.get("worker")
        spans = [(s["action"], s["start"], s["stop"]) for s in about["startstops"]]
        computed = [(begin, end) for action, begin, end in spans if action == "compute"]
        known = self._workers.get(address or "")
        if address is None or not computed or not known:
            return
        worker = known[-1]
        begin, end = min(b for b, _ in computed), max(e for _, e in computed)
        free = max(worker.joined, worker.free.get(about.get("thread"), worker.joined))
        last, done = self._last_input(key)
        # what another worker computed after this one had nothing more to do
        waited = min(done, begin) if last is not None and last != address else free
        if waited > free:
            worker.waiting += waited - free
            row = self._waits.setdefault((address, last or "", key_split(key)), [0.0, 0])
            row[0] += waited - free
            row[1] += 1
            free = waited
        transfers = ((b, e) for action, b, e in spans if action == "transfer")
        worker.receiving += _covered(transfers, free, begin)
        worker.computing += sum(e - b for b, e in computed)
        worker.tasks += 1
        worker.free[about.get("thread")] = end
        self._done[key] = address, end

    def _last_input(self, key: Any) -> tuple[str | None, float]:
        """Return (worker, time) of the input of a task that was done last; (None, 0.0) if none."""
        task = self.scheduler.tasks.get(key)
        inputs = () if task is None else [self._done.get(dep.key) for dep in task.dependencies]
        return max(filter(None, inputs), key=lambda pair: pair[1], default=(None, 0.0))

    # --- results ----------------------------------------------------------------------------------

    def collected(self) -> dict[str, Any]:
        """Return everything that was collected, as plain data."""
        now = time()
        workers = [
            {
                "address": address,
                "name": worker.name,
                "lost": worker.left is not None,
                "seconds": ((worker.left or now) - worker.joined) * worker.threads,
                "computing": worker.computing,
                "receiving": worker.receiving,
                "waiting": worker.waiting,
                "tasks": worker.tasks,
                "reports": dict(worker.reports),
                "joined": worker.joined,
            }
            for address, several in self._workers.items()
            for worker in several
        ]
        waits = [(*row, seconds, int(n)) for row, (seconds, n) in self._waits.items()]
        return {"workers": workers, "waits": waits}


def _receive(scheduler: Any, worker: str, name: str, **report: Any) -> None:
    """Give a report to the plugin that it is for, if that is still there."""
    plugin = scheduler.plugins.get(name)
    if plugin is not None:
        plugin.receive(worker, **report)


def _covered(spans: Iterable[tuple[float, float]], start: float, stop: float) -> float:
    """Return how long at least one of some spans of time lasts within a span."""
    covered = 0.0
    for begin, end in sorted(spans):
        begin, end = max(begin, start), min(end, stop)
        if end > begin:
            covered += end - begin
            start = end
    return covered


def collected(name: str, dask_scheduler: Any = None) -> dict[str, Any]:
    """Return what a plugin has collected, for ``Client.run_on_scheduler``."""
    found: dict[str, Any] = dask_scheduler.plugins[name].collected()
    return found
