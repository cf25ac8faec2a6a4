# cython: language_level=3, binding=False
"""ObjectCode: compiled code of an Op that takes Python objects."""

cimport cython
from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from opwise.linkers.native.exceptions cimport raise_pending
from opwise.linkers.native.library cimport Library


@cython.final
cdef class ObjectCode:
    """One instance of compiled code between Python objects; it belongs to one step of one VM.

    library: has the functions ow_user_new, ow_user_run and ow_user_free. nin, nout: how many inputs
    and outputs there are. params: what ow_user_new takes. Raises what the code for the
    initialization raises.

    ``cells`` holds the inputs during a run, and the outputs: None, or a value of an earlier run
    that the code may use again.
    """

    def __cinit__(self, Library library, int nin, int nout, params):
        cdef ow_user_new create = <ow_user_new><uintptr_t>library.symbol("ow_user_new")
        self.library = library
        self.runs = <ow_user_run><uintptr_t>library.symbol("ow_user_run")
        self.frees = <ow_user_free><uintptr_t>library.symbol("ow_user_free")
        self.nin, self.nout = nin, nout
        self.cells = <PyObject **>calloc(nin + nout + 1, sizeof(PyObject *))
        if self.cells == NULL:
            raise MemoryError()
        self.state = create(<PyObject *>params)
        raise_pending()
        if self.state == NULL:
            raise RuntimeError("the initialization failed without an exception")

    def __dealloc__(self):
        cdef int i
        if self.cells != NULL:
            for i in range(self.nin + self.nout):
                self.put(i, None)
                Py_DECREF(None)
            free(self.cells)
        if self.state != NULL:
            self.frees(self.state)

    cdef int run(self) except -1:
        """Run the code on the cells."""
        cdef int failed = self.runs(self.state, self.cells)
        cdef int i
        for i in range(self.nin):
            self.put(i, None)
        if failed or PyErr_Occurred() != NULL:
            self.forget()
            raise_pending()
            raise RuntimeError(
                "Unexpected error in an Op's C code. No Python exception was set."
            )
        return 0

    cdef void forget(self) noexcept:
        """Forget the outputs."""
        cdef int i
        for i in range(self.nin, self.nin + self.nout):
            self.put(i, None)

    def __call__(self, list inputs, list outputs):
        """Run the code on storages, which are lists of one value."""
        cdef int i
        for i in range(self.nin):
            self.put(i, (<list>inputs[i])[0])
        for i in range(self.nout):
            self.put(self.nin + i, (<list>outputs[i])[0])
        self.run()
        for i in range(self.nout):
            (<list>outputs[i])[0] = self.output(i)
        self.forget()
