"""How files are written: as a whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


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
