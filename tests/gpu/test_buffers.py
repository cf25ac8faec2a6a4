"""The plan that puts requested memory into one slab: no overlaps, and little waste."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwise.gpu.runtime import buffers
from opwise.gpu.runtime.buffers import (
    ALIGNMENT,
    PlannedMemory,
    Request,
    RequestRecorder,
    RequestsChanged,
)


class Piece:
    def __init__(self, address):
        self.ptr = address


class Pool:
    """A pool that never reuses memory."""

    def __init__(self):
        self.end = 4096

    def __call__(self, size):
        self.end += size + 7
        return Piece(self.end)


class Held:
    """Memory that a recorder hands out."""

    def __init__(self, address, size, owner):
        self.address, self.size, self.owner = address, size, owner


@st.composite
def lives(draw):
    """Requests with the times that a program of takes and returns would give them."""
    requests, open_ = [], []
    for clock in range(draw(st.integers(1, 60))):
        if open_ and draw(st.booleans()):
            requests[open_.pop(draw(st.integers(0, len(open_) - 1)))].end = clock
        else:
            open_.append(len(requests))
            requests.append(Request(draw(st.sampled_from([0, 1, 500, 512, 4000, 10**6])), clock))
    return requests


def most_at_once(requests):
    """Return the most bytes in use at once: a lower bound for every plan."""
    changes = []
    for request in requests:
        size = -(-request.size // ALIGNMENT) * ALIGNMENT
        changes.append((request.start, size))
        if request.end is not None:
            changes.append((request.end, -size))
    used = np.cumsum([size for _, size in sorted(changes)]) if changes else np.zeros(1)
    return int(used.max())


@settings(max_examples=300, deadline=None)
@given(lives())
def test_a_plan_has_no_overlaps(requests):
    offsets, total = buffers.plan(requests)
    for k, (one, at) in enumerate(zip(requests, offsets, strict=True)):
        assert at % ALIGNMENT == 0 and 0 <= at <= at + one.size <= total
        for other, there in list(zip(requests, offsets, strict=True))[:k]:
            beside = (one.end is None or one.end > other.start) and (
                other.end is None or other.end > one.start
            )
            if beside:
                assert at + one.size <= there or there + other.size <= at
    assert total >= most_at_once(requests)


def test_a_plan_wastes_little():
    """Layers forward and backward, as training asks for them: within a tenth of the least."""
    random, requests, clock, kept = np.random.RandomState(2), [], 0, []
    for _ in range(200):
        requests.append(Request(int(random.randint(1, 10**6)), clock := clock + 1))
        requests.append(Request(int(random.randint(1, 10**6)), clock := clock + 1))
        requests[-1].end = (clock := clock + 1)
        kept.append(requests[-2])
    for forward in reversed(kept):
        requests.append(Request(int(random.randint(1, 10**6)), clock := clock + 1))
        forward.end = (clock := clock + 1)
        requests[-1].end = (clock := clock + 1)
    least = most_at_once(requests)
    assert least <= buffers.plan(requests)[1] <= 1.1 * least


def test_no_requests():
    assert buffers.plan([]) == ([], 0) and most_at_once([]) == 0


def test_a_recorder_records_requests_and_returns():
    recorder = RequestRecorder(Pool(), Held)
    a = recorder.allocate(100)
    b, nothing = recorder.allocate(200), recorder.allocate(0)
    assert recorder.request_at(a.address) == 0 and recorder.request_at(b.address) == 1
    at = a.address
    del a, nothing
    assert recorder.request_at(at) is None
    c = recorder.allocate(300)
    recorder.stop()
    del b
    assert [(r.size, r.start, r.end) for r in recorder.requests] == [
        (100, 1, 4), (200, 2, None), (0, 3, 5), (300, 6, None),
    ]  # fmt: skip
    assert c.size == 300


def test_planned_memory_follows_the_recorded_requests():
    placed = PlannedMemory([Request(5, 1), Request(6, 2)], [512, 1024], Held)
    assert (placed.allocate(5).address, placed.allocate(6).address) == (512, 1024)
    with pytest.raises(RequestsChanged):
        placed.allocate(7)
    with pytest.raises(RequestsChanged, match="request 0 is of 6 bytes"):
        PlannedMemory([Request(5, 1)], [512], Held).allocate(6)
