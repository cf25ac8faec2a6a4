# cython: language_level=3
# Signals that arrive while a long kernel runs, and exceptions that C cannot pass on.

cdef int note(object error) noexcept
cdef object take_noted()
cdef int look_at_signals() noexcept with gil
cdef int raise_interrupt() except -1
