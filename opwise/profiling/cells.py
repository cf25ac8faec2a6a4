"""Cells of notebooks: what IPython calls the files that their code claims to be in."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

#: how ipykernel names the file of a cell
_FILE = re.compile(r"\S*[/\\]ipykernel_\d+[/\\]\d+\.py")


def cell(file: str) -> str:
    """Return ``In[3]`` for the file of a cell of this process, "" for other files."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    compiler: Any = getattr(shell, "compile", None)
    try:
        kind, name = compiler.format_code_name(file)
    except (AttributeError, TypeError, ValueError):
        return ""
    return str(name) if kind == "Cell" else ""


def place(file: str, line: int) -> str:
    """Return ``In[3]:2`` for a line of a cell, else ``file.py:2``."""
    return f"{cell(file) or os.path.basename(file)}:{line}"


def names(text: str) -> str:
    """Return a text with the files of cells replaced by their names."""
    return _FILE.sub(lambda found: cell(found[0]) or found[0], text)
