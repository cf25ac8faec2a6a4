# Loops that measure how fast the hardware moves and computes. Included by opwise_c.pyx.

PROBE_SLACK = OW_PROBE_SLACK


def second_level_cache():
    """Return the bytes of a core's second-level cache; 0 or less if they are not known."""
    return ow_second_level_cache()


def probe_stream(unsigned char[::1] memory, int64_t bytes, bint shared, double seconds):
    """Return the GB/s, read and written, of z = x + y over arrays of ``bytes`` altogether.

    memory: where they lie, with PROBE_SLACK bytes more. shared: by all threads. seconds: about how
    long to look for the best pass.
    """
    cdef double rate
    if not 0 < bytes <= memory.shape[0] - OW_PROBE_SLACK:
        raise ValueError(f"arrays of {bytes} bytes do not fit into {memory.shape[0]}")
    with nogil:
        rate = ow_probe_stream(<char *>&memory[0], bytes, shared, seconds)
    return rate


def probe_rate(bint f64, bint fused, bint shared, double seconds):
    """Return the GFLOP/s of multiplications and additions of vectors in registers.

    f64: of float64, otherwise float32. fused: both rounded as one. Others as in ``probe_stream``.
    """
    cdef double rate
    with nogil:
        rate = ow_probe_rate(f64, fused, shared, seconds)
    return rate
