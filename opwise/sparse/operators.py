"""Sparse variables and constants, with their operators and methods.

Each method calls a function of another module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from opwise.graph.variable import Constant, Var, Variable
from opwise.sparse import arithmetic, compare, indexing, products
from opwise.sparse.convert import ChangeFormat, SparseFromDense, cast, dense_from_sparse, transpose
from opwise.sparse.type import SparseType, arrays_of
from opwise.sparse.variable import hash_from_sparse
from opwise.sparse.vectors import csm_data, sp_ones_like, sp_zeros_like
from opwise.tensor.shape import shape
from opwise.tensor.type import TensorType

__all__ = ["SparseConstant", "SparseConstantSignature", "SparseVariable"]


if TYPE_CHECKING:
    _Base = Variable
else:
    _Base = object


class _sparse_py_operators(_Base):
    """The operators and methods of sparse variables, constants and shared variables."""

    type: SparseType
    #: above that of numpy arrays and scipy's matrices, which then leave ``a * x`` to the variable
    __array_priority__ = 1000

    # --- operators ------------------------------------------------------------------------------

    def __neg__(self) -> Var:
        return arithmetic.neg(self)

    def __add__(self, other: Any) -> Var:
        return arithmetic.add(self, other)

    def __radd__(self, other: Any) -> Var:
        return arithmetic.add(other, self)

    def __sub__(self, other: Any) -> Var:
        return arithmetic.sub(self, other)

    def __rsub__(self, other: Any) -> Var:
        return arithmetic.sub(other, self)

    def __mul__(self, other: Any) -> Var:
        return arithmetic.mul(self, other)

    def __rmul__(self, other: Any) -> Var:
        return arithmetic.mul(other, self)

    def __lt__(self, other: Any) -> Var:
        return compare.lt(self, other)

    def __le__(self, other: Any) -> Var:
        return compare.le(self, other)

    def __gt__(self, other: Any) -> Var:
        return compare.gt(self, other)

    def __ge__(self, other: Any) -> Var:
        return compare.ge(self, other)

    def __dot__(self, other: Any) -> Var:
        return products.structured_dot(self, other)

    def __rdot__(self, other: Any) -> Var:
        return products.structured_dot(other, self)

    def __getitem__(self, args: Any) -> Var:
        return indexing.getitem(self, args)

    def __iter__(self) -> NoReturn:
        raise TypeError("SparseType does not support iteration: index rows by slices, x[i:i + 1]")

    # --- the type -------------------------------------------------------------------------------

    dtype = property(lambda self: self.type.dtype, doc="The name of the dtype.")
    format = property(lambda self: self.type.format, doc="The format: 'csr', 'csc' or 'bsr'.")
    ndim = property(lambda self: self.type.ndim, doc="The number of dimensions, 2.")
    shape = property(lambda self: shape(self), doc="The shape, an int64 vector.")
    size = property(
        lambda self: csm_data(self).size, doc="The number of stored entries, zeros among them."
    )
    T = property(lambda self: transpose(self), doc="The transpose, over the same memory.")

    def astype(self, dtype: str) -> Any:
        """Return the entries as ``dtype``."""
        return cast(self, dtype)

    def toarray(self) -> Any:
        """Return the dense matrix."""
        return dense_from_sparse(self)

    def zeros_like(self, dtype: str | None = None) -> Any:
        """Return a matrix of the same shape without entries."""
        return sp_zeros_like(self, dtype)

    def _fitted_gradient(self, g: Any) -> Any:
        """Return a gradient by this variable as a sparse matrix of its format.

        Some products give dense gradients, and joins give those of their own format.
        """
        format = self.type.format
        if isinstance(g.type, TensorType):
            return SparseFromDense(format)(g)
        return g if g.type.format == format else ChangeFormat(format)(g)

    def ones_like(self, dtype: str | None = None) -> Any:
        """Return a matrix with the same entries, all of them 1."""
        ones = sp_ones_like(self)
        return ones if dtype in (None, ones.type.dtype) else cast(ones, dtype)


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

    def signature(self) -> SparseConstantSignature:
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


# a type is older than the class of its variables, whose methods make Ops, which know the type
SparseType.Variable = SparseVariable
SparseType.Constant = SparseConstant
