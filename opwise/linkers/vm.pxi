# VM: runs one program in C. Included by opwise_c.pyx.

cdef dict _DESCR = {}


cdef object _descr(int typenum):
    cdef object d = _DESCR.get(typenum)
    if d is None:
        d = _DESCR[typenum] = cnp.PyArray_DescrFromType(typenum)
    return d


cdef inline bint _read_only(object value):
    return isinstance(value, cnp.ndarray) and not PyArray_ISWRITEABLE(value)


cdef class VM
cdef class Stretch


def _address(function):
    """Return the address of a C function of ctypes."""
    import ctypes

    return ctypes.cast(function, ctypes.c_void_p).value


cdef class Runner:
    """What a step may have in place of ``perform`` if it works on the slots of its VM itself."""

    cdef int run(self, VM vm, int k) except -1:
        """Run step ``k`` of a VM."""
        raise NotImplementedError

    cdef int undo(self, ow_step *s) except -1:
        """Put back the old value of a state that the step has advanced in place."""
        raise NotImplementedError


cdef inline void _put(list storage, object value) noexcept:
    """Put a value into a storage, a list of one."""
    cdef PyObject *old = PyList_GET_ITEM(storage, 0)
    Py_INCREF(value)
    PyList_SET_ITEM(storage, 0, value)
    Py_DECREF(<object>old)


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
cdef class VM:
    """Runs the steps of one program.

    slots: a list of (type number or -1, ndim, itemsize, is a scalar). steps: a list of (kind or
    None, input slots, output slots, struct of parameters, loop address, context address, what to keep alive,
    perform, node). A step without a kind calls ``perform(node, inputs, storage)``, or runs the
    ObjectCode or Runner that it has in place of perform.
    inputs, outputs: (slot, one-element list) pairs. constants: {slot: value}. parents: for each
    slot the slot whose memory it may share, or -1. dies: for each step the slots that nobody reads
    later; ends: those that go when the results are handed over. commit: the first step after which
    an input may be overwritten; destroyed: the input slots that steps from there on overwrite.
    on_error: called as (step index, exception, inputs) when a step fails; it raises.
    advancing: the steps that may write the new value of a state, their first input, over the old
    one; a call that fails puts it back.
    choices: (before which step, slot of the condition, guard, alternative of a true condition, of a
    false one) of each decision, in order; guards: by step; stretches: (Stretch of the Program, its
    totals as ``Stretch`` takes them); see ``opwise.linkers.program``.
    """

    cdef ow_slot *slots
    cdef ow_step *steps
    cdef int nslots, nsteps, ninputs, noutputs, nends, nadvancing, commit
    cdef bint running, careful, atomic
    # whether steps that overwrite inputs are prepared, and none of them has run
    cdef bint preparing
    # the input whose value is being loaded, -1 for none
    cdef int loading
    cdef char error[400]
    cdef int *input_slot
    cdef int *output_slot
    cdef int *parent
    cdef int *die_start
    cdef int *die_slot
    cdef int *end_slot
    cdef int *advancing
    cdef list input_storage, output_storage, performs, keep, storages, destroyed
    # the Applys in the order in which they run
    cdef readonly list nodes
    cdef object on_error
    cdef void **memory
    cdef int nmemory
    cdef public bint allow_gc
    # decisions between branches, where there are some: the guards of steps, the alternatives that
    # hold, and the next decision
    cdef ow_choice *choices
    cdef uint64_t *guards
    cdef uint64_t *holds
    cdef int nchoices, nwords, next_choice
    # timing, where it is asked for
    cdef readonly bint timed
    cdef bint ignoring
    cdef ow_timing *times
    # what the counters of steps are in, if it is memory of somebody else
    cdef readonly object counters
    cdef readonly int64_t calls, total_ns, first_ns
    # whether an Apply of another program runs this one; its loop counts its runs and their steps
    cdef public bint inside
    cdef readonly int64_t loop_steps
    # the VMs of loops in this program; {row of a kept call: the times of their steps in it}
    cdef list loops
    cdef dict kept_inside
    # ranges for system profilers, where they are asked for
    cdef bint marked
    cdef ow_push push
    cdef ow_pop pop
    cdef bytes call_label
    cdef list labels
    # kernels that calls do not have yet, and run built-in loops instead; None if there are none
    cdef object pending
    # nanoseconds of the calls that ran built-in loops instead, and how many there were
    cdef int64_t built_in_ns
    cdef readonly int64_t built_in_calls
    cdef object keep_marks
    cdef int open_ranges
    # the steps that may run in strips; None if there are none
    cdef list stretches

    def __cinit__(self, list slots, list steps, list inputs, list outputs, dict constants,
                  list parents, list dies, list ends, int commit, list destroyed, on_error,
                  bint allow_gc=True, tuple choices=(), tuple guards=(), tuple advancing=(),
                  tuple stretches=()):
        cdef int i
        cdef ow_step *s
        cdef ow_slot *c
        self.nslots, self.nsteps = len(slots), len(steps)
        self.ninputs, self.noutputs = len(inputs), len(outputs)
        self.commit, self.on_error, self.allow_gc = commit, on_error, allow_gc
        self.destroyed, self.loading = destroyed, -1
        self.loops, self.kept_inside = [], {}
        self.slots = <ow_slot *>calloc(max(1, self.nslots), sizeof(ow_slot))
        self.steps = <ow_step *>calloc(max(1, self.nsteps), sizeof(ow_step))
        self.nmemory = 0
        self.memory = <void **>calloc(12 + len(choices) * 3 + 10 * len(stretches)
                                      + 4 * max(1, self.nsteps),
                                      sizeof(void *))
        if not (self.slots and self.steps and self.memory):
            raise MemoryError()
        self.input_slot = self._ints([slot for slot, _ in inputs])
        self.output_slot = self._ints([slot for slot, _ in outputs])
        self.parent = self._ints(parents)
        self.input_storage = [storage for _, storage in inputs]
        self.output_storage = [storage for _, storage in outputs]
        starts, flat = [0], []
        for dead in dies:
            flat.extend(dead)
            starts.append(len(flat))
        self.die_start, self.die_slot = self._ints(starts), self._ints(flat)
        self.end_slot, self.nends = self._ints(ends), len(ends)
        for i in range(self.nslots):
            c = &self.slots[i]
            c.typenum, c.ndim, c.itemsize, c.scalar = slots[i]
        self.performs, self.nodes, self.keep, self.storages = [], [], [], []
        flags, reads = [], []
        for i in range(self.nsteps):
            kind, ins, outs, params, loop, ctx, keep, perform, node = steps[i]
            s = &self.steps[i]
            s.nin, s.nout = len(ins), len(outs)
            s.in_, s.out = self._slots(ins), self._slots(outs)
            s.error = self.error
            self.performs.append(perform)
            self.nodes.append(node)
            self.keep.append(keep)
            self.storages.append(None if perform is None else (list(ins), list(outs)))
            if kind is None:
                flags.append(0)
                reads.append(0)
                continue
            self._set_kind(s, kind, params, flags, reads)
            s.raises = getattr(keep, "needs_gil", False)
            if s.raises:
                flags.append(flags.pop() & ~(OW_TOTAL | OW_CHECKED))
                s.check = NULL
            s.loop = <ow_loop><uintptr_t>loop
            s.ctx = <const void *><uintptr_t>ctx
        self.advancing, self.nadvancing = self._ints(advancing), len(advancing)
        for i in advancing:
            self.steps[i].advances = 1
        self.atomic = self._is_atomic(flags, reads)
        for slot, value in constants.items():
            self._take(slot, value)
        if choices:
            self._set_choices(choices, guards)
        found = [(stretch, totals) for stretch, totals in stretches if self._can_cut(stretch)]
        if found:
            self.stretches = [Stretch(self, stretch, totals) for stretch, totals in found]

    cdef bint _can_cut(self, stretch):
        """Return whether steps run in C, without code of users."""
        cdef int k
        for k in range(stretch.first, stretch.end):
            if self.steps[k].run == NULL or self.steps[k].raises:
                return False
        return True

    cdef list _outputs_of(self, int k):
        """Return the slots that a step writes."""
        cdef int i
        return [self.steps[k].out[i] - self.slots for i in range(self.steps[k].nout)]

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
            if first and any((s.in_[i] - self.slots) in late for i in range(first, s.nin)):
                return False
            if not flags[k] & OW_TOTAL and s.check == NULL:
                if k > self.commit or not flags[k] & OW_CHECKED:
                    return False
            late.update([s.out[i] - self.slots for i in range(s.nout)])
        return True

    cdef _set_choices(self, tuple choices, tuple guards):
        cdef int i
        cdef ow_choice *c
        self.nwords = max([guard.bit_length() for guard in guards]) + 63 >> 6
        self.guards = self._bits(guards)
        self.holds = self._bits([0])
        self.choices = <ow_choice *>self._block(sizeof(ow_choice) * len(choices))
        for i, (at, condition, guard, first, second) in enumerate(choices):
            c = &self.choices[i]
            c.at, c.condition = at, condition
            c.guard, c.first, c.second = (self._bits([guard]), self._bits([first]),
                                          self._bits([second]))
        self.nchoices = len(choices)

    cdef uint64_t *_bits(self, sets):
        """Return sets of bits, each in as many words as the largest guard takes."""
        cdef uint64_t *p = <uint64_t *>self._block(sizeof(uint64_t) * self.nwords * len(sets))
        cdef int i, j
        for i, bits in enumerate(sets):
            for j in range(self.nwords):
                p[i * self.nwords + j] = bits >> 64 * j & 0xFFFFFFFFFFFFFFFF
        return p

    cdef int _set_kind(self, ow_step *s, str kind, bytes params, list flags, list reads) except -1:
        """Let a step be of a kind. params: its parameters, as ``stepparams.pack`` gives them."""
        cdef bytes name = kind.encode()
        cdef const ow_kind *k = ow_find_kind(name)
        cdef void *given
        if k == NULL:
            raise KeyError(f"there is no kind of C step named {kind}")
        if len(params) < k.params or (params and not k.params):
            raise TypeError(f"a step of the kind {kind} has parameters of {k.params} bytes, "
                            f"not of {len(params)}")
        s.prep, s.run, s.undo, s.check = k.prep, k.run, k.undo, k.check
        given = self._block(len(params))
        memcpy(given, PyBytes_AS_STRING(params), len(params))
        s.params = given
        flags.append(k.flags)
        reads.append(k.reads)
        return 0

    cdef void *_block(self, size_t size):
        cdef void *p = calloc(1, size if size else 1)
        if p == NULL:
            raise MemoryError()
        self.memory[self.nmemory] = p
        self.nmemory += 1
        return p

    cdef int *_ints(self, values):
        cdef int *p = <int *>self._block(sizeof(int) * len(values))
        cdef int i
        for i in range(len(values)):
            p[i] = values[i]
        return p

    cdef ow_slot **_slots(self, indices):
        cdef ow_slot **p = <ow_slot **>self._block(sizeof(ow_slot *) * len(indices))
        cdef int i
        for i in range(len(indices)):
            p[i] = &self.slots[<int>indices[i]]
        return p

    def __dealloc__(self):
        cdef int i
        if self.slots != NULL:
            for i in range(self.nslots):
                self._release(i)
                ow_free(self.slots[i].buf)
        if self.steps != NULL:
            for i in range(self.nsteps):
                ow_free(self.steps[i].scratch)
        if self.memory != NULL:
            for i in range(self.nmemory):
                free(self.memory[i])
        free(self.memory)
        free(self.slots)
        free(self.steps)
        ow_timing_free(self.times)

    # --- values between slots and Python --------------------------------------------------------

    cdef inline void _release(self, int i) noexcept:
        """Release the Python object that a slot holds."""
        cdef ow_slot *c = &self.slots[i]
        cdef PyObject *owner = <PyObject *>c.owner
        if owner != NULL:
            c.owner = NULL
            Py_DECREF(<object>owner)

    cdef inline void _own(self, int i, object value):
        """Let a slot keep a Python object alive."""
        self._release(i)
        Py_INCREF(value)
        self.slots[i].owner = <void *>value

    cdef int _load(self, int i, object value) except -1:
        """Point an input slot to ``value`` and keep it alive: its storage may change."""
        cdef ow_slot *c = &self.slots[i]
        cdef int d
        if (
            c.typenum >= 0
            and PyArray_CheckExact(value)
            and cnp.PyArray_TYPE(<cnp.ndarray>value) == c.typenum
            and cnp.PyArray_NDIM(<cnp.ndarray>value) == c.ndim
            and PyArray_ISBEHAVED_RO(<cnp.ndarray>value)
        ):
            c.data = <char *>cnp.PyArray_DATA(<cnp.ndarray>value)
            for d in range(c.ndim):
                c.shape[d] = cnp.PyArray_DIM(<cnp.ndarray>value, d)
                c.strides[d] = cnp.PyArray_STRIDE(<cnp.ndarray>value, d)
            self._own(i, value)
            return 0
        if value is None or c.typenum < 0:
            c.data = NULL
            if c.typenum >= 0:
                self.careful = True
            self._own(i, value)
            return 0
        self._take(i, value)
        return 0

    cdef int _take(self, int i, object value) except -1:
        """Let a slot hold ``value`` and keep it alive; an error if it does not fit the slot."""
        cdef ow_slot *c = &self.slots[i]
        cdef cnp.ndarray a
        cdef int d
        if c.typenum < 0:
            self._own(i, value)
            return 0
        if c.scalar or isinstance(value, np.generic):
            value = np.asarray(value)
        if not isinstance(value, np.ndarray):
            value = upcalls.to_host(value)
        if not isinstance(value, np.ndarray):
            raise ValueError(f"expected an ndarray, not {value!r}")
        a = value
        if (
            cnp.PyArray_TYPE(a) != c.typenum
            and PyArray_EquivTypenums(cnp.PyArray_TYPE(a), c.typenum)
        ):
            # long long is long
            a = a.view(_descr(c.typenum)) if a.dtype.isnative else a.astype(_descr(c.typenum))
        if cnp.PyArray_TYPE(a) != c.typenum or cnp.PyArray_NDIM(a) != c.ndim:
            raise TypeError(
                f"expected an array of dtype {_descr(c.typenum)} and {c.ndim} dimensions, got "
                f"dtype {a.dtype} and shape {(<object>a).shape}"
            )
        if not PyArray_ISBEHAVED_RO(a):
            a = np.array(a, dtype=_descr(c.typenum), order="C")
        c.data = <char *>cnp.PyArray_DATA(a)
        for d in range(c.ndim):
            c.shape[d] = cnp.PyArray_DIM(a, d)
            c.strides[d] = cnp.PyArray_STRIDE(a, d)
        self._own(i, a)
        return 0

    cdef object _array(self, int i):
        """Return the value of a slot as a Python object; memory of a slot is handed over to it."""
        cdef ow_slot *c = &self.slots[i]
        cdef cnp.ndarray a
        cdef object base
        cdef int holder, d
        cdef cnp.npy_intp shape[8]
        cdef cnp.npy_intp strides[8]
        if c.typenum < 0:
            return <object>c.owner if c.owner != NULL else None
        if c.data == NULL:
            return None
        if c.owner != NULL and self._shows(c, <object>c.owner):
            return <object>c.owner
        for d in range(c.ndim):
            shape[d] = c.shape[d]
            strides[d] = c.strides[d]
        if c.buf != NULL and c.data == c.buf and ow_is_dense(c):
            a = ow_wrap(c.typenum, c.ndim, shape, strides, c.buf, True)
            c.buf = NULL
            c.cap = 0
            self._own(i, a)
            return a
        holder = self._holder(i)
        if holder < 0:
            raise SystemError("the VM lost track of a value's memory")
        if self.slots[holder].buf == NULL and self._shows(c, <object>self.slots[holder].owner):
            return <object>self.slots[holder].owner
        base = self._base(holder)
        a = ow_wrap(c.typenum, c.ndim, shape, strides, c.data, False)
        Py_INCREF(base)  # the array takes this reference
        PyArray_SetBaseObject(a, base)
        if _read_only(base):
            PyArray_CLEARFLAGS(a, cnp.NPY_ARRAY_WRITEABLE)
        if holder != i or c.owner == NULL:
            self._own(i, a)
        return a

    cdef bint _shows(self, ow_slot *c, object owner):
        """Return whether an array shows just what a slot does."""
        cdef cnp.ndarray a
        cdef int d
        if not PyArray_CheckExact(owner):
            return False
        a = owner
        if (cnp.PyArray_DATA(a) != c.data or cnp.PyArray_NDIM(a) != c.ndim
                or cnp.PyArray_TYPE(a) != c.typenum):
            return False
        for d in range(c.ndim):
            if cnp.PyArray_DIM(a, d) != c.shape[d]:
                return False
            if c.shape[d] != 1 and cnp.PyArray_STRIDE(a, d) != c.strides[d]:
                return False
        return True

    cdef int _holder(self, int i) noexcept:
        """Return the slot that holds the memory of slot ``i``: itself, or one up its views."""
        cdef char *data = self.slots[i].data
        cdef ow_slot *c
        while i >= 0:
            c = &self.slots[i]
            if c.buf != NULL and c.buf <= data <= c.buf + c.cap:
                return i
            if c.owner != NULL:
                return i
            i = self.parent[i]
        return -1

    cdef object _base(self, int i):
        """Return the Python object that keeps the memory of a holder alive."""
        cdef ow_slot *c = &self.slots[i]
        cdef cnp.npy_intp size
        cdef cnp.ndarray a
        if c.buf == NULL:
            return <object>c.owner
        size = c.cap
        a = ow_wrap(cnp.NPY_UINT8, 1, &size, NULL, c.buf, True)
        c.buf = NULL
        c.cap = 0
        self._own(i, a)
        return a

    cdef object _value(self, int i):
        """Return the value of a slot as ``perform`` and callers see it."""
        value = self._array(i)
        if self.slots[i].scalar and value is not None:
            return value[()]
        return value

    # --- running -------------------------------------------------------------------------------

    cdef inline int _step(self, int k, bint prepare, bint execute) except -1:
        """Run one step; on failure raise what ``on_error`` makes of it."""
        cdef int rc
        if self.careful:
            self._check_inputs(k)
        if self.steps[k].run == NULL:
            if execute:
                try:
                    self._perform(k)
                except BaseException as e:
                    self._fail(k, e)
            return 0
        rc = self._attempt(k, prepare, execute)
        if rc != 0:
            self._fail(k, self._exception(rc, k))
        return 0

    cdef inline int _attempt(self, int k, bint prepare, bint execute) except -1:
        """Run one step that runs in C; return the number of its error, 0 if there is none."""
        cdef ow_step *s = &self.steps[k]
        cdef int rc = s.prep(s) if prepare else 0
        if rc == 0 and execute:
            if ow_is_long(s):
                return self._run_long(k)
            rc = s.run(s)
            if s.raises and PyErr_Occurred() != NULL:
                self._fail(k, _pending())
        return rc

    cdef int _run_long(self, int k) except -1:
        """Run a long step without the GIL, and handle signals meanwhile; as ``_attempt``.

        Signals wait while inputs are overwritten of which there is no copy.
        """
        cdef ow_step *s = &self.steps[k]
        cdef int rc, stopped
        cdef bint interruptible = not (self.atomic and k >= self.commit)
        cdef ow_look look = NULL
        if interruptible:
            look = _look_at_signals
        with nogil:
            ow_watch_begin(look)
            rc = s.run(s)
            stopped = ow_watch_end()
        if s.raises and PyErr_Occurred() != NULL:
            self._fail(k, _pending())
        if stopped:
            _raise_interrupt()
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
        return self._perform_in_python(k, perform)

    cdef int _perform_in_python(self, int k, perform) except -1:
        """Call a function of (Apply, inputs, storages of outputs)."""
        cdef int i
        ins, outs = <tuple>self.storages[k]
        inputs = [self._value(i) for i in ins]
        storage = [[None] for _ in outs]
        perform(self.nodes[k], inputs, storage)
        for position, (i, result) in enumerate(zip(outs, storage)):
            self._accept(k, position, i, result[0])
        return 0

    cdef int _run_objects(self, int k, ObjectCode code) except -1:
        """Run the compiled code of a step on Python values."""
        cdef ow_step *s = &self.steps[k]
        cdef int i
        for i in range(code.nin):
            code._put(i, self._value(<int>(s.in_[i] - self.slots)))
        for i in range(code.nin, code.nin + code.nout):
            if self.allow_gc or not code._is_free(i):
                code._put(i, None)
        code.run()
        for i in range(code.nout):
            self._accept(k, i, <int>(s.out[i] - self.slots), code.output(i))
        if self.allow_gc:
            code.forget()
        return 0

    cdef int _accept(self, int k, int position, int i, object value) except -1:
        """Let slot ``i`` hold what step ``k`` computed as its output number ``position``."""
        if PyArray_CheckExact(value) and PyArray_ISWRITEABLE(value) and self.slots[i].buf == NULL:
            return self._load(i, value)
        if value is None and self.slots[i].typenum >= 0:
            raise ValueError(f"{self.nodes[k].op} did not compute its output")
        if _read_only(value) and not self.nodes[k].op.view_map.get(position):
            value = np.array(value)  # what comes after may overwrite it
        if self.slots[i].buf != NULL:
            ow_free(self.slots[i].buf)
            self.slots[i].buf = NULL
            self.slots[i].cap = 0
        return self._take(i, value)

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

    cdef object _exception(self, int rc, int k=-1):
        if rc == OW_PYTHON_ERROR:
            return _met.take()
        if rc == OW_ASSERTION_ERROR:
            return AssertionError(self.nodes[k].op.msg)
        message = self.error.decode(errors="replace")
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
            value = self._value(<int>(s.in_[i] - self.slots))
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
            self._load(self.input_slot[i],
                       <object>PyList_GET_ITEM(<list>PyList_GET_ITEM(self.input_storage, i), 0))
        self.loading = -1
        if self.commit < self.nsteps:
            for i in self.destroyed:
                value = <object>self.slots[i].owner
                if _read_only(value):
                    self._take(i, np.array(value))
        for i in range(self.nadvancing):
            self._load_advancing(&self.steps[self.advancing[i]])
        return 0

    cdef int _load_advancing(self, ow_step *s) except -1:
        """Prepare a step that may write the new value of a state over the old one."""
        cdef int i = <int>(s.in_[0] - self.slots)
        s.advanced = 0
        value = <object>s.in_[0].owner if s.in_[0].owner != NULL else None
        if _read_only(value):
            self._take(i, np.array(value))
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

    cdef inline bint _release_dead(self, int k) noexcept:
        """Release what nobody reads after step ``k``; return whether that may have taken long."""
        cdef int j, i
        cdef ow_slot *c
        cdef bint freed = False
        for j in range(self.die_start[k], self.die_start[k + 1]):
            i = self.die_slot[j]
            c = &self.slots[i]
            if c.owner != NULL:
                self._release(i)
                freed = True
            # small buffers stay for the next call: there is nothing to gain
            if self.allow_gc and c.cap > 65536:
                ow_free(c.buf)
                c.buf = NULL
                c.cap = 0
                freed = True
        return freed

    cdef int _run_steps(self) except -1:
        self._run_range(0, self.commit, True)
        if self.commit < self.nsteps:
            self._run_committed()
        return 0

    cdef int _run_range(self, int first, int end, bint prepare) except -1:
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
        if self.nchoices:
            if first == 0:
                self._forget_choices()
            return self._loop(first, end, prepare, self.timed, self.marked, True)
        if self.marked:
            return self._loop(first, end, prepare, self.timed, True, False)
        if self.timed:
            return self._loop(first, end, prepare, True, False, False)
        return self._loop(first, end, prepare, False, False, False)

    cdef inline int _loop(self, int first, int end, bint prepare, bint timed,
                          bint marked, bint lazy) except -1:
        cdef int k
        cdef int64_t before, now
        before = ow_clock() if timed else 0
        for k in range(first, end):
            if lazy and not self._needs(k):
                self._skip(k)
                continue
            if marked:
                self._open(<bytes>PyList_GET_ITEM(self.labels, k))
            if marked and timed:
                before = ow_clock()
            self._step(k, prepare, True)
            if timed:
                now = ow_clock()
                ow_note(self.times, k, now - before)
                before = now
            if marked:
                self._close()
            # the system takes long to take back large memory: not in the time of the next step
            if self._release_dead(k) and timed:
                before = ow_clock()
            if k & 63 == 63 and not (self.atomic and k >= self.commit):
                PyErr_CheckSignals()
        return 0

    cdef inline void _forget_choices(self) noexcept:
        """Let all alternatives hold again, as before the first decision."""
        memset(self.holds, 0xFF, sizeof(uint64_t) * self.nwords)
        self.next_choice = 0

    cdef inline bint _needs(self, int k) noexcept:
        """Make the decisions that are due before step ``k``; return whether it is needed."""
        cdef int j
        while self.next_choice < self.nchoices and self.choices[self.next_choice].at <= k:
            self._choose(&self.choices[self.next_choice])
            self.next_choice += 1
        return self._holds(self.guards + <int64_t>k * self.nwords)

    cdef inline bint _holds(self, const uint64_t *guard) noexcept:
        cdef int j
        for j in range(self.nwords):
            if guard[j] & self.holds[j]:
                return True
        return False

    cdef void _choose(self, ow_choice *choice) noexcept:
        """Rule out the branch that is not taken, and both where nobody needs the result."""
        cdef int j
        cdef ow_slot *condition = &self.slots[choice.condition]
        cdef bint needed = self._holds(choice.guard)
        if needed and condition.data == NULL:
            return  # without a value the step that reads it fails
        cdef bint is_true = needed and ow_is_true(condition)
        for j in range(self.nwords):
            if not is_true:
                self.holds[j] &= ~choice.first[j]
            if is_true or not needed:
                self.holds[j] &= ~choice.second[j]

    cdef void _skip(self, int k) noexcept:
        """Leave the outputs of a step without values."""
        cdef ow_step *s = &self.steps[k]
        cdef int i
        for i in range(s.nout):
            self._release(<int>(s.out[i] - self.slots))
            s.out[i].data = NULL
        if self.timed:
            self.times.now[k] = 0
        self._release_dead(k)

    cdef inline void _open(self, bytes label) noexcept:
        """Push a range."""
        self.push(PyBytes_AS_STRING(label))
        self.open_ranges += 1

    cdef inline void _close(self) noexcept:
        """Pop the range that was pushed last."""
        self.open_ranges -= 1
        self.pop()

    cdef int _run_committed(self) except -1:
        """Run the steps that overwrite inputs: all of them, or none as far as callers can see."""
        cdef int k
        copies = None
        if self.atomic:
            if self.nchoices and self.commit == 0:
                self._forget_choices()
            self.preparing = True
            for k in range(self.commit, self.nsteps):
                if self.nchoices == 0 or self._needs(k):
                    self._step(k, True, False)
                    self._check(k)
            self.preparing = False
        else:
            copies = [(i, saved(self._array(i))) for i in self.destroyed]
        try:
            self._run_range(self.commit, self.nsteps, not self.atomic)
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
                self._fail(k, self._exception(rc, k))
            s.checked = True
        return 0

    cdef _put_back(self, list copies):
        """Give inputs the values that they had before: in place, or other objects as copies."""
        cdef int j
        for i, before in copies:
            if _restored(self._array(i), before):
                continue
            for j in range(self.ninputs):
                if self.input_slot[j] == i:
                    (<list>self.input_storage[j])[0] = before

    cdef int _finish(self) except -1:
        """Hand the outputs over and forget the inputs."""
        cdef int i
        for i in range(self.noutputs):
            _put(<list>PyList_GET_ITEM(self.output_storage, i), self._value(self.output_slot[i]))
        self._forget()
        return 0

    cdef void _forget(self) noexcept:
        cdef int i
        for i in range(self.nends):
            self._release(self.end_slot[i])
        for i in range(self.ninputs):
            self._release(self.input_slot[i])

    cdef int run(self) except -1:
        """Run the program on what the input storages hold; leave results in the output storages."""
        cdef int64_t start = 0
        if self.running:
            raise RuntimeError(BUSY)
        self.running = True
        try:
            if self.pending is not None:
                self._take_kernels(False)
                start = ow_clock()
            if self.marked:
                self._open(self.call_label)
            self._load_inputs()
            if self.nsteps and not ow_have_buffers():
                self._fail(0, MemoryError("could not allocate working memory of this thread"))
            if self.timed and not self.inside:
                self._run_timed()
            else:
                self._run_steps()
            self._finish()
            if self.pending is not None:
                self.built_in_ns += ow_clock() - start
                self.built_in_calls += 1
        except BaseException:
            self._abandon()
            raise
        finally:
            while self.open_ranges:  # that of the call; where it fails, that of a step too
                self._close()
            self.running = False
        return 0

    def expect_kernels(self, pending):
        """Run built-in loops until kernels are compiled; see ``kernels.Pending``."""
        self.pending = pending

    def wait_for_kernels(self):
        """Use compiled kernels from the next call on, once the compiler is done."""
        if self.running:
            raise RuntimeError(BUSY)
        self.running = True
        try:
            if self.pending is not None:
                self._take_kernels(True)
        finally:
            self.running = False

    cdef int _take_kernels(self, bint wait) except -1:
        """Use the kernels that are pending if they are compiled; wait: until they are."""
        cdef int i
        found = self.pending.take(self.built_in_ns, wait)
        if found is None:
            return 0
        for i in range(self.nsteps):  # no signal handler runs in between
            kernel = found.get(self.keep[i])
            if kernel is not None:
                address, library = kernel
                self.steps[i].loop = <ow_loop><uintptr_t>address
                self.steps[i].ctx = NULL
                self.keep[i] = library
        self.pending = None
        return 0

    cdef int _run_timed(self) except -1:
        """Run all steps of a call, and count it."""
        cdef int64_t start, elapsed
        cdef int row
        ow_timing_begin(self.times)
        for vm in self.loops:
            vm.take_now()  # of a call that failed
        start = ow_clock()
        self._run_steps()
        elapsed = ow_clock() - start
        self.count_run(elapsed, 0)
        row = ow_keep(self.times, self.calls, start, elapsed)
        if self.loops and row >= 0:
            self.kept_inside[row] = [ns for vm in self.loops for ns in vm.take_now()]
        if self.ignoring:
            self.ignoring = False
            self.reset_timing()
        return 0

    cdef void _abandon(self) noexcept:
        """Forget every value of a failed call; memory stays."""
        cdef int i
        self._undo()
        for i in range(self.nsteps):
            for j in range(self.steps[i].nout):
                self._release(<int>(self.steps[i].out[j] - self.slots))
        self._forget()

    def __call__(self):
        self.run()

    cdef _forget_call(self):
        """Forget a call of a thread that a forked process does not have.

        That thread may have been writing to any memory of the VM, so all of it is given up.
        """
        cdef int i
        if not self.running:
            return
        for each in self.stretches or ():
            (<Stretch>each).give_up(self)
        for i in range(self.nslots):
            self.slots[i].buf = NULL
            self.slots[i].cap = 0
        for i in range(self.nsteps):
            self.steps[i].scratch = NULL
            self.steps[i].scratch_cap = 0
        self._abandon()
        self.open_ranges = 0
        self.running = False

    cdef void _give_back_blocks(self) noexcept:
        """Give back large blocks of memory."""
        cdef int i
        for i in range(self.nslots):
            if self.slots[i].cap > 65536:
                ow_free(self.slots[i].buf)
                self.slots[i].buf = NULL
                self.slots[i].cap = 0

    def free(self):
        """Give back the memory kept between calls."""
        cdef int i
        if self.running:
            raise RuntimeError("The function is running: its memory cannot be freed")
        for code in self.performs:
            if type(code) is ObjectCode:
                (<ObjectCode>code).forget()
        for i in range(self.nslots):
            ow_free(self.slots[i].buf)
            self.slots[i].buf = NULL
            self.slots[i].cap = 0
        for i in range(self.nsteps):
            ow_free(self.steps[i].scratch)
            self.steps[i].scratch = NULL
            self.steps[i].scratch_cap = 0

    def kept_bytes(self):
        """Return the bytes of memory kept between calls."""
        cdef int i
        cdef int64_t total = 0
        for i in range(self.nslots):
            total += self.slots[i].cap
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
                found[node.inputs[j]] = [self._left(<int>(s.in_[j] - self.slots))]
            for j in range(s.nout):
                found[node.outputs[j]] = [self._left(<int>(s.out[j] - self.slots))]
        return found

    @property
    def call_counts(self):
        """How often each step ran, if it is timed."""
        return [one[0] for one in self.timing()] or [0] * self.nsteps

    @property
    def call_times(self):
        """How many seconds each step ran in all, if it is timed."""
        return [one[1] * 1e-9 for one in self.timing()] or [0.0] * self.nsteps

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
        return self._value(i) if self._holder(i) >= 0 else None

    # --- what a profile reads, and ranges for system profilers ----------------------------------

    def layouts(self):
        """Return (shape, strides in bytes) by slot, as of the last call; None for no array."""
        cdef int i, d
        cdef ow_slot *c
        found = []
        for i in range(self.nslots):
            c = &self.slots[i]
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

    def start_timing(self, bint ignore_first_call=False, loops=()):
        """Record the time of every step from now on, or from the second call on.

        loops: the VMs of loops in this program, also of loops in loops; they are timed too.
        """
        self._start_clock()
        self.ignoring = ignore_first_call
        self.loops = list(loops)
        for vm in self.loops:
            vm.start_timing_inside()

    def start_timing_inside(self):
        """Record the time of every step of a program that a loop repeats."""
        self._start_clock()
        self.inside = True

    cdef int _start_clock(self) except -1:
        ow_clock_calibrate()
        ow_timer_measure()
        if self.times == NULL:
            self.times = ow_timing_new(self.nsteps)
            if self.times == NULL:
                raise MemoryError()
        self.timed = True
        return 0

    def stop_timing(self):
        """Record no more times; those up to now stay."""
        self.timed = False
        for vm in self.loops:
            vm.stop_timing()

    def keep_times_in(self, memory):
        """Keep the counters of the steps in other memory, which another process may read.

        memory: a writable buffer of 32 bytes for each step, which gets its count, sum, least and
        most as int64; None: memory of the VM's own again.
        """
        cdef cnp.ndarray where
        if self.times == NULL:
            raise RuntimeError("the VM times no steps: call start_timing first")
        if memory is None:
            if ow_timing_move(self.times, NULL) < 0:
                raise MemoryError()
            self.counters = None
            return
        where = np.frombuffer(memory, np.int64)
        if not PyArray_ISWRITEABLE(where) or where.size != 4 * self.nsteps:
            raise ValueError(f"the counters of {self.nsteps} steps take {4 * self.nsteps} writable "
                             f"int64, not {where.size}")
        if self.nsteps:
            ow_timing_move(self.times, <ow_times *>cnp.PyArray_DATA(where))
            self.counters = where

    def reset_timing(self):
        """Forget all recorded times."""
        if self.times != NULL:
            ow_timing_forget(self.times)
        self.calls = self.total_ns = self.first_ns = self.loop_steps = 0
        self.kept_inside.clear()
        for vm in self.loops:
            vm.reset_timing()

    cpdef count_run(self, int64_t ns, int64_t steps):
        """Count a call, or a run of the loop that repeats this program."""
        self.total_ns += ns
        if self.calls == 0:
            self.first_ns = ns
        self.calls += 1
        self.loop_steps += steps

    def repeats_inside(self, int k):
        """Return whether step ``k`` runs the VM of the graph inside its Op."""
        perform = self.performs[k]
        return perform is not None and (type(perform) is Loop or not (
            isinstance(perform, Runner) or type(perform) is ObjectCode))

    def take_now(self):
        """Return the nanoseconds of each step since this was called last."""
        cdef int k
        cdef int64_t *now = self.times.now
        taken = [now[k] for k in range(self.nsteps)]
        ow_timing_begin(self.times)
        return taken

    @property
    def timer_ns(self):
        """What timing adds to a step, which is not in the times of steps, nanoseconds."""
        return max(0, ow_timer_ns)

    def timing(self):
        """Return (count, sum, least, most, ((bucket, count), ...)) of each step, nanoseconds."""
        cdef int k, b
        cdef ow_times *t
        found = []
        for k in range(self.nsteps if self.times != NULL else 0):
            t = self.times.steps + k
            found.append((t.count, t.sum, t.least, t.most,
                          tuple([(b, self.times.histograms[k][b]) for b in range(OW_BUCKETS)
                                 if self.times.histograms[k][b]])))
        return found

    def detail(self):
        """Return (number, start, [nanoseconds by step]) of the first calls and the slowest.

        The steps of loops follow those of the program.
        """
        cdef int i, k
        cdef ow_call *kept
        cdef int64_t *row
        found = []
        for i in range(OW_KEPT if self.times != NULL else 0):
            kept = &self.times.kept[i]
            if kept.number:
                row = self.times.rows + i * self.times.nsteps
                times = [row[k] for k in range(self.nsteps)] + self.kept_inside.get(i, [])
                found.append((kept.number, kept.start, times))
        return sorted(found)

    def start_marking(self, push, pop, bytes label, list labels):
        """Push a range for each call and each step from now on, and pop it at its end.

        push, pop: C functions, of ctypes. label: that of a call; labels: of steps.
        """
        self.push = <ow_push><uintptr_t>_address(push)
        self.pop = <ow_pop><uintptr_t>_address(pop)
        self.call_label, self.labels, self.keep_marks = label, labels, (push, pop)
        self.marked = True
