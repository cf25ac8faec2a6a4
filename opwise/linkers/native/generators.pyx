# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""numpy's legacy generators, numpy.random.RandomState, and copies that restore what a call changes.

A RandomState that draws from a Mersenne twister is read and advanced as memory, if this numpy lays
it out as RandomStateObject (below) has it and draws the same numbers, which is tried out. Other
generators, and other methods, run in Python.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.string cimport memcmp, memset

from opwise.linkers.native.arrays cimport NPY_FLOAT64, PyArray_DATA, ndarray
from opwise.linkers.native.runtime cimport ow_slot

import copy

import numpy as np

cdef extern from "draws.h":
    int OW_TWISTER_WORDS
    void ow_generator_save(const ow_generator *, ow_generator_state *) nogil
    void ow_generator_restore(const ow_generator *, const ow_generator_state *) nogil

cdef extern from *:
    """
    typedef struct NumpyBitgen {
        void *state, *next_uint64, *next_uint32, *next_double, *next_raw;
    } NumpyBitgen;
    /* numpy.random.RandomState (numpy/random/mtrand.pyx) up to what its numbers depend on */
    typedef struct RandomStateObject {
        PyObject_HEAD
        void *methods;
        PyObject *bit_generator;
        NumpyBitgen bitgen;
        void *aug_bitgen;
        int has_gauss;
        double gauss;
    } RandomStateObject;
    """
    ctypedef struct NumpyBitgen:
        void *state
        void *next_double
    ctypedef struct RandomStateObject:
        void *bit_generator
        NumpyBitgen bitgen
        void *aug_bitgen
        int has_gauss
        double gauss

#: the methods of RandomState that C may draw in place of, and their numbers here
DRAWS = {"uniform": 0, "normal": 1, "binomial": 2}


@cython.final
cdef class _Numpys:
    """What is known of numpy's generators, once it was tried out."""

    #: how its Mersenne twister draws a double, which others do differently; NULL: unknown
    cdef void *next_double
    #: the draws of DRAWS that give its numbers; None: not known yet
    cdef frozenset draws


cdef _Numpys _numpys = _Numpys()


cdef bint generator_of(object state, ow_generator *g) except -1:
    """Point ``g`` to what the numbers of a RandomState depend on; False if that is not known."""
    cdef RandomStateObject *r = <RandomStateObject *><PyObject *>state
    known_draws()
    if _numpys.next_double == NULL or type(state) is not np.random.RandomState:
        return False
    if r.bitgen.next_double != _numpys.next_double:
        return False
    g.twister = <ow_twister *>r.bitgen.state
    g.has_gauss, g.gauss = &r.has_gauss, &r.gauss
    return True


cdef frozenset known_draws():
    """Return which of DRAWS give numpy's numbers."""
    if _numpys.draws is None:
        _find_known_draws()
    return _numpys.draws


cdef _find_known_draws():
    """Find out whether RandomState has the layout that is expected, and which draws are numpy's."""
    cdef RandomStateObject *r
    _numpys.draws = frozenset()
    own, numpys = np.random.RandomState(5), np.random.RandomState(5)
    for state in (own, numpys):
        state.standard_normal()
        state.random_sample(7)
        state.bytes(4)  # one word: pairs then lie across the ends of keys
    r = <RandomStateObject *><PyObject *>own
    bits = own._bit_generator
    state = own.get_state(legacy=False)
    if (
        own.__class__.__basicsize__ < <Py_ssize_t>sizeof(RandomStateObject)
        or type(bits) is not np.random.MT19937
        or <void *>r.bit_generator != <void *>bits
        or r.aug_bitgen != <void *>&r.bitgen
        or memcmp(PyCapsule_GetPointer(bits.capsule, "BitGenerator"), &r.bitgen, sizeof(r.bitgen))
        or r.has_gauss != state["has_gauss"]
        or r.gauss != state["gauss"]
        or r.bitgen.state == NULL
        or (<ow_twister *>r.bitgen.state).pos != state["state"]["pos"]
        or bytes((<char *>r.bitgen.state)[:4 * OW_TWISTER_WORDS])
        != state["state"]["key"].tobytes()
    ):
        return
    _numpys.next_double = r.bitgen.next_double
    _numpys.draws = frozenset(name for name in DRAWS if _draws_as_numpy(name, own, numpys))


cdef bint _draws_as_numpy(str name, own, numpys) except -1:
    """Return whether some draws from equal generators are equal, and leave these equal."""
    cdef ow_generator g
    cdef ow_slot z, p
    cdef double chance = 0.3
    same = True
    generator_of(own, &g)
    memset(&z, 0, sizeof(z))
    memset(&p, 0, sizeof(p))
    z.ndim, z.itemsize, z.typenum, z.strides[0] = 1, 8, NPY_FLOAT64, 8
    p.itemsize, p.data = 8, <char *>&chance
    for n in (1, 501, 2, 350):
        numbers, drawn = np.empty(n), np.empty(n + 2)
        z.shape[0], z.data = n, <char *>PyArray_DATA(<ndarray>numbers)
        if name == "uniform":
            ow_draw_uniform(&g, &z, -1.5, 4.25)
            wanted = numpys.uniform(-1.5, 2.75, n)
        elif name == "normal":
            ow_draw_normal(&g, &z, 0.3, 1.7, <double *>PyArray_DATA(<ndarray>drawn))
            wanted = numpys.normal(0.3, 1.7, n)
        else:
            chance = {1: 0.8, 501: 0.6, 2: 0.0, 350: 0.3}[n]
            ow_draw_binomial(&g, &z, n % 167, &p)
            wanted = numpys.binomial(n % 167, chance, n)
        same = same and np.array_equal(numbers, wanted)
    own.set_state(numpys.get_state(legacy=False))
    return same


@cython.final
cdef class SavedGenerator:
    """The state of a generator: copied from its memory, or as numpy gives it."""

    cdef int save(self, generator) except -1:
        cdef ow_generator g
        self.given = None
        if generator_of(generator, &g):
            ow_generator_save(&g, &self.state)
        else:
            self.given = generator.get_state(legacy=False)
        return 0

    cdef int restore(self, generator) except -1:
        cdef ow_generator g
        if self.given is not None:
            generator.set_state(self.given)
        elif generator_of(generator, &g):
            ow_generator_restore(&g, &self.state)
        return 0


cdef inline bint _is_generator(object value):
    """Return whether a value is a ``numpy.random.RandomState``, without importing that."""
    return type(value).__name__ == "RandomState"


def saved(value):
    """Return what restores an input that is about to be overwritten: a copy, or its state.

    A copy of a generator takes several times as long as its state.
    """
    cdef SavedGenerator kept
    if isinstance(value, np.ndarray):
        return np.array(value)
    if _is_generator(value):
        kept = SavedGenerator()
        kept.save(value)
        return kept
    return copy.deepcopy(value)


cdef bint restore(object value, object before) except -1:
    """Restore an overwritten value from what ``saved`` returned, or return False if it cannot."""
    if isinstance(value, np.ndarray):
        value[...] = before
    elif _is_generator(value):
        (<SavedGenerator>before).restore(value)
    else:
        return False
    return True
