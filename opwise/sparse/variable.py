"""Sparse variables and constants, and the conversion of values to them.

``opwise.sparse.operators`` attaches their operators and methods.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Variable
from opwise.sparse.type import SparseType, arrays_of, holds_sparse
from opwise.tensor.type import TensorType
from opwise.tensor.variable import as_tensor_variable

if TYPE_CHECKING:
    from opwise.sparse.operators import SparseMethods

    _sparse_py_operators: TypeAlias = SparseMethods
else:

    class _sparse_py_operators:
        """The operators and methods of sparse variables; ``opwise.sparse.operators`` fills it."""


class SparseVariable(_sparse_py_operators, Variable):
    """A symbolic sparse matrix."""

    type: SparseType

    def __str__(self) -> str:
        if self.name is not None or self.owner is not None:
            return super().__str__()
        return f"{type(self).__name__}{{{self.format},{self.dtype}}}"


class SparseConstant(_sparse_py_operators, Constant):
    """A constant sparse matrix; ``data`` holds it and must not be written to."""

    type: SparseType

    def signature(self) -> Any:
        return SparseConstantSignature(self.type, self.data)

    def __str__(self) -> str:
        data = self.data
        return (
            f"{type(self).__name__}{{{self.format},{self.dtype},shape={data.shape},nnz={data.nnz}}}"
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def hash_from_sparse(data: Any) -> str:
    """Return a hash, in hexadecimal digits, of the shape, dtype, format and arrays of a matrix."""
    found = hashlib.sha256(f"{data.shape} {data.dtype} {data.format}".encode())
    for array in arrays_of(data):
        found.update(f" {array.dtype} {array.size} ".encode())
        found.update(array.tobytes())
    return found.hexdigest()


class SparseConstantSignature:
    """Compares constants by type, shape and the bits of their arrays; the hash is kept."""

    __slots__ = ("_hash", "data", "type")

    def __init__(self, type: SparseType, data: Any) -> None:
        self.type = type
        self.data = data
        self._hash: int | None = None

    def _parts(self) -> list[Any]:
        return [array.tobytes() for array in arrays_of(self.data)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseConstantSignature):
            return False
        return (
            self.type == other.type
            and self.data.shape == other.data.shape
            and (self.data is other.data or self._parts() == other._parts())
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.type, hash_from_sparse(self.data)))
        return self._hash


SparseType.Variable = SparseVariable
SparseType.Constant = SparseConstant


# --- conversion -----------------------------------------------------------------------------------


def constant(x: Any, name: str | None = None) -> SparseConstant:
    """Return a copy of a sparse matrix as a constant of its format and dtype; TypeError if not one.

    A sparse array of scipy becomes the matrix with the same elements: ``*`` multiplies matrices.
    """
    if not holds_sparse(x):
        raise TypeError(f"sparse.constant takes a sparse matrix of scipy, not {type(x)}")
    type_ = SparseType(format=x.format, dtype=x.dtype)
    return SparseConstant(type_, type_.format_cls[x.format](x, copy=True), name=name)


def as_sparse_variable(x: Any, name: str | None = None) -> Any:
    """Return ``x`` as a sparse variable of its format and dtype.

    x: a sparse variable, an Apply with one output, or a sparse matrix of scipy. Raises TypeError
    for anything else, ValueError for an Apply of several outputs.
    """
    if isinstance(x, Apply):
        if len(x.outputs) != 1:
            raise ValueError(
                f"It is ambiguous which output of a multi-output Op has to be fetched. {x}"
            )
        x = x.outputs[0]
    if isinstance(x, Variable):
        if not isinstance(x.type, SparseType):
            raise TypeError(
                f"Variable type field must be a SparseType: {x} has {x.type}. "
                "sparse.csr_from_dense makes a sparse matrix of a dense one."
            )
        return x
    if not holds_sparse(x):
        raise TypeError(
            f"Cannot convert {str(x)[:200]} to SparseType: {type(x)}. Give a sparse variable or a "
            "sparse matrix of scipy."
        )
    return constant(x, name=name)


as_sparse = as_sparse_variable


def as_sparse_or_tensor_variable(x: Any, name: str | None = None) -> Any:
    """Return ``x`` as a sparse variable if it is sparse, else as a tensor variable."""
    try:
        return as_sparse_variable(x, name)
    except (ValueError, TypeError):
        return as_tensor_variable(x, name)


def _is_sparse_variable(x: Any) -> bool:
    """Return whether a variable is sparse; NotImplementedError for what is not a variable."""
    if not isinstance(x, Variable):
        raise NotImplementedError(f"expected a sparse or dense variable, not {type(x)}: {x}")
    return isinstance(x.type, SparseType)


def _is_dense_variable(x: Any) -> bool:
    """Return whether a variable is a tensor; NotImplementedError for what is not a variable."""
    if not isinstance(x, Variable):
        raise NotImplementedError(f"expected a sparse or dense variable, not {type(x)}: {x}")
    return isinstance(x.type, TensorType)


def _is_dense(x: Any) -> bool:
    """Return whether a value is an array; NotImplementedError for what is no matrix."""
    if not holds_sparse(x) and not isinstance(x, np.ndarray):
        raise NotImplementedError(f"expected a sparse matrix or an array, not {type(x)}: {x!r}")
    return isinstance(x, np.ndarray)


def as_compressed(x: Any) -> Any:
    """Return ``x`` as a sparse variable of format CSR or CSC; AssertionError for another format."""
    x = as_sparse_variable(x)
    if x.type.format not in ("csr", "csc"):
        raise AssertionError(
            f"{x} has the format {x.type.format}: this operation takes CSR and CSC matrices"
        )
    return x


def sparse_operands(x: Any, y: Any, what: str) -> tuple[Any, Any]:
    """Return two operands as variables; AssertionError unless one of them is sparse."""
    found = [
        as_sparse_variable(v) if holds_sparse(v)
        else v if isinstance(v, Variable) else as_tensor_variable(v)
        for v in (x, y)
    ]  # fmt: skip
    if not any(map(_is_sparse_variable, found)):
        raise AssertionError(f"sparse.{what} takes at least one sparse matrix, not {x} and {y}")
    return found[0], found[1]


# --- constructors ---------------------------------------------------------------------------------


def matrix(format: str, name: str | None = None, dtype: Any = None) -> Any:
    """Return a symbolic sparse matrix of a format, 'csr', 'csc' or 'bsr'. dtype: default floatX.

    Raises NotImplementedError for an unknown format or dtype.
    """
    return SparseType(format=format, dtype=config.floatX if dtype is None else dtype)(name)


def csc_matrix(name: str | None = None, dtype: Any = None) -> Any:
    """Return a symbolic sparse matrix, stored by columns, of a dtype (default: floatX)."""
    return matrix("csc", name, dtype)


def csr_matrix(name: str | None = None, dtype: Any = None) -> Any:
    """Return a symbolic sparse matrix, stored by rows, of a dtype (default: floatX)."""
    return matrix("csr", name, dtype)


def bsr_matrix(name: str | None = None, dtype: Any = None) -> Any:
    """Return a symbolic sparse matrix, stored by rows of blocks, of a dtype (default: floatX)."""
    return matrix("bsr", name, dtype)


csc_dmatrix = SparseType(format="csc", dtype="float64")
csr_dmatrix = SparseType(format="csr", dtype="float64")
bsr_dmatrix = SparseType(format="bsr", dtype="float64")
csc_fmatrix = SparseType(format="csc", dtype="float32")
csr_fmatrix = SparseType(format="csr", dtype="float32")
bsr_fmatrix = SparseType(format="bsr", dtype="float32")

sparse_formats = ["csc", "csr"]
all_dtypes = SparseType.dtype_set
complex_dtypes = sorted(t for t in all_dtypes if t.startswith("complex"))
float_dtypes = sorted(t for t in all_dtypes if t.startswith("float"))
int_dtypes = sorted(t for t in all_dtypes if t.startswith("int"))
uint_dtypes = sorted(t for t in all_dtypes if t.startswith("uint"))
integer_dtypes = discrete_dtypes = int_dtypes + uint_dtypes
continuous_dtypes = complex_dtypes + float_dtypes
