"""NVTX ranges, which system profilers such as Nsight Systems show: the library, and labels.

VMs push and pop a range for each call and each Apply under the flag profiling.nvtx.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from opwise.config import config
from opwise.graph.provenance import text_of

#: names of the library up to CUDA 12, and since
_NAMES = ("libnvToolsExt.so.1", "libnvtx3interop.so.1")
#: most characters of a label; texts of fused Applys are long
_MOST = 200


def mark(vm: Any, name: str | None, order: Iterable[Any]) -> None:
    """Have a VM mark its calls and Applys, if it can.

    name: that of the function. order: its Applys. Raises OSError without an NVTX library.
    """
    start = getattr(vm, "start_marking", None)
    if start is None:  # DebugMode runs every Apply several ways
        return
    labels = [_label(f"{k} {text_of(node.op)}") for k, node in enumerate(order)]
    start(*_functions(config.profiling.nvtx_library), _label(text_of(name)), labels)


def _label(text: str) -> bytes:
    return text[:_MOST].replace("\0", "?").encode("utf-8", "replace")


@cache
def _functions(named: str) -> tuple[Any, Any]:
    """Return the C functions that push and pop a range: nvtxRangePushA and nvtxRangePop.

    named: path of the library, "" to search for it.
    """
    library = _library(named)
    try:
        push, pop = library.nvtxRangePushA, library.nvtxRangePop
    except AttributeError as error:
        raise OSError(f"{library._name} is no NVTX library: {error}") from None
    push.argtypes, pop.argtypes = [ctypes.c_char_p], []
    return push, pop


def _library(named: str) -> ctypes.CDLL:
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


def _installed() -> list[str]:
    """Return the paths of the libraries that packages of NVIDIA installed."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec is not None else None
    return [
        str(path)
        for folder in folders or ()
        for name in _NAMES
        for path in sorted(Path(folder).glob(f"*/lib/{name}"))
    ]
