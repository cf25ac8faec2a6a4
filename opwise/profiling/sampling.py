"""Sampling the main thread of the program: ``graph/sampler.c`` does it, ``program`` reads it."""

from __future__ import annotations

import threading

from opwise.config import config
from opwise.graph import callstack, upcalls


def begin() -> None:
    """Begin to sample the program if the flag says so and this is the main thread."""
    if config.profiling.sampling > 0 and threading.current_thread() is threading.main_thread():
        callstack.start_sampling(max(1, round(config.profiling.sampling * 1e6)))
    become_main()


def become_main() -> None:
    """Note that this thread is the one that is sampled, in a forked process for example."""
    if callstack.is_sampling() and threading.current_thread() is threading.main_thread():
        callstack.watch_calls(*upcalls.watch_main_calls())
