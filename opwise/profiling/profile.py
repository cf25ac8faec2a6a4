"""Profile: what was recorded of functions, as plain data. Nothing here is alive or prints.

``snapshot`` (profiling/recorder.py) makes a Profile; sums are in ``aggregate``, differences in
``compare``, texts in the report modules. Times are nanoseconds unless told.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields

from opwise.profiling.memory import Live, MemoryProfile

#: version of the JSON form
VERSION = 2


@dataclass(frozen=True)
class ArrayProfile:
    """An array as it was in the last call: strides and bytes are those of all its elements."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class ApplyProfile:
    """What was recorded of one Apply of one function.

    position: in the order of execution. op: text of the Op; op_class: its class, as Python prints
    it; op_key: equal for equal Ops. text: the Apply with its operands. inputs, outputs: texts of
    the types. keys: stable keys of the user's Applys that it computes; lines: where these were
    written. c: whether it ran in C; why: if not, why. count, total, least, most: calls and
    nanoseconds. histogram: how many calls took below 2**b nanoseconds but not below 2**(b-1), by b.
    input_arrays, output_arrays: what they were in the last call, None for what is no array; empty
    before there was one. shares: for each output 'c' (created), 'i' (overwrites an input) or 'v' (a
    view). flops: floating-point operations of the last call, None where there is no exact count.
    """

    position: int
    op: str
    op_class: str
    op_key: str
    text: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    keys: tuple[str, ...]
    lines: tuple[tuple[str, int], ...]
    c: bool
    why: str
    count: int
    total: int
    least: int
    most: int
    histogram: tuple[int, ...] = ()
    input_arrays: tuple[ArrayProfile | None, ...] = ()
    output_arrays: tuple[ArrayProfile | None, ...] = ()
    shares: tuple[str, ...] = ()
    flops: int | None = None


@dataclass(frozen=True)
class CompileProfile:
    """Seconds that it took to make a function.

    total: all of it. optimizer: rewriting the graph, validate within that. linker: from the graph
    to the machine; within that, thunks: choosing and preparing what runs each Apply; compiler:
    waiting for it; load: loading kernels. cached: whether kernels came from the cache; None where
    there are none. slowest: the Applys that took longest to prepare, with seconds.
    """

    total: float = 0.0
    optimizer: float = 0.0
    validate: float = 0.0
    linker: float = 0.0
    thunks: float = 0.0
    compiler: float = 0.0
    load: float = 0.0
    cached: bool | None = None
    slowest: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class FunctionProfile:
    """What was recorded of one function.

    calls: of the function; call_ns: nanoseconds in them; fn_ns: of these in the machine.
    first_call_ns: of the first call. rewrites: the record of the optimizer as plain data, or None.
    memory: what lived in the last call, or None where that was not asked for.
    """

    name: str
    applys: tuple[ApplyProfile, ...]
    calls: int
    call_ns: int
    fn_ns: int
    first_call_ns: int
    compile: CompileProfile
    rewrites: dict | None = None
    memory: MemoryProfile | None = None

    @property
    def thunk_ns(self):
        """Nanoseconds in all Applys."""
        return sum(a.total for a in self.applys)


@dataclass(frozen=True)
class Profile:
    """What was recorded of several functions under one name."""

    functions: tuple[FunctionProfile, ...] = ()
    message: str = ""
    environment: dict = field(default_factory=dict)
    version: int = VERSION

    @property
    def local_ns(self):
        """Nanoseconds in the Applys of all functions."""
        return sum(f.thunk_ns for f in self.functions)

    @property
    def applys(self):
        """All Applys of all functions."""
        return [a for f in self.functions for a in f.applys]

    def to_json(self):
        """Return the profile as JSON text; ``from_json`` gives an equal Profile."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text):
        """Return the Profile of a JSON text. Raises ValueError for another version."""
        data = json.loads(text)
        if data.get("version") != VERSION:
            raise ValueError(
                f"This profile has version {data.get('version')}; this opwise reads version "
                f"{VERSION}."
            )
        functions = tuple(
            _build(
                FunctionProfile,
                f,
                applys=tuple(map(_apply, f["applys"])),
                compile=_build(CompileProfile, f["compile"]),
                memory=_memory(f["memory"]),
            )
            for f in data["functions"]
        )
        return _build(cls, data, functions=functions)


def _apply(data):
    def arrays(found):
        return tuple(None if a is None else _build(ArrayProfile, a) for a in found)

    return _build(
        ApplyProfile,
        data,
        input_arrays=arrays(data["input_arrays"]),
        output_arrays=arrays(data["output_arrays"]),
    )


def _memory(data):
    if data is None:
        return None
    return _build(MemoryProfile, data, live=tuple(_build(Live, one) for one in data["live"]))


def _build(cls, data, **replaced):
    values = {f.name: _tuples(data[f.name]) for f in fields(cls) if f.name in data}
    values.update(replaced)
    return cls(**values)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
