"""The gate: which rows of a difference exceed a limit, and which limits cannot be judged.

A time fails only if a test over several runs says that it grew. If there are too few runs for one,
the spread between processes is unknown, and only what is known without noise can fail: how often an
Apply runs, how large its results are, how many operations it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opwise.profiling import costs, noise
from opwise.profiling.costs import Change, CostRow
from opwise.profiling.noise import Repeated
from opwise.profiling.reports.wording import counted

#: the name in limits of the times of Applys
APPLYS = "applys"
#: everything that a limit can be about
NAMES = (APPLYS, *(cost.name for cost in costs.COSTS))

#: from names of NAMES to the largest ratio that passes
Limits = Mapping[str, float]


#: the costs that only a test over several runs can tell from noise
_TESTED = frozenset(c.name for c in costs.COSTS if not c.is_exact and c.spread is None)


def fewest_runs(limits: Limits) -> int:
    """Return how many runs a side needs, at least, so that what has a limit can be judged."""
    if limits.keys() & _TESTED:
        return noise.needed_runs(sum(not cost.is_exact for cost in costs.COSTS))
    return noise.FEWEST if APPLYS in limits else 1


def is_about_times(limits: Limits) -> bool:
    """Return whether a limit is about times, which only hold for one machine."""
    return APPLYS in limits or bool(limits.keys() & _TESTED)


@dataclass(frozen=True)
class Outcome:
    """What a gate says of a difference."""

    #: rows that take too long
    slow: tuple[Repeated, ...] = ()
    #: rows whose times cannot be judged and that do too much more than before: (row, what)
    work: tuple[tuple[Repeated, Change], ...] = ()
    #: costs of the whole run that are too large
    costs: tuple[CostRow, ...] = ()
    #: sentences about what cannot be judged
    not_judged: tuple[str, ...] = ()
    #: whether a limit cannot be judged at all
    is_undecided: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether something exceeds its limit."""
        return bool(self.slow or self.work or self.costs)

    @property
    def rows(self) -> list[Repeated]:
        """The rows about Applys that fail."""
        return [*self.slow, *(row for row, _ in self.work)]


def judge(
    rows: Sequence[Repeated],
    of_run: Sequence[CostRow],
    limits: Limits,
    floor_ns: float,
    why_unknown: str = "",
) -> Outcome:
    """Return which rows exceed their limits.

    rows: all Applys together, then each. of_run: the costs of whole runs. floor_ns: rows about
    Applys that differ by less in a run do not count. why_unknown: why no time has a verdict, if so.
    """
    slow: list[Repeated] = []
    work: list[tuple[Repeated, Change]] = []
    unknown: list[Repeated] = []
    large: list[CostRow] = []
    said: list[str] = []
    limit = limits.get(APPLYS)
    if limit is not None:
        for r in rows:
            if r.verdict in ("", "noise") and r.p is None:
                found = [c for c in costs.changes(r.row) if c.ratio is not None and c.ratio > limit]
                ns = r.row.theirs.ns / max(1, len(r.theirs)) if r.row.theirs else 0.0
                if found and ns > floor_ns:
                    work.append((r, max(found, key=lambda c: c.ratio or 0)))
            if _exceeds(r, limit, floor_ns):
                if r.verdict == "slower":
                    slow.append(r)
                elif not r.verdict:
                    unknown.append(r)
        if unknown:
            said.append(_unknown(unknown, limit, len(rows) - 1, why_unknown))
        if all(r.p is None for r in rows):
            large += (r for r in of_run if r.cost.name == "operations" and _is_more(r, limit))
    by_name = {r.cost.name: r for r in of_run}
    undecided = False
    for name, most in limits.items():
        row = by_name.get(name)
        if name == APPLYS:
            continue
        if row is None or row.change is None:
            said.append(f"{name} is not judged: {_missing(row)}")
            undecided = True
        elif not row.verdict:
            few = f"it takes at least {fewest_runs(limits)} runs of either side"
            said.append(f"{name} is not judged: {why_unknown or few}")
            undecided = True
        elif _is_more(row, most) and row not in large:
            large.append(row)
    return Outcome(tuple(slow), tuple(work), tuple(large), tuple(said), undecided)


def _exceeds(r: Repeated, limit: float, floor_ns: float) -> bool:
    return (
        r.sure_ratio is not None
        and r.sure_ratio > limit
        and r.row.mine is not None
        and (r.change or 0.0) * r.row.mine.runs / max(1, len(r.mine)) > floor_ns
    )


def _is_more(r: CostRow, limit: float) -> bool:
    if r.sure_ratio is None:  # it was zero before
        return r.verdict == "more"
    return r.sure_ratio > limit and r.verdict in ("slower", "more")


def _missing(row: CostRow | None) -> str:
    """Return why sides of a cost cannot be compared."""
    sides = ["before", "after"]
    if row is not None:
        sides = [n for n, side in zip(sides, (row.mine, row.theirs), strict=True) if not side]
    return f"the profiles {' and '.join(sides)} do not hold it; record them again"


def _unknown(rows: Sequence[Repeated], limit: float, tested: int, why_unknown: str) -> str:
    """Return a sentence about rows that seem too slow, of which too little is known."""
    which = f"{counted(len(rows), 'row')} took more than {limit:g} times as long"
    if why_unknown:
        return f"not judged: {which}, but {why_unknown}"
    needed = noise.needed_runs(tested)
    return f"not judged: {which}, but these runs are too few; {needed} of either side are enough"
