# Library: a loaded shared library of generated kernels. Included by opwise_c.pyx.

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
