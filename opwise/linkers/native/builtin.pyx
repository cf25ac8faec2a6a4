# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""What is built in: limits, kinds of steps, loops, reducers, and the interpreter of elementwise
programs, which runs them over these loops.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc

from opwise.linkers.native.code cimport OW_CHUNK, OW_MAXREG, ow_code, ow_instr
from opwise.linkers.native.kinds cimport (
    OW_BY_IMAGES,
    OW_BY_KERNELS,
    OW_FORWARD,
    OW_KIND_TABLES,
    ow_adder_name,
    ow_argmaxer_name,
    ow_conv_algorithm_of,
    ow_cuts,
    ow_interpreter,
    ow_kind,
    ow_kind_tables,
)
from opwise.linkers.native.runtime cimport OW_MAXARG, OW_MAXDIM
from opwise.linkers.native.simd cimport (
    ow_chunk_fn,
    ow_kernels,
    ow_loop_row,
    ow_processor_vectors,
    ow_sort_in_place,
    ow_sort_in_place_fn,
    ow_use_kernels,
)

import numpy as np

cdef extern from "loops.h":
    const ow_loop_row *ow_loop_rows
    int ow_loop_count

cdef extern from "numpy/arrayobject.h":
    ctypedef class numpy.dtype [object PyArray_Descr, check_size ignore]:
        pass
    ctypedef struct PyArray_ArrFuncs:
        ow_sort_in_place_fn sort[3]
    int import_array "_import_array"() except -1
    PyArray_ArrFuncs *PyDataType_GetArrFuncs(dtype)

import_array()

MAXDIM = OW_MAXDIM
MAXARG = OW_MAXARG
MAXREG = OW_MAXREG
#: for which vectors the built-in kernels in use were compiled
VECTORS = ow_kernels.name.decode()
#: for which vectors kernels would use all that this processor has
PROCESSOR_VECTORS = ow_processor_vectors().decode()


def use_vectors(str name):
    """Use the built-in kernels for ``name``: "base", "avx2" or "avx512".

    They are what a processor with no wider vectors would use. Functions that are linked already may
    keep others. ValueError: this processor or this build has no such vectors.
    """
    if not ow_use_kernels(name.encode()):
        raise ValueError(f"there are no kernels for {name!r} here")
    LOOPS.update(_find_loops())


def needs_blas():
    """Return whether products call BLAS; if not, the built-in kernels compute all of them."""
    return not ow_kernels.products


def kinds():
    """Return {name of each kind of C steps: bytes of the struct of its parameters}."""
    found = {}
    cdef const ow_kind *k
    for i in range(OW_KIND_TABLES):
        k = ow_kind_tables[i]
        while k.name != NULL:
            found[k.name.decode()] = k.params
            k += 1
    return found


def conv_algorithm(str kind, bytes params, image, kernel, bint f64):
    """Return the name of the algorithm of a step of a convolution or of one of its gradients.

    kind: "conv", "conv_images" or "conv_kernels". params: the struct of the step. image, kernel:
    five lengths of contiguous operands. None: these lengths do not belong together.
    """
    cdef int64_t lengths[2][5]
    cdef const char *name
    cdef int i
    for i in range(5):
        lengths[0][i], lengths[1][i] = image[i], kernel[i]
    i = {"conv": OW_FORWARD, "conv_images": OW_BY_IMAGES, "conv_kernels": OW_BY_KERNELS}[kind]
    name = ow_conv_algorithm_of(i, PyBytes_AS_STRING(params), lengths[0], lengths[1], f64)
    return None if name == NULL else name.decode()


def product_parts(int64_t rows, int64_t columns, int64_t terms, bint f64):
    """Return (parts of rows, parts of columns) of a product that copies its operands."""
    cdef int64_t down, across
    ow_cuts(rows, columns, terms, f64, &down, &across)
    return down, across


cdef dict _find_loops():
    cdef const ow_loop_row *row
    cdef dict loops = {ow_loop_rows[i].name.decode(): <uintptr_t>ow_loop_rows[i].fn
                       for i in range(ow_loop_count)}
    for i in range(ow_kernels.loop_count):
        row = &ow_kernels.loops[i]
        loops[row.name.decode()] = <uintptr_t>row.fn
    return loops

#: built-in loops by name, ``<row>_<type>`` or ``cast_<from>_<to>``: address of the C function
LOOPS = _find_loops()


cdef dict _numbered(const char *(*name)(int)):
    cdef dict found = {}
    while name(len(found)) != NULL:
        found[name(len(found)).decode()] = len(found)
    return found


#: index of each reducer, by ``<operation>_<element>_<accumulator>``; of each argmax and adder, by
#: element
REDUCERS = {ow_kernels.reducers[i].name.decode(): i for i in range(ow_kernels.reducer_count)}
ADDERS = _numbered(ow_adder_name)
ARGMAXERS = _numbered(ow_argmaxer_name)

# numpy sorts short arrays with the vector instructions of the processor
ow_sort_in_place[0] = PyDataType_GetArrFuncs(np.dtype(np.uint32)).sort[0]
ow_sort_in_place[1] = PyDataType_GetArrFuncs(np.dtype(np.uint64)).sort[0]


@cython.final
cdef class Code:
    """A Composite as instructions over built-in loops, for the interpreter.

    itemsizes: bytes of each register, the operands first. results: the registers that are outputs.
    reducers: indices of the reductions that fold results into accumulators side by side, a run of
    them into one, and accumulators; empty: there is no reduction. instructions: (address of the
    loop, output register, input registers).
    """

    cdef ow_code code

    def __cinit__(self, int nin, list itemsizes, list results, list instructions,
                  tuple reducers=()):
        cdef int i, j
        cdef ow_code *c = &self.code
        c.reducer = c.run = c.join = NULL
        if reducers:
            rows, run, join = reducers
            c.reducer = &ow_kernels.reducers[<int>rows]
            c.run = &ow_kernels.reducers[<int>run]
            c.join = &ow_kernels.reducers[<int>join]
        c.nin, c.nout, c.nreg, c.ninstr = nin, len(results), len(itemsizes), len(instructions)
        c.itemsize = <int32_t *>malloc(sizeof(int32_t) * max(1, c.nreg))
        c.results = <int32_t *>malloc(sizeof(int32_t) * max(1, c.nout))
        c.instr = <ow_instr *>calloc(max(1, c.ninstr), sizeof(ow_instr))
        if not (c.itemsize and c.results and c.instr):
            raise MemoryError()
        c.chunk = OW_CHUNK if max(itemsizes, default=0) <= 8 else OW_CHUNK // 2
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


INTERPRET = <uintptr_t>ow_interpreter
