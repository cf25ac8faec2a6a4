"""How long a program should take: bytes at the level of memory where they lie, work, and calls.

A compiler that fuses whatever it can moves each input once, and each result once; operations that
cannot be fused store theirs. Work and memory overlap. Everything is measured on the hardware by
``opwise.hardware``, except for the nanoseconds of a function, which are those of a good library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.cliffs.programs import OPERATIONS, Program
from opwise.profiling.machinelimits import MachineLimits

#: seconds of a call, of each argument, and of each statement, which may become a step of its own
CALL, ARGUMENT, STEP = 1.0e-6, 0.1e-6, 0.25e-6
#: seconds to wake the other threads, where more than one is used
WAKE = 15e-6
#: how many times the nanoseconds of float64 an element of other dtypes takes
DTYPE_FACTOR = {"float32": 0.5, "float16": 2.0, "complex64": 4.0, "complex128": 4.0}


@dataclass(frozen=True)
class Cost:
    """What a program moves, in bytes, and computes, in seconds of one thread."""

    bytes: float
    work: float
    #: how much it keeps in memory at once
    footprint: float
    steps: int
    arguments: int


def cost(program: Program, values: list[np.ndarray]) -> Cost:
    """Return what a program has to move and compute.

    values: all of its values, leaves first.
    """
    n = len(program.leaves)
    fused = {n + k for k, s in enumerate(program.statements) if OPERATIONS[s.name].fused}
    moved = sum(leaf.lines() * _stored(v) for leaf, v in zip(program.leaves, values, strict=False))
    footprint = moved
    work = 0.0
    for k, s in enumerate(program.statements):
        operation, out = OPERATIONS[s.name], np.asarray(values[n + k])
        operands = [np.asarray(values[a]) for a in s.args]
        largest = max([out, *operands], key=lambda a: a.size)
        factor = DTYPE_FACTOR.get(str(largest.dtype), 1.0)
        work += largest.size * operation.nanoseconds * factor * 1e-9
        if s.name == "dot":
            terms = operands[0].shape[-1] if operands[0].ndim else 1
            work += out.size * terms * 0.15 * factor * 1e-9
        if n + k in program.outs or n + k not in fused:
            footprint += out.nbytes
            moved += out.nbytes
        if n + k not in fused:
            moved += out.size * operation.scattered
            moved += sum(values[a].nbytes for a in s.args if a in fused)
            # its result is read again
            moved += out.nbytes * (n + k not in program.outs)
    return Cost(moved, work, footprint, len(program.statements), n)


def _stored(array: Any) -> int:
    """Return the bytes of memory that an array shows: those of one element if all are the same."""
    array = np.asarray(array)
    return array.itemsize if array.size and not any(array.strides) else array.nbytes


def seconds(spent: Cost, limits: MachineLimits, threads: int = 1) -> float:
    """Return how long a call should take."""
    start = CALL + ARGUMENT * spent.arguments + STEP * spent.steps

    def by(count: int) -> float:
        rate = limits.bandwidth(max(1.0, spent.footprint), count) * 1e9
        return max(spent.bytes / rate, spent.work / count)

    return start + min(by(1), by(threads) + WAKE if threads > 1 else by(1))
