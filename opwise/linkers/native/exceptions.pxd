# cython: language_level=3
# Exceptions that C code sets: to look for them, take them and set them again.

from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

# Functions that leave it to their caller to look for an exception: they return NULL or -1 if there
# is one. A ``try`` of Cython saves the exceptions that are being handled, even if nothing fails;
# what every call passes is called by these instead.
ctypedef PyObject *(*ternary)(PyObject *, PyObject *, PyObject *) noexcept
ctypedef int (*status)(PyObject *) noexcept

cdef extern from "Python.h":
    PyObject *PyException_GetTraceback(object) noexcept
    void PyErr_Restore(PyObject *, PyObject *, PyObject *) noexcept


cdef inline int raise_pending() except -1:
    """Raise the exception that C code has set, if there is one."""
    if PyErr_Occurred() != NULL:
        return -1
    return 0


cdef inline object take_pending():
    """Return the exception that C code has set."""
    try:
        raise_pending()
    except BaseException as e:
        return e


cdef inline void set_error(object error) noexcept:
    """Let an exception be the one that C code has set, with its traceback and its context.

    ``raise`` would put the exception that the caller handles in the place of its context.
    """
    kind = type(error)
    Py_INCREF(kind)
    Py_INCREF(error)
    PyErr_Restore(<PyObject *>kind, <PyObject *>error, PyException_GetTraceback(error))


cdef inline int restore_error(object error) except -1:
    """Raise an exception again that ``take_pending`` has returned."""
    set_error(error)
    return -1
