"""Linear algebra, under the names of ``numpy.linalg`` and ``scipy.linalg``.

Each is the function that Theano has in ``tensor.nlinalg`` or ``tensor.slinalg``. They take one
matrix, not a stack of them; ``cholesky`` gives the lower triangle, as in numpy.
"""

from __future__ import annotations

import sys as _sys

from opwise.tensor import elsewhere as _elsewhere
from opwise.tensor.linalg.eigen import eig, eigh, eigvalsh, expm
from opwise.tensor.linalg.factor import cholesky, qr, svd
from opwise.tensor.linalg.inverse import det, pinv, tensorinv, tensorsolve
from opwise.tensor.linalg.inverse import matrix_inverse as inv
from opwise.tensor.linalg.products import kron, matrix_dot, norm, trace
from opwise.tensor.linalg.systems import solve, solve_lower_triangular, solve_upper_triangular

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "kron",
    "matrix_dot",
    "norm",
    "pinv",
    "qr",
    "solve",
    "solve_lower_triangular",
    "solve_upper_triangular",
    "svd",
    "tensorinv",
    "tensorsolve",
    "trace",
]


def __getattr__(name: str) -> object:
    """Raise AttributeError that says where a name is, or what to write."""
    raise _elsewhere.no_attribute(_sys.modules[__name__], name)
