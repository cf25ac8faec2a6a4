"""opwise compiles symbolic array programs under named modes and shows where their time goes.

The names here are the public ones; all names and modules of ``theano`` are here too. ``nn``,
``linalg`` and ``random`` have short names for what programs of today look for.
"""

# ruff: noqa: E402 (the clock is read before what is imported)

import time as _time
from typing import TYPE_CHECKING as _TYPE_CHECKING

_start = _time.perf_counter()
_began = _time.time_ns()

try:
    import opwise.graph.callstack as _stacks  # noqa: F401
    import opwise.linkers.opwise_c as _built  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name not in ("opwise.graph.callstack", "opwise.linkers.opwise_c"):
        raise
    raise ImportError(
        f"The extension of opwise is not built in {__path__[0]}, from where Python takes opwise. "
        "In a checkout build it, by `python3 -m pip install -e .`; if opwise is installed, start "
        "Python in another folder than the checkout.",
        name="opwise",
        path=__file__,
    ) from None

from opwise import errors, gradient, scalar, tensor
from opwise.compile.asimported import note_import as _note_import
from opwise.compile.construct import clone, rebuild_collect_shared
from opwise.compile.executable import Function
from opwise.compile.fromgraph import OpFromGraph
from opwise.compile.function import function
from opwise.compile.io import In, Out, Param, SymbolicInput, SymbolicOutput
from opwise.compile.maker import FunctionMaker
from opwise.compile.perthread import PerThread
from opwise.compile.shared import SharedVariable, shared
from opwise.config import change_flags, config
from opwise.gradient import Lop, Rop, grad, subgraph_grad, verify_grad
from opwise.graph.apply import Apply
from opwise.graph.externalop import OpenMPOp
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.fromfunction import as_op
from opwise.graph.op import Op
from opwise.graph.printing import pp
from opwise.graph.provenance import scope
from opwise.graph.type import Generic, Type, generic
from opwise.graph.variable import Constant, Variable
from opwise.linkers.base import (
    CLinker,
    Linker,
    OpWiseCLinker,
    PerformLinker,
    VM_Linker,
)
from opwise.linkers.storage import Container
from opwise.linkers.wrap import DualLinker, WrapLinker, WrapLinkerMany
from opwise.modes.mode import Mode, get_default_mode, get_mode, register_mode
from opwise.modes.profilemode import ProfileMode
from opwise.names.front import install as _answer_to_all_names
from opwise.profiling import process as _process
from opwise.profiling import sampling as _sampling
from opwise.tensor.products import dot
from opwise.tuning.advise import advise
from opwise.version import __version__

__all__ = [
    "Apply",
    "CLinker",
    "Component",
    "ComponentDict",
    "ComponentList",
    "Composite",
    "Constant",
    "Container",
    "DualLinker",
    "External",
    "FancyModule",
    "Function",
    "FunctionGraph",
    "FunctionMaker",
    "Generic",
    "In",
    "Linker",
    "Lop",
    "Member",
    "Method",
    "Mode",
    "Module",
    "Op",
    "OpFromGraph",
    "OpWiseCLinker",
    "OpenMPOp",
    "Out",
    "Param",
    "PerThread",
    "PerformLinker",
    "ProfileMode",
    "ProfileStats",
    "Rop",
    "SharedVariable",
    "SymbolicInput",
    "SymbolicOutput",
    "Type",
    "VM_Linker",
    "Variable",
    "WrapLinker",
    "WrapLinkerMany",
    "__version__",
    "advise",
    "as_op",
    "change_flags",
    "clone",
    "config",
    "dot",
    "errors",
    "foldl",
    "foldr",
    "function",
    "generic",
    "get_default_mode",
    "get_mode",
    "grad",
    "gradient",
    "map",
    "pp",
    "printing",
    "rebuild_collect_shared",
    "reduce",
    "register_mode",
    "scalar",
    "scan",
    "scope",
    "shared",
    "subgraph_grad",
    "tensor",
    "verify_grad",
]


if _process.has_status_pipe():
    # at the end of the process it reports whether a function was compiled
    from opwise.profiling import stats as _stats  # noqa: F401

_process.note_import(_start)
_sampling.begin()
_note_import(_began)

# the other names of the theano module, and modules that most programs never use: they are imported
# when they are first used
_answer_to_all_names(__name__)

if _TYPE_CHECKING:
    from opwise import linalg as linalg
    from opwise import nn as nn
    from opwise import random as random
    from opwise import sparse as sparse
    from opwise import testing as testing
    from opwise.graph import printing as printing
    from opwise.loops import foldl, foldr, map, reduce, scan
    from opwise.profiling.stats import ProfileStats

    def __getattr__(name: str) -> object: ...
