"""Files: written as a whole or not at all, read up to a limit; texts that a terminal can show."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from opwise.graph.escaping import printable as printable

#: the largest file that is read, in bytes: a profile of 100,000 Applys has some 150 MB
MOST_BYTES = 1 << 29


def read_limited(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file.

    Raises OSError. Raises ValueError before reading for a file of more than ``most`` bytes, and
    for a device or a pipe, which may never end or never begin.
    """
    # without O_NONBLOCK, opening a pipe waits for a writer
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file; write its contents to a file first")
        if about.st_size > most:
            raise ValueError(f"it has {about.st_size:,} bytes; the limit is {most:,} bytes")
        data = file.read(most + 1)
    if len(data) > most:  # files of /proc report a size of 0
        raise ValueError(f"it has more than {most:,} bytes, the limit")
    return data


def write_whole(path: str | Path, text: str) -> None:
    """Write a text to a file as UTF-8, replacing the file as a whole. Raises OSError.

    Lone surrogates, which UTF-8 cannot hold, become escapes. A device or pipe of that name is
    written to, not replaced.
    """
    path = Path(path)
    data = text.encode("utf-8", "backslashreplace")
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C in a block that writes a file, if it would raise KeyboardInterrupt."""
    # which registers no thread that threading does not know
    is_main = threading.get_ident() == threading.main_thread().ident
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
