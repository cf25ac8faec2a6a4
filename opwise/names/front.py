"""Modules that answer to all names which Theano's module of that name had.

There are two kinds: modules without a file, made when they are imported, of opwise and of theano;
and modules of opwise under whose names Theano has one too (``SHARED``), which have their own names
first. Finding names is in ``lookup``, which is loaded when a module lacks a name itself.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

#: modules of opwise with a file, under whose names Theano has a module
SHARED = frozenset(
    """
    opwise opwise.compile opwise.compile.function opwise.compile.io opwise.errors opwise.gradient
    opwise.scalar opwise.sparse opwise.sparse.type opwise.tensor opwise.tensor.blas
    opwise.tensor.deprecated opwise.tensor.elemwise opwise.tensor.extra_ops opwise.tensor.io
    opwise.tensor.nnet opwise.tensor.nnet.blocksparse opwise.tensor.nnet.bn opwise.tensor.nnet.ctc
    opwise.tensor.nnet.nnet opwise.tensor.nnet.sigm opwise.tensor.sort opwise.tensor.subtensor
    opwise.tensor.type opwise.version
    """.split()
)


class LegacyModule(ModuleType):
    """A module that finds the names it lacks where ``lookup`` says that they are."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return _lookup().public(self)
        if name.startswith("__"):
            raise AttributeError(name)
        own = vars(self)
        if name in own.get("__found__", ()):
            return own["__found__"][name]
        # a folder of opwise has its modules as attributes, whether they were imported or not
        path = own.get("__path__")
        dotted = f"{self.__name__}.{name}"
        if path and PathFinder.find_spec(dotted, path) is not None:
            return importlib.import_module(dotted)
        return _lookup().found(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            # the import system binds a module that was imported
            if isinstance(value, LegacyModule) and _lookup().is_hidden(value.__name__):
                return
            answer(value)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return _lookup().listed(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name: cloudpickle, as of joblib, sends a function's modules to workers."""
        return importlib.import_module, (self.__name__,)


def _lookup() -> Any:
    return importlib.import_module("opwise.names.lookup")


class Finder:
    """The last of Python's finders: it makes the modules that are no files."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.startswith(("opwise.", "theano.")) and _lookup().is_module(name):
            return ModuleSpec(name, Finder, is_package=True)  # type: ignore[arg-type]
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return LegacyModule(spec.name, f"The names of Theano's module {spec.name}, from opwise.")

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Import what the module cannot do without; its names are copied when one is read."""
        _lookup().prepare(module)


def answer(module: ModuleType) -> None:
    """Let a module of ``SHARED``, and those in it, answer to Theano's names; ignore others."""
    name = module.__name__
    if name not in SHARED:
        return
    for each in [name, *(one for one in SHARED if one.startswith(f"{name}."))]:
        found = sys.modules.get(each)
        if found is None or isinstance(found, LegacyModule):
            continue
        own = vars(found)
        if "__all__" in own:  # the class adds to it
            own["__exported__"] = own.pop("__all__")
        own.setdefault("__path__", [])  # Theano may have modules in it
        # names of others are kept apart: among its own they would hide builtins from its code
        own["__found__"] = {}
        found.__class__ = LegacyModule


def install(package: str) -> None:
    """Let a package, opwise or theano, answer to Theano's names, and make its modules importable.

    The names of the package theano are copied into it, as into modules without a file.
    """
    module = sys.modules[package]
    if package == "theano":
        vars(module)["__filled__"] = False
        module.__class__ = LegacyModule
    else:
        answer(module)
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)
