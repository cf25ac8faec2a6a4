"""Tiles: pieces of two dimensions, for arrays whose dimensions lie in memory in different orders.

Memory is moved in sectors, so adjacent threads should load and store elements of few sectors. This
module counts the sectors, from lengths and steps alone, and picks the order that touches fewer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from opwise.gpu.kernels.layouts import Walk

#: lanes of a warp, and the length of a tile along both of its dimensions
TILE = 32
#: elements from a line of a tile to the next in shared memory, chosen so that the lanes of a warp
#: use different banks along either dimension
PITCH = TILE + 1
#: bytes that memory is moved in
SECTOR = 32
#: the fewest elements of a tile: with fewer, most of its threads would be idle
_LEAST = TILE * TILE // 4


class Tiling(NamedTuple):
    """A Walk whose last two dimensions are cut into tiles.

    Threads store, and load most arrays, along the last dimension.
    """

    walk: Walk
    #: by loaded array, whether threads load it along the last dimension but one, through a tile in
    #: shared memory
    turned: tuple[bool, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """The length of each dimension, of the last two in tiles."""
        *outer, rows, columns = self.walk.shape
        return (*outer, -(-rows // TILE), -(-columns // TILE))

    def places(self, itemsizes: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return (offset of each loaded array's tile in shared memory, bytes of all tiles).

        The offset is -1 for arrays that are not turned.
        """
        places, used = [], 0
        for turned, itemsize in zip(self.turned, itemsizes, strict=False):
            places.append(used if turned else -1)
            used += tile_bytes(itemsize) if turned else 0
        return tuple(places), used


def tile_bytes(itemsize: int) -> int:
    """Return the bytes of a tile in shared memory."""
    return TILE * PITCH * itemsize


def tiling(walk: Walk, itemsizes: Sequence[int], loaded: int, shared: int) -> Tiling | None:
    """Return the Tiling of a Walk, or None unless it saves a fourth of the sectors.

    The first ``loaded`` arrays are loaded, the others stored. shared: bytes of shared memory.
    """
    lines = [d for d, n in enumerate(walk.shape) if n * TILE >= _LEAST]
    if len(lines) < 2:
        return None
    counts = _Counts(walk, itemsizes)
    along = {d: [counts.along(d, k) for k in range(walk.arrays)] for d in lines}
    found = []
    for other, last in itertools.permutations(lines, 2):
        if min(walk.shape[other], TILE) * min(walk.shape[last], TILE) >= _LEAST:
            turned = _turned(along[last][:loaded], along[other], itemsizes, shared)
            touched = sum(along[other if t else last][k] for k, t in enumerate(turned))
            touched += sum(along[last][loaded:])
            found.append((touched, other, last, turned))
    if not found:
        return None
    # of equally good ones: the longest, then the innermost dimensions
    touched, other, last, turned = min(
        found, key=lambda one: (one[0], -walk.shape[one[1]], -one[2], -one[1])
    )
    if not any(turned) or 4 * touched > 3 * counts.plain():
        return None
    order = [d for d in range(len(walk.shape)) if d not in (other, last)] + [other, last]
    shape = tuple(walk.shape[d] for d in order)
    return Tiling(Walk(shape, tuple(walk.steps[d] for d in order), walk.arrays), turned)


def _turned(plain, other, itemsizes, free):
    """Return whether to turn each loaded array: if that halves its sectors and there is memory.

    plain, other: sectors of each array as it is and turned. free: bytes of shared memory.
    """
    turned = []
    for touched, instead, itemsize in zip(plain, other, itemsizes, strict=False):
        turned.append(2 * instead <= touched and tile_bytes(itemsize) <= free)
        free -= tile_bytes(itemsize) if turned[-1] else 0
    return tuple(turned)


class _Counts:
    """Counts the sectors that the warps of a kernel touch over a Walk.

    It assumes that each array begins at the start of a sector.
    """

    def __init__(self, walk, itemsizes):
        self.walk, self.itemsizes = walk, itemsizes

    def along(self, d, k):
        """Return the sectors of array ``k`` if the lanes of warps go along dimension ``d``."""
        n, bytes_ = self.walk.shape[d], self.itemsizes[k]
        step = abs(self.walk.steps[d][k]) * bytes_

        def run(lanes):
            reach = ((lanes - 1) * step + bytes_ - 1) // SECTOR + 1
            return min(lanes, reach) if lanes else 0

        return self.walk.size // n * (n // TILE * run(TILE) + run(n % TILE))

    def plain(self):
        """Return the sectors of all arrays if lanes go through the elements in order.

        Extrapolates from the first warp.
        """
        lanes = min(TILE, self.walk.size)
        sectors = set()
        for lane in range(lanes):
            rest, places = lane, [0] * self.walk.arrays
            dims = zip(reversed(self.walk.shape), reversed(self.walk.steps), strict=True)
            for n, column in dims:
                rest, j = divmod(rest, n)
                places = [p + j * s for p, s in zip(places, column, strict=True)]
                if not rest:
                    break
            for k, (place, bytes_) in enumerate(zip(places, self.itemsizes, strict=True)):
                sectors.add((k, place * bytes_ // SECTOR))
        return len(sectors) * -(-self.walk.size // TILE)
