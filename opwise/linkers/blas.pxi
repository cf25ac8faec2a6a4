# BLAS and LAPACK: scipy's functions, loaded at the first step that needs them. Included by
# opwise_c.pyx.

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


# what a loader met; read at once, with the GIL held since
cdef object _load_error = None


cdef int _load(bint lapack, char *error) noexcept:
    """Load BLAS or LAPACK; an interrupt may come meanwhile."""
    global _load_error
    try:
        from opwise.linkers.blasload import load, load_lapack

        (load_lapack if lapack else load)()
        return OW_OK
    except ImportError as e:
        message = str(e).encode()[:300] + b"\0"
        memcpy(error, <char *>message, len(message))
        return OW_VALUE_ERROR
    except BaseException as e:
        _load_error = e
        return OW_PYTHON_ERROR


cdef int _load_blas(char *error) noexcept with gil:
    """Called by a step that needs BLAS for the first time."""
    return _load(False, error)


cdef int _load_lapack(char *error) noexcept with gil:
    """Called by a step that needs LAPACK for the first time."""
    return _load(True, error)


ow_load_blas, ow_load_lapack = _load_blas, _load_lapack
