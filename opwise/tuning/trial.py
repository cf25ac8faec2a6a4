"""The trial: makes every variant of a function, compares its results, and measures it."""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

import numpy as np

from opwise.compile.executable import Function
from opwise.config import change_flags
from opwise.linkers import resources
from opwise.tuning import difference, measure
from opwise.tuning.candidate import timer as clock
from opwise.tuning.findings import findings
from opwise.tuning.measure import Timer
from opwise.tuning.progress import Progress
from opwise.tuning.tips import Advice, Finding, Tip, duration
from opwise.tuning.variants import Subject, Variant, variants

#: the largest relative difference that rounding explains, by the narrowest dtype of the results
TOLERANCE = {"float16": 3e-2, "float32": 2e-3, "complex64": 2e-3}
_DEFAULT_TOLERANCE = 1e-6


def trial(
    f: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    budget: float,
    timer: Timer = clock,
    progress: Progress = lambda done, of, text: None,
    stopped: list[bool] | None = None,
) -> Advice:
    """Return the Advice on a call ``f(*args, **kwargs)``.

    budget: seconds. timer: (candidate, calls) -> seconds; tests give another. stopped: a list. If
    it is given, Ctrl-C ends the trials and appends True to it, and the Advice covers what was
    tried before; otherwise Ctrl-C raises KeyboardInterrupt.
    """
    if not isinstance(f, Function):
        raise TypeError(
            f"advise takes a compiled function, not {f!r}: make one with opwise.function(...)"
        )
    measure.prepare()
    threads = resources.threads()
    flags = {"tuning.functions": 0, "compute_test_value": "off", "background_compilation": False}
    try:
        with change_flags(flags):
            return _Trial(f, args, kwargs, budget, timer, progress).run(stopped)
    finally:
        resources.use_threads(threads)


#: at most how many results that differ are named
_SHOWN = 3


class _Trial:
    """The trial of one call of a function."""

    def __init__(
        self,
        f: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        budget: float,
        timer: Timer,
        progress: Progress,
    ) -> None:
        self.started = perf_counter()
        self.budget = budget
        self.timer = timer
        self.progress = progress
        self.subject = Subject(f, args, kwargs)
        self.original = self.subject.original
        self.expected = self.original.results()
        #: seconds of one call of the original
        self.call = min(timer(self.original, 1) for _ in range(2))
        self.compiling = f.compile_report.total
        self.before: list[float] = []
        self.findings: list[Finding] = []

    def run(self, stopped: list[bool] | None = None) -> Advice:
        todo, cannot = variants(self.subject, self.call)
        tried: list[Tip] = []
        try:
            self._try(todo, tried)
        except KeyboardInterrupt:
            if stopped is None:
                raise
            stopped.append(True)
            self.findings.append(
                Finding("not tried", "the remaining changes: interrupted by Ctrl-C")
            )
        tips = sorted((t for t in tried if t.verdict == "faster"), key=lambda t: -t.ratio)
        vain = sorted((t for t in tried if t.verdict != "faster"), key=lambda t: -t.ratio)
        self.progress(self.budget, self.budget, "fusion")
        seconds = statistics.median(self.before) if self.before else self.call
        name = str(self.subject.function.name or "function")
        seen = [*findings(self.subject), *cannot, *self.findings]
        return Advice(name, seconds, tuple(tips), tuple(vain), tuple(seen))

    def _try(self, todo: list[Variant], tried: list[Tip]) -> None:
        """Try variants as long as the budget lasts, and append their Tips to ``tried``."""
        for k, variant in enumerate(todo):
            self.progress(self.gone, self.budget, variant.title)
            left = self.budget - self.gone
            cost = self.compiling * variant.compiles
            least = 2 * measure.FEWEST * self.call * measure.calls_for(self.call) + cost
            if least > left:
                self._not_tried(
                    variant, f"needs {duration(least)}, more than is left of the budget"
                )
                continue
            tried += self._tried(variant, (left - cost) / (len(todo) - k))

    @property
    def gone(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.started

    def _tried(self, variant: Variant, seconds: float) -> list[Tip]:
        """Return a list with the Tip of a variant; an empty list if the variant fails."""
        try:
            candidate = variant.make()
            found = candidate.results()
        except Exception as error:  # the user's Ops may raise anything
            first = (str(error).splitlines() or [""])[0]
            self._not_tried(variant, f"{type(error).__name__}: {first}")
            return []
        beside = self.original if variant.against is None else variant.against
        compared = measure.compare(beside, candidate, seconds, self.call, self.timer)
        if variant.against is None:
            self.before += compared.before
        apart = difference.largest(self.expected, found, self.original.types)
        verdict = compared.verdict
        if differing := self._differing(found):
            verdict = f"{verdict}, but {differing}"
        tip = Tip(
            variant.title,
            "; ".join(filter(None, [variant.do, candidate.note])),
            statistics.median(compared.before),
            statistics.median(compared.after),
            len(compared.before),
            compared.p,
            *apart,
            verdict,
        )
        return [tip]

    def _differing(self, found: list[Any]) -> str:
        """Return which results of a variant differ, and by how much; "" if rounding explains it."""
        tolerance = _tolerance(self.expected, found)
        differing = [
            f"{name} {how}"
            for name, kind, a, b in zip(
                self.original.names, self.original.types, self.expected, found, strict=True
            )
            if (how := difference.explained(a, b, tolerance, kind)) is not None
        ]
        rest = len(differing) - _SHOWN
        more = ["1 more result differs" if rest == 1 else f"{rest} more results differ"] * (
            rest > 0
        )
        return "; ".join([*differing[:_SHOWN], *more])

    def _not_tried(self, variant: Variant, why: str) -> None:
        self.findings.append(Finding("not tried", f"{variant.title}: {why}"))


def _tolerance(*results: list[Any]) -> float:
    """Return the largest relative difference that rounding explains."""
    names = {v.dtype.name for some in results for v in some if isinstance(v, np.ndarray)}
    return max((TOLERANCE[name] for name in names & set(TOLERANCE)), default=_DEFAULT_TOLERANCE)
