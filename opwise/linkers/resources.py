"""What kernels may take of the machine: processors, and memory that is kept for later results."""

from __future__ import annotations

import os
from functools import cache

from opwise.config import config
from opwise.graph import hooks
from opwise.linkers import blasthreads, opwise_c

_GIB = 1 << 30


def obey_flags():
    """Let kernels and BLAS use as many threads, and keep as much freed memory, as flags say."""
    use_threads(_threads_by_flags())
    asked = config.recycle_bytes
    opwise_c.keep_at_most(_kept_by_default() if asked < 0 else asked)


def use_threads(number):
    """Let kernels use so many threads; BLAS too, unless no flag says how many and this is usual."""
    opwise_c.set_threads(number)
    is_usual = number == _threads_by_flags()
    blasthreads.bind((config.threads or None) if is_usual else number)


def threads():
    """Return how many threads kernels may use."""
    return opwise_c.threads()


def _threads_by_flags():
    return config.threads or processors()


def _parallelism():
    """Return what a profile tells of threads: those of kernels and those of BLAS."""
    return {"threads": opwise_c.threads(), **blasthreads.describe()}


hooks.parallelism = _parallelism


@cache
def processors():
    """Return OMP_NUM_THREADS, or how many processors this process may run on."""
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if told.isdigit() and int(told) > 0:
        return int(told)
    return available()


def available():
    """Return how many processors this process may run on, whatever the environment says."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _kept_by_default():
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _GIB // 4
    return min(_GIB, memory // 8)
