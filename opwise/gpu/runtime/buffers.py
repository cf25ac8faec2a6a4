"""The memory of a capture region: its requests, recorded, and a plan that puts all in one slab.

Nothing here needs a device: an address is a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: addresses are multiples of it, as those of CuPy's pool
ALIGNMENT = 512

#: (address, bytes, owner) -> memory that keeps its owner alive
Within = Callable[[int, int, Any], Any]


@dataclass
class Request:
    """Memory that was requested. The clock ticks with each request and each return of memory."""

    #: bytes
    size: int
    #: tick of the request
    start: int
    #: tick of the return; None if the memory was in use to the last
    end: int | None = None


class RequestRecorder:
    """Hands out memory of a pool and records when each piece was in use."""

    def __init__(self, pool: Callable[[int], Any], within: Within) -> None:
        """pool: from bytes to a piece of memory with its address as ``ptr``."""
        self.requests: list[Request] = []
        self._pool, self._within = pool, within
        self._clock = 0
        #: by address, the position of the request that uses it
        self._in_use: dict[int, int] = {}
        self.recording = True

    def allocate(self, size: int) -> Any:
        """Return memory of ``size`` bytes."""
        piece = self._pool(size)
        k = len(self.requests)
        self.requests.append(Request(size, self._tick()))
        if size:
            self._in_use[piece.ptr] = k
        return self._within(piece.ptr, size, _PoolOwner(piece, self, k))

    def stop(self) -> None:
        """Stop recording: memory in use now counts as in use to the last."""
        self.recording = False

    def request_at(self, address: int) -> int | None:
        """Return the position of the request that uses an address, or None."""
        return self._in_use.get(address)

    def returned(self, k: int, address: int) -> None:
        """Record that the memory of request ``k`` was returned."""
        if self.recording:
            self.requests[k].end = self._tick()
            self._in_use.pop(address, None)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


class _PoolOwner:
    """Keeps a piece of the pool while it is in use, and then reports its return."""

    def __init__(self, piece: Any, recorder: RequestRecorder, k: int) -> None:
        self._piece, self._recorder, self._k = piece, recorder, k

    def __del__(self) -> None:
        self._recorder.returned(self._k, self._piece.ptr)


def plan(requests: Sequence[Request]) -> tuple[list[int], int]:
    """Return (offset of each request in a slab, bytes of the slab).

    Requests that are in use at the same time do not overlap. The largest is placed first, each at
    the lowest offset that is free while it is in use: Pisarchyk and Lee, Efficient Memory
    Management for Deep Neural Net Inference (2020).
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
        offset = _lowest_gap(froms[:placed][beside], tos[:placed][beside], sizes[k])
        starts[placed], ends[placed] = start, end
        froms[placed], tos[placed] = offset, offset + sizes[k]
        offsets[k] = offset
        total = max(total, offset + sizes[k])
    return offsets, total


def _lowest_gap(froms: np.ndarray, tos: np.ndarray, size: int) -> int:
    """Return the lowest offset with ``size`` free bytes. froms, tos: the pieces in use."""
    if not size or not len(froms):
        return 0
    order = np.argsort(froms, kind="stable")
    froms, tos = froms[order], np.maximum.accumulate(tos[order])
    before = np.concatenate(([0], tos))  # where each gap begins
    gaps = np.concatenate((froms, [np.iinfo(np.int64).max])) - before
    return int(before[np.argmax(gaps >= size)])


class RequestsChanged(Exception):
    """A capture requests other memory than was recorded."""


class PlannedMemory:
    """Hands out the memory of a plan to requests that come as they were recorded."""

    def __init__(
        self, requests: Sequence[Request], addresses: Sequence[int], within: Within
    ) -> None:
        """addresses: that of each request."""
        self._requests, self._addresses, self._within = requests, addresses, within
        self._next = 0

    def allocate(self, size: int) -> Any:
        """Return the memory of the next request; raise RequestsChanged if its size is another."""
        k = self._next
        if k >= len(self._requests) or self._requests[k].size != size:
            raise RequestsChanged(f"request {k} is of {size} bytes")
        self._next += 1
        return self._within(self._addresses[k], size, None)

    def end(self) -> None:
        """Raise RequestsChanged unless all recorded requests have come."""
        if self._next < len(self._requests):
            raise RequestsChanged(f"{len(self._requests) - self._next} requests less")
