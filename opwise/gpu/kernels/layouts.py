"""Walks: the dimensions that a kernel goes through, sorted and joined for all of its arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from opwise.gpu.kernels.kernel import Layout

#: sizes below it are indexed with 32 bits; an index may pass the end by the width of a grid
LIMIT_32 = 2**31 - 2**26


class Walk(NamedTuple):
    """Dimensions, the innermost last, and the steps of several arrays along them."""

    shape: tuple[int, ...]
    #: by dimension, the step of each array in elements
    steps: tuple[tuple[int, ...], ...]
    #: how many arrays there are
    arrays: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def fits_32(self) -> bool:
        """Return whether indices and offsets fit 32 bits."""
        return self.size < LIMIT_32 and all(reach < LIMIT_32 for reach in self._reaches())

    def _reaches(self) -> list[int]:
        """Return the distance from the first element of each array to its farthest, in elements."""
        reaches = [0] * self.arrays
        for n, column in zip(self.shape, self.steps, strict=True):
            for k, step in enumerate(column):
                reaches[k] += max(0, n - 1) * abs(step)
        return reaches

    def inside(self, outer: Walk) -> Walk:
        """Return the Walk that goes through this one at each position of another."""
        return Walk(outer.shape + self.shape, outer.steps + self.steps, self.arrays)

    def padded(self, ndim: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """Return (shape, steps) with dimensions of length 1 added outside, ``ndim`` in all."""
        missing = ndim - len(self.shape)
        nothing = ((0,) * self.arrays,) * missing
        return (1,) * missing + self.shape, nothing + self.steps


def divisor(n: int) -> tuple[int, int]:
    """Return (times, shift) such that (times * i // 2**32 + i) >> shift is i // n for i < 2**31.

    n: 1 to 2**31. Granlund and Montgomery, Division by Invariant Integers using Multiplication
    (1994).
    """
    shift = (n - 1).bit_length()
    return 2**32 * (2**shift - n) // n + 1, shift


def lengths(shape: Sequence[int], wide: bool) -> tuple[int, ...]:
    """Return the numbers for the parameters of ``cudatext.lengths``."""
    rest = [max(1, n) for n in shape[1:]]
    return tuple(rest if wide else (part for n in rest for part in (n, *divisor(n))))


def by_array(steps: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return steps, given by dimension, one array after the other."""
    return tuple(s for column in zip(*steps, strict=True) for s in column)


def steps_of(layout: Layout, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the steps, in elements, of an array along the dimensions of ``shape``.

    The step is 0 along dimensions where the array has length 1: it is broadcast. Raises ValueError
    if a stride is not a multiple of the size of an element.
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


def walk(shape: Sequence[int], steps: Sequence[Sequence[int]], reorder: bool = True) -> Walk:
    """Return the Walk over ``shape`` with as few dimensions as possible.

    It drops dimensions of length 1 and joins dimensions that all arrays go through as one. steps:
    by array, those along each dimension. reorder: put dimensions with large steps outside;
    otherwise all keep their order.
    """
    columns = zip(*steps, strict=True) if steps else [()] * len(shape)
    dims = [(n, column) for n, column in zip(shape, columns, strict=True) if n != 1]
    if reorder:
        dims.sort(key=_step, reverse=True)
    joined: list[tuple[int, tuple[int, ...]]] = []
    for n, column in dims:
        # in any order, a dimension may be joined with any other; else only with the one before
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
    """Return the sum of all arrays' steps along a dimension."""
    return sum(map(abs, dim[1]))


def is_contiguous(layout: Layout) -> bool:
    """Return whether elements lie in C order without gaps."""
    step = layout.itemsize
    for n, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if n == 0:
            return True
        if n != 1 and stride != step:
            return False
        step *= n
    return True
