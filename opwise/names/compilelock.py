"""``theano.gof.compilelock``: a lock on a folder, for programs that take it themselves.

opwise needs no lock: its cache of kernels is safe without one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from opwise.config import config

_logger = logging.getLogger("theano.gof.compilelock")
hostname = socket.gethostname()
random = Random()
#: seconds after which the lock of a process that does not refresh it counts as left behind, and
#: after which a process refreshes its own
timeout_before_override, refresh_every = 120, 60
#: stands for an argument that was not given
notset = object()

_status = {"use": True}
#: folder -> (how often this process took its lock, its Unlocker)
_held: dict[str, tuple[int, Unlocker]] = {}
#: the folders of the locks taken, the last one last
_taken: list[str] = []


class Unlocker:
    """Releases the lock of a folder."""

    def __init__(self, tmp_dir: str) -> None:
        self.tmp_dir = tmp_dir

    def unlock(self, force: bool = False) -> None:
        """Remove the lock; force: also that of another process."""
        owner = _owner(self.tmp_dir)
        if force or owner in (None, _own_name()):
            shutil.rmtree(self.tmp_dir, ignore_errors=True)


def _own_name() -> str:
    return f"{os.getpid()}_{hostname}"


def _owner(folder: str) -> str | None:
    """Return the process that holds the lock of a folder, or None."""
    try:
        return (Path(folder) / "lock").read_text(encoding="utf-8")
    except OSError:
        return None


def set_lock_status(use_lock: bool) -> None:
    """Say whether ``get_lock`` takes locks at all."""
    _status["use"] = bool(use_lock)


def lock(
    tmp_dir: str, timeout: Any = notset, min_wait: float | None = None,
    max_wait: float | None = None, verbosity: int = 1,
) -> None:  # fmt: skip
    """Take the lock of a folder, which is made; wait for the process that has it.

    timeout: seconds without a refresh after which that process counts as gone (default: 120; None:
    never). min_wait, max_wait: seconds between two attempts (default: 0.05 and 0.2).
    """
    limit = timeout_before_override if timeout is notset else timeout
    least = 0.05 if min_wait is None else min_wait
    most = max(least, 0.2 if max_wait is None else max_wait)
    said = False
    while True:
        try:
            os.makedirs(os.path.dirname(os.path.abspath(tmp_dir)), exist_ok=True)
            os.mkdir(tmp_dir)
            (Path(tmp_dir) / "lock").write_text(_own_name(), encoding="utf-8")
            return
        except FileExistsError:
            pass
        except FileNotFoundError:  # another process removed the folder meanwhile
            continue
        try:
            age = time.time() - os.path.getmtime(tmp_dir)
        except OSError:
            continue
        if limit is not None and age > limit:
            Unlocker(tmp_dir).unlock(force=True)
            continue
        if not said and verbosity:
            _logger.info("Waiting for the lock %s of process %s", tmp_dir, _owner(tmp_dir))
            said = True
        time.sleep(random.uniform(least, most))


def refresh_lock(lock_file: str) -> str:
    """Say that the process still holds the lock, and return its name."""
    Path(lock_file).write_text(_own_name(), encoding="utf-8")
    os.utime(os.path.dirname(os.path.abspath(lock_file)))
    return _own_name()


def _folder(lock_dir: str | None) -> str:
    return str(os.path.join(lock_dir or config.compiledir, "lock_dir"))


def get_lock(lock_dir: str | None = None, **kw: Any) -> None:
    """Take the lock of a folder (default: that of compiled code); the process may have it already.

    kw: arguments of ``lock``. ``release_lock`` releases it.
    """
    folder = _folder(lock_dir)
    count, unlocker = _held.get(folder, (0, Unlocker(folder)))
    if _status["use"] and count == 0:
        lock(folder, **kw)
    _held[folder] = count + 1, unlocker
    _taken.append(folder)


_get_lock = get_lock


def release_lock() -> None:
    """Release the lock that was taken last; it is free once it was released as often as taken."""
    if not _taken:
        raise RuntimeError("release_lock: this process has taken no lock")
    folder = _taken.pop()
    count, unlocker = _held.pop(folder)
    if count > 1:
        _held[folder] = count - 1, unlocker
    elif _status["use"]:
        unlocker.unlock()


@contextlib.contextmanager
def lock_ctx(lock_dir: str | None = None, keep_lock: bool = False, **kw: Any) -> Iterator[None]:
    """Hold the lock of a folder in a ``with`` statement; keep_lock: and after it."""
    get_lock(lock_dir, **kw)
    try:
        yield
    finally:
        if not keep_lock:
            release_lock()


def force_unlock() -> None:
    """Remove the lock of the folder of compiled code, whoever has it."""
    Unlocker(_folder(None)).unlock(force=True)
