# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""VM: runs one program in C. ``opwise.linkers.vm`` is the same in Python, and its specification."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals, PyErr_Occurred
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from opwise.linkers.native.arrays cimport PyArray_CheckExact, PyArray_ISWRITEABLE, import_array
from opwise.linkers.native.clock cimport ow_clock
from opwise.linkers.native.decisions cimport Decisions
from opwise.linkers.native.exceptions cimport restore_error, status, take_pending
from opwise.linkers.native.generators cimport restore
from opwise.linkers.native.kinds cimport ow_find_kind, ow_kind
from opwise.linkers.native.objectcode cimport ObjectCode
from opwise.linkers.native.runtime cimport (
    OW_ASSERTION_ERROR,
    OW_CHECKED,
    OW_INDEX_ERROR,
    OW_LINALG_ERROR,
    OW_MEMORY_ERROR,
    OW_PYTHON_ERROR,
    OW_STATIC,
    OW_TOTAL,
    OW_TYPE_ERROR,
    OW_ZERO_DIVISION,
    ow_free,
    ow_is_long,
    ow_look,
    ow_loop,
    ow_slot,
    ow_step,
    ow_watch_begin,
    ow_watch_end,
)
from opwise.linkers.native.signals cimport look_at_signals, raise_interrupt, take_noted
from opwise.linkers.native.slots cimport Arena, Slots, is_read_only, put
from opwise.linkers.native.timing cimport Ranges, Timing, ow_note

import numpy as np

from opwise.linkers.native.generators import saved
from opwise.linkers.native.locks import BUSY

cdef extern from "buffers.h" nogil:
    bint ow_have_buffers()

import_array()


cdef class Runner:
    """What a step may have in place of ``perform`` if it works on the slots of its VM itself."""

    cdef int run(self, VM vm, int k) except -1:
        """Run step ``k`` of a VM."""
        raise NotImplementedError

    cdef int undo(self, ow_step *s) except -1:
        """Put back the old value of a state that the step has advanced in place."""
        raise NotImplementedError


cdef class Stretch:
    """Steps ``first`` to ``end`` of a VM, which may run otherwise than one after the other."""

    cdef int run(self, VM vm) except -1:
        """Run them; return 0 where they have to run as a whole."""
        raise NotImplementedError

    cdef void give_up(self, VM vm) noexcept:
        """Forget a call that does not go on, and its memory, which somebody may be writing to."""


class NotComputed(np.ndarray):
    """Memory for a result that no step has computed yet: an error gives its shape only."""

    @classmethod
    def of(cls, value):
        return value.view(cls) if isinstance(value, np.ndarray) else value


@cython.final
cdef class StepThunk:
    """What a step of a VM is to programs that look for thunks.

    inputs, outputs: one-element lists of values, as the last call left them; None for values whose
    memory was given away. It has an attribute ``cthunk`` if no Python code runs for the Apply.
    """

    cdef readonly object node
    cdef readonly list inputs, outputs
    cdef bint in_c
    lazy = False

    def __init__(self, node, list inputs, list outputs, bint in_c):
        self.node, self.inputs, self.outputs, self.in_c = node, inputs, outputs, in_c

    def __getattr__(self, name):
        if name == "cthunk" and self.in_c:
            return self
        raise AttributeError(f"'StepThunk' object has no attribute {name!r}")

    def __call__(self):
        raise RuntimeError(
            f"{self.node} cannot run alone: call the function, or compile it with linker='vm', "
            "whose thunks can be called"
        )


@cython.final
cdef class Waiting:
    """Calls that run built-in loops until kernels are compiled; see ``kernels.Pending``."""

    cdef void count(self, int64_t ns) noexcept:
        self.ns += ns
        self.calls += 1

    cdef int take(self, VM vm, bint wait) except -1:
        """Use the kernels if they are compiled; wait: until they are."""
        cdef int i
        found = None if self.pending is None else self.pending.take(self.ns, wait)
        if found is None:
            return 0
        for i in range(vm.nsteps):  # no signal handler runs in between
            kernel = found.get(vm.keep[i])
            if kernel is not None:
                address, library = kernel
                vm.steps[i].loop = <ow_loop><uintptr_t>address
                vm.steps[i].ctx = NULL
                vm.keep[i] = library
        self.pending = None
        return 0


@cython.final
cdef class VM:
    """Runs the steps of one Program.

    layouts: of its slots, as ``Slots`` takes them. bound: what runs each step, with the attributes
    of ``opwise.linkers.compiled.Bound``. storages: a one-element list for each slot, of which those
    of inputs and outputs are used.
    on_error: called as (step index, exception, inputs) when a step fails; it raises.
    """

    def __cinit__(self, program, list layouts, list bound, storages, on_error, bint allow_gc=True):
        cdef int i
        cdef Arena arena = Arena()
        self.arena, self.on_error, self.allow_gc = arena, on_error, allow_gc
        self.nsteps, self.commit = len(bound), program.commit
        self.ninputs, self.noutputs = len(program.inputs), len(program.outputs)
        self.destroyed, self.loading = program.destroyed, -1
        self.slots = Slots(layouts, program.parents)
        self.timing, self.waiting = Timing(self.nsteps), Waiting()
        self.input_slot, self.output_slot = arena.ints(program.inputs), arena.ints(program.outputs)
        self.input_storage = [storages[slot] for slot in program.inputs]
        self.output_storage = [storages[slot] for slot in program.outputs]
        starts, flat = [0], []
        for step in program.steps:
            flat.extend(step.dies)
            starts.append(len(flat))
        self.die_start, self.die_slot = arena.ints(starts), arena.ints(flat)
        self.end_slot, self.nends = arena.ints(program.ends), len(program.ends)
        self.steps = <ow_step *>calloc(max(1, self.nsteps), sizeof(ow_step))
        if self.steps == NULL:
            raise MemoryError()
        self.performs, self.nodes, self.keep, self.storages = [], [], [], []
        flags, reads = [], []
        for i, (step, what) in enumerate(zip(program.steps, bound)):
            self._bind(&self.steps[i], step, what, flags, reads)
        self.advancing = arena.ints(program.advancing)
        self.nadvancing = len(program.advancing)
        for i in program.advancing:
            self.steps[i].advances = 1
        self.atomic = self._is_atomic(flags, reads)
        for slot, value in program.constants.items():
            self.slots.take(slot, value)
        if program.choices:
            self.decisions = Decisions(program.choices, program.guards)

    cdef int _bind(self, ow_step *s, step, what, list flags, list reads) except -1:
        """Let a step do what a Bound says."""
        cdef bytes name, params = what.params
        cdef const ow_kind *kind
        cdef void *given
        s.nin, s.nout, s.error = len(step.inputs), len(step.outputs), self.error
        s.in_, s.out = self.slots.pointers(step.inputs), self.slots.pointers(step.outputs)
        self.performs.append(what.perform)
        self.nodes.append(step.node)
        self.keep.append(what.loop)
        self.storages.append(None if what.perform is None else (step.inputs, step.outputs))
        if what.kind is None:
            flags.append(0)
            reads.append(0)
            return 0
        name = what.kind.encode()
        kind = ow_find_kind(name)
        if kind == NULL:
            raise KeyError(f"there is no kind of C step named {what.kind}")
        if len(params) < <Py_ssize_t>kind.params or (params and not kind.params):
            raise TypeError(f"a step of the kind {what.kind} has parameters of {kind.params} "
                            f"bytes, not of {len(params)}")
        s.prep, s.run, s.undo, s.check = kind.prep, kind.run, kind.undo, kind.check
        given = self.arena.block(len(params))
        memcpy(given, PyBytes_AS_STRING(params), len(params))
        s.params = given
        if what.loop is not None:
            s.loop = <ow_loop><uintptr_t>what.loop.address
            s.ctx = <const void *><uintptr_t>what.loop.context
            s.raises = getattr(what.loop, "needs_gil", False)
        if s.raises:
            s.check = NULL
        flags.append(kind.flags & ~(OW_TOTAL | OW_CHECKED) if s.raises else kind.flags)
        reads.append(kind.reads)
        return 0

    cdef list outputs_of(self, int k):
        """Return the slots that a step writes."""
        cdef int i
        return [self.slots.of(self.steps[k].out[i]) for i in range(self.steps[k].nout)]

    cdef bint _is_atomic(self, list flags, list reads):
        """Return whether the steps that overwrite inputs cannot fail once they are all checked.

        The first of them may fail before it has written anything. What a step reads to prepare or
        check itself must be known before any of them runs.
        """
        cdef int k, i, first
        cdef ow_step *s
        late = set()
        for k in range(self.commit, self.nsteps):
            s = &self.steps[k]
            first = reads[k]
            if not flags[k] & OW_STATIC:
                return False
            if first and any(self.slots.of(s.in_[i]) in late for i in range(first, s.nin)):
                return False
            if not flags[k] & OW_TOTAL and s.check == NULL:
                if k > self.commit or not flags[k] & OW_CHECKED:
                    return False
            late.update([self.slots.of(s.out[i]) for i in range(s.nout)])
        return True

    def __dealloc__(self):
        cdef int i
        if self.steps != NULL:
            for i in range(self.nsteps):
                ow_free(self.steps[i].scratch)
        free(self.steps)

    # --- running -------------------------------------------------------------------------------

    cdef int _run_long(self, int k) except -1:
        """Run a long step without the GIL, and handle signals meanwhile; as ``_attempt``.

        Signals wait while inputs are overwritten of which there is no copy.
        """
        cdef ow_step *s = &self.steps[k]
        cdef int rc, stopped
        cdef bint interruptible = not (self.atomic and k >= self.commit)
        cdef ow_look look = NULL
        if interruptible:
            look = look_at_signals
        with nogil:
            ow_watch_begin(look)
            rc = s.run(s)
            stopped = ow_watch_end()
        if s.raises and PyErr_Occurred() != NULL:
            self._fail(k, take_pending())
        if stopped:
            raise_interrupt()
        if rc == 0 and interruptible:
            PyErr_CheckSignals()
        return rc

    cdef int _perform(self, int k) except -1:
        """Call ``perform`` of a step on Python values."""
        perform = self.performs[k]
        if type(perform) is ObjectCode:
            return self._run_objects(k, <ObjectCode>perform)
        if isinstance(perform, Runner):
            return (<Runner>perform).run(self, k)
        return self.perform_in_python(k, perform)

    cdef int perform_in_python(self, int k, perform) except -1:
        """Call a function of (Apply, inputs, storages of outputs)."""
        cdef int i
        ins, outs = <tuple>self.storages[k]
        inputs = [self.slots.value(i) for i in ins]
        storage = [[None] for _ in outs]
        perform(self.nodes[k], inputs, storage)
        for position, (i, result) in enumerate(zip(outs, storage)):
            self.accept(k, position, i, result[0])
        return 0

    cdef int _run_objects(self, int k, ObjectCode code) except -1:
        """Run the compiled code of a step on Python values."""
        cdef ow_step *s = &self.steps[k]
        cdef int i
        for i in range(code.nin):
            code.put(i, self.slots.value(self.slots.of(s.in_[i])))
        for i in range(code.nin, code.nin + code.nout):
            if self.allow_gc or not code.is_free(i):
                code.put(i, None)
        code.run()
        for i in range(code.nout):
            self.accept(k, i, self.slots.of(s.out[i]), code.output(i))
        if self.allow_gc:
            code.forget()
        return 0

    cdef int accept(self, int k, int position, int i, object value) except -1:
        """Let slot ``i`` hold what step ``k`` computed as its output number ``position``."""
        cdef bint is_new = self.slots.at[i].buf == NULL
        if is_new and PyArray_CheckExact(value) and PyArray_ISWRITEABLE(value):
            return self.slots.load(i, value)
        if value is None and self.slots.at[i].typenum >= 0:
            raise ValueError(f"{self.nodes[k].op} did not compute its output")
        if is_read_only(value) and not self.nodes[k].op.view_map.get(position):
            value = np.array(value)  # what comes after may overwrite it
        self.slots.give_up(i)
        return self.slots.take(i, value)

    cdef _check_inputs(self, int k):
        cdef ow_step *s = &self.steps[k]
        cdef int i
        for i in range(s.nin):
            if (
                s.in_[i].data == NULL
                and s.in_[i].typenum >= 0
                and not self.nodes[k].op.accepts_none
            ):
                self._fail(k, ValueError("expected an ndarray, not None"))

    cdef object exception(self, int rc, int k=-1):
        if rc == OW_PYTHON_ERROR:
            return take_noted()
        message = self.error.decode(errors="replace")
        if rc == OW_ASSERTION_ERROR:
            op = self.nodes[k].op
            return op.failure() if hasattr(op, "failure") else AssertionError(message)
        if rc == OW_INDEX_ERROR:
            return IndexError(message)
        if rc == OW_TYPE_ERROR:
            return TypeError(message)
        if rc == OW_MEMORY_ERROR:
            return MemoryError(message)
        if rc == OW_ZERO_DIVISION:
            return ZeroDivisionError(message)
        if rc == OW_LINALG_ERROR:
            return np.linalg.LinAlgError(message)
        return ValueError(message)

    cdef _fail(self, int k, exception):
        cdef ow_step *s = &self.steps[k]
        cdef int i
        inputs = []
        for i in range(s.nin):
            value = self.slots.value(self.slots.of(s.in_[i]))
            if self.preparing and self._is_prepared(s.in_[i], k):
                value = NotComputed.of(value)
            inputs.append(value)
        self.preparing = False
        self.on_error(k, exception, inputs)
        raise exception

    cdef bint _is_prepared(self, ow_slot *slot, int k) noexcept:
        """Return whether a step before ``k`` has memory for a result in a slot, and did not run."""
        cdef int j, i
        for j in range(self.commit, k):
            for i in range(self.steps[j].nout):
                if self.steps[j].out[i] == slot:
                    return True
        return False

    cdef int _load_inputs(self) except -1:
        cdef int i
        self.careful = self.preparing = False
        for i in range(self.ninputs):
            self.loading = i
            self.careful |= self.slots.load(
                self.input_slot[i],
                <object>PyList_GET_ITEM(<list>PyList_GET_ITEM(self.input_storage, i), 0))
        self.loading = -1
        if self.commit < self.nsteps:
            for i in self.destroyed:
                value = <object>self.slots.at[i].owner
                if is_read_only(value):
                    self.slots.take(i, np.array(value))
        for i in range(self.nadvancing):
            self._load_advancing(&self.steps[self.advancing[i]])
        return 0

    cdef int _load_advancing(self, ow_step *s) except -1:
        """Prepare a step that may write the new value of a state over the old one."""
        cdef int i = self.slots.of(s.in_[0])
        s.advanced = 0
        value = <object>s.in_[0].owner if s.in_[0].owner != NULL else None
        if is_read_only(value):
            self.slots.take(i, np.array(value))
        return 0

    cdef void _undo(self) noexcept:
        """Put back the old values of states that a failed call has advanced in place."""
        cdef int i, k
        for i in range(self.nadvancing - 1, -1, -1):
            k = self.advancing[i]
            if not self.steps[k].advanced:
                continue
            self.steps[k].advanced = 0
            if self.steps[k].undo != NULL:
                self.steps[k].undo(&self.steps[k])
            else:
                (<Runner>self.performs[k]).undo(&self.steps[k])

    cdef int attempt(self, int k, bint prepare, bint execute) except -1:
        """Run one step that runs in C; return the number of its error, 0 if there is none."""
        return _attempt(self, k, prepare, execute)

    cdef bint release_dead(self, int k) noexcept:
        """Release what nobody reads after step ``k``; return whether that may have taken long."""
        return _release_dead(self, k)

    cdef int _run_steps(self) except -1:
        self.run_range(0, self.commit, True)
        if self.commit < self.nsteps:
            self._run_committed()
        return 0

    cdef int run_range(self, int first, int end, bint prepare) except -1:
        """Run some steps, in strips where that is worth it."""
        if self.stretches is not None:
            for each in self.stretches:
                stretch = <Stretch>each
                if stretch.first >= first and stretch.end <= end:
                    self._run_whole(first, stretch.first, prepare)
                    if not stretch.run(self):
                        self._run_whole(stretch.first, stretch.end, prepare)
                    first = stretch.end
        return self._run_whole(first, end, prepare)

    cdef int _run_whole(self, int first, int end, bint prepare) except -1:
        """Run some steps. Timed, marked and plain runs are loops of their own, without tests."""
        cdef bint timed = self.timing.on, marked = self.ranges is not None
        if self.decisions is not None:
            if first == 0:
                self.decisions.forget()
            return _loop(self, first, end, prepare, timed, marked, True)
        if marked:
            return _loop(self, first, end, prepare, timed, True, False)
        if timed:
            return _loop(self, first, end, prepare, True, False, False)
        return _loop(self, first, end, prepare, False, False, False)

    cdef void _skip(self, int k) noexcept:
        """Leave the outputs of a step without values."""
        cdef ow_step *s = &self.steps[k]
        cdef int i
        for i in range(s.nout):
            self.slots.release(self.slots.of(s.out[i]))
            s.out[i].data = NULL
        _release_dead(self, k)

    cdef int _run_committed(self) except -1:
        """Run the steps that overwrite inputs: all of them, or none as far as callers can see."""
        cdef int k
        copies = None
        if self.atomic:
            if self.decisions is not None and self.commit == 0:
                self.decisions.forget()
            self.preparing = True
            for k in range(self.commit, self.nsteps):
                if _needs(self, k):
                    _step(self, k, True, False)
                    self._check(k)
            self.preparing = False
        else:
            copies = [(i, saved(self.slots.array(i))) for i in self.destroyed]
        try:
            self.run_range(self.commit, self.nsteps, not self.atomic)
        except BaseException:
            if copies is not None:
                self._put_back(copies)
            raise
        return 0

    cdef inline int _check(self, int k) except -1:
        """Let a prepared step fail now if it would later."""
        cdef ow_step *s = &self.steps[k]
        cdef int rc
        if s.check != NULL:
            rc = s.check(s)
            if rc != 0:
                self._fail(k, self.exception(rc, k))
            s.checked = True
        return 0

    cdef _put_back(self, list copies):
        """Give inputs the values that they had before: in place, or other objects as copies."""
        cdef int j
        for i, before in copies:
            if restore(self.slots.array(i), before):
                continue
            for j in range(self.ninputs):
                if self.input_slot[j] == i:
                    (<list>self.input_storage[j])[0] = before

    cdef int _finish(self) except -1:
        """Hand the outputs over and forget the inputs."""
        cdef int i
        for i in range(self.noutputs):
            put(<list>PyList_GET_ITEM(self.output_storage, i),
                self.slots.value(self.output_slot[i]))
        self._forget()
        return 0

    cdef void _forget(self) noexcept:
        cdef int i
        for i in range(self.nends):
            self.slots.release(self.end_slot[i])
        for i in range(self.ninputs):
            self.slots.release(self.input_slot[i])

    cdef int run(self) except -1:
        """Run the program on what the input storages hold; leave results in the output storages."""
        if self.running:
            raise RuntimeError(BUSY)
        self.running = True
        if (<status>_run_once)(<PyObject *>self) != 0:
            error = take_pending()
            self.abandon()
            self._end()
            restore_error(error)
        self._end()
        return 0

    cdef inline void _end(self) noexcept:
        """End a call, whether it has failed or not."""
        if self.ranges is not None:
            self.ranges.close_all()
        self.running = False

    cdef int _run_once(self) except -1:
        """Load inputs, run all steps, hand outputs over; count the call if it waits for kernels."""
        cdef int64_t start = 0
        cdef bint waits = self.waiting.pending is not None
        if waits:
            self.waiting.take(self, False)
            waits = self.waiting.pending is not None
            start = ow_clock()
        if self.ranges is not None:
            self.ranges.open_call()
        self._load_inputs()
        if self.nsteps and not ow_have_buffers():
            self._fail(0, MemoryError("could not allocate working memory of this thread"))
        if self.timing.on and not self.timing.inside:
            self._run_timed()
        else:
            self._run_steps()
        self._finish()
        if waits:
            self.waiting.count(ow_clock() - start)
        return 0

    def expect_kernels(self, pending):
        """Run built-in loops until kernels are compiled; see ``kernels.Pending``."""
        self.waiting.pending = pending

    def wait_for_kernels(self):
        """Use compiled kernels from the next call on, once the compiler is done."""
        if self.running:
            raise RuntimeError(BUSY)
        self.running = True
        try:
            self.waiting.take(self, True)
        finally:
            self.running = False

    @property
    def built_in_calls(self):
        """How many calls ran built-in loops while kernels were compiled."""
        return self.waiting.calls

    cdef int _run_timed(self) except -1:
        """Run all steps of a call, and count it."""
        cdef int64_t start
        self.timing.begin_call()
        start = ow_clock()
        self._run_steps()
        self.timing.end_call(start, ow_clock() - start)
        return 0

    cdef void abandon(self) noexcept:
        """Forget every value of a failed call; memory stays."""
        cdef int i
        self._undo()
        for i in range(self.nsteps):
            for j in range(self.steps[i].nout):
                self.slots.release(self.slots.of(self.steps[i].out[j]))
        self._forget()

    def __call__(self):
        self.run()

    cdef forget_call(self):
        """Forget a call of a thread that a forked process does not have.

        That thread may have been writing to any memory of the VM, so all of it is given up.
        """
        cdef int i
        if not self.running:
            return
        for each in self.stretches or ():
            (<Stretch>each).give_up(self)
        for i in range(self.slots.count):
            self.slots.at[i].buf = NULL
            self.slots.at[i].cap = 0
        for i in range(self.nsteps):
            self.steps[i].scratch = NULL
            self.steps[i].scratch_cap = 0
        self.abandon()
        if self.ranges is not None:
            self.ranges.count = 0
        self.running = False

    cdef void give_back_blocks(self) noexcept:
        """Give back large blocks of memory."""
        cdef int i
        for i in range(self.slots.count):
            if self.slots.at[i].cap > 65536:
                self.slots.give_up(i)

    def free(self):
        """Give back the memory kept between calls."""
        cdef int i
        if self.running:
            raise RuntimeError("The function is running: its memory cannot be freed")
        for code in self.performs:
            if type(code) is ObjectCode:
                (<ObjectCode>code).forget()
        for i in range(self.slots.count):
            self.slots.give_up(i)
        for i in range(self.nsteps):
            ow_free(self.steps[i].scratch)
            self.steps[i].scratch = NULL
            self.steps[i].scratch_cap = 0

    def kept_bytes(self):
        """Return the bytes of memory kept between calls."""
        cdef int i
        cdef int64_t total = 0
        for i in range(self.slots.count):
            total += self.slots.at[i].cap
        for i in range(self.nsteps):
            total += self.steps[i].scratch_cap
        return total

    @property
    def storage_map(self):
        """{variable: [value]} after a call; None for values whose memory was given away.

        Without allow_gc all values of the last call are there but those that outputs show.
        """
        cdef int j, k
        if self.running:
            raise RuntimeError("The function is running: its values cannot be read")
        found = {}
        for k in range(self.nsteps):
            s, node = &self.steps[k], self.nodes[k]
            for j in range(s.nin):
                found[node.inputs[j]] = [self._left(self.slots.of(s.in_[j]))]
            for j in range(s.nout):
                found[node.outputs[j]] = [self._left(self.slots.of(s.out[j]))]
        return found

    @property
    def call_counts(self):
        """How often each step ran, if it is timed."""
        return self.timing.call_counts()

    @property
    def call_times(self):
        """How many seconds each step ran in all, if it is timed."""
        return self.timing.call_times()

    @property
    def thunks(self):
        """One object for each step, with what the last call left in its inputs and outputs.

        They show what runs, as Theano's thunks do; the VM runs all steps itself.
        """
        storages = self.storage_map
        return [
            StepThunk(
                node, [storages[v] for v in node.inputs], [storages[v] for v in node.outputs],
                perform is None or isinstance(perform, (ObjectCode, Runner)),
            )
            for node, perform in zip(self.nodes, self.performs)
        ]

    cdef object _left(self, int i):
        """Return the value that a call left in a slot, or None."""
        return self.slots.value(i) if self.slots.holder(i) >= 0 else None

    # --- what a profile reads, and ranges for system profilers ----------------------------------

    def layouts(self):
        """Return (shape, strides in bytes) by slot, as of the last call; None for no array."""
        cdef int i, d
        cdef ow_slot *c
        found = []
        for i in range(self.slots.count):
            c = &self.slots.at[i]
            if c.typenum < 0:
                found.append(None)
                continue
            found.append((tuple([c.shape[d] for d in range(c.ndim)]),
                          tuple([c.strides[d] for d in range(c.ndim)])))
        return found

    def scratch_bytes(self):
        """Return the bytes of memory that each step keeps for itself."""
        cdef int i
        return [self.steps[i].scratch_cap for i in range(self.nsteps)]

    def algorithms(self):
        """Return (algorithm, why) of the last run of each step; ("", "") where there is one."""
        cdef int i
        cdef const char *algorithm
        cdef const char *why
        found = []
        for i in range(self.nsteps):
            algorithm, why = self.steps[i].algorithm, self.steps[i].why
            # a step that runs in another thread may have set one of them
            if algorithm == NULL or why == NULL:
                found.append(("", ""))
            else:
                found.append((algorithm.decode(), why.decode()))
        for each in self.stretches or ():
            stretch = <Stretch>each
            for i in range(stretch.first, stretch.end if stretch.rows else 0):
                if found[i] == ("", ""):
                    found[i] = "strips", f"{stretch.rows} of {stretch.length} rows at once"
        return found

    def strip_rows(self):
        """Return {slot: (rows, of how many)} of results of which only so many rows existed at once
        in the last call."""
        found = {}
        for each in self.stretches or ():
            stretch = <Stretch>each
            if stretch.rows:
                rows = stretch.rows, stretch.length
                found.update(dict.fromkeys(stretch.never_whole, rows))
        return found

    def start_marking(self, push, pop, bytes label, list labels):
        """Show each call and step to a system profiler from now on; see ``Ranges``."""
        self.ranges = Ranges(push, pop, label, labels)

    def repeats_inside(self, int k):
        """Return whether step ``k`` runs the VM of the graph inside its Op."""
        perform = self.performs[k]
        if isinstance(perform, Runner):
            return (<Runner>perform).repeats
        return perform is not None and type(perform) is not ObjectCode


cdef int _run_once(VM vm) except -1:
    return vm._run_once()


# --- what every step passes: methods that a .pxd declares are not inline --------------------------

cdef inline int _step(VM vm, int k, bint prepare, bint execute) except -1:
    """Run one step; on failure raise what ``on_error`` makes of it."""
    cdef int rc
    if vm.careful:
        vm._check_inputs(k)
    if vm.steps[k].run == NULL:
        if execute:
            try:
                vm._perform(k)
            except BaseException as e:
                vm._fail(k, e)
        return 0
    rc = _attempt(vm, k, prepare, execute)
    if rc != 0:
        vm._fail(k, vm.exception(rc, k))
    return 0


cdef inline int _attempt(VM vm, int k, bint prepare, bint execute) except -1:
    """Run one step that runs in C; return the number of its error, 0 if there is none."""
    cdef ow_step *s = &vm.steps[k]
    cdef int rc = s.prep(s) if prepare else 0
    if rc == 0 and execute:
        if ow_is_long(s):
            return vm._run_long(k)
        rc = s.run(s)
        if s.raises and PyErr_Occurred() != NULL:
            vm._fail(k, take_pending())
    return rc


cdef inline int _loop(VM vm, int first, int end, bint prepare, bint timed, bint marked,
                      bint lazy) except -1:
    cdef int k
    cdef int64_t before, now
    before = ow_clock() if timed else 0
    for k in range(first, end):
        if lazy and not _needs(vm, k):
            vm._skip(k)
            continue
        if marked:
            vm.ranges.open(k)
        if marked and timed:
            before = ow_clock()
        _step(vm, k, prepare, True)
        if timed:
            now = ow_clock()
            ow_note(vm.timing.times, k, now - before)
            before = now
        if marked:
            vm.ranges.close()
        # the system takes long to take back large memory: not in the time of the next step
        if _release_dead(vm, k) and timed:
            before = ow_clock()
        if k & 63 == 63 and not (vm.atomic and k >= vm.commit):
            PyErr_CheckSignals()
    return 0


cdef inline bint _release_dead(VM vm, int k) noexcept:
    """Release what nobody reads after step ``k``; return whether that may have taken long."""
    cdef int j, i
    cdef ow_slot *c
    cdef bint freed = False
    for j in range(vm.die_start[k], vm.die_start[k + 1]):
        i = vm.die_slot[j]
        c = &vm.slots.at[i]
        if c.owner != NULL:
            vm.slots.release(i)
            freed = True
        # small buffers stay for the next call: there is nothing to gain
        if vm.allow_gc and c.cap > 65536:
            vm.slots.give_up(i)
            freed = True
    return freed


cdef inline bint _needs(VM vm, int k) noexcept:
    return vm.decisions is None or vm.decisions.needs(k, vm.slots.at)
