# PythonVM: base of the VMs that are written in Python. Included by opwise_c.pyx.

cdef inline bint _is_generator(object value):
    """Return whether a value is a ``numpy.random.RandomState``, without importing that."""
    return type(value).__name__ == "RandomState"


def saved(value):
    """Return what restores an input that is about to be overwritten: a copy, or its state.

    A copy of a generator takes several times as long as its state.
    """
    cdef SavedGenerator kept
    if isinstance(value, np.ndarray):
        return np.array(value)
    if _is_generator(value):
        kept = SavedGenerator()
        kept.save(value)
        return kept
    return copy.deepcopy(value)


cdef bint _restored(object value, object before) except -1:
    """Restore an overwritten value from what ``saved`` returned, or return False if it cannot."""
    if isinstance(value, np.ndarray):
        value[...] = before
    elif _is_generator(value):
        (<SavedGenerator>before).restore(value)
    else:
        return False
    return True


cdef class PythonVM:
    """Base of the VMs that are written in Python; a subclass defines ``call()``.

    What must happen however a call ends happens here, in C, where no signal handler can run in
    between. The subclass says in ``call`` what that is:

    overwritten: (storage, value, ``saved(value)``) of each input that may be overwritten from now
    on. If the call fails, the value is put back: into the object itself, or as another object.
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
            if not _restored(value, before):
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
