"""Layouts of arrays that a kernel goes through together: their dimensions sorted and joined."""

from __future__ import annotations

import math
from typing import NamedTuple

#: an index of 32 bits may pass the end by the width of a grid
LIMIT_32 = 2**31 - 2**26


class Walk(NamedTuple):
    """Dimensions, the innermost last; steps: by dimension the step of each array, in elements."""

    shape: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    arrays: int

    @property
    def size(self):
        return math.prod(self.shape)

    def fits_32(self):
        """Return whether indices and offsets fit 32 bits."""
        return self.size < LIMIT_32 and all(reach < LIMIT_32 for reach in self._reaches())

    def _reaches(self):
        """Return for each array how far its elements lie from the first at most."""
        reaches = [0] * self.arrays
        for n, column in zip(self.shape, self.steps, strict=True):
            for k, step in enumerate(column):
                reaches[k] += max(0, n - 1) * abs(step)
        return reaches

    def inside(self, outer):
        """Return the Walk of this one for each position of another."""
        return Walk(outer.shape + self.shape, outer.steps + self.steps, self.arrays)

    def padded(self, ndim):
        """Return (shape, steps) with dimensions of length 1 added outside up to ``ndim``."""
        missing = ndim - len(self.shape)
        nothing = ((0,) * self.arrays,) * missing
        return (1,) * missing + self.shape, nothing + self.steps


def divisor(n):
    """Return (times, shift) such that (times * i // 2**32 + i) >> shift is i // n for i < 2**31.

    n: from 1 to 2**31. Granlund and Montgomery, Division by Invariant Integers using Multiplication
    (1994).
    """
    shift = (n - 1).bit_length()
    return 2**32 * (2**shift - n) // n + 1, shift


def lengths(shape, wide):
    """Return the numbers that kernels divide indices by: see ``cudatext.lengths``."""
    rest = [max(1, n) for n in shape[1:]]
    return tuple(rest if wide else (part for n in rest for part in (n, *divisor(n))))


def by_array(steps):
    """Return the steps by dimension in one tuple by array: those of the first array come first."""
    return tuple(s for column in zip(*steps, strict=True) for s in column)


def steps_of(layout, shape):
    """Return the steps, in elements, of an array along the dimensions of ``shape``.

    It stands still along dimensions where it has length 1. ValueError where elements lie a fraction
    of an element apart.
    """
    steps = []
    for n, wanted, stride in zip(layout.shape, shape, layout.strides, strict=True):
        if n == 1 or wanted == 1:
            steps.append(0)
            continue
        if stride % layout.itemsize:
            raise ValueError(
                f"an array's stride of {stride} bytes is no multiple of its elements' "
                f"{layout.itemsize} bytes: copy the array first"
            )
        steps.append(stride // layout.itemsize)
    return tuple(steps)


def walk(shape, steps, reorder=True):
    """Return the Walk over ``shape``: no dimension of length 1, and neighbours joined.

    steps: by array, those along each dimension. reorder: whether dimensions with large steps may be
    put outside; otherwise they keep their order.
    """
    columns = zip(*steps, strict=True) if steps else [()] * len(shape)
    dims = [(n, column) for n, column in zip(shape, columns, strict=True) if n != 1]
    if reorder:
        dims.sort(key=_step, reverse=True)
    joined: list[tuple[int, tuple[int, ...]]] = []
    for n, column in dims:
        # where they may be reordered, a dimension finds its neighbour wherever that is
        for at in range(0 if reorder else max(0, len(joined) - 1), len(joined)):
            outer, across = joined[at]
            if all(a == n * s for a, s in zip(across, column, strict=True)):
                joined[at] = (outer * n, column)
                break
        else:
            joined.append((n, column))
    if reorder:
        joined.sort(key=_step, reverse=True)
    return Walk(tuple(n for n, _ in joined), tuple(column for _, column in joined), len(steps))


def _step(dim):
    """Return how far all arrays together step along a dimension."""
    return sum(map(abs, dim[1]))


def is_contiguous(layout):
    """Return whether elements lie in C order without gaps."""
    step = layout.itemsize
    for n, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if n == 0:
            return True
        if n != 1 and stride != step:
            return False
        step *= n
    return True
