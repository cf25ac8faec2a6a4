"""Ops that the device runs by calls of CuPy: views, products, sorts and others.

A call is a function ``(device, node, inputs) -> outputs``. Its inputs are arrays of the device,
except for those named by ``host``, which are numpy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opwise.config import config
from opwise.gpu.kernels.lowerings.reductions import lower_vector_product
from opwise.gpu.kernels.shapes import Shape, check_product
from opwise.gpu.lowering import lowers_to_cupy
from opwise.gpu.runtime import blas
from opwise.gpu.runtime.device import Device, DeviceArray
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.convert import ViewOp
from opwise.tensor.creation import AllocEmpty
from opwise.tensor.diagonal import FillDiagonal, FillDiagonalOffset, positions_on
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.extra_ops import DiffOp, RepeatOp, UnravelIndex
from opwise.tensor.nnet.nnet import (
    Prepend_scalar_constant_to_each_row,
    Prepend_scalar_to_each_row,
)
from opwise.tensor.selection import Nonzero, PermuteRowElements
from opwise.tensor.shape import Rebroadcast, Reshape, SpecifyShape
from opwise.tensor.sort import ArgSortOp, SortOp, TopKOp
from opwise.tensor.subtensor import Subtensor

#: arrays of the device, and numpy arrays for the inputs named by ``host``
Inputs = list[Any]


def _after(first: int) -> Callable[[Apply], Iterable[int]]:
    return lambda node: range(first, len(node.inputs))


def _always(node: Apply) -> bool:
    return True


# --- views --------------------------------------------------------------------------------------


@lowers_to_cupy(DimShuffle, Rebroadcast, ViewOp, view=True)
@lowers_to_cupy(Reshape, SpecifyShape, Subtensor, Assert, host=_after(1), view=True)
def as_arrays_do(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    """Call ``perform``: it only uses methods that CuPy's arrays have as well."""
    storages: list[list[Any]] = [[None] for _ in node.outputs]
    node.op.perform(node, inputs, storages)
    return [storage[0] for storage in storages]


@lowers_to_cupy(AllocEmpty, host=_after(0), captured=_always)
def alloc_empty(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    return [device.empty(tuple(map(int, inputs)), node.outputs[0].type.dtype)]


# --- products -----------------------------------------------------------------------------------


def _by_blas(node: Apply) -> bool:
    """Return whether cuBLAS computes a product."""
    return blas.has(node.outputs[0].type.numpy_dtype)


def _of_host(*scales: int) -> Callable[[Apply], list[int]]:
    """Return a function from a product to the positions of the scales that lie on the host.

    The device reads the other scales, so that they may change from call to call.
    """

    def host(node: Apply) -> list[int]:
        dtype = node.outputs[0].type.dtype
        return [
            i for i in scales
            if isinstance(node.inputs[i], Constant) or dtype not in ("float32", "float64")
            or node.inputs[i].type.dtype != dtype
        ]  # fmt: skip

    return host


def _product(device, x, y, out=None, alpha=1, beta=0):
    """Compute ``alpha * x @ y + beta * out`` into ``out`` (default: a new array) and return it.

    alpha, beta: numbers, or 0-d arrays of the device.
    """
    if out is None:
        out, beta = device.empty((x.shape[0], y.shape[1]), x.dtype), 0
    alpha, beta = (scale if device.holds(scale) else float(scale) for scale in (alpha, beta))
    if not out.size:
        return out
    if not x.shape[1]:
        if isinstance(beta, float) and beta == 0:
            out[...] = 0
        else:
            out *= out.dtype.type(beta) if isinstance(beta, float) else beta
        return out
    if not isinstance(alpha, float) or not isinstance(beta, float):
        alpha, beta = (
            device.number(scale, out.dtype) if isinstance(scale, float) else scale
            for scale in (alpha, beta)
        )
    into = _readable(device, out)
    factors = _readable(device, x), _readable(device, y)
    if out.ndim == 2 and 1 in out.shape and out.dtype.char in "fd":
        _by_vector(device, *factors, into, alpha, beta)
    else:
        device.blas.gemm(*factors, into, alpha, beta, config.cuda.tf32)
    if into is not out:
        out[...] = into
    return out


def _by_vector(device, x, y, out, alpha, beta):
    """Multiply a matrix by a vector; transpose both if the product has one row."""
    if out.shape[1] != 1:
        x, y, out = y.T, x.T, out.T
    device.blas.gemv(x, y[:, 0], out[:, 0], alpha, beta)


def _readable(device, matrix):
    """Return a matrix that BLAS can read: itself or a copy."""
    form = blas.form_of(matrix.shape, matrix.strides, matrix.dtype.itemsize)
    return matrix if form is not None else device.xp.ascontiguousarray(matrix)


def _cast(device, array, node):
    return device.xp.asarray(array, dtype=node.outputs[0].type.numpy_dtype)


@lowers_to_cupy(Dot, Dot22, captured=_by_blas, kernels=lower_vector_product)
def dot(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    x, y = inputs
    check_product(x.shape, y.shape)
    if not _by_blas(node):
        return [_cast(device, device.xp.dot(x, y), node)]
    x, y = _cast(device, x, node), _cast(device, y, node)
    product = _product(
        device, x if x.ndim == 2 else x[None, :], y if y.ndim == 2 else y[:, None]
    )  # fmt: skip
    return [product.reshape(x.shape[:-1] + y.shape[1:])]


@lowers_to_cupy(Dot22Scalar, host=_of_host(2), captured=_by_blas)
def dot22_scalar(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    x, y, a = inputs
    check_product(x.shape, y.shape)
    return [_product(device, x, y, alpha=a)]


def _gemm_target(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    z, _, x, y, _ = inputs
    check_product(x.shape, y.shape)
    _check_target("gemm", z.shape, (x.shape[0], y.shape[1]))
    return [z]


@lowers_to_cupy(Gemm, host=_of_host(1, 4), target=_gemm_target, captured=_by_blas)
def gemm(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    (z,) = _gemm_target(device, node, inputs)
    _, a, x, y, b = inputs
    return [_product(device, x, y, z if node.op.inplace else z.copy(), a, b)]


def _gemv_target(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    y, _, matrix, x, _ = inputs
    if matrix.shape != (*y.shape, *x.shape):
        raise ValueError(
            "Incompatible shapes for gemv (beta * y + alpha * dot(A, x)). "
            f"y: {y.shape}, A: {matrix.shape}, x: {x.shape}"
        )
    return [y]


@lowers_to_cupy(Gemv, host=_of_host(1, 4), target=_gemv_target, captured=_by_blas)
def gemv(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    (y,) = _gemv_target(device, node, inputs)
    _, alpha, matrix, x, beta = inputs
    target = y if node.op.inplace else y.copy()
    _product(device, matrix, x[:, None], target[:, None], alpha, beta)
    return [target]


def _ger_target(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    matrix, _, x, y = inputs
    if matrix.shape != (*x.shape, *y.shape):
        raise ValueError(
            "Incompatible shapes for ger (A + alpha * outer(x, y)). "
            f"A: {matrix.shape}, x: {x.shape}, y: {y.shape}"
        )
    return [matrix]


@lowers_to_cupy(Ger, host=_of_host(1), target=_ger_target, captured=_by_blas)
def ger(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    (matrix,) = _ger_target(device, node, inputs)
    _, alpha, x, y = inputs
    target = matrix if node.op.destructive else matrix.copy()
    return [_product(device, x[:, None], y[None, :], target, alpha, 1)]


@lowers_to_cupy(BatchedDot, captured=_by_blas)
def batched_dot(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    x, y = inputs
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"BatchedDot of arrays of unequal lengths: {x.shape} and {y.shape}")
    left = x if x.ndim == 3 else x[:, None, :]
    right = y if y.ndim == 3 else y[:, :, None]
    check_product(left.shape[1:], right.shape[1:])
    if _by_blas(node):
        product = _batched(device, _cast(device, left, node), _cast(device, right, node))
    else:
        product = device.xp.matmul(left, right)
    if x.ndim == 2:
        product = product[:, 0]
    return [product[..., 0] if y.ndim == 2 else product]


def _batched(device, x, y):
    out = device.empty((*x.shape[:2], y.shape[2]), x.dtype)
    if not out.size:
        return out
    if not x.shape[2]:
        out[...] = 0
        return out
    device.blas.gemm_batched(_each(device, x), _each(device, y), out, config.cuda.tf32)
    return out


def _each(device, matrices):
    """Return matrices that BLAS can read: themselves or a copy."""
    form = blas.form_of(matrices.shape[1:], matrices.strides[1:], matrices.dtype.itemsize)
    whole = matrices.strides[0] % matrices.dtype.itemsize == 0 <= matrices.strides[0]
    return matrices if form is not None and whole else device.xp.ascontiguousarray(matrices)


def _check_target(name: str, target: Shape, product: Shape) -> None:
    """Raise ValueError unless a product has the shape of the array that it is added to."""
    if target != product:
        raise ValueError(
            f"Incompatible shapes for {name}: the product has {product}, what it is added to has "
            f"{target}"
        )


# --- along an axis ------------------------------------------------------------------------------


def _axis(node):
    return (1,)


@lowers_to_cupy(SortOp, host=_axis)
def sort(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    return [device.xp.sort(inputs[0], axis=int(inputs[1]))]


@lowers_to_cupy(ArgSortOp, host=_axis)
def argsort(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    return [_cast(device, device.xp.argsort(inputs[0], axis=int(inputs[1])), node)]


@lowers_to_cupy(DiffOp)
def diff(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    (x,), op = inputs, node.op
    return [device.xp.diff(x, n=op.n, axis=op.axis) if op.n else x.copy()]


@lowers_to_cupy(Nonzero)
def nonzero(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    return [_cast(device, device.xp.stack(device.xp.nonzero(inputs[0])), node)]


@lowers_to_cupy(RepeatOp, host=_axis)
def repeat(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    x, repeats = inputs
    times = np.asarray(repeats, np.int64)
    if times.ndim:
        length = x.size if node.op.axis is None else x.shape[node.op.axis]
        if len(times) not in (1, length):
            raise ValueError(f"operands could not be broadcast: {length} and {len(times)} repeats")
        times = np.broadcast_to(times, (length,))
    # CuPy's repeat would launch a kernel for each row
    if node.op.axis is None:
        x = x.reshape(-1)
    axis = node.op.axis or 0
    rows = np.repeat(np.arange(x.shape[axis]), times)
    return [device.xp.take(x, device.xp.asarray(rows), axis=axis)]


@lowers_to_cupy(TopKOp, host=_axis)
def topk(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    xp, op = device.xp, node.op
    x, k = inputs[0], int(inputs[1])
    n = x.shape[op.axis]
    if (k == 0 and n > 0) or abs(k) > n:
        raise ValueError(f"topk: kth cannot be {k} for a dimension of length {n}")
    order = xp.moveaxis(xp.argsort(x, axis=op.axis), op.axis, -1)  # CuPy's argsort is stable
    chosen = xp.moveaxis(order[..., slice(0, -k) if k < 0 else slice(n - k, n)], -1, op.axis)
    if k > 0:
        chosen = xp.flip(chosen, op.axis)
    if not op.sorted:
        chosen = xp.sort(chosen, axis=op.axis)
    results = [xp.take_along_axis(x, chosen, op.axis)] if op.return_values else []
    return results + ([xp.asarray(chosen, dtype=op.idx_dtype)] if op.return_indices else [])


@lowers_to_cupy(PermuteRowElements, host=lambda node: (2,))
def permute_rows(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    xp = device.xp
    x, y, inverse = inputs
    for d, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)):
        if n != m and not any(v.type.broadcastable[d] for v in node.inputs[:2]):
            raise ValueError(f"Dimension mismatch: {x.shape} and {y.shape} in dimension {d}")
    n = x.shape[-1]
    if y.size and bool(((y < -n) | (y >= n)).any()):  # CuPy would wrap around
        raise IndexError(f"a position is out of bounds for rows of {n} elements")
    shape = np.broadcast_shapes(x.shape, y.shape)
    x, y = xp.broadcast_to(x, shape), xp.broadcast_to(y, shape)
    return [xp.take_along_axis(x, xp.argsort(y, axis=-1) if inverse else y, -1)]


# --- parts that are set -------------------------------------------------------------------------


@lowers_to_cupy(FillDiagonal)
def fill_diagonal(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    a, value = inputs
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got {a.shape}")
    out = a.copy()
    positions = device.xp.arange(min(a.shape))
    out[(positions,) * a.ndim] = value
    return [out]


@lowers_to_cupy(FillDiagonalOffset, host=lambda node: (2,))
def fill_diagonal_offset(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    a, value, offset = inputs
    out = a.copy()
    out[tuple(map(device.xp.asarray, positions_on(a.shape, int(offset))))] = value
    return [out]


@lowers_to_cupy(Prepend_scalar_constant_to_each_row)
def prepend_constant(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    return [_with_column(device, node.op.val, inputs[0])]


@lowers_to_cupy(Prepend_scalar_to_each_row)
def prepend_scalar(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    return [_with_column(device, *inputs)]


def _with_column(device, value, matrix):
    out = device.empty((matrix.shape[0], matrix.shape[1] + 1), matrix.dtype)
    out[:, 0] = value
    out[:, 1:] = matrix
    return out


@lowers_to_cupy(UnravelIndex, host=_axis)
def unravel_index(device: Device, node: Apply, inputs: Inputs) -> list[DeviceArray]:
    indices, dims = inputs
    lengths = tuple(map(int, dims))
    if len(lengths) != node.op.ndim:
        raise ValueError(
            f"reshape dims had length {len(lengths)} inconsistent with ndim = {node.op.ndim}"
        )
    size = int(np.prod(lengths))
    wrong = (indices < 0) | (indices >= size)
    if indices.size and bool(wrong.any()):  # CuPy would take any number
        raise ValueError(f"an index is out of bounds for an array of shape {lengths}")
    found = device.xp.unravel_index(indices, lengths, order=node.op.order)
    return [device.xp.asarray(part, dtype="int64") for part in found]
