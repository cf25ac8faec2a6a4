"""The namespace of the array API standard (2024.12), for functions that are traced and for others.

Its functions are numpy's: outside traced functions they compute at once, inside they also make
traced arrays where numpy's own would not see that (``zeros``, ``arange``).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.tracing.calling import call
from opwise.tracing.trace import current
from opwise.tracing.values import HANDLERS

#: the version of the standard
__array_api_version__ = "2024.12"

#: names of the standard that are values or types
_VALUES = (
    "e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 "
    "complex64 complex128"
).split()

#: functions of the standard
_FUNCTIONS = (
    "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones "
    "ones_like tril triu zeros zeros_like astype can_cast finfo iinfo isdtype result_type abs acos "
    "acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert "
    "bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp "
    "expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less "
    "less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor "
    "maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder "
    "round sign signbit sin sinh square sqrt subtract tan tanh trunc take take_along_axis matmul "
    "matrix_transpose tensordot vecdot broadcast_arrays broadcast_to concat expand_dims flip "
    "moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin "
    "count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse "
    "unique_values argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all "
    "any diff"
).split()

_LINALG = (
    "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
    "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
).split()

_FFT = (
    "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"
).split()


def _traced_too(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one as converted text does."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return function(*args, **kwargs)
        return call(function, *args, **kwargs)

    return called


def _module(name: str, source: Any, functions: list[str]) -> types.ModuleType:
    made = types.ModuleType(f"{__name__}.{name}", f"The functions of {name} of the standard.")
    vars(made).update({each: _traced_too(getattr(source, each)) for each in functions})
    vars(made)["__all__"] = functions
    return made


globals().update({name: getattr(np, name) for name in _VALUES})
#: those of the standard that this release of numpy has; the oldest lack three
_THERE = [name for name in _FUNCTIONS if hasattr(np, name)]
globals().update({name: _traced_too(getattr(np, name)) for name in _THERE})
#: linear algebra and Fourier transforms, the extensions of the standard
linalg = _module("linalg", np.linalg, _LINALG)
fft = _module("fft", np.fft, _FFT)
# numpy 2.1 has it
__array_namespace_info__ = getattr(np, "__array_namespace_info__", None)

__all__ = [*_VALUES, *_THERE, "__array_namespace_info__", "fft", "linalg"]

HANDLERS.register(namespace=lambda: sys.modules[__name__])
