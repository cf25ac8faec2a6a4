"""Converted modules in the cache folder: a text that was converted before is not converted again.

The key is the text, its path, and all that the conversion depends on besides; the content is the
code object, which is run. So the rules for compiled kernels hold (``linkers.kernelcache``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import sys
from functools import cache
from pathlib import Path
from types import CodeType

from opwise.linkers import kernelcache
from opwise.py2 import convert


def code_of(source: bytes, filename: str, python: int) -> CodeType:
    """Return the code object of a module: ``convert.compiled(source, filename, python=python)``."""
    written = repr([_converter(), python, filename, sys.flags.optimize]).encode()
    key = hashlib.sha256(written + source).hexdigest()
    name = f"{key[:32]}.module"
    kept = kernelcache.read(name, key)
    if kept is not None:
        try:
            found: CodeType = marshal.loads(kept)
            return found
        except (EOFError, ValueError, TypeError) as error:
            kernelcache.warn_damaged(name, f"its content cannot be read ({error})")
    code = convert.compiled(source, filename, python=python)
    kernelcache.keep(name, key, marshal.dumps(code))
    return code


@cache
def _converter() -> list[str]:
    """Return what identifies the converter: its sources, fissix's version, and Python's."""
    own = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        own.update(path.read_bytes())
    fissix = importlib.util.find_spec("fissix")  # which takes longer to import
    version = Path(fissix.origin).with_name("__version__.py") if fissix and fissix.origin else None
    text = version.read_text() if version is not None and version.exists() else ""
    return [own.hexdigest(), text, sys.version, importlib.util.MAGIC_NUMBER.hex()]
