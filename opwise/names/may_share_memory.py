"""``may_share_memory`` of arrays and sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.sparse.type import arrays_of


def may_share_memory(a: Any, b: Any, raise_other_type: bool = True) -> bool:
    """Return whether two arrays or sparse matrices may share memory.

    raise_other_type: raise TypeError if one of them is neither; otherwise it shares nothing.
    """
    first, second = arrays_of(a), arrays_of(b)
    if raise_other_type and not (first and second):
        other = b if first else a
        raise TypeError(
            "may_share_memory support only ndarray and scipy.sparse, not "
            f"{type(other).__name__}: convert it with numpy.asarray"
        )
    return any(np.may_share_memory(x, y) for x in first for y in second)
