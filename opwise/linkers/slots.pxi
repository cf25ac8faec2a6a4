# Slots: the values of a program, in memory of C. Included by opwise_c.pyx.

cdef dict _DESCR = {}


cdef object _descr(int typenum):
    cdef object d = _DESCR.get(typenum)
    if d is None:
        d = _DESCR[typenum] = cnp.PyArray_DescrFromType(typenum)
    return d


cdef inline bint _read_only(object value):
    return isinstance(value, cnp.ndarray) and not PyArray_ISWRITEABLE(value)


cdef inline void _put(list storage, object value) noexcept:
    """Put a value into a storage, a list of one."""
    cdef PyObject *old = PyList_GET_ITEM(storage, 0)
    Py_INCREF(value)
    PyList_SET_ITEM(storage, 0, value)
    Py_DECREF(<object>old)


@cython.final
cdef class Arena:
    """Blocks of memory that are freed with it. Blocks made one after the other lie side by side."""

    cdef void **chunks
    cdef int count
    # what is free of the last chunk
    cdef char *rest
    cdef size_t left

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

    cdef ow_slot *at
    cdef int count
    cdef int *parent
    cdef Arena arena

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

    cdef inline int of(self, const ow_slot *slot) noexcept:
        """Return the number of a slot."""
        return <int>(slot - self.at)

    cdef ow_slot **pointers(self, indices) except NULL:
        cdef ow_slot **p = <ow_slot **>self.arena.block(sizeof(ow_slot *) * len(indices))
        cdef int i
        for i, index in enumerate(indices):
            p[i] = &self.at[<int>index]
        return p

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

    cdef int load(self, int i, object value) except -1:
        """Point a slot to ``value`` and keep it alive: its storage may change.

        Returns 1 for None in place of an array.
        """
        cdef ow_slot *c = &self.at[i]
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
            self.own(i, value)
            return 0
        if value is None or c.typenum < 0:
            c.data = NULL
            self.own(i, value)
            return c.typenum >= 0
        self.take(i, value)
        return 0

    cdef int take(self, int i, object value) except -1:
        """Let a slot hold ``value`` and keep it alive; an error if it does not fit the slot."""
        cdef ow_slot *c = &self.at[i]
        cdef cnp.ndarray a
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
        self.own(i, a)
        return 0

    cdef object array(self, int i):
        """Return the value of a slot as a Python object; memory of a slot is handed over to it."""
        cdef ow_slot *c = &self.at[i]
        cdef cnp.ndarray a
        cdef object base
        cdef int holder, d
        cdef cnp.npy_intp shape[8]
        cdef cnp.npy_intp strides[8]
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
        if _read_only(base):
            PyArray_CLEARFLAGS(a, cnp.NPY_ARRAY_WRITEABLE)
        if holder != i or c.owner == NULL:
            self.own(i, a)
        return a

    cdef bint shows(self, ow_slot *c, object owner):
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
        cdef cnp.npy_intp size
        cdef cnp.ndarray a
        if c.buf == NULL:
            return <object>c.owner
        size = c.cap
        a = ow_wrap(cnp.NPY_UINT8, 1, &size, NULL, c.buf, True)
        c.buf = NULL
        c.cap = 0
        self.own(i, a)
        return a

    cdef object value(self, int i):
        """Return the value of a slot as ``perform`` and callers see it."""
        value = self.array(i)
        if self.at[i].scalar and value is not None:
            return value[()]
        return value
