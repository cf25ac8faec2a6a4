"""Finds the modules and attributes that converted programs name, also those that are gone."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import importlib.util
import sys
import types
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from opwise.py2 import breakages, methods
from opwise.py2.sizes import Sized


def _finder() -> Any:
    """Return what finds the user's modules, if ``hook`` has put it where Python looks for it."""
    return next((each for each in sys.meta_path if hasattr(each, "own_module")), None)


def is_own(name: str) -> bool:
    """Return whether the user has a module of a name."""
    finder = _finder()
    return finder is not None and finder.is_own(name)


def own_module(name: str) -> types.ModuleType | None:
    """Return the user's module of a name if libraries have loaded the standard library's."""
    finder = _finder()
    found: types.ModuleType | None = None if finder is None else finder.own_module(name)
    return found


def resolved(dotted: str) -> Any:
    """Import the object of a dotted name; the first part may be a builtin."""
    head, *rest = dotted.split(".")
    if hasattr(builtins, head):
        found = getattr(builtins, head)
    else:
        found = importlib.import_module(head)
    path = head
    for part in rest:
        path = f"{path}.{part}"
        if isinstance(found, types.ModuleType) and not hasattr(found, part):
            found = importlib.import_module(path)
        else:
            found = getattr(found, part)
    return found


#: names that ``from numpy import *`` left to Python until numpy 2
_LEFT_TO_PYTHON = set("abs bool bytes complex float int long max min object pow round str".split())
_LIKE_NUMPY = ("numpy", "scipy", "pylab")


class Lookup:
    """What the programs for one version of Python get for names that are gone or changed.

    names, changed: as ``breakages.NAMES`` and ``breakages.CHANGED``.
    own_methods: attributes of objects that ``methods`` gives if the object has none of that name.
    changed_methods: those that it always gives.
    siblings: whether ``import`` within a package finds the modules of the package first.
    """

    def __init__(
        self,
        names: Mapping[str, breakages.Old],
        changed: Mapping[str, str],
        own_methods: Container[str],
        changed_methods: Container[str],
        siblings: bool,
    ):
        self._names = names
        self._changed = changed
        self._own_methods = own_methods
        self._changed_methods = changed_methods
        self._siblings = siblings
        #: the names that modules have only for converted code
        self._dotted = {*names, *changed}
        self._with_star = self._names_with_star()
        self._given = functools.cache(self._find)

    def _find(self, dotted: str) -> Any:
        """Return what a program gets for a dotted name of the table.

        Raises AttributeError if it gets nothing, and the libraries of today do not have it.
        """
        changed = self._changed.get(dotted)
        if changed is not None:
            return resolved(changed)
        old = self._names[dotted]
        try:
            return resolved(old.given or dotted)
        except (ImportError, AttributeError) as error:
            why = f" ({error})" if old.given else ""
            raise AttributeError(f"{old.text}{why}") from error

    def attribute(self, owner: Any, name: str) -> Any:
        """Return ``owner.name`` as the program means it."""
        if isinstance(owner, types.ModuleType):
            dotted = f"{owner.__name__}.{name}"
            return self._given(dotted) if dotted in self._dotted else getattr(owner, name)
        if name in self._changed_methods:
            return getattr(methods, name)(owner)
        if name in breakages.RANDOM_SIZES and isinstance(owner, np.random.RandomState):
            return Sized(getattr(owner, name))
        if name in self._own_methods and not hasattr(owner, name):
            function = getattr(methods, name, None)
            if function is not None:
                return function(owner)
            return getattr(owner, breakages.METHODS[name].new.rpartition(".")[2])
        return getattr(owner, name)

    # --- imports ----------------------------------------------------------------------------------

    def _names_with_star(self) -> dict[str, set[str]]:
        """Return for each module the names of the table that ``from module import *`` gives."""
        names: dict[str, set[str]] = {}
        for dotted in self._dotted:
            module, _, name = dotted.rpartition(".")
            if dotted in self._changed or self._names[dotted].given:
                names.setdefault(module, set()).add(name)
        names["pylab"] = names.get("pylab", set()) | names["numpy"]
        for module in _LIKE_NUMPY:
            names[module] -= {*_LEFT_TO_PYTHON, "unicode"}
        return names

    def import_(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        """Import a module as ``import`` did.

        In Python 2 a module of the same package comes first. Then come those of the table, unless
        the user has one of that name.
        """
        if level == 0 and self._siblings and _has_sibling(name, globals or {}):
            level = 1
        elif level == 0 and name in self._dotted and not is_own(name):
            with _as_import_error(name):
                module = self._given(name)
            if "." in name and not fromlist:  # its parent has it as an attribute
                return self.import_(name.partition(".")[0], globals, locals, (), 0)
            return self._seen(module, fromlist)
        own = own_module(name) if level == 0 else None
        if own is not None:
            return own
        star = level == 0 and name in self._with_star and "*" in (fromlist or ())
        parts = () if star else fromlist or ()
        # an AttributeError of the module itself stays what it is: programs go on after ImportError
        module = builtins.__import__(name, globals, locals, parts, level)
        return self._seen(module, fromlist)

    def _seen(self, module: Any, fromlist: tuple[str, ...] | None) -> Any:
        """Return a module as ``from module import ...`` sees it."""
        if "*" in (fromlist or ()) and module.__name__ in self._with_star:
            public = getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")])
            with warnings.catch_warnings():  # of modules that the program need not use
                warnings.simplefilter("ignore", DeprecationWarning)
                left = _LEFT_TO_PYTHON if module.__name__ in _LIKE_NUMPY else set()
                view = self._view(module, {*public, *self._with_star[module.__name__]} - left)
            view.__all__ = [*vars(view)]
            return view
        if any(f"{module.__name__}.{part}" in self._dotted for part in fromlist or ()):
            return self._view(module, fromlist or ())
        return module

    def _view(self, module: types.ModuleType, names: Iterable[str]) -> Any:
        """Return a module as ``from module import name`` sees it."""
        view = types.SimpleNamespace()
        for name in names:
            with contextlib.suppress(AttributeError):
                setattr(view, name, getattr(module, name))
            if f"{module.__name__}.{name}" in self._dotted:
                with _as_import_error(module.__name__):
                    setattr(view, name, self.attribute(module, name))
        return view


@contextlib.contextmanager
def _as_import_error(name: str) -> Iterator[None]:
    """Raise ImportError in a block where an attribute is missing, as ``import`` does."""
    try:
        yield
    except AttributeError as error:
        raise ImportError(str(error), name=name) from error


def _has_sibling(name: str, globals: Mapping[str, Any]) -> bool:
    """Return whether ``import name`` within a package means a module beside the importing one."""
    package = globals.get("__package__")
    if not package or "absolute_import" in globals:
        return False
    sibling = f"{package}.{name.partition('.')[0]}"
    return sibling in sys.modules or importlib.util.find_spec(sibling) is not None


def _since_python3(rows: Mapping[str, breakages.Old]) -> dict[str, breakages.Old]:
    """Return the rows of what Python 3 had at first."""
    return {name: row for name, row in rows.items() if row.since != breakages.SINCE_PYTHON_3}


PYTHON2 = Lookup(
    breakages.NAMES,
    breakages.CHANGED,
    {*breakages.METHODS, *breakages.H5PY_METHODS},
    breakages.CHANGED_METHODS,
    siblings=True,
)
PYTHON3 = Lookup(
    _since_python3(breakages.NAMES),
    {name: breakages.CHANGED[name] for name in breakages.CHANGED_SINCE},
    {*_since_python3(breakages.METHODS), *breakages.H5PY_METHODS},
    breakages.CHANGED_METHODS_SINCE,
    siblings=False,
)
