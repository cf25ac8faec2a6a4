"""Tracebacks of failing calls: the frames of users, without those of opwise."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType

from opwise.config import config
from opwise.graph.provenance import is_internal

#: what opwise calls itself: the frames of these lie between its own and no user's
_LIBRARIES = frozenset(("numpy", "scipy", "cupy")) | sys.stdlib_module_names


def cut(error: BaseException) -> None:
    """Drop the frames of opwise from the traceback of what a call raised, and of its causes.

    Frames of users remain: those of their Ops, and what these called. The flag
    ``traceback.internal`` keeps all of them, for debuggers.
    """
    if config.traceback.internal:
        return
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        each.__traceback__ = _of_users(each.__traceback__)
        each = each.__cause__


def _of_users(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of opwise and of the libraries that it called."""
    kept = []
    called_by_user = False
    while trace is not None:
        frame = trace.tb_frame
        if _is_ours(frame):
            called_by_user = False
        elif called_by_user or not _is_of_library(frame):
            called_by_user = True
            kept.append(trace)
        trace = trace.tb_next
    following = None
    for trace in reversed(kept):
        trace.tb_next = following
        following = trace
    return following


def _is_ours(frame: FrameType) -> bool:
    code = frame.f_code
    # compiled modules name their sources by paths in the repository
    return is_internal(code) or (
        code.co_filename.startswith("opwise/") and code.co_filename.endswith((".pyx", ".pxd"))
    )


def _is_of_library(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and name.partition(".")[0] in _LIBRARIES
