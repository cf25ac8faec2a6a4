"""What starts to record a compiled function; a mode does so, or the argument ``profile``."""

from __future__ import annotations

import contextlib
import importlib
from functools import partial

from opwise.config import config
from opwise.linkers import blasload, blasthreads, cbuild, cmakers, probe
from opwise.profiling.recorder import Recorder


def record(function, time_thunks=True, ignore_first_call=False, memory=False):
    """Have the calls of a function timed from now on, and return the Recorder of it.

    time_thunks: time each Apply too. ignore_first_call: begin with the second call. memory: let the
    profile tell what lived in the last call.
    """
    order = function.maker.order
    cimpl = function.maker.linker.cimpl
    _load_blas(any(cimpl))
    why = ["" if c else cmakers.why_not(node) for c, node in zip(cimpl, order, strict=True)]
    if time_thunks:
        function.fn.start_timing(ignore_first_call)
    function.start_timing(ignore_first_call)
    recorder = Recorder(
        function.name, order, function.fn, function, cimpl, why, function.maker.report
    )
    recorder.program = function.maker.linker.program
    recorder.limits = probe.known
    if getattr(function.maker.linker, "uses_compiler", False):
        recorder.no_compiler = cbuild.no_compiler()
    device = getattr(function.fn, "device", None)
    if device is not None:
        recorder.device_limits = partial(_known, device)
    recorder.with_memory = memory
    recorder.with_least_memory = config.profiling.min_peak_memory
    return recorder


def _known(device):
    """Return (name, what it can do at best) of a Device, None where that was not measured."""
    found = importlib.import_module("opwise.gpu.runtime.device_peaks").known(device)
    return found and (f"cuda{device.index}", found)


def _load_blas(is_called):
    """Have BLAS loaded before the first call: its tens of milliseconds belong to no Apply.

    is_called: whether a step in C may call it.
    """
    if is_called:
        with contextlib.suppress(ImportError):  # the first step that needs it says so
            blasload.load()
    # what this imports must not be imported at the end of the program: Python forgets there that
    # Ctrl-C ended it when code is made of texts, as for dataclasses, and exits with 1
    blasthreads.describe()
