# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Draws from numpy's generators: in C where the numbers are numpy's, or by numpy's own functions.

Draw is for numpy.random.RandomState, TracedDraw for numpy.random.Generator in traced functions.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport copysign, isfinite
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memset

from cpython.exc cimport PyErr_CheckSignals

from opwise.linkers.native.arrays cimport PyArray_DATA, ndarray
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
    ow_is_true,
    ow_scratch,
    ow_size,
    ow_slot,
    ow_step,
    ow_watch_begin,
    ow_watch_end,
)
from opwise.linkers.native.signals cimport look_at_signals, raise_interrupt
from opwise.linkers.native.vm cimport VM, Runner

import numpy as np

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


# the functions of numpy/random/distributions.h, by what they take besides a generator
ctypedef double (*Plain)(void *) noexcept nogil
ctypedef double (*OfOne)(void *, double) noexcept nogil
ctypedef double (*OfTwo)(void *, double, double) noexcept nogil
ctypedef void (*Integers)(void *, uint64_t, uint64_t, Py_ssize_t, bint, uint64_t *) noexcept nogil

#: more numbers than these are left to numpy, which lets other threads run meanwhile
DEF MOST_NUMBERS = 4096


@cython.final
cdef class Source:
    """What draws in C: a function of numpy's, and how its parameters follow from those of a method.

    method: of Generator: random, standard_normal, standard_exponential, exponential, normal,
    uniform or integers. address: of the function.
    """

    cdef str method
    cdef uintptr_t address
    # the number of its parameters; 3 for integers
    cdef int kind
    cdef bint is_range

    def __cinit__(self, str method, uintptr_t address):
        self.method, self.address = method, address
        self.kind = {"exponential": 1, "normal": 2, "uniform": 2, "integers": 3}.get(method, 0)
        self.is_range = method == "uniform"

    cdef bint fits(self, double one, double two) noexcept:
        """Return whether numpy takes these parameters."""
        if self.kind == 1:
            return one >= 0 and copysign(1.0, one) > 0
        if self.kind == 2:
            return isfinite(two) if self.is_range else two >= 0 and copysign(1.0, two) > 0
        return True

    cdef void fill(self, void *bits, double *z, Py_ssize_t n, Py_ssize_t step, double one,
                   double two) noexcept nogil:
        """Draw floats. step: how many elements one is behind another."""
        cdef Py_ssize_t i
        if self.kind == 0:
            for i in range(n):
                z[i * step] = (<Plain>self.address)(bits)
        elif self.kind == 1:
            for i in range(n):
                z[i * step] = (<OfOne>self.address)(bits, one)
        else:
            for i in range(n):
                z[i * step] = (<OfTwo>self.address)(bits, one, two)

    cdef void fill_integers(self, void *bits, int64_t *z, Py_ssize_t n, int64_t low,
                            int64_t high) noexcept nogil:
        (<Integers>self.address)(
            bits, <uint64_t>low, <uint64_t>high - 1 - <uint64_t>low, n, 0, <uint64_t *>z
        )


cdef class _Bits:
    """The bits of the Generator that was drawn from last."""

    cdef object generator, lock
    cdef void *pointer

    cdef int take(self, generator) except -1:
        if self.generator is not generator:
            bits = generator.bit_generator
            self.pointer = PyCapsule_GetPointer(bits.capsule, "BitGenerator")
            self.generator, self.lock = generator, bits.lock
        return 0


@cython.final
cdef class TracedDraw(Runner):
    """What an Apply of a draw from a numpy.random.Generator runs in the compiled VM.

    source: the Source. conditional: whether the first input behind the generator says whether to
    draw; zeros are the result of no draw. lengths: how many inputs behind it are lengths.
    first, second: each a number, or the number of an input that gives it, in a list. perform: as of
    an Op.
    """

    cdef Source source
    cdef _Bits bits
    cdef bint conditional
    cdef int lengths, one_at, two_at
    cdef double one, two
    cdef object perform

    def __cinit__(self, Source source, bint conditional, int lengths, first, second, perform):
        self.conditional = conditional
        self.source, self.lengths, self.perform = source, lengths, perform
        self.bits = _Bits()
        self.one_at = self.two_at = -1
        if isinstance(first, list):
            self.one_at = first[0]
        else:
            self.one = first
        if isinstance(second, list):
            self.two_at = second[0]
        else:
            self.two = second

    cdef int run(self, VM vm, int k) except -1:
        cdef ow_step *s = &vm.steps[k]
        if s.in_[0].owner == NULL:
            raise ValueError("expected a numpy.random.Generator, not None")
        state = <object>s.in_[0].owner
        if not self._draw(s, state):
            return vm.perform_in_python(k, self.perform)
        vm.slots.own(vm.slots.of(s.out[0]), state)
        return 0

    cdef bint _draw(self, ow_step *s, state) except -1:
        """Draw in C; return False where numpy is to do it, or to say what is wrong."""
        cdef ow_slot *z = s.out[1]
        cdef Source source = self.source
        cdef double one, two
        cdef int64_t low = 0, high = 0, n
        cdef int d
        for d in range(self.lengths):
            z.shape[d] = ow_int(s.in_[1 + self.conditional + d])
            if z.shape[d] < 0:
                return False
        if self.conditional and not ow_is_true(s.in_[1]):
            if ow_ensure(s, z) != OW_OK:
                return False
            memset(z.data, 0, 8 * ow_size(z))
            return True
        if source.kind == 3:
            low = <int64_t>self.one if self.one_at < 0 else ow_int(s.in_[self.one_at])
            high = <int64_t>self.two if self.two_at < 0 else ow_int(s.in_[self.two_at])
            if low >= high:
                return False
            one = two = 0
        else:
            one = self.one if self.one_at < 0 else ow_parameter(s.in_[self.one_at])
            two = self.two if self.two_at < 0 else ow_parameter(s.in_[self.two_at])
            if source.is_range:
                two -= one
            if not source.fits(one, two):
                return False
        if ow_ensure(s, z) != OW_OK:
            return False
        n = ow_size(z)
        if n > MOST_NUMBERS:
            return False
        self.bits.take(state)
        with self.bits.lock:
            if source.kind == 3:
                source.fill_integers(self.bits.pointer, <int64_t *>z.data, n, low, high)
            else:
                source.fill(self.bits.pointer, <double *>z.data, n, 1, one, two)
        return True


def draw_in_turn(generator, Py_ssize_t count, list sources, list parameters):
    """Return arrays of as many draws from each Source, made in turn; None if numpy has to do it.

    parameters: (first, second) of each Source.
    """
    cdef _Bits bits = _Bits()
    cdef Source source
    cdef Py_ssize_t i
    cdef int j
    cdef int m = len(sources)
    cdef double ones[8]
    cdef double twos[8]
    cdef int64_t lows[8]
    cdef int64_t highs[8]
    cdef void *z[8]
    if m > 8:
        return None
    rows = []
    for j, (source, (one, two)) in enumerate(zip(sources, parameters)):
        if source.kind == 3:
            lows[j], highs[j] = one, two
            if lows[j] >= highs[j]:
                return None
            ones[j] = twos[j] = 0
        else:
            ones[j], twos[j] = one, two - one if source.is_range else two
            if not source.fits(ones[j], twos[j]):
                return None
        rows.append(np.empty(count, np.int64 if source.kind == 3 else np.float64))
        z[j] = PyArray_DATA(<ndarray>rows[j])
    bits.take(generator)
    with bits.lock:
        for i in range(count):
            for j in range(m):
                source = <Source>sources[j]
                if source.kind == 3:
                    source.fill_integers(bits.pointer, <int64_t *>z[j] + i, 1, lows[j], highs[j])
                else:
                    source.fill(bits.pointer, <double *>z[j] + i, 1, 1, ones[j], twos[j])
            if i & 0xfffff == 0xfffff:
                PyErr_CheckSignals()
    return rows
