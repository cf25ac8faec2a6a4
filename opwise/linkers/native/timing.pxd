# cython: language_level=3
# The times of the steps of a VM and of its calls, and what shows them to system profilers.

cimport cython
from libc.stdint cimport int64_t

include "structs_timing.pxi"

cdef extern from "timing.h":
    ctypedef struct ow_timing:
        int64_t nsteps
        ow_times *steps
        int64_t **histograms
        ow_call *kept
        int64_t *rows
        int64_t *now
    void ow_note(ow_timing *, int64_t, int64_t) noexcept nogil

ctypedef int (*ow_push)(const char *) noexcept nogil
ctypedef int (*ow_pop)() noexcept nogil


cdef class Timing:
    cdef ow_timing *times
    cdef readonly int steps
    cdef object timer
    #: whether times are recorded
    cdef readonly bint on
    cdef bint ignoring
    #: whether an Apply of another program runs this one; its loop counts its runs and their steps
    cdef public bint inside
    #: calls, or runs of the loop that repeats the program; nanoseconds of all, and of the first
    cdef readonly int64_t calls, total_ns, first_ns
    #: how many steps of loops ran the program
    cdef readonly int64_t loop_steps
    #: what timing adds to a step, nanoseconds
    cdef readonly int64_t timer_ns
    #: called when times are forgotten, or None
    cdef public object on_reset
    #: memory of somebody else that the counters of steps are in; None if there is none
    cdef readonly object counters
    # the Timing of each loop in the program; {row of a kept call: the times of their steps in it}
    cdef list loops
    cdef dict kept_inside

    cdef int _start_clock(self) except -1
    cdef int _need_start(self) except -1
    cpdef begin_call(self)
    cpdef end_call(self, int64_t start, int64_t ns)
    cpdef count_run(self, int64_t ns, int64_t steps)


@cython.final
cdef class Ranges:
    cdef ow_push push
    cdef ow_pop pop
    cdef bytes call
    cdef list labels
    cdef object keep
    cdef int count

    cpdef void open_call(self) noexcept
    cpdef void open(self, int k) noexcept
    cpdef void close(self) noexcept
    cpdef void close_all(self) noexcept
