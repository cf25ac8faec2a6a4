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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

import numpy as np

from opwise.config import config
from opwise.graph import provenance, upcalls
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.provenance import text_of
from opwise.graph.variable import Variable
from opwise.profiling import memory, nesting, process, program, traffic
from opwise.profiling.callpaths import CallFrames
from opwise.profiling.model import (
    LOOP,
    ApplyProfile,
    ArrayProfile,
    CallFrame,
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


class Timing(Protocol):
    """The times of the steps of a VM; see ``opwise.linkers.opwise_c.Timing``."""

    inside: bool
    loop_steps: int
    total_ns: int
    timer_ns: int

    def by_step(self) -> Sequence[tuple[Any, ...]]: ...
    def detail(self) -> Sequence[tuple[int, int, Sequence[int]]]: ...
    def reset(self) -> None: ...


class RecordedVM(Protocol):
    """What a VM says of the steps that it ran; see ``opwise.linkers.vm.PlainVM``."""

    @property
    def timing(self) -> Timing: ...
    def layouts(self) -> Sequence[Any]: ...
    def scratch_bytes(self) -> Sequence[int]: ...
    def algorithms(self) -> Sequence[tuple[str, str]]: ...
    def strip_rows(self) -> Mapping[int, tuple[int, int]]: ...
    def kept_bytes(self) -> int: ...


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


@dataclass(frozen=True)
class Part:
    """A graph whose Applys are recorded: that of a function, or that of a loop's step."""

    linked: RecordedLink
    #: position of its first Apply; positions go on from part to part
    start: int = 0
    #: position of the Apply that it is inside; -1 for that of the function
    inside: int = -1

    @property
    def positions(self) -> range:
        return range(self.start, self.start + len(self.linked.order))


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
    @property
    def graph_cached(self) -> bool: ...
    @property
    def front_end(self) -> Any: ...


class Recorder:
    """One compiled function: its Applys in order, and where its times are."""

    def __init__(
        self,
        *,
        name: str | None,
        linked: RecordedLink,
        loops: Sequence[tuple[int, RecordedLink]] = (),
        calls: Calls,
        report: CompileTimes,
        limits: Callable[[], Any] | None = None,
        device_limits: Callable[[], tuple[str, Any] | None] | None = None,
        no_compiler: str = "",
        with_memory: bool = False,
        with_least_memory: bool = False,
        rewrites: dict[str, Any] | None = None,
        ignore_first_call: bool = False,
    ) -> None:
        self.name = name
        self.order = linked.order
        self.vm = linked.vm
        self.program = linked.program
        #: the graph of the function, then those inside its Applys
        self.parts = _parts(linked, loops)
        #: the function, which counts its calls and their time
        self.function = calls
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
        #: the calls on built-in loops that are not recorded
        self._built_in_before = self._built_in_calls() + ignore_first_call
        self._static: list[dict[str, Any]] | None = None
        #: the calls that wrote its Applys, once they are described
        self.frames = CallFrames()

    @property
    def calls(self) -> Calls:
        """The number of calls and their time, or of the steps of a loop that runs the function."""
        return _StepCalls(self.vm.timing) if self.vm.timing.inside else self.function

    @property
    def nodes(self) -> list[Apply]:
        """Its Applys by position, with those inside loops."""
        return [node for part in self.parts for node in part.linked.order]

    @property
    def called(self) -> int:
        """How often the function was called, including calls that failed."""
        return self.calls.calls + self.calls.failed

    def snapshot(self) -> FunctionProfile:
        """Return what has been recorded so far."""
        times = [row for part in self.parts for row in _timing(part.linked)]
        described = self.described()
        has_run = any(count for count, *_ in times)
        arrays = self._arrays() if has_run else {}
        devices = {
            part.start + k: fields
            for part in self.parts
            for k, fields in _device_times(part.linked.vm).items()
        }
        counts = [count for count, *_ in times]
        inside = [part.inside for part in self.parts for _ in part.positions]
        timer_ns = self.vm.timing.timer_ns
        calls = max(counts[: len(self.order)], default=0)
        # the time of a loop on a device is the sum of those of its steps, without their timing
        contained = [
            0 if getattr(part.linked.vm, "repeated", False) else counts[k]
            for part in self.parts
            for k in part.positions
        ]
        a_call = [count / max(1, calls) for count in contained]
        detail = tuple(
            CallProfile(n, start, tuple(nesting.own_times(ns, a_call, inside, timer_ns)))
            for n, start, ns in self.vm.timing.detail()
        )
        first = self._first_call(detail)
        own = nesting.own_times([total for _, total, *_ in times], contained, inside, timer_ns)
        once = [_once(ns, first[k], calls) if first else 0 for k, ns in enumerate(own)]
        own = [ns - beyond for ns, beyond in zip(own, once, strict=True)]
        runs, estimated = self._estimate(counts, own, inside)
        inner = nesting.inner_times(own, inside)
        applys = tuple(
            ApplyProfile(
                **static,
                **dict(
                    zip(_TIMES, row, strict=True),
                    count=runs[k],
                    total=own[k],
                    once=once[k],
                    inner=inner[k],
                    estimated=k in estimated,
                ),
                **arrays.get(k, {}),
                **devices.get(k, {}),
            )
            for k, (static, row) in enumerate(zip(described, times, strict=True))
        )
        return FunctionProfile(
            name=text_of(self.name),
            applys=applys,
            calls=self.called,
            failed=self.calls.failed,
            built_in_calls=max(0, self._built_in_calls() - self._built_in_before),
            call_ns=self.calls.total_ns,
            fn_ns=self.calls.fn_ns,
            first_call_ns=self.calls.first_ns,
            first_calls=int(self.calls.first_ns > 0),
            compile=self._compile(),
            timing_ns=timer_ns * sum(counts),
            detail=detail,
            rewrites=None if self.inherited else self.rewrites,
            memory=self._memory(applys) if self.with_memory and arrays else None,
        )

    def _estimate(
        self, counts: Sequence[int], own: list[int], inside: Sequence[int]
    ) -> tuple[list[int], set[int]]:
        """Return (runs, positions of those that are estimated) of the Applys by position.

        A loop that ran as one C function counted its steps, but timed no Apply in them: those get
        its time in ``own``, by rough cost. counts: the runs that were timed.
        """
        runs, estimated, split = list(counts), set[int](), []
        for part in self.parts[1:]:
            vm = part.linked.vm
            steps = 0 if getattr(vm, "repeated", False) else vm.timing.loop_steps
            if part.inside in estimated:  # a loop in that C function, which has no VM of its own
                steps = runs[part.inside] * _steps_of(self.nodes[part.inside])
            if steps <= max((counts[k] for k in part.positions), default=steps):
                continue
            if part.inside not in estimated:
                split.append(part.inside)
            estimated.update(part.positions)
            runs[part.start : part.positions.stop] = [steps] * len(part.positions)
        if split:
            loops = {inside[k] for k in estimated}
            nodes = self.nodes
            weights = [
                runs[k] * _cost(node) if k in estimated and k not in loops else 0.0
                for k, node in enumerate(nodes)
            ]
            for around in split:
                nesting.split(around, own, inside, weights)
        return runs, estimated

    def _first_call(self, detail: Sequence[CallProfile]) -> tuple[int, ...]:
        """Return the times of the Applys in the first call of all; () if they are not known."""
        if not self.calls.first_ns or self.inherited:  # forgotten; made before a fork
            return ()
        return next((call.apply_ns for call in detail if call.number == 1), ())

    def _arrays(self) -> dict[int, dict[str, Any]]:
        """Return {position: the fields of ApplyProfile about the arrays of the last call}."""
        return {
            k: found
            for part in self.parts
            for k, found in zip(part.positions, _arrays_of(part.linked), strict=True)
        }

    def _memory(self, applys: Sequence[ApplyProfile]) -> Any:
        #: by position, what lives at most inside an Apply: the memory of a step, as scratch
        inside = [0] * len(applys)
        timelines: list[tuple[int, ...]] = []
        kept = 0
        for part in reversed(self.parts):
            order, vm, fgraph = part.linked.order, part.linked.vm, part.linked.program.fgraph
            sizes = _sizes(order, [applys[k] for k in part.positions])
            for slot, (rows, of) in vm.strip_rows().items():
                var = part.linked.program.variables[slot]
                sizes[var] = sizes[var] * rows // of
            scratch = [
                own + inside[k] for k, own in zip(part.positions, vm.scratch_bytes(), strict=True)
            ]
            kept += vm.kept_bytes()
            least = self.with_least_memory and part.inside < 0
            found = memory.measure(fgraph, order, sizes, scratch, kept, least)
            timelines.insert(0, found.timeline)
            if part.inside >= 0:
                inside[part.inside] = max(found.timeline, default=0)
        found = replace(found, timeline=self._joined(timelines, inside))
        placement = getattr(self.vm, "placement", None)
        if placement is None:
            return found
        return memory.parted(found, fgraph, self.order, sizes, placement.on_device)

    def _joined(self, timelines: Sequence[Sequence[int]], inside: Sequence[int]) -> tuple[int, ...]:
        """Return what lives by position; inside an Apply, with what lives around it."""
        joined: list[int] = []
        for part, timeline in zip(self.parts, timelines, strict=True):
            around = joined[part.inside] - inside[part.inside] if part.inside >= 0 else 0
            joined += [around + live for live in timeline]
        return tuple(joined)

    def reset(self) -> None:
        """Forget the calls up to now."""
        self.vm.timing.reset()
        self.function.reset_calls()
        self._built_in_before = self._built_in_calls()

    def _built_in_calls(self) -> int:
        """How often the function was called while its kernels were compiled."""
        return int(getattr(self.vm, "built_in_calls", 0))

    def _compile(self) -> CompileProfile:
        if self.inherited:
            return CompileProfile()
        report, kernels = self.report, self.report.kernels
        return CompileProfile(
            total=whole_ns(report.total),
            library=whole_ns(report.front_end.rewriting),
            translation=whole_ns(report.front_end.translation),
            optimizer=whole_ns(report.optimizer),
            validate=whole_ns(report.validate),
            linker=whole_ns(report.linker),
            thunks=whole_ns(sum(report.thunks.values())),
            compiler=whole_ns(kernels.compile_seconds) if kernels is not None else 0.0,
            load=whole_ns(kernels.load_seconds) if kernels is not None else 0.0,
            cached=kernels.hit if kernels is not None else None,
            graph_cached=report.graph_cached,
            slowest=tuple(
                (_apply_text(node), report.thunks[node])
                for node in heapq.nlargest(SLOWEST, report.thunks, key=report.thunks.__getitem__)
            ),
        )

    @property
    def on_device(self) -> bool:
        """Whether it runs on a device, with some Applys on the host perhaps."""
        return hasattr(self.vm, "device_times")

    def described(self) -> list[dict[str, Any]]:
        """Return, for each Apply, the fields of ApplyProfile that no call changes."""
        if self._static is None:
            self._static = self._describe()
        return self._static

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
            written = node.context and node.context.gradient_of
            frame = self.frames.add(written or node.trace)
            return OriginProfile(
                key, text(node.op), file, line, scope, of, cost, node.op.profile_kind, frame
            )

        described: list[dict[str, Any]] = []
        loops: list[str] = []  # by position, what the Applys inside are inside of
        nodes = [(part, node) for part in self.parts for node in part.linked.order]
        position = {node: k for k, (_, node) in enumerate(nodes)}
        for k, (part, node) in enumerate(nodes):
            in_c = part.linked.in_c[k - part.start]
            op, op_class = text(node.op), type(node.op)
            loop = loops[part.inside] if part.inside >= 0 else ""
            loops.append(f"{loop} > {op}" if loop else op)
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
                    "c": bool(in_c),
                    "why": "" if in_c else part.linked.why_not_in_c[k - part.start],
                    "kind": node.op.profile_kind,
                    "inside": part.inside,
                    "loop": loop,
                }
            )
        return described


class _StepCalls:
    """The steps of loops, as calls of what they repeat."""

    failed = first_ns = 0

    def __init__(self, timing: Timing) -> None:
        self.calls = timing.loop_steps
        self.total_ns = self.fn_ns = timing.total_ns

    def reset_calls(self) -> None:
        """Do nothing: the Timing has the numbers."""


def _parts(linked: RecordedLink, loops: Iterable[tuple[int, RecordedLink]]) -> list[Part]:
    """Return the parts of a function. loops: (position, graph) of each Apply with one inside."""
    parts = [Part(linked)]
    for position, inner in loops:
        parts.append(Part(inner, parts[-1].positions.stop, position))
    return parts


def _timing(linked: RecordedLink) -> Sequence[tuple[Any, ...]]:
    """Return the row of times of each Apply, of zeros if none was timed."""
    return linked.vm.timing.by_step() or [(0, 0, 0, 0, ())] * len(linked.order)


def _device_times(vm: Any) -> dict[int, dict[str, Any]]:
    """Return {step: the fields of ApplyProfile about a device} of a VM."""
    return vm.device_times() if hasattr(vm, "device_times") else {}


def _arrays_of(linked: RecordedLink) -> Iterator[dict[str, Any]]:
    """Yield for each Apply the fields of ApplyProfile about the arrays of its last run."""
    layouts = linked.vm.layouts()
    seen: dict[int, ArrayProfile | None] = {}

    def array(slot: int) -> ArrayProfile | None:
        if slot not in seen:
            seen[slot] = _array(linked.program.variables[slot], layouts[slot])
        return seen[slot]

    meter = traffic.Meter(array)
    chosen = linked.vm.algorithms()
    for step, (algorithm, why) in zip(linked.program.steps, chosen, strict=True):
        inputs, outputs = tuple(map(array, step.inputs)), tuple(map(array, step.outputs))
        flops = _flops(step.node, inputs, outputs)
        yield {
            "input_arrays": inputs,
            "output_arrays": outputs,
            "shares": memory.codes(step.node),
            "flops": flops,
            "work": _work(step.node, inputs, outputs) if flops is None else None,
            "traffic": meter.measure(step, inputs, outputs),
            "algorithm": algorithm,
            "why_algorithm": why,
        }


def _sizes(order: Sequence[Apply], applys: Sequence[ApplyProfile]) -> dict[Variable, int]:
    """Return the bytes of each variable of some Applys."""
    return {
        var: array.bytes if array is not None else 0
        for node, apply in zip(order, applys, strict=True)
        for var, array in zip(
            (*node.inputs, *node.outputs),
            (*apply.input_arrays, *apply.output_arrays),
            strict=True,
        )
    }


#: the fields of ApplyProfile that a VM counts
_TIMES = "count", "total", "least", "most", "histogram"


def _once(total: int, first: int, calls: int) -> int:
    """Return what an Apply took in the first call beyond the mean of later calls.

    total: nanoseconds in all calls. first: those in the first call.
    """
    return max(0, first - (total - first) // (calls - 1)) if calls > 1 else 0


def _steps_of(loop: Apply) -> int:
    """Return how often a loop repeats its step; 0 if that is not a constant of the graph."""
    return int(getattr(loop.inputs[0], "data", 0)) if loop.op.profile_kind == LOOP else 0


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
        count: int | None = node.op.apply_flops(
            node, *([a and a.shape for a in arrays] for arrays in (inputs, outputs))
        )
        return count
    except Exception:  # a user's Op may raise anything; a profile is not lost for that
        return None


def _work(
    node: Apply,
    inputs: Sequence[ArrayProfile | None],
    outputs: Sequence[ArrayProfile | None],
) -> float | None:
    """Return rough nanoseconds of an Apply for its functions; None if they are not known."""
    try:
        found: float | None = node.op.apply_work(
            *([a and a.shape for a in arrays] for arrays in (inputs, outputs))
        )
    except Exception:  # as of flops
        return None
    # costs are of float64; a register holds twice as many numbers of float32
    floats = {a.dtype for a in inputs if a is not None and a.dtype.startswith("float")}
    narrow = bool(floats) and floats <= {"float16", "float32"}
    return None if found is None else found / 2 if narrow else found


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
        **upcalls.parallelism(),
        "grad_seconds": process.grad_seconds(),
        "seconds_since_import": process.since_import(),
        "seconds_importing": process.importing(),
        **process.system_times(),
        **({} if (most := process.peak_memory()) is None else {"bytes_peak_memory": most}),
    }


def _process_name() -> dict[str, str]:
    """Return {"process_name": name} if multiprocessing started this process, else {}."""
    name = process.worker_name()
    return {} if name is None else {"process_name": text_of(name)}


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
        calls = CallFrames()
        sampled = program.recorded(calls)
        known = (*(r.frames for r in recorders), calls)
        frames = {key: one for each in known for key, one in each.by_key.items()}
        sources = _sources(functions, frames.values())
        return Profile(
            functions, text_of(message), _environment_of(recorders), sources, machine,
            devices=tuple(sorted(devices, key=repr)), frames=frames, program=sampled,
        )  # fmt: skip


def _sources(functions: Iterable[FunctionProfile], frames: Iterable[CallFrame]) -> dict[str, str]:
    """Return {``file:line``: text} of the user's lines that functions and calls come from."""
    origins = {o for f in functions for a in f.applys for o in a.origins}
    places = {(o.file, o.line) for o in origins if o.file}
    places.update(o.gradient_of for o in origins if o.gradient_of)
    places.update((frame.file, frame.line) for frame in frames if not frame.library)
    return {f"{file}:{line}": linecache.getline(file, line).strip() for file, line in places}
