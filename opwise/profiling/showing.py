"""How a text reaches the user: on a stream, or on another one where that cannot be.

A program has run for its results when its profile is printed: ``show`` does not raise.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading


def show(text, name="stdout", at_end=False):
    """Print a text on the stream of ``sys`` called ``name``; on the other one where that fails.

    What the stream cannot encode is escaped. Where both fail there is nobody to tell. A pipe whose
    reader has gone, as in ``program | head``, is no failure: the reader has seen enough. at_end:
    the program prints nothing more.
    """
    failure = _shown(text, getattr(sys, name), at_end)
    if failure:
        other = "stdout" if name == "stderr" else "stderr"
        _shown(f"{name} takes no text ({failure}); it was to show:\n{text}", getattr(sys, other),
               at_end)  # fmt: skip


def write(text, stream):
    """Write a text to a stream; what that cannot encode is escaped."""
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        encoding = getattr(stream, "encoding", None) or error.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _shown(text, stream, at_end):
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
            _forget(stream)
        return "" if isinstance(error, BrokenPipeError) else str(error) or type(error).__name__
    return ""


def _forget(stream):
    """Let what a broken pipe did not take go nowhere.

    Otherwise the interpreter tries once more at its end, complains, and exits with 120.
    """
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except Exception:  # as above; a stream without a file keeps nothing back
        return


@contextlib.contextmanager
def uninterrupted():
    """Ignore Ctrl-C in a block, where it would raise KeyboardInterrupt: a file is being written."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
