"""The operators and methods of sparse variables, constants and shared variables.

Each calls a function of another module. Importing this module attaches them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from opwise.graph.variable import Var, Variable
from opwise.sparse import arithmetic, compare, indexing, products
from opwise.sparse.convert import ChangeFormat, SparseFromDense, cast, dense_from_sparse, transpose
from opwise.sparse.type import SparseType
from opwise.sparse.variable import _sparse_py_operators as _Target
from opwise.sparse.vectors import csm_data, sp_ones_like, sp_zeros_like
from opwise.tensor.shape import shape
from opwise.tensor.type import TensorType

__all__: list[str] = []


if TYPE_CHECKING:
    _Base = Variable
else:
    _Base = object


class SparseMethods(_Base):
    """The operators and methods, which are attached to the base class of sparse variables."""

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


class _Empty:
    annotated: int


def _attach_methods() -> None:
    """Attach the methods, without what every class has in every version of Python."""
    for name, value in vars(SparseMethods).items():
        if name not in vars(_Empty):
            setattr(_Target, name, value)


_attach_methods()
