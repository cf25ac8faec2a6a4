"""Sums, scalings and diagonals of sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.sparse.convert import csc_from_dense, csr_from_dense
from opwise.sparse.type import SparseType
from opwise.sparse.variable import as_compressed, as_sparse_variable, continuous_dtypes
from opwise.sparse.vectors import rows_of_entries, sp_ones_like
from opwise.tensor.creation import alloc
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable


def _scale_node(op: Op, x: Any, s: Any) -> Apply:
    return Apply(op, [x, as_tensor_variable(s)], [x.type.make_variable()])


def _check_scale(op: Op, s: np.ndarray, n: int) -> None:
    if s.shape != (n,):
        raise AssertionError(f"{op}: s must be a vector of {n} elements, but has shape {s.shape}")


class ColScaleCSC(Op):
    """A CSC matrix with each column multiplied by an element of a vector. Gradients are structured.

    Raises ValueError for another format.
    """

    __props__ = ()

    def make_node(self, x: Var, s: Var) -> Apply:
        if x.type.format != "csc":
            raise ValueError(f"x was not a csc matrix: {x} has the format {x.type.format}")
        return _scale_node(self, x, s)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, s = inputs
        _check_scale(self, s, x.shape[1])
        z = x.copy()
        z.data *= s[rows_of_entries(x.indptr)]
        output_storage[0][0] = z

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, s), (gz,) = inputs, output_gradients
        return [col_scale(gz, s), sp_sum(x * gz, axis=0)]

    infer_shape = shapes_of(0)


class RowScaleCSC(Op):
    """A CSC matrix with each row multiplied by an element of a vector. Gradients are structured."""

    __props__ = ()

    def make_node(self, x: Var, s: Var) -> Apply:
        return _scale_node(self, as_compressed(x), s)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, s = inputs
        if x.format != "csc":
            raise AssertionError(f"{self} takes a CSC matrix, not one of format {x.format}")
        _check_scale(self, s, x.shape[0])
        z = x.copy()
        z.data *= s[x.indices]
        output_storage[0][0] = z

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, s), (gz,) = inputs, output_gradients
        return [row_scale(gz, s), sp_sum(x * gz, axis=1)]

    infer_shape = shapes_of(0)


def col_scale(x: Any, s: Any) -> Any:
    """Return a sparse matrix with each column multiplied by an element of the vector ``s``.

    It has the shape, format and dtype of x. The gradient is structured. Raises TypeError unless x
    is sparse, NotImplementedError for other formats than CSR and CSC; at run time AssertionError or
    ValueError unless s has an element for each column (compiled code may ignore further ones of a
    CSR matrix), and TypeError if x has integers and s does not.
    """
    x = as_sparse_variable(x)
    if x.format == "csc":
        return ColScaleCSC()(x, s)
    if x.format == "csr":
        return RowScaleCSC()(x.T, s).T
    raise NotImplementedError(f"{x} has the format {x.format}: only CSR and CSC can be scaled")


def row_scale(x: Any, s: Any) -> Any:
    """Return a sparse matrix with each row multiplied by an element of the vector ``s``.

    It has the shape, format and dtype of x. The gradient is structured. Raises TypeError unless x
    is sparse, AssertionError for a BSR matrix; at run time AssertionError or ValueError unless s
    has an element for each row (compiled code may ignore further ones of a CSC matrix), and
    TypeError if x has integers and s does not.
    """
    return col_scale(as_sparse_variable(x).T, s).T


class SpSum(Op):
    """The sum of a sparse matrix along an axis, 0 or 1, or of all elements (None), dense.

    sparse_grad: whether the gradient has the sparsity pattern of the input.
    """

    # the gradient alone depends on sparse_grad: Applys that differ in it may be merged
    __props__ = ("axis",)

    def __init__(self, axis: int | None = None, sparse_grad: bool = True) -> None:
        self.axis = axis
        self.structured = sparse_grad
        if axis not in (None, 0, 1):
            raise ValueError(f"Illegal value for self.axis: {axis}. It must be None, 0 or 1.")

    def make_node(self, x: Var) -> Apply:
        x = as_compressed(x)
        out = tensor_type(x.type.dtype, () if self.axis is None else (False,))
        return Apply(self, [x], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        total = np.asarray(inputs[0].sum(self.axis), dtype=node.outputs[0].type.dtype)
        output_storage[0][0] = total if self.axis is None else total.ravel()

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if x.type.dtype not in continuous_dtypes:
            return [x.zeros_like(dtype=config.floatX)]
        if self.structured:
            ones = sp_ones_like(x)
            if self.axis is None:
                return [gz * ones]
            return [col_scale(ones, gz) if self.axis == 0 else row_scale(ones, gz)]
        if self.axis is not None:
            gz = dimshuffle(gz, ["x", 0] if self.axis == 0 else [0, "x"])
        dense = alloc(gz, *x.shape)
        return [csc_from_dense(dense) if x.type.format == "csc" else csr_from_dense(dense)]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [() if self.axis is None else (shapes[0][1 - self.axis],)]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{axis={self.axis}}}"


def sp_sum(x: Any, axis: int | None = None, sparse_grad: bool = False) -> Any:
    """Return the sum of a sparse matrix along ``axis`` (default: of all elements), dense.

    It is a vector with an element for each column (axis 0) or row (axis 1), or has shape (), and
    has the dtype of x: sums of small integers wrap around. sparse_grad: whether the gradient has
    the sparsity pattern of x. Raises ValueError for an axis other than None, 0 and 1, TypeError
    unless x is sparse, AssertionError for a BSR matrix.
    """
    return SpSum(axis, sparse_grad)(x)


class Diag(Op):
    """The diagonal of a square sparse matrix, a dense vector of its dtype and of shape (n,).

    Raises TypeError unless x is sparse, AssertionError for a BSR matrix; ValueError at run time if
    it is not square.
    """

    __props__ = ()

    def make_node(self, x: Var) -> Apply:
        x = as_compressed(x)
        return Apply(self, [x], [tensor_type(x.type.dtype, (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        if x.shape[0] != x.shape[1]:
            raise ValueError(f"Diag only apply on square matrix, not on one of shape {x.shape}")
        output_storage[0][0] = np.array(x.diagonal(), dtype=x.dtype)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        g = square_diagonal(output_gradients[0])
        return [g if inputs[0].type.format == "csc" else g.T]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(elemwise("minimum")(*shapes[0]),)]


diag = Diag()


class SquareDiagonal(Op):
    """The square CSC matrix with a dense vector of n elements as its diagonal.

    Its shape is (n, n), its dtype that of the vector. Raises TypeError for other numbers of
    dimensions.
    """

    __props__ = ()

    def make_node(self, diag: Var) -> Apply:
        diag = as_tensor_variable(diag)
        if diag.type.ndim != 1:
            raise TypeError(f"data argument must be a vector, not {diag} of {diag.type}")
        out = SparseType(dtype=diag.type.dtype, format="csc")
        return Apply(self, [diag], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (d,) = inputs
        n = len(d)
        parts = (d.copy(), np.arange(n), np.arange(n + 1))
        output_storage[0][0] = SparseType.format_cls["csc"](parts, shape=(n, n))

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [diag(output_gradients[0])]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(shapes[0][0], shapes[0][0])]


square_diagonal = SquareDiagonal()
