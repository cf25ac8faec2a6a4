# cython: language_level=3
# Programs of the interpreter: csupport/code.h.

from libc.stdint cimport int32_t, int64_t

from opwise.linkers.native.simd cimport ow_chunk_fn, ow_reducer

cdef extern from "code.h":
    int OW_MAXREG, OW_CHUNK

include "structs_code.pxi"
