"""SparseType: scipy's sparse matrices of one format and dtype.

scipy.sparse is imported when the first value is checked: declaring variables needs only names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from opwise.graph.type import Type
from opwise.graph.variable import Variable


class _Formats(Mapping[str, Any]):
    """scipy's matrix classes by the name of their format."""

    _names = ("csr", "csc", "bsr")

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        import scipy.sparse  # slow to import

        return getattr(scipy.sparse, f"{name}_matrix")

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def holds_sparse(x: Any) -> bool:
    """Return whether ``x`` is a sparse matrix or sparse array of scipy."""
    module = sys.modules.get("scipy.sparse")  # without it there are no such values
    return module is not None and bool(module.issparse(x))


def _is_sparse(x: Any) -> bool:
    """Return whether a value is a sparse matrix; NotImplementedError for what is no matrix."""
    if holds_sparse(x):
        return True
    if not isinstance(x, np.ndarray | tuple | list):
        raise NotImplementedError(f"expected a sparse matrix or an array, not {type(x)}: {x!r}")
    return False


class SparseType(Type):
    """The type of sparse matrices of a format ('csr', 'csc' or 'bsr') and a dtype.

    Raises NotImplementedError for an unknown format or dtype.
    """

    #: format -> scipy's class
    format_cls: Mapping[str, Any] = _Formats()
    dtype_set = frozenset(
        ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float32", "float64", "complex64", "complex128")
    )  # fmt: skip
    ndim = 2

    def __init__(self, format: str, dtype: Any) -> None:
        self.dtype = str(dtype)
        if self.dtype not in self.dtype_set:
            raise NotImplementedError(
                f'unsupported dtype "{self.dtype}" of a sparse matrix: use one of '
                f"{', '.join(sorted(self.dtype_set))}"
            )
        if not isinstance(format, str):
            raise AssertionError(f"the format of a sparse matrix is a string, not {format!r}")
        if format not in self.format_cls:
            raise NotImplementedError(
                f'unsupported format "{format}" of a sparse matrix: use one of '
                f"{', '.join(self.format_cls)}"
            )
        self.format = format

    # --- values -----------------------------------------------------------------------------------

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``data`` as a sparse matrix of this format and dtype.

        Another format, an array or a list of lists is converted unless ``strict``. Raises TypeError
        if ``strict`` forbids it, NotImplementedError if the dtype differs and allow_downcast is not
        True, ValueError if the index arrays are malformed.
        """
        cls = self.format_cls[self.format]
        if isinstance(data, cls) and data.dtype == self.dtype:
            check_structure(data)
            return data
        if isinstance(data, Variable):
            raise TypeError(f"Expected a sparse matrix, but found a Variable: {data}")
        if strict or data is None:
            raise TypeError(
                f"expected a sparse matrix of format {self.format} and dtype {self.dtype}, got "
                f"{_described(data)}"
            )
        if holds_sparse(data) and data.format in self.format_cls:
            check_structure(data)
        if allow_downcast:
            return cls(data, dtype=self.dtype)
        made = cls(data)
        if made.dtype != self.dtype:
            raise NotImplementedError(
                f"Expected {self.dtype} dtype but got {made.dtype}: call its "
                f"astype({self.dtype!r}), or allow it with allow_input_downcast=True (function) or "
                "allow_downcast=True (shared)"
            )
        return made

    def is_valid_value(self, a: Any) -> bool:
        return holds_sparse(a) and a.format == self.format

    @classmethod
    def values_eq(cls, a: Any, b: Any) -> bool:
        """Return whether two matrices have the same elements, NaN equal to NaN."""
        pairs = _aligned(a, b)
        return pairs is not None and bool(
            np.array_equal(*pairs, equal_nan=all(p.dtype.kind in "fc" for p in pairs))
        )

    @classmethod
    def values_eq_approx(cls, a: Any, b: Any, eps: float = 1e-6) -> bool:
        """Return whether elements differ by at most ``eps``, or the 1e-5th part of the larger."""
        pairs = _aligned(a, b)
        return pairs is not None and bool(
            np.all(np.isclose(*pairs, rtol=1e-5, atol=eps, equal_nan=True))
        )

    @staticmethod
    def may_share_memory(a: Any, b: Any) -> bool:
        """Return whether two values, at least one of them sparse, share memory."""
        if not (holds_sparse(a) or holds_sparse(b)):
            return False
        return any(np.may_share_memory(x, y) for x in arrays_of(a) for y in arrays_of(b))

    def get_shape_info(self, obj: Any) -> tuple[Any, ...]:
        """Return (shape, lengths of data, indices and indptr, nnz, bytes of an index)."""
        return (
            obj.shape, obj.data.size, obj.indices.size, obj.indptr.size, obj.nnz,
            obj.indices.itemsize,
        )  # fmt: skip

    def get_size(self, shape_info: tuple[Any, ...]) -> int:
        """Return the bytes of a matrix of which ``get_shape_info`` returned ``shape_info``."""
        _, data, indices, indptr, _, itemsize = shape_info
        return int(data * np.dtype(self.dtype).itemsize + (indices + indptr) * itemsize)

    # --- identity ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SparseType)
            and type(self) is type(other)
            and other.dtype == self.dtype
            and other.format == self.format
        )

    def __hash__(self) -> int:
        return hash(("SparseType", self.dtype, self.format))

    def __str__(self) -> str:
        return f"Sparse[{self.dtype}, {self.format}]"

    def __repr__(self) -> str:
        return str(self)


def arrays_of(value: Any) -> list[np.ndarray]:
    """Return the arrays that hold a value: those of a sparse matrix, or the array itself."""
    if isinstance(value, np.ndarray):
        return [value]
    names = ("data", "indices", "indptr") if holds_sparse(value) else ()
    return [found for name in names if isinstance(found := getattr(value, name, None), np.ndarray)]


def check_structure(matrix: Any) -> None:
    """Raise ValueError unless the index arrays of a matrix describe entries inside it.

    scipy's own loops follow the indices without a look, and may end the process. This reads each
    index once.
    """
    blocks = getattr(matrix, "blocksize", (1, 1))
    lengths = [n // block for n, block in zip(matrix.shape, blocks, strict=True)]
    major, minor = reversed(lengths) if matrix.format == "csc" else lengths
    indptr, indices = matrix.indptr, matrix.indices
    stored = min(len(indices), len(matrix.data))
    if (
        len(indptr) != major + 1
        or indptr[0] != 0
        or indptr[-1] > stored
        or bool((indptr[1:] < indptr[:-1]).any())
    ):
        raise ValueError(
            f"malformed sparse matrix of shape {matrix.shape}: its indptr must have {major + 1} "
            f"elements that rise from 0 to at most {stored}, the number of stored entries"
        )
    used = indices[: int(indptr[-1])]
    if used.size and (used.min() < 0 or used.max() >= minor):
        raise ValueError(
            f"malformed sparse matrix of shape {matrix.shape}: its indices must be from 0 to "
            f"{minor - 1}, but they are from {used.min()} to {used.max()}"
        )


def _aligned(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the elements of two matrices at each place where one of them has an entry.

    None if they are not sparse matrices of one shape.
    """
    if not (holds_sparse(a) and holds_sparse(b)) or a.shape != b.shape:
        return None
    import scipy.sparse

    a, b = a.tocoo(), b.tocoo()
    places = (np.concatenate([a.row, b.row]), np.concatenate([a.col, b.col]))
    parts = [
        (a.data, np.zeros(b.data.shape, a.data.dtype)),
        (np.zeros(a.data.shape, b.data.dtype), b.data),
    ]
    both = [
        scipy.sparse.coo_matrix((np.concatenate(part), places), shape=a.shape).tocsr()
        for part in parts
    ]
    return both[0].data, both[1].data


def _described(data: Any) -> str:
    if holds_sparse(data):
        return f"one of format {data.format} and dtype {data.dtype}"
    dtype = getattr(data, "dtype", None)
    return f"{type(data).__name__}" + (f" of dtype {dtype}" if dtype is not None else "")
