# cython: language_level=3
# numpy's legacy generators as memory, and what restores values that a call overwrites.

cimport cython
from libc.stdint cimport int32_t, int64_t

from opwise.linkers.native.runtime cimport ow_slot

cdef extern from "draws.h":
    ctypedef struct ow_twister:
        int32_t pos
    ctypedef struct ow_generator:
        ow_twister *twister
        int *has_gauss
        double *gauss
    ctypedef struct ow_generator_state:
        pass
    void ow_draw_uniform(const ow_generator *, const ow_slot *, double, double) nogil
    void ow_draw_normal(const ow_generator *, const ow_slot *, double, double, double *) nogil
    void ow_draw_binomial(const ow_generator *, const ow_slot *, int64_t, const ow_slot *) nogil


cdef frozenset known_draws()
cdef bint generator_of(object state, ow_generator *g) except -1
cdef bint restore(object value, object before) except -1


@cython.final
cdef class SavedGenerator:
    cdef ow_generator_state state
    cdef object given

    cdef int save(self, generator) except -1
    cdef int restore(self, generator) except -1
