"""Sparse matrices in another dtype, format or order, and as dense matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.sparse.type import SparseType, holds_sparse
from opwise.sparse.variable import (
    as_compressed,
    as_sparse_variable,
    complex_dtypes,
    discrete_dtypes,
)
from opwise.sparse.vectors import sp_ones_like
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast as cast_tensor
from opwise.tensor.shape import patternbroadcast
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable


class Cast(Op):
    """The same matrix with another dtype."""

    __props__ = ("out_type",)

    def __init__(self, out_type: str) -> None:
        self.out_type = out_type

    def make_node(self, x: Var) -> Apply:
        x = as_compressed(x)
        out = SparseType(dtype=self.out_type, format=x.type.format)
        return Apply(self, [x], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0].astype(self.out_type)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if {gz.type.dtype, x.type.dtype} & set(complex_dtypes):
            raise NotImplementedError("casts of complex sparse matrices have no gradient")
        if self.out_type in discrete_dtypes:
            dtype = config.floatX if x.type.dtype in discrete_dtypes else x.type.dtype
            return [x.zeros_like(dtype=dtype)]
        return [gz if x.type.dtype in discrete_dtypes else Cast(x.type.dtype)(gz)]

    infer_shape = shapes_of(0)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.out_type})"


bcast = Cast("int8")
wcast = Cast("int16")
icast = Cast("int32")
lcast = Cast("int64")
fcast = Cast("float32")
dcast = Cast("float64")
ccast = Cast("complex64")
zcast = Cast("complex128")


def cast(variable: Any, dtype: str) -> Any:
    """Return a sparse matrix with the same entries in ``dtype``, of the shape and format of it.

    dtype: one of ``sparse.all_dtypes``. The gradient is regular. Raises NotImplementedError for
    another dtype (bool and float16 among them), TypeError unless the variable is sparse, and
    AssertionError for a BSR matrix.
    """
    return Cast(dtype)(variable)


class DenseFromSparse(Op):
    """The dense matrix with the elements of a sparse one, of its shape and dtype.

    structured: whether the gradient has the sparsity pattern of the input (the default), and not an
    entry everywhere. Raises TypeError unless x is sparse.
    """

    # the gradient alone depends on sparse_grad: Applys that differ in it may be merged
    __props__ = ()

    def __init__(self, structured: bool = True) -> None:
        self.sparse_grad = structured

    def make_node(self, x: Var) -> Apply:
        x = as_sparse_variable(x)
        out = tensor_type(x.type.dtype, (False, False))
        return Apply(self, [x], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        output_storage[0][0] = x.toarray() if holds_sparse(x) else np.array(x)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if not self.sparse_grad:
            return [SparseFromDense(x.type.format)(gz)]
        ones = sp_ones_like(x)
        if (ones.type.dtype, gz.type.dtype) == ("float64", "float32"):
            gz = cast_tensor(gz, "float64")
        return [ones * gz]

    infer_shape = shapes_of(0)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{structured_grad={self.sparse_grad}}}"


dense_from_sparse = DenseFromSparse()


class SparseFromDense(Op):
    """The sparse matrix, of a format, with the elements of a dense one that are not 0.

    It has the shape and dtype of x; a vector is one row. Raises TypeError for more than two
    dimensions, NotImplementedError for a dtype that sparse matrices cannot have (bool, float16).
    """

    __props__ = ("format",)

    def __init__(self, format: str) -> None:
        self.format = format

    def make_node(self, x: Var) -> Apply:
        x = as_tensor_variable(x)
        if x.type.ndim > 2:
            raise TypeError(
                "Theano does not have sparse tensor types with more than 2 dimensions, but "
                f"{x}.ndim = {x.type.ndim}"
            )
        if x.type.ndim < 2:
            x = dimshuffle(x, ["x"] * (2 - x.type.ndim) + list(range(x.type.ndim)))
        out = SparseType(dtype=x.type.dtype, format=self.format)
        return Apply(self, [x], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = SparseType.format_cls[self.format](inputs[0])

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        return [patternbroadcast(dense_from_sparse(gz), x.type.broadcastable)]

    infer_shape = shapes_of(0)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.format}}}"


csr_from_dense = SparseFromDense("csr")
csc_from_dense = SparseFromDense("csc")


class Transpose(Op):
    """The transpose: a CSR matrix for a CSC one, and the reverse, over the same memory.

    A matrix of shape (m, n) gives (n, m), of the same dtype. Raises TypeError unless x is sparse,
    AssertionError for a BSR matrix.
    """

    __props__ = ()
    view_map = {0: [0]}
    format_map = {"csr": "csc", "csc": "csr"}

    def make_node(self, x: Var) -> Apply:
        x = as_compressed(x)
        out = SparseType(dtype=x.type.dtype, format=self.format_map[x.type.format])
        return Apply(self, [x], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0].transpose()

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [transpose(output_gradients[0])]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [shapes[0][::-1]]

    def __str__(self) -> str:
        return f"Sparse{type(self).__name__}"


transpose = Transpose()


class ChangeFormat(Op):
    """The same matrix in another format."""

    __props__ = ("format",)

    def __init__(self, format: str) -> None:
        self.format = format

    def make_node(self, x: Var) -> Apply:
        x = as_sparse_variable(x)
        out = SparseType(dtype=x.type.dtype, format=self.format)
        return Apply(self, [x], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0].asformat(self.format, copy=True)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [ChangeFormat(inputs[0].type.format)(output_gradients[0])]

    infer_shape = shapes_of(0)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.format}}}"


class _SameValues(Op):
    """Base of Ops that store the same matrix in another way. inplace: change the input."""

    __props__ = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, x: Var) -> Apply:
        x = as_compressed(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x = inputs[0] if self.inplace else inputs[0].copy()
        self.change(x)
        output_storage[0][0] = x

    def change(self, x: Any) -> None:
        """Change how the matrix ``x`` is stored."""
        raise NotImplementedError(f"{type(self).__name__} defines no change")

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [output_gradients[0]]

    infer_shape = shapes_of(0)


class EnsureSortedIndices(_SameValues):
    """The same matrix with the entries of each row (CSR) or column (CSC) in order.

    inplace: sort the entries of the input. Shape, format and dtype stay. Raises TypeError unless x
    is sparse, AssertionError for a BSR matrix.
    """

    def change(self, x: Any) -> None:
        # scipy trusts what it noted of the order; others may have changed the arrays since
        x.has_sorted_indices = False
        x.sort_indices()

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{'inplace' if self.inplace else 'no_inplace'}}}"


ensure_sorted_indices = EnsureSortedIndices(inplace=False)


class Remove0(_SameValues):
    """The same matrix without entries that are 0. inplace: remove them from the input.

    Shape, format and dtype stay. Raises TypeError unless x is sparse, AssertionError for a BSR
    matrix.
    """

    def change(self, x: Any) -> None:
        x.eliminate_zeros()

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{'inplace' if self.inplace else ''}}}"


remove0 = Remove0()


#: Theano's earlier names
EliminateZeros, eliminate_zeros = Remove0, remove0


def clean(x: Any) -> Any:
    """Return a matrix without entries that are 0, and with the others in order.

    It has the shape, format and dtype of ``x``. Raises TypeError unless x is sparse, AssertionError
    for a BSR matrix.
    """
    return ensure_sorted_indices(remove0(x))
