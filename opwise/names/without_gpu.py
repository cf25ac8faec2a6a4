"""What Theano's modules for GPUs say on a computer without the packages that they need."""

from __future__ import annotations

#: packages, where Theano imported them if they were there
pygpu = None
pycuda_available = cudamat_available = gnumpy_available = False


def list_contexts() -> list[str]:
    """Return the names of the GPUs of libgpuarray: none."""
    return []
