"""BLAS and LAPACK for the compiled VM: scipy's functions, loaded when a step first needs them."""

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


#: the functions of BLAS that only steps of LAPACK call, and those of LAPACK, of which the last one
#: tells the extension that all are there
_SOLVERS = {
    "trsv": "char *|char *|char *|int *|T *|int *|T *|int *",
    "trsm": "char *|char *|char *|char *|int *|int *|T *|T *|int *|T *|int *",
}
_LAPACK = {
    "potrf": "char *|int *|T *|int *|int *",
    "getrf": "int *|int *|T *|int *|int *|int *",
    "getri": "int *|T *|int *|int *|T *|int *|int *",
    "syevd": "char *|char *|int *|T *|int *|T *|T *|int *|int *|int *|int *",
    "gesdd": "char *|int *|int *|T *|int *|T *|T *|int *|T *|int *|T *|int *|int *|int *",
    "geqrf": "int *|int *|T *|int *|T *|T *|int *|int *",
    "orgqr": "int *|int *|int *|T *|int *|T *|T *|int *|int *",
}


def load() -> None:
    """Give the compiled VM scipy's BLAS functions.

    Raises ImportError unless scipy states the signature that opwise was written for: with integers
    of another size results would silently be wrong.
    """
    if opwise_c.has_blas():
        return
    _take(_cython_blas(), _ARGUMENTS)
    blasthreads.libraries_changed()


def load_lapack() -> None:
    """Give the compiled VM scipy's LAPACK functions; errors as those of ``load``."""
    if opwise_c.has_lapack():
        return
    _take(_cython_blas(), _SOLVERS)
    _take(_cython_module("cython_lapack"), _LAPACK)
    blasthreads.libraries_changed()


def _take(module: ModuleType, functions: dict[str, str]) -> None:
    """Hand functions of a module of scipy's to the extension, for float64 and then float32."""
    own = f"__pyx_t_5scipy_6linalg_{len(_short(module))}{_short(module)}_"
    for letter, c_type in (("d", "double"), ("s", "float")):
        for name, arguments in functions.items():
            expected = [
                f"void ({arguments.replace('T', t).replace('|', ', ')})"
                for t in (own + letter, c_type)
            ]
            capsule = module.__pyx_capi__[letter + name]
            opwise_c.set_blas(letter + name, capsule, expected)


def _short(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _cython_blas() -> ModuleType:
    return _cython_module("cython_blas")


def _cython_module(short: str) -> ModuleType:
    """Return a module of scipy.linalg without importing the whole of scipy.linalg (0.2 s)."""
    name = f"scipy.linalg.{short}"
    if name in sys.modules:
        return sys.modules[name]
    package = importlib.util.find_spec("scipy")
    if package is None or not package.submodule_search_locations:
        raise ImportError("scipy is not installed: opwise takes BLAS from it")
    folder = os.path.join(package.submodule_search_locations[0], "linalg")
    found = importlib.machinery.PathFinder.find_spec(short, [folder])
    spec = found and importlib.util.spec_from_file_location(name, found.origin)
    if spec is None or spec.loader is None:
        raise ImportError(f"this scipy has no linalg.{short} in {folder}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
