"""The conversion of values to sparse variables, and the constructors of these.

Their classes are in ``opwise.sparse.operators``, above the Ops that their operators make.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.sparse.type import SparseType, arrays_of, holds_sparse
from opwise.tensor.type import TensorType
from opwise.tensor.variable import as_tensor_variable

if TYPE_CHECKING:
    from opwise.sparse.operators import SparseConstant


def hash_from_sparse(data: Any) -> str:
    """Return a hash, in hexadecimal digits, of the shape, dtype, format and arrays of a matrix.

    Raises AttributeError if ``data`` is no matrix of scipy.
    """
    found = hashlib.sha256(f"{data.shape} {data.dtype} {data.format}".encode())
    for array in arrays_of(data):
        found.update(f" {array.dtype} {array.size} ".encode())
        found.update(array.tobytes())
    return found.hexdigest()


# --- conversion -----------------------------------------------------------------------------------


def constant(x: Any, name: str | None = None) -> SparseConstant:
    """Return a copy of a sparse matrix of scipy as a constant of its shape, format and dtype.

    A sparse array of scipy becomes the matrix with the same elements: ``*`` multiplies matrices.
    Raises TypeError unless x is a sparse matrix or array, NotImplementedError for a format or dtype
    that SparseType does not have (coordinates and bool, for example).
    """
    if not holds_sparse(x):
        raise TypeError(f"sparse.constant takes a sparse matrix of scipy, not {type(x)}")
    type_ = SparseType(format=x.format, dtype=x.dtype)
    data = type_.format_cls[x.format](x, copy=True)
    return cast("SparseConstant", type_.Constant(type_, data, name))


def as_sparse_variable(x: Any, name: str | None = None) -> Any:
    """Return ``x`` as a sparse variable of its shape, format and dtype.

    x: a sparse variable, an Apply with one output, or a sparse matrix of scipy. Raises TypeError
    for anything else, ValueError for an Apply of several outputs, NotImplementedError for a matrix
    of a format or dtype that SparseType does not have.
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
    """Return ``x`` as a sparse variable if it is sparse, else as a tensor variable.

    It keeps shape, dtype and format. Raises TypeError for what is neither, ValueError for an Apply
    of several outputs, NotImplementedError for a matrix of scipy in another format or dtype than
    those of SparseType.
    """
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

    Its shape is known at run time. dtype: a name among ``sparse.all_dtypes``. Raises
    NotImplementedError for an unknown format or dtype, AssertionError for a format that is no
    string, TypeError for a name that is none.
    """
    return SparseType(format=format, dtype=config.floatX if dtype is None else dtype)(name)


def csc_matrix(name: str | None = None, dtype: Any = None) -> Any:
    """Return a symbolic sparse matrix, stored by columns, of a dtype (default: floatX).

    Its shape is known at run time. Raises NotImplementedError for a dtype that is not among
    ``sparse.all_dtypes``.
    """
    return matrix("csc", name, dtype)


def csr_matrix(name: str | None = None, dtype: Any = None) -> Any:
    """Return a symbolic sparse matrix, stored by rows, of a dtype (default: floatX).

    Its shape is known at run time. Raises NotImplementedError for a dtype that is not among
    ``sparse.all_dtypes``.
    """
    return matrix("csr", name, dtype)


def bsr_matrix(name: str | None = None, dtype: Any = None) -> Any:
    """Return a symbolic sparse matrix, stored by rows of blocks, of a dtype (default: floatX).

    Its shape is known at run time. Raises NotImplementedError for a dtype that is not among
    ``sparse.all_dtypes``.
    """
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
