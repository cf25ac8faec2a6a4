"""Profile: what was recorded of functions, as plain data. Nothing here is alive or prints.

``snapshot`` (profiling/recorder.py) makes a Profile; sums are in ``aggregate``, differences in
``compare``, texts in the report modules. Times are nanoseconds unless told.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from types import UnionType
from typing import get_args, get_origin, get_type_hints

from opwise.errors import ProfileFormatError
from opwise.profiling import histogram
from opwise.profiling.collection import no_collection
from opwise.profiling.files import printable, read_limited, write_whole
from opwise.profiling.memory import MemoryProfile
from opwise.profiling.profiled import Profiled
from opwise.profiling.roofline import Machine

#: what the JSON form calls itself, and its version
FORMAT = "opwise profile"
VERSION = 3


@dataclass(frozen=True)
class ArrayProfile:
    """An array as it was in the last call: strides and bytes are those of all its elements."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, order=True)
class OriginProfile:
    """An Apply of the user's program that another computes, alone or with others.

    key: equal for what computes the same, in every process. op: text of the Op. file, line: where
    it was written; "" and 0 where nobody knows. scope: names of the scopes around it, joined by
    ``/``. gradient_of: (file, line) of what it is the gradient of, or None. cost: roughly how many
    nanoseconds it takes for an element of its operands; by these the time of an Apply is divided
    among the origins that it computes.
    """

    key: str
    op: str
    file: str = ""
    line: int = 0
    scope: str = ""
    gradient_of: tuple[str, int] | None = None
    cost: float = 1.0


@dataclass(frozen=True)
class ApplyProfile:
    """What was recorded of one Apply of one function.

    position: in the order of execution. op: text of the Op; op_class: its class, as Python prints
    it; op_key: equal for equal Ops. text: the Apply with its operands. inputs, outputs: texts of
    the types. reads: for each input the position of the Apply that makes it, -1 for what is given.
    origins: the user's Applys that it computes. c: whether it ran in C; why: if not,
    why. count, total, least, most: calls and nanoseconds, without the time of reading the clock.
    once: nanoseconds that the first run of each process took beyond the mean of its later runs
    (code and memory touched for the first time, threads that start); not in the total. histogram:
    (bucket, calls) pairs, by the buckets of ``profiling/histogram.py``. input_arrays,
    output_arrays: what they were in the last call, None for what is no array; empty before there
    was one. shares: for each output 'c' (created), 'i' (overwrites an input) or 'v' (a view).
    flops: floating-point operations of the last call, None where there is no exact count.
    traffic: bytes that it must read and write, each once; None where that is not exact. device:
    the name of the device that it ran on, whose nanoseconds the times are; "" for the host.
    transfer: whether it moves data between both. asked, waited: nanoseconds that the host took to
    ask a device for it, and to wait for it. on_host: why it did not run on a device, where others
    did. graph: the number, from 1, of the CUDA graph that launches it where nothing is profiled.
    """

    position: int
    op: str
    op_class: str
    op_key: str
    text: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[int, ...]
    origins: tuple[OriginProfile, ...]
    c: bool
    why: str
    count: int
    total: int
    least: int
    most: int
    histogram: tuple[tuple[int, int], ...] = ()
    input_arrays: tuple[ArrayProfile | None, ...] = ()
    output_arrays: tuple[ArrayProfile | None, ...] = ()
    shares: tuple[str, ...] = ()
    flops: int | None = None
    traffic: int | None = None
    device: str = ""
    transfer: bool = False
    asked: int = 0
    waited: int = 0
    on_host: str = ""
    graph: int = 0
    once: int = 0

    @cached_property
    def keys(self):
        """The stable keys of the user's Applys that it computes."""
        return tuple(origin.key for origin in self.origins)

    @cached_property
    def lines(self):
        """The (file, line) pairs where these were written, each once."""
        return tuple(dict.fromkeys((o.file, o.line) for o in self.origins if o.file))

    def quantile(self, share):
        """Return the nanoseconds that a share of the calls did not exceed, as near as buckets tell.

        Within 7 % for times of 8 nanoseconds and more. Raises ValueError for a share beyond 0 to 1.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"A share of calls is a number from 0 to 1, not {share!r}")
        return min(max(histogram.quantile(self.histogram, share), self.least), self.most)


def whole(seconds):
    """Return seconds as whole nanoseconds, so that sums do not depend on their order."""
    return round(seconds, 9)


@dataclass(frozen=True)
class CompileProfile:
    """Seconds that it took to make a function, in whole nanoseconds.

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
class CallProfile:
    """One call in detail.

    number: which call of the function, from 1. start_ns: when its first Apply began, since an
    arbitrary moment that all functions of a process share. apply_ns: nanoseconds of each Apply.
    """

    number: int
    start_ns: int
    apply_ns: tuple[int, ...]

    @property
    def ns(self):
        """Nanoseconds in all Applys."""
        return sum(self.apply_ns)


@dataclass(frozen=True)
class FunctionProfile:
    """What was recorded of one function.

    calls: of the function; failed: of these that raised. call_ns: nanoseconds in them; fn_ns: of
    these in the machine. first_call_ns: of the first call, in each of first_calls processes; 0 of
    them where the first call was ignored. timing_ns: what it took to time the Applys, which is in
    fn_ns and not in their times. detail: the first calls and the slowest ones. rewrites: the record
    of the optimizer as plain data, or None. memory: what lived in the last call, or None where that
    was not asked for.
    """

    name: str
    applys: tuple[ApplyProfile, ...]
    calls: int
    call_ns: int
    fn_ns: int
    first_call_ns: int
    compile: CompileProfile
    timing_ns: int = 0
    first_calls: int = 1
    failed: int = 0
    detail: tuple[CallProfile, ...] = ()
    rewrites: dict | None = None
    memory: MemoryProfile | None = None

    @property
    def thunk_ns(self):
        """Nanoseconds in all Applys."""
        return sum(a.total for a in self.applys)

    @property
    def once_ns(self):
        """Nanoseconds that first runs of Applys took beyond later ones."""
        return sum(a.once for a in self.applys)


@dataclass(frozen=True)
class Profile(Profiled):
    """What was recorded of several functions under one name.

    sources: the text of the user's lines, by ``file:line``. machine: what the machine it ran on can
    do at best, or None where that was never measured. devices: pairs (name, what it can do at
    best), for the devices of which that was measured.
    """

    functions: tuple[FunctionProfile, ...] = ()
    message: str = ""
    environment: dict = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    machine: Machine | None = None
    version: int = VERSION
    devices: tuple[tuple[str, Machine], ...] = ()

    def profile(self):
        """Return the profile itself."""
        return self

    @property
    def environments(self):
        """The environment of each run that was merged into this profile; of one run its own."""
        return self.environment.get("merged", [self.environment])

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
        return json.dumps({"format": FORMAT, **vars(self)}, default=_plain, sort_keys=True)

    @classmethod
    def from_json(cls, text, source="The text"):
        """Return the Profile of a JSON text. source: what an error calls it.

        Raises ProfileFormatError for what is no profile of this version.
        """
        with no_collection():
            return cls._from_json(text, source)

    @classmethod
    def _from_json(cls, text, source):
        data = _parsed(text, source)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ProfileFormatError(f"{source} is not an opwise profile: {_WRITERS}.")
        if data.get("version") != VERSION:
            raise ProfileFormatError(
                f"{source} is a profile of version {data.get('version')!r:.40}; this opwise reads "
                f"version {VERSION}."
            )
        import fastjsonschema  # slow to import

        try:
            _validator()(data)
        except fastjsonschema.JsonSchemaValueException as error:
            raise ProfileFormatError(
                f"{source} is not a valid profile: {error.message:.200}"
            ) from None
        try:
            profile = _maker(cls)(data)
            _check(profile)
        except ValueError as error:
            raise ProfileFormatError(f"{source} is not a valid profile: {error}") from None
        return profile

    def save(self, path):
        """Write the profile to a file as JSON. A file of that name is replaced as a whole."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path):
        """Return the Profile that ``save`` wrote. Raises ProfileFormatError, or OSError.

        Refuses devices, pipes and files of more than ``files.MOST_BYTES`` bytes before reading.
        """
        try:
            text = read_limited(path).decode("utf-8")
        except ValueError as error:
            raise ProfileFormatError(f"{path} is not an opwise profile: {error}") from None
        return cls.from_json(text, str(path))


def _plain(value):
    """Return the fields of a dataclass as a dict, but for those that have their default value."""
    defaults, own = _defaults(type(value)), vars(value)
    return {
        name: own[name]
        for name in _names(type(value))
        if name not in defaults or own[name] != defaults[name]
    }


@cache
def _names(type_):
    return tuple(f.name for f in fields(type_))


@cache
def _defaults(type_):
    """Return {field: its default} of a dataclass: what files leave out."""
    return {f.name: f.default for f in fields(type_) if f.default is not MISSING}


_WRITERS = "`opwise run` and Profile.save write such files"


def _parsed(text, source):
    def refused(constant):
        raise ValueError(f"{constant} is no number of JSON")

    def whole_number(digits):
        if len(digits) > 300:
            raise ValueError(f"{digits[:20]}... is too large a number")
        return int(digits)

    def finite(number):
        value = float(number)
        if not math.isfinite(value):
            raise ValueError(f"{number[:40]} is too large a number")
        return value

    try:
        parse_int = whole_number if _HUGE.search(text) else None
        data = json.loads(text, parse_constant=refused, parse_float=finite, parse_int=parse_int)
        return _tame(data) if _SUSPECT.search(text) else data
    except json.JSONDecodeError as error:
        raise ProfileFormatError(
            f"{source} is not an opwise profile: it is not JSON (line {error.lineno}, column "
            f"{error.colno}); {_WRITERS}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise ProfileFormatError(f"{source} is not an opwise profile: {error}") from None


#: what may be an integer beyond all floats, with which nobody can compute
_HUGE = re.compile(r"[0-9]{300}")
#: what JSON writes for letters that move a cursor, hide or turn text; and letters beyond ASCII
_SUSPECT = re.compile(
    r"\\u(00[01189]|007f|200|202|206|feff|fff|d[89a-f])|\\[bfnrt]|[^\x00-\x7f]", re.I
)


def _tame(value):
    """Return plain data whose texts a terminal shows as they are: others are escaped."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_tame(key): _tame(part) for key, part in value.items()}
    return list(map(_tame, value)) if isinstance(value, list) else value


#: no program compiles for as long, and no process runs: sums of such times are numbers
_MOST_SECONDS = 1e12
_DTYPE = re.compile(r"bool|(u?int|float|complex)\d{1,3}")


def _check(profile):
    """Raise ValueError where what a schema cannot tell does not fit together."""
    _check_environment(profile.environment)
    for f in profile.functions:
        counts = [f.calls, f.failed, f.calls - f.failed, f.call_ns, f.fn_ns, f.timing_ns]
        counts += (f.first_call_ns, f.first_calls)
        for a in f.applys:
            counts += (a.count, a.total, a.least, a.most, a.flops or 0, a.traffic or 0)
            counts += (a.asked, a.waited, a.once, *(o.cost for o in a.origins))
            counts += (number for pair in a.histogram for number in pair)
            for array in (*a.input_arrays, *a.output_arrays):
                if array is not None:
                    counts += (array.bytes, *array.shape)
                    if not _DTYPE.fullmatch(array.dtype):
                        raise ValueError(f"{array.dtype[:40]!r} is no dtype")
                    if len(array.strides) != len(array.shape):
                        raise ValueError(
                            f"an array of Apply {a.position} of {f.name[:40]!r} has "
                            f"{len(array.shape)} dimensions and {len(array.strides)} strides"
                        )
        counts += (ns for call in f.detail for ns in (call.number, *call.apply_ns))
        if f.memory:
            counts += (*f.memory.timeline, f.memory.peak, *(one.bytes for one in f.memory.live))
            for part in (f.memory.host, f.memory.device):
                counts += vars(part).values() if part else ()
        if min(counts) < 0:
            raise ValueError(f"a count of {f.name[:40]!r} is below zero")
        if any(a.total and not a.count for a in f.applys):
            raise ValueError(f"an Apply of {f.name[:40]!r} has a time, but was never run")
        times = [v for v in vars(f.compile).values() if isinstance(v, float)]
        times += (seconds for _, seconds in f.compile.slowest)
        if not all(0 <= seconds <= _MOST_SECONDS for seconds in times):
            raise ValueError(f"a time of compiling {f.name[:40]!r} is below zero or far too long")
    _check_parts(profile)
    from opwise.profiling.reports import rewrites  # it reads Profiles

    try:
        rewrites.section(profile)
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError):
        raise ValueError("a record of the optimizer is not valid") from None
    machines = [machine for _, machine in profile.devices]
    for machine in [profile.machine, *machines]:
        if machine is not None:
            Machine.from_json(machine.to_json())


def _check_environment(environment):
    merged = environment.get("merged", [environment])
    for about in merged if isinstance(merged, list) else [None]:
        if not isinstance(about, dict) or any(isinstance(v, dict | list) for v in about.values()):
            raise ValueError("its environment is not that of processes")
        numbers = [name for name in about if name.startswith("seconds_")]
        for name in ("grad_seconds", "process", *numbers):
            value = about.get(name, 0)
            if not isinstance(value, int | float) or not abs(value) <= _MOST_SECONDS:
                raise ValueError(f"{name} of its environment is no such number")


def _check_parts(profile):
    """Raise ValueError where parts of a function are those of others."""
    for f in profile.functions:
        n = len(f.applys)
        positions = set(range(n))
        for k, a in enumerate(f.applys):
            if a.position != k:
                raise ValueError(f"Apply {k} of {f.name!r} has the position {a.position}")
            if not all(-1 <= position < k for position in a.reads):
                raise ValueError(f"Apply {k} of {f.name!r} reads what comes behind it")
            if len(a.output_arrays) != len(a.shares):
                raise ValueError(f"Apply {k} of {f.name!r} has {len(a.shares)} shares of memory")
        if any(len(call.apply_ns) != n for call in f.detail):
            raise ValueError(f"a call of {f.name!r} has times of other Applys")
        m = f.memory
        if m and not (
            len(m.timeline) == n and {m.at, *(one.position for one in m.live)} <= positions | {-1}
        ):
            raise ValueError(f"the memory of {f.name!r} is that of other Applys")


@cache
def _maker(type_):
    """Return the function that makes a value of a type hint out of plain data, None: it is one."""
    if is_dataclass(type_):
        return _dataclass_maker(type_)
    if get_origin(type_) is tuple:
        parts = [part for part in get_args(type_) if part is not Ellipsis]
        if set(parts) == {int}:
            return _integers
        makers = list(map(_maker, parts))
        if not any(makers):
            return tuple
        if get_args(type_)[-1] is Ellipsis:
            (make,) = makers
            return lambda value: tuple(map(make, value))
        return lambda value: tuple(
            make(v) if make else v for make, v in zip(makers, value, strict=True)
        )
    if get_origin(type_) is UnionType:
        make = _maker(get_args(type_)[0])
        return make and (lambda value: None if value is None else make(value))
    return {float: float, int: _integer}.get(type_)


def _integer(value):
    """Return an integer; ValueError for 3.0, which a schema takes for one."""
    if type(value) is not int:
        raise ValueError(f"{value!r} is no whole number")
    return value


def _integers(values):
    if values and set(map(type, values)) != {int}:
        raise ValueError(f"{values!r:.40} are not whole numbers")
    return tuple(values)


def _dataclass_maker(type_):
    hints, names, defaults = get_type_hints(type_), _names(type_), _defaults(type_)
    makers = [(name, _maker(hints[name])) for name in names]
    makers = [(name, make) for name, make in makers if make]

    def make(value):
        # what __init__ of a frozen dataclass does, field by field and slowly
        made = object.__new__(type_)
        attributes = vars(made)
        attributes.update(defaults)
        for name in names:
            if name in value:
                attributes[name] = value[name]
        for name, make in makers:
            if name in value:
                attributes[name] = make(value[name])
        return made

    return make


# --- the schema -----------------------------------------------------------------------------------

_LIMITS = {int: {"minimum": -(2**63), "maximum": 2**63 - 1}, str: {"maxLength": 1_000_000}}
_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", dict: "object"}


def schema():
    """Return the JSON schema (draft 7) of the files that profiles are kept in."""
    found = _schema(Profile)
    found["properties"] = {
        "format": {"const": FORMAT},
        **found["properties"],
        "version": {"const": VERSION},
    }
    found["required"] = ["format", *found["required"]]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"A profile of opwise, version {VERSION}",
        **found,
    }


def _schema(type_):
    if is_dataclass(type_):
        hints, names = get_type_hints(type_), _names(type_)
        return {
            "type": "object",
            "description": inspect.cleandoc(type_.__doc__),
            "properties": {name: _schema(hints[name]) for name in names},
            "required": [name for name in names if name not in _defaults(type_)],
        }
    if get_origin(type_) is tuple:
        parts = get_args(type_)
        if parts[-1] is Ellipsis:
            return {"type": "array", "items": _schema(parts[0])}
        return {
            "type": "array",
            "items": list(map(_schema, parts)),
            "minItems": len(parts),
            "maxItems": len(parts),
        }
    if get_origin(type_) is UnionType:
        found = _schema(get_args(type_)[0])
        # the words that say more hold for values of the first type alone
        return {**found, "type": [found["type"], "null"]}
    if get_origin(type_) is dict:
        return {"type": "object", "additionalProperties": _schema(get_args(type_)[1])}
    return {"type": _PLAIN[type_], **_LIMITS.get(type_, {})}


@cache
def _validator():
    import fastjsonschema  # slow to import

    return fastjsonschema.compile(schema())
