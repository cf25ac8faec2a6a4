"""The text about the workers of a run: their times, who waited for whom, how far Applys differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opwise.profiling.reports.wording import counted, fitted, line_of, percent, short

if TYPE_CHECKING:
    from opwise.profiling.workers import Spread, Wait, WorkerProfile, WorkersProfile

#: headings and sentences are wrapped at so many columns
_WIDTH = 100
_WORKERS = (
    "Workers: <seconds> <computing> <receiving> <waiting> <without a task> <tasks> <calls> "
    "<seconds in calls> <worker>"
)
_LEGEND = [
    "  receiving: the input of the next task was on its way from another worker",
    "  waiting: another worker computed the input of the next task",
    "  without a task: there was none, or the scheduler had not sent it yet",
]
_WAITS = "Who waits for whom: <seconds> <share of the worker's time> <times> <worker> <task>"
_SPREAD = (
    "Applys on each worker: <% time> <least µs a run> <median> <most> <most / least> <#workers> "
    "<#runs> <slowest worker> <line> <Apply>"
)


def sections(found: WorkersProfile, n: int = 20) -> list[str]:
    """Return the lines about the workers of a run, with up to n rows in each table."""
    lines = [*times(found.workers, n), "", *waits(found, n), "", *spread(found.spread(), n)]
    return list(fitted(lines, _WIDTH, cut_rows=False))


def times(workers: Sequence[WorkerProfile], n: int) -> list[str]:
    """Return the table of the workers' times."""
    if not workers:
        return ["Workers: none has run a task"]
    rows = [_times(worker) for worker in workers[:n]]
    return [_WORKERS, *rows, *_rest(len(workers) - n, "worker"), *_LEGEND]


def _times(worker: WorkerProfile) -> str:
    seconds = (
        worker.seconds, worker.computing, worker.receiving, worker.waiting, worker.without_task,
    )  # fmt: skip
    lost = ", lost" if worker.lost else ""
    columns = "  ".join("%9.3f" % s for s in seconds)
    return (
        f"  {columns}  {worker.tasks:7d}  {worker.calls:7d}  {worker.in_calls:9.3f}  "
        f"{worker.name}{lost}"
    )


def waits(found: WorkersProfile, n: int) -> list[str]:
    """Return the table of who waited for whom, the longest first."""
    if not found.waits:
        return ["Who waits for whom: no worker has waited for another"]
    whole = {worker.name: worker.seconds for worker in found.workers}
    rows = sorted(found.waits, key=lambda w: (-w.seconds, w.worker, w.computing, w.task))
    return [
        _WAITS,
        *(_wait(row, whole.get(row.worker, 0.0)) for row in rows[:n]),
        *_rest(len(rows) - n, "row", sum(row.seconds for row in rows[n:])),
    ]


def _wait(row: Wait, whole: float) -> str:
    return (
        f"  {row.seconds:9.3f}  {percent(row.seconds, whole):5.1f}%  {row.times:7d}  {row.worker} "
        f"waits for {row.computing}: {row.task}"
    )


def spread(rows: Sequence[Spread], n: int) -> list[str]:
    """Return the table of how far the times of Applys differ between the workers."""
    if not rows:
        return ["Applys on each worker: none was timed"]
    whole = sum(row.apply.total for row in rows)
    return [
        _SPREAD,
        *(_spread(row, whole) for row in rows[:n]),
        *_rest(len(rows) - n, "Apply", sum(row.apply.total for row in rows[n:]) * 1e-9),
    ]


def _spread(row: Spread, whole: float) -> str:
    columns = "  ".join("%9.3f" % (ns * 1e-3) for ns in (row.least, row.median, row.most))
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    return (
        f"   {percent(row.apply.total, whole):5.1f}%  {columns}  {ratio:>6}  {len(row.means):3d}  "
        f"{row.apply.count:7d}  {row.slowest}  {line_of(row.apply) or '-'}  "
        f"{short(row.apply.title)}"
    )


def _rest(count: int, what: str, seconds: float | None = None) -> list[str]:
    if count <= 0:
        return []
    time = "" if seconds is None else f": {seconds:.3f} s"
    return [f"   ... ({counted(count, f'more {what}')}{time})"]
