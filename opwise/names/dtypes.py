"""Lists of dtypes and types, and tolerances of comparisons, of ``theano.tensor.basic``."""

from __future__ import annotations

import numpy as np

from opwise.errors import EmptyConstantError, NotScalarConstantError
from opwise.scalar import dtypes
from opwise.scalar.op import cast_op
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.variable import CONSTRUCTORS

integer_dtypes = list(dtypes.INTEGERS)

for _shape in ("scalar", "vector", "matrix"):
    for _kind, _letters in {"int": "bwil", "float": "fd", "complex": "cz"}.items():
        globals()[f"{_kind}_{_shape}_types"] = tuple(CONSTRUCTORS[c + _shape] for c in _letters)
int_types = tuple(CONSTRUCTORS[c + "scalar"] for c in "bwil")
float_types = tuple(CONSTRUCTORS[c + "scalar"] for c in "fd")
complex_types = tuple(CONSTRUCTORS[c + "scalar"] for c in "cz")

float16_atol = float16_rtol = 1e-2
float32_atol = float32_rtol = 1e-5
float64_atol, float64_rtol = 1e-8, 1e-5
numpy_diagonal_return_view = True


def _allclose(a, b, rtol=None, atol=None):
    """Return whether two arrays agree to the precision of the narrower dtype of both."""
    a, b = np.asarray(a), np.asarray(b)
    names = {a.dtype.name, b.dtype.name}
    if "float16" in names:
        default = float16_rtol, float16_atol
    elif names & {"float32", "complex64"}:
        default = float32_rtol, float32_atol
    else:
        default = float64_rtol, float64_atol
    return np.allclose(
        a, b, rtol=default[0] if rtol is None else rtol, atol=default[1] if atol is None else atol
    )


def numpy_scalar(data):
    """Return an array of one number; raise NotScalarConstantError for any other array."""
    if data.size == 0:
        raise EmptyConstantError()
    if data.size > 1 or data.dtype.kind not in "biufc":
        raise NotScalarConstantError(f"An array with one number is needed, not {data!r}", data)
    return data


def check_equal_numpy(x, y):
    """Return whether two values are equal; arrays within 1e-10, and in dtype and shape."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        same = x.dtype == y.dtype and x.shape == y.shape
        return same and bool(np.all(abs(x - y) < 1e-10))
    return x == y


#: casts: ``_convert_to_int8(x)`` and so on
globals().update({f"_convert_to_{dtype}": Elemwise(cast_op(dtype)) for dtype in dtypes.ALL})
