# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Chooser: hands over the values of the branch that is taken."""

cimport cython
from libc.stdlib cimport calloc, free

from opwise.linkers.native.runtime cimport (
    OW_OK,
    ow_alias,
    ow_copy,
    ow_ensure,
    ow_free,
    ow_is_true,
    ow_slot,
    ow_step,
)
from opwise.linkers.native.vm cimport VM, Runner

import copy


@cython.final
cdef class Chooser(Runner):
    """What an Apply that chooses between branches runs in the compiled VM.

    first, second: the inputs of each branch. shown: for each input whether an output is a view of
    it. taken: for each input whether its memory may become that of the output; see
    ``opwise.linkers.program.handed_over``.
    """

    cdef int n
    cdef int *inputs
    # by branch and output
    cdef bint *shown
    cdef bint *taken

    def __cinit__(self, list first, list second, list shown, tuple taken):
        cdef int j, i
        self.n = len(first)
        self.inputs = <int *>calloc(2 * self.n + 1, sizeof(int))
        self.shown = <bint *>calloc(2 * self.n + 1, sizeof(bint))
        self.taken = <bint *>calloc(2 * self.n + 1, sizeof(bint))
        if not (self.inputs and self.shown and self.taken):
            raise MemoryError()
        for j, i in enumerate([*first, *second]):
            self.inputs[j], self.shown[j], self.taken[j] = i, shown[i], taken[i]

    def __dealloc__(self):
        free(self.inputs)
        free(self.shown)
        free(self.taken)

    cdef int run(self, VM vm, int k) except -1:
        cdef ow_step *s = &vm.steps[k]
        cdef int j, first
        cdef ow_slot *c
        cdef ow_slot *z
        if s.in_[0].data == NULL:
            raise ValueError("expected an ndarray, not None")
        first = 0 if ow_is_true(s.in_[0]) else self.n
        for j in range(self.n):
            c, z = s.in_[self.inputs[first + j]], s.out[j]
            vm.slots.release(vm.slots.of(z))
            if c.typenum < 0:
                self._hand_over_object(vm, first + j, c, z)
            elif c.data == NULL:
                raise ValueError("expected an ndarray, not None")
            elif self.shown[first + j]:
                ow_alias(z, c)
            elif self.taken[first + j]:
                self._take(vm, c, z)
            else:
                self._copy(vm, s, c, z)
        return 0

    cdef int _hand_over_object(self, VM vm, int j, ow_slot *c, ow_slot *z) except -1:
        value = vm.slots.value(vm.slots.of(c))
        if not (self.shown[j] or self.taken[j]):
            value = copy.deepcopy(value)
        vm.slots.own(vm.slots.of(z), value)
        return 0

    cdef int _take(self, VM vm, ow_slot *c, ow_slot *z) except -1:
        """Let ``z`` own the memory of ``c``, which nobody reads any more."""
        cdef int holder = vm.slots.holder(vm.slots.of(c))
        cdef ow_slot *h
        if holder < 0:
            raise SystemError("the VM lost track of a value's memory")
        h = &vm.slots.at[holder]
        ow_alias(z, c)
        if h.buf != NULL and h.buf <= c.data <= h.buf + h.cap:
            # the other memory is there for the next call
            z.buf, h.buf = h.buf, z.buf
            z.cap, h.cap = h.cap, z.cap
        else:
            ow_free(z.buf)
            z.buf, z.cap = NULL, 0
            vm.slots.own(vm.slots.of(z), <object>h.owner)
        return 0

    cdef int _copy(self, VM vm, ow_step *s, ow_slot *c, ow_slot *z) except -1:
        cdef int d, rc
        z.ndim = c.ndim
        for d in range(c.ndim):
            z.shape[d] = c.shape[d]
        rc = ow_ensure(s, z)
        if rc != OW_OK:
            raise vm.exception(rc)
        ow_copy(z, c)
        return 0
