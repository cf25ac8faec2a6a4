"""Imports and runs the user's modules as programs for Python 2, or for an earlier Python 3."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing.spawn
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

import numpy as np

from opwise.config import follow_environment
from opwise.py2 import builtin, converted, workers

#: the packages opwise and theano
_OURS = Path(__file__).resolve().parents[1]


#: the environment variable that names the main program for processes that multiprocessing starts
_MAIN = "OPWISE_CONVERTED_PROGRAM"


def command(python: int, options: Sequence[str] = ()) -> list[str]:
    """Return the start of a command line that runs an old program; ``[-m] PROGRAM ARGS`` follow.

    python: see ``convert.compiled``. options: those of the interpreter.
    """
    # -P: no folder is put on sys.path. -b: Python warns where bytes are compared with text, which
    # were one type in Python 2
    own = ["-P", "-b"] if python == 2 else ["-P"]
    main = str(Path(__file__).with_name("__main__.py"))
    return [sys.executable, *options, *own, main, *(["--py3"] if python == 3 else [])]


def execute(code: types.CodeType, namespace: dict[str, Any], python: int = 2) -> None:
    """Execute the code of a converted module. python: see ``convert.compiled``."""
    is_main = namespace.get("__name__") == "__main__"
    namespace["__builtins__"] = (builtin.MODULES if is_main else builtin.BUILTINS)[python]
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
        return converted.code_of(self.get_data(path), path, _FINDER.python)

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
        #: the user's modules that have the name of one in ``sys.modules``
        self.beside: dict[str, types.ModuleType] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == "theano":  # programs set THEANO_FLAGS before they import it
            follow_environment()
        if path is None and fullname in sys.stdlib_module_names and not _is_asked_by_user():
            return importlib.machinery.PathFinder.find_spec(fullname, _STANDARD)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if workers.watch(spec):
            return spec
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

    def own_module(self, name: str) -> types.ModuleType | None:
        """Return the user's module of a name if libraries have loaded the standard library's.

        Both are there then: ``sys.modules`` has that of the libraries.
        """
        if name not in sys.stdlib_module_names or name in _LOADED_FIRST:
            return None
        if name in self.beside:
            return self.beside[name]
        loaded = sys.modules.get(name)
        if loaded is None or isinstance(loaded.__loader__, Loader):
            return None
        spec = self.find_spec(name, None)
        if spec is None or spec.loader is None or spec.submodule_search_locations is not None:
            return None
        module = self.beside[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del self.beside[name]
            raise
        return module

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


#: the folders of the standard library
_STANDARD = [path for path in (sysconfig.get_path(key) for key in ("stdlib", "platstdlib")) if path]
_STANDARD += [str(Path(path) / "lib-dynload") for path in _STANDARD]
#: the end of the names of the files whose frames stand between an import and who asked for it
_IMPORTING = ("/importlib/__init__.py", "/py2/lookup.py", "/py2/hook.py")


def _is_asked_by_user() -> bool:
    """Return whether converted code imports a module, rather than a library."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename.replace(os.sep, "/")
        if not name.startswith("<frozen ") and not name.endswith(_IMPORTING):
            return any(frame.f_builtins is names for names in builtin.BUILTINS.values())
        frame = frame.f_back
    return True


#: modules that Python itself loads before the program, which hide the user's
_LOADED_FIRST = {
    *sys.builtin_module_names, *"abc codecs genericpath linecache os posixpath re site stat "
    "sysconfig traceback types warnings".split(),
}  # fmt: skip


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
    sys.meta_path.insert(0, _FINDER)
    if sys.flags.bytes_warning:
        warnings.filterwarnings("ignore", category=BytesWarning)  # but see _warn_of_bytes
    # pytest would read and compile test modules itself, in order to rewrite their asserts
    os.environ["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} --assert=plain".strip()
    sys.excepthook = _report
    np.set_printoptions(legacy="1.25")  # np.float64(1.5) was printed as 1.5 before numpy 2


def _put_on_path(folder: str) -> None:
    """Put a folder where Python puts that of a script; see ``command``."""
    if not os.environ.get("PYTHONSAFEPATH"):
        sys.path.insert(0, folder)


def run_script(path: str) -> None:
    """Run a script as the main program."""
    folder = Path(path).resolve().parent
    _put_on_path(str(folder))
    _FINDER.given.add(folder)
    _run(path, None)


def run_module(name: str) -> None:
    """Run a module as the main program; of a package, its module ``__main__``.

    Raises ImportError if there is no such module.
    """
    _put_on_path(os.getcwd())
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    if spec is None or spec.origin is None:
        raise ImportError(f"no module named {name}", name=name)
    sys.argv[0] = spec.origin
    _run(spec.origin, spec)


def _run(path: str, spec: importlib.machinery.ModuleSpec | None) -> None:
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__loader__ = Loader("__main__", path) if spec is None else spec.loader
    main.__spec__ = spec
    main.__package__ = spec.parent if spec is not None else None
    vars(main).update(__cached__=None, __annotations__={})
    sys.modules["__main__"] = main
    _prepare_spawning(os.path.abspath(path), main.__package__)
    _execute_main(path, vars(main))


def _execute_main(path: str, namespace: dict[str, Any]) -> None:
    # the lines of errors and profiles are found after a change of the working directory, too
    code = converted.code_of(Path(path).read_bytes(), os.path.abspath(path), _FINDER.python)
    try:
        execute(code, namespace, _FINDER.python)
    finally:
        builtin.end_line()


# --- processes of multiprocessing -----------------------------------------------------------------

_prepared = multiprocessing.spawn.get_preparation_data


def _prepare_spawning(path: str, package: str | None) -> None:
    """Have processes that multiprocessing starts anew import the main program converted."""
    main = {"python": _FINDER.python, "path": path, "package": package}
    os.environ[_MAIN] = json.dumps({**main, "given": [str(each) for each in _FINDER.given]})
    multiprocessing.spawn.get_preparation_data = _preparation_data


def _preparation_data(name: str) -> dict[str, Any]:
    """Return what multiprocessing sends to a process that it starts anew."""
    data = _prepared(name)
    main = [data.pop(key, None) for key in ("init_main_from_name", "init_main_from_path")]
    if any(main):
        data["init_main_from_path"] = str(Path(__file__).with_name("spawned.py"))
    return data


def install_as_parent() -> dict[str, Any]:
    """Convert modules as the process that started this one does; return its main program."""
    main: dict[str, Any] = json.loads(os.environ[_MAIN])
    if _FINDER not in sys.meta_path:
        install(main["python"])
        _FINDER.given.update(map(Path, main["given"]))
        _prepare_spawning(main["path"], main["package"])
    return main


def run_spawned(namespace: dict[str, Any]) -> None:
    """Execute the main program of the process that started this one, in a namespace."""
    main = install_as_parent()
    sys.argv[0] = main["path"]  # runpy put there what it runs
    namespace.update(__file__=main["path"], __package__=main["package"])
    _execute_main(main["path"], namespace)


# --- errors ---------------------------------------------------------------------------------------


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
