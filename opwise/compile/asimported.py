"""opwise as it was imported: whether a program replaced something in it since, and its sources.

A graph may be shared with other processes only if both are as they were. What is looked at are the
attributes of modules and classes; not code objects that were exchanged inside a function, entries
of tables, or functions of libraries that are not imported when opwise is.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from opwise.linkers import opwise_c
from opwise.profiling.process import pause_garbage_collection

#: folders of opwise on whose modules no rewrite for the CPU depends
_APART = frozenset(
    (
        "__pycache__", "command", "distributed", "frontends", "gpu", "hardware", "legacy", "names",
        "notebook", "profiling", "py2", "pytensor", "testing", "tuning",
    )
)  # fmt: skip
#: modules that keep files and count threads: no content of a graph is theirs
_KEEPERS = frozenset(
    f"opwise.{name}"
    for name in (
        "compile.asimported", "compile.graphcache", "linkers.blasthreads", "linkers.cbuild",
        "linkers.kernelcache", "linkers.trusted",
    )
)  # fmt: skip
#: the class that counts changes of the databases of rewrites, which are looked at for themselves
_COUNTERS = frozenset(("_Generation",))
#: attributes that Python and opwise give classes as a program runs
_GIVEN = frozenset(
    (
        "__annotations__", "__annotations_cache__", "__doc__", "__module__", "__signature__",
        "__slotnames__", "_abc_impl", "_instance",
    )
)  # fmt: skip
#: libraries whose functions opwise computes with
_LIBRARIES = ("math", "numpy", "scipy")
#: modules that it reaches through others
_REACHED = ("numpy.fft", "numpy.linalg", "numpy.random")
#: packages that a value in a module of opwise may be from
_KNOWN = (sys.stdlib_module_names - {"unittest"}) | {"opwise", "theano", "numpy", "scipy"}

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
#: a clock that stamps files is up to this many nanoseconds behind
_COARSE = 100_000_000
_MISSING = object()


class _Space:
    """What a module or a class holds, and what it held when it was looked at last."""

    def __init__(self, owner: ModuleType | type) -> None:
        self.owner = owner
        self.now: Mapping[str, Any] = vars(owner)
        #: the class, or the dict of the module
        self.holder = owner if isinstance(owner, type) else self.now
        #: names of a module that came later: submodules, what a program keeps there
        self._later: tuple[str, ...] = ()
        self.note()

    def note(self) -> None:
        """Take what it holds for what it should."""
        self.names = list(self.now)
        self.kept = list(self.now.values())

    def replaced(self) -> list[str]:
        """Return the names of what was replaced. What may change is noted."""
        now = self.now
        if opwise_c.hold_the_same([self.holder], self.kept):
            return []
        kept = dict(zip(self.names, self.kept, strict=True))
        found = []
        for name in {**kept, **now}:
            old, new = kept.get(name, _MISSING), now.get(name, _MISSING)
            if old is not new and not (type(old) is type(new) and _equal([old], [new])):
                if not self._may_change(name, old, new):
                    found.append(self._full(name))
        if not found:
            self.note()
        return found

    def foreign(self) -> list[str]:
        """Return the names of what is neither opwise's nor from a library that it uses."""
        owner = self.owner
        module = owner.__module__ if isinstance(owner, type) else owner.__name__
        if not module.startswith("opwise."):
            return []
        return [self._full(name) for name, value in zip(self.names, self.kept, strict=True)
                if not _is_own(value)]  # fmt: skip

    def _full(self, name: str) -> str:
        owner = self.owner
        if isinstance(owner, type):
            return f"{owner.__module__}.{owner.__qualname__}.{name}"
        return f"{owner.__name__}.{name}"

    def _may_change(self, name: str, old: Any, new: Any) -> bool:
        owner = self.owner
        if isinstance(owner, type):
            return name in _GIVEN
        if old is _MISSING:
            self._later += (name,)
            submodule = isinstance(new, ModuleType) and new.__name__ == f"{owner.__name__}.{name}"
            return submodule or not hasattr(builtins, name)
        if new is _MISSING and name in self._later:
            return True
        return name.startswith("__")


class _AsImported:
    """The modules and classes of this process that were looked at."""

    def __init__(self) -> None:
        #: wall clock when the import of opwise began, in nanoseconds
        self.began = time.time_ns()
        self.spaces: list[_Space] = []
        self._known: set[ModuleType | type] = set()
        self._names: set[str] = set()
        self._n_modules = -1
        #: the classes and dicts of all spaces, and what these held, one after the other
        self._holders: list[Any] = []
        self._kept: list[Any] = []
        #: the names of what was replaced before it was looked at: that remains
        self._foreign: list[str] = []

    @pause_garbage_collection()
    def note(self, check: bool) -> None:
        """Look at modules that were imported since.

        check: a program may have changed them already.
        """
        if len(sys.modules) == self._n_modules:
            return
        self._n_modules = len(sys.modules)
        added = [name for name in sys.modules.keys() - self._names if _has_code(name)]
        self._names.update(added)
        first = len(self.spaces)
        for name in added:
            self._add_module(sys.modules[name])
        for name in _REACHED:
            if name in sys.modules:
                self._add(sys.modules[name])
        new = self.spaces[first:]
        self._holders += [space.holder for space in new]
        self._kept += chain.from_iterable(space.kept for space in new)
        if check:
            self._foreign += chain.from_iterable(space.foreign() for space in new)

    def _add(self, owner: ModuleType | type) -> list[Any]:
        """Add a module or class, and return what it holds; what was added holds nothing new."""
        if owner in self._known:
            return []
        self._known.add(owner)
        space = _Space(owner)
        self.spaces.append(space)
        return space.kept

    def _add_module(self, module: ModuleType) -> None:
        """Add a module of opwise, its classes, and modules of libraries that it names."""
        values = self._add(module)
        classes = [value for value in values if isinstance(value, type)]
        while classes:
            cls = classes.pop()
            if cls not in self._known and _is_class_of_opwise(cls):
                classes += [value for value in self._add(cls) if type(value) is type]
        for value in values:
            if type(value) is ModuleType and value.__name__.partition(".")[0] in _LIBRARIES:
                self._add(value)

    def replaced(self) -> list[str]:
        """Return the names of what was replaced in what was looked at."""
        if opwise_c.hold_the_same(self._holders, self._kept):
            return self._foreign
        found = [name for space in self.spaces for name in space.replaced()]
        if not found:
            self._kept = list(chain.from_iterable(space.kept for space in self.spaces))
        return self._foreign + found


def _equal(some: list[Any], others: list[Any]) -> bool:
    """Return whether values are the same ones, or equal numbers and texts."""
    try:
        return some == others
    except Exception:  # the truth of an array, say
        return False


def _counts(name: str) -> bool:
    """Return whether graphs depend on a module."""
    return (
        name.startswith("opwise.") and name.split(".", 2)[1] not in _APART and name not in _KEEPERS
    )


def _has_code(name: str) -> bool:
    """Return whether graphs depend on an imported module, which has a file.

    Modules without one have the names that Theano had, of which those with files take none.
    """
    return _counts(name) and hasattr(sys.modules[name], "__file__")


def _is_class_of_opwise(cls: type) -> bool:
    module = cls.__module__
    return (
        isinstance(module, str)
        and (_counts(module) or module.startswith("theano."))
        and cls.__name__ not in _COUNTERS
    )


def _unwrapped(value: Any) -> Any:
    """Return the function in a method, a property or a function with a memory."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, partial):
        value = value.func
    return value


def _is_own(value: Any) -> bool:
    """Return whether a value in a module of opwise is from opwise or from what it imports."""
    value = _unwrapped(value)
    if isinstance(value, FunctionType):
        # not its module, which wrappers take from what they wrap
        return _is_known(value.__globals__.get("__name__"))
    return _is_known((value if isinstance(value, type) else type(value)).__module__)


def _is_known(module: Any) -> bool:
    if not isinstance(module, str):
        return False
    return module.partition(".")[0] in _KNOWN or module.startswith(("_cython_", "namedtuple_"))


_process = _AsImported()


def note_import(began: int) -> None:
    """Note that opwise was imported. began: when that began, as ``time.time_ns`` gives it."""
    _process.began = began
    _process.note(check=False)


def note_own_imports() -> None:
    """Note the modules that opwise imported in order to rewrite."""
    _process.note(check=False)


def replaced() -> list[str]:
    """Return the names of the attributes that a program replaced in opwise's modules and classes.

    Those that were put back are not among them.
    """
    _process.note(check=True)
    return _process.replaced()


# --- sources --------------------------------------------------------------------------------------


def sources() -> str | None:
    """Return a digest of the names, sizes and times of opwise's modules; an edit changes it.

    Modules on which no rewrite depends are left out. It is that of nothing if the modules are not
    in a folder, as in an archive. None if files were changed since the import of opwise began:
    this process may run what they were before, or a mixture.
    """
    return _sources.current()


class _Sources:
    """The files of opwise's modules."""

    def __init__(self) -> None:
        #: the modules that were imported when their files were looked at; none before that
        self.checked: set[str] = set()
        self.digest: str | None = None

    def current(self) -> str | None:
        """Return the digest, or None if files were changed."""
        if not self.checked:
            self.checked.update(sys.modules)
            self.digest = _digest()
        elif self.digest is not None and len(sys.modules) != len(self.checked):
            new = [name for name in sys.modules.keys() - self.checked if _has_code(name)]
            self.checked.update(sys.modules)
            if not all(_is_old(sys.modules[name]) for name in new):
                self.digest = None
        return self.digest


_sources = _Sources()


def _digest() -> str | None:
    found: list[tuple[str, int, int]] = []
    for path, info in _files():
        if _is_newer(info):
            return None
        found.append((path[len(_PACKAGE) :], info.st_size, info.st_mtime_ns))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()


def _is_newer(info: os.stat_result) -> bool:
    """Return whether a file may have changed since the import of opwise began."""
    return info.st_ctime_ns > _process.began - _COARSE


def _is_old(module: ModuleType) -> bool:
    """Return whether the file of a module did not change since the import of opwise began."""
    try:
        return not _is_newer(os.stat(module.__file__ or ""))
    except OSError:
        return not os.path.isdir(_PACKAGE)


def _files() -> Iterator[tuple[str, os.stat_result]]:
    folders = [_PACKAGE]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for one in entries:
                    if one.name.endswith((".py", ".so", ".pyd")):
                        yield one.path, one.stat()
                    elif one.name not in _APART and one.is_dir(follow_symlinks=False):
                        folders.append(one.path)
        except OSError:
            continue
