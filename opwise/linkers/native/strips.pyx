# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Strips: runs steps on some rows of their arrays, then on the next ones."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcmp, memcpy, memset

from opwise.linkers.native.clock cimport ow_clock
from opwise.linkers.native.runtime cimport (
    ow_add_size,
    ow_alias,
    ow_alloc,
    ow_at,
    ow_bytes,
    ow_capacity,
    ow_copy,
    ow_dense_strides,
    ow_free,
    ow_is_dense,
    ow_mul_size,
    ow_size,
    ow_slot,
    ow_threads,
)
from opwise.linkers.native.simd cimport ow_chunk_fn
from opwise.linkers.native.slots cimport Arena
from opwise.linkers.native.timing cimport ow_note
from opwise.linkers.native.vm cimport VM, Stretch

from opwise.linkers.native.builtin import LOOPS

cdef enum:
    # so many times the bytes of a strip for one thread make strips worth what they cost
    STRIPS_WORTH = 8
    # vectors have so many elements at most, and tiles of products such rows
    STRIP_ROWS = 16


# A total of all rows: of which slot and step, how it is joined from those of strips, and what there
# is of it. The loops to a wider type and back are NULL where it is joined in its own.
cdef struct ow_total:
    int slot, step
    int64_t itemsize
    ow_chunk_fn join, widen, narrow
    char *found
    # how the result of the first strip lies
    int64_t n
    int64_t strides[8]


cdef ow_chunk_fn _chunk_loop(str name) except? NULL:
    """Return a built-in loop, NULL for no name."""
    return <ow_chunk_fn><uintptr_t>LOOPS[name] if name else NULL


@cython.final
cdef class Strips(Stretch):
    """Runs a Stretch of the Program on some rows of its arrays, then on the next ones."""

    cdef int ngiven, nreads, ncut, nkept, nbetween, nrepeated, ntotals
    # (slot, axis) of each given value that is cut, and a slot that shows rows of it
    cdef int *given
    cdef ow_slot *parts
    # (step, input, given value that it reads)
    cdef int *reads
    # (slot, axis) of each result
    cdef int *cut
    # (slot, axis, step) of each result that is needed as a whole, by step; and where it is put
    cdef int *kept
    cdef ow_slot *whole
    # for each other result the bytes of an element, how many lengths, and these as (slot, axis);
    # and for what each strip reads or writes besides its rows
    cdef int *between
    cdef int *repeated
    cdef ow_total *totals
    cdef int64_t *times
    cdef int64_t bytes

    def __cinit__(self, VM vm, stretch):
        cdef int k
        cdef Arena arena = vm.arena
        made_by = {slot: k for k in range(stretch.first, stretch.end)
                   for slot in vm.outputs_of(k)}
        kept = sorted(stretch.kept, key=made_by.__getitem__)
        self.first, self.end, self.bytes = stretch.first, stretch.end, stretch.bytes
        self.ngiven, self.ncut = len(stretch.given), len(stretch.axes)
        self.nkept, self.nreads = len(kept), len(stretch.reads)
        self.never_whole = tuple([slot for slot in stretch.axes if slot not in stretch.kept])
        self.given = arena.ints([n for one in stretch.given for n in one])
        self.parts = <ow_slot *>arena.block(sizeof(ow_slot) * self.ngiven)
        self.reads = arena.ints([n for (k, i), which in stretch.reads.items()
                                 for n in (k, i, which)])
        self.cut = arena.ints([n for slot, axis in stretch.axes.items() for n in (slot, axis)])
        self.kept = arena.ints([n for slot in kept
                                for n in (slot, stretch.axes[slot], made_by[slot])])
        self.between, self.nbetween = self._sizes(arena, stretch.between), len(stretch.between)
        self.repeated, self.nrepeated = self._sizes(arena, stretch.repeated), len(stretch.repeated)
        self.totals = self._totals(arena, stretch.totals, made_by)
        self.ntotals = len(stretch.totals)
        self.whole = <ow_slot *>arena.block(sizeof(ow_slot) * self.nkept)
        self.times = <int64_t *>arena.block(sizeof(int64_t) * (self.end - self.first))

    cdef int *_sizes(self, Arena arena, sizes) except NULL:
        return arena.ints([n for size, lengths in sizes
                           for n in (size, len(lengths), *[e for one in lengths for e in one])])

    cdef ow_total *_totals(self, Arena arena, totals, made_by) except NULL:
        cdef ow_total *found = <ow_total *>arena.block(sizeof(ow_total) * len(totals))
        cdef int i
        for i, total in enumerate(sorted(totals, key=lambda total: made_by[total.slot])):
            found[i].slot, found[i].step = total.slot, made_by[total.slot]
            found[i].itemsize = total.itemsize
            found[i].join, found[i].widen, found[i].narrow = (
                _chunk_loop(total.join), _chunk_loop(total.widen), _chunk_loop(total.narrow))
        return found

    cdef int run(self, VM vm) except -1:
        """Run the steps in strips; return 0 where they have to run as a whole.

        They have to where that is faster, where a value is missing, and where a step fails: its
        error shows whole arrays.
        """
        cdef int64_t n = -1 if vm.careful else self._length(vm)
        cdef int done = 0
        self.rows, self.length = self._rows(vm, n) if n > 0 else 0, n
        if self.rows == 0:
            return 0
        try:
            self._read_parts(vm, True)
            done = self._run(vm, n, self.rows)
            if done:
                self._hand_over(vm, n)
        finally:
            self._read_parts(vm, False)
            self._forget()
        if not done:
            self.rows = 0
        return done

    cdef void give_up(self, VM vm) noexcept:
        """Forget a call that does not go on, and its memory, which somebody may be writing to."""
        cdef int i
        self._read_parts(vm, False)
        for i in range(self.nkept):
            self.whole[i].buf = NULL
        for i in range(self.ntotals):
            self.totals[i].found = NULL

    cdef void _read_parts(self, VM vm, bint parts) noexcept:
        """Let steps read rows of the given values that are cut, or these as a whole again."""
        cdef int i, which
        for i in range(self.nreads):
            which = self.reads[3 * i + 2]
            vm.steps[self.reads[3 * i]].in_[self.reads[3 * i + 1]] = (
                &self.parts[which] if parts else &vm.slots.at[self.given[2 * which]])

    cdef void _show(self, VM vm, int64_t start, int64_t rows) noexcept:
        """Let the parts of given values show some rows."""
        cdef int i, axis
        cdef ow_slot *part
        for i in range(self.ngiven):
            part = &self.parts[i]
            part[0] = vm.slots.at[self.given[2 * i]]
            part.buf = NULL
            part.owner = NULL
            axis = self.given[2 * i + 1]
            part.data = ow_at(part.data, start, part.strides[axis])
            part.shape[axis] = rows

    cdef int64_t _length(self, VM vm) noexcept:
        """Return how many rows all given values have; -1 if they differ, or lie side by side."""
        cdef int i, d, axis
        cdef int64_t n = -1
        cdef ow_slot *c
        for i in range(self.ngiven):
            c = &vm.slots.at[self.given[2 * i]]
            axis = self.given[2 * i + 1]
            if c.data == NULL or (i and c.shape[axis] != n):
                return -1
            n = c.shape[axis]
            for d in range(c.ndim):
                if d != axis and c.shape[d] > 1 and (
                        abs(c.strides[d]) > abs(c.strides[axis]) > 0):
                    return -1
        return n

    cdef int64_t _rows(self, VM vm, int64_t n) noexcept:
        """Return how many of n rows a strip has, 0 if strips are not worth it."""
        cdef int64_t size = ow_mul_size(self._bytes(vm, self.between, self.nbetween), n)
        cdef int64_t most = self.bytes * ow_threads(), strips, rows
        if size < STRIPS_WORTH * self.bytes:
            return 0
        most = max(most, self._bytes(vm, self.repeated, self.nrepeated))
        strips = size // most + 1
        rows = (n + strips - 1) // strips
        if rows > STRIP_ROWS:
            rows = (rows + STRIP_ROWS - 1) // STRIP_ROWS * STRIP_ROWS
        return rows if rows < n else 0

    cdef int64_t _bytes(self, VM vm, const int *p, int count) noexcept:
        cdef int j, _part
        cdef int64_t total = 0, size
        for _part in range(count):
            size = p[0]
            for j in range(p[1]):
                size = ow_mul_size(size, vm.slots.at[p[2 + 2 * j]].shape[p[3 + 2 * j]])
            total = ow_add_size(total, size)
            p += 2 + 2 * p[1]
        return total

    cdef int _run(self, VM vm, int64_t n, int64_t rows) except -1:
        """Run all strips; return 0 if a step fails."""
        cdef int64_t start = 0, count, before, now
        cdef int k, j, t
        cdef bint done, timed = vm.timing.on
        memset(self.times, 0, sizeof(int64_t) * (self.end - self.first))
        while start < n:
            count = min(rows, n - start)
            self._show(vm, start, count)
            j = t = 0
            before = ow_clock() if timed else 0
            for k in range(self.first, self.end):
                if vm.ranges is not None:
                    vm.ranges.open(k)
                done = vm.attempt(k, True, True) == 0
                while done and j < self.nkept and self.kept[3 * j + 2] == k:
                    done = self._put(vm, j, n, start)
                    j += 1
                while done and t < self.ntotals and self.totals[t].step == k:
                    done = self._join(&vm.slots.at[self.totals[t].slot], &self.totals[t])
                    t += 1
                if timed:
                    now = ow_clock()
                    self.times[k - self.first] += now - before
                    before = now
                if vm.ranges is not None:
                    vm.ranges.close()
                if not done:
                    return 0
                # what dies with the last step may be a given value, which each strip reads
                if k + 1 < self.end or start + count == n:
                    if vm.release_dead(k) and timed:
                        before = ow_clock()
            PyErr_CheckSignals()
            start += count
        return 1

    cdef bint _put(self, VM vm, int j, int64_t n, int64_t start) noexcept:
        """Put the rows of a strip into the whole result, whose memory comes with the first one."""
        cdef ow_slot *c = &vm.slots.at[self.kept[3 * j]]
        cdef ow_slot *whole = &self.whole[j]
        cdef ow_slot part
        cdef int axis = self.kept[3 * j + 1]
        if whole.buf == NULL:
            ow_alias(whole, c)
            whole.itemsize = c.itemsize
            whole.shape[axis] = n
            ow_dense_strides(whole, c)
            whole.cap = ow_bytes(whole.ndim, whole.shape, whole.itemsize)
            whole.buf = whole.data = ow_alloc(whole.cap)
            if whole.buf == NULL:
                return False
        part = whole[0]
        part.shape[axis] = c.shape[axis]
        part.data = ow_at(whole.data, start, whole.strides[axis])
        ow_copy(&part, c)
        return True

    cdef bint _join(self, ow_slot *c, ow_total *total) noexcept:
        """Join the result of a strip with what there is of a total."""
        cdef double wide[512]
        cdef const void *operands[2]
        cdef int64_t at, count, size = total.itemsize, most = sizeof(wide) // total.itemsize
        cdef char *to
        cdef const void *of
        cdef bint is_first = total.found == NULL
        if not ow_is_dense(c) or (not is_first and (
                total.n != ow_size(c)
                or memcmp(total.strides, c.strides, sizeof(int64_t) * c.ndim))):
            return False
        if is_first:
            total.n = ow_size(c)
            memcpy(total.strides, c.strides, sizeof(int64_t) * c.ndim)
            total.found = ow_alloc(total.n * size)
            if total.found == NULL:
                return False
        for at in range(0, total.n, most):
            count = min(most, total.n - at)
            to, of = total.found + at * size, c.data + at * c.itemsize
            if total.widen != NULL:
                total.widen(to if is_first else <char *>wide, &of, count)
                of = wide
            elif is_first:
                memcpy(to, of, count * size)
            if not is_first:
                operands[0], operands[1] = to, of
                total.join(to, operands, count)
        return True

    cdef void _finish_total(self, ow_slot *c, ow_total *total) noexcept:
        """Let a slot, which has the result of the last strip, hold that of all."""
        cdef const void *of = total.found
        if total.narrow != NULL:
            total.narrow(c.data, &of, total.n)
        else:
            memcpy(c.data, of, total.n * total.itemsize)

    cdef int _hand_over(self, VM vm, int64_t n) except -1:
        """Let slots hold the whole results, and the others none; note the times of the steps."""
        cdef int i, k
        cdef ow_slot *c
        for i in range(self.ncut):
            c = &vm.slots.at[self.cut[2 * i]]
            c.data = NULL
            c.shape[self.cut[2 * i + 1]] = n
        for i in range(self.nkept):
            c = &vm.slots.at[self.kept[3 * i]]
            ow_free(c.buf)
            ow_alias(c, &self.whole[i])
            c.buf, c.cap = self.whole[i].buf, ow_capacity(self.whole[i].buf)
            self.whole[i].buf = NULL
        for i in range(self.ntotals):
            self._finish_total(&vm.slots.at[self.totals[i].slot], &self.totals[i])
        if vm.timing.on:
            for k in range(self.first, self.end):
                ow_note(vm.timing.times, k, self.times[k - self.first])
        return 0

    cdef void _forget(self) noexcept:
        cdef int i
        for i in range(self.nkept):
            ow_free(self.whole[i].buf)
            self.whole[i].buf = NULL
        for i in range(self.ntotals):
            ow_free(self.totals[i].found)
            self.totals[i].found = NULL


cdef bint _can_cut(VM vm, stretch):
    """Return whether steps run in C, without code of users."""
    cdef int k
    for k in range(stretch.first, stretch.end):
        if vm.steps[k].run == NULL or vm.steps[k].raises:
            return False
    return True


def run_in_strips(VM vm, stretches):
    """Let a VM run each Stretch of its Program in strips, where that is worth it."""
    vm.stretches = [Strips(vm, each) for each in stretches if _can_cut(vm, each)] or None
