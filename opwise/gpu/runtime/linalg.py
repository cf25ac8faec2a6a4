"""Factorizations, systems of equations and Fourier transforms by CuPy: cuSOLVER, cuBLAS, cuFFT.

The host waits for each factorization: only then it knows whether one has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from opwise.gpu.lowering import lowers_to_cupy
from opwise.gpu.runtime.calls import Inputs
from opwise.gpu.runtime.device import Device, DeviceArray
from opwise.graph.apply import Apply
from opwise.tensor.linalg.eigen import Eigh
from opwise.tensor.linalg.factor import SVD, Cholesky, QRFull, QRIncomplete
from opwise.tensor.linalg.fft import IRFFTOp, RFFTOp
from opwise.tensor.linalg.inverse import Det, MatrixInverse, MatrixPinv
from opwise.tensor.linalg.operands import check_square
from opwise.tensor.linalg.systems import Solve


def _other_dtype(node: Apply) -> str | None:
    """Return why only the host can run an Apply, if an input is not of float32 or float64."""
    given = (v.type.dtype for v in node.inputs)
    other = next((d for d in given if d not in ("float32", "float64")), None)
    return None if other is None else f"cuSOLVER has no routines for {other}"


@contextmanager
def _failing(device: Device, text: str) -> Iterator[None]:
    """Raise LinAlgError with a text if a routine of cuSOLVER fails in the block."""
    try:
        with device.solver_errors():
            yield
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(text) from None


def _check_finite(device: Device, *arrays: DeviceArray) -> None:
    """Raise ValueError if an element is infinite or NaN."""
    if not all(bool(device.xp.isfinite(array).all()) for array in arrays):
        raise ValueError("array must not contain infs or NaNs")


# --- inverses and systems -----------------------------------------------------------------------


@lowers_to_cupy(MatrixInverse, unless=_other_dtype)
def matrix_inverse(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    (x,) = inputs
    check_square(x)
    with _failing(device, "Singular matrix"):
        return [device.xp.linalg.inv(x)]


@lowers_to_cupy(MatrixPinv, unless=_other_dtype)
def pseudo_inverse(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    with _failing(device, "SVD did not converge"):
        return [device.xp.linalg.pinv(inputs[0])]


@lowers_to_cupy(Det, unless=_other_dtype)
def determinant(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    check_square(inputs[0])
    return [device.xp.linalg.det(inputs[0])]


def _other_solution(node: Apply) -> str | None:
    if node.op.unit_diagonal or node.op.on_error == "nan":
        return "a system whose solution may be NaN, or whose diagonal counts as ones"
    return _other_dtype(node)


@lowers_to_cupy(Solve, unless=_other_solution)
def solve(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    op, dtype = node.op, node.outputs[0].type.numpy_dtype
    op.check_shapes(*inputs)
    if op.check_finite:
        _check_finite(device, *inputs)
    A, b = (device.xp.asarray(x, dtype=dtype) for x in inputs)
    if not b.size:
        return [device.empty(b.shape, dtype)]
    if op.is_triangular:
        return [_substituted(device, A, b, op.A_structure == "lower_triangular")]
    with _failing(device, "Singular matrix"):
        return [device.xp.linalg.solve(A, b)]


def _substituted(device, A, b, lower):
    if not bool(device.xp.diagonal(A).all()):
        raise np.linalg.LinAlgError("singular matrix: there is a zero on its diagonal")
    return device.solve_triangular(A, b, lower=lower)


# --- factorizations -----------------------------------------------------------------------------


@lowers_to_cupy(Cholesky, unless=_other_dtype)
def cholesky(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    (x,), op = inputs, node.op
    check_square(x)
    if op.check_finite:
        _check_finite(device, x)
    try:
        with _failing(device, "The matrix is not positive definite"):
            # CuPy reads the lower half
            z = device.xp.linalg.cholesky(x if op.lower else x.T)
    except np.linalg.LinAlgError:
        if op.on_error == "raise":
            raise
        z = device.empty(x.shape, x.dtype)
        z[...] = np.nan
    return [z if op.lower else z.T]


@lowers_to_cupy(Eigh, unless=_other_dtype)
def eigenvectors(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    check_square(inputs[0])
    with _failing(device, "Eigenvalues did not converge"):
        return list(device.xp.linalg.eigh(inputs[0], node.op.UPLO))


@lowers_to_cupy(SVD, unless=_other_dtype)
def singular_values(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    op = node.op
    with _failing(device, "SVD did not converge"):
        found = device.xp.linalg.svd(inputs[0], bool(op.full_matrices), bool(op.compute_uv))
    return list(found) if op.compute_uv else [found]


@lowers_to_cupy(QRFull, QRIncomplete, unless=_other_dtype)
def orthonormal_columns(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    found = device.xp.linalg.qr(inputs[0], node.op.mode)
    return list(found) if len(node.outputs) == 2 else [found]


# --- Fourier transforms -------------------------------------------------------------------------


@lowers_to_cupy(RFFTOp, host=lambda node: (1,))
def real_transform(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    a, s = inputs
    xp, lengths = device.xp, tuple(map(int, s))
    transformed = xp.fft.rfftn(a, lengths, axes=_last(lengths))
    parts = xp.stack((xp.real(transformed), xp.imag(transformed)), axis=-1)
    return [xp.asarray(parts, dtype=a.dtype)]


@lowers_to_cupy(IRFFTOp, host=lambda node: (1,))
def inverse_real_transform(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    a, s = inputs
    xp, lengths = device.xp, tuple(map(int, s))
    transformed = a[..., 0] + 1j * a[..., 1]
    result = xp.fft.irfftn(transformed, lengths, axes=_last(lengths), norm="forward")
    return [xp.asarray(result, dtype=a.dtype)]


def _last(lengths):
    """Return the axes of transforms: the last ones, one for each length."""
    return tuple(range(-len(lengths), 0))
