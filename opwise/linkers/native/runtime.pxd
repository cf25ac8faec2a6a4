# cython: language_level=3
# Slots, steps and memory: csupport/runtime.h and copy.h.

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "runtime.h":
    int OW_MAXDIM, OW_MAXARG, OW_STATIC, OW_TOTAL, OW_CHECKED, OW_ERROR_SIZE
    int OW_OK, OW_VALUE_ERROR, OW_INDEX_ERROR, OW_TYPE_ERROR, OW_MEMORY_ERROR
    int OW_ZERO_DIVISION, OW_LINALG_ERROR, OW_ASSERTION_ERROR, OW_PYTHON_ERROR
    ctypedef struct ow_slot
    ctypedef struct ow_step
    ctypedef int (*ow_fn)(ow_step *) noexcept nogil
    ctypedef void (*ow_loop)(const void *, char **, const int64_t *, int64_t) noexcept nogil

include "structs_runtime.pxi"

cdef extern from "runtime.h":
    bint ow_is_true(const ow_slot *)
    char *ow_alloc(int64_t)
    int64_t ow_capacity(const char *)
    void ow_free(char *) nogil
    int64_t ow_mul_size(int64_t, int64_t)
    int64_t ow_add_size(int64_t, int64_t)
    int64_t ow_bytes(int, const int64_t *, int64_t)
    void ow_dense_strides(ow_slot *, const ow_slot *)
    void ow_keep_at_most(int64_t)
    void ow_fill_new(int)
    int64_t ow_kept()
    int ow_threads()
    void ow_set_threads(int)
    ctypedef int (*ow_look)() noexcept nogil
    void ow_watch_begin(ow_look) nogil
    int ow_watch_end() nogil
    bint ow_is_long(const ow_step *)
    bint ow_is_dense(const ow_slot *)
    int64_t ow_size(const ow_slot *)
    int ow_ensure(ow_step *, ow_slot *)
    int64_t ow_int(const ow_slot *)
    char *ow_scratch(ow_step *, int64_t)
    char *ow_at(const char *, int64_t, int64_t)
    void ow_alias(ow_slot *, const ow_slot *)
    bint ow_is_c_contiguous(const ow_slot *)

cdef extern from "copy.h":
    void ow_copy(ow_slot *, ow_slot *)
