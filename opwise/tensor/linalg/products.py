"""Products, powers and norms of matrices, and diagonals under their names in ``nlinalg``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.tensor.diagonal import AllocDiag as _AllocDiag
from opwise.tensor.diagonal import ExtractDiag
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise
from opwise.tensor.linalg.factor import svd
from opwise.tensor.products import dot, outer
from opwise.tensor.reduce import Axis
from opwise.tensor.reduce import max as max_
from opwise.tensor.reduce import min as min_
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.selection import nonzero
from opwise.tensor.shape import flatten, reshape
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable

__all__ = [
    "AllocDiag",
    "ExtractDiag",
    "alloc_diag",
    "diag",
    "extract_diag",
    "kron",
    "matrix_dot",
    "matrix_power",
    "norm",
    "trace",
]


class AllocDiag(_AllocDiag):
    """The matrix with a vector on its main diagonal, and zeros elsewhere."""

    __props__: tuple[str, ...] = ()  # type: ignore[assignment]  # of one diagonal only

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if x.type.ndim != 1:
            raise TypeError(f"AllocDiag only works on vectors, got {x.type}", x)
        return super().make_node(x)


alloc_diag = AllocDiag()
extract_diag = ExtractDiag()


def diag(x: TensorLike) -> Tensor:
    """Return the main diagonal of a matrix, or the matrix with a vector on its main diagonal.

    For x of shape (m, n), the result is a vector of the smaller of both; for (n,), it is of shape
    (n, n). It has the dtype of x. Raises TypeError for other numbers of dimensions.
    """
    x = as_tensor_variable(x)
    if x.type.ndim == 1:
        return alloc_diag(x)
    if x.type.ndim == 2:
        return extract_diag(x)
    raise TypeError(f"diag requires vector or matrix argument, got {x.type}", x)


def trace(X: TensorLike) -> Tensor:
    """Return the sum of the main diagonal of a matrix, of shape ().

    Its dtype is that of X, for integers int64 (for unsigned ones uint64). Raises ValueError for
    fewer than 2 dimensions; of more dimensions, all diagonals of the first two are summed.
    """
    return sum_(extract_diag(X))


def matrix_dot(*args: TensorLike) -> Tensor:
    """Return the product of matrices, from left to right.

    Of shapes (m, k), (k, l), ..., (p, n) it has shape (m, n); its dtype is the upcast of theirs. A
    single argument is returned as it is. Raises TypeError without arguments; ValueError at run time
    if the shapes do not fit.
    """
    factors: list[Any] = list(args)
    result: Tensor = reduce(dot, factors)
    return result


def matrix_power(M: TensorLike, n: int) -> Tensor | int:
    """Return the product of n times ``M``, a square matrix; the number 1 if n is 0 or less.

    n: an int. The result has the shape and dtype of M, for bools int8. Raises TypeError if n is no
    int; ValueError at run time if M is not square and n is 2 or more.
    """
    result: Tensor | int = 1
    for _ in range(n):
        result = dot(result, M)
    return result


def kron(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the Kronecker product, as scipy.linalg.kron.

    It has the dimensions of both less 2: of shapes (m, n) and (p, q), it has shape (m * p, n * q).
    Its dtype is the upcast of theirs. Raises TypeError if they have fewer than 3 dimensions
    together.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    ndim = a.type.ndim + b.type.ndim
    if ndim <= 2:
        raise TypeError(
            "kron: inputs dimensions must sum to 3 or more. "
            f"You passed {a.type.ndim} and {b.type.ndim}."
        )
    lengths = [shape_of(v)[d] for v in (a, b) for d in range(v.type.ndim)]
    product = reshape(outer(a, b), lengths, ndim)
    if ndim == 3:
        return flatten(dimshuffle(product, (1, 0, 2)))
    product = dimshuffle(product, (0, 2, 1, *range(3, ndim)))
    rows, columns = lengths[0] * lengths[2], lengths[1] * lengths[3]
    return reshape(product, (rows, columns, *lengths[4:]), ndim - 2)


# --- norms --------------------------------------------------------------------------------------


def norm(x: TensorLike, ord: Any = None, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return a norm of a vector or a matrix, or of those along ``axis`` of a tensor.

    ord: for vectors a number, None (2), 'inf' or '-inf'; for matrices None or 'fro', 1, -1, 2, -2,
    'nuc', 'inf' or '-inf'; as in numpy, which writes infinities as numbers. axis: an axis for norms
    of vectors, two axes for norms of matrices (default: all of x). The result has the shape of x
    without these axes. Its dtype is that of x, that of the real parts for complex numbers, and for
    integers float64, or an integer one where sums and maxima suffice; other numbers than the named
    ones for vectors give at least floatX, and 0 gives int64.

    Raises ValueError for another ord, an axis out of range or a scalar, and NotImplementedError for
    more than 2 dimensions without an axis, and for 2, -2 and 'nuc' along axes of a tensor.
    """
    x = as_tensor_variable(x)
    axes = tuple(range(x.type.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    axes = tuple(a % x.type.ndim if -x.type.ndim <= a < x.type.ndim else a for a in axes)
    if not axes or max(axes) >= x.type.ndim or min(axes) < 0:
        raise ValueError(f"'axis' entry is out of bounds: {axis} for {x.type}")
    if len(axes) > 2:
        raise NotImplementedError(
            f"norm takes vectors and matrices, got {x.type}: name one or two axes"
        )
    if isinstance(ord, float) and np.isinf(ord):
        ord = "inf" if ord > 0 else "-inf"
    return _vector_norm(x, ord, axes[0]) if len(axes) == 1 else _matrix_norm(x, ord, *axes)


def _root_of_squares(x: Tensor, axes: Axis) -> Tensor:
    return elemwise("sqrt")(sum_(elemwise("sqr")(elemwise("abs_")(x)), axis=axes))


def _vector_norm(x: Tensor, ord: float | str | None, axis: int) -> Tensor:
    size = elemwise("abs_")(x)
    if ord is None:
        return _root_of_squares(x, axis)
    if ord == "inf":
        return max_(size, axis=axis)
    if ord == "-inf":
        return min_(size, axis=axis)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order for vectors: {ord!r}")
    if ord == 0:
        if x.type.ndim == 1:
            return shape_of(nonzero(x)[0])[0]
        return sum_(elemwise("neq")(x, 0), axis=axis)
    return sum_(size**ord, axis=axis) ** (1.0 / ord)


def _matrix_norm(x: Tensor, ord: int | str | None, rows: int, columns: int) -> Tensor:
    if ord in (None, "fro"):
        return _root_of_squares(x, (rows, columns))
    if ord in (1, -1, "inf", "-inf"):
        summed, other = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = sum_(elemwise("abs_")(x), axis=summed)
        left = other - (summed < other)
        return (max_ if ord in (1, "inf") else min_)(sums, axis=left)
    if ord in (2, -2, "nuc"):
        if x.type.ndim > 2:
            raise NotImplementedError(f"norm {ord!r} takes a matrix, got {x.type}")
        values = svd(x, compute_uv=False)
        return sum_(values) if ord == "nuc" else max_(values) if ord == 2 else min_(values)
    raise ValueError(f"Invalid norm order for matrices: {ord!r}")
