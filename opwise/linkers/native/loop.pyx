# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Loop: repeats the program of a VM, row by row."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove

from opwise.linkers.native.clock cimport ow_clock
from opwise.linkers.native.library cimport OnDemand
from opwise.linkers.native.runtime cimport (
    OW_OK,
    ow_alias,
    ow_at,
    ow_copy,
    ow_ensure,
    ow_int,
    ow_is_c_contiguous,
    ow_loop,
    ow_size,
    ow_slot,
    ow_step,
)
from opwise.linkers.native.vm cimport VM, Runner

from opwise.linkers.native.locks import BUSY

cdef enum:
    # how long the C function of a step may run between two looks for signals, nanoseconds
    SMALL_NS = 1000000
    # why it ended, as opwise.scalar.recurrence has it
    SMALL_ENDED = 1
    SMALL_LEFT = 2
    SMALL_FAILED = 3
    # instead of a number of steps: the loop is a case for ``perform``
    NOT_HERE = -2


FAILED_STEP = "a step of the loop reads or writes an element that its array does not have"


@cython.final
cdef class Loop(Runner):
    """What an Apply of a Scan runs in the compiled VM.

    vm: runs one step. layout: that of the Scan. perform: runs the Apply in Python, and does what
    this class does not: results of no step, and errors about the shapes of values. note_step:
    called with (exception, Apply, steps done) when a step fails. small: None, or the step as a
    Recurrence (opwise.scalar) and the C function that repeats it, which runs the steps if the
    shapes are those of the Recurrence.
    """

    cdef VM vm
    cdef int64_t done
    cdef int nsequences, nstates, ntaps, nresults, nobjects, nconstants
    cdef bint until
    # the C function has met an error in a step, which the VM has to raise
    cdef bint failed
    # by tap: its state, and how many steps back
    cdef int *tap_state
    cdef int *tap_back
    # by output with rows: how many there are before the first step, and how many of the last ones
    # are kept, at their numbers modulo that; 0 for all
    cdef int *before
    cdef int64_t *kept
    cdef object perform, note_step
    # the C function that repeats the step, or NULL; what compiles it, if its first run has to; how
    # many steps it may do between two looks for signals; its operands, their strides, and the
    # lengths that they have to have
    cdef ow_loop small
    cdef OnDemand demand
    cdef int64_t chunk
    cdef char **operands
    cdef int64_t *strides
    cdef int64_t *lengths
    # by dimension of the rows of results: the operand that is as long and its dimension, or -1 and
    # the length
    cdef int *origins
    # how many elements some dimensions may have in all: (how many dimensions, operand and dimension
    # of each, the limit) for each limit
    cdef int *limits
    cdef int *limits_end
    cdef object keep

    def __cinit__(self, VM vm, layout, perform, note_step, small=None):
        cdef int i, tap = 0
        self.vm, self.perform, self.note_step = vm, perform, note_step
        self.repeats = True
        self.nsequences, self.nstates = layout.sequences, len(layout.taps)
        self.ntaps = sum([len(taps) for taps in layout.taps])
        self.nresults, self.nobjects, self.until = layout.results, layout.objects, layout.until
        self.nconstants = vm.ninputs - self.nsequences - self.ntaps - self.nobjects
        self.tap_state = <int *>calloc(self.ntaps + 1, sizeof(int))
        self.tap_back = <int *>calloc(self.ntaps + 1, sizeof(int))
        self.before = <int *>calloc(self._row_outputs() + 1, sizeof(int))
        self.kept = <int64_t *>calloc(self._row_outputs() + 1, sizeof(int64_t))
        if not (self.tap_state and self.tap_back and self.before and self.kept):
            raise MemoryError()
        for i, taps in enumerate(layout.taps):
            self.before[i] = max(taps)
            for back in taps:
                self.tap_state[tap] = i
                self.tap_back[tap] = back
                tap += 1
        for i in range(self._row_outputs()):
            self.kept[i] = layout.kept[i] or 0
        if small is not None:
            self.demand = small[1].on_demand
            if small[1].address or self.demand is not None:
                self._set_small(small[0], small[1])

    cdef _set_small(self, recurrence, loop):
        cdef int i
        shapes = recurrence.shapes
        lengths = [n for shape in shapes for n in shape]
        self.operands = <char **>calloc(len(shapes) + 2, sizeof(char *))
        self.strides = <int64_t *>calloc(3 * len(shapes) + 2 * len(lengths) + 1, sizeof(int64_t))
        self.lengths = <int64_t *>calloc(len(lengths) + 1, sizeof(int64_t))
        if not (self.operands and self.strides and self.lengths):
            raise MemoryError()
        for i, n in enumerate(lengths):
            self.lengths[i] = n
        known = [(-1, n) for shape, _ in recurrence.results for n in shape]
        i = 0
        for (shape, _), origins in zip(recurrence.results, recurrence.origins):
            known[i : i + len(origins)] = origins
            i += len(shape)
        self.origins = <int *>calloc(2 * len(known) + 1, sizeof(int))
        if not self.origins:
            raise MemoryError()
        for i, (operand, n) in enumerate(known):
            self.origins[2 * i], self.origins[2 * i + 1] = operand, n
        limits = []
        for dimensions, most in recurrence.limits:
            limits += [len(dimensions), *[n for dimension in dimensions for n in dimension], most]
        self.limits = <int *>calloc(len(limits) + 1, sizeof(int))
        if not self.limits:
            raise MemoryError()
        self.limits_end = self.limits + len(limits)
        for i, n in enumerate(limits):
            self.limits[i] = n
        self.small, self.keep = <ow_loop><uintptr_t>loop.address, loop
        self.chunk = max(1, <int64_t>(SMALL_NS / <double>recurrence.nanoseconds))

    def __dealloc__(self):
        free(self.operands)
        free(self.strides)
        free(self.lengths)
        free(self.origins)
        free(self.limits)
        free(self.tap_state)
        free(self.tap_back)
        free(self.before)
        free(self.kept)

    cdef int run(self, VM outer, int k) except -1:
        """Run step ``k`` of the VM of the function around the loop."""
        cdef VM vm = self.vm
        cdef int64_t done, start
        if vm.running:
            raise RuntimeError(BUSY)
        vm.running = True
        start = ow_clock() if vm.timing.on else 0
        vm.careful = False
        try:
            done = self._repeat(outer, &outer.steps[k])
            if done >= 0:
                self._finish(outer, &outer.steps[k], done)
                if vm.timing.on:
                    vm.timing.count_run(ow_clock() - start, done)
        except BaseException as error:
            self.note_step(error, outer.nodes[k], self.done)
            raise
        finally:
            vm.abandon()
            if outer.allow_gc:
                vm.give_back_blocks()
            vm.running = False
        if done == NOT_HERE:
            outer.perform_in_python(k, self.perform)
        return 0

    cdef int64_t _repeat(self, VM outer, ow_step *s) except -1:
        """Run all steps and return their number, or NOT_HERE."""
        cdef VM vm = self.vm
        cdef int64_t n, t = 0
        cdef bint started = False, started_small
        cdef int i
        self.done, self.failed = 0, False
        n = self._start_rows(outer, s)
        if n <= 0:
            return n
        if self.demand is not None and self._fits_small(s):
            self.demand.load()
            self.small, self.demand = self.demand.demanded.loop, None
        if self.small != NULL and self._fits_small(s):
            self._start_small_results(outer, s, n)
            started = True
            t = self._repeat_small(s, 0, n)
            if t < 0:
                return -1 - t
        started_small = started
        if vm.waiting.pending is not None and not self.failed:
            vm.waiting.take(vm, True)
        self._start(outer, s)
        while t < n:
            self.done = t
            self._point(s, t)
            vm.run_range(0, vm.nsteps, True)
            if not started:
                if not self._start_results(outer, s, n):
                    return NOT_HERE
                started = True
            for i in range(self.nstates + self.nresults):
                if not self._put_row(s.out[i], i, t):
                    return NOT_HERE
            for i in range(self.nobjects):
                vm.slots.own(self._object(i),
                             vm.slots.value(vm.output_slot[self._row_outputs() + i]))
            t += 1
            if self.failed:
                raise IndexError(FAILED_STEP)
            if self.until and self._ends():
                break
            if t & 15 == 0:
                PyErr_CheckSignals()
            if started_small and t < n:
                t = self._repeat_small(s, t, n)
                if t < 0:
                    return -1 - t
        return t

    cdef bint _fits_small(self, ow_step *s) noexcept:
        """Return whether rows and constants have the shapes of the Recurrence."""
        cdef int64_t *lengths = self.lengths
        cdef int64_t count
        cdef int *limit = self.limits
        cdef int i, d
        for i in range(self.nsequences):
            if not _has_lengths(s.in_[1 + i], 1, &lengths):
                return False
        for i in range(self.nstates):
            if not _has_lengths(s.out[i], 1, &lengths):
                return False
        for i in range(self.nstates, self._row_outputs()):
            lengths += s.out[i].ndim - 1
        for i in range(self.nconstants):
            if not _has_lengths(self._constant(s, i), 0, &lengths):
                return False
        while limit != self.limits_end:
            count = 1
            for d in range(limit[0]):
                count = min(count * self._length(s, limit[1 + 2 * d], limit[2 + 2 * d]), 1 << 30)
            limit += 2 * limit[0] + 2
            if count > limit[-1]:
                return False
        return True

    cdef inline ow_slot *_constant(self, ow_step *s, int i) noexcept:
        """Return the slot of the outer VM that holds a constant."""
        return s.in_[1 + self.nsequences + self.nstates + self.nobjects + i]

    cdef int64_t _repeat_small(self, ow_step *s, int64_t t, int64_t n) except? 0:
        """Repeat the step by its C function from step ``t`` on, of n.

        Returns the next step, which the VM has to do, or -1 minus the number of steps at the end.
        """
        cdef int64_t m, start, taken
        cdef int64_t done[2]
        cdef int last = self.nsequences + self._row_outputs() + self.nconstants
        self.operands[last], self.operands[last + 1] = <char *>&done[0], <char *>&done[1]
        while t < n:
            self.done = t
            self._set_strides(s, t)
            m = min(n - t, self.chunk)
            if m < self.chunk:
                self.small(NULL, self.operands, self.strides, m)
            else:
                start = ow_clock()
                with nogil:
                    self.small(NULL, self.operands, self.strides, m)
                taken = ow_clock() - start
                if taken < SMALL_NS // 4:
                    self.chunk = min(2 * self.chunk, INT64_MAX // 4)
                elif taken > 4 * SMALL_NS:
                    self.chunk = max(1, self.chunk // 2)
                PyErr_CheckSignals()
            t += done[0]
            if done[1] == SMALL_ENDED:
                return -1 - t
            if done[1] == SMALL_LEFT or done[1] == SMALL_FAILED:
                self.failed = done[1] == SMALL_FAILED
                return t
        return -1 - t

    cdef int _start_small_results(self, VM outer, ow_step *s, int64_t n) except -1:
        """Find memory for results, whose shapes the Recurrence knows or has from its operands."""
        cdef int *origin = self.origins
        cdef ow_slot *z
        cdef int i, d
        for i in range(self.nstates, self._row_outputs()):
            z = s.out[i]
            outer.slots.release(outer.slots.of(z))
            z.shape[0] = self._rows_left(i, n)
            for d in range(z.ndim - 1):
                z.shape[d + 1] = self._length(s, origin[0], origin[1])
                origin += 2
            self._ensure(outer, s, z)
        return 0

    cdef int64_t _length(self, ow_step *s, int operand, int d) noexcept:
        """Return a length of the rows of an operand of the C function; d if operand is -1."""
        if operand < 0:
            return d
        if operand < self.nsequences:
            return s.in_[1 + operand].shape[1 + d]
        operand -= self.nsequences
        if operand < self._row_outputs():
            return s.out[operand].shape[1 + d]
        return self._constant(s, operand - self._row_outputs()).shape[d]

    cdef void _set_strides(self, ow_step *s, int64_t t) noexcept:
        """Note the strides and rows of the operands of the C function for steps from ``t`` on."""
        cdef int64_t *st = self.strides
        cdef char **p = self.operands
        cdef ow_slot *c
        cdef int i
        for i in range(self.nsequences):
            c = s.in_[1 + i]
            p[i] = ow_at(c.data, t, c.strides[0])
            st[0] = c.strides[0]
            st = _copy_strides(st + 1, c, 1)
        p += self.nsequences
        for i in range(self._row_outputs()):
            p[i] = s.out[i].data
            st[0], st[1] = s.out[i].strides[0], t + self.before[i]
            st[2] = self.kept[i] or INT64_MAX
            st = _copy_strides(st + 3, s.out[i], 1)
        p += self._row_outputs()
        for i in range(self.nconstants):
            c = self._constant(s, i)
            p[i] = c.data
            st = _copy_strides(st, c, 0)

    cdef inline int _row_outputs(self) noexcept:
        return self.nstates + self.nresults

    cdef inline int _object(self, int i) noexcept:
        """Return the slot of an object that each step hands to the next one."""
        return self.vm.input_slot[self.nsequences + self.ntaps + i]

    cdef int64_t _start_rows(self, VM outer, ow_step *s) except -1:
        """Put first rows into states; return the number of steps, or NOT_HERE."""
        cdef ow_slot *c
        cdef ow_slot first
        cdef ow_slot *z
        cdef int i, j, given = 1 + self.nsequences
        cdef int64_t n = ow_int(s.in_[0])
        if n < 0 or n == 0 and (self.nresults or self.nobjects):
            return NOT_HERE
        for i in range(self.nsequences):
            if s.in_[1 + i].shape[0] != n:
                return NOT_HERE
        for i in range(self.nstates):
            c = s.in_[given + i]
            if c.shape[0] != self.before[i]:
                return NOT_HERE
            z = s.out[i]
            outer.slots.release(outer.slots.of(z))
            z.ndim = c.ndim
            for j in range(c.ndim):
                z.shape[j] = c.shape[j]
            z.shape[0] = self._rows_left(i, self.before[i] + n)
            self._ensure(outer, s, z)
            first = z[0]
            first.shape[0] = self.before[i]
            ow_copy(&first, c)
        return n

    cdef int _start(self, VM outer, ow_step *s) except -1:
        """Give the program what does not change."""
        cdef VM vm = self.vm
        cdef ow_slot *c
        cdef int i, j, given = 1 + self.nsequences + self.nstates
        for i in range(self.nsequences):
            _become_row(&vm.slots.at[vm.input_slot[i]], s.in_[1 + i])
            self._keep_alive(vm.input_slot[i], outer, s.in_[1 + i])
        for i in range(self.ntaps):
            j = vm.input_slot[self.nsequences + i]
            _become_row(&vm.slots.at[j], s.out[self.tap_state[i]])
            self._keep_alive(j, outer, s.out[self.tap_state[i]])
        for i in range(self.nobjects):
            vm.slots.own(self._object(i), outer.slots.value(outer.slots.of(s.in_[given + i])))
        for i in range(self.nconstants):
            c = self._constant(s, i)
            j = vm.input_slot[self.nsequences + self.ntaps + self.nobjects + i]
            if c.typenum >= 0:
                ow_alias(&vm.slots.at[j], c)
            self._keep_alive(j, outer, c)
        return 0

    cdef int _keep_alive(self, int i, VM outer, ow_slot *c) except -1:
        """Let slot ``i`` of the program own what a slot of the outer VM shows.

        Errors show the values of the failing step, also after the loop.
        """
        self.vm.slots.own(i, outer.slots.array(outer.slots.of(c)))
        return 0

    cdef int _ensure(self, VM outer, ow_step *s, ow_slot *z) except -1:
        cdef int rc = ow_ensure(s, z)
        if rc != OW_OK:
            raise outer.exception(rc)
        return 0

    cdef void _point(self, ow_step *s, int64_t t) noexcept:
        """Point the inputs of the program to the rows of step ``t``."""
        cdef VM vm = self.vm
        cdef int i, k
        cdef ow_slot *z
        for i in range(self.nsequences):
            z = s.in_[1 + i]
            vm.slots.at[vm.input_slot[i]].data = ow_at(z.data, t, z.strides[0])
        for i in range(self.ntaps):
            k = self.tap_state[i]
            vm.slots.at[vm.input_slot[self.nsequences + i]].data = self._row(
                s.out[k], k, t - self.tap_back[i])

    cdef inline char *_row(self, ow_slot *z, int k, int64_t t) noexcept:
        """Return where the row of step ``t`` of output ``k`` lies."""
        t += self.before[k]
        return ow_at(z.data, t % self.kept[k] if self.kept[k] else t, z.strides[0])

    cdef inline int64_t _rows_left(self, int k, int64_t count) noexcept:
        """Return how many of ``count`` rows of output ``k`` are kept."""
        return min(count, self.kept[k]) if self.kept[k] else count

    cdef bint _start_results(self, VM outer, ow_step *s, int64_t n) except -1:
        """Find memory for results whose first rows are there; return whether that can be done."""
        cdef int i, j
        cdef ow_slot *row
        cdef ow_slot *z
        for i in range(self.nstates, self._row_outputs()):
            row = &self.vm.slots.at[self.vm.output_slot[i]]
            z = s.out[i]
            if row.data == NULL or row.ndim + 1 != z.ndim:
                return False
            outer.slots.release(outer.slots.of(z))
            z.shape[0] = self._rows_left(i, n)
            for j in range(row.ndim):
                z.shape[j + 1] = row.shape[j]
            self._ensure(outer, s, z)
        return True

    cdef bint _put_row(self, ow_slot *z, int i, int64_t t) except -1:
        """Copy output ``i`` of a step to its row; return whether it fits."""
        cdef ow_slot *value = &self.vm.slots.at[self.vm.output_slot[i]]
        cdef ow_slot row
        cdef int d
        if value.data == NULL or value.ndim + 1 != z.ndim:
            return False
        for d in range(value.ndim):
            if value.shape[d] != z.shape[d + 1]:
                return False
        if value.data == self._row(z, i, t):  # the step overwrote the row
            return True
        if ow_is_c_contiguous(value):
            memcpy(self._row(z, i, t), value.data, ow_size(value) * value.itemsize)
            return True
        row = z[0]
        _become_row(&row, z)
        row.data = self._row(z, i, t)
        ow_copy(&row, value)
        return True

    cdef bint _ends(self) except -1:
        """Return whether the condition of the last step holds."""
        cdef int slot = self.vm.output_slot[self.vm.noutputs - 1]
        cdef ow_slot *c = &self.vm.slots.at[slot]
        if c.itemsize == 1 and c.data != NULL:
            return c.data[0] != 0
        return bool(self.vm.slots.value(slot))

    cdef int _finish(self, VM outer, ow_step *s, int64_t done) except -1:
        """Let the outputs end with the row of the last step."""
        cdef int i
        for i in range(self._row_outputs()):
            s.out[i].shape[0] = self._rows_left(i, self.before[i] + done)
            if self.kept[i] > 1 and self.before[i] + done > self.kept[i]:
                _rotate(s.out[i], (self.before[i] + done) % self.kept[i])
        for i in range(self.nobjects):
            outer.slots.own(outer.slots.of(s.out[self._row_outputs() + i]),
                            <object>self.vm.slots.at[self._object(i)].owner)
        return 0


cdef int _rotate(ow_slot *z, int64_t first) except -1:
    """Put the rows of a contiguous array in order, of which row ``first`` is the oldest."""
    cdef size_t size = ow_size(z) * z.itemsize
    cdef size_t head = size // <size_t>z.shape[0] * <size_t>first
    cdef char *newest
    if head == 0:
        return 0
    newest = <char *>malloc(head)
    if newest == NULL:
        raise MemoryError()
    memcpy(newest, z.data, head)
    memmove(z.data, z.data + head, size - head)
    memcpy(z.data + size - head, newest, head)
    free(newest)
    return 0


cdef void _become_row(ow_slot *row, const ow_slot *rows) noexcept:
    """Give a slot the shape and strides of a row."""
    cdef int d
    row.ndim = rows.ndim - 1
    for d in range(row.ndim):
        row.shape[d] = rows.shape[d + 1]
        row.strides[d] = rows.strides[d + 1]


cdef inline bint _has_lengths(const ow_slot *c, int first, int64_t **lengths) noexcept:
    """Return whether the dimensions of a slot from ``first`` on have some lengths; go past them.

    A length of -1 stands for any.
    """
    cdef int d
    for d in range(first, c.ndim):
        if lengths[0][0] >= 0 and c.shape[d] != lengths[0][0]:
            return False
        lengths[0] += 1
    return True


cdef inline int64_t *_copy_strides(int64_t *to, const ow_slot *c, int first) noexcept:
    """Copy the strides and lengths of the dimensions from ``first`` on; return where others go."""
    cdef int d, n = c.ndim - first
    for d in range(n):
        to[d] = c.strides[first + d]
        to[n + d] = c.shape[first + d]
    return to + 2 * n
