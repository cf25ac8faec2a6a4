# cython: language_level=3
# The base of the VMs that are written in Python.


cdef class PythonVM:
    cdef readonly bint running
    cdef public list overwritten, restored, intermediate, temporary

    cpdef undo(self)
    cpdef forget(self)
    cdef _end(self)
    cdef forget_call(self)
