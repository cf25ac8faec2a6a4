# cython: language_level=3, binding=False
"""What kernels may use: threads, memory that is kept for later requests; and loops that measure
how fast the hardware moves and computes.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t

from opwise.linkers.native.runtime cimport (
    ow_fill_new,
    ow_keep_at_most,
    ow_kept,
    ow_set_threads,
    ow_threads,
)

cdef extern from "probe.h" nogil:
    int OW_PROBE_SLACK
    double ow_probe_stream(char *, int64_t, int, double)
    double ow_probe_rate(int, int, int, double)
    int64_t ow_second_level_cache()

PROBE_SLACK = OW_PROBE_SLACK


def keep_at_most(int64_t bytes):
    """Keep at most so many bytes of large blocks that were freed, for later requests."""
    ow_keep_at_most(bytes)


def kept_blocks():
    """Return how many bytes of freed blocks are kept."""
    return ow_kept()


def fill_new_blocks(bint yes):
    """Fill new memory with ones from now on, so that what a step leaves unwritten shows."""
    ow_fill_new(yes)


def set_threads(int n):
    """Let kernels use up to ``n`` threads, the caller's own included."""
    ow_set_threads(n)


def threads():
    """Return how many threads kernels may use."""
    return ow_threads()


def second_level_cache():
    """Return the bytes of a core's second-level cache; 0 or less if they are not known."""
    return ow_second_level_cache()


def probe_stream(memory, int64_t bytes, bint shared, double seconds):
    """Return the GB/s, read and written, of z = x + y over arrays of ``bytes`` altogether.

    memory: where they lie, with PROBE_SLACK bytes more. shared: by all threads. seconds: about how
    long to look for the best pass.
    """
    cdef Py_buffer view
    cdef double rate
    PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
    try:
        if not 0 < bytes <= view.len - OW_PROBE_SLACK:
            raise ValueError(f"arrays of {bytes} bytes do not fit into {view.len}")
        with nogil:
            rate = ow_probe_stream(<char *>view.buf, bytes, shared, seconds)
    finally:
        PyBuffer_Release(&view)
    return rate


def probe_rate(bint f64, bint fused, bint shared, double seconds):
    """Return the GFLOP/s of multiplications and additions of vectors in registers.

    f64: of float64, otherwise float32. fused: both rounded as one. Others as in ``probe_stream``.
    """
    cdef double rate
    with nogil:
        rate = ow_probe_rate(f64, fused, shared, seconds)
    return rate
