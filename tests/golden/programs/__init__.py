"""Small legacy programs whose results under genuine Theano are recorded.

Each is a function of (theano, T, np) that uses the legacy API and the syntax of Python 3.7 only.
"""

from . import (
    broadcasting,
    dtypes,
    failures,
    functions,
    gradients,
    images,
    indexing,
    linear_models,
    names,
    numerics,
    printing,
    random_streams,
    scripts,
    sparse,
    traversals,
    userops,
    values_elemwise,
    values_nnet,
    values_tensor,
)
from .register import LOOSE, PROGRAMS, SINGLE, ULP

__all__ = [
    "LOOSE",
    "PROGRAMS",
    "SINGLE",
    "ULP",
    "broadcasting",
    "dtypes",
    "failures",
    "functions",
    "gradients",
    "images",
    "indexing",
    "linear_models",
    "names",
    "numerics",
    "printing",
    "random_streams",
    "scripts",
    "sparse",
    "traversals",
    "userops",
    "values_elemwise",
    "values_nnet",
    "values_tensor",
]
