# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, freethreading_compatible=False
"""The compiled VM runs the steps of a program in turn, and the call path calls functions.

Values between steps that have a C implementation lie in slots (csupport/runtime.h), never in Python
objects. ``opwise.linkers.vm`` is the same VM in Python, and its specification. Each subject is a
file that is included here; what is taken of C is declared in opwise_c.pxd.
"""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals, PyErr_Occurred
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.list cimport PyList_GET_ITEM, PyList_SET_ITEM
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.math cimport copysign, isfinite
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset
from posix.unistd cimport usleep

import copy
import os

import numpy as np

from opwise.graph import upcalls

cnp.import_array()

ow_clock_begin()

include "builtin.pxi"
include "resources.pxi"
include "signals.pxi"
include "blas.pxi"
include "interpreter.pxi"
include "locks.pxi"
include "library.pxi"
include "exceptions.pxi"
include "objectcode.pxi"
include "slots.pxi"
include "timing.pxi"
include "vm.pxi"
include "strips.pxi"
include "choice.pxi"
include "loop.pxi"
include "draws.pxi"
include "pythonvm.pxi"
include "callpath.pxi"
include "hardware.pxi"
include "holding.pxi"
