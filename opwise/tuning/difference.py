"""The difference between two results of a function: in units in the last place, and relative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from opwise.graph.type import Type

Array = NDArray[Any]

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


class ResultDifference(NamedTuple):
    """The largest difference between the elements of two results.

    Both are infinite if the shapes differ, or if an element is NaN in only one of them.
    """

    #: in units in the last place, with both results cast to the narrower of their dtypes
    ulp: float
    #: the largest absolute difference, divided by the largest magnitude in the arrays
    relative: float


_NONE = ResultDifference(0, 0.0)
_APART = ResultDifference(math.inf, math.inf)


def largest(
    first: Sequence[Any], second: Sequence[Any], types: Sequence[Type | None] | None = None
) -> ResultDifference:
    """Return the largest difference between two lists of values; types: as of ``of``, of each."""
    if len(first) != len(second):
        return _APART
    kinds = [None] * len(first) if types is None else types
    found = [of(a, b, kind) for a, b, kind in zip(first, second, kinds, strict=True)]
    return ResultDifference(
        max((d.ulp for d in found), default=0), max((d.relative for d in found), default=0.0)
    )


def explained(a: Any, b: Any, tolerance: float, kind: Type | None = None) -> str | None:
    """Return how two values differ, or None if their relative difference is within a tolerance.

    kind: as of ``of``.
    """
    apart = of(a, b, kind)
    if apart.relative <= tolerance:
        return None
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return "differs"
    if a.shape != b.shape:
        return f"has shape {b.shape} instead of {a.shape}"
    for name, test in (("NaN", np.isnan), ("infinite", np.isinf)):
        if n := int(np.sum(test(a) != test(b))):
            elements = "element is" if n == 1 else "elements are"
            return f"differs: {n} {elements} {name} in one result only"
    return (
        f"differs by {apart.relative:.1e} (relative error; rounding explains at most "
        f"{tolerance:.0e})"
    )


def of(a: Any, b: Any, kind: Type | None = None) -> ResultDifference:
    """Return the difference of two values.

    kind: the Type that says which values are equal that are no arrays, such as states of random
    numbers (default: ``==`` does).
    """
    if not (isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic)):
        return _NONE if _equal(a, b, kind) else _APART
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return _APART
    if "c" in (a.dtype.kind, b.dtype.kind):
        return largest([a.real, a.imag], [b.real, b.imag])
    if not a.size or np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"):
        return _NONE
    if "f" not in (a.dtype.kind, b.dtype.kind):
        return ResultDifference(*_of_integers(a, b))
    nan = np.isnan(a)
    if not np.array_equal(nan, np.isnan(b)):
        return _APART
    a, b = a[~nan], b[~nan]
    return ResultDifference(_ulps(*_as_narrower(a, b)), _relative(a, b))


def _equal(a: Any, b: Any, kind: Type | None) -> bool:
    try:
        return bool(a == b if kind is None else kind.values_eq(a, b))
    except Exception:  # comparing a user's objects may raise anything
        return a is b


def _as_narrower(a: Array, b: Array) -> tuple[Array, Array]:
    """Return both in the narrower of their dtypes; in their common dtype if the kinds differ."""
    if a.dtype == b.dtype:
        return a, b
    if a.dtype.kind == b.dtype.kind:
        dtype = min(a.dtype, b.dtype, key=lambda d: d.itemsize)
    else:
        dtype = np.result_type(a, b)
    with np.errstate(over="ignore"):
        return a.astype(dtype), b.astype(dtype)


def _of_integers(a: Array, b: Array) -> tuple[int, float]:
    # Python's integers: differences of uint64 and int64 do not fit into either
    apart = max(abs(int(x) - int(y)) for x, y in zip(a[a != b].flat, b[a != b].flat, strict=True))
    size = max(abs(int(a.max())), abs(int(a.min())), abs(int(b.max())), abs(int(b.min())))
    return apart, apart / size


def _ulps(a: Array, b: Array) -> int:
    """Return the largest difference of two arrays of one float dtype, without NaN, in ulp."""
    x, y = _places(a), _places(b)
    # numbers of opposite signs may lie further apart than an int64 can count
    distance = np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)
    return int(distance.max())


def _places(a: Array) -> Array:
    """Return each number's index among all numbers of the dtype, in order; both zeros are 0."""
    bits = np.ascontiguousarray(a).view(_BITS[a.dtype.itemsize])
    least = np.iinfo(bits.dtype).min
    return np.where(bits < 0, least - bits, bits).astype(np.int64)


def _relative(a: Array, b: Array) -> float:
    differ = a != b  # equal infinities among them have no difference
    a64, b64 = a[differ].astype(np.float64), b[differ].astype(np.float64)
    with np.errstate(all="ignore"):
        apart = float(np.abs(a64 - b64).max())
        finite = np.abs(np.concatenate([a, b]).astype(np.float64))
        finite = finite[np.isfinite(finite)]
        size = float(finite.max()) if finite.size else 0.0
        return apart / size if size else math.inf
