"""One run of a function with traced values: what it found out, and what it demanded to know."""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from opwise import tensor as T
from opwise.errors import TracingError
from opwise.graph.provenance import is_internal
from opwise.tensor.reduce import accumulate_as_numpy

if TYPE_CHECKING:
    from types import FrameType


class NeedsState(BaseException):
    """The function changes what it has read from outside: the value is to be an argument of it.

    No ``except`` of the program may catch it: the function is traced again.
    """

    def __init__(self, owner: Any, name: Any) -> None:
        super().__init__(name)
        self.place = owner, name


class Demand(NamedTuple):
    """Something that the function needed to know of its arguments while it was traced."""

    #: a Python expression over the names of the arguments' leaves; a signature holds where it is
    #: true
    text: str
    #: the file and the line of the user's program that needed it
    file: str
    line: int

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.text}  (line {self.line}: {source})"


@dataclass
class Room:
    """How many items a call may add to a list.

    variable: the number. text: a Python expression for it over the arguments; None if only a call
    can tell: then it begins with a guess, and is made again with more room.
    """

    variable: Any
    text: str | None = None


@dataclass
class Trace:
    """What one run of a function with traced values has found."""

    #: {expression: Demand}, in the order in which they were made
    demands: dict[str, Demand] = field(default_factory=dict)
    #: expressions that say that arguments have these lengths, and are these numbers
    exact: list[str] = field(default_factory=list)
    #: expressions that hold for these arguments and that the program may rely on: lengths other
    #: than 1. A call for which one does not hold fails, and is then traced again
    assumed: set[str] = field(default_factory=set)
    #: {id of a function with ``lru_cache``: {its arguments: what it has returned}}
    memos: dict[int, dict[Any, Any]] = field(default_factory=dict)
    #: counts the writes to arrays; loops and branches see by it what they change
    written: list[Any] = field(default_factory=list)
    #: parts that run in numpy, as (file, line, what)
    fallbacks: list[tuple[str, int, str]] = field(default_factory=list)
    #: {an expression that says that an argument lies in C's order: whether it does}
    orders: dict[str, bool] = field(default_factory=dict)
    #: when each of the branches and loops began, of those that are being traced and may not run
    #: (as serials of memories): errors that depend on the arguments of this call must not be raised
    #: in them
    speculative: list[int] = field(default_factory=list)
    #: the conditions of the branches that are being traced, and that calls decide
    conditions: list[Any] = field(default_factory=list)
    #: how many branches are being traced
    branches: int = 0
    #: whether what branches write is joined, element by element. A choice between arrays copies one
    #: of them in each step, where no C function runs the steps
    joins: bool = False
    #: how many choices have been made that compute one of two branches
    choices: int = 0
    #: how many Generators the function has made
    generators: int = 0
    #: {a function that is being traced: how many calls of it}
    calls: dict[Any, int] = field(default_factory=dict)
    #: how many calls of functions by themselves have been traced
    nested: int = 0
    #: {what decides the result of such a call: (the result, the arguments)}
    returned: dict[Any, Any] = field(default_factory=dict)
    #: how many calls of functions by themselves stand in branches that values decide
    deeper: int = 0
    #: how many loops around what is being traced become loops of opwise
    loops: int = 0
    #: {a condition that is an ``and`` or ``or``: (whether it is an ``and``, its parts)}
    lazy: dict[Any, tuple[bool, Any, Any]] = field(default_factory=dict)

    #: {the variable of a Python number in a step of a loop: its value before the loop}
    weak: dict[Any, Any] = field(default_factory=dict)
    #: {id of an array that the function holds: (the array, its traced array)}
    captured: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    #: {(id of an object, attribute or key): (the object, that, the value)} for data that the
    #: function reads from globals, closures and objects; they are conditions of the signature
    reads: dict[tuple[int, Any], tuple[Any, Any, Any]] = field(default_factory=dict)

    #: {(id of an object, attribute or key): the traced value}, for what the function reads from
    #: outside and changes
    state: dict[tuple[int, Any], Any] = field(default_factory=dict)
    #: {id of an array among them: its traced array}
    state_arrays: dict[int, Any] = field(default_factory=dict)
    #: {(id of an object, attribute): (the object, that, its value before)} for attributes that the
    #: function has set
    sets: dict[tuple[int, str], tuple[Any, str, Any]] = field(default_factory=dict)
    #: {id of a list or dict that the function has read from outside: (it, what was in it)}
    outside: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    #: {id: an object that the function has made, or that stands for an argument}
    own: dict[int, Any] = field(default_factory=dict)
    #: {id of an object that the function has made: when, as a serial of memories}
    births: dict[int, int] = field(default_factory=dict)
    #: the memory of a bool: whether a call is to run in Python, because values in arrays lead to an
    #: error of the program, or to a result of another type
    raised: Any = None
    #: the places in the program where a test is taken not to hold
    denied: frozenset[Any] = frozenset()
    #: the places of the tests that were taken to hold, or not to, in the order in which they were
    #: met
    guesses: list[Any] = field(default_factory=list)
    #: the memory of an int: the number of the first guess that is wrong, from 1; 0 if none is
    missed: Any = None
    #: the numbers of the steps of the loops that are written out around what is traced
    steps: list[int] = field(default_factory=list)
    #: the memory of a bool: whether a list has got more items than there was room for
    crowded: Any = None
    #: how many items may be added to each list that grows
    rooms: list[Room] = field(default_factory=list)
    #: the memories of arrays that are items of lists, too, whose items calls decide
    shared: list[Any] = field(default_factory=list)
    #: (list, its memory, its room) of the lists that statements make longer
    growing: list[tuple[Any, Any, Room]] = field(default_factory=list)
    #: classes of errors that the program handles itself
    handled: list[type[BaseException]] = field(default_factory=list)

    @contextmanager
    def calling(self, function: Any) -> Iterator[None]:
        """Note that a function is being traced."""
        self.calls[function] = self.calls.get(function, 0) + 1
        try:
            yield
        finally:
            self.calls[function] -= 1

    def condition(self) -> Any:
        """Return the condition of what is being traced: a bool variable, or None if there is none.

        One of an outer branch is part of it.
        """
        return functools.reduce(T.and_, self.conditions) if self.conditions else None

    def restore(self) -> None:
        """Give objects outside the attributes and items that they had."""
        for owner, name, before in self.sets.values():
            if before is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        for container, before in self.outside.values():
            if not same_items(container, before):
                container.clear()
                (container.update if isinstance(container, dict) else container.extend)(before)

    def demand(self, text: str) -> None:
        """Make a Python expression over the arguments a condition of the signature."""
        if text not in self.demands:
            self.demands[text] = Demand(text, *user_line())


#: the value of an attribute that an object had not
MISSING = object()


def same_items(a: Any, b: Any) -> bool:
    """Return whether lists or dicts hold the same objects, or equal numbers, in the same order."""
    if len(a) != len(b):
        return False
    if isinstance(a, dict) and list(a) != list(b):
        return False
    pairs = (
        zip(a.values(), b.values(), strict=True) if isinstance(a, dict) else zip(a, b, strict=True)
    )
    return all(x is y or (type(x) is type(y) and type(x) in _EQUAL and x == y) for x, y in pairs)


#: types of which equal values are the same
_EQUAL = (int, float, complex, str, bool)

_current: ContextVar[Trace | None] = ContextVar("opwise_trace", default=None)
#: current() -> the Trace of the function that is being traced in this thread, or None
current = _current.get


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make a Trace the current one within a ``with`` block."""
    token, narrow = _current.set(trace), accumulate_as_numpy.set(True)
    try:
        yield trace
    finally:
        accumulate_as_numpy.reset(narrow)
        _current.reset(token)


def demand(text: str) -> None:
    """Make an expression a condition of the current signature."""
    trace = current()
    if trace is not None:
        trace.demand(text)


def assume(text: str) -> None:
    """Note an expression on which the program relies, and whose failure is an error of its own."""
    trace = current()
    if trace is not None:
        trace.assumed.add(text)


def is_speculative() -> bool:
    """Return whether what is traced may not run for the present arguments."""
    trace = current()
    return trace is not None and bool(trace.speculative)


def recurs() -> bool:
    """Return whether a function that is being traced has called itself."""
    trace = current()
    return trace is not None and any(count > 1 for count in trace.calls.values())


def user_frame() -> FrameType | None:
    """Return the innermost frame of the user's program, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code) and "/numpy/" not in code.co_filename:
            return frame
        frame = frame.f_back
    return None


def user_place() -> tuple[Any, ...]:
    """Return what tells one place of the program, as it is reached now, from another."""
    found: list[Any] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame.f_code):
            found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_lasti))
        elif frame.f_code.co_name == "_traced_with":
            break
        frame = frame.f_back
    trace = current()
    return (*found, *(() if trace is None else trace.steps))


def user_line() -> tuple[str, int]:
    """Return (file, line) of the innermost frame of the user's program."""
    frame = user_frame()
    return ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def untraceable(what: str, remedy: str) -> TracingError:
    """Return the error for something that cannot be traced, with the user's line."""
    file, line = user_line()
    source = linecache.getline(file, line).strip()
    where = f'\n  File "{file}", line {line}' + (f"\n    {source}" if source else "")
    return TracingError(f"{what}{where}\n{remedy}")
