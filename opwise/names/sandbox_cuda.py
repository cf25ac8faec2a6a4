"""``theano.sandbox.cuda``: variables of GPUs, which in opwise are variables like others.

Values of a GPU had the dtype float32, whatever floatX was.
"""

from __future__ import annotations

from typing import Any

import opwise.tensor as T
from opwise.compile.shared import shared
from opwise.graph.op import Op
from opwise.tensor.creation import alloc, alloc_empty
from opwise.tensor.variable import Tensor

GpuOp = Op
fscalar, fvector, fmatrix, frow, fcol = T.fscalar, T.fvector, T.fmatrix, T.frow, T.fcol
ftensor3, ftensor4 = T.ftensor3, T.ftensor4
#: of dimensions: a float32 array whose elements are not set
gpu_alloc_empty = alloc_empty("float32")
gpu_join = T.join
gpu_shape = T.shape


def GpuAllocEmpty() -> Any:
    """Return an Op: of dimensions, a float32 array whose elements are not set."""
    return gpu_alloc_empty


def gpu_alloc(value: Any, *shape: Any) -> Tensor:
    """Return an array of float32 with one value, or with a smaller array again and again."""
    return alloc(T.cast(value, "float32"), *shape)


def float32_shared_constructor(
    value: Any, name: str | None = None, strict: bool = False, allow_downcast: Any = None,
    borrow: bool = False, broadcastable: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return a shared variable of float32. Raises TypeError for a value of another dtype."""
    if str(getattr(value, "dtype", None)) != "float32":
        raise TypeError(
            f"a value of a GPU must be an array of float32, not {getattr(value, 'dtype', None)} of "
            f"{type(value).__name__}"
        )
    more = {} if broadcastable is None else {"broadcastable": broadcastable}
    return shared(value, name, strict, allow_downcast, borrow=borrow, **more)


shared_constructor = cuda_shared_constructor = float32_shared_constructor
