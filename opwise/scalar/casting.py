"""Casts of floats to integers, with defined results for floats that do not fit.

A float is truncated to int32 (for integers of up to 32 bits), int64 (for uint32 and int64) or
uint64. Floats that are too large, infinite or NaN become the smallest int32 or int64 (for uint64:
see ``_to_uint64``). Narrower integers keep the low bits. numpy on x86-64 does the same, except for
arrays of uint32 with floats out of range, whose result depends on the layout. The same in C is the
part "of_float" of csupport/scalar.h.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from opwise.scalar.dtypes import DTypeLike

#: dtype of the integer -> the dtype that a float is truncated to
TRUNCATED_TO = {
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "int32"),
    **dict.fromkeys(("int64", "uint32"), "int64"),
    "uint64": "uint64",
}
#: whether numpy gives these results on this processor
_NUMPY_AGREES = platform.machine() in ("x86_64", "AMD64")


def cast(x: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Return a copy of an array as ``dtype``, like ``x.astype(dtype)``."""
    dtype = np.dtype(dtype)
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    if not _NUMPY_AGREES:
        return truncated(x, dtype)
    if dtype == np.uint32:
        return x.astype(np.int64).astype(dtype)
    return x.astype(dtype)


def truncated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an array of floats as integers of ``dtype``, with the same result everywhere."""
    if x.dtype == np.float16:
        x = x.astype(np.float32)  # which holds the limits below
    wide = np.dtype(TRUNCATED_TO[dtype.name])
    result = _to_uint64(x) if wide == np.uint64 else _to_signed(x, wide)
    return result.astype(dtype, copy=False)


def _to_signed(x: Any, wide: np.dtype) -> np.ndarray:
    least = np.iinfo(wide).min
    fits = (x >= float(least)) & (x < -float(least))
    if wide == np.int32 and x.dtype == np.float64:
        fits |= (x > float(least) - 1) & (x < 0)
    return np.where(fits, np.where(fits, x, 0).astype(wide), least).astype(wide, copy=False)


def _to_uint64(x: Any) -> np.ndarray:
    """Cast floats to uint64: those from 2**63 on in two parts, negative ones through int64."""
    large = x >= 2.0**63
    bits = _to_signed(np.where(large, x - x.dtype.type(2.0**63), x), np.dtype(np.int64))
    return bits.view(np.uint64) ^ np.where(large, np.uint64(1 << 63), np.uint64(0))
