"""Products by cuBLAS, called by address: CuPy does not let its own calls of it be captured."""

from __future__ import annotations

from ctypes import (
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
from typing import NamedTuple

from opwise.errors import DeviceError

#: bytes that cuBLAS has for itself: what its documentation advises for Hopper, and for others
WORKSPACE, WORKSPACE_BEFORE_HOPPER = 32 << 20, 4 << 20

# values of cuBLAS's enumerations: cublasOperation_t, cublasGemmAlgo_t
_PLAIN, _TRANSPOSED = 0, 1
_ANY_ALGORITHM = -1


@dataclass(frozen=True)
class _Kind:
    """How cuBLAS names a dtype: cudaDataType_t, cublasComputeType_t, the type of alpha and beta."""

    data: int
    compute: int
    scale: type
    gemv: str | None = None


_KINDS = {
    "e": _Kind(2, 68, c_float),  # added up in float32
    "f": _Kind(0, 68, c_float, "cublasSgemv_v2"),
    "d": _Kind(1, 70, c_double, "cublasDgemv_v2"),
}
#: float32 whose factors are rounded to 10 bits behind the point
_TF32 = 77


def has(dtype):
    """Return whether there are products of a numpy dtype."""
    return dtype.char in _KINDS


class Form(NamedTuple):
    """How BLAS reads a matrix: its rows, or (by_columns) its columns, lie ``step`` elements apart,
    and the elements of one beside each other."""

    by_columns: bool
    step: int


def form_of(shape, strides, itemsize):
    """Return the Form of a matrix; None where BLAS cannot read it."""
    rows, columns = shape
    down, across = (s // itemsize if s % itemsize == 0 else 0 for s in strides)
    if (columns == 1 or across == 1) and (rows == 1 or down >= max(1, columns)):
        return Form(False, down if rows > 1 else max(1, columns))
    if (rows == 1 or down == 1) and (columns == 1 or across >= max(1, rows)):
        return Form(True, across if columns > 1 else max(1, rows))
    return None


class Blas:
    """cuBLAS for the work of one stream.

    library: what ctypes gives. stream: its address. workspace: (address, bytes) of memory on the
    device that nobody else uses while the stream works.
    """

    def __init__(self, library, stream, workspace):
        self._library, self._functions = library, _functions(library)
        self._handle = c_void_p()
        self._do("cublasCreate_v2", byref(self._handle), handle=False)
        self._do("cublasSetStream_v2", stream)
        self._do("cublasSetWorkspace_v2", *workspace)

    def _do(self, name, *args, handle=True):
        function = self._functions[name]
        status = function(self._handle, *args) if handle else function(*args)
        if status:
            told = getattr(self._library, "cublasGetStatusString", None)
            text = f"status {status}"
            if told is not None:
                text = _declared(told, (c_int,), c_char_p)(status).decode()
            raise DeviceError(f"{name.removesuffix('_v2')} of cuBLAS failed: {text}")

    def gemm(self, x, y, out, alpha=1.0, beta=0.0, tf32=False):
        """Put ``alpha * x @ y + beta * out`` into ``out``; all have a Form and the same dtype."""
        (m, k), n = x.shape, y.shape[1]
        kind = _KINDS[out.dtype.char]
        (a, b), into = _readings(x, y, out)
        if into.by_columns:
            m, n = n, m
        self._do(
            _GEMM, b.operation, a.operation, n, m, k, byref(kind.scale(alpha)),
            b.address, kind.data, b.step, a.address, kind.data, a.step,
            byref(kind.scale(beta)), out.data.ptr, kind.data, into.step,
            _TF32 if tf32 and kind.compute == 68 and kind.data == 0 else kind.compute,
            _ANY_ALGORITHM,
        )  # fmt: skip

    def gemm_batched(self, x, y, out, tf32=False):
        """Put the product of each matrix of ``x`` and ``y`` into ``out``, along the first
        dimension; all matrices have a Form and the same dtype."""
        (count, m, k), n = x.shape, y.shape[2]
        kind = _KINDS[out.dtype.char]
        (a, b), into = _readings(*(_Matrix(z, z.shape[1:], z.strides[1:]) for z in (x, y, out)))
        steps = [z.strides[0] // z.dtype.itemsize for z in (x, y, out)]
        if into.by_columns:
            m, n = n, m
            steps = [steps[1], steps[0], steps[2]]
        self._do(
            _BATCHED, b.operation, a.operation, n, m, k, byref(kind.scale(1.0)),
            b.address, kind.data, b.step, steps[1], a.address, kind.data, a.step, steps[0],
            byref(kind.scale(0.0)), out.data.ptr, kind.data, into.step, steps[2], count,
            _TF32 if tf32 and kind.data == 0 else kind.compute, _ANY_ALGORITHM,
        )  # fmt: skip

    def gemv(self, matrix, x, y, alpha=1.0, beta=0.0):
        """Put ``alpha * matrix @ x + beta * y`` into ``y``; float32 or float64, the matrix has a
        Form, the vectors go forward."""
        form = form_of(matrix.shape, matrix.strides, matrix.dtype.itemsize)
        kind = _KINDS[y.dtype.char]
        rows, columns = matrix.shape
        if form.by_columns:
            operation, shape = _PLAIN, (rows, columns)
        else:  # BLAS sees the columns of the transposed
            operation, shape = _TRANSPOSED, (columns, rows)
        self._do(
            kind.gemv, operation, *shape, byref(kind.scale(alpha)), matrix.data.ptr, form.step,
            x.data.ptr, _step(x), byref(kind.scale(beta)), y.data.ptr, _step(y),
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
    """Return ((x, y) as BLAS is to read them, the Form of out).

    BLAS goes by columns: to it, rows of ``out`` are columns of the transposed, which is the product
    of y transposed and x transposed. Where ``out`` goes by columns itself, x and y change places.
    """
    forms = [form_of(z.shape, z.strides, z.dtype.itemsize) for z in (x, y, out)]
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

_GEMM, _BATCHED = "cublasGemmEx", "cublasGemmStridedBatchedEx"
_SETUP = {
    "cublasCreate_v2": (POINTER(c_void_p),),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_void_p, c_size_t),
}


def _products(n):
    """Return the types of arguments by function; n: the type of lengths and steps."""
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
    """Return {name: C function}; those of products take lengths of 64 bits since CUDA 12."""
    found = {name: _declared(getattr(library, name), types) for name, types in _SETUP.items()}
    for name, types in _products(c_int).items():
        wide = getattr(library, f"{name}_64", None)
        if wide is None:
            found[name] = _declared(getattr(library, name), types)
        else:
            found[name] = _declared(wide, _products(c_int64)[name])
    return found


def _declared(function, types, result=c_int):
    function.argtypes, function.restype = types, result
    return function
