# cython: language_level=3
# Compiled code of an Op that takes Python objects.

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from opwise.linkers.native.library cimport Library

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *)

ctypedef void *(*ow_user_new)(PyObject *) noexcept
ctypedef int (*ow_user_run)(void *, PyObject **) noexcept
ctypedef void (*ow_user_free)(void *) noexcept


@cython.final
cdef class ObjectCode:
    cdef PyObject **cells
    cdef int nin, nout
    cdef void *state
    cdef ow_user_run runs
    cdef ow_user_free frees
    cdef Library library

    cdef int run(self) except -1
    cdef void forget(self) noexcept

    cdef inline void put(self, int i, object value) noexcept:
        """Put a value into a cell."""
        cdef PyObject *old = self.cells[i]
        Py_INCREF(value)
        self.cells[i] = <PyObject *>value
        if old != NULL:
            Py_DECREF(<object>old)

    cdef inline bint is_free(self, int i) noexcept:
        """Return whether nobody else holds the value that a cell has kept."""
        cdef PyObject *value = self.cells[i]
        return value != NULL and value != <PyObject *>None and Py_REFCNT(value) == 1

    cdef inline object output(self, int k):
        """Return an output."""
        return <object>self.cells[self.nin + k]
