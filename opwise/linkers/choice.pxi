# Branches that are not taken: which steps a call needs, and what hands over values. Included by
# opwise_c.pyx.


@cython.final
cdef class Decisions:
    """Says which steps one call needs; asked before each step, in order.

    choices: those of the Program, at least one; guards: by step. See ``opwise.linkers.program``.
    """

    cdef ow_choice *choices
    # the guards of steps, and the alternatives that hold
    cdef ow_guard *guards
    cdef uint64_t *holds
    # how many decisions there are, words of a set of alternatives, and which decision is next
    cdef int count, words, next
    cdef Arena arena

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
            raise vm._exception(rc)
        ow_copy(z, c)
        return 0
