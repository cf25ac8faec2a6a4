# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, freethreading_compatible=False
"""The compiled virtual machine: runs the steps of a program in turn, and calls functions.

Values between steps that have a C implementation are cells (csupport/runtime.h), never Python
objects. ``opwise.linkers.vm`` is the same machine in plain Python and is its specification.
"""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.list cimport PyList_GET_ITEM
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy
from posix.unistd cimport usleep

import copy
import os

import numpy as np

from opwise.graph import hooks

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_SetBaseObject(cnp.ndarray, object) except -1
    bint PyArray_CheckExact(object)
    bint PyArray_ISBEHAVED_RO(object)
    bint PyArray_ISWRITEABLE(cnp.ndarray)
    void PyArray_CLEARFLAGS(cnp.ndarray, int)

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef extern from "runtime.h":
    int OW_MAXDIM, OW_MAXARG, OW_STATIC, OW_TOTAL, OW_CHECKED, OW_ERROR_SIZE
    int OW_OK, OW_VALUE_ERROR, OW_INDEX_ERROR, OW_TYPE_ERROR, OW_MEMORY_ERROR
    int OW_ZERO_DIVISION, OW_PYTHON_ERROR
    ctypedef struct ow_cell:
        char *data
        int64_t shape[8]
        int64_t strides[8]
        int32_t ndim
        int32_t itemsize
        int32_t typenum
        int32_t scalar
        char *buf
        int64_t cap
        void *owner
    ctypedef struct ow_step
    ctypedef int (*ow_fn)(ow_step *) noexcept nogil
    ctypedef void (*ow_loop)(const void *, char **, const int64_t *, int64_t) noexcept nogil
    ctypedef struct ow_step:
        ow_fn prep
        ow_fn run
        ow_cell **in_ "in"
        ow_cell **out
        int32_t nin
        int32_t nout
        const int64_t *ints
        const double *reals
        ow_loop loop
        const void *ctx
        char *error
        char *scratch
        int64_t scratch_cap
    void ow_free(char *) nogil
    void ow_keep_at_most(int64_t)
    void ow_fill_new(int)
    int64_t ow_kept()
    int ow_threads()
    void ow_set_threads(int)
    ctypedef int (*ow_look)() noexcept nogil
    void ow_watch_begin(ow_look) nogil
    int ow_watch_end() nogil
    bint ow_is_long(const ow_step *)
    bint ow_is_fortran(const ow_cell *)
    int64_t ow_size(const ow_cell *)
    bint ow_is_c_contiguous(const ow_cell *)
    void ow_copy(ow_cell *, ow_cell *)
    void ow_c_strides(ow_cell *)

cdef extern from "kinds.h":
    ctypedef struct ow_kind:
        const char *name
        ow_fn prep
        ow_fn run
        int flags
    const ow_kind *ow_find_kind(const char *)
    const ow_kind *ow_kinds

cdef extern from *:
    """
    static const char *ow_set_blas(const char *name, void *fn)
    {
    #define OW_BLAS_ROW(f) if (!strcmp(name, #f)) { *(void **)&ow_blas.f = fn; return NULL; }
        OW_BLAS_ROW(dgemm) OW_BLAS_ROW(sgemm) OW_BLAS_ROW(dgemv) OW_BLAS_ROW(sgemv)
        OW_BLAS_ROW(dger) OW_BLAS_ROW(sger)
        return "unknown";
    }
    static void ow_set_loader(int (*loader)(char *)) { ow_load_blas = loader; }
    static int ow_has_blas(void) { return ow_blas.sger != NULL; }
    static void *ow_np_malloc(void *ctx, size_t n) { (void)ctx; return ow_alloc((int64_t)n); }
    static void *ow_np_calloc(void *ctx, size_t n, size_t size)
    {
        (void)ctx;
        int64_t bytes;
        if (__builtin_mul_overflow((int64_t)n, (int64_t)size, &bytes))
            return NULL;
        void *p = ow_alloc(bytes);
        return p ? memset(p, 0, (size_t)bytes) : p;
    }
    static void *ow_np_realloc(void *ctx, void *p, size_t n)
    {
        (void)ctx;
        return ow_resize(p, (int64_t)n);
    }
    static void ow_np_free(void *ctx, void *p, size_t n) { (void)ctx; (void)n; ow_free(p); }
    /* What tells numpy how to free and resize the memory of arrays that own blocks of ow_alloc. */
    static PyDataMem_Handler ow_np_handler = {
        "opwise", 1, {NULL, ow_np_malloc, ow_np_calloc, ow_np_realloc, ow_np_free}};
    static PyObject *ow_np_capsule;
    /* An array over `data`; own: it frees the memory, a block of ow_alloc, when it dies. */
    static PyObject *ow_wrap(int typenum, int nd, npy_intp *shape, npy_intp *strides, void *data,
                             int own)
    {
        PyObject *a = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(typenum), nd, shape,
                                           strides, data, NPY_ARRAY_WRITEABLE, NULL);
        if (a == NULL || !own)
            return a;
        if (ow_np_capsule == NULL)
            ow_np_capsule = PyCapsule_New(&ow_np_handler, "mem_handler", NULL);
        if (ow_np_capsule == NULL) {
            Py_DECREF(a);
            return NULL;
        }
        Py_INCREF(ow_np_capsule);
        ((PyArrayObject_fields *)a)->mem_handler = ow_np_capsule;
        PyArray_ENABLEFLAGS((PyArrayObject *)a, NPY_ARRAY_OWNDATA);
        return a;
    }
    """
    const char *ow_set_blas(const char *, void *)
    void ow_set_loader(int (*)(char *))
    bint ow_has_blas()
    object ow_wrap(int, int, cnp.npy_intp *, cnp.npy_intp *, void *, int)

cdef extern from "simd.h":
    ctypedef struct ow_reducer:
        const char *name
    ctypedef struct ow_simd:
        const char *name
        const ow_reducer *reducers
        int reducer_count
    const ow_simd *ow_kernels

cdef extern from "elemwise.h":
    ctypedef void (*ow_chunk_fn)(void *, const void *const *, int64_t) noexcept nogil
    int OW_MAXREG
    ctypedef struct ow_instr:
        ow_chunk_fn fn
        int32_t out
        int32_t nin
        int32_t in_ "in" [4]
    ctypedef struct ow_code:
        int32_t nin, nout, nreg, ninstr
        int32_t *itemsize
        int32_t *results
        ow_instr *instr
        const ow_reducer *reducer
    void ow_interpret(const void *, char **, const int64_t *, int64_t) noexcept nogil
    void ow_warm_thread() noexcept nogil

cdef extern from "clock.h":
    void ow_clock_begin()
    void ow_clock_calibrate()
    int64_t ow_clock() noexcept nogil

cdef extern from "timing.h":
    int OW_BUCKETS, OW_KEPT
    int64_t ow_timer_ns
    ctypedef struct ow_times:
        int64_t count, sum, least, most
        int64_t *histogram
    ctypedef struct ow_call:
        int64_t number, start, total
    ctypedef struct ow_timing:
        int64_t nsteps
        ow_times *steps
        ow_call *kept
        int64_t *rows
    ow_timing *ow_timing_new(int64_t) noexcept nogil
    void ow_timing_free(ow_timing *) noexcept nogil
    void ow_timing_forget(ow_timing *) noexcept nogil
    void ow_timer_measure() noexcept nogil
    void ow_note(ow_timing *, int64_t, int64_t) noexcept nogil
    void ow_keep(ow_timing *, int64_t, int64_t, int64_t) noexcept nogil

cdef extern from "reduce.h":
    ctypedef struct ow_argmaxer:
        const char *name
    const ow_argmaxer *ow_argmaxers
    int ow_argmaxer_count

cdef extern from "index.h":
    ctypedef struct ow_adder:
        const char *name
    const ow_adder *ow_adders
    int ow_adder_count

cdef extern from "loops.h":
    ctypedef struct ow_loop_row:
        const char *name
        ow_chunk_fn fn
    const ow_loop_row *ow_loop_rows
    int ow_loop_count

ow_clock_begin()

MAXDIM = OW_MAXDIM
MAXARG = OW_MAXARG
MAXREG = OW_MAXREG
#: for which vectors the built-in kernels in use were compiled
VECTORS = ow_kernels.name.decode()

#: what a function says that is called while it runs
BUSY = (
    "This function is being called already, by another thread or by an Op of its own graph. "
    "Use f.copy() to get a function for each thread."
)


def kinds():
    """Return the names of the kinds of C steps."""
    names = []
    cdef const ow_kind *k = ow_kinds
    while k.name != NULL:
        names.append(k.name.decode())
        k += 1
    return names


cdef dict _find_loops():
    return {ow_loop_rows[i].name.decode(): <uintptr_t>ow_loop_rows[i].fn
            for i in range(ow_loop_count)}

#: built-in loops by name, ``<row>_<type>`` or ``cast_<from>_<to>``: address of the C function
LOOPS = _find_loops()


#: index of each reducer, by ``<operation>_<element>_<accumulator>``; of each argmax and adder, by
#: element
REDUCERS = {ow_kernels.reducers[i].name.decode(): i for i in range(ow_kernels.reducer_count)}
ADDERS = {ow_adders[i].name.decode(): i for i in range(ow_adder_count)}
ARGMAXERS = {ow_argmaxers[i].name.decode(): i for i in range(ow_argmaxer_count)}


def set_blas(str name, capsule, expected):
    """Take a BLAS function from a capsule; its signature must be one of ``expected``."""
    cdef const char *signature = PyCapsule_GetName(capsule)
    if signature.decode() not in expected:
        raise ImportError(
            f"this scipy uses other integers for BLAS: its {name} has the signature "
            f"{signature.decode()!r}, opwise was written for {expected[0]!r}"
        )
    if ow_set_blas(name.encode(), PyCapsule_GetPointer(capsule, signature)) != NULL:
        raise ValueError(f"opwise does not use the BLAS function {name}")


def keep_at_most(int64_t bytes):
    """Keep at most so many bytes of large blocks that were freed, for later requests."""
    ow_keep_at_most(bytes)


def kept_blocks():
    """Return how many bytes of freed blocks are kept."""
    return ow_kept()


def fill_new_blocks(bint yes):
    """Fill new memory with ones from now on, so that what a step leaves unwritten shows."""
    ow_fill_new(yes)


def set_threads(int n):
    """Let kernels use up to ``n`` threads, the caller's own included."""
    ow_set_threads(n)


def threads():
    """Return how many threads kernels may use."""
    return ow_threads()


def has_blas():
    """Return whether the BLAS functions have been taken."""
    return bool(ow_has_blas())


# what _load_blas met; read at once, with the GIL held since
cdef object _load_error = None


cdef int _load_blas(char *error) noexcept with gil:
    """Called by a step that needs BLAS for the first time; an interrupt may come while it loads."""
    global _load_error
    try:
        from opwise.linkers.blasload import load

        load()
        return OW_OK
    except ImportError as e:
        message = str(e).encode()[:300] + b"\0"
        memcpy(error, <char *>message, len(message))
        return OW_VALUE_ERROR
    except BaseException as e:
        _load_error = e
        return OW_PYTHON_ERROR


ow_set_loader(_load_blas)


@cython.final
cdef class Code:
    """A Composite as instructions over built-in loops, for the interpreter.

    itemsizes: bytes of each register, the operands first. results: the registers that are outputs.
    reducer: index of the reduction that folds the only result into the accumulator, or -1.
    instructions: (address of the loop, output register, input registers).
    """

    cdef ow_code code

    def __cinit__(self, int nin, list itemsizes, list results, list instructions, int reducer=-1):
        cdef int i, j
        cdef ow_code *c = &self.code
        c.reducer = &ow_kernels.reducers[reducer] if reducer >= 0 else NULL
        c.nin, c.nout, c.nreg, c.ninstr = nin, len(results), len(itemsizes), len(instructions)
        c.itemsize = <int32_t *>malloc(sizeof(int32_t) * max(1, c.nreg))
        c.results = <int32_t *>malloc(sizeof(int32_t) * max(1, c.nout))
        c.instr = <ow_instr *>calloc(max(1, c.ninstr), sizeof(ow_instr))
        if not (c.itemsize and c.results and c.instr):
            raise MemoryError()
        for i in range(c.nreg):
            c.itemsize[i] = itemsizes[i]
        for i in range(c.nout):
            c.results[i] = results[i]
        for i in range(c.ninstr):
            address, out, args = instructions[i]
            c.instr[i].fn = <ow_chunk_fn><uintptr_t>address
            c.instr[i].out = out
            c.instr[i].nin = len(args)
            for j in range(len(args)):
                c.instr[i].in_[j] = args[j]

    def __dealloc__(self):
        free(self.code.itemsize)
        free(self.code.results)
        free(self.code.instr)

    @property
    def address(self):
        return <uintptr_t>&self.code


INTERPRET = <uintptr_t>ow_interpret


include "locks.pxi"

cdef dict _DESCR = {}


cdef object _descr(int typenum):
    cdef object d = _DESCR.get(typenum)
    if d is None:
        d = _DESCR[typenum] = cnp.PyArray_DescrFromType(typenum)
    return d


cdef inline bint _read_only(object value):
    return isinstance(value, cnp.ndarray) and not PyArray_ISWRITEABLE(value)


def _address(function):
    """Return the address of a C function of ctypes."""
    import ctypes

    return ctypes.cast(function, ctypes.c_void_p).value


cdef object _interrupt = None


cdef int _look_at_signals() noexcept with gil:
    """Run the handlers of signals that came; return whether one raised, which is kept."""
    global _interrupt
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        _interrupt = error
        return 1
    return 0


cdef int _raise_interrupt() except -1:
    """Raise what a handler raised in ``_look_at_signals``."""
    global _interrupt
    error, _interrupt = _interrupt, None
    raise error


cdef object _copied(value):
    """Return a copy of an input that is about to be overwritten."""
    return np.array(value) if isinstance(value, np.ndarray) else copy.deepcopy(value)


ctypedef int (*ow_push)(const char *) noexcept nogil
ctypedef int (*ow_pop)() noexcept nogil


@cython.final
cdef class VM:
    """The machine that runs one program.

    cells: a list of (type number or -1, ndim, itemsize, is a scalar). steps: a list of (kind or
    None, input cells, output cells, ints, reals, loop address, context address, what to keep alive,
    perform, node). A step without a kind calls ``perform(node, inputs, storage)``.
    inputs, outputs: (cell, one-element list) pairs. constants: {cell: value}. parents: for each
    cell the cell whose memory it may share, or -1. dies: for each step the cells that nobody reads
    later; ends: those that go when the results are handed over. commit: the first step after which
    an input may be overwritten; destroyed: the input cells that steps from there on overwrite.
    on_error: called as (step index, exception, inputs) when a step fails; it raises.
    """

    cdef ow_cell *cells
    cdef ow_step *steps
    cdef int ncells, nsteps, ninputs, noutputs, nends, commit
    cdef bint running, careful, atomic
    cdef char error[400]
    cdef int *input_cell
    cdef int *output_cell
    cdef int *parent
    cdef int *die_start
    cdef int *die_cell
    cdef int *end_cell
    cdef list input_storage, output_storage, performs, nodes, keep, storages, destroyed
    cdef object on_error
    cdef void **memory
    cdef int nmemory
    cdef readonly bint allow_gc
    # timing, where it is asked for
    cdef bint timed, ignoring
    cdef ow_timing *times
    cdef readonly int64_t calls, total_ns, first_ns
    # ranges for system profilers, where they are asked for
    cdef bint marked
    cdef ow_push push
    cdef ow_pop pop
    cdef bytes call_label
    cdef list labels
    cdef object keep_marks
    cdef int open_ranges

    def __cinit__(self, list cells, list steps, list inputs, list outputs, dict constants,
                  list parents, list dies, list ends, int commit, list destroyed, on_error,
                  bint allow_gc=True):
        cdef int i
        cdef ow_step *s
        cdef ow_cell *c
        ow_warm_thread()
        self.ncells, self.nsteps = len(cells), len(steps)
        self.ninputs, self.noutputs = len(inputs), len(outputs)
        self.commit, self.on_error, self.allow_gc = commit, on_error, allow_gc
        self.destroyed = destroyed
        self.cells = <ow_cell *>calloc(max(1, self.ncells), sizeof(ow_cell))
        self.steps = <ow_step *>calloc(max(1, self.nsteps), sizeof(ow_step))
        self.nmemory = 0
        self.memory = <void **>calloc(8 + 4 * max(1, self.nsteps), sizeof(void *))
        self.input_cell = self._ints([cell for cell, _ in inputs])
        self.output_cell = self._ints([cell for cell, _ in outputs])
        self.parent = self._ints(parents)
        self.input_storage = [storage for _, storage in inputs]
        self.output_storage = [storage for _, storage in outputs]
        starts, flat = [0], []
        for dead in dies:
            flat.extend(dead)
            starts.append(len(flat))
        self.die_start, self.die_cell = self._ints(starts), self._ints(flat)
        self.end_cell, self.nends = self._ints(ends), len(ends)
        for i in range(self.ncells):
            c = &self.cells[i]
            c.typenum, c.ndim, c.itemsize, c.scalar = cells[i]
        self.performs, self.nodes, self.keep, self.storages = [], [], [], []
        flags = []
        for i in range(self.nsteps):
            kind, ins, outs, ints, reals, loop, ctx, keep, perform, node = steps[i]
            s = &self.steps[i]
            s.nin, s.nout = len(ins), len(outs)
            s.in_, s.out = self._cells(ins), self._cells(outs)
            s.error = self.error
            self.performs.append(perform)
            self.nodes.append(node)
            self.keep.append(keep)
            self.storages.append(None if perform is None else (list(ins), list(outs)))
            if kind is None:
                flags.append(0)
                continue
            self._set_kind(s, kind, flags)
            s.ints = self._longs(ints)
            s.reals = self._doubles(reals)
            s.loop = <ow_loop><uintptr_t>loop
            s.ctx = <const void *><uintptr_t>ctx
        # the step at `commit` overwrites an input, those after it must not fail any more
        late = flags[commit:]
        self.atomic = (all(f & OW_STATIC for f in late) and all(f & OW_TOTAL for f in late[1:])
                       and all(f & (OW_TOTAL | OW_CHECKED) for f in late[:1]))
        for cell, value in constants.items():
            self._take(cell, value)

    cdef void _set_kind(self, ow_step *s, str kind, list flags):
        cdef bytes name = kind.encode()
        cdef const ow_kind *k = ow_find_kind(name)
        if k == NULL:
            raise KeyError(f"there is no kind of C step named {kind}")
        s.prep, s.run = k.prep, k.run
        flags.append(k.flags)

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

    cdef int64_t *_longs(self, values):
        cdef int64_t *p = <int64_t *>self._block(sizeof(int64_t) * len(values))
        cdef int i
        for i in range(len(values)):
            p[i] = values[i]
        return p

    cdef double *_doubles(self, values):
        cdef double *p = <double *>self._block(sizeof(double) * len(values))
        cdef int i
        for i in range(len(values)):
            p[i] = values[i]
        return p

    cdef ow_cell **_cells(self, indices):
        cdef ow_cell **p = <ow_cell **>self._block(sizeof(ow_cell *) * len(indices))
        cdef int i
        for i in range(len(indices)):
            p[i] = &self.cells[<int>indices[i]]
        return p

    def __dealloc__(self):
        cdef int i
        if self.cells != NULL:
            for i in range(self.ncells):
                self._release(i)
                ow_free(self.cells[i].buf)
        if self.steps != NULL:
            for i in range(self.nsteps):
                ow_free(self.steps[i].scratch)
        if self.memory != NULL:
            for i in range(self.nmemory):
                free(self.memory[i])
        free(self.memory)
        free(self.cells)
        free(self.steps)
        ow_timing_free(self.times)

    # --- between cells and Python ---------------------------------------------------------------

    cdef inline void _release(self, int i) noexcept:
        """Let go of the Python object that a cell holds."""
        cdef ow_cell *c = &self.cells[i]
        cdef PyObject *owner = <PyObject *>c.owner
        if owner != NULL:
            c.owner = NULL
            Py_DECREF(<object>owner)

    cdef inline void _own(self, int i, object value):
        """Let a cell keep a Python object alive."""
        self._release(i)
        Py_INCREF(value)
        self.cells[i].owner = <void *>value

    cdef int _load(self, int i, object value) except -1:
        """Point an input cell to ``value`` and keep it alive: its storage may change."""
        cdef ow_cell *c = &self.cells[i]
        cdef int d
        if (
            c.typenum >= 0
            and PyArray_CheckExact(value)
            and cnp.PyArray_TYPE(<cnp.ndarray>value) == c.typenum
            and cnp.PyArray_NDIM(<cnp.ndarray>value) == c.ndim
            and PyArray_ISBEHAVED_RO(value)
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
        """Let a cell hold ``value`` and keep it alive; TypeError if it does not fit the cell."""
        cdef ow_cell *c = &self.cells[i]
        cdef cnp.ndarray a
        cdef int d
        if c.typenum < 0:
            self._own(i, value)
            return 0
        if c.scalar or isinstance(value, np.generic):
            value = np.asarray(value)
        if not isinstance(value, np.ndarray):
            value = hooks.to_host(value)
        if not isinstance(value, np.ndarray):
            raise TypeError(f"expected an ndarray, not {value!r}")
        a = value
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
        """Return the value of a cell as a Python object; memory of a cell is handed over to it."""
        cdef ow_cell *c = &self.cells[i]
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
        if c.buf != NULL and c.data == c.buf and (ow_is_c_contiguous(c) or ow_is_fortran(c)):
            a = ow_wrap(c.typenum, c.ndim, shape, strides, c.buf, True)
            c.buf = NULL
            c.cap = 0
            self._own(i, a)
            return a
        holder = self._holder(i)
        if holder < 0:
            raise SystemError("the virtual machine lost track of a value's memory")
        if self.cells[holder].buf == NULL and self._shows(c, <object>self.cells[holder].owner):
            return <object>self.cells[holder].owner
        base = self._base(holder)
        a = ow_wrap(c.typenum, c.ndim, shape, strides, c.data, False)
        Py_INCREF(base)  # the array takes this reference
        PyArray_SetBaseObject(a, base)
        if _read_only(base):
            PyArray_CLEARFLAGS(a, cnp.NPY_ARRAY_WRITEABLE)
        if holder != i or c.owner == NULL:
            self._own(i, a)
        return a

    cdef bint _shows(self, ow_cell *c, object owner):
        """Return whether an array shows just what a cell does."""
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
        """Return the cell that holds the memory of cell ``i``: itself, or one up its views."""
        cdef char *data = self.cells[i].data
        cdef ow_cell *c
        while i >= 0:
            c = &self.cells[i]
            if c.buf != NULL and c.buf <= data <= c.buf + c.cap:
                return i
            if c.owner != NULL:
                return i
            i = self.parent[i]
        return -1

    cdef object _base(self, int i):
        """Return the Python object that keeps the memory of a holder alive."""
        cdef ow_cell *c = &self.cells[i]
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
        """Return the value of a cell as ``perform`` and callers see it."""
        value = self._array(i)
        if self.cells[i].scalar and value is not None:
            return value[()]
        return value

    # --- running ----------------------------------------------------------------------------------

    cdef int _step(self, int k, bint prepare, bint execute) except -1:
        """Run one step; on failure raise what ``on_error`` makes of it."""
        cdef ow_step *s = &self.steps[k]
        cdef int rc
        if self.careful:
            self._check_inputs(k)
        if s.run == NULL:
            if execute:
                try:
                    self._perform(k)
                except BaseException as e:
                    self._fail(k, e)
            return 0
        rc = s.prep(s) if prepare else 0
        if rc == 0 and execute:
            if ow_is_long(s):
                return self._run_long(k)
            rc = s.run(s)
        if rc != 0:
            self._fail(k, self._exception(rc))
        return 0

    cdef int _run_long(self, int k) except -1:
        """Run one step that is worth letting other threads run meanwhile, and looking for signals.

        Signals wait where inputs are being overwritten of which there is no copy.
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
        if stopped:
            _raise_interrupt()
        if rc != 0:
            self._fail(k, self._exception(rc))
        if interruptible:
            PyErr_CheckSignals()
        return 0

    cdef _perform(self, int k):
        """Call ``perform`` of a step on Python values."""
        cdef int i
        ins, outs = <tuple>self.storages[k]
        inputs = [self._value(i) for i in ins]
        storage = [[None] for _ in outs]
        self.performs[k](self.nodes[k], inputs, storage)
        for position, (i, cell) in enumerate(zip(outs, storage)):
            value = cell[0]
            if value is None and self.cells[i].typenum >= 0:
                raise ValueError(f"{self.nodes[k].op} did not compute its output")
            if _read_only(value) and not self.nodes[k].op.view_map.get(position):
                value = np.array(value)  # what comes after may overwrite it
            ow_free(self.cells[i].buf)
            self.cells[i].buf = NULL
            self.cells[i].cap = 0
            self._take(i, value)

    cdef _check_inputs(self, int k):
        cdef ow_step *s = &self.steps[k]
        cdef int i
        for i in range(s.nin):
            if s.in_[i].data == NULL and s.in_[i].typenum >= 0:
                self._fail(k, ValueError("expected an ndarray, not None"))

    cdef object _exception(self, int rc):
        global _load_error
        if rc == OW_PYTHON_ERROR:
            error, _load_error = _load_error, None
            return error
        message = self.error.decode(errors="replace")
        if rc == OW_INDEX_ERROR:
            return IndexError(message)
        if rc == OW_TYPE_ERROR:
            return TypeError(message)
        if rc == OW_MEMORY_ERROR:
            return MemoryError(message)
        if rc == OW_ZERO_DIVISION:
            return ZeroDivisionError(message)
        return ValueError(message)

    cdef _fail(self, int k, exception):
        cdef ow_step *s = &self.steps[k]
        cdef int i
        inputs = []
        for i in range(s.nin):
            inputs.append(self._value(<int>(s.in_[i] - self.cells)))
        self.on_error(k, exception, inputs)
        raise exception

    cdef int _load_inputs(self) except -1:
        cdef int i
        self.careful = False
        for i in range(self.ninputs):
            self._load(self.input_cell[i],
                       <object>PyList_GET_ITEM(<list>PyList_GET_ITEM(self.input_storage, i), 0))
        if self.commit < self.nsteps:
            for i in self.destroyed:
                value = <object>self.cells[i].owner
                if _read_only(value):
                    self._take(i, np.array(value))
        return 0

    cdef inline void _release_dead(self, int k) noexcept:
        """Let go of what nobody reads after step ``k``."""
        cdef int j, i
        cdef ow_cell *c
        for j in range(self.die_start[k], self.die_start[k + 1]):
            i = self.die_cell[j]
            c = &self.cells[i]
            if c.owner != NULL:
                self._release(i)
            # small buffers stay for the next call: there is nothing to gain
            if self.allow_gc and c.cap > 65536:
                ow_free(c.buf)
                c.buf = NULL
                c.cap = 0

    cdef int _run_steps(self) except -1:
        self._run_range(0, self.commit, True)
        if self.commit < self.nsteps:
            self._run_committed()
        return 0

    cdef int _run_range(self, int first, int end, bint prepare) except -1:
        """Run some steps; each way to do so is a loop of its own, without tests for the others."""
        if self.marked:
            return self._loop(first, end, prepare, self.timed, True)
        if self.timed:
            return self._loop(first, end, prepare, True, False)
        return self._loop(first, end, prepare, False, False)

    cdef inline int _loop(self, int first, int end, bint prepare, bint timed,
                          bint marked) except -1:
        cdef int k
        cdef int64_t before, now
        before = ow_clock() if timed else 0
        for k in range(first, end):
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
            self._release_dead(k)
            if k & 63 == 63 and not (self.atomic and k >= self.commit):
                PyErr_CheckSignals()
        return 0

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
            for k in range(self.commit, self.nsteps):
                self._step(k, True, False)
        else:
            copies = [(i, _copied(self._array(i))) for i in self.destroyed]
        try:
            self._run_range(self.commit, self.nsteps, not self.atomic)
        except BaseException:
            if copies is not None:
                self._put_back(copies)
            raise
        return 0

    cdef _put_back(self, list copies):
        """Give inputs the values that they had before: arrays in place, other objects as copies."""
        cdef int j
        for i, saved in copies:
            if isinstance(saved, np.ndarray):
                self._array(i)[...] = saved
                continue
            for j in range(self.ninputs):
                if self.input_cell[j] == i:
                    (<list>self.input_storage[j])[0] = saved

    cdef int _finish(self) except -1:
        """Hand the outputs over and forget the inputs."""
        cdef int i
        for i in range(self.noutputs):
            (<list>self.output_storage[i])[0] = self._value(self.output_cell[i])
        self._forget()
        return 0

    cdef void _forget(self) noexcept:
        cdef int i
        for i in range(self.nends):
            self._release(self.end_cell[i])
        for i in range(self.ninputs):
            self._release(self.input_cell[i])

    cdef int run(self) except -1:
        """Run the program on what the input storages hold; leave results in the output storages."""
        cdef int64_t start, elapsed
        if self.running:
            raise RuntimeError(BUSY)
        self.running = True
        try:
            if self.marked:
                self._open(self.call_label)
            self._load_inputs()
            if self.timed:
                start = ow_clock()
                self._run_steps()
                elapsed = ow_clock() - start
                self.total_ns += elapsed
                if self.calls == 0:
                    self.first_ns = elapsed
                self.calls += 1
                ow_keep(self.times, self.calls, start, elapsed)
                if self.ignoring:
                    self.ignoring = False
                    self.reset_timing()
            else:
                self._run_steps()
            self._finish()
        except BaseException:
            self._abandon()
            raise
        finally:
            while self.open_ranges:  # that of the call; where it fails, that of a step too
                self._close()
            self.running = False
        return 0

    def start_marking(self, push, pop, bytes label, list labels):
        """Push a range for each call and each step from now on, and pop it at its end.

        push, pop: C functions, of ctypes. label: that of a call; labels: of steps.
        """
        self.push = <ow_push><uintptr_t>_address(push)
        self.pop = <ow_pop><uintptr_t>_address(pop)
        self.call_label, self.labels, self.keep_marks = label, labels, (push, pop)
        self.marked = True

    cdef void _abandon(self) noexcept:
        """Forget every value of a failed call; memory stays."""
        cdef int i
        for i in range(self.nsteps):
            for j in range(self.steps[i].nout):
                self._release(<int>(self.steps[i].out[j] - self.cells))
        self._forget()

    def __call__(self):
        self.run()

    cdef _forget_call(self):
        """Forget a call of a thread that a forked process does not have.

        That thread may have been at work on any memory, which is therefore not used any more.
        """
        cdef int i
        if not self.running:
            return
        for i in range(self.ncells):
            self.cells[i].buf = NULL
            self.cells[i].cap = 0
        for i in range(self.nsteps):
            self.steps[i].scratch = NULL
            self.steps[i].scratch_cap = 0
        self._abandon()
        self.open_ranges = 0
        self.running = False

    def free(self):
        """Give back the memory kept between calls."""
        cdef int i
        if self.running:
            raise RuntimeError("The function is running: its memory cannot be freed")
        for i in range(self.ncells):
            ow_free(self.cells[i].buf)
            self.cells[i].buf = NULL
            self.cells[i].cap = 0
        for i in range(self.nsteps):
            ow_free(self.steps[i].scratch)
            self.steps[i].scratch = NULL
            self.steps[i].scratch_cap = 0

    def kept_bytes(self):
        """Return the bytes of memory kept between calls."""
        cdef int i
        cdef int64_t total = 0
        for i in range(self.ncells):
            total += self.cells[i].cap
        for i in range(self.nsteps):
            total += self.steps[i].scratch_cap
        return total

    # --- what a profile reads -------------------------------------------------------------------

    def layouts(self):
        """Return (shape, strides in bytes) by cell, as of the last call; None for no array."""
        cdef int i, d
        cdef ow_cell *c
        found = []
        for i in range(self.ncells):
            c = &self.cells[i]
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

    def start_timing(self, bint ignore_first_call=False):
        """Record the time of every step from now on, or from the second call on."""
        self.ignoring = ignore_first_call
        ow_clock_calibrate()
        ow_timer_measure()
        if self.times == NULL:
            self.times = ow_timing_new(self.nsteps)
            if self.times == NULL:
                raise MemoryError()
        self.timed = True

    def reset_timing(self):
        """Forget all recorded times."""
        if self.times != NULL:
            ow_timing_forget(self.times)
        self.calls = self.total_ns = self.first_ns = 0

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
                          tuple([(b, t.histogram[b]) for b in range(OW_BUCKETS)
                                 if t.histogram[b]])))
        return found

    def detail(self):
        """Return (number, start, [nanoseconds by step]) of the first calls and the slowest."""
        cdef int i, k
        cdef ow_call *kept
        cdef int64_t *row
        found = []
        for i in range(OW_KEPT if self.times != NULL else 0):
            kept = &self.times.kept[i]
            if kept.number:
                row = self.times.rows + i * self.times.nsteps
                found.append((kept.number, kept.start, [row[k] for k in range(self.nsteps)]))
        return sorted(found)


cdef class PythonVM:
    """Base of the virtual machines that are written in Python; a subclass defines ``call()``.

    What must happen however a call ends happens here, in C, where no signal handler can run in
    between. The subclass says in ``call`` what that is:

    overwritten: (storage, value, copy of it) of each input that may be overwritten from now on. If
    the call fails, the value is put back: into the array itself, or as another object.
    intermediate, temporary: storages that are emptied if the call fails, and in any case.
    restored: (storage, value), put back in any case, after that.
    """

    cdef readonly bint running
    cdef public list overwritten, restored, intermediate, temporary

    def __cinit__(self, *args, **kwargs):
        self.overwritten, self.restored = [], []
        self.intermediate, self.temporary = [], []

    def call(self):
        raise NotImplementedError

    def __call__(self):
        if self.running:
            raise RuntimeError(BUSY)
        self.running = True
        self.overwritten, self.restored = [], []
        try:
            self.call()
        except BaseException:
            self.undo()
            raise
        finally:
            self._end()

    cpdef undo(self):
        """Give inputs the values that they had before the call, and forget intermediate ones."""
        for storage, value, before in self.overwritten:
            if isinstance(value, np.ndarray):
                value[...] = before
            else:
                (<list>storage)[0] = before
        self.forget()

    cpdef forget(self):
        """Forget every intermediate value."""
        for storage in self.intermediate:
            (<list>storage)[0] = None

    cdef _end(self):
        for storage in self.temporary:
            (<list>storage)[0] = None
        for storage, value in self.restored:
            (<list>storage)[0] = value
        self.overwritten, self.restored = [], []
        self.running = False

    cdef _forget_call(self):
        """Forget a call of a thread that a forked process does not have."""
        if self.running:
            self._end()


@cython.final
cdef class Slot:
    """How one positional argument of a function is checked and where it goes."""

    cdef list storage
    cdef object filter
    cdef int typenum, ndim
    cdef bint exact, number

    def __init__(self, list storage, int typenum, int ndim, bint exact, bint number, filter):
        """typenum, ndim, exact: an array of these needs no check at all; number: nor does a Python
        number; filter: for the others."""
        self.storage, self.filter = storage, filter
        self.typenum, self.ndim, self.exact, self.number = typenum, ndim, exact, number


cdef object _number(object value, int typenum):
    """Return a Python number as an array without dimensions; None where that is not as simple."""
    cdef int overflow = 0
    cdef long long whole = 0
    cdef bint is_float = PyFloat_Check(value)
    cdef cnp.ndarray a
    if not is_float:
        if not PyLong_CheckExact(value):
            return None
        whole = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow or (typenum == cnp.NPY_FLOAT64 and not -(1 << 53) <= whole <= (1 << 53)):
            return None
    elif typenum != cnp.NPY_FLOAT64:
        return None
    a = cnp.PyArray_SimpleNew(0, NULL, typenum)
    if typenum == cnp.NPY_FLOAT64:
        (<double *>cnp.PyArray_DATA(a))[0] = PyFloat_AS_DOUBLE(value) if is_float else <double>whole
    else:
        (<long long *>cnp.PyArray_DATA(a))[0] = whole
    return a


cdef class CallPath:
    """Calls a compiled function: checks arguments, runs the machine, hands results over.

    Subclasses define ``call_general(args, kwargs)`` for calls that need more than positional
    arguments, and ``explain(error, index, value)`` for arguments that are refused.
    """

    cdef list slots
    cdef int nslots
    cdef VM vm
    cdef object fn_
    cdef list outputs, updates
    cdef int noutputs, nupdates
    cdef bint single, slow, none, running
    cdef unsigned long caller
    cdef int generation
    cdef Claim claim
    cdef public bint trust_input
    cdef bint timed, ignoring, begun
    #: calls that returned, and that raised; nanoseconds in all of them, of these in the machine,
    #: and in the first one of all, 0 where that was forgotten
    cdef readonly int64_t calls, failed, total_ns, fn_ns, first_ns

    def set_path(self, fn, list slots, list outputs, list updates, bint single, bint none,
                 bint slow, Claim claim):
        """Say what a call does.

        fn: the machine. slots: one for each positional argument. outputs: the storages of results.
        updates: (storage of the new value, storage to put it in). single, none: return the only
        result, or None, instead of a list. slow: always use ``call_general``. claim: the locks of
        the values that are kept between calls.
        """
        self.fn_ = fn
        self.vm = fn if isinstance(fn, VM) else None
        self.slots, self.nslots = slots, len(slots)
        self.outputs, self.noutputs = outputs, len(outputs)
        self.updates, self.nupdates = updates, len(updates)
        self.single, self.none, self.slow = single, none, slow
        self.claim = claim if claim.nlocks else None

    @property
    def fn(self):
        return self.fn_

    def __call__(self, *args, **kwargs):
        cdef int64_t start
        if self.running:  # before anything is touched that the call under way needs
            self._wait()
        self.running = True
        self.caller = PyThread_get_thread_ident()
        self.generation = _generation
        try:
            if not self.timed:
                return self._call(args, kwargs)
            start = ow_clock()
            try:
                result = self._call(args, kwargs)
            except BaseException:
                self._count(ow_clock() - start)
                self.failed += 1
                raise
            self._count(ow_clock() - start)
            self.calls += 1
            if self.ignoring:
                self.ignoring = False
                self.reset_calls()
            return result
        finally:
            self.running = False

    cdef void _count(self, int64_t ns) noexcept:
        self.total_ns += ns
        if not self.begun:
            self.begun, self.first_ns = True, ns

    cdef int _wait(self) except -1:
        """Wait for the call of another thread; raise if the call under way is this thread's own."""
        if self.caller == PyThread_get_thread_ident():
            raise RuntimeError(BUSY)
        if self.generation != _generation:
            self._forget_call()
        while self.running:
            with nogil:
                usleep(50)
            PyErr_CheckSignals()
        return 0

    cdef _forget_call(self):
        """Forget a call of a thread that a forked process does not have."""
        if self.vm is not None:
            self.vm._forget_call()
        elif isinstance(self.fn_, PythonVM):
            (<PythonVM>self.fn_)._forget_call()
        self.running = False

    def start_timing(self, bint ignore_first_call=False):
        """Count calls and their time from now on, or from the second one on."""
        self.timed, self.ignoring = True, ignore_first_call

    def reset_calls(self):
        """Forget how often and how long the function was called."""
        self.calls = self.failed = self.total_ns = self.fn_ns = self.first_ns = 0

    cdef object _call(self, tuple args, dict kwargs):
        cdef int i
        cdef Slot slot
        cdef object value
        if self.slow or kwargs or len(args) != self.nslots:
            return self.call_general(args, kwargs)
        if self.trust_input:
            for i in range(self.nslots):
                slot = <Slot>PyList_GET_ITEM(self.slots, i)
                slot.storage[0] = <object>PyTuple_GET_ITEM(args, i)
            return self.run()
        for i in range(self.nslots):
            value = <object>PyTuple_GET_ITEM(args, i)
            slot = <Slot>PyList_GET_ITEM(self.slots, i)
            if not (
                slot.exact
                and PyArray_CheckExact(value)
                and cnp.PyArray_TYPE(<cnp.ndarray>value) == slot.typenum
                and cnp.PyArray_NDIM(<cnp.ndarray>value) == slot.ndim
                and PyArray_ISBEHAVED_RO(value)
            ):
                number = _number(value, slot.typenum) if slot.number else None
                if number is not None:
                    slot.storage[0] = number
                    continue
                try:
                    value = slot.filter(value)
                except Exception as error:
                    self._forget_arguments()
                    self.explain(error, i, value)
                    raise
            slot.storage[0] = value
        return self.run()

    cpdef object run(self):
        """Run on what the input storages hold; return the results as the caller wants them."""
        if self.claim is None:
            return self._run()
        self.claim.take(-1)
        try:
            return self._run()
        finally:
            self.claim.release()

    cdef inline object _run(self):
        cdef int i
        cdef int64_t start
        cdef list results, storage
        cdef object value
        start = ow_clock() if self.timed else 0
        try:
            if self.vm is not None:
                self.vm.run()
            else:
                self.fn_()
        finally:
            self._forget_arguments()
            if self.timed:
                self.fn_ns += ow_clock() - start
        for i in range(self.nupdates):
            source, target = <tuple>PyList_GET_ITEM(self.updates, i)
            (<list>target)[0] = (<list>source)[0]
            (<list>source)[0] = None
        if self.single:
            storage = <list>PyList_GET_ITEM(self.outputs, 0)
            value = storage[0]
            storage[0] = None
            return value
        results = []
        for i in range(self.noutputs):
            storage = <list>PyList_GET_ITEM(self.outputs, i)
            results.append(storage[0])
            storage[0] = None
        return None if self.none else results

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

    cdef void _forget_arguments(self):
        cdef int i
        for i in range(self.nslots):
            (<Slot>PyList_GET_ITEM(self.slots, i)).storage[0] = None

    def call_general(self, args, kwargs):
        raise NotImplementedError

    def explain(self, error, index, value):
        raise NotImplementedError


cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *, int)
    void *dlsym(void *, const char *)
    char *dlerror()
    int dlclose(void *)
    int RTLD_NOW, RTLD_LOCAL


@cython.final
cdef class Library:
    """A shared library of generated kernels. Who keeps an address of it must keep it, too.

    name: what messages call it (default: its path).
    """

    cdef object __weakref__
    cdef void *handle
    cdef readonly str name

    def __init__(self, str path, str name=None):
        self.name = path if name is None else name
        self.handle = dlopen(path.encode(errors="surrogateescape"), RTLD_NOW | RTLD_LOCAL)
        if self.handle == NULL:
            raise OSError(dlerror().decode(errors="replace"))

    def __dealloc__(self):
        if self.handle != NULL:
            dlclose(self.handle)

    def symbol(self, str name):
        """Return the address of a function."""
        cdef void *address = dlsym(self.handle, name.encode())
        if address == NULL:
            raise OSError(f"{self.name} has no {name}")
        return <uintptr_t>address


cdef extern from "probe.h" nogil:
    int OW_PROBE_SLACK
    double ow_probe_stream(char *, int64_t, int, double)
    double ow_probe_rate(int, int, int, double)

PROBE_SLACK = OW_PROBE_SLACK


def probe_stream(unsigned char[::1] memory, int64_t bytes, bint shared, double seconds):
    """Return the GB/s, read and written, of z = x + y over arrays of ``bytes`` altogether.

    memory: where they lie, with PROBE_SLACK bytes more. shared: by all threads. seconds: about how
    long to look for the best pass.
    """
    cdef double rate
    if not 0 < bytes <= memory.shape[0] - OW_PROBE_SLACK:
        raise ValueError(f"arrays of {bytes} bytes do not fit into {memory.shape[0]}")
    with nogil:
        rate = ow_probe_stream(<char *>&memory[0], bytes, shared, seconds)
    return rate


def probe_rate(bint f64, bint fused, bint shared, double seconds):
    """Return the GFLOP/s of multiplications and additions of vectors in registers.

    f64: of float64, otherwise float32. fused: both rounded as one. Others as in ``probe_stream``.
    """
    cdef double rate
    with nogil:
        rate = ow_probe_rate(f64, fused, shared, seconds)
    return rate
