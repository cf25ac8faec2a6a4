# cython: language_level=3, binding=False
"""Locks of shared variables.

A call claims all the locks that it needs at once, so calls cannot wait for each other in a circle.
All bookkeeping happens with the GIL held and runs no Python code. Taking a free lock costs a test
and an addition.

A claim is blocked by the claims of other threads that are held, and by those that have waited
longer. So readers that follow each other closely do not keep a writer out. A thread that already
holds a claim (an Op calls another function) does not queue, since those ahead of it in the queue
may be waiting for it.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free, malloc
from posix.unistd cimport usleep

import os

#: what a function says that is called while it runs
BUSY = (
    "This function is being called already, by another thread or by an Op of its own graph. "
    "Use f.copy() to get a function for each thread."
)

#: of the process
cdef ClaimsState claims = ClaimsState(NULL, 0, 0)
#: claims that wait, oldest first
cdef list _queue = []


@cython.final
cdef class Lock:
    """Lets several readers in, or one writer."""

    def __reduce__(self):
        return Lock, ()  # a copy protects another value


@cython.final
cdef class Claim:
    """The locks that one call needs: some to read what they protect, some to write it.

    writes, reads: Locks. everything: instead of these, keep out every claim that writes. One call
    at a time uses a claim, as a context manager or by ``take`` and ``release``.
    """

    def __cinit__(self, writes=(), reads=(), bint everything=False):
        cdef Lock lock
        written = dict.fromkeys(writes)
        self.writes = list(written)
        self.reads = [lock for lock in dict.fromkeys(reads) if lock not in written]
        self.nwrites, self.nlocks = len(self.writes), len(self.writes) + len(self.reads)
        self.everything = everything
        self.states = <LockState **>malloc(max(1, self.nlocks) * sizeof(LockState *))
        if self.states == NULL:
            raise MemoryError()
        for i, lock in enumerate(self.writes + self.reads):
            self.states[i] = &lock.state

    def __dealloc__(self):
        free(self.states)

    def __enter__(self):
        self.take(-1)
        return self

    def __exit__(self, *_):
        self.release()

    # --- waiting ----------------------------------------------------------------------------------

    cdef int _wait(self, double seconds) except -1:
        cdef double slept = 0
        self.thread = PyThread_get_thread_ident()
        _queue.append(self)
        self._queue_up(1)
        try:
            while self._blockers() and not 0 <= seconds < slept:
                if self._in_circle():
                    if seconds >= 0:
                        break
                    raise RuntimeError(
                        "Two threads wait for each other: each is in a call that uses a shared "
                        "variable and, from an Op, calls a function that needs a shared variable "
                        "of the other. Call the second function after the first."
                    )
                with nogil:
                    usleep(50)
                slept += 50e-6
                PyErr_CheckSignals()
        finally:
            self._queue_up(-1)
            _queue.remove(self)
            self.thread = 0
        return 0

    cdef void _queue_up(self, int by) noexcept:
        cdef int i
        for i in range(self.nlocks):
            self.states[i].waiting += by
        if self.everything:
            claims.barriers += by

    cdef bint _conflicts(self, Claim other):
        cdef Lock lock
        if self.everything or other.everything:
            return bool(self.nwrites or other.nwrites)
        for lock in self.writes:
            if lock in other.writes or lock in other.reads:
                return True
        for lock in self.reads:
            if lock in other.writes:
                return True
        return False

    cdef set _blockers(self):
        """Return the threads that this claim waits for."""
        cdef Claim other
        cdef set threads = set()
        cdef bint nested = False
        for other in _held():
            if other.thread == self.thread:
                nested = True
            elif self._conflicts(other):
                threads.add(other.thread)
        if not nested:
            for other in _queue:
                if other is self:
                    break
                if self._conflicts(other):
                    threads.add(other.thread)
        return threads

    cdef bint _in_circle(self):
        """Return whether a thread that this claim waits for waits for this claim's thread."""
        cdef Claim other
        cdef set reached = self._blockers()
        cdef list front = list(reached)
        while front:
            thread = front.pop()
            for other in _queue:
                if other.thread == thread:
                    new = other._blockers() - reached
                    reached |= new
                    front.extend(new)
        return self.thread in reached


cdef list _held():
    """Return the claims that are held."""
    cdef list found = []
    cdef void *claim = claims.last_held
    while claim != NULL:
        found.append(<Claim>claim)
        claim = (<Claim>claim).before
    return found


# --- processes that are forked --------------------------------------------------------------------
# A child has the memory of its parent and only one of its threads. So a fork waits until no other
# thread is writing a shared variable. After _FORK_SECONDS it goes ahead: then the child may see a
# value that is half written. Calls of threads that it does not have are forgotten.

cdef double _FORK_SECONDS = 10
cdef dict _forking = {}


def _before_fork():
    cdef Claim claim = Claim(everything=True)
    claim.take(_FORK_SECONDS)
    _forking[PyThread_get_thread_ident()] = claim


def _after_fork():
    cdef Claim claim = _forking.pop(PyThread_get_thread_ident(), None)
    if claim is not None:  # a signal may have ended the wait
        claim.release()


def _after_fork_in_child():
    cdef Claim claim
    cdef unsigned long thread = PyThread_get_thread_ident()
    claims.generation += 1
    for claim in _held():
        if claim.thread != thread:
            claim.release()
    for claim in list(_queue):
        if claim.thread != thread:
            claim._queue_up(-1)
            _queue.remove(claim)
            claim.thread = 0
    _after_fork()
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
