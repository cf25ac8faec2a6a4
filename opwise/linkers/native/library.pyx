# cython: language_level=3, binding=False
"""Generated kernels: loaded shared libraries, the functions of scipy that they call, and loops that
are compiled when they are needed.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport uintptr_t

from opwise.linkers.native.runtime cimport OW_OK, ow_loop
from opwise.linkers.native.signals cimport note

cdef extern from "borrowed.h":
    ctypedef struct ow_borrowed:
        const char *name
        void **pointer
    const ow_borrowed *ow_borrowed_rows
    int OW_BORROWED

cdef extern from "<fenv.h>" nogil:
    ctypedef struct fenv_t:
        pass
    int fegetenv(fenv_t *)
    int fesetenv(const fenv_t *)

cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *, int)
    void *dlsym(void *, const char *)
    char *dlerror()
    int dlclose(void *)
    int RTLD_NOW, RTLD_LOCAL


def load_special():
    """Take the functions of scipy that built-in loops call, unless they have been taken.

    Raises ImportError if scipy lacks one, or states another signature.
    """
    cdef int i
    if ow_borrowed_rows[OW_BORROWED - 1].pointer[0] != NULL:
        return
    from opwise.linkers import specialload  # few processes need these functions

    taken = {name: _function(name, capsules, signature.encode())
             for name, capsules, signature in specialload.functions()}
    for i in range(OW_BORROWED):
        name = ow_borrowed_rows[i].name.decode()
        ow_borrowed_rows[i].pointer[0] = <void *><uintptr_t>taken[name]


cdef uintptr_t _function(name, capsules, bytes signature) except 0:
    """Return the address in the capsule that has a signature."""
    for capsule in capsules:
        if PyCapsule_IsValid(capsule, signature):
            return <uintptr_t>PyCapsule_GetPointer(capsule, signature)
    raise ImportError(
        f"this scipy has no {name.removeprefix('ow_scipy_')} with the signature "
        f"{signature.decode()!r} in scipy.special.cython_special, which opwise was written for"
    )


def lend(handle):
    """Give a loaded library, the handle of dlopen, the functions of scipy that it calls."""
    _lend(<void *><uintptr_t>handle)


cdef int _lend(void *handle) except -1:
    cdef void **variable
    cdef int i
    if dlsym(handle, b"ow_borrows") == NULL:
        return 0
    load_special()
    for i in range(OW_BORROWED):
        variable = <void **>dlsym(handle, ow_borrowed_rows[i].name)
        if variable != NULL:
            variable[0] = ow_borrowed_rows[i].pointer[0]
    return 0


@cython.final
cdef class Library:
    """A shared library of generated kernels. Who keeps an address of it must keep it, too.

    name: what messages call it (default: its path).
    """

    def __init__(self, str path, str name=None):
        cdef fenv_t before
        self.name = path if name is None else name
        # what gcc links to code of users with -ffast-math flushes subnormal numbers in this thread
        fegetenv(&before)
        self.handle = dlopen(path.encode(errors="surrogateescape"), RTLD_NOW | RTLD_LOCAL)
        fesetenv(&before)
        if self.handle == NULL:
            raise OSError(dlerror().decode(errors="replace"))
        _lend(self.handle)

    def __dealloc__(self):
        if self.handle != NULL:
            dlclose(self.handle)

    def symbol(self, str name):
        """Return the address of a function."""
        cdef void *address = dlsym(self.handle, name.encode())
        if address == NULL:
            raise OSError(f"{self.name} has no {name}")
        return <uintptr_t>address


@cython.final
cdef class OnDemand:
    """A loop that is compiled when a step first needs it.

    compile: returns (address, what owns the memory there), or None if that cannot be done.
    """

    def __init__(self, compile):
        self.compile = compile
        self.demanded.owner = <void *>self

    @property
    def address(self):
        return <uintptr_t>&self.demanded

    def load(self):
        """Compile the loop now, unless that was tried before."""
        if self.demanded.loop != NULL or self.demanded.missing:
            return
        found = self.compile()
        if found is None:
            self.demanded.missing = 1
        else:
            address, self.keep = found
            self.demanded.loop = <ow_loop><uintptr_t>address


cdef int _compile_on_demand(ow_on_demand *demanded) noexcept with gil:
    """Called by a step before its first run that needs the loop."""
    try:
        (<OnDemand>demanded.owner).load()
        return OW_OK
    except BaseException as e:
        return note(e)


ow_compile_on_demand = _compile_on_demand
