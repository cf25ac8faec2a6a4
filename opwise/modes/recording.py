"""What starts to record a compiled function; a mode does so, or the argument ``profile``."""

from __future__ import annotations

import contextlib

from opwise.linkers import blasload, cmakers
from opwise.profiling.recorder import Recorder


def record(function, time_thunks=True, ignore_first_call=False):
    """Have the calls of a function timed from now on, and return the Recorder of it.

    time_thunks: time each Apply too. ignore_first_call: begin with the second call.
    """
    order = function.maker.order
    cimpl = function.maker.linker.cimpl
    if any(cimpl):
        _load_blas()
    why = ["" if c else cmakers.why_not(node) for c, node in zip(cimpl, order, strict=True)]
    if time_thunks:
        function.fn.start_timing(ignore_first_call)
    function.start_timing(ignore_first_call)
    return Recorder(function.name, order, function.fn, function, cimpl, why, function.maker.report)


def _load_blas():
    """Have BLAS loaded before the first call: its tens of milliseconds belong to no Apply."""
    with contextlib.suppress(ImportError):  # the first step that needs it says so
        blasload.load()
