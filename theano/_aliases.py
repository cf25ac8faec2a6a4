"""The table of legacy module names, and the code that makes modules from it.

A legacy module that opwise has under another name is the same module. Any other one is made of the
names of several modules of opwise. A name that opwise does not have raises an error that says so.
"""

from __future__ import annotations

import importlib
import sys
import types

import numpy as np

from opwise.errors import MISSING, lacks

_GRAPH = ("variable", "apply", "op", "type", "fgraph", "features", "traversal", "null", "testvalue",
          "clinker", "enums", "params", "externalop")  # fmt: skip
_OPTIMIZERS = ("rule", "database", "passes", "navigators", "pattern", "merge", "stages")
_TENSOR_RULES = ("rule", "stages", "passes", "shapefeature", "folding", "rules.blas",
                 "rules.fusion", "rules.inplace")  # fmt: skip


def _all(package, names):
    return tuple(f"opwise.{package}.{name}" for name in names)


_GOF = (
    *_all("graph", _GRAPH),
    *_all("optimizers", _OPTIMIZERS),
    "opwise.linkers.base",
    "opwise.linkers.wrap",
    "opwise.linkers.storage",
    "opwise.scalar.cdata",
    "opwise.errors",
)
_COMPILE = (
    *_all("compile", ("function", "maker", "executable", "io", "shared", "construct")),
    "opwise.legacy.module",
    *_all("modes", ("mode", "profilemode", "debugmode", "monitormode")),
    "opwise.profiling.stats",
    "opwise.optimizers.stages",
    "opwise.tensor.convert",
    "opwise.errors",
)

#: the same module under another name
SAME = {
    "theano.errors": "opwise.errors",
    "theano.gradient": "opwise.gradient",
    "theano.scalar": "opwise.scalar",
    "theano.sandbox.cuda": "opwise.gpu.legacy",
    "theano.sandbox.cuda.basic_ops": "opwise.gpu.legacy",
    "theano.gpuarray": "opwise.gpu.legacy",
    "theano.compile.debugmode": "opwise.modes.debugmode",
    "theano.compile.mode": "opwise.modes.mode",
    "theano.compile.module": "opwise.legacy.module",
    "theano.compile.monitormode": "opwise.modes.monitormode",
    "theano.compile.nanguardmode": "opwise.modes.nanguardmode",
    "theano.compile.profilemode": "opwise.modes.profilemode",
    "theano.compile.profiling": "opwise.profiling.stats",
}

#: modules made of others: name -> the modules with its names; of equal names the first one counts
MADE = {
    "theano.compat": ("theano._py2",),
    "theano.compat.python2x": ("theano._py2",),
    "theano.compat.six": ("theano._py2",),
    "theano.compat.six.moves": ("theano._py2",),
    "theano.compile": _COMPILE,
    "theano.compile.builders": _COMPILE,
    "theano.compile.function": _COMPILE,
    "theano.compile.function_module": _COMPILE,
    "theano.compile.io": ("opwise.compile.io",),
    "theano.compile.ops": ("opwise.tensor.convert", "opwise.tensor.shape", "opwise.compile.shared"),
    "theano.compile.pfunc": _COMPILE,
    "theano.compile.sharedvalue": ("opwise.compile.shared",),
    "theano.configdefaults": ("opwise.config",),
    "theano.configparser": ("opwise.config",),
    "theano.gof": _GOF,
    "theano.gof.cc": _GOF,
    "theano.gof.destroyhandler": _GOF,
    "theano.gof.fg": _GOF,
    "theano.gof.graph": _GOF,
    "theano.gof.link": _GOF,
    "theano.gof.null_type": ("opwise.graph.null",),
    "theano.gof.op": _GOF,
    "theano.gof.opt": _GOF,
    "theano.gof.optdb": _GOF,
    "theano.gof.params_type": ("opwise.graph.params", "opwise.graph.enums"),
    "theano.gof.sched": _GOF,
    "theano.gof.toolbox": _GOF,
    "theano.gof.type": _GOF,
    "theano.gof.utils": _GOF,
    "theano.gof.vm": _GOF,
    "theano.gof.wrapper": ("opwise.graph.params",),
    "theano.misc": (),
    "theano.misc.safe_asarray": ("theano._aliases",),
    "theano.printing": ("opwise.graph.printing", "opwise.graph.drawing", "opwise.tensor.printing"),
    "theano.sandbox": (),
    "theano.scalar.basic": ("opwise.scalar",),
    "theano.scalar.basic_scipy": ("opwise.scalar",),
    "theano.scalar.basic_sympy": ("opwise.scalar",),
    "theano.tensor": ("opwise.tensor",),
    "theano.tensor.basic": ("opwise.tensor", "opwise.tensor.variable", "opwise.tensor.creation",
                            "opwise.tensor.knownvalues", "opwise.errors"),
    "theano.tensor.blas": ("opwise.tensor.blas", "opwise.optimizers.rules.blas",
                           "opwise.optimizers.rule"),
    "theano.tensor.blas_c": ("opwise.tensor.blas",),
    "theano.tensor.elemwise": ("opwise.tensor.elemwise", "opwise.tensor.dimshuffle",
                               "opwise.tensor.reduce"),
    "theano.tensor.extra_ops": ("opwise.tensor.extra_ops", "opwise.tensor"),
    "theano.tensor.inplace": (),
    "theano.tensor.nnet": ("opwise.tensor.nnet",),
    "theano.tensor.nnet.bn": ("opwise.tensor.nnet.bn", "opwise.tensor.nnet"),
    "theano.tensor.nnet.nnet": ("opwise.tensor.nnet.nnet", "opwise.tensor.nnet"),
    "theano.tensor.nnet.sigm": ("opwise.tensor.nnet.sigm", "opwise.tensor.nnet", "opwise.scalar"),
    "theano.tensor.opt": (*_all("optimizers", _TENSOR_RULES), "opwise.tensor.creation",
                          "opwise.tensor.knownvalues", "opwise.tensor.join",
                          "opwise.tensor.assertion", "opwise.tensor.shape"),
    "theano.tensor.sharedvar": ("opwise.compile.shared",),
    "theano.tensor.sort": ("opwise.tensor.sort",),
    "theano.tensor.subtensor": ("opwise.tensor.subtensor", "opwise.tensor.advanced_subtensor",
                                "opwise.tensor.slices", "opwise.tensor"),
    "theano.tensor.type": ("opwise.tensor.type",),
    "theano.tensor.type_other": ("opwise.tensor.slices", "opwise.graph.type"),
    "theano.tensor.utils": ("opwise.tensor",),
    "theano.tensor.var": ("opwise.tensor.variable",),
    "theano.tensor.xlogx": ("opwise.tensor.functions",),
    "theano.tests": (),
    "theano.tests.breakpoint": ("opwise.tensor.breakpoint",),
    "theano.tests.unittest_tools": ("theano._unittest_tools",),
    "theano.updates": ("opwise.compile.updates",),
}  # fmt: skip


#: modules that are not attributes of their parent, which has a function of the same name
HIDDEN = ("theano.compile.function", "theano.tensor.sort", "theano.tensor.var")


class _Made(types.ModuleType):
    """A module made of the names of others; they are copied when the first one is read."""

    def __getattr__(self, name):
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        _fill(self)
        if name == "__all__":
            return [known for known in vars(self) if not known.startswith("_")]
        try:
            return vars(self)[name]
        except KeyError:
            sources = MADE[self.__name__]
            text = lacks(f"{self.__name__}.{name}", [n for n in vars(self) if n[0] != "_"])
            if sources and name not in MISSING:
                text += f" It would be in {' or '.join(sources)}."
            raise AttributeError(text, name=name, obj=self) from None

    def __dir__(self):
        _fill(self)
        return list(vars(self))


def _fill(module):
    """Copy the names of its sources into a module.

    This is not a method, whose name could hide that of a source.
    """
    own = vars(module)
    for source in MADE[module.__name__]:
        for name, value in vars(importlib.import_module(source)).items():
            if not name.startswith("__"):
                own.setdefault(name, value)


class _Missing:
    """The last of Python's finders: its error says which modules of theano opwise does not have.

    The error has no ``name``: ``from theano import scan`` would replace an error with that name by
    one that says less.
    """

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("theano.") and not MISSING.isdisjoint(name.split(".")):
            raise ModuleNotFoundError(lacks(name))
        return None


def install(package):
    """Make every module of the table importable, and an attribute of its parent."""
    sys.meta_path.append(_Missing)
    modules = {name: importlib.import_module(own) for name, own in SAME.items()}
    for name in MADE:
        modules[name] = _Made(name, f"The names of Theano's module {name}, from opwise.")
        modules[name].__path__ = []
    modules["theano"] = package
    for name, module in modules.items():
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent and name not in HIDDEN:
            setattr(modules[parent], child, module)


def _asarray(a, dtype, order=None):
    """Return ``a`` as an array of ``dtype``, which may be 'floatX'; copies only if necessary."""
    from opwise.config import config

    return np.asarray(a, dtype=config.floatX if str(dtype) == "floatX" else dtype, order=order)
