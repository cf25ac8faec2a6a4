"""Recorder: takes a profile of a compiled function at any time.

The VM counts; the recorder knows what the numbers belong to. It keeps the function alive, so that
what was recorded is not lost with it.
"""

from __future__ import annotations

import heapq
import linecache
import math
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

import numpy as np

from opwise.config import config
from opwise.graph import hooks, provenance
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.provenance import text_of
from opwise.graph.variable import Variable
from opwise.profiling import memory, process, traffic
from opwise.profiling.model import (
    ApplyProfile,
    ArrayProfile,
    CallProfile,
    CompileProfile,
    FunctionProfile,
    OriginProfile,
    whole_ns,
)
from opwise.profiling.process import pause_garbage_collection
from opwise.profiling.profile import Profile
from opwise.version import __version__

#: Applys whose preparation is kept by name
SLOWEST = 5


class RecordedVM(Protocol):
    """The times of the steps that a VM ran; see ``opwise.linkers.vm.PlainVM``."""

    @property
    def timer_ns(self) -> float: ...
    def timing(self) -> Sequence[tuple[Any, ...]]: ...
    def detail(self) -> Sequence[tuple[int, int, Sequence[int]]]: ...
    def layouts(self) -> Sequence[Any]: ...
    def scratch_bytes(self) -> Sequence[int]: ...
    def kept_bytes(self) -> int: ...
    def reset_timing(self) -> None: ...


class RecordedStep(Protocol):
    """One Apply of a program, and the slots that it reads and writes."""

    @property
    def node(self) -> Apply: ...
    @property
    def inputs(self) -> tuple[int, ...]: ...
    @property
    def outputs(self) -> tuple[int, ...]: ...


class RecordedProgram(Protocol):
    """What a VM runs; see ``opwise.linkers.program.Program``."""

    @property
    def fgraph(self) -> FunctionGraph: ...
    @property
    def variables(self) -> Sequence[Variable]: ...
    @property
    def steps(self) -> Sequence[RecordedStep]: ...


class RecordedLink(Protocol):
    """A graph that is ready to run; see ``opwise.linkers.linked.Linked``."""

    @property
    def vm(self) -> RecordedVM: ...
    @property
    def program(self) -> RecordedProgram: ...
    @property
    def order(self) -> Sequence[Apply]: ...
    @property
    def in_c(self) -> Sequence[bool]: ...
    @property
    def why_not_in_c(self) -> Sequence[str]: ...


class Calls(Protocol):
    """How often a function was called, and for how many nanoseconds.

    ``total_ns`` is the time of whole calls, ``fn_ns`` that of the VM in them, ``first_ns`` that of
    the first call.
    """

    calls: int
    failed: int
    total_ns: int
    fn_ns: int
    first_ns: int

    def reset_calls(self) -> None: ...


class CompileTimes(Protocol):
    """Where the seconds of compiling a function went; see ``opwise.compile.report``."""

    @property
    def total(self) -> float: ...
    @property
    def optimizer(self) -> float: ...
    @property
    def validate(self) -> float: ...
    @property
    def linker(self) -> float: ...
    @property
    def thunks(self) -> Mapping[Apply, float]: ...
    @property
    def kernels(self) -> Any: ...


class Recorder:
    """One compiled function: its Applys in order, and where its times are."""

    def __init__(
        self,
        *,
        name: str | None,
        linked: RecordedLink,
        calls: Calls,
        report: CompileTimes,
        limits: Callable[[], Any] | None = None,
        device_limits: Callable[[], tuple[str, Any] | None] | None = None,
        no_compiler: str = "",
        with_memory: bool = False,
        with_least_memory: bool = False,
        rewrites: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.order = linked.order
        self.vm = linked.vm
        self.program = linked.program
        self.in_c = linked.in_c
        self.why_not_in_c = linked.why_not_in_c
        #: counts the calls of the function, and their time
        self.calls = calls
        #: where the time of compiling the function went
        self.report = report
        #: returns the limits of the hardware if they have been measured
        self.limits = limits
        #: returns (name, limits) of the device that the function runs on if they have been measured
        self.device_limits = device_limits
        #: why there was no C compiler, if one would have been used
        self.no_compiler = no_compiler
        #: whether a snapshot says what lived in the last call, and what would in the best order
        self.with_memory = with_memory
        self.with_least_memory = with_least_memory
        #: the record of the optimizer as plain data, if it is to be kept
        self.rewrites = rewrites
        #: whether a parent process compiled the function, and reports how long that took
        self.inherited = False
        self._static: list[dict[str, Any]] | None = None

    @property
    def called(self) -> int:
        """How often the function was called, including calls that failed."""
        return self.calls.calls + self.calls.failed

    def snapshot(self) -> FunctionProfile:
        """Return what has been recorded so far."""
        times = self.vm.timing() or [(0, 0, 0, 0, ())] * len(self.order)
        if self._static is None:
            self._static = self._describe()
        has_run = any(count for count, *_ in times)
        arrays = self._arrays() if has_run else {}
        devices = self.vm.device_times() if hasattr(self.vm, "device_times") else {}
        detail = tuple(CallProfile(n, start, tuple(ns)) for n, start, ns in self.vm.detail())
        first = self._first_call(detail)
        applys = tuple(
            ApplyProfile(
                **static,
                **_times(row, first[k] if first else 0),
                **arrays.get(k, {}),
                **devices.get(k, {}),
            )
            for k, (static, row) in enumerate(zip(self._static, times, strict=True))
        )
        return FunctionProfile(
            name=text_of(self.name),
            applys=applys,
            calls=self.called,
            failed=self.calls.failed,
            call_ns=self.calls.total_ns,
            fn_ns=self.calls.fn_ns,
            first_call_ns=self.calls.first_ns,
            first_calls=int(self.calls.first_ns > 0),
            compile=self._compile(),
            timing_ns=self.vm.timer_ns * sum(count for count, *_ in times),
            detail=detail,
            rewrites=None if self.inherited else self.rewrites,
            memory=self._memory(applys) if self.with_memory and arrays else None,
        )

    def _first_call(self, detail: Sequence[CallProfile]) -> tuple[int, ...]:
        """Return the times of the Applys in the first call of all; () if they are not known."""
        if not self.calls.first_ns or self.inherited:  # forgotten; made before a fork
            return ()
        return next((call.apply_ns for call in detail if call.number == 1), ())

    def _arrays(self) -> dict[int, dict[str, Any]]:
        """Return {position: the fields of ApplyProfile about the arrays of the last call}."""
        layouts = self.vm.layouts()
        seen: dict[int, ArrayProfile | None] = {}

        def array(slot: int) -> ArrayProfile | None:
            if slot not in seen:
                seen[slot] = _array(self.program.variables[slot], layouts[slot])
            return seen[slot]

        found, meter = {}, traffic.Meter(array)
        for k, step in enumerate(self.program.steps):
            inputs, outputs = tuple(map(array, step.inputs)), tuple(map(array, step.outputs))
            found[k] = {
                "input_arrays": inputs,
                "output_arrays": outputs,
                "shares": memory.codes(step.node),
                "flops": _flops(step.node, inputs, outputs),
                "traffic": meter.measure(step, inputs, outputs),
            }
        return found

    def _memory(self, applys: Sequence[ApplyProfile]) -> Any:
        sizes = {
            var: array.bytes if array is not None else 0
            for node, apply in zip(self.order, applys, strict=True)
            for var, array in zip(
                (*node.inputs, *node.outputs),
                (*apply.input_arrays, *apply.output_arrays),
                strict=True,
            )
        }
        fgraph = self.program.fgraph
        found = memory.measure(
            fgraph, self.order, sizes, self.vm.scratch_bytes(), self.vm.kept_bytes(),
            self.with_least_memory,
        )  # fmt: skip
        placement = getattr(self.vm, "placement", None)
        if placement is None:
            return found
        return memory.parted(found, fgraph, self.order, sizes, placement.on_device)

    def reset(self) -> None:
        """Forget the calls up to now."""
        self.vm.reset_timing()
        self.calls.reset_calls()

    def _compile(self) -> CompileProfile:
        if self.inherited:
            return CompileProfile()
        report, kernels = self.report, self.report.kernels
        return CompileProfile(
            total=whole_ns(report.total),
            optimizer=whole_ns(report.optimizer),
            validate=whole_ns(report.validate),
            linker=whole_ns(report.linker),
            thunks=whole_ns(sum(report.thunks.values())),
            compiler=whole_ns(kernels.compile_seconds) if kernels is not None else 0.0,
            load=whole_ns(kernels.load_seconds) if kernels is not None else 0.0,
            cached=kernels.hit if kernels is not None else None,
            slowest=tuple(
                (_apply_text(node), report.thunks[node])
                for node in heapq.nlargest(SLOWEST, report.thunks, key=report.thunks.__getitem__)
            ),
        )

    def _describe(self) -> list[dict[str, Any]]:
        """Return, for each Apply, the fields of ApplyProfile that no call changes."""
        keys = provenance.Keys()
        text = keys.text

        @cache
        def origin(node: Apply, moves: str = "") -> OriginProfile:
            file, line = provenance.user_line(node) or ("", 0)
            scope = node.context.scope if node.context is not None else ""
            of = provenance.gradient_line(node)
            cost = _cost(node)
            key = keys.node(node) + moves
            return OriginProfile(
                key, text(node.op), file, line, scope, of, cost, node.op.profile_kind
            )

        described = []
        position = {node: k for k, node in enumerate(self.order)}
        for k, node in enumerate(self.order):
            op, op_class = text(node.op), type(node.op)
            moves = getattr(node.op, "moves", "")  # a transfer counts for the Apply that it moves
            described.append(
                {
                    "position": k,
                    "op": op,
                    "op_class": text(op_class),
                    "op_key": f"{op_class.__module__}.{op_class.__qualname__} {op}",
                    "text": _apply_text(node),
                    "inputs": tuple([text(v.type) for v in node.inputs]),
                    "outputs": tuple([text(v.type) for v in node.outputs]),
                    "reads": tuple(
                        [position.get(v.owner, -1) if v.owner else -1 for v in node.inputs]
                    ),
                    "origins": tuple([origin(each, moves) for each in node.origins]),
                    "c": bool(self.in_c[k]),
                    "why": "" if self.in_c[k] else self.why_not_in_c[k],
                    "kind": node.op.profile_kind,
                }
            )
        return described


def _times(row: tuple[Any, ...], first: int) -> dict[str, Any]:
    """Return the fields of ApplyProfile about the times of an Apply.

    first: nanoseconds of its first run. What that took beyond the mean of later runs goes into the
    field ``once``, and is subtracted from the total.
    """
    count, total, *_ = row
    later = count - 1
    once = max(0, first - (total - first) // later) if later > 0 else 0
    found = dict(zip(("count", "total", "least", "most", "histogram"), row, strict=True))
    return {**found, "total": total - once, "once": once}


#: what an Apply of single numbers costs, in units of one of arrays
_OF_NUMBERS = 0.01


def _cost(node: Apply) -> float:
    """Return a rough estimate of the nanoseconds per element of one of the user's Applys."""
    op = node.op
    if len(op.view_map) == len(node.outputs):
        return 0.0
    cost = op.element_cost(len(node.inputs))
    sizes = [getattr(v.type, "broadcastable", (False,)) for v in (*node.inputs, *node.outputs)]
    return float(cost * _OF_NUMBERS) if all(map(all, sizes)) else cost


def _apply_text(node: Apply) -> str:
    """Return what an Apply prints as; if a user's class raises, the parts that do print."""
    try:
        return str(node)
    except Exception:  # as text_of: what a user's Op raises
        return f"{text_of(node.op)}({', '.join(map(text_of, node.inputs))})"


def _array(var: Variable, layout: Any) -> ArrayProfile | None:
    dtype = getattr(var.type, "numpy_dtype", None)
    if dtype is None or layout is None:
        return None
    shape, strides = layout
    return ArrayProfile(var.type.dtype, shape, strides, dtype.itemsize * math.prod(shape))


def _flops(
    node: Apply,
    inputs: Sequence[ArrayProfile | None],
    outputs: Sequence[ArrayProfile | None],
) -> int | None:
    """Return the floating-point operations of an Apply; None if there is no exact count."""
    try:
        count: int | None = node.op.flops(
            *([a and a.shape for a in arrays] for arrays in (inputs, outputs))
        )
        return count
    except Exception:  # a user's Op may raise anything; a profile is not lost for that
        return None


def environment() -> dict[str, Any]:
    """Return what a profile says about the process and the computer."""
    return {
        "program": " ".join(map(text_of, sys.argv)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "opwise": __version__,
        "numpy": np.__version__,
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "system": platform.system(),
        "node": platform.node(),
        "process": os.getpid(),
        **_process_name(),
        "flags": _flags(),
        **hooks.parallelism(),
        "grad_seconds": process.grad_seconds(),
        "seconds_since_import": process.since_import(),
        "seconds_importing": process.importing(),
        **process.system_times(),
    }


def _process_name() -> dict[str, str]:
    """Return {"process_name": name} if multiprocessing started this process, else {}."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return {}
    return {"process_name": text_of(process.current_process().name)}


def _flags() -> str:
    """Return the flags that were set, except those that only choose what is profiled."""
    own = ("profile", "profiling.", "ProfileMode.", "tuning.")
    return ",".join(
        f"{flag.fullname}={text_of(flag.__get__())}"
        for flag in config.chosen()
        if not flag.fullname.startswith(own)
    )


def _environment_of(recorders: Sequence[Recorder]) -> dict[str, Any]:
    about = environment()
    reason = next((r.no_compiler for r in recorders if r.no_compiler), "")
    return {**about, "no_compiler": reason} if reason else about


def profile_of(recorders: Sequence[Recorder], message: str | None = "") -> Profile:
    """Return a Profile of what several recorders have recorded so far."""
    with pause_garbage_collection():
        functions = tuple(r.snapshot() for r in recorders)
        machine = next((r.limits() for r in recorders if r.limits is not None), None)
        measured = {r.device_limits() for r in recorders if r.device_limits is not None}
        devices = [each for each in measured if each is not None]
        return Profile(
            functions, text_of(message), _environment_of(recorders), _sources(functions), machine,
            devices=tuple(sorted(devices, key=repr)),
        )  # fmt: skip


def _sources(functions: Iterable[FunctionProfile]) -> dict[str, str]:
    """Return {``file:line``: text} of the user's lines that functions come from."""
    origins = {o for f in functions for a in f.applys for o in a.origins}
    places = {(o.file, o.line) for o in origins if o.file}
    places.update(o.gradient_of for o in origins if o.gradient_of)
    return {f"{file}:{line}": linecache.getline(file, line).strip() for file, line in places}
