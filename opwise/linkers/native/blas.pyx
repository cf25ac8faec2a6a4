# cython: language_level=3, binding=False
"""BLAS and LAPACK: scipy's functions, loaded at the first step that needs them."""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.string cimport memcpy

from opwise.linkers.native.kinds cimport (
    ow_has_blas,
    ow_has_lapack,
    ow_load_blas,
    ow_load_lapack,
    ow_set_blas,
)
from opwise.linkers.native.runtime cimport OW_OK, OW_VALUE_ERROR
from opwise.linkers.native.signals cimport note


def set_blas(str name, capsule, expected):
    """Take a function from a capsule; its signature must be one of ``expected``."""
    cdef const char *signature = PyCapsule_GetName(capsule)
    if signature.decode() not in expected:
        raise ImportError(
            f"this scipy uses other integers for BLAS: its {name} has the signature "
            f"{signature.decode()!r}, opwise was written for {expected[0]!r}"
        )
    if not ow_set_blas(name.encode(), PyCapsule_GetPointer(capsule, signature)):
        raise ValueError(f"opwise does not use the BLAS function {name}")


def has_blas():
    """Return whether the BLAS functions have been taken."""
    return bool(ow_has_blas())


def has_lapack():
    """Return whether the LAPACK functions have been taken."""
    return bool(ow_has_lapack())


def load_blas():
    """Take scipy's BLAS functions, unless they have been taken.

    Raises ImportError unless scipy states the signature that opwise was written for: with integers
    of another size results would silently be wrong.
    """
    if not ow_has_blas():
        _take("blas")


def load_lapack():
    """Take scipy's LAPACK functions, unless they have been taken; errors as of ``load_blas``."""
    if not ow_has_lapack():
        _take("lapack")


cdef int _take(str library) except -1:
    from opwise.linkers import blasload, blasthreads  # few processes need BLAS

    for name, capsule, expected in blasload.functions(library):
        set_blas(name, capsule, expected)
    blasthreads.libraries_changed()
    return 0


cdef int _load(load, char *error) noexcept:
    """Load BLAS or LAPACK; an interrupt may come meanwhile."""
    try:
        load()
        return OW_OK
    except ImportError as e:
        message = str(e).encode()[:300] + b"\0"
        memcpy(error, <char *>message, len(message))
        return OW_VALUE_ERROR
    except BaseException as e:
        return note(e)


cdef int _load_blas(char *error) noexcept with gil:
    """Called by a step that needs BLAS for the first time."""
    return _load(load_blas, error)


cdef int _load_lapack(char *error) noexcept with gil:
    """Called by a step that needs LAPACK for the first time."""
    return _load(load_lapack, error)


ow_load_blas, ow_load_lapack = _load_blas, _load_lapack
