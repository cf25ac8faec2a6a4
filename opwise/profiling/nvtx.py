"""Ranges that system profilers show, as Nsight Systems: the library that takes them, and labels.

VMs push and pop a range for each call and each Apply under the flag profiling.nvtx.
"""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

from opwise.config import config
from opwise.graph.provenance import text_of

#: what the library is called up to CUDA 12, and since
_NAMES = ("libnvToolsExt.so.1", "libnvtx3interop.so.1")
#: characters of a label; fused Applys have texts without end
_MOST = 200


def mark(vm, name, order):
    """Have a VM mark its calls and Applys, if it can.

    name: of the function. order: its Applys. Raises OSError if no library takes the marks.
    """
    start = getattr(vm, "start_marking", None)
    if start is None:  # DebugMode runs every Apply several ways
        return
    labels = [_label(f"{k} {text_of(node.op)}") for k, node in enumerate(order)]
    start(*_functions(config.profiling.nvtx_library), _label(text_of(name)), labels)


def _label(text):
    return text[:_MOST].replace("\0", "?").encode("utf-8", "replace")


@cache
def _functions(named):
    """Return the C functions that push and pop a range: nvtxRangePushA and nvtxRangePop."""
    library = _library(named)
    try:
        push, pop = library.nvtxRangePushA, library.nvtxRangePop
    except AttributeError as error:
        raise OSError(f"{library._name} is no NVTX library: {error}") from None
    push.argtypes, pop.argtypes = [ctypes.c_char_p], []
    return push, pop


def _library(named):
    candidates = [named] if named else [*_NAMES, *_installed()]
    failures = []
    for path in candidates:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            failures.append(str(error))
    raise OSError(
        "The flag profiling.nvtx is on, and no NVTX library can be loaded: "
        f"{'; '.join(failures)}. The package nvidia-nvtx-cu12 has one; the flag "
        "profiling.nvtx_library names another."
    )


def _installed():
    """Return the libraries that packages of NVIDIA have installed."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec is not None else ()
    return [
        str(path)
        for folder in folders
        for name in _NAMES
        for path in sorted(Path(folder).glob(f"*/lib/{name}"))
    ]
