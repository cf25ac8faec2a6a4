"""Buffers: what a stretch of Applys asks of memory, recorded, and a plan for one piece of it all.

Nothing here needs a device: an address is a number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: addresses are multiples of it, as those of CuPy's pool
ALIGNMENT = 512


@dataclass
class Request:
    """Memory that was asked for.

    start, end: when it was asked for and given back, counted by requests and returns; end is None
    where it was in use to the last.
    """

    size: int
    start: int
    end: int | None = None


class Recorder:
    """Hands out memory of a pool and notes who has which part of it when.

    pool: a function from bytes to what a holder keeps, with the address as ``ptr``. within: a
    function (address, bytes, owner) to what is handed out, which keeps its owner.
    """

    def __init__(self, pool, within):
        self.requests: list[Request] = []
        self._pool, self._within = pool, within
        self._clock = 0
        self._held: dict[int, int] = {}
        self.recording = True

    def allocate(self, size):
        """Return memory of so many bytes."""
        piece = self._pool(size)
        k = len(self.requests)
        self.requests.append(Request(size, self._tick()))
        if size:
            self._held[piece.ptr] = k
        return self._within(piece.ptr, size, _Owner(piece, self, k))

    def stop(self):
        """Note nothing from now on: what is in use stays so."""
        self.recording = False

    def request_at(self, address):
        """Return the number of the request that is in use at an address, or None."""
        return self._held.get(address)

    def returned(self, k, address):
        """Note that a request's memory was given back."""
        if self.recording:
            self.requests[k].end = self._tick()
            self._held.pop(address, None)

    def _tick(self):
        self._clock += 1
        return self._clock


class _Owner:
    """Keeps memory of the pool as long as somebody uses it."""

    def __init__(self, piece, recorder, k):
        self._piece, self._recorder, self._k = piece, recorder, k

    def __del__(self):
        self._recorder.returned(self._k, self._piece.ptr)


def plan(requests):
    """Return (offsets of the requests, bytes of the whole).

    Requests that are in use at the same time do not overlap. The largest is placed first, each at
    the lowest place that is free while it is in use: Pisarchyk and Lee, Efficient Memory Management
    for Deep Neural Net Inference (2020).
    """
    n = len(requests)
    sizes = [-(-request.size // ALIGNMENT) * ALIGNMENT for request in requests]
    order = sorted(range(n), key=lambda k: (-sizes[k], k))
    starts, ends, froms, tos = (np.zeros(n, np.int64) for _ in range(4))
    offsets, total = [0] * n, 0
    for placed, k in enumerate(order):
        start, end = requests[k].start, requests[k].end
        end = np.iinfo(np.int64).max if end is None else end
        beside = (starts[:placed] < end) & (ends[:placed] > start)
        offset = _lowest(froms[:placed][beside], tos[:placed][beside], sizes[k])
        starts[placed], ends[placed] = start, end
        froms[placed], tos[placed] = offset, offset + sizes[k]
        offsets[k] = offset
        total = max(total, offset + sizes[k])
    return offsets, total


def _lowest(froms, tos, size):
    """Return the lowest offset where ``size`` bytes are free beside pieces."""
    if not size or not len(froms):
        return 0
    order = np.argsort(froms, kind="stable")
    froms, tos = froms[order], np.maximum.accumulate(tos[order])
    before = np.concatenate(([0], tos))  # where each gap begins
    gaps = np.concatenate((froms, [np.iinfo(np.int64).max])) - before
    return int(before[np.argmax(gaps >= size)])


def most_at_once(requests):
    """Return the most bytes that were in use at once: no plan needs less."""
    changes = []
    for request in requests:
        size = -(-request.size // ALIGNMENT) * ALIGNMENT
        changes.append((request.start, size))
        if request.end is not None:
            changes.append((request.end, -size))
    used = np.cumsum([size for _, size in sorted(changes)]) if changes else np.zeros(1)
    return int(used.max())


class Changed(Exception):
    """What is asked for is not what was recorded."""


class Placed:
    """Hands out memory as a plan says to those who ask as they were recorded.

    addresses: of the requests. Raises Changed where something else is asked for.
    """

    def __init__(self, requests, addresses, within):
        self._requests, self._addresses, self._within = requests, addresses, within
        self._next = 0

    def allocate(self, size):
        """Return the memory of the next request."""
        k = self._next
        if k >= len(self._requests) or self._requests[k].size != size:
            raise Changed(f"request {k} is of {size} bytes")
        self._next += 1
        return self._within(self._addresses[k], size, None)

    def end(self):
        """Raise Changed unless all that was recorded was asked for."""
        if self._next < len(self._requests):
            raise Changed(f"{len(self._requests) - self._next} requests less")
