# cython: language_level=3
# Locks of shared variables, and what takes and releases them.

cimport cython

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident() nogil

ctypedef struct LockState:
    int readers, writers, waiting

ctypedef struct ClaimsState:
    # the claim that was taken last of those that are held, with links to the others (not
    # references: whoever takes a claim keeps it)
    void *last_held
    # how many claims on everything are held or wait
    int barriers
    # how often this process was forked, counted from the first ancestor
    int generation

cdef ClaimsState claims


@cython.final
cdef class Lock:
    cdef LockState state


@cython.final
cdef class Claim:
    cdef list reads, writes
    cdef int nlocks, nwrites
    cdef LockState **states  # of writes, then of reads
    cdef bint everything
    cdef unsigned long thread
    cdef void *before
    cdef void *after

    cdef int _wait(self, double seconds) except -1
    cdef void _queue_up(self, int by) noexcept
    cdef bint _conflicts(self, Claim other)
    cdef set _blockers(self)
    cdef bint _in_circle(self)

    cdef inline int take(self, double seconds) except -1:
        """Wait until no other thread is in the way, then hold the locks.

        seconds: go ahead after so long all the same; -1: never, but raise RuntimeError if threads
        wait for each other in a circle. Raises what a signal handler raises.
        """
        if not self._is_free():
            self._wait(seconds)
        self._count(1)
        self.thread = PyThread_get_thread_ident()
        self.before, self.after = claims.last_held, NULL
        if claims.last_held != NULL:
            (<Claim>claims.last_held).after = <void *>self
        self._become_last()
        return 0

    cdef inline void _become_last(self) noexcept:
        claims.last_held = <void *>self

    cdef inline bint _is_free(self) noexcept:
        """Return whether no lock of this claim is held in a way that excludes it, or waited for."""
        cdef int i
        if self.everything or (claims.barriers and self.nwrites):
            return False
        for i in range(self.nwrites):
            if self.states[i].readers or self.states[i].writers or self.states[i].waiting:
                return False
        for i in range(self.nwrites, self.nlocks):
            if self.states[i].writers or self.states[i].waiting:
                return False
        return True

    cdef inline void _count(self, int by) noexcept:
        cdef int i
        for i in range(self.nwrites):
            self.states[i].writers += by
        for i in range(self.nwrites, self.nlocks):
            self.states[i].readers += by
        if self.everything:
            claims.barriers += by

    cdef inline void release(self) noexcept:
        self._count(-1)
        self.thread = 0
        if self.before != NULL:
            (<Claim>self.before).after = self.after
        if self.after != NULL:
            (<Claim>self.after).before = self.before
        else:
            claims.last_held = self.before
