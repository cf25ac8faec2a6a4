"""Placeholders: what stands for a name of Theano that opwise lacks, and why opwise lacks it.

A placeholder can be imported, passed on, and named in ``isinstance`` and ``except``; as a condition
it is false, for programs that ask ``if cuda_ndarray:`` after an import that may fail. Whatever else
a program does with it raises MissingFeatureError, which says why opwise lacks the name and what to
use. An exception class of Theano is made as a real class: a program may catch or raise it, and
opwise never raises it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from opwise.errors import MissingFeatureError
from opwise.names.record import Recorded, usual


class Reason(NamedTuple):
    """Why opwise lacks names of Theano, and what to use."""

    #: a word for tables
    what: str
    why: str
    instead: str


_LOOPS = Reason(
    "loops", "it is an internal of Theano's scan, and loops of opwise are built otherwise",
    "Use theano.scan, theano.map, theano.reduce, theano.foldl and theano.foldr.",
)  # fmt: skip
_LAZY = Reason(
    "lazy conditions", "Theano did not run this rewrite either: branches became less lazy by it",
    "Leave it out.",
)  # fmt: skip
_CONVOLUTION = Reason(
    "convolution, pooling", "it is an internal of Theano's convolutions and pooling",
    "Use theano.tensor.nnet.conv2d and conv3d, and theano.tensor.signal.pool.",
)  # fmt: skip
_NETWORKS = Reason(
    "neural networks", "opwise does not have this operation of neural networks yet",
    "Write it with the operations of theano.tensor.",
)  # fmt: skip
_GPU = Reason(
    "GPU back ends", "opwise has neither of Theano's two GPU back ends, whose Ops it does not need",
    "Use the operations of theano.tensor: with the flag device=cuda opwise runs them on the GPU.",
)  # fmt: skip
_C_MODULES = Reason(
    "C modules", "opwise compiles and keeps C code in its own way",
    "Remove the use. `opwise cache` lists and clears the compiled kernels.",
)  # fmt: skip
_REWRITES = Reason(
    "rewrites", "opwise has rewrites of its own and no counterpart of this one",
    "To keep a rewrite out, name its tag in the flag optimizer_excluding or in mode.excluding.",
)  # fmt: skip
_VM = Reason(
    "linkers", "opwise runs functions in a VM of its own", "Choose one with the flag linker."
)
_TESTS = Reason(
    "Theano's tests", "it belongs to the tests of Theano itself",
    "Copy it into your own tests.",
)  # fmt: skip
_MISC = Reason(
    "tools", "it belongs to the tools beside Theano, which opwise does not have", "Copy it."
)
_SANDBOX = Reason(
    "experiments", "it belongs to Theano's experiments, which opwise does not have",
    "Write it with the operations of theano.tensor.",
)  # fmt: skip
_SYMPY = Reason(
    "sympy", "opwise does not take expressions of sympy",
    "Build the expression with theano.tensor.",
)  # fmt: skip
_FLAGS = Reason(
    "flags", "opwise keeps its flags in its own way",
    "Read and set flags as attributes of theano.config.",
)  # fmt: skip
_FOREIGN = Reason(
    "other packages", "Theano took it from another package, where it is not found",
    "Import it from a package that has it.",
)  # fmt: skip
_DEBUGGING = Reason(
    "internals", "it is an internal of Theano's DebugMode and profilers",
    "The public names of theano.compile.debugmode and theano.compile.profiling are there.",
)  # fmt: skip
_INTERNAL = Reason(
    "internals", "it is an internal of Theano without a counterpart in opwise",
    "Use the public names of theano and theano.tensor.",
)  # fmt: skip

#: patterns of dotted names (``*`` stands for any text), and why opwise lacks the names that match;
#: the first pattern counts
REASONS = {
    "*.tests.*": _TESTS,
    "theano.tests": _TESTS,
    "theano.test": _TESTS,
    "cuda_ndarray*": _GPU,
    "pygpu*": _GPU,
    "pycuda*": _GPU,
    "theano.gpuarray*": _GPU,
    "theano.sandbox.cuda*": _GPU,
    "theano.sandbox.gpuarray*": _GPU,
    "theano.misc.*cuda*": _GPU,
    "theano.misc.*gnumpy*": _GPU,
    "theano.misc.*gpu*": _GPU,
    "*.G[Pp][Uu]*": _GPU,
    "*.local_gpu*": _GPU,
    "theano.scan*": _LOOPS,
    "theano.sandbox.scan*": _LOOPS,
    "theano.tensor.opt.*scan*": _LOOPS,
    "theano.ifelse*": _LAZY,
    "*.tensor.*convert*": _INTERNAL,
    "*.compile.*convert*": _INTERNAL,
    "*.scalar.*convert*": _INTERNAL,
    "theano.configdefaults*": _FLAGS,
    "theano.sandbox.neighbours*": _CONVOLUTION,
    "theano.sandbox.conv*": _CONVOLUTION,
    "*[Cc]onv*": _CONVOLUTION,
    "*pool*": _CONVOLUTION,
    "*.corr*": _CONVOLUTION,
    "*neib*": _CONVOLUTION,
    "theano.tensor.nnet.neighbours*": _CONVOLUTION,
    "theano.tensor.signal*": _CONVOLUTION,
    "theano.gof.cmodule*": _C_MODULES,
    "theano.gof.cutils*": _C_MODULES,
    "theano.gof.compiledir*": _C_MODULES,
    "theano.gof.compilelock*": _C_MODULES,
    "theano.gof.cc*": _C_MODULES,
    "*lazylinker_c*": _C_MODULES,
    "*c_headers*": _C_MODULES,
    "theano.gof.vm*": _VM,
    "theano.gof.link*": _VM,
    "theano.gof.sched*": _VM,
    "*_sympy*": _SYMPY,
    "*Sympy*": _SYMPY,
    "theano.tensor.*opt*": _REWRITES,
    "theano.gof.opt*": _REWRITES,
    "theano.gof.unify*": _REWRITES,
    "theano.gof.destroyhandler*": _REWRITES,
    "*local_*": _REWRITES,
    "*Optimizer*": _REWRITES,
    "theano.misc*": _MISC,
    "theano.sandbox*": _SANDBOX,
    "theano.configparser*": _FLAGS,
    "theano.compile.debugmode*": _DEBUGGING,
    "theano.compile.prof*": _DEBUGGING,
    "theano.*": _INTERNAL,
    "*": _FOREIGN,
}


@cache
def reason(dotted: str) -> Reason:
    """Return why opwise lacks a name, given where Theano defines it."""
    return next(r for pattern, r in REASONS.items() if fnmatchcase(dotted, pattern))


class Placeholder(type):
    """The class of placeholders, which are classes so that ``except`` takes them."""

    recorded: Recorded

    def __new__(cls, name, bases, namespace, recorded=None, **options):
        for base in bases:
            if isinstance(base, Placeholder):
                raise missing(base)
        return super().__new__(cls, name, bases, namespace)

    def __init__(cls, name, bases, namespace, recorded=None):
        super().__init__(name, bases, namespace)
        type.__setattr__(cls, "recorded", recorded)

    def __repr__(cls):
        return f"<{cls.recorded.kind} {usual(cls.recorded).dotted}, which opwise lacks>"

    def __bool__(cls):
        return False

    def __instancecheck__(cls, instance):
        return False

    def __subclasscheck__(cls, subclass):
        return subclass is cls

    def __getattr__(cls, name):
        raise missing(cls, name)


def _raises(cls, *args, **kwargs):
    raise missing(cls)


for _each in """
    call setattr len iter next getitem setitem delitem contains int float index enter exit
    add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or
    radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand rxor ror
    neg pos abs invert lt le gt ge
""".split():
    setattr(Placeholder, f"__{_each}__", _raises)


def missing(placeholder: Placeholder, attribute: str = "") -> MissingFeatureError:
    """Return the error for a use of a placeholder: of ``attribute``, or of itself."""
    recorded = placeholder.recorded
    return MissingFeatureError(
        f"{text(usual(recorded))}\nTo list all names that a program uses and opwise lacks: "
        "opwise doctor PROGRAM",
        name=attribute or None,
        obj=placeholder,
    )


def text(recorded: Recorded) -> str:
    """Return what to tell the user of a name that opwise lacks."""
    article = "an" if recorded.kind[0] in "aeioO" else "a"
    _, why, instead = reason(recorded.home)
    return (
        f"opwise does not have {recorded.dotted} ({article} {recorded.kind} of Theano "
        f"{recorded.span()}): {why}. {instead}"
    )


@cache
def placeholder(recorded: Recorded) -> type:
    """Return what stands for a name that opwise lacks."""
    module, _, name = recorded.home.rpartition(".")
    namespace = {"__module__": module}
    if recorded.kind == "exception":
        return type(name, (Exception,), {**namespace, "__doc__": text(usual(recorded))})
    return Placeholder(name, (BaseException,), namespace, recorded=recorded)
