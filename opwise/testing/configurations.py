"""Configurations to compile a graph in, by name: rewrites, linker, with or without a C compiler."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from opwise.compile.executable import Function
from opwise.config import change_flags
from opwise.graph.fgraph import FunctionGraph
from opwise.linkers.base import Linker
from opwise.modes.debugmode import DebugMode
from opwise.modes.mode import OPT_FAST_COMPILE, OPT_FAST_RUN, OPT_NONE, OPT_O2, OPT_UNSAFE, Mode
from opwise.optimizers.database import Query


class BuiltInKernels(Mode):
    """A mode that runs loops on the kernels built with opwise: it calls no compiler."""

    def bound_linker(self, fgraph: FunctionGraph) -> Linker:
        linker: Linker = super().bound_linker(fgraph)
        linker.generate_kernels = False
        return linker


class Begun(Mode):
    """A mode whose first calls run built-in loops, while their kernels are compiled."""


class FromTheCache(BuiltInKernels):
    """The same; functions are compiled twice, and the second takes its graph from the cache."""


class Debugged(DebugMode):
    """A DebugMode that accepts NaN and infinity, which random programs produce."""

    generate_kernels = True

    def __init__(self, linker: None, optimizer: Query) -> None:
        super().__init__(optimizer, stability_patience=2, check_isfinite=False)

    def bound_linker(self, fgraph: FunctionGraph) -> Linker:
        linker: Linker = super().bound_linker(fgraph)
        linker.generate_kernels = self.generate_kernels
        return linker


class DebuggedBuiltInKernels(Debugged):
    """The same, without a compiler."""

    generate_kernels = False


#: name -> (class of the mode, linker, rewrites); the others are compared with the first
CONFIGURATIONS: dict[str, tuple[Any, str | None, Query]] = {
    "no optimizer, py": (Mode, "py", OPT_NONE),
    "no optimizer, c|py": (BuiltInKernels, "c|py", OPT_NONE),
    "FAST_COMPILE": (Mode, "c|py", OPT_FAST_COMPILE),
    "FAST_COMPILE, py": (Mode, "py", OPT_FAST_COMPILE),
    "o2": (Mode, "c|py", OPT_O2),
    "FAST_RUN, py": (Mode, "py", OPT_FAST_RUN),
    "FAST_RUN, built-in kernels": (BuiltInKernels, "c|py", OPT_FAST_RUN),
    "FAST_RUN": (Mode, "c|py", OPT_FAST_RUN),
    "FAST_RUN without fusion": (BuiltInKernels, "c|py", OPT_FAST_RUN.excluding("fusion")),
    "FAST_RUN without inplace": (BuiltInKernels, "c|py", OPT_FAST_RUN.excluding("inplace")),
    "FAST_RUN, vm": (BuiltInKernels, "vm", OPT_FAST_RUN),
    "FAST_RUN, cvm_nogc": (BuiltInKernels, "cvm_nogc", OPT_FAST_RUN),
    "unsafe": (BuiltInKernels, "c|py", OPT_UNSAFE),
    "FAST_RUN, from the cache": (FromTheCache, "c|py", OPT_FAST_RUN),
}
#: configurations that run only if they are named, since they take long or need a device
THOROUGH: dict[str, tuple[Any, str | None, Query]] = {
    "FAST_RUN, cupy": (Mode, "cupy", OPT_FAST_RUN),
    "no optimizer, cupy": (Mode, "cupy", OPT_NONE),
    "FAST_RUN, begun on built-in loops": (Begun, "c|py", OPT_FAST_RUN),
    "DEBUG_MODE": (Debugged, None, OPT_FAST_RUN),
    "DEBUG_MODE, built-in kernels": (DebuggedBuiltInKernels, None, OPT_FAST_RUN),
}
#: numbers of compilations
_begun = count()
#: the configuration that others are compared with
REFERENCE = next(iter(CONFIGURATIONS))


def mode_of(configuration: str) -> Mode:
    """Return a new Mode for a configuration. Raises KeyError for an unknown name."""
    every = {**CONFIGURATIONS, **THOROUGH}
    if configuration not in every:
        raise KeyError(
            f"no configuration is called {configuration!r}; there are {', '.join(map(repr, every))}"
        )
    cls, linker, query = every[configuration]
    mode: Mode = cls(linker, query)
    return mode


def compiled_in(configuration: str, make: Callable[[Mode], Function]) -> Function:
    """Return the function that ``make`` compiles under a mode, in a configuration."""
    mode = mode_of(configuration)
    if isinstance(mode, Begun):
        unknown = f"-DOW_BEGUN={next(_begun)}"  # the cache has no kernels that were compiled so
        with change_flags({"background_compilation": True, "gcc.cxxflags": unknown}):
            return make(mode)
    if not isinstance(mode, FromTheCache):
        return make(mode)
    with change_flags(cache_graphs=True):
        make(mode)
        return make(mode)
