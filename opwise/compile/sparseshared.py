"""Shared variables that hold sparse matrices."""

from __future__ import annotations

import copy
from typing import Any

from opwise.compile.shared import SharedVariable
from opwise.sparse.operators import _sparse_py_operators
from opwise.sparse.type import SparseType, holds_sparse


class SparseTensorSharedVariable(_sparse_py_operators, SharedVariable):
    """A shared sparse matrix."""

    type: SparseType


def sparse_constructor(
    value: Any, name: str | None = None, strict: bool = False, allow_downcast: bool | None = None,
    borrow: bool = False, format: str | None = None,
) -> SparseTensorSharedVariable:  # fmt: skip
    """Return a shared variable that holds a sparse matrix of scipy, of its shape and dtype.

    format: 'csr', 'csc' or 'bsr' (default: that of the value). borrow: keep the matrix itself, not
    a copy. Raises TypeError for another value, or one of another format if ``strict``,
    NotImplementedError for another format or dtype.
    """
    if not holds_sparse(value):
        raise TypeError(f"not a sparse matrix but {type(value)}")
    type_ = SparseType(format=value.format if format is None else format, dtype=value.dtype)
    return SparseTensorSharedVariable(
        type=type_,
        value=value if borrow else copy.deepcopy(value),
        name=name,
        strict=strict,
        allow_downcast=allow_downcast,
    )


shared = sparse_constructor
