"""Print a text on a standard stream, or on the other one if that fails; never raise.

A program has run for its results when its profile is printed, so printing must not cost them.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from opwise.graph.escaping import printable_lines


def show(text: str, name: str = "stdout", at_end: bool = False) -> None:
    """Print a text on the stream of ``sys`` called ``name``; on the other one if that fails.

    Characters that the stream cannot encode are escaped. Does nothing if both fail, or if the
    reader of a pipe has gone, as in ``program | head``. at_end: the program prints nothing more.
    """
    failure = _failure(text, getattr(sys, name), at_end)
    if failure:
        other = "stdout" if name == "stderr" else "stderr"
        message = f"cannot write to {name} ({failure}); the lost output was:\n{text}"
        _failure(message, getattr(sys, other), at_end)


def write(text: str, stream: Any) -> None:
    """Write a text to a stream; escape what controls a terminal or the stream cannot encode."""
    text = printable_lines(text)
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        encoding = getattr(stream, "encoding", None) or error.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _failure(text: str, stream: Any, at_end: bool) -> str:
    """Write a text to a stream; return why that failed, "" if it did not or nobody reads it."""
    if stream is None:
        return "it is closed"
    flush = getattr(stream, "flush", lambda: None)
    is_ours = False
    try:
        flush()  # what the program itself has written
        is_ours = True
        write(text, stream)
        flush()
    except Exception as error:  # a stream may be the program's own and raise anything
        if is_ours and at_end:
            _discard(stream)
        return "" if isinstance(error, BrokenPipeError) else str(error) or type(error).__name__
    return ""


def _discard(stream: Any) -> None:
    """Discard what a broken pipe did not take.

    Otherwise the interpreter tries once more at its end, reports an error, and exits with 120.
    """
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except Exception:  # as above; a stream without a file keeps nothing back
        return
