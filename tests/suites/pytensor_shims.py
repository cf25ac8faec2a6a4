"""A pytest plugin under which tests of PyTensor's graphs run with opwise as their back-end.

Functions that name no mode are compiled by opwise, and what tests of the Numba and JAX back-ends
compare with Python is a function of opwise. Tests of Aesara, PyTensor's ancestor, find the names of
their time: those that have moved are looked for in all of PyTensor, and those that are gone raise
``Gone`` when they are used.
"""

from __future__ import annotations

import copy
import functools
import importlib
import importlib.abc
import importlib.machinery
import pkgutil
import sys
import types

import numpy as np
import pytensor
import pytensor.tensor
from pytensor.compile.mode import Mode, get_mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.traversal import ancestors
from shims import SUITE  # gives back names of numpy

import opwise.pytensor

OPWISE = get_mode("OPWISE")
#: the few rewrites that tests of back-ends run
_REWRITES = RewriteDatabaseQuery(include=[None], exclude=["cxx_only", "BlasOpt"])
UNREWRITTEN = Mode(opwise.pytensor.OpwiseLinker(), _REWRITES)
PYTHON = Mode("py", _REWRITES)

pytensor.config.mode = OPWISE


# --- back-ends ------------------------------------------------------------------------------------


def compare(graph, given, *, assert_fn=None, updates=None, **_):
    """Compile a graph under opwise, with few rewrites and with all, and under PyTensor's Python.

    It compares the results, their dtypes and shapes, and returns (function, results). graph: a
    FunctionGraph, or (inputs, outputs). given: the arguments.
    """
    inputs, outputs = graph if isinstance(graph, tuple) else (graph.inputs, graph.outputs)
    inputs = [var for var in inputs if not isinstance(var, SharedVariable)]
    shared = {
        var: copy.copy(var.get_value(borrow=True))
        for var in ancestors(outputs)
        if isinstance(var, SharedVariable)
    }

    def called(mode):
        for var, value in shared.items():
            var.set_value(value)
        function = pytensor.function(
            inputs, outputs, mode=mode, accept_inplace=True, updates=updates,
            on_unused_input="ignore",
        )  # fmt: skip
        return function, function(*copy.deepcopy(list(given)))

    _, expected = called(PYTHON)
    for mode in (UNREWRITTEN, OPWISE):
        function, results = called(mode)
        for one, other in zip(results, expected, strict=True):
            if isinstance(other, np.ndarray | np.generic):
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
            if assert_fn is None:
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-10)
            else:
                assert_fn(one, other)
    return function, results


def results_of(*args, **kwargs):
    """Compare, and return the results alone."""
    return compare(*args, **kwargs)[1]


def pytest_collection_modifyitems(items):
    """Let tests of other back-ends test opwise."""
    for module in {item.module for item in items if hasattr(item, "module")}:
        for name, own in (("compare_numba_and_py", compare), ("compare_jax_and_py", results_of)):
            if hasattr(module, name):
                setattr(module, name, own)
        for name in ("numba_mode", "jax_mode"):
            if hasattr(module, name):
                setattr(module, name, UNREWRITTEN)


# --- names of Aesara ------------------------------------------------------------------------------


class Gone(Exception):
    """PyTensor has no such thing any more."""


def _gone(name):
    """Return a class that stands for what is gone, so that modules of tests can be imported."""

    def __init__(self, *_, **__):
        raise Gone(name)

    return type(name, (), {"__init__": __init__})


@functools.cache
def _now():
    """Return {name: what modules of PyTensor hold under it now}."""
    found = {
        "_asarray": np.asarray,
        "get_test_value": lambda var: var.data if hasattr(var, "data") else var.tag.test_value,
        "true_divide": pytensor.tensor.true_div,
    }
    for info in pkgutil.walk_packages(pytensor.__path__, "pytensor.", onerror=lambda name: None):
        if any(part in info.name for part in (".link.", ".bin", ".misc.", ".xtensor")):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # of what is optional
            continue
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == info.name or name not in found:
                found[name] = value
    return found


def _looked_up(module, name):
    if name.startswith("__"):
        raise AttributeError(name)
    found = _now().get(name)
    return _gone(f"{module}.{name}") if found is None else found


class _GoneModule(types.ModuleType):
    """A module that PyTensor does not have; calling it calls the function of its name."""

    __path__ = ()
    __version__ = "0"

    def __getattr__(self, name):
        return _looked_up(self.__name__, name)

    def __call__(self, *args, **kwargs):
        return _now()[self.__name__.rpartition(".")[2]](*args, **kwargs)


class _GoneModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: modules of PyTensor that are gone, and packages that are not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pytensor", "jax", "etuples", "cons", "unification"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _GoneModule(spec.name)

    def exec_module(self, module):
        pass


def _answering(module):
    """Let a module of PyTensor have names that were in it once."""
    own = vars(module).get("__getattr__")

    def __getattr__(name):
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        return _looked_up(module.__name__, name)

    module.__getattr__ = __getattr__


def _restore_names():
    sys.meta_path.append(_GoneModules())
    _now()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "pytensor" and ".link.numba" not in name:
            _answering(module)
    config = type(pytensor.config)
    changed = config.change_flags

    def change_flags(self, *flags, **more):
        """Change the flags that are still there."""
        given = {name: value for one in (*flags, more) for name, value in one.items()}
        known = {name: value for name, value in given.items() if name in self._config_var_dict}
        return changed(self, **known)

    config.change_flags = change_flags
    config.unittests__rseed = "666"
    config.unittests__use_random_generator = True
    config.compute_test_value = "off"
    config.conv__assert_shape = False


if (SUITE / "tests" / "link" / "numba").is_dir():
    _restore_names()
