# cython: language_level=3
# The VM, and what its steps may have in place of kinds of C steps.

cimport cython
from libc.stdint cimport int64_t

from opwise.linkers.native.decisions cimport Decisions
from opwise.linkers.native.objectcode cimport ObjectCode
from opwise.linkers.native.runtime cimport ow_slot, ow_step
from opwise.linkers.native.slots cimport Arena, Slots
from opwise.linkers.native.timing cimport Ranges, Timing


cdef class VM


cdef class Runner:
    # whether it runs the VM of the graph inside its Op
    cdef bint repeats

    cdef int run(self, VM vm, int k) except -1
    cdef int undo(self, ow_step *s) except -1


cdef class Stretch:
    cdef int first, end
    # how many rows a strip had in the last call, 0 if the steps ran as a whole; and all strips
    cdef int64_t rows, length
    # the slots of results that never exist as a whole
    cdef tuple never_whole

    cdef int run(self, VM vm) except -1
    cdef void give_up(self, VM vm) noexcept


@cython.final
cdef class Waiting:
    cdef object pending
    # nanoseconds of these calls
    cdef int64_t ns
    cdef readonly int64_t calls

    cdef void count(self, int64_t ns) noexcept
    cdef int take(self, VM vm, bint wait) except -1


@cython.final
cdef class VM:
    cdef Slots slots
    cdef ow_step *steps
    cdef int nsteps, ninputs, noutputs, nends, nadvancing, commit
    cdef bint running, careful, atomic
    # whether steps that overwrite inputs are prepared, and none of them has run
    cdef bint preparing
    # the input whose value is being loaded, -1 for none
    cdef int loading
    cdef char error[400]
    cdef int *input_slot
    cdef int *output_slot
    cdef int *die_start
    cdef int *die_slot
    cdef int *end_slot
    cdef int *advancing
    cdef list input_storage, output_storage, performs, keep, storages
    cdef tuple destroyed
    # the Applys in the order in which they run
    cdef readonly list nodes
    cdef object on_error
    cdef Arena arena
    cdef public bint allow_gc
    cdef readonly Timing timing
    cdef Waiting waiting
    # where there are some: decisions between branches, ranges for system profilers, and the steps
    # that may run in strips
    cdef Decisions decisions
    cdef Ranges ranges
    cdef list stretches

    cdef int _bind(self, ow_step *s, step, what, list flags, list reads) except -1
    cdef list outputs_of(self, int k)
    cdef bint _is_atomic(self, list flags, list reads)
    cdef int attempt(self, int k, bint prepare, bint execute) except -1
    cdef int _run_long(self, int k) except -1
    cdef int _perform(self, int k) except -1
    cdef int perform_in_python(self, int k, perform) except -1
    cdef int _run_objects(self, int k, ObjectCode code) except -1
    cdef int accept(self, int k, int position, int i, object value) except -1
    cdef _check_inputs(self, int k)
    cdef object exception(self, int rc, int k=*)
    cdef _fail(self, int k, exception)
    cdef bint _is_prepared(self, ow_slot *slot, int k) noexcept
    cdef int _load_inputs(self) except -1
    cdef int _load_advancing(self, ow_step *s) except -1
    cdef void _undo(self) noexcept
    cdef bint release_dead(self, int k) noexcept
    cdef int _run_steps(self) except -1
    cdef int run_range(self, int first, int end, bint prepare) except -1
    cdef int _run_whole(self, int first, int end, bint prepare) except -1
    cdef void _skip(self, int k) noexcept
    cdef int _run_committed(self) except -1
    cdef int _check(self, int k) except -1
    cdef _put_back(self, list copies)
    cdef int _finish(self) except -1
    cdef void _forget(self) noexcept
    cdef int run(self) except -1
    cdef void _end(self) noexcept
    cdef int _run_once(self) except -1
    cdef int _run_timed(self) except -1
    cdef void abandon(self) noexcept
    cdef forget_call(self)
    cdef void give_back_blocks(self) noexcept
    cdef object _left(self, int i)
