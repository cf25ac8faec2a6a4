# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Timing: the times of the steps of a VM, and of its calls."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t, uintptr_t

from opwise.linkers.native.clock cimport ow_clock, ow_clock_begin, ow_clock_calibrate

import numpy as np

cdef extern from "timing.h":
    int OW_BUCKETS, OW_KEPT
    int64_t ow_timer_ns
    ow_timing *ow_timing_new(int64_t) noexcept nogil
    void ow_timing_free(ow_timing *) noexcept nogil
    void ow_timing_forget(ow_timing *) noexcept nogil
    int ow_timing_move(ow_timing *, ow_times *) noexcept nogil
    void ow_timer_measure() noexcept nogil
    void ow_timing_begin(ow_timing *) noexcept nogil
    int ow_keep(ow_timing *, int64_t, int64_t, int64_t) noexcept nogil

ow_clock_begin()


def clock():
    """Return nanoseconds by the clock of the times of Applys."""
    return ow_clock()


cdef class Timing:
    """The times of the steps of a VM and of its calls, from ``start`` on.

    steps: how many there are. timer: returns what timing adds to a step, nanoseconds, which is not
    in their times; None: the VM reads the clock in C, where ow_note takes it from each.
    """

    def __cinit__(self, int steps, timer=None):
        self.steps, self.timer = steps, timer
        self.loops, self.kept_inside = [], {}

    def __dealloc__(self):
        ow_timing_free(self.times)

    def start(self, bint ignore_first_call=False, loops=()):
        """Record the time of every step from now on, or from the second call on.

        loops: the Timing of each loop in the program, also of loops in loops; they start too.
        """
        self._start_clock()
        self.ignoring = ignore_first_call
        self.loops = list(loops)
        for each in self.loops:
            each.start_inside()

    def start_inside(self):
        """Record the time of every step of a program that a loop repeats."""
        self._start_clock()
        self.inside = True

    cdef int _start_clock(self) except -1:
        ow_clock_calibrate()
        ow_timer_measure()
        self.timer_ns = max(0, ow_timer_ns) if self.timer is None else self.timer()
        if self.times == NULL:
            self.times = ow_timing_new(self.steps)
            if self.times == NULL:
                raise MemoryError()
        self.on = True
        return 0

    def stop(self):
        """Record no more times; those up to now stay."""
        self.on = False
        for each in self.loops:
            each.stop()

    def reset(self):
        """Forget all recorded times."""
        if self.times != NULL:
            ow_timing_forget(self.times)
        self.calls = self.total_ns = self.first_ns = self.loop_steps = 0
        self.kept_inside.clear()
        if self.on_reset is not None:
            self.on_reset()
        for each in self.loops:
            each.reset()

    def keep_in(self, memory):
        """Keep the counters of the steps in other memory, which another process may read.

        memory: a writable buffer of 32 bytes for each step, which gets its count, sum, least and
        most as int64; None: memory of its own again.
        """
        self._need_start()
        if memory is None:
            if ow_timing_move(self.times, NULL) < 0:
                raise MemoryError()
            self.counters = None
            return
        where = np.frombuffer(memory, np.int64)
        if not where.flags.writeable or where.size != 4 * self.steps:
            raise ValueError(f"the counters of {self.steps} steps take {4 * self.steps} writable "
                             f"int64, not {where.size}")
        if self.steps:
            ow_timing_move(self.times, <ow_times *><uintptr_t>where.ctypes.data)
            self.counters = where

    # --- what a VM records, once it has started -----------------------------------------------

    cdef int _need_start(self) except -1:
        if self.times == NULL:
            raise RuntimeError("the VM times no steps: call start first")
        return 0

    cpdef begin_call(self):
        """Forget the times of a call that failed."""
        self._need_start()
        ow_timing_begin(self.times)
        for each in self.loops:
            each.take_now()

    def note(self, int k, int64_t ns):
        """Add the time of a run of step ``k``, without what timing it adds.

        Raises IndexError if there is no such step.
        """
        self._need_start()
        if not 0 <= k < self.steps:
            raise IndexError(f"there is no step {k} of {self.steps}")
        ow_note(self.times, k, ns + max(0, ow_timer_ns))

    cpdef end_call(self, int64_t start, int64_t ns):
        """Count a call that is done, and keep its times if it is a first or slow one."""
        cdef int row
        self._need_start()
        self.count_run(ns, 0)
        row = ow_keep(self.times, self.calls, start, ns)
        if self.loops and row >= 0:
            self.kept_inside[row] = [taken for each in self.loops for taken in each.take_now()]
        if self.ignoring:
            self.ignoring = False
            self.reset()

    cpdef count_run(self, int64_t ns, int64_t steps):
        """Count a call, or a run of the loop that repeats this program."""
        self.total_ns += ns
        if self.calls == 0:
            self.first_ns = ns
        self.calls += 1
        self.loop_steps += steps

    def take_now(self):
        """Return the nanoseconds of each step since this was called last."""
        cdef int k
        cdef int64_t *now
        self._need_start()
        now = self.times.now
        taken = [now[k] for k in range(self.steps)]
        ow_timing_begin(self.times)
        return taken

    # --- what a profile reads -----------------------------------------------------------------

    def by_step(self):
        """Return (count, sum, least, most, ((bucket, count), ...)) of each step, nanoseconds; []
        if none was timed."""
        cdef int k, b
        cdef ow_times *t
        found = []
        for k in range(self.steps if self.times != NULL else 0):
            t = self.times.steps + k
            found.append((t.count, t.sum, t.least, t.most,
                          tuple([(b, self.times.histograms[k][b]) for b in range(OW_BUCKETS)
                                 if self.times.histograms[k][b]])))
        return found

    def detail(self):
        """Return (number, start, [nanoseconds by step]) of the first calls and the slowest.

        The steps of loops follow those of the program.
        """
        cdef int i, k
        cdef ow_call *kept
        cdef int64_t *row
        found = []
        for i in range(OW_KEPT if self.times != NULL else 0):
            kept = &self.times.kept[i]
            if kept.number:
                row = self.times.rows + i * self.times.nsteps
                times = [row[k] for k in range(self.steps)] + self.kept_inside.get(i, [])
                found.append((kept.number, kept.start, times))
        return sorted(found)

    def call_counts(self):
        """Return how often each step ran."""
        return [one[0] for one in self.by_step()] or [0] * self.steps

    def call_times(self):
        """Return how many seconds each step ran in all."""
        return [one[1] * 1e-9 for one in self.by_step()] or [0.0] * self.steps


def _address(function):
    """Return the address of a C function of ctypes."""
    import ctypes

    return ctypes.cast(function, ctypes.c_void_p).value


@cython.final
cdef class Ranges:
    """Shows a system profiler each call and its steps as ranges.

    push, pop: C functions, of ctypes. call: the label of a call; labels: those of steps.
    """

    def __init__(self, push, pop, bytes call, list labels):
        self.push = <ow_push><uintptr_t>_address(push)
        self.pop = <ow_pop><uintptr_t>_address(pop)
        self.call, self.labels, self.keep = call, labels, (push, pop)

    cpdef void open_call(self) noexcept:
        """Begin a call."""
        self.push(PyBytes_AS_STRING(self.call))
        self.count += 1

    cpdef void open(self, int k) noexcept:
        """Begin step ``k``."""
        self.push(PyBytes_AS_STRING(<bytes>PyList_GET_ITEM(self.labels, k)))
        self.count += 1

    cpdef void close(self) noexcept:
        """End what began last."""
        self.count -= 1
        self.pop()

    cpdef void close_all(self) noexcept:
        """End a call, and a step that failed in it."""
        while self.count:
            self.close()
