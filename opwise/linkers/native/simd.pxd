# cython: language_level=3
# Kernels of vectors: csupport/simd.h.

from libc.stdint cimport int64_t

cdef extern from "simd.h":
    ctypedef struct ow_reducer:
        const char *name
    ctypedef void (*ow_chunk_fn)(void *, const void *const *, int64_t) noexcept nogil

include "structs_simd.pxi"

cdef extern from "simd.h":
    ctypedef struct ow_simd:
        const char *name
        const ow_reducer *reducers
        int reducer_count
        const ow_loop_row *loops
        int loop_count
        int products
    const ow_simd *ow_kernels
    int ow_use_kernels(const char *)
    const char *ow_processor_vectors()
    ctypedef int (*ow_sort_in_place_fn)(void *items, Py_ssize_t n, void *array) noexcept nogil
    ow_sort_in_place_fn ow_sort_in_place[2]
