"""Costs of a run as a whole, beside the times of its Applys; what is known of them without noise.

Some are measured and vary from process to process; others follow from the program and its arrays,
and are equal in every run of it (``Cost.is_exact``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opwise.profiling import compare, noise
from opwise.profiling.compare import Difference
from opwise.profiling.model import ApplyProfile, ArrayProfile, FunctionProfile, ProfileData
from opwise.profiling.noise import STEADY, Drift, Observed

#: from a run, and the profile that says how often functions are called, to a figure
Figure = Callable[[ProfileData, ProfileData], float | None]

#: units
SECONDS, BYTES, NUMBER = "s", "bytes", ""


@dataclass(frozen=True)
class Cost:
    """One thing that a run costs."""

    #: its name in limits
    name: str
    #: what it is, for a table
    label: str
    #: SECONDS, BYTES or NUMBER
    unit: str
    #: the figure of a run; None if the profile does not hold it
    figure: Figure
    #: whether it is equal in every run of the same program
    is_exact: bool = False
    #: share by which runs of the same program may differ, where that is known without a test
    spread: float | None = None


@dataclass(frozen=True)
class CostRow(Observed):
    """A cost in the runs of two sides."""

    cost: Cost
    mine: tuple[float, ...]
    theirs: tuple[float, ...]
    p: float | None = None
    level: float = noise.LEVEL
    drift: Drift = STEADY

    @property
    def is_known(self) -> bool:
        """Whether both sides are known without noise: all runs of a side agree on it."""
        sides = self.mine, self.theirs
        return self.cost.is_exact and all(len(set(side)) == 1 for side in sides)

    @property
    def verdict(self) -> str:
        """'slower', 'faster', 'more', 'less', 'same', 'noise'; '' if it is not known."""
        if self.is_known and self.change is not None:
            return "same" if not self.change else "more" if self.change > 0 else "less"
        spread = self.cost.spread
        if self.p is None and spread is not None and self.ratio is not None:
            is_noise = 1 / (1 + spread) <= self.ratio <= 1 + spread
            return "noise" if is_noise else "more" if self.ratio > 1 else "less"
        found = super().verdict
        if self.cost.unit == SECONDS:
            return found
        return {"slower": "more", "faster": "less"}.get(found, found)


def rows(
    mine: Sequence[ProfileData], theirs: Sequence[ProfileData], is_one_machine: bool = True
) -> list[CostRow]:
    """Return a row for each cost that a run of either side has, in the order of COSTS.

    mine, theirs: the profiles of the runs. A side has no figures of what one of its runs lacks.
    is_one_machine: whether times can be compared.
    """
    if not mine or not theirs:
        return []
    drift = noise.drift(mine, theirs)
    found = []
    for cost in COSTS:
        before, after = (_figures(cost, runs, mine[0]) for runs in (mine, theirs))
        if before or after:
            own = drift if cost.unit == SECONDS else STEADY
            found.append(CostRow(cost, before, after, drift=own))
    tested = [
        r for r in found
        if not r.is_known and noise.is_testable(r)
        and (is_one_machine or r.cost.unit != SECONDS)
    ]  # fmt: skip
    judged = noise.corrected(tested)
    return [replace(r, **judged.get(id(r), {})) for r in found]


def _figures(cost: Cost, runs: Sequence[ProfileData], first: ProfileData) -> tuple[float, ...]:
    figures = [cost.figure(run, first) for run in runs]
    return tuple(x for x in figures if x is not None) if None not in figures else ()


# --- figures --------------------------------------------------------------------------------------


def _of_process(name: str) -> Figure:
    def figure(run: ProfileData, first: ProfileData) -> float | None:
        values: list[Any] = [about.get(name) for about in run.environments]
        return None if not values or None in values else float(sum(values))

    return figure


def _compiling(run: ProfileData, first: ProfileData) -> float | None:
    return sum(f.compile.total for f in run.functions) if run.functions else None


def _for_as_many_calls(
    run: ProfileData, first: ProfileData, of: Callable[[FunctionProfile], float]
) -> float | None:
    """Return a sum over the functions of a run, scaled to as many calls as another run made."""
    pairs = compare.paired(first.functions, run.functions)
    total, is_called = 0.0, False
    for j, f in enumerate(run.functions):
        if f.calls:
            calls = first.functions[pairs[j]].calls if j in pairs else f.calls
            total += of(f) * (calls or f.calls) / f.calls
            is_called = True
    return total if is_called else None


def _outside_applys(run: ProfileData, first: ProfileData) -> float | None:
    """Return the seconds in calls that no Apply took: arguments, VM, updates."""

    def outside(f: FunctionProfile) -> float:
        # a device works beside the host, whose time a call is
        inside = sum(a.total if not a.device else a.asked + a.waited for a in f.applys)
        return max(0.0, (f.call_ns - inside - f.once_ns - f.timing_ns) * 1e-9)

    return _for_as_many_calls(run, first, outside)


def _operations(run: ProfileData, first: ProfileData) -> float | None:
    """Return the floating-point operations of all calls, of the Applys that count them."""
    found = _for_as_many_calls(
        run, first, lambda f: sum(a.count * (a.flops or 0) for a in f.applys)
    )
    return None if found is None else round(found)


def _arrays(run: ProfileData, first: ProfileData) -> float | None:
    peaks = [f.memory.peak for f in run.functions if f.memory]
    return max(peaks) if peaks else None


#: what a run as a whole costs, in the order of tables
COSTS = (
    Cost("command", "whole command", SECONDS, _of_process("seconds_of_process")),
    Cost("import", "importing opwise", SECONDS, _of_process("seconds_importing")),
    Cost("compile", "compiling functions", SECONDS, _compiling),
    Cost("overhead", "calls outside Applys", SECONDS, _outside_applys),
    Cost("memory", "peak memory of the process", BYTES, _of_process("bytes_peak_memory"),
         spread=0.1),
    Cost("arrays", "peak memory of arrays in a call", BYTES, _arrays, is_exact=True),
    Cost("operations", "floating-point operations", NUMBER, _operations, is_exact=True),
)  # fmt: skip


# --- Applys ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """What one Apply does otherwise than before, whatever the clock says."""

    what: str
    before: str
    after: str
    #: work after by work before; None if it is not an amount
    ratio: float | None = None

    def __str__(self) -> str:
        return f"{self.what} {self.before} -> {self.after}"


def changes(row: Difference) -> list[Change]:
    """Return what is known to differ in a row about one Apply on either side; [] for others."""
    if [len(side) for side in row.parts] != [1, 1]:
        return []
    (mine,), (theirs,) = row.parts
    return list(_changes(mine, theirs, row))


def _changes(mine: ApplyProfile, theirs: ApplyProfile, row: Difference) -> Iterator[Change]:
    # for as many calls of the function
    runs = row.scaled.runs if row.scaled else theirs.count
    if mine.count and runs and runs != mine.count:
        yield Change("runs", str(mine.count), str(runs), runs / mine.count)
    shapes = [", ".join(map(_shape, a.output_arrays)) for a in (mine, theirs)]
    if all(shapes) and shapes[0] != shapes[1]:
        sizes = [sum(x.bytes for x in a.output_arrays if x) for a in (mine, theirs)]
        ratio = sizes[1] / sizes[0] if sizes[0] else None
        yield Change("result", shapes[0], shapes[1], ratio)
    if mine.flops and theirs.flops and mine.flops != theirs.flops:
        yield Change("operations a run", f"{mine.flops:,}", f"{theirs.flops:,}",
                     theirs.flops / mine.flops)  # fmt: skip
    places = [a.device or ("C" if a.c else "Python") for a in (mine, theirs)]
    if places[0] != places[1]:
        yield Change("runs in", places[0], places[1])


def _shape(array: ArrayProfile | None) -> str:
    """Return the dtype and shape of an array."""
    return "(no array)" if array is None else f"{array.dtype}{list(array.shape)}"
