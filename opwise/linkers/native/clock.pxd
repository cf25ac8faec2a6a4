# cython: language_level=3
# The clock of the times of steps: csupport/clock.h.

from libc.stdint cimport int64_t

cdef extern from "clock.h":
    void ow_clock_begin()
    void ow_clock_calibrate()
    int64_t ow_clock() noexcept nogil
