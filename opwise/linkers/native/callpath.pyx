# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""CallPath: from a call of a function to its VM and back."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.list cimport PyList_GET_ITEM
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint64_t, uintptr_t
from posix.unistd cimport usleep

from opwise.linkers.native.arrays cimport (
    NPY_FLOAT32,
    NPY_FLOAT64,
    NPY_INT8,
    NPY_INT16,
    NPY_INT32,
    NPY_INT64,
    PyArray_CheckExact,
    PyArray_DATA,
    PyArray_DIM,
    PyArray_ISBEHAVED_RO,
    PyArray_NDIM,
    PyArray_ScalarAsCtype,
    PyArray_SimpleNew,
    PyArray_TYPE,
    import_array,
    ndarray,
)
from opwise.linkers.native.clock cimport ow_clock
from opwise.linkers.native.exceptions cimport (
    restore_error,
    set_error,
    status,
    take_pending,
    ternary,
)
from opwise.linkers.native.locks cimport Claim, PyThread_get_thread_ident, claims
from opwise.linkers.native.objectcode cimport Py_REFCNT
from opwise.linkers.native.pythonvm cimport PythonVM
from opwise.linkers.native.slots cimport put
from opwise.linkers.native.vm cimport VM

import numpy as np

from opwise.linkers.native.locks import BUSY

cdef extern from "maincalls.h":
    int64_t ow_main_called() noexcept
    int ow_main_is_called() noexcept
    void ow_main_watch(unsigned long thread) noexcept
    bint ow_main_enter(unsigned long thread, int64_t now) noexcept
    void ow_main_leave(int64_t now) noexcept

import_array()

cdef object _int64 = np.int64

cdef extern from "Python.h":
    ctypedef struct _TypeSlots "PyTypeObject":
        ternary tp_call
    ctypedef struct _SlotWrapper "PyWrapperDescrObject":
        void *d_wrapped


@cython.final
cdef class Argument:
    """How one positional argument of a function is checked and where it goes."""

    cdef list storage
    cdef object filter, scalar
    # the array of the last number, which the next one is put in if nobody else has it
    cdef ndarray cell
    cdef int typenum, ndim
    cdef uint64_t ones
    cdef bint exact

    def __init__(self, list storage, int typenum, int ndim, uint64_t ones, bint exact, scalar,
                 filter):
        """exact: an array of this typenum and ndim, whose dimensions in the mask ``ones`` have
        length 1, needs no filter; scalar: numpy's class of numbers of this typenum, if these and
        Python's numbers that it can hold need none either, else None; filter: for the others."""
        self.storage, self.filter, self.scalar = storage, filter, scalar
        self.typenum, self.ndim, self.ones = typenum, ndim, ones
        self.exact = exact

    cdef inline bint takes(self, object value) noexcept:
        """Whether an array is valid as it is."""
        return (
            self.exact
            and PyArray_CheckExact(value)
            and PyArray_TYPE(<ndarray>value) == self.typenum
            and PyArray_NDIM(<ndarray>value) == self.ndim
            and PyArray_ISBEHAVED_RO(<ndarray>value)
            and (self.ones == 0 or self._has_ones(<ndarray>value))
        )

    cdef inline ndarray own_cell(self):
        """Return the cell after making sure that nobody else has it."""
        if self.cell is None or Py_REFCNT(<PyObject *>self.cell) > 1:
            self.cell = PyArray_SimpleNew(0, NULL, self.typenum)
        return self.cell

    cdef bint _has_ones(self, ndarray value) noexcept:
        cdef int d
        for d in range(self.ndim):
            if self.ones >> d & 1 and PyArray_DIM(value, d) != 1:
                return False
        return True


cdef object _number(object value, Argument argument):
    """Return a number as an array without dimensions; None where it is not that exactly."""
    cdef int typenum = argument.typenum, overflow = 0
    cdef long long whole = 0
    cdef double real
    if type(value) is argument.scalar:
        PyArray_ScalarAsCtype(value, PyArray_DATA(argument.own_cell()))
        return argument.cell
    if PyFloat_Check(value):
        real = PyFloat_AS_DOUBLE(value)
        if typenum == NPY_FLOAT64 or typenum == NPY_FLOAT32:
            return _array_of(argument, real, 0)
        if not -9e15 < real < 9e15 or real != <double><long long>real:
            return None
        whole = <long long>real
    elif PyLong_CheckExact(value):
        whole = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            return None
    elif type(value) is _int64:
        PyArray_ScalarAsCtype(value, &whole)
    else:
        return None
    return _array_of(argument, <double>whole, whole)


cdef object _array_of(Argument argument, double real, long long whole):
    """Return a number as an array; None where it is not that exactly.

    real: the number, for floats; whole: the same, for integers and to check ``real``.
    """
    cdef ndarray a = argument.own_cell()
    cdef int typenum = argument.typenum
    cdef void *data = PyArray_DATA(a)
    if typenum == NPY_FLOAT64:
        (<double *>data)[0] = real
        return a if whole == 0 or -(1 << 53) <= whole <= (1 << 53) else None
    if typenum == NPY_FLOAT32:
        (<float *>data)[0] = <float>real
        if <double>(<float *>data)[0] != real or not -(1 << 53) <= whole <= (1 << 53):
            return None
        return a
    if typenum == NPY_INT64:
        (<int64_t *>data)[0] = whole
        return a
    if typenum == NPY_INT32:
        (<int32_t *>data)[0] = <int32_t>whole
        return a if (<int32_t *>data)[0] == whole else None
    if typenum == NPY_INT16:
        (<int16_t *>data)[0] = <int16_t>whole
        return a if (<int16_t *>data)[0] == whole else None
    if typenum == NPY_INT8:
        (<int8_t *>data)[0] = <int8_t>whole
        return a if (<int8_t *>data)[0] == whole else None
    return None


@cython.final
cdef class LengthPair:
    """Two lengths of inputs, or one and a number, that no Apply compares any more.

    a, b: the storages of the inputs, b None for a number. text: a function that describes them,
    given both lengths.
    """

    cdef list a, b
    cdef int axis_a, axis_b
    cdef int64_t number
    cdef readonly object text

    def __init__(self, list a, int axis_a, list b, int axis_b, int64_t number, text):
        self.a, self.axis_a, self.b, self.axis_b = a, axis_a, b, axis_b
        self.number, self.text = number, text

    cdef inline bint differs(self, int64_t *n, int64_t *m) noexcept:
        """Whether the lengths differ; they are put into n and m. Only those of arrays are known."""
        n[0] = _length_of(<object>PyList_GET_ITEM(self.a, 0), self.axis_a)
        m[0] = self.number
        if self.b is not None:
            m[0] = _length_of(<object>PyList_GET_ITEM(self.b, 0), self.axis_b)
        return n[0] != m[0] and n[0] >= 0 and m[0] >= 0


cdef inline int64_t _length_of(object value, int axis) noexcept:
    if not PyArray_CheckExact(value) or PyArray_NDIM(<ndarray>value) <= axis:
        return -1
    return PyArray_DIM(<ndarray>value, axis)


cdef class CallPath:
    """Calls a compiled function: checks arguments, runs the VM, returns results.

    Subclasses define ``call_general(args, kwargs)`` for calls that need more than positional
    arguments, ``explain(error, index, value)`` for arguments that are refused, and
    ``explain_stored(error, index)`` for values of inputs that the VM cannot use, and
    ``warn_of_lengths(text)`` about those of a LengthPair that differ.
    """

    cdef list arguments
    cdef int narguments
    cdef dict positions
    cdef VM vm
    cdef object fn_
    cdef list outputs, updates
    cdef int noutputs, nupdates
    # LengthPairs, or None
    cdef list lengths
    cdef bint single, slow, none, running
    cdef unsigned long caller
    cdef int generation
    cdef Claim claim
    cdef public bint trust_input
    cdef bint timed, ignoring, begun
    #: calls that returned, and that raised; nanoseconds in all of them, of these in the VM, and
    #: in the first one of all, 0 if that was forgotten
    cdef readonly int64_t calls, failed, total_ns, fn_ns, first_ns

    def set_path(self, fn, list arguments, dict positions, list outputs, list updates, bint single,
                 bint none, bint slow, Claim claim):
        """Say what a call does.

        fn: the VM. arguments: one for each positional argument. positions: of those that may be
        given by name, by name. outputs: the storages of results.
        updates: (storage of the new value, storage to put it in). single, none: return the only
        result, or None, instead of a list. slow: always use ``call_general``. claim: the locks of
        the values that are kept between calls.
        """
        self.fn_ = fn
        self.vm = fn if isinstance(fn, VM) else None
        self.arguments, self.narguments, self.positions = arguments, len(arguments), positions
        self.outputs, self.noutputs = outputs, len(outputs)
        self.updates, self.nupdates = updates, len(updates)
        self.single, self.none, self.slow = single, none, slow
        self.claim = claim if claim.nlocks else None

    @property
    def fn(self):
        return self.fn_

    def compare_lengths(self, list pairs):
        """Warn once of each LengthPair whose lengths differ in a call that succeeds."""
        self.lengths = pairs or None

    def __call__(self, *args, **kwargs):  # until the slot is _call's, below
        raise NotImplementedError

    cdef void _count(self, int64_t ns, bint succeeded) noexcept:
        self.total_ns += ns
        if not self.begun:
            self.begun, self.first_ns = True, ns
        if not succeeded:
            self.failed += 1
            return
        self.calls += 1
        if self.ignoring:
            self.ignoring = False
            self.reset_calls()

    cdef int _wait(self) except -1:
        """Wait for the call of another thread; raise if the call under way is this thread's own."""
        if self.caller == PyThread_get_thread_ident():
            raise RuntimeError(BUSY)
        if self.generation != claims.generation:
            self.forget_call()
        while self.running:
            with nogil:
                usleep(50)
            PyErr_CheckSignals()
        return 0

    cdef forget_call(self):
        """Forget a call of a thread that a forked process does not have."""
        if self.vm is not None:
            self.vm.forget_call()
        elif isinstance(self.fn_, PythonVM):
            (<PythonVM>self.fn_).forget_call()
        self.running = False

    def start_timing(self, bint ignore_first_call=False):
        """Count calls and their time from now on, or from the second one on."""
        self.timed, self.ignoring = True, ignore_first_call

    def stop_timing(self):
        """Count no more calls; the numbers up to now stay."""
        self.timed = False

    def reset_calls(self):
        """Forget how often and how long the function was called."""
        self.calls = self.failed = self.total_ns = self.fn_ns = self.first_ns = 0

    @cython.final
    cdef object _call(self, tuple args, dict kwargs):
        """Check the arguments and run on them. kwargs: None where there are none."""
        cdef int i
        cdef Argument argument
        cdef object value
        if self.slow:
            return self.call_general(args, dict(kwargs or {}))
        if kwargs or len(args) != self.narguments:
            every = self._in_order(args, kwargs or {})
            if every is None:
                return self.call_general(args, dict(kwargs or {}))
            args = every
        if self.trust_input:
            for i in range(self.narguments):
                argument = <Argument>PyList_GET_ITEM(self.arguments, i)
                put(argument.storage, <object>PyTuple_GET_ITEM(args, i))
            return self.run()
        for i in range(self.narguments):
            value = <object>PyTuple_GET_ITEM(args, i)
            argument = <Argument>PyList_GET_ITEM(self.arguments, i)
            if not argument.takes(value):
                number = _number(value, argument) if argument.scalar is not None else None
                if number is not None:
                    put(argument.storage, number)
                    continue
                try:
                    value = argument.filter(value)
                except Exception as error:
                    self._forget_arguments()
                    self.explain(error, i, value)
                    raise
            put(argument.storage, value)
        return self.run()

    cdef tuple _in_order(self, tuple args, dict kwargs):
        """Return all arguments by position; None if they are not one for each position."""
        if len(args) + len(kwargs) != self.narguments:
            return None
        cdef list every = list(args)
        every.extend(kwargs.values())
        for name, value in kwargs.items():
            place = self.positions.get(name)
            if place is None or <int>place < len(args):
                return None
            every[<int>place] = value
        return tuple(every)

    cpdef object run(self):
        """Run on what the input storages hold; return the results as the caller wants them."""
        if self.claim is None:
            return self._run()
        self.claim.take(-1)
        try:
            return self._run()
        finally:
            self.claim.release()

    @cython.final
    cdef inline object _run(self):
        cdef int i, done
        cdef int64_t start
        cdef list results, storage
        cdef object value
        cdef list differing = None
        start = ow_clock() if self.timed else 0
        if self.lengths is not None:
            differing = self._differing()
        done = (<status>_run_program)(<PyObject *>self)
        error = None if done == 0 else take_pending()
        self._forget_arguments()
        if self.timed:
            self.fn_ns += ow_clock() - start
        if error is not None:
            self._fail(error)
        for i in range(self.nupdates):
            source, target = <tuple>PyList_GET_ITEM(self.updates, i)
            put(target, <object>PyList_GET_ITEM(source, 0))
            put(source, None)
        if differing is not None:  # and no Apply has raised
            self._warn_of(differing)
        if self.single:
            storage = <list>PyList_GET_ITEM(self.outputs, 0)
            value = storage[0]
            put(storage, None)
            return value
        results = []
        for i in range(self.noutputs):
            storage = <list>PyList_GET_ITEM(self.outputs, i)
            results.append(storage[0])
            put(storage, None)
        return None if self.none else results

    cdef _fail(self, error):
        """Raise the error of a run, or a clearer one."""
        cdef int i
        if isinstance(error, Exception) and self.vm is not None and self.vm.loading >= 0:
            i, self.vm.loading = self.vm.loading, -1
            self.explain_stored(error, i)
        restore_error(error)

    cdef list _differing(self):
        """Return [(LengthPair, length, length)] of those that differ; None if there are none."""
        cdef int64_t n, m
        cdef int i
        cdef LengthPair pair
        cdef list found = None
        for i in range(len(self.lengths)):
            pair = <LengthPair>PyList_GET_ITEM(self.lengths, i)
            if pair.differs(&n, &m):
                found = found if found is not None else []
                found.append((pair, n, m))
        return found

    cdef _warn_of(self, list differing):
        shown = [pair for pair, _, _ in differing]
        self.compare_lengths([pair for pair in self.lengths or () if pair not in shown])
        for pair, n, m in differing:
            self.warn_of_lengths(pair.text(n, m))

    cpdef object run_with(self, list given, list kept, list defaults):
        """Run on the values ``given``; all three are lists of (storage, value).

        kept: what storages hold again if the call fails; defaults: what they hold in any case. No
        signal handler can run in between.
        """
        try:
            for storage, value in given:
                (<list>storage)[0] = value
            return self.run()
        except BaseException:
            for storage, value in kept:
                (<list>storage)[0] = value
            raise
        finally:
            for storage, value in defaults:
                (<list>storage)[0] = value

    @cython.final
    cdef void _forget_arguments(self) noexcept:
        cdef int i
        for i in range(self.narguments):
            put((<Argument>PyList_GET_ITEM(self.arguments, i)).storage, None)

    def call_general(self, args, kwargs):
        raise NotImplementedError

    def explain(self, error, index, value):
        raise NotImplementedError

    def explain_stored(self, error, index):
        raise NotImplementedError

    def warn_of_lengths(self, text):
        raise NotImplementedError


def watch_main_calls():
    """Note how long this thread is in calls of functions.

    Return the addresses of two C functions: of the nanoseconds, and of whether it is in a call."""
    ow_main_watch(PyThread_get_thread_ident())
    return <uintptr_t><void *>&ow_main_called, <uintptr_t><void *>&ow_main_is_called


# --- a call, from the slot of its type to the run and back ---------------------------------------

cdef int _run_program(CallPath f) except -1:
    if f.vm is not None:
        return f.vm.run()
    f.fn_()
    return 0


cdef object _checked_call(CallPath f, tuple args, dict kwargs):
    return f._call(args, kwargs)


cdef PyObject *_counted_call(CallPath f, PyObject *args, PyObject *kwargs) except NULL:
    """Call a function once nobody else calls it; count the call if that is wanted."""
    cdef int64_t start = 0, end
    cdef bint timed = f.timed, noted = False
    cdef PyObject *result
    if f.running:  # before anything is touched that the call under way needs
        f._wait()
    f.running = True
    f.caller = PyThread_get_thread_ident()
    f.generation = claims.generation
    if timed:
        start = ow_clock()
        noted = ow_main_enter(f.caller, start)
    result = (<ternary>_checked_call)(<PyObject *>f, args, kwargs)
    if timed:
        end = ow_clock()
        if noted:
            ow_main_leave(end)
        f._count(end - start, result != NULL)
    f.running = False
    return result


cdef PyObject *_call(PyObject *function, PyObject *args, PyObject *kwargs) noexcept:
    """Call a function; its frames, and those of all that it calls here, leave no traceback."""
    cdef PyObject *result = (<ternary>_counted_call)(
        function, args, kwargs if kwargs != NULL else <PyObject *>None)
    if result == NULL:
        _leave(take_pending())
    return result


cdef void _leave(object error) noexcept:
    """Let an exception leave a call, with the frames of its user only."""
    try:
        from opwise.linkers import tracebacks  # only failures need it

        tracebacks.cut(error)
    except Exception:  # too little memory or stack: the traceback stays as it is
        pass
    except BaseException as interrupt:
        error = interrupt
    set_error(error)


# subclasses take the slot over when they are made, from its wrapper
(<_TypeSlots *>CallPath).tp_call = _call
(<_SlotWrapper *>(<object>CallPath).__dict__["__call__"]).d_wrapped = <void *>_call
