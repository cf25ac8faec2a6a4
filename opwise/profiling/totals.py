"""Times of the process as a whole."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

_imported = [time.perf_counter()]
_importing = [0.0]
_grad = [0.0]
_depth = [0]


def since_import():
    """Return the seconds since opwise was imported."""
    return time.perf_counter() - _imported[0]


def note_import(start):
    """Note that the import of opwise, which began at ``start`` by ``perf_counter``, has ended."""
    _importing[0] = time.perf_counter() - start


def importing():
    """Return the seconds that the import of opwise took; 0.0 in a forked process."""
    return _importing[0]


def of_process():
    """Return what the system knows of the process, {} where it does not tell.

    seconds_of_process: since it started. seconds_running, seconds_waiting: how long its main thread
    ran, and waited for a processor that others had.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        with open(f"/proc/self/task/{os.getpid()}/schedstat", "rb") as file:
            running, waiting = (int(ns) * 1e-9 for ns in file.read().split()[:2])
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):  # no Linux, or one that hides it
        return {}
    return {
        "seconds_of_process": round(max(0.0, now - started), 3),
        "seconds_running": round(running, 6),
        "seconds_waiting": round(waiting, 6),
    }


def grad_seconds():
    """Return the seconds spent building gradients."""
    return _grad[0]


def reset():
    """Begin anew, as if opwise were imported now."""
    _imported[0] = time.perf_counter()
    _grad[0] = _importing[0] = 0.0


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
