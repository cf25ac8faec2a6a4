# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Branches that are not taken: which steps a call needs."""

cimport cython
from libc.stdint cimport uint64_t

from opwise.linkers.native.runtime cimport ow_choice, ow_guard, ow_is_true, ow_slot
from opwise.linkers.native.slots cimport Arena


@cython.final
cdef class Decisions:
    """Says which steps one call needs; asked before each step, in order.

    choices: those of the Program, at least one; guards: by step. See ``opwise.linkers.program``.
    """

    def __cinit__(self, choices, guards):
        cdef int i
        cdef ow_choice *c
        cdef Arena arena = Arena()
        self.arena, self.count = arena, len(choices)
        self.words = (max([max(guard) for guard in guards]) >> 6) + 1
        self.guards = <ow_guard *>arena.block(sizeof(ow_guard) * len(guards))
        for i, guard in enumerate(guards):
            self._set(&self.guards[i], guard)
        self.holds = <uint64_t *>arena.block(sizeof(uint64_t) * self.words)
        self.choices = <ow_choice *>arena.block(sizeof(ow_choice) * self.count)
        for i, choice in enumerate(choices):
            c = &self.choices[i]
            c.at, c.condition = choice.at, choice.condition
            c.first, c.second = choice.branches
            self._set(&c.guard, choice.guard)

    cdef int _set(self, ow_guard *guard, alternatives) except -1:
        cdef uint64_t *words
        cdef int bit
        guard.start = min(alternatives) >> 6
        guard.count = (max(alternatives) >> 6) + 1 - guard.start
        words = <uint64_t *>self.arena.block(sizeof(uint64_t) * guard.count)
        for bit in alternatives:
            words[(bit >> 6) - guard.start] |= <uint64_t>1 << (bit & 63)
        guard.words = words
        return 0

    cdef void _decide(self, ow_choice *choice, const ow_slot *slots) noexcept:
        """Rule out the branch that is not taken, and both where nobody needs the result."""
        cdef const ow_slot *condition = &slots[choice.condition]
        cdef bint needed = self._holds(&choice.guard)
        if needed and condition.data == NULL:
            return  # without a value the step that reads it fails
        cdef bint is_true = needed and ow_is_true(condition)
        if not is_true:
            self._rule_out(choice.first)
        if is_true or not needed:
            self._rule_out(choice.second)

    cdef inline void _rule_out(self, int bit) noexcept:
        if bit >> 6 < self.words:  # otherwise no step depends on it
            self.holds[bit >> 6] &= ~(<uint64_t>1 << (bit & 63))
