# Loop: repeats the program of a VM, row by row. Included by opwise_c.pyx.


@cython.final
cdef class Loop(Runner):
    """What an Apply of a Scan runs in the compiled VM.

    vm: runs one step. layout: that of the Scan. perform: runs the Apply in Python, and does what
    this class does not: no step, and errors about the shapes of values.
    """

    cdef VM vm
    cdef int nsequences, nstates, ntaps, nresults, nobjects, nconstants
    cdef bint until
    cdef list taps
    cdef object perform

    def __init__(self, VM vm, layout, perform):
        self.vm, self.perform = vm, perform
        self.taps = [list(taps) for taps in layout.taps]
        self.nsequences, self.nstates = layout.sequences, len(self.taps)
        self.ntaps = sum(len(taps) for taps in self.taps)
        self.nresults, self.nobjects, self.until = layout.results, layout.objects, layout.until
        self.nconstants = vm.ninputs - self.nsequences - self.ntaps - self.nobjects

    cdef int run(self, VM outer, int k) except -1:
        """Run step ``k`` of the VM of the function around the loop."""
        cdef VM vm = self.vm
        cdef int64_t done
        if vm.running:
            raise RuntimeError(BUSY)
        vm.running = True
        vm.careful = False
        try:
            done = self._repeat(outer, &outer.steps[k])
            if done > 0:
                self._finish(outer, &outer.steps[k], done)
        finally:
            vm._abandon()
            if outer.allow_gc:
                vm._give_back_blocks()
            vm.running = False
        if done <= 0:
            outer._perform_in_python(k, self.perform)
        return 0

    cdef int64_t _repeat(self, VM outer, ow_step *s) except -1:
        """Run all steps and return their number; 0 where this is a case for ``perform``."""
        cdef VM vm = self.vm
        cdef int64_t n, t = 0
        cdef int i
        n = self._start(outer, s)
        while t < n:
            self._point(s, t)
            vm._run_range(0, vm.nsteps, True)
            if t == 0 and not self._start_results(outer, s, n):
                return 0
            for i in range(self.nstates + self.nresults):
                if not self._put_row(s.out[i], i, t):
                    return 0
            for i in range(self.nobjects):
                vm._own(self._object(i), vm._value(vm.output_slot[self._row_outputs() + i]))
            t += 1
            if self.until and self._ends():
                break
            if t & 15 == 0:
                PyErr_CheckSignals()
        return t

    cdef inline int _row_outputs(self) noexcept:
        return self.nstates + self.nresults

    cdef inline int _object(self, int i) noexcept:
        """Return the slot of an object that each step hands to the next one."""
        return self.vm.input_slot[self.nsequences + self.ntaps + i]

    cdef int64_t _start(self, VM outer, ow_step *s) except -1:
        """Give the program what does not change; return the number of steps, 0 for ``perform``."""
        cdef VM vm = self.vm
        cdef ow_slot *c
        cdef ow_slot first
        cdef ow_slot *z
        cdef int i, j, tap = self.nsequences, given = 1 + self.nsequences
        cdef int64_t n = ow_int(s.in_[0]), before
        if n <= 0:
            return 0
        for i in range(self.nsequences):
            if s.in_[1 + i].shape[0] != n:
                return 0
            _become_row(&vm.slots[vm.input_slot[i]], s.in_[1 + i])
        for i in range(self.nstates):
            before = max(<list>self.taps[i])
            c = s.in_[given + i]
            if c.shape[0] != before:
                return 0
            z = s.out[i]
            outer._release(<int>(z - outer.slots))
            z.ndim = c.ndim
            for j in range(c.ndim):
                z.shape[j] = c.shape[j]
            z.shape[0] = before + n
            self._ensure(outer, s, z)
            first = z[0]
            first.shape[0] = before
            ow_copy(&first, c)
            for j in range(len(<list>self.taps[i])):
                _become_row(&vm.slots[vm.input_slot[tap]], z)
                tap += 1
        given += self.nstates
        for i in range(self.nobjects):
            vm._own(self._object(i), outer._value(<int>(s.in_[given + i] - outer.slots)))
        given += self.nobjects
        for i in range(self.nconstants):
            c = s.in_[given + i]
            j = vm.input_slot[self.nsequences + self.ntaps + self.nobjects + i]
            if c.typenum < 0:
                vm._own(j, outer._value(<int>(c - outer.slots)))
            else:
                ow_alias(&vm.slots[j], c)
        return n

    cdef int _ensure(self, VM outer, ow_step *s, ow_slot *z) except -1:
        cdef int rc = ow_ensure(s, z)
        if rc != OW_OK:
            raise outer._exception(rc)
        return 0

    cdef void _point(self, ow_step *s, int64_t t) noexcept:
        """Point the inputs of the program to the rows of step ``t``."""
        cdef VM vm = self.vm
        cdef int i, tap = self.nsequences
        cdef int64_t before, back
        cdef ow_slot *z
        for i in range(self.nsequences):
            z = s.in_[1 + i]
            vm.slots[vm.input_slot[i]].data = ow_at(z.data, t, z.strides[0])
        for i in range(self.nstates):
            z = s.out[i]
            before = s.in_[1 + self.nsequences + i].shape[0]
            for back in <list>self.taps[i]:
                vm.slots[vm.input_slot[tap]].data = ow_at(z.data, t + before - back, z.strides[0])
                tap += 1

    cdef bint _start_results(self, VM outer, ow_step *s, int64_t n) except -1:
        """Find memory for results whose first rows are there; return whether that can be done."""
        cdef int i, j
        cdef ow_slot *row
        cdef ow_slot *z
        for i in range(self.nstates, self._row_outputs()):
            row = &self.vm.slots[self.vm.output_slot[i]]
            z = s.out[i]
            if row.data == NULL or row.ndim + 1 != z.ndim:
                return False
            outer._release(<int>(z - outer.slots))
            z.shape[0] = n
            for j in range(row.ndim):
                z.shape[j + 1] = row.shape[j]
            self._ensure(outer, s, z)
        return True

    cdef bint _put_row(self, ow_slot *z, int i, int64_t t) except -1:
        """Copy output ``i`` of a step to its row; return whether it fits."""
        cdef ow_slot *value = &self.vm.slots[self.vm.output_slot[i]]
        cdef ow_slot row
        cdef int d
        if value.data == NULL or value.ndim + 1 != z.ndim:
            return False
        for d in range(value.ndim):
            if value.shape[d] != z.shape[d + 1]:
                return False
        if i < self.nstates:
            t += max(<list>self.taps[i])
        if ow_is_c_contiguous(value):
            memcpy(ow_at(z.data, t, z.strides[0]), value.data, ow_size(value) * value.itemsize)
            return True
        row = z[0]
        _become_row(&row, z)
        row.data = ow_at(z.data, t, z.strides[0])
        ow_copy(&row, value)
        return True

    cdef bint _ends(self) except -1:
        """Return whether the condition of the last step holds."""
        cdef int slot = self.vm.output_slot[self.vm.noutputs - 1]
        cdef ow_slot *c = &self.vm.slots[slot]
        if c.itemsize == 1 and c.data != NULL:
            return c.data[0] != 0
        return bool(self.vm._value(slot))

    cdef int _finish(self, VM outer, ow_step *s, int64_t done) except -1:
        """Let the outputs end with the row of the last step."""
        cdef int i
        for i in range(self._row_outputs()):
            s.out[i].shape[0] = done
            if i < self.nstates:
                s.out[i].shape[0] += max(<list>self.taps[i])
        for i in range(self.nobjects):
            outer._own(<int>(s.out[self._row_outputs() + i] - outer.slots),
                       <object>self.vm.slots[self._object(i)].owner)
        return 0


cdef void _become_row(ow_slot *row, const ow_slot *rows) noexcept:
    """Give a slot the shape and strides of a row."""
    cdef int d
    row.ndim = rows.ndim - 1
    for d in range(row.ndim):
        row.shape[d] = rows.shape[d + 1]
        row.strides[d] = rows.strides[d + 1]
