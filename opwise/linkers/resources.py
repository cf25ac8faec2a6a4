"""What kernels may use: threads, and memory that is kept for later results."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

from opwise.config import config
from opwise.linkers import blasthreads, opwise_c

_GIB = 1 << 30


def obey_flags() -> None:
    """Apply the flags ``threads`` and ``recycle_bytes`` to kernels and BLAS."""
    use_threads(_threads_by_flags())
    asked = config.recycle_bytes
    opwise_c.keep_at_most(_kept_by_default() if asked < 0 else asked)


def use_threads(number: int) -> None:
    """Let kernels use so many threads.

    BLAS gets the same limit if the flag ``threads`` is set, or if ``number`` is not the default.
    """
    opwise_c.set_threads(number)
    is_usual = number == _threads_by_flags()
    blasthreads.bind((config.threads or None) if is_usual else number)


def strip_bytes() -> int:
    """Return how many bytes of results that nothing else reads one thread computes at once."""
    asked = int(config.strip_bytes)
    return _half_of_cache() if asked < 0 else asked


@cache
def _half_of_cache() -> int:
    """Return half of the bytes of a core's second-level cache, 1 MiB if they are not known."""
    found = opwise_c.second_level_cache()
    return found // 2 if found >= 1 << 18 else 1 << 20


def threads() -> int:
    """Return how many threads kernels may use."""
    return opwise_c.threads()


def _threads_by_flags() -> int:
    asked = int(config.threads)
    if asked:
        return asked
    return processors() if _omp_threads() or not is_worker() else 1


def is_worker() -> bool:
    """Return whether multiprocessing, or a library built on it, has started this process."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None:
        return False
    # a worker that was not forked reads what it works on before it knows its parent
    starting = getattr(processes.current_process(), "_inheriting", False)
    return starting or processes.parent_process() is not None


def parallelism() -> dict[str, Any]:
    """Return what a profile says about threads: those of kernels and those of BLAS."""
    return {"threads": opwise_c.threads(), **blasthreads.describe()}


@cache
def processors() -> int:
    """Return OMP_NUM_THREADS, or how many processors this process may run on."""
    return _omp_threads() or available()


def _omp_threads() -> int:
    """Return OMP_NUM_THREADS, or 0 if it is not set to a number."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(given) if given.isdigit() else 0


def available() -> int:
    """Return how many processors this process may run on, whatever OMP_NUM_THREADS says."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _kept_by_default() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _GIB // 4
    return min(_GIB, memory // 8)


# --- workers that are forked ----------------------------------------------------------------------
# They have functions that were linked in their parent, which used all processors.


def _before_fork() -> None:
    """Have multiprocessing call ``_as_worker`` in its child, if it is what forks."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        _call_in_children(util)


@cache
def _call_in_children(util: ModuleType) -> None:
    util.register_after_fork(_as_worker, lambda act: act())


def _as_worker() -> None:
    opwise_c.set_threads(_threads_by_flags())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
