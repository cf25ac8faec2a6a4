"""The modules of theano, made when they are imported or read.

A name of a module is, in this order: what the modules of opwise in ``_aliases.MADE`` have, what
``_aliases.NAMES`` says, a module of theano, and what the record of Theano's names says: the name
where Theano defines it, a name of another package, or a placeholder.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import types
import warnings
from importlib.machinery import ModuleSpec

from opwise.errors import MissingFeatureError
from opwise.tensor.elsewhere import hint
from theano import _record
from theano._aliases import HIDDEN, MADE, NAMES, NEEDS, PYTHON_2
from theano._placeholder import missing, placeholder


class LegacyModule(types.ModuleType):
    """A module of theano; the names of opwise are copied into it when the first one is read."""

    def __getattr__(self, name):
        if name == "__all__":
            return public(self)
        if name.startswith("__"):
            raise AttributeError(name)
        return _found(self, name)

    def __setattr__(self, name, value):
        if isinstance(value, LegacyModule) and f"{self.__name__}.{name}" in HIDDEN:
            return  # the import system binds a module that was imported
        super().__setattr__(name, value)

    def __dir__(self):
        _fill(self)
        return list(vars(self))

    def __reduce__(self):
        """Pickle by name: cloudpickle, as of joblib, sends a function's modules to workers."""
        return importlib.import_module, (self.__name__,)


def public(module):
    """Return the names that a star import binds: those that the newest release with this module
    bound, and no others, since they would hide the program's own."""
    _fill(module)
    recorded = _record.names(module.__name__)
    newest = [digit for digit in _record.RELEASES if any(r.is_in(digit) for r in recorded.values())]
    known = [n for n, r in recorded.items() if r.is_in(newest[-1])] if newest else vars(module)
    return [name for name in known if not name.startswith("_")]


def _fill(module):
    """Copy the names of the sources into a module, except those of modules.

    theano has modules of its own under these names, with the names that programs look for.
    """
    own = vars(module)
    if own.get("__filled__"):
        return
    for source in MADE.get(module.__name__, ()):
        for name, value in vars(importlib.import_module(source)).items():
            if not (name.startswith("__") or _is_own_module(value) or _is_module(module, name)):
                own.setdefault(name, value)
    own["__filled__"] = True


def _is_module(module, name):
    """Return whether an attribute of a module is one of its modules."""
    dotted = f"{module.__name__}.{name}"
    return dotted in MADE and dotted not in HIDDEN


def _is_own_module(value):
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "opwise"


def _found(module, name):
    """Return what a module has under a name; raise AttributeError if neither opwise nor Theano
    knows it."""
    _fill(module)
    own, dotted = vars(module), f"{module.__name__}.{name}"
    if dotted in NEEDS and importlib.util.find_spec(NEEDS[dotted]) is None:
        text = f"opwise does not have {dotted} without the package {NEEDS[dotted]}."
        raise MissingFeatureError(text, name=name, obj=module)
    if name in own:
        return own[name]
    if _is_module(module, name):  # not the module of opwise that has the name
        return own.setdefault(name, importlib.import_module(dotted))
    for source in MADE.get(module.__name__, ()):
        computed = vars(sys.modules[source]).get("__getattr__")
        if computed is not None:
            try:
                return computed(name)  # it may change, like the state of a device
            except AttributeError:
                pass
    if dotted in NAMES:
        value = _named(NAMES[dotted])
    elif name in _record.names(module.__name__):
        value = _recorded(_record.names(module.__name__)[name])
    elif dotted in _record.modules():
        value = importlib.import_module(dotted)
    else:
        # without the module, of whose names Python would propose those that are spelled alike
        raise AttributeError(_unknown(module, name), name=name, obj=None)
    return own.setdefault(name, value)


def _recorded(recorded):
    """Return what stands for a name that Theano had."""
    home = PYTHON_2.get(recorded.home, recorded.home)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about names of other packages that are going away
            if recorded.kind == "module":
                return importlib.import_module(home)
            if home != recorded.dotted:
                return _named(home)
    except (ImportError, AttributeError):
        pass
    if recorded.kind == "module" and not home.startswith("theano"):
        # without that package Theano's import failed too: programs go on without it
        raise missing(placeholder(recorded))
    module, _, name = recorded.dotted.rpartition(".")
    if name == "logger":  # programs set its level
        return logging.getLogger(module)
    return placeholder(recorded)


def _named(dotted):
    """Return the object with a dotted name."""
    module, _, name = dotted.rpartition(".")
    if dotted in MADE:
        return importlib.import_module(dotted)
    return getattr(importlib.import_module(PYTHON_2.get(module, module)), name)


def _unknown(module, name):
    """Return the text for a name that neither opwise nor Theano has in a module."""
    recorded = _record.names(module.__name__)
    known = {n for n in (*vars(module), *recorded) if not n.startswith("_")}
    own = [n for n in sorted(known) if n not in recorded or recorded[n].home.startswith("theano")]
    return (
        f"opwise has no {module.__name__}.{name}, nor had Theano.{hint(name, module.__name__, own)}"
    )


class _Finder:
    """The last of Python's finders: it makes the modules of theano that are no files."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("theano.") and (name in MADE or name in _record.modules()):
            return ModuleSpec(name, _Finder, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        return LegacyModule(spec.name, f"The names of Theano's module {spec.name}, from opwise.")

    @staticmethod
    def exec_module(module):
        """Import what the module cannot do without; its names are copied when one is read."""
        if module.__name__ in NEEDS:
            importlib.import_module(NEEDS[module.__name__])


def install(package):
    """Make the modules importable, and the package one of them."""
    package.__class__ = LegacyModule
    sys.meta_path.append(_Finder)
