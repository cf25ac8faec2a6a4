# cython: language_level=3, binding=False
"""What modules and classes hold, compared without touching the objects."""

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef struct _Class "PyTypeObject":
        PyObject *tp_dict
    bint PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **)


def hold_the_same(list owners, list kept):
    """Return whether classes and dicts hold the objects of a list, one after the other."""
    cdef Py_ssize_t i = 0, at, n = len(kept)
    cdef PyObject *held
    cdef PyObject *value
    for owner in owners:
        held = <PyObject *>owner if isinstance(owner, dict) else (<_Class *>owner).tp_dict
        at = 0
        while PyDict_Next(held, &at, NULL, &value):
            if i == n or value != <PyObject *>PyList_GET_ITEM(kept, i):
                return False
            i += 1
    return i == n
