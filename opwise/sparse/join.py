"""Sparse matrices side by side and above each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.sparse.convert import SparseFromDense, dense_from_sparse
from opwise.sparse.type import SparseType
from opwise.sparse.variable import (
    _is_sparse_variable,
    as_compressed,
    as_sparse_variable,
    continuous_dtypes,
)
from opwise.tensor.join import Split, stack


class HStack(Op):
    """Sparse matrices side by side, as a matrix of ``format`` (default: csc) and ``dtype``."""

    __props__ = ("format", "dtype")
    #: the dimension along which the matrices follow each other
    axis = 1

    def __init__(self, format: str | None = None, dtype: str | None = None) -> None:
        self.format = "csc" if format is None else format
        if dtype is None:
            raise ValueError("The output dtype must be specified.")
        self.dtype = dtype

    def make_node(self, *mat: Any) -> Apply:
        if not mat:
            raise ValueError("Cannot join an empty list of sparses.")
        out = SparseType(dtype=self.dtype, format=self.format)
        return Apply(self, [as_compressed(x) for x in mat], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        import scipy.sparse

        join = scipy.sparse.hstack if self.axis else scipy.sparse.vstack
        made = join(inputs, format=self.format, dtype=self.dtype)
        output_storage[0][0] = SparseType.format_cls[self.format](made)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (gz,) = output_gradients
        if _is_sparse_variable(gz):
            gz = dense_from_sparse(gz)
        lengths = stack([x.shape[self.axis] for x in inputs])
        parts = Split(len(inputs))(gz, self.axis, lengths, return_list=True)
        return [
            SparseFromDense(self.format)(part)
            if x.type.dtype in continuous_dtypes
            else x.zeros_like(dtype=part.type.dtype)
            for x, part in zip(inputs, parts, strict=True)
        ]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        total = sum(shape[self.axis] for shape in shapes[1:]) + shapes[0][self.axis]
        return [(shapes[0][0], total) if self.axis else (total, shapes[0][1])]

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.format},{self.dtype})"


class VStack(HStack):
    """Sparse matrices above each other, as a matrix of ``format`` (default: csc) and ``dtype``."""

    axis = 0


def _stacked(
    op: Callable[..., Op], blocks: Sequence[Any], format: str | None, dtype: str | None
) -> Var:
    blocks = [as_sparse_variable(block) for block in blocks]
    if not blocks:
        raise TypeError("Cannot join an empty list of sparses.")
    if dtype is None:
        dtype = dtypes.upcast(*(block.type.dtype for block in blocks))
    return op(format=format, dtype=dtype)(*blocks)


def hstack(blocks: Sequence[Any], format: str | None = None, dtype: str | None = None) -> Any:
    """Return sparse matrices side by side, of shape (rows, the sum of columns).

    blocks: CSR and CSC matrices with one number of rows. format: of the result (default: csc).
    dtype: of the result (default: the upcast of the dtypes). The gradient is regular. Raises
    TypeError if blocks is empty or one of them is not sparse, AssertionError for a BSR matrix,
    NotImplementedError for an unknown format or dtype; ValueError at run time if their numbers of
    rows differ.
    """
    return _stacked(HStack, blocks, format, dtype)


def vstack(blocks: Sequence[Any], format: str | None = None, dtype: str | None = None) -> Any:
    """Return sparse matrices above each other, of shape (the sum of rows, columns).

    blocks: CSR and CSC matrices with one number of columns. format: of the result (default: csc).
    dtype: of the result (default: the upcast of the dtypes). The gradient is regular. Raises
    TypeError if blocks is empty or one of them is not sparse, AssertionError for a BSR matrix,
    NotImplementedError for an unknown format or dtype; ValueError at run time if their numbers of
    columns differ.
    """
    return _stacked(VStack, blocks, format, dtype)
