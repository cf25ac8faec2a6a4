"""Sums and products of sparse matrices, elementwise, with sparse and dense operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.scalar.dtypes import upcast
from opwise.sparse.convert import dense_from_sparse
from opwise.sparse.reduce import sp_sum
from opwise.sparse.type import SparseType
from opwise.sparse.variable import (
    _is_sparse_variable,
    as_compressed,
    as_sparse_or_tensor_variable,
    continuous_dtypes,
    sparse_operands,
)
from opwise.sparse.vectors import rows_of_entries, sp_ones_like
from opwise.tensor.elemwise import cast as cast_tensor
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable


class Neg(Op):
    """The matrix with every entry negated, of its shape, format and dtype.

    Raises TypeError unless x is sparse, AssertionError for a BSR matrix.
    """

    __props__ = ()

    def make_node(self, x: Var) -> Apply:
        x = as_compressed(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = -inputs[0]

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [-output_gradients[0]]

    infer_shape = shapes_of(0)

    def __str__(self) -> str:
        return f"Sparse{type(self).__name__}"


neg = Neg()


def _check_shapes(op: Op, x: Any, y: Any) -> None:
    if x.shape != y.shape:
        raise AssertionError(
            f"{op}: the operands have the shapes {x.shape} and {y.shape}, which must be equal"
        )


def _zero_or(gz: Any, x: Any) -> Any:
    """Return the gradient ``gz`` by x; zeros if the dtype of x has no gradient."""
    return gz if x.type.dtype in continuous_dtypes else x.zeros_like(dtype=gz.type.dtype)


class _Elementwise(Op):
    """Base of Ops on two sparse matrices; the result has the format of the first."""

    __props__ = ()

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_compressed(x), as_compressed(y)
        out = SparseType(dtype=upcast(x.type.dtype, y.type.dtype), format=x.type.format)
        return Apply(self, [x, y], [out.make_variable()])

    infer_shape = shapes_of(0)


class _ByColumn(Op):
    """Base of Ops that combine each entry with the element of a vector for its column.

    Both must have one dtype.
    """

    __props__ = ()
    #: the function of numpy that combines them
    combine: np.ufunc

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_compressed(x), as_tensor_variable(y)
        if y.type.ndim != 1:
            raise AssertionError(f"{self} takes a vector, not {y} of {y.type}")
        if x.type.dtype != y.type.dtype:
            raise NotImplementedError(
                f"{self} not implemented for differing dtypes. Got {x.type.dtype} and "
                f"{y.type.dtype}: cast one of them."
            )
        return Apply(self, [x, y], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        if x.shape[1] != y.shape[0]:
            raise AssertionError(
                f"{self}: the vector has {y.shape[0]} elements, but the matrix has the shape "
                f"{x.shape}: each column needs one"
            )
        z = x.copy()
        self.combine(z.data, y[_columns_of_entries(x)], out=z.data)
        output_storage[0][0] = z

    infer_shape = shapes_of(0)


def _columns_of_entries(x: Any) -> Any:
    """Return the column of each stored entry."""
    return x.indices if x.format == "csr" else rows_of_entries(x.indptr)


# --- sums -----------------------------------------------------------------------------------------


class AddSS(_Elementwise):
    """The sum of two sparse matrices, in the format of the first."""

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        _check_shapes(self, x, y)
        out: Any = node.outputs[0].type
        output_storage[0][0] = (x + y).asformat(out.format)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (gz,) = output_gradients
        return [_zero_or(gz, x) for x in inputs]


add_s_s = AddSS()


class AddSSData(Op):
    """The sum of two sparse matrices that have the same shape, sparsity pattern, format and dtype.

    The pattern is not checked: the entries are added in their order. Raises NotImplementedError if
    formats or dtypes differ, AssertionError for BSR matrices; AssertionError or ValueError at run
    time if the shapes or the numbers of entries differ.
    """

    __props__ = ()

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_compressed(x), as_compressed(y)
        if x.type != y.type:
            raise NotImplementedError(
                f"{self} takes matrices of one format and dtype, not {x.type} and {y.type}"
            )
        return Apply(self, [x, y], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        _check_shapes(self, x, y)
        if x.data.shape != y.data.shape:
            raise AssertionError(
                f"{self}: the matrices have {x.data.size} and {y.data.size} entries, but must have "
                "the same sparsity pattern"
            )
        z = x.copy()
        z.data += y.data
        output_storage[0][0] = z

    grad = AddSS.grad
    infer_shape = shapes_of(0)


add_s_s_data = AddSSData()


class AddSD(Op):
    """The sum of a sparse and a dense matrix, dense. The gradient is structured."""

    __props__ = ()

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_compressed(x), as_tensor_variable(y)
        if y.type.ndim != 2:
            raise AssertionError(
                f"{self}: a sparse matrix is added to a matrix, not to {y} of {y.type}; "
                "structured_add_s_v adds a vector to the entries of each row"
            )
        out = tensor_type(upcast(x.type.dtype, y.type.dtype), y.type.broadcastable)
        return Apply(self, [x, y], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        output_storage[0][0] = np.array(x + y, dtype=node.outputs[0].type.dtype)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, _), (gz,) = inputs, output_gradients
        return [sp_ones_like(x) * gz, gz]

    infer_shape = shapes_of(1)


add_s_d = AddSD()


class StructuredAddSV(_ByColumn):
    """A sparse matrix with an element of a vector added to each entry, by its column.

    The result has the shape, format and dtype of the matrix. The gradient is structured. Raises
    AssertionError unless y is a vector and for a BSR matrix, NotImplementedError if the dtypes
    differ; AssertionError or ValueError at run time unless there is an element for each column
    (compiled code may ignore further ones).
    """

    combine = np.add

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (gz,) = output_gradients
        return [gz, sp_sum(gz, axis=0, sparse_grad=True)]


structured_add_s_v = StructuredAddSV()


def add(x: Any, y: Any) -> Any:
    """Return the sum of two matrices of one shape, at least one of which is sparse.

    The result has their shape and the upcast of their dtypes; it is sparse, in the format of x, if
    both are, else dense. The gradient is structured if one of them is dense. Raises AssertionError
    if none is sparse, if a sparse one is BSR or if a dense one is no matrix; AssertionError or
    ValueError at run time if the shapes differ (compiled code checks a dense one only along the
    compressed axis and at the stored entries).
    """
    x, y = sparse_operands(x, y, "add")
    if not _is_sparse_variable(x):
        return add_s_d(y, x)
    return add_s_s(x, y) if _is_sparse_variable(y) else add_s_d(x, y)


def sub(x: Any, y: Any) -> Any:
    """Return the difference of two matrices of one shape, at least one of which is sparse.

    Shape, dtype, format and gradient of the result are those of ``add``. Raises AssertionError
    as that does, and at run time ValueError too.
    """
    return add(x, -y)


# --- products -------------------------------------------------------------------------------------


class MulSS(_Elementwise):
    """The elementwise product of two sparse matrices, in the format of the first."""

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        _check_shapes(self, x, y)
        out: Any = node.outputs[0].type
        output_storage[0][0] = out.format_cls[out.format](x.multiply(y), dtype=out.dtype)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        return [_zero_or(y * gz, x), _zero_or(x * gz, y)]


mul_s_s = MulSS()


class MulSD(Op):
    """The elementwise product of a sparse matrix and a dense matrix or number, sparse.

    It has the sparsity pattern of the sparse operand.
    """

    __props__ = ()

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_compressed(x), as_tensor_variable(y)
        if y.type.ndim not in (0, 2):
            raise AssertionError(
                f"{self}: a sparse matrix is multiplied by a matrix or a number, not by {y} of "
                f"{y.type}; mul_s_v multiplies each column by an element of a vector"
            )
        out = SparseType(dtype=upcast(x.type.dtype, y.type.dtype), format=x.type.format)
        return Apply(self, [x, y], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        z = x.astype(node.outputs[0].type.dtype, copy=True)
        if y.ndim:
            _check_shapes(self, x, y)
            rows = rows_of_entries(x.indptr)
            y = y[rows, x.indices] if x.format == "csr" else y[x.indices, rows]
        z.data *= y
        output_storage[0][0] = z

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        gy = x * gz
        gy = sp_sum(gy, sparse_grad=True) if y.type.ndim == 0 else dense_from_sparse(gy)
        return [_zero_or(y * gz, x), gy]

    infer_shape = shapes_of(0)


mul_s_d = MulSD()


class MulSV(_ByColumn):
    """A sparse matrix with each column multiplied by an element of a vector.

    The result has the shape, format and dtype of the matrix. Raises AssertionError unless y is a
    vector and for a BSR matrix, NotImplementedError if the dtypes differ; AssertionError or
    ValueError at run time unless there is an element for each column (compiled code may ignore
    further ones).
    """

    combine = np.multiply

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        dtype = upcast(gz.type.dtype, y.type.dtype)
        if gz.type.dtype != dtype:
            gz = gz.astype(dtype)
        return [
            mul_s_v(gz, cast_tensor(y, dtype)),
            sp_sum(x * gz, axis=0, sparse_grad=True),
        ]


mul_s_v = MulSV()


def mul(x: Any, y: Any) -> Any:
    """Return the elementwise product of two matrices of one shape, at least one of which is sparse.

    The result is sparse, in the format of the first sparse operand; it has their shape and the
    upcast of their dtypes. A dense operand may also be a number. The gradient is regular. Raises
    AssertionError if none is sparse, if a sparse one is BSR or if a dense one has other than 0 or 2
    dimensions; AssertionError or ValueError at run time if the shapes differ (compiled code checks
    a dense one only along the compressed axis and at the stored entries).
    """
    x, y = as_sparse_or_tensor_variable(x), as_sparse_or_tensor_variable(y)
    if not _is_sparse_variable(x):
        x, y = y, x
    if not _is_sparse_variable(x):
        raise AssertionError(f"sparse.mul takes at least one sparse matrix, not {y} and {x}")
    if (x.type.dtype, y.type.dtype) == ("float32", "float64"):
        x = x.astype("float64")
    return mul_s_s(x, y) if _is_sparse_variable(y) else mul_s_d(x, y)
