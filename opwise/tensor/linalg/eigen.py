"""Eigenvalues and eigenvectors, and the matrix exponential."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.null import DisconnectedType
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.tensor.advanced_subtensor import user_zeros_like
from opwise.tensor.linalg.operands import (
    as_matrix,
    columns_agree,
    float_dtype,
    matrix_of,
    real_dtype,
    scipy_linalg,
    up_to_signs,
    vector_of,
)
from opwise.tensor.slices import NoneConst
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "Eig",
    "Eigh",
    "EighGrad",
    "Eigvalsh",
    "EigvalshGrad",
    "Expm",
    "ExpmGrad",
    "eig",
    "eigh",
    "eigvalsh",
    "expm",
]


class Eig(Op):
    """The eigenvalues and, as columns, the right eigenvectors of a square matrix.

    Their shapes are (n,) and (n, n). Both have the dtype of the matrix: imaginary parts of those of
    a real matrix are dropped, with numpy's ComplexWarning, and those of integers are rounded
    towards 0. Raises AssertionError unless x is a matrix; at run time LinAlgError if it is not
    square or has infinities or NaN, TypeError for float16.
    """

    __props__: tuple[str, ...] = ()

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        return Apply(self, [x], [vector_of(x.type.dtype), matrix_of(x.type.dtype)])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        for result, storage in zip(np.linalg.eig(x), output_storage, strict=True):
            # numpy 2.5 returns complex numbers even if all imaginary parts are zero
            needed = result if np.iscomplexobj(x) or result.imag.any() else result.real
            storage[0] = np.ascontiguousarray(needed, dtype=x.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        n = shapes[0][0]
        return [(n,), (n, n)]


eig = Eig()


def _of_one_half(gradient: np.ndarray, lower: bool) -> np.ndarray:
    """Return the gradient by a symmetric matrix as one by the half of it that is read."""
    result: np.ndarray
    if lower:
        result = np.tril(gradient) + np.triu(gradient, k=1).T
    else:
        result = np.triu(gradient) + np.tril(gradient, k=-1).T
    return result


class _ReadsHalf(Op):
    """Base of Ops on symmetric matrices. UPLO: the half that is read, 'L' or 'U'."""

    __props__: tuple[str, ...] = ("UPLO",)

    def __init__(self, UPLO: str = "L") -> None:
        assert UPLO in ("L", "U"), f"UPLO must be 'L' or 'U', got {UPLO!r}"
        self.UPLO = UPLO


class Eigh(_ReadsHalf, Eig):
    """The eigenvalues, ascending, and eigenvectors, as columns, of a symmetric matrix.

    UPLO: read the lower ('L') or the upper ('U') half of the matrix.
    """

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        dtype = float_dtype(x)
        v = up_to_signs(matrix_of(dtype), columns_agree)
        return Apply(self, [x], [vector_of(real_dtype(dtype)), v])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return about as many floating-point operations as the usual algorithm takes.

        The source is Golub and Van Loan, Matrix Computations, 8.3: the number of iterations depends
        on the matrix.
        """
        result: int = 9 * inputs[0][0] ** 3
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        half: Any = self.UPLO
        w, v = np.linalg.eigh(inputs[0], half)
        output_storage[0][0], output_storage[1][0] = w, v

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        gradients = [
            user_zeros_like(out) if isinstance(g.type, DisconnectedType) else g
            for out, g in zip(outputs, output_gradients, strict=True)
        ]
        return [EighGrad(self.UPLO)(*inputs, *outputs, *gradients)]


class EighGrad(_ReadsHalf):
    """The gradient by a matrix x; inputs x, w and v = eigh(x), and the gradients by w and v.

    Equal eigenvalues make it infinite or NaN.
    """

    def make_node(
        self, x: TensorLike, w: TensorLike, v: TensorLike, gw: TensorLike, gv: TensorLike
    ) -> Apply:
        x, v, gv = (as_matrix(var, self) for var in (x, v, gv))
        w, gw = as_tensor_variable(w), as_tensor_variable(gw)
        assert w.type.ndim == gw.type.ndim == 1, f"w and gw must be vectors: {w.type}, {gw.type}"
        dtype = dtypes.upcast(*(var.type.dtype for var in (x, w, v, gw, gv)))
        return Apply(self, [x, w, v, gw, gv], [matrix_of(dtype)])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        _, w, v, gw, gv = inputs
        # perturbation theory: dw[n] = v[:, n] dx v[:, n] and dv[:, n] is the sum over other m of
        # v[:, m] (v[:, m] dx v[:, n]) / (w[n] - w[m])
        gaps = w - w[:, np.newaxis]
        np.fill_diagonal(gaps, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            mixed = v.T @ gv / gaps
            mixed[np.diag_indices_from(mixed)] = gw
            gradient = v @ mixed @ v.T
        result = _of_one_half(gradient, self.UPLO == "L")
        output_storage[0][0] = np.asarray(result, dtype=node.outputs[0].type.dtype)

    infer_shape = shapes_of(0)


def eigh(a: TensorLike, UPLO: str = "L") -> list[Tensor]:
    """Return [eigenvalues, eigenvectors] of a symmetric matrix; see Eigh.

    Their shapes are (n,) and (n, n) for a of shape (n, n), a column for each eigenvalue; the dtype
    is that of a (float64 for integers), for eigenvalues of complex matrices that of the real parts.
    UPLO: the half that is read, 'L' or 'U'. Raises AssertionError for another one and unless a is a
    matrix; at run time LinAlgError if a is not square or has NaN, TypeError for float16.
    """
    result: list[Tensor] = Eigh(UPLO)(a)
    return result


# --- the generalized problem --------------------------------------------------------------------


class _LowerOrUpper(Op):
    """Base of Ops on symmetric matrices. lower: whether the lower half is read."""

    __props__ = ("lower",)

    def __init__(self, lower: bool = True) -> None:
        assert lower in (True, False), f"lower must be True or False, got {lower!r}"
        self.lower = lower


class Eigvalsh(_LowerOrUpper):
    """The eigenvalues w, ascending, of a symmetric matrix a: ``dot(a, v) = w * dot(b, v)``.

    Inputs a and b, positive definite; or a alone, given None for b, the identity. Raises
    LinAlgError if b is not positive definite, ValueError for other shapes, infinities and NaN.
    """

    def make_node(self, a: TensorLike, b: Variable | None = None) -> Apply:
        given = [a] if b is None or b is NoneConst else [a, b]
        matrices = [as_matrix(v, self) for v in given]
        return Apply(self, matrices, [vector_of(real_dtype(float_dtype(*matrices)))])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return about as many floating-point operations as the usual algorithm takes."""
        return 4 * inputs[0][0] ** 3 // 3 if len(inputs) == 1 else None

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, b = inputs if len(inputs) == 2 else (*inputs, None)
        w = scipy_linalg().eigvalsh(a, b, lower=self.lower)
        output_storage[0][0] = w.astype(node.outputs[0].type.dtype, copy=False)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        gradients = EigvalshGrad(self.lower)(*inputs, *output_gradients)
        return gradients if isinstance(gradients, list) else [gradients]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [shapes[0][:1]]


class EigvalshGrad(_LowerOrUpper):
    """The gradients by a and b of a cost; inputs a, b if there is one, and the gradient by w."""

    def make_node(self, *inputs: TensorLike) -> Apply:
        matrices, gw = [as_matrix(v, self) for v in inputs[:-1]], as_tensor_variable(inputs[-1])
        assert gw.type.ndim == 1, f"the gradient by eigenvalues must be a vector, got {gw.type}"
        dtype = dtypes.upcast(float_dtype(*matrices), gw.type.dtype)
        return Apply(self, [*matrices, gw], [matrix_of(dtype) for _ in matrices])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        *matrices, gw = inputs
        w, v = scipy_linalg().eigh(*matrices, lower=self.lower)
        gradients = [(v * gw) @ v.T, -(v * (gw * w)) @ v.T]
        for g, storage, out in zip(gradients, output_storage, node.outputs, strict=False):
            result = _of_one_half(g, self.lower)
            storage[0] = np.asarray(result, dtype=out.type.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return shapes[:-1]


def eigvalsh(a: TensorLike, b: Any = None, lower: bool = True) -> Tensor:
    """Return the eigenvalues of a symmetric matrix, or of two; see Eigvalsh.

    a, b: of shape (n, n); b: None (default) for the identity. The result is an ascending vector of
    shape (n,), of the upcast of their dtypes (float64 for integers, that of the real parts for
    complex numbers). lower: whether the lower half is read. Raises AssertionError unless they are
    matrices; at run time LinAlgError if a is not square or b not positive definite, ValueError if
    shapes differ and for infinities and NaN.
    """
    result: Tensor = Eigvalsh(lower)(a, b)
    return result


# --- the matrix exponential ---------------------------------------------------------------------


class Expm(TensorOp):
    """The exponential of a square matrix: the sum of its powers k, divided by the factorials.

    It has the shape of A and its dtype (float64 for integers). Raises AssertionError unless A is a
    matrix; LinAlgError at run time if it is not square.
    """

    __props__ = ()

    def make_node(self, A: TensorLike) -> Apply:
        A = as_matrix(A, self)
        return Apply(self, [A], [matrix_of(float_dtype(A))])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        result = scipy_linalg().expm(inputs[0])
        output_storage[0][0] = result.astype(node.outputs[0].type.dtype, copy=False)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [ExpmGrad()(*inputs, *output_gradients)]

    infer_shape = shapes_of(0)


class ExpmGrad(TensorOp):
    """The gradient by A of a cost; inputs A and the gradient by expm(A)."""

    __props__ = ()

    def make_node(self, A: TensorLike, gw: TensorLike) -> Apply:
        A, gw = as_matrix(A, self), as_matrix(gw, self)
        return Apply(self, [A, gw], [matrix_of(float_dtype(A, gw))])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        # the exponential of [[A', g], [0, A']] has the derivative of expm at A' in direction g in
        # its upper right corner (Mathias 1996); it needs no eigenvectors, which A may lack
        A, g = inputs
        n = len(A)
        both = np.zeros((2 * n, 2 * n), node.outputs[0].type.dtype)
        both[:n, :n] = both[n:, n:] = A.T
        both[:n, n:] = g
        output_storage[0][0] = scipy_linalg().expm(both)[:n, n:].copy()

    infer_shape = shapes_of(0)


expm = Expm()
