"""Matrix products with sparse operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.gradient import grad_not_implemented
from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import product_shape, shapes_of
from opwise.graph.variable import Var
from opwise.scalar.dtypes import upcast
from opwise.sparse.compressed import sdg_csc, sdg_csr
from opwise.sparse.convert import dense_from_sparse, transpose
from opwise.sparse.type import SparseType, holds_sparse
from opwise.sparse.variable import (
    _is_dense_variable,
    _is_sparse_variable,
    as_compressed,
    as_sparse_variable,
)
from opwise.sparse.vectors import CSM, csm_indices, csm_indptr, csm_shape
from opwise.tensor.products import dot as tensor_dot
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable


def _operand(x: Any) -> Any:
    """Return an operand as a variable, sparse if it is sparse."""
    return as_sparse_variable(x) if holds_sparse(x) else x


def _with_sparse(x: Any, y: Any, what: str) -> tuple[Any, Any]:
    """Return two operands; TypeError unless one is sparse."""
    x, y = _operand(x), _operand(y)
    found = [v if hasattr(v, "type") else as_tensor_variable(v) for v in (x, y)]
    if not any(map(_is_sparse_variable, found)):
        raise TypeError(f"{what} requires at least one sparse argument, not {x} and {y}")
    return found[0], found[1]


def _check_inner(op: Op, x: Any, y: Any) -> None:
    if x.shape[-1] != y.shape[0]:
        raise ValueError(
            f"shape mismatch in {op}: the operands have the shapes {x.shape} and {y.shape}"
        )


# --- products that are sparse ---------------------------------------------------------------------


class TrueDot(Op):
    """The product of a sparse and any other matrix, sparse, in the format of the first.

    grad_preserves_dense: whether the gradient by a dense operand is dense.
    """

    # the gradient alone depends on the argument: Applys that differ in it may be merged
    __props__ = ()

    def __init__(self, grad_preserves_dense: bool = True) -> None:
        self.grad_preserves_dense = grad_preserves_dense

    def make_node(self, x: Var, y: Var) -> Apply:
        if x.type.dtype != y.type.dtype:
            raise NotImplementedError(
                f"true_dot takes operands of one dtype, not {x.type} and {y.type}: cast one of them"
            )
        if not _is_sparse_variable(x):
            raise TypeError(f"the first operand of {self} must be sparse, not {x} of {x.type}")
        if x.type.format not in ("csr", "csc"):
            raise NotImplementedError(f"true_dot takes CSR and CSC matrices, not {x.type}")
        out = SparseType(dtype=x.type.dtype, format=x.type.format)
        return Apply(self, [x, y], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        _check_inner(self, x, y)
        out: Any = node.outputs[0].type
        output_storage[0][0] = out.format_cls[out.format](x.dot(y), dtype=out.dtype)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        gx, gy = true_dot(gz, y.T), true_dot(x.T, gz)
        if _is_dense_variable(y) and self.grad_preserves_dense:
            gy = dense_from_sparse(gy)
        return [gx, gy]

    infer_shape = product_shape


def true_dot(x: Any, y: Any, grad_preserves_dense: bool = True) -> Any:
    """Return the sparse product (m, n) of matrices (m, k) and (k, n), one of which is sparse.

    It has the dtype of both and the format of the first sparse operand. grad_preserves_dense:
    whether the gradient by a dense operand is dense. The gradient is regular. Raises TypeError if
    no operand is sparse, NotImplementedError if their dtypes differ; NotImplementedError or
    AssertionError if the first is a BSR matrix; ValueError at run time if the shapes do not fit.
    """
    x, y = _with_sparse(x, y, "true_dot")
    if _is_sparse_variable(x):
        return TrueDot(grad_preserves_dense)(x, y)
    return transpose(TrueDot(grad_preserves_dense)(y.T, x.T))


class StructuredDot(Op):
    """The product of a sparse matrix and a matrix, dense if the second is.

    The gradient by the sparse matrix has its sparsity pattern.
    """

    __props__ = ()
    profile_kind = "product"

    def make_node(self, a: Var, b: Var) -> Apply:
        a = as_sparse_variable(a)
        if a.type.format not in ("csr", "csc", "bsr"):
            raise AssertionError(f"{self} takes CSR, CSC and BSR matrices, not {a.type}")
        if b.type.ndim != 2:
            raise NotImplementedError(f"non-matrix b: {b} has {b.type.ndim} dimensions")
        dtype = upcast(a.type.dtype, b.type.dtype)
        if _is_sparse_variable(b):
            out: Any = SparseType(a.type.format, dtype)
        else:
            out = tensor_type(dtype, (False, b.type.broadcastable[1]))
        return Apply(self, [a, b], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, b = inputs
        _check_inner(self, a, b)
        out: Any = node.outputs[0].type
        if isinstance(out, SparseType):
            output_storage[0][0] = out.format_cls[out.format](a * b, dtype=out.dtype)
        else:
            output_storage[0][0] = np.asarray(a * b, dtype=out.dtype)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (a, b), (gz,) = inputs, output_gradients
        return [structured_dot_grad(a, b, gz), structured_dot(a.T, gz)]

    infer_shape = product_shape


_structured_dot = StructuredDot()


def structured_dot(x: Any, y: Any) -> Any:
    """Return the product (m, n) of two matrices (m, k) and (k, n), one of which is sparse.

    It is dense unless both are sparse, and then has the format of the first; its dtype is the
    upcast of theirs. The gradient by a sparse operand has its sparsity pattern. Raises TypeError if
    no operand is sparse, NotImplementedError if the other does not have 2 dimensions,
    AssertionError for a dense times a BSR matrix; ValueError at run time if the shapes do not fit.
    """
    x, y = _with_sparse(x, y, "structured_dot")
    if _is_sparse_variable(x):
        return _structured_dot(x, y)
    return _structured_dot(y.T, x.T).T


def structured_dot_grad(sparse_A: Any, dense_B: Any, ga: Any) -> Any:
    """Return the gradient by A of ``structured_dot(A, B)``, given that by the product.

    sparse_A: (m, k); dense_B: (k, n); ga: (m, n), both dense or sparse. The result has the shape,
    format and sparsity pattern of A, and the upcast of the dtypes of B and ga. Raises TypeError
    unless A is sparse, NotImplementedError for other formats than CSR and CSC; ValueError at run
    time if the shapes do not fit.
    """
    sparse_A = as_sparse_variable(sparse_A)
    format = sparse_A.type.format
    if format not in ("csr", "csc"):
        raise NotImplementedError(
            f"structured_dot has no gradient by a matrix of format {format}: use CSR or CSC"
        )
    indices, indptr = csm_indices(sparse_A), csm_indptr(sparse_A)
    dense = [dense_from_sparse(v) if _is_sparse_variable(v) else v for v in (dense_B, ga)]
    data = (sdg_csc if format == "csc" else sdg_csr)(indices, indptr, *dense)
    return CSM(format)(data, indices, indptr, csm_shape(sparse_A))


class SamplingDot(Op):
    """The elements of ``dot(x, y.T)`` at the entries of a sparse matrix p, times those entries.

    x: (m, k), y: (n, k), p: (m, n). The result has the shape, format and dtype of p. The product
    itself is not computed. The gradient is regular. Raises TypeError unless p is sparse,
    AssertionError for a BSR matrix; ValueError at run time if the shapes do not fit.
    """

    __props__ = ()

    def make_node(self, x: Var, y: Var, p: Var) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        p = as_compressed(p)
        out = SparseType(p.type.format, p.type.dtype)
        return Apply(self, [x, y, p], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, p = inputs
        if x.shape != (p.shape[0], y.shape[1]) or y.shape[0] != p.shape[1]:
            raise ValueError(
                f"shape mismatch in {self}: x {x.shape}, y {y.shape} and p {p.shape} must be "
                "(m, k), (n, k) and (m, n)"
            )
        out: Any = node.outputs[0].type
        z = p.astype(out.dtype, copy=True)
        entries = p.tocoo()
        z.data = (p.data * np.einsum("ij,ij->i", x[entries.row], y[entries.col])).astype(out.dtype)
        output_storage[0][0] = z

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, y, p), (gz,) = inputs, output_gradients
        pgz = p * gz
        return [dot(pgz, y), dot(pgz.T, x), grad_not_implemented(self, 2, p)]

    infer_shape = shapes_of(2)


sampling_dot = SamplingDot()


# --- products that are dense ----------------------------------------------------------------------


class Dot(Op):
    """The product of two matrices or vectors, one of which is sparse, dense.

    Its gradient is regular: that by a sparse operand is a dense product.
    """

    __props__ = ()
    profile_kind = "product"

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = _operand(x), _operand(y)
        if not (_is_sparse_variable(x) or _is_sparse_variable(y)):
            raise TypeError(
                "Sparse dot product should have at least one sparse variable as inputs, but the "
                f"inputs are {x} ({x.type}) and {y} ({y.type})."
            )
        for i, (own, other) in enumerate(((x, y), (y, x))):
            if _is_sparse_variable(own):
                continue
            as_compressed(other)
            if own.type.ndim not in (1, 2):
                raise TypeError(
                    f"theano.sparse.Dot: input {i} (0-indexed) must have ndim of 1 or 2, "
                    f"{own.type.ndim} given."
                )
        left, right = (getattr(v.type, "broadcastable", (False,) * v.type.ndim) for v in (x, y))
        pattern = left[:-1] + right[1:]
        out = tensor_type(upcast(x.type.dtype, y.type.dtype), pattern)
        return Apply(self, [x, y], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        _check_inner(self, x, y)
        product = x * y
        if holds_sparse(product):
            product = product.toarray()
        output_storage[0][0] = np.asarray(product, dtype=node.outputs[0].type.dtype)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        return [_dot_gradient(self, 0, x, y, gz), _dot_gradient(self, 1, x, y, gz)]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        (*rows, _), (_, *columns) = shapes
        return [(*rows, *columns)]

    def __str__(self) -> str:
        return f"Sparse{type(self).__name__}"


def _dot_gradient(op: Op, wrt: int, x: Any, y: Any, gz: Any) -> Any:
    """Return the gradient by an operand of ``dot(x, y)``: gz y' or x' gz; vectors are one row."""
    other = x if wrt else y
    if other.type.ndim == 1:
        left, right = (x, gz) if wrt else (gz, y)
        return left.dimshuffle(0, "x") * right.dimshuffle("x", 0)
    product = tensor_dot if _is_dense_variable(other) else dot
    return product(x.T, gz) if wrt else product(gz, y.T)


_dot = Dot()


def dot(x: Any, y: Any) -> Any:
    """Return the dense product of two operands, of which at least one is a sparse matrix.

    x, y: (m, k) and (k, n), the product is (m, n); a dense one may also be a vector, and the
    product lacks its dimension. The dtype is the upcast of theirs. The gradient is regular: by a
    sparse operand it is a dense product; ``structured_dot`` computes it at the entries alone.
    Raises TypeError if no operand is sparse or a dense one has other than 1 or 2 dimensions,
    AssertionError for a dense and a BSR matrix; ValueError at run time if the shapes do not fit.
    """
    return _dot(*_with_sparse(x, y, "sparse.dot"))


class Usmm(Op):
    """``alpha * dot(x, y) + z``, dense; one of x and y is sparse, z is a dense matrix.

    x: (m, k), y: (k, n), z: (m, n), which is the shape of the result; its dtype is the upcast of
    all. Rewrites make it; it has no gradient. Raises TypeError if none is sparse, AssertionError
    for other numbers of dimensions; ValueError at run time if the shapes do not fit.
    """

    __props__ = ()
    profile_kind = "product"

    def make_node(self, alpha: Var, x: Var, y: Var, z: Var) -> Apply:
        if not (_is_sparse_variable(x) or _is_sparse_variable(y)):
            raise TypeError(f"{self} takes at least one sparse matrix, not {x} and {y}: use gemm")
        alpha, z = as_tensor_variable(alpha), as_tensor_variable(z)
        dense = [v for v in (x, y) if not _is_sparse_variable(v)]
        if any(v.type.ndim != 2 for v in (*dense, z)) or not all(alpha.type.broadcastable):
            raise AssertionError(
                f"{self} takes a number and matrices, not alpha of {alpha.type}, x of {x.type}, "
                f"y of {y.type} and z of {z.type}"
            )
        dtype = upcast(*(v.type.dtype for v in (alpha, x, y, z)))
        out = tensor_type(dtype, (False, False))
        return Apply(self, [alpha, x, y, z], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        alpha, x, y, z = inputs
        _check_inner(self, x, y)
        product = x * y
        if holds_sparse(product):
            product = product.toarray()
        if product.shape != z.shape:
            raise ValueError(
                f"shape mismatch in {self}: the product has shape {product.shape}, z {z.shape}"
            )
        out = node.outputs[0].type.dtype
        output_storage[0][0] = np.asarray(product * alpha.reshape(()) + z, dtype=out)

    infer_shape = shapes_of(3)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{no_inplace}}"


usmm = Usmm()
