"""BLAS and LAPACK of scipy: the functions that the compiled VM takes when a step needs them."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

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


#: the name of a function, a capsule with it, and the signatures that opwise was written for
Found = tuple[str, object, Sequence[str]]


def functions(library: str) -> Iterator[Found]:
    """Yield the functions of scipy's 'blas' or 'lapack' that the compiled VM calls.

    Raises ImportError if scipy lacks the library.
    """
    if library == "blas":
        yield from _found(_cython_blas(), _ARGUMENTS)
    else:
        yield from _found(_cython_blas(), _SOLVERS)
        yield from _found(_cython_module("cython_lapack"), _LAPACK)


def _found(module: ModuleType, arguments: dict[str, str]) -> Iterator[Found]:
    """Yield functions of a module of scipy's, for float64 and then float32."""
    own = f"__pyx_t_5scipy_6linalg_{len(_short(module))}{_short(module)}_"
    for letter, c_type in (("d", "double"), ("s", "float")):
        for name, types in arguments.items():
            expected = [
                f"void ({types.replace('T', t).replace('|', ', ')})" for t in (own + letter, c_type)
            ]
            yield letter + name, module.__pyx_capi__[letter + name], expected


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
