# cython: language_level=3
# The values of a program, in memory of C.

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from opwise.linkers.native.arrays cimport (
    PyArray_CheckExact,
    PyArray_DATA,
    PyArray_DIM,
    PyArray_ISBEHAVED_RO,
    PyArray_ISWRITEABLE,
    PyArray_NDIM,
    PyArray_STRIDE,
    PyArray_TYPE,
    ndarray,
)
from opwise.linkers.native.runtime cimport ow_free, ow_slot


cdef inline bint is_read_only(object value):
    return isinstance(value, ndarray) and not PyArray_ISWRITEABLE(value)


cdef inline void put(list storage, object value) noexcept:
    """Put a value into a storage, a list of one."""
    cdef PyObject *old = PyList_GET_ITEM(storage, 0)
    Py_INCREF(value)
    PyList_SET_ITEM(storage, 0, value)
    Py_DECREF(<object>old)


@cython.final
cdef class Arena:
    cdef void **chunks
    cdef int count
    # what is free of the last chunk
    cdef char *rest
    cdef size_t left

    cdef void *block(self, size_t size) except NULL
    cdef int _open_chunk(self, size_t least) except -1
    cdef int *ints(self, values) except NULL


@cython.final
@cython.no_gc
cdef class Slots:
    cdef ow_slot *at
    cdef int count
    cdef int *parent
    cdef Arena arena

    cdef ow_slot **pointers(self, indices) except NULL
    cdef int take(self, int i, object value) except -1
    cdef object array(self, int i)
    cdef bint shows(self, ow_slot *c, object owner)
    cdef int holder(self, int i) noexcept
    cdef object base(self, int i)

    cdef inline int of(self, const ow_slot *slot) noexcept:
        """Return the number of a slot."""
        return <int>(slot - self.at)

    cdef inline void give_up(self, int i) noexcept:
        """Give back the memory of a slot."""
        ow_free(self.at[i].buf)
        self.at[i].buf = NULL
        self.at[i].cap = 0

    cdef inline void release(self, int i) noexcept:
        """Release the Python object that a slot holds."""
        cdef ow_slot *c = &self.at[i]
        cdef PyObject *owner = <PyObject *>c.owner
        if owner != NULL:
            c.owner = NULL
            Py_DECREF(<object>owner)

    cdef inline void own(self, int i, object value):
        """Let a slot keep a Python object alive."""
        self.release(i)
        Py_INCREF(value)
        self.at[i].owner = <void *>value

    cdef inline int load(self, int i, object value) except -1:
        """Point a slot to ``value`` and keep it alive: its storage may change.

        Returns 1 for None in place of an array.
        """
        cdef ow_slot *c = &self.at[i]
        cdef int d
        if (
            c.typenum >= 0
            and PyArray_CheckExact(value)
            and PyArray_TYPE(<ndarray>value) == c.typenum
            and PyArray_NDIM(<ndarray>value) == c.ndim
            and PyArray_ISBEHAVED_RO(<ndarray>value)
        ):
            c.data = <char *>PyArray_DATA(<ndarray>value)
            for d in range(c.ndim):
                c.shape[d] = PyArray_DIM(<ndarray>value, d)
                c.strides[d] = PyArray_STRIDE(<ndarray>value, d)
            self.own(i, value)
            return 0
        if value is None or c.typenum < 0:
            c.data = NULL
            self.own(i, value)
            return c.typenum >= 0
        self.take(i, value)
        return 0

    cdef inline object value(self, int i):
        """Return the value of a slot as ``perform`` and callers see it."""
        value = self.array(i)
        if self.at[i].scalar and value is not None:
            return value[()]
        return value
