"""Elementwise functions of the entries of sparse matrices: elements without an entry stay 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwise.scalar import as_scalar
from opwise.sparse.variable import as_compressed
from opwise.sparse.vectors import CSM, csm_properties
from opwise.tensor.convert import tensor_from_scalar
from opwise.tensor.elemwise import elemwise


def structured_monoid(tensor_op: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that makes a function of a sparse matrix from one of its entries.

    tensor_op: the function of a tensor and of further scalars. The decorated function has the
    arguments and the docstring alone. The function made of it takes a CSR or CSC matrix, and 0-d
    scalars; it returns a matrix of the same shape, format and sparsity pattern, in the dtype of
    what tensor_op returns. Raises TypeError, when that is called, unless the matrix is sparse and
    the others are scalars, AssertionError for a BSR matrix.
    """

    def decorate(documented: Callable[..., Any]) -> Callable[..., Any]:
        def structured(x: Any, *scalars: Any) -> Any:
            x = as_compressed(x)
            data, indices, indptr, shape = csm_properties(x)
            more = [tensor_from_scalar(as_scalar(each)) for each in scalars]
            return CSM(x.type.format)(tensor_op(data, *more), indices, indptr, shape)

        structured.__name__ = structured.__qualname__ = documented.__name__
        structured.__doc__ = documented.__doc__
        return structured

    return decorate


#: the dtypes of results
_FLOATS = "that of x, or for integers float32 (of 8 and 16 bits) or float64"
_SAME = "that of x"
_UPCAST = "the upcast of those of x and the scalar"


def _structured(row: str, name: str, what: str, dtype: str = _FLOATS) -> Callable[..., Any]:
    """Return the function of sparse matrices made of a scalar operation; dtype: of the result."""

    def documented(x: Any) -> None: ...

    documented.__name__ = name
    documented.__doc__ = (
        f"Return a sparse matrix with {what} of each entry of ``x``.\n\n"
        f"It has the shape, format and sparsity pattern of x. Its dtype is\n{dtype}.\n"
        "Raises TypeError unless x is sparse and of a dtype that the function takes,\n"
        "AssertionError for a BSR matrix."
    )
    return structured_monoid(elemwise(row))(documented)


structured_sigmoid = _structured("scalar_sigmoid", "structured_sigmoid", "the sigmoid")
structured_exp = _structured("exp", "structured_exp", "the exponential")
structured_log = _structured("log", "structured_log", "the natural logarithm")
structured_pow = _structured("pow", "structured_pow", "the power, by a scalar,", _UPCAST)
structured_minimum = _structured(
    "minimum", "structured_minimum", "the smaller, with a scalar,", _UPCAST
)
structured_maximum = _structured(
    "maximum", "structured_maximum", "the larger, with a scalar,", _UPCAST
)
structured_add = _structured("add", "structured_add", "the sum, with a scalar,", _UPCAST)

sin = _structured("sin", "sin", "the sine")
tan = _structured("tan", "tan", "the tangent")
arcsin = _structured("arcsin", "arcsin", "the inverse sine")
arctan = _structured("arctan", "arctan", "the inverse tangent")
sinh = _structured("sinh", "sinh", "the hyperbolic sine")
arcsinh = _structured("arcsinh", "arcsinh", "the inverse hyperbolic sine")
tanh = _structured("tanh", "tanh", "the hyperbolic tangent")
arctanh = _structured("arctanh", "arctanh", "the inverse hyperbolic tangent")
rint = _structured("round_half_to_even", "rint", "the nearest whole number, halves to even,", _SAME)
sgn = _structured("sgn", "sgn", "the sign", _SAME)
ceil = _structured("ceil", "ceil", "the smallest whole number not below")
floor = _structured("floor", "floor", "the largest whole number not above")
log1p = _structured("log1p", "log1p", "log(1 + x)")
expm1 = _structured("expm1", "expm1", "exp(x) - 1")
deg2rad = _structured("deg2rad", "deg2rad", "the radians, from degrees,")
rad2deg = _structured("rad2deg", "rad2deg", "the degrees, from radians,")
trunc = _structured("trunc", "trunc", "the whole part")
sqr = _structured("sqr", "sqr", "the square", _SAME)
sqrt = _structured("sqrt", "sqrt", "the square root")
conj = _structured("conj", "conj", "the complex conjugate", _SAME)
