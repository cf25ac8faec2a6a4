# Threads, and memory that is kept for later requests. Included by opwise_c.pyx.

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
