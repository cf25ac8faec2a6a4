"""Casts of floats to integers: the values, which C and numpy leave open, and numpy's way to them.

A float is truncated to int32 for the integers of up to 32 bits, but to int64 for uint32, and to
int64 and uint64 for these; what is too large, infinite or NaN becomes the least int32 or int64 (for
uint64: see ``_to_uint64``). A narrower integer keeps the low bits of that. So numpy has it on
x86-64, but for arrays of uint32 with numbers that are out of range, for which its result depends on
the layout. The C of it is the part "of_float" of csupport/scalar.h.
"""

from __future__ import annotations

import platform

import numpy as np

from opwise.scalar.dtypes import DTypeLike

#: the dtype that a float is truncated to, by that of the integer
TRUNCATED_TO = {
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "int32"),
    **dict.fromkeys(("int64", "uint32"), "int64"),
    "uint64": "uint64",
}
#: whether numpy, given a number that is out of range, does as above; the processor decides it
_NUMPY_AGREES = platform.machine() in ("x86_64", "AMD64")


def cast(x: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Return an array as ``dtype``: a new one, as ``x.astype(dtype)`` does."""
    dtype = np.dtype(dtype)
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    if not _NUMPY_AGREES:
        return truncated(x, dtype)
    if dtype == np.uint32:
        return x.astype(np.int64).astype(dtype)
    return x.astype(dtype)


def truncated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an array of floats as integers of ``dtype``, on any processor."""
    if x.dtype == np.float16:
        x = x.astype(np.float32)  # which holds the limits below
    wide = np.dtype(TRUNCATED_TO[dtype.name])
    result = _to_uint64(x) if wide == np.uint64 else _to_signed(x, wide)
    return result.astype(dtype, copy=False)


def _to_signed(x, wide):
    least = np.iinfo(wide).min
    fits = (x >= float(least)) & (x < -float(least))
    if wide == np.int32 and x.dtype == np.float64:
        fits |= (x > float(least) - 1) & (x < 0)
    return np.where(fits, np.where(fits, x, 0).astype(wide), least).astype(wide, copy=False)


def _to_uint64(x):
    """From 2**63 on 2**63 is taken off and added again; a negative number keeps its low bits."""
    large = x >= 2.0**63
    bits = _to_signed(np.where(large, x - x.dtype.type(2.0**63), x), np.dtype(np.int64))
    return bits.view(np.uint64) ^ np.where(large, np.uint64(1 << 63), np.uint64(0))
