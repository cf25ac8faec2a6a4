"""Measures programs, makes slow ones smaller, and compares neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from benchmark.cliffs import model
from benchmark.cliffs.programs import Program
from opwise.profiling.machinelimits import MachineLimits

#: seconds that each contender of a program is measured, and of one sample
DURATION, SAMPLE = 0.03, 0.001
#: how many times its limit a program may take
ALLOWED = 2.0


@dataclass(frozen=True)
class Timing:
    """Seconds of a call of a program: in opwise, in numpy, and by the model."""

    opwise: float
    numpy: float
    model: float

    @property
    def over_model(self) -> float:
        return self.opwise / self.model

    @property
    def over_numpy(self) -> float:
        return self.opwise / self.numpy

    @property
    def is_slow(self) -> bool:
        """Whether a program takes longer than twice its model, or than numpy."""
        return self.over_model > ALLOWED or self.over_numpy > 1.0

    @property
    def excess(self) -> float:
        """How many times too long a program takes; at most 1 if it does not."""
        return max(self.over_model / ALLOWED, self.over_numpy)


class WrongResultError(Exception):
    """opwise and numpy give different results."""


def agree(ours: list[Any], theirs: list[Any], dtypes: set[str]) -> bool:
    """Return whether results are equal but for rounding.

    Where numpy's is NaN, ours may be a number: rewrites cancel x / x.
    """
    few = dtypes & {"float32", "float16", "complex64"}
    rtol = 3e-2 if "float16" in dtypes else 2e-3 if few else 1e-7
    for a, b in zip(ours, theirs, strict=True):
        if np.shape(a) != np.shape(b):
            return False
        a, b = (np.asarray(x).astype("complex128") for x in (a, b))
        a, b = a[~np.isnan(b)], b[~np.isnan(b)]
        scale = np.nanmax(np.abs(b[np.isfinite(b)]), initial=1.0) if b.size else 1.0
        if not np.allclose(a, b, rtol=rtol, atol=rtol * scale):
            return False
    return True


def measure(
    program: Program, limits: MachineLimits, threads: int = 1, duration: float = DURATION
) -> Timing:
    """Return the Timing of a program, both contenders in turn, the shortest samples of each.

    Raises WrongResultError if results differ.
    """
    arrays = program.arrays()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values = [np.asarray(v) for v in program.numeric_values(arrays)]
        ours, theirs = program.compiled(arrays), program.numeric(arrays)
        if not program.update:
            results = ours()
            results = results if isinstance(results, list) else [results]
            dtypes = {str(v.dtype) for v in values}
            if not agree(results, [values[o] for o in program.outs], dtypes):
                raise WrongResultError(str(program))
        least = [float("inf")] * 2
        spent, calls = [0.0, 0.0], [1, 1]
        while min(spent) < duration:
            for k, run in enumerate((ours, theirs)):
                start = perf_counter()
                for _ in range(calls[k]):
                    run()
                taken = perf_counter() - start
                spent[k] += taken
                least[k] = min(least[k], taken / calls[k])
                if taken < SAMPLE:
                    calls[k] = max(calls[k] + 1, int(SAMPLE / max(least[k], 1e-8)))
    expected = model.seconds(model.cost(program, values), limits, threads)
    return Timing(*least, expected)


def smaller(program: Program) -> Iterator[Program]:
    """Yield programs that are simpler than one, the simplest first."""
    n = len(program.leaves)
    if len(program.outs) > 1:
        for out in program.outs:
            yield replace(program, outs=(out,)).only_used()
    for k in reversed(range(len(program.statements))):
        for arg in program.statements[k].args:
            yield without(program, n + k, arg).only_used()
    for k, leaf in enumerate(program.leaves):
        if leaf.layout != "plain":
            changed = replace(leaf, layout="plain")
            yield replace(program, leaves=(*program.leaves[:k], changed, *program.leaves[k + 1 :]))


def without(program: Program, value: int, instead: int) -> Program:
    """Return a program in which another value takes the place of one."""

    def number(a: int) -> int:
        return instead if a == value else a

    return replace(
        program,
        statements=tuple(replace(s, args=tuple(map(number, s.args))) for s in program.statements),
        outs=tuple(dict.fromkeys(map(number, program.outs))),
    )


def shrink(
    program: Program, timing: Timing, limits: MachineLimits, threads: int = 1, attempts: int = 20
) -> tuple[Program, Timing]:
    """Return the simplest program found that is about as much too slow, and its Timing."""
    progress = True
    while progress and attempts > 0:
        progress = False
        for candidate in smaller(program):
            if not candidate.is_comparable():
                continue
            attempts -= 1
            try:
                found = measure(candidate, limits, threads)
            except Exception:  # it is not a program: an operand has another rank or dtype
                continue
            if found.is_slow and found.excess > 0.8 * timing.excess:
                program, timing, progress = candidate, found, True
                break
            if attempts <= 0:
                break
    return program, timing


def jump(first: Timing, second: Timing) -> float:
    """Return how much more the time of one of two programs changes than its model does."""
    ratio = (second.opwise / first.opwise) / (second.model / first.model)
    return max(ratio, 1 / ratio)
