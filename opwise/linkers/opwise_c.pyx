# cython: language_level=3, binding=False, freethreading_compatible=False
"""The compiled extension: a VM that runs the steps of a program in turn, and the path of calls.

Values between steps that have a C implementation lie in slots (csupport/runtime.h), never in Python
objects. ``opwise.linkers.vm`` is the same VM in Python, and its specification.

The modules of ``opwise.linkers.native`` do the work. One shared library holds them, this module and
the C code of csupport, so C has one copy of its state. This module loads the others from the
library, and has their public names.
"""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

from opwise.linkers import native

#: {module: its public names}; each module comes after those that it imports
MODULES = {
    "signals": ("Ending",),
    "resources": (
        "PROBE_SLACK", "fill_new_blocks", "keep_at_most", "kept_blocks", "probe_rate",
        "probe_stream", "second_level_cache", "set_threads", "threads",
    ),
    "holding": ("hold_the_same",),
    "builtin": (
        "ADDERS", "ARGMAXERS", "INTERPRET", "LOOPS", "MAXARG", "MAXDIM", "MAXREG",
        "PROCESSOR_VECTORS", "REDUCERS", "VECTORS", "Code", "conv_algorithm", "kinds",
        "needs_blas", "product_parts", "use_vectors",
    ),
    "blas": ("has_blas", "has_lapack", "load_blas", "load_lapack", "set_blas"),
    "library": ("Library", "OnDemand", "lend", "load_special"),
    "objectcode": ("ObjectCode",),
    "locks": ("BUSY", "Claim", "Lock"),
    "timing": ("Ranges", "Timing", "clock"),
    "slots": (),
    "decisions": (),
    "generators": ("saved",),
    "vm": ("VM", "NotComputed", "Runner", "StepThunk"),
    "strips": ("run_in_strips",),
    "choice": ("Chooser",),
    "loop": ("Loop",),
    "distributions": ("GeneratorDraw", "distributions", "draw_numbers"),
    "draws": ("Draw", "TracedDraw", "Source", "draw_in_turn"),
    "pythonvm": ("PythonVM",),
    "callpath": ("Argument", "CallPath", "LengthPair", "watch_main_calls"),
}


def _load(name):
    """Return a module of ``native``, loaded from the file of this one."""
    whole = f"{native.__name__}.{name}"
    loader = ExtensionFileLoader(whole, __file__)
    module = module_from_spec(spec_from_file_location(whole, __file__, loader=loader))
    sys.modules[whole] = module
    loader.exec_module(module)
    return module


for name, public in MODULES.items():
    module = _load(name)
    globals().update({each: getattr(module, each) for each in public})
