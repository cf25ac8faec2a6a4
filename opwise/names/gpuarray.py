"""``theano.gpuarray.basic_ops``: functions whose arguments name a GPU, which opwise ignores."""

from __future__ import annotations

from typing import Any

from opwise.tensor.creation import alloc, alloc_empty
from opwise.tensor.join import join as gpu_join  # noqa: F401


def gpu_alloc_empty(context_name: Any, dtype: str) -> Any:
    """Return an Op: of dimensions, an array of a dtype whose elements are not set."""
    return alloc_empty(dtype)


def GpuAllocEmpty(dtype: str, context_name: Any = None) -> Any:
    """Return an Op: of dimensions, an array of a dtype whose elements are not set."""
    return alloc_empty(dtype)


def gpu_alloc(context_name: Any = None, memset_0: bool = False) -> Any:
    """Return a function: of a value and dimensions, an array filled with it."""
    return alloc


def infer_context_name(*variables: Any) -> None:
    """Return None, the name of the default GPU."""
