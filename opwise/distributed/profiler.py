"""Profiler: records compiled functions on all workers of a cluster, and merges what they report."""

from __future__ import annotations

import linecache
import sys
import uuid
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from opwise.distributed import plugins, remote
from opwise.distributed.clusters import client_for
from opwise.profiling.merge import merge
from opwise.profiling.model import ProfileData
from opwise.profiling.profile import Profile
from opwise.profiling.workers import Wait, WorkerProfile, WorkersProfile, named_apart


class Profiler:
    """Records what ``opwise.distributed`` runs on the workers of a cluster.

    client: the Dask client (default: the one in use). interval: a worker reports what it has
    recorded after a task, but not more often than once in so many seconds; 0 for after each task.
    A worker that is lost takes with it what it recorded after its last report. Use it in a ``with``
    block; ``result()`` can be called within the block and after it. ::

        with Profiler(client) as profiler:
            distances.compute()
        profiler.result().summary()

    Raises ValueError if there is no client, or if the interval is below 0.
    """

    def __init__(self, client: Any = None, interval: float = 0.1) -> None:
        if not interval >= 0:
            raise ValueError(f"interval is {interval!r}; it must be a number of seconds from 0")
        self.client = client_for(client, "Profiler")
        self.interval = interval
        self._name = f"opwise-profiler-{uuid.uuid4().hex}"
        self._is_running = False
        self._result = WorkersProfile()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start to record; raises RuntimeError if it has been started before."""
        if self._is_running or self._result.workers:
            raise RuntimeError("A Profiler records once: make another one")
        self.client.register_plugin(plugins.CollectProfiles(self._name), name=self._name)
        self.client.register_plugin(
            plugins.ReportProfiles(self._name, self.interval), name=self._name
        )
        self._is_running = True

    def stop(self) -> None:
        """Stop to record; ``result()`` keeps what was recorded."""
        if self._is_running:
            self._result = self._collect()
            self._is_running = False
            self.client.unregister_worker_plugin(self._name)
            self.client.unregister_scheduler_plugin(self._name)

    def result(self) -> WorkersProfile:
        """Return what the workers have recorded up to now, or until the Profiler was stopped."""
        return self._collect() if self._is_running else self._result

    def _collect(self) -> WorkersProfile:
        # a worker that is lost meanwhile has reported what it could
        last = self.client.run(remote.collect, self._name, on_error="ignore")
        found = self.client.run_on_scheduler(plugins.collected, self._name)
        return _assembled(found, last)


def _assembled(
    found: Mapping[str, Any], last: Mapping[str, list[tuple[str, int, str]]]
) -> WorkersProfile:
    """Return what plugins have collected.

    found: from the scheduler. last: from each worker, by address, what it had not reported yet.
    """
    collected = sorted(found["workers"], key=lambda w: (w["joined"], len(w["name"]), w["name"]))
    names = named_apart([_label(worker["name"]) for worker in collected])
    workers = []
    by_address: dict[str, str] = {}
    for worker, name in zip(collected, names, strict=True):
        reports = dict(worker["reports"])
        if not worker["lost"]:
            for number, calls, text in last.get(worker["address"]) or ():
                if reports.get(number, (0, ""))[0] < calls:
                    reports[number] = calls, text
        by_address[worker["address"]] = name
        times = {
            key: worker[key]
            for key in ("lost", "seconds", "computing", "receiving", "waiting", "tasks")
        }
        workers.append(WorkerProfile(name, _profile_of(name, reports), **times))
    waits = tuple(
        Wait(by_address.get(waiting, waiting), by_address.get(computing, computing), *rest)
        for waiting, computing, *rest in found["waits"]
    )
    return WorkersProfile(tuple(workers), waits)


def _label(name: str) -> str:
    """Return how tables call a worker: those of a LocalCluster have numbers for names."""
    return f"worker {name}" if name.isdigit() else name


def _profile_of(name: str, reports: Mapping[str, tuple[int, str]]) -> Profile:
    """Return the profile of a worker from its reports, one for each function."""
    read = [Profile.from_json(text, f"The report of {name}") for _, text in reports.values()]
    if not read:
        return Profile(message=name)
    merged = merge(read)
    return replace(
        merged,
        message=name,
        environment=_environment(name, read),
        sources={place: text or _source(place) for place, text in merged.sources.items()},
    )


def _environment(name: str, read: list[Profile]) -> dict[str, Any]:
    """Return the environment of a worker: as of its last report, with the program of the client."""
    latest: ProfileData = max(read, key=lambda p: p.environment.get("seconds_since_import", 0.0))
    program = " ".join(sys.argv)
    return {**latest.environment, "program": program, "process_name": name}


def _source(place: str) -> str:
    """Return the text of a line, given as ``file:line``, that the worker could not read."""
    file, _, line = place.rpartition(":")
    return linecache.getline(file, int(line)).strip() if line.isdigit() else ""
