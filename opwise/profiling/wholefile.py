"""Files that are either written as a whole or left as they were."""

from __future__ import annotations

import os
from pathlib import Path


def write(path, data):
    """Write bytes to a file. A file of that name is replaced as a whole. Raises OSError."""
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
