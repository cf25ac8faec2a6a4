"""Solutions of systems of linear equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.variable import Var
from opwise.tensor.creation import tril, triu
from opwise.tensor.linalg.operands import (
    as_matrix,
    check_finite,
    check_square,
    has_scipy,
    scipy_linalg,
)
from opwise.tensor.products import dot, outer
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import TensorLike, TensorOp

if TYPE_CHECKING:
    from opwise.tensor.variable import Tensor


__all__ = [
    "MATRIX_STRUCTURES",
    "Solve",
    "solve",
    "solve_lower_triangular",
    "solve_symmetric",
    "solve_upper_triangular",
]

#: what is known of the matrix of a system; all but the triangular ones are solved as general ones
MATRIX_STRUCTURES = (
    "general",
    "symmetric",
    "lower_triangular",
    "upper_triangular",
    "hermitian",
    "banded",
    "diagonal",
    "toeplitz",
)

_TRANSPOSED = {
    "lower_triangular": "upper_triangular",
    "upper_triangular": "lower_triangular",
}


class Solve(TensorOp):
    """The solution x of ``dot(A, x) = b`` for a square matrix A, and a vector or matrix b.

    A_structure: one of MATRIX_STRUCTURES; the other half of a triangular matrix is not read. The
    solution has the shape of b. The dtype is that of the operands, at least float32; float64 for
    integers of 32 and 64 bits. lower, overwrite_A, overwrite_b: accepted for old programs.
    check_finite: whether infinities and NaN are errors. inplace: overwrite b. Raises AssertionError
    for other numbers of dimensions; at run time LinAlgError for a singular matrix, and ValueError
    for other shapes, infinities and NaN.
    """

    __props__ = (
        "A_structure", "lower", "overwrite_A", "overwrite_b", "check_finite", "inplace"
    )  # fmt: skip

    def __init__(
        self,
        A_structure: str = "general",
        lower: bool = False,
        overwrite_A: bool = False,
        overwrite_b: bool = False,
        check_finite: bool = True,
        inplace: bool = False,
    ) -> None:
        if A_structure not in MATRIX_STRUCTURES:
            raise ValueError(
                f"Invalid matrix structure argument; use one of {', '.join(MATRIX_STRUCTURES)}",
                A_structure,
            )
        self.A_structure = A_structure
        self.lower = lower
        self.overwrite_A = overwrite_A
        self.overwrite_b = overwrite_b
        self.check_finite = check_finite
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [1]}

    def overwriting(self) -> Solve:
        """Return this Op as one that overwrites b."""
        return type(self)(**{**self._props_dict(), "inplace": True})

    @property
    def is_triangular(self) -> bool:
        """Return whether only one half of the matrix is read."""
        return self.A_structure in _TRANSPOSED

    def make_node(self, A: TensorLike, b: TensorLike) -> Apply:
        A, b = as_matrix(A, self), as_matrix(b, self, (1, 2))
        dtype = np.result_type(A.type.dtype, b.type.dtype, np.float32).name
        return Apply(self, [A, b], [tensor_type(dtype, b.type.broadcastable).make_variable()])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the floating-point operations of a factorization and of two substitutions."""
        (n, _), b = inputs
        columns = b[1] if len(b) > 1 else 1
        result: int = n * n * columns if self.is_triangular else 2 * n**3 // 3 + 2 * n * n * columns
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        A, b = inputs
        self.check_shapes(A, b)
        if self.check_finite:
            check_finite(A, b)
        dtype = node.outputs[0].type.dtype
        A, b = A.astype(dtype, copy=False), b.astype(dtype, copy=False)
        if self.is_triangular:
            x = _substituted(A, b, self.A_structure == "lower_triangular")
        else:
            x = np.linalg.solve(A, b)
        output_storage[0][0] = x

    def check_shapes(self, A: np.ndarray, b: np.ndarray) -> None:
        """Raise ValueError unless the matrix is square and has as many rows as b."""
        check_square(A)
        if A.shape[0] != b.shape[0]:
            raise ValueError(
                f"incompatible dimensions: the matrix has shape {A.shape}, the right-hand side "
                f"{b.shape}"
            )

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        A, b = shapes
        return [(A[1], *b[1:])]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        # Giles, An extended collection of matrix derivative results (2008), 2.3.1
        (A, _), (x,), (gx,) = inputs, outputs, output_gradients
        transposed = Solve(_TRANSPOSED.get(self.A_structure, self.A_structure), not self.lower)
        gb = transposed(A.T, gx)
        gA = -outer(gb, x) if x.type.ndim == 1 else -dot(gb, x.T)
        if self.A_structure == "lower_triangular":
            gA = tril(gA)
        elif self.A_structure == "upper_triangular":
            gA = triu(gA)
        return [gA, gb]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self._props()[:4]}}}"


def _substituted(A: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    if not b.size:
        return np.zeros_like(b)
    if has_scipy():
        result: np.ndarray = scipy_linalg().solve_triangular(A, b, lower=lower, check_finite=False)
        return result
    return np.linalg.solve(np.tril(A) if lower else np.triu(A), b)


solve = Solve()
solve_lower_triangular = Solve("lower_triangular", lower=True)
solve_upper_triangular = Solve("upper_triangular", lower=False)
solve_symmetric = Solve("symmetric")
