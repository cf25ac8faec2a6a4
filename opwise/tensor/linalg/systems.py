"""Solutions of systems of linear equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.variable import Var
from opwise.tensor.creation import tril, triu
from opwise.tensor.diagonal import diag, diagonal
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
    check_finite: whether infinities and NaN are errors. inplace: overwrite b. on_error: for a
    singular matrix, 'raise' raises LinAlgError and 'nan' returns NaN everywhere. unit_diagonal:
    take the diagonal of a triangular matrix as ones. Raises AssertionError for other numbers of
    dimensions; at run time LinAlgError for a singular matrix, and ValueError for other shapes,
    infinities and NaN.
    """

    __props__ = (
        "A_structure", "lower", "overwrite_A", "overwrite_b", "check_finite", "inplace",
        "on_error", "unit_diagonal",
    )  # fmt: skip

    def __init__(
        self,
        A_structure: str = "general",
        lower: bool = False,
        overwrite_A: bool = False,
        overwrite_b: bool = False,
        check_finite: bool = True,
        inplace: bool = False,
        on_error: str = "raise",
        unit_diagonal: bool = False,
    ) -> None:
        if on_error not in ("raise", "nan"):
            raise ValueError(f'on_error must be one of "raise" or "nan", got {on_error!r}')
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
        self.on_error = on_error
        self.unit_diagonal = unit_diagonal
        if inplace:
            self.destroy_map = {0: [1]}

    def overwriting(self) -> Solve:
        """Return this Op as one that overwrites b."""
        return self.variant(inplace=True)

    def variant(self, **settings: Any) -> Solve:
        """Return this Op with some other settings, arguments of the class."""
        return type(self)(**{**self._props_dict(), **settings})

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
        try:
            if self.is_triangular:
                x = self._substituted(A, b)
            else:
                x = np.linalg.solve(A, b)
        except np.linalg.LinAlgError:
            if self.on_error == "raise":
                raise
            x = np.full(b.shape, np.nan, dtype)
        output_storage[0][0] = x

    def _substituted(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        lower = self.A_structure == "lower_triangular"
        if not b.size:
            return np.zeros_like(b)
        if has_scipy():
            result: np.ndarray = scipy_linalg().solve_triangular(
                A, b, lower=lower, unit_diagonal=self.unit_diagonal, check_finite=False
            )
            return result
        A = np.tril(A) if lower else np.triu(A)
        if self.unit_diagonal:
            np.fill_diagonal(A, 1)
        return np.linalg.solve(A, b)

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
        structure = _TRANSPOSED.get(self.A_structure, self.A_structure)
        transposed = Solve(
            structure, not self.lower, on_error=self.on_error, unit_diagonal=self.unit_diagonal
        )
        gb = transposed(A.T, gx)
        gA = -outer(gb, x) if x.type.ndim == 1 else -dot(gb, x.T)
        if self.A_structure == "lower_triangular":
            gA = tril(gA)
        elif self.A_structure == "upper_triangular":
            gA = triu(gA)
        if self.unit_diagonal:
            gA = gA - diag(diagonal(gA))
        return [gA, gb]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self._props()[:4]}}}"


solve = Solve()
solve_lower_triangular = Solve("lower_triangular", lower=True)
solve_upper_triangular = Solve("upper_triangular", lower=False)
solve_symmetric = Solve("symmetric")
