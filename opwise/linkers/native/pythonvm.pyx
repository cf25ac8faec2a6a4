# cython: language_level=3, binding=False
"""PythonVM: base of the VMs that are written in Python."""

from opwise.linkers.native.generators cimport restore

from opwise.linkers.native.locks import BUSY


cdef class PythonVM:
    """Base of the VMs that are written in Python; a subclass defines ``call()``.

    What must happen however a call ends happens here, in C, where no signal handler can run in
    between. The subclass says in ``call`` what that is:

    overwritten: (storage, value, ``saved(value)``) of each input that may be overwritten from now
    on. If the call fails, the value is put back: into the object itself, or as another object.
    intermediate, temporary: storages that are emptied if the call fails, and in any case.
    restored: (storage, value), put back in any case, after that.
    """

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
            if not restore(value, before):
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

    cdef forget_call(self):
        """Forget a call of a thread that a forked process does not have."""
        if self.running:
            self._end()
