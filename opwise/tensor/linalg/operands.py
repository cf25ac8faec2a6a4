"""What the Ops of linear algebra share: checks of operands, dtypes and types of results."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType

import numpy as np

from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable


def as_matrix(x: TensorLike, op: object, ndims: tuple[int, ...] = (2,)) -> Tensor:
    """Return an operand as a tensor; AssertionError unless it has 2 (or ``ndims``) dimensions."""
    matrix = as_tensor_variable(x)
    wanted = "a matrix" if ndims == (2,) else "a vector or a matrix"
    assert matrix.type.ndim in ndims, (
        f"{type(op).__name__} takes {wanted}, got {matrix.type} with {matrix.type.ndim} "
        "dimensions; for several matrices, apply it to each of them"
    )
    return matrix


def matrix_of(dtype: str) -> Tensor:
    """Return a new matrix."""
    return tensor_type(dtype, (False, False)).make_variable()


def vector_of(dtype: str) -> Tensor:
    """Return a new vector."""
    return tensor_type(dtype, (False,)).make_variable()


def columns_agree(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether the columns of two matrices have equal lengths and angles.

    Checks of Ops compare so what is determined only up to signs, and up to rotations for equal
    eigenvalues or singular values.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(TensorType.values_eq_approx(a.conj().T @ a, b.conj().T @ b))


def rows_agree(a: np.ndarray, b: np.ndarray) -> bool:
    """As ``columns_agree``, of the rows of two matrices."""
    return columns_agree(a.T, b.T)


def up_to_signs(matrix: Tensor, agree: Callable[[np.ndarray, np.ndarray], bool]) -> Tensor:
    """Return a matrix after choosing how checks compare its values."""
    matrix.tag.values_eq_approx = agree
    return matrix


def float_dtype(*variables: Tensor) -> str:
    """Return the dtype in which numpy factorizes: that of the operands, float64 for integers."""
    found = np.result_type(*(v.type.dtype for v in variables))
    return found.name if found.kind in "fc" else "float64"


def real_dtype(dtype: str) -> str:
    """Return the dtype of the parts of numbers of ``dtype``."""
    return np.zeros(0, dtype).real.dtype.name


def check_square(x: np.ndarray, name: str = "the matrix") -> None:
    """Raise LinAlgError, a ValueError, unless a matrix has as many rows as columns."""
    if x.shape[0] != x.shape[1]:
        raise np.linalg.LinAlgError(f"expected a square matrix, but {name} has shape {x.shape}")


def check_finite(*arrays: np.ndarray) -> None:
    """Raise ValueError if an element is infinite or NaN: LAPACK may give anything for those."""
    if not all(np.isfinite(a).all() for a in arrays):
        raise ValueError("array must not contain infs or NaNs")


def has_scipy() -> bool:
    """Return whether scipy is installed, without loading it."""
    return importlib.util.find_spec("scipy") is not None


def scipy_linalg() -> ModuleType:
    """Return scipy.linalg, which is loaded when an Op needs it; ImportError without scipy."""
    if not has_scipy():
        raise ImportError(
            "scipy is not installed: this operation needs scipy.linalg; run: pip install scipy"
        )
    import scipy.linalg  # takes 0.2 s

    result: ModuleType = scipy.linalg
    return result
