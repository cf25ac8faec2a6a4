# cython: language_level=3, binding=False
"""Signals: those that arrive while a long kernel runs without the GIL, and those that end the
process. And exceptions of Python code that C calls: they wait here until C has returned.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals

from opwise.linkers.native.runtime cimport OW_PYTHON_ERROR

cdef extern from "ending.h" nogil:
    void ow_ending_watch(void (*)() noexcept nogil)
    void ow_ending_before_fork()
    void ow_ending_after_fork()
    void ow_ending_after_fork_in_child()
    void ow_ending_leave()


@cython.final
cdef class _Met:
    """Keeps an exception of Python code that C calls: C returns a number only.

    It is noted and taken with the GIL held, and nothing runs between the two.
    """

    cdef object error

    cdef int note(self, object error) noexcept:
        self.error = error
        return OW_PYTHON_ERROR

    cdef object take(self):
        error, self.error = self.error, None
        return error


#: of what a step calls, such as a loader; of handlers of signals
cdef _Met _met = _Met()
cdef _Met _interrupted = _Met()


cdef int note(object error) noexcept:
    """Keep an exception for ``take_noted``; return the number that tells C of it."""
    return _met.note(error)


cdef object take_noted():
    """Return the exception that Python code raised when C called it."""
    return _met.take()


cdef int look_at_signals() noexcept with gil:
    """Run the handlers of signals that came; return whether one raised, which is kept."""
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        _interrupted.note(error)
        return 1
    return 0


cdef int raise_interrupt() except -1:
    """Raise what a handler raised in ``look_at_signals``."""
    raise _interrupted.take()


#: (what is called before a signal ends the process,), or nothing
cdef list _at_ending = []


cdef void _call_at_ending() noexcept with gil:
    _at_ending[0]()


class Ending:
    """Signals that end the process after a function has been called (csupport/ending.h)."""

    @staticmethod
    def watch(call):
        """Call ``call()``, in another thread, before SIGTERM, SIGHUP or SIGINT ends the process.

        Leaves signals alone that the program handles or ignores.
        """
        _at_ending[:] = [call]
        ow_ending_watch(_call_at_ending)

    @staticmethod
    def before_fork():
        """End the thread, so that a program of one thread forks as one."""
        with nogil:  # the thread may be about to call
            ow_ending_before_fork()

    @staticmethod
    def after_fork():
        """Start the thread again."""
        ow_ending_after_fork()

    @staticmethod
    def after_fork_in_child():
        """Watch the signals that the parent watched."""
        ow_ending_after_fork_in_child()

    @staticmethod
    def leave():
        """Watch no longer; a signal that has come ends the process now."""
        ow_ending_leave()
