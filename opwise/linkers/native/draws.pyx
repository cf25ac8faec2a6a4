# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Draw: draws from numpy's legacy generators, in C where the numbers are numpy's."""

cimport cython
from cpython.object cimport PyObject
from libc.math cimport copysign, isfinite
from libc.stdint cimport int64_t

from opwise.linkers.native.generators cimport (
    SavedGenerator,
    generator_of,
    known_draws,
    ow_draw_binomial,
    ow_draw_normal,
    ow_draw_uniform,
    ow_generator,
)
from opwise.linkers.native.objectcode cimport Py_REFCNT
from opwise.linkers.native.runtime cimport (
    OW_OK,
    ow_ensure,
    ow_int,
    ow_is_long,
    ow_scratch,
    ow_size,
    ow_slot,
    ow_step,
    ow_watch_begin,
    ow_watch_end,
)
from opwise.linkers.native.signals cimport look_at_signals, raise_interrupt
from opwise.linkers.native.vm cimport VM, Runner

from opwise.linkers.native.generators import DRAWS

cdef extern from "draws.h":
    int OW_MOST_TRIALS, OW_DRAW_BLOCK
    double ow_parameter(const ow_slot *) nogil
    int ow_are_probabilities(const ow_slot *) nogil


@cython.final
cdef class Draw(Runner):
    """What an Apply of a RandomFunction runs in the compiled VM.

    name: the method of RandomState that it calls, if C may draw in its place, otherwise None.
    in_place: called as (Apply, inputs, storages of outputs); draws from the generator itself.
    copied: a function that copies a generator. overwrites: whether the Op draws in place. alone:
    whether no other Apply reads the state.
    """

    cdef int method
    cdef bint overwrites, alone
    cdef object in_place, copied
    cdef SavedGenerator before

    def __cinit__(self, name, in_place, copied, bint overwrites, bint alone):
        self.method = DRAWS.get(name, -1)
        self.in_place, self.copied, self.before = in_place, copied, SavedGenerator()
        self.overwrites, self.alone = overwrites, alone
        if name not in known_draws():
            self.method = -1

    cdef int run(self, VM vm, int k) except -1:
        cdef ow_step *s = &vm.steps[k]
        cdef int of_new = vm.slots.of(s.out[0])
        cdef ow_generator g
        cdef bint known
        if s.in_[0].owner == NULL:
            raise ValueError("expected a numpy.random.RandomState, not None")
        state = <object>s.in_[0].owner
        if not self.overwrites:
            vm.slots.release(of_new)  # that of the last step of a loop may be the same
            if s.advances:
                self.before.save(state)
                s.advanced = 1
            # the slot and this function hold it
            elif not (self.alone and Py_REFCNT(<PyObject *>state) <= 2):
                state = self.copied(state)
        known = self.method >= 0 and generator_of(state, &g)
        if not known or not self._draw(s, state, &g):
            self._draw_in_python(vm, k, state)
        vm.slots.own(of_new, state)
        return 0

    cdef int _draw_in_python(self, VM vm, int k, state) except -1:
        cdef ow_step *s = &vm.steps[k]
        cdef int i
        inputs = [state]
        for i in range(1, s.nin):
            inputs.append(vm.slots.value(vm.slots.of(s.in_[i])))
        storage = [[None], [None]]
        self.in_place(vm.nodes[k], inputs, storage)
        return vm.accept(k, 1, vm.slots.of(s.out[1]), storage[1][0])

    cdef bint _draw(self, ow_step *s, state, ow_generator *g) except -1:
        """Draw in C; return False where numpy is to do it, or to say what is wrong."""
        cdef ow_slot *z = s.out[1]
        cdef ow_slot *size = s.in_[1]
        cdef ow_slot item = size[0]
        cdef double *drawn = NULL
        cdef double first, second
        cdef int64_t n
        cdef int d, stopped = 0
        if size.shape[0] == 0 or size.shape[0] != z.ndim:
            return False
        for d in range(z.ndim):
            item.data = size.data + d * size.strides[0]
            z.shape[d] = ow_int(&item)
            if z.shape[d] < 0:
                return False
        if self.method == 2:
            first, second = <double>ow_int(s.in_[2]), 0
            if not 0 <= first <= OW_MOST_TRIALS or not self._fits(s.in_[3], z):
                return False
            if not ow_are_probabilities(s.in_[3]):
                return False
        else:
            first, second = ow_parameter(s.in_[2]), ow_parameter(s.in_[3])
        if self.method == 0:
            second -= first
            if not isfinite(second):
                return False
        if self.method == 1 and not (second >= 0 and copysign(1.0, second) > 0):
            return False
        if ow_ensure(s, z) != OW_OK:
            return False
        n = ow_size(z)
        if self.method == 1:
            drawn = <double *>ow_scratch(s, 8 * min(n + 2, <int64_t>OW_DRAW_BLOCK))
            if drawn == NULL:
                return False
        with state._bit_generator.lock:
            if not ow_is_long(s):
                self._fill(g, s, first, second, drawn)
                return True
            with nogil:
                ow_watch_begin(look_at_signals)
                self._fill(g, s, first, second, drawn)
                stopped = ow_watch_end()
        if stopped:
            raise_interrupt()
        return True

    cdef bint _fits(self, ow_slot *p, ow_slot *z) noexcept:
        """Return whether probabilities broadcast to a shape."""
        cdef int d
        cdef int more = z.ndim - p.ndim
        for d in range(p.ndim):
            if more < 0 or (p.shape[d] != 1 and p.shape[d] != z.shape[more + d]):
                return False
        return more >= 0

    cdef void _fill(self, ow_generator *g, ow_step *s, double first, double second,
                    double *drawn) noexcept nogil:
        if self.method == 0:
            ow_draw_uniform(g, s.out[1], first, second)
        elif self.method == 1:
            ow_draw_normal(g, s.out[1], first, second, drawn)
        else:
            ow_draw_binomial(g, s.out[1], <int64_t>first, s.in_[3])

    cdef int undo(self, ow_step *s) except -1:
        return self.before.restore(<object>s.in_[0].owner)
