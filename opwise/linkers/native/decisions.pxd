# cython: language_level=3
# Which steps a call needs, where it does not take all branches.

cimport cython
from libc.stdint cimport uint64_t
from libc.string cimport memset

from opwise.linkers.native.runtime cimport ow_choice, ow_guard, ow_slot
from opwise.linkers.native.slots cimport Arena


@cython.final
cdef class Decisions:
    cdef ow_choice *choices
    # the guards of steps, and the alternatives that hold
    cdef ow_guard *guards
    cdef uint64_t *holds
    # how many decisions there are, words of a set of alternatives, and which decision is next
    cdef int count, words, next
    cdef Arena arena

    cdef int _set(self, ow_guard *guard, alternatives) except -1
    cdef void _decide(self, ow_choice *choice, const ow_slot *slots) noexcept
    cdef void _rule_out(self, int bit) noexcept

    cdef inline void forget(self) noexcept:
        """Let all alternatives hold again, as before the first decision."""
        memset(self.holds, 0xFF, sizeof(uint64_t) * self.words)
        self.next = 0

    cdef inline bint needs(self, int k, const ow_slot *slots) noexcept:
        """Make the decisions that are due before step ``k``; return whether it is needed."""
        while self.next < self.count and self.choices[self.next].at <= k:
            self._decide(&self.choices[self.next], slots)
            self.next += 1
        return self._holds(&self.guards[k])

    cdef inline bint _holds(self, const ow_guard *guard) noexcept:
        cdef int j
        for j in range(guard.count):
            if guard.words[j] & self.holds[guard.start + j]:
                return True
        return False
