# cython: language_level=3
# The kinds of C steps, and what the VM asks of their files: csupport/kinds.h.

from libc.stdint cimport int64_t

from opwise.linkers.native.runtime cimport ow_fn, ow_loop

include "structs_kinds.pxi"

cdef extern from "kinds.h":
    const ow_kind *ow_find_kind(const char *)
    int OW_KIND_TABLES
    const ow_kind *ow_kind_tables[]
    const ow_loop ow_interpreter
    const char *ow_adder_name(int)
    const char *ow_argmaxer_name(int)
    bint ow_set_blas(const char *, void *)
    bint ow_has_blas()
    bint ow_has_lapack()
    int (*ow_load_blas)(char *)
    int (*ow_load_lapack)(char *)
    void ow_cuts(int64_t, int64_t, int64_t, int, int64_t *, int64_t *)
    int OW_FORWARD, OW_BY_IMAGES, OW_BY_KERNELS
    const char *ow_conv_algorithm_of(int, const void *, const int64_t *, const int64_t *, int)
