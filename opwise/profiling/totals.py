"""Times of the process as a whole."""

from __future__ import annotations

import time
from contextlib import contextmanager

_imported = [time.perf_counter()]
_grad = [0.0]
_depth = [0]


def since_import():
    """Return the seconds since opwise was imported."""
    return time.perf_counter() - _imported[0]


def grad_seconds():
    """Return the seconds spent building gradients."""
    return _grad[0]


def reset():
    """Begin anew, as if opwise were imported now."""
    _imported[0] = time.perf_counter()
    _grad[0] = 0.0


@contextmanager
def building_gradients():
    """Count the time of a block as spent building gradients; of one within another, once."""
    start = time.perf_counter()
    _depth[0] += 1
    try:
        yield
    finally:
        _depth[0] -= 1
        if not _depth[0]:
            _grad[0] += time.perf_counter() - start
