"""Where the user's program made each Apply, and a stable key of what it computes.

Frames are kept as (code, instruction) pairs; Applys below the same callers share a trace, which
costs a fraction of a microsecond for each (``callstack.c``). Line numbers are computed on request.
Keys are the same in every process.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from opwise.config import config
from opwise.graph import callstack

if TYPE_CHECKING:
    from opwise.graph.apply import Apply
    from opwise.graph.variable import Variable

#: a frame as it is recorded: the code object and the offset of the instruction in bytes
Frame = tuple[CodeType, int]
#: a frame as it is shown: file, line number, function, and the text of the line
ResolvedFrame = tuple[str, int, str, str]
#: where something was made: all recorded frames, innermost first; or, as read from a pickle, some
#: resolved frames, outermost first
Trace = Sequence[Any]

#: False while rewrites run: the Applys that they make inherit the origins of those they replace
_recording: ContextVar[bool] = ContextVar("opwise_recording", default=True)
#: recording() -> whether what is made gets a trace of its own: True unless rewrites run
recording = _recording.get
#: the trace of all Applys that one call makes; None: each records its own
_common_trace: ContextVar[Trace | None] = ContextVar("opwise_common_trace", default=None)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PYTHON = os.path.dirname(os.__file__)
_COMPAT = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "theano") + os.sep
#: cache of ``is_internal``
_internal: dict[CodeType, bool] = {}


def is_internal(code: CodeType) -> bool:
    """Return whether a code object belongs to the packages opwise or theano."""
    known = _internal.get(code)
    if known is None:
        filename = code.co_filename
        known = _internal[code] = filename.startswith((_PACKAGE, _COMPAT)) or filename.startswith(
            "<frozen "
        )
    return known


def is_of_user(function: Any) -> bool:
    """Return whether a function is Python code outside opwise and theano."""
    code = getattr(function, "__code__", None)
    return code is not None and not is_internal(code)


def capture() -> Trace:
    """Return the frames outside opwise, innermost first.

    There are none if ``config.traceback.limit`` is 0.
    """
    common = _common_trace.get()
    if common is not None:
        return common
    return callstack.capture(is_internal) if config.traceback.limit else ()


@contextmanager
def rewriting() -> Iterator[None]:
    """Record no traces within a ``with`` block, where new Applys inherit their origins."""
    token = _recording.set(False)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def located(trace: Trace | None) -> Iterator[None]:
    """Give all Applys made within a ``with`` block the same trace; None: each its own, as usual."""
    token = _common_trace.set(trace)
    try:
        yield
    finally:
        _common_trace.reset(token)


class Context(NamedTuple):
    """The scope of an Apply, and of what it computes the gradient."""

    #: names of the scopes, joined by ``/``; '' outside all scopes
    scope: str = ""
    #: the trace of the Apply of which it computes the gradient; None for other Applys
    gradient_of: Trace | None = None

    def resolved(self) -> Context:
        """Return a copy without code objects, which cannot be pickled."""
        return Context(self.scope, tuple(resolve(self.gradient_of)) or None)


#: the Context of new Applys; None outside all scopes
context: ContextVar[Context | None] = ContextVar("opwise_context", default=None)


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Name a part of the program: ``with scope("layer1"):``, or as a decorator.

    In profiles, every Apply made inside belongs to the scope, and every Apply of its gradient to
    its part ``grad``. The names of nested scopes are joined by ``/``. Raises TypeError if the name
    is not a string, and ValueError if it is empty.
    """
    if not isinstance(name, str):
        raise TypeError(f"The name of a scope must be a string, not {name!r}")
    if not name.strip("/"):
        raise ValueError(f"The name of a scope must not be empty: {name!r}")
    outer = context.get()
    path = name.strip("/")
    if outer is not None and outer.scope:
        path = f"{outer.scope}/{path}"
    token = context.set(Context(path, outer and outer.gradient_of))
    try:
        yield
    finally:
        context.reset(token)


@contextmanager
def differentiating(node: Apply | None) -> Iterator[None]:
    """Put Applys made within a ``with`` block into the scope of ``node``, as its gradient.

    node: None for the gradient of a variable that no Apply made.
    """
    own, outer = (node and node.context) or Context(), context.get() or Context()
    path = own.scope or outer.scope
    if path and path.rpartition("/")[2] != "grad":
        path += "/grad"
    trace = None if node is None else node.trace
    token = context.set(Context(path, own.gradient_of or trace))
    try:
        yield
    finally:
        context.reset(token)


def _line(code: CodeType, lasti: int) -> int:
    starts, lines = _table(code)
    return lines[bisect_right(starts, lasti) - 1]


@lru_cache(maxsize=1024)
def _table(code: CodeType) -> tuple[list[int], list[int]]:
    """Return (offsets of the instructions at which lines start, the numbers of these lines)."""
    starts, lines = [0], [code.co_firstlineno]
    for start, end, line in code.co_lines():
        if line is not None:
            starts += start, end
            lines += line, code.co_firstlineno
    return starts, lines


def frames_of(trace: Trace | None) -> list[tuple[str, int, str]]:
    """Return (file, line number, function) of all frames of a trace, outermost first."""
    if not trace or len(trace[0]) != 2:
        return [frame[:3] for frame in trace or ()]
    return [frame_of(code, at) for code, at in reversed(trace)]


def frame_of(code: CodeType, offset: int) -> tuple[str, int, str]:
    """Return (file, line number, function) of a recorded frame."""
    return code.co_filename, _line(code, offset), code.co_name


def resolve(trace: Trace | None) -> list[ResolvedFrame]:
    """Return the innermost ``config.traceback.limit`` frames as they are shown, outermost first.

    Return all of them if the flag is negative.
    """
    limit = config.traceback.limit
    if trace and limit >= 0:
        recorded = len(trace[0]) == 2
        trace = trace[:limit] if recorded else trace[max(len(trace) - limit, 0) :]
    if not trace or len(trace[0]) != 2:
        return list(trace or ())
    return [
        (file, line, function, linecache.getline(file, line).strip())
        for file, line, function in frames_of(trace)
    ]


def library_of(file: str) -> str:
    """Return the name of the library that a file belongs to; '' for one of the user's program.

    Libraries are what the flag ``traceback.libraries`` says.
    """
    return _library_of(file, config.traceback.libraries)


@lru_cache(maxsize=4096)
def _library_of(file: str, libraries: str) -> str:
    for folder in _folders(libraries):
        if file.startswith(folder):
            if folder not in _folders("installed"):
                return os.path.basename(folder[:-1])
            return file[len(folder) :].split(os.sep)[0].removesuffix(".py")
    return "python" if file.startswith("<frozen ") else ""


@lru_cache(maxsize=16)
def _folders(libraries: str) -> tuple[str, ...]:
    """Return the folders that the flag names, the deepest first, each with a separator behind it.

    ``installed`` stands for the folders of installed packages, and that of Python's own.
    """
    found: list[str] = []
    for name in filter(None, libraries.split(os.pathsep)):
        if name == "installed":
            import site  # imported already, unless Python runs with -S

            users = site.getusersitepackages() if site.ENABLE_USER_SITE else None
            found += [*site.getsitepackages(), *([users] if users else []), _PYTHON]
        else:
            found.append(os.path.abspath(os.path.expanduser(name)))
    return tuple(sorted((folder.rstrip(os.sep) + os.sep for folder in found), key=len)[::-1])


def user_line(node: Apply) -> tuple[str, int] | None:
    """Return (filename, line number) of the user's line that made an Apply, or None."""
    return line_of(node.trace)


def line_of(trace: Trace | None) -> tuple[str, int] | None:
    """Return (filename, line number) of the innermost frame outside libraries, or None.

    If all frames are in libraries, return the innermost one.
    """
    if not trace:
        return None
    if len(trace[0]) == 2:
        code, at = next((f for f in trace if not library_of(f[0].co_filename)), trace[0])
        return code.co_filename, _line(code, at)
    file, line, *_ = next((f for f in reversed(trace) if not library_of(f[0])), trace[-1])
    return file, line


def gradient_line(node: Apply) -> tuple[str, int] | None:
    """Return (filename, line number) of the code of which an Apply is the gradient, or None."""
    return line_of(node.context.gradient_of) if node.context is not None else None


class WarningCount:
    """How many warnings a block has led to."""

    number = 0


#: the counts of the blocks that this thread is in
_counts: ContextVar[tuple[WarningCount, ...]] = ContextVar("opwise_warning_counts", default=())


@contextmanager
def counting_warnings() -> Iterator[WarningCount]:
    """Count the warnings that ``warn`` issues, and others note, within a ``with`` block."""
    count = WarningCount()
    token = _counts.set((*_counts.get(), count))
    try:
        yield count
    finally:
        _counts.reset(token)


def note_warning() -> None:
    """Count a warning that goes elsewhere: to a log, or nowhere because of a flag."""
    for count in _counts.get():
        count.number += 1


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the line of the user's program that led here."""
    note_warning()
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_internal(frame.f_code):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def format_trace(trace: Trace | None) -> str:
    """Return a trace in the form of a Python traceback; '' if it is None or empty."""
    lines = []
    for filename, line, function, text in resolve(trace):
        lines.append(f'  File "{filename}", line {line}, in {function}\n')
        if text:
            lines.append(f"    {text}\n")
    return "".join(lines)


def created_at(trace: Trace | None) -> str:
    """Return the paragraph of an error that shows where a variable was made, or ''."""
    text = format_trace(trace)
    return f"\nBacktrace when that variable is created:\n\n{text}" if text else ""


def made_by(node: Apply) -> str:
    """Return the paragraph of an error that shows where an Apply was made, or ''."""
    trace = format_trace(node.trace)
    return f"\nIt was made at:\n{trace}" if trace else ""


def union(*groups: tuple[Apply, ...]) -> tuple[Apply, ...]:
    """Return the Applys of several tuples of origins, each once, in the order of first occurrence.

    A tuple that is given several times, such as that of a long sum's Applys, is read once.
    """
    distinct = {id(group): group for group in groups if group}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    merged: dict[Apply, None] = {}
    for group in distinct.values():
        for node in group:
            merged[node] = None
    return tuple(merged)


class Keys:
    """Stable keys of the user's Applys and variables.

    A key is a hash of what an Apply computes; Applys that compute the same are numbered.
    """

    def __init__(self) -> None:
        self._of_variable: dict[Variable, str] = {}
        self._of_node: dict[Apply, str] = {}
        #: how many Applys had each hash so far
        self._seen: dict[str, int] = {}
        #: texts of Ops and types by id; each is kept alive, so that its id stays its own
        self._texts: dict[int, tuple[object, str]] = {}

    def text(self, thing: object) -> str:
        """Return the text of an Op or a type, which many Applys of a graph share."""
        found = self._texts.get(id(thing))
        if found is None:
            found = self._texts[id(thing)] = thing, text_of(thing)
        return found[1]

    def variable(self, var: Variable) -> str:
        """Return the key of a variable, a hash of its Apply and index.

        The key of a variable without an owner is a hash of its type and its value or name.
        """
        key = self._of_variable.get(var)
        if key is None:
            if var.owner is not None:
                self._compute(var.owner)
                return self._of_variable[var]
            key = self._of_variable[var] = digest("leaf", _leaf_text(var))
        return key

    def node(self, node: Apply) -> str:
        """Return the key of an Apply; Applys that compute the same have different numbers."""
        key = self._of_node.get(node)
        if key is None:
            self._compute(node)
            key = self._of_node[node]
        return key

    def _compute(self, root: Apply) -> None:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self._of_node:
                stack.pop()
                continue
            pending = [
                v.owner for v in node.inputs if v.owner is not None and v.owner not in self._of_node
            ]
            if pending:
                stack.extend(pending)
                continue
            stack.pop()
            content = digest(
                self.text(node.op),
                *[self.variable(v) for v in node.inputs],
                *[self.text(o.type) for o in node.outputs],
            )
            number = self._seen.get(content, 0)
            self._seen[content] = number + 1
            self._of_node[node] = f"{content}.{number}"
            for out in node.outputs:
                # without the number, so that Applys with equal operands are equal
                self._of_variable[out] = digest(content, str(out.index))


def _leaf_text(var: Variable) -> str:
    data = getattr(var, "data", None)
    if data is not None:
        to_bytes = getattr(data, "tobytes", None)
        value = _hash(to_bytes()) if to_bytes else repr(data)
        return f"{text_of(var.type)} {value}"
    return f"{text_of(var.type)} {var.name or ''}"


def text_of(thing: object) -> str:
    """Return ``str(thing)``, or the name of its class if a user's ``__str__`` raises."""
    try:
        return str(thing)
    except Exception:  # a user's class may raise any exception; the profile is kept nevertheless
        return f"<{type(thing).__qualname__}>"


def digest(*parts: str) -> str:
    """Return a short hash of some texts."""
    return _hash("\0".join(parts).encode("utf-8", "surrogatepass"))


def _hash(data: bytes) -> str:
    import hashlib  # slower to import than most of opwise, and only profiles need keys

    return hashlib.blake2b(data, digest_size=8).hexdigest()
