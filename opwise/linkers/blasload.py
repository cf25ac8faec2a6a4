"""BLAS for the compiled VM: scipy's functions, loaded when the first large product runs."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType

from opwise.linkers import blasthreads, opwise_c

_ARGUMENTS = {
    "gemm": "char *|char *|int *|int *|int *|T *|T *|int *|T *|int *|T *|T *|int *",
    "gemv": "char *|int *|int *|T *|T *|int *|T *|int *|T *|T *|int *",
    "ger": "int *|int *|T *|T *|int *|T *|int *|T *|int *",
}


def load() -> None:
    """Give the compiled VM scipy's BLAS functions.

    Raises ImportError unless scipy states the signature that opwise was written for: with integers
    of another size results would silently be wrong.
    """
    if opwise_c.has_blas():
        return
    functions = _cython_blas().__pyx_capi__
    for letter, c_type in (("d", "double"), ("s", "float")):
        for name, arguments in _ARGUMENTS.items():
            expected = [
                f"void ({arguments.replace('T', t).replace('|', ', ')})"
                for t in (f"__pyx_t_5scipy_6linalg_11cython_blas_{letter}", c_type)
            ]
            opwise_c.set_blas(letter + name, functions[letter + name], expected)
    blasthreads.libraries_changed()


def _cython_blas() -> ModuleType:
    """Return scipy.linalg.cython_blas without importing the whole of scipy.linalg (0.2 s)."""
    name = "scipy.linalg.cython_blas"
    if name in sys.modules:
        return sys.modules[name]
    package = importlib.util.find_spec("scipy")
    if package is None or not package.submodule_search_locations:
        raise ImportError("scipy is not installed: opwise takes BLAS from it")
    folder = os.path.join(package.submodule_search_locations[0], "linalg")
    found = importlib.machinery.PathFinder.find_spec("cython_blas", [folder])
    spec = found and importlib.util.spec_from_file_location(name, found.origin)
    if spec is None or spec.loader is None:
        raise ImportError(f"this scipy has no linalg.cython_blas in {folder}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
