"""Ways to compile one graph: rewrites, linker, with or without a C compiler, by name."""

from __future__ import annotations

from opwise.modes.debugmode import DebugMode
from opwise.modes.mode import OPT_FAST_COMPILE, OPT_FAST_RUN, OPT_NONE, OPT_O2, OPT_UNSAFE, Mode


class BuiltInKernels(Mode):
    """A mode that runs loops with the kernels built with opwise alone: no compiler is called."""

    def bound_linker(self, fgraph):
        linker = super().bound_linker(fgraph)
        linker.generate_kernels = False
        return linker


class Debugged(DebugMode):
    """A DebugMode that takes NaN and infinities for numbers, which random programs have."""

    generate_kernels = True

    def __init__(self, linker, optimizer):
        super().__init__(optimizer, stability_patience=2, check_isfinite=False)

    def bound_linker(self, fgraph):
        linker = super().bound_linker(fgraph)
        linker.generate_kernels = self.generate_kernels
        return linker


class DebuggedBuiltInKernels(Debugged):
    """The same, without a compiler."""

    generate_kernels = False


#: name -> (class of the mode, linker, rewrites); the first is what the others are held against
WAYS = {
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
}
#: ways that check much and take long: they run where they are asked for by name
THOROUGH = {
    "DEBUG_MODE": (Debugged, None, OPT_FAST_RUN),
    "DEBUG_MODE, built-in kernels": (DebuggedBuiltInKernels, None, OPT_FAST_RUN),
}
REFERENCE = next(iter(WAYS))


def mode_of(way):
    """Return a new Mode for a way; KeyError with the ways there are for another name."""
    every = {**WAYS, **THOROUGH}
    if way not in every:
        raise KeyError(f"no way is called {way!r}; there are {', '.join(map(repr, every))}")
    cls, linker, query = every[way]
    return cls(linker, query)
