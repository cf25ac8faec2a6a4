"""Where in the user's program each Apply was written, and a stable key for what it computes.

Frames are kept as (code, instruction) pairs, which costs a fraction of a microsecond an Apply;
lines are looked up only when somebody asks. Keys hold nothing that differs between processes.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from bisect import bisect_right
from collections import namedtuple
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from opwise.config import config

#: where something was made, innermost first: (code object, instruction) pairs; as read from a
#: pickle outermost first: (file, line, function, text)
Trace = tuple[Any, ...]

#: False while rewrites run: what they make inherits its origins from what it replaces
_recording: ContextVar[bool] = ContextVar("opwise_recording", default=True)
#: the trace of everything that is made while one call makes many Applys; None: each has its own
_common_trace: ContextVar[Trace | None] = ContextVar("opwise_common_trace", default=None)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_COMPAT = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "theano") + os.sep
_internal: dict = {}


def is_internal(code):
    """Return whether a code object belongs to opwise or its compatibility package."""
    known = _internal.get(code)
    if known is None:
        filename = code.co_filename
        known = _internal[code] = filename.startswith((_PACKAGE, _COMPAT)) or filename.startswith(
            "<frozen "
        )
    return known


def recording() -> bool:
    """Return whether what is made gets a trace of its own: True unless rewrites run."""
    return _recording.get()


def capture() -> Trace:
    """Return the innermost ``config.traceback.limit`` frames outside opwise, innermost first.

    All of them if the flag is negative.
    """
    common = _common_trace.get()
    if common is not None:
        return common
    limit = config.traceback.limit
    if limit < 0:
        limit = sys.maxsize
    frames = []
    frame = sys._getframe(2)
    while frame is not None and len(frames) < limit:
        code = frame.f_code
        if not is_internal(code):
            frames.append((code, frame.f_lasti))
        frame = frame.f_back
    return tuple(frames)


@contextmanager
def rewriting():
    """Record no traces: what is made inside inherits its origins from what it replaces."""
    token = _recording.set(False)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def located(trace):
    """Give everything that is made inside the same trace; None: each its own, as usual."""
    token = _common_trace.set(trace)
    try:
        yield
    finally:
        _common_trace.reset(token)


class Context(namedtuple("Context", "scope gradient_of", defaults=("", None))):
    """What an Apply belongs to beside its line: a scope; the trace of what it is a gradient of."""

    __slots__ = ()

    def resolved(self):
        """Return the same without code objects, which cannot be pickled."""
        return Context(self.scope, tuple(resolve(self.gradient_of)) or None)


#: the Context of what is being made, None outside all scopes
context: ContextVar[Context | None] = ContextVar("opwise_context", default=None)


@contextmanager
def scope(name):
    """Name a part of the program: ``with scope("layer1"):``, or as a decorator.

    Every Apply made inside, and every Apply of its gradient, belongs to it in profiles. Scopes
    inside each other are joined by ``/``; gradients are in a part ``grad`` of their own. Raises
    TypeError and ValueError for a name that is no text, or empty.
    """
    if not isinstance(name, str):
        raise TypeError(f"The name of a scope is a text, not {name!r}")
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
def differentiating(node):
    """Have what is made inside belong to the scope of an Apply, as its gradient.

    node: None for what no Apply made.
    """
    own, outer = (node and node.context) or Context(), context.get() or Context()
    path = own.scope or outer.scope
    if path and path.rpartition("/")[2] != "grad":
        path += "/grad"
    token = context.set(Context(path, own.gradient_of or (node and node.trace)))
    try:
        yield
    finally:
        context.reset(token)


def _line(code, lasti):
    starts, lines = _table(code)
    return lines[bisect_right(starts, lasti) - 1]


@lru_cache(maxsize=1024)
def _table(code):
    """Return (where lines begin in the instructions of a code object, these lines)."""
    starts, lines = [0], [code.co_firstlineno]
    for start, end, line in code.co_lines():
        if line is not None:
            starts += start, end
            lines += line, code.co_firstlineno
    return starts, lines


def resolve(trace):
    """Return a trace as a list of (filename, line number, function, text), outermost first."""
    if not trace or len(trace[0]) != 2:
        return list(trace or ())
    resolved = []
    for code, lasti in reversed(trace):
        line = _line(code, lasti)
        text = linecache.getline(code.co_filename, line).strip()
        resolved.append((code.co_filename, line, code.co_name, text))
    return resolved


def user_line(node):
    """Return (filename, line number) of the user's line that made an Apply, or None."""
    return line_of(node.trace)


def line_of(trace):
    """Return (filename, line number) of the innermost frame of a trace, or None."""
    if not trace:
        return None
    if len(trace[0]) == 2:
        code, lasti = trace[0]
        return code.co_filename, _line(code, lasti)
    filename, line, *_ = trace[-1]
    return filename, line


def gradient_line(node):
    """Return (filename, line number) of what an Apply computes the gradient of, or None."""
    return line_of(node.context.gradient_of) if node.context is not None else None


def warn(message, category=UserWarning):
    """Warn, and name the line of the user's program from which this was called."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_internal(frame.f_code):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def format_trace(trace):
    """Return a trace in the form of a Python traceback, or '' where there is none."""
    lines = []
    for filename, line, function, text in resolve(trace):
        lines.append(f'  File "{filename}", line {line}, in {function}\n')
        if text:
            lines.append(f"    {text}\n")
    return "".join(lines)


def made_by(node):
    """Return a line that names where the user's program made an Apply, or '' if that is unknown."""
    trace = format_trace(node.trace)
    return f"\nIt was made at:\n{trace}" if trace else ""


def union(*groups):
    """Return the origins of several Applys as one tuple, each once, in first-seen order.

    groups: such tuples. Many Applys of a long sum may share one, which then is looked at once.
    """
    distinct = {id(group): group for group in groups if group}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    merged = {}
    for group in distinct.values():
        for node in group:
            merged[node] = None
    return tuple(merged)


class Keys:
    """Stable keys of user Applys and variables: what they compute, position among equals."""

    def __init__(self):
        self._of_variable = {}
        self._of_node = {}
        self._seen = {}
        self._texts = {}

    def text(self, thing):
        """Return the text of an Op or a type, which many Applys of a graph share."""
        found = self._texts.get(id(thing))
        if found is None:
            found = self._texts[id(thing)] = thing, text_of(thing)
        return found[1]

    def variable(self, var):
        """Return the key of a variable: its Apply's and index, or a leaf's name, type and value."""
        key = self._of_variable.get(var)
        if key is None:
            if var.owner is not None:
                self._compute(var.owner)
                return self._of_variable[var]
            key = self._of_variable[var] = _digest("leaf", _leaf_text(var))
        return key

    def node(self, node):
        """Return the key of an Apply; two Applys that compute the same differ by position."""
        key = self._of_node.get(node)
        if key is None:
            self._compute(node)
            key = self._of_node[node]
        return key

    def _compute(self, root):
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
            content = _digest(
                self.text(node.op),
                *[self.variable(v) for v in node.inputs],
                *[self.text(o.type) for o in node.outputs],
            )
            position = self._seen.get(content, 0)
            self._seen[content] = position + 1
            self._of_node[node] = f"{content}.{position}"
            for out in node.outputs:
                # the position stays out of it: equal operands make equal Applys
                self._of_variable[out] = _digest(content, str(out.index))


def _leaf_text(var):
    data = getattr(var, "data", None)
    if data is not None:
        to_bytes = getattr(data, "tobytes", None)
        value = _hash(to_bytes()) if to_bytes else repr(data)
        return f"{text_of(var.type)} {value}"
    return f"{text_of(var.type)} {var.name or ''}"


def text_of(thing):
    """Return what something prints as; its class where a user's ``__str__`` raises."""
    try:
        return str(thing)
    except Exception:  # a user's class may raise anything; a profile is not lost for that
        return f"<{type(thing).__qualname__}>"


def _digest(*parts):
    return _hash("\0".join(parts).encode("utf-8", "surrogatepass"))


def _hash(data):
    import hashlib  # takes longer to import than most of opwise, and only profiles need keys

    return hashlib.blake2b(data, digest_size=8).hexdigest()
