"""The process as a whole: its times, its garbage collection, and messages to what started it."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

# --- times ----------------------------------------------------------------------------------------


@dataclass
class _Times:
    """Times of this process, in seconds."""

    #: when opwise was imported, by ``perf_counter``
    imported: float = field(default_factory=time.perf_counter)
    #: what importing it took
    importing: float = 0.0
    #: what building gradients took
    grad: float = 0.0


_times = _Times()
#: whether this thread is building gradients
_building: ContextVar[bool] = ContextVar("opwise_building_gradients", default=False)


def since_import() -> float:
    """Return the seconds since opwise was imported."""
    return time.perf_counter() - _times.imported


def note_import(start: float) -> None:
    """Note that the import of opwise, which began at ``start`` by ``perf_counter``, has ended."""
    _times.importing = time.perf_counter() - start


def importing() -> float:
    """Return the seconds that importing opwise took; 0.0 in a forked process."""
    return _times.importing


def system_times() -> dict[str, float]:
    """Return what Linux knows of the process, in seconds; {} on other systems.

    seconds_of_process: since it started. seconds_running, seconds_waiting: how long its main thread
    ran, and waited for a processor that was busy.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        with open(f"/proc/self/task/{os.getpid()}/schedstat", "rb") as file:
            running, waiting = (int(ns) * 1e-9 for ns in file.read().split()[:2])
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):  # no Linux, or a restricted /proc
        return {}
    return {
        "seconds_of_process": round(max(0.0, now - started), 3),
        "seconds_running": round(running, 6),
        "seconds_waiting": round(waiting, 6),
    }


def peak_memory() -> int | None:
    """Return the most bytes of this process that were in memory at once; None if unknown."""
    try:
        # ru_maxrss of Linux begins with that of the process that started this one
        with open("/proc/self/status", "rb") as file:
            lines = [line.split() for line in file if line.startswith(b"VmHWM:")]
        return int(lines[0][1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource  # Windows has none
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def start_time(process: int) -> str:
    """Return when a process started, as text that no later process of its number has.

    "" where the system does not say it.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def worker_name() -> str | None:
    """Return the name of this process if multiprocessing started it for another one, else None."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return None
    return str(process.current_process().name)


def is_first(owner: str) -> bool:
    """Return whether this is the process of the program that asked first.

    owner: the environment variable that tells the processes that it starts. A worker that
    multiprocessing started is not the first one, even if its parent has not asked yet.
    """
    own = str(os.getpid())
    return worker_name() is None and os.environ.setdefault(owner, own) == own


def grad_seconds() -> float:
    """Return the seconds spent building gradients."""
    return _times.grad


def reset_times() -> None:
    """Begin anew, as if opwise were imported now."""
    _times.imported = time.perf_counter()
    _times.importing = _times.grad = 0.0


@contextmanager
def building_gradients() -> Iterator[None]:
    """Count the time of a block as spent building gradients; nested blocks count once."""
    if _building.get():
        yield
        return
    start = time.perf_counter()
    token = _building.set(True)
    try:
        yield
    finally:
        _building.reset(token)
        _times.grad += time.perf_counter() - start


# --- garbage collection ---------------------------------------------------------------------------


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection while building long-lived data.

    The collector would walk through all graphs of the process again and again, which would take
    most of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# --- messages to the command that started the process ---------------------------------------------

#: environment variable that names the pipe of the command ``opwise``: its number in the process,
#: and its inode
_PIPE = "OPWISE_STATUS_PIPE"
#: most letters of a value: a few messages fit into what a pipe takes at once
_MOST = 200


def status_environment(pipe: int) -> dict[str, str]:
    """Return the environment variables for a process that inherits the end of a status pipe."""
    return {_PIPE: f"{pipe}:{os.fstat(pipe).st_ino}"}


def has_status_pipe() -> bool:
    """Return whether a command started this process and waits for its messages."""
    return _PIPE in os.environ


def send_status(**message: str) -> None:
    """Send a message to the command that started this process; does nothing without one."""
    number, _, inode = os.environ.get(_PIPE, "").partition(":")
    try:
        pipe = int(number)
        # the number may by now be that of another file, as in a process without that pipe
        if os.fstat(pipe).st_ino != int(inode):
            return
        import json  # not needed without a pipe

        short = {name: value[:_MOST] for name, value in message.items()}
        os.write(pipe, json.dumps({"process": os.getpid(), **short}).encode() + b"\n")
    except (ValueError, OSError):
        return
