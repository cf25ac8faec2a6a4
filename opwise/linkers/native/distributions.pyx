# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""GeneratorDraw: draws from numpy.random.Generator, in C by numpy's own functions."""

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from opwise.linkers.native.arrays cimport PyArray_DATA, PyArray_TYPE, ndarray
from opwise.linkers.native.objectcode cimport Py_REFCNT
from opwise.linkers.native.runtime cimport (
    OW_OK,
    ow_ensure,
    ow_int,
    ow_is_long,
    ow_size,
    ow_slot,
    ow_step,
    ow_watch_begin,
    ow_watch_end,
)
from opwise.linkers.native.signals cimport look_at_signals, raise_interrupt
from opwise.linkers.native.vm cimport VM, Runner

import ctypes

import numpy as np

cdef extern from "distributions.h":
    ctypedef struct ow_bits:
        void *state
    ctypedef struct ow_pcg64_state:
        uint64_t state[2]
        uint64_t increment[2]
    ctypedef struct ow_pcg64:
        ow_pcg64_state *numbers
        int has_uint32
        uint32_t uinteger
    ctypedef struct ow_distribution:
        const char *name
        const char *function
        int parameters, is_integer
    const ow_distribution *ow_distributions
    int OW_DISTRIBUTIONS, OW_MOST_PARAMETERS
    bint ow_allowed(const ow_distribution *, const ow_slot *, ow_slot **) nogil
    void ow_draw_numbers(
        const ow_distribution *, ow_bits *, void *, const ow_slot *, ow_slot **) nogil


@cython.final
cdef class _Numpys:
    """What is known of numpy's generators, once it was looked up."""

    #: numpy's library, None before; the address of each function of it
    cdef object library
    cdef dict functions
    #: whether PCG64 has the layout that is expected: -1 before it was tried
    cdef int pcg64


cdef _Numpys _numpys = _Numpys()
_numpys.functions = {}
_numpys.pcg64 = -1


cdef uintptr_t _function(str name) except? 0:
    """Return the address of a function of numpy's; 0 if its library does not show it."""
    found = _numpys.functions.get(name)
    if found is None:
        if _numpys.library is None:
            _numpys.library = ctypes.CDLL(np.random._generator.__file__)
        function = getattr(_numpys.library, name, None)
        found = 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value
        _numpys.functions[name] = found
    return found


cdef const ow_distribution *_distribution(str name):
    cdef int k
    for k in range(OW_DISTRIBUTIONS):
        if ow_distributions[k].name.decode() == name:
            return &ow_distributions[k]
    return NULL


cdef ow_bits *_bits(object generator) except NULL:
    """Return what a Generator draws from."""
    return <ow_bits *>PyCapsule_GetPointer(generator.bit_generator.capsule, "BitGenerator")


cdef bint _is_pcg64(object bits) except -1:
    """Return whether a bit generator is numpy's PCG64, and is laid out as ``ow_pcg64`` says."""
    cdef ow_pcg64 *own
    if _numpys.pcg64 < 0:
        trial = np.random.PCG64(5)
        np.random.Generator(trial).integers(5, dtype=np.uint32)
        own = <ow_pcg64 *>(
            <ow_bits *>PyCapsule_GetPointer(trial.capsule, "BitGenerator")).state
        state = trial.state
        numbers = state["state"]
        _numpys.pcg64 = (
            state["has_uint32"] == 1
            and own.has_uint32 == 1
            and own.uinteger == state["uinteger"]
            and type(trial).__module__ == "numpy.random._pcg64"
            and numbers["state"] == (<object>own.numbers.state[1] << 64 | own.numbers.state[0])
            and numbers["inc"]
            == (<object>own.numbers.increment[1] << 64 | own.numbers.increment[0])
        )
    return _numpys.pcg64 == 1 and type(bits) is np.random.PCG64


@cython.final
cdef class _Saved:
    """The state of a Generator: copied from its memory, or as numpy gives it."""

    cdef ow_pcg64_state numbers
    cdef int has_uint32
    cdef uint32_t uinteger
    cdef object given

    cdef int save(self, generator) except -1:
        cdef ow_pcg64 *own
        bits = generator.bit_generator
        self.given = None
        if not _is_pcg64(bits):
            self.given = bits.state
            return 0
        own = <ow_pcg64 *>_bits(generator).state
        self.numbers = own.numbers[0]
        self.has_uint32, self.uinteger = own.has_uint32, own.uinteger
        return 0

    cdef int restore(self, generator) except -1:
        cdef ow_pcg64 *own
        if self.given is not None:
            generator.bit_generator.state = self.given
            return 0
        own = <ow_pcg64 *>_bits(generator).state
        own.numbers[0] = self.numbers
        own.has_uint32, own.uinteger = self.has_uint32, self.uinteger
        return 0


@cython.final
cdef class GeneratorDraw(Runner):
    """What an Apply of a GeneratorDraw (tensor/random/generator.py) runs in the compiled VM.

    distribution: its name in distributions.h, or None where Python draws. draw: called as
    (Generator, values of the other inputs), returns the numbers; it draws from the Generator
    itself. copied: a function that copies a Generator. overwrites: whether the Op advances the
    Generator itself. alone: whether no other Apply reads it. sized: whether the first input after
    it is the shape.
    """

    cdef const ow_distribution *of
    cdef void *function
    cdef bint overwrites, alone, sized
    cdef object draw, copied
    cdef _Saved before

    def __cinit__(self, distribution, draw, copied, bint overwrites, bint alone, bint sized):
        self.of = NULL
        if distribution is not None:
            self.of = _distribution(distribution)
        if self.of != NULL:
            self.function = <void *>_function(self.of.function.decode())
            if self.function == NULL:
                self.of = NULL
        self.draw, self.copied, self.before = draw, copied, _Saved()
        self.overwrites, self.alone, self.sized = overwrites, alone, sized

    cdef int run(self, VM vm, int k) except -1:
        cdef ow_step *s = &vm.steps[k]
        cdef int i, of_new = vm.slots.of(s.out[0])
        if s.in_[0].owner == NULL:
            raise ValueError("expected a numpy.random.Generator, not None")
        generator = <object>s.in_[0].owner
        if not self.overwrites:
            vm.slots.release(of_new)  # that of the last step of a loop may be the same
            if s.advances:
                self.before.save(generator)
                s.advanced = 1
            # the slot and this function hold it
            elif not (self.alone and Py_REFCNT(<PyObject *>generator) <= 2):
                generator = self.copied(generator)
        if self.of == NULL or not self._draw(s, generator):
            inputs = [vm.slots.value(vm.slots.of(s.in_[i])) for i in range(1, s.nin)]
            vm.accept(k, 1, vm.slots.of(s.out[1]), self.draw(generator, inputs))
        vm.slots.own(of_new, generator)
        return 0

    cdef bint _draw(self, ow_step *s, generator) except -1:
        """Draw in C; return False where numpy is to do it, or to say what is wrong."""
        cdef int d, k, more
        cdef ow_slot **given = s.in_ + 1 + self.sized
        cdef ow_slot *z = s.out[1]
        cdef ow_slot *p
        cdef ow_slot item
        for d in range(z.ndim):
            z.shape[d] = 1
        if self.sized:
            p = s.in_[1]
            if p.shape[0] != z.ndim:
                return False
            item = p[0]
            for d in range(z.ndim):
                item.data = p.data + d * p.strides[0]
                z.shape[d] = ow_int(&item)
                if z.shape[d] < 0:
                    return False
        for k in range(self.of.parameters):
            p = given[k]
            more = z.ndim - p.ndim
            if more < 0:
                return False
            for d in range(p.ndim):
                if not self.sized and z.shape[more + d] == 1:
                    z.shape[more + d] = p.shape[d]
                elif p.shape[d] != 1 and p.shape[d] != z.shape[more + d]:
                    return False
        if ow_size(z) == 0 or not ow_allowed(self.of, z, given) or ow_ensure(s, z) != OW_OK:
            return False
        _fill(self.of, self.function, generator, s, z, given)
        return True

    cdef int undo(self, ow_step *s) except -1:
        return self.before.restore(<object>s.in_[0].owner)


cdef int _fill(const ow_distribution *of, void *function, generator, ow_step *s, ow_slot *z,
               ow_slot **given) except -1:
    """Draw the numbers of a slot."""
    cdef int stopped = 0
    cdef ow_bits *bits = _bits(generator)
    with generator.bit_generator.lock:
        if s == NULL or not ow_is_long(s):
            ow_draw_numbers(of, bits, function, z, given)
            return 0
        with nogil:
            ow_watch_begin(look_at_signals)
            ow_draw_numbers(of, bits, function, z, given)
            stopped = ow_watch_end()
    if stopped:
        raise_interrupt()
    return 0


def distributions():
    """Return {name: number of its parameters} of the distributions that C draws."""
    cdef int k
    return {
        ow_distributions[k].name.decode(): ow_distributions[k].parameters
        for k in range(OW_DISTRIBUTIONS)
        if _function(ow_distributions[k].function.decode())
    }


def draw_numbers(str name, generator, parameters, ndarray numbers):
    """Fill a contiguous array of doubles with numbers of a distribution of given parameters."""
    cdef const ow_distribution *of = _distribution(name)
    cdef ow_slot z
    cdef ow_slot slots[3]
    cdef ow_slot *given[3]
    cdef double values[3]
    cdef int k
    memset(&z, 0, sizeof(z))
    memset(slots, 0, sizeof(slots))
    z.ndim, z.itemsize, z.typenum, z.strides[0] = 1, 8, PyArray_TYPE(numbers), 8
    z.shape[0], z.data = len(numbers), <char *>PyArray_DATA(numbers)
    for k in range(of.parameters):
        values[k] = parameters[k]
        slots[k].itemsize, slots[k].typenum, slots[k].data = 8, z.typenum, <char *>&values[k]
        given[k] = &slots[k]
    _fill(of, <void *>_function(of.function.decode()), generator, NULL, &z, given)
