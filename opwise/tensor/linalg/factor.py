"""Factorizations: Cholesky, QR and singular values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.scalar.dtypes import INTEGERS
from opwise.tensor.creation import tril, triu
from opwise.tensor.diagonal import diag, diagonal
from opwise.tensor.elemwise import elemwise
from opwise.tensor.linalg.operands import (
    as_matrix,
    check_finite,
    check_square,
    columns_agree,
    float_dtype,
    has_scipy,
    matrix_of,
    real_dtype,
    rows_agree,
    scipy_linalg,
    up_to_signs,
    vector_of,
)
from opwise.tensor.linalg.systems import Solve, solve_upper_triangular
from opwise.tensor.products import dot
from opwise.tensor.reduce import any as any_
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable, constant

__all__ = [
    "SVD",
    "Cholesky",
    "CholeskyGrad",
    "LUFactor",
    "PivotPermutation",
    "QRFull",
    "QRIncomplete",
    "cholesky",
    "qr",
    "svd",
]


class Cholesky(TensorOp):
    """The triangular matrix L with ``dot(L, L.T)`` equal to a positive definite matrix.

    lower: read the lower half of the matrix and return L, of the shape and dtype of the matrix;
    otherwise read the upper half and return L.T. on_error: for a matrix that is not positive
    definite, 'raise' raises LinAlgError and 'nan' returns NaN everywhere. destructive: overwrite
    the matrix. check_finite: whether infinities and NaN are errors; if not, such a matrix is not
    positive definite. Raises AssertionError unless x is a matrix; at run time LinAlgError, a
    ValueError, if it is not square, ValueError for infinities and NaN.
    """

    __props__ = ("lower", "destructive", "on_error", "check_finite")
    traffic = costs.each_once

    def __init__(
        self,
        lower: bool = True,
        on_error: str = "raise",
        destructive: bool = False,
        check_finite: bool = True,
    ) -> None:
        if on_error not in ("raise", "nan"):
            raise ValueError(f'on_error must be one of "raise" or "nan", got {on_error!r}')
        self.lower = lower
        self.on_error = on_error
        self.destructive = bool(destructive)
        self.check_finite = check_finite
        if self.destructive:
            self.destroy_map = {0: [0]}

    def __str__(self) -> str:
        return super().__str__().replace(", check_finite=True", "")  # as in Theano

    def overwriting(self) -> Cholesky:
        """Return this Op as one that overwrites the matrix."""
        return type(self)(self.lower, self.on_error, True, self.check_finite)

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        return Apply(self, [x], [x.type.make_variable()])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the floating-point operations by the shape, of the highest order."""
        result: int = inputs[0][0] ** 3 // 3
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        check_square(x)
        if self.check_finite:
            check_finite(x)
        try:
            z = self._factor(x)
            if not self.check_finite and not np.isfinite(z).all():
                raise np.linalg.LinAlgError("it holds NaN or infinities")
        except np.linalg.LinAlgError as error:
            if self.on_error == "raise":
                # some releases of scipy give only the number that LAPACK returned
                if "positive definite" in str(error):
                    raise
                raise np.linalg.LinAlgError(
                    f"The matrix is not positive definite: {error}"
                ) from None
            z = np.full(x.shape, np.nan)
        output_storage[0][0] = z.astype(x.dtype, copy=False)

    def _factor(self, x: np.ndarray) -> np.ndarray:
        if has_scipy():
            result: np.ndarray = scipy_linalg().cholesky(
                x, lower=self.lower, check_finite=self.check_finite
            )
            return result
        # numpy reads the lower half
        return np.linalg.cholesky(x) if self.lower else np.linalg.cholesky(x.conj().T).conj().T

    infer_shape = shapes_of(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        # Murray, Differentiation of the Cholesky decomposition (2016), equation 10
        (z,), (gz,) = outputs, output_gradients
        failed = None
        if self.on_error == "nan":
            # a triangular system with NaN would be an error
            failed = any_(elemwise("isnan")(z))
            z, gz = (elemwise("switch")(failed, 1, v) for v in (z, gz))
        if not self.lower:
            z, gz = z.T, gz.T
        inner = dot(z.T, gz)
        inner = tril(inner) - diag(diagonal(inner) / constant(2.0, dtype=z.type.dtype))
        # z.T^-1 inner z^-1
        outer = solve_upper_triangular(z.T, solve_upper_triangular(z.T, inner.T).T)
        both = outer + outer.T
        gx = (tril if self.lower else triu)(both) - diag(diagonal(outer))
        if failed is not None:
            gx = elemwise("switch")(failed, constant(np.nan, dtype=gx.type.dtype), gx)
        return [gx]


cholesky = Cholesky()


class CholeskyGrad(TensorOp):
    """The gradient of a cost by x, given z = cholesky(x) and the gradient by z; see Cholesky.

    A legacy Op: the gradient of Cholesky is made of triangular systems.
    """

    __props__ = ("lower", "destructive")

    def __init__(self, lower: bool = True) -> None:
        self.lower = lower
        self.destructive = False

    def make_node(self, x: TensorLike, l: TensorLike, dz: TensorLike) -> Apply:  # noqa: E741 (the legacy names of the arguments)
        x, z, dz = (as_matrix(v, self) for v in (x, l, dz))
        assert z.owner is not None and z.owner.op.lower == self.lower, (
            "lower/upper mismatch between Cholesky op and CholeskyGrad op"
        )
        return Apply(self, [x, z, dz], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, z, dz = inputs
        if not self.lower:
            z, dz = z.T, dz.T
        inner = np.tril(z.T @ dz)
        inner[np.diag_indices_from(inner)] /= 2
        outer = np.linalg.solve(z.T, np.linalg.solve(z.T, inner.T).T)
        gx = np.tril(outer + outer.T)
        gx[np.diag_indices_from(gx)] /= 2
        gx = gx if self.lower else gx.T
        output_storage[0][0] = gx.astype(x.dtype, copy=False)

    infer_shape = shapes_of(0)


# --- QR -----------------------------------------------------------------------------------------


class _QR(Op):
    """Base of QRFull and QRIncomplete. mode: one of numpy.linalg.qr."""

    __props__ = ("mode",)

    def __init__(self, mode: Any) -> None:
        self.mode = mode

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the floating-point operations of the triangle and of q, of the highest order."""
        m: int
        n: int
        m, n = inputs[0]
        k = min(m, n)
        triangle = 2 * k * k * (max(m, n) - k / 3)
        columns: int = outputs[0][1] if self.mode in ("reduced", "complete") else 0
        if not columns:
            return round(triangle)
        return round(triangle + 4 * m * columns * k - 2 * (m + columns) * k * k + 4 * k**3 / 3)


class QRFull(_QR):
    """The matrices q, with orthonormal columns, and r, upper triangular, with ``dot(q, r) = x``.

    mode: 'reduced', 'complete', or 'raw', whose outputs are those of LAPACK's geqrf.
    """

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        dtype = float_dtype(x)
        if self.mode == "raw":
            return Apply(self, [x], [matrix_of(dtype), vector_of(dtype)])
        outs = [up_to_signs(matrix_of(dtype), columns_agree) for _ in range(2)]
        return Apply(self, [x], outs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        q, r = np.linalg.qr(inputs[0], self.mode)
        output_storage[0][0], output_storage[1][0] = q, r

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        ((m, n),) = shapes
        k = elemwise("minimum")(m, n)
        if self.mode == "raw":
            return [(n, m), (k,)]
        return [(m, m), (m, n)] if self.mode == "complete" else [(m, k), (k, n)]


class QRIncomplete(_QR):
    """The upper triangular matrix r alone. mode: 'r'."""

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        return Apply(self, [x], [up_to_signs(matrix_of(float_dtype(x)), columns_agree)])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.linalg.qr(inputs[0], self.mode)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        ((m, n),) = shapes
        return [(elemwise("minimum")(m, n), n)]


def qr(a: TensorLike, mode: str = "reduced") -> Tensor | list[Tensor]:
    """Return [q, r] with ``dot(q, r) = a``, orthonormal columns of q and an upper triangular r.

    mode: for a matrix of m rows and n columns, and k the smaller of them: 'reduced' gives shapes
    (m, k) and (k, n), 'complete' (m, m) and (m, n); 'r' returns r alone, of shape (k, n); 'raw'
    returns what LAPACK's geqrf does, of shapes (n, m) and (k,). The dtype is that of a (float64 for
    integers). Raises ValueError for another mode, AssertionError unless a is a matrix; TypeError at
    run time for float16.
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}': use reduced, complete, r or raw")
    result: Tensor | list[Tensor] = QRIncomplete(mode)(a) if mode == "r" else QRFull(mode)(a)
    return result


# --- LU -----------------------------------------------------------------------------------------


class LUFactor(Op):
    """The factors of a square matrix with rows in another order, ``x[order] = dot(L, U)``.

    Outputs: both in one matrix, of the dtype of x, L below the diagonal (its own is 1) and U on and
    above it; and pivots, of int32: row i was exchanged with row ``pivots[i]``, one after the other
    (see ``PivotPermutation``). on_error: for a singular matrix, 'nan' returns NaN everywhere and
    'ignore' the factors, with a 0 on the diagonal. Raises TypeError unless x is a matrix of float32
    or float64; at run time LinAlgError if it is not square.
    """

    __props__ = ("on_error",)

    def __init__(self, on_error: str = "ignore") -> None:
        if on_error not in ("ignore", "nan"):
            raise ValueError(f'on_error must be one of "ignore" or "nan", got {on_error!r}')
        self.on_error = on_error

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        if x.type.dtype not in ("float32", "float64"):
            raise TypeError(f"LUFactor takes float32 or float64, not {x.type.dtype}")
        return Apply(self, [x], [matrix_of(x.type.dtype), vector_of("int32")])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the floating-point operations, of the highest order."""
        result: int = 2 * inputs[0][0] ** 3 // 3
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        check_square(x)
        if x.size == 0:
            output_storage[0][0], output_storage[1][0] = x.copy(), np.empty(0, np.int32)
            return
        (getrf,) = scipy_linalg().get_lapack_funcs(("getrf",), (x,))
        factors, pivots, info = getrf(x)
        if info and self.on_error == "nan":
            factors[...] = np.nan
        output_storage[0][0], output_storage[1][0] = factors, pivots.astype(np.int32)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [shapes[0], shapes[0][:1]]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        # de Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular
        # factorization (2011)
        (factors, pivots), (g, _) = outputs, output_gradients
        below = tril(factors, -1)
        by_lower, upper = tril(g, -1), triu(factors)
        inner = tril(dot(below.T, by_lower) + by_lower, -1) + triu(dot(triu(g), upper.T))
        solve_unit = Solve("upper_triangular", unit_diagonal=True)
        ordered = solve_upper_triangular(upper, solve_unit(below.T, inner).T).T
        return [ordered[PivotPermutation(inverse=True)(pivots)]]


class PivotPermutation(TensorOp):
    """The order of rows, int64, after row i was exchanged with row ``pivots[i]``, one by one.

    inverse: return its inverse, which restores the order. Raises TypeError unless pivots are a
    vector of integers; at run time IndexError for pivots out of range.
    """

    __props__ = ("inverse",)

    def __init__(self, inverse: bool = False) -> None:
        self.inverse = bool(inverse)

    def make_node(self, pivots: TensorLike) -> Apply:
        pivots = as_tensor_variable(pivots)
        if pivots.type.ndim != 1 or pivots.type.dtype not in INTEGERS:
            raise TypeError(f"PivotPermutation takes a vector of integers, not {pivots.type}")
        return Apply(self, [pivots], [vector_of("int64")])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (pivots,) = inputs
        order = np.arange(len(pivots))
        for i, other in enumerate(pivots.tolist()):
            order[i], order[other] = order[other], order[i]
        output_storage[0][0] = np.argsort(order) if self.inverse else order

    infer_shape = shapes_of(0)


# --- singular values ----------------------------------------------------------------------------


class SVD(Op):
    """The matrices u and v and the vector s, descending, with ``dot(u * s, v)`` equal to x.

    The columns of u and the rows of v are orthonormal. full_matrices: return square u and v.
    compute_uv: return u, s and v; otherwise s alone. Raises LinAlgError if it does not converge.
    """

    __props__ = ("full_matrices", "compute_uv")

    def __init__(self, full_matrices: int = True, compute_uv: int = True) -> None:
        self.full_matrices = full_matrices
        self.compute_uv = compute_uv

    def make_node(self, x: TensorLike) -> Apply:
        x = as_matrix(x, self)
        dtype = float_dtype(x)
        s = vector_of(real_dtype(dtype))
        if not self.compute_uv:
            return Apply(self, [x], [s])
        u = up_to_signs(matrix_of(dtype), columns_agree)
        return Apply(self, [x], [u, s, up_to_signs(matrix_of(dtype), rows_agree)])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return about as many floating-point operations as the usual algorithm takes.

        The source is Golub and Van Loan, Matrix Computations, 8.6.4: the number of iterations
        depends on the matrix.
        """
        m: int = max(inputs[0])
        n: int = min(inputs[0])
        if not self.compute_uv:
            return round(4 * m * n * n - 4 * n**3 / 3)
        if self.full_matrices:
            return 4 * m * m * n + 8 * m * n * n + 9 * n**3
        return 14 * m * n * n + 8 * n**3

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        svd: Any = np.linalg.svd  # checkers of types know its flags only as constants
        results = svd(inputs[0], self.full_matrices, self.compute_uv)
        for result, storage in zip(
            results if self.compute_uv else [results], output_storage, strict=True
        ):
            storage[0] = result

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        ((m, n),) = shapes
        k = elemwise("minimum")(m, n)
        if not self.compute_uv:
            return [(k,)]
        return [(m, m), (k,), (n, n)] if self.full_matrices else [(m, k), (k,), (k, n)]


def svd(
    a: TensorLike, full_matrices: bool | int = 1, compute_uv: bool | int = 1
) -> Tensor | list[Tensor]:
    """Return [u, s, v] with ``dot(u * s, v) = a``, or s alone without ``compute_uv``.

    The singular values s descend; u has orthonormal columns and v orthonormal rows. full_matrices:
    u and v are square; otherwise they have as many columns and rows as s has values. For a of shape
    (m, n), and k the smaller of both, the shapes are (m, m), (k,) and (n, n), or (m, k), (k,) and
    (k, n). The dtype is that of a (float64 for integers), for s that of the real parts. Raises
    AssertionError unless a is a matrix; at run time LinAlgError if it does not converge (for NaN,
    for example), TypeError for float16.
    """
    result: Tensor | list[Tensor] = SVD(full_matrices, compute_uv)(a)
    return result
