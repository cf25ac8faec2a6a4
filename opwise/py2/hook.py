"""Imports and runs the user's modules as programs for Python 2, or for an earlier Python 3."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import site
import sys
import sysconfig
import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwise.py2 import builtin, convert, lookup

#: the packages opwise and theano
_OURS = Path(__file__).resolve().parents[1]


def execute(code: types.CodeType, namespace: dict[str, Any], python: int = 2) -> None:
    """Execute the code of a converted module. python: see ``convert.compiled``."""
    namespace["__builtins__"] = builtin.BUILTINS[python]
    if python == 2 and sys.flags.bytes_warning:
        _warn_of_bytes(namespace.get("__name__", ""))
    exec(code, namespace)


def _warn_of_bytes(name: str) -> None:
    """Have a module warn, with the line, where it compares bytes with text, which are unequal."""
    warnings.filterwarnings("default", category=BytesWarning, module=f"{re.escape(name)}$")


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module and converts it. It writes no .pyc file: Python would read that."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        return convert.compiled(self.get_data(path), path, python=_FINDER.python)

    def exec_module(self, module: types.ModuleType) -> None:
        execute(self.get_code(module.__name__), vars(module), _FINDER.python)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the user's modules: those outside Python, its packages and opwise.

    The innermost known folder around a module decides whose it is: a program below the folder of
    an editable install is the user's.
    """

    def __init__(self) -> None:
        #: see ``convert.compiled``
        self.python = 2
        #: the folders that the user put on the path
        self.given: set[Path] = set()
        #: those of Python, of its packages and of opwise
        self.installed: set[Path] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if not self._is_users(Path(spec.loader.path)):
            return None
        return importlib.util.spec_from_file_location(
            fullname,
            spec.origin,
            loader=Loader(fullname, spec.loader.path),
            submodule_search_locations=spec.submodule_search_locations,
        )

    def _is_users(self, path: Path) -> bool:
        for folder in path.resolve().parents:
            if folder in self.given:
                return True
            if folder in self.installed:
                return False
        return True

    def is_own(self, name: str) -> bool:
        """Return whether the user has a module of that name."""
        head = name.partition(".")[0]
        try:
            return self.find_spec(head, None) is not None
        except (ImportError, ValueError):
            return False


def _packages() -> set[Path]:
    """Return the folders of Python, of its packages and of opwise."""
    paths = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    folders = {Path(path).resolve() for path in paths}
    folders.discard(Path(sys.prefix).resolve())
    return folders | {_OURS, _OURS.parent / "theano"}


_FINDER = _Finder()


def install(python: int = 2) -> None:
    """Convert the modules that the user's program imports from now on.

    python: see ``convert.compiled``.
    """
    _FINDER.python = python
    packages = _packages()
    given = [os.curdir, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    _FINDER.given = {Path(path).resolve() for path in given} - packages
    _FINDER.installed = packages | {Path(path).resolve() for path in sys.path if path}
    lookup.is_own = _FINDER.is_own
    sys.meta_path.insert(0, _FINDER)
    warnings.filterwarnings("ignore", category=BytesWarning)  # but see _warn_of_bytes
    # pytest would read and compile test modules itself, in order to rewrite their asserts
    os.environ["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} --assert=plain".strip()
    sys.excepthook = _report


def run_script(path: str) -> None:
    """Run a script as the main program."""
    folder = Path(path).resolve().parent
    sys.path[0] = str(folder)
    _FINDER.given.add(folder)
    _run(Path(path).read_bytes(), path, None)


def run_module(name: str) -> None:
    """Run a module as the main program; of a package, its module ``__main__``.

    Raises ImportError if there is no such module.
    """
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    if spec is None or spec.origin is None:
        raise ImportError(f"no module named {name}", name=name)
    sys.argv[0] = spec.origin
    _run(Path(spec.origin).read_bytes(), spec.origin, spec)


def _run(source: bytes, path: str, spec: importlib.machinery.ModuleSpec | None) -> None:
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__spec__ = spec
    main.__package__ = spec.parent if spec is not None else None
    sys.modules["__main__"] = main
    execute(convert.compiled(source, path, python=_FINDER.python), vars(main), _FINDER.python)


def _report(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an error that ends the program, without the frames of this package."""
    while trace is not None and _is_machinery(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    kept = trace
    while kept is not None:
        after = kept.tb_next
        while after is not None and _is_machinery(after.tb_frame.f_code.co_filename):
            after = after.tb_next
        kept.tb_next = after
        kept = after
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def _is_machinery(filename: str) -> bool:
    return filename.startswith((str(Path(__file__).parent), "<frozen "))
