"""What a run leaves: plain data, kept as JSON and read back as the same."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmark import rows
from benchmark.suite.contenders import BEFORE, PROFILED, SUBJECT, is_peer
from benchmark.suite.limits import Bandwidth, Limits
from benchmark.suite.workload import Least

FORMAT = 1
#: how much of the details of a failure is kept
DETAILS = 1000

OK, WRONG, MISSING, DECLINED = "ok wrong missing declined".split()


@dataclass
class Outcome:
    """What one contender did in one workload; all times in seconds.

    cold, warm: compiling with an empty and with a filled cache: until the first result is there,
        less a later call. None where it was not measured.
    first: the first call, in the process that was timed afterwards.
    samples: seconds a call, one for each round of ``calls`` calls.
    note: what there is to say of a status that is not ``ok``, in one line; details: the last
        ``DETAILS`` characters of all of it.
    """

    contender: str
    status: str = OK
    note: str = ""
    details: str = ""
    cold: float | None = None
    warm: float | None = None
    first: float | None = None
    calls: int = 0
    samples: list[float] = field(default_factory=list)

    def without_defaults(self) -> dict[str, Any]:
        """Return the attributes that are not as those of a new Outcome."""
        new = vars(Outcome(self.contender))
        return {
            name: value for name, value in vars(self).items()
            if name == "contender" or value != new[name]
        }  # fmt: skip

    @property
    def median(self) -> float | None:
        return statistics.median(self.samples) if self.samples else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The first and the last decile."""
        if len(self.samples) < 2:
            return None
        deciles = statistics.quantiles(self.samples, n=10, method="inclusive")
        return deciles[0], deciles[-1]


@dataclass
class Line:
    """One workload: what it is, the least that it takes, and what the contenders took."""

    name: str
    what: str
    dtype: str
    sizes: dict[str, int]
    read: int
    written: int
    flops: int
    limit: float
    bound: str
    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, contender: str) -> Outcome | None:
        return next((each for each in self.outcomes if each.contender == contender), None)

    def median(self, contender: str) -> float | None:
        outcome = self.of(contender)
        return outcome.median if outcome and outcome.status == OK else None

    def best_peer(self) -> Outcome | None:
        timed = [o for o in self.outcomes if is_peer(o.contender) and self.median(o.contender)]
        return min(timed, key=lambda outcome: outcome.median, default=None)

    def profiled(self) -> float | None:
        """What a call takes under PROFILE_MODE, in calls under FAST_RUN."""
        return ratio(self.median(PROFILED), self.median(SUBJECT))

    def to_before(self) -> float | None:
        """What a call takes now, in calls of the other checkout."""
        return ratio(self.median(SUBJECT), self.median(BEFORE))

    def to_best(self) -> float | None:
        best = self.best_peer()
        return ratio(self.median(SUBJECT), best.median if best else None)

    def to_limit(self, contender: str = SUBJECT) -> float | None:
        return ratio(self.median(contender), self.limit)


def ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


@dataclass
class Run:
    """Everything: the machine and the versions, how it was measured, the limits, the lines."""

    machine: dict[str, str]
    settings: dict
    limits: Limits
    lines: list[Line] = field(default_factory=list)

    def limit(self, limits: Limits) -> None:
        """Compare with these limits."""
        self.limits = limits
        for line in self.lines:
            least = Least(line.read, line.written, line.flops)
            line.limit, line.bound = limits.seconds(least, line.dtype)

    def put(self, line: Line) -> None:
        """Take in a line, in the place of the one that stands for its workload if one does."""
        for k, kept in enumerate(self.lines):
            if kept.name == line.name:
                self.lines[k] = line
                return
        self.lines.append(line)

    def write(self, path: Path) -> None:
        """All or nothing: an interrupted run leaves the lines that were finished before."""
        unfinished = path.with_name(path.name + ".part")
        lines = [
            {**vars(line), "outcomes": [each.without_defaults() for each in line.outcomes]}
            for line in self.lines
        ]
        whole = {"format": FORMAT, **asdict(replace(self, lines=[])), "lines": lines}
        unfinished.write_text(rows.text(rows.rounded(whole)) + "\n")
        unfinished.replace(path)

    @classmethod
    def read(cls, path: Path) -> Run:
        kept = json.loads(path.read_text())
        if kept.pop("format", None) != FORMAT:
            raise ValueError(f"{path} is not a result of benchmark.suite in format {FORMAT}")
        limits = kept["limits"]
        limits["memory"] = [Bandwidth(**row) for row in limits["memory"]]
        lines = [
            Line(**{**line, "outcomes": [Outcome(**each) for each in line["outcomes"]]})
            for line in kept["lines"]
        ]
        return cls(kept["machine"], kept["settings"], Limits(**limits), lines)
