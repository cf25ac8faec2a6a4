"""Matrix products by cuBLAS, called through ctypes: CuPy's own calls of it cannot be captured."""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import (
    CDLL,
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int64,
    c_longlong,
    c_size_t,
    c_void_p,
)
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from opwise.errors import DeviceError

#: a function of ctypes
CFunction = Callable[..., int]

#: bytes of cuBLAS's workspace: what its documentation advises for Hopper, and for older devices
WORKSPACE, WORKSPACE_BEFORE_HOPPER = 32 << 20, 4 << 20

# values of cuBLAS's enumerations: cublasOperation_t, cublasGemmAlgo_t
_PLAIN, _TRANSPOSED = 0, 1
_ANY_ALGORITHM = -1


@dataclass(frozen=True)
class _Kind:
    """What cuBLAS knows of a dtype."""

    #: cudaDataType_t
    data: int
    #: cublasComputeType_t
    compute: int
    #: C type of alpha and beta
    scale: type
    #: name of the function for a matrix and a vector
    gemv: str = ""

    def computed(self, tf32: bool) -> int:
        """Return the cublasComputeType_t of products; tf32: use TF32 for float32."""
        return _TF32 if tf32 and self.data == _FLOAT32 else self.compute


_FLOAT32 = 0
_KINDS = {
    "e": _Kind(2, 68, c_float),  # added up in float32
    "f": _Kind(_FLOAT32, 68, c_float, "cublasSgemv_v2"),
    "d": _Kind(1, 70, c_double, "cublasDgemv_v2"),
}
#: cublasComputeType_t of float32 products whose factors are rounded to a mantissa of 10 bits
_TF32 = 77


def has(dtype: np.dtype) -> bool:
    """Return whether cuBLAS multiplies matrices of a dtype here."""
    return dtype.char in _KINDS


class Form(NamedTuple):
    """How BLAS reads a matrix whose rows, or columns, are contiguous."""

    #: whether its columns are contiguous
    by_columns: bool
    #: elements from one row (column) to the next
    step: int


def form_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Form | None:
    """Return the Form of a matrix; None if BLAS cannot read it."""
    rows, columns = shape
    down, across = (s // itemsize if s % itemsize == 0 else 0 for s in strides)
    if (columns == 1 or across == 1) and (rows == 1 or down >= max(1, columns)):
        return Form(False, down if rows > 1 else max(1, columns))
    if (rows == 1 or down == 1) and (columns == 1 or across >= max(1, rows)):
        return Form(True, across if columns > 1 else max(1, rows))
    return None


def _known_form(matrix: Any) -> Form:
    """Return the Form of a matrix that must have one."""
    form = form_of(matrix.shape, matrix.strides, matrix.dtype.itemsize)
    assert form is not None, "BLAS cannot read the matrix: copy it first"
    return form


class Blas:
    """cuBLAS for the work of one stream."""

    def __init__(self, library: CDLL, stream: int, workspace: tuple[int, int]) -> None:
        """stream: its address. workspace: (address, bytes) of device memory of its own."""
        self._library, self._functions = library, _functions(library)
        self._lock, self._scales_on_device = threading.Lock(), False
        self._handle = c_void_p()
        self._do("cublasCreate_v2", byref(self._handle), handle=False)
        self._do("cublasSetStream_v2", stream)
        self._do("cublasSetWorkspace_v2", *workspace)

    def _do(self, name, *args, handle=True):
        function = self._functions[name]
        status = function(self._handle, *args) if handle else function(*args)
        if status:
            describe = getattr(self._library, "cublasGetStatusString", None)
            text = f"status {status}"
            if describe is not None:
                text = _declared(describe, (c_int,), c_char_p)(status).decode()
            raise DeviceError(f"{name.removesuffix('_v2')} of cuBLAS failed: {text}")

    def _scaled(self, name, before, alpha, between, beta, after, kind):
        """Call a function of alpha and beta: two floats, or two 0-d arrays of the device."""
        on_device = not isinstance(alpha, float)
        scales = [
            scale.data.ptr if on_device else byref(kind.scale(scale)) for scale in (alpha, beta)
        ]
        with self._lock:  # the pointer mode of the handle holds for all threads
            if on_device != self._scales_on_device:
                self._do("cublasSetPointerMode_v2", int(on_device))
                self._scales_on_device = on_device
            self._do(name, *before, scales[0], *between, scales[1], *after)

    def gemm(
        self, x: Any, y: Any, out: Any, alpha: Any = 1.0, beta: Any = 0.0, tf32: bool = False
    ) -> None:
        """Compute ``alpha * x @ y + beta * out`` into ``out``.

        x, y, out: matrices of the device, of one dtype, each with a Form. alpha, beta: floats, or
        0-d arrays of that dtype on the device.
        """
        (m, k), n = x.shape, y.shape[1]
        kind = _KINDS[out.dtype.char]
        (a, b), into = _readings(x, y, out)
        if into.by_columns:
            m, n = n, m
        self._scaled(
            _GEMM, (b.operation, a.operation, n, m, k), alpha,
            (b.address, kind.data, b.step, a.address, kind.data, a.step), beta,
            (out.data.ptr, kind.data, into.step, kind.computed(tf32), _ANY_ALGORITHM), kind,
        )  # fmt: skip

    def gemm_batched(self, x: Any, y: Any, out: Any, tf32: bool = False) -> None:
        """Compute ``x[i] @ y[i]`` into ``out[i]``; all matrices have one dtype and a Form."""
        (count, m, k), n = x.shape, y.shape[2]
        kind = _KINDS[out.dtype.char]
        (a, b), into = _readings(*(_Matrix(z, z.shape[1:], z.strides[1:]) for z in (x, y, out)))
        steps = [z.strides[0] // z.dtype.itemsize for z in (x, y, out)]
        if into.by_columns:
            m, n = n, m
            steps = [steps[1], steps[0], steps[2]]
        self._scaled(
            _BATCHED, (b.operation, a.operation, n, m, k), 1.0,
            (b.address, kind.data, b.step, steps[1], a.address, kind.data, a.step, steps[0]), 0.0,
            (out.data.ptr, kind.data, into.step, steps[2], count, kind.computed(tf32),
             _ANY_ALGORITHM), kind,
        )  # fmt: skip

    def gemv(self, matrix: Any, x: Any, y: Any, alpha: Any = 1.0, beta: Any = 0.0) -> None:
        """Compute ``alpha * matrix @ x + beta * y`` into ``y``, in float32 or float64.

        The matrix must have a Form, the vectors positive strides. alpha, beta: as for ``gemm``.
        """
        form = _known_form(matrix)
        kind = _KINDS[y.dtype.char]
        rows, columns = matrix.shape
        if form.by_columns:
            operation, shape = _PLAIN, (rows, columns)
        else:  # BLAS sees the columns of the transposed
            operation, shape = _TRANSPOSED, (columns, rows)
        self._scaled(
            kind.gemv, (operation, *shape), alpha,
            (matrix.data.ptr, form.step, x.data.ptr, _step(x)), beta, (y.data.ptr, _step(y)), kind,
        )  # fmt: skip


class _Matrix:
    """One matrix of a batch."""

    def __init__(self, array, shape, strides):
        self.data, self.dtype, self.shape, self.strides = array.data, array.dtype, shape, strides


class _Reading(NamedTuple):
    address: int
    operation: int
    step: int


def _readings(x, y, out):
    """Return ((x, y) as BLAS reads them, the Form of out).

    BLAS stores matrices by columns. It sees an ``out`` that is stored by rows as its transpose: the
    product of y transposed and x transposed. If ``out`` is stored by columns, x and y are swapped.
    """
    forms = [_known_form(z) for z in (x, y, out)]
    into = forms[2]
    found = [
        _Reading(z.data.ptr, int(form.by_columns != into.by_columns), form.step)
        for z, form in zip((x, y), forms, strict=False)
    ]
    return (found[::-1] if into.by_columns else found), into


def _step(vector):
    return (
        vector.strides[0] // vector.dtype.itemsize if len(vector.shape) and vector.size > 1 else 1
    )


# --- the library ----------------------------------------------------------------------------------

_LARGEST = 2**31 - 1
_GEMM, _BATCHED = "cublasGemmEx", "cublasGemmStridedBatchedEx"
_SETUP = {
    "cublasCreate_v2": (POINTER(c_void_p),),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_void_p, c_size_t),
    "cublasSetPointerMode_v2": (c_void_p, c_int),
}


def _products(n):
    """Return the argument types by function; n: the type of lengths and steps."""
    p, i, stride = c_void_p, c_int, c_longlong
    gemv = (p, i, n, n, p, p, n, p, n, p, p, n)
    return {
        # operations, lengths, alpha, two factors (address, dtype, step), beta, the result
        _GEMM: (p, i, i, n, n, n, p, p, i, n, p, i, n, p, p, i, n, i, i),
        _BATCHED: (p, i, i, n, n, n, p, p, i, n, stride, p, i, n, stride, p, p, i, n, stride, n,
                   i, i),
        "cublasSgemv_v2": gemv,
        "cublasDgemv_v2": gemv,
    }  # fmt: skip


def _functions(library):
    """Return {name: C function}. Since CUDA 12, products take 64-bit lengths."""
    found = {name: _declared(getattr(library, name), types) for name, types in _SETUP.items()}
    for name, types in _products(c_int).items():
        wide = getattr(library, f"{name}_64", None)
        if wide is None:
            found[name] = _Narrow(_declared(getattr(library, name), types), types)
        else:
            found[name] = _declared(wide, _products(c_int64)[name])
    return found


class _Narrow:
    """A function of 32-bit lengths that refuses longer ones: ctypes would pass their low bits."""

    def __init__(self, function: CFunction, types: tuple[type, ...]) -> None:
        self.argtypes = types
        self._function = function
        self._lengths = [i for i, type_ in enumerate(types) if type_ is c_int]

    def __call__(self, *args: Any) -> int:
        for i in self._lengths:
            if args[i] > _LARGEST:
                raise DeviceError(
                    f"this cuBLAS takes lengths and steps up to {_LARGEST}, not {args[i]}: split "
                    "the matrix, or use cuBLAS of CUDA 12 or later"
                )
        return self._function(*args)


def _declared(function, types, result=c_int):
    function.argtypes, function.restype = types, result
    return function
