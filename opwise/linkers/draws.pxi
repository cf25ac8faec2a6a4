# Draws from numpy's legacy generators, numpy.random.RandomState. Included by opwise_c.pyx.
#
# A RandomState that draws from a Mersenne twister is read and advanced as memory, if this numpy
# lays it out as RandomStateObject (opwise_c.pxd) has it and draws the same numbers, which is tried
# out. Other generators, and other methods, run in Python.

cdef dict _DRAWS = {"uniform": 0, "normal": 1, "binomial": 2}


@cython.final
cdef class _Numpys:
    """What is known of numpy's generators, once it was tried out."""

    #: how its Mersenne twister draws a double, which others do differently; NULL: unknown
    cdef void *next_double
    #: the draws of _DRAWS that give its numbers; None: not known yet
    cdef frozenset draws


cdef _Numpys _numpys = _Numpys()


cdef bint _generator_of(object state, ow_generator *g) except -1:
    """Point ``g`` to what the numbers of a RandomState depend on; False if that is not known."""
    cdef RandomStateObject *r = <RandomStateObject *><PyObject *>state
    if _numpys.draws is None:
        _find_known_draws()
    if _numpys.next_double == NULL or type(state) is not np.random.RandomState:
        return False
    if r.bitgen.next_double != _numpys.next_double:
        return False
    g.twister = <ow_twister *>r.bitgen.state
    g.has_gauss, g.gauss = &r.has_gauss, &r.gauss
    return True


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
    _numpys.draws = frozenset(name for name in _DRAWS if _draws_as_numpy(name, own, numpys))


cdef bint _draws_as_numpy(str name, own, numpys) except -1:
    """Return whether some draws from equal generators are equal, and leave these equal."""
    cdef ow_generator g
    cdef ow_slot z, p
    cdef double chance = 0.3
    same = True
    _generator_of(own, &g)
    memset(&z, 0, sizeof(z))
    memset(&p, 0, sizeof(p))
    z.ndim, z.itemsize, z.typenum, z.strides[0] = 1, 8, cnp.NPY_DOUBLE, 8
    p.itemsize, p.data = 8, <char *>&chance
    for n in (1, 501, 2, 350):
        numbers, drawn = np.empty(n), np.empty(n + 2)
        z.shape[0], z.data = n, <char *>cnp.PyArray_DATA(<cnp.ndarray>numbers)
        if name == "uniform":
            ow_draw_uniform(&g, &z, -1.5, 4.25)
            wanted = numpys.uniform(-1.5, 2.75, n)
        elif name == "normal":
            ow_draw_normal(&g, &z, 0.3, 1.7, <double *>cnp.PyArray_DATA(<cnp.ndarray>drawn))
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

    cdef ow_generator_state state
    cdef object given

    cdef int save(self, generator) except -1:
        cdef ow_generator g
        self.given = None
        if _generator_of(generator, &g):
            ow_generator_save(&g, &self.state)
        else:
            self.given = generator.get_state(legacy=False)
        return 0

    cdef int restore(self, generator) except -1:
        cdef ow_generator g
        if self.given is not None:
            generator.set_state(self.given)
        elif _generator_of(generator, &g):
            ow_generator_restore(&g, &self.state)
        return 0


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
        self.method = _DRAWS.get(name, -1)
        self.in_place, self.copied, self.before = in_place, copied, SavedGenerator()
        self.overwrites, self.alone = overwrites, alone
        if _numpys.draws is None:
            _find_known_draws()
        if name not in _numpys.draws:
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
        known = self.method >= 0 and _generator_of(state, &g)
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
        return vm._accept(k, 1, vm.slots.of(s.out[1]), storage[1][0])

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
                ow_watch_begin(_look_at_signals)
                self._fill(g, s, first, second, drawn)
                stopped = ow_watch_end()
        if stopped:
            _raise_interrupt()
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
