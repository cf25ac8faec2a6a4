"""Fourier transforms of the rows or columns of a matrix; as in ``theano.sandbox.fourier``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.type import generic
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.linalg.operands import as_matrix, matrix_of
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable

__all__ = ["FFT", "dct_matrix", "fft", "half_fft", "half_ifft", "ifft"]


class FFT(Op):
    """The transform, complex128, of a matrix along an axis; inputs (frames, n, axis).

    n: the length of the result along the axis. half: return its first half, of an even number.
    inverse: return the inverse transform. A second output, None, is kept for old programs.
    """

    __props__ = ("half", "inverse")
    default_output = 0

    def __init__(self, half: bool = False, inverse: bool = False) -> None:
        self.half = half
        self.inverse = inverse

    def make_node(self, frames: TensorLike, n: TensorLike, axis: TensorLike) -> Apply:
        frames = as_matrix(frames, self)
        n, axis = as_tensor_variable(n, ndim=0), as_tensor_variable(axis, ndim=0)
        if self.half and frames.type.dtype in dtypes.COMPLEX:
            raise TypeError(f"Argument to HalfFFT must not be complex, got {frames.type}", frames)
        return Apply(self, [frames, n, axis], [matrix_of("complex128"), generic()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        frames, n, axis = inputs
        axis = int(axis)
        result = (np.fft.ifft if self.inverse else np.fft.fft)(frames, int(n), axis)
        if self.half:
            length = result.shape[axis]
            if length % 2:
                raise ValueError(f"halfFFT on odd-length vectors is undefined, got length {length}")
            result = result[: length // 2] if axis in (0, -2) else result[:, : length // 2]
        output_storage[0][0] = result.astype(np.complex128, copy=False)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False], [False, False], [False, False]]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        raise NotImplementedError(f"{self} has no gradient: theano.tensor.fft.rfft has one")


fft = FFT()
half_fft = FFT(half=True)
ifft = FFT(inverse=True)
half_ifft = FFT(half=True, inverse=True)


def dct_matrix(rows: int, cols: int, unitary: bool = True) -> np.ndarray:
    """Return the matrix of the first ``rows`` basis vectors of a cosine transform of ``cols``.

    It has the shape (rows, cols) and dtype float64. unitary: the rows are orthonormal; otherwise
    the first one is longer by the square root of 2. Raises ValueError unless both are 1 or more.
    """
    if min(rows, cols) < 1:
        raise ValueError(
            f"a cosine transform has 1 or more rows and columns, not {rows} and {cols}"
        )
    angles = np.arange(rows)[:, np.newaxis] * (2 * np.arange(cols) + 1) * np.pi / (2 * cols)
    matrix: np.ndarray = np.cos(angles) * np.sqrt(2.0 / cols)
    if unitary:
        matrix[0] *= np.sqrt(0.5)
    return matrix
