"""Tiles: pieces of two dimensions, for arrays that do not lie in memory in the same order.

What threads beside each other load or store should lie in few sectors, the pieces that memory is
moved in. Which way fewer are touched is counted here, from lengths and steps alone.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from opwise.gpu.layouts import Walk

#: lanes of a warp, and the length of a tile along both of its dimensions
TILE = 32
#: elements from a line of a tile to the next in shared memory: lanes along either dimension lie in
#: different banks
PITCH = TILE + 1
#: bytes that memory is moved in
SECTOR = 32
#: a tile has so many elements at least, lest most of its threads have nothing to do
_LEAST = TILE * TILE // 4


class Tiling(NamedTuple):
    """A Walk whose last two dimensions are cut into tiles.

    Stores, and loads of most arrays, go along the last dimension. turned: by array that is loaded,
    whether it is loaded along the last but one, through a tile in shared memory.
    """

    walk: Walk
    turned: tuple[bool, ...]

    @property
    def counts(self):
        """How many positions, or for the last two dimensions tiles, there are."""
        *outer, rows, columns = self.walk.shape
        return (*outer, -(-rows // TILE), -(-columns // TILE))

    def places(self, itemsizes):
        """Return (where the tile of each loaded array starts or -1, bytes of all tiles)."""
        places, used = [], 0
        for turned, itemsize in zip(self.turned, itemsizes, strict=False):
            places.append(used if turned else -1)
            used += tile_bytes(itemsize) if turned else 0
        return tuple(places), used


def tile_bytes(itemsize):
    """Return the bytes of a tile in shared memory."""
    return TILE * PITCH * itemsize


def tiling(walk, itemsizes, loaded, shared):
    """Return the Tiling of a Walk, or None where that does not save a fourth of the sectors.

    itemsizes: of the arrays, of which the first ``loaded`` are loaded and the others stored;
    shared: bytes of shared memory that there are.
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
    # of those that touch as little: the longest, then the innermost dimensions
    touched, other, last, turned = min(
        found, key=lambda one: (one[0], -walk.shape[one[1]], -one[2], -one[1])
    )
    if not any(turned) or 4 * touched > 3 * counts.plain():
        return None
    order = [d for d in range(len(walk.shape)) if d not in (other, last)] + [other, last]
    shape = tuple(walk.shape[d] for d in order)
    return Tiling(Walk(shape, tuple(walk.steps[d] for d in order), walk.arrays), turned)


def _turned(plain, other, itemsizes, free):
    """Return whether each loaded array is turned: where that halves its sectors, as long as there
    is shared memory."""
    turned = []
    for touched, instead, itemsize in zip(plain, other, itemsizes, strict=False):
        turned.append(2 * instead <= touched and tile_bytes(itemsize) <= free)
        free -= tile_bytes(itemsize) if turned[-1] else 0
    return tuple(turned)


class _Counts:
    """Counts the sectors that the warps of a kernel touch over a Walk.

    Arrays are taken to begin with a sector.
    """

    def __init__(self, walk, itemsizes):
        self.walk, self.itemsizes = walk, itemsizes

    def along(self, d, k):
        """Return how many an array touches where the lanes of warps go along one dimension."""
        n, bytes_ = self.walk.shape[d], self.itemsizes[k]
        step = abs(self.walk.steps[d][k]) * bytes_

        def run(lanes):
            reach = ((lanes - 1) * step + bytes_ - 1) // SECTOR + 1
            return min(lanes, reach) if lanes else 0

        return self.walk.size // n * (n // TILE * run(TILE) + run(n % TILE))

    def plain(self):
        """Return how many all arrays touch where lanes go from element to element in order; that
        is counted for the first warp."""
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
