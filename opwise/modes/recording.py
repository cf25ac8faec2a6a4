"""Starts to record a compiled function, for a mode or for the argument ``profile``."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol, cast

from opwise.config import config
from opwise.hardware import cpu
from opwise.linkers import blasthreads, cbuild, opwise_c
from opwise.linkers.linked import Linked
from opwise.profiling import recorder
from opwise.profiling.recorder import Calls, CompileTimes, Recorder


class Recordable(Calls, Protocol):
    """The parts of a compiled function that a Recorder reads."""

    name: str | None

    @property
    def linked(self) -> Linked: ...
    @property
    def compile_report(self) -> CompileTimes: ...
    def start_timing(self, ignore_first_call: bool = False) -> None: ...


def record(
    function: Recordable,
    time_thunks: bool = True,
    ignore_first_call: bool = False,
    memory: bool = False,
    rewrites: dict[str, Any] | None = None,
    loops: bool = True,
) -> Recorder:
    """Start to time the calls of a function, and return its Recorder.

    time_thunks: time each Apply too. ignore_first_call: start with the second call. memory: record
    which values were alive in the last call. rewrites: the optimizer's record, to keep. loops: time
    the steps of loops too, which belong to this function alone if it was compiled with a profile.
    """
    linked = function.linked
    inside = list(_loops(linked)) if loops else []
    linked_graphs = (linked, *(inner for _, inner in inside))
    _load_blas(any(any(each.in_c) for each in linked_graphs))
    for each in linked_graphs:
        if config.profiling.wait_for_kernels:
            each.wait_for_kernels()
        for loop in each.on_demand:
            loop.load()
    if time_thunks:
        timing = getattr(linked.vm, "timing", None)
        if timing is None:
            raise Exception("DebugMode do not support profiling.")
        timing.start(ignore_first_call, [cast(Any, inner.vm).timing for _, inner in inside])
    function.start_timing(ignore_first_call)
    device = getattr(linked.vm, "device", None)
    return Recorder(
        name=function.name,
        linked=cast(recorder.RecordedLink, linked),
        loops=cast(list[tuple[int, recorder.RecordedLink]], inside),
        calls=function,
        report=function.compile_report,
        limits=cpu.known,
        device_limits=None if device is None else partial(_known, device),
        no_compiler=cbuild.no_compiler() if linked.uses_compiler else "",
        with_memory=memory,
        with_least_memory=config.profiling.min_peak_memory,
        rewrites=rewrites,
        ignore_first_call=ignore_first_call,
    )


def _loops(linked: Linked) -> Iterator[tuple[int, Linked]]:
    """Yield (position of an Apply, the graph inside it that is timed), also of Applys inside.

    Positions go on from the Applys of the function to those of the first graph inside, and so on.
    """
    graphs, starts, end = [linked], [0], len(linked.order)
    for graph, start in zip(graphs, starts, strict=False):  # both grow
        for k, node in enumerate(graph.order):
            inside = getattr(getattr(node.tag, "inside", None), "linked", None)
            if inside is None or not hasattr(inside.vm, "timing"):
                continue
            if cast(Any, graph.vm).repeats_inside(k):
                yield start + k, inside
                graphs.append(inside)
                starts.append(end)
                end += len(inside.order)


def _known(device: Any) -> Any:
    """Return (name, MachineLimits) of a Device, None if it has not been measured."""
    found = importlib.import_module("opwise.gpu.runtime.device_peaks").known(device)
    return found and (f"cuda{device.index}", found)


def _load_blas(is_called: bool) -> None:
    """Load BLAS before the first call, whose times would contain the tens of ms that it takes.

    is_called: whether a C step may call BLAS.
    """
    if is_called and opwise_c.needs_blas():
        with contextlib.suppress(ImportError):  # the first step that needs it raises
            opwise_c.load_blas()
    # Import now what this needs. An import at exit compiles code from texts, for dataclasses, and
    # then Python exits with 1 after a Ctrl-C, not by the signal.
    blasthreads.describe()
