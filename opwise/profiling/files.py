"""Files: written as a whole or not at all, read up to a limit; texts that a terminal can show."""

from __future__ import annotations

import os
import stat
from pathlib import Path

#: the largest file that is read, in bytes: a profile of 100,000 Applys has some 150 MB
MOST_BYTES = 1 << 29


def printable(text):
    """Return a text whose control characters and the like are escaped, as ``\\x1b``.

    So no name moves a terminal's cursor, changes its colours or turns the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(c):
    return c.encode("unicode_escape").decode("ascii")


def read_limited(path, most=MOST_BYTES):
    """Return the bytes of a file.

    Raises OSError; ValueError, before anything is read, for what is no regular file (a device or
    a pipe may never end, or never begin) and for more than ``most`` bytes.
    """
    # without O_NONBLOCK, opening a pipe waits for somebody who writes
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file; write its contents to a file first")
        if about.st_size > most:
            raise ValueError(
                f"it has {about.st_size:,} bytes; files of up to {most:,} bytes are read"
            )
        data = file.read(most + 1)
    if len(data) > most:  # as files of /proc do not say
        raise ValueError(f"it has more than {most:,} bytes")
    return data


def write_whole(path, text):
    """Write a text to a file as UTF-8. A file of that name is replaced as a whole; OSError.

    What UTF-8 cannot hold (lone surrogates) is written as an escape. A device or pipe of that name
    is written to, not replaced.
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
