# cython: language_level=3
# Libraries of generated kernels, and loops that are compiled when they are needed.

cimport cython
from libc.stdint cimport int32_t

from opwise.linkers.native.runtime cimport ow_loop

include "structs_on_demand.pxi"

cdef extern from "on_demand.h":
    int (*ow_compile_on_demand)(ow_on_demand *)


@cython.final
cdef class Library:
    cdef object __weakref__
    cdef void *handle
    cdef readonly str name


@cython.final
cdef class OnDemand:
    cdef ow_on_demand demanded
    cdef object compile, keep
