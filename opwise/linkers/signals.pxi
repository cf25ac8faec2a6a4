# Signals that arrive while a long kernel runs without the GIL. Included by opwise_c.pyx.

cdef object _interrupt = None


cdef int _look_at_signals() noexcept with gil:
    """Run the handlers of signals that came; return whether one raised, which is kept."""
    global _interrupt
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        _interrupt = error
        return 1
    return 0


cdef int _raise_interrupt() except -1:
    """Raise what a handler raised in ``_look_at_signals``."""
    global _interrupt
    error, _interrupt = _interrupt, None
    raise error
