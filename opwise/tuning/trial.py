"""The trial: every variant of a function is made, compared with it, and measured beside it."""

from __future__ import annotations

import statistics
from time import perf_counter

import numpy as np

from opwise.compile.executable import Function
from opwise.config import change_flags
from opwise.linkers import resources
from opwise.tuning import difference, measure
from opwise.tuning.candidate import timer as clock
from opwise.tuning.findings import findings
from opwise.tuning.tips import Advice, Finding, Tip, duration
from opwise.tuning.variants import Subject, variants

#: how far results may lie apart, relatively to their size, by the narrowest dtype among them
TOLERANCE = {"float16": 3e-2, "float32": 2e-3, "complex64": 2e-3}
_EXACT = 1e-6


def trial(f, args, kwargs, budget, timer=clock, progress=lambda done, of, text: None, stopped=None):
    """Return the Advice on a call ``f(*args, **kwargs)``.

    budget: seconds. timer: (candidate, calls) -> seconds; tests give another. progress: called with
    (seconds that are gone, budget, what is being tried). stopped: a list; with one, a
    KeyboardInterrupt during the trials ends them, appends True to it, and the Advice on what was
    tried before is returned. Otherwise it is raised.
    """
    if not isinstance(f, Function):
        raise TypeError(
            f"advise takes a compiled function, not {f!r}: make one with opwise.function(...)"
        )
    measure.prepare()
    threads = resources.threads()
    flags = {"tuning.functions": 0, "compute_test_value": "off"}
    try:
        with change_flags(flags):
            return _Trial(f, args, kwargs, budget, timer, progress).run(stopped)
    finally:
        resources.use_threads(threads)


class _Trial:
    def __init__(self, f, args, kwargs, budget, timer, progress):
        self.started = perf_counter()
        self.budget = budget
        self.timer = timer
        self.progress = progress
        self.subject = Subject(f, args, kwargs)
        self.original = self.subject.original
        self.expected = self.original.results()
        self.call = min(timer(self.original, 1) for _ in range(2))
        self.compiling = f.compile_report.total
        self.before = []
        self.findings = []

    def run(self, stopped=None):
        todo, cannot = variants(self.subject, self.call)
        tried: list[Tip] = []
        try:
            self._try(todo, tried)
        except KeyboardInterrupt:
            if stopped is None:
                raise
            stopped.append(True)
            self.findings.append(Finding("not tried", "what was left, since it was interrupted"))
        tips = sorted((t for t in tried if t.verdict == "faster"), key=lambda t: -t.ratio)
        vain = sorted((t for t in tried if t.verdict != "faster"), key=lambda t: -t.ratio)
        self.progress(self.budget, self.budget, "fusion")
        seconds = statistics.median(self.before) if self.before else self.call
        name = str(self.subject.function.name or "function")
        seen = [*findings(self.subject), *cannot, *self.findings]
        return Advice(name, seconds, tuple(tips), tuple(vain), tuple(seen))

    def _try(self, todo, tried):
        """Try some variants as far as the budget goes; their Tips are appended to ``tried``."""
        for k, variant in enumerate(todo):
            self.progress(self.gone, self.budget, variant.title)
            left = self.budget - self.gone
            cost = self.compiling * variant.compiles
            least = 2 * measure.FEWEST * self.call * measure.calls_for(self.call) + cost
            if least > left:
                self._not_tried(
                    variant, f"takes {duration(least)}, more than is left of the budget"
                )
                continue
            tried += self._tried(variant, (left - cost) / (len(todo) - k))

    @property
    def gone(self):
        """Seconds since the start."""
        return perf_counter() - self.started

    def _tried(self, variant, seconds):
        """Return [Tip] of a variant; nothing where it fails."""
        try:
            candidate = variant.make()
            found = candidate.results()
        except Exception as error:  # Ops of the user's may fail in their own ways
            first = (str(error).splitlines() or [""])[0]
            self._not_tried(variant, f"{type(error).__name__}: {first}")
            return []
        beside = self.original if variant.against is None else variant.against
        compared = measure.compare(beside, candidate, seconds, self.call, self.timer)
        if variant.against is None:
            self.before += compared.before
        apart = difference.largest(self.expected, found)
        verdict = compared.verdict
        if apart.relative > _tolerance(self.expected, found):
            verdict = f"{verdict}, but the results differ"
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

    def _not_tried(self, variant, why):
        self.findings.append(Finding("not tried", f"{variant.title}: {why}"))


def _tolerance(*results):
    """Return the largest relative difference that rounding explains."""
    names = {v.dtype.name for some in results for v in some if isinstance(v, np.ndarray)}
    return max((TOLERANCE[name] for name in names & set(TOLERANCE)), default=_EXACT)
