"""A pytest plugin under which test suites of 2012-2018 run: what time broke, and nothing of opwise.

It gives back names that numpy, unittest and the standard library have removed since, lets modules
of ``theano.*.tests`` come from the unpacked suite.
"""

from __future__ import annotations

import builtins
import collections
import collections.abc
import contextlib
import fractions
import functools
import importlib.machinery
import importlib.util
import inspect
import math
import os
import re
import sys
import time
import types
import unittest
from pathlib import Path

import numpy as np
import pytest

#: the folder in which the suite was unpacked
SUITE = Path(os.environ["SUITE_FOLDER"])


class _Cast:
    """``np.cast``: ``np.cast["int8"](x)`` converts to a dtype."""

    def __getitem__(self, dtype):
        return lambda x: np.asarray(x).astype(dtype)


#: names of numpy before 1.24 and 2.0 -> what they were
NUMPY = {
    "int": builtins.int, "float": builtins.float, "complex": builtins.complex,
    "object": builtins.object, "str": builtins.str, "float_": np.float64,
    "complex_": np.complex128, "unicode_": np.str_, "string_": np.bytes_, "Inf": np.inf,
    "Infinity": np.inf, "infty": np.inf, "NaN": np.nan, "product": np.prod,
    "cumproduct": np.cumprod, "alltrue": np.all, "sometrue": np.any, "rank": np.ndim,
    "row_stack": np.vstack, "in1d": np.isin, "asscalar": lambda a: a.item(), "find_common_type":
    lambda arrays, scalars: np.result_type(*arrays, *scalars),
    "asfarray": lambda a, dtype=np.float64: np.asarray(a, dtype),
    "cast": _Cast(), "sctypes": {"int": [np.int8, np.int16, np.int32, np.int64],
                "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
                "float": [np.float16, np.float32, np.float64],
                "complex": [np.complex64, np.complex128]},
}  # fmt: skip

#: methods of unittest.TestCase that Python 3.12 removed -> their names now
UNITTEST = {
    "assertEquals": "assertEqual", "assertNotEquals": "assertNotEqual", "assert_": "assertTrue",
    "failUnless": "assertTrue", "failIf": "assertFalse", "failUnlessRaises": "assertRaises",
    "assertAlmostEquals": "assertAlmostEqual", "assertItemsEqual": "assertCountEqual",
    "assertRaisesRegexp": "assertRaisesRegex", "assertRegexpMatches": "assertRegex",
}  # fmt: skip


#: private functions that test files import at their top, though few of their tests call them
INTERNALS = {
    "theano.tensor.blas": ("_gemm_canonicalize", "_factor_canonicalized"),
    "theano.gof.sched": ("_toposort",),
}


def _takes_generators(stack):
    """Return a function of numpy that stacks arrays and takes generators, as before numpy 1.24."""

    @functools.wraps(stack)
    def taking_generators(arrays, *args, **kwargs):
        if inspect.isgenerator(arrays):
            arrays = list(arrays)
        return stack(arrays, *args, **kwargs)

    return taking_generators


class _KnownFailure(Exception):
    """``KnownFailureTest`` of numpy's plugins for nose: the test is skipped."""


def _restore():
    """Give back the names that are gone."""
    for name, value in NUMPY.items():
        if name not in vars(np):
            setattr(np, name, value)
    for name, now in UNITTEST.items():
        if not hasattr(unittest.TestCase, name):
            setattr(unittest.TestCase, name, getattr(unittest.TestCase, now))
    for name in collections.abc.__all__:
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    if not hasattr(inspect, "getargspec"):
        inspect.getargspec = lambda f: inspect.getfullargspec(f)[:4]
    if not hasattr(time, "clock"):
        time.clock = time.perf_counter
    fractions.gcd = math.gcd
    for name in ("vstack", "hstack"):
        setattr(np, name, _takes_generators(getattr(np, name)))
    noseclasses = types.ModuleType("numpy.testing.noseclasses")
    noseclasses.KnownFailureTest = _KnownFailure
    sys.modules[noseclasses.__name__] = noseclasses
    np.testing.dec = types.SimpleNamespace(
        skipif=lambda condition, reason="": pytest.mark.skipif(condition, reason=reason),
        knownfailureif=lambda condition, reason="": pytest.mark.xfail(condition, reason=reason),
        slow=lambda function: function,
    )


class _Text(str):
    """A text that decodes as the bytes did that h5py before version 3 read."""

    def decode(self, *_):
        return str(self)


def _restore_for_keras():
    """Give back what h5py, yaml and scipy had when Keras was written."""
    import h5py
    import scipy.special
    import yaml

    attributes = h5py.AttributeManager
    read, write = attributes.__getitem__, attributes.__setitem__

    def read_text(self, name):
        value = read(self, name)
        return _Text(value) if isinstance(value, str) else value

    def write_bytes(self, name, value):
        if isinstance(value, list) and all(isinstance(each, bytes) for each in value):
            value = np.asarray(value, "S")
        write(self, name, value)

    attributes.__getitem__, attributes.__setitem__ = read_text, write_bytes
    start = h5py.File.__init__
    h5py.File.__init__ = lambda self, name, mode="a", **more: start(self, name, mode, **more)
    load = yaml.load
    yaml.load = lambda stream, Loader=yaml.UnsafeLoader: load(stream, Loader)
    scipy.misc = types.SimpleNamespace(logsumexp=scipy.special.logsumexp)


class _SuiteModules:
    """A finder of ``theano.*.tests.*``: the files of the suite, with the tools that it brings."""

    PATTERN = re.compile(r"theano\.(\w+\.)*tests(\.\w+)*")

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if not cls.PATTERN.fullmatch(name):
            return None
        base = SUITE.joinpath(*name.split("."))
        if base.is_dir():
            init = base / "__init__.py"
            return importlib.util.spec_from_file_location(
                name, init, submodule_search_locations=[str(base)]
            )
        file = base.with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file) if file.exists() else None


def _adopt():
    """Let opwise's packages ``theano.*.tests`` hold the suite's modules too."""
    import theano  # noqa: F401  (makes its modules)

    sys.meta_path.insert(0, _SuiteModules)
    for name, private in INTERNALS.items():
        module = importlib.import_module(name)
        for each in private:
            if not hasattr(module, each):
                setattr(module, each, None)
    for folder in SUITE.glob("theano/**/tests"):
        name = ".".join(folder.relative_to(SUITE).parts)
        parent = name.rpartition(".")[0]
        with contextlib.suppress(ImportError):  # its tests cannot be collected, and say so
            importlib.import_module(parent)
        if name in sys.modules:
            sys.modules[name].__path__ = [str(folder)]


_restore()
if (SUITE / "theano").is_dir():
    _adopt()
if (SUITE / "keras").is_dir():
    _restore_for_keras()


def pytest_pycollect_makeitem(collector, name, obj):
    """Give a class that a function of another module has made the module that holds it.

    nose did so, and such classes look themselves up by their names.
    """
    if isinstance(obj, type) and not hasattr(sys.modules[obj.__module__], obj.__name__):
        obj.__module__ = collector.module.__name__


def pytest_runtest_setup(item):
    """Call ``setUp`` of a class that is no TestCase, as nose did."""
    cls = getattr(item, "cls", None)
    if cls is not None and not issubclass(cls, unittest.TestCase) and hasattr(cls, "setUp"):
        item.instance.setUp()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except _KnownFailure as failure:
        pytest.skip(f"known failure: {failure}")
