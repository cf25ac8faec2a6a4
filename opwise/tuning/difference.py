"""How far two results of one function lie apart: in units in the last place, and relatively."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


class Difference(NamedTuple):
    """The largest difference of two results.

    ulp: the most floating-point numbers of the narrower dtype that lie between two elements, once
    both are of that dtype. relative: the largest absolute difference over the largest magnitude in
    that array, as they are. Both are infinite where shapes differ, or one element alone is NaN.
    """

    ulp: float
    relative: float


_NONE = Difference(0, 0.0)
_APART = Difference(math.inf, math.inf)


def largest(first, second):
    """Return the largest Difference between two lists of values."""
    if len(first) != len(second):
        return _APART
    found = [of(a, b) for a, b in zip(first, second, strict=True)]
    return Difference(
        max((d.ulp for d in found), default=0), max((d.relative for d in found), default=0.0)
    )


def of(a, b):
    """Return the Difference of two values; of arrays, the narrower dtype decides."""
    if not (isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic)):
        return _NONE if _equal(a, b) else _APART
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return _APART
    if "c" in (a.dtype.kind, b.dtype.kind):
        return largest([a.real, a.imag], [b.real, b.imag])
    if not a.size or np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"):
        return _NONE
    if "f" not in (a.dtype.kind, b.dtype.kind):
        return Difference(*_of_whole_numbers(a, b))
    nan = np.isnan(a)
    if not np.array_equal(nan, np.isnan(b)):
        return _APART
    a, b = a[~nan], b[~nan]
    return Difference(_ulps(*_as_narrower(a, b)), _relative(a, b))


def _equal(a, b):
    try:
        return bool(a == b)
    except Exception:  # what a user's object raises when it is compared
        return a is b


def _as_narrower(a, b):
    """Return both in the dtype of the one that holds less; of other kinds, in what holds both."""
    if a.dtype == b.dtype:
        return a, b
    if a.dtype.kind == b.dtype.kind:
        dtype = min(a.dtype, b.dtype, key=lambda d: d.itemsize)
    else:
        dtype = np.result_type(a, b)
    with np.errstate(over="ignore"):
        return a.astype(dtype), b.astype(dtype)


def _of_whole_numbers(a, b):
    # Python's integers: differences of uint64 and int64 do not fit into either
    apart = max(abs(int(x) - int(y)) for x, y in zip(a[a != b].flat, b[a != b].flat, strict=True))
    size = max(abs(int(a.max())), abs(int(a.min())), abs(int(b.max())), abs(int(b.min())))
    return apart, apart / size


def _ulps(a, b):
    """Return the most numbers between two elements of arrays of one float dtype without NaN."""
    x, y = _places(a), _places(b)
    # the places of numbers of opposite signs may lie further apart than an int64 holds
    distance = np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)
    return int(distance.max())


def _places(a):
    """Return for each number its place in the order of all numbers of the dtype; 0 for both 0."""
    bits = np.ascontiguousarray(a).view(_BITS[a.dtype.itemsize])
    least = np.iinfo(bits.dtype).min
    return np.where(bits < 0, least - bits, bits).astype(np.int64)


def _relative(a, b):
    differ = a != b  # equal infinities among them have no difference
    a64, b64 = a[differ].astype(np.float64), b[differ].astype(np.float64)
    with np.errstate(all="ignore"):
        apart = float(np.abs(a64 - b64).max())
        finite = np.abs(np.concatenate([a, b]).astype(np.float64))
        finite = finite[np.isfinite(finite)]
        size = float(finite.max()) if finite.size else 0.0
        return apart / size if size else math.inf
