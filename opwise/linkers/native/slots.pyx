# cython: language_level=3, binding=False
"""Slots: the values of a program, in memory of C."""

cimport cython
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport calloc, free, realloc

from opwise.linkers.native.arrays cimport (
    NPY_ARRAY_WRITEABLE,
    NPY_UINT8,
    PyArray_CheckExact,
    PyArray_CLEARFLAGS,
    PyArray_DATA,
    PyArray_DescrFromType,
    PyArray_DIM,
    PyArray_EquivTypenums,
    PyArray_ISBEHAVED_RO,
    PyArray_NDIM,
    PyArray_SetBaseObject,
    PyArray_STRIDE,
    PyArray_TYPE,
    import_array,
    ndarray,
    npy_intp,
)
from opwise.linkers.native.runtime cimport ow_free, ow_is_dense, ow_slot

import numpy as np

from opwise.graph import upcalls

cdef extern from *:
    """
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
    object ow_wrap(int, int, npy_intp *, npy_intp *, void *, int)

import_array()

cdef dict _DESCR = {}


cdef object _descr(int typenum):
    cdef object d = _DESCR.get(typenum)
    if d is None:
        d = _DESCR[typenum] = PyArray_DescrFromType(typenum)
    return d


@cython.final
cdef class Arena:
    """Blocks of memory that are freed with it. Blocks made one after the other lie side by side."""

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            free(self.chunks[i])
        free(self.chunks)

    cdef void *block(self, size_t size) except NULL:
        """Return a block of zeros."""
        cdef void *found
        size = (max(size, <size_t>1) + 15) & ~<size_t>15
        if size > self.left:
            self._open_chunk(size)
        found = self.rest
        self.rest += size
        self.left -= size
        return found

    cdef int _open_chunk(self, size_t least) except -1:
        cdef size_t size = max(least, <size_t>256 << min(self.count, 6))
        cdef void **chunks = <void **>realloc(self.chunks, (self.count + 1) * sizeof(void *))
        if chunks == NULL:
            raise MemoryError()
        self.chunks = chunks
        self.rest = <char *>calloc(1, size)
        if self.rest == NULL:
            self.left = 0
            raise MemoryError()
        self.chunks[self.count], self.left = self.rest, size
        self.count += 1
        return 0

    cdef int *ints(self, values) except NULL:
        cdef int *p = <int *>self.block(sizeof(int) * len(values))
        cdef int i
        for i, value in enumerate(values):
            p[i] = value
        return p


@cython.final
@cython.no_gc
cdef class Slots:
    """The values of a program during a call, each in a slot.

    layouts: (type number or -1, ndim, itemsize, is a scalar) of each. parents: for each the slot
    whose memory it may share, or -1.
    """

    def __cinit__(self, list layouts, parents):
        cdef int i
        self.arena, self.count = Arena(), len(layouts)
        self.at = <ow_slot *>self.arena.block(sizeof(ow_slot) * self.count)
        self.parent = self.arena.ints(parents)
        for i in range(self.count):
            self.at[i].typenum, self.at[i].ndim, self.at[i].itemsize, self.at[i].scalar = layouts[i]

    def __dealloc__(self):
        cdef int i
        if self.at != NULL:
            for i in range(self.count):
                self.release(i)
                ow_free(self.at[i].buf)

    cdef ow_slot **pointers(self, indices) except NULL:
        cdef ow_slot **p = <ow_slot **>self.arena.block(sizeof(ow_slot *) * len(indices))
        cdef int i
        for i, index in enumerate(indices):
            p[i] = &self.at[<int>index]
        return p

    cdef int take(self, int i, object value) except -1:
        """Let a slot hold ``value`` and keep it alive; an error if it does not fit the slot."""
        cdef ow_slot *c = &self.at[i]
        cdef ndarray a
        cdef int d
        if c.typenum < 0:
            self.own(i, value)
            return 0
        if c.scalar or isinstance(value, np.generic):
            value = np.asarray(value)
        if not isinstance(value, np.ndarray):
            value = upcalls.to_host(value)
        if not isinstance(value, np.ndarray):
            raise ValueError(f"expected an ndarray, not {value!r}")
        a = value
        if (
            PyArray_TYPE(a) != c.typenum
            and PyArray_EquivTypenums(PyArray_TYPE(a), c.typenum)
        ):
            # long long is long
            a = a.view(_descr(c.typenum)) if a.dtype.isnative else a.astype(_descr(c.typenum))
        if PyArray_TYPE(a) != c.typenum or PyArray_NDIM(a) != c.ndim:
            raise TypeError(
                f"expected an array of dtype {_descr(c.typenum)} and {c.ndim} dimensions, got "
                f"dtype {a.dtype} and shape {(<object>a).shape}"
            )
        if not PyArray_ISBEHAVED_RO(a):
            a = np.array(a, dtype=_descr(c.typenum), order="C")
        c.data = <char *>PyArray_DATA(a)
        for d in range(c.ndim):
            c.shape[d] = PyArray_DIM(a, d)
            c.strides[d] = PyArray_STRIDE(a, d)
        self.own(i, a)
        return 0

    cdef object array(self, int i):
        """Return the value of a slot as a Python object; memory of a slot is handed over to it."""
        cdef ow_slot *c = &self.at[i]
        cdef ndarray a
        cdef object base
        cdef int holder, d
        cdef npy_intp shape[8]
        cdef npy_intp strides[8]
        if c.typenum < 0:
            return <object>c.owner if c.owner != NULL else None
        if c.data == NULL:
            return None
        if c.owner != NULL and self.shows(c, <object>c.owner):
            return <object>c.owner
        for d in range(c.ndim):
            shape[d] = c.shape[d]
            strides[d] = c.strides[d]
        if c.buf != NULL and c.data == c.buf and ow_is_dense(c):
            a = ow_wrap(c.typenum, c.ndim, shape, strides, c.buf, True)
            c.buf = NULL
            c.cap = 0
            self.own(i, a)
            return a
        holder = self.holder(i)
        if holder < 0:
            raise SystemError("the VM lost track of a value's memory")
        if self.at[holder].buf == NULL and self.shows(c, <object>self.at[holder].owner):
            return <object>self.at[holder].owner
        base = self.base(holder)
        a = ow_wrap(c.typenum, c.ndim, shape, strides, c.data, False)
        Py_INCREF(base)  # the array takes this reference
        PyArray_SetBaseObject(a, base)
        if is_read_only(base):
            PyArray_CLEARFLAGS(a, NPY_ARRAY_WRITEABLE)
        if holder != i or c.owner == NULL:
            self.own(i, a)
        return a

    cdef bint shows(self, ow_slot *c, object owner):
        """Return whether an array shows just what a slot does."""
        cdef ndarray a
        cdef int d
        if not PyArray_CheckExact(owner):
            return False
        a = owner
        if (PyArray_DATA(a) != c.data or PyArray_NDIM(a) != c.ndim
                or PyArray_TYPE(a) != c.typenum):
            return False
        for d in range(c.ndim):
            if PyArray_DIM(a, d) != c.shape[d]:
                return False
            if c.shape[d] != 1 and PyArray_STRIDE(a, d) != c.strides[d]:
                return False
        return True

    cdef int holder(self, int i) noexcept:
        """Return the slot that holds the memory of slot ``i``: itself, or one up its views."""
        cdef char *data = self.at[i].data
        cdef ow_slot *c
        while i >= 0:
            c = &self.at[i]
            if c.buf != NULL and c.buf <= data <= c.buf + c.cap:
                return i
            if c.owner != NULL:
                return i
            i = self.parent[i]
        return -1

    cdef object base(self, int i):
        """Return the Python object that keeps the memory of a holder alive."""
        cdef ow_slot *c = &self.at[i]
        cdef npy_intp size
        cdef ndarray a
        if c.buf == NULL:
            return <object>c.owner
        size = c.cap
        a = ow_wrap(NPY_UINT8, 1, &size, NULL, c.buf, True)
        c.buf = NULL
        c.cap = 0
        self.own(i, a)
        return a
