"""The data of a profile: functions, their Applys, arrays and calls; plain and frozen.

``recorder`` makes these, ``serialization`` writes and reads them; sums are in ``aggregate``,
differences in ``compare``, texts in ``reports``. ``profile.Profile`` is the class that users hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from opwise.profiling import histogram, unrecorded
from opwise.profiling.machinelimits import MachineLimits
from opwise.profiling.memory import MemoryProfile

#: version of the JSON files that profiles are kept in
VERSION = 3

#: ``kind`` of a matrix product: each multiplication and addition is rounded as one
PRODUCT = "product"
#: ``kind`` of one loop that computes several operations of the program
FUSED = "fused"
#: ``kind`` of a loop that repeats a step
LOOP = "loop"


@dataclass(frozen=True)
class ArrayProfile:
    """An array as it was in the last call."""

    dtype: str
    shape: tuple[int, ...]
    #: distance between neighbours along each dimension, in bytes
    strides: tuple[int, ...]
    #: size of all elements together; an element that the array repeats counts each time
    bytes: int


#: files need not have a field with this metadata; others with a factory are in every file
LEFT_OUT = {"left out if empty": True}


@dataclass(frozen=True)
class CallFrame:
    """A line of the program that was running, when an Apply was written or later; who called it."""

    file: str
    #: line in the file, from 1
    line: int
    #: name of the function
    function: str
    #: key in ``ProfileData.frames`` of the line that called the function; "" if none is known
    caller: str = ""
    #: name of the library that the file belongs to; "" for the user's program
    library: str = ""


@dataclass(frozen=True, order=True)
class OriginProfile:
    """An Apply of the user's program that a recorded Apply computes, alone or with others."""

    #: equal for Applys that compute the same, in every process
    key: str
    #: text of the Op
    op: str
    #: file where it was written; "" if unknown
    file: str = ""
    #: line in the file, from 1; 0 if unknown
    line: int = 0
    #: names of the scopes around it, the outermost first, joined by ``/``
    scope: str = ""
    #: (file, line) of what it is the gradient of; None outside gradients
    gradient_of: tuple[str, int] | None = None
    #: approximate nanoseconds per element; the time of an Apply is divided in this proportion
    cost: float = 1.0
    #: ``Op.profile_kind``: PRODUCT, FUSED, LOOP or ""; None in files that do not record it
    kind: str | None = None
    #: key in ``ProfileData.frames`` of the innermost call that wrote it, or what it is the gradient
    #: of; "" if unknown
    frame: str = ""

    @property
    def is_product(self) -> bool:
        """Whether it multiplies matrices."""
        return unrecorded.names_product(self.op) if self.kind is None else self.kind == PRODUCT


@dataclass(frozen=True)
class ApplyProfile:
    """What was recorded of one Apply of one function; times are nanoseconds."""

    #: place in the order of execution, from 0
    position: int
    #: text of the Op
    op: str
    #: class of the Op, as Python prints it
    op_class: str
    #: equal for equal Ops
    op_key: str
    #: the Apply with its operands
    text: str
    #: texts of the types of the inputs
    inputs: tuple[str, ...]
    #: texts of the types of the outputs
    outputs: tuple[str, ...]
    #: for each input the position of the Apply that makes it; -1 for an input of the function
    reads: tuple[int, ...]
    #: the Applys of the user's program that it computes
    origins: tuple[OriginProfile, ...]
    #: whether it ran in C
    c: bool
    #: why it ran in Python; "" if it ran in C
    why: str
    #: number of runs; of an Apply inside a loop, in all steps
    count: int
    #: time of all runs, without profiling overhead, and without that of the Applys inside
    total: int
    #: time of the fastest run
    least: int
    #: time of the slowest run
    most: int
    #: (bucket, runs) pairs by rising bucket, see ``histogram``
    histogram: tuple[tuple[int, int], ...] = ()
    #: the inputs in the last call, None for a value that is no array; empty before the first call
    input_arrays: tuple[ArrayProfile | None, ...] = ()
    #: the outputs in the last call, likewise
    output_arrays: tuple[ArrayProfile | None, ...] = ()
    #: for each output 'c' (created), 'i' (overwrites an input) or 'v' (a view)
    shares: tuple[str, ...] = ()
    #: floating-point operations of the last call; None without an exact count
    flops: int | None = None
    #: rough nanoseconds that one thread needs for the functions of the last call, such as exp, by
    #: the table of their costs; None with an exact count of operations, and if it is not known
    work: float | None = None
    #: bytes that the last call must read and write, each once; None without an exact count
    traffic: int | None = None
    #: which of several algorithms the last call took; "" where there is one only
    algorithm: str = ""
    #: why it took that one
    why_algorithm: str = ""
    #: name of the device that it ran on, which took the times above; "" for the host
    device: str = ""
    #: whether it moves data between host and device
    transfer: bool = False
    #: time of the host to launch it on a device
    asked: int = 0
    #: time that the host waited for the device
    waited: int = 0
    #: why it ran on the host while other Applys ran on a device
    on_host: str = ""
    #: number, from 1, of the CUDA graph that launches it in calls without a profile; 0 for none
    graph: int = 0
    #: time of the first run in each process beyond the mean of later runs: cold code and memory,
    #: starting threads; not part of ``total``
    once: int = 0
    #: ``Op.profile_kind``: PRODUCT, FUSED, LOOP or ""; None in files that do not record it
    kind: str | None = None
    #: position of the Apply in whose graph it is, of a loop for example; -1 for the function's
    inside: int = -1
    #: texts of the Ops that it is inside, the outermost first, joined by `` > ``
    loop: str = ""
    #: time of the Applys inside; not part of ``total``, which has the overhead of the loop alone
    inner: int = 0
    #: whether ``total`` is an estimate: the loop around it ran as one C function, whose time is
    #: split among the Applys of its step by their rough cost
    estimated: bool = False

    def __repr__(self) -> str:
        ran = f"{self.count} runs" if self.count != 1 else "1 run"
        return f"<ApplyProfile {self.position} {self.title:.80}: {ran}, {self.total * 1e-9:.4g} s>"

    @property
    def name(self) -> str:
        """The Op, behind the loops that it is inside."""
        return f"{self.loop} > {self.op}" if self.loop else self.op

    @property
    def title(self) -> str:
        """The Apply with its operands, behind the loops that it is inside."""
        return f"{self.loop} > {self.text}" if self.loop else self.text

    @property
    def algorithm_note(self) -> str:
        """The algorithm and why it was taken, in a few words; "" where there is one only."""
        return f"{self.algorithm} ({self.why_algorithm})" if self.algorithm else ""

    @property
    def whole(self) -> int:
        """Time of all runs, with that of the Applys inside."""
        return self.total + self.inner

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The stable keys of the user's Applys that it computes."""
        return tuple(origin.key for origin in self.origins)

    @cached_property
    def lines(self) -> tuple[tuple[str, int], ...]:
        """The (file, line) pairs where these were written, each once."""
        return tuple(dict.fromkeys((o.file, o.line) for o in self.origins if o.file))

    @property
    def is_product(self) -> bool:
        """Whether it multiplies matrices."""
        return unrecorded.is_product(self.op_class) if self.kind is None else self.kind == PRODUCT

    @property
    def is_fused(self) -> bool:
        """Whether it is one loop for several operations."""
        return unrecorded.is_fused(self.op) if self.kind is None else self.kind == FUSED

    def quantile(self, share: float) -> float:
        """Return the nanoseconds that a share of the runs did not exceed, from the histogram.

        Within 7 % for times of at least 8 ns. Raises ValueError unless share is from 0 to 1.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"A share of calls is a number from 0 to 1, not {share!r}")
        return min(max(histogram.quantile(self.histogram, share), self.least), self.most)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def called(calls: int, ns: float) -> str:
    """Return the number of calls and their seconds, for the repr of a profile."""
    return f"{_counted(calls, 'call')}, {ns * 1e-9:.4g} s"


#: how many functions the repr of a profile names
_NAMED = 4


def named(message: str | None, functions: Sequence[str]) -> str:
    """Return the name of a profile and those of its functions, for its repr."""
    names = ", ".join(f"{name:.40}" for name in functions[:_NAMED])
    more = len(functions) - _NAMED
    every = f"{names} and {more} more" if more > 0 else names or "no function"
    return f"{message:.80} ({every})" if message and [message] != [*functions] else every


def whole_ns(seconds: float) -> float:
    """Return seconds rounded to whole nanoseconds, so that sums do not depend on their order."""
    return round(seconds, 9)


@dataclass(frozen=True)
class CompileProfile:
    """Seconds that compiling a function took, in whole nanoseconds."""

    #: all of it
    total: float = 0.0
    #: rewriting by another library that the graph is from
    library: float = 0.0
    #: from that library's graph to opwise's
    translation: float = 0.0
    #: rewriting the graph
    optimizer: float = 0.0
    #: validating the graph; part of ``optimizer``
    validate: float = 0.0
    #: from the rewritten graph to the VM
    linker: float = 0.0
    #: choosing and preparing what runs each Apply; part of ``linker``
    thunks: float = 0.0
    #: waiting for the C compiler; part of ``linker``
    compiler: float = 0.0
    #: loading kernels; part of ``linker``
    load: float = 0.0
    #: whether the kernels came from the cache; None for a function without kernels
    cached: bool | None = None
    #: whether the rewritten graph came from the cache; None if that is not known
    graph_cached: bool | None = None
    #: (text, seconds) of the Applys that took longest to prepare
    slowest: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class CallProfile:
    """One call in detail; times are nanoseconds."""

    #: which call of the function, from 1
    number: int
    #: when its first Apply began, since an arbitrary moment that a process's functions share
    start_ns: int
    #: time of each Apply, in all steps if it is inside a loop
    apply_ns: tuple[int, ...]

    @property
    def ns(self) -> int:
        """Time in all Applys."""
        return sum(self.apply_ns)


@dataclass(frozen=True)
class FunctionProfile:
    """What was recorded of one function; times are nanoseconds."""

    name: str
    #: its Applys in the order of execution, then those of the steps of its loops
    applys: tuple[ApplyProfile, ...]
    #: number of calls, those that raised included
    calls: int
    #: time in all calls
    call_ns: int
    #: time in the VM; part of ``call_ns``
    fn_ns: int
    #: time of the first calls, one in each of ``first_calls`` processes
    first_call_ns: int
    compile: CompileProfile
    #: time spent on timing Applys; part of ``fn_ns``, in the time of no Apply
    timing_ns: int = 0
    #: number of processes whose first call was recorded; 0 if first calls were ignored
    first_calls: int = 1
    #: number of calls that raised
    failed: int = 0
    #: number of calls, before all others, that ran built-in loops instead of compiled kernels
    built_in_calls: int = 0
    #: the first calls and the slowest ones
    detail: tuple[CallProfile, ...] = ()
    #: the record of the optimizer as plain data; None unless asked for
    rewrites: dict[str, Any] | None = None
    #: memory of the last call; None unless asked for
    memory: MemoryProfile | None = None

    def __repr__(self) -> str:
        return (
            f"<FunctionProfile {self.name:.80}: {_counted(len(self.applys), 'Apply')}, "
            f"{called(self.calls, self.call_ns)}>"
        )

    @property
    def thunk_ns(self) -> int:
        """Time in all Applys."""
        return sum(a.total for a in self.applys)

    @property
    def own_applys(self) -> list[ApplyProfile]:
        """Its Applys that are not inside a loop."""
        return [a for a in self.applys if a.inside < 0]

    @property
    def once_ns(self) -> int:
        """Time of first runs of Applys beyond later ones."""
        return sum(a.once for a in self.applys)


@dataclass(frozen=True)
class ProgramProfile:
    """Where the main thread of a program was, by samples; times are nanoseconds."""

    #: from one sample to the next, at least
    period_ns: int
    #: when sampling began, as ``CallProfile.start_ns``
    start_ns: int
    #: from the start of the process until then; 0 if unknown
    before_ns: int
    #: (key of a line in ``ProfileData.frames``, "" for none; time outside calls of functions that
    #: were profiled; time in these calls) of each stack
    stacks: tuple[tuple[str, int, int], ...] = ()
    #: the time line, without gaps: (place in ``stacks`` of what took most of a stretch, time
    #: outside calls of functions, time in them)
    stretches: tuple[tuple[int, int, int], ...] = ()

    @property
    def ns(self) -> int:
        """Time of all samples."""
        return sum(rest + called for _, rest, called in self.stacks)


@dataclass(frozen=True, eq=False)
class ProfileData:
    """What was recorded of several functions under one name.

    Equal to any other profile, of a subclass too, with the same data.
    """

    functions: tuple[FunctionProfile, ...] = ()
    #: the name that it is printed under
    message: str = ""
    #: program, date, versions and flags of the process; ``merged`` lists those of several runs
    environment: dict[str, Any] = field(default_factory=dict)
    #: text of the user's lines, by ``file:line``
    sources: dict[str, str] = field(default_factory=dict)
    #: peak rates of the hardware that it ran on; None if never measured
    machine: MachineLimits | None = None
    version: int = VERSION
    #: (name, peak rates) of each device that was measured
    devices: tuple[tuple[str, MachineLimits], ...] = ()
    #: the calls of the program that wrote the Applys, or were sampled, by key; equal calls have
    #: equal keys
    frames: dict[str, CallFrame] = field(default_factory=dict, metadata=LEFT_OUT)
    #: where the program was meanwhile; None unless it was sampled
    program: ProgramProfile | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProfileData) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # environments are dicts

    def __repr__(self) -> str:
        of = named(self.message, [f.name for f in self.functions])
        calls, ns = (sum(getattr(f, name) for f in self.functions) for name in ("calls", "call_ns"))
        return f"<{type(self).__name__} of {of}: {called(calls, ns)}>"

    @property
    def environments(self) -> list[dict[str, Any]]:
        """The environment of each run that was merged into this profile; of one run its own."""
        merged: list[dict[str, Any]] = self.environment.get("merged", [self.environment])
        return merged

    @property
    def local_ns(self) -> int:
        """Nanoseconds in the Applys of all functions."""
        return sum(f.thunk_ns for f in self.functions)

    @property
    def applys(self) -> list[ApplyProfile]:
        """All Applys of all functions."""
        return [a for f in self.functions for a in f.applys]
