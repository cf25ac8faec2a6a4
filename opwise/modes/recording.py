"""Starts to record a compiled function, for a mode or for the argument ``profile``."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from opwise.config import config
from opwise.hardware import cpu
from opwise.linkers import blasload, blasthreads, cbuild
from opwise.linkers.linked import Linked
from opwise.profiling.recorder import Calls, CompileTimes, Recorder


class Function(Calls, Protocol):
    """What of a compiled function is recorded."""

    name: str | None
    linked: Linked
    compile_report: CompileTimes

    def start_timing(self, ignore_first_call: bool = False) -> None: ...


def record(
    function: Function,
    time_thunks: bool = True,
    ignore_first_call: bool = False,
    memory: bool = False,
    rewrites: Mapping[str, Any] | None = None,
) -> Recorder:
    """Time the calls of a function from now on, and return the Recorder of it.

    time_thunks: time each Apply too. ignore_first_call: begin with the second call. memory: have
    profiles say what lived in the last call. rewrites: the optimizer's record, to be kept.
    """
    linked = function.linked
    _load_blas(any(linked.in_c))
    if time_thunks:
        linked.vm.start_timing(ignore_first_call)
    function.start_timing(ignore_first_call)
    device = getattr(linked.vm, "device", None)
    return Recorder(
        name=function.name,
        linked=linked,
        calls=function,
        report=function.compile_report,
        limits=cpu.known,
        device_limits=None if device is None else partial(_known, device),
        no_compiler=cbuild.no_compiler() if linked.uses_compiler else "",
        with_memory=memory,
        with_least_memory=config.profiling.min_peak_memory,
        rewrites=rewrites,
    )


def _known(device: Any) -> Any:
    """Return (name, MachineLimits) of a Device, None if it has not been measured."""
    found = importlib.import_module("opwise.gpu.probe").known(device)
    return found and (f"cuda{device.index}", found)


def _load_blas(is_called: bool) -> None:
    """Load BLAS before the first call: its tens of milliseconds belong to no Apply.

    is_called: whether a step in C may call it.
    """
    if is_called:
        with contextlib.suppress(ImportError):  # the first step that needs it says so
            blasload.load()
    # what this imports must not be imported at the end of the program: Python forgets there that
    # Ctrl-C ended it when code is made of texts, as for dataclasses, and exits with 1
    blasthreads.describe()
